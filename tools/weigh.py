"""What each page of the built book weighs: `python -m tools.weigh [PAGE …]`.

Every page is opened in Chromium with an empty cache, at 1.2 MB a second and 60 ms a trip, and what
it asks for is counted: requests, bytes as they travel (text compressed), and the milliseconds until
it answers: the scripts have run, and the first widget, if one is near, has come to life.  Of the
time it is the median of several openings.  The budgets are those a reader on a phone would set.
"""

from __future__ import annotations

import argparse
import statistics
import threading
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Response, sync_playwright

from tools.chromium import find_chromium
from tools.serve import SITE, make_server

KILO = 1000
WITH_PICTURES, WITHOUT = 250 * KILO, 120 * KILO
REQUESTS = 20
READY = 400  # milliseconds
LINE = {  # of a reader with a fair connection
    "offline": False,
    "latency": 60,
    "downloadThroughput": 1_200_000,
    "uploadThroughput": 1_200_000,
}
# The moment when the first widget lives, kept for the question below.
WATCH = """new MutationObserver((_, watch) => {
  if (!document.querySelector(".cg-mounted")) return;
  window.cgFirst = performance.now();
  watch.disconnect();
}).observe(document, { subtree: true, childList: true, attributeFilter: ["class"] });"""
WHEN = """() => Math.max(window.cgFirst ?? 0,
  performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd)"""


class Weight(NamedTuple):
    """One page: requests, bytes, milliseconds, and whether it has figures or explorables."""

    page: str
    requests: int
    size: int
    ready: float
    pictures: bool

    @property
    def budget(self) -> int:
        return WITH_PICTURES if self.pictures else WITHOUT

    @property
    def over(self) -> list[str]:
        """What is more than a reader on a phone should wait for."""
        limits = {
            "requests": self.requests > REQUESTS,
            "bytes": self.size > self.budget,
            "time": self.ready > READY,
        }
        return [name for name, broken in limits.items() if broken]


def pages(site: Path = SITE) -> list[str]:
    """The addresses of the book's own pages, relative to the site, in alphabetical order."""
    found = sorted(file.relative_to(site).as_posix() for file in (site / "book").rglob("*.html"))
    if not found:
        raise FileNotFoundError(f"no pages under {site}: run `make book` first")
    return found


def travelled(answer: Response) -> int:
    """The bytes of a body on their way; the server says how many it sends."""
    return int(answer.headers.get("content-length", 0))


def weigh(browser: Browser, base: str, page: str) -> Weight:
    """Opens one page with an empty cache and adds up what came."""
    context = browser.new_context()
    try:
        tab = context.new_page()
        line = context.new_cdp_session(tab)
        line.send("Network.enable")
        line.send("Network.emulateNetworkConditions", LINE)
        tab.add_init_script(WATCH)
        answers: list[Response] = []
        tab.on("response", lambda response: answers.append(response))
        tab.goto(base + page, wait_until="networkidle")
        ours = [each for each in answers if each.ok and each.url.startswith(base)]
        pictures = tab.locator("article :is(.cg-picture, .cg-widget, img)").count() > 0
        size = sum(map(travelled, ours))
        return Weight(page, len(ours), size, tab.evaluate(WHEN), pictures)
    finally:
        context.close()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.weigh", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="book/preface.html; or all")
    parser.add_argument("--times", type=int, default=3, help="how often each is opened (3)")
    options = parser.parse_args(arguments)
    server = make_server(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    weights = []
    print(f"{'page':<40} {'requests':>8} {'kB':>8} {'budget':>7} {'ready ms':>9}")
    with server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        for page in options.pages or pages():
            times = [weigh(browser, base, page) for _ in range(options.times)]
            weight = times[0]._replace(ready=statistics.median(each.ready for each in times))
            weights.append(weight)
            verdict = f"  over: {', '.join(weight.over)}" if weight.over else ""
            print(
                f"{weight.page:<40} {weight.requests:>8} {weight.size / KILO:>8.1f} "
                f"{weight.budget / KILO:>7.0f} {weight.ready:>9.0f}{verdict}",
                flush=True,
            )
        browser.close()
        server.shutdown()
    requests = statistics.median(each.requests for each in weights)
    size = statistics.median(each.size for each in weights)
    ready = statistics.median(each.ready for each in weights)
    print(f"{'median':<40} {requests:>8.0f} {size / KILO:>8.1f} {ready:>17.0f}")
    print(f"over: more than {REQUESTS} requests, the budget in kB, or {READY} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
