"""What people hand to functions: right arguments in other clothes, and things that are none.

``dressed`` keeps the numbers and changes how they come; ``broken`` makes something else of them;
``things`` is anything at all.
"""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import LAYOUTS

HUGE = (2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30, -(10**30), 10**6)


class Stubborn:
    """Refuses whatever one does with it, in its own words."""

    def _refuse(self, *arguments: Any, **named: Any) -> Any:
        raise RuntimeError("no")

    __array__ = __index__ = __float__ = __int__ = __len__ = __iter__ = __getitem__ = _refuse
    tolist = __bool__ = __eq__ = __hash__ = __contains__ = _refuse


class Overflowing:
    """Counts as a whole number until it is asked for one."""

    def __index__(self) -> int:
        raise OverflowError("cannot fit 'int' into an index-sized integer")


class Shapeless:
    """Has an array's attributes, of the wrong kinds."""

    shape, ndim, dtype, tolist, size = "wide", None, 3, "no function", -1


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


def _endless() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


def _nested(depth: int) -> list[Any]:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


# Made anew for every draw: some are used up or written to.
THINGS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "Ellipsis": lambda: ...,
    "True": lambda: True,
    "zero": lambda: 0,
    "minus one": lambda: -1,
    "a fraction": lambda: 1.5,
    "a float": lambda: 2.0,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "complex": lambda: 1j,
    "a word": lambda: "same",
    "a digit": lambda: "1",
    "no word": lambda: "",
    "a long word": lambda: "wide" * 1000,
    "bytes": lambda: b"12",
    "bytearray": lambda: bytearray(b"12"),
    "a set": lambda: {1, 2},
    "a dict": lambda: {0: 1, 1: 1},
    "a generator": lambda: (k for k in (1, 2)),
    "a range": lambda: range(2),
    "an empty list": list,
    "three": lambda: (1, 1, 1),
    "four": lambda: (1, 1, 2, 2),
    "nested": lambda: ((1, 1), (1,)),
    "ragged": lambda: [[1, 2], [3]],
    "deep": lambda: _nested(70),
    "very deep": lambda: _nested(3000),
    "endless": _endless,
    "None inside": lambda: [None, 1],
    "a function": lambda: len,
    "a type": lambda: int,
    "an object": object,
    "a module": lambda: np,
    "a numpy int": lambda: np.int64(1),
    "a numpy bool": lambda: np.True_,
    "a numpy float": lambda: np.float32(1),
    "a numpy uint": lambda: np.uint8(255),
    "0-d": lambda: np.array(1),
    "0-d float": lambda: np.array(1.0),
    "an empty array": lambda: np.empty(0),
    "an array of pairs": lambda: np.array([[1, 1], [1, 1]]),
    "an array of objects": lambda: np.array([None, 1, "x"], dtype=object),
    "an array of arrays": lambda: np.array([np.ones(1), np.ones(2)], dtype=object),
    "an array of words": lambda: np.array(["1", "2"]),
    "dates": lambda: np.zeros((1, 1, 3, 3), "datetime64[s]"),
    "records": lambda: np.zeros((1, 1, 3, 3), [("a", float)]),
    "masked": lambda: np.ma.masked_equal(np.ones((1, 1, 3, 3)), 1),
    "a masked number": lambda: np.ma.masked,
    "a matrix": lambda: np.ones((3, 3)).view(np.matrix),
    "a number repeated": lambda: np.broadcast_to(1.0, (1, 1, 10**5, 10**5)),
    "an int repeated": lambda: np.broadcast_to(1, (2, 2, 10**6, 10**6)),
    "many axes": lambda: np.ones((1,) * 40),
    "no images": lambda: np.ones((0, 2, 3, 3)),
    "no rows": lambda: np.ones((1, 2, 0, 3)),
    "long double": lambda: np.ones((1, 1, 3, 3), np.longdouble),
    "a Fraction": lambda: fractions.Fraction(1),
    "a Decimal": lambda: decimal.Decimal(1),
    "a memoryview": lambda: memoryview(np.ones((1, 1, 3, 3))),
    "stubborn": Stubborn,
    "overflowing": Overflowing,
    "shapeless": Shapeless,
    "unprintable": Unprintable,
} | {f"{number}": lambda number=number: number for number in HUGE}


def things() -> st.SearchStrategy[Any]:
    """Anything at all, by name so that a failure says which."""
    return st.sampled_from(sorted(THINGS)).map(lambda name: THINGS[name]())


# ---- arrays ----------------------------------------------------------------------------------

CLOTHES: dict[str, Callable[[np.ndarray], Any]] = {
    **LAYOUTS,
    "lists": np.ndarray.tolist,
    "Fortran": np.asfortranarray,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "complex": lambda a: a.astype(np.complex128),
    "int8": lambda a: a.astype(np.int8),
    "int64": lambda a: a.astype(np.int64),
    "rows of lists": lambda a: [list(map(list, part)) for part in a],
}

TEARS: dict[str, Callable[[np.ndarray], Any]] = {
    "an axis less": lambda a: a[0] if len(a) else a,
    "an axis more": lambda a: a[None],
    "flat": np.ravel,
    "turned round": lambda a: a.T,
    "one row less": lambda a: a[..., :-1, :] if a.ndim > 1 else a[:-1],
    "one column more": lambda a: np.concatenate([a, a[..., :1]], axis=-1) if a.size else a,
    "nothing left": lambda a: a[..., :0],
    "no images": lambda a: a[:0],
    "twice the channels": lambda a: np.concatenate([a, a], axis=1) if a.ndim > 1 else a,
    "words": lambda a: a.astype(str),
    "objects": lambda a: a.astype(object),
    "masked": lambda a: np.ma.masked_array(a, mask=a == a),
    "dates": lambda a: a.astype(np.int64).astype("datetime64[s]"),
    "nan": lambda a: np.full_like(a, np.nan),
    "infinity": lambda a: np.full_like(a, np.inf),
    "one number": lambda a: np.broadcast_to(np.float64(2), a.shape),
    "a huge number of cells": lambda a: np.broadcast_to(1.0, (*a.shape[:-2], 10**5, 10**4)),
    "ragged": lambda a: [[[[1, 2], [3]]]],
    "its shape": lambda a: a.shape,
}


def dressed(array: np.ndarray) -> st.SearchStrategy[Any]:
    """The same numbers in another type, layout or container."""
    fitting = set(CLOTHES)
    if array.ndim != 4:
        fitting -= {*LAYOUTS, "rows of lists"}
    if not array.size:  # lists of nothing have no shape
        fitting -= {"lists", "rows of lists"}
    return st.sampled_from(sorted(fitting)).map(lambda name: CLOTHES[name](array))


def broken(array: np.ndarray) -> st.SearchStrategy[Any]:
    """Something that was this array."""
    return st.sampled_from(sorted(TEARS)).map(lambda name: TEARS[name](array))


def numbers_like(value: Any) -> st.SearchStrategy[Any]:
    """An option in another form, or one near it: most are legal, some not."""
    near = st.sampled_from([0, 1, 2, 3, (1, 2), [2, 1], (0, 0), ((1, 0), (0, 2)), (1, 1, 1), -1])
    forms = [value, np.asarray(value) if isinstance(value, int | tuple) else value]
    return st.one_of(st.sampled_from(forms), near, near.map(np.asarray))
