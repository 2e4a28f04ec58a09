"""One dimension is the case H = 1: conv1d and its gradients through conv2d."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import integer_arrays, random_geometries

from convgrad import (
    IMPLEMENTATIONS,
    ConvGeometry,
    conv2d,
    conv2d_backward,
    conv_transpose2d,
    conv_transpose2d_backward,
    double_backward,
    per_sample_weight_gradients,
)

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402 - it is torch

pytestmark = pytest.mark.oracle

MODES = {"zeros": "constant"}  # the others have the same names in PyTorch


def flat(geometry: ConvGeometry) -> ConvGeometry:
    """The same widths, with one row and one row of taps."""
    _, cols = geometry.padding
    one_row = {"H": 1, "KH": 1, "padding": ((0, 0), cols)}
    steps = {"stride": (1, geometry.stride[1]), "dilation": (1, geometry.dilation[1])}
    return ConvGeometry(**geometry.as_dict() | one_row | steps)


GEOMETRIES = [flat(geometry) for geometry in random_geometries(400, seed=2032)]


def signals(geometry: ConvGeometry, seed: int) -> tuple[np.ndarray, ...]:
    """Signal n c v, kernel o c j and upstream gradient n o q, as conv1d has them."""
    return tuple(operand[:, :, 0] for operand in integer_arrays(geometry, seed))


def pairs(geometry: ConvGeometry) -> dict[str, Any]:
    """The options of conv1d for conv2d: pairs whose first number has nothing to do."""
    _, cols = geometry.padding
    return {
        "stride": (1, geometry.stride[1]),
        "padding": ((0, 0), cols),
        "dilation": (1, geometry.dilation[1]),
        "groups": geometry.groups,
    }


def leaves(*operands: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.array(operand)).requires_grad_() for operand in operands]


def conv1d(x, kernel, bias, geometry):
    padded = F.pad(
        x, geometry.padding[1], mode=MODES.get(geometry.padding_mode, geometry.padding_mode)
    )
    stride, dilation = geometry.stride[1], geometry.dilation[1]
    return F.conv1d(padded, kernel, bias, stride, 0, dilation, geometry.groups)


def test_the_geometries_do_not_hide_mistakes():
    assert len(GEOMETRIES) >= 300
    shares = {
        "1 < groups < C": [1 < g.groups < g.C for g in GEOMETRIES],
        "a leftover": [g.leftover[1] > 0 for g in GEOMETRIES],
        "stride ≠ dilation": [g.stride != g.dilation for g in GEOMETRIES],
        "paddings differ between ends": [len(set(g.padding[1])) == 2 for g in GEOMETRIES],
        "several images": [g.N > 1 for g in GEOMETRIES],
    }
    assert min(map(np.mean, shares.values())) >= 0.25, shares


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_conv1d_agrees(name):
    for seed, geometry in enumerate(GEOMETRIES[:: 1 if name != "loops" else 8]):
        signal, kernel, g = signals(geometry, seed)
        bias = np.arange(1.0, geometry.O + 1)
        x, weight, b = leaves(signal, kernel, bias)
        y = conv1d(x, weight, b, geometry)
        y.backward(torch.from_numpy(np.array(g)))

        arguments = pairs(geometry) | {
            "padding_mode": geometry.padding_mode,
            "implementation": name,
        }
        x2, weight2, g2 = signal[:, :, None], kernel[:, :, None], g[:, :, None]
        ours = conv2d(x2, weight2, bias, **arguments)
        assert_array_equal(ours[:, :, 0], y.detach().numpy(), repr(geometry))
        grad_input, grad_weight, grad_bias = conv2d_backward(g2, x2, weight2, **arguments)
        assert_array_equal(grad_input[:, :, 0], x.grad.numpy(), repr(geometry))
        assert_array_equal(grad_weight[:, :, 0], weight.grad.numpy(), repr(geometry))
        assert_array_equal(grad_bias, b.grad.numpy(), repr(geometry))


def test_the_gradients_of_the_gradients_agree():
    for seed, geometry in enumerate(GEOMETRIES):
        signal, kernel, g = signals(geometry, seed)
        ggx, ggw, _ = signals(geometry, seed + 1)
        x, weight, upstream = leaves(signal, kernel, g)
        y = conv1d(x, weight, None, geometry)
        firsts = torch.autograd.grad(y, (x, weight), upstream, create_graph=True)
        theirs = torch.autograd.grad(
            firsts, (upstream, x, weight), leaves(ggx, ggw), materialize_grads=True
        )
        arguments = pairs(geometry) | {"padding_mode": geometry.padding_mode}
        rows = (a[:, :, None] for a in (g, signal, kernel))
        ours = double_backward(ggx[:, :, None], ggw[:, :, None], None, *rows, **arguments)
        for mine, answer in zip(ours, theirs, strict=True):
            assert_array_equal(mine[:, :, 0], answer.detach().numpy(), repr(geometry))


def test_every_signal_has_its_own_share():
    for seed, geometry in enumerate(GEOMETRIES[:100]):
        signal, kernel, g = signals(geometry, seed)
        arguments = pairs(geometry) | {"padding_mode": geometry.padding_mode}
        shares = per_sample_weight_gradients(
            g[:, :, None], signal[:, :, None], geometry.weight_shape, **arguments
        )
        for n, share in enumerate(shares):
            x, weight = leaves(signal[n : n + 1], kernel)
            conv1d(x, weight, None, geometry).backward(torch.from_numpy(g[n : n + 1].copy()))
            assert_array_equal(share[:, :, 0], weight.grad.numpy(), repr(geometry))


def test_conv_transpose1d_agrees():
    for seed, geometry in enumerate(GEOMETRIES):
        _, kernel, signal = signals(geometry, seed)  # the upstream gradient is what is laid down
        x, weight = leaves(signal, kernel)
        stride, dilation, groups = geometry.stride[1], geometry.dilation[1], geometry.groups
        more = geometry.leftover[1]
        y = F.conv_transpose1d(x, weight, None, stride, 0, more, groups, dilation)
        g = signals(geometry, seed + 1)[0]
        g = np.resize(g if g.size else np.ones(1), y.shape)  # some numbers, as many as needed
        y.backward(torch.from_numpy(g))

        arguments = pairs(geometry) | {"padding": 0, "output_padding": (0, more)}
        rows = signal[:, :, None], kernel[:, :, None]
        ours = conv_transpose2d(*rows, **arguments)
        assert_array_equal(ours[:, :, 0], y.detach().numpy(), repr(geometry))
        grad_input, grad_weight, _ = conv_transpose2d_backward(g[:, :, None], *rows, **arguments)
        assert_array_equal(grad_input[:, :, 0], x.grad.numpy(), repr(geometry))
        assert_array_equal(grad_weight[:, :, 0], weight.grad.numpy(), repr(geometry))
