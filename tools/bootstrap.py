"""The first step of every make word: find a Python that is new enough, and hand over to setup.py.

This file alone must be understood by old Pythons, which is why it is written like one.
"""

import os
import subprocess
import sys

OLDEST = (3, 11)
NEWER = ("python3.13", "python3.12", "python3.11", "python3.14")  # in the order we would like


def main():
    # type: () -> int
    here = os.path.dirname(os.path.abspath(__file__))
    setup = os.path.join(here, "setup.py")
    python = sys.executable if tuple(sys.version_info[:2]) >= OLDEST else newer_python()
    if python is None:
        sys.stderr.write(
            "setup: this Python is %d.%d, and the project needs %d.%d or newer. "
            "Install one, then say which: make PYTHON=/path/to/python%d.%d\n"
            % (tuple(sys.version_info[:2]) + OLDEST + OLDEST)
        )
        return 2
    return subprocess.call([python, setup] + sys.argv[1:])


def newer_python():
    # type: () -> str | None
    """The name of a Python on the PATH that is new enough and really starts, or None."""
    question = "import sys; sys.exit(sys.version_info[:2] < (%d, %d))" % OLDEST
    with open(os.devnull, "w") as nowhere:
        for name in NEWER:
            try:
                if subprocess.call([name, "-c", question], stdout=nowhere, stderr=nowhere) == 0:
                    sys.stdout.write(
                        "setup: Python %d.%d is too old, taking %s instead.\n"
                        % (sys.version_info[0], sys.version_info[1], name)
                    )
                    sys.stdout.flush()
                    return name
            except OSError:
                continue
    return None


if __name__ == "__main__":
    sys.exit(main())
