"""ShardSum in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from contents import FAINT_TEXT, pages_showing, tab_stops
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError, example
from convgrad.shards import deal, ring_steps
from convgrad.widgets import ShardSum

pytestmark = pytest.mark.browser
WIDGET = "shard_sum"

PAGE = "book/gallery"  # it has both views, each before its first step
# example D on three devices, and example B's rows on three: the steps by name
PARTS, REDUCED, GATHERED, COMPARED = 1, 3, 5, 6
SENT, FORWARD, PARTS_OF_ROWS, SPREAD, BACK, SAME = 1, 2, 3, 4, 5, 6


class Shards:
    """A view of devices, by the names that a screen reader would say."""

    def __init__(self, page: Page, which: int = 0) -> None:
        self.page = page
        self.root = page.get_by_role("region", name=re.compile("^Several devices")).nth(which)
        self.stage = self.root.get_by_role("group", name=re.compile("^devices; "))
        self.bench = self.root.get_by_role("group", name="numbers of what is looked at")
        self.words = self.root.locator(".cg-spelled")
        self.live = self.root.locator("[aria-live=polite]")
        self.message = self.root.get_by_role("alert")
        self.shares = self.root.get_by_label("shares", exact=True)
        self.devices = self.root.get_by_label("devices", exact=True)

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def choose(self, legend: str, name: str) -> None:
        self.root.get_by_role("group", name=legend).get_by_role(
            "radio", name=name, exact=True
        ).check()

    def scrub(self, step: int) -> None:
        self.root.get_by_role("slider", name="step").fill(str(step))

    def deal(self, shares: str) -> None:
        self.shares.fill(shares)
        self.shares.press("Tab")

    def turn(self, label: str, value: int | str) -> None:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        field = knobs.get_by_label(label, exact=True)
        field.fill(str(value))
        field.press("Tab")

    def chunk(self, device: int, chunk: int) -> Locator:
        return self.stage.get_by_role(
            "option", name=re.compile(f"^device {device}, chunk {chunk}:")
        )

    def strip(self, device: int) -> Locator:
        return self.stage.get_by_role("group", name=f"device {device}", exact=True)


def numbers(grid: Locator) -> np.ndarray:
    """The numbers of a grid; nan where nothing stands."""
    rows = grid.evaluate(
        """(grid) => [...grid.querySelectorAll("[role=row]")].map((row) => [...row.children]
          .map((cell) => Number((cell.title || cell.textContent || "NaN").replace("−", "-"))))"""
    )
    return np.array(rows, dtype=float)


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def images(tab) -> Shards:
    """Example D on three devices, before its first step."""
    shards = Shards(tab.goto(f"{PAGE}.html"))
    shards.root.scroll_into_view_if_needed()
    expect(shards.shares).to_have_value("1 + 1 + 1")
    return shards


@pytest.fixture
def rows(tab) -> Shards:
    """The rows of example B on three devices, before the first step."""
    shards = Shards(tab.goto(f"{PAGE}.html"), 1)
    shards.root.scroll_into_view_if_needed()
    expect(shards.shares).to_have_value("1 + 1 + 1")
    return shards


# ---- images ------------------------------------------------------------------------------------


def test_every_chunk_in_every_step_of_the_ring_is_pythons(tab, images):
    widget = ShardSum(example("D"))
    states, steps = widget.ring, ring_steps(3)
    chunks = [list(each) for each in deal(widget.whole.size, 3)]
    expect(images.chunk(0, 0)).to_have_accessible_name("device 0, chunk 0: not computed yet")
    for step, state in enumerate(states):
        images.scrub(PARTS + step)
        for device in range(3):
            for c, chunk in enumerate(chunks):
                text = images.chunk(device, c).inner_text().replace("−", "-")
                assert float(text.split("\n")[1]) == state[device][chunk[0]], (step, device, c)
        if not step:
            continue
        send = steps[step - 1][0]
        had, came, now = (numbers(g).ravel() for g in images.bench.get_by_role("grid").all())
        mine = chunks[send.chunk]
        before = states[step - 1]
        assert np.array_equal(had[: len(mine)], before[send.receiver][mine])
        assert np.array_equal(came[: len(mine)], before[send.sender][mine])
        assert np.array_equal(now[: len(mine)], state[send.receiver][mine])
        assert np.isnan(now[len(mine) :]).all()
    tab.assert_clean()


def test_in_the_end_every_device_holds_what_one_device_computes(images):
    widget = ShardSum(example("D"))
    images.scrub(GATHERED)
    for device in range(3):
        for chunk in range(3):
            expect(images.chunk(device, chunk)).to_contain_text("all")
    images.scrub(COMPARED)
    expect(images.words).to_contain_text("every device holds what one device computes")
    expect(images.words).to_contain_text("104 numbers, 416 bytes in float32: 2·(3 − 1)/3 of 78")
    for c, chunk in enumerate(deal(widget.whole.size, 3)):
        images.chunk(2, c).hover()
        held, alone = (numbers(grid).ravel() for grid in images.bench.get_by_role("grid").all())
        assert np.array_equal(held[: len(chunk)], widget.whole[list(chunk)])
        assert np.array_equal(alone[: len(chunk)], widget.whole[list(chunk)])


def test_a_number_of_the_bench_says_what_each_device_has_of_it(images):
    widget = ShardSum(example("D"))
    images.scrub(REDUCED)
    images.chunk(1, 2).click()
    images.bench.get_by_role("gridcell").nth(2).hover()
    k = deal(widget.whole.size, 3)[2].start + 2
    o, c, i, j = np.unravel_index(k, widget.weight.shape)
    terms = [f"({x:g})" if x < 0 else f"{x:g}" for x in (bucket[k] for bucket in widget.buckets)]
    said = f"grad_weight[{o},{c},{i},{j}] = {' + '.join(terms)} = {widget.whole[k]:g}, one term"
    expect(images.words).to_contain_text(said.replace("-", "−"))


def test_averaging_makes_a_sum_loss_too_small_and_mean_losses_right(tab, images):
    images.choose("gradients of devices", "averaged")
    images.button("to the end").click()
    expect(images.words).to_contain_text("3 times too small")
    grids = images.bench.get_by_role("grid")
    widget = ShardSum(example("D"), combine="average")
    assert np.allclose(numbers(grids.first).ravel()[:26], widget.agreed[:26])
    assert np.array_equal(numbers(grids.last).ravel()[:26], widget.whole[:26])
    images.choose("loss", "mean")
    images.button("to the end").click()
    expect(images.words).to_contain_text("every device holds what one device computes")
    tab.assert_clean()


def test_uneven_shares_of_a_mean_weigh_images_unequally(tab, images):
    images.deal("2+1")
    expect(images.devices).to_have_value("2")
    expect(images.shares).to_have_value("2 + 1")
    images.choose("loss", "mean")
    images.choose("gradients of devices", "averaged")
    images.button("to the end").click()
    expect(images.words).to_contain_text(
        "an image of device 0 by 1/4, of device 1 by 1/2, and not 1/3"
    )
    widget = ShardSum(example("D"), devices=[2, 1], loss="mean", combine="average")
    assert np.array_equal(numbers(images.bench.get_by_role("grid").first)[0], widget.agreed[:6])
    images.scrub(PARTS)
    images.chunk(0, 0).hover()
    titles = images.bench.locator(".cg-title").all_inner_texts()
    assert titles == ["image 0", "image 1", "device 0"]
    tab.assert_clean()


def test_shares_that_do_not_add_up_are_explained_in_place(tab, images):
    images.deal("2 + 2")
    expect(images.message).to_contain_text(
        "the shares are 2 + 2 = 4: needed are up to 8 shares of 3"
    )
    expect(images.devices).to_have_value("3")
    images.button("fewer devices").click()
    expect(images.message).to_be_hidden()
    expect(images.shares).to_have_value("2 + 1")
    images.devices.fill("99")
    images.devices.press("Tab")
    expect(images.shares).to_have_value("1 + 1 + 1")
    expect(images.button("more devices")).to_be_disabled()
    tab.assert_clean()


def test_numbers_of_an_image_can_be_edited(images):
    widget = ShardSum(example("D"))
    images.stage.get_by_role("option", name="image 1", exact=True).click()
    grid = images.bench.get_by_role("grid", name=re.compile(r"^x\[1,0\]"))
    grid.locator('[data-row="2"][data-col="1"]').click()
    grid.get_by_role("textbox").fill("9")
    grid.get_by_role("textbox").press("Enter")
    x = widget.x.copy()
    x[1, 0, 2, 1] = 9
    widget.x = x
    assert numbers(grid)[2, 1] == 9
    images.scrub(PARTS)
    images.chunk(1, 0).hover()
    assert np.array_equal(
        numbers(images.bench.get_by_role("grid")).ravel()[:26], widget.buckets[1][:26]
    )


def test_shares_are_in_the_link_and_undo_brings_them_back(visit, images):
    images.deal("1 + 2")
    images.scrub(2)
    images.page.wait_for_function("() => location.hash.includes('shares=1-2')")
    other = Shards(visit().goto(images.page.url, settle=False))
    expect(other.shares).to_have_value("1 + 2")
    expect(other.root.locator("output")).to_have_text("2 / 4")
    images.button("undo").click()
    expect(images.shares).to_have_value("1 + 1 + 1")


# ---- rows --------------------------------------------------------------------------------------


def test_the_halo_comes_with_the_messages(tab, rows):
    widget = ShardSum(example("B"), view="rows")
    x = widget.x[0, 0]
    expect(rows.words).to_contain_text("it reads from 1·1 + 1·0 − 0 = 1 to 1·1 + 1·2 − 0 = 3")
    for step in (0, SENT):
        rows.scrub(step)
        for shard in widget.shards:
            drawn = numbers(rows.strip(shard.device).get_by_role("grid", name=re.compile("^x")))
            for k, h in enumerate(shard.block):
                there = step == SENT or h in shard.owned
                expected = x[h] if there else np.full_like(x[h], np.nan)
                assert np.array_equal(drawn[k], expected, equal_nan=True), (step, shard.device, h)
    expect(rows.words).to_contain_text("row 2 (1 → 0); row 1 (0 → 1)")
    expect(rows.words).to_contain_text("20 numbers, 80 bytes")
    names = rows.strip(1).locator(".cg-heads-rows > span").all_inner_texts()
    assert names == ["row 1, from 0", "row 2", "row 3, from 2"]
    assert rows.strip(1).locator(".cg-halo").count() == 10
    tab.assert_clean()


def test_parts_of_rows_add_up_to_both_gradients(tab, rows):
    widget = ShardSum(example("B"), view="rows")
    y = np.concatenate([part.grad_weight for part in widget.parts])
    rows.scrub(PARTS_OF_ROWS)
    for r in range(3):
        grid = rows.strip(r).get_by_role("grid", name=re.compile("^part of grad_weight"))
        assert np.array_equal(numbers(grid), y[r, 0])
    rows.scrub(BACK)
    whole = sum(part.grad_input for part in widget.parts)[0, 0]
    for shard in widget.shards:
        strip = rows.strip(shard.device)
        part = numbers(strip.get_by_role("grid", name=re.compile("^part of grad_input")))
        own = numbers(strip.get_by_role("grid", name="its rows, added up"))
        assert np.array_equal(part, widget.parts[shard.device].grad_input[0, 0][list(shard.block)])
        assert np.array_equal(own, whole[list(shard.owned)])
    # a row that three devices have a part of
    *terms, total = (numbers(grid) for grid in rows.bench.get_by_role("grid").all())
    assert len(terms) == 3
    assert np.array_equal(sum(terms), total)
    assert np.array_equal(total[0], whole[2])
    rows.scrub(SAME)
    *parts, total, alone = (numbers(grid) for grid in rows.bench.get_by_role("grid").all())
    assert np.array_equal(sum(parts), total)
    assert np.array_equal(alone, widget.whole[:9].reshape(3, 3))
    tab.assert_clean()


def test_a_row_is_found_on_all_devices(rows):
    rows.scrub(SENT)
    rows.strip(1).get_by_role("gridcell").first.hover()
    expect(rows.words).to_contain_text("row 1 of x is held by device 0 and read by devices 0, 1")
    assert rows.stage.locator(".cg-with").count() == 10


def test_any_stride_and_padding_and_another_image(tab, rows):
    rows.button(
        "C: A leftover row. Stride 2 reads all columns but not the last row, and two images add up."
    ).click()
    expect(rows.shares).to_have_value("1 + 1")
    rows.turn("padding", 1)
    mirror = ShardSum(example("C"), view="rows")
    mirror.geometry = {**mirror.geometry.as_dict(), "padding": 1}
    assert mirror.shares == (2, 1)
    expect(rows.shares).to_have_value("2 + 1")
    rows.choose("image", "1")
    rows.button("to the end").click()
    whole = sum(part.grad_input for part in mirror.parts)[1, 0]
    for shard in mirror.shards:
        own = rows.strip(shard.device).get_by_role("grid", name="its rows, added up")
        assert np.array_equal(numbers(own), whole[list(shard.owned)])
    expect(rows.words).to_contain_text("grad_input, row by row, is that of one device")
    tab.assert_clean()


def test_from_view_to_view(tab, images):
    images.choose("deal out", "rows")
    expect(images.shares).to_have_value("1 + 1 + 1")
    expect(images.root.get_by_role("group", name="loss")).to_be_hidden()
    expect(images.strip(2)).to_be_visible()
    images.choose("kernel", "5")
    images.choose("channel", "1")
    images.scrub(PARTS_OF_ROWS)
    widget = ShardSum(example("D"), view="rows")
    for r, part in enumerate(widget.parts):
        grid = images.strip(r).get_by_role("grid", name=re.compile("^part of"))
        assert np.array_equal(numbers(grid), part.grad_weight[5, 1])
    images.choose("deal out", "images")
    expect(images.chunk(0, 0)).to_be_visible()
    tab.assert_clean()


def test_an_impossible_geometry_is_explained_in_place(tab, rows):
    rows.turn("height KH", 6)
    with pytest.raises(GeometryError) as python:
        ConvGeometry(**{**example("B").geometry.as_dict(), "KH": 6})
    expect(rows.message).to_be_visible()
    assert rows.message.inner_text().startswith(str(python.value))
    tab.assert_clean()


# ---- for everybody -----------------------------------------------------------------------------


def test_it_plays_to_the_end(tab, images):
    images.root.get_by_label("speed, steps a second").select_option("16")
    images.button("play").click()
    expect(images.root.locator("output")).to_have_text("6 / 6", timeout=10_000)
    tab.assert_clean()


def test_it_works_by_keyboard_alone(tab, images):
    keyboard = images.page.keyboard
    images.stage.focus()
    for key, said in [("ArrowRight", "1 / 6"), ("ArrowRight", "2 / 6"), ("ArrowLeft", "1 / 6")]:
        keyboard.press(key)
        expect(images.root.locator("output")).to_have_text(said)
    expect(images.live).to_contain_text("each device adds up its own images")
    keyboard.press("Tab")  # among the chunks
    keyboard.press("ArrowRight")
    expect(images.live).to_contain_text("chunk 1 is grad_weight[2,0,1,0]")
    keyboard.press("ArrowDown")
    expect(images.chunk(1, 1)).to_be_focused()
    expect(images.live).to_contain_text("device 1 has in it the parts of 1")
    keyboard.press("ArrowLeft")
    keyboard.press("ArrowLeft")
    expect(images.stage.get_by_role("option", name="image 1", exact=True)).to_be_focused()
    expect(images.bench.get_by_role("grid").first).to_have_accessible_name(re.compile(r"^x\[1,0\]"))
    tab.assert_clean()


def test_everything_can_be_reached_by_tab(images):
    """Tab walks through choices, chunks and buttons; each stop shows where it is."""
    images.root.get_by_role("button").first.focus()
    stops = tab_stops(images.page, ".cg-shards", most=40)
    assert {"option", "gridcell"} <= stops
    assert any(stop.startswith("BUTTON: play") for stop in stops)
    assert any(stop.startswith("INPUT") for stop in stops)


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    page = visit(width=width, height=700, touch=True).goto(f"{PAGE}.html")
    for which, steps in [(0, (0, PARTS, REDUCED, COMPARED)), (1, (0, SENT, BACK, SAME))]:
        shards = Shards(page, which)
        shards.root.scroll_into_view_if_needed()
        expect(shards.shares).to_be_visible()
        for step in steps:
            shards.scrub(step)
            room, needed = page.evaluate(
                "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
            )
            assert needed == room, (which, step)
            for tile in shards.stage.locator("[role=option]:visible, .cg-grid:visible").all():
                box = tile.bounding_box()
                assert box["x"] >= 0 and box["x"] + box["width"] <= width, (which, step)
    shards = Shards(page)
    shards.scrub(PARTS)
    shards.chunk(2, 1).tap()
    expect(shards.words).to_contain_text("device 2 has in it the parts of 2")


def test_reduced_motion_is_honoured(visit):
    for reduced in (False, True):
        shards = Shards(visit(reduced_motion=reduced).goto(f"{PAGE}.html"))
        expect(shards.shares).to_be_visible()
        shards.scrub(GATHERED - 2)
        shards.button("one step on").click()
        running = shards.page.evaluate(
            "() => document.getAnimations().filter((each) =>"
            " each.effect?.target?.closest('.cg-shards')).length"
        )
        assert (running == 0) == reduced


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_can_be_read_and_axe_finds_nothing(visit, axe, dark):
    page = visit(dark=dark, reduced_motion=True).goto(f"{PAGE}.html")
    shards = Shards(page)
    expect(shards.shares).to_be_visible()
    shards.deal("9")  # impossible: the message is read too
    for step in (0, PARTS, REDUCED, GATHERED, COMPARED):
        shards.scrub(step)
        found = page.evaluate(FAINT_TEXT)
        assert found["measured"] > 60
        assert not found["faint"], step
        assert not axe(shards.root), step
    shards.choose("gradients of devices", "averaged")
    shards.button("to the end").click()
    assert not page.evaluate(FAINT_TEXT)["faint"]
    rows = Shards(page, 1)
    rows.root.scroll_into_view_if_needed()
    expect(rows.shares).to_be_visible()
    rows.turn("padding", 1)
    for step in (0, SENT, FORWARD, PARTS_OF_ROWS, SPREAD, BACK, SAME):
        rows.scrub(step)
        assert not page.evaluate(FAINT_TEXT)["faint"], step
        assert not axe(rows.root), step


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("page", pages_showing("ShardSum"))
def test_the_page_keeps_still_when_it_starts(visit, page, width):
    """Its fallback has kept the room."""
    measure = """(hosts) => hosts.filter((host) => host.querySelector("figure.cg-fallback"))
      .map((host) => host.offsetHeight)"""
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(f"{page}.html", settle=False).locator(".cg-widget").evaluate_all(measure)
    live = visit(width=width).goto(f"{page}.html")
    for dealing in live.locator(".cg-dealing").all():  # comes with the tools, a moment later
        expect(dealing.locator("input").first).to_be_attached()
    after = live.locator(".cg-widget").evaluate_all(measure)
    assert len(before) == len(after) >= 1
    # 24 pixels: about one line of text
    assert all(abs(a - b) <= 24 for a, b in zip(before, after, strict=True)), (before, after)
