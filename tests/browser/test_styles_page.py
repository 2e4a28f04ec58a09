"""A page looks the same with the stylesheets cut down and with the whole ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from tools.serve import SITE

pytestmark = pytest.mark.browser

WHOLE = SITE.parent / ".doctrees" / "whole_styles"
# Everything that the browser has decided about every element, but for the variables; the names of
# the properties, which are those of all elements, first.
DECIDED = """() => {
  const names = [...getComputedStyle(document.body)].filter((name) => !name.startsWith("--"));
  const decided = (element) => {
    const style = getComputedStyle(element);
    return names.map((name) => style.getPropertyValue(name)).join("; ");
  };
  return [names.join("; "), ...[...document.querySelectorAll("*")].map(decided)];
}"""


def whole(route: Route) -> None:
    file = WHOLE / route.request.url.split("/_static/")[1].partition("?")[0]
    route.fulfill(path=file, content_type="text/css")


@pytest.mark.parametrize(("page", "scheme"), [("notation", "light"), ("api/convolve", "dark")])
def test_nothing_that_shows_was_cut_off(browser: Browser, base: str, page: str, scheme: str):
    assert any(WHOLE.rglob("*.css")), f"no whole stylesheets under {Path(*WHOLE.parts[-2:])}"
    seen = []
    for cut in (True, False):
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
        tab = context.new_page()
        if not cut:
            tab.route(re.compile(r"/_static/.*\.css"), whole)
        tab.goto(f"{base}book/{page}.html", wait_until="networkidle")
        seen.append(tab.evaluate(DECIDED))
        context.close()
    assert len(seen[0]) == len(seen[1]) > 100
    assert {"color", "padding-left", "display"} < {*seen[0][0].split("; ")}
    assert seen[0] == seen[1]
