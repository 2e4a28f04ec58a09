"""UnfoldMatrix without JavaScript: the matrices of one block drawn, one cell worked out."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from html import escape
from typing import NamedTuple

import numpy as np

from ..geometry import ConvGeometry
from ..im2col import column_numbers, fold, unfold
from ..windows import windows
from .fallback import Block, Index, drawing, figure, number, signed, subscript

__all__ = ["unfold_fallback"]

MOST_TERMS = 40  # of a sum that is written out
MOST_ROWS, MOST_COLUMNS = 30, 26  # of a matrix, in a drawing that can still be read

Cells = AbstractSet[Index]


class _Parts(NamedTuple):
    """One block of a stage: what is drawn, in which colours, and the sentence on one cell."""

    blocks: list[Block]
    words: str
    formula: str


def unfold_fallback(
    geometry: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    grad_output: np.ndarray,
    *,
    stage: str,
) -> str:
    """The matrices of the first image and group and the sum of one cell, as HTML with an SVG."""
    g = geometry
    image = x[:1, : g.CG]
    columns = unfold(x[:1], g)[0, : g.CG * g.KH * g.KW]  # r l
    W = weight[: g.OG].reshape(g.OG, -1)  # o r
    G = grad_output[0, : g.OG].reshape(g.OG, -1)  # o l
    parts = {
        "columns": lambda: _columns(g, image, columns),
        "forward": lambda: _forward(g, image, columns, W),
        "weight": lambda: _weight(g, columns, G),
        "input": lambda: _input(g, W, G),
    }[stage]()
    which = " and ".join(["the first image"] * (g.N > 1) + ["group A"] * (g.groups > 1))
    words = f"{g.describe()}. {parts.words}{f'; drawn for {which}' if which else ''}."
    wide, narrow = (live_height(g, stage, narrow=narrow) for narrow in (False, True))
    return figure(
        f"{drawing(parts.blocks, f'Grids of numbers for {words}')}"
        f"<figcaption>{escape(words)}</figcaption>"
        f'<p class="cg-formula">{parts.formula}</p>',
        (wide, narrow),
    )


# ---- the four stages -----------------------------------------------------------------------


def _columns(g: ConvGeometry, image: np.ndarray, columns: np.ndarray) -> _Parts:
    """The image cell that is copied most often, and all its copies."""
    numbered = np.arange(1.0, g.H * g.W + 1).reshape(1, 1, g.H, g.W)
    of_tap = windows(np.broadcast_to(numbered, (1, g.C, g.H, g.W)), g)[0, 0]  # p q i j
    origin = of_tap.transpose(2, 3, 0, 1).reshape(g.KH * g.KW, -1)  # taps l, 0 on zero padding
    counts = fold(np.ones((1, g.C * g.KH * g.KW, g.OH * g.OW)), g)[0, 0]
    cell = tuple(map(int, np.unravel_index(np.argmax(counts), counts.shape)))
    copies = np.argwhere(origin == numbered[0, 0][cell]).tolist()
    listed = ", ".join(f"[{r},{l}]" for r, l in copies[:MOST_TERMS])
    more = ", …" if len(copies) > MOST_TERMS else ""
    name = subscript("x", (0, 0, *cell))
    of_x = g.N * g.C * g.H * g.W
    size = column_numbers(g)
    lit = {(0, 0, r, l) for r, l in copies}
    return _Parts(
        [_map("x", "x", image, {(0, 0, *cell)}, g), _matrix("x", "columns", columns, lit)],
        f"The columns: every window of x written out as one column. They take {size:,} numbers, "
        f"{size * 4:,} bytes at 4 bytes each, where x has {of_x:,} and {of_x * 4:,} bytes: "
        f"{number(round(size / of_x, 2))} times the image. A view of the windows copies nothing",
        f'<b class="x">{name}</b> = {number(image[(0, 0, *cell)])} is copied {len(copies)} times: '
        f"to columns {listed}{more}",
    )


def _forward(g: ConvGeometry, image: np.ndarray, columns: np.ndarray, W: np.ndarray) -> _Parts:
    y = W @ columns
    row, col = _middle(y)
    name = subscript("y", (0, row, *divmod(col, g.OW)))
    return _Parts(
        [
            _map("x", "x", image, set(), g),
            _matrix("x", "columns", columns, _down(col, columns)),
            _matrix("kernel", "w, a kernel a row", W, _across(row, W)),
            _matrix("output", "y, the output without bias", y, {(0, 0, row, col)}),
        ],
        "The output as a product of matrices, y = w · columns",
        _dot(
            name, W[row], columns[:, col], f"row {row} of w · column {col} of the columns", "output"
        ),
    )


def _weight(g: ConvGeometry, columns: np.ndarray, G: np.ndarray) -> _Parts:
    turned = columns.T
    share = G @ turned
    row, col = _middle(share)
    c, i, j = map(int, np.unravel_index(col, (g.CG, g.KH, g.KW)))
    name = subscript("grad_weight", (row, c, i, j))
    alone = f"the first image’s share of {name}" if g.N > 1 else name
    return _Parts(
        [
            _matrix("x", "columnsᵀ, a window a row", turned, _down(col, turned)),
            _matrix("grad_output", "g, upstream gradient", G, _across(row, G)),
            _matrix("result", "grad_weight, a kernel a row", share, {(0, 0, row, col)}),
        ],
        "The weight gradient as a product of matrices, grad_weight = g · columnsᵀ, summed over "
        "the images",
        _dot(alone, G[row], turned[:, col], f"row {row} of g · column {col} of columnsᵀ"),
    )


def _input(g: ConvGeometry, W: np.ndarray, G: np.ndarray) -> _Parts:
    """The products of one block, folded back; the other groups' channels stay 0."""
    products = W.T @ G  # r l
    padded = np.zeros((1, g.C * g.KH * g.KW, g.OH * g.OW))
    padded[0, : len(products)] = products
    folded = fold(padded, g)[:, : g.CG]
    ones = fold(np.ones_like(padded), g)[:, :1]
    cell = tuple(map(int, np.unravel_index(np.argmax(ones[0, 0]), ones.shape[2:])))
    numbered = np.arange(1.0, g.H * g.W + 1).reshape(1, 1, g.H, g.W)
    of_tap = windows(np.broadcast_to(numbered, (1, g.C, g.H, g.W)), g)[0, 0]  # p q i j
    origin = of_tap.transpose(2, 3, 0, 1).reshape(g.KH * g.KW, -1)
    met = np.argwhere(origin == numbered[0, 0][cell]).tolist()
    terms = " + ".join(signed(float(products[r, l])) for r, l in met[:MOST_TERMS])
    more = " + …" if len(met) > MOST_TERMS else ""
    name = subscript("grad_input", (0, 0, *cell))
    lit = {(0, 0, r, l) for r, l in met}
    return _Parts(
        [
            _matrix("grad_output", "g, upstream gradient", G, set()),
            _matrix("kernel", "wᵀ", W.T, set()),
            _matrix("result", "wᵀ · g, a product for every entry", products, lit),
            _map("result", "grad_input, folded back", folded, {(0, 0, *cell)}, None),
            _map("x", "overlap: products that meet", ones, set(), None),
        ],
        "The input gradient as a product of matrices that is folded back, "
        "grad_input = fold(wᵀ · g)",
        f'<b class="result">{name}</b> = {terms or "0"}{more} = '
        f'<b class="result">{number(float(folded[(0, 0, *cell)]))}</b>, '
        f"the {len(met)} products whose tap read this cell",
    )


# ---- pieces --------------------------------------------------------------------------------


def _middle(matrix: np.ndarray) -> tuple[int, int]:
    """A cell of the first row, away from the corner, that the drawing shows."""
    return 0, min(matrix.shape[1], MOST_COLUMNS) // 2


def _across(row: int, matrix: np.ndarray) -> Cells:
    return {(0, 0, row, k) for k in range(matrix.shape[1])}


def _down(col: int, matrix: np.ndarray) -> Cells:
    return {(0, 0, k, col) for k in range(matrix.shape[0])}


def _dot(name: str, row: np.ndarray, col: np.ndarray, words: str, key: str = "result") -> str:
    """A row times a column in numbers, and its sum."""
    pairs = [f"{signed(float(a))}·{signed(float(b))}" for a, b in zip(row, col, strict=True)]
    if len(pairs) > MOST_TERMS:
        pairs = [*pairs[:MOST_TERMS], f"… ({len(pairs) - MOST_TERMS} more)"]
    value = number(float(row @ col))
    return (
        f'<b class="{key}">{escape(name)}</b> = {words}<br>'
        f'= {" + ".join(pairs)} = <b class="{key}">{value}</b>'
    )


def _matrix(key: str, title: str, matrix: np.ndarray, lit: Cells) -> Block:
    """A matrix as a grid; of a very large one the beginning."""
    rows, cols = matrix.shape
    part = matrix[:MOST_ROWS, :MOST_COLUMNS]
    some = f", the first {part.shape[0]}×{part.shape[1]}" if part.size < matrix.size else ""
    return Block(key, f"{title}, {rows}×{cols}{some}", part[None, None], "n c", lit)


def _map(key: str, title: str, array: np.ndarray, lit: Cells, g: ConvGeometry | None) -> Block:
    return Block(key, title, array, "n c", lit, g)


# ---- the room for the live widget ----------------------------------------------------------


def live_height(geometry: ConvGeometry, stage: str, *, narrow: bool) -> int:
    """About how tall the live widget is, so that the page keeps still when it mounts.

    The numbers are those of unfold_matrix.css; a browser test holds the two together.
    """
    g = geometry
    width = 343 if narrow else 688
    padded = any(np.ravel(g.padding))
    tall, wide = g.padded_size
    r, l, o = min(g.CG * g.KH * g.KW, 16), min(g.OH * g.OW, 14), min(g.OG, 8)
    heads = 48 if g.C > 1 else 34
    across = {"columns": wide + l, "input": o + l + wide}.get(stage, r + l)
    if narrow:
        cell = _clamp(20, (width - heads - 14) / max(l, r, wide), 32)
        small = _clamp(15, (width - 8) / wide, 28)
    else:
        cell = _clamp(20, (width - 2 * heads - (90 if stage == "input" else 50)) / across, 34)
        small = _clamp(15, 0.36 * width / wide, cell)

    def matrix(rows: float, taps: int) -> float:
        """A title, names of columns (two lines where they name channels too), rows, sliders."""
        return 33 + (29 if taps and g.CG > 1 else 14) + rows * cell

    maps = g.CG * (33 + tall * small + 23 * padded) + 10 * (g.CG - 1)
    top = {"columns": (r, 0), "weight": (l, 1), "input": (o, 0)}.get(stage, (r, 0))
    panels = [matrix(*top)]
    if stage != "columns":
        left = {"forward": (o, 1), "weight": (o, 0), "input": (r, 0)}[stage]
        result = {"forward": (o, 0), "weight": (o, 1), "input": (r, 0)}[stage]
        panels += [matrix(*left), matrix(*result)]
    if stage == "input":
        maps += 33 + 18 * (1 + g.CG) * (not narrow and wide * small <= 170) + g.H * small + 10
    if narrow:
        middle = maps + sum(panels) + 16 * len(panels)
    elif stage == "input":
        middle = max(panels[0] + 16 + panels[2], maps)
    else:
        middle = max(panels[0], maps) + sum(16 + each for each in panels[2:])
    terms = {"columns": 0, "forward": r, "weight": l, "input": o}[stage]
    lines = (3 + -(-terms // 7)) if narrow else (2 + -(-terms // 14))
    words = lines * (20.3 if narrow else 23.2) + 14
    several = (54 if narrow else 32) * (g.N > 1 or g.groups > 1)
    caption = {"columns": (1, 3), "forward": (1, 1), "weight": (1, 1), "input": (1, 2)}[stage]
    above = (64 + 45 * narrow) + several + 17 + 20 * caption[narrow]
    memory = {"columns": 178 if narrow else 83}.get(stage, 0)
    below = 41 + 41 * narrow + memory + 42
    return round(above + 34 + middle + words + below)


def _clamp(least: float, value: float, most: float) -> float:
    return max(least, min(value, most))
