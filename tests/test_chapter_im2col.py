"""*im2col: unfold + mm* tells the truth: its numbers, pictures and alt texts."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from pages import alt_text, cells
from test_exercises import solution

from convgrad import ConvGeometry, example, exercises, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.exercises import im2col as bank
from convgrad.im2col import fold, unfold

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import im2col as pictures
from convgrad.figures.grids import written

PAGE = "im2col"


def listed(numbers: np.ndarray) -> str:
    return " ".join(map(written, numbers))


def test_the_column_and_the_row_worked_by_hand():
    x, weight, bias, g = example("B").arrays()
    geometry = example("B").geometry
    U = unfold(x, geometry)[0]
    y = loops.forward(x, weight, geometry) + bias[:, None, None]
    assert weight.reshape(1, 9)[0] @ U[:, 6] + bias[0] == y[0, 0, 2, 0] == 8
    tap = loops.grad_weight(g, x, geometry)[0, 0, 1, 2]
    assert g.reshape(1, 9)[0] @ U[5] == tap == 9
    assert 2 * geometry.OW + 0 == 6
    assert 1 * geometry.KW + 2 == 5
    alt = alt_text(PAGE, "unfolded(")
    assert f"column 6 of the matrix: {listed(U[:, 6])}." in alt
    assert f"row 5 of the matrix: {listed(U[5])}." in alt
    assert np.array_equal(U[:, 6], x[0, 0, 2:5, 0:3].ravel())
    assert np.array_equal(U[5], x[0, 0, 1:4, 2:5].ravel())


def test_the_cell_folded_by_hand():
    x, weight, _, g = example("B").arrays()
    geometry = example("B").geometry
    places = pictures.copies(geometry, h=1, v=2)
    products = weight.reshape(1, 9).T @ g.reshape(1, 9)
    assert {unfold(x, geometry)[0][at] for at in places} == {x[0, 0, 1, 2]}
    right = loops.grad_input(g, weight, geometry)[0, 0, 1, 2]
    assert sum(products[at] for at in places) == right == 5
    assert len(places) == 6  # "its six copies", "lies in six windows"
    alt = alt_text(PAGE, "pictures.folded(")
    there = ", ".join(f"{written(products[r, l])} in row {r}" for r, l in places)
    assert f"same six places lit: {there}." in alt
    assert alt.endswith(f"cell (1, 2) lit: {written(right)}.")


def test_every_cell_finds_all_its_copies():
    geometry = example("C").geometry
    counts = fold(unfold(np.ones((1, 1, 6, 7)), geometry), geometry)[0, 0]
    for h, v in np.ndindex(6, 7):
        assert len(pictures.copies(geometry, h, v)) == counts[h, v]


def test_pictures_hold_the_numbers_of_their_example():
    assert {"U, column 6", "U, row 5", "x, window (2, 0)", "x, tap (1, 2)"} <= set(
        pictures.unfolded().words()
    )
    words = pictures.folded().words()
    assert {"wᵀ·g", "∂L/∂x", "unfold", "fold"} <= set(words)


def test_the_sizes_of_example_d():
    geometry = example("D").geometry
    assert (geometry.C * geometry.KH * geometry.KW, geometry.groups) == (24, 2)
    assert geometry.OG == 3 and 24 // geometry.groups == 12
    x = example("D").arrays().x
    assert unfold(x, geometry).shape[1:] == (24, 9)


@pytest.mark.parametrize("seed", range(40))
def test_the_identities_of_the_text(seed):
    rng = np.random.default_rng(seed)
    geometry, x, *_ = random_operands(random_geometry(rng), rng)
    columns = unfold(x, geometry)
    Z = rng.integers(-4, 5, columns.shape).astype(float)
    assert (columns * Z).sum() == (x * fold(Z, geometry)).sum()
    counts = fold(unfold(np.ones_like(x), geometry), geometry)
    assert np.array_equal(counts, counts[:1, :1] * np.ones_like(x))
    if geometry.padding_mode == "zeros":  # a copied border moves numbers to other cells
        assert np.array_equal(fold(columns, geometry), x * counts)


@pytest.mark.parametrize("stride", [1, 2])
def test_the_size_of_the_columns(stride):
    """The exercise "How large is the matrix?"."""
    for kernel, padding in ((1, 0), (3, 1)):
        geometry = ConvGeometry(
            C=3, H=8, W=12, O=1, KH=kernel, KW=kernel, stride=stride, padding=padding
        )
        assert geometry.output_shape[2:] == (8 // stride, 12 // stride)
        times = unfold(np.ones(geometry.x_shape), geometry).size / np.prod(geometry.x_shape)
        assert times == kernel**2 / stride**2


@pytest.mark.parametrize("step", [1, 2])
def test_the_symmetric_accident(step):
    """The exercise of that name: equal numbers of taps and positions, stride equal to dilation."""
    size = step * 4 + 1
    square = ConvGeometry(C=1, H=size, W=size, O=1, KH=3, KW=3, stride=step, dilation=step)
    assert (square.OH, square.OW) == (3, 3)
    rng = np.random.default_rng(step)
    U = unfold(rng.integers(-9, 9, square.x_shape), square)[0]
    assert np.array_equal(U, U.T)
    other = ConvGeometry(C=1, H=size + 4, W=size + 4, O=1, KH=3, KW=3, stride=step + 2)
    V = unfold(rng.integers(-9, 9, other.x_shape), other)[0]
    assert V.shape[0] != V.shape[1] or not np.array_equal(V, V.T)


def test_unfold_as_a_matrix():
    """The exercise of that name: J has a single 1 in a row, and fold is its transpose."""
    geometry = ConvGeometry(C=1, H=4, W=5, O=1, KH=2, KW=3, stride=(2, 1), padding=(1, 0))
    cells = np.eye(20).reshape(20, 1, 4, 5)
    J = unfold(cells, geometry).reshape(20, -1).T  # a row for each number of the columns
    assert set(J.sum(axis=1)) == {0, 1}
    counts = fold(unfold(np.ones((1, 1, 4, 5)), geometry), geometry)
    assert np.array_equal(J.sum(axis=0), counts.ravel())
    Z = np.random.default_rng(0).integers(-4, 5, len(J))
    columns = Z.reshape(1, 6, -1)
    assert np.array_equal(J.T @ Z, fold(columns, geometry).ravel())


# ---- the backward pass in torch ------------------------------------------------------------------


def backward() -> Callable:
    """The function that the page shows."""
    pytest.importorskip("torch")
    (lesson,) = (code for options, code in cells(PAGE) if "lesson" in options)
    scope: dict = {}
    exec(lesson, scope)
    return scope["backward"]


@pytest.mark.parametrize("seed", range(40))
def test_the_torch_backward_is_right_for_every_stride_padding_dilation_and_group(seed):
    rule = backward()
    import torch

    rng = np.random.default_rng(seed)

    def even(geometry: ConvGeometry) -> bool:  # all that F.unfold can pad
        return all(before == after for before, after in geometry.padding)

    geometry = random_geometry(rng, even, padding_modes=("zeros",))
    _, x, weight, g = random_operands(geometry, rng)
    how = {"stride": geometry.stride, "dilation": geometry.dilation, "groups": geometry.groups}
    how["padding"] = tuple(before for before, _ in geometry.padding)
    ours = rule(*map(torch.from_numpy, (g, x, weight)), **how)
    assert np.array_equal(ours[0], loops.grad_input(g, weight, geometry))
    assert np.array_equal(ours[1], loops.grad_weight(g, x, geometry))
    assert np.array_equal(ours[2], loops.grad_bias(g, geometry))


def test_the_hard_example_is_hard():
    (code,) = (code for _, code in cells(PAGE) if "hard = ConvGeometry" in code)
    scope = {"ConvGeometry": ConvGeometry}
    exec("\n".join(line for line in code.splitlines() if re.match(r"how|sizes|hard", line)), scope)
    hard = scope["hard"]
    assert any(hard.leftover) and 1 < hard.groups < hard.C
    for pair in (hard.stride, hard.dilation, hard.padding):
        assert pair[0] != pair[1]
    assert hard.stride != hard.dilation


# ---- exercises -----------------------------------------------------------------------------------


def test_the_entry_asked_for_cannot_be_taken_for_another():
    exercise = exercises.get("unfold-entry")
    assert exercise.answer == unfold(example("C").arrays().x, example("C").geometry)[0, 5, 2]
    assert len({exercise.answer, *(wrong for wrong, _ in exercise.mistakes)}) == 5


def test_one_product_is_right_and_one_example_is_blind():
    assert [bank._gives_the_gradient(each, "D") for each in bank._PRODUCTS.values()] == [
        False,
        False,
        True,
        False,
    ]
    assert exercises.get("unfold-blind-example").choices[1].startswith("Example B")


MISTAKES = {
    "mean over the": lambda right, G, U: right / len(G),
    "share of image 2 alone": lambda right, G, U: (
        (G[-1:] @ U[-1:].swapaxes(1, 2)).sum(0).reshape(right.shape)
    ),
    "turned by 180": lambda right, G, U: right[..., ::-1, ::-1],
    "sign": lambda right, G, U: -right,
}


@pytest.mark.parametrize(("words", "bend"), MISTAKES.items(), ids=MISTAKES)
def test_a_wrong_weight_gradient_is_told_why(words, bend):
    rule = solution(exercises.get("unfold-grad-weight"))

    def wrong(g, columns, geometry):
        return bend(rule(g, columns, geometry), g.reshape(*g.shape[:2], -1), columns)

    verdict = exercises.get("unfold-grad-weight").check(wrong)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def fold_with(add: Callable, geometry_of: Callable = lambda geometry: geometry) -> Callable:
    def wrong(columns, geometry):
        bent = geometry_of(geometry)
        (sh, sw), (dh, dw) = bent.stride, bent.dilation
        taps = columns.reshape(
            geometry.N, geometry.C, geometry.KH, geometry.KW, geometry.OH, geometry.OW
        )
        padded = np.zeros((geometry.N, geometry.C, *geometry.padded_size))
        for i, j in np.ndindex(geometry.KH, geometry.KW):
            rows = slice(dh * i, dh * i + sh * geometry.OH, sh)
            cols = slice(dw * j, dw * j + sw * geometry.OW, sw)
            add(padded[:, :, rows, cols], taps[:, :, i, j])
        (top, _), (left, _) = geometry.padding
        return padded[:, :, top : top + geometry.H, left : left + geometry.W]

    return wrong


def plus(there, tap):
    there += tap


def assign(there, tap):
    there[...] = tap


def test_a_fold_that_assigns_is_told_so():
    assert exercises.get("unfold-fold").check(fold_with(plus)).passed
    message = exercises.get("unfold-fold").check(fold_with(assign)).message
    assert "overlap" in message or "+=" in message, message


def test_a_fold_that_averages_is_told_so():
    def mean(columns, geometry):
        counts = fold(np.ones_like(columns), geometry)
        return fold(columns, geometry) / np.maximum(counts, 1)

    message = exercises.get("unfold-fold").check(mean).message
    assert "divided" in message or "average" in message, message


def test_a_fold_that_forgets_the_dilation_is_told_so():
    from dataclasses import replace

    forgets = fold_with(plus, lambda geometry: replace(geometry, dilation=(1, 1)))
    assert "dilation" in exercises.get("unfold-fold").check(forgets).message
