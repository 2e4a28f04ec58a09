"""Versions for what requirements.in names: `python -m tools.pins [--renew NAME …|all]`.

pip is asked what it would install, and nothing is installed: the exact versions go into
requirements.txt (what is named) and constraints.txt (what that brings along).  A version that is
pinned already stays unless it is to be renewed, so that one new name moves nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OLDEST = "3.11.0"  # every pinned version must be for this Python too
# PyTorch's CUDA builds name these exactly; its build for the CPU knows nothing of them.
NOT_OURS = re.compile(r"nvidia-|cuda-")
DIRECT_HEAD = """\
# Made of requirements.in by `make pins`: what the Makefile's words need, as tried together.
# What these packages bring along is pinned in constraints.txt.
-c constraints.txt
"""
BEHIND_HEAD = """\
# The exact versions of what requirements.txt brings along, so that a clone made next year builds
# the book that was tested.  A name that a machine does not need is not installed because of it.
# `make pins` writes this file.
"""


class PinsError(RuntimeError):
    """The versions could not be found: says why and what to do."""


class Line(NamedTuple):
    """One line of a file of requirements; a heading or an empty line has no name."""

    name: str
    bounds: str
    marker: str
    comment: str


def plain(name: str) -> str:
    """The one spelling of a name under which an index knows it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(text: str) -> list[Line]:
    """The lines of requirements.in, requirements.txt or constraints.txt."""
    lines = []
    for line in text.splitlines():
        words, _, comment = line.partition("#")
        found = re.fullmatch(r"([A-Za-z0-9][\w.-]*)\s*([^;]*?)\s*(?:;\s*(.*?))?\s*", words)
        name, bounds, marker = found.groups(default="") if found else ("", "", "")
        lines.append(Line(name, bounds, marker, comment.strip()))
    return lines


def pinned(*texts: str) -> dict[str, str]:
    """Every exact version in these files, by plain name."""
    lines = (line for text in texts for line in read(text) if line.name)
    return {plain(line.name): line.bounds.removeprefix("==") for line in lines}


def direct(wanted: str, versions: Mapping[str, str]) -> str:
    """The text of requirements.txt: the names of requirements.in, each with its one version."""
    lines: list[str] = []
    for line in read(wanted.partition("\n\n")[2]):
        if line.name:
            marker = f"; {line.marker}" if line.marker else ""
            lines.append(f"{line.name}=={versions[plain(line.name)]}{marker}")
        else:
            lines.append(f"# {line.comment}" if line.comment else "")
    return f"{DIRECT_HEAD}\n" + "\n".join(lines) + "\n"


def behind(wanted: str, versions: Mapping[str, str], before: str) -> str:
    """The text of constraints.txt: all the others; a comment of before stays with its name."""
    named = {plain(line.name) for line in read(wanted)}
    comments = {line.name: f"  # {line.comment}" for line in read(before) if line.comment}
    lines = [
        f"{name}=={version}{comments.get(name, '')}"
        for name, version in versions.items()
        if name not in named and not NOT_OURS.match(name)
    ]
    return BEHIND_HEAD + "\n".join(sorted(lines)) + "\n"


def resolve(wanted: Path, kept: Mapping[str, str]) -> dict[str, str]:
    """What pip would install for a file of requirements, with these versions held."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    command += ["--quiet", "--disable-pip-version-check", "--no-input", "--report", "-"]
    command += ["--python-version", OLDEST, "--only-binary", ":all:", "--requirement", str(wanted)]
    with tempfile.TemporaryDirectory() as folder:
        command += ["--target", folder]  # pip asks for it where the Python is not its own
        held = Path(folder, "held.txt")
        held.write_text("".join(f"{name}=={version}\n" for name, version in kept.items()))
        answer = subprocess.run(
            [*command, "--constraint", str(held)],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if answer.returncode:
        raise PinsError(
            "pip found no versions that go together (its message stands above): let more of them "
            'move, as in `make pins RENEW="numpy torch"` or RENEW=all, or mend a bound in '
            "requirements.in"
        )
    found = [each["metadata"] for each in json.loads(answer.stdout)["install"]]
    # the suffix says which build of one version a machine took (torch's +cpu)
    return {plain(each["name"]): each["version"].partition("+")[0] for each in found}


def renewed(old: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The versions that stay.  Raises :class:`PinsError` for a name that is not pinned."""
    going = {plain(name) for name in names}
    if going == {"all"}:
        return {}
    if unknown := going - old.keys():
        raise PinsError(
            f"nothing named {', '.join(sorted(unknown))} is pinned: the names are those of "
            "requirements.txt and constraints.txt"
        )
    return {name: version for name, version in old.items() if name not in going}


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pins", description=__doc__)
    parser.add_argument("--renew", nargs="*", default=[], metavar="NAME", help="or the word all")
    options = parser.parse_args(arguments)
    wanted, pins, others = (
        root / name for name in ("requirements.in", "requirements.txt", "constraints.txt")
    )
    before = others.read_text("utf-8")
    old = pinned(pins.read_text("utf-8"), before)
    try:
        # a version that another kind of machine needs and this one does not stays as it is
        versions = old | resolve(wanted, renewed(old, options.renew))
    except PinsError as error:
        print(f"pins: {error}", file=sys.stderr)
        return 1
    text = wanted.read_text("utf-8")
    pins.write_text(direct(text, versions), "utf-8")
    others.write_text(behind(text, versions, before), "utf-8")
    moved = {name: version for name, version in versions.items() if old.get(name) != version}
    for name, version in sorted(moved.items()):
        print(f"{name:<32} {old.get(name, 'new'):>12} → {version}")
    print(f"pins: {len(versions)} versions, {len(moved)} moved; now `make test` decides")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
