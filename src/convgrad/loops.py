"""The definition: every product of the convolution, one at a time, in plain loops.

Trades all speed for clarity: the backward pass of layer "tiny" takes 200 times as long as
PyTorch's (measured, as in the other modules, by ``benchmarks/rungs.py``).  Nothing here is
clever, so this is what every faster way is tested against.  It asks the geometry one question
only (which cell does tap (i, j) read for output (p, q)?) and shares no code with the others.

    y[n,o,p,q] = b[o] + Σ_{c,i,j} w[o,c,i,j] · x[n,c,h,v]

The same products, sent to another cell, are the gradients (the chain rule, product by product):

    grad_weight[o,c,i,j] += x[n,c,h,v] · g[n,o,p,q]
    grad_input [n,c,h,v] += w[o,c,i,j] · g[n,o,p,q]
    grad_bias  [o]       +=              g[n,o,p,q]

Source of the formulas: the sum above, differentiated by hand.  For the picture behind the
index map see Dumoulin & Visin, *A guide to convolution arithmetic for deep learning*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from .geometry import ConvGeometry
from .memory import WorkingSet

__all__ = [
    "forward",
    "grad_bias",
    "grad_input",
    "grad_weight",
    "products",
    "read",
    "working_set",
]


def products(geometry: ConvGeometry) -> Iterator[tuple[Any, ...]]:
    """Every product of the convolution: its seven indices, and where x is read.

    Yields n, o, p, q, c, i, j, at: the last is the index into x (and into
    grad_input), or None where the tap lies on zero padding.
    """
    N, O, CG = geometry.N, geometry.O, geometry.CG
    sizes = geometry.OH, geometry.OW, geometry.KH, geometry.KW
    for p, q, i, j in product(*map(range, sizes)):
        cell = geometry.cell(*geometry.source(p, q, i, j))
        for n, o, c in product(range(N), range(O), range(CG)):
            at = None if cell is None else (n, geometry.channel(o, c), *cell)
            yield n, o, p, q, c, i, j, at


def read(x: np.ndarray, at: tuple[int, ...] | None) -> np.generic:
    """The value a tap sees: a cell of x, or the number 0 on zero padding."""
    return x.dtype.type(0) if at is None else x[at]


def forward(
    x: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """The convolution without bias.

    From (N, C, H, W) and (O, C/G, KH, KW) to (N, O, OH, OW).
    """
    y = np.zeros(geometry.output_shape, np.result_type(x, weight))
    for n, o, p, q, c, i, j, at in products(geometry):
        y[n, o, p, q] += weight[o, c, i, j] * read(x, at)
    return y


def grad_weight(
    grad_output: np.ndarray,
    x: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """∂L/∂weight, (O, C/G, KH, KW): every product x·g lands in one tap."""
    grad = np.zeros(geometry.weight_shape, np.result_type(grad_output, x))
    for n, o, p, q, c, i, j, at in products(geometry):
        grad[o, c, i, j] += read(x, at) * grad_output[n, o, p, q]
    return grad


def grad_input(
    grad_output: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): every w·g goes back to the cell that was read."""
    grad = np.zeros(geometry.x_shape, np.result_type(grad_output, weight))
    for n, o, p, q, c, i, j, at in products(geometry):
        if at is not None:  # on zero padding the product is lost
            grad[at] += weight[o, c, i, j] * grad_output[n, o, p, q]
    return grad


def grad_bias(grad_output: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """∂L/∂bias, (O,): the bias reaches every output cell once."""
    grad = np.zeros(geometry.bias_shape, grad_output.dtype)
    for n, o, p, q in product(*map(range, geometry.output_shape)):
        grad[o] += grad_output[n, o, p, q]
    return grad


def working_set(geometry: ConvGeometry) -> WorkingSet:
    """The results, and nothing else."""
    shapes = geometry.output_shape, geometry.x_shape, geometry.weight_shape
    return WorkingSet(*map(math.prod, shapes))
