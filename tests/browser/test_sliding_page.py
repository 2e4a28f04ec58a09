"""SlidingWindow in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError, conv2d, example
from convgrad.widgets import SlidingWindow
from convgrad.widgets.sliding_fallback import grey_scale
from convgrad.widgets.sliding_window import KERNELS

pytestmark = pytest.mark.browser
WIDGET = "sliding_window"

PAGE = "book/gallery.html"

# The numbers of a table without its border, and the places that carry a class.
NUMBERS = """(grid) => [...grid.querySelectorAll("[role=row]")]
  .map((row) => [...row.querySelectorAll(".cg-cell:not(.cg-pad)")]
    .map((cell) => cell.textContent === "" ? null : Number(cell.textContent.replace("−", "-"))))
  .filter((row) => row.length)"""
PLACES = """(grid, mark) => [...grid.querySelectorAll(`.cg-cell.${mark}`)]
  .map((cell) => [Number(cell.dataset.row), Number(cell.dataset.col)])"""
CORNERS = """(grid) => Object.fromEntries([...grid.querySelectorAll("[data-corner]")]
  .map((cell) => [`${cell.dataset.row},${cell.dataset.col}`, cell.dataset.corner]))"""
# The grey values of a picture, −1 where nothing is painted.
PIXELS = """(el) => {
  const { width, height } = el.querySelector("canvas");
  const copy = Object.assign(document.createElement("canvas"), { width, height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(el.querySelector("canvas"), 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  return Array.from({ length: height }, (_, row) => Array.from({ length: width }, (_, col) => {
    const k = 4 * (row * width + col);
    return data[k + 3] ? data[k] : -1;
  }));
}"""


class Window:
    """A sliding window of the page, by the names that a screen reader would say."""

    def __init__(self, page: Page, which: int = 0) -> None:
        self.page = page
        self.root = page.locator(".cg-sliding").nth(which)
        self.live = self.root.locator("[aria-live=polite]")
        self.said = self.root.locator(".cg-said")
        self.message = self.root.get_by_role("alert")
        self.count = self.root.locator(".cg-count")

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.root.get_by_role("button", name=name, exact=isinstance(name, str))

    def example(self, letter: str) -> None:
        self.button(re.compile(f"^{letter}: ")).click()

    def grid(self, name: str) -> Locator:
        return self.root.get_by_role("grid", name=re.compile(rf"^{name}[,:]"))

    def picture(self, name: str) -> Locator:
        return self.root.get_by_role("slider", name=re.compile(rf"^{name}[,:]"))

    def cell(self, name: str, row: int, col: int) -> Locator:
        return self.grid(name).locator(f'[data-row="{row}"][data-col="{col}"]')

    def choice(self, name: str) -> Locator:
        return self.root.get_by_role("combobox", name=f"slice of {name}", exact=True)

    def drawn(self) -> None:
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")

    def numbers(self, name: str) -> np.ndarray:
        self.drawn()
        return np.array(self.grid(name).evaluate(NUMBERS), dtype=float)

    def whole(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """All slices of an array, chosen from the list one after the other."""
        if shape[0] * shape[1] == 1:
            return self.numbers(name).reshape(shape)
        choice = self.choice(name)
        slices = []
        for a, b in np.ndindex(shape[:2]):
            choice.select_option(f"{a},{b}")
            slices.append(self.numbers(name))
        return np.array(slices).reshape(shape)

    def marked(self, name: str, mark: str = "cg-with") -> set[tuple[int, int]]:
        self.drawn()
        return {tuple(place) for place in self.grid(name).evaluate(PLACES, mark)}

    def edit(self, name: str, row: int, col: int, typed: str) -> None:
        self.cell(name, row, col).click()
        field = self.grid(name).get_by_role("textbox")
        field.fill(typed)
        field.press("Enter")

    def knob(self, label: str) -> Locator:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        return knobs.get_by_label(label, exact=True)

    def turn(self, label: str, value: int) -> None:
        self.knob(label).fill(str(value))
        self.knob(label).press("Tab")


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def window(tab) -> Window:
    """The first sliding window of the gallery: example B."""
    window = Window(tab.goto(PAGE))
    expect(window.root).to_be_visible()
    return window


def window_of(geometry: ConvGeometry, p: int, q: int) -> set[tuple[int, int]]:
    taps = np.ndindex(geometry.KH, geometry.KW)
    return {tuple(map(int, geometry.source(p, q, i, j))) for i, j in taps}


# ---- looking -----------------------------------------------------------------------------------


def test_every_output_cell_shows_its_window_and_its_sum(tab, window):
    x, weight, bias, _ = example("B").arrays()
    y = conv2d(x, weight, bias)
    assert np.array_equal(window.numbers("y"), y[0, 0])
    for p, q in np.ndindex(3, 3):
        window.cell("y", p, q).hover()
        assert window.marked("x") == window_of(example("B").geometry, p, q)
        expect(window.said).to_contain_text(f"y[0,0,{p},{q}] = {y[0, 0, p, q]:g}: the bias")
        letters, numbers = window.root.locator(".cg-lines p").all_inner_texts()
        for i, j in np.ndindex(3, 3):
            assert f"w[0,0,{i},{j}]·x[0,0,{p + i},{q + j}]" in letters
        *_, summed, total = numbers.replace("−", "-").replace("·", "*").split("= ")
        assert eval(summed) == float(total) == y[0, 0, p, q]
        corners = window.grid("x").evaluate(CORNERS)
        assert corners[f"{p},{q}"] == "×1" and corners[f"{p + 2},{q + 1}"] == "×−1"
    # the mouse leaves: back to what was chosen
    window.root.locator(".cg-said").hover()
    assert window.marked("x") == window_of(example("B").geometry, 0, 0)
    tab.assert_clean()


def test_the_window_is_framed(window):
    window.cell("y", 1, 2).hover()
    window.page.wait_for_timeout(250)  # it glides
    frame = window.grid("x").locator("xpath=..").locator(".cg-frame").bounding_box()
    first, last = (window.cell("x", *at).bounding_box() for at in [(1, 2), (3, 4)])
    assert abs(frame["x"] - first["x"]) <= 3 and abs(frame["y"] - first["y"]) <= 3
    assert abs(frame["x"] + frame["width"] - last["x"] - last["width"]) <= 4
    assert abs(frame["y"] + frame["height"] - last["y"] - last["height"]) <= 4


def test_a_tap_shows_all_the_places_where_it_was_used(window):
    window.cell("w", 0, 2).hover()
    assert window.marked("x") == {(p, q + 2) for p, q in np.ndindex(3, 3)}
    assert len(window.marked("y")) == 9
    expect(window.said).to_have_text(
        "w[0,0,0,2] = −1 is used 9 times: once at each position of the window"
    )


def test_an_input_cell_shows_every_output_that_it_touches_and_through_which_tap(window):
    g = example("B").geometry
    for h, v in [(2, 2), (0, 4), (1, 3)]:
        window.cell("x", h, v).hover()
        touched = {}
        for p, q, i, j in np.ndindex(g.OH, g.OW, g.KH, g.KW):
            if g.source(p, q, i, j) == (h, v):
                touched[f"{p},{q}"] = f"w {i},{j}"
        assert window.grid("y").evaluate(CORNERS) == touched
        assert window.marked("y") == {tuple(map(int, at.split(","))) for at in touched}
        taps = {tuple(map(int, tap[2:].split(","))) for tap in touched.values()}
        assert window.marked("w") == taps
        expect(window.said).to_contain_text(f"is read {len(touched)} time")


def test_by_keyboard_alone(tab, window):
    window.cell("y", 0, 0).focus()
    for key in ("ArrowDown", "ArrowRight", "End"):
        window.page.keyboard.press(key)
    expect(window.said).to_contain_text("y[0,0,1,2] = 4")
    expect(window.live).to_contain_text("y[0,0,1,2] = 4")
    expect(window.live).to_contain_text("= 1 + 1·2 + 0·3")
    expect(window.count).to_have_text("6 / 9")
    window.cell("w", 0, 0).focus()
    window.page.keyboard.press("ArrowRight")
    expect(window.said).to_contain_text("w[0,0,0,1] = 0 is used 9 times")
    window.cell("x", 0, 0).focus()
    expect(window.said).to_contain_text("x[0,0,0,0] = 1 is read 1 time")
    window.page.keyboard.press("Escape")
    expect(window.said).to_contain_text("y[0,0,1,2]")
    # type over a number, without a mouse
    for key in ("ArrowDown", "9", "Enter"):
        window.page.keyboard.press(key)
    assert window.numbers("x")[1, 0] == 9
    tab.assert_clean()


# ---- playing -----------------------------------------------------------------------------------


def test_the_window_plays_over_the_image(tab, window):
    y = conv2d(*example("B").arrays()[:3])[0, 0]
    window.button("to the start").click()
    assert np.isnan(window.numbers("y")).all()
    expect(window.said).to_contain_text("Press play")
    window.root.get_by_label("speed, output cells a second").select_option("16")
    window.button("play").click()
    expect(window.button("pause")).to_be_visible()
    expect(window.count).to_have_text("9 / 9", timeout=5_000)
    expect(window.button("play")).to_be_visible()
    assert np.array_equal(window.numbers("y"), y)
    window.root.get_by_role("slider", name="step").fill("4")
    made = window.numbers("y").ravel()
    assert np.array_equal(made[:4], y.ravel()[:4]) and np.isnan(made[4:]).all()
    expect(window.said).to_contain_text("y[0,0,1,0]")
    window.button("one step on").click()
    expect(window.said).to_contain_text("y[0,0,1,1]")
    tab.assert_clean()


def test_stepping_goes_on_from_the_cell_that_is_looked_at(window):
    window.cell("y", 1, 0).click()
    assert not np.isnan(window.numbers("y")).any()
    window.button("one step on").click()
    expect(window.said).to_contain_text("y[0,0,1,1]")
    window.root.get_by_role("group", name="grids; space plays, arrow keys step").focus()
    for key, step in [("ArrowLeft", 4), ("End", 9), ("ArrowLeft", 8), ("Home", 0)]:
        window.page.keyboard.press(key)
        expect(window.count).to_have_text(f"{step} / 9")
    window.page.keyboard.press("Space")
    expect(window.button("pause")).to_be_visible()
    window.page.keyboard.press("Space")
    expect(window.button("play")).to_be_visible()


# ---- changing ----------------------------------------------------------------------------------


def test_edited_numbers_change_the_output(tab, window):
    x, weight, bias, _ = example("B").arrays()
    window.edit("x", 2, 3, "-7")
    window.edit("w", 1, 1, "0.5")
    window.root.get_by_label("bias of kernel 0").fill("10")
    window.root.get_by_label("bias of kernel 0").press("Enter")
    x[0, 0, 2, 3], weight[0, 0, 1, 1], bias[0] = -7, 0.5, 10
    assert np.array_equal(window.numbers("y"), conv2d(x, weight, bias)[0, 0])
    window.root.get_by_label("bias of kernel 0").fill("ten")
    window.root.get_by_label("bias of kernel 0").press("Enter")
    expect(window.message).to_contain_text("“ten” is not a number")
    window.button(re.compile("^reset")).click()
    assert np.array_equal(window.numbers("y"), conv2d(*example("B").arrays()[:3])[0, 0])
    expect(window.root.get_by_label("bias of kernel 0")).to_have_value("1")
    tab.assert_clean()


def test_knobs_change_the_convolution(tab, window):
    mirror = SlidingWindow(example("B"))
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
        window.turn(label, value)
        expect(window.message).to_be_hidden()
        mirror.geometry = {**mirror.geometry.as_dict(), **change}
        g = mirror.geometry
        assert np.array_equal(window.whole("x", g.x_shape), mirror.x), label
        assert np.array_equal(window.whole("w", g.weight_shape), mirror.weight), label
        assert np.array_equal(window.whole("y", g.output_shape), mirror.y), label
    tab.assert_clean()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes(window, mode):
    mirror = SlidingWindow(example("B"))
    mirror.geometry = {**mirror.geometry.as_dict(), "padding": 1, "padding_mode": mode}
    window.turn("padding", 1)
    window.root.get_by_role("combobox", name="padding mode").select_option(mode)
    assert np.array_equal(window.numbers("y"), mirror.y[0, 0])
    # an image cell is also read through its copies on the border: they light up too
    window.cell("x", 1, 1).hover()
    rows = np.flatnonzero(mirror.geometry.padded_rows == 1) - 1
    cols = np.flatnonzero(mirror.geometry.padded_cols == 1) - 1
    assert window.marked("x") == {(int(h), int(v)) for h in rows for v in cols}


def test_an_impossible_geometry_is_explained_in_place(tab, window):
    before = window.numbers("y")
    window.turn("dilation", 3)
    with pytest.raises(GeometryError) as python:
        ConvGeometry(**{**example("B").geometry.as_dict(), "dilation": (3, 3)})
    shown = window.message.filter(visible=True)
    expect(shown).to_contain_text(str(python.value))
    assert np.array_equal(window.numbers("y"), before)
    window.button("keep what is shown").click()
    expect(shown).to_have_count(0)
    window.turn("images N", 0)
    expect(shown).to_contain_text("the sliding window needs an image")
    window.turn("images N", 1)
    window.turn("height H", 999)
    window.turn("width W", 999)
    expect(shown).to_contain_text("take fewer channels, or a smaller image")
    tab.assert_clean()


# ---- pictures ----------------------------------------------------------------------------------


def test_kernels_change_the_photograph(tab):
    window = Window(tab.goto(PAGE), 1)
    x = SlidingWindow.photograph().x
    seen = np.array(window.picture("x").evaluate(PIXELS))[1:-1, 1:-1]
    assert np.abs(seen - 255 * x[0, 0] / x.max()).max() <= 1
    for name, kernel in KERNELS.items():
        window.button(name).click()
        expect(window.button(name)).to_have_attribute("aria-pressed", "true")
        y = SlidingWindow.photograph(name).y[0, 0]
        low, high = grey_scale(y, x, kernel)
        expected = np.clip(255 * (y - low) / (high - low), 0, 255)
        window.drawn()
        assert np.abs(np.array(window.picture("y").evaluate(PIXELS)) - expected).max() <= 1, name
    tab.assert_clean()


def test_a_picture_is_looked_at_by_mouse_and_by_keys(tab):
    window = Window(tab.goto(PAGE), 1)
    y = SlidingWindow.photograph().y[0, 0]
    picture = window.picture("y")
    box = picture.bounding_box()
    picture.click(position={"x": box["width"] * 20.5 / 40, "y": box["height"] * 10.5 / 40})
    expect(window.said).to_contain_text("y[0,0,10,20] = ")
    picture.press("ArrowDown")
    picture.press("ArrowRight")
    expect(window.said).to_contain_text(f"y[0,0,11,21] = {y[11, 21]:g}".replace("-", "−"))
    expect(picture).to_have_attribute("aria-valuetext", re.compile("^row 11, column 21: "))
    # the numbers under the window stand beside the kernel
    x = SlidingWindow.photograph().x[0, 0]
    assert np.array_equal(window.numbers("x under the window of y 11"), x[10:13, 20:23])
    window.picture("x").press("Home")
    expect(window.said).to_contain_text(re.compile(r"x\[0,0,\d+,0\] = .* is read"))
    window.root.get_by_role("slider", name="step").fill("400")
    pixels = np.array(picture.evaluate(PIXELS)).ravel()
    assert (pixels[:400] >= 0).all() and (pixels[400:] == -1).all()
    tab.assert_clean()


def test_a_number_under_the_window_is_a_number_of_the_image(tab):
    window = Window(tab.goto(PAGE), 1)
    window.edit("x under the window of y 12", 1, 1, "0")
    seen = np.array(window.picture("x").evaluate(PIXELS))[1:-1, 1:-1]
    assert seen[12, 8] == 0
    mirror = SlidingWindow.photograph()
    edited = mirror.x.copy()
    edited[0, 0, 12, 8] = 0
    mirror.x = edited
    expect(window.said).to_contain_text("y[0,0,12,8]" if False else "is used")
    window.page.keyboard.press("Escape")
    expect(window.root.locator(".cg-total b")).to_have_text(f"{mirror.y[0, 0, 12, 8]:g}")


def test_the_tracker_finds_its_templates(tab):
    window = Window(tab.goto(PAGE), 1)
    window.example("E")
    y = SlidingWindow(example("E")).y
    places = []
    for o in range(3):
        window.choice("y").select_option(f"0,{o}")
        p, q = map(int, np.unravel_index(y[0, o].argmax(), y.shape[2:]))
        note = window.root.locator(".cg-of-output .cg-note")
        expect(note).to_contain_text(f"largest: {y[0, o, p, q]:g} at p = {p}, q = {q}")
        ring = window.root.locator(".cg-of-output .cg-peak")
        style = ring.get_attribute("style")
        assert f"--row:{p};--col:{q};" in style
        expect(ring).to_be_visible()
        places.append((p, q))
        # looking at the peak: the window lies where the template was cut out
        expect(window.choice("x")).to_have_value(f"0,{8 * o}")
    assert places == [(3, 5), (8, 2), (14, 11)]
    tab.assert_clean()


# ---- for everybody -----------------------------------------------------------------------------


def test_everything_can_be_reached_by_tab(window):
    window.root.get_by_role("button").first.focus()
    stops = set()
    for _ in range(40):
        window.page.keyboard.press("Tab")
        name, inside, outlined = window.page.evaluate(
            """() => {
              const at = document.activeElement;
              const style = getComputedStyle(at);
              const label = at.getAttribute("aria-label") ?? at.textContent;
              const seen = style.outlineStyle !== "none" || at.matches("input[type=range]");
              return [at.getAttribute("role") ?? at.tagName + ": " + label,
                at.closest(".cg-sliding") !== null, seen];
            }"""
        )
        if not inside:
            break
        assert outlined, f"nothing shows that the focus is on {name}"
        stops.add(name)
    assert {"gridcell", "BUTTON: play", "INPUT: bias of kernel 0"} <= stops
    assert any(stop.startswith("SUMMARY") for stop in stops)


@pytest.mark.parametrize("which", [0, 1], ids=["tables", "pictures"])
def test_nothing_stumbles(visit, axe, which):
    window = Window(visit().goto(PAGE), which)
    window.knob("stride")
    window.turn("groups", 7)
    assert not axe(window.root)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_can_be_read(visit, dark):
    window = Window(visit(dark=dark, reduced_motion=True).goto(PAGE))
    window.turn("padding", 1)
    for name in "xwy":
        window.cell(name, 1, 1).focus()
        window.drawn()
        found = window.page.evaluate(FAINT_TEXT)
        assert found["measured"] > 60
        assert not found["faint"], name


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    tab = visit(width=width, height=700, touch=True)
    for which in (0, 1):
        window = Window(tab.goto(PAGE), which)
        for name in ("play", "one step on", "one step back", "to the start", "to the end"):
            box = window.button(name).bounding_box()
            assert box["height"] >= 43.5 and box["x"] >= 0 and box["x"] + box["width"] <= width
        for letter in ("D", "C") if which == 0 else ("E", "photo"):
            window.example(letter)
            needed, room = window.page.evaluate(
                "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert needed == room, letter
    window = Window(tab.goto(PAGE))
    window.cell("y", 1, 2).tap()
    expect(window.said).to_contain_text("y[0,0,1,2] = 4")
    tab.assert_clean()


@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_keeps_still_when_it_starts(visit, width):
    heights = """() => [...document.querySelectorAll(".cg-widget")]
      .filter((host) => host.querySelector("script")?.textContent.includes('"sliding_window'))
      .map((host) => host.offsetHeight)"""
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(PAGE, settle=False).evaluate(heights)
    after = visit(width=width).goto(PAGE).evaluate(heights)
    assert len(before) == len(after) == 2
    assert all(abs(a - b) <= 24 for a, b in zip(before, after, strict=True)), (before, after)


def test_reduced_motion_is_honoured(visit):
    for reduced in (False, True):
        window = Window(visit(reduced_motion=reduced).goto(PAGE))
        window.cell("y", 0, 0).focus()
        window.page.keyboard.press("ArrowRight")
        moving = window.page.evaluate(
            "() => document.getAnimations().filter((a) => a.effect.target.closest('.cg-sliding'))"
            ".length"
        )
        assert (moving == 0) == reduced


def test_windows_of_one_page_do_not_disturb_each_other(window):
    other = Window(window.page, 1)
    assert window.root.get_attribute("aria-label") != other.root.get_attribute("aria-label")
    before = other.root.inner_text()
    window.example("D")
    window.button("to the end").click()
    assert other.root.inner_text() == before
