"""The pictures of *Your own autograd.Function*."""

from __future__ import annotations

from ..style import BookFigure
from .boxes import Box, arrow, paint, words

__all__ = ["one_step"]

_HIGH = 34  # of a box with a name
_ROWS = (20, 72, 124)  # where the three operands' boxes begin, and below them the gradients'
_DOWN = 266  # from the forward half to the backward half


def one_step() -> BookFigure:
    """A step of autograd: what goes through it forward and backward, and what it keeps between."""
    width, height = 462, 440
    figure = BookFigure(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()

    forward = Box(122, _ROWS[0], 200, _ROWS[2] + _HIGH - _ROWS[0])
    kept = Box(148, 192, 148, 34)
    title = 34  # above the three formulas
    back = Box(122, _ROWS[0] + _DOWN - title, 200, forward.height + title)
    for box in (forward, back):
        paint(ax, box, "ink")
    words(ax, (forward.middle[0], forward.top + 18), "forward", bold=True)
    words(ax, (back.middle[0], back.top + 18), "backward", bold=True)
    words(ax, (forward.middle[0], forward.middle[1]), "y = w · unfold(x) + b", size=14)
    paint(ax, kept, "ink", dashed=True)
    words(ax, kept.middle, "ctx keeps x and w")
    middle = kept.middle[0]
    arrow(ax, (middle, forward.bottom), (middle, kept.top), "muted")
    arrow(ax, (middle, kept.bottom), (middle, back.top), "muted")

    made = ("fold(wᵀ · g)", "Σ g · unfold(x)ᵀ", "Σ g")
    operands = (("x", "x"), ("w", "kernel"), ("b", "ink"))
    for (name, role), top, formula in zip(operands, _ROWS, made, strict=True):
        operand = Box(6, top, 76, _HIGH)
        gradient = Box(6, top + _DOWN, 76, _HIGH)
        paint(ax, operand, role)
        words(ax, operand.middle, name, role, bold=True)
        arrow(ax, (operand.right, operand.middle[1]), (forward.left, operand.middle[1]), role)
        paint(ax, gradient, "result")
        words(ax, gradient.middle, f"∂L/∂{name}", "result", bold=True)
        words(ax, (back.middle[0], gradient.middle[1]), formula, "result", size=14)
        arrow(ax, (back.left, gradient.middle[1]), (gradient.right, gradient.middle[1]), "result")

    y = Box(366, _ROWS[1], 60, _HIGH)
    g = Box(366, _ROWS[1] + _DOWN, 60, _HIGH)
    paint(ax, y, "ink")
    words(ax, y.middle, "y", bold=True)
    arrow(ax, (forward.right, y.middle[1]), (y.left, y.middle[1]), "ink")
    paint(ax, g, "grad_output")
    words(ax, g.middle, "g", "grad_output", bold=True)
    arrow(ax, (g.left, g.middle[1]), (back.right, g.middle[1]), "grad_output")
    words(ax, (y.middle[0], kept.middle[1]), "all that follows,\nup to the loss L")
    arrow(ax, (y.middle[0], y.bottom), (y.middle[0], kept.top - 10), "ink")
    arrow(ax, (g.middle[0], kept.bottom + 10), (g.middle[0], g.top), "grad_output")
    return figure
