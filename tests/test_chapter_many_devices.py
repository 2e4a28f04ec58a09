"""*Many devices: the batch sum is an all-reduce* tells the truth: its numbers, pictures, claims."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from pages import PAGES, alt_text, spoken

from convgrad import ConvGeometry, conv2d_backward, example, exercises, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.exercises import many_devices as bank
from convgrad.shards import (
    average_weights,
    deal,
    image_shards,
    numbers_sent,
    part_of,
    ring_states,
    row_shards,
)

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import many_devices as pictures

PAGE = "many_devices"
TEXT = PAGES[PAGE].read_text("utf-8")
B, D, F = (example(letter).geometry for letter in "BDF")


# ---- a batch ---------------------------------------------------------------------------------


def test_the_parts_worked_by_hand():
    x, weight, _, g = example("D").arrays()
    alone = [conv2d_backward(g[n : n + 1], x[n : n + 1], weight, groups=2)[1] for n in range(3)]
    planes = [each[0, 0] for each in alone]
    total = loops.grad_weight(g, x, D)[0, 0]
    assert np.array_equal(sum(planes), total)
    assert [plane[0, 0] for plane in planes] == [38, -9, -11] and total[0, 0] == 18
    alt = alt_text(PAGE, "parts(")
    for device, plane in enumerate(planes):
        assert f"Device {device}: {spoken(plane)}." in alt
    assert alt.endswith(f"gradient: {spoken(total)}.")
    words = pictures.parts().words()
    assert words.count("+") == 2 and words.count("=") == 1 and "−41" in words


def test_the_widget_sends_so_many_numbers_in_so_many_steps():
    widgets = pytest.importorskip("convgrad.widgets")
    shown = widgets.ShardSum(example("D"), devices=3)
    assert math.prod(D.weight_shape) + D.O == 78 and "78 numbers" in TEXT
    assert shown.steps == 1 + 2 * (3 - 1) + 1  # compute, agree, compare
    assert float(shown.agreed[0]) == 18
    assert "One step to compute, four to agree, and one to compare" in TEXT
    rows = widgets.ShardSum(example("B"), view="rows", devices=3)
    x, weight, _, g = example("B").arrays()
    for part, shard in zip(rows.parts, row_shards(B, 3), strict=True):
        assert np.array_equal(part.grad_input, part_of(g, x, weight, shard).grad_input)


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_any_size_add_up(seed):
    rng = np.random.default_rng(seed)
    shares = rng.integers(0, 3, size=rng.integers(1, 5)).tolist()
    geometry = replace(random_geometry(rng), N=sum(shares))
    draw = random_operands(geometry, rng)
    operands = draw.grad_output, draw.x, draw.weight
    parts = [part_of(*operands, each) for each in image_shards(geometry, shares)]
    assert np.array_equal(
        sum(part.grad_weight for part in parts), loops.grad_weight(*operands[:2], geometry)
    )


@pytest.mark.parametrize("shares", [(1, 1), (3, 2), (7, 6), (1, 2, 4), (5, 5, 5, 1)])
def test_the_factors_of_the_text_make_every_image_count_alike(shares):
    A, N = len(shares), sum(shares)
    of_a_mean = average_weights(shares, "mean", "average")
    for n, own in zip(shares, of_a_mean, strict=True):
        assert own * (A * n / N) == pytest.approx(1 / N)
    assert average_weights(shares, "sum", "average") * A == pytest.approx(np.ones(A))
    equal = len(set(shares)) == 1
    assert np.allclose(of_a_mean, 1 / N) == equal  # an average is right for equal parts only


def test_only_an_average_of_means_looks_nearly_right():
    counts = {
        (loss, combine): average_weights([3, 2], loss, combine)
        for loss in ("sum", "mean")
        for combine in ("sum", "average")
    }
    assert counts["sum", "sum"].tolist() == [1, 1]
    assert np.abs(counts["mean", "sum"] - 0.2).min() > 0.1
    off = counts["mean", "average"] - 0.2
    assert off[0] < 0 < off[1] and np.abs(off).max() < 0.051


# ---- the ring --------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [1, 2, 3, 5, 8])
def test_what_a_ring_sends(devices):
    size = 120 * devices
    assert numbers_sent(size, devices) == [2 * (devices - 1) * size // devices] * devices
    assert max(numbers_sent(size, devices)) < 2 * size


def test_the_layer_of_the_text_has_so_many_weights():
    assert f"{math.prod(F.weight_shape):,} weights" in TEXT


def test_the_bits_are_everywhere_the_same_and_not_those_of_one_order():
    rng = np.random.default_rng(1)
    floats = [rng.standard_normal(999).astype(np.float32) for _ in range(4)]
    last = ring_states(floats)[-1]
    assert all(np.array_equal(each, last[0]) for each in last)
    # a chunk is added up beginning with another device each: only one begins with device 0
    in_order = floats[0] + floats[1] + floats[2] + floats[3]
    different = [
        not np.array_equal(last[0][each.start : each.stop], in_order[each.start : each.stop])
        for each in deal(999, 4)
    ]
    assert different == [False, True, True, True]


# ---- rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_the_rows_read_and_shared_are_those_of_the_formulas(seed):
    rng = np.random.default_rng(seed)
    drawn = random_geometry(rng, padding_modes=("zeros",))
    geometry = replace(drawn, H=drawn.H + 3 * drawn.stride[0])
    shards = row_shards(geometry, 2 if geometry.OH > 1 else 1)
    stride, (top, _), span = geometry.stride[0], geometry.padding[0], geometry.span[0]
    ends = []
    for each in shards:
        first = stride * each.outputs.start - top
        last = stride * (each.outputs.stop - 1) + geometry.dilation[0] * (geometry.KH - 1) - top
        assert last - first + 1 == len(each.block)
        assert all(first <= h <= last for h in each.reads)
        ends.append((first, last))
    for (_, last), (first, _) in pairwise(ends):
        assert last - first + 1 == span - stride


def test_the_rows_of_the_picture():
    alt, words = alt_text(PAGE, "pictures.rows("), pictures.rows().words()
    shards = row_shards(B, 3)
    assert [list(each.owned) for each in shards] == [[0, 1], [2], [3, 4]]
    assert [each.halo for each in shards] == [(2,), (1, 3), (2,)]
    assert [each.reads for each in shards] == [(0, 1, 2), (1, 2, 3), (2, 3, 4)]
    for said in (
        "Device 0 owns rows 0 and 1, shaded, and reads rows 0 to 2",
        "Device 1 owns row 2 and reads rows 1 to 3; its halo is rows 1 and 3",
        "Device 2 owns rows 3 and 4 and reads rows 2 to 4; its halo is row 2",
    ):
        assert said in alt
    assert words.count("halo: 2") == 2 and words.count("halo: 1 and 3") == 1


def test_the_row_that_all_three_read():
    x, weight, _, g = example("B").arrays()
    parts = [part_of(g, x, weight, each).grad_input[0, 0, 2] for each in row_shards(B, 3)]
    total = loops.grad_input(g, weight, B)[0, 0, 2]
    assert np.array_equal(sum(parts), total)
    alt = alt_text(PAGE, "came_home(")
    assert f"From device 0: {spoken(parts[0][None])}." in alt
    assert f"From device 1, its owner: {spoken(parts[1][None])}." in alt
    assert f"From device 2: {spoken(parts[2][None])}." in alt
    assert alt.endswith(f"The sum: {spoken(total[None])}.")
    words = pictures.came_home().words()
    assert "device 1, its owner" in words and words.count("row 2 of ∂L/∂x") == 1


@pytest.mark.parametrize("strip", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("dilation", range(1, 9))
def test_what_is_borrowed_from_afar(strip, dilation):
    """The second derivation: strips of H/A rows, three taps, padding as wide as the dilation."""
    devices = 9
    sizes = {"H": strip * devices, "W": 3, "KH": 3, "KW": 1, "dilation": (dilation, 1)}
    geometry = ConvGeometry(C=1, O=1, padding=(dilation, 0), **sizes)
    assert geometry.OH == geometry.H
    if dilation + strip > 4 * strip:
        return  # beyond the upper edge: border, not rows
    inner = row_shards(geometry, devices, owned=devices)[4]
    above = [h for h in inner.halo if h < inner.owned.start]
    assert len(above) == min(dilation, strip)
    lenders = {h // strip for h in above}
    assert len(lenders) == (1 if dilation <= strip or dilation % strip == 0 else 2)


# ---- exercises -------------------------------------------------------------------------------


def told(key: str, function) -> str:
    verdict = exercises.get(key).check(function)
    assert not verdict.passed
    return verdict.message


def test_a_mean_of_means_is_told_so():
    for rule, words in (
        (lambda gradients, counts: gradients.mean(axis=0), "mean of the means"),
        (lambda gradients, counts: gradients.sum(axis=0), "count"),
        (lambda gradients, counts: np.einsum("a,aocij->ocij", counts, gradients), "sum over all"),
    ):
        assert words in told("devices-whole-mean", rule)


def test_a_row_that_is_overwritten_is_told_so():
    def overwritten(parts, starts, H):
        N, C, _, W = parts[0].shape
        return bank._overwritten(parts, starts, np.zeros((N, C, H, W)))

    assert "add with `+=`" in told("devices-bring-home", overwritten)


def test_a_border_that_is_kept_is_noticed():
    def wrapped(parts, starts, H):
        N, C, _, W = parts[0].shape
        grad = np.zeros((N, C, H, W))
        for part, start in zip(parts, starts, strict=True):
            for k in range(part.shape[2]):
                grad[:, :, (start + k) % H] += part[:, :, k]
        return grad

    told("devices-bring-home", wrapped)


def test_the_trials_bring_unequal_parts_and_borders():
    rng = np.random.default_rng(0)
    counts = [trial.arguments[1] for trial in bank._mean_trials(rng)]
    assert any(0 in each for each in counts) and sum(len(set(each)) > 1 for each in counts) >= 3
    trials = list(bank._home_trials(rng))
    assert any(min(trial.arguments[1]) < 0 for trial in trials)
    below = [
        start + part.shape[2] > trial.arguments[2]
        for trial in trials
        for part, start in zip(*trial.arguments[:2], strict=True)
    ]
    assert any(below)
