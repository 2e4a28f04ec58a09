"""Groups, seen two ways: blocks on a diagonal, and one call for the whole batch.

Trades time for memory where groups are many: on layer "8 groups" the backward pass peaks at
1.9 MB where im2col needs 9.1, and takes 5.5 times as long.

A grouped convolution is an ordinary one whose weight is zero outside G blocks on the
diagonal.  And the other way round: an ordinary sum over images can be had from a *more*
grouped convolution, in which every image is a group of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from . import correlate, windows
from .geometry import Border, ConvGeometry, ShapeError, Step
from .memory import WorkingSet, require_memory
from .operands import common, finish, number_array, quiet
from .windows import grad_bias

__all__ = [
    "block_diagonal",
    "blocks",
    "forward",
    "grad_bias",
    "grad_input",
    "grad_weight",
    "grad_weight_per_image",
    "per_sample_weight_gradients",
    "working_set",
]


def blocks(geometry: ConvGeometry) -> Iterator[tuple[slice, slice]]:
    """The output channels and the input channels of each group: the blocks of the diagonal.

    Parameters
    ----------
    geometry : ConvGeometry

    Yields
    ------
    o, c : slice
        One pair for each group.

    Examples
    --------
    >>> list(blocks(ConvGeometry(C=4, H=1, W=1, O=6, KH=1, KW=1, groups=2)))
    [(slice(0, 3, None), slice(0, 2, None)), (slice(3, 6, None), slice(2, 4, None))]
    """
    OG, CG = geometry.OG, geometry.CG
    for k in range(geometry.groups):
        yield slice(k * OG, (k + 1) * OG), slice(k * CG, (k + 1) * CG)


def block_diagonal(weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The weight of the same convolution without groups, zero off the blocks.

    Parameters
    ----------
    weight : ndarray, (O, C/groups, KH, KW)
    geometry : ConvGeometry

    Returns
    -------
    dense : ndarray, (O, C, KH, KW)
        Same dtype.

    Examples
    --------
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


def forward(
    x: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """The convolution without bias, (N, O, OH, OW), block by block."""
    # What lies off the diagonal is skipped, not multiplied by zero: it is most
    # of the work, and zero times an infinity of another group would be nan.
    block = _one_block(geometry)
    y = np.empty(geometry.output_shape, np.result_type(x, weight))
    for o, c in blocks(geometry):
        y[:, o] = windows.forward(x[:, c], weight[o], block)
    return y


def grad_input(
    grad_output: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W), block by block: it stays in the group."""
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
    """Every image's own share of grad_weight, (N, O, C/G, KH, KW)."""
    shape = geometry.N, *geometry.weight_shape
    if geometry.N == 0:
        return np.zeros(shape, np.result_type(grad_output, x))
    row = _side_by_side(geometry)
    images = x.reshape(row.x_shape)  # 1 (n c) h v
    upstream = grad_output.reshape(row.output_shape)  # 1 (n o) p q
    shares = correlate.grad_weight(upstream, images, row)  # (n o) c i j
    return shares.reshape(shape)  # n o c i j


def per_sample_weight_gradients(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight_shape: Sequence[int],
    *,
    stride: Step = 1,
    padding: Border = 0,
    dilation: Step = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
) -> np.ndarray:
    """Each image's own gradient of the weight, all from one convolution.

    Their sum over the images is the grad_weight of :func:`conv2d_backward`; apart they serve where
    every sample counts for itself: clipping for differential privacy, influence, gradient noise.
    (The bias needs no trick: ``grad_output.sum(axis=(2, 3))``, (N, O).)

    Parameters
    ----------
    grad_output : array_like, (N, O, OH, OW)
        ∂L/∂y.
    x : array_like, (N, C, H, W)
        As given to conv2d.
    weight_shape : sequence of int
        (O, C/groups, KH, KW); the weight itself is not needed.
    stride, padding, dilation, groups, padding_mode : optional
        As given to conv2d.

    Returns
    -------
    shares : ndarray, (N, O, C/groups, KH, KW)
        In the common type of grad_output and x by the rules of conv2d, so complex where one of
        them is.

    Raises
    ------
    GeometryError
        When the numbers describe no convolution.
    ShapeError
        When a shape does not fit it, among them one image without a batch axis.
    TypeError
        For arrays that hold no numbers.

    References
    ----------
    The same call, for padding with zeros, serves private training in Opacus
    (github.com/meta-pytorch/opacus/pull/245).

    Examples
    --------
    >>> x = [[[[1, 2, 3]]], [[[10, 20, 30]]]]  # two images
    >>> g = [[[[1, 0]]], [[[0, 1]]]]
    >>> shares = per_sample_weight_gradients(g, x, (1, 1, 1, 2))
    >>> shares[:, 0, 0, 0]  # n j
    array([[ 1.,  2.],
           [20., 30.]])
    """
    (grad_output, x), dtype = common(
        [number_array("grad_output", grad_output), number_array("x", x)]
    )
    if x.ndim == 3:
        raise ShapeError(
            f"x has 3 axes, shape {x.shape}: one gradient per image needs a batch, (N, C, H, W); "
            "give x and grad_output a batch axis with [None], for a batch of grey images use "
            "x[:, None]"
        )
    if not isinstance(weight_shape, Sequence) or isinstance(weight_shape, str | bytes):
        raise ShapeError(
            f"weight_shape is of type {type(weight_shape).__name__}: needed are four sizes, "
            "(O, C/groups, KH, KW); if this is the weight itself, pass weight.shape"
        )
    geometry = ConvGeometry.of(
        x.shape, weight_shape, stride, padding, dilation, groups, padding_mode
    )
    geometry.require(grad_output=grad_output)
    shares = 2 * geometry.N * math.prod(geometry.weight_shape)  # cropped, then copied
    require_memory(
        max(working_set(geometry).grad_weight, shares) * x.itemsize,
        f"one weight gradient for each of {geometry.N} images needs",
        "take fewer images at a time",
    )
    with quiet():
        # conj() is the array itself where it is real
        return finish(grad_weight_per_image(grad_output, x.conj(), geometry), dtype)


def working_set(geometry: ConvGeometry) -> WorkingSet:
    """One group's work at a time beside the result; for grad_weight the shares of all images."""
    block = windows.working_set(_one_block(geometry))
    shares = correlate.working_set(_side_by_side(geometry)).grad_weight if geometry.N else 0
    return WorkingSet(
        forward=math.prod(geometry.output_shape) + block.forward,
        grad_input=math.prod(geometry.x_shape) + block.grad_input,
        grad_weight=shares + math.prod(geometry.weight_shape),
    )


def _side_by_side(geometry: ConvGeometry) -> ConvGeometry:
    """All images as the channels of one, each with groups of its own."""
    N, C, O = geometry.N, geometry.C, geometry.O
    groups = N * geometry.groups
    return replace(geometry, N=1, C=N * C, O=N * O, groups=groups)


def _one_block(geometry: ConvGeometry) -> ConvGeometry:
    """The geometry of one group alone, an ordinary convolution."""
    return replace(geometry, C=geometry.CG, O=geometry.OG, groups=1)
