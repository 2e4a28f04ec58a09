"""The first cell of every notebook: it brings what is missing and says what the chapter runs on."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

# A module that a chapter imports → the extra of the package that brings what it needs.
EXTRAS = {
    "torch": "torch",
    "convgrad.autograd": "torch",
    "convgrad.distributed": "torch",
    "convgrad.figures": "figures",
    "matplotlib": "figures",
    "convgrad.widgets": "widgets",
    "convgrad.kernels": "gpu",
    "triton": "gpu",
}

CELL = """\
# @title Bring what this chapter needs, where it is missing, and say what it runs on
import importlib
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

NEEDS = {needs}


def is_missing(name):
    try:
        version(name)
    except PackageNotFoundError:
        return True
    return False


missing = [NEEDS[name] for name in NEEDS if is_missing(name)]
if is_missing("convgrad"):
    # the package as it was when this notebook was made, if its file lies beside the notebook
    beside = sorted(Path().glob("convgrad-*.whl"))
    source = str(beside[-1]) if beside else {source!r}
    if not source:
        raise ModuleNotFoundError(
            "convgrad is not installed, and its file convgrad-….whl does not lie beside this "
            "notebook. It is in the archive of all notebooks, and `make dist` builds it."
        )
    missing.append(source)
if missing:
    print("Installing", *missing)
    if subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing]).returncode:
        raise RuntimeError("pip could not install what is missing: its message stands above.")
    importlib.invalidate_caches()

print("Python", sys.version.split()[0])
for name in ["convgrad", *NEEDS]:
    print(name, version(name))"""


def first_cell(code: Iterable[str], pyproject: Path, source: str) -> str:
    """The cell for a chapter with these cells; ``source`` is what pip finds the package by."""
    found = needs(extras(code), pyproject)
    lines = "".join(f'    "{name}": "{wanted}",\n' for name, wanted in found.items())
    return CELL.replace("{needs}", f"{{\n{lines}}}").replace("{source!r}", repr(source))


def extras(code: Iterable[str]) -> set[str]:
    """Which extras of the package the cells need, by what they import."""
    names = {name for cell in code for name in _imported(cell)}
    return {
        extra
        for name in names
        for module, extra in EXTRAS.items()
        if name == module or name.startswith(f"{module}.")
    }


def _imported(code: str) -> Iterable[str]:
    plain = TransformerManager().transform_cell(code)  # magics and !commands as Python
    for node in ast.walk(ast.parse(plain)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def needs(wanted: set[str], pyproject: Path) -> dict[str, str]:
    """The requirements of the package with these extras, by the name of what they ask for."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    found: dict[str, str] = {}

    def take(requirements: list[str]) -> None:
        for each in requirements:
            name = re.match(r"[\w.-]+", each)[0]
            inner = re.match(rf"{project['name']}\[(.*?)\]", each)
            if inner:
                for extra in inner[1].split(","):
                    take(optional[extra])
            else:
                found.setdefault(name, each)

    take(project["dependencies"])
    for extra in sorted(wanted):
        take(optional[extra])
    return found
