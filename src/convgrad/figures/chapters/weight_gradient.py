"""The pictures of *The weight gradient is a convolution*."""

from __future__ import annotations

from itertools import product

import numpy as np

from ... import loops
from ...correlate import swapped
from ...geometry import ConvGeometry
from ..grids import Grid, Label, Piece, draw, tap, written
from ..style import BookFigure
from .shared import backward_of, small, tap_on_pixel

__all__ = ["crop", "one_tap", "stride_becomes_dilation", "turned", "uncropped"]


def one_tap(i: int = 1, j: int = 2) -> BookFigure:
    """Example B: the cells that tap (i, j) met, the upstream gradient, and the sum they make."""
    geometry, x, grad_output, grad_weight = backward_of("B")
    return draw(
        Grid(x[0, 0], "x", title="x", lit=tap(geometry, i, j), index=("h", "v")),
        "·",
        Grid(grad_output[0, 0], "grad_output", title="g", index=("p", "q")),
        "=",
        Grid(
            grad_weight[0, 0], "result", title="∂L/∂w", lit=[(i, j)], faint="rest", index=("i", "j")
        ),
    )


def turned() -> BookFigure:
    """Example A: where each cell of g lands in the weight gradient."""
    geometry, x, grad_output, grad_weight = backward_of("A")
    outputs = list(product(range(geometry.OH), range(geometry.OW)))
    landed = {(p, q): tap_on_pixel(geometry, p, q) for p, q in outputs}
    g = Grid(grad_output[0, 0], "grad_output", title="g", index=("p", "q"), lit=outputs)
    result = Grid(
        grad_weight[0, 0],
        "result",
        title="∂L/∂w",
        lit=landed.values(),
        faint="rest",
        index=("i", "j"),
    )
    return draw(
        g,
        Label(f"times {written(x[0, 0, 0, 0])},\nturned by 180°", arrow=True),
        result,
    )


def stride_becomes_dilation() -> BookFigure:
    """One row of example C: what a position reads, and what a tap meets."""
    geometry, x, _, _ = backward_of("C")
    row = x[0, 0, :1]
    rows: list[list[Piece]] = []
    for k in range(geometry.KW):
        reads = [geometry.source(0, k, 0, j)[1] for j in range(geometry.KW)]
        meets = [geometry.source(0, q, 0, k)[1] for q in range(geometry.OW)]
        first = k == 0
        rows.append(
            [
                Label(f"q = {k}"),
                Grid(
                    row,
                    "x",
                    lit=[(0, v) for v in reads],
                    faint="rest",
                    marks={(0, v): f"w{small(j)}" for j, v in enumerate(reads)},
                    cell=30,
                    title="x under w" if first else "",
                ),
                Label("   "),
                Label(f"j = {k}"),
                Grid(
                    row,
                    "x",
                    lit=[(0, v) for v in meets],
                    faint="rest",
                    marks={(0, v): f"g{small(q)}" for q, v in enumerate(meets)},
                    cell=30,
                    title="x under g" if first else "",
                ),
            ]
        )
    return draw(*rows)


def crop() -> BookFigure:
    """Example C: the convolution of x with g, and the part of it that is the weight gradient."""
    geometry, x, grad_output, grad_weight = backward_of("C")
    full = uncropped(x, grad_output, geometry)[0, 0]
    rows, cols = full.shape
    kept = [(i, j) for i, j in product(range(geometry.KH), range(geometry.KW))]
    rest = [cell for cell in product(range(rows), range(cols)) if cell not in kept]
    return draw(
        Grid(full, "result", title="g over x", lit=kept, faint=rest, index=("i", "j")),
        Label("crop", arrow=True),
        Grid(grad_weight[0, 0], "result", title="∂L/∂w", lit=kept, index=("i", "j")),
    )


def uncropped(x: np.ndarray, grad_output: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The convolution of x with g before the crop, (O, C, KH + surplus, KW + surplus).

    Batch and channels, stride and dilation stand in each other's place; for one group.
    """
    search = swapped(geometry)  # c n h v, searched with o n p q
    return loops.forward(x.swapaxes(0, 1), grad_output.swapaxes(0, 1), search).swapaxes(0, 1)
