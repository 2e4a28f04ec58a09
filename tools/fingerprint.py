"""What a page was made from, as short hashes: the book's build asks here what must be done anew.

Contents count, not dates, so a fresh clone and a moved file tell the same story.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# the modules of tools that a build runs
BUILDERS = ("book", "fingerprint", "archive", "wheel")

# the widgets' sources reach a page only as bundles, which are beside them in static/
LOADER = ROOT / "src" / "convgrad" / "widgets" / "js"


@cache
def versions() -> str:
    """Python's version and the installed version of every pinned package, one a line."""
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text("utf-8"), re.M)
    lines = [f"python {platform.python_version()}"]
    for name in pinned:
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name} -")
    return "\n".join(lines)


def execution(root: Path = ROOT) -> str:
    """Everything that the output of a cell can depend on: package, measurements, versions."""
    bases = dict.fromkeys((ROOT, root))  # a book elsewhere imports ours too
    files = [path for base in bases for path in _files(base / "src", skip=LOADER)]
    files += [path for base in bases for path in _files(base / "benchmarks", pattern="*.json")]
    return _hash(files, root, versions())


def extensions(root: Path = ROOT) -> str:
    """What turns the source of a page into its document."""
    files = [
        *_files(root / "book" / "_ext"),
        *_files(LOADER, pattern="loader*"),
        ROOT / "tools" / "live.py",
        ROOT / "book" / "live" / "python" / "needs.py",
    ]
    return _hash(files, root, versions())


def look(root: Path = ROOT) -> str:
    """What every page is written with: styles, templates, the formula renderer, KaTeX."""
    files = [
        *_files(root / "book" / "_static"),
        *_files(root / "book" / "_templates"),
        *_files(ROOT / "book" / "live" / "static"),
        ROOT / "tools" / "runtime.py",
        ROOT / "tools" / "lite.py",
        ROOT / "tools" / "katex.mjs",
        ROOT / "node_modules" / "katex" / "package.json",
        ROOT / "src" / "convgrad" / "palette.json",
    ]
    return _hash(files, root)


def pages(root: Path = ROOT) -> str:
    """The sources of the pages and the book's two settings files."""
    inner = ("_ext", "_static", "_templates", "live")
    files = [path for path in _files(root / "book") if not set(path.parts) & set(inner)]
    return _hash([*files, root / "_config.yml", root / "_toc.yml"], root)


def everything(root: Path = ROOT) -> dict[str, str]:
    """All of them by name, and this builder's own code."""
    return {
        "execution": execution(root),
        "extensions": extensions(root),
        "look": look(root),
        "pages": pages(root),
        "builder": _hash([ROOT / "tools" / f"{name}.py" for name in BUILDERS], root),
    }


def _files(folder: Path, pattern: str = "*", skip: Path | None = None) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob(pattern))
        if path.is_file()
        and "__pycache__" not in path.parts
        and ".ipynb_checkpoints" not in path.parts
        and not (skip and path.is_relative_to(skip))
    ]


def _hash(files: Iterable[Path], root: Path, *words: str) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for path in files:
        name = path.relative_to(root if path.is_relative_to(root) else ROOT).as_posix()
        content = path.read_bytes() if path.is_file() else b"-"
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
