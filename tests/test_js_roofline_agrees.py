"""The roofline is computed in the browser; here it is held to Python, number by number."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import random_geometries

from convgrad import ConvGeometry, GeometryError
from convgrad.layers import TABLE
from convgrad.roofline import BYTES, CARDS, MAPS, bound
from convgrad.widgets.roofline import TILES
from convgrad.widgets.roofline_words import amount, rows, sentence, three

ORACLE = Path(__file__).parent / "js_roofline_oracle.mjs"
KNOBS = ("N", "C", "O", "groups", "H", "KH", "stride")


def layers(rng: np.random.Generator, count: int) -> list[ConvGeometry]:
    """Large layers: channels in the hundreds, so that tiles and memory both matter."""
    found = []
    for _ in range(count):
        groups = int(rng.choice([1, 1, 2, 8]))
        C, O = (groups * int(rng.integers(1, 130)) for _ in range(2))
        if rng.random() < 0.2:
            groups = O = C
        k, size = int(rng.integers(1, 6)), int(rng.integers(6, 120))
        found.append(
            ConvGeometry(
                **{"N": int(rng.integers(1, 65)), "C": C, "H": size, "W": size + k, "O": O},
                **{"KH": k, "KW": k, "stride": int(rng.integers(1, 4)), "padding": k // 2},
                groups=groups,
            )
        )
    return found


def make_cases() -> list[dict[str, Any]]:
    rng = np.random.default_rng(8)
    drawn = [g for g in random_geometries(60, seed=3) if g.N]
    cases = []
    for geometry in [*drawn, *layers(rng, 200), *TABLE.values()]:
        knob = str(rng.choice(KNOBS))
        common = [d for d in range(1, geometry.C + 1) if not geometry.C % d | geometry.O % d]
        cases.append(
            {
                "geometry": geometry,
                "card": str(rng.choice(list(CARDS))),
                "precision": str(rng.choice(list(BYTES))),
                "columns": bool(rng.integers(2)),
                "tile": int(rng.choice(TILES)),
                "splits": int(rng.choice([1, 2, 7, 26, 400])),
                "knob": knob,
                "value": int(rng.choice(common) if knob == "groups" else rng.integers(1, 9)),
            }
        )
    return cases


NUMBERS = [*(10.0**k for k in range(-6, 16)), 2.125, 2.135, 12.25, 284.5, 999.5, 1234.5, 0.0625]


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return make_cases()


@pytest.fixture(scope="module")
def answered(cases: list[dict[str, Any]], node: Any) -> dict[str, Any]:
    message = [
        case | {"geometry": case["geometry"].as_dict(), "card": CARDS[case["card"]]._asdict()}
        for case in cases
    ]
    run = subprocess.run(
        [node.node, str(ORACLE)],
        input=json.dumps({"cases": message, "numbers": NUMBERS}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def answers(answered: dict[str, Any]) -> list[dict[str, Any]]:
    return answered["answers"]


def settings(case: dict[str, Any]) -> dict[str, Any]:
    return {name: case[name] for name in ("precision", "columns", "tile", "splits")}


def bounds_of(case: dict[str, Any]) -> dict[str, Any]:
    card = CARDS[case["card"]]
    return {which: bound(case["geometry"], which, card, **settings(case)) for which in MAPS}


def test_the_draws_cover_all_that_can_limit(cases: list[dict[str, Any]]) -> None:
    limits = [found.limit for case in cases for found in bounds_of(case).values()]
    for limit in ("arithmetic", "memory", "tiles"):
        assert limits.count(limit) > 0.05 * len(limits), limit
    assert np.mean([case["geometry"].groups > 1 for case in cases]) > 0.2
    assert np.mean([max(case["geometry"].stride) > 1 for case in cases]) > 0.2
    assert np.mean([case["splits"] > 1 and case["tile"] > 0 for case in cases]) > 0.3


def test_the_same_bounds(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        for which, found in bounds_of(case).items():
            theirs = answer["bounds"][which]
            ours = found._asdict()
            assert theirs["limit"] == ours.pop("limit"), (case, which)
            for name, value in ours.items():
                assert theirs[name] == value, (case, which, name)


def test_the_same_ridge(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        assert answer["ridge"] == CARDS[case["card"]].roof(case["precision"]).ridge


def test_the_same_words(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        found, card = bounds_of(case), CARDS[case["card"]]
        expected = [sentence(which, found[which], card, case["precision"]) for which in MAPS]
        assert answer["sentences"] == expected
        assert answer["rows"] == rows(found)


def test_the_same_figures(answered: dict[str, Any]) -> None:
    kinds = ("operations", "bytes", "milliseconds")
    for value, theirs in zip(NUMBERS, answered["numbers"], strict=True):
        assert theirs == [three(value), *(amount(kind, value) for kind in kinds)]


def test_a_moved_slider_leaves_a_convolution(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    """Whatever is moved: Python takes it, and what was asked for is what is there."""
    kept_depthwise = impossible = 0
    for case, answer in zip(cases, answers, strict=True):
        before: ConvGeometry = case["geometry"]
        try:
            after = ConvGeometry(**answer["moved"])
        except GeometryError as error:  # the page says it and moves the slider back
            assert case["knob"] in ("H", "KH") and "pad" in str(error)
            impossible += 1
            continue
        knob, value = case["knob"], case["value"]
        got = after.stride[0] if knob == "stride" else getattr(after, knob)
        assert got == value, (before.describe(), knob)
        if before.groups == before.C == before.O > 1 and knob in "CO":
            assert after.groups == after.C == after.O == value
            kept_depthwise += 1
        elif knob in "CO":
            assert after.groups <= before.groups
        elif knob != "groups":
            assert (after.C, after.O, after.groups) == (before.C, before.O, before.groups)
    assert kept_depthwise > 3 and impossible < 30
