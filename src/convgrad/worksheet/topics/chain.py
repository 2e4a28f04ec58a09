"""The chain rule, product by product: which products meet, and what a small change does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...dice import Dice
from ...geometry import ConvGeometry
from ..draws import Case, draw_case, fill, free_geometry, in_words, table_of
from ..parts import Line, Listing, Mistake, Question, Table
from ..spelled import Term, sum_of, terms
from ..wrong import mistakes
from .shared import setting

__all__ = ["CHAIN"]


def _listing(dice: Dice, level: int, target: str) -> Question | None:
    """Name every product that lands in one cell."""
    geometry = free_geometry(dice, level)
    if geometry is None:
        return None
    case = fill(dice, geometry, level)
    shape = case.weight.shape if target == "weight" else case.x.shape
    cell = dice.between(0, shape[2] - 1), dice.between(0, shape[3] - 1)
    found = list(terms(case, target, (0, 0, *cell)))
    if not 2 <= len(found) <= 9:
        return None
    array = "w" if target == "weight" else "x"
    pair = "x[h,v]·g[p,q]" if target == "weight" else "w[i,j]·g[p,q]"
    name = f"∂L/∂{array}[{cell[0]},{cell[1]}]"
    size = (
        f"`x` has {geometry.H} rows and {geometry.W} columns, `w` {geometry.KH} and "
        f"{geometry.KW}, `g` {geometry.OH} and {geometry.OW}."
    )
    return Question(
        title=f"Which products meet in one cell of ∂L/∂{array}?",
        text=(
            f"{setting(case, 'weight')} {size}",
            f"List every product that belongs to `{name}`, each as `{pair}`"
            + (", and leave out those with the padding. " if geometry.padding[0][0] else ". ")
            + "There may be more lines than you need.",
        ),
        asks=(Listing(name, tuple(t.names for t in found), 12 if len(found) > 6 else 8),),
        answer=np.asarray(len(found)),
        working=(
            f"{len(found)} products: those with h = {_index(geometry, 'p', 'i')} and "
            f"v = {_index(geometry, 'q', 'j')}",
            _turned(found[0], case, target),
        ),
        geometry=geometry,
        about={"target": target, "cell": (0, 0, *cell)},
        room=10,
    )


def _index(geometry: ConvGeometry, step: str, tap: str) -> str:
    """``2·p + i − 1``: the index map with this geometry's numbers."""
    (stride, _), (dilation, _), (pad, _) = geometry.stride, geometry.dilation, geometry.padding[0]
    moved = step if stride == 1 else f"{stride}·{step}"
    reached = tap if dilation == 1 else f"{dilation}·{tap}"
    return f"{moved} + {reached}" + (f" − {pad}" if pad else "")


def _turned(first: Term, case: Case, target: str) -> str:
    """How the list begins for somebody who turns the wrong array, or none."""
    geometry = case.geometry
    if target == "weight":
        p, q = (int(k) for k in first.right[2:-1].split(","))
        return (
            "Whoever turns g by 180° begins with "
            f"{first.left}·g[{geometry.OH - 1 - p},{geometry.OW - 1 - q}]"
        )
    i, j = (int(k) for k in first.left[2:-1].split(","))
    return (
        "Whoever slides the kernel over g without turning it begins with "
        f"w[{geometry.KH - 1 - i},{geometry.KW - 1 - j}]·{first.right}"
    )


def list_for_tap(dice: Dice, level: int) -> Question | None:
    return _listing(dice, level, "weight")


def list_for_cell(dice: Dice, level: int) -> Question | None:
    return _listing(dice, level, "input")


def small_change(dice: Dice, level: int) -> Question | None:
    """One number of x or w grows by 1: how y changes, and how L."""
    case = draw_case(dice, level)
    geometry = case.geometry
    of_x = dice.between(0, 1) == 1
    array = case.x if of_x else case.weight
    cell = (0, 0, dice.between(0, array.shape[2] - 1), dice.between(0, array.shape[3] - 1))
    grown = array.copy()
    grown[cell] += 1
    after = replace(case, x=grown) if of_x else replace(case, weight=grown)
    change = (after.y - case.y)[0, 0]
    gradient = case.grad_input if of_x else case.grad_weight
    total = int(gradient[cell])
    found = list(terms(case, "input" if of_x else "weight", cell))
    if not 2 <= len(found) <= 9:
        return None
    letter = "x" if of_x else "w"
    name = f"{letter}[{cell[2]},{cell[3]}]"
    plain = int(change.sum())
    names = ("dgrad_no_flip", "dgrad_g_turned") if of_x else ("wgrad_reversed", "wgrad_g_turned")
    return Question(
        title="A number grows by 1",
        text=(
            f"A {geometry.KH}×{geometry.KW} kernel `w` slides over `x`: {in_words(geometry)}. "
            f"Now `{name}` grows by 1, and nothing else changes.",
            "Fill in by how much each cell of `y` grows. Then multiply with `g = ∂L/∂y` and add "
            "up: by how much does `L` grow?",
        ),
        given=(
            table_of("w", case.weight[0, 0], "ij") if of_x else table_of("x", case.x[0, 0], "hv"),
            table_of("g = ∂L/∂y", case.grad_output[0, 0], "pq"),
        ),
        asks=(
            Table("growth of y", change, ("p", "q"), blank=np.ones(change.shape, bool)),
            Line("growth of L", total),
        ),
        answer=np.asarray(total),
        working=(
            f"Growth of L = {sum_of(found)}",
            f"This number is ∂L/∂{name}",
        ),
        mistakes=(
            Mistake(np.asarray(plain), "Adds up the growth of y, and forgets to multiply with g."),
            *mistakes(case, names, cell),
        ),
        geometry=geometry,
        arrays=case.arrays(),
        about={"letter": letter, "cell": cell, "change": change},
        room=16,
    )


CHAIN = (list_for_tap, small_change, list_for_cell)
