"""The contributions: every single product of a gradient, where it lands, and in which order.

A gradient of conv2d is a long list of products.  Each choice of (n, o, p, q, c, i, j) gives
one product for each of two gradients:

    grad_weight[o, c, i, j]   += x[n, c, h, v] · grad_output[n, o, p, q]
    grad_input[n, c, row, col] += w[o, c, i, j] · grad_output[n, o, p, q]

This module lists them one at a time, in the order of your choice, and adds them up: the
slowest way to a gradient, and the one that hides nothing.  Players and exercises are built
on it; ``loops`` computes the same sums and is tested to agree with it.

>>> from convgrad.examples import example
>>> a = example("A")                     # one pixel, four windows
>>> [(c.target, c.p, c.q) for c in contributions(a.geometry, "weight")][:2]
[((0, 0, 1, 1), 1, 1), ((0, 0, 1, 2), 1, 0)]
>>> x, weight, bias, g = a.arrays()
>>> first = next(contributions(a.geometry, "weight"))
>>> float(product(first, "weight", x=x, grad_output=g))      # x[0,0,0,0] · g[0,0,1,1] = 2 · 4
8.0
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .geometry import ConvGeometry

__all__ = [
    "ORDERS",
    "TARGETS",
    "Contribution",
    "accumulate",
    "contributions",
    "kernel_share",
    "product",
]

TARGETS = ("weight", "input", "bias")

# The nesting of the loops, outermost first.  One order for both products of a step, so that
# the two gradients can be watched side by side.
ORDERS = {
    "tap": "ocijnpq",  # finish one tap of the kernel, then the next
    "position": "npqocij",  # stand on one output cell, hand its g to everything it touched
    "kernel": "onpqcij",  # one output channel at a time: its share alone, then the next
}


class Contribution(NamedTuple):
    """One product: which numbers meet, and in which cell of the gradient they land.

    ``c`` counts within the group of kernel ``o``; ``channel`` is that channel's number in x.
    ``(h, v)`` are the raw coordinates of the index map, outside the image on padding; ``cell``
    is the image cell that is really read, ``None`` on zero padding.  ``target`` is the index
    into the gradient, ``None`` when the product is lost on padding.  For the bias gradient
    ``c, i, j, h, v, cell, channel`` are ``None``: it has no second factor.
    """

    n: int
    o: int
    c: int | None
    p: int
    q: int
    i: int | None
    j: int | None
    h: int | None
    v: int | None
    cell: tuple[int, int] | None
    target: tuple[int, ...] | None
    channel: int | None = None


def contributions(
    geometry: ConvGeometry,
    target: str = "weight",
    order: str = "tap",
    include_padding: bool = False,
) -> Iterator[Contribution]:
    """Every contribution to one gradient, one after the other, in the chosen order.

    ``target`` is ``"weight"``, ``"input"`` or ``"bias"``; ``order`` is ``"tap"``,
    ``"position"`` or ``"kernel"`` (see :data:`ORDERS`).  Products on zero padding are left out
    unless ``include_padding``: for grad_weight they are products with the number 0, for
    grad_input they fall outside the image and have ``target=None``.

    The list is made while it is read, so a layer of any size costs no memory.
    Raises :class:`ValueError` for another target or order.
    """
    _require_choice("target", target, TARGETS)
    _require_choice("order", order, ORDERS)
    if target == "bias":
        return _bias_contributions(geometry, order)
    return _contributions(geometry, target, ORDERS[order], include_padding)


def _contributions(
    geometry: ConvGeometry, target: str, letters: str, include_padding: bool
) -> Iterator[Contribution]:
    for index in _nest(geometry, letters):
        n, o, c, p, q, i, j = (index[letter] for letter in "nocpqij")
        cell = _cell(geometry, p, q, i, j)
        if cell is None and not include_padding:
            continue
        channel = geometry.channel(o, c)
        if target == "weight":
            lands = (o, c, i, j)
        else:
            lands = None if cell is None else (n, channel, *cell)
        h, v = geometry.source(p, q, i, j)
        yield Contribution(n, o, c, p, q, i, j, h, v, cell, lands, channel)


def _bias_contributions(geometry: ConvGeometry, order: str) -> Iterator[Contribution]:
    letters = "".join(letter for letter in ORDERS[order] if letter in "nopq")
    for index in _nest(geometry, letters):
        n, o, p, q = (index[letter] for letter in "nopq")
        yield Contribution(n, o, None, p, q, None, None, None, None, None, (o,))


def _nest(geometry: ConvGeometry, letters: str) -> Iterator[dict[str, int]]:
    """Nested loops over the index letters, the first letter outermost."""
    sizes = (
        geometry.N,
        geometry.O,
        geometry.CG,
        geometry.OH,
        geometry.OW,
        geometry.KH,
        geometry.KW,
    )
    ends = dict(zip("nocpqij", sizes, strict=True))
    for values in itertools.product(*(range(ends[letter]) for letter in letters)):
        yield dict(zip(letters, values, strict=True))


def _cell(geometry: ConvGeometry, p: int, q: int, i: int, j: int) -> tuple[int, int] | None:
    row, col = int(geometry.rows[p, i]), int(geometry.cols[q, j])
    return None if row < 0 or col < 0 else (row, col)


def product(
    contribution: Contribution,
    target: str,
    *,
    x: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    grad_output: np.ndarray | None = None,
) -> np.number:
    """The number that this contribution adds (for a lost one: the number that is lost).

    ``target="weight"`` needs x (N,C,H,W) and grad_output (N,O,OH,OW): x·g.  ``"input"`` needs
    weight (O,C/G,KH,KW) and grad_output: w·g.  ``"bias"`` needs grad_output: g.
    Complex operands are conjugated, as PyTorch does, so that a step along minus the gradient
    lowers the loss.  Raises :class:`ValueError` when an operand is missing.
    """
    _require_choice("target", target, TARGETS)
    n, o, c, p, q, i, j = contribution[:7]
    g = _operand(target, "grad_output", grad_output)[n, o, p, q]
    if target == "bias":
        return g
    if target == "input":
        return np.conj(_operand(target, "weight", weight)[o, c, i, j]) * g
    x = _operand(target, "x", x)
    if contribution.cell is None:
        return x.dtype.type(0) * g  # padding is the number zero, so 0·inf is nan here too
    return np.conj(x[n, contribution.channel, *contribution.cell]) * g


def accumulate(
    geometry: ConvGeometry,
    target: str,
    *,
    x: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    grad_output: np.ndarray | None = None,
    order: str = "tap",
    include_padding: bool = False,
) -> np.ndarray:
    """The gradient, made by adding up its contributions one by one.

    Returns grad_weight (O,C/G,KH,KW), grad_input (N,C,H,W) or grad_bias (O,).  The operands
    are those of :func:`product`.  Float and complex operands keep their dtype (float16 adds up
    in float32 and is rounded once, at the end); integers add up in float64.

    >>> from convgrad.examples import example
    >>> a = example("A")
    >>> x, weight, bias, g = a.arrays()
    >>> accumulate(a.geometry, "weight", x=x, grad_output=g)[0, 0]     # g, turned by 180°
    array([[0., 0., 0., 0.],
           [0., 8., 6., 0.],
           [0., 4., 2., 0.],
           [0., 0., 0., 0.]])
    """
    operands = {"x": x, "weight": weight, "grad_output": grad_output}
    _require_choice("target", target, TARGETS)
    used = {"weight": ("grad_output", "x"), "input": ("grad_output", "weight")}
    names = used.get(target, ("grad_output",))
    arrays = {name: np.asarray(_operand(target, name, operands[name])) for name in names}
    geometry.require(**arrays)
    each_contribution = contributions(geometry, target, order, include_padding)
    dtype, compute = _dtypes(*arrays.values())
    arrays = {name: array.astype(compute, copy=False) for name, array in arrays.items()}
    if target == "bias":
        shape = geometry.bias_shape
    else:
        shape = geometry.weight_shape if target == "weight" else geometry.x_shape
    gradient = np.zeros(shape, compute)
    for each in each_contribution:
        if each.target is not None:
            gradient[each.target] += product(each, target, **arrays)
    return gradient.astype(dtype, copy=False)


def kernel_share(
    geometry: ConvGeometry, grad_output: np.ndarray, weight: np.ndarray, o: int
) -> np.ndarray:
    """What kernel ``o`` alone sends back to the input: its share of grad_input, (N,C,H,W).

    The shares of all kernels add up to grad_input.  Channels of other groups stay 0.
    Raises :class:`IndexError` when there is no such kernel.

    >>> from convgrad.examples import example
    >>> d = example("D")
    >>> x, weight, bias, g = d.arrays()
    >>> shares = [kernel_share(d.geometry, g, weight, o) for o in range(d.geometry.O)]
    >>> bool((sum(shares) == accumulate(d.geometry, "input", weight=weight, grad_output=g)).all())
    True
    """
    grad_output, weight = np.asarray(grad_output), np.asarray(weight)
    geometry.require(grad_output=grad_output, weight=weight)
    if not 0 <= o < geometry.O:
        raise IndexError(f"there is no kernel {o}: they are numbered 0 to {geometry.O - 1}")
    dtype, compute = _dtypes(grad_output, weight)
    grad_output, weight = grad_output.astype(compute), weight.astype(compute)
    share = np.zeros(geometry.x_shape, compute)
    first = geometry.channel(o, 0)
    group = share[:, first : first + geometry.CG]  # n c h v, a view: the kernel's own channels
    for i, j in itertools.product(range(geometry.KH), range(geometry.KW)):
        rows, cols = geometry.rows[:, i], geometry.cols[:, j]
        p, q = np.flatnonzero(rows >= 0), np.flatnonzero(cols >= 0)
        g = grad_output[:, o : o + 1, p[:, None], q]  # n 1 p q, without what padding loses
        products = np.conj(weight[o, :, i, j])[:, None, None] * g  # n c p q
        # add.at, not +=: a padding mode may send several positions to one cell
        np.add.at(group, (slice(None), slice(None), rows[p][:, None], cols[q]), products)
    return share.astype(dtype, copy=False)


def _dtypes(*arrays: np.ndarray) -> tuple[np.dtype, np.dtype]:
    """The dtype of the gradient, and the one to add up in."""
    dtype = np.result_type(*arrays)
    if not np.issubdtype(dtype, np.inexact):
        dtype = np.dtype(np.float64)
    return dtype, np.result_type(dtype, np.float32)


def _operand(target: str, name: str, array: np.ndarray | None) -> np.ndarray:
    if array is None:
        raise ValueError(f"the products of grad_{target} need {name}: pass {name}=…")
    return array


def _require_choice(what: str, value: str, choices: object) -> None:
    if value not in tuple(choices):
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{what} is {value!r}: use one of {known}")
