"""The pictures of *im2col: unfold + mm*."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ... import im2col
from ...examples import example
from ...geometry import ConvGeometry
from ...windows import windows
from ..grids import Cell, Grid, Label, Piece, draw, tap, window
from ..style import BookFigure

__all__ = ["copies", "folded", "unfolded"]

SMALL = 24  # pixels of a cell of the matrices, which are 9×9


def unfolded(p: int = 2, q: int = 0, i: int = 1, j: int = 2) -> BookFigure:
    """Example B: the window (p, q) and its column; the cells that tap (i, j) met and its row."""
    geometry = example("B").geometry
    x = example("B").arrays().x
    columns = im2col.unfold(x, geometry)[0]
    r, l = i * geometry.KW + j, p * geometry.OW + q
    pairs = [
        (window(geometry, p, q), [(k, l) for k in range(len(columns))], f"window ({p}, {q})"),
        (tap(geometry, i, j), [(r, k) for k in range(columns.shape[1])], f"tap ({i}, {j})"),
    ]
    words = [f"column {l}", f"row {r}"]
    rows: list[list[Piece]] = [
        [
            Grid(x[0, 0], "x", title=f"x, {what}", lit=cells, index=("h", "v"), cell=30),
            Label("unfold", arrow=True),
            Grid(columns, "x", title=f"U, {line}", lit=lit, index=("r", "l"), cell=SMALL),
        ]
        for (cells, lit, what), line in zip(pairs, words, strict=True)
    ]
    return draw(*rows)


def folded(h: int = 1, v: int = 2) -> BookFigure:
    """Example B: where unfold copies cell (h, v) to, and what fold brings back from there."""
    geometry = example("B").geometry
    x, weight, _, grad_output = example("B").arrays()
    columns = im2col.unfold(x, geometry)[0]
    products = weight.reshape(1, -1).T @ grad_output.reshape(1, -1)  # r l
    grad_input = im2col.fold(products[None], geometry)
    places = copies(geometry, h, v)
    shown: dict[str, Any] = {"lit": places, "index": ("r", "l"), "cell": SMALL}
    image: dict[str, Any] = {"lit": [(h, v)], "index": ("h", "v"), "cell": 30}
    return draw(
        [
            Grid(x[0, 0], "x", title="x", **image),
            Label("unfold", arrow=True),
            Grid(columns, "x", title="U", **shown),
        ],
        [
            Grid(products, "result", title="wᵀ·g", **shown),
            Label("fold", arrow=True),
            Grid(grad_input[0, 0], "result", title="∂L/∂x", faint="rest", **image),
        ],
    )


def copies(geometry: ConvGeometry, h: int, v: int) -> list[Cell]:
    """The places (r, l) of the columns that hold a copy of cell (h, v) of the first channel."""
    numbers = np.zeros((1, 1, geometry.H, geometry.W))
    numbers[0, 0, h, v] = 1
    seen = windows(numbers, geometry)[0, 0]  # p q i j
    return [
        (i * geometry.KW + j, p * geometry.OW + q)
        for p, q, i, j in product(*map(range, seen.shape))
        if seen[p, q, i, j]
    ]
