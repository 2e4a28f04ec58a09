"""How long a reader waits for Python in the page: ``python -m benchmarks.live``.

A chapter of the built book is opened in Chromium with an empty cache, the switch is pressed, and
what comes is counted until the first cell with NumPy has its result: seconds, and bytes as they
would travel with gzip.  Then a first figure, a cell that is run again, and a new start after Stop,
when everything lies in the browser's cache.  The same chapter is opened as a notebook too, in
JupyterLab in the browser, cold again: until it is shown, and until its first cell has run.
"""

from __future__ import annotations

import gzip
import threading
import time
from typing import NamedTuple

from playwright.sync_api import Page, Response, sync_playwright

from tools.chromium import find_chromium
from tools.serve import SITE, make_server

CHAPTER = "book/part1/sliding_window.html"
NOTEBOOK = "lite/notebooks/index.html?path=sliding_window.ipynb"
TARGET = 7.0  # seconds to the first result, from the same host
MEGA = 1e6

NUMPY = "import numpy as np\nprint('first', np.arange(5).sum())"
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nprint('drawn')"


class Wait(NamedTuple):
    """What a reader waits for: how long, and how much travels meanwhile."""

    what: str
    seconds: float
    travelled: float  # bytes, gzipped where that helps
    whole: float  # bytes, as they lie on the server


def main() -> int:
    if not (SITE / "_live" / "start.json").is_file():
        print("live: the book in _build/html has no live cells: run `make book` while online")
        return 1
    server = make_server(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_default_timeout(120_000)
        site = f"http://127.0.0.1:{server.server_port}"
        waits = measured(page, f"{site}/{CHAPTER}")
        if (SITE / "lite").is_dir():
            cold = browser.new_page()
            cold.set_default_timeout(120_000)
            waits += as_notebook(cold, f"{site}/{NOTEBOOK}")
        browser.close()
        server.shutdown()
    print(f"{'live cells':<34} {'seconds':>8} {'gzip MB':>8} {'MB':>6}")
    for wait in waits:
        sizes = f"{wait.travelled / MEGA:8.2f} {wait.whole / MEGA:6.2f}"
        print(f"{wait.what:<34} {wait.seconds:8.2f} {sizes}")
    late = "  over" if waits[1].seconds > TARGET else ""
    print(f"first result with NumPy, cold: {waits[1].seconds:.1f} s of {TARGET:.0f}{late}")
    return 0


def measured(page: Page, address: str) -> list[Wait]:
    """The waits of one reader, in order."""
    come: list[Response] = []
    page.on("response", lambda response: come.append(response))
    waits: list[Wait] = []
    page.goto(address, wait_until="networkidle")
    come.clear()
    pressed = time.perf_counter()

    def until(what: str, since: float) -> None:
        seconds = time.perf_counter() - since
        page.wait_for_timeout(200)  # what came with it is counted too
        bodies = [each.body() for each in come if each.ok and "/_live/" in each.url]
        waits.append(Wait(what, seconds, travelled(bodies), sum(map(len, bodies))))
        come.clear()

    page.get_by_role("button", name="Run live").click()
    page.locator(".cg-run-tools").first.wait_for()
    seconds = time.perf_counter() - pressed
    run(page, 2, NUMPY, "first 10")
    until("switch to first NumPy result", pressed)
    waits.insert(0, Wait("switch to editors", seconds, 0, 0))
    began = time.perf_counter()
    run(page, 2, NUMPY + "\nprint('again')", "again")
    until("a cell again", began)
    began = time.perf_counter()
    run(page, 3, FIGURE, "drawn")
    page.locator(".cg-run-image").wait_for()
    until("first figure", began)
    began = time.perf_counter()
    page.get_by_role("button", name="Stop", exact=True).click()
    run(page, 2, NUMPY + "\nprint('anew')", "anew")
    until("after Stop, to a result", began)
    return waits


def as_notebook(page: Page, address: str) -> list[Wait]:
    """The waits of who opens a chapter in JupyterLab, in the browser."""
    come: list[Response] = []
    page.on("response", lambda response: come.append(response))
    waits, began = [], time.perf_counter()

    def until(what: str) -> None:
        seconds = time.perf_counter() - began
        page.wait_for_timeout(200)
        bodies = [each.body() for each in come if each.ok]
        waits.append(Wait(what, seconds, travelled(bodies), sum(map(len, bodies))))

    page.goto(address)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    until("as a notebook, shown")
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(state="attached")
    page.locator(".jp-CodeCell").first.click()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.locator(".jp-OutputArea-output", has_text="numpy").first.wait_for()
    until("as a notebook, first cell run")
    return waits


def travelled(bodies: list[bytes]) -> int:
    """Bytes on the way, packed where that helps."""
    return sum(min(len(body), len(gzip.compress(body, 6))) for body in bodies)


def run(page: Page, number: int, code: str, shows: str) -> None:
    """Type code into a cell, run it and wait for what it shows."""
    tools = page.get_by_role("group", name=f"Tools of cell {number}", exact=True)
    page.get_by_role("textbox", name=f"Code of cell {number}", exact=True).click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")
    cell = page.locator("div.cell", has=tools)
    cell.locator(".cell_output").get_by_text(shows).wait_for()


if __name__ == "__main__":
    raise SystemExit(main())
