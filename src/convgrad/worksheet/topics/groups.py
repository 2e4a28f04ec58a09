"""Groups: which channels meet which kernels, and one block of the weight gradient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...dice import Dice
from ...geometry import ConvGeometry
from ..draws import fill, table_of
from ..parts import Line, Mistake, Question, Table
from ..spelled import spelled
from ..wrong import mistakes

__all__ = ["GROUPS"]


def _channels(dice: Dice, level: int) -> tuple[int, int, int]:
    """C, O and groups; never one channel and one kernel a group, which hides every mistake."""
    choices = {
        1: [(4, 2, 2), (4, 4, 2), (2, 4, 2), (6, 2, 2)],
        2: [(6, 4, 2), (6, 6, 3), (4, 6, 2), (8, 4, 2)],
        3: [(6, 9, 3), (8, 8, 4), (9, 6, 3), (8, 12, 4)],
    }
    return dice.one_of(choices[level])


def who_meets(dice: Dice, level: int) -> Question | None:
    C, O, G = _channels(dice, level)
    KH, KW = dice.between(2, 5), dice.between(2, 5)
    geometry = ConvGeometry(C=C, H=8, W=8, O=O, KH=KH, KW=KW, groups=G)
    kernels = sorted(dice.shuffled(range(O))[:4])
    table = np.array(
        [
            [geometry.group_of(o), geometry.channel(o, 0), geometry.channel(o, geometry.CG - 1)]
            for o in kernels
        ]
    )
    dealt = np.array(
        [[o % G, (o % G) * geometry.CG, (o % G + 1) * geometry.CG - 1] for o in kernels]
    )
    o = kernels[-1]
    return Question(
        title="Which channels meet?",
        text=(
            f"`x` has {C} channels, there are {O} kernels of {KH}×{KW}, and `groups = {G}`. "
            "Groups, kernels and channels are counted from 0.",
            "Fill in the group of each kernel, and the first and last channel of `x` that it "
            "reads. Then say how many numbers `weight` has.",
        ),
        asks=(
            Table(
                "kernels and channels",
                table,
                ("", ""),
                blank=np.ones(table.shape, bool),
                rows=tuple(f"kernel {k}" for k in kernels),
                columns=("group", "from", "to"),
            ),
            Line("numbers in weight", int(np.prod(geometry.weight_shape))),
        ),
        answer=table,
        working=(
            f"{O}/{G} = {geometry.OG} kernels a group, {C}/{G} = {geometry.CG} channels a group",
            f"kernel {o}: group ⌊{o}/{geometry.OG}⌋ = {geometry.group_of(o)}",
            f"weight is {O}×{geometry.CG}×{KH}×{KW}: "
            f"{int(np.prod(geometry.weight_shape))} numbers; without groups "
            f"{int(np.prod(geometry.weight_shape)) * G}",
        ),
        mistakes=(
            Mistake(
                dealt,
                f"Deals the kernels to the groups like cards: o mod {G}, not ⌊o/{geometry.OG}⌋.",
            ),
        ),
        geometry=geometry,
        about={"kernels": tuple(kernels)},
        room=16,
    )


def one_block(dice: Dice, level: int) -> Question | None:
    C, O = (4, 2) if level == 1 else (4, 4)
    size, kernel = ((3, 3), (2, 2)) if level < 3 else ((4, 3), (3, 2))
    geometry = ConvGeometry(C=C, H=size[0], W=size[1], O=O, KH=kernel[0], KW=kernel[1], groups=2)
    case = fill(dice, geometry, level)
    o, c = dice.between(0, O - 1), dice.between(0, geometry.CG - 1)
    channel = geometry.channel(o, c)
    if channel == c:
        return None  # the first group hides the mistake that the question is about
    right = case.grad_weight[o, c]
    cell = (o, c, 0, 0)
    ungrouped = ConvGeometry(**(geometry.as_dict() | {"C": 1, "O": 1, "groups": 1}))
    alone = replace(
        case, geometry=ungrouped, x=case.x[:, c : c + 1], grad_output=case.grad_output[:, o : o + 1]
    )
    wrong = [
        Mistake(alone.grad_weight[0, 0], f"Takes channel {c} of x: c counts within the group."),
        *mistakes(case, ("wgrad_reversed", "group_interleaved", "depthwise_mod"), (o, c)),
    ]
    return Question(
        title="One block of the weight gradient",
        text=(
            f"`x` has {C} channels, there are {O} kernels of {kernel[0]}×{kernel[1]}, and "
            f"`groups = 2`; stride 1, no padding. The channels of `x`, and the plane of `g` "
            f"that kernel {o} needs, are below.",
            f"Compute the block `∂L/∂w[{o},{c}]`. Channel {c} of kernel {o} lies over one channel "
            "of `x` only: find out which.",
        ),
        given=(
            *(table_of(f"x, channel {k}", case.x[0, k], "hv") for k in range(C)),
            table_of(f"g, kernel {o}", case.grad_output[0, o], "pq"),
        ),
        asks=(
            Table(f"∂L/∂w[{o},{c}]", right, ("i", "j"), blank=np.ones(right.shape, bool)),
            Line("channel of x", channel),
        ),
        answer=right,
        working=(
            f"Kernel {o} is in group {geometry.group_of(o)}, its channel {c} is channel "
            f"{geometry.group_of(o)}·{geometry.CG} + {c} = {channel} of x",
            spelled(f"∂L/∂w[{o},{c},0,0]", case, "weight", cell)[1],
        ),
        mistakes=tuple(wrong),
        geometry=geometry,
        arrays=case.arrays(),
        about={"block": (o, c)},
        room=22,
    )


def how_many(dice: Dice, level: int) -> Question | None:
    G = dice.between(2, 2 + level)
    C, O = G * dice.between(2, 4), G * dice.between(2, 4)
    KH, KW = dice.between(2, 4), dice.between(2, 4)
    geometry = ConvGeometry(C=C, H=8, W=8, O=O, KH=KH, KW=KW, groups=G)
    grouped = int(np.prod(geometry.weight_shape))
    per_kernel = grouped // O
    if C == O:
        return None
    return Question(
        title="How many weights?",
        text=(
            f"A layer goes from {C} to {O} channels with kernels of {KH}×{KW}. How many numbers "
            f"has one kernel, and how many has the whole `weight`, without groups and with "
            f"`groups = {G}`?",
        ),
        asks=(
            Line("one kernel, no groups", C * KH * KW),
            Line("weight, no groups", O * C * KH * KW),
            Line(f"one kernel, {G} groups", per_kernel),
            Line(f"weight, {G} groups", grouped),
        ),
        answer=np.array([per_kernel, grouped]),
        working=(
            f"A kernel has a plane of {KH}·{KW} = {KH * KW} numbers for each channel that it "
            f"reads: {C} without groups, {C}/{G} = {geometry.CG} with them",
            f"There are {O} kernels in both cases: {O}·{geometry.CG}·{KH * KW} = {grouped}",
        ),
        mistakes=(
            Mistake(
                np.array([per_kernel, grouped // G]),
                "Divides the kernels by the groups as well: each group still has its own.",
            ),
        ),
        geometry=geometry,
        room=16,
    )


GROUPS = (who_meets, one_block, how_many)
