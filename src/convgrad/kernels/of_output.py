"""The forward pass as an implicit GEMM: windows down, kernels across."""

import torch
import triton
import triton.language as tl

from ..geometry import ConvGeometry
from .blocks import blocks
from .device import cdiv
from .index import (
    add_product,
    block,
    columns,
    load_weight,
    load_x,
    output_at,
    tile,
    window,
    windows,
)


@triton.jit
def forward_tiles(
    x,
    weight,
    y,
    geometry: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    """One program owns M windows of N kernels."""
    k, o, group = tile(windows(geometry), geometry.OG, M, N, geometry)
    total = tl.zeros((M, N), tl.float32)
    for step in range(cdiv(columns(geometry), K)):
        r = block(step, K, geometry)
        seen = load_x(x, k, r[None, :], group, geometry)  # (M, K)
        w = load_weight(weight, o, r[:, None], group, geometry)  # (K, N)
        total = add_product(total, seen, w)
    n, p, q = window(k, geometry)
    at = output_at(n, o, p, q, group, geometry)
    mask = (k < windows(geometry)) & (o < geometry.OG)
    tl.store(y + at, total, mask=mask)


def launch(
    x: torch.Tensor,
    weight: torch.Tensor,
    geometry: ConvGeometry,
) -> torch.Tensor:
    """As many programs as the output has tiles."""
    y = x.new_empty(geometry.output_shape)
    M, N, K = blocks(windows(geometry), geometry.OG, columns(geometry))
    tiles = cdiv(windows(geometry), M) * cdiv(geometry.OG, N)
    grid = (geometry.groups * tiles,)
    forward_tiles[grid](x, weight, y, geometry, M, N, K)
    return y
