"""*Your own autograd.Function* tells the truth: its numbers, picture, exercises and claims."""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from pages import alt_text

from convgrad import ConvGeometry, example, exercises, im2col, loops
from convgrad.checks import random_operands
from convgrad.exercises import autograd_function as bank
from convgrad.exercises.tensors import options
from convgrad.mutants import MUTANTS

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")
import torch.nn.functional as F  # noqa: E402
from torch.autograd import gradcheck  # noqa: E402

from convgrad.autograd import Conv2dFunction, compare_gradients  # noqa: E402
from convgrad.figures.chapters import autograd_function as pictures  # noqa: E402
from convgrad.figures.comparison import beside  # noqa: E402

PAGE = "autograd_function"
pytestmark = pytest.mark.oracle


# ---- the worked example ----------------------------------------------------------------------


def test_the_tap_and_the_cell_worked_by_hand():
    geometry = example("B").geometry
    x, weight, _, g = example("B").arrays()
    columns = im2col.unfold(x, geometry)[0]
    row = 1 * geometry.KW + 2  # the row of tap (1, 2)
    assert row == 5
    assert np.array_equal(columns[row].reshape(3, 3), x[0, 0, 1:4, 2:5])
    assert columns[row] @ g.ravel() == loops.grad_weight(g, x, geometry)[0, 0, 1, 2] == 9

    sent = np.outer(weight.ravel(), g.ravel())  # r l
    cells = im2col.unfold(np.arange(25).reshape(1, 1, 5, 5), geometry)[0]  # which cell stands there
    of_the_cell = sent[cells == 1 * 5 + 3]
    assert len(of_the_cell) == 4
    assert of_the_cell.sum() == loops.grad_input(g, weight, geometry)[0, 0, 1, 3] == 1


def test_the_picture_in_words():
    words = pictures.one_step().words()
    alt = alt_text(PAGE, "one_step(")
    for word in words:
        for line in word.split("\n"):
            assert line.rstrip(",") in alt, line
    for gradient, formula in (("x", "fold(wᵀ · g)"), ("w", "Σ g · unfold(x)ᵀ"), ("b", "Σ g")):
        assert f"∂L/∂{gradient}" in words and formula in words
        assert f"∂L/∂{gradient} is {formula}" in alt


def test_the_picture_of_the_comparison_in_words():
    """Its rows as they are drawn: ours, −, autograd's, =, the difference."""
    x, weight, bias, g = map(torch.from_numpy, example("D").arrays())

    def mistaken(exact, grad_output, x, weight):
        return (*exact(grad_output, x, weight)[:2], grad_output.mean((0, 2, 3)))

    found = compare_gradients(x, weight, bias, g, groups=2, rule=mistaken)
    assert found.input.exact and found.weight.exact and not found.bias.exact
    words = " ".join(beside(found).words())
    alt = alt_text(PAGE, "beside(")
    for slice_of in ("x", "w"):
        assert f"∂L/∂{slice_of}[0, 0], yours" in words
        assert f"[0, 0] of ∂L/∂{slice_of}" in alt
    told = r"∂L/∂b: ours is (.*), autograd's (.*), and .* cell, (.*)\."
    ours, right, gone = re.search(told, alt).groups()
    assert words.endswith(f"{ours} ∂L/∂b, yours − {right} autograd's = {gone} difference")


def test_the_step_keeps_what_the_picture_says_and_no_copy_of_it():
    x, weight, bias, _ = map(torch.from_numpy, example("B").arrays())
    y = Conv2dFunction.apply(
        x, weight.requires_grad_(), bias, (1, 1), (0, 0), (1, 1), 1, "unfold", None
    )
    kept = y.grad_fn.saved_tensors
    assert [each.data_ptr() for each in kept] == [x.data_ptr(), weight.data_ptr()]


# ---- gradcheck -------------------------------------------------------------------------------


def slope(dtype: torch.dtype, by: float) -> float:
    x, weight, bias, g = (torch.from_numpy(a).to(dtype) for a in example("C").arrays())
    shift = torch.zeros_like(weight)
    shift[0, 0, 1, 1] = by
    up, down = ((g * F.conv2d(x, weight + s, bias, stride=2)).sum() for s in (shift, -shift))
    return ((up - down) / (2 * by)).item()


def test_why_float32_fails():
    x, weight, bias, g = example("C").arrays()
    geometry = example("C").geometry
    right = loops.grad_weight(g, x, geometry)[0, 0, 1, 1]
    loss = (g * (loops.forward(x, weight, geometry) + bias)).sum()
    assert loss == 135
    assert 1e-4 < 2e-6 * right < 1e-3  # it moves in the fourth digit behind the point
    assert np.spacing(np.float32(loss)) > 1e-5  # and float32 ends in the fifth
    assert slope(torch.float64, 1e-6) == pytest.approx(right, abs=1e-6)
    assert abs(slope(torch.float32, 1e-6) - right) > 10
    assert slope(torch.float32, 1) == right


def test_gradcheck_in_float32_passes_with_a_step_of_one():
    x, weight, _, _ = (torch.from_numpy(a).float().requires_grad_() for a in example("B").arrays())
    with warnings.catch_warnings(action="ignore"):  # that this is no double precision
        assert not gradcheck(F.conv2d, (x, weight), raise_exception=False)
        assert gradcheck(F.conv2d, (x, weight), eps=1.0)


def backward_by(mutant: str, geometry: ConvGeometry) -> Any:
    """A step whose weight gradient is a mutant's."""

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x)
            return F.conv2d(x, weight)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            found = MUTANTS[mutant](grad_output.numpy(), x.numpy(), geometry)
            return None, torch.from_numpy(np.ascontiguousarray(found))

    return Step.apply


def test_what_gradcheck_sees_of_the_four_mistakes():
    geometry = ConvGeometry(N=2, C=1, H=4, W=5, O=2, KH=2, KW=2)
    draw = random_operands(geometry, np.random.default_rng(3))
    x, weight = torch.from_numpy(draw.x), torch.from_numpy(draw.weight).requires_grad_()
    names = list(bank._UNSEEN_CHOICES.values())
    passed = []
    for name in names:
        step = backward_by(name, geometry)
        passed.append(gradcheck(step, (x, weight), raise_exception=False))
    assert [place for place, passes in enumerate(passed) if passes] == [
        exercises.get("function-unseen").answer
    ]


# ---- the exercises ---------------------------------------------------------------------------


def test_the_number_of_values_is_pytorchs():
    names = bank._NAMES[1:]

    def returns(count: int) -> Any:
        class Step(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, *others):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return (g, *[None] * (count - 1))

        return Step.apply(torch.ones(2, requires_grad=True), *[None] * (len(names) - 1))

    answer = exercises.get("function-how-many").answer
    returns(answer).sum().backward()
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        returns(answer - 1).sum().backward()


def test_who_needs_a_gradient_is_autograds_answer():
    x, found = torch.ones(1, 1, 6, 6), []
    for learns in bank._LEARNS:
        weight = torch.ones(1, 1, 2, 2, requires_grad=learns[0])
        bias = torch.ones(1, requires_grad=learns[1])
        x = Conv2dFunction.apply(x, weight, bias, (1, 1), (0, 0), (1, 1), 1, "unfold", None)
        found.append(x.grad_fn.needs_input_grad[:3])
    assert np.array_equal(found, exercises.get("function-needs").answer)


def test_one_row_folded_is_pytorchs():
    columns = torch.from_numpy(bank._row_columns())[None]
    folded = F.fold(columns, (1, 4), (1, 2))
    assert np.array_equal(folded[0, 0].numpy(), exercises.get("function-fold").answer)


def test_the_gradient_of_a_gradient():
    """The exercise: L' by x is the input gradient with d for the kernel, by g the forward pass."""
    geometry = example("C").geometry
    x, weight, _, g = (torch.from_numpy(a).requires_grad_() for a in example("C").arrays())
    d = torch.arange(9.0, dtype=torch.float64).reshape(weight.shape) - 4
    (first,) = torch.autograd.grad(F.conv2d(x, weight, stride=2), weight, g, create_graph=True)
    by_x, by_g = torch.autograd.grad((first * d).sum(), (x, g))
    arrays = g.detach().numpy(), d.numpy(), geometry
    assert np.array_equal(by_x.numpy(), loops.grad_input(*arrays))
    assert np.array_equal(by_g.numpy(), loops.forward(x.detach().numpy(), *arrays[1:]))


def three(x: Any, weight: Any, g: Any, how: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The right gradients, as PyTorch has them."""
    leaves = [each.detach().requires_grad_() for each in (x, weight, x.new_zeros(len(weight)))]
    with torch.enable_grad():
        return torch.autograd.grad(F.conv2d(*leaves, **how), leaves, g)


def asked(ctx: Any, found: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*(a if n else None for a, n in zip(found, ctx.needs_input_grad, strict=False)), None)


def right(ctx, g):
    return asked(ctx, three(*ctx.saved_tensors, g, ctx.how))


def in_vain(ctx, g):
    return (*three(*ctx.saved_tensors, g, ctx.how), None)


def three_values(ctx, g):
    return right(ctx, g)[:3]


def one_value(ctx, g):
    return right(ctx, g)[1]


def something_for_how(ctx, g):
    return (*right(ctx, g)[:3], ctx.how)


def no_bias(ctx, g):
    to_x, to_weight, *_ = right(ctx, g)
    return to_x, to_weight, None, None


def mean_of_images(ctx, g):
    to_x, to_weight, to_bias = three(*ctx.saved_tensors, g, ctx.how)
    return asked(ctx, (to_x, to_weight / len(g), to_bias))


def images_apart(ctx, g):
    x, weight = ctx.saved_tensors
    shares = g.flatten(2) @ F.unfold(x, weight.shape[2:], **ctx.how).mT
    to_x, _, to_bias = three(x, weight, g, ctx.how)
    return asked(ctx, (to_x, shares.reshape(-1, *weight.shape), to_bias))


def only_views(ctx, g):
    g.view(-1)
    return right(ctx, g)


def writes(ctx, g):
    found = right(ctx, g)
    g.mul_(2)
    return found


def reads_memory(ctx, g):
    g = g.as_strided(g.shape, torch.empty(g.shape).stride())
    return right(ctx, g)


def without_stride(ctx, g):
    x, weight = ctx.saved_tensors
    found = three(x, weight, g, ctx.how)
    if ctx.how["stride"] != (1, 1):
        found = (found[0], weight * 0, found[2])
    return asked(ctx, found)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            in_vain,
            r"where weight and bias alone need a gradient, your function computes the "
            r"gradient of x, which nobody needs here",
        ),
        (three_values, "returns 3 things: forward took four arguments besides ctx"),
        (one_value, r"returns one array, of shape \(1, 1, \d, \d\): needed are four things"),
        (something_for_how, "returns something for `how`, which is no tensor"),
        (no_bias, "returns None for bias, whose gradient is needed here"),
        (mean_of_images, "mean over the 3 images"),
        (images_apart, "grad_weight still has an axis for the images"),
        (only_views, r"raised `RuntimeError`: view size .* \(line 2 of the function, `g.view"),
        (writes, "changed grad_output, which is not its own"),
        (
            reads_memory,
            "memory of grad_output gives when it is read row by row: that array is a view",
        ),
        (without_stride, "stride 2: "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_backward_pass_is_told_its_mistake(function, words):
    exercise = exercises.get("function-backward")
    verdict = exercise.check(function)
    assert not verdict.passed and not verdict.untouched
    assert re.search(words, verdict.message), verdict.message


def test_the_right_backward_pass_passes():
    assert exercises.get("function-backward").check(right).passed


def forward_with(change: Any) -> Any:
    def forward(x, weight, groups, how):
        return change(x, weight, groups, how)

    return forward


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, w, k, how: F.conv2d(x, w.flip(2, 3), groups=k, **how), "turned by 180°"),
        (lambda x, w, k, how: F.conv2d(x, w, groups=k, **how | {"padding": 0}), "shape|padding"),
        (lambda x, w, k, how: F.conv2d(x, w, groups=k, **how | {"dilation": 1}), "shape|dilation"),
        (lambda x, w, k, how: F.conv2d(x, w, groups=k, **how).flatten(2), "axis|shape"),
        (lambda x, w, k, how: F.conv2d(x, w, groups=1, **how), "raised `RuntimeError`"),
        (lambda x, w, k, how: F.conv2d(x.mul_(2), w, groups=k, **how), "changed one of its"),
    ],
)
def test_a_forward_pass_is_told_its_mistake(change, words):
    verdict = exercises.get("function-forward").check(forward_with(change))
    assert not verdict.passed and not verdict.untouched
    assert re.search(words, verdict.message), verdict.message


def test_without_pytorch_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for key in ("function-forward", "function-backward"):
        verdict = exercises.get(key).check(right)
        assert verdict.untouched
        assert 'pip install "convgrad[torch]"' in verdict.message


def test_the_options_are_those_of_pytorch():
    geometry = ConvGeometry(C=2, H=7, W=8, O=3, KH=2, KW=3, stride=2, padding=(1, 2), dilation=2)
    columns = F.unfold(torch.ones(geometry.x_shape), (2, 3), **options(geometry))
    assert columns.shape[2] == geometry.OH * geometry.OW
