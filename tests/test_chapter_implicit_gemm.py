"""*Implicit GEMM* tells the truth: its sizes, its step by hand, its holes, its exercises."""

from __future__ import annotations

import re
from math import ceil, prod

import numpy as np
import pytest
from pages import BOOK, alt_text, spoken
from test_exercises import solution

from convgrad import ConvGeometry, example, exercises, im2col, loops
from convgrad.checks import random_geometry
from convgrad.exercises import implicit_gemm as bank
from convgrad.implicit import gemm, left

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import implicit_gemm as pictures
from convgrad.figures.grids import written

PAGE = "implicit_gemm"
TEXT = (BOOK / "part6" / "implicit_gemm.md").read_text("utf-8")


# ---- one step by hand ------------------------------------------------------------------------


def test_the_step_worked_by_hand():
    step = pictures.step_of(4)
    x, _, _, g = example("D").arrays()
    assert step.k.tolist() == [16, 17, 18, 19]
    for at, k in enumerate(step.k):
        n, p, q = np.unravel_index(k, (3, 3, 3))
        assert step.g[1, at] == g[n, 1, p, q]
        assert step.x[at, 1] == x[n, 0, p + 0, q + 1]  # column 1 is tap (0, 1) of channel 0
    assert (step.before[1, 1], step.after[1, 1]) == (-19, -34)
    assert step.g[1] @ step.x[:, 1] == -34 + 19
    last = pictures.step_of(6)  # a block that is not full
    assert len(last.k) == 3
    right = loops.grad_weight(g, x, example("D").geometry).reshape(6, 12)[:2, :4]
    assert np.array_equal(last.after, right)


def test_the_step_in_words():
    step, alt = pictures.step_of(), alt_text(PAGE, "pictures.one_step(")
    assert f"before, with {written(step.before[1, 1])} lit" in alt
    assert alt.count(f"with {written(step.share[1, 1])} lit") == 2
    assert f"row 1 lit: {spoken(step.g[1:2])}." in alt
    assert f"column 1 lit: {spoken(step.x[:, 1:2].T)}." in alt
    assert alt.endswith(f"after, with {written(step.after[1, 1])} lit.")
    words = pictures.one_step().words()
    assert {"tile before", "G", "X", "share", "tile after", "k = 16 … 19"} <= set(words)


@pytest.mark.parametrize("step", [5])
def test_the_picture_at_the_top_shows_this_step(step):
    widgets = pytest.importorskip("convgrad.widgets")
    grid = widgets.ThreadGrid(example("D"), view="loop", step=step)
    assert tuple(grid.tile) == (2, 4, 4) and grid.watched == 0
    assert f'ThreadGrid(example("D"), view="loop", step={step})' in TEXT
    first = grid.schedule.program(0)
    assert (first.group, first.row, first.col, first.first) == (0, 0, 0, 0)
    assert first.end == 7  # "After seven steps the tile is done."


# ---- sizes -----------------------------------------------------------------------------------


def test_the_layer_has_few_tiles_and_long_sums():
    layer = example("F").geometry
    tiles = {}
    for target in ("forward", "weight", "input"):
        M, N, K, _ = gemm(layer, target)
        assert prod(layer.output_shape) * 576 == M * N * K
        tiles[target] = ceil(M / 128) * ceil(N / 128), K
    assert tiles == {"forward": (784, 576), "input": (784, 576), "weight": (5, 100_352)}
    assert "five programs of 100,352 terms" in TEXT


def test_what_the_second_picture_plays():
    widgets = pytest.importorskip("convgrad.widgets")
    grid = widgets.ThreadGrid(example("F"))
    assert (grid.schedule.tiles, grid.processors) == (5, 132)  # "Five … and 127 have nothing to do"
    grid.target = "forward"
    assert grid.schedule.waves == 6 and grid.schedule.busy > 0.95
    grid.target, grid.tile = "weight", [32, 32, 32]
    assert grid.schedule.tiles == 36


def test_the_last_layers_have_more_tiles_for_the_weight_gradient():
    last = ConvGeometry(N=32, C=512, H=7, W=7, O=512, KH=3, KW=3, padding=1)
    forward, weight = gemm(last, "forward"), gemm(last, "weight")
    assert (forward.M, weight.N) == (1568, 4608)
    assert "1,568/4,608" in TEXT
    assert 0.3 < forward.M * forward.N / (weight.M * weight.N) < 0.36
    assert forward.K / weight.K == weight.N / forward.M


def test_a_tile_of_another_shape():
    assert (32 + 128) / (64 + 64) == 1.25 and 32 * 128 == 64 * 64


# ---- holes -----------------------------------------------------------------------------------


def test_the_row_with_holes():
    row, weight, g, found = pictures.one_row()
    x_grad = loops.grad_input(
        g.reshape(row.output_shape), weight.reshape(row.weight_shape), row
    ).ravel()
    assert (found < 0).sum() == 12 and found.size == 21
    alt = alt_text(PAGE, "readers(")
    assert alt.endswith(f"equals ∂L/∂x: {spoken(x_grad[None])}.")
    assert f"Times the kernel {spoken(weight[None])}" in alt
    for q, value in enumerate(g):
        places = np.argwhere(found == q).tolist()
        told = re.search(rf"g {written(value)} in (.*?)(?:;|\. The)", alt)[1]
        said = [[int(v), int(j)] for v, j in re.findall(r"row (\d), column (\d)", told)]
        assert said == places and f"(q {q})" in told


def test_the_share_of_holes():
    for stride in (1, 2, 4):
        of = ConvGeometry(C=1, H=48, W=48, O=1, KH=4, KW=4, stride=stride)
        found = left(of, "input", 0, np.arange(48 * 48)[:, None], np.arange(16))
        assert (found < 0).mean() == pytest.approx(bank.holes(of))
        assert (found < 0).mean() == pytest.approx(1 - 1 / stride**2, abs=0.13)


def test_what_c_makes_of_the_division():
    """The formula of the box, held to a search, for every row of many sizes."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        of = random_geometry(rng, padding_modes=("zeros",))
        if of.dilation[0] > 1 or of.padding[0][0]:
            continue
        for h in range(of.H):
            reads = [p for p in range(of.OH) if 0 <= h - of.stride[0] * p < of.KH]
            if reads:
                assert max((h - of.KH) // of.stride[0] + 1, 0) == reads[0]


# ---- exercises -------------------------------------------------------------------------------


def test_the_answers():
    answers = {
        "implicit-sizes": [[3, 12, 27]],
        "implicit-address": [[1, 4, 3]],
        "implicit-tiles": [[98, 18]],
    }
    for key, answer in answers.items():
        assert np.array_equal(exercises.get(key).answer, answer)
    assert tuple(exercises.get("implicit-sizes").answer[0]) == gemm(example("D").geometry)[:3]
    for target, at in (("forward", 0), ("weight", 1)):
        M, N, _, _ = gemm(bank._LAYER, target)
        assert ceil(M / 128) * ceil(N / 128) == answers["implicit-tiles"][0][at]
    assert exercises.get("implicit-per-number").answer == 48


def test_the_address_is_im2cols():
    geometry = example("C").geometry
    x = np.arange(prod(geometry.x_shape), dtype=float).reshape(geometry.x_shape)
    matrix = bank._matrix(x, geometry)
    for k, r in np.ndindex(matrix.shape):
        n, h, v = bank._where(k, r)
        assert matrix[k, r] == x[n, 0, h, v]
    columns = im2col.unfold(x, geometry)
    assert matrix[10, 7] == columns[1, 7, 4]


BENT = {
    "implicit-load": {
        "beyond the matrix": (
            "mask = (n < N) & (c < C) & (0 <= h)",
            "n, c = np.minimum(k, N * OH * OW - 1) // (OH * OW), np.minimum(c, C - 1)\n"
            "    mask = (0 <= h)",
        ),
        "channel changes last": ("c, i, j = r // (KH * KW), r // KW % KH, r % KW", "{channel}"),
        "q changes first": ("n, p, q = k // (OH * OW), k // OW % OH, k % OW", "{down}"),
        "other end": ("(0 <= h) & (h < H) & (0 <= v) & (v < W)", "True\n    h, v = h % H, v % W"),
        "stride": ("geometry.source(p, q, i, j)", "(p + i, q + j)"),
    },
    "implicit-program": {
        "they add|blocks add": ("] += g @ seen", "] = g @ seen"),
        "first K terms": ("range(0, len(X), K)", "range(0, min(K, len(X)), K)"),
        "round the number of steps up": ("range(0, len(X), K)", "range(0, len(X) // K * K, K)"),
        "row by row": (
            "a, b = divmod(number, across)",
            "b, a = divmod(number, -(-len(G) // M))",
        ),
    },
}
WRITTEN = {
    "{channel}": "i, j, c = r // (KW * C), r // C % KW, r % C\n    N = np.where(i < KH, N, 0)",
    "{down}": "n, q, p = k // (OH * OW), k // OH % OW, k % OH",
}


@pytest.mark.parametrize(
    ("key", "words"), [(key, words) for key, each in BENT.items() for words in each]
)
def test_a_mistake_gets_its_own_words(key, words):
    right, wrong = BENT[key][words]
    exercise = exercises.get(key)
    assert right in exercise.solution
    scope = {"np": np}
    exec(exercise.solution.replace(right, WRITTEN.get(wrong, wrong)), scope)
    verdict = exercise.check(scope[key.removeprefix("implicit-")])
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def test_a_tile_of_another_size_is_told_its_shape():
    verdict = exercises.get("implicit-program").check(lambda number, G, X, M, N, K: np.zeros(3))
    assert "shape (3,)" in verdict.message


def test_a_mistake_is_never_the_right_answer():
    for key in BENT:
        exercise = exercises.get(key)
        for trial in exercise.trials(np.random.default_rng(1)):
            for wrong, sentence in trial.mistakes:
                assert wrong.shape == trial.expected.shape
                assert sentence[0].islower() and sentence.endswith(".")
        assert exercise.check(solution(exercise)).passed
