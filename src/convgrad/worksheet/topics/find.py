"""Find the mistake: a gradient that a named mutant computed, to be marked like a teacher."""

from __future__ import annotations

import numpy as np

from ...dice import Dice
from ...mutants import MUTANTS
from ..draws import draw_case
from ..parts import Choices, Question, Table
from ..spelled import spelled
from ..wrong import wrong_gradient
from .shared import SUMS, setting

__all__ = ["FIND_THE_MISTAKE"]

# Mistakes with whole numbers for results; the others stand beside them as choices.
_WEIGHT = (
    "wgrad_reversed",
    "wgrad_g_turned",
    "wgrad_g_transposed",
    "wgrad_transposed",
    "wgrad_ignores_padding",
    "wgrad_shifted",
    "swap_stride_dilation",
    "wgrad_ignore_dilation",
)
_INPUT = ("dgrad_no_flip", "dgrad_g_turned", "dgrad_shifted", "col2im_assign", "buffer_prefilled")


def _find(dice: Dice, level: int, target: str, names: tuple[str, ...]) -> Question | None:
    case = draw_case(dice, level)
    what = SUMS[target]
    right = what.right(case)[0, 0]
    if right.size > 25:
        return None
    results = {
        name: wrong[0, 0]
        for name in dice.shuffled(names)
        if (wrong := wrong_gradient(case, name)) is not None
    }
    if len(results) < 3:
        return None
    tables = [*results.values(), right]
    if len({tuple(table.ravel().tolist()) for table in tables}) < len(tables):
        return None  # two of them look alike: no saying which it was
    made, *others = results
    wrong = results[made]
    circled = wrong != right
    if circled.all() and right.size > 4:
        return None  # some cells must be right, or there is nothing to find
    options = dice.shuffled([made, *others[:3]])
    letters = (what.letters[0], what.letters[1])
    first = next(cell for cell in np.ndindex(right.shape) if circled[cell])
    return Question(
        title=f"Somebody's {what.label}",
        text=(
            setting(case, target),
            f"Somebody computed `{what.label}` and made one mistake. Circle every number that is "
            "wrong, then tick the mistake.",
        ),
        given=what.given(case, level),
        asks=(
            Table(f"somebody's {what.label}", wrong, letters, circled=circled),
            Choices(
                "The mistake",
                tuple(MUTANTS[name].sentence for name in options),
                options.index(made),
            ),
        ),
        answer=right,
        working=(
            f"{int(circled.sum())} of {right.size} numbers are wrong. The first, "
            f"{what.name(first)}, should be:",
            spelled(what.name(first), case, target, (0, 0, *first))[1],
        ),
        geometry=case.geometry,
        arrays=case.arrays(),
        about={"target": target, "mutant": made, "wrong": wrong, "right": right},
        room=26,
    )


def in_weight(dice: Dice, level: int) -> Question | None:
    return _find(dice, level, "weight", _WEIGHT)


def in_input(dice: Dice, level: int) -> Question | None:
    return _find(dice, level, "input", _INPUT)


FIND_THE_MISTAKE = (in_weight, in_input)
