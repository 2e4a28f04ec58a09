"""Exercises on paper: a sheet to print, and its key.

Every number on a sheet is drawn from its seed, every answer is computed by the package
(:mod:`convgrad.loops`), and the usual mistakes beside it are made by the mutants of
:mod:`convgrad.mutants`.  The command ``convgrad worksheet`` writes the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..geometry import shown
from .compose import ALL, compose
from .layout import pages
from .page import key_html, sheet_html
from .parts import Question
from .topics import TOPICS, Topic

__all__ = ["LEVELS", "TOPICS", "Topic", "Worksheet", "worksheet"]

LEVELS = {
    1: "3×3 inputs, numbers from 0 to 3",
    2: "larger inputs, a stride or a border, numbers from −2 to 3",
    3: "stride, padding and dilation together, numbers from −3 to 3, no reminder",
}
_MOST = 60  # questions; more would be a book


@dataclass(frozen=True)
class Worksheet:
    """A sheet of questions and its key.  :func:`worksheet` makes one.

    Attributes
    ----------
    topic : str
        A key of :data:`TOPICS`, or "all".
    seed : int
        What its numbers were drawn from.
    level : int
        1, 2 or 3.
    questions : tuple
        What is asked: ``title``, ``text``, ``answer`` and more.

    Examples
    --------
    >>> sheet = worksheet("weight-gradient", seed=7)
    >>> sheet.name, len(sheet.questions), sheet.pages
    ('worksheet-weight-gradient-7', 4, 2)
    >>> sheet.html == worksheet("weight-gradient", seed=7).html
    True
    """

    topic: str
    seed: int
    level: int
    questions: tuple[Question, ...]

    @cached_property
    def html(self) -> str:
        """The sheet, one HTML file that needs nothing else."""
        return sheet_html(self.questions, self.title, self._reminder, self._about)

    @cached_property
    def key(self) -> str:
        """The key in a file of its own, with answers, worked sums, and what mistakes lead to."""
        return key_html(self.questions, self.title, self._about, self.command)

    @property
    def title(self) -> str:
        """The heading."""
        return "Conv2d and its gradients" if self.topic == ALL else TOPICS[self.topic].title

    @property
    def name(self) -> str:
        """How its file is called, without the ending; the key's has ``-key`` behind."""
        return f"worksheet-{self.topic}-{self.seed}"

    @property
    def pages(self) -> int:
        """How many sides of paper the sheet takes, A4 or Letter."""
        return len(pages(self.questions, self._reminder))

    @property
    def command(self) -> str:
        """What to type for the same sheet and key."""
        return (
            f"convgrad worksheet --topic {self.topic} --seed {self.seed} --level {self.level} "
            f"--count {len(self.questions)}"
        )

    @property
    def _reminder(self) -> str:
        return TOPICS[self.topic].reminder if self.topic != ALL and self.level < 3 else ""

    @property
    def _about(self) -> str:
        return (
            f"topic {self.topic} · seed {self.seed} · level {self.level} · "
            f"{len(self.questions)} questions"
        )


def worksheet(
    topic: str = "weight-gradient", seed: int = 0, level: int = 1, count: int = 4
) -> Worksheet:
    """A sheet of paper exercises with small whole numbers, and its key.

    The same arguments give the same bytes, on any machine.  A larger ``count`` adds questions and
    keeps those that were there.

    Parameters
    ----------
    topic : str, default "weight-gradient"
        A key of :data:`TOPICS`, or "all" for a mixture.
    seed : int, default 0
        Another seed, other numbers.
    level : int, default 1
        1, 2 or 3, a key of :data:`LEVELS`.
    count : int, default 4
        Questions, at most 60.

    Returns
    -------
    Worksheet

    Raises
    ------
    ValueError
        For a topic or level that does not exist, a negative seed, or another number of questions.

    Examples
    --------
    >>> sheet = worksheet("bias", seed=3, count=1)
    >>> sheet.questions[0].answer
    array([24])
    >>> sheet.command
    'convgrad worksheet --topic bias --seed 3 --level 1 --count 1'
    """
    if topic != ALL and topic not in TOPICS:
        raise ValueError(f"there is no topic {shown(topic)}: use one of {', '.join(TOPICS)}, {ALL}")
    _require("seed", seed, 0, None)
    _require("level", level, 1, 3)
    _require("count", count, 1, _MOST)
    return Worksheet(topic, seed, level, compose(topic, seed, level, count))


def _require(name: str, value: int, least: int, most: int | None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and value >= least and (most is None or value <= most):
        return
    needed = f"{least} or more" if most is None else f"from {least} to {most}"
    raise ValueError(f"{name} is {shown(value)}: needed is a whole number, {needed}")
