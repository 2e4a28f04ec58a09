"""Exercises for *Bias, batch, and knowing you are right*."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .. import windows
from ..checks import Draw, random_operands
from ..examples import Example, example
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import is_of_the_book, like, maps, redrawn
from .words import written_out

__all__ = ["EXERCISES"]

_CHAPTER = "bias_and_checks"
_B = example("B")


# ---- how many ones -------------------------------------------------------------------------

_MANY = ConvGeometry(N=8, C=3, H=12, W=12, O=16, KH=3, KW=3)


def _ones_mistakes(g: ConvGeometry) -> list[tuple[int, str]]:
    return [
        (g.OH * g.OW, "That is one image's share. The bias reaches the maps of all images."),
        (g.N, "That counts the images. In each of them the bias reaches every cell of the map."),
        (
            g.N * g.O * g.OH * g.OW,
            "That adds up all maps. Each kernel has a bias of its own, which reaches its own maps.",
        ),
        (
            g.N * g.H * g.W,
            "That counts the cells of x. The bias is added to the cells of y, of which there are "
            "fewer.",
        ),
        (1, "That would be the mean. Every cell passes its 1 on in full."),
    ]


@redrawn(images=(2, 9), size=(6, 14), kernels=[4, 8, 16, 32])
def _sum_of_ones(images: int = 8, size: int = 12, kernels: int = 16) -> Number:
    of = replace(_MANY, N=images, H=size, W=size, O=kernels)
    return Number(
        key="bias-sum-of-ones",
        chapter=_CHAPTER,
        level=1,
        title="The bias gradient of a sum",
        prompt=(
            f"A batch of {images} images of {size}×{size} with 3 channels goes through {kernels} "
            "kernels of 3×3, stride 1, no padding. The loss is `y.sum()`. Which number stands in "
            "every cell of `grad_bias`?"
        ),
        hints=(
            "With the sum as the loss, every number of grad_output is 1.",
            "How many cells does one output map have, and in how many images is there one?",
        ),
        compute=lambda: of.N * of.OH * of.OW,
        compute_mistakes=lambda: _ones_mistakes(of),
        explanation=(
            f"Maps of {of.OH}×{of.OW} in {images} images: {images * of.OH * of.OW} cells, and each "
            "passes on a 1."
        ),
        solution=f"answer = {images} * {of.OH} * {of.OW}",
    )


# ---- two kernels by hand -------------------------------------------------------------------

# Two images, two kernels, maps of 2×2: square in every way, so that wrong axes keep the shape.
_SENT = np.array(
    [[[[1, 2], [0, -1]], [[3, 0], [1, 1]]], [[[2, 0], [4, 1]], [[-2, 1], [0, 5]]]], dtype=float
)


def _two_mistakes(sent: np.ndarray) -> list[tuple[np.ndarray, str]]:
    shares = sent.sum(axis=(2, 3))  # n o
    return [
        (
            shares.sum(axis=1)[None],
            "You added up each image over its kernels. It is each kernel over the images.",
        ),
        (
            MUTANTS["bias_axes_012"](sent, ConvGeometry(N=2, C=1, H=2, W=2, O=2, KH=1, KW=1))[None],
            "Those are the sums of the columns q. The axis that stays is o, the second.",
        ),
        (shares[:1], "That is the share of the first image alone."),
        (shares[1:], "That is the share of the second image alone."),
        (
            shares.mean(axis=0)[None],
            "That is the mean of the two images. Their shares add up.",
        ),
        (
            sent.mean(axis=(2, 3)).sum(axis=0)[None],
            "You took the mean over the positions. The bias reaches every cell in full.",
        ),
    ]


@redrawn(sent=maps(2, 2, 2, 2, low=-3, high=5))
def _two_kernels(sent: np.ndarray = _SENT) -> Grid:
    return Grid(
        key="bias-two-kernels",
        chapter=_CHAPTER,
        level=2,
        title="Two kernels, two images",
        prompt=(
            "Two images, two kernels, and maps of 2×2, so there are four maps in `grad_output`; "
            "the "
            "first index is the image, the second the kernel. Fill in `grad_bias`.\n\n"
            + written_out(**{f"grad_output[{n},{o}]": sent[n, o] for n, o in np.ndindex(2, 2)})
        ),
        starter="answer = [..., ...]",
        hints=(
            "The bias of kernel 0 was added to the maps with second index 0. Which two are they?",
            "Eight numbers add up to one. Nothing is multiplied.",
        ),
        compute=lambda: sent.sum(axis=(0, 2, 3))[None],
        compute_mistakes=lambda: _two_mistakes(sent),
        explanation="Kernel 0 owns the first map of each image, kernel 1 the second.",
        solution="answer = ["
        + ", ".join(f"{a:g} + {b:g}" for a, b in sent.sum(axis=(2, 3)).T)
        + "]",
    )


# ---- where wrong axes keep the shape -------------------------------------------------------

_SHAPES = ((8, 5, 7, 7), (5, 8, 7, 5), (8, 5, 7, 5), (5, 5, 8, 8))


def _trap() -> int:
    """The place of the shape in which the sum over the first three axes looks right."""
    (place,) = (
        k
        for k, shape in enumerate(_SHAPES)
        if np.zeros(shape).sum(axis=(0, 1, 2)).shape == np.zeros(shape).sum(axis=(0, 2, 3)).shape
    )
    return place


_square_trap = Choice(
    key="bias-square-trap",
    chapter=_CHAPTER,
    level=2,
    title="Which shape lets it through?",
    prompt=(
        "Somebody writes `grad_output.sum(axis=(0, 1, 2))`, which is right when the channels come "
        "last. Here they come second. With which shape of `grad_output` does the result have the "
        "right *shape* all the same?"
    ),
    options=tuple(str(shape) for shape in _SHAPES),
    hints=(
        "One axis stays. Which one, and how long is it?",
        "The result should be as long as there are kernels, the second number of the shape.",
    ),
    compute=_trap,
    compute_mistakes=lambda: [
        (0, "The result has 7 numbers, one for each column, where there are 5 kernels."),
        (1, "The result has 5 numbers, as there are columns and images. There are 8 kernels."),
        (3, "The result has 8 numbers. Images and kernels being equally many does not help."),
    ],
    explanation=(
        "The last axis stays, and it is as long as the second. So the shape is right and every "
        "number is wrong. Let sizes in a test be different from each other."
    ),
    solution="answer = 2  # as many columns as kernels",
)


# ---- two parts of a batch ------------------------------------------------------------------


def _whole_tap(n: int, m: int, first: int, rest: int) -> float:
    """n and m images, and what a tap holds after each part."""
    return (n * first + m * rest) / (n + m)


def _shared_out(n: int, m: int, first: int, rest: int) -> bool:
    return n != m and first != rest and (n * first + m * rest) % (n + m) == 0


@redrawn(_shared_out, n=(2, 5), m=(2, 6), first=(4, 30), rest=(4, 30))
def _two_parts(n: int = 3, m: int = 5, first: int = 12, rest: int = 20) -> Number:
    return Number(
        key="batch-two-parts",
        chapter=_CHAPTER,
        level=2,
        title="A batch in two parts",
        prompt=(
            f"A batch of {n + m} images does not fit into memory, so it is sent through in two "
            f"parts of {n} and {m}. The loss of a part is the *mean* over its images. After the "
            f"first part a tap of the weight gradient holds {first}, and the second part alone "
            f"gives {rest}. What would it hold if the loss were the mean over all {n + m} images "
            "at once?"
        ),
        hints=(
            "A mean is a sum divided by the number of images. What is the sum of the first part?",
            f"{n}·{first} and {m}·{rest} are the sums. They add up; then divide by {n + m}.",
        ),
        compute=lambda: _whole_tap(n, m, first, rest),
        compute_mistakes=lambda: [
            (
                first + rest,
                "Sums add up, but these are means: each was divided by its own number of images.",
            ),
            (
                (first + rest) / 2,
                "The mean of the two means would be right if the parts were equally large.",
            ),
            (
                n * first + m * rest,
                "That is the sum over the images. The loss is their mean.",
            ),
            (
                (first + rest) / (n + m),
                "The two means were divided once already. Make sums of them first.",
            ),
        ],
        explanation=(
            f"({n}·{first} + {m}·{rest})/{n + m}. What adds up are the images' shares; the loss "
            "alone decides whether they "
            "are divided, and by what."
        ),
        solution=f"answer = ({n} * {first} + {m} * {rest}) / {n + m}",
    )


# ---- a step in a direction -----------------------------------------------------------------


def _slopes(of: Example) -> np.ndarray:
    x, _, _, g = of.arrays()
    return windows.grad_weight(g, x, of.geometry)[0, 0]


@redrawn(of=like("B"), up=(2, 4))
def _one_step(of: Example = _B, up: int = 2) -> Number:
    whose = "example B" if is_of_the_book(of) else "a layer with one kernel"
    slopes = _slopes(of)
    first, last = slopes[0, 0], slopes[2, 2]
    return Number(
        key="check-one-step",
        chapter=_CHAPTER,
        level=1,
        title="Two knobs at once",
        prompt=(
            f"This is the weight gradient of {whose}. The loss is the sum of all products of "
            f"`grad_output` and y. Tap (0, 0) is raised by {up} and tap (2, 2) lowered by 1. By "
            "how much "
            "does the loss go up?\n\n" + written_out(grad_weight=slopes)
        ),
        hints=(
            "Each tap has its own slope. By how much does the loss move for each of the two alone?",
            "The loss is a straight line in every tap, so the two effects add up.",
        ),
        compute=lambda: up * first - last,
        compute_mistakes=lambda: [
            (
                first - last,
                "The first tap was raised by more than that; its slope counts as often.",
            ),
            (
                up * first + last,
                "The other tap was lowered: its slope counts against the loss.",
            ),
            (up * first, "That is the first tap alone."),
            (-last, "That is the second tap alone."),
        ],
        explanation=(
            f"{up}·{first:g} − 1·{last:g}: the direction times the gradient, cell by cell, added "
            "up. Without a single "
            "convolution."
        ),
        solution=f"answer = {up} * {first:g} - {last:g}",
    )


# ---- what easy sizes hide ------------------------------------------------------------------

_EASY = ("dgrad_no_flip", "dgrad_g_turned", "dgrad_last_kernel", "col2im_assign")


def _unnoticed() -> int:
    """The place of the mutant that is right on example B, with its own grad_output."""
    _, weight, _, g = example("B").arrays()
    geometry = example("B").geometry
    right = windows.grad_input(g, weight, geometry)
    found = [np.array_equal(MUTANTS[name](g, weight, geometry), right) for name in _EASY]
    (place,) = np.flatnonzero(found)
    return int(place)


_easy_sizes = Choice(
    key="check-easy-sizes",
    chapter=_CHAPTER,
    level=2,
    title="What does a small test not see?",
    prompt=(
        "An input gradient is compared with PyTorch on example B: one image, one channel, one "
        "kernel, 5×5, stride 1. The upstream gradient is example B's own, not ones. Which mistake "
        "passes?"
    ),
    options=tuple(MUTANTS[name].sentence for name in _EASY),
    hints=(
        "Three of the mistakes change which numbers meet, or which of them are kept. That shows "
        "where numbers differ.",
        "How many kernels are there, and what does a loop over one kernel overwrite?",
    ),
    compute=_unnoticed,
    compute_mistakes=lambda: [
        (0, "The kernel of example B looks different when it is turned, so this shows."),
        (1, "With ones this would pass. Here the numbers of grad_output differ."),
        (3, "Nine windows overlap in the middle of the image, so this shows."),
    ],
    explanation=(
        "With one kernel there is nothing to add to, so = and += are the same. What a test has "
        "one of, or two equal ones of, it cannot check."
    ),
    solution="answer = 2  # one kernel: nothing to overwrite",
)


# ---- what the adjoint test cannot see ------------------------------------------------------

_WIDE = ConvGeometry(C=1, H=7, W=8, O=1, KH=3, KW=3, dilation=2)
_NARROW = replace(_WIDE, dilation=(1, 1), H=_WIDE.H - 2, W=_WIDE.W - 2)
Map = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _tight_forward(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A forward pass that ignores the dilation: taps next to each other, as many outputs."""
    return windows.forward(x[:, :, :-2, :-2], weight, _NARROW)


def _tight_gradient(g: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The gradient of exactly that pass."""
    return np.pad(windows.grad_input(g, weight, _NARROW), ((0, 0), (0, 0), (0, 2), (0, 2)))


def _mutated(name: str) -> Map:
    return lambda g, weight: MUTANTS[name](g, weight, _WIDE)


# Each choice beside the forward pass and the input gradient that it tests together.
_PAIRS: dict[str, tuple[Map, Map]] = {
    "The forward pass is right, the gradient ignores the dilation.": (
        lambda x, w: windows.forward(x, w, _WIDE),
        _tight_gradient,
    ),
    "Forward pass and gradient both ignore the dilation.": (_tight_forward, _tight_gradient),
    "The forward pass is right, the gradient slides the kernel unturned.": (
        lambda x, w: windows.forward(x, w, _WIDE),
        _mutated("dgrad_no_flip"),
    ),
    "The forward pass is right, the gradient is the mean over the overlap.": (
        lambda x, w: windows.forward(x, w, _WIDE),
        _mutated("avg_fold"),
    ),
}


def _both_wrong() -> int:
    """The place of the pair that passes the adjoint test on random numbers."""
    draw = random_operands(_WIDE, np.random.default_rng(0))
    passes = [
        np.vdot(forward(draw.x, draw.weight), draw.grad_output)
        == np.vdot(draw.x, backward(draw.grad_output, draw.weight))
        for forward, backward in _PAIRS.values()
    ]
    (place,) = np.flatnonzero(passes)
    return int(place)


_check_both = Choice(
    key="check-both-wrong",
    chapter=_CHAPTER,
    level=3,
    title="What the two sums do not see",
    prompt=(
        "A kernel with dilation 2, random numbers everywhere. Which pair passes the test "
        "$\\langle y, g\\rangle = \\langle x, \\partial L/\\partial x\\rangle$ though something "
        "is wrong?"
    ),
    options=tuple(_PAIRS),
    hints=(
        "The test asks whether the gradient belongs to this forward pass. Nothing else.",
        "Is there a pair in which both make the same mistake?",
    ),
    compute=_both_wrong,
    compute_mistakes=lambda: [
        (0, "The two put their products into different cells, so the sums differ."),
        (2, "The unturned kernel is not the gradient of this forward pass, so the sums differ."),
        (3, "Where windows overlap the products are divided, and the sum becomes another."),
    ],
    explanation=(
        "The gradient is right for the wrong convolution. Only a forward pass that somebody else "
        "wrote can tell: loops, or PyTorch."
    ),
    solution="answer = 1  # both make the same mistake",
)


# ---- write it ------------------------------------------------------------------------------


def _bias_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = next(geometries(rng))
    square = replace(plain, H=plain.KH + 4, W=plain.KW + 4, N=2)  # maps of 5×5
    for geometry in (
        replace(plain, O=4),  # several kernels: a single number has too many explanations
        replace(plain, N=3, O=4),
        replace(square, O=5),  # as many kernels as columns: wrong axes keep the shape
        plain,  # one kernel: still an array
        *(replace(plain, N=2, C=3, O=4),) * 3,
    ):
        g = random_operands(geometry, rng).grad_output
        known = {"geometry": geometry, "target": "bias", "grad_output": g}
        yield Trial((g,), windows.grad_bias(g, geometry), known)


_write_bias = Function(
    key="bias-write",
    chapter=_CHAPTER,
    level=2,
    title="The bias gradient",
    prompt=(
        "Write `grad_bias(grad_output)`: `grad_output` is `(N, O, OH, OW)`, the result `(O,)`. "
        "With O = 1 it is an array of one number, not a number."
    ),
    starter=('def grad_bias(grad_output):\n    """grad_output (N,O,OH,OW) → (O,)"""\n    ...'),
    hints=(
        "Which axis stays? Name the others.",
        "`grad_output.sum(axis=...)` takes several axes at once, as a tuple.",
    ),
    trials=_bias_trials,
    solution="def grad_bias(grad_output):\n    return grad_output.sum(axis=(0, 2, 3))  # n p q",
)


def _step_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, mixed=3):
        draw = random_operands(geometry, rng)
        known = {
            "geometry": geometry,
            "target": "weight",
            "x": draw.x,
            "grad_output": draw.grad_output,
        }

        def loss(weight: np.ndarray, draw: Draw = draw) -> float:
            y = windows.forward(draw.x, np.asarray(weight), draw.geometry)
            return float(np.vdot(draw.grad_output, y))

        right = windows.grad_weight(draw.grad_output, draw.x, geometry)
        yield Trial((loss, draw.weight), right, known)


_by_steps = Function(
    key="check-by-steps",
    chapter=_CHAPTER,
    level=3,
    title="A gradient from the loss alone",
    prompt=(
        "Write `slopes(loss, weight)`: `loss` is a function that takes an array of weights and "
        "returns a number, a straight line in every weight. The result has the shape of `weight` "
        "and holds the gradient. You know nothing of the convolution; you may only call `loss`."
    ),
    starter=(
        "def slopes(loss, weight):\n"
        '    """loss(weight) → number, weight (O,C/G,KH,KW) → the same shape"""\n'
        "    ..."
    ),
    hints=(
        "Turn one weight up by 1 and leave the others. What does the loss do?",
        "Work on a copy for every weight: `moved = weight.copy()`.",
        "`for at in np.ndindex(weight.shape)` visits every weight; `moved[at] += 1` turns it up.",
    ),
    trials=_step_trials,
    solution=(
        "def slopes(loss, weight):\n"
        "    grad = np.zeros(weight.shape)\n"
        "    for at in np.ndindex(weight.shape):\n"
        "        moved = weight.copy()\n"
        "        moved[at] += 1\n"
        "        grad[at] = loss(moved) - loss(weight)\n"
        "    return grad"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _sum_of_ones,
    _one_step,
    _two_kernels,
    _square_trap,
    _two_parts,
    _easy_sizes,
    _write_bias,
    _check_both,
    _by_steps,
)
