"""The front door: types, layouts, one image without a batch, and what comes back."""

from __future__ import annotations

import inspect
import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import LAYOUTS, integer_arrays, random_geometries

import convgrad
from convgrad import IMPLEMENTATIONS, ConvGeometry, Implementation, api, conv2d, conv2d_backward
from convgrad.geometry import PADDING_MODES

MEASURED = Path(__file__).parents[1] / "benchmarks" / "rungs.json"

every_implementation = pytest.mark.parametrize("name", IMPLEMENTATIONS)

GEOMETRY = ConvGeometry(
    **{"N": 2, "C": 4, "H": 6, "W": 7, "O": 6, "KH": 3, "KW": 2, "groups": 2, "stride": (2, 1)},
    padding=((1, 0), (1, 2)),
    dilation=(1, 3),
)
ARGUMENTS = {
    name: getattr(GEOMETRY, name)
    for name in ("stride", "padding", "dilation", "groups", "padding_mode")
}
OPERANDS = integer_arrays(GEOMETRY, seed=0)
BIAS = np.arange(-2.0, 4.0)


def solve(x, weight, bias, grad_output, **arguments):
    """y and the three gradients, in this order."""
    y = conv2d(x, weight, bias, **ARGUMENTS, **arguments)
    return y, *conv2d_backward(grad_output, x, weight, **ARGUMENTS, **arguments)


def the_answers():
    return solve(OPERANDS.x, OPERANDS.weight, BIAS, OPERANDS.grad_output, implementation="loops")


# ---- types -----------------------------------------------------------------------------------

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("bool", "int8", "uint8", "int64", "uint64")
COMPLEXES = ("complex64", "complex128")


@every_implementation
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_float_stays_what_it_is(name, dtype):
    given = (OPERANDS.x, OPERANDS.weight, BIAS, OPERANDS.grad_output)
    for result, answer in zip(
        solve(*(a.astype(dtype) for a in given), implementation=name), the_answers(), strict=True
    ):
        assert_array_equal(result, answer.astype(dtype), strict=True)


@every_implementation
@pytest.mark.parametrize("dtype", INTEGERS)
def test_whole_numbers_become_float64_and_lose_nothing(name, dtype):
    x = np.arange(OPERANDS.x.size).reshape(OPERANDS.x.shape) % 2
    halves = OPERANDS.weight / 2
    as_given = solve(x.astype(dtype), halves, BIAS, OPERANDS.grad_output, implementation=name)
    as_floats = solve(x.astype(float), halves, BIAS, OPERANDS.grad_output, implementation=name)
    for result, answer in zip(as_given, as_floats, strict=True):
        assert_array_equal(result, answer, strict=True)
        assert result.dtype == np.float64


def test_whole_numbers_alone_give_float64_too():
    y = conv2d([[[[1, 2], [3, 4]]]], [[[[1]]]], [5])
    assert_array_equal(y, np.array([[[[6.0, 7.0], [8.0, 9.0]]]]), strict=True)


@pytest.mark.parametrize(
    ("of_x", "of_weight", "of_g"),
    list(product(("float16", "float32", "float64", "int16", "complex64"), repeat=3)),
)
def test_mixed_types_follow_numpy(of_x, of_weight, of_g):
    x, weight, g = (
        operand.astype(dtype)
        for operand, dtype in zip(OPERANDS, (of_x, of_weight, of_g), strict=True)
    )
    promoted = [np.dtype("float64" if d == "int16" else d) for d in (of_x, of_weight, of_g)]
    y, grad_input, grad_weight, grad_bias = solve(x, weight, None, g)
    assert y.dtype == np.result_type(*promoted[:2])
    common = np.result_type(*promoted)
    real = np.empty(0, common).real.dtype
    assert grad_input.dtype == (common if of_x == "complex64" else real)
    assert grad_weight.dtype == (common if of_weight == "complex64" else real)
    assert grad_bias.dtype == common
    answers = solve(*OPERANDS[:2], None, OPERANDS.grad_output, implementation="loops")
    for result, answer in zip((y, grad_input, grad_weight, grad_bias), answers, strict=True):
        assert_array_equal(result, answer)


def test_the_gradient_of_a_real_operand_is_the_real_part():
    x, weight, g = OPERANDS
    complex_weight, complex_g = weight * (1 + 2j), g * (2 - 1j)
    grad_input, grad_weight, _ = conv2d_backward(complex_g, x, complex_weight, **ARGUMENTS)
    both, _, _ = conv2d_backward(complex_g, x + 0j, complex_weight, **ARGUMENTS)
    assert grad_input.dtype == np.float64
    assert_array_equal(grad_input, both.real)
    assert both.imag.any()
    # grad_weight = Σ g · conj(x), and this x is real
    assert_array_equal(grad_weight, the_answers()[2] * (2 - 1j))


@every_implementation
def test_half_precision_sums_in_single_precision(name):
    """4096 ones: a running sum in float16 would stop at 2048."""
    ones = np.ones((1, 1, 64, 64), np.float16)
    kernel = np.ones((1, 1, 1, 1), np.float16)
    arguments = {"implementation": name}
    _, grad_weight, grad_bias = conv2d_backward(ones, ones, kernel, **arguments)
    assert grad_weight.dtype == grad_bias.dtype == np.float16
    assert grad_weight.item() == grad_bias.item() == 4096
    assert conv2d(ones, np.ones((1, 1, 64, 64), np.float16), **arguments).item() == 4096


@every_implementation
def test_half_precision_rounds_once_and_overflows_to_infinity(name):
    x = np.full((1, 2, 1, 1), 300, np.float16)
    weight = np.full((1, 2, 1, 1), 300, np.float16)
    assert np.isposinf(conv2d(x, weight, implementation=name)).all()
    # 300·300 does not fit into float16 (65504), the sum of both products does
    weight[0, 1] = -300
    assert conv2d(x, weight, implementation=name).item() == 0


def test_other_byte_orders_are_numbers_as_well():
    swapped = [operand.astype(operand.dtype.newbyteorder()) for operand in OPERANDS]
    y, *gradients = solve(swapped[0], swapped[1], BIAS, swapped[2])
    for result, answer in zip((y, *gradients), the_answers(), strict=True):
        assert_array_equal(result, answer)
        assert result.dtype.isnative


# ---- layouts, and what comes back ------------------------------------------------------------


@every_implementation
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_operand_is_written_to_and_results_own_their_memory(name, layout):
    given = [LAYOUTS[layout](operand) for operand in OPERANDS]
    before = [operand.copy() for operand in given]
    bias = LAYOUTS["read-only"](BIAS)
    results = solve(given[0], given[1], bias, given[2], implementation=name)
    for operand, copy in zip(given, before, strict=True):
        assert_array_equal(operand, copy)
    for result, answer in zip(results, the_answers(), strict=True):
        assert_array_equal(result, answer)
        assert result.flags.c_contiguous and result.flags.owndata and result.flags.writeable
        assert not any(np.shares_memory(result, operand) for operand in (*given, bias))


@every_implementation
def test_results_never_share_memory_with_operands_even_where_they_are_equal(name):
    """A 1×1 kernel of one: y is x, number for number, but not the same array."""
    x, one = np.arange(6.0).reshape(1, 1, 2, 3), np.ones((1, 1, 1, 1))
    y = conv2d(x, one, implementation=name)
    grad_input, _, _ = conv2d_backward(x, x, one, implementation=name)
    assert_array_equal(y, x)
    assert_array_equal(grad_input, x)
    assert not np.shares_memory(y, x) and not np.shares_memory(grad_input, x)


@every_implementation
def test_one_number_expanded_to_a_gradient(name):
    x, weight, _ = OPERANDS
    expanded = np.broadcast_to(np.float64(2), GEOMETRY.output_shape)
    results = solve(x, weight, BIAS, expanded, implementation=name)
    stored = solve(x, weight, BIAS, expanded.copy(), implementation="loops")
    for result, answer in zip(results, stored, strict=True):
        assert_array_equal(result, answer)


@every_implementation
def test_one_image_without_a_batch(name):
    x, weight, g = OPERANDS
    alone = solve(x[1], weight, BIAS, g[1], implementation=name)
    batch_of_one = solve(x[1:], weight, BIAS, g[1:], implementation=name)
    for result, answer, axes in zip(alone, batch_of_one, (3, 3, 4, 1), strict=True):
        assert result.ndim == axes
        assert result.flags.owndata and result.flags.c_contiguous
        assert_array_equal(result, answer.reshape(result.shape))


@every_implementation
def test_an_empty_batch(name):
    x, weight, g = OPERANDS
    y, grad_input, grad_weight, grad_bias = solve(x[:0], weight, BIAS, g[:0], implementation=name)
    assert y.shape == (0, *GEOMETRY.output_shape[1:])
    assert grad_input.shape == (0, *GEOMETRY.x_shape[1:])
    assert_array_equal(grad_weight, np.zeros(weight.shape), strict=True)
    assert_array_equal(grad_bias, np.zeros(GEOMETRY.O), strict=True)


@every_implementation
@pytest.mark.parametrize("planted", [np.inf, np.nan])
def test_infinities_travel_without_warnings(name, planted):
    x, weight, g = (operand.copy() for operand in OPERANDS)
    x[0, 0, 0, 0] = planted  # warnings are errors in these tests
    y, _, grad_weight, _ = solve(x, weight, BIAS, g, implementation=name)
    assert np.isnan(y).any() or np.isinf(y).any()
    assert np.isfinite(y[1]).all()  # the other image
    assert np.isfinite(y[:, 3:]).all()  # the other group
    assert np.isfinite(grad_weight[3:]).all()


# ---- arguments -------------------------------------------------------------------------------


def test_the_bias_is_added_to_every_cell_of_its_channel():
    x, weight, _ = OPERANDS
    difference = conv2d(x, weight, BIAS, **ARGUMENTS) - conv2d(x, weight, **ARGUMENTS)
    assert_array_equal(difference, np.broadcast_to(BIAS[:, None, None], GEOMETRY.output_shape))


@pytest.mark.parametrize("mask", [(True, False, False), (0, 1, 0), np.array([False, False, True])])
def test_masked_gradients_are_none(mask):
    x, weight, g = OPERANDS
    masked = conv2d_backward(g, x, weight, output_mask=mask, **ARGUMENTS)
    for result, wanted, answer in zip(masked, mask, the_answers()[1:], strict=True):
        assert (result is not None) == bool(wanted)
        if wanted:
            assert_array_equal(result, answer)


def test_every_way_to_write_the_same_padding():
    x, weight = np.arange(30.0).reshape(1, 1, 5, 6), np.arange(9.0).reshape(1, 1, 3, 3)
    one_all_round = conv2d(x, weight, padding=1)
    for padding in ((1, 1), [1, 1], ((1, 1), (1, 1)), "same", np.array(1), np.ones((2, 2), int)):
        assert_array_equal(conv2d(x, weight, padding=padding), one_all_round)
    assert_array_equal(conv2d(x, weight, padding="valid"), conv2d(x, weight))


@pytest.mark.parametrize("padding_mode", PADDING_MODES)
def test_same_keeps_the_size(padding_mode):
    x, weight = np.ones((1, 1, 6, 7)), np.ones((1, 1, 2, 4))
    y = conv2d(x, weight, padding="same", dilation=(1, 2), padding_mode=padding_mode)
    assert y.shape == x.shape


def test_positional_arguments_stand_where_pytorch_has_them():
    names = list(inspect.signature(conv2d).parameters)
    assert names[:7] == ["x", "weight", "bias", "stride", "padding", "dilation", "groups"]
    x, weight, _ = OPERANDS
    y = conv2d(x, weight, BIAS, (2, 1), ((1, 0), (1, 2)), (1, 3), 2)
    assert_array_equal(y, the_answers()[0])


# ---- the registry ----------------------------------------------------------------------------


def test_the_registry_knows_every_implementation_by_its_name():
    assert list(IMPLEMENTATIONS) == [
        *("loops", "windows", "im2col", "correlate", "grouped", "fast"),
    ]
    for name, rung in IMPLEMENTATIONS.items():
        assert isinstance(rung, Implementation) and rung.name == name
        assert rung.trades.endswith(".") and len(rung.trades) < 100
        assert getattr(convgrad, name).grad_weight is rung.grad_weight


def test_none_takes_the_fastest(monkeypatch):
    x, weight, _ = OPERANDS
    assert api.FASTEST in IMPLEMENTATIONS
    called = []
    fastest = IMPLEMENTATIONS[api.FASTEST]
    marked = Implementation(
        "marked",
        "",
        lambda *operands: called.append(operands) or fastest.forward(*operands),
        *(fastest.grad_input, fastest.grad_weight, fastest.grad_bias),
    )
    monkeypatch.setitem(IMPLEMENTATIONS, api.FASTEST, marked)
    conv2d(x, weight, **ARGUMENTS)
    assert len(called) == 1


def test_the_front_door_gives_what_the_rungs_give():
    for seed, geometry in enumerate(random_geometries(25, seed=11)):
        x, weight, g = integer_arrays(geometry, seed)
        arguments = {name: getattr(geometry, name) for name in ARGUMENTS}
        for name, rung in IMPLEMENTATIONS.items():
            y = conv2d(x, weight, **arguments, implementation=name)
            assert_array_equal(y, rung.forward(x, weight, geometry))
            gradients = conv2d_backward(g, x, weight, **arguments, implementation=name)
            assert_array_equal(gradients[0], rung.grad_input(g, weight, geometry))
            assert_array_equal(gradients[1], rung.grad_weight(g, x, geometry))
            assert_array_equal(gradients[2], rung.grad_bias(g, geometry))


# Every figure that a module's opening words quote, and where it was measured:
# layer, implementation, measure, part.
QUOTED: dict[str, list[tuple[str, str, str, str]]] = {
    "loops": [("tiny", "loops", "times_torch", "backward")],
    "windows": [
        ("3×3", "windows", "peak_megabytes", "grad_weight"),
        ("3×3", "im2col", "peak_megabytes", "grad_weight"),
        ("3×3", "windows", "times_torch", "backward"),
    ],
    "im2col": [
        ("3×3", "im2col", "times_torch", "backward"),
        ("3×3", "im2col", "peak_megabytes", "backward"),
    ],
    "correlate": [
        ("5×5", "correlate", "peak_megabytes", "backward"),
        ("5×5", "im2col", "peak_megabytes", "backward"),
        ("5×5", "correlate", "times_im2col", "backward"),
    ],
    "grouped": [
        ("8 groups", "grouped", "peak_megabytes", "backward"),
        ("8 groups", "im2col", "peak_megabytes", "backward"),
        ("8 groups", "grouped", "times_im2col", "backward"),
    ],
    "fast": [
        ("8 groups", "fast", "times_im2col", "backward"),
        ("8 groups", "fast", "peak_megabytes", "backward"),
        ("8 groups", "im2col", "peak_megabytes", "backward"),
    ],
}


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_what_a_module_says_it_trades_was_measured(name):
    layers = json.loads(MEASURED.read_text(encoding="utf-8"))["layers"]
    _, trade, *_ = getattr(convgrad, name).__doc__.split("\n\n")
    assert trade.startswith("Trades ")
    for layer, rung, measure, part in QUOTED[name]:
        measured = layers[layer]["implementations"][rung][measure][part]
        assert f'layer "{layer}"' in trade
        words = trade.replace(f'"{layer}"', "").split()
        assert two_digits(measured) in [word.strip(",;:.()") for word in words], measured


def two_digits(number: float) -> str:
    """The number as the opening words quote it: 216 as 220, 2.97 as 3.0, 0.501 as 0.50."""
    if number >= 100:
        return f"{round(number, -1):.0f}"
    return f"{number:#.2g}".rstrip(".")


def test_the_default_is_the_fastest_on_most_layers():
    layers = json.loads(MEASURED.read_text(encoding="utf-8"))["layers"]
    winners = [
        min(
            (row["milliseconds"]["backward"], name)
            for name, row in layer["implementations"].items()
            if name in IMPLEMENTATIONS
        )[1]
        for layer in layers.values()
    ]
    assert winners.count(api.FASTEST) > len(layers) / 2
