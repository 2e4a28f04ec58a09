"""Operations and bytes are counted as they would be if one did it by hand."""

from __future__ import annotations

import numpy as np
import pytest

from convgrad import ConvGeometry, loops
from convgrad.checks import random_geometry
from convgrad.costs import intensity, operations, traffic
from convgrad.im2col import unfold

ONE = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)


@pytest.mark.parametrize("seed", range(30))
def test_two_operations_for_each_product_of_the_definition(seed):
    geometry = random_geometry(np.random.default_rng(seed))
    assert operations(geometry) == 2 * sum(1 for _ in loops.products(geometry))


@pytest.mark.parametrize("seed", range(30))
def test_bytes_are_those_of_the_arrays(seed):
    rng = np.random.default_rng(seed)
    geometry = random_geometry(rng)
    shapes = geometry.x_shape, geometry.weight_shape, geometry.output_shape
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    once = sum(array.nbytes for array in arrays)
    columns = unfold(arrays[0], geometry)
    assert traffic(geometry) == once
    assert traffic(geometry, 8) == 2 * once
    if not np.shares_memory(columns, arrays[0]):
        assert traffic(geometry, columns=True) == once + 2 * columns.nbytes


def test_the_columns_of_one_tap_are_the_image():
    one_tap = ConvGeometry(N=2, C=3, H=4, W=5, O=6, KH=1, KW=1)
    assert traffic(one_tap, columns=True) == traffic(one_tap)
    for changed in ({"stride": 2}, {"padding": 1}):
        copied = ConvGeometry(N=2, C=3, H=4, W=5, O=6, KH=1, KW=1, **changed)
        assert traffic(copied, columns=True) > traffic(copied)


def test_intensity_is_the_ratio():
    assert intensity(ONE) == operations(ONE) / traffic(ONE) == 162 / 172
    assert intensity(ONE, 8) == intensity(ONE) / 2
    assert intensity(ONE, columns=True) == 162 / (172 + 2 * 81 * 4)
