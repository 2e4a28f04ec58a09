"""The Python side of ShardSum: its traits, a browser's messages, its fallback."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say, tensor

from convgrad import conv2d_backward
from convgrad.examples import example
from convgrad.geometry import ConvGeometry, GeometryError, ShapeError
from convgrad.shards import halo_messages, numbers_sent
from convgrad.widgets import ShardSum
from convgrad.widgets.base import STATIC
from convgrad.widgets.shard_sum import MOST_DEVICES


@pytest.fixture
def three() -> ShardSum:
    return ShardSum(example("D"))


def whole(letter: str) -> tuple[np.ndarray, ...]:
    source = example(letter)
    x, weight, _, grad_output = source.arrays()
    g = source.geometry
    return conv2d_backward(grad_output, x, weight, stride=g.stride, groups=g.groups)


def test_example_d_on_three_devices_is_shown_when_nothing_is_given() -> None:
    widget = ShardSum()
    assert widget.geometry == example("D").geometry
    assert (widget.shares, widget.devices) == ((1, 1, 1), 3)
    assert [preset["letter"] for preset in widget.presets] == ["B", "C", "D"]


@pytest.mark.parametrize("letter", "BCD")
@pytest.mark.parametrize("view", ["images", "rows"])
def test_what_the_devices_agree_on_is_what_one_device_computes(letter: str, view: Any) -> None:
    grad_input, grad_weight, grad_bias = whole(letter)
    bucket = np.concatenate([grad_weight.ravel(), grad_bias])
    widget = ShardSum(example(letter), view=view)
    for devices in range(1, widget.dealt + 1):
        widget.deal(devices)
        assert widget.devices == devices
        assert np.array_equal(widget.agreed, bucket)
        assert np.array_equal(widget.whole, bucket)
        assert np.array_equal(sum(part.grad_input for part in widget.parts), grad_input)
        assert all(np.array_equal(held, bucket) for held in widget.ring[-1])


def test_averaged_a_sum_loss_is_too_small_and_uneven_means_are_wrong(three: ShardSum) -> None:
    three.combine = "average"
    assert np.array_equal(three.agreed, three.whole / 3)
    three.loss = "mean"
    assert np.allclose(three.agreed, three.whole, rtol=1e-14)
    three.deal([2, 1])
    assert not np.allclose(three.agreed, three.whole)
    images = np.array([np.concatenate([p.grad_weight.ravel(), p.grad_bias]) for p in three.parts])
    assert np.allclose(three.agreed, images[0] / 4 + images[1] / 2)


def test_every_message_is_a_step(three: ShardSum) -> None:
    assert three.steps == 1 + 2 * 2 + 1
    three.combine = "average"
    assert three.steps == 1 + 2 * 2 + 1 + 1
    three.deal(1)
    assert three.steps == 2, "alone there is nothing to send, and nothing to average"
    three.view = "rows"
    assert three.shares == (3,), "what fits both ways is kept"
    three.deal(3)
    assert halo_messages(three.shards)
    assert three.steps == 6
    pointwise = ShardSum(np.ones((1, 2, 4, 4)), np.ones((3, 2, 1, 1)), view="rows")
    assert not halo_messages(pointwise.shards)
    assert pointwise.steps == 4
    assert ShardSum(example("D"), step=None).step == 6


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((example("F"),), {}, ShapeError, "the view of devices draws up to"),
        ((example("D"),), {"devices": 4}, ValueError, "4 devices for 3 images: one would have"),
        ((example("D"),), {"devices": [2, 2]}, ValueError, "2 \\+ 2 = 4: together they need"),
        ((example("D"),), {"devices": [3, 0]}, ValueError, "one would have nothing to do"),
        ((example("C"),), {"view": "rows", "devices": 3}, ValueError, "3 devices for 2 output"),
        ((np.zeros((0, 1, 5, 5)), np.zeros((1, 1, 3, 3))), {}, ShapeError, "N = 0"),
        ((np.zeros((9, 1, 3, 3)), np.zeros((1, 1, 3, 3))), {"devices": 9}, ValueError, "up to 8"),
        ((np.zeros((2, 4, 5, 5)), np.zeros((6, 2, 3, 3))), {"groups": 3}, GeometryError, "divide"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ShardSum(*arguments, **options)


def test_other_sizes_are_dealt_out_anew(three: ShardSum) -> None:
    g = three.geometry
    three.geometry = ConvGeometry(**{**g.as_dict(), "N": 2})
    assert three.shares == (1, 1)
    three.geometry = ConvGeometry(**{**g.as_dict(), "N": 12})
    assert three.shares == (6, 6), "as many devices as before"
    three.deal(MOST_DEVICES)
    assert sorted(three.shares) == [1, 1, 1, 1, 2, 2, 2, 2]
    three.view = "rows"
    three.geometry = ConvGeometry(**{**g.as_dict(), "padding": 2})  # arrays change as well
    assert sum(three.shares) == three.geometry.OH == three.grad_output.shape[2]
    three.view = "images"
    three.load(example("C"))
    assert (three.shares, three.step) == ((1, 1), 0)


def test_shares_arrive_from_the_browser(three: ShardSum) -> None:
    say(three, shares="1-2", step=0)
    assert three.shares == (1, 2)
    assert three.get_state("shares") == {"shares": "1-2"}
    for refused, words in [
        ("2-2", r"2 \+ 2 = 4: needed are shares of 3 images"),
        ("3-0", "whole number of at least 1"),
        ("two", "whole number of at least 1"),
        ("", "whole number of at least 1"),
    ]:
        say(three, shares=refused)
        assert re.search(words, three.complaint), (refused, three.complaint)
        assert three.shares == (1, 2)
    say(three, view="rows", shares="2-1", step=0)
    assert (three.view, three.shares, three.complaint) == ("rows", (2, 1), "")


def test_a_turned_knob_arrives_with_its_shares(three: ShardSum) -> None:
    g = ConvGeometry(N=5, C=4, H=5, W=4, O=6, KH=3, KW=2, groups=2)
    arrays = {
        name: tensor(np.zeros(shape))
        for name, shape in [
            ("x", g.x_shape),
            ("weight", g.weight_shape),
            ("grad_output", g.output_shape),
        ]
    }
    say(three, geometry=g.as_dict(), **arrays, shares="2-2-1", step=0)
    assert (three.geometry, three.shares, three.complaint) == (g, (2, 2, 1), "")


def test_a_change_without_shares_is_never_refused(three: ShardSum) -> None:
    """Shares are dealt anew after it; amid the change nothing stumbles over the old ones."""
    three.deal([2, 1])
    three.step = three.steps
    three.load(example("B"))
    assert (three.shares, three.step) == ((1,), 0)
    three.view = "rows"
    three.deal([2, 1])
    g = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, padding=1)
    upstream = tensor(np.zeros(g.output_shape))
    say(three, geometry=g.as_dict(), grad_output=upstream, step=2)
    assert (three.complaint, three.shares, three.step) == ("", (3, 2), 2)
    say(three, view="images", step=1)
    assert (three.complaint, three.shares, three.step) == ("", (1,), 1)


def test_an_edit_in_the_browser_arrives(three: ShardSum) -> None:
    before = [part.grad_weight for part in three.parts]
    edited = three.x.copy()
    edited[1, 2] += 5
    say(three, x=tensor(edited))
    changed = [
        not np.array_equal(a, part.grad_weight) for a, part in zip(before, three.parts, strict=True)
    ]
    assert changed == [False, True, False], "image 1 belongs to device 1"


@pytest.mark.parametrize("letter", "BCD")
@pytest.mark.parametrize("view", ["images", "rows"])
def test_the_fallback_works_out_one_number(letter: str, view: Any) -> None:
    widget = ShardSum(example(letter), view=view)
    outline = Outline(widget.fallback)
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert svg["role"] == "img"
    assert example(letter).geometry.describe() in svg["aria-label"]
    text = outline.text["p"].replace("−", "-")
    summed, value = re.search(r"= (.*) = (-?[\d.]+), one term", text).groups()
    assert eval(summed) == float(value) == widget.agreed[0]
    assert summed.count("+") == widget.devices - 1
    for number in np.unique(sum(part.grad_weight for part in widget.parts)[0, 0]):
        assert f"{number:g}".replace("-", "−") in outline.text["svg"]


def test_the_fallback_says_who_sends_what() -> None:
    text = Outline(ShardSum(example("D")).fallback).text["pre"]
    assert "reduce-scatter 1 of 2: 0→1 chunk 0, 1→2 chunk 1, 2→0 chunk 2" in text
    assert f"each device sends {numbers_sent(78, 3)[0]}, 416 bytes" in text
    text = Outline(ShardSum(example("B"), view="rows").fallback).text["pre"]
    assert (
        "device 1: output row 1; reads rows 1, 2, 3; holds row 2; halo: row 1 from device 0;"
        in text
    )


def test_the_bundle_is_there_and_reads_traits_that_exist() -> None:
    assert (STATIC / "shard_sum.css").stat().st_size > 0
    assert (STATIC / "shard_sum.js").stat().st_size <= 40 * 1024
    traits = set(ShardSum.class_traits(sync=True))
    assert {"view", "shares", "loss", "combine", "step", "geometry", "x", "grad_output"} <= traits
