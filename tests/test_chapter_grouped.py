"""*Grouped and depthwise convolution* tells the truth: its numbers, pictures and alt texts."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from pages import PAGES, alt_text, spoken

from convgrad import ConvGeometry, conv2d, example, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.exercises import get
from convgrad.exercises import grouped as bank
from convgrad.grouped import block_diagonal
from convgrad.mutants import MUTANTS

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import grouped as pictures

PAGE = "grouped"
D = example("D").geometry


def test_the_tap_worked_by_hand():
    x, _, _, g = example("D").arrays()
    assert D.channel(o=4, c=1) == 3
    met = x[:, 3, 0:3, 0:3]
    shares = (met * g[:, 4]).sum(axis=(1, 2))
    assert shares.tolist() == [5, 1, -28]
    assert shares.sum() == loops.grad_weight(g, x, D)[4, 1, 0, 0] == -22
    alt = alt_text(PAGE, "one_tap(")
    for n in range(3):
        said = f"Image {n}: lit {spoken(met[n])}; g {spoken(g[n, 4])}; the sum is {shares[n]:g}"
        assert said.replace("is -", "is −") in alt
    words = pictures.one_tap(o=4, c=1).words()
    assert words.count("=") == 3
    assert {"x[2, 3]", "g[2, 4]", "5", "1", "−28"} <= set(words)


def test_the_widget_and_the_figure_show_the_same_sum():
    widgets = pytest.importorskip("convgrad.widgets")
    blocks = widgets.GroupBlocks(example("D"), step=None)
    assert blocks.step == blocks.steps
    assert blocks.grad_weight[4, 1, 0, 0] == -22
    assert pictures.gradient_of_dense()[4, 3, 0, 0] == -22


def test_the_corner_of_the_input_gradient():
    _, weight, _, g = example("D").arrays()
    readers = [
        (p, q, i, j)
        for p, q, i, j in np.ndindex(D.OH, D.OW, D.KH, D.KW)
        if D.source(p, q, i, j) == (0, 0)
    ]
    assert readers == [(0, 0, 0, 0)], "one window reads the corner, under one tap"
    sent = weight[3:6, 1, 0, 0] * g[0, 3:6, 0, 0]
    assert sent.sum() == loops.grad_input(g, weight, D)[0, 3, 0, 0] == 22


def test_the_alt_texts_of_the_dense_weight_and_its_gradient():
    x, weight, _, g = example("D").arrays()
    alt = alt_text(PAGE, "dense_weight(")
    assert f"2 planes: {spoken(weight[:, :, 0, 0])}." in alt
    assert f"4 channels: {spoken(block_diagonal(weight, D)[:, :, 0, 0])}." in alt
    alt = alt_text(PAGE, "dense_gradient(")
    assert f"4 channels: {spoken(pictures.gradient_of_dense()[:, :, 0, 0])}." in alt
    assert alt.endswith(f"with groups: {spoken(loops.grad_weight(g, x, D)[:, :, 0, 0])}.")


def test_the_alt_text_of_the_three_ways():
    alt = alt_text(PAGE, "three_ways(")
    two = ConvGeometry(C=4, H=1, W=1, O=4, KH=1, KW=1, groups=2)
    four = replace(two, groups=4)
    for kernels in ((0, 1), (2, 3)):
        channels = {two.channel(o, c) for o in kernels for c in range(2)}
        assert channels == set(kernels)
        assert "kernels {0} and {1} read channels {0} and {1}".format(*kernels) in alt
    assert [four.channel(o, 0) for o in range(4)] == [0, 1, 2, 3]
    words = pictures.three_ways().words()
    assert [words.count(f"c = {c}") for c in range(4)] == [4 + 4 + 4, 4 + 4, 4, 4]


@pytest.mark.parametrize("seed", range(30))
def test_a_dense_convolution_with_zeros_has_the_same_results_but_for_the_weight(seed):
    rng = np.random.default_rng(seed)
    geometry = random_geometry(rng, lambda geometry: geometry.groups > 1)
    draw = random_operands(geometry, rng)
    dense, free = block_diagonal(draw.weight, geometry), replace(geometry, groups=1)
    g, x = draw.grad_output, draw.x
    assert np.array_equal(loops.forward(x, dense, free), loops.forward(x, draw.weight, geometry))
    grad = loops.grad_input(g, draw.weight, geometry)
    assert np.array_equal(loops.grad_input(g, dense, free), grad)
    inside = block_diagonal(np.ones_like(draw.weight), geometry) == 1
    found = loops.grad_weight(g, x, free)
    assert np.array_equal(found[inside], loops.grad_weight(g, x, geometry).ravel())


def test_one_step_of_the_dense_weight_fills_the_zeros():
    _, weight, _, _ = example("D").arrays()
    outside = block_diagonal(np.ones_like(weight), D) == 0
    grad = pictures.gradient_of_dense()[outside]
    assert outside.sum() == 72
    assert 0 < np.count_nonzero(grad == 0) < 10, "the page says that a few stay zero by chance"


def test_what_separating_saves():
    for C, O, KH, KW in ((64, 64, 3, 3), (6, 10, 5, 3)):
        same = {"C": C, "H": 9, "W": 9, "padding": (KH // 2, KW // 2)}
        dense, depthwise = (
            ConvGeometry(**same, O=kernels, KH=KH, KW=KW, groups=groups)
            for kernels, groups in ((O, 1), (C, C))
        )
        pointwise = ConvGeometry(C=C, H=9, W=9, O=O, KH=1, KW=1)
        one, two, three = (
            prod(each.output_shape) * prod(each.weight_shape[1:])
            for each in (dense, depthwise, pointwise)
        )
        assert Fraction(two + three, one) == Fraction(1, O) + Fraction(1, KH * KW)


def test_the_numbers_of_the_report_about_stride_two():
    a = ConvGeometry(C=4, H=4, W=4, O=4, KH=3, KW=3, stride=2, padding=1, groups=4)
    x, ones = np.arange(64.0).reshape(a.x_shape), np.ones(a.output_shape)
    right = loops.grad_weight(ones, x, a)[0, 0]
    assert right.tolist() == [[5, 10, 12], [10, 20, 24], [18, 36, 40]]
    assert MUTANTS["wgrad_no_crop"](ones, x, a).shape == (4, 1, 4, 4)


def test_the_sizes_that_the_page_says():
    text = PAGES[PAGE].read_text("utf-8")
    assert (D.C, D.O, D.groups) == (4, 6, 2)
    assert "has 4 channels, 6 kernels and 2 groups" in text
    assert D.group_of(4) == 1 and D.channel(4, 1) == 3
    assert re.search(r"plane \$\{c=1\}\$ lies on channel \$\{1\\cdot2\+1=3\}\$", text)


# ---- the exercises: what people answer, and what they are told ---------------------------------


def told(key: str, function) -> str:
    verdict = get(key).check(function)
    assert not verdict.passed
    return verdict.message


def split(x, weight, groups):
    """The right answer of ``grouped-forward``, to be broken."""
    return zip(np.split(x, groups, axis=1), np.split(weight, groups, axis=0), strict=True)


def test_a_forward_pass_that_forgets_the_other_groups():
    def first_alone(x, weight, groups):
        return conv2d(*next(iter(split(x, weight, groups))))

    message = told("grouped-forward", first_alone)
    assert "4 groups" in message and "shape" in message


def test_a_forward_pass_that_deals_the_channels_like_cards():
    def dealt(x, weight, groups):
        parts = [x[:, k::groups] for k in range(groups)]
        kernels = np.split(weight, groups, axis=0)
        return np.concatenate([conv2d(*each) for each in zip(parts, kernels, strict=True)], axis=1)

    message = told("grouped-forward", dealt)
    assert "2 groups" in message and "deals channels like cards" in message


def test_a_forward_pass_that_deals_the_kernels_like_cards():
    def dealt(x, weight, groups):
        y = np.concatenate([conv2d(a, b) for a, b in split(x, weight, groups)], axis=1)
        for k in range(groups):
            y[:, k::groups] = conv2d(np.split(x, groups, axis=1)[k], weight[k::groups])
        return y

    assert "for kernel o: kernel o belongs to group o // 2" in told("grouped-forward", dealt)


def test_input_gradients_that_go_wrong_are_told_how():
    right = bank.windows.grad_input

    def across(g, weight, geometry):
        return MUTANTS["group_transpose_flat"](g, weight, geometry)

    def within_the_plane(g, weight, geometry):  # c taken for the channel
        grad = right(g, weight, geometry)
        grad[:, geometry.CG :] = 0
        return grad

    def assigned(g, weight, geometry):
        return MUTANTS["col2im_assign"](g, weight, geometry)

    assert "across all groups" in told("grouped-grad-input", across)
    assert "channel" in told("grouped-grad-input", within_the_plane)
    assert "+=" in told("grouped-grad-input", assigned)


def test_the_corner_asked_for_cannot_be_taken_for_another():
    exercise = get("grouped-corner")
    _, weight, _, g = example("D").arrays()
    assert exercise.answer == loops.grad_input(g, weight, D)[0, 1, 0, 0]
    numbers = [exercise.answer, *(wrong for wrong, _ in exercise.mistakes)]
    assert len(set(numbers)) == len(numbers) == 6


def test_the_layer_that_tells_is_the_one_with_groups_in_between():
    C, O, G = bank._SIZES[get("grouped-which-sizes").answer]
    assert 1 < G < C
    assert all(not 1 < groups < channels for channels, _, groups in bank._SIZES if groups != G)
    assert O % G == 0
