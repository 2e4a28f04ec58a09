"""The notebooks in JupyterLab, in the browser: from the page to a widget that plays there."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tools.serve import SITE

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("live")]

CHAPTER = "book/part2/weight_gradient.html"
LONG = 120_000  # milliseconds; two cores may be busy
LARGEST = 90_000_000  # bytes of the site as it lies on a disk


@pytest.fixture(scope="module")
def opened(shared):
    """Chapter 4, opened by the link under its title, and all its cells run."""
    tab = shared()
    page = tab.goto(CHAPTER, settle=False)
    page.set_default_timeout(40_000)
    page.get_by_role("link", name="Open as notebook").click()
    expect(page.locator(".jp-Notebook")).to_be_visible(timeout=LONG)
    ready = page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    ready.wait_for(state="attached", timeout=LONG)  # Python has started
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.locator(".cg-player").first.wait_for(timeout=LONG)
    return tab


def test_nothing_is_asked_of_anybody_else(opened):
    assert not opened.offsite


def test_a_widget_plays_there(opened):
    player = opened.page.get_by_role("region", name="Contribution player").first
    expect(player).to_be_visible()
    before = player.inner_text()
    player.get_by_role("button", name="to the end", exact=True).click()
    expect(player).not_to_have_text(before, use_inner_text=True)


def test_a_question_waits_for_its_answer(opened):
    """Python in a browser sends its None as undefined; a question took that for an answer."""
    question = opened.page.locator(".cg-predict").first
    question.wait_for(state="attached")
    assert "Not yet" not in (question.text_content() or "")


def test_a_cell_that_no_browser_runs_says_so(opened):
    """The mark before such a cell is a word that the first cell teaches the notebook."""
    said = opened.page.get_by_text("This cell needs PyTorch, which no browser has.")
    expect(said.first).to_be_attached(timeout=LONG)
    assert not opened.page.get_by_text("Traceback (most recent call last)").count()


def test_the_marks_stand_where_the_page_has_them():
    first = json.loads((SITE / "lite" / "files" / "weight_gradient.ipynb").read_text("utf-8"))
    code = [cell["source"] for cell in first["cells"] if cell["cell_type"] == "code"]
    assert "register_cell_magic" in code[0] and "subprocess" not in code[0]
    torch = json.loads((SITE / "lite" / "files" / "autograd_function.ipynb").read_text("utf-8"))
    code = [cell["source"] for cell in torch["cells"] if cell["cell_type"] == "code"]
    imports = [each for each in code if "import torch" in each]
    assert imports and all(each.startswith("%%needs PyTorch\n") for each in imports)


def test_the_site_stays_light_enough_to_carry():
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    assert size < LARGEST, f"{size / 1e6:.0f} MB"
