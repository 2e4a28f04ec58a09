"""What each page of the built book weighs: `python -m tools.weigh`.

Every page is opened in Chromium, and what it asks for is counted: requests, and bytes as they
would travel with gzip.  The budgets are those a reader on a phone would set.
"""

from __future__ import annotations

import gzip
import threading
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from tools.chromium import find_chromium
from tools.serve import SITE, make_server

KILO = 1000
WITH_PICTURES, WITHOUT = 250 * KILO, 120 * KILO


class Weight(NamedTuple):
    """One page: requests, gzipped bytes, and whether it has figures or explorables."""

    page: str
    requests: int
    size: int
    pictures: bool

    @property
    def budget(self) -> int:
        return WITH_PICTURES if self.pictures else WITHOUT


def pages(site: Path = SITE) -> list[str]:
    """The addresses of the book's own pages, relative to the site, in alphabetical order."""
    found = sorted(file.relative_to(site).as_posix() for file in (site / "book").rglob("*.html"))
    if not found:
        raise FileNotFoundError(f"no pages under {site}: run `make book` first")
    return found


def weigh(browser: Browser, base: str, page: str) -> Weight:
    """Opens one page with an empty cache and adds up what came."""
    context = browser.new_context()
    try:
        tab = context.new_page()
        responses = []
        tab.on("response", lambda response: responses.append(response))
        tab.goto(base + page, wait_until="networkidle")
        answers = [r for r in responses if r.ok and r.request.url.startswith(base)]
        bodies = [answer.body() for answer in answers]
        pictures = tab.locator("article :is(.cg-picture, .cg-widget, img)").count() > 0
    finally:
        context.close()
    size = sum(min(len(body), len(gzip.compress(body, 6, mtime=0))) for body in bodies)
    return Weight(page, len(bodies), size, pictures)


def main() -> int:
    server = make_server(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    print(f"{'page':<40} {'requests':>8} {'gzip kB':>8} {'budget':>7}")
    with server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        for page in pages():
            weight = weigh(browser, base, page)
            verdict = "" if weight.size <= weight.budget else "  over"
            print(
                f"{weight.page:<40} {weight.requests:>8} {weight.size / KILO:>8.1f} "
                f"{weight.budget / KILO:>7.0f}{verdict}"
            )
        browser.close()
        server.shutdown()
    print("over: heavier than a reader on a phone should wait for; look for what can go")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
