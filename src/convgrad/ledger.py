"""The contributions: every single product of a gradient, where it lands, and in which order.

A gradient of conv2d is a long list of products.  Each choice of (n, o, p, q, c, i, j) gives
one product for each of two gradients:

    grad_weight[o, c, i, j]   += x[n, c, h, v] · grad_output[n, o, p, q]
    grad_input[n, c, row, col] += w[o, c, i, j] · grad_output[n, o, p, q]

This module lists them one at a time, in the order of your choice, and adds them up: the
slowest way to a gradient, and the one that hides nothing.  Players and exercises are built
on it; ``loops`` computes the same sums and is tested to agree with it.  For the millions of a
whole layer, :mod:`convgrad.tables` has the same list as arrays.

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
import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from . import windows
from .geometry import ConvGeometry, require_geometry, shown
from .memory import require_memory
from .operands import common, finish, gradient_type, number_array, quiet

__all__ = [
    "ORDERS",
    "TARGETS",
    "Contribution",
    "accumulate",
    "contributions",
    "empty_gradient",
    "kernel_share",
    "product",
    "ready",
    "require_choice",
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
    require_geometry(geometry)
    require_choice("target", target, TARGETS)
    require_choice("order", order, ORDERS)
    if target == "bias":
        return _bias_contributions(geometry, order)
    return _contributions(geometry, target, ORDERS[order], include_padding)


def _contributions(
    geometry: ConvGeometry, target: str, letters: str, include_padding: bool
) -> Iterator[Contribution]:
    for index in _nest(geometry, letters):
        n, o, c, p, q, i, j = (index[letter] for letter in "nocpqij")
        h, v = geometry.source(p, q, i, j)
        cell = geometry.cell(h, v)
        if cell is None and not include_padding:
            continue
        channel = geometry.channel(o, c)
        lands: tuple[int, ...] | None = (o, c, i, j)
        if target == "input":
            lands = None if cell is None else (n, channel, *cell)
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
    Types follow :mod:`convgrad.operands`: whole numbers count as float64, and a product of
    float16 is the float32 that :func:`accumulate` adds.  Complex operands are conjugated, as
    PyTorch does, so that a step along minus the gradient lowers the loss.  Raises
    :class:`ValueError` when an operand is missing, TypeError when one holds no numbers.
    """
    arrays, _ = ready(target, x=x, weight=weight, grad_output=grad_output)
    with quiet():
        return _product(contribution, target, arrays)


def _product(contribution: Contribution, target: str, arrays: dict[str, np.ndarray]) -> np.number:
    """The product of operands that are ready: arrays of the one type to add up in."""
    n, o, c, p, q, i, j = contribution[:7]
    g = arrays["grad_output"][n, o, p, q]
    if target == "bias":
        return g
    if target == "input":
        return np.conj(arrays["weight"][o, c, i, j]) * g
    x = arrays["x"]
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
    are those of :func:`product`, and types follow :mod:`convgrad.operands`.  With all three
    operands the result is conv2d_backward's to the type: it is in the common type of them all,
    and real where the operand whose gradient it is (``weight`` for target "weight") is real.
    Without that operand it is the whole sum, complex where a factor is.

    >>> from convgrad.examples import example
    >>> a = example("A")
    >>> x, weight, bias, g = a.arrays()
    >>> accumulate(a.geometry, "weight", x=x, grad_output=g)[0, 0]     # g, turned by 180°
    array([[0., 0., 0., 0.],
           [0., 8., 6., 0.],
           [0., 4., 2., 0.],
           [0., 0., 0., 0.]])
    """
    each_contribution = contributions(geometry, target, order, include_padding)
    arrays, dtype = ready(target, x=x, weight=weight, grad_output=grad_output)
    geometry.require(**arrays)
    gradient = empty_gradient(geometry, target, arrays["grad_output"].dtype)
    with quiet():
        for each in each_contribution:
            if each.target is not None:
                gradient[each.target] += _product(each, target, arrays)
        return finish(gradient, dtype)


def kernel_share(
    geometry: ConvGeometry, grad_output: np.ndarray, weight: np.ndarray, o: int
) -> np.ndarray:
    """What kernel ``o`` alone sends back to the input: its share of grad_input, (N,C,H,W).

    The shares of all kernels add up to grad_input.  Channels of other groups stay 0.  Types
    follow :mod:`convgrad.operands`.  Raises TypeError when ``o`` is no whole number, and
    :class:`IndexError` when there is no such kernel.

    >>> from convgrad.examples import example
    >>> d = example("D")
    >>> x, weight, bias, g = d.arrays()
    >>> shares = [kernel_share(d.geometry, g, weight, o) for o in range(d.geometry.O)]
    >>> bool((sum(shares) == accumulate(d.geometry, "input", weight=weight, grad_output=g)).all())
    True
    """
    require_geometry(geometry)
    arrays, dtype = ready("input", weight=weight, grad_output=grad_output)
    geometry.require(**arrays)
    try:
        if isinstance(o, bool | np.bool_):
            raise TypeError
        o = operator.index(o)
    except Exception:  # whatever its own __index__ says
        raise TypeError(
            f"o is {shown(o)}: needed is the number of a kernel, 0 to {geometry.O - 1}"
        ) from None
    if not 0 <= o < geometry.O:
        raise IndexError(f"there is no kernel {o}: they are numbered 0 to {geometry.O - 1}")
    alone = replace(geometry, C=geometry.CG, O=1, groups=1)
    g, kernel = arrays["grad_output"][:, o : o + 1], arrays["weight"][o : o + 1].conj()
    share = empty_gradient(geometry, "input", g.dtype)
    first = geometry.channel(o, 0)
    with quiet():
        share[:, first : first + geometry.CG] = windows.grad_input(g, kernel, alone)
        return finish(share, dtype)


def empty_gradient(geometry: ConvGeometry, target: str, dtype: np.dtype) -> np.ndarray:
    """Zeros in the shape of the gradient, for products to be added to."""
    shapes: dict[str, tuple[int, ...]] = {
        "weight": geometry.weight_shape,
        "input": geometry.x_shape,
    }
    shape = shapes.get(target, geometry.bias_shape)
    require_memory(
        math.prod(shape) * dtype.itemsize,
        f"grad_{target} of shape {shape} needs",
        "use smaller sizes",
    )
    return np.zeros(shape, dtype)


def ready(target: str, **operands: np.ndarray | None) -> tuple[dict[str, np.ndarray], np.dtype]:
    """The operands that were given, in the one type to add up in, and the gradient's type."""
    require_choice("target", target, TARGETS)
    factors = {"weight": ("x", "grad_output"), "input": ("weight", "grad_output")}
    for name in factors.get(target, ("grad_output",)):
        if operands[name] is None:
            raise ValueError(f"the products of grad_{target} need {name}: pass {name}=…")
    given = {name: number_array(name, a) for name, a in operands.items() if a is not None}
    arrays, dtype = common(list(given.values()))
    own = given.get({"weight": "weight", "input": "x"}.get(target, ""))
    if own is not None:
        dtype = gradient_type(dtype, own)
    return dict(zip(given, arrays, strict=True)), dtype


def require_choice(what: str, value: str, choices: Iterable[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{what} is {shown(value)}: use one of {known}")
