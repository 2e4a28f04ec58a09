"""Columns, products and folds in the browser are Python's, digit for digit.

Integers in float64 are exact whatever the order of a sum, so every comparison is ``==``.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import integers, random_geometries

from convgrad import im2col, loops
from convgrad.geometry import PADDING_MODES, ConvGeometry
from convgrad.widgets import UnfoldMatrix

ORACLE = Path(__file__).parent / "js_matrices_oracle.mjs"
CASES = 120
MOST_PRODUCTS = 4_000  # of one case, to keep the messages short


def make_cases() -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    drawn = (
        g
        for g in random_geometries(4 * CASES, seed=29)
        if g.N and np.prod(g.output_shape) * g.CG * g.KH * g.KW <= MOST_PRODUCTS
    )
    return [
        {
            "geometry": g,
            "x": integers(rng, g.x_shape),
            "weight": integers(rng, g.weight_shape),
            "grad_output": integers(rng, g.output_shape),
        }
        for _, g in zip(range(CASES), drawn, strict=False)
    ]


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return make_cases()


@pytest.fixture(scope="module")
def answers(cases: list[dict[str, Any]], node: Any) -> dict[str, Any]:
    """Everything in one run of Node."""

    def plain(value: Any) -> Any:
        if isinstance(value, ConvGeometry):
            return value.as_dict()
        return {"shape": list(value.shape), "data": value.ravel().tolist()}

    message = {"cases": [{key: plain(value) for key, value in case.items()} for case in cases]}
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
    assert len(drawn) == CASES
    shares = {
        "1 < groups < C": [1 < g.groups < g.C for g in drawn],
        "several kernels a group": [g.groups > 1 and g.OG > 1 for g in drawn],
        "a leftover": [max(g.leftover) > 0 for g in drawn],
        "a crop": [max(g.surplus) > 0 for g in drawn],
        "stride ≠ dilation": [g.stride != g.dilation for g in drawn],
        "several images": [g.N > 1 for g in drawn],
        "padding": [any(map(any, g.padding)) for g in drawn],
    }
    for what, hits in shares.items():
        least = 0.15 if what == "a crop" else 0.25
        assert np.mean(hits) >= least, f"{what} in only {np.mean(hits):.0%} of the draws"
    assert {g.padding_mode for g in drawn} == set(PADDING_MODES)


def test_the_same_matrices(cases: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    for case, answer in zip(cases, answers["matrices"], strict=True):
        g, x, weight, grad_output = (
            case[key] for key in ("geometry", "x", "weight", "grad_output")
        )
        R = g.CG * g.KH * g.KW
        columns = im2col.unfold(x, g)
        y = loops.forward(x, weight, g)
        grad_weight = loops.grad_weight(grad_output, x, g)
        grad_input = loops.grad_input(grad_output, weight, g)
        counts = im2col.fold(np.ones_like(columns), g)
        where = g.describe()
        for b, block in enumerate(answer["blocks"]):
            n, k = divmod(b, g.groups)
            rows, outs, ins = (
                slice(k * R, (k + 1) * R),
                slice(k * g.OG, (k + 1) * g.OG),
                slice(k * g.CG, (k + 1) * g.CG),
            )
            W = weight[outs].reshape(g.OG, R)
            G = grad_output[n, outs].reshape(g.OG, -1)
            expected = {
                "columns": columns[n, rows],
                "y": y[n, outs],
                "share": G @ columns[n, rows].T,
                "grad_weight": grad_weight[outs],
                "products": W.T @ G,
                "grad_input": grad_input[n, ins],
                "counts": counts[n, ins],
            }
            for name, array in expected.items():
                assert block[name] == array.ravel().tolist(), f"{name}, block {n, k} of {where}"


def test_the_same_steps_and_the_same_memory(
    cases: list[dict[str, Any]], answers: dict[str, Any]
) -> None:
    for case, answer in zip(cases, answers["matrices"], strict=True):
        g = case["geometry"]
        options = {
            name: getattr(g, name)
            for name in ("stride", "padding", "dilation", "groups", "padding_mode")
        }
        widget = UnfoldMatrix(case["x"], case["weight"], case["grad_output"], **options)
        steps = []
        for stage in ("columns", "forward", "weight", "input"):
            widget.stage = stage
            steps.append(widget.steps)
        assert answer["steps"] == steps
        assert answer["memory"] == {
            "image": int(np.prod(g.x_shape)),
            "padded": g.N * g.C * int(np.prod(g.padded_size)),
            "columns": im2col.column_numbers(g),
        }
