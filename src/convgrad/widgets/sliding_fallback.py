"""What SlidingWindow says without JavaScript: the grids or pictures, and one sum worked out."""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape

import numpy as np

from ..api import conv2d
from ..geometry import ConvGeometry
from .fallback import Block, drawing, figure, number, signed, subscript, tinted

__all__ = ["as_pictures", "grey_scale", "sliding_fallback"]

MOST_IN_GRIDS = 400  # cells of one slice; beyond, numbers are too small to read
PIXEL = 6  # side of a cell of a picture, in the drawing's units
MOST_TERMS, FIRST_TERMS = 40, 9  # of a sum that is written out; else its beginning
GAP, LINE = 24, 20


def as_pictures(g: ConvGeometry) -> bool:
    """Whether the widget draws grey pictures instead of tables of numbers."""
    height, width = g.padded_size
    return max(height * width, g.OH * g.OW) > MOST_IN_GRIDS


def grey_scale(values: np.ndarray, x: np.ndarray, kernel: np.ndarray) -> tuple[float, float]:
    """The numbers drawn black and white, for the output of a kernel; the same as in picture.js.

    An image without negative numbers keeps its own scale where the kernel adds up to something;
    a kernel that adds up to nothing answers with both signs, and 0 is drawn in the middle.
    """
    total, size = float(kernel.sum()), float(np.abs(kernel).sum())
    if abs(total) <= 1e-9 * size:
        most = float(np.abs(values).max()) or 1.0
        return -most, most
    if x.min() >= 0 and total > 0:
        return 0.0, float(x.max()) * total or 1.0
    low, high = float(values.min()), float(values.max())
    return low, high if high > low else low + 1


def sliding_fallback(
    g: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    place: int,
    peak: bool,
) -> str:
    """The whole forward pass and the sum of output cell number ``place``, as HTML with an SVG."""
    how = {name: getattr(g, name) for name in ("stride", "padding", "dilation", "groups")}
    y = conv2d(x, weight, bias, **how, padding_mode=g.padding_mode)
    at = tuple(map(int, np.unravel_index(place, g.output_shape)))
    words = f"{g.describe()}: the output y has {g.OH}×{g.OW} cells."
    name, value = subscript("y", at), number(y[at])
    alt = f"{words} The cell {name} is {value}; its window and its kernel are outlined."
    if as_pictures(g):
        svg = _pictures(g, x, weight, y, at, alt, peak)
    else:
        svg = _grids(g, x, weight, y, at, alt)
    wide, narrow = live_height(g, narrow=False), live_height(g, narrow=True)
    return figure(
        f"{svg}<figcaption>{escape(words + _peaks(y, peak))}</figcaption>"
        f'<p class="cg-formula">{_sum(g, x, weight, bias, at, value)}</p>',
        (wide, narrow),
    )


def _peaks(y: np.ndarray, peak: bool) -> str:
    if not peak:
        return ""
    found = []
    for n, o in np.ndindex(y.shape[:2]):
        p, q = map(int, np.unravel_index(y[n, o].argmax(), y.shape[2:]))
        found.append(f"{subscript('y', (n, o, p, q))} = {number(y[n, o].max())}")
    return f" The largest of each map: {', '.join(found)}."


# ---- the sum ---------------------------------------------------------------------------------


def _sum(
    g: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    at: tuple[int, ...],
    value: str,
) -> str:
    n, o, p, q = at
    letters = [tinted("ink", "b", (o,))]
    numbers = [signed(bias[o])]
    terms = list(np.ndindex(g.CG, g.KH, g.KW))
    shown = terms if len(terms) <= MOST_TERMS else terms[:FIRST_TERMS]
    for c, i, j in shown:
        cell = g.cell(*(int(k) for k in g.source(p, q, i, j)))
        w = tinted("kernel", "w", (o, c, i, j))
        if cell is None:
            read, seen = tinted("padding", "padding", ()), 0.0
        else:
            index = (n, g.channel(o, c), *cell)
            read, seen = tinted("x", "x", index), float(x[index])
        letters.append(f"{w}·{read}")
        numbers.append(f"{signed(weight[o, c, i, j])}·{signed(seen)}")
    if len(terms) > len(shown):
        letters.append(f"… ({len(terms)} products)")
        numbers.append("…")
    name = escape(subscript("y", at))
    return f"<b>{name}</b> = {' + '.join(letters)}<br>= {' + '.join(numbers)} = <b>{value}</b>"


# ---- grids -----------------------------------------------------------------------------------


def _grids(
    g: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    y: np.ndarray,
    at: tuple[int, ...],
    alt: str,
) -> str:
    n, o, p, q = at
    window, kernel = set(), set()
    for c, i, j in np.ndindex(g.CG, g.KH, g.KW):
        h, v = g.source(p, q, i, j)
        window.add((n, g.channel(o, c), int(h), int(v)))
        kernel.add((o, c, i, j))
    blocks = [
        Block("x", "x", x, "n c", window, g),
        Block("kernel", "w, kernel", weight, "o c", kernel),
        Block("output", "y, output", y, "n o", {at}),
    ]
    return drawing(blocks, alt)


# ---- pictures --------------------------------------------------------------------------------


def _pictures(
    g: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    y: np.ndarray,
    at: tuple[int, ...],
    alt: str,
    peak: bool,
) -> str:
    """The slice of x and the map of y that the cell belongs to, with the window outlined."""
    n, o, p, q = at
    image = x[n, g.channel(o, 0)]
    output = y[n, o]
    scale = grey_scale(output, x, weight[o])
    own = (min(float(x.min()), 0.0), float(x.max()) or 1.0)
    h, v = (int(k) for k in g.source(p, q, 0, 0))
    rows, cols = g.span
    left = g.W * PIXEL + GAP
    peaks = [np.unravel_index(output.argmax(), output.shape)] if peak else []
    parts = [
        _picture("x", 0, image, own, (h, v, rows, cols)),
        _picture("y", left, output, scale, (p, q, 1, 1)),
        *(_box("output", left, r - 1, c - 1, 3, 3, "4 3") for r, c in peaks),
    ]
    width, height = left + g.OW * PIXEL, LINE + max(g.H, g.OH) * PIXEL
    return (
        f'<svg role="img" aria-label="{escape(alt, quote=True)}" width="{width}" '
        f'height="{height + 4}" viewBox="-4 0 {width + 8} {height + 4}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _picture(
    name: str,
    left: int,
    values: np.ndarray,
    scale: tuple[float, float],
    box: tuple[int, int, int, int],
) -> str:
    rows, cols = values.shape
    key = "x" if name == "x" else "output"
    return (
        f'<g class="{key}"><text class="title" x="{left}" y="14">{name}</text></g>'
        f'<image x="{left}" y="{LINE}" width="{cols * PIXEL}" height="{rows * PIXEL}" '
        f'style="image-rendering:pixelated" href="{_png(values, *scale)}"/>'
        f"{_box(key, left, *box)}"
    )


def _box(
    key: str, left: int, row: int, col: int, rows: int, cols: int, dashes: str = "none"
) -> str:
    at = (
        f'x="{left + col * PIXEL}" y="{LINE + row * PIXEL}" '
        f'width="{cols * PIXEL}" height="{rows * PIXEL}" fill="none"'
    )
    return (
        f'<g class="{key}"><rect {at} style="stroke:#fff;stroke-width:5"/>'
        f'<rect {at} style="stroke:var(--hue);stroke-width:3;stroke-dasharray:{dashes}"/></g>'
    )


def _png(values: np.ndarray, low: float, high: float) -> str:
    """A grey picture as a data address; PNG is a header and rows of bytes, compressed."""
    grey = np.round(255 * np.clip((values - low) / (high - low), 0, 1)).astype(np.uint8)
    rows, cols = grey.shape
    lines = np.pad(grey, ((0, 0), (1, 0)))  # each line begins with its filter, 0

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", cols, rows, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


# ---- the room for the live widget ------------------------------------------------------------


def live_height(g: ConvGeometry, *, narrow: bool) -> int:
    """About how tall the live widget is, so that the page keeps still when it mounts.

    The numbers are those of sliding_window.css; a browser test holds the two together.
    """
    padded = 23 * any(map(any, g.padding))
    height, width = g.padded_size
    room, gap = (340, 9) if narrow else (736, 14)
    signs = [(14, 0)]  # narrower than what stands beside them, and never taller
    bias = [*signs, (54, 62), *signs]

    def panel(
        rows: int, cols: int, side: float, slices: int, note: int = 0, title: int = 62
    ) -> tuple[float, float]:
        several = slices > 1  # then there is a list of them
        tall = 26 + 37 * several + rows * side + 3 + note
        return max(cols * side + 3, 165 if several else title), tall

    x, w, y = g.N * g.C, g.O * g.CG, g.N * g.O
    if as_pictures(g):
        largest = max(height, width), max(g.OH, g.OW)
        sides = [min(14, 264 // each) or 264 / each for each in largest]
        lines = 23
        if narrow:  # side by side, each on half the room
            sides = [min(side, 160 / cols) for side, cols in zip(sides, (width, g.OW), strict=True)]
            lines, padded = 33, 33 * (padded > 0)  # one line or two
        pictures = max(
            panel(height, width, sides[0], x, padded)[1],
            panel(g.OH, g.OW, sides[1], y, lines)[1],
        )
        sum_at_once: list[tuple[float, float]] = [
            *(panel(g.KH, g.KW, 30, 1, title=120), *signs, panel(g.KH, g.KW, 30, w)),
            *bias[:-1],
            (room, 30) if narrow else (133, 56),  # the sign and what it is equal to
        ]
        stage = pictures + 17 + _flow(sum_at_once, room, gap)
    else:
        side = 32 if narrow else 36
        parts = [panel(height, width, side, x, padded), *signs, panel(g.KH, g.KW, side, w), *bias]
        stage = _flow([*parts, panel(g.OH, g.OW, side, y)], room, gap)
    choices = (116 if narrow else 64) if g.CG == 1 else 32
    return round(choices + 33 + stage + (137 + 168 + 34 if narrow else 89 + 106) + 34)


def _flow(parts: list[tuple[float, float]], room: int, gap: int) -> float:
    """The height of boxes (width, height) that are set in lines, like words."""
    total = line = left = 0.0
    for width, height in parts:
        if left and left + width > room:
            total, line, left = total + line + gap, 0.0, 0.0
        left += width + gap
        line = max(line, height)
    return total + line
