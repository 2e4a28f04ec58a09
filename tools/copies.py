"""Copies of the book for elsewhere: ``python -m tools.copies notebooks`` or ``… zip``.

``notebooks`` writes a folder that is a whole repository of notebooks: they, the package as a wheel,
and ``binder/``, what Binder installs.  ``zip`` packs the site; unpacked, it is read without a net.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from . import archive, book

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "_build" / "notebooks"
NAME = "backward-pass-of-conv2d"

READ_ME = """\
The Backward Pass of Conv2d
===========================

The whole book, for reading without a network.

    python3 -m http.server --directory {folder} --bind 127.0.0.1 8000

in the folder of this file, then open http://127.0.0.1:8000 in a browser.
On Windows the command is `py` instead of `python3`.

Opened as a file, {folder}/index.html shows the text, the formulas and the
pictures too.

Text: CC BY 4.0.  Code: MIT licence.
"""


def write_notebooks(site: Path, folder: Path = NOTEBOOKS, root: Path = ROOT) -> Path:
    """The notebooks of the built ``site`` as a folder to publish."""
    if not (site / "notebooks").is_dir():
        raise book.BookError(f"there are no notebooks in {site}: no page of the book has cells")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(site / "notebooks", folder, ignore=shutil.ignore_patterns("*.zip"))
    shutil.copytree(root / "binder", folder / "binder")
    for licence in ("LICENSE", "LICENSE-text"):
        shutil.copy(root / licence, folder)
    return folder


def pack_site(site: Path, result: Path) -> Path:
    """The built ``site`` and how to open it, as one archive, the same bytes every time."""
    return archive.pack(site, result, result.stem, {"READ ME.txt": READ_ME.format(folder="site")})


def result_of_zip() -> Path:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return ROOT / "dist" / f"{NAME}-{project['version']}.zip"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.copies", description=__doc__)
    parser.add_argument("what", choices=("notebooks", "zip"))
    options = parser.parse_args(arguments)
    make: dict[str, Callable[[Path], Path]] = {
        "notebooks": write_notebooks,
        "zip": lambda site: pack_site(site, result_of_zip()),
    }
    try:
        print(make[options.what](book.build()))
    except book.BookError as error:
        print(f"\ncopies: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
