"""im2col for one row of taps, which serves the rows below it too.

A tap one row further down sees what its neighbour above sees one output row later.  So the columns
of one row of taps, with a few more output rows, hold those of all rows: the columns of kernel row i
begin i output rows further on.

    output rows     p = 0     p = 1     p = 2     p = 3     p = 4
    kernel row 0    ├─────────────────────────────┤
    kernel row 1              ├─────────────────────────────┤
    kernel row 2                        ├─────────────────────────────┤

Compared with :mod:`convgrad.blocked`, of KH copies of the image one is left.  What that costs is a
product and an addition for every row of taps in place of one product for all.  So it is for the
forward pass, and for grad_input where that is a convolution; grad_weight, whose products would be
too small, is computed from all columns as in :mod:`convgrad.blocked`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from . import blocked
from .blocked import Block, grad_weight, padded_rows, size
from .geometry import ConvGeometry
from .memory import WorkingSet
from .padding import folded_numbers, pad, padded_numbers, with_border
from .parallel import Workspace, even_slices, run
from .turned import is_convolution, search
from .windows import window_numbers

__all__ = ["forward", "grad_input", "grad_weight", "pays", "working_set"]

LONG = 64  # channels times taps of a row: enough for a product of its own
LARGEST = 900_000  # numbers in a block of columns, which is at most
SHARE = 16  # one part in so many of what all columns would be
OVERLAP = 6  # output rows of a block for each that it writes for its neighbour's sake, at least

# Below, k counts the groups and l = (p, q) the windows of a block.


def pays(geometry: ConvGeometry) -> bool:
    """Whether this is faster than writing all columns: where many windows meet few weights."""
    more = geometry.span[0] - 1  # output rows that a block writes for its neighbour below
    return (
        geometry.stride[0] == 1
        and geometry.KH > 1
        and geometry.CG * geometry.KW >= LONG
        and math.prod(geometry.weight_shape) <= math.prod(geometry.output_shape)
        and _rows_at_once(geometry) >= min(geometry.OH, OVERLAP * more)
    )


def _rows_at_once(geometry: ConvGeometry) -> int:
    """The output rows of a block."""
    numbers = min(window_numbers(geometry) // SHARE, LARGEST)
    row = geometry.C * geometry.KW * geometry.OW
    return numbers // max(row, 1) - (geometry.span[0] - 1)


def forward(
    x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """The convolution without bias, (N, O, OH, OW), one block at a time; for a stride of 1 down."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    y = np.empty(geometry.output_shape, np.result_type(x, weight))
    kernels = weight.reshape(geometry.groups, geometry.OG, *weight.shape[1:])  # k o c i j
    rows = kernels.transpose(3, 0, 1, 4, 2)  # i k o j c
    rows = rows.reshape(*rows.shape[:3], -1)
    space = Workspace(y.dtype)

    def write(block: Block) -> None:
        total = y[block.images, :, block.rows].reshape(*rows.shape[1:3], -1)  # k o l
        seen = columns(x, block, geometry, space)  # i k (j c) l
        np.matmul(rows[0], seen[0], out=total)
        product = space.array("product", total.shape)
        for mine, shifted in zip(rows[1:], seen[1:], strict=True):
            total += np.matmul(mine, shifted, out=product)

    run(write, blocks(geometry), threads)
    return y


def columns(x: np.ndarray, block: Block, geometry: ConvGeometry, space: Workspace) -> np.ndarray:
    """The columns of this block, as each row of taps sees them: i k (j c) l.

    They lie in memory once: kernel row i begins ``dilation · i`` output rows further on.
    """
    patch = padded_rows(x[block.images], block, geometry, space)
    G, CG, KH, KW = geometry.groups, *geometry.weight_shape[1:]
    (_, sw), (dh, dw) = geometry.stride, geometry.dilation
    rows, more = size(block.rows), dh * (KH - 1)
    c, h, v, _ = patch.strides
    seen = as_strided(  # k j c p q
        patch,
        (G, KW, CG, rows + more, geometry.OW),
        (CG * c, dw * v, c, h, sw * v),
        writeable=False,
    )
    written = space.array("columns", seen.shape)
    np.copyto(written, seen)
    group, _, channel, row, _ = written.strides
    return as_strided(
        written,
        (KH, G, KW * CG, rows * geometry.OW),
        (dh * row, group, channel, written.itemsize),
        writeable=False,
    )


def blocks(geometry: ConvGeometry) -> list[Block]:
    """Every image by itself, and a large one in several blocks of rows."""
    count = math.ceil(geometry.OH / max(_rows_at_once(geometry), 1))
    return [
        Block(slice(n, n + 1), rows)
        for n in range(geometry.N)
        for rows in even_slices(geometry.OH, count)
    ]


def grad_input(
    grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): a convolution of g where it is one, else as in ``blocked``."""
    if _gathers(geometry) and np.isfinite(weight).all():
        return blocked.gather(forward, grad_output, weight, geometry, threads)
    return blocked.grad_input(grad_output, weight, geometry, threads)


def _gathers(geometry: ConvGeometry) -> bool:
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    return is_convolution(geometry) and pays(search(inner))


def working_set(geometry: ConvGeometry, threads: int = 1) -> WorkingSet:
    """The results, and for every thread one block; counted for double precision."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    padded = 0 if inner is geometry else padded_numbers(geometry)
    others = blocked.working_set(geometry, threads)
    if _gathers(geometry):
        gathered = math.prod(geometry.weight_shape) + _forward_numbers(search(inner), threads)
        others = others._replace(grad_input=gathered + folded_numbers(geometry))
    return others._replace(forward=padded + _forward_numbers(inner, threads))


def _forward_numbers(geometry: ConvGeometry, threads: int) -> int:
    every = blocks(geometry)
    rows = size(every[0].rows) if every else 0
    high = rows + geometry.span[0] - 1
    columns = geometry.C * geometry.KW * high * geometry.OW
    patch = 0 if geometry.padding == ((0, 0), (0, 0)) else high * geometry.padded_size[1]
    product = geometry.O * rows * geometry.OW
    at_work = columns + geometry.C * patch + product
    weights, outputs = math.prod(geometry.weight_shape), math.prod(geometry.output_shape)
    return weights + outputs + min(threads, len(every)) * at_work
