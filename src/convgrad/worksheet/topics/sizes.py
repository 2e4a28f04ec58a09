"""Sizes: how large the output is, what is left over, which cell a tap reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...dice import Dice
from ...geometry import ConvGeometry, GeometryError
from ..parts import Line, Mistake, Question

__all__ = ["SIZES"]


def _geometry(dice: Dice, level: int) -> ConvGeometry | None:
    stride = dice.between(1, 2) if level == 1 else dice.between(2, 3)
    try:
        geometry = ConvGeometry(
            C=1,
            H=dice.between(5, 9 + 4 * level),
            W=dice.between(5, 9 + 4 * level),
            O=1,
            KH=dice.between(2, 3 + (level > 1)),
            KW=dice.between(2, 3 + (level > 1)),
            stride=stride,
            padding=0 if level == 1 else dice.between(0, 2),
            dilation=dice.between(1, 2) if level == 3 else 1,
        )
    except GeometryError:
        return None
    # one place alone, and a mistake may leave none
    return geometry if min(geometry.OH, geometry.OW) > 1 else None


def _told(geometry: ConvGeometry) -> str:
    words = [f"`stride = {geometry.stride[0]}`", f"`padding = {geometry.padding[0][0]}`"]
    if geometry.dilation != (1, 1):
        words.append(f"`dilation = {geometry.dilation[0]}`")
    return (
        f"`x` has {geometry.H} rows and {geometry.W} columns, the kernel {geometry.KH} rows and "
        f"{geometry.KW} columns; {', '.join(words)}."
    )


def _size_of_output(geometry: ConvGeometry) -> np.ndarray:
    return np.array([geometry.OH, geometry.OW])


def output_size(dice: Dice, level: int) -> Question | None:
    geometry = _geometry(dice, level)
    if geometry is None or geometry.H == geometry.W:
        return None
    right = _size_of_output(geometry)
    (stride, _), (top, _) = geometry.stride, geometry.padding[0]
    lines = [
        f"{name} = ⌊({size} + 2·{top} − {span}) / {stride}⌋ + 1 = ⌊{padded - span}/{stride}⌋ + 1 "
        f"= {result}"
        for name, size, padded, span, result in zip(
            ("OH", "OW"),
            (geometry.H, geometry.W),
            geometry.padded_size,
            geometry.span,
            right,
            strict=True,
        )
    ]
    if geometry.dilation != (1, 1):
        d = geometry.dilation[0]
        lines.insert(
            0,
            f"The kernel spans {d}·({geometry.KH} − 1) + 1 = {geometry.span[0]} rows and "
            f"{d}·({geometry.KW} − 1) + 1 = {geometry.span[1]} columns",
        )
    return Question(
        title="The size of the output",
        text=(_told(geometry), "How many rows and columns has the output?"),
        asks=(Line("OH, rows", geometry.OH), Line("OW, columns", geometry.OW)),
        answer=right,
        working=tuple(lines),
        mistakes=tuple(_wrong_sizes(geometry)),
        geometry=geometry,
        room=24,
    )


def _wrong_sizes(geometry: ConvGeometry) -> list[Mistake]:
    """Each is the size of another convolution than the one that is asked for."""
    right = _size_of_output(geometry)
    found = [Mistake(right - 1, "Forgets the + 1: counts the steps, not the places.")]
    if geometry.leftover != (0, 0):
        more = np.array([rest > 0 for rest in geometry.leftover])
        found.append(Mistake(right + more, "Rounds up, so the last window hangs over the edge."))
    (pad, _), _ = geometry.padding
    if pad:
        once = _size_of_output(replace(geometry, padding=((pad, 0), (pad, 0))))
        found.append(Mistake(once, "Adds the padding on one side only."))
    if geometry.dilation != (1, 1):
        plain = _size_of_output(replace(geometry, dilation=(1, 1)))
        found.append(Mistake(plain, "Takes the kernel's size, where its dilated span is needed."))
    return [each for each in found if not np.array_equal(each.result, right)]


def leftover(dice: Dice, level: int) -> Question | None:
    geometry = _geometry(dice, level)
    if geometry is None or geometry.leftover == (0, 0) or geometry.H == geometry.W:
        return None
    right = np.array(geometry.leftover)
    (stride, _), ends = geometry.stride, []
    for name, size, padded, span, rest in zip(
        ("rows", "columns"),
        (geometry.OH, geometry.OW),
        geometry.padded_size,
        geometry.span,
        geometry.leftover,
        strict=True,
    ):
        reach = stride * (size - 1) + span
        ends.append(
            f"The last window ends after {stride}·({size} − 1) + {span} = {reach} of {padded} "
            f"{name}: {rest} left"
        )
    return Question(
        title="What is left over",
        text=(
            _told(geometry),
            "The last window may end before the edge of the padded input. How many rows at its "
            "bottom and how many columns at its right does no window reach?",
        ),
        asks=(
            Line("rows left over", geometry.leftover[0]),
            Line("columns left over", geometry.leftover[1]),
        ),
        answer=right,
        working=tuple(ends),
        mistakes=tuple(_wrong_leftovers(geometry)),
        geometry=geometry,
        room=26,
    )


def _wrong_leftovers(geometry: ConvGeometry) -> list[Mistake]:
    right = np.array(geometry.leftover)
    found = []
    if geometry.padding[0] != (0, 0):
        bare = (np.array([geometry.H, geometry.W]) - geometry.span) % geometry.stride[0]
        found.append(Mistake(bare, "Takes the bare input, without its padding."))
    found.append(
        Mistake(
            np.array(geometry.padded_size) % geometry.stride[0],
            "Divides the padded size by the stride, and forgets the span of the kernel.",
        )
    )
    return [each for each in found if not np.array_equal(each.result, right)]


def which_cell(dice: Dice, level: int) -> Question | None:
    geometry = _geometry(dice, level)
    if geometry is None or geometry.stride == (1, 1):
        return None
    p, q = dice.between(0, geometry.OH - 1), dice.between(1, geometry.OW - 1)
    i, j = dice.between(0, geometry.KH - 1), dice.between(0, geometry.KW - 1)
    h, v = geometry.source(p, q, i, j)
    if p == i and q == j:
        return None  # then stride and dilation could be taken for each other
    inside = geometry.cell(h, v) is not None
    s, d, pad = geometry.stride[0], geometry.dilation[0], geometry.padding[0][0]
    reads = f"x[{h},{v}]".replace("-", "−")
    return Question(
        title="Which cell does it read?",
        text=(
            _told(geometry),
            f"The window of output cell `y[{p},{q}]` lies on `x`. Which row `h` and column `v` of "
            f"`x` lies under its tap `w[{i},{j}]`? Is that in the image, or on the padding?",
        ),
        asks=(
            Line("h", h),
            Line("v", v),
            Line("image or padding", "image" if inside else "padding"),
        ),
        answer=np.array([h, v]),
        working=(
            f"h = stride·p + dilation·i − padding = {s}·{p} + {d}·{i} − {pad} = {h}".replace(
                "= -", "= −"
            ),
            f"v = stride·q + dilation·j − padding = {s}·{q} + {d}·{j} − {pad} = {v}".replace(
                "= -", "= −"
            ),
            f"The tap reads {reads}."
            if inside
            else f"{reads} is outside of x, so the tap reads the number 0.",
        ),
        mistakes=tuple(_wrong_cells(geometry, (p, q, i, j))),
        geometry=geometry,
        about={"read": (p, q, i, j)},
        room=18,
    )


def _wrong_cells(geometry: ConvGeometry, read: tuple[int, int, int, int]) -> list[Mistake]:
    right = np.array(geometry.source(*read))
    found = []
    pad = geometry.padding[0][0]
    if pad:
        found.append(Mistake(right + pad, "Forgets − padding."))
    steps = np.array(
        replace(geometry, stride=(1, 1), padding=((pad, pad), (pad, pad))).source(*read)
    )
    found.append(Mistake(steps, "Steps by one cell, and forgets the stride."))
    if geometry.dilation != (1, 1):
        near = np.array(replace(geometry, dilation=(1, 1)).source(*read))
        found.append(Mistake(near, "Takes the taps next to each other, and forgets the dilation."))
    return [each for each in found if not np.array_equal(each.result, right)]


SIZES = (output_size, which_cell, leftover)
