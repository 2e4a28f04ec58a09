"""The pictures of *Approximate and second gradients*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ... import loops
from ...examples import example
from ..grids import Grid, draw, tap
from ..style import BookFigure, color

__all__ = ["Run", "curves", "kept_two", "of_second_pass", "two_largest"]


class Run(Protocol):
    """What a training left behind: a number for every step."""

    @property
    def loss(self) -> Sequence[float]: ...
    @property
    def cosine(self) -> Sequence[float]: ...


# ---- the worked example ----------------------------------------------------------------------


def two_largest() -> np.ndarray:
    """The upstream gradient of example B with all but its two largest numbers set to zero."""
    g = example("B").arrays().grad_output
    limit = np.sort(np.abs(g), axis=None)[-2]
    return np.where(np.abs(g) >= limit, g, 0)


def kept_two(i: int = 1, j: int = 2) -> BookFigure:
    """Example B: one tap of the weight gradient, from the two largest numbers of g alone."""
    geometry, x = example("B").geometry, example("B").arrays().x
    kept = two_largest()
    lit = [(int(p), int(q)) for p, q in np.argwhere(kept[0, 0])]
    meets = tap(geometry, i, j)  # one cell of x for each cell of g, in the same order
    cells = [meets[p * geometry.OW + q] for p, q in lit]
    found = loops.grad_weight(kept, x, geometry)
    return draw(
        Grid(x[0, 0], "x", title="x", lit=cells, faint="rest", index=("h", "v")),
        "·",
        Grid(kept[0, 0], "grad_output", title="two of g", lit=lit, faint="rest", index=("p", "q")),
        "=",
        Grid(found[0, 0], "result", title="approximate", lit=[(i, j)], index=("i", "j")),
    )


def of_second_pass() -> BookFigure:
    """One row: the input gradient, what a penalty hands back, and the weight's share of it."""
    x, weight, g = (np.array([[row]]) for row in ([[1.0, 2, 3]], [[1.0, -1]], [[2.0, 5]]))
    geometry = example("B").geometry.of(x.shape, weight.shape)
    first = loops.grad_input(g, weight, geometry)
    second = loops.grad_weight(g, first, geometry)
    return draw(
        [
            Grid(g[0, 0], "grad_output", title="g"),
            "·",
            Grid(weight[0, 0], "kernel", title="w"),
            "=",
            Grid(first[0, 0], "result", title="∂L/∂x"),
        ],
        [
            Grid(first[0, 0], "x", title="∂L/∂x as the image"),
            "·",
            Grid(g[0, 0], "grad_output", title="g"),
            "=",
            Grid(second[0, 0], "result", title="∂L'/∂w"),
        ],
    )


# ---- a training ------------------------------------------------------------------------------

_PANEL = 168  # pixels, wide
_LOSS, _COSINE, _GAP, _HEAD = 112, 52, 26, 30
_LEFT, _COLUMNS = 46, 3


def curves(runs: Mapping[str, Run], beside: str = "exact") -> BookFigure:
    """A panel for each run: its loss, with that of ``beside`` in grey, and its cosine below."""
    shown = [name for name in runs if name != beside]
    rows = -(-len(shown) // _COLUMNS)
    width = _LEFT + _COLUMNS * (_PANEL + _GAP)
    tall = _HEAD + _LOSS + 10 + _COSINE + 34
    height = rows * tall + 6
    figure = BookFigure(width, height)

    def panel(row: int, column: int, top: float, high: float) -> Any:
        left = _LEFT + column * (_PANEL + _GAP)
        down = row * tall + top
        return figure.add_axes(
            (left / width, 1 - (down + high) / height, _PANEL / width, high / height)
        )

    steps = len(runs[beside].loss)
    for k, name in enumerate(shown):
        row, column = divmod(k, _COLUMNS)
        loss = panel(row, column, _HEAD, _LOSS)
        loss.set_title(name, fontsize=14, fontweight="bold", color=color("ink"), loc="left", pad=6)
        loss.plot(runs[beside].loss, color=color("muted"), lw=1.2, ls=(0, (4, 2)), label=beside)
        loss.plot(runs[name].loss, color=color("result"), lw=1.8, label=name)
        loss.set(ylim=(0, 1.6), xlim=(0, steps - 1))
        _ticks(loss, "loss" if column == 0 else "", [0, 1])
        loss.set_xticks([])
        cosine = panel(row, column, _HEAD + _LOSS + 10, _COSINE)
        cosine.axhline(0, color=color("rule"), lw=1)
        cosine.plot(runs[name].cosine, color=color("result"), lw=1)
        cosine.set(ylim=(-0.6, 1.1), xlim=(0, steps - 1))
        _ticks(cosine, "cosine" if column == 0 else "", [0, 1])
        cosine.set_xticks([0, steps - 1], ["0", f"step {steps - 1}"])
        for label, side in zip(cosine.get_xticklabels(), ("left", "right"), strict=True):
            label.set_horizontalalignment(side)
    return figure


def _ticks(ax: Any, name: str, at: list[float]) -> None:
    ax.set_facecolor(color("paper"))
    ax.set_yticks(at, [f"{each:g}" for each in at] if name else [""] * len(at))
    ax.tick_params(length=0, labelsize=12, labelcolor=color("ink"), pad=4)
    if name:
        ax.set_ylabel(name, fontsize=12, color=color("muted"), labelpad=4)
    ax.grid(axis="y", color=color("rule"), lw=0.6)
    ax.set_axisbelow(True)
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(False)
