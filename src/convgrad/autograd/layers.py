"""A layer of PyTorch, run on small whole numbers and held against the definition."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..api import conv2d, conv2d_backward
from ..extras import needs
from ..geometry import ConvGeometry

with needs("torch", "convgrad.autograd"):
    import torch
    from torch import Tensor, nn

__all__ = ["Examined", "examine"]

# Products of such numbers, and short sums of them, are whole numbers in every type there is.
_LOWEST, _HIGHEST = -2, 3


@dataclass(frozen=True)
class Examined:
    """What a layer did with small whole numbers; printed, its shapes and whether all is right.

    Attributes
    ----------
    geometry : ConvGeometry
        Of the layer and its input; one image without a batch counts as a batch of one.
    x, weight, grad_output : ndarray
        The operands, in four axes and float64.
    shapes : dict
        Of ``x``, ``weight``, ``bias`` (where there is one) and ``y``, as the layer has them.
    gradients : dict
        Of ``x``, ``weight`` and, with a bias, ``bias``: what autograd found, as tensors.
    parameters : int
        How many numbers the layer learns.
    right : bool
        Whether output and gradients are those of the loops, to the last digit.

    Examples
    --------
    >>> print(examine(nn.Conv2d(1, 1, 3, stride=2), (2, 1, 6, 7)))
    x (2, 1, 6, 7)   weight (1, 1, 3, 3)   bias (1,)   y (2, 1, 2, 3)
    parameters: 10
    as the loops have it: True
    """

    geometry: ConvGeometry
    x: np.ndarray = field(repr=False)
    weight: np.ndarray = field(repr=False)
    grad_output: np.ndarray = field(repr=False)
    shapes: dict[str, tuple[int, ...]]
    gradients: dict[str, Tensor] = field(repr=False)
    parameters: int
    right: bool

    def __str__(self) -> str:
        shapes = "   ".join(f"{name} {shape}" for name, shape in self.shapes.items())
        return f"{shapes}\nparameters: {self.parameters}\nas the loops have it: {self.right}"


def examine(
    layer: nn.Conv2d,
    x_shape: Sequence[int],
    *,
    channels_last: bool = False,
    seed: int = 1,
) -> Examined:
    """Run a layer forward and backward, and hold output and gradients against the loops.

    A copy of the layer is run, on whole numbers from −2 to 3; the layer keeps its own.

    Parameters
    ----------
    layer : nn.Conv2d
        Any options, any floating type.
    x_shape : sequence of int
        (N, C, H, W), or (C, H, W) for one image without a batch.  Small ones: in half precision
        sums of a few hundred products are no longer whole, and then the answer is False.
    channels_last : bool, default False
        Whether a cell's channels lie beside each other in memory, in x and in grad_output.
    seed : int, default 1
        Of the numbers.

    Returns
    -------
    Examined

    Raises
    ------
    GeometryError
        When no such convolution exists.

    Examples
    --------
    >>> examine(nn.Conv2d(4, 6, (3, 2), groups=2), (3, 4, 5, 4)).right
    True
    """
    rng = np.random.default_rng(seed)
    twin = copy.deepcopy(layer)
    kind = twin.weight.dtype

    def whole_numbers(shape: Sequence[int]) -> Tensor:
        drawn = rng.integers(_LOWEST, _HIGHEST + 1, tuple(shape)).astype(np.float64)
        made = torch.from_numpy(drawn).to(kind)
        if channels_last and made.dim() == 4:
            made = made.contiguous(memory_format=torch.channels_last)
        return made

    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.copy_(whole_numbers(parameter.shape))
    x = whole_numbers(x_shape).requires_grad_()
    names = ["x", *dict(twin.named_parameters())]  # x, weight and, where there is one, bias
    leaves = [x, *twin.parameters()]
    y = twin(x)
    grad_output = whole_numbers(y.shape)
    found = torch.autograd.grad(y, leaves, grad_output)

    how: dict[str, Any] = {
        "stride": twin.stride,
        "padding": twin.padding,
        "dilation": twin.dilation,
        "groups": twin.groups,
        "padding_mode": twin.padding_mode,
    }
    image, weight = _array(x), _array(twin.weight)
    bias = None if twin.bias is None else _array(twin.bias)
    g = _array(grad_output)
    expected = [conv2d(image, weight, bias, **how, implementation="loops")]
    expected += conv2d_backward(g, image, weight, **how, implementation="loops")
    # without a bias there is one gradient less
    pairs = zip([_array(y), *map(_array, found)], expected, strict=False)
    batch = image.reshape(-1, *image.shape[-3:])
    shapes = {name: tuple(leaf.shape) for name, leaf in zip(names, leaves, strict=True)}
    return Examined(
        geometry=ConvGeometry.of(batch.shape, weight.shape, **how),
        x=batch,
        weight=weight,
        grad_output=g.reshape(-1, *g.shape[-3:]),
        shapes=shapes | {"y": tuple(y.shape)},
        gradients=dict(zip(names, found, strict=True)),
        parameters=sum(each.numel() for each in twin.parameters()),
        right=all(np.array_equal(a, b) for a, b in pairs),
    )


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().cpu().numpy()
