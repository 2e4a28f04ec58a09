"""A letter means one thing in the whole book: every letter of a formula stands in the notation."""

from __future__ import annotations

import re

import pytest
from pages import BOOK

NOTATION = (BOOK / "notation.md").read_text("utf-8")
PAGES = sorted([*BOOK.glob("part*/*.md"), BOOK / "formulas.md", BOOK / "notation.md"])
# what stands upright in a formula is a word and no letter
UPRIGHT = r"\\(?:text|mathrm|xrightarrow)\{(?:[^{}]|\{[^{}]*\})*\}"
GREEK = "gamma|sigma|Delta|varepsilon|alpha|beta|delta|epsilon|eta|theta|lambda|mu|rho|tau|phi"


def formulas(page: str) -> list[str]:
    """Every formula of a page, between dollars or in a block of its own."""
    page = re.sub(r"```\{code-cell\}.*?\n```", "", page, flags=re.S)
    blocks = re.findall(r"```\{math\}\n(?::label:[^\n]*\n)?(.*?)```", page, re.S)
    rest = re.sub(r"```\{math\}.*?```|`[^`\n]*`", "", page, flags=re.S)
    return blocks + re.findall(r"\$([^$]+)\$", rest)


def letters(formula: str) -> set[str]:
    """The letters of a formula: Greek ones by name, sizes such as KH whole, `w` with a bar too."""
    formula = re.sub(UPRIGHT, " ", formula)
    formula = re.sub(r"\\(?:begin|end)\{\w+\}|\[-?\d+pt\]|\\\\", " ", formula)
    barred = set(re.findall(r"\\bar\s*(\w)", formula))
    greek = set(re.findall(rf"\\({GREEK})\b", formula))
    plain = re.sub(r"\\bar\s*\w|\\[A-Za-z]+|\\.", " ", formula)
    return (
        {f"bar {each}" for each in barred} | greek | set(re.findall(r"KH|KW|OH|OW|[A-Za-z]", plain))
    )


def explained(section: str, *columns: int) -> list[str]:
    """The letters in these columns of the table in a section of the notation."""
    table = NOTATION.split(f"## {section}\n")[1].split("\n## ")[0]
    rows = [row.split("|") for row in table.split("\n") if row.startswith("|") and "$" in row]
    cells = [row[column] for row in rows for column in columns]
    return [letter for cell in cells for formula in formulas(cell) for letter in letters(formula)]


COUNTING, OTHERS = explained("Letters that count", 1), explained("Other letters", 1)
LISTED = {*COUNTING, *explained("Letters that count", 3), *explained("Arrays", 1), *OTHERS}


def test_letters_are_found_and_words_are_not():
    formula = (
        r"\colr{\frac{\partial L}{\partial\bar w[o]}}=\sum_{n}\text{size}\cdot KH\,\gamma\\[4pt]"
    )
    assert letters(formula) == {"L", "bar w", "o", "n", "KH", "gamma"}
    assert formulas("a `$x$` $y$ b\n```{math}\n:label: q\nz\n```\n") == ["z\n", "y"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_letter_of_a_page_is_in_the_notation(page):
    used = {letter for formula in formulas(page.read_text("utf-8")) for letter in letters(formula)}
    assert used <= LISTED, f"{used - LISTED}: give it a row in book/notation.md, if it is free"


def test_no_letter_has_two_rows():
    # U and L occur in their own row twice, in two shapes; n, c and the like name their axes
    assert len(COUNTING) == len(set(COUNTING))
    first = [cell.strip() for cell in re.findall(r"^\|([^|]*\$[^|]*)\|", NOTATION, re.M)]
    assert len(first) == len(set(first)), first
    assert not set(OTHERS) & set(COUNTING)
