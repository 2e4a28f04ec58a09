"""The Python side of SlidingWindow: its traits, a browser's messages, its fallback, its picture."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say, tensor

from convgrad import ConvGeometry, GeometryError, ShapeError, conv2d, example
from convgrad.scene import photograph
from convgrad.widgets import SlidingWindow
from convgrad.widgets.base import STATIC
from convgrad.widgets.sliding_fallback import as_pictures, grey_scale
from convgrad.widgets.sliding_window import KERNELS, PICTURES, TABLES


@pytest.fixture
def window() -> SlidingWindow:
    return SlidingWindow(example("B"))


# ---- making one ------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", TABLES + PICTURES)
def test_an_example_is_shown_as_it_is(letter: str) -> None:
    window, (x, weight, bias, _) = SlidingWindow(example(letter)), example(letter).arrays()
    for name, array in {"x": x, "weight": weight, "bias": bias}.items():
        np.testing.assert_array_equal(getattr(window, name), array)
    g = window.geometry
    expected = conv2d(x, weight, bias, g.stride, g.padding, g.dilation, g.groups)
    np.testing.assert_array_equal(window.y, expected)
    assert window.steps == window.y.size
    assert window.peak == (letter == "E")


def test_arrays_come_with_the_arguments_of_conv2d() -> None:
    x, weight = np.arange(36.0).reshape(1, 1, 6, 6), np.ones((2, 1, 3, 3))
    window = SlidingWindow(x, weight, [1, 2], stride=2, padding=1, padding_mode="circular")
    assert window.geometry.padding_mode == "circular"
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="wrap")
    np.testing.assert_array_equal(window.y, conv2d(padded, weight, [1, 2], stride=2))
    np.testing.assert_array_equal(SlidingWindow(x, weight).bias, [0, 0])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"stride": 0}, GeometryError, "stride is 0"),
        ({"bias": np.zeros(2)}, ShapeError, r"bias has shape \(2,\): needed is \(1,\)"),
        ({"bias": np.zeros((1, 1))}, ShapeError, "bias has shape"),
        ({"look": "y[0,0,3,0]"}, ValueError, r"look is 'y\[0,0,3,0\]': needed is a cell of x 1"),
        ({"look": "g[0,0,0,0]"}, ValueError, "look is 'g"),
        ({"speed": 0}, ValueError, "speed is 0"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        SlidingWindow(np.zeros((1, 1, 5, 5)), np.zeros((1, 1, 3, 3)), **arguments)


def test_examples_and_arguments_contradict_each_other() -> None:
    with pytest.raises(TypeError, match="stride given together with example B"):
        SlidingWindow(example("B"), stride=2)
    with pytest.raises(TypeError, match="x and weight are both needed"):
        SlidingWindow(np.zeros((1, 1, 3, 3)))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ShapeError, match="take fewer channels, or a smaller image"):
        SlidingWindow(np.zeros((1, 8, 60, 60)), np.zeros((8, 8, 3, 3)))
    with pytest.raises(ShapeError, match="the batch is empty"):
        SlidingWindow(np.zeros((0, 1, 5, 5)), np.zeros((1, 1, 3, 3)))


def test_the_photograph_comes_with_named_kernels() -> None:
    for name, kernel in KERNELS.items():
        window = SlidingWindow.photograph(name)
        np.testing.assert_array_equal(window.weight[0, 0], kernel)
        assert window.y.shape == window.x.shape
    np.testing.assert_array_equal(SlidingWindow.photograph("as it is").y, photograph()[None, None])
    flat = np.full((1, 1, 9, 9), 100.0)  # what a kernel does to an even wall
    answers = {name: conv2d(flat, k[None, None])[0, 0, 0, 0] for name, k in KERNELS.items()}
    assert {name for name, value in answers.items() if value == 0} == {
        *("upright edges", "level edges", "all edges")
    }
    assert answers["blur"] == answers["sharpen"] == 100
    with pytest.raises(ValueError, match="no kernel is called 'emboss': there are as it is, blur"):
        SlidingWindow.photograph("emboss")


# ---- what is looked at -----------------------------------------------------------------------


def test_it_begins_with_the_first_window(window: SlidingWindow) -> None:
    assert (window.look, window.step) == ("y[0,0,0,0]", 1)
    assert SlidingWindow(example("B"), look="y[0,0,1,2]").step == 6
    playing = SlidingWindow(example("B"), step=4)
    assert (playing.look, playing.step) == ("", 4)
    assert SlidingWindow(example("B"), step=99).step == 9


@pytest.mark.parametrize("look", ["y[0,0,2,2]", "w[0,0,2,0]", "x[0,0,4,4]", "", "y[0, 0, 1, 1]"])
def test_looks_that_are_there(window: SlidingWindow, look: str) -> None:
    window.look = look
    assert window.look == look.replace(" ", "")


def test_the_border_can_be_looked_at() -> None:
    window = SlidingWindow(np.zeros((1, 1, 5, 5)), np.zeros((1, 1, 3, 3)), padding=((1, 0), (0, 0)))
    window.look = "x[0,0,-1,4]"
    with pytest.raises(ValueError, match="look is"):
        window.look = "x[0,0,-2,4]"
    assert window.look == "x[0,0,-1,4]"


def test_a_new_geometry_lets_go_of_what_is_no_longer_there(window: SlidingWindow) -> None:
    window.look = "y[0,0,2,2]"
    window.geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, stride=2)
    assert (window.look, window.x.shape, window.bias.shape) == ("", (1, 1, 5, 5), (1,))
    window.look = "y[0,0,1,1]"
    window.geometry = ConvGeometry(C=1, H=5, W=5, O=2, KH=2, KW=3)
    assert window.look == "y[0,0,1,1]"
    assert window.y.shape == (1, 2, 4, 3)


def test_loading_another_example(window: SlidingWindow) -> None:
    window.look = "x[0,0,4,4]"
    window.load(example("E"))
    assert (window.look, window.peak, window.speed) == ("y[0,0,0,0]", True, 60)
    np.testing.assert_array_equal(window.x, example("E").arrays().x)


# ---- the wire --------------------------------------------------------------------------------


def test_state_is_plain_json(window: SlidingWindow) -> None:
    state = window.get_state()
    assert state["bias"] == {"shape": [1], "data": [1]}
    assert state["x"] == tensor(window.x)
    pictures = SlidingWindow(example("E")).presets
    assert [preset["letter"] for preset in state["presets"]] == [*TABLES]
    assert [preset["letter"] for preset in pictures] == [*PICTURES, "photo"]
    for preset in state["presets"] + pictures:
        g = ConvGeometry(**preset["geometry"])
        for name in ("x", "weight", "bias"):
            shape, data = preset[name]["shape"], preset[name]["data"]
            g.require(**{name: np.reshape(data, shape)})


def test_an_edit_arrives_in_python(window: SlidingWindow) -> None:
    edited = window.weight.copy()
    edited[0, 0, 1, 1] = 2.5
    before = window.y
    say(window, weight=tensor(edited))
    np.testing.assert_array_equal(window.weight, edited)
    np.testing.assert_array_equal(window.y - before, 1.5 * window.x[:, :, 1:4, 1:4])
    say(window, look="w[0,0,1,1]")
    assert window.look == "w[0,0,1,1]"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"look": "y[0,0,9,9]"}, "look is"),
        ({"bias": {"shape": [2], "data": [1, 2]}}, "bias has shape"),
        ({"bias": {"shape": [1, 1], "data": [1]}}, "needed is 1, one number for each kernel"),
        ({"speed": 0.0}, "speed is 0"),
        ({"x": tensor(np.ones((1, 1, 5, 5))), "step": "many"}, "step"),
    ],
)
def test_a_bad_message_changes_nothing_and_is_answered(
    window: SlidingWindow, state: dict[str, Any], words: str
) -> None:
    before = window.get_state()
    say(window, **state)
    assert words in window.complaint
    assert {**window.get_state(), "complaint": ""} == before


def test_traits_are_the_ones_the_browser_knows() -> None:
    source = (STATIC.parent / "js" / "sliding_window.js").read_text("utf-8")
    read = set(re.findall(r'model\.get\("(\w+)"\)', source))
    assert {"geometry", "x", "look", "step", "presets", "kernels", "limits"} <= read
    assert read <= set(SlidingWindow.class_traits(sync=True))


def test_the_bundle_is_there_and_small() -> None:
    assert 0 < (STATIC / "sliding_window.js").stat().st_size <= 40 * 1024
    assert (STATIC / "sliding_window.css").stat().st_size > 0


# ---- without JavaScript ----------------------------------------------------------------------


@pytest.mark.parametrize("letter", TABLES + PICTURES)
def test_the_fallback_works_out_one_cell(letter: str) -> None:
    g = example(letter).geometry
    at = (g.N - 1, g.O - 1, g.OH - 1, 0)
    window = SlidingWindow(example(letter), look="y[{},{},{},{}]".format(*at))
    outline = Outline(window.fallback)
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert svg["role"] == "img"
    assert re.search(r"The cell y\[[\d,]+\] is", svg["aria-label"])
    text = outline.text["p"].replace("−", "-")
    name, rest = text.split(" = ", 1)
    assert name == f"y[{','.join(map(str, at))}]"
    *_, summed, value = rest.replace("·", "*").split("= ")
    assert float(value) == window.y[at]
    if g.CG * g.KH * g.KW <= 40:
        assert eval(summed) == window.y[at]


def test_the_fallback_names_padding() -> None:
    x, weight = np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2))
    text = Outline(SlidingWindow(x, weight, padding=1).fallback).text["p"]
    assert text.count("padding") == 3


def test_the_trackers_fallback_says_where_the_peaks_are() -> None:
    window = SlidingWindow(example("E"))
    words = Outline(window.fallback).text["figcaption"]
    for o, (p, q) in enumerate([(3, 5), (8, 2), (14, 11)]):
        assert window.y[0, o].argmax() == p * 17 + q
        assert f"y[0,{o},{p},{q}] = {window.y[0, o].max():g}" in words


def test_pictures_of_the_fallback_hold_the_numbers() -> None:
    """A PNG read back: 8-bit grey, each row after one byte that says it is not filtered."""
    window = SlidingWindow.photograph("as it is")
    pictures = re.findall(r'href="data:image/png;base64,([^"]+)"', window.fallback)
    assert len(pictures) == 2
    for picture in pictures:
        data = base64.b64decode(picture)
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        cols, rows, depth, colour = struct.unpack(">IIBB", data[16:26])
        assert (rows, cols, depth, colour) == (40, 40, 8, 0)
        length = struct.unpack(">I", data[33:37])[0]
        lines = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8).reshape(40, 41)
        assert not lines[:, 0].any()
        expected = np.round(255 * photograph() / photograph().max())
        np.testing.assert_array_equal(lines[:, 1:], expected)


def test_the_last_line_says_which_window(window: SlidingWindow) -> None:
    window.look = "y[0,0,1,2]"
    assert window.step == 6
    window.step = 3
    assert window.look == ""
    window.look = "w[0,0,1,1]"
    assert window.step == 3
    window.step = 4
    assert window.look == ""
    assert SlidingWindow(example("B"), look="y[0,0,1,2]", step=2).step == 6
    assert SlidingWindow(example("B"), look="w[0,0,1,2]", step=2).look == "w[0,0,1,2]"


def test_the_fallback_follows_python_but_not_the_browser(window: SlidingWindow) -> None:
    first = window.fallback
    window.look = "y[0,0,1,1]"
    second = window.fallback
    assert second != first
    say(window, look="y[0,0,2,2]")
    assert window.fallback == second
    assert " id=" not in second and "url(#" not in second


def test_pictures_are_drawn_where_tables_are_too_large() -> None:
    assert not as_pictures(example("B").geometry)
    assert as_pictures(example("E").geometry)


@pytest.mark.parametrize(
    ("values", "x", "kernel", "scale"),
    [
        ([-40, 300], [0, 255], [0, -1, 5, -1, -1, -1], (0, 255)),
        ([-30, 12], [0, 255], [-1, 0, 1], (-30, 30)),
        ([0, 0], [0, 255], [-1, 1], (-1, 1)),
        ([-3, 9], [-4, 4], [1, 2], (-3, 9)),
        ([7, 7], [-4, 4], [1, 2], (7, 8)),
    ],
)
def test_the_scale_of_a_picture(values, x, kernel, scale) -> None:
    """The same cases as in tests/js/sliding.test.mjs."""
    assert grey_scale(*(np.array(each, float) for each in (values, x, kernel))) == scale


# ---- the photograph --------------------------------------------------------------------------


def test_the_photograph_has_light_shade_and_edges() -> None:
    picture = photograph(40)
    assert picture.shape == (40, 40)
    np.testing.assert_array_equal(picture, np.round(picture))
    assert picture.min() >= 0 and picture.max() <= 255
    assert picture.max() - picture.min() > 150
    assert picture.std() > 30
    smooth = np.abs(np.diff(picture, axis=1)) <= 4
    assert 0.4 < smooth.mean() < 0.95, "some of it is even, some of it is edges"
    np.testing.assert_array_equal(photograph(40), picture)
    # the same scene, finer
    coarse = photograph(80).reshape(40, 2, 40, 2).mean(axis=(1, 3))
    assert np.abs(coarse - picture).mean() < 4
