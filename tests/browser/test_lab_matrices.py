"""UnfoldMatrix and GroupBlocks in a real JupyterLab: edits reach the kernel, and come back."""

from __future__ import annotations

import re

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
from convgrad.widgets import GroupBlocks, UnfoldMatrix

matrix = UnfoldMatrix(example("B"))
matrix
```

```{code-cell}
blocks = GroupBlocks(example("D"))
blocks
```

```{code-cell}
print("copies of 42:", int((matrix.products.columns == 42).sum()), matrix.stage, matrix.step)
print("x has", float(blocks.x[0, 0, 0, 0]), "transpose", blocks.transpose, blocks.step)
```

```{code-cell}
changed = matrix.grad_output.copy()
changed[0, 0, 0, 0] = 7
matrix.grad_output = changed
matrix.stage = "input"
blocks.transpose = True
blocks.step = blocks.steps
```
"""


def test_edits_reach_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1400})
    try:
        cells = opened(page, jupyter, cells=4)

        run(page, cells.nth(0))
        run(page, cells.nth(1))
        matrix = cells.nth(0).get_by_role("region", name="Image and columns")
        expect(matrix).to_be_visible(timeout=30_000)
        x = matrix.get_by_role("grid", name=re.compile("^x, "))

        # from the browser to Python: a number, and another stage with all its steps
        x.locator('[data-row="2"][data-col="2"]').click()
        x.get_by_role("textbox").fill("42")
        x.get_by_role("textbox").press("Enter")
        matrix.get_by_role("radio", name="forward: w·columns").check()
        blocks = cells.nth(1).get_by_role("region", name="Blocks of groups")
        first = blocks.get_by_role("grid", name=re.compile(r"^x\[0,0\]"))
        first.locator('[data-row="0"][data-col="0"]').click()
        first.get_by_role("textbox").fill("-9")
        first.get_by_role("textbox").press("Enter")
        blocks.get_by_role("checkbox", name="with the transpose").uncheck()
        blocks.get_by_role("button", name="one step on").click()

        def arrived() -> bool:
            said = output_of(page, cells.nth(2))
            return "copies of 42: 9 forward 9" in said and "x has -9.0 transpose False 1" in said

        wait_for(
            arrived,
            "Python to have what was done in the browser",
            seconds=30,
        )

        # from Python to the browser
        run(page, cells.nth(3))
        expect(matrix.get_by_role("radio", name="grad_input: wᵀ·g, fold")).to_be_checked()
        upstream = matrix.get_by_role("grid", name=re.compile("^g, "))
        expect(upstream.locator('[data-row="0"][data-col="0"]')).to_have_text("7")
        expect(blocks.get_by_role("checkbox", name="with the transpose")).to_be_checked()
        expect(blocks.locator("output")).to_have_text("12 / 12")
    finally:
        page.close()
