"""Many submissions at once: one grading process a worker, and a new one where it was lost.

The function that is mapped, :meth:`Worker.grade`, is the same on one machine and on many: Dask
calls it through :func:`grade_anywhere`.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["Worker", "grade_anywhere", "map_by_dask", "map_here"]

Task = dict[str, Any]
Result = dict[str, Any]

_TRIES = 2


class Worker:
    """Holds a grading process, starts it when it is first needed and again when it is gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def grade(self, task: Task) -> Result:
        """One submission's result.  A process that is killed meanwhile costs a second try."""
        for _ in range(_TRIES):
            line = self._ask(json.dumps(task))
            if line:
                result: Result = json.loads(line)
                return result
            if self._closed:
                break
        reason = "the process that graded it was lost twice"
        return {"status": "not graded", "reason": reason, "cells": [], "seconds": 0.0}

    def _ask(self, line: str) -> str:
        try:
            process = self._running()
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return process.stdout.readline()
        except OSError:  # it went while we wrote
            return ""

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            _end(self._process)
            self._process = None
        if self._process is None:
            package = str(Path(__file__).resolve().parents[2])
            paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
            quiet = {
                "PYTHONPATH": os.pathsep.join(paths),
                "PYTHONWARNINGS": "ignore",
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            }
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "convgrad.classroom.server"],
                env=os.environ | quiet,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        return self._process

    @property
    def pid(self) -> int | None:
        """The grading process."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """End the grading process, and with it what it runs."""
        self._closed = True
        if self._process is not None:
            _end(self._process)


def _end(process: subprocess.Popen[str]) -> None:
    import psutil

    try:
        below = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        below = []
    process.kill()
    for each in below:
        try:
            each.kill()
        except psutil.Error:
            continue
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue
    process.wait()


def map_here(tasks: Iterable[Task], workers: int) -> Iterator[tuple[Task, Result]]:
    """Every task with its result, in the order in which they are done."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Task, Result]] = queue.SimpleQueue()
    count = 0
    for task in tasks:
        waiting.put(task)
        count += 1
    crew = [Worker() for _ in range(max(1, min(workers, count)))]
    threads = [
        threading.Thread(target=_work, args=(worker.grade, waiting, done), daemon=True)
        for worker in crew
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            yield done.get()
    finally:  # also where the caller stops half-way
        while not waiting.empty():
            try:
                waiting.get_nowait()
            except queue.Empty:
                break
        for worker in crew:
            worker.close()


def _work(
    grade: Callable[[Task], Result],
    waiting: queue.SimpleQueue[Task],
    done: queue.SimpleQueue[tuple[Task, Result]],
) -> None:
    while True:
        try:
            task = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            result = grade(task)
        except Exception as trouble:  # no result may be lost, whatever happens
            reason = f"grading failed: {type(trouble).__name__}: {trouble}"
            result = {"status": "not graded", "reason": reason, "cells": [], "seconds": 0.0}
        done.put((task, result))


_of_this_thread = threading.local()


def grade_anywhere(task: Task) -> Result:
    """Grade on whatever machine this is called, with one grading process for each thread."""
    worker = getattr(_of_this_thread, "worker", None)
    if worker is None:
        worker = _of_this_thread.worker = Worker()
    return worker.grade(task)


def map_by_dask(tasks: Iterable[Task], address: str) -> Iterator[tuple[Task, Result]]:
    """The same on the workers of a Dask scheduler, which see the course's folder at its path."""
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "convgrad grade --dask needs Dask's scheduler, which is not installed: "
            "pip install distributed"
        ) from None
    with Client(address) as client:
        waiting = {
            client.submit(grade_anywhere, task, pure=False, retries=_TRIES): task for task in tasks
        }
        for future in as_completed(list(waiting)):
            try:
                result = future.result()
            except Exception as trouble:  # a worker that was lost again and again
                reason = f"Dask could not grade it: {type(trouble).__name__}: {trouble}"
                result = {"status": "not graded", "reason": reason, "cells": [], "seconds": 0.0}
            yield waiting[future], result
