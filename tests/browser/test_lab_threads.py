"""ThreadGrid in a real JupyterLab: choices reach the kernel, and come back."""

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
from convgrad import example
from convgrad.widgets import ThreadGrid

grid = ThreadGrid(example("F"))
grid
```

```{code-cell}
s = grid.schedule
print("Python sees", s.parts, s.time, grid.two_passes, grid.view, grid.step, s.workspace)
```

```{code-cell}
grid.geometry = example("D").geometry
grid.numbers = "D"
grid.view = "loop"
grid.step = 5
```
"""


def test_choices_reach_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1400})
    try:
        cells = opened(page, jupyter, cells=3)

        run(page, cells.nth(0))
        grid = cells.nth(0).get_by_role("region", name="Thread grid")
        expect(grid).to_be_visible(timeout=30_000)
        expect(grid.locator(".cg-figures")).to_contain_text("5 tiles × 1 share")

        # from the browser to Python: a count, a choice, another view, the last step
        split = grid.get_by_label("split K into", exact=True)
        split.fill("26")
        split.press("Tab")
        grid.get_by_role("radio", name="two passes").check(force=True)
        grid.get_by_role("radio", name="two runs").check(force=True)
        grid.get_by_role("button", name="to the end").click()
        expect(grid.locator("output")).to_have_text("52 / 52")
        wait_for(
            lambda: "Python sees 26 121 True runs 52 3833856" in output_of(page, cells.nth(1)),
            "Python to have what was chosen in the browser",
            seconds=30,
        )

        # from Python to the browser: a small convolution brings small tiles
        run(page, cells.nth(2))
        expect(grid.locator("output")).to_have_text("5 / 21")
        expect(grid.get_by_label("tile rows", exact=True)).to_have_value("2")
        expect(grid.get_by_role("grid").first).to_be_visible()
    finally:
        page.close()
