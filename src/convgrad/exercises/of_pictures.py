"""Questions that are answered by looking: each has a figure, and words for what it shows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .. import loops, windows
from ..dice import Dice
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .base import Exercise
from .pictures import Picture, PictureGrid
from .redraw import redrawn

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import ArrayLike

__all__ = ["EXERCISES"]


def _questions() -> ModuleType:
    """The figures; matplotlib comes with them, so they wait until one is drawn."""
    from ..figures.chapters import questions

    return questions


def _and(numbers: ArrayLike) -> str:
    """0, 2 and 4, with the book's minus sign."""
    *front, last = (f"{number:g}".replace("-", "−") for number in np.ravel(numbers))
    return f"{', '.join(front)} and {last}" if front else last


# ---- stride, padding, dilation ---------------------------------------------------------------


def _row(W: int, taps: int, stride: int, dilation: int, border: int) -> ConvGeometry:
    return ConvGeometry(
        C=1, H=1, W=W, O=1, KH=1, KW=taps, stride=(1, stride), dilation=(1, dilation),
        padding=((0, 0), (border, border)),
    )  # fmt: skip


@redrawn(
    lambda W, stride, dilation: stride != dilation and _row(W, 3, stride, dilation, 1).OW > 1,
    W=(8, 12),
    stride=(2, 4),
    dilation=(2, 3),
)
def _output_columns(W: int = 10, stride: int = 3, dilation: int = 2) -> Picture:
    of = _row(W, 3, stride, dilation, 1)
    first, second = (of.source(0, q, 0, np.arange(3))[1] for q in (0, 1))
    return Picture(
        key="geometry-picture",
        chapter="stride_padding_dilation",
        level=2,
        title="What two windows tell",
        prompt=(
            f"A row of {W} cells with a border of one cell on each side. Lit is what the first "
            "window reads, and below it what the second one does. How many numbers has the output?"
        ),
        hints=(
            "How far apart are the taps of one window, and how far has the second one moved?",
            "Go on from there: where does the third window end, and is that still on the border?",
        ),
        compute=lambda: of.OW,
        compute_mistakes=lambda: [
            (of.OW + 1, "The window after the last would stick out beyond the border."),
            (of.OW - 1, "Count the first window, too."),
            (replace(of, stride=(1, 1)).OW, "That is a step of 1. Look how far it moved."),
            (
                replace(of, stride=(1, dilation), dilation=(1, stride)).OW,
                "You exchanged two things: within a window the cells lie the dilation apart, and "
                "windows begin the stride apart.",
            ),
            (W, "That is the row itself."),
        ],
        explanation=(
            f"Within a window the taps lie {dilation} apart, and the second begins {stride} "
            f"further: ({W} + 2 − {of.span[1]}) // {stride} + 1."
        ),
        solution=f"answer = ({W} + 2 - {of.span[1]}) // {stride} + 1",
        draw=lambda: _questions().two_windows(of),
        alt=(
            f"A row of {W} cells, 0 to {W - 1}, with one cell of border at −1 and at {W}. Window 0 "
            f"reads cells {_and(first)}, window 1 reads cells {_and(second)}."
        ),
    )


# ---- the weight gradient -----------------------------------------------------------------------


def _tap_geometry(dice: Dice) -> ConvGeometry:
    return replace(_READ, H=dice.between(5, 8), W=dice.between(6, 9))


_READ = ConvGeometry(C=1, H=6, W=7, O=1, KH=4, KW=4, stride=2, padding=1)


@redrawn(lambda of, i, j: i != j, of=_tap_geometry, i=(1, 3), j=(1, 3))
def _which_tap(of: ConvGeometry = _READ, i: int = 1, j: int = 3) -> PictureGrid:
    rows = np.unique(of.source(np.arange(of.OH), 0, i, j)[0])
    cols = np.unique(of.source(0, np.arange(of.OW), i, j)[1])
    (top, _), (left, _) = of.padding
    return PictureGrid(
        key="weight-picture",
        chapter="weight_gradient",
        level=2,
        title="Which tap is it?",
        prompt=(
            "A 4×4 kernel with stride 2 slides over an image with a border of one cell. Lit are "
            "the cells that *one* of its taps reads, in all windows. Which tap (i, j) is it?"
        ),
        starter="answer = [..., ...]  # i, j",
        hints=(
            "In the first window the tap lies on the first of the lit cells. Where does that "
            "window begin?",
            "It begins on the border, at row −1 and column −1.",
        ),
        compute=lambda: np.array([[i, j]], dtype=np.float64),
        compute_mistakes=lambda: [
            (
                np.array([[i - top, j - left]]),
                "That is the cell of x. The first window begins one "
                "row and one column before it, on the border.",
            ),
            (np.array([[j, i]]), "The row comes first: i counts down, j to the right."),
            (np.array([[i + 1, j + 1]]), "Taps count from 0."),
            (np.array([[rows[-1], cols[-1]]]), "Those are row and column of the last lit cell."),
        ],
        explanation=(
            f"The first window begins at (−1, −1), and its tap ({i}, {j}) lies on cell "
            f"({i - 1}, {j - 1}), the first that is lit. The others follow at the stride."
        ),
        solution=f"answer = [{i - 1} + 1, {j - 1} + 1]",
        draw=lambda: _questions().tap_lit(of, i, j),
        alt=(
            f"An image of {of.H} rows and {of.W} columns, counted from 0, with a border of one "
            f"cell. Lit are the cells in rows {_and(rows)} and columns {_and(cols)}."
        ),
    )


# ---- the input gradient ------------------------------------------------------------------------

_LAID = ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, stride=(1, 2))


@redrawn(
    lambda a, b, c, g, k: g != k and len({g * c, k * a, g * c + k * a}) == 3 and a != c,
    a=(1, 5), b=(1, 5), c=(2, 6), g=(2, 5), k=(-4, 4),
)  # fmt: skip
def _where_they_meet(a: int = 1, b: int = 3, c: int = 2, g: int = 2, k: int = -1) -> Picture:
    kernel, sent = (a, b, c), (g, k, 3)
    right = loops.grad_input(
        np.array(sent, dtype=float).reshape(1, 1, 1, 3),
        np.array(kernel, dtype=float).reshape(1, 1, 1, 3),
        _LAID,
    )[0, 0, 0]
    shown = [", ".join(_and(number * weight) for weight in kernel) for number in sent]
    return Picture(
        key="input-picture",
        chapter="input_gradient",
        level=1,
        title="Where two kernels meet",
        prompt=(
            "One row of seven cells. A kernel of three taps was laid down three times, each time "
            "multiplied by its number of `grad_output`. Which number stands at the question mark?"
        ),
        hints=(
            "Which of the laid rows have a number in that column?",
            "What lies in one cell is added up.",
        ),
        compute=lambda: float(right[2]),
        compute_mistakes=lambda: [
            (g * c, "That is what the first kernel laid down. Another one lies there, too."),
            (k * a, "That is what the second kernel laid down. Another one lies there, too."),
            ((g * c + k * a) / 2, "You took the mean. A gradient is a sum."),
            (g * c * k * a, "What meets is added, not multiplied."),
            (float(right[4]), "That is the next cell in which two kernels meet."),
        ],
        explanation=f"{_and(g * c)} from the first window and {_and(k * a)} from the second.",
        solution=f"answer = {g} * {c} + {k} * {a}",
        draw=lambda: _questions().laid(_LAID, kernel, sent),
        alt=(
            f"Three rows of seven cells. In the first, cells 0, 1, 2 hold {shown[0]}; in the "
            f"second, cells 2, 3, 4 hold {shown[1]}; in the third, cells 4, 5, 6 hold {shown[2]}. "
            "Below them a row for the sums, with a question mark in cell 2."
        ),
    )


# ---- im2col --------------------------------------------------------------------------------------

_COLUMNS = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)


@redrawn(lambda r, l: r // 3 != r % 3 and l // 3 != l % 3 and r != l, r=(0, 8), l=(0, 8))
def _which_cell(r: int = 5, l: int = 3) -> PictureGrid:
    (i, j), (p, q) = divmod(r, 3), divmod(l, 3)
    return PictureGrid(
        key="unfold-picture",
        chapter="im2col",
        level=2,
        title="Where does it come from?",
        prompt=(
            "The columns of an image of 5×5 with one channel, a 3×3 kernel, stride 1, no border. "
            "From which cell of the image was the lit number copied? Give its row h and its "
            "column v."
        ),
        starter="answer = [..., ...]  # h, v",
        hints=(
            "Its row r says which tap read it: three rows of three taps.",
            "Its column l says which window: three rows of three windows.",
            "Tap (i, j) of window (p, q) lies on cell (p + i, q + j).",
        ),
        compute=lambda: np.array([[p + i, q + j]], dtype=np.float64),
        compute_mistakes=lambda: [
            (np.array([[q + j, p + i]]), "The row comes first."),
            (np.array([[p, q]]), "That is where its window begins. Which tap of it is this?"),
            (np.array([[i, j]]), "That is the tap. In which window?"),
            (np.array([[p + j, q + i]]), "You exchanged row and column of the tap."),
            (np.array([[q + i, p + j]]), "You exchanged row and column of the window."),
        ],
        explanation=(
            f"Row {r} is tap ({i}, {j}), column {l} is window ({p}, {q}): together cell "
            f"({p + i}, {q + j})."
        ),
        solution=f"(i, j), (p, q) = divmod({r}, 3), divmod({l}, 3)\nanswer = [p + i, q + j]",
        draw=lambda: _questions().lit_in_matrix(_COLUMNS, r, l),
        alt=(
            "A matrix of nine rows r and nine columns l, counted from 0, without numbers. Lit is "
            f"the place in row {r} and column {l}."
        ),
    )


# ---- groups --------------------------------------------------------------------------------------


@redrawn(lambda G, CG, OG: len({G, CG, OG}) > 1, G=(2, 4), CG=(2, 4), OG=(1, 3))
def _filled(G: int = 3, CG: int = 3, OG: int = 2) -> Picture:
    of = ConvGeometry(C=G * CG, H=5, W=5, O=G * OG, KH=3, KW=3, groups=G)
    listed = "; ".join(
        f"rows {k * OG} to {(k + 1) * OG - 1} in columns {k * CG} to {(k + 1) * CG - 1}"
        if OG > 1
        else f"row {k} in columns {k * CG} to {(k + 1) * CG - 1}"
        for k in range(G)
    )
    return Picture(
        key="grouped-picture",
        chapter="grouped",
        level=1,
        title="Which kernel reads what",
        prompt=(
            "A row for each kernel, a column for each channel; a place is filled where the kernel "
            "reads the channel. The kernels have 3×3 taps. How many weights has the layer?"
        ),
        hints=(
            "A filled place is a plane of nine taps.",
            "How many places are filled in one block, and how many blocks are there?",
        ),
        compute=lambda: math.prod(of.weight_shape),
        compute_mistakes=lambda: [
            (9 * of.O * of.C, "Those are all places. A kernel has planes for what it reads alone."),
            (of.O * of.CG, "Those are the filled places. Each is a plane of nine taps."),
            (9 * OG * CG, "That is one block."),
            (9 * (of.O * of.C - of.O * of.CG), "You counted the empty places."),
        ],
        explanation=(
            f"{G} blocks of {OG}×{CG} places, each a plane of nine taps: {G}·{OG}·{CG}·9."
        ),
        solution=f"answer = {G} * {OG} * {CG} * 9",
        draw=lambda: _questions().blocks(of),
        alt=(
            f"A table of {of.O} rows, one for each kernel, and {of.C} columns, one for each "
            f"channel. Filled are {listed}."
        ),
    )


# ---- a museum of gradient bugs -----------------------------------------------------------------


def _bordered(top: int, left: int) -> ConvGeometry:
    return ConvGeometry(C=1, H=6, W=6, O=1, KH=4, KW=4, padding=((top, top), (left, left)))


def _grads(top: int, left: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """grad_output, and the right gradient and the one that is found."""
    of = _bordered(top, left)
    g = (np.arange(math.prod(of.output_shape)) * 5 % 4 - 1.0).reshape(of.output_shape)
    arguments = g, x[None, None], of
    wrong = MUTANTS["wgrad_shifted"](*arguments)[0, 0]
    return g, windows.grad_weight(*arguments)[0, 0], wrong


_ONES = np.array(
    [
        [2, 0, 1, 3, 1, 0],
        [1, 3, 0, 2, 2, 1],
        [0, 1, 2, 1, 0, 3],
        [3, 0, 1, 0, 2, 1],
        [1, 2, 0, 3, 1, 0],
        [2, 1, 3, 0, 0, 2],
    ],
    dtype=float,
)


@redrawn(
    lambda top, left, x: top != left,
    top=(1, 2),
    left=(1, 2),
    x=lambda dice: dice.numbers((6, 6), 0, 4).astype(np.float64),
)
def _how_far(top: int = 1, left: int = 2, x: np.ndarray = _ONES) -> PictureGrid:
    g, right, found = _grads(top, left, x)
    of = _bordered(top, left)

    def rows(numbers: np.ndarray) -> str:
        return "; ".join(_and(row) for row in numbers)

    return PictureGrid(
        key="museum-picture",
        chapter="museum",
        level=2,
        title="How far did it move?",
        prompt=(
            "A weight gradient as it should be, and as somebody found it: they forgot “− padding” "
            "in the index map. How wide is the border above, and how wide on the left?"
        ),
        starter="answer = [..., ...]  # above, on the left",
        hints=(
            "Find a number of the right grid that occurs once, and look for it in the other.",
            "Every tap reads too far down by the border above, and too far right by that on the "
            "left. So its number stands where another tap's should.",
        ),
        compute=lambda: np.array([[top, left]], dtype=np.float64),
        compute_mistakes=lambda: [
            (np.array([[left, top]]), "The right two numbers in the wrong order: above first."),
            (np.array([[0, 0]]), "Without a border nothing would have moved."),
            (np.array([[top, top]]), "The rows are right. Look at how far it moved sideways."),
            (np.array([[left, left]]), "The columns are right. Look at how far it moved upwards."),
        ],
        explanation=(
            f"What the right grid has at ({top}, {left}) stands at (0, 0) in the other: it moved "
            f"up by {top} and to the left by {left}."
        ),
        solution=f"answer = [{top}, {left}]",
        draw=lambda: _questions().moved(x[None, None], g, of),
        alt=(
            f"Two grids of 4×4. Right, row by row: {rows(right)}. Found, row by row: {rows(found)}."
        ),
    )


# ---- implicit GEMM -------------------------------------------------------------------------------


@redrawn(
    lambda rows, columns, side: rows % side and columns % side and rows != columns,
    rows=(6, 12),
    columns=(9, 18),
    side=[4, 5],
)
def _outside(rows: int = 10, columns: int = 14, side: int = 4) -> Picture:
    down, across = -(-rows // side), -(-columns // side)
    whole = down * across * side * side
    return Picture(
        key="implicit-picture",
        chapter="implicit_gemm",
        level=2,
        title="What sticks out",
        prompt=(
            "A matrix, lit, under square tiles; every tile is a program, and has a lane for each "
            "of its places. How many lanes compute a number that nobody needs?"
        ),
        hints=(
            "How many tiles are there, and how many places has each?",
            "Take off what lies on the matrix.",
        ),
        compute=lambda: whole - rows * columns,
        compute_mistakes=lambda: [
            (rows * columns, "Those lie on the matrix. Count the others."),
            (whole, "Those are the places of all tiles. Most lie on the matrix."),
            (down * across, "That is how many tiles there are."),
            (
                (down * side - rows) * columns,
                "Those are below the matrix. Tiles stick out on the right, too.",
            ),
            (
                (across * side - columns) * rows,
                "Those are on the right of the matrix. Tiles stick out below, too.",
            ),
        ],
        explanation=(
            f"{down} times {across} tiles of {side}·{side} places make {whole}, and "
            f"{rows}·{columns} "
            f"of them are needed."
        ),
        solution=f"answer = {down} * {across} * {side}**2 - {rows} * {columns}",
        draw=lambda: _questions().tiled(rows, columns, side),
        alt=(
            f"A matrix of {rows} rows and {columns} columns under square tiles of {side} rows, "
            f"{down} tiles down and {across} across. The last ones stick out below and on the "
            "right."
        ),
    )


EXERCISES: tuple[Exercise, ...] = (
    _output_columns,
    _which_tap,
    _where_they_meet,
    _which_cell,
    _filled,
    _how_far,
    _outside,
)
