"""Small convolutions to do on paper, a little larger at each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import loops
from ..dice import Dice
from ..geometry import ConvGeometry, GeometryError
from .parts import Table

__all__ = [
    "Case",
    "draw_case",
    "fill",
    "free_geometry",
    "in_words",
    "numbers",
    "table_of",
    "tap_table",
]

# x, kernel, stride, padding, dilation; the products of one answer stay below ten
_SIZES: dict[int, Sequence[tuple[tuple[int, int], tuple[int, int], int, int, int]]] = {
    1: [((3, 3), (2, 2), 1, 0, 1), ((3, 4), (2, 2), 1, 0, 1), ((4, 3), (2, 2), 1, 0, 1)],
    2: [
        ((4, 4), (2, 2), 1, 0, 1),
        ((4, 4), (3, 3), 1, 0, 1),
        ((4, 5), (3, 3), 1, 0, 1),
        ((3, 3), (2, 2), 2, 1, 1),
        ((4, 3), (3, 3), 1, 1, 1),
        ((5, 5), (3, 3), 2, 0, 1),
    ],
    3: [
        ((5, 5), (3, 3), 2, 1, 1),
        ((5, 5), (2, 2), 1, 0, 2),
        ((6, 5), (3, 3), 2, 0, 1),
        ((4, 4), (3, 3), 2, 1, 1),
        ((5, 4), (2, 2), 1, 1, 2),
    ],
}
_STRIDED: dict[int, Sequence[tuple[tuple[int, int], tuple[int, int], int, int, int]]] = {
    1: [((4, 4), (2, 2), 2, 0, 1), ((5, 5), (3, 3), 2, 0, 1), ((4, 5), (2, 3), 2, 0, 1)],
    2: [((6, 5), (3, 3), 2, 0, 1), ((5, 6), (3, 3), 2, 0, 1), ((5, 5), (2, 2), 2, 0, 1)],
    3: [((5, 5), (3, 3), 2, 1, 1), ((4, 4), (3, 3), 2, 1, 1), ((6, 6), (2, 2), 2, 0, 2)],
}
_RANGE = {1: (0, 3), 2: (-2, 3), 3: (-3, 3)}


@dataclass(frozen=True, eq=False)
class Case:
    """A convolution with its numbers; y and the gradients come from the definition."""

    geometry: ConvGeometry
    x: np.ndarray
    weight: np.ndarray
    grad_output: np.ndarray

    @cached_property
    def y(self) -> np.ndarray:
        return loops.forward(self.x, self.weight, self.geometry)

    @cached_property
    def grad_weight(self) -> np.ndarray:
        return loops.grad_weight(self.grad_output, self.x, self.geometry)

    @cached_property
    def grad_input(self) -> np.ndarray:
        return loops.grad_input(self.grad_output, self.weight, self.geometry)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"x": self.x, "weight": self.weight, "grad_output": self.grad_output}


def numbers(dice: Dice, shape: tuple[int, ...], level: int) -> np.ndarray:
    """Whole numbers of the size that this level reckons with."""
    return dice.numbers(shape, *_RANGE[level])


def draw_case(dice: Dice, level: int, strided: bool = False) -> Case:
    """One image, one channel, one kernel."""
    sizes = (_STRIDED if strided else _SIZES)[level]
    (H, W), (KH, KW), stride, padding, dilation = dice.one_of(sizes)
    geometry = ConvGeometry(
        C=1, H=H, W=W, O=1, KH=KH, KW=KW, stride=stride, padding=padding, dilation=dilation
    )
    return fill(dice, geometry, level)


def free_geometry(dice: Dice, level: int) -> ConvGeometry | None:
    """One image, one channel, one kernel, for questions without sums; None where none fits."""
    try:
        return ConvGeometry(
            C=1,
            H=dice.between(3, 5),
            W=dice.between(3, 5),
            O=1,
            KH=dice.between(2, 3),
            KW=dice.between(2, 3),
            stride=1 if level == 1 else dice.between(1, 2),
            padding=0 if level == 1 else dice.between(0, 1),
            dilation=1 if level < 3 else dice.between(1, 2),
        )
    except GeometryError:
        return None


def fill(dice: Dice, geometry: ConvGeometry, level: int) -> Case:
    """Numbers for all three arrays."""
    shapes = geometry.x_shape, geometry.weight_shape, geometry.output_shape
    return Case(geometry, *(numbers(dice, shape, level) for shape in shapes))


def in_words(geometry: ConvGeometry) -> str:
    """``stride 2, padding 1`` in the words of a question."""
    words = [f"stride {geometry.stride[0]}"]
    if geometry.padding != ((0, 0), (0, 0)):
        words.append(f"padding {geometry.padding[0][0]} (zeros all round)")
    else:
        words.append("no padding")
    if geometry.dilation != (1, 1):
        words.append(f"dilation {geometry.dilation[0]}")
    return ", ".join(words)


def table_of(label: str, values: np.ndarray, letters: str) -> Table:
    return Table(label, values, (letters[0], letters[1]))


def tap_table(case: Case, level: int) -> Table:
    """x, up to level 2 with its border of zeros; at level 3 the reader thinks of it."""
    plane = case.x[0, 0]
    (top, bottom), (left, right) = case.geometry.padding
    if level > 2 or not (top or bottom or left or right):
        return table_of("x", plane, "hv")
    border = ((top, bottom), (left, right))
    hatched = np.pad(np.zeros(plane.shape, bool), border, constant_values=True)
    return Table(
        "x, with its padding", np.pad(plane, border), ("h", "v"), (-top, -left), hatched=hatched
    )
