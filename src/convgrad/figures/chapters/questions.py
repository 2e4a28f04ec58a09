"""The pictures that an exercise is read off: what is asked for is not written on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import loops
from ...geometry import ConvGeometry
from ...mutants import MUTANTS
from ..grids import Grid, Label, Piece, draw, tap, window
from ..style import BookFigure
from .shared import spaced

__all__ = ["blocks", "laid", "lit_in_matrix", "moved", "tap_lit", "tiled", "two_windows"]


def two_windows(geometry: ConvGeometry) -> BookFigure:
    """One row with its border: what the first window reads, and what the next one does."""
    empty: list[list[None]] = [[None] * geometry.W]
    rows: list[list[Piece]] = [
        [
            Label(f"window {q}"),
            Grid(
                empty,
                "x",
                padding=geometry.padding,
                pad="",
                lit=window(geometry, 0, q),
                index=("h", "v"),
                cell=30,
            ),
        ]
        for q in (0, 1)
    ]
    return draw(*rows)


def tap_lit(geometry: ConvGeometry, i: int, j: int) -> BookFigure:
    """The cells of an image, border included, that one tap reads as the window moves."""
    empty = np.full((geometry.H, geometry.W), None)
    return draw(
        Grid(
            empty,
            "x",
            title="x",
            padding=geometry.padding,
            pad="",
            lit=tap(geometry, i, j),
            index=("h", "v"),
            cell=30,
        )
    )


def laid(geometry: ConvGeometry, kernel: Sequence[int], sent: Sequence[int]) -> BookFigure:
    """One row: kernels laid down, each times its number of g, and the sum with a gap."""
    rows: list[list[Piece]] = []
    for q, g in enumerate(sent):
        row: list[int | None] = [None] * geometry.W
        for j, weight in enumerate(kernel):
            row[geometry.source(0, q, 0, j)[1]] = g * weight
        title = "laid down" if q == 0 else ""
        rows.append([Label(f"q = {q}"), Grid([row], "kernel", title=title)])
    unknown = [["?" if v == asked_cell(geometry) else None for v in range(geometry.W)]]
    return draw(*rows, [Label("total"), Grid(unknown, "result", lit=[(0, asked_cell(geometry))])])


def asked_cell(geometry: ConvGeometry) -> int:
    """The cell in which the first two windows of a row meet."""
    return int(geometry.source(0, 1, 0, 0)[1])


def lit_in_matrix(geometry: ConvGeometry, r: int, l: int) -> BookFigure:
    """The columns of one image without their numbers, one place lit."""
    empty = np.full((geometry.C * geometry.KH * geometry.KW, geometry.OH * geometry.OW), None)
    return draw(Grid(empty, "x", title="U", lit=[(r, l)], index=("r", "l"), cell=24))


def blocks(geometry: ConvGeometry) -> BookFigure:
    """A table of kernels and channels: filled where the kernel has a plane for the channel."""
    filled = [(o, geometry.channel(o, c)) for o in range(geometry.O) for c in range(geometry.CG)]
    empty = np.full((geometry.O, geometry.C), None)
    return draw(Grid(empty, "kernel", lit=filled, index=("o", "c"), cell=26))


def moved(x: np.ndarray, grad_output: np.ndarray, geometry: ConvGeometry) -> BookFigure:
    """A weight gradient beside the one that a shifted index map leaves."""
    right = loops.grad_weight(grad_output, x, geometry)[0, 0]
    found = MUTANTS["wgrad_shifted"](grad_output, x, geometry)[0, 0]
    pictures = [
        Grid(numbers, "result", title=title, index=("i", "j"))
        for numbers, title in ((right, "right"), (found, "found"))
    ]
    return draw(*spaced(pictures))


def tiled(rows: int, columns: int, side: int) -> BookFigure:
    """A matrix under square tiles, which stick out at its lower and right edges."""
    down, across = -(-rows // side), -(-columns // side)
    sheet = np.full((down * side, across * side), None)
    inside = [(r, c) for r in range(rows) for c in range(columns)]
    tiles = [(t * side, u * side, side, side) for t in range(down) for u in range(across)]
    return draw(Grid(sheet, "result", lit=inside, boxes=tiles, index=("o", "r"), cell=18))
