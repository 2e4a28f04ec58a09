"""A page for each learner: their notebook with points and comments, made by nbgrader.

Hidden tests are left out of it unless the teacher wants them in: their text, what they print, and
what an answer has made them print.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..extras import needs
from .course import Course, CourseError
from .grading import Progress, read_rows
from .sources import Source, grader_data

__all__ = ["feedback"]

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"Cell In\[\d+\], line (\d+)")
_LEFT_OUT = "# Tests that are not shown here were run as well."
_EXPLAINS = "WrongAnswer"  # the exercises' own error: its words are made to be read


def feedback(
    course: str | Path,
    *,
    hidden_tests: bool = False,
    progress: Progress = lambda done, of, what: None,
) -> list[Path]:
    """Write a page for each graded submission, ``feedback/STUDENT/ASSIGNMENT/ASSIGNMENT.html``.

    Points and comments that were given by hand in nbgrader's formgrader are in it.

    Parameters
    ----------
    course : str or pathlib.Path
        The folder, graded before.
    hidden_tests : bool, default False
        Whether to show them, and what they said.
    progress : callable, optional
        Called with how many are done, of how many, and what the last one was.

    Returns
    -------
    list of pathlib.Path
        What was written.

    Raises
    ------
    CourseError
        For a folder in which nothing was graded.
    ModuleNotFoundError
        Without nbgrader and jupytext, with the command that installs them.

    Examples
    --------
    >>> feedback("no-such-course")
    Traceback (most recent call last):
        ...
    convgrad.classroom.course.CourseError: no-such-course: there is no such folder
    """
    place = Course.at(course)
    with needs("classroom", "convgrad feedback"):
        from .nbgrading import read_notebook
    rows = [row for row in read_rows(place.root) if place.autograded_if_any(row)]
    if not rows:
        raise CourseError(f"{course}: nothing is graded here yet; convgrad grade does it")
    written = []
    for number, row in enumerate(rows, 1):
        blank = place.state / "blanks" / row.assignment
        source = read_notebook((blank / "source.ipynb").read_bytes())
        released = read_notebook((blank / "released.ipynb").read_bytes())
        hide = None if hidden_tests else _Hide(row.assignment, source, released)
        _write(place, row.student, row.assignment, hide)
        written.append(place.feedback(row.student, row.assignment))
        progress(number, len(rows), f"{row.student} {row.assignment}")
    return written


def _write(course: Course, learner: str, assignment: str, hide: _Hide | None) -> None:
    from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
    from nbgrader.converters import GenerateFeedback
    from nbgrader.preprocessors import GetGrades

    from .nbgrading import directory, quietly, reasons_of
    from .offline import OfflineExporter

    place = directory(course.root, assignment, learner, course.gradebook)
    place.config.HTMLExporter.sanitize_html = True  # what learners write is no script of ours
    converter = GenerateFeedback(coursedir=place, config=place.config)
    converter.force = True
    converter.exporter_class = OfflineExporter
    steps = [GetGrades, CSSHTMLHeaderPreprocessor]
    converter.preprocessors = [hide, *steps] if hide else steps
    with reasons_of(converter), quietly():
        converter.start()


class _Hide:
    """A step before the page is made: takes hidden tests out of a graded notebook."""

    def __init__(self, name: str, source: Any, released: Any) -> None:
        self._secrets = Source(name, Path(f"{name}.ipynb"), source).secrets
        self._shown = {
            grader_data(cell)["grade_id"]: cell.source
            for cell in released.cells
            if grader_data(cell).get("grade_id")
        }

    def __call__(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        for cell in notebook.cells:
            name = grader_data(cell).get("grade_id")
            is_locked = grader_data(cell).get("locked") or grader_data(cell).get("grade")
            shown = self._shown.get(name)
            is_answer = bool(grader_data(cell).get("solution"))
            if shown is not None and is_locked and not is_answer and cell.source != shown:
                self._shorten(cell, shown)
            elif cell.cell_type == "code":
                cell.outputs = [self._without_secrets(output) for output in cell.outputs]
        return notebook, resources

    def _shorten(self, cell: Any, shown: str) -> None:
        """The test without its hidden part; of what it said, the error's kind and where."""
        visible = [line.strip() for line in shown.split("\n")]
        lines = cell.source.split("\n")
        if cell.cell_type != "code":  # a task, without its mark scheme
            cell.source = shown
            return
        cell.source = f"{shown}\n{_LEFT_OUT}"
        errors = [output for output in cell.outputs if output.output_type == "error"]
        for error in errors:
            found = _LINE.search(_ANSI.sub("", "\n".join(error.traceback)))
            place = int(found.group(1)) - 1 if found else -1
            in_the_open = 0 <= place < len(lines) and lines[place].strip() in visible
            words = f"{error.ename}: {error.evalue}"
            if not in_the_open and error.ename not in (_EXPLAINS, "NotRun"):
                words = f"{error.ename} in a test that is not shown."
            error.traceback, error.evalue = [words], words
        cell.outputs = errors

    def _without_secrets(self, output: Any) -> Any:
        text = _ANSI.sub("", str(output))
        if any(secret in text or repr(secret)[1:-1] in text for secret in self._secrets):
            from nbformat.v4 import new_output

            return new_output("stream", text="(left out: it holds what is not to be shown)\n")
        return output
