"""Named wrong gradients: each is killed by its law, and we know what lets it slip."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from test_cases import CASES, Case

from convgrad import ConvGeometry, windows
from convgrad.checks import LAWS, Draw, random_geometry, random_operands
from convgrad.mutants import MUTANTS, Mutant

RIGHT: dict[str, Callable] = {
    "weight": windows.grad_weight,
    "input": windows.grad_input,
    "bias": windows.grad_bias,
}
DRAWS = 20

every_mutant = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)


def draws(mutant: Mutant, count: int = DRAWS, seed: int = 0):
    """Geometries on which the mistake shows, and the seed for each one's operands."""
    rng = np.random.default_rng([seed, *mutant.name.encode()])
    for k in range(count):
        yield random_geometry(rng, mutant.shows), k


def breaks(rule: Callable, law: str, target: str, geometry: ConvGeometry, seed: int) -> bool:
    """Whether the rule breaks the law there; an error of its own counts."""
    try:
        with np.errstate(all="ignore"):
            LAWS[law].check(rule, target, geometry, np.random.default_rng(seed))
    except Exception:
        return True
    return False


def differs(mutant: Mutant, draw: Draw) -> bool:
    operands = [operand.copy() for operand in draw.operands(mutant.target)]
    right = RIGHT[mutant.target](*draw.operands(mutant.target), draw.geometry)
    try:
        wrong = mutant(*operands, draw.geometry)
    except Exception:
        return True
    return not np.array_equal(wrong, right, equal_nan=True)


@every_mutant
def test_its_law_kills_it_and_spares_the_right_gradient(mutant):
    killed = 0
    for geometry, seed in draws(mutant):
        assert not breaks(RIGHT[mutant.target], mutant.killed_by, mutant.target, geometry, seed)
        killed += breaks(mutant, mutant.killed_by, mutant.target, geometry, seed)
    # small draws are sometimes symmetric, or all padding; most are not
    assert killed >= 0.7 * DRAWS


@every_mutant
def test_what_slips_past_a_gradient_of_ones(mutant):
    """grad_output = 1 is what y.sum().backward() sends."""
    noticed = 0
    for geometry, seed in draws(mutant):
        draw = random_operands(geometry, np.random.default_rng(seed))
        noticed += differs(mutant, draw._replace(grad_output=np.ones(geometry.output_shape)))
    if mutant.survives_ones:
        assert noticed == 0
    else:
        assert noticed >= 0.5 * DRAWS


@pytest.mark.parametrize(
    "mutant",
    [m for m in MUTANTS.values() if m.survives_ones and m.killed_by == "adjoint"],
    ids=lambda mutant: mutant.name,
)
def test_a_random_grad_output_notices_what_ones_do_not(mutant):
    noticed = sum(
        differs(mutant, random_operands(geometry, np.random.default_rng(seed)))
        for geometry, seed in draws(mutant)
    )
    assert noticed >= 0.8 * DRAWS


@every_mutant
def test_it_hides_where_it_says(mutant):
    """Off the geometries (or operands) on which it shows, it gives the right gradient."""
    special = mutant.killed_by in (
        "memory_layout",
        "operands_untouched",
        "wide_sums",
        "empty_batch",
        "infinity",
        "dtype",
    )
    rng = np.random.default_rng(1)
    if special:
        some = [random_geometry(rng) for _ in range(DRAWS)]
    else:
        try:
            some = [random_geometry(rng, lambda g: not mutant.shows(g)) for _ in range(DRAWS)]
        except ValueError:
            assert mutant.hides.startswith("never")
            return
    assert mutant.hides
    for geometry in some:
        assert not differs(mutant, random_operands(geometry, rng))


def test_every_law_has_a_victim():
    assert {mutant.killed_by for mutant in MUTANTS.values()} == set(LAWS)


def test_half_of_the_teaching_mistakes_need_more_than_ones():
    """Each target with a second factor has mistakes that a sum as the loss cannot see."""
    for target in ("weight", "input"):
        assert sum(m.survives_ones for m in MUTANTS.values() if m.target == target) >= 3


@every_mutant
def test_its_sentence_is_one_sentence(mutant):
    assert mutant.sentence.endswith(".")
    assert mutant.sentence.count(". ") == 0
    assert mutant.sentence[0].isupper()
    assert MUTANTS[mutant.name] is mutant
    assert mutant.function.__name__ == mutant.name


# ---- the public mistakes they are modelled on ------------------------------------------------

# which mistake each case of cases/conv_cases.json is about
MISTAKE = {
    "leftover-wgrad-crop": "wgrad_no_crop",
    "leftover-dgrad-three-cols": "dgrad_no_leftover",
    "leftover-only-in-padding": "dgrad_no_leftover",
    "stride2-dilation2-1xk-by-hand": "wgrad_ignores_padding",
    "dgrad-size-must-use-dilation": "ignore_dilation",
    "stride-dilation-swapped": "swap_stride_dilation",
    "stride-gt-kernel-uninitialised": "buffer_prefilled",
    "col2im-assign-instead-of-add": "col2im_assign",
    "fold-of-unfold-is-not-identity": "avg_fold",
    "fancy-index-plus-equals": "fancy_plus_equals",
    "write-through-window-view": "write_through_view",
    "delta-upstream-no-flip": "dgrad_no_flip",
    "correlation-not-convolution": "wgrad_reversed",
    "width-size-from-height": "width_from_height",
    "same-even-kernel": "same_pad_left",
    "padding-larger-than-kernel": "full_pad_negative",
    "kernel-larger-than-input": "kernel_clipped_to_input",
    "padded-twice": "pad_twice",
    "circular-pad-axis-order": "circular_axis_swapped",
    "groups-interleaved-wgrad": "group_interleaved",
    "depthwise-stride2-by-hand": "wgrad_no_crop",
    "depthwise-multiplier-3": "depthwise_mod",
    "grouped-strided-dgrad": "group_transpose_flat",
    "bias-axes-square-trap": "bias_axes_012",
    "bias-squeeze-one-channel": "bias_squeeze",
    "upstream-expanded-stride0": "assume_contiguous_gy",
    "upstream-from-cat": "assume_contiguous_gy",
    "weight-transposed-view": "ravel_weight",
    "half-accumulated-per-sample": "fp16_running_sum",
    "inf-weight-meets-inserted-zeros": "dgrad_dilated_multiply",
    "integer-input-truncates": "zeros_like_int",
    "empty-batch": "reshape_minus_one",
}
REPORTED = {case["id"]: case for case in CASES}


@pytest.mark.parametrize(("report", "name"), MISTAKE.items(), ids=MISTAKE)
def test_the_mutant_makes_the_public_mistake(report, name):
    mutant, given = MUTANTS[name], Case(REPORTED[report])
    dtype = np.float64 if mutant.killed_by != "wide_sums" else np.float32
    x, weight, g = (a.astype(dtype, copy=False) for a in (given.x, given.weight, given.grad_output))
    draw = Draw(given.geometry, x, weight, g)
    if mutant.killed_by == "operands_untouched":
        before = x.copy()
        mutant(g, x, given.geometry)
        assert (x != before).any()
        return
    with np.errstate(all="ignore"):
        right = RIGHT[mutant.target](*draw.operands(mutant.target), given.geometry)
        try:
            wrong = mutant(*draw.operands(mutant.target), given.geometry)
        except (ValueError, IndexError):
            return  # the report was of a crash
    assert not np.array_equal(wrong, right, equal_nan=True)


# ---- a few, by hand --------------------------------------------------------------------------


def test_the_digits_tell_which_taps_arrived():
    """grad[rows, cols] += products keeps one of the products that meet in a cell."""
    geometry = ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=3)
    g, weight = np.ones(geometry.output_shape), np.array([1.0, 10.0, 100.0]).reshape(1, 1, 1, 3)
    assert_array_equal(windows.grad_input(g, weight, geometry)[0, 0, 0], [1, 11, 111, 110, 100])
    kept = MUTANTS["fancy_plus_equals"](g, weight, geometry)[0, 0, 0]
    assert all(value in (1, 10, 100) for value in kept)


def test_a_contiguous_reader_runs_past_the_end_of_an_expanded_array():
    geometry = ConvGeometry(N=2, C=3, H=5, W=5, O=4, KH=3, KW=3)
    g = np.broadcast_to(np.ones(()), geometry.output_shape)
    with pytest.raises(IndexError, match="reads 72 elements, the memory holds 1"):
        MUTANTS["assume_contiguous_gy"](g, np.ones(geometry.x_shape), geometry)


def test_a_mutant_is_called_like_the_rule_it_replaces():
    geometry = ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2)
    g, x = np.arange(4.0).reshape(1, 1, 2, 2), np.arange(9.0).reshape(1, 1, 3, 3)
    right = windows.grad_weight(g, x, geometry)
    assert_array_equal(MUTANTS["wgrad_reversed"](g, x, geometry), right[..., ::-1, ::-1])
