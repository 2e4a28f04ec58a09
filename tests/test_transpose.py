"""Transposed convolution: the three contractions of conv2d with their roles exchanged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from itertools import product
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
    integers,
    options,
    random_transposed,
    seeds,
    transposed_geometries,
)

from convgrad import (
    IMPLEMENTATIONS,
    GeometryError,
    Implementation,
    ShapeError,
    conv2d,
    conv2d_backward,
    conv_transpose2d,
    conv_transpose2d_backward,
    loops,
    windows,
)
from convgrad.transpose import TransposedGeometry, cut, uncut

every_implementation = pytest.mark.parametrize("name", IMPLEMENTATIONS)


def forward(x, weight, geometry, **arguments):
    return conv_transpose2d(x, weight, **options(geometry), **arguments)


def backward(grad_output, x, weight, geometry, **arguments):
    return conv_transpose2d_backward(grad_output, x, weight, **options(geometry), **arguments)


def definition(x: np.ndarray, weight: np.ndarray, geometry: TransposedGeometry) -> np.ndarray:
    """The equation at the head of the module, one product at a time."""
    (_, C, H, W), (_, OG, KH, KW) = x.shape, weight.shape
    (sh, sw), (dh, dw) = geometry.conv.stride, geometry.conv.dilation
    (top, _), (left, _) = geometry.padding
    CG = C // geometry.conv.groups
    y = np.zeros(geometry.output_shape, np.result_type(x, weight))
    for c, p, q, o, i, j in product(*map(range, (C, H, W, OG, KH, KW))):
        h, v = sh * p + dh * i - top, sw * q + dw * j - left
        if 0 <= h < geometry.OH and 0 <= v < geometry.OW:
            y[:, c // CG * OG + o, h, v] += x[:, c, p, q] * weight[c, o, i, j]
    return y


# ---- laws ------------------------------------------------------------------------------------

Rules = tuple[Callable, Callable]  # forward(x, weight, geometry), backward(g, x, weight, geometry)
RIGHT: Rules = (forward, backward)


def it_is_the_definition(rules: Rules, geometry: TransposedGeometry, seed: int) -> None:
    x, weight, _ = integer_arrays(geometry, seed)
    answer = definition(x, weight, geometry)
    assert_array_equal(rules[0](x, weight, geometry), answer, strict=True)


def the_gradients_are_adjoint(rules: Rules, geometry: TransposedGeometry, seed: int) -> None:
    x, weight, g = integer_arrays(geometry, seed)
    grad_input, grad_weight, grad_bias = rules[1](g, x, weight, geometry)
    assert grad_input.shape == x.shape and grad_weight.shape == weight.shape
    inner = np.vdot(definition(x, weight, geometry), g)
    assert np.vdot(x, grad_input) == inner
    assert np.vdot(weight, grad_weight) == inner
    bias = np.arange(1.0, 1 + geometry.conv.C)
    assert np.vdot(bias, grad_bias) == np.vdot(np.ones_like(g) * bias[:, None, None], g)


def a_whole_step(rules: Rules, geometry: TransposedGeometry, seed: int) -> None:
    """The loss changes by what the gradient says: it is linear in x and in the weight."""
    x, weight, g = integer_arrays(geometry, seed)
    step_x, step_weight, _ = integer_arrays(geometry, seed + 1)
    grad_input, grad_weight, _ = rules[1](g, x, weight, geometry)
    loss = np.vdot(g, definition(x, weight, geometry))
    loss_x = np.vdot(g, definition(x + step_x, weight, geometry))
    loss_weight = np.vdot(g, definition(x, weight + step_weight, geometry))
    assert loss_x - loss == np.vdot(step_x, grad_input)
    assert loss_weight - loss == np.vdot(step_weight, grad_weight)


LAWS = (it_is_the_definition, the_gradients_are_adjoint, a_whole_step)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(transposed_geometries(), seeds())
def test_the_law_holds(law, geometry, seed):
    law(RIGHT, geometry, seed)


@every_implementation
@given(transposed_geometries(), seeds())
def test_every_implementation_gives_the_same(name, geometry, seed):
    x, weight, g = integer_arrays(geometry, seed)
    answer = definition(x, weight, geometry)
    assert_array_equal(forward(x, weight, geometry, implementation=name), answer)
    answers = backward(g, x, weight, geometry, implementation="loops")
    results = backward(g, x, weight, geometry, implementation=name)
    for result, answer in zip(results, answers, strict=True):
        assert_array_equal(result, answer, strict=True)


@given(geometries(), seeds())
def test_it_is_what_the_gradient_of_conv2d_does(geometry, seed):
    """With output_padding = the leftover, the two undo each other's shapes; roles exchanged."""
    x, weight, g = integer_arrays(geometry, seed)
    zeros = replace(geometry, padding_mode="zeros")
    arguments = {name: getattr(zeros, name) for name in ("stride", "padding", "dilation", "groups")}
    there = arguments | {"output_padding": zeros.leftover}
    grad_input, grad_weight, _ = conv2d_backward(g, x, weight, **arguments)
    assert_array_equal(conv_transpose2d(g, weight, **there), grad_input)
    back, exchanged, _ = conv_transpose2d_backward(x, g, weight, **there)
    assert_array_equal(back, conv2d(x, weight, **arguments))
    assert_array_equal(exchanged, grad_weight)


@given(transposed_geometries(), seeds())
def test_cut_and_uncut_are_adjoint(geometry, seed):
    rng = np.random.default_rng(seed)
    laid = integers(rng, (*geometry.output_shape[:2], *geometry.laid_size))
    y = integers(rng, geometry.output_shape)
    assert np.vdot(cut(laid, geometry), y) == np.vdot(laid, uncut(y, geometry))
    assert cut(laid, geometry).shape == geometry.output_shape


@given(transposed_geometries(), seeds())
def test_complex_gradients_are_adjoints_too(geometry, seed):
    x, weight, g = complex_integer_arrays(geometry, seed)
    y = forward(x, weight, geometry)
    assert_array_equal(y, definition(x, weight, geometry))
    grad_input, grad_weight, _ = backward(g, x, weight, geometry)
    assert np.vdot(y, g) == np.vdot(x, grad_input) == np.vdot(weight, grad_weight)


@every_implementation
def test_infinity_lands_where_the_definition_puts_it(name):
    """What no kernel reaches is 0, not 0·inf."""
    for seed, geometry in enumerate(random_transposed(40, seed=9)):
        x, weight, _ = map(np.array, integer_arrays(geometry, seed))
        weight.flat[seed % weight.size] = np.inf
        with np.errstate(invalid="ignore"):
            answer = definition(x, weight, geometry)
        assert_array_equal(forward(x, weight, geometry, implementation=name), answer)


# ---- mistakes, each with the law that notices it ---------------------------------------------


def turns_the_kernel(x, weight, geometry):
    """Turns the kernel by 180°, though x lays it down as it is."""
    return forward(x, weight[..., ::-1, ::-1], geometry)


def adds_the_rows_in_front(x, weight, geometry):
    """Puts output_padding above and to the left of the map."""
    rows, cols = geometry.output_padding
    laid = windows.grad_input(x, weight, geometry.conv)
    laid = np.pad(laid, ((0, 0), (0, 0), (rows, 0), (cols, 0)))
    (top, _), (left, _) = geometry.padding
    return laid[:, :, top : top + geometry.OH, left : left + geometry.OW]


def pads_instead_of_cutting(x, weight, geometry):
    """Takes padding for more zeros around the result."""
    laid = windows.grad_input(x, weight, geometry.conv)
    return np.pad(laid, ((0, 0), (0, 0), *geometry.padding))


def deals_the_channels_like_cards(x, weight, geometry):
    """Deals the channels of x to the groups like cards, where a group is a block."""
    C, G = geometry.conv.O, geometry.conv.groups
    dealt = np.arange(C).reshape(C // G, G).T.ravel()
    return forward(x[:, dealt], weight, geometry)


def does_not_exchange(g, x, weight, geometry):
    """Leaves x as the image and g as what slides, where transposition exchanges them."""
    grad_input, grad_weight, grad_bias = backward(g, x, weight, geometry)
    return grad_input, grad_weight[..., ::-1, ::-1], grad_bias


def forgets_the_cut(g, x, weight, geometry):
    """Takes the gradient of y for the gradient of the whole map, so padding shifts it."""
    laid = np.zeros((*g.shape[:2], *geometry.laid_size))
    rows, cols = map(min, geometry.laid_size, g.shape[2:])
    laid[:, :, :rows, :cols] = g[:, :, :rows, :cols]
    return (
        windows.forward(laid, weight, geometry.conv),
        windows.grad_weight(x, laid, geometry.conv),
        g.sum(axis=(0, 2, 3)),
    )


def sums_the_bias_where_x_reaches(g, x, weight, geometry):
    """Sums g over the cells that a kernel reached, but the bias is in the others as well."""
    grad_input, grad_weight, _ = backward(g, x, weight, geometry)
    return grad_input, grad_weight, uncut(g, geometry).sum(axis=(0, 2, 3))


def _has_taps(geometry: TransposedGeometry) -> bool:
    return geometry.conv.KH * geometry.conv.KW > 1


def _starts_with_a_cut(geometry: TransposedGeometry) -> bool:
    (top, _), (left, _) = geometry.padding
    return top > 0 or left > 0


# the mistake, the law that notices it, and where it shows
MISTAKES = [
    (turns_the_kernel, it_is_the_definition, _has_taps),
    (adds_the_rows_in_front, it_is_the_definition, lambda g: any(g.output_padding)),
    (pads_instead_of_cutting, it_is_the_definition, _starts_with_a_cut),
    (
        deals_the_channels_like_cards,
        it_is_the_definition,
        lambda g: 1 < g.conv.groups < g.conv.O,
    ),
    (does_not_exchange, a_whole_step, _has_taps),
    (forgets_the_cut, the_gradients_are_adjoint, _starts_with_a_cut),
    (
        sums_the_bias_where_x_reaches,
        the_gradients_are_adjoint,
        lambda g: any(
            more > after for more, (_, after) in zip(g.output_padding, g.padding, strict=True)
        ),
    ),
]


def breaks(rules: Rules, law: Callable, geometry: TransposedGeometry, seed: int) -> bool:
    try:
        law(rules, geometry, seed)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(("mistake", "law", "shows"), MISTAKES, ids=lambda f: f.__name__)
def test_its_law_notices_the_mistake(mistake, law, shows):
    is_forward = "g" not in inspect.signature(mistake).parameters
    rules = (mistake, backward) if is_forward else (forward, mistake)
    draws = [g for g in random_transposed(200, seed=31) if g.conv.N and shows(g)][:25]
    assert len(draws) >= 20
    assert sum(breaks(rules, law, g, seed) for seed, g in enumerate(draws)) >= 0.7 * len(draws)
    assert not any(breaks(RIGHT, law, g, seed) for seed, g in enumerate(draws))


# ---- what goes in and comes out --------------------------------------------------------------

GEOMETRY = TransposedGeometry.of(
    (2, 4, 3, 5),
    (4, 3, 3, 2),
    stride=(2, 1),
    padding=((1, 0), (1, 2)),
    output_padding=(1, 2),
    groups=2,
    dilation=(1, 3),
)
OPERANDS = integer_arrays(GEOMETRY, seed=0)
BIAS = np.arange(-2.0, 4.0)


def solve(x, weight, bias, grad_output, **arguments):
    """y and the three gradients, in this order."""
    y = conv_transpose2d(x, weight, bias, **options(GEOMETRY), **arguments)
    return y, *backward(grad_output, x, weight, GEOMETRY, **arguments)


ANSWERS = solve(OPERANDS.x, OPERANDS.weight, BIAS, OPERANDS.grad_output, implementation="loops")


def test_the_sizes():
    assert GEOMETRY.laid_size == (7, 8)
    assert GEOMETRY.output_shape == (2, 6, 7, 7) == ANSWERS[0].shape
    assert (GEOMETRY.x_shape, GEOMETRY.weight_shape) == ((2, 4, 3, 5), (4, 3, 3, 2))
    assert GEOMETRY.bias_shape == (6,)
    assert GEOMETRY.describe() == (
        "x 2×4×3×5, 6 output channels, kernels 3×2, stride (2, 1), padding ((1, 0), (1, 2)), "
        "output_padding (1, 2), dilation (1, 3), 2 groups"
    )


def test_the_bias_is_added_to_every_cell_reached_or_not():
    x, weight, _ = OPERANDS
    difference = ANSWERS[0] - forward(x, weight, GEOMETRY)
    assert_array_equal(difference, np.broadcast_to(BIAS[:, None, None], GEOMETRY.output_shape))


def test_positional_arguments_stand_where_pytorch_has_them():
    names = ["x", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"]
    assert list(inspect.signature(conv_transpose2d).parameters)[:8] == names
    x, weight, _ = OPERANDS
    y = conv_transpose2d(x, weight, BIAS, (2, 1), ((1, 0), (1, 2)), (1, 2), 2, (1, 3))
    assert_array_equal(y, ANSWERS[0])


@pytest.mark.parametrize("mask", list(np.ndindex(2, 2, 2)))
def test_masked_gradients_are_none_and_not_computed(mask, monkeypatch):
    x, weight, g = OPERANDS
    calls = []

    def counted(name: str) -> Callable[..., np.ndarray]:
        return lambda *operands: calls.append(name) or getattr(loops, name)(*operands)

    names = ("forward", "grad_input", "grad_weight", "grad_bias")
    counting = Implementation("counting", "", *map(counted, names))
    monkeypatch.setitem(IMPLEMENTATIONS, "counting", counting)
    masked = backward(g, x, weight, GEOMETRY, output_mask=mask, implementation="counting")
    wanted = zip(("forward", "grad_weight"), mask[:2], strict=True)  # the rules of the first two
    assert calls == [rule for rule, asked in wanted if asked]
    for result, asked, answer in zip(masked, mask, ANSWERS[1:], strict=True):
        if asked:
            assert_array_equal(result, answer)
        else:
            assert result is None


@every_implementation
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_operand_is_written_to_and_results_own_their_memory(name, layout):
    operands = [LAYOUTS[layout](operand) for operand in OPERANDS]
    before = [operand.copy() for operand in operands]
    results = solve(operands[0], operands[1], BIAS, operands[2], implementation=name)
    for operand, copy in zip(operands, before, strict=True):
        assert_array_equal(operand, copy)
    for result, answer in zip(results, ANSWERS, strict=True):
        assert_array_equal(result, answer)
        assert result.flags.c_contiguous and result.flags.owndata and result.flags.writeable
        assert not any(np.shares_memory(result, operand) for operand in operands)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_float_stays_what_it_is(dtype):
    given_ = [a.astype(dtype) for a in (OPERANDS.x, OPERANDS.weight, BIAS, OPERANDS.grad_output)]
    for result, answer in zip(solve(*given_), ANSWERS, strict=True):
        assert_array_equal(result, answer.astype(dtype), strict=True)


def test_whole_numbers_become_float64():
    given_ = [a.astype(int) for a in (OPERANDS.x, OPERANDS.weight, BIAS, OPERANDS.grad_output)]
    for result, answer in zip(solve(*given_), ANSWERS, strict=True):
        assert_array_equal(result, answer, strict=True)


def test_the_gradient_of_a_real_operand_is_real():
    x, weight, g = OPERANDS
    results = backward(g * (1 + 2j), x, weight * (2 - 1j), GEOMETRY)
    assert [result.dtype.kind for result in results] == ["f", "c", "c"]


@every_implementation
def test_one_image_without_a_batch(name):
    x, weight, g = OPERANDS
    alone = solve(x[1], weight, BIAS, g[1], implementation=name)
    batch_of_one = solve(x[1:], weight, BIAS, g[1:])
    for result, answer, axes in zip(alone, batch_of_one, (3, 3, 4, 1), strict=True):
        assert result.ndim == axes and result.flags.owndata
        assert_array_equal(result, answer.reshape(result.shape))


@every_implementation
def test_an_empty_batch(name):
    x, weight, g = OPERANDS
    y, grad_input, grad_weight, grad_bias = solve(x[:0], weight, BIAS, g[:0], implementation=name)
    assert y.shape == (0, 6, 7, 7) and grad_input.shape == (0, 4, 3, 5)
    assert_array_equal(grad_weight, np.zeros(weight.shape), strict=True)
    assert_array_equal(grad_bias, np.zeros(6), strict=True)


def test_where_the_cut_takes_the_whole_map_the_added_rows_remain():
    one = np.full((1, 1, 1, 1), 7.0)
    y = conv_transpose2d(one, one, stride=5, padding=((2, 0), (1, 1)), output_padding=(4, 2))
    assert_array_equal(y, np.zeros((1, 1, 3, 1)), strict=True)
    gradients = conv_transpose2d_backward(
        y + 1, one, one, stride=5, padding=((2, 0), (1, 1)), output_padding=(4, 2)
    )
    assert [gradient.item() for gradient in gradients] == [0, 0, 3]


# Each line: what is changed, the error, and words of its message in order.
BAD: dict[str, tuple[dict[str, Any], type, str]] = {
    "x of two axes": (
        {"x": np.ones((3, 5))},
        ShapeError,
        r"x has 2 axes.*4, \(N, C, H, W\), or 3.*x\[None, None\]",
    ),
    "weight of two axes": (
        {"weight": np.ones((3, 2))},
        ShapeError,
        r"weight has 2 axes.*\(C, O/groups, KH, KW\).*weight\[None, None\]",
    ),
    "a weight as conv2d has it": (
        {"weight": np.ones((6, 2, 3, 2))},
        ShapeError,
        r"weight has 6 on its first axis.*x has C = 4 channels.*weight.swapaxes\(0, 1\)",
    ),
    "an image without rows": ({"x": np.ones((2, 4, 0, 5))}, ShapeError, "without a cell.*least 1"),
    "a kernel without taps": ({"weight": np.ones((4, 3, 0, 2))}, ShapeError, "without a cell"),
    "groups that do not divide C": (
        {"groups": 3},
        GeometryError,
        r"4 input channels do not divide into 3 groups: use groups out of \[1, 2, 4\]",
    ),
    "no groups": ({"groups": 0}, GeometryError, "groups is 0: needed is at least 1"),
    "groups of a fraction": ({"groups": 2.0}, GeometryError, "groups is 2.0.*whole number"),
    "stride zero": ({"stride": 0}, GeometryError, "stride is 0: needed is at least 1"),
    "dilation for three axes": ({"dilation": (1, 1, 1)}, GeometryError, "an int or a pair"),
    "negative padding": (
        {"padding": -1},
        GeometryError,
        r"padding is -1: needed is at least 0; for a larger result, pad it with np.pad",
    ),
    "padding by name": ({"padding": "same"}, GeometryError, "padding is 'same'.*an int or a pair"),
    "negative output_padding": (
        {"output_padding": -1},
        GeometryError,
        "output_padding is -1: needed is at least 0",
    ),
    "output_padding as large as stride and dilation": (
        {"output_padding": (2, 0)},
        GeometryError,
        "output_padding of the height is 2, with stride 2 and dilation 1: .* at most 1; .*np.pad",
    ),
    "padding that leaves nothing": (
        {"padding": ((4, 4), (0, 0))},
        GeometryError,
        r"padding \(4, 4\) of the height cuts off 8 of the 8 cells.*at most 7 in all",
    ),
    "a map beyond all memory": (
        {"stride": 10**9},
        GeometryError,
        "x lays down a map of 2000000004×4000000006: needed are at most .* smaller stride",
    ),
    "an unknown implementation": (
        {"implementation": "fastest"},
        ValueError,
        "implementation is 'fastest': use one of",
    ),
    "words as x": ({"x": "words"}, TypeError, "x holds <U5: needed are numbers"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_arguments_get_a_sentence(bad):
    changed, kind, words = BAD[bad]
    x, weight, g = OPERANDS
    arguments = {"x": x, "weight": weight} | options(GEOMETRY) | changed
    with pytest.raises(kind, match=words):
        conv_transpose2d(**arguments)
    with pytest.raises(kind, match=words):
        conv_transpose2d_backward(g, **arguments)


def test_arrays_that_do_not_fit_get_a_sentence():
    x, weight, g = OPERANDS
    with pytest.raises(ShapeError, match=r"bias has shape \(4,\): needed is \(6,\) = \(O,\)"):
        conv_transpose2d(x, weight, np.ones(4), **options(GEOMETRY))
    with pytest.raises(ShapeError, match=r"grad_output has shape .*needed is \(2, 6, 7, 7\)"):
        backward(g[..., 1:], x, weight, GEOMETRY)
    with pytest.raises(ShapeError, match=r"without a batch axis.*\(6, 7, 7\)"):
        backward(g, x[0], weight, GEOMETRY)
    with pytest.raises(ShapeError, match="three of True and False"):
        backward(g, x, weight, GEOMETRY, output_mask=(True, False))


def test_the_mends_work():
    x, weight, _ = OPERANDS
    as_conv2d_has_it = np.ones((6, 4, 3, 2))
    assert conv_transpose2d(x, as_conv2d_has_it.swapaxes(0, 1)).shape == (2, 6, 5, 6)
    assert conv_transpose2d(x, weight, groups=2, padding=((3, 1), (0, 0))).shape == (2, 6, 1, 6)


# ---- PyTorch ---------------------------------------------------------------------------------

GEOMETRIES = list(random_transposed(800, seed=2029))


def traits(geometry: TransposedGeometry) -> dict[str, bool]:
    conv, more, border = geometry.conv, geometry.output_padding, geometry.padding
    return {
        "1 < groups < C": 1 < conv.groups < conv.O,
        "output_padding": any(more),
        "output_padding in one axis only": any(more) and not all(more),
        "a cut": border != ((0, 0), (0, 0)),
        "cuts differ between ends": any(before != after for before, after in border),
        "the cut stops short of what was added": any(
            added > after for added, (_, after) in zip(more, border, strict=True)
        ),
        "stride ≠ dilation": conv.stride != conv.dilation,
        "strides differ": conv.stride[0] != conv.stride[1],
        "several images": conv.N > 1,
        "O/G ≠ C/G": conv.OG != conv.CG,
        "KH ≠ KW": conv.KH != conv.KW,
    }


def test_the_geometries_do_not_hide_mistakes():
    assert len(GEOMETRIES) >= 300
    found = [traits(geometry) for geometry in GEOMETRIES]
    shares = {trait: np.mean([each[trait] for each in found]) for trait in found[0]}
    assert min(shares.values()) >= 0.25, shares
    beyond = [
        any(more >= s for more, s in zip(g.output_padding, g.conv.stride, strict=True))
        for g in GEOMETRIES
    ]
    assert np.mean(beyond) >= 0.2  # allowed where the dilation is larger than the stride
    assert np.mean([geometry.conv.N == 0 for geometry in GEOMETRIES]) >= 0.05


@pytest.mark.oracle
@pytest.mark.parametrize("part", range(4))
def test_pytorch_agrees(part):
    pytest.importorskip("torch")
    import torch_oracle

    for seed in range(part, len(GEOMETRIES), 4):
        geometry = GEOMETRIES[seed]
        x, weight, g = integer_arrays(geometry, seed)
        answers = torch_oracle.transposed(x, weight, g, geometry)
        results = forward(x, weight, geometry), *backward(g, x, weight, geometry)
        for result, answer in zip(results, answers, strict=True):
            assert_array_equal(result, answer, repr(geometry), strict=True)


@pytest.mark.oracle
def test_pytorch_agrees_on_complex_numbers():
    pytest.importorskip("torch")
    import torch_oracle

    for seed, geometry in enumerate(random_transposed(100, seed=2030)):
        x, weight, g = complex_integer_arrays(geometry, seed)
        answers = torch_oracle.transposed(x, weight, g, geometry)
        results = forward(x, weight, geometry), *backward(g, x, weight, geometry)
        for result, answer in zip(results, answers, strict=True):
            assert_array_equal(result, answer, repr(geometry), strict=True)
