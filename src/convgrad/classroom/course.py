"""A course's folder, laid out as nbgrader wants it, and what learners put into it.

course/
  source/NAME.md                        what the teacher wrote, and NAME/NAME.ipynb made from it
  submitted/LEARNER/NAME/NAME.ipynb     what was handed in (or NAME.zip with the notebook in it)
  autograded/LEARNER/NAME/NAME.ipynb    after grading, read by nbgrader's formgrader
  feedback/LEARNER/NAME/NAME.html       for the learner
  gradebook.db  grades.csv  report.html
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from .sources import NAME

__all__ = ["Course", "CourseError", "Handed", "Refused"]

LEARNER = re.compile(r"[^\W_][\w .@+,'’-]{0,127}")
LARGEST = 20 * 2**20  # bytes of a notebook; a learner's outputs are thrown away anyhow


class CourseError(ValueError):
    """The folder is no course, or not one that can be graded: says what is missing.

    Examples
    --------
    >>> Course.at("no-such-course")
    Traceback (most recent call last):
        ...
    convgrad.classroom.course.CourseError: no-such-course: there is no such folder
    """


class Refused(ValueError):
    """A submission that is not opened: says why."""


@dataclass(frozen=True)
class Handed:
    """A learner and an assignment, and where the notebook should lie."""

    learner: str
    assignment: str
    folder: Path

    def read(self) -> tuple[bytes, list[str]]:
        """The notebook's bytes, and what is to be said about how it was found.

        Raises :class:`Refused`.
        """
        if not LEARNER.fullmatch(self.learner) or self.learner.endswith(" "):
            raise Refused(
                f"the folder's name {self.learner!r} is none for a learner: a name has letters, "
                "digits, spaces and the signs . @ + , ' -, and begins with a letter or digit"
            )
        _refuse_links(self.folder.parent)
        _refuse_links(self.folder)
        wanted = f"{self.assignment}.ipynb"
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        files = [path for path in files if ".ipynb_checkpoints" not in path.parts]
        if (self.folder / wanted).exists():
            more = [path.name for path in files if path.suffix in (".ipynb", ".zip")]
            more = [name for name in more if name != wanted]
            notes = [f"beside it lies {', '.join(more)}, which was not graded"] if more else []
            return _bytes(self.folder / wanted), notes
        archives = [path for path in files if path.suffix.lower() == ".zip"]
        for archive in archives:
            _refuse_links(archive)
            return _from_zip(archive, wanted)
        others = [path for path in files if path.suffix == ".ipynb"]
        if len(others) == 1:
            found = str(others[0].relative_to(self.folder))
            return _bytes(others[0]), [f"its file is called {found}, not {wanted}"]
        if others:
            names = ", ".join(str(path.relative_to(self.folder)) for path in others)
            raise Refused(f"there is no {wanted}, but several others: {names}")
        raise Refused(f"there is no {wanted} in what was handed in")


def _refuse_links(path: Path) -> None:
    if path.is_symlink():
        raise Refused(f"{path.name} is a link to somewhere else, which is not followed")


def _bytes(path: Path) -> bytes:
    _refuse_links(path)
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        number = os.open(path, flags)
    except OSError as trouble:
        raise Refused(f"{path.name} cannot be read ({trouble.strerror})") from None
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise Refused(f"{path.name} is not a plain file")
        return _not_too_large(file.read(LARGEST + 1), path.name)


def _not_too_large(content: bytes, name: str) -> bytes:
    if len(content) > LARGEST:
        raise Refused(f"{name} is larger than {LARGEST >> 20} MB")
    return content


def _from_zip(path: Path, wanted: str) -> tuple[bytes, list[str]]:
    """The notebook in an archive; nothing is unpacked, so no name in it can lead anywhere."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [each for each in archive.namelist() if each.endswith(".ipynb")]
            for name in archive.namelist():
                parts = PurePosixPath(name.replace("\\", "/"))
                if parts.is_absolute() or ".." in parts.parts or ":" in name:
                    raise Refused(f"{path.name} holds the name {name!r}, which leads out of it")
            right = [name for name in names if PurePosixPath(name).name == wanted] or names
            if len(right) != 1:
                raise Refused(f"{path.name} holds {len(right)} notebooks; one {wanted} is needed")
            with archive.open(right[0]) as file:
                content = _not_too_large(file.read(LARGEST + 1), right[0])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as trouble:
        raise Refused(f"{path.name} cannot be opened as an archive ({trouble})") from None
    return content, [f"it was handed in as {path.name}"]


@dataclass(frozen=True)
class Course:
    """The folder."""

    root: Path

    @classmethod
    def at(cls, folder: str | Path) -> Course:
        """The course there.  Raises :class:`CourseError` where there is none."""
        root = Path(folder).resolve()
        if not root.is_dir():
            raise CourseError(f"{folder}: there is no such folder")
        return cls(root)

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def submitted(self) -> Path:
        return self.root / "submitted"

    @property
    def gradebook(self) -> Path:
        return self.root / "gradebook.db"

    @property
    def state(self) -> Path:
        """What grading keeps to go on after an interruption."""
        return self.root / ".convgrad"

    def result(self, learner: str, assignment: str) -> Path:
        return self.state / "results" / assignment / f"{_file_name(learner)}.json"

    def autograded(self, learner: str, assignment: str) -> Path:
        return self.root / "autograded" / learner / assignment / f"{assignment}.ipynb"

    def feedback(self, learner: str, assignment: str) -> Path:
        return self.root / "feedback" / learner / assignment / f"{assignment}.html"

    def autograded_if_any(self, row: Any) -> Path | None:
        """A row's graded notebook, where there is one."""
        path = self.autograded(row.student, row.assignment)
        return path if path.is_file() else None

    def learners(self) -> list[str]:
        if not self.submitted.is_dir():
            raise CourseError(
                f"{self.root} has no folder submitted; what learners hand in lies in "
                "submitted/LEARNER/ASSIGNMENT/ASSIGNMENT.ipynb"
            )
        some = (path.name for path in self.submitted.iterdir() if not path.name.startswith("."))
        return sorted(name for name in some if (self.submitted / name).is_dir())

    def handed(self, assignments: list[str]) -> Iterator[Handed]:
        """Everything handed in, by assignment and learner."""
        learners = self.learners()
        for assignment in assignments:
            for learner in learners:
                folder = self.submitted / learner / assignment
                if folder.is_dir() or folder.is_symlink():
                    yield Handed(learner, assignment, folder)

    def unused(self, assignments: Iterable[str]) -> Iterator[str]:
        """What lies in ``submitted`` where nobody looks for it, and why: a sentence for each.

        So that work which was put one level off is not taken for none.
        """
        names = list(assignments)
        for path in sorted(self.submitted.iterdir()):
            if path.is_file() and not path.name.startswith("."):
                yield f"{path.name} lies beside the learners' folders, and was not graded"
        for learner in self.learners():
            for path in sorted((self.submitted / learner).iterdir()):
                where = f"{learner}/{path.name}"
                if path.name.startswith(".") or (path.is_dir() and path.name in names):
                    continue
                if path.is_file():
                    yield f"{where} lies in no assignment's folder, and was not graded"
                elif any(each.is_file() for each in path.rglob("*")):
                    yield (
                        f"{where} is no assignment's folder, and was not graded: "
                        f"they are called {', '.join(names)}"
                    )


def _file_name(learner: str) -> str:
    """A learner's name as a file's: whatever folders can be called is kept apart."""
    if NAME.fullmatch(learner):
        return learner
    return "x-" + learner.encode("utf-8", "surrogateescape").hex()[:200]
