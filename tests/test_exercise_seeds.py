"""A learner's own numbers: the same question for the same seed, and a fair one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_exercises import ALL, by_key, run

from convgrad.exercises import Asked, Exercise, all_exercises, get

SEEDS = ("ada", "emmy", 3, 4)
ASKED = [each for each in ALL if isinstance(each, Asked)]
DRAWN = [each for each in ASKED if each.redraw is not None]
# what some of them ask the seed "a class"
KEPT = {
    "window-first-numbers": 12.0,
    "geometry-leftover": [[2.0, 0.0]],
    "weight-one-tap": 1.0,
    "bias-two-kernels": [[9.0, 12.0]],
    "grouped-corner": -14.0,
    "owner-number": [[1.0, 0.0, 5.0]],
    "devices-mean-of-means": 9.0,
    "weight-swap": 3,
}


def test_most_questions_can_be_drawn_and_the_others_say_why():
    assert len(DRAWN) >= 60
    for each in ASKED:
        if each.kind in ("number", "grid", "bug", "picture"):
            assert bool(each.redraw) != bool(each.same_for_all), each.key
            assert not each.same_for_all or each.same_for_all.endswith(".")


@by_key(DRAWN)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_draw_is_a_fair_question_of_its_own(exercise, seed):
    mine = exercise.drawn(seed)
    assert mine.asked != exercise.asked
    assert (mine.key, mine.level, mine.kind) == (exercise.key, exercise.level, exercise.kind)
    answer = run(mine.solution)["answer"]
    assert mine.check(answer).passed
    assert len(mine.mistakes) >= len(exercise.mistakes)
    for wrong, message in mine.mistakes:
        verdict = mine.check(wrong)
        assert (verdict.passed, verdict.message) == (False, message)
    assert "..." in mine.starter


@by_key(DRAWN)
def test_learners_get_different_questions(exercise):
    assert len({exercise.drawn(seed).asked for seed in range(12)}) >= 2


@by_key(DRAWN)
def test_a_draw_says_nothing_of_the_books_numbers(exercise):
    """Whoever is told to take example B's arrays would compute another answer."""
    mine = exercise.drawn("ada")
    if re.search(r"of your own", mine.prompt):
        for text in (*mine.hints, mine.solution, mine.explanation):
            assert "example(" not in text


@by_key([each for each in ALL if each.kind == "choice"])
def test_choices_change_their_order_and_nothing_else(exercise):
    orders = set()
    for seed in range(6):
        mine = exercise.drawn(seed)
        assert sorted(mine.options) == sorted(exercise.options)
        assert mine.options[mine.answer] == exercise.options[exercise.answer]
        assert mine.check(run(mine.solution)["answer"]).passed
        said = {exercise.options[k]: words for k, words in exercise.mistakes}
        assert {mine.options[k]: words for k, words in mine.mistakes} == said
        orders.add(mine.options)
    assert len(orders) > 1


def test_no_hint_of_a_choice_counts_on_the_order():
    for exercise in ALL:
        if exercise.kind == "choice":
            said = " ".join((*exercise.hints, exercise.explanation, exercise.prompt))
            assert not re.search(
                r"(first|last|third) (choice|answer|option)|\bchoice [a-d]\b", said
            )


def test_a_seed_is_not_another_exercise():
    assert get("weight-one-tap", seed="ada").key == "weight-one-tap"
    assert len(all_exercises(seed="ada")) == len(all_exercises())
    assert get("weight-one-tap", seed="ada") is not get("weight-one-tap")
    assert get("weight-one-tap").seed is None
    assert get("weight-one-tap", seed=7).asked == get("weight-one-tap", seed="7").asked


def test_the_books_question_passes_nobody_by_its_answer_alone():
    """Of ten learners, few have the book's answer, so that copying it is no way out."""
    same = [
        each.key
        for each in DRAWN
        if sum(bool(each.drawn(seed).check(each.answer)) for seed in range(10)) > 5
    ]
    assert same == []


def test_a_function_is_tried_on_the_numbers_of_its_seed():
    def spy_on(exercise: Exercise) -> list[bytes]:
        seen: list[bytes] = []

        def slide(x, w):
            seen.append(x.tobytes())
            return np.zeros((x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1))

        exercise.check(slide)
        exercise.check(slide)
        return seen

    first, second = spy_on(get("window-slide", seed="ada"))
    assert first == second
    assert spy_on(get("window-slide", seed="emmy"))[0] != first
    book = spy_on(get("window-slide"))
    assert book[0] != book[1]


@pytest.mark.parametrize(("key", "answer"), KEPT.items())
def test_the_questions_of_a_seed_stay_what_they_are(key, answer):
    """On every machine and in every version: a class's questions must not change under it."""
    assert np.asarray(get(key, seed="a class").answer).tolist() == answer
