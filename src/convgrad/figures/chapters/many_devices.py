"""The pictures of *Many devices: the batch sum is an all-reduce*."""

from __future__ import annotations

import numpy as np

from ...examples import example
from ...shards import image_shards, part_of, row_shards
from ..grids import Grid, Piece, draw
from ..style import BookFigure
from .shared import spaced

__all__ = ["came_home", "parts", "rows"]

_DEVICES = 3


def parts(o: int = 0, c: int = 0) -> BookFigure:
    """Example D on three devices: their parts in a plane of the weight gradient, and the sum."""
    x, weight, _, g = example("D").arrays()
    shards = image_shards(example("D").geometry, _DEVICES)
    planes = [part_of(g, x, weight, each).grad_weight[o, c] for each in shards]
    return draw(*_added(planes, [f"device {each.device}" for each in shards], "∂L/∂w"))


def rows() -> BookFigure:
    """Example B on three devices: the rows that each owns, and those that it reads."""
    geometry = example("B").geometry
    x, cols = example("B").arrays().x[0, 0], range(geometry.W)
    pictures = [
        Grid(
            x,
            "x",
            title=f"device {each.device}",
            lit=[(h, v) for h in each.owned for v in cols],
            faint=[(h, v) for h in range(geometry.H) if h not in each.reads for v in cols],
            boxes=[(min(each.reads), 0, len(each.reads), geometry.W)],
            caption=f"halo: {' and '.join(map(str, each.halo))}",
            index=("h", "v"),
            cell=28,
        )
        for each in row_shards(geometry, _DEVICES)
    ]
    return draw(*spaced(pictures))


def came_home(h: int = 2) -> BookFigure:
    """Example B on three devices: their parts in one row of the input gradient, and the sum."""
    x, weight, _, g = example("B").arrays()
    shards = row_shards(example("B").geometry, _DEVICES)
    found = [part_of(g, x, weight, each).grad_input[0, 0, h : h + 1] for each in shards]
    names = [f"device {each.device}{', its owner' if h in each.owned else ''}" for each in shards]
    grids = _added(found, names, f"row {h} of ∂L/∂x")[::2]
    return draw(*([sign, each] for sign, each in zip(" ++=", grids, strict=True)))


def _added(grids: list[np.ndarray], names: list[str], title: str) -> list[Piece]:
    """Grids with a plus between them, and what they add up to."""
    pieces: list[Piece] = []
    for numbers, name in zip(grids, names, strict=True):
        pieces += ["+", Grid(numbers, "result", title=name)]
    total = sum(grids)
    lit = list(np.ndindex(grids[0].shape))
    return [*pieces[1:], "=", Grid(total, "result", title=title, lit=lit)]
