"""Groups, seen two ways: blocks on a diagonal, and one call for the whole batch.

Trades time for memory where groups are many: on layer "8 groups" the backward pass peaks at
1.9 MB where im2col needs 9.1, and takes 10 times as long.

A grouped convolution is an ordinary one whose weight is zero outside G blocks on the
diagonal.  And the other way round: an ordinary sum over images can be had from a *more*
grouped convolution, in which every image is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from . import correlate, windows
from .geometry import ConvGeometry
from .windows import grad_bias

__all__ = [
    "block_diagonal",
    "blocks",
    "forward",
    "grad_bias",
    "grad_input",
    "grad_weight",
    "grad_weight_per_image",
]


def blocks(geometry: ConvGeometry) -> Iterator[tuple[slice, slice]]:
    """The output channels and the input channels of each group: the blocks of the diagonal.

    >>> list(blocks(ConvGeometry(C=4, H=1, W=1, O=6, KH=1, KW=1, groups=2)))
    [(slice(0, 3, None), slice(0, 2, None)), (slice(3, 6, None), slice(2, 4, None))]
    """
    OG, CG = geometry.OG, geometry.CG
    for k in range(geometry.groups):
        yield slice(k * OG, (k + 1) * OG), slice(k * CG, (k + 1) * CG)


def block_diagonal(weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The weight of the same convolution without groups, (O, C, KH, KW), zero off the blocks.

    >>> geometry = ConvGeometry(C=4, H=1, W=1, O=4, KH=1, KW=1, groups=2)
    >>> weight = np.arange(1, 9).reshape(4, 2, 1, 1)
    >>> block_diagonal(weight, geometry)[:, :, 0, 0]  # o c
    array([[1, 2, 0, 0],
           [3, 4, 0, 0],
           [0, 0, 5, 6],
           [0, 0, 7, 8]])
    """
    dense = np.zeros((geometry.O, geometry.C, geometry.KH, geometry.KW), weight.dtype)
    for o, c in blocks(geometry):
        dense[o, c] = weight[o]
    return dense


def forward(x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The convolution without bias, block by block: (N, C, H, W) to (N, O, OH, OW).

    What lies off the diagonal is skipped rather than multiplied by zero: it is most of the
    work, and zero times an infinity of another group would be nan.
    """
    block = _one_block(geometry)
    y = np.empty(geometry.output_shape, np.result_type(x, weight))
    for o, c in blocks(geometry):
        y[:, o] = windows.forward(x[:, c], weight[o], block)
    return y


def grad_input(grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """∂L/∂x, (N, C, H, W), block by block: a group's gradient stays in the group."""
    block = _one_block(geometry)
    grad = np.empty(geometry.x_shape, np.result_type(grad_output, weight))
    for o, c in blocks(geometry):
        grad[:, c] = windows.grad_input(grad_output[:, o], weight[o], block)
    return grad


def grad_weight(grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """∂L/∂weight, (O, C/G, KH, KW): the shares of all images from one call, then their sum."""
    return grad_weight_per_image(grad_output, x, geometry).sum(axis=0)  # n o c i j → o c i j


def grad_weight_per_image(
    grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry
) -> np.ndarray:
    """Every image's own share of grad_weight, (N, O, C/G, KH, KW), by one convolution.

    The "batch × groups" trick in its general form: all images side by side as the channels of
    a single one with N·G groups, so that nothing is summed over n.
    """
    N, C, O = geometry.N, geometry.C, geometry.O
    if N == 0:
        return np.zeros((0, *geometry.weight_shape), np.result_type(grad_output, x))
    side_by_side = replace(geometry, N=1, C=N * C, O=N * O, groups=N * geometry.groups)
    images = x.reshape(side_by_side.x_shape)  # 1 (n c) h v
    upstream = grad_output.reshape(side_by_side.output_shape)  # 1 (n o) p q
    shares = correlate.grad_weight(upstream, images, side_by_side)  # (n o) c i j
    return shares.reshape(N, *geometry.weight_shape)  # n o c i j


def _one_block(geometry: ConvGeometry) -> ConvGeometry:
    """The geometry of one group alone, an ordinary convolution."""
    return replace(geometry, C=geometry.CG, O=geometry.OG, groups=1)
