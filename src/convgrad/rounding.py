"""The same shares added in two orders: why two runs of one program differ in the last digits.

A sum of float32 numbers is rounded after every addition, so its last digits depend on the order.
With split-K by atomics the order in which shares arrive is nobody's to say; here a number, the
seed, stands for chance, so that a run can be told and repeated.  Everything is float32, product
by product and sum by sum, and equal to the last bit in Python and in the browser.

>>> small = np.float32([16777216, 1, 1])
>>> int(running_sums(small, [0, 1, 2])[-1]), int(running_sums(small, [1, 2, 0])[-1])
(16777216, 16777218)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .implicit import OPERANDS, left, right
from .schedule import Schedule

__all__ = ["arrivals", "noise", "running_sums", "share_sums", "tenths"]

Numbers = Callable[[np.ndarray], np.ndarray]  # offsets in an array → the numbers that stand there

# the same in rounding.js
_SALTS = {"x": 1, "weight": 2, "grad_output": 3}
_GOLDEN, _MASK = 0x9E3779B9, 0xFFFFFFFF


def tenths(array: np.ndarray) -> Numbers:
    """The numbers of an array, each divided by 10 and rounded to float32.

    Parameters
    ----------
    array : ndarray
        Small integers, say: their sums are exact, those of tenths are rounded.

    Returns
    -------
    callable
        From offsets to float32 numbers.

    Examples
    --------
    >>> tenths(np.array([1, 2, 3]))(np.array([2, 0]))
    array([0.3, 0.1], dtype=float32)
    """
    flat = (np.asarray(array, dtype=np.float64).ravel() / 10).astype(np.float32)
    return lambda at: flat[at]


def noise(name: str) -> Numbers:
    """Numbers by a formula, from −1 to 1, for an array too large to be kept in a page.

    Parameters
    ----------
    name : str
        "x", "weight" or "grad_output", which get different ones.

    Returns
    -------
    callable
        From offsets to float32 numbers.

    Examples
    --------
    >>> noise("x")(np.arange(3))
    array([-0.673, -0.461,  0.002], dtype=float32)
    """
    salt = _SALTS[name] * _GOLDEN & _MASK

    def numbers(at: np.ndarray) -> np.ndarray:
        scrambled = _mix(np.asarray(at).astype(np.uint32) + np.uint32(salt))
        return ((scrambled % 2001).astype(np.float64) / 1000 - 1).astype(np.float32)

    return numbers


def share_sums(
    schedule: Schedule, numbers: Mapping[str, Numbers], group: int, row: int, col: int
) -> np.ndarray:
    """The shares of one number of the result, each summed by a program of its own.

    Parameters
    ----------
    schedule : Schedule
    numbers : mapping of callables
        For the two arrays of the product, by name, such as :func:`tenths` or :func:`noise`.
    group, row, col : int
        Which number of which group's product.

    Returns
    -------
    ndarray of float32, (parts,)
        Summed one product after the other, in the order of k.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.schedule import Tile
    >>> x, _, _, grad_output = example("B").arrays()
    >>> numbers = {"grad_output": tenths(grad_output), "x": tenths(x)}
    >>> by_rows = Schedule(example("B").geometry, splits=3, tile=Tile(1, 9, 3))
    >>> share_sums(by_rows, numbers, group=0, row=0, col=0).round(2)
    array([0.01, 0.01, 0.01], dtype=float32)
    """
    g = schedule.geometry
    k = np.arange(schedule.gemm.K)
    places = left(g, schedule.target, group, row, k), right(g, schedule.target, group, k, col)
    a, b = (
        np.where(at < 0, np.float32(0), numbers[name](np.maximum(at, 0)))
        for name, at in zip(OPERANDS[schedule.target], places, strict=True)
    )
    products = a * b  # float32, each rounded
    depth = schedule.share * schedule.tile.K
    shares = [_sum(products[first : first + depth]) for first in range(0, len(k), depth)]
    return np.array(shares or [0], dtype=np.float32)


def arrivals(schedule: Schedule, tile: int, seed: int) -> list[int]:
    """In which order the shares of a tile come in, in the run with this seed.

    Parameters
    ----------
    schedule : Schedule
    tile : int
    seed : int
        Another seed is another run.

    Returns
    -------
    list of int
        Programs that end in the same step come in by chance, earlier ones before later ones.

    Examples
    --------
    >>> from convgrad import example
    >>> many = Schedule(example("F").geometry, splits=6)
    >>> arrivals(many, 0, seed=1), arrivals(many, 0, seed=2)
    ([5, 4, 3, 1, 0, 2], [5, 0, 3, 1, 2, 4])
    """
    programs = range(tile, schedule.programs, schedule.tiles)  # its shares 0, 1, …
    ends = np.array([schedule.runs[program].end for program in programs])
    start = int(_mix(np.array([seed * _GOLDEN & _MASK], np.uint32))[0])
    # as int64 also where NumPy counts in 32 bits
    luck = _mix((np.arange(schedule.parts, dtype=np.int64) + start & _MASK).astype(np.uint32))
    return [int(part) for part in np.lexsort((luck, ends))]


def running_sums(shares: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """What stands in the number of the result after each addition, from 0 on.

    Parameters
    ----------
    shares : ndarray of float32, (parts,)
    order : sequence of int

    Returns
    -------
    ndarray of float32, (parts,)
        The last one is the result.

    Examples
    --------
    >>> running_sums(np.float32([0.1, 0.2, 0.3]), [2, 1, 0])
    array([0.3, 0.5, 0.6], dtype=float32)
    """
    return _sums(np.asarray(shares, dtype=np.float32)[list(order)])


def _sums(terms: np.ndarray) -> np.ndarray:
    # accumulate goes from term to term, where np.sum would pair them; from +0, as a kernel does
    return np.add.accumulate(np.concatenate([np.zeros(1, np.float32), terms]))[1:]


def _sum(terms: np.ndarray) -> Any:
    return _sums(terms)[-1]


def _mix(bits: np.ndarray) -> np.ndarray:
    """Scrambles 32 bits, so that neighbours have nothing in common."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x7FEB352D)
        bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x846CA68B)
        return bits ^ (bits >> np.uint32(16))
