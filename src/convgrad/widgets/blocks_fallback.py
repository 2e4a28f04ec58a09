"""GroupBlocks without JavaScript: the blocks drawn, the calculation as code, one sum."""

from __future__ import annotations

from html import escape

import numpy as np

from ..geometry import ConvGeometry, short
from ..grouped import block_diagonal
from .fallback import Block, drawing, number, signed, style, subscript

__all__ = ["blocks_fallback", "code_lines"]

MOST_ROWS, MOST_COLUMNS = 30, 26  # of a drawing that can still be read


def blocks_fallback(geometry: ConvGeometry, shares: np.ndarray, per_image: bool) -> str:
    """The block-diagonal gradient and the sum of one of its numbers, as HTML with an SVG.

    shares : (N, O, C/G, KH, KW), the gradient of each image.
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
    return (
        f'<figure class="cg-fallback" style="--wide:{live_height(g, narrow=False)}px;'
        f'--narrow:{live_height(g, narrow=True)}px">'
        f"{style()}{drawing([block], f'Grids of numbers for {words}')}"
        f"<figcaption>{escape(words)}</figcaption>"
        f'<pre style="font-size:13px;white-space:pre-wrap">{escape(code)}</pre>'
        f'<p class="cg-formula">{formula}</p></figure>'
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


def live_height(geometry: ConvGeometry, *, narrow: bool) -> int:
    """About how tall the live widget is before its first step, so that the page keeps still.

    The numbers are those of group_blocks.css; a browser test holds the two together.
    """
    g = geometry
    tile, title, cell = (32, 46, 26) if narrow else (38, 26, 28)
    tables = 34 + 14 + 2 * (title + g.N * tile)
    bench = max(216, g.H * cell + 58)
    code = 19 + 19.5 * len(code_lines(g, False)) * (1.75 if narrow else 1)
    return round((354 if narrow else 238) + tables + bench + code)
