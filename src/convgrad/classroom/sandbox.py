"""Where a submission runs: a kernel in a bubblewrap sandbox.

Inside there is no network, no file but Python's own and those of the system, all read-only, and a
small ``/tmp``; memory, processor time, processes and file sizes have limits; other processes, the
course, the gradebook and the hidden tests of other cells cannot be seen.  The kernel talks to the
grader through sockets in a folder of its own.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

__all__ = ["Limits", "NoSandbox", "find_sandbox", "require_sandbox", "write_kernelspec"]

KERNEL = "convgrad-cage"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = (  # what programs look up in /etc without saying who lives here
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
)
_FIRST_USER, _USERS = 200_000, 50_000  # ids that no account has


class NoSandbox(RuntimeError):
    """Submissions would run as the user: says what is missing, and the word for doing so.

    Examples
    --------
    >>> raise NoSandbox("there is no bubblewrap here")
    Traceback (most recent call last):
        ...
    convgrad.classroom.sandbox.NoSandbox: there is no bubblewrap here
    """


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes
    ----------
    cell_seconds : int
        For one cell; then it is interrupted, and the next one runs.
    seconds : int
        For the whole submission; then it is stopped, and what was reached counts.
    memory : int
        Bytes, of all its processes together.
    processes : int
        Processes and threads.
    output : int
        Bytes that one cell may print or show; the rest is dropped.

    Examples
    --------
    >>> Limits(cell_seconds=10).seconds
    300
    """

    cell_seconds: int = 30
    seconds: int = 300
    memory: int = 4 * 2**30
    processes: int = 128
    output: int = 200_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} is {value!r}; a whole number from 1 is needed")


def require_sandbox(unsafe: bool) -> str | None:
    """The bubblewrap program, or None where ``unsafe`` says to do without.

    Raises :class:`NoSandbox`.
    """
    if unsafe:
        return None
    program, why = find_sandbox()
    if program is None:
        raise NoSandbox(
            f"{why}, so submissions would run as {_who()}, with every file and the network that "
            f"{_who()} has. Install it (on Debian and Ubuntu: apt-get install bubblewrap), grade "
            "in a container or a virtual machine that holds nothing else, or say --unsafe to run "
            "them all the same"
        )
    return program


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without an account
        return "you"


@cache
def find_sandbox() -> tuple[str | None, str]:
    """bubblewrap's program if a sandbox can be made here, else None and why not."""
    if sys.platform != "linux":
        return None, "bubblewrap, which shuts submissions in, is made for Linux alone"
    program = shutil.which("bwrap")
    if program is None:
        return None, "there is no bubblewrap here (the program bwrap), which shuts submissions in"
    words = [*_walls(program, Path("/tmp"), ()), "--", sys.executable, "-c", "print('inside')"]
    try:
        tried = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError) as trouble:
        return None, f"{program} does not start ({trouble})"
    if tried.stdout.strip() != "inside":
        said = (tried.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return None, f"{program} cannot make a sandbox on this machine ({said})"
    return program, ""


def a_user() -> int | None:
    """The id that a sandbox started by root takes: another for each grading process.

    Nobody else's limits on processes count against it, nor its against theirs.
    """
    return _FIRST_USER + os.getpid() % _USERS if _is_root() else None


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def write_kernelspec(
    folder: Path,
    run: Path,
    limits: Limits,
    sandbox: str | None,
    environment: dict[str, str],
    hide: tuple[Path, ...] = (),
) -> None:
    """A kernelspec below ``folder`` that starts a kernel with its connection file in ``run``."""
    user = a_user() if sandbox else None
    kernel_limits = {
        "cpu_seconds": limits.seconds,
        "memory": limits.memory,
        "file_size": 256 * 2**20,
        # of a user's own, hence in a sandbox alone; more than the server allows, so that it is the
        # server that ends it and says why: this one only holds it meanwhile
        "processes": limits.processes + 32 if sandbox else None,
        "user": user,
    }
    cage = str(Path(__file__).with_name("cage.py"))
    kernel = [sys.executable, "-P", cage, json.dumps(kernel_limits), "-f", "{connection_file}"]
    settings = _environment(environment, "/tmp/home" if sandbox else f"{run}/home")
    if sandbox:
        if user is not None:
            os.chown(run, user, user)
        pairs = [word for pair in settings.items() for word in ("--setenv", *pair)]
        kernel = [*_walls(sandbox, run, hide), *pairs, "--", *kernel]
    spec = {
        "argv": kernel,
        "display_name": "Python in a cage",
        "language": "python",
        "interrupt_mode": "message",  # a signal would reach the sandbox, not the kernel in it
        "env": {} if sandbox else settings,
    }
    place = folder / "kernels" / KERNEL
    place.mkdir(parents=True)
    (place / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def _environment(more: dict[str, str], home: str) -> dict[str, str]:
    paths = [str(folder) for folder in _packages()]
    return {
        "HOME": home,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "USER": "learner",
        "TMPDIR": "/tmp",
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": home,
        "IPYTHONDIR": f"{home}/ipython",
        "NBGRADER_EXECUTION": "autograde",
        **more,
    }


def _packages() -> list[Path]:
    """The folders that Python's packages come from, this one's among them.

    Not everything on sys.path: the folder where somebody called the command may be the course.
    """
    own = Path(__file__).resolve().parents[2]
    found = [own]
    for entry in map(Path, sys.path):
        if entry.name in ("site-packages", "dist-packages") and entry.is_dir():
            found.append(entry)
    return list(dict.fromkeys(found))


def _walls(program: str, run: Path, hide: tuple[Path, ...]) -> list[str]:
    words = [program, "--die-with-parent", "--new-session", "--clearenv"]
    words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    words += ["--unshare-cgroup-try"]
    if not _is_root():  # root needs no namespace of users, and becomes somebody else inside
        words += ["--unshare-user"]
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            words += ["--ro-bind", str(folder), str(folder)]
    for setting in _SETTINGS:
        words += ["--ro-bind-try", setting, setting]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for place in ("/dev/shm", "/tmp"):
        words += ["--perms", "1777", "--size", str(256 * 2**20), "--tmpfs", place]
    shown = [Path(sys.prefix), Path(sys.base_prefix), *_packages()]
    shown = [folder for folder in dict.fromkeys(shown) if folder != Path("/")]
    shown = [folder for folder in shown if not folder.is_relative_to("/usr")]
    for above in dict.fromkeys(p for each in (*shown, run) for p in reversed(each.parents)):
        if above not in (Path("/"), Path("/tmp")):  # unless told, bwrap lets only root pass
            words += ["--perms", "0755", "--dir", str(above)]
    for folder in shown:
        words += ["--ro-bind", str(folder), str(folder)]
    for folder in hide:  # a course that lies among them
        if any(folder.is_relative_to(other) for other in shown):
            words += ["--tmpfs", str(folder)]
    if run != Path("/tmp"):
        words += ["--bind", str(run), str(run)]
    return [*words, "--chdir", "/tmp"]
