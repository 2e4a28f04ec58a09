"""What a class got wrong, by what the tests said to each answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .grading import Graded

__all__ = ["CellFindings", "Mistake", "cells_of", "what_was_said"]


@dataclass(frozen=True)
class Mistake:
    """One kind of mistake: what was said, and to whom."""

    said: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class CellFindings:
    """One graded cell over the class.

    Attributes
    ----------
    name : str
    of : float
        The points that it is worth.
    right, part, none, waiting : int
        How many have all points, some, none, and how many wait for a grade by hand.
    mistakes : tuple of Mistake
        The most frequent first.
    """

    name: str
    of: float
    right: int
    part: int
    none: int
    waiting: int
    mistakes: tuple[Mistake, ...]

    @property
    def count(self) -> int:
        return self.right + self.part + self.none + self.waiting


def cells_of(rows: Iterable[Graded]) -> list[CellFindings]:
    """Every graded cell of one assignment, in the notebook's order."""
    by_name: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for row in rows:
        for cell in row.cells:
            if cell.get("of"):
                by_name.setdefault(cell["name"], []).append((row.student, cell))
    return [_findings(name, some) for name, some in by_name.items()]


def _findings(name: str, some: list[tuple[str, dict[str, Any]]]) -> CellFindings:
    waiting = [cell for _, cell in some if cell.get("by_hand")]
    tested = [cell for _, cell in some if not cell.get("by_hand")]
    most = max(float(cell["of"]) for _, cell in some)
    right = sum(cell["points"] >= cell["of"] for cell in tested)
    none = sum(not cell["points"] for cell in tested)
    groups: dict[str, list[tuple[str, str]]] = {}
    for student, cell in some:
        said = what_was_said(cell)
        if said:
            groups.setdefault(re.sub(r"\d+", "#", said), []).append((said, student))
    mistakes = [
        Mistake(Counter(said for said, _ in group).most_common(1)[0][0], tuple(s for _, s in group))
        for group in groups.values()
    ]
    mistakes.sort(key=lambda mistake: (-len(mistake.students), mistake.said))
    rest = len(tested) - right - none
    return CellFindings(name, most, right, rest, none, len(waiting), tuple(mistakes))


def what_was_said(cell: dict[str, Any]) -> str:
    """What a test said to an answer, in one line; nothing where it passed.

    >>> what_was_said({"error": "WrongAnswer", "message": "weight-flip: Not yet. Turn it."})
    'weight-flip: Turn it.'
    """
    error, message = cell.get("error"), str(cell.get("message", ""))
    if error is None or cell.get("by_hand"):
        return ""
    if error == "NotRun":
        return message
    if error == "NotImplementedError":
        return "Left as it was handed out."
    if error == "CellTimeoutError":
        return "It took too long."
    line = next((line.strip() for line in message.split("\n") if line.strip()), "")
    if error == "WrongAnswer":
        return " ".join(message.split()).replace(" Not yet. ", " ").replace(" Your turn. ", " ")
    if error == "AssertionError":
        return line or "An assertion fails."
    return f"{error}: {line}" if line else error
