"""Sizes, leftovers, how often each cell is used, and what the padding reads."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from typing import Any, ClassVar, Literal

import numpy as np

from ..examples import EXAMPLES, Example
from ..geometry import ConvGeometry
from .base import Explorable, Geometry, Refused, RefusedShape, traitlets
from .explorer_words import formulas, is_one_dimensional, reads, uses
from .fallback import Block, drawing, figure

__all__ = ["GeometryExplorer"]

MOST_CELLS = 400  # of the padded image: what can still be read
VIEWS = ("uses", "source")
_LOOK = re.compile(r"([xy])\[(-?\d+),(-?\d+)\]")

# What the page offers to begin with: a name, what it shows, a geometry, and the direction.
PRESETS: tuple[tuple[str, str, ConvGeometry, bool], ...] = (
    ("B", EXAMPLES["B"].title, EXAMPLES["B"].geometry, False),
    ("leftover", "Stride 2 reads all columns but not the last row.", EXAMPLES["C"].geometry, False),
    (
        "same",
        "An even kernel: the padding is wider on one side.",
        ConvGeometry(C=1, H=5, W=6, O=1, KH=3, KW=4, padding="same"),
        False,
    ),
    (
        "reflect",
        "The border copies what lies behind the edge, as in a mirror.",
        ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, padding=2, padding_mode="reflect"),
        False,
    ),
    (
        "checkerboard",
        "A transposed convolution whose products meet unevenly.",
        ConvGeometry(C=1, H=9, W=9, O=1, KH=3, KW=3, stride=2),
        True,
    ),
    (
        "one row",
        "Stride, dilation and padding along one axis.",
        ConvGeometry(C=1, H=1, W=9, O=1, KH=1, KW=3, stride=2, padding=(0, 1), dilation=(1, 2)),
        False,
    ),
)


class GeometryExplorer(Explorable):
    """The sizes of a convolution, worked out, and a map of what its windows read.

    Each cell of the padded input says how many windows read it, or which cell of the image stands
    there; what is left over is crossed out.  Read the other way, it is a transposed convolution:
    the same numbers say how many products meet in each cell.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    geometry : ConvGeometry or Example, optional
        Left out, it is made from ``sizes``, or example C.  Images, channels and groups have no
        part in it.
    view : str, default "uses"
        What the cells of x say: "uses", how often they are read, or "source", which cell they read.
    transposed : bool, default False
        Whether it is read from y to x, as a transposed convolution.
    look : str, default ""
        What is looked at: ``"y[1,2]"`` a window, ``"x[2,2]"`` a place of the padded input
        (negative or too large on the border), ``""`` nothing.
    **sizes
        As for ``ConvGeometry``: ``H, W, KH, KW, stride, padding, dilation, padding_mode``.

    Attributes
    ----------
    reads : ndarray, shape (H + top + bottom, W + left + right)
        How many windows read each place of the padded input.
    uses : ndarray, shape (H, W)
        How many products each input cell takes part in, through copies on the border too.

    Raises
    ------
    GeometryError, ShapeError
        What describes no convolution, or is too large to draw.

    Examples
    --------
    >>> from convgrad.widgets import GeometryExplorer
    >>> explorer = GeometryExplorer(H=6, W=7, KH=3, KW=3, stride=2)
    >>> explorer.uses[:2]
    array([[1, 1, 2, 1, 2, 1, 1],
           [1, 1, 2, 1, 2, 1, 1]])
    """

    _bundle: ClassVar[str] = "geometry_explorer"

    geometry = Geometry(EXAMPLES["B"].geometry)
    view = traitlets.Enum(VIEWS, "uses").tag(sync=True)
    transposed = traitlets.Bool(False).tag(sync=True)
    look = traitlets.Unicode("").tag(sync=True)
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)
    limits = traitlets.Dict({"cells": MOST_CELLS}).tag(sync=True)

    def __init__(
        self,
        geometry: ConvGeometry | Example | None = None,
        *,
        view: Literal["uses", "source"] = "uses",
        transposed: bool = False,
        look: str = "",
        **sizes: Any,
    ) -> None:
        layout = {key: sizes.pop(key) for key in ("layout", "tooltip", "tabbable") if key in sizes}
        super().__init__(
            **layout,
            geometry=_plane(_read(geometry, sizes)),
            view=view,
            transposed=transposed,
            presets=[
                {
                    "name": name,
                    "title": title,
                    "geometry": _plane(g).as_dict(),
                    "transposed": back,
                    "view": "source" if name == "reflect" else "uses",
                }
                for name, title, g, back in PRESETS
            ],
        )
        self.look = look  # after the geometry, which says what there is
        self._write_fallback()
        self.observe(self._write_fallback, ["geometry", "transposed"])

    @property
    def reads(self) -> np.ndarray:
        return reads(self.geometry)

    @property
    def uses(self) -> np.ndarray:
        return uses(self.geometry)

    @traitlets.validate("geometry")
    def _small_enough(self, proposal: dict[str, Any]) -> ConvGeometry:
        g = _plane(proposal["value"])
        height, width = g.padded_size
        if height * width > MOST_CELLS:
            raise RefusedShape(
                f"the padded input is {height}×{width}, {height * width} cells: the explorer draws "
                f"up to {MOST_CELLS}; take a smaller input or less padding"
            )
        return g

    @traitlets.validate("look")
    def _there(self, proposal: dict[str, Any]) -> str:
        look = proposal["value"].replace(" ", "")
        if look and not _is_there(look, self.geometry):
            raise Refused(
                f"look is {look!r}: needed is an output cell of {self.geometry.describe()} such "
                "as 'y[0,1]', a place of the padded input such as 'x[0,2]', or ''"
            )
        return look

    @traitlets.observe("geometry")
    def _follow_geometry(self, change: dict[str, Any]) -> None:
        if self.look and not _is_there(self.look, self.geometry):
            self.look = ""

    def _write_fallback(self, change: Any = None) -> None:
        if not self._property_lock:  # the browser draws its own changes
            self.fallback = _fallback(self.geometry, self.transposed)


def _read(geometry: ConvGeometry | Example | None, sizes: dict[str, Any]) -> ConvGeometry:
    if isinstance(geometry, Example):
        geometry = geometry.geometry
    if geometry is None and not sizes:
        return EXAMPLES["C"].geometry
    if geometry is None:
        return ConvGeometry(**{"C": 1, "O": 1, "H": 1, "KH": 1} | sizes)
    if not isinstance(geometry, ConvGeometry):
        raise TypeError(
            f"geometry is {geometry!r:.40}: needed is a ConvGeometry, an example, or sizes by "
            "name, such as H=6, W=7, KH=3, KW=3"
        )
    return replace(geometry, **sizes)


def _plane(g: ConvGeometry) -> ConvGeometry:
    """One image, one channel, one kernel: the others would look the same."""
    return replace(g, N=1, C=1, O=1, groups=1)


def _is_there(look: str, g: ConvGeometry) -> bool:
    match = _LOOK.fullmatch(look)
    if not match:
        return False
    index = int(match[2]), int(match[3])
    (top, bottom), (left, right) = g.padding
    low = (-top, -left) if match[1] == "x" else (0, 0)
    high = (g.H + bottom, g.W + right) if match[1] == "x" else (g.OH, g.OW)
    return all(a <= k < b for a, k, b in zip(low, index, high, strict=True))


# ---- without JavaScript ----------------------------------------------------------------------


class _Counts(Block):
    """The padded image with the number of windows that read each place."""

    def _value(self, a: int, b: int, h: int, v: int) -> float:
        (top, _), (left, _) = self.border
        return float(reads(self.geometry)[h + top, v + left]) if self.geometry else 0.0


def _fallback(g: ConvGeometry, transposed: bool) -> str:
    meet = "products meet in each cell of x" if transposed else "windows read each cell of x"
    words = f"{g.describe()}: how many {meet}; the output y has {g.OH}×{g.OW} cells."
    (top, _), (left, _) = g.padding
    ends = [outside - over for outside, over in zip(g.padded_size, g.leftover, strict=True)]
    lost = {
        (0, 0, row - top, col - left)
        for row, col in np.ndindex(g.padded_size)
        if row >= ends[0] or col >= ends[1]
    }
    if lost:
        words += " Outlined: left over."
    block = _Counts("x", "x, how often read", np.zeros((1, 1, g.H, g.W)), "n c", lost, g)
    lines = "<br>".join(escape(line) for axis in formulas(g, transposed) for line in axis)
    wide, narrow = _live_height(g, narrow=False), _live_height(g, narrow=True)
    return figure(
        f"{drawing([block], words)}<figcaption>{escape(words)}</figcaption>"
        f'<p class="cg-formula">{lines}</p>',
        (wide, narrow),
    )


def _live_height(g: ConvGeometry, *, narrow: bool) -> int:
    """About how tall the live widget is, so that the page keeps still when it mounts.

    The numbers are those of geometry_explorer.css; a browser test holds the two together.
    """
    height, width = g.padded_size
    one = is_one_dimensional(g)
    side = 32 if narrow else 36
    note = 23 * (any(map(any, g.padding)) or any(g.leftover))
    x = 29 + height * side + note
    if one:
        arcs = 2 * side + 5 if g.padding_mode != "zeros" and any(g.padding[1]) else 0
        stage = 33 + x + arcs + 10 + 52 + g.OW * side
    else:
        y = 52 + g.OH * side
        beside = (width + g.OW) * side + 90 <= (340 if narrow else 736)
        stage = 33 + (max(x, y) if beside else x + y + 43)
    in_a_line = 50 if narrow or not one else 105  # characters of a formula
    axes = [
        22 * (not one) + sum(20 * -(-len(line) // in_a_line) + 3 for line in axis)
        for axis in formulas(g)
    ]
    sizes = 18 + (sum(axes) + 5 * (len(axes) - 1) if narrow else max(axes))
    per_axis = len({*np.ravel(g.padding)}) > 1 or g.stride[0] != g.stride[1]
    per_axis = per_axis or g.dilation[0] != g.dilation[1]
    knobs = (396, 472, 711) if narrow else (195, 233, 372)
    rest = (180 + 58 + 58 + 34) if narrow else (96 + 36 + 58 + 34)
    return round(rest + stage + sizes + knobs[0 if one else 1 + per_axis])
