"""Exercises on a listing: a function of some lines, of which one is missing or wrong.

An answer that is a line of code is put into the listing, and the whole is run on random
convolutions like any other function.  A line is read first: it may use what the listing has and a
few functions of NumPy, and nothing by which it could reach beyond or run for ever.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .base import Verdict
from .functions import Function

__all__ = ["Line", "Listing", "NotALine", "same_line"]


class NotALine(ValueError):
    """What was given is no line for a listing; the message says why, to the reader."""


# Of NumPy, what a line of these listings may call.
_NUMPY_NAMES = """
    abs add arange array array_split broadcast_to ceil concatenate cumsum diagonal divmod dot einsum
    empty empty_like expand_dims eye flip floor full full_like matmul max maximum mean min minimum
    moveaxis multiply ndindex newaxis ones ones_like outer pad prod ravel repeat reshape roll split
    squeeze stack subtract sum swapaxes tensordot tile transpose vdot where zeros zeros_like
"""
_NUMPY = frozenset(_NUMPY_NAMES.split())
_BUILTINS: dict[str, Any] = {
    each.__name__: each
    for each in (abs, divmod, enumerate, int, len, max, min, range, slice, sum, tuple, zip)
}
_REFUSED: tuple[type[ast.AST], ...] = (
    ast.Await,
    ast.DictComp,
    ast.GeneratorExp,
    ast.JoinedStr,
    ast.Lambda,
    ast.ListComp,
    ast.NamedExpr,
    ast.Pow,
    ast.LShift,
    ast.SetComp,
    ast.Yield,
    ast.YieldFrom,
)
# what an array could be written or turned inside out by
_CLOSED_NAMES = "base ctypes data dump dumps getfield setflags tobytes tofile view"
_CLOSED = frozenset(_CLOSED_NAMES.split())
_LONGEST, _LARGEST = 200, 10_000


def require_line(text: str, names: frozenset[str]) -> None:
    """Raise :class:`NotALine` unless this is one harmless statement on these names."""
    if len(text) > _LONGEST or "\n" in text:
        raise NotALine("One line is asked for.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # `return` stands in functions alone
            inside = ast.parse(f"def f():\n    {text}").body[0]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise NotALine("Python cannot read this line. Is every bracket closed?") from None
    body = inside.body if isinstance(inside, ast.FunctionDef) else []
    if len(body) != 1 or not isinstance(
        body[0], ast.Assign | ast.AugAssign | ast.Expr | ast.Return
    ):
        raise NotALine("One line is asked for that computes something.")
    made = {
        node.id
        for node in ast.walk(body[0])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(body[0]):
        _require(node, names | made)


def _require(node: ast.AST, names: frozenset[str]) -> None:
    if isinstance(node, _REFUSED):
        raise NotALine("Say it without a power, a loop or a function within the line.")
    if isinstance(node, ast.Name) and node.id not in names:
        raise NotALine(f"The function knows no `{node.id[:40]}`.")
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > _LARGEST:
        raise NotALine("A number in the line is too large.")
    if isinstance(node, ast.Attribute):
        of_numpy = isinstance(node.value, ast.Name) and node.value.id == "np"
        closed = node.attr.startswith("_") or node.attr in _CLOSED
        if closed or (of_numpy and node.attr not in _NUMPY):
            raise NotALine(f"`{node.attr[:40]}` is not needed here: find a way without it.")


def same_line(one: str, other: str) -> bool:
    """Whether two lines are the same but for blanks and comments."""
    try:
        trees = [ast.dump(ast.parse(f"def f():\n    {line.strip()}")) for line in (one, other)]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return trees[0] == trees[1]


@dataclass(frozen=True)
class Listing:
    """The source of a function, one of its lines marked.

    Attributes
    ----------
    source : str
        Right, from ``def`` on.
    number : int
        The line that is asked about, counted from 1.
    knows : mapping
        The names that it uses besides its own.
    """

    source: str
    number: int
    knows: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, function: Callable[..., Any], line: str) -> Listing:
        """A function of the package, as it stands, and the line that begins like this."""
        return cls.written(
            textwrap.dedent(inspect.getsource(function)), line, vars(inspect.getmodule(function))
        )

    @classmethod
    def written(cls, source: str, line: str, knows: Mapping[str, Any]) -> Listing:
        """A listing made for an exercise."""
        lines = source.rstrip().split("\n")
        (number,) = (k for k, each in enumerate(lines, 1) if each.strip().startswith(line))
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        known = {name: knows[name] for name in names if name in knows}
        return cls("\n".join(lines), number, {**known, "np": np})

    @cached_property
    def lines(self) -> list[str]:
        return self.source.split("\n")

    @property
    def line(self) -> str:
        """The line that is asked about."""
        return self.lines[self.number - 1].strip()

    @property
    def name(self) -> str:
        found = re.search(r"^def (\w+)", self.source, re.MULTILINE)
        assert found
        return found[1]

    def holding(self, line: str) -> str:
        """The source with another line in its place."""
        lines = list(self.lines)
        old = lines[self.number - 1]
        indent = old[: len(old) - len(old.lstrip())]
        lines[self.number - 1] = indent + line.strip()
        return "\n".join(lines)

    def numbered(self, line: str) -> str:
        """With another line in its place and a number before each, as Markdown."""
        lines = self.holding(line).split("\n")
        width = len(str(len(lines)))
        rows = (f"{k:>{width}}  {text}".rstrip() for k, text in enumerate(lines, 1))
        return "```python\n" + "\n".join(rows) + "\n```"

    @cached_property
    def names(self) -> frozenset[str]:
        """What a line may use: what the function knows and what it makes."""
        own = {
            node.arg if isinstance(node, ast.arg) else node.id
            for node in ast.walk(ast.parse(self.source))
            if isinstance(node, ast.arg | ast.Name)
        }
        return frozenset(own) | set(self.knows) | set(_BUILTINS)

    def function(self, line: str) -> Callable[..., Any]:
        """The function with this line in it; raises :class:`NotALine`."""
        require_line(line.strip(), self.names)
        # annotations are not needed, and would have to be known
        source = "from __future__ import annotations\n" + self.holding(line)
        known: dict[str, Any] = {**self.knows, "__builtins__": _WITH_ERRORS}
        try:
            exec(compile(source, "<the listing>", "exec"), known)
        except SyntaxError:  # right by itself, but not in this place
            raise NotALine("The line does not fit into this place.") from None
        made: Callable[..., Any] = known[self.name]
        return made


def _only_future(name: str, *rest: Any) -> Any:
    if name != "__future__":
        raise ImportError("a line imports nothing")
    return __import__(name)


_WITH_ERRORS = {**_BUILTINS, "__import__": _only_future, "ValueError": ValueError, "list": list}


@dataclass(frozen=True)
class Line(Function):
    """The answer is the missing line of a listing, as text; or the whole function.

    Attributes
    ----------
    listing : Listing
        A function of the package; the line that is asked for is right there.
    explanation : str
        What is said to the right answer.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("product-line").check("grad[at] = weight[o, c, i, j]").passed
    False
    """

    kind: ClassVar[str] = "line"

    listing: Listing = field(kw_only=True, repr=False)
    explanation: str = field(kw_only=True, repr=False)

    def _judge(self, answer: Any) -> Verdict:
        if isinstance(answer, str):
            if answer.strip().strip(".…") == "":
                return self._open("Nothing is entered yet: replace the `...` by your line.")
            try:
                answer = self.listing.function(answer)
            except NotALine as complaint:
                return self._wrong(str(complaint))
        verdict = super()._judge(answer)
        return self._right(self.explanation) if verdict.passed else verdict

    def _needed(self) -> str:
        return (
            "One line of code is asked for, as text between quotes, or all of "
            f"`{self.listing.name}` as a function."
        )
