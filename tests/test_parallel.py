"""Pieces of a job on threads: settings travel along, errors come back, the library is let go."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from convgrad import parallel
from convgrad.parallel import Workspace, even_slices, run, thread_count


def test_every_piece_is_done_once_on_at_most_so_many_threads():
    for threads in (1, 2, 4):
        done, who = [], set()

        def task(piece, done=done, who=who):
            done.append(piece)
            who.add(threading.get_ident())

        run(task, list(range(20)), threads)
        assert sorted(done) == list(range(20))
        assert len(who) <= threads


def test_an_error_in_a_piece_comes_out():
    def task(piece):
        if piece == 3:
            raise ZeroDivisionError("piece three")

    for threads in (1, 2):
        with pytest.raises(ZeroDivisionError, match="piece three"):
            run(task, list(range(5)), threads)


def test_numpy_settings_go_along_to_the_threads():
    def task(piece):
        np.array([1e300]) * 1e300

    with np.errstate(over="ignore"):
        run(task, [1, 2, 3], 2)  # a warning would be an error here
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        run(task, [1, 2, 3], 2)


@pytest.fixture
def blas():
    """The number of threads of the matrix products, set to two for the test."""
    controller = pytest.importorskip("threadpoolctl").ThreadpoolController()
    library = controller.select(user_api="blas")
    with library.limit(limits=2):
        yield lambda: {each["num_threads"] for each in library.info()}


def test_the_library_of_matrix_products_is_held_and_let_go(blas):
    seen = []
    run(lambda piece: seen.append(blas()), [1, 2, 3], 2)
    assert seen == [{1}] * 3
    assert blas() == {2}


def test_who_comes_while_another_has_the_threads_works_alone(blas):
    inside, leave, who = threading.Event(), threading.Event(), set()

    def other():
        run(lambda piece: who.add(threading.get_ident()), [1, 2, 3], 2)
        leave.set()

    def task(piece):
        if not inside.is_set():
            inside.set()
            threading.Thread(target=other).start()
        assert leave.wait(10)

    run(task, [1, 2], 2)
    assert len(who) == 1
    assert blas() == {2}


def test_where_the_library_cannot_be_held_there_are_no_threads_of_ours(blas):
    """threadpoolctl lets one thread set the number, here the one that runs the test."""
    who = set()
    outside = threading.Thread(
        target=run, args=(lambda piece: who.add(threading.get_ident()), [1, 2, 3], 2)
    )
    outside.start()
    outside.join()
    assert len(who) == 1
    assert blas() == {2}


def test_the_number_of_threads_can_be_set(monkeypatch):
    monkeypatch.setattr(parallel, "can_set_threads", lambda: True)
    monkeypatch.setenv("CONVGRAD_THREADS", "3")
    assert thread_count() == 3
    for nonsense in ("0", "", "two", "-1"):
        monkeypatch.setenv("CONVGRAD_THREADS", nonsense)
        assert thread_count() == parallel._cores()


def test_where_threads_would_not_help_there_are_none(monkeypatch):
    monkeypatch.setenv("CONVGRAD_THREADS", "3")
    monkeypatch.setattr(parallel, "_controller", lambda: None)
    for name in parallel._HELD_BY:
        monkeypatch.delenv(name, raising=False)
    assert thread_count() == 1  # the matrix products bring threads of their own
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert thread_count() == 3
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert thread_count() == 1


def test_without_threads_nothing_of_them_is_touched():
    """As in WebAssembly, where starting a thread fails."""
    script = """
import threading
def refuse(*a, **k): raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
import sys; sys.platform = "emscripten"
import numpy as np
from convgrad import conv2d_backward
x = np.ones((8, 64, 20, 20)); w = np.ones((64, 64, 3, 3)); g = np.ones((8, 64, 18, 18))
print(conv2d_backward(g, x, w)[1][0, 0, 0, 0])
"""
    path = os.pathsep.join(sys.path)
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == str(8 * 18 * 18.0), result.stderr


def test_even_slices_cover_and_differ_by_one_at_most():
    for length in range(9):
        for count in range(1, 12):
            slices = even_slices(length, count)
            assert [k for each in slices for k in range(length)[each]] == list(range(length))
            sizes = [each.stop - each.start for each in slices]
            assert sizes[0] == max(sizes) <= min(sizes) + 1 and len(slices) <= max(
                1, min(length, count)
            )


def test_a_workspace_gives_each_thread_its_own_memory():
    space = Workspace(np.dtype(np.float32))
    first = space.array("a", (3, 4))
    assert first.dtype == np.float32 and first.shape == (3, 4)
    assert np.shares_memory(first, space.array("a", (2, 2)))
    assert not np.shares_memory(first, space.array("b", (3, 4)))
    others = []
    thread = threading.Thread(target=lambda: others.append(space.array("a", (3, 4))))
    thread.start()
    thread.join()
    assert not np.shares_memory(first, others[0])


def test_zeros_are_laid_once_and_again_for_another_shape():
    space = Workspace(np.dtype(np.float32))
    space.array("a", (3, 4)).fill(7)
    framed = space.framed("a", (3, 4))
    assert not framed.any()
    framed[1] = 1
    assert space.framed("a", (3, 4))[1].all()  # whoever writes there writes there again
    assert not space.framed("a", (2, 6)).any()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind threads")
def test_where_there_is_a_thread_for_every_core_each_keeps_to_its_own(blas):
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("one core")
    together, kept = threading.Barrier(len(cores)), []

    def task(piece):
        together.wait(10)  # so that each thread takes one
        kept.append(frozenset(os.sched_getaffinity(0)))

    run(task, range(len(cores)), len(cores))
    assert set(kept) == {frozenset({core}) for core in cores}
    assert os.sched_getaffinity(0) == cores  # the caller is left alone
