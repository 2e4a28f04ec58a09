"""BreakTheGradient in Python: its traits, its answers, a browser's messages, its fallback."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say, tensor

from convgrad import ConvGeometry, ShapeError, example, loops
from convgrad.geometry import GeometryError
from convgrad.mutants import MUTANTS
from convgrad.widgets import BreakTheGradient
from convgrad.widgets.base import STATIC, Refused
from convgrad.widgets.mistakes import MISTAKES, described
from convgrad.widgets.noticing import CHECKS


@pytest.fixture
def broken() -> BreakTheGradient:
    return BreakTheGradient(example("B"))


def test_the_picked_mistake_and_the_right_gradient(broken: BreakTheGradient) -> None:
    x, weight, _, grad_output = example("B").arrays()
    g = example("B").geometry
    for name, mutant in ((name, MUTANTS[name]) for name in MISTAKES):
        broken.mistake = name
        operands = {"weight": (x,), "input": (weight,), "bias": ()}[mutant.target]
        np.testing.assert_array_equal(broken.wrong, mutant(grad_output, *operands, g))
        assert broken.target == mutant.target
    broken.mistake = "wgrad_reversed"
    np.testing.assert_array_equal(broken.right, loops.grad_weight(grad_output, x, g))
    broken.mistake = "dgrad_no_flip"
    np.testing.assert_array_equal(broken.right, loops.grad_input(grad_output, weight, g))


def test_ones_let_the_turned_g_pass_and_random_numbers_do_not(broken: BreakTheGradient) -> None:
    noticed = {each.check: each.noticed for each in broken.findings}
    assert list(noticed) == list(CHECKS)
    assert noticed == {
        "ones": False,
        "random": True,
        "shape": False,
        "adjoint": True,
        "differences": True,
    }


def test_what_slips_past_ones_is_known_to_the_package(broken: BreakTheGradient) -> None:
    """``survives_ones`` of the mutants, seen through the widget's own check."""
    broken.load(example("D"))
    for name in MISTAKES:
        broken.mistake = name
        ones = broken.findings[0]
        assert ones.check == "ones"
        if MUTANTS[name].survives_ones:
            assert not ones.noticed, name


def test_every_mistake_is_described_in_full() -> None:
    titles = set()
    for name in MISTAKES:
        words = described(name)
        assert words["sentence"].endswith(".") and words["tell"].endswith("."), name
        assert len(words["title"]) <= 44, "it stands on a button"
        assert not words["hides"].endswith(".")
        titles.add((words["target"], words["title"]))
    assert len(titles) == len(MISTAKES), "two of one gradient have the same title"


def test_an_unknown_mistake_is_refused_with_the_known_ones(broken: BreakTheGradient) -> None:
    with pytest.raises(Refused, match=r"mistake is 'typo': known here are wgrad_g_turned, "):
        BreakTheGradient(mistake="typo")
    with pytest.raises(Refused, match="known here are"):
        broken.mistake = "reshape_minus_one"  # of the package, but nothing for a picture
    assert broken.mistake == "wgrad_g_turned"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"stride": 0}, GeometryError, "stride is 0"),
        ({"grad_output": np.zeros((1, 1, 2, 2))}, ShapeError, "needed is .1, 1, 3, 3."),
    ],
)
def test_bad_input_gets_the_errors_of_the_package(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        BreakTheGradient(np.zeros((1, 1, 5, 5)), np.zeros((1, 1, 3, 3)), **arguments)


# ---- the wire --------------------------------------------------------------------------------


def test_state_is_plain_json_and_knows_all_words(broken: BreakTheGradient) -> None:
    state = broken.get_state()
    assert [each["name"] for each in state["mistakes"]] == list(MISTAKES)
    assert [each["name"] for each in state["checks"]] == list(CHECKS)
    assert state["x"] == tensor(broken.x)


def test_a_choice_and_an_edit_in_the_browser_arrive(broken: BreakTheGradient) -> None:
    x = broken.x.copy()
    x[0, 0, 2, 2] = 9
    say(broken, mistake="wgrad_reversed", x=tensor(x))
    assert broken.wrong[0, 0, 0, 0] == broken.right[0, 0, 2, 2]
    np.testing.assert_array_equal(broken.x, x)


def test_a_turned_knob_alone_refits_the_arrays(broken: BreakTheGradient) -> None:
    g = ConvGeometry(C=2, H=5, W=5, O=2, KH=3, KW=3, groups=2)
    say(broken, geometry=g.as_dict())
    assert broken.right.shape == g.weight_shape


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"mistake": "none of ours"}, "known here are"),
        ({"mode": "argue"}, "mode"),
        ({"round": -1}, "round"),
        ({"x": tensor(np.zeros((1, 1, 4, 4)))}, "x has shape"),
    ],
)
def test_a_bad_message_changes_nothing_and_is_answered(
    broken: BreakTheGradient, state: dict[str, Any], words: str
) -> None:
    before = broken.get_state()
    say(broken, **state)
    assert words in broken.complaint
    assert {**broken.get_state(), "complaint": ""} == before


def test_a_duel_played_in_the_browser_is_known_in_python() -> None:
    duel = BreakTheGradient(example("D"), mode="duel", seed=7)
    answer = duel.answer
    assert answer in MISTAKES
    say(duel, guesses=["wgrad_reversed", answer], tries=2, found=1)
    assert (duel.guesses[-1], duel.tries, duel.found) == (answer, 2, 1)
    say(duel, round=1, guesses=[])
    assert duel.answer != answer
    assert BreakTheGradient(example("D"), mode="duel", seed=7).answer == answer
    others = {BreakTheGradient(example("D"), mode="duel", seed=k).answer for k in range(12)}
    assert len(others) > 4


def test_a_duel_needs_two_mistakes_that_can_be_told_apart() -> None:
    one = BreakTheGradient(np.ones((1, 1, 1, 1)), np.ones((1, 1, 1, 1)), mode="duel")
    assert one.answer is None
    assert "<figure" in one.fallback


def test_traits_are_the_ones_the_browser_knows() -> None:
    source = (STATIC.parent / "js" / "break_the_gradient.js").read_text("utf-8")
    read = set(re.findall(r'model\.get\("(\w+)"\)', source))
    assert {"geometry", "mistakes", "seed", "round", "guesses", "checks"} <= read
    assert read <= set(BreakTheGradient.class_traits(sync=True))


# ---- without JavaScript ----------------------------------------------------------------------


@pytest.mark.parametrize("letter", "ABCD")
@pytest.mark.parametrize("mistake", ["wgrad_g_turned", "col2im_assign", "bias_axes_012"])
def test_the_fallback_shows_both_and_works_the_checks_out(letter: str, mistake: str) -> None:
    widget = BreakTheGradient(example(letter), mistake=mistake)
    outline = Outline(widget.fallback)
    drawn = outline.text["svg"]
    for array in (widget.right, widget.wrong):
        for value in np.unique(array):
            assert f"{value:g}".replace("-", "−") in drawn
    label = next(attrs for tag, attrs in outline.seen if tag == "svg")["aria-label"]
    assert MISTAKES[mistake][0] in label
    cells = outline.text["tbody"]
    for finding in widget.findings:
        assert finding.evidence in cells
    lit = sum(1 for tag, attrs in outline.seen if tag == "rect" and attrs.get("class") == "lit")
    if widget.right.shape == widget.wrong.shape:
        assert lit == 2 * np.count_nonzero(widget.right != widget.wrong)


def test_the_fallback_of_a_duel_is_a_riddle() -> None:
    duel = BreakTheGradient(example("D"), mode="duel", seed=3)
    outline = Outline(duel.fallback)
    choices = outline.text["li"]
    title, _ = MISTAKES[duel.answer]
    assert title in choices
    told = duel.fallback.replace("<li>", "").replace(f"{title}</li>", "")
    assert title not in told, "among the choices and nowhere else"
    assert MUTANTS[duel.answer].sentence not in duel.fallback


def test_the_fallback_follows_python_but_not_the_browser(broken: BreakTheGradient) -> None:
    first = broken.fallback
    broken.mistake = "wgrad_reversed"
    second = broken.fallback
    assert second != first
    say(broken, mistake="wgrad_transposed")
    assert broken.fallback == second, "it is for where no script runs: no need to send it back"
    assert " id=" not in second, "two of them can share a page"
