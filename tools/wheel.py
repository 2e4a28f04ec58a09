"""The package as a wheel: the same sources give the same bytes.

``build(folder)`` builds it with hatchling, which gives every file of the archive one date; what has
been built already, from the same sources, is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src/convgrad", "benchmarks")


class WheelError(RuntimeError):
    """The package could not be built; the message is hatchling's."""


def build(folder: Path, root: Path = ROOT) -> Path:
    """The wheel of the project in ``root``, in a folder of its own under ``folder``."""
    place = folder / _state(root)
    found = sorted(place.glob("*.whl"))
    if found:
        return found[0]
    shutil.rmtree(folder, ignore_errors=True)  # older ones
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1580601600"}  # hatchling's own, set or not
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise WheelError(f"the package was not built:\n{done.stdout}{done.stderr}")
    (wheel,) = place.glob("*.whl")
    return wheel


def _state(root: Path) -> str:
    """Changes when a file changes that the wheel is made of."""
    digest = hashlib.sha256()
    for name in SOURCES:
        top = root / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                content = path.read_bytes()
                digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
