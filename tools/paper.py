"""The sheets of the book: which pages follow each other, and what each is printed from.

Everything here is text in, text out; ``tools/pdf.py`` prints it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

STYLE = Path(__file__).with_suffix(".css")
ORIGIN = "http://book.invalid/"  # no such host can be: every file is handed over by the printer

_SCRIPT = re.compile(r"<script\b.*?</script>", re.S)
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_LINK = re.compile(r'\bhref="([^"#]+)#([^"]+)"')


@dataclass(frozen=True)
class Leaf:
    """One page of the table of contents."""

    name: str  # "book/part2/weight_gradient"
    part: str  # the part that it opens, or ""
    depth: int


def leaves(contents: Path) -> list[Leaf]:
    """The pages of ``_toc.yml`` in reading order."""
    table = yaml.safe_load(contents.read_text("utf-8"))
    found = [Leaf(table["root"], "", 0)]

    def walk(entries: list[dict[str, Any]], caption: str, depth: int) -> None:
        for number, entry in enumerate(entries):
            found.append(Leaf(entry["file"], caption if not number else "", depth))
            walk(entry.get("sections", []), "", depth + 1)

    for part in table.get("parts", [table]):
        walk(part.get("chapters", []), " ".join(part.get("caption", "").split()), 0)
    return found


def title_of(page: str) -> str:
    """What a built page calls itself, as plain text."""
    found = re.search(r"<h1>(.*?)</h1>", page, re.S)
    words = re.sub(r'<a class="headerlink".*?</a>|<[^>]+>', "", found[1] if found else "")
    return " ".join(html.unescape(words).split())


def wanted_places(name: str, pages: dict[str, str]) -> set[str]:
    """The ids on the page ``name`` that any page of the book leads to."""
    found = set()
    for other, text in pages.items():
        for address, place in _LINK.findall(text):
            if target(other, address) == name:
                found.add(html.unescape(place))
    return found


def target(name: str, address: str) -> str:
    """The page that the relative ``address`` means on the page ``name``; "" for one elsewhere."""
    if re.match(r"[a-z]+:", address) or not address.endswith(".html"):
        return ""
    parts = name.split("/")[:-1]
    for part in address.removesuffix(".html").split("/"):
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def printable(page: str, title: str, first: int, places: Iterable[str]) -> str:
    """A built page ready for paper: nothing runs, nothing is folded, its sheets count from first.

    Chromium keeps the places of those ids that the page itself leads to.  So it gets a link for
    every one of ``places``, which nobody sees.
    """
    page = _POLICY.sub("", _SCRIPT.sub("", page))
    page = re.sub(r"<details\b(?![^>]*\bopen\b)", "<details open", page)
    # what can be folded away on a screen is named by what it is
    page = re.sub(
        r'(<span class="expanded">)Hide (?:the )?(\w)', lambda m: m[1] + m[2].upper(), page
    )
    links = "".join(f'<a href="#{html.escape(place)}" hidden></a>' for place in sorted(places))
    head = f"<style>{STYLE.read_text('utf-8')}{_numbers(title, first)}</style></head>"
    page = page.replace("</head>", head, 1)
    return page.replace("</body>", f"{links}</body>", 1)


def _numbers(title: str, first: int) -> str:
    """A head with the chapter's name and a foot with the number, as rules."""
    said = json.dumps(title, ensure_ascii=False).replace("<", "\\3c ")
    font = "font: 8.5pt system-ui, sans-serif; color: #565e68"
    return (
        f"html {{ counter-reset: page {first - 1} }}"
        f"@page {{ @top-left {{ content: {said}; {font} }}"
        f"@bottom-center {{ content: counter(page); {font} }} }}"
        "@page :first { @top-left { content: none } }"
    )


def title_sheet(settings: dict[str, Any], cover: str, version: str) -> str:
    """The first sheet."""
    address = (settings.get("html") or {}).get("baseurl")
    lines = [
        f"Version {version}, {settings['copyright']}. Text under CC BY 4.0, code under MIT.",
        "Printed from the interactive book. On a screen its pictures can be played with"
        + (f": <a href='{html.escape(address)}'>{html.escape(address)}</a>." if address else "."),
    ]
    small = "".join(f'<p class="paper-small">{line}</p>' for line in lines)
    return _sheet(
        f'<div class="paper-title"><h1>{html.escape(settings["title"])}</h1>'
        f'<p class="paper-line">{html.escape(settings["author"])}</p>{cover}{small}</div>'
    )


def contents_sheet(entries: Iterable[tuple[Leaf, str, int]]) -> str:
    """The contents: leaf, title and number of the sheet for each page."""
    lines: list[str] = []
    opened = False
    for leaf, title, number in entries:
        if leaf.part or not lines:
            caption = f"<h2>{html.escape(leaf.part)}</h2>" if leaf.part else ""
            lines.append(f"{'</ol>' if opened else ''}{caption}<ol>")
            opened = True
        below = f' class="paper-below" style="--paper-depth:{leaf.depth}"' if leaf.depth else ""
        lines.append(
            f'<li{below}><a href="{ORIGIN}{leaf.name}.html"><span>{html.escape(title)}</span>'
            f'<span class="paper-number">{number}</span></a></li>'
        )
    return _sheet(f'<div class="paper-contents"><h1>Contents</h1>{"".join(lines)}</ol></div>')


def _sheet(body: str) -> str:
    sheets = "".join(
        f'<link rel="stylesheet" href="{ORIGIN}_static/{name}.css">'
        for name in ("palette", "convgrad")
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The book</title>'
        f"{sheets}<style>{STYLE.read_text('utf-8')}</style></head><body>{body}</body></html>"
    )
