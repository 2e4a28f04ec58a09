"""How tall GradientViews is in the page, so that nothing moves when it comes to life.

The numbers are those of gradient_views.css; a browser test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from ..geometry import ConvGeometry

__all__ = ["MOST_GROUPS", "MOST_PAGES", "live_height"]

MOST_PAGES, MOST_GROUPS = 4, 3  # images and groups that are drawn at a time, as in views_drawing.js
TITLE = 47.6  # two lines over a grid
NOTE = 23.8
TITLED = 132.0  # width of a title such as grad_weight[0,0]

Size = tuple[float, float]  # width, height


def live_height(geometry: ConvGeometry, view: str, *, narrow: bool) -> int:
    """About how tall the live widget is, in pixels."""
    width = 343 if narrow else 688
    stage = {
        "kernels": _kernels,
        "scatter-gather": _scatter,
        "convolution": _convolution,
        "batch": _batch,
    }[view](geometry, width, narrow)
    terms = min(36, max(geometry.KH * geometry.KW, geometry.OH * geometry.OW))
    words = (3 + ceil(terms / 9)) * 20.3 if narrow else (2 + ceil(terms / 14)) * 23.2
    controls = 79 + 62 if narrow else 41 + 32
    return round(_choices(geometry, view, width, narrow) + 34 + stage + words + 14.4 + controls + 5)


def _choices(g: ConvGeometry, view: str, width: float, narrow: bool) -> float:
    """Examples, views, pickers and the caption."""
    batch = view == "batch"
    counts = {"image": 1 if batch else g.N, "kernel": g.OG if batch else g.O, "channel": g.CG}
    wide = 40 if g.groups > 1 and not batch else 25  # of a number, with a letter or without
    rows = [
        50 + count * (wide if what == "kernel" else 25)
        for what, count in counts.items()
        if count > 1
    ]
    if narrow:
        lines = {"kernels": 3, "batch": 3 if g.groups > 1 else 2}.get(view, 4)
        return 32 + 66 + 32 * sum(ceil(row / width) for row in rows) + 16.8 + 20.3 * lines
    return 32 + 32 + 32 * ceil((sum(rows) + 29 * (len(rows) - 1)) / width) + 57.4


def _kernels(g: ConvGeometry, width: float, narrow: bool) -> float:
    if narrow:
        cell = _clamp(15, (width - 60) / max(g.KW, g.OW), 28)
        low = max((width - 60) / 2 / g.W, min(18, (width - 24) / g.W))
        low = _clamp(15, low, 26)
    else:
        cell = _clamp(15, (width - 150) / (2 * max(g.KW, 5) + g.OW), 32)
        low = max((width - 180) / 3 / g.W, min(20, (width - 80) / 2 / g.W))
        low = _clamp(15, low, 30)
    kernel, upstream = _grid(g.KW, g.KH, cell), _grid(g.OW, g.OH, cell)
    share = _grid(g.W, g.H, low)
    piled = (share[0] + 16, share[1] + 14)
    headings = (20.3, 40.6 if narrow else 20.3)
    gap = _gap(narrow)
    above = _flow([kernel, upstream, kernel], width, narrow)
    return sum(headings) + above + _flow([share, piled, piled], width, narrow) + 3 * gap


def _scatter(g: ConvGeometry, width: float, narrow: bool) -> float:
    side = width if narrow else width / 2
    padded = g.W + sum(g.padding[1])
    cell = _clamp(15, (side - (70 if narrow else 80)) / (g.OW + g.KW), 28 if narrow else 32)
    low = _clamp(15, (side - (24 if narrow else 20)) / padded, 26 if narrow else 30)
    factors = max(_grid(g.OW, g.OH, cell)[1], _grid(g.KW, g.KH, cell)[1])
    rows = g.H + sum(g.padding[0])
    landed = 27.6 + _grid(padded, rows, low)[1] + NOTE * any(np.ravel(g.padding))
    if narrow:
        return 61 + 2 * (factors + landed) + 5 * 9.6
    return 20.3 + factors + landed + 2 * 14.4


def _convolution(g: ConvGeometry, width: float, narrow: bool) -> float:
    rows, cols = g.H + sum(g.padding[0]), g.W + sum(g.padding[1])
    spread = [s * (out - 1) + 1 for s, out in zip(g.stride, (g.OH, g.OW), strict=True)]
    taps = g.KH + g.surplus[0], g.KW + g.surplus[1]
    if narrow:
        cell = _clamp(15, (width - 24) / max(cols, spread[1], taps[1]), 28)
    else:
        cell = _clamp(15, (width - 150) / (cols + spread[1] + max(taps[1], 5)), 32)
    x = _grid(cols, rows, cell)
    made = _grid(taps[1], taps[0], cell)
    cropped = (NOTE + 18) * (max(g.surplus) > 0)  # two lines
    panels = [
        (x[0], x[1] + NOTE * any(np.ravel(g.padding))),
        _grid(spread[1], spread[0], cell),
        (made[0] + 8, made[1] + 8 + cropped),
    ]
    return _flow(panels, width, narrow)


def _batch(g: ConvGeometry, width: float, narrow: bool) -> float:
    pages, groups = min(g.N, MOST_PAGES), min(g.groups, MOST_GROUPS)
    across = g.W + g.OW + max(g.KW, 5)
    cell = _clamp(15, (width - (60 if narrow else 150)) / across, 28 if narrow else 32)
    room, most = (90, 26) if narrow else (366, 30)
    low = _clamp(15, (width - room) / (g.KW * pages), most)
    x, upstream = _grid(g.W, g.H, cell), _grid(g.OW, g.OH, cell)
    made = _grid(g.KW, g.KH, cell)
    above = _flow([x, upstream, made], width, narrow)
    padding = 4.8 if narrow else 6.4
    block = 4.8 + g.KH * low + 3 + 14
    leaf = (
        g.KW * low + 3 + 16 + (15 if narrow else 24),
        padding + 20 + groups * (block + 26.6),
    )
    # on a telephone the sums stand beside each other in a line of their own, under their sign
    total = (
        width if narrow else TITLED + 20,
        padding + 18.2 + (1 if narrow else groups) * (block + 26.6) + 24.8 * narrow,
    )
    gap = 22.4 if narrow else 32
    below = _flow([leaf] * pages + [total], width, narrow, across=gap)
    note = 40 * (pages < g.N or g.groups > groups)
    return above + _gap(narrow) + below + note


# ---- pieces --------------------------------------------------------------------------------


def _grid(cols: int, rows: int, cell: float) -> Size:
    """A grid with its title."""
    return max(TITLED, cols * cell + 3), TITLE + rows * cell + 3


def _gap(narrow: bool) -> float:
    return 11.2 if narrow else 14.4


def _flow(panels: Sequence[Size], width: float, narrow: bool, across: float | None = None) -> float:
    """The height of panels that stand in lines like words."""
    beside = across if across is not None else (35.2 if narrow else 51.2)
    heights: list[float] = []
    used = 0.0
    for wide, high in panels:
        if heights and used + beside + wide <= width:
            used += beside + wide
            heights[-1] = max(heights[-1], high)
        else:
            used = wide
            heights.append(high)
    return sum(heights) + _gap(narrow) * (len(heights) - 1)


def _clamp(least: float, value: float, most: float) -> float:
    return max(least, min(value, most))
