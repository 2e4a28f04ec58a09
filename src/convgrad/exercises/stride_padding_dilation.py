"""Exercises for *Stride, padding, dilation*: sizes, borders, and how often a cell is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..examples import example
from ..geometry import PADDING_MODES, ConvGeometry
from ..padding import pad
from ..tables import multiplicity
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "stride_padding_dilation"


def _row(W: int, KW: int, **how: object) -> ConvGeometry:
    """One row of W cells under a kernel of KW taps; stride and the like for the columns."""
    across = {name: (1, value) for name, value in how.items() if name in ("stride", "dilation")}
    rest = {name: value for name, value in how.items() if name not in across}
    if "padding" in rest:
        rest["padding"] = (0, rest["padding"])
    return ConvGeometry(C=1, H=1, W=W, O=1, KH=1, KW=KW, **across, **rest)  # type: ignore[arg-type]


# ---- how many inputs share one output size -----------------------------------------------------


def _heights(stride: int, taps: int, out: int) -> list[int]:
    """All widths that give the output size asked for."""
    sizes = range(taps, 80)
    return [W for W in sizes if out == _row(W, taps, stride=stride).OW]


@redrawn(
    lambda stride, taps, out: len({stride, taps, out}) == 3, stride=(3, 7), taps=(2, 5), out=(3, 8)
)
def _sizes(stride: int = 4, taps: int = 3, out: int = 5) -> Number:
    return Number(
        key="geometry-sizes",
        chapter=_CHAPTER,
        level=1,
        title="One output size, several inputs",
        prompt=(
            f"Without padding, a kernel of {taps} rows with stride {stride} runs over an image, "
            f"and the output has {out} rows. How many different image heights are possible?"
        ),
        hints=(
            f"What is the smallest image in which {out} windows fit? Think of where the last one "
            "begins.",
            "How many rows can be added at the bottom before one more window fits?",
        ),
        compute=lambda: len(_heights(stride, taps, out)),
        compute_mistakes=lambda: [
            (1, "Rounding down makes several heights equal. How many rows may be left over?"),
            (
                stride - 1,
                "Nearly: leaving 0 rows over is one of the possibilities, too.",
            ),
            (
                taps,
                "The number of taps has no part in it. What may be left over is below the stride.",
            ),
            (out, "That is the number of output rows. How many rows can be left over?"),
            (
                _heights(stride, taps, out)[0],
                "That is the smallest height. How many further ones give as many output rows?",
            ),
        ],
        explanation=(
            f"The smallest height is {_heights(stride, taps, out)[0]}; then 0 to {stride - 1} "
            "rows are left over, which are as many heights as the stride is large."
        ),
        solution=f"answer = len(range({stride}))  # 0 to stride - 1 rows left over",
    )


# ---- what is left over -------------------------------------------------------------------------

_LEFT = ConvGeometry(C=1, H=13, W=16, O=1, KH=3, KW=4, stride=3, padding=1, dilation=2)


def _over(geometry: ConvGeometry) -> np.ndarray:
    return np.array([geometry.leftover], dtype=np.float64)


def _leftover_mistakes(of: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    right, (s, _) = _over(of), of.stride
    unpadded = replace(of, padding=((0, 0), (0, 0)))
    one_sided = replace(of, padding=((1, 0), (1, 0)))
    whole = np.array([[size % s for size in of.padded_size]], dtype=np.float64)
    return [
        (right[:, ::-1], "Rows come first, then columns. They have different sizes here."),
        (_over(unpadded), "You left the border out: one row above and one below."),
        (_over(replace(of, dilation=(1, 1))), "You left the dilation out of the span."),
        (_over(one_sided), "The border stands on both sides, so it counts twice."),
        (
            whole,
            "You divided the padded size by the stride. First take off the span: that is how far "
            "the window can go.",
        ),
    ]


def _leaves_both(of: ConvGeometry) -> bool:
    """Other sizes both ways, and not twice the same remainder."""
    return of.leftover[0] != of.leftover[1] and of.H != of.W


@redrawn(_leaves_both, of=lambda dice: replace(_LEFT, H=dice.between(9, 20), W=dice.between(9, 20)))
def _leftover(of: ConvGeometry = _LEFT) -> Grid:
    return Grid(
        key="geometry-leftover",
        chapter=_CHAPTER,
        level=1,
        title="What is left over?",
        prompt=(
            f"An image of {of.H}×{of.W} with a border of 1 on all sides, a kernel of {of.KH}×"
            f"{of.KW}, stride {of.stride[0]}, dilation {of.dilation[0]}. How many rows at the "
            "bottom and columns on the right of the padded image does no window read?"
        ),
        starter="answer = [..., ...]  # rows, columns",
        hints=(
            "How many rows and columns does the padded image have, and how many does one window "
            "span?",
            "The difference is the way that the window can go. Divide it by the stride: what "
            "remains?",
        ),
        compute=lambda: _over(of),
        compute_mistakes=lambda: _leftover_mistakes(of),
        explanation=(
            f"The padded image is {of.padded_size[0]}×{of.padded_size[1]}, the window spans "
            f"{of.span[0]}×{of.span[1]}. The ways are "
            f"{of.padded_size[0] - of.span[0]} and {of.padded_size[1] - of.span[1]}, and "
            "these leave a remainder when divided by 3."
        ),
        solution=f"answer = [({of.H + 2} - 5) % 3, ({of.W + 2} - 7) % 3]",
    )


# ---- the two sides of "same" -------------------------------------------------------------------


def _sides(taps: int, dilation: int) -> np.ndarray:
    """[[before, after]] of padding "same" along one axis."""
    geometry = ConvGeometry(
        C=1, H=1, W=40, O=1, KH=1, KW=taps, padding="same", dilation=(1, dilation)
    )
    return np.array([geometry.padding[1]], dtype=np.float64)


@redrawn(lambda taps, dilation: dilation * (taps - 1) % 2, taps=[2, 4, 6], dilation=[3, 5])
def _same(taps: int = 4, dilation: int = 3) -> Grid:
    return Grid(
        key="geometry-same",
        chapter=_CHAPTER,
        level=1,
        title="The two sides of “same”",
        prompt=(
            f"A row of {taps} taps with dilation {dilation} and `padding='same'`. How many "
            "cells does PyTorch put before the row, and how many after it?"
        ),
        starter="answer = [..., ...]  # before, after",
        hints=(
            "Without a border the output is shorter than the input by the span less 1. That is the "
            "number of border cells in all.",
            "They are shared out evenly. If one is left, it goes to the end.",
        ),
        compute=lambda: _sides(taps, dilation),
        compute_mistakes=lambda: [
            (
                _sides(taps, dilation)[:, ::-1],
                "The right two numbers on the wrong sides: the odd cell goes to the end.",
            ),
            (
                _sides(taps, 1),
                "That is without dilation. How many cells does the window span?",
            ),
            (
                np.array([[_sides(taps, dilation).min()] * 2]),
                "With these two the output is one cell too short.",
            ),
            (
                np.array([[_sides(taps, dilation).max()] * 2]),
                "With these two the output is one cell too long.",
            ),
            (
                np.array([[0, _sides(taps, dilation).sum()]]),
                "The number in all is right. It is shared out to both sides.",
            ),
        ],
        explanation=(
            f"The span is {dilation}·({taps} − 1) + 1 = {dilation * (taps - 1) + 1}, so "
            f"{dilation * (taps - 1)} border cells are needed: the smaller half before, "
            "the larger one after."
        ),
        solution=f"total = {dilation} * ({taps} - 1)\nanswer = [total // 2, total - total // 2]",
    )


# ---- what a border reads -----------------------------------------------------------------------

_WIDE = 3  # border cells on each side


def _border_only(padded: np.ndarray) -> np.ndarray:
    """The border cells of a row, those before it and those after it."""
    return np.concatenate([padded[:, :_WIDE], padded[:, -_WIDE:]], axis=1)


def _bordered(mode: str) -> np.ndarray:
    """The border of the first row of example B, [[…]]."""
    row = example("B").arrays().x[:, :, :1]
    padded = pad(row, _row(row.shape[3], 1, padding=_WIDE, padding_mode=mode))
    return _border_only(padded[0, 0])


def _symmetric() -> np.ndarray:
    row = example("B").arrays().x[0, 0, :1]
    return _border_only(np.pad(row, ((0, 0), (_WIDE, _WIDE)), mode="symmetric"))


_border = Grid(
    key="geometry-border",
    chapter=_CHAPTER,
    level=2,
    title="A border that reflects",
    prompt=(
        f"The row 1 2 0 1 3, cells 0 to 4, gets {_WIDE} border cells on each side, with the "
        "padding mode `reflect`. Which numbers stand at the places −3, −2, −1 before the row, and "
        "5, 6, 7 after it?"
    ),
    starter="answer = [..., ..., ..., ..., ..., ...]  # at -3, -2, -1, 5, 6, 7",
    hints=(
        "The mirror stands *on* the last cell. Which cell stands behind it at distance 1?",
        "To the left of the 1 stands the 2, which is cell 1. To the right of the 3 stands cell 3.",
    ),
    compute=lambda: _bordered("reflect"),
    compute_mistakes=lambda: [
        (
            _symmetric(),
            "Your mirror stands between two cells, so the outermost cell appears twice. Here it "
            "stands on the cell.",
        ),
        (_bordered("replicate"), "That is `replicate`: the outermost cell again and again."),
        (_bordered("circular"), "That is `circular`: the row goes on at its other end."),
        (_bordered("zeros"), "That is `zeros`. A reflecting border copies cells of the row."),
        (
            np.concatenate(
                [
                    _bordered("reflect")[:, :_WIDE][:, ::-1],
                    _bordered("reflect")[:, _WIDE:][:, ::-1],
                ],
                axis=1,
            ),
            "The right copies from the wrong end: the place next to the row shows the cell next to "
            "the mirror.",
        ),
    ],
    explanation=(
        "Going left from the 1 one reads 2, 0, 1, and going right from the 3 one reads 1, 0, 2: "
        "the row backwards, without its outermost cell."
    ),
    solution="row = [1, 2, 0, 1, 3]\nanswer = [*row[3:0:-1], *row[-2:-5:-1]]",
    same_for_all="The row is the first of example B, which the page shows beside it.",
)


# ---- how often ---------------------------------------------------------------------------------

_STEPS = _row(11, 4, stride=3)


def _use_mistakes(of: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    right = _uses(of)
    return [
        (
            np.maximum(right, 1),
            "The last window ends before the last cell. What is left over is not read at all.",
        ),
        (
            np.minimum(right, 1),
            "You marked which cells are read. Where two windows overlap, a cell is read twice.",
        ),
        (
            multiplicity(replace(of, stride=(1, 1))).astype(float),
            "That is stride 1. Here the window moves by 3.",
        ),
        (
            multiplicity(replace(of, stride=(1, of.KW))).astype(float),
            f"Here the windows stand side by side. With stride 3 and {of.KW} taps neighbours "
            "overlap.",
        ),
    ]


def _uses(of: ConvGeometry) -> np.ndarray:
    return multiplicity(of).astype(np.float64)


@redrawn(
    lambda of: of.leftover[1] > 0,
    of=lambda dice: _row(dice.between(9, 13), dice.between(4, 5), stride=3),
)
def _counts(of: ConvGeometry = _STEPS) -> Grid:
    return Grid(
        key="geometry-counts",
        chapter=_CHAPTER,
        level=2,
        title="How often is each cell read?",
        prompt=(
            f"A row of {of.W} cells, a kernel of {of.KW} taps, stride 3, no padding. How often is "
            "each cell read?"
        ),
        starter="answer = [" + ", ".join(["..."] * of.W) + "]",
        hints=(
            f"The windows begin at cells 0, 3 and so on. Why is {3 * (of.OW - 1)} the last of "
            "them?",
            "Write down which cells each window covers, and count.",
        ),
        compute=lambda: _uses(of),
        compute_mistakes=lambda: _use_mistakes(of),
        explanation=(
            f"{of.OW} windows of {of.KW} cells, 3 apart. Where two overlap a cell is read twice, "
            f"and {of.leftover[1]} at the end {'is' if of.leftover[1] == 1 else 'are'} left over."
        ),
        solution=(
            f"answer = np.zeros({of.W})\nfor q in range({of.OW}):\n"
            f"    answer[3 * q : 3 * q + {of.KW}] += 1"
        ),
    )


# ---- cells that nobody reads -------------------------------------------------------------------

_GAPS = ConvGeometry(C=1, H=8, W=8, O=1, KH=2, KW=2, stride=3)


def _unread(of: ConvGeometry) -> int:
    return int((multiplicity(of) == 0).sum())


def _unread_mistakes(of: ConvGeometry) -> list[tuple[int, str]]:
    rows = int((multiplicity(of).sum(axis=1) == 0).sum())
    return [
        (
            of.H * of.W - _unread(of),
            "These are the cells that are read. The others were asked for.",
        ),
        (
            rows * rows,
            "You counted the cells whose row and column both are not read. One of them is enough.",
        ),
        (
            rows * of.W,
            "These are the cells of the rows that are not read. Columns are skipped, too.",
        ),
        (
            2 * rows * of.W,
            "Cells that lie in such a row and in such a column are counted twice here.",
        ),
        (rows, "That is the number of rows that are not read. Count cells, columns included."),
    ]


@redrawn(size=[5, 8, 11, 14])
def _blind(size: int = 8) -> Number:
    of = replace(_GAPS, H=size, W=size)
    read = size - size // 3
    return Number(
        key="geometry-unread",
        chapter=_CHAPTER,
        level=2,
        title="Cells that no window reads",
        prompt=(
            f"A kernel of {of.KH}×{of.KW} with stride {of.stride[0]} runs over an image of "
            f"{of.H}×{of.W}, without padding. How many of its cells get no gradient, whatever "
            "comes after the convolution?"
        ),
        hints=(
            "Along one axis the windows cover cells 0–1, 3–4 and so on. Which are skipped?",
            "A cell is read if its row and its column are. How many are read, and how many remain?",
        ),
        compute=lambda: _unread(of),
        compute_mistakes=lambda: _unread_mistakes(of),
        explanation=(
            f"Every third row and column is skipped, from 2 on. {read} rows times {read} columns "
            f"are read, which are {read * read} of {size * size} cells."
        ),
        solution=f"answer = {size} * {size} - {read} * {read}",
    )


# ---- which padding mode was it -----------------------------------------------------------------


def _of_modes() -> dict[str, np.ndarray]:
    """How often the five cells of a row are read by five taps, in each padding mode."""
    return {
        mode: multiplicity(_row(5, 5, padding=2, padding_mode=mode))[0] for mode in PADDING_MODES
    }


_ASKED_MODE = "replicate"

_which_mode = Choice(
    key="geometry-which-mode",
    chapter=_CHAPTER,
    level=2,
    title="Which border was it?",
    prompt=(
        "A row of five cells, a kernel of five taps, stride 1, two border cells on each side. The "
        "cells are read "
        + ", ".join(map(str, _of_modes()[_ASKED_MODE][:-1]))
        + f" and {_of_modes()[_ASKED_MODE][-1]} times, copies on the border included. Which "
        "padding mode is it?"
    ),
    options=tuple(f"`{mode}`" for mode in PADDING_MODES),
    hints=(
        "Without copies the cells are read 3, 4, 5, 4 and 3 times. Which cells have got more?",
        "Both border cells on the left are read as well: once the outer one, twice the inner one. "
        "Whose copies must they be?",
    ),
    compute=lambda: PADDING_MODES.index(_ASKED_MODE),
    compute_mistakes=lambda: [
        (0, "With zeros on the border the outermost cells are read least: 3 times."),
        (1, "A mirror on the outermost cell copies the cells behind it: they would get more."),
        (3, "A row that goes on at its other end is read evenly: five times each cell."),
    ],
    explanation=(
        "The outermost cells have 1 + 2 reads more than without copies: both border cells of their "
        "side are copies of them."
    ),
    solution="answer = 2  # replicate",
)


# ---- no checkerboard ---------------------------------------------------------------------------

_KERNELS = (3, 4, 5, 7)


def _even() -> int:
    """The one kernel size that reads all cells far from the border alike, with stride 2."""
    flat = []
    for taps in _KERNELS:
        inside = multiplicity(_row(40, taps, stride=2))[0, taps:-taps]
        flat.append(bool((inside == inside[0]).all()))
    return flat.index(True)


_no_board = Choice(
    key="geometry-even",
    chapter=_CHAPTER,
    level=3,
    title="Without a checkerboard",
    prompt=(
        "Stride 2, dilation 1. Which kernel reads all cells far from the border equally often, on "
        "images of every size?"
    ),
    options=tuple(f"{taps}×{taps}" for taps in _KERNELS),
    hints=(
        "Take one axis. A cell is read by one tap of each window that covers it: by every second "
        "tap of the kernel.",
        "A cell in an even place meets taps 0, 2, 4, …, its neighbour taps 1, 3, 5, … Which "
        "kernels have as many of the one as of the other?",
    ),
    compute=_even,
    compute_mistakes=lambda: [
        (0, "Taps 0 and 2 meet the cells in even places, tap 1 those in odd ones: 2 and 1."),
        (2, "Taps 0, 2, 4 meet the cells in even places, taps 1, 3 those in odd ones: 3 and 2."),
        (3, "Seven taps are four and three. A larger kernel makes the pattern fainter, not flat."),
    ],
    explanation=(
        "Four taps are two and two. In general the counts are flat inside if the stride divides "
        "the number of taps."
    ),
    solution="answer = 1  # 4 taps: two meet each cell",
)


# ---- write it ----------------------------------------------------------------------------------


def _count_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        plain = replace(geometry, N=1, C=1, O=1, groups=1)
        ones = np.ones(plain.weight_shape)
        g = np.ones(plain.output_shape)
        right = multiplicity(plain).astype(np.float64)
        without_border = replace(
            plain, H=plain.padded_size[0], W=plain.padded_size[1], padding=((0, 0), (0, 0))
        )
        yield Trial(
            (plain,),
            right,
            {"geometry": plain, "target": "input", "weight": ones, "grad_output": g},
            (
                (
                    multiplicity(without_border).astype(np.float64),
                    "your table has the size of the padded image. Cells of the border are no cells "
                    "of x: leave them out.",
                ),
                (
                    (right > 0).astype(np.float64),
                    "your table says which cells are read, not how often. Use += where you use =.",
                ),
                (
                    right / (plain.KH * plain.KW),
                    "your numbers are shares of all taps. Count 1 for each read.",
                ),
            ),
        )


_write_counts = Function(
    key="geometry-read-counts",
    chapter=_CHAPTER,
    level=2,
    title="Count the reads",
    prompt=(
        "Write `reads(geometry)`: a table `(H, W)` that says how often the windows read each cell, "
        "for one image, one channel and one kernel, with zero padding. `geometry.source(p, q, i, "
        "j)` is the place that a tap reads, `geometry.cell(h, v)` the cell of x there, or `None` "
        "on padding."
    ),
    starter=('def reads(geometry):\n    """→ (H,W), how often each cell is read"""\n    ...'),
    hints=(
        "Two loops over the positions, two over the taps; `np.ndindex` makes them one.",
        "Each choice of p, q, i, j is one read. Add 1 to its cell, if there is one.",
    ),
    trials=_count_trials,
    solution=(
        "def reads(geometry):\n"
        "    g, table = geometry, np.zeros((geometry.H, geometry.W))\n"
        "    for p, q, i, j in np.ndindex(g.OH, g.OW, g.KH, g.KW):\n"
        "        cell = g.cell(*g.source(p, q, i, j))\n"
        "        if cell is not None:\n"
        "            table[cell] += 1\n"
        "    return table"
    ),
)


def _border_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for round_ in range(3):
        for mode in PADDING_MODES:
            H, W = (int(size) for size in rng.integers(3, 6, 2))
            most = min(W - 1, 1 + round_)
            before, after = (int(k) for k in rng.permutation([most, max(most - 1, 0)]))
            geometry = ConvGeometry(
                C=1,
                H=H,
                W=W,
                O=1,
                KH=1,
                KW=1,
                padding=((0, 0), (before, after)),
                padding_mode=mode,
            )
            x = rng.permutation(np.arange(1.0, H * W + 1)).reshape(H, W)
            yield Trial(
                (x, before, after, mode),
                pad(x[None, None], geometry)[0, 0],
                {"geometry": geometry, "target": None},
                tuple(_border_mistakes(x, before, after, mode, geometry)),
            )


def _border_mistakes(
    x: np.ndarray, before: int, after: int, mode: str, geometry: ConvGeometry
) -> Iterator[tuple[np.ndarray, str]]:
    sides = ((0, 0), (before, after))
    if before != after:
        other = replace(geometry, padding=((0, 0), (after, before)))
        yield (
            pad(x[None, None], other)[0, 0],
            "`before` and `after` are exchanged: `before` is the number of columns on the left.",
        )
    if mode == "reflect":
        yield (
            np.pad(x, sides, mode="symmetric"),
            "with `reflect` the mirror stands on the outermost cell, so that cell is not repeated.",
        )
    if mode != "zeros":
        yield (
            np.pad(x, sides),
            f"your border is zeros. With `{mode}` its cells are copies.",
        )
        yield (
            np.pad(x, sides[::-1], mode="edge"),
            "you put the border above and below. It belongs to the left and to the right.",
        )


_write_border = Function(
    key="geometry-write-border",
    chapter=_CHAPTER,
    level=3,
    title="A border of every kind",
    prompt=(
        "Write `bordered(x, before, after, mode)`: `x` is an image `(H, W)`, the result has "
        "`before` columns more on the left and `after` more on the right. `mode` is one of "
        "`zeros`, `reflect`, `replicate` and `circular`. Do without `np.pad`."
    ),
    starter=(
        "def bordered(x, before, after, mode):\n"
        '    """x (H,W) → (H, before + W + after)"""\n'
        "    ..."
    ),
    hints=(
        "Which column is read at place v, from −before to W + after − 1? With that list, "
        "`x[:, columns]` is the result.",
        "circular: `v % W`. replicate: `np.clip(v, 0, W - 1)`.",
        "reflect: left of the row `-v`, which is `abs(v)`; right of it the distance from the last "
        "cell, on the other side: `W - 1 - abs(W - 1 - v)`.",
    ),
    trials=_border_trials,
    solution=(
        "def bordered(x, before, after, mode):\n"
        "    W = x.shape[1]\n"
        "    v = np.arange(-before, W + after)\n"
        "    columns = {\n"
        '        "reflect": W - 1 - abs(W - 1 - abs(v)),\n'
        '        "circular": v % W,\n'
        "    }.get(mode, np.clip(v, 0, W - 1))\n"
        "    inside = (0 <= v) & (v < W)\n"
        '    return x[:, columns] * (inside | (mode != "zeros"))'
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _sizes,
    _leftover,
    _same,
    _border,
    _counts,
    _blind,
    _which_mode,
    _no_board,
    _write_counts,
    _write_border,
)
