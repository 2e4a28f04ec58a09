"""grad_weight, second rung: programs own windows, and send what they have to every tap."""

import torch
import triton
import triton.language as tl

from ..geometry import ConvGeometry
from .blocks import blocks
from .device import cdiv
from .index import block, columns, load_g, load_x, weight_at, windows


@triton.jit
def scatter(
    grad_output,
    x,
    grad_weight,
    geometry: tl.constexpr,
    K: tl.constexpr,
    R: tl.constexpr,
):
    """One program owns K windows of one kernel, and adds to all its taps."""
    number = tl.program_id(0)
    o, group = number % geometry.OG, number // geometry.OG % geometry.groups
    k = block(number // geometry.O, K, geometry)[:, None]  # (K, 1)
    g = load_g(grad_output, o, k, group, geometry).to(tl.float32)  # read once
    for step in range(cdiv(columns(geometry), R)):
        r = block(step, R, geometry)[None, :]  # (1, R)
        seen = load_x(x, k, r, group, geometry).to(tl.float32)  # (K, R)
        share = tl.sum(g * seen, 0)[None, :]  # what these windows know
        at = weight_at(o, r, group, geometry)
        mask = r < columns(geometry)
        # other programs add to the same taps, in whatever order they come
        tl.atomic_add(grad_weight + at, share, mask=mask, sem="relaxed")


def launch(
    grad_output: torch.Tensor,
    x: torch.Tensor,
    geometry: ConvGeometry,
) -> torch.Tensor:
    """As many programs as it takes for all windows of all kernels."""
    # float32, also for shorter types: it is added to over and over
    grad_weight = x.new_zeros(geometry.weight_shape, dtype=torch.float32)
    _, R, K = blocks(1, columns(geometry), windows(geometry))
    grid = (geometry.O * cdiv(windows(geometry), K),)
    scatter[grid](grad_output, x, grad_weight, geometry, K, R)
    return grad_weight.to(x.dtype)
