"""A widget in a real JupyterLab with a real kernel: an edit there reaches Python, and back."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tools import lab

pytestmark = pytest.mark.lab

NOTEBOOK = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3, language: python}
---

# One widget, seen from both sides

```{code-cell}
from convgrad import example
from convgrad.widgets import ContributionPlayer

player = ContributionPlayer(example("B"))
player
```

```{code-cell}
print("Python has", float(player.x[0, 0, 0, 0]))
```

```{code-cell}
changed = player.x.copy()
changed[0, 0, 0, 1] = 77
player.x = changed
```
"""


@dataclass
class Lab:
    """A running JupyterLab."""

    base: str
    token: str

    def ask(self, path: str) -> Any:
        """What the server answers on its own interface, as JSON."""
        request = urllib.request.Request(
            self.base + path, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


@pytest.fixture
def jupyter(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """JupyterLab on a folder with one page, as `make lab` starts it, with nobody's settings.

    The page is what the test's own module calls NOTEBOOK.
    """
    root = tmp_path / "pages"
    root.mkdir()
    (root / "page.md").write_text(request.module.NOTEBOOK, encoding="utf-8")
    environment = lab.prepare(tmp_path / "lab") | {"HOME": str(tmp_path)}
    environment.pop("JUPYTER_PATH", None)
    port, token = free_port(), secrets.token_hex(16)
    words = lab.command(
        root,
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
    )
    log = tmp_path / "lab.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    running = Lab(f"http://127.0.0.1:{port}/", token)
    try:
        wait_for(lambda: answers(running, process), "JupyterLab to answer", seconds=60)
        yield running
    except BaseException:
        print(log.read_text(encoding="utf-8", errors="replace")[-4000:])
        raise
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # its kernels are in the same group
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_an_edit_reaches_python_and_back(browser: Browser, jupyter: Lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    try:
        cells = opened(page, jupyter, cells=3)

        run(page, cells.nth(0))
        widget = cells.nth(0).get_by_role("region", name="Contribution player")
        expect(widget).to_be_visible(timeout=30_000)
        grid = widget.get_by_role("grid", name=re.compile("^x, "))

        # from the browser to Python
        grid.locator('[data-row="0"][data-col="0"]').click()
        grid.get_by_role("textbox").fill("42")
        grid.get_by_role("textbox").press("Enter")
        wait_for(
            lambda: "Python has 42.0" in output_of(page, cells.nth(1)),
            "Python to have the number typed in the browser",
            seconds=30,
        )

        # from Python to the browser
        run(page, cells.nth(2))
        expect(grid.locator('[data-row="0"][data-col="1"]')).to_have_text("77")
        expect(grid.locator('[data-row="0"][data-col="0"]')).to_have_text("42")

        # the tools have come with the model: both edits are taken back, in Python too
        undo = widget.get_by_role("button", name="undo", exact=True)
        undo.click()
        expect(grid.locator('[data-row="0"][data-col="1"]')).to_have_text("2")
        undo.click()
        wait_for(
            lambda: "Python has 1.0" in output_of(page, cells.nth(1)),
            "Python to have the first number back",
            seconds=30,
        )
        # the address is the notebook's, so there is no link to copy; there is PyTorch code
        expect(widget.get_by_role("button", name="copy as PyTorch code")).to_be_visible()
        expect(widget.get_by_role("button", name="copy link")).to_have_count(0)
    finally:
        page.close()


def opened(page: Page, jupyter: Lab, *, cells: int) -> Locator:
    """The cells of the notebook, opened in JupyterLab, with a kernel that waits for them."""
    page.goto(f"{jupyter.base}lab/tree/page.md?token={jupyter.token}")
    found = page.locator(".jp-NotebookPanel .jp-CodeCell")
    expect(found).to_have_count(cells, timeout=60_000)
    wait_for(lambda: kernel_is_ready(jupyter), "the kernel to be ready", seconds=60)
    return found


def run(page: Page, cell: Locator) -> None:
    """Runs a cell; a first try that comes too early is silently lost, so it is repeated."""
    before = prompt(cell)

    def went() -> bool:
        cell.locator(".jp-InputArea-editor").first.click()
        page.keyboard.press("Control+Enter")
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if prompt(cell) not in (before, "[*]:", "[ ]:"):
                return True
            page.wait_for_timeout(100)
        return prompt(cell) not in (before, "[ ]:") and settled(page, cell)

    wait_for(went, "a cell to run", seconds=60)


def settled(page: Page, cell: Locator) -> bool:
    """A cell that has begun is waited for, not started again."""
    for _ in range(600):
        if prompt(cell) != "[*]:":
            return True
        page.wait_for_timeout(100)
    return False


def output_of(page: Page, cell: Locator) -> str:
    run(page, cell)
    return cell.locator(".jp-OutputArea-output").first.inner_text()


def prompt(cell: Locator) -> str:
    return cell.locator(".jp-InputArea-prompt").first.inner_text().strip()


def kernel_is_ready(jupyter: Lab) -> bool:
    sessions = jupyter.ask("api/sessions")
    return bool(sessions) and all(
        each["kernel"]["execution_state"] == "idle" and each["kernel"]["connections"] > 0
        for each in sessions
    )


def answers(jupyter: Lab, process: subprocess.Popen) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"JupyterLab ended by itself with {process.returncode}")
    try:
        return "version" in jupyter.ask("api")
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what: str, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.2)
