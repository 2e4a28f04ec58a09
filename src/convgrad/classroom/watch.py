"""Runs in the kernel, beside a submission: undoes what was changed in what the tests stand on.

A submission and its tests share one Python, so that an answer might replace ``numpy.testing``'s
functions, ``check``, ``all``, or the way IPython runs a cell.  :func:`start` notes how things are
before the first cell; :func:`look`, before each test, puts back whatever differs and says what that
was.  It stops what people try; somebody who knows this file can get around it, which is why
what it finds is shown to the teacher, and why grading is not proof.
"""

from __future__ import annotations

import builtins
import importlib
import json
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["look", "start"]

_ALWAYS = ("builtins", "numpy", "numpy.testing", "convgrad")
_DEPTH = 2  # of a library other than NumPy and this package: torch.nn, not all that lies below


class _State:
    """How things were, kept out of the submission's names."""

    def __init__(self, modules: Iterable[str]) -> None:
        self.roots = {name.partition(".")[0] for name in (*_ALWAYS, *modules)} - {"builtins"}
        self.modules: dict[str, tuple[types.ModuleType, dict[str, Any]]] = {}
        self.classes: dict[type, dict[str, Any]] = {}
        self.codes: dict[types.FunctionType, types.CodeType] = {}
        self.tables: list[tuple[str, dict[Any, Any], dict[Any, Any]]] = []
        self.take()
        self.shell = _Shell()

    def take(self) -> None:
        """Note the modules that were not there before."""
        for name, module in list(sys.modules.items()):
            is_new = name not in self.modules and isinstance(module, types.ModuleType)
            if is_new and (name == "builtins" or self._belongs(name)):
                self._take(name, module)

    def _belongs(self, name: str) -> bool:
        root, depth = name.partition(".")[0], name.count(".") + 1
        return root in self.roots and (root in ("numpy", "convgrad") or depth <= _DEPTH)

    def _take(self, name: str, module: types.ModuleType) -> None:
        ours = name.partition(".")[0] == "convgrad"
        kept = {}
        for key, value in list(vars(module).items()):
            if name == "builtins" and key in _SHELLS:
                continue
            if callable(value) or isinstance(value, types.ModuleType):
                kept[key] = value
            elif ours and type(value) is dict and not key.startswith("__"):
                self.tables.append((f"{name}.{key}", value, dict(value)))
            if isinstance(value, types.FunctionType):
                self.codes[value] = value.__code__
            if isinstance(value, type) and value.__module__.startswith("convgrad"):
                self.classes[value] = {k: v for k, v in vars(value).items() if callable(v)}
        self.modules[name] = (module, kept)

    def restore(self) -> list[str]:
        """Put back what differs; the names of it."""
        changed = []
        for name, (module, kept) in self.modules.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module
                changed.append(name)
            now = vars(module)
            for key, value in kept.items():
                if now.get(key, value) is not value or (key not in now and name == "builtins"):
                    setattr(module, key, value)
                    changed.append(f"{name}.{key}")
        for owner, methods in self.classes.items():
            for key, value in methods.items():
                if vars(owner).get(key) is not value:
                    setattr(owner, key, value)
                    changed.append(f"{owner.__module__}.{owner.__qualname__}.{key}")
        for function, code in self.codes.items():
            if function.__code__ is not code:
                function.__code__ = code
                changed.append(f"{function.__module__}.{function.__qualname__}")
        for name, table, content in self.tables:
            if len(table) != len(content) or any(table.get(k) is not v for k, v in content.items()):
                table.clear()
                table.update(content)
                changed.append(name)
        return changed


class _Shell:
    """IPython's own hooks, through which a cell can change how the next ones run."""

    _LISTS = ("ast_transformers", "input_transformers_post", "custom_exceptions")

    def __init__(self) -> None:
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
        self.shell: Any = shell
        self.names: dict[str, Any] = shell.user_ns if shell is not None else {}
        if shell is None:  # a test without a kernel
            return
        self.lists = {name: list(getattr(shell, name)) for name in self._LISTS}
        self.events = {name: list(some) for name, some in shell.events.callbacks.items()}
        self.own = {name: value for name, value in vars(shell).items() if callable(value)}
        self.methods = {name: getattr(type(shell), name) for name in dir(type(shell))}

    def restore(self) -> list[str]:
        shell = self.shell
        changed = []
        if sys.gettrace() is not None or sys.getprofile() is not None:
            sys.settrace(None)
            sys.setprofile(None)
            changed.append("sys.settrace")
        if shell is None:
            return changed
        for name, value in self.lists.items():
            if list(getattr(shell, name)) != value:
                setattr(shell, name, type(getattr(shell, name))(value))
                changed.append(f"IPython's {name}")
        for name, callbacks in self.events.items():
            if list(shell.events.callbacks[name]) != callbacks:
                shell.events.callbacks[name] = list(callbacks)
                changed.append(f"IPython's event {name}")
        for name in list(vars(shell)):
            value = vars(shell)[name]
            is_new = callable(value) and name in self.methods and name not in self.own
            if is_new and not isinstance(value, type):
                delattr(shell, name)
                changed.append(f"IPython's {name}")
        for name, value in self.own.items():
            if getattr(shell, name, None) is not value:
                setattr(shell, name, value)
                changed.append(f"IPython's {name}")
        return changed


_state: _State | None = None


def start(modules: Sequence[str] = ()) -> None:
    """Import what the tests will use, and note how things are."""
    global _state
    for name in (*_ALWAYS, *modules):
        try:
            importlib.import_module(name)
        except ImportError:  # `package.name` of `from package import name`
            continue
    _state = _State(modules)


def look(rebind: str = "", spare: Sequence[str] = ()) -> str:
    """Put back what differs, bind anew what ``rebind`` defines, and say what was found, in JSON.

    ``rebind`` is what the notebook's locked cells import and define; ``spare`` are names that the
    assignment itself asks for, and which may be those of built-in functions.
    """
    if _state is None:
        raise RuntimeError("the watch was not started")
    names = _state.shell.names
    changed = [*_state.restore(), *_state.shell.restore()]
    for name in list(names):
        value = names[name]
        original = getattr(builtins, name, None)
        shadows = callable(value) and callable(original) and value is not original
        if shadows and name not in spare and not name.startswith("_") and name not in _SHELLS:
            del names[name]
            changed.append(f"the built-in {name}")
    code = compile(rebind, "<locked cells>", "exec")
    before = {name: names[name] for name in code.co_names if name in names}
    exec(code, names)
    for name, value in before.items():
        if names[name] is not value and not _alike(names[name], value):
            changed.append(f"{name}, which a locked cell defines")
    _state.take()
    return json.dumps(changed)


# IPython binds these itself, as names or for the time that a cell runs
_SHELLS = ("get_ipython", "exit", "quit", "display", "open", "input")


def _alike(one: Any, other: Any) -> bool:
    """Two functions or classes that came from the same text."""
    if isinstance(one, types.FunctionType) and isinstance(other, types.FunctionType):
        return _of_a_code(one.__code__) == _of_a_code(other.__code__)
    return isinstance(one, type) and isinstance(other, type) and dir(one) == dir(other)


def _of_a_code(code: types.CodeType) -> tuple[Any, ...]:
    constants = [repr(each) for each in code.co_consts if not isinstance(each, types.CodeType)]
    return code.co_code, code.co_names, code.co_varnames, constants
