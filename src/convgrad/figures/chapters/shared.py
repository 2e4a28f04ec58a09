"""What the pictures of several chapters share: the examples worked out, and small pieces."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ... import loops
from ...examples import EXAMPLES
from ...geometry import ConvGeometry
from ..grids import Grid, Label, Piece

__all__ = [
    "backward_of",
    "dealt_to",
    "forward_of",
    "meetings",
    "small",
    "spaced",
    "tap_on_pixel",
]


def forward_of(
    letter: str,
) -> tuple[ConvGeometry, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    geometry = EXAMPLES[letter].geometry
    x, weight, bias, _ = EXAMPLES[letter].arrays()
    return geometry, x, weight, bias, loops.forward(x, weight, geometry) + bias[:, None, None]


def backward_of(letter: str) -> tuple[ConvGeometry, np.ndarray, np.ndarray, np.ndarray]:
    geometry = EXAMPLES[letter].geometry
    x, _, _, grad_output = EXAMPLES[letter].arrays()
    return geometry, x, grad_output, loops.grad_weight(grad_output, x, geometry)


def tap_on_pixel(geometry: ConvGeometry, p: int, q: int) -> tuple[int, int]:
    """The tap that lies on the one pixel of a 1×1 map when the window stands at (p, q)."""
    taps = product(range(geometry.KH), range(geometry.KW))
    return next(t for t in taps if geometry.cell(*geometry.source(p, q, *t)) is not None)


def meetings(
    geometry: ConvGeometry,
    channel: Callable[[int, int], int] | None = None,
    **options: Any,
) -> Grid:
    """Which channels of x each kernel reads, and which plane c of the kernel lies on them.

    channel : the channel under plane c of kernel o, where it is not that of the geometry.
    """
    channel = channel or geometry.channel
    planes = [[""] * geometry.C for _ in range(geometry.O)]
    for o, c in product(range(geometry.O), range(geometry.CG)):
        planes[o][channel(o, c)] = f"c = {c}"
    lit = [(o, k) for o, k in product(range(geometry.O), range(geometry.C)) if planes[o][k]]
    return Grid(planes, "kernel", lit=lit, index=("o", "x"), cell=40, **options)


def dealt_to(geometry: ConvGeometry, o: int, c: int) -> int:
    """The channel under plane c of kernel o, were the channels dealt to the groups like cards."""
    return c * geometry.groups + geometry.group_of(o)


def small(index: int) -> str:
    """A number as a subscript."""
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(index))


def spaced(pictures: list[Grid]) -> list[Piece]:
    """The pictures with a little air between them."""
    pieces: list[Piece] = []
    for picture in pictures:
        pieces += [Label(" ", size=6), picture]
    return pieces[1:]
