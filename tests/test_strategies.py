"""The tests of what the tests are fed with: a law tried on easy inputs proves little."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import (
    LAYOUTS,
    complex_integer_arrays,
    geometries,
    integer_arrays,
    random_geometries,
    seeds,
)

from convgrad.geometry import PADDING_MODES, ConvGeometry

DRAWS = 400


def traits(geometry: ConvGeometry) -> set[str]:
    """Which of the things that hide mistakes when absent this geometry has."""
    (top, bottom), (left, right) = geometry.padding
    sizes = {name: getattr(geometry, name) for name in ("N", "C", "O", "H", "W", "KH", "KW")}
    found = {
        "1 < groups < C": 1 < geometry.groups < geometry.C,
        "a leftover": any(geometry.leftover),
        "a leftover in one axis only": any(geometry.leftover) and not all(geometry.leftover),
        "a surplus to crop": any(geometry.surplus),
        "stride ≠ dilation": geometry.stride != geometry.dilation,
        "strides differ": geometry.stride[0] != geometry.stride[1],
        "dilations differ": geometry.dilation[0] != geometry.dilation[1],
        "paddings differ between axes": top != left,
        "paddings differ between ends": top != bottom or left != right,
        "several images": geometry.N > 1,
        "O/G ≠ C/G": geometry.OG != geometry.CG,
    }
    for (a, size_a), (b, size_b) in combinations(sizes.items(), 2):
        found[f"{a} ≠ {b}"] = size_a != size_b
    return {trait for trait, there in found.items() if there} | {geometry.padding_mode}


EASY = ConvGeometry(N=1, C=1, H=3, W=3, O=1, KH=1, KW=1)
WANTED = {
    *traits(ConvGeometry(N=2, C=4, H=7, W=8, O=6, KH=3, KW=1, stride=(2, 1), groups=2)),
    "a surplus to crop",
    "dilations differ",
    "paddings differ between axes",
    "paddings differ between ends",
} - set(PADDING_MODES)


def shares(draws: list[ConvGeometry]) -> dict[str, float]:
    counts = Counter(trait for geometry in draws for trait in traits(geometry))
    return {trait: count / len(draws) for trait, count in counts.items()}


def assert_not_easy(draws: list[ConvGeometry]) -> None:
    share = shares(draws)
    short = {trait: share.get(trait, 0) for trait in WANTED if share.get(trait, 0) < 0.25}
    assert not short, f"under a quarter of the draws have {short}"
    rare = {mode: share.get(mode, 0) for mode in PADDING_MODES if share.get(mode, 0) < 0.1}
    assert not rare, f"under a tenth of the draws pad with {rare}"


def test_the_plain_generator_draws_what_hides_mistakes():
    assert_not_easy(list(random_geometries(DRAWS, seed=0)))


def test_hypothesis_draws_what_hides_mistakes():
    draws = []

    @settings(max_examples=DRAWS, database=None, derandomize=True)
    @given(geometries())
    def collect(geometry: ConvGeometry) -> None:
        draws.append(geometry)

    collect()
    assert len(draws) >= DRAWS  # nothing was thrown away
    assert_not_easy(draws)


def test_easy_draws_would_be_noticed():
    with pytest.raises(AssertionError, match="1 < groups < C"):
        assert_not_easy([EASY] * 10)


def test_the_plain_generator_repeats_itself():
    assert list(random_geometries(20, seed=7)) == list(random_geometries(20, seed=7))
    assert list(random_geometries(20, seed=7)) != list(random_geometries(20, seed=8))


@given(geometries(), seeds())
def test_arrays_are_whole_numbers_that_fit(geometry, seed):
    for operands in (integer_arrays(geometry, seed), complex_integer_arrays(geometry, seed)):
        geometry.require(**operands._asdict())
        for array in operands:
            assert np.array_equal(array, np.round(array))


def test_the_upstream_gradient_is_neither_constant_nor_contiguous():
    for seed, geometry in enumerate(random_geometries(50, seed=1)):
        g = integer_arrays(geometry, seed).grad_output
        if g.size >= 12:
            assert len(np.unique(g)) > 1
        if geometry.N > 1 and geometry.O > 1:
            assert not g.flags.c_contiguous


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_changes_the_memory_and_not_the_numbers(name):
    array = np.arange(120.0).reshape(2, 3, 4, 5)
    laid_out = LAYOUTS[name](array)
    assert np.array_equal(laid_out, array)
    assert (laid_out.strides == array.strides) == (name in ("contiguous", "read-only"))
    assert laid_out.flags.writeable == (name != "read-only")
