"""Sums spelled out: which cells meet, the numbers in them, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .. import loops
from ..geometry import ConvGeometry
from .draws import Case

__all__ = ["Term", "longest", "name_of", "number", "spelled", "sum_of", "terms"]


class Term(NamedTuple):
    """One product: two cells by name, and their numbers."""

    left: str
    right: str
    a: int
    b: int

    @property
    def names(self) -> str:
        return f"{self.left}·{self.right}"

    @property
    def numbers(self) -> str:
        return f"{_factor(self.a)}·{_factor(self.b)}"


def number(value: float) -> str:
    """A whole number with a true minus sign, or a fraction in lowest terms."""
    whole = round(value)
    if abs(value - whole) < 1e-9:
        return str(whole).replace("-", "−")
    for below in range(2, 100):
        if abs(value * below - round(value * below)) < 1e-9:
            return f"{round(value * below)}/{below}".replace("-", "−")
    return f"{value:.2f}".replace("-", "−")


def _factor(value: int) -> str:
    return f"({number(value)})" if value < 0 else number(value)


def name_of(letter: str, index: tuple[int, ...], geometry: ConvGeometry) -> str:
    """``x[0,1]``; with all four indices where there is more than one image or channel."""
    plain = geometry.N == geometry.C == geometry.O == 1
    return f"{letter}[{','.join(map(str, index[2:] if plain else index))}]"


def terms(case: Case, target: str, cell: tuple[int, ...]) -> Iterator[Term]:
    """The products that land in one cell of y, grad_weight or grad_input, in reading order.

    Products with zero padding are left out.
    """
    geometry = case.geometry
    for n, o, p, q, c, i, j, at in loops.products(geometry):
        place = {"y": (n, o, p, q), "weight": (o, c, i, j), "input": at}[target]
        if place != cell or at is None:
            continue
        x = name_of("x", at, geometry), int(case.x[at])
        w = name_of("w", (o, c, i, j), geometry), int(case.weight[o, c, i, j])
        g = name_of("g", (n, o, p, q), geometry), int(case.grad_output[n, o, p, q])
        first, second = {"y": (w, x), "weight": (x, g), "input": (w, g)}[target]
        yield Term(first[0], second[0], first[1], second[1])


def longest(case: Case, target: str) -> tuple[int, int]:
    """The cell of the first plane in which the most products meet: the one to spell out."""
    counts: Counter[tuple[int, ...]] = Counter()
    for n, o, p, q, c, i, j, at in loops.products(case.geometry):
        if at is not None:
            counts[{"y": (n, o, p, q), "weight": (o, c, i, j), "input": at}[target]] += 1
    most = max(counts.values())
    row, col = next(cell[2:] for cell in sorted(counts) if counts[cell] == most)
    return row, col


def sum_of(found: list[Term]) -> str:
    """``2·1 + 0·3 + (−1)·2 = 0``."""
    if not found:
        return "no product at all = 0"
    return f"{' + '.join(t.numbers for t in found)} = {number(sum(t.a * t.b for t in found))}"


def spelled(label: str, case: Case, target: str, cell: tuple[int, ...]) -> tuple[str, ...]:
    """The cells that meet, and the sum in numbers: two lines for the key."""
    found = list(terms(case, target, cell))
    names = " + ".join(t.names for t in found)
    return f"{label} = {names}", f"{label} = {sum_of(found)}"
