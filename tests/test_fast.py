"""The routes of ``fast``: each gives the definition's numbers, in blocks and on threads too.

The laws in test_laws.py hold for ``fast`` as for every implementation.  Their convolutions are so
small that one block and one thread do; here blocks are made smaller still.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import integer_arrays, random_geometries

from convgrad import ConvGeometry, blocked, conv2d_backward, depthwise, fast, loops, rows
from convgrad.blocked import blocks, can_gather, everything, parts
from convgrad.fast import explain_route
from convgrad.geometry import PADDING_MODES
from convgrad.padding import inside


def of_each_route(count, seed):
    """Random geometries, and the same made depthwise and pointwise."""
    for geometry in random_geometries(count, seed):
        yield geometry
        yield replace(
            geometry, stride=(1, 1), O=geometry.C, H=geometry.H + 5, W=geometry.W + 5
        )  # whose grad_input is gathered
        yield replace(geometry, C=4, O=4 * (1 + geometry.N % 2), groups=4)
        yield replace(geometry, KH=1, KW=1, stride=(1, 1), dilation=(1, 1), padding=0)


@pytest.fixture(params=[1, 3], ids=["serial", "threads"])
def threads(request, monkeypatch):
    monkeypatch.setattr(fast, "SMALL", 0)
    monkeypatch.setattr(fast, "thread_count", lambda: request.param)
    return request.param


@pytest.mark.parametrize(
    "block",
    [pytest.param(1, marks=pytest.mark.slow), 500, pytest.param(2_000_000, marks=pytest.mark.slow)],
)
def test_every_route_in_blocks_of_every_size_is_the_definition(block, threads, monkeypatch):
    for module, name in (
        *((blocked, "SMALLEST"), (blocked, "LARGEST"), (blocked, "LARGEST_SUM")),
        *((rows, "LARGEST"), (depthwise, "CHUNK")),
    ):
        monkeypatch.setattr(module, name, block)
    for name in ("LONG", "SHARE", "OVERLAP"):
        monkeypatch.setattr(rows, name, 1)
    for least in ("LEAST", "LEAST_TOGETHER", "LEAST_SUMMED"):
        monkeypatch.setattr(blocked, least, 1)
    seen = set()
    for seed, geometry in enumerate(of_each_route(30, seed=21)):
        x, weight, g = integer_arrays(geometry, seed)
        assert_array_equal(fast.forward(x, weight, geometry), loops.forward(x, weight, geometry))
        assert_array_equal(
            fast.grad_input(g, weight, geometry), loops.grad_input(g, weight, geometry)
        )
        assert_array_equal(fast.grad_weight(g, x, geometry), loops.grad_weight(g, x, geometry))
        seen.add((explain_route(geometry).name, geometry.padding_mode, can_gather(geometry)))
    routes = {"pointwise", "depthwise", "blocked"} | ({"rows"} if block > 1 else set())
    assert {name for name, _, _ in seen} == routes
    assert {mode for name, mode, _ in seen if name == "blocked"} == set(PADDING_MODES)
    assert {gathers for name, _, gathers in seen if name == "blocked"} == {True, False}


def test_more_threads_give_the_same_numbers(monkeypatch):
    """Each is added up by one thread, in the order in which one thread alone would.

    Not always to the last bit: products of other shapes may be summed in other strides.
    """
    monkeypatch.setattr(fast, "SMALL", 0)
    rng = np.random.default_rng(3)
    layers = [
        ConvGeometry(N=4, C=6, H=20, W=20, O=8, KH=3, KW=3, padding=1),
        ConvGeometry(N=1, C=6, H=21, W=20, O=8, KH=3, KW=3, stride=2, groups=2),
        ConvGeometry(N=3, C=6, H=20, W=20, O=6, KH=3, KW=3, padding=1, groups=6),
        ConvGeometry(N=3, C=8, H=20, W=20, O=4, KH=1, KW=1),
    ]
    for geometry in layers:
        x = rng.standard_normal(geometry.x_shape)
        weight = rng.standard_normal(geometry.weight_shape)
        g = rng.standard_normal(geometry.output_shape)
        results = []
        for count in (1, 2, 5):
            monkeypatch.setattr(fast, "thread_count", lambda count=count: count)
            results.append(
                (
                    fast.forward(x, weight, geometry),
                    fast.grad_input(g, weight, geometry),
                    fast.grad_weight(g, x, geometry),
                )
            )
        for other in results[1:]:
            for result, again in zip(results[0], other, strict=True):
                np.testing.assert_allclose(again, result, rtol=1e-14, atol=1e-14)


def test_threads_share_a_large_layer_and_leave_a_small_one(monkeypatch):
    working, real = set(), blocked.columns

    def columns(*operands):
        working.add(threading.get_ident())
        return real(*operands)

    monkeypatch.setattr(blocked, "columns", columns)
    monkeypatch.setattr(fast, "thread_count", lambda: 2)
    small = ConvGeometry(N=2, C=3, H=8, W=8, O=4, KH=3, KW=3)
    x, _, g = integer_arrays(small, 0)
    fast.grad_weight(g, x, small)
    assert working == {threading.get_ident()}

    working.clear()
    both = threading.Barrier(2)  # each waits for the other, so there must be two

    def columns_of_two(*operands):
        if threading.get_ident() not in working:
            working.add(threading.get_ident())
            both.wait(10)
        return real(*operands)

    monkeypatch.setattr(blocked, "columns", columns_of_two)
    large = ConvGeometry(N=2, C=32, H=24, W=24, O=32, KH=3, KW=3)
    x, _, g = integer_arrays(large, 0)
    fast.grad_weight(g, x, large)
    assert threading.get_ident() not in working and len(working) == 2


def test_an_infinity_never_meets_a_zero_that_was_only_put_in_between():
    """The zeros between rows and around grad_output are ours: inf · 0 there would be nan."""
    gathered = ConvGeometry(N=2, C=3, H=6, W=5, O=4, KH=3, KW=2, padding=1)
    alone = ConvGeometry(N=2, C=3, H=6, W=5, O=3, KH=3, KW=2, padding=1, groups=3)
    assert can_gather(gathered) and explain_route(alone).name == "depthwise"
    for geometry in (gathered, alone, replace(alone, stride=2)):
        x, weight, g = integer_arrays(geometry, 1)
        weight[1, 0, 2, 1] = np.inf
        x[1, 2, 0, 4] = -np.inf
        with np.errstate(invalid="ignore"):
            assert_array_equal(
                fast.grad_input(g, weight, geometry), loops.grad_input(g, weight, geometry)
            )
            assert_array_equal(fast.grad_weight(g, x, geometry), loops.grad_weight(g, x, geometry))
            assert_array_equal(
                fast.forward(x, weight, geometry), loops.forward(x, weight, geometry)
            )


# ---- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "options"),
    [
        ("pointwise", "nothing is copied", {"KH": 1, "KW": 1}),
        ("blocked", "is scattered", {"KH": 1, "KW": 1, "padding": 1}),
        ("blocked", "is scattered", {"KH": 1, "KW": 1, "stride": 2}),
        ("depthwise", "each of the 4 channels is on its own", {"groups": 4}),
        ("blocked", "over 2 channels", {"groups": 2}),
        ("rows", "one row of taps", {"N": 8, "O": 1, "C": 32, "H": 28, "W": 28}),
        ("rows", "one row of taps", {"N": 8, "O": 1, "C": 32, "H": 28, "W": 28, "stride": (1, 2)}),
        ("blocked", "is scattered", {"N": 8, "O": 1, "C": 32, "H": 28, "W": 28, "stride": (2, 1)}),
        ("blocked", "is gathered", {"N": 8, "O": 1, "C": 16, "H": 28, "W": 28}),
        ("blocked", "is gathered", {"H": 20, "W": 20}),
        ("blocked", "is gathered", {"H": 20, "W": 20, "dilation": 2}),
        ("blocked", "is scattered", {"H": 20, "W": 20, "stride": 2}),
        ("blocked", "is scattered", {"H": 20, "W": 20, "O": 64}),
        ("blocked", "is scattered", {}),  # there is less of grad_output than of the weight
    ],
)
def test_the_route_and_its_reason(name, words, options):
    geometry = ConvGeometry(**{"C": 4, "H": 5, "W": 5, "O": 4, "KH": 3, "KW": 3} | options)
    route = explain_route(geometry)
    assert route.name == name and words in route.why
    assert str(route) == f"{name}: {route.why}"
    assert route.why.endswith("One thread: " + route.why.rpartition("One thread: ")[2])


def test_the_explanation_tells_the_threads(monkeypatch):
    geometry = ConvGeometry(N=8, C=64, H=28, W=28, O=64, KH=3, KW=3, padding=1)
    monkeypatch.setattr(fast, "thread_count", lambda: 4)
    assert "4 threads share the 231,211,008 products" in explain_route(geometry).why
    monkeypatch.setattr(fast, "thread_count", lambda: 1)
    assert "One thread of our own" in explain_route(geometry).why


# ---- the pieces ------------------------------------------------------------------------------


def test_blocks_cover_every_output_once(monkeypatch):
    for least in ("LEAST", "LEAST_TOGETHER", "LEAST_SUMMED"):
        monkeypatch.setattr(blocked, least, 1)
    for block in (1, 300, 5_000, 2_000_000):
        monkeypatch.setattr(blocked, "SMALLEST", block)
        monkeypatch.setattr(blocked, "LARGEST", block)
        for geometry in random_geometries(30, seed=4):
            covered = np.zeros((geometry.N, geometry.OH), int)
            for images, down in blocks(
                geometry, everything(geometry), slice(0, geometry.N), itemsize=8
            ):
                covered[images, down] += 1
            assert (covered == 1).all()


def test_parts_cover_every_weight_once():
    for geometry in random_geometries(60, seed=5):
        for count in (1, 2, 7):
            covered = np.zeros((geometry.groups, geometry.CG, geometry.KH), int)
            cut = parts(geometry, count)
            for groups, channels, taps in cut:
                covered[groups, channels, taps] += 1
            assert (covered == 1).all() and len(cut) <= count


@pytest.mark.parametrize("start", range(-7, 8))
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("size", [1, 5])
def test_inside_finds_the_places_that_lie_in_a_range(start, step, count, size):
    numbers, places = inside(start, step, count, size)
    every = range(start, start + step * count, step)
    right = [(k, place) for k, place in enumerate(every) if 0 <= place < size]
    assert list(zip(range(count)[numbers], range(size)[places], strict=True)) == right


def test_the_working_set_stays_small():
    """The layer's columns would take 29 MB; a few blocks of two are what there is at a time."""
    import tracemalloc

    geometry = ConvGeometry(N=4, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1)
    x, weight, g = (array.astype(np.float32) for array in integer_arrays(geometry, 0))
    tracemalloc.start()
    results = conv2d_backward(g, x, weight, padding=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - sum(each.nbytes for each in results) < 12e6
