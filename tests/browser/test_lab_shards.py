"""ShardSum in a real JupyterLab: shares and numbers reach the kernel, and come back."""

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
from convgrad.widgets import ShardSum

shards = ShardSum(example("D"))
shards
```

```{code-cell}
print(shards.shares, shards.loss, shards.combine, float(shards.x[0, 0, 0, 0]), shards.step)
```

```{code-cell}
shards.load(example("B"))
shards.view = "rows"
shards.deal([2, 1])
shards.step = 1
```
"""


def test_edits_reach_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1400})
    try:
        cells = opened(page, jupyter, cells=3)
        run(page, cells.nth(0))
        shards = cells.nth(0).get_by_role("region", name="Several devices")
        expect(shards).to_be_visible(timeout=30_000)

        # from the browser to Python: a number, the shares, what is done with them
        x = shards.get_by_role("grid", name=re.compile(r"^x\[0,0\]"))
        x.locator('[data-row="0"][data-col="0"]').click()
        x.get_by_role("textbox").fill("-9")
        x.get_by_role("textbox").press("Enter")
        shares = shards.get_by_label("shares", exact=True)
        shares.fill("2 + 1")
        shares.press("Tab")
        shards.get_by_role("radio", name="mean").check()
        shards.get_by_role("radio", name="averaged").check()
        shards.get_by_role("button", name="to the end").click()
        wait_for(
            lambda: "(2, 1) mean average -9.0 5" in output_of(page, cells.nth(1)),
            "Python to have what was done in the browser",
            seconds=30,
        )

        # from Python to the browser
        run(page, cells.nth(2))
        expect(shards.get_by_role("radio", name="rows")).to_be_checked(timeout=30_000)
        expect(shares).to_have_value("2 + 1")
        expect(shards.locator("output")).to_have_text("1 / 6")
        expect(shards.locator(".cg-strip")).to_have_count(2)
    finally:
        page.close()
