"""Exercises for *A museum of gradient bugs*."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .. import correlate, im2col, loops, windows
from ..checks import random_geometry
from ..geometry import ConvGeometry
from ..museum import exhibit, noticed_by
from ..mutants import MUTANTS
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial
from .redraw import redrawn
from .words import written_out

__all__ = ["EXERCISES"]

_CHAPTER = "museum"


# ---- which mistake left these numbers ------------------------------------------------------

# Two images; the digits say which channels came into a number: 1, 10, 100, 1000, and twice that.
_DIGITS = ConvGeometry(N=2, C=4, H=1, W=1, O=4, KH=1, KW=1, groups=2)
_CHANNELS = np.array([[1.0, 10, 100, 1000], [2, 20, 200, 2000]]).reshape(_DIGITS.x_shape)
_SENT = np.ones(_DIGITS.output_shape)
_SUSPECTS = ("group_interleaved", "depthwise_mod", "wgrad_last_image", "wgrad_batch_mean")


def _left_by(rule: Callable[..., np.ndarray]) -> np.ndarray:
    return rule(_SENT, _CHANNELS, _DIGITS)[..., 0, 0]  # o c


_name_it = Choice(
    key="museum-name-it",
    chapter=_CHAPTER,
    level=2,
    title="Name the mistake",
    prompt=(
        "Two images of one cell, four channels, four kernels of 1×1 in two groups. The first image "
        "holds 1, 10, 100, 1000, the second twice that, and every number of `grad_output` is 1. A "
        "row of the grids is a kernel. Which mistake made the second grid?\n\n"
        + written_out(
            **{
                "grad_weight[right]": _left_by(loops.grad_weight),
                "grad_weight[found]": _left_by(MUTANTS["depthwise_mod"].function),
            }
        )
    ),
    options=tuple(MUTANTS[name].sentence for name in _SUSPECTS),
    hints=(
        "Every number begins with a 3 in both grids. So both images arrived, and nothing was "
        "divided.",
        "Each row holds two neighbours, 3 30 or 300 3000. Which kernels have each other's row?",
    ),
    compute=lambda: _SUSPECTS.index("depthwise_mod"),
    compute_mistakes=lambda: [
        (0, "Then a row would hold 3 and 300: the two channels of a group would be no neighbours."),
        (2, "Then every number would begin with a 2, the share of the second image."),
        (3, "Then every number would be half as large, 1.5 and 15 where 3 and 30 should be."),
    ],
    explanation=(
        "The groups of kernels 0 to 3 should be 0 0 1 1; these are 0 1 0 1. With one kernel in "
        "each group the two rules agree."
    ),
    solution="answer = 1  # groups 0 1 0 1 instead of 0 0 1 1",
)


# ---- how far sixteen bits count ------------------------------------------------------------

_ONES = 5000


def _counted() -> float:
    total = np.float16(0)
    for _ in range(_ONES):
        total = np.float16(total + np.float16(1))
    return float(total)


_counting = Number(
    key="museum-counting",
    chapter=_CHAPTER,
    level=1,
    title="How far does it count?",
    prompt=(
        "A bias gradient is the sum of 5000 ones. Somebody adds them one by one in float16, which "
        "keeps 11 binary digits. What comes out?"
    ),
    hints=(
        "With 8 binary digits, as in bfloat16, counting ends at 256: 257 needs a ninth.",
        "Up to which power of two can 11 binary digits count by ones?",
    ),
    compute=_counted,
    compute_mistakes=lambda: [
        (256, "That is where bfloat16 ends, with 8 binary digits. float16 has 11."),
        (_ONES, "float16 can hold 5000, but adding ones one by one does not get so far."),
        (65504, "That is the largest number of float16. Counting ends long before it."),
        (2047, "That is the largest with 11 ones as its digits. One more still fits."),
        (1024, "From there to twice as far, the ones still fit."),
        (4096, "From half of that on, neighbours are 2 apart, and half a step is rounded away."),
    ],
    explanation=(
        "2¹¹ = 2048. From there on neighbouring numbers are 2 apart, and 2048 + 1 is rounded to "
        "the even one, 2048 again."
    ),
    solution="answer = 2**11",
    same_for_all="Half precision counts to one number, whoever asks.",
)


# ---- how large the short gradient is -------------------------------------------------------

_SHORT = ConvGeometry(C=1, H=12, W=13, O=1, KH=3, KW=4, stride=(2, 5))


def _short_size(of: ConvGeometry) -> np.ndarray:
    g, w = np.ones(of.output_shape), np.ones(of.weight_shape)
    return np.array([MUTANTS["dgrad_no_leftover"](g, w, of).shape[2:]], dtype=float)


@redrawn(
    lambda of: of.leftover[0] == 1 and of.leftover[1] > 1,
    of=lambda dice: replace(_SHORT, H=dice.between(8, 16), W=dice.between(9, 24)),
)
def _short(of: ConvGeometry = _SHORT) -> Grid:
    rows, columns = 2 * (of.OH - 1) + 3, 5 * (of.OW - 1) + 4
    return Grid(
        key="museum-short",
        chapter=_CHAPTER,
        level=1,
        title="How short is it?",
        prompt=(
            f"An image of {of.H}×{of.W}, a kernel of 3×4, stride 2 down and 5 across, no padding. "
            "The input gradient is made by a transposed convolution without `output_padding`. "
            "How many rows and columns does it have?"
        ),
        starter="answer = [..., ...]",
        hints=(
            "The result reaches as far as the last window does.",
            f"The last window begins at row 2·{of.OH - 1}. In which row does it end? Do the same "
            "for the columns.",
        ),
        compute=lambda: _short_size(of),
        compute_mistakes=lambda: [
            (
                np.array([[of.H, of.W]]),
                "That is the image. The last windows do not reach its end.",
            ),
            (
                np.array([[of.H - 1, of.W - 1]]),
                "The rows are right. A leftover can be more than one: up to the stride less one.",
            ),
            (
                np.array([[of.OH, of.OW]]),
                "That is the output of the forward pass, where the way back begins.",
            ),
            (
                np.array([[of.leftover[0], of.leftover[1]]]),
                "That is what is missing. Asked for is what is there.",
            ),
        ],
        explanation=(
            f"The last windows begin at row {2 * (of.OH - 1)} and column {5 * (of.OW - 1)}, and "
            f"end with row {rows - 1} and column {columns - 1}. So there are {rows} rows and "
            f"{columns} columns; {of.H - rows} and {of.W - columns} are missing."
        ),
        solution=f"answer = [{2 * (of.OH - 1)} + 3, {5 * (of.OW - 1)} + 4]",
    )


# ---- a mean of processes -------------------------------------------------------------------


def _averaged_tap(tap: float, processes: int) -> float:
    """Equal shares of the tap, averaged."""
    return float(np.mean([tap / processes] * processes))


@redrawn(lambda tap, processes: tap % processes == 0, tap=(20, 120), processes=[4, 5, 6, 8])
def _devices(tap: int = 84, processes: int = 4) -> Number:
    return Number(
        key="museum-devices",
        chapter=_CHAPTER,
        level=2,
        title="Processes and a sum",
        prompt=(
            f"On one process a tap of the weight gradient of a batch is {tap}. The loss is a "
            f"*sum* over the images. Now {processes} processes take an equal part of the batch "
            "each, and their gradients are averaged. What does the tap hold?"
        ),
        hints=(
            f"The shares add up to {tap}, whatever each of them is.",
            "An average is the sum, divided by how many there are.",
        ),
        compute=lambda: _averaged_tap(tap, processes),
        compute_mistakes=lambda: [
            (tap, "That is the sum of the shares. They are averaged."),
            (tap * processes, f"The shares add up to {tap}, and nothing multiplies that."),
            (
                tap / processes**2,
                "You divided twice. With a sum as the loss only the average divides.",
            ),
            (tap / 2, f"There are {processes} processes."),
        ],
        explanation=(
            f"{tap}/{processes}. With a mean as the loss, over equally large parts, the average "
            "would be right: a process divides by its own images only, which are fewer, so each "
            "share is as much larger."
        ),
        solution=f"answer = {tap} / {processes}",
    )


# ---- which of these needs more than plain numbers ------------------------------------------

_FOUR = ("stale", "circular", "view", "dealt")
_PLAIN = ("shape", "equals_loops", "adjoint", "directional_difference")


def _unseen() -> int:
    """The place of the exhibit that the laws on plain numbers let pass."""
    found = [noticed_by(str(exhibit(key).mutant)) for key in _FOUR]
    (place,) = (k for k, laws in enumerate(found) if not any(laws[law] for law in _PLAIN))
    return place


_which_law = Choice(
    key="museum-which-law",
    chapter=_CHAPTER,
    level=3,
    title="Past four checks",
    prompt=(
        "A gradient is compared with the loops, on random sizes and random whole numbers, in "
        "arrays that were made with `rng.integers(...).astype(float)`. Its shape is checked, the "
        "adjoint and one step too. Which exhibit passes all four?"
    ),
    options=tuple(exhibit(key).title for key in _FOUR),
    hints=(
        "Random sizes show what is wrong on some sizes. Random numbers show what ones hide.",
        "What do all arrays that were just made have in common?",
    ),
    compute=_unseen,
    compute_mistakes=lambda: [
        (0, "The cells that no window reads hold something else than 0, and the loops tell."),
        (1, "Random sizes bring circular borders that differ, and there the numbers differ."),
        (3, "Random sizes bring two and more channels in a group, and there the numbers differ."),
    ],
    explanation=(
        "A fresh array is contiguous, and on contiguous arrays that rule is right. Hand over a "
        "view, and every one of the numeric checks notices."
    ),
    solution="answer = 2  # fresh arrays are contiguous",
)


# ---- write it ------------------------------------------------------------------------------


def _wide_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for N, O, size in ((2, 3, 3), (1, 2, 3), (3, 1, 4), (2, 2, 90), (4, 3, 12)):
        geometry = ConvGeometry(N=N, C=1, H=size, W=size, O=O, KH=1, KW=1)
        g = rng.integers(-4, 5, geometry.output_shape).astype(np.float16)
        if size > 50:
            g = np.ones_like(g)  # more of them than sixteen bits can count
            g[:, :, ::2] = 3
        elif N == 4:
            g += np.float16(600)  # two images' shares leave the range, two bring them back
            g[N // 2 :] *= -1
        right = g.astype(np.float64).sum(axis=(0, 2, 3)).astype(np.float16)
        known = {"geometry": geometry, "target": "bias", "grad_output": g}
        yield Trial((g,), right, known, _narrow(g))


def _narrow(g: np.ndarray) -> tuple[tuple[np.ndarray, str], ...]:
    """What comes out if the running sum is kept in 16 bits."""
    total = np.zeros(g.shape[1], np.float16)
    with np.errstate(all="ignore"):
        for column in np.moveaxis(g, 1, -1).reshape(-1, g.shape[1]):
            total += column
        whole = g.sum(axis=(0, 2, 3))
    words = (
        "your sum is kept in 16 bits on the way, which lose digits or overflow. Add up in float32, "
        "and go back to float16 once, at the end."
    )
    return (total, words), (whole, words)


_wide_bias = Function(
    key="museum-wide-bias",
    chapter=_CHAPTER,
    level=2,
    title="A bias gradient that can count",
    prompt=(
        "Write `grad_bias(grad_output)` for a `grad_output` of `(N, O, OH, OW)` in float16. The "
        "result is `(O,)` in float16, and as exact as float16 can hold it."
    ),
    starter=(
        "def grad_bias(grad_output):\n"
        '    """grad_output (N,O,OH,OW) in float16 → (O,) in float16"""\n'
        "    ..."
    ),
    hints=(
        "The numbers that come in and the number that goes out fit into 16 bits. The sums between "
        "them need not.",
        "`sum` takes the type to add up in: `dtype=np.float32`. `astype` rounds at the end.",
    ),
    trials=_wide_trials,
    solution=(
        "def grad_bias(grad_output):\n"
        "    total = grad_output.sum(axis=(0, 2, 3), dtype=np.float32)\n"
        "    return total.astype(grad_output.dtype)"
    ),
)


# Three rules at a time, from what any comparison notices to what needs a special array.
_RIGHT = "a right one"
_THREES = (
    ("wgrad_last_image", _RIGHT, "wgrad_batch_mean"),
    (_RIGHT, "wgrad_g_turned", "wgrad_images_mixed"),
    ("swap_stride_dilation", _RIGHT, _RIGHT),
    ("group_interleaved", "wgrad_no_crop", _RIGHT),
    (_RIGHT, "assume_contiguous_gy", _RIGHT),
    (_RIGHT, _RIGHT, "write_through_view"),
)


def _seen_through(rule: Callable[..., np.ndarray], geometry: ConvGeometry) -> bool:
    """Whether a careful check can tell: the rule runs there, and is wrong on every view."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.integers(-9, 10, geometry.x_shape).astype(np.float64)
        N, *rest = geometry.output_shape
        g = rng.integers(-9, 10, (N, 2, *rest)).astype(np.float64)[:, 0]
        given = x.copy()
        try:
            found = rule(g, given, geometry)
        except (ValueError, IndexError):
            return False
        right = windows.grad_weight(g, x, geometry)
        if np.array_equal(found, right) and np.array_equal(given, x):
            return False
    return True


def _judge_trials(rng: np.random.Generator) -> Iterator[Trial]:
    ways = itertools.cycle((windows.grad_weight, correlate.grad_weight, im2col.grad_weight))
    for names in _THREES:
        broken = [MUTANTS[name].function for name in names if name != _RIGHT]

        def shows(geometry: ConvGeometry, broken: list[Callable[..., np.ndarray]] = broken) -> bool:
            return geometry.N > 1 and all(_seen_through(rule, geometry) for rule in broken)

        geometry = random_geometry(rng, shows, padding_modes=("zeros",))
        rules = [next(ways) if name == _RIGHT else MUTANTS[name].function for name in names]
        right = np.array([name == _RIGHT for name in names], dtype=float)
        mistakes = tuple(_verdicts(names, right))
        yield Trial((rules, geometry), right, {"geometry": geometry, "target": None}, mistakes)


def _verdicts(names: tuple[str, ...], right: np.ndarray) -> Iterator[tuple[np.ndarray, str]]:
    """Every wrong row of answers, with the first rule that was judged wrongly."""
    for row in itertools.product((0.0, 1.0), repeat=len(names)):
        wrong = np.flatnonzero(row != right)
        if not wrong.size:
            continue
        name = names[wrong[0]]
        if name == _RIGHT:
            words = f"rule {wrong[0]} is right, and your check turned it down."
        else:
            words = f"your check let rule {wrong[0]} pass. Its mistake: {MUTANTS[name].sentence}"
        yield np.array(row), words


_judge = Function(
    key="museum-judge",
    chapter=_CHAPTER,
    level=3,
    title="A check of your own",
    prompt=(
        "Write `right_ones(rules, geometry)`: `rules` is a list of three functions, each called as "
        "`rule(grad_output, x, geometry)`, which should return a weight gradient. Return a list of "
        "three values, `True` where the rule is right and `False` where it is not. A rule that "
        "stops with an error on your arrays is not right either. You may compare with "
        '`IMPLEMENTATIONS["loops"].grad_weight`, which is right.'
    ),
    starter=(
        "def right_ones(rules, geometry):\n"
        '    """rule(grad_output, x, geometry) → (O,C/G,KH,KW); a list of True, False"""\n'
        "    ..."
    ),
    hints=(
        "Draw `grad_output` and `x` at random, in whole numbers, so that equal means equal.",
        "One of the rules is right on every array that lies in memory as one block. Hand over a "
        "part of a larger one: `larger[:, ::2]`.",
        "One of them returns the right gradient and changes `x`. Give each rule a copy, and look "
        "at it afterwards.",
    ),
    trials=_judge_trials,
    solution=(
        "def right_ones(rules, geometry):\n"
        "    rng, answers = np.random.default_rng(0), []\n"
        "    N, O, *size = geometry.output_shape\n"
        "    x = rng.integers(-9, 10, geometry.x_shape).astype(float)\n"
        "    g = rng.integers(-9, 10, (N, 2, O, *size)).astype(float)[:, 0]  # a view\n"
        '    right = IMPLEMENTATIONS["loops"].grad_weight(g, x, geometry)\n'
        "    for rule in rules:\n"
        "        seen = x.copy()\n"
        "        equal = np.array_equal(rule(g, seen, geometry), right)\n"
        "        answers.append(equal and np.array_equal(seen, x))\n"
        "    return answers"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _counting,
    _short,
    _name_it,
    _devices,
    _which_law,
    _wide_bias,
    _judge,
)
