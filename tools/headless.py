"""Debian's Chromium without its windows and menus: the headless shell.

It is the same engine, and opens a page of the book in half the time.  Debian packs it by itself, to
stand beside a Chromium of the same version; here it is unpacked into .cache instead, with links to
the files that the two share, so that nothing of the machine is changed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGE = "chromium-headless-shell"
# What Debian's package `chromium` puts on the machine: the program, and the files of the engine.
PROGRAM = Path("/usr/bin/chromium")
LIBRARY = Path("/usr/lib/chromium")
# A folder per version: an upgrade of the machine's Chromium leaves the old shell unused.
CACHE = Path(__file__).resolve().parent.parent / ".cache" / PACKAGE


def unpacked() -> Path | None:
    """The shell that goes with the machine's Chromium, if it was unpacked already."""
    version = _version()
    program = CACHE / version / PACKAGE if version else None
    return program if program and program.is_file() else None


def unpack() -> bool:
    """Gets the shell of the machine's version.  False where there is none to be had."""
    version = _version()
    if version is None or shutil.which("apt-get") is None:
        return False
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        work = Path(name)
        words = ["apt-get", "--quiet", "--quiet", "download", f"{PACKAGE}={version}"]
        _run(words, cwd=work)
        for archive in work.glob(f"{PACKAGE}_*.deb"):
            _run(["dpkg-deb", "--extract", str(archive), str(work / "all")])
        shell = work / "all" / LIBRARY.relative_to("/")
        if not (shell / PACKAGE).is_file():
            return False
        for shared in LIBRARY.iterdir():
            if not (shell / shared.name).exists():
                (shell / shared.name).symlink_to(shared)
        shutil.rmtree(CACHE / version, ignore_errors=True)
        shell.rename(CACHE / version)
    return True


def _version() -> str | None:
    """The version of Debian's Chromium on this machine, or None where there is none."""
    if not PROGRAM.is_file() or not LIBRARY.is_dir():
        return None
    # Ubuntu's package of this name has no library: it sends people to a snap.
    return _run(["dpkg-query", "--show", "--showformat=${Version}", "chromium"]) or None


def _run(words: list[str], cwd: Path | None = None) -> str:
    """What a command prints; nothing where it fails, takes too long or does not exist."""
    try:
        done = subprocess.run(
            words, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
