"""Gradients beside the right ones: each as it came, as it should be, and what lies between."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from .grids import Grid, Piece, draw, written
from .style import BookFigure

__all__ = ["beside"]

_LETTERS = {"input": "x", "weight": "w", "bias": "b"}


class Beside(Protocol):
    """One gradient and the right one."""

    @property
    def mine(self) -> np.ndarray: ...
    @property
    def autograd(self) -> np.ndarray: ...


class Compared(Protocol):
    """What :func:`~convgrad.autograd.compare_gradients` gives."""

    def gaps(self) -> Mapping[str, Beside]: ...


def beside(found: Compared, most: int = 8) -> BookFigure:
    """A row for each gradient: yours, autograd's, and the difference, lit where there is one.

    Parameters
    ----------
    found : Comparison
        From :func:`~convgrad.autograd.compare_gradients`.
    most : int, default 8
        Rows and columns that a grid may have.  Of a gradient in four axes the slice with the
        largest difference is drawn, and of a larger slice the part around it.

    Returns
    -------
    BookFigure
        A matplotlib Figure in the book's colours, light and dark.  Numbers are rounded to where
        the largest of a grid has its third digit.

    Raises
    ------
    ValueError
        For ``most`` below 1, and for a gradient without numbers (of a batch without images).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> gap = SimpleNamespace(mine=np.array([1, 2]), autograd=np.array([1, 4]))
    >>> words = beside(SimpleNamespace(gaps=lambda: {"bias": gap})).words()
    >>> words[:4], words[-3:]
    (['1', '2', '∂L/∂b, yours', '−'], ['0', '−2', 'difference'])
    """
    if most < 1:
        raise ValueError(f"most is {most}: a grid needs at least one row and one column")
    return draw(*(_row(name, gap, most) for name, gap in found.gaps().items()))


def _row(name: str, gap: Beside, most: int) -> list[Piece]:
    index, rows, columns = _worst(gap, most)
    mine, right = (_slice(array, index)[rows, columns] for array in (gap.mine, gap.autograd))
    with np.errstate(invalid="ignore"):  # inf − inf: it is drawn as nan
        gone = mine - right
    differs = ~np.isclose(mine, right, rtol=1e-4, atol=1e-6, equal_nan=True)
    place = f"[{', '.join(map(str, index))}]" if index else ""
    whole = _slice(gap.autograd, index).shape
    part = f"rows {rows.start} to {rows.stop - 1},\ncolumns {columns.start} to {columns.stop - 1}"
    words = [_short(numbers) for numbers in (mine, right, gone)]
    longest = max(len(word) for grid in words for row in grid for word in row)

    caption = "" if mine.shape == whole else part
    lit = [(int(row), int(column)) for row, column in np.argwhere(differs)]
    title = f"∂L/∂{_LETTERS[name]}{place}, yours"
    cell = min(18 + 6 * longest, 54)
    return [
        Grid(words[0], "result", title=title, caption=caption, cell=cell),
        "−",
        Grid(words[1], "result", title="autograd's", caption=caption, cell=cell),
        "=",
        Grid(words[2], title="difference", caption=caption, lit=lit, cell=cell),
    ]


def _worst(gap: Beside, most: int) -> tuple[tuple[int, ...], slice, slice]:
    """The slice with the largest difference, and the rows and columns around it."""
    if not gap.mine.size:
        raise ValueError(f"a gradient of shape {gap.mine.shape} has no numbers to draw")
    with np.errstate(invalid="ignore"):
        off = np.where(gap.mine == gap.autograd, 0, np.abs(gap.mine - gap.autograd))
    off = np.where(np.isnan(off), np.inf, off)
    at = [int(place) for place in np.unravel_index(int(off.argmax()), off.shape)]
    *index, row, column = [0, *at] if off.ndim == 1 else at
    height, width = _slice(off, tuple(index)).shape
    return tuple(index), _around(row, height, most), _around(column, width, most)


def _slice(array: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """Two axes of a gradient; a bias is one row."""
    return array[None] if array.ndim == 1 else array[index]


def _around(place: int, size: int, most: int) -> slice:
    """Up to ``most`` of ``range(size)``, with the place in their middle where that can be."""
    start = max(0, min(place - most // 2, size - most))
    return slice(start, min(start + most, size))


def _short(numbers: np.ndarray) -> list[list[str]]:
    """As words, rounded to where the largest has its third digit."""
    sizes = np.abs(numbers[np.isfinite(numbers)])
    largest = float(sizes.max(initial=0))
    digits = 3 - math.ceil(math.log10(largest)) if largest else 0
    return [[written(float(np.round(number, digits))) for number in row] for row in numbers]
