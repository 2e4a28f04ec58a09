"""The usual mistakes, made on the numbers of a question: what a pupil then has on the paper.

They are the mutants of :mod:`convgrad.mutants` that somebody with a pencil can make.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..geometry import GeometryError
from ..mutants import MUTANTS
from .draws import Case
from .parts import Mistake

__all__ = ["OF_INPUT", "OF_WEIGHT", "mistakes", "wrong_gradient"]

OF_WEIGHT = (
    "wgrad_reversed",
    "wgrad_g_turned",
    "wgrad_g_transposed",
    "wgrad_transposed",
    "wgrad_ignores_padding",
    "wgrad_shifted",
    "swap_stride_dilation",
    "wgrad_ignore_dilation",
    "wgrad_position_mean",
    "group_interleaved",
    "depthwise_mod",
)
OF_INPUT = ("dgrad_no_flip", "dgrad_g_turned", "dgrad_shifted", "col2im_assign", "avg_fold")


def wrong_gradient(case: Case, name: str) -> np.ndarray | None:
    """What this mutant gives; None where it is no mistake here or leaves another shape."""
    mutant = MUTANTS[name]
    if not mutant.shows(case.geometry):
        return None
    weight = mutant.target == "weight"
    shape = case.geometry.weight_shape if weight else case.geometry.x_shape
    try:
        other = mutant(case.grad_output, case.x if weight else case.weight, case.geometry)
    except (GeometryError, ValueError):  # it does not fit here: nobody gets to a result
        return None
    return other if other.shape == shape else None


def mistakes(
    case: Case, names: tuple[str, ...], cell: tuple[int | slice, ...] = (0, 0)
) -> Iterator[Mistake]:
    """What each mistake leaves at ``cell`` of the gradient, a plane of it by default."""
    for name in names:
        wrong = wrong_gradient(case, name)
        if wrong is not None:
            yield Mistake(np.asarray(wrong[cell]), MUTANTS[name].sentence, name)
