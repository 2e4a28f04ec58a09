"""Exercises for *Who owns which gradient element*."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import grouped, loops, windows
from ..checks import random_operands
from ..examples import example
from ..geometry import ConvGeometry
from ..updates import additions
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "owners"
_D = example("D").geometry

# ---- how many programs -----------------------------------------------------------------------


@redrawn(
    of=lambda dice: replace(
        _D, N=dice.between(2, 5), C=2 * dice.between(2, 5), O=2 * dice.between(3, 6)
    )
)
def _programs(of: ConvGeometry = _D) -> Number:
    named = "Example D: three" if of == _D else f"{of.N}"
    return Number(
        key="owner-programs",
        chapter=_CHAPTER,
        level=1,
        title="How many programs?",
        prompt=(
            f"{named} images with {of.C} channels, {of.O} kernels of 3×2, two groups, and an "
            "output of 3×3. The kernel `gather` has a program for each number of `grad_weight`. "
            "How many programs are there?"
        ),
        hints=(
            "As many as the weight has numbers. Which channels does a kernel read?",
            f"With two groups a kernel has {of.C}/2 planes of 3×2 taps.",
        ),
        compute=lambda: math.prod(of.weight_shape),
        compute_mistakes=lambda: [
            (
                of.O * of.C * of.KH * of.KW,
                "You gave each kernel all channels. It reads those of its own group.",
            ),
            (
                math.prod(of.output_shape),
                "That is how many numbers `grad_output` has. `gather` has a program for each "
                "number of `grad_weight`.",
            ),
            (
                math.prod(of.weight_shape) * of.N,
                "The images share the weights: a program adds up all of them.",
            ),
            (of.O * of.CG, "That is for one tap. Each plane has 3·2 of them."),
        ],
        explanation=(
            f"{of.O} kernels of {of.CG} planes of six taps. Each of the programs adds up "
            f"{of.N * of.OH * of.OW} products, one for each window of each image."
        ),
        solution=f"answer = {of.O} * ({of.C} // 2) * 3 * 2",
    )


# ---- which number is mine --------------------------------------------------------------------

_NUMBER = 43
_COLUMNS = _D.CG * _D.KH * _D.KW


def _mine(number: int = _NUMBER) -> list[int]:
    """[group, kernel within it, column] of a program, as ``gather`` finds them."""
    kernel, r = divmod(number, _COLUMNS)
    return [*divmod(kernel, _D.OG), r]


def _mine_mistakes(number: int) -> list[tuple[np.ndarray, str]]:
    kernel, r = divmod(number, _COLUMNS)
    of_all, r_of_all = divmod(number, _D.C * _D.KH * _D.KW)
    turned, other = divmod(number, _D.O)
    return [
        (
            np.array([[0, kernel, r]]),
            "You counted kernels through all groups. `o` counts within the group.",
        ),
        (
            np.array([[kernel % _D.groups, kernel // _D.groups, r]]),
            "Kernels of one group are neighbours: the group changes last.",
        ),
        (
            np.array([[*divmod(of_all, _D.OG), r_of_all]]),
            "A kernel has the planes of its own group, two of them and not four.",
        ),
        (
            np.array([[*divmod(other, _D.OG), turned]]),
            "In memory all numbers of a kernel lie together: r changes first.",
        ),
    ]


@redrawn(number=(37, 70))
def _which(number: int = _NUMBER) -> Grid:
    return Grid(
        key="owner-number",
        chapter=_CHAPTER,
        level=2,
        title="Which number is mine?",
        prompt=(
            "Example D again: 6 kernels in two groups, two planes of 3×2 taps in each. Program "
            f"{number} of `gather` wants to know which number of `grad_weight` is its own. Give "
            "its group, its kernel `o` within the group, and its column `r`."
        ),
        starter="answer = [..., ..., ...]  # group, o, r",
        hints=(
            "A kernel has 2·3·2 = 12 numbers. How often do they fit into the number, and what is "
            "left?",
            "What is left is r. The first 3 kernels are group 0, the others group 1.",
        ),
        compute=lambda: np.array([_mine(number)], dtype=np.float64),
        compute_mistakes=lambda: _mine_mistakes(number),
        explanation=(
            f"{number} = {number // 12}·12 + {number % 12}: kernel {number // 12}, which is kernel "
            f"{number // 12 % 3} of group {number // 36}, and of its numbers the one with r = "
            f"{number % 12}. A few divisions, and nobody had to tell the program."
        ),
        solution=f"group, o = divmod({number} // 12, 3)\nanswer = [group, o, {number} % 12]",
    )


# ---- which loads are masked ------------------------------------------------------------------

_BORDERED = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, stride=2, padding=1)
_TAP = (0, 2)


def _loads(i: int = _TAP[0], j: int = _TAP[1]) -> np.ndarray:
    """1 where a tap lies on the image, 0 where it is masked; a row for each p."""
    found = np.zeros((_BORDERED.OH, _BORDERED.OW))
    for p, q in np.ndindex(*found.shape):
        found[p, q] = _BORDERED.cell(*_BORDERED.source(p, q, i, j)) is not None
    return found


def _whole_windows() -> np.ndarray:
    taps = np.ndindex(_BORDERED.KH, _BORDERED.KW)
    inside: np.ndarray = np.prod([_loads(i, j) for i, j in taps], axis=0)
    return inside


_mask = Grid(
    key="owner-mask",
    chapter=_CHAPTER,
    level=2,
    title="Who reads nothing?",
    prompt=(
        "An image of 5×5, a kernel of 3×3, stride 2, padding 1: an output of 3×3. The program of "
        "`gather` that owns tap (0, 2) looks at all nine windows at once. Fill in a 1 for each "
        "window where it reads a number of `x`, and a 0 where the load is masked."
    ),
    starter="answer = [[..., ..., ...],\n          [..., ..., ...],\n          [..., ..., ...]]",
    hints=(
        "At which row h does tap (0, 2) lie in the window (p, q)? And at which column v?",
        "h = 2p − 1 and v = 2q + 1. The image has rows and columns 0 to 4.",
    ),
    compute=_loads,
    compute_mistakes=lambda: [
        (_loads(*_TAP[::-1]), "That is tap (2, 0). Rows come before columns."),
        (1 - _loads(), "You marked what is masked. A 1 means that a number is read."),
        (
            _whole_windows(),
            "Those are the windows that lie on the image as a whole. This program looks at one "
            "tap of each.",
        ),
        (
            np.ones((3, 3)),
            "Some of the nine cells lie on the padding, and nothing is stored there.",
        ),
    ],
    explanation=(
        "In the first row of windows h is −1, in the last column v is 5: above the image, and "
        "beside it. Those five lanes get the number 0 and touch no memory."
    ),
    solution="answer = [[int(2 * p - 1 >= 0 and 2 * q + 1 < 5) for q in range(3)]\n"
    "          for p in range(3)]",
    same_for_all="Under this tap a row and a column of windows miss the image, at two ends.",
)

# ---- what is left in memory ------------------------------------------------------------------

_ORDER = (0, 1, 0, 2, 1, 2)  # the last to write has read before the second wrote


def _left(added: tuple[int, ...], order: Sequence[int] = _ORDER) -> float:
    return additions(added, order)[-1].memory


def _told(order: Sequence[int] = _ORDER) -> str:
    seen: set[int] = set()
    turns = []
    for program in order:
        turns.append(f"{program} {'writes' if program in seen else 'reads'}")
        seen.add(program)
    return ", ".join(turns)


@redrawn(lambda a, b, c: len({a, b, c}) == 3 and a + b != c != a - b, a=(1, 9), b=(1, 9), c=(1, 9))
def _in_memory(a: int = 2, b: int = 4, c: int = 1) -> Number:
    added = (a, b, c)
    return Number(
        key="owner-left",
        chapter=_CHAPTER,
        level=2,
        title="What is left?",
        prompt=(
            f"Programs 0, 1 and 2 add {a}, {b} and {c} to a number that is 0 at the beginning. "
            "Each reads it, adds, and writes the sum back. The turns happen to come like this: "
            f"{_told()}. What stands in memory at the end?"
        ),
        hints=(
            "Write down, turn by turn, what memory holds and what each program has read.",
            "What a program writes is what it *read* plus its own number, whatever others wrote "
            "since.",
        ),
        compute=lambda: _left(added),
        compute_mistakes=lambda: [
            (sum(added), "That is what it should be. Has each program read what all others wrote?"),
            (
                _left(added, (0, 1, 0, 1, 2, 2)),
                "Program 2 did not see what program 1 wrote: it had read before.",
            ),
            (
                _left(added, (0, 1, 2, 0, 1, 2)),
                "Program 2 read after program 0 had written.",
            ),
            (
                _left(added, (0, 1, 0, 2, 2, 1)),
                "That is what program 1 writes. Who writes last?",
            ),
        ],
        explanation=(
            f"Program 0 writes {a}. Program 2 reads it, then program 1, which had read the 0, "
            f"writes {b}. At the end program 2 writes {a} + {c}, and the {b} is gone."
        ),
        solution=f"answer = {a} + {c}",
    )


# ---- who meets whom --------------------------------------------------------------------------

_Product = tuple[Any, ...]  # n, o, p, q, c, i, j, and the cell of x or None
# Each choice: who owns a product, and which number it goes to.
_CUTS: dict[str, tuple[Callable[[_Product], Any], Callable[[_Product], Any]]] = {
    "`grad_bias`, a program for each kernel": (lambda t: t[1], lambda t: t[1]),
    "`grad_weight`, a program for each kernel and each channel": (
        lambda t: (t[1], t[4]),
        lambda t: (t[1], t[4], t[5], t[6]),
    ),
    "`grad_input`, a program for each image and each kernel": (
        lambda t: (t[0], t[1]),
        lambda t: t[7],
    ),
    "`grad_input`, a program for each image and each channel": (
        lambda t: (t[0], t[4]),
        lambda t: t[7],
    ),
}
_SMALL = ConvGeometry(N=2, C=2, H=4, W=4, O=3, KH=2, KW=2)


def _meet(choice: str) -> bool:
    """Whether two programs have a product for the same number."""
    owner, place = _CUTS[choice]
    owners: dict[Any, set[Any]] = {}
    for each in loops.products(_SMALL):
        if place(each) is not None:
            owners.setdefault(place(each), set()).add(owner(each))
    return any(len(programs) > 1 for programs in owners.values())


def _with_conflicts() -> int:
    (found,) = (at for at, choice in enumerate(_CUTS) if _meet(choice))
    return found


_who_meets = Choice(
    key="owner-who-meets",
    chapter=_CHAPTER,
    level=3,
    title="Who needs atomics?",
    prompt=(
        "A layer without groups, stride 1, several images, channels and kernels. Four ways to cut "
        "the work into programs. In one of them two programs can have something to add to the "
        "same number. Which?"
    ),
    options=tuple(_CUTS),
    hints=(
        "Over which letters does each gradient sum? A letter that is summed over must not be "
        "shared out among programs.",
        "grad_bias sums over n, p, q; grad_weight over n, p, q; grad_input over o and the windows.",
    ),
    compute=_with_conflicts,
    compute_mistakes=lambda: [
        (0, "The sum runs over images and positions, and each program has all of its kernel's."),
        (1, "The sum runs over images and positions. Each program has all of them for its taps."),
        (3, "The sum runs over kernels and taps, and each program has them all for its cells."),
    ],
    explanation=(
        "Every kernel sends something back to every cell that it read. So `o` is summed over, and "
        "the programs of different kernels meet in the same cells."
    ),
    solution="answer = 2  # the sum over kernels is shared out",
)

# ---- write it --------------------------------------------------------------------------------


class _EveryProgram:
    """Runs a program under each of its numbers, and puts together what they return."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__code__ = getattr(function, "__code__", None)  # for the line of an error

    def __call__(self, grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry) -> Any:
        count = math.prod(geometry.weight_shape)
        stored = [self.function(number, grad_output, x, geometry) for number in range(count)]
        if any(number is None or number is ... for number in stored):
            return None
        together = np.array(stored)
        return together.reshape(geometry.weight_shape) if together.size == count else together


@dataclass(frozen=True)
class ProgramFunction(Function):
    """The answer is ``program(number, grad_output, x, geometry)``, run for each number."""

    def _try(self, function: Callable[..., Any], trial: Trial) -> str | None:
        return super()._try(_EveryProgram(function), trial)


def _program_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, mixed=3):
        _, x, _, g = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
        right = windows.grad_weight(g, x, geometry)
        yield Trial((g, x, geometry), right, known, tuple(_program_mistakes(g, x, geometry)))


def _program_mistakes(
    g: np.ndarray, x: np.ndarray, geometry: ConvGeometry
) -> Iterator[tuple[np.ndarray, str]]:
    """What becomes of a missing mask, where Python counts a negative index from the end."""
    (top, bottom), (left, right) = geometry.padding
    widest = max(top, bottom, left, right)
    if 0 < widest <= min(geometry.H, geometry.W):
        wrapped = replace(geometry, padding_mode="circular")
        yield (
            windows.grad_weight(g, x, wrapped),
            "where a tap lies above or left of the image, x is read from its other end: Python "
            "counts a negative index from behind. Mask it: `geometry.cell(h, v)` is None there.",
        )


_program = ProgramFunction(
    key="owner-program",
    chapter=_CHAPTER,
    level=2,
    title="A program that gathers",
    prompt=(
        "Write `program(number, grad_output, x, geometry)`: it finds out which number of "
        "`grad_weight` is its own, adds up the products that belong to it, and returns the sum. It "
        "is run once for each number, from 0 to the last, in the order in which the weight lies in "
        "memory. Any stride, zero padding, dilation and groups. `geometry.source(p, q, i, j)` is "
        "the place (h, v) that a tap reads, `geometry.cell(h, v)` the cell of x there or `None`, "
        "and `geometry.channel(o, c)` the channel of x behind channel c of kernel o."
    ),
    starter=(
        "def program(number, grad_output, x, geometry):\n"
        '    """→ one number of grad_weight"""\n'
        "    ..."
    ),
    hints=(
        "`np.unravel_index(number, geometry.weight_shape)` turns the number into o, c, i, j.",
        "Then every window of every image has one product for you: loop over n, p, q.",
        "Where `geometry.cell(...)` is None there is nothing to read and nothing to add.",
    ),
    trials=_program_trials,
    solution=(
        "def program(number, grad_output, x, geometry):\n"
        "    o, c, i, j = np.unravel_index(number, geometry.weight_shape)\n"
        "    images = x[:, geometry.channel(o, c)]  # n h v\n"
        "    total = 0\n"
        "    for n, p, q in np.ndindex(grad_output[:, o].shape):\n"
        "        cell = geometry.cell(*geometry.source(p, q, i, j))\n"
        "        if cell is not None:\n"
        "            total += grad_output[n, o, p, q] * images[n, *cell]\n"
        "    return total"
    ),
)


def _share_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(N=4, C=2, H=6, W=5, O=2, KH=2, KW=3, groups=2)
    steps: list[tuple[dict[str, Any], int]] = [
        ({"C": 1, "O": 1, "groups": 1}, 4),
        ({}, 4),
        ({"N": 5}, 2),
        ({"O": 6, "N": 3}, 2),
        ({"C": 3, "O": 6, "groups": 3, "stride": 2, "padding": 1, "N": 7}, 3),
        ({"dilation": (2, 1), "padding": (2, 0), "N": 2}, 4),
    ]
    for sizes, warps in steps:
        geometry = replace(plain, **sizes)
        _, x, _, g = random_operands(geometry, rng)
        each = grouped.grad_weight_per_image(g, x, geometry)[:, :, 0]  # n o i j
        right = _dealt(each, warps)
        yield Trial(
            (g, x, geometry, warps),
            right,
            {"geometry": geometry, "target": None},
            tuple(_share_mistakes(g, x, geometry, warps, each)),
        )


def _dealt(each: np.ndarray, warps: int) -> np.ndarray:
    """Image n goes to warp n mod warps."""
    return np.stack([each[warp::warps].sum(0) for warp in range(warps)])


def _share_mistakes(
    g: np.ndarray, x: np.ndarray, geometry: ConvGeometry, warps: int, each: np.ndarray
) -> Iterator[tuple[np.ndarray, str]]:
    parts = np.array_split(each, warps)
    yield (
        np.stack([part.sum(0) for part in parts]),
        "warp 0 has the first images, warp 1 the next. Deal them out instead: image n goes to "
        "warp n mod warps.",
    )
    if warps < geometry.N:
        yield each[:warps], "the images beyond the last warp are left out. A warp takes several."
    yield (
        np.stack([each.sum(0)] * warps),
        "every warp adds up all images. Each has its own: n, n + warps, n + 2·warps, …",
    )
    if geometry.O > geometry.C:
        channels = np.arange(geometry.O) % geometry.C
        whole = replace(geometry, C=geometry.O, groups=geometry.O)
        mixed = grouped.grad_weight_per_image(g, x[:, channels], whole)[:, :, 0]
        yield (
            _dealt(mixed, warps),
            "with several kernels for each channel, kernel o reads channel o // (O / C): "
            "neighbours share one.",
        )


_shares = Function(
    key="owner-shares",
    chapter=_CHAPTER,
    level=3,
    title="A warp for each image",
    prompt=(
        "Write `shares(grad_output, x, geometry, warps)` for a depthwise layer: what each warp of "
        "PyTorch's kernel holds before the block adds up. Warp w has the images w, w + warps, "
        "w + 2·warps and so on. The result has the shape `(warps, O, KH, KW)`; a warp without "
        "images has zeros. Any stride, zero padding and dilation; `O` may be a multiple of `C`."
    ),
    starter=(
        "def shares(grad_output, x, geometry, warps):\n"
        '    """grad_output (N,O,OH,OW), x (N,C,H,W) → (warps,O,KH,KW)"""\n'
        "    ..."
    ),
    hints=(
        "Begin with zeros. Loop over the numbers of grad_output and the taps, and ask which warp "
        "has image n.",
        "Image n is warp n % warps's. Kernel o reads channel `geometry.channel(o, 0)`.",
        "`held[n % warps, o, i, j] += …`, unless the cell is None.",
    ),
    trials=_share_trials,
    solution=(
        "def shares(grad_output, x, geometry, warps):\n"
        "    size = (warps, geometry.O, geometry.KH, geometry.KW)\n"
        "    held = np.zeros(size)\n"
        "    for n, o, p, q in np.ndindex(grad_output.shape):\n"
        "        image = x[n, geometry.channel(o, 0)]\n"
        "        for i, j in np.ndindex(size[2:]):\n"
        "            cell = geometry.cell(*geometry.source(p, q, i, j))\n"
        "            if cell is not None:\n"
        "                product = grad_output[n, o, p, q] * image[cell]\n"
        "                held[n % warps, o, i, j] += product\n"
        "    return held"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _programs,
    _which,
    _mask,
    _in_memory,
    _who_meets,
    _program,
    _shares,
)
