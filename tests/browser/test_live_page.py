"""Cells that are edited and run in the page: the switch, Python in its worker, what it shows."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live")]

CHAPTER = "book/part1/sliding_window.html"
LONG = 60_000  # milliseconds; two cores may be busy


def go_live(tab, page: str = CHAPTER) -> Page:
    shown = tab.goto(page, settle=False)
    shown.get_by_role("button", name="Run live").click()
    expect(shown.locator(".cg-run-bar")).to_be_visible(timeout=LONG)
    return shown


class Cell:
    """One live cell of a page, by its number."""

    def __init__(self, page: Page, number: int) -> None:
        self.page, self.number = page, number
        tools = page.get_by_role("group", name=f"Tools of cell {number}", exact=True)
        self.whole = page.locator("div.cell", has=tools)
        self.tools = tools
        self.code = page.get_by_role("textbox", name=f"Code of cell {number}", exact=True)
        self.state = tools.locator(".cg-run-state")
        self.output = self.whole.locator(".cell_output")

    def write(self, code: str) -> None:
        """As a reader would: choose all, type over it.  Enter indents by itself, so one paste."""
        self.code.click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(code)

    def button(self, name: str) -> Locator:
        return self.tools.get_by_role("button", name=name)

    def run(self, *, ends: str | re.Pattern = "done") -> None:
        self.button("Run cell").click()
        expect(self.state).to_contain_text(ends, timeout=LONG)


@pytest.fixture(scope="module")
def tab(shared):
    """A chapter made live once; the tests go through it one after another."""
    tab = shared()
    tab.page.set_default_timeout(30_000)  # two cores may be busy
    go_live(tab)
    return tab


def test_before_the_switch_is_pressed_nothing_is_loaded(visit):
    tab = visit()
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    page = tab.goto(CHAPTER, settle=False)
    expect(page.get_by_role("button", name="Run live")).to_be_visible()
    assert [url.rpartition("/")[2].split("-")[0] for url in asked if "/_live/" in url] == ["switch"]


def test_without_javascript_there_is_no_switch(visit):
    page = visit(javascript=False).goto(CHAPTER, settle=False)
    expect(page.locator("article h1")).to_be_visible()
    assert page.locator(".cg-run-switch, .cg-run-tools").count() == 0


def test_an_edited_cell_runs_and_says_how_much_of_python_has_come(tab):
    page = tab.page
    status = page.get_by_role("status").filter(has_text="Python")
    expect(status).to_contain_text(re.compile(r"\d\.\d of 1\d\.\d MB|is ready"), timeout=LONG)
    cell = Cell(page, 1)
    cell.write("import numpy as np\nprint('sum', np.arange(5).sum())\nnp.arange(3) * 2")
    cell.run()
    expect(cell.output).to_contain_text("sum 10")
    expect(cell.output).to_contain_text("array([0, 2, 4])")
    expect(status).to_contain_text("Python is ready")
    tab.assert_clean()


def test_an_error_marks_its_line(tab):
    cell = Cell(tab.page, 2)
    cell.write("a = [1]\nb = a[3]\nprint(b)")
    cell.code.press("Control+Enter")
    expect(cell.state).to_contain_text("IndexError, line 2", timeout=LONG)
    expect(cell.code.locator(".cg-run-wrong")).to_have_text("b = a[3]")
    expect(cell.output).to_contain_text("IndexError in line 2")
    expect(cell.output).to_contain_text("list index out of range")
    cell.write("print('mended')")
    assert cell.code.locator(".cg-run-wrong").count() == 0
    cell.code.press("Shift+Enter")
    expect(cell.output).to_contain_text("mended", timeout=LONG)


def test_names_from_above_are_offered_and_brought(tab):
    page = tab.page
    Cell(page, 1).button("Reset").click()
    cell = Cell(page, 7)
    cell.write("print(products.sum() + bias[0], conv2d(x, weight, bias)[0, 0].shape)")
    cell.run(ends="NameError")
    cell.output.get_by_role("button", name="Run all above, then this").click()
    expect(cell.output).to_contain_text("8.0 (3, 3)", timeout=LONG)
    expect(Cell(page, 4).output).to_contain_text("array([[ 2.,  0., -1.]")
    # the first cell shows an explorable, drawn anew and alive
    widget = Cell(page, 1).output.locator(".cg-widget.cg-mounted")
    expect(widget).to_be_visible(timeout=LONG)
    tab.assert_clean()


def test_an_explorable_and_python_hear_of_each_other(tab):
    page = tab.page
    cell = Cell(page, 1)
    cell.write(
        "from convgrad import *\nfrom convgrad.widgets import SlidingWindow\n"
        "window = SlidingWindow(example('B'))\nwindow"
    )
    cell.run()
    on = cell.output.get_by_role("button", name="one step on")
    expect(on).to_be_visible()
    on.click()
    on.click()
    other = Cell(page, 2)
    other.write("print('step', window.step)\nwindow.step = 7")
    other.run()
    expect(other.output).to_contain_text("step 3")  # it begins with the first
    expect(cell.output).to_contain_text("7 / 9")


def test_a_figure_follows_the_page_and_has_a_name(tab):
    cell = Cell(tab.page, 3)
    cell.write(
        "from convgrad.figures.grids import Grid, draw\ndraw(Grid([[1, 2]], 'x', title='x'))"
    )
    cell.run()
    figure = cell.output.get_by_role("img", name="Figure of cell 3")
    expect(figure).to_be_visible()
    assert figure.evaluate("(svg) => svg.tagName") == "svg"
    cell.write("import matplotlib.pyplot as plt\nplt.plot([3, 1, 2])\nplt.show()")
    cell.run()
    image = cell.output.locator("img.cg-run-image")
    assert image.evaluate("(image) => image.naturalWidth > 400 && image.complete")
    tab.assert_clean()


def test_an_exercise_is_checked_with_hints(tab):
    cell = Cell(tab.page, 4)
    ask = "from convgrad import exercises\nask = exercises.get('weight-how-many')\n"
    cell.write(ask + "ask.check(6)")
    cell.run()
    verdict = cell.output.locator(".cg-verdict--wrong")
    expect(verdict).to_contain_text("Not yet.")
    verdict.get_by_text("Hint 1").click()
    expect(verdict.locator("details").first).to_have_attribute("open", "")
    cell.write(ask + "ask.check(ask.answer)")
    cell.run()
    expect(cell.output.locator(".cg-verdict--right")).to_contain_text("Right.")


def test_a_cell_that_needs_pytorch_says_so_before_and_when_it_is_run(tab):
    cell = Cell(tab.page, 9)
    expect(cell.state).to_contain_text("needs PyTorch")
    built = cell.output.inner_html()
    cell.run(ends="needs PyTorch")
    note = cell.whole.locator(".cg-run-note")
    expect(note).to_contain_text("need PyTorch, which a browser does not have", timeout=LONG)
    expect(note.locator("code")).to_have_text("make lab")
    assert cell.output.inner_html() == built


def test_a_live_page_has_nothing_that_a_screen_reader_stumbles_over(tab, axe):
    assert axe(tab.page.locator("main")) == []
    tab.assert_clean()


def test_tab_leaves_an_editor_and_every_button_has_a_name_of_its_own(tab):
    page = tab.page
    Cell(page, 3).code.click()
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "Run cell 3"
    page.keyboard.press("Shift+Tab")
    named = page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    assert named == "Code of cell 3"


def test_what_does_not_end_is_stopped_and_nothing_written_is_lost(tab):
    page = tab.page
    cell = Cell(page, 6)
    endless = "n = 0\nwhile True:\n    n += 1\n    if n % 1_000_000 == 0: print(n)"
    cell.write(endless)
    cell.button("Run cell").click()
    expect(cell.output).to_contain_text("1000000", timeout=LONG)  # it streams
    cell.button("Stop cell").click()
    expect(cell.state).to_contain_text("stopped")
    status = page.get_by_role("status").filter(has_text="Python")
    expect(status).to_contain_text("All names are gone", timeout=LONG)
    assert "n += 1" in cell.code.inner_text()
    cell.write("print('again', 'products' in globals())")
    cell.run()
    expect(cell.output).to_contain_text("again False")
    tab.assert_clean()


def test_edits_outlive_a_reload_until_they_are_reset(tab):
    page = tab.page
    cell = Cell(page, 6)
    cell.write("print('mine')")
    page.reload()
    page.get_by_role("button", name="Run live").click()
    cell = Cell(page, 6)
    expect(cell.code).to_have_text("print('mine')")
    expect(cell.state).to_contain_text("edited")
    cell.button("Reset").click()
    expect(cell.code).not_to_have_text("print('mine')")
    expect(cell.code).to_contain_text("bias")  # the book's own again
    page.get_by_role("button", name="Leave live").click()
    expect(page.locator(".cg-run-bar, .cg-run-tools")).to_have_count(0)
    assert page.locator("div.cell_input div.highlight pre").count() > 10
    page.get_by_role("button", name="Run live").click()  # and on again, and off by the switch
    expect(page.locator(".cg-run-bar")).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Live", exact=True).click()
    expect(page.locator(".cg-run-bar, .cg-run-tools")).to_have_count(0)
    tab.assert_clean()


@pytest.mark.parametrize("width", [320, 375])
def test_a_live_page_fits_a_phone(visit, width):
    tab = visit(width=width, height=700, touch=True, dark=width == 375)
    page = go_live(tab)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for button in Cell(page, 2).tools.get_by_role("button").all():
        assert button.bounding_box()["height"] >= 44
    tab.assert_clean()


def test_without_storage_it_works_and_keeps_nothing(visit):
    tab = visit()
    tab.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', "
        "{ get() { throw new Error('no'); }, configurable: true });"
    )
    page = go_live(tab)
    cell = Cell(page, 2)
    cell.write("print(1)")
    expect(cell.state).to_contain_text("edited")
    tab.assert_clean()
