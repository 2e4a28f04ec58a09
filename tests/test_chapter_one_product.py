"""*One product at a time* tells the truth: its numbers, pictures, derivations and exercises."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from pages import PAGES, alt_text, spoken

from convgrad import ConvGeometry, conv2d, example, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.exercises import get, one_product
from convgrad.ledger import contributions, product
from convgrad.mutants import MUTANTS
from convgrad.tables import count, multiplicity, per_tap

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import one_product as pictures
from convgrad.figures.grids import written

PAGE = "one_product"
PROSE = " ".join(PAGES[PAGE].read_text("utf-8").split())


# ---- example A -------------------------------------------------------------------------------


def test_the_ledger_of_one_pixel():
    x, weight, bias, g = example("A").arrays()
    geometry = example("A").geometry
    listed = list(contributions(geometry, "input", "position"))
    assert [(each.p, each.q) for each in listed] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [(each.i, each.j) for each in listed] == [(2, 2), (2, 1), (1, 2), (1, 1)]
    assert all(each.i == 2 - each.p and each.j == 2 - each.q for each in listed)
    to_taps = [product(each, "weight", x=x, grad_output=g) for each in listed]
    to_cell = [product(each, "input", weight=weight, grad_output=g) for each in listed]
    assert (to_taps, to_cell) == ([2, 4, 6, 8], [0, 4, 3, 12])
    assert "$0+4+3+12=19$" in PROSE
    assert loops.grad_input(g, weight, geometry)[0, 0, 0, 0] == 19
    assert [weight[0, 0, 2, 2], bias[0]] == [0, 0]  # "the first weight is 0", "a bias of 0"


def test_the_last_window_of_one_pixel():
    x, weight, _, g = example("A").arrays()
    assert (weight[0, 0, 1, 1], x[0, 0, 0, 0], g[0, 0, 1, 1]) == (3, 2, 4)
    assert conv2d(x, weight, padding=2)[0, 0, 1, 1] == 6
    grads = loops.grad_weight(g, x, example("A").geometry)
    assert grads[0, 0, 1, 1] == 2 * 4 == 8


def test_four_products_a_tap_and_at_most_one_off_the_border():
    geometry = example("A").geometry
    assert (count(geometry, include_padding=True), count(geometry)) == (64, 4)
    each = count(geometry, include_padding=True) // (geometry.KH * geometry.KW)
    assert each == 4
    assert per_tap(geometry).max() == 1
    assert (per_tap(geometry) == 0).sum() == 12
    assert get("product-on-padding").answer == 60


def test_the_slopes_by_tap_are_those_of_the_picture():
    x, _, _, g = example("A").arrays()
    table = pictures.slopes_of_weight("A")
    grads = loops.grad_weight(g, x, example("A").geometry)
    assert np.array_equal(g.ravel() @ table, grads.ravel())
    alt = alt_text(PAGE, "slopes_by_tap(")
    for row, (p, q) in enumerate(np.ndindex(2, 2)):
        (column,) = np.flatnonzero(table[row])
        assert table[row, column] == 2
        i, j = divmod(int(column), 4)
        assert f"y[{p},{q}] at tap {i},{j}" in alt
        assert f"{written(grads[0, 0, i, j])} at tap {i},{j}" in alt.replace(
            "; 2 at tap", ", 2 at tap"
        )
    assert f"upstream gradient {', '.join(map(written, g.ravel()))}" in alt
    words = pictures.slopes_by_tap().words()
    assert [words.count(f"y[{p},{q}]") for p, q in np.ndindex(2, 2)] == [1, 1, 1, 1]
    assert words.count("2") >= 4 and {"8", "6", "4"} <= set(words)


# ---- example B -------------------------------------------------------------------------------


def test_the_two_homes_of_one_product():
    x, weight, _, g = example("B").arrays()
    geometry = example("B").geometry
    assert geometry.source(0, 2, 1, 1) == (1, 3)
    w, seen, upstream = weight[0, 0, 1, 1], x[0, 0, 1, 3], g[0, 0, 0, 2]
    assert (w, seen, upstream, w * seen) == (1, 3, 2, 3)
    assert count(geometry) == 81
    tap = loops.grad_weight(g, x, geometry)[0, 0, 1, 1]
    cell = loops.grad_input(g, weight, geometry)[0, 0, 1, 3]
    assert (tap, cell) == (10, 1)
    assert (per_tap(geometry)[1, 1], multiplicity(geometry)[1, 3]) == (9, 4)
    alt = alt_text(PAGE, "both_homes(")
    assert "weight 1 at tap (1, 1), input number 3 at cell (1, 3), upstream number 2 at" in alt
    assert (
        "10 at tap (1, 1) of the weight gradient, which takes 3 times 2, 6, as one of its 9" in alt
    )
    assert (
        "1 at cell (1, 3) of the input gradient, which takes 1 times 2, 2, as one of its 4" in alt
    )
    words = pictures.both_homes().words()
    assert {"takes x·g = 3·2 = 6,", "takes w·g = 1·2 = 2,", "one of its 9 products"} <= set(words)
    assert "one of its 4 products" in words


@pytest.mark.parametrize(("p", "q", "i", "j"), [(2, 1, 1, 0), (1, 1, 2, 2), (0, 0, 0, 0)])
def test_the_picture_follows_its_product(p, q, i, j):
    x, weight, _, g = example("B").arrays()
    seen, w, upstream = x[0, 0, p + i, q + j], weight[0, 0, i, j], g[0, 0, p, q]
    words = pictures.both_homes(p, q, i, j).words()
    assert f"takes x·g = {written(seen)}·{written(upstream)} = {written(seen * upstream)}," in words
    assert f"takes w·g = {written(w)}·{written(upstream)} = {written(w * upstream)}," in words
    reads = multiplicity(example("B").geometry)[p + i, q + j]
    assert f"one of its {reads} products" in words


def test_the_four_products_of_one_cell_and_a_step_of_one():
    x, weight, bias, g = example("B").arrays()
    geometry = example("B").geometry
    met = [each for each in contributions(geometry, "input", "position") if each.cell == (1, 3)]
    assert [(each.p, each.q) for each in met] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert len({(each.i, each.j) for each in met}) == 4  # "each time under another tap"
    assert sum(product(each, "input", weight=weight, grad_output=g) for each in met) == 1
    brighter = x.copy()
    brighter[0, 0, 1, 3] += 1
    assert (g * (conv2d(brighter, weight, bias) - conv2d(x, weight, bias))).sum() == 1


def test_the_slopes_by_cell_are_those_of_the_picture():
    x, weight, bias, g = example("B").arrays()
    table = pictures.slopes_of_input("B")
    assert table.shape == (9, 25)
    assert np.array_equal(table @ x.ravel() + bias, conv2d(x, weight, bias).ravel())
    grads = loops.grad_input(g, weight, example("B").geometry)
    assert np.array_equal(g.ravel() @ table, grads.ravel())
    read = pictures._by_cell("B")
    assert read.sum() == 81 and not table[~read].any()
    for row in range(9):
        assert np.array_equal(table[row][read[row]], weight.ravel())  # the same nine numbers
    framed = read[:, 8]
    assert [f"{p},{q}" for p, q in np.ndindex(3, 3) if framed[3 * p + q]] == [
        *("0,1", "0,2", "1,1", "1,2")
    ]
    alt = alt_text(PAGE, "slopes_by_cell(")
    assert spoken(weight[0, 0]) in alt
    assert f"it holds {', '.join(map(written, table[framed, 8]))}, in the rows" in alt
    assert f"upstream gradient, {' '.join(map(written, g.ravel()))}." in alt
    assert alt.endswith(f"lit under the frame: {written(grads[0, 0, 1, 3])}.")
    words = pictures.slopes_by_cell().words()
    assert [words.count(f"h = {h}") for h in range(5)] == [1] * 5
    assert words.count("−1") == 2 * 9 + 1 + (grads == -1).sum()  # two taps, nine rows; g; sums


def test_a_jacobian_has_more_places_than_anybody_stores():
    geometry = example("F").geometry
    places = math.prod(geometry.output_shape) * math.prod(geometry.x_shape)
    assert places > 10_000 * count(geometry, "input")


# ---- derivations -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_what_both_changes_add_beyond_the_gradients(seed):
    """The exercise "The term that was dropped"."""
    rng = np.random.default_rng(seed)
    geometry = random_geometry(rng, padding_modes=("zeros",))
    x, weight, g = random_operands(geometry, rng)[1:]
    _, dx, dw, _ = random_operands(geometry, rng)
    changed = loops.forward(x + dx, weight + dw, geometry) - loops.forward(x, weight, geometry)
    predicted = (dx * loops.grad_input(g, weight, geometry)).sum()
    predicted += (dw * loops.grad_weight(g, x, geometry)).sum()
    assert (g * changed).sum() - predicted == (g * loops.forward(dx, dw, geometry)).sum()


@pytest.mark.parametrize("seed", range(20))
def test_two_sums_that_agree(seed):
    rng = np.random.default_rng(seed)
    geometry = random_geometry(rng)
    x, weight, g = random_operands(geometry, rng)[1:]
    by_weight = (weight * loops.grad_weight(g, x, geometry)).sum()
    by_input = (x * loops.grad_input(g, weight, geometry)).sum()
    assert by_weight == by_input == (g * loops.forward(x, weight, geometry)).sum()


# ---- mistakes and exercises ------------------------------------------------------------------


def test_the_mistakes_give_the_numbers_that_are_shown():
    x, weight, _, g = example("A").arrays()
    clipped = MUTANTS["kernel_clipped_to_input"](g, x, example("A").geometry)
    assert clipped.shape == (1, 1, 1, 1)  # as large as the image
    assert loops.grad_weight(g, x, example("A").geometry).shape == weight.shape == (1, 1, 4, 4)
    row = ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=3)
    sent = np.array([1.0, 10, 100]).reshape(1, 1, 1, 3)
    ones = np.ones((1, 1, 1, 3))
    lost = MUTANTS["fancy_plus_equals"](sent, ones, row)
    assert lost.ravel().tolist() == [1, 10, 100, 100, 100]
    kept = loops.grad_input(sent, ones, row)
    assert kept.ravel().tolist() == [1, 11, 111, 110, 100]


@pytest.mark.parametrize("name", re.findall(r"case[s]? `([\w-]+)`", PROSE))
def test_every_case_that_is_named_is_there(name):
    from test_cases import CASES

    assert name in {case["id"] for case in CASES}


def test_the_product_asked_for_has_two_different_answers():
    w, x, g = one_product._factors(example("B"), 2, 1, 1, 0)
    assert (w, x, g) == (2, 3, 2)
    assert get("product-two-homes").answer.tolist() == [[6, 4]]
    assert get("product-pixel").answer == 19


def test_the_cell_asked_for_is_read_by_six_windows_two_of_which_send_something():
    _, weight, _, g = example("B").arrays()
    listed = contributions(example("B").geometry, "input", "position")
    met = [each for each in listed if each.cell == (1, 2)]
    sent = {(c.p, c.q): product(c, "input", weight=weight, grad_output=g) for c in met}
    assert len(sent) == 6
    assert {window: value for window, value in sent.items() if value} == {(0, 2): 4, (1, 0): 1}


def _solution(key: str):
    names = {"np": np}
    exec(get(key).solution, names)
    return names[re.search(r"def (\w+)", get(key).starter)[1]]


def _counted_with_the_width_of_y(w, H, W):
    table = _solution("product-jacobian")(w, H, W)
    return table.reshape(-1, H, W)[:, :, : W - w.shape[1] + 1].reshape(len(table), -1)


WRONG_TABLES = {
    "transposed": (lambda w, H, W: _solution("product-jacobian")(w, H, W).T, "other way round"),
    "turned": (
        lambda w, H, W: _solution("product-jacobian")(w[::-1, ::-1], H, W),
        "kernel is turned by 180°",
    ),
    "four axes": (
        lambda w, H, W: _solution("product-jacobian")(w, H, W).reshape(
            H - w.shape[0] + 1, W - w.shape[1] + 1, H, W
        ),
        "the numbers are right",
    ),
    "one window": (
        lambda w, H, W: np.tile(
            _solution("product-jacobian")(w, H, W)[0], ((H - len(w) + 1) * (W - w.shape[1] + 1), 1)
        ),
        "every row shows the first window",
    ),
    "too narrow": (_counted_with_the_width_of_y, "has shape|differs"),
}


@pytest.mark.parametrize(("slopes", "words"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_a_wrong_table_is_told_why(slopes, words):
    for _ in range(3):
        verdict = get("product-jacobian").check(slopes)
        assert not verdict.passed
        assert re.search(words, verdict.message), verdict.message


def _partners_kept(g, x, weight, geometry):
    """Each number times g instead of its partner times g."""
    cells, taps = np.zeros(x.shape), np.zeros(weight.shape)
    for n, o, p, q, c, i, j, at in loops.products(geometry):
        if at is not None:
            cells[at] += x[at] * g[n, o, p, q]
            taps[o, c, i, j] += weight[o, c, i, j] * g[n, o, p, q]
    return cells, taps


def _right(g, x, weight, geometry):
    return _solution("product-backward")(g, x, weight, geometry)


def _first_channels(g, x, weight, geometry):
    cells, taps = np.zeros(x.shape), _right(g, x, weight, geometry)[1]
    for n, o, p, q, c, i, j, at in loops.products(geometry):
        if at is not None:
            cells[n, c, *at[2:]] += weight[o, c, i, j] * g[n, o, p, q]
    return cells, taps


def _written_not_added(g, x, weight, geometry):
    cells, taps = _right(g, x, weight, geometry)
    for n, o, p, q, c, i, j, at in loops.products(geometry):
        if at is not None:
            cells[at] = weight[o, c, i, j] * g[n, o, p, q]
    return cells, taps


WRONG_WALKS = {
    "own number": (_partners_kept, "Its partner in the product is the weight"),
    "own weight": (
        lambda *given: (_right(*given)[0], _partners_kept(*given)[1]),
        "Its partner in the product is the input number",
    ),
    "exchanged": (lambda *given: _right(*given)[::-1], "return it second"),
    "first channels": (_first_channels, "all went to the first channels"),
    "written": (_written_not_added, "lost products|overlap"),
    "one result": (lambda *given: _right(*given)[0], "returns one array, of shape .*needed are 2"),
    "three results": (lambda *given: (*_right(*given), 0), "returns 3 results: needed are 2"),
    "nothing inside": (lambda *given: (None, None), "result"),
}


@pytest.mark.parametrize(("backward", "words"), WRONG_WALKS.values(), ids=WRONG_WALKS)
def test_a_wrong_walk_is_told_why(backward, words):
    for _ in range(3):
        verdict = get("product-backward").check(backward)
        assert not verdict.passed
        assert re.search(words, verdict.message), verdict.message


def test_the_walk_meets_every_kind_of_convolution():
    exercise, seen = get("product-backward"), set()

    def spy(g, x, weight, geometry):
        seen.add((geometry.groups > 1, geometry.stride != (1, 1), geometry.N > 1))
        return _right(g, x, weight, geometry)

    assert exercise.check(spy).passed
    assert {True, False} == {groups for groups, *_ in seen} == {stride for _, stride, _ in seen}
