"""nbgrader's converters, set up for one folder: what the other modules share.

nbgrader reads and writes the working directory and a gradebook file, and logs where the caller's
program logs.  Here each converter gets a folder of its own and a log that is returned.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..extras import needs
from .sources import Source

with needs("classroom", "convgrad.classroom"):
    import nbformat
    from nbgrader.api import Gradebook
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme
    from traitlets.config import Config

__all__ = [
    "Blank",
    "blank",
    "configuration",
    "directory",
    "opened",
    "quietly",
    "read_notebook",
    "reasons_of",
    "scratch",
]


class Blank:
    """An assignment before anybody has answered it.

    Attributes
    ----------
    released : notebook
        What students get.
    marked : notebook
        The same with hidden tests and mark schemes: what answers are put into.
    gradebook : pathlib.Path
        A gradebook that knows this assignment and nobody else.
    """

    def __init__(self, released: Any, marked: Any, gradebook: Path) -> None:
        self.released, self.marked, self.gradebook = released, marked, gradebook


def configuration(gradebook: Path | None = None) -> Any:
    """nbgrader's settings of ours."""
    config = Config()
    config.NbGraderConfig.logfile = ""
    if gradebook is not None:
        config.CourseDirectory.db_url = f"sqlite:///{gradebook}"
    return config


def directory(root: Path, assignment: str, learner: str, gradebook: Path) -> Any:
    """nbgrader's idea of a course's folder."""
    config = configuration(gradebook)
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = assignment
    config.CourseDirectory.student_id = learner
    return CourseDirectory(config=config)


def blank(source: Source, folder: Path) -> Blank:
    """Let nbgrader make the students' notebook and the gradebook of ``source`` in ``folder``.

    Raises RuntimeError, with nbgrader's words, where it refuses.
    """
    gradebook = folder / f"{source.name}.db"
    gradebook.unlink(missing_ok=True)
    released = generate(source, folder, gradebook)
    marked = generate(source, folder, folder / "unused.db", spare=True)
    return Blank(released, marked, gradebook)


def generate(source: Source, folder: Path, gradebook: Path, spare: bool = False) -> Any:
    """Run nbgrader's GenerateAssignment; the notebook that it writes.

    ``spare`` keeps the hidden tests and mark schemes.
    """
    place = folder / "source" / source.name
    place.mkdir(parents=True, exist_ok=True)
    with quietly():
        nbformat.write(source.notebook, place / f"{source.name}.ipynb")
    course = directory(folder, source.name, "*", gradebook)
    converter = GenerateAssignment(coursedir=course, config=course.config)
    converter.force = True
    if spare:
        converter.no_database = True
        left_out = (ClearHiddenTests, ClearMarkScheme)
        kept = [each for each in converter.preprocessors if each not in left_out]
        converter.preprocessors = [each for each in kept if each.__name__ != "SaveCells"]
    with reasons_of(converter), quietly(), _own_programs():
        converter.start()
    written = folder / "release" / source.name / f"{source.name}.ipynb"
    notebook = read_notebook(written.read_bytes())
    shutil.rmtree(folder / "release")
    return notebook


@contextmanager
def _own_programs() -> Iterator[None]:
    """For a new gradebook nbgrader calls alembic's program, which came with it, by name alone."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextmanager
def reasons_of(converter: Any) -> Iterator[None]:
    """nbgrader says why in its log and raises something general: here, the log is what is raised.

    Raises RuntimeError.
    """
    kept = _Kept()
    converter.log = logging.Logger("convgrad.classroom", logging.WARNING)
    converter.log.addHandler(kept)
    try:
        yield
    except Exception as trouble:
        raise RuntimeError(kept.reason() or f"{type(trouble).__name__}: {trouble}") from trouble


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.lines += record.getMessage().strip().splitlines()[-1:]

    def reason(self) -> str:
        told = [line for line in self.lines if "There was an error processing" not in line]
        told = [line for line in told if not line.startswith("Please see")]
        return told[-1] if told else ""


def read_notebook(content: bytes) -> Any:
    """A notebook of any version, as version 4.  Raises ValueError with what is wrong."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None
    if not text.strip():
        raise ValueError("it is empty")
    with quietly():
        try:
            notebook = nbformat.reads(text, as_version=4)
            nbformat.validate(notebook)
        except Exception as trouble:  # json, nbformat and jsonschema each have their own
            said = str(trouble).strip().splitlines()
            raise ValueError(f"it is no notebook ({said[0] if said else trouble!r})") from None
    return notebook


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings: nbformat's of ids that it mends, SQLAlchemy's of how nbgrader uses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def opened(gradebook: Path) -> Iterator[Any]:
    """nbgrader's gradebook in this file."""
    with quietly(), Gradebook(f"sqlite:///{gradebook}") as book:
        yield book


def scratch(prefix: str = "cg-") -> Any:
    """A temporary folder with a short name: sockets' addresses have 107 letters at most."""
    return tempfile.TemporaryDirectory(prefix=prefix)
