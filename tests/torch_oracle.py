"""The second oracle: the same convolution by PyTorch, its gradients by autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from convgrad.geometry import ConvGeometry
from convgrad.transpose import TransposedGeometry

_TORCH_MODES = {"zeros": "constant"}  # the others have the same names


class Answers(NamedTuple):
    y: np.ndarray
    grad_input: np.ndarray
    grad_weight: np.ndarray
    grad_bias: np.ndarray


def autograd(
    x: np.ndarray, weight: np.ndarray, grad_output: np.ndarray, geometry: ConvGeometry
) -> Answers:
    """What PyTorch computes for these operands, with a bias of zeros."""
    torch_x, torch_weight, torch_bias = _leaves(x, weight, np.zeros(geometry.O, weight.dtype))
    y = _convolve(torch_x, torch_weight, torch_bias, geometry)
    y.backward(torch.from_numpy(np.array(grad_output)))
    results = y.detach(), torch_x.grad, torch_weight.grad, torch_bias.grad
    return Answers(*(result.numpy() for result in results))


def double_backward(
    seconds: Sequence[np.ndarray | None],
    grad_output: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> list[np.ndarray]:
    """The gradients of the backward pass, from autograd with create_graph=True.

    ``seconds`` are the gradients of grad_input, grad_weight and grad_bias, at least one not None.
    """
    g, torch_x, torch_weight, bias = _leaves(
        grad_output, x, weight, np.zeros(geometry.O, weight.dtype)
    )
    y = _convolve(torch_x, torch_weight, bias, geometry)
    firsts = torch.autograd.grad(y, (torch_x, torch_weight, bias), g, create_graph=True)
    pairs = [
        (first, torch.from_numpy(np.array(second)))
        for first, second in zip(firsts, seconds, strict=True)
        if second is not None
    ]
    outputs, upstream = zip(*pairs, strict=True)
    leaves = (g, torch_x, torch_weight)
    results = torch.autograd.grad(outputs, leaves, upstream, materialize_grads=True)
    return [result.numpy() for result in results]


def per_sample(x: np.ndarray, grad_output: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """Each image's gradient of the weight, by torch.func's vmap over grad."""
    weight = torch.zeros(geometry.weight_shape, dtype=torch.float64)

    def loss(weight: torch.Tensor, image: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return (_convolve(image[None], weight, None, geometry) * g).sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    return each(weight, *(torch.from_numpy(np.array(a)) for a in (x, grad_output))).numpy()


def transposed(
    x: np.ndarray, weight: np.ndarray, grad_output: np.ndarray, geometry: TransposedGeometry
) -> Answers:
    """The transposed convolution and its gradients, with a bias of zeros."""
    O = geometry.conv.C
    torch_x, torch_weight, torch_bias = _leaves(x, weight, np.zeros(O, weight.dtype))
    # F.conv_transpose2d knows no uneven border: it cuts what both sides have, a slice the rest
    even = tuple(map(min, geometry.padding))
    y = F.conv_transpose2d(
        torch_x,
        torch_weight,
        torch_bias,
        stride=geometry.conv.stride,
        padding=even,
        output_padding=geometry.output_padding,
        groups=geometry.conv.groups,
        dilation=geometry.conv.dilation,
    )
    (top, _), (left, _) = geometry.padding
    rows = slice(top - even[0], top - even[0] + geometry.OH)
    cols = slice(left - even[1], left - even[1] + geometry.OW)
    y = y[:, :, rows, cols]
    y.backward(torch.from_numpy(np.array(grad_output)))
    results = y.detach(), torch_x.grad, torch_weight.grad, torch_bias.grad
    return Answers(*(result.numpy() for result in results))


def _leaves(*operands: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.array(operand)).requires_grad_() for operand in operands]


def _convolve(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, geometry: ConvGeometry
) -> torch.Tensor:
    (top, bottom), (left, right) = geometry.padding
    mode = _TORCH_MODES.get(geometry.padding_mode, geometry.padding_mode)
    # F.pad names the last axis first; F.conv2d itself knows no uneven border
    padded = F.pad(x, (left, right, top, bottom), mode=mode)
    return F.conv2d(
        padded,
        weight,
        bias,
        stride=geometry.stride,
        dilation=geometry.dilation,
        groups=geometry.groups,
    )
