"""The types of the operands: what counts as numbers, what is summed in, what comes back.

The front door (:mod:`convgrad.api`) and the ledger follow these rules, so that a product, a sum
of products and a gradient all mean the same numbers:

* integers and booleans count as float64; floats and complex numbers stay what they are;
* operands meet in NumPy's common type, and float16 is summed in float32 and rounded once;
* the gradient of a real operand is real;
* infinities and nan travel as IEEE 754 says, without warnings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .geometry import ShapeError
from .memory import require_memory

__all__ = ["TYPES", "common", "finish", "gradient_type", "is_masked", "number_array", "quiet"]

TYPES = ("float16", "float32", "float64", "complex64", "complex128")


def number_array(name: str, value: Any) -> np.ndarray:
    """``value`` as an array of one of :data:`TYPES`, a copy only where it must be one.

    Raises :class:`ShapeError` for nested lists whose rows differ in length and TypeError for
    whatever else holds no numbers.

    >>> number_array("x", [[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    if is_masked(value):
        raise TypeError(
            f"{name} is a masked array: a convolution reads every cell; fill the masked ones "
            f"first, for example with {name}.filled(0)"
        )
    try:
        array = np.asarray(value)
    except Exception as trouble:  # anything may sit behind __array__
        if isinstance(trouble, ValueError) and "inhomogeneous" in str(trouble):
            raise ShapeError(
                f"{name} is a nested list whose rows differ in length: needed is a full block of "
                "numbers; pad the short rows or cut the long ones"
            ) from None
        raise TypeError(
            f"{name} is of type {type(value).__name__}, and NumPy cannot read it: needed is an "
            f"array of numbers; for a tensor use {name}.detach().cpu().numpy(), after .float() "
            "where it is bfloat16 and .to_dense() where it is sparse"
        ) from trouble
    if array.dtype.kind in "biu":
        _require_room(array, np.dtype(np.float64))
        return array.astype(np.float64)
    if array.dtype.name not in TYPES:  # whatever the byte order
        raise TypeError(
            f"{name} holds {array.dtype}: needed are numbers, that is integers, booleans or one "
            f"of {', '.join(TYPES)}; convert it, for example with np.asarray({name}, float)"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def is_masked(value: Any, depth: int = 8) -> bool:
    """Whether this is a masked array, or a nested list with one inside (NumPy drops its mask).

    ``depth`` is how far it looks into lists, for a list may hold itself.
    """
    if isinstance(value, list | tuple):
        return depth > 0 and any(is_masked(each, depth - 1) for each in value)
    return isinstance(value, np.ma.MaskedArray)


def common(arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.dtype]:
    """The arrays in the one type that they are summed in, and the type that the result gets."""
    result = np.result_type(*arrays)
    # half precision holds the result; its sums would stop at 2048 and overflow at 65504
    compute = np.dtype(np.float32) if result == np.float16 else result
    for array in arrays:
        _require_room(array, compute)
    with quiet():
        return [array.astype(compute, copy=False) for array in arrays], result


def _require_room(array: np.ndarray, dtype: np.dtype) -> None:
    """An array that repeats one number is small; converted it is as large as it looks."""
    if array.dtype != dtype:
        require_memory(
            array.size * dtype.itemsize,
            f"an operand of shape {array.shape} that holds {array.dtype} becomes {dtype} and needs",
            "give it that type where it is made, or a smaller one",
        )


def gradient_type(dtype: np.dtype, operand: np.ndarray) -> np.dtype:
    """The type of this operand's gradient, where all operands together have ``dtype``."""
    return dtype if operand.dtype.kind == "c" else np.empty(0, dtype).real.dtype


def finish(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The result in its final type, contiguous, and in memory of its own."""
    if result.dtype.kind == "c" and dtype.kind != "c":
        result = result.real  # the gradient of a real operand
    if result.dtype == dtype and result.flags.c_contiguous and result.flags.owndata:
        return result
    return result.astype(dtype, order="C")


def quiet() -> np.errstate:
    """A block in which infinities and nan travel through the sums without warnings."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")
