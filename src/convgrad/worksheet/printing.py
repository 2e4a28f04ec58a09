"""The sheet as PDF, by a Chromium or Chrome that is on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["NoBrowser", "find_browser", "pdf"]

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "msedge",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
_SECONDS = 120


class NoBrowser(RuntimeError):
    """There is no browser that prints: says what to do instead."""


def find_browser() -> str:
    """The program of a Chromium, Chrome or Edge; the variable CHROMIUM comes first."""
    named = os.environ.get("CHROMIUM")
    for name in [named] if named else _NAMES:
        program = shutil.which(name)
        if program:
            return program
    if named:
        raise NoBrowser(
            f"CHROMIUM={named} is no program: needed is the path of a Chromium or Chrome"
        )
    raise NoBrowser(
        "there is no Chromium, Chrome or Edge on the PATH, nor in the variable CHROMIUM"
    )


def pdf(html: str, browser: str) -> bytes:
    """What the browser prints of a page, without a header or footer of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source, printed = Path(folder, "sheet.html"), Path(folder, "sheet.pdf")
        source.write_text(html, "utf-8")
        flags = [
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={Path(folder, 'profile')}",
            f"--print-to-pdf={printed}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            flags.append("--no-sandbox")  # as root Chromium does not start with one
        try:
            done = subprocess.run(
                [browser, *flags, source.as_uri()],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as trouble:
            raise NoBrowser(f"{browser} did not print: {trouble}") from trouble
        if not printed.is_file() or not printed.stat().st_size:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise NoBrowser(f"{browser} did not print: {said}")
        return printed.read_bytes()
