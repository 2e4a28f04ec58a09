"""GradientViews in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from contents import FAINT_TEXT, pages_showing
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError, example
from convgrad.widgets import GradientViews

pytestmark = pytest.mark.browser
WIDGET = "gradient_views"

KERNELS, SCATTER, SEARCH, BATCH = (
    "kernel by kernel",
    "scatter and gather",
    "as a convolution",
    "image by image",
)
ALL = (KERNELS, SCATTER, SEARCH, BATCH)
TOOLS = ("undo", "redo", "copy link", "copy as PyTorch code")


class Views:
    """One gradient view of a page, the first at first, by the names a screen reader would say."""

    def __init__(self, page: Page, which: int = 0) -> None:
        self.page = page
        self.root = page.locator(".cg-views").nth(which)
        self.root.scroll_into_view_if_needed()
        self.stage = self.root.get_by_role("group", name=re.compile("^grids; "))
        self.words = self.root.locator(".cg-spelled")
        self.live = self.root.locator("[aria-live=polite]")
        self.message = self.root.get_by_role("alert")
        self.count = self.root.locator("output")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def see(self, view: str) -> None:
        self.root.get_by_role("radio", name=view, exact=True).check()

    def load(self, letter: str) -> None:
        self.root.get_by_role("button", name=re.compile(f"^{letter}: ")).click()

    def pick(self, what: str, name: str) -> None:
        row = self.root.get_by_role("group", name=what, exact=True)
        row.get_by_role("radio", name=name, exact=True).check()

    def scrub(self, step: int) -> None:
        self.root.get_by_role("slider", name="step").fill(str(step))

    def turn(self, label: str, value: int | str) -> None:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        field = knobs.get_by_label(label, exact=True)
        field.fill(str(value))
        field.press("Tab")

    def sheet(self, place: str) -> Locator:
        return self.stage.locator(f'[data-place="{place}"]')

    def cell(self, place: str, row: int, col: int) -> Locator:
        return self.sheet(place).locator(f'[data-row="{row}"][data-col="{col}"]')

    def numbers(self, place: str) -> np.ndarray:
        """What stands in a grid, without its border; nan in an empty cell."""
        rows = self.sheet(place).evaluate(
            """(sheet) => [...sheet.querySelectorAll("[role=row]")]
              .map((row) => [...row.querySelectorAll(".cg-cell:not(.cg-pad)")])
              .filter((row) => row.length)
              .map((row) => row.map((cell) => cell.textContent.replace("−", "-")))"""
        )
        return np.array([[float(text) if text else np.nan for text in row] for row in rows])

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
def views(tab) -> Views:
    """The first one of the first page that has any: example D, kernel by kernel, complete."""
    views = Views(tab.goto(f"{pages_showing('GradientViews')[0]}.html"))
    expect(views.root).to_be_visible()
    return views


def same(drawn: np.ndarray, expected: np.ndarray) -> bool:
    return np.array_equal(drawn, expected, equal_nan=True)


# ---- the four views --------------------------------------------------------------------------


def test_shares_stack_up_kernel_by_kernel(tab, views):
    mirror = GradientViews(example("D"))
    g, shares = mirror.geometry, mirror.kernel_shares
    views.pick("image", "1")
    views.pick("channel", "1")
    for o in range(g.O):
        views.scrub(o + 1)
        channel = g.channel(o, 1)
        first = o - o % g.OG
        assert same(views.numbers("w"), mirror.weight[o, 1])
        assert same(views.numbers("g"), mirror.grad_output[1, o])
        assert same(views.numbers("own"), mirror.grad_weight[o, 1])
        assert same(views.numbers("share"), shares[o, 1, channel])
        so_far = shares[first : o + 1, 1, channel].sum(axis=0)
        assert same(views.numbers("now"), so_far), f"after kernel {o}"
        assert same(views.numbers("all"), mirror.grad_input[1, channel])
        group = "AB"[g.group_of(o)]
        expect(views.words).to_contain_text(f"kernel {o}, group {group}: share {o - first + 1} of")
        expect(views.root.get_by_role("radio", name=f"{group} {o}")).to_be_checked()
    assert same(views.numbers("now"), views.numbers("all"))
    views.scrub(0)
    assert np.isnan(views.numbers("now")).all(), "nothing has been added"
    views.pick("kernel", "B 4")
    expect(views.count).to_have_text("5 / 6")
    tab.assert_clean()


def test_a_cell_of_the_sum_names_the_shares(views):
    mirror = GradientViews(example("D"))
    views.scrub(2)
    values = mirror.kernel_shares[:3, 0, 0, 1, 2]
    views.cell("now", 1, 2).hover()
    expect(views.words).to_contain_text("grad_input[0,0,1,2] so far = ")
    views.cell("all", 1, 2).hover()
    total = f"{values.sum():g}".replace("-", "−")
    expect(views.words).to_contain_text(f"= {total}, the shares of kernels 0, 1, 2")
    views.cell("share", 1, 2).hover()
    expect(views.words).to_contain_text("kernel 1’s share of grad_input[0,0,1,2] = ")
    expect(views.sheet("w").locator(".cg-partner")).to_have_count(4)


def test_what_is_scattered_is_what_is_gathered(tab, views):
    views.load("C")
    views.see(SCATTER)
    mirror = GradientViews(example("C"))
    g = mirror.geometry
    expect(views.count).to_have_text("48 / 48")
    assert same(views.numbers("thrown"), mirror.grad_input[0, 0])
    assert same(views.numbers("kept"), mirror.grad_input[0, 0])
    # every g throws …
    views.scrub(4)
    mirror.grad_output = mirror.grad_output * (np.arange(6).reshape(1, 1, 2, 3) < 4)
    assert same(views.numbers("thrown"), mirror.grad_input[0, 0])
    assert np.isnan(views.numbers("kept")).all()
    assert views.sheet("thrown").locator(".cg-partner").count() == 9, "the window of g[1,0]"
    expect(views.words).to_contain_text("throws g·w into its window of grad_input[0,0], from row 2")
    # … and then every cell collects
    views.scrub(6 + 17)
    whole = GradientViews(example("C")).grad_input[0, 0]
    collected = np.where(np.arange(g.H * g.W).reshape(g.H, g.W) < 17, whole, np.nan)
    assert same(views.numbers("kept"), collected)
    expect(views.words).to_contain_text("grad_input[0,0,2,2] collects 4 products")
    tab.assert_clean()


def test_the_taps_that_are_met_are_the_kernel_turned(tab, views):
    views.load("B")
    views.see(SCATTER)
    weight = example("B").arrays().weight[0, 0]
    # at rest the cell in the middle is shown, which meets the whole kernel
    assert same(views.numbers("met"), weight[::-1, ::-1])
    assert same(views.numbers("w"), weight)
    taps = (
        views.sheet("met")
        .locator(".cg-cell")
        .evaluate_all("(cells) => cells.map((cell) => cell.dataset.corner)")
    )
    assert taps == ["2,2", "2,1", "2,0", "1,2", "1,1", "1,0", "0,2", "0,1", "0,0"]
    # with a stride, gaps; each cell its own
    views.turn("stride", 2)
    views.turn("padding", 1)
    for h, v in [(2, 2), (1, 1), (2, 1), (0, 0)]:
        views.cell("kept", h, v).click()
        rows = [i for i in (2, 1, 0) if (h + 1 - i) % 2 == 0 and 0 <= (h + 1 - i) // 2 < 3]
        cols = [j for j in (2, 1, 0) if (v + 1 - j) % 2 == 0 and 0 <= (v + 1 - j) // 2 < 3]
        expected = np.full((3, 3), np.nan)
        for i in rows:
            for j in cols:
                expected[2 - i, 2 - j] = weight[i, j]
        assert same(views.numbers("met"), expected), (h, v)
        assert views.sheet("g2").locator(".cg-partner").count() == len(rows) * len(cols)
        assert views.sheet("met").locator(".cg-gap").count() == 9 - len(rows) * len(cols)
    tab.assert_clean()


def test_a_tap_that_is_met_can_be_looked_at(views):
    views.load("B")
    views.see(SCATTER)
    views.cell("kept", 1, 1).focus()
    assert np.isnan(views.numbers("met")).sum() == 5
    views.page.keyboard.press("Shift+Tab")  # back to the taps, which stay
    expect(views.sheet("met").locator(":focus")).to_have_count(1)
    assert np.isnan(views.numbers("met")).sum() == 5
    views.cell("met", 1, 1).focus()
    expect(views.words).to_contain_text("w[0,0,1,1] meets g[0,0,0,0]")
    expect(views.words).to_contain_text("turned by 180°")
    expect(views.sheet("g2").locator(".cg-partner")).to_have_count(1)
    views.cell("met", 0, 0).focus()
    expect(views.words).to_contain_text("meets nothing")


def test_what_is_thrown_on_padding_is_lost_and_copies_come_back(tab, views):
    views.load("A")
    views.see(SCATTER)
    views.cell("g", 0, 0).hover()
    expect(views.words).to_contain_text("15 of 16 products are lost on padding")
    views.cell("thrown", -1, 0).focus()
    expect(views.words).to_contain_text("zero padding: what lands here is lost")
    mirror = GradientViews(example("A"))
    mirror.geometry = {**mirror.geometry.as_dict(), "padding_mode": "replicate"}
    views.root.locator("details.cg-knobs summary").click()
    views.root.locator("details.cg-knobs select").first.select_option("replicate")
    assert same(views.numbers("kept"), mirror.grad_input[0, 0])
    expect(views.sheet("met").locator(".cg-note")).to_contain_text("more by copies on the border")
    views.cell("thrown", -1, 0).focus()
    expect(views.words).to_contain_text("a copy of x[0,0,0,0] = 2")
    tab.assert_clean()


def test_x_is_searched_with_g_and_what_is_left_over_falls_away(tab, views):
    views.load("C")
    views.see(SEARCH)
    mirror = GradientViews(example("C"))
    for n in (0, 1):
        views.pick("image", str(n))
        assert same(views.numbers("x"), mirror.x[n, 0])
        assert same(views.numbers("taps"), mirror.image_shares[n, 0, 0])
        spread = np.full((3, 5), np.nan)
        spread[::2, ::2] = mirror.grad_output[n, 0]
        assert same(views.numbers("g"), spread), "its cells stand a stride apart"
    fallen = views.sheet("taps").locator(".cg-pad.cg-under")
    expect(fallen).to_have_count(3)
    assert fallen.first.evaluate("(cell) => getComputedStyle(cell).textDecorationLine") == (
        "line-through"
    )
    expect(views.sheet("taps")).to_contain_text("struck out: cropped, no such taps")
    expect(views.words).to_contain_text("1 row cropped, 4×3 to 3×3")
    top = fallen.first.bounding_box()["y"]
    views.scrub(12)  # all taps, not yet cropped
    views.page.wait_for_timeout(500)
    assert fallen.first.bounding_box()["y"] == pytest.approx(top - 8, abs=1)
    views.scrub(11)
    expect(views.words).to_contain_text("there is no tap (3, 1)")
    views.scrub(5)  # tap (1, 1)
    expect(views.words).to_contain_text("image 1’s share of grad_weight[0,0,1,1], g laid on x")
    marked = (
        views.sheet("x")
        .locator(".cg-partner")
        .evaluate_all(
            "(cells) => cells.map((cell) => [cell.dataset.row, cell.dataset.col].map(Number))"
        )
    )
    assert marked == [[h, v] for h in (1, 3) for v in (1, 3, 5)]
    assert views.cell("x", 1, 3).get_attribute("data-corner") == "×" + (
        f"{mirror.grad_output[1, 0, 0, 1]:g}".replace("-", "−")
    )
    tab.assert_clean()


def test_pages_add_up_in_each_group(tab, views):
    views.see(BATCH)
    mirror = GradientViews(example("D"))
    g = mirror.geometry
    views.pick("kernel", "1")
    views.pick("channel", "1")
    for step in range(7):
        views.scrub(step)
        for k in range(2):
            o = 3 * k + 1
            added = [n for n in range(3) if n * 2 + k < step]
            for n in range(3):
                assert same(views.numbers(f"page {n} {k}"), mirror.image_shares[n, o, 1])
                sheet = views.sheet(f"page {n} {k}")
                assert ("cg-to-come" in sheet.get_attribute("class")) == (n not in added)
            drawn = views.numbers(f"sum 0 {k}")
            if added:
                assert same(drawn, mirror.image_shares[added, o, 1].sum(axis=0)), (step, k)
            else:
                assert np.isnan(drawn).all()
    assert same(views.numbers("sum 0 1"), mirror.grad_weight[4, 1])
    # a group has its letter, and besides a colour and a border of its own
    letters = views.stage.locator(".cg-leaf .cg-title b").all_inner_texts()
    assert letters == ["A", "B"] * 4
    looks = [
        views.sheet(f"page 0 {k}")
        .locator(".cg-grid-body")
        .evaluate(
            "(body) => [getComputedStyle(body).borderTopColor,"
            " getComputedStyle(body).borderTopStyle]"
        )
        for k in range(2)
    ]
    assert looks[0][0] != looks[1][0] and looks[0][1] != looks[1][1]
    views.cell("sum 0 1", 2, 1).hover()
    expect(views.words).to_contain_text("grad_weight[4,1,2,1] = ")
    expect(views.words).to_contain_text("the shares of images 0, 1, 2")
    views.cell("page 2 0", 0, 1).hover()
    expect(views.words).to_contain_text("image 2’s share of grad_weight[1,1,0,1] is ")
    assert g.groups == 2
    tab.assert_clean()


# ---- playing, editing, knobs, tools ----------------------------------------------------------


@pytest.mark.parametrize("view", ALL)
def test_every_view_plays_to_its_end(tab, views, view):
    views.see(view)
    before = views.stage.inner_text()
    length = views.count.inner_text().split(" / ")[1]
    views.root.get_by_label("speed, steps a second").select_option("60")
    views.button("play").click()
    expect(views.button("play")).to_be_visible()
    expect(views.count).to_have_text(f"{length} / {length}", timeout=10_000)
    assert views.stage.inner_text() == before, "the end is what stood there"
    tab.assert_clean()


@pytest.mark.parametrize(
    ("view", "place", "operand", "index"),
    [
        (KERNELS, "w", "weight", (5, 0, 1, 0)),
        (SCATTER, "g", "grad_output", (0, 0, 1, 0)),
        (SEARCH, "x", "x", (0, 0, 1, 0)),
        (SEARCH, "g", "grad_output", (0, 0, 1, 0)),
        (BATCH, "x", "x", (2, 2, 1, 0)),
    ],
)
def test_numbers_can_be_edited_in_every_view(tab, views, view, place, operand, index):
    mirror = GradientViews(example("D"))
    views.see(view)
    views.cell(place, 1, 0).click()
    field = views.sheet(place).get_by_role("textbox")
    field.fill("9")
    field.press("Enter")
    array = getattr(mirror, operand).copy()
    array[index] = 9
    setattr(mirror, operand, array)
    expect(views.cell(place, 1, 0)).to_have_text("9")
    views.see(KERNELS)
    views.pick("kernel", "A 0")
    assert same(views.numbers("all"), mirror.grad_input[0, 0])
    assert same(views.numbers("own"), mirror.grad_weight[0, 0])
    views.button("undo").click()
    assert same(views.numbers("all"), GradientViews(example("D")).grad_input[0, 0])
    tab.assert_clean()


def test_between_the_cells_of_g_nothing_can_be_edited(views):
    views.load("C")
    views.see(SEARCH)
    views.cell("g", 0, 1).hover()
    expect(views.words).to_contain_text("a gap between two cells of g")
    views.cell("g", 0, 1).click()
    views.sheet("g").get_by_role("textbox").fill("3")
    views.sheet("g").get_by_role("textbox").press("Enter")
    expect(views.message).to_contain_text("between two cells of g no number is edited")


def test_an_impossible_geometry_is_explained_in_place(tab, views):
    views.turn("groups", 4)
    with pytest.raises(GeometryError) as python:
        ConvGeometry(**{**example("D").geometry.as_dict(), "groups": 4})
    expect(views.message).to_be_visible()
    assert views.message.inner_text().startswith(str(python.value))
    views.turn("groups", 2)
    expect(views.message).to_be_hidden()
    tab.assert_clean()


def test_any_stride_dilation_and_padding(tab, views):
    changes = {"height H": 8, "width W": 9, "stride": 2, "padding": 1, "dilation": 2}
    mirror = GradientViews(example("D"))
    for label, value in changes.items():
        views.turn(label, value)
        mirror.geometry = {**mirror.geometry.as_dict(), label.split()[-1]: value}
    expect(views.message).to_be_hidden()
    views.pick("kernel", "B 3")
    assert same(views.numbers("share"), mirror.kernel_shares[3, 0, 2])
    views.see(SEARCH)
    views.pick("kernel", "B 3")
    assert same(views.numbers("taps"), mirror.image_shares[0, 3, 0])
    tab.assert_clean()


def test_a_view_travels_in_a_link_and_as_pytorch_code(views, visit):
    views.see(BATCH)
    views.pick("kernel", "2")
    views.scrub(3)
    link = views.copied("copy link")
    assert "view=batch" in link and "kernel=2" in link
    other = Views(visit().goto(link, settle=False))
    expect(other.root.get_by_role("radio", name=BATCH)).to_be_checked()
    expect(other.count).to_have_text("3 / 6")
    assert other.stage.inner_text() == views.stage.inner_text()
    program = views.copied("copy as PyTorch code")
    assert "for k in range(3):  # each image alone" in program
    views.see(SEARCH)
    assert "# stride and dilation have changed places" in views.copied("copy as PyTorch code")
    # what is printed is what stands there: one kernel's share, and not all of grad_input
    views.see(SCATTER)
    views.pick("image", "1")
    views.pick("kernel", "B 4")
    program = views.copied("copy as PyTorch code")
    assert "print(share[1, 2])  # kernel 4's share of grad_input[1, 2]" in program


# ---- for everybody ---------------------------------------------------------------------------


def test_it_works_by_keyboard_alone(tab, views):
    keyboard = views.page.keyboard
    views.root.get_by_role("radio", name=KERNELS).focus()
    keyboard.press("ArrowRight")
    expect(views.root.get_by_role("radio", name=SCATTER)).to_be_checked()
    views.stage.focus()
    keyboard.press("Home")
    for key, said in [("ArrowRight", "1 / 29"), ("ArrowRight", "2 / 29"), ("ArrowLeft", "1 / 29")]:
        keyboard.press(key)
        expect(views.count).to_have_text(said)
    expect(views.live).to_contain_text("g[0,0,0,0] = ")
    expect(views.live).to_contain_text("throws")
    keyboard.press("End")
    keyboard.press("Tab")  # into g on the left
    keyboard.press("ArrowRight")
    expect(views.words).to_contain_text("g[0,0,0,1]")
    expect(views.live).to_contain_text("g[0,0,0,1]")
    keyboard.press("Tab")  # w
    expect(views.words).to_contain_text("w[0,0,0,0] = ")
    keyboard.press("Enter")
    keyboard.type("7")
    keyboard.press("Enter")
    expect(views.cell("w", 0, 0)).to_have_text("7")
    keyboard.press("Control+z")
    expect(views.cell("w", 0, 0)).not_to_have_text("7")
    tab.assert_clean()


@pytest.mark.parametrize("view", ALL)
def test_everything_can_be_reached_by_tab(views, view):
    """Tab walks through choices, grids and buttons; each stop shows where it is."""
    views.see(view)
    views.root.get_by_role("button").first.focus()
    stops, grids = set(), set()
    for _ in range(60):
        views.page.keyboard.press("Tab")
        name, place, inside, outlined = views.page.evaluate(
            """() => {
              const at = document.activeElement;
              const shown = at.matches("input[type=radio]") ? at.nextElementSibling : at;
              const style = getComputedStyle(shown);
              return [at.getAttribute("role") ?? at.tagName,
                at.closest("[data-place]")?.dataset.place ?? "",
                at.closest(".cg-views") !== null,
                style.outlineStyle !== "none" || at.matches("input[type=range]")];
            }"""
        )
        if not inside:
            break
        assert outlined, f"nothing shows that the focus is on {name} {place}"
        stops.add(name)
        grids.add(place)
    assert {"INPUT", "BUTTON", "SUMMARY", "gridcell"} <= stops
    drawn = views.stage.locator("[role=grid]").count()
    assert len(grids - {""}) == drawn, "each grid is one stop"
    names = views.stage.locator("[role=grid]").evaluate_all(
        "(grids) => grids.map((grid) => grid.getAttribute('aria-label'))"
    )
    assert all(re.match(r"\w", name) for name in names)


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    page = pages_showing("GradientViews")[0]
    views = Views(visit(width=width, height=700, touch=True).goto(f"{page}.html"))
    for letter in "CD":
        views.load(letter)
        for view in ALL:
            views.see(view)
            room, needed = views.page.evaluate(
                "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
            )
            assert needed == room, (letter, view)
            for grid in views.stage.get_by_role("grid").all():
                box = grid.bounding_box()
                assert box["x"] >= 0 and box["x"] + box["width"] <= width, (letter, view)
    views.see(SCATTER)
    views.cell("kept", 2, 2).tap()
    expect(views.words).to_contain_text("grad_input[0,0,2,2] collects")
    for name in TOOLS:
        box = views.button(name).bounding_box()
        assert box["height"] >= 43.5, name
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, name


def test_reduced_motion_is_honoured(visit):
    page = pages_showing("GradientViews")[0]
    for reduced in (False, True):
        views = Views(visit(reduced_motion=reduced).goto(f"{page}.html"))
        views.see(BATCH)
        views.scrub(0)
        views.page.wait_for_timeout(400)
        views.button("one step on").click()
        running = views.page.evaluate(
            "() => document.getAnimations().filter((each) =>"
            " each.effect?.target?.closest('.cg-views')).length"
        )
        assert (running == 0) == reduced


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_can_be_read_and_axe_finds_nothing(visit, axe, dark):
    page = pages_showing("GradientViews")[0]
    views = Views(visit(dark=dark, reduced_motion=True).goto(f"{page}.html"))
    views.turn("groups", 7)  # impossible: the message is read too
    states = [
        (view, letter, step)
        for letter in "CD"
        for view, steps in ((KERNELS, (1,)), (SCATTER, (3,)), (SEARCH, (5, 99)), (BATCH, (1, 99)))
        for step in steps
    ]
    for view, letter, step in states:
        views.load(letter)
        views.see(view)
        longest = int(views.count.inner_text().split(" / ")[1])
        views.scrub(min(step, longest))
        found = views.page.evaluate(FAINT_TEXT)
        assert found["measured"] > 60
        assert not found["faint"], (view, letter, step)
        assert not axe(views.root), (view, letter, step)


@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_keeps_still_when_it_starts(visit, width):
    """Its fallback has kept the room."""
    page = pages_showing("GradientViews")[0]
    measure = """(hosts) => hosts.map((host) => host.offsetHeight)"""
    hosts = ".cg-widget:has(figure.cg-fallback)"
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(f"{page}.html", settle=False).locator(hosts).evaluate_all(measure)
    live = visit(width=width).goto(f"{page}.html")
    after = live.locator(hosts).evaluate_all(measure)
    ours = live.locator(hosts).evaluate_all(
        "(hosts) => hosts.map((host) => host.querySelector('.cg-views') !== null)"
    )
    assert sum(ours) >= 2
    # 32 pixels: a line of text, with the space around it
    for kept, used, mine in zip(before, after, ours, strict=True):
        assert not mine or abs(kept - used) <= 32, (kept, used)


def test_without_javascript_the_picture_and_a_sum_are_there(visit):
    page = visit(javascript=False).goto(f"{pages_showing('GradientViews')[0]}.html", settle=False)
    figure = page.locator("figure.cg-fallback").filter(has_text="Kernel by kernel")
    expect(figure.locator("svg")).to_be_visible()
    expect(figure.locator(".cg-formula")).to_contain_text("one term a kernel")
    searched = page.locator("figure.cg-fallback").filter(has_text="As a convolution")
    expect(searched.locator(".cg-formula")).to_contain_text("grad_weight[0,0,1,1] = ")


def test_on_paper_the_fallback_stands_in(visit):
    page = visit().goto(f"{pages_showing('GradientViews')[0]}.html")
    page.emulate_media(media="print")
    figure = page.locator("figure.cg-fallback").filter(has_text="Kernel by kernel")
    expect(figure).to_be_visible()
    expect(page.locator(".cg-views").first).not_to_be_in_viewport()
