"""PyTorch's autograd as the second oracle, on thousands of random geometries, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import complex_integer_arrays, integer_arrays, random_geometries
from test_strategies import assert_not_easy

from convgrad import IMPLEMENTATIONS, conv2d, conv2d_backward

torch = pytest.importorskip("torch")
from torch_oracle import autograd  # noqa: E402 - it needs torch

pytestmark = pytest.mark.oracle

GEOMETRIES = list(random_geometries(3000, seed=2026))
PARTS = 8  # so that a report names the part, and several processes can share the work


def test_the_geometries_do_not_hide_mistakes():
    assert len(GEOMETRIES) >= 2000
    assert_not_easy(GEOMETRIES)


@pytest.mark.parametrize(
    "part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, PARTS))]
)
def test_every_implementation_agrees_with_autograd(part):
    for seed in range(part, len(GEOMETRIES), PARTS):
        geometry = GEOMETRIES[seed]
        x, weight, g = integer_arrays(geometry, seed)
        answers = autograd(x, weight, g, geometry)
        for rung in IMPLEMENTATIONS.values():
            mine = (
                rung.forward(x, weight, geometry),
                rung.grad_input(g, weight, geometry),
                rung.grad_weight(g, x, geometry),
                rung.grad_bias(g, geometry),
            )
            for name, ours, theirs in zip(answers._fields, mine, answers, strict=True):
                assert_array_equal(ours, theirs, f"{name} of {rung.name}: {geometry!r}")


def test_the_oracle_notices_a_wrong_gradient():
    """A comparison that cannot fail proves nothing: g turned by 180° is noticed."""
    noticed = 0
    for seed, geometry in enumerate(GEOMETRIES[:40]):
        x, weight, g = integer_arrays(geometry, seed)
        turned = IMPLEMENTATIONS["windows"].grad_weight(g[:, :, ::-1, ::-1], x, geometry)
        noticed += not np.array_equal(turned, autograd(x, weight, g, geometry).grad_weight)
    assert noticed > 20


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_complex_gradients_follow_the_convention_of_autograd(name):
    for seed, geometry in enumerate(GEOMETRIES[:60]):
        x, weight, g = complex_integer_arrays(geometry, seed)
        answers = autograd(x, weight, g, geometry)
        gradients = conv2d_backward(
            g,
            x,
            weight,
            stride=geometry.stride,
            padding=geometry.padding,
            dilation=geometry.dilation,
            groups=geometry.groups,
            padding_mode=geometry.padding_mode,
            implementation=name,
        )
        for field, ours, theirs in zip(answers._fields[1:], gradients, answers[1:], strict=True):
            assert_array_equal(ours, theirs, f"{field}: {geometry!r}")


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
@pytest.mark.parametrize("padding_mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [2, (1, 2), "same", "valid"])
def test_it_takes_the_arguments_of_a_layer(padding, padding_mode):
    """Our padding and its modes against ``torch.nn.Conv2d`` with the very same arguments."""
    arguments = {"padding": padding, "padding_mode": padding_mode, "dilation": (1, 2), "groups": 2}
    layer = torch.nn.Conv2d(4, 6, kernel_size=(2, 3), dtype=torch.float64, **arguments)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.from_numpy(rng.integers(-4, 5, parameter.shape)))
    x = rng.integers(-4, 5, (2, 4, 6, 7)).astype(float)
    torch_x = torch.from_numpy(x).requires_grad_()
    y = layer(torch_x)
    g = rng.integers(-4, 5, tuple(y.shape)).astype(float)
    y.backward(torch.from_numpy(g))

    weight, bias = (parameter.detach().numpy() for parameter in layer.parameters())
    assert_array_equal(conv2d(x, weight, bias, **arguments), y.detach().numpy())
    theirs = torch_x.grad, layer.weight.grad, layer.bias.grad
    for ours, their in zip(conv2d_backward(g, x, weight, **arguments), theirs, strict=True):
        assert_array_equal(ours, their.numpy())
