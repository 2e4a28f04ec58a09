"""*From nn.Conv2d to convolution_backward* tells the truth: numbers, pictures, names, claims."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from pages import PAGES, alt_text, spoken

from convgrad import ConvGeometry, example, exercises, loops, windows
from convgrad.checks import random_operands
from convgrad.exercises import convolution_backward as bank
from convgrad.exercises.tensors import options

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from convgrad.autograd import calls  # noqa: E402
from convgrad.figures.chapters import convolution_backward as pictures  # noqa: E402

PAGE = "convolution_backward"
pytestmark = pytest.mark.oracle

aten = torch.ops.aten.convolution_backward


def tensors(letter: str) -> tuple[Any, ...]:
    return tuple(map(torch.from_numpy, example(letter).arrays()))


# ---- the worked example ----------------------------------------------------------------------


def test_the_cell_worked_by_hand():
    geometry = example("C").geometry
    _, weight, _, g = example("C").arrays()
    outputs = product(range(geometry.OH), range(geometry.OW))
    taps = list(product(range(geometry.KH), range(geometry.KW)))
    meeting = [
        (*at, *tap) for at in outputs for tap in taps if geometry.source(*at, *tap) == (2, 2)
    ]
    assert meeting == [(0, 0, 2, 2), (0, 1, 2, 0), (1, 0, 0, 2), (1, 1, 0, 0)]
    products = [g[0, 0, p, q] * weight[0, 0, i, j] for p, q, i, j in meeting]
    assert products == [-3, 2, 0, -8]
    to_x = loops.grad_input(g, weight, geometry)
    assert sum(products) == to_x[0, 0, 2, 2] == -9
    assert not to_x[..., -1, :].any()  # the leftover


def test_the_picture_of_the_cell_in_words():
    _, weight, _, g = example("C").arrays()
    alt = alt_text(PAGE, "one_cell(")
    assert spoken(g[0, 0], " over ") in alt
    assert spoken(weight[0, 0]) in alt
    geometry = example("C").geometry
    assert f"{geometry.H} by {geometry.W} cells" in alt
    assert "cell (2, 2) is lit: −9" in alt
    words = pictures.one_cell().words()
    assert words.count("−9") == 2  # that cell, and another one
    assert {"g", "w", "∂L/∂x"} <= set(words)


# ---- the chain -------------------------------------------------------------------------------


def test_the_picture_of_the_chain_names_what_is_called():
    layer, x = nn.Conv2d(1, 1, 3), torch.ones(2, 1, 5, 5, requires_grad=True)
    names = calls(lambda: layer(x).sum().backward()).names
    *_, lowest = pictures.WAY_DOWN
    _, step, back = pictures.WAY_BACK
    where = [names.index(each) for each in ("aten::conv2d", lowest, step, back)]
    assert where == sorted(where)
    assert type(layer(x).grad_fn).__name__ == step
    assert set(pictures.WORKERS) <= set(torch._C._ConvBackend.__members__)
    for kept in pictures.KEPT:
        assert hasattr(layer(x).grad_fn, f"_saved_{kept}")


def test_the_picture_of_the_chain_in_words():
    alt, words = alt_text(PAGE, "chain("), pictures.chain().words()
    for word in words:
        assert word in alt or word in ("keeps", "x and w", "forward", "backward"), word
    for said in ("forward", "backward", "keeps x and w"):
        assert said in alt
    assert alt.index("forward") < alt.index("F.conv2d") < alt.index("ConvolutionBackward0")


def test_what_is_kept_is_no_copy_and_is_given_up():
    layer, x = nn.Conv2d(1, 1, 3), torch.ones(1, 1, 5, 5, requires_grad=True)
    y = layer(x)
    assert y.grad_fn._saved_input.data_ptr() == x.data_ptr()
    assert y.grad_fn._saved_weight.data_ptr() == layer.weight.data_ptr()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = y.grad_fn._saved_input


@pytest.mark.parametrize(
    ("options", "is_copy"),
    [
        ({"padding": 1}, False),
        ({"padding": (2, 1)}, False),
        ({"padding": 1, "padding_mode": "circular"}, True),
        ({"padding": 1, "padding_mode": "reflect"}, True),
        ({"padding": "same"}, False),
    ],
)
def test_a_border_of_copies_is_a_step_of_its_own(options, is_copy):
    layer, x = nn.Conv2d(1, 1, 3, **options), torch.ones(1, 1, 5, 5)
    kept = layer(x).grad_fn._saved_input
    assert (kept.shape != x.shape) is is_copy


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_an_uneven_border_is_a_step_of_its_own_too():
    kept = nn.Conv2d(1, 1, 2, padding="same")(torch.ones(1, 1, 5, 5)).grad_fn._saved_input
    assert kept.shape == (1, 1, 6, 6)


# ---- the operation ---------------------------------------------------------------------------


def test_the_arguments_are_those_of_the_table():
    names = [each.name for each in aten.default._schema.arguments]
    assert len(names) == 11
    rows = re.findall(r"^\| (`.*?) \|", PAGES[PAGE].read_text("utf-8"), re.M)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == names


@pytest.mark.parametrize("letter", "ABCD")
def test_no_number_of_the_missing_operand_is_looked_at(letter):
    x, weight, _, g = tensors(letter)
    geometry = example(letter).geometry
    how = [list(each) for each in options(geometry).values()]
    rest = [False, [0, 0], geometry.groups]

    def call(x, weight, mask):
        return aten(g, x, weight, None, *how, *rest, mask)

    nothing = float("nan")  # if it were looked at, it would show
    to_weight = call(x, torch.full_like(weight, nothing), [False, True, False])[1]
    to_x = call(torch.full_like(x, nothing), weight, [True, False, False])[0]
    arrays = example(letter).arrays()
    expected = loops.grad_weight(arrays.grad_output, arrays.x, geometry)
    assert np.array_equal(to_weight.numpy(), expected)
    expected = loops.grad_input(arrays.grad_output, arrays.weight, geometry)
    assert np.array_equal(to_x.numpy(), expected)


@pytest.mark.slow  # another process with PyTorch
def test_no_bias_sizes_and_no_image_end_the_process():
    """The page warns of it; when this fails, PyTorch has mended it, and the page can say so."""
    program = (
        "import torch\n"
        "x, w, g = (torch.ones(s) for s in ((0, 1, 3, 3), (1, 1, 2, 2), (0, 1, 2, 2)))\n"
        "torch.ops.aten.convolution_backward(\n"
        "    g, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode != 0
    assert b"Traceback" not in ended.stderr


def test_as_many_heights_fit_as_the_stride_has_steps():
    for stride, size, dilation in product((1, 2, 3, 4), (2, 3), (1, 2)):
        span = dilation * (size - 1) + 1
        fit, g = [], torch.ones(1, 1, 3, 3, dtype=torch.float64)
        weight = torch.ones(1, 1, size, size, dtype=torch.float64)
        width = 2 * stride + span
        for H in range(1, 25):
            try:
                torch.nn.grad.conv2d_input(
                    (1, 1, H, width), weight, g, stride=stride, dilation=dilation
                )
            except RuntimeError:
                continue
            fit.append(H)
        assert len(fit) == stride
        largest = ConvGeometry(
            C=1, H=fit[-1], W=width, O=1, KH=size, KW=size, stride=stride, dilation=dilation
        )
        assert largest.leftover[0] == stride - 1


# ---- who works -------------------------------------------------------------------------------


def test_double_precision_takes_the_slow_way():
    """What the page says of every machine; for other types it depends on the processor."""

    def worker(dilation: int = 1, N: int = 2) -> str:
        x = torch.ones(N, 4, 9, 9, dtype=torch.float64)
        w = torch.ones(4, 4, 3, 3, dtype=torch.float64)
        how = [1, 1], [0, 0], [dilation, dilation]
        return torch._C._select_conv_backend(x, w, None, *how, False, [0, 0], 1).name

    assert worker() == "Slow2d"
    assert worker(dilation=2) == "SlowDilated2d"
    assert worker(N=0) == "Empty"


def test_groups_are_worked_off_one_by_one():
    x = torch.ones(1, 4, 5, 5, dtype=torch.float64)
    for groups in (1, 2, 4):
        w = torch.ones(4, 4 // groups, 3, 3, dtype=torch.float64, requires_grad=True)

        def both(w=w, groups=groups):
            F.conv2d(x, w, groups=groups).sum().backward()

        assert calls(both).names.count("aten::_slow_conv2d_backward") == groups


# ---- the exercises ---------------------------------------------------------------------------


def test_the_layer_learns_what_pytorch_says():
    g = bank._LAYER
    layer = nn.Conv2d(g.C, g.O, (g.KH, g.KW), groups=g.groups)
    learned = sum(each.numel() for each in layer.parameters())
    assert learned == exercises.get("backward-parameters").answer
    assert f"({g.KH}, {g.KW}), groups={g.groups}" in exercises.get("backward-parameters").prompt


def test_the_mask_is_the_one_autograd_sends():
    layer = nn.Conv2d(2, 2, 3)
    layer.weight.requires_grad_(False)
    seen = []

    class Spy(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            if operation is aten.default:
                seen.append([float(flag) for flag in args[-1]])
            return operation(*args, **(kwargs or {}))

    below = nn.Conv2d(2, 2, 1)
    with Spy():
        layer(below(torch.ones(1, 2, 5, 5))).sum().backward()
    assert [seen[0]] == exercises.get("backward-mask").answer.tolist()


def test_the_kept_image_has_the_shape_that_is_asked_for():
    g = bank._KEPT
    layer = nn.Conv2d(g.C, g.O, (g.KH, g.KW), padding=(2, 1), padding_mode=g.padding_mode)
    kept = layer(torch.ones(g.x_shape)).grad_fn._saved_input
    assert [list(kept.shape)] == exercises.get("backward-kept").answer.tolist()


def test_the_kernel_heights_are_those_that_pytorch_accepts():
    g = torch.ones(1, 1, bank._OUT, 1, dtype=torch.float64)
    x, fit = torch.ones(1, 1, bank._ROWS, 1, dtype=torch.float64), []
    for KH in range(1, bank._ROWS + 1):
        try:
            torch.nn.grad.conv2d_weight(x, (1, 1, KH, 1), g, stride=(bank._STRIDE, 1))
        except RuntimeError:
            continue
        fit.append(KH)
    assert len(fit) == exercises.get("backward-kernel-heights").answer
    assert f"From {fit[0]} to {fit[-1]}" in exercises.get("backward-kernel-heights").explanation


def whole(g: Any, x: Any, weight_shape: Any, how: dict[str, Any]) -> Any:
    """The right weight gradient."""
    weight = torch.zeros(tuple(weight_shape), dtype=x.dtype).requires_grad_()
    with torch.enable_grad():
        y = F.conv2d(x, weight, **how)
    return torch.autograd.grad(y, weight, g)[0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda g, x, s, how: whole(g.flip(2, 3), x, s, how), "turned by 180°"),
        (lambda g, x, s, how: whole(g, x, s, how) / len(x), "mean over the"),
        (lambda g, x, s, how: whole(g, x, s, how | {"padding": 0}), "padding|raised"),
        (lambda g, x, s, how: whole(g, x, s, how | {"groups": 1}), "raised|shape"),
        (lambda g, x, s, how: whole(g, x, s, how)[0], "shape"),
    ],
)
def test_a_weight_gradient_is_told_its_mistake(function, words):
    verdict = exercises.get("backward-weight-alone").check(function)
    assert not verdict.passed and not verdict.untouched
    assert re.search(words, verdict.message), verdict.message


def padded(g: Any, x: Any, weight: Any, border: Any, how: dict[str, Any]) -> tuple[Any, Any]:
    """The gradients of the padded image, and of the weight."""
    leaves = [F.pad(x, border).requires_grad_(), weight.detach().clone().requires_grad_()]
    with torch.enable_grad():
        y = F.conv2d(*leaves, **how)
    return torch.autograd.grad(y, leaves, g)


def not_cut(g, x, weight, border, how):
    return padded(g, x, weight, border, how)


def cut_at_the_corner(g, x, weight, border, how):
    to_x, to_weight = padded(g, x, weight, border, how)
    return to_x[..., : x.shape[2], : x.shape[3]], to_weight


def rows_for_columns(g, x, weight, border, how):
    left, right, top, bottom = border
    return padded(g, x, weight, (top, bottom, left, right), how)


def the_weight_alone(g, x, weight, border, how):
    return padded(g, x, weight, border, how)[1]


def the_other_way_round(g, x, weight, border, how):
    return cut_at_the_corner(g, x, weight, border, how)[::-1]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (not_cut, "still has the border on"),
        (cut_at_the_corner, "padding"),
        (rows_for_columns, "raised|shape"),
        (the_weight_alone, "one array"),
        (the_other_way_round, "shape"),
    ],
)
def test_an_uneven_border_is_told_its_mistake(function, words):
    verdict = exercises.get("backward-uneven").check(function)
    assert not verdict.passed and not verdict.untouched
    assert re.search(words, verdict.message), verdict.message


def test_a_forgotten_border_spares_the_bias_alone_whatever_the_mode():
    rng = np.random.default_rng(5)
    for mode in ("reflect", "replicate", "circular"):
        geometry = ConvGeometry(N=2, C=2, H=5, W=6, O=3, KH=3, KW=3, padding=1, padding_mode=mode)
        zeros = ConvGeometry(N=2, C=2, H=5, W=6, O=3, KH=3, KW=3, padding=1)
        _, x, weight, g = random_operands(geometry, rng)
        for rule, operand in ((windows.grad_input, weight), (windows.grad_weight, x)):
            assert not np.array_equal(rule(g, operand, geometry), rule(g, operand, zeros))
    assert exercises.get("backward-reflecting").answer == 3
