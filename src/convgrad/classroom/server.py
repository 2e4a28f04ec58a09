"""The grading process: keeps nbgrader loaded, and forks for each submission.

``python -m convgrad.classroom.server`` reads a task a line from its input and writes a result a
line to its output.  A fork is a process of its own, but has nothing left to import.  Whatever it
starts is counted and weighed while it runs, and ended with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from ..extras import needs
from . import one

with needs("classroom", "convgrad.classroom"):
    import psutil

__all__ = ["main"]

_GRACE = 20  # seconds beyond a submission's own, for starting, converting and stopping
_LOOK = 0.1  # seconds between looks at what a submission uses
# of Linux' prctl: what a fork leaves behind becomes ours, and a fork ends when we do
_PR_SET_CHILD_SUBREAPER, _PR_SET_PDEATHSIG = 36, 1


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints goes where complaints go
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to act on
    for line in sys.stdin:
        answers.write(json.dumps(_grade_apart(json.loads(line))) + "\n")
        answers.flush()


def _prctl(what: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def _grade_apart(task: dict[str, Any]) -> dict[str, Any]:
    """Fork, wait, and read what the fork has written."""
    with tempfile.TemporaryDirectory(prefix="cg-") as folder:
        answer, stopped = Path(folder) / "answer.json", Path(folder) / "stopped"
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            _be_the_child(task, answer, stopped)
        reason = _wait(child, task["limits"], stopped)
        _end_descendants()
        seconds = round(time.monotonic() - begun, 2)
        if not reason and answer.is_file():
            result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            return result | {"seconds": seconds}
    reason = reason or "the process that graded it ended"
    return {"status": "not graded", "reason": reason, "cells": [], "seconds": seconds}


def _be_the_child(task: dict[str, Any], answer: Path, stopped: Path) -> None:
    """Grade, write the answer, and leave without coming back into the server's loop."""
    status = 1
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        try:
            result = one.grade_one(task, stopped)
        except Exception as trouble:
            words = traceback.format_exception_only(trouble)[-1].strip()
            words = str(trouble) if isinstance(trouble, RuntimeError) else words
            result = {"status": "not graded", "reason": words, "cells": []}
            traceback.print_exc()
        fresh = answer.with_suffix(".new")
        fresh.write_text(json.dumps(result), encoding="utf-8")
        os.replace(fresh, answer)
        status = 0
    finally:
        os._exit(status)


def _wait(child: int, limits: dict[str, int], stopped: Path) -> str:
    """Wait for the child's end; why it had to be ended, or nothing."""
    deadline = time.monotonic() + limits["seconds"] + _GRACE
    nap = 0.01
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return f"the process that graded it was ended by signal {os.WTERMSIG(status)}"
            return ""
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"it was not done after {limits['seconds']} s, and was ended"
        time.sleep(nap)
        nap = min(nap * 1.5, _LOOK)
        if nap == _LOOK:
            _hold(child, limits, stopped)


def _hold(child: int, limits: dict[str, int], stopped: Path) -> None:
    """End the kernel of a child whose processes are too many, or hold too much memory."""
    kernels = _children(child)
    some = [each for kernel in kernels for each in (kernel, *_below(kernel))]
    if len(some) > limits["processes"]:
        reason = f"it started more than {limits['processes']} processes, and was ended"
    elif _memory(some, limits["memory"]) > limits["memory"]:
        reason = f"it held more than {limits['memory'] >> 20} MB of memory, and was ended"
    else:
        return
    stopped.write_text(reason, encoding="utf-8")
    for process in [each for kernel in kernels for each in (kernel, *_below(kernel))]:
        _kill(process)


def _memory(some: list[psutil.Process], most: int) -> int:
    """Bytes that some processes hold; pages that they share count once, where it matters."""
    plain = sum(_bytes(process, full=False) for process in some)
    return plain if plain <= most else sum(_bytes(process, full=True) for process in some)


def _bytes(process: psutil.Process, full: bool) -> int:
    try:
        if full and sys.platform == "linux":
            return int(process.memory_full_info().pss)
        return int(process.memory_info().rss)
    except psutil.Error:  # gone meanwhile, or not ours to ask
        return 0


def _children(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children())
    except psutil.Error:
        return []


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def _end_descendants() -> None:
    """Whatever the submission has left running; it is our child by now, or below one."""
    for _ in range(100):
        left = _below(psutil.Process())
        for process in left:
            _kill(process)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:  # gone meanwhile
        return


if __name__ == "__main__":
    main()
