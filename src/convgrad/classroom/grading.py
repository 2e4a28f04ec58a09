"""Grades a course: each submission on its own, and a row for each, whatever happens to it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..extras import needs
from .course import Course, CourseError, Handed, Refused
from .sandbox import Limits, require_sandbox
from .sources import Source, SourceError, read_sources

__all__ = ["Graded", "Progress", "grade", "read_rows", "unused"]

_FORM = 1  # of results: another number grades everything again


@dataclass(frozen=True)
class Graded:
    """One student's submission of one assignment, as a row of ``grades.csv``.

    Attributes
    ----------
    student, assignment : str
    points, of : float
        What was reached, by hand as well as by tests, and what could be.
    status : str
        "graded"; "graded in part", where the rest could not be run; "not graded"; or "nothing
        handed in".
    reason : str
        Why it was not graded as usual.
    flags : tuple of str
        What is worth a look: nothing of it takes points away.
    notes : tuple of str
        What was put right on the way.
    to_grade_by_hand : int
        Answers that no test can judge.
    cells : tuple of dict
        Name, points, and the error of each cell.
    seconds : float
        What grading took.

    Examples
    --------
    >>> Graded("ada", "part1", 3.0, 4.0, "graded").row["points"]
    3.0
    """

    student: str
    assignment: str
    points: float
    of: float
    status: str
    reason: str = ""
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    to_grade_by_hand: int = 0
    cells: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    seconds: float = 0.0

    @property
    def row(self) -> dict[str, Any]:
        """By the names of the columns of ``grades.csv``."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "points": self.points,
            "of": self.of,
            "to_grade_by_hand": self.to_grade_by_hand,
            "status": self.status,
            "reason": self.reason,
            "worth_a_look": "; ".join(self.flags),
            "notes": "; ".join(self.notes),
            "seconds": self.seconds,
        }


Progress = Callable[[int, int, str], None]


def grade(
    course: str | Path,
    *,
    assignments: list[str] | None = None,
    workers: int = 1,
    dask: str | None = None,
    limits: Limits | None = None,
    unsafe: bool = False,
    again: bool = False,
    progress: Progress = lambda done, of, what: None,
) -> list[Graded]:
    """Grade what a course has in ``submitted``; write its gradebook and ``grades.csv``.

    Each submission runs in a sandbox (bubblewrap), in a process and a copy of the gradebook of its
    own.  What was graded before and has not changed since is not graded again, so that a run that
    was interrupted goes on where it was.

    Parameters
    ----------
    course : str or pathlib.Path
        The folder, with ``source`` and ``submitted`` in it.
    assignments : list of str, optional
        Which ones; all, unless told.
    workers : int, default 1
        Submissions at once.  One for each core is a good number.
    dask : str, optional
        The address of a Dask scheduler whose workers, of one thread each, see the same folder;
        they take the place of ``workers``.
    limits : Limits, optional
        What a submission may use.
    unsafe : bool, default False
        Without a sandbox: submissions run as you.
    again : bool, default False
        Grade everything again.
    progress : callable, optional
        Called with how many are done, of how many, and what the last one was.

    Returns
    -------
    list of Graded
        One for each student and assignment, in the order of the rows.

    Raises
    ------
    NoSandbox
        Where there is no bubblewrap, unless ``unsafe``.
    CourseError
        For a folder that is no course.
    SourceError
        For a source that cannot be read.
    ModuleNotFoundError
        Without nbgrader and jupytext, with the command that installs them.

    Examples
    --------
    >>> grade("no-such-course", unsafe=True)
    Traceback (most recent call last):
        ...
    convgrad.classroom.course.CourseError: no-such-course: there is no such folder
    """
    sandbox = require_sandbox(unsafe)
    place = Course.at(course)
    with needs("classroom", "convgrad grade"):
        from .gradebook import add_result, write_csv
        from .workers import map_by_dask, map_here
    chosen = _chosen(place, assignments)
    handed = list(place.handed(list(chosen)))
    used = {each.assignment for each in handed}
    blanks = {name: _blank(place, chosen[name]) for name in sorted(used)}
    limits = limits or Limits()

    tasks, done = [], 0
    for each in handed:
        task = _task(place, each, blanks[each.assignment], limits, sandbox)
        if again or not _is_done(place, each, task["fingerprint"]):
            tasks.append(task)
    open_ones = [task for task in tasks if "refused" not in task]
    graded = map_by_dask(open_ones, dask) if dask else map_here(open_ones, workers)
    try:
        for task, result in _refused_first(tasks, graded):
            learner, assignment = task["learner"], task["assignment"]
            if "refused" not in task:
                add_result(place, learner, assignment, result["cells"])
            _save(place, task, result)
            done += 1
            progress(done, len(tasks), f"{learner} {assignment}: {result['status']}")
    finally:
        _close(graded)
        rows = read_rows(place.root)
        write_csv(place.root / "grades.csv", [each.row for each in rows])
    return rows


def _close(some: Iterator[Any]) -> None:
    close = getattr(some, "close", None)
    if close is not None:
        close()


def _chosen(course: Course, names: list[str] | None) -> dict[str, Source]:
    try:
        sources = {source.name: source for source in read_sources(course.source)}
    except SourceError as complaint:
        raise CourseError(str(complaint)) from None
    for name in names or ():
        if name not in sources:
            raise CourseError(
                f"there is no assignment {name} in {course.source}: there are {', '.join(sources)}"
            )
    return {name: source for name, source in sources.items() if names is None or name in names}


def _blank(course: Course, source: Source) -> Path:
    """The assignment's blank in the course's state: made anew where its source has changed."""
    import nbformat

    from .gradebook import add_assignment
    from .nbgrading import blank, quietly, scratch

    mark = hashlib.sha256(source.path.read_bytes() + bytes([_FORM])).hexdigest()
    place = course.state / "blanks" / source.name
    if course.gradebook.exists() and _reads(place / "mark") == mark:
        return place
    try:
        add_assignment(course, source)
    except RuntimeError as trouble:
        raise CourseError(
            f"{source.name}: the gradebook does not take this source ({trouble}). Cells cannot "
            f"come or go once submissions were graded; undo that, or move {course.gradebook.name} "
            f"and {course.state.name} out of the course to grade everything from the start"
        ) from None
    place.mkdir(parents=True, exist_ok=True)
    (place / "mark").unlink(missing_ok=True)
    with scratch() as folder:
        made = blank(source, Path(folder))
        (place / "blank.db").write_bytes(made.gradebook.read_bytes())
    with quietly():
        nbformat.write(made.released, place / "released.ipynb")
        nbformat.write(source.notebook, place / "source.ipynb")
        own = course.source / source.name / f"{source.name}.ipynb"
        if source.path != own:  # nbgrader's formgrader looks for it there
            own.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(source.notebook, own)
    (place / "mark").write_text(mark, encoding="utf-8")
    return place


def _task(
    course: Course, handed: Handed, blank: Path, limits: Limits, sandbox: str | None
) -> dict[str, Any]:
    """What a grading process is told; with ``refused`` where there is nothing to grade."""
    task: dict[str, Any] = {
        "learner": handed.learner,
        "assignment": handed.assignment,
        "seed": handed.learner,
        "blank": str(blank),
        "limits": asdict(limits),
        "sandbox": sandbox,
        "hide": [str(course.root), str(course.source.resolve())],
        "notes": [],
    }
    try:
        content, task["notes"] = handed.read()
    except Refused as why:
        task["refused"] = str(why)
        content = str(why).encode()
    else:
        kept = course.state / "received" / course.result(handed.learner, handed.assignment).stem
        kept.mkdir(parents=True, exist_ok=True)
        notebook = kept / f"{handed.assignment}.ipynb"
        notebook.write_bytes(content)
        task["notebook"] = str(notebook)
        task["keep"] = str(course.autograded(handed.learner, handed.assignment))
    mark = hashlib.sha256(content)
    mark.update(f"{_reads(blank / 'mark')} {asdict(limits)} {bool(sandbox)} {_FORM}".encode())
    task["fingerprint"] = mark.hexdigest()
    return task


def _refused_first(
    tasks: list[dict[str, Any]], graded: Iterator[tuple[dict[str, Any], dict[str, Any]]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for task in tasks:
        if "refused" in task:
            yield task, {"status": "not graded", "reason": task["refused"], "cells": []}
    yield from graded


def _is_done(course: Course, handed: Handed, fingerprint: str) -> bool:
    known = _result(course.result(handed.learner, handed.assignment))
    return known is not None and known["fingerprint"] == fingerprint


def _save(course: Course, task: dict[str, Any], result: dict[str, Any]) -> None:
    path = course.result(task["learner"], task["assignment"])
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {key: task[key] for key in ("learner", "assignment", "fingerprint")}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"notes": task["notes"], **result, **about}), encoding="utf-8")
    os.replace(fresh, path)


def _result(path: Path) -> dict[str, Any] | None:
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known if "fingerprint" in known else None


def _reads(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def unused(course: str | Path) -> list[str]:
    """What lies in a course's ``submitted`` and belongs to no submission: a sentence for each.

    Parameters
    ----------
    course : str or pathlib.Path
        The folder, with ``source`` and ``submitted`` in it.

    Returns
    -------
    list of str

    Raises
    ------
    CourseError
        For a folder that is no course.

    Examples
    --------
    >>> unused("no-such-course")
    Traceback (most recent call last):
        ...
    convgrad.classroom.course.CourseError: no-such-course: there is no such folder
    """
    place = Course.at(course)
    return list(place.unused(_chosen(place, None)))


def read_rows(course: str | Path) -> list[Graded]:
    """What is known of a course: a row for each learner and each assignment that anybody handed in.

    Points come from the gradebook, so that grades given by hand count.
    """
    from .gradebook import grades

    place = Course.at(course)
    results = place.state / "results"
    names = sorted(path.name for path in results.iterdir()) if results.is_dir() else []
    rows = []
    for assignment in names:
        for learner in place.learners():
            known = _result(place.result(learner, assignment))
            numbers = grades(place, assignment, learner)
            if known is None:
                handed = (place.submitted / learner / assignment).is_dir()
                status = "not graded yet" if handed else "nothing handed in"
                rows.append(Graded(learner, assignment, status=status, **numbers))
                continue
            rows.append(
                Graded(
                    learner,
                    assignment,
                    status=known["status"],
                    reason=known.get("reason", ""),
                    flags=tuple(known.get("flags", ())),
                    notes=tuple(known.get("notes", ())),
                    cells=tuple(known["cells"]),
                    seconds=known.get("seconds", 0.0),
                    **numbers,
                )
            )
    return rows
