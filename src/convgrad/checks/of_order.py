"""Hypotheses from the two arrays alone: the right numbers in a wrong shape, place or scale."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..geometry import ConvGeometry, Pair
from .compare import same
from .hypotheses import Case, Hypothesis, listed, output_padding

__all__ = ["of_mirrors", "of_order", "of_scale", "of_shape"]


def of_shape(array: np.ndarray, case: Case) -> Iterator[Hypothesis]:
    """What the two arrays alone say about a wrong shape."""
    name, expected, shape = case.name, case.expected, array.shape
    if shape == expected.shape:
        return
    geometry = case.geometry
    images, kernels = (geometry.N, geometry.O) if geometry else (None, None)
    if case.target in ("weight", "bias") and _is_stack(array, expected, images):
        yield Hypothesis(
            "batch_not_summed",
            f"Your {name} still has an axis for the images, of length {shape[0]}: every image uses "
            "the same parameters, so their gradients add up. Sum over n.",
            array,
        )
    if case.target == "input" and _is_stack(array, expected, kernels):
        yield Hypothesis(
            "kernels_not_summed",
            f"Your {name} still has an axis for the kernels, of length {shape[0]}: every kernel "
            "sends its own share back to the input, and they add up. Sum over o.",
            array,
        )
    if array.ndim != expected.ndim and _strip(shape) == _strip(expected.shape):
        yield Hypothesis(
            "squeezed",
            f"Your {name} holds the right numbers in the shape {shape}, needed is "
            f"{expected.shape}: an axis of length 1 was squeezed away or is one too many. "
            "Name the axes you sum over, and keep the others.",
            expected.reshape(shape),
        )
    # what is cut differs in rows and columns alone
    if array.ndim != expected.ndim or array.ndim < 2 or shape[:-2] != expected.shape[:-2]:
        return
    smaller = all(a <= e for a, e in zip(shape, expected.shape, strict=True))
    larger = all(a >= e for a, e in zip(shape, expected.shape, strict=True))
    if larger and case.target in (None, "weight"):
        corner = array[tuple(map(slice, expected.shape))]
        yield Hypothesis(
            "missing_crop",
            f"Your {name} begins with the right one but has shape {shape}, needed is "
            f"{expected.shape}: where the stride leaves rows or columns unread, the convolution "
            "of x with grad_output gives more taps than the kernel has. Crop to the kernel's size.",
            array if same(corner, expected) else expected,
        )
    if smaller:
        corner = expected[tuple(map(slice, shape))]
        if case.target == "input" and geometry and _lacks_what_no_window_reads(shape, geometry):
            yield Hypothesis(
                "leftover_lost",
                f"Your {name} is right as far as it goes, but its shape is {shape}, needed is "
                f"{expected.shape}: the last rows or columns are missing, those that no window "
                f"reads. Give the transposed convolution {output_padding(geometry)}.",
                corner,
            )
        if case.target == "weight" and geometry and shape[2:] == _clipped(geometry):
            yield Hypothesis(
                "kernel_clipped",
                f"Your {name} is right as far as it goes, but its shape is {shape}, needed is "
                f"{expected.shape}: the kernel was clipped. A kernel larger than the image fits "
                "the padded image, and its outer taps get gradients too (zeros, if they only "
                "ever see zeros).",
                corner,
            )


def _is_stack(array: np.ndarray, expected: np.ndarray, length: int | None) -> bool:
    """Whether the array is a stack of (``length``, where known) shares that add up to expected."""
    return (
        array.shape[1:] == expected.shape
        and length in (None, len(array))
        and same(array.sum(axis=0, dtype=np.result_type(array, np.float64)), expected)
    )


def _lacks_what_no_window_reads(shape: tuple[int, ...], geometry: ConvGeometry) -> bool:
    """Whether no more is missing than a transposed convolution without output_padding lacks."""
    height, width = geometry.H - geometry.leftover[0], geometry.W - geometry.leftover[1]
    return shape[2] >= max(height, 0) and shape[3] >= max(width, 0)


def _clipped(geometry: ConvGeometry) -> Pair:
    """The kernel as far as it fits into the bare image."""
    return min(geometry.KH, geometry.H), min(geometry.KW, geometry.W)


def _strip(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _has_rows_and_columns(case: Case) -> bool:
    return case.expected.ndim in (2, 4) and case.target != "bias"


def of_order(case: Case) -> Iterator[Hypothesis]:
    """The right numbers in the wrong places."""
    name, expected = case.name, case.expected
    if _has_rows_and_columns(case):
        why = {
            "weight": "the sum slides grad_output over x as it is. Do not turn it, "
            "or the result, when you correlate; a routine that flips (scipy's convolve2d) needs "
            "grad_output turned beforehand.",
            "input": "check which end of each axis you count from.",
        }.get(case.target or "", "a convolution in the mathematical sense flips, conv2d does not.")
        yield Hypothesis(
            "flipped",
            f"Your {name} is the right one turned by 180°: {why}",
            expected[..., ::-1, ::-1],
        )
        yield Hypothesis(
            "transposed",
            f"Your {name} is the right one with rows and columns exchanged: rows are the "
            "last axis but one, columns the last.",
            expected.swapaxes(-1, -2),
        )
    if np.iscomplexobj(expected):
        yield Hypothesis(
            "not_conjugated",
            f"Your {name} is the complex conjugate of the right one: in a gradient the other "
            "factor is conjugated, conj(x)·g or conj(w)·g, and grad_output is not.",
            expected.conj(),
        )
    if expected.ndim == 4:
        axes = {"weight": ("kernels o", "channels c"), "output": ("images n", "kernels o")}
        first, second = axes.get(case.target or "", ("images n", "channels c"))
        yield Hypothesis(
            "axes_swapped",
            f"Your {name} has its first two axes exchanged: {first} belong first, {second} second. "
            "Exchange them at the end, with swapaxes(0, 1).",
            expected.swapaxes(0, 1),
        )


def of_mirrors(case: Case) -> Iterator[Hypothesis]:
    """Rarer ways to misplace the right numbers; small maps look mirrored for many reasons."""
    name, expected = case.name, case.expected
    if _has_rows_and_columns(case):
        for axis, which in ((-2, "upside down"), (-1, "left to right")):
            yield Hypothesis(
                "mirrored",
                f"Your {name} is the right one mirrored {which}: one of its two axes is counted "
                "backwards.",
                np.flip(expected, axis),
            )
        yield Hypothesis(
            "transposed",
            f"Your {name} is the right one turned by a quarter: one axis is flipped and rows and "
            "columns are exchanged.",
            np.rot90(expected, axes=(-2, -1)),
        )


def of_scale(array: np.ndarray, case: Case) -> Iterator[Hypothesis]:
    """A multiple of the right answer."""
    name, expected, geometry = case.name, case.expected, case.geometry
    if array.shape != expected.shape or not expected.any():
        return
    if array.dtype.kind not in "iu":  # a buffer of integers has a cause of its own
        yield Hypothesis(
            "nothing",
            f"Your {name} is 0 everywhere: no product arrived. Is the sum written into the array "
            "that you return?",
            np.zeros_like(expected),
        )
    if case.target in ("input", "output") and expected.ndim == 4 and len(expected) > 1:
        yield from _images_left_out(array, case)
    if geometry is not None and case.target != "output":
        N, places = geometry.N, geometry.OH * geometry.OW
        for size, cause, over in (
            (N, "batch_mean", f"the {N} images"),
            (places, "position_mean", f"the {places} output positions"),
            (N * places, "position_mean", f"all {N * places} positions of all images"),
        ):
            if size > 1:
                yield Hypothesis(
                    cause,
                    f"Your {name} is the right one divided by {size}, a mean over {over}: the "
                    "chain rule adds. Whether the loss is a mean is already in grad_output.",
                    expected / size,
                )
    why = "the gradient points where the loss grows, and the minus belongs to the training step."
    if case.target == "output":
        why = "the products are added, and none is taken off."
    yield Hypothesis(
        "wrong_sign", f"Your {name} is the right one with the sign turned: {why}", -expected
    )
    top = np.unravel_index(np.argmax(np.abs(expected)), expected.shape)
    factor = array[top] / expected[top] if np.isfinite(expected[top]) else np.nan
    # so close to 1 it is a matter of digits
    if np.count_nonzero(expected) > 1 and np.isfinite(factor) and abs(factor - 1) > 2.0**-7:
        yield Hypothesis(
            "wrong_scale",
            f"Your {name} is {factor:.4g} times the right one: every product counts once.",
            factor * expected,
        )


def _images_left_out(array: np.ndarray, case: Case) -> Iterator[Hypothesis]:
    """Some images are right, the others 0."""
    arrived = np.asarray(array.any(axis=(1, 2, 3)))
    empty = np.flatnonzero(~arrived & case.expected.any(axis=(1, 2, 3)))
    if len(empty) and arrived.any():
        yield Hypothesis(
            "images_empty",
            f"Your {case.name} is right for {listed('image', np.flatnonzero(arrived))}, and 0 for "
            f"{listed('image', empty)} of {len(array)}: the work was done for a part of the batch "
            "only. Do it for every image.",
            np.where(arrived[:, None, None, None], case.expected, 0),
        )
