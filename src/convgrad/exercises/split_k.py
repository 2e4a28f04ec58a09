"""Exercises for *Split-K, atomics and why two runs differ*."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from .. import windows
from ..checks import random_operands
from ..examples import example
from ..geometry import ConvGeometry
from ..rounding import running_sums
from ..schedule import Schedule, Tile
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "split_k"

# ---- how many tiles --------------------------------------------------------------------------

# The same layer four times as wide, as it comes later in the network.
_WIDE = ConvGeometry(N=32, C=256, H=14, W=14, O=256, KH=3, KW=3, padding=1)
_SQUARE = Tile(128, 128, 32)


def _tiles(of: ConvGeometry) -> int:
    return Schedule(of, tile=_SQUARE).tiles


@redrawn(lambda C, O: C != O, C=[128, 256, 512], O=[128, 256, 384, 512])
def _how_many(C: int = 256, O: int = 256) -> Number:
    of = replace(_WIDE, C=C, O=O)
    rows, columns = O // 128, C * 9 // 128
    return Number(
        key="split-tiles",
        chapter=_CHAPTER,
        level=1,
        title="How many tiles?",
        prompt=(
            f"A later layer of the same network: 32 images of 14×14, from {C} to {O} channels, a "
            "3×3 kernel, padding 1. Into how many tiles of 128×128 is its weight gradient cut?"
        ),
        hints=(
            "The rows of the product are kernels, its columns channels times taps.",
            f"How many tiles do {O} rows need? How many do {C}·9 columns need?",
        ),
        compute=lambda: _tiles(of),
        compute_mistakes=lambda: [
            (
                Schedule(of, "forward", _SQUARE).tiles,
                "Those are the tiles of the forward pass, whose rows are windows. The weight "
                "gradient's rows are kernels.",
            ),
            (rows * C // 128, "You left the taps out. A column stands for a channel and a tap."),
            (rows + columns, "Tiles lie in a table: rows of tiles times columns of tiles."),
            (columns, f"That is one row of tiles. {O} kernels need {rows}."),
        ],
        explanation=(
            f"{rows} rows of tiles times {columns} columns, {rows * columns} in all: a weight of "
            f"{O * C * 9} numbers, and of 132 multiprocessors "
            f"{'none waits' if rows * columns >= 132 else f'{132 - rows * columns} wait'}."
        ),
        solution=f"answer = ({O} // 128) * ({C} * 9 // 128)",
    )


# ---- one share more --------------------------------------------------------------------------

_LAYER = example("F").geometry


def _split(splits: int) -> Schedule:
    return Schedule(_LAYER, tile=_SQUARE, splits=splits, processors=132)


def _one_more() -> int:
    """Which of the choices takes the fewest steps."""
    times = [_split(splits).time for splits in _SHARES]
    return times.index(min(times))


_SHARES = (13, 26, 27, 40)
_which_split = Choice(
    key="split-which",
    chapter=_CHAPTER,
    level=2,
    title="Into how many shares?",
    prompt=(
        "Example F has five tiles, and the GPU 132 multiprocessors, each of which does one "
        "program at a time. Into how many shares is K best cut, by the steps that it takes?"
    ),
    options=tuple(f"{splits} shares a tile" for splits in _SHARES),
    hints=(
        "How many programs does each make, and do they fit in one wave?",
        "A second wave takes as long as its longest program, however few there are in it.",
    ),
    compute=_one_more,
    compute_mistakes=lambda: [
        (0, "65 programs leave half of the multiprocessors idle."),
        (2, "135 programs: three of them wait for a second wave, in which nobody else works."),
        (3, "200 programs make two waves, and the second is only half full."),
    ],
    explanation=(
        "26 shares make 130 programs, one wave. With 27 there are 135: three are left over, and "
        "the whole takes three quarters longer. More shares help only if their waves are full."
    ),
    solution="answer = 1  # 26 shares: 130 programs",
)

# ---- workspace -------------------------------------------------------------------------------


def _memory(shares: int) -> np.ndarray:
    """[[bytes of the workspace, float32 numbers that the second pass reads]]."""
    s = replace(_split(shares), two_passes=True)
    return np.array([[s.workspace, s.workspace // 4]], dtype=np.float64)


def _memory_mistakes(shares: int) -> list[tuple[np.ndarray, str]]:
    size, count = _memory(shares)[0]
    return [
        (
            np.array([[size / shares, count / shares]]),
            "That is one share. Each has a page of its own.",
        ),
        (
            np.array([[size, count / shares]]),
            "The second pass reads every page, not the result alone.",
        ),
        (np.array([[count, count]]), "A float32 number takes four bytes."),
        (
            np.array([[4 * shares * 5 * 128 * 128, shares * 5 * 128 * 128]], dtype=np.float64),
            "You counted whole tiles. What hangs over the matrix is not stored.",
        ),
    ]


@redrawn(shares=(8, 40))
def _workspace(shares: int = 26) -> Grid:
    return Grid(
        key="split-workspace",
        chapter=_CHAPTER,
        level=2,
        title="How large is the workspace?",
        prompt=(
            f"Example F, a weight of 64·64·3·3 numbers, {shares} shares, two passes, float32. How "
            "many bytes has the workspace, and how many numbers does the second pass read?"
        ),
        starter="answer = [..., ...]  # bytes, numbers",
        hints=(
            "Every share has a page: a number for each number of the weight.",
            "A float32 number has four bytes.",
        ),
        compute=lambda: _memory(shares),
        compute_mistakes=lambda: _memory_mistakes(shares),
        explanation=(
            f"{shares} pages of 36,864 numbers: {shares * 36864 * 4 / 2**20:.1f} MiB, written "
            "once and read once. The columns of im2col "
            "would take 220.5 MiB."
        ),
        solution=f"answer = [4 * {shares} * 64 * 64 * 9, {shares} * 64 * 64 * 9]",
    )


# ---- rounding by hand ------------------------------------------------------------------------


def three_digits(value: float) -> float:
    """A number as a machine with three digits keeps it."""
    return float(f"{value:.3g}")


def _in_order(order: tuple[float, ...]) -> float:
    total = 0.0
    for term in order:
        total = three_digits(total + term)
    return total


def _two_orders(added: tuple[float, ...]) -> np.ndarray:
    """[[from the left, from the right]]."""
    return np.array([[_in_order(added), _in_order(added[::-1])]])


@redrawn(large=[1000, 3000, 4000, 5000, 7000, 8000], small=[6, 7])
def _by_hand(large: int = 2000, small: int = 6) -> Grid:
    added = (float(large), float(small), float(small))
    exact = sum(added)
    return Grid(
        key="split-three-digits",
        chapter=_CHAPTER,
        level=1,
        title="Three digits",
        prompt=(
            f"A machine rounds every sum to three digits. The shares are {large}, {small} and "
            f"{small}. What does it get if they arrive in this order, and what if the {large} "
            "comes last?"
        ),
        starter=f"answer = [..., ...]  # {large} first, {large} last",
        hints=(
            f"Of numbers about {large} the machine knows {large}, {large + 10}, {large + 20} and "
            "so on.",
            f"{large} first: what becomes of {large + small}? And of that and another {small}?",
        ),
        compute=lambda: _two_orders(added),
        compute_mistakes=lambda: [
            (np.array([[exact, exact]]), f"{exact:g} has four digits. Three are kept."),
            (
                np.array([[large + 10, large + 10]]),
                f"{large} first: {large + small} is rounded already, and then comes {small}.",
            ),
            (
                np.array([[large, large + 10]]),
                f"{large + small} is nearer to {large + 10} than to {large}.",
            ),
            (
                _two_orders(added)[:, ::-1],
                f"The other way round: first the order with {large} in front.",
            ),
        ],
        explanation=(
            f"{large} + {small} becomes {large + 10}, and {large + 10} + {small} becomes "
            f"{large + 20}. The other way {small} + {small} = {2 * small} is exact, and {exact:g} "
            f"becomes {large + 10}. Neither is {exact:g}."
        ),
        solution=f"answer = [{large + 20}, {large + 10}]",
    )


# ---- how many results ------------------------------------------------------------------------


def _results(shares: tuple[float, ...]) -> int:
    values = np.array(shares, dtype=np.float32)
    orders = permutations(range(len(values)))
    return len({float(running_sums(values, order)[-1]) for order in orders})


# 2²⁴: from here on float32 holds even numbers alone
_LARGE = float(2**24)
_CASES: dict[str, tuple[float, ...]] = {
    "0.1 and 0.7": (0.1, 0.7),
    "1, 2, 3 and 4": (1.0, 2.0, 3.0, 4.0),
    "16777216, 1 and 1": (_LARGE, 1.0, 1.0),
    "0.5, 0.25 and 0.125": (0.5, 0.25, 0.125),
}


def _order_counts() -> int:
    return [_results(shares) > 1 for shares in _CASES.values()].index(True)


_which_shares = Choice(
    key="split-order-counts",
    chapter=_CHAPTER,
    level=2,
    title="Where does the order count?",
    prompt=(
        "Shares in float32, which holds whole numbers exactly up to 16777216, and above that even "
        "ones only. For which shares can two runs differ?"
    ),
    options=tuple(_CASES),
    hints=(
        "With two shares there are two orders, a + b and b + a.",
        "Sums that are exact have nothing to round. Which of these sums is not?",
    ),
    compute=_order_counts,
    compute_mistakes=lambda: [
        (0, "Neither number is exact, but a + b is b + a, rounded alike."),
        (1, "Small whole numbers are added exactly, in any order."),
        (3, "Halves, quarters and eighths are exact in float32, and so are their sums."),
    ],
    explanation=(
        "16777216 + 1 is rounded back to 16777216, twice. The two ones first make 2, which "
        "counts. That is why the tests of this book use small whole numbers."
    ),
    solution="answer = 2",
)

# ---- what gives the same bits ----------------------------------------------------------------

_WAYS = (
    "A fixed seed for the random numbers",
    "float64 for the sums",
    "A share for each program, added in the order of the shares",
    "Fewer shares, say four",
)
_same_bits = Choice(
    key="split-same-bits",
    chapter=_CHAPTER,
    level=3,
    title="What makes the runs equal?",
    prompt=(
        "A training differs from run to run in the last digits, though data and weights are the "
        "same: the weight gradient is added up by atomics. What makes it repeat to the last bit?"
    ),
    options=_WAYS,
    hints=(
        "Where does the difference come from: from numbers that are drawn, from their precision, "
        "or from an order?",
        "Which of these fixes the order?",
    ),
    compute=lambda: 2,
    compute_mistakes=lambda: [
        (0, "No random number is drawn there. It is the order of additions that changes."),
        (1, "In float64 the runs differ in later digits. They still differ."),
        (3, "From three shares on the order counts."),
    ],
    explanation="The order is all that differs, so fix the order. That is the second pass.",
    solution="answer = 2",
)

# ---- write it --------------------------------------------------------------------------------


def _shares(g: np.ndarray, x: np.ndarray, size: tuple[int, int], parts: int) -> np.ndarray:
    """Every share of the windows with a page of its own, stride 1."""
    seen = np.lib.stride_tricks.sliding_window_view(x, size, axis=(2, 3))  # n c p q i j
    upstream = g.transpose(1, 0, 2, 3).reshape(g.shape[1], -1)  # o k
    columns = seen.transpose(0, 2, 3, 1, 4, 5).reshape(upstream.shape[1], -1)  # k r
    share = -(-upstream.shape[1] // parts)
    pages = [
        upstream[:, first : first + share] @ columns[first : first + share]
        for first in range(0, parts * share, share)
    ]
    return np.stack(pages).reshape(parts, g.shape[1], x.shape[1], *size)


def _share_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=1, H=5, W=6, O=1, KH=2, KW=3)
    steps: list[dict[str, Any]] = [{}, {"C": 2}, {"O": 3}, {"N": 2}, {"N": 3, "C": 2, "O": 4}]
    for sizes in steps:
        geometry = replace(plain, **sizes)
        _, x, _, g = random_operands(geometry, rng)
        for parts in (1, 2, 3, 5):
            arguments = g, x, (geometry.KH, geometry.KW), parts
            right = _shares(*arguments)
            known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
            yield Trial(arguments, right, known, tuple(_share_mistakes(right, *arguments)))


def _share_mistakes(
    right: np.ndarray, g: np.ndarray, x: np.ndarray, size: tuple[int, int], parts: int
) -> Iterator[tuple[np.ndarray, str]]:
    if parts == 1:
        return
    yield (
        np.cumsum(right, axis=0),
        "each page holds all shares so far. A page is one share alone: begin each from 0.",
    )
    yield (
        np.broadcast_to(right.sum(axis=0), right.shape),
        "every page holds the whole gradient. A page sums its own windows only.",
    )
    yield right[::-1], "the pages stand in the opposite order. Share 0 has the first windows."
    windows_ = g.shape[0] * g.shape[2] * g.shape[3]
    if windows_ % parts:
        lost = right.copy()
        cut = windows_ // parts
        seen = _shares(g, x, size, windows_)  # a page for each window
        lost = np.stack([seen[k * cut : (k + 1) * cut].sum(axis=0) for k in range(parts)])
        yield lost, "the last windows are in no share. Round the length of a share up, not down."


_write_shares = Function(
    key="split-write-shares",
    chapter=_CHAPTER,
    level=2,
    title="The first pass",
    prompt=(
        "Write `shares(grad_output, x, kernel_size, parts)`: the weight gradient's sum over "
        "windows, cut into `parts` shares, each with a page of its own. Number the windows as "
        "image, row, column; a share takes as many windows as the others, rounded up, and the "
        "last one the rest. Stride 1, no padding, one group. The result has the shape "
        "`(parts, O, C, KH, KW)`."
    ),
    starter=(
        "def shares(grad_output, x, kernel_size, parts):\n"
        '    """(N,O,OH,OW), (N,C,H,W), (KH,KW), int → (parts,O,C,KH,KW)"""\n'
        "    ..."
    ),
    hints=(
        "Bring both operands to matrices first: grad_output to (O, N·OH·OW), the windows to "
        "(N·OH·OW, C·KH·KW). Then a share is a slice of both.",
        "`-(-windows // parts)` divides and rounds up.",
        "`np.lib.stride_tricks.sliding_window_view(x, kernel_size, axis=(2, 3))` has the axes "
        "n c p q i j; bring n p q to the front.",
    ),
    trials=_share_trials,
    solution=(
        "def shares(grad_output, x, kernel_size, parts):\n"
        "    view = np.lib.stride_tricks.sliding_window_view\n"
        "    seen = view(x, kernel_size, axis=(2, 3))  # n c p q i j\n"
        "    G = grad_output.swapaxes(0, 1).reshape(grad_output.shape[1], -1)  # o k\n"
        "    X = seen.transpose(0, 2, 3, 1, 4, 5).reshape(G.shape[1], -1)  # k r\n"
        "    size = -(-G.shape[1] // parts)\n"
        "    starts = range(0, parts * size, size)\n"
        "    pages = [G[:, k : k + size] @ X[k : k + size] for k in starts]\n"
        "    return np.reshape(pages, (parts, len(G), x.shape[1], *kernel_size))"
    ),
)


def _one_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1


def _order_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_one_group):
        _, x, _, g = random_operands(geometry, rng)
        right = windows.grad_weight(g, x, geometry)
        parts = int(rng.integers(2, 5))
        order = [int(part) for part in rng.permutation(parts)]
        known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
        arguments = g, x, geometry, order
        yield Trial(arguments, right, known, tuple(_order_mistakes(*arguments)))


def _order_mistakes(
    g: np.ndarray, x: np.ndarray, geometry: ConvGeometry, order: list[int]
) -> Iterator[tuple[np.ndarray, str]]:
    """What becomes of it without an atomic, and when some shares are left out."""
    pages = _pages(g, x, geometry, len(order))
    yield (
        pages[order[-1]],
        "only the last share to arrive is left. Shares meet in one array: write +=, not =.",
    )
    yield pages[:-1].sum(axis=0), "the last share is missing. Windows are left over: round up."
    yield pages[order[0]], "you return after the first share. All of them must arrive."


def _pages(g: np.ndarray, x: np.ndarray, geometry: ConvGeometry, parts: int) -> np.ndarray:
    seen = windows.windows(x, geometry)  # n c p q i j
    upstream = g.transpose(1, 0, 2, 3).reshape(g.shape[1], -1)
    columns = seen.transpose(0, 2, 3, 1, 4, 5).reshape(upstream.shape[1], -1)
    share = -(-upstream.shape[1] // parts)
    pages = [
        upstream[:, part * share : (part + 1) * share] @ columns[part * share : (part + 1) * share]
        for part in range(parts)
    ]
    return np.stack(pages).reshape(parts, *geometry.weight_shape)


_write_order = Function(
    key="split-write-order",
    chapter=_CHAPTER,
    level=3,
    title="Shares that arrive",
    prompt=(
        "Write `grad_weight(grad_output, x, geometry, order)`: split-K in NumPy. There are "
        "`len(order)` shares of the windows, as in the last exercise, and they are added to one "
        "array of zeros in this order. Any stride, padding and dilation, one group; `windows` of "
        "`convgrad.windows` gives the view n c p q i j. The result has the shape "
        "`geometry.weight_shape`."
    ),
    starter=(
        "def grad_weight(grad_output, x, geometry, order):\n"
        '    """(N,O,OH,OW), (N,C,H,W) → geometry.weight_shape"""\n'
        "    ..."
    ),
    hints=(
        "`from convgrad.windows import windows`, then `windows(x, geometry)`; the rest of the "
        "matrices is as before.",
        "Begin with `np.zeros(geometry.weight_shape)`, and add a share for each number in order.",
        "Share s has the windows from s·size to before (s + 1)·size; a slice that ends beyond the "
        "last window is no harm.",
    ),
    trials=_order_trials,
    solution=(
        "def grad_weight(grad_output, x, geometry, order):\n"
        "    from convgrad.windows import windows\n"
        "\n"
        "    seen = windows(x, geometry)  # n c p q i j\n"
        "    G = grad_output.swapaxes(0, 1).reshape(geometry.O, -1)  # o k\n"
        "    X = seen.transpose(0, 2, 3, 1, 4, 5).reshape(G.shape[1], -1)  # k r\n"
        "    size = -(-G.shape[1] // len(order))\n"
        "    total = np.zeros(geometry.weight_shape)\n"
        "    for part in order:\n"
        "        mine = slice(part * size, (part + 1) * size)\n"
        "        total += (G[:, mine] @ X[mine]).reshape(total.shape)\n"
        "    return total"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _how_many,
    _by_hand,
    _which_split,
    _workspace,
    _which_shares,
    _write_shares,
    _same_bits,
    _write_order,
)
