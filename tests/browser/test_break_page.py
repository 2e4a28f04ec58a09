"""BreakTheGradient on the gallery page: what a reader does, against what Python computes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from contents import FAINT_TEXT
from playwright.sync_api import Locator, Page, expect

from convgrad import example
from convgrad.mutants import MUTANTS
from convgrad.widgets import BreakTheGradient
from convgrad.widgets.break_the_gradient import round_of, showing
from convgrad.widgets.mistakes import MISTAKES
from convgrad.widgets.noticing import CHECKS

pytestmark = pytest.mark.browser
WIDGET = "break_the_gradient"

GALLERY = "book/gallery.html"


class Widget:
    """One of the page, by the names that a screen reader would say."""

    def __init__(self, page: Page, name: str = "Break the gradient") -> None:
        self.page = page
        self.root = page.get_by_role("region", name=name, exact=True)
        expect(self.root.get_by_role("button", name="undo")).to_be_visible()
        self.select = self.root.get_by_label("mistake", exact=True)
        self.spelled = self.root.locator(".cg-spelled")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def example(self, letter: str) -> None:
        self.root.get_by_role("button", name=re.compile(f"^{letter}: ")).click()

    def choose(self, mode: str) -> None:
        radio = self.page.get_by_role("radio", name=mode)
        self.root.locator("label").filter(has=radio).click()
        expect(self.root.get_by_role("radio", name=mode)).to_be_checked()

    def grid(self, which: str) -> Locator:
        return self.root.get_by_role("grid", name=re.compile(f"^{which} "))

    def cells(self, which: str) -> Locator:
        return self.grid(which).get_by_role("gridcell")

    def numbers(self, which: str) -> np.ndarray:
        rows = self.grid(which).evaluate(
            """(grid) => [...grid.querySelectorAll("[role=row]")]
              .map((row) => [...row.querySelectorAll(".cg-cell")]
                .map((cell) => Number(cell.textContent.replace("−", "-"))))"""
        )
        return np.array(rows, dtype=float)

    def marked(self, which: str) -> np.ndarray:
        rows = self.grid(which).evaluate(
            """(grid) => [...grid.querySelectorAll("[role=row]")]
              .map((row) => [...row.querySelectorAll(".cg-cell")]
                .map((cell) => cell.classList.contains("cg-differs")))"""
        )
        return np.array(rows, dtype=bool)

    def slice(self, a: int, b: int) -> None:
        """Looks at another slice of both gradients, where there are several."""
        group = self.root.get_by_role("group", name="slices of broken", exact=True)
        group.locator("button").nth(0)  # there is a picture for each
        name = re.compile(rf"^show \w+ {a}, \w+ {b}(,|$)")
        group.get_by_role("button", name=name).click()

    def findings(self) -> list[tuple[bool, str]]:
        rows = self.root.locator(".cg-checks tbody tr")
        found = []
        for k in range(rows.count()):
            verdict, evidence = rows.nth(k).get_by_role("cell").all_inner_texts()
            assert verdict in ("✗ notices", "○ lets it pass")
            found.append((verdict == "✗ notices", evidence))
        return found


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def widget(tab) -> Widget:
    """Example B, g turned by 180°."""
    return Widget(tab.goto(GALLERY))


def test_it_shows_both_gradients_and_marks_what_differs(tab, widget) -> None:
    mirror = BreakTheGradient(example("B"))
    for name in MISTAKES:
        mirror.mistake = name
        widget.select.select_option(name)
        expect(widget.root.locator(".cg-caption")).to_contain_text(MUTANTS[name].sentence)
        right, wrong = mirror.right, mirror.wrong
        assert np.array_equal(widget.numbers("right").reshape(right.shape), right), name
        shown = widget.numbers("broken").reshape(wrong.shape)
        assert np.allclose(shown, wrong, atol=5e-3), name  # a cell has room for six characters
        if right.shape == wrong.shape:
            assert np.array_equal(widget.marked("broken").reshape(wrong.shape), right != wrong)
            assert not widget.marked("right").any()
        silent = "Not to be seen here" in widget.root.locator(".cg-caption").inner_text()
        assert silent == (right.shape == wrong.shape and np.array_equal(right, wrong)), name
        assert widget.findings() == [(f.noticed, f.evidence) for f in mirror.findings], name
    tab.assert_clean()


@pytest.mark.parametrize("letter", ["A", "C", "D"])
def test_every_slice_on_other_examples(tab, widget, letter) -> None:
    mirror = BreakTheGradient(example(letter))
    widget.example(letter)
    for name in ("wgrad_g_turned", "group_interleaved", "col2im_assign", "bias_position_mean"):
        mirror.mistake = name
        widget.select.select_option(name)
        right, wrong = mirror.right, mirror.wrong
        assert widget.findings() == [(f.noticed, f.evidence) for f in mirror.findings], name
        several = right.ndim == 4 and max(right.shape[:2]) > 1
        for at in np.ndindex(right.shape[:2]) if several else [()]:
            if several:
                widget.slice(*at)
            assert np.array_equal(
                widget.numbers("right"),
                np.atleast_2d(right[at]).squeeze(
                    axis=tuple(range(right[at].ndim - 2)) if right[at].ndim > 2 else ()
                ),
            ), (name, at)
            differs = np.atleast_2d((right != wrong)[at]).reshape(widget.marked("broken").shape)
            assert np.array_equal(widget.marked("broken"), differs), (name, at)
    tab.assert_clean()


def test_a_slice_with_a_difference_is_shown_first(widget) -> None:
    """In example D's first slice a card-dealt group is right."""
    widget.example("D")
    widget.select.select_option("group_interleaved")
    assert widget.marked("broken").any()


def test_what_is_marked_is_said_too(widget) -> None:
    right, wrong = widget.numbers("right"), widget.numbers("broken")
    cell = widget.cells("broken").first
    expect(cell).to_have_accessible_name(f"{wrong[0, 0]:g}, right is {right[0, 0]:g}")
    # neither a frame nor a corner is a colour alone
    shadow, image = cell.evaluate(
        "(cell) => [getComputedStyle(cell).boxShadow, getComputedStyle(cell).backgroundImage]"
    )
    assert "inset" in shadow and "gradient" in image


def test_a_cell_is_compared_in_words(tab, widget) -> None:
    right, wrong = widget.numbers("right"), widget.numbers("broken")
    widget.cells("broken").nth(5).click()
    off = f"{wrong[1, 2] - right[1, 2]:g}".replace("-", "−")
    words = f"grad_weight[0,0,1,2]: right {right[1, 2]:g}, broken {wrong[1, 2]:g}, off by {off}"
    expect(widget.spelled).to_have_text(words)
    widget.cells("right").first.focus()
    widget.page.keyboard.press("Enter")
    expect(widget.spelled).to_contain_text("grad_weight[0,0,0,0]: right 3")
    tab.assert_clean()


def test_a_result_of_another_shape_is_said_and_drawn(tab, widget) -> None:
    widget.example("C")
    widget.select.select_option("dgrad_no_leftover")
    expect(widget.spelled).to_contain_text("Its shape is 2×1×5×7, needed is 2×1×6×7")
    assert widget.numbers("broken").shape == (5, 7)
    assert np.array_equal(np.argwhere(widget.marked("right").any(axis=1)).ravel(), [5])
    widget.cells("right").last.click()
    expect(widget.spelled).to_contain_text("broken no such cell")
    tab.assert_clean()


def test_a_mistake_that_stops_with_an_error_says_so(tab, widget) -> None:
    """Slid over the bare pixel of example A, g does not fit."""
    widget.example("A")
    widget.select.select_option("wgrad_ignores_padding")
    expect(widget.root.locator(".cg-broken .cg-note")).to_contain_text("stops with an error")
    assert {evidence for _, evidence in widget.findings()} == {"it stops with an error"}
    tab.assert_clean()


def test_arrows_go_through_the_mistakes(tab, widget) -> None:
    widget.root.locator(".cg-stage").focus()
    names = list(MISTAKES)
    for key, at in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        widget.page.keyboard.press(key)
        expect(widget.select).to_have_value(names[at])
    expect(widget.root.locator(".cg-stage")).to_be_focused()
    tab.assert_clean()


def test_numbers_and_knobs_change_everything_and_can_be_taken_back(tab, widget) -> None:
    mirror = BreakTheGradient(example("B"))
    widget.root.get_by_text("x, w and g", exact=True).click()
    cell = widget.root.get_by_role("grid", name=re.compile("^x,")).get_by_role("gridcell").first
    cell.click()
    widget.root.get_by_role("textbox").fill("-7")
    widget.root.get_by_role("textbox").press("Enter")
    x = mirror.x.copy()
    x[0, 0, 0, 0] = -7
    mirror.x = x
    assert np.array_equal(widget.numbers("broken"), mirror.wrong[0, 0])
    widget.root.get_by_text("change the convolution").click()
    field = widget.root.get_by_label("padding", exact=True)
    field.fill("1")
    field.press("Tab")
    mirror.geometry = {**mirror.geometry.as_dict(), "padding": 1}
    assert np.array_equal(widget.numbers("right"), mirror.right[0, 0])
    assert np.array_equal(widget.numbers("broken"), mirror.wrong[0, 0])
    widget.button("undo").click()
    widget.button("undo").click()
    expect(cell).to_have_text("1")
    original = BreakTheGradient(example("B"))
    assert np.array_equal(widget.numbers("broken"), original.wrong[0, 0])
    tab.assert_clean()


def test_the_list_says_what_cannot_be_seen_here(widget) -> None:
    silent = widget.select.locator("option", has_text="(not to be seen here)")
    shown = showing(*b_operands())
    expect(silent).not_to_have_count(0)
    values = silent.evaluate_all("(options) => options.map((option) => option.value)")
    assert not set(values) & set(shown)
    mirror = BreakTheGradient(example("B"))
    for name in MISTAKES:
        mirror.mistake = name
        same = mirror.wrong.shape == mirror.right.shape and (mirror.wrong == mirror.right).all()
        assert same == (name in values), name


def b_operands():
    x, weight, _, grad_output = example("B").arrays()
    return example("B").geometry, {"x": x, "weight": weight, "grad_output": grad_output}


# ---- the duel --------------------------------------------------------------------------------


@pytest.fixture
def duel(tab) -> Widget:
    """The gallery's second one: example D, seed 7."""
    return Widget(tab.goto(GALLERY), "Break the gradient 2")


def expected_round(number: int):
    mirror = BreakTheGradient(example("D"), mode="duel", seed=7)
    return round_of(showing(mirror.geometry, mirror._operands), 7, number)


def test_a_duel_is_played_and_explained(tab, duel) -> None:
    guesses = duel.root.locator(".cg-guess")
    tries = 0
    for number in range(4):
        hidden, among = expected_round(number)
        expect(duel.root.locator(".cg-question")).to_have_text(
            f"Round {number + 1}: grad_{MUTANTS[hidden].target} is broken. Which mistake is it?"
        )
        titles = [MISTAKES[name][0] for name in among]
        assert [text.split("\n")[1] for text in guesses.all_inner_texts()] == titles
        assert MUTANTS[hidden].sentence not in duel.root.inner_text()
        miss = next(name for name in among if name != hidden)
        guesses.nth(among.index(miss)).click()
        verdict = duel.root.locator(".cg-verdict")
        expect(verdict).to_contain_text("Not this one.")
        expect(verdict).to_contain_text(MUTANTS[miss].sentence)
        expect(verdict).to_contain_text(re.compile("It would (put|give)"))
        expect(guesses.nth(among.index(miss))).to_contain_text("✗ not this one")
        guesses.nth(among.index(hidden)).click()
        tries += 2
        expect(verdict).to_contain_text("Found.")
        expect(verdict).to_contain_text(MUTANTS[hidden].sentence)
        expect(verdict).to_contain_text(MISTAKES[hidden][1])
        expect(duel.root.locator(".cg-score")).to_have_text(
            f"{number + 1} found with {tries} guesses"
        )
        expect(duel.button("next round")).to_be_focused()
        duel.page.keyboard.press("Enter")
    tab.assert_clean()


def test_the_refutation_is_true(duel) -> None:
    """What the guess would have put into a cell, and what stands there."""
    hidden, among = expected_round(0)
    miss = next(name for name in among if name != hidden)
    duel.root.locator(".cg-guess").nth(among.index(miss)).click()
    said = duel.root.locator(".cg-verdict").inner_text().replace("−", "-")
    would, cell, does = re.search(
        r"would put (-?[\d.]+) into grad_\w+\[([\d,]+)\], where (-?[\d.]+) stands", said
    ).groups()
    at = tuple(map(int, cell.split(",")))
    mirror = BreakTheGradient(example("D"), mistake=miss)
    assert float(would) == pytest.approx(mirror.wrong[at], rel=1e-5)
    mirror.mistake = hidden
    assert float(does) == pytest.approx(mirror.wrong[at], rel=1e-5)
    assert would != does


def test_a_duel_by_keys_alone(tab, duel) -> None:
    hidden, among = expected_round(0)
    duel.root.locator(".cg-stage").focus()
    duel.page.keyboard.press(str(among.index(hidden) + 1))
    expect(duel.root.locator(".cg-verdict")).to_contain_text("Found.")
    expect(duel.button("next round")).to_be_focused()
    duel.page.keyboard.press("Enter")
    expect(duel.root.locator(".cg-question")).to_contain_text("Round 2")
    expect(duel.root.locator(".cg-guess").first).to_be_focused()
    tab.assert_clean()


def test_the_answer_can_be_asked_for(duel) -> None:
    hidden, _ = expected_round(0)
    duel.button("show the answer").click()
    expect(duel.root.locator(".cg-verdict")).to_contain_text(f"It was: {MISTAKES[hidden][0]}.")
    expect(duel.root.locator(".cg-score")).to_have_text("")


def test_a_link_takes_a_friend_to_the_same_round(tab, duel, visit) -> None:
    duel.button("show the answer").click()
    duel.button("next round").click()
    tab.page.wait_for_url(re.compile(r"w\d+\.round=1"))
    other = Widget(visit().goto(tab.page.url), "Break the gradient 2")
    question = duel.root.locator(".cg-question").inner_text()
    expect(other.root.locator(".cg-question")).to_have_text(question)
    expect(other.root.locator(".cg-verdict")).to_be_empty()


def test_where_nothing_can_be_told_apart_the_duel_says_so(tab, duel) -> None:
    duel.root.get_by_text("change the convolution").click()
    for label, value in (
        *(("groups", 1), ("channels C", 1), ("kernels O", 1), ("images N", 1)),
        *(("height KH", 1), ("width KW", 1), ("height H", 1), ("width W", 1)),
    ):
        field = duel.root.get_by_label(label, exact=True)
        field.fill(str(value))
        field.press("Tab")
    expect(duel.root.locator(".cg-question")).to_contain_text("take a larger one")
    expect(duel.root.locator(".cg-stage")).to_be_hidden()
    tab.assert_clean()


# ---- for everybody ---------------------------------------------------------------------------


def test_everything_can_be_reached_by_tab(widget) -> None:
    widget.root.get_by_role("button", name=re.compile("^A: ")).focus()
    stops = set()
    for _ in range(40):
        widget.page.keyboard.press("Tab")
        name, inside, outlined = widget.page.evaluate(
            """() => {
              const at = document.activeElement;
              const style = getComputedStyle(at);
              const label = at.getAttribute("aria-label") ?? at.textContent;
              const seen = style.outlineStyle !== "none" || at.matches("input[type=radio]");
              return [(at.getAttribute("role") ?? at.tagName) + ": " + label,
                at.closest(".cg-break") !== null, seen];
            }"""
        )
        if not inside:
            break
        assert outlined, f"nothing shows that the focus is on {name}"
        stops.add(name.split(":")[0])
    assert {"gridcell", "SELECT", "SUMMARY", "BUTTON"} <= stops


@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_keeps_still_when_it_starts(visit, width) -> None:
    heights = "(hosts) => hosts.map((host) => host.offsetHeight)"
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(GALLERY, settle=False).locator(".cg-widget").evaluate_all(heights)
    after = visit(width=width).goto(GALLERY).locator(".cg-widget").evaluate_all(heights)
    # two lines of text: what the checks find is longer or shorter
    assert all(abs(a - b) <= 48 for a, b in zip(before, after, strict=True)), (before, after)


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width) -> None:
    tab = visit(width=width, height=700, touch=True)
    page = tab.goto(GALLERY)
    for widget in (Widget(page), Widget(page, "Break the gradient 2")):
        for button in widget.root.locator(".cg-guess, .cg-plain, .cg-tool, select").all():
            box = button.bounding_box()
            if box is None:
                continue
            assert box["height"] >= 43.5, button
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
    room, needed = page.evaluate(
        "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
    )
    assert needed == room
    tab.assert_clean()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_it_can_be_read_and_a_screen_reader_finds_its_way(visit, axe, dark, width) -> None:
    page = visit(dark=dark, width=width, reduced_motion=True).goto(GALLERY)
    first, second = Widget(page), Widget(page, "Break the gradient 2")
    first.example("D")
    first.select.select_option("col2im_assign")
    first.cells("broken").first.click()
    first.root.get_by_text("x, w and g", exact=True).click()
    second.root.locator(".cg-guess").first.click()
    found = page.evaluate(FAINT_TEXT)
    assert not found["faint"]
    for part in page.locator(".cg-widget").all():
        assert not axe(part)


def test_without_javascript_both_gradients_and_the_checks_stand_there(visit) -> None:
    page = visit(javascript=False).goto(GALLERY, settle=False)
    told = page.get_by_role("img", name=re.compile("9 of 9 cells differ"))
    figure = page.locator("figure.cg-fallback").filter(has=told)
    expect(figure).to_have_count(1)
    rows = figure.locator("tbody tr")
    expect(rows).to_have_count(len(CHECKS))
    for k, finding in enumerate(BreakTheGradient(example("B")).findings):
        expect(rows.nth(k)).to_contain_text(finding.evidence)
