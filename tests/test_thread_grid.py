"""The Python side of ThreadGrid: its traits, a browser's messages, its fallback."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say

from convgrad.examples import example
from convgrad.geometry import ConvGeometry, GeometryError, ShapeError
from convgrad.implicit import result
from convgrad.schedule import Schedule, Tile
from convgrad.widgets import ThreadGrid
from convgrad.widgets.base import STATIC
from convgrad.widgets.thread_fallback import figures, percent, size


@pytest.fixture
def grid() -> ThreadGrid:
    return ThreadGrid(example("D"))


def test_example_d_is_shown_when_nothing_is_given() -> None:
    grid = ThreadGrid()
    assert grid.geometry == example("D").geometry
    assert (grid.numbers, grid.tile, grid.processors, grid.splits) == ("D", [2, 4, 4], 4, 1)
    assert [preset["letter"] for preset in grid.presets] == ["B", "C", "D", "F"]
    assert "x" not in grid.presets[-1], "50 MB of numbers stay where they are"
    for name, array in grid.arrays.items():
        np.testing.assert_array_equal(array, getattr(example("D").arrays(), name))


def test_its_schedule_is_the_models(grid: ThreadGrid) -> None:
    assert grid.schedule == Schedule(grid.geometry, tile=Tile(2, 4, 4), processors=4)
    assert grid.steps == grid.schedule.time == 21
    grid.target, grid.splits = "input", 2
    assert grid.schedule.target == "input" and grid.schedule.parts == 2


def test_a_large_layer_comes_with_large_tiles_and_no_numbers() -> None:
    grid = ThreadGrid(example("F"), step=None)
    assert (grid.tile, grid.processors, grid.step) == ([128, 128, 32], 132, 3136)
    assert grid.arrays is None
    grid.splits = 26
    assert grid.step == 121, "fewer steps, and none beyond the last"
    assert len(grid.shares) == 26
    same = ThreadGrid(example("F").geometry, splits=26)
    assert same.schedule == grid.schedule
    np.testing.assert_array_equal(same.shares, grid.shares)
    assert ThreadGrid(example("E")).arrays is None


def test_from_a_small_layer_to_a_large_one_and_back(grid: ThreadGrid) -> None:
    grid.target = "forward"  # with small tiles F would make 800,000 programs
    grid.geometry = example("F").geometry
    assert (grid.tile, grid.processors) == ([128, 128, 32], 132)
    grid.geometry = example("B").geometry
    assert (grid.tile, grid.processors) == ([2, 1, 4], 4)
    grid.load(example("F"))
    assert grid.numbers == "F" and grid.schedule.tiles == 784


def test_own_arrays_are_shown() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.integers(-3, 4, (2, 4, 6, 5)), rng.integers(-3, 4, (4, 2, 3, 3))
    grid = ThreadGrid(x, weight, padding=1, groups=2, cell=(1, 1, 3), splits=3, tile=(2, 4, 1))
    assert grid.numbers == "own"
    np.testing.assert_array_equal(grid.arrays["x"], x)
    grad = np.zeros(grid.geometry.weight_shape)
    from convgrad import loops

    grad = loops.grad_weight(grid.arrays["grad_output"] / 10, x / 10, grid.geometry).ravel()
    assert grid.results[0] == pytest.approx(grad[result(grid.geometry, "weight", 1, 1, 3)])


def test_two_runs_differ_by_atomics_and_agree_in_two_passes() -> None:
    grid = ThreadGrid(example("D"), view="runs", tile=(2, 4, 1), splits=9, processors=64)
    assert grid.steps == 9
    differ = 0
    for row in range(3):
        for col in range(12):
            grid.cell = [0, row, col]
            grid.two_passes = False
            first, second = grid.results
            differ += first != second
            assert first == pytest.approx(second, rel=1e-4, abs=1e-6)
            grid.two_passes = True
            assert grid.results[0] == grid.results[1]
    assert differ >= 10
    assert grid.steps == 18, "they arrive, and then they are added"
    grid.two_passes, grid.splits = False, 2
    assert all(grid.results[0] == grid.results[1] for grid.seed in range(20)), "a + b is b + a"


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((example("D"),), {"tile": (0, 4, 4)}, ValueError, "at least 1"),
        ((example("D"),), {"view": "space"}, Exception, "view"),
        ((example("F"),), {"tile": (1, 1, 32)}, ValueError, "36,864 programs: the thread grid"),
        ((example("D"),), {"speed": 0}, ValueError, "steps a second"),
        ((np.zeros((0, 1, 5, 5)), np.zeros((1, 1, 3, 3))), {}, ShapeError, "N = 0"),
        ((np.zeros((1, 4, 5, 5)), np.zeros((6, 2, 3, 3))), {"groups": 3}, GeometryError, "divide"),
        ((ConvGeometry(N=10**6, C=64, H=56, W=56, O=64, KH=3, KW=3),), {}, ShapeError, "fewer"),
        ((example("B").geometry,), {"padding": 1}, TypeError, "a geometry has its own"),
    ],
)
def test_bad_input_is_refused_in_words(
    arguments: tuple, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ThreadGrid(*arguments, **options)


def test_what_does_not_exist_becomes_the_nearest_that_does(grid: ThreadGrid) -> None:
    grid.watched, grid.cell, grid.step = 99, [7, 7, 77], 999
    assert (grid.watched, grid.cell, grid.step) == (3, [1, 2, 11], 21)
    grid.processors, grid.splits = 1000, 0
    assert (grid.processors, grid.splits) == (256, 1)
    grid.processors = 2
    assert grid.watched == 1
    grid.geometry = example("B").geometry
    assert grid.cell == [0, 0, 8]


def test_a_turned_knob_arrives(grid: ThreadGrid) -> None:
    say(grid, tile=[4, 8, 2], step=0)
    say(grid, splits=3, two_passes=True, view="runs", step=0)
    assert grid.schedule.parts == 3 and grid.steps == 6
    say(grid, step=6, watched=2, cell=[1, 0, 4], seed=5)
    assert (grid.step, grid.watched, grid.cell, grid.seed) == (6, 2, [1, 0, 4], 5)
    g = example("F").geometry
    say(grid, geometry=g.as_dict(), numbers="F", tile=[128, 64, 32], processors=108, splits=1)
    assert (grid.geometry, grid.tile, grid.processors) == (g, [128, 64, 32], 108)


def test_too_many_programs_are_refused_as_a_whole(grid: ThreadGrid) -> None:
    say(grid, geometry=example("F").geometry.as_dict(), tile=[1, 1, 1], splits=1)
    assert "programs: the thread grid draws up to" in grid.complaint
    assert grid.geometry == example("D").geometry and grid.tile == [2, 4, 4]
    say(grid, splits=2)
    assert grid.complaint == ""


@pytest.mark.parametrize("letter", "BCDF")
@pytest.mark.parametrize("splits", [1, 26])
def test_the_fallback_draws_every_multiprocessor_and_says_the_figures(
    letter: str, splits: int
) -> None:
    grid = ThreadGrid(example(letter), splits=splits)
    outline = Outline(grid.fallback)
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert svg["role"] == "img"
    assert example(letter).geometry.describe() in svg["aria-label"]
    assert f"{grid.processors} multiprocessors" in svg["aria-label"]
    bars = [attrs for tag, attrs in outline.seen if tag == "rect"]
    working = {run.processor for run in grid.schedule.runs}
    assert len(bars) == len(working)
    words = outline.text["p"]
    for name, count in figures(grid.schedule):
        assert f"{name}: {count}" in words
    assert re.search(r"[\d.]+ % of all multiprocessors", words)


def test_percent_is_never_rounded_to_all_or_nothing() -> None:
    assert [percent(share) for share in (0, 1e-9, 0.05, 0.5, 0.9999, 1)] == [
        "0 %",
        "0.1 %",
        "5 %",
        "50 %",
        "99 %",
        "100 %",
    ]
    assert size(1023) == "1,023 B".replace(",", "")


def test_the_bundle_is_there_and_reads_traits_that_exist() -> None:
    assert (STATIC / "thread_grid.css").stat().st_size > 0
    assert (STATIC / "thread_grid.js").stat().st_size <= 40_000
    traits = set(ThreadGrid.class_traits(sync=True))
    assert {"geometry", "numbers", "tile", "splits", "processors", "watched", "cell"} <= traits
