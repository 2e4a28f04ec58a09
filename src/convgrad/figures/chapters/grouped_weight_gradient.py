"""The pictures of *The grouped weight gradient in one call*.

A cell stands for a whole map: ``1,3`` is channel 3 (or kernel 3) of image 1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...examples import EXAMPLES
from ...geometry import ConvGeometry
from ...grouped import grad_weight_per_image
from ..grids import Grid, Label, Piece, draw
from ..style import BookFigure
from .shared import dealt_to, meetings

__all__ = ["dealt", "meeting", "moved", "names", "reshaped_only", "shares"]

Cells = list[tuple[int, int]]


def moved(letter: str = "D") -> BookFigure:
    """The maps of x on their way: reshape, then transpose. The second group is lit."""
    g = EXAMPLES[letter].geometry
    x = names(g.N, g.C)
    split = x.reshape(g.N * g.groups, g.CG)
    return draw(
        _maps(x, g, "x", f"[N, C] = [{g.N}, {g.C}]"),
        Label("reshape", arrow=True),
        _maps(split, g, "x", f"[N·G, C/G] = [{g.N * g.groups}, {g.CG}]"),
        Label("transpose", arrow=True),
        _maps(split.T, g, "x", f"[C/G, N·G] = [{g.CG}, {g.N * g.groups}]"),
    )


def meeting(letter: str = "D") -> BookFigure:
    """Above the maps of x, below the kernels: those that meet stand in one column, their group."""
    g = EXAMPLES[letter].geometry
    M = g.N * g.groups
    images = names(g.N, g.C).reshape(M, g.CG).T  # c m
    kernels = names(g.N, g.O).reshape(M, g.OG).T  # one column for each group m
    rows: list[list[Piece]] = [
        [Label("x"), _maps(images, g, "x", "", index=("c", "m")), Label("   ")],
        [Label("g"), _maps(kernels, g, "grad_output", "", index=("e", "m")), Label("   ")],
    ]
    return draw(*rows)


def reshaped_only(letter: str = "D") -> BookFigure:
    """The maps of x with the transpose and without it; those in a wrong place are marked."""
    g = EXAMPLES[letter].geometry
    x = names(g.N, g.C)
    right = x.reshape(g.N * g.groups, g.CG).T
    alone = x.reshape(g.CG, g.N * g.groups)
    wrong = [tuple(map(int, at)) for at in np.argwhere(alone != right)]
    size = f"[{g.CG}, {g.N * g.groups}]"
    rows: list[list[Piece]] = [
        [_maps(right, g, "x", f"reshape and transpose: {size}", index=("c", "m"))],
        [
            _maps(
                alone,
                g,
                "x",
                f"reshape alone: {size}",
                index=("c", "m"),
                marks=dict.fromkeys(wrong, "≠"),
            )
        ],
    ]
    return draw(*rows)


def dealt(letter: str = "D") -> BookFigure:
    """Which channels each kernel of an example met, and which it met in the old mistake."""
    g = EXAMPLES[letter].geometry
    return draw(
        meetings(g, title="right"),
        Label("    "),
        meetings(g, partial(dealt_to, g), title="dealt like cards"),
    )


def shares(o: int = 4, c: int = 1) -> BookFigure:
    """Example D: the share of each image in one plane of the weight gradient, and their sum."""
    g = EXAMPLES["D"].geometry
    x, _, _, grad_output = EXAMPLES["D"].arrays()
    planes = grad_weight_per_image(grad_output, x, g)[:, o, c]  # n i j
    pieces: list[Piece] = []
    for n, plane in enumerate(planes):
        pieces += ["+", Grid(plane, "result", title=f"image {n}")]
    total = Grid(planes.sum(axis=0), "result", title="∂L/∂w", lit=list(np.ndindex(planes[0].shape)))
    return draw(*pieces[1:], "=", total)


def names(images: int, maps: int) -> np.ndarray:
    """The names of the maps of a batch: ``n,c`` for every image n and channel c, (images, maps)."""
    return np.array([[f"{n},{c}" for c in range(maps)] for n in range(images)])


def _maps(
    table: np.ndarray, geometry: ConvGeometry, role: str, caption: str, **options: Any
) -> Grid:
    """A table of names, those of the second group lit."""
    per_group = geometry.CG if role == "x" else geometry.OG
    lit = [at for at, name in np.ndenumerate(table) if _number(name) // per_group % 2]
    return Grid(table, role, lit=lit, caption=caption, **options)


def _number(name: str) -> int:
    """The channel or kernel of a map: what stands behind the comma."""
    return int(name.partition(",")[2])
