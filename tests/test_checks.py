"""Checks: right gradients pass and are never blamed, wrong ones are named by their cause."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import complex_integer_arrays
from test_mutants import RIGHT

from convgrad import (
    IMPLEMENTATIONS,
    ConvGeometry,
    ShapeError,
    example,
    grouped,
    ledger,
    windows,
)
from convgrad.checks import (
    CAUSES,
    LAWS,
    Draw,
    LawBroken,
    assert_adjoint,
    directional_difference,
    explain_difference,
    matching_causes,
    random_geometry,
    random_operands,
)
from convgrad.checks.hypotheses import Operands
from convgrad.mutants import MUTANTS, Mutant

TARGETS = ("weight", "input", "bias")
OPERANDS = ("x", "weight", "grad_output")


def known(draw: Draw, target: str) -> dict:
    """Everything explain_difference may be told."""
    return {"target": target, **draw._asdict()}


def right(draw: Draw, target: str) -> np.ndarray:
    return RIGHT[target](*draw.operands(target), draw.geometry)


def conjugated(draw: Draw, target: str) -> np.ndarray:
    """The right gradient of complex operands too: the other factor is conjugated."""
    return right(draw._replace(x=draw.x.conj(), weight=draw.weight.conj()), target)


# ---- laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("target", TARGETS)
def test_right_gradients_obey_every_law(target, law):
    rng = np.random.default_rng(1)
    for _ in range(8):
        LAWS[law].check(RIGHT[target], target, random_geometry(rng), rng)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("law", LAWS)
def test_every_implementation_obeys_every_law(name, law):
    rng = np.random.default_rng(2)
    for target in TARGETS:
        rule = getattr(IMPLEMENTATIONS[name], f"grad_{target}")
        for _ in range(4):
            LAWS[law].check(rule, target, random_geometry(rng), rng)


def test_each_law_says_what_it_says():
    for name, law in LAWS.items():
        assert law.name == name
        assert law.sentence.endswith(".")


def test_assert_adjoint_says_both_numbers():
    geometry = example("B").geometry
    x, weight, _, g = example("B").arrays()

    def forward(weight):
        return windows.forward(x, weight, geometry)

    assert_adjoint(forward, lambda g: windows.grad_weight(g, x, geometry), weight, g)
    with pytest.raises(LawBroken, match=r"⟨v, linear\(u\)⟩ = .*, but ⟨adjoint\(v\), u⟩ = "):
        assert_adjoint(forward, lambda g: MUTANTS["wgrad_reversed"](g, x, geometry), weight, g)
    with pytest.raises(LawBroken, match="its adjoint"):
        assert_adjoint(forward, lambda g: MUTANTS["wgrad_batch_kept"](g, x, geometry), weight, g)
    with pytest.raises(LawBroken):
        assert_adjoint(forward, lambda g: np.full(weight.shape, np.nan), weight, g)


def test_assert_adjoint_is_exact_unless_told_otherwise():
    matrix, u, v = np.arange(6.0).reshape(2, 3), np.array([1.0, 0, 2]), np.array([1.0, 1])
    off_by_one = matrix.copy()
    off_by_one[0, 0] += 1
    assert_adjoint(lambda u: matrix @ u, lambda v: matrix.T @ v, u, v)
    with pytest.raises(LawBroken):
        assert_adjoint(lambda u: matrix @ u, lambda v: off_by_one.T @ v, u, v)


def test_assert_adjoint_does_not_wrap_around():
    u, v = np.full(3, 100, np.int8), np.full(3, 100, np.int8)
    assert_adjoint(lambda u: u, lambda v: v, u, v)
    # 128 more, twice: nothing at all in eight bits
    with pytest.raises(LawBroken):
        assert_adjoint(lambda u: u, lambda v: v + np.array([64, 0, 64], np.int8), u, v)


def test_assert_adjoint_allows_rounding_when_told():
    rng = np.random.default_rng(0)
    matrix, u, v = (rng.standard_normal(shape) for shape in ((40, 30), 30, 40))
    noisy = matrix * (1 + 1e-14)
    assert_adjoint(lambda u: matrix @ u, lambda v: noisy.T @ v, u, v, rtol=1e-12)
    with pytest.raises(LawBroken):
        assert_adjoint(lambda u: matrix @ u, lambda v: matrix.T @ v * 1.001, u, v, rtol=1e-12)


def test_a_step_of_one_is_exact_because_convolution_is_bilinear():
    rng = np.random.default_rng(3)
    geometry, x, weight, g = random_operands(random_geometry(rng), rng)
    direction = rng.integers(-4, 5, size=x.shape).astype(float)

    def loss(x):
        return np.vdot(g, windows.forward(x, weight, geometry))

    promised = np.vdot(windows.grad_input(g, weight, geometry), direction)
    assert directional_difference(loss, x, direction) == promised
    assert directional_difference(loss, x, direction, step=1024) == promised
    # a loss that bends is another matter
    assert directional_difference(lambda x: loss(x) ** 2, x, direction) != 2 * loss(x) * promised


# ---- draws -----------------------------------------------------------------------------------


def test_draws_leave_no_mistake_a_corner_to_hide_in():
    rng = np.random.default_rng(4)
    some = [random_geometry(rng) for _ in range(400)]

    def share(condition) -> float:
        return sum(map(condition, some)) / len(some)

    assert share(lambda g: 1 < g.groups < g.C) >= 0.25
    assert share(lambda g: g.leftover != (0, 0)) >= 0.25
    assert share(lambda g: g.stride != g.dilation) >= 0.5
    assert share(lambda g: g.padding != ((0, 0), (0, 0))) >= 0.4
    for mode in ("zeros", "reflect", "replicate", "circular"):
        assert share(lambda g, mode=mode: g.padding_mode == mode) >= 0.15


def test_an_impossible_wish_is_refused():
    with pytest.raises(ValueError, match="holds for none"):
        random_geometry(np.random.default_rng(0), lambda geometry: False)


# ---- causes of mutants -----------------------------------------------------------------------

SHOWN = [mutant for mutant in MUTANTS.values() if mutant.cause is not None]


def answers(mutant: Mutant, count: int):
    """Wrong gradients of this mutant: geometries on which it shows and does not crash."""
    rng = np.random.default_rng([7, *mutant.name.encode()])
    found = tried = 0
    while found < count:
        tried += 1
        assert tried < 10 * count
        geometry = random_geometry(rng, mutant.shows)
        draw = LAWS[mutant.killed_by].draw(geometry, rng)
        try:
            with np.errstate(all="ignore"):
                wrong = mutant(*draw.operands(mutant.target), draw.geometry)
                expected = right(draw, mutant.target)
        except (ValueError, IndexError):
            continue  # no answer to explain
        if not np.array_equal(wrong, expected, equal_nan=True):
            found += 1
            yield draw, wrong, expected


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SHOWN, ids=lambda mutant: mutant.name)
def test_each_mutant_gets_its_cause(mutant):
    """On 50 random geometries: the right cause, or one that gives the same numbers there.

    That two causes give the same numbers is computed, not listed: ``matching_causes`` returns
    every cause whose own array equals the answer, so the mutant's must be among them.
    """
    named = Counter()
    fitting = 0
    for draw, wrong, expected in answers(mutant, 50):
        about = known(draw, mutant.target)
        cause = explain_difference(wrong, expected, **about).cause
        assert cause != "right"
        named[cause] += 1
        fitting += cause == mutant.cause or {cause, mutant.cause} <= matching_causes(
            wrong, expected, **about
        )
    assert fitting >= 0.95 * 50, named
    # where several fit, the likelier one should come first
    assert named[mutant.cause] >= LEAST_FIRST.get(mutant.name, 0.7) * 50, named


# Mistakes that often give the numbers of a commoner one, which is then named.
LEAST_FIRST = {
    "circular_axis_swapped": 0.1,  # wraps too far, or not at all: the border is lost
    "width_from_height": 0.4,  # all rows and columns of the padded gradient: a missing crop
}


def test_what_the_result_does_not_show_is_not_blamed():
    """write_through_view returns the right gradient; only its operand is ruined."""
    rng = np.random.default_rng(5)
    mutant = MUTANTS["write_through_view"]
    assert mutant.cause is None
    draw = random_operands(random_geometry(rng, mutant.shows), rng)
    expected = right(draw, "weight")
    wrong = mutant(draw.grad_output, draw.x.copy(), draw.geometry)
    assert explain_difference(wrong, expected, **known(draw, "weight")).right


def test_explanations_share_no_code_with_the_mutants():
    """They are each other's test."""
    import convgrad.checks.explain as explain

    package = vars(explain)["__package__"]
    for name in ("explain", "hypotheses", "of_weight", "of_input", "of_bias", "of_order", "sums"):
        module = __import__(f"{package}.{name}", fromlist=["_"])
        sources = {getattr(thing, "__module__", "") for thing in vars(module).values()}
        assert "convgrad.mutants" not in sources


# ---- right gradients are never blamed --------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_a_right_gradient_is_right_with_rounding_and_in_other_dtypes(target):
    rng = np.random.default_rng(6)
    for _ in range(40):
        geometry = random_geometry(rng)
        shapes = (geometry.x_shape, geometry.weight_shape, geometry.output_shape)
        exact = Draw(geometry, *(rng.standard_normal(shape) for shape in shapes))
        single = Draw(geometry, *(array.astype(np.float32) for array in exact[1:]))
        # another order of summing, so other rounding
        back = Draw(geometry, *(array[::-1] for array in exact[1:]))
        turned = right(back, target) if target == "bias" else None
        expected = right(exact, target)
        for actual in (
            expected,
            np.asfortranarray(expected),
            expected.tolist(),
            expected * (1 + 1e-13),
            right(single, target),
            right(exact, target).astype(np.float16),
            expected.astype(complex),
            *(() if turned is None else (turned,)),
        ):
            explanation = explain_difference(actual, expected, **known(exact, target))
            assert explanation.right, explanation


def test_whole_numbers_may_come_as_integers():
    draw = random_operands(example("D").geometry, np.random.default_rng(7))
    expected = right(draw, "input")
    assert explain_difference(expected.astype(np.int64), expected, **known(draw, "input")).right


def test_a_small_mistake_is_not_rounding():
    draw = random_operands(example("D").geometry, np.random.default_rng(8))
    expected = right(draw, "weight")
    actual = expected.copy()
    actual[0, 0, 0, 0] += 1e-6 * np.abs(expected).max()
    assert not explain_difference(actual, expected).right
    assert explain_difference(actual.astype(np.float32), expected).right  # below its digits


def test_all_zero_gradients_compare():
    zeros = np.zeros((2, 1, 2, 2))
    assert explain_difference(zeros, zeros).right
    assert explain_difference(np.ones_like(zeros), zeros).cause == "unknown"


def test_infinities_and_nans_in_the_right_places_are_right():
    expected = np.array([[np.inf, 1.0], [np.nan, 2.0]])
    assert explain_difference(expected.copy(), expected).right
    moved = np.array([[1.0, np.inf], [np.nan, 2.0]])
    assert not explain_difference(moved, expected).right


# ---- no cause we know ------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_a_random_array_is_unknown_and_shows_its_first_wrong_cell(target):
    rng = np.random.default_rng(9)
    for _ in range(30):
        draw = random_operands(random_geometry(rng), rng)
        expected = right(draw, target)
        wrong = expected + rng.integers(1, 99, size=expected.shape) + 0.5
        if expected.size < 3:
            continue  # two cells look like anything
        explanation = explain_difference(wrong, expected, **known(draw, target))
        assert explanation.cause == "unknown", explanation
        assert explanation.cell == (0,) * expected.ndim
        assert explanation.wrong_cells == expected.size
        assert f"{explanation.got:g}" in explanation.sentence
        assert f"{explanation.wanted:g}" in explanation.sentence


def test_the_first_wrong_cell_is_the_first():
    draw = random_operands(example("D").geometry, np.random.default_rng(10))
    expected = right(draw, "weight")
    wrong = expected.copy()
    wrong[3, 1, 2, 0] += 5
    wrong[4, 0, 0, 1] -= 1
    explanation = explain_difference(wrong, expected, **known(draw, "weight"))
    assert explanation.cause == "unknown"
    assert explanation.cell == (3, 1, 2, 0)
    assert explanation.wrong_cells == 2
    assert (explanation.got, explanation.wanted) == (wrong[3, 1, 2, 0], expected[3, 1, 2, 0])
    assert "in 2 of 72 cells, first at [3, 1, 2, 0]" in explanation.sentence


# ---- causes that no mutant stands for --------------------------------------------------------

D = random_operands(example("D").geometry, np.random.default_rng(11))
GW = right(D, "weight")
SQUARE = random_operands(
    ConvGeometry(N=2, C=2, H=6, W=6, O=3, KH=3, KW=3, stride=(2, 1)), np.random.default_rng(12)
)
TIGHT = ConvGeometry(N=2, C=2, H=5, W=6, O=3, KH=2, KW=3, padding=1)
PADDED = random_operands(TIGHT, np.random.default_rng(13))


COMPLEX = Draw(TIGHT, *complex_integer_arrays(TIGHT, seed=16))


def without_last_image(draw: Draw) -> np.ndarray:
    g = draw.grad_output.copy()
    g[1:] = 0
    return right(draw._replace(grad_output=g), "weight")


OTHERS = {
    "nothing": (np.zeros_like(GW), D, "weight"),
    "wrong_sign": (-GW, D, "weight"),
    "wrong_scale": (3 * GW, D, "weight"),
    "mirrored": (GW[..., ::-1], D, "weight"),
    "low_precision": (GW + 0.001 * np.sign(GW), D, "weight"),
    "wrong_shape": (np.zeros((7, 2)), D, "weight"),
    "not_numbers": (["a", "b"], D, "weight"),
    "not_summed": (D.grad_output, D, "bias"),
    "kernel_transposed": (
        windows.grad_input(SQUARE.grad_output, SQUARE.weight.swapaxes(2, 3), SQUARE.geometry),
        SQUARE,
        "input",
    ),
    "stride_ignored": (
        windows.grad_weight(
            SQUARE.grad_output,
            SQUARE.x[:, :, :4],
            ConvGeometry(N=2, C=2, H=4, W=6, O=3, KH=3, KW=3),
        ),
        SQUARE,
        "weight",
    ),
    "missing_crop": (
        windows.grad_input(
            PADDED.grad_output,
            PADDED.weight,
            ConvGeometry(N=2, C=2, H=7, W=8, O=3, KH=2, KW=3),
        ),
        PADDED,
        "input",
    ),
    "one_image": (without_last_image(PADDED), PADDED, "weight"),
    "images_empty": (
        right(PADDED, "input") * np.array([1, 0])[:, None, None, None],
        PADDED,
        "input",
    ),
    "kernels_not_summed": (
        np.stack(
            [
                ledger.kernel_share(PADDED.geometry, PADDED.grad_output, PADDED.weight, o)
                for o in range(PADDED.geometry.O)
            ]
        ),
        PADDED,
        "input",
    ),
    "not_conjugated": (right(COMPLEX, "weight"), COMPLEX, "weight"),
}


@pytest.mark.parametrize(("cause", "case"), OTHERS.items(), ids=OTHERS)
def test_other_causes(cause, case):
    actual, draw, target = case
    expected = conjugated(draw, target)
    explanation = explain_difference(actual, expected, **known(draw, target))
    assert explanation.cause == cause, explanation


@pytest.mark.parametrize("target", ["weight", "input"])
def test_every_missing_or_misplaced_conjugate_is_named(target):
    expected, without = conjugated(COMPLEX, target), right(COMPLEX, target)
    about = known(COMPLEX, target)
    assert explain_difference(without, expected, **about).cause == "not_conjugated"
    assert explain_difference(expected.conj(), expected, **about).cause == "not_conjugated"
    assert explain_difference(expected, expected, **about).right


# the forward pass can be explained too

X, W, G = D.x, D.weight, D.geometry
FORWARD = {
    "kernel_flipped": windows.forward(X, W[..., ::-1, ::-1], G),
    "one_channel": windows.forward(X, W * np.array([1, 0])[:, None, None], G),
    "wrong_group": windows.forward(X[:, [0, 2, 1, 3]], W, G),
    "shifted": windows.forward(np.roll(X, -1, axis=3) * np.array([1, 1, 1, 0]), W, G),
    "wrong_scale": 2 * windows.forward(X, W, G),
    "wrong_sign": -windows.forward(X, W, G),
    "right": windows.forward(X, W, G),
}


@pytest.mark.parametrize("cause", FORWARD)
def test_causes_of_a_wrong_output(cause):
    explanation = explain_difference(
        FORWARD[cause], FORWARD["right"], geometry=G, target="output", x=X, weight=W
    )
    assert explanation.cause == cause, explanation


def test_the_sign_of_an_output_is_no_matter_of_gradients():
    about = {"geometry": G, "target": "output", "x": X, "weight": W}
    sentence = explain_difference(FORWARD["wrong_sign"], FORWARD["right"], **about).sentence
    assert "sign" in sentence and "gradient" not in sentence


def test_what_the_operands_give_is_not_blamed():
    """With stride 1 and dilation 1 nothing is exchanged; it is the comparison that is off."""
    draw = random_operands(ConvGeometry(C=2, H=5, W=6, O=3, KH=2, KW=3), np.random.default_rng(17))
    for target in ("weight", "input"):
        mine = right(draw, target)
        about = known(draw, target)
        assert explain_difference(mine, mine + 1, **about).cause == "other_operands"
        assert matching_causes(mine, mine + 1, **about) == {"other_operands"}
        # both are off by rounding, to either side
        rounded = explain_difference(mine * (1 - 1e-8), mine * (1 + 1e-8), **about)
        assert rounded.cause == "low_precision"
    y = windows.forward(draw.x, draw.weight, draw.geometry)
    about = {"geometry": draw.geometry, "target": "output", "x": draw.x, "weight": draw.weight}
    explanation = explain_difference(y, y + np.array([1, -2, 3])[:, None, None], **about)
    assert explanation.cause == "other_operands"
    assert "a bias" in explanation.sentence


@pytest.mark.parametrize("axis", [0, 1])
def test_a_stride_or_dilation_that_is_lost_along_one_axis_names_the_axis(axis):
    for name in ("stride", "dilation"):
        draw = random_operands(
            ConvGeometry(C=2, H=9, W=9, O=2, KH=2, KW=2, **{name: (2, 3)}), np.random.default_rng(3)
        )
        bent = [2, 3]
        bent[axis] = 1
        sizes = [9, 9]
        # the same output from a smaller image, whose gradient stands in the corner of the large one
        sizes[axis] = draw.grad_output.shape[2 + axis] + 1
        small = ConvGeometry(C=2, H=sizes[0], W=sizes[1], O=2, KH=2, KW=2, **{name: tuple(bent)})
        wrong = np.zeros(draw.x.shape)
        wrong[:, :, : small.H, : small.W] = windows.grad_input(draw.grad_output, draw.weight, small)
        told = explain_difference(wrong, right(draw, "input"), **known(draw, "input"))
        assert told.cause == f"{name}_ignored"
        assert f"the {name} of the {('rows', 'columns')[axis]} were 1" in told.sentence


@pytest.mark.parametrize("seed", range(20))
def test_the_output_padding_that_is_told_gives_the_right_size(seed):
    """The numbers themselves are in the sentence, and PyTorch's formula for the size agrees."""
    geometry = random_geometry(
        np.random.default_rng(seed),
        lambda g: g.leftover != (0, 0) and g.padding[0] != (0, 0),
        padding_modes=["zeros"],
    )
    draw = random_operands(geometry, np.random.default_rng(seed))
    expected = np.ones(geometry.x_shape)
    short = expected[:, :, : geometry.H - geometry.leftover[0], : geometry.W - geometry.leftover[1]]
    told = explain_difference(short, expected, **known(draw, "input"))
    if told.cause != "leftover_lost":
        pytest.skip("nothing is left when the unread rows or columns are taken off")
    given = re.search(r"output_padding=\((\d+), (\d+)\)", told.sentence)
    for k, (size, out, taps) in enumerate(
        ((geometry.H, geometry.OH, geometry.KH), (geometry.W, geometry.OW, geometry.KW))
    ):
        back = (out - 1) * geometry.stride[k] - sum(geometry.padding[k])
        assert back + geometry.dilation[k] * (taps - 1) + int(given[k + 1]) + 1 == size
    assert "both sides together" in told.sentence


@pytest.mark.parametrize(("H", "stride", "missing"), [(6, 2, 1), (7, 2, 1), (7, 2, 2), (5, 1, 1)])
def test_output_padding_is_advised_only_where_something_is_left_over(H, stride, missing):
    geometry = ConvGeometry(C=1, H=H, W=7, O=1, KH=3, KW=3, stride=stride, padding=1)
    draw = random_operands(geometry, np.random.default_rng(0))
    expected = right(draw, "input")
    told = explain_difference(expected[:, :, : H - missing], expected, **known(draw, "input"))
    enough = 0 < missing <= geometry.leftover[0]
    assert told.cause in (("leftover_lost",) if enough else ("wrong_crop", "wrong_shape"))
    assert ("output_padding" in told.sentence) == enough, told.sentence


def test_kernels_that_are_dealt_to_groups_like_cards_are_named():
    geometry = ConvGeometry(C=2, H=4, W=4, O=6, KH=2, KW=2, groups=2)
    draw = random_operands(geometry, np.random.default_rng(4))
    g = draw.grad_output
    dealt = g.reshape(1, 3, 2, *g.shape[2:]).swapaxes(1, 2).reshape(g.shape)
    wrong = windows.grad_weight(dealt, draw.x, geometry)
    told = explain_difference(wrong, right(draw, "weight"), **known(draw, "weight"))
    assert told.cause == "wrong_group"
    assert "kernel 2 where kernel 1 belongs" in told.sentence


def test_images_that_were_left_out_are_named():
    draw = random_operands(
        ConvGeometry(N=4, C=1, H=3, W=3, O=2, KH=2, KW=2), np.random.default_rng(5)
    )
    wrong = right(draw, "input")
    wrong[[1, 3]] = 0
    told = explain_difference(wrong, right(draw, "input"), **known(draw, "input"))
    assert "right for images 0 and 2, and 0 for images 1 and 3 of 4" in told.sentence


def test_every_cause_has_been_seen():
    seen = {mutant.cause for mutant in SHOWN} | set(OTHERS) | set(FORWARD)
    seen |= {"unknown", "other_operands"}
    assert seen == set(CAUSES)


# ---- little known, and hostile answers -------------------------------------------------------


def test_two_arrays_alone_are_enough_for_the_plain_causes():
    assert explain_difference(GW[..., ::-1, ::-1], GW).cause == "flipped"
    assert explain_difference(GW / 3, GW).cause == "wrong_scale"
    assert explain_difference(GW.swapaxes(0, 1), GW).cause == "axes_swapped"
    padded = np.pad(GW, ((0, 0), (0, 0), (0, 1), (0, 0)), constant_values=7)
    assert explain_difference(padded, GW).cause == "missing_crop"


def test_an_axis_too_many_is_called_by_its_name():
    """N, O and one axis more; only what adds up over the images is blamed on the images."""
    draw = random_operands(
        ConvGeometry(N=3, C=2, H=5, W=6, O=4, KH=2, KW=3), np.random.default_rng(18)
    )
    cases = {
        "squeezed": [
            (right(draw, "weight")[None], "weight"),
            (right(draw, "input")[None], "input"),
            (right(draw, "bias")[None], "bias"),
        ],
        "batch_not_summed": [
            (grouped.grad_weight_per_image(draw.grad_output, draw.x, draw.geometry), "weight"),
            (draw.grad_output.sum(axis=(2, 3)), "bias"),
        ],
        "wrong_shape": [
            (np.concatenate([right(draw, "weight"), right(draw, "weight")[:1]]), "weight"),
            (np.stack([right(draw, "weight") - 1, np.ones_like(right(draw, "weight"))]), "weight"),
            (np.concatenate([right(draw, "bias"), [0]]), "bias"),
        ],
    }
    for cause, some in cases.items():
        for actual, target in some:
            explanation = explain_difference(actual, right(draw, target), **known(draw, target))
            assert explanation.cause == cause, explanation
    y = windows.forward(*draw[1:3], draw.geometry)
    about = {"geometry": draw.geometry, "target": "output", "x": draw.x, "weight": draw.weight}
    assert explain_difference(y[None], y, **about).cause == "squeezed"


@pytest.mark.parametrize(("size", "cause"), [((4, 7), "shifted"), ((3, 6), "wrong_crop")])
@pytest.mark.parametrize("border", [((0, 4), (1, 0)), ((1, 0), (0, 4))])
def test_a_cut_at_any_wrong_place_is_found(border, size, cause):
    geometry = ConvGeometry(N=2, C=2, H=4, W=7, O=3, KH=2, KW=2, padding=border)
    draw = random_operands(geometry, np.random.default_rng(23))
    padded = windows.scatter(windows.products(draw.grad_output, draw.weight, geometry), geometry)
    (height, width), (top, left) = size, (border[0][0], border[1][0])
    places = [(k, left) for k in range(padded.shape[2] - height + 1)]
    places += [(top, k) for k in range(padded.shape[3] - width + 1)]
    for row, col in places:
        cut = padded[:, :, row : row + height, col : col + width]
        if (row, col) != (top, left):
            explanation = explain_difference(cut, right(draw, "input"), **known(draw, "input"))
            assert explanation.cause == cause, explanation
            assert f"row {row}, column {col}" in explanation.sentence


def test_two_mistakes_that_come_together():
    """Neither exchanged nor cropped, which is what the first try at a convolution gives."""
    geometry = ConvGeometry(C=1, H=9, W=10, O=1, KH=3, KW=2, stride=(1, 2), dilation=(2, 1))
    draw = random_operands(geometry, np.random.default_rng(15))
    first_try = windows.forward(
        draw.x,
        draw.grad_output,
        ConvGeometry.of(
            draw.x.shape, draw.grad_output.shape, geometry.stride, 0, geometry.dilation
        ),
    )
    assert first_try.shape != geometry.weight_shape
    explanation = explain_difference(first_try, right(draw, "weight"), **known(draw, "weight"))
    assert explanation.cause == "stride_dilation_swapped"
    assert "Then crop" in explanation.sentence


def test_complex_gradients_are_explained_too():
    from convgrad import conv2d_backward

    rng = np.random.default_rng(14)
    real, imaginary = (random_operands(TIGHT, rng) for _ in range(2))
    x, weight, g = (a + 1j * b for a, b in zip(real[1:], imaginary[1:], strict=True))
    operands = {"x": x, "weight": weight, "grad_output": g}
    expected = conv2d_backward(g, x, weight, padding=1)
    wrong = conv2d_backward(g[..., ::-1, ::-1], x, weight, padding=1)
    for target, right_one, wrong_one in zip(("input", "weight"), expected, wrong, strict=False):
        about = {"geometry": TIGHT, "target": target, **operands}
        assert explain_difference(right_one, right_one, **about).right
        assert explain_difference(wrong_one, right_one, **about).cause == "g_flipped"


def test_too_large_to_convolve_again_is_still_compared():
    """Example F is not convolved forty times; what shows in the arrays is still named."""
    f = example("F").geometry
    expected = np.random.default_rng(0).standard_normal(f.weight_shape)
    about = {"geometry": f, "target": "weight", "x": np.ones(1), "grad_output": np.ones(1)}
    assert explain_difference(expected[..., ::-1, ::-1], expected, **about).cause == "flipped"


LARGE = {
    "many images": (ConvGeometry(N=3000, C=1, O=2, H=8, W=8, KH=3, KW=3), "weight"),
    "many images, one cell": (ConvGeometry(N=100_000, C=1, O=2, H=1, W=1, KH=1, KW=1), "bias"),
    "a wide border": (ConvGeometry(C=1, O=1, H=30, W=30, KH=3, KW=3, padding=150), "input"),
    "many groups": (ConvGeometry(C=256, O=256, H=9, W=9, KH=3, KW=3, groups=256), "weight"),
    "an image with room for many taps": (
        ConvGeometry(C=100, O=100, H=200, W=200, KH=3, KW=3, stride=500, padding=1),
        "weight",
    ),
    "many kernels": (ConvGeometry(C=1, O=300, H=9, W=9, KH=3, KW=3), "input"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("geometry", "target"), LARGE.values(), ids=LARGE)
def test_large_layers_are_explained_in_seconds_and_little_memory(geometry, target):
    rng = np.random.default_rng(19)
    draw = random_operands(geometry, rng)
    expected = right(draw, target)
    wrong = expected + rng.integers(5, 99, size=expected.shape) * np.abs(expected).max()
    begin = time.process_time()
    tracemalloc.start()
    assert explain_difference(wrong, expected, **known(draw, target)).cause == "unknown"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - begin < 10
    assert peak < 1e9


def test_the_share_of_any_one_image_is_found():
    geometry, target = LARGE["many images"]
    draw = random_operands(geometry, np.random.default_rng(20))
    for target in ("weight", "bias"):
        alone = draw.grad_output * (np.arange(geometry.N) == 1234)[:, None, None, None]
        actual = right(draw._replace(grad_output=alone), target)
        explanation = explain_difference(actual, right(draw, target), **known(draw, target))
        assert explanation.cause == "one_image"
        assert "image 1234 alone" in explanation.sentence


def test_an_endless_answer_is_not_read_to_the_end():
    endless = np.broadcast_to(1.0, (10**9, *GW.shape))
    assert explain_difference(endless, GW, **known(D, "weight")).cause == "wrong_shape"


def test_a_near_miss_is_no_rounding():
    assert explain_difference(GW * (1 + 0.004 * np.sign(GW - 1)) + 0.0, GW).cause == "low_precision"
    assert explain_difference(GW * (1 + 0.02 * np.sign(GW - 1)) + 0.0, GW).cause == "unknown"


@pytest.mark.parametrize("target", TARGETS)
def test_the_operand_whose_gradient_it_is_need_not_be_given(target):
    """The hypotheses of a gradient never ask for an operand that its sum has no use for."""
    geometry = ConvGeometry(N=2, C=4, H=9, W=8, O=6, KH=2, KW=3, stride=(2, 1), padding=1, groups=2)
    draw = random_operands(geometry, np.random.default_rng(22))
    needed = {"weight": {"x", "grad_output"}, "input": {"weight", "grad_output"}}
    some = {name: array for name, array in known(draw, target).items() if name not in OPERANDS}
    some |= {name: getattr(draw, name) for name in needed.get(target, {"grad_output"})}
    for mutant in MUTANTS.values():
        if mutant.target == target and mutant.shows(geometry) and mutant.killed_by == "adjoint":
            wrong = mutant(*draw.operands(target), draw.geometry)
            told = explain_difference(wrong, right(draw, target), **some)
            assert told == explain_difference(wrong, right(draw, target), **known(draw, target))


def test_an_operand_that_is_not_given_is_no_none():
    operands = Operands(x=[[1.0, 2.0]], weight=None)
    assert_array_equal(operands.x, [[1.0, 2.0]])
    with pytest.raises(LookupError, match=r"weight is asked for, but only \['x'\] are given"):
        _ = operands.weight


def test_hypotheses_do_not_overflow_where_the_operands_are_half():
    """A mistake made in float32 on float16 operands: the hypothesis must reach as far."""
    large = random_operands(TIGHT, np.random.default_rng(21), largest=900)
    half = Draw(TIGHT, *(array.astype(np.float16) for array in large[1:]))
    single = Draw(TIGHT, *(array.astype(np.float32) for array in half[1:]))
    turned = single._replace(grad_output=single.grad_output[..., ::-1, ::-1])
    for target in ("weight", "input"):
        wrong = right(turned, target)
        assert np.abs(wrong).max() > np.finfo(np.float16).max
        about = known(half, target)
        assert explain_difference(wrong, right(single, target), **about).cause == "g_flipped"


def test_infinities_and_large_numbers_are_explained_without_warnings():
    draw = D._replace(x=np.where(D.x == D.x.max(), np.inf, D.x))  # warnings are errors in tests
    with np.errstate(invalid="ignore"):
        expected = right(draw, "weight")
    about = known(draw, "weight")
    assert not explain_difference(np.nan_to_num(expected, posinf=7), expected, **about).right
    # 40000 + 40000 is more than float16 holds, and 80000 is what is right
    halves = np.full((2, *GW.shape), 40_000, np.float16)
    about = {"target": "weight"}
    explanation = explain_difference(halves, halves.sum(axis=0, dtype=float), **about)
    assert explanation.cause == "batch_not_summed"


def test_a_misspelt_keyword_is_refused():
    with pytest.raises(TypeError, match="geometri"):
        matching_causes(GW + 1, GW, geometri=D.geometry)


class Bomb:
    """Raises at everything."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("boom")

    def __eq__(self, other):
        raise RuntimeError("boom")

    __hash__ = None

    def __len__(self):
        raise RuntimeError("boom")

    def __getattr__(self, name):
        raise RuntimeError("boom")

    def __repr__(self):
        raise RuntimeError("boom")


class Guarded(type):
    """A class that cannot even be asked what it has."""

    def __getattr__(cls, name):
        raise RuntimeError("boom")


ITSELF: list = []
ITSELF.append(ITSELF)

HOSTILE = {
    "None": None,
    "a list in itself": ITSELF,
    "a bomb whose class is one": Guarded("BombOfBombs", (Bomb,), {})(),
    "time": np.ones((6, 2, 3, 2), "timedelta64[s]"),
    "one moment": np.timedelta64(1, "s"),
    "all masked": np.ma.masked_all((6, 2, 3, 2)),
    "masked in a list": [np.ma.masked_all(3)],
    "nothing in each cell": np.full((6, 2, 3, 2), None),
    "text": "12",
    "nan": np.nan,
    "a generator": (k for k in range(3)),
    "ragged": [[1, 2], [3]],
    "a bomb": Bomb(),
    "a set": {1, 2},
    "a dict": {"x": 1},
    "a huge integer": 10**400,
    "a function": len,
    "a class": int,
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "bytes": b"12",
    "an empty list": [],
    "a record": np.zeros(2, dtype=[("a", int)]),
    "nested None": [[None, 1.0], [2.0, 3.0]],
    "infinity": np.full((6, 2, 3, 2), np.inf),
    "a large array": np.zeros((300, 400)),
    "nine axes": np.zeros((1,) * 9),
    "bools": np.ones((6, 2, 3, 2), bool),
    "complex": np.full((6, 2, 3, 2), 1j),
    "a Fraction": __import__("fractions").Fraction(1, 3),
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_any_answer_gets_a_sentence(answer):
    for about in ({}, known(D, "weight")):
        explanation = explain_difference(answer, GW, **about)
        assert not explanation.right
        assert explanation.sentence.startswith("Your ")
        assert explanation.sentence.endswith(".") or explanation.sentence.endswith("?")


def test_tensors_are_read_or_explained():
    torch = pytest.importorskip("torch")
    assert explain_difference(torch.from_numpy(GW), GW).right
    attached = torch.from_numpy(GW).requires_grad_()
    assert "detach" in explain_difference(attached, GW).sentence


@pytest.mark.parametrize("N", [0, 1, 2])
@pytest.mark.parametrize("padding_mode", ["zeros", "reflect"])
@pytest.mark.parametrize("target", TARGETS)
def test_any_shape_gets_a_sentence(target, padding_mode, N):
    """Also where there is no image at all, and nothing to compare but shapes."""
    geometry = ConvGeometry(
        **{"N": N, "C": 4, "H": 5, "W": 6, "O": 6, "KH": 2, "KW": 3, "stride": 2, "groups": 2},
        padding=((1, 0), (2, 1)),
        padding_mode=padding_mode,
    )
    draw = random_operands(geometry, np.random.default_rng(22))
    expected = right(draw, target)
    shapes = [(), (3,), (0,) * expected.ndim, (3,) * expected.ndim, (N, *expected.shape)]
    for wrong in (*map(np.ones, shapes), expected[None] + 1, expected[..., :1]):
        explanation = explain_difference(wrong, expected, **known(draw, target))
        assert not explanation.right and explanation.sentence.startswith("Your ")


def test_cells_that_were_never_filled_are_no_overflow():
    assert explain_difference(np.full(GW.shape, None), GW).cause == "not_numbers"
    masked = np.ma.array(GW, mask=True)
    assert "is a masked array" in explain_difference(masked, GW).sentence


def test_a_wrong_target_is_the_callers_mistake():
    with pytest.raises(ValueError, match="use 'weight', 'input', 'bias' or 'output'"):
        explain_difference(GW, GW, target="grad_weight")


def test_an_operand_that_does_not_fit_is_the_callers_mistake():
    about = known(D, "weight") | {"x": D.x[0]}
    with pytest.raises(ShapeError, match="x has shape"):
        explain_difference(GW + 1, GW, **about)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.float32])
def test_operands_of_any_dtype(dtype):
    narrow = Draw(D.geometry, *(array.astype(dtype) for array in D[1:]))
    wrong = right(D._replace(grad_output=D.grad_output[..., ::-1, ::-1]), "weight")
    assert explain_difference(wrong, GW, **known(narrow, "weight")).cause == "g_flipped"


def test_an_explanation_reads_as_its_sentence():
    explanation = explain_difference(-GW, GW, target="weight")
    assert str(explanation) == explanation.sentence
    assert explanation.sentence.startswith("Your grad_weight is the right one with the sign")
    assert_array_equal(explanation.got, -explanation.wanted)
