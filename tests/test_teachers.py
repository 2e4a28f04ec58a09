"""The teachers' pages: sessions add up, what they name is there, the configurations can be read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from convgrad import exercises
from convgrad.worksheet import TOPICS

ROOT = Path(__file__).resolve().parents[1]
PAGES = {path.stem: path.read_text("utf-8") for path in (ROOT / "book" / "teachers").glob("*.md")}
CONFIGS = sorted((ROOT / "book" / "teachers" / "config").glob("*.py"))
SESSIONS = re.findall(r"^## ([IV]+): .*?\n(.*?)(?=^## )", PAGES["course"], re.M | re.S)
KEYS = {each.key: each.chapter for each in exercises.all_exercises()}
NAMED = re.compile(r"`([a-z]+(?:-[a-z]+)+)`")


def test_there_are_six_sessions_of_ninety_minutes():
    assert [name for name, _ in SESSIONS] == ["I", "II", "III", "IV", "V", "VI"]
    for name, text in SESSIONS:
        spans = re.findall(r"^\| (\d+)–(\d+) \|", text, re.M)
        starts, ends = ([int(each) for each in side] for side in zip(*spans, strict=True))
        assert starts == [0, *ends[:-1]] and ends[-1] == 90, name
        assert len(re.findall(r"^- ", text, re.M)) == 3, "three goals"
        assert "?projector#cg1" in text, "a picture in a ready state"
        assert re.search(r"Homework: \*.+\* \(`part\d`\)", text)


@pytest.mark.parametrize("part", range(6))
def test_a_session_asks_what_its_part_asks(part):
    """The questions are there, and stand in a chapter of this part."""
    _, text = SESSIONS[part]
    chapters = {path.stem for path in (ROOT / "book" / f"part{part + 1}").glob("*.md")}
    named = NAMED.findall(text)
    assert len(named) >= 4
    for key in named:
        assert KEYS[key] in chapters, key
    for page in re.findall(r"\{doc\}`\.\./(part\d)/\w+`", text):
        assert page == f"part{part + 1}"


def test_homework_is_an_assignment_of_that_name():
    homework = re.findall(r"Homework: \*(.+?)\* \(`(part\d)`\)", PAGES["course"])
    assert len(homework) == 6
    for title, name in homework:
        source = (ROOT / "book" / "assignments" / f"{name}.md").read_text("utf-8")
        assert re.search(rf"^# Part [IV]+: {re.escape(title)}$", source, re.M)


def test_the_points_add_up():
    texts = [path.read_text("utf-8") for path in (ROOT / "book" / "assignments").glob("*.md")]
    total = sum(int(re.search(r"there\s+are\s+(\d+)\s+points", text)[1]) for text in texts)
    assert f"have {total} points together" in PAGES["course"]


def test_every_question_and_topic_that_a_page_names_is_there():
    for name, text in PAGES.items():
        for key in re.findall(r"exercises\.(?:get|all_exercises)\(\"([\w-]+)\"\)", text):
            assert key in KEYS or key in KEYS.values(), f"{name}: {key}"
        for topic in re.findall(r"--topic ([\w-]+)", text):
            assert topic in TOPICS, f"{name}: {topic}"


def test_every_word_of_the_makefile_that_a_page_names_is_one():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for text in PAGES.values():
        for word in re.findall(r"`make ([a-z-]+)`|^    make ([a-z-]+)$", text, re.M):
            assert re.search(rf"^{''.join(word)}:", makefile, re.M), word


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_a_configuration_can_be_read(config):
    """Run as its program would, with an empty configuration to write into."""
    traitlets = pytest.importorskip("traitlets.config")
    c = traitlets.Config()
    text = config.read_text("utf-8")
    exec(compile(text, config.name, "exec"), {"get_config": lambda: c, "__name__": "config"})
    assert len(c) >= 2
    assert f"config/{config.name}" in PAGES["classroom"]
    assert ast.get_docstring(ast.parse(text))


def test_nbgrader_knows_the_names_of_its_configuration():
    pytest.importorskip("nbgrader")
    from nbgrader import coursedir
    from nbgrader.exchange import default

    traitlets = pytest.importorskip("traitlets.config")
    c = traitlets.Config()
    text = (ROOT / "book" / "teachers" / "config" / "nbgrader_config.py").read_text("utf-8")
    exec(text.replace('== "teacher"', '!= ""'), {"get_config": lambda: c})
    for name, values in c.items():
        owner = getattr(default, name, None) or getattr(coursedir, name)
        for trait in values:
            assert trait in owner.class_trait_names(config=True), f"{name}.{trait}"


def test_the_page_shows_each_mistake_of_the_package():
    assert "MUTANTS.values()" in PAGES["stumbles"]
    for name in re.findall(r"`(flipped|shifted)`", PAGES["stumbles"]):
        from convgrad.checks import CAUSES

        assert name in CAUSES
