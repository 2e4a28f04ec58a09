"""Finds the function that is to be checked: ``module:function`` or ``folder/file.py:function``."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .words import Misuse

__all__ = ["Loaded", "load", "own_frames"]

OURS = str(Path(__file__).parents[1]) + os.sep


@dataclass(frozen=True)
class Loaded:
    """A function, and how to get at it from a fresh Python."""

    function: Callable[..., Any]
    call: str  # "mine.grad_weight"
    imports: str  # the lines that make that name mean something

    @property
    def name(self) -> str:
        return self.call.rpartition(".")[2]


def load(spec: str) -> Loaded:
    """The function that ``spec`` names.  Raises :class:`Misuse` with the reader's own traceback.

    The current folder can be imported from, as with ``python -m``.
    """
    place, colon, path = spec.rpartition(":")
    if not colon or not place or not path:
        raise Misuse(
            f"{spec!r} names no function: needed is module:function, such as mine:grad_weight, "
            "or file.py:function, or a file of arrays that ends in .npz"
        )
    _importable(os.getcwd())
    imports = ""
    name = place
    if place.endswith(".py"):
        file = Path(place)
        if not file.is_file():
            raise Misuse(f"there is no file {place} in {os.getcwd()}")
        name = file.stem
        folder = file.resolve().parent
        _importable(str(folder))
        if folder != Path.cwd():
            imports = f"import sys\nsys.path.insert(0, {str(folder)!r})\n"
    module = _import(name)
    if place.endswith(".py"):
        _require_this_file(module, Path(place))
    return Loaded(_attribute(module, path), f"{name}.{path}", f"{imports}import {name}")


def _importable(folder: str) -> None:
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not (name + ".").startswith(missing.name + "."):
            raise Misuse(
                f"{name} could not be imported, for it imports {missing.name}, which this Python "
                f"({sys.executable}) does not have; install it, or use the Python that has it:\n"
                f"{own_frames(missing)}"
            ) from None
        raise Misuse(
            f"there is no module {missing.name}: looked in {os.getcwd()} and where this Python "
            f"({sys.executable}) keeps its packages{_here(name)}"
        ) from None
    except (Exception, SystemExit) as trouble:
        raise Misuse(f"{name} could not be imported:\n{own_frames(trouble)}") from None


def _here(name: str) -> str:
    files = sorted(file.stem for file in Path.cwd().glob("*.py"))
    close = difflib.get_close_matches(name, files, n=3) or files[:8]
    return f"; there is {', '.join(close)}" if close else "; no Python file lies there"


def _require_this_file(module: ModuleType, file: Path) -> None:
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != file.resolve():
        raise Misuse(
            f"the name {module.__name__} belongs to another module ({found or 'built in'}), so "
            f"{file} cannot be imported under it; give the file another name"
        )


def _attribute(module: ModuleType, path: str) -> Callable[..., Any]:
    thing: Any = module
    for part in path.split("."):
        if not hasattr(thing, part):
            names = [n for n, v in vars(thing).items() if callable(v) and not n.startswith("_")]
            close = difflib.get_close_matches(part, names, n=3) or names[:8]
            has = f"it has {', '.join(close)}" if close else "it has no functions"
            raise Misuse(f"{getattr(thing, '__name__', thing)} has no {part}: {has}")
        thing = getattr(thing, part)
    if not callable(thing):
        raise Misuse(f"{module.__name__}:{path} is of type {type(thing).__name__}, not a function")
    return thing


def own_frames(trouble: BaseException) -> str:
    """The traceback as its author needs it: from their first line on, without ours."""
    frames = traceback.extract_tb(trouble.__traceback__)
    theirs = [f for f in frames if not f.filename.startswith((OURS, "<frozen importlib"))]
    theirs = [f for f in theirs if Path(f.filename).parent.name != "importlib"]
    last = max((k for k, f in enumerate(theirs) if "site-packages" not in f.filename), default=-1)
    shown = traceback.StackSummary.from_list(theirs[: last + 1] or theirs)
    told = traceback.format_exception_only(type(trouble), trouble)
    return "".join([*shown.format(), *told]).rstrip()
