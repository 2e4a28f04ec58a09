"""What a page needs to run its cells: their code, what stands in the way, and Python itself.

The Sphinx extension ``book/_ext/live.py`` calls this for the book; the tests call it for a folder
of their own.  In the site everything lies in one folder, ``_live``, beside the pages and not under
``_static``, whose scripts would be put on every page:

* the runtime (:mod:`tools.runtime`), in a folder named by its version;
* convgrad's own wheel, in a folder named by its hash, and a list of packages in which it stands, so
  that ``import convgrad`` works like any other import;
* the scripts of ``book/live/static``, and for each page a file with its cells;
* ``start.json``, which names all of them for the scripts.

The other names carry hashes, so that a browser never takes an old file for a new page.
"""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from . import runtime
from .wheel import build

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "convgrad"
SOURCES = ROOT / "book" / "live"
STATIC = SOURCES / "static"
FOLDER = "_live"

sys.path.append(str(SOURCES / "python"))
import needs  # noqa: E402 - shared with the page, so it does not lie in a package of this side

# Libraries that no browser has, in the reader's words.
LIBRARIES = {"torch": "PyTorch", "triton": "Triton", "subprocess": "other programs"}
# A cell that asks for what its code does not tell is tagged so.
TAGS = {"needs-64-bits": "memory beyond 4 GB"}
# Measurements that cells read, beside the package as they are in a checkout.
BESIDE = ("benchmarks/layers.json", "benchmarks/rungs.json")


@dataclass(frozen=True)
class Cell:
    """One code cell of a page, in the order of the notebook."""

    code: str
    tags: frozenset[str] = field(default=frozenset())

    @property
    def in_page(self) -> bool:
        """Whether the page has a place for it."""
        return "remove-cell" not in self.tags

    @property
    def shown(self) -> bool:
        """Whether the page shows its code."""
        return self.in_page and "remove-input" not in self.tags

    @property
    def folded(self) -> bool:
        """Whether its code is folded: in this book, a solution."""
        return "hide-cell" in self.tags


def cells(page: Path) -> list[Cell]:
    """The code cells of a page of the book."""
    from myst_nb.core.read import read_myst_markdown_notebook

    notebook = read_myst_markdown_notebook(page.read_text("utf-8"))
    return [
        Cell(each.source, frozenset(each.metadata.get("tags", ())))
        for each in notebook.cells
        if each.cell_type == "code"
    ]


def is_python(cell: Cell) -> bool:
    """Whether a cell is Python alone, and no word to the notebook (``%%writefile``)."""
    try:
        ast.parse(cell.code)
    except SyntaxError:
        return False
    return True


def described(page: Iterable[Cell], absent: Mapping[str, str]) -> list[dict[str, Any]]:
    """The cells as the page is told of them.

    Each has its ``code``; ``shown``, ``folded`` and ``place`` (has it one in the page) where they
    are so; ``needs``, what it needs that cannot be had.  Of cells whose code nobody sees only those
    are kept that bind a name for others.
    """
    page = list(page)
    serving = _serving(page)
    found, lost = [], dict[str, str]()
    for number, cell in enumerate(page):
        wants = [need for tag, need in TAGS.items() if tag in cell.tags]
        wants += [left.need for left in needs.left_out(cell.code, absent, lost)]
        entry: dict[str, Any] = {"code": cell.code.rstrip("\n") if number in serving else ""}
        said = {"place": cell.in_page, "shown": cell.shown, "folded": cell.folded}
        entry |= {name: True for name, value in said.items() if value}
        if wants:
            entry["needs"] = " and ".join(dict.fromkeys(wants))
        found.append(entry)
    return found


def _serving(page: list[Cell]) -> set[int]:
    """The cells with shown code, and those that bind a name for one of them or of these."""
    found, read = set(), set[str]()
    for number, cell in reversed(list(enumerate(page))):
        tree = ast.parse(cell.code)
        if cell.shown or any(read & needs.bound(statement) for statement in tree.body):
            found.add(number)
            read |= needs.used(tree)
    return found


# ---- what cannot be had ---------------------------------------------------------------------


@cache
def absent() -> dict[str, str]:
    """What a cell cannot import or ask for in the page, and what it would need.

    The libraries; every module of the package that imports one when it is imported itself; the
    exercises whose answers are functions of tensors.
    """
    imports = {name: set(_imports_at_once(name, path)) for name, path in modules()}
    found = dict(LIBRARIES)
    del found["subprocess"]  # can be imported, and then starts nothing
    while True:
        new = {
            name: found[other]
            for name, others in imports.items()
            if name not in found
            for other in sorted(others)
            if other in found
        }
        if not new:
            break
        found |= new
    found |= LIBRARIES
    return found | {f"key:{key}": LIBRARIES["torch"] for key in _exercises_of_tensors()}


def modules() -> Iterator[tuple[str, Path]]:
    """The modules of the package, by name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("convgrad", *path.relative_to(PACKAGE).with_suffix("").parts)
        yield ".".join(part for part in parts if part != "__init__"), path


def _imports_at_once(module: str, path: Path) -> Iterator[str]:
    """What a module imports when it is imported, and cannot do without."""
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    yield from (module.rsplit(".", n)[0] for n in range(1, module.count(".")))
    for node in _at_once(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            yield source if source.startswith("convgrad.") else source.partition(".")[0]
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _at_once(node: ast.AST) -> Iterator[ast.stmt]:
    """Statements that run at import; not those that are tried, and not those for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Try | ast.ClassDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from _at_once(child)


def _exercises_of_tensors() -> list[str]:
    from convgrad import exercises
    from convgrad.exercises.tensors import TensorFunction

    return [each.key for each in exercises.all_exercises() if isinstance(each, TensorFunction)]


# ---- the folder in the site -----------------------------------------------------------------


def switch_name() -> str:
    """The script of every page with cells; it asks for all else by the names in start.json."""
    return hashed("switch.js", (STATIC / "switch.js").read_bytes())


def cells_name(page: str) -> str:
    """The file with the cells of a page, such as ``book/part1/sliding_window``."""
    return f"{page.replace('/', '-')}.json"


def write(
    folder: Path, pages: Mapping[str, list[dict[str, Any]]], python: runtime.Runtime, tools: str
) -> None:
    """Fill ``folder`` with everything, and leave nothing else in it.

    ``pages`` maps a page to its described cells; ``tools`` is the module that the explorables of
    the site share.
    """
    folder.mkdir(parents=True, exist_ok=True)
    index = f"pyodide-{runtime.VERSION}"
    runtime.link(python, folder / index)
    wheel = build_wheel()
    place = wheel_place(wheel)
    lock = with_wheel(python.lock, wheel, f"../{place}")
    files: dict[str, bytes] = {cells_name(page): as_json(found) for page, found in pages.items()}
    files[place] = wheel.content
    files[lock_name := hashed("lock.json", as_json(lock))] = as_json(lock)
    named = {}
    for path in sorted(STATIC.iterdir()):
        named[path.name] = hashed(path.name, path.read_bytes())
        files[named[path.name]] = path.read_bytes()
    numpy = lock["packages"]["numpy"]["file_name"]
    sizes = {name: (python.folder / name).stat().st_size for name in python.files}
    packages = lock["packages"].values()
    start = {
        "index": f"{index}/",
        "lock": lock_name,
        "live": named["live.js"],
        "style": named["live.css"],
        "worker": named["worker.js"],
        "tools": tools,
        "sizes": {**sizes, wheel.name: len(wheel.content)},
        "first": ["pyodide.asm.wasm", "python_stdlib.zip", numpy, wheel.name],
        "modules": {module: each["name"] for each in packages for module in each["imports"]},
        "absent": absent(),
        "beside": {name: (ROOT / name).read_text("utf-8") for name in BESIDE},
    }
    files["start.json"] = as_json(start)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    kept = {index, *(name.partition("/")[0] for name in files)}
    for old in [path for path in folder.iterdir() if path.name not in kept]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def remove(folder: Path) -> None:
    """Take the folder out of a site that is built without live cells."""
    shutil.rmtree(folder, ignore_errors=True)


class Wheel(NamedTuple):
    name: str
    version: str
    content: bytes


@cache
def build_wheel() -> Wheel:
    """convgrad's own wheel, the same bytes from the same sources."""
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder) / "wheel")
        return Wheel(built.name, built.name.split("-")[1], built.read_bytes())


def wheel_place(wheel: Wheel) -> str:
    """Where in the folder the wheel lies: at an address of its own for each content."""
    return f"wheel-{_digest(wheel.content)[:8]}/{wheel.name}"


def with_wheel(lock: Mapping[str, Any], wheel: Wheel, file: str) -> dict[str, Any]:
    """The list of packages with the wheel in it, so that an import finds it like any other."""
    entry = {
        "name": "convgrad",
        "version": wheel.version,
        "file_name": file,
        "sha256": _digest(wheel.content),
        "imports": ["convgrad"],
        "depends": ["numpy"],
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
    }
    return {**lock, "packages": {**lock["packages"], "convgrad": entry}}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hashed(name: str, content: bytes) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"{stem}-{_digest(content)[:8]}.{suffix}"


def as_json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()
