"""The Python side of GroupBlocks: its traits, a browser's messages, its fallback."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say, tensor

from convgrad import conv2d_backward, grouped
from convgrad.examples import example
from convgrad.geometry import ConvGeometry, GeometryError, ShapeError
from convgrad.widgets import GroupBlocks
from convgrad.widgets.base import STATIC


@pytest.fixture
def blocks() -> GroupBlocks:
    return GroupBlocks(example("D"))


def test_example_d_is_shown_when_nothing_is_given() -> None:
    blocks = GroupBlocks()
    assert blocks.geometry == example("D").geometry
    np.testing.assert_array_equal(blocks.x, example("D").arrays().x)
    assert [preset["letter"] for preset in blocks.presets] == ["B", "C", "D"]


def test_its_gradients_are_those_of_the_package(blocks: GroupBlocks) -> None:
    x, weight, _, grad_output = example("D").arrays()
    _, grad_weight, _ = conv2d_backward(grad_output, x, weight, groups=2)
    np.testing.assert_array_equal(blocks.grad_weight, grad_weight)
    shares = grouped.per_sample_weight_gradients(grad_output, x, weight.shape, groups=2)
    np.testing.assert_array_equal(blocks.per_image_gradients, shares)
    np.testing.assert_array_equal(blocks.per_image_gradients.sum(axis=0), blocks.grad_weight)
    assert not np.array_equal(blocks.without_transpose, shares)


def test_the_story_begins_with_the_arrays_as_they_come(blocks: GroupBlocks) -> None:
    assert (blocks.step, blocks.steps) == (0, 12)
    assert GroupBlocks(example("D"), step=None).step == 12
    blocks.step = 12
    blocks.transpose = False
    assert (blocks.step, blocks.steps) == (11, 11)
    blocks.per_image = True
    assert (blocks.step, blocks.steps) == (9, 9), "neither the sum nor the dense weight"


@pytest.mark.parametrize(
    ("arguments", "conv", "error", "words"),
    [
        ((example("E"),), {}, ShapeError, "the block view draws up to"),
        ((np.zeros((2, 4, 5, 5)), np.zeros((6, 2, 3, 3))), {"groups": 3}, GeometryError, "divide"),
        ((np.zeros((2, 4, 5, 5)), np.zeros((6, 4, 3, 3))), {"groups": 2}, ShapeError, "per group"),
    ],
)
def test_bad_input_gets_the_errors_of_the_package(
    arguments: tuple, conv: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        GroupBlocks(*arguments, **conv)


def test_an_edit_in_the_browser_arrives(blocks: GroupBlocks) -> None:
    edited = blocks.x.copy()
    edited[1, 2] += 5
    say(blocks, x=tensor(edited))
    change = blocks.grad_weight - GroupBlocks(example("D")).grad_weight
    assert np.any(change[3:, 0]), "channel 2 is the first one of group B"
    assert not np.any(change[:3])
    assert not np.any(change[:, 1])


def test_switches_arrive(blocks: GroupBlocks) -> None:
    say(blocks, transpose=False, step=0)
    say(blocks, per_image=True, step=0)
    assert (blocks.transpose, blocks.per_image) == (False, True)
    say(blocks, transpose="maybe")
    assert "transpose" in blocks.complaint
    assert blocks.transpose is False


def test_a_turned_knob_arrives(blocks: GroupBlocks) -> None:
    g = ConvGeometry(N=3, C=4, H=5, W=4, O=6, KH=3, KW=2, groups=1)
    say(blocks, geometry=g.as_dict(), step=0)
    assert blocks.geometry == g
    assert blocks.weight.shape == g.weight_shape
    assert blocks.steps == 3 + 3 + 1 + 1, "without groups there is no dense weight to show"


@pytest.mark.parametrize("letter", "BCD")
@pytest.mark.parametrize("per_image", [False, True])
def test_the_fallback_works_out_one_number(letter: str, per_image: bool) -> None:
    blocks = GroupBlocks(example(letter), per_image=per_image)
    outline = Outline(blocks.fallback)
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert svg["role"] == "img"
    assert example(letter).geometry.describe() in svg["aria-label"]
    text = outline.text["p"].replace("−", "-")
    summed, value = re.search(r"= (.*) = (-?[\d.]+), the shares", text).groups()
    assert eval(summed) == float(value) == blocks.grad_weight[0, 0, 0, 0]
    for number in np.unique(blocks.grad_weight):
        assert f"{number:g}".replace("-", "−") in outline.text["svg"]
    assert (".sum(1)" in outline.text["pre"]) != per_image


def test_the_bundle_is_there_and_reads_traits_that_exist() -> None:
    assert (STATIC / "group_blocks.css").stat().st_size > 0
    assert (STATIC / "group_blocks.js").stat().st_size <= 40 * 1024
    traits = set(GroupBlocks.class_traits(sync=True))
    assert {"transpose", "per_image", "step", "geometry", "x", "grad_output"} <= traits
