"""What GradientViews computes in the browser is Python's, digit for digit.

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

from convgrad import correlate, loops
from convgrad.geometry import PADDING_MODES, ConvGeometry
from convgrad.widgets import GradientViews
from convgrad.widgets.gradient_views import VIEWS
from convgrad.widgets.views_fallback import _busiest
from convgrad.windows import windows

ORACLE = Path(__file__).parent / "js_views_oracle.mjs"
CASES = 100
MOST_PRODUCTS = 2_500  # of one case, to keep the messages short
MOST_CELLS = 1_500  # of an array, to be one that the widget draws


def make_cases() -> list[dict[str, Any]]:
    """Random geometries; small integers; image, kernel and channel, some of which do not exist."""
    rng = np.random.default_rng(41)
    drawn = (
        g
        for g in random_geometries(6 * CASES, seed=53)
        if g.N
        and np.prod(g.output_shape) * g.CG * g.KH * g.KW <= MOST_PRODUCTS
        and max(map(np.prod, (g.x_shape, g.weight_shape, g.output_shape))) <= MOST_CELLS
    )
    return [
        {
            "geometry": g,
            "x": integers(rng, g.x_shape),
            "weight": integers(rng, g.weight_shape),
            "grad_output": integers(rng, g.output_shape),
            "wish": [int(rng.integers(-1, size + 1)) for size in (g.N, g.O, g.CG)],
        }
        for _, g in zip(range(CASES), drawn, strict=False)
    ]


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return make_cases()


@pytest.fixture(scope="module")
def answers(cases: list[dict[str, Any]], node: Any) -> list[dict[str, Any]]:
    """Everything in one run of Node."""

    def plain(value: Any) -> Any:
        if isinstance(value, ConvGeometry):
            return value.as_dict()
        if isinstance(value, np.ndarray):
            return {"shape": list(value.shape), "data": value.ravel().tolist()}
        return value

    message = [{key: plain(value) for key, value in case.items()} for case in cases]
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


def slices(case: dict[str, Any]) -> tuple[int, int, int]:
    g = case["geometry"]
    n, o, c = (
        min(max(wish, 0), size - 1)
        for wish, size in zip(case["wish"], (g.N, g.O, g.CG), strict=True)
    )
    return n, o, c


def of_kernel(case: dict[str, Any], o: int, cells: int | None = None) -> np.ndarray:
    """The input gradient of kernel o alone, by the definition; of its first cells of g."""
    upstream = np.zeros_like(case["grad_output"])
    upstream[:, o] = case["grad_output"][:, o]
    if cells is not None:
        upstream.reshape(*upstream.shape[:2], -1)[:, :, cells:] = 0
    return loops.grad_input(upstream, case["weight"], case["geometry"])


def of_image(case: dict[str, Any], n: int) -> np.ndarray:
    """The weight gradient of image n alone, by the definition."""
    upstream = np.zeros_like(case["grad_output"])
    upstream[n] = case["grad_output"][n]
    return loops.grad_weight(upstream, case["x"], case["geometry"])


def widget(case: dict[str, Any]) -> GradientViews:
    """The widget of a case, made once."""
    if "widget" in case:
        return case["widget"]
    g = case["geometry"]
    conv = {
        name: getattr(g, name)
        for name in ("stride", "padding", "dilation", "groups", "padding_mode")
    }
    image, kernel, channel = case["wish"]
    case["widget"] = GradientViews(
        *(case["x"], case["weight"], case["grad_output"]),
        **conv,
        image=image,
        kernel=kernel,
        channel=channel,
    )
    return case["widget"]


def test_the_draws_cover_what_can_go_wrong(cases: list[dict[str, Any]]) -> None:
    drawn = [case["geometry"] for case in cases]
    assert len(drawn) == CASES
    shares = {
        "1 < groups < C": [1 < g.groups < g.C for g in drawn],
        "several kernels a group": [g.groups > 1 and g.OG > 1 for g in drawn],
        "a leftover": [max(g.leftover) > 0 for g in drawn],
        "a crop": [max(g.surplus) > 0 for g in drawn],
        "stride ≠ dilation": [g.stride != g.dilation for g in drawn],
        "padding": [any(map(any, g.padding)) for g in drawn],
        "several images": [g.N > 1 for g in drawn],
    }
    for what, hits in shares.items():
        assert np.mean(hits) >= 0.2, f"{what} in only {np.mean(hits):.0%} of the draws"
    assert {g.padding_mode for g in drawn} == set(PADDING_MODES)


def test_the_same_steps_and_slices(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    for case, answer in zip(cases, answers, strict=True):
        views = widget(case)
        steps = []
        for view in VIEWS:
            views.view = view
            steps.append(views.steps)
        assert answer["steps"] == steps, case["geometry"].describe()
        assert answer["slices"] == [views.image, views.kernel, views.channel] == list(slices(case))


def test_kernel_shares(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        n, o, c = slices(case)
        channel = g.channel(o, c)
        assert answer["mates"] == [k for k in range(g.O) if g.group_of(k) == g.group_of(o)]
        for mate, share in zip(answer["mates"], answer["shares"], strict=True):
            assert share == of_kernel(case, mate)[n, channel].ravel().tolist(), g.describe()
        whole = loops.grad_input(case["grad_output"], case["weight"], g)
        assert answer["whole"] == whole[n, channel].ravel().tolist()
        views = widget(case)
        shares = views.kernel_shares
        np.testing.assert_array_equal(shares[o], of_kernel(case, o))
        np.testing.assert_array_equal(shares.sum(axis=0), whole)
        np.testing.assert_array_equal(views.grad_input, whole)


def test_what_has_been_thrown(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        n, o, c = slices(case)
        for cells in {0, 1, g.OH * g.OW // 2, g.OH * g.OW}:
            expected = of_kernel(case, o, cells)[n, g.channel(o, c)]
            assert answer["thrown"][cells] == expected.ravel().tolist(), (g.describe(), cells)
        for l, window in enumerate(answer["windows"]):
            p, q = divmod(l, g.OW)
            expected = []
            for i, j in np.ndindex(g.KH, g.KW):
                place = tuple(map(int, g.source(p, q, i, j)))
                cell = g.cell(*place)
                expected.append([i, j, list(place), list(cell) if cell else None])
            assert window == expected, g.describe()


def test_the_taps_that_are_met_are_the_kernel_turned(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    whole = gaps = 0
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        cell = tuple(answer["busiest"])
        assert cell == _busiest(g), g.describe()
        expected = [
            [p, q, [g.KH - 1 - i, g.KW - 1 - j]]
            for p, q, i, j in np.ndindex(g.OH, g.OW, g.KH, g.KW)
            if tuple(map(int, g.source(p, q, i, j))) == cell
        ]
        assert answer["met"] == expected, g.describe()
        # in the reading order of g the taps go forward in the turned kernel, and never back
        places = [row * g.KW + col for *_, (row, col) in expected]
        assert places == sorted(places)
        assert len(set(places)) == len(places)
        if g.stride == (1, 1):
            whole += len(expected) == g.KH * g.KW > 1
        gaps += max(g.stride) > 1 and len(expected) < g.KH * g.KW
    assert whole, "the whole kernel has to appear; views.test.mjs shows it on example B"
    assert gaps > 20


def test_x_searched_with_g(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        n, o, c = slices(case)
        rows, cols = answer["size"]
        assert (rows - g.KH, cols - g.KW) == g.surplus
        one = ConvGeometry(**{**g.as_dict(), "N": 1, "C": 1, "O": 1, "groups": 1})
        search = correlate.swapped(one)
        assert search.output_shape == (1, 1, rows, cols)
        image = case["x"][n, g.channel(o, c)][None, None]
        kernel = case["grad_output"][n, o][None, None]
        found = loops.forward(image, kernel, search)[0, 0]
        taps = np.reshape(answer["searched"], (rows, cols))
        np.testing.assert_array_equal(taps, found, err_msg=g.describe())
        np.testing.assert_array_equal(taps[: g.KH, : g.KW], of_image(case, n)[o, c])
        # g lies where the search reads x, tap by tap
        seen = windows(np.arange(1.0, g.H * g.W + 1).reshape(1, 1, g.H, g.W), search)[0, 0]
        for k, under in enumerate(answer["under"]):
            i, j = divmod(k, cols)
            cells = [g.cell(h, v) for h, v in under]
            numbers = [cell[0] * g.W + cell[1] + 1 if cell else 0 for cell in cells]
            assert numbers == seen[i, j].ravel().tolist(), (g.describe(), i, j)


def test_g_spread_by_the_stride(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        (sh, sw), laid = g.stride, answer["spread"]
        assert laid["size"] == [sh * (g.OH - 1) + 1, sw * (g.OW - 1) + 1]
        assert laid["cells"] == [[sh * p, sw * q, p, q] for p, q in np.ndindex(g.OH, g.OW)]


def test_pages(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        _, o, c = slices(case)
        kernels = [k * g.OG + o % g.OG for k in range(g.groups)]
        assert [g.group_of(kernel) for kernel in kernels] == list(range(g.groups))
        for n, page in enumerate(answer["images"]):
            share = of_image(case, n)
            assert page == [share[kernel, c].ravel().tolist() for kernel in kernels], g.describe()
        views = widget(case)
        whole = loops.grad_weight(case["grad_output"], case["x"], g)
        np.testing.assert_array_equal(views.image_shares.sum(axis=0), whole)
        np.testing.assert_array_equal(views.grad_weight, whole)
        order = [{"n": n, "k": k} for n in range(g.N) for k in range(g.groups)]
        assert answer["pages"] == order
        for step, added in enumerate(answer["added"]):
            assert np.ravel(added).tolist() == [k < step for k in range(g.N * g.groups)]


def test_what_is_edited_is_what_is_drawn(
    cases: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> None:
    for case, answer in zip(cases, answers, strict=True):
        g = case["geometry"]
        n, o, c = slices(case)
        assert answer["operands"]["x"] == ["x", [n, g.channel(o, c), 0, 0]]
        assert answer["operands"]["w"] == ["weight", [o, c, 0, 0]]
        assert answer["operands"]["g"] == ["grad_output", [n, o, 0, 0]]
        cells = [["grad_output", [n, o, p, q]] for p, q in np.ndindex(g.OH, g.OW)]
        assert answer["operands"]["spread"] == cells
