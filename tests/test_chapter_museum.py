"""*A museum of gradient bugs* tells the truth: its numbers, pictures, words and exercises."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from pages import PAGES, alt_text, cells, imports, spoken

from convgrad import ConvGeometry, conv2d, exercises, loops
from convgrad.checks import LAWS, random_geometry, random_operands
from convgrad.museum import EXHIBITS, noticed_by
from convgrad.mutants import MUTANTS

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import museum as pictures

PAGE = "museum"
TEXT = PAGES[PAGE].read_text("utf-8")
RULES = {each.key: MUTANTS[each.mutant] for each in EXHIBITS if each.mutant}


def code_with(words: str) -> str:
    (code,) = (code for _, code in cells(PAGE) if words in code)
    return code


# ---- the row ---------------------------------------------------------------------------------


def test_the_row_of_the_text_the_picture_and_the_player():
    case = pictures.row()
    assert case.x.ravel().tolist() == [1, 10, 100]
    assert case.grad_output.ravel().tolist() == [2, 3]
    right = [2 * 1 + 3 * 10, 2 * 10 + 3 * 100]
    wrong = [3 * 1 + 2 * 10, 3 * 10 + 2 * 100]
    assert case.right.ravel().tolist() == right == [32, 320]
    assert case.wrong.ravel().tolist() == wrong == [23, 230]
    D = case.wrong - case.right
    assert D.ravel().tolist() == [-9, -90]
    for words in ("32, 320", "23, 230", "−9, −90"):
        assert words in TEXT
    alt = alt_text(PAGE, "pictures.difference(")
    for grid in (case.wrong, case.right, D):
        assert spoken(grid[0, 0]) in alt
    assert {"23", "230", "32", "320", "−9", "−90"} <= set(pictures.difference().words())

    widgets = pytest.importorskip("convgrad.widgets")
    player = widgets.BreakTheGradient(
        case.x, [[[[1, 2]]]], case.grad_output, mistake="wgrad_g_turned"
    )
    assert np.array_equal(player.right, case.right) and np.array_equal(player.wrong, case.wrong)


def test_with_equal_numbers_only_a_g_of_its_own_notices():
    pytest.importorskip("anywidget")
    from convgrad.widgets import BreakTheGradient

    case = pictures.row()
    noticed = {}
    for numbers in ((5.0, 5.0), (2.0, 3.0)):
        g = np.array(numbers).reshape(case.grad_output.shape)
        player = BreakTheGradient(case.x, [[[[1, 2]]]], g, mistake="wgrad_g_turned")
        noticed[numbers] = {each.check for each in player.findings if each.noticed}
    assert noticed == {(5, 5): {"random"}, (2, 3): {"random", "adjoint", "differences"}}


def test_the_duel_hides_many_mistakes_of_all_three_gradients():
    pytest.importorskip("anywidget")
    from convgrad.widgets.break_the_gradient import showing

    scope = imports(PAGE)
    exec(code_with('mode="duel"'), scope)
    geometry, draw = scope["sizes"], scope["draw"]
    assert geometry.leftover != (0, 0) and geometry.groups == 2
    shown = showing(
        geometry, {name: getattr(draw, name) for name in ("x", "weight", "grad_output")}
    )
    assert len(shown) >= 25
    assert {MUTANTS[name].target for name in shown} == {"weight", "input", "bias"}


# ---- what the rooms say ------------------------------------------------------------------------


def test_the_crop_of_the_first_exhibit():
    x, g = np.arange(36.0).reshape(1, 1, 6, 6), np.ones((1, 1, 2, 2))
    found = conv2d(x, g, dilation=2)
    sizes = ConvGeometry(C=1, H=6, W=6, O=1, KH=3, KW=3, stride=2)
    assert sizes.leftover == (1, 1) and found.shape == (1, 1, 4, 4)
    assert np.array_equal(found[..., :3, :3], loops.grad_weight(g, x, sizes))


def test_three_columns_are_left_over():
    assert ConvGeometry(C=1, H=1, W=11, O=1, KH=1, KW=4, stride=(1, 4)).leftover == (0, 3)


def test_equal_stride_and_dilation_hide_the_exchange():
    rng = np.random.default_rng(0)
    for _ in range(20):
        geometry = random_geometry(rng, lambda g: g.stride == g.dilation)
        draw = random_operands(geometry, rng)
        wrong = MUTANTS["swap_stride_dilation"](draw.grad_output, draw.x, geometry)
        assert np.array_equal(wrong, loops.grad_weight(draw.grad_output, draw.x, geometry))


def test_bfloat16_and_float16_end_where_the_text_says():
    torch = pytest.importorskip("torch")
    last = torch.tensor(256.0, dtype=torch.bfloat16)
    assert last + 1 == last and last - 1 != last
    assert np.finfo(np.float16).max == 65504 < 6 * 200 * 200


def test_wrapping_both_ways_wrongly_passes_the_two_sums():
    """What the exhibit says: with the same mistake in both passes the adjoint is kept."""
    rng = np.random.default_rng(0)
    swapped = ConvGeometry(
        C=1, H=3, W=4, O=1, KH=2, KW=2, padding=(1, 0), padding_mode="circular"
    )  # what (0, 1) became
    draw = random_operands(swapped, rng)
    y = loops.forward(draw.x, draw.weight, swapped)
    back = loops.grad_input(draw.grad_output, draw.weight, swapped)
    assert np.vdot(y, draw.grad_output) == np.vdot(back, draw.x)


# ---- the tables --------------------------------------------------------------------------------


def test_a_test_in_a_hurry_lets_most_pass():
    scope = imports(PAGE)
    for words in ("def beside(", "of {len(rules)} pass"):
        exec(code_with(words), scope)
    assert set(scope["passed"]) < set(RULES)
    assert len(scope["passed"]) > len(RULES) / 2
    # stated without a number: nearly all
    assert {"overlap", "axes"} >= set(RULES) - set(scope["passed"])


@pytest.fixture(scope="module")
def caught() -> dict[str, set[str]]:
    found = {key: noticed_by(mutant.name) for key, mutant in RULES.items()}
    return {key: {law for law in LAWS if laws[law]} for key, laws in found.items()}


def test_what_is_read_from_the_columns(caught):
    shape, compare = "shape", ("equals_loops", "adjoint", "directional_difference")
    assert {key for key in RULES if shape in caught[key]} < set(RULES)
    for key, laws in caught.items():
        plain = [law in laws for law in compare]
        assert len(set(plain)) == 1 or key == "overwritten"
    assert caught["overwritten"] & set(compare) == {"equals_loops"}
    counts = {law: sum(law in laws for laws in caught.values()) for law in LAWS}
    assert max(counts, key=counts.get) == "memory_layout"
    assert list(counts.values()).count(max(counts.values())) == 1
    for key in ("view", "turned-kernel", "half", "infinity", "integers"):
        assert not caught[key] & {"shape", *compare}


def test_how_many_laws_are_enough(caught):
    """Fewer than three are not, and the three that the page prints are."""
    for pair in itertools.combinations(LAWS, 2):
        assert not all(laws & set(pair) for laws in caught.values())
    assert all(laws & {"memory_layout", "infinity", "wide_sums"} for laws in caught.values())


def test_the_heads_of_the_table_are_as_many_as_laws():
    names = re.search(r'names = "(.*)"', code_with("heads = dict("))[1].split()
    assert len(names) == len(set(names)) == len(LAWS)


# ---- derivations -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wgrad_g_turned", "wgrad_images_mixed", "wgrad_g_transposed"])
def test_equal_numbers_hide_every_other_order(name):
    rng = np.random.default_rng(0)
    for _ in range(10):
        geometry = random_geometry(rng, MUTANTS[name].shows)
        draw = random_operands(geometry, rng)
        g = np.full(geometry.output_shape, 7.0)
        right = loops.grad_weight(g, draw.x, geometry)
        assert np.array_equal(MUTANTS[name](g, draw.x, geometry), right)


def test_one_random_g_is_overlooked_at_most_once_in_nine():
    case = pictures.row()
    overlooked = 0
    numbers = list(itertools.product(range(-4, 5), repeat=2))
    for pair in numbers:
        g = np.array(pair, dtype=float).reshape(case.grad_output.shape)
        wrong = MUTANTS["wgrad_g_turned"](g, case.x, case.geometry)
        overlooked += np.array_equal(wrong, loops.grad_weight(g, case.x, case.geometry))
    assert overlooked == len(numbers) / 9  # the bound is reached here


@pytest.mark.parametrize("parts", [(2, 2, 2), (1, 2, 5), (4, 4)])
def test_the_mean_of_means(parts):
    shares = np.random.default_rng(0).integers(-9, 10, sum(parts)).astype(float)
    by_process = np.split(shares, np.cumsum(parts)[:-1])
    P, N = len(parts), sum(parts)
    wanted = shares.sum() / N
    plain = sum(each.mean() for each in by_process) / P
    assert np.isclose(plain, wanted) == (len(set(parts)) == 1)
    scaled = sum(P * len(each) / N * each.mean() for each in by_process) / P
    assert np.isclose(scaled, wanted)


# ---- the exercises explain ---------------------------------------------------------------------


def test_the_four_suspects_leave_four_grids():
    from convgrad.exercises import museum

    grids = [museum._left_by(MUTANTS[name].function) for name in museum._SUSPECTS]
    grids.append(museum._left_by(loops.grad_weight))
    for one, other in itertools.combinations(grids, 2):
        assert not np.array_equal(one, other)
    assert grids[0][0].tolist() == [3, 300] and grids[3][0].tolist() == [1.5, 15]
    assert (np.array([f"{n:g}"[0] for n in grids[2].ravel()]) == "2").all()


def _one_by_one(grad_output):
    total = np.zeros(grad_output.shape[1], np.float16)
    for image in grad_output:
        for o, plane in enumerate(image):
            for cell in plane.ravel():
                total[o] += cell
    return total


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sixteen bits overflow
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (_one_by_one, "16 bits|outgrew its dtype"),
        (lambda g: g.sum(axis=(0, 2, 3)), "16 bits|outgrew its dtype"),
        (lambda g: g.sum(axis=(0, 1, 2)), "summed over"),
        (lambda g: g.astype(np.float32).mean(axis=(0, 2, 3)), "mean"),
        (lambda g: g.astype(np.float32).sum(axis=(0, 2, 3)).squeeze(), "squeezed"),
    ],
)
def test_wrong_wide_sums_are_told_why(wrong, words):
    verdict = exercises.get("museum-wide-bias").check(wrong)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def _by_comparison(rules, geometry, *, ones=False, shape=False):
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 10, geometry.x_shape).astype(float)
    g = rng.integers(-9, 10, geometry.output_shape).astype(float)
    if ones:
        g = np.ones_like(g)
    right = loops.grad_weight(g, x, geometry)
    found = [rule(g, x.copy(), geometry) for rule in rules]
    if shape:
        return [each.shape == right.shape for each in found]
    return [np.array_equal(each, right) for each in found]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda rules, geometry: [True] * 3, "let rule 0 pass.*the last image wins"),
        (lambda rules, geometry: [False] * 3, "is right, and your check turned it down"),
        (lambda rules, geometry: _by_comparison(rules, geometry, ones=True), "let rule 1 pass"),
        (lambda rules, geometry: _by_comparison(rules, geometry, shape=True), "the last image"),
        (_by_comparison, "ignores its strides"),
        (lambda rules, geometry: True, r"shape \(\)"),
    ],
    ids=["always yes", "always no", "ones", "shape", "fresh arrays", "one answer"],
)
def test_weak_judges_are_told_what_they_let_pass(wrong, words):
    verdict = exercises.get("museum-judge").check(wrong)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def test_a_judge_that_forgets_the_operand_is_told():
    def judge(rules, geometry):
        rng = np.random.default_rng(1)
        x = rng.integers(-9, 10, geometry.x_shape).astype(float)
        N, *rest = geometry.output_shape
        g = rng.integers(-9, 10, (N, 2, *rest)).astype(float)[:, 1]
        right = loops.grad_weight(g, x, geometry)
        return [np.array_equal(rule(g, x.copy(), geometry), right) for rule in rules]

    verdict = exercises.get("museum-judge").check(judge)
    assert "let rule 2 pass. Its mistake: Clears its windows" in verdict.message
