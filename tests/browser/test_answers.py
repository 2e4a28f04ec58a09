"""The measuring of how fast the widgets answer does what a reader does; the figures are not judged.

A machine that is busy with something else would fail such a test; ``make bench`` prints them.
"""

from __future__ import annotations

import pytest

from benchmarks.answers import MEASURE, Answer, answers, as_table, widgets
from convgrad.widgets import save_html

pytestmark = pytest.mark.browser


def test_every_widget_is_measured(browser, tmp_path):
    found = answers(browser, tmp_path, times=2)
    assert {(each.widget, each.act) for each in found} == {
        (name, act) for name, (_, acts) in widgets().items() for act in acts
    }
    assert all(0 < each.median <= each.slowest for each in found)


@pytest.mark.parametrize(
    ("widget", "act"), [(name, act) for name, (_, acts) in widgets().items() for act in acts]
)
def test_what_is_measured_changes_the_page(browser, tmp_path, widget, act):
    make, acts = widgets()[widget]
    save_html(make(), tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(".cg-mounted").wait_for()
    state = "() => [document.querySelector('section.cg').outerHTML, document.activeElement.id]"
    before = page.evaluate(state)
    page.evaluate(MEASURE, [acts[act], 2])
    after = page.evaluate(state)
    focused = page.evaluate("() => document.activeElement.matches('section.cg *')")
    page.close()
    assert after != before or (act == "focus" and focused)


def test_what_is_too_slow_is_marked():
    table = as_table([Answer("Quick", "step", 3.0, 9.0), Answer("Slow", "step", 51.0, 60.0)])
    assert "Slow" in table and table.count("over 50") == 1
    assert not next(line for line in table.splitlines() if "Quick" in line).endswith("over 50")
