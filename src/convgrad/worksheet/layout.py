"""How many millimetres a question needs, and so which questions share a sheet of paper.

Everything on the printed page has a fixed size in millimetres, so the pages can be counted
without a browser.  A page is as wide as A4's and as high as Letter's, less the margins: it fits
both.  The sizes stand here and go into the style sheet from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .parts import Ask, Choices, Line, Listing, Question, Table

__all__ = ["SIZES", "height", "pages", "width"]

SIZES = {
    "page-width": 182.0,  # A4's 210 less two margins of 14
    "page-height": 252.0,  # Letter's 279.4 less 14 above and 12 below, and a little
    "cell": 8.5,
    "index": 5.5,  # the row and the column of indices
    "caption": 5.0,
    "line": 5.2,  # of text
    "answer": 10.0,  # of an answer on a line
    "gap": 7.0,  # between tables
    "heading": 8.0,  # of a question
    "head": 29.0,  # of the first page, without its reminder
    "running": 18.0,  # of the others; either with the foot
    "rule": 5.0,  # between questions
}
_LETTERS = 92  # in a line of text, at least
_CHAR = 2.0  # width of a heading's letter


def width(table: Table) -> float:
    """Millimetres that a table takes beside others, with its heading."""
    rows = max(len(name) for name in table.row_names) * _CHAR + 2.5
    size: float = max(SIZES["index"], rows) + SIZES["cell"] * len(table.column_names)
    heading = len(table.label) + (11 if table.blank is not None else 0)  # " to fill in"
    return max(size, SIZES["index"] + heading * _CHAR)


def _tall(table: Table) -> float:
    return SIZES["caption"] + SIZES["index"] + SIZES["cell"] * len(table.row_names)


def _of_tables(tables: Sequence[Table]) -> float:
    """Tables side by side, as many as fit, in the order given."""
    total, taken, tallest = 0.0, 0.0, 0.0
    for table in tables:
        if taken and taken + width(table) > SIZES["page-width"]:
            total, taken, tallest = total + tallest + 3, 0.0, 0.0
        taken += width(table) + SIZES["gap"]
        tallest = max(tallest, _tall(table))
    return total + tallest + 3 if tables else 0.0


def _of_text(text: str, letters: int = _LETTERS) -> float:
    return SIZES["line"] * math.ceil(len(text.replace("`", "")) / letters)


def _of_ask(ask: Ask) -> float:
    if isinstance(ask, Listing):
        return 6 + SIZES["answer"] * math.ceil(ask.lines / 2)
    if isinstance(ask, Choices):
        return 8 + sum(_of_text(option, 84) + 1 for option in ask.options)
    return 0.0


def height(question: Question) -> float:
    """Millimetres at least, with the least room to reckon in."""
    tables = [*question.given, *(ask for ask in question.asks if isinstance(ask, Table))]
    lines = sum(isinstance(ask, Line) for ask in question.asks)
    return (
        SIZES["heading"]
        + sum(_of_text(text) + 1 for text in question.text)
        + _of_tables(tables)
        + sum(_of_ask(ask) for ask in question.asks)
        + SIZES["answer"] * math.ceil(lines / 3)
        + question.room
        + SIZES["rule"]
    )


def pages(questions: Sequence[Question], reminder: str = "") -> list[list[Question]]:
    """The questions in their order, on as few pages as can be, and these filled evenly."""
    needs = [height(question) for question in questions]
    head = SIZES["head"] + (1.5 + _of_text(f"Remember {reminder}") if reminder else 0)
    best: list[tuple[int, float, int]] = [(0, 0.0, 0)]  # pages, unevenness, where the last begins
    for end in range(1, len(needs) + 1):
        ways = []
        for start in range(end - 1, -1, -1):
            left = SIZES["page-height"] - (SIZES["running"] if start else head)
            left -= sum(needs[start:end])
            if left < 0 and start < end - 1:
                break
            ways.append((best[start][0] + 1, best[start][1] + left**2, start))
        best.append(min(ways))
    found, end = [], len(needs)
    while end:
        start = best[end][2]
        found.append(list(questions[start:end]))
        end = start
    return found[::-1]
