"""The pictures of *Your own autograd.Function*."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.patches import FancyArrowPatch, Rectangle

from ..grids import CAPTION, TITLE
from ..style import BookFigure, color

__all__ = ["one_step"]

_HIGH = 34  # of a box with a name
_ROWS = (20, 72, 124)  # where the three operands' boxes begin, and below them the gradients'
_DOWN = 266  # from the forward half to the backward half


class _Box(NamedTuple):
    """A rectangle with words in it."""

    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.top + self.height / 2

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


def one_step() -> BookFigure:
    """A step of autograd: what goes through it forward and backward, and what it keeps between."""
    width, height = 462, 440
    figure = BookFigure(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()

    forward = _Box(122, _ROWS[0], 200, _ROWS[2] + _HIGH - _ROWS[0])
    kept = _Box(148, 192, 148, 34)
    title = 34  # above the three formulas
    back = _Box(122, _ROWS[0] + _DOWN - title, 200, forward.height + title)
    for box in (forward, back):
        _paint(ax, box, "ink")
    _words(ax, (forward.middle[0], forward.top + 18), "forward", bold=True)
    _words(ax, (back.middle[0], back.top + 18), "backward", bold=True)
    _words(ax, (forward.middle[0], forward.middle[1]), "y = w · unfold(x) + b", size=14)
    _paint(ax, kept, "ink", dashed=True)
    _words(ax, kept.middle, "ctx keeps x and w")
    middle = kept.middle[0]
    _arrow(ax, (middle, forward.bottom), (middle, kept.top), "muted")
    _arrow(ax, (middle, kept.bottom), (middle, back.top), "muted")

    made = ("fold(wᵀ · g)", "Σ g · unfold(x)ᵀ", "Σ g")
    operands = (("x", "x"), ("w", "kernel"), ("b", "ink"))
    for (name, role), top, formula in zip(operands, _ROWS, made, strict=True):
        operand = _Box(6, top, 76, _HIGH)
        gradient = _Box(6, top + _DOWN, 76, _HIGH)
        _paint(ax, operand, role)
        _words(ax, operand.middle, name, role, bold=True)
        _arrow(ax, (operand.right, operand.middle[1]), (forward.left, operand.middle[1]), role)
        _paint(ax, gradient, "result")
        _words(ax, gradient.middle, f"∂L/∂{name}", "result", bold=True)
        _words(ax, (back.middle[0], gradient.middle[1]), formula, "result", size=14)
        _arrow(ax, (back.left, gradient.middle[1]), (gradient.right, gradient.middle[1]), "result")

    y = _Box(366, _ROWS[1], 60, _HIGH)
    g = _Box(366, _ROWS[1] + _DOWN, 60, _HIGH)
    _paint(ax, y, "ink")
    _words(ax, y.middle, "y", bold=True)
    _arrow(ax, (forward.right, y.middle[1]), (y.left, y.middle[1]), "ink")
    _paint(ax, g, "grad_output")
    _words(ax, g.middle, "g", "grad_output", bold=True)
    _arrow(ax, (g.left, g.middle[1]), (back.right, g.middle[1]), "grad_output")
    _words(ax, (y.middle[0], kept.middle[1]), "all that follows,\nup to the loss L")
    _arrow(ax, (y.middle[0], y.bottom), (y.middle[0], kept.top - 10), "ink")
    _arrow(ax, (g.middle[0], kept.bottom + 10), (g.middle[0], g.top), "grad_output")
    return figure


def _paint(ax: Any, box: _Box, role: str, dashed: bool = False) -> None:
    ax.add_patch(
        Rectangle(
            (box.left, box.top),
            box.width,
            box.height,
            fc=color("panel" if role == "ink" else f"{role}_soft"),
            ec=color(role),
            lw=1.5,
            ls="--" if dashed else "-",
        )
    )


def _words(
    ax: Any,
    at: tuple[float, float],
    words: str,
    role: str = "ink",
    size: float = CAPTION,
    bold: bool = False,
) -> None:
    ax.text(
        *at,
        words,
        ha="center",
        va="center",
        fontsize=TITLE if bold else size,
        fontweight="bold" if bold else "normal",
        color=color(role),
    )


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], role: str) -> None:
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>,head_length=6,head_width=3",
            shrinkA=2,
            shrinkB=2,
            mutation_scale=1,
            lw=1.5,
            color=color(role),
        )
    )
