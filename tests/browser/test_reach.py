"""By keyboard alone, without eyes: what is drawn stands in tables, and no focus is hidden."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Browser, Locator, Page, expect

from convgrad import example
from convgrad.widgets import (
    BreakTheGradient,
    ContributionPlayer,
    GeometryExplorer,
    GradientViews,
    GroupBlocks,
    Roofline,
    ShardSum,
    SlidingWindow,
    ThreadGrid,
    UnfoldMatrix,
    save_html,
)

pytestmark = pytest.mark.browser


def step_on(root: Locator) -> None:
    root.get_by_role("button", name="one step on").click()


def step_back(root: Locator) -> None:
    root.get_by_role("button", name="one step back").click()


def next_mistake(root: Locator) -> None:
    root.get_by_role("combobox", name="mistake").select_option(index=3)


def other_card(root: Locator) -> None:
    root.get_by_role("combobox", name="card").select_option("T4")


def another_number(root: Locator) -> None:
    root.get_by_role("gridcell").nth(7).click()


def wider_stride(root: Locator) -> None:
    stride = root.get_by_label("stride", exact=True).filter(visible=True)
    stride.fill("1")
    stride.press("Tab")


# How each widget is made, and something that changes what it draws.
WIDGETS: dict[str, tuple[Callable[[], Any], Callable[[Locator], None]]] = {
    "SlidingWindow": (lambda: SlidingWindow(example("C")), step_on),
    "SlidingWindow, pictures": (lambda: SlidingWindow.photograph("blur"), step_on),
    "GeometryExplorer": (
        lambda: GeometryExplorer(H=6, W=7, KH=3, KW=3, stride=2, padding=1),
        wider_stride,
    ),
    "ContributionPlayer": (lambda: ContributionPlayer(example("D"), step=40), step_on),
    "GradientViews, kernels": (lambda: GradientViews(example("D"), view="kernels"), step_back),
    "GradientViews, convolution": (
        lambda: GradientViews(example("C"), view="convolution", step=3),
        step_on,
    ),
    "UnfoldMatrix": (lambda: UnfoldMatrix(example("B"), stage="forward"), step_back),
    "GroupBlocks": (lambda: GroupBlocks(example("D")), step_on),
    "ShardSum, images": (lambda: ShardSum(example("D")), step_on),
    "ShardSum, rows": (lambda: ShardSum(example("B"), view="rows"), step_on),
    "BreakTheGradient": (lambda: BreakTheGradient(example("D")), next_mistake),
    "Roofline": (lambda: Roofline(example("F"), tile=128, others=True), other_card),
    "ThreadGrid, K loop": (lambda: ThreadGrid(example("D"), view="loop", step=6), step_on),
    "ThreadGrid, two runs": (
        lambda: ThreadGrid(example("D"), view="runs", tile=(2, 4, 1), splits=9, processors=64),
        another_number,
    ),
}
every_widget = pytest.mark.parametrize("kind", WIDGETS)
PARTS = ".cg-grid-body, .cg-canvas, .cg-field-of, .cg-overview, .cg-plain, .cg-chart"

# All numbers of the grids that can be seen, and of the tables that go with them, in one order.
BOTH = """(root) => {
  const seen = [...root.querySelectorAll(".cg-grid-body")].filter((each) =>
    each.checkVisibility() && each.childElementCount);
  const names = seen.map((grid) => grid.getAttribute("aria-label").replace(/: .*$/, ""));
  const tables = [...root.querySelectorAll(".cg-as-tables table")];
  const own = (name) => tables.find((table) => table.caption.textContent === name);
  return {
    drawn: seen.map((grid) => [...grid.querySelectorAll("[role=gridcell]")]
      .map((cell) => cell.title || cell.textContent || "empty")),
    told: names.map((name) => own(name) && [...own(name).querySelectorAll("td")].slice(1)
      .map((cell) => cell.textContent.replace(/, (?!\\d).*$/, ""))),
  };
}"""
CORNERS = re.compile(r"(?<=\d), [×w\d].*$")  # the small words beside a number


class Opened:
    """A widget alone in a page of one file."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator("section.cg")
        self.summary = self.root.locator("details.cg-as-tables > summary")
        self.tables = self.root.locator(".cg-as-tables table")
        self.summary.wait_for()

    def open_tables(self) -> None:
        self.summary.focus()
        self.page.keyboard.press("Enter")
        expect(self.tables.first).to_be_visible()

    def table(self, name: str) -> np.ndarray:
        """The numbers of one table, without the words beside them."""
        table = self.tables.filter(has=self.page.locator(f"caption:text-is('{name}')"))
        rows = table.locator("tbody tr").all()
        texts = [row.locator("td").all_inner_texts() for row in rows]
        number = re.compile(r"^[−\d.e]+")
        return np.array([[float(number.match(t)[0].replace("−", "-")) for t in r] for r in texts])


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    pages: list[Page] = []

    def show(kind: str, width: int = 1000, dark: bool = False) -> Opened:
        path = tmp_path / "page.html"
        save_html(WIDGETS[kind][0](), path)
        scheme = "dark" if dark else "light"
        page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
        pages.append(page)
        page.goto(path.as_uri())
        page.locator(".cg-mounted").wait_for()
        return Opened(page)

    yield show
    for page in pages:
        page.close()


def told_as_drawn(widget: Opened) -> None:
    both = widget.root.evaluate(BOTH)
    assert len(both["drawn"]) == len(both["told"])
    assert both["told"] or widget.root.locator(".cg-chart").count()  # a chart has no grid
    for drawn, told in zip(both["drawn"], both["told"], strict=True):
        assert told is not None, "a grid without a table"
        assert [CORNERS.sub("", text) for text in told] == drawn


@every_widget
def test_what_is_drawn_stands_in_tables_and_they_follow(opened, kind):
    widget = opened(kind)
    widget.open_tables()
    parts = widget.root.locator(PARTS).filter(visible=True)
    count = len([part for part in parts.all() if part.locator("> *").count()])
    expect(widget.tables).to_have_count(count)
    for table in widget.tables.all():
        assert table.locator("caption").inner_text().strip()
        across = table.locator("thead th[scope=col]").count()
        rows = table.locator("tbody tr").all()
        assert across and rows
        for row in rows[:3]:
            assert row.locator("th[scope=row]").inner_text().strip()
            assert row.locator("td").count() == across
    told_as_drawn(widget)

    before = widget.tables.all_inner_texts()
    WIDGETS[kind][1](widget.root)
    expect(widget.summary).to_be_visible()
    widget.page.wait_for_timeout(400)
    assert widget.tables.all_inner_texts() != before
    told_as_drawn(widget)


def test_pictures_are_told_in_numbers_of_the_package(opened):
    widget = opened("SlidingWindow, pictures")
    widget.open_tables()
    window = SlidingWindow.photograph("blur")
    padded = np.pad(window.x[0, 0], 1, mode="edge")
    np.testing.assert_array_equal(widget.table("x"), padded)
    np.testing.assert_allclose(widget.table("y"), window.y[0, 0], rtol=1e-5)  # six digits


def test_a_table_says_in_words_what_a_cell_looks_like(opened):
    widget = opened("GradientViews, convolution")
    widget.open_tables()
    expect(widget.root.locator(".cg-as-tables")).to_contain_text("no such tap")
    explorer = opened("GeometryExplorer")
    explorer.open_tables()
    first = explorer.tables.first
    expect(first.locator("tbody th").first).to_have_text("row −1")
    expect(first.locator("tbody tr").last).to_contain_text("0, border, left over")
    broken = opened("BreakTheGradient")
    broken.open_tables()
    assert broken.tables.filter(has_text="differs").count() == 1


def test_tables_that_are_closed_are_not_kept(opened):
    widget = opened("ContributionPlayer")
    step_on(widget.root)
    widget.page.wait_for_timeout(400)
    expect(widget.tables).to_have_count(0)


@every_widget
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_phone_with_open_tables_is_whole(opened, axe, kind, dark):
    widget = opened(kind, width=320, dark=dark)
    widget.open_tables()
    page = widget.page
    assert page.evaluate("() => document.documentElement.scrollWidth") == 320
    assert not page.evaluate(FAINT_TEXT)["faint"]
    assert not axe(page.locator(":root"))


# What has the focus, whether a ring shows it, and whether the bar of controls lies over it.
FOCUSED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const ring = (el) => el && getComputedStyle(el).outlineStyle !== "none";
  const box = at.getBoundingClientRect();
  const bar = document.querySelector(".cg-bottom")?.getBoundingClientRect();
  const over = bar && !at.closest(".cg-bottom") && box.bottom > bar.top && box.top < bar.bottom;
  return {
    name: at.ariaLabel || at.labels?.[0]?.innerText || at.innerText || at.title,
    shown: ring(at) || ring(at.nextElementSibling),
    hidden: Boolean(over) && !at.matches(".cg-stage"),
    away: (box.bottom <= 0 || box.top >= innerHeight),
    sideways: box.left < 0 || box.right > innerWidth + 1,
    slice: at.matches(".cg-slice"),
  };
}"""


@every_widget
@pytest.mark.parametrize("width", [1000, 320])
def test_tab_shows_where_it_is_and_leads_to_the_end(opened, kind, width):
    page = opened(kind, width=width).page
    stops = []
    for _ in range(60):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        if at is None:
            break
        assert at["name"], f"nameless after {stops[-1:]}"
        assert at["shown"], f"no ring around {at['name']}"
        assert not at["hidden"], f"the bar lies over {at['name']}"
        assert not at["away"] and not at["sideways"], at["name"]
        stops.append(at)
        if at["name"] == "copy as PyTorch code":
            break
    assert stops[-1]["name"] == "copy as PyTorch code"
    assert len(stops) < 40
    assert sum(at["slice"] for at in stops) <= 4, "the slices of an array are one stop"


def test_arrows_go_from_slice_to_slice(opened):
    widget = opened("ContributionPlayer")
    slices = widget.root.get_by_role("group", name="slices of x", exact=True)
    first = slices.get_by_role("button", name="show image 1, channel 0, group A")
    expect(first).to_have_attribute("tabindex", "0")  # the one that is drawn large
    first.focus()
    step = widget.root.locator("output").inner_text()
    for key in ("ArrowRight", "ArrowDown", "End"):
        widget.page.keyboard.press(key)
    last = slices.get_by_role("button", name="show image 2, channel 3, group B")
    expect(last).to_be_focused()
    assert widget.root.locator("output").inner_text() == step, "the same keys step elsewhere"
    widget.page.keyboard.press("Enter")
    expect(last).to_have_attribute("aria-pressed", "true")


def test_the_still_picture_is_moved_by_keys_on_a_phone(visit, axe):
    tab = visit(width=320, height=700)
    # nothing starts: what stands there is what a page without the widgets has
    tab.page.route("**/*.js", lambda route: route.abort())
    page = tab.goto("book/gallery.html", settle=False)
    figure = page.locator("figure.cg-fallback").first
    figure.focus()
    figure.scroll_into_view_if_needed()
    assert figure.evaluate("(each) => each.scrollWidth > each.clientWidth")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("(each) => each.scrollLeft > 0", arg=figure.element_handle())
    for widget in page.locator(".cg-widget").all():
        assert not axe(widget)


def test_tab_starts_the_widget_that_it_comes_to(visit):
    tab = visit(height=400)
    page = tab.goto("book/gallery.html", settle=False)
    last = page.locator(".cg-widget").last
    expect(last).to_have_attribute("tabindex", "0")
    last.focus()
    expect(last).to_have_class(re.compile("cg-mounted"))
    page.wait_for_function(
        "(host) => host.querySelector('.cg-live').contains(document.activeElement)",
        arg=last.element_handle(),
    )
    tab.assert_clean()
