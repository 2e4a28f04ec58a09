"""Which checks notice that a gradient is broken, each with the numbers by which it does.

The browser computes the same in ``js/noticing.js``; a test demands the same words from both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import windows
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .fallback import number

__all__ = ["CHECKS", "Finding", "differs", "findings", "right", "scattered", "wrong"]

# Every check, with its name in the table and what it does.
CHECKS = {
    "ones": ("compare, g of ones", "what y.sum().backward() sends"),
    "random": ("compare, random g", "whole numbers from −4 to 4"),
    "shape": ("shape", "must be that of its array"),
    "adjoint": ("adjoint", "⟨g, y⟩ = ⟨gradient, operand⟩"),
    "differences": ("finite difference", "one step, in a random direction"),
}
STOPS = "it stops with an error"
OTHER_SHAPE = "the shapes do not fit"
ROUNDING = 1e-9  # of the larger number: fractions are rounded, whole numbers are not

Operands = dict[str, np.ndarray]


@dataclass(frozen=True)
class Finding:
    """What one check says: ``check`` is a key of ``CHECKS``, ``evidence`` the numbers."""

    check: str
    noticed: bool
    evidence: str


def right(target: str, geometry: ConvGeometry, operands: Operands) -> np.ndarray:
    """The right gradient."""
    if target == "weight":
        return windows.grad_weight(operands["grad_output"], operands["x"], geometry)
    if target == "input":
        return windows.grad_input(operands["grad_output"], operands["weight"], geometry)
    return windows.grad_bias(operands["grad_output"], geometry)


def wrong(name: str, geometry: ConvGeometry, operands: Operands) -> np.ndarray | None:
    """What a mistake makes of it; None where it stops with an error."""
    mutant = MUTANTS[name]
    taken = {"weight": ["x"], "input": ["weight"], "bias": []}[mutant.target]
    try:
        return np.asarray(mutant(*(operands[key] for key in ("grad_output", *taken)), geometry))
    except ValueError:
        return None


def scattered(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Whole numbers from −4 to 4 that follow no pattern, the same ones in every language."""
    k = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint32)
    bits = (k + np.uint32(1)) * np.uint32(0x9E3779B1)
    bits ^= np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
    bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    bits ^= bits >> np.uint32(12)
    return ((bits % np.uint32(9)).astype(np.float64) - 4).reshape(shape)


def differs(a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
    """Where two numbers are different by more than rounding."""
    largest = np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    return np.abs(np.subtract(a, b)) > ROUNDING * largest


def findings(name: str, geometry: ConvGeometry, operands: Operands) -> list[Finding]:
    """What every check says of a mistake."""
    made = wrong(name, geometry, operands)
    shape = geometry.output_shape

    def compared(grad_output: np.ndarray) -> tuple[bool, str]:
        return _comparison(name, geometry, {**operands, "grad_output": grad_output})

    return [
        Finding("ones", *compared(np.ones(shape))),
        Finding("random", *compared(scattered(shape, 1))),
        Finding("shape", *_shapes(made, right(MUTANTS[name].target, geometry, operands))),
        *_slopes(made, MUTANTS[name].target, geometry, operands),
    ]


def _comparison(name: str, geometry: ConvGeometry, operands: Operands) -> tuple[bool, str]:
    """The right gradient and the wrong one, cell by cell."""
    should, made = right(MUTANTS[name].target, geometry, operands), wrong(name, geometry, operands)
    if made is None:
        return True, STOPS
    if made.shape != should.shape:
        return True, OTHER_SHAPE
    count = int(differs(made, should).sum())
    return count > 0, f"{count} of {should.size} cells differ"


def _shapes(made: np.ndarray | None, should: np.ndarray) -> tuple[bool, str]:
    if made is None:
        return True, STOPS
    has, needs = ("×".join(map(str, array.shape)) for array in (made, should))
    if has == needs:
        return False, f"{has}, as it should be"
    return True, f"{has}, needed is {needs}"


def _slopes(
    made: np.ndarray | None, target: str, geometry: ConvGeometry, operands: Operands
) -> list[Finding]:
    """The two checks that need no right gradient to compare with."""
    shape = {
        "weight": geometry.weight_shape,
        "input": geometry.x_shape,
        "bias": geometry.bias_shape,
    }[target]
    if made is None or made.shape != shape:
        evidence = STOPS if made is None else OTHER_SHAPE
        return [Finding(check, True, evidence) for check in ("adjoint", "differences")]
    loss, here = _loss(target, geometry, operands)
    direction = scattered(shape, 2)
    ahead, behind = loss(here), float(np.vdot(made, here))
    change, promise = loss(here + direction) - ahead, float(np.vdot(made, direction))
    letter = {"weight": "w", "input": "x", "bias": "b"}[target]
    adjoint = f"⟨g, y⟩ = {number(ahead)}, ⟨gradient, {letter}⟩ = {number(behind)}"
    step = f"⟨g, y⟩ changes by {number(change)}, the gradient says {number(promise)}"
    return [
        Finding("adjoint", bool(differs(ahead, behind)), adjoint),
        Finding("differences", bool(differs(change, promise)), step),
    ]


def _loss(
    target: str, geometry: ConvGeometry, operands: Operands
) -> tuple[Callable[[np.ndarray], float], np.ndarray]:
    """⟨g, y⟩ as a function of the one operand, and where that stands."""
    g, x, weight = (operands[key] for key in ("grad_output", "x", "weight"))
    if target == "bias":  # what it adds to the output, alone
        return (lambda b: float(np.vdot(g.sum(axis=(0, 2, 3)), b))), scattered(
            geometry.bias_shape, 3
        )
    if target == "weight":
        return (lambda w: float(np.vdot(g, windows.forward(x, w, geometry)))), weight
    return (lambda x: float(np.vdot(g, windows.forward(x, weight, geometry)))), x
