"""The Python side of GeometryExplorer: its traits, a browser's messages, its fallback."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say

from convgrad import ConvGeometry, GeometryError, ShapeError, example
from convgrad.widgets import GeometryExplorer
from convgrad.widgets.base import STATIC
from convgrad.widgets.geometry_explorer import PRESETS


@pytest.fixture
def explorer() -> GeometryExplorer:
    return GeometryExplorer(example("C"))


# ---- making one ------------------------------------------------------------------------------


def test_it_takes_a_geometry_an_example_or_sizes() -> None:
    sizes = {"H": 6, "W": 7, "KH": 3, "KW": 3, "stride": 2}
    wanted = ConvGeometry(C=1, O=1, **sizes)
    assert GeometryExplorer(**sizes).geometry == wanted
    assert GeometryExplorer(wanted).geometry == wanted
    # images, channels and groups have no part in it
    assert GeometryExplorer(example("D")).geometry == ConvGeometry(C=1, H=5, W=4, O=1, KH=3, KW=2)
    assert GeometryExplorer(example("C")).geometry == wanted
    assert GeometryExplorer().geometry == wanted
    assert GeometryExplorer(wanted, padding=1).geometry.padding == ((1, 1), (1, 1))
    row = GeometryExplorer(W=9, KW=3, stride=(1, 2)).geometry
    assert (row.H, row.KH, row.OW) == (1, 1, 4)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"H": 3, "W": 3, "KH": 5, "KW": 3}, GeometryError, "spans 5×3"),
        ({"H": 30, "W": 30, "KH": 3, "KW": 3}, ShapeError, "30×30, 900 cells: the explorer draws"),
        ({"geometry": 7}, TypeError, "geometry is 7: needed is a ConvGeometry, an example, or"),
        ({"H": 5, "W": 5, "KH": 3, "KW": 3, "look": "y[3,0]"}, ValueError, "look is 'y"),
        ({"H": 5, "W": 5, "KH": 3, "KW": 3, "look": "w[0,0]"}, ValueError, "look is 'w"),
        ({"view": "pretty"}, ValueError, "view"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    if error is ValueError and "view" in arguments:
        from convgrad.widgets.base import traitlets

        error = traitlets.TraitError
    with pytest.raises(error, match=words):
        GeometryExplorer(**arguments)


def test_it_counts() -> None:
    """By hand: stride 2 over 6 rows and 7 columns; a row of 5 under a border that copies."""
    explorer = GeometryExplorer(example("C"))
    np.testing.assert_array_equal(
        explorer.uses, np.outer([1, 1, 2, 1, 1, 0], [1, 1, 2, 1, 2, 1, 1])
    )
    np.testing.assert_array_equal(explorer.reads, explorer.uses)
    mirrored = GeometryExplorer(W=4, KW=3, padding=(0, 1), padding_mode="reflect")
    np.testing.assert_array_equal(mirrored.reads, [[1, 2, 3, 3, 2, 1]])
    np.testing.assert_array_equal(mirrored.uses, [[2, 4, 4, 2]])
    wrapped = GeometryExplorer(W=4, KW=3, padding=(0, 1), padding_mode="circular")
    np.testing.assert_array_equal(wrapped.uses, [[3, 3, 3, 3]])


def test_presets_show_what_they_are_called() -> None:
    named = {name: (g, back) for name, _, g, back in PRESETS}
    assert named["leftover"][0].leftover == (1, 0)
    same = named["same"][0]
    assert (same.OH, same.OW) == (same.H, same.W) and same.padding[1] == (1, 2)
    assert named["reflect"][0].padding_mode == "reflect"
    checkers, back = named["checkerboard"]
    assert back and len(np.unique(GeometryExplorer(checkers).uses)) > 2
    assert named["one row"][0].H == 1
    state = GeometryExplorer().get_state()
    assert [preset["name"] for preset in state["presets"]] == list(named)
    for preset in state["presets"]:
        GeometryExplorer(ConvGeometry(**preset["geometry"]), view=preset["view"])


# ---- the wire --------------------------------------------------------------------------------


def test_a_turned_knob_arrives_in_python(explorer: GeometryExplorer) -> None:
    g = ConvGeometry(C=1, H=5, W=5, O=1, KH=2, KW=2, dilation=2)
    say(explorer, geometry=g.as_dict(), transposed=True, view="source", look="x[4,4]")
    assert (explorer.geometry, explorer.transposed, explorer.view) == (g, True, "source")
    assert explorer.look == "x[4,4]"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"geometry": {"KH": 9}}, "kernel 9×3 spans 9×3"),
        ({"geometry": {"H": 100}}, "the explorer draws up to 400"),
        ({"look": "y[2,0]"}, "look is"),
        ({"view": "pretty"}, "view"),
    ],
)
def test_a_bad_message_changes_nothing_and_is_answered(
    explorer: GeometryExplorer, state: dict[str, Any], words: str
) -> None:
    if "geometry" in state:
        state = {"geometry": {**explorer.geometry.as_dict(), **state["geometry"]}}
    before = explorer.get_state()
    say(explorer, **state)
    assert words in explorer.complaint
    assert {**explorer.get_state(), "complaint": ""} == before


def test_a_new_geometry_lets_go_of_what_is_no_longer_there(explorer: GeometryExplorer) -> None:
    explorer.look = "x[5,6]"
    explorer.geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    assert explorer.look == ""
    explorer.look = "y[2, 2]"
    assert explorer.look == "y[2,2]"


def test_traits_are_the_ones_the_browser_knows() -> None:
    source = (STATIC.parent / "js" / "geometry_explorer.js").read_text("utf-8")
    read = set(re.findall(r'model\.get\("(\w+)"\)', source))
    assert {"geometry", "look", "presets", "limits", "transposed", "view"} <= read
    assert read <= set(GeometryExplorer.class_traits(sync=True))
    assert 0 < (STATIC / "geometry_explorer.js").stat().st_size <= 40_000


# ---- without JavaScript ----------------------------------------------------------------------


def test_the_fallback_holds_the_formulas_and_the_counts() -> None:
    g = ConvGeometry(C=1, H=6, W=7, O=1, KH=3, KW=3, stride=2, padding=((1, 0), (0, 0)))
    explorer = GeometryExplorer(g)
    outline = Outline(explorer.fallback)
    text = outline.text["p"]
    assert "OH = ⌊(padded − span) / stride⌋ + 1 = ⌊(7 − 3) / 2⌋ + 1 = 3" in text
    drawn = re.findall(r">(\d+)</tspan>", explorer.fallback)
    np.testing.assert_array_equal(np.reshape([*map(int, drawn)], (7, 7)), explorer.reads)
    assert sum(attrs.get("class") == "hatch" for _, attrs in outline.seen) == 1
    assert " id=" not in explorer.fallback


def test_the_fallback_outlines_what_is_left_over() -> None:
    explorer = GeometryExplorer(example("C"))
    outline = Outline(explorer.fallback)
    assert sum(attrs.get("class") == "lit" for _, attrs in outline.seen) == 7
    assert "Outlined: left over." in outline.text["figcaption"]
    explorer.geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    assert "left over" not in explorer.fallback
    explorer.transposed = True
    assert "output_padding" in explorer.fallback
