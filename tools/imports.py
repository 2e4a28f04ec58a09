"""Who imports whom within the package, read from its sources, and the order that is kept.

A *part* is a module of the package, or a folder of them.  CONTRIBUTING.md lists the parts in
layers; a part knows only what stands before it there.  The tests hold the list to the sources, and
the book draws its map from both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "convgrad"


class Layer(NamedTuple):
    """Parts that stand together, in their order."""

    title: str
    parts: tuple[str, ...]


def files() -> Iterator[tuple[str, Path]]:
    """Every module of the package, with the part it belongs to."""
    for path in sorted(PACKAGE.rglob("*.py")):
        top = path.relative_to(PACKAGE).parts[0]
        yield top.removesuffix(".py"), path


def imported(source: str, depth: int) -> Iterator[str]:
    """The modules that ``source`` imports when it runs, as ``convgrad.part`` or ``library``.

    ``depth`` says how many folders below the package the file lies.
    """
    tree = ast.parse(source)
    for_types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                base = node.module or ""
            elif node.level <= depth:
                continue  # a neighbour in the same part
            else:
                base = ".".join(filter(None, ("convgrad", node.module)))
            if base == "convgrad":  # from . import loops
                yield from (f"convgrad.{alias.name}" for alias in node.names)
            else:
                yield base


def graph() -> dict[str, set[str]]:
    """Every part, and the parts that it imports."""
    found: dict[str, set[str]] = {}
    for part, path in files():
        depth = len(path.relative_to(PACKAGE).parts) - 1
        names = found.setdefault(part, set())
        for name in imported(path.read_text("utf-8"), depth):
            first, _, rest = name.partition(".")
            if first == "convgrad" and rest:
                names.add(rest.partition(".")[0])
    return {part: names & found.keys() - {part} for part, names in found.items()}


def layers(text: str | None = None) -> list[Layer]:
    """The numbered list of CONTRIBUTING.md: each line's title, and the parts that it names."""
    if text is None:
        text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    items = re.findall(r"^\d+\. \*\*([^*]+)\.\*\* ((?:.+\n)(?: {2,}.+\n)*)", text, re.M)
    return [Layer(title, tuple(re.findall(r"`(\w+)`", words))) for title, words in items]


def sentence(part: str) -> str:
    """What a part is, in the first sentence of its docstring."""
    path = PACKAGE / f"{part}.py"
    path = path if path.is_file() else PACKAGE / part / "__init__.py"
    words = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(words.partition("\n\n")[0].split())
