"""The assignments as the tests read them: solved, released, and handed in with other answers.

Grading here is nbgrader's rule, in this process and without a kernel: a test cell that raises
gives nothing, one that runs through gives its points.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jupytext

SOURCES = sorted((Path(__file__).resolve().parents[1] / "book" / "assignments").glob("*.md"))
#: What stands in a student's notebook where the solution was: ours, and nbgrader's own.
STUBS = ("...  # your code", "# YOUR CODE HERE\nraise NotImplementedError()")


class Graded(NamedTuple):
    """What a submission got: points by test cell, and what the failed ones said."""

    points: dict[str, float]
    said: dict[str, str]


def notebook(source: Path) -> Any:
    return jupytext.read(source)


def of(cell: Any) -> Mapping[str, Any]:
    """nbgrader's metadata of a cell."""
    return cell.metadata.get("nbgrader", {})


def points(nb: Any) -> dict[str, float]:
    """The points of each cell that is graded by running it."""
    return {
        of(cell)["grade_id"]: of(cell)["points"]
        for cell in nb.cells
        if cell.cell_type == "code" and of(cell).get("grade")
    }


def by_person(nb: Any) -> dict[str, float]:
    """The points of each question that a person marks."""
    return {of(cell)["grade_id"]: of(cell)["points"] for cell in nb.cells if of(cell).get("task")}


def without(text: str, what: str, instead: str = "") -> str:
    """The text without its regions ``### BEGIN what … ### END what``, as nbgrader cuts them."""

    def cut(region: re.Match[str]) -> str:
        return "".join(f"{region[1]}{line}\n" for line in instead.splitlines())

    return re.sub(
        rf"^([ \t]*)### BEGIN {what}\n.*?^[ \t]*### END {what}(?:\n|\Z)",
        cut,
        text,
        flags=re.S | re.M,
    )


def released(nb: Any, stub: str = STUBS[0]) -> Any:
    """The notebook that students get."""
    for cell in nb.cells:
        cell.source = without(cell.source, "SOLUTION", stub).rstrip("\n")
        cell.source = without(cell.source, "HIDDEN TESTS").rstrip("\n")
        cell.source = without(cell.source, "MARK SCHEME").rstrip("\n")
    return nb


def handed_in(nb: Any, answers: Mapping[str, str]) -> Any:
    """The notebook with these answers in place of the solutions of the same name."""
    left = dict(answers)
    for cell in nb.cells:
        if of(cell).get("solution"):
            cell.source = left.pop(of(cell)["grade_id"], cell.source)
    assert not left, f"no such cells: {set(left)}"
    return nb


def solution(nb: Any, name: str) -> str:
    """The text of a solution."""
    return next(cell.source for cell in nb.cells if of(cell).get("grade_id") == name)


def depending(nb: Any, changed: Collection[str]) -> set[str]:
    """The test cells that an answer may change: those that use its names, directly or not."""
    words = {
        of(cell)["grade_id"]: _words(cell.source) for cell in nb.cells if "grade_id" in of(cell)
    }
    defined = {
        of(cell)["grade_id"]: _defined(cell.source) for cell in nb.cells if of(cell).get("solution")
    }
    names: set[str] = set().union(*(defined[each] for each in changed))
    while True:
        more = set().union(*(defined[each] for each in defined if words[each] & names))
        if more <= names:
            return {name for name in points(nb) if words[name] & names}
        names |= more


def _words(source: str) -> set[str]:
    return set(re.findall(r"\w+", source))


def _defined(source: str) -> set[str]:
    """The functions and variables of a cell's top level."""
    return set(re.findall(r"^(?:def )?(\w+)(?:\(| = )", source, re.M))


def graded(nb: Any, only: Collection[str] | None = None) -> Graded:
    """Run the cells from top to bottom and count, as grading does; of the tests, ``only`` some."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    got: dict[str, float] = {}
    said: dict[str, str] = {}
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        name = of(cell).get("grade_id", "")
        if of(cell).get("grade") and only is not None and name not in only:
            continue
        errors = io.StringIO()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                exec(compile(cell.source, f"<{name}>", "exec"), scope)
            complaint = errors.getvalue()  # to nbgrader, words on stderr are a failure
        except Exception as trouble:
            complaint = f"{type(trouble).__name__}: {trouble}"
        if of(cell).get("grade"):
            got[name] = 0 if complaint else of(cell)["points"]
            if complaint:
                said[name] = complaint
    return Graded(got, said)
