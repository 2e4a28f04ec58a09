"""The ledger at scale: contributions as arrays, any of them by its number, and how many there are.

:mod:`convgrad.ledger` hands out one product after the other.  That is the way to read them, and
too slow to count or to draw the millions of a real layer.  Here the same list is a
:class:`Listing`, which is never walked: step k is worked out from k alone, as hours, minutes and
seconds are worked out from a number of seconds.  A part of the list is a :class:`Table`, one array
a column.

What makes that possible with the padding left out: whether a tap lies on the image is one
question for its row and one for its column.  So the number of products after any beginning
(o, c, i, …) is a product of a few counts, and division by these finds the next index.

Some questions need no list at all: :func:`count`, :func:`per_tap`, :func:`multiplicity`.

>>> from convgrad.examples import example
>>> listing = Listing(example("F").geometry, "weight")
>>> len(listing)  # as many as a ResNet layer has, of them none is stored
3611820032
>>> listing[3_000_000_000].target
(53, 10, 0, 1)
>>> listing[3_000_000_000:3_000_000_004].q
array([0, 1, 2, 3], dtype=int32)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np

from . import memory
from .geometry import LARGEST, ConvGeometry, GeometryError, require_geometry, shown
from .ledger import ORDERS, TARGETS, Contribution, empty_gradient, ready, require_choice
from .memory import require_memory
from .operands import finish, quiet

__all__ = ["Listing", "Table", "accumulate", "count", "multiplicity", "per_tap", "products"]

# Steps that are worked out at once where a whole list is gone through: enough to hide Python's
# share of the time, few enough for a processor's cache.
_BLOCK = 2**17

# A column of a table: an array of whole numbers; None in a table of the bias, which lacks it.
Column: TypeAlias = Any

# Bytes for each step of a table: its columns, and what working them out takes.
_STEP_BYTES = 128


# ---- how many --------------------------------------------------------------------------------


def count(geometry: ConvGeometry, target: str = "weight", include_padding: bool = False) -> int:
    """How many contributions a gradient has, without listing one.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str, default "weight"
        The gradient: "weight", "input" or "bias".
    include_padding : bool, default False
        Whether products on zero padding count.

    Returns
    -------
    number : int
        The length of the list that :func:`convgrad.ledger.contributions` hands out.

    Raises
    ------
    ValueError
        For another target.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> a = example("A").geometry  # one pixel under a 4×4 kernel, padding 2
    >>> count(a), count(a, include_padding=True), count(a, "bias")
    (4, 64, 4)
    """
    require_geometry(geometry)
    require_choice("target", target, TARGETS)
    N, O, OH, OW = geometry.output_shape
    if target == "bias":
        return N * O * OH * OW
    if include_padding:
        return N * O * OH * OW * geometry.CG * geometry.KH * geometry.KW
    rows, cols = _on_image(geometry)
    return N * O * geometry.CG * int(rows.sum()) * int(cols.sum())


def per_tap(geometry: ConvGeometry) -> np.ndarray:
    """How many products meet in each tap of grad_weight, those on zero padding left out.

    Parameters
    ----------
    geometry : ConvGeometry

    Returns
    -------
    counts : ndarray, (KH, KW)
        Whole numbers: that for grad_weight[o, c, i, j], the same for every o and c.

    Examples
    --------
    A corner tap of a padded 3×3 kernel misses one row and one column of the image:

    >>> per_tap(ConvGeometry(C=1, H=4, W=5, O=1, KH=3, KW=3, padding=1))
    array([[12, 15, 12],
           [16, 20, 16],
           [12, 15, 12]])
    """
    rows, cols = _on_image(geometry)  # p i, q j
    return geometry.N * np.outer(rows.sum(axis=0), cols.sum(axis=0))


def multiplicity(geometry: ConvGeometry) -> np.ndarray:
    """How often the windows read each cell of the image.

    It is the grad_input of a kernel of ones under an upstream gradient of ones (one channel, one
    kernel).  With a padding mode that copies cells, the copies count for the cell they show.

    Parameters
    ----------
    geometry : ConvGeometry

    Returns
    -------
    counts : ndarray, (H, W)
        Whole numbers, the same for every channel and each kernel of its group.

    Examples
    --------
    >>> multiplicity(ConvGeometry(C=1, H=4, W=5, O=1, KH=3, KW=3, stride=(1, 2)))
    array([[1, 1, 2, 1, 1],
           [2, 2, 4, 2, 2],
           [2, 2, 4, 2, 2],
           [1, 1, 2, 1, 1]])
    """
    _require_maps(geometry)
    rows, cols = (
        np.bincount(index[index >= 0], minlength=size)
        for index, size in ((geometry.rows, geometry.H), (geometry.cols, geometry.W))
    )
    require_memory(8 * geometry.H * geometry.W, "a number for every cell needs", _SMALLER)
    return np.outer(rows, cols)


_SMALLER = "use smaller sizes"


def _on_image(geometry: ConvGeometry) -> tuple[np.ndarray, np.ndarray]:
    """Which taps read an image row for which output row, (OH, KH); the same for columns."""
    _require_maps(geometry)
    return geometry.rows >= 0, geometry.cols >= 0


def _require_maps(geometry: ConvGeometry) -> None:
    require_geometry(geometry)
    pairs = geometry.OH * geometry.KH + geometry.OW * geometry.KW
    require_memory(40 * pairs, "the index maps of this convolution need", _SMALLER)


# ---- the list --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listing:
    """All contributions to one gradient in one order, each to be had by its number.

    ``len(listing)`` is how many there are; ``listing[k]`` is the k-th as a
    :class:`~convgrad.ledger.Contribution`; ``listing[a:b]`` is a :class:`Table` of some.  All
    three cost the same anywhere in the list.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str, default "weight"
        The gradient: "weight", "input" or "bias".
    order : str, default "tap"
        The loop that is outermost: "tap", "position" or "kernel", see
        :data:`convgrad.ledger.ORDERS`.
    include_padding : bool, default False
        Whether products on zero padding are in the list.

    Raises
    ------
    ValueError
        For another target or order.
    GeometryError
        When there are more products than a 64-bit number can count.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> listing = Listing(example("B").geometry, "input", "position")
    >>> len(listing), listing[80].cell
    (81, (4, 4))
    >>> listing[:3].col  # the first window, its upper row
    array([0, 1, 2], dtype=int32)
    """

    geometry: ConvGeometry
    target: str = "weight"
    order: str = "tap"
    include_padding: bool = False
    _length: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_choice("target", self.target, TARGETS)
        require_choice("order", self.order, ORDERS)
        length = count(self.geometry, self.target, self.include_padding)
        if length >= 2**63:
            raise GeometryError(
                f"{self.geometry.describe()} has {length} products: at most {2**63 - 1} can be "
                "numbered; use smaller sizes"
            )
        object.__setattr__(self, "_length", length)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, which: int) -> Contribution: ...
    @overload
    def __getitem__(self, which: slice) -> Table: ...
    def __getitem__(self, which: int | slice) -> Contribution | Table:
        if isinstance(which, slice):
            steps = range(self._length)[which]
            require_memory(
                _STEP_BYTES * len(steps),
                f"a table of {len(steps)} contributions needs",
                "ask for a part, such as listing[:100000], or go through listing.blocks()",
            )
            return self._table(np.arange(steps.start, steps.stop, steps.step, dtype=self._dtype))
        try:
            step = operator.index(which)
        except Exception:  # whatever its own __index__ says
            raise TypeError(
                f"a listing has no item {shown(which)}: needed is a whole number or a slice"
            ) from None
        if not -self._length <= step < self._length:
            raise IndexError(
                f"there is no step {step}: this list has {self._length}, counted from 0"
            )
        return self._table(np.array([step % self._length], self._dtype)).contribution(0)

    def blocks(self, size: int | None = None) -> Iterator[Table]:
        """The whole list as tables of at most ``size`` steps, one after the other.

        None takes a size that is quick and needs little memory.

        >>> from convgrad.examples import example
        >>> [len(block) for block in Listing(example("B").geometry).blocks(size=50)]
        [50, 31]
        """
        if size is None:
            size = max(1, min(_BLOCK, int(memory.LIMIT // _STEP_BYTES)))
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"size is {shown(size)}: needed is a whole number of at least 1")
        return (self[start : start + size] for start in range(0, self._length, int(size)))

    # ---- from the number of a step to its indices ----------------------------------------

    @property
    def _dtype(self) -> type[np.int32 | np.int64]:
        """The type of the numbers of the steps; half the width is twice the speed."""
        return np.int32 if self._length <= LARGEST else np.int64

    @cached_property
    def _axes(self) -> dict[str, _Pairs]:
        """Rows and columns, each by the two letters that decide where a tap reads."""
        geometry, order = self.geometry, ORDERS[self.order]
        sizes = {"pi": (geometry.OH, geometry.KH), "qj": (geometry.OW, geometry.KW)}
        _require_maps(geometry)
        if self.include_padding:
            allowed = [np.ones(size, bool) for size in sizes.values()]
        else:
            allowed = list(_on_image(geometry))
        axes = {}
        for (first, second), mask in zip((("p", "i"), ("q", "j")), allowed, strict=True):
            if order.index(second) < order.index(first):
                first, second, mask = second, first, mask.T
            axes[first] = axes[second] = _Pairs.of(first, mask, self._dtype)
        return axes

    def _table(self, steps: np.ndarray) -> Table:
        """The indices of these steps: divide by what one more of a letter costs, keep the rest."""
        geometry, bias = self.geometry, self.target == "bias"
        letters = [letter for letter in ORDERS[self.order] if not bias or letter in "nopq"]
        if not len(steps):  # a batch of no images may have counts that no integer type holds
            return Table(geometry, self.target, **self._columns(dict.fromkeys(letters, steps)))
        ends = {"n": geometry.N, "o": geometry.O, "c": geometry.CG}
        if bias:
            ends |= {"p": geometry.OH, "q": geometry.OW}
        axes = {} if bias else self._axes
        # how many pairs of each axis are still open: all, those of a first index, or one
        still: dict[str, Any] = {axis.letter: axis.total for axis in axes.values()}
        found: dict[str, np.ndarray] = {}
        rest = steps
        for place, letter in enumerate(letters):
            axis = axes.get(letter)
            if axis is not None:
                still[axis.letter] = 1  # this index is found by counting pairs
            each: Any = math.prod(ends.get(later, 1) for later in letters[place + 1 :])
            for pairs in still.values():
                each = each * pairs
            index = rest // each
            if axis is None:
                found[letter] = index
            elif letter == axis.letter:
                found[letter] = axis.first[index]
                index = axis.start[found[letter]]
                still[letter] = axis.count[found[letter]]
            else:
                found[letter] = axis.second[axis.start[found[axis.letter]] + index]
            rest = rest - index * each
        return Table(geometry, self.target, **self._columns(found))

    @staticmethod
    def _columns(found: dict[str, np.ndarray]) -> dict[str, Column]:
        columns: dict[str, Column] = dict.fromkeys("nocpqij")
        return columns | {name: a.astype(np.int32, copy=False) for name, a in found.items()}


@dataclass(frozen=True)
class _Pairs:
    """The pairs of indices of one axis that are in the list, sorted: (p, i) or (i, p), say.

    letter : the one that comes first in the order
    first, second : the two indices of each pair
    start, count : for each value of the first index, where its pairs begin and how many there are
    """

    letter: str
    first: np.ndarray
    second: np.ndarray
    start: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, letter: str, allowed: np.ndarray, dtype: type) -> _Pairs:
        first, second = (index.astype(np.int32) for index in np.nonzero(allowed))
        counts = allowed.sum(axis=1, dtype=dtype)
        starts = np.cumsum(counts, dtype=dtype) - counts
        return cls(letter, first, second, starts, counts)

    @property
    def total(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class Table:
    """Some contributions, one array a column; made by slicing a :class:`Listing`.

    The names are those of :class:`~convgrad.ledger.Contribution`.

    Attributes
    ----------
    geometry : ConvGeometry
    target : str
        The gradient: "weight", "input" or "bias".
    n, o, p, q : ndarray
        The cell of grad_output.
    c, i, j : ndarray or None
        The cell of the kernel; c counts within the group of kernel o.
    h, v : ndarray or None
        The raw coordinates of the index map, outside the image on padding.
    row, col : ndarray or None
        The image cell that is really read; −1 on zero padding.
    channel : ndarray or None
        The channel of x that c stands for.
    x_at, weight_at, grad_output_at : ndarray or None
        Flat offsets into the operands; −1 on zero padding.
    lands : ndarray
        Flat offsets into the gradient; −1 when the product is lost on padding.

    Notes
    -----
    What follows c, i and j in this list is worked out when it is first asked for.  In a table of
    the bias only n, o, p, q, grad_output_at and lands are arrays.  Indices are int32; offsets are
    int64 where an array has more than 2³¹ − 1 cells.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> a = example("A")  # one pixel: each tap that sees it meets one number of g
    >>> table = Listing(a.geometry, "weight")[:]
    >>> np.stack([table.i, table.j, table.p, table.q], axis=1)
    array([[1, 1, 1, 1],
           [1, 2, 1, 0],
           [2, 1, 0, 1],
           [2, 2, 0, 0]], dtype=int32)
    """

    geometry: ConvGeometry
    target: str
    n: np.ndarray
    o: np.ndarray
    p: np.ndarray
    q: np.ndarray
    c: Column
    i: Column
    j: Column

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def _place(self) -> tuple[Column, Column]:
        if self.i is None:
            return None, None
        return self.geometry.source(self.p, self.q, self.i, self.j)

    @property
    def h(self) -> Column:
        """The row that the index map says, outside the image on padding."""
        return self._place[0]

    @property
    def v(self) -> Column:
        """The column that the index map says."""
        return self._place[1]

    @cached_property
    def _cell(self) -> tuple[Column, Column]:
        if self.i is None:
            return None, None
        row = self.geometry.rows.astype(np.int32)[self.p, self.i]
        col = self.geometry.cols.astype(np.int32)[self.q, self.j]
        if self.geometry.padding_mode == "zeros":
            outside = (row < 0) | (col < 0)
            row[outside] = col[outside] = -1
        return row, col

    @property
    def row(self) -> Column:
        """The image row that is read, −1 on zero padding."""
        return self._cell[0]

    @property
    def col(self) -> Column:
        """The image column that is read, −1 on zero padding."""
        return self._cell[1]

    @cached_property
    def channel(self) -> Column:
        """The channel of x."""
        return None if self.c is None else self.geometry.channel(self.o, self.c)

    @cached_property
    def x_at(self) -> Column:
        """Flat offset into x, and into grad_input; −1 on zero padding."""
        if self.i is None:
            return None
        offset = _flat(self.geometry.x_shape, self.n, self.channel, self.row, self.col)
        if self.geometry.padding_mode == "zeros":
            offset[self.row < 0] = -1
        return offset

    @cached_property
    def weight_at(self) -> Column:
        """Flat offset into the weight, and into grad_weight."""
        if self.i is None:
            return None
        return _flat(self.geometry.weight_shape, self.o, self.c, self.i, self.j)

    @cached_property
    def grad_output_at(self) -> np.ndarray:
        """Flat offset into grad_output."""
        return _flat(self.geometry.output_shape, self.n, self.o, self.p, self.q)

    @property
    def lands(self) -> np.ndarray:
        """Flat offset into the gradient; −1 where a product is lost on padding."""
        at: np.ndarray = {"weight": self.weight_at, "input": self.x_at, "bias": self.o}[self.target]
        return at

    def contribution(self, k: int) -> Contribution:
        """Row k as the ledger writes it.

        >>> Listing(ConvGeometry(C=1, H=2, W=2, O=1, KH=1, KW=1))[:].contribution(3).cell
        (1, 1)
        """
        n, o, p, q = (int(column[k]) for column in (self.n, self.o, self.p, self.q))
        if self.target == "bias":
            return Contribution(n, o, None, p, q, None, None, None, None, None, (o,))
        rest = (self.c, self.i, self.j, self.h, self.v, self.row, self.col, self.channel)
        c, i, j, h, v, row, col, channel = (int(column[k]) for column in rest)
        cell = None if row < 0 else (row, col)
        if self.target == "weight":
            lands: tuple[int, ...] | None = (o, c, i, j)
        else:
            lands = None if cell is None else (n, channel, *cell)
        return Contribution(n, o, c, p, q, i, j, h, v, cell, lands, channel)


def _flat(shape: tuple[int, ...], *indices: Any) -> np.ndarray:
    """Offsets into an array of this shape, row by row."""
    offset = indices[0].astype(np.int32 if math.prod(shape) <= LARGEST else np.int64)
    for length, index in zip(shape[1:], indices[1:], strict=True):
        offset *= length
        offset += index
    return offset


# ---- the numbers -----------------------------------------------------------------------------


def products(
    table: Table,
    *,
    x: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    grad_output: np.ndarray | None = None,
) -> np.ndarray:
    """The number that each contribution of a table adds; for a lost one the number that is lost.

    Parameters
    ----------
    table : Table
        Contributions to one gradient.
    x : array_like, (N, C, H, W), optional
        Needed for target "weight".
    weight : array_like, (O, C/groups, KH, KW), optional
        Needed for target "input".
    grad_output : array_like, (N, O, OH, OW), optional
        Needed always.

    Returns
    -------
    numbers : ndarray
        One number a row, in the type that sums are made in, by the rules of
        :func:`convgrad.ledger.product`.

    Raises
    ------
    ShapeError
        When an operand does not fit the geometry.
    ValueError
        When one is missing.
    TypeError
        When one holds no numbers.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> a = example("A")
    >>> x, weight, bias, g = a.arrays()
    >>> products(Listing(a.geometry, "weight")[:], x=x, grad_output=g)
    array([8., 6., 4., 2.])
    """
    arrays, _ = ready(table.target, x=x, weight=weight, grad_output=grad_output)
    table.geometry.require(**arrays)
    with quiet():
        return _products(table, _flattened(arrays))


def _flattened(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The operands in the order that offsets count in, copied where they lie in another."""
    for name, array in arrays.items():
        if not array.flags.c_contiguous:
            require_memory(array.nbytes, f"{name} in one piece needs", _SMALLER)
    return {name: array.reshape(-1) for name, array in arrays.items()}


def _products(table: Table, flat: dict[str, np.ndarray]) -> np.ndarray:
    g = flat["grad_output"][table.grad_output_at]
    if table.target == "bias":
        return g
    name, at = ("x", table.x_at) if table.target == "weight" else ("weight", table.weight_at)
    factor = flat[name][at].conj()
    if name == "x":
        factor[at < 0] = 0  # padding is the number zero, so 0·inf is nan here too
    return factor * g


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
    """The gradient from its contributions: :func:`convgrad.ledger.accumulate` for whole layers.

    The products of each cell are added one at a time in the order of the list, so every real
    gradient is rounded as the ledger rounds it, to the last bit; another order may end in other
    last digits, and so may the other implementations, whose matrix products add in an order of
    their own.  The list is gone through in blocks, so that memory does not grow with it.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str
        The gradient: "weight", "input" or "bias".
    x : array_like, (N, C, H, W), optional
        As for :func:`products`; so are weight and grad_output.
    weight : array_like, (O, C/groups, KH, KW), optional
    grad_output : array_like, (N, O, OH, OW), optional
    order : str, default "tap"
        As for :class:`Listing`.
    include_padding : bool, default False
        As for Listing.

    Returns
    -------
    gradient : ndarray
        grad_weight (O, C/groups, KH, KW), grad_input (N, C, H, W) or grad_bias (O,), in the
        type that the ledger gives it.

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
    >>> d = example("D")
    >>> x, weight, bias, g = d.arrays()
    >>> accumulate(d.geometry, "bias", grad_output=g).shape
    (6,)
    """
    listing = Listing(geometry, target, order, include_padding)
    arrays, dtype = ready(target, x=x, weight=weight, grad_output=grad_output)
    geometry.require(**arrays)
    gradient = empty_gradient(geometry, target, arrays["grad_output"].dtype)
    cells, flat = gradient.reshape(-1), _flattened(arrays)
    with quiet():
        for table in listing.blocks():
            numbers, lands = _products(table, flat), table.lands
            if target == "input" and include_padding:
                numbers, lands = numbers[lands >= 0], lands[lands >= 0]
            np.add.at(cells, lands, numbers)  # add.at, not +=: products meet in one cell
        return finish(gradient, dtype)
