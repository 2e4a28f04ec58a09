"""Exercises that are read off a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ..extras import needs
from .base import Exercise, Grid, Number

if TYPE_CHECKING:
    from ..figures.style import BookFigure

__all__ = ["Picture", "PictureGrid"]


@dataclass(frozen=True)
class _Drawn(Exercise):
    """A question about a picture.

    Attributes
    ----------
    draw : callable
        Makes the figure.
    alt : str
        What there is to see, for those who do not see it: all that the question needs, and not
        its answer.
    """

    kind: ClassVar[str] = "picture"

    draw: Callable[[], BookFigure] = field(kw_only=True, repr=False)
    alt: str = field(kw_only=True, repr=False)

    @property
    def asked(self) -> str:
        """All that is asked: the prompt, and what the picture says."""
        return f"{self.prompt}\n\n{self.alt}"

    def figure(self) -> BookFigure:
        """The picture, a matplotlib figure."""
        with needs("figures", "this picture"):
            return self.draw()


@dataclass(frozen=True)
class Picture(_Drawn, Number):
    """The answer is a number that is read off a picture.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("geometry-picture").check(...).untouched
    True
    """

    kind: ClassVar[str] = "picture"


@dataclass(frozen=True)
class PictureGrid(_Drawn, Grid):
    """The answer is a list of numbers that are read off a picture.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("weight-picture").check(...).untouched
    True
    """

    kind: ClassVar[str] = "picture"
