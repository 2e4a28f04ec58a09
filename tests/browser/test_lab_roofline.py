"""Roofline in a real JupyterLab: what is moved arrives in Python, and what Python sets is drawn."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect
from test_lab import Lab, jupyter, opened, output_of, run, wait_for

pytestmark = pytest.mark.lab

__all__ = ["jupyter"]  # the fixture, which finds the notebook of this module

NOTEBOOK = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3, language: python}
---

# A roof, seen from both sides

```{code-cell}
from convgrad import example
from convgrad.widgets import Roofline

roof = Roofline(example("F"), precision="float16", tile=128)
roof
```

```{code-cell}
print("Python sees", roof.geometry.N, roof.card, roof.bounds["grad_weight"].tiles)
```

```{code-cell}
roof.splits = 26
roof.target = "grad_weight"
```
"""


def test_a_slider_reaches_python_and_python_the_slider(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1100})
    try:
        cells = opened(page, jupyter, cells=3)

        run(page, cells.nth(0))
        roof = cells.nth(0).get_by_role("region", name="Roofline")
        expect(roof).to_be_visible(timeout=30_000)
        expect(roof.locator(".cg-said")).to_contain_text("5 tiles on 132 multiprocessors")

        # from the browser to Python
        images = roof.get_by_role("slider", name="images N")
        images.focus()
        page.keyboard.press("ArrowLeft")
        roof.get_by_role("combobox", name="card").select_option("A100-SXM4-80GB")
        wait_for(
            lambda: "Python sees 16 A100-SXM4-80GB 5" in output_of(page, cells.nth(1)),
            "Python to have what was moved in the browser",
            seconds=30,
        )

        # from Python to the browser
        run(page, cells.nth(2))
        expect(roof.get_by_role("slider", name="split-K shares")).to_have_attribute(
            "aria-valuetext", "26"
        )
        expect(roof.locator(".cg-said")).to_have_text(re.compile("^grad_weight"))
        expect(roof.locator(".cg-bounds")).to_contain_text("130")
    finally:
        page.close()
