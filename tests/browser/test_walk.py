"""From the front page to the grouped weight gradient and back, as one goes who has only a phone,
or only a keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect

pytestmark = pytest.mark.browser

FRONT = "book/preface"
CHAPTER = "book/part4/grouped_weight_gradient"
BEFORE = "book/part4/grouped"
TITLE = "The grouped weight gradient in one call"


def on(page: Page, name: str) -> None:
    """Waits until this page is shown; a place on it may follow."""
    page.wait_for_url(re.compile(rf"{name}\.html(#.*)?$"))


# ---- a phone ---------------------------------------------------------------------------------


def tapped(where: Locator) -> Locator:
    """What a finger hits without help: large enough, in sight, and nothing lies over it."""
    where.scroll_into_view_if_needed()
    box = where.bounding_box()
    assert min(box["width"], box["height"]) >= 24, f"{where}: {box}"
    where.tap(timeout=2_000)
    return where


def test_with_a_finger(visit):
    tab = visit(width=375, height=740, touch=True)
    page = tab.goto("index.html", settle=False)
    on(page, FRONT)
    tapped(page.locator(".primary-toggle:visible"))
    menu = page.locator("#pst-primary-sidebar-modal")
    expect(menu).to_be_visible()
    tapped(menu.get_by_role("link", name=TITLE, exact=True))
    on(page, CHAPTER)
    expect(menu).to_be_hidden()

    tapped(page.locator(".secondary-toggle:visible"))
    contents = page.locator("#pst-secondary-sidebar-modal")
    expect(contents).to_be_visible()
    tapped(contents.get_by_role("link", name="The source", exact=True))
    expect(contents).to_be_hidden()
    expect(page.get_by_role("heading", name="The source")).to_be_in_viewport()

    # a search from here, and back
    tapped(page.locator(".search-button__button:visible"))
    field = page.locator("#pst-search-dialog").get_by_role("searchbox")
    expect(field).to_be_focused()
    field.fill("wgrad")
    field.press("Enter")
    page.wait_for_url(re.compile(r"search\.html\?q=wgrad"))
    found = page.locator("#search-results").get_by_role("link", name="Glossary").first
    expect(found).to_be_visible(timeout=10_000)
    page.go_back()
    on(page, CHAPTER)

    tapped(page.locator(".prev-next-footer .left-prev"))
    on(page, BEFORE)
    tapped(page.locator(".primary-toggle:visible"))
    tapped(menu.get_by_role("link", name="The Backward Pass of Conv2d"))
    on(page, FRONT)
    tab.assert_clean()


# ---- a keyboard ------------------------------------------------------------------------------

AT = """() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  return {
    name: (at.getAttribute("aria-label") ?? at.innerText ?? "").trim(),
    inside: at.closest("dialog")?.id ?? at.closest("main, .bd-sidebar-primary")?.tagName,
    seen: style.outlineStyle !== "none" || style.boxShadow !== "none" || at === document.body,
  };
}"""
IN_SIGHT = """() => {
  const box = document.activeElement.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}"""


def tab_to(page: Page, name: str, most: int = 60) -> None:
    """Presses Tab until the focus is on what has this name; wherever it stops, it shows."""
    passed = []
    for _ in range(most):
        page.keyboard.press("Tab")
        at = page.evaluate(AT)
        assert at["seen"], f"nothing shows that the focus is on {at['name']!r}"
        try:
            page.wait_for_function(IN_SIGHT, timeout=2_000)  # what slides in comes frames later
        except TimeoutError:
            raise AssertionError(f"the focus is out of sight, on {at['name']!r}") from None
        if at["name"] == name:
            return
        passed.append(at["name"])
    raise AssertionError(f"Tab did not come to {name!r}, only to {passed}")


def test_with_keys_alone(visit):
    tab = visit(reduced_motion=True)
    page = tab.goto(f"{FRONT}.html", settle=False)
    tab_to(page, "Skip to main content", most=1)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(AT)["inside"] == "MAIN"

    # through the list of pages on the left
    page.reload()
    tab_to(page, TITLE)
    page.keyboard.press("Enter")
    on(page, CHAPTER)

    page.keyboard.press("Control+k")
    expect(page.locator("#pst-search-dialog").get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#pst-search-dialog")).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("depthwise")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"search\.html\?q=depthwise"))
    page.locator("#search-results a").first.wait_for(timeout=10_000)
    tab_to(page, "Grouped and depthwise convolution", most=120)
    page.keyboard.press("Enter")
    on(page, BEFORE)
    tab.assert_clean()


def test_the_menu_of_a_narrow_page_opens_and_closes_by_keys(visit):
    tab = visit(width=375)
    page = tab.goto(f"{FRONT}.html", settle=False)
    menu = page.locator("#pst-primary-sidebar-modal")
    toggle = page.locator(".primary-toggle:visible")
    toggle.focus()
    page.keyboard.press("Enter")
    expect(menu).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate(AT)["inside"] == "pst-primary-sidebar-modal"
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(toggle).to_be_focused()
    tab.assert_clean()


def test_who_wants_no_motion_gets_none(visit):
    page = visit(reduced_motion=True).goto(f"{CHAPTER}.html")
    slow = page.evaluate(
        """() => {
          const moves = (style) => ["transitionDuration", "animationDuration"].some((name) =>
            style[name].split(",").some((each) => parseFloat(each) > 0.01));
          const found = [...document.querySelectorAll("body *")]
            .filter((each) => moves(getComputedStyle(each)))
            .map((each) => `${each.tagName}.${each.getAttribute("class")}`);
          return [...new Set(found)];
        }"""
    )
    assert slow == []
    scrolls = "() => getComputedStyle(document.documentElement).scrollBehavior"
    assert page.evaluate(scrolls) == "auto"
