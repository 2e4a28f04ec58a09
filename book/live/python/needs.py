"""What a cell needs that the page cannot give it.

Read from the code alone, statement by statement, and used twice: when the book is built, to mark
the cells beforehand, and in the page, on whatever the reader has made of them.

A statement is left out if it imports what is absent (PyTorch has no build for browsers), if it uses
a name that was bound by a statement left out, or if it asks for something by a name that stands in
the table, as ``exercises.get("function-forward")`` does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Left(NamedTuple):
    """Lines of a cell that cannot be run here, and what they need."""

    first: int
    last: int
    need: str


Absent = Mapping[str, str]  # a module, or "key:…" for what is asked for by name → what is missing


def left_out(code: str, absent: Absent, lost: dict[str, str]) -> list[Left]:
    """The statements of a cell that have to be left out.

    ``lost`` maps names to what they would need; it is brought up to what holds after the cell.
    Code that is no Python is left to Python to complain of.
    """
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return []
    found = []
    for statement in body:
        need = reason(statement, absent, lost)
        settle(statement, need, lost)
        if need:
            found.append(Left(statement.lineno, statement.end_lineno or statement.lineno, need))
    return found


def reason(statement: ast.stmt, absent: Absent, lost: Mapping[str, str]) -> str:
    """What the statement needs and the page has not; "" for nothing."""
    for module in imports(statement):
        parts = module.split(".")
        for end in range(len(parts), 0, -1):
            need = absent.get(".".join(parts[:end]))
            if need:
                return need
    for name in sorted(used(statement)):
        if name in lost:
            return lost[name]
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            key = node.args[0].value
            need = absent.get(f"key:{key}") if isinstance(key, str) else None
            if need:
                return need
    return ""


def settle(statement: ast.stmt, need: str, lost: dict[str, str]) -> None:
    """Write down which names the statement bound, or could not bind."""
    for name in bound(statement):
        if need:
            lost[name] = need
        else:
            lost.pop(name, None)


def imports(node: ast.AST) -> Iterator[str]:
    """Every module that a piece of code names in an import, also inside of functions."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            # the name may be a module too: from convgrad import kernels
            yield from (f"{each.module}.{alias.name}" for alias in each.names)


def used(node: ast.AST) -> set[str]:
    """The names that a piece of code reads, and does not only make for itself."""
    read = {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    # x += 1 and f.attribute = 1 read what they write to; the latter is a read already
    read |= {
        each.target.id
        for each in ast.walk(node)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
    }
    return read - _of_its_own(node)


def bound(statement: ast.stmt) -> set[str]:
    """The names that are there after a statement of a cell."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names: set[str] = set()
    for node in _outside_functions(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _of_its_own(node: ast.AST) -> set[str]:
    """Parameters, and what a function or a comprehension binds for itself."""
    own: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            a = each.args
            given = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
            own |= {argument.arg for argument in given if argument}
        elif isinstance(each, ast.comprehension):
            own |= {name.id for name in ast.walk(each.target) if isinstance(name, ast.Name)}
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in each.body:
                own |= {
                    name.id
                    for name in ast.walk(inner)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                }
                own |= {
                    (alias.asname or alias.name).partition(".")[0]
                    for deep in ast.walk(inner)
                    if isinstance(deep, ast.Import | ast.ImportFrom)
                    for alias in deep.names
                }
    return own


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all within it that runs in the cell's own scope."""
    yield node
    if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
        return
    for child in ast.iter_child_nodes(node):
        yield from _outside_functions(child)
