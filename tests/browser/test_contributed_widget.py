"""The widget that CONTRIBUTING.md shows: bundled and put into a page as it stands there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from recipes import EXAMPLES, ROOT, module

from convgrad.widgets import base, save_html
from tools.node import find_node

pytestmark = pytest.mark.browser

PYTHON = "src/convgrad/widgets/bias_sum.py"
SCRIPT = "src/convgrad/widgets/js/bias_sum.js"


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the bundles, made from the sources with the new one among them."""
    sources = tmp_path / "js"
    shutil.copytree((ROOT / SCRIPT).parent, sources)
    (sources / "bias_sum.js").write_text(EXAMPLES[SCRIPT], "utf-8")
    esbuild = ROOT / "node_modules" / "esbuild" / "bin" / "esbuild"
    words = ["bias_sum.js", "--bundle", "--minify", "--format=esm", f"--outdir={tmp_path}"]
    starts = [esbuild] if esbuild.read_bytes()[:4] == b"\x7fELF" else [find_node(), esbuild]
    subprocess.run([*starts, *words, "--log-level=warning"], cwd=sources, check=True)
    monkeypatch.setattr(base, "STATIC", tmp_path)
    return tmp_path


def test_it_lives_in_a_page(browser: Browser, bundled: Path, monkeypatch: pytest.MonkeyPatch):
    made = module(PYTHON, monkeypatch).BiasSum
    g = np.arange(24.0).reshape(2, 3, 2, 2)  # n o p q
    file = save_html(made(g, kernel=1), bundled / "page.html")
    sums = g.sum(axis=(0, 2, 3))
    context = browser.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    line = page.locator("output")
    expect(line).to_have_text(f"grad_bias[1] = {sums[1]:g}")
    page.get_by_label("kernel").fill("7")  # there are three
    page.get_by_label("kernel").press("Tab")
    expect(line).to_have_text(f"grad_bias[2] = {sums[2]:g}")
    expect(page.get_by_label("kernel")).to_have_value("2")
    context.close()

    still = browser.new_context(java_script_enabled=False)
    page = still.new_page()
    page.goto(file.as_uri())
    expect(page.get_by_role("listitem")).to_have_text(
        [f"grad_bias[{o}] = {each:g}" for o, each in enumerate(sums)]
    )
    still.close()
