"""UnfoldMatrix in the built book: what a reader does, against what Python computes."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from contents import FAINT_TEXT, pages_showing, tab_stops
from playwright.sync_api import Locator, Page, expect

from convgrad import ConvGeometry, GeometryError, example, im2col
from convgrad.widgets import UnfoldMatrix

pytestmark = pytest.mark.browser
WIDGET = "unfold_matrix"

STAGES = {
    "columns": "columns",
    "forward": "forward: w·columns",
    "weight": "grad_weight: g·columnsᵀ",
    "input": "grad_input: wᵀ·g, fold",
}


class Matrix:
    """The first matrix view of a page, by the names that a screen reader would say."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.get_by_role("region", name="Image and columns").first
        self.stage = self.root.get_by_role("group", name=re.compile("^matrices; "))
        self.words = self.root.locator(".cg-spelled")
        self.live = self.root.locator("[aria-live=polite]")
        self.message = self.root.get_by_role("alert")

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name, exact=True)

    def choose(self, name: str) -> None:
        self.root.get_by_role("radio", name=name, exact=True).check()

    def example(self, letter: str) -> None:
        self.root.get_by_role("button", name=re.compile(f"^{letter}: ")).click()

    def turn(self, label: str, value: int | str) -> None:
        knobs = self.root.locator("details.cg-knobs")
        if knobs.get_attribute("open") is None:
            knobs.locator("summary").click()
        field = knobs.get_by_label(label, exact=True)
        field.fill(str(value))
        field.press("Tab")

    def scrub(self, step: int) -> None:
        self.root.get_by_role("slider", name="step").fill(str(step))

    def grid(self, name: str, which: int = 0) -> Locator:
        return self.root.get_by_role("grid", name=re.compile(rf"^{re.escape(name)}, ")).nth(which)

    def cell(self, name: str, row: int, col: int, which: int = 0) -> Locator:
        return self.grid(name, which).locator(f'[data-row="{row}"][data-col="{col}"]')

    def numbers(self, name: str, which: int = 0) -> np.ndarray:
        """What is drawn of a matrix or a map; blank cells are nan."""
        rows = self.grid(name, which).evaluate(
            """(grid) => [...grid.querySelectorAll("[role=row]")]
              .map((row) => [...row.querySelectorAll(".cg-cell:not(.cg-pad)")]
                .map((cell) => cell.textContent.replace("−", "-")))
              .filter((row) => row.length)"""
        )
        return np.array([[float(text or "nan") for text in row] for row in rows])

    def marked(self, name: str, mark: str, which: int = 0) -> set[tuple[int, int]]:
        places = self.grid(name, which).evaluate(
            "(grid, mark) => [...grid.querySelectorAll(mark)]"
            ".map((cell) => [Number(cell.dataset.row), Number(cell.dataset.col)])",
            mark,
        )
        return set(map(tuple, places))


@pytest.fixture
def tab(visit):
    return visit()


@pytest.fixture
def matrix(tab) -> Matrix:
    """The matrix view of the first page that has one: example B, its columns."""
    matrix = Matrix(tab.goto(f"{pages_showing('UnfoldMatrix')[0]}.html"))
    expect(matrix.root).to_be_visible()
    return matrix


def test_the_columns_are_pythons_and_each_entry_leads_to_its_cell(tab, matrix):
    b = example("B")
    x = b.arrays().x
    columns = im2col.unfold(x, b.geometry)[0]
    assert np.array_equal(matrix.numbers("columns"), columns)
    for r, l in [(0, 0), (5, 3), (8, 8)]:
        matrix.cell("columns", r, l).hover()
        (i, j), (p, q) = divmod(r, 3), divmod(l, 3)
        assert matrix.marked("x", ".cg-partner") == {(p + i, q + j)}
        expect(matrix.words).to_contain_text(
            f"columns[{r},{l}] copies x[0,0,{p + i},{q + j}] = {x[0, 0, p + i, q + j]:g}: "
            f"tap ({i},{j}) in window ({p},{q})"
        )
    tab.assert_clean()


def test_an_image_cell_leads_to_all_its_copies(matrix):
    b = example("B")
    numbered = np.arange(25.0).reshape(1, 1, 5, 5)
    origins = im2col.unfold(numbered, b.geometry)[0]
    for h, v in [(0, 0), (1, 2), (2, 2)]:
        matrix.cell("x", h, v).hover()
        copies = set(map(tuple, np.argwhere(origins == numbered[0, 0, h, v]).tolist()))
        assert matrix.marked("columns", ".cg-partner") == copies
        times = f"{len(copies)} time{'s' * (len(copies) > 1)}"
        expect(matrix.words).to_contain_text(f"is copied {times}")


def test_padding_is_shown_as_padding_from_both_sides(matrix):
    matrix.turn("padding", 1)
    expect(matrix.message).to_be_hidden()
    assert matrix.marked("columns", ".cg-hatch") >= {(0, 0), (0, 4), (6, 0)}
    matrix.cell("columns", 0, 0).hover()
    assert matrix.marked("x", ".cg-partner") == {(-1, -1)}
    expect(matrix.words).to_contain_text(
        "is padding: tap (0,0) in window (0,0) lies above and left"
    )
    # by keyboard, from the corner of the image on to the border
    matrix.cell("x", 0, 0).focus()
    matrix.page.keyboard.press("ArrowUp")
    expect(matrix.words).to_contain_text(
        "x[0,0,−1,0] = 0 is padding above the image, copied 2 times"
    )
    expect(matrix.live).to_have_text(matrix.words.inner_text())
    assert matrix.marked("columns", ".cg-partner") == {(0, 1), (1, 0)}
    matrix.page.keyboard.press("ArrowDown")
    expect(matrix.words).to_contain_text("x[0,0,0,0] = 1 is copied")


def test_windows_are_written_one_by_one(tab, matrix):
    columns = im2col.unfold(example("B").arrays().x, example("B").geometry)[0]
    matrix.scrub(4)
    drawn = matrix.numbers("columns")
    assert np.array_equal(drawn[:, :4], columns[:, :4])
    assert np.isnan(drawn[:, 4:]).all()
    written = " ".join(f"{value:g}" for value in columns[:, 3])
    expect(matrix.words).to_have_text(f"window (1,0) becomes column 3: {written}")
    assert matrix.marked("x", ".cg-partner") == set(itertools.product((1, 2, 3), (0, 1, 2)))
    matrix.root.get_by_label("speed, steps a second").select_option("60")
    matrix.button("to the end").click()
    matrix.button("play").click()  # from the end it plays again from the start
    expect(matrix.root.locator("output")).to_have_text("9 / 9", timeout=10_000)
    assert np.array_equal(matrix.numbers("columns"), columns)
    tab.assert_clean()


@pytest.mark.parametrize("letter", ["A", "B", "C", "D"])
def test_every_example_every_product(tab, matrix, letter):
    mirror = UnfoldMatrix(example(letter))
    g = mirror.geometry
    columns, y, grad_weight, grad_input = mirror.products
    counts = im2col.fold(np.ones_like(columns), g)
    matrix.example(letter)
    for stage, name in STAGES.items():
        matrix.choose(name)
        for n, k in itertools.product(range(g.N), range(g.groups)):
            if g.N > 1:
                matrix.choose(str(n))
            if g.groups > 1:
                matrix.choose("AB"[k])
            outs = slice(k * g.OG, (k + 1) * g.OG)
            R = g.CG * g.KH * g.KW
            expected = {
                "columns": ("columns", columns[n, k * R : (k + 1) * R]),
                "forward": ("y", y[n, outs].reshape(g.OG, -1)),
                "weight": ("grad_weight", grad_weight[outs].reshape(g.OG, -1)),
            }
            if stage in expected:
                grid, array = expected[stage]
                assert np.array_equal(matrix.numbers(grid), array), (stage, n, k)
                continue
            for c in range(g.CG):
                drawn = matrix.numbers("grad_input", c)
                assert np.array_equal(drawn, grad_input[n, k * g.CG + c]), (n, k, c)
            assert np.array_equal(matrix.numbers("overlap"), counts[n, 0])
    tab.assert_clean()


def test_each_cell_of_a_product_is_spelled_out(matrix):
    b = example("B")
    x, weight, _, grad_output = b.arrays()
    columns = im2col.unfold(x, b.geometry)[0]
    W, G = weight.reshape(1, 9), grad_output.reshape(1, 9)
    cases = [
        ("forward", "y", (0, 4), W[0], columns[:, 4], "y[0,0,1,1]"),
        ("weight", "grad_weight", (0, 5), G[0], columns.T[:, 5], "grad_weight[0,0,1,2]"),
        ("input", "wᵀ·g", (2, 7), W.T[2], G[:, 7], "product[2,7]"),
    ]
    for stage, grid, (row, col), left, right, name in cases:
        matrix.choose(STAGES[stage])
        matrix.cell(grid, row, col).hover()
        pairs = [
            "·".join(f"({v:g})" if v < 0 else f"{v:g}" for v in pair)
            for pair in zip(left, right, strict=True)
        ]
        text = matrix.words.inner_text().replace("−", "-")
        assert text.startswith(f"{name} = row {row} of ")
        assert f"= {' + '.join(pairs)} = {left @ right:g}" in text
    expect(matrix.words).to_contain_text("goes to grad_input[0,0,2,3]")


def test_fold_adds_column_after_column(matrix):
    b = example("B")
    _, weight, _, grad_output = b.arrays()
    products = weight.reshape(9, 1) @ grad_output.reshape(1, 9)
    matrix.choose(STAGES["input"])
    matrix.scrub(81 + 4)
    part = np.where(np.arange(9) < 4, products, 0)
    ones = np.where(np.arange(9) < 4, np.ones_like(products), 0)
    assert np.array_equal(matrix.numbers("grad_input"), im2col.fold(part[None], b.geometry)[0, 0])
    assert np.array_equal(matrix.numbers("overlap"), im2col.fold(ones[None], b.geometry)[0, 0])
    expect(matrix.words).to_contain_text(
        "fold: column 3 is added back to the cells under window (1,0)"
    )
    matrix.cell("grad_input", 2, 2).hover()
    expect(matrix.words).to_contain_text("9 products, 4 of them folded so far")


def test_numbers_can_be_edited_where_they_stand(tab, matrix):
    mirror = UnfoldMatrix(example("D"))
    matrix.example("D")
    x, weight, grad_output = (
        array.copy() for array in (mirror.x, mirror.weight, mirror.grad_output)
    )

    def edit(grid: str, row: int, col: int, value: str, which: int = 0) -> None:
        matrix.cell(grid, row, col, which).click()
        field = matrix.grid(grid, which).get_by_role("textbox")
        field.fill(value)
        field.press("Enter")

    matrix.choose("1")
    matrix.choose("B")
    edit("x", 2, 1, "-7", which=1)
    x[1, 3, 2, 1] = -7
    matrix.choose(STAGES["weight"])
    matrix.choose("1")
    matrix.choose("B")
    edit("g", 2, 5, "9")
    grad_output[1, 5, 1, 2] = 9
    matrix.choose(STAGES["input"])
    matrix.choose("1")
    matrix.choose("B")
    edit("wᵀ", 7, 0, "1.5")
    weight[3, 1, 0, 1] = 1.5
    mirror.x, mirror.weight, mirror.grad_output = x, weight, grad_output
    assert np.array_equal(matrix.numbers("grad_input", 1), mirror.products.grad_input[1, 3])
    matrix.choose(STAGES["weight"])
    matrix.choose("B")
    assert np.array_equal(
        matrix.numbers("grad_weight"), mirror.products.grad_weight[3:].reshape(3, -1)
    )
    tab.assert_clean()


def test_an_impossible_geometry_is_explained_in_place(tab, matrix):
    before = matrix.numbers("columns")
    matrix.turn("dilation", 3)
    with pytest.raises(GeometryError) as python:
        ConvGeometry(**{**example("B").geometry.as_dict(), "dilation": (3, 3)})
    expect(matrix.message).to_be_visible()
    assert matrix.message.inner_text().startswith(str(python.value))
    assert np.array_equal(matrix.numbers("columns"), before), "the last possible one stays"
    matrix.turn("dilation", 1)
    expect(matrix.message).to_be_hidden()
    matrix.turn("images N", 0)
    expect(matrix.message).to_contain_text("the matrix view needs at least one image")
    tab.assert_clean()


def test_bytes_stand_beside_the_columns(matrix):
    memory = matrix.root.locator(".cg-memory")
    expect(memory).to_contain_text("100 bytes, 4 for each number")
    expect(memory).to_contain_text("324 bytes, 3.24 times the image")
    expect(memory).to_contain_text("0 bytes more: windows are only looked at")
    matrix.turn("padding", 1)
    expect(memory).to_contain_text("196 bytes more, for x with its border")
    matrix.choose(STAGES["forward"])
    expect(memory).to_be_hidden()


def test_a_large_matrix_is_drawn_in_part_and_all_of_it_can_be_reached(matrix):
    matrix.turn("padding", 1)
    matrix.turn("height H", 7)
    shown = matrix.root.get_by_role("slider", name="columns 0 to 13 of 35")
    expect(shown).to_be_visible()
    whole = im2col.unfold(
        UnfoldMatrix(example("B")).x, example("B").geometry
    )  # its first window stays where it was
    assert matrix.numbers("columns").shape == (9, 14)
    # beyond the edge by keyboard: the focus stays, the matrix moves under it
    matrix.cell("columns", 4, 13).focus()
    matrix.page.keyboard.press("ArrowRight")
    expect(matrix.words).to_contain_text("columns[4,14]")
    expect(matrix.root.get_by_role("slider", name="columns 1 to 14 of 35")).to_be_visible()
    matrix.root.get_by_role("slider", name=re.compile("^columns")).fill("21")
    expect(matrix.root.get_by_role("slider", name="columns 21 to 34 of 35")).to_be_visible()
    # a step that is elsewhere comes into sight
    matrix.scrub(3)
    expect(matrix.root.get_by_role("slider", name="columns 2 to 15 of 35")).to_be_visible()
    assert whole.shape == (1, 9, 9)


def test_keys_do_what_the_help_says(tab, matrix):
    matrix.stage.focus()
    keyboard = matrix.page.keyboard
    output = matrix.root.locator("output")
    for key, step in [
        ("Home", 0),
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", 9),
    ]:
        keyboard.press(key)
        expect(output).to_have_text(f"{step} / 9")
    keyboard.press("Space")
    expect(matrix.button("pause")).to_be_visible()
    keyboard.press("Space")
    expect(matrix.button("play")).to_be_visible()
    matrix.cell("columns", 0, 0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        keyboard.press(key)
    expect(matrix.words).to_contain_text("columns[2,1] copies x[0,0,0,3]")
    tab.assert_clean()


def test_everything_can_be_reached_by_tab(matrix):
    """Tab walks through choices, grids and buttons; each stop shows where it is."""
    matrix.root.get_by_role("button").first.focus()
    stops = tab_stops(matrix.page, ".cg-unfold", most=40)
    assert "gridcell" in stops
    assert any(stop.startswith("BUTTON: play") for stop in stops)
    assert any(stop.startswith("SUMMARY") for stop in stops)


@pytest.mark.parametrize("width", [320])
def test_it_can_be_used_on_a_phone(visit, width):
    """Nothing sticks out, controls are large enough for a thumb, and it still counts right."""
    page = pages_showing("UnfoldMatrix")[0]
    matrix = Matrix(visit(width=width, height=700, touch=True).goto(f"{page}.html"))
    for name in ("play", "one step on", "one step back", "to the start", "to the end"):
        box = matrix.button(name).bounding_box()
        assert box and box["height"] >= 43.5, name
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, name
    for letter, stage in itertools.product("ABCD", STAGES.values()):
        matrix.example(letter)
        matrix.choose(stage)
        room, needed = matrix.page.evaluate(
            "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
        )
        assert needed == room, (letter, stage)
    matrix.cell("grad_input", 1, 1).tap()
    expect(matrix.words).to_contain_text("grad_input[2,2,1,1] = ")


def test_reduced_motion_is_honoured(visit):
    page = pages_showing("UnfoldMatrix")[0]
    matrix = Matrix(visit(reduced_motion=True).goto(f"{page}.html"))
    matrix.cell("columns", 3, 3).hover()
    matrix.cell("columns", 5, 5).hover()
    running = matrix.page.evaluate(
        "() => document.getAnimations().filter((each) =>"
        " each.effect?.target?.closest('.cg-unfold')).length"
    )
    assert running == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_of_a_cell_can_be_read_and_axe_finds_nothing(visit, axe, dark):
    page = pages_showing("UnfoldMatrix")[0]
    matrix = Matrix(visit(dark=dark, reduced_motion=True).goto(f"{page}.html"))
    for letter, stage, grid in [("A", "columns", "columns"), ("D", "input", "grad_input")]:
        matrix.example(letter)
        matrix.choose(STAGES[stage])
        matrix.turn("groups", 7)  # impossible: the message is read too
        matrix.cell(grid, 0, 0).focus()
        found = matrix.page.evaluate(FAINT_TEXT)
        assert found["measured"] > 60
        assert not found["faint"], (letter, stage)
        assert not axe(matrix.root), (letter, stage)


@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_keeps_still_when_it_starts(visit, width):
    """Its fallback has kept the room."""
    page = pages_showing("UnfoldMatrix")[0]
    measure = """(hosts) => hosts.filter((host) => host.querySelector("figure.cg-fallback"))
      .map((host) => host.offsetHeight)"""
    still = visit(width=width)
    still.page.route("**/_widgets/*.js", lambda route: route.abort())
    before = still.goto(f"{page}.html", settle=False).locator(".cg-widget").evaluate_all(measure)
    after = visit(width=width).goto(f"{page}.html").locator(".cg-widget").evaluate_all(measure)
    assert len(before) == len(after) >= 1
    # 24 pixels: about one line of text
    assert all(abs(a - b) <= 24 for a, b in zip(before, after, strict=True)), (before, after)
