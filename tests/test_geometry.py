"""The one object that owns all sizes, against first principles and PyTorch's formula."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from strategies import geometries

from convgrad import ConvGeometry, GeometryError
from convgrad.geometry import PADDING_MODES
from convgrad.padding import pad


@given(geometries())
def test_the_output_holds_every_window_that_fits_and_no_more(geometry):
    """Slide a window from the top until it falls off, and count."""
    for size, span, stride, windows, leftover in zip(
        geometry.padded_size,
        geometry.span,
        geometry.stride,
        (geometry.OH, geometry.OW),
        geometry.leftover,
        strict=True,
    ):
        starts = [start for start in range(0, size, stride) if start + span <= size]
        assert windows == len(starts)
        assert leftover == size - (starts[-1] + span)


@given(geometries())
def test_span_is_from_the_first_tap_to_the_last(geometry):
    first_h, first_v = geometry.source(0, 0, 0, 0)
    last_h, last_v = geometry.source(0, 0, geometry.KH - 1, geometry.KW - 1)
    assert geometry.span == (last_h - first_h + 1, last_v - first_v + 1)


@given(geometries())
def test_surplus_is_what_the_leftover_holds_of_dilation_steps(geometry):
    for leftover, dilation, surplus in zip(
        geometry.leftover, geometry.dilation, geometry.surplus, strict=True
    ):
        assert surplus * dilation <= leftover < (surplus + 1) * dilation


@given(geometries())
def test_cell_names_the_image_cell_that_numpy_pads_with(geometry):
    (top, bottom), (left, right) = geometry.padding
    image = 1.0 + np.arange(geometry.H * geometry.W).reshape(1, 1, geometry.H, geometry.W)
    padded = pad(image, geometry)[0, 0]
    for h, v in product(range(-top, geometry.H + bottom), range(-left, geometry.W + right)):
        cell = geometry.cell(h, v)
        value = 0 if cell is None else image[0, 0][cell]
        assert padded[h + top, v + left] == value
        if 0 <= h < geometry.H and 0 <= v < geometry.W:
            assert cell == (h, v)


@given(geometries())
def test_rows_and_cols_are_the_index_map_in_tables(geometry):
    for p, q, i, j in np.ndindex(geometry.OH, geometry.OW, geometry.KH, geometry.KW):
        at = int(geometry.rows[p, i]), int(geometry.cols[q, j])
        cell = geometry.cell(*geometry.source(p, q, i, j))
        assert (None if min(at) < 0 else at) == cell


@given(geometries())
def test_padded_rows_and_cols_say_what_stands_on_each_line(geometry):
    (top, _), (left, _) = geometry.padding
    assert (len(geometry.padded_rows), len(geometry.padded_cols)) == geometry.padded_size
    for index, first, size, line in (
        (geometry.padded_rows, -top, geometry.H, lambda k: geometry.cell(k, 0)),
        (geometry.padded_cols, -left, geometry.W, lambda k: geometry.cell(0, k)),
    ):
        for k, home in enumerate(index, start=first):
            cell = line(k)
            assert (home < 0) == (cell is None)
            assert -1 <= home < size


@given(geometries())
def test_it_survives_json(geometry):
    assert ConvGeometry(**json.loads(json.dumps(geometry.as_dict()))) == geometry


@given(geometries())
def test_equal_geometries_hash_alike_and_can_be_keys(geometry):
    again = ConvGeometry(**geometry.as_dict())
    assert geometry == again and hash(geometry) == hash(again)


@given(geometries())
def test_channels_of_a_group_are_a_block(geometry):
    seen = [
        geometry.channel(o, c)
        for o in range(0, geometry.O, geometry.OG)
        for c in range(geometry.CG)
    ]
    assert seen == list(range(geometry.C))
    groups = [geometry.group_of(o) for o in range(geometry.O)]
    assert groups == sorted(groups) and set(groups) == set(range(geometry.groups))


@given(geometries())
def test_the_shapes_make_the_geometry_again(geometry):
    again = ConvGeometry.of(
        geometry.x_shape,
        geometry.weight_shape,
        geometry.stride,
        geometry.padding,
        geometry.dilation,
        geometry.groups,
        geometry.padding_mode,
    )
    assert again == geometry


@pytest.mark.parametrize("again", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copy_has_index_maps_that_nobody_can_write_into(again):
    geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, padding=1)
    assert not geometry.rows.flags.writeable  # made here, so that there is something to copy
    copied = again(geometry)
    assert copied == geometry and hash(copied) == hash(geometry)
    for name in ("rows", "cols", "padded_rows", "padded_cols"):
        assert_array_equal(getattr(copied, name), getattr(geometry, name))
        assert not getattr(copied, name).flags.writeable


@pytest.mark.parametrize("size", [1, 2, 5])
def test_reflection_goes_back_and_forth_as_far_as_one_asks(size):
    """NumPy reflects again and again where the border is wider than the image."""
    sizes = {"C": 1, "H": size, "W": 3, "O": 1, "KH": 1, "KW": 1}
    geometry = ConvGeometry(**sizes, padding_mode="reflect")
    reflected = np.pad(np.arange(size), 20, mode="reflect")
    assert [geometry.cell(h, 0)[0] for h in range(-20, size + 20)] == reflected.tolist()


def test_same_puts_the_odd_cell_at_the_end():
    geometry = ConvGeometry(C=1, H=5, W=6, O=1, KH=2, KW=3, dilation=(3, 2), padding="same")
    assert geometry.padding == ((1, 2), (2, 2))
    assert (geometry.OH, geometry.OW) == (5, 6)


def test_source_takes_whole_arrays_of_indices():
    geometry = ConvGeometry(C=1, H=6, W=7, O=1, KH=3, KW=3, stride=2, padding=1)
    h, v = geometry.source(np.arange(3)[:, None], 1, np.arange(3), 0)
    assert_array_equal(h, [[-1, 0, 1], [1, 2, 3], [3, 4, 5]])
    assert v == 1


@pytest.mark.parametrize("padding_mode", PADDING_MODES)
def test_the_widest_border_that_a_mode_allows(padding_mode):
    widest = {"reflect": 3, "circular": 4}.get(padding_mode, 9)
    sizes = {"C": 1, "H": 4, "W": 4, "O": 1, "KH": 2, "KW": 2, "padding_mode": padding_mode}
    assert ConvGeometry(**sizes, padding=widest).padded_size == (4 + 2 * widest, 4 + 2 * widest)
    if padding_mode in ("reflect", "circular"):
        with pytest.raises(GeometryError, match=f"at most {widest} cells"):
            ConvGeometry(**sizes, padding=widest + 1)


def test_describe_says_what_is_unusual_and_no_more():
    plain = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    assert plain.describe() == "x 1×1×5×5, 1 kernel 3×3"
    busy = ConvGeometry(
        **{"N": 2, "C": 4, "H": 6, "W": 7, "O": 6, "KH": 3, "KW": 2},
        **{"stride": (2, 1), "padding": ((1, 0), (2, 2)), "dilation": 2, "groups": 2},
        padding_mode="reflect",
    )
    assert busy.describe() == (
        "x 2×4×6×7, 6 kernels 3×2, stride (2, 1), padding ((1, 0), 2), reflect padding, "
        "dilation 2, 2 groups"
    )
