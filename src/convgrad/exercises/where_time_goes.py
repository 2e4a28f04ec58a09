"""Exercises for *Where the time goes*."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..examples import example
from ..geometry import ConvGeometry
from ..roofline import CARDS, Card, bound
from ..schedule import Schedule, Tile
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial
from .redraw import redrawn

__all__ = ["EXERCISES", "TOY"]

_CHAPTER = "where_time_goes"

# A weight gradient of five tiles of 16×16, and a card with four multiprocessors for it.
TOY = ConvGeometry(C=8, H=6, W=6, O=16, KH=3, KW=3, padding=1)
_FOUR = 4

# ---- the ridge -------------------------------------------------------------------------------

_L4 = CARDS["L4"]

_ridge = Number(
    key="time-ridge",
    chapter=_CHAPTER,
    level=1,
    title="Where is the ridge?",
    prompt=(
        f"A card computes {_L4.float32} TFLOP/s in float32 and moves {_L4.memory} TB/s. At how "
        "many operations a byte lies its ridge?"
    ),
    hints=(
        "At the ridge, arithmetic and memory take equally long.",
        "Operations a second, divided by bytes a second.",
    ),
    compute=lambda: round(_L4.roof("float32").ridge),
    compute_mistakes=lambda: [
        (round(_L4.float32 * _L4.memory, 2), "That is the product. How often does one fit in?"),
        (
            round(_L4.memory / _L4.float32, 4),
            "That is bytes for each operation. Turn it round.",
        ),
        (
            round(_L4.float16 / _L4.memory),
            "That is the ridge in float16. In float32 the card computes less, so it lies further "
            "left.",
        ),
    ],
    explanation=(
        "30.3 over 0.3. A layer with fewer operations for a byte waits for the memory of this card."
    ),
    solution="answer = 30.3 / 0.3",
    same_for_all="The card is one of those that the chapter compares.",
)

# ---- tiles -----------------------------------------------------------------------------------

_WIDE = ConvGeometry(N=8, C=32, H=28, W=28, O=96, KH=3, KW=3, padding=1)
_TILE = 64


def _tiles(of: ConvGeometry, target: str) -> int:
    return Schedule(of, target, tile=Tile(_TILE, _TILE, 1)).tiles


@redrawn(
    lambda of: of.O % _TILE and of.C * 9 % _TILE and of.C != of.O,
    of=lambda dice: replace(_WIDE, C=16 * dice.between(1, 8), O=16 * dice.between(5, 14)),
)
def _how_many(of: ConvGeometry = _WIDE) -> Number:
    rows, columns = math.ceil(of.O / _TILE), math.ceil(of.C * 9 / _TILE)
    return Number(
        key="time-tiles",
        chapter=_CHAPTER,
        level=1,
        title="How many tiles?",
        prompt=(
            f"A 3×3 layer from {of.C} to {of.O} channels, 8 images of 28×28, padding 1. Its "
            "weight gradient is a matrix with a row for each kernel and a column for each "
            "channel and tap. Into how many tiles of 64×64 is it cut?"
        ),
        hints=(
            "How many rows and how many columns has the matrix?",
            "Divide each by 64 and round up: a tile that is half empty is a tile.",
        ),
        compute=lambda: _tiles(of, "weight"),
        compute_mistakes=lambda: [
            (
                of.O * of.C * 9 / _TILE**2,
                "That many tiles' worth of numbers there are. Each side is rounded up by itself.",
            ),
            (
                (of.O // _TILE) * (of.C * 9 // _TILE),
                "You rounded down. What is left at an edge needs a tile, too.",
            ),
            (
                _tiles(of, "forward"),
                "Those are the tiles of the output. The weight gradient has no row for a position.",
            ),
            (
                math.ceil(of.O / _TILE) * math.ceil(of.C / _TILE),
                f"A kernel has nine taps for each channel: the matrix has {of.C}·9 columns.",
            ),
        ],
        explanation=(
            f"{of.O} rows are {rows} tiles, {of.C * 9} columns are {columns}. The output of the "
            f"same layer has 6272 rows and {of.O} columns: 98 times {rows} tiles."
        ),
        solution=f"answer = -(-{of.O} // 64) * -(-{of.C} * 9 // 64)",
    )


# ---- waves -----------------------------------------------------------------------------------


def _waves(splits: int) -> np.ndarray:
    """[[waves, places left empty in the last one]]."""
    cut = Schedule(TOY, tile=Tile(16, 16, 1), splits=splits, processors=_FOUR)
    return np.array([[cut.waves, _FOUR - cut.last_wave]], dtype=np.float64)


def _waves_mistakes(splits: int) -> list[tuple[np.ndarray, str]]:
    waves, empty = _waves(splits)[0]
    return [
        (
            _waves(1),
            f"That is without shares: five programs. In {splits} shares each there are more.",
        ),
        (
            np.array([[waves - 1, empty]]),
            "After so many waves some programs have not begun. They need a wave of their own.",
        ),
        (
            np.array([[waves, 0]]),
            f"{waves:g} waves have room for {4 * waves:g} programs. How many are there?",
        ),
        (np.array([[5 * splits, empty]]), "That is how many programs there are. Four run at once."),
    ]


@redrawn(splits=[2, 3, 9, 18])
def _how_often(splits: int = 6) -> Grid:
    waves = math.ceil(5 * splits / 4)
    return Grid(
        key="time-waves",
        chapter=_CHAPTER,
        level=2,
        title="Waves",
        prompt=(
            "The card with four multiprocessors and the weight gradient of five tiles. The sum "
            f"of each tile is cut into {splits} shares. In how many waves do the programs run, "
            "and how many places are left empty in the last one?"
        ),
        starter="answer = [..., ...]  # waves, empty places in the last wave",
        hints=(
            "Each share of each tile is a program: how many are there?",
            "Four at once. The last wave counts as one, however many are in it.",
        ),
        compute=lambda: _waves(splits),
        compute_mistakes=lambda: _waves_mistakes(splits),
        explanation=(
            f"{5 * splits} programs, four at once: {waves} waves, and the last has "
            f"{4 * waves - 5 * splits} of its places empty. With four shares, or eight, none is."
        ),
        solution=(
            f"programs = 5 * {splits}\nwaves = -(-programs // 4)\n"
            "answer = [waves, 4 * waves - programs]"
        ),
    )


# ---- what helps ------------------------------------------------------------------------------

_F = example("F").geometry
_CHANGES: dict[str, dict[str, Any]] = {
    "A card with twice as many multiprocessors, each as it is": {"multiprocessors": 264},
    "A card with memory twice as fast": {"memory": 6.7},
    "The sum of each tile in 26 shares": {"splits": 26},
    "Images in float16, sums in float16": {},
}


def _milliseconds(multiprocessors: int = 132, memory: float = 3.35, splits: int = 1) -> float:
    """Layer F's weight gradient on the H100, with something changed."""
    card = CARDS["H100"]
    peak = card.float16 * multiprocessors / card.multiprocessors
    other = Card(card.float32, card.tf32, peak, peak, memory, multiprocessors)
    return bound(_F, "grad_weight", other, "float16", tile=128, splits=splits).milliseconds


def _quickest() -> int:
    found = [_milliseconds(**change) for change in _CHANGES.values()]
    return found.index(min(found))


_what_helps = Choice(
    key="time-what-helps",
    chapter=_CHAPTER,
    level=2,
    title="What helps?",
    prompt=(
        "The weight gradient of example F on an H100, in float16 with sums in float32, tiles of "
        "128×128: five of them. Which change shortens its least time most?"
    ),
    options=tuple(_CHANGES),
    hints=(
        "How many of the 132 multiprocessors have something to do?",
        "What would a 133rd one do?",
    ),
    compute=_quickest,
    compute_mistakes=lambda: [
        (0, "Five have a tile, and 127 have none. Of those there would be more."),
        (1, "It does not wait for memory: 287 operations for a byte, and only five at work."),
        (3, "The five are no quicker for it, and the sum of 100,352 products loses its digits."),
    ],
    explanation=(
        "Only more programs bring more multiprocessors to work. With 26 shares there are 130, and "
        "then it is memory that limits."
    ),
    solution="answer = 2  # split-K",
)

# ---- digits ----------------------------------------------------------------------------------

_first_lost = Number(
    key="time-first-lost",
    chapter=_CHAPTER,
    level=2,
    title="The first number that is lost",
    prompt=(
        "TF32 keeps eleven binary digits of a number, the leading one included. Which is the "
        "smallest whole number above 0 that it cannot hold?"
    ),
    hints=(
        "With three digits: 1 to 7 are 1, 10, 11 … 111. 8 is 1000, one digit and zeros. 9 is 1001.",
        "The numbers up to $2^{11}$ have at most eleven digits that matter.",
    ),
    compute=lambda: 2**11 + 1,
    compute_mistakes=lambda: [
        (2**11, "That is a one and eleven zeros: one digit that matters. It can be held."),
        (2**10 + 1, "That has eleven digits. Count the leading one."),
        (2**8 + 1, "So it is with bfloat16, which keeps eight digits."),
        (2**24 + 1, "So it is with float32, which keeps 24."),
        (2**11 - 1, "That is eleven ones: it fits."),
    ],
    explanation=(
        "100000000001 in binary has twelve digits and a one at either end. TF32 takes 2048 for it."
    ),
    solution="answer = 2**11 + 1",
    same_for_all="TF32 has one number of digits, whoever asks.",
)

# ---- which precision -------------------------------------------------------------------------

_NETWORKS = {
    "The depthwise layer, 3×3 on 144 channels": ConvGeometry(
        N=32, C=144, H=56, W=56, O=144, KH=3, KW=3, padding=1, groups=144
    ),
    "The 1×1 layer from 256 to 64 channels": ConvGeometry(
        N=32, C=256, H=56, W=56, O=64, KH=1, KW=1
    ),
    "The 3×3 layer from 256 to 256 channels": ConvGeometry(
        N=32, C=256, H=28, W=28, O=256, KH=3, KW=3, padding=1
    ),
    "The first layer, 7×7 with stride 2, from 3 to 64 channels": ConvGeometry(
        N=32, C=3, H=224, W=224, O=64, KH=7, KW=7, stride=2, padding=3
    ),
}


def _gain(geometry: ConvGeometry) -> float:
    """How many times shorter the least time is in float16 than in float32."""
    card = CARDS["A100-SXM4-40GB"]
    times = [bound(geometry, "forward", card, p).milliseconds for p in ("float32", "float16")]
    return times[0] / times[1]


def _gains_most() -> int:
    found = [_gain(geometry) for geometry in _NETWORKS.values()]
    return found.index(max(found))


_which_gains = Choice(
    key="time-which-gains",
    chapter=_CHAPTER,
    level=3,
    title="Which layer gains?",
    prompt=(
        "An A100 does 16 times as many operations a second in float16 as in float32. Four forward "
        "passes on 32 images, tiles left out. For which is the least time shorter by that factor?"
    ),
    options=tuple(_NETWORKS),
    hints=(
        "Where a layer waits for memory, quicker arithmetic is of no use, but its bytes halve.",
        "The ridge in float16 is at 200 operations a byte. Which layer has more than that?",
    ),
    compute=_gains_most,
    compute_mistakes=lambda: [
        (0, "It waits for memory either way. Half the bytes, half the time: a factor of 2."),
        (1, "In float32 arithmetic limits it, in float16 memory does: it gains only part."),
        (3, "It has much to do in float32, but in float16 it lies left of the ridge."),
    ],
    explanation=(
        "With 256 channels in and out, and nine taps, each byte brings so many operations that the "
        "layer stays right of the ridge. The others gain factors of 2, about 4 and about 10."
    ),
    solution="answer = 2  # much to do for each byte",
)

# ---- write it --------------------------------------------------------------------------------


def _tiling_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=4, H=6, W=7, O=16, KH=2, KW=2)
    steps: list[dict[str, Any]] = [
        {},
        {"O": 40},
        {"C": 9},
        {"KH": 3, "KW": 3},
        {"N": 3, "O": 33, "C": 11},
        {"C": 12, "O": 24, "groups": 3},
        {"C": 40, "O": 80, "groups": 2, "N": 2},
    ]
    for step in steps:
        geometry = replace(plain, **step)
        for multiprocessors in (1, int(rng.integers(2, 6)), int(rng.integers(6, 20))):
            splits = int(rng.integers(1, 6))
            arguments = geometry, 16, multiprocessors, splits
            yield Trial(
                arguments,
                _counted(*arguments),
                {"geometry": geometry, "target": None},
                tuple(_tiling_mistakes(*arguments)),
            )


def _counted(geometry: ConvGeometry, tile: int, multiprocessors: int, splits: int) -> np.ndarray:
    """[[tiles, programs, waves]] of the weight gradient, all tiles of one size."""
    rows, cols = -(-geometry.OG // tile), -(-geometry.CG * geometry.KH * geometry.KW // tile)
    tiles = geometry.groups * rows * cols
    return _row(tiles, tiles * splits, multiprocessors)


def _row(tiles: int, programs: int, multiprocessors: int) -> np.ndarray:
    waves = -(-programs // multiprocessors)
    return np.array([[tiles, programs, waves]], dtype=np.float64)


def _tiling_mistakes(
    g: ConvGeometry, tile: int, multiprocessors: int, splits: int
) -> Iterator[tuple[np.ndarray, str]]:
    taps = g.CG * g.KH * g.KW
    right = _counted(g, tile, multiprocessors, splits)
    tiles, programs = map(int, right[0, :2])

    def with_tiles(count: int) -> np.ndarray:
        return _row(count, count * splits, multiprocessors)

    yield (
        with_tiles(g.groups * (g.OG // tile) * (taps // tile)),
        "you round the tiles down. What is left at an edge needs a tile, too.",
    )
    yield (
        with_tiles(-(-g.OG // tile) * -(-taps // tile)),
        "those are the tiles of one group. Each group is a product of its own.",
    )
    yield (
        with_tiles(-(-g.O // tile) * -(-g.C * g.KH * g.KW // tile)),
        "you cut the weight of a layer without groups. A group has OG rows and CG·KH·KW columns.",
    )
    yield (
        with_tiles(g.groups * -(-g.OG // tile) * -(-g.C * g.KH * g.KW // tile)),
        "a kernel sees the channels of its group alone, and there are CG of those, not C.",
    )
    yield (
        with_tiles(g.groups * -(-g.OG // tile) * -(-g.CG // tile)),
        "a kernel has a column for each channel and tap: multiply by KH·KW before you divide.",
    )
    yield (
        with_tiles(g.groups * -(-g.OG * taps // tile**2)),
        "you round up once, at the end. Rows and columns are rounded up each by itself.",
    )
    yield (
        np.array([[tiles, programs, programs // multiprocessors]]),
        "you round the waves down. The last wave counts, however many are in it.",
    )
    yield (
        np.array([[tiles, tiles, -(-tiles // multiprocessors)]]),
        "the shares are missing: each share of each tile is a program.",
    )
    yield (
        np.array([[tiles, programs, -(-tiles // multiprocessors)]]),
        "the waves are those of the tiles. It is programs that the multiprocessors take.",
    )


_write_tiling = Function(
    key="time-write-waves",
    chapter=_CHAPTER,
    level=2,
    title="Tiles, programs, waves",
    prompt=(
        "Write `handed_out(geometry, tile, multiprocessors, splits)` for the weight gradient: a "
        "list of three numbers, the tiles of `tile` × `tile`, the programs and the waves. Every "
        "group is a product of its own, with `geometry.OG` rows."
    ),
    starter=(
        "def handed_out(geometry, tile, multiprocessors, splits):\n"
        '    """→ [[tiles, programs, waves]]"""\n'
        "    ..."
    ),
    hints=(
        "The columns of one group are `geometry.CG * geometry.KH * geometry.KW`.",
        "`-(-a // b)` divides and rounds up. Rows and columns are rounded each by itself.",
        "A program for each tile and share; as many at once as there are multiprocessors.",
    ),
    trials=_tiling_trials,
    solution=(
        "def handed_out(geometry, tile, multiprocessors, splits):\n"
        "    rows = -(-geometry.OG // tile)\n"
        "    columns = -(-geometry.CG * geometry.KH * geometry.KW // tile)\n"
        "    tiles = geometry.groups * rows * columns\n"
        "    programs = tiles * splits\n"
        "    return [[tiles, programs, -(-programs // multiprocessors)]]"
    ),
)


def _digits_trials(rng: np.random.Generator) -> Iterator[Trial]:
    geometry = ConvGeometry(C=1, H=3, W=4, O=1, KH=1, KW=1)
    tables = [
        rng.standard_normal((3, 4)),
        np.arange(1.0, 13).reshape(3, 4),
        np.array([[2047.0, 2049, 2051, 2053], [257, 259, -257, -259], [1, 2, 4, 8]]),
        np.array([[0.0, 1, -3, 5], [0, -0.1, 0.3, 1 / 3], [7, 0, 1e-3, -1e3]]),
        1e6 * rng.standard_normal((3, 4)),
        1e-6 * rng.standard_normal((3, 4)),
    ]
    for table in tables:
        for count in (3, 8, 11):
            yield Trial(
                (table, count),
                _cut(table, count),
                {"geometry": geometry, "target": None},
                tuple(_digits_mistakes(table, count)),
            )


def _cut(table: np.ndarray, count: int, to: Any = np.round) -> np.ndarray:
    """Each number with ``count`` binary digits."""
    fraction, exponent = np.frexp(table)
    kept: np.ndarray = np.ldexp(to(fraction * 2.0**count), exponent - count)
    return kept


def _digits_mistakes(table: np.ndarray, count: int) -> Iterator[tuple[np.ndarray, str]]:
    yield (
        _cut(table, count, np.trunc),
        "the last digits are cut off. Round to the nearest instead.",
    )
    yield (
        _cut(table, count + 1),
        "one digit too many is kept. The leading one counts, too.",
    )
    yield (
        _cut(table, count - 1),
        "one digit too few is kept.",
    )
    yield (
        np.round(table),
        "you round to whole numbers. It is the leading digits that are kept, wherever the point "
        "stands.",
    )
    with np.errstate(all="ignore"):
        logged = np.floor(np.log2(np.abs(table)))
        nan = np.round(table / 2.0 ** (logged - count + 1)) * 2.0 ** (logged - count + 1)
    yield nan, "0 has no leading digit: its logarithm is −∞. `np.frexp` takes it as it is."


_write_digits = Function(
    key="time-write-digits",
    chapter=_CHAPTER,
    level=3,
    title="So many binary digits",
    prompt=(
        "Write `rounded(x, count)`: every number of the array `x` rounded to `count` binary "
        "digits, the leading one included, to the nearest, and from the middle to the even one. "
        "11 is TF32 and float16 (within its range), 8 is bfloat16. Zero and negative numbers, too."
    ),
    starter='def rounded(x, count):\n    """array, int → array of the same shape"""\n    ...',
    hints=(
        "Move the point so that `count` digits stand before it, round, and move it back.",
        "`np.frexp(x)` gives a fraction from ½ to 1 and an exponent of two; `np.ldexp(fraction, "
        "exponent)` puts them together again.",
        "A fraction times `2**count` has `count` digits before the point. `np.round` goes "
        "to the even neighbour from the middle.",
    ),
    trials=_digits_trials,
    solution=(
        "def rounded(x, count):\n"
        "    fraction, exponent = np.frexp(x)\n"
        "    kept = np.round(fraction * 2.0**count)\n"
        "    return np.ldexp(kept, exponent - count)"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _ridge,
    _how_many,
    _how_often,
    _what_helps,
    _first_lost,
    _write_tiling,
    _which_gains,
    _write_digits,
)
