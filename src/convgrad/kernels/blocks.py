"""How large the blocks are.

On a GPU a block must fit into registers and shared memory, and there should be many.  The
interpreter takes the same time for an operation on a small block as on a large one, so there the
blocks are as large as the work.
"""

from __future__ import annotations

from typing import NamedTuple

from ..geometry import ConvGeometry
from ..schedule import fitting
from .device import INTERPRETED, cdiv, programs_at_once
from .index import windows

# Rows, columns and depth of a block of a product, at most; in the interpreter, on a GPU.
LARGEST = (128, 128, 256) if INTERPRETED.value else (64, 64, 32)
# Numbers in a block that has one axis.
LONGEST = 1024
_MOST_SPLITS = 65_535  # programs along the second axis of a grid


class Blocks(NamedTuple):
    """Sizes of a block: rows, columns, and what is summed over."""

    M: int
    N: int
    K: int


def blocks(rows: int, cols: int, depth: int) -> Blocks:
    """For a product of a matrix of rows × depth with one of depth × cols."""
    sizes = zip((rows, cols, depth), LARGEST, strict=True)
    return Blocks(*(fitting(size, most) for size, most in sizes))


class Split(NamedTuple):
    """How the windows are shared out: parts, and blocks of K windows in each."""

    parts: int
    share: int
    K: int


def split(
    geometry: ConvGeometry,
    tiles: int,
    splits: int | None = None,
) -> Split:
    """Enough parts to keep the device busy, or as many as asked for."""
    wanted = splits or max(1, programs_at_once() // tiles)
    depth = windows(geometry)
    K = fitting(cdiv(depth, wanted), LARGEST[2])
    share = cdiv(cdiv(depth, K), min(wanted, _MOST_SPLITS))
    return Split(cdiv(cdiv(depth, K), share), share, K)
