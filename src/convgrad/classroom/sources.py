"""Sources of assignments: a MyST notebook each, ``NAME.md``, with nbgrader's metadata in its cells.

A notebook that is one already, ``NAME.ipynb``, will do as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..extras import needs
from .markers import Line, MarkerError, Region, regions, secrets

__all__ = ["Source", "SourceError", "read_source", "read_sources"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# a cell with this tag sets the learner's seed; grading puts the learner's own into it
SEED_TAG = "learner-seed"


class SourceError(ValueError):
    """A source that cannot be handed out: says where and how to mend it.

    Examples
    --------
    >>> read_sources(Path("no-such-folder"))  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.classroom.sources.SourceError: no-such-folder: there is no such folder;
    a source is a file NAME.md in one
    """


@dataclass(frozen=True)
class Source:
    """One assignment as its teacher wrote it."""

    name: str
    path: Path
    notebook: Any

    @cached_property
    def regions(self) -> list[Region]:
        """What is hidden from students."""
        return regions(_lines(self.path, self.notebook))

    @property
    def canaries(self) -> set[str]:
        from .markers import canaries

        return {word for region in self.regions for word in canaries(region.lines)}

    @cached_property
    def secrets(self) -> set[str]:
        """Lines that stand in regions and nowhere else."""
        hidden = [line for region in self.regions for line in region.lines]
        shown = [line.text for line in _lines(self.path, self.notebook)]
        for line in hidden:
            shown.remove(line)
        return secrets(self.regions, shown)

    @property
    def points(self) -> float:
        return sum(
            float(meta.get("points", 0))
            for meta in map(grader_data, self.notebook.cells)
            if meta.get("grade") or meta.get("task")
        )


def read_sources(folder: Path) -> list[Source]:
    """All sources of a folder: ``NAME.md``, or ``NAME/NAME.md``; ``.ipynb`` likewise.

    Raises :class:`SourceError`.
    """
    if not folder.is_dir():
        raise SourceError(f"{folder}: there is no such folder; a source is a file NAME.md in one")
    found: dict[str, Path] = {}
    for suffix in (".ipynb", ".md"):  # the Markdown is what people edit: it wins
        for path in sorted([*folder.glob(f"*{suffix}"), *folder.glob(f"*/*{suffix}")]):
            in_own_folder = path.parent != folder
            if in_own_folder and path.stem != path.parent.name:
                continue
            if suffix == ".ipynb" or _is_notebook(path):
                found[path.stem] = path
    if not found:
        raise SourceError(
            f"{folder}: no source here; a source is a MyST notebook NAME.md whose code cells "
            "carry nbgrader's metadata"
        )
    return [read_source(path) for _, path in sorted(found.items())]


def _is_notebook(path: Path) -> bool:
    return "nbgrader" in path.read_text(encoding="utf-8", errors="replace")


def read_source(path: Path) -> Source:
    """One source.  Raises :class:`SourceError` with the line that is to be mended."""
    with needs("classroom", "handing out assignments"):
        import jupytext

    if not NAME.fullmatch(path.stem):
        raise SourceError(
            f"{path}: an assignment's name is made of letters, digits, - and _, for it is the "
            "name of folders; rename the file"
        )
    try:
        notebook = jupytext.read(path)
    except Exception as trouble:  # jupytext, nbformat and YAML raise what they like
        raise SourceError(f"{path} cannot be read as a notebook: {trouble}") from None
    notebook.metadata.pop("jupytext", None)
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{path.stem}-{number}"[-64:]  # the same file again on every release
    source = Source(path.stem, path, notebook)
    try:
        _check(source)
    except (MarkerError, SourceError) as complaint:
        raise SourceError(f"{path}, {complaint}") from None
    return source


def _check(source: Source) -> None:
    seen: set[str] = set()
    graded = 0
    for number, cell in enumerate(source.notebook.cells, 1):
        meta = grader_data(cell)
        if not meta:
            continue
        name = meta.get("grade_id")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise SourceError(
                f"cell {number}: its grade_id is {name!r}; letters, digits, - and _ are needed"
            )
        if name in seen:
            raise SourceError(f"cell {number}: the grade_id {name} was used before; take another")
        seen.add(name)
        if meta.get("grade") and not meta.get("solution") and cell.cell_type == "code":
            _refuse_a_mere_check(cell.source, name)
        graded += bool(meta.get("grade") or meta.get("task"))
    if not graded:
        raise SourceError("no cell of it is graded: one needs `grade: true` and points")
    for region in source.regions:  # reads the markers, which may complain
        if region.kind == "HIDDEN TESTS" and not region.is_code:
            raise SourceError(f"{region.where}: hidden tests stand in a text cell; they are code")


def _refuse_a_mere_check(source: str, name: str) -> None:
    for node in _body(source):
        call = node.value if isinstance(node, ast.Expr) else None
        function = call.func if isinstance(call, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr == "check":
            raise SourceError(
                f"test {name}: a check says what is wrong and raises nothing, so that any "
                "answer would get the points; write .require(…) in its place"
            )


def grader_data(cell: Any) -> dict[str, Any]:
    """nbgrader's metadata of a cell, empty where there is none."""
    meta = cell.get("metadata", {}).get("nbgrader")
    return meta if isinstance(meta, dict) else {}


def _lines(path: Path, notebook: Any) -> Iterator[Line]:
    """The lines of all cells; where the file is Markdown, with their numbers in it."""
    if path.suffix != ".md":
        for number, cell in enumerate(notebook.cells, 1):
            for k, text in enumerate(cell.source.split("\n"), 1):
                yield Line(text, f"cell {number}, line {k}", cell.cell_type == "code")
        return
    in_code = False
    for k, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if text.startswith("```"):
            in_code = text.startswith("```{code-cell}")
            continue
        yield Line(text, f"line {k}", in_code)


def definitions(source: str, spare: frozenset[str] = frozenset()) -> str:
    """The imports, functions and classes of a cell's top level, but those named in ``spare``.

    >>> definitions("import numpy as np\\nx = 1\\ndef f(): return x")
    'import numpy as np\\ndef f():\\n    return x'
    """
    kept = [
        node
        for node in _body(source)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name not in spare)
    ]
    return "\n".join(map(ast.unparse, kept))


def defined_names(source: str) -> set[str]:
    """What the functions and classes of a cell's top level are called."""
    return {node.name for node in _body(source) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def imported_modules(source: str) -> set[str]:
    """The modules that a cell's top level imports."""
    found = set()
    for node in _body(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _body(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except SyntaxError:  # a magic, say
        return []
