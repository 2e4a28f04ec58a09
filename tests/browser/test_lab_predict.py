"""Predict in a real JupyterLab: what is answered is in Python, and Python can start it over."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from test_lab import Lab, jupyter, opened, output_of, run, wait_for

pytestmark = pytest.mark.lab
__all__ = ["jupyter"]  # a fixture, used by its name

NOTEBOOK = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3, language: python}
---

```{code-cell}
from convgrad.widgets import Predict

asked = Predict("How large?", [[4, 5]], labels=("rows", "columns"), mistakes={}, hints=["Count."])
asked
```

```{code-cell}
print("Python sees", asked.answer, asked.correct, asked.attempts, asked.hints_shown)
```

```{code-cell}
asked.answer, asked.correct, asked.entry = None, False, ["7", ""]
```
"""


def test_answers_reach_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    try:
        cells = opened(page, jupyter, cells=3)

        run(page, cells.nth(0))
        asked = cells.nth(0).get_by_role("group", name="Predict")
        fields = asked.get_by_role("textbox")
        expect(fields).to_have_count(2, timeout=30_000)

        # from the browser to Python, by keys alone: a wrong answer, a hint, the right one
        fields.nth(0).fill("4")
        fields.nth(1).fill("6")
        page.keyboard.press("Enter")
        expect(asked).to_contain_text("Not yet.")
        asked.get_by_role("button", name="Show a hint").press("Enter")
        expect(asked).to_contain_text("Count.")
        wait_for(
            lambda: "Python sees [[4, 6]] False 1 1" in output_of(page, cells.nth(1)),
            "Python to have the wrong answer",
            seconds=30,
        )
        fields.nth(1).fill("5")
        fields.nth(1).press("Enter")
        expect(asked).to_contain_text("Right.")
        wait_for(
            lambda: "Python sees [[4, 5]] True 2 1" in output_of(page, cells.nth(1)),
            "Python to have the right answer",
            seconds=30,
        )

        # from Python to the browser
        run(page, cells.nth(2))
        expect(fields.nth(0)).to_have_value("7")
        expect(asked.get_by_role("button", name="Check")).to_be_visible()
    finally:
        page.close()
