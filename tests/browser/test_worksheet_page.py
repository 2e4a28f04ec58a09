"""Worksheets in Chromium: as many pages as promised, nothing cut off, no barrier, readable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Browser, Page

from convgrad.__main__ import main
from convgrad.worksheet import LEVELS, TOPICS, worksheet
from tools.chromium import find_chromium

pytestmark = pytest.mark.browser

SIZES = ["A4", "Letter"]
EVERY = [*TOPICS, "all"]
# What stands outside of the box that should hold it, or under something else.
OVERFLOW = """() => {
  const wide = [...document.querySelectorAll("p, .tables, .lines, table, ul, h1, h2")].filter(
    (each) => each.getBoundingClientRect().right > document.querySelector("main")
      .getBoundingClientRect().right + 1);
  const tall = [...document.querySelectorAll(".page")].filter(
    (each) => each.scrollHeight > each.clientHeight + 1);
  const cells = [...document.querySelectorAll(".sheet .grid td")].filter(
    (each) => each.scrollWidth > each.clientWidth + 1);
  const rooms = [...document.querySelectorAll(".question")].filter((each) =>
    each.nextElementSibling &&
    each.getBoundingClientRect().bottom > each.nextElementSibling.getBoundingClientRect().top + 1);
  return [...wide, ...tall, ...cells, ...rooms].map((each) => each.outerHTML.slice(0, 200));
}"""


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a text as a page; at the end nothing has been asked for."""
    asked: list[str] = []
    pages: list[Page] = []

    def open_text(text: str, width: int = 1000, dark: bool = False) -> Page:
        page = browser.new_page(
            viewport={"width": width, "height": 1000}, color_scheme="dark" if dark else "light"
        )
        page.on("request", lambda request: asked.append(request.url))
        page.set_content(text)
        pages.append(page)
        return page

    yield open_text
    for page in pages:
        page.close()
    assert not asked


def count(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.parametrize("topic", EVERY)
def test_it_prints_on_the_promised_pages(show, topic) -> None:
    for level in LEVELS:
        for seed in (1, 2):
            sheet = worksheet(topic, seed, level, 6)
            page = show(sheet.html)
            for size in SIZES:
                assert count(page.pdf(format=size)) == sheet.pages, (level, seed, size)
            page.emulate_media(media="print")
            assert page.evaluate(OVERFLOW) == [], (level, seed)


@pytest.mark.parametrize("topic", EVERY)
def test_the_key_prints_without_a_loss(show, topic) -> None:
    page = show(worksheet(topic, 1, 3, 6).key)
    for size in SIZES:
        assert 1 < count(page.pdf(format=size)) < 8
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 690, "height": 1000})  # what the margins leave of A4
    assert page.evaluate(OVERFLOW) == []


@pytest.mark.parametrize("topic", EVERY)
def test_there_is_no_barrier_and_nothing_faint(show, axe, topic) -> None:
    sheet = worksheet(topic, 1, 2, 3)
    for text in (sheet.html, sheet.key):
        page = show(text)
        assert not axe(page.locator(":root"))
        assert not page.evaluate(FAINT_TEXT)["faint"]


@pytest.mark.parametrize("topic", EVERY)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_on_a_phone(show, topic, dark) -> None:
    sheet = worksheet(topic, 1, 3, 3)
    for text in (sheet.html, sheet.key):
        page = show(text, width=320, dark=dark)
        room, needed = page.evaluate(
            "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
        )
        assert needed <= room
        assert not page.evaluate(FAINT_TEXT)["faint"]


def test_black_and_white_lose_nothing(show) -> None:
    """Every colour of the page is a grey."""
    sheet = worksheet("all", 1, 2, 10)
    for text in (sheet.html, sheet.key):
        style = re.search(r"<style>(.*?)</style>", text, re.S)[1] + "".join(
            re.findall(r'(?:stroke|fill)="([^"]+)"', text)
        )
        for color in re.findall(r"#([0-9a-f]{6}|[0-9a-f]{3})\b", style):
            step = len(color) // 3
            values = [color[k : k + step] for k in range(0, len(color), step)]
            assert max(int(v, 16) for v in values) - min(int(v, 16) for v in values) < 12, color


def test_the_command_prints_pdf(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CHROMIUM", str(find_chromium()))
    assert main(["worksheet", "--seed", "7", "--format", "pdf", "--out", str(tmp_path)]) == 0
    sheet = worksheet(seed=7)
    names = [f"{sheet.name}.pdf", f"{sheet.name}-key.pdf"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert count((tmp_path / names[0]).read_bytes()) == sheet.pages
    assert (tmp_path / names[1]).read_bytes().startswith(b"%PDF")
