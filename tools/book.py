"""Build the book:  python -m tools.book [--fresh]

The site is written to ``_build/html``.  Warnings are errors: a failing cell, a broken reference
or a formula that does not parse ends with exit status 1 and the message in view.  When nothing
that a page depends on has changed, it says so at once.  Cells run again exactly when their own
page, the package or a pinned version has changed (``book/_ext/fresh.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import fingerprint
from .node import find_node

try:
    import fcntl
except ImportError:  # Windows has no such lock; there one builds one book at a time
    fcntl = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parents[1]
BUNDLE = ROOT / "tools" / "bundle.mjs"

# What Sphinx and the kernel say at every build and what helps nobody who builds a book.
_CHATTER = re.compile(
    r"myst(-nb)? v\d|Using jupyter-cache|Kernel is running over TCP|loading translations"
    r"|making output directory|sphinx-multitoc-numbering|bibtex|targets for 0 po files"
    r"|writing output\.\.\.\s*$|Cached executed notebook|looking for now-outdated|\[etoc\]"
    r"|pickling environment|checking consistency|preparing documents|dumping|generating indices"
    r"|copying (assets|static|extra)|writing additional|loading pickled|will overwrite data"
    r"|^\s*$|^=+$|Running (Jupyter-Book|Sphinx)"
    r"|^(Source Folder|Config Path|Output Path)|^The HTML pages are"
    r"|^build (succeeded|finished)"
)
_PROBLEM = re.compile(r"\b(WARNING|ERROR|CRITICAL|SEVERE)\b|\b(Extension|Theme|Config)Error\b")
# A cell that fails takes its page along: what follows from it is no problem of its own.
_FAILED_CELL = re.compile(r"^(?P<page>.+?): WARNING: Executing notebook failed")
_RAISED = re.compile(r"^(?!nbclient)[\w.]+(Error|Exception|Warning|Interrupt|Exit)(:|$)")
_FOLLOWS = re.compile(r"traceback saved in|a widget cannot be shown|the output of a cell got lost")
_KERNEL_TALK = "Kernel is running over TCP without encryption"  # on this machine alone
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_BOX = "Finished generating HTML for book."  # jupyter-book's closing words; ours come instead


class BookError(RuntimeError):
    """The book was not built; the message says why and what to do."""


def build(root: Path = ROOT, *, fresh: bool = False, say: Callable[[str], None] = print) -> Path:
    """Build the book whose settings lie in ``root`` and return the folder of the site.

    ``fresh`` starts from nothing; ``say`` is given every line of progress.  Raises
    :class:`BookError` when a cell fails or anything gives a warning.
    """
    with _alone(root / "_build", say):
        return _build(root, fresh, say)


def _build(root: Path, fresh: bool, say: Callable[[str], None]) -> Path:
    started = time.monotonic()
    build_folder = root / "_build"
    site, record = build_folder / "html", build_folder / "book.json"
    wanted = fingerprint.everything(root)
    built = _read(record)
    if fresh:
        for part in (site, build_folder / ".doctrees", build_folder / "execution"):
            shutil.rmtree(part, ignore_errors=True)
    elif built == wanted and (site / "index.html").is_file():
        say(f"The book is up to date: {site / 'index.html'}")
        return site

    _check_tools(root)
    record.unlink(missing_ok=True)
    if built.get("pages") != wanted["pages"] and _lost_pages(root, site):
        shutil.rmtree(site)  # a page that is no longer in the book must not stay in the site
    say("Building the book (the first time takes a minute: every cell runs) …")
    lines, status = _run_sphinx(root, say)
    if status:
        # Sphinx remembers a page that gave a warning as read; the next build would be silent.
        shutil.rmtree(build_folder / ".doctrees", ignore_errors=True)
        raise BookError(_verdict(problems(lines)))
    (site / ".nojekyll").touch()  # GitHub Pages would leave out the folders that start with _
    record.write_text(json.dumps(wanted), "utf-8")
    pages = len(list((site / "book").rglob("*.html")))
    say(
        f"The book is built: {pages} pages in {time.monotonic() - started:.0f} s, "
        f"no warnings: {site / 'index.html'}"
    )
    return site


@contextmanager
def _alone(build_folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Wait for another build of the same book: two at once would mix their pages."""
    build_folder.mkdir(parents=True, exist_ok=True)
    with open(build_folder / ".lock", "w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                say("Another build of this book is running: waiting for it …")
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_sphinx(root: Path, say: Callable[[str], None]) -> tuple[list[str], int]:
    """Run jupyter-book, pass on what helps; every line that it said, and its exit status."""
    start = (
        "import sys; from jupyter_book.cli.main import main; sys.argv[0] = 'jupyter-book'; main()"
    )
    command = [sys.executable, "-c", start, "build", str(root), "-W", "-n", "--keep-going"]
    environment = os.environ | {
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        # small products; many threads would only wait for each other
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    lines: list[str] = []
    closing = runner = False
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            plain = _COLOR.sub("", line).rstrip().replace(f"{root}/", "")
            lines.append(plain)
            closing = closing or plain == _BOX
            # the frames of the machinery that runs a cell; the cell and its own follow them
            runner = bool(_FAILED_CELL.match(plain)) or (
                runner and not plain.startswith("nbclient.exceptions.")
            )
            if _is_problem(plain) or not (closing or runner or _CHATTER.search(plain)):
                say("  " + plain)
    return lines, process.returncode


def _is_problem(line: str) -> bool:
    return bool(_PROBLEM.search(line)) and _KERNEL_TALK not in line


def problems(lines: list[str]) -> list[str]:
    """What is to be mended, out of all that a build said; of a cell that failed, its exception."""
    found: list[str] = []
    any_cell = any(map(_FAILED_CELL.match, lines))
    for number, line in enumerate(lines):
        failed = _FAILED_CELL.match(line)
        if failed:
            raised = next(filter(_RAISED.match, lines[number + 1 :]), "see above")
            found.append(f"{failed['page']}: a cell failed: {raised}")
        elif _is_problem(line) and not (any_cell and _FOLLOWS.search(line)):
            found.append(line)
    return found


def _verdict(found: list[str]) -> str:
    if not found:
        return "the book was not built: the last lines above say why"
    shown = "\n".join(f"  {problem}" for problem in found[:20])
    more = f"\n  … and {len(found) - 20} more" if len(found) > 20 else ""
    count = "one problem" if len(found) == 1 else f"{len(found)} problems"
    return f"the book was not built, {count} to mend:\n{shown}{more}"


def _check_tools(root: Path) -> None:
    for needed in ("_config.yml", "_toc.yml"):
        if not (root / needed).is_file():
            raise BookError(f"{root / needed} is missing: it says what the book is made of")
    if not (ROOT / "node_modules" / "katex").is_dir():
        raise BookError("KaTeX is not installed: `make setup` installs everything the book needs")
    check = [str(find_node()), str(BUNDLE), "--check"]
    if subprocess.run(check, cwd=ROOT, capture_output=True, check=False).returncode:
        raise BookError(
            "the scripts in src/convgrad/widgets/static or book/live/static are not what their "
            "sources build, so the pages would have the old ones: `make bundle` builds them"
        )


def _lost_pages(root: Path, site: Path) -> list[Path]:
    """Pages in the site whose source is gone."""
    return [
        page
        for page in (site / "book").rglob("*.html")
        if not (root / page.relative_to(site)).with_suffix(".md").is_file()
    ]


def _read(record: Path) -> dict[str, str]:
    try:
        return json.loads(record.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="forget everything built before")
    options = parser.parse_args(arguments)
    try:
        build(fresh=options.fresh, say=lambda line: print(line, flush=True))
    except BookError as error:
        print(f"\nbook: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nbook: stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
