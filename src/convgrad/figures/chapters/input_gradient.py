"""The pictures of *The input gradient is a transposed convolution*."""

from __future__ import annotations

from itertools import product

import numpy as np

from ... import loops
from ...examples import example
from ...geometry import ConvGeometry
from ..grids import Grid, Label, Piece, draw, written
from ..style import BookFigure
from .shared import small, spaced

__all__ = ["collected", "laid_kernels", "matrix", "one_cell", "spread"]


def one_cell(h: int = 2, v: int = 2) -> BookFigure:
    """Example B: g, the weight that each window had on cell (h, v), and the sum they make."""
    geometry = example("B").geometry
    _, weight, _, g = example("B").arrays()
    grad_input = loops.grad_input(g, weight, geometry)
    taps = {(p, q): (i, j) for p, q, i, j in _readers(geometry, h, v)}
    lying = [
        [weight[0, 0, *taps[p, q]] if (p, q) in taps else None for q in range(geometry.OW)]
        for p in range(geometry.OH)
    ]
    return draw(
        Grid(g[0, 0], "grad_output", title="g", lit=taps, faint="rest", index=("p", "q")),
        "·",
        Grid(
            lying,
            "kernel",
            title="w",
            lit=taps,
            marks={at: f"{i},{j}" for at, (i, j) in taps.items()},
            index=("p", "q"),
        ),
        "=",
        Grid(
            grad_input[0, 0], "result", title="∂L/∂x", lit=[(h, v)], faint="rest", index=("h", "v")
        ),
    )


def matrix() -> BookFigure:
    """One row of three taps on seven cells, stride 2, as a matrix: a row of it, a column of it."""
    geometry, kernel, _ = _one_row()
    numbers = _matrix_of(geometry, kernel)
    rows, cols = len(numbers), len(numbers[0])
    window = [(1, v) for v in range(cols)]
    cell = [(q, 2) for q in range(rows)]
    pictures = [
        Grid(
            numbers,
            "kernel",
            title=title,
            caption=caption,
            lit=lit,
            boxes=[box],
            faint="rest",
            index=("q", "v"),
            cell=26,
        )
        for title, caption, lit, box in (
            ("a row of M", "the window at q = 1", window, (1, 0, 1, cols)),
            ("a column of M", "all that reads v = 2", cell, (0, 2, rows, 1)),
        )
    ]
    return draw(*spaced(pictures))


def laid_kernels() -> BookFigure:
    """One row of example C: the kernel laid down three times, a stride apart, and the sum."""
    geometry, kernel, g = _one_row()
    total = loops.grad_input(g, kernel, geometry)[0, 0]
    rows: list[list[Piece]] = []
    for q in range(geometry.OW):
        alone = np.zeros_like(g)
        alone[0, 0, 0, q] = g[0, 0, 0, q]
        share = loops.grad_input(alone, kernel, geometry)[0, 0, 0]
        at = {geometry.source(0, q, 0, j)[1]: j for j in range(geometry.KW)}
        rows.append(
            [
                # labels of one length, so that the columns stand in line
                Label(f"q = {q}:  {written(g[0, 0, 0, q]):>2} · w"),
                Grid(
                    [[share[v] if v in at else None for v in range(geometry.W)]],
                    "result",
                    lit=[(0, v) for v in at],
                    marks={(0, v): f"w{small(j)}" for v, j in at.items()},
                    title="laid down" if q == 0 else "",
                ),
            ]
        )
    rows.append([Label("they add up to"), Grid(total, "result")])
    taps = "   ".join(map(written, kernel[0, 0, 0]))
    return draw(*rows, caption=f"w  =  {taps}")


def spread() -> BookFigure:
    """The same row collected: the turned kernel on g with a zero between its cells, twice."""
    geometry, kernel, g = _one_row()
    step, reach = geometry.stride[1], geometry.KW - 1
    laid = np.zeros(step * (geometry.OW - 1) + 1)
    laid[::step] = g[0, 0, 0]
    total = loops.grad_input(g, kernel, geometry)[0, 0, 0]
    rows: list[list[Piece]] = []
    for v in (2, 3):
        under = {v - j: j for j in range(geometry.KW)}  # tap j of the turned kernel lies on v − j
        rows.append(
            [
                Label(f"v = {v}"),
                Grid(
                    laid[None],
                    "grad_output",
                    padding=((0, 0), (reach, reach)),
                    lit=[(0, u) for u in under],
                    faint=[(0, u) for u in range(len(laid)) if u % step],
                    marks={(0, u): f"w{small(j)}" for u, j in under.items()},
                    cell=30,
                    title="g with zeros between and around" if v == 2 else "",
                ),
                "→",
                Grid([[total[v]]], "result", lit=[(0, 0)]),
            ]
        )
    return draw(*rows)


def collected(v: int) -> list[tuple[int, int]]:
    """The products of cell v of that row: pairs (position q, tap j)."""
    geometry, _, _ = _one_row()
    return [(q, j) for _, q, _, j in _readers(geometry, 0, v)]


def _readers(geometry: ConvGeometry, h: int, v: int) -> list[tuple[int, int, int, int]]:
    """(p, q, i, j) of every tap that lies on cell (h, v) at some position."""
    g = geometry
    every = product(range(g.OH), range(g.OW), range(g.KH), range(g.KW))
    return [at for at in every if g.source(*at) == (h, v)]


def _one_row() -> tuple[ConvGeometry, np.ndarray, np.ndarray]:
    """The first row of everything in example C, as a convolution of its own."""
    full = example("C").geometry
    geometry = ConvGeometry(C=1, H=1, W=full.W, O=1, KH=1, KW=full.KW, stride=(1, full.stride[1]))
    _, weight, _, g = example("C").arrays()
    return geometry, weight[:, :, :1], g[:1, :, :1]


def _matrix_of(geometry: ConvGeometry, kernel: np.ndarray) -> list[list[float | None]]:
    """A row for each output cell, a column for each input cell; empty where they never meet."""
    numbers: list[list[float | None]] = [[None] * geometry.W for _ in range(geometry.OW)]
    for q, j in product(range(geometry.OW), range(geometry.KW)):
        numbers[q][geometry.source(0, q, 0, j)[1]] = float(kernel[0, 0, 0, j])
    return numbers
