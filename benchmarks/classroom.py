"""How long a class takes to grade, and that nothing is lost when a grading process is killed.

`python -m benchmarks.classroom` hands in 200 simulated submissions, grades them with two workers,
kills a grading process when a third is done, and prints the seconds a submission.  The submissions
are those of the tests: most of them answer, some rightly, some are broken or hostile.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

from convgrad.classroom import Graded, Limits, grade, sandbox
from tests import simulated_class as simulated

__all__ = ["Measured", "main", "measure"]

# of twenty that are handed in: what a class looks like, with a few that nobody wishes for
_CLASS = (
    *("right",) * 8,
    *("turned",) * 3,
    *("wrong-count",) * 2,
    *("ones", "untouched", "deleted-test", "one-cell", "truncated", "exits", "patched"),
)


class Measured:
    """One class that was graded."""

    def __init__(self, rows: list[Graded], seconds: float, killed: int) -> None:
        self.rows, self.seconds, self.killed = rows, seconds, killed

    @property
    def wrong(self) -> list[str]:
        """Students whose row does not say what it should."""
        kinds = {kind.name: kind for kind in simulated.KINDS}
        found = []
        for row in self.rows:
            kind = kinds[row.student.partition(" ")[2]]
            if (row.points, row.status) != (kind.points, kind.status):
                found.append(f"{row.student}: {row.points:g}, {row.status} {row.reason}")
        return found


def measure(count: int, workers: int, root: Path) -> Measured:
    """Grade a class of ``count`` in ``root``; one grading process is killed on the way."""
    course, released = simulated.course_of(root)
    kinds = {kind.name: kind for kind in simulated.KINDS}
    for number in range(count):
        name = _CLASS[number % len(_CLASS)]
        simulated.hand_in(kinds[name], released, course, f"{number:04d} {name}")
    killed: list[int] = []

    def progress(done: int, of: int, what: str) -> None:
        if done >= of / 3 and not killed:
            servers = [each for each in psutil.Process().children() if _is_server(each)]
            killed.append(servers[0].pid)
            os.kill(servers[0].pid, signal.SIGKILL)

    begun = time.perf_counter()
    unsafe = sandbox.find_sandbox()[0] is None
    rows = grade(
        course, workers=workers, unsafe=unsafe, progress=progress, limits=Limits(cell_seconds=20)
    )
    return Measured(rows, time.perf_counter() - begun, len(killed))


def _is_server(process: psutil.Process) -> bool:
    return "convgrad.classroom.server" in process.cmdline()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classroom", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="submissions (default 200)")
    parser.add_argument("--workers", type=int, default=2, help="at once (default 2)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="class-") as folder:
        measured = measure(options.count, options.workers, Path(folder) / "course")
    status = Counter(row.status for row in measured.rows)
    walls = "in the sandbox" if sandbox.find_sandbox()[0] else "without a sandbox"
    print(
        f"{options.count} submissions, {options.workers} workers, {walls}: "
        f"{measured.seconds:.0f} s, {measured.seconds / options.count:.2f} s a submission"
    )
    print(", ".join(f"{number} {name}" for name, number in status.most_common()))
    lost = options.count - len(measured.rows)
    print(f"{measured.killed} grading process killed on the way: {lost} submissions lost")
    for line in measured.wrong:
        print(f"not as it should be: {line}", file=sys.stderr)
    return 1 if lost or measured.wrong or not measured.killed else 0


if __name__ == "__main__":
    raise SystemExit(main())
