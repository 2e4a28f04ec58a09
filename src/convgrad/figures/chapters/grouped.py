"""The pictures of *Grouped and depthwise convolution*."""

from __future__ import annotations

from itertools import product

import numpy as np

from ... import loops
from ...examples import EXAMPLES
from ...geometry import ConvGeometry
from ...grouped import block_diagonal
from ..grids import Grid, Label, Piece, draw, tap
from ..style import BookFigure
from .shared import backward_of, meetings, spaced

__all__ = ["dense_gradient", "dense_weight", "kept", "one_tap", "three_ways"]


def three_ways(channels: int = 4) -> BookFigure:
    """Four kernels on four channels: who reads what with one group, with two, and with four."""
    words = {1: "1 group: dense", 2: "2 groups", 4: "4 groups: depthwise"}
    tables = [
        meetings(
            ConvGeometry(C=channels, H=1, W=1, O=channels, KH=1, KW=1, groups=groups), title=title
        )
        for groups, title in words.items()
    ]
    return draw(*spaced(tables))


def dense_weight(i: int = 0, j: int = 0) -> BookFigure:
    """Example D: tap (i, j) of the weight, and the same tap of a weight without groups."""
    geometry = EXAMPLES["D"].geometry
    weight = EXAMPLES["D"].arrays().weight
    blocks = kept(geometry)
    dense = block_diagonal(weight, geometry)[:, :, i, j]
    return draw(
        Grid(weight[:, :, i, j], "kernel", title="w", index=("o", "c"), lit=every(weight)),
        Label("without\ngroups", arrow=True),
        Grid(dense, "kernel", title="dense", index=("o", "x"), lit=blocks, faint="rest"),
    )


def dense_gradient(i: int = 0, j: int = 0) -> BookFigure:
    """Example D: tap (i, j) of the dense weight's gradient, and the part that is kept."""
    geometry, _, _, grad = backward_of("D")
    return draw(
        Grid(
            gradient_of_dense()[:, :, i, j],
            "result",
            title="∂L/∂dense",
            index=("o", "x"),
            lit=kept(geometry),
            faint="rest",
        ),
        Label("keep the\nblocks", arrow=True),
        Grid(grad[:, :, i, j], "result", title="∂L/∂w", index=("o", "c"), lit=every(grad)),
    )


def one_tap(o: int = 4, c: int = 1, i: int = 0, j: int = 0) -> BookFigure:
    """Example D: what tap (i, j) of kernel o met on its channel c, image by image."""
    geometry, x, grad_output, _ = backward_of("D")
    channel, met = geometry.channel(o, c), tap(geometry, i, j)
    rows: list[list[Piece]] = []
    for n in range(geometry.N):
        seen, upstream = x[n, channel], grad_output[n, o]
        share = np.dot([seen[cell] for cell in met], upstream.ravel())
        rows.append(
            [
                Label(f"image {n}"),
                Grid(seen, "x", title=f"x[{n}, {channel}]", lit=met, faint="rest", cell=30),
                "·",
                Grid(upstream, "grad_output", title=f"g[{n}, {o}]", cell=30),
                "=",
                Grid([[share]], "result", lit=[(0, 0)]),
            ]
        )
    return draw(*rows)


def kept(geometry: ConvGeometry) -> list[tuple[int, int]]:
    """The pairs (kernel, channel of x) that meet."""
    pairs = product(range(geometry.O), range(geometry.CG))
    return [(o, geometry.channel(o, c)) for o, c in pairs]


def every(weight: np.ndarray) -> list[tuple[int, int]]:
    """All pairs (kernel, c) of a weight."""
    return list(np.ndindex(weight.shape[:2]))


def gradient_of_dense() -> np.ndarray:
    """Example D without groups: the gradient of all 6·4 kernel planes, (O, C, KH, KW)."""
    geometry = EXAMPLES["D"].geometry
    x, _, _, grad_output = EXAMPLES["D"].arrays()
    dense = ConvGeometry.of(x.shape, (geometry.O, geometry.C, geometry.KH, geometry.KW))
    return loops.grad_weight(grad_output, x, dense)
