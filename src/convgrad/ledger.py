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

    Attributes
    ----------
    n, o, p, q : int
        The cell of grad_output.
    c, i, j : int or None
        The cell of the kernel; c counts within the group of kernel o.
    h, v : int or None
        The raw coordinates of the index map, outside the image on padding.
    cell : pair or None
        The image cell that is really read; None on zero padding.
    target : tuple of int or None
        The index into the gradient; None when the product is lost on padding.
    channel : int or None
        The channel of x that c stands for.

    Notes
    -----
    For the bias gradient c, i, j, h, v, cell and channel are None: it has no second factor.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> next(contributions(example("A").geometry, "input"))  # doctest: +NORMALIZE_WHITESPACE
    Contribution(n=0, o=0, c=0, p=1, q=1, i=1, j=1, h=0, v=0, cell=(0, 0),
                 target=(0, 0, 0, 0), channel=0)
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

    The list is made while it is read, so a layer of any size costs no memory.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str, default "weight"
        The gradient: "weight", "input" or "bias".
    order : str, default "tap"
        The loop that is outermost: "tap", "position" or "kernel", see :data:`ORDERS`.
    include_padding : bool, default False
        Also the products on zero padding: for grad_weight they are products with the number 0,
        for grad_input they fall outside the image and have ``target=None``.

    Yields
    ------
    Contribution

    Raises
    ------
    ValueError
        For another target or order.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=1, W=3, O=1, KH=1, KW=2)
    >>> for c in contributions(geometry, "weight"):
    ...     print(f"{c.target} takes x{list(c.cell)}·g{[c.p, c.q]}")
    (0, 0, 0, 0) takes x[0, 0]·g[0, 0]
    (0, 0, 0, 0) takes x[0, 1]·g[0, 1]
    (0, 0, 0, 1) takes x[0, 1]·g[0, 0]
    (0, 0, 0, 1) takes x[0, 2]·g[0, 1]
    """
    require_geometry(geometry)
    require_choice("target", target, TARGETS)
    require_choice("order", order, ORDERS)
    if target == "bias":
        return _bias_contributions(geometry, order)
    return _contributions(geometry, target, ORDERS[order], include_padding)


def _contributions(
    geometry: ConvGeometry,
    target: str,
    letters: str,
    include_padding: bool,
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

    Parameters
    ----------
    contribution : Contribution
    target : str
        "weight" multiplies x·g, "input" w·g, "bias" is g alone.
    x : array_like, (N, C, H, W), optional
        Needed for target "weight".
    weight : array_like, (O, C/groups, KH, KW), optional
        Needed for target "input".
    grad_output : array_like, (N, O, OH, OW), optional
        Needed always.

    Returns
    -------
    number : NumPy scalar
        Whole numbers count as float64; a product of float16 is the float32 that
        :func:`accumulate` adds.

    Raises
    ------
    ValueError
        When an operand is missing.
    TypeError
        When one holds no numbers.

    Notes
    -----
    Complex operands are conjugated, as PyTorch does, so that a step along minus the gradient
    lowers the loss.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=1, W=3, O=1, KH=1, KW=2)
    >>> x, g = [[[[1, 2, 3]]]], [[[[10, 100]]]]
    >>> for c in contributions(geometry, "weight"):
    ...     print(product(c, "weight", x=x, grad_output=g))
    10.0
    200.0
    20.0
    300.0
    """
    arrays, _ = ready(target, x=x, weight=weight, grad_output=grad_output)
    with quiet():
        return _product(contribution, target, arrays)


def _product(
    contribution: Contribution,
    target: str,
    arrays: dict[str, np.ndarray],
) -> np.number:
    """The product; the arrays are ready, all of the type to add up in."""
    n, o, c, p, q, i, j = contribution[:7]
    g = arrays["grad_output"][n, o, p, q]
    if target == "bias":
        return g
    if target == "input":
        return np.conj(arrays["weight"][o, c, i, j]) * g
    x = arrays["x"]
    if contribution.cell is None:
        return x.dtype.type(0) * g  # the number zero: 0·inf is nan here too
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

    Parameters
    ----------
    geometry : ConvGeometry
    target : str
        The gradient: "weight", "input" or "bias".
    x : array_like, (N, C, H, W), optional
        As for :func:`product`; so are weight and grad_output.
    weight : array_like, (O, C/groups, KH, KW), optional
    grad_output : array_like, (N, O, OH, OW), optional
    order : str, default "tap"
        As for :func:`contributions`.
    include_padding : bool, default False
        As for contributions.

    Returns
    -------
    gradient : ndarray
        grad_weight (O, C/groups, KH, KW), grad_input (N, C, H, W) or grad_bias (O,).  With all
        three operands it is conv2d_backward's to the type: in the common type of them all, and
        real where the operand whose gradient it is (weight for target "weight") is real.  Without
        that operand it is the whole sum, complex where a factor is.

    Raises
    ------
    ShapeError
        When an operand does not fit the geometry.
    ValueError
        For another target or order, or when an operand is missing.
    TypeError
        When one holds no numbers.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> a = example("A")
    >>> x, weight, bias, g = a.arrays()
    >>> accumulate(a.geometry, "weight", x=x, grad_output=g)[0, 0]  # g, turned
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
    """What one kernel alone sends back to the input: its share of grad_input.

    The shares of all kernels add up to grad_input.  Channels of other groups stay 0.

    Parameters
    ----------
    geometry : ConvGeometry
    grad_output : array_like, (N, O, OH, OW)
    weight : array_like, (O, C/groups, KH, KW)
    o : int
        The kernel, 0 to O − 1.

    Returns
    -------
    share : ndarray, (N, C, H, W)
        Types as in conv2d_backward.

    Raises
    ------
    ShapeError
        When an array does not fit the geometry.
    TypeError
        When o is no whole number, or an array holds no numbers.
    IndexError
        When there is no such kernel.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> d = example("D")
    >>> x, weight, bias, g = d.arrays()
    >>> shares = [kernel_share(d.geometry, g, weight, o) for o in range(6)]
    >>> grad_input = accumulate(d.geometry, "input", weight=weight, grad_output=g)
    >>> np.array_equal(sum(shares), grad_input)
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
