"""What every chapter promises: its proofs hold, its starters fail, its solutions pass.

What a single chapter says, its worked numbers, pictures and alt texts, stands in
``test_chapter_<name>.py``; there the numbers are computed with the loops, which are the definition.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from collections import Counter

import pytest

pytest.importorskip("matplotlib")
from pages import BOOK, GALLERIES, PAGES, Checked, cells, checked, imports

from convgrad import exercises

FILE = "tests/cases/conv_cases.json"
CHECKED = [each for page in PAGES for each in checked(page)]
every_checked_cell = pytest.mark.parametrize(
    "cell",
    CHECKED,
    ids=[f"{cell.key}-{'solution' if cell.solved else 'starter'}" for cell in CHECKED],
)
every_page = pytest.mark.parametrize("page", PAGES)


@pytest.mark.slow  # runs every cell
@every_page
def test_what_a_page_proves_by_running_holds(page):
    """A proof prints True. Only a cell tagged ``shows-failure`` may print False, and it must."""
    pytest.importorskip("torch")
    pytest.importorskip("anywidget")
    if "import kernels" in PAGES[page].read_text("utf-8"):
        pytest.importorskip("triton", reason="Triton is made for Linux alone")
    scope, proofs = {}, 0
    for options, code in cells(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), scope)
        words = re.findall(r"\b(?:True|False)\b", printed.getvalue())
        assert ("False" in words) == ("shows-failure" in options), code
        proofs += words.count("True")
    assert proofs >= 4


@every_checked_cell
def test_starters_fail_and_solutions_pass(cell: Checked):
    module = ast.parse(cell.code)
    verdict = ast.Expression(module.body.pop().value)
    scope = imports(cell.page)
    exec(compile(module, cell.page, "exec"), scope)
    result = eval(compile(verdict, cell.page, "eval"), scope)
    assert result.passed == cell.solved, result.message


@every_checked_cell
def test_starters_and_solutions_are_those_of_the_bank(cell: Checked):
    exercise = exercises.get(cell.key)
    kept = exercise.solution if cell.solved else exercise.starter
    shown = ast.parse(cell.code).body[:-1]
    assert [ast.unparse(line) for line in shown] == [
        ast.unparse(line) for line in ast.parse(kept).body
    ]


@every_page
def test_every_starter_has_its_solution(page):
    starters = {cell.key for cell in checked(page) if not cell.solved}
    assert starters == {cell.key for cell in checked(page) if cell.solved}
    assert starters


@every_page
def test_every_exercise_on_a_page_is_one_of_its_chapter(page):
    for key in re.findall(r'exercises\.get\("([\w-]+)"\)', PAGES[page].read_text("utf-8")):
        assert exercises.get(key).chapter == page


def test_the_pages_are_those_of_the_table_of_contents():
    contents = (PAGES["weight_gradient"].parents[2] / "_toc.yml").read_text("utf-8")
    listed = re.findall(r"file: book/part\d+/(\w+)", contents)
    assert set(listed) == set(PAGES) | GALLERIES


# ---- how it goes wrong -----------------------------------------------------------------------

BOX = re.compile(r"```\{admonition\} [^\n]*\n:class: cg-wrong\n(.*?)\n```\n", re.S)
CASES = {case["id"] for case in json.loads((BOOK.parent / FILE).read_text("utf-8"))}


def named_cases(page: str) -> list[str]:
    """Every case that a page names, as often as it does."""
    return [
        name for name in re.findall(r"`([\w-]+)`", PAGES[page].read_text("utf-8")) if name in CASES
    ]


@every_page
def test_a_page_tells_at_least_two_mistakes_from_public_reports(page):
    text = PAGES[page].read_text("utf-8")
    assert sum("{cite" in box for box in BOX.findall(text)) >= 2
    named = re.findall(r"\bcases? (`[\w-]+`(?:(?:,| and) `[\w-]+`)*)", text)
    assert named and set(re.findall(r"`([\w-]+)`", " ".join(named))) <= CASES


def test_the_first_four_parts_tell_a_mistake_once():
    """Where it belongs best; another chapter says in a line where that is."""
    first = [page for page, path in PAGES.items() if path.parent.name < "part5"]
    told = Counter(name for page in first for name in named_cases(page))
    assert not {name for name, times in told.items() if times > 1}
