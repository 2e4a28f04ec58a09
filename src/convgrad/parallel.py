"""Pieces of one job, side by side on threads where that helps, else one after the other.

NumPy lets go of Python's lock while it copies and multiplies, so threads do help.  But the
library behind its matrix products has threads of its own, and both at once would be too many:
jobs run on several threads only while that library is held to one, which takes
``threadpoolctl``, or the variable ``OPENBLAS_NUM_THREADS=1`` set before Python starts.
Without either, and where there are no threads at all, as in WebAssembly, the same pieces run
one after the other.

Pieces never share a number that they write, and each adds up its own in the same order on any
number of threads.  Only a matrix product may round its last bit otherwise, where more threads
mean smaller pieces.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

__all__ = ["Workspace", "blas_threads", "can_set_threads", "even_slices", "run", "thread_count"]

Piece = TypeVar("Piece")

# Each of these, set to 1 before Python starts, holds the matrix products to one thread.
_HELD_BY = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")


def thread_count() -> int:
    """How many threads a large layer is shared among: one for each core, if that helps.

    The variable ``CONVGRAD_THREADS`` sets another number, for example 1.

    Returns
    -------
    count : int
        1 where more would not help: in WebAssembly, and where the threads of NumPy's own matrix
        products cannot be held back.  That takes threadpoolctl, which the extra ``fast`` brings,
        or the variable ``OPENBLAS_NUM_THREADS=1``, set before Python starts.

    Examples
    --------
    >>> thread_count() >= 1
    True
    """
    if sys.platform in ("emscripten", "wasi"):
        return 1
    wanted = os.environ.get("CONVGRAD_THREADS", "")
    count = int(wanted) if wanted.isdecimal() and int(wanted) > 0 else _cores()
    return count if count == 1 or can_set_threads() else 1


def _cores() -> int:
    return len(_allowed_cores()) or os.cpu_count() or 1


def _allowed_cores() -> tuple[int, ...]:
    """The cores that this process may run on, where the system tells; else none."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def run(task: Callable[[Piece], None], pieces: Sequence[Piece], threads: int) -> None:
    """``task(piece)`` for every piece, on up to ``threads`` threads; raises what a task raises."""
    threads = min(threads, len(pieces))
    if threads <= 1:
        _one_by_one(task, pieces)
        return
    with _held_blas() as held:
        if not held:
            _one_by_one(task, pieces)
            return
        left = deque(pieces)

        def work() -> None:
            while True:
                try:
                    piece = left.popleft()
                except IndexError:  # all are taken
                    return
                task(piece)

        # a thread starts with settings of its own, np.errstate among them: give it ours
        pool = _pool(threads, _allowed_cores())
        waiting = [pool.submit(copy_context().run, work) for _ in range(threads)]
        wait(waiting)  # all of them, also if one fails: they write into what the caller holds
        for each in waiting:
            each.result()


def _one_by_one(task: Callable[[Piece], None], pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        task(piece)


@cache
def _pool(threads: int, cores: tuple[int, ...]) -> ThreadPoolExecutor:
    """Threads that wait for work: to start them anew, and give them fresh memory, costs more.

    Where there is one for every core, each keeps to its own.  Left to itself, Linux may wake two
    of them on one core, and on a machine with few cores leave them there for the whole job, one
    waiting for the other.
    """
    ours = deque(cores if len(cores) == threads else ())

    def keep_to_one_core() -> None:
        with suppress(OSError, IndexError):  # a sandbox may forbid it; no cores, no binding
            os.sched_setaffinity(0, {ours.popleft()})

    return ThreadPoolExecutor(threads, thread_name_prefix="convgrad", initializer=keep_to_one_core)


def fresh_threads() -> None:
    """Lets the waiting threads go, and with them the memory that they keep."""
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fresh_threads)  # threads don't live on in a child

_busy = threading.Lock()


@contextmanager
def _held_blas() -> Iterator[bool]:
    """A block with the matrix products on one thread; False if they could not be held there.

    Their number of threads is one for the whole process.  So whoever comes while another holds
    it, on a thread of its own, works alone: it is parallel already.
    """
    if not _busy.acquire(blocking=False):
        yield False
        return
    try:
        with blas_threads(1) or nullcontext():
            controller = _controller()
            # threadpoolctl does nothing, silently, where another thread has set a limit
            yield controller is None or all(
                library["num_threads"] == 1 for library in controller.info()
            )
    finally:
        _busy.release()


def even_slices(length: int, count: int) -> list[slice]:
    """``range(length)`` cut into ``count`` slices, as even as can be; fewer where it is short.

    The first is as large as any, so memory that serves it serves all.

    >>> even_slices(7, 3)
    [slice(0, 3, None), slice(3, 5, None), slice(5, 7, None)]
    """
    count = max(1, min(length, count))
    ends = [-(-length * k // count) for k in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


def blas_threads(count: int) -> Any:
    """A block in which the matrix products take ``count`` threads; None without threadpoolctl."""
    controller = _controller()
    return None if controller is None else controller.limit(limits=count)


def can_set_threads() -> bool:
    """Whether the matrix products can be held to one thread, or a variable holds them there."""
    return _controller() is not None or any(os.environ.get(name) == "1" for name in _HELD_BY)


class Workspace:
    """Arrays that one thread fills again and again.

    Fresh memory costs more time than the copies that go into it (the system hands out each page
    separately), so a piece of work takes its arrays from here, by name.  A thread keeps them from
    call to call, up to :data:`KEPT` bytes of each; of the thread that called, nothing is kept.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = np.dtype(dtype)
        self._caller, self._arrays = threading.get_ident(), dict[str, np.ndarray]()
        self._cleared: dict[tuple[int, str], Sequence[int]] = {}

    def array(self, name: str, shape: Sequence[int]) -> np.ndarray:
        """An array of this shape with whatever was left in it, this thread's own."""
        size = math.prod(shape) * self._dtype.itemsize
        arrays = self._arrays if threading.get_ident() == self._caller else _own_arrays()
        kept = arrays.get(name)
        if kept is None or kept.nbytes < size:
            kept = np.empty(size, np.uint8)
            if arrays is self._arrays or size <= KEPT:
                arrays[name] = kept
        return kept[:size].view(self._dtype).reshape(shape)

    def framed(self, name: str, shape: Sequence[int]) -> np.ndarray:
        """The same, with zeros wherever this piece of work does not write.

        For whoever writes into the same places of an array of this name and shape each time:
        then the zeros need to be laid only once.
        """
        array = self.array(name, shape)
        whose = threading.get_ident(), name
        if self._cleared.get(whose) != shape:
            array.fill(0)
            self._cleared[whose] = shape
        return array


KEPT = 8_000_000
_threads_own = threading.local()


def _own_arrays() -> dict[str, np.ndarray]:
    if not hasattr(_threads_own, "arrays"):
        _threads_own.arrays = {}
    arrays: dict[str, np.ndarray] = _threads_own.arrays
    return arrays


@cache
def _controller() -> Any:
    """threadpoolctl's hold on the library of matrix products; None where it is not installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")
