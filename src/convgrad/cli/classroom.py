"""``convgrad release | grade | feedback | report``: a course with nbgrader, from the shell."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

from ..classroom import (
    CourseError,
    Graded,
    Leak,
    Limits,
    NoSandbox,
    SourceError,
    feedback,
    grade,
    release,
    report,
)
from ..classroom.grading import unused
from .words import RIGHT, WRONG, Misuse, Voice, plural

__all__ = ["add_to"]

_DEFAULTS = Limits()
_RELEASE = """\
Makes the students' notebooks from their sources: MyST notebooks NAME.md whose code cells carry
nbgrader's metadata. What stands between ### BEGIN SOLUTION and ### END SOLUTION is taken out,
HIDDEN TESTS and MARK SCHEME likewise, and each notebook is searched for anything of it.
"""
_GRADE = """\
Grades what lies in COURSE/submitted/STUDENT/NAME/NAME.ipynb against COURSE/source/NAME.md. Each
submission runs by itself in a sandbox without network; whatever one of them does, it gets a row in
COURSE/grades.csv, with the reason where it could not be graded as usual. A run that was interrupted
goes on where it was; what has not changed is not graded again.
"""
_GRADE_MORE = """\
examples:
  convgrad grade course --workers 2
  convgrad grade course --assignment part1 --again
  convgrad grade course --dask tcp://10.0.0.1:8786   on the machines of a Dask cluster

exit status: 0 all graded as usual, 1 some were not (see grades.csv), 2 the command could not be
carried out
"""
_FEEDBACK = """\
Writes a page for each graded submission, COURSE/feedback/STUDENT/NAME/NAME.html, with points and
the comments that were given by hand. Hidden tests are left out.
"""
_REPORT = """\
Writes COURSE/report.html for the teacher: points, which cells were missed, what the tests said and
to whom, and which notebooks are worth a look.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    hand_out = _command(commands, "release", "make the students' notebooks", _RELEASE, _release)
    hand_out.add_argument("sources", metavar="SOURCES", help="the folder of the sources")
    hand_out.add_argument("--to", required=True, metavar="FOLDER", help="where they go")

    grading = _command(commands, "grade", "grade a course", _GRADE, _grade, _GRADE_MORE)
    grading.add_argument("course", metavar="COURSE", help="the course's folder")
    grading.add_argument(
        "--assignment",
        action="append",
        metavar="NAME",
        help="only this one; may be repeated (default all)",
    )
    grading.add_argument(
        "--workers", type=int, default=1, metavar="N", help="submissions at once (default 1)"
    )
    grading.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, for many machines")
    grading.add_argument("--again", action="store_true", help="grade everything again")
    grading.add_argument(
        "--unsafe", action="store_true", help="without a sandbox: submissions run as you"
    )
    for name, unit, what in (
        ("cell-seconds", 1, "seconds that a cell may take"),
        ("seconds", 1, "seconds that a submission may take"),
        ("memory", 2**20, "MB that a submission may hold"),
        ("processes", 1, "processes that a submission may start"),
    ):
        default = getattr(_DEFAULTS, name.replace("-", "_")) // unit
        grading.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{what} (default {default})"
        )

    pages = _command(commands, "feedback", "write each student's page", _FEEDBACK, _feedback)
    pages.add_argument("course", metavar="COURSE", help="the course's folder")
    pages.add_argument("--hidden-tests", action="store_true", help="show hidden tests as well")

    whole = _command(commands, "report", "write the teacher's page", _REPORT, _report)
    whole.add_argument("course", metavar="COURSE", help="the course's folder")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    words: str,
    description: str,
    run: Callable[[argparse.Namespace], int],
    epilog: str | None = None,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=words,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.set_defaults(run=_explained(run))
    return parser


def _explained(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """What the package refuses, as a sentence of the command's."""

    def explained(options: argparse.Namespace) -> int:
        try:
            return run(options)
        except (CourseError, Leak, NoSandbox, SourceError, ModuleNotFoundError) as complaint:
            raise Misuse(str(complaint)) from None

    return explained


def _release(options: argparse.Namespace) -> int:
    voice = Voice(options.quiet)
    for path in release(options.sources, options.to):
        voice.say(str(path))
    return RIGHT


def _grade(options: argparse.Namespace) -> int:
    voice = Voice(options.quiet)
    if options.workers < 1:
        raise Misuse(f"--workers {options.workers}: a number from 1 is needed")
    try:
        limits = Limits(
            cell_seconds=options.cell_seconds,
            seconds=options.seconds,
            memory=options.memory * 2**20,
            processes=options.processes,
        )
    except ValueError as complaint:
        raise Misuse(str(complaint)) from None
    if options.unsafe:
        voice.insist("--unsafe: no sandbox; submissions run as you, with your files and network.")
    bar = _Bar(options.quiet)
    try:
        rows = grade(
            options.course,
            assignments=options.assignment,
            workers=options.workers,
            dask=options.dask,
            limits=limits,
            unsafe=options.unsafe,
            again=options.again,
            progress=bar,
        )
    finally:
        bar.close()
    return _summary(voice, options, rows)


def _summary(voice: Voice, options: argparse.Namespace, rows: list[Graded]) -> int:
    came = [row for row in rows if row.status != "nothing handed in"]
    odd = [row for row in came if row.status != "graded"]
    flagged = [row for row in came if row.flags]
    waiting = sum(row.to_grade_by_hand for row in came)
    table = os.path.join(options.course, "grades.csv")
    voice.say(f"{table}: {plural(len(came), 'submission')}, {len(odd)} not graded as usual")
    for row in odd:
        voice.insist(f"{row.student} {row.assignment}: {row.status}, {row.reason}")
    left = unused(options.course)
    for sentence in left:
        voice.insist(f"submitted/{sentence}.")
    if flagged:
        voice.say(f"Worth a look: {', '.join(sorted({row.student for row in flagged}))}.")
    if waiting:
        voice.say(f"{plural(waiting, 'answer')} to grade by hand, in nbgrader's formgrader.")
    return WRONG if odd or left else RIGHT


def _feedback(options: argparse.Namespace) -> int:
    voice, bar = Voice(options.quiet), _Bar(options.quiet)
    try:
        written = feedback(options.course, hidden_tests=options.hidden_tests, progress=bar)
    finally:
        bar.close()
    place = os.path.join(options.course, "feedback")
    voice.say(f"{place}: {plural(len(written), 'page')}")
    return RIGHT


def _report(options: argparse.Namespace) -> int:
    Voice(options.quiet).say(str(report(options.course)))
    return RIGHT


class _Bar:
    """How far it is: one line that is written over in a terminal, a line each elsewhere."""

    def __init__(self, quiet: bool, stream: Any = None) -> None:
        self._quiet, self._stream = quiet, stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._is_open = False

    def __call__(self, done: int, of: int, what: str) -> None:
        if self._quiet:
            return
        if not self._is_terminal:
            print(f"{done}/{of}  {what}", file=self._stream, flush=True)
            return
        full = round(20 * done / max(of, 1))
        line = f"[{'█' * full}{'·' * (20 - full)}] {done}/{of}  {what}"
        width = shutil.get_terminal_size((88, 24)).columns - 1
        print(f"\r{line[:width]:<{width}}", end="", file=self._stream, flush=True)
        self._is_open = True

    def close(self) -> None:
        if self._is_open:
            print(file=self._stream)
        self._is_open = False
