"""The pictures of *The sliding window*."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from ...examples import EXAMPLES, example
from ...geometry import ConvGeometry
from ...windows import forward as fast_forward
from ..grids import Grid, Label, draw, window, written
from ..style import BookFigure, color
from .shared import forward_of, meetings, small, spaced, tap_on_pixel

__all__ = ["blocks", "four_windows", "index_map", "one_window", "tracker_responses"]


def one_window(p: int = 1, q: int = 2) -> BookFigure:
    """Example B: the window of output cell (p, q), the kernel, and the cell they make."""
    geometry, x, weight, bias, y = forward_of("B")
    return draw(
        Grid(x[0, 0], "x", title="x", lit=window(geometry, p, q), index=("h", "v")),
        "·",
        Grid(weight[0, 0], "kernel", title="w", index=("i", "j")),
        f"+ {written(bias[0])} =",
        Grid(y[0, 0], "ink", title="y", lit=[(p, q)], faint="rest", index=("p", "q")),
    )


def index_map() -> BookFigure:
    """One row of x under a kernel of three taps: what stride, dilation and padding do to it.

    Left the first row of example C, right that of example B, from three positions each.
    """
    seven, five = (example(letter).arrays().x[0, 0, :1] for letter in "CB")
    columns = [
        ("stride 2", seven, ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, stride=2)),
        ("dilation 2", seven, ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, dilation=2)),
        ("padding 1", five, ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=3, padding=(0, 1))),
    ]
    rows = []
    for q in range(3):
        grids = []
        for name, row, geometry in columns:
            reads = window(geometry, 0, q)
            grids.append(
                Grid(
                    row,
                    "x",
                    title=name if q == 0 else "",
                    padding=geometry.padding,
                    lit=reads,
                    faint="rest",
                    marks={cell: f"w{small(j)}" for j, cell in enumerate(reads)},
                    cell=26,
                )
            )
        rows.append([Label(f"q = {q}"), *spaced(grids)])
    return draw(*rows)


def blocks(letter: str = "D") -> BookFigure:
    """Which channels of x each kernel reads, and which plane c of the kernel lies on them."""
    table = meetings(example(letter).geometry, title="w[o, c]", caption="across: channel of x")
    return draw(Label("kernel o"), table, Label("        "))


def four_windows() -> BookFigure:
    """Example A: the padded map, and the one pixel under the kernel from all four positions.

    Each lower picture is the kernel with the pixel's place in it; the tap it lies under is lit.
    """
    geometry, x, weight, _, y = forward_of("A")
    (top, _), (left, _) = geometry.padding
    padded = Grid(
        x[0, 0],
        "x",
        title="x with its border",
        padding=geometry.padding,
        lit=[(0, 0)],
        boxes=[(-top, -left, geometry.KH, geometry.KW)],
        caption="the frame is the window at p = 0, q = 0",
        cell=30,
    )
    pictures = []
    for p, q in product(range(geometry.OH), range(geometry.OW)):
        (i, j) = tap_on_pixel(geometry, p, q)
        pictures.append(
            Grid(
                weight[0, 0],
                "kernel",
                lit=[(i, j)],
                faint="rest",
                caption=f"p = {p}, q = {q}\n{written(weight[0, 0, i, j])} · "
                f"{written(x[0, 0, 0, 0])} = {written(y[0, 0, p, q])}",
                cell=30,
            )
        )
    return draw([padded], [*spaced(pictures)])


def tracker_responses() -> BookFigure:
    """Example E: three response maps; the area of a square is the response, the best is framed."""
    y = _tracker_output()
    maps, size, gap, top = y.shape[1], 11.0, 24.0, 28.0
    rows, cols = y.shape[2:]
    width = maps * cols * size + (maps - 1) * gap + 2
    figure = BookFigure(width, top + rows * size + 26)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(-1, width - 1), ylim=(top + rows * size + 26, 0))
    ax.set_axis_off()
    for o in range(maps):
        left = o * (cols * size + gap)
        ax.add_patch(
            Rectangle((left, top), cols * size, rows * size, fc=color("panel"), ec=color("rule"))
        )
        positive = np.maximum(y[0, o], 0)
        side = size * np.sqrt(positive / positive.max())
        squares = [
            Path([(h - a, v - a), (h + a, v - a), (h + a, v + a), (h - a, v + a), (h - a, v - a)])
            for (p, q), a in np.ndenumerate(side / 2)
            if a > 0.5
            for h, v in [(left + (q + 0.5) * size, top + (p + 0.5) * size)]
        ]
        ax.add_patch(PathPatch(Path.make_compound_path(*squares), fc=color("padding"), lw=0))
        p, q = np.unravel_index(y[0, o].argmax(), y[0, o].shape)
        ax.add_patch(
            Rectangle(
                (left + (q - 0.5) * size, top + (p - 0.5) * size),
                2 * size,
                2 * size,
                fill=False,
                ec=color("ink"),
                lw=2.5,
                gid="cg-peak",
            )
        )
        words: dict[str, Any] = {"ha": "center", "va": "baseline", "color": color("ink")}
        ax.text(left + cols * size / 2, top - 10, f"o = {o}", fontsize=15, **words)
        ax.text(
            left + cols * size / 2,
            top + rows * size + 20,
            f"most at p = {p}, q = {q}",
            fontsize=13,
            **(words | {"color": color("muted")}),
        )
    return figure


def _tracker_output() -> np.ndarray:
    geometry = EXAMPLES["E"].geometry
    x, weight, _, _ = EXAMPLES["E"].arrays()
    return fast_forward(x, weight, geometry)
