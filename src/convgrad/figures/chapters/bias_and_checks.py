"""The pictures of *Bias, batch, and knowing you are right*."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ... import loops, windows
from ...checks import directional_difference
from ...examples import example
from ..grids import Grid, Label, Piece, draw, written
from ..style import BookFigure, color

__all__ = ["STEPS", "shares", "step_errors", "step_sizes", "three_sums"]

STEPS = tuple(10.0**-k for k in range(9))
# name: (dtype, whether the loss is a straight line, colour, mark)
_CURVES: dict[str, tuple[str, bool, str, str]] = {
    "straight loss, 32 bits": ("float32", True, "x", "o"),
    "bent loss, 32 bits": ("float32", False, "kernel", "^"),
    "bent loss, 64 bits": ("float64", False, "grad_output", "s"),
}


def shares(o: int = 4) -> BookFigure:
    """Example D: the upstream gradient of kernel o in each image, and what they add up to."""
    g = example("D").arrays().grad_output[:, o]  # n p q
    total = loops.grad_bias(example("D").arrays().grad_output, example("D").geometry)[o]
    pieces: list[Piece] = []
    for n, image in enumerate(g):
        pieces += [
            "+",
            Grid(
                image,
                "grad_output",
                title=f"image {n}",
                caption=f"adds up to {written(image.sum())}",
                cell=30,
            ),
        ]
    result = Grid([[total]], "result", title=f"∂L/∂b[{o}]", lit=[(0, 0)])
    return draw(*pieces[1:], "=", result)


def three_sums() -> BookFigure:
    """Example B: each array times its gradient, cell by cell, adds up to the same number."""
    geometry = example("B").geometry
    x, weight, _, g = example("B").arrays()
    pairs = [
        ("y − b", "ink", loops.forward(x, weight, geometry), "g", "grad_output", g),
        ("w", "kernel", weight, "∂L/∂w", "result", loops.grad_weight(g, x, geometry)),
        ("x", "x", x, "∂L/∂x", "result", loops.grad_input(g, weight, geometry)),
    ]
    rows: list[list[Piece]] = []
    for name, role, array, grad_name, grad_role, grad in pairs:
        rows.append(
            [
                Grid(array[0, 0], role, title=name, cell=28),
                "·",
                Grid(grad[0, 0], grad_role, title=grad_name, cell=28),
                Label(f"adds up to {written(np.vdot(array, grad))}"),
            ]
        )
    return draw(*rows)


def step_sizes() -> BookFigure:
    """How far off the slope is that a step finds, for steps from long to short."""
    width, height, left, bottom, top = 520, 330, 62, 56, 84
    figure = BookFigure(width, height)
    ax = figure.add_axes(
        (left / width, bottom / height, 1 - (left + 14) / width, 1 - (bottom + top) / height)
    )
    ax.set(xscale="log", yscale="log", facecolor=color("paper"))
    for (name, (_, _, role, mark)), errors in zip(
        _CURVES.items(), step_errors().values(), strict=True
    ):
        line = ax.plot(STEPS, errors, label=name, color=color(role), lw=1.8)[0]
        hollow = mark == "^"  # so that two curves on one line are seen as two
        line.set(marker=mark, ms=12 if hollow else 6, mew=1.6, zorder=4 if hollow else 3)
        line.set_markerfacecolor("none" if hollow else color(role))
    ax.invert_xaxis()  # from long steps to short ones
    _axes(ax)
    legend = ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False, fontsize=13)
    for text in legend.get_texts():
        text.set_color(color("ink"))
    return figure


def _axes(ax: Any) -> None:
    powers = range(0, 9, 2)
    ax.set_xticks([10.0**-k for k in powers], [_power(k) for k in powers])
    ax.set_yticks([10.0**-k for k in powers], [_power(k) for k in powers])
    ax.minorticks_off()
    ax.tick_params(length=0, labelsize=13, labelcolor=color("ink"), pad=6)
    ax.set_xlabel("step", fontsize=13, color=color("muted"))
    ax.set_ylabel("error ÷ slope", fontsize=13, color=color("muted"))
    for k in powers:
        ax.axhline(10.0**-k, color=color("rule"), lw=0.8, zorder=0)
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(False)


def _power(k: int) -> str:
    """10 to the power of −k."""
    return "1" if k == 0 else "10⁻" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[k]


@cache
def step_errors() -> dict[str, tuple[float, ...]]:
    """For each curve the error of every step: the middle one of many random convolutions."""
    return {
        name: tuple(
            float(np.median([_error(dtype, straight, step, seed) for seed in range(25)]))
            for step in STEPS
        )
        for name, (dtype, straight, _, _) in _CURVES.items()
    }


def _error(dtype: str, straight: bool, step: float, seed: int) -> float:
    """How far one step's slope is from the gradient's, as a part of it."""
    geometry = example("B").geometry
    rng = np.random.default_rng(seed)
    shapes = geometry.x_shape, geometry.weight_shape, geometry.weight_shape, geometry.output_shape
    x, weight, direction, g = (rng.standard_normal(shape) for shape in shapes)
    bend: Callable[[np.ndarray], np.ndarray] = (lambda y: y) if straight else np.tanh
    upstream = g if straight else g * (1 - np.tanh(windows.forward(x, weight, geometry)) ** 2)
    slope = np.vdot(windows.grad_weight(upstream, x, geometry), direction)

    x, g, at, along = (array.astype(dtype) for array in (x, g, weight, direction))

    def loss(weight: np.ndarray) -> float:
        return np.vdot(g, bend(windows.forward(x, weight, geometry)))

    found = directional_difference(loss, at, along, at.dtype.type(step))
    return abs(found / slope - 1)
