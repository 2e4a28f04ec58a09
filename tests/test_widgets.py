"""The Python side of the player: its traits, what a browser's message does to it, its fallback."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import traitlets

from convgrad import api
from convgrad.examples import EXAMPLES, example
from convgrad.geometry import ConvGeometry, GeometryError, ShapeError
from convgrad.ledger import contributions
from convgrad.widgets import ContributionPlayer
from convgrad.widgets.base import STATIC, Explorable, filler, refit

SHOWN = "ABCD"
TARGETS = ("weight", "input", "bias")


def tensor(array: np.ndarray) -> dict[str, list]:
    return {"shape": list(array.shape), "data": array.ravel().tolist()}


def say(widget: Explorable, **state: Any) -> None:
    """What arrives when somebody changes something in the browser."""
    data = {"method": "update", "state": state, "buffer_paths": []}
    widget._handle_msg({"content": {"data": data}, "buffers": []})


@pytest.fixture
def player() -> ContributionPlayer:
    return ContributionPlayer(example("B"))


# ---- making one ------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", SHOWN)
def test_an_example_is_shown_as_it_is(letter: str) -> None:
    player, arrays = ContributionPlayer(example(letter)), example(letter).arrays()
    assert player.geometry == example(letter).geometry
    for name in ("x", "weight", "grad_output"):
        np.testing.assert_array_equal(getattr(player, name), getattr(arrays, name))


def test_arrays_come_with_the_arguments_of_conv2d() -> None:
    x, weight = np.arange(36.0).reshape(1, 1, 6, 6), np.ones((2, 1, 3, 3))
    player = ContributionPlayer(x, weight, stride=2, padding=1, padding_mode="circular")
    assert player.geometry == ConvGeometry.of(
        x.shape, weight.shape, stride=2, padding=1, padding_mode="circular"
    )
    assert player.grad_output.shape == player.geometry.output_shape
    assert len(np.unique(player.grad_output)) > 3, "an upstream gradient of ones teaches little"


def test_an_example_and_arguments_of_conv2d_contradict_each_other() -> None:
    with pytest.raises(TypeError, match="stride given together with example B"):
        ContributionPlayer(example("B"), stride=2)
    with pytest.raises(TypeError, match="x and weight are both needed"):
        ContributionPlayer(np.zeros((1, 1, 3, 3)))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"stride": 0}, GeometryError, "stride is 0"),
        ({"dilation": 3}, GeometryError, "spans 7×7"),
        ({"groups": 2}, GeometryError, "do not divide into 2 groups"),
        ({"grad_output": np.zeros((1, 1, 2, 2))}, ShapeError, "needed is .1, 1, 3, 3."),
    ],
)
def test_bad_input_gets_the_errors_of_the_package(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ContributionPlayer(np.zeros((1, 1, 5, 5)), np.zeros((1, 1, 3, 3)), **arguments)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ShapeError, match="take fewer channels, or a smaller image"):
        ContributionPlayer(example("E"))
    with pytest.raises(ShapeError, match="the batch is empty"):
        ContributionPlayer(np.zeros((0, 1, 5, 5)), np.zeros((1, 1, 3, 3)))


def test_presets_are_the_running_examples(player: ContributionPlayer) -> None:
    assert [preset["letter"] for preset in player.presets] == list(SHOWN)
    for preset in player.presets:
        source = EXAMPLES[preset["letter"]]
        assert preset["geometry"] == source.geometry.as_dict()
        for name in ("x", "weight", "grad_output"):
            assert preset[name] == tensor(getattr(source.arrays(), name))


# ---- what it answers -------------------------------------------------------------------------


@pytest.mark.parametrize("letter", SHOWN)
def test_gradients_are_those_of_the_package(letter: str) -> None:
    player, g = ContributionPlayer(example(letter)), example(letter).geometry
    x, weight, _, grad_output = example(letter).arrays()
    expected = api.conv2d_backward(
        *(grad_output, x, weight),
        **{key: getattr(g, key) for key in ("stride", "padding", "dilation", "groups")},
    )
    for ours, theirs in zip(player.gradients, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("letter", SHOWN)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("include_padding", [True, False])
def test_it_knows_how_many_products_fall(letter: str, target: Any, include_padding: bool) -> None:
    player = ContributionPlayer(example(letter), target=target, include_padding=include_padding)
    listed = contributions(player.geometry, target, include_padding=include_padding)
    assert player.steps == sum(1 for _ in listed)
    player.step = 10**6
    assert player.step == player.steps


# ---- the wire --------------------------------------------------------------------------------


def test_state_is_plain_json(player: ContributionPlayer) -> None:
    state = player.get_state()
    assert state["geometry"] == player.geometry.as_dict()
    assert state["x"] == tensor(player.x)
    assert not any(isinstance(value, (bytes, memoryview, np.ndarray)) for value in state.values())


def test_an_edited_number_arrives_in_python(player: ContributionPlayer) -> None:
    before = player.gradients.grad_weight
    edited = player.x.copy()
    edited[0, 0, 2, 2] = -4.5
    seen = []
    player.observe(seen.append, "x")
    say(player, x=tensor(edited))
    np.testing.assert_array_equal(player.x, edited)
    assert len(seen) == 1
    change = player.gradients.grad_weight - before
    # grad_weight is linear in x, and x[2,2] meets every tap once, with g turned by 180°
    expected = (-4.5 - 1) * player.grad_output[:, :, ::-1, ::-1]
    np.testing.assert_array_equal(change, expected)


def test_a_turned_knob_arrives_with_all_its_arrays(player: ContributionPlayer) -> None:
    g = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, stride=2)
    grad_output = refit(player.grad_output, g.output_shape)
    say(player, geometry=g.as_dict(), grad_output=tensor(grad_output), step=0)
    assert player.geometry == g
    np.testing.assert_array_equal(player.grad_output, grad_output)
    assert player.gradients.grad_input.shape == g.x_shape


def test_a_turned_knob_alone_refits_the_arrays(player: ContributionPlayer) -> None:
    x = player.x
    g = ConvGeometry(C=1, H=6, W=4, O=2, KH=3, KW=3)
    say(player, geometry=g.as_dict())
    assert (player.x.shape, player.weight.shape) == (g.x_shape, g.weight_shape)
    np.testing.assert_array_equal(player.x[..., :5, :4], x[..., :4])


BAD = {
    "an impossible geometry": ({"geometry": {"KH": 9}}, "kernel 9×3 spans 9×3"),
    "an array of another shape": ({"x": tensor(np.zeros((1, 1, 4, 4)))}, "x has shape"),
    "data that do not fit their shape": ({"x": {"shape": [1, 1, 5, 5], "data": [1]}}, "fit each"),
    "no array at all": ({"weight": "seven"}, "needed is {shape, data}"),
    "a number that is none": ({"grad_output": tensor(np.full((1, 1, 3, 3), np.inf))}, "finite"),
    "a good array beside a bad one": (
        {"weight": tensor(np.ones((1, 1, 3, 3))), "x": tensor(np.zeros((1, 1, 4, 4)))},
        "x has shape",
    ),
    "an unknown target": ({"target": "bias_of_somebody"}, "target"),
    "no speed": ({"speed": -1.0}, "speed is -1"),
}


@pytest.mark.parametrize(("state", "words"), BAD.values(), ids=BAD)
def test_a_bad_message_changes_nothing_and_is_answered(
    player: ContributionPlayer, state: dict[str, Any], words: str
) -> None:
    if "geometry" in state:
        state = {"geometry": {**player.geometry.as_dict(), **state["geometry"]}}
    before = player.get_state()
    sent = []
    player._send = lambda msg, buffers=None: sent.append(msg)  # what goes to the browser
    say(player, **state)
    assert words in player.complaint
    after = player.get_state()
    assert {**after, "complaint": ""} == before
    restored = [msg["state"] for msg in sent if msg["method"] == "update"]
    for key in state:
        assert any(each.get(key) == before[key] for each in restored), f"{key} was not sent back"
    say(player, step=1)
    assert player.complaint == "", "the next good change clears the sentence"


def test_assigning_in_python_is_sent(player: ContributionPlayer) -> None:
    sent = []
    player._send = lambda msg, buffers=None: sent.append(msg)
    weight = player.weight + 1
    player.weight = weight
    states = [msg["state"] for msg in sent if "weight" in msg["state"]]
    assert states[0]["weight"] == tensor(weight)
    sent.clear()
    player.weight = weight
    assert not sent, "an equal array is no change"


def test_assigning_a_geometry_sends_all_that_changes_at_once(player: ContributionPlayer) -> None:
    g = ConvGeometry(C=2, H=5, W=5, O=1, KH=3, KW=3)
    player.step = 81
    player.geometry = g
    assert player.x.shape == g.x_shape
    assert player.weight.shape == g.weight_shape
    with pytest.raises(GeometryError, match="kernel 9×3"):
        player.geometry = {**g.as_dict(), "KH": 9}
    with pytest.raises(ShapeError, match="assign geometry first"):
        player.x = np.zeros((1, 2, 5, 4))
    assert player.geometry == g


@pytest.mark.parametrize("target", TARGETS)
def test_nobody_is_told_of_a_geometry_before_its_arrays_fit(target: Any) -> None:
    player = ContributionPlayer(example("B"), target=target)
    told = []

    def look(change: Any) -> None:
        player.geometry.require(x=player.x, weight=player.weight, grad_output=player.grad_output)
        told.append(change["name"])

    player.observe(look, ["x", "weight", "grad_output", "fallback"])
    player.geometry = ConvGeometry(N=2, C=4, H=3, W=6, O=4, KH=2, KW=3, groups=2, stride=2)
    assert {"x", "weight", "grad_output", "fallback"} <= set(told)
    player.load(example("D"))
    assert "2 groups" in player.fallback


def test_arrays_are_copies_and_read_only(player: ContributionPlayer) -> None:
    mine = np.zeros((1, 1, 5, 5))
    player.x = mine
    mine[...] = 7
    assert not player.x.any()
    with pytest.raises(ValueError, match="read-only"):
        player.x[0, 0, 0, 0] = 1


def test_loading_another_example(player: ContributionPlayer) -> None:
    player.step = 40
    player.load(example("D"))
    assert (player.step, player.geometry) == (0, example("D").geometry)
    np.testing.assert_array_equal(player.weight, example("D").arrays().weight)


def test_refit_keeps_what_it_can() -> None:
    old = np.arange(12.0).reshape(1, 1, 3, 4)
    new = refit(old, (1, 2, 4, 3))
    np.testing.assert_array_equal(new[0, 0, :3], old[0, 0, :, :3])
    np.testing.assert_array_equal(new[0, 1], filler((1, 2, 4, 3))[0, 1])
    assert set(np.unique(filler((3, 4, 5, 6)))) == set(range(-3, 4))


# ---- without JavaScript ----------------------------------------------------------------------


class Outline(HTMLParser):
    """The tags of a piece of HTML, and the text of its paragraphs."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.feed(html)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.text[tag] = self.text.get(tag, "") + data


@pytest.mark.parametrize("letter", SHOWN)
@pytest.mark.parametrize("target", TARGETS)
def test_the_fallback_works_out_one_cell(letter: str, target: Any) -> None:
    player = ContributionPlayer(example(letter), target=target, order="tap", step=30)
    outline = Outline(player.fallback)
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert svg["role"] == "img"
    assert re.search(r"The cell grad_\w+\[[\d,]+\] is", svg["aria-label"])
    gradient = dict(zip(("input", "weight", "bias"), player.gradients, strict=True))[target]
    # the numbers of the formula add up to what stands in the named cell
    letters, numbers = outline.text["p"].replace("−", "-").split("= ", 1)[0], outline.text["p"]
    cell = tuple(map(int, re.search(r"\[([\d,]+)\]", letters).group(1).split(",")))
    *_, summed, value = numbers.replace("−", "-").replace("·", "*").split("= ")
    assert float(value) == gradient[cell]
    assert eval(summed) == gradient[cell]
    # every number of the gradient is drawn
    drawn = outline.text["svg"]
    for number in np.unique(gradient):
        assert f"{number:g}".replace("-", "−") in drawn


def test_the_fallback_follows_python_but_not_the_browser(player: ContributionPlayer) -> None:
    first = player.fallback
    player.step = 30
    second = player.fallback
    assert second != first
    say(player, step=31)
    assert player.fallback == second, "it is for where no script runs: no need to send it back"


def test_the_fallback_shows_padding_hatched() -> None:
    """Example A: a 1×1 image in the middle of 5×5 cells; the hatch is everywhere but there."""
    seen = Outline(ContributionPlayer(example("A")).fallback).seen
    drawn = [dict(attrs) for _, attrs in seen]
    (hatch,) = [attrs for attrs in drawn if attrs.get("class") == "hatch"]
    (image,) = [attrs for attrs in drawn if attrs.get("class") == "image"]
    ends = []
    for x, y, dx, dy in re.findall(r"M(\d+) (\d+)l(\d+) (-\d+)", hatch["d"]):
        ends += [(int(x), int(y)), (int(x) + int(dx), int(y) + int(dy))]
        assert int(dx) == -int(dy) > 0
    left, top = (min(numbers) for numbers in zip(*ends, strict=True))
    side = int(image["width"])
    assert (int(image["x"]), int(image["y"])) == (left + 2 * side, top + 2 * side)
    assert all(left <= x <= left + 5 * side and top <= y <= top + 5 * side for x, y in ends)
    unpadded = Outline(ContributionPlayer(example("B")).fallback).seen
    assert not any(dict(attrs).get("class") == "hatch" for _, attrs in unpadded)


def test_two_fallbacks_can_share_a_page() -> None:
    """Nothing in them is named by an id, which a page may hold only once."""
    html = ContributionPlayer(example("A")).fallback
    assert " id=" not in html
    assert "url(#" not in html


def test_the_fallback_keeps_the_room_of_the_live_player() -> None:
    """A taller player says so, and on paper or without scripts no room is kept."""
    rooms = {}
    for target in TARGETS:
        html = ContributionPlayer(example("B"), target=target).fallback
        style = next(attrs for tag, attrs in Outline(html).seen if tag == "figure")["style"]
        wide, narrow = map(int, re.fullmatch(r"--wide:(\d+)px;--narrow:(\d+)px", style).groups())
        rooms[target] = wide
        assert narrow > 0
        for rule in re.findall(r"@media ([^{]*)\{[^}]*min-height", html):
            assert rule.startswith("screen and (scripting:enabled)")
    assert rooms["bias"] < rooms["weight"] < rooms["input"]


# ---- files and installation ------------------------------------------------------------------


def test_the_bundles_are_there() -> None:
    for name in ("contribution_player.js", "contribution_player.css"):
        assert (STATIC / name).stat().st_size > 0
    assert (STATIC / "contribution_player.js").stat().st_size <= 40_000


def test_a_missing_anywidget_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['anywidget'] = None\n"
        "import convgrad.widgets\n"
        "try: convgrad.widgets.ContributionPlayer\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 'pip install "convgrad[widgets]"' in run.stdout


def test_unknown_names_are_unknown() -> None:
    import convgrad.widgets

    with pytest.raises(AttributeError, match="Slider"):
        _ = convgrad.widgets.Slider
    assert "ContributionPlayer" in dir(convgrad.widgets)


def test_traits_are_the_ones_the_browser_knows() -> None:
    """Every trait that the script reads exists, and is sent."""
    source = (STATIC.parent / "js" / "contribution_player.js").read_text("utf-8")
    read = set(re.findall(r'model\.get\("(\w+)"\)', source))
    assert {"geometry", "x", "step", "presets", "limits"} <= read
    synced = {name for name, trait in ContributionPlayer.class_traits(sync=True).items() if trait}
    assert read <= synced
    assert isinstance(ContributionPlayer.class_traits()["step"], traitlets.Int)
