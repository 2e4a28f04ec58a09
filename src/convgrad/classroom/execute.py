"""Runs a submission's cells so that none of them can stop the grading: nbgrader's Execute, guarded.

* :class:`Guard` has :mod:`convgrad.classroom.watch` look before each test,
* :class:`Run` is nbgrader's own ``Execute`` with a time for each cell and for all of them; where a
  kernel dies or does not answer, the cells before keep their points and the others get none,
* :class:`Settle` leaves outputs that nbgrader's rule for points reads as they were meant.
"""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..extras import needs
from . import sources
from .sources import grader_data

with needs("classroom", "convgrad.classroom"):
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from nbformat.v4 import new_output
    from nbgrader.preprocessors import Execute, NbGraderPreprocessor
    from traitlets import Any as AnyTrait
    from traitlets import Float, Integer

__all__ = ["NOT_RUN", "Guard", "Run", "Settle"]

NOT_RUN = "NotRun"  # the name of the error in cells that were not reached
_SHOWN = ("text/plain", "image/png", "image/jpeg")  # what cannot run in a teacher's browser


class Guard:
    """What the watch in the kernel is told; ``source`` is the teacher's notebook."""

    def __init__(self, source: Any) -> None:
        self.changed: list[str] = []
        modules: set[str] = set()
        asked: set[str] = set()
        for cell in source.cells:
            if cell.cell_type == "code":
                modules |= sources.imported_modules(cell.source)
                if grader_data(cell).get("solution"):
                    asked |= sources.defined_names(cell.source)
        self._modules, self._spare = sorted(modules), frozenset(asked)
        self._locked: list[str] = []

    @property
    def start(self) -> str:
        return f"{_WATCH}.start({self._modules!r})"

    @property
    def look(self) -> str:
        rebind = "\n".join(filter(None, self._locked))
        return f"{_WATCH}.look({rebind!r}, {sorted(self._spare)!r})"

    def passed(self, cell: Any) -> None:
        """A cell was run: what it defines, if it is locked, holds from now on."""
        if cell.cell_type == "code" and (_is_test(cell) or grader_data(cell).get("locked")):
            self._locked.append(sources.definitions(cell.source, self._spare))

    def read(self, said: str) -> None:
        """What the watch has found.  Raises ValueError if this is none of its answers."""
        found = json.loads(ast.literal_eval(said))
        self.changed += [name for name in map(str, found) if name not in self.changed]


_WATCH = "__import__('convgrad.classroom.watch', fromlist=['look'])"


class Run(Execute):  # type: ignore[misc]
    """nbgrader's Execute, which goes on whatever a cell does."""

    cell_seconds = Integer(30)
    seconds = Float(300.0)
    most_output = Integer(200_000)
    grace = Integer(5)
    reason = AnyTrait(lambda: "")  # asked when a kernel is gone: why the limits ended it

    guard = AnyTrait()

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.stopped = ""
        self.notes: list[str] = []
        self.deadline = time.monotonic() + self.seconds
        self._bytes = 0

    def preprocess(self, notebook: Any, resources: Any = None, km: Any = None) -> tuple[Any, Any]:
        self.iopub_timeout = self.grace
        try:
            return super().preprocess(notebook, resources, km)
        except (DeadKernelError, RuntimeError) as trouble:
            raise RuntimeError(f"its kernel did not start ({trouble})") from trouble

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        if cell.cell_type != "code" or not cell.source.strip():
            return cell, resources
        left = self.deadline - time.monotonic()
        if left < 1 and not self.stopped:
            self._stop(f"its {self.seconds:.0f} s for all cells were used up")
        if self.stopped:
            self._mark(cell)
            return cell, resources
        self._bytes = 0
        self.timeout = max(1, min(self.cell_seconds, int(left)))
        try:
            if _is_test(cell):
                self._watch(self.guard.look)
            if not self.stopped:
                cell, resources = super().preprocess_cell(cell, resources, index)
                self.guard.passed(cell)
                return cell, resources
        except DeadKernelError:
            self._stop(self.reason() or f"the kernel died in {_name(cell)}")
        except CellTimeoutError:  # it was interrupted, and went on
            self._stop(f"{_name(cell)} did not end, nor let itself be interrupted")
        self._mark(cell)
        return cell, resources

    @contextmanager
    def setup_kernel(self, **keywords: Any) -> Iterator[None]:
        """A look before the first cell, and one after the last."""
        with super().setup_kernel(**keywords):
            self._watch(self.guard.start)
            yield
            if not self.stopped:
                try:
                    self._watch(self.guard.look)
                except (DeadKernelError, CellTimeoutError):  # every cell has had its turn
                    self.notes.append("the kernel died after the last cell")

    def _watch(self, expression: str) -> None:
        """Let the kernel evaluate the expression, beside the cells: no hook of a cell's sees it."""
        message = self.kc.execute("", store_history=False, user_expressions={"look": expression})
        reply = self.wait_for_reply(message)
        answer = (reply or {}).get("content", {}).get("user_expressions", {}).get("look", {})
        if expression == self.guard.start and answer.get("status") == "ok":
            return
        try:
            self.guard.read(answer["data"]["text/plain"])
        except (KeyError, TypeError, ValueError, SyntaxError):
            self._stop("it changed how cells are run, so that what follows cannot be trusted")

    def on_cell_executed(self, **keywords: Any) -> None:
        super().on_cell_executed(**keywords)
        cell = keywords["cell"]
        if any(output.get("ename") == "CellTimeoutError" for output in cell.outputs):
            self.notes.append(f"{_name(cell)} took longer than {self.timeout} s")

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("stream", "display_data", "execute_result", "update_display_data"):
            self._bytes += len(str(msg["content"]))
            if self._bytes > self.most_output:
                note = f"the output of {_name(cell)} was cut"
                if note not in self.notes:
                    self.notes.append(note)
                return None
        return super().process_message(msg, cell, cell_index)

    def _stop(self, why: str) -> None:
        self.stopped = why
        if self.km is not None and self.km.has_kernel:
            provisioner = self.km.provisioner
            process = getattr(provisioner, "process", None)
            if process is not None and process.poll() is None:
                process.kill()

    def _mark(self, cell: Any) -> None:
        if cell.cell_type == "code":
            text = f"This cell was not run to its end: {self.stopped}."
            error = new_output("error", ename=NOT_RUN, evalue=text, traceback=[text])
            cell.outputs = [*cell.get("outputs", []), error]


def _name(cell: Any) -> str:
    name = grader_data(cell).get("grade_id")
    return f"cell {name}" if name else "a cell of the learner's own"


class Settle(NbGraderPreprocessor):  # type: ignore[misc]
    """Makes the outputs say what nbgrader is to read."""

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        if cell.cell_type == "code":
            _settle(cell)
        return cell, resources


def _is_test(cell: Any) -> bool:
    meta = grader_data(cell)
    return bool(cell.cell_type == "code" and meta.get("grade") and not meta.get("solution"))


def _settle(cell: Any) -> None:
    """For nbgrader an error is no points, a number shown some of them, and stderr none at all.

    So an error comes first, whatever was shown before it; what a test shows counts only where its
    last line is an expression; and warnings, which say nothing of right or wrong, are no stderr.
    """
    is_test = _is_test(cell)
    errors: list[Any] = []
    others: list[Any] = []
    for output in cell.outputs:
        if "data" in output:
            output["data"] = {k: v for k, v in output["data"].items() if k in _SHOWN}
        if output.output_type == "stream" and output.name == "stderr":
            output.name = "stdout"
        if output.output_type == "error":
            errors.append(output)
        elif not (is_test and output.output_type == "execute_result"):
            others.append(output)
        elif _gives_points(cell, output):
            # the last one is the test's own; an answer that is called may show numbers before
            others = [each for each in others if each.output_type != "execute_result"]
            others.append(output)
    cell.outputs = [*errors, *others]


def _gives_points(cell: Any, output: Any) -> bool:
    """Whether a test is written to show a number of points, and shows one that there is."""
    try:
        body = ast.parse(cell.source).body
        shown = float(output["data"]["text/plain"])
    except (SyntaxError, KeyError, ValueError):
        return False
    is_shown = bool(body) and isinstance(body[-1], ast.Expr)
    return is_shown and 0 <= shown <= float(grader_data(cell)["points"])
