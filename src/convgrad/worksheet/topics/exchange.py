"""Stride as dilation: the weight gradient is a convolution with the two exchanged."""

from __future__ import annotations

import numpy as np

from ...dice import Dice
from ...geometry import ConvGeometry
from ...mutants import MUTANTS
from ..draws import draw_case, in_words, table_of, tap_table
from ..parts import Line, Mistake, Question, Table
from ..spelled import longest, spelled
from ..wrong import OF_WEIGHT, mistakes, wrong_gradient
from .shared import one_cell

__all__ = ["STRIDE_DILATION"]


def spread_g(dice: Dice, level: int) -> Question | None:
    """g with gaps, laid over x like a kernel, then the gradient itself."""
    case = draw_case(dice, level, strided=True)
    geometry, g = case.geometry, case.grad_output[0, 0]
    step = geometry.stride[0]
    spread = np.zeros((step * (geometry.OH - 1) + 1, step * (geometry.OW - 1) + 1), g.dtype)
    spread[::step, ::step] = g
    right = case.grad_weight[0, 0]
    i, j = longest(case, "weight")
    return Question(
        title="g with gaps",
        text=(
            f"A {geometry.KH}×{geometry.KW} kernel slid over `x`: {in_words(geometry)}.",
            f"Spread `g` with dilation {step}: write its numbers with gaps of {step - 1} between "
            "them, and 0 into the gaps. Then lay it over `x` like a kernel, move it in steps of "
            f"{geometry.dilation[0]}, and fill in `∂L/∂w`.",
        ),
        given=(tap_table(case, 2), table_of("g = ∂L/∂y", g, "pq")),
        asks=(
            Table("g with gaps", spread, ("", ""), blank=np.ones(spread.shape, bool)),
            Table("∂L/∂w", right, ("i", "j"), blank=np.ones(right.shape, bool)),
        ),
        answer=right,
        working=spelled(f"∂L/∂w[{i},{j}]", case, "weight", (0, 0, i, j)),
        mistakes=tuple(mistakes(case, OF_WEIGHT)),
        geometry=geometry,
        arrays=case.arrays(),
        room=14,
    )


def which_options(dice: Dice, level: int) -> Question | None:
    """The call that gives the weight gradient, and what is cropped from its result."""
    try:
        geometry = ConvGeometry(
            C=1,
            H=dice.between(7, 12),
            W=dice.between(7, 12),
            O=1,
            KH=dice.between(2, 3),
            KW=dice.between(2, 3),
            stride=dice.between(2, 3),
            padding=dice.between(0, 1) if level > 1 else 0,
            dilation=dice.between(1, 2) if level > 2 else 1,
        )
        s, d, pad = geometry.stride[0], geometry.dilation[0], geometry.padding[0][0]
        backward = ConvGeometry(
            C=1,
            H=geometry.H,
            W=geometry.W,
            O=1,
            KH=geometry.OH,
            KW=geometry.OW,
            stride=d,
            padding=pad,
            dilation=s,
        )
    except ValueError:
        return None
    if s == d or geometry.OH < 2 or geometry.OW < 2 or geometry.H == geometry.W:
        return None
    if level > 1 and geometry.surplus == (0, 0):
        return None
    right = np.array([d, pad, s, *geometry.surplus])
    rows, cols = geometry.surplus
    options = [f"`stride = {s}`", f"`padding = {pad}`", f"`dilation = {d}`"]
    return Question(
        title="Which call is it?",
        text=(
            f"`y = conv2d(x, w)` with {', '.join(options)}. `x` has {geometry.H} rows and "
            f"{geometry.W} columns, `w` {geometry.KH} rows and {geometry.KW} columns, so `g` has "
            f"{geometry.OH} rows and {geometry.OW} columns.",
            "`∂L/∂w` is the convolution of `x` with `g` as its kernel. With which options? The "
            "result can be larger than `w`: how many rows and columns at its end are cropped?",
        ),
        asks=(
            Line("stride", d),
            Line("padding", pad),
            Line("dilation", s),
            Line("rows to crop", rows),
            Line("columns to crop", cols),
        ),
        answer=right,
        working=(
            f"Stride and dilation change places: stride {d}, dilation {s}; the padding stays {pad}",
            f"g with dilation {s} spans {backward.span[0]}×{backward.span[1]}, the result is "
            f"{backward.OH}×{backward.OW}, and w is {geometry.KH}×{geometry.KW}",
        ),
        mistakes=tuple(
            Mistake(np.array(result), MUTANTS[name].sentence, name)
            for name, result in {
                "swap_stride_dilation": [s, pad, d, rows, cols],
                "wgrad_no_crop": [d, pad, s, 0, 0],
            }.items()
            if name != "wgrad_no_crop" or (rows, cols) != (0, 0)
        ),
        geometry=geometry,
        about={"backward": (backward.OH, backward.OW)},
        room=18,
    )


def strided_tap(dice: Dice, level: int) -> Question | None:
    case = draw_case(dice, level, strided=True)
    KH, KW = case.geometry.KH, case.geometry.KW
    cell = dice.between(0, KH - 1), dice.between(0, KW - 1)
    if case.geometry.stride != case.geometry.dilation:
        swapped = wrong_gradient(case, "swap_stride_dilation")
        if swapped is None:
            return None  # the mistake of this topic must lead to a result
    return one_cell(case, "weight", cell, level)


STRIDE_DILATION = (spread_g, strided_tap, which_options)
