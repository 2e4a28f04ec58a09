"""Exercises for *Approximate and second gradients*."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from .. import loops, windows
from ..checks import random_operands
from ..examples import example
from ..geometry import ConvGeometry
from ..second import double_backward
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import maps, redrawn
from .tensors import TensorFunction
from .words import numbers_of, written_out

__all__ = ["EXERCISES"]

_CHAPTER = "approximate_gradients"


# ---- the two largest alone -------------------------------------------------------------------

_TAP = (1, 1)


def _kept(most: int = 2) -> np.ndarray:
    """g of example B, and all but its largest numbers are zero."""
    g = example("B").arrays().grad_output
    limit = np.sort(np.abs(g), axis=None)[-most]
    return np.where(np.abs(g) >= limit, g, 0)


def _at_tap(g: np.ndarray, tap: tuple[int, int] = _TAP) -> float:
    return float(loops.grad_weight(g, example("B").arrays().x, example("B").geometry)[0, 0][tap])


_top_two = Number(
    key="approx-top-two",
    chapter=_CHAPTER,
    level=1,
    title="Two of nine",
    prompt=(
        "Example B. Of the nine numbers of grad_output the two largest in size are kept, the "
        f"others become 0. Which number is tap {_TAP} of the weight gradient then?\n\n"
        + numbers_of("B", "x", "grad_output")
    ),
    hints=(
        "The two numbers are both 2. Where do they stand in grad_output?",
        "Tap (1, 1) reads the cell one row lower and one column further right than the window "
        "begins: for position (p, q) it is cell (p + 1, q + 1) of x.",
    ),
    compute=lambda: _at_tap(_kept()),
    compute_mistakes=lambda: [
        (
            _at_tap(example("B").arrays().grad_output),
            "That is the exact one, with all nine numbers.",
        ),
        (
            _at_tap(_kept(), (0, 0)),
            "You took the cells where the windows begin. That is tap (0, 0).",
        ),
        (
            _at_tap(_kept()) / 2,
            "Each cell of x is multiplied with its number of grad_output, which is 2.",
        ),
        (
            _at_tap(example("B").arrays().grad_output - _kept()),
            "That is what the other seven give, the part that is lost.",
        ),
    ],
    explanation="Cells (1, 3) and (3, 2) of x, 3 and 0, each times 2.",
    solution=(
        "x, _, _, g = example('B').arrays()\n"
        "answer = x[0, 0, 1, 3] * g[0, 0, 0, 2] + x[0, 0, 3, 2] * g[0, 0, 2, 1]"
    ),
    same_for_all="The chapter keeps the same two numbers; most draws have no two largest.",
)


# ---- the factor ------------------------------------------------------------------------------


@redrawn(lambda images, taken: images % taken == 0 and taken < images, images=(8, 40), taken=(2, 6))
def _factor(images: int = 12, taken: int = 3) -> Number:
    return Number(
        key="approx-factor",
        chapter=_CHAPTER,
        level=1,
        title="What makes up for the others",
        prompt=(
            f"From a batch of {images} images, {taken} are drawn, each as likely as any other. "
            "Their weight gradients are added up. By which factor must the sum be multiplied, so "
            "that on average it is the gradient of the whole batch?"
        ),
        hints=(
            f"How often is a given image among those that are drawn? {taken} times in {images}.",
            "What is there only so often must count for more, as many times as it is missing.",
        ),
        compute=lambda: images / taken,
        compute_mistakes=lambda: [
            (
                taken / images,
                "That is how often an image is there. The factor has to undo it.",
            ),
            (images, "Then a single image would do. How many are drawn?"),
            (1 / taken, "That makes the mean over those that were drawn."),
            (1, "Without a factor the sum is too small, since most images are missing."),
        ],
        explanation=(
            f"Each image is there once in {images // taken} draws, and counts {images // taken} "
            "times when it is."
        ),
        solution=f"answer = {images} / {taken}",
    )


# ---- the direction of a part -----------------------------------------------------------------


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.vdot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


@redrawn(
    lambda upper, lower: np.hypot(upper, lower) in (5, 10, 13, 15, 17, 25),
    upper=(3, 24),
    lower=(-24, -3),
)
def _direction(upper: int = 6, lower: int = -8) -> Number:
    whole = np.array([[upper, 0], [0, lower]], dtype=np.float64)
    length = round(float(np.hypot(upper, lower)))
    return Number(
        key="approx-cosine",
        chapter=_CHAPTER,
        level=2,
        title="The direction of a part",
        prompt=(
            "A rule keeps the lower row of this weight gradient and sets the upper row to zero; "
            "then "
            "it doubles what it kept. What is the cosine between the result and the gradient?\n\n"
            + written_out(grad_weight=whole)
        ),
        hints=(
            "The cosine is the inner product divided by both lengths. What does doubling do to it?",
            f"The length of the gradient is the square root of {upper**2} + {lower**2}.",
        ),
        compute=lambda: _cosine(whole * [[0], [2]], whole),
        compute_mistakes=lambda: [
            (
                _cosine(whole * [[1], [0]], whole),
                "That is the cosine of the part that was dropped.",
            ),
            (
                _cosine(whole * [[0], [2]], whole) ** 2,
                "That is the share of the squared length. The cosine is its square root.",
            ),
            (
                2 * _cosine(whole * [[0], [2]], whole),
                "A cosine is never above 1. Doubling changes the length and not the direction.",
            ),
            (1, "Only if the dropped part were zero."),
            (
                -_cosine(whole * [[0], [2]], whole),
                "The kept number has the same sign in both, and minus times minus is plus.",
            ),
        ],
        explanation=(
            f"The length of the kept part by that of the whole, {-lower} by {length}; the factor "
            "drops out."
        ),
        solution=(
            f"whole, part = np.array([{upper}, 0, 0, {lower}]), np.array([0, 0, 0, {2 * lower}])\n"
            "answer = whole @ part / np.sqrt((whole @ whole) * (part @ part))"
        ),
    )


# ---- right on average ------------------------------------------------------------------------


def _signs(g: np.ndarray) -> np.ndarray:
    return np.sign(g) * np.abs(g).mean()


def _on_average() -> dict[str, np.ndarray]:
    """What each rule gives on average, over all draws of one image of three."""
    geometry = example("D").geometry
    x, _, _, g = example("D").arrays()

    def of(some: tuple[int, ...], scale: float) -> np.ndarray:
        mask = np.zeros((geometry.N, 1, 1, 1))
        mask[list(some)] = scale
        return windows.grad_weight(g * mask, x, geometry)

    draws = list(combinations(range(geometry.N), 1))
    limit = np.sort(np.abs(g), axis=None)[-len(g.ravel()) // 2]
    return {
        "The sign of every number of g, times the mean size.": windows.grad_weight(
            _signs(g), x, geometry
        ),
        "The larger half of the numbers of g.": windows.grad_weight(
            np.where(np.abs(g) >= limit, g, 0), x, geometry
        ),
        "One image of the three, drawn anew each time.": np.mean(
            [of(some, 1.0) for some in draws], axis=0
        ),
        "One image of the three, drawn anew each time, times 3.": np.mean(
            [of(some, 3.0) for some in draws], axis=0
        ),
    }


def _unbiased() -> int:
    x, _, _, g = example("D").arrays()
    right = windows.grad_weight(g, x, example("D").geometry)
    (place,) = (k for k, mean in enumerate(_on_average().values()) if np.allclose(mean, right))
    return place


_right_on_average = Choice(
    key="approx-on-average",
    chapter=_CHAPTER,
    level=2,
    title="Right on average",
    prompt=(
        "Four rules for the weight gradient of a batch of three images. Which of them gives, on "
        "average over many steps with the same operands, the exact gradient?"
    ),
    options=tuple(_on_average()),
    hints=(
        "A rule that draws nothing gives the same answer each time. Then the average is that "
        "answer.",
        "Of the two that draw: the gradient is the sum of three images' shares. What is the "
        "average of one share?",
    ),
    compute=_unbiased,
    compute_mistakes=lambda: [
        (0, "It gives the same answer every time, and that is not the gradient."),
        (1, "What is small is always dropped, and never made up for."),
        (2, "The average of one image's share is a third of the sum of all three."),
    ],
    explanation=(
        "Every image is drawn once in three times and then counts three times. The others are off "
        "in the same way at every step."
    ),
    solution="answer = 3  # drawn at random, and scaled up by what is missing",
)


# ---- a penalty on the input gradient ---------------------------------------------------------

_X, _W, _G = np.array([[1.0, 0, 2]]), np.array([[2.0, 1]]), np.array([[1.0, 3]])
_ROW = ConvGeometry(C=1, H=1, W=3, O=1, KH=1, KW=2)


def _four(row: np.ndarray) -> np.ndarray:
    return row[None, None]


def _first(w: np.ndarray, g: np.ndarray) -> np.ndarray:
    return loops.grad_input(_four(g), _four(w), _ROW)


def _penalty(x: np.ndarray, w: np.ndarray, g: np.ndarray) -> np.ndarray:
    _, _, to_weight = double_backward(_first(w, g), None, None, _four(g), _four(x), _four(w))
    assert to_weight is not None
    return to_weight[0, 0]


@redrawn(x=maps(1, 3, low=-2, high=3), w=maps(1, 2, low=1, high=4), g=maps(1, 2, low=-3, high=4))
def _second(x: np.ndarray = _X, w: np.ndarray = _W, g: np.ndarray = _G) -> Grid:
    first = " ".join(f"{n:g}".replace("-", "−") for n in _first(w, g).ravel())
    row, taps, sent = (array[0].astype(int).tolist() for array in (x, w, g))
    return Grid(
        key="approx-penalty",
        chapter=_CHAPTER,
        level=2,
        title="A penalty, by hand",
        prompt=(
            "One row. The input gradient of this layer is wᵀ·g, and the penalty is half the sum "
            "of its "
            "squares. What is the gradient of the penalty by the two weights?\n\n"
            + written_out(x=x, weight=w, grad_output=g)
        ),
        starter="answer = [..., ...]",
        hints=(
            "First the input gradient: its three numbers are g₀w₀, g₀w₁ + g₁w₀ and g₁w₁.",
            "The gradient of half a sum of squares is the number itself. So the input gradient "
            "is what comes back, in the shape of x.",
            "Then the weight gradient rule, with this row where the image stood: tap j meets the "
            "cells j and j + 1.",
        ),
        compute=lambda: _penalty(x, w, g),
        compute_mistakes=lambda: [
            (
                loops.grad_weight(_four(g), _four(x), _ROW)[0, 0],
                "That is the weight gradient of the first pass, with x as the image. In the second "
                "pass the input gradient stands in its place.",
            ),
            (
                2 * _penalty(x, w, g),
                "Half of the sum of squares: the 2 of the derivative and the half cancel.",
            ),
            (
                _penalty(x, w, g)[:, ::-1],
                "Right numbers, the wrong way round: tap 0 meets the cells 0 and 1.",
            ),
            (
                loops.forward(_first(w, g), _four(w), _ROW)[0, 0],
                "That is the gradient of the penalty by g: the input gradient, convolved with w.",
            ),
        ],
        explanation=(
            f"The input gradient is {first}. Each tap gets the products of g with the two of these "
            "numbers that it meets; x is not in it."
        ),
        solution=(
            f"x, w, g = np.array({row}), np.array({taps}), np.array({sent})\n"
            "first = np.convolve(g, w)\n"
            "answer = [[g @ first[0:2], g @ first[1:3]]]"
        ),
    )


# ---- what a penalty on the weight gradient moves ---------------------------------------------

_MOVES = {
    "x and g, and not the weight.": (True, True, False),
    "The weight and g, and not x.": (False, True, True),
    "x, the weight and g.": (True, True, True),
    "The weight alone.": (False, False, True),
}


def _moved() -> int:
    """Which operands have a gradient when a loss is made of grad_weight alone: x, g, weight."""
    rng = np.random.default_rng(0)
    draw = random_operands(ConvGeometry(N=2, C=2, H=4, W=5, O=3, KH=2, KW=2), rng)
    ggw = rng.integers(1, 4, draw.weight.shape).astype(float)
    to_g, to_x, to_weight = double_backward(None, ggw, None, draw.grad_output, draw.x, draw.weight)
    assert to_g is not None and to_x is not None and to_weight is not None
    moved = (bool(to_x.any()), bool(to_g.any()), bool(to_weight.any()))
    return list(_MOVES.values()).index(moved)


_who_moves = Choice(
    key="approx-who-moves",
    chapter=_CHAPTER,
    level=3,
    title="A loss made of a gradient",
    prompt=(
        "A loss is made of `grad_weight` alone, for example the sum of its squares. It is "
        "differentiated by the three operands of the backward pass: x, the weight and g. Which "
        "of them get a gradient that is not zero?"
    ),
    options=tuple(_MOVES),
    hints=(
        "Of which of the three is grad_weight made?",
        "Its products are x·g. What does not stand in a sum has no gradient by it.",
    ),
    compute=_moved,
    compute_mistakes=lambda: [
        (
            1,
            "That is so for a loss made of the input gradient, whose products are w·g.",
        ),
        (2, "Look at the products of grad_weight: one of the three is not in them."),
        (3, "The gradient of the weight is made without the weight."),
    ],
    explanation=(
        "grad_weight is made of x and g. A weight still gets a gradient through g, when g comes "
        "from layers behind this one."
    ),
    solution="answer = 0  # its products are x·g",
)


# ---- write it --------------------------------------------------------------------------------


def _exact(geometry: ConvGeometry) -> Any:
    """The exact backward pass of tensors, as a rule is handed it."""

    def exact(grad_output: Any, x: Any, weight: Any, *_: Any) -> tuple[Any, Any, Any]:
        import torch

        g, image, kernel = (each.detach().numpy() for each in (grad_output, x, weight))
        found = (
            windows.grad_input(g, kernel, geometry),
            windows.grad_weight(g, image, geometry),
            windows.grad_bias(g, geometry),
        )
        a, b, c = (torch.from_numpy(np.ascontiguousarray(each)) for each in found)
        return a, b, c

    return exact


def _sign_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        _, x, weight, g = random_operands(geometry, rng)
        sizes = np.abs(g).mean(axis=(0, 2, 3), keepdims=True)
        rough = np.sign(g) * sizes

        def three(g: np.ndarray, geometry: ConvGeometry = geometry) -> tuple[np.ndarray, ...]:
            to_x = windows.grad_input(g, weight, geometry)  # noqa: B023
            to_weight = windows.grad_weight(g, x, geometry)  # noqa: B023
            return to_x, to_weight, windows.grad_bias(g, geometry)

        wrong = {
            "your rule changes nothing: these are the exact gradients.": g,
            "the signs are right, and their sizes are missing.": np.sign(g),
            "you took one mean over all kernels: each has its own.": np.sign(g) * np.abs(g).mean(),
            "the mean is taken over numbers with their signs: take their sizes.": (
                np.sign(g) * g.mean(axis=(0, 2, 3), keepdims=True)
            ),
        }
        mistakes = tuple(
            (each, sentence) for sentence, sent in wrong.items() for each in three(sent)
        )
        known: dict[str, Any] = {
            "geometry": geometry,
            "target": ("input", "weight", "bias"),
            "x": x,
            "weight": weight,
            "grad_output": rough,
        }
        yield Trial((_exact(geometry), g, x, weight), three(rough), known, mistakes)


_kernel_signs = TensorFunction(
    key="approx-kernel-signs",
    chapter=_CHAPTER,
    level=2,
    title="Signs, with a size for each kernel",
    prompt=(
        "Write the rule `signs(exact, grad_output, x, weight)`: every number of grad_output is "
        "replaced by its sign times the mean size of the numbers *of its own kernel*, over all "
        "images and positions. Give back what `exact` makes of it."
    ),
    starter=(
        "def signs(exact, grad_output, x, weight):\n"
        '    """→ the three gradients, from signs of grad_output (N,O,OH,OW)"""\n'
        "    ..."
    ),
    hints=(
        "`grad_output.abs()` are the sizes. Over which axes is the mean, if each kernel o keeps "
        "its own?",
        "`mean((0, 2, 3), keepdim=True)` is (1, O, 1, 1), and a product with it works for every "
        "image and position.",
    ),
    trials=_sign_trials,
    solution=(
        "def signs(exact, grad_output, x, weight):\n"
        "    sizes = grad_output.abs().mean((0, 2, 3), keepdim=True)  # 1 o 1 1\n"
        "    return exact(grad_output.sign() * sizes, x, weight)"
    ),
)


def _second_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=lambda g: g.groups == 1):
        _, x, weight, g = random_operands(geometry, rng)
        ggx, ggw = (rng.integers(-3, 4, each.shape).astype(float) for each in (x, weight))
        how = {name: getattr(geometry, name) for name in ("stride", "padding", "dilation")}
        expected = double_backward(ggx, ggw, None, g, x, weight, **how)
        assert all(each is not None for each in expected)
        known: dict[str, Any] = {"geometry": geometry, "target": ("output", "input", "weight")}
        arguments = (ggx, ggw, g, x, weight, how)
        mistakes = (
            (
                windows.forward(x, ggw, geometry),
                "by grad_output you have one of two terms, the one with ggw. The loss also depends "
                "on grad_input, and that on grad_output.",
            ),
            (
                windows.forward(ggx, weight, geometry),
                "by grad_output you have one of two terms, the one with ggx. The loss also depends "
                "on grad_weight, and that on grad_output.",
            ),
            (
                windows.forward(ggx, ggw, geometry),
                "by grad_output you convolved ggx with ggw. Each of them stands for one operand, "
                "with the other operand beside it.",
            ),
            (
                windows.grad_input(g, weight, geometry),
                "by x this is grad_input itself. In the second pass ggw stands where the weight "
                "was.",
            ),
            (
                windows.grad_weight(g, x, geometry),
                "by weight this is grad_weight itself. In the second pass ggx stands where x was.",
            ),
        )
        yield Trial(arguments, tuple(map(np.asarray, expected)), known, mistakes)


_second_pass = Function(
    key="approx-second",
    chapter=_CHAPTER,
    level=3,
    title="The second backward pass",
    prompt=(
        "Write `second(ggx, ggw, grad_output, x, weight, how)` in NumPy, with the package's "
        "`conv2d` and `conv2d_backward`. `ggx` is what a loss hands back for grad_input, in the "
        "shape of x; `ggw` what it hands back for grad_weight, in the shape of weight; `how` holds "
        "stride, padding and dilation for both functions. Return the gradients by grad_output, by "
        "x and by weight."
    ),
    starter=(
        "def second(ggx, ggw, grad_output, x, weight, how):\n"
        '    """→ gradients by grad_output, x and weight, in their shapes"""\n'
        "    ..."
    ),
    hints=(
        "By grad_output: two convolutions, added. In one of them ggx stands for x, in the other "
        "ggw for the weight.",
        "By x: the input gradient of a layer whose weight is ggw. By weight: the weight gradient "
        "of a layer whose image is ggx.",
        "One call of `conv2d_backward(grad_output, ggx, ggw, **how)` gives both, and the bias "
        "gradient with them.",
    ),
    trials=_second_trials,
    solution=(
        "def second(ggx, ggw, grad_output, x, weight, how):\n"
        "    to_g = conv2d(ggx, weight, **how) + conv2d(x, ggw, **how)\n"
        "    to_x, to_weight, _ = conv2d_backward(grad_output, ggx, ggw, **how)\n"
        "    return to_g, to_x, to_weight"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _top_two,
    _factor,
    _direction,
    _right_on_average,
    _second,
    _kernel_signs,
    _who_moves,
    _second_pass,
)
