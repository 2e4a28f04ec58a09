"""The six assignments: solved they get all points, untouched none, wrong answers lose some."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("jupytext", reason="the sources of the assignments are MyST notebooks")
from assignments import (
    SOURCES,
    STUBS,
    by_person,
    depending,
    graded,
    handed_in,
    notebook,
    of,
    points,
    released,
    solution,
)

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
REGIONS = re.compile(
    r"### BEGIN (SOLUTION|HIDDEN TESTS|MARK SCHEME)\n(.*?)### END \1$", re.S | re.M
)
every_source = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)


class Mistake(NamedTuple):
    assignment: str
    name: str
    answers: dict[str, Any]
    loses: set[str]


def mistakes() -> list[Mistake]:
    kept = yaml.safe_load((ROOT / "tests" / "assignment_mistakes.yml").read_text("utf-8"))
    return [
        Mistake(part, each.pop("name"), each, set(each.pop("loses").split()))
        for part, list_of in kept.items()
        for each in list_of
    ]


MISTAKES = mistakes()


@pytest.fixture(autouse=True)
def _torch_for_part_five(request):
    chosen = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    name = getattr(chosen.get("mistake"), "assignment", "") or chosen.get("source", Path()).stem
    if name == "part5" and request.function.__name__ not in READING:
        pytest.importorskip("torch")


READING = {"test_a_source_is_what_grading_expects", "test_a_test_cell_stands_alone"}


def code_cells(source: Path) -> list[Any]:
    return [cell for cell in notebook(source).cells if cell.cell_type == "code"]


# ---- how they are written --------------------------------------------------------------------


def test_there_is_one_for_each_part_of_the_book():
    parts = sorted(path.name for path in (ROOT / "book").glob("part*"))
    assert [source.stem for source in SOURCES] == parts


@every_source
def test_a_source_is_what_grading_expects(source):
    nb, text = notebook(source), source.read_text("utf-8")
    assert 7 <= len(points(nb)) <= 9 and len(by_person(nb)) == 1
    total = sum(points(nb).values()) + sum(by_person(nb).values())
    assert f"there are {total} points" in " ".join(text.split())
    assert re.search(r"Allow \d\d minutes", " ".join(text.split()))
    names = [of(cell)["grade_id"] for cell in nb.cells if of(cell)]
    assert len(names) == len(set(names))
    for cell in nb.cells:
        meta = of(cell)
        if meta.get("grade"):
            assert meta["locked"] and not meta["solution"]
            assert re.match(rf"# {meta['points']} points?\b", cell.source), meta["grade_id"]
        if meta.get("task"):
            assert f"({meta['points']} points, read by a person)" in cell.source
            assert "### BEGIN MARK SCHEME" in cell.source
        if meta.get("solution"):
            assert not meta["locked"] and "### BEGIN SOLUTION" in cell.source
    regions = REGIONS.findall(text)
    assert len(regions) * 2 == len(re.findall(r"^\s*#+ *(?:BEGIN|END)\b", text, re.M | re.I))
    for _, region in regions:
        assert re.search(r"^\s*(?:# )?canary: [a-z-]+$", region, re.M), region


@every_source
def test_a_test_cell_stands_alone(source):
    """A name that an answer took away does not disarm a test, nor does a value make it partial."""
    for cell in code_cells(source):
        tree = ast.parse(cell.source)
        wide = [line for line in cell.source.splitlines() if len(line) > 88]
        assert not wide, wide
        if not of(cell).get("grade"):
            continue
        # nbgrader takes the value of a last expression for the points
        last = tree.body[-1]
        assert not isinstance(last, ast.Expr) or isinstance(last.value, ast.Call)
        brought = {
            alias.asname or alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        needed = used & {
            "by_hand",
            "exercises",
            "conv2d",
            "conv2d_backward",
            "loops",
            "ConvGeometry",
        }
        assert needed <= brought, (
            f"{of(cell)['grade_id']} trusts {needed - brought} of another cell"
        )


def own(tree: ast.AST) -> set[str]:
    """What a cell names itself."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    stored = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return names | {node.id for node in stored if isinstance(node.ctx, ast.Store)}


# ---- graded ----------------------------------------------------------------------------------


@pytest.mark.slow
@every_source
def test_the_solutions_get_all_points(source):
    got = graded(notebook(source))
    assert got.said == {}
    assert got.points == points(notebook(source))


@pytest.mark.slow
@pytest.mark.parametrize("stub", STUBS, ids=["dots", "nbgrader"])
@every_source
def test_an_untouched_notebook_gets_nothing_and_is_told_so_kindly(source, stub):
    got = graded(released(notebook(source), stub))
    assert set(got.points.values()) == {0}
    for name, said in got.said.items():
        assert "Your turn" in said, f"{name}: {said}"


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: f"{each.assignment}-{each.name}")
def test_a_wrong_answer_loses_exactly_what_it_must(mistake):
    source = next(path for path in SOURCES if path.stem == mistake.assignment)
    nb = notebook(source)
    answers = {name: answer_of(nb, name, given) for name, given in mistake.answers.items()}
    concerned = depending(nb, mistake.answers)
    assert mistake.loses <= concerned
    got = graded(handed_in(nb, answers), only=concerned)
    assert {name for name, value in got.points.items() if not value} == mistake.loses, got.said


def answer_of(nb: Any, name: str, given: Any) -> str:
    if isinstance(given, str):
        return given
    right = solution(nb, name)
    assert given["was"] in right, f"{name} does not hold {given['was']!r}"
    return right.replace(given["was"], given["is"])


@every_source
def test_every_test_cell_has_an_answer_that_it_refuses(source):
    refused = set().union(*(each.loses for each in MISTAKES if each.assignment == source.stem))
    assert refused == set(points(notebook(source)))


def test_a_wrong_answer_is_noticed_in_the_seen_tests_or_in_the_hidden_ones():
    """The hidden tests are of use: without them some of these answers would get all points."""
    only_hidden = 0
    for mistake in MISTAKES:
        if mistake.assignment == "part5":  # has its reader's PyTorch to wait for
            continue
        source = next(path for path in SOURCES if path.stem == mistake.assignment)
        nb = notebook(source)
        answers = {name: answer_of(nb, name, given) for name, given in mistake.answers.items()}
        seen = released(handed_in(nb, answers))
        only_hidden += all(graded(seen, only=mistake.loses).points.values())
    assert only_hidden >= 6


# ---- what leaves the house -------------------------------------------------------------------


@cache
def canaries() -> frozenset[str]:
    text = "".join(source.read_text("utf-8") for source in SOURCES)
    return frozenset(re.findall(r"canary: ([a-z-]+)", text))


def test_every_region_has_a_word_to_look_for():
    assert len(canaries()) > 50


@every_source
def test_students_get_no_solution_and_no_hidden_test(source):
    text = "\n".join(cell.source for cell in released(notebook(source)).cells)
    assert not re.search(r"BEGIN|END |canary", text)
    assert not [word for word in canaries() if word in text]


@every_source
def test_nbgrader_makes_the_same_students_notebook(source):
    """Ours, in this file's helper, is what nbgrader's own steps make."""
    preprocessors = pytest.importorskip("nbgrader.preprocessors")
    theirs, resources = notebook(source), {"kernelspec": {"name": "python3"}}
    for step in (
        "LockCells",
        "ClearSolutions",
        "CheckCellMetadata",
        "ClearHiddenTests",
        "ClearMarkScheme",
    ):
        theirs, resources = getattr(preprocessors, step)().preprocess(theirs, resources)
    ours = released(notebook(source), STUBS[1])
    assert [cell.source.rstrip() for cell in theirs.cells] == [
        cell.source.rstrip() for cell in ours.cells
    ]


@pytest.mark.slow
def test_the_command_hands_them_out(tmp_path):
    pytest.importorskip("nbgrader")
    classroom = pytest.importorskip("convgrad.classroom")
    written = classroom.release(ROOT / "book" / "assignments", to=tmp_path)
    assert [path.stem for path in written] == [source.stem for source in SOURCES]
    for path in written:
        text = path.read_text("utf-8")
        assert "NotImplementedError" in text and not [word for word in canaries() if word in text]


def test_the_assignments_stay_out_of_the_site():
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    assert config["only_build_toc_files"] is True
    assert "book/assignments" in config["exclude_patterns"]
    assert "assignments" not in (ROOT / "_toc.yml").read_text("utf-8")
    for page in (ROOT / "book").rglob("*.md"):
        shown = re.findall(r"(?:include\}|\{doc\}`)[^\n]*assignments/", page.read_text("utf-8"))
        assert not shown, f"{page} shows a source with its solutions"


def test_the_package_holds_nothing_of_them():
    """The wheel is the folder of the package, and nothing else."""
    for path in (ROOT / "src" / "convgrad").rglob("*.py"):
        text = path.read_text("utf-8")
        assert not [word for word in canaries() if word in text], path


@pytest.mark.book
def test_the_built_site_holds_nothing_of_them():
    site = ROOT / "_build" / "html"
    assert (site / "book" / "preface.html").is_file(), "make book first"
    assert not list(site.rglob("*assignments*"))
    for path in site.rglob("*"):
        if path.suffix in (".html", ".js", ".json", ".txt", ".inv", ".md", ".ipynb", ".zip"):
            text = path.read_bytes()
            assert not [word for word in canaries() if word.encode() in text], path
