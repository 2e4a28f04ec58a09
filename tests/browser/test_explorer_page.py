"""GeometryExplorer in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError
from convgrad.widgets.explorer_words import formulas, reads
from convgrad.widgets.geometry_explorer import PRESETS

pytestmark = pytest.mark.browser
WIDGET = "geometry_explorer"

PAGE = "book/gallery.html"
LEFTOVER = ConvGeometry(C=1, H=6, W=7, O=1, KH=3, KW=3, stride=2)
TEXTS = """(grid) => [...grid.querySelectorAll("[role=row]")]
  .map((row) => [...row.querySelectorAll(".cg-cell")].map((cell) => cell.textContent))"""
PLACES = """(grid, mark) => [...grid.querySelectorAll(`.cg-cell.${mark}`)]
  .map((cell) => [Number(cell.dataset.row), Number(cell.dataset.col)])"""
CORNERS = """(grid) => Object.fromEntries([...grid.querySelectorAll("[data-corner]")]
  .map((cell) => [`${cell.dataset.row},${cell.dataset.col}`, cell.dataset.corner]))"""


class Explorer:
    """The explorer of the page, by the names that a screen reader would say."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".cg-explorer").first
        self.live = self.root.locator("[aria-live=polite]")
        self.said = self.root.locator(".cg-said")
        self.lines = self.root.locator(".cg-lines")
        self.message = self.root.get_by_role("alert").filter(visible=True)

    def grid(self, name: str) -> Locator:
        return self.root.get_by_role("grid", name=re.compile(rf"^{name},"))

    def cell(self, name: str, row: int, col: int) -> Locator:
        return self.grid(name).locator(f'[data-row="{row}"][data-col="{col}"]')

    def texts(self, name: str) -> list[list[str]]:
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
        return self.grid(name).evaluate(TEXTS)

    def counts(self) -> np.ndarray:
        return np.array(self.texts("x"), dtype=int)

    def marked(self, name: str, mark: str) -> set[tuple[int, int]]:
        return {tuple(place) for place in self.grid(name).evaluate(PLACES, mark)}

    def choose(self, name: str) -> None:
        radio = self.page.get_by_role("radio", name=name, exact=True)
        self.root.locator("label").filter(has=radio).click()
        expect(self.root.get_by_role("radio", name=name, exact=True)).to_be_checked()

    def example(self, name: str) -> None:
        self.root.get_by_role("button", name=re.compile(f"^{name}: ")).click()

    def knob(self, label: str) -> Locator:
        return self.root.get_by_label(label, exact=True).filter(visible=True)

    def mode(self) -> Locator:
        return self.root.get_by_role("combobox", name="padding mode").filter(visible=True)

    def turn(self, label: str, value: int) -> None:
        self.knob(label).fill(str(value))
        self.knob(label).press("Tab")

    def sizes(self) -> list[str]:
        return self.root.locator(".cg-sizes p").all_inner_texts()


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def explorer(tab) -> Explorer:
    """The explorer of the gallery: stride 2 over six rows, of which one is left over."""
    explorer = Explorer(tab.goto(PAGE))
    expect(explorer.root).to_be_visible()
    expect(explorer.root).to_have_accessible_name("Geometry explorer")
    return explorer


def lines(g: ConvGeometry, transposed: bool = False) -> list[str]:
    return [line for axis in formulas(g, transposed) for line in axis]


def test_each_example_shows_its_formulas_and_its_counts(tab, explorer):
    for name, _, g, transposed in PRESETS:
        explorer.example(name)
        g = replace(g, N=1, C=1, O=1, groups=1)
        explorer.choose("how often")
        assert explorer.sizes() == lines(g, transposed), name
        assert np.array_equal(explorer.counts(), reads(g)), name
    tab.assert_clean()


def test_what_is_left_over_is_crossed_out_and_said(explorer):
    assert explorer.marked("x", "cg-over") == {(5, v) for v in range(7)}
    expect(explorer.said).to_contain_text("left over: 1 row at the bottom")
    assert "the division leaves 1: 1 row is left over at the bottom" in explorer.sizes()
    explorer.turn("height H", 7)
    assert explorer.marked("x", "cg-over") == set()
    expect(explorer.said).to_contain_text("nothing is left over")
    explorer.cell("x", 0, 0).hover()
    explorer.turn("width W", 8)
    assert explorer.marked("x", "cg-over") == {(h, 7) for h in range(7)}
    explorer.cell("x", 0, 7).hover()
    expect(explorer.said).to_have_text("x[0,7] is read by no window: it is left over")


def test_knobs_change_sizes_and_map(tab, explorer):
    g = LEFTOVER
    changes = [
        ("padding", 1, {"padding": 1}),
        ("stride", 1, {"stride": 1}),
        ("dilation", 2, {"dilation": 2}),
        ("width KW", 2, {"KW": 2}),
        ("height H", 9, {"H": 9}),
    ]
    for label, value, change in changes:
        explorer.turn(label, value)
        g = replace(g, **change)
        assert explorer.sizes() == lines(g), label
        assert np.array_equal(explorer.counts(), reads(g)), label
        expect(explorer.live).to_contain_text(f"y has {g.OH}×{g.OW} cells")
    tab.assert_clean()


def test_a_window_and_a_place_show_each_other(explorer):
    explorer.cell("y", 1, 2).hover()
    taps = {(2 * 1 + i, 2 * 2 + j): f"{i},{j}" for i, j in np.ndindex(3, 3)}
    assert explorer.marked("x", "cg-with") == set(taps)
    corners = explorer.grid("x").evaluate(CORNERS)
    assert corners == {f"{h},{v}": tap for (h, v), tap in taps.items()}
    expect(explorer.lines).to_contain_text("= 2·1 + 1·i − 0 = 2, 3, 4")
    explorer.cell("x", 2, 4).hover()
    readers = {"0,1": "w2,2", "0,2": "w2,0", "1,1": "w0,2", "1,2": "w0,0"}
    assert explorer.grid("y").evaluate(CORNERS) == readers
    expect(explorer.said).to_have_text("x[2,4] is read 4 times")
    expect(explorer.lines).to_contain_text("y[1,2] through w[0,0]")
    explorer.root.locator(".cg-sizes").hover()
    expect(explorer.said).to_contain_text("left over")


def test_by_keyboard_alone_border_included(tab, explorer):
    explorer.example("reflect")
    explorer.cell("x", 0, 0).focus()
    expect(explorer.said).to_contain_text("x[−2,−2], on the border, reads x[2,2]")
    for key in ("ArrowDown", "End"):
        explorer.page.keyboard.press(key)
    expect(explorer.said).to_contain_text("x[−1,6], on the border, reads x[1,2]")
    expect(explorer.live).to_contain_text("x[−1,6], on the border, reads x[1,2]")
    assert explorer.root.locator(".cg-arrow path").get_attribute("d")
    explorer.page.keyboard.press("Escape")
    expect(explorer.said).to_contain_text("Windows read a cell of x")
    assert not explorer.root.locator(".cg-arrow path").get_attribute("d")
    tab.assert_clean()


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_padding_modes_say_what_they_read(explorer, mode):
    explorer.turn("padding", 2)
    explorer.mode().select_option(mode)
    explorer.choose("what is read")
    g = replace(LEFTOVER, padding=2, padding_mode=mode)
    texts = explorer.texts("x")
    for row, col in np.ndindex(g.padded_size):
        cell = g.cell(row - 2, col - 2)
        assert texts[row][col] == (",".join(map(str, cell)) if cell else "0")
    assert len(explorer.marked("x", "cg-on-border")) == 10 * 11 - 6 * 7


def test_same_has_uneven_sides(explorer):
    explorer.turn("stride", 1)
    explorer.turn("width KW", 4)
    explorer.root.get_by_role("button", name="padding “same”").filter(visible=True).click()
    g = replace(LEFTOVER, stride=1, KW=4, padding="same")
    assert explorer.sizes() == lines(g)
    assert "“same”: 3 cells in all, the odd one after" in explorer.sizes()
    expect(explorer.knob("left")).to_have_value("1")
    expect(explorer.knob("right")).to_have_value("2")
    # with a stride there is no such padding, and it is said where it was asked for
    explorer.turn("stride across", 2)
    explorer.root.get_by_role("button", name="padding “same”").filter(visible=True).click()
    expect(explorer.message).to_contain_text("padding='same' with stride (1, 2)")


def test_an_impossible_geometry_is_explained_in_place(tab, explorer):
    before = explorer.counts()
    explorer.turn("dilation", 3)
    with pytest.raises(GeometryError) as python:
        replace(LEFTOVER, dilation=3)
    expect(explorer.message).to_contain_text(str(python.value))
    assert np.array_equal(explorer.counts(), before)
    explorer.root.get_by_role("button", name="keep what is shown").filter(visible=True).click()
    expect(explorer.message).to_have_count(0)
    explorer.turn("width W", 300)
    expect(explorer.message).to_contain_text("the explorer draws up to 400")
    tab.assert_clean()


def test_a_transposed_convolution_shows_its_checkerboard(explorer):
    explorer.example("checkerboard")
    g = ConvGeometry(C=1, H=9, W=9, O=1, KH=3, KW=3, stride=2)
    counts = explorer.counts()
    assert np.array_equal(counts, reads(g)) and set(counts.ravel()) == {1, 2, 4}
    expect(explorer.said).to_contain_text("1, 2 or 4 products meet: uneven")
    assert explorer.sizes() == lines(g, transposed=True)
    # not by colour alone: the squares differ in size
    parts = explorer.grid("x").evaluate(
        "(grid) => [...grid.querySelectorAll('.cg-cell')]"
        ".map((cell) => Number(getComputedStyle(cell).getPropertyValue('--part')))"
    )
    assert np.allclose(np.reshape(parts, (9, 9)) ** 2, counts / 4, atol=2e-3)
    explorer.cell("x", 2, 2).hover()
    expect(explorer.lines).to_have_text(
        "y[0,0]·w[2,2] + y[0,1]·w[2,0] + y[1,0]·w[0,2] + y[1,1]·w[0,0]"
    )
    explorer.turn("height KH", 2)
    explorer.turn("width KW", 2)
    expect(explorer.said).to_contain_text("0 or 1 products meet")


def test_along_one_axis_each_window_is_a_row(tab, explorer):
    explorer.example("one row")
    g = next(g for name, _, g, _ in PRESETS if name == "one row")
    rows = explorer.texts("y")
    assert len(rows) == g.OW
    for q, row in enumerate(rows):
        taps = {int(g.source(0, q, 0, j)[1]) + 1: f"w{j}" for j in range(g.KW)}
        assert row == [taps.get(at, "") for at in range(g.padded_size[1])]
    explorer.cell("y", 1, 0).hover()
    assert explorer.marked("y", "cg-with") == {(1, at) for at in (2, 4, 6)}
    expect(explorer.said).to_have_text("y[1] is made from the window that is lit")
    # arrows from the border to what it copies
    arcs = explorer.root.locator(".cg-arcs")
    expect(arcs).to_be_hidden()
    explorer.mode().select_option("circular")
    expect(arcs).to_be_visible()
    assert arcs.locator("path").get_attribute("d").count("M") == 2
    # to two axes and back
    explorer.choose("two")
    assert explorer.counts().shape == (11, 11)
    explorer.choose("one")
    assert explorer.counts().shape == (1, 11)
    tab.assert_clean()


def test_two_axes_come_back_as_they_were(explorer):
    explorer.choose("one")
    assert explorer.sizes() == lines(replace(LEFTOVER, H=1, KH=1, stride=(1, 2)))
    explorer.choose("two")
    assert explorer.sizes() == lines(LEFTOVER)


# ---- for everybody -----------------------------------------------------------------------------


def test_everything_can_be_reached_by_tab(explorer):
    explorer.root.get_by_role("button").first.focus()
    stops = set()
    for _ in range(50):
        explorer.page.keyboard.press("Tab")
        name, inside, outlined = explorer.page.evaluate(
            """() => {
              const at = document.activeElement;
              const style = getComputedStyle(at);
              const label = at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent
                ?? at.textContent;
              const seen = style.outlineStyle !== "none" || at.matches("input[type=radio]");
              return [at.getAttribute("role") ?? at.tagName + ": " + label,
                at.closest(".cg-explorer") !== null, seen];
            }"""
        )
        if not inside:
            break
        assert outlined, f"nothing shows that the focus is on {name}"
        stops.add(name)
    assert {"gridcell", "INPUT: stride", "INPUT: height H"} <= stops
    assert any(stop.startswith("BUTTON: padding “same”") for stop in stops)
    assert any(stop.startswith("SUMMARY") for stop in stops)


@pytest.mark.parametrize("name", ["leftover", "reflect", "one row"])
def test_nothing_stumbles(visit, axe, name):
    explorer = Explorer(visit().goto(PAGE))
    explorer.example(name)
    explorer.turn("stride" if name != "reflect" else "dilation", 4)
    assert not axe(explorer.root)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_can_be_read(visit, dark):
    explorer = Explorer(visit(dark=dark, reduced_motion=True).goto(PAGE))
    for name in ("leftover", "reflect", "one row"):
        explorer.example(name)
        for grid in ("x", "y"):
            explorer.cell(grid, 0, 1).focus()
            found = explorer.page.evaluate(FAINT_TEXT)
            assert found["measured"] > 60
            # what is crossed out is not meant to be read: its cell says so in words
            assert not [line for line in found["faint"] if "cg-over" not in line], name


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    tab = visit(width=width, height=700, touch=True)
    explorer = Explorer(tab.goto(PAGE))
    for name, *_ in PRESETS:
        explorer.example(name)
        needed, room = explorer.page.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert needed == room, name
    explorer.example("leftover")
    explorer.cell("x", 2, 4).tap()
    expect(explorer.said).to_have_text("x[2,4] is read 4 times")
    for button in explorer.root.locator(".cg-stepper button, .cg-same").filter(visible=True).all():
        assert button.bounding_box()["height"] >= 43.5
    tab.assert_clean()


@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_keeps_still_when_it_starts(visit, width):
    heights = """() => [...document.querySelectorAll(".cg-widget")]
      .filter((host) => host.dataset.model === "w3").map((host) => host.offsetHeight)"""
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(PAGE, settle=False).evaluate(heights)
    tab = visit(width=width)
    after = tab.goto(PAGE).evaluate(heights)
    assert len(before) == len(after) == 1
    assert abs(before[0] - after[0]) <= 24, (before, after)
    assert tab.page.locator('[data-model="w3"] .cg-explorer').count() == 1
