"""What CONTRIBUTING.md shows can be done as it is shown."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest
import test_laws
from numpy.testing import assert_array_equal
from recipes import EXAMPLES, ROOT, module
from strategies import random_geometries

from convgrad import api, example
from convgrad.exercises import all_exercises

RUNG = "src/convgrad/taps.py"
EXERCISE = "src/convgrad/exercises/weight_gradient.py"
CHAPTER = "book/part9/shares.md"
LAWS = (
    test_laws.test_it_is_the_definition,
    test_laws.test_both_gradients_are_adjoints_of_forward,
)


@pytest.fixture
def rung(monkeypatch):
    """The example, registered as CONTRIBUTING.md says."""
    taps = module(RUNG, monkeypatch)
    line = re.search(r"^    (Implementation\.of\(taps, .*\)),$", contributing(), re.M)[1]
    made = eval(line, {"Implementation": api.Implementation, "taps": taps})
    monkeypatch.setitem(api.IMPLEMENTATIONS, "taps", replace(made, name="taps"))
    return api.IMPLEMENTATIONS["taps"]


def contributing() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def obeys(rung: api.Implementation) -> None:
    for seed, geometry in enumerate(random_geometries(60, seed=5)):
        for law in LAWS:
            law.hypothesis.inner_test(rung, geometry, seed)


def test_every_example_is_found():
    assert {RUNG, EXERCISE, CHAPTER} < set(EXAMPLES)
    assert len(EXAMPLES) == 5


def test_the_rung_obeys_the_laws_and_can_be_called(rung):
    obeys(rung)
    x, weight, bias, g = example("B").arrays()
    y = api.conv2d(x, weight, bias, implementation="taps")
    assert_array_equal(y, api.conv2d(x, weight, bias))
    grads = api.conv2d_backward(g, x, weight, implementation="taps")
    for mine, usual in zip(grads, api.conv2d_backward(g, x, weight), strict=True):
        assert_array_equal(mine, usual)


def test_a_mistake_in_it_would_be_noticed(rung):
    """The one that its comment warns of."""
    wrong = EXAMPLES[RUNG].replace("grad[..., rows, cols] +=", "grad[..., rows, cols] =")
    names = {"__package__": "convgrad", "__name__": "wrong"}
    exec(wrong, names)
    with pytest.raises(AssertionError):
        obeys(replace(rung, grad_input=names["grad_input"]))


def test_the_exercise_explains(monkeypatch):
    corner = module(EXERCISE, monkeypatch).CORNER
    assert corner.check(corner.answer).message == corner.explanation
    assert corner.answer == 9
    for wrong, words in corner.mistakes:
        verdict = corner.check(wrong)
        assert not verdict and verdict.message == words and verdict.hints == corner.hints
    assert not corner.check(corner.answer + 1)
    assert len(corner.mistakes) == 2
    assert corner.key not in [each.key for each in all_exercises(corner.chapter)]


@pytest.mark.slow
@pytest.mark.book
@pytest.mark.xdist_group("book_build")
def test_the_chapter_is_built(tmp_path):
    project = pytest.importorskip("test_book_build").Project(tmp_path)
    source = tmp_path / "src" / "convgrad"
    source.mkdir(parents=True)
    shutil.copy(ROOT / "src" / "convgrad" / "windows.py", source)
    (tmp_path / CHAPTER).parent.mkdir()
    project.write(CHAPTER, EXAMPLES[CHAPTER])
    toc = (tmp_path / "_toc.yml").read_text("utf-8")
    project.write("_toc.yml", f"{toc}- file: {CHAPTER.removesuffix('.md')}\n")
    project.build()
    page = project.html("../" + CHAPTER.removesuffix(".md"))
    assert 'content="What one image adds to the weight gradient." name="description"' in page
    assert 'class="cg-widget"' in page and "np.einsum" in re.sub("<[^>]+>", "", page)
    assert re.search(r"<pre[^>]*>(<span></span>)?True\n", page), "the cell ran"
    assert "share of an image" in project.html("../genindex")
