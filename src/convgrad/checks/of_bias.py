"""Hypotheses about a wrong grad_bias."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from .hypotheses import Case, Hypothesis, nearest
from .sums import Sums, in_memory_order, memory_words

__all__ = ["of_bias"]


def of_bias(array: np.ndarray, case: Case, sums: Sums) -> Iterator[Hypothesis]:
    g, geometry, name = case.operands.grad_output, sums.geometry, case.name
    yield Hypothesis(
        "not_summed",
        f"Your {name} is grad_output itself: the bias of kernel o reaches every cell of every "
        "image's map o, so sum over n, p and q, axes 0, 2 and 3.",
        g,
    )
    letters = "nopq"
    for count in (1, 2, 3, 4):
        for axes in itertools.combinations(range(4), count):
            if axes == (0, 2, 3):
                continue
            summed = ", ".join(letters[axis] for axis in axes)
            cause = "batch_not_summed" if axes == (2, 3) else "wrong_bias_axes"
            if axes == (0,):
                cause = "not_summed"
            yield Hypothesis(
                cause,
                f"Your {name} is grad_output summed over {summed}: sum over n, p and q, axes 0, 2 "
                "and 3. The axis that stays is o, the second.",
                g.sum(axis=axes),
            )
    shares = g.sum(axis=(2, 3))  # n o
    n = nearest(array, shares)
    if n is not None and geometry.N > 1:
        yield Hypothesis(
            "one_image",
            f"Your {name} is the share of image {n} alone: the bias reaches all {geometry.N} "
            "images, so their shares add up.",
            shares[n],
        )
    memory = in_memory_order(g)
    if memory is not None:
        yield Hypothesis(
            "memory_layout",
            memory_words(name, "grad_output"),
            memory.sum(axis=(0, 2, 3)),
        )
