"""The same sums as matrix products: write every window out as a column, then multiply.

Trades memory for speed: on layer "3×3" the backward pass takes 2.3 times as long as PyTorch's, at a
peak of 4.5 MB for an x of 0.4 MB.

``unfold`` copies each input cell once for every tap that reads it; after that the convolution
and both gradients are plain matrix products, which is what processors do best.  (Libraries for
them spare themselves the special cases of complex numbers: a sum with an infinity in it may come
out as nan + nan·j, where the other ways keep what can be known, such as inf + nan·j.)
"""

from __future__ import annotations

import math

import numpy as np

from .geometry import ConvGeometry
from .memory import WorkingSet
from .padding import folded_numbers, padded_numbers
from .windows import grad_bias, overlap_add, split_groups, window_numbers, windows

__all__ = [
    "column_numbers",
    "fold",
    "forward",
    "grad_bias",
    "grad_input",
    "grad_weight",
    "unfold",
    "working_set",
]


def unfold(x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """Every window as one column, in the shape of ``torch.nn.Unfold``.

    Parameters
    ----------
    x : ndarray, (N, C, H, W)
    geometry : ConvGeometry

    Returns
    -------
    columns : ndarray, (N, C·KH·KW, OH·OW)
        A copy, same dtype: each cell once for every tap that reads it.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2)
    >>> unfold(np.arange(9).reshape(1, 1, 3, 3), geometry)[0]
    array([[0, 1, 3, 4],
           [1, 2, 4, 5],
           [3, 4, 6, 7],
           [4, 5, 7, 8]])
    """
    columns = windows(x, geometry).transpose(0, 1, 4, 5, 2, 3)  # n c i j p q
    N, C, KH, KW, OH, OW = columns.shape
    return columns.reshape(N, C * KH * KW, OH * OW)  # the copy happens here


def fold(columns: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """Add every column back to the window it came from: the adjoint of :func:`unfold`.

    The adjoint, not the inverse: ``fold(unfold(x))`` is x times how often each cell is read.

    Parameters
    ----------
    columns : ndarray, (N, C·KH·KW, OH·OW)
    geometry : ConvGeometry

    Returns
    -------
    x : ndarray, (N, C, H, W)
        Same dtype.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2)
    >>> fold(unfold(np.ones((1, 1, 3, 3)), geometry), geometry)[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]])
    """
    N, C, OH, OW = len(columns), geometry.C, geometry.OH, geometry.OW
    products = columns.reshape(N, C, geometry.KH, geometry.KW, OH, OW)  # n c i j p q
    return overlap_add(products.transpose(0, 1, 4, 5, 2, 3), geometry)  # n c p q i j


def column_numbers(geometry: ConvGeometry) -> int:
    """How many numbers :func:`unfold` would write, without writing one.

    Parameters
    ----------
    geometry : ConvGeometry

    Returns
    -------
    int

    Examples
    --------
    >>> layer = ConvGeometry(N=32, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1)
    >>> column_numbers(layer) / (32 * 64 * 56 * 56)  # times as many as x has
    9.0
    """
    return window_numbers(geometry)


# Below, k counts the groups, r = (c, i, j) the rows of the columns and l = (p, q) the windows.


def forward(
    x: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """The convolution without bias, (N, O, OH, OW): kernels times columns."""
    columns = split_groups(unfold(x, geometry), 1, geometry)  # n k r l
    y = _kernel_rows(weight, geometry) @ columns  # k o r · n k r l = n k o l
    return y.reshape(geometry.output_shape)


def grad_weight(
    grad_output: np.ndarray,
    x: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """∂L/∂weight, (O, C/G, KH, KW): g times columns, added over the images."""
    columns = split_groups(unfold(x, geometry), 1, geometry)  # n k r l
    upstream = _output_rows(grad_output, geometry)  # n k o l
    per_image = upstream @ columns.swapaxes(2, 3)  # n k o l · n k l r = n k o r
    return per_image.sum(axis=0).reshape(geometry.weight_shape)


def grad_input(
    grad_output: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): transposed kernels times g, folded back."""
    upstream = _output_rows(grad_output, geometry)  # n k o l
    kernels = _kernel_rows(weight, geometry).swapaxes(1, 2)  # k r o
    products = kernels @ upstream  # k r o · n k o l = n k r l
    N, groups, rows, windows = products.shape
    return fold(products.reshape(N, groups * rows, windows), geometry)


def _kernel_rows(weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """Every kernel as one row: (G, O/G, C/G·KH·KW), k o r."""
    taps = geometry.CG * geometry.KH * geometry.KW
    return weight.reshape(geometry.groups, geometry.OG, taps)


def _output_rows(grad_output: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """Every map of g as one row: (N, G, O/G, OH·OW), n k o l."""
    maps = split_groups(grad_output, 1, geometry)  # n k o p q
    return maps.reshape(*maps.shape[:3], geometry.OH * geometry.OW)


def working_set(geometry: ConvGeometry) -> WorkingSet:
    """The columns, and beside them first the padded image, then the result."""
    padded = padded_numbers(geometry)
    copied = padded if geometry.padding != ((0, 0), (0, 0)) else 0  # pad makes a copy of x
    columns = written = column_numbers(geometry)
    if columns == padded and 1 in (geometry.KH * geometry.KW, geometry.OH * geometry.OW):
        written, copied = copied, 0  # the columns are the padded image itself, nothing is copied
    per_image = (geometry.N + 1) * math.prod(geometry.weight_shape)  # and their sum
    return WorkingSet(
        forward=written + max(copied, math.prod(geometry.output_shape)),
        grad_input=columns + padded + folded_numbers(geometry),
        grad_weight=written + max(copied, per_image),
    )
