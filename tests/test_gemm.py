"""Sizes and tiles of the three products, against a count of what is really summed and stored."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from strategies import random_geometries

from convgrad import ConvGeometry, example, loops
from convgrad.costs import operations
from convgrad.gemm import MAPS, Gemm, fitting, gemm, tiled

SOME = [g for g in random_geometries(60, seed=5) if g.N]


@pytest.mark.parametrize("geometry", SOME[:25], ids=lambda g: g.describe())
def test_rows_and_columns_are_what_is_stored(geometry):
    shapes = dict(
        zip(MAPS, (geometry.output_shape, geometry.x_shape, geometry.weight_shape), strict=True)
    )
    for which, shape in shapes.items():
        M, N, _, groups = gemm(geometry, which)
        assert M * N * groups == math.prod(shape), which


@pytest.mark.parametrize("geometry", SOME[:25], ids=lambda g: g.describe())
def test_depth_is_what_is_summed(geometry):
    count = sum(1 for _ in loops.products(geometry))
    for which in ("forward", "grad_weight"):
        M, N, K, groups = gemm(geometry, which)
        assert M * N * K * groups == count == operations(geometry) // 2, which
    # a cell of x asks every tap of every kernel, also those that do not read it
    M, N, K, groups = gemm(geometry, "grad_input")
    O, KH, KW = geometry.OG, geometry.KH, geometry.KW
    assert (groups * N, K) == (geometry.C, O * KH * KW)


def test_the_layer_of_resnet():
    layer = example("F").geometry
    assert gemm(layer, "grad_weight") == Gemm(64, 576, 100_352, 1)
    counts = [tiled(gemm(layer, which), 128, 132).tiles for which in MAPS]
    assert counts == [784, 784, 5]


def test_an_unknown_map_is_refused_in_words():
    with pytest.raises(ValueError, match="which='bias': known are forward, grad_input"):
        gemm(example("B").geometry, "bias")


@pytest.mark.parametrize("most", [16, 64, 128])
def test_a_side_is_the_power_of_two_that_holds_it(most):
    for size in range(1, 300):
        side = fitting(size, most)
        assert side.bit_count() == 1 and 16 <= side <= most
        assert side >= min(size, most)
        assert side == 16 or side // 2 < size


def test_tiles_hold_everything_and_multiprocessors_take_turns():
    rng = np.random.default_rng(2)
    for _ in range(200):
        product = Gemm(*map(int, rng.integers(1, 700, 3)), int(rng.integers(1, 4)))
        tile, splits = int(rng.choice([16, 64, 128])), int(rng.integers(1, 40))
        many = int(rng.integers(1, 140))
        cut = tiled(product, tile, many, splits)
        starts = itertools.product(
            range(product.groups), range(0, product.M, cut.rows), range(0, product.N, cut.cols)
        )
        assert cut.tiles == sum(1 for _ in starts)
        parts = cut.programs // cut.tiles
        assert parts == min(splits, product.K) and parts * cut.depth >= product.K
        assert (parts - 1) * (cut.depth - 1) < product.K  # the shares are about equally long
        turns = [0] * many
        for program in range(cut.programs):
            turns[program % many] += 1
        assert cut.waves == max(turns)


def test_a_split_of_more_than_there_is():
    short = gemm(ConvGeometry(C=1, H=4, W=4, O=1, KH=3, KW=3), "grad_weight")
    assert tiled(short, 16, 8, splits=99).programs == short.K == 4
