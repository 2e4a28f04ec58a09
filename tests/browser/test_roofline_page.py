"""Roofline in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, example
from convgrad.roofline import CARDS, MAPS, bound
from convgrad.widgets.roofline import PRESETS
from convgrad.widgets.roofline_words import rows, sentence

pytestmark = pytest.mark.browser
WIDGET = "roofline"

PAGE = "book/gallery.html"
LAYER = example("F").geometry
MARKS = """(root) => Object.fromEntries([...root.querySelectorAll(".cg-mark")].map((mark) => {
  const at = mark.querySelector(".cg-dot").getBoundingClientRect();
  const chart = mark.ownerSVGElement.getBoundingClientRect();
  return [[...mark.classList].find((name) => name.startsWith("cg-mark-")).slice(8),
    [at.x + at.width / 2 - chart.x, at.y + at.height / 2 - chart.y]];
}))"""
SHAPES = """(root) => Object.fromEntries([...root.querySelectorAll(".cg-mark")].map((mark) =>
  [[...mark.classList].find((name) => name.startsWith("cg-mark-")).slice(8),
   [mark.querySelector(".cg-badge").firstElementChild.tagName,
    mark.querySelector(".cg-badge text").textContent]]))"""


class Roof:
    """The roofline of the page, by the names that a screen reader would say."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".cg-roofline").first
        self.said = self.root.locator(".cg-said")
        self.live = self.root.locator("[aria-live=polite]")
        self.message = self.root.get_by_role("alert").filter(visible=True)
        self.card = self.root.get_by_role("combobox", name="card")
        self.layer = self.root.get_by_role("combobox", name="layer")

    def slider(self, name: str) -> Locator:
        return self.root.get_by_role("slider", name=name, exact=True)

    def choose(self, name: str) -> None:
        radio = self.page.get_by_role("radio", name=name, exact=True)
        self.root.locator("label").filter(has=radio).click()
        expect(self.root.get_by_role("radio", name=name, exact=True)).to_be_checked()

    def figures(self) -> list[list[str]]:
        lines = self.root.locator(".cg-bounds tbody tr").all()
        return [line.locator("th, td").all_inner_texts() for line in lines]

    def marks(self) -> dict[str, list[float]]:
        """Where the points are, when they have come to rest."""
        self.page.wait_for_timeout(250)
        return self.root.evaluate(MARKS)

    def shows(self, geometry: ConvGeometry, card: str, target: str, **settings: Any) -> None:
        """Figures, sentence and marks are those of Python."""
        precision = settings.pop("precision")
        found = {
            which: bound(geometry, which, CARDS[card], precision, **settings) for which in MAPS
        }
        assert self.figures() == rows(found)
        expect(self.said).to_have_text(sentence(target, found[target], CARDS[card], precision))
        width, height = self.root.locator(".cg-chart svg").evaluate(
            "(svg) => [svg.clientWidth, svg.clientHeight]"
        )
        marks = self.marks()
        for which, each in found.items():
            across = min(1.0, max(0.0, math.log10(each.intensity / 0.1) / 5))
            up = min(1.0, max(0.0, math.log(each.tflops / 0.01) / math.log(2e5)))
            place = [46 + across * (width - 58), height - 44 - up * (height - 108)]
            assert marks[which] == pytest.approx(place, abs=1), which


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def roof(tab) -> Roof:
    """The roofline of the gallery: example F in float16, tiles up to 128."""
    roof = Roof(tab.goto(PAGE))
    roof.root.scroll_into_view_if_needed()
    expect(roof.root).to_be_visible()
    expect(roof.root).to_have_accessible_name("Roofline")
    return roof


def test_it_begins_with_what_python_computes(tab, roof):
    roof.shows(LAYER, "H100", "grad_weight", precision="float16", tile=128)
    expect(roof.layer).to_have_value("0")
    tab.assert_clean()


def test_three_marks_differ_in_shape_and_letter(roof):
    shapes = roof.root.evaluate(SHAPES)
    assert shapes == {
        "forward": ["circle", "y"],
        "grad_input": ["rect", "x"],
        "grad_weight": ["path", "w"],
    }


def test_every_slider_moves_the_marks(roof):
    steps = [
        ("images N", "ArrowLeft", {"N": 16}),
        ("channels C", "ArrowRight", {"C": 96}),
        ("kernels O", "Home", {"O": 1}),
        ("image H = W", "ArrowLeft", {"H": 32, "W": 32}),
        ("kernel KH = KW", "ArrowLeft", {"KH": 2, "KW": 2, "padding": 0}),
        ("stride", "ArrowRight", {"stride": 2}),
    ]
    geometry = LAYER
    for name, key, change in steps:
        before = roof.figures()
        roof.slider(name).focus()
        roof.page.keyboard.press(key)
        geometry = replace(geometry, **change)
        roof.shows(geometry, "H100", "grad_weight", precision="float16", tile=128)
        assert roof.figures() != before, name
        expect(roof.live).to_have_text(roof.said.inner_text())
    expect(roof.layer).to_have_value("-1")


def test_groups_go_through_what_divides_both(roof):
    roof.slider("groups").focus()
    for groups in (2, 4):
        roof.page.keyboard.press("ArrowRight")
        geometry = replace(LAYER, groups=groups)
        roof.shows(geometry, "H100", "grad_weight", precision="float16", tile=128)
    roof.page.keyboard.press("End")
    alone = replace(LAYER, groups=64)
    roof.shows(alone, "H100", "grad_weight", precision="float16", tile=128)
    # depthwise stays depthwise
    roof.slider("channels C").focus()
    roof.page.keyboard.press("ArrowLeft")
    fewer = replace(alone, C=48, O=48, groups=48)
    roof.shows(fewer, "H100", "grad_weight", precision="float16", tile=128)


def test_split_k_lifts_the_ceiling_until_a_wave_too_many(roof):
    lines = roof.root.locator(".cg-ceiling")
    low = lines.bounding_box()["y"]
    splits = roof.slider("split-K shares")
    splits.fill("25")  # places are counted from 0: 26 shares
    expect(splits).to_have_attribute("aria-valuetext", "26")
    roof.shows(LAYER, "H100", "grad_weight", precision="float16", tile=128, splits=26)
    assert lines.bounding_box()["y"] < low - 50
    splits.focus()
    roof.page.keyboard.press("ArrowRight")
    roof.shows(LAYER, "H100", "grad_weight", precision="float16", tile=128, splits=27)
    expect(roof.said).to_contain_text("in 2 waves")
    roof.choose("left out")
    expect(splits).to_be_hidden()
    expect(lines).to_have_count(0)


def test_im2col_slides_the_point_to_the_left(roof):
    roof.choose("left out")
    before = roof.marks()
    roof.choose("im2col’s columns")
    after = roof.marks()
    for which in MAPS:
        assert after[which][0] < before[which][0] - 40
    expect(roof.root.locator(".cg-slid")).to_have_count(1)
    roof.shows(LAYER, "H100", "grad_weight", precision="float16", columns=True)
    roof.choose("implicit")
    expect(roof.root.locator(".cg-slid")).to_have_count(0)


def test_card_and_precision_change_the_roof(roof):
    for card, precision, label in (
        ("T4", "float32", "float32"),
        ("A100-SXM4-40GB", "tf32", "TF32"),
    ):
        roof.card.select_option(card)
        roof.choose(label)
        roof.shows(LAYER, card, "grad_weight", precision=precision, tile=128)
        expect(roof.root.locator(".cg-strong")).to_contain_text(label)


def test_the_other_layers_can_be_drawn_and_taken(roof):
    roof.root.get_by_role("checkbox", name="the other layers too").check()
    layers = roof.root.locator(".cg-layer")
    expect(layers).to_have_count(len(PRESETS) - 1)
    layers.filter(has_text=re.compile("^10$")).click()
    expect(roof.layer).to_have_value("9")
    roof.shows(PRESETS[9][2], "H100", "grad_weight", precision="float16", tile=128)
    roof.layer.select_option("3")
    roof.shows(PRESETS[3][2], "H100", "grad_weight", precision="float16", tile=128)


def test_each_map_can_be_told(roof):
    roof.choose("forward")
    roof.shows(LAYER, "H100", "forward", precision="float16", tile=128)
    roof.root.locator(".cg-mark-grad_input .cg-badge").last.click()
    expect(roof.said).to_have_text(re.compile("^grad_input"))


def test_it_travels_in_a_link_and_is_taken_back(tab, roof, visit):
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    before = roof.figures()
    roof.card.select_option("L4")
    roof.slider("images N").focus()
    roof.page.keyboard.press("ArrowRight")
    after = roof.figures()
    roof.root.get_by_role("button", name="copy link").click()
    expect(roof.root.locator(".cg-tools-said")).to_contain_text("copied")
    link = tab.page.evaluate("() => navigator.clipboard.readText()")
    assert "card=L4" in link and "N=64" in link
    other = Roof(visit().goto(link, settle=False))
    other.root.scroll_into_view_if_needed()
    expect(other.card).to_have_value("L4")
    assert other.figures() == after
    for _ in range(2):
        roof.root.get_by_role("button", name="undo").click()
    assert roof.figures() == before
    tab.assert_clean()


def test_a_link_to_an_unknown_card_is_refused_in_words(tab, roof, visit):
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    roof.card.select_option("L4")
    roof.root.get_by_role("button", name="copy link").click()
    expect(roof.root.locator(".cg-tools-said")).to_contain_text("copied")
    link = tab.page.evaluate("() => navigator.clipboard.readText()")
    other = Roof(visit().goto(link.replace("card=L4", "card=abacus"), settle=False))
    other.root.scroll_into_view_if_needed()
    expect(other.page.locator(".cg-widget > .cg-note").first).to_contain_text("card is “abacus”")
    expect(other.card).to_have_value("H100")


# ---- for everybody -----------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_stumbles_and_everything_can_be_read(visit, axe, dark):
    roof = Roof(visit(dark=dark, reduced_motion=True).goto(PAGE))
    roof.root.scroll_into_view_if_needed()
    roof.root.get_by_role("checkbox", name="the other layers too").check()
    assert not axe(roof.root)
    assert not roof.page.evaluate(FAINT_TEXT)["faint"]


def test_it_fits_a_phone(visit):
    tab = visit(width=320, height=700, touch=True)
    roof = Roof(tab.goto(PAGE))
    roof.root.scroll_into_view_if_needed()
    roof.root.get_by_role("checkbox", name="the other layers too").check()
    needed, room = roof.page.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert needed == room
    box = roof.root.bounding_box()
    for part in roof.root.locator(".cg-slider, .cg-bounds, .cg-chart svg").all():
        if part.is_visible():
            inner = part.bounding_box()
            assert box["x"] - 1 <= inner["x"], part
            assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 1
    for slider in roof.root.get_by_role("slider").all():
        assert slider.bounding_box()["height"] >= 43.5
    tab.assert_clean()


@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_keeps_still_when_it_starts(visit, width):
    heights = """() => [...document.querySelectorAll(".cg-widget")]
      .filter((host) => (host.querySelector("script")?.textContent ?? "").includes("roofline"))
      .map((host) => host.offsetHeight)"""
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(PAGE, settle=False).evaluate(heights)
    tab = visit(width=width)
    page = tab.goto(PAGE)
    Roof(page).root.scroll_into_view_if_needed()
    after = page.evaluate(heights)
    assert len(before) == len(after) == 1
    assert abs(before[0] - after[0]) <= 24, (before, after)
