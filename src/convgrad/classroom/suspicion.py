"""What in a submission is worth a look: words that an answer to an exercise has no need of.

Nothing here takes points away.  A learner may have a good reason, and somebody who means to
deceive can write it so that no reader of words finds it.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from typing import Any

from .sources import grader_data

__all__ = ["suspicions"]

# what the package says about itself and about answers: no gradient comes out of these
_PLAIN = (
    "convgrad.ConvGeometry",
    "convgrad.GeometryError",
    "convgrad.ShapeError",
    "convgrad.example",
    "convgrad.examples",
    "convgrad.exercises",
    "convgrad.geometry",
    "convgrad.classroom",
    "convgrad.figures",
    "convgrad.widgets",
)
_COMPUTES = ("convgrad", "torch", "scipy", "jax", "tensorflow", "autograd", "cupy", "numba")
_REACHES = {
    "subprocess": "starts programs",
    "multiprocessing": "starts processes",
    "threading": "starts threads",
    "_thread": "starts threads",
    "signal": "catches signals",
    "socket": "opens connections",
    "urllib": "opens connections",
    "requests": "opens connections",
    "http": "opens connections",
    "ctypes": "reaches into memory",
    "gc": "reaches into memory",
    "inspect": "reads other code",
    "dis": "reads other code",
    "linecache": "reads other code",
    "sqlite3": "opens databases",
    "nbgrader": "reaches the grader",
    "builtins": "reaches Python's built-ins",
    "importlib": "imports by name",
    "unittest.mock": "replaces functions",
    "IPython": "reaches the notebook's shell",
    "shutil": "reaches files",
    "pathlib": "reaches files",
    "glob": "reaches files",
    "pickle": "loads objects",
    "atexit": "leaves code for later",
}
# modules that much else stands in: what is said is which of it was used
_BY_NAME = ("os", "sys")
_CALLS = {
    "eval": "runs text as code",
    "exec": "runs text as code",
    "compile": "runs text as code",
    "__import__": "imports by name",
    "open": "opens files",
    "setattr": "sets attributes by name",
    "globals": "reaches all names",
    "vars": "reaches all names",
    "get_ipython": "reaches the notebook's shell",
}
_DUNDER = re.compile(r"__(code|globals|subclasses|builtins|dict|class|bases|mro|closure)__")
_MAGIC = re.compile(r"^\s*(!|%%?\w)", re.M)


def suspicions(notebook: Any, source: Any) -> list[str]:
    """Sentences about the cells that the learner wrote, each once.

    ``source`` is the teacher's notebook: what its own solutions and given cells use is no
    suspicion, and its imports say what the aliases in the learner's cells stand for.
    """
    known = _Words()
    for cell in _code(source):
        known.read(cell.source)
    found: list[str] = []
    aliases = dict(known.aliases)
    for cell in _code(notebook):
        meta = grader_data(cell)
        if meta.get("grade") and not meta.get("solution"):
            continue  # a test, whose text is the teacher's
        words = _Words(aliases)
        words.read(cell.source)
        aliases |= words.aliases
        where = f"cell {meta['grade_id']}" if meta.get("grade_id") else "a cell of their own"
        new = [each for each in words.said() if each not in set(known.said())]
        found += [f"{where} {sentence}" for sentence in new]
    return list(dict.fromkeys(found))


def _code(notebook: Any) -> Iterable[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


class _Words:
    """What a cell names, with aliases written out: F.conv2d is torch.nn.functional.conv2d."""

    def __init__(self, aliases: dict[str, str] | None = None) -> None:
        self.aliases: dict[str, str] = dict(aliases or {})
        self._said: dict[str, None] = {}

    def said(self) -> list[str]:
        return list(self._said)

    def read(self, text: str) -> None:
        if _MAGIC.search(text):
            self._say("uses a shell command or a magic")
            text = re.sub(r"^(\s*)(!|%).*$", r"\1pass", text, flags=re.M)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a learner's "\d" is no concern of ours
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            self._import(node)
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
                self._name(node)
            if isinstance(node, ast.Attribute) and _DUNDER.fullmatch(node.attr):
                self._say(f"uses {node.attr}")
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
                self._assignment(node)
            if isinstance(node, ast.Call):
                self._call(node.func)
            if isinstance(node, ast.ExceptHandler):
                self._handler(node)

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name if alias.asname else alias.name.partition(".")[0]
                self.aliases[alias.asname or top] = top
                self._module(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                self.aliases[alias.asname or alias.name] = full
                self._module(node.module)
                if alias.name == "*":
                    self._used(node.module + ".*")

    def _module(self, name: str) -> None:
        for reach, sentence in _REACHES.items():
            if name == reach or name.startswith(reach + "."):
                self._say(sentence)

    def _dotted(self, node: ast.AST) -> str | None:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join([self.aliases[node.id], *reversed(parts)])

    def _name(self, node: ast.AST) -> None:
        full = self._dotted(node)
        if full:
            self._used(full)

    def _used(self, full: str) -> None:
        root = full.partition(".")[0]
        if root in _BY_NAME and full.count(".") == 1:
            self._say(f"uses {full}")
        if root not in _COMPUTES or full == root:
            return
        if root == "convgrad" and any(full == p or full.startswith(p + ".") for p in _PLAIN):
            return
        self._say(f"uses {full}, which the reference answer does not")

    def _call(self, function: ast.expr) -> None:
        if isinstance(function, ast.Name) and function.id not in self.aliases:
            sentence = _CALLS.get(function.id)
            if sentence:
                self._say(sentence)

    def _assignment(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete) -> None:
        some = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
        for target in some:
            full = self._dotted(target) if isinstance(target, ast.Attribute) else None
            if full:
                self._say(f"changes {full}")

    def _handler(self, node: ast.ExceptHandler) -> None:
        names = {
            each.id
            for each in ast.walk(node.type or ast.Name("BaseException"))
            if isinstance(each, ast.Name)
        }
        if names & {"BaseException", "KeyboardInterrupt", "SystemExit"}:
            self._say("catches interruptions")

    def _say(self, sentence: str) -> None:
        self._said.setdefault(sentence)
