"""The book on paper: chapters of the built book, printed and joined as `make pdf` does it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page
from pypdf import PdfReader

from tools import paper, pdf
from tools.serve import SITE

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("pdf")]

NAMES = ("book/preface", "book/part2/one_product", "book/part2/weight_gradient")
LEAVES = [leaf for leaf in paper.leaves(pdf.ROOT / "_toc.yml") if leaf.name in NAMES]
MILLIMETRE = 72 / 25.4


@pytest.fixture(scope="module")
def printed(tmp_path_factory, browser):
    """Three chapters with contents in front, as a PDF that is read again."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"there is no book in {SITE}: run `make book` first", pytrace=False)
    context = browser.new_context(java_script_enabled=False)
    press = pdf.Printer(context, SITE)
    chapters = list(pdf.chapters(press, LEAVES, lambda line: None))
    entries = [(chapter.leaf, chapter.title, chapter.first) for chapter in chapters]
    front = [press.sheets(paper.contents_sheet(entries), "contents-sheet")]
    context.close()
    writer = pdf.joined(front, chapters, {"Title": "A small book"})
    file = tmp_path_factory.mktemp("pdf") / "book.pdf"
    writer.write(file)
    return PdfReader(file), chapters


def text_of(reader, first: int, count: int) -> str:
    pages = reader.pages[first : first + count]
    return " ".join(" ".join(page.extract_text().split()) for page in pages)


def test_chapters_stand_in_order_with_their_numbers(printed):
    reader, chapters = printed
    contents = text_of(reader, 0, 1)
    for chapter in chapters:
        first = reader.pages[chapter.first].extract_text()  # behind one sheet of contents
        assert " ".join(chapter.title.split()) in " ".join(first.split())
        assert re.search(rf"{re.escape(chapter.title)}\W*{chapter.first}\b", contents)
        assert re.search(rf"(?m)^{chapter.first}$", first), "the number at the foot"
    assert list(reader.page_labels[:2]) == ["i", "1"]
    assert reader.metadata.title == "A small book"


def test_a_chapter_is_whole(printed):
    """Its words to the last section, its numbers, the picture for the widget; nothing to click."""
    reader, chapters = printed
    chapter = chapters[-1]
    text = text_of(reader, chapter.first, len(chapter.sheets.pages))
    for words in (
        "After this chapter you can",
        "grad_weight[0,0,0,0] = x[0,0,0,0]·g[0,0,0,0]",  # stands for the player
        "Further reading",
        "A remainder is smaller than what one divides by",  # a folded solution
        "taps[:, :, i, j] = np.einsum",  # a folded cell
    ):
        assert words in text, words
    for words in ("Download as notebook", "Search the book", "Skip to main", "Show the solution"):
        assert words not in text, words


def test_nothing_reaches_over_the_margin(printed):
    """Where each piece of text begins and, by its size, where it ends."""
    reader, _ = printed
    right = float(reader.pages[0].mediabox.width) - 15 * MILLIMETRE
    seen = 0
    for page in reader.pages:

        def look(text, cm, tm, font, size, page=page):
            nonlocal seen
            if not text.strip():
                return
            seen += 1
            x = tm[4] * cm[0] + cm[4]
            assert 15 * MILLIMETRE < x < right, text

        page.extract_text(visitor_text=look)
    assert seen > 1000


def test_links_lead_to_their_places(printed):
    reader, chapters = printed
    inside, outside = [], []
    for number, page in enumerate(reader.pages):
        for reference in page.get("/Annots", []):
            link = reference.get_object()
            if "/Dest" in link:
                inside.append((number, reader.get_page_number(link["/Dest"][0].get_object())))
            else:
                outside.append(link["/A"]["/URI"])
    assert not [url for url in outside if url.startswith(paper.ORIGIN)]
    # from the contents to each chapter
    assert [goal for page, goal in inside if page == 0] == [c.first for c in chapters]
    # and from the last chapter to a formula within the one before it
    last, before = chapters[-1], chapters[-2]
    within = range(before.first, last.first)
    goals = {goal for page, goal in inside if page >= last.first}
    assert goals & set(within) - {before.first}
    assert goals - set(within), "links within the chapter"


def marks(outline: list, depth: int = 0) -> list[tuple[int, str]]:
    """Depth and title of every bookmark; pypdf puts those below one into a list behind it."""
    found: list[tuple[int, str]] = []
    for each in outline:
        found += marks(each, depth + 1) if isinstance(each, list) else [(depth, each.title)]
    return found


def test_bookmarks_are_parts_chapters_and_their_sections(printed):
    reader, chapters = printed
    found = marks(reader.outline)
    preface, *others = [chapter.title for chapter in chapters]
    assert (0, preface) in found and (1, "For whom") in found
    chapter = next(depth for depth, title in found if title == others[-1])
    assert (chapter + 1, "Is anything turned?") in found
    parts = [leaf.part for leaf in LEAVES if leaf.part]
    assert [title for depth, title in found if not depth] == [preface, *parts]


def overflow(view: Page) -> list[str]:
    return view.evaluate(
        """() => [...document.querySelectorAll(".bd-article *")]
          .filter((each) => each.checkVisibility() && !each.closest("svg, .katex-mathml"))
          .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
          .map((each) => each.outerHTML.slice(0, 120))"""
    )


@pytest.mark.parametrize("page", ["part1/sliding_window", "part3/im2col", "part6/implicit_gemm"])
def test_on_a_sheet_nothing_is_cut_at_the_edge(page, visit):
    """A reader's own print: on A4 there are about 640 pixels for the text, and dark is light."""
    view = visit(width=640, dark=True, javascript=False).goto(f"book/{page}.html", settle=False)
    view.emulate_media(media="print", color_scheme="dark")
    assert overflow(view) == []
    ground = "() => getComputedStyle(document.body).color"
    assert sum(map(int, re.findall(r"\d+", view.evaluate(ground))[:3])) < 200, "ink is dark"
    assert view.locator(".cg-copies").is_hidden() and view.locator("h1:visible").count() == 1
