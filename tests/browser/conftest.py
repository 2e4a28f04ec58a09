"""The built book under a sub-path, in Chromium, with everything off-site blocked and counted."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag
from contents import Finding
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    Playwright,
    TimeoutError,
    sync_playwright,
)

from tools.chromium import find_chromium
from tools.serve import SITE, Pages, Server
from tools.weigh import travelled

# Pages of a project live under a path; an address that starts with "/" would break there.
PREFIX = "/some/sub/path/"

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class UnderSubPath(Pages):
    """The site where it was not made to be: nothing is served outside of PREFIX.

    ``page.html?only=kind`` is that page with nothing but its widgets of one kind.
    """

    def send_head(self):
        if not self.path.startswith(PREFIX):
            self.send_error(404, "outside of the site")
            return None
        self.path = self.path.removeprefix(PREFIX.rstrip("/"))
        path, _, kind = self.path.partition("?only=")
        if not kind:
            return super().send_head()
        body = only(Path(self.directory, path.lstrip("/")), kind)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)


@cache
def only(path: Path, kind: str) -> bytes:
    """A page cut down to its widgets of one kind, in a third of the time that the whole one takes.

    Its head, its policy and its scripts stay what they are; the whole page is opened too, by the
    tests of all pages.
    """
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    hosts = soup.select(".cg-widget")
    models = {
        host["data-model"]
        for host in hosts
        if (state := host.find("script")) and f'"{kind}' in state.string
    }
    kept = [host for host in hosts if host["data-model"] in models]
    around = {id(each) for host in kept for each in host.parents}
    for part in [*soup.select(".bd-sidebar-primary > *, .bd-sidebar-secondary > *")]:
        part.decompose()

    def cut(element) -> None:
        for child in list(element.children):
            if id(child) in around:
                cut(child)
            elif isinstance(child, Tag) and all(child is not host for host in kept):
                child.decompose()

    cut(soup.select_one("article"))
    for host in kept:  # on a whole page the next stop of Tab is no widget either
        host.insert_after(BeautifulSoup('<p><a href="#">go on</a></p>', "html.parser"))
    return str(soup).encode()


@dataclass
class Visit:
    """One tab, and everything that went wrong in it."""

    page: Page
    base: str
    kind: str = ""  # the widgets that the test is about; the others need not have started
    offsite: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # of what came, in bytes on the way

    def goto(self, name: str, *, settle: bool = True, whole: bool = False) -> Page:
        """Opens a page of the book, ``"book/preface.html"``, and waits until its widgets live.

        In a module about one kind of widget, the rest of the page is left out unless it is to be
        the ``whole`` one.
        """
        if self.kind and not whole and "?only=" not in name:
            place, mark, fragment = name.partition("#")
            name = f"{place}?only={self.kind}{mark}{fragment}"
        self.page.goto(urljoin(self.base, name), wait_until="load", timeout=30_000)
        if settle:
            self.settle()
        return self.page

    def settle(self) -> None:
        """Until the widgets are mounted or have said that they cannot be; they wait to be near."""
        try:
            self.page.wait_for_function(
                """(kind) => {
                  const models = [...document.querySelectorAll(".cg-widget")].filter((host) =>
                    host.querySelector("script")?.textContent.includes(`"${kind}`));
                  const names = new Set(models.map((host) => host.dataset.model));
                  const waiting = [...document.querySelectorAll(".cg-widget")].find((host) =>
                    (!kind || names.has(host.dataset.model)) &&
                    !host.matches(".cg-mounted") && !host.querySelector(":scope > .cg-note"));
                  waiting?.scrollIntoView({ block: "center", behavior: "instant" });
                  return document.readyState === "complete" && !waiting && !(kind && !names.size);
                }""",
                arg=self.kind,
                timeout=15_000,
            )
            self.page.evaluate("() => scrollTo({ top: 0, behavior: 'instant' })")
        except TimeoutError:
            self.assert_clean()
            raise AssertionError("a widget was neither mounted nor did it say why") from None

    def assert_clean(self) -> None:
        assert not self.offsite, f"asked for addresses elsewhere: {self.offsite}"
        assert not self.missing, f"asked for what is not there: {self.missing}"
        assert not self.complaints, f"the console says: {self.complaints}"


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    """The address of the built book, with the sub-path."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"there is no book in {SITE}: run `make book` first", pytrace=False)

    def handler(*arguments):
        return UnderSubPath(*arguments, directory=str(SITE))

    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
        server.shutdown()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture
def visit(browser: Browser, base: str, request: pytest.FixtureRequest):
    """``visit(width=…, javascript=…, dark=…)`` opens a tab with an empty cache of its own.

    ``policy=False`` lets the page ask for what its own policy forbids.

    A module of tests that are about one kind of widget names its bundle in ``WIDGET``: on a page
    with many it need not wait for the others.
    """
    yield from tabs(browser, base, getattr(request.module, "WIDGET", ""))


@pytest.fixture(scope="module")
def shared(browser: Browser, base: str):
    """``shared(…)`` opens a tab as ``visit`` does, for the tests of a module to go on in."""
    yield from tabs(browser, base)


def tabs(browser: Browser, base: str, kind: str = "") -> Iterator[Callable[..., Visit]]:
    """A function that opens tabs; they are closed when the next is asked for."""
    contexts: list[BrowserContext] = []

    def open_tab(
        *,
        width: int = 1280,
        height: int = 900,
        javascript: bool = True,
        dark: bool = False,
        reduced_motion: bool = False,
        touch: bool = False,
        policy: bool = True,
    ) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            java_script_enabled=javascript,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if reduced_motion else "no-preference",
            has_touch=touch,
            bypass_csp=not policy,
            service_workers="block",
        )
        context.set_default_timeout(5_000)
        contexts.append(context)
        tab = Visit(context.new_page(), base, kind)
        watch(context, tab)
        return tab

    yield open_tab
    for context in contexts:
        context.close()


def watch(context: BrowserContext, tab: Visit) -> None:
    """Blocks and counts what leaves the site, and writes down what the console says."""
    ours = urlsplit(tab.base).netloc

    def pass_or_block(route) -> None:
        address = route.request.url
        if urlsplit(address).netloc == ours:
            route.continue_()
        else:
            tab.offsite.append(address)
            route.abort()

    def block_socket(socket) -> None:
        tab.offsite.append(socket.url)
        socket.close()

    def hear(message) -> None:
        if message.type in ("error", "warning"):
            tab.complaints.append(f"{message.type}: {message.text}")

    def see(response) -> None:
        if response.status >= 400:
            tab.missing.append(f"{response.status} {response.url}")
        elif urlsplit(response.url).netloc == ours:
            tab.sizes.append(travelled(response))

    context.route("**/*", pass_or_block)
    context.route_web_socket(re.compile(".*"), block_socket)
    context.on("console", hear)
    context.on("weberror", lambda error: tab.complaints.append(f"uncaught: {error.error}"))
    context.on("response", see)


# axe-core's rules: all of them, those on what a page is made of, the one on colours.
RULES: dict[str, dict[str, Any]] = {
    "all": {},
    "parts": {"rules": {"color-contrast": {"enabled": False}}},
    "contrast": {"runOnly": ["color-contrast"]},
}


@pytest.fixture(scope="session")
def axe() -> Callable[..., list[Finding]]:
    """``axe(part_of_a_page)``: where a screen reader or a keyboard would stumble, says axe-core.

    Of its rules it takes those on parts, unless ``rules`` says otherwise: the one on contrast
    takes most of its time.  (faint_text.js measures the same on every text, also on grounds that
    axe-core cannot tell.)  ``without`` selects what it need not look at.
    """
    source = Path("node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")

    def find(part: Locator, rules: str = "parts", without: str = "") -> list[Finding]:
        if not part.page.evaluate("() => 'axe' in window"):
            part.page.evaluate(source)
        found = part.evaluate(
            """async (part, [rules, without]) => {
              const options = { resultTypes: ["violations"], preload: false, selectors: false };
              const where = without ? { include: [part], exclude: [[without]] } : part;
              const found = await axe.run(where, { ...options, ...rules });
              return found.violations.map(({ id, impact, nodes }) =>
                [id, impact, nodes.map((each) => each.html.slice(0, 160))]);
            }""",
            [RULES[rules], without],
        )
        return [Finding(*each) for each in found]

    return find
