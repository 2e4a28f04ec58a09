"""The page that says how far one has come: what it shows, exports, imports and clears."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from convgrad import exercises
from convgrad.exercises import progress

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCRIPT = Path(__file__).resolve().parents[2] / "book" / "_static" / "progress.js"
KEYS = ("weight-how-many", "weight-one-tap", "museum-break")
RIGHT = {
    "entry": ["12"],
    "answer": 12,
    "correct": True,
    "attempts": 2,
    "hints_shown": 1,
    "revealed": False,
}
TRIED = RIGHT | {"entry": ["3"], "answer": 3, "correct": False}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page with the list of three exercises, as the book's extension writes it."""
    folder = tmp_path_factory.mktemp("progress")
    shutil.copy(SCRIPT, folder)
    rows = "".join(
        f'<tr class="cg-key-{key}"><td>{key}</td><td>number</td><td>1</td><td>–</td></tr>'
        for key in KEYS
    )
    (folder / "page.html").write_text(
        f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Your progress</title>
        <script src="progress.js" defer></script><div class="cg-progress-place"></div>
        <div class="cg-progress"><table><tbody>{rows}</tbody></table></div></html>""",
        "utf-8",
    )

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
    context = browser.new_context(accept_downloads=True)
    context.set_default_timeout(10_000)
    yield context
    context.close()


def opened(context, address, kept: dict | None = None) -> Page:
    page = context.new_page()
    page.goto(address)
    if kept:
        page.evaluate(
            "(kept) => Object.entries(kept).forEach(([k, v]) => localStorage.setItem(k, v))",
            {
                key: each if isinstance(each, str) else json.dumps(each)
                for key, each in kept.items()
            },
        )
        page.reload()
    return page


def states(page: Page) -> list[str]:
    return page.locator(".cg-progress td:last-child").all_inner_texts()


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def status(page: Page):
    return page.get_by_role("status")


def choose(page: Page, tmp_path, content) -> None:
    path = tmp_path / "given.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, "utf-8")
    page.locator("input[type=file]").set_input_files(str(path))


def file_with(records: dict) -> dict:
    return {"format": progress.FORMAT, "version": 1, "exercises": records}


def test_a_new_reader_sees_that_all_is_open(context, address):
    page = opened(context, address)
    assert states(page) == ["open"] * 3
    assert "0 of 3 exercises are right" in page.locator("body").inner_text()
    assert button(page, "Export").is_disabled()
    assert button(page, "Clear").is_disabled()


def test_what_the_questions_keep_is_shown_and_other_things_are_left_alone(context, address):
    kept = {
        "convgrad:predict:weight-how-many": RIGHT,
        "convgrad:predict:weight-one-tap": TRIED,
        "convgrad:predict:museum-break": "{",
        "theme": "dark",
    }
    page = opened(context, address, kept)
    assert states(page) == ["✓ right", "… tried", "open"]
    assert "1 of 3 exercises are right, 1 more are begun" in page.locator("body").inner_text()
    button(page, "Clear").click()
    expect(button(page, "Yes, clear all of it")).to_be_focused()
    assert states(page) == ["✓ right", "… tried", "open"], "asked before it is done"
    button(page, "Yes, clear all of it").click()
    assert states(page) == ["open"] * 3
    assert page.evaluate("Object.keys(localStorage)") == ["theme"]
    expect(button(page, "Import")).to_be_focused()


def test_convgrad_reads_what_is_exported_and_another_browser_imports_it(
    browser, context, address, tmp_path
):
    kept = {
        "convgrad:predict:weight-how-many": RIGHT,
        "convgrad:predict:weight-one-tap~ada": TRIED,
    }
    page = opened(context, address, kept)
    with page.expect_download() as download:
        button(page, "Export").click()
    assert download.value.suggested_filename == "convgrad-progress.json"
    path = tmp_path / "export.json"
    download.value.save_as(path)
    found = progress.load(path)
    assert found.state("weight-how-many") == "right"
    assert found.records["weight-how-many"].attempts == 2
    assert found.records["weight-how-many"].hints == 1
    assert found.records["weight-one-tap"].seed == "ada"

    mine = exercises.get("museum-break")
    found.note(mine, exercises.Verdict(False, "", share=0.64))
    found.save(path)
    elsewhere = browser.new_context()
    other = opened(elsewhere, address)
    for _ in range(2):
        other.locator("input[type=file]").set_input_files(str(path))
        expect(status(other)).to_contain_text("Imported")
        assert states(other) == ["✓ right", "… tried", "… 64 %"]
    expect(status(other)).to_contain_text("of 3 you had come as far already")
    back = other.evaluate("localStorage.getItem('convgrad:predict:weight-how-many')")
    assert json.loads(back) == RIGHT, "the question finds its answer again"
    elsewhere.close()


def test_an_import_takes_nothing_back(context, address, tmp_path):
    page = opened(context, address, {"convgrad:predict:weight-how-many": RIGHT})
    records = {
        "weight-how-many": {"state": "tried", "attempts": 9},
        "weight-one-tap": {"state": "shown"},
        "not-in-this-book": {"state": "right"},
    }
    choose(page, tmp_path, file_with(records))
    expect(status(page)).to_contain_text("Imported: 2 exercises; of 1 you had come as far")
    assert states(page) == ["✓ right", "→ shown", "open"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "no JSON file"),
        ("null", "no progress file"),
        ([], "no progress file"),
        ({"format": progress.FORMAT, "version": 7}, "has version 7"),
        (file_with({"a": {"state": "done"}}), "says of “a” cannot be read"),
        (file_with({"a": {"state": "right", "attempts": -1}}), "cannot be read"),
        (file_with({"a": {"state": "right", "page": []}}), "cannot be read"),
        (file_with({"<img src=x onerror=alert(1)>": 3}), "<img src=x onerror"),
    ],
)
def test_another_file_is_refused_in_a_sentence(context, address, tmp_path, content, words):
    page = opened(context, address, {"convgrad:predict:weight-how-many": RIGHT})
    choose(page, tmp_path, content)
    expect(status(page)).to_contain_text(words)
    assert states(page) == ["✓ right", "open", "open"]
    assert page.locator("img").count() == 0


def test_a_browser_without_storage_shows_a_file_all_the_same(context, address, tmp_path):
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() {throw new Error('forbidden')}})"
    )
    page = opened(context, address)
    expect(status(page)).to_contain_text("This browser keeps nothing here")
    choose(page, tmp_path, file_with({"weight-one-tap": {"state": "right", "attempts": 1}}))
    expect(status(page)).to_contain_text("Imported: 1 exercises")
    assert states(page) == ["open", "✓ right", "open"]


@pytest.mark.book
def test_an_answer_in_a_chapter_shows_up_in_the_list(visit):
    tab = visit()
    page = tab.goto("book/progress.html", settle=False)
    assert page.locator(".cg-progress tbody tr").count() == len(exercises.all_exercises())
    assert page.get_by_role("progressbar").get_attribute("value") == "0"
    page = tab.goto("book/part2/weight_gradient.html")
    question = page.get_by_role("group", name="Predict · How many products?")
    question.scroll_into_view_if_needed()
    question.get_by_label("Your answer").fill("12")
    question.get_by_label("Your answer").press("Enter")
    expect(question).to_contain_text("Right.")
    assert page.locator("script[src*='progress.js']").count() == 0, "only the list needs it"
    page = tab.goto("book/progress.html", settle=False)
    row = page.locator(".cg-key-weight-how-many")
    expect(row.locator("td").last).to_have_text("✓ right")
    assert page.get_by_role("progressbar").get_attribute("value") == "1"
    tab.assert_clean()


@pytest.mark.book
def test_without_scripts_it_is_a_list(visit):
    page = visit(javascript=False).goto("book/progress.html", settle=False)
    assert "–" in page.locator(".cg-key-weight-how-many").inner_text()
    assert page.get_by_role("button", name="Export").count() == 0
