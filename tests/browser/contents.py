"""The pages of the table of contents, what their sources promise, and how they are judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]

# A function for the browser: which text of the page is too faint, and how much was measured.
FAINT_TEXT = (Path(__file__).parent / "faint_text.js").read_text(encoding="utf-8")


class Finding(NamedTuple):
    """One rule of accessibility that axe-core found broken."""

    rule: str
    impact: str
    where: list[str]


@cache
def pages() -> tuple[str, ...]:
    """The pages in reading order, as ``"book/preface"``."""
    return tuple(_names(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))))


def _names(entry: Any) -> Iterator[str]:
    """Every "root" and "file" in the tree of the table of contents."""
    if isinstance(entry, list):
        for each in entry:
            yield from _names(each)
    elif isinstance(entry, dict):
        for key, value in entry.items():
            if key in ("root", "file"):
                yield str(value)
            else:
                yield from _names(value)


@cache
def source(page: str) -> str:
    """The Markdown of a page."""
    return (ROOT / f"{page}.md").read_text(encoding="utf-8")


_CODE = re.compile(r"^(`{3,}|:{3,})(?:\{code|\w).*?^\1\s*$", re.M | re.S)
_CELL = re.compile(r"^(`{3,}|:{3,})\{code-cell\}.*?^\1\s*$", re.M | re.S)


@cache
def cells(page: str) -> str:
    """The cells of a page that are run when it is built."""
    return "\n".join(match[0] for match in _CELL.finditer(source(page)))


def has_formulas(page: str) -> bool:
    """Whether the prose has maths in it; a dollar in a cell or a listing is none."""
    prose = _CODE.sub("", source(page))
    prose = re.sub(r"`[^`\n]*`", "", prose)
    return "$" in prose or "{math}" in source(page)


def shows(page: str, widget: str) -> bool:
    """Whether a cell of the page makes this widget."""
    return re.search(rf"\b{widget}(?:\.\w+)?\(", cells(page)) is not None


def pages_showing(widget: str) -> list[str]:
    return [page for page in pages() if shows(page, widget)]


def page_with_two(widget: str) -> str:
    """The first page that makes this widget at least twice."""
    return next(page for page in pages_showing(widget) if cells(page).count(f"{widget}(") > 1)


def tab_stops(page: Page, widget: str, most: int) -> set[str]:
    """What Tab leads to within a widget, from where the focus is; each stop must show where it is.

    Roles, or for plain elements ``"BUTTON: its words"``; at most so many presses.
    """
    stops = set()
    for _ in range(most):
        page.keyboard.press("Tab")
        name, inside, outlined = page.evaluate(
            """(widget) => {
              const at = document.activeElement;
              const style = getComputedStyle(at);
              const label = at.getAttribute("aria-label") ?? at.textContent;
              const seen = style.outlineStyle !== "none" || style.boxShadow !== "none"
                || at.matches("input[type=radio], input[type=checkbox], input[type=range]");
              return [at.getAttribute("role") ?? at.tagName + ": " + label,
                at.closest(widget) !== null, seen];
            }""",
            widget,
        )
        if not inside:
            break
        assert outlined, f"nothing shows that the focus is on {name}"
        stops.add(name)
    return stops
