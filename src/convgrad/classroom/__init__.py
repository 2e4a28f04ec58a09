"""A course: hand assignments out, grade what comes back, say what was wrong, see the whole class.

Sources are MyST notebooks with nbgrader's metadata; :func:`release` makes the students' notebooks,
:func:`grade` grades what they hand in, :func:`feedback` writes a page for each of them and
:func:`report` one for the teacher.  ``convgrad release | grade | feedback | report`` are the same
from the shell.  Needs the extra ``classroom``.
"""

from .course import CourseError
from .grading import Graded, grade
from .releasing import Leak, release
from .sandbox import Limits, NoSandbox
from .showing import report
from .sources import SourceError
from .telling import feedback

__all__ = [
    "CourseError",
    "Graded",
    "Leak",
    "Limits",
    "NoSandbox",
    "SourceError",
    "feedback",
    "grade",
    "release",
    "report",
]
