"""How fast the widgets answer: ``python -m benchmarks.answers`` prints milliseconds.

Each widget stands alone in a page of one file, with an image of 16×16 cells and 4 channels.  What
is measured is an event and all that follows it, styles and layout included, until the page could be
painted; the figure is the median of many, and beside it the slowest.  Readers feel a delay from
about 50 ms on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from convgrad import example
from convgrad.checks import random_operands
from convgrad.geometry import ConvGeometry
from convgrad.widgets import (
    BreakTheGradient,
    ContributionPlayer,
    GeometryExplorer,
    GradientViews,
    GroupBlocks,
    Roofline,
    ShardSum,
    SlidingWindow,
    ThreadGrid,
    UnfoldMatrix,
    save_html,
)
from tools.chromium import find_chromium

TARGET = 50.0  # milliseconds

# One 16×16 image with 4 channels, 4 kernels of 3×3.
PLAIN = ConvGeometry(N=1, C=4, H=16, W=16, O=4, KH=3, KW=3, padding=1)
GROUPED = ConvGeometry(N=1, C=4, H=16, W=16, O=4, KH=3, KW=3, padding=1, groups=2)

# What a reader does, as the body of (root, k) => …; k counts the times.
POINT = """const cells = root.querySelectorAll("[role=grid] .cg-cell");
  cells[(k * 37) % cells.length].dispatchEvent(
    new PointerEvent("pointermove", { bubbles: true, pointerType: "mouse" }));"""
FOCUS = """const cells = root.querySelectorAll("[role=gridcell], [role=option]");
  cells[(k * 37) % cells.length].focus();"""
STEP = """const name = k % 2 ? "one step on" : "one step back";
  root.querySelector(`[aria-label="${name}"]`).click();"""
CHOOSE = """const list = root.querySelector(".cg-mistake select");
  list.selectedIndex = k % list.options.length;
  list.dispatchEvent(new Event("change"));"""
SLIDE = """const slider = root.querySelector("input[type=range]");
  slider.value = String(k % 8);
  slider.dispatchEvent(new Event("input"));"""
SPLIT = """const field = root.querySelector(".cg-settings input");
  field.value = 20 + (k % 9);
  field.dispatchEvent(new Event("change"));"""

MEASURE = """async ([act, times]) => {
  const root = document.querySelector("section.cg");
  const answer = new Function("root", "k", act);
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const found = [];
  for (let k = 0; k < times; k++) {
    await frame();
    const start = performance.now();
    answer(root, k);
    root.getBoundingClientRect(); // styles and layout too
    found.push(performance.now() - start);
  }
  return found;
}"""


class Answer(NamedTuple):
    """One widget and one thing to do with it, with the median and the slowest in milliseconds."""

    widget: str
    act: str
    median: float
    slowest: float


def widgets() -> dict[str, tuple[Callable[[], Any], Mapping[str, str]]]:
    """How each widget is made, and what is done with it."""

    def made(kind: Any, geometry: ConvGeometry = PLAIN, **traits: Any) -> Callable[[], Any]:
        draw = random_operands(geometry, np.random.default_rng(0))
        conv = {"padding": 1, "groups": geometry.groups}
        return lambda: kind(draw.x, draw.weight, draw.grad_output, **conv, **traits)

    def window() -> Any:
        draw = random_operands(PLAIN, np.random.default_rng(0))
        return SlidingWindow(draw.x, draw.weight, padding=1)

    return {
        "SlidingWindow": (window, {"point": POINT, "step": STEP}),
        "GeometryExplorer": (lambda: GeometryExplorer(PLAIN), {"point": POINT}),
        "ContributionPlayer": (made(ContributionPlayer), {"focus": FOCUS, "step": STEP}),
        "GradientViews": (made(GradientViews, view="scatter-gather"), {"step": STEP}),
        "UnfoldMatrix": (made(UnfoldMatrix, stage="forward"), {"focus": FOCUS, "step": STEP}),
        "GroupBlocks": (made(GroupBlocks, GROUPED, step=5), {"focus": FOCUS, "step": STEP}),
        "ShardSum": (made(ShardSum, PLAIN, view="rows", step=2), {"focus": FOCUS, "step": STEP}),
        "BreakTheGradient": (made(BreakTheGradient), {"choose": CHOOSE}),
        "Roofline": (lambda: Roofline(tile=128, others=True), {"slide": SLIDE}),
        "ThreadGrid": (lambda: ThreadGrid(example("F"), splits=26), {"step": STEP, "split": SPLIT}),
        "ThreadGrid, K loop": (
            lambda: ThreadGrid(example("D"), view="loop", tile=(4, 16, 16)),
            {"focus": FOCUS, "step": STEP},
        ),
        "ThreadGrid, two runs": (
            lambda: ThreadGrid(example("F"), view="runs", splits=26),
            {"step": STEP, "split": SPLIT},
        ),
    }


def answers(browser: Browser, folder: Path, times: int = 41) -> list[Answer]:
    """Every widget in a tab of its own, each act ``times`` times."""
    found = []
    for name, (make, acts) in widgets().items():
        page = folder / f"{name}.html"
        save_html(make(), page)
        tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        tab.goto(page.as_uri())
        tab.locator(".cg-mounted").wait_for()
        for act, code in acts.items():
            milliseconds = tab.evaluate(MEASURE, [code, times])
            found.append(Answer(name, act, float(np.median(milliseconds)), max(milliseconds)))
        tab.close()
    return found


def as_table(found: list[Answer]) -> str:
    lines = [f"{'widget':<20} {'act':<8} {'median ms':>9} {'slowest':>8}"]
    for each in found:
        verdict = "" if each.median < TARGET else f"  over {TARGET:.0f}"
        lines.append(
            f"{each.widget:<20} {each.act:<8} {each.median:>9.1f} {each.slowest:>8.1f}{verdict}"
        )
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        print(as_table(answers(browser, Path(folder))))
        browser.close()


if __name__ == "__main__":
    main()
