"""ThreadGrid in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from contents import FAINT_TEXT, pages_showing
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError, example
from convgrad.implicit import right
from convgrad.widgets import ThreadGrid

pytestmark = pytest.mark.browser
WIDGET = "thread_grid"
PAGE = "book/gallery"  # first example F over time, then the K loop of D


class Grid:
    """A thread grid of a page, by the names that a screen reader would say."""

    def __init__(self, page: Page, number: int = 1) -> None:
        self.page = page
        name = "Thread grid" if number == 1 else f"Thread grid {number}"
        self.root = page.get_by_role("region", name=name, exact=True)
        self.words = self.root.locator(".cg-spelled")
        self.live = self.root.locator("[aria-live=polite]")
        self.message = self.root.get_by_role("alert")
        self.rows = self.root.get_by_role("listbox")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def choose(self, name: str) -> None:
        self.root.get_by_role("radio", name=name, exact=True).check(force=True)

    def example(self, letter: str) -> None:
        self.root.get_by_role("button", name=re.compile(f"^{letter}: ")).click()

    def scrub(self, step: int) -> None:
        self.root.get_by_role("slider", name="step").fill(str(step))

    def size(self, label: str, value: int) -> None:
        self.root.get_by_label(label, exact=True).select_option(str(value))

    def count(self, label: str, value: int | str) -> None:
        field = self.root.get_by_label(label, exact=True)
        field.fill(str(value))
        field.press("Tab")

    def turn(self, label: str, value: int | str) -> None:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        field = knobs.get_by_label(label, exact=True)
        field.fill(str(value))
        field.press("Tab")

    def figures(self) -> dict[str, str]:
        names = self.root.locator(".cg-figures dt").all_inner_texts()
        return dict(zip(names, self.root.locator(".cg-figures dd").all_inner_texts(), strict=True))

    def grid(self, name: str) -> Locator:
        return self.root.get_by_role("grid", name=re.compile(rf"^{re.escape(name)}, "))

    def cell(self, name: str, row: int, col: int) -> Locator:
        return self.grid(name).locator(f'[data-row="{row}"][data-col="{col}"]')

    def numbers(self, name: str) -> np.ndarray:
        """As they are drawn; where nothing stands, nan."""
        rows = self.grid(name).evaluate(
            """(grid) => [...grid.querySelectorAll("[role=row]")].map((row) => [...row.children]
              .map((cell) => cell.title || cell.textContent).map((text) =>
                text ? Number(text.replaceAll("−", "-")) : null))"""
        )
        return np.array(rows, dtype=float)

    def sums(self, run: int) -> list[str]:
        """The sums of one run so far."""
        column = self.root.locator(".cg-run").nth(run - 1).locator("tbody td:last-child")
        return [text for text in column.all_inner_texts() if text != "·"]

    def box(self, selector: str) -> dict[str, float]:
        return self.root.locator(selector).evaluate(
            "(el) => (({ x, y, width, height }) => ({ x, y, width, height }))(el.getBBox())"
        )


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def grid(tab) -> Grid:
    grid = Grid(tab.goto(f"{PAGE}.html"))
    grid.root.scroll_into_view_if_needed()
    expect(grid.root).to_be_visible()
    return grid


@pytest.fixture
def small(grid) -> Grid:
    """The second one: example D, the K loop of multiprocessor 0 after five steps."""
    small = Grid(grid.page, 2)
    small.root.scroll_into_view_if_needed()
    expect(small.root).to_be_visible()
    return small


def nine(value: np.float32) -> str:
    return f"{float(value):#.9g}".replace("-", "−")


# ---- time ------------------------------------------------------------------------------------


def test_five_tiles_keep_five_of_132_busy_and_split_k_mends_it(tab, grid):
    mirror = ThreadGrid(example("F"))
    expect(grid.words).to_contain_text("5 of 132 multiprocessors work, 127 idle")
    assert grid.figures()["programs"] == "5 = 5 tiles × 1 share"
    assert grid.figures()["at work"] == "3.8 % of all multiprocessors’ time"
    rows = grid.rows.get_by_role("option")
    expect(rows).to_have_count(132)
    expect(rows.nth(4)).to_have_accessible_name("multiprocessor 4: tile 4, steps 0 to 3136")
    expect(rows.nth(5)).to_have_accessible_name("multiprocessor 5: idle all the time")
    drawn = grid.box(".cg-bars")
    side = drawn["height"] / 5
    assert drawn["y"] < side and drawn["height"] < 6 * side

    grid.count("split K into", 26)
    mirror.splits = 26
    assert mirror.schedule.programs == 130
    assert grid.figures()["programs"] == "130 = 5 tiles × 26 shares"
    assert grid.figures()["time"] == f"{mirror.schedule.time} steps"
    assert grid.figures()["atomics"] == "26 to each number"
    expect(rows.nth(129)).to_have_accessible_name(re.compile("tile 4, share 25, steps 0 to"))
    expect(rows.nth(131)).to_have_accessible_name(re.compile("idle all the time"))
    assert grid.box(".cg-bars")["height"] > 20 * drawn["height"]
    grid.choose("two passes")
    assert grid.figures()["workspace"] == "3.7 MiB"
    assert grid.figures()["atomics"] == "0 to each number"
    tab.assert_clean()


def test_the_needle_and_what_is_done_move_with_the_step(grid):
    for step in (0, 784, 3136):
        grid.scrub(step)
        share = step / 3136
        width = grid.root.locator(".cg-field-time svg").evaluate("(svg) => svg.clientWidth")
        done = grid.box(".cg-field-time .cg-done")["width"] if step else 0
        assert done == pytest.approx(share * width, abs=1)
        needle = grid.root.locator(".cg-needle").evaluate(
            "(el) => new DOMMatrix(getComputedStyle(el).transform).m41"
        )
        assert needle == pytest.approx(share * width, abs=1)
    expect(grid.words).to_contain_text("All is done")


def test_all_three_maps_of_a_small_convolution(tab, small):
    small.choose("time")
    names = {"grad_weight": "weight", "forward": "forward", "grad_input": "input"}
    for name, target in names.items():
        mirror = ThreadGrid(example("D"), target=target, tile=(2, 4, 4))
        small.choose(name)
        assert small.root.locator(".cg-figures").inner_text().count("share") == 1
        assert small.figures()["time"] == f"{mirror.steps} steps"
        expect(small.root.locator("output")).to_have_text(re.compile(rf"/ {mirror.steps}$"))
    tab.assert_clean()


def test_a_tile_or_a_row_is_watched(grid):
    grid.rows.get_by_role("option").nth(3).click(force=True)
    grid.scrub(100)
    expect(grid.words).to_contain_text("multiprocessor 3 adds k = 3,168 … 3,199 to tile 3")
    grid.rows.press("ArrowDown")
    expect(grid.words).to_contain_text("multiprocessor 4 adds")
    expect(grid.live).to_contain_text("multiprocessor 4 adds")
    grid.rows.press("PageDown")
    expect(grid.words).to_contain_text("multiprocessor 14 is idle")
    picture = grid.root.locator(".cg-product svg")
    here = grid.box(".cg-product .cg-edge.cg-of-result")
    picture.click(position={"x": here["x"] + 0.3 * here["width"], "y": here["y"] + 5})
    expect(grid.words).to_contain_text("multiprocessor 1 adds")


def test_the_timeline_stands_in_a_table(grid):
    grid.root.locator("details.cg-as-tables > summary").click()
    table = grid.root.locator(".cg-as-tables table")
    expect(table).to_have_count(1)
    assert table.locator("caption").inner_text() == "multiprocessors over time"
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(132)
    expect(rows.nth(2)).to_contain_text("tile 2, steps 0 to 3136")
    expect(rows.nth(77)).to_contain_text("idle all the time")
    grid.count("split K into", 13)
    expect(rows.nth(7)).to_contain_text("tile 2, share 1, steps 0 to 242")


# ---- the K loop ------------------------------------------------------------------------------


def test_slices_and_tile_are_pythons(tab, small):
    mirror = ThreadGrid(example("D"))
    g, arrays = mirror.geometry, mirror.arrays
    kernels = arrays["grad_output"].transpose(1, 0, 2, 3).reshape(6, -1)[:3]  # group A: o k
    k, r = np.arange(27)[:, None], np.arange(12)
    columns = arrays["x"].ravel()[right(g, "weight", 0, k, r)]
    for step, row, col in [(5, 0, 0), (7, 0, 0), (21, 2, 8)]:
        small.scrub(step)
        if step == 21:  # the third program of multiprocessor 0 is tile 8, of group B
            kernels = arrays["grad_output"].transpose(1, 0, 2, 3).reshape(6, -1)[3:]
            columns = arrays["x"].ravel()[right(g, "weight", 1, k, r)]
            row, col = 0, 8
        block = (step - 1) % 7
        first, end = 4 * block, min(4 * block + 4, 27)
        G, X, W = (small.numbers(name) for name in ("G", "X", "grad_weight"))
        assert np.array_equal(G[:, : end - first], kernels[row : row + 2, first:end]), step
        assert np.isnan(G[:, end - first :]).all()
        assert np.array_equal(X[: end - first], columns[first:end, col : col + 4]), step
        assert np.array_equal(W, kernels[row : row + 2, :end] @ columns[:end, col : col + 4]), step
    tab.assert_clean()


def test_an_entry_says_where_it_lies_and_the_image_shows_it(small):
    small.cell("X", 1, 2).hover()  # k = 17, r = 2
    at = int(right(example("D").geometry, "weight", 0, 17, 2))
    n, c, h, v = np.unravel_index(at, (3, 4, 5, 4))
    expect(small.words).to_contain_text(f"x[{n},{c},{h},{v}]")
    expect(small.words).to_contain_text(f"number {at} of x in memory")
    chosen = small.grid(f"x[{n},{c}]").locator(".cg-chosen")
    expect(chosen).to_have_attribute("data-row", str(h))
    expect(chosen).to_have_attribute("data-col", str(v))
    small.cell("grad_weight", 1, 3).hover()
    expect(small.words).to_contain_text("grad_weight[1,0,1,1]")
    expect(small.grid("G").locator(".cg-with")).to_have_count(4)


def test_a_layer_too_large_says_so_and_names_an_address(grid):
    grid.choose("K loop")
    grid.scrub(101)
    expect(grid.root.locator(".cg-loop")).to_contain_text("too large to be drawn number by number")
    at = int(right(example("F").geometry, "weight", 0, 100 * 32, 0))
    expect(grid.root.locator(".cg-loop")).to_contain_text(f"number {at:,} of x in memory")


# ---- two runs --------------------------------------------------------------------------------


def test_two_runs_are_pythons_to_the_last_bit(tab, small):
    small.choose("two runs")
    small.size("step in K", 1)
    small.count("split K into", 9)
    small.count("multiprocessors", 64)
    mirror = ThreadGrid(example("D"), tile=(2, 4, 1), splits=9, processors=64, view="runs")
    drawn = small.numbers("grad_weight")
    differing = small.grid("grad_weight").locator(".cg-differs")
    count = 0
    for row, col in np.ndindex(3, 12):
        mirror.cell = [0, row, col]
        first, second = mirror.results
        assert np.float32(drawn[row, col]) == pytest.approx(second, rel=1e-9)
        count += first != second
    expect(differing).to_have_count(int(count))
    small.button("to the end").click()
    for row, col in [(0, 1), (2, 8)]:
        small.cell("grad_weight", row, col).click()
        mirror.cell = [0, row, col]
        for run in (1, 2):
            shares = mirror.shares
            total, expected = np.float32(0), []
            for part in mirror.orders[run - 1]:
                total = np.float32(total + shares[part])
                expected.append(nine(total) if total else "0")
            assert small.sums(run) == expected
            bits = f"{mirror.results[run - 1].view(np.uint32):08x}"
            expect(small.words).to_contain_text(bits)
    small.button("another two runs").click()
    mirror.seed = 3
    expect(small.words).to_contain_text(f"{mirror.results[1].view(np.uint32):08x}")
    small.choose("two passes")
    mirror.two_passes = True  # what was complete stays complete
    expect(small.words).to_contain_text("Both runs end with")
    assert small.sums(1) == small.sums(2)
    expect(differing).to_have_count(0)
    tab.assert_clean()


def test_shares_arrive_one_by_one(small):
    small.choose("two runs")
    expect(small.root.locator(".cg-runs, .cg-pair")).to_contain_text("split K into 3 or more")
    small.count("split K into", 2)
    expect(small.root.locator(".cg-pair")).to_contain_text("a + b is b + a")
    small.count("split K into", 7)
    small.scrub(0)
    assert small.sums(1) == []
    for _ in range(3):
        small.button("one step on").click()
    assert len(small.sums(1)) == len(small.sums(2)) == 3
    expect(small.live).to_contain_text("run 1 adds share")


def test_a_large_layer_has_runs_too(tab, grid):
    grid.count("split K into", 26)
    grid.choose("two runs")
    grid.button("to the end").click()
    mirror = ThreadGrid(example("F"), splits=26)
    first, second = mirror.results
    for result in (first, second):
        expect(grid.words).to_contain_text(f"{result.view(np.uint32):08x}")
    expect(grid.words).to_contain_text(re.compile(r"Twenty runs give [2-9]|1\d different"))
    tab.assert_clean()


# ---- what every widget must ------------------------------------------------------------------


def test_too_much_and_impossible_wishes_are_explained(tab, grid, small):
    grid.size("tile rows", 1)
    grid.size("tile columns", 1)
    expect(grid.message.first).to_contain_text("36,864 programs: the thread grid draws up to")
    assert grid.figures()["programs"].startswith("320 = 320 tiles"), "what held still holds"
    small.turn("groups", 4)
    with pytest.raises(GeometryError) as python:
        ConvGeometry(**{**example("D").geometry.as_dict(), "groups": 4})
    expect(small.message.filter(visible=True)).to_contain_text(str(python.value))
    small.turn("groups", 1)
    expect(small.message.filter(visible=True)).to_have_count(0)
    assert small.figures()["product"] == "6 × 27 · 27 × 24"
    tab.assert_clean()


def test_examples_bring_their_tiles_and_undo_takes_back(tab, grid):
    grid.example("B")
    mirror = ThreadGrid(example("B"))
    assert grid.figures()["time"] == f"{mirror.steps} steps"
    expect(grid.root.get_by_label("multiprocessors", exact=True)).to_have_value("4")
    grid.button("undo").click()
    assert grid.figures()["time"] == "3,136 steps"
    grid.button("redo").click()
    assert grid.figures()["time"] == f"{mirror.steps} steps"
    grid.button("reset: back to how it began").click()
    assert grid.figures()["time"] == "3,136 steps"
    tab.assert_clean()


def test_a_link_keeps_all_of_it(tab, visit, small):
    small.choose("two runs")
    small.count("split K into", 5)
    small.choose("two passes")
    small.cell("grad_weight", 2, 5).click()
    small.scrub(4)
    small.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    small.button("copy link").click()
    expect(small.root.locator(".cg-tools-said")).to_contain_text("copied")
    link = small.page.evaluate("() => navigator.clipboard.readText()")
    other = Grid(visit().goto(link, settle=False), 2)
    other.root.scroll_into_view_if_needed()
    expect(other.root.locator("output")).to_have_text(
        "4 / 8"
    )  # five asked for, four of two blocks each
    expect(other.words).to_have_text(small.words.inner_text())
    assert other.figures() == small.figures()


def test_it_works_by_keyboard_alone(tab, small):
    keyboard = small.page.keyboard
    small.root.get_by_role("group", name=re.compile("^tiles and time")).focus()
    keyboard.press("ArrowRight")
    expect(small.root.locator("output")).to_have_text("6 / 21")
    expect(small.live).to_contain_text("Step 6")
    keyboard.press("End")
    expect(small.root.locator("output")).to_have_text("21 / 21")
    keyboard.press("Home")
    keyboard.press("Tab")  # into the first grid
    expect(small.words).to_contain_text("x[0,0,0,0]")
    keyboard.press("ArrowRight")
    expect(small.words).to_contain_text("x[0,0,0,1]")
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    expect(small.words).to_contain_text("X[1, 0]")
    expect(small.live).to_contain_text("X[1, 0]")
    tab.assert_clean()


def test_it_plays_to_the_end(tab, small):
    small.root.get_by_label("speed, steps a second").select_option("16")
    small.button("play").click()
    expect(small.root.locator("output")).to_have_text("21 / 21", timeout=10_000)
    tab.assert_clean()


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    page = visit(width=width, height=700, touch=True).goto(f"{PAGE}.html")
    for number in (1, 2):
        grid = Grid(page, number)
        grid.root.scroll_into_view_if_needed()
        for view in ("time", "K loop", "two runs"):
            grid.choose(view)
            room, needed = page.evaluate(
                "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
            )
            assert needed == room, (number, view)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_view_can_be_read_and_axe_finds_nothing(visit, axe, dark):
    page = visit(dark=dark, reduced_motion=True).goto(f"{PAGE}.html")
    for number in (1, 2):
        grid = Grid(page, number)
        grid.root.scroll_into_view_if_needed()
        grid.count("split K into", 5)
        grid.scrub(9)
        for view in ("time", "K loop", "two runs"):
            grid.choose(view)
            found = page.evaluate(FAINT_TEXT)
            assert not found["faint"], (number, view)
            assert not axe(grid.root), (number, view)


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("page", pages_showing("ThreadGrid"))
def test_the_page_keeps_still_when_it_starts(visit, page, width):
    """Its fallback has kept the room."""
    measure = """(hosts) => hosts.filter((host) => host.querySelector("figure.cg-fallback"))
      .map((host) => host.offsetHeight)"""
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(f"{page}.html", settle=False).locator(".cg-widget").evaluate_all(measure)
    after = visit(width=width).goto(f"{page}.html").locator(".cg-widget").evaluate_all(measure)
    assert len(before) == len(after) >= 1
    # 24 pixels: about one line of text
    assert all(abs(a - b) <= 24 for a, b in zip(before, after, strict=True)), (before, after)
