"""Runs inside the sandbox: gives itself limits, becomes nobody, and then is the kernel.

Started as a file, ``python -P cage.py LIMITS -f CONNECTION_FILE``, by the kernelspec that
:mod:`convgrad.classroom.sandbox` writes.  It imports nothing of the package, so that the limits
stand before anything of a submission, or for it, is read.
"""

from __future__ import annotations

import json
import os
import runpy
import sys


def main() -> None:
    limits, arguments = json.loads(sys.argv[1]), sys.argv[2:]
    _limit(limits)
    if limits["user"] is not None:
        _become(limits["user"], arguments)
    os.makedirs(os.environ["HOME"], exist_ok=True)
    sys.argv = ["ipykernel_launcher", *arguments]
    runpy.run_module("ipykernel_launcher", run_name="__main__")


def _limit(limits: dict[str, int | None]) -> None:
    import resource

    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_DATA: limits["memory"],  # what is private: libraries do not count
        resource.RLIMIT_FSIZE: limits["file_size"],
        resource.RLIMIT_NPROC: limits["processes"],
    }
    for what, limit in wanted.items():
        if limit is None:
            continue
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        try:
            resource.setrlimit(what, (limit, limit))
        except (OSError, ValueError):  # macOS has limits that it does not let one set
            continue


def _become(user: int, arguments: list[str]) -> None:
    """A user that owns nothing; the connection file must stay readable."""
    os.chown(arguments[arguments.index("-f") + 1], user, user)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


if __name__ == "__main__":
    main()
