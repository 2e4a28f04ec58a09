"""Small pieces that several chapters' exercises share."""

from __future__ import annotations

import numpy as np

from ..examples import example
from ..mutants import MUTANTS

__all__ = ["mutant_says", "numbers_of", "turned", "written_out"]


def turned(array: np.ndarray) -> np.ndarray:
    """The last two axes turned by 180°."""
    return array[..., ::-1, ::-1]


def numbers_of(letter: str, *names: str) -> str:
    """The first map of an example's arrays, as a Markdown block for a prompt."""
    arrays = example(letter).arrays()
    return written_out(**{name: getattr(arrays, name)[0, 0] for name in names})


def written_out(**maps: np.ndarray) -> str:
    """Maps of whole numbers under their names, as a Markdown block for a prompt."""
    blocks = []
    for name, numbers in maps.items():
        rows = numbers.astype(int).tolist()
        width = max(len(str(number)) for row in rows for number in row)
        indent = " " * (len(name) + 3)
        lines = ("  ".join(str(number).rjust(width) for number in row) for row in rows)
        blocks.append(f"{name} = " + f"\n{indent}".join(lines))
    return "```text\n" + "\n\n".join(blocks) + "\n```"


def mutant_says(name: str) -> str:
    """The sentence about a mutant, addressed to somebody who made its mistake."""
    sentence = MUTANTS[name].sentence
    return f"This is the answer of a known mistake, one that {sentence[0].lower()}{sentence[1:]}"
