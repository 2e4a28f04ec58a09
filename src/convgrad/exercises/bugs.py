"""Exercises in which somebody else's function is wrong in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .base import Asked, Mistakes, Verdict
from .lines import Line, NotALine, same_line

__all__ = ["Bug", "Mend"]


@dataclass(frozen=True)
class Bug(Asked):
    """The answer is the number of the line that is wrong.

    Attributes
    ----------
    repair : Line
        The function as it should be, and how to try it.
    wrong_line : str
        What stands in place of the right line.
    about : mapping
        For some of the other lines, by number, why they are right.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("window-bug").check("line 1").passed
    False
    """

    kind: ClassVar[str] = "bug"
    in_page: ClassVar[str | None] = "number"

    repair: Line = field(kw_only=True, repr=False)
    wrong_line: str = field(kw_only=True, repr=False)
    about: Mapping[int, str] = field(kw_only=True, repr=False)

    @property
    def listing(self) -> str:
        """The function with its mistake, its lines numbered."""
        return self.repair.listing.numbered(self.wrong_line)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compute", lambda: self.repair.listing.number)
        object.__setattr__(self, "compute_mistakes", self._about_lines)

    def _about_lines(self) -> Mistakes:
        """What is said to every other line."""
        lines = self.repair.listing.lines
        plain = "Line {} does what it should. Which numbers go where in the others?"
        return [
            (k, self.about.get(k, plain.format(k)))
            for k in range(1, len(lines) + 1)
            if k != self.repair.listing.number
        ]

    def _judge(self, answer: Any) -> Verdict:
        number = self._number(answer)
        if number is None:
            return self._wrong(self._needed())
        if number == self.answer:
            return self._right(self.explanation)
        return self._wrong(dict(self.mistakes)[number])

    def _number(self, answer: Any) -> int | None:
        """The line that is meant, or None."""
        if isinstance(answer, np.ndarray) and answer.size == 1:
            answer = answer.item()
        if isinstance(answer, str):
            found = re.fullmatch(r"(?:line)?\s*(\d{1,3})\.?", answer.strip().lower())
            answer = int(found[1]) if found else None
        if isinstance(answer, bool | np.bool_) or not isinstance(answer, int | float | np.number):
            return None
        if isinstance(answer, complex | np.complexfloating):
            return None
        whole = int(answer) if np.isfinite(answer) and answer == int(answer) else 0
        return whole if 1 <= whole <= len(self.repair.listing.lines) else None

    def _needed(self) -> str:
        return f"The number of a line is asked for, 1 to {len(self.repair.listing.lines)}."


@dataclass(frozen=True)
class Mend(Bug):
    """The answer is a pair: the number of the line that is wrong, and the line as it should be.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("input-bug-mend").check((1, "pass")).passed
    False
    """

    in_page: ClassVar[str | None] = None

    def _judge(self, answer: Any) -> Verdict:
        if isinstance(answer, dict) and len(answer) == 1:
            answer = next(iter(answer.items()))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            found = super()._judge(answer)
            return self._wrong(f"That is the line. {self._needed()}") if found.passed else found
        number, line = answer
        found = super()._judge(number)
        if not found.passed:
            return found
        if not isinstance(line, str):
            return self._wrong(self._needed())
        if line.strip().strip(".…") == "":
            return self._open("That is the line. Now write it as it should be.")
        if same_line(line, self.wrong_line):
            return self._wrong("That is the right line, and it stands there as before.")
        try:
            function = self.repair.listing.function(line)
        except NotALine as complaint:
            return self._wrong(str(complaint))
        tried = self.repair._checked(function)
        return self._right(self.explanation) if tried.passed else self._wrong(tried.message)

    def _needed(self) -> str:
        count = len(self.repair.listing.lines)
        return (
            f'Two things are asked for, `(number, "line")`: which line is wrong, 1 to {count}, and '
            "the line as it should be."
        )
