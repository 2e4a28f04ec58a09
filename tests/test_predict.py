"""Predict on Python's side: what a question is made of, what is refused, what is never shown."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from convgrad import example, exercises
from convgrad.geometry import ShapeError

pytest.importorskip("anywidget", reason="the widgets' packages are not installed")

from convgrad.widgets import Predict
from convgrad.widgets.predict import Table, number_text
from convgrad.widgets.prose import formula, inline, paragraphs

ROOT = Path(__file__).resolve().parents[1]

# ---- kinds and answers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solution", "plain"),
    [(7, 7), (7.0, 7), (np.float64(-3), -3), (0.25, 0.25), (np.array(5), 5), (np.int64(2), 2)],
)
def test_a_number(solution, plain):
    question = Predict("?", solution)
    assert question.kind == "number"
    assert question.solution == plain
    assert json.dumps(question.solution) == json.dumps(plain)


def test_a_grid_drops_leading_axes_of_one():
    question = Predict("?", np.arange(6.0).reshape(1, 1, 2, 3))
    assert question.kind == "grid"
    assert question.solution == [[0, 1, 2], [3, 4, 5]]


def test_a_choice_is_a_place_in_the_list():
    question = Predict("?", 1, choices=["no", "`yes`"])
    assert question.kind == "choice"
    assert question.solution == 1
    assert question.choices == ["no", "<code>yes</code>"]


def test_mistakes_take_the_form_of_the_solution():
    number = Predict("?", 7, mistakes={6: "bias *missing*"})
    assert number.mistakes == [{"answer": 6, "message": "bias <em>missing</em>"}]
    grid = Predict("?", np.eye(2), mistakes=[(np.ones((1, 1, 2, 2)), "all ones")])
    assert grid.mistakes[0]["answer"] == [[1, 1], [1, 1]]


def test_everything_travels_as_json():
    question = Predict(
        "?", np.eye(2), given=np.eye(2, dtype=bool), mistakes=[(np.zeros((2, 2)), "zeros")]
    )
    state = question.get_state()
    kept = {name: value for name, value in state.items() if name[0] != "_" and name != "layout"}
    assert json.loads(json.dumps(kept)) == kept


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"solution": np.zeros((2, 2, 2))}, ShapeError, "take one channel of it"),
        ({"solution": np.zeros((0, 3))}, ShapeError, "table of rows and columns"),
        ({"solution": [1, 2]}, ShapeError, "table of rows and columns"),
        ({"solution": float("nan")}, ValueError, "finite"),
        ({"solution": 2, "choices": ["a", "b"]}, ValueError, "needed is its place, 0 to 1"),
        ({"solution": 7, "mistakes": {7: "right"}}, ValueError, "is the right answer"),
        ({"solution": np.eye(2), "mistakes": [(3, "m")]}, ShapeError, "needed are equal"),
        ({"solution": np.eye(2), "given": [True]}, ShapeError, "needed are equal"),
        ({"solution": np.eye(2), "labels": ["a", "b"]}, ShapeError, "a grid of one row"),
        ({"solution": [[1, 2]], "labels": ["a"]}, ShapeError, "a label for each of its boxes"),
        ({"solution": [[1, 2]], "labels": "ab"}, ShapeError, "a label for each of its boxes"),
        ({"solution": 1, "labels": ["a"]}, ShapeError, "a grid of one row"),
        ({"solution": 1, "name": "y"}, ValueError, "only a grid has one, and this is a number"),
        ({"solution": 1, "hints": [r"$\nosuch$"]}, ValueError, r"uses \\nosuch"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        Predict("?", **arguments)


def test_the_key_follows_the_question():
    keys = {Predict(text, n).key for text, n in (("a", 1), ("a", 2), ("b", 1), ("a", 1))}
    assert len(keys) == 3
    assert Predict("a", 1, key="mine").key == "mine"


# ---- what the reader does arrives in Python -------------------------------------------------


def test_an_answer_from_the_browser_arrives():
    question = Predict("?", 7)
    heard = []
    question.observe(lambda change: heard.append(change.name))
    question.set_state({"entry": ["7"], "answer": 7, "correct": True, "attempts": 2})
    assert (question.answer, question.correct, question.attempts) == (7, True, 2)
    assert {"answer", "correct", "attempts"} <= set(heard)


def test_an_update_of_the_wrong_kind_is_refused_as_a_whole():
    question = Predict("?", 7)
    question.set_state({"attempts": "many", "correct": True})
    assert question.attempts == 0
    assert question.correct is False
    assert question.complaint


# ---- what a grid and its boxes are called ---------------------------------------------------


def test_a_grid_has_its_name_above_it_in_the_fallback_too():
    question = Predict("?", np.eye(2), name="change of `y`")
    assert question.name == "change of <code>y</code>"
    assert question.fallback.count(f"<caption>{question.name}</caption>") == 1
    assert "<caption>" not in Predict("?", np.eye(2)).fallback


def test_the_boxes_of_a_row_have_labels_in_the_fallback_too():
    question = Predict("?", [[4, 5]], labels=("rows", "p < q"))
    assert question.labels == ["rows", "p < q"]
    heads = re.findall(r'<th scope="col">([^<]*)</th>', question.fallback)
    assert heads == ["rows", "p &lt; q"]
    assert "<td></td>" not in question.fallback, "a single row has no column of places"
    assert "<th" not in Predict("?", [[4, 5]]).fallback


def test_an_exercise_takes_a_name_and_labels():
    shape = Predict.from_exercise(exercises.get("window-shape"), labels=("rows", "columns"))
    assert shape.labels == ["rows", "columns"]
    assert "rows</th>" in shape.fallback
    assert "box" not in shape.question, "the labels say which box is which"
    pixel = Predict.from_exercise(exercises.get("window-one-pixel"), name="y")
    assert "<caption>y</caption>" in pixel.fallback


# ---- the exercises in the page --------------------------------------------------------------

IN_PAGE = [each for each in exercises.all_exercises() if each.in_page]


def test_there_are_exercises_of_every_kind():
    assert {each.kind for each in IN_PAGE} == {"number", "grid", "choice", "picture", "bug"}
    assert {each.in_page for each in IN_PAGE} == {"number", "grid", "choice"}


@pytest.mark.parametrize("exercise", IN_PAGE, ids=lambda each: each.key)
def test_an_exercise_becomes_a_question(exercise):
    question = Predict.from_exercise(exercise)
    assert question.kind == exercise.in_page
    assert question.key == exercise.key
    assert len(question.hints) == len(exercise.hints)
    assert len(question.mistakes) == len(exercise.mistakes)
    assert exercise.title in question.title
    assert exercise.check(question.solution)
    if exercise.kind != "bug":
        assert "<pre" not in question.question, "arrays are drawn, not written"


def test_arrays_in_a_prompt_are_drawn_in_their_colours():
    x, weight, _, _ = example("B").arrays()
    question = Predict.from_exercise(exercises.get("window-first-numbers")).question
    for values, colour, name in ((x, "x", "x"), (weight, "kernel", "weight")):
        assert Table(values[0, 0], colour, name).html() in question


def test_a_function_is_checked_in_a_cell():
    with pytest.raises(ValueError, match="check this one in a cell"):
        Predict.from_exercise(exercises.get("window-slide"))


def test_the_page_and_python_give_the_same_verdict(node):
    """Right answers, every known mistake and random ones: judged by JavaScript and by check()."""
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for exercise in IN_PAGE:
        question = Predict.from_exercise(exercise)
        names = ("kind", "solution", "mistakes", "tolerance", "axes", "labels", "given")
        asked = {name: getattr(question, name) for name in names}
        answers = [question.solution, *(each["answer"] for each in question.mistakes)]
        if exercise.kind == "choice":
            answers += range(len(question.choices))
        else:
            answers += [
                (np.array(question.solution) + rng.integers(-1, 2, np.shape(question.solution)))
                .astype(float)
                .tolist()
                for _ in range(20)
            ]
        for answer in answers:
            cases.append([asked, answer])
            known = [m["message"] for m in question.mistakes if m["answer"] == answer]
            verdict = exercise.check(answer)
            assert known in ([], [inline(verdict.message)])
            expected.append([verdict.passed, known])
    script = """
        import { judge } from "./src/convgrad/widgets/js/answers.js";
        let text = "";
        for await (const chunk of process.stdin) text += chunk;
        const verdicts = JSON.parse(text).map(([question, answer]) => judge(question, answer));
        console.log(JSON.stringify(verdicts));
    """
    result = subprocess.run(
        [node.node, "--input-type=module", "-e", script],
        input=json.dumps(cases),
        env=node.environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    verdicts = json.loads(result.stdout)
    assert len(verdicts) == len(expected) > 100
    for (_, answer), verdict, (passed, known) in zip(cases, verdicts, expected, strict=True):
        assert verdict["passed"] == passed, answer
        if known:
            assert [verdict["message"]] == known
    assert {passed for passed, _ in expected} == {True, False}


# ---- words ----------------------------------------------------------------------------------


def test_markdown_is_rendered_and_html_stays_text():
    html = paragraphs("A *word*, `x[0] < 1`, <img src=x onerror=alert(1)> [l](javascript:alert(1))")
    assert "<em>word</em>" in html
    assert "<code>x[0] &lt; 1</code>" in html
    assert "<img" not in html
    assert "<a" not in html


def test_formulas_become_mathml_in_the_colours_of_the_book():
    html = inline(r"the tap $\w_{ij}$ of $\colx{x}$ and $a < b$")
    assert html.count("<math") == 3
    assert '<mrow class="cg-col-w"><mi>w</mi></mrow>' in html
    assert '<mrow class="cg-col-x"><mi>x</mi></mrow>' in html
    assert "<mo>&lt;</mo>" in html
    assert "$" not in html


def test_a_displayed_formula_is_a_block():
    assert 'display="block"' in formula(r"\frac{a}{b}", display=True)
    assert "<mfrac>" in paragraphs("$$\n\\frac{a}{b}\n$$")


@pytest.mark.parametrize(
    ("value", "text"), [(3.0, "3"), (-3, "−3"), (0.25, "0.25"), (-0.0, "0"), (1 / 3, "0.333333")]
)
def test_number_text(value, text):
    assert number_text(value) == text


# ---- the picture and the fallback -----------------------------------------------------------


def test_a_table_shows_its_numbers_but_not_the_hidden_ones():
    html = Table([[1, -2], [3, 44]], "grad_output", r"$\g$", lit=[(0, 1)], hidden=[(1, 1)]).html()
    assert "var(--cg-grad-output)" in html
    assert '<td class="cg-ask-lit">−2</td>' in html
    assert "44" not in html
    assert "?" in html
    assert re.findall(r'<th scope="(col|row)">', html).count("col") == 2


@pytest.fixture
def questions():
    B = example("B")
    x = B.arrays().x
    return {
        "number": Predict(
            "What stands at `y[0,0,1,2]`?",
            271,
            hints=["first hint"],
            explanation="because 271",
            mistakes={828: "a mistake"},
            picture=[Table(x[0, 0], "x"), "→", Table([[271]], "result", hidden=[(0, 0)])],
        ),
        "grid": Predict("Fill in.", [[271, 828], [1, 2]], given=[[False, False], [True, True]]),
        "choice": Predict("Which?", 1, choices=["one", "other"], explanation="271"),
    }


def test_the_fallback_asks_and_never_answers(questions):
    for kind, question in questions.items():
        html = question.fallback
        assert question.question in html
        assert f'data-kind="{kind}"' in html
        for secret in ("271", "828", "first hint", "a mistake", "because"):
            assert secret not in html, (kind, secret)


def test_the_fallback_has_a_box_for_every_answer(questions):
    boxes = {kind: q.fallback.count('class="cg-ask-box"') for kind, q in questions.items()}
    assert boxes == {"number": 1, "grid": 4, "choice": 0}
    assert questions["grid"].fallback.count("data-given") == 2
    assert questions["choice"].fallback.count('class="cg-ask-choice"') == 2
    for question in questions.values():
        assert "<input" not in question.fallback, "nothing to type in without a script"
        assert "<button" not in question.fallback
