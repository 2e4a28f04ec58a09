"""What a question is made of: the tables it gives, and what there is to fill in.

A part knows its content only; :mod:`convgrad.worksheet.page` draws it, empty for the sheet and
filled in for the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..geometry import ConvGeometry

__all__ = ["Ask", "Choices", "Line", "Listing", "Mistake", "Question", "Table"]


@dataclass(frozen=True)
class Table:
    """A grid of numbers with its indices as headings.

    ``letters`` count the rows and the columns; ``first`` are their first indices, below 0 where
    the border of padding is shown.  ``blank`` is True where the reader writes, ``hatched`` on the
    border, ``circled`` where the key draws a circle.
    """

    label: str
    values: np.ndarray  # 2-D, whole numbers
    letters: tuple[str, str]
    first: tuple[int, int] = (0, 0)
    blank: np.ndarray | None = None
    hatched: np.ndarray | None = None
    circled: np.ndarray | None = None
    rows: tuple[str, ...] = ()  # headings, where they are not the indices
    columns: tuple[str, ...] = ()

    @property
    def row_names(self) -> tuple[str, ...]:
        return self.rows or _counted(self.first[0], self.values.shape[0])

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.columns or _counted(self.first[1], self.values.shape[1])


def _counted(first: int, size: int) -> tuple[str, ...]:
    return tuple(str(k).replace("-", "−") for k in range(first, first + size))


@dataclass(frozen=True)
class Line:
    """One answer on a line: ``label = ____``."""

    label: str
    value: int | str


@dataclass(frozen=True)
class Listing:
    """Several answers in any order, each on a line of its own."""

    label: str
    entries: tuple[str, ...]
    lines: int  # on the sheet: more than there are answers, or their number would be told


@dataclass(frozen=True)
class Choices:
    """Boxes to tick, one of them right."""

    label: str
    options: tuple[str, ...]
    right: int


Ask = Table | Line | Listing | Choices


@dataclass(frozen=True)
class Mistake:
    """What a pupil has who made a certain mistake."""

    result: np.ndarray  # of the shape of Question.answer
    sentence: str
    name: str = ""  # of the mutant in convgrad.mutants, where it is one


@dataclass(frozen=True)
class Question:
    """One question, its answers and what goes wrong with it."""

    title: str
    text: tuple[str, ...]
    asks: tuple[Ask, ...]
    answer: np.ndarray  # the numbers that are asked for, what a mistake's result is held against
    given: tuple[Table, ...] = ()
    working: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    geometry: ConvGeometry | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)  # which cell, tap or mutant it is about
    room: int = 30  # millimetres of squared paper at least
    topic: str = ""
    kind: str = ""
    level: int = 1
