"""SlidingWindow and GeometryExplorer in one real JupyterLab: seen from both sides."""

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

# Two widgets, seen from both sides

```{code-cell}
from convgrad import example
from convgrad.widgets import GeometryExplorer, SlidingWindow

window = SlidingWindow(example("B"))
window
```

```{code-cell}
print("weight", float(window.weight[0, 0, 1, 1]), "look", window.look, "step", window.step)
```

```{code-cell}
window.bias = [100]
window.look = "y[0,0,2,1]"
```

```{code-cell}
window.look = "y[0,0,1,1]"
window.step = 9
```

```{code-cell}
explorer = GeometryExplorer(H=6, W=7, KH=3, KW=3, stride=2)
explorer
```

```{code-cell}
print("stride", explorer.geometry.stride, "uses", int(explorer.uses.max()), explorer.look)
```

```{code-cell}
explorer.transposed = True
explorer.look = "x[4,4]"
```
"""


def test_edits_reach_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1100})
    try:
        cells = opened(page, jupyter, cells=7)

        run(page, cells.nth(0))
        window = cells.nth(0).get_by_role("region", name="Sliding window")
        expect(window).to_be_visible(timeout=30_000)

        # from the browser to Python: a number, and what is looked at
        kernel = window.get_by_role("grid", name=re.compile("^w:"))
        kernel.locator('[data-row="1"][data-col="1"]').click()
        kernel.get_by_role("textbox").fill("42")
        kernel.get_by_role("textbox").press("Enter")
        output = window.get_by_role("grid", name=re.compile("^y:"))
        output.locator('[data-row="1"][data-col="2"]').click()
        wait_for(
            lambda: "weight 42.0 look y[0,0,1,2] step 6" in output_of(page, cells.nth(1)),
            "Python to have what was typed and clicked in the browser",
            seconds=30,
        )
        # from Python to the browser
        run(page, cells.nth(2))
        said = window.locator(".cg-said")
        expect(said).to_contain_text("y[0,0,2,1] = ")
        expect(window.get_by_label("bias of kernel 0")).to_have_value("100")
        expect(window.locator(".cg-count")).to_have_text("8 / 9")
        # a cell and then a step, in one cell of the notebook: the last line counts
        run(page, cells.nth(3))
        expect(window.locator(".cg-count")).to_have_text("9 / 9")
        assert "look  step 9" in output_of(page, cells.nth(1))
        expect(said).to_contain_text("y[0,0,2,2] = ")

        run(page, cells.nth(4))
        explorer = cells.nth(4).get_by_role("region", name="Geometry explorer")
        expect(explorer).to_be_visible(timeout=30_000)
        stride = explorer.get_by_label("stride", exact=True).filter(visible=True)
        stride.fill("1")
        stride.press("Tab")
        explorer.get_by_role("grid", name=re.compile("^x,")).locator(
            '[data-row="3"][data-col="3"]'
        ).click()
        wait_for(
            lambda: "stride (1, 1) uses 9 x[3,3]" in output_of(page, cells.nth(5)),
            "Python to have the stride that was turned in the browser",
            seconds=30,
        )
        run(page, cells.nth(6))
        expect(explorer.locator(".cg-said")).to_have_text("x[4,4] is the sum of 6 products")
        expect(explorer.locator(".cg-sizes")).to_contain_text("output_padding")
    finally:
        page.close()
