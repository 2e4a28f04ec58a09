"""Random choices that are the same on every machine and in every version of Python and NumPy.

A teacher who kept the seed wants the same page years later.  NumPy may change the numbers that a
seed gives, and Python may change ``randrange``; what Python promises to keep is ``random()`` after
a seed.  So every choice is made from that alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

__all__ = ["Dice"]

T = TypeVar("T")


class Dice:
    """Choices that the given words decide.

    >>> Dice("weight-gradient", 7).between(1, 100) == Dice("weight-gradient", 7).between(1, 100)
    True
    """

    def __init__(self, *words: object) -> None:
        # a text, not a number: Python makes the seed from it by SHA-512
        self._random = random.Random("/".join(map(str, words))).random

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.between(0, len(choices) - 1)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        rest = list(items)
        return [rest.pop(self.between(0, len(rest) - 1)) for _ in items]

    def numbers(self, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
        """Whole numbers, int64, from low to high: few zeros, and not all alike."""
        size = int(np.prod(shape))
        while True:
            drawn = np.array([self.between(low, high) for _ in range(size)], np.int64)
            alike = size > 2 and len(set(drawn.tolist())) < 3
            if not alike and (drawn == 0).sum() <= size // 4:
                return drawn.reshape(shape)
