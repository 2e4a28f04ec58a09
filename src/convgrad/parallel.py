"""Pieces of one job, side by side on threads where that helps, else one after the other.

NumPy lets go of Python's lock while it copies and multiplies, so threads do help.  But the
library behind its matrix products has threads of its own, and both at once would be too many:
jobs run on several threads only while that library is held to one, which takes
``threadpoolctl``, or the variable ``OPENBLAS_NUM_THREADS=1`` set before Python starts.
Without either, and where there are no threads at all, as in WebAssembly, the same pieces run
one after the other.  They never share a number that they write, so the result is the same.
"""

from __future__ import annotations

import contextvars
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np

__all__ = ["Workspace", "even_slices", "run", "thread_count"]

Piece = TypeVar("Piece")

# Each of these, set to 1 before Python starts, holds the matrix products to one thread.
_HELD_BY = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")


def thread_count() -> int:
    """How many threads :func:`run` uses: one for each core, or 1 where they would not help.

    The variable ``CONVGRAD_THREADS`` sets another number, for example 1.

    >>> thread_count() >= 1
    True
    """
    if sys.platform in ("emscripten", "wasi"):
        return 1
    wanted = os.environ.get("CONVGRAD_THREADS", "")
    count = int(wanted) if wanted.isdecimal() and int(wanted) > 0 else _cores()
    return count if count == 1 or _blas.can_be_held() else 1


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(task: Callable[[Piece], None], pieces: Sequence[Piece], threads: int) -> None:
    """``task(piece)`` for every piece, on up to ``threads`` threads; raises what a task raises."""
    threads = min(threads, len(pieces))
    if threads <= 1:
        for piece in pieces:
            task(piece)
        return
    with _blas.held(), ThreadPoolExecutor(threads) as pool:
        # a thread starts with settings of its own, np.errstate among them: give it ours
        waiting = [pool.submit(contextvars.copy_context().run, task, piece) for piece in pieces]
        for each in waiting:
            each.result()


def even_slices(length: int, count: int) -> list[slice]:
    """``range(length)`` cut into ``count`` slices, as even as can be; fewer where it is short.

    >>> even_slices(7, 3)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 7, None)]
    """
    count = max(1, min(length, count))
    ends = [length * k // count for k in range(count + 1)]
    return [slice(start, stop) for start, stop in zip(ends[:-1], ends[1:], strict=True)]


class Workspace:
    """Arrays that one thread fills again and again.

    Fresh memory costs more time than the copies that go into it (the system hands out each
    page separately), so a piece of work takes its arrays from here, by name.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype
        self._own = threading.local()

    def array(self, name: str, shape: Sequence[int]) -> np.ndarray:
        """An array of this shape with whatever was left in it, this thread's own."""
        size = math.prod(shape)
        kept = getattr(self._own, name, None)
        if kept is None or kept.size < size:
            kept = np.empty(size, self._dtype)
            setattr(self._own, name, kept)
        return kept[:size].reshape(shape)


class _Blas:
    """The library of matrix products, held to one thread while anybody asks for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limit: Any = None

    def can_be_held(self) -> bool:
        return _controller() is not None or any(os.environ.get(name) == "1" for name in _HELD_BY)

    @contextmanager
    def held(self) -> Iterator[None]:
        controller = _controller()
        if controller is None:  # then a variable holds it
            yield
            return
        # Counted, because callers on several threads overlap: the first one in takes hold, the
        # last one out lets go; each for itself would put back what another had changed.
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._limit = controller.limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0:
                    self._limit.restore_original_limits()


_blas = _Blas()


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
