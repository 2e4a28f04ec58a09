"""What a widget says without JavaScript: grids as inline SVG, and the numbers worked out.

Nothing but text is made here (no matplotlib), coloured by the book's CSS variables with the
light colours behind them, so the piece stands in any page and on paper.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Literal

import numpy as np

from ..api import conv2d_backward
from ..geometry import ConvGeometry
from ..ledger import Contribution, contributions

__all__ = [
    "Block",
    "drawing",
    "figure",
    "number",
    "player_fallback",
    "signed",
    "style",
    "subscript",
    "tinted",
]

PALETTE: dict[str, dict[str, str]] = json.loads(
    resources.files("convgrad").joinpath("palette.json").read_text("utf-8")
)
WIDTH = 680  # of the drawing, in its own units: about the width of a page's text
ROOMY, TIGHT = 30, 25  # size of a cell with few slices, and with many
GAP, LABEL, TITLE = 16, 16, 22  # between slices; for the name of each, and of the array
MOST_TERMS = 40  # of a formula that is written out

NAMES = {"weight": "grad_weight", "input": "grad_input", "bias": "grad_bias"}
LETTERS = {"weight": "o c", "input": "n c", "bias": ""}
Index = tuple[int | None, ...]  # the products of the bias have no c, i, j, h, v
ORDER_WORDS = {
    "tap": "tap by tap",
    "position": "position by position",
    "kernel": "kernel by kernel",
}


def number(value: float) -> str:
    """A number as the widgets write it: no ``.0``, six digits, a true minus sign.

    >>> number(-3.0), number(0.125), number(-0.0)
    ('−3', '0.125', '0')
    """
    text = re.sub(r"e([+-])0*", r"e\1", f"{value + 0.0:.6g}")  # 1e+06 → 1e+6
    return text.replace("e+", "e").replace("-", "−")


def player_fallback(
    geometry: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    grad_output: np.ndarray,
    *,
    target: Literal["weight", "input", "bias"],
    order: Literal["tap", "position", "kernel"],
    step: int,
    include_padding: bool,
) -> str:
    """The whole gradient and the formula of one of its cells, as HTML with an inline SVG.

    The cell is the one that product number ``step`` falls into; at step 0 the first product's.
    """
    operands = {"x": x, "weight": weight, "grad_output": grad_output}
    played = list(contributions(geometry, target, order=order, include_padding=include_padding))
    result = _gradient(geometry, target, operands)
    chosen = _chosen(played, step) or (0,) * result.ndim
    terms = [each for each in played if each.target == chosen]
    lit = _lit(terms, target)
    four = _four_axes(result)
    blocks = [
        Block("x", "x", x, "n c", lit["x"], geometry),
        Block("kernel", "w, kernel", weight, "o c", lit["weight"]),
        Block("grad_output", "g, upstream gradient", grad_output, "n o", lit["grad_output"]),
        Block("result", NAMES[target], four, LETTERS[target], {chosen}),
    ]
    words = (
        f"{geometry.describe()}. The gradient {NAMES[target]}, filled {ORDER_WORDS[order]} by "
        f"{len(played)} products."
    )
    name = subscript(NAMES[target], chosen)
    value = number(result[chosen])
    alt = (
        f"Grids of numbers for {words} The cell {name} is {value}, the sum of {len(terms)} "
        "products, whose factors are outlined."
    )
    formula = _formula(name, terms, target, operands, value)
    wide, narrow = (
        _live_height(geometry, target, order, narrow=narrow) for narrow in (False, True)
    )
    return figure(
        f"{drawing(blocks, alt)}<figcaption>{escape(words)}</figcaption>"
        f'<p class="cg-formula">{formula}</p>',
        (wide, narrow),
    )


# ---- the formula ---------------------------------------------------------------------------


def _chosen(played: list[Contribution], step: int) -> tuple[int, ...] | None:
    """The gradient cell of product number ``step``, or of the next one that is not lost."""
    landed = (each.target for each in played[max(step - 1, 0) :] + played if each.target)
    return next(landed, None)


def _gradient(geometry: ConvGeometry, target: str, operands: dict[str, np.ndarray]) -> np.ndarray:
    gradients = conv2d_backward(
        operands["grad_output"],
        operands["x"],
        operands["weight"],
        stride=geometry.stride,
        padding=geometry.padding,
        dilation=geometry.dilation,
        groups=geometry.groups,
        padding_mode=geometry.padding_mode,
        output_mask=[target == each for each in ("input", "weight", "bias")],
    )
    return next(each for each in gradients if each is not None)


def _factors(
    each: Contribution, target: str, operands: dict[str, np.ndarray]
) -> list[tuple[str, float]]:
    """The factors of a product: each one's name with indices, and its value."""
    g_index = (each.n, each.o, each.p, each.q)
    g = (tinted("grad_output", "g", g_index), float(operands["grad_output"][g_index]))
    if target == "bias":
        return [g]
    if target == "input":
        w_index = (each.o, each.c, each.i, each.j)
        return [(tinted("kernel", "w", w_index), float(operands["weight"][w_index])), g]
    if each.cell is None:
        return [(tinted("padding", "padding", ()), 0.0), g]
    x_index = (each.n, each.channel, *each.cell)
    return [(tinted("x", "x", x_index), float(operands["x"][x_index])), g]


def _formula(
    name: str,
    terms: list[Contribution],
    target: str,
    operands: dict[str, np.ndarray],
    value: str,
) -> str:
    pairs = [_factors(each, target, operands) for each in terms[:MOST_TERMS]]
    more = [f"… ({len(terms)} products)"] if len(terms) > MOST_TERMS else []
    letters = ["·".join(text for text, _ in pair) for pair in pairs] + more
    numbers = ["·".join(signed(v) for _, v in pair) for pair in pairs] + more
    return (
        f'<b class="result">{escape(name)}</b> = {" + ".join(letters) or "0"}<br>'
        f'= {" + ".join(numbers) or "0"} = <b class="result">{value}</b>'
    )


def signed(value: float) -> str:
    """A factor inside a sum: negative numbers in brackets."""
    return f"({number(value)})" if value < 0 else number(value)


def subscript(name: str, index: Index) -> str:
    return f"{name}[{','.join(map(str, index))}]"


def tinted(key: str, name: str, index: Index) -> str:
    return f'<i class="{key}">{subscript(name, index) if index else name}</i>'


def _color(key: str) -> str:
    return f"var(--cg-{key.replace('_', '-')},{PALETTE[key]['light']})"


# ---- the room for the live widget ----------------------------------------------------------


def _live_height(geometry: ConvGeometry, target: str, order: str, *, narrow: bool) -> int:
    """About how tall the live player is, in pixels, so that the page keeps still when it mounts.

    The numbers are those of contribution_player.css; a browser test holds the two together.
    """
    g = geometry
    sliced = max(g.N, g.C, g.O) > 1
    padded = any(np.ravel(g.padding))
    cell = 32 if narrow else 36

    def panel(rows: int, slices: tuple[int, int], *, above: int = 0, beside: bool = False) -> int:
        """Title, name of the slice, grid, the small pictures of all slices, note."""
        several = max(slices) > 1
        pictures = 16 + 17 * (g.groups > 1) + min(slices) * (max(24, 5 * rows + 6) + 1)
        grid = cell * (rows + above) + 3
        body = max(grid, pictures * several) if beside else grid + (10 + pictures) * several
        return 26 + 23 * several + body + 23 * (above > 0)

    border = sum(g.padding[0])
    x = panel(g.H, (g.N, g.C), above=border)
    weight = panel(g.KH, (g.O, g.CG))
    upstream = panel(g.OH, (g.N, g.O))
    alone = target == "input" and order == "kernel" and g.O > 1
    result = {
        "weight": panel(g.KH, (g.O, g.CG), beside=not narrow),
        "input": panel(g.H, (g.N, g.C), above=border, beside=not (narrow or alone)),
        "bias": 28 + cell,
    }[target]
    used = {"weight": [x, upstream], "input": [weight, upstream], "bias": [upstream]}[target]
    if narrow:
        width = 140 + cell * (g.KW if target == "input" else g.W + sum(g.padding[1]))
        if len(used) == 2 and not sliced and max(width, 200) <= 310:  # side by side
            operands = max(used) + 31
        else:
            operands = sum(used) + 43 * (len(used) - 1) + 31 * (3 - len(used))
        share = (panel(g.H, (1, g.O), above=border) + 43) * alone
        return 406 + operands + share + result + (21 + 32 * (g.padding_mode == "zeros")) * padded
    idle = 26 + 23 * sliced + 36 * (g.KH if target == "weight" else g.H + border) + 3 + 23
    return 279 + max(*used, idle) + result + 23 * padded


# ---- the drawing ---------------------------------------------------------------------------


def _lit(terms: list[Contribution], target: str) -> dict[str, set[Index]]:
    """The operand cells that meet in the chosen gradient cell; x in raw coordinates."""
    lit: dict[str, set[Index]] = {"x": set(), "weight": set(), "grad_output": set()}
    for each in terms:
        lit["grad_output"].add((each.n, each.o, each.p, each.q))
        if target == "weight":
            lit["x"].add((each.n, each.channel, each.h, each.v))
        if target == "input":
            lit["weight"].add((each.o, each.c, each.i, each.j))
    return lit


def _four_axes(array: np.ndarray) -> np.ndarray:
    return array.reshape(1, 1, 1, -1) if array.ndim == 1 else array


@dataclass
class Block:
    """All slices of one array, drawn as small grids: first axis down, second axis across."""

    key: str
    title: str
    array: np.ndarray
    letters: str  # of the first two axes, such as "n c"; "" where there is one slice only
    lit: AbstractSet[Index]
    geometry: ConvGeometry | None = None  # given, its padding is drawn around every slice

    @property
    def border(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return self.geometry.padding if self.geometry else ((0, 0), (0, 0))

    @property
    def cells(self) -> tuple[int, int]:
        """Rows and columns of one slice with its border."""
        (top, bottom), (left, right) = self.border
        rows, cols = self.array.shape[2:]
        return rows + top + bottom, cols + left + right

    @property
    def cell(self) -> int:
        slices = self.array.shape[0] * self.array.shape[1]
        return ROOMY if slices <= 2 and self.cells[1] <= 9 else TIGHT

    @property
    def pitch(self) -> tuple[int, int]:
        """Width and height that one slice takes with its name."""
        rows, cols = self.cells
        return max(cols * self.cell, 66) + GAP, rows * self.cell + self.label + GAP // 2

    @property
    def label(self) -> int:
        """Height of the line that names a slice, where there are several."""
        return LABEL if self.array.shape[0] * self.array.shape[1] > 1 else 0

    @property
    def across(self) -> int:
        """Slices in one row of the drawing: an image's channels, folded where they are many."""
        return max(1, min(self.array.shape[1], WIDTH // self.pitch[0]))

    @property
    def size(self) -> tuple[int, int]:
        width, height = self.pitch
        lines = self.array.shape[0] * -(-self.array.shape[1] // self.across)
        return max(self.across * width, 8 * len(self.title) + GAP), lines * height + TITLE

    def draw(self, left: int, top: int) -> Iterator[str]:
        tight = " tight" if self.cell == TIGHT else ""
        yield f'<g class="{self.key}{tight}"><text class="title" x="{left}" y="{top + 13}">'
        yield f"{escape(self.title)}</text>"
        width, height = self.pitch
        lines = -(-self.array.shape[1] // self.across)
        for a, b in np.ndindex(self.array.shape[:2]):
            at_x = left + (b % self.across) * width
            at_y = top + TITLE + (a * lines + b // self.across) * height
            if self.label:
                first, second = self.letters.split()
                yield f'<text class="name" x="{at_x}" y="{at_y + 10}">'
                yield f"{first} = {a}, {second} = {b}</text>"
            yield from self._slice(a, b, at_x, at_y + self.label)
        yield "</g>"

    def _slice(self, a: int, b: int, left: int, top: int) -> Iterator[str]:
        """Fills first, the lines of the grid over them, then one text for each row."""
        rows, cols = self.cells
        side = self.cell
        if any(map(any, self.border)):
            # the hatch over everything, then the image over the hatch
            height, width = self.array.shape[2:]
            (above, _), (before, _) = self.border
            yield f'<path class="hatch" d="{_hatch(left, top, cols * side, rows * side)}"/>'
            yield (
                f'<rect class="image" x="{left + before * side}" y="{top + above * side}" '
                f'width="{width * side}" height="{height * side}"/>'
            )
        texts = []
        for row in range(rows):
            spans = []
            for col in range(cols):
                h, v = row - self.border[0][0], col - self.border[1][0]
                if ((a, b, h, v) if self.letters else (v,)) in self.lit:
                    x, y = left + col * side, top + row * side
                    yield f'<rect class="lit" x="{x}" y="{y}" width="{side}" height="{side}"/>'
                value = number(self._value(a, b, h, v))
                spans.append(f'<tspan x="{left + (col + 0.5) * side:g}">{value}</tspan>')
            texts.append(f'<text y="{top + (row + 0.5) * side + 4:g}">{"".join(spans)}</text>')
        across = "".join(f"M{left} {top + k * side}h{cols * side}" for k in range(rows + 1))
        down = "".join(f"M{left + k * side} {top}v{rows * side}" for k in range(cols + 1))
        yield f'<path d="{across}{down}"/>'
        yield from texts

    def _value(self, a: int, b: int, h: int, v: int) -> float:
        """What stands at (h, v), which may lie on the padding."""
        rows, cols = self.array.shape[2:]
        if 0 <= h < rows and 0 <= v < cols:
            return float(self.array[a, b, h, v])
        cell = self.geometry.cell(h, v) if self.geometry else None
        return float(self.array[a, b, *cell]) if cell else 0.0


def _hatch(left: int, top: int, width: int, height: int) -> str:
    """Slanted lines in a rectangle.

    Drawn, and not an SVG pattern: patterns are named by ids, which would repeat where two widgets
    share a page.
    """
    lines = []
    for along in range(6, width + height, 6):
        x, end = max(0, along - height), min(along, width)
        lines.append(f"M{left + x} {top + along - x}l{end - x} {x - end}")
    return "".join(lines)


def drawing(blocks: list[Block], alt: str) -> str:
    """The blocks one after another, in lines like words."""
    parts: list[str] = []
    left = top = line = widest = 0
    for block in blocks:
        width, height = block.size
        if left and left + width > WIDTH:
            left, top, line = 0, top + line + GAP, 0
        parts.extend(block.draw(left + 1, top))
        left += width + GAP
        line = max(line, height)
        widest = max(widest, left)
    height = top + line + 4
    return (
        f'<svg role="img" aria-label="{escape(alt, quote=True)}" viewBox="0 0 {widest} {height}" '
        f'width="{widest}" height="{height}" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(parts)}</svg>"
    )


def figure(inside: str, room: tuple[int, int]) -> str:
    """The frame around a drawing and its words, which keeps room for the live widget.

    room : its height in pixels, on a wide screen and on a narrow one.

    What is wider or taller than the frame is moved by hand, so the keyboard has to get there too.
    """
    wide, narrow = room
    return (
        f'<figure class="cg-fallback" tabindex="0" style="--wide:{wide}px;--narrow:{narrow}px">'
        f"{style()}{inside}</figure>"
    )


def style() -> str:
    """The rules of the drawing; the colours are the page's variables, or the light ones."""
    hues = "".join(
        f".cg-fallback .{key}{{--hue:{_color(key)};--soft:{_color(f'{key}_soft')}}}"
        for key in ("x", "kernel", "grad_output", "result")
    )
    hues += f".cg-fallback .output{{--hue:{_color('ink')};--soft:{_color('panel')}}}"
    return (
        "<style>.cg-fallback svg{max-width:100%;height:auto;font:13px system-ui,sans-serif}"
        f"{hues}"
        f".cg-fallback svg text{{fill:{_color('ink')};text-anchor:middle}}"
        ".cg-fallback svg .tight text{font-size:11px}"
        ".cg-fallback svg .title{font-size:13px;fill:var(--hue);font-weight:600;text-anchor:start}"
        f".cg-fallback svg .name{{fill:{_color('muted')};font-size:11px;text-anchor:start}}"
        f".cg-fallback svg path{{stroke:{_color('rule')};fill:none}}"
        f".cg-fallback svg .hatch{{stroke:{_color('padding_soft')};stroke-width:2.5}}"
        f".cg-fallback svg .image{{fill:{_color('paper')}}}"
        ".cg-fallback svg .lit{fill:var(--soft);stroke:var(--hue);stroke-width:3}"
        ".cg-fallback b,.cg-fallback i{font-style:normal;color:var(--hue)}"
        f".cg-fallback .padding{{--hue:{_color('padding')}}}"
        f".cg-fallback .cg-formula{{margin:.6rem 0 0;padding:.5rem .8rem;overflow-wrap:anywhere;"
        f"border-left:3px solid {_color('result')}}}"
        # the live widget comes: keep its room; where none comes, keep none
        "@media screen and (scripting:enabled){figure.cg-fallback"
        "{min-height:var(--wide);max-height:var(--wide);overflow-y:auto}"
        # nobody came after all: all of it
        ".cg-widget:has(>.cg-note) figure.cg-fallback{max-height:none}}"
        "@media screen and (scripting:enabled) and (max-width:650px)"
        "{figure.cg-fallback{min-height:var(--narrow);max-height:var(--narrow)}}"
        # on a telephone numbers that can be read, in a drawing that is moved by hand
        "@media screen and (max-width:650px)"
        "{figure.cg-fallback{overflow-x:auto}.cg-fallback svg{max-width:none}}</style>"
    )
