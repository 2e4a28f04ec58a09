"""grad_weight, fourth rung: the windows are shared out, and the shares meet by atomic additions."""

import torch
import triton
import triton.language as tl

from ..geometry import ConvGeometry
from .blocks import blocks, split
from .device import cdiv
from .index import columns, tile, weight_at, windows
from .tiles import count, tile_sum


@triton.jit
def my_steps(SHARE: tl.constexpr, K: tl.constexpr, geometry: tl.constexpr):
    """Where this program's share of the blocks of windows begins and ends."""
    first = tl.program_id(1) * SHARE
    return first, tl.minimum(first + SHARE, cdiv(windows(geometry), K))


@triton.jit
def split_k(
    grad_output,
    x,
    grad_weight,
    geometry: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    SHARE: tl.constexpr,
):
    """One program sums its share of the windows, and adds it to the tile."""
    o, r, group = tile(geometry.OG, columns(geometry), M, N, geometry)
    first, end = my_steps(SHARE, K, geometry)
    total = tile_sum(grad_output, x, o, r, group, first, end, geometry, M, N, K)
    at = weight_at(o, r, group, geometry)
    mask = (o < geometry.OG) & (r < columns(geometry))
    # the order of these additions, and so the rounding, is nobody's to say
    tl.atomic_add(grad_weight + at, total, mask=mask, sem="relaxed")


def launch(
    grad_output: torch.Tensor,
    x: torch.Tensor,
    geometry: ConvGeometry,
    splits: int | None = None,
) -> torch.Tensor:
    """As many programs as tiles times shares."""
    # float32, also for shorter types: it is added to more than once
    grad_weight = x.new_zeros(geometry.weight_shape, dtype=torch.float32)
    M, N, _ = blocks(geometry.OG, columns(geometry), windows(geometry))
    tiles = count(geometry, M, N)
    parts, share, K = split(geometry, tiles, splits)
    split_k[tiles, parts](grad_output, x, grad_weight, geometry, M, N, K, share)
    return grad_weight.to(x.dtype)
