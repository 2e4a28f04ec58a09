"""The mistakes, checks and duels of the browser are those of the package, digit for digit."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import integers, random_geometries

pytest.importorskip("anywidget", reason="the widgets' libraries are not installed")

from convgrad import ConvGeometry, loops
from convgrad.mutants import MUTANTS
from convgrad.widgets.break_the_gradient import round_of, showing
from convgrad.widgets.mistakes import MISTAKES
from convgrad.widgets.noticing import CHECKS, findings, scattered, wrong

ORACLE = Path(__file__).parent / "js_mutants_oracle.mjs"
CASES = 200
ROUNDS = (0, 1, 2, 30)

Case = tuple[ConvGeometry, dict[str, np.ndarray]]


def tensor(array: np.ndarray | None) -> dict[str, list] | None:
    return None if array is None else {"shape": list(array.shape), "data": array.ravel().tolist()}


@pytest.fixture(scope="module")
def asked() -> list[Case]:
    """Random geometries with whole numbers; a widget shows at least one image."""
    rng = np.random.default_rng(5)
    drawn = (g for g in random_geometries(2 * CASES, seed=19) if g.N > 0)
    return [
        (
            g,
            {
                "x": integers(rng, g.x_shape),
                "weight": integers(rng, g.weight_shape),
                "grad_output": integers(rng, g.output_shape),
            },
        )
        for _, g in zip(range(CASES), drawn, strict=False)
    ]


@pytest.fixture(scope="module")
def said(asked: list[Case], node: Any) -> dict[str, Any]:
    """Everything in one run of Node."""
    message = {
        "mistakes": [{"name": name, "target": MUTANTS[name].target} for name in MISTAKES],
        "cases": [
            {
                "geometry": g.as_dict(),
                "seed": seed,
                **{name: tensor(array) for name, array in operands.items()},
            }
            for seed, (g, operands) in enumerate(asked)
        ],
    }
    run = subprocess.run(
        [node.node, str(ORACLE)],
        input=json.dumps(message),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def answers(said: dict[str, Any]) -> list[dict[str, Any]]:
    return said["answers"]


def truth(target: str, g: ConvGeometry, operands: dict[str, np.ndarray]) -> dict[str, list]:
    x, weight, grad_output = (operands[key] for key in ("x", "weight", "grad_output"))
    if target == "weight":
        return tensor(loops.grad_weight(grad_output, x, g))
    if target == "input":
        return tensor(loops.grad_input(grad_output, weight, g))
    return tensor(loops.grad_bias(grad_output, g))


@pytest.mark.slow
def test_both_know_the_same_mistakes(said: dict[str, Any]) -> None:
    assert sorted(said["known"]) == sorted(MISTAKES)
    assert set(MISTAKES) <= set(MUTANTS)
    assert len(MISTAKES) >= 30


def test_every_mistake_is_the_packages(asked: list[Case], answers: list) -> None:
    assert len(answers) == CASES
    for (g, operands), answer in zip(asked, answers, strict=True):
        for name, made in answer["made"].items():
            expected = tensor(wrong(name, g, operands))
            assert made == expected, f"{name} on {g.describe()}, {g.padding_mode}"


def test_each_mistake_was_seen_to_make_a_difference(asked: list[Case], answers: list) -> None:
    """One that always gave the right gradient would pass the test above too."""
    differs: Counter[str] = Counter()
    for (g, operands), answer in zip(asked, answers, strict=True):
        right = {target: truth(target, g, operands) for target in ("weight", "input", "bias")}
        assert answer["right"] == right, g.describe()
        made = answer["made"].items()
        differs.update(name for name, array in made if array != right[MUTANTS[name].target])
    assert min(differs[name] for name in MISTAKES) >= 5, differs


def test_a_mistake_hides_where_the_package_says_so(asked: list[Case], answers: list) -> None:
    """``hides`` is what the widget says where the picture shows nothing."""
    for (g, operands), answer in zip(asked, answers, strict=True):
        for name, made in answer["made"].items():
            if not MUTANTS[name].shows(g):
                assert made == truth(MUTANTS[name].target, g, operands), (name, g.describe())


@pytest.mark.slow
def test_every_check_says_the_same_with_the_same_numbers(asked: list[Case], answers: list) -> None:
    noticed: Counter[tuple[str, bool]] = Counter()
    for (g, operands), answer in zip(asked, answers, strict=True):
        for name, found in answer["findings"].items():
            expected = [asdict(each) for each in findings(name, g, operands)]
            assert found == expected, f"{name} on {g.describe()}, {g.padding_mode}"
            noticed.update((each["check"], each["noticed"]) for each in found)
    for check in CHECKS:
        assert noticed[check, True] > 100 and noticed[check, False] > 100, check


def test_a_right_gradient_is_never_blamed(asked: list[Case], answers: list) -> None:
    for (g, _), answer in zip(asked, answers, strict=True):
        for name, found in answer["findings"].items():
            if MUTANTS[name].shows(g):
                continue
            assert not any(each["noticed"] for each in found), (name, g.describe())


def test_duels_hide_the_same_mistakes(asked: list[Case], answers: list) -> None:
    hidden: Counter[str] = Counter()
    for seed, ((g, operands), answer) in enumerate(zip(asked, answers, strict=True)):
        shown = showing(g, operands)
        assert answer["shown"] == shown, g.describe()
        for number, found in zip(ROUNDS, answer["rounds"], strict=True):
            expected = round_of(shown, seed, number)
            assert found == (expected and [expected.hidden, list(expected.among)])
            if expected:
                assert expected.hidden in expected.among
                assert 2 <= len(expected.among) <= 4
                hidden[expected.hidden] += 1
    assert len(hidden) >= 25, "few kinds of mistakes were hidden"


def test_a_duel_hides_every_mistake_once_before_any_comes_again() -> None:
    shown = [name for name in MISTAKES if MUTANTS[name].target == "input"]
    for seed in range(5):
        hidden = [round_of(shown, seed, number).hidden for number in range(2 * len(shown))]
        assert sorted(hidden[: len(shown)]) == sorted(shown)
        assert sorted(hidden[len(shown) :]) == sorted(shown)
        assert hidden != sorted(hidden)
    assert round_of([], 0, 0) is None
    assert round_of(["wgrad_reversed", "dgrad_no_flip"], 0, 0) is None, "nothing to tell apart"


def test_scattered_numbers_are_the_same(said: dict[str, Any]) -> None:
    ours = [float(scattered((k + 1,), k % 7)[k]) for k in range(100)]
    assert said["scattered"] == ours
    assert set(ours) == set(range(-4, 5))
