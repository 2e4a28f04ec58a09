"""SlidingWindow and GeometryExplorer compute in the browser; here they are held to Python."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import random_geometries

from convgrad import loops
from convgrad.geometry import PADDING_MODES, ConvGeometry, GeometryError
from convgrad.widgets.explorer_words import formulas, is_one_dimensional, reads, uses
from convgrad.widgets.sliding_window import _is_there
from convgrad.windows import overlap_add

ORACLE = Path(__file__).parent / "explorables_oracle.mjs"


def tensor(array: np.ndarray) -> dict[str, list]:
    return {"shape": list(array.shape), "data": array.ravel().tolist()}


def make_cases() -> list[dict[str, Any]]:
    """Random geometries, every fourth of them along one axis; operands of small integers."""
    rng = np.random.default_rng(31)
    cases = []
    for k, g in enumerate(random_geometries(320, seed=17)):
        if g.N == 0:
            continue
        if k % 4 == 0:
            g = replace(g, H=1, KH=1, padding=((0, 0), g.padding[1]))
        (top, bottom), (left, right) = g.padding
        place = int(rng.integers(-top, g.H + bottom)), int(rng.integers(-left, g.W + right))
        looks = []
        for name, shape in (("x", g.x_shape), ("w", g.weight_shape), ("y", g.output_shape)):
            for _ in range(4):
                index = [int(rng.integers(-2, size + 2)) for size in shape]
                if rng.integers(2):  # half of them with slices that are there
                    index[:2] = [int(rng.integers(size)) for size in shape[:2]]
                looks.append(f"{name}[{','.join(map(str, index))}]")
        integers = {
            name: rng.integers(-4, 5, size=shape).astype(float)
            for name, shape in (
                *(("x", g.x_shape), ("weight", g.weight_shape)),
                ("bias", g.bias_shape),
            )
        }
        cases.append({"geometry": g, "place": place, "looks": looks, **integers})
    return cases


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return make_cases()


@pytest.fixture(scope="module")
def answers(cases: list[dict[str, Any]], node: Any) -> list[dict[str, Any]]:
    message = [
        {
            "geometry": case["geometry"].as_dict(),
            "x": tensor(case["x"]),
            "weight": tensor(case["weight"]),
            "bias": case["bias"].tolist(),
            "place": case["place"],
            "looks": case["looks"],
        }
        for case in cases
    ]
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


def test_the_draws_cover_what_can_go_wrong(cases: list[dict[str, Any]]) -> None:
    drawn = [case["geometry"] for case in cases]
    assert len(drawn) >= 200
    shares = {
        "1 < groups < C": [1 < g.groups < g.C for g in drawn],
        "a leftover": [max(g.leftover) > 0 for g in drawn],
        "stride ≠ dilation": [g.stride != g.dilation for g in drawn],
        "padding": [any(map(any, g.padding)) for g in drawn],
        "one axis": [is_one_dimensional(g) for g in drawn],
    }
    for what, hits in shares.items():
        assert np.mean(hits) >= 0.2, f"{what} in only {np.mean(hits):.0%} of the draws"
    assert {g.padding_mode for g in drawn} == set(PADDING_MODES)


def test_the_same_output(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        y = loops.forward(case["x"], case["weight"], g) + case["bias"][:, None, None]
        assert answer["y"] == y.ravel().tolist(), g.describe()


def test_the_same_index_maps(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        assert answer["maps"] == {"rows": g.rows.tolist(), "cols": g.cols.tolist()}


def test_the_same_readers(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    found = 0
    for case, answer in zip(cases, answers, strict=True):
        g, (h, v) = case["geometry"], case["place"]
        inside = g.cell(h, v) == (h, v)
        expected = []
        for p, q, i, j in np.ndindex(g.OH, g.OW, g.KH, g.KW):
            place = tuple(map(int, g.source(p, q, i, j)))
            if (g.cell(*place) if inside else place) == (h, v):
                expected.append([p, q, i, j, *place])
        assert answer["readers"] == expected, g.describe()
        found += len(expected)
    assert found > 150


def test_the_same_counts(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    """And Python's are those of the adjoint: ones laid back to where they were read."""
    for case, answer in zip(cases, answers, strict=True):
        g = replace(case["geometry"], N=1, C=1, O=1, groups=1)
        assert answer["reads"] == reads(g).tolist(), g.describe()
        ones = np.ones((1, 1, g.OH, g.OW, g.KH, g.KW))
        np.testing.assert_array_equal(uses(g), overlap_add(ones, g)[0, 0])
        assert answer["unread"] == np.argwhere(uses(g) == 0).tolist()
        assert reads(g).sum() == g.OH * g.OW * g.KH * g.KW


def test_the_same_formulas(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        assert answer["formulas"] == [formulas(g), formulas(g, transposed=True)]
        assert answer["one"] == is_one_dimensional(g)
        for axis in answer["formulas"][0]:
            numbers = [eval(line.split(" = ")[-1]) for line in axis[:3]]
            assert numbers[2] in (g.OH, g.OW) and numbers[1] in g.padded_size


def test_the_same_padding_for_same(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    uneven = refused = 0
    for case, answer in zip(cases, answers, strict=True):
        g: ConvGeometry = case["geometry"]
        try:
            same = replace(g, padding="same", padding_mode="zeros").padding
        except GeometryError as error:
            assert answer["same"] == str(error)
            refused += 1
        else:
            assert answer["same"] == [list(pair) for pair in same]
            uneven += any(a != b for a, b in same)
    assert uneven > 5 and refused > 5


def test_the_same_cells_are_there(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    said = []
    for case, answer in zip(cases, answers, strict=True):
        expected = [_is_there(look, case["geometry"]) for look in case["looks"]]
        assert answer["there"] == expected, case["looks"]
        said += expected
    assert 0.1 < np.mean(said) < 0.9
