"""A widget as one file: what is in it, where it may be written, and that nothing can break out."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets' libraries are not installed")

import convgrad.widgets
from convgrad import example
from convgrad.widgets import ContributionPlayer, Predict, save_html
from convgrad.widgets.base import Explorable
from convgrad.widgets.page import tools_text


class Reader(HTMLParser):
    """The elements of a page as a browser would find them: tag, attributes, text of the scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: dict[str, str] = {}
        self.last = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.elements.append((tag, dict(attrs)))
        self.last = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.last = ""

    def handle_data(self, data: str) -> None:
        if self.last == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        self.text[self.last] = self.text.get(self.last, "") + data


def read(path: Path) -> Reader:
    return Reader(path.read_text("utf-8"))


def payload(page: Reader) -> dict[str, Any]:
    (text,) = [
        text
        for attributes, text in page.scripts
        if attributes.get("type") == "application/json" and "data-module" not in attributes
    ]
    return json.loads(text)


def modules(page: Reader) -> dict[str, str]:
    return {
        str(attributes["data-module"]): json.loads(text)
        for attributes, text in page.scripts
        if "data-module" in attributes
    }


@pytest.fixture
def player() -> ContributionPlayer:
    return ContributionPlayer(example("D"), target="input", order="kernel", step=18)


def test_all_that_a_page_needs_is_in_it(player: ContributionPlayer, tmp_path: Path) -> None:
    path = save_html(player, tmp_path / "player.html", title="Kernel by kernel", lang="en-GB")
    page = read(path)
    state = payload(page)["state"]
    assert (state["step"], state["target"], state["order"]) == (18, "input", "kernel")
    assert state["geometry"] == player.geometry.as_dict()
    assert state["x"]["data"] == player.x.ravel().tolist()
    texts = modules(page)
    assert texts[payload(page)["module"]] == str(player._esm)
    assert tools_text() in texts.values()
    assert not {"_esm", "_css", "_tools", "fallback"} & set(state), "nothing is there twice"
    (root,) = [attributes for tag, attributes in page.elements if tag == "html"]
    assert root["lang"] == "en-GB"
    assert page.text["title"] == "Kernel by kernel"
    assert page.text["h1"] == "Kernel by kernel"
    # and it asks nobody for anything
    for tag, attributes in page.elements:
        assert not {"src", "srcset", "action"} & set(attributes), tag
        assert attributes.get("href", "data:,") == "data:,", tag
    assert "@import" not in path.read_text("utf-8")


def test_without_a_title_it_says_what_it_is(player: ContributionPlayer, tmp_path: Path) -> None:
    page = read(save_html(player, tmp_path / "p.html"))
    assert page.text["title"] == "Contribution player"


def test_the_fallback_is_that_of_now_even_after_an_edit_in_the_browser(tmp_path: Path) -> None:
    player = ContributionPlayer(example("B"))
    before = player.fallback
    x = player.x.copy()
    x[0, 0, 0, 0] = 876543
    message = {"shape": list(x.shape), "data": x.ravel().tolist()}
    data = {"method": "update", "state": {"x": message, "step": 5}, "buffer_paths": []}
    player._handle_msg({"content": {"data": data}, "buffers": []})
    assert player.fallback == before
    page = save_html(player, tmp_path / "p.html").read_text("utf-8")
    fallback, _, _ = page.partition("<script")
    assert "876543" in fallback
    assert player.fallback in page


def test_a_complaint_stays_behind(player: ContributionPlayer, tmp_path: Path) -> None:
    player.complaint = "somebody typed nonsense"
    page = read(save_html(player, tmp_path / "p.html"))
    assert payload(page)["state"]["complaint"] == ""
    assert player.complaint == "somebody typed nonsense"


def test_a_question_can_be_saved_too(tmp_path: Path) -> None:
    question = Predict("What is $2 + 3$?", 5, hints=["Count."])
    page = read(save_html(question, tmp_path / "q.html"))
    assert payload(page)["state"]["solution"] == 5
    assert list(modules(page)) == [payload(page)["module"]], "it has no use for the tools"


ALL = [
    name for name in convgrad.widgets.__all__ if isinstance(getattr(convgrad.widgets, name), type)
]
WIDGETS = [name for name in ALL if name != "Predict"]


@pytest.mark.parametrize("name", ALL)
def test_every_widget_says_that_it_can_be_saved(name: str) -> None:
    assert "``save_html(" in (getattr(convgrad.widgets, name).__doc__ or "")


@pytest.mark.parametrize("name", WIDGETS)
def test_every_widget_can_be_saved(name: str, tmp_path: Path) -> None:
    widget: Explorable = getattr(convgrad.widgets, name)()
    page = read(save_html(widget, tmp_path / "w.html"))
    state = {key for key in widget.get_state() if not key.startswith("_")}
    assert set(payload(page)["state"]) == state - {"fallback", "layout", "tabbable", "tooltip"}
    assert payload(page)["module"] in modules(page)


HOSTILE = [
    '</script><img src="x">',
    "<!-- <script>",
    "</style><b>",
    '"><svg onload=x>',
    "]]>",
    "{0}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_out_of_its_place(text: str, tmp_path: Path) -> None:
    question = Predict(f"Is `{text}` safe?", 1, hints=[text], explanation=text, name="")
    question.labels = [text]
    page = read(save_html(question, tmp_path / "q.html", title=text, lang=text))
    plain = read(save_html(Predict("Is it safe?", 1), tmp_path / "p.html", title="t"))
    assert payload(page)["state"]["labels"] == [text]
    assert page.text["title"] == page.text["h1"] == text
    own = {"code"}  # the question sets the text as code
    assert {tag for tag, _ in page.elements} - own == {tag for tag, _ in plain.elements}
    assert len(page.scripts) == len(plain.scripts)


def test_a_folder_is_no_file(player: ContributionPlayer, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=r"is a folder: name the file in it.*_player\.html"):
        save_html(player, tmp_path)


def test_a_missing_folder_is_not_made_up(player: ContributionPlayer, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*mkdir\(parents=True\)"):
        save_html(player, tmp_path / "slides" / "p.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("other", [3, None, "player.html", ContributionPlayer, np.zeros(3)])
def test_what_is_no_widget_is_refused(other: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"save_html writes a widget, and got .*ContributionPlayer"):
        save_html(other, tmp_path / "p.html")


def test_its_own_file_is_written_over_and_nobody_elses(
    player: ContributionPlayer, tmp_path: Path
) -> None:
    path = save_html(player, str(tmp_path / "p.html"))
    player.step = 3
    save_html(player, path)  # running a cell again
    assert payload(read(path))["state"]["step"] == 3
    path.write_text("<h1>My talk</h1>", "utf-8")
    with pytest.raises(FileExistsError, match=r"was not written by save_html.*overwrite=True"):
        save_html(player, path)
    assert path.read_text("utf-8") == "<h1>My talk</h1>"
    save_html(player, path, overwrite=True)
    assert payload(read(path))["state"]["step"] == 3


def test_two_savings_of_one_state_are_the_same_file(
    player: ContributionPlayer, tmp_path: Path
) -> None:
    one, two = (save_html(player, tmp_path / name) for name in ("1.html", "2.html"))
    assert one.read_bytes() == two.read_bytes()
