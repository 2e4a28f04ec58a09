"""The Python side of Roofline: its traits, a browser's messages, its fallback."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from test_widgets import Outline, say

from convgrad import ConvGeometry, GeometryError, ShapeError, example
from convgrad.layers import TABLE
from convgrad.roofline import CARDS, MAPS, bound
from convgrad.widgets import Roofline
from convgrad.widgets.base import STATIC, traitlets
from convgrad.widgets.roofline import PRESETS

LAYER = example("F").geometry


@pytest.fixture
def roof() -> Roofline:
    return Roofline(example("F"), precision="float16", tile=128)


# ---- making one ------------------------------------------------------------------------------


def test_it_takes_a_geometry_an_example_or_sizes() -> None:
    sizes: dict[str, Any] = {"N": 2, "C": 8, "H": 9, "W": 7, "O": 4, "KH": 3, "KW": 3}
    wanted = ConvGeometry(**sizes)
    assert Roofline(**sizes).geometry == wanted
    assert Roofline(wanted).geometry == wanted
    assert Roofline(wanted, stride=2).geometry == replace(wanted, stride=2)
    assert Roofline().geometry == Roofline(example("F")).geometry == LAYER


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"geometry": 7}, TypeError, "geometry is 7: needed is a ConvGeometry, an example, or"),
        ({"card": "abacus"}, traitlets.TraitError, "card"),
        ({"precision": "float8"}, traitlets.TraitError, "precision"),
        ({"tile": 100}, traitlets.TraitError, "tile"),
        ({"splits": 0}, ValueError, "splits is 0: needed is a whole number from 1 to 4096"),
        ({"N": 0}, GeometryError, "the batch is empty"),
        ({"N": 10**6, "C": 4096, "O": 4096}, ShapeError, "operations: the roofline counts up to"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Roofline(**{"geometry": LAYER} | arguments)


def test_its_bounds_are_those_of_the_package(roof: Roofline) -> None:
    for columns, splits in ((False, 1), (True, 26)):
        roof.columns, roof.splits = columns, splits
        for which in MAPS:
            settings: dict[str, Any] = {"columns": columns, "tile": 128, "splits": splits}
            expected = bound(LAYER, which, CARDS["H100"], "float16", **settings)
            assert roof.bounds[which] == expected


def test_the_presets_are_the_layers_that_are_measured_and_example_f() -> None:
    assert [g for _, _, g in PRESETS] == [LAYER, *TABLE.values()]
    assert len({name for name, _, _ in PRESETS}) == len(PRESETS)
    for preset in Roofline().presets:
        assert Roofline(ConvGeometry(**preset["geometry"])).bounds["forward"].tflops > 0


# ---- the wire --------------------------------------------------------------------------------


def test_what_is_set_in_the_page_arrives(roof: Roofline) -> None:
    g = replace(LAYER, N=4, O=128)
    say(roof, geometry=g.as_dict(), card="T4", precision="bfloat16", splits=4, columns=True)
    assert (roof.geometry, roof.card, roof.precision) == (g, "T4", "bfloat16")
    assert (roof.splits, roof.columns) == (4, True)
    assert roof.bounds["forward"].ceiling <= 8.1, "no units for bfloat16: float32 does it"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"geometry": {"KH": 99}}, "kernel 99×3 spans 99×3"),
        ({"geometry": {"N": 0}}, "the batch is empty"),
        ({"card": "abacus"}, "card"),
        ({"splits": 5000}, "splits is 5000"),
    ],
)
def test_a_bad_message_changes_nothing_and_is_answered(
    roof: Roofline, state: dict[str, Any], words: str
) -> None:
    if "geometry" in state:
        state = {"geometry": {**roof.geometry.as_dict(), **state["geometry"]}}
    before = roof.get_state()
    say(roof, **state)
    assert words in roof.complaint
    assert {**roof.get_state(), "complaint": ""} == before


def test_traits_are_the_ones_the_browser_knows() -> None:
    source = (STATIC.parent / "js" / "roofline.js").read_text("utf-8")
    read = set(re.findall(r'model\.get\("(\w+)"\)', source))
    listed = re.search(r"const SET = \[(.*?)\]", source)
    assert listed
    read |= set(re.findall(r'"(\w+)"', listed[1]))
    assert {"geometry", "cards", "presets", "limits", "splits", "others"} <= read
    assert read <= set(Roofline.class_traits(sync=True))
    model = (STATIC.parent / "js" / "roofline_model.js").read_text("utf-8")
    names = re.search(r"export const CARDS = \[(.*?)\];", model, re.S)
    assert names and re.findall(r'"([^"]+)"', names[1]) == list(CARDS)
    assert 0 < (STATIC / "roofline.js").stat().st_size <= 40_000
    assert (STATIC / "roofline.css").stat().st_size > 0


# ---- without JavaScript ----------------------------------------------------------------------


def test_the_fallback_says_the_figures_and_that_nothing_was_measured(roof: Roofline) -> None:
    outline = Outline(roof.fallback)
    assert "Nothing here was measured." in outline.text["figcaption"]
    told = outline.text["p"]
    assert told.startswith("grad_weight is held up by its tiles: 5 tiles on 132 multiprocessors")
    assert "At most 33.7 TFLOP/s" in told
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert told in svg["aria-label"]
    cells = re.findall(r"<td>([^<]+)</td>", roof.fallback)
    assert cells[:3] == ["7.4·10⁹"] * 3
    assert cells[9:12] == ["784", "784", "5"]
    assert " id=" not in roof.fallback


def test_the_fallback_draws_each_mark_where_its_numbers_are(roof: Roofline) -> None:
    marks = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4"', roof.fallback)
    drawn = sorted((float(x), float(y)) for x, y in marks)
    expected = []
    for found in roof.bounds.values():
        across = math.log10(found.intensity / 0.1) / 5
        up = math.log(found.tflops / 0.01) / math.log(2000 / 0.01)
        expected.append((46 + across * (628 - 46), 340 - up * (340 - 64)))
    for mine, theirs in zip(drawn, sorted(expected), strict=True):
        assert mine == pytest.approx(theirs, abs=0.06)


def test_the_fallback_follows(roof: Roofline) -> None:
    roof.splits = 26
    assert "waits for memory" in Outline(roof.fallback).text["p"]
    roof.tile = 0
    assert "multiprocessors" not in roof.fallback and "tiles" not in roof.fallback
    roof.card = "L4"
    assert "on the card L4 in float16" in roof.fallback
