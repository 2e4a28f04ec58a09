"""A page with many widgets: the rules of one change nothing in another, whichever came last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from convgrad import example
from convgrad.widgets import (
    BreakTheGradient,
    ContributionPlayer,
    GeometryExplorer,
    GradientViews,
    GroupBlocks,
    Predict,
    SlidingWindow,
    UnfoldMatrix,
    save_html,
)
from convgrad.widgets.page import STATIC

pytestmark = pytest.mark.browser

# In states in which as many of their rules as possible are at work.
WIDGETS: dict[str, Callable[[], Any]] = {
    "sliding_window": lambda: SlidingWindow(
        *example("B").arrays()[:2], padding=1, look="x[0,0,-1,0]"
    ),
    "sliding_window pictures": lambda: SlidingWindow.photograph("blur", look="y[0,0,0,0]"),
    "geometry_explorer": lambda: GeometryExplorer(
        H=5, W=6, KH=3, KW=3, padding=1, stride=2, look="y[0,0]"
    ),
    "geometry_explorer one row": lambda: GeometryExplorer(
        H=1, W=9, KH=1, KW=3, padding=((0, 0), (1, 1)), padding_mode="reflect", look="y[0,0]"
    ),
    "contribution_player": lambda: ContributionPlayer(example("A"), target="input", step=5),
    "contribution_player kernels": lambda: ContributionPlayer(
        example("D"), target="input", order="kernel", step=500
    ),
    "gradient_views": lambda: GradientViews(example("D"), view="kernels", step=3),
    "gradient_views scatter": lambda: GradientViews(example("A"), view="scatter-gather", step=2),
    "gradient_views crop": lambda: GradientViews(example("C"), view="convolution"),
    "gradient_views pages": lambda: GradientViews(example("D"), view="batch", step=3),
    "unfold_matrix": lambda: UnfoldMatrix(example("A"), stage="columns", step=2),
    "unfold_matrix fold": lambda: UnfoldMatrix(example("A"), stage="input"),
    "group_blocks": lambda: GroupBlocks(example("D"), transpose=False, step=9),
    "break_the_gradient": lambda: BreakTheGradient(example("D")),
    "break_the_gradient duel": lambda: BreakTheGradient(example("D"), mode="duel", seed=7),
    "predict": lambda: Predict("What is $2 + 3$?", 5, hints=["Count on your fingers."]),
}
# How everything looks, by what it is; the sizes follow from that.
LOOKS = """() => {
  const names = `align-items background-color background-image border-top-color border-top-style
    border-top-width bottom box-shadow color column-gap cursor display flex-basis flex-direction
    flex-wrap font-size font-style font-weight grid-area justify-content justify-items line-height
    margin-bottom margin-left margin-right margin-top max-width min-height min-width opacity
    outline-style overflow-x padding-bottom padding-left padding-right padding-top position row-gap
    text-align text-decoration-line text-wrap transform white-space z-index`.split(/\\s+/);
  const one = (element, part) => {
    const style = getComputedStyle(element, part);
    return [`${element.tagName} ${element.getAttribute("class")} ${part ?? ""}`,
      Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name)]))];
  };
  // of those that are alike, such as the cells of a grid, one
  const kinds = new Map();
  for (const each of document.querySelectorAll(".cg-live *")) {
    const lineage = [each, each.parentElement, each.parentElement.parentElement];
    const key = lineage.map((one) => `${one.tagName} ${one.getAttribute("class")}`).join();
    if (!kinds.has(key)) kinds.set(key, each);
  }
  const all = [...kinds.values()];
  return all.flatMap((each) => [one(each), one(each, "::before"), one(each, "::after")]);
}"""
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"


@pytest.mark.parametrize("kind", WIDGETS)
def test_the_rules_of_the_others_change_nothing(browser: Browser, tmp_path: Path, kind: str):
    path = tmp_path / "page.html"
    save_html(WIDGETS[kind](), path)
    own = kind.partition(" ")[0]
    others = "\n".join(
        sheet.read_text("utf-8") for sheet in sorted(STATIC.glob("*.css")) if sheet.stem != own
    )
    page = browser.new_page()
    try:
        page.goto(path.as_uri())
        page.locator(".cg-mounted").wait_for()
        if own != "predict":
            page.get_by_role("button", name="copy as PyTorch code").wait_for()
        page.add_style_tag(content=STILL)
        for width in (760, 360):
            page.set_viewport_size({"width": width, "height": 900})
            alone = page.evaluate(LOOKS)
            assert len(alone) > 30
            added = page.add_style_tag(content=others)
            beside = page.evaluate(LOOKS)
            added.evaluate("(style) => style.remove()")
            changed = {
                f"{what}: {name}": (before[name], after[name])
                for (what, before), (_, after) in zip(alone, beside, strict=True)
                for name in before
                if before[name] != after[name]
            }
            assert not changed, f"{width} px wide"
    finally:
        page.close()
