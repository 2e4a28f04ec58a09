"""What a lecturer opens: the links of the sessions lead to their pictures, large and alone."""

from __future__ import annotations

import html
import re

import pytest
from contents import ROOT
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

COURSE = (ROOT / "book" / "teachers" / "course.md").read_text("utf-8")
LINKS = [html.unescape(link) for link in re.findall(r'href="\.\./(.*?projector#.*?)"', COURSE)]
# what stands around an article, and text within it
AROUND = ".bd-sidebar-primary, .bd-sidebar-secondary, .bd-header-article, .prev-next-footer"
PROSE = ".bd-article section > p"


def test_there_are_links_to_try():
    assert len(LINKS) >= 6


def test_each_link_opens_its_picture_in_its_state(visit):
    tab = visit(width=1280, height=800)
    for link in LINKS:
        tab.page.goto("about:blank")
        tab.goto(f"book/{link}", settle=False)
        (name,) = set(re.findall(r"&(w\d+)\.", link))
        picture = tab.page.locator(f'.cg-widget[data-model="{name}"]')
        expect(picture).to_have_class(re.compile("cg-mounted"))
        # "could not be followed": press "copy link" there and write the new one into the page
        assert picture.locator(":scope > .cg-note").all_inner_texts() == [], link
        expect(picture).to_be_in_viewport()
    tab.assert_clean()


@pytest.mark.parametrize(
    ("page", "width", "height"),
    [("book/gallery.html", 1280, 720), ("book/part2/weight_gradient.html", 1920, 1080)],
)
def test_the_projector_shows_what_can_be_played_with_and_nothing_else(visit, page, width, height):
    tab = visit(width=width, height=height)
    for address, shown in ((page, True), (f"{page}?projector", False)):
        tab.goto(address, settle=False)
        for part in (AROUND, PROSE):
            seen = [each for each in tab.page.locator(part).all() if each.is_visible()]
            assert bool(seen) == shown, (address, part)
        expect(tab.page.locator(".bd-article h1")).to_be_visible()
        expect(tab.page.locator(".cg-widget").first).to_be_visible()
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.assert_clean()


def test_on_a_large_screen_the_picture_is_larger(visit):
    def size(tab, address: str) -> float:
        tab.goto(address, settle=False)
        cell = tab.page.locator(".cg-mounted [data-row]").first
        cell.wait_for()
        return cell.bounding_box()["height"]

    tab = visit(width=1920, height=1080)
    plain = size(tab, "book/preface.html")
    assert size(tab, "book/preface.html?projector") == pytest.approx(1.5 * plain, rel=0.1)


def test_a_click_meets_its_cell_when_the_picture_is_larger(visit):
    tab = visit(width=1920, height=1080)
    page = tab.goto("book/preface.html?projector", settle=False)
    player = page.get_by_role("region", name="Contribution player").first
    grid = player.get_by_role("grid", name=re.compile("^x[,:]"))
    cell = grid.locator('[data-row="3"][data-col="4"]')
    cell.click()
    field = grid.get_by_role("textbox")
    box, inner = cell.bounding_box(), field.bounding_box()
    assert abs(box["x"] - inner["x"]) < 6 and abs(box["y"] - inner["y"]) < 6
    field.fill("7")
    field.press("Enter")
    expect(cell).to_have_text("7")
    tab.assert_clean()
