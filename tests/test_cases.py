"""Mistakes that people really made (``cases/conv_cases.json``): nobody here makes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import integers

from convgrad import (
    IMPLEMENTATIONS,
    ConvGeometry,
    MemoryLimitError,
    api,
    conv2d,
    conv2d_backward,
    double_backward,
    loops,
    per_sample_weight_gradients,
)
from convgrad.im2col import column_numbers, fold, unfold
from convgrad.mutants import MUTANTS
from convgrad.shards import RowShard, row_shards

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "cases" / "conv_cases.json").read_text(encoding="utf-8")
)
TOO_LARGE = [case for case in CASES if case.get("check") == "im2col_size"]
REFUSED = [case for case in CASES if "raises" in case]
SOLVED = [case for case in CASES if case not in TOO_LARGE + REFUSED]
RESULTS = ("y", "grad_input", "grad_weight", "grad_bias")


def by_id(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["id"])


every_implementation = pytest.mark.parametrize("name", IMPLEMENTATIONS)


# ---- the arrays of a case --------------------------------------------------------------------


def _arange(first: int) -> Callable[[tuple[int, ...]], np.ndarray]:
    return lambda shape: np.arange(first, first + np.prod(shape), dtype=float).reshape(shape)


def _with_one(value: float, at: tuple[int, ...], rest: float) -> Callable:
    def fill(shape: tuple[int, ...]) -> np.ndarray:
        array = np.full(shape, float(rest))
        array[at] = value
        return array

    return fill


def _half_of_a_concatenation(shape: tuple[int, ...]) -> np.ndarray:
    N, O, *rest = shape
    return integers(np.random.default_rng(3), (N, 2 * O, *rest))[:, :O]


FILLINGS: dict[str, Callable[[tuple[int, ...]], np.ndarray]] = {
    "ones": np.ones,
    "zeros": np.zeros,
    "half": lambda shape: np.full(shape, 0.5),
    "c200": lambda shape: np.full(shape, 200.0),
    "pm200": lambda shape: np.full(shape, 200.0) * np.array([1, -1])[:, None, None, None],
    "arange0": _arange(0),
    "arange1": _arange(1),
    "arange1_T01": lambda shape: _arange(1)(shape).swapaxes(0, 1),
    "delta00": _with_one(1, (0, 0, 0, 0), rest=0),
    "ones_inf11": _with_one(np.inf, (0, 0, 1, 1), rest=1),
    "expanded": lambda shape: np.broadcast_to(np.ones(()), shape),
    "cat_view": _half_of_a_concatenation,
    "randn": lambda shape: integers(np.random.default_rng(len(shape) + sum(shape)), shape),
}


class Case:
    """A case from the file with its arrays, ready to be computed."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.arguments = {
            name: case[name] for name in ("stride", "padding", "dilation", "groups", "padding_mode")
        }
        sizes = {name: case[name] for name in ("N", "C", "H", "W", "O", "KH", "KW")}
        self.geometry = ConvGeometry(**sizes, **self.arguments)
        self.x = self._fill(case["x"], self.geometry.x_shape)
        self.weight = self._fill(case["weight"], self.geometry.weight_shape)
        if case["grad_output"] == "two_y":
            self.grad_output = 2 * conv2d(self.x, self.weight, **self.arguments)
        else:
            self.grad_output = self._fill(case["grad_output"], self.geometry.output_shape)
        self._set_types(case["dtype"])
        if case.get("check") == "unbatched":
            self.x, self.grad_output = self.x[0], self.grad_output[0]

    @staticmethod
    def _fill(filling: str | list, shape: tuple[int, ...]) -> np.ndarray:
        if isinstance(filling, str):
            return FILLINGS[filling](shape)
        return np.array(filling, dtype=float).reshape(shape)

    def _set_types(self, dtype: str) -> None:
        if dtype == "int64 x, float64 w":
            self.x = self.x.astype(np.int64)
        elif dtype != "float64":
            self.x, self.weight, self.grad_output = (
                array.astype(dtype) for array in (self.x, self.weight, self.grad_output)
            )

    def solve(self, name: str | None = None, **changed: Any) -> dict[str, np.ndarray]:
        """y and the three gradients by one implementation; ``changed`` replaces operands."""
        x, weight, g = (
            changed.get(operand, getattr(self, operand))
            for operand in ("x", "weight", "grad_output")
        )
        y = conv2d(x, weight, **self.arguments, implementation=name)
        gradients = conv2d_backward(g, x, weight, **self.arguments, implementation=name)
        return dict(zip(RESULTS, (y, *gradients), strict=True))


# ---- every case ------------------------------------------------------------------------------


@every_implementation
@by_id(SOLVED)
def test_the_known_answer(case, name):
    answers = Case(case).solve(name)
    for result, values in case.get("expect_values", {}).items():
        assert_array_equal(answers[result], np.array(values))
        assert answers[result].shape == np.shape(values)
    for result, where, values in case.get("expect_spots", []):
        spot = answers[result].sum() if where == "sum" else answers[result][tuple(where)]
        assert_array_equal(spot, values)


@every_implementation
@by_id(SOLVED)
def test_the_answer_of_the_definition(case, name):
    given = Case(case)
    before = [array.copy() for array in (given.x, given.weight, given.grad_output)]
    answers, definition = given.solve(name), given.solve("loops")
    for result in RESULTS:
        assert_array_equal(answers[result], definition[result], strict=True)
    for array, copy in zip((given.x, given.weight, given.grad_output), before, strict=True):
        assert_array_equal(array, copy)  # no operand was written to


@by_id([case for case in SOLVED if case["dtype"] == "float64"])
def test_the_answer_of_autograd(case):
    pytest.importorskip("torch")
    from torch_oracle import autograd

    given = Case(case)
    x, g = (a if a.ndim == 4 else a[None] for a in (given.x, given.grad_output))
    theirs = autograd(x, given.weight, g, given.geometry)._asdict()
    for result, ours in given.solve().items():
        assert_array_equal(ours, theirs[result].reshape(ours.shape))


@every_implementation
@by_id([case for case in SOLVED if "layout" in case])
def test_a_view_gives_what_its_copy_gives(case, name):
    given = Case(case)
    copies = {
        operand: np.ascontiguousarray(getattr(given, operand))
        for operand in ("x", "weight", "grad_output")
    }
    answers, from_copies = given.solve(name), given.solve(name, **copies)
    for result in RESULTS:
        assert_array_equal(answers[result], from_copies[result])


@by_id([case for case in SOLVED if "mistake" in case])
def test_the_mistake_gives_something_else_here(case):
    """A case is worth keeping while it tells the mistake from the truth."""
    given = Case(case)
    mutant = MUTANTS[case["mistake"]]
    target = f"grad_{mutant.target}"
    answer = given.solve("loops")[target]
    g, x, weight = given.grad_output, given.x, given.weight
    operands = {"grad_weight": (g, x), "grad_input": (g, weight), "grad_bias": (g,)}[target]
    before = [operand.copy() for operand in operands]
    try:
        with np.errstate(all="ignore"):
            mistaken = mutant(*operands, given.geometry)
    except (ValueError, IndexError):
        return  # it cannot even be computed
    untouched = all(np.array_equal(*pair) for pair in zip(operands, before, strict=True))
    same = mistaken.shape == answer.shape and np.array_equal(mistaken, answer, equal_nan=True)
    assert not (same and untouched)


@by_id(REFUSED)
def test_the_impossible_is_refused_in_words(case):
    needed = {
        "negative-padding-must-raise": r"padding is -1.*x\[\.\.\., 1:-1, 1:-1\]",
        "output-size-below-one-must-raise": "kernel 1×7 spans 1×7, the padded input is 1×4",
    }[case["id"]]
    with pytest.raises(ValueError, match=needed):
        Case(case)


def test_no_case_is_left_out():
    assert len(CASES) == 50
    assert all({"expect", "symptom", "source"} <= case.keys() for case in CASES)
    checks = {case["check"] for case in CASES if "check" in case}
    assert checks == {name.removeprefix("test_check_") for name in globals() if "_check_" in name}


# ---- the properties beyond one gradient, one function for each ``check`` ---------------------


def the_case(check: str) -> Case:
    (case,) = (case for case in CASES if case.get("check") == check)
    return Case(case)


def test_check_fold_adjoint():
    geometry = the_case("fold_adjoint").geometry
    rng = np.random.default_rng(0)
    x = integers(rng, geometry.x_shape)
    columns = integers(rng, unfold(x, geometry).shape)
    assert np.vdot(unfold(x, geometry), columns) == np.vdot(x, fold(columns, geometry))
    reads = np.outer([1, 2, 2, 1], [1, 2, 2, 1])
    assert_array_equal(fold(unfold(x, geometry), geometry), x * reads)


@every_implementation
def test_check_circular_k1(name):
    """With a 1×1 kernel the output is the wrapped image itself, wrapped along the width alone."""
    x = np.arange(12.0).reshape(1, 1, 3, 4)
    arguments = {"padding": (0, 1), "padding_mode": "circular", "implementation": name}
    y = conv2d(x, np.ones((1, 1, 1, 1)), **arguments)
    assert_array_equal(y, x[..., [3, 0, 1, 2, 3, 0]])
    g = np.arange(18.0).reshape(1, 1, 3, 6)
    grad_input, _, _ = conv2d_backward(g, x, np.ones((1, 1, 1, 1)), **arguments)
    wrapped = g[..., 1:5].copy()
    wrapped[..., 3] += g[..., 0]
    wrapped[..., 0] += g[..., 5]
    assert_array_equal(grad_input, wrapped)


@every_implementation
def test_check_depthwise_blind_spot(name):
    """Dealing channels to groups like cards goes unnoticed unless 1 < groups < C."""
    rng = np.random.default_rng(0)
    notices = {}
    for groups in (1, 2, 4):
        geometry = ConvGeometry(N=2, C=4, H=5, W=5, O=4, KH=3, KW=3, groups=groups)
        x, g = integers(rng, geometry.x_shape), integers(rng, geometry.output_shape)
        dealt = np.arange(4).reshape(geometry.CG, groups).T.ravel()
        grad_weight = IMPLEMENTATIONS[name].grad_weight
        right, wrong = grad_weight(g, x, geometry), grad_weight(g, x[:, dealt], geometry)
        notices[groups] = not np.array_equal(right, wrong)
    assert notices == {1: False, 2: True, 4: False}


@every_implementation
def test_check_squeeze_in_function(name):
    grad_bias = the_case("squeeze_in_function").solve(name)["grad_bias"]
    assert grad_bias.shape == (1,)


@every_implementation
def test_check_half_overflow(name):
    given = the_case("half_overflow")
    answers = given.solve(name)
    assert {array.dtype for array in answers.values()} == {np.dtype(np.float16)}
    assert not answers["grad_weight"].any()
    with np.errstate(over="ignore"):  # what each image contributes does not fit
        assert np.isinf(np.float16(6 * 200 * 200))


@every_implementation
def test_check_inf_weight(name):
    grad_input = the_case("inf_weight").solve(name)["grad_input"][0, 0]
    assert not np.isnan(grad_input).any()
    expected = np.ones((5, 5))
    expected[1:4:2, 1:4:2] = np.inf
    expected[4, :] = expected[:, 4] = 0  # no window reads them
    assert_array_equal(grad_input, expected)


@every_implementation
def test_check_empty(name):
    given = the_case("empty")
    answers = given.solve(name)
    assert answers["y"].shape == (0, 3, 2, 2)
    assert answers["grad_input"].shape == (0, 2, 4, 4)
    assert_array_equal(answers["grad_weight"], np.zeros((3, 2, 3, 3)), strict=True)
    assert_array_equal(answers["grad_bias"], np.zeros(3), strict=True)


@every_implementation
def test_check_unbatched(name):
    given = the_case("unbatched")
    answers = given.solve(name)
    batch_of_one = given.solve(name, x=given.x[None], grad_output=given.grad_output[None])
    assert answers["y"].shape == (3, 2, 2)
    assert answers["grad_input"].shape == (2, 5, 5)
    for result in RESULTS:
        shape = answers[result].shape
        assert_array_equal(answers[result], batch_of_one[result].reshape(shape))


@pytest.mark.parametrize("mask", list(np.ndindex(2, 2, 2)))
def test_check_output_mask(mask, monkeypatch):
    """A gradient that is masked out is None, and nobody computed it."""
    given = the_case("output_mask")
    full = conv2d_backward(given.grad_output, given.x, given.weight)
    computed = []

    def counted(gradient: str) -> Callable[..., np.ndarray]:
        rule = getattr(IMPLEMENTATIONS["loops"], gradient)
        return lambda *operands: computed.append(gradient) or rule(*operands)

    gradients = RESULTS[1:]
    rules = {gradient: counted(gradient) for gradient in gradients}
    counting = api.Implementation("counting", "", forward=None, **rules)
    monkeypatch.setitem(IMPLEMENTATIONS, "counting", counting)
    masked = conv2d_backward(
        given.grad_output, given.x, given.weight, output_mask=mask, implementation="counting"
    )
    assert computed == [
        gradient for gradient, wanted in zip(gradients, mask, strict=True) if wanted
    ]
    for wanted, result, whole in zip(mask, masked, full, strict=True):
        if wanted:
            assert_array_equal(result, whole)
        else:
            assert result is None


# the three gradients of the first pass: all used, or one alone
USED = [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]


def second_pass(given: Case, used: tuple[bool, ...]) -> list[np.ndarray | None]:
    """What a loss hands back to the gradients of this case, None where it does not use them."""
    rng = np.random.default_rng(7)
    shapes = given.x.shape, given.weight.shape, given.geometry.bias_shape
    return [integers(rng, s) if there else None for s, there in zip(shapes, used, strict=True)]


@every_implementation
@pytest.mark.parametrize("used", USED)
def test_check_double_backward(name, used):
    given = the_case("double_backward")
    x, weight, g, geometry = given.x, given.weight, given.grad_output, given.geometry
    seconds = second_pass(given, used)
    results = double_backward(*seconds, g, x, weight, **given.arguments, implementation=name)
    zeros = np.zeros(x.shape), np.zeros(weight.shape), np.zeros(geometry.bias_shape)
    ggx, ggw, ggb = (z if a is None else a for a, z in zip(seconds, zeros, strict=True))
    image, kernel = loops.forward(ggx, weight, geometry), loops.forward(x, ggw, geometry)
    assert_array_equal(results[0], image + kernel + ggb[:, None, None], strict=True)
    assert_array_equal(results[1], loops.grad_input(g, ggw, geometry), strict=True)
    assert_array_equal(results[2], loops.grad_weight(g, ggx, geometry), strict=True)


@pytest.mark.oracle
@pytest.mark.parametrize("used", USED)
def test_the_double_backward_of_autograd(used):
    pytest.importorskip("torch")
    import torch_oracle

    given = the_case("double_backward")
    operands = given.grad_output, given.x, given.weight
    seconds = second_pass(given, used)
    results = double_backward(*seconds, *operands, **given.arguments)
    answers = torch_oracle.double_backward(seconds, *operands, given.geometry)
    for result, answer in zip(results, answers, strict=True):
        assert_array_equal(result, answer, strict=True)


def test_check_per_sample():
    given = the_case("per_sample")
    x, g, geometry = given.x, given.grad_output, given.geometry
    assert any(geometry.surplus)  # the convolution finds taps that must be cropped
    shares = per_sample_weight_gradients(g, x, given.weight.shape, **given.arguments)
    assert shares.shape == (4, 6, 2, 3, 2)
    for n, share in enumerate(shares):
        _, alone, _ = conv2d_backward(g[n], x[n], given.weight, **given.arguments)
        assert_array_equal(share, alone, strict=True)
    assert_array_equal(shares.sum(axis=0), given.solve()["grad_weight"], strict=True)


@pytest.mark.oracle
def test_the_shares_of_vmap():
    pytest.importorskip("torch")
    import torch_oracle

    given = the_case("per_sample")
    x, g = given.x, given.grad_output
    shares = per_sample_weight_gradients(g, x, given.weight.shape, **given.arguments)
    assert_array_equal(shares, torch_oracle.per_sample(x, g, given.geometry), strict=True)


# ---- beyond one call: another type, another layer, other devices -----------------------------


def test_check_bfloat16():
    """The package's own steps in PyTorch add up in more digits than bfloat16 has."""
    torch = pytest.importorskip("torch")
    from convgrad.autograd import conv2d as torch_conv2d

    given = the_case("bfloat16")
    total = torch.zeros((), dtype=torch.bfloat16)
    for cell in torch.ones(given.grad_output.size, dtype=torch.bfloat16):
        total += cell
    assert total == 256  # the mistake
    x, weight, g = (
        torch.from_numpy(each).bfloat16() for each in (given.x, given.weight, given.grad_output)
    )
    for name in ("aten", "unfold", "correlate"):
        bias = torch.zeros(1, dtype=torch.bfloat16, requires_grad=True)
        torch_conv2d(x, weight, bias, implementation=name).backward(g)
        assert bias.grad.item() == 1600


def in_digits(array: np.ndarray, count: int) -> np.ndarray:
    """Every number in so many binary digits."""
    fraction, exponent = np.frexp(array)
    return np.ldexp(np.round(fraction * 2.0**count), exponent - count)


@every_implementation
def test_check_tf32(name):
    given = the_case("tf32")
    answers = given.solve(name)
    cut = {each: in_digits(getattr(given, each), 11) for each in ("x", "weight", "grad_output")}
    assert cut["x"].ravel().tolist() == [2048, 2052, 2052]
    mistaken = given.solve(name, **cut)
    assert mistaken["y"].ravel().tolist() == [-4, 0]
    assert mistaken["grad_weight"].ravel().tolist() == [6152, 6156]
    assert_array_equal(answers["grad_input"], mistaken["grad_input"])  # small numbers stay


def test_check_memory_format():
    torch = pytest.importorskip("torch")
    from convgrad.autograd import conv2d as torch_conv2d

    given = the_case("memory_format")
    expected = given.solve("loops")
    orders = torch.contiguous_format, torch.channels_last
    for of_x, of_weight, of_g in np.ndindex(2, 2, 2):
        for way in ("aten", "unfold", "correlate"):
            x, weight, g = (
                torch.from_numpy(array).to(memory_format=orders[order], copy=True)
                for array, order in (
                    *((given.x, of_x), (given.weight, of_weight)),
                    (given.grad_output, of_g),
                )
            )
            x.requires_grad_(), weight.requires_grad_()
            y = torch_conv2d(x, weight, padding=1, implementation=way)
            y.backward(g)
            assert_array_equal(y.detach(), expected["y"])
            assert_array_equal(x.grad, expected["grad_input"])
            assert_array_equal(weight.grad, expected["grad_weight"])


def test_check_checkpoint():
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint

    from convgrad.autograd import conv2d as torch_conv2d

    given = the_case("checkpoint")
    x = torch.from_numpy(given.x)
    weight = torch.from_numpy(given.weight).requires_grad_()
    scale = torch.ones((), requires_grad=True)  # something behind it that learns
    y = checkpoint(torch_conv2d, x, weight, use_reentrant=False)
    (scale * y).sum().backward()
    assert_array_equal(weight.grad, given.solve("loops")["grad_weight"])
    weight.grad = None
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        y = checkpoint(lambda x: torch_conv2d(x, weight), x, use_reentrant=True)
    (scale * y).sum().backward()
    assert weight.grad is None  # the mistake: no error came


@every_implementation
def test_check_halves(name):
    given = the_case("halves")
    whole = given.solve(name)
    pairs = zip(np.split(given.x, 2, axis=3), np.split(given.grad_output, 2, axis=3), strict=True)
    halves = [given.solve(name, x=x, grad_output=g) for x, g in pairs]
    grads = [half["grad_input"] for half in halves]
    assert_array_equal(np.concatenate(grads, axis=3), whole["grad_input"])
    assert np.concatenate(grads, axis=0).shape == (2, 1, 4, 4)  # the mistake
    assert_array_equal(sum(half["grad_weight"] for half in halves), whole["grad_weight"])


@every_implementation
def test_check_averaged(name):
    given = the_case("averaged")
    whole = given.solve(name)
    parts = [
        given.solve(name, x=given.x[some], grad_output=given.grad_output[some])
        for some in (slice(2), slice(2, 4))
    ]
    for gradient in ("grad_weight", "grad_bias"):
        shares = [part[gradient] for part in parts]
        assert_array_equal(sum(shares), whole[gradient])
        assert_array_equal(np.mean(shares, axis=0), whole[gradient] / 2)  # the mistake


# ---- index maps ------------------------------------------------------------------------------


def test_check_rows_and_sign():
    """Rows are windows, and the padding is subtracted: each mistake gives something else here."""
    given = the_case("rows_and_sign")
    g, x, weight = given.geometry, given.x, given.weight.ravel()
    assert (g.N * g.H * g.W, g.N * g.OH * g.OW) == (12, 6)
    right, wrong = np.zeros(g.output_shape), np.zeros(g.output_shape)
    for p, q, tap in np.ndindex(g.OH, g.OW, weight.size):
        i, j = divmod(tap, g.KW)
        for y, sign in ((right, -1), (wrong, 1)):
            h, v = 2 * p + i + sign, 2 * q + j + sign
            if 0 <= h < g.H and 0 <= v < g.W:
                y[0, 0, p, q] += weight[tap] * x[0, 0, h, v]
    assert_array_equal(right, given.solve("loops")["y"])
    assert not np.array_equal(wrong, right)


def test_check_first_window():
    """The windows that read each row, from the first to the last, as the geometry knows them."""
    g = the_case("first_window").geometry
    missed = []
    for h in range(g.H):
        reads = [p for p in range(g.OH) if 0 <= h - g.stride[0] * p < g.KH]
        first = (h - g.KH) // g.stride[0] + 1
        assert max(first, 0) == reads[0]
        if max(int((h - g.KH) / g.stride[0]) + 1, 0) != reads[0]:
            missed.append(h)  # the mistake
    assert missed == [2]


@every_implementation
def test_check_means(name):
    given = the_case("means")
    whole = given.solve(name, grad_output=given.grad_output / 4)["grad_weight"]
    grads = [
        given.solve(name, x=x, grad_output=g / len(g))["grad_weight"]
        for x, g in zip(
            *(np.split(each, [1, 2]) for each in (given.x, given.grad_output)), strict=True
        )
    ]
    assert_array_equal(np.tensordot([1 / 4, 1 / 4, 2 / 4], grads, 1), whole)
    assert_array_equal(np.mean(grads, axis=0), np.full_like(whole, 3))  # the mistake: not 15/4


@every_implementation
def test_check_strips(name):
    given = the_case("strips")
    whole = given.solve(name)
    strips = row_shards(given.geometry, 2)
    blocks = [given.solve(name, **taken(given, strip)) for strip in strips]
    shape = given.geometry.x_shape
    home = [
        strip.put_back(block["grad_input"], shape)
        for strip, block in zip(strips, blocks, strict=True)
    ]
    assert_array_equal(sum(home), whole["grad_input"])
    assert_array_equal(sum(block["grad_weight"] for block in blocks), whole["grad_weight"])
    for block in blocks:  # the mistakes: one strip's share alone, and the halo kept
        assert not np.array_equal(block["grad_weight"], whole["grad_weight"])
    for strip, grad in zip(strips, home, strict=True):
        own = slice(strip.owned.start, strip.owned.stop)
        assert not np.array_equal(grad[:, :, own], whole["grad_input"][:, :, own])


def taken(given: Case, strip: RowShard) -> dict[str, np.ndarray]:
    return {
        "x": strip.take_input(given.x),
        "grad_output": strip.take_output(given.grad_output),
    }


def test_check_im2col_size():
    (case,) = TOO_LARGE
    sizes = {name: case[name] for name in ("N", "C", "H", "W", "O", "KH", "KW", "padding")}
    assert column_numbers(ConvGeometry(**sizes)) == 2_257_920_000 > 2**31 - 1
    reported = ConvGeometry(N=256, C=32, H=256, W=256, O=1, KH=64, KW=64)
    assert column_numbers(reported) == 1_249_869_037_568
    for geometry, size in ((ConvGeometry(**sizes), "1[01] GB"), (reported, "5 TB")):
        # one stored number each: nothing is made, neither here nor by the refusal
        shapes = geometry.x_shape, geometry.weight_shape, geometry.output_shape
        x, weight, g = (np.broadcast_to(np.float32(1), shape) for shape in shapes)
        arguments = {"padding": geometry.padding, "implementation": "im2col"}
        refusal = f"'im2col' on .* needs {size}, the limit is 4 GB"
        with pytest.raises(MemoryLimitError, match=refusal):
            conv2d(x, weight, **arguments)
        with pytest.raises(MemoryLimitError, match=refusal):
            conv2d_backward(g, x, weight, **arguments)
