"""The chapters as the tests read them: their cells, alt texts and exercises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from convgrad.figures.grids import written

BOOK = Path(__file__).resolve().parents[1] / "book"
# Pages of a part that one looks things up in: they teach nothing new and ask nothing.
GALLERIES = {"conv2d_gallery"}
# The name of a chapter is that of its file, of its pictures and of its exercises.
PAGES = {path.stem: path for path in sorted(BOOK.glob("part*/*.md")) if path.stem not in GALLERIES}
CELL = re.compile(
    r"```\{code-cell\} python\n(?:---\n(?P<options>.*?)\n---\n)?(?P<code>.*?)```", re.S
)


class Checked(NamedTuple):
    """A cell that hands a function to an exercise."""

    page: str
    key: str
    code: str
    solved: bool  # whether it is the folded solution


def cells(page: str) -> list[tuple[str, str]]:
    """Options and code of every cell of a chapter."""
    found = CELL.finditer(PAGES[page].read_text("utf-8"))
    return [(match["options"] or "", match["code"]) for match in found]


def alt_text(page: str, call: str) -> str:
    """The alt text of the cell that draws ``call``, in one line."""
    (options,) = (options for options, code in cells(page) if call in code)
    words = re.search(r"alt: >-\n(.*?)(?=\n  figure:|\Z)", options, re.S)[1]
    return " ".join(words.split())


def spoken(grid: np.ndarray, between: str = ", ") -> str:
    """A grid as the alt texts say it: ``2 0 1, 1 3 0, 0 1 2``."""
    return between.join(" ".join(map(written, row)) for row in grid)


def checked(page: str) -> Iterator[Checked]:
    """Every cell of a chapter that calls ``check``."""
    for options, code in cells(page):
        key = re.search(r'exercises\.get\("([\w-]+)"\)\.check\(', code)
        if key:
            yield Checked(page, key[1], code, "hide-cell" in options)


def imports(page: str) -> dict[str, object]:
    """What the cells of a chapter import, ready to be used by one of its cells."""
    scope: dict[str, object] = {}
    for _, code in cells(page):
        for line in ast.parse(code).body:
            if isinstance(line, ast.Import | ast.ImportFrom):
                exec(compile(ast.Module([line], []), page, "exec"), scope)
    return scope
