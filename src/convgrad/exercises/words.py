"""Small pieces that several chapters' exercises share."""

from __future__ import annotations

import numpy as np

from ..examples import Example, example
from ..mutants import MUTANTS
from .redraw import is_of_the_book

__all__ = ["called", "given", "mutant_says", "numbers_of", "turned", "written_out"]


def turned(array: np.ndarray) -> np.ndarray:
    """The last two axes turned by 180°."""
    return array[..., ::-1, ::-1]


def called(drawn: Example) -> str:
    """How a question begins that is about an example, or about its sizes with other numbers."""
    name = f"Example {drawn.letter}"
    return name if is_of_the_book(drawn) else f"{name} with numbers of your own"


def given(drawn: Example, *names: str) -> str:
    """The lines of a solution that name the arrays it needs."""
    arrays = drawn.arrays()
    if is_of_the_book(drawn):
        asked = [name if name in names else "_" for name in arrays._fields]
        return f"{', '.join(asked)} = example({drawn.letter!r}).arrays()"
    return "\n".join(
        f"{name} = np.array({getattr(arrays, name).astype(int).tolist()})" for name in names
    )


def numbers_of(drawn: str | Example, *names: str) -> str:
    """The first map of an example's arrays, as a Markdown block for a prompt."""
    arrays = (example(drawn) if isinstance(drawn, str) else drawn).arrays()
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
