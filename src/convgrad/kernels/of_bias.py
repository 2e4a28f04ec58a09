"""grad_bias: a sum over all windows, one program for each kernel."""

import torch
import triton
import triton.language as tl

from ..geometry import ConvGeometry
from ..schedule import fitting
from .blocks import LONGEST
from .device import cdiv
from .index import block, load_g, windows


@triton.jit
def grad_bias_sums(
    grad_output,
    grad_bias,
    geometry: tl.constexpr,
    K: tl.constexpr,
):
    """One program owns one number: the sum of its kernel's g."""
    channel = tl.program_id(0)
    o, group = channel % geometry.OG, channel // geometry.OG
    total = tl.zeros((K,), tl.float32)
    for step in range(cdiv(windows(geometry), K)):
        k = block(step, K, geometry)  # (K,)
        total += load_g(grad_output, o, k, group, geometry).to(tl.float32)
    tl.store(grad_bias + channel, tl.sum(total, 0))


def launch(grad_output: torch.Tensor, geometry: ConvGeometry) -> torch.Tensor:
    """As many programs as kernels."""
    grad_bias = grad_output.new_empty(geometry.bias_shape)
    K = fitting(windows(geometry), LONGEST)
    grad_bias_sums[(geometry.O,)](grad_output, grad_bias, geometry, K)
    return grad_bias
