"""The pictures of *Without loops: NumPy windows and einsum*."""

from __future__ import annotations

import numpy as np

from ...examples import example
from ...geometry import ConvGeometry
from ...windows import windows
from ..grids import Grid, Label, draw
from ..style import BookFigure

__all__ = ["ROW", "one_row", "row_of_c"]

# One row of example C under a kernel of three taps.
ROW = ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, stride=2)


def row_of_c() -> np.ndarray:
    """The first row of the first image of example C, (1, 1, 1, 7)."""
    return example("C").arrays().x[:1, :, :1]


def one_row(q: int = 1) -> BookFigure:
    """The row as it lies in memory and the view of its windows; marks are places in memory."""
    x = row_of_c()
    seen = windows(x, ROW)[0, 0, 0, :, 0]  # q j
    at = windows(np.arange(ROW.W).reshape(ROW.x_shape), ROW)[0, 0, 0, :, 0]
    places = {cell: str(place) for cell, place in np.ndenumerate(at)}
    lit = [(q, j) for j in range(ROW.KW)]
    return draw(
        Grid(
            x[0, 0],
            "x",
            title="stored",
            lit=[(0, int(place)) for place in at[q]],
            marks={(0, v): str(v) for v in range(ROW.W)},
            caption="seven numbers",
            cell=30,
        ),
        Label("seen as", arrow=True),
        Grid(
            seen,
            "x",
            title="shown",
            lit=lit,
            marks=places,
            index=("q", "j"),
            caption="nine",
            cell=30,
        ),
    )
