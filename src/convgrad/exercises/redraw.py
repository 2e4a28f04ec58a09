"""Numbers of one's own: the same question, drawn anew for a learner.

A question that can be drawn is written as a function of its numbers, whose defaults are those of
the book::

    @redrawn(stride=(2, 4), taps=(3, 5))
    def _reach(stride: int = 2, taps: int = 3) -> Number:
        return Number(prompt=f"stride {stride}, {taps} taps …", …)

and from then on ``_reach`` is the exercise with the book's numbers, which knows how to draw
others.  A draw decides by :class:`convgrad.dice.Dice`, so that the same seed gives the
same question on every machine and with every version of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..dice import Dice
from ..examples import EXAMPLES, Arrays, Example, example
from .base import Exercise

__all__ = ["Draws", "like", "maps", "redrawn"]

Kind = TypeVar("Kind", bound=Exercise)
#: The least and the largest of a whole number, the values to choose from, or how to draw.
Draws = tuple[int, int] | Sequence[Any] | Callable[[Dice], Any]


def redrawn(
    where: Callable[..., bool] = lambda **drawn: True, **numbers: Draws
) -> Callable[[Callable[..., Kind]], Kind]:
    """Make the exercise of a function of its numbers, and tell it how to draw them.

    ``where`` says which draws make a good question; the others are drawn again.
    """

    def of(build: Callable[..., Kind]) -> Kind:
        def redraw(dice: Dice) -> Kind:
            for _ in range(1000):
                drawn = {name: _drawn(draws, dice) for name, draws in numbers.items()}
                if where(**drawn):
                    return build(**drawn)
            raise AssertionError(f"{build.__name__}: a thousand draws, and none of them will do")

        return replace(build(), redraw=redraw)

    return of


def _drawn(draws: Draws, dice: Dice) -> Any:
    if callable(draws):
        return draws(dice)
    if isinstance(draws, tuple):
        return dice.between(*draws)
    return dice.one_of(draws)


def maps(*shape: int, low: int, high: int) -> Callable[[Dice], np.ndarray]:
    """A draw of an array of whole numbers."""
    return lambda dice: dice.numbers(shape, low, high).astype(np.float64)


def like(letter: str) -> Callable[[Dice], Example]:
    """A draw of a running example's sizes with other numbers, about as large as its own."""
    return lambda dice: _alike(letter, dice)


def _alike(letter: str, dice: Dice) -> Example:
    book = example(letter)
    arrays = Arrays(*(_as_large(array, dice) for array in book.arrays()))
    return replace(book, fill=lambda geometry: Arrays(*(array.copy() for array in arrays)))


def _as_large(array: np.ndarray, dice: Dice) -> np.ndarray:
    if not array.any():  # a bias that an example goes without
        return array
    low = int(array.min())
    high = max(int(array.max()), low + 3)
    return dice.numbers(array.shape, low, high).astype(np.float64)


def is_of_the_book(drawn: Example) -> bool:
    """Whether an example has the book's own numbers."""
    return EXAMPLES[drawn.letter] is drawn
