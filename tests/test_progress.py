"""Progress is kept in a file that somebody asked for, and reads what a page wrote."""

from __future__ import annotations

import json

import pytest

from convgrad import exercises
from convgrad.exercises import get, progress
from convgrad.exercises.progress import FORMAT, Progress, Record, keep, load, stop

KEY = "weight-how-many"


@pytest.fixture(autouse=True)
def nobody_is_told():
    yield
    stop()


def file_with(tmp_path, content) -> str:
    path = tmp_path / "progress.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, "utf-8")
    return str(path)


def whole(records) -> dict:
    return {"format": FORMAT, "version": 1, "exercises": records}


def test_nothing_is_written_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    get(KEY).check(12)
    assert list(tmp_path.iterdir()) == []
    keep("mine.json")
    get(KEY).check(12)
    stop()
    before = (tmp_path / "mine.json").read_bytes()
    get("window-response-size").check(17)
    assert (tmp_path / "mine.json").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["mine.json"]


def test_every_check_is_noted_and_the_file_goes_on(tmp_path):
    path = tmp_path / "progress.json"
    mine = keep(path)
    get(KEY).check(6)
    assert mine.state(KEY) == load(path).state(KEY) == "tried"
    get(KEY).check(...)  # not begun
    get(KEY).check(12)
    get(KEY).check(7)  # what is right stays right
    get("museum-break").check(lambda rule: False)
    get("window-slide", seed="ada").check(len)
    stop()
    kept = json.loads(path.read_text("utf-8"))
    assert kept["exercises"] == {
        KEY: {"state": "right", "attempts": 3},
        "museum-break": {"state": "tried", "attempts": 1},
        "window-slide": {"state": "tried", "attempts": 1, "seed": "ada"},
    }
    again = keep(path)
    get("window-slide").check(len)
    assert again.records["window-slide"].attempts == 2
    assert load(path).records[KEY] == Record("right", attempts=3)


def test_require_is_noted_and_a_mend_is_one_answer(tmp_path):
    mine = keep(tmp_path / "p.json")
    get(KEY).require(12)
    bug = get("input-bug-mend")
    bug.check((bug.answer, "grad = grad"))
    assert {key: each.attempts for key, each in mine.records.items()} == {KEY: 1, bug.key: 1}


def test_the_best_score_is_kept():
    mine, exercise = Progress(), get("museum-break")
    for share in (0.4, 0.8, 0.2):
        mine.note(exercise, exercises.Verdict(False, "", share=share))
    assert mine.records[exercise.key].score == 0.8
    assert mine.as_dict()["exercises"][exercise.key]["score"] == 0.8


def test_a_file_of_the_page_is_read_and_its_fields_are_kept(tmp_path):
    page = {"entry": ["12"], "answer": 12}
    given = {KEY: {"state": "shown", "attempts": 1, "hints": 2, "page": page}}
    path = file_with(tmp_path, whole(given))
    assert load(path).records[KEY].page == page
    assert load(path).as_dict()["exercises"] == given
    mine = keep(path)
    get(KEY).check(12)
    assert mine.records[KEY] == Record("right", attempts=2, hints=2, page=page)


def test_merging_takes_what_came_further_and_merging_twice_changes_nothing():
    mine = Progress({"a": Record("tried", 5), "b": Record("right", 1)})
    other = Progress({"a": Record("right", 2), "b": Record("tried", 9), "c": Record("shown")})
    for _ in range(2):
        mine.merge(other)
        assert {key: (each.state, each.attempts) for key, each in mine.records.items()} == {
            "a": ("right", 2),
            "b": ("right", 1),
            "c": ("shown", 0),
        }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no JSON file"),
        ("{", "no JSON file"),
        ("[" * 100_000, "no JSON file"),
        ([], "no progress file"),
        ({"format": "other"}, "no progress file"),
        ({"format": FORMAT, "version": 2, "exercises": {}}, "has version 2.*newer convgrad"),
        ({"format": FORMAT, "version": 1}, 'lacks "exercises"'),
        (whole([]), 'lacks "exercises"'),
        (whole({"a": 3}), "neither of the states"),
        (whole({"a": {"state": "done"}}), "neither of the states tried, shown, right"),
        (whole({"a": {"state": "right", "attempts": -1}}), "needed is a whole number"),
        (whole({"a": {"state": "right", "attempts": True}}), "needed is a whole number"),
        (whole({"a": {"state": "right", "hints": "2"}}), "needed is a whole number"),
        (whole({"a": {"state": "right", "score": 2}}), "cannot be read"),
        (whole({"a": {"state": "right", "seed": 3}}), "cannot be read"),
        (whole({"a": {"state": "right", "page": []}}), "cannot be read"),
    ],
)
def test_what_is_no_progress_file_is_refused_in_a_sentence(tmp_path, content, words):
    path = file_with(tmp_path, content)
    with pytest.raises(ValueError, match=words):
        load(path)
    with pytest.raises(ValueError, match=words):
        keep(path)
    assert progress.told == []
    text = content if isinstance(content, str) else json.dumps(content)
    assert (tmp_path / "progress.json").read_text("utf-8") == text, "it is left alone"


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with pytest.raises(ValueError, match="larger than a progress file"):
        load(file_with(tmp_path, " " * 5_000_000))


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path):
    with pytest.raises(OSError):
        keep(tmp_path / "nowhere" / "progress.json")
    assert progress.told == []


def test_a_check_goes_on_when_the_file_cannot_be_written(tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    keep(folder / "p.json")
    (folder / "p.json").unlink()
    folder.rmdir()
    with pytest.warns(UserWarning, match="your progress was not written"):
        assert get(KEY).check(12).passed


def test_a_notebook_shows_it_by_chapters():
    mine = Progress()
    assert repr(mine) == "<Progress: nothing tried yet>"
    mine.note(get(KEY), get(KEY).check(12))
    mine.note(get("weight-one-tap"), get("weight-one-tap").check(1))
    assert repr(mine) == "<Progress: 1 right, 1 tried>"
    count = len(exercises.all_exercises("weight_gradient"))
    assert f"| weight gradient | 1 | 1 | {count - 2} |" in mine._repr_markdown_()
    assert mine._repr_markdown_().count("\n") == 21
