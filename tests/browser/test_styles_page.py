"""A page looks the same with the stylesheets cut down and with the whole ones."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from tools.serve import SITE

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "book" / "_ext"))
from joined import joined_styles  # noqa: E402

pytestmark = pytest.mark.browser

DOCTREES = SITE.parent / ".doctrees"
WHOLE = DOCTREES / "whole_styles"
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each stylesheet would be, joined or alone, if nothing had been cut from it."""
    assert any(WHOLE.rglob("*.css")), f"no whole stylesheets under {Path(*WHOLE.parts[-2:])}"
    site = tmp_path_factory.mktemp("whole")
    shutil.copytree(WHOLE, site / "_static")
    joined = json.loads((DOCTREES / "joined.json").read_text("utf-8"))
    styles = {name: files for name, files in joined.items() if name.endswith(".css")}
    for file in {file for files in styles.values() for file in files}:
        if not (site / file).is_file():
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SITE / file, site / file)
    alone = {f.relative_to(site).as_posix(): f.read_text("utf-8") for f in site.rglob("*.css")}
    return alone | {name: joined_styles(site, files) for name, files in styles.items()}


@pytest.mark.parametrize(("page", "scheme"), [("notation", "light"), ("api/convolve", "dark")])
def test_nothing_that_shows_was_cut_off(
    browser: Browser, base: str, whole: dict[str, str], page: str, scheme: str
):
    served: list[str] = []

    def uncut(route: Route) -> None:
        name = route.request.url.removeprefix(base).partition("?")[0]
        served.append(name)
        route.fulfill(body=whole[name], content_type="text/css; charset=utf-8")

    seen = []
    for cut in (True, False):
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
        tab = context.new_page()
        if not cut:
            tab.route("**/*.css?*", uncut)
        tab.goto(f"{base}book/{page}.html", wait_until="networkidle")
        seen.append(tab.evaluate(DECIDED))
        context.close()
    assert any(len(whole[name]) > (SITE / name).stat().st_size for name in served)
    assert len(seen[0]) == len(seen[1]) > 100
    assert {"color", "padding-left", "display"} < {*seen[0][0].split("; ")}
    assert seen[0] == seen[1]
