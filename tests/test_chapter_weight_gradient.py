"""*The weight gradient is a convolution* tells the truth: its numbers, pictures and alt texts."""

from __future__ import annotations

import numpy as np
import pytest
from pages import alt_text, spoken

from convgrad import ConvGeometry, conv2d, example, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.correlate import swapped
from convgrad.mutants import MUTANTS

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import weight_gradient as pictures

PAGE = "weight_gradient"


def test_the_tap_worked_by_hand():
    x, weight, bias, g = example("B").arrays()
    geometry = example("B").geometry
    met = x[0, 0, 1:4, 2:5]
    tap = loops.grad_weight(g, x, geometry)[0, 0, 1, 2]
    assert (g[0, 0] * met).sum() == tap == 9
    alt = alt_text(PAGE, "one_tap(")
    assert f"are lit: {spoken(met)}" in alt
    assert f"gradient g: {spoken(g[0, 0])}" in alt
    assert alt.endswith("tap (1, 2) lit: 9.")

    turned_up = weight.copy()
    turned_up[0, 0, 1, 2] += 1
    assert (g * (conv2d(x, turned_up, bias) - conv2d(x, weight, bias))).sum() == tap


def test_one_pixel_leaves_g_turned():
    x, _, _, g = example("A").arrays()
    grad = loops.grad_weight(g, x, example("A").geometry)
    middle = x[0, 0, 0, 0] * g[0, 0, ::-1, ::-1]
    assert np.array_equal(grad[0, 0], np.pad(middle, 1))
    alt = alt_text(PAGE, "turned(")
    assert spoken(g[0, 0], " above ") in alt
    assert f"lit: {spoken(middle, ' above ')}" in alt


def test_the_row_too_many_is_the_gradient_of_a_taller_kernel():
    x, _, _, g = example("C").arrays()
    geometry = example("C").geometry
    assert (geometry.leftover, geometry.surplus) == ((1, 0), (1, 0))
    full = pictures.uncropped(x, g, geometry)
    assert full.shape == (1, 1, 4, 3)
    taller = ConvGeometry.of(x.shape, (1, 1, 4, 3), stride=2)
    assert taller.output_shape == geometry.output_shape
    assert np.array_equal(full, loops.grad_weight(g, x, taller))
    assert np.array_equal(full[:, :, :3], loops.grad_weight(g, x, geometry))
    alt = alt_text(PAGE, "crop(")
    assert f"{spoken(full[0, 0, :3])}, and in grey {spoken(full[0, 0, 3:])}" in alt


def test_the_two_patterns_of_one_row():
    geometry = example("C").geometry
    alt = alt_text(PAGE, "stride_becomes_dilation(")
    for k in range(3):
        lies = ", ".join(str(geometry.source(0, k, 0, j)[1]) for j in range(3))
        meets = ", ".join(str(geometry.source(0, q, 0, k)[1]) for q in range(3))
        assert f"q {k} it lies on cells {lies}" in alt or f"q {k} on cells {lies}" in alt
        assert f"tap j {k} it lies on cells {meets}" in alt or f"j {k} on cells {meets}" in alt


def test_the_player_fills_the_tap_with_the_same_number():
    widgets = pytest.importorskip("convgrad.widgets")
    player = widgets.ContributionPlayer(example("B"), target="weight", order="tap")
    assert player.gradients.grad_weight[0, 0, 1, 2] == 9


def test_the_unswapped_convolution_has_the_right_shape_and_wrong_numbers():
    x, _, _, g = example("C").arrays()
    geometry = example("C").geometry
    right, wrong = (
        loops.grad_weight(g, x, geometry),
        MUTANTS["swap_stride_dilation"](g, x, geometry),
    )
    assert wrong.shape == right.shape
    assert not np.array_equal(wrong, right)


@pytest.mark.parametrize("seed", range(60))
def test_the_surplus_is_the_leftover_divided_by_the_dilation(seed):
    geometry = random_geometry(np.random.default_rng(seed))
    search = swapped(geometry)
    for axis, (taps, places) in enumerate([(geometry.KH, search.OH), (geometry.KW, search.OW)]):
        leftover, dilation = geometry.leftover[axis], geometry.dilation[axis]
        assert places == taps + leftover // dilation == taps + geometry.surplus[axis]
        if geometry.stride[axis] <= dilation:  # the exercise "No surplus"
            assert places == taps


def test_each_image_alone_by_groups():
    """The exercise "A sum over images": one group an image keeps the images apart."""
    draw = random_operands(
        ConvGeometry(N=3, C=2, H=5, W=6, O=4, KH=2, KW=3), np.random.default_rng(7)
    )
    x, g, geometry = draw.x, draw.grad_output, draw.geometry
    N, O = geometry.N, geometry.O
    kernels = g.reshape(N * O, 1, geometry.OH, geometry.OW)
    found = conv2d(x.swapaxes(0, 1), kernels, groups=N)  # c (n o) i j
    alone = found.reshape(geometry.C, N, O, 2, 3).transpose(1, 2, 0, 3, 4)
    for n in range(N):
        single = ConvGeometry.of(x[n : n + 1].shape, draw.weight.shape)
        assert np.array_equal(alone[n], loops.grad_weight(g[n : n + 1], x[n : n + 1], single))
    assert np.array_equal(alone.sum(axis=0), loops.grad_weight(g, x, geometry))


def test_the_blocks_and_images_of_the_grouped_search():
    search = swapped(example("D").geometry)
    assert example("D").geometry.x_shape == (3, 4, 5, 4)
    assert search.x_shape == (2, 6, 5, 4)


def test_pictures_hold_the_numbers_of_their_examples():
    assert "times 2," in pictures.turned().words()
    assert {"85", "68", "40"} <= set(pictures.crop().words())
    assert pictures.stride_becomes_dilation().words().count("q = 0") == 1
