"""What an exercise is, and what it says to an answer.

``check(answer)`` always returns a :class:`Verdict`, whatever the answer is; ``require(answer)``
is the same as an assertion, for tests and grading.  The right answer is computed by the package
when it is needed.  A verdict explains; it never prints the whole right answer.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..checks import explain_difference
from ..checks.compare import NotNumbers, numbers, same, wrong_cells
from ..dice import Dice

__all__ = ["Choice", "Exercise", "Grid", "Number", "Verdict", "WrongAnswer"]

Mistakes = Sequence[tuple[Any, str]]


class WrongAnswer(AssertionError):
    """An answer that does not pass; the message is the verdict's.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("weight-how-many").require(6)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.exercises.base.WrongAnswer: weight-how-many: Not yet.
        That is one image's share. There are 2 images, and their shares add.
    """


@dataclass(frozen=True)
class Verdict:
    """Right or not yet, and why.  True when passed.

    Attributes
    ----------
    passed : bool
        Whether the answer is right.
    message : str
        Why, or why not; it never gives the whole answer away.
    hints : tuple of str
        Those of the exercise: a notebook shows them folded, one below the other.
    untouched : bool
        Whether there is no answer yet: then it invites and does not judge.
    share : float or None
        What share of the work is done, where an exercise counts parts.

    Examples
    --------
    >>> from convgrad import exercises
    >>> verdict = exercises.get("weight-how-many").check(...)
    >>> verdict
    Your turn. Nothing is entered yet: replace the ... by your answer.
    >>> bool(verdict), verdict.untouched
    (False, True)
    """

    passed: bool
    message: str
    hints: tuple[str, ...] = ()
    untouched: bool = False
    share: float | None = None

    @property
    def score(self) -> float:
        """From 0 to 1: the share that is done, or all or nothing."""
        return float(self.passed) if self.share is None else self.share

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return f"{self._head} {_plain(self.message)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """For a notebook: in the colours of its page, the state said in words."""
        state = "right" if self.passed else "open" if self.untouched else "wrong"
        bar, head = ("1px dotted", self._head) if self.untouched else ("3px solid", self._strong)
        hints = "" if self.passed else "".join(map(_hint_html, range(1, 99), self.hints))
        return (
            f'<div class="cg-verdict cg-verdict--{state}" role="status" style="border-left: {bar} '
            'currentColor; padding: 0.1em 0 0.1em 0.9em; margin: 0.6em 0">'
            f'<p class="cg-verdict__message">{head} {_html(self.message)}</p>{hints}</div>'
        )

    @property
    def _strong(self) -> str:
        return f"<strong>{self._head}</strong>"

    @property
    def _head(self) -> str:
        if self.passed:
            return "Right."
        return "Your turn." if self.untouched else "Not yet."


def _hint_html(number: int, hint: str) -> str:
    return (
        f'<details class="cg-verdict__hint"><summary>Hint {number}</summary>'
        f"<p>{_html(hint)}</p></details>"
    )


def _html(text: str) -> str:
    """Text with `code` in backticks as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def _plain(text: str) -> str:
    return text.replace("`", "")


#: Who hears of every verdict; ``progress.keep`` is one.
told: list[Callable[[Exercise, Verdict], None]] = []


@dataclass(frozen=True)
class Exercise:
    """One question of the bank; its kinds are the subclasses.

    Attributes
    ----------
    key : str
        Its name for good.
    chapter : str
        The page it belongs to.
    level : int
        1 (predict) to 3 (derive, or write something whole).
    title : str
        What it is about.
    prompt : str
        The question, in Markdown.
    hints : tuple of str
        From a nudge to nearly everything.
    solution : str
        What may be folded behind the hints.
    starter : str
        The cell that a reader begins with.
    seed : str or None
        Whose numbers it asks about; None for the book's.
    same_for_all : str
        Why it is the same question whatever the seed, where it is.
    redraw : callable or None
        Makes the question anew from dice; call :meth:`drawn` instead.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercise = exercises.get("weight-how-many")
    >>> exercise.kind, exercise.level, exercise.starter
    ('number', 1, 'answer = ...')
    """

    kind: ClassVar[str]
    #: How a page without a kernel asks it: "number", "grid" or "choice"; None where it cannot.
    in_page: ClassVar[str | None] = None

    key: str
    chapter: str
    level: int
    title: str
    prompt: str
    hints: tuple[str, ...]
    solution: str = field(repr=False)
    starter: str = "answer = ..."
    seed: str | None = None
    same_for_all: str = field(default="", repr=False)
    redraw: Callable[[Dice], Exercise] | None = field(default=None, repr=False)

    def drawn(self, seed: object) -> Exercise:
        """The same exercise with numbers of a learner's own.

        The same seed gives the same question on every machine.  A number or a grid asks about
        other numbers, a choice has its answers in another order, and what is tried out (a
        function, a line, a formula) is tried on draws of its own.

        Parameters
        ----------
        seed : str or int
            A name, a number: anything that stays the same.

        Returns
        -------
        Exercise
            Of the same key, so that it counts as the same exercise.

        Examples
        --------
        >>> from convgrad import exercises
        >>> exercises.get("geometry-sizes").drawn("ada").prompt == (
        ...     exercises.get("geometry-sizes").prompt
        ... )
        False
        """
        return replace(self._redrawn(Dice(self.key, seed)), seed=str(seed))

    def _redrawn(self, dice: Dice) -> Exercise:
        """With numbers that leave it a fair question."""
        if self.redraw is None:
            return self
        for _ in range(1000):
            fresh = self.redraw(dice)
            if self._fair(fresh):
                return fresh
        raise AssertionError(f"{self.key}: a thousand draws, and none leaves it a fair question")

    def _fair(self, fresh: Exercise) -> bool:
        """Whether a draw asks something else, and as well as the book does."""
        return fresh.asked != self.asked

    @property
    def asked(self) -> str:
        """All that is asked: the prompt, and what a picture says."""
        return self.prompt

    def check(self, answer: Any) -> Verdict:
        """Judge an answer.

        Never raises because of it, whatever it is.  Only an interruption from the keyboard passes
        through, which ends a function that runs for ever.

        Parameters
        ----------
        answer : anything
            A number, a grid, a choice or a function, as the exercise asks.

        Returns
        -------
        Verdict
        """
        verdict = self._checked(answer)
        for listener in told:
            listener(self, verdict)
        return verdict

    def _checked(self, answer: Any) -> Verdict:
        if answer is ...:
            return self._open("Nothing is entered yet: replace the `...` by your answer.")
        try:
            with np.errstate():  # whatever an answer does to NumPy's settings ends with it
                return self._judge(answer)
        except Exception as trouble:  # an object may fail at anything one does with it
            return self._wrong(
                f"Your answer could not be looked at: it raised `{type(trouble).__name__}` on the "
                f"way. {self._needed()}"
            )

    def require(self, answer: Any) -> None:
        """The same as an assertion, for tests and grading.

        Parameters
        ----------
        answer : anything
            As for :meth:`check`.

        Raises
        ------
        WrongAnswer
            With the verdict's words, unless the answer passes.
        """
        verdict = self.check(answer)
        if not verdict:
            raise WrongAnswer(f"{self.key}: {verdict}")

    def hint(self, number: int = 1) -> str:
        """The hint with this number, counted from 1."""
        if not isinstance(number, int) or not 1 <= number <= len(self.hints):
            return f"This exercise has {len(self.hints)} hints."
        return self.hints[number - 1]

    def _repr_markdown_(self) -> str:
        return f"**{self.title}**\n\n{self.prompt}\n\n```python\n{self.starter}\n```"

    def _judge(self, answer: Any) -> Verdict:
        raise NotImplementedError

    def _needed(self) -> str:
        """What kind of answer is asked for, as a sentence."""
        raise NotImplementedError

    def _right(self, message: str) -> Verdict:
        return Verdict(True, message)

    def _wrong(self, message: str) -> Verdict:
        return Verdict(False, message, self.hints)

    def _open(self, message: str) -> Verdict:
        return Verdict(False, message, self.hints, untouched=True)


@dataclass(frozen=True)
class Asked(Exercise):
    """A question with one right answer, which the package computes when it is first needed."""

    explanation: str = field(default="", repr=False)
    compute: Callable[[], Any] = field(default=lambda: None, repr=False)
    compute_mistakes: Callable[[], Mistakes] = field(default=tuple, repr=False)

    @cached_property
    def answer(self) -> Any:
        """The right answer."""
        return self.compute()

    @cached_property
    def mistakes(self) -> list[tuple[Any, str]]:
        """Wrong answers that people give, each with what to say; none is right, none twice."""
        kept: list[tuple[Any, str]] = []
        for wrong, message in self.compute_mistakes():
            known = [self.answer, *(answer for answer, _ in kept)]
            if not any(np.array_equal(wrong, answer) for answer in known):
                kept.append((wrong, message))
        return kept

    def _fair(self, fresh: Exercise) -> bool:
        """No mistake may give the right answer, nor two of them the same."""
        assert isinstance(fresh, Asked)
        return super()._fair(fresh) and len(fresh.mistakes) >= len(self.mistakes)

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers to choose from; none unless the kind is choice."""
        return ()

    def _known_mistake(self, answer: np.ndarray) -> str | None:
        for wrong, message in self.mistakes:
            if same(answer, np.asarray(wrong, dtype=np.float64)):
                return message
        return None


@dataclass(frozen=True)
class Number(Asked):
    """The answer is one number.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("window-response-size").kind
    'number'
    """

    kind: ClassVar[str] = "number"
    in_page: ClassVar[str | None] = "number"

    def _judge(self, answer: Any) -> Verdict:
        try:
            value = numbers(answer, "answer")
        except NotNumbers as complaint:
            return self._wrong(f"{complaint} {self._needed()}")
        if value.size != 1:
            return self._wrong(f"Your answer has the shape {value.shape}. {self._needed()}")
        value = value.reshape(())
        if not np.isfinite(value):
            return self._wrong(f"Your answer is {value}. {self._needed()}")
        if same(value, np.asarray(self.answer, dtype=np.float64)):
            return self._right(self.explanation)
        message = self._known_mistake(value)
        return self._wrong(message or f"{value:g} is not it. Write the products down one by one.")

    def _needed(self) -> str:
        return "One number is asked for."


#: From how many cells on a wrong table is told the right number of one.
_LARGE = 6


@dataclass(frozen=True)
class Grid(Asked):
    """The answer is a table of numbers: a list of rows, or an array.

    Attributes
    ----------
    operands : callable
        Gives the keywords for ``explain_difference`` where the table is a gradient or an output
        (one image, one channel).

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("window-shape").check([1, 2, 3])
    Not yet. Your answer has the shape (3,). A list of 2 numbers is asked for.
    """

    kind: ClassVar[str] = "grid"
    in_page: ClassVar[str | None] = "grid"

    operands: Callable[[], dict[str, Any]] = field(default=dict, repr=False)

    def _judge(self, answer: Any) -> Verdict:
        right = np.asarray(self.answer)
        if _has_ellipsis(answer):
            return self._wrong("Some cells are still `...`: fill in every one.")
        try:
            table = numbers(answer, "answer")
        except NotNumbers as complaint:
            return self._wrong(f"{complaint} {self._needed()}")
        while table.ndim > right.ndim and table.shape[0] == 1:
            table = table[0]  # one image, one channel
        if right.shape[0] == 1 and table.shape == right.shape[1:]:
            table = table[None]  # [row, column] for [[row, column]]
        if table.shape != right.shape:
            return self._wrong(f"Your answer has the shape {table.shape}. {self._needed()}")
        if same(table, right):
            return self._right(self.explanation)
        return self._wrong(self._known_mistake(table) or self._explain(table, right))

    def _explain(self, table: np.ndarray, right: np.ndarray) -> str:
        if not np.isfinite(table).all():
            return f"Your answer holds nan or inf. {self._needed()}"
        operands = self.operands()
        if operands:
            explanation = explain_difference(table[None, None], right[None, None], **operands)
            if explanation.cause != "unknown":
                return explanation.sentence
        wrong = np.argwhere(wrong_cells(table, right))
        row, col = map(int, wrong[0])
        cells = (
            "One cell is wrong" if len(wrong) == 1 else f"{len(wrong)} cells are wrong, the first"
        )
        said = f"{cells} in row {row}, column {col}, where you have {table[row, col]:g}"
        # where most of a large table is wrong, the right number of one cell gives little away
        if right.size >= _LARGE and 2 * len(wrong) > right.size:
            said += f" and {right[row, col]:g} belongs"
        return f"{said}."

    def _needed(self) -> str:
        rows, cols = np.shape(self.answer)
        if rows == 1:
            return f"A list of {cols} numbers is asked for."
        return f"A table of {rows}×{cols} numbers is asked for, a list of rows or an array."


def _has_ellipsis(answer: Any) -> bool:
    """Whether a list, or a list of lists, holds an unfilled cell."""
    if not isinstance(answer, list | tuple):
        return False
    return any(cell is ... or _has_ellipsis(cell) for cell in answer)


@dataclass(frozen=True)
class Choice(Asked):
    """The answer is one of several sentences, given by its place (from 0), letter or text.

    Attributes
    ----------
    options : tuple of str
        The sentences.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("weight-swap").check("z")  # doctest: +NORMALIZE_WHITESPACE
    Not yet. One of the choices is asked for:
    its place, 0 to 3, or its letter, a to d.
    """

    kind: ClassVar[str] = "choice"
    in_page: ClassVar[str | None] = "choice"

    options: tuple[str, ...] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        return self.options

    def _redrawn(self, dice: Dice) -> Exercise:
        """With its answers in another order."""
        fresh = super()._redrawn(dice)
        assert isinstance(fresh, Choice)
        order = dice.shuffled(range(len(fresh.options)))  # what stands where
        return replace(
            fresh,
            options=tuple(fresh.options[place] for place in order),
            compute=lambda: order.index(fresh.answer),
            compute_mistakes=lambda: [(order.index(k), said) for k, said in fresh.mistakes],
            solution=re.sub(
                r"^answer = \d+",
                lambda _: f"answer = {order.index(fresh.answer)}",
                fresh.solution,
                flags=re.MULTILINE,
            ),
        )

    def _judge(self, answer: Any) -> Verdict:
        place = self._place(answer)
        if place is None:
            return self._wrong(self._needed())
        if place == self.answer:
            return self._right(self.explanation)
        message = next((words for wrong, words in self.mistakes if wrong == place), None)
        return self._wrong(message or "It is another one.")

    def _place(self, answer: Any) -> int | None:
        if isinstance(answer, str):
            if answer in self.options:
                return self.options.index(answer)
            answer = answer.strip().rstrip(").").lower()  # b) and b. are b
            letters = self._letters()
            if answer in letters:
                return letters.index(answer)
            answer = int(answer) if answer.isdecimal() else None
        if isinstance(answer, np.ndarray) and answer.ndim == 0:
            answer = answer.item()
        if isinstance(answer, int | np.integer) and not isinstance(answer, bool):
            return int(answer) if 0 <= answer < len(self.options) else None
        return None

    def _letters(self) -> list[str]:
        return [chr(ord("a") + place) for place in range(len(self.options))]

    def _needed(self) -> str:
        letters = self._letters()
        return (
            f"One of the choices is asked for: its place, 0 to {len(letters) - 1}, or its letter, "
            f"{letters[0]} to {letters[-1]}."
        )

    def _repr_markdown_(self) -> str:
        rows = zip(self._letters(), self.options, strict=True)
        listed = "\n".join(f"- **{letter}** {option}" for letter, option in rows)
        return f"**{self.title}**\n\n{self.prompt}\n\n{listed}\n\n```python\n{self.starter}\n```"
