"""*Split-K, atomics and why two runs differ* tells the truth: its numbers, pictures, mistakes."""

from __future__ import annotations

import math
import re
from itertools import permutations

import numpy as np
import pytest
from pages import alt_text, cells
from test_exercises import solution

from convgrad import ConvGeometry, example, exercises, loops
from convgrad.checks import random_operands
from convgrad.exercises.split_k import three_digits
from convgrad.implicit import left, right
from convgrad.rounding import arrivals, noise, running_sums, share_sums
from convgrad.schedule import Schedule, Tile

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import split_k as pictures
from convgrad.figures.grids import written

PAGE = "split_k"
LAYER = example("F").geometry
NINE = {"tile": (1, 16, 1), "splits": 9, "processors": 9}


def text() -> str:
    from pages import PAGES

    return PAGES[PAGE].read_text("utf-8")


# ---- tiles and time ------------------------------------------------------------------------------


def test_what_the_page_says_of_the_layer():
    few = Schedule(LAYER)
    assert (few.tiles, few.time, few.processors - few.last_wave) == (5, 3136, 127)
    assert "3,136 steps" in text() and "The other 127" in text()
    forward = Schedule(LAYER, "forward")
    assert forward.last_wave > 100, "all rows are full, or nearly"
    assert few.gemm.K == 32 * 56 * 56 == 100_352 and "100,352 products" in text()


def test_tiles_are_as_the_formula_says():
    for g in (LAYER, example("D").geometry, ConvGeometry(C=6, H=9, W=9, O=10, KH=3, KW=2)):
        for rows, columns in ((128, 128), (2, 4), (3, 7)):
            s = Schedule(g, tile=Tile(rows, columns, 8))
            down = math.ceil(g.OG / rows)
            across = math.ceil(g.CG * g.KH * g.KW / columns)
            assert s.tiles == g.groups * down * across


def test_26_shares_fill_a_wave_and_27_are_too_many():
    best, more = Schedule(LAYER, splits=26), Schedule(LAYER, splits=27)
    assert (best.programs, best.waves, best.time) == (130, 1, 121)
    assert (more.programs, more.waves, more.last_wave) == (135, 2, 3)
    assert 1.7 < more.time / best.time < 1.8, "three quarters longer"
    assert best.busy == pytest.approx(130 / 132, rel=0.01), "about 0.98, up to the last share"
    single = 133 / (2 * 132)
    assert single == pytest.approx(0.5, abs=0.01)


def test_a_wave_that_is_full_is_programs_over_processors():
    """The first derivation: without a rest, and in one wave."""
    s = Schedule(example("D").geometry, tile=Tile(2, 4, 3), splits=3, processors=50)
    assert s.steps % s.parts == 0 and s.waves == 1
    assert s.busy == s.programs / s.processors


def test_the_workspace_of_the_page():
    s = Schedule(LAYER, splits=26, two_passes=True)
    assert s.workspace == 4 * 26 * 64 * 64 * 9
    assert 3 < s.workspace / 2**20 < 4, "a few megabytes"


# ---- the worked example --------------------------------------------------------------------------


def test_the_three_shares_of_one_tap():
    shares = pictures.products().sum(axis=1)
    assert shares.tolist() == [4, 0, 5]
    grad = loops.grad_weight(
        example("B").arrays().grad_output, example("B").arrays().x, example("B").geometry
    )
    assert shares.sum() == grad[0, 0, 1, 2] == 9
    alt = alt_text(PAGE, "pictures.three_shares(")
    rows = ", ".join(" ".join(map(written, row)) for row in pictures.products())
    assert f"The nine products: {rows}" in alt
    assert "A share for each row: 4, 0, 5. Added: 9." in alt
    words = pictures.three_shares().words()
    assert {"shares", "products", "9", "5"} <= set(words)


def test_shares_of_three_windows_are_rows_of_windows():
    s = Schedule(example("B").geometry, tile=Tile(1, 9, 3), splits=3)
    assert (s.parts, s.share, s.programs) == (3, 1, 3)


def test_a_machine_with_three_digits():
    def total(order):
        result = 0.0
        for term in order:
            result = three_digits(result + term)
        return result

    assert total((1000, 4, 4)) == 1000
    assert total((4, 4, 1000)) == 1010
    assert {total(order) for order in permutations((1000, 2, 2))} == {1000}


def test_the_two_runs_of_the_page():
    pytest.importorskip("anywidget")
    from convgrad.widgets import ThreadGrid

    assert 'ThreadGrid(example("B"), view="runs", cell=(0, 0, 5), **nine)' in text()
    grid = ThreadGrid(example("B"), view="runs", cell=(0, 0, 5), **NINE)
    first, second = grid.results
    steps = abs(first - second) / np.spacing(min(first, second))
    assert steps == 1, "neighbouring numbers"
    assert float(first) != 0.09 and float(second) != 0.09
    grid.two_passes = True
    assert grid.results[0] == grid.results[1]


# ---- twenty runs ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs():
    numbers = {name: noise(name) for name in ("grad_output", "x")}
    split = Schedule(LAYER, splits=26)
    shares = share_sums(split, numbers, 0, 0, 0)
    ends = [running_sums(shares, arrivals(split, 0, seed))[-1] for seed in range(20)]
    k = np.arange(split.gemm.K)
    a, b = left(LAYER, "weight", 0, 0, k), right(LAYER, "weight", 0, k, 0)
    x = np.where(b < 0, 0, numbers["x"](b)).astype(float)
    exact = math.fsum(numbers["grad_output"](a).astype(float) * x)
    return shares, np.array(ends), exact, share_sums(Schedule(LAYER), numbers, 0, 0, 0)[0]


def test_twenty_runs_lie_close_together(runs):
    _, ends, _, _ = runs
    assert len(set(ends.tolist())) >= 5
    steps = (ends.max() - ends.min()) / np.spacing(abs(ends).min())
    assert steps < 30


def test_the_split_sums_are_closer_than_the_long_one(runs):
    _, ends, exact, unsplit = runs
    assert max(abs(ends - exact)) < abs(unsplit - exact)


def test_rounded_before_they_meet_is_worse_than_at_the_end(runs):
    shares, _, exact, _ = runs
    early = running_sums(shares.astype(np.float16), range(26))[-1]
    late = running_sums(shares, range(26))[-1].astype(np.float16)
    assert abs(early - exact) > abs(float(late) - exact)
    assert abs(shares).max() < abs(exact) * 2


# ---- the kernels ---------------------------------------------------------------------------------


@pytest.mark.oracle
def test_launched_twice_the_shares_are_there_twice():
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton", reason="Triton is not installed; it is made for Linux alone")
    from convgrad.kernels import split_k
    from convgrad.kernels.blocks import blocks, split
    from convgrad.kernels.device import CARD
    from convgrad.kernels.tiles import count

    g = example("D").geometry
    device = "cuda" if CARD else "cpu"
    arrays = example("D").arrays()
    x, upstream = (
        torch.from_numpy(each).float().to(device) for each in (arrays.x, arrays.grad_output)
    )
    once = split_k.launch(upstream, x, g, splits=2)
    made = torch.zeros_like(once)
    M, N, _ = blocks(g.OG, g.CG * g.KH * g.KW, g.N * g.OH * g.OW)
    tiles = count(g, M, N)
    parts, share, K = split(g, tiles, 2)
    assert parts == 2
    for times in (1, 2):
        split_k.split_k[tiles, parts](upstream, x, made, g, M, N, K, share)
        assert torch.equal(made, times * once)


def test_the_sources_that_are_shown_are_those_of_the_ladder():
    for name in ("split_k", "two_pass"):
        assert f"kernels/{name}.py" in text()
    from convgrad.exercises import split_k

    assert {each.key for each in split_k.EXERCISES} <= set(
        re.findall(r'exercises\.get\("([\w-]+)"\)', text())
    )


# ---- exercises -----------------------------------------------------------------------------------

BENT = {
    "split-write-shares": {
        "begin each from 0": ("np.reshape(pages,", "np.reshape(np.cumsum(pages, 0),"),
        "opposite order": ("np.reshape(pages,", "np.reshape(pages[::-1],"),
        "whole gradient": ("G[:, k : k + size] @ X[k : k + size]", "G @ X"),
        "Round the length": ("-(-G.shape[1] // parts)", "G.shape[1] // parts"),
    },
    "split-write-order": {
        r"write \+=": ("total +=", "total ="),
        "last share is missing": ("for part in order:", "for part in sorted(order)[:-1]:"),
        "after the first": ("    return total", "        return total"),
    },
}


@pytest.mark.parametrize(
    ("key", "words"), [(key, words) for key, each in BENT.items() for words in each]
)
def test_a_mistake_in_shares_gets_its_own_words(key, words):
    found, bent = BENT[key][words]
    exercise = exercises.get(key)
    assert found in exercise.solution
    scope = {"np": np}
    exec(exercise.solution.replace(found, bent), scope)
    answer = scope["shares" if "shares" in key else "grad_weight"]
    messages = {exercise.check(answer).message for _ in range(4)}  # new numbers each time
    assert all(messages)
    assert any(re.search(words, message) for message in messages), messages


def test_a_mistake_is_never_the_right_answer():
    for key in BENT:
        exercise = exercises.get(key)
        for trial in exercise.trials(np.random.default_rng(1)):
            for wrong, sentence in trial.mistakes:
                assert wrong.shape == trial.expected.shape
                assert sentence[0].islower() and sentence.endswith(".")
        assert exercise.check(solution(exercise)).passed


def test_more_shares_than_windows_leave_empty_pages():
    rule = solution(exercises.get("split-write-shares"))
    _, x, _, g = random_operands(
        ConvGeometry(N=1, C=2, H=4, W=4, O=3, KH=3, KW=3), np.random.default_rng(3)
    )
    pages = rule(g, x, (3, 3), 7)
    assert pages.shape == (7, 3, 2, 3, 3)
    geometry = ConvGeometry.of(x.shape, (3, 2, 3, 3))
    assert np.array_equal(pages.sum(0), loops.grad_weight(g, x, geometry))


def test_every_mistake_of_the_page_is_run():
    boxes = re.findall(r"```\{admonition\} ([^\n]*)\n:class: cg-wrong", text())
    assert len(boxes) == 4
    assert len([code for options, code in cells(PAGE) if "shows-failure" in options]) == 1
