"""``explain_difference``: the cause of a wrong gradient, in words that teach.

It works by hypotheses.  Each says "had you made this mistake, your array would be that one",
computes that array from the right answer and the operands, and compares.  The first that fits
names the cause.  Nothing is guessed from the size of the error, and a right answer is never
blamed: the comparison with the right answer comes first.

How close counts as equal is said in :mod:`convgrad.checks.compare`.

The hypotheses share no code with :mod:`convgrad.mutants`, which are their test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..geometry import ConvGeometry
from ..operands import quiet
from .compare import NotNumbers, numbers, same, wrong_cells
from .hypotheses import MOST_TRIED, Case, Hypothesis, listed
from .of_bias import of_bias
from .of_input import of_input
from .of_order import of_mirrors, of_order, of_scale, of_shape
from .of_output import of_output
from .of_weight import of_weight
from .sums import Sums

__all__ = ["CAUSES", "Explanation", "explain_difference", "matching_causes"]

# Every cause, with the name that a table or a chart may print.
CAUSES = {
    "right": "right",
    "not_numbers": "not an array of numbers",
    "squeezed": "an axis is missing or too many",
    "batch_not_summed": "missing sum over the batch",
    "kernels_not_summed": "missing sum over the kernels",
    "not_summed": "missing sum over positions",
    "missing_crop": "missing crop",
    "leftover_lost": "last rows or columns missing",
    "kernel_clipped": "kernel clipped to the input",
    "wrong_crop": "cut at the wrong place",
    "wrong_bias_axes": "wrong bias axes",
    "wrong_shape": "wrong shape",
    "other_operands": "right for these operands",
    "zero_times_infinity": "zero times infinity",
    "overflow": "overflow",
    "nothing": "nothing arrived",
    "flipped": "result turned by 180°",
    "mirrored": "result mirrored",
    "transposed": "rows and columns exchanged",
    "axes_swapped": "channels and kernels exchanged",
    "g_flipped": "grad_output turned",
    "g_transposed": "grad_output transposed",
    "g_reshaped": "grad_output reshaped",
    "images_mixed": "images mixed up",
    "kernel_flipped": "kernel not turned, or turned once too often",
    "kernel_transposed": "kernel transposed",
    "one_image": "missing sum over the batch",
    "images_empty": "images left out",
    "one_channel": "missing sum over the channels",
    "one_kernel": "missing sum over the kernels",
    "batch_mean": "mean over the batch",
    "position_mean": "mean over positions",
    "wrong_sign": "wrong sign",
    "wrong_scale": "wrong scale",
    "padding_ignored": "padding ignored",
    "padded_twice": "padded twice",
    "shifted": "shifted by padding",
    "padding_axes_swapped": "padding on the wrong axis",
    "border_lost": "border not folded back",
    "stride_dilation_swapped": "stride and dilation not exchanged",
    "dilation_ignored": "dilation ignored",
    "stride_ignored": "stride ignored",
    "wrong_group": "wrong group",
    "overlap_lost": "overlap lost",
    "not_conjugated": "factor not conjugated",
    "averaged": "averaged over the overlap",
    "stale_cells": "unread cells not zero",
    "memory_layout": "strides in memory ignored",
    "truncated": "fractions cut off",
    "low_precision": "too few digits",
    "unknown": "unknown",
}


@dataclass(frozen=True)
class Explanation:
    """What is wrong with an array, or that nothing is.

    Attributes
    ----------
    cause : str
        A key of :data:`CAUSES`; "right" where nothing is wrong.
    sentence : str
        Says it to the reader.
    cell : tuple of int or None
        The index of the first wrong cell.  None, like the rest, where there is no cell to compare
        (wrong shape, no numbers).
    got, wanted : number or None
        Its two values.
    wrong_cells : int or None
        How many there are.

    Examples
    --------
    >>> explanation = explain_difference([[1, 2], [3, 4]], np.ones((2, 2)))
    >>> explanation.cause, explanation.cell, explanation.wrong_cells
    ('unknown', (0, 1), 3)
    """

    cause: str
    sentence: str
    cell: tuple[int, ...] | None = None
    got: Any = None
    wanted: Any = None
    wrong_cells: int | None = None

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return self.cause == "right"

    def __str__(self) -> str:
        return self.sentence


@quiet()
def explain_difference(
    actual: Any,
    expected: np.ndarray,
    *,
    geometry: ConvGeometry | None = None,
    target: str | None = None,
    x: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    grad_output: np.ndarray | None = None,
) -> Explanation:
    """Say in words why ``actual`` is not ``expected``.

    Parameters
    ----------
    actual : anything
        The answer to be judged.
    expected : ndarray
        The right answer.
    geometry : ConvGeometry, optional
        The more of these four and of the target is given, the more causes can be told apart:
        without them only what shows in the two arrays alone (turned, scaled, cut …).
    target : str, optional
        What the arrays are: "weight", "input", "bias", or "output" for the forward pass.
    x : ndarray, (N, C, H, W), optional
    weight : ndarray, (O, C/groups, KH, KW), optional
    grad_output : ndarray, (N, O, OH, OW), optional

    Returns
    -------
    Explanation

    Raises
    ------
    ShapeError
        When an operand does not fit the geometry.
    ValueError
        For another target.  Never because of ``actual``, which may be anything at all.

    Examples
    --------
    >>> from convgrad import windows
    >>> from convgrad.examples import example
    >>> b = example("B")
    >>> x, weight, bias, g = b.arrays()
    >>> right = windows.grad_weight(g, x, b.geometry)
    >>> wrong = windows.grad_weight(g[..., ::-1, ::-1], x, b.geometry)
    >>> operands = dict(geometry=b.geometry, target="weight", x=x, grad_output=g)
    >>> explain_difference(wrong, right, **operands).cause
    'g_flipped'
    >>> explain_difference(right, right, **operands).sentence
    'Your grad_weight is right.'
    """
    case = Case.of(
        expected, geometry=geometry, target=target, x=x, weight=weight, grad_output=grad_output
    )
    try:
        array = numbers(actual, case.name)
    except NotNumbers as complaint:
        return Explanation("not_numbers", str(complaint))
    if same(array, case.expected):
        return Explanation("right", f"Your {case.name} is right.")
    for hypothesis in _hypotheses(array, case):
        if _fits(array, hypothesis, case):
            return _located(hypothesis.cause, hypothesis.sentence, array, case)
    return _without_hypothesis(array, case)


@quiet()
def matching_causes(actual: Any, expected: np.ndarray, **known: Any) -> set[str]:
    """Every cause whose array equals ``actual``: more than one where mistakes coincide.

    Parameters
    ----------
    actual : anything
        The answer to be judged.
    expected : ndarray
        The right answer.
    **known
        geometry, target and operands, as for :func:`explain_difference`.

    Returns
    -------
    set of str
        Keys of :data:`CAUSES`.

    Examples
    --------
    >>> sorted(matching_causes([[2, 1]], np.array([[1, 2]])))  # in one row alike
    ['flipped', 'mirrored']
    """
    case = Case.of(expected, **known)
    try:
        array = numbers(actual, case.name)
    except NotNumbers:
        return {"not_numbers"}
    if same(array, case.expected):
        return {"right"}
    fitting = {each.cause for each in _hypotheses(array, case) if _fits(array, each, case)}
    return fitting or {_without_hypothesis(array, case).cause}


def _fits(array: np.ndarray, hypothesis: Hypothesis, case: Case) -> bool:
    """Whether the mistake gives that array, and makes a difference here at all."""
    return same(array, hypothesis.array) and not same(hypothesis.array, case.expected)


def _located(cause: str, sentence: str, array: np.ndarray, case: Case) -> Explanation:
    """The explanation with its first wrong cell, where there are cells to compare."""
    if array.shape != case.expected.shape:
        return Explanation(cause, sentence)
    wrong = np.argwhere(wrong_cells(array, case.expected))
    cell = tuple(map(int, wrong[0]))
    return Explanation(cause, sentence, cell, array[cell], case.expected[cell], len(wrong))


def _without_hypothesis(array: np.ndarray, case: Case) -> Explanation:
    """No mistake we know gives these numbers: say what can be said from the numbers alone."""
    name, expected = case.name, case.expected
    if array.shape != expected.shape:
        return Explanation(
            "wrong_shape",
            f"Your {name} has shape {array.shape}, needed is {_letters(case)}{expected.shape}.",
        )
    if (~np.isfinite(array) & np.isfinite(expected)).any():
        what = "nan" if np.isnan(array).any() else "inf"
        return _located(
            "overflow",
            f"Your {name} has {what} where the right one is a number: a sum outgrew its dtype on "
            "the way, or a buffer was never filled. Add up in float32 or wider, starting from "
            "zeros.",
            array,
            case,
        )
    if _is_whole(array) and not _is_whole(expected):
        return _located(
            "truncated",
            f"Your {name} holds whole numbers only, the right one does not: the fractions were "
            "cut off. Add up in an array of floats, such as np.zeros(shape), not in zeros_like "
            "of an array of integers.",
            array,
            case,
        )
    if not _is_whole(array) and _nearly(array, expected):
        return _located(
            "low_precision",
            f"Your {name} agrees with the right one in its first digits only: add up in float32 "
            "or float64 and round once, at the end.",
            array,
            case,
        )
    at = _located("unknown", "", array, case)
    where = ", ".join(map(str, at.cell or ()))
    how_many = (
        "in every cell"
        if at.wrong_cells == array.size
        else f"in {at.wrong_cells} of {array.size} cells"
    )
    return replace(
        at,
        sentence=f"Your {name} differs from the right one {how_many}, first at [{where}]: "
        f"yours is {at.got:g}, right is {at.wanted:g}. {_pattern(array, case)}"
        f"{FOLLOW}",
    )


# What is left to do where no cause is known; the command says how.
FOLLOW = "Follow the products of that one cell."

_AXES = {
    "weight": ("kernel", "channel", "kernel row", "kernel column"),
    "input": ("image", "channel", "row", "column"),
    "bias": ("kernel",),
    "output": ("image", "kernel", "row", "column"),
}


def _pattern(array: np.ndarray, case: Case) -> str:
    """Which kernels, channels, ... the wrong cells lie in, where some are right; then a space."""
    wrong = wrong_cells(array, case.expected)
    parts, moved = [], ""
    for axis, one in enumerate(_AXES.get(case.target or "", ())):
        size = array.shape[axis]
        touched = np.flatnonzero(np.moveaxis(wrong, axis, 0).reshape(size, -1).any(axis=1))
        if len(touched) < size:
            parts.append(f"{listed(one, touched)} of {size}")
        moved = moved or _moved(array, case.expected, axis, one, touched)
    only = f"Wrong are cells in {'; '.join(parts)}, and no others. " if parts else ""
    return only + moved


def _moved(
    array: np.ndarray, expected: np.ndarray, axis: int, one: str, touched: np.ndarray
) -> str:
    """Which slices stand where another one belongs, if all wrong ones do; then a space."""
    yours, right = np.moveaxis(array, axis, 0), np.moveaxis(expected, axis, 0)
    if not 0 < len(touched) <= MOST_TRIED or len(right) > 4 * MOST_TRIED:
        return ""
    found = []
    for k in touched:
        home = next((j for j, a in enumerate(right) if a.any() and same(yours[k], a)), None)
        if home is None:
            return ""
        found.append(f"{one} {k} holds what belongs in {one} {home}")
    return f"{', '.join(found)}. "


def _letters(case: Case) -> str:
    """The needed shape in letters, where it is known which array this is."""
    letters = {
        "weight": "(O, C/G, KH, KW) = ",
        "input": "(N, C, H, W) = ",
        "bias": "(O,) = ",
        "output": "(N, O, OH, OW) = ",
    }
    return letters.get(case.target or "", "")


def _answers_these_operands(array: np.ndarray, case: Case, sums: Sums) -> bool:
    """Whether the array is what the operands give, though the right answer is something else."""
    rules: dict[str, Callable[[], np.ndarray]] = {
        "weight": sums.grad_weight,
        "input": sums.grad_input,
        "output": sums.output,
    }
    if sums.target not in rules:
        return False
    again = rules[sums.target]()
    return same(array, again) and not same(again, case.expected)


def _of_infinities(array: np.ndarray, case: Case) -> Iterator[Hypothesis]:
    """nan out of an infinite operand; asked first, for nan hides what else is wrong."""
    operands = case.operands.given.values()
    if array.shape == case.expected.shape and not all(np.isfinite(a).all() for a in operands):
        fitting = np.where(np.isnan(array) & ~np.isnan(case.expected), array, case.expected)
        yield Hypothesis(
            "zero_times_infinity",
            f"Your {case.name} has nan where the right one is a number: an inserted or surrounding "
            "zero was multiplied by an infinite operand, and 0·inf is nan. The formula has no such "
            "product; leave it out instead of multiplying by zero.",
            fitting,
        )


def _is_whole(array: np.ndarray) -> bool:
    return bool(array.dtype.kind in "iub" or (array == np.round(array)).all())


def _nearly(array: np.ndarray, expected: np.ndarray) -> bool:
    """Each cell right to about seven binary digits of its own: rounding, not bookkeeping."""
    return bool((np.abs(array - expected) <= 2.0**-7 * np.abs(expected)).all())


# ---- the hypotheses that apply ----------------------------------------------------------

# Above this many products the operands are not convolved again for each hypothesis, and an
# answer of the wrong shape with more cells is not searched for the right one.
_MOST = 5_000_000


def _hypotheses(array: np.ndarray, case: Case) -> Iterator[Hypothesis]:
    """All mistakes we know, the likelier before the rarer."""
    if array.shape != case.expected.shape and array.size > _MOST:
        return
    sums = _sums(case)
    if sums and _answers_these_operands(array, case, sums):
        more = "a bias, added once in every cell" if case.target == "output" else "a mean"
        yield Hypothesis(
            "other_operands",
            f"Your {case.name} is what these operands give, and the right one is not: is there "
            f"more in it, such as {more}, or does it belong to other operands?",
            array,
        )
        return
    yield from _of_infinities(array, case)
    yield from of_shape(array, case)
    yield from of_order(case)
    specific = {"weight": of_weight, "input": of_input, "bias": of_bias, "output": of_output}
    if sums:
        yield from specific[sums.target](array, case, sums)
    yield from of_scale(array, case)
    yield from of_mirrors(case)


def _sums(case: Case) -> Sums | None:
    """The sums to bend, where all that they need is known, in sizes to convolve many times."""
    if case.geometry is None or case.target is None or not _affordable(case.geometry):
        return None
    needed = {"weight": "x grad_output", "input": "weight grad_output"}
    needed |= {"bias": "grad_output", "output": "x weight"}
    names, given = needed[case.target].split(), case.operands.given
    if not given.keys() >= set(names):
        return None
    case.geometry.require(**{name: given[name] for name in names})
    return Sums(case.geometry, case.target, case.operands)


def _affordable(geometry: ConvGeometry) -> bool:
    taps = geometry.CG * geometry.KH * geometry.KW
    cells = math.prod(geometry.padded_size) * max(geometry.C, geometry.O) * geometry.N
    return max(math.prod(geometry.output_shape) * taps, cells) <= _MOST
