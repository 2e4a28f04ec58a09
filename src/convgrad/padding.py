"""The border of the image: ``pad`` puts it on, ``fold_border`` takes its gradient back.

Padding is linear, so its gradient is its adjoint: whatever reached a border cell belongs to
the image cell that was copied there, and is lost where the border is the number zero.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from .geometry import ConvGeometry

__all__ = ["fold_border", "folded_numbers", "inside", "pad", "padded_numbers", "with_border"]

# our (and PyTorch's) names for the border, and NumPy's
_NUMPY_MODES: dict[str, Literal["constant", "reflect", "edge", "wrap"]] = {
    "zeros": "constant",
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}


def pad(x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The image with its border.

    Parameters
    ----------
    x : ndarray, (N, C, H, W)
    geometry : ConvGeometry
        Says how wide the border is, and what stands in it.

    Returns
    -------
    padded : ndarray, (N, C, H + top + bottom, W + left + right)
        Same dtype.  Without padding this is ``x`` itself, not a copy.

    Examples
    --------
    >>> row = np.array([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
    >>> padding = ((0, 0), (2, 1))
    >>> geometry = ConvGeometry(C=1, H=1, W=3, O=1, KH=1, KW=1, padding=padding)
    >>> pad(row, geometry)[0, 0]
    array([[0., 0., 1., 2., 3., 0.]])
    >>> from dataclasses import replace
    >>> pad(row, replace(geometry, padding_mode="reflect"))[0, 0]
    array([[3., 2., 1., 2., 3., 2.]])
    """
    if geometry.padding == ((0, 0), (0, 0)):
        return x
    rows, cols = geometry.padding
    return np.pad(x, ((0, 0), (0, 0), rows, cols), mode=_NUMPY_MODES[geometry.padding_mode])


def with_border(geometry: ConvGeometry) -> ConvGeometry:
    """The same convolution of an image that has its border on already: no padding, larger sizes.

    >>> with_border(ConvGeometry(C=1, H=3, W=4, O=1, KH=3, KW=3, padding=1)).describe()
    'x 1×1×5×6, 1 kernel 3×3'
    """
    H, W = geometry.padded_size
    return replace(geometry, H=H, W=W, padding=((0, 0), (0, 0)), padding_mode="zeros")


def fold_border(grad_padded: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The gradient of the image from the gradient of the padded image: the adjoint of :func:`pad`.

    With zero padding the border is cut off; every other mode adds each border cell to the image
    cell that it copies.

    Parameters
    ----------
    grad_padded : ndarray, (N, C, H + top + bottom, W + left + right)
    geometry : ConvGeometry

    Returns
    -------
    grad : ndarray, (N, C, H, W)
        Same dtype; with zero padding a view.

    Examples
    --------
    >>> row = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape(1, 1, 1, 6)
    >>> padding = ((0, 0), (2, 1))
    >>> geometry = ConvGeometry(C=1, H=1, W=3, O=1, KH=1, KW=1, padding=padding)
    >>> fold_border(row, geometry)[0, 0]
    array([[3., 4., 5.]])
    >>> from dataclasses import replace
    >>> fold_border(row, replace(geometry, padding_mode="replicate"))[0, 0]
    array([[ 6.,  4., 11.]])
    """
    if geometry.padding_mode == "zeros":
        (top, _), (left, _) = geometry.padding
        return grad_padded[:, :, top : top + geometry.H, left : left + geometry.W]
    # rows first, then columns: a corner takes both steps home
    by_rows = _fold_axis(grad_padded, geometry.padded_rows, geometry.H, axis=2)
    return _fold_axis(by_rows, geometry.padded_cols, geometry.W, axis=3)


def _fold_axis(grad: np.ndarray, home: np.ndarray, size: int, axis: int) -> np.ndarray:
    """Add line k of ``axis`` to line ``home[k]``, for all lines."""
    if len(home) == size:  # no border on this axis
        return grad
    lines = np.moveaxis(grad, axis, 0)
    folded = np.zeros((size, *lines.shape[1:]), grad.dtype)
    for line, k in zip(lines, home, strict=True):
        folded[k] += line  # +=, not =: a cell and its copies meet
    return np.moveaxis(folded, 0, axis)


# ---- how many numbers they make --------------------------------------------------------------


def padded_numbers(geometry: ConvGeometry) -> int:
    """How many numbers the padded image has; :func:`pad` makes them where there is padding."""
    return geometry.N * geometry.C * math.prod(geometry.padded_size)


def folded_numbers(geometry: ConvGeometry) -> int:
    """How many numbers :func:`fold_border` makes at once: none where it only cuts."""
    if geometry.padding_mode == "zeros":
        return 0
    (height, width), maps = geometry.padded_size, geometry.N * geometry.C
    by_rows = maps * geometry.H * width if height > geometry.H else 0
    return by_rows + (maps * geometry.H * geometry.W if width > geometry.W else 0)


def inside(start: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """Which of the places start, start + step, … (``count`` of them) lie in ``range(size)``.

    As a slice of their numbers, and as the slice of the range that they are.

    >>> inside(start=-1, step=2, count=5, size=6)  # −1, 1, 3, 5, 7
    (slice(1, 4, None), slice(1, 6, 2))
    """
    first = max(0, -(start // step))
    last = min(count, -((start - size) // step))
    if first >= last:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(start + step * first, start + step * (last - 1) + 1, step)
