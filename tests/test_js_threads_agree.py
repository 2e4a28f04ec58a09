"""Tiles, time, addresses and float32 sums in the browser are Python's, to the last bit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import integers, random_geometries

from convgrad import example
from convgrad.geometry import PADDING_MODES, ConvGeometry
from convgrad.implicit import TARGETS, gemm, left, result, right
from convgrad.rounding import arrivals, noise, running_sums, share_sums, tenths
from convgrad.schedule import Schedule, Tile
from convgrad.widgets.operands import MOST_CELLS, MOST_PRODUCTS
from convgrad.widgets.thread_fallback import figures
from convgrad.widgets.thread_grid import _usual

ORACLE = Path(__file__).parent / "js_threads_oracle.mjs"
CASES = 150
LIMITS = {"cells": MOST_CELLS, "products": MOST_PRODUCTS}
NAMES = ("x", "weight", "grad_output")


def shape_of(g: ConvGeometry, name: str) -> tuple[int, ...]:
    return {"x": g.x_shape, "weight": g.weight_shape, "grad_output": g.output_shape}[name]


def make_case(g: ConvGeometry, rng: np.random.Generator, target: str) -> dict[str, Any]:
    sizes = gemm(g, target)
    tile = [int(2 ** rng.integers(0, 5)) for _ in range(3)]
    entries = rng.integers(0, (sizes.M, sizes.K, sizes.N), (12, 3))
    arrays = {name: integers(rng, shape_of(g, name)) for name in NAMES}
    return {
        "geometry": g,
        "options": {
            "target": target,
            "tile": tile,
            "splits": int(rng.choice([1, 2, 3, 5, 8, 40])),
            "processors": int(rng.integers(1, 20)),
            "two_passes": bool(rng.integers(2)),
        },
        "entries": entries,
        "cell": [int(rng.integers(size)) for size in (sizes.groups, sizes.M, sizes.N)],
        "seed": int(rng.integers(10_000)),
        "arrays": arrays if rng.integers(3) else None,
    }


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    rng = np.random.default_rng(18)
    drawn = [g for g in random_geometries(3 * CASES, seed=18) if g.N][:CASES]
    made = [make_case(g, rng, TARGETS[k % 3]) for k, g in enumerate(drawn)]
    layer = make_case(example("F").geometry, rng, "weight")
    layer["options"] |= {"tile": [128, 128, 32], "splits": 26, "processors": 132}
    layer["arrays"] = None
    return [*made, layer]


@pytest.fixture(scope="module")
def answers(cases: list[dict[str, Any]], node: Any) -> list[dict[str, Any]]:
    def plain(value: Any) -> Any:
        if isinstance(value, ConvGeometry):
            return value.as_dict()
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, np.ndarray) and value.ndim == 4:
            return {"shape": list(value.shape), "data": value.ravel().tolist()}
        return value.tolist() if isinstance(value, np.ndarray) else value

    run = subprocess.run(
        [node.node, str(ORACLE)],
        input=json.dumps({"cases": [plain(case) for case in cases], "limits": LIMITS}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def schedule_of(case: dict[str, Any]) -> Schedule:
    options = case["options"] | {"tile": Tile(*case["options"]["tile"])}
    return Schedule(case["geometry"], **options)


def bits(values: np.ndarray) -> list[str]:
    return [f"{value:08x}" for value in np.asarray(values, np.float32).view(np.uint32)]


def test_the_draws_cover_what_can_go_wrong(cases: list[dict[str, Any]]) -> None:
    made = [(case["geometry"], schedule_of(case)) for case in cases]
    shares = {
        "1 < groups < C": [1 < g.groups < g.C for g, _ in made],
        "padding": [any(map(any, g.padding)) for g, _ in made],
        "stride ≠ dilation": [g.stride != g.dilation for g, _ in made],
        "fewer parts than splits": [1 < s.parts < s.splits for _, s in made],
        "several waves": [s.waves > 1 for _, s in made],
        "idle processors": [s.busy < 1 for _, s in made],
        "a shorter last share": [s.steps % s.share > 0 for _, s in made],
    }
    for what, hits in shares.items():
        assert np.mean(hits) >= 0.08, f"{what} in only {np.mean(hits):.0%} of the draws"
    assert {g.padding_mode for g, _ in made} == set(PADDING_MODES)


def test_the_same_tiles_and_the_same_time(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    for case, answer in zip(cases, answers, strict=True):
        s = schedule_of(case)
        where = f"{case['options']} of {s.geometry.describe()}"
        assert answer["gemm"] == list(s.gemm), where
        for name in ("down", "across", "tiles", "steps", "share", "parts", "programs"):
            assert answer["cut"][name] == getattr(s, name), (name, where)
        assert answer["runs"] == [list(run) for run in s.runs], where
        assert answer["programs"] == [list(s.program(run.program)) for run in s.runs], where
        counts = answer["counts"]
        assert counts["busy"] == s.busy
        assert counts["lastWave"] == s.last_wave
        for name in ("time", "waves", "workspace", "atomics"):
            assert counts[name] == getattr(s, name), (name, where)
        assert [tuple(each) for each in answer["figures"]] == figures(s), where


def test_the_same_tiles_to_begin_with(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    for case, answer in zip(cases, answers, strict=True):
        tile, processors = _usual(case["geometry"], case["options"]["target"])
        assert answer["usual"] == {
            "tile": list(tile),
            "processors": processors,
            "splits": 1,
        }


def test_the_same_addresses(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g, target, group = case["geometry"], case["options"]["target"], case["cell"][0]
        for (m, k, n), (a, b, index) in zip(case["entries"], answer["entries"], strict=True):
            assert a == left(g, target, group, m, k), g.describe()
            assert b == right(g, target, group, k, n), g.describe()
            shape = {"weight": g.weight_shape, "forward": g.output_shape}.get(target)
            if shape is None:
                sizes = g.padded_size if g.padding_mode != "zeros" else (g.H, g.W)
                shape = (g.N, g.C, *sizes)
            assert np.ravel_multi_index(index, shape) == result(g, target, group, m, n)


def test_the_same_sums_to_the_last_bit(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    differ = 0
    for case, answer in zip(cases, answers, strict=True):
        s, arrays = schedule_of(case), case["arrays"]
        numbers = {name: tenths(arrays[name]) if arrays else noise(name) for name in NAMES}
        group, row, col = case["cell"]
        shares = share_sums(s, numbers, group, row, col)
        assert answer["shares"] == bits(shares), s.geometry.describe()
        tile = (group * s.down + row // s.tile.M) * s.across + col // s.tile.N
        orders = [arrivals(s, tile, case["seed"] + run) for run in range(4)]
        assert answer["orders"] == orders
        sums = [running_sums(shares, order) for order in orders]
        assert answer["sums"] == [bits(each) for each in sums]
        differ += len({float(each[-1]) for each in sums}) > 1
    assert differ >= 5, "runs that differ are among the cases"
