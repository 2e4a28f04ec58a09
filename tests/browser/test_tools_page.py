"""What all widgets can, on the book's page: links to a state, undo, PyTorch code."""

from __future__ import annotations

import contextlib
import io
import re
from urllib.parse import urlsplit

import numpy as np
import pytest
from contents import page_with_two, pages_showing
from playwright.sync_api import expect
from test_player_page import Player

from convgrad import example
from convgrad.widgets import ContributionPlayer

pytestmark = pytest.mark.browser

FIRST = f"{pages_showing('ContributionPlayer')[0]}.html"


@pytest.fixture
def tab(visit):
    tab = visit()
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return tab


@pytest.fixture
def player(tab) -> Player:
    """Example B, filling grad_weight tap by tap."""
    player = Player(tab.goto(FIRST))
    expect(player.button("copy link")).to_be_visible()
    return player


def copied(player: Player, button: str) -> str:
    player.button(button).click()
    expect(player.root.locator(".cg-tools-said")).to_contain_text("copied")
    return player.page.evaluate("() => navigator.clipboard.readText()")


def fragment(page) -> str:
    return urlsplit(page.url).fragment


# ---- links -----------------------------------------------------------------------------------


def test_a_link_brings_back_geometry_numbers_target_order_and_step(tab, player, visit):
    player.turn("stride", 2)
    player.turn("padding", 1)
    player.turn("width W", 6)
    player.edit("x", 1, 2, "-4.5")
    player.edit("g", 0, 1, "7")
    player.choose("grad_input")
    player.choose("position")
    player.root.get_by_role("slider", name="step").fill("23")
    shown = {name: player.numbers(name).tolist() for name in ("w", "g", "grad_input")}
    spelled = player.root.locator(".cg-spelled").inner_text()
    link = copied(player, "copy link")
    assert len(fragment(player.page)) < 160, "short enough for a chat"

    other = Player(visit().goto(link, settle=False))
    expect(other.button("copy link")).to_be_visible()
    assert other.step == (23, player.step[1])
    assert other.root.locator(".cg-spelled").inner_text() == spelled
    assert {name: other.numbers(name).tolist() for name in shown} == shown
    assert other.numbers("x")[1, 2] == -4.5
    expect(other.root.get_by_role("radio", name="position")).to_be_checked()
    expect(other.knob("padding")).to_have_value("1")
    # and the reader is taken there
    assert other.root.bounding_box()["y"] < 300
    tab.assert_clean()


def test_the_address_follows_and_a_reload_keeps_the_state(tab, player):
    assert fragment(player.page) == ""
    player.button("one step on").click()
    player.page.wait_for_url(re.compile(r"#cg1&w1\.of=[0-9a-f]{4}&w1\.step=1$"))
    player.edit("x", 0, 0, "9")
    player.page.wait_for_url(re.compile(r"w1\.x=0\.0\.0\.0:9"))
    player.page.reload()
    tab.settle()
    assert player.numbers("x")[0, 0] == 9
    assert player.step[0] == 1
    # back at what the page shows by itself, nothing is left in the address
    player.edit("x", 0, 0, "1")
    player.button("to the start").click()
    player.page.wait_for_function("() => location.hash === ''")
    tab.assert_clean()


def test_a_reader_of_a_section_keeps_its_name_until_something_changes(tab):
    page = tab.goto(FIRST + "#for-whom")
    expect(Player(page).button("copy link")).to_be_visible()
    page.wait_for_timeout(600)
    assert fragment(page) == "for-whom"


def test_each_widget_of_a_page_has_its_own_part(visit):
    view = visit().goto(f"{page_with_two('ContributionPlayer')}.html")
    players = view.locator(".cg-player")
    for k, step in enumerate((3, 5)):
        players.nth(k).get_by_role("slider", name="step").fill(str(step))
    view.wait_for_function("() => (location.hash.match(/step=/g) ?? []).length === 2")
    again = visit().goto(view.url, settle=False)
    for k, step in enumerate((3, 5)):
        expect(again.locator(".cg-player").nth(k).locator("output")).to_contain_text(f"{step} / ")


def test_a_link_pasted_into_the_same_tab_is_followed(tab, player):
    player.button("one step on").click()
    link = copied(player, "copy link")
    player.button("to the end").click()
    player.page.wait_for_url(re.compile("step=81"))
    player.page.evaluate("(link) => { location.href = link; }", link)
    expect(player.root.locator("output")).to_have_text("1 / 81")
    tab.assert_clean()


def of(page) -> str:
    return re.search(r"w1\.of=(\w+)", page.url)[1]


BROKEN = {
    "another state of the page": ("#cg1&w1.of=zzzz&w1.step=4", "another state of this page"),
    "another version": ("#cg9&w1.step=4", "another version of the book"),
    "a number that is none": ("#cg1&w1.of={of}&w1.step=four", "step is “four”"),
    "no such order": ("#cg1&w1.of={of}&w1.order=alphabet", "order is “alphabet”"),
    "an impossible geometry": ("#cg1&w1.of={of}&w1.dilation=3", "kernel 3×3 with dilation 3 spans"),
    "sizes that disagree": ("#cg1&w1.of={of}&w1.H=7", "x has another size in it"),
    "more than can be drawn": (
        "#cg1&w1.of={of}&w1.H=90&w1.W=90&w1.x=1x1x90x90;&w1.grad_output=1x1x88x88;",
        "draws up to",
    ),
}


@pytest.mark.parametrize(("link", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_link_is_answered_in_a_sentence_and_breaks_nothing(tab, player, link, words):
    player.button("one step on").click()
    player.page.wait_for_url(re.compile("#cg1"))
    digest = of(player.page)
    player.page.goto("about:blank")
    tab.complaints.clear()
    broken = Player(tab.goto(FIRST + link.format(of=digest)))
    expect(tab.page.locator(".cg-widget > .cg-note").first).to_contain_text(words)
    assert broken.step == (0, 81)
    broken.button("one step on").click()
    assert broken.step == (1, 81)
    tab.assert_clean()


def test_where_there_is_no_clipboard_the_text_can_be_copied_by_hand(player):
    player.page.evaluate(
        "() => Object.defineProperty(navigator, 'clipboard', {value: null, configurable: true})"
    )
    player.button("copy as PyTorch code").click()
    field = player.root.get_by_role("textbox", name="PyTorch code")
    expect(field).to_be_focused()
    text, selected = field.evaluate(
        "(f) => [f.value, f.value.slice(f.selectionStart, f.selectionEnd)]"
    )
    assert text == selected
    assert text.startswith("import torch")


# ---- undo ------------------------------------------------------------------------------------


def test_edits_and_knobs_are_taken_back_and_done_again(tab, player):
    before = player.numbers("x")
    player.edit("x", 0, 0, "9")
    player.turn("stride", 2)
    player.edit("g", 1, 1, "8")
    player.root.locator(".cg-stage").focus()
    player.page.keyboard.press("Control+z")
    assert player.numbers("g")[1, 1] == 1
    player.page.keyboard.press("Control+z")
    expect(player.knob("stride")).to_have_value("1")
    assert player.step[1] == 81
    player.button("undo").click()
    assert np.array_equal(player.numbers("x"), before)
    expect(player.button("undo")).to_have_attribute("aria-disabled", "true")
    player.button("undo").press("Enter")
    expect(player.root.locator(".cg-tools-said")).to_have_text("nothing to undo")
    player.button("redo").click()
    assert player.numbers("x")[0, 0] == 9
    player.root.locator(".cg-stage").focus()
    player.page.keyboard.press("Control+Shift+z")
    player.page.keyboard.press("Control+y")
    expect(player.knob("stride")).to_have_value("2")
    assert player.numbers("g")[1, 1] == 8
    tab.assert_clean()


def test_undo_inside_a_field_is_the_fields_own(player):
    player.edit("x", 0, 0, "9")
    player.cell("x", 1, 1).click()
    player.page.keyboard.type("55")
    player.page.keyboard.press("Control+z")
    player.page.keyboard.press("Escape")
    assert player.numbers("x")[0, 0] == 9


def test_another_example_is_taken_back_too(player):
    player.example("D")
    player.button("undo").click()
    assert np.array_equal(player.numbers("x"), example("B").arrays().x[0, 0])


def test_stepping_is_no_edit(player):
    player.button("to the end").click()
    expect(player.button("undo")).to_have_attribute("aria-disabled", "true")


# ---- PyTorch code ----------------------------------------------------------------------------


def test_the_code_that_is_copied_computes_what_is_shown(player):
    torch = pytest.importorskip("torch")
    mirror = ContributionPlayer(example("D"))
    player.example("D")
    for target, name in (("weight", "grad_weight"), ("input", "grad_input"), ("bias", "grad_bias")):
        player.choose(name)
        program = copied(player, "copy as PyTorch code")
        names: dict = {}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, names)
        computed = names[{"weight": "weight", "input": "x", "bias": "bias"}[target]].grad
        expected = getattr(mirror.gradients, name)
        assert np.array_equal(computed.numpy(), expected)
        assert printed.getvalue() == f"{torch.from_numpy(expected)}\n"


def test_the_tools_fit_a_phone(visit):
    player = Player(visit(width=320, height=700, touch=True).goto(FIRST))
    expect(player.button("copy link")).to_be_visible()
    for name in ("undo", "redo", "copy link", "copy as PyTorch code"):
        box = player.button(name).bounding_box()
        assert box["height"] >= 43.5, name
        assert box["x"] >= 0 and box["x"] + box["width"] <= 320, name
    rows = {round(player.button(n).bounding_box()["y"]) for n in ("undo", "copy as PyTorch code")}
    assert len(rows) == 1
