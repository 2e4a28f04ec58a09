"""Both gradients as convolutions of their own.

Trades time for memory, and for insight: on layer "5×5" the backward pass peaks at 0.67 MB where
im2col needs 5.5, and takes 5.5 times as long.

grad_weight is a convolution in which x is searched with g as the kernel, **stride and dilation
changing places**, cropped to the size of the kernel.  grad_input is a transposed convolution
of g, with the leftover of the size formula as its ``output_padding``.
"""

from __future__ import annotations

import math

import numpy as np

from . import windows
from .geometry import ConvGeometry
from .memory import WorkingSet
from .padding import fold_border, folded_numbers, padded_numbers
from .windows import forward, grad_bias, reach, split_groups

__all__ = [
    "conv_transpose",
    "forward",
    "grad_bias",
    "grad_input",
    "grad_weight",
    "lay_down",
    "swapped",
    "working_set",
]


def swapped(geometry: ConvGeometry) -> ConvGeometry:
    """The sizes of the convolution that computes grad_weight: g slid over x.

    Images become channels (they are summed over), channels become images (each
    is a result of its own), and the kernel is as large as the output was.  In
    h = stride·p + dilation·i the output index p now counts taps and the tap
    index i counts outputs, so stride and dilation change places.  Its output is
    larger than the kernel by the surplus.
    """
    return ConvGeometry(
        N=geometry.CG,
        C=geometry.groups * geometry.N,
        H=geometry.H,
        W=geometry.W,
        O=geometry.O,
        KH=geometry.OH,
        KW=geometry.OW,
        stride=geometry.dilation,
        dilation=geometry.stride,
        padding=geometry.padding,
        padding_mode=geometry.padding_mode,
        groups=geometry.groups,
    )


def grad_weight(
    grad_output: np.ndarray,
    x: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """∂L/∂weight, (O, C/G, KH, KW): x searched with g, then cropped."""
    if geometry.N == 0:  # without an image there is no channel to sum over
        return np.zeros(geometry.weight_shape, np.result_type(grad_output, x))
    search = swapped(geometry)
    images = split_groups(x, 1, geometry)  # n k c h v
    images = images.transpose(2, 1, 0, 3, 4)  # c k n h v
    images = images.reshape(search.x_shape)  # c (k n) h v
    kernels = grad_output.swapaxes(0, 1)  # o n p q
    taps = forward(images, kernels, search)  # c o i j, and the surplus
    # a leftover that holds one more dilation step makes taps that do not exist
    return taps[:, :, : geometry.KH, : geometry.KW].swapaxes(0, 1)  # o c i j


def grad_input(
    grad_output: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): the kernels laid down, the border folded back."""
    grad_padded = conv_transpose(
        grad_output, weight, geometry, output_padding=geometry.leftover
    )  # n c h v, the border still on
    return fold_border(grad_padded, geometry)


def conv_transpose(
    maps: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, output_padding: tuple[int, int]
) -> np.ndarray:
    """Transposed convolution, before any border is taken off.

    Each tap lays down the whole map, its cells ``stride`` apart, starting ``dilation·(i, j)``
    in; the weight says how much of every output channel goes to every input channel.

    Parameters
    ----------
    maps : ndarray, (N, O, OH, OW)
    weight : ndarray, (O, C/groups, KH, KW)
    geometry : ConvGeometry
        Of the convolution that goes the other way.
    output_padding : pair
        Rows and columns at the end that no window reached; they stay 0.

    Returns
    -------
    spread : ndarray, (N, C, height, width)
        With height = stride·(OH − 1) + dilation·(KH − 1) + 1 + output_padding, the width likewise
        (``torch.nn.ConvTranspose2d``).

    Notes
    -----
    The textbook form (insert stride − 1 zeros between the cells, then convolve with the flipped
    kernel) adds the same products and, besides them, weight × 0 for every inserted zero: wasted
    work, and nan where a weight is infinite.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=1, W=6, O=1, KH=1, KW=3, stride=2)
    >>> maps, weight = np.array([[[[1, 10]]]]), np.array([[[[1, 2, 3]]]])
    >>> conv_transpose(maps, weight, geometry, output_padding=geometry.leftover)
    array([[[[ 1,  2, 13, 20, 30,  0]]]])
    """
    (sh, sw), (height, width) = geometry.stride, geometry.span
    height += sh * (geometry.OH - 1) + output_padding[0]
    width += sw * (geometry.OW - 1) + output_padding[1]
    spread = np.zeros(
        (len(maps), geometry.C, height, width), np.result_type(maps, weight)
    )  # n c · ·
    lay_down(maps, weight, geometry, onto=spread)
    return spread


def lay_down(
    maps: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
    onto: np.ndarray,
) -> None:
    """Add every map, times each tap in turn, onto the cells that tap read."""
    N, G, OH, OW = len(maps), geometry.groups, geometry.OH, geometry.OW
    by_group = split_groups(onto, 1, geometry)  # n k c · ·, a view
    maps = maps.reshape(N, G, geometry.OG, OH * OW)  # n k o l, l = (p, q)
    kernels = split_groups(weight, 0, geometry)  # k o c i j
    for i, j in np.ndindex(geometry.KH, geometry.KW):
        laid = kernels[..., i, j].swapaxes(1, 2) @ maps  # n k c l, o summed
        laid = laid.reshape(N, G, geometry.CG, OH, OW)
        # +=, not =: what two taps lay down overlaps
        by_group[..., *reach(i, j, geometry)] += laid


def working_set(geometry: ConvGeometry) -> WorkingSet:
    """The padded image and the result; for grad_input one tap at a time, two as they change."""
    one_tap = geometry.N * geometry.C * geometry.OH * geometry.OW
    laid = min(2, geometry.KH * geometry.KW) * one_tap
    return WorkingSet(
        forward=windows.working_set(geometry).forward,
        grad_input=padded_numbers(geometry) + max(laid, folded_numbers(geometry)),
        grad_weight=_search_numbers(geometry),
    )


def _search_numbers(geometry: ConvGeometry) -> int:
    """How many numbers grad_weight makes."""
    if geometry.N == 0:
        return math.prod(geometry.weight_shape)
    search = swapped(geometry)
    numbers = windows.working_set(search).forward
    if geometry.groups > 1 and geometry.N > 1:  # images and channels are put in order,
        numbers += math.prod(geometry.x_shape)
    elif geometry.groups > 1 and geometry.CG > 1 and geometry.padding == ((0, 0), (0, 0)):
        numbers += math.prod(search.output_shape)  # or the result of a single image is
    return numbers
