"""im2col as it is usually taught, for comparison: index arrays to read, ``np.add.at`` to write.

Courses and blog posts build three arrays of indices once, fetch all columns with one fancy
index, and put the gradient back with ``np.add.at``, which adds number by number because an
index may occur twice.  It is short and right; what it costs stands in the tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..geometry import ConvGeometry

__all__ = ["backward"]


def backward(
    grad_output: np.ndarray, x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All three gradients of a convolution that is padded with zeros, group by group."""
    grad_input, grad_weight = np.empty_like(x), np.empty_like(weight)
    for k in range(geometry.groups):
        ins = slice(k * geometry.CG, (k + 1) * geometry.CG)
        outs = slice(k * geometry.OG, (k + 1) * geometry.OG)
        grad_input[:, ins], grad_weight[outs] = _one_group(
            grad_output[:, outs], x[:, ins], weight[outs], geometry
        )
    return grad_input, grad_weight, grad_output.sum(axis=(0, 2, 3))


def _one_group(
    grad_output: np.ndarray, x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry
) -> tuple[np.ndarray, np.ndarray]:
    channel, row, column = _indices(geometry)
    padded = np.pad(x, ((0, 0), (0, 0), *geometry.padding))
    columns = padded[:, channel, row, column]  # n r l
    columns = columns.transpose(1, 2, 0).reshape(len(channel), -1)  # r (l n)
    upstream = grad_output.transpose(1, 2, 3, 0).reshape(len(weight), -1)  # o (l n)
    grad_weight = upstream @ columns.T
    products = weight.reshape(len(weight), -1).T @ upstream  # r (l n)
    products = products.reshape(len(channel), -1, len(x)).transpose(2, 0, 1)  # n r l
    grad_padded = np.zeros_like(padded)
    places: Any = (slice(None), channel, row, column)
    np.add.at(grad_padded, places, products)
    (top, _), (left, _) = geometry.padding
    grad_input = grad_padded[:, :, top : top + geometry.H, left : left + geometry.W]
    return grad_input, grad_weight.reshape(weight.shape)


def _indices(geometry: ConvGeometry) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Channel (r, 1), row and column (r, l) of the padded x for every tap and every window."""
    taps = np.indices((geometry.CG, geometry.KH, geometry.KW)).reshape(3, -1, 1)
    places = np.indices((geometry.OH, geometry.OW)).reshape(2, 1, -1)
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    return taps[0], sh * places[0] + dh * taps[1], sw * places[1] + dw * taps[2]
