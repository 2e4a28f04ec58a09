"""The pictures of *Who owns which gradient element*."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import im2col, loops
from ...examples import example
from ...geometry import ConvGeometry
from ...updates import Step, additions
from ..grids import CAPTION, Grid, Label, Piece, draw, tap, written
from ..style import BookFigure
from .boxes import Box, arrow, paint, words

__all__ = ["Layer", "depthwise", "lost_update", "machine", "one_block", "products"]


# ---- the machine -----------------------------------------------------------------------------

_WIDTH, _HEIGHT = 484, 396
_ACROSS = (8, 168, 328)  # where the multiprocessors begin
_WARPS = 4


def machine() -> BookFigure:
    """Programs on three multiprocessors, others that wait, and the memory that all share."""
    figure, ax = _canvas(_WIDTH, _HEIGHT)
    words(ax, (66, 26), "programs that wait", "muted")
    for place, number in enumerate((6, 7, 8, 9, 10)):
        waits = Box(136 + 62 * place, 11, 54, 30)
        paint(ax, waits, "ink", dashed=True)
        words(ax, waits.middle, str(number))
    words(ax, (458, 26), "…")
    memory = Box(8, 318, 468, 70)
    for which, left in enumerate(_ACROSS):
        multiprocessor = Box(left, 66, 148, 206)
        paint(ax, multiprocessor, "ink")
        words(ax, (multiprocessor.middle[0], 84), "multiprocessor", bold=True)
        for row in (0, 1):
            _program(ax, Box(left + 9, 100 + 66 * row, 130, 56), 2 * which + row)
        shared = Box(left + 9, 234, 130, 28)
        paint(ax, shared, "ink", dashed=True)
        words(ax, shared.middle, "shared memory")
        below = multiprocessor.middle[0]
        arrow(ax, (below - 9, multiprocessor.bottom), (below - 9, memory.top), "muted")
        arrow(ax, (below + 9, memory.top), (below + 9, multiprocessor.bottom), "muted")
    paint(ax, memory, "ink")
    words(ax, (94, memory.middle[1]), "memory of the GPU", size=15)
    for (name, role), left in zip(
        (("x", "x"), ("g", "grad_output"), ("∂L/∂w", "result")), (190, 284, 378), strict=True
    ):
        array = Box(left, memory.top + 15, 84, 40)
        paint(ax, array, role)
        words(ax, array.middle, name, role, bold=True)
    return figure


def _program(ax: Any, box: Box, number: int) -> None:
    """A program with its warps, as bars."""
    paint(ax, box, "ink")
    words(ax, (box.middle[0], box.top + 16), f"program {number}")
    for warp in range(_WARPS):
        left = box.left + 9 + 29 * warp
        paint(ax, Box(left, box.top + 32, 25, 12), "ink")


def _canvas(width: float, height: float) -> tuple[BookFigure, Any]:
    figure = BookFigure(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()
    return figure, ax


# ---- all products ----------------------------------------------------------------------------


def products(row: int = 5, column: int = 2) -> BookFigure:
    """Example B: a row for each tap, a column for each window; the sums of the rows beside it."""
    geometry, (x, _, _, g) = example("B").geometry, example("B").arrays()
    table = im2col.unfold(x, geometry)[0] * g[0, 0].ravel()  # r l
    taps, windows = table.shape
    return draw(
        Grid(
            table,
            "ink",
            title="x·g",
            index=("r", "l"),
            boxes=[(row, 0, 1, windows), (0, column, taps, 1)],
            lit=[(row, column)],
            cell=30,
        ),
        "→",
        Grid(table.sum(1)[:, None], "result", title="∂L/∂w", lit=[(row, 0)], cell=30),
    )


# ---- two programs, one number ----------------------------------------------------------------

_ORDERS = {"one after the other": (0, 0, 1, 1), "at the same time": (0, 1, 0, 1)}
_LINE = 34


def lost_update(numbers: Sequence[float] = (2, 4)) -> BookFigure:
    """Two programs add to one number of memory, in two orders."""
    width, height = 444, 236
    figure, ax = _canvas(width, height)
    for left, (title, order) in zip((0, 226), _ORDERS.items(), strict=True):
        columns = (left + 38, left + 109, left + 180)
        words(ax, (columns[1], 18), title, bold=True)
        for at, head in zip(columns, ("program 0", "memory", "program 1"), strict=True):
            words(ax, (at, 48), head, "muted")
        _memory(ax, columns[1], 78, 0)
        for turn, step in enumerate(additions(numbers, order), start=1):
            top = 78 + _LINE * turn
            _memory(ax, columns[1], top, step.memory)
            said = "reads" if step.action == "reads" else "writes"
            at = columns[0] if step.program == 0 else columns[2]
            words(ax, (at, top), f"{said} {written(step.number)}", size=CAPTION)
            _between(ax, step, columns, top)
    return figure


def _memory(ax: Any, middle: float, top: float, number: float) -> None:
    paint(ax, Box(middle - 20, top - 15, 40, 30), "result")
    words(ax, (middle, top), written(number), "result", bold=True)


def _between(ax: Any, step: Step, columns: tuple[float, ...], top: float) -> None:
    """An arrow from memory to the program that reads, or back from the one that writes."""
    side = -1 if step.program == 0 else 1
    ends = (columns[1] + side * 22, top), (columns[1] + side * 42, top)
    arrow(ax, *(ends if step.action == "reads" else ends[::-1]), "muted")


# ---- one block for each tap ------------------------------------------------------------------


class Layer(NamedTuple):
    """A depthwise layer with its operands."""

    geometry: ConvGeometry
    x: np.ndarray
    grad_output: np.ndarray


def depthwise() -> Layer:
    """The images of example D, every channel by itself, and the first four maps of its g."""
    x, _, _, g = example("D").arrays()
    of = example("D").geometry
    geometry = ConvGeometry(N=of.N, C=of.C, H=of.H, W=of.W, O=of.C, KH=of.KH, KW=of.KW, groups=of.C)
    return Layer(geometry, x, g[:, : geometry.O])


def one_block(channel: int = 1, i: int = 1, j: int = 0) -> BookFigure:
    """One tap of a depthwise layer: each image's products are a warp's, then the warps add up."""
    geometry, x, g = depthwise()
    met = tap(geometry, i, j)
    rows: list[list[Piece]] = []
    for n in range(geometry.N):
        first = n == 0
        share = sum(
            x[n, channel, h, v] * upstream
            for (h, v), upstream in zip(met, g[n, channel].ravel(), strict=True)
        )
        rows.append(
            [
                Label(f"warp {n}"),
                Grid(x[n, channel], "x", lit=met, faint="rest", cell=26, title="x" * first),
                "·",
                Grid(g[n, channel], "grad_output", cell=26, title="g" * first),
                "=",
                Grid([[share]], "ink", cell=44, title="share" * first),
            ]
        )
    whole = loops.grad_weight(g, x, geometry)[channel, 0, i, j]
    total = Grid([[whole]], "result", title="∂L/∂w", lit=[(0, 0)], cell=34)
    rows.append([Label("the block adds the shares", arrow=True), total])
    return draw(*rows)
