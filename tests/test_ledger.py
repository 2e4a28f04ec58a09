"""The ledger: its products add up to the gradients, exactly, in every order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import complex_integer_arrays, geometries, integer_arrays, seeds

from convgrad import ConvGeometry, conv2d_backward, example, ledger, loops

# The orders as a reader is promised them, outermost loop first.
PROMISED = {
    "tap": ("o", "c", "i", "j", "n", "p", "q"),
    "position": ("n", "p", "q", "o", "c", "i", "j"),
    "kernel": ("o", "n", "p", "q", "c", "i", "j"),
}
PROMISED_BIAS = {
    "tap": ("o", "n", "p", "q"),
    "position": ("n", "p", "q", "o"),
    "kernel": ("o", "n", "p", "q"),
}

targets = st.sampled_from(("weight", "input", "bias"))
orders = st.sampled_from(tuple(PROMISED))

# padding on three sides, a leftover, groups: 2·3·2·2·3·3·2 products per group
MIXED = ConvGeometry(
    N=2, C=4, H=4, W=5, O=6, KH=3, KW=2, stride=(2, 3), padding=((1, 1), (2, 0)), groups=2
)


def definition(target: str, geometry: ConvGeometry, x, weight, grad_output) -> np.ndarray:
    if target == "weight":
        return loops.grad_weight(grad_output, x, geometry)
    if target == "input":
        return loops.grad_input(grad_output, weight, geometry)
    return loops.grad_bias(grad_output, geometry)


@settings(max_examples=60)
@given(geometries(), seeds(), targets, orders, st.booleans())
def test_the_products_add_up_to_the_gradient(geometry, seed, target, order, include_padding):
    x, weight, g = integer_arrays(geometry, seed)
    total = ledger.accumulate(
        geometry,
        target,
        x=x,
        weight=weight,
        grad_output=g,
        order=order,
        include_padding=include_padding,
    )
    assert_array_equal(total, definition(target, geometry, x, weight, g), strict=True)


def test_one_product_less_does_not_add_up():
    """The law above notices a single missing contribution."""
    x, _, g = integer_arrays(MIXED, seed=1)
    total = np.zeros(MIXED.weight_shape)
    every = [
        (c.target, ledger.product(c, "weight", x=x, grad_output=g))
        for c in ledger.contributions(MIXED, "weight")
    ]
    missing = next(k for k, (_, product) in enumerate(every) if product)
    for target, product in every[:missing] + every[missing + 1 :]:
        total[target] += product
    assert (total != loops.grad_weight(g, x, MIXED)).sum() == 1


@pytest.mark.parametrize("order", PROMISED)
@pytest.mark.parametrize("target", ["weight", "input", "bias"])
def test_the_order_of_the_loops(target, order):
    letters = (PROMISED_BIAS if target == "bias" else PROMISED)[order]
    indices = [
        tuple(getattr(c, letter) for letter in letters)
        for c in ledger.contributions(MIXED, target, order, include_padding=True)
    ]
    assert indices == sorted(indices)  # nested loops count upwards, the last letter fastest
    ends = {"n": MIXED.N, "o": MIXED.O, "c": MIXED.CG, "p": MIXED.OH, "q": MIXED.OW}
    ends |= {"i": MIXED.KH, "j": MIXED.KW}
    assert len(set(indices)) == len(indices) == np.prod([ends[letter] for letter in letters])


@pytest.mark.parametrize("order", PROMISED)
def test_both_products_of_a_step_come_together(order):
    """A player shows the two gradients side by side, so their lists run in step."""
    weights = ledger.contributions(MIXED, "weight", order, include_padding=True)
    inputs = ledger.contributions(MIXED, "input", order, include_padding=True)
    for into_weight, into_input in zip(weights, inputs, strict=True):
        assert into_weight[:10] == into_input[:10]
        assert into_weight.target == into_weight[1:3] + into_weight[5:7]  # o c i j
        if into_weight.cell is None:
            assert into_input.target is None
        else:
            channel = MIXED.channel(into_weight.o, into_weight.c)
            assert into_input.target == (into_weight.n, channel, *into_weight.cell)
            assert into_input.channel == channel


@given(geometries())
@settings(max_examples=40)
def test_places_are_those_of_the_index_map(geometry):
    for c in itertools.islice(ledger.contributions(geometry, include_padding=True), 200):
        assert (c.h, c.v) == geometry.source(c.p, c.q, c.i, c.j)
        assert c.cell == geometry.cell(c.h, c.v)


def test_padding_is_left_out_unless_asked_for():
    everything = list(ledger.contributions(MIXED, "input", include_padding=True))
    kept = list(ledger.contributions(MIXED, "input"))
    assert kept == [c for c in everything if c.cell is not None]
    assert 0 < len(kept) < len(everything)
    x, _, g = integer_arrays(MIXED, seed=2)
    on_padding = [
        ledger.product(c, "weight", x=x, grad_output=g)
        for c in ledger.contributions(MIXED, "weight", include_padding=True)
        if c.cell is None
    ]
    assert len(on_padding) == len(everything) - len(kept)
    assert not np.any(on_padding)


def test_a_lost_product_is_still_a_number():
    _, weight, g = integer_arrays(MIXED, seed=3)
    lost = [
        ledger.product(c, "input", weight=weight, grad_output=g)
        for c in ledger.contributions(MIXED, "input", include_padding=True)
        if c.target is None
    ]
    assert np.any(lost)


def test_modes_that_copy_lose_nothing():
    geometry = ConvGeometry(C=1, H=3, W=4, O=1, KH=3, KW=3, padding=1, padding_mode="circular")
    every = list(ledger.contributions(geometry, "input", include_padding=True))
    assert all(c.target is not None for c in every)
    assert every == list(ledger.contributions(geometry, "input"))
    assert any((c.h, c.v) != c.cell for c in every)


def test_the_list_is_made_while_it_is_read():
    """Example F has 3.7 thousand million contributions; three of them are there at once."""
    contributions = ledger.contributions(example("F").geometry, "weight", "position")
    assert isinstance(contributions, Iterator)
    assert [c.j for c in itertools.islice(contributions, 3)] == [
        1,
        2,
        1,
    ]  # the first lies on padding


@given(geometries(), seeds())
@settings(max_examples=40)
def test_the_kernels_shares_add_up_to_grad_input(geometry, seed):
    _, weight, g = integer_arrays(geometry, seed)
    shares = [ledger.kernel_share(geometry, g, weight, o) for o in range(geometry.O)]
    assert_array_equal(sum(shares), loops.grad_input(g, weight, geometry))


@pytest.mark.parametrize("o", range(MIXED.O))
def test_a_share_is_what_one_kernel_contributes(o):
    _, weight, g = integer_arrays(MIXED, seed=4)
    alone = np.zeros(MIXED.x_shape)
    for c in ledger.contributions(MIXED, "input", "kernel"):
        if c.o == o:
            alone[c.target] += ledger.product(c, "input", weight=weight, grad_output=g)
    share = ledger.kernel_share(MIXED, g, weight, o)
    assert_array_equal(share, alone)
    group = slice(MIXED.channel(o, 0), MIXED.channel(o, 0) + MIXED.CG)
    assert share[:, group].any()
    share[:, group] = 0
    assert not share.any()  # other groups get nothing


def test_complex_operands_are_conjugated():
    x, weight, g = complex_integer_arrays(MIXED, seed=5)
    arguments = {"stride": MIXED.stride, "padding": MIXED.padding, "groups": MIXED.groups}
    expected = conv2d_backward(g, x, weight, **arguments)
    for target, gradient in zip(("input", "weight", "bias"), expected, strict=True):
        total = ledger.accumulate(MIXED, target, x=x, weight=weight, grad_output=g)
        assert_array_equal(total, gradient, strict=True)
    shares = sum(ledger.kernel_share(MIXED, g, weight, o) for o in range(MIXED.O))
    assert_array_equal(shares, expected[0], strict=True)


def test_infinity_on_padding():
    """Padding is the number 0, and 0·inf is nan: asked to multiply it, the ledger does."""
    geometry = ConvGeometry(C=1, H=2, W=2, O=1, KH=2, KW=2, padding=1)
    x, g = np.ones(geometry.x_shape), np.ones(geometry.output_shape)
    g[0, 0, 0, 0] = np.inf
    kept = ledger.accumulate(geometry, "weight", x=x, grad_output=g)
    assert not np.isnan(kept).any()
    with np.errstate(invalid="ignore"):
        whole = ledger.accumulate(geometry, "weight", x=x, grad_output=g, include_padding=True)
        assert_array_equal(whole, loops.grad_weight(g, x, geometry))
    assert np.isnan(whole).any()


@pytest.mark.parametrize(
    ("given_dtype", "result"),
    [(np.float16, np.float16), (np.float32, np.float32), (np.int8, np.float64), (bool, np.float64)],
)
def test_dtypes(given_dtype, result):
    x, weight, g = (np.ones(a.shape, given_dtype) for a in integer_arrays(MIXED, seed=6))
    total = ledger.accumulate(MIXED, "weight", x=x, grad_output=g)
    share = ledger.kernel_share(MIXED, g, weight, 0)
    assert total.dtype == share.dtype == result
    assert total.max() > 1  # bools added as numbers


def test_float16_adds_up_in_float32():
    geometry = ConvGeometry(N=2, C=1, H=1, W=1, O=1, KH=1, KW=1)
    x = np.full(geometry.x_shape, 200, np.float16)
    g = np.array([400, -400], np.float16).reshape(geometry.output_shape)
    assert ledger.accumulate(geometry, "weight", x=x, grad_output=g) == 0


DTYPES = ("float16", "float32", "int8", "complex64")
SMALL = ConvGeometry(N=2, C=1, H=3, W=3, O=2, KH=2, KW=2, padding=((1, 0), (0, 0)))


@pytest.mark.parametrize("dtypes", list(itertools.product(DTYPES, repeat=3)), ids=" ".join)
def test_types_are_those_of_the_front_door(dtypes):
    """Every mixture of types gives the same numbers in the same type as conv2d_backward."""
    x, weight, g = (
        (100 * (a + 1j if "complex" in dtype else a) / 4).astype(dtype)
        for a, dtype in zip(integer_arrays(SMALL, seed=7), dtypes, strict=True)
    )
    gradients = conv2d_backward(g, x, weight, padding=SMALL.padding)
    for target, expected in zip(("input", "weight", "bias"), gradients, strict=True):
        total = ledger.accumulate(SMALL, target, x=x, weight=weight, grad_output=g)
        assert_array_equal(total, expected, strict=True)


def test_products_do_not_wrap_around():
    c = next(ledger.contributions(ConvGeometry(C=1, H=1, W=1, O=1, KH=1, KW=1)))
    hundred = np.full((1, 1, 1, 1), 100, np.int8)
    for factor in (hundred, hundred.tolist()):
        assert ledger.product(c, "weight", x=factor, grad_output=factor) == 10_000
        assert ledger.product(c, "input", weight=factor, grad_output=factor) == 10_000
    half = np.full((1, 1, 1, 1), 300, np.float16)
    assert ledger.product(c, "weight", x=half, grad_output=half) == 90_000


def test_without_the_operand_itself_the_sum_is_whole():
    """Whether the weight is real is not known where only x and a complex g are given."""
    x, weight, g = integer_arrays(SMALL, seed=8)
    alone = ledger.accumulate(SMALL, "weight", x=x, grad_output=g * (1 + 2j))
    together = ledger.accumulate(SMALL, "weight", x=x, weight=weight, grad_output=g * (1 + 2j))
    assert_array_equal(alone, together * (1 + 2j), strict=True)
    assert together.dtype == np.float64


def test_infinities_travel_without_warnings():
    x, weight, g = integer_arrays(SMALL, seed=9)
    x[0, 0, 0, 0] = weight[0, 0, 0, 0] = np.inf  # warnings are errors in these tests
    huge = (1e200 * g).astype(np.float64)
    operands = {"x": 1e200 * x, "weight": weight, "grad_output": huge}
    for target in ("weight", "input"):
        total = ledger.accumulate(SMALL, target, include_padding=True, **operands)
        assert not np.isfinite(total).all()
        for c in ledger.contributions(SMALL, target, include_padding=True):
            ledger.product(c, target, **operands)
    assert not np.isfinite(ledger.kernel_share(SMALL, huge, weight, 0)).all()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: ledger.contributions(MIXED, "x"), ValueError, "'weight', 'input', 'bias'"),
        (lambda: ledger.contributions(MIXED, order="row"), ValueError, "'tap', 'position'"),
        (lambda: ledger.accumulate(MIXED, "grad_weight"), ValueError, "target is 'grad_weight'"),
        (lambda: ledger.accumulate(MIXED, "bias"), ValueError, "pass grad_output="),
        (
            lambda: ledger.accumulate(MIXED, "bias", grad_output=np.ones((1, 6, 2, 2))),
            ValueError,
            "grad_output has shape",
        ),
        (
            lambda: ledger.kernel_share(
                MIXED, np.ones(MIXED.output_shape), np.ones(MIXED.weight_shape), 6
            ),
            IndexError,
            "numbered 0 to 5",
        ),
        (lambda: ledger.contributions(MIXED, np.array(["x", "y"])), ValueError, "target is array"),
        (
            lambda: ledger.accumulate(MIXED, "bias", grad_output=np.ma.ones(MIXED.output_shape)),
            TypeError,
            "grad_output is a masked array",
        ),
        (
            lambda: ledger.accumulate(MIXED, "bias", grad_output=[[1, 2], [3]]),
            ValueError,
            "rows differ in length",
        ),
        (
            lambda: ledger.accumulate(MIXED, "bias", grad_output=np.full((2, 6, 2, 2), "1")),
            TypeError,
            "grad_output holds <U1",
        ),
        *(
            (
                lambda o=o: ledger.kernel_share(
                    MIXED, np.ones(MIXED.output_shape), np.ones(MIXED.weight_shape), o
                ),
                TypeError,
                "needed is the number of a kernel, 0 to 5",
            )
            for o in (0.0, "0", False)
        ),
    ],
)
def test_errors_teach(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
