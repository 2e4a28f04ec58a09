"""Products that nobody stores, tiles and time, sums in two orders: the laws of their models."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from strategies import integer_arrays, random_geometries

from convgrad import example, loops
from convgrad.geometry import PADDING_MODES, ConvGeometry, GeometryError
from convgrad.implicit import OPERANDS, TARGETS, gemm, left, result, right
from convgrad.padding import fold_border, with_border
from convgrad.rounding import arrivals, noise, running_sums, share_sums, tenths
from convgrad.schedule import Schedule, Tile

GEOMETRIES = [g for g in random_geometries(60, seed=17) if g.N]
LAYER = example("F").geometry


# ---- products that nobody stores -------------------------------------------------------------


def looked_up(g: ConvGeometry, target: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The product, each entry of both factors fetched by its address."""
    sizes = gemm(g, target)
    inside = g if target != "input" or g.padding_mode == "zeros" else with_border(g)
    shape = {"weight": g.weight_shape, "forward": g.output_shape, "input": inside.x_shape}[target]
    made = np.full(int(np.prod(shape)), np.nan)
    m, n, k = (np.arange(size) for size in sizes[:3])
    for group in range(sizes.groups):
        a, b = (
            np.where(at < 0, 0, arrays[name].ravel()[at])
            for name, at in zip(
                OPERANDS[target],
                (
                    left(g, target, group, m[:, None], k),
                    right(g, target, group, k[:, None], n),
                ),
                strict=True,
            )
        )
        made[result(g, target, group, m[:, None], n)] = a @ b
    return made.reshape(shape)


@pytest.mark.parametrize("target", TARGETS)
def test_fetched_by_their_addresses_the_products_are_the_loops(target: str) -> None:
    """Every number of the result is written, once, and is right: integers, so no tolerance."""
    for seed, g in enumerate(GEOMETRIES):
        x, weight, grad_output = integer_arrays(g, seed)
        made = looked_up(g, target, {"x": x, "weight": weight, "grad_output": grad_output})
        if target == "weight":
            right_ = loops.grad_weight(grad_output, x, g)
        elif target == "forward":
            right_ = loops.forward(x, weight, g)
        else:
            right_ = loops.grad_input(grad_output, weight, g)
            if g.padding_mode != "zeros":
                made = fold_border(made, g)
        assert np.array_equal(made, right_), g.describe()


def test_the_draws_leave_no_mistake_a_corner_to_hide_in() -> None:
    quarter = len(GEOMETRIES) / 4
    assert sum(1 < g.groups < g.C for g in GEOMETRIES) >= quarter
    assert sum(g.stride != g.dilation for g in GEOMETRIES) >= quarter
    assert sum(any(map(any, g.padding)) for g in GEOMETRIES) >= quarter
    assert {g.padding_mode for g in GEOMETRIES} == set(PADDING_MODES)


def test_the_sizes_are_those_of_the_book() -> None:
    """Of CUTLASS's conv2d_problem_size.h, in our letters."""
    assert gemm(LAYER, "weight")[:3] == (64, 64 * 9, 32 * 56 * 56)
    assert gemm(LAYER, "forward")[:3] == (32 * 56 * 56, 64, 64 * 9)
    assert gemm(LAYER, "input")[:3] == (32 * 56 * 56, 64, 64 * 9)
    assert gemm(example("D").geometry) == (3, 12, 27, 2)


@pytest.mark.parametrize("function", [gemm, Schedule])
def test_an_unknown_map_is_refused(function) -> None:
    with pytest.raises(ValueError, match="target='bias': known are weight, forward, input"):
        function(LAYER, "bias")


# ---- tiles and time --------------------------------------------------------------------------


def schedules() -> list[Schedule]:
    rng = np.random.default_rng(5)
    return [
        Schedule(
            g,
            TARGETS[k % 3],
            Tile(*(int(2 ** rng.integers(0, 6)) for _ in range(3))),
            splits=int(rng.integers(1, 9)),
            processors=int(rng.integers(1, 12)),
        )
        for k, g in enumerate(GEOMETRIES)
    ]


def test_every_entry_of_every_sum_is_somebodys_and_nobodys_twice() -> None:
    for s in schedules():
        count = np.zeros((s.gemm.groups, s.down, s.across, s.steps), int)
        for number in range(s.programs):
            each = s.program(number)
            assert each.first < each.end, "no program has nothing to do"
            count[each.group, each.row, each.col, each.first : each.end] += 1
        assert (count == 1).all()
        assert s.down * s.tile.M >= s.gemm.M > (s.down - 1) * s.tile.M
        assert s.parts <= s.splits


def test_a_processor_does_one_thing_at_a_time_and_none_waits_while_there_is_work() -> None:
    for s in schedules():
        assert sorted(run.program for run in s.runs) == list(range(s.programs))
        rows = [[run for run in s.runs if run.processor == k] for k in range(s.processors)]
        for runs in rows:
            assert all(before.end == after.start for before, after in pairwise(runs))
            assert not runs or runs[0].start == 0
        last = max(run.start for run in s.runs)
        for runs in rows:
            assert (runs[-1].end if runs else 0) >= last, "it could have taken the last program"
        assert all(before.start <= after.start for before, after in pairwise(s.runs))
        assert s.time == max(run.end for run in s.runs)
        work = sum(run.end - run.start for run in s.runs)
        assert s.busy == pytest.approx(work / (s.time * s.processors))
        assert 0 < s.last_wave <= s.processors


def test_the_layer_of_the_gpu_part() -> None:
    """Five tiles keep five of 132 multiprocessors busy, and split-K mends it."""
    few = Schedule(LAYER)
    assert (few.tiles, few.steps, few.time, few.waves, few.last_wave) == (5, 3136, 3136, 1, 5)
    assert few.busy == 5 / 132
    assert (few.workspace, few.atomics) == (0, 0)
    more = replace(few, splits=26)
    assert (more.parts, more.programs, more.share, more.time) == (26, 130, 121, 121)
    assert more.busy > 0.98
    assert (more.workspace, more.atomics) == (0, 26)
    apart = replace(more, two_passes=True)
    assert (apart.workspace, apart.atomics) == (26 * 64 * 576 * 4, 0)
    assert Schedule(LAYER, "forward").tiles == 784


def test_whole_blocks_may_need_fewer_parts_than_asked_for() -> None:
    s = Schedule(LAYER, splits=1000)
    assert (s.share, s.parts) == (4, 784)
    one = Schedule(example("B").geometry, tile=Tile(1, 1, 16), splits=4)
    assert (one.steps, one.parts, one.atomics) == (1, 1, 1)


@pytest.mark.parametrize("wrong", [{"splits": 0}, {"processors": 0}, {"tile": Tile(1, 0, 1)}])
def test_sizes_of_nothing_are_refused(wrong: dict) -> None:
    with pytest.raises(GeometryError, match="needed is at least 1"):
        Schedule(LAYER, **wrong)


@pytest.mark.oracle
def test_tiles_and_shares_are_those_of_the_kernels() -> None:
    pytest.importorskip("triton", reason="Triton is not installed; it is made for Linux alone")
    from convgrad.kernels.blocks import blocks, split
    from convgrad.kernels.tiles import count

    for g in [*GEOMETRIES, LAYER, replace(LAYER, N=1)]:
        windows, columns = g.N * g.OH * g.OW, g.CG * g.KH * g.KW
        M, N, _ = blocks(g.OG, columns, windows)
        tiles = count(g, M, N)
        for splits in (1, 2, 5, 26):
            theirs = split(g, tiles, splits)
            ours = Schedule(g, tile=Tile(M, N, theirs.K), splits=splits)
            assert (ours.tiles, ours.parts, ours.share) == (tiles, theirs.parts, theirs.share)


# ---- sums in two orders ----------------------------------------------------------------------


def test_shares_are_float32_sums_in_the_order_of_k() -> None:
    g = example("D").geometry
    x, _, _, grad_output = example("D").arrays()
    numbers = {"x": tenths(x), "grad_output": tenths(grad_output)}
    exact = loops.grad_weight(grad_output / 10, x / 10, g)
    for splits in (1, 3, 27):
        s = Schedule(g, tile=Tile(2, 4, 1), splits=splits)
        shares = share_sums(s, numbers, 1, 2, 7)
        assert shares.dtype == np.float32 and len(shares) == s.parts
        cell = exact.ravel()[result(g, "weight", 1, 2, 7)]
        assert running_sums(shares, range(s.parts))[-1] == pytest.approx(cell, rel=1e-5)
    # one after the other, rounded each time: not what a sum in float64 would give
    k = np.arange(27)
    a = numbers["grad_output"](left(g, "weight", 1, 2, k))
    b = numbers["x"](right(g, "weight", 1, k, 7))
    total = np.float32(0)
    for one, other in zip(a, b, strict=True):
        total = np.float32(total + np.float32(one * other))
    assert share_sums(Schedule(g, tile=Tile(2, 4, 1)), numbers, 1, 2, 7)[0] == total


def test_shares_come_in_as_their_programs_end_and_else_by_chance() -> None:
    s = Schedule(LAYER, splits=26, processors=40)
    ends = [s.runs[part * s.tiles + 3].end for part in range(s.parts)]
    orders = {tuple(arrivals(s, 3, seed)) for seed in range(50)}
    assert len(orders) == 50, "chance"
    for order in orders:
        assert sorted(order) == list(range(s.parts))
        in_time = [ends[part] for part in order]
        assert in_time == sorted(in_time)
    assert len(set(ends)) > 1
    assert arrivals(s, 3, 7) == arrivals(s, 3, 7)


def test_one_multiprocessor_leaves_nothing_to_chance() -> None:
    s = Schedule(LAYER, splits=26, processors=1)
    assert all(arrivals(s, 2, seed) == list(range(26)) for seed in range(5))


def test_two_shares_add_up_alike_and_three_may_not() -> None:
    rng = np.random.default_rng(2)
    pairs = rng.standard_normal((200, 2)).astype(np.float32)
    assert all(running_sums(p, [0, 1])[-1] == running_sums(p, [1, 0])[-1] for p in pairs)
    three = rng.standard_normal((200, 3)).astype(np.float32)
    differ = [running_sums(t, [0, 1, 2])[-1] != running_sums(t, [2, 1, 0])[-1] for t in three]
    assert 20 < sum(differ) < 180


def test_noise_is_spread_and_differs_between_arrays() -> None:
    at = np.arange(20_000)
    x, g = noise("x")(at), noise("grad_output")(at)
    assert x.dtype == np.float32 and abs(x).max() <= 1
    assert abs(x.mean()) < 0.02 and 0.55 < x.std() < 0.6
    assert abs(np.corrcoef(x, g)[0, 1]) < 0.03
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.03
