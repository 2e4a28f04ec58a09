"""The table of exhibits agrees with the page, the reports, the cases and the laws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PAGES
from test_cases import CASES

from convgrad.checks import LAWS
from convgrad.museum import CATCHERS, EXHIBITS, KINDS, Exhibit, exhibit, noticed_by
from convgrad.mutants import MUTANTS

BOOK = Path(__file__).resolve().parents[1] / "book"
BY_ID = {case["id"]: case for case in CASES}
OF_A_MUTANT = [each for each in EXHIBITS if each.mutant]
SECTION = re.compile(
    r"^\(museum-([\w-]+)\)=\n### ([^\n]+)\n\n"
    r"```\{exhibit\} ([\w-]+)\n```\n(.*?)(?=^\(museum-|^## )",
    re.M | re.S,
)


@pytest.fixture(scope="module")
def sections() -> dict[str, re.Match[str]]:
    """The sections of the page by the key in their label."""
    text = PAGES["museum"].read_text("utf-8")
    return {match[1]: match for match in SECTION.finditer(text)}


def by_key(some: list[Exhibit] | tuple[Exhibit, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("each", some, ids=lambda each: each.key)


# ---- the table itself ------------------------------------------------------------------------


def test_there_are_at_least_eighteen_and_no_two_alike():
    assert len(EXHIBITS) >= 18
    for of in ("key", "title", "case"):
        values = [getattr(each, of) for each in EXHIBITS]
        assert len(set(values)) == len(values), of


def test_every_kind_gradient_and_catcher_is_on_show():
    assert {each.kind for each in EXHIBITS} == set(KINDS)
    assert {target for each in EXHIBITS for target in each.targets} == {"weight", "input", "bias"}
    assert {each.caught_by for each in EXHIBITS} == set(CATCHERS)


def test_kinds_stand_together():
    kinds = [each.kind for each in EXHIBITS]
    assert [kind for k, kind in enumerate(kinds) if kind not in kinds[:k]] == list(KINDS)
    assert sorted(kinds, key=list(KINDS).index) == kinds


def test_an_unknown_key_is_refused_with_the_known_ones():
    with pytest.raises(KeyError, match="no exhibit 'cropp': there are crop, leftover"):
        exhibit("cropp")


# ---- the page --------------------------------------------------------------------------------


def test_the_page_has_a_section_for_each_in_this_order(sections):
    assert list(sections) == [each.key for each in EXHIBITS]
    text = PAGES["museum"].read_text("utf-8")
    assert text.count("```{exhibit}") == len(EXHIBITS)
    assert text.count("```{exhibits}") == 1


@by_key(EXHIBITS)
def test_a_section_has_its_title_its_plate_and_a_run(each, sections):
    section = sections[each.key]
    assert section[2] == each.title
    assert section[3] == each.key
    assert "tags: [shows-failure]" in section[4] or "tags: [lesson, shows-failure]" in section[4]
    prose = re.sub(r"```.*?```", "", section[4], flags=re.S)
    assert 15 <= len(prose.split()) <= 130, "a plate is short"


@by_key(OF_A_MUTANT)
def test_a_section_hands_its_own_mistake_to_the_law(each, sections):
    named = set(re.findall(r'MUTANTS\["(\w+)"\]', sections[each.key][4]))
    assert named == {each.mutant}
    assert "catch(" in sections[each.key][4]


@by_key(EXHIBITS)
def test_what_explains_it_is_a_page_of_the_book(each):
    assert (BOOK / f"{each.chapter}.md").is_file()


# ---- the reports -----------------------------------------------------------------------------


@by_key(EXHIBITS)
def test_its_reports_are_in_the_bibliography_and_in_its_case(each):
    bibliography = (BOOK / "references.bib").read_text("utf-8")
    assert each.reports
    numbers = []
    for key in each.reports:
        entry = re.search(rf"@misc\{{{key},(.*?)\n\}}", bibliography, re.S)
        assert entry, key
        numbers.append(re.search(r"url\s+= \{https?://\S*?(\d+)\}", entry[1])[1])
    sources = " ".join(BY_ID[each.case]["source"])
    assert any(re.search(rf"(#|/){number}\b", sources) for number in numbers), (numbers, sources)


# ---- the cases -------------------------------------------------------------------------------


@by_key(EXHIBITS)
def test_its_case_is_about_the_same_mistake(each):
    case = BY_ID[each.case]
    if each.mutant:
        assert case["mistake"] == each.mutant
    else:
        assert "check" in case


@by_key(EXHIBITS)
def test_its_gradients_are_those_of_the_mutant(each):
    if each.mutant:
        assert each.targets == (MUTANTS[each.mutant].target,)
        assert not each.catcher, "the mutant says what catches it"


# ---- the laws --------------------------------------------------------------------------------


@by_key(OF_A_MUTANT)
def test_what_the_plate_says_catches_it_does(each):
    assert each.caught_by in LAWS
    assert noticed_by(each.mutant)[each.caught_by]


@by_key(OF_A_MUTANT)
def test_what_is_silent_keeps_its_shape_where_its_case_shows_it(each):
    """Kinds are no opinion: only what is of another shape than the operand is called so."""
    from test_cases import Case

    given = Case(BY_ID[each.case])
    operands = {
        "weight": (given.grad_output, given.x.copy()),
        "input": (given.grad_output, given.weight),
        "bias": (given.grad_output,),
    }[each.targets[0]]
    needed = {
        "weight": given.geometry.weight_shape,
        "input": given.geometry.x_shape,
        "bias": given.geometry.bias_shape,
    }[each.targets[0]]
    try:
        shape = MUTANTS[each.mutant](*operands, given.geometry).shape
    except (ValueError, IndexError):
        assert each.key == "view", "it reads on beyond its memory"
        return
    assert (shape != needed) == (each.kind == "shape")


def test_a_right_gradient_is_noticed_by_no_law(monkeypatch):
    from dataclasses import replace

    from convgrad import windows

    right = replace(MUTANTS["wgrad_g_turned"], function=windows.grad_weight)
    monkeypatch.setitem(MUTANTS, "wgrad_g_turned", right)
    assert not any(noticed_by("wgrad_g_turned").values())


def test_the_same_seed_tells_the_same():
    assert noticed_by("group_interleaved") == noticed_by("group_interleaved")
