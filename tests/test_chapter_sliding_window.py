"""*The sliding window* tells the truth: its numbers, pictures and alt texts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pages import alt_text, spoken

from convgrad import ConvGeometry, conv2d, example, loops

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import sliding_window as pictures
from convgrad.figures.grids import written

PAGE = "sliding_window"


def test_the_window_worked_by_hand():
    x, weight, bias, _ = example("B").arrays()
    window = x[0, 0, 2:5, 0:3]
    y = loops.forward(x, weight, example("B").geometry) + bias[:, None, None]
    assert (weight[0, 0] * window).sum() + bias[0] == y[0, 0, 2, 0] == 8
    alt = alt_text(PAGE, "one_window(")
    assert f"are lit: {spoken(window)}" in alt
    assert f"kernel w: {spoken(weight[0, 0])}" in alt
    assert alt.endswith("cell (2, 0) lit: 8.")


def test_one_pixel_leaves_the_kernel_turned():
    x, weight, _, _ = example("A").arrays()
    y = loops.forward(x, weight, example("A").geometry)
    assert np.array_equal(y[0, 0], x[0, 0, 0, 0] * weight[0, 0, 1:3, 1:3][::-1, ::-1])
    alt = alt_text(PAGE, "four_windows(")
    for (p, q), value in np.ndenumerate(y[0, 0]):
        i, j = 2 - p, 2 - q
        assert f"({i}, {j}), weight {written(weight[0, 0, i, j])}, product {written(value)}" in alt


def test_every_template_is_found_where_it_was_cut_out():
    search, templates, _, _ = example("E").arrays()
    responses = conv2d(search, templates, groups=3)
    alt = alt_text(PAGE, "tracker_responses(")
    for o, response in enumerate(responses[0]):
        p, q = np.unravel_index(response.argmax(), response.shape)
        assert np.array_equal(search[0, 8 * o : 8 * o + 8, p : p + 6, q : q + 6], templates[o])
        assert f"at p {p}, q {q} in map {o}" in alt
        others = np.delete(response.ravel(), response.argmax())
        assert others.max() < response.max() / 2  # "by far the largest"


@pytest.mark.parametrize("seed", range(20))
def test_turning_image_and_kernel_turns_the_output(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (1, 1, *rng.integers(3, 7, 2)))
    weight = rng.integers(-4, 5, (1, 1, *rng.integers(1, 4, 2)))
    both = conv2d(x[..., ::-1, ::-1], weight[..., ::-1, ::-1])
    assert np.array_equal(both, conv2d(x, weight)[..., ::-1, ::-1])


@pytest.mark.parametrize("stride", range(1, 5))
@pytest.mark.parametrize("taps", range(1, 5))
def test_how_many_windows_read_a_row(stride, taps):
    geometry = ConvGeometry(C=1, H=30, W=1, O=1, KH=taps, KW=1, stride=(stride, 1))
    for h in range(taps, 30 - taps - stride):
        readers = int((geometry.rows == h).sum())
        assert readers == h // stride - (h - taps) // stride
        assert readers in (taps // stride, -(-taps // stride))


def test_what_stride_dilation_and_padding_do_to_one_row():
    alt = alt_text(PAGE, "index_map(")
    said = dict(re.findall(r"With (stride 2|dilation 2|padding 1) (.*?)\.(?= With|$)", alt))
    figure = pictures.index_map()
    assert {*said} <= {*figure.words()}
    for name, words in said.items():
        step = {"stride": 1, "dilation": 1, "padding": 0} | {name[:-2]: int(name[-1])}
        for q in range(3):
            cells = [step["stride"] * q + step["dilation"] * j - step["padding"] for j in range(3)]
            listed = ", ".join(map(written, cells))
            assert re.search(rf"on (cells )?{listed} at q {q}", words), (name, q)
    assert [figure.words().count(f"w{j}") for j in "₀₁₂"] == [9, 9, 9]


def test_the_blocks_are_those_of_the_geometry():
    geometry = example("D").geometry
    words = pictures.blocks().words()
    assert [words.count(f"c = {c}") for c in range(geometry.CG)] == [geometry.O] * geometry.CG
    assert words.count("c = 0") + words.count("c = 1") == geometry.O * geometry.C // geometry.groups
    alt = alt_text(PAGE, "blocks(")
    for kernels, channels in (((0, 1, 2), (0, 1)), ((3, 4, 5), (2, 3))):
        for o in kernels:
            assert tuple(geometry.channel(o, c) for c in range(geometry.CG)) == channels
        listed = ", ".join(map(str, kernels))
        assert f"Kernels {listed} read channels {channels[0]} and {channels[1]}" in alt
    assert geometry.channel(4, 1) == 3  # as the text says


def test_the_frame_is_the_first_window_of_the_padded_pixel():
    words = pictures.four_windows().words()
    assert words.count("0") >= 24  # a border of 5×5 without its middle
    geometry = example("A").geometry
    assert geometry.cell(*geometry.source(0, 0, 2, 2)) == (0, 0)


def test_a_ring_lies_on_each_peak():
    figure = pictures.tracker_responses()
    assert len([a for a in figure.findobj() if a.get_gid() == "cg-peak"]) == 3
    assert {"most at p = 3, q = 5", "most at p = 8, q = 2", "most at p = 14, q = 11"} <= set(
        figure.words()
    )


def test_pictures_hold_the_numbers_of_their_example():
    assert pictures.one_window().words().count("+ 1 =") == 1
    captions = pictures.four_windows().words()
    assert {"0 · 2 = 0", "2 · 2 = 4", "1 · 2 = 2", "3 · 2 = 6"} <= set(captions)
    assert {"p = 0, q = 0", "p = 1, q = 1", "x with its border"} <= set(captions)
