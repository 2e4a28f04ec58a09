"""The picture of *A museum of gradient bugs*."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ... import loops
from ...geometry import ConvGeometry
from ...mutants import MUTANTS
from ..grids import Grid, draw
from ..style import BookFigure

__all__ = ["Row", "difference", "row"]


class Row(NamedTuple):
    """The chapter's worked example: a row of three cells, two taps, and a wrong gradient."""

    geometry: ConvGeometry
    x: np.ndarray
    grad_output: np.ndarray
    right: np.ndarray
    wrong: np.ndarray


def row(mistake: str = "wgrad_g_turned") -> Row:
    """x = 1, 10, 100 and g = 2, 3, so that the digits say which cells met which number."""
    geometry = ConvGeometry(C=1, H=1, W=3, O=1, KH=1, KW=2)
    x = np.array([1.0, 10, 100]).reshape(geometry.x_shape)
    g = np.array([2.0, 3]).reshape(geometry.output_shape)
    return Row(geometry, x, g, loops.grad_weight(g, x, geometry), MUTANTS[mistake](g, x, geometry))


def difference() -> BookFigure:
    """The wrong gradient, less the right one, is D."""
    _, _, _, right, wrong = row()
    wide = 46.0  # "−90" needs more than a usual cell
    return draw(
        Grid(wrong[0, 0], "ink", title="wrong", cell=wide),
        "−",
        Grid(right[0, 0], "result", title="∂L/∂w", cell=wide),
        "=",
        Grid((wrong - right)[0, 0], "ink", title="D", lit=[(0, 0), (0, 1)], cell=wide),
    )
