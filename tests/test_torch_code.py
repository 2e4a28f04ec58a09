""" "Copy as PyTorch code" is run: the programs compute what is on the screen, digit for digit."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import integers, random_geometries

from convgrad import ConvGeometry, im2col, loops
from convgrad.geometry import PADDING_MODES

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

ORACLE = Path(__file__).parent / "torch_code_oracle.mjs"
CASES = 150
SHOWN = ("y", "grad_input", "grad_weight", "grad_bias")
KEPT_IN = {"grad_input": "x", "grad_weight": "weight", "grad_bias": "bias"}


def tensor(array: np.ndarray) -> dict[str, list]:
    return {"shape": list(array.shape), "data": array.ravel().tolist()}


def make_cases() -> list[dict[str, Any]]:
    """Random geometries, each with one to four things to print, every seventh with fractions."""
    rng = np.random.default_rng(31)
    # PyTorch pads an empty batch with zeros only; a widget shows at least one image
    drawn = (g for g in random_geometries(2 * CASES, seed=17) if g.N > 0)
    cases = []
    for k, g in zip(range(CASES), drawn, strict=False):
        scale = 1 / 8 if k % 7 == 0 else 1  # eighths: their sums are exact as well
        cases.append(
            {
                "geometry": g,
                "x": integers(rng, g.x_shape) * scale,
                "weight": integers(rng, g.weight_shape) * scale,
                "grad_output": integers(rng, g.output_shape) * scale,
                "show": [SHOWN[k % 4]] if k % 3 else list(SHOWN),
            }
        )
    return cases


@pytest.fixture(scope="module")
def asked() -> list[dict[str, Any]]:
    return make_cases()


@pytest.fixture(scope="module")
def programs(asked: list[dict[str, Any]], node: Any) -> list[str]:
    """The program for each case, in one run of Node."""
    return write(node, asked)


def write(node: Any, cases: list[dict[str, Any]]) -> list[str]:
    message = [
        {
            key: tensor(value) if isinstance(value, np.ndarray) else value
            for key, value in case.items()
        }
        | {"geometry": case["geometry"].as_dict()}
        for case in cases
    ]
    return ask(node, message)


def of_widgets(node: Any, widgets: list[Any]) -> list[str]:
    """What each widget's button copies, for what the widget holds now."""
    return ask(
        node, [{"widget": widget._bundle, "state": widget.get_state()} for widget in widgets]
    )


def ask(node: Any, message: list[dict[str, Any]]) -> list[str]:
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


def expected(case: dict[str, Any]) -> dict[str, np.ndarray]:
    g, x, weight, grad_output = (case[key] for key in ("geometry", "x", "weight", "grad_output"))
    return {
        "y": loops.forward(x, weight, g),
        "grad_input": loops.grad_input(grad_output, weight, g),
        "grad_weight": loops.grad_weight(grad_output, x, g),
        "grad_bias": loops.grad_bias(grad_output, g),
    }


def execute(program: str) -> tuple[dict[str, Any], str]:
    """The names that a program leaves behind, and what it prints."""
    names: dict[str, Any] = {}
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(program, names)
    finally:
        torch.set_printoptions(profile="default")
    return names, said.getvalue()


def test_the_cases_cover_what_needs_care(asked: list[dict[str, Any]]) -> None:
    drawn = [case["geometry"] for case in asked]
    assert len(drawn) == CASES
    assert {g.padding_mode for g in drawn} == set(PADDING_MODES)
    uneven = [any(before != after for before, after in g.padding) for g in drawn]
    assert np.mean(uneven) > 0.25
    assert np.mean([g.groups > 1 for g in drawn]) > 0.25


def test_they_compute_what_is_on_the_screen(
    asked: list[dict[str, Any]], programs: list[str]
) -> None:
    for case, program in zip(asked, programs, strict=True):
        names, printed = execute(program)
        right = expected(case)
        for shown in case["show"]:
            value = names["y"].detach() if shown == "y" else names[KEPT_IN[shown]].grad
            np.testing.assert_array_equal(value.numpy(), right[shown], err_msg=program)
        # and what is printed is that
        torch.set_printoptions(precision=6 if "precision" in program else 4)
        lines = [str(torch.from_numpy(right[shown])) for shown in case["show"]]
        torch.set_printoptions(profile="default")
        assert printed == "\n".join(lines) + "\n", program


def test_they_hold_nothing_that_is_not_needed(
    asked: list[dict[str, Any]], programs: list[str]
) -> None:
    for case, program in zip(asked, programs, strict=True):
        g = case["geometry"]
        plain = g.padding_mode == "zeros" and all(a == b for a, b in g.padding)
        padded = any(map(any, g.padding))
        assert ("F.pad(" in program) == (padded and not plain), program
        assert ("groups=" in program) == (g.groups > 1), program
        assert ("bias" in program) == ("grad_bias" in case["show"]), program
        assert ("backward" in program) == (case["show"] != ["y"]), program
        for name in ("stride", "dilation"):
            assert (f"{name}=" in program) == (getattr(g, name) != (1, 1)), program


def test_every_number_is_written_in_full(node: Any) -> None:
    numbers = [0.1, -1 / 3, 1e-7, 1e21, -123456.75, 5e-324, 2**53, 0.0]
    g = ConvGeometry(C=1, H=2, W=4, O=1, KH=1, KW=1)
    case = {
        "geometry": g,
        "x": np.array(numbers).reshape(g.x_shape),
        "weight": np.ones(g.weight_shape),
        "grad_output": np.ones(g.output_shape),
        "show": ["y"],
    }
    (program,) = write(node, [case])
    names, _ = execute(program)
    assert names["x"].ravel().tolist() == numbers
    (literal,) = [
        each.value.args[0]
        for each in ast.parse(program).body
        if isinstance(each, ast.Assign) and each.targets[0].id == "x"
    ]
    assert np.ravel(ast.literal_eval(literal)).tolist() == numbers


def test_a_bias_is_added_and_gets_its_gradient(node: Any) -> None:
    g = ConvGeometry(N=2, C=2, H=4, W=3, O=4, KH=2, KW=2, groups=2, padding=((1, 0), (0, 1)))
    rng = np.random.default_rng(6)
    case = {
        "geometry": g,
        "x": integers(rng, g.x_shape),
        "weight": integers(rng, g.weight_shape),
        "bias": integers(rng, g.bias_shape),
    }
    y = loops.forward(case["x"], case["weight"], g) + case["bias"][:, None, None]
    grad_output = integers(rng, g.output_shape)
    forward, backward = write(
        node,
        [
            {**case, "show": ["y"]},
            {**case, "grad_output": grad_output, "show": ["y", "grad_bias"]},
        ],
    )
    names, _ = execute(forward)
    np.testing.assert_array_equal(names["y"].numpy(), y)
    assert "grad" not in forward
    names, _ = execute(backward)
    np.testing.assert_array_equal(names["bias"].grad.numpy(), loops.grad_bias(grad_output, g))


def test_a_large_array_is_printed_whole(node: Any) -> None:
    g = ConvGeometry(C=4, H=17, W=17, O=2, KH=3, KW=3, padding=1)
    rng = np.random.default_rng(2)
    case = {
        "geometry": g,
        "x": integers(rng, g.x_shape),
        "weight": integers(rng, g.weight_shape),
        "grad_output": integers(rng, g.output_shape),
        "show": ["grad_input"],
    }
    (program,) = write(node, [case])
    _, printed = execute(program)
    assert "..." not in printed
    numbers, _, _ = printed.partition("dtype")
    assert numbers.count(".") == g.C * g.H * g.W, "a number each"


# ---- what each widget copies -----------------------------------------------------------------


def of_size(k: int) -> Iterator[ConvGeometry]:
    """Random geometries that a widget can draw."""
    drawn = (g for g in random_geometries(8 * k, seed=29) if g.N > 0)
    return itertools.islice((g for g in drawn if max(map(np.prod, g_shapes(g))) < 400), k)


def g_shapes(g: ConvGeometry) -> tuple[tuple[int, ...], ...]:
    return g.x_shape, g.weight_shape, g.output_shape


def arrays_of(g: ConvGeometry, rng: np.random.Generator) -> list[np.ndarray]:
    return [integers(rng, shape) for shape in g_shapes(g)]


def conv_of(g: ConvGeometry) -> dict[str, Any]:
    names = ("stride", "padding", "dilation", "groups", "padding_mode")
    return {name: getattr(g, name) for name in names}


def test_matrices_copy_the_stage_that_is_shown(node: Any) -> None:
    widgets = pytest.importorskip("convgrad.widgets")
    rng = np.random.default_rng(3)
    made = [
        widgets.UnfoldMatrix(*arrays_of(g, rng), stage=stage, **conv_of(g))
        for g in of_size(24)
        for stage in ("columns", "forward", "weight", "input")
    ]
    for matrix, program in zip(made, of_widgets(node, made), strict=True):
        names, _ = execute(program)
        g, shown = matrix.geometry, matrix.products
        if matrix.stage == "columns":
            right = im2col.unfold(matrix.x, g)
            assert "weight" not in program
            got = names["columns"].numpy()
        else:
            field = {"forward": "y", "weight": "grad_weight", "input": "grad_input"}[matrix.stage]
            right = getattr(shown, field)
            value = names["y"].detach() if field == "y" else names[KEPT_IN[field]].grad
            got = value.numpy()
        np.testing.assert_array_equal(got, right, err_msg=program)


def test_blocks_copy_the_lines_that_they_show(node: Any) -> None:
    widgets = pytest.importorskip("convgrad.widgets")
    rng = np.random.default_rng(4)
    made = [
        widgets.GroupBlocks(*arrays_of(g, rng), transpose=transpose, per_image=each, **conv_of(g))
        for g in of_size(24)
        for transpose in (True, False)
        for each in (True, False)
    ]
    wrong = 0
    for blocks, program in zip(made, of_widgets(node, made), strict=True):
        names, printed = execute(program)
        got = names["grad_weights" if blocks.per_image else "grad_weight"]
        shares = blocks.per_image_gradients
        wrong += not blocks.transpose and not np.array_equal(shares, blocks.without_transpose)
        if not blocks.transpose and blocks.geometry.padding_mode == "zeros":
            shares = blocks.without_transpose
        elif not blocks.transpose:
            continue  # the mirror in Python pads before it mixes maps up
        right = shares if blocks.per_image else shares.sum(axis=0)
        np.testing.assert_array_equal(got.numpy(), right, err_msg=program)
        assert printed == f"{got}\n", program
    assert wrong > 5, "leaving the transpose out has to matter"


def test_devices_copy_their_parts_and_the_sum(node: Any) -> None:
    widgets = pytest.importorskip("convgrad.widgets")
    rng = np.random.default_rng(7)
    ways = itertools.product(("images", "rows"), ("sum", "mean"), ("sum", "average"))
    made = [
        widgets.ShardSum(*arrays_of(g, rng), view=view, loss=loss, combine=combine, **conv_of(g))
        for (view, loss, combine), g in itertools.product(ways, of_size(12))
    ]
    for shards, program in zip(made, of_widgets(node, made), strict=True):
        names, printed = execute(program)
        right = shards.agreed[: shards.weight.size].reshape(shards.weight.shape)
        got = names["grad_weight"]
        np.testing.assert_allclose(got.numpy(), right, rtol=1e-12, atol=1e-12, err_msg=program)
        if shards.view == "rows" or shards.loss == "sum":
            np.testing.assert_array_equal(got.numpy(), right)  # whole numbers, or their thirds
        assert len(names["parts"]) == shards.devices
        assert printed == f"{got}\n", program


def test_gradient_views_copy_the_view_that_is_shown(node: Any) -> None:
    widgets = pytest.importorskip("convgrad.widgets")
    rng = np.random.default_rng(5)
    made = [
        widgets.GradientViews(
            *arrays_of(g, rng),
            view=view,
            image=g.N - 1,
            kernel=g.O - 1,
            channel=g.CG - 1,
            **conv_of(g),
        )
        for g in of_size(24)
        for view in ("kernels", "scatter-gather", "convolution", "batch")
    ]
    for views, program in zip(made, of_widgets(node, made), strict=True):
        names, printed = execute(program)
        if views.view == "scatter-gather":
            right, got = views.grad_input, names["x"].grad
            # and what stands in the grids: the share of the one kernel
            share = views.kernel_shares[views.kernel]
            np.testing.assert_array_equal(names["share"].numpy(), share, err_msg=program)
            shown = names["share"][views.image, views.geometry.channel(views.kernel, views.channel)]
            assert printed.startswith(f"{shown}\n"), program
        elif views.view == "convolution":
            right = views.image_shares[views.image, views.kernel, views.channel]
            got = names["share"][0, 0]
            assert f"grad_weight[{views.kernel}, {views.channel}]" in program
        else:
            kernels = views.view == "kernels"
            right = views.kernel_shares if kernels else views.image_shares
            got = torch.stack(names["shares"])
            whole = views.grad_input if kernels else views.grad_weight
            last = printed.strip().rpartition("grad_input " if kernels else "grad_weight ")[2]
            assert last == f"{torch.tensor(whole)}", program
        np.testing.assert_array_equal(got.numpy(), right, err_msg=program)


def test_the_explorer_copies_a_layer_with_its_sizes_and_counts(node: Any) -> None:
    widgets = pytest.importorskip("convgrad.widgets")
    made = [
        widgets.GeometryExplorer(g, transposed=back) for g in of_size(60) for back in (False, True)
    ]
    kinds = set()
    for explorer, program in zip(made, of_widgets(node, made), strict=True):
        names, printed = execute(program)
        g = explorer.geometry
        kind = "ConvTranspose2d" if "layer = nn.ConvTranspose2d(" in program else "Conv2d"
        kinds.add((kind, explorer.transposed, "[:, :," in program, "F.pad" in program))
        x = names["x"] if kind == "ConvTranspose2d" else names["x"].grad
        np.testing.assert_array_equal(x[0, 0].numpy(), explorer.uses, err_msg=program)
        assert tuple(names["y"].shape) == (1, 1, g.OH, g.OW), program
        size = (g.H, g.W) if kind == "ConvTranspose2d" else (g.OH, g.OW)
        line, _, _ = printed.partition("\n")
        assert line == f"{(1, 1, *size)}", program
        assert f"# {line}" in program, "said beforehand"
        copied = g.padding_mode != "zeros" and any(map(any, g.padding))
        assert (kind == "ConvTranspose2d") == (explorer.transposed and not copied)
    # with and without a crop or a border of its own, and the way back of the other borders
    assert kinds == {
        ("Conv2d", False, False, False),
        ("Conv2d", False, False, True),
        ("Conv2d", True, False, True),
        ("ConvTranspose2d", True, False, False),
        ("ConvTranspose2d", True, True, False),
    }
