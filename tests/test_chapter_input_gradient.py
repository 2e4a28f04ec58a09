"""*The input gradient is a transposed convolution* tells the truth: numbers, pictures, words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pages import alt_text, imports, spoken

from convgrad import ConvGeometry, conv2d, conv_transpose2d, example, exercises, loops
from convgrad.checks import random_geometry
from convgrad.mutants import MUTANTS
from convgrad.tables import multiplicity
from convgrad.turned import search

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import input_gradient as pictures
from convgrad.figures.grids import written

PAGE = "input_gradient"


def grad_input(letter: str) -> np.ndarray:
    _, weight, _, g = example(letter).arrays()
    return loops.grad_input(g, weight, example(letter).geometry)


# ---- the worked cell -------------------------------------------------------------------------


def test_the_cell_worked_by_hand():
    x, weight, bias, g = example("B").arrays()
    turned = weight[0, 0, ::-1, ::-1]
    middle = grad_input("B")[0, 0, 2, 2]
    assert (g[0, 0] * turned).sum() == middle == 3
    raised = x.copy()
    raised[0, 0, 2, 2] += 1
    assert (g * (conv2d(raised, weight, bias) - conv2d(x, weight, bias))).sum() == middle
    assert (g[0, 0] * weight[0, 0]).sum() == -middle  # not turned, another number comes out
    alt = alt_text(PAGE, "one_cell(")
    assert f"gradient g: {spoken(g[0, 0])}" in alt
    assert f"on cell (2, 2): {spoken(turned)}" in alt
    assert alt.endswith("cell (2, 2) lit: 3.")


def test_the_taps_in_the_picture_are_those_that_read_the_cell():
    geometry = example("B").geometry
    words = pictures.one_cell(2, 2).words()
    said = re.findall(r"\d,\d", alt_text(PAGE, "one_cell("))
    drawn = [word for word in words if re.fullmatch(r"\d,\d", word)]
    assert drawn == said
    taps = [tuple(map(int, tap.split(","))) for tap in drawn]
    for (p, q), tap in zip(np.ndindex(3, 3), taps, strict=True):
        assert geometry.source(p, q, *tap) == (2, 2)


def test_a_cell_near_the_edge_has_fewer_taps():
    words = pictures.one_cell(1, 2).words()
    assert len([word for word in words if re.fullmatch(r"\d,\d", word)]) == 6


def test_scatter_of_the_lesson_and_gather_are_the_gradient():
    _, weight, _, g = example("B").arrays()
    right = grad_input("B")
    assert np.array_equal(conv2d(g, weight[..., ::-1, ::-1], padding=2), right)
    assert np.array_equal(conv_transpose2d(g, weight), right)


def test_the_player_ends_with_the_same_numbers():
    widgets = pytest.importorskip("convgrad.widgets")
    player = widgets.ContributionPlayer(example("B"), target="input", order="position")
    assert np.array_equal(player.gradients.grad_input, grad_input("B"))


# ---- the table -------------------------------------------------------------------------------


def test_the_table_is_the_convolution_and_its_transpose_the_gradient():
    geometry, kernel, g = pictures._one_row()
    drawn = pictures._matrix_of(geometry, kernel)
    table = np.array([[0.0 if n is None else n for n in row] for row in drawn])
    cells = np.eye(geometry.W).reshape(geometry.W, 1, 1, geometry.W)
    assert np.array_equal(table, conv2d(cells, kernel, None, (1, 2))[:, 0, 0].T)
    right = loops.grad_input(g, kernel, geometry)[0, 0, 0]
    assert np.array_equal(table.T @ g[0, 0, 0], right)
    alt = alt_text(PAGE, "matrix(")
    assert f"{len(drawn)} rows q and {len(drawn[0])} columns v" in alt
    assert f"Row 0 holds {spoken(kernel[0, 0])} in columns 0 to 2" in alt
    assert f"with {written(table[0, 2])} in row 0 and {written(table[1, 2])} in row 1" in alt
    assert table[2, 2] == 0


# ---- stride ----------------------------------------------------------------------------------


def test_the_row_is_that_of_example_c():
    geometry, kernel, g = pictures._one_row()
    total = loops.grad_input(g, kernel, geometry)
    assert np.array_equal(total[0, 0, 0], grad_input("C")[0, 0, 0])
    alt = alt_text(PAGE, "laid_kernels(")
    assert f"The kernel {spoken(kernel[0, 0])} times g" in alt
    for q in range(geometry.OW):
        sent = g[0, 0, 0, q]
        first = geometry.source(0, q, 0, 0)[1]
        there = f"{spoken(sent * kernel[0, 0])} lie on cells {first} to {first + 2}"
        assert re.search(rf"q {q}, g is {written(sent)}, and {there}", alt)
    assert alt.endswith(f"add up to {spoken(total[0, 0])}.")


def test_which_taps_a_cell_finds():
    assert pictures.collected(2) == [(0, 2), (1, 0)]
    assert pictures.collected(3) == [(1, 1)]


def test_what_is_collected_from_g_with_zeros_between():
    geometry, kernel, g = pictures._one_row()
    total = loops.grad_input(g, kernel, geometry)[0, 0, 0]
    laid = np.zeros(5)
    laid[::2] = g[0, 0, 0]
    padded = np.pad(laid, 2)
    alt = alt_text(PAGE, "spread(")
    assert f"row of g, {spoken(g[0, 0])}, with a zero" in alt
    for v in (2, 3):
        under = padded[v : v + 3]  # places v − 2 to v of the spread row
        assert under @ kernel[0, 0, 0, ::-1] == total[v]
        listed = f"{written(under[0])}, {written(under[1])} and {written(under[2])}"
        assert re.search(rf"v {v} .*?{listed}.*?{written(total[v])} comes out", alt)


def test_zero_times_infinity_stays_out_where_taps_are_skipped():
    row = ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, stride=(1, 2))
    g, endless = np.array([[[[1.0, 2, 3]]]]), np.array([[[[1, np.inf, 1]]]])
    with np.errstate(invalid="ignore"):
        between = MUTANTS["dgrad_dilated_multiply"](g, endless, row)[0, 0, 0]
    assert np.array_equal(np.isnan(between), [True, False] * 3 + [True])
    skipped = conv_transpose2d(g, endless, stride=(1, 2))[0, 0, 0]
    assert np.array_equal(skipped, [1, np.inf, 3, np.inf, 5, np.inf, 3])


# ---- counts and sizes ------------------------------------------------------------------------


def test_a_kernel_of_four_makes_no_checkerboard():
    explorer = pytest.importorskip("convgrad.widgets").GeometryExplorer
    three = explorer(H=9, W=9, KH=3, KW=3, stride=2, transposed=True).uses
    assert set(three[2:-2, 2:-2].ravel().tolist()) == {1, 2, 4}
    four = explorer(H=10, W=10, KH=4, KW=4, stride=2, transposed=True).uses
    assert len(set(four[2:-2, 2:-2].ravel().tolist())) == 1


@pytest.mark.parametrize("stride", range(1, 6))
@pytest.mark.parametrize("taps", range(1, 7))
def test_the_counts_are_even_if_the_stride_divides_the_kernel_and_only_then(taps, stride):
    from convgrad.exercises.input_gradient import _counts

    even = len(set(_counts(taps, stride).tolist())) == 1
    assert even == (taps % stride == 0)


@pytest.mark.parametrize("seed", range(60))
def test_the_size_going_back_is_the_image_less_the_leftover(seed):
    geometry = random_geometry(np.random.default_rng(seed), padding_modes=("zeros",))
    for axis, (size, outputs) in enumerate([(geometry.H, geometry.OH), (geometry.W, geometry.OW)]):
        back = geometry.stride[axis] * (outputs - 1) + geometry.span[axis]
        assert back - sum(geometry.padding[axis]) == size - geometry.leftover[axis]


def test_six_and_five_rows_give_the_same_output():
    five = ConvGeometry(N=2, C=1, H=5, W=7, O=1, KH=3, KW=3, stride=2)
    assert five.output_shape == example("C").geometry.output_shape


def _stride_one(geometry: ConvGeometry) -> bool:
    border = max(max(pair) for pair in geometry.padding)
    return geometry.stride == (1, 1) and border < min(geometry.span)


@pytest.mark.parametrize("seed", range(40))
def test_how_many_zeros_stand_around(seed):
    """The exercise of that name: span − 1 − padding on each side leave exactly H rows."""
    geometry = random_geometry(np.random.default_rng(seed), _stride_one, padding_modes=("zeros",))
    for axis in (0, 1):
        around, padding = search(geometry).padding[axis], geometry.padding[axis]
        assert around == tuple(geometry.span[axis] - 1 - each for each in padding)
    assert search(geometry).output_shape == geometry.x_shape


def test_a_border_too_wide_means_rows_of_g_that_throw_nothing_back():
    geometry = ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2, padding=2)
    too_wide = geometry.padding[0][0] - (geometry.span[0] - 1)
    g = np.zeros(geometry.output_shape)
    g[:, :, :too_wide] = 7
    assert too_wide == 1
    assert not loops.grad_input(g, np.ones(geometry.weight_shape), geometry).any()


# ---- mistakes --------------------------------------------------------------------------------


def test_a_leftover_in_the_border_is_a_row_of_the_image():
    stem = ConvGeometry(C=1, H=16, W=16, O=1, KH=7, KW=7, stride=3, padding=2)
    assert stem.leftover == (1, 1) and stem.padding[0][1] >= 1
    assert (multiplicity(stem) > 0).all()  # "every row of the image is read"
    g, weight = np.ones(stem.output_shape), np.ones(stem.weight_shape)
    short, whole = (
        conv_transpose2d(g, weight, stride=3, padding=2, output_padding=rest) for rest in (0, 1)
    )
    assert (short.shape[2], whole.shape[2]) == (15, 16)
    assert np.array_equal(whole, loops.grad_input(g, weight, stem))
    assert whole[0, 0, -1].any()  # "and not one of zeros"


def test_a_width_worked_out_from_the_height_hides_on_squares():
    for H, W, found in ((6, 6, (6, 6)), (6, 9, (6, 6))):
        geometry = ConvGeometry(C=1, H=H, W=W, O=1, KH=3, KW=3)
        g, weight = np.ones(geometry.output_shape), np.ones(geometry.weight_shape)
        assert MUTANTS["width_from_height"](g, weight, geometry).shape[2:] == found


# ---- the exercises explain -------------------------------------------------------------------


def _rule(name: str):
    return imports_of_solution(name)["grad_input"]


def imports_of_solution(name: str) -> dict[str, object]:
    scope = imports(PAGE) | {"np": np}
    exec(exercises.get(name).solution, scope)
    return scope


def _assigning(grad_output, weight):
    N, _, OH, OW = grad_output.shape
    _, C, KH, KW = weight.shape
    grad = np.zeros((N, C, OH + KH - 1, OW + KW - 1))
    for i, j in np.ndindex(KH, KW):
        laid = np.einsum("nopq,oc->ncpq", grad_output, weight[:, :, i, j])
        grad[:, :, i : i + OH, j : j + OW] = laid
    return grad


def _turning(grad_output, weight):
    return _rule("input-by-scatter")(grad_output, weight[..., ::-1, ::-1])


def _last_kernel(grad_output, weight):
    return _rule("input-by-scatter")(grad_output[:, -1:], weight[-1:])


def _no_border(grad_output, weight):
    OH, OW = grad_output.shape[2:]
    return _rule("input-by-scatter")(grad_output, weight)[:, :, :OH, :OW]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (_assigning, "lost products where windows overlap"),
        (_turning, "kernel turned by 180°"),
        (_last_kernel, "share of the last kernel"),
        (_no_border, "right gradient of the padded input, cut out"),
    ],
)
def test_wrong_scatters_are_told_why(wrong, words):
    verdict = exercises.get("input-by-scatter").check(wrong)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dgrad_no_flip", "kernel turned by 180°"),
        ("dgrad_g_turned", "grad_output"),
        ("dgrad_no_leftover", "output_padding|no window reads"),
        ("dgrad_shifted", "image begins at row"),
        ("ignore_dilation", "dilation"),
        ("col2im_assign", "lost products"),
    ],
)
def test_wrong_gathers_are_told_why(name, words):
    verdict = exercises.get("input-by-gather").check(MUTANTS[name].function)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def test_the_pixel_is_asked_for_a_number_that_no_page_prints():
    """The chapter before tells what the pixel gets from example A's own gradient."""
    exercise = exercises.get("input-one-pixel")
    weight, g = example("A").arrays().weight, np.array([[[[1.0, -1], [2, 3]]]])
    assert exercise.answer == loops.grad_input(g, weight, example("A").geometry).item() == 9
    assert exercise.answer != grad_input("A").item() == 19
    wrong = [number for number, _ in exercise.mistakes]
    assert len({exercise.answer, *wrong}) == 1 + len(wrong) == 5


def test_the_four_suspects_leave_four_grids_as_the_words_say():
    from convgrad.exercises.input_gradient import _LEFT_BY, _mutated

    right = grad_input("B")[0, 0]
    grids = {name: _mutated(name, "B")[0, 0] for name in _LEFT_BY.values()}
    assert len({grid.tobytes() for grid in grids.values()}) == 4
    corners = [(r, c) for r in (0, 4) for c in (0, 4)]
    for name in ("col2im_assign", "avg_fold"):
        assert all(grids[name][at] == right[at] for at in corners)
    assert right[0, 4] == -2
    assert grids["dgrad_no_flip"][0, 4] == 0
    assert (grids["dgrad_no_flip"][0, 1], grids["dgrad_g_turned"][0, 1]) == (-1, 2)
