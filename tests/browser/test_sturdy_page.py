"""Pages where something is missing: storage, the network, the data of a widget, the page itself."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
import threading
import urllib.request
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tools.copies import pack_site
from tools.serve import SITE, make_server

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


# ---- away from the network ----------------------------------------------------------------------


def counted(browser, start: str) -> tuple[Page, list[str]]:
    """A tab, and all that it asks for from elsewhere than an address that begins so."""
    page, elsewhere = browser.new_page(), []

    def pass_or_block(route) -> None:
        inside = route.request.url.startswith(start)
        if not inside:
            elsewhere.append(route.request.url)
        (route.continue_ if inside else route.abort)()

    page.route("**/*", pass_or_block)
    return page, elsewhere


def test_opened_as_a_file_a_page_shows_text_formulas_and_pictures(browser):
    assert (SITE / f"{PAGE}.html").is_file(), "run `make book` first"
    page, elsewhere = counted(browser, f"{SITE.as_uri()}/")
    page.goto((SITE / f"{PAGE}.html").as_uri())
    assert page.get_by_role("heading", level=1).is_visible()
    look = """() => {
      const formula = document.querySelector(".cg-math .katex").getBoundingClientRect();
      const font = getComputedStyle(document.querySelector(".cg-math .katex")).fontFamily;
      const pictures = [...document.querySelectorAll(".cg-widget")].map((host) =>
        [...host.querySelectorAll(":scope > .cg-fallback, :scope > .cg-live")].some((each) =>
          each.checkVisibility({ visibilityProperty: true }) && each.innerText.length > 30));
      return [formula.width > 50, font.includes("KaTeX"), pictures.every(Boolean),
        pictures.length > 1, getComputedStyle(document.body).getPropertyValue("--cg-x") !== ""];
    }"""
    assert page.evaluate(look) == [True] * 5
    page.get_by_role("link", name="next").click()
    page.wait_for_url("**/input_gradient.html")
    assert not elsewhere
    page.close()


@pytest.fixture(scope="module")
def memory_stick(tmp_path_factory):
    """The packed site, unpacked and served by the command that its own READ ME.txt gives."""
    stick = tmp_path_factory.mktemp("stick")
    with zipfile.ZipFile(pack_site(SITE, stick / "book.zip")) as archive:
        archive.extractall(stick)
    (command,) = re.findall(r"^ +python3 (.*)$", Path(stick, "book/READ ME.txt").read_text(), re.M)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = [sys.executable, *shlex.split(command.replace("8000", port))]
    with subprocess.Popen(words, cwd=stick / "book", stderr=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}/"
        for _ in range(100):
            try:
                urllib.request.urlopen(address, timeout=1).close()
                break
            except OSError:
                threading.Event().wait(0.05)
        yield address
        server.terminate()


def test_from_a_memory_stick_the_book_lives(memory_stick, browser):
    page, elsewhere = counted(browser, memory_stick)
    page.goto(memory_stick)
    page.wait_for_url("**/book/preface.html")
    widget = page.locator(".cg-live").first
    before = widget.inner_text()
    widget.get_by_role("button", name="one step on", exact=True).click()
    expect(widget).not_to_have_text(before)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as notebook").click()
    assert download.value.suggested_filename == "preface.ipynb"
    assert not elsewhere
    page.close()
