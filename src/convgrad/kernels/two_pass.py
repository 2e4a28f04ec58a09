"""grad_weight, fifth rung: shares as in split-K, kept apart and then added in a fixed order."""

import torch
import triton
import triton.language as tl

from ..geometry import ConvGeometry
from ..schedule import fitting
from .blocks import LONGEST, blocks, split
from .device import cdiv
from .index import block, columns, tile, weight_at, windows
from .split_k import my_steps
from .tiles import count, tile_sum


@triton.jit
def shares(
    grad_output,
    x,
    workspace,
    geometry: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    SHARE: tl.constexpr,
):
    """The first pass: every share of every tile has a place of its own."""
    o, r, group = tile(geometry.OG, columns(geometry), M, N, geometry)
    first, end = my_steps(SHARE, K, geometry)
    total = tile_sum(grad_output, x, o, r, group, first, end, geometry, M, N, K)
    numbers = geometry.O * columns(geometry)
    page = workspace + tl.program_id(1).to(tl.int64) * numbers
    at = weight_at(o, r, group, geometry)
    mask = (o < geometry.OG) & (r < columns(geometry))
    tl.store(page + at, total, mask=mask)


@triton.jit
def add_up(
    workspace,
    grad_weight,
    parts,
    geometry: tl.constexpr,
    SIZE: tl.constexpr,
):
    """The second pass: shares 0, 1, 2, …, the same order every time."""
    numbers = geometry.O * columns(geometry)
    at = block(tl.program_id(0), SIZE, geometry)  # (SIZE,)
    total = tl.zeros((SIZE,), tl.float32)
    page = workspace
    for _ in range(parts):
        total += tl.load(page + at, mask=at < numbers, other=0.0)
        page += numbers
    tl.store(grad_weight + at, total, mask=at < numbers)


def launch(
    grad_output: torch.Tensor,
    x: torch.Tensor,
    geometry: ConvGeometry,
    splits: int | None = None,
) -> torch.Tensor:
    """Split-K's programs, and a few more that add up."""
    grad_weight = x.new_empty(geometry.weight_shape)
    M, N, _ = blocks(geometry.OG, columns(geometry), windows(geometry))
    tiles = count(geometry, M, N)
    parts, share, K = split(geometry, tiles, splits)
    # every number of every page is written before it is read
    pages = parts, *geometry.weight_shape
    workspace = x.new_empty(pages, dtype=torch.float32)
    shares[tiles, parts](grad_output, x, workspace, geometry, M, N, K, share)
    SIZE = fitting(grad_weight.numel(), LONGEST)
    grid = (cdiv(grad_weight.numel(), SIZE),)
    add_up[grid](workspace, grad_weight, parts, geometry, SIZE)
    return grad_weight
