"""Every page of the book: on a desk, on a phone, at night, on paper, without scripts."""

from __future__ import annotations

import re
from contextlib import suppress
from html import unescape
from urllib.parse import unquote

import pytest
from contents import FAINT_TEXT, Finding, has_formulas, pages, pages_showing
from playwright.sync_api import Page, TimeoutError

from tools.serve import SITE

pytestmark = pytest.mark.browser

PAGES = pages()
every_page = pytest.mark.parametrize("page", PAGES)
EXPLORABLES = ("ContributionPlayer", "SlidingWindow", "GeometryExplorer")
every_picture = pytest.mark.parametrize(
    "page", [page for page in PAGES if any(page in pages_showing(each) for each in EXPLORABLES)]
)

# Text of the page that is neither a formula nor code: no TeX may be left in it.
PROSE = """() => {
  const copy = document.querySelector("article").cloneNode(true);
  for (const part of copy.querySelectorAll(".katex, pre, code, script, style, svg")) part.remove();
  return copy.textContent;
}"""
RAW_TEX = re.compile(
    r"\$[^$\n]{1,200}\$|\\(?:frac|sum|text|begin|end|cdot|times|partial|left|right|col[xwgr]|[()\[\]])"
)


def test_the_book_has_pages():
    assert len(PAGES) >= 4
    for widget in (*EXPLORABLES, "Predict"):
        assert pages_showing(widget), widget


@every_page
def test_page_is_whole(visit, page, axe):
    """Nothing from elsewhere, nothing missing, nothing to complain about, nothing too faint.

    One opening of the page: opening it takes longer than all that is asked of it.  First as it
    opens on a desk, then made as narrow as a phone, then at night, then on paper.
    """
    tab = visit()
    view = tab.goto(f"{page}.html")
    # to the end and back: pictures and widgets that wait to be seen are fetched too
    view.evaluate("() => scrollTo(0, document.body.scrollHeight)")
    view.wait_for_load_state("networkidle")
    tab.settle()
    tab.assert_clean()

    assert view.title()
    assert view.locator("article h1").count() == 1
    assert (view.locator("article .katex").count() > 0) == has_formulas(page)
    assert view.locator(".katex-error").count() == 0
    left = RAW_TEX.search(view.evaluate(PROSE))
    assert left is None, f"TeX is left in the text: {left and left[0]!r}"

    hosts = view.locator(".cg-widget")
    assert view.locator(".cg-widget.cg-mounted").count() == hosts.count()
    assert view.locator(".cg-live").count() == hosts.count()
    made = any(page in pages_showing(widget) for widget in (*EXPLORABLES, "Predict"))
    assert hosts.count() >= made

    text_stands_out(view, "light")
    nothing_stumbles(axe(view.locator("article")))
    scrolls_one_way_only(view)
    night_falls(view)
    text_stands_out(view, "dark")
    if hosts.count():
        the_picture_stands_for_the_widget_on_paper(view)
    tab.assert_clean()


@pytest.mark.book
def test_links_lead_somewhere():
    """Every link within the book has its page, and its place on that page."""
    files = {path: path.read_text("utf-8") for path in sorted((SITE / "book").rglob("*.html"))}
    places = {path: set(re.findall(r"""\bid="([^"]+)\"""", text)) for path, text in files.items()}
    dead, seen = [], 0
    for path, text in files.items():
        for link in re.findall(r"""<a [^>]*?\bhref="([^"]*)\"""", text):
            address, _, place = unescape(link).partition("#")
            if re.match(r"[a-z]+:", address):
                continue  # elsewhere, or a letter
            there = (path.parent / unquote(address)).resolve() if address else path
            seen += 1
            if not there.is_file() or (place and unquote(place) not in places.get(there, set())):
                dead.append(f"{path.name}: {link}")
    assert seen > 100
    assert not dead


def scrolls_one_way_only(view: Page) -> None:
    """On a phone; afterwards the page is as wide as before."""
    before = view.viewport_size
    for width in (375, 320):
        view.set_viewport_size({"width": width, "height": 700})
        with suppress(TimeoutError):  # some widgets follow their width a few frames later
            view.wait_for_function(
                "() => document.documentElement.scrollWidth <= innerWidth", timeout=2_000
            )
        wide = view.evaluate(
            """() => {
              const room = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= room) return [];
              return [...document.querySelectorAll("body *")]
                .filter((each) => each.getBoundingClientRect().right > room + 1)
                .map((each) => `${each.tagName}.${each.getAttribute("class")}`).slice(0, 8);
            }"""
        )
        size = view.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert size == [width, width], f"{size}, because of {wide}"
    view.set_viewport_size(before)


def night_falls(view: Page) -> None:
    """The system changes to dark, the page after it; colours arrive at once."""
    view.emulate_media(color_scheme="dark")
    view.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    # What fades arrives at once: a transition out of sight would never end by itself.
    view.evaluate(
        """() => document.getAnimations()
          .filter((each) => each instanceof CSSTransition).forEach((each) => each.finish())"""
    )


def text_stands_out(view: Page, mode: str) -> None:
    theme = view.evaluate("() => document.documentElement.dataset.theme")
    assert theme == mode, "the page follows the system's preference"
    found = view.evaluate(FAINT_TEXT)
    assert found["measured"] > 30
    assert not found["faint"]


def test_faint_text_would_be_noticed(visit):
    """The measuring itself: grey on white and white on white are found, black is not."""
    view = visit().goto(f"{PAGES[0]}.html")
    view.evaluate(
        """() => {
          const main = document.querySelector("main");
          main.innerHTML = `<div style="background: #fff">
            <p style="color: #000">black</p>
            <p style="color: #999">grey</p>
            <p style="color: rgb(0 0 0 / 30%)">thin</p>
            <p style="color: #000; opacity: 0.4">pale</p></div>`;
        }"""
    )
    found = view.evaluate(FAINT_TEXT)
    assert found["measured"] == 4
    assert [line.split()[1] for line in found["faint"]] == ["grey", "thin", "pale"]


@every_picture
def test_without_javascript_the_picture_stays(visit, page):
    tab = visit(javascript=False)
    view = tab.goto(f"{page}.html", settle=False)
    fallbacks = view.locator(".cg-widget > .cg-fallback")
    assert fallbacks.count() > 0
    for fallback in fallbacks.all():
        assert fallback.is_visible()
        if fallback.locator("svg").count():
            assert re.search(r"\d", fallback.inner_text()), "numbers are part of a picture"
    assert view.locator(".cg-widget svg").first.is_visible()
    assert view.locator(".cg-live").count() == 0
    assert not tab.offsite and not tab.missing


def the_picture_stands_for_the_widget_on_paper(view: Page) -> None:
    shown = """() => [...document.querySelectorAll(".cg-widget")]
      .map((host) => [host.querySelector(":scope > .cg-fallback"), host.querySelector(".cg-live")])
      .filter(([picture]) => picture)
      .map((both) => both.map((each) => each.checkVisibility({ visibilityProperty: true })))"""
    on_screen = view.evaluate(shown)
    assert on_screen == [[False, True]] * len(on_screen)
    view.emulate_media(media="print")
    assert view.evaluate(shown) == [[True, False]] * len(on_screen)


def nothing_stumbles(found: list[Finding]) -> None:
    """Of what axe-core found, what is serious or critical is ours to mend."""
    # The bibliography's lists carry roles that docutils chose and newer ARIA took back.
    theirs = {"aria-required-children", "aria-deprecated-role"}
    assert not [
        each
        for each in found
        if each.impact in ("serious", "critical")
        and not (each.rule in theirs and all("citation" in html for html in each.where))
    ]


def test_the_front_door_opens_the_preface(visit, base):
    view = visit().goto("index.html", settle=False)
    view.wait_for_url(f"{base}{PAGES[0]}.html")


def test_what_leaves_the_site_is_counted(visit):
    """The counting itself: a picture, a request and a socket to elsewhere, and a missing file."""
    tab = visit(policy=False)
    view = tab.goto(f"{PAGES[0]}.html")
    tab.assert_clean()
    view.evaluate(
        """async () => {
          new Image().src = "https://elsewhere.example/picture.png";
          await fetch("https://elsewhere.example/data.json").catch(() => {});
          await new Promise((done) => {
            new WebSocket("wss://elsewhere.example/socket").onclose = done;
          });
          await fetch("/outside-of-the-site.txt");
          console.error("a planted complaint");
          setTimeout(() => { throw new Error("a planted error"); });
        }"""
    )
    view.wait_for_timeout(100)
    assert sorted(tab.offsite) == [
        "https://elsewhere.example/data.json",
        "https://elsewhere.example/picture.png",
        "wss://elsewhere.example/socket",
    ]
    assert len(tab.missing) == 1
    assert any("a planted complaint" in line for line in tab.complaints)
    assert any("a planted error" in line for line in tab.complaints)


def test_a_page_forbids_what_it_does_not_need(visit):
    """Its policy stops what would come from elsewhere, and scripts that were not built into it."""
    tab = visit()
    view = tab.goto(f"{PAGES[0]}.html")
    tab.assert_clean()
    view.evaluate(
        """async () => {
          new Image().src = "https://elsewhere.example/picture.png";
          await fetch("https://elsewhere.example/data.json").catch(() => {});
          const script = document.createElement("script");
          script.textContent = "window.planted = true";
          document.body.append(script);
          const button = document.createElement("button");
          button.setAttribute("onclick", "window.planted = true");
          document.body.append(button);
          button.click();
        }"""
    )
    view.wait_for_timeout(100)
    assert not view.evaluate("() => window.planted ?? false") and not tab.offsite
    refused = "\n".join(tab.complaints)
    for what in ("picture.png", "data.json", "inline script", "inline event handler"):
        assert what in refused
