"""What explanations are made of: a case, and hypotheses about it.

A hypothesis says: had you made this mistake, your array would be that one.  The modules
``of_order``, ``of_weight``, ``of_input``, ``of_bias`` and ``of_output`` list them, the likelier
before the rarer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..geometry import ConvGeometry

__all__ = ["Case", "Hypothesis", "group_rule", "pair"]


class Hypothesis(NamedTuple):
    """A mistake, what to say about it, and the array it would have given."""

    cause: str
    sentence: str
    array: np.ndarray


@dataclass(frozen=True)
class Case:
    """The right answer and whatever is known about where it comes from."""

    expected: np.ndarray
    name: str
    geometry: ConvGeometry | None
    target: str | None
    x: np.ndarray | None
    weight: np.ndarray | None
    grad_output: np.ndarray | None

    @classmethod
    def of(cls, expected, geometry, target, x, weight, grad_output) -> Case:
        names = {"output": "output", None: "array"}
        if target not in (None, "output", "weight", "input", "bias"):
            raise ValueError(f"target is {target!r}: use 'weight', 'input', 'bias' or 'output'")
        name = names.get(target, f"grad_{target}")
        arrays = (None if a is None else np.asarray(a) for a in (x, weight, grad_output))
        return cls(np.asarray(expected), name, geometry, target, *arrays)


def pair(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}×{pair[1]}"


def group_rule(geometry: ConvGeometry) -> str:
    """Which channels kernel o works on, with this geometry's numbers."""
    return (
        f"kernel o belongs to group o // {geometry.OG} and works on the {geometry.CG} channels "
        f"from {geometry.CG}·(o // {geometry.OG}) on."
    )
