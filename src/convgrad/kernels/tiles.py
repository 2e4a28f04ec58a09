"""grad_weight, third rung: an implicit GEMM, tile by tile of G·X, whose X is never stored."""

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
    load_g,
    load_x,
    tile,
    weight_at,
    windows,
)


@triton.jit
def tile_sum(
    grad_output,
    x,
    o,
    r,
    group,
    first,
    end,
    geometry: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    """G[o, k]·X[k, r] over the blocks of K windows from first to before end."""
    total = tl.zeros((M, N), tl.float32)
    for step in range(first, end):
        k = block(step, K, geometry)
        g = load_g(grad_output, o, k[None, :], group, geometry)  # (M, K)
        seen = load_x(x, k[:, None], r, group, geometry)  # (K, N)
        total = add_product(total, g, seen)
    return total


@triton.jit
def tiles(
    grad_output,
    x,
    grad_weight,
    geometry: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    """One program owns a tile of grad_weight: M kernels, N columns."""
    o, r, group = tile(geometry.OG, columns(geometry), M, N, geometry)
    steps = cdiv(windows(geometry), K)
    total = tile_sum(grad_output, x, o, r, group, 0, steps, geometry, M, N, K)
    at = weight_at(o, r, group, geometry)
    mask = (o < geometry.OG) & (r < columns(geometry))
    tl.store(grad_weight + at, total, mask=mask)


def launch(
    grad_output: torch.Tensor,
    x: torch.Tensor,
    geometry: ConvGeometry,
) -> torch.Tensor:
    """As many programs as grad_weight has tiles: often too few."""
    grad_weight = x.new_empty(geometry.weight_shape)
    M, N, K = blocks(geometry.OG, columns(geometry), windows(geometry))
    grid = (count(geometry, M, N),)
    tiles[grid](grad_output, x, grad_weight, geometry, M, N, K)
    return grad_weight


def count(geometry: ConvGeometry, M: int, N: int) -> int:
    """How many tiles grad_weight has."""
    across = cdiv(columns(geometry), N)
    return geometry.groups * cdiv(geometry.OG, M) * across
