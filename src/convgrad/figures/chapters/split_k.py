"""The pictures of *Split-K, atomics and why two runs differ*."""

from __future__ import annotations

import numpy as np

from ..grids import Grid, Label, Piece, draw, tap
from ..style import BookFigure
from .shared import backward_of

__all__ = ["products", "three_shares"]


def products(i: int = 1, j: int = 2) -> np.ndarray:
    """Example B: what tap (i, j) sums, one product for each window, as rows and columns (p, q)."""
    geometry, x, grad_output, _ = backward_of("B")
    met = x[0, 0, i : i + geometry.OH, j : j + geometry.OW]
    made: np.ndarray = met * grad_output[0, 0]
    return made


def three_shares(i: int = 1, j: int = 2) -> BookFigure:
    """Example B: the products of tap (i, j), a share for each row of windows, and the sum."""
    geometry, x, grad_output, _ = backward_of("B")
    made = products(i, j)
    shares = made.sum(axis=1, keepdims=True)
    rows = [(p, 0, 1, geometry.OW) for p in range(geometry.OH)]
    every = [(p, 0) for p in range(geometry.OH)]
    operands: list[Piece] = [
        Grid(x[0, 0], "x", title="x", lit=tap(geometry, i, j), faint="rest", cell=30),
        "·",
        Grid(grad_output[0, 0], "grad_output", title="g", cell=30),
    ]
    sums: list[Piece] = [
        "=",
        Grid(made, "result", title="products", boxes=rows, index=("p", "q"), cell=30),
        Label("row by\nrow", arrow=True),
        Grid(shares, "result", title="shares", lit=every, cell=30),
        Label("add", arrow=True),
        Grid([[shares.sum()]], "result", title="∂L/∂w", lit=[(0, 0)], cell=30),
    ]
    return draw(operands, sums)
