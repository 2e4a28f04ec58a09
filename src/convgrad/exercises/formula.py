"""Exercises whose answer is a formula, typed in the letters of the book."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from ..dice import Dice
from .base import Exercise, Verdict
from .expressions import NotAFormula, NoValue, compute, parse

__all__ = ["Formula", "Setting"]

_SETTINGS = 40


@dataclass(frozen=True)
class Setting:
    """Numbers for the letters of a formula, and what it must give for them."""

    values: Mapping[str, int]
    right: int | Fraction

    def written(self, letters: Mapping[str, str]) -> str:
        return ", ".join(f"{letter} = {self.values[letter]}" for letter in letters)


@dataclass(frozen=True)
class Formula(Exercise):
    """The answer is a formula as text, in letters such as ``H``, ``KH`` and ``stride``.

    It is computed for forty layers, drawn at random, and compared with what the package finds
    there; so every way to write it is right.  A wrong one is told a layer, what it gives there
    and what comes out, and, if it is a known mistake, which.

    Attributes
    ----------
    letters : mapping
        The letters that it may use, each with its meaning.
    draw : callable
        Makes numbers for the letters, and what is right for them, from dice.
    wrong_formulas : sequence of pairs
        Formulas that people write, each with what to say.
    explanation : str
        What is said to the right answer.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("geometry-formula-smallest").check("H = OH + KH - 1").passed
    False
    """

    kind: ClassVar[str] = "formula"

    letters: Mapping[str, str] = field(kw_only=True, repr=False)
    draw: Callable[[Dice], Setting] = field(kw_only=True, repr=False)
    wrong_formulas: tuple[tuple[str, str], ...] = field(kw_only=True, repr=False)
    explanation: str = field(kw_only=True, repr=False)

    def settings(self) -> Iterator[Setting]:
        """The layers on which a formula is tried; with a seed, the seed's."""
        dice = Dice(self.key, "the book" if self.seed is None else self.seed)
        return (self.draw(dice) for _ in range(_SETTINGS))

    def _judge(self, answer: Any) -> Verdict:
        if not isinstance(answer, str):
            return self._wrong(self._needed())
        if answer.strip() in ("", "...", "…"):
            return self._open("Nothing is entered yet: replace the `...` by your formula.")
        try:
            tree = parse(answer, self.letters)
        except NotAFormula as complaint:
            return self._wrong(str(complaint))
        settings = list(self.settings())
        off = [each for each in settings if _at(tree, each.values) != each.right]
        if not off:
            return self._right(self.explanation)
        return self._wrong(" ".join(self._complaints(tree, settings, off)))

    def _complaints(
        self, tree: ast.expr, settings: list[Setting], off: list[Setting]
    ) -> Iterator[str]:
        # the plainest layer that shows it
        shown = min(off, key=lambda each: sum(each.values.values()))
        found = _at(tree, shown.values)
        gives = f"gives {_written(found)}" if isinstance(found, Fraction) else found
        yield (
            f"For {shown.written(self.letters)} your formula {gives}, and {_written(shown.right)} "
            "is right."
        )
        for wrong, sentence in self.wrong_formulas:
            known = parse(wrong, self.letters)
            if all(_at(tree, each.values) == _at(known, each.values) for each in settings):
                yield sentence
                return
        fitting = len(settings) - len(off)
        if fitting:
            yield f"It fits {fitting} of {len(settings)} layers: what is different in the others?"

    def _needed(self) -> str:
        listed = ", ".join(f"`{letter}`" for letter in self.letters)
        return f"A formula is asked for, as text between quotes, in the letters {listed}."


def _at(tree: ast.expr, values: Mapping[str, int]) -> Fraction | str:
    """The value of a formula, or the words for why it has none."""
    try:
        return compute(tree, values)
    except NoValue as trouble:
        return str(trouble)


def _written(value: Fraction | int) -> str:
    return f"{float(value):.6g}".replace("-", "−")
