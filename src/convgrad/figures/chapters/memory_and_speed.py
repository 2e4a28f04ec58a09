"""The pictures of *Memory and speed*."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ... import im2col
from ...costs import intensity, operations
from ...examples import example
from ...geometry import ConvGeometry
from ...roofline import Roof
from ..grids import Grid, Label, Piece, draw
from ..speed import CONTESTANTS, Mark
from ..style import BookFigure, color

__all__ = ["LAYERS", "Point", "Roof", "blocks", "points", "roof", "roofline"]

# ---- blocks of columns -----------------------------------------------------------------------


def blocks(j: int = 2, i: int = 1) -> BookFigure:
    """Example B: the columns of one row of windows at a time, and what each adds to one tap."""
    geometry = example("B").geometry
    x, _, _, grad_output = example("B").arrays()
    columns = im2col.unfold(x, geometry)[0]
    r, OW = i * geometry.KW + j, geometry.OW
    rows: list[list[Piece]] = []
    for p in range(geometry.OH):
        first = p == 0
        block = columns[:, p * OW : (p + 1) * OW]
        share = block[r] @ grad_output[0, 0, p]
        reads = list(product(range(p, p + geometry.KH), range(geometry.W)))
        rows.append(
            [
                Grid(x[0, 0], "x", lit=reads, faint="rest", cell=22, title="x" if first else ""),
                Label("unfold", arrow=True),
                Grid(
                    block,
                    "x",
                    lit=[(r, q) for q in range(OW)],
                    cell=22,
                    title="a block" if first else "",
                ),
                "·",
                Grid(
                    grad_output[0, 0, p : p + 1],
                    "grad_output",
                    cell=26,
                    title="g" if first else "",
                ),
                "=",
                Grid([[share]], "result", lit=[(0, 0)], cell=30, title="adds" if first else ""),
            ]
        )
    return draw(*rows)


# ---- the roof --------------------------------------------------------------------------------

# The layers that the picture names, from few operations per byte to many.
LAYERS = (
    "depthwise 3×3, 144 @56",
    "3×3, 32 groups, 128 @56",
    "1×1, 256→64 @56",
    "3×3, 64 @56",
    "3×3, 256 @14",
)
MAPS = 2  # of a backward pass: weight gradient and input gradient


class Point(NamedTuple):
    """One measurement: which layer and contestant, operations per byte, and 10⁹ a second."""

    layer: str
    who: str
    intensity: float
    rate: float


def points(record: dict[str, Any]) -> list[Point]:
    """Every layer of the benchmark as fast, im2col and PyTorch computed it.

    im2col is counted with its columns; the others as if they moved nothing twice.
    """
    found = []
    for layer, row in record["layers"].items():
        geometry = ConvGeometry(**row["geometry"])
        for who in ("fast", "im2col", "torch"):
            if who in row["contestants"]:
                seconds = row["contestants"][who]["milliseconds"] / 1e3
                rate = MAPS * operations(geometry) / seconds / 1e9
                found.append(Point(layer, who, intensity(geometry, columns=who == "im2col"), rate))
    return found


def roof(record: dict[str, Any]) -> Roof:
    """As low as the measurements allow, in 10⁹ a second; the machine's true roof lies higher."""
    measured = points(record)
    return Roof(
        peak=max(point.rate for point in measured),
        bandwidth=max(point.rate / point.intensity for point in measured),
    )


_MARKS = {
    "fast": CONTESTANTS["fast"],
    "im2col": CONTESTANTS["im2col"],
    "torch": Mark("PyTorch", "muted", "D", False),
}
WIDTH, HEIGHT = 560, 400


def roofline(record: dict[str, Any]) -> BookFigure:
    """A few layers under the lowest roof that fits: operations per byte, operations per second."""
    above = roof(record)
    figure = BookFigure(WIDTH, HEIGHT)
    ax = figure.add_axes((62 / WIDTH, 52 / HEIGHT, 1 - 80 / WIDTH, 1 - 104 / HEIGHT))
    ax.set_facecolor(color("paper"))
    ax.set(xscale="log", yscale="log", xlim=(0.15, 600), ylim=(0.4, 1.9 * above.peak))
    line = np.array([0.15, above.ridge, 600])
    ax.plot(line, [above.over(at) for at in line], color=color("ink"), lw=1.6, label="_roof")
    ax.axvline(above.ridge, color=color("rule"), lw=1, ls=":", zorder=0)
    shown = [point for point in points(record) if point.layer in LAYERS]
    for number, layer in enumerate(LAYERS, start=1):
        here = {point.who: point for point in shown if point.layer == layer}
        moved = [here[who] for who in ("im2col", "fast") if who in here]
        ax.plot(
            [point.intensity for point in moved],
            [point.rate for point in moved],
            color=color("rule"),
            lw=1.2,
            zorder=1,
            label="_moved",
        )
        for point in moved:
            ax.annotate(
                str(number),
                (point.intensity, point.rate),
                (0, 9 if point.who == "fast" else -19),  # where no other mark lies
                textcoords="offset points",
                ha="center",
                fontsize=12,
                color=color("ink"),
            )
    for who, mark in _MARKS.items():
        mine = [point for point in shown if point.who == who]
        fill = color(mark.role) if mark.filled else color("paper")
        ax.plot(
            [point.intensity for point in mine],
            [point.rate for point in mine],
            ls="",
            marker=mark.shape,
            ms=9,
            mew=1.8,
            mfc=fill,
            mec=color(mark.role),
            label=mark.words,
            zorder=3,
        )
    _axes(ax)
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=3,
        frameon=False,
        fontsize=13,
        handletextpad=0.2,
        columnspacing=1.4,
    )
    for text in legend.get_texts():
        text.set_color(color("ink"))
    return figure


def _axes(ax: Any) -> None:
    ax.set_xticks([0.2, 1, 5, 20, 100, 500], ["0.2", "1", "5", "20", "100", "500"])
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.minorticks_off()
    ax.tick_params(length=0, labelsize=13, labelcolor=color("ink"), pad=6)
    ax.set_xlabel("operations per byte", fontsize=13, color=color("muted"))
    ax.set_ylabel("10⁹ operations a second", fontsize=13, color=color("muted"))
    ax.grid(color=color("rule"), lw=0.6)
    ax.set_axisbelow(True)
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(False)
