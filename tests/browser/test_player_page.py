"""ContributionPlayer in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from contents import FAINT_TEXT, page_with_two, pages_showing, tab_stops
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError, conv2d_backward, example, ledger
from convgrad.widgets import ContributionPlayer

pytestmark = pytest.mark.browser
WIDGET = "contribution_player"

TARGETS = ("weight", "input", "bias")
ORDERS = ("tap", "position", "kernel")
AXES_OF_GRADIENTS = {"grad_weight": "kernel channel", "grad_input": "image channel"}


class Player:
    """The first player of a page, by the names that a screen reader would say."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.get_by_role("region", name="Contribution player").first
        self.stage = self.root.get_by_role("group", name="grids; space plays, arrow keys step")
        self.live = self.root.locator("[aria-live=polite]")
        self.message = self.root.get_by_role("alert")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def choose(self, name: str) -> None:
        radio = self.page.get_by_role("radio", name=name, exact=True)
        self.root.locator("label").filter(has=radio).click()
        expect(self.root.get_by_role("radio", name=name, exact=True)).to_be_checked()

    def example(self, letter: str) -> None:
        self.root.get_by_role("button", name=re.compile(f"^{letter}: ")).click()

    def knob(self, label: str) -> Locator:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        return knobs.get_by_label(label, exact=True)

    def turn(self, label: str, value: int | str) -> None:
        self.knob(label).fill(str(value))
        self.knob(label).press("Tab")

    def grid(self, name: str) -> Locator:
        grids = self.root.locator(".cg-panel:not(.cg-share)").get_by_role("grid")
        return grids.and_(self.page.get_by_role("grid", name=re.compile(rf"^{name}[,:]")))

    def drawn(self) -> None:
        """Until what was done is on the screen, at the latest with the next frame."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")

    def cell(self, grid: str, row: int, col: int) -> Locator:
        return self.grid(grid).locator(f'[data-row="{row}"][data-col="{col}"]')

    def edit(self, grid: str, row: int, col: int, typed: str) -> None:
        self.cell(grid, row, col).click()
        field = self.grid(grid).get_by_role("textbox")
        field.fill(typed)
        field.press("Enter")

    @property
    def step(self) -> tuple[int, int]:
        step, length = self.root.locator("output").inner_text().split("/")
        return int(step), int(length)

    def numbers(self, name: str) -> np.ndarray:
        """The slice that is shown of an operand or of the gradient."""
        self.drawn()
        rows = self.grid(name).evaluate(
            """(grid) => [...grid.querySelectorAll("[role=row]")]
              .map((row) => [...row.querySelectorAll(".cg-cell:not(.cg-pad)")]
                .map((cell) => Number(cell.textContent.replace("−", "-"))))
              .filter((row) => row.length)"""
        )
        return np.array(rows, dtype=float)

    def whole(self, name: str, title: str, shape: tuple[int, ...]) -> np.ndarray:
        """All slices of an array, looked at one after the other."""
        self.drawn()
        if len(shape) == 1:
            return self.numbers(name).reshape(shape)
        if shape[0] * shape[1] == 1:
            return self.numbers(name).reshape(shape)
        overview = self.root.get_by_role("group", name=f"slices of {title}", exact=True)
        kinds = {"x": "image channel", "w": "kernel channel", "g": "image kernel"}
        first, second = (kinds | AXES_OF_GRADIENTS)[title].split()
        slices = []
        for a, b in itertools.product(range(shape[0]), range(shape[1])):
            label = re.compile(f"^show {first} {a}, {second} {b}(, group .)?$")
            overview.get_by_role("button", name=label).click()
            slices.append(self.numbers(name))
        return np.array(slices).reshape(shape)

    def gradient(self, target: str, geometry: ConvGeometry) -> np.ndarray:
        shape = {
            "weight": geometry.weight_shape,
            "input": geometry.x_shape,
            "bias": (geometry.O,),
        }[target]
        return self.whole(f"grad_{target}", f"grad_{target}", shape)


def gradients(geometry: ConvGeometry, x, weight, grad_output) -> dict[str, np.ndarray]:
    """The package's answer, by target."""
    grad_input, grad_weight, grad_bias = conv2d_backward(
        grad_output,
        x,
        weight,
        stride=geometry.stride,
        padding=geometry.padding,
        dilation=geometry.dilation,
        groups=geometry.groups,
        padding_mode=geometry.padding_mode,
    )
    return {"input": grad_input, "weight": grad_weight, "bias": grad_bias}


def after(steps: int, geometry, target: str, order: str, arrays) -> np.ndarray:
    """The gradient when only the first steps have fallen, from the ledger."""
    shape = {"weight": geometry.weight_shape, "input": geometry.x_shape, "bias": (geometry.O,)}
    sums = np.zeros(shape[target])
    played = ledger.contributions(geometry, target, order, include_padding=True)
    for each in itertools.islice(played, steps):
        if each.target is not None:
            sums[each.target] += ledger.product(
                each, target, x=arrays.x, weight=arrays.weight, grad_output=arrays.grad_output
            )
    return sums


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def player(tab) -> Player:
    """The player of the first page that has one: example B, filling grad_weight tap by tap."""
    player = Player(tab.goto(f"{pages_showing('ContributionPlayer')[0]}.html"))
    expect(player.root).to_be_visible()
    return player


def test_it_plays_to_the_end_and_holds_pythons_numbers(tab, player):
    b = example("B")
    player.root.get_by_label("speed, products a second").select_option("60")
    assert player.step == (0, 81)
    player.button("play").click()
    expect(player.button("pause")).to_be_visible()
    player.page.wait_for_function(
        "() => document.querySelector('.cg-count').textContent[0] !== '0'"
    )
    expect(player.root.locator("output")).to_have_text("81 / 81", timeout=10_000)
    expect(player.button("play")).to_be_visible()
    arrays = b.arrays()
    expected = gradients(b.geometry, arrays.x, arrays.weight, arrays.grad_output)["weight"]
    assert np.array_equal(player.gradient("weight", b.geometry), expected)
    tab.assert_clean()


def test_pause_stops_it(player):
    player.root.get_by_label("speed, products a second").select_option("16")
    player.button("play").click()
    player.page.wait_for_function(
        "() => parseInt(document.querySelector('.cg-count').textContent) > 2"
    )
    player.button("pause").click()
    stopped = player.step
    player.page.wait_for_timeout(400)
    assert player.step == stopped
    assert 2 < stopped[0] < 81


@pytest.mark.parametrize("letter", ["A", "B", "C", "D"])
def test_every_example_every_target_every_order(tab, player, letter):
    chosen = example(letter)
    arrays = chosen.arrays()
    expected = gradients(chosen.geometry, arrays.x, arrays.weight, arrays.grad_output)
    player.example(letter)
    for target in TARGETS:
        player.choose(f"grad_{target}")
        for order in ORDERS:
            player.choose(order)
            assert player.step[0] == 0
            player.button("to the end").click()
            assert np.array_equal(player.gradient(target, chosen.geometry), expected[target]), (
                target,
                order,
            )
    tab.assert_clean()


@pytest.mark.parametrize("target", TARGETS)
def test_the_running_sum_is_the_ledgers(player, target):
    b = example("B")
    arrays = b.arrays()
    player.choose(f"grad_{target}")
    for order, step in zip(ORDERS, (5, 7, 4), strict=True):
        player.choose(order)
        player.root.get_by_role("slider", name="step").fill(str(step))
        assert player.step[0] == step
        expected = after(step, b.geometry, target, order, arrays)
        assert np.array_equal(player.gradient(target, b.geometry), expected), (target, order)


def test_one_kernel_alone_and_the_shares_add_up(player):
    d = example("D")
    arrays = d.arrays()
    player.example("D")
    player.choose("grad_input")
    player.choose("kernel")
    per_kernel = player.step[1] // d.geometry.O
    total = np.zeros(d.geometry.x_shape)
    for o in range(d.geometry.O):
        player.root.get_by_role("slider", name="step").fill(str((o + 1) * per_kernel))
        share = ledger.kernel_share(d.geometry, arrays.grad_output, arrays.weight, o)
        total += share
        player.drawn()
        # the slice that is shown: the image and channel of the last product
        shown = player.root.locator(".cg-share [role=grid]").get_attribute("aria-label")
        n, c = (int(number) for number in re.findall(r"\d+", shown)[:2])
        alone = player.root.locator(".cg-share .cg-cell:not(.cg-pad)").all_inner_texts()
        numbers = np.array([float(text.replace("−", "-")) for text in alone])
        assert np.array_equal(numbers.reshape(share[n, c].shape), share[n, c])
        assert np.array_equal(player.numbers("grad_input"), total[n, c])
    assert np.array_equal(player.gradient("input", d.geometry), total)


def test_keys_do_what_the_help_says(tab, player):
    player.stage.focus()
    keyboard = player.page.keyboard
    for key, step in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 81)]:
        keyboard.press(key)
        assert player.step[0] == step, key
    keyboard.press("Home")
    assert player.step[0] == 0
    keyboard.press("Space")
    expect(player.button("pause")).to_be_visible()
    keyboard.press("Space")
    expect(player.button("play")).to_be_visible()
    tab.assert_clean()


def test_each_step_is_spelled_and_announced(player):
    arrays = example("B").arrays()
    player.button("one step on").click()
    x, g = arrays.x[0, 0, 0, 0], arrays.grad_output[0, 0, 0, 0]
    spelled = player.root.locator(".cg-spelled").inner_text()
    assert spelled.startswith("grad_weight[0,0,0,0] += x[0,0,0,0]·g[0,0,0,0] = ")
    assert spelled.endswith(f"now {x * g:g}".replace("-", "−"))
    expect(player.live).to_have_text(spelled)


def test_everything_can_be_reached_by_tab(player):
    """Tab walks through choices, grids and buttons; each stop shows where it is."""
    player.root.get_by_role("radio").first.focus()
    stops = tab_stops(player.page, ".cg-player", most=40)
    assert "gridcell" in stops
    assert any(stop.startswith("BUTTON: play") for stop in stops)
    assert any(stop.startswith("SUMMARY") for stop in stops)


def test_an_edited_number_changes_everything_that_follows_from_it(tab, player):
    b = example("B")
    arrays = b.arrays()
    player.button("to the end").click()
    player.edit("x", 1, 2, "-7")
    arrays.x[0, 0, 1, 2] = -7
    player.edit("g", 2, 0, "5")
    arrays.grad_output[0, 0, 2, 0] = 5
    expected = gradients(b.geometry, arrays.x, arrays.weight, arrays.grad_output)
    assert np.array_equal(player.gradient("weight", b.geometry), expected["weight"])
    player.choose("grad_input")
    player.edit("w", 0, 1, "1.5")
    arrays.weight[0, 0, 0, 1] = 1.5
    player.button("to the end").click()
    expected = gradients(b.geometry, arrays.x, arrays.weight, arrays.grad_output)
    assert np.array_equal(player.gradient("input", b.geometry), expected["input"])
    tab.assert_clean()


def test_what_is_no_number_is_refused_in_words(player):
    before = player.numbers("x")
    player.edit("x", 0, 0, "seven")
    expect(player.message).to_contain_text("“seven” is not a number")
    player.page.keyboard.press("Escape")
    assert np.array_equal(player.numbers("x"), before)


def test_numbers_can_be_edited_by_keyboard_alone(player):
    player.cell("x", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "9", "Enter"):
        player.page.keyboard.press(key)
    assert player.numbers("x")[1, 1] == 9


def test_knobs_change_the_convolution(tab, player):
    """Each knob by itself, then together: sizes, operands and gradients are Python's."""
    mirror = ContributionPlayer(example("B"))
    changes = [
        ("padding", 1, {"padding": 1}),
        ("stride", 2, {"stride": 2}),
        ("width W", 7, {"W": 7}),
        ("dilation", 2, {"dilation": 2}),
        ("channels C", 4, {"C": 4}),
        ("kernels O", 2, {"O": 2}),
        ("groups", 2, {"groups": 2}),
        ("images N", 2, {"N": 2}),
    ]
    for label, value, change in changes:
        player.turn(label, value)
        expect(player.message).to_be_hidden()
        mirror.geometry = {**mirror.geometry.as_dict(), **change}
        g = mirror.geometry
        assert np.array_equal(player.whole("x", "x", g.x_shape), mirror.x), label
        assert np.array_equal(player.whole("g", "g", g.output_shape), mirror.grad_output), label
        player.button("to the end").click()
        expected = mirror.gradients
        assert np.array_equal(player.gradient("weight", g), expected.grad_weight), label
        player.choose("grad_input")
        assert np.array_equal(player.whole("w", "w", g.weight_shape), mirror.weight), label
        player.button("to the end").click()
        assert np.array_equal(player.gradient("input", g), expected.grad_input), label
        player.choose("grad_weight")
    tab.assert_clean()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes(player, mode):
    mirror = ContributionPlayer(example("B"))
    mirror.geometry = {**mirror.geometry.as_dict(), "padding": 1, "padding_mode": mode}
    player.turn("padding", 1)
    player.root.get_by_role("combobox", name="padding mode").select_option(mode)
    for target, expected in zip(("input", "weight"), mirror.gradients[:2], strict=True):
        player.choose(f"grad_{target}")
        player.button("to the end").click()
        assert np.array_equal(player.gradient(target, mirror.geometry), expected)


def test_an_impossible_geometry_is_explained_in_place(tab, player):
    player.button("to the end").click()
    before = player.numbers("grad_weight")
    player.turn("dilation", 3)
    with pytest.raises(GeometryError) as python:
        ConvGeometry(**{**example("B").geometry.as_dict(), "dilation": (3, 3)})
    expect(player.message).to_be_visible()
    said = player.message.inner_text()
    assert said.startswith(str(python.value)), "the browser says what Python says"
    assert np.array_equal(player.numbers("grad_weight"), before), "the last possible one stays"
    player.turn("dilation", 1)
    expect(player.message).to_be_hidden()
    tab.assert_clean()


def test_sizes_that_nobody_can_draw_are_explained_and_an_emptied_field_is_filled_again(tab, player):
    field = player.knob("images N")
    for typed, said in (
        ("0", "at least one image"),
        ("-0", "at least one image"),
        ("1e9", "draws up to"),
    ):
        player.turn("images N", typed)
        expect(player.message).to_contain_text(said)
        player.turn("images N", 1)
        expect(player.message).to_be_hidden()
    player.turn("images N", "")
    expect(field).to_have_value("1")
    expect(player.message).to_be_hidden()
    tab.assert_clean()


def test_products_with_padding_are_shown_as_such(player):
    """Example A: a 1×1 image; of four products at each tap at most one is off the padding."""
    player.example("A")
    player.choose("tap")
    length = player.step[1]
    assert length == 4 * 16
    padding = 0
    for _ in range(8):
        player.button("one step on").click()
        padding += "zero padding" in player.root.locator(".cg-spelled").inner_text()
    assert padding >= 6
    player.root.get_by_text("products with padding").click()
    assert player.step == (0, 4)


def test_a_gradient_cell_opens_as_one_formula(tab, player):
    b = example("B")
    arrays = b.arrays()
    expected = gradients(b.geometry, arrays.x, arrays.weight, arrays.grad_output)["weight"]
    player.cell("grad_weight", 1, 2).click()
    formula = player.root.locator(".cg-formula")
    expect(formula).to_be_visible()
    text = formula.inner_text()
    assert "grad_weight[0,0,1,2] is the sum of 9 products" in text
    for p, q in itertools.product(range(3), repeat=2):
        assert f"x[0,0,{p + 1},{q + 2}]·g[0,0,{p},{q}]" in text
    assert text.rstrip().endswith(f"= {expected[0, 0, 1, 2]:g}".replace("-", "−"))
    # a term leads to its step
    formula.get_by_role("button", name="x[0,0,1,2]·g[0,0,0,0]").click()
    assert "grad_weight[0,0,1,2] += x[0,0,1,2]" in player.root.locator(".cg-spelled").inner_text()
    formula.get_by_role("button", name="close the formula").click()
    expect(formula).to_be_hidden()
    tab.assert_clean()


def test_a_cell_opened_early_says_what_is_still_to_fall(player):
    """Of nine products two have fallen: the grid's number and the formula's are both explained."""
    b = example("B")
    arrays = b.arrays()
    player.choose("position")
    player.root.get_by_role("slider", name="step").fill("18")
    player.cell("grad_weight", 1, 2).click()
    standing = player.root.locator(".cg-formula-head")
    now = after(18, b.geometry, "weight", "position", arrays)[0, 0, 1, 2]
    end = gradients(b.geometry, arrays.x, arrays.weight, arrays.grad_output)["weight"][0, 0, 1, 2]
    words = f"2 fell so far (underlined): now {now:g}, in the end {end:g}".replace("-", "−")
    expect(standing).to_contain_text(words)
    assert player.root.locator(".cg-fallen").count() == 2
    # the step's own window stands back: what is marked meets in the chosen cell
    assert player.root.locator(".cg-with").count() == 0
    assert player.grid("x").locator(".cg-partner").count() == 9
    player.button("to the end").click()
    expect(standing).to_contain_text("; all fell")
    assert player.root.locator(".cg-fallen").count() == 0, "nothing is left to tell apart"


def test_each_order_is_explained(player):
    said = set()
    for target in TARGETS:
        player.choose(f"grad_{target}")
        for order in ORDERS:
            player.choose(order)
            caption = player.root.locator(".cg-caption")
            expect(caption).to_contain_text(re.compile(f"^by {order}: "))
            fields = player.root.get_by_role("group", name="by")
            expect(fields).to_have_accessible_description(re.compile(f"^by {order}: "))
            said.add(caption.text_content())
    assert "by tap: finish one cell of grad_weight, then the next" in said
    player.choose("grad_weight")
    # example B has one kernel: its order is no third one
    expect(player.root.locator(".cg-caption")).to_have_text(
        "by kernel: with a single kernel the same as by position"
    )


def test_padding_is_named_by_the_side_where_it_lies(player):
    player.example("A")
    player.button("one step on").click()
    spelled = player.root.locator(".cg-spelled")
    expect(spelled).to_contain_text("(zero padding, above and left of the image)")
    player.cell("grad_weight", 0, 0).click()
    expect(player.root.locator(".cg-term").first).to_have_text("padding·g[0,0,0,0]")


def test_long_numbers_stay_in_their_cells(player):
    player.button("to the end").click()
    typed = ["-123456", "0.001234", "999999", "-0.33333333", "1e6", "1e-9", "12.3456", "-1234.5"]
    for k, number in enumerate(typed):
        player.edit("x", k // 5, k % 5, number)
    for k, number in enumerate(["999999", "-77777.7", "0.00001"]):
        player.edit("g", 0, k, number)
    wide = player.root.evaluate(
        """(root) => [...root.querySelectorAll(".cg-cell")]
          .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
    )
    assert not wide
    # a number that had to be shortened is whole in its field
    player.cell("x", 0, 3).click()
    expect(player.grid("x").get_by_role("textbox")).to_have_value("−0.33333333")


def test_reset_brings_back_the_numbers_of_the_beginning(player):
    player.edit("x", 0, 0, "8")
    player.turn("padding", 1)
    player.root.get_by_role("button", name=re.compile("^reset")).click()
    assert np.array_equal(player.numbers("x"), example("B").arrays().x[0, 0])
    assert player.step == (0, 81)


def test_players_on_one_page_do_not_disturb_each_other(visit):
    view = visit().goto(f"{page_with_two('ContributionPlayer')}.html")
    players = view.get_by_role("region", name="Contribution player")
    assert players.count() >= 2
    other = players.nth(1).inner_text()
    Player(view).button("to the end").click()
    assert players.nth(1).inner_text() == other


def test_players_of_one_page_have_names_of_their_own(visit):
    players = visit().goto(f"{page_with_two('ContributionPlayer')}.html").locator(".cg-player")
    names = [player.get_attribute("aria-label") for player in players.all()]
    assert len(names) == len(set(names)) >= 2


@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_keeps_still_when_a_player_starts(visit, width):
    """Its fallback has kept the room."""
    page = page_with_two("ContributionPlayer")
    heights = """(hosts) => hosts.filter((host) => host.querySelector("figure.cg-fallback"))
      .map((host) => host.offsetHeight)"""
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(f"{page}.html", settle=False).locator(".cg-widget").evaluate_all(heights)
    after = visit(width=width).goto(f"{page}.html").locator(".cg-widget").evaluate_all(heights)
    assert len(before) == len(after) >= 2
    # 24 pixels: about one line of text
    assert all(abs(a - b) <= 24 for a, b in zip(before, after, strict=True)), (before, after)


def test_grids_step_and_controls_fit_a_laptop(visit):
    """Example B on 1280×800: nothing that plays has to be scrolled to."""
    page = pages_showing("ContributionPlayer")[0]
    player = Player(visit(height=800).goto(f"{page}.html"))
    for target in TARGETS:
        player.choose(f"grad_{target}")
        top = player.root.bounding_box()["y"]
        controls = player.root.get_by_role("group", name="playing").bounding_box()
        assert controls["y"] + controls["height"] - top <= 760, target


def test_reduced_motion_is_honoured(visit):
    page = pages_showing("ContributionPlayer")[0]
    for reduced in (False, True):
        player = Player(visit(reduced_motion=reduced).goto(f"{page}.html"))
        moving = player.page.evaluate_handle(
            """() => {
              const seen = new Set();
              const watch = () => {
                for (const each of document.getAnimations()) {
                  if (each.effect?.target?.closest(".cg-player")) seen.add(each);
                }
                requestAnimationFrame(watch);
              };
              watch();
              return seen;
            }"""
        )
        for _ in range(4):
            player.button("one step on").click()
            player.page.wait_for_timeout(60)
        count = moving.evaluate("(seen) => seen.size")
        assert (count == 0) == reduced, f"{count} animations with reduced motion {reduced}"
        assert player.step[0] == 4


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    """Nothing sticks out, controls are large enough for a thumb, and it still counts right."""
    page = pages_showing("ContributionPlayer")[0]
    player = Player(visit(width=width, height=700, touch=True).goto(f"{page}.html"))
    for name in ("play", "one step on", "one step back", "to the start", "to the end"):
        box = player.button(name).bounding_box()
        assert box and box["height"] >= 43.5, name
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, name
    player.example("D")
    player.button("to the end").click()
    room, needed = player.page.evaluate(
        "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
    )
    assert needed == room
    d = example("D")
    arrays = d.arrays()
    expected = gradients(d.geometry, arrays.x, arrays.weight, arrays.grad_output)["weight"]
    assert np.array_equal(player.gradient("weight", d.geometry), expected)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_of_a_cell_can_be_read(visit, dark):
    """Lit, in company, filled, empty, chosen, idle, padding: text stands out from its cell."""
    page = pages_showing("ContributionPlayer")[0]
    player = Player(visit(dark=dark, reduced_motion=True).goto(f"{page}.html"))
    for letter, target, order in [("A", "weight", "tap"), ("D", "input", "kernel")]:
        player.example(letter)
        player.choose(f"grad_{target}")
        player.choose(order)
        player.root.get_by_role("slider", name="step").fill(str(player.step[1] // 2))
        player.cell(f"grad_{target}", 0, 0).click()
        player.turn("groups", 7)  # impossible: the message is read too
        player.drawn()
        found = player.page.evaluate(FAINT_TEXT)
        assert found["measured"] > 60
        assert not found["faint"], (letter, target, order)
