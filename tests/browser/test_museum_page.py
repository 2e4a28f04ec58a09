"""The list of exhibits in the page: filtered, by keyboard, from an address, without scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page

from convgrad.museum import CATCHERS, EXHIBITS, KINDS

pytestmark = pytest.mark.browser

PAGE = "book/part5/museum.html"
ALL = len(EXHIBITS)


def keys(**wanted: str) -> list[str]:
    """The exhibits that the filters should leave, from the table in the package."""
    return [
        each.key
        for each in EXHIBITS
        if wanted.get("gradient", each.targets[0]) in each.targets
        and wanted.get("kind", KINDS[each.kind]) == KINDS[each.kind]
        and wanted.get("caught", CATCHERS[each.caught_by]) == CATCHERS[each.caught_by]
    ]


@pytest.fixture
def view(visit) -> Page:
    tab = visit()
    page = tab.goto(PAGE, settle=False)
    yield page
    tab.assert_clean()


def shown(view: Page) -> list[str]:
    links = view.locator(".cg-museum tbody tr:visible a").all()
    return [link.get_attribute("href").removeprefix("#museum-") for link in links]


def filter_named(view: Page, name: str) -> Locator:
    return view.get_by_role("group", name="Filter the list").get_by_label(name, exact=True)


def count(view: Page) -> str:
    return view.locator(".cg-museum [role=status]").inner_text()


def test_the_whole_list_in_the_order_of_the_rooms(view):
    assert shown(view) == keys()
    assert count(view) == f"{ALL} exhibits"
    assert view.get_by_role("button", name="Show all").is_disabled()


@pytest.mark.parametrize("gradient", ["weight", "input", "bias"])
def test_by_gradient(view, gradient):
    filter_named(view, "Gradient").select_option(gradient)
    assert shown(view) == keys(gradient=gradient)
    assert count(view) == f"{len(keys(gradient=gradient))} of {ALL} exhibits"


@pytest.mark.parametrize("kind", KINDS.values())
def test_by_kind(view, kind):
    filter_named(view, "Kind").select_option(kind)
    assert shown(view) == keys(kind=kind)


@pytest.mark.parametrize("catcher", CATCHERS.values())
def test_by_what_catches_it(view, catcher):
    filter_named(view, "Caught by").select_option(catcher)
    assert shown(view) == keys(caught=catcher)


def test_filters_narrow_each_other_and_say_how_many_are_left(view):
    filter_named(view, "Gradient").select_option("bias")
    options = filter_named(view, "Kind").locator("option").all()
    for option in options[1:]:
        kind = option.get_attribute("value")
        left = len(keys(gradient="bias", kind=kind))
        assert option.inner_text() == f"{kind} ({left})"
        assert option.is_disabled() == (left == 0)
    filter_named(view, "Kind").select_option(KINDS["silent"])
    assert shown(view) == keys(gradient="bias", kind=KINDS["silent"])
    view.get_by_role("button", name="Show all").click()
    assert shown(view) == keys()
    assert view.evaluate("document.activeElement.tagName") == "SELECT"  # not lost with the button


def test_the_choice_is_in_the_address_and_comes_back(view, visit):
    filter_named(view, "Gradient").select_option("input")
    filter_named(view, "Kind").select_option(KINDS["silent"])
    address = view.evaluate("location.search")
    assert address == "?gradient=input&kind=silent+wrong+number"
    tab = visit()
    again = tab.goto(PAGE + address, settle=False)
    assert shown(again) == keys(gradient="input", kind=KINDS["silent"])
    again.get_by_role("button", name="Show all").click()
    assert again.evaluate("location.search") == ""
    tab.assert_clean()


def test_an_address_with_what_is_not_known_shows_all_and_keeps_what_is_not_ours(visit):
    tab = visit()
    view = tab.goto(f"{PAGE}?kind=<b>&from=mail#museum-dealt", settle=False)
    assert shown(view) == keys()
    filter_named(view, "Gradient").select_option("bias")
    assert view.evaluate("location.search") == "?from=mail&gradient=bias"
    assert view.evaluate("location.hash") == "#museum-dealt"
    tab.assert_clean()


def test_by_keyboard_alone(view):
    filter_named(view, "Gradient").focus()
    view.keyboard.press("ArrowDown")
    first = filter_named(view, "Gradient").input_value()
    assert shown(view) == keys(gradient=first)
    for name in ("Kind", "Caught by"):
        view.keyboard.press("Tab")
        assert filter_named(view, name).evaluate("each => each === document.activeElement")
    view.keyboard.press("Tab")
    view.keyboard.press("Enter")
    assert shown(view) == keys()


def test_the_count_is_a_live_region(view):
    assert view.locator(".cg-museum [role=status]").count() == 1
    tree = view.locator(".cg-museum").aria_snapshot()
    assert f"status: {ALL} exhibits" in tree


def test_an_exhibit_opens_at_its_plate(view):
    link = view.locator(".cg-museum a").nth(4)
    link.click()
    key = EXHIBITS[4].key
    assert view.evaluate("location.hash") == f"#museum-{key}"
    assert view.locator(f"#museum-{key}").count() == 1
    assert view.locator(".cg-plate").count() == ALL


@pytest.mark.parametrize("width", [375, 320])
def test_on_a_phone_every_name_can_be_read_and_it_is_still_a_table(visit, width):
    tab = visit(width=width, height=700, touch=True)
    view = tab.goto(PAGE)
    assert view.evaluate("document.documentElement.scrollWidth") == width
    for row in view.locator(".cg-museum tbody tr").all():
        box = row.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert view.get_by_role("table").first.get_by_role("row").count() == ALL + 1
    for control in view.locator(".cg-museum-filters :is(select, button)").all():
        assert control.bounding_box()["height"] >= 44
    filter_named(view, "Kind").select_option(KINDS["lost"])
    assert shown(view) == keys(kind=KINDS["lost"])
    tab.assert_clean()


@pytest.mark.parametrize("dark", [False, True])
def test_axe_has_nothing_against_a_filtered_list(visit, axe, dark):
    tab = visit(dark=dark)
    view = tab.goto(PAGE, settle=False)
    filter_named(view, "Gradient").select_option("bias")
    assert not axe(view.locator(".cg-museum"))


def test_without_javascript_the_list_is_whole(visit):
    tab = visit(javascript=False)
    view = tab.goto(PAGE, settle=False)
    assert shown(view) == keys()
    assert view.locator(".cg-museum-filters").count() == 0
    assert not tab.missing


def test_only_this_page_loads_the_script(visit):
    pages = {PAGE: 1, "book/part5/autograd_function.html": 0, "book/preface.html": 0}
    for page, scripts in pages.items():
        view = visit().goto(page, settle=False)
        assert view.locator('script[src*="museum.js"]').count() == scripts, page
