"""A hand that never leaves the keyboard: the focus is nowhere lost, and what changes is said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from convgrad import example
from convgrad.widgets import (
    BreakTheGradient,
    ContributionPlayer,
    GeometryExplorer,
    GradientViews,
    GroupBlocks,
    SlidingWindow,
    UnfoldMatrix,
    save_html,
)

pytestmark = pytest.mark.browser


class Typed:
    """A widget alone in a page, played by keys."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator("section.cg")
        self.live = self.root.locator(".cg-hidden[aria-live=polite]")
        self.root.get_by_role("button", name="copy as PyTorch code").wait_for()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def grid(self, name: str) -> Locator:
        return self.root.get_by_role("grid", name=re.compile(name)).filter(visible=True).first

    def at(self, name: str, row: int, col: int) -> Locator:
        return self.grid(name).locator(f'[data-row="{row}"][data-col="{col}"]')

    def turn(self, label: str, value: int) -> None:
        """A knob, by its field alone."""
        knobs = self.root.locator("details.cg-knobs > summary")
        if knobs.count() and knobs.locator("..").get_attribute("open") is None:
            knobs.focus()
            self.press("Enter")
        self.root.get_by_label(label, exact=True).filter(visible=True).focus()
        self.press("Control+a")
        self.page.keyboard.type(str(value))
        self.press("Tab")

    def holds_the_focus(self) -> bool:
        return self.root.evaluate("(root) => root.contains(document.activeElement)")


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[[Any], Typed]]:
    pages: list[Page] = []

    def show(widget: Any) -> Typed:
        path = tmp_path / "page.html"
        save_html(widget, path)
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        pages.append(page)
        page.goto(path.as_uri())
        return Typed(page)

    yield show
    for page in pages:
        page.close()


# ---- the focus stays -------------------------------------------------------------------------

IN_A_GRID = {
    "SlidingWindow": (lambda: SlidingWindow(example("B")), "^x:"),
    "ContributionPlayer": (lambda: ContributionPlayer(example("B")), "^x, "),
    "GradientViews": (lambda: GradientViews(example("B"), view="convolution"), r"^x\["),
    "UnfoldMatrix": (lambda: UnfoldMatrix(example("B")), "^columns, "),
    "GeometryExplorer": (lambda: GeometryExplorer(H=6, W=7, KH=3, KW=3), "^x, "),
}


@pytest.mark.parametrize("kind", IN_A_GRID)
def test_a_knob_taken_back_leaves_the_focus_in_the_grid(opened, kind):
    make, name = IN_A_GRID[kind]
    widget = opened(make())
    width = int(widget.root.get_by_label("width W", exact=True).first.input_value())
    widget.turn("width W", width + 1)
    widget.at(name, 1, 0).focus()
    widget.press("End")
    last = int(widget.page.evaluate("() => document.activeElement.dataset.col"))
    widget.press("Control+z")
    expect(widget.root.locator(".cg-tools-said")).to_have_text("taken back")
    expect(widget.root.get_by_label("width W", exact=True).first).to_have_value(f"{width}")
    at = widget.page.evaluate("() => ({ ...document.activeElement.dataset })")
    assert (at.get("row"), int(at.get("col", -1))) in {("1", last), ("1", last - 1)} or (
        kind == "UnfoldMatrix" and at.get("row") == "1"
    )
    widget.press("ArrowLeft")
    assert widget.holds_the_focus()


def test_a_map_that_goes_away_hands_the_focus_on(opened):
    blocks = opened(GroupBlocks(example("D"), step=None))
    tile = blocks.root.get_by_role("option", name=re.compile("map of grad_weight")).first
    stage = blocks.root.get_by_role("group", name=re.compile("^maps; "))
    tile.focus()
    blocks.press("Home")
    expect(tile).to_have_count(0)
    expect(stage).to_be_focused()
    blocks.press("ArrowRight")
    expect(blocks.root.locator("output")).to_have_text("1 / 12")
    # one that comes to lie under the others
    blocks.press("End", "ArrowLeft", "ArrowLeft", "ArrowLeft")
    blocks.root.locator('[data-kind="result"][data-index="0,1,0"]').focus()
    blocks.press("Space")
    expect(stage).to_be_focused()


def test_the_way_back_from_an_impossible_wish_keeps_the_focus(opened):
    for widget in (opened(SlidingWindow(example("B"))), opened(GeometryExplorer(example("B")))):
        widget.turn("height KH", 9)
        back = widget.root.get_by_role("button", name="keep what is shown").filter(visible=True)
        back.focus()
        widget.press("Enter")
        expect(back).to_have_count(0)
        assert widget.page.evaluate("() => document.activeElement.matches('input[type=number]')")


# ---- everything within reach -----------------------------------------------------------------


def test_the_border_of_the_sliding_window_is_reached(opened):
    window = opened(SlidingWindow(*example("B").arrays()[:2], padding=1))
    window.at("^x:", 0, 0).focus()
    window.press("ArrowUp")
    expect(window.at("^x:", -1, 0)).to_be_focused()
    expect(window.root.locator(".cg-said")).to_contain_text("zero padding, is read")
    window.press("ArrowLeft", "ArrowLeft", "ArrowLeft")
    expect(window.at("^x:", -1, -1)).to_be_focused()
    step = window.root.locator("output.cg-count").inner_text()
    window.press("ArrowUp", "ArrowRight", "ArrowDown")
    expect(window.at("^x:", 0, 0)).to_be_focused()
    assert window.root.locator("output.cg-count").inner_text() == step, (
        "the same keys step elsewhere"
    )


def test_the_border_of_a_picture_is_reached(opened):
    window = opened(SlidingWindow.photograph("blur"))
    picture = window.root.get_by_role("slider", name=re.compile("^x"))
    picture.focus()
    window.press("Home")
    expect(picture).to_have_attribute("aria-valuetext", re.compile("column -1|column −1"))
    expect(window.root.locator(".cg-said")).to_contain_text("a copy of x[0,0,")
    window.press("End")
    expect(window.root.locator(".cg-said")).to_contain_text(",40], a copy of x[0,0,")


def test_the_numbers_of_any_map_are_edited_without_a_mouse(opened):
    blocks = opened(GroupBlocks(example("D")))
    tiles = blocks.root.get_by_role("option", name=re.compile("map of x"))
    tiles.first.focus()
    blocks.press("ArrowRight", "ArrowDown", "Enter")
    expect(blocks.at(r"^x\[1,1\]", 0, 0)).to_be_focused()
    blocks.press("Enter")
    blocks.page.keyboard.type("42")
    blocks.press("Enter")
    expect(blocks.at(r"^x\[1,1\]", 0, 0)).to_have_text("42")
    blocks.press("Escape")
    expect(blocks.root.locator('[data-kind="x"][data-index="1,1"]')).to_be_focused()


def test_tables_are_moved_by_keys_and_the_widget_stands_still(opened):
    for widget in (
        opened(UnfoldMatrix(example("D"), step=3)),
        opened(BreakTheGradient(example("D"))),
    ):
        before = widget.root.locator(".cg-stage").inner_text()
        widget.root.locator("details.cg-as-tables > summary").focus()
        widget.press("Enter", "Tab")
        box = widget.root.get_by_role("group", name="what is drawn, as tables")
        expect(box).to_be_focused()
        for key in ("ArrowRight", "Space", "End", "Home", "ArrowLeft"):
            widget.press(key)
        assert widget.root.locator(".cg-stage").inner_text() == before


# ---- what changes is said --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "name", "words"),
    [
        (lambda: SlidingWindow(example("B")), "^x:", "x[0,0,1,1] = 42 is read 4 times"),
        (lambda: UnfoldMatrix(example("B")), "^x, ", "x[0,0,1,1] = 42 is copied 4 times"),
        (lambda: GradientViews(example("B"), view="convolution"), r"^x\[", "x[0,0,1,1] = 42"),
    ],
    ids=["SlidingWindow", "UnfoldMatrix", "GradientViews"],
)
def test_a_number_that_was_typed_is_said_not_the_one_before(opened, make, name, words):
    widget = opened(make())
    widget.at(name, 1, 1).focus()
    widget.press("Enter")
    widget.page.keyboard.type("42")
    widget.press("Enter")
    expect(widget.live).to_contain_text(words)
    expect(widget.at(name, 1, 1)).to_be_focused()


def test_another_example_or_view_is_said(opened):
    views = opened(GradientViews(example("D"), view="kernels"))
    views.root.get_by_role("radio", name="kernel by kernel").focus()
    views.press("ArrowRight")
    expect(views.live).to_contain_text("kernel 0’s share of grad_input[0,0,2,2] collects")
    explorer = opened(GeometryExplorer(H=6, W=7, KH=3, KW=3, stride=2))
    explorer.root.get_by_role("button", name=re.compile("^one row: ")).focus()
    explorer.press("Enter")
    expect(explorer.live).to_contain_text("y has 4 cells. Windows read")


def test_a_mistake_is_not_read_again_for_every_cell(opened):
    widget = opened(BreakTheGradient(example("B")))
    sentence = widget.root.locator(".cg-caption[aria-live]")
    expect(sentence).not_to_be_empty()
    widget.page.evaluate(
        """() => {
          window.heard = 0;
          new MutationObserver((all) => (window.heard += all.length)).observe(
            document.querySelector(".cg-caption[aria-live]"), { childList: true, subtree: true });
        }"""
    )
    widget.at("^broken", 0, 0).focus()
    widget.press("Enter", "ArrowRight", "Enter")
    expect(widget.root.locator(".cg-spelled")).to_contain_text("[0,0,0,1]: right")
    assert widget.page.evaluate("() => window.heard") == 0


def test_the_clock_does_not_talk(opened):
    for widget in (opened(ContributionPlayer(example("B"))), opened(SlidingWindow.photograph())):
        for output in widget.root.locator("output").all():
            expect(output).to_have_attribute("aria-live", "off")
