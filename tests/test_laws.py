"""The laws of a backward pass, for every implementation, exactly.

The operands are small whole numbers in float64, so every sum of products is exact in any
order and the laws hold with ``==``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from strategies import (
    LAYOUTS,
    complex_integer_arrays,
    geometries,
    integer_arrays,
    integers,
    random_geometries,
    seeds,
)

from convgrad import IMPLEMENTATIONS, ConvGeometry, conv2d, conv2d_backward, example, loops
from convgrad.correlate import conv_transpose, swapped
from convgrad.grouped import block_diagonal, blocks, grad_weight_per_image
from convgrad.im2col import column_numbers, fold, unfold
from convgrad.padding import fold_border, pad
from convgrad.windows import overlap_add, reach, windows

every_implementation = pytest.mark.parametrize(
    "rung", IMPLEMENTATIONS.values(), ids=lambda r: r.name
)
every_faster_one = pytest.mark.parametrize(
    "rung", [r for r in IMPLEMENTATIONS.values() if r.name != "loops"], ids=lambda r: r.name
)


# ---- what every implementation obeys ---------------------------------------------------------


@every_faster_one
@given(geometries(), seeds())
def test_it_is_the_definition(rung, geometry, seed):
    x, weight, g = integer_arrays(geometry, seed)
    assert_array_equal(rung.forward(x, weight, geometry), loops.forward(x, weight, geometry))
    assert_array_equal(rung.grad_input(g, weight, geometry), loops.grad_input(g, weight, geometry))
    assert_array_equal(rung.grad_weight(g, x, geometry), loops.grad_weight(g, x, geometry))
    assert_array_equal(rung.grad_bias(g, geometry), loops.grad_bias(g, geometry))


@every_implementation
@given(geometries(), seeds())
def test_both_gradients_are_adjoints_of_forward(rung, geometry, seed):
    x, weight, g = integer_arrays(geometry, seed)
    inner = np.vdot(rung.forward(x, weight, geometry), g)
    assert np.vdot(x, rung.grad_input(g, weight, geometry)) == inner
    assert np.vdot(weight, rung.grad_weight(g, x, geometry)) == inner
    bias = integers(np.random.default_rng(seed), geometry.bias_shape)
    everywhere = np.broadcast_to(bias[:, None, None], geometry.output_shape)
    assert np.vdot(bias, rung.grad_bias(g, geometry)) == np.vdot(everywhere, g)


@every_implementation
@given(geometries(), seeds())
def test_a_whole_step_changes_the_loss_by_what_the_gradient_says(rung, geometry, seed):
    """Convolution is bilinear: a difference quotient of step 1 is the exact derivative."""
    x, weight, g = integer_arrays(geometry, seed)
    step_x, step_weight, _ = integer_arrays(geometry, seed + 1)
    loss = np.vdot(g, rung.forward(x, weight, geometry))
    loss_x = np.vdot(g, rung.forward(x + step_x, weight, geometry))
    loss_weight = np.vdot(g, rung.forward(x, weight + step_weight, geometry))
    assert loss_x - loss == np.vdot(step_x, rung.grad_input(g, weight, geometry))
    assert loss_weight - loss == np.vdot(step_weight, rung.grad_weight(g, x, geometry))


@every_implementation
@given(geometries(), seeds())
def test_images_add_up_in_the_weight_and_stay_apart_in_the_input(rung, geometry, seed):
    x, weight, g = integer_arrays(geometry, seed)
    one = replace(geometry, N=1)
    grad_weight, grad_input = np.zeros(geometry.weight_shape), np.zeros(geometry.x_shape)
    for n in range(geometry.N):
        grad_weight += rung.grad_weight(g[n : n + 1], x[n : n + 1], one)
        grad_input[n : n + 1] = rung.grad_input(g[n : n + 1], weight, one)
    assert_array_equal(rung.grad_weight(g, x, geometry), grad_weight)
    assert_array_equal(rung.grad_input(g, weight, geometry), grad_input)


@every_implementation
@given(geometries(), seeds())
def test_kernels_add_up_in_the_input_and_stay_apart_in_the_weight(rung, geometry, seed):
    x, weight, g = integer_arrays(geometry, seed)
    whole_input = rung.grad_input(g, weight, geometry)
    whole_weight = rung.grad_weight(g, x, geometry)
    shares = np.zeros(geometry.x_shape)
    for o in range(geometry.O):
        alone = np.zeros_like(g)
        alone[:, o] = g[:, o]
        shares += rung.grad_input(alone, weight, geometry)
        assert_array_equal(rung.grad_weight(alone, x, geometry)[o], whole_weight[o])
    assert_array_equal(shares, whole_input)


@every_implementation
def test_memory_layout_does_not_matter(rung):
    for seed, geometry in enumerate(random_geometries(12, seed=5)):
        x, weight, g = map(np.ascontiguousarray, integer_arrays(geometry, seed))
        y, grad_input = rung.forward(x, weight, geometry), rung.grad_input(g, weight, geometry)
        grad_weight, grad_bias = rung.grad_weight(g, x, geometry), rung.grad_bias(g, geometry)
        for name, laid_out in LAYOUTS.items():
            x_, weight_, g_ = laid_out(x), laid_out(weight), laid_out(g)
            assert_array_equal(rung.forward(x_, weight_, geometry), y, name)
            assert_array_equal(rung.grad_input(g_, weight_, geometry), grad_input, name)
            assert_array_equal(rung.grad_weight(g_, x_, geometry), grad_weight, name)
            assert_array_equal(rung.grad_bias(g_, geometry), grad_bias, name)


@every_implementation
def test_a_single_number_expanded_is_an_upstream_gradient_like_any_other(rung):
    for seed, geometry in enumerate(random_geometries(12, seed=6)):
        x, weight, _ = integer_arrays(geometry, seed)
        expanded = np.broadcast_to(np.float64(3), geometry.output_shape)
        stored = expanded.copy()
        assert_array_equal(
            rung.grad_input(expanded, weight, geometry), rung.grad_input(stored, weight, geometry)
        )
        assert_array_equal(
            rung.grad_weight(expanded, x, geometry), rung.grad_weight(stored, x, geometry)
        )


@every_implementation
@given(geometries(), seeds())
def test_complex_gradients_are_adjoints_too(rung, geometry, seed):
    x, weight, g = complex_integer_arrays(geometry, seed)
    sizes = {name: getattr(geometry, name) for name in ("stride", "padding", "dilation", "groups")}
    sizes["padding_mode"] = geometry.padding_mode
    y = conv2d(x, weight, **sizes, implementation=rung.name)
    assert_array_equal(y, loops.forward(x, weight, geometry))
    grad_input, grad_weight, _ = conv2d_backward(g, x, weight, **sizes, implementation=rung.name)
    assert np.vdot(y, g) == np.vdot(x, grad_input) == np.vdot(weight, grad_weight)


@every_faster_one
@pytest.mark.parametrize("planted", [np.inf, -np.inf, np.nan])
def test_infinity_and_nan_land_where_the_definition_puts_them(rung, planted):
    for seed, geometry in enumerate(random_geometries(40, seed=8)):
        if geometry.N == 0:
            continue
        rng = np.random.default_rng(seed)
        operands = [np.array(operand) for operand in integer_arrays(geometry, seed)]
        for k in rng.choice(3, size=rng.integers(1, 3), replace=False):
            operands[k].flat[rng.integers(operands[k].size)] = planted
        x, weight, g = operands
        with np.errstate(invalid="ignore"):
            assert_array_equal(
                rung.forward(x, weight, geometry), loops.forward(x, weight, geometry)
            )
            assert_array_equal(
                rung.grad_input(g, weight, geometry), loops.grad_input(g, weight, geometry)
            )
            assert_array_equal(rung.grad_weight(g, x, geometry), loops.grad_weight(g, x, geometry))


@every_implementation
def test_the_running_examples(rung):
    for letter in "ABCDE":
        geometry = example(letter).geometry
        x, weight, _, g = example(letter).arrays()
        inner = np.vdot(rung.forward(x, weight, geometry), g)
        assert np.vdot(x, rung.grad_input(g, weight, geometry)) == inner
        assert np.vdot(weight, rung.grad_weight(g, x, geometry)) == inner


# ---- the parts that the implementations are made of ------------------------------------------


@given(geometries(), seeds())
def test_windows_shows_what_the_index_map_says(geometry, seed):
    x = integer_arrays(geometry, seed).x
    seen = windows(x, geometry)
    assert seen.shape == (
        *(geometry.N, geometry.C, geometry.OH, geometry.OW),
        *(geometry.KH, geometry.KW),
    )
    for p, q, i, j in np.ndindex(*seen.shape[2:]):
        cell = geometry.cell(*geometry.source(p, q, i, j))
        expected = np.zeros(x.shape[:2]) if cell is None else x[:, :, *cell]
        assert_array_equal(seen[:, :, p, q, i, j], expected)


def test_windows_is_a_view_and_refuses_to_be_written_to():
    geometry = ConvGeometry(N=2, C=3, H=5, W=6, O=1, KH=2, KW=3, stride=(2, 1), dilation=(1, 2))
    x = np.zeros(geometry.x_shape)
    seen = windows(x, geometry)
    assert np.shares_memory(seen, x)
    with pytest.raises(ValueError, match="read-only"):
        seen[...] = 1


@given(geometries(), seeds())
def test_the_parts_are_adjoint_in_pairs(geometry, seed):
    x = integer_arrays(geometry, seed).x
    rng = np.random.default_rng(seed)
    pairs = {
        "pad, fold_border": (pad, fold_border),
        "windows, overlap_add": (windows, overlap_add),
        "unfold, fold": (unfold, fold),
    }
    for name, (there, back) in pairs.items():
        image = there(x, geometry)
        other = integers(rng, image.shape)
        assert np.vdot(image, other) == np.vdot(x, back(other, geometry)), name


@given(geometries(), seeds())
def test_fold_of_unfold_counts_how_often_each_cell_is_read(geometry, seed):
    x = integer_arrays(geometry, seed).x
    one_of_each = ConvGeometry(**{**geometry.as_dict(), "O": geometry.groups})
    reads = loops.grad_input(
        np.ones(one_of_each.output_shape), np.ones(one_of_each.weight_shape), one_of_each
    )
    assert_array_equal(fold(unfold(x, geometry), geometry), x * reads)


@given(geometries())
def test_unfold_writes_as_many_numbers_as_it_was_said_to(geometry):
    assert unfold(np.zeros(geometry.x_shape), geometry).size == column_numbers(geometry)


@given(geometries())
def test_reach_lists_the_rows_and_columns_of_a_tap(geometry):
    (top, _), (left, _) = geometry.padding
    for i, j in np.ndindex(geometry.KH, geometry.KW):
        rows, cols = reach(i, j, geometry)
        h, v = geometry.source(np.arange(geometry.OH), np.arange(geometry.OW), i, j)
        assert_array_equal(np.arange(geometry.padded_size[0])[rows], h + top)
        assert_array_equal(np.arange(geometry.padded_size[1])[cols], v + left)


@given(geometries())
def test_the_swapped_convolution_is_too_large_by_the_surplus(geometry):
    if geometry.N == 0:
        return
    search = swapped(geometry)
    assert search.output_shape == (
        *(geometry.CG, geometry.O),
        geometry.KH + geometry.surplus[0],
        geometry.KW + geometry.surplus[1],
    )
    assert (search.stride, search.dilation) == (geometry.dilation, geometry.stride)


@given(geometries(), seeds())
def test_output_padding_restores_exactly_the_leftover(geometry, seed):
    _, weight, g = integer_arrays(geometry, seed)
    restored = conv_transpose(g, weight, geometry, output_padding=geometry.leftover)
    assert restored.shape == (geometry.N, geometry.C, *geometry.padded_size)
    short = conv_transpose(g, weight, geometry, output_padding=(0, 0))
    height, width = short.shape[2:]
    assert_array_equal(restored[:, :, :height, :width], short)
    assert not restored[:, :, height:].any() and not restored[:, :, :, width:].any()


@given(geometries(), seeds())
def test_groups_are_blocks_on_the_diagonal_of_an_ordinary_convolution(geometry, seed):
    x, weight, g = integer_arrays(geometry, seed)
    ordinary = replace(geometry, groups=1)
    dense = block_diagonal(weight, geometry)
    assert_array_equal(loops.forward(x, dense, ordinary), loops.forward(x, weight, geometry))
    grad_dense = loops.grad_weight(g, x, ordinary)
    grad_weight = loops.grad_weight(g, x, geometry)
    for o, c in blocks(geometry):
        assert_array_equal(grad_dense[o, c], grad_weight[o])


@given(geometries(), seeds())
def test_one_call_gives_every_image_its_own_share(geometry, seed):
    x, _, g = integer_arrays(geometry, seed)
    shares = grad_weight_per_image(g, x, geometry)
    assert shares.shape == (geometry.N, *geometry.weight_shape)
    one = replace(geometry, N=1)
    for n, share in enumerate(shares):
        assert_array_equal(share, loops.grad_weight(g[n : n + 1], x[n : n + 1], one))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_without_an_image_there_is_still_a_type(dtype):
    geometry = ConvGeometry(N=0, C=2, H=3, W=3, O=4, KH=2, KW=2, groups=2)
    x, g = np.ones(geometry.x_shape, dtype), np.ones(geometry.output_shape, dtype)
    nothing = np.zeros(geometry.weight_shape, dtype)
    for rung in IMPLEMENTATIONS.values():
        assert_array_equal(rung.grad_weight(g, x, geometry), nothing, strict=True)
    assert_array_equal(grad_weight_per_image(g, x, geometry), nothing[None][:0], strict=True)
