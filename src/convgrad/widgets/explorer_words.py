"""The sizes of a convolution as formulas with the numbers put in; the same as explorer_words.js."""

from __future__ import annotations

import numpy as np

from ..geometry import ConvGeometry

__all__ = ["formulas", "is_one_dimensional", "reads", "uses"]

AXES = (("row", "OH", "H", "KH"), ("column", "OW", "W", "KW"))


def is_one_dimensional(g: ConvGeometry) -> bool:
    """Whether there is nothing to see in the other axis: one row, one tap, no padding."""
    return g.H == g.KH == 1 and g.padding[0] == (0, 0)


def reads(g: ConvGeometry) -> np.ndarray:
    """How many windows read each place of the padded image, (H + top + bottom, W + left + right).

    >>> reads(ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=2, padding=((0, 0), (1, 0))))
    array([[1, 2, 2, 2, 2, 1]])
    """
    counts = []
    for axis, size in enumerate(g.padded_size):
        outputs, taps = (g.OH, g.KH) if axis == 0 else (g.OW, g.KW)
        place = np.add.outer(
            g.stride[axis] * np.arange(outputs), g.dilation[axis] * np.arange(taps)
        )
        counts.append(np.bincount(place.ravel(), minlength=size))
    return np.multiply.outer(*counts)


def uses(g: ConvGeometry) -> np.ndarray:
    """How many products each cell of the image takes part in, its copies included, (H, W).

    >>> uses(ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=3, stride=2))
    array([[1, 1, 2, 1, 1]])
    """
    total = np.zeros((g.H, g.W), dtype=np.int64)
    for at, count in np.ndenumerate(reads(g)):
        cell = g.cell(at[0] - g.padding[0][0], at[1] - g.padding[1][0])
        if cell is not None:
            total[cell] += count
    return total


def formulas(g: ConvGeometry, transposed: bool = False) -> list[list[str]]:
    """For each axis, lines such as ``OH = ⌊(6 − 3) / 2⌋ + 1 = 2``."""
    shown = (1,) if is_one_dimensional(g) else (0, 1)
    return [_axis(g, axis, transposed) for axis in shown]


def _axis(g: ConvGeometry, axis: int, transposed: bool) -> list[str]:
    word, out, size, kernel = AXES[axis]
    s, d, (before, after) = g.stride[axis], g.dilation[axis], g.padding[axis]
    k, cells, outputs = getattr(g, kernel), getattr(g, size), getattr(g, out)
    span, padded, left = g.span[axis], g.padded_size[axis], g.leftover[axis]
    lines = [f"span = dilation·({kernel} − 1) + 1 = {d}·({k} − 1) + 1 = {span}"]
    if transposed:
        return [
            *lines,
            f"{size} = ({out} − 1)·stride + span − padding + output_padding",
            f"{size} = ({outputs} − 1)·{s} + {span} − ({before} + {after}) + {left} = {cells}",
        ]
    lines.append(f"padded = {before} + {cells} + {after} = {padded}")
    lines.append(
        f"{out} = ⌊(padded − span) / stride⌋ + 1 = ⌊({padded} − {span}) / {s}⌋ + 1 = {outputs}"
    )
    if left:
        words = f"{left} {word}s are" if left > 1 else f"1 {word} is"
        where = "at the bottom" if axis == 0 else "on the right"
        lines.append(f"the division leaves {left}: {words} left over {where}")
    if before != after and before + after == span - 1 and s == 1:
        lines.append(f"“same”: {before + after} cells in all, the odd one after")
    return lines
