"""The book as one PDF: ``python -m tools.pdf``, printed from the built site by Chromium.

Every page of the table of contents is printed by itself, in light colours, with the pictures that
stand for the widgets; then the sheets are joined behind a title and a table of contents.  A link
within the book leads to its place in the PDF, and the bookmarks are those of the chapters.
"""

from __future__ import annotations

import argparse
import io
import mimetypes
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from playwright.sync_api import BrowserContext, Route, sync_playwright
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.constants import PageLabelStyle
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NullObject,
    TextStringObject,
)

from . import book, paper
from .chromium import ChromiumMissing, find_chromium

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "dist" / "backward-pass-of-conv2d.pdf"
WAIT = 60_000  # milliseconds, for the longest chapter on a busy machine


@dataclass
class Chapter:
    """A page of the book on its sheets."""

    leaf: paper.Leaf
    title: str
    first: int  # the number on its first sheet
    sheets: PdfReader

    def number(self, page: Any) -> int:
        """Which of the sheets this is, from 0."""
        found = self.sheets.get_page_number(page.get_object())
        assert found is not None  # it is one of them
        return found


# ---- printing --------------------------------------------------------------------------------


class Printer:
    """A Chromium that gets every file of the site by hand, so nothing is served or fetched."""

    def __init__(self, context: BrowserContext, site: Path) -> None:
        self.context, self.site = context, site
        self.texts: dict[str, str] = {}  # what a page is printed from, by its address
        context.route("**/*", self._hand_over)

    def _hand_over(self, route: Route) -> None:
        url = route.request.url
        file = self.site / unquote(urlsplit(url).path).lstrip("/")
        if url in self.texts:
            route.fulfill(body=self.texts[url], content_type="text/html; charset=utf-8")
        elif url.startswith(paper.ORIGIN) and file.is_file():
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            route.fulfill(body=file.read_bytes(), content_type=kind)
        else:
            route.abort()

    def sheets(self, text: str, name: str) -> PdfReader:
        """The page with this text at the address of ``name``, printed."""
        url = f"{paper.ORIGIN}{name}.html"
        self.texts[url] = text
        tab = self.context.new_page()
        try:
            tab.set_default_timeout(WAIT)
            tab.goto(url, wait_until="load")
            # an outline is made of the tags; joined() takes it over and leaves them behind
            printed = tab.pdf(
                prefer_css_page_size=True, print_background=True, outline=True, tagged=True
            )
        finally:
            tab.close()
        return PdfReader(io.BytesIO(printed))


@contextmanager
def printer(site: Path) -> Iterator[Printer]:
    """A Printer of the built ``site``.  Raises ChromiumMissing."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield Printer(browser.new_context(java_script_enabled=False), site)
        finally:
            browser.close()


def chapters(
    press: Printer, leaves: list[paper.Leaf], say: Callable[[str], None]
) -> Iterator[Chapter]:
    """Every page printed, its sheets numbered on from those before it."""
    pages = {leaf.name: (press.site / f"{leaf.name}.html").read_text("utf-8") for leaf in leaves}
    number = 1
    for leaf in leaves:
        text = pages[leaf.name]
        title = paper.title_of(text)
        places = paper.wanted_places(leaf.name, pages)
        sheets = press.sheets(paper.printable(text, title, number, places), leaf.name)
        say(f"  {title}: {len(sheets.pages)} sheets")
        yield Chapter(leaf, title, number, sheets)
        number += len(sheets.pages)


# ---- joining ---------------------------------------------------------------------------------


def joined(front: list[PdfReader], printed: list[Chapter], about: dict[str, str]) -> PdfWriter:
    """Front and chapters in one document, with bookmarks, page labels and living links."""
    writer = PdfWriter()
    for reader in front:
        for page in reader.pages:
            writer.add_page(page)
    before = len(writer.pages)
    for chapter in printed:
        for page in chapter.sheets.pages:
            writer.add_page(page)
    writer.set_page_label(0, before - 1, style=PageLabelStyle.LOWERCASE_ROMAN)
    writer.set_page_label(before, len(writer.pages) - 1, style=PageLabelStyle.DECIMAL, start=1)

    by_name = {chapter.leaf.name: chapter for chapter in printed}
    for page in writer.pages[:before]:
        _mend_links(writer, page, None, by_name, before)
    for chapter in printed:
        for number in range(len(chapter.sheets.pages)):
            page = writer.pages[before + chapter.first - 1 + number]
            _mend_links(writer, page, chapter, by_name, before)
    _add_bookmarks(writer, printed, before)
    writer.add_metadata({f"/{key}": value for key, value in about.items()})
    root = writer.root_object
    root[NameObject("/Lang")] = TextStringObject("en")
    root[NameObject("/PageMode")] = NameObject("/UseOutlines")
    shown = DictionaryObject({NameObject("/DisplayDocTitle"): BooleanObject(True)})
    root[NameObject("/ViewerPreferences")] = shown
    return writer


def _mend_links(
    writer: PdfWriter,
    page: PageObject,
    chapter: Chapter | None,
    by_name: dict[str, Chapter],
    before: int,
) -> None:
    """Links to places of the book lead there; those to what is not in the PDF are no links."""
    kept = ArrayObject()
    for reference in page.get("/Annots", []):
        link = reference.get_object()
        url = str(link.get("/A", {}).get("/URI", ""))
        if "/Dest" in link and chapter is not None:
            goal, place = chapter, str(link["/Dest"])
        elif url.startswith(paper.ORIGIN):
            address, _, fragment = url.removeprefix(paper.ORIGIN).partition("#")
            found = by_name.get(address.removesuffix(".html"))
            if found is None:
                continue
            goal, place = found, f"/{unquote(fragment)}"
        else:
            kept.append(reference)
            continue
        link.pop("/A", None)
        link[NameObject("/Dest")] = _destination(writer, goal, place, before)
        kept.append(reference)
    if "/Annots" in page:
        page[NameObject("/Annots")] = kept


def _destination(writer: PdfWriter, goal: Chapter, place: str, before: int) -> ArrayObject:
    """A place in a chapter, by its name there; its beginning where the name is not known."""
    named = goal.sheets.named_destinations.get(place)
    number, top = 0, None
    if named is not None:
        number, top = goal.number(named.page), named.top
    sheet = writer.pages[before + goal.first - 1 + number].indirect_reference
    height = NullObject() if top is None else FloatObject(top)
    assert sheet is not None  # it is in the writer
    return ArrayObject([sheet, NameObject("/XYZ"), NullObject(), height, NullObject()])


def _add_bookmarks(writer: PdfWriter, printed: list[Chapter], before: int) -> None:
    part: Any = None
    above: list[Any] = []  # the bookmark of each depth
    for chapter in printed:
        leaf, first = chapter.leaf, before + chapter.first - 1
        if leaf.part:
            part = writer.add_outline_item(title=leaf.part, page_number=first, bold=True)
        parent = above[leaf.depth - 1] if leaf.depth else part
        mark = writer.add_outline_item(title=chapter.title, page_number=first, parent=parent)
        above[leaf.depth :] = [mark]
        for title, number in _sections(chapter):
            writer.add_outline_item(title=title, page_number=first + number, parent=mark)


def _sections(chapter: Chapter) -> Iterator[tuple[str, int]]:
    """The headings of the second level, with the sheet on which each stands."""
    for entry in chapter.sheets.outline:
        for inner in entry if isinstance(entry, list) else []:
            if not isinstance(inner, list) and inner.page is not None:
                yield str(inner.title), chapter.number(inner.page)


# ---- the whole -------------------------------------------------------------------------------


def make(site: Path, result: Path, root: Path = ROOT, say: Callable[[str], None] = print) -> int:
    """Print the built ``site`` of the book in ``root`` to ``result``; how many sheets it has."""
    settings = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cover = (root / "book" / "_static" / "cover.svg").read_text("utf-8")
    with printer(site) as press:
        printed = list(chapters(press, paper.leaves(root / "_toc.yml"), say))
        entries = [(chapter.leaf, chapter.title, chapter.first) for chapter in printed]
        front = [
            press.sheets(paper.title_sheet(settings, cover, project["version"]), "title-sheet"),
            press.sheets(paper.contents_sheet(entries), "contents-sheet"),
        ]
    about = {"Title": settings["title"], "Author": settings["author"], "Creator": "make pdf"}
    writer = joined(front, printed, about)
    result.parent.mkdir(parents=True, exist_ok=True)
    writer.write(result)
    return len(writer.pages)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pdf", description=__doc__)
    parser.add_argument("--to", type=Path, default=RESULT, help="the file to write")
    options = parser.parse_args(arguments)
    try:
        site = book.build()
        count = make(site, options.to)
    except (book.BookError, ChromiumMissing) as error:
        print(f"\npdf: {error}", file=sys.stderr)
        return 1
    size = options.to.stat().st_size / 1e6
    print(f"{count} pages, {size:.1f} MB: {options.to}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
