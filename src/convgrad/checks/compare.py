"""When two arrays are the same, and what to say of something that is no array.

Two arrays are the same when no cell differs by more than half the digits of the coarser dtype,
measured against the largest value (1.5e-8 of it in float64, 3.5e-4 in float32, 3e-2 in
float16).  Rounding stays far below that, a mistake in the bookkeeping far above.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operands import is_masked

__all__ = ["NotNumbers", "numbers", "same", "wrong_cells"]


class NotNumbers(ValueError):
    """The answer is nothing that can be compared; the message says why, to the reader."""


def numbers(actual: Any, name: str) -> np.ndarray:
    """``actual`` as an array of numbers; raises :class:`NotNumbers` where it is none."""
    if actual is None:
        raise NotNumbers(f"Your {name} is None: does the function end with return?")
    if is_masked(actual):
        raise NotNumbers(
            f"Your {name} is a masked array, and every cell counts: fill the masked ones first, "
            "for example with .filled(0)."
        )
    try:
        array = np.asarray(actual)
        unfilled = array.dtype == object and any(cell is None for cell in array.flat)
        if array.dtype == object and not unfilled:
            array = array.astype(np.float64)
    except Exception:  # anything may sit behind __array__
        mend = "return a NumPy array with rows of equal length."
        if _is_tensor(actual):
            mend = "call .detach().cpu().numpy() on it first."
        raise NotNumbers(
            f"Your {name} is {_kind(actual)}, which NumPy cannot read as an array of numbers: "
            + mend
        ) from None
    if unfilled:
        raise NotNumbers(f"Your {name} holds None: some cells were never filled.")
    if array.dtype.kind not in "biufc":
        raise NotNumbers(
            f"Your {name} holds {_kind_of_values(array)} where numbers were needed: "
            "give numbers, without quotes."
        )
    return array


def _is_tensor(thing: Any) -> bool:
    """Whether it can be detached; looked up where neither it nor its class can interfere."""
    return any("detach" in vars(kind) for kind in type(thing).__mro__)


def _kind_of_values(array: np.ndarray) -> str:
    return "text" if array.dtype.kind in "US" else f"{array.dtype.name} values"


def _kind(thing: Any) -> str:
    """'a list', 'a generator': what sort of thing this is."""
    name = type(thing).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def same(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Equal up to rounding; see the top of the module for how close that is."""
    if actual.shape != expected.shape:
        return False
    return not wrong_cells(actual, expected).any()


def wrong_cells(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    digits = [np.finfo(a.dtype).eps for a in (actual, expected) if a.dtype.kind in "fc"]
    finite = np.abs(expected[np.isfinite(expected)]).astype(np.float64)
    scale = finite.max(initial=0.0) or 1.0
    with np.errstate(all="ignore"):
        # ufuncs, not isclose: the tolerance belongs to the whole array, and bool has no minus
        error = np.abs(np.subtract(actual, expected, dtype=_wide(actual, expected)))
        close = error <= np.sqrt(max(digits, default=0.0)) * scale
    same_infinity = np.asarray(actual == expected)
    both_nan = np.isnan(actual) & np.isnan(expected)
    return ~(close | same_infinity | both_nan)


def _wide(*arrays: np.ndarray) -> np.dtype:
    return np.result_type(np.float64, *arrays)
