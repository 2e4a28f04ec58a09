"""A kernel of one tap that visits every cell: the convolution is a matrix product as it stands.

With KH = KW = 1, stride 1 and no padding every window is one cell, so x is its own matrix of
columns, y has the size of x, and nothing is copied.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from .geometry import ConvGeometry
from .memory import WorkingSet
from .parallel import Workspace, even_slices, run

__all__ = ["forward", "grad_input", "grad_weight", "working_set"]

# Below, k counts the groups and l the cells of a map.


def forward(
    x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """The convolution without bias: (N, C, H, W) and (O, C/G, 1, 1) to (N, O, H, W)."""
    kernels = weight.reshape(geometry.groups, geometry.OG, geometry.CG)  # k o c
    return _mixed(kernels, x, geometry.output_shape, threads)


def grad_input(
    grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): the same product with every kernel transposed."""
    kernels = weight.reshape(geometry.groups, geometry.OG, geometry.CG)
    return _mixed(kernels.swapaxes(1, 2), grad_output, geometry.x_shape, threads)


def grad_weight(
    grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂weight, (O, C/G, 1, 1): upstream gradient times x, one image after the other."""
    G, OG, CG = geometry.groups, geometry.OG, geometry.CG
    upstream, seen = _rows(grad_output, G), _rows(x, G)  # n k o l, n k c l
    grad = np.zeros((G, OG, CG), np.result_type(grad_output, x))
    space = Workspace(grad.dtype)

    def add(part: tuple[slice, slice, slice]) -> None:
        groups, outputs, channels = part
        mine = grad[groups, outputs, channels]
        out = mine  # of the first image; the others are added
        for g, maps in zip(upstream, seen, strict=True):
            np.matmul(g[groups, outputs], maps[groups, channels].swapaxes(1, 2), out=out)
            if out is not mine:
                mine += out
            out = space.array("product", mine.shape)

    # by groups, or else along the longer side of the matrix
    cuts = (threads, 1, 1) if threads <= G else (1, threads, 1) if CG <= OG else (1, 1, threads)
    k, o, c = (even_slices(*each) for each in zip((G, OG, CG), cuts, strict=True))
    run(add, list(product(k, o, c)), threads)
    return grad.reshape(geometry.weight_shape)


def _mixed(
    kernels: np.ndarray, maps: np.ndarray, shape: tuple[int, ...], threads: int
) -> np.ndarray:
    """Every cell's channels, mixed by the kernels of its group: an array of this shape."""
    mixed = np.empty(shape, np.result_type(kernels, maps))
    source, there = _rows(maps, len(kernels)), _rows(mixed, len(kernels))  # n k · l

    def write(piece: tuple[slice, slice]) -> None:
        images, cells = piece
        np.matmul(kernels, source[images, ..., cells], out=there[images, ..., cells])

    N, L = len(maps), there.shape[3]
    cuts = even_slices(L, 1 if threads <= N else threads)  # one image alone is cut too
    run(write, [(n, l) for n in even_slices(N, threads) for l in cuts], threads)
    return mixed


def _rows(maps: np.ndarray, groups: int) -> np.ndarray:
    """Every map as one row, by groups: (N, G, channels, H·W)."""
    N, channels, H, W = maps.shape
    return maps.reshape(N, groups, channels // groups, H * W)


def working_set(geometry: ConvGeometry, threads: int = 1) -> WorkingSet:
    """The results; and for grad_weight the product that is added to it, each thread a part."""
    return WorkingSet(
        forward=math.prod(geometry.output_shape),
        grad_input=math.prod(geometry.x_shape),
        grad_weight=2 * math.prod(geometry.weight_shape),
    )
