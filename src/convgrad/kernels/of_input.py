"""grad_input as an implicit GEMM: each cell gathers from the outputs that read it."""

import torch
import triton
import triton.language as tl

from ..geometry import ConvGeometry
from .blocks import blocks
from .device import cdiv
from .index import (
    add_product,
    block,
    cell,
    cells,
    column,
    column_at,
    load_weight,
    output_at,
    reader,
    taps,
    tile,
    x_at,
)


@triton.jit
def load_readers(
    grad_output,
    n,
    h,
    v,
    o,
    i,
    j,
    group,
    inside,
    geometry: tl.constexpr,
):
    """g[n, o, p, q] of the output whose tap (i, j) reads (h, v); 0 if none."""
    p, q, there = reader(h, v, i, j, geometry)
    at = output_at(n, o, p, q, group, geometry)
    return tl.load(grad_output + at, mask=inside & there, other=0.0)


@triton.jit
def grad_input_tiles(
    grad_output,
    weight,
    grad_input,
    geometry: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    """One program owns M cells of N channels: no two write to one place."""
    m, c, group = tile(cells(geometry), geometry.CG, M, N, geometry)
    n, h, v = cell(m, geometry)  # (M, 1)
    total = tl.zeros((M, N), tl.float32)
    for step in range(cdiv(taps(geometry), K)):
        t = block(step, K, geometry)  # t → o, i, j: what is summed over
        o, i, j = column(t[None, :], geometry)  # (1, K)
        inside = (m < cells(geometry)) & (o < geometry.OG)
        g = load_readers(grad_output, n, h, v, o, i, j, group, inside, geometry)
        o, i, j = column(t[:, None], geometry)  # (K, 1)
        r = column_at(c, i, j, geometry)  # (K, N)
        w = load_weight(weight, o, r, group, geometry)
        total = add_product(total, g, w)
    at = x_at(n, c, h, v, group, geometry)
    mask = (m < cells(geometry)) & (c < geometry.CG)
    tl.store(grad_input + at, total, mask=mask)


def launch(
    grad_output: torch.Tensor,
    weight: torch.Tensor,
    geometry: ConvGeometry,
) -> torch.Tensor:
    """As many programs as the images have tiles."""
    grad_input = weight.new_empty(geometry.x_shape)
    M, N, K = blocks(cells(geometry), geometry.CG, taps(geometry))
    tiles = cdiv(cells(geometry), M) * cdiv(geometry.CG, N)
    grid = (geometry.groups * tiles,)
    grad_input_tiles[grid](grad_output, weight, grad_input, geometry, M, N, K)
    return grad_input
