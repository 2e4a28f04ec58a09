"""The built book under a sub-path, in Chromium, with everything off-site blocked and counted."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
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
    """The site where it was not made to be: nothing is served outside of PREFIX."""

    def send_head(self):
        if not self.path.startswith(PREFIX):
            self.send_error(404, "outside of the site")
            return None
        self.path = self.path.removeprefix(PREFIX.rstrip("/"))
        return super().send_head()


@dataclass
class Visit:
    """One tab, and everything that went wrong in it."""

    page: Page
    base: str
    kind: str = ""  # the widgets that the test is about; the others need not have started
    offsite: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def goto(self, name: str, *, settle: bool = True) -> Page:
        """Opens a page of the book, ``"book/preface.html"``, and waits until its widgets live."""
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

    context.route("**/*", pass_or_block)
    context.route_web_socket(re.compile(".*"), block_socket)
    context.on("console", hear)
    context.on("weberror", lambda error: tab.complaints.append(f"uncaught: {error.error}"))
    context.on("response", see)


@pytest.fixture(scope="session")
def axe() -> Callable[[Locator], list[Finding]]:
    """``axe(part_of_a_page)``: where a screen reader or a keyboard would stumble, says axe-core.

    Without its rule on contrast: that takes most of its time, and faint_text.js measures the same
    on every text, also on grounds that axe-core cannot tell.
    """
    source = Path("node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")

    def find(part: Locator) -> list[Finding]:
        if not part.page.evaluate("() => 'axe' in window"):
            part.page.evaluate(source)
        found = part.evaluate(
            """async (part) => {
              const rules = { "color-contrast": { enabled: false } };
              const found = await axe.run(part, { resultTypes: ["violations"], rules });
              return found.violations.map(({ id, impact, nodes }) =>
                [id, impact, nodes.map((each) => each.html.slice(0, 160))]);
            }"""
        )
        return [Finding(*each) for each in found]

    return find
