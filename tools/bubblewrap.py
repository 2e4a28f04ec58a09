"""Makes sure that there is a bubblewrap, which `convgrad grade` shuts submissions in.

The tests of the classroom run in its sandbox where this machine allows one, and else ask that the
program says why not.  For root on Debian or Ubuntu it is installed; nobody else's machine is
changed.  `python -m tools.bubblewrap` says what there is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tools.chromium import is_root_with_apt

__all__ = ["ensure"]


def ensure() -> str:
    """One line about the sandbox that is there, or why there is none; never raises."""
    if sys.platform == "linux" and shutil.which("bwrap") is None and is_root_with_apt():
        print("No bubblewrap here: installing Debian's by apt-get.", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "--yes", "--no-install-recommends", "bubblewrap"]
        for command in (["apt-get", "update"], install):
            subprocess.run(command, env=quiet, stdin=subprocess.DEVNULL, check=False)
    from convgrad.classroom.sandbox import find_sandbox

    program, why_not = find_sandbox()
    return f"{program}, it makes sandboxes here" if program else f"none: {why_not}"


def main() -> int:
    print(f"bubblewrap: {ensure()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
