"""*Bias, batch, and knowing you are right* tells the truth: its numbers, pictures and words."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from pages import PAGES, alt_text, cells, imports, spoken

from convgrad import (
    ConvGeometry,
    conv2d,
    conv2d_backward,
    example,
    exercises,
    loops,
    per_sample_weight_gradients,
)
from convgrad.checks import random_geometry, random_operands
from convgrad.mutants import MUTANTS

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import bias_and_checks as pictures
from convgrad.figures.grids import written

PAGE = "bias_and_checks"


# ---- the bias and the batch ------------------------------------------------------------------


def test_the_shares_of_the_kernel_worked_by_hand():
    g = example("D").arrays().grad_output
    total = loops.grad_bias(g, example("D").geometry)
    shares = g[:, 4].sum(axis=(1, 2))
    assert shares.tolist() == [7, 12, -6]
    assert shares.sum() == total[4] == 13
    alt = alt_text(PAGE, "shares(")
    for n, image in enumerate(g[:, 4]):
        assert re.search(
            f"Image {n}: {spoken(image)}, which adds up to {written(shares[n])}\\.", alt
        )
    assert alt.endswith("kernel 4: 13.")
    assert {"adds up to 7", "adds up to 12", "adds up to −6", "13"} <= set(
        pictures.shares(4).words()
    )


def test_the_player_ends_with_the_same_numbers():
    widgets = pytest.importorskip("convgrad.widgets")
    player = widgets.ContributionPlayer(example("D"), target="bias", order="kernel")
    assert player.gradients.grad_bias[4] == 13
    assert player.steps == example("D").arrays().grad_output.size


def test_a_batch_in_parts_and_image_by_image():
    x, weight, _, g = example("D").arrays()
    whole = loops.grad_weight(g, x, example("D").geometry)
    parts = [conv2d_backward(g[s], x[s], weight, groups=2)[1] for s in (slice(1), slice(1, 3))]
    assert np.array_equal(parts[0] + parts[1], whole)
    alone = per_sample_weight_gradients(g, x, weight.shape, groups=2)
    assert np.array_equal(alone.sum(axis=0), whole)
    assert np.array_equal(alone[0], parts[0])


# ---- a step ----------------------------------------------------------------------------------


@pytest.mark.parametrize("operand", ["x", "weight", "bias"])
def test_the_loss_is_a_straight_line_in_each_operand_but_not_in_two(operand):
    arrays = example("B").arrays()._asdict()
    g = arrays.pop("grad_output")
    rng = np.random.default_rng(0)
    moves = {name: rng.integers(-4, 5, size=a.shape) for name, a in arrays.items()}

    def loss(step: int, *moved: str) -> float:
        at = {name: a + step * moves[name] * (name in moved) for name, a in arrays.items()}
        return np.vdot(g, conv2d(**at))

    start = loss(0)
    assert loss(5, operand) - start == 5 * (loss(1, operand) - start)
    assert loss(5, "x", "weight") - start != 5 * (loss(1, "x", "weight") - start)


def test_what_the_chart_of_steps_shows_and_its_words_say():
    errors = pictures.step_errors()
    straight, bent, wide = (np.array(each) for each in errors.values())
    assert straight.argmin() == 0 and straight[0] < 1e-6
    assert straight[-1] == pytest.approx(1)
    assert wide[0] > 0.1 and wide[-1] < 1e-6
    assert (np.diff(wide) < 0).all()
    best = bent.argmin()
    assert 0 < best < len(bent) - 1
    assert bent[best] > 1e-4
    assert bent[-1] > bent[best] < bent[0]
    assert set(errors) <= set(pictures.step_sizes().words())
    alt = alt_text(PAGE, "step_sizes(")
    for claim in ("smallest at step 1, below 1e−6", "above 0.1 at step 1", "still above 1e−4"):
        assert claim in alt


# ---- two sums --------------------------------------------------------------------------------


def test_three_pairs_add_up_to_one_number():
    x, weight, _, g = example("B").arrays()
    geometry = example("B").geometry
    y = loops.forward(x, weight, geometry)
    grad_weight = loops.grad_weight(g, x, geometry)
    grad_input = loops.grad_input(g, weight, geometry)
    sums = [np.vdot(y, g), np.vdot(weight, grad_weight), np.vdot(x, grad_input)]
    assert sums == [22, 22, 22]
    assert pictures.three_sums().words().count("adds up to 22") == 3
    alt = alt_text(PAGE, "three_sums(")
    for grid in (y, g, weight, grad_weight):
        assert spoken(grid[0, 0]) in alt
    assert alt.count("22") == 3


def test_each_of_the_sums_is_the_sum_of_all_products():
    x, weight, _, g = example("D").arrays()
    geometry = example("D").geometry
    every = sum(
        weight[o, c, i, j] * loops.read(x, at) * g[n, o, p, q]
        for n, o, p, q, c, i, j, at in loops.products(geometry)
    )
    assert every == np.vdot(g, loops.forward(x, weight, geometry))


# ---- the count of survivors ------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted() -> dict[str, list[set[str]]]:
    """What the chapter's own cells leave in ``left``."""
    scope = imports(PAGE)
    for wanted in ("def noticed", "def survivors", "left = "):
        (code,) = (code for _, code in cells(PAGE) if wanted in code)
        exec(compile(code, PAGE, "exec"), scope)
    return scope["left"]


@pytest.mark.slow
def test_ones_and_easy_sizes_let_mistakes_live(counted):
    for ones, others in counted.values():
        assert others < ones
    sizes = [[len(some) for some in pair] for pair in counted.values()]  # B, usual, random
    for column in zip(*sizes, strict=True):
        assert column[0] > column[1] > column[2]
    # "sizes make the larger difference"
    assert sizes[0][1] - sizes[2][1] > max(ones - others for ones, others in sizes)


def test_what_only_ones_let_through_moves_numbers_of_g(counted):
    ones, others = counted["random"]
    blind = ones - others
    assert blind == {
        name for name, m in MUTANTS.items() if m.survives_ones and m.killed_by == "adjoint"
    }
    assert all("grad_output" in MUTANTS[name].sentence for name in blind)


def test_what_is_left_needs_numbers_that_are_not_ordinary(counted):
    special = {"memory_layout", "operands_untouched", "wide_sums", "empty_batch", "infinity"}
    special |= {"dtype"}
    assert {MUTANTS[name].killed_by for name in counted["random"][1]} == special


def test_two_of_the_five_checks_let_the_turned_g_pass():
    widgets = pytest.importorskip("convgrad.widgets")
    broken = widgets.BreakTheGradient(example("B"), mistake="wgrad_g_turned")
    assert [each.check for each in broken.findings if not each.noticed] == ["ones", "shape"]
    assert len(broken.findings) == 5


def test_several_mistakes_pass_all_five_on_example_b():
    pytest.importorskip("anywidget")
    from convgrad.widgets.mistakes import MISTAKES
    from convgrad.widgets.noticing import findings

    arrays = example("B").arrays()._asdict()
    silent = [
        name
        for name in MISTAKES
        if not any(each.noticed for each in findings(name, example("B").geometry, arrays))
    ]
    assert len(silent) > 1


def test_a_batch_without_images_has_zeros_for_gradients():
    none = ConvGeometry(N=0, C=2, H=4, W=4, O=3, KH=3, KW=3)
    g, x = np.zeros(none.output_shape), np.zeros(none.x_shape)
    assert not loops.grad_weight(g, x, none).any()
    assert loops.grad_weight(g, x, none).shape == (3, 2, 3, 3)
    with pytest.raises(ValueError, match="cannot reshape"):
        MUTANTS["reshape_minus_one"](g, x, none)


# ---- derivations -----------------------------------------------------------------------------


def test_a_wrong_gradient_passes_one_direction_in_nine_at_most():
    numbers = range(-4, 5)
    for off in ((1, 0, 0), (1, -1, 0), (2, 1, -3), (0, 0, 5)):
        passes = sum(np.dot(off, d) == 0 for d in itertools.product(numbers, repeat=3))
        assert passes <= 9**3 / 9
    assert 9**10 > 3_000_000_000


@pytest.mark.parametrize("seed", range(20))
def test_ones_make_every_tap_the_sum_of_a_block(seed):
    rng = np.random.default_rng(seed)
    side = int(rng.integers(2, 5))
    geometry = ConvGeometry(N=2, C=2, H=side + 2, W=side + 1, O=3, KH=3, KW=2)
    draw = random_operands(geometry, rng)
    ones = np.ones(geometry.output_shape)
    grad = loops.grad_weight(ones, draw.x, geometry)
    for c, i, j in np.ndindex(grad.shape[1:]):
        block = draw.x[:, c, i : i + geometry.OH, j : j + geometry.OW]
        assert (grad[:, c, i, j] == block.sum()).all()


def test_ones_make_a_middle_cell_the_sum_of_all_weights():
    geometry = ConvGeometry(C=2, H=7, W=8, O=3, KH=3, KW=2)
    weight = random_operands(geometry, np.random.default_rng(0)).weight
    ones = np.ones(geometry.output_shape)
    for rule in (loops.grad_input, MUTANTS["dgrad_no_flip"]):
        middle = rule(ones, weight, geometry)[0, :, 3, 4]
        assert np.array_equal(middle, weight.sum(axis=(0, 2, 3)))


def test_the_count_in_the_text_is_the_count_of_the_cell():
    text = PAGES[PAGE].read_text("utf-8")
    assert "if sixty tests of that kind" in text and "range(60)" in text


# ---- the exercises explain -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bias_axes_012", "summed over"),
        ("bias_squeeze", "shape"),
        ("bias_batch_kept", "still has an axis for the images"),
        ("bias_batch_mean", "mean"),
        ("bias_position_mean", "mean|divided"),
    ],
)
def test_wrong_bias_gradients_are_told_why(name, words):
    def rule(grad_output):
        N, O, OH, OW = grad_output.shape
        return MUTANTS[name](grad_output, ConvGeometry(N=N, C=1, H=OH, W=OW, O=O, KH=1, KW=1))

    verdict = exercises.get("bias-write").check(rule)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def _never_restored(loss, weight):
    grad = np.zeros(weight.shape)
    start = loss(weight)
    for at in np.ndindex(weight.shape):
        weight[at] += 1
        grad[at] = loss(weight) - start
    return grad


def _undivided(loss, weight):
    right = _slopes(loss, weight)
    return 2 * right  # a step of 2, and no division


def _wrong_way(loss, weight):
    return -_slopes(loss, weight)


def _one_number(loss, weight):
    return loss(weight + 1) - loss(weight)


def _slopes(loss, weight):
    scope = {"np": np}
    exec(exercises.get("check-by-steps").solution, scope)
    return scope["slopes"](loss, weight)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (_never_restored, "changed one of its arguments"),
        (_undivided, "2 times"),
        (_wrong_way, "sign"),
        (_one_number, "shape"),
    ],
)
def test_wrong_steps_are_told_why(wrong, words):
    verdict = exercises.get("check-by-steps").check(wrong)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


@pytest.mark.parametrize("seed", range(20))
def test_the_pair_of_wrongs_agrees_on_every_draw_and_the_others_do_not(seed):
    from convgrad.exercises.bias_and_checks import _PAIRS, _WIDE

    draw = random_operands(_WIDE, np.random.default_rng(seed))
    agree = [
        np.vdot(forward(draw.x, draw.weight), draw.grad_output)
        == np.vdot(draw.x, backward(draw.grad_output, draw.weight))
        for forward, backward in _PAIRS.values()
    ]
    assert agree[exercises.get("check-both-wrong").answer]
    assert sum(agree) <= 2  # now and then another pair agrees by accident: draw several


def test_random_sizes_differ():
    """What the recipe asks for, a good part of the random geometries has."""
    rng = np.random.default_rng(0)
    some = [random_geometry(rng) for _ in range(200)]
    assert sum(1 < g.groups < g.C for g in some) > 50
    assert sum(g.leftover != (0, 0) for g in some) > 50
