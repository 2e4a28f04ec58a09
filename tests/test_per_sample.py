"""Each image's own weight gradient from one convolution: the batch × groups trick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from strategies import (
    LAYOUTS,
    complex_integer_arrays,
    geometries,
    integer_arrays,
    options,
    random_geometries,
    seeds,
)
from test_strategies import assert_not_easy

from convgrad import (
    ConvGeometry,
    GeometryError,
    ShapeError,
    conv2d_backward,
    loops,
    per_sample_weight_gradients,
    windows,
)
from convgrad.correlate import swapped

Rule = Callable[[np.ndarray, np.ndarray, ConvGeometry], np.ndarray]  # rule(g, x, geometry)


def right(g: np.ndarray, x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    return per_sample_weight_gradients(g, x, geometry.weight_shape, **options(geometry))


# ---- laws ------------------------------------------------------------------------------------


def the_sum_is_grad_weight(rule: Rule, geometry: ConvGeometry, seed: int) -> None:
    x, _, g = integer_arrays(geometry, seed)
    whole = loops.grad_weight(g, x, geometry)
    assert_array_equal(rule(g, x, geometry).sum(axis=0), whole, strict=True)


def each_is_the_gradient_of_its_image(rule: Rule, geometry: ConvGeometry, seed: int) -> None:
    x, _, g = integer_arrays(geometry, seed)
    shares = rule(g, x, geometry)
    assert shares.shape == (geometry.N, *geometry.weight_shape)
    one = replace(geometry, N=1)
    for n, share in enumerate(shares):
        assert_array_equal(share, loops.grad_weight(g[n : n + 1], x[n : n + 1], one))


LAWS = (the_sum_is_grad_weight, each_is_the_gradient_of_its_image)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(geometries(), seeds())
def test_the_law_holds(law, geometry, seed):
    law(right, geometry, seed)


@given(geometries(), seeds())
def test_complex_shares_add_up_to_the_complex_gradient(geometry, seed):
    x, weight, g = complex_integer_arrays(geometry, seed)
    _, grad_weight, _ = conv2d_backward(g, x, weight, **options(geometry))
    assert_array_equal(right(g, x, geometry).sum(axis=0), grad_weight)


# ---- mistakes, each with the law that notices it ---------------------------------------------


def _trick(g: np.ndarray, x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The one convolution before anything is put in order: c (n o) i j, with the surplus."""
    N, G, O, CG = geometry.N, geometry.groups, geometry.O, geometry.CG
    search = replace(swapped(geometry), O=N * O, groups=N * G)
    images = x.reshape(N * G, CG, geometry.H, geometry.W).swapaxes(0, 1)  # c (n k) h v
    return windows.forward(images, g.reshape(N * O, 1, geometry.OH, geometry.OW), search)


def forgets_the_crop(g, x, geometry):
    """Keeps the surplus taps that the convolution finds where the stride left something over."""
    taps = _trick(g, x, geometry)
    shares = taps.reshape(geometry.CG, geometry.N, geometry.O, *taps.shape[2:])
    return shares.transpose(1, 2, 0, 3, 4)


def forgets_the_transpose(g, x, geometry):
    """Reshapes c (n o) to n o c at once, though the channels come first."""
    taps = _trick(g, x, geometry)[:, :, : geometry.KH, : geometry.KW]
    return taps.reshape(geometry.N, *geometry.weight_shape)


def images_dealt_like_cards(g, x, geometry):
    """Takes (n o) for (o n), so that the shares of the images mix."""
    taps = _trick(g, x, geometry)[:, :, : geometry.KH, : geometry.KW]
    shares = taps.reshape(geometry.CG, geometry.O, geometry.N, geometry.KH, geometry.KW)
    return shares.transpose(2, 1, 0, 3, 4)


def the_mean_for_everyone(g, x, geometry):
    """Gives every image the mean, which adds up to the right sum."""
    whole = loops.grad_weight(g, x, geometry)
    return np.broadcast_to(whole / geometry.N, (geometry.N, *whole.shape))


def each_divided_by_the_batch(g, x, geometry):
    """Divides by N, as if the loss were a mean; the loss already decided that."""
    return right(g, x, geometry) / geometry.N


# the mistake, the law that notices it, and where it shows
MISTAKES = [
    (forgets_the_crop, each_is_the_gradient_of_its_image, lambda g: any(g.surplus)),
    (forgets_the_transpose, the_sum_is_grad_weight, lambda g: g.CG > 1 and g.N * g.O > 1),
    (images_dealt_like_cards, each_is_the_gradient_of_its_image, lambda g: g.N > 1 and g.O > 1),
    (the_mean_for_everyone, each_is_the_gradient_of_its_image, lambda g: g.N > 1),
    (each_divided_by_the_batch, the_sum_is_grad_weight, lambda g: g.N > 1),
]


def breaks(rule: Rule, law: Callable, geometry: ConvGeometry, seed: int) -> bool:
    try:
        law(rule, geometry, seed)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(("mistake", "law", "shows"), MISTAKES, ids=lambda f: f.__name__)
def test_its_law_notices_the_mistake(mistake, law, shows):
    draws = [g for g in random_geometries(200, seed=41) if g.N and shows(g)][:25]
    assert len(draws) >= 20
    assert sum(breaks(mistake, law, g, seed) for seed, g in enumerate(draws)) >= 0.7 * len(draws)
    assert not any(breaks(right, law, g, seed) for seed, g in enumerate(draws))


def test_the_mean_for_everyone_adds_up():
    """So the sum alone proves nothing about the shares."""
    geometry = ConvGeometry(N=2, C=1, H=4, W=5, O=2, KH=2, KW=3)
    the_sum_is_grad_weight(the_mean_for_everyone, geometry, seed=0)


# ---- what goes in and comes out --------------------------------------------------------------

GEOMETRY = ConvGeometry(
    **{"N": 3, "C": 4, "H": 6, "W": 7, "O": 6, "KH": 3, "KW": 2, "groups": 2, "stride": (2, 1)},
    padding=((1, 0), (1, 2)),
    dilation=(1, 3),
    padding_mode="circular",
)
X, _, G = integer_arrays(GEOMETRY, seed=0)
SHARES = right(G, X, GEOMETRY)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_operand_is_written_to_and_the_result_owns_its_memory(layout):
    operands = [LAYOUTS[layout](operand) for operand in (G, X)]
    before = [operand.copy() for operand in operands]
    shares = right(*operands, GEOMETRY)
    for operand, copy in zip(operands, before, strict=True):
        assert_array_equal(operand, copy)
        assert not np.shares_memory(shares, operand)
    assert_array_equal(shares, SHARES)
    assert shares.flags.c_contiguous and shares.flags.owndata and shares.flags.writeable


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_float_stays_what_it_is(dtype):
    shares = right(G.astype(dtype), X.astype(dtype), GEOMETRY)
    assert_array_equal(shares, SHARES.astype(dtype), strict=True)


def test_whole_numbers_become_float64():
    assert_array_equal(right(G.astype(int), X.astype(int), GEOMETRY), SHARES, strict=True)


def test_an_empty_batch_has_no_shares():
    shares = right(G[:0], X[:0], GEOMETRY)
    assert_array_equal(shares, np.zeros((0, *GEOMETRY.weight_shape)), strict=True)


# Each line: what is changed, the error, and words of its message in order.
BAD: dict[str, tuple[dict[str, Any], type, str]] = {
    "one image": (
        {"x": X[0], "grad_output": G[0]},
        ShapeError,
        r"x has 3 axes.*needs a batch, \(N, C, H, W\).*\[None\].*x\[:, None\]",
    ),
    "x of two axes": ({"x": X[0, 0]}, ShapeError, "x has 2 axes.*needed are 4"),
    "the weight itself": (
        {"weight_shape": np.ones(GEOMETRY.weight_shape)},
        ShapeError,
        r"weight_shape is of type ndarray: needed are four sizes.*pass weight.shape",
    ),
    "one number": ({"weight_shape": 3}, ShapeError, "weight_shape is of type int"),
    "sizes that are lists": (
        {"weight_shape": [[6], [2, 2], 3, 2]},
        GeometryError,
        r"output channels O is \[6\]: needed is a whole number",
    ),
    "three sizes": ({"weight_shape": (6, 3, 2)}, ShapeError, r"weight has 3 axes, shape \(6, 3, 2"),
    "other channels": ({"weight_shape": (6, 4, 3, 2)}, ShapeError, "weight has 4 input channels"),
    "sizes of fractions": (
        {"weight_shape": (6, 2, 3.0, 2)},
        GeometryError,
        "kernel height KH is 3.0: needed is a whole number",
    ),
    "g of another shape": (
        {"grad_output": G[..., 1:]},
        ShapeError,
        r"grad_output has shape \(3, 6, 3, 6\): needed is \(3, 6, 3, 7\) = \(N, O, OH, OW\)",
    ),
    "stride zero": ({"stride": 0}, GeometryError, "stride is 0"),
    "words": ({"x": "words"}, TypeError, "x holds <U5: needed are numbers"),
    "masked": (
        {"grad_output": np.ma.masked_equal(G, 1)},
        TypeError,
        "grad_output is a masked array",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_arguments_get_a_sentence(bad):
    changed, kind, words = BAD[bad]
    given_ = {"grad_output": G, "x": X, "weight_shape": GEOMETRY.weight_shape}
    with pytest.raises(kind, match=words):
        per_sample_weight_gradients(**given_ | options(GEOMETRY) | changed)


# ---- PyTorch ---------------------------------------------------------------------------------

GEOMETRIES = [geometry for geometry in random_geometries(500, seed=2031) if geometry.N]


def test_the_geometries_do_not_hide_mistakes():
    assert len(GEOMETRIES) >= 300
    assert_not_easy(GEOMETRIES)


@pytest.mark.oracle
@pytest.mark.parametrize("part", range(2))
def test_vmap_over_grad_agrees(part):
    """Batches that are not empty: there vmap asks for zero groups, and PyTorch refuses."""
    pytest.importorskip("torch")
    import torch_oracle

    for seed in range(part, len(GEOMETRIES), 2):
        geometry = GEOMETRIES[seed]
        x, _, g = integer_arrays(geometry, seed)
        answer = torch_oracle.per_sample(x, g, geometry)
        assert_array_equal(right(g, x, geometry), answer, repr(geometry), strict=True)
