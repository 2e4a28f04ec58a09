"""Devices that each do a part agree with one that does it all, to the last bit.

Integers in float64 are exact whatever the order of a sum, so every comparison is ``==``.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import geometries, integers, random_geometries, seeds

from convgrad import ConvGeometry, example, loops
from convgrad.shards import (
    NOTHING,
    RowShard,
    average_weights,
    deal,
    halo_messages,
    image_shards,
    numbers_sent,
    output_of,
    part_of,
    ring_states,
    ring_steps,
    row_cut,
    row_shards,
)


def random_shares(rng: np.random.Generator, count: int, least: int = 1) -> list[int]:
    """Shares that add up, mostly uneven."""
    devices = rng.integers(1, max(count, 1) + 1) if least else rng.integers(1, count + 3)
    shares = [least] * devices
    for _ in range(count - least * devices):
        shares[rng.integers(devices)] += 1
    return shares


def dealings(g: ConvGeometry, rng: np.random.Generator) -> list[list[Any]]:
    """One convolution dealt out in several ways."""
    rows = random_shares(rng, g.OH)
    owned = rng.multinomial(g.H, [1 / len(rows)] * len(rows)).tolist()
    return [
        image_shards(g, random_shares(rng, g.N, least=0)),
        row_shards(g, rows),
        row_shards(g, rows, owned),
        row_shards(g, g.OH),
    ]


def arrays(g: ConvGeometry, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return tuple(integers(rng, shape) for shape in (g.x_shape, g.weight_shape, g.output_shape))


@given(geometries(), seeds())
def test_the_parts_of_all_devices_add_up_to_the_whole(g: ConvGeometry, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, weight, grad_output = arrays(g, rng)
    whole = (
        loops.grad_input(grad_output, weight, g),
        loops.grad_weight(grad_output, x, g),
        loops.grad_bias(grad_output, g),
    )
    for shards in dealings(g, rng):
        parts = [part_of(grad_output, x, weight, each) for each in shards]
        for name, expected in zip(parts[0]._fields, whole, strict=True):
            total = sum(getattr(part, name) for part in parts)
            assert np.array_equal(total, expected), (name, shards)


@given(geometries(), seeds())
def test_a_devices_output_is_its_part_of_the_whole(g: ConvGeometry, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, weight, _ = arrays(g, rng)
    y = loops.forward(x, weight, g)
    for shards in dealings(g, rng):
        for each in shards:
            assert np.array_equal(output_of(x, weight, each), each.take_output(y)), each


@given(geometries(), seeds())
def test_own_rows_and_halo_are_all_that_is_needed_and_no_row_too_many(
    g: ConvGeometry, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = integers(rng, g.x_shape)
    weight = np.ones(g.weight_shape)  # so that no row that is read can go unnoticed
    for shards in dealings(g, rng)[1:]:
        for each in shards:
            right = output_of(x, weight, each)
            others = [h for h in range(g.H) if h not in each.owned and h not in each.halo]
            unseen = x.copy()
            unseen[:, :, others] = np.nan
            assert np.array_equal(output_of(unseen, weight, each), right)
            for h in each.halo:
                missing = x.copy()
                missing[:, :, h] = np.nan
                read = np.isin(g.cols, range(g.W)).any()  # a window may see padding alone
                assert g.N == 0 or not read or np.isnan(output_of(missing, weight, each)).any()


@given(geometries(), seeds())
def test_every_halo_row_comes_from_the_one_device_that_holds_it(g: ConvGeometry, seed: int) -> None:
    for shards in dealings(g, np.random.default_rng(seed))[1:]:
        assert sorted(h for each in shards for h in each.owned) == list(range(g.H))
        got: dict[int, list[int]] = {each.device: [] for each in shards}
        for sender, receiver, rows in halo_messages(shards):
            assert sender != receiver
            assert rows
            assert set(rows) <= set(shards[sender].owned)
            got[receiver] += rows
        assert all(sorted(got[each.device]) == list(each.halo) for each in shards)


@given(geometries())
def test_without_copied_borders_the_rows_follow_the_formula(g: ConvGeometry) -> None:
    if g.padding_mode != "zeros":
        return
    for each in row_shards(g, g.OH):
        first = g.stride[0] * each.outputs[0] - g.padding[0][0]
        last = g.stride[0] * each.outputs[-1] + g.dilation[0] * (g.KH - 1) - g.padding[0][0]
        assert len(each.block) == last - first + 1
        for h, row in zip(range(first, last + 1), each.block, strict=True):
            if (h - first) % g.dilation[0]:  # between the taps of the one output row
                assert row == NOTHING
            else:
                assert row == (h if 0 <= h < g.H else NOTHING)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_the_cut_shares_the_overlap_between_both_sides(kernel: int, stride: int) -> None:
    g = ConvGeometry(C=1, H=40, W=5, O=1, KH=kernel, KW=1, stride=(stride, 1))
    upper, lower = row_shards(g, [4, g.OH - 4])
    overlap = max(kernel - stride, 0)
    assert (len(upper.halo), len(lower.halo)) == (overlap // 2, (overlap + 1) // 2)
    assert row_cut(g, 4) == upper.owned.stop == lower.owned.start


def test_the_classic_case_has_one_halo_row_on_each_side() -> None:
    g = ConvGeometry(C=1, H=12, W=5, O=1, KH=3, KW=3, padding=1)
    shards = row_shards(g, 3)
    assert [each.owned for each in shards] == [range(4), range(4, 8), range(8, 12)]
    assert [each.halo for each in shards] == [(4,), (3, 8), (7,)]


def test_a_circular_border_makes_the_first_and_the_last_device_neighbours() -> None:
    g = ConvGeometry(C=1, H=6, W=5, O=1, KH=3, KW=3, padding=1, padding_mode="circular")
    sent = {(sender, receiver): rows for sender, receiver, rows in halo_messages(row_shards(g, 3))}
    assert sent[2, 0] == (5,)
    assert sent[0, 2] == (0,)


def test_the_draws_cover_what_can_go_wrong() -> None:
    drawn = [g for g in random_geometries(400, seed=5) if g.N]
    rng = np.random.default_rng(0)
    rows = [row_shards(g, random_shares(rng, g.OH)) for g in drawn]
    assert np.mean([len(shards) > 1 for shards in rows]) > 0.25
    assert np.mean([any(each.halo for each in shards) for shards in rows]) > 0.25
    assert np.mean([any(NOTHING in each.block for each in shards) for shards in rows]) > 0.25
    copied = [any(len(set(each.block)) < len(each.block) for each in shards) for shards in rows]
    assert np.mean(copied) > 0.1, "a block in which a row stands twice"


# ---- mistakes that these laws notice ---------------------------------------------------------


def without_halo(shard: RowShard) -> RowShard:
    """The halo forgotten: the device convolves what it holds, and zeros beyond."""
    block = tuple(h if h in shard.owned else NOTHING for h in shard.block)
    return RowShard(shard.device, shard.outputs, shard.owned, block, shard.geometry)


@pytest.mark.parametrize("letter", "BC")
def test_a_forgotten_halo_is_wrong_in_all_but_the_bias(letter: str) -> None:
    g, (x, weight, _, grad_output) = example(letter).geometry, example(letter).arrays()
    shards = [without_halo(each) for each in row_shards(g, g.OH)]
    parts = [part_of(grad_output, x, weight, each) for each in shards]
    y = loops.forward(x, weight, g)
    assert any(
        not np.array_equal(output_of(x, weight, each), each.take_output(y)) for each in shards
    )
    total = [sum(each) for each in zip(*parts, strict=True)]
    assert not np.array_equal(total[0], loops.grad_input(grad_output, weight, g))
    assert not np.array_equal(total[1], loops.grad_weight(grad_output, x, g))
    assert np.array_equal(total[2], loops.grad_bias(grad_output, g))


# ---- the ring --------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(0, 40), seeds())
def test_after_the_ring_every_device_holds_the_sum(devices: int, size: int, seed: int) -> None:
    given_arrays = [integers(np.random.default_rng([seed, r]), (size,)) for r in range(devices)]
    kept = [array.copy() for array in given_arrays]
    states = ring_states(given_arrays)
    assert len(states) == 2 * (devices - 1) + 1
    total = reduce(np.add, given_arrays)
    assert all(np.array_equal(held, total) for held in states[-1])
    assert all(np.array_equal(a, b) for a, b in zip(kept, given_arrays, strict=True))
    # in the middle each device has the whole of one chunk, the one after its own
    chunks = deal(size, devices)
    for r, held in enumerate(states[devices - 1]):
        mine = list(chunks[(r + 1) % devices])
        assert np.array_equal(held[mine], total[mine])


@given(st.integers(2, 9))
def test_in_each_step_every_device_sends_and_receives_one_chunk(devices: int) -> None:
    for step in ring_steps(devices):
        assert [each.sender for each in step] == list(range(devices))
        assert {each.receiver for each in step} == set(range(devices))
        assert {each.chunk for each in step} == set(range(devices)), "each link carries another"


def test_the_same_sum_in_the_same_order_so_the_same_bits() -> None:
    """Rounding depends on the order of a sum; each chunk is summed once, and then copied."""
    rng = np.random.default_rng(1)
    states = ring_states([rng.standard_normal(1000).astype(np.float32) for _ in range(7)])
    assert all(np.array_equal(held, states[-1][0]) for held in states[-1])


@given(st.integers(1, 9), st.integers(0, 200))
def test_less_than_twice_the_array_is_sent(devices: int, size: int) -> None:
    sent = numbers_sent(size, devices)
    assert sum(sent) == 2 * (devices - 1) * size
    assert max(sent) <= 2 * size
    if size % devices == 0:
        assert sent == [2 * (devices - 1) * size // devices] * devices


def test_dealing() -> None:
    assert deal(2, 3) == (range(1), range(1, 2), range(2, 2))
    assert deal(0, 2) == (range(0), range(0))
    for count in range(12):
        for devices in range(1, 6):
            sizes = [len(each) for each in deal(count, devices)]
            assert sum(sizes) == count
            assert len(sizes) == devices
            assert max(sizes) - min(sizes) <= 1
            assert max(sizes) == sizes[0]


@pytest.mark.parametrize("loss", ["sum", "mean"])
@pytest.mark.parametrize("combine", ["sum", "average"])
def test_how_much_an_image_counts(loss: Any, combine: Any) -> None:
    """The weights say what is left of each image when devices do as they do."""
    g, (x, weight, _, grad_output) = example("D").geometry, example("D").arrays()
    shards = image_shards(g, [2, 1])
    parts = [part_of(grad_output, x, weight, each).grad_weight for each in shards]
    own = [p / len(s.images) if loss == "mean" else p for p, s in zip(parts, shards, strict=True)]
    agreed = sum(own) / (len(own) if combine == "average" else 1)
    weights = average_weights([2, 1], loss, combine)
    assert np.allclose(agreed, sum(w * p for w, p in zip(weights, parts, strict=True)), rtol=1e-14)
    whole = loops.grad_weight(grad_output, x, g) / (3 if loss == "mean" else 1)
    assert np.array_equal(agreed, whole) == ((loss, combine) == ("sum", "sum"))


def test_averaging_is_right_for_mean_losses_of_even_shares_only() -> None:
    assert np.array_equal(average_weights([2, 2], "mean", "average"), [1 / 4, 1 / 4])
    assert np.array_equal(average_weights([1, 1, 1], "mean", "average"), [1 / 3] * 3)
    assert np.array_equal(average_weights([3, 1], "mean", "average"), [1 / 6, 1 / 2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: deal(3, [2, 2]), r"2 \+ 2 = 4: together they need to be 3"),
        (lambda: deal(3, []), "empty: together"),
        (lambda: deal(3, [4, -1]), "a share is -1"),
        (lambda: deal(3, 0), "the number of devices is 0"),
        (lambda: deal(3, "3"), "the number of devices is '3'"),
        (lambda: row_shards(example("C").geometry, 3), "3 devices for 2 output rows"),
        (lambda: row_shards(example("C").geometry, 2, [1, 2, 3]), "dealt to 3 devices"),
        (lambda: row_shards(example("C").geometry, 2, [1, 2]), "need to be 6"),
        (lambda: average_weights([1], "max", "sum"), "loss is 'max': use 'sum' or 'mean'"),  # type: ignore[arg-type]
        (lambda: ring_steps(0), "number of devices is 0"),
    ],
)
def test_errors_say_what_came_and_what_was_needed(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
