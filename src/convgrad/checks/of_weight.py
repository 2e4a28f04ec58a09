"""Hypotheses about a wrong grad_weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..geometry import ConvGeometry, Pair, short
from .hypotheses import MOST_TRIED, Case, Hypothesis, group_rule, nearest, unconjugated
from .sums import WHERE_A_TAP_READS, Sums, border_of_zeros, of_upstream, with_border

__all__ = ["of_weight"]


def of_weight(array: np.ndarray, case: Case, sums: Sums) -> Iterator[Hypothesis]:
    geometry, name = sums.geometry, case.name
    padded = sums.padded(sums.x)
    for cause, words, g in of_upstream(sums, case):
        yield Hypothesis(cause, words, sums.grad_weight(g))
    if np.iscomplexobj(sums.x):
        seen = sums.read(padded.conj(), *sums.map())
        yield unconjugated(name, "x", "x", sums.grad_weight(seen=seen))
    if array.shape == geometry.weight_shape and geometry.N > 1:
        shares = sums.grad_weight_per_image()
        n = nearest(array, shares)
        yield Hypothesis(
            "one_image",
            f"Your {name} is the share of image {n} alone: all {geometry.N} images use the same "
            "kernel, so their shares add up. Write +=, not =, in the loop over n.",
            shares[n],
        )
    yield from _padding_of_weight(array, sums, padded, name)
    yield from _steps_of_weight(array, sums, padded, name)
    yield from _groups_of_weight(sums, padded, name)
    for offset, words in sums.shifts():
        seen = sums.read(padded, *sums.map(offset=offset))
        yield Hypothesis(
            "shifted",
            f"Your {name} reads x at the wrong place: {words}. {WHERE_A_TAP_READS}.",
            sums.grad_weight(seen=seen),
        )


def _steps_of_weight(
    array: np.ndarray, sums: Sums, padded: np.ndarray, name: str
) -> Iterator[Hypothesis]:
    """Bent strides and dilations, with the crop and without it."""
    geometry, kernel = sums.geometry, (sums.geometry.KH, sums.geometry.KW)
    for cause, words, rows, cols in sums.steps():
        if cause == "stride_dilation_swapped":
            sentence = (
                f"Your {name} is what comes out when stride and dilation keep their places. On x "
                f"the cells of g should lie {short(geometry.stride)} apart, which is the stride, "
                f"and from tap to tap they should move by {short(geometry.dilation)}, which is the "
                "dilation: exchange the two in the call, stride=dilation and dilation=stride."
            )
        else:
            sentence = f"Your {name} reads x {words}. {WHERE_A_TAP_READS}."
        output_steps, tap_steps = zip(rows, cols, strict=True)
        fits = _fits(padded.shape[2:], geometry, output_steps, tap_steps)
        for taps in dict.fromkeys((kernel, _both_min(fits, kernel), fits)):
            if taps == array.shape[2:]:
                seen = sums.read(padded, *sums.map(rows, cols, taps=taps))
                crop = (
                    ""
                    if min(np.subtract(kernel, taps)) >= 0
                    else " Then crop the result to the kernel's size."
                )
                yield Hypothesis(cause, sentence + crop, sums.grad_weight(seen=seen))


def _fits(
    size: tuple[int, int],
    geometry: ConvGeometry,
    output_step: tuple[int, int],
    tap_step: tuple[int, int],
) -> tuple[int, int]:
    """How many taps find room when g is slid over a map of this size."""
    room = (
        (extent - step * (outputs - 1) - 1) // tap + 1
        for extent, step, outputs, tap in zip(
            size, output_step, (geometry.OH, geometry.OW), tap_step, strict=True
        )
    )
    height, width = room
    return max(height, 0), max(width, 0)


def _both_min(one: Pair, other: Pair) -> Pair:
    return min(one[0], other[0]), min(one[1], other[1])


def _padding_of_weight(
    array: np.ndarray, sums: Sums, padded: np.ndarray, name: str
) -> Iterator[Hypothesis]:
    geometry = sums.geometry
    if geometry.padding == ((0, 0), (0, 0)):
        return
    if geometry.padding_mode != "zeros":
        cause, words, seen = border_of_zeros(sums, name)
        yield Hypothesis(cause, words, sums.grad_weight(seen=seen))
    fits = _fits((geometry.H, geometry.W), geometry, geometry.stride, geometry.dilation)
    kernel = (geometry.KH, geometry.KW)
    for taps in dict.fromkeys((_both_min(fits, kernel), fits)):
        if kernel != taps == array.shape[2:]:
            yield Hypothesis(
                "padding_ignored",
                f"Your {name} is what the bare x gives, with room for {taps[0]}×{taps[1]} taps: "
                "pad x first, as the forward pass did. Border taps have fewer products, but they "
                "are taps all the same.",
                sums.grad_weight(seen=sums.read(sums.x, *sums.map(taps=taps))),
            )
    at_raw_places = sums.grad_weight(seen=sums.read(sums.x, *sums.map()))
    yield Hypothesis(
        "shifted",
        f"Your {name} is shifted by the padding: tap (0, 0) of window (0, 0) reads x at "
        '(−padding, −padding). The index map lost its "− padding", or all of the padding was '
        "put below and to the right.",
        at_raw_places,
    )
    yield Hypothesis(
        "padding_ignored",
        f"Your {name} is what the bare x gives: pad x first, as the forward pass did.",
        at_raw_places,
    )
    again = replace(geometry, H=padded.shape[2], W=padded.shape[3]) if _fits_twice(sums) else None
    if again is not None:
        yield Hypothesis(
            "padded_twice",
            f"Your {name} is what an x padded twice gives: either pad x yourself and pass "
            "padding=0, or pass x as it is.",
            sums.grad_weight(seen=sums.read(with_border(padded, again), *sums.map())),
        )


def _fits_twice(sums: Sums) -> bool:
    """Whether the padded image may be padded once more in its mode: a copy needs an original."""
    geometry = sums.geometry
    spare = {"reflect": 1, "circular": 0}.get(geometry.padding_mode)
    return spare is None or all(
        max(border) <= size - spare
        for border, size in zip(geometry.padding, geometry.padded_size, strict=True)
    )


def _groups_of_weight(sums: Sums, padded: np.ndarray, name: str) -> Iterator[Hypothesis]:
    geometry = sums.geometry
    G, C, CG = geometry.groups, geometry.C, geometry.CG
    if G == 1:
        return
    rule = group_rule(geometry)
    seen = sums.read(padded, *sums.map())
    dealt = np.arange(C).reshape(CG, G).T.ravel()
    yield Hypothesis(
        "wrong_group",
        f"Your {name} pairs the groups with channels k, k + {G}, …, dealt like cards: a group is "
        f"a block of neighbours; {rule}",
        sums.grad_weight(seen=seen[:, dealt]),
    )
    # kernel o in group o mod G: let the kernels stand in that order, then put them back
    order = np.arange(geometry.O).reshape(geometry.OG, G).T.ravel()
    back = np.argsort(order)
    yield Hypothesis(
        "wrong_group",
        f"Your {name} takes group o mod {G} for kernel o: {rule}",
        sums.grad_weight(sums.grad_output[:, order])[back],
    )
    for dealt_kernels in (order, back):
        yield Hypothesis(
            "wrong_group",
            f"Your {name} has the kernels of grad_output dealt to the groups like cards, kernel "
            f"{dealt_kernels[1]} where kernel 1 belongs: in a reshape the group comes first, then "
            f"its kernels, ({G}, {geometry.OG}); {rule}",
            sums.grad_weight(sums.grad_output[:, dealt_kernels]),
        )
    for turn in range(1, min(G, MOST_TRIED)):
        yield Hypothesis(
            "wrong_group",
            f"Your {name} pairs each group's kernels with the channels of another group: {rule}",
            sums.grad_weight(seen=np.roll(seen, turn * CG, axis=1)),
        )
    yield Hypothesis(
        "wrong_group",
        f"Your {name} uses the first group's channels for every kernel: {rule}",
        sums.grad_weight(seen=np.tile(seen[:, :CG], (1, G, 1, 1, 1, 1))),
    )
