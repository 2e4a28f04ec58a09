"""The pictures of *One product at a time*."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import loops
from ...api import conv2d
from ...examples import EXAMPLES
from ..grids import Cell, Grid, Label, draw, written
from ..style import BookFigure, color

__all__ = ["both_homes", "slopes_by_cell", "slopes_by_tap", "slopes_of_input", "slopes_of_weight"]


def both_homes(p: int = 0, q: int = 2, i: int = 1, j: int = 1) -> BookFigure:
    """Example B: the three factors of one product, and the two cells that it feeds."""
    geometry = EXAMPLES["B"].geometry
    x, weight, _, g = EXAMPLES["B"].arrays()
    h, v = geometry.source(p, q, i, j)
    seen, factor, upstream = x[0, 0, h, v], weight[0, 0, i, j], g[0, 0, p, q]
    of_tap, of_cell = geometry.OH * geometry.OW, int((_by_cell("B")[:, h * geometry.W + v]).sum())
    return draw(
        [
            Grid(weight[0, 0], "kernel", title="w", lit=[(i, j)], faint="rest", index=("i", "j")),
            "·",
            Grid(x[0, 0], "x", title="x", lit=[(h, v)], faint="rest", index=("h", "v")),
            "·",
            Grid(g[0, 0], "grad_output", title="g", lit=[(p, q)], faint="rest", index=("p", "q")),
        ],
        [
            Grid(
                loops.grad_weight(g, x, geometry)[0, 0],
                "result",
                title="∂L/∂w",
                lit=[(i, j)],
                faint="rest",
                index=("i", "j"),
                caption=f"takes x·g = {written(seen)}·{written(upstream)} = "
                f"{written(seen * upstream)},\none of its {of_tap} products",
            ),
            Label("    "),
            Grid(
                loops.grad_input(g, weight, geometry)[0, 0],
                "result",
                title="∂L/∂x",
                lit=[(h, v)],
                faint="rest",
                index=("h", "v"),
                caption=f"takes w·g = {written(factor)}·{written(upstream)} = "
                f"{written(factor * upstream)},\none of its {of_cell} products",
            ),
        ],
    )


def slopes_of_weight(letter: str = "A") -> np.ndarray:
    """∂y/∂w of an example with one map: a row for each output cell, a column for each tap.

    The output is linear in the kernel: a kernel with a single 1 gives the column of its tap.
    """
    geometry = EXAMPLES[letter].geometry
    x, taps = EXAMPLES[letter].arrays().x, geometry.KH * geometry.KW
    each = np.eye(taps).reshape(taps, 1, geometry.KH, geometry.KW)
    return conv2d(x, each, padding=geometry.padding)[0].reshape(taps, -1).T


def slopes_of_input(letter: str = "B") -> np.ndarray:
    """∂y/∂x of an example with one map: a row for each output cell, a column for each of x."""
    geometry = EXAMPLES[letter].geometry
    weight, cells = EXAMPLES[letter].arrays().weight, geometry.H * geometry.W
    each = np.eye(cells).reshape(cells, 1, geometry.H, geometry.W)
    return conv2d(each, weight, padding=geometry.padding)[:, 0].reshape(cells, -1).T


def slopes_by_tap() -> BookFigure:
    """Example A: upstream gradient, the slopes ∂y/∂w, and their product, the weight gradient."""
    geometry = EXAMPLES["A"].geometry
    table, g = slopes_of_weight("A"), EXAMPLES["A"].arrays().grad_output
    met = [(int(row), int(col)) for row, col in np.argwhere(table)]
    return _table(
        g.reshape(-1, 1),
        Grid(table, "x", lit=met, faint="rest", cell=32),
        result="∂L/∂w",
        blocks=[f"i = {i}" for i in range(geometry.KH)],
        within=[f"{j}" for j in range(geometry.KW)],
        title="∂y/∂w: a row for each cell of y, a column for each tap i, j",
        lit=[(0, col) for _, col in met],
    )


def slopes_by_cell(h: int = 1, v: int = 3) -> BookFigure:
    """Example B: the same for ∂y/∂x. The frame is the column of input cell (h, v)."""
    geometry = EXAMPLES["B"].geometry
    table, g = slopes_of_input("B"), EXAMPLES["B"].arrays().grad_output
    read = _by_cell("B")
    cells = [
        [value if there else "" for value, there in zip(*row, strict=True)]
        for row in zip(table, read, strict=True)
    ]
    column = h * geometry.W + v
    return _table(
        g.reshape(-1, 1),
        Grid(
            cells,
            "kernel",
            lit=[(int(row), int(col)) for row, col in np.argwhere(read)],
            boxes=[(0, column, len(table), 1)],
            cell=22,
        ),
        result="∂L/∂x",
        blocks=[f"h = {k}" for k in range(geometry.H)],
        within=[f"{k}" for k in range(geometry.W)],
        title="∂y/∂x: a row for each cell of y, a column for each cell h, v of x",
        lit=[(0, column)],
    )


def _by_cell(letter: str) -> np.ndarray:
    """Whether output cell (a row) reads input cell (a column), weight 0 or not."""
    geometry = EXAMPLES[letter].geometry
    read = np.zeros((geometry.OH * geometry.OW, geometry.H * geometry.W), dtype=bool)
    for _, _, p, q, _, _, _, at in loops.products(geometry):
        if at is not None:
            read[p * geometry.OW + q, at[2] * geometry.W + at[3]] = True
    return read


def _table(
    g: np.ndarray,
    slopes: Grid,
    *,
    result: str,
    blocks: list[str],
    within: list[str],
    title: str,
    lit: list[Cell],
) -> BookFigure:
    """g as a column, the table of slopes beside it, and under each column its sum with g."""
    cell, rows, cols = slopes.cell, len(slopes.rows), len(slopes.cols)
    numbers = [[value if value != "" else 0 for value in row] for row in slopes.numbers]
    sums = (g.ravel() @ np.array(numbers, dtype=float))[None]
    left, top = 62.0, 62.0
    across = left + cell + 30
    width, height = across + cols * cell + 8, top + rows * cell + 34 + cell + 10

    figure = BookFigure(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()
    every = [(row, 0) for row in range(rows)]
    upstream = Grid(g, "grad_output", lit=every, cell=cell)
    gradient = Grid(sums, "result", lit=lit, faint="rest", cell=cell)
    upstream.place(left, top)
    slopes.place(across, top)
    gradient.place(across, top + rows * cell + 34)
    for grid in (upstream, slopes, gradient):
        grid.paint(ax)

    small: dict[str, Any] = {"fontsize": 11, "color": color("muted"), "va": "center"}
    bold: dict[str, Any] = {"fontsize": 15, "fontweight": "bold", "va": "center"}
    middle = across + cols * cell / 2
    ax.text(middle, 14, title, ha="center", **(bold | {"fontsize": 13, "color": slopes.ink}))
    ax.text(left + cell / 2, top - 12, "g", ha="center", **bold, color=upstream.ink)
    ax.text(left + cell + 15, top + rows * cell / 2, "·", ha="center", fontsize=24, va="center")
    bottom = gradient.middle((0, 0))[1]
    ax.text(across - 10, bottom, f"{result} =", ha="right", **bold, color=gradient.ink)
    for k, words in enumerate(blocks):
        start = across + k * len(within) * cell
        ax.text(start + len(within) * cell / 2, top - 29, words, ha="center", **small)
        for j, word in enumerate(within):
            ax.text(start + (j + 0.5) * cell, top - 10, word, ha="center", **small)
        if k:
            ends = top - 34, top + rows * cell
            ax.plot([start, start], ends, color=color("muted"), lw=1.5, solid_capstyle="butt")
    side = round(rows**0.5)  # the output maps of both examples are square
    for row in range(rows):
        y = top + (row + 0.5) * cell
        ax.text(left - 8, y, f"y[{row // side},{row % side}]", ha="right", **small)
    return figure
