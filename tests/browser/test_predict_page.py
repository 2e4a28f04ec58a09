"""Predict and the loader in Chromium, on a page of their own made by the book's extension."""

from __future__ import annotations

import functools
import http.server
import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from convgrad.widgets import Predict

pytestmark = pytest.mark.browser

pytestmark = pytest.mark.slow  # make test-fast starts no browser

EXTENSIONS = Path(__file__).resolve().parents[2] / "book" / "_ext"

BROKEN = "export default { render() { throw new Error('out of paint') } }"


def questions() -> list[Predict]:
    return [
        Predict(
            "What is $2 + 3$?",
            5,
            hints=["Count on.", "It is less than `6`."],
            mistakes={6: "That is $2 · 3$."},
            explanation="Two and three are **five**.",
        ),
        Predict(
            "Fill in.",
            np.array([[0, -8, 6], [4, 2, 0]]),
            name="`g`",
            axes=("i", "j"),
            explanation="So.",
        ),
        Predict("Which?", 1, choices=["first", "second", "third"], mistakes={2: "Too far."}),
        Predict("How large?", [[4, 5]], labels=("rows", "columns")),
    ]


def write_page(folder: Path) -> None:
    """A page as the book has it: the four questions, the grid twice, and one broken widget."""
    sys.path.insert(0, str(EXTENSIONS))
    try:
        import static_widgets as ours
    finally:
        sys.path.remove(str(EXTENSIONS))

    files: dict[str, str] = {}

    def model(state):
        return ours.model_of({"model_name": "AnyModel", "state": state}, files)

    number, grid, choice, size = (model(each.get_state()) for each in questions())
    broken = model({"_esm": BROKEN, "fallback": "<p id='still'>a still picture</p>"})
    shown = {"w1": number, "w2": grid, "w3": broken, "w4": choice, "w5": size}
    body = "".join(ours.markup(name, each, first=True) for name, each in shown.items())
    body += ours.markup("w2", grid, first=False)

    target = folder / ours.FOLDER
    target.mkdir()
    for name, text in files.items():
        (target / name).write_text(text, "utf-8")
        if name.endswith(".js"):
            (target / name.replace(".js", ".packed.js")).write_text(ours.packed(text), "utf-8")
    (target / "loader.js").write_text(ours.loader_text(), "utf-8")
    (folder / "page.html").write_text(
        f"""<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">
        <meta name="viewport" content="width=device-width"><title>Questions</title>
        <link rel="stylesheet" href="{ours.FOLDER}/{number.stylesheet}">
        <style>{ours.PAGE_CSS} body {{margin: 16px}}</style>
        <script async src="{ours.FOLDER}/loader.js" data-modules="{number.module}"></script>
        <body>{body}</body></html>""",
        "utf-8",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    write_page(folder)
    return folder


@pytest.fixture(scope="module")
def address(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/page.html"
        server.shutdown()


@pytest.fixture
def context(browser):
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    context.set_default_timeout(10_000)
    yield context
    context.close()


@pytest.fixture
def page(context, address):
    return opened(context, address)


def opened(context, address):
    page = context.new_page()
    page.goto(address)
    expect(page.locator(".cg-mounted")).to_have_count(5)
    return page


def question(page, name):
    """The live part of one display; ``w2`` is there twice, this is the first."""
    return page.locator(f'[data-model="{name}"] > .cg-live').first


def verdict(page, name):
    return question(page, name).get_by_role("status")


def texts(locator):
    return [box.input_value() for box in locator.get_by_role("textbox").all()]


def fill(locator, *numbers):
    for box, number in zip(locator.get_by_role("textbox").all(), numbers, strict=True):
        box.fill(str(number))


# ---- a number -------------------------------------------------------------------------------


def test_a_number_from_a_mistake_to_the_right_answer(page):
    asked = question(page, "w1")
    field = asked.get_by_label("Your answer")
    expect(verdict(page, "w1")).to_be_empty()
    field.fill("6")
    field.press("Enter")
    expect(verdict(page, "w1")).to_have_text("✗Not yet. That is 2·3.")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("10/2")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    field.press("Enter")
    expect(verdict(page, "w1")).to_have_text("✓Right. Two and three are five.")
    expect(asked.get_by_role("button")).to_have_text(["Start over"])
    expect(field).not_to_be_editable()
    expect(field).to_be_focused()
    field.press("Enter")  # a second one does nothing
    expect(verdict(page, "w1")).to_contain_text("Right.")
    assert page.evaluate("JSON.parse(Object.values(localStorage)[0]).attempts") == 2


def test_what_is_no_number_is_said_and_is_no_attempt(page):
    asked = question(page, "w1")
    for typed, words in (
        ("1,5", "a point, not a comma: 1.5"),
        ("five", "no number"),
        ("", "first"),
    ):
        asked.get_by_label("Your answer").fill(typed)
        asked.get_by_role("button", name="Check").click()
        expect(verdict(page, "w1")).to_contain_text(words)
    kept = page.evaluate("Object.values(localStorage).map(JSON.parse).map(s => s.attempts)")
    assert kept == [0]


def test_a_verdict_is_said_once_a_check_and_not_with_every_key(page):
    field = question(page, "w1").get_by_label("Your answer")
    field.fill("6")
    field.press("Enter")
    said = verdict(page, "w1").locator("p").element_handle()
    field.press_sequentially("12")
    assert said.evaluate("p => p.isConnected")
    field.fill("6")
    field.press("Enter")
    assert not said.evaluate("p => p.isConnected"), "checked again, so said again"
    expect(verdict(page, "w1")).to_contain_text("That is 2·3.")


def test_typed_text_is_never_read_as_html(page):
    asked = question(page, "w1")
    asked.get_by_label("Your answer").fill("<img src=x onerror=alert(1)>")
    asked.get_by_label("Your answer").press("Enter")
    expect(verdict(page, "w1")).to_contain_text("“<img src=x onerror=alert(1)>” is no number")
    assert page.locator("img").count() == 0


def test_hints_come_one_by_one_and_then_the_answer(page):
    asked = question(page, "w1")
    hints = asked.get_by_role("listitem")
    asked.get_by_role("button", name="Show a hint").click()
    expect(hints).to_have_text(["Count on."])
    asked.get_by_role("button", name="Next hint (2 of 2)").click()
    expect(hints).to_have_text(["Count on.", "It is less than 6."])
    asked.get_by_role("button", name="Show the answer").click()
    assert texts(asked) == ["5"]
    expect(verdict(page, "w1")).to_contain_text("The answer. Two and three are five.")
    expect(verdict(page, "w1")).to_be_focused()
    asked.get_by_role("button", name="Start over").click()
    assert texts(asked) == [""]
    expect(hints).to_have_count(0)
    expect(verdict(page, "w1")).to_be_empty()
    expect(asked.get_by_label("Your answer")).to_be_focused()


def test_progress_outlives_the_page_and_start_over_ends_it(page):
    asked = question(page, "w1")
    asked.get_by_label("Your answer").fill("5")
    asked.get_by_label("Your answer").press("Enter")
    page.reload()
    expect(verdict(page, "w1")).to_contain_text("Right.")
    asked.get_by_role("button", name="Start over").click()
    page.reload()
    expect(asked.get_by_role("button", name="Check")).to_be_visible()
    expect(verdict(page, "w1")).to_be_empty()


def test_a_browser_without_storage_can_answer_too(context, address):
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() {throw new Error('forbidden')}})"
    )
    page = opened(context, address)
    question(page, "w1").get_by_label("Your answer").fill("5")
    question(page, "w1").get_by_label("Your answer").press("Enter")
    expect(verdict(page, "w1")).to_contain_text("Right.")


# ---- a grid ---------------------------------------------------------------------------------


def test_a_grid_is_one_stop_of_tab_and_arrows_move_in_it(page):
    asked = question(page, "w2")
    cell = functools.partial(asked.get_by_label, exact=True)
    assert asked.locator('input[tabindex="0"]').count() == 1
    cell("i = 0, j = 0").focus()
    for key, place in (
        ("ArrowRight", "i = 0, j = 1"),
        ("ArrowDown", "i = 1, j = 1"),
        ("ArrowDown", "i = 1, j = 1"),
        ("End", "i = 1, j = 1"),
        ("ArrowRight", "i = 1, j = 2"),
        ("ArrowUp", "i = 0, j = 2"),
    ):
        page.keyboard.press(key)
        expect(cell(place)).to_be_focused()
    page.keyboard.type("12")
    page.keyboard.press("ArrowLeft")
    expect(cell("i = 0, j = 2")).to_be_focused()  # inside the text
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(cell("i = 0, j = 1")).to_be_focused()
    page.keyboard.press("Tab")
    expect(asked.get_by_role("button", name="Check")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(cell("i = 0, j = 1")).to_be_focused()


def test_a_wrong_grid_marks_its_first_wrong_cell_and_says_where(page):
    asked = question(page, "w2")
    fill(asked, 0, -8, -6, 4, 2, 1)
    expect(asked.locator("button:visible")).to_have_text(["Check"])  # no hints: first a try
    asked.get_by_role("button", name="Check").click()
    expect(asked.locator("button:visible")).to_have_text(["Check", "Show the answer"])
    words = (
        "4 of 6 cells are right. Look first at i = 0, j = 2: the size is right, the sign is not."
    )
    expect(verdict(page, "w2")).to_contain_text(words)
    wrong = asked.locator("[aria-invalid]")
    expect(wrong).to_have_count(1)
    expect(wrong).to_have_attribute("aria-label", "i = 0, j = 2")
    expect(wrong).to_be_focused()
    assert wrong.evaluate("box => getComputedStyle(box).borderStyle") == "dashed"
    described = wrong.get_attribute("aria-describedby")
    assert page.locator(f"[id='{described}']").inner_text() == verdict(page, "w2").inner_text()


def test_a_grid_is_called_by_its_name(page):
    table = question(page, "w2").get_by_role("table", name="g", exact=True)
    expect(table.locator("caption code")).to_have_text("g")
    expect(question(page, "w5").locator("caption")).to_have_count(0)


def test_boxes_have_labels_to_see_and_to_hear(page):
    asked = question(page, "w5")
    rows, columns = (asked.get_by_label(name, exact=True) for name in ("rows", "columns"))
    for box, word in ((rows, "rows"), (columns, "columns")):
        over = asked.get_by_role("columnheader", name=word, exact=True)
        expect(over).to_be_visible()
        assert abs(over.bounding_box()["x"] - box.bounding_box()["x"]) <= 1
    rows.fill("4")
    rows.press("Enter")
    expect(verdict(page, "w5")).to_contain_text("“columns” is still empty")
    expect(columns).to_be_focused()
    columns.fill("6")
    columns.press("Enter")
    expect(verdict(page, "w5")).to_contain_text("Look first at “columns”: 6 does not belong there.")
    expect(columns).to_have_attribute("aria-invalid", "true")


def test_two_displays_of_one_question_move_together(page):
    one, two = (page.locator('[data-model="w2"] > .cg-live').nth(k) for k in (0, 1))
    one.get_by_role("textbox").first.fill("17")
    assert texts(two)[0] == "17"
    fill(two, 0, -8, 6, 4, 2, 0)
    two.get_by_role("textbox").last.press("Enter")
    for display in (one, two):
        expect(display.get_by_role("status")).to_contain_text("Right.")
        assert texts(display) == ["0", "−8", "6", "4", "2", "0"]


# ---- a choice -------------------------------------------------------------------------------


def test_a_choice_by_keyboard(page):
    asked = question(page, "w4")
    asked.get_by_role("button", name="Check").click()
    expect(verdict(page, "w4")).to_contain_text("Choose one first.")
    asked.get_by_label("first").focus()
    page.keyboard.press("ArrowUp")
    expect(asked.get_by_label("third")).to_be_checked()
    page.keyboard.press("Enter")
    expect(verdict(page, "w4")).to_have_text("✗Not yet. Too far.")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(verdict(page, "w4")).to_contain_text("Right.")
    expect(asked.get_by_label("second")).to_be_checked()


# ---- the page around them -------------------------------------------------------------------


def test_one_broken_widget_keeps_its_picture_and_the_others_live(page):
    broken = page.locator('[data-model="w3"]')
    expect(broken.locator("#still")).to_be_visible()
    expect(broken.locator(".cg-note:not(noscript *)")).to_contain_text("(out of paint)")
    expect(broken.locator(".cg-live")).to_have_count(0)


def test_nothing_jumps_when_a_question_comes_alive(browser, address, page):
    still = browser.new_context(
        viewport={"width": 1000, "height": 800}, java_script_enabled=False
    ).new_page()
    still.goto(address)
    for name in ("w1", "w2", "w4", "w5"):
        before = still.locator(f'[data-model="{name}"] .cg-predict').first.bounding_box()["height"]
        after = question(page, name).locator(".cg-predict").bounding_box()["height"]
        assert abs(after - before) <= 1, name
    still.context.close()


def test_without_javascript_the_questions_stand_there(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.get_by_text("What is")).to_be_visible()
    expect(page.locator('[data-model="w2"] .cg-ask-box').first).to_be_visible()
    notes = page.locator("noscript > .cg-note")
    expect(notes).to_have_count(6)
    expect(notes.first).to_be_visible()
    assert page.get_by_role("button").count() == 0
    context.close()


def test_paper_has_the_question_with_blanks_and_no_answer(page):
    asked = question(page, "w1")
    asked.get_by_label("Your answer").fill("5")
    asked.get_by_label("Your answer").press("Enter")
    expect(verdict(page, "w1")).to_contain_text("Right.")
    page.emulate_media(media="print")
    expect(page.locator('[data-model="w1"] > .cg-fallback')).to_be_visible()
    expect(asked.get_by_text("Right.")).not_to_be_visible()
    expect(asked.get_by_role("button")).to_have_count(0)
    visible = page.locator("body").inner_text()
    assert "five" not in visible
    assert "Switch JavaScript" not in visible


def test_a_phone_needs_no_sideways_scroll(page):
    for width in (375, 320):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for control in question(page, "w1").get_by_role("button").all():
            assert control.bounding_box()["height"] >= 44


def test_it_works_from_a_file(browser, folder):
    context = browser.new_context()
    page = opened(context, (folder / "page.html").as_uri())
    question(page, "w1").get_by_label("Your answer").fill("5")
    question(page, "w1").get_by_label("Your answer").press("Enter")
    expect(verdict(page, "w1")).to_contain_text("Right.")
    context.close()


def test_one_module_serves_every_widget_of_the_page(context, address):
    asked = []
    context.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    opened(context, address)
    modules = [name for name in asked if name.startswith("predict") and name.endswith(".js")]
    assert len(modules) == 1, json.dumps(asked)
