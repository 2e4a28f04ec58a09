"""Pages where something is missing: storage, the network, the data of a widget, the page itself."""

from __future__ import annotations

import re
import threading

import pytest
from playwright.sync_api import expect

from tools.serve import make_server

pytestmark = pytest.mark.browser

PAGE = "book/part2/weight_gradient"
ALL_WIDGETS = "book/gallery"

# What a browser does when its reader has forbidden storage.
FORBID_STORAGE = """
  for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(Window.prototype, name, {
      configurable: true,
      get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
    });
  for (const name of ["localStorage", "sessionStorage"]) delete window[name];
"""


def test_a_page_without_storage_is_whole(visit):
    tab = visit()
    tab.page.add_init_script(FORBID_STORAGE)
    view = tab.goto(f"{PAGE}.html")
    tab.assert_clean()
    before = view.evaluate("() => document.documentElement.dataset.theme")
    button = view.locator(".theme-switch-button:visible").first
    for _ in range(3):  # through its three modes
        button.click()
    assert view.evaluate("() => document.documentElement.dataset.theme") == before
    tab.assert_clean()


@pytest.mark.parametrize("page", [ALL_WIDGETS, "book/part5/museum", "search"])
def test_what_else_asks_for_storage_does_without(visit, page):
    """Every kind of widget, the filters, the search."""
    tab = visit()
    tab.page.add_init_script(FORBID_STORAGE)
    view = tab.goto(f"{page}.html")
    assert view.locator(".cg-widget:not(.cg-mounted)").count() == 0
    tab.assert_clean()


def test_a_page_that_has_been_read_works_without_the_network(visit):
    tab = visit()
    view = tab.goto(f"{PAGE}.html")
    view.context.set_offline(True)
    widget = view.locator(".cg-live").first
    before = widget.inner_text()
    widget.get_by_role("button", name="one step on", exact=True).click()
    expect(widget).not_to_have_text(before)
    tab.assert_clean()


def test_one_widget_with_broken_data_leaves_the_others_alive(visit):
    tab = visit()

    def break_first(route) -> None:
        text = route.fetch().text()
        route.fulfill(body=re.sub(r'("geometry": ?)\{', r"\1[{", text, count=1))

    tab.page.route(re.compile(rf"{PAGE}\.html"), break_first)
    view = tab.goto(f"{PAGE}.html")
    hosts = view.locator(".cg-widget")
    assert hosts.count() > 1
    assert view.locator(".cg-widget.cg-mounted").count() == hosts.count() - 1
    broken = view.locator(".cg-widget:not(.cg-mounted)")
    assert broken.locator(".cg-note:visible").count() == 1


def test_every_other_widget_broken_leaves_the_rest_alive(visit):
    """Of all kinds: a broken one keeps its picture and says why, and costs nobody else anything."""
    tab = visit()

    def break_every_other(route) -> None:
        parts = re.split(r'("state":)', route.fetch().text())
        for k in range(2, len(parts), 4):  # behind the first, the third … state
            parts[k] = " [" + parts[k]
        route.fulfill(body="".join(parts), content_type="text/html")

    tab.page.route(re.compile(rf"{ALL_WIDGETS}\.html"), break_every_other)
    view = tab.goto(f"{ALL_WIDGETS}.html")
    hosts = view.locator(".cg-widget").all()
    assert len(hosts) > 8
    for number, host in enumerate(hosts):
        broken = number % 2 == 0
        assert host.evaluate("(each) => each.matches('.cg-mounted')") == (not broken)
        assert host.locator(":scope > .cg-fallback").is_visible() == broken
        assert host.locator(":scope > .cg-note").count() == broken


def test_without_the_network_what_was_not_fetched_keeps_its_picture(visit):
    tab = visit(height=500)
    view = tab.goto(f"{ALL_WIDGETS}.html", settle=False)
    first, last = view.locator(".cg-widget").first, view.locator(".cg-widget").last
    expect(first).to_have_class(re.compile("cg-mounted"))
    expect(last).not_to_have_class(re.compile("cg-mounted"))
    view.context.set_offline(True)
    last.scroll_into_view_if_needed()
    expect(last.locator(":scope > .cg-note")).to_be_visible()
    expect(last.locator(":scope > .cg-fallback")).to_be_visible()
    assert not [line for line in tab.complaints if "uncaught" in line]


def test_an_address_that_is_not_there_leads_back(browser):
    """At any depth, as a host of pages shows it."""
    with make_server(0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        answer = page.goto(f"http://127.0.0.1:{server.server_port}/book/part9/no/such.html")
        assert answer.status == 404
        assert page.get_by_role("heading", level=1).inner_text() == "There is no such page"
        assert page.evaluate("() => getComputedStyle(document.body).getPropertyValue('--cg-x')")
        page.get_by_role("link", name="The beginning of the book").click()
        page.wait_for_url("**/book/preface.html")
        page.close()
        server.shutdown()
