"""grad_weight, first rung: one program for each number of it, which gathers its products."""

import torch
import triton
import triton.language as tl

from ..geometry import ConvGeometry
from ..schedule import fitting
from .blocks import LONGEST
from .device import cdiv
from .index import block, columns, load_g, load_x, weight_at, windows


@triton.jit
def gather(
    grad_output,
    x,
    grad_weight,
    geometry: tl.constexpr,
    K: tl.constexpr,
):
    """One program owns one number of grad_weight and sums all of it."""
    cols = columns(geometry)
    number = tl.program_id(0)
    o, r = number // cols % geometry.OG, number % cols
    group = number // cols // geometry.OG
    total = tl.zeros((K,), tl.float32)
    for step in range(cdiv(windows(geometry), K)):
        k = block(step, K, geometry)  # (K,)
        g = load_g(grad_output, o, k, group, geometry)
        seen = load_x(x, k, r, group, geometry)
        total += g.to(tl.float32) * seen.to(tl.float32)
    # nobody else writes here: a plain store will do
    at = weight_at(o, r, group, geometry)
    tl.store(grad_weight + at, tl.sum(total, 0))


def launch(
    grad_output: torch.Tensor,
    x: torch.Tensor,
    geometry: ConvGeometry,
) -> torch.Tensor:
    """As many programs as grad_weight has numbers."""
    grad_weight = x.new_empty(geometry.weight_shape)
    K = fitting(windows(geometry), LONGEST)
    gather[(grad_weight.numel(),)](grad_output, x, grad_weight, geometry, K)
    return grad_weight
