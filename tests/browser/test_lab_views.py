"""GradientViews in a real JupyterLab: choices and edits reach the kernel, and come back."""

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
from convgrad.widgets import GradientViews

views = GradientViews(example("D"))
views
```

```{code-cell}
print("Python sees", views.view, views.kernel, views.step, float(views.weight[4, 0, 1, 0]))
```

```{code-cell}
changed = views.grad_output.copy()
changed[2, 3, 0, 0] = 77
views.grad_output = changed
views.step = 5
views.view = "batch"
```

```{code-cell}
views.view = "kernels"
views.step = 2
```
"""


def test_choices_and_edits_reach_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1400})
    try:
        cells = opened(page, jupyter, cells=4)

        run(page, cells.nth(0))
        views = cells.nth(0).get_by_role("region", name="Gradient views")
        expect(views).to_be_visible(timeout=30_000)

        # from the browser to Python: another view, a kernel of it, a number, a step
        views.get_by_role("radio", name="scatter and gather").check()
        views.get_by_role("radio", name="B 4").check()
        kernel = views.locator('[data-place="w"]')
        kernel.locator('[data-row="1"][data-col="0"]').click()
        kernel.get_by_role("textbox").fill("42")
        kernel.get_by_role("textbox").press("Enter")
        views.get_by_role("button", name="one step back").click()

        def arrived() -> bool:
            return "Python sees scatter-gather 4 28 42.0" in output_of(page, cells.nth(1))

        wait_for(arrived, "Python to have what was done in the browser", seconds=30)

        # from Python to the browser
        run(page, cells.nth(2))
        expect(views.get_by_role("radio", name="image by image")).to_be_checked()
        expect(views.locator("output")).to_have_text("5 / 6")
        # step 5 is image 2, group A; kernel 4 has the place of kernel 1 in its group
        upstream = views.locator('[data-place="g"]')
        expect(upstream).to_contain_text("g[2,1]")
        views.get_by_role("button", name="one step on").click()
        views.get_by_role("radio", name="0", exact=True).first.check()
        expect(upstream).to_contain_text("g[2,3]")
        expect(upstream.locator('[data-row="0"][data-col="0"]')).to_have_text("77")

        # another view and then its step, in one cell: the view alone would be shown complete
        run(page, cells.nth(3))
        expect(views.locator("output")).to_have_text("2 / 6")
        assert "Python sees kernels 0 2 42.0" in output_of(page, cells.nth(1))
        expect(views.locator("output")).to_have_text("2 / 6")
    finally:
        page.close()
