"""Columns, products, folds and the movement of groups in the browser are Python's, digit for digit.

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

from convgrad import grouped, im2col, loops
from convgrad.geometry import PADDING_MODES, ConvGeometry
from convgrad.widgets import GroupBlocks, UnfoldMatrix
from convgrad.widgets.blocks_fallback import code_lines

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


@pytest.mark.slow
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


# ---- groups ------------------------------------------------------------------------------------

WAYS = [(transpose, per_image) for transpose in (True, False) for per_image in (False, True)]


def blocks_of(case: dict[str, Any], **options: Any) -> GroupBlocks:
    g = case["geometry"]
    conv = {
        name: getattr(g, name)
        for name in ("stride", "padding", "dilation", "groups", "padding_mode")
    }
    return GroupBlocks(case["x"], case["weight"], case["grad_output"], **conv, **options)


def test_the_same_gradients_of_every_image(
    cases: list[dict[str, Any]], answers: dict[str, Any]
) -> None:
    differ = 0
    for case, answer in zip(cases, answers["groups"], strict=True):
        g, widget = case["geometry"], blocks_of(case)
        shares = grouped.grad_weight_per_image(case["grad_output"], case["x"], g)
        flat = (g.N, g.O, g.CG, g.KH * g.KW)
        right, wrong = answer["shares"]
        assert right == shares.reshape(flat).tolist(), g.describe()
        assert right == widget.per_image_gradients.reshape(flat).tolist()
        assert wrong == widget.without_transpose.reshape(flat).tolist(), g.describe()
        whole = loops.grad_weight(case["grad_output"], case["x"], g)
        assert answer["grad_weight"] == whole.reshape(flat[1:]).tolist()
        assert np.array_equal(widget.grad_weight, whole)
        # the mix-up is the one of cards where there is one image
        differ += right != wrong
        if g.CG == 1 or g.N * g.groups == 1:
            assert right == wrong, "then every map stands right by luck"
    assert differ >= len(cases) / 4


def test_the_mix_up_of_one_image_is_dealing_like_cards(cases: list[dict[str, Any]]) -> None:
    from convgrad.mutants import MUTANTS

    seen = 0
    for case in cases:
        g = case["geometry"]
        if g.N != 1 or not 1 < g.groups < g.C:
            continue
        seen += 1
        dealt = MUTANTS["group_interleaved"].function(case["grad_output"], case["x"], g)
        assert np.array_equal(blocks_of(case).without_transpose[0], dealt)
    assert seen >= 5


def test_every_map_moves_as_numpy_reshapes(
    cases: list[dict[str, Any]], answers: dict[str, Any]
) -> None:
    """Each map is one number here, its place in the array; NumPy says where it goes."""
    for case, answer in zip(cases, answers["groups"], strict=True):
        g = case["geometry"]
        N, C, O, CG, G = g.N, g.C, g.O, g.CG, g.groups
        x, upstream = np.arange(N * C).reshape(N, C), np.arange(N * O).reshape(N, O)
        for (transpose, per_image), way in zip(WAYS, answer["ways"], strict=True):
            assert way["steps"] == blocks_of(case, transpose=transpose, per_image=per_image).steps
            split = x.reshape(N * G, CG)
            expected = {
                "start": x,
                "split": split,
                "turn": split.T,
                "deal": x.reshape(CG, N * G),
            }
            for move, tables in zip(way["moves"], way["tables"], strict=True):
                where = f"{move} of {g.describe()}"
                if move in expected:
                    assert place(tables["x"], (C,)) == expected[move].tolist(), where
                    assert tables["x"]["shape"] == [*expected[move].shape, g.H, g.W], where
                if move == "list":
                    assert place(tables["g"], (O,)) == [upstream.ravel().tolist()], where
                    assert tables["g"]["shape"] == [N * O, 1, g.OH, g.OW], where
            # the result: what the convolution gives, then reshaped and turned
            t = np.arange(CG * N * O).reshape(CG, N * O)
            last = way["moves"].index("meet") + N * G - 1
            assert place(way["tables"][last]["result"], (N, O)) == t.tolist()
            rows, cols = g.KH + g.surplus[0], g.KW + g.surplus[1]
            assert way["tables"][last]["result"]["shape"] == [CG, N * O, rows, cols]
            final = way["tables"][way["moves"].index("weight")]["result"]
            if per_image:
                turned = t.reshape(CG, N, O).transpose(1, 2, 0).reshape(N * O, CG)
                assert place(final, (N, O)) == turned.tolist()
                assert final["shape"] == [N, O, CG, g.KH, g.KW]
            else:
                assert final["shape"] == list(g.weight_shape)
                places = {(tuple(at), index[0], index[2]) for index, at in final["maps"]}
                assert places == {((o, c), c, o) for o in range(O) for c in range(CG)}


def place(table: dict[str, Any], sizes: tuple[int, ...]) -> list[list[int]]:
    """The table as rows of numbers: each map by its place in the array it came from."""
    rows = 1 + max(at[0] for _, at in table["maps"])
    cols = 1 + max(at[1] for _, at in table["maps"])
    drawn = np.full((rows, cols), -1)
    for index, at in table["maps"]:
        number = index[0]
        for k, size in zip(index[1:], sizes, strict=True):
            number = number * size + k
        drawn[tuple(at)] = number
    return drawn.tolist()


def test_the_same_code_without_javascript(
    cases: list[dict[str, Any]], answers: dict[str, Any]
) -> None:
    for case, answer in zip(cases, answers["groups"], strict=True):
        for (transpose, per_image), way in zip(WAYS, answer["ways"], strict=True):
            if transpose:
                assert way["code"] == code_lines(case["geometry"], per_image)


@pytest.mark.slow
@pytest.mark.oracle
def test_the_code_on_the_screen_runs_and_is_right(
    cases: list[dict[str, Any]], answers: dict[str, Any]
) -> None:
    torch = pytest.importorskip("torch")
    for case, answer in zip(cases, answers["groups"], strict=True):
        for (transpose, per_image), way in zip(WAYS, answer["ways"], strict=True):
            names = {
                "F": torch.nn.functional,
                "x": torch.from_numpy(case["x"].copy()),
                "g": torch.from_numpy(case["grad_output"].copy()),
            }
            exec("\n".join(way["code"]), names)
            got = names["grad_weights" if per_image else "grad_weight"].numpy()
            widget = blocks_of(case)
            shares = widget.per_image_gradients if transpose else widget.without_transpose
            np.testing.assert_array_equal(got, shares if per_image else shares.sum(axis=0))
