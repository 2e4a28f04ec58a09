"""What explanations are made of: a case, and hypotheses about it.

A hypothesis says: had you made this mistake, your array would be that one.  The modules
``of_order``, ``of_weight``, ``of_input``, ``of_bias`` and ``of_output`` list them, the likelier
before the rarer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..geometry import ConvGeometry, require_geometry, shown
from ..memory import require_memory
from ..operands import number_array

__all__ = [
    "MOST_TRIED",
    "Case",
    "Hypothesis",
    "Operands",
    "group_rule",
    "listed",
    "nearest",
    "output_padding",
    "unconjugated",
]

# Of things that a layer may have hundreds of, each worth a convolution, so many are tried.
MOST_TRIED = 16


class Hypothesis(NamedTuple):
    """A mistake, what to say about it, and the array it would have given."""

    cause: str
    sentence: str
    array: np.ndarray


class Operands:
    """x, weight and grad_output, as far as they are ``given``.

    Asking for one that is not is a slip in this package and raises LookupError, so that no
    hypothesis has to look for None.
    """

    def __init__(
        self,
        x: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        grad_output: np.ndarray | None = None,
    ) -> None:
        arrays = {"x": x, "weight": weight, "grad_output": grad_output}
        self.given = {name: np.asarray(a) for name, a in arrays.items() if a is not None}

    @property
    def x(self) -> np.ndarray:
        return self._the("x")

    @property
    def weight(self) -> np.ndarray:
        return self._the("weight")

    @property
    def grad_output(self) -> np.ndarray:
        return self._the("grad_output")

    def _the(self, name: str) -> np.ndarray:
        if name not in self.given:
            raise LookupError(f"{name} is asked for, but only {sorted(self.given)} are given")
        return self.given[name]


@dataclass(frozen=True)
class Case:
    """The right answer and whatever is known about where it comes from."""

    expected: np.ndarray
    name: str
    geometry: ConvGeometry | None
    target: str | None
    operands: Operands

    @classmethod
    def of(
        cls,
        expected: Any,
        *,
        geometry: ConvGeometry | None = None,
        target: str | None = None,
        x: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        grad_output: np.ndarray | None = None,
    ) -> Case:
        names = {"output": "output", None: "array"}
        if target is not None and (
            not isinstance(target, str) or target not in ("output", "weight", "input", "bias")
        ):
            raise ValueError(
                f"target is {shown(target)}: use 'weight', 'input', 'bias' or 'output'"
            )
        name = names.get(target, f"grad_{target}")
        if geometry is not None:
            require_geometry(geometry)
        operands = {"x": x, "weight": weight, "grad_output": grad_output}
        given = {key: _array(key, a) for key, a in operands.items() if a is not None}
        return cls(_array("expected", expected), name, geometry, target, Operands(**given))


def _array(name: str, value: Any) -> np.ndarray:
    """``value`` as it is, once it has been seen to hold numbers, not too many to look at."""
    size = 8 * number_array(name, value).size
    require_memory(size, f"looking at every cell of {name} needs", "explain a part of it")
    return np.asarray(value)


def nearest(array: np.ndarray, shares: np.ndarray) -> int | None:
    """Which of the ``shares`` (stacked on the first axis) comes closest to ``array``, if any can.

    So one hypothesis does for all of them, however many there are.
    """
    if not len(shares) or array.shape != shares.shape[1:]:
        return None
    with np.errstate(all="ignore"):
        off = np.abs(shares - array).reshape(len(shares), -1)
    return int(np.nan_to_num(off, nan=0.0).max(axis=1, initial=0.0).argmin())


def unconjugated(name: str, factor: str, letter: str, array: np.ndarray) -> Hypothesis:
    """What complex numbers give when the other factor of the gradient is taken as it is."""
    return Hypothesis(
        "not_conjugated",
        f"Your {name} multiplies grad_output by {factor} itself: with complex numbers the gradient "
        f"takes the conjugate, conj({letter})·g, so that a step against it lowers the loss.",
        array,
    )


def group_rule(geometry: ConvGeometry) -> str:
    """Which channels kernel o works on, with this geometry's numbers."""
    group = "o" if geometry.OG == 1 else f"o // {geometry.OG}"
    if geometry.CG == 1:
        return f"kernel o belongs to group {group} and works on channel {group} alone."
    first = f"{geometry.CG}·{group}" if geometry.OG == 1 else f"{geometry.CG}·({group})"
    return (
        f"kernel o belongs to group {group} and works on the {geometry.CG} channels from {first} "
        "on."
    )


def output_padding(geometry: ConvGeometry) -> str:
    """The output_padding of a transposed convolution, with the numbers of this geometry put in.

    In numbers, because "padding" alone could be one side or both.
    """
    axes = (
        ("rows", geometry.H, geometry.KH),
        ("columns", geometry.W, geometry.KW),
    )
    sums = [
        f"{name} ({size} + {sum(geometry.padding[k])} − {geometry.dilation[k]}·({taps} − 1) − 1) "
        f"mod {geometry.stride[k]} = {geometry.leftover[k]}"
        for k, (name, size, taps) in enumerate(axes)
    ]
    height, width = geometry.leftover
    return (
        f"output_padding=({height}, {width}): {', '.join(sums)}. In words: (size + padding on both "
        "sides together − dilation·(kernel size − 1) − 1) mod stride. The padding of conv2d is "
        "that of one side, so take it twice"
    )


def listed(one: str, numbers: Iterable[int]) -> str:
    """``image 1``, ``images 1, 2 and 5``; of many, the first few."""
    words = [str(number) for number in numbers]
    if len(words) > 8:
        words = [*words[:7], f"{len(words) - 7} more"]
    if len(words) == 1:
        return f"{one} {words[0]}"
    return f"{one}s {', '.join(words[:-1])} and {words[-1]}"
