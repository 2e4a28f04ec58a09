"""The pictures of *Twelve layers*: one number of each gradient, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np

from ... import loops, padding
from ...geometry import ConvGeometry
from ..grids import Cell, Grid, Piece, draw, tap, written
from ..style import BookFigure

__all__ = ["Shown", "backward", "described"]

_CELL = 28


class Shown(Protocol):
    """What is drawn: a convolution and its three operands, in four axes."""

    @property
    def geometry(self) -> ConvGeometry: ...
    @property
    def x(self) -> np.ndarray: ...
    @property
    def weight(self) -> np.ndarray: ...
    @property
    def grad_output(self) -> np.ndarray: ...


class _Chosen(NamedTuple):
    """One tap, one cell of x, and the cells that have to do with them."""

    o: int
    c: int  # in the kernel's group
    k: int  # the channel of x under it
    tap: Cell
    read: list[Cell]  # of x, padding included
    cell: Cell
    met: list[tuple[Cell, Cell]]  # (p, q) and (i, j) that meet in the cell of x


def backward(layer: Shown, *, kernel: int = 0, channel: int = 0) -> BookFigure:
    """Above, a tap of the weight gradient; below, a cell of the input gradient; image 0.

    kernel, channel : the output channel, and the channel within its group, that are shown.
    """
    geometry, x, weight, g = layer.geometry, layer.x, layer.weight, layer.grad_output
    chosen = _chosen(geometry, kernel, channel)
    o, c, k = chosen.o, chosen.c, chosen.k
    to_weight = loops.grad_weight(g, x, geometry)[o, c]
    to_x = loops.grad_input(g, weight, geometry)[0, k]
    of_kernel, of_image = f"{o}, {c}", f"0, {k}"
    images = f"+ {geometry.N - 1} more images" if geometry.N > 2 else "+ 1 more image"
    kernels = f"+ {geometry.OG - 1} more kernels" if geometry.OG > 2 else "+ 1 more kernel"
    above: list[Piece] = [
        _image(geometry, x[0, k], f"x[{of_image}]", chosen.read),
        "·",
        Grid(g[0, o], "grad_output", title=f"g[0, {o}]", cell=_CELL),
        "=",
        Grid(
            to_weight,
            "result",
            title=f"∂L/∂w[{of_kernel}]",
            caption=images if geometry.N > 1 else "",
            lit=[chosen.tap],
            faint="rest",
            cell=_CELL,
        ),
    ]
    below: list[Piece] = [
        Grid(
            g[0, o],
            "grad_output",
            title=f"g[0, {o}]",
            lit={at for at, _ in chosen.met},
            faint="rest",
            cell=_CELL,
        ),
        "·",
        Grid(
            weight[o, c],
            "kernel",
            title=f"w[{of_kernel}]",
            lit={under for _, under in chosen.met},
            faint="rest",
            cell=_CELL,
        ),
        "=",
        Grid(
            to_x,
            "result",
            title=f"∂L/∂x[{of_image}]",
            caption=kernels if geometry.OG > 1 else "",
            lit=[chosen.cell],
            faint="rest",
            cell=_CELL,
        ),
    ]
    return draw(above, below)


def described(layer: Shown, *, kernel: int = 0, channel: int = 0) -> str:
    """The picture in words, as its alt text has them."""
    geometry = layer.geometry
    chosen = _chosen(geometry, kernel, channel)
    o, c, k = chosen.o, chosen.c, chosen.k
    to_weight = loops.grad_weight(layer.grad_output, layer.x, geometry)[o, c][chosen.tap]
    to_x = loops.grad_input(layer.grad_output, layer.weight, geometry)[0, k][chosen.cell]
    rows, cols = (_listed(dict.fromkeys(axis)) for axis in zip(*chosen.read, strict=True))
    (first, last), count = (chosen.met[0], chosen.met[-1]), len(chosen.met)
    met = f"g {_pair(first[0])} with w {_pair(first[1])}"
    if count > 1:
        met = f"{count} products, from {met} to g {_pair(last[0])} with w {_pair(last[1])}"
    return (
        f"Above, x[0, {k}] with the cells lit that tap {_pair(chosen.tap)} reads, rows {rows} and "
        f"columns {cols}, times g[0, {o}]: the tap's cell of ∂L/∂w[{o}, {c}] is "
        f"{written(to_weight)}. Below, in cell {_pair(chosen.cell)} of x, {met}; that cell "
        f"of ∂L/∂x[0, {k}] is {written(to_x)}."
    )


def _chosen(geometry: ConvGeometry, o: int, c: int) -> _Chosen:
    """The last tap of the kernel's middle row, and the cell of x in which the most meets."""
    corner = geometry.KH // 2, geometry.KW - 1
    outputs = product(range(geometry.OH), range(geometry.OW))
    taps = list(product(range(geometry.KH), range(geometry.KW)))
    meetings: dict[Cell, list[tuple[Cell, Cell]]] = {}
    for at in outputs:
        for under in taps:
            cell = geometry.cell(*geometry.source(*at, *under))
            if cell is not None:
                meetings.setdefault(cell, []).append((at, under))
    cell = max(sorted(meetings), key=lambda each: len(meetings[each]))
    read = tap(geometry, *corner)
    return _Chosen(o, c, geometry.channel(o, c), corner, read, cell, meetings[cell])


def _image(geometry: ConvGeometry, x: np.ndarray, title: str, lit: Sequence[Cell]) -> Grid:
    """A map with its border: hatched where that is zeros, else with the numbers it copies."""
    if geometry.padding_mode == "zeros":
        return Grid(x, "x", title=title, padding=geometry.padding, lit=lit, cell=_CELL)
    (top, _), (left, _) = geometry.padding
    bordered = padding.pad(x[None, None], geometry)[0, 0]
    return Grid(
        bordered,
        "x",
        title=title,
        lit=[(h + top, v + left) for h, v in lit],
        boxes=[(top, left, geometry.H, geometry.W)],
        cell=_CELL,
    )


def _pair(cell: Cell) -> str:
    return f"({cell[0]}, {cell[1]})"


def _listed(numbers: Sequence[int] | dict[int, None]) -> str:
    words = [str(number).replace("-", "−") for number in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
