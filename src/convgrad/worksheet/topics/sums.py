"""Output, weight gradient, input gradient: sums of products, asked in the same ways."""

from __future__ import annotations

import numpy as np

from ...dice import Dice
from ...tables import multiplicity
from ..draws import draw_case, fill, free_geometry, in_words
from ..parts import Mistake, Question, Table
from ..spelled import terms
from . import shared

__all__ = ["FORWARD", "INPUT_GRADIENT", "WEIGHT_GRADIENT"]


def _cell_of(dice: Dice, shape: tuple[int, ...]) -> tuple[int, int]:
    return dice.between(0, shape[-2] - 1), dice.between(0, shape[-1] - 1)


def forward_cell(dice: Dice, level: int) -> Question | None:
    case = draw_case(dice, level)
    return shared.one_cell(case, "y", _cell_of(dice, case.y.shape), level)


def forward_all(dice: Dice, level: int) -> Question | None:
    return shared.all_cells(draw_case(dice, level), "y", level)


def forward_missing(dice: Dice, level: int) -> Question | None:
    case = draw_case(dice, level)
    cell = _cell_of(dice, case.y.shape)
    return shared.missing_number(case, "y", cell, dice.between(0, 8))


def weight_cell(dice: Dice, level: int) -> Question | None:
    case = draw_case(dice, level)
    return shared.one_cell(case, "weight", _cell_of(dice, case.weight.shape), level)


def weight_all(dice: Dice, level: int) -> Question | None:
    return shared.all_cells(draw_case(dice, level), "weight", level)


def weight_missing(dice: Dice, level: int) -> Question | None:
    case = draw_case(dice, level)
    cell = _cell_of(dice, case.weight.shape)
    return shared.missing_number(case, "weight", cell, dice.between(0, 8))


def input_cell(dice: Dice, level: int) -> Question | None:
    case = draw_case(dice, level)
    return shared.one_cell(case, "input", _cell_of(dice, case.x.shape), level)


def input_all(dice: Dice, level: int) -> Question | None:
    return shared.all_cells(draw_case(dice, level), "input", level)


def input_reads(dice: Dice, level: int) -> Question | None:
    """How many products land in each cell of x."""
    geometry = free_geometry(dice, level)
    if geometry is None or (counts := multiplicity(geometry)).max() < 2:
        return None
    case = fill(dice, geometry, level)
    most = max(np.ndindex(counts.shape), key=lambda cell: counts[cell])
    found = terms(case, "input", (0, 0, *most))
    forgetful = np.minimum(counts, 1)
    return Question(
        title="How many products?",
        text=(
            f"A {geometry.KH}×{geometry.KW} kernel slides over `x` of {geometry.H} rows and "
            f"{geometry.W} columns: {in_words(geometry)}. Every time a window reads a cell, one "
            "product `w·g` goes back to it.",
            "Write into each cell of `x` how many products meet there.",
        ),
        asks=(Table("products a cell", counts, ("h", "v"), blank=np.ones(counts.shape, bool)),),
        answer=counts,
        working=(
            f"In ∂L/∂x[{most[0]},{most[1]}] meet {' and '.join(t.names for t in found)}",
            f"All counts together: {int(counts.sum())} products",
        ),
        mistakes=(Mistake(forgetful, "Counts whether a cell is read, not how often."),),
        geometry=geometry,
        room=26,
    )


FORWARD = (forward_cell, forward_all, forward_missing)
WEIGHT_GRADIENT = (weight_cell, weight_all, weight_missing)
INPUT_GRADIENT = (input_cell, input_reads, input_all)
