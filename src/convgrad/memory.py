"""How much memory a call may take, and the refusal that comes before too much is asked for.

Who asks NumPy for more than there is gets a ``MemoryError`` if lucky, and a machine that stops
answering if not.  So what a call will need is computed from its geometry first, before any array
is made, and held against :data:`LIMIT`.  Each way to compute a convolution says what it needs by
a function ``working_set(geometry)`` beside the functions whose arrays it counts.

>>> from convgrad import ConvGeometry, im2col
>>> layer = ConvGeometry(N=1, C=32, H=2800, W=2800, O=1, KH=3, KW=3, padding=1)
>>> size_text(4 * im2col.working_set(layer).forward)  # in float32
'10 GB'
"""

from __future__ import annotations

import math
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from .geometry import ConvGeometry

__all__ = [
    "LIMIT",
    "MemoryLimitError",
    "WorkingSet",
    "bytes_needed",
    "limit_from",
    "require_memory",
    "require_room",
    "result_numbers",
    "size_text",
]

_VARIABLE = "CONVGRAD_MEMORY_LIMIT"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class MemoryLimitError(ValueError, MemoryError):
    """The call would need more than :data:`convgrad.memory.LIMIT`; says how to need less.

    A ValueError, as all refusals of what was asked for are; and a MemoryError, so that code which
    meets one by taking a smaller batch goes on working.

    Examples
    --------
    >>> import convgrad, numpy as np
    >>> one = np.float32(1)
    >>> x = np.broadcast_to(one, (10**4, 64, 56, 56))  # one number, seen as many
    >>> weight = np.ones((64, 64, 3, 3), np.float32)
    >>> try:
    ...     convgrad.conv2d(x, weight, padding=1)
    ... except convgrad.MemoryLimitError as error:
    ...     print("at a time" in str(error))
    True
    """


class WorkingSet(NamedTuple):
    """How many numbers a way to compute keeps at once, for each of its maps.

    Counted is what comes on top of the operands at the worst moment, the result included, for
    operands that lie contiguous in memory.  Times the size of one number it is bytes.

    Attributes
    ----------
    forward : int
    grad_input : int
    grad_weight : int

    Examples
    --------
    >>> from convgrad import IMPLEMENTATIONS
    >>> layer = ConvGeometry(N=8, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1)
    >>> kept = IMPLEMENTATIONS["im2col"].working_set(layer)
    >>> print(f"{4e-6 * kept.grad_weight:.0f} MB in float32")
    65 MB in float32
    """

    forward: int
    grad_input: int
    grad_weight: int


def limit_from(text: str | None) -> int:
    """The limit in bytes that ``text`` asks for, or the usual one.

    Parameters
    ----------
    text : str or None
        A number of bytes (``"8e9"``), a number with a unit (``"8 GB"``, thousands, not 1024), or
        None: 4 GB, and no more than this Python can address.

    Returns
    -------
    size : int
        Bytes, at least 1.

    Raises
    ------
    ValueError
        When the text is something else.

    Examples
    --------
    >>> limit_from("1.5 GB"), limit_from("2e6")
    (1500000000, 2000000)
    """
    if text is None:
        return min(4 * 10**9, sys.maxsize)
    found = re.fullmatch(r"(\d+\.?\d*(?:e\d{1,2})?)\s*([KMGT]?B)?", text.strip().upper(), re.I)
    size = 0 if found is None else int(float(found[1]) * _UNITS[found[2] or ""])
    if size < 1:
        raise ValueError(
            f"{_VARIABLE} is {text!r}: needed is a number of bytes, such as 8e9, or one with a "
            "unit, such as 8GB"
        )
    return size


# Bytes.  The environment is read once, when the package is imported; assign here to change it
# later: convgrad.memory.LIMIT = 16 * 10**9.
LIMIT: int = limit_from(os.environ.get(_VARIABLE) or None)


def require_memory(size: int, what: str, mend: str) -> None:
    """Refuse before anything that large is made.

    Parameters
    ----------
    size
        The bytes that are needed.
    what
        What needs them, the beginning of a sentence: ``"the columns of im2col need"``.
    mend
        How to need less: ``"take fewer images at a time"``.

    Raises
    ------
    MemoryLimitError
        Where ``size`` is above :data:`LIMIT`.

    Examples
    --------
    >>> require_memory(5 * 10**12, "the columns need", "take fewer images at a time")
    ... # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.memory.MemoryLimitError: the columns need 5 TB, the limit is ...: take fewer images
    at a time, or raise the limit with convgrad.memory.LIMIT = 5 * 10**12
    """
    if size <= LIMIT:
        return
    power = 10 ** max(len(str(size)) - 1, 0)
    enough = f"{-(-size // power)} * 10**{len(str(power)) - 1}"
    raise MemoryLimitError(
        f"{what} {size_text(size)}, the limit is {size_text(LIMIT)}: {mend}, or raise the limit "
        f"with convgrad.memory.LIMIT = {enough}"
    )


class Rule(Protocol):
    """What is asked of a way to compute: its name, and what it keeps at once."""

    @property
    def name(self) -> str: ...
    @property
    def working_set(self) -> Callable[[ConvGeometry], WorkingSet] | None: ...


def require_room(
    rule: Rule,
    others: Iterable[Rule],
    geometry: ConvGeometry,
    maps: Sequence[str],
    itemsize: int,
    words: str | None = None,
) -> None:
    """Refuse a call whose arrays would not fit, and say what would.

    Parameters
    ----------
    rule
        The implementation that is asked for.
    others
        What could be asked instead, the better before the worse.
    geometry, itemsize
        The convolution, and the bytes of one number.
    maps
        What is computed, one after the other: ``"forward"``, ``"grad_input"``, ``"grad_weight"``.
    words
        The convolution as the caller knows it, where that is not ``geometry.describe()``.

    Raises
    ------
    MemoryLimitError
        Where :func:`bytes_needed` is above :data:`LIMIT`.
    """
    size = bytes_needed(rule, geometry, maps, itemsize)
    if size <= LIMIT:
        return
    words = words or geometry.describe()
    what = f"implementation {rule.name!r} on {words} needs"
    results = itemsize * sum(result_numbers(geometry)[each] for each in maps)
    if results > LIMIT:
        what = f"the results alone for {words} are {size_text(results)}; computing them needs"
    mends = []
    for other in others:
        need = bytes_needed(other, geometry, maps, itemsize)
        if need <= LIMIT:
            mends.append(f"take implementation={other.name!r}, which needs {size_text(need)}")
            break
    fitting = bisect_right(
        range(geometry.N + 1),
        LIMIT,
        key=lambda n: bytes_needed(rule, replace(geometry, N=n), maps, itemsize),
    )
    if fitting > 1:
        images = "one image" if fitting == 2 else f"at most {fitting - 1} images"
        mends.append(f"take {images} at a time")
    require_memory(size, what, " or ".join(mends) or "use smaller sizes")


def bytes_needed(rule: Rule, geometry: ConvGeometry, maps: Sequence[str], itemsize: int) -> int:
    """What a call that computes these maps keeps at once, at its worst moment, in bytes.

    >>> from convgrad import IMPLEMENTATIONS, ConvGeometry
    >>> layer = ConvGeometry(N=32, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1)
    >>> for name in ("windows", "im2col"):
    ...     size_text(bytes_needed(IMPLEMENTATIONS[name], layer, ["forward"], itemsize=4))
    '53.2 MB'
    '259 MB'
    """
    results = result_numbers(geometry)
    at_work = rule.working_set(geometry)._asdict() if rule.working_set else {}
    kept = most = 0
    for each in maps:
        # twice the result: it may be copied out of a larger array at the end
        most = max(most, kept + max(at_work.get(each, 0), 2 * results[each]))
        kept += results[each]
    return itemsize * most


def result_numbers(geometry: ConvGeometry) -> dict[str, int]:
    """How many numbers each map gives."""
    return {
        "forward": math.prod(geometry.output_shape),
        "grad_input": math.prod(geometry.x_shape),
        "grad_weight": math.prod(geometry.weight_shape),
    }


def size_text(size: int) -> str:
    """Bytes as people say them, in thousands and three digits.

    >>> size_text(1_249_869_037_568 * 4), size_text(999)
    ('5 TB', '999 B')
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 999.5 or unit == "TB":
            break
        size /= 1000  # type: ignore[assignment]
    return f"{size:.3g} {unit}" if size < 1e6 else f"more than a million {unit}"
