"""Exercises for *Many devices: the batch sum is an all-reduce*."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import loops
from ..checks import random_geometry, random_operands
from ..geometry import ConvGeometry
from ..shards import deal, image_shards, numbers_sent, part_of, row_shards
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial
from .redraw import redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "many_devices"


# ---- how much a ring sends -----------------------------------------------------------------


@redrawn(
    lambda size, devices: size % devices == 0,
    size=[1200, 2400, 3600, 4800, 7200, 9600],
    devices=[3, 4, 5, 6, 8],
)
def _ring_sent(size: int = 6000, devices: int = 5) -> Number:
    return Number(
        key="devices-ring-sent",
        chapter=_CHAPTER,
        level=1,
        title="What one device sends",
        prompt=(
            f"A layer has {size} weights. {devices} devices add up their gradients in a ring. How "
            "many numbers does each of them send?"
        ),
        hints=(
            f"The array is cut into {devices} chunks. In each step a device sends one chunk.",
            f"{devices - 1} steps until every chunk is complete, and as many until every device "
            "has all of them.",
        ),
        compute=lambda: float(numbers_sent(size, devices)[0]),
        compute_mistakes=lambda: [
            (
                size * (devices - 1) / devices,
                "That is the first round, the reduce-scatter. The complete chunks go round as "
                "well.",
            ),
            (
                2 * size,
                "Nearly. In the last step of each round one chunk need not be sent any more.",
            ),
            (
                size,
                "That is the array once. A ring sends more than that, and less than twice that.",
            ),
            (
                size * (devices - 1),
                "So much would be sent by a device that hands its whole array to each of the "
                "others.",
            ),
            (size / devices, "That is one chunk, which is sent in one step."),
            (
                2.0 * size * (devices - 1),
                "That is what all of them together send. Asked for is one of them.",
            ),
        ],
        explanation=(
            f"{2 * (devices - 1)} steps of {size // devices} numbers: 2·({devices} − 1)/{devices} "
            f"of {size}."
        ),
        solution=f"answer = 2 * ({devices} - 1) * {size} / {devices}",
    )


# ---- a mean of means -----------------------------------------------------------------------

_SLOPES, _SPLIT = (2, 4, 9, 5, 15), (3, 2)


def _means(slopes: tuple[int, ...]) -> list[float]:
    return [float(np.mean(slopes[each.start : each.stop])) for each in deal(5, _SPLIT)]


@redrawn(
    lambda slopes: sum(slopes[:3]) % 3 == sum(slopes[3:]) % 2 == 0,
    slopes=lambda dice: tuple(dice.between(1, 20) for _ in range(5)),
)
def _mean_of_means(slopes: tuple[int, ...] = _SLOPES) -> Number:
    a, b, c, d, e = slopes
    first, second = _means(slopes)
    return Number(
        key="devices-mean-of-means",
        chapter=_CHAPTER,
        level=2,
        title="Five images on two devices",
        prompt=(
            f"For one tap, the shares of five images are {a}, {b}, {c} and {d}, {e}. The first "
            "three are on one device, the other two on another. Each takes the *mean* over its "
            "own images as its loss, and `DistributedDataParallel` averages the two gradients. "
            "What does the tap hold?"
        ),
        hints=(
            "What is the gradient on the first device? Its three shares, added up and divided by "
            "3.",
            "Then the average of two numbers, whatever they were made of.",
        ),
        compute=lambda: float(np.mean(_means(slopes))),
        compute_mistakes=lambda: [
            (
                float(np.mean(slopes)),
                "That is the mean over all five images, as one device finds it. The two devices "
                "have unequal parts.",
            ),
            (sum(_means(slopes)), "The two means are not added here; they are averaged."),
            (
                float(np.sum(slopes)),
                "That is the sum of all shares. The loss is a mean, so somebody divides.",
            ),
            (
                float(np.sum(slopes)) / 2,
                "You divided by the number of devices, and each device divides by its images as "
                "well.",
            ),
            (
                float(np.sum(slopes)) / 10,
                "Each device divides by its own images, three or two, and not by five.",
            ),
        ],
        explanation=(
            f"The means are {first:g} and {second:g}, their average is {(first + second) / 2:g}. "
            f"The mean over all images is {(3 * first + 2 * second) / 5:g}. With the factors 3/5 "
            "and 2/5 the same two means give that."
        ),
        solution=f"answer = (({a} + {b} + {c}) / 3 + ({d} + {e}) / 2) / 2",
    )


# ---- which rows are borrowed ---------------------------------------------------------------

_TALL = ConvGeometry(C=1, H=16, W=16, O=1, KH=5, KW=5, padding=2)


def _halo_rows(of: ConvGeometry) -> np.ndarray:
    upper, lower = row_shards(of, 2, owned=2)
    return np.array([[len(upper.halo), len(lower.halo)]], dtype=float)


@redrawn(K=[7, 9])
def _halo(K: int = 5) -> Grid:
    of, reach = replace(_TALL, KH=K, KW=K, padding=((K // 2, K // 2),) * 2), K // 2
    return Grid(
        key="devices-halo-rows",
        chapter=_CHAPTER,
        level=1,
        title="Borrowed on both sides",
        prompt=(
            f"An image of 16 rows, kernel {K}×{K}, padding {reach}, stride 1: 16 output rows. Two "
            "devices own and "
            "make eight rows each. How many rows does the upper device borrow, and how many the "
            "lower?"
        ),
        starter="answer = [..., ...]",
        hints=(
            "The upper device makes the output rows 0 to 7. Which is the last row that it reads?",
            f"Row 7 of the output reads the rows 7 − {reach} to 7 + {reach}. It owns up to row 7.",
        ),
        compute=lambda: _halo_rows(of),
        compute_mistakes=lambda: [
            (
                np.array([[2.0 * reach, 2.0 * reach]]),
                f"{2 * reach} rows are read by both devices. Each of these rows is owned by one "
                "of them, who need not borrow it.",
            ),
            (
                np.array([[2.0 * reach, 0.0]]),
                "So it would be if the lower device owned all rows that both read. It owns from "
                "row 8 on.",
            ),
            (
                np.array([[0.0, 0.0]]),
                "The padding gives zeros at the outer edges of the image. At the cut there are "
                "rows.",
            ),
            (
                np.array([[1.0, 1.0]]),
                f"That is the halo of a 3×3 kernel. This one reaches {reach} rows beyond its "
                "middle.",
            ),
            (
                np.array([[float(K), float(K)]]),
                "That is all rows of a window. Most of them the device owns itself.",
            ),
        ],
        explanation=(
            f"Span {K} less stride 1: {2 * reach} rows, {8 - reach} to {7 + reach}, are read by "
            f"both. The upper device owns those up to 7 and borrows {reach} below; the lower one "
            f"owns those and borrows {reach} above."
        ),
        solution=f"answer = [{reach}, {reach}]",
    )


# ---- which layer needs no halo -------------------------------------------------------------

_LAYERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("3×3, stride 1, padding 1", {"KH": 3, "KW": 3, "padding": 1}),
    ("3×3, stride 2, padding 1", {"KH": 3, "KW": 3, "stride": 2, "padding": 1}),
    ("2×2, stride 2", {"KH": 2, "KW": 2, "stride": 2}),
    ("2×2, stride 2, dilation 2", {"KH": 2, "KW": 2, "stride": 2, "dilation": 2}),
)


def _needs_nobody() -> int:
    found = []
    for _, options in _LAYERS:
        geometry = ConvGeometry(C=1, H=16, W=16, O=1, **options)
        found.append(not any(each.halo for each in row_shards(geometry, 2)))
    return found.index(True)


_no_halo = Choice(
    key="devices-no-halo",
    chapter=_CHAPTER,
    level=2,
    title="A layer without a halo",
    prompt=(
        "An image of 16×16 is cut into rows for two devices, and the cut is put where it suits "
        "best. For which of these kernels does neither device need a row of the other?"
    ),
    options=tuple(words for words, _ in _LAYERS),
    hints=(
        "Two neighbouring windows share span less stride rows.",
        "The span of two taps with dilation 2 is 3.",
    ),
    compute=_needs_nobody,
    compute_mistakes=lambda: [
        (0, "Span 3, stride 1: two rows are read by both."),
        (1, "Span 3, stride 2: one row is still read by both. The padding does not help at a cut."),
        (3, "The two taps lie two rows apart, so the span is 3, and one row is read by both."),
    ],
    explanation=(
        "Span 2 less stride 2 is 0: no two windows meet, so the cut can go between two of them."
    ),
    solution="answer = 2  # span 2, stride 2",
)


# ---- write: the mean of the batch ----------------------------------------------------------


def _mean_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for shares in ((2, 2), (1, 3), (2, 1, 1), (3, 1, 2, 2), (4, 0, 4)):
        drawn = random_geometry(rng, lambda g: g.KH != g.KW)
        geometry = replace(drawn, N=sum(shares))
        _, x, weight, g = random_operands(geometry, rng)
        sums = np.array(
            [part_of(g, x, weight, each).grad_weight for each in image_shards(geometry, shares)]
        )
        counts = np.array(shares, dtype=float)
        own = sums / np.maximum(counts, 1)[:, None, None, None, None]
        right = loops.grad_weight(g, x, geometry) / geometry.N
        known = {"geometry": geometry, "target": "weight", "grad_output": g, "x": x}
        mistakes = (
            (
                own.mean(axis=0),
                "that is the mean of the means. A device with more images counts for more.",
            ),
            (own.sum(axis=0), "the means are added as they are. Each must count by its images."),
            (
                right * geometry.N,
                "that is the gradient of the sum over all images. Divide by how many there are.",
            ),
            (
                right * geometry.N / len(shares),
                "divide by the number of images, and not by that of devices.",
            ),
        )
        yield Trial((own, counts), right, known, mistakes)


_whole_mean = Function(
    key="devices-whole-mean",
    chapter=_CHAPTER,
    level=2,
    title="The mean of the batch",
    prompt=(
        "Each device has worked out the weight gradient of the mean over its *own* images. Write "
        "`of_the_batch(gradients, counts)`: `gradients` has shape `(A, O, C/G, KH, KW)`, one for "
        "each device, and `counts` says how many images each has, which may be none. The result is "
        "the gradient of the mean over all images, `(O, C/G, KH, KW)`."
    ),
    starter=(
        "def of_the_batch(gradients, counts):\n"
        '    """gradients (A,O,C/G,KH,KW), counts (A,) → (O,C/G,KH,KW)"""\n'
        "    ..."
    ),
    hints=(
        "A mean times how many went into it is a sum. Sums can be added.",
        "Or the other way round: each device counts by its part of all images, "
        "`counts / counts.sum()`.",
    ),
    trials=_mean_trials,
    solution=(
        "def of_the_batch(gradients, counts):\n"
        "    weights = counts / counts.sum()\n"
        '    return np.einsum("a,aocij->ocij", weights, gradients)'
    ),
)


# ---- write: bring the halo home ------------------------------------------------------------


def _home_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=1, H=6, W=4, O=1, KH=2, KW=2)
    several = (
        (replace(plain, KH=2, stride=(2, 1)), 3),  # nothing is lent
        (plain, 2),
        (replace(plain, padding=((1, 0), (0, 0))), 2),
        (replace(plain, padding=((0, 1), (0, 0))), 2),
        (replace(plain, N=2, C=3, H=9, KH=3, dilation=(2, 1), padding=((2, 2), (2, 2))), 4),
        (
            replace(
                plain, N=3, C=4, O=6, H=11, KH=5, stride=(2, 1), padding=((3, 3), (0, 0)), groups=2
            ),
            5,
        ),
    )
    for geometry, devices in several:
        _, _, weight, g = random_operands(geometry, rng)
        right = loops.grad_input(g, weight, geometry)
        shards = row_shards(geometry, devices)
        parts = [loops.grad_input(each.take_output(g), weight, each.geometry) for each in shards]
        starts = [
            geometry.stride[0] * each.outputs.start - geometry.padding[0][0] for each in shards
        ]
        known = {"geometry": geometry, "target": "input", "grad_output": g, "weight": weight}
        words = (
            "where two devices have read a row, only one of their gradients is left. Rows that "
            "were lent come home: add with `+=`."
        )
        yield Trial(
            (parts, starts, geometry.H),
            right,
            known,
            ((_overwritten(parts, starts, right), words),),
        )


def _overwritten(parts: list[np.ndarray], starts: list[int], like: np.ndarray) -> np.ndarray:
    """What comes out with = in place of +=."""
    grad = np.zeros_like(like)
    for part, start in zip(parts, starts, strict=True):
        for k in range(part.shape[2]):
            if 0 <= start + k < grad.shape[2]:
                grad[:, :, start + k] = part[:, :, k]
    return grad


_bring_home = Function(
    key="devices-bring-home",
    chapter=_CHAPTER,
    level=3,
    title="Bring the halo home",
    prompt=(
        "The rows of an image were dealt out. Each device hands in the gradient of all rows that "
        "it *read*, in `parts`, a list of arrays `(N, C, rows, W)`, and in `starts` the number of "
        "the first of these rows. It is negative where the part begins with border above the "
        "image, and a part may end with border below row `H - 1`. Write `grad_input(parts, starts, "
        "H)`, which returns the gradient of the image, `(N, C, H, W)`."
    ),
    starter=(
        "def grad_input(parts, starts, H):\n"
        '    """parts: one (N,C,rows,W) a device; starts: its first row → (N,C,H,W)"""\n'
        "    ..."
    ),
    hints=(
        "Begin with zeros, and go through the rows of every part. Row `k` of a part that starts at "
        "`start` belongs to row `start + k`.",
        "A negative number counts from the end in NumPy. Leave out what is not from 0 to `H - 1`.",
        "Add with `+=`: a row may have been read by several devices.",
    ),
    trials=_home_trials,
    solution=(
        "def grad_input(parts, starts, H):\n"
        "    N, C, _, W = parts[0].shape\n"
        "    grad = np.zeros((N, C, H, W))\n"
        "    for part, start in zip(parts, starts):\n"
        "        for k in range(part.shape[2]):\n"
        "            if 0 <= start + k < H:\n"
        "                grad[:, :, start + k] += part[:, :, k]\n"
        "    return grad"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _ring_sent,
    _halo,
    _mean_of_means,
    _no_halo,
    _whole_mean,
    _bring_home,
)
