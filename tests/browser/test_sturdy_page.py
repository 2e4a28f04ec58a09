"""Pages where something is missing: storage, the network, the data of a widget, the page itself."""

from __future__ import annotations

import re
import threading

import pytest
from playwright.sync_api import expect

from tools.serve import make_server

pytestmark = pytest.mark.browser

PAGE = "book/part2/weight_gradient"

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
