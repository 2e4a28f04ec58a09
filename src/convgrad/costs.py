"""What a convolution costs before anybody computes it: operations, and bytes moved to and fro.

Forward pass, weight gradient and input gradient are one sum with one of three arrays left out, so
they cost the same: a multiplication and an addition for every product; two arrays read, one
written.  The ratio of the two, operations per byte, says whether a processor will be kept waiting
by its memory (the roofline model of Williams, Waterman and Patterson, 2009).

>>> from convgrad import ConvGeometry
>>> layer = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
>>> operations(layer), traffic(layer), traffic(layer, columns=True)
(162, 172, 820)
"""

from __future__ import annotations

import math

from .geometry import ConvGeometry
from .windows import window_numbers

__all__ = ["intensity", "operations", "traffic"]


def operations(geometry: ConvGeometry) -> int:
    """Multiplications and additions of one map: forward, weight gradient or input gradient.

    Parameters
    ----------
    geometry : ConvGeometry

    Returns
    -------
    int
        Two for every product, those on padding too, as libraries count them.

    Examples
    --------
    >>> layer = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> operations(layer)  # 9 outputs of 9 products each
    162
    """
    return 2 * math.prod(geometry.output_shape) * math.prod(geometry.weight_shape[1:])


def traffic(geometry: ConvGeometry, itemsize: int = 4, *, columns: bool = False) -> int:
    """Bytes between memory and processor for one map, if nothing is fetched twice.

    Parameters
    ----------
    geometry : ConvGeometry
    itemsize : int, default 4
        Bytes of one number; 4 is float32.
    columns : bool, default False
        Whether the columns of im2col are written to memory and read from it again.  (Those of a
        1×1 kernel with stride 1 and no border are x itself, and nothing is written.)

    Returns
    -------
    int
        x, weight and output once each: of the three one is written, the others read.

    Examples
    --------
    >>> layer = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> traffic(layer)  # 25 + 9 + 9 numbers
    172
    >>> traffic(layer, columns=True)  # and 81 more, written and read
    820
    """
    shapes = geometry.x_shape, geometry.weight_shape, geometry.output_shape
    copied = 2 * window_numbers(geometry) if columns and not _is_pointwise(geometry) else 0
    return itemsize * (sum(map(math.prod, shapes)) + copied)


def intensity(geometry: ConvGeometry, itemsize: int = 4, *, columns: bool = False) -> float:
    """Operations for every byte that is moved, the arithmetic intensity.

    Parameters
    ----------
    geometry : ConvGeometry
    itemsize : int, default 4
    columns : bool, default False
        As for :func:`traffic`.

    Returns
    -------
    float

    Examples
    --------
    >>> layer = ConvGeometry(N=8, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1)
    >>> round(intensity(layer)), round(intensity(layer, columns=True))
    (142, 14)
    """
    return operations(geometry) / traffic(geometry, itemsize, columns=columns)


def _is_pointwise(geometry: ConvGeometry) -> bool:
    unpadded = geometry.padding == ((0, 0), (0, 0))
    return (geometry.KH, geometry.KW) == geometry.stride == (1, 1) and unpadded
