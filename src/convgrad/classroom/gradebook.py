"""Writes what was graded apart into the course's gradebook, and the grades out of it.

The gradebook is nbgrader's, so that a teacher can grade the free answers in nbgrader's formgrader;
points that were given by hand stay.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..extras import needs
from .course import Course
from .nbgrading import generate, opened, scratch
from .sources import Source

with needs("classroom", "convgrad.classroom"):
    from nbgrader.api import MissingEntry

__all__ = ["COLUMNS", "add_assignment", "add_result", "defused", "grades", "write_csv"]

COLUMNS = (
    "student",
    "assignment",
    "points",
    "of",
    "to_grade_by_hand",
    "status",
    "reason",
    "worth_a_look",
    "notes",
    "seconds",
)


def add_assignment(course: Course, source: Source) -> None:
    """Make the assignment known to the course's gradebook, by nbgrader's own means.

    Raises RuntimeError with nbgrader's words where cells were added or taken away after
    submissions were graded.
    """
    with scratch() as folder:
        generate(source, Path(folder), course.gradebook)


def add_result(course: Course, learner: str, assignment: str, cells: list[dict[str, Any]]) -> None:
    """Write the points of one submission, and that a cell awaits a grade by hand."""
    points = {cell["name"]: cell for cell in cells}
    with opened(course.gradebook) as book:
        book.update_or_create_student(learner)
        submission = book.update_or_create_submission(assignment, learner)
        for part in submission.notebooks:
            for grade in part.grades:
                cell = points.get(grade.name)
                grade.auto_score = cell.get("points") if cell else 0.0
                if cell:
                    has_been = grade.manual_score is not None  # of another version of the answer
                    grade.needs_manual_grade = bool(cell.get("by_hand")) or has_been
                else:
                    grade.needs_manual_grade = False
            for comment in part.comments:
                comment.auto_comment = points.get(comment.name, {}).get("comment")
        book.db.commit()


def grades(course: Course, assignment: str, learner: str) -> dict[str, Any]:
    """Points, of how many, and how many cells await a grade by hand, from the gradebook."""
    with opened(course.gradebook) as book:
        try:
            submission = book.find_submission(assignment, learner)
        except MissingEntry:
            most = book.find_assignment(assignment).max_score
            return {"points": 0.0, "of": most, "to_grade_by_hand": 0}
        by_hand = sum(
            grade.needs_manual_grade for part in submission.notebooks for grade in part.grades
        )
        return {
            "points": submission.score,
            "of": submission.max_score,
            "to_grade_by_hand": int(by_hand),
        }


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """One row a student and assignment, safe to open in a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([defused(row.get(column, "")) for column in COLUMNS])
    fresh = path.with_suffix(".new")
    fresh.write_text(text.getvalue(), encoding="utf-8")
    os.replace(fresh, path)


def defused(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula, with an apostrophe before it.

    >>> defused("=1+1"), defused("ada"), defused(-1.5)
    ("'=1+1", 'ada', -1.5)
    """
    if isinstance(value, float):
        return int(value) if value == int(value) else value
    if not isinstance(value, str):
        return value
    value = " ".join(value.replace("\0", "").split())
    return "'" + value if value[:1] in ("=", "+", "-", "@") else value
