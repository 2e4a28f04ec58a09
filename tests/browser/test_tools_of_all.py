"""The tools in each widget, on the gallery's page: links, undo, PyTorch code, knobs."""

from __future__ import annotations

import re

import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

PAGE = "book/gallery.html"
TOOLS = ("undo", "redo", "copy link", "copy as PyTorch code")
WIDGETS = {
    "GeometryExplorer": ".cg-explorer",
    "UnfoldMatrix": ".cg-unfold",
    "GroupBlocks": ".cg-groups",
    "ShardSum": ".cg-shards",
    "SlidingWindow": ".cg-sliding",
    "ThreadGrid": ".cg-threads",
}


class Shown:
    """A widget of the gallery, its tools there."""

    def __init__(self, page: Page, kind: str) -> None:
        self.page = page
        self.root = page.locator(WIDGETS[kind]).first
        # a widget is fetched when it comes near
        page.locator(".cg-widget").filter(has=self.root).or_(self.root).first.wait_for()
        self.root.scroll_into_view_if_needed()
        expect(self.button("copy link")).to_be_visible()

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def knob(self, label: str) -> Locator:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.count() and knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        return self.root.get_by_label(label, exact=True).filter(visible=True)

    def turn(self, label: str, value: int) -> None:
        self.knob(label).fill(str(value))
        self.knob(label).press("Tab")

    def seen(self) -> list[str]:
        """Grids, maps and sentences."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
        return self.root.locator(
            ".cg-stage, .cg-bench, .cg-spelled, .cg-said, .cg-sizes"
        ).all_inner_texts()

    def copied(self, name: str) -> str:
        self.button(name).click()
        expect(self.root.locator(".cg-tools-said")).to_contain_text("copied")
        return self.page.evaluate("() => navigator.clipboard.readText()")


@pytest.fixture
def tab(visit):
    tab = visit()
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return tab


@pytest.fixture
def gallery(tab) -> Page:
    return tab.goto(PAGE)


@pytest.mark.parametrize("kind", WIDGETS)
def test_a_knob_is_taken_back_and_travels_in_a_link(tab, gallery, visit, kind):
    shown = Shown(gallery, kind)
    before = shown.seen()
    height = int(shown.knob("height H").input_value())
    shown.turn("height H", height + 1)
    after = shown.seen()
    assert after != before
    link = shown.copied("copy link")
    assert "of=" in link

    other = Shown(visit().goto(link, settle=False), kind)
    assert other.seen() == after
    expect(other.knob("height H")).to_have_value(str(height + 1))

    shown.root.locator(".cg-stage").click(position={"x": 2, "y": 2})
    shown.button("undo").click()
    assert shown.seen() == before
    expect(shown.knob("height H")).to_have_value(str(height))
    shown.button("redo").focus()
    gallery.keyboard.press("Control+y")
    assert shown.seen() == after
    tab.assert_clean()


def test_a_complete_matrix_stays_complete_when_a_knob_is_taken_back(tab, gallery):
    shown = Shown(gallery, "UnfoldMatrix")
    expect(shown.root.locator("output")).to_have_text("9 / 9")
    shown.turn("stride", 2)
    expect(shown.root.locator("output")).to_have_text("4 / 4")
    shown.button("undo").click()
    expect(shown.root.locator("output")).to_have_text("9 / 9")
    # one that is not complete keeps its step, as far as there are so many
    shown.root.get_by_role("slider", name="step").fill("6")
    shown.button("redo").click()
    expect(shown.root.locator("output")).to_have_text("4 / 4")
    gallery.wait_for_url(re.compile(r"\.stride=2$|\.stride=2&"))
    tab.assert_clean()


def test_stage_and_step_of_the_matrices_travel(gallery, visit):
    shown = Shown(gallery, "UnfoldMatrix")
    shown.root.get_by_role("radio", name="grad_weight: g·columnsᵀ").check()
    shown.root.get_by_role("slider", name="step").fill("5")
    other = Shown(visit().goto(shown.copied("copy link"), settle=False), "UnfoldMatrix")
    expect(other.root.locator("output")).to_have_text("5 / 9")
    assert other.seen() == shown.seen()


def test_ticks_and_step_of_the_blocks_travel(gallery, visit):
    shown = Shown(gallery, "GroupBlocks")
    shown.root.get_by_role("checkbox", name="with the transpose").uncheck()
    shown.root.get_by_role("checkbox", name=re.compile("^leave the sum out")).check()
    shown.root.get_by_role("slider", name="step").fill("4")
    link = shown.copied("copy link")
    other = Shown(visit().goto(link, settle=False), "GroupBlocks")
    expect(other.root.get_by_role("checkbox", name="with the transpose")).not_to_be_checked()
    expect(other.root.get_by_role("checkbox", name=re.compile("^leave the"))).to_be_checked()
    assert other.seen() == shown.seen()
    lines = shown.root.locator(".cg-code").inner_text().strip()
    assert lines in shown.copied("copy as PyTorch code")


def test_what_the_explorer_looks_at_travels(gallery, visit):
    shown = Shown(gallery, "GeometryExplorer")
    shown.root.get_by_role("button", name=re.compile("^checkerboard: ")).click()
    shown.root.locator("[data-row='2'][data-col='2']").first.click()
    other = Shown(visit().goto(shown.copied("copy link"), settle=False), "GeometryExplorer")
    assert other.seen() == shown.seen()
    assert "nn.ConvTranspose2d(" in shown.copied("copy as PyTorch code")
    shown.button("undo").click()  # one edit: sizes and direction came together
    expect(shown.button("undo")).to_have_attribute("aria-disabled", "true")
    assert "nn.Conv2d(" in shown.copied("copy as PyTorch code")


TOO_MUCH = {
    "a border that cannot be drawn": ("padding=9", "the explorer draws up to 400"),
    "several channels": ("C=2", "one image, one channel and one kernel"),
}


@pytest.mark.parametrize(("text", "words"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_the_explorer_refuses_a_link_to_what_it_cannot_draw(tab, gallery, text, words):
    shown = Shown(gallery, "GeometryExplorer")
    before = shown.seen()
    shown.turn("height H", 7)
    link = shown.copied("copy link")
    assert ".H=7" in link
    name = re.search(r"(\w+)\.H=7", link)[1]
    gallery.goto("about:blank")
    broken = Shown(tab.goto(f"{PAGE}#{link.partition('#')[2]}&{name}.{text}"), "GeometryExplorer")
    expect(gallery.locator(".cg-widget > .cg-note").first).to_contain_text(words)
    assert broken.seen() == before


@pytest.mark.parametrize("kind", WIDGETS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_tools_fit_a_phone(visit, kind, dark):
    page = visit(width=320, height=700, touch=True, dark=dark).goto(PAGE)
    shown = Shown(page, kind)
    for name in TOOLS:
        box = shown.button(name).bounding_box()
        assert box["height"] >= 43.5, name
        assert box["x"] >= 0 and box["x"] + box["width"] <= 320, name
    assert len({round(shown.button(name).bounding_box()["y"]) for name in TOOLS}) == 1
    assert not page.evaluate(FAINT_TEXT)["faint"]
