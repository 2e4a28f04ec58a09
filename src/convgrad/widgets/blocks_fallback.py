"""GroupBlocks without JavaScript: the blocks drawn, the calculation as code, one sum."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from ..geometry import ConvGeometry, short
from ..grouped import block_diagonal
from .fallback import Block, drawing, figure, number, signed, subscript

__all__ = ["blocks_fallback", "code_lines"]

MOST_ROWS, MOST_COLUMNS = 30, 26  # of a drawing that can still be read


def blocks_fallback(
    geometry: ConvGeometry, shares: np.ndarray, per_image: bool, at_end: bool = False
) -> str:
    """The block-diagonal gradient and the sum of one of its numbers, as HTML with an SVG.

    shares : (N, O, C/G, KH, KW), the gradient of each image.
    at_end : whether the live widget begins with its last step, and so needs more room.
    """
    g = geometry
    whole = shares.sum(axis=0)  # o c i j
    dense = block_diagonal(whole, g).transpose(0, 2, 1, 3)  # o i c j
    table = dense.reshape(g.O * g.KH, g.C * g.KW)  # (o i) (c j)
    part = table[:MOST_ROWS, :MOST_COLUMNS]
    some = f", the first {part.shape[0]}×{part.shape[1]} numbers" if part.size < table.size else ""
    title = f"grad_weight without groups: down o, i; across c, j{some}"
    block = Block("result", title, part[None, None], "n c", {(0, 0, 0, 0)})
    words = (
        f"{g.describe()}. The weight gradient of all groups from one convolution: "
        f"{g.O * g.CG} of {g.O * g.C} blocks exist, the others are 0."
    )
    code = "\n".join(code_lines(g, per_image))
    terms = " + ".join(signed(float(each)) for each in shares[:, 0, 0, 0, 0])
    chosen = subscript("grad_weight", (0, 0, 0, 0))
    formula = (
        f'<b class="result">{chosen}</b> = {terms} = '
        f'<b class="result">{number(float(whole[0, 0, 0, 0]))}</b>, the shares of {g.N} '
        f"image{'s' * (g.N != 1)}"
    )
    wide, narrow = (live_height(g, narrow=narrow, at_end=at_end) for narrow in (False, True))
    return figure(
        f"{drawing([block], f'Grids of numbers for {words}')}"
        f"<figcaption>{escape(words)}</figcaption>"
        f'<pre style="font-size:13px;white-space:pre-wrap">{escape(code)}</pre>'
        f'<p class="cg-formula">{formula}</p>',
        (wide, narrow),
    )


def code_lines(geometry: ConvGeometry, per_image: bool) -> list[str]:
    """The calculation in PyTorch; the same as ``codeOf`` in blocks_words.js."""
    g = geometry
    m = g.N * g.groups
    (top, bottom), (left, right) = g.padding
    plain = g.padding_mode == "zeros" and (top, left) == (bottom, right)
    H, W = (g.H, g.W) if plain else g.padded_size
    mode = "constant" if g.padding_mode == "zeros" else g.padding_mode
    padding = short((top, left)) if plain else 0
    options = f"stride={short(g.dilation)}, padding={padding}, dilation={short(g.stride)}"
    shares = f"t.reshape({g.CG}, {g.N}, {g.O}, {g.KH}, {g.KW})"
    lines = [] if plain else [f'x = F.pad(x, ({left}, {right}, {top}, {bottom}), mode="{mode}")']
    lines += [
        f"xi = x.reshape({m}, {g.CG}, {H}, {W}).transpose(0, 1)",
        f"wi = g.reshape({g.N * g.O}, 1, {g.OH}, {g.OW})",
        f"t = F.conv2d(xi, wi, {options}, groups={m})",
    ]
    if max(g.surplus):
        lines.append(f"t = t[:, :, :{g.KH}, :{g.KW}]")
    if per_image:
        return [*lines, f"grad_weights = {shares}.permute(1, 2, 0, 3, 4)"]
    return [*lines, f"grad_weight = {shares}.sum(1).transpose(0, 1)"]


def live_height(geometry: ConvGeometry, *, narrow: bool, at_end: bool) -> int:
    """About how tall the live widget is when it begins, so that the page keeps still.

    The numbers are those of group_blocks.css; a browser test holds the two together.
    """
    g = geometry
    tile, title, cell = (32, 46, 26) if narrow else (38, 26, 28)
    width = 327 if narrow else 688
    room = width // (tile + 1)  # tiles in a line
    # of each table its rows, its columns, and how many of these a line must not part;
    # of each grid of numbers below them its rows and columns
    if at_end:
        grids = [(g.KH, g.KW)] * (g.N + 1)
        tables = [(g.CG, g.N * g.groups, g.groups), (1, g.N * g.O, g.O), (g.O, g.C, g.C)]
    else:
        grids = [(g.H, g.W)]
        tables = [(g.N, g.C, g.C), (g.N, g.O, g.O)]
    height = 34 + 14 * (len(tables) - 1)
    for rows, columns, lap in tables:
        together = columns if columns <= room else max(1, room // lap) * lap
        lines = math.ceil(columns / together)
        height += title + lines * rows * tile + 8 * (lines - 1)
    lines = math.ceil(sum(columns * cell + 60 for _, columns in grids) / width)
    bench = max(216, lines * (grids[0][0] * cell + 46) + 12)
    code = 19 + 19.5 * len(code_lines(g, False)) * (1.75 if narrow else 1)
    return round((354 if narrow else 238) + height + bench + code)
