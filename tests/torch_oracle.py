"""The second oracle: the same convolution by PyTorch, its gradients by autograd."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from convgrad.geometry import ConvGeometry

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
    torch_x, torch_weight = (
        torch.from_numpy(np.array(operand)).requires_grad_() for operand in (x, weight)
    )
    torch_bias = torch.zeros(geometry.O, dtype=torch_weight.dtype, requires_grad=True)
    (top, bottom), (left, right) = geometry.padding
    mode = _TORCH_MODES.get(geometry.padding_mode, geometry.padding_mode)
    # F.pad names the last axis first; F.conv2d itself knows no uneven border
    padded = F.pad(torch_x, (left, right, top, bottom), mode=mode)
    y = F.conv2d(
        padded,
        torch_weight,
        torch_bias,
        stride=geometry.stride,
        dilation=geometry.dilation,
        groups=geometry.groups,
    )
    y.backward(torch.from_numpy(np.array(grad_output)))
    results = y.detach(), torch_x.grad, torch_weight.grad, torch_bias.grad
    return Answers(*(result.numpy() for result in results))
