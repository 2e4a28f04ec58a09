"""The browser computes by itself; here it is held to Python, digit for digit.

Integers in float64 are exact whatever the order of a sum, so every comparison is ``==``.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import random_geometries

from convgrad import ledger, loops
from convgrad.geometry import PADDING_MODES, ConvGeometry, GeometryError
from convgrad.widgets.base import refit
from convgrad.widgets.fallback import number

ORACLE = Path(__file__).parent / "js_oracle.mjs"
CASES = 400
MOST_PRODUCTS = 6_000  # of one case, to keep the messages short
TARGETS, ORDERS = ("weight", "input", "bias"), ("tap", "position", "kernel")


def integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-4, 5, size=shape).astype(np.float64)


def tensor(array: np.ndarray) -> dict[str, list]:
    return {"shape": list(array.shape), "data": array.ravel().tolist()}


def products(g: ConvGeometry) -> int:
    return int(np.prod(g.output_shape)) * g.CG * g.KH * g.KW


def make_cases() -> list[dict[str, Any]]:
    """Geometries of all kinds, with every target, order and choice of padding in turn."""
    rng = np.random.default_rng(7)
    small = (g for g in random_geometries(2 * CASES, seed=11) if products(g) <= MOST_PRODUCTS)
    return [
        {
            "geometry": g,
            "target": TARGETS[k % 3],
            "order": ORDERS[k // 3 % 3],
            "include_padding": bool(k // 9 % 2),
            "x": integers(rng, g.x_shape),
            "weight": integers(rng, g.weight_shape),
            "grad_output": integers(rng, g.output_shape),
            "bias": integers(rng, g.bias_shape),
        }
        for k, g in zip(range(CASES), small, strict=False)
    ]


def make_specs() -> list[dict[str, Any]]:
    """Numbers without regard to whether they describe a convolution."""
    rng = np.random.default_rng(23)

    def some(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    return [
        {
            "N": some(1, 2, 0, 1, -1),
            "C": some(1, 2, 3, 4, 6, 6, 0),
            "H": some(1, 2, 3, 4, 5, 7),
            "W": some(1, 2, 3, 4, 6, 8),
            "O": some(1, 2, 3, 4, 6, 6),
            "KH": some(1, 2, 3, 5),
            "KW": some(1, 2, 3, 4),
            "stride": [some(1, 2, 3), some(1, 1, 2, 2, 0)],
            "padding": [[some(0, 1, 2, 3), some(0, 1, 2)], [some(0, 1, 2, 5), some(0, 1, 1, -1)]],
            "dilation": [some(1, 1, 2, 3), some(1, 1, 2)],
            "groups": some(1, 1, 1, 2, 3),
            "padding_mode": some(*PADDING_MODES, *PADDING_MODES, "mirror"),
        }
        for _ in range(600)
    ]


def make_refits() -> list[tuple[np.ndarray, tuple[int, ...]]]:
    rng = np.random.default_rng(5)
    shapes = rng.integers(1, 5, size=(40, 2, 4))
    return [(integers(rng, tuple(old)), tuple(map(int, new))) for old, new in shapes]


def make_numbers() -> list[float]:
    rng = np.random.default_rng(3)
    scales = 10.0 ** rng.integers(-8, 9, size=300)
    floats = (rng.standard_normal(300) * scales).tolist()
    return [0.0, -0.0, 1.0, -3.0, 0.5, 1e6, 999999.5, 1e-4, 0.1 + 0.2, -1e-7, 123456.7, *floats]


@pytest.fixture(scope="module")
def asked() -> dict[str, list]:
    return {
        "cases": make_cases(),
        "specs": make_specs(),
        "refits": make_refits(),
        "numbers": make_numbers(),
    }


@pytest.fixture(scope="module")
def answers(asked: dict[str, list], node: Any) -> dict[str, list]:
    """Everything in one run of Node."""
    message = {
        **asked,
        "cases": [
            {
                key: tensor(value) if key in ("x", "weight", "grad_output") else value
                for key, value in case.items()
            }
            | {"geometry": case["geometry"].as_dict(), "bias": case["bias"].tolist()}
            for case in asked["cases"]
        ],
        "refits": [(tensor(array), shape) for array, shape in asked["refits"]],
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


def test_the_draws_cover_what_can_go_wrong(asked: dict[str, list]) -> None:
    drawn = [case["geometry"] for case in asked["cases"]]
    assert len(drawn) >= 300
    shares = {
        "1 < groups < C": [1 < g.groups < g.C for g in drawn],
        "a leftover": [max(g.leftover) > 0 for g in drawn],
        "stride ≠ dilation": [g.stride != g.dilation for g in drawn],
        "padding": [any(map(any, g.padding)) for g in drawn],
    }
    for what, hits in shares.items():
        assert np.mean(hits) >= 0.25, f"{what} in only {np.mean(hits):.0%} of the draws"
    assert {g.padding_mode for g in drawn} == set(PADDING_MODES)
    ways = {(c["target"], c["order"], c["include_padding"]) for c in asked["cases"]}
    assert len(ways) == 18


def test_the_same_numbers(asked: dict[str, list], answers: dict[str, list]) -> None:
    for case, answer in zip(asked["cases"], answers["cases"], strict=True):
        g, x, weight, grad_output = (
            case[key] for key in ("geometry", "x", "weight", "grad_output")
        )
        expected = {
            "forward": loops.forward(x, weight, g) + case["bias"][:, None, None],
            "grad_input": loops.grad_input(grad_output, weight, g),
            "grad_weight": loops.grad_weight(grad_output, x, g),
            "grad_bias": loops.grad_bias(grad_output, g),
        }
        for name, array in expected.items():
            assert answer[name] == array.ravel().tolist(), f"{name} of {g.describe()}"


@pytest.mark.slow
def test_the_same_products_in_the_same_order(
    asked: dict[str, list], answers: dict[str, list]
) -> None:
    for case, answer in zip(asked["cases"], answers["cases"], strict=True):
        g, target = case["geometry"], case["target"]
        operands = {key: case[key] for key in ("x", "weight", "grad_output")}
        expected = list(
            ledger.contributions(
                g, target, order=case["order"], include_padding=case["include_padding"]
            )
        )
        rows = [
            [
                *(c.n, c.o, c.c, c.p, c.q, c.i, c.j, c.h, c.v),
                list(c.cell) if c.cell is not None else None,
                list(c.target) if c.target is not None else None,
                float(ledger.product(c, target, **operands)),
            ]
            for c in expected
        ]
        where = f"{target} by {case['order']} of {g.describe()}"
        assert answer["products"] == rows, where
        half = np.zeros(
            {"weight": g.weight_shape, "input": g.x_shape, "bias": g.bias_shape}[target]
        )
        for row in rows[: len(rows) // 2]:
            if row[-2] is not None:
                half[tuple(row[-2])] += row[-1]
        assert answer["half"] == half.ravel().tolist(), f"running sum: {where}"


def test_the_same_geometries_and_the_same_errors(
    asked: dict[str, list], answers: dict[str, list]
) -> None:
    refused = set()
    for spec, answer in zip(asked["specs"], answers["specs"], strict=True):
        try:
            g = ConvGeometry(**spec)
        except GeometryError as error:
            assert answer == {"error": str(error)}, spec
            refused.add(re.sub(r"\d+(, \d+)*", "#", str(error)))
        else:
            sizes = {"OH": g.OH, "OW": g.OW, "CG": g.CG, "OG": g.OG, "leftover": list(g.leftover)}
            assert answer == sizes, spec
    assert len(refused) >= 10, "few kinds of mistakes were drawn"
    assert any("error" not in answer for answer in answers["specs"])


def test_the_same_filling_when_an_array_grows(
    asked: dict[str, list], answers: dict[str, list]
) -> None:
    for (array, shape), answer in zip(asked["refits"], answers["refits"], strict=True):
        assert answer == tensor(refit(array, shape))


def test_the_same_spelling_of_numbers(asked: dict[str, list], answers: dict[str, list]) -> None:
    for value, answer in zip(asked["numbers"], answers["numbers"], strict=True):
        assert answer == number(value), value
