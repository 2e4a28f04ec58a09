"""Whether a function does its own work, where writing it is the exercise.

A function that is asked for can also be a single call of a library that has it ready.  The
answer is then right and the exercise is missed.  ``by_hand`` watches every call that the
function makes, under whatever name it holds the other function, and raises when one leads out
of NumPy and the notebook; that the function catches the error does not help it.

It is a fence and no wall.  It does not see a source that was copied, a second process, or code
that reaches into the interpreter.  Whoever grades reads what was handed in.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import CodeType, FrameType, ModuleType
from typing import Any

__all__ = ["NotByHand", "by_hand"]

# Libraries that have convolutions or their gradients ready.
_NAMES = """
    convgrad torch functorch triton scipy skimage sklearn cv2 jax jaxlib flax tensorflow keras
    autograd mxnet cupy numba paddle tinygrad mlx
"""
LIBRARIES = frozenset(_NAMES.split())
#: What an answer may use of them all the same: sizes and the index map.
FREE = ("convgrad.geometry",)
#: With tensors, PyTorch is free but for what differentiates by itself.
NOT_WITH_TENSORS = ("torch.autograd", "torch.func", "torch._functorch", "functorch")
# Calls that would end the watch, or leave it.
_ESCAPES = frozenset(["setprofile", "settrace", "start_new_thread", "start_joinable_thread"])


class NotByHand(AssertionError):
    """The function hands its work on to a library.

    Examples
    --------
    >>> from convgrad import conv2d
    >>> lazy = by_hand(lambda x, w: conv2d(x, w))
    >>> lazy(1, 2)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.exercises.fence.NotByHand: this calls convgrad.api.conv2d:
        here the exercise is to write it yourself, with NumPy
    """


def by_hand(
    function: Any, *, allow: Iterable[Callable[..., Any]] = (), tensors: bool = False
) -> Any:
    """The same function under watch: a call that leads into another library raises.

    Parameters
    ----------
    function : callable
        An answer.  What is not callable comes back as it is, for ``check`` to complain about.
    allow : iterable of callable, optional
        Functions of a library that this exercise lets the answer use.
    tensors : bool, default False
        Whether PyTorch may be used, except its convolutions and what differentiates by itself.

    Returns
    -------
    callable
        Takes and returns the same; functions among its arguments may be called.  Where only
        ``raise NotImplementedError()`` stands, it returns None: nothing is written yet.  Its
        attribute ``calls`` says how often the last run called what is allowed.

    Raises
    ------
    NotByHand
        By the function that comes back, with the name of what it called.

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import exercises
    >>> def grad_bias(grad_output):
    ...     return grad_output.sum(axis=(0, 2, 3))
    >>> exercises.get("bias-write").check(by_hand(grad_bias)).passed
    True
    """
    if not callable(function):
        return function
    return _Watched(function, {_code(each) for each in allow}, tensors)


class _Watched:
    """The function, and how it is watched."""

    def __init__(self, function: Callable[..., Any], allowed: set[CodeType], tensors: bool) -> None:
        self.function = function
        self.allowed = allowed
        self.tensors = tensors
        self.calls = 0
        self.__code__ = getattr(function, "__code__", None)  # for the line of an error

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        handed = {a.__code__ for a in (*arguments, *options.values()) if hasattr(a, "__code__")}
        # the answer's own module is no library, whatever it calls itself
        home = getattr(self.function, "__globals__", {})
        watch = _Watch(home, self.allowed | handed, self.tensors)
        before = sys.getprofile()
        with ExitStack() as stack:
            if self.tensors:
                stack.enter_context(_no_convolution(watch))
            try:
                sys.setprofile(watch)
                found = self.function(*arguments, **options)
            except NotImplementedError:  # what nbgrader puts where the answer goes
                found = None
            finally:
                sys.setprofile(before)
                self.calls = sum(watch.calls[code] for code in self.allowed)
                if watch.broken:  # even if the function has caught what was raised in it
                    raise NotByHand(watch.broken)
        return found


class _Watch:
    """A profile function: it sees every call before it is made."""

    def __init__(self, home: dict[str, Any], allowed: set[CodeType], tensors: bool) -> None:
        self.home = home
        self.allowed = allowed
        self.tensors = tensors
        self.calls: Counter[CodeType] = Counter()
        self.broken = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            above = frame.f_back
            if above is None or self._is_library(self._module(above)):
                return
            if frame.f_code in self.allowed:
                self.calls[frame.f_code] += 1
            # an import computes nothing; what was handed over may do as it likes
            elif above.f_code not in self.allowed and frame.f_code.co_name != "<module>":
                self._see(self._module(frame), frame.f_code.co_qualname)
        elif event == "c_call" and frame.f_code is not _Watched.__call__.__code__:
            name = getattr(argument, "__name__", "")
            if name.lstrip("_") in _ESCAPES:
                self.stop(f"this calls {name}, which an answer has no use for")
            if frame.f_code not in self.allowed and not self._is_library(self._module(frame)):
                self._see(_home(argument), name)

    def _module(self, frame: FrameType) -> str:
        return "" if frame.f_globals is self.home else str(frame.f_globals.get("__name__", ""))

    def _see(self, module: str, name: str) -> None:
        if self._is_library(module) and not _within(module, FREE):
            self.stop(
                f"this calls {module}.{name}: here the exercise is to write it yourself, with "
                f"{'tensors' if self.tensors else 'NumPy'}"
            )

    def _is_library(self, module: str) -> bool:
        if self.tensors and module.partition(".")[0] == "torch":
            return _within(module, NOT_WITH_TENSORS)
        return module.partition(".")[0] in LIBRARIES

    def stop(self, sentence: str) -> None:
        self.broken = self.broken or sentence
        raise NotByHand(sentence)


def _within(module: str, names: Iterable[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def _home(builtin: Any) -> str:
    """The module that a function written in C belongs to."""
    owner = getattr(builtin, "__self__", None)
    if isinstance(owner, ModuleType):
        return owner.__name__
    home = getattr(builtin, "__module__", None) or ""
    kind = owner if isinstance(owner, type) else type(owner)
    return home or str(getattr(kind, "__module__", ""))


def _code(function: Callable[..., Any]) -> CodeType:
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None:
        raise TypeError(f"allow takes functions written in Python, not {function!r}")
    return code


def _no_convolution(watch: _Watch) -> Any:
    """A context in which PyTorch's convolutions stop, by whatever way they are reached."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    def dispatch(
        own: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if "conv" in func.name():
            watch.stop(
                f"this calls {func.name()}: here the exercise is to write it yourself, with tensors"
            )
        return func(*args, **(kwargs or {}))

    class NoConvolution(TorchDispatchMode):
        __torch_dispatch__ = dispatch

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else the first use imports torch.compile and all that belongs to it

    mode: Any = NoConvolution

    watch.allowed.add(dispatch.__code__)  # it stands in a library itself
    with mode():
        torch.zeros(1).abs()  # what is imported at the first use, before the watch begins
    return mode()
