"""GroupBlocks in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from contents import FAINT_TEXT, pages_showing, tab_stops
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError, conv2d_backward, example
from convgrad.widgets import GroupBlocks

pytestmark = pytest.mark.browser
WIDGET = "group_blocks"

# Here it stands before its first step; elsewhere a page may begin with another one.
PAGE = "book/gallery"
# example D: the steps at which something is complete
SPLIT, TURNED, LISTED, MET, SUMMED, WEIGHT, DENSE = 1, 2, 3, 9, 10, 11, 12


class Blocks:
    """The first block view of a page, by the names that a screen reader would say."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.get_by_role("region", name="Blocks of groups").first
        self.stage = self.root.get_by_role("group", name=re.compile("^maps; "))
        self.bench = self.root.get_by_role("group", name=re.compile("^numbers of the map"))
        self.words = self.root.locator(".cg-spelled")
        self.live = self.root.locator("[aria-live=polite]")
        self.message = self.root.get_by_role("alert")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def scrub(self, step: int) -> None:
        self.root.get_by_role("slider", name="step").fill(str(step))

    def turn(self, label: str, value: int | str) -> None:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        field = knobs.get_by_label(label, exact=True)
        field.fill(str(value))
        field.press("Tab")

    def table(self, name: str) -> Locator:
        return self.root.get_by_role("listbox", name=re.compile(rf"^maps of {name},"))

    def tile(self, table: str, row: int, col: int) -> Locator:
        return self.table(table).locator(f'[data-at="{row},{col}"]')

    def places(self, table: str) -> dict[tuple[int, int], tuple[int, ...]]:
        """Which map stands where: as the page places it on the screen."""
        found = self.table(table).evaluate(
            """(field) => [...field.querySelectorAll(":scope > :not(.cg-below)")].map((tile) => {
              const [left, top] = tile.style.transform.match(/[\\d.]+/g).map(Number);
              return [tile.dataset.index.split(",").map(Number), top, left];
            })"""
        )
        rows = sorted({top for _, top, _ in found})
        placed = {}
        for k, top in enumerate(rows):
            line = sorted((left, index) for index, y, left in found if y == top)
            placed.update({(k, col): tuple(index) for col, (_, index) in enumerate(line)})
        return placed

    def numbers(self, which: int = -1) -> np.ndarray:
        """The numbers of one grid of the bench, the last one at first."""
        grids = self.bench.get_by_role("grid")
        grid = grids.nth(which) if which >= 0 else grids.last
        rows = grid.evaluate(
            """(grid) => [...grid.querySelectorAll("[role=row]")].map((row) =>
              [...row.children].map((cell) => Number(cell.textContent.replace("−", "-"))))"""
        )
        return np.array(rows, dtype=float)


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def blocks(tab) -> Blocks:
    """The block view of the gallery: example D, before its first step."""
    blocks = Blocks(tab.goto(f"{PAGE}.html"))
    expect(blocks.root).to_be_visible()
    return blocks


def test_maps_move_as_numpy_moves_them(tab, blocks):
    g = example("D").geometry
    x = np.arange(g.N * g.C).reshape(g.N, g.C)
    split = x.reshape(g.N * g.groups, g.CG)
    for step, expected in [(0, x), (SPLIT, split), (TURNED, split.T)]:
        blocks.scrub(step)
        drawn = blocks.places("x")
        assert len(drawn) == x.size
        for at, (n, c) in drawn.items():
            assert expected[at] == x[n, c], (step, at)
    blocks.scrub(DENSE)
    drawn = blocks.places("grad_weight")
    assert len(drawn) == g.O * g.C
    for (o, channel), index in drawn.items():
        if channel // g.CG == g.group_of(o):
            assert (index[0], index[2]) == (channel % g.CG, o)
        else:
            assert index == (o, channel), "a block that does not exist"
    tab.assert_clean()


def test_every_share_and_every_block_is_pythons(tab, blocks):
    widget = GroupBlocks(example("D"))
    g = widget.geometry
    shares = widget.per_image_gradients
    blocks.scrub(MET)
    for n, o, c in [(0, 0, 0), (1, 3, 1), (2, 5, 0)]:
        tile = blocks.table("t").locator(f'[data-index="{c},{n},{o}"]')
        tile.hover()
        assert np.array_equal(blocks.numbers(), shares[n, o, c]), (n, o, c)
        assert np.array_equal(blocks.numbers(0), widget.x[n, g.channel(o, c)])
        assert np.array_equal(blocks.numbers(1), widget.grad_output[n, o])
        expect(blocks.words).to_contain_text(f"x[{n},{g.channel(o, c)}] searched with g[{n},{o}]")
    blocks.scrub(WEIGHT)
    for o, c in itertools.product(range(g.O), range(g.CG)):
        blocks.tile("grad_weight", o, c).hover()
        assert np.array_equal(blocks.numbers(), widget.grad_weight[o, c]), (o, c)
        assert np.array_equal(blocks.numbers(1), shares[1, o, c])
    tab.assert_clean()


def test_a_block_that_does_not_exist_says_why(blocks):
    x, _, _, grad_output = example("D").arrays()
    _, dense, _ = conv2d_backward(grad_output, x, np.zeros((6, 4, 3, 2)))
    blocks.scrub(DENSE)
    expect(blocks.words).to_contain_text("12 of 24 blocks exist")
    zeros = blocks.table("grad_weight").locator(".cg-is-zero")
    expect(zeros).to_have_count(12)
    blocks.tile("grad_weight", 0, 3).hover()
    expect(blocks.words).to_contain_text("kernel 0, group A, never reads channel 3, group B")
    assert np.array_equal(blocks.numbers(), dense[0, 3]), "what it would be without groups"


def test_without_the_transpose_maps_land_in_the_wrong_place(tab, blocks):
    widget = GroupBlocks(example("D"))
    wrong, right = widget.without_transpose.sum(axis=0), widget.grad_weight
    blocks.root.get_by_role("checkbox", name="with the transpose").uncheck()
    blocks.scrub(1)
    expect(blocks.words).to_contain_text("10 of 12 maps stand in a wrong place")
    expect(blocks.table("x").locator(".cg-wrong")).to_have_count(10)
    expect(blocks.tile("x", 0, 1)).to_have_accessible_name("≠ A 0,1, map of x, in the wrong place")
    expect(blocks.tile("x", 0, 1)).to_contain_text("≠")
    blocks.button("to the end").click()
    off = np.argwhere(wrong != right)
    first = tuple(off[0])
    expect(blocks.words).to_contain_text(
        f"Wrong in {len(off)} of {right.size} numbers: "
        f"grad_weight[{','.join(map(str, first))}] is {wrong[first]:g} and should be "
        f"{right[first]:g}"
    )
    blocks.tile("grad_weight", 4, 3).hover()
    assert np.array_equal(blocks.numbers(), right[4, 1]), "what should be stands beside it"
    assert np.array_equal(blocks.numbers(3), wrong[4, 1])
    # with one channel in a group nothing goes wrong, and that is said
    blocks.turn("groups", 1)
    blocks.turn("channels C", 1)
    blocks.scrub(1)
    expect(blocks.words).to_contain_text("here every map stands right by luck")
    tab.assert_clean()


def test_the_sum_left_out_gives_a_gradient_for_each_image(tab, blocks):
    widget = GroupBlocks(example("D"))
    shares = widget.per_image_gradients
    blocks.root.get_by_role("checkbox", name=re.compile("^leave the sum out")).check()
    blocks.button("to the end").click()
    expect(blocks.words).to_contain_text("every image has a gradient of its own")
    for n, o, c in [(0, 1, 0), (2, 3, 1)]:
        blocks.tile("grad_weights", n * 6 + o, c).hover()
        assert np.array_equal(blocks.numbers(), shares[n, o, c])
    expect(blocks.root.locator(".cg-code")).to_contain_text("grad_weights = ")
    # without the transpose the number that it should be is −9, set like all numbers
    blocks.root.get_by_role("checkbox", name="with the transpose").uncheck()
    blocks.button("to the end").click()
    expect(blocks.words).to_contain_text("grad_weights[1,0,0,0,0] is 8 and should be −9")
    tab.assert_clean()


def test_it_plays_to_the_end(tab, blocks):
    blocks.root.get_by_label("speed, steps a second").select_option("16")
    blocks.button("play").click()
    expect(blocks.root.locator("output")).to_have_text("12 / 12", timeout=10_000)
    expect(blocks.button("play")).to_be_visible()
    tab.assert_clean()


def test_the_step_is_marked_in_the_code_and_shapes_are_spelled(blocks):
    code = blocks.root.locator(".cg-code")
    for step, line in [
        (TURNED, "xi = x.reshape(6, 2, 5, 4).transpose(0, 1)"),
        (LISTED, "wi = g.reshape(18, 1, 3, 3)"),
        (MET, "t = F.conv2d(xi, wi, stride=1, padding=0, dilation=1, groups=6)"),
        (SUMMED, "grad_weight = t.reshape(2, 3, 6, 3, 2).sum(1).transpose(0, 1)"),
    ]:
        blocks.scrub(step)
        expect(code.locator(".cg-now")).to_contain_text(line)
    titles = blocks.stage.locator(".cg-title").all_inner_texts()
    assert "x [C/G, N·G, H, W] = [2, 6, 5, 4]" in titles[0].replace("\n", " ")
    assert "[C/G, O, KH, KW] = [2, 6, 3, 2]" in titles[2]


def test_any_stride_dilation_and_leftover_with_the_crop(tab, blocks):
    blocks.turn("height H", 8)
    blocks.turn("width W", 8)
    blocks.turn("stride", 2)
    blocks.turn("padding", 1)
    expect(blocks.message).to_be_hidden()
    mirror = GroupBlocks(example("D"))
    g = ConvGeometry(N=3, C=4, H=8, W=8, O=6, KH=3, KW=2, groups=2, stride=2, padding=1)
    mirror.geometry = {**mirror.geometry.as_dict(), "H": 8}
    for change in ({"W": 8}, {"stride": 2}, {"padding": 1}):
        mirror.geometry = {**mirror.geometry.as_dict(), **change}
    assert mirror.geometry == g
    assert g.surplus == (1, 0)
    blocks.scrub(mirror.steps - 3)
    expect(blocks.words).to_contain_text("crop: the leftover makes 1 row of taps that do not exist")
    blocks.button("to the end").click()
    blocks.tile("grad_weight", 5, 3).hover()
    assert np.array_equal(blocks.numbers(), mirror.grad_weight[5, 1])
    tab.assert_clean()


def test_numbers_can_be_edited_on_the_bench(blocks):
    widget = GroupBlocks(example("D"))
    blocks.scrub(LISTED)
    blocks.tile("g", 0, 8).click()  # image 1, kernel 2
    grid = blocks.bench.get_by_role("grid")
    grid.locator('[data-row="1"][data-col="1"]').click()
    grid.get_by_role("textbox").fill("9")
    grid.get_by_role("textbox").press("Enter")
    grad_output = widget.grad_output.copy()
    grad_output[1, 2, 1, 1] = 9
    widget.grad_output = grad_output
    assert blocks.numbers()[1, 1] == 9
    blocks.scrub(WEIGHT)
    blocks.tile("grad_weight", 2, 1).hover()
    assert np.array_equal(blocks.numbers(), widget.grad_weight[2, 1])


def test_an_impossible_geometry_is_explained_in_place(tab, blocks):
    blocks.turn("groups", 4)
    with pytest.raises(GeometryError) as python:
        ConvGeometry(**{**example("D").geometry.as_dict(), "groups": 4})
    expect(blocks.message).to_be_visible()
    assert blocks.message.inner_text().startswith(str(python.value))
    blocks.turn("groups", 2)
    expect(blocks.message).to_be_hidden()
    tab.assert_clean()


def test_it_works_by_keyboard_alone(tab, blocks):
    keyboard = blocks.page.keyboard
    blocks.stage.focus()
    for key, said in [("ArrowRight", "1 / 12"), ("ArrowRight", "2 / 12"), ("ArrowLeft", "1 / 12")]:
        keyboard.press(key)
        expect(blocks.root.locator("output")).to_have_text(said)
    expect(blocks.live).to_contain_text("reshape: the channels of every image fall apart")
    keyboard.press("ArrowRight")
    keyboard.press("Tab")  # into the maps of x
    expect(blocks.words).to_contain_text("x[0,0] is image 0, channel 0, group A")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowDown")
    expect(blocks.words).to_contain_text("x[0,3] is image 0, channel 3, group B")
    expect(blocks.live).to_contain_text("x[0,3] is image 0")
    keyboard.press("Tab")  # into the maps of g
    expect(blocks.words).to_contain_text("g[0,0]")
    tab.assert_clean()


def test_everything_can_be_reached_by_tab(blocks):
    """Tab walks through choices, maps and buttons; each stop shows where it is."""
    blocks.root.get_by_role("button").first.focus()
    stops = tab_stops(blocks.page, ".cg-groups", most=40)
    assert {"option", "gridcell"} <= stops
    assert any(stop.startswith("BUTTON: play") for stop in stops)
    assert any(stop.startswith("SUMMARY") for stop in stops)


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    blocks = Blocks(visit(width=width, height=700, touch=True).goto(f"{PAGE}.html"))
    for step in (0, TURNED, MET, DENSE):
        blocks.scrub(step)
        room, needed = blocks.page.evaluate(
            "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
        )
        assert needed == room, step
        for tile in blocks.stage.get_by_role("option").all():
            box = tile.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width, step
    blocks.tile("grad_weight", 5, 3).tap()
    expect(blocks.words).to_contain_text("grad_weight[5,1]")


def test_reduced_motion_is_honoured(visit):
    for reduced in (False, True):
        blocks = Blocks(visit(reduced_motion=reduced).goto(f"{PAGE}.html"))
        blocks.button("one step on").click()
        running = blocks.page.evaluate(
            "() => document.getAnimations().filter((each) =>"
            " each.effect?.target?.closest('.cg-groups')).length"
        )
        assert (running == 0) == reduced


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_of_a_map_can_be_read_and_axe_finds_nothing(visit, axe, dark):
    blocks = Blocks(visit(dark=dark, reduced_motion=True).goto(f"{PAGE}.html"))
    blocks.turn("groups", 7)  # impossible: the message is read too
    for wrong, step in [(False, MET), (False, DENSE), (True, 1), (True, DENSE - 1)]:
        blocks.root.get_by_role("checkbox", name="with the transpose").set_checked(not wrong)
        blocks.scrub(step)
        found = blocks.page.evaluate(FAINT_TEXT)
        assert found["measured"] > 60
        assert not found["faint"], (wrong, step)
        assert not axe(blocks.root), (wrong, step)


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("page", pages_showing("GroupBlocks"))
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
