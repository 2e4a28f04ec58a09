"""The cover: one cell of the weight gradient, and the nine products that meet in it.

    python -m convgrad.figures.cover book/_static/cover.svg

Every number is running example B's; the gradient is the package's own.
"""

from __future__ import annotations

import sys
from pathlib import Path as FilePath
from typing import Any

from matplotlib.patches import PathPatch
from matplotlib.path import Path

from .. import loops
from ..examples import example
from .grids import Grid, tap, written
from .style import BookFigure, color

__all__ = ["TITLE", "cover", "main"]

TITLE = "The Backward Pass of Conv2d"
SENTENCE = "Nine products meet in one cell of the kernel’s gradient."
WIDTH, HEIGHT = 960, 470
CELL = 48
TAP = (1, 0)  # the tap whose gradient is being filled


def cover() -> BookFigure:
    """x, the upstream gradient, the nine products of one tap, and the cell they fall into."""
    running = example("B")
    geometry = running.geometry
    x, _, _, grad_output = running.arrays()
    grad_weight = loops.grad_weight(grad_output, x, geometry)
    sources = tap(geometry, *TAP)
    positions = [(p, q) for p in range(geometry.OH) for q in range(geometry.OW)]

    left = Grid(x[0, 0], "x", title="x", lit=sources, cell=CELL)
    middle = Grid(grad_output[0, 0], "grad_output", title="∂L/∂y", lit=positions, cell=CELL)
    right = Grid(grad_weight[0, 0], "result", title="∂L/∂w", lit=[TAP], faint="rest", cell=CELL)

    figure = BookFigure(WIDTH, HEIGHT)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    ax.set_axis_off()
    _words(ax, 50, 66, TITLE, size=42, fontfamily="serif", fontweight="bold")
    _words(ax, 50, 100, SENTENCE, size=19, fontfamily="serif", role="muted")
    center = 302
    for grid, at in ((left, 50), (middle, 344), (right, 766)):
        grid.place(at, center - grid.body / 2)
        grid.paint(ax)
    _words(ax, 317, center, "·", size=30, fontweight="bold", ha="center", va="center")
    _words(ax, 524, center, "=", size=26, ha="center", va="center")

    step = 30
    for k, (source, position) in enumerate(zip(sources, positions, strict=True)):
        y = center + (k - (len(sources) - 1) / 2) * step
        factors = x[0, 0][source], grad_output[0, 0][position]
        _product(ax, 592, y, *map(written, factors))
        _thread(ax, (634, y), (right.corner(TAP)[0] - 7, right.middle(TAP)[1]))
    return figure


def _words(
    ax: Any, x: float, y: float, words: str, size: float, role: str = "ink", **kwargs: Any
) -> None:
    ax.text(x, y, words, fontsize=size, color=color(role), **kwargs)


def _product(ax: Any, x: float, y: float, of_x: str, of_g: str) -> None:
    """One product, its factors in the colours of the grids they come from."""
    _words(ax, x - 10, y, of_x, 17, "x", ha="right", va="center", fontweight="bold")
    _words(ax, x, y, "·", 17, ha="center", va="center")
    _words(ax, x + 10, y, of_g, 17, "grad_output", va="center", fontweight="bold")


def _thread(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """A thin curve from a product to the cell that it falls into."""
    (x0, y0), (x1, y1) = start, end
    bend = (x1 - x0) * 0.55
    curve = Path(
        [(x0, y0), (x0 + bend, y0), (x1 - bend, y1), (x1, y1)],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    ax.add_patch(PathPatch(curve, fill=False, lw=1.6, ec=color("result"), alpha=0.7))


def main(arguments: list[str] | None = None) -> int:
    """Write the cover to the path given."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        print("usage: python -m convgrad.figures.cover OUTPUT.svg", file=sys.stderr)
        return 2
    FilePath(arguments[0]).write_text(cover().svg(), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
