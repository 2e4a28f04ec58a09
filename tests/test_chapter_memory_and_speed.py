"""*Memory and speed* tells the truth: its numbers, pictures, and what it says of measurements."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import alt_text, cells
from test_exercises import solution

from convgrad import IMPLEMENTATIONS, ConvGeometry, blocked, example, exercises, loops
from convgrad.checks import random_operands
from convgrad.costs import intensity, operations, traffic
from convgrad.im2col import column_numbers, unfold
from convgrad.mutants import MUTANTS

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import memory_and_speed as pictures
from convgrad.figures.grids import written

PAGE = "memory_and_speed"
RECORD = json.loads((Path(__file__).parents[1] / "benchmarks" / "layers.json").read_text("utf-8"))
DENSE = ConvGeometry(N=8, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1)


def numbers_of_x(geometry: ConvGeometry) -> int:
    return math.prod(geometry.x_shape)


# ---- memory --------------------------------------------------------------------------------------


def test_the_bars_of_the_first_picture():
    image = ConvGeometry(C=1, H=6, W=6, O=1, KH=3, KW=3, padding=1)
    larger = replace(image, KH=5, KW=5, padding=2)
    smaller = replace(image, KH=1, KW=1, padding=0)
    for geometry, times in ((image, 9), (replace(image, stride=2), 2.25), (larger, 25)):
        assert column_numbers(geometry) / numbers_of_x(geometry) == times
    assert column_numbers(smaller) == numbers_of_x(smaller)


def test_the_layer_of_resnet():
    layer = example("F").geometry
    assert 4 * numbers_of_x(layer) / 2**20 == 24.5
    assert 4 * column_numbers(layer) / 2**20 == 220.5


def test_what_the_ways_keep():
    layer = example("F").geometry
    ways = {name: IMPLEMENTATIONS[name].working_set(layer) for name in ("windows", "im2col")}
    assert ways["windows"].grad_weight < ways["im2col"].grad_weight / 4  # "small where it looks"
    assert ways["windows"].grad_input == ways["im2col"].grad_input  # "as large as im2col"
    assert max(blocked.working_set(layer)) < min(ways["im2col"]) / 4


# ---- operations and bytes ------------------------------------------------------------------------


def test_the_layer_by_hand():
    geometry = example("B").geometry
    assert operations(geometry) == 2 * 81 == 162
    assert traffic(geometry) == 4 * (25 + 9 + 9)
    assert 4.5 < traffic(geometry, columns=True) / traffic(geometry) < 5  # "nearly five times"


@pytest.mark.parametrize("channels", [8, 64])
def test_the_intensity_of_a_large_layer(channels):
    """The two exercises of Derive; a large batch, so that the weights hardly count."""
    many = ConvGeometry(N=10**6, C=channels, H=8, W=8, O=2 * channels, KH=3, KW=3, padding=1)
    C, O = many.C, many.O
    assert intensity(many) == pytest.approx(9 * C * O / (2 * (C + O)), rel=1e-3)
    equal = replace(many, O=channels)
    assert intensity(equal) == pytest.approx(9 * channels / 4, rel=1e-3)
    alone = replace(equal, groups=channels)
    assert intensity(alone) == pytest.approx(9 / 4, rel=1e-3)
    times = traffic(equal, columns=True) / traffic(equal)
    assert times == pytest.approx(1 + 9, rel=1e-3)


# ---- the roof ------------------------------------------------------------------------------------


def test_the_roof_is_the_lowest_that_fits():
    roof = pictures.roof(RECORD)
    points = pictures.points(RECORD)
    assert len(points) == 3 * len(RECORD["layers"])
    for point in points:
        assert point.rate <= roof.over(point.intensity) * (1 + 1e-12)
    for lower in (
        roof._replace(peak=0.99 * roof.peak),
        roof._replace(bandwidth=0.99 * roof.bandwidth),
    ):
        assert any(point.rate > lower.over(point.intensity) for point in points)
    assert roof.over(roof.ridge) == pytest.approx(roof.peak)


def test_a_mark_is_operations_over_the_time_that_is_kept():
    name = "3×3, 64 @56"
    row = RECORD["layers"][name]
    (point,) = (p for p in pictures.points(RECORD) if (p.layer, p.who) == (name, "fast"))
    took = row["contestants"]["fast"]["milliseconds"] / 1e3
    assert ConvGeometry(**row["geometry"]) == DENSE
    assert point.rate == pytest.approx(2 * operations(DENSE) / took / 1e9)
    assert point.intensity == intensity(DENSE)


def test_what_the_page_says_of_the_five_layers():
    found = {(p.layer, p.who): p for p in pictures.points(RECORD)}
    roof = pictures.roof(RECORD)
    pairs = [(found[name, "im2col"], found[name, "fast"]) for name in pictures.LAYERS]
    for number, (theirs, ours) in enumerate(pairs, start=1):
        if number == 3:  # no columns are written
            assert theirs.intensity == ours.intensity
            continue
        assert theirs.intensity < ours.intensity and theirs.rate < ours.rate
    for theirs, _ in pairs[:2]:  # "at the slope or near it"
        assert theirs.rate > 0.6 * roof.over(theirs.intensity)
        assert theirs.intensity < roof.ridge
    slower = [ours.rate / theirs.rate for theirs, ours in pairs]
    assert slower[1] > slower[3] > slower[4]  # "compare layers 2, 4 and 5"
    assert slower[2] < min(slower[:2])
    assert [ours.intensity for _, ours in pairs] == sorted(ours.intensity for _, ours in pairs)


def test_the_roofline_has_a_mark_for_each_and_numbers_for_five():
    figure = pictures.roofline(RECORD)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    for who in ("fast", "im2col", "PyTorch"):
        assert len(lines[who].get_xdata()) == len(pictures.LAYERS)
    words = figure.words()
    assert [words.count(str(number)) for number in (2, 3, 4)] == [2, 2, 2]
    assert {"fast", "im2col", "PyTorch", "operations per byte"} <= set(words)
    low, high = figure.axes[0].get_xlim()
    bottom, top = figure.axes[0].get_ylim()
    for point in pictures.points(RECORD):
        if point.layer in pictures.LAYERS:
            assert low < point.intensity < high and bottom < point.rate < top


def test_what_the_page_says_of_the_table():
    ratios, kept = {}, {}
    for name, row in RECORD["layers"].items():
        who = row["contestants"]
        ratios[name] = who["im2col"]["milliseconds"] / who["fast"]["milliseconds"]
        kept[name] = who["im2col"]["working_megabytes"]
        geometry = ConvGeometry(**row["geometry"])
        columns = 4e-6 * column_numbers(geometry)
        assert kept[name] > 0.95 * columns  # "you can find it again in the second"
    even = [name for name, ratio in ratios.items() if ratio < 1.1]
    assert len(even) >= 2
    for name in even:  # "so much to do for each byte"
        geometry = ConvGeometry(**RECORD["layers"][name]["geometry"])
        assert intensity(geometry, columns=True) > 50


# ---- blocks --------------------------------------------------------------------------------------


def test_the_three_blocks_of_one_tap():
    x, _, _, g = example("B").arrays()
    U = unfold(x, example("B").geometry)[0]
    shares = [U[5, 3 * p : 3 * p + 3] @ g[0, 0, p] for p in range(3)]
    assert sum(shares) == loops.grad_weight(g, x, example("B").geometry)[0, 0, 1, 2] == 9
    alt = alt_text(PAGE, "pictures.blocks(")
    for p, share in enumerate(shares):
        column, upstream = (
            " ".join(map(written, row)) for row in (U[5, 3 * p : 3 * p + 3], g[0, 0, p])
        )
        assert f"Rows {p} to {p + 2} of x" in alt
        assert re.search(rf"{column}, times {upstream},\s+adds {written(share)}\b", alt), p
    options = next(options for options, code in cells(PAGE) if "pictures.blocks(" in code)
    assert " and ".join(map(written, shares)) in options
    assert {"adds", "a block", "4", "0", "5"} <= set(pictures.blocks().words())


def lesson():
    (code,) = (code for options, code in cells(PAGE) if "lesson" in options)
    scope = {"np": np}
    exec(code, scope)
    return scope["blocked_grad_weight"]


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_the_blocked_gradient_of_the_page(rows):
    rng = np.random.default_rng(rows)
    how = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
    geometry = ConvGeometry(N=2, C=3, H=11, W=9, O=4, KH=3, KW=2, **how)
    _, x, _, g = random_operands(geometry, rng)
    assert np.array_equal(lesson()(g, x, geometry, rows), loops.grad_weight(g, x, geometry))


def test_the_blocks_the_page_lists():
    whole = blocked.everything(DENSE)
    cut = list(blocked.blocks(DENSE, whole, slice(0, DENSE.N), itemsize=4))
    rows = [block.rows.stop - block.rows.start for block in cut]
    size = 4 * DENSE.C * 9 * DENSE.OW * max(rows)
    assert blocked.SMALLEST <= size <= blocked.LARGEST
    assert sum(rows) == DENSE.N * DENSE.OH
    cut_layer = ConvGeometry(N=2, C=32, H=40, W=40, O=24, KH=3, KW=3, padding=1)
    blocks = blocked.blocks(cut_layer, blocked.everything(cut_layer), slice(0, 2), itemsize=8)
    assert len(list(blocks)) > cut_layer.N  # "a layer that is cut"


# ---- mistakes ------------------------------------------------------------------------------------


def test_never_read_never_written():
    skips = ConvGeometry(C=1, H=4, W=4, O=1, KH=1, KW=1, stride=2)
    g, weight = np.array([[[[1.0, 2], [3, 4]]]]), np.full((1, 1, 1, 1), 3.0)
    wrong = MUTANTS["buffer_prefilled"](g, weight, skips)[0, 0]
    right = loops.grad_input(g, weight, skips)[0, 0]
    assert (right == 0).sum() == 12
    assert (wrong[right == 0] == 5).all() and (wrong[right != 0] == right[right != 0]).all()


# ---- exercises -----------------------------------------------------------------------------------

BENT = {
    "memory-blocked-weight": {
        "share of the last block": ("total += np", "total = np"),
        "first rows of grad_output": (
            "grad_output[:, :, first : first + rows]",
            "grad_output[:, :, : len(seen[0, 0, first : first + rows])]",
        ),
        "after the first block": ("    return total", "        return total"),
    },
    "memory-blocked-input": {
        "overwritten": ("] += made", "] = made"),
        "laid at the top": ("sh * p + dh * i", "dh * i"),
        "dilation": ("dh * i :: sh, dw * j :: sw", "i :: sh, j :: sw"),
        "turned": ("made[..., i, j]", "made[..., ::-1, ::-1][..., i, j]"),
    },
}


@pytest.mark.parametrize(
    ("key", "words"), [(key, words) for key, each in BENT.items() for words in each]
)
def test_a_mistake_in_blocks_gets_its_own_words(key, words):
    right, wrong = BENT[key][words]
    exercise = exercises.get(key)
    assert right in exercise.solution
    scope = {"np": np}
    exec(exercise.solution.replace(right, wrong), scope)
    verdict = exercise.check(scope["grad_weight" if "weight" in key else "grad_input"])
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def test_a_mistake_is_never_the_right_answer():
    for key in BENT:
        exercise = exercises.get(key)
        for trial in exercise.trials(np.random.default_rng(1)):
            for wrong, sentence in trial.mistakes:
                assert wrong.shape == trial.expected.shape
                assert sentence[0].islower() and sentence.endswith(".")
        assert exercise.check(solution(exercise)).passed


def test_a_block_as_large_as_all_is_right_too():
    rule = solution(exercises.get("memory-blocked-weight"))
    _, x, _, g = random_operands(
        ConvGeometry(N=2, C=2, H=6, W=5, O=3, KH=2, KW=3), np.random.default_rng(3)
    )
    for rows in (1, 4, 5, 100):
        geometry = ConvGeometry.of(x.shape, (3, 2, 2, 3))
        assert np.array_equal(rule(g, x, (2, 3), rows), loops.grad_weight(g, x, geometry))
