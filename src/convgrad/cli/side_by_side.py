"""Your answer and the right one beside each other, and what to do about the first wrong cell."""

from __future__ import annotations

import numpy as np

from ..checks import Explanation
from ..checks.explain import FOLLOW
from .words import Voice, plural

__all__ = ["followed", "tell_difference"]


def tell_difference(
    name: str, yours: np.ndarray, right: np.ndarray, explanation: Explanation, voice: Voice
) -> None:
    """Both answers, where they are small: the map that holds the first wrong cell."""
    cell = explanation.cell
    if cell is None:
        return
    where = ", ".join(map(str, cell))
    voice.say()
    voice.say(
        f"First wrong at {name}[{where}], "
        f"{explanation.wrong_cells} of {plural(right.size, 'cell')} in all:",
        indent=2,
    )
    front = cell[:-2] if right.ndim > 1 else ()
    at = ", ".join(map(str, front))
    left = _grid(yours[front], f"yours[{at}]" if at else "yours")
    beside = _grid(right[front], f"right[{at}]" if at else "right")
    if left and max(map(len, left)) + max(map(len, beside)) < 80:
        lines = zip(left, beside, strict=True)
        voice.show("\n".join(f"{a}     {b}".rstrip() for a, b in lines))
    else:
        voice.say(f"yours {yours[cell]:g}, right {right[cell]:g}", indent=4)


# Longer maps than this are not printed: nobody compares them by eye.
_ROWS = 20


def _grid(numbers: np.ndarray, title: str) -> list[str]:
    """A title and the rows under it, all of one width; nothing where they are too many."""
    table = np.atleast_2d(numbers)
    if len(table) > _ROWS or table.shape[1] > _ROWS:
        return []
    rows = [[f"{number + 0:g}" for number in row] for row in table]  # no −0
    width = max(len(number) for row in rows for number in row)
    lines = [title, *("  ".join(f"{number:>{width}}" for number in row) for row in rows)]
    longest = max(map(len, lines))
    return [line.ljust(longest) for line in lines]


def followed(sentence: str, command: str) -> str:
    """The sentence with the command in it, where it asks to follow products."""
    if not command or not sentence.endswith(FOLLOW):
        return sentence.removesuffix(f" {FOLLOW}")
    return f"{sentence.removesuffix('.')}: {command}"
