"""BreakTheGradient in a real JupyterLab with a real kernel: choices reach Python, and back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect
from test_lab import Lab, jupyter, opened, output_of, run, wait_for

from convgrad.widgets.mistakes import MISTAKES

pytestmark = pytest.mark.lab
__all__ = ["jupyter"]  # a fixture, used by its name

NOTEBOOK = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3, language: python}
---

```{code-cell}
from convgrad import example
from convgrad.widgets import BreakTheGradient

broken = BreakTheGradient(example("B"))
broken
```

```{code-cell}
print(broken.mistake, broken.mode, broken.x[0, 0, 0, 0], broken.tries, broken.answer)
```

```{code-cell}
broken.mistake = "dgrad_no_flip"
broken.mode = "look"
```
"""


def test_choices_edits_and_guesses_reach_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1600})
    try:
        cells = opened(page, jupyter, cells=3)

        run(page, cells.nth(0))
        widget = cells.nth(0).get_by_role("region", name="Break the gradient")
        expect(widget).to_be_visible(timeout=30_000)

        # from the browser to Python: a mistake, a number, taken back again, and a guess
        widget.get_by_label("mistake", exact=True).select_option("wgrad_reversed")
        widget.get_by_text("x, w and g", exact=True).click()
        grid = widget.get_by_role("grid", name=re.compile("^x,"))
        grid.get_by_role("gridcell").first.click()
        grid.get_by_role("textbox").fill("42")
        grid.get_by_role("textbox").press("Enter")
        wait_for(
            lambda: "wgrad_reversed look 42.0 0" in output_of(page, cells.nth(1)),
            "Python to have the mistake and the number",
            seconds=30,
        )
        grid.get_by_role("gridcell").first.focus()
        page.keyboard.press("Control+z")
        expect(grid.get_by_role("gridcell").first).to_have_text("1")
        widget.get_by_role("radio", name="find it: a duel").check()
        widget.locator(".cg-guess").first.click()
        wait_for(
            lambda: "wgrad_reversed duel 1.0 1" in output_of(page, cells.nth(1)),
            "Python to know of the duel",
            seconds=30,
        )
        assert output_of(page, cells.nth(1)).split()[-1] in MISTAKES

        # from Python to the browser
        run(page, cells.nth(2))
        expect(widget.get_by_label("mistake", exact=True)).to_have_value("dgrad_no_flip")
        expect(widget.get_by_role("grid", name=re.compile("^broken grad_input"))).to_be_visible()
    finally:
        page.close()
