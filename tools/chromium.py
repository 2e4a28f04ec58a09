"""Which Chromium the browser tests use; it is fetched only where the machine has none.

The machine's own comes first, then apt-get for root on Debian or Ubuntu, then Playwright's
download.  Debian's gets its headless shell (tools/headless.py), because that is twice as fast.
`python -m tools.chromium` makes sure that there is one and says which.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tools import headless

NAMES = (headless.PACKAGE, "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


class ChromiumMissing(RuntimeError):
    """No Chromium: says what was tried and how to get one."""


class Chromium(NamedTuple):
    program: Path
    version: str
    origin: str


def find_chromium() -> Path:
    """The Chromium program.  Raises :class:`ChromiumMissing`."""
    found = look()
    if found is None:
        raise ChromiumMissing(
            "no Chromium or Chrome on this machine: run `make browser`, or install one and put it "
            "on the PATH, or name it in the variable CHROMIUM"
        )
    return found.program


def look() -> Chromium | None:
    """The Chromium that is there, or None; installs nothing."""
    named = os.environ.get("CHROMIUM")
    if named:
        return _try(named, "named in CHROMIUM")
    if shell := headless.unpacked():
        started = _try(str(shell), "the machine's, without windows")
        if started:
            return started
    for name in (*NAMES, *MAC):
        program = shutil.which(name)
        found = program and _try(program, "the machine's")
        if found:
            return found
    downloaded = _playwrights_program()
    return _try(downloaded, "Playwright's own") if downloaded else None


def ensure() -> Chromium:
    """The Chromium that is there, else one installed now.  Raises :class:`ChromiumMissing`."""
    tried = []
    found = look()
    if found is None and os.environ.get("CHROMIUM"):
        raise ChromiumMissing(f"CHROMIUM={os.environ['CHROMIUM']} does not start")
    if found is None and is_root_with_apt():
        tried.append("apt-get install chromium")
        _say("No Chromium here: installing Debian's by apt-get.")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
        for command in (["apt-get", "update"], install):
            subprocess.run(command, env=quiet, stdin=subprocess.DEVNULL, check=False)
        found = look()
    is_debians = found is not None and found.program == headless.PROGRAM
    if is_debians and not os.environ.get("CHROMIUM"):
        _say("Unpacking the headless shell of this Chromium into .cache.")
        if headless.unpack():
            found = look()
    if found is None:
        tried.append("playwright install chromium")
        _say("No Chromium here: downloading Playwright's own.")
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
        found = look()
    if found is None:
        raise ChromiumMissing(
            f"no Chromium on this machine, and this did not bring one: {'; '.join(tried)}. "
            "Install Chromium or Chrome by hand and put it on the PATH, or name it in CHROMIUM; "
            "`make test-fast` needs none"
        )
    return found


def _try(program: str, origin: str) -> Chromium | None:
    """The program if it starts: Ubuntu's /usr/bin/chromium-browser may be a stub that does not."""
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    words = said.stdout.strip().splitlines()
    if said.returncode != 0 or not words:
        return None
    return Chromium(Path(program), words[-1].strip(), origin)


def _playwrights_program() -> str | None:
    """Where Playwright's own Chromium lies, if it was downloaded."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        program = playwright.chromium.executable_path
    return program if Path(program).is_file() else None


def is_root_with_apt() -> bool:
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return is_root and shutil.which("apt-get") is not None


def _say(sentence: str) -> None:
    print(sentence, flush=True)


def main() -> int:
    try:
        found = ensure()
    except ChromiumMissing as missing:
        print(f"chromium: {missing}", file=sys.stderr)
        return 2
    print(f"{found.version}, {found.origin}: {found.program}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
