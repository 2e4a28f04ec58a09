"""*Approximate and second gradients* tells the truth: numbers, pictures, averages, trainings."""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from pages import alt_text, cells, spoken

from convgrad import conv2d as forward
from convgrad import (
    conv2d_backward,
    double_backward,
    example,
    exercises,
    loops,
    per_sample_weight_gradients,
)
from convgrad.exercises import approximate_gradients as bank
from convgrad.figures.grids import tap

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")
from torch.autograd import gradcheck  # noqa: E402

from convgrad.autograd import (  # noqa: E402
    Training,
    compare_gradients,
    conv2d,
    gradients,
    quantised,
    random_taps,
    sign,
    stripes,
    subsampled_batch,
    top_k,
    train,
)
from convgrad.autograd.training import DIRECTIONS  # noqa: E402
from convgrad.figures.chapters import approximate_gradients as pictures  # noqa: E402

PAGE = "approximate_gradients"
pytestmark = pytest.mark.oracle


# ---- the worked example ----------------------------------------------------------------------


def test_the_tap_from_two_of_nine():
    geometry, x = example("B").geometry, example("B").arrays().x
    g, two = example("B").arrays().grad_output, pictures.two_largest()
    assert np.count_nonzero(two) == 2 and set(np.unique(two)) == {0, 2}
    assert loops.grad_weight(two, x, geometry)[0, 0, 1, 2] == 1 * 2 + 2 * 2 == 6
    assert loops.grad_weight(g, x, geometry)[0, 0, 1, 2] == 9
    assert np.array_equal(two, bank._kept())
    assert spoken(g[0, 0], ", ") == "1 0 2, −1 1 0, 0 2 1"  # as the page writes it out


def test_the_picture_of_two_numbers_in_words():
    geometry, x = example("B").geometry, example("B").arrays().x
    two = pictures.two_largest()
    alt = alt_text(PAGE, "kept_two(")
    meets = tap(geometry, 1, 2)
    for p, q in np.argwhere(two[0, 0]).tolist():
        h, v = meets[p * geometry.OW + q]
        assert f"({h}, {v})" in alt and f"({p}, {q})" in alt
        assert f"{x[0, 0, h, v]:g}" in alt
    assert spoken(loops.grad_weight(two, x, geometry)[0, 0]) in alt
    assert "tap (1, 2) lit: 6" in alt


def test_the_rule_of_the_page_keeps_the_two_largest():
    x, weight, bias, g = map(torch.from_numpy, example("B").arrays())

    def largest(exact, grad_output, x, weight):
        sizes = grad_output.abs()
        return exact(grad_output * (sizes >= sizes.flatten().sort().values[-2]), x, weight)

    found = compare_gradients(x, weight, bias, g, rule=largest)
    expected = loops.grad_weight(
        pictures.two_largest(), example("B").arrays().x, example("B").geometry
    )
    assert np.array_equal(found.weight.mine, expected)


# ---- downhill --------------------------------------------------------------------------------


def test_an_error_in_g_becomes_the_gradient_of_that_error():
    x, weight, bias, g = map(torch.from_numpy, example("D").arrays())
    found = compare_gradients(x, weight, bias, g, groups=2, rule=quantised(3)).weight
    largest = g.abs().amax()
    error = ((g * 3 / largest).round() * largest / 3 - g).numpy()
    of_error = loops.grad_weight(error, x.numpy(), example("D").geometry)
    np.testing.assert_allclose(found.mine - found.autograd, of_error, atol=1e-12)


def test_a_small_step_along_a_positive_cosine_goes_downhill():
    x, weight, _, g = map(torch.from_numpy, example("D").arrays())
    for rule in (sign, quantised(3), top_k(0.25)):
        weight_gap = compare_gradients(x, weight, None, g, groups=2, rule=rule).weight
        step = torch.from_numpy(weight_gap.mine)
        losses = [
            (conv2d(x, weight - eta * step, groups=2) * g).sum().item() for eta in (0.0, 1e-6)
        ]
        assert (losses[1] < losses[0]) == (weight_gap.cosine > 0)


# ---- right on average ------------------------------------------------------------------------


def test_the_average_over_all_draws_is_the_gradient():
    x, weight, _, g = example("D").arrays()
    shares = per_sample_weight_gradients(g, x, weight.shape, groups=2)
    draws = [3 / 2 * shares[[*some]].sum(0) for some in combinations(range(3), 2)]
    assert len(draws) == 3
    assert np.array_equal(sum(draws) / 3, shares.sum(0))
    assert not np.array_equal(draws[0], shares.sum(0))


def averages(rule, steps: int) -> float:
    geometry = example("D").geometry
    x, weight, _, g = map(torch.from_numpy, example("D").arrays())
    exact = gradients(g, x, weight, geometry).grad_weight
    every = [gradients(g, x, weight, geometry, rule=rule).grad_weight for _ in range(steps)]
    return ((sum(every) / steps - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("rule", [subsampled_batch, random_taps])
def test_what_draws_is_right_on_average(rule):
    """The page: after a thousand steps about a thirtieth of one step's error is left."""
    ratios = []
    for seed in range(3):
        drawing = rule(0.5, torch.Generator().manual_seed(seed))
        one = np.mean([averages(drawing, 1) for _ in range(20)])
        ratios.append(averages(drawing, 1000) / one)
    assert 1 / 100 < np.mean(ratios) < 1 / 12


@pytest.mark.parametrize("rule", [sign, quantised(4), top_k(0.25)])
def test_what_draws_nothing_stays_where_it_is(rule):
    assert averages(rule, 1) == pytest.approx(averages(rule, 10)) != 0


def test_the_signs_beat_half_of_the_taps_at_a_single_step():
    operands = [*map(torch.from_numpy, example("D").arrays())]
    seeded = torch.Generator().manual_seed(0)
    compare_gradients(*operands, groups=2, rule=subsampled_batch(0.5, seeded))  # draws first
    drawn = compare_gradients(*operands, groups=2, rule=random_taps(0.5, seeded)).weight.cosine
    assert compare_gradients(*operands, groups=2, rule=sign).weight.cosine > drawn


# ---- the training ----------------------------------------------------------------------------


def blind(exact, grad_output, x, weight):
    return exact(torch.randn_like(grad_output) * grad_output.abs().mean(), x, weight)


RULES = {
    "exact": None,
    "quantised, 3 bits": quantised(3),
    "¼ of the images": subsampled_batch(1 / 4),
    "⅓ of the taps": random_taps(1 / 3),
    "top 10 %": top_k(0.1),
    "sign": sign,
    "blind": blind,
}


@cache
def run(name: str) -> Training:
    return train(RULES[name])


def test_the_runs_are_those_of_the_page():
    (code,) = (code for _, code in cells(PAGE) if code.startswith("runs = "))
    assert re.findall(r'"([^"{]+)": train\(', code) == list(RULES)
    for call in ("quantised(3)", "subsampled_batch(1 / 4)", "random_taps(1 / 3)", "top_k(0.1)"):
        assert f"train({call})" in code


@pytest.mark.slow  # seven trainings
def test_what_the_page_says_of_the_runs():
    """With room: another machine adds in another order."""
    start = math.log(len(DIRECTIONS))
    for name in RULES:
        assert run(name).loss[0] == pytest.approx(start, abs=0.1)
        assert len(run(name).loss) == len(run(name).cosine) == 150
    for name in ("exact", "quantised, 3 bits", "¼ of the images", "⅓ of the taps"):
        assert run(name).loss[-1] < 0.1
        assert run(name).accuracy > 0.95
    for name in ("top 10 %", "sign"):
        assert run(name).loss[-1] < 0.4
        middle = sum(run(name).loss[60:90])
        assert middle > 2 * sum(run("exact").loss[60:90])  # they take longer
    assert min(run("blind").loss) > 1.2
    assert run("blind").accuracy < 0.8


@pytest.mark.slow  # seven trainings
def test_the_cosines_of_the_runs():
    means = {name: np.mean(run(name).cosine) for name in RULES}
    assert min(run("exact").cosine) > 0.999999
    assert 0.85 < means["quantised, 3 bits"] < 0.97
    taps = np.array(run("⅓ of the taps").cosine)
    assert abs(means["⅓ of the taps"] - math.sqrt(1 / 3)) < 0.03  # the exercise
    assert taps.std() < 0.05
    assert means["top 10 %"] > 0.5
    for name in ("¼ of the images", "sign"):
        assert np.std(run(name).cosine) > 0.1
        assert np.mean(np.array(run(name).cosine) > 0) > 0.8
    assert abs(means["blind"]) < 0.1


@pytest.mark.slow  # seven trainings
def test_the_picture_of_the_runs_in_words():
    alt = alt_text(PAGE, "curves(")
    figure = pictures.curves({name: run(name) for name in RULES})
    for name in RULES:
        if name != "exact":
            assert name in figure.words()
            assert name.lower() in alt.lower()
    assert f"over {len(run('exact').loss)} steps" in alt
    assert len(figure.axes) == 2 * 6
    assert alt.startswith("Six pairs of curves")
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert np.array_equal(drawn[0], run("exact").loss)
    assert np.array_equal(drawn[1], run("quantised, 3 bits").loss)
    assert np.array_equal(figure.axes[1].lines[-1].get_ydata(), run("quantised, 3 bits").cosine)


def test_a_training_can_be_repeated_and_leaves_the_dice_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = train(random_taps(0.5), steps=3, batch=4)
    assert torch.equal(torch.get_rng_state(), before)
    torch.randn(7)
    assert train(random_taps(0.5), steps=3, batch=4) == first
    assert train(random_taps(0.5), steps=3, batch=4, seed=1) != first


def test_the_stripes_lie_as_their_names_say():
    clean, labels = stripes(8, noise=0)
    for image, label in zip(clean[:, 0], labels, strict=True):
        name = DIRECTIONS[label]
        if name == "lying":
            assert torch.allclose(image, image[:, :1].expand_as(image))
        elif name == "standing":
            assert torch.allclose(image, image[:1].expand_as(image))
        else:  # the same along a diagonal: falling goes right and down, rising right and up
            one = image if name == "falling" else image.flip(0)
            assert torch.allclose(one[1:, 1:], one[:-1, :-1])
    again, _ = stripes(8, noise=0)
    assert torch.equal(clean, again)
    assert not torch.equal(clean, stripes(8, noise=0, seed=1)[0])


# ---- straight through and second gradients ---------------------------------------------------


def test_the_penalty_worked_by_hand():
    x, weight, g = [[[[1, 2, 3]]]], [[[[1, -1]]]], [[[[2, 5]]]]
    words = pictures.of_second_pass().words()
    alt = alt_text(PAGE, "of_second_pass(")
    first = np.convolve([2, 5], [1, -1]).astype(float)
    assert spoken(first[None]) == "2 3 −5" and f"∂L/∂x: {spoken(first[None])}" in alt
    seconds = double_backward(first[None, None, None], None, None, g, x, weight)
    assert seconds[2].ravel().tolist() == [2 * 2 + 5 * 3, 2 * 3 + 5 * -5] == [19, -19]
    assert seconds[0].ravel().tolist() == [-1, 8]
    assert not seconds[1].any()
    assert "∂L'/∂w: 19 −19" in alt
    assert {"19", "−19", "∂L'/∂w"} <= set(words)


def test_what_gradcheck_sees_of_a_rule():
    x, weight, bias, _ = (torch.from_numpy(a).requires_grad_() for a in example("C").arrays())

    def passes(rule, fast_mode):
        def rough(x, weight, bias):
            return conv2d(x, weight, bias, stride=2, rule=rule)

        return gradcheck(rough, (x, weight, bias), raise_exception=False, fast_mode=fast_mode)

    for rule in (quantised(4), top_k(0.25)):
        assert passes(rule, fast_mode=False)
        assert not passes(rule, fast_mode=True)
    assert not passes(sign, fast_mode=False)


# ---- how this goes wrong ---------------------------------------------------------------------


def test_sizes_and_not_numbers():
    """The largest in size point in the gradient's direction better than the largest numbers."""

    def largest_numbers(exact, grad_output, x, weight):
        limit = grad_output.quantile(0.75)
        return exact(grad_output * (grad_output >= limit), x, weight)

    torch.manual_seed(0)
    for seed in range(4):
        images, kernels = torch.randn(4, 3, 9, 9), torch.randn(5, 3, 3, 3)
        sizes, numbers = (
            compare_gradients(images, kernels, rule=rule, seed=seed).weight.cosine
            for rule in (top_k(0.25), largest_numbers)
        )
        assert sizes > numbers + 0.05
    kept = top_k(0.25)(lambda g, x, w: g, torch.tensor([-9.0, 1, 2, 3]), None, None)
    assert kept.tolist() == [-9, 0, 0, 0]


def test_who_learns_at_the_ends():
    """The page prints what the installed clamp does at its ends; elsewhere there is no doubt."""
    whole = torch.tensor([-9.0, -8, -1, 0, 7, 8], requires_grad=True)
    whole.clamp(-8, 7).sum().backward()
    found = whole.grad.tolist()
    assert found[0] == found[-1] == 0
    assert found[2:4] == [1, 1]
    assert found[1] == found[4]  # both ends alike
    w = torch.tensor([-9.4, -8.3, -0.6, 0.4, 6.8, 8.2])
    assert torch.equal(w.round(), whole.detach())


# ---- the exercises ---------------------------------------------------------------------------


def test_the_penalty_of_the_exercise_is_autograds():
    g, x, w = (
        torch.from_numpy(row[None, None]).requires_grad_() for row in (bank._G, bank._X, bank._W)
    )
    y = torch.nn.functional.conv2d(x, w)
    (first,) = torch.autograd.grad(y, x, g, create_graph=True)
    (by_w,) = torch.autograd.grad(first.square().sum() / 2, w)
    assert np.array_equal(by_w[0, 0].numpy(), exercises.get("approx-penalty").answer)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda exact, g, x, w: exact(g, x, w), "changes nothing"),
        (lambda exact, g, x, w: exact(g.sign(), x, w), "sizes are missing"),
        (lambda exact, g, x, w: exact(g.sign() * g.abs().mean(), x, w), "one mean over all"),
        (
            lambda exact, g, x, w: exact(g.sign() * g.mean((0, 2, 3), keepdim=True), x, w),
            "numbers with their signs",
        ),
        (lambda exact, g, x, w: exact(g, x, w)[1], "one array"),
        (lambda exact, g, x, w: exact(g.mul_(2), x, w), "changed one of its arguments"),
    ],
)
def test_a_rule_is_told_its_mistake(rule, words):
    verdict = exercises.get("approx-kernel-signs").check(rule)
    assert not verdict.passed and not verdict.untouched
    assert re.search(words, verdict.message), verdict.message


def second_pass(ggx, ggw, g, x, weight, how):
    """The right answer, and what one may take for it."""
    by_x, by_weight, _ = conv2d_backward(g, ggx, ggw, **how)
    once = conv2d_backward(g, x, weight, **how)
    one, other = forward(ggx, weight, **how), forward(x, ggw, **how)
    return one + other, by_x, by_weight, once, one, other, forward(ggx, ggw, **how)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g, x, w, once, one, other, both: (other, x, w), "two terms, the one with ggw"),
        (lambda g, x, w, once, one, other, both: (one, x, w), "two terms, the one with ggx"),
        (lambda g, x, w, once, one, other, both: (both, x, w), "convolved ggx with ggw"),
        (lambda g, x, w, once, one, other, both: (g, once[0], w), "this is grad_input itself"),
        (lambda g, x, w, once, one, other, both: (g, x, once[1]), "this is grad_weight itself"),
        (lambda g, x, w, once, one, other, both: (g, x), "returns 2 results"),
        (lambda g, x, w, once, one, other, both: g, "returns one array"),
    ],
)
def test_a_second_pass_is_told_its_mistake(change, words):
    def second(*operands):
        return change(*second_pass(*operands))

    verdict = exercises.get("approx-second").check(second)
    assert not verdict.passed and not verdict.untouched
    assert re.search(words, verdict.message), verdict.message


def test_the_derivation_of_the_cosine_of_a_part():
    rng = np.random.default_rng(0)
    for _ in range(5):
        whole, kept = rng.normal(size=50), rng.random(50) < 0.4
        part = 2.5 * whole * kept
        cosine = whole @ part / np.linalg.norm(whole) / np.linalg.norm(part)
        assert cosine == pytest.approx(np.linalg.norm(whole[kept]) / np.linalg.norm(whole))
