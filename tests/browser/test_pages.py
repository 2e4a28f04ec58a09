"""Every page of the book: on a desk, on a phone, at night, on paper, without scripts."""

from __future__ import annotations

import re
from contextlib import suppress
from html import unescape
from urllib.parse import unquote

import pytest
from contents import FAINT_TEXT, has_formulas, pages, pages_showing
from playwright.sync_api import Page, TimeoutError

from tools.serve import SITE
from tools.weigh import REQUESTS, WITH_PICTURES, WITHOUT

pytestmark = pytest.mark.browser

PAGES = pages()
every_page = pytest.mark.parametrize("page", PAGES)
EXPLORABLES = ("ContributionPlayer", "SlidingWindow", "GeometryExplorer")

# Text of the page that is neither a formula nor code: no TeX may be left in it.
PROSE = """() => {
  const copy = document.querySelector("article").cloneNode(true);
  for (const part of copy.querySelectorAll(".katex, pre, code, script, style, svg")) part.remove();
  return copy.textContent;
}"""
RAW_TEX = re.compile(
    r"\$[^$\n]{1,200}\$|\\(?:frac|sum|text|begin|end|cdot|times|partial|left|right|col[xwgr]|[()\[\]])"
)


# Once the theme has looked which listings and tables are wider than their boxes: Tab leads there.
FITS = """() => document.documentElement.scrollWidth <= innerWidth
  && [...document.querySelectorAll("article :is(pre, .pst-scrollable-table-container)")].every(
    (each) => each.scrollWidth <= each.clientWidth || each.tabIndex === 0)"""
# What reaches beyond the window, or is cut off by a box that does not scroll.
TOO_WIDE = """() => {
  const room = document.documentElement.clientWidth;
  const name = (each) => `${each.tagName}.${each.getAttribute("class")}`;
  const beyond = document.documentElement.scrollWidth <= room ? [] :
    [...document.querySelectorAll("body *")]
      .filter((each) => each.getBoundingClientRect().right > room + 1);
  const cut = [...document.querySelectorAll("article *")].filter((each) => {
    if (each.scrollWidth <= each.clientWidth + 1 || each.clientWidth < 2) return false;
    const style = getComputedStyle(each);
    return ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis"
      && !each.closest(".katex, .cg-hidden, .visually-hidden, svg, [aria-hidden=true]");
  });
  return [...beyond, ...cut].map(name).slice(0, 8);
}"""
# Formulas, pictures and drawings that say nothing to who does not see them.
UNTOLD = """() => {
  const formulas = [...document.querySelectorAll(".katex")].filter((each) =>
    !each.querySelector("math")?.textContent.trim()
    || each.querySelector(".katex-html")?.getAttribute("aria-hidden") !== "true");
  const images = [...document.images].filter((each) =>
    !each.alt || /^\\S+\\.(png|svg|jpe?g)$/.test(each.alt));
  const drawings = [...document.querySelectorAll("svg")].filter((each) =>
    !each.closest("[aria-hidden=true], [role=img][aria-label], button, summary, .katex")
    && !each.querySelector(":scope > title") && !each.getAttribute("aria-labelledby")
    && !each.querySelector("[role][aria-label]") && each.checkVisibility());
  return [...formulas, ...images, ...drawings].map((each) => each.outerHTML.slice(0, 200));
}"""


DRAWN = ".katex-html"


def test_the_book_has_pages():
    assert len(PAGES) >= 4
    for widget in (*EXPLORABLES, "Predict"):
        assert pages_showing(widget), widget


@every_page
def test_page_is_whole(visit, page, axe):
    """Nothing from elsewhere, nothing missing, nothing to complain about, nothing too faint.

    One opening of the page: opening it takes longer than all that is asked of it.  First as it
    opens on a desk, then as narrow as a phone, then both at night, then on paper.
    """
    tab = visit()
    view = tab.goto(f"{page}.html", settle=False)
    weighs_little(tab, view)
    tab.settle()
    everything_has_come(view)
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

    whole = view.locator(":root")
    assert view.evaluate(UNTOLD) == []
    text_stands_out(view, "light")
    assert axe(whole, "all") == []
    fits(view, 640)  # a desk at 200 %
    fits(view, 320)
    fits(view, 375)
    # what is drawn of a formula was looked at by now, and would take axe-core half of its time
    assert axe(whole, "all", without=DRAWN) == []
    night_falls(view)
    text_stands_out(view, "dark")
    assert axe(whole, "contrast", without=DRAWN) == []
    view.set_viewport_size({"width": 1280, "height": 900})
    text_stands_out(view, "dark")
    assert axe(whole, "contrast", without="article") == []  # what a phone has no room for
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
            address = address.partition("?")[0]  # ?projector
            if place.startswith("cg1&"):
                place = ""  # the state of a widget: test_teachers_page.py follows those
            there = (path.parent / unquote(address)).resolve() if address else path
            seen += 1
            if not there.is_file() or (place and unquote(place) not in places.get(there, set())):
                dead.append(f"{path.name}: {link}")
    assert seen > 100
    assert not dead


def weighs_little(tab, view: Page) -> None:
    """What a page asks for when it is opened, before anybody scrolls."""
    view.evaluate("() => document.fonts.ready.then(() => true)")
    pictures = view.locator("article :is(.cg-picture, .cg-widget, img)").count() > 0
    assert len(tab.sizes) <= REQUESTS
    assert sum(tab.sizes) <= (WITH_PICTURES if pictures else WITHOUT)


def everything_has_come(view: Page) -> None:
    """To the end and back: pictures that wait to be seen are fetched too."""
    view.evaluate("() => scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
    view.wait_for_function("() => [...document.images].every((image) => image.complete)")
    view.evaluate("() => scrollTo({ top: 0, behavior: 'instant' })")


def fits(view: Page, width: int) -> None:
    """The page is as wide as its window, and what is wider can be scrolled by a keyboard too."""
    view.set_viewport_size({"width": width, "height": 700})
    with suppress(TimeoutError):  # some widgets follow their width a few frames later
        view.wait_for_function(FITS, timeout=2_000)
    assert view.evaluate(TOO_WIDE) == []
    size = view.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert size == [width, width]


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


def test_what_is_not_told_or_cut_would_be_noticed(visit):
    """The questions themselves: each finds what was planted, and nothing else."""
    view = visit(width=640).goto(f"{PAGES[0]}.html")
    assert view.evaluate(UNTOLD) == [] and view.evaluate(TOO_WIDE) == []
    view.evaluate(
        """() => document.querySelector("article").insertAdjacentHTML("afterbegin", `
          <span class="katex"><span class="katex-html" aria-hidden="true">x</span></span>
          <img src="data:," alt="figure.png"><svg width="9" height="9"></svg>
          <p style="overflow: hidden; white-space: nowrap">${"cut ".repeat(200)}</p>`)"""
    )
    found = view.evaluate(UNTOLD)
    assert [re.match(r"<(\w+)", each)[1] for each in found] == ["span", "img", "svg"]
    assert view.evaluate(TOO_WIDE) == ["P.null"]


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


def test_without_javascript_every_page_can_be_read_and_the_pictures_stay(visit):
    """One tab for all of them: a page without scripts is opened in a moment."""
    tab = visit(javascript=False)
    pictures = 0
    for page in PAGES:
        view = tab.goto(f"{page}.html", settle=False)
        assert view.locator("article h1").is_visible(), page
        assert len(view.locator("article").inner_text()) > 300, page
        assert view.locator(".cg-live").count() == 0, page
        hosts = view.evaluate(
            """() => [...document.querySelectorAll(".cg-widget > .cg-fallback")].map((each) =>
              [each.checkVisibility(), Boolean(each.querySelector("svg")), each.innerText])"""
        )
        for seen, drawn, text in hosts:
            assert seen, page
            assert not drawn or re.search(r"\d", text), f"{page}: numbers are part of a picture"
        pictures += sum(drawn for _, drawn, _ in hosts)
        if any(page in pages_showing(each) for each in EXPLORABLES):
            assert view.locator(".cg-widget svg").first.is_visible(), page
    assert pictures > 20
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
