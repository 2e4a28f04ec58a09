"""Hypotheses about a wrong forward pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .hypotheses import MOST_TRIED, Case, Hypothesis, group_rule
from .sums import WHERE_A_TAP_READS, Sums, border_of_zeros

__all__ = ["of_output"]


def of_output(array: np.ndarray, case: Case, sums: Sums) -> Iterator[Hypothesis]:
    geometry, name = sums.geometry, case.name
    w, padded = sums.weight, sums.padded(sums.x)
    yield Hypothesis(
        "kernel_flipped",
        f"Your {name} is what the kernel turned by 180° gives, a convolution in the mathematical "
        "sense. conv2d lays the kernel on the window as it is: row i and column j of the kernel "
        "meet the cell i rows down and j columns to the right.",
        sums.output(w[..., ::-1, ::-1]),
    )
    if geometry.KH == geometry.KW:
        yield Hypothesis(
            "kernel_transposed",
            f"Your {name} is what the kernel with rows and columns exchanged gives: i goes with "
            "rows, j with columns.",
            sums.output(w.swapaxes(2, 3)),
        )
    for c in range(min(geometry.CG, MOST_TRIED)) if geometry.CG > 1 else ():
        only = (np.arange(geometry.CG) == c)[:, None, None]
        yield Hypothesis(
            "one_channel",
            f"Your {name} uses channel {c} of each kernel alone: a kernel has one layer per input "
            f"channel, {geometry.CG} here, and their products add up. Sum over c.",
            sums.output(np.where(only, w, 0)),
        )
    for cause, words, rows, cols in sums.steps():
        words = words or "with stride and dilation exchanged"
        yield Hypothesis(
            cause,
            f"Your {name} reads x {words}. {WHERE_A_TAP_READS}.",
            sums.output(seen=sums.read(padded, *sums.map(rows, cols))),
        )
    if geometry.padding_mode != "zeros":
        cause, words, seen = border_of_zeros(sums, name)
        yield Hypothesis(cause, words, sums.output(seen=seen))
    if geometry.groups > 1:
        dealt = np.arange(geometry.C).reshape(geometry.CG, geometry.groups).T.ravel()
        seen = sums.read(padded, *sums.map())
        order = np.arange(geometry.O).reshape(geometry.OG, geometry.groups).T.ravel()
        rule = group_rule(geometry)
        yield Hypothesis(
            "wrong_group",
            f"Your {name} deals channels like cards: {rule}",
            sums.output(seen=seen[:, dealt]),
        )
        yield Hypothesis(
            "wrong_group",
            f"Your {name} takes group o mod {geometry.groups} for kernel o: {rule}",
            sums.output(w[order])[:, np.argsort(order)],
        )
    for offset, words in sums.shifts():
        yield Hypothesis(
            "shifted",
            f"Your {name} reads x at the wrong place: {words}. {WHERE_A_TAP_READS}.",
            sums.output(seen=sums.read(padded, *sums.map(offset=offset))),
        )
