"""Exercises for *The weight gradient is a convolution*."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import windows
from ..checks import Draw, random_geometry, random_operands
from ..examples import Example, example
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import like, redrawn
from .words import called, given, mutant_says, numbers_of, written_out

__all__ = ["EXERCISES"]

_CHAPTER = "weight_gradient"
_A, _B, _C = example("A"), example("B"), example("C")


def _grad_weight(letter: str, grad_output: np.ndarray | None = None) -> np.ndarray:
    """The weight gradient of a running example, (O,C/G,KH,KW)."""
    x, _, _, g = example(letter).arrays()
    return windows.grad_weight(
        g if grad_output is None else grad_output, x, example(letter).geometry
    )


def _mutated(name: str, letter: str, grad_output: np.ndarray | None = None) -> np.ndarray:
    """What a mutant gives on a running example."""
    x, _, _, g = example(letter).arrays()
    return MUTANTS[name](g if grad_output is None else grad_output, x, example(letter).geometry)


# ---- one tap of example B ------------------------------------------------------------------

# The third tap: no tap that it could be taken for holds the same number.
_I, _J = 0, 2


def _taps(of: Example) -> np.ndarray:
    x, _, _, g = of.arrays()
    return windows.grad_weight(g, x, of.geometry)[0, 0]


def _one_tap_mistakes(of: Example, i: int, j: int) -> list[tuple[float, str]]:
    names = ("wgrad_g_turned", "wgrad_g_transposed", "wgrad_position_mean")
    x, _, _, g = of.arrays()
    taps = _taps(of)
    return [
        (
            taps[i, j - 1],
            f"That is tap ({i}, {j - 1}). Tap ({i}, {j}) reads one column further to the right.",
        ),
        (
            taps[j, i],
            f"That is tap ({j}, {i}): the row comes first, `i` counts down, `j` to the right.",
        ),
        (taps[0, 0], f"That is tap (0, 0). Tap ({i}, {j}) begins at row {i}, column {j} of x."),
        *((MUTANTS[name](g, x, of.geometry)[0, 0, i, j], mutant_says(name)) for name in names),
        (
            x[0, 0, i, j] * g[0, 0, 0, 0],
            "That is the product of the first window alone. Every window adds one.",
        ),
    ]


@redrawn(lambda of, i, j: i < j, of=like("B"), i=(0, 1), j=(1, 2))
def _one_tap(of: Example = _B, i: int = _I, j: int = _J) -> Number:
    return Number(
        key="weight-one-tap",
        chapter=_CHAPTER,
        level=1,
        title="One tap",
        prompt=(
            f"{called(of)}: a 3×3 kernel slides over a 5×5 image, so `grad_output` is 3×3 too. "
            "Which "
            f"number is `grad_weight[0, 0, {i}, {j}]`?\n\n{numbers_of(of, 'x', 'grad_output')}"
        ),
        hints=(
            f"Tap ({i}, {j}) reads a different cell of x in each window. Where does it stand in "
            "window (0, 0), and where in window (2, 2)?",
            f"All together it reads the block of 3×3 cells that begins at row {i}, column {j}.",
            "Lay grad_output on that block, as it is, and add the nine products.",
        ),
        compute=lambda: _taps(of)[i, j],
        compute_mistakes=lambda: _one_tap_mistakes(of, i, j),
        explanation=(
            f"Tap ({i}, {j}) reads rows {i} to {i + 2} and columns {j} to {j + 2} of x as the "
            "window moves. Nine products of these cells with grad_output add up to its gradient."
        ),
        solution=(
            f"{given(of, 'x', 'grad_output')}\n"
            f"answer = (x[0, 0, {i}:{i + 3}, {j}:{j + 3}] * grad_output[0, 0]).sum()"
        ),
    )


# ---- how many products meet in a tap -------------------------------------------------------


def _how_many_mistakes(g: ConvGeometry) -> list[tuple[int, str]]:
    return [
        (g.OH * g.OW, f"That is one image's share. There are {g.N} images, and their shares add."),
        (
            g.KH * g.KW,
            "That is the number of taps, and of products in one output cell. Here one tap is fixed "
            "and the window moves.",
        ),
        (g.N * g.KH * g.KW, "You counted taps. Here one tap is fixed and the window moves."),
        (
            g.N * g.H * g.W,
            "That counts all cells of x. The stride lets the tap skip most of them.",
        ),
        (
            g.H * g.W,
            "That counts the cells of one image. The stride lets the tap skip most of them.",
        ),
    ]


@redrawn(
    of=lambda dice: replace(
        example("C").geometry, N=dice.between(2, 4), H=dice.between(5, 9), W=dice.between(5, 9)
    )
)
def _how_many(of: ConvGeometry = _C.geometry) -> Number:
    named = "Example C: two" if of == example("C").geometry else f"{of.N}"
    return Number(
        key="weight-how-many",
        chapter=_CHAPTER,
        level=1,
        title="How many products?",
        prompt=(
            f"{named} images of {of.H}×{of.W} with one channel, a 3×3 kernel, stride 2, no "
            "padding. How many products x·g add up to one tap of the weight gradient?"
        ),
        hints=(
            "A tap takes part once in every output cell. How many output cells are there in one "
            "image?",
            "All images use the same kernel.",
        ),
        compute=lambda: of.N * of.OH * of.OW,
        compute_mistakes=lambda: _how_many_mistakes(of),
        explanation=(
            "One product for every output cell of every image, N·OH·OW, and the same number for "
            "every tap, whatever the kernel's size."
        ),
        solution=f"answer = {of.N} * {of.OH} * {of.OW}",
    )


# ---- all taps of example A -----------------------------------------------------------------


def _one_pixel_mistakes(of: Example) -> list[tuple[np.ndarray, str]]:
    x, _, _, g = of.arrays()
    right = _taps(of)
    corner = np.zeros_like(right)
    corner[: g.shape[2], : g.shape[3]] = x[0, 0, 0, 0] * g[0, 0]
    return [
        (
            MUTANTS["wgrad_g_turned"](g, x, of.geometry)[0, 0],
            "The right taps, but grad_output stands in them the wrong way round. Window (0, 0) "
            "begins furthest up and to the left, so the pixel lies deepest inside it, under tap "
            "(2, 2).",
        ),
        (
            right / x[0, 0, 0, 0],
            "These are the right places with g alone. Each product is g times the pixel.",
        ),
        (
            corner,
            "That is where the taps would be without padding. The pixel lies in the middle of the "
            "padded map.",
        ),
        (MUTANTS["wgrad_shifted"](g, x, of.geometry)[0, 0], mutant_says("wgrad_shifted")),
        (
            MUTANTS["wgrad_position_mean"](g, x, of.geometry)[0, 0],
            mutant_says("wgrad_position_mean"),
        ),
    ]


@redrawn(of=like("A"))
def _one_pixel(of: Example = _A) -> Grid:
    return Grid(
        key="weight-one-pixel",
        chapter=_CHAPTER,
        level=2,
        title="All sixteen taps of one pixel",
        prompt=(
            f"{called(of)}: the image is a single pixel, padded with two cells of zeros on every "
            "side; the "
            "kernel is 4×4 and `grad_output` 2×2. What is `grad_weight[0, 0]`?\n\n"
            + numbers_of(of, "x", "grad_output")
        ),
        starter="answer = np.full((4, 4), ...)",
        hints=(
            "A tap has a gradient only if in some window it lies on the pixel: all other "
            "products are products with 0. How many taps are that?",
            "In window (p, q) the pixel lies under tap (2 − p, 2 − q).",
            "So `grad_weight[0, 0, 2 − p, 2 − q]` is the pixel times `grad_output[0, 0, p, q]`.",
        ),
        compute=lambda: _taps(of),
        compute_mistakes=lambda: _one_pixel_mistakes(of),
        operands=lambda: {
            "geometry": of.geometry,
            "target": "weight",
            "x": of.arrays().x,
            "grad_output": of.arrays().grad_output,
        },
        explanation=(
            "Four of the sixteen taps meet the pixel, each in one window. grad_output appears "
            "turned by 180°, because the pixel stays while the window moves: with a single pixel "
            "nothing adds up that could hide it."
        ),
        solution=(
            f"{given(of, 'x', 'grad_output')}\n"
            "answer = np.zeros((4, 4))\n"
            "answer[1:3, 1:3] = x[0, 0, 0, 0] * grad_output[0, 0, ::-1, ::-1]"
        ),
    )


# ---- the crop ------------------------------------------------------------------------------


def _uncropped() -> np.ndarray:
    """[[rows, columns]] of example C's weight gradient before the crop."""
    return np.array([_mutated("wgrad_no_crop", "C").shape[2:]], dtype=np.float64)


def _crop_mistakes() -> list[tuple[np.ndarray, str]]:
    g = example("C").geometry
    rows, cols = _uncropped()[0]
    return [
        (
            np.array([[g.KH, g.KW]]),
            "That is the kernel. One row of x is read by no window, and grad_output finds room "
            "there once more.",
        ),
        (np.array([[cols, rows]]), "The rows come first. Which of the two axes has a leftover?"),
        (
            np.array([[rows, cols + 1]]),
            "Along the columns the last window ends at the last column: nothing is left over "
            "there.",
        ),
        (
            np.array([[g.H - g.OH + 1, g.W - g.OW + 1]]),
            f"You slid a dense grad_output over x. Its cells lie {g.stride[0]} apart: the stride "
            "has become the dilation.",
        ),
        (
            np.array([[g.H, g.W]]),
            "That is the image. grad_output is slid over it and must lie inside.",
        ),
    ]


_crop = Grid(
    key="weight-crop",
    chapter=_CHAPTER,
    level=2,
    title="How many rows and columns come out?",
    prompt=(
        "Example C: the images are 6×7, the kernel 3×3, the stride 2, so `grad_output` is 2×3. The "
        "cells of x that one tap met lie 2 apart, and from tap to tap the pattern moves by 1. Now "
        "let grad_output slide over x like that, its cells 2 apart, in steps of 1. In how many "
        "rows and columns can it stand?"
    ),
    starter="answer = [..., ...]  # rows, columns",
    hints=(
        "With dilation 2 the two rows of grad_output span three rows of x, its three columns span "
        "five.",
        "It moves by one cell, the forward pass' dilation. In how many rows can it stand, and in "
        "how many columns?",
    ),
    compute=_uncropped,
    compute_mistakes=_crop_mistakes,
    explanation=(
        "Along the columns it fits as often as the kernel has columns. Along the rows it fits once "
        "more: the row of x that no window read gives it room. The next lines say what to do."
    ),
    solution="geometry = example('C').geometry\n"
    "answer = [geometry.KH + geometry.surplus[0], geometry.KW + geometry.surplus[1]]",
    same_for_all="The question is about the leftover of example C; the chapter counts it along.",
)


# ---- which mistake left these numbers ------------------------------------------------------

# Each choice beside the mutant that computes it.
_LEFT_BY = {
    "The finished gradient was turned by 180°.": "wgrad_reversed",
    "Rows and columns of the finished gradient were exchanged.": "wgrad_transposed",
    "`grad_output` was turned by 180° before it slid over `x`.": "wgrad_g_turned",
    "Rows and columns of `grad_output` were exchanged.": "wgrad_g_transposed",
}


def _culprit() -> int:
    """The place of the mistake that leaves the grid in the prompt; all four leave others."""
    given = [_mutated(name, "B") for name in _LEFT_BY.values()]
    (place,) = (k for k, grad in enumerate(given) if np.array_equal(grad, _crime()))
    return place


def _crime() -> np.ndarray:
    return _mutated("wgrad_g_turned", "B")


_what_happened = Choice(
    key="weight-what-happened",
    chapter=_CHAPTER,
    level=2,
    title="What happened here?",
    prompt=(
        "Somebody computes the weight gradient of example B and gets the `grad_weight` below. It "
        "is wrong. Which mistake leaves these numbers?\n\n"
        + written_out(
            x=example("B").arrays().x[0, 0],
            grad_output=example("B").arrays().grad_output[0, 0],
            grad_weight=_crime()[0, 0],
        )
    ),
    options=tuple(_LEFT_BY),
    hints=(
        "The right gradient has a 3 at tap (0, 0); you saw the player fill it. Do the right "
        "numbers stand here in other places, or are they other numbers?",
        "If the finished gradient had been turned, that 3 would stand at tap (2, 2). If its rows "
        "and columns had been exchanged, it would stand where it was.",
        "Two mistakes are left, and they agree at tap (0, 0). Lay each changed grad_output on the "
        "block of x that begins at row 0, column 1.",
    ),
    compute=_culprit,
    compute_mistakes=lambda: [
        (0, "Then the nine right numbers would stand here, only turned: the 3 at tap (2, 2)."),
        (1, "Then the nine right numbers would stand here: the 3 still at tap (0, 0)."),
        (3, "With rows and columns exchanged, tap (0, 0) is 9 too, but tap (0, 1) is 11."),
    ],
    explanation=(
        "The numbers are not the right ones in other places, so something was changed before the "
        "sums were made. With grad_output turned, the block of x from column 1 adds up to the 2 at "
        "tap (0, 1)."
    ),
    solution="answer = 2  # grad_output was turned",
)


# ---- which convolution ---------------------------------------------------------------------

# Each choice beside the mutant that computes it; None is the right rule.
_SWAP_CHOICES = {
    "`conv2d(x, g, stride=2, dilation=1)`": "swap_stride_dilation",
    "`conv2d(x, g, stride=1, dilation=2)[..., :KH, :KW]`": None,
    "`conv2d(x, g, stride=1, dilation=2)`": "wgrad_no_crop",
    "`conv2d(x, g[..., ::-1, ::-1], stride=1, dilation=2)[..., :KH, :KW]`": "wgrad_g_turned",
}


def _right_swap() -> int:
    """The place of the choice that gives the gradient on example C, where all four differ."""
    given = [
        _grad_weight("C") if name is None else _mutated(name, "C")
        for name in _SWAP_CHOICES.values()
    ]
    (place,) = (k for k, grad in enumerate(given) if np.array_equal(grad, _grad_weight("C")))
    return place


_swap = Choice(
    key="weight-swap",
    chapter=_CHAPTER,
    level=2,
    title="Which convolution?",
    prompt=(
        "The forward pass has stride 2 and dilation 1. Let `x` and `g` already have their batch "
        "and channel axes exchanged. Which convolution is the weight gradient, for every image "
        "size?"
    ),
    options=tuple(_SWAP_CHOICES),
    hints=(
        "Hold a tap fixed and let the window move: how far apart are the cells of x that it reads?",
        "Now let the tap move by one: how far does that pattern of cells move?",
        "An image may have rows that no window reads. What does the convolution do with them?",
    ),
    compute=_right_swap,
    compute_mistakes=lambda: [
        (
            0,
            "Here stride and dilation keep their places. The cells that one tap reads lie 2 apart, "
            "so g is spread: the stride becomes the dilation.",
        ),
        (
            2,
            "Nearly: where the windows leave a row or a column of x unread, this gives more taps "
            "than the kernel has.",
        ),
        (
            3,
            "g is laid on x as it is. With the turn, the first product would meet the last window.",
        ),
    ],
    explanation=(
        "A tap reads cells that lie `stride` apart, so g is spread by it; the next tap reads cells "
        "`dilation` further, so that is the step. What the windows left over is cropped."
    ),
    solution="answer = 1  # stride and dilation change places, then the crop",
)


# ---- what a sum does not see ---------------------------------------------------------------

_BLIND_CHOICES = ("wgrad_reversed", "wgrad_last_image", "wgrad_g_transposed", "wgrad_no_crop")


def _blind() -> int:
    """The one mutant that is right on example C when grad_output is 1 everywhere."""
    ones = np.ones(example("C").geometry.output_shape)
    right = _grad_weight("C", ones)
    given = [_mutated(name, "C", ones) for name in _BLIND_CHOICES]
    (place,) = (k for k, grad in enumerate(given) if np.array_equal(grad, right))
    return place


_blind_sum = Choice(
    key="weight-blind-sum",
    chapter=_CHAPTER,
    level=3,
    title="What does a sum not see?",
    prompt=(
        "Somebody tests a weight gradient with `y.sum().backward()` and compares with PyTorch. One "
        "of these mistakes passes that test for every batch, image size and stride (let the output "
        "be square). Which?"
    ),
    options=tuple(MUTANTS[name].sentence for name in _BLIND_CHOICES),
    hints=(
        "What is grad_output when the loss is the sum of all outputs?",
        "Which of the mistakes changes grad_output, and does it change that one?",
    ),
    compute=_blind,
    compute_mistakes=lambda: [
        (
            0,
            "The gradient itself is not the same in all taps, even if grad_output is 1 everywhere, "
            "so turning it shows.",
        ),
        (
            1,
            "With a single image it passes. With two, the share of the last is not the sum, "
            "whether grad_output is 1 or not.",
        ),
        (
            3,
            "Where nothing is left over it passes. Where the windows leave enough rows unread, "
            "the result has the wrong shape, whatever the numbers are.",
        ),
    ],
    explanation=(
        "The sum sends back a grad_output of ones, and ones stay ones however you turn, transpose "
        "or shuffle them. Test with a random grad_output."
    ),
    solution="answer = 2  # a grid of ones, transposed, is a grid of ones",
)


# ---- write it ------------------------------------------------------------------------------


def _weight_trial(arguments: tuple[Any, ...], draw: Draw) -> Trial:
    geometry, x, _, g = draw
    known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
    return Trial(arguments, windows.grad_weight(g, x, geometry), known)


def _tap_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = next(geometries(rng))
    steps: list[dict[str, Any]] = [{}, {"C": 2}, {"O": 3}, {"N": 3}]
    for sizes in (*steps, *({"N": 2, "C": 3, "O": 4},) * 3):
        geometry = replace(plain, **sizes)
        draw = random_operands(geometry, rng)
        yield _weight_trial((draw.grad_output, draw.x, (geometry.KH, geometry.KW)), draw)


_by_taps = Function(
    key="weight-by-taps",
    chapter=_CHAPTER,
    level=2,
    title="Tap by tap",
    prompt=(
        "Write `grad_weight(grad_output, x, kernel_size)` with one loop over the taps: "
        "`grad_output` is `(N, O, OH, OW)`, `x` is `(N, C, H, W)`, `kernel_size` is `(KH, KW)`, "
        "the result `(O, C, KH, KW)`. Stride, dilation and groups are 1, there is no padding."
    ),
    starter=(
        "def grad_weight(grad_output, x, kernel_size):\n"
        '    """grad_output (N,O,OH,OW), x (N,C,H,W) → (O,C,KH,KW)"""\n'
        "    ..."
    ),
    hints=(
        "Tap (i, j) reads the block `x[:, :, i : i + OH, j : j + OW]` while the window moves.",
        "Multiply the block with grad_output and add over images and positions; kernels o and "
        "channels c stay.",
        '`np.einsum("nopq,ncpq->oc", grad_output, block)` does that.',
    ),
    trials=_tap_trials,
    solution=(
        "def grad_weight(grad_output, x, kernel_size):\n"
        "    KH, KW = kernel_size\n"
        "    O, OH, OW = grad_output.shape[1:]\n"
        "    taps = np.zeros((O, x.shape[1], KH, KW))\n"
        "    for i, j in np.ndindex(KH, KW):\n"
        "        block = x[:, :, i : i + OH, j : j + OW]  # n c p q\n"
        '        taps[:, :, i, j] = np.einsum("nopq,ncpq->oc", grad_output, block)\n'
        "    return taps"
    ),
)


def _one_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1


def _needs_the_crop(geometry: ConvGeometry) -> bool:
    return _one_group(geometry) and max(geometry.surplus) > 0


def _convolution_trials(rng: np.random.Generator) -> Iterator[Trial]:
    # the draws may leave nothing over, and then a missing crop would pass
    cropped = random_geometry(rng, _needs_the_crop, padding_modes=("zeros",))
    for geometry in (*geometries(rng, only=_one_group), cropped):
        draw = random_operands(geometry, rng)
        yield _weight_trial((draw.grad_output, draw.x, geometry), draw)


_by_convolution = Function(
    key="weight-by-convolution",
    chapter=_CHAPTER,
    level=3,
    title="With one convolution",
    prompt=(
        "Write `grad_weight(grad_output, x, geometry)` with a single call of `conv2d`, for any "
        "batch, channels, stride, zero padding and dilation, and one group. The result has the "
        "shape `geometry.weight_shape`."
    ),
    starter=(
        "def grad_weight(grad_output, x, geometry):\n"
        '    """grad_output (N,O,OH,OW), x (N,C,H,W) → geometry.weight_shape"""\n'
        "    ..."
    ),
    hints=(
        "The convolution adds up over its input channels, and here the sum runs over the images: "
        "exchange batch and channels of both, with `swapaxes(0, 1)`.",
        "Stride and dilation change places; the padding stays.",
        "The result has channels first and kernels second: exchange them back, and crop to "
        "`[:, :, :geometry.KH, :geometry.KW]`.",
    ),
    trials=_convolution_trials,
    solution=(
        "def grad_weight(grad_output, x, geometry):\n"
        "    found = conv2d(\n"
        "        x.swapaxes(0, 1),  # c n h v\n"
        "        grad_output.swapaxes(0, 1),  # o n p q\n"
        "        stride=geometry.dilation,\n"
        "        dilation=geometry.stride,\n"
        "        padding=geometry.padding,\n"
        "    )\n"
        "    return found.swapaxes(0, 1)[:, :, : geometry.KH, : geometry.KW]"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _one_tap,
    _how_many,
    _one_pixel,
    _crop,
    _what_happened,
    _swap,
    _by_taps,
    _blind_sum,
    _by_convolution,
)
