"""GradientViews without JavaScript: the grids of one view drawn, one number worked out."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from html import escape
from typing import NamedTuple

import numpy as np

from .. import correlate, grouped, windows
from ..geometry import ConvGeometry, short
from .fallback import Block, Index, drawing, figure, number, signed, subscript, tinted
from .views_room import MOST_GROUPS, MOST_PAGES, live_height

__all__ = ["views_fallback"]

MOST_TERMS = 40  # of a sum that is written out
GAP = np.nan  # where a grid has no number: drawn as a dot

Slices = tuple[int, int, int]  # image, kernel, channel within the kernel's group


class _Parts(NamedTuple):
    """What is drawn, the sentence on all of it, and the one on a single number."""

    blocks: list[Block]
    words: str
    formula: str


def views_fallback(
    geometry: ConvGeometry,
    x: np.ndarray,
    weight: np.ndarray,
    grad_output: np.ndarray,
    *,
    view: str,
    slices: Slices,
) -> str:
    """One view with all its steps done, as HTML with an SVG."""
    g = geometry
    parts = {
        "kernels": lambda: _kernels(g, weight, grad_output, x, slices),
        "scatter-gather": lambda: _scatter(g, weight, grad_output, slices),
        "convolution": lambda: _convolution(g, x, grad_output, slices),
        "batch": lambda: _batch(g, x, grad_output, slices),
    }[view]()
    words = f"{g.describe()}. {parts.words}."
    wide, narrow = (live_height(g, view, narrow=narrow) for narrow in (False, True))
    svg = drawing(parts.blocks, f"Grids of numbers for {words}").replace(">nan<", ">·<")
    return figure(
        f'{svg}<figcaption>{escape(words)}</figcaption><p class="cg-formula">{parts.formula}</p>',
        (wide, narrow),
    )


# ---- the four views ------------------------------------------------------------------------


def _kernels(
    g: ConvGeometry, weight: np.ndarray, grad_output: np.ndarray, x: np.ndarray, slices: Slices
) -> _Parts:
    """The shares of the kernels of one group in one map of grad_input."""
    n, o, c = slices
    first = g.group_of(o) * g.OG
    mates = range(first, first + g.OG)
    channel = g.channel(o, c)
    shares = np.stack([_input_share(g, weight, grad_output, (n, each, c)) for each in mates])
    whole = shares.sum(axis=0)
    cell = _busiest(g)
    own = windows.grad_weight(grad_output, x, g)[o, c]
    lit = {(0, 0, *cell)}
    name = subscript("grad_input", (n, channel))
    drawn = list(zip(mates, shares, strict=True))[:MOST_PAGES]
    some = f", the first {len(drawn)} of {g.OG} drawn" if len(drawn) < g.OG else ""
    terms = _sum([signed(float(share[cell])) for share in shares])
    value = number(float(whole[cell]))
    return _Parts(
        [
            _block("kernel", subscript("w", (o, c)), weight[o, c]),
            _block("grad_output", subscript("g", (n, o)), grad_output[n, o]),
            _block("result", f"{subscript('grad_weight', (o, c))}, its own gradient", own),
            *(_block("result", f"share of kernel {k}", share, lit) for k, share in drawn),
            _block("result", f"{name}, the whole", whole, lit),
        ],
        f"Kernel by kernel: kernel {o} has a gradient of its own, and a share of {name}; the "
        f"shares of {_count(g.OG, 'kernel')} add up to the whole{some}",
        f"{_result(subscript('grad_input', (n, channel, *cell)))} = {terms} = {_result(value)}, "
        "one term a kernel",
    )


def _scatter(
    g: ConvGeometry, weight: np.ndarray, grad_output: np.ndarray, slices: Slices
) -> _Parts:
    """The cell that most products reach, and the taps that it meets."""
    n, o, c = slices
    channel = g.channel(o, c)
    share = _input_share(g, weight, grad_output, slices)
    cell = _busiest(g)
    met = list(_readers(g, cell))
    turned = np.full((g.KH, g.KW), GAP)
    for _, _, i, j, place in met:
        if place == cell:
            turned[g.KH - 1 - i, g.KW - 1 - j] = weight[o, c, i, j]
    terms = [
        f"{signed(float(weight[o, c, i, j]))}·{signed(float(grad_output[n, o, p, q]))}"
        for p, q, i, j, _ in met
    ]
    name = subscript("grad_input", (n, channel, *cell))
    whose = f"kernel {o}’s share of " if g.OG > 1 else ""
    reached = {(0, 0, p, q) for p, q, *_ in met}
    return _Parts(
        [
            _block("grad_output", subscript("g", (n, o)), grad_output[n, o], reached),
            _block("kernel", subscript("w", (o, c)), weight[o, c]),
            _block("kernel", "the taps that are met", turned),
            _block("result", subscript("grad_input", (n, channel)), share, {(0, 0, *cell)}),
        ],
        f"Scatter and gather: every g throws g·w into its window of {whose}"
        f"{subscript('grad_input', (n, channel))}; every cell collects its own, and the taps that "
        "it meets, as g lies, are the kernel turned by 180°; a dot is a tap that is not met",
        f"{whose}{_result(name)} = {_sum(terms)} = {_result(number(float(share[cell])))}",
    )


def _convolution(g: ConvGeometry, x: np.ndarray, grad_output: np.ndarray, slices: Slices) -> _Parts:
    """x searched with g, before the crop, and one tap of it."""
    n, o, c = slices
    channel = g.channel(o, c)
    one, maps = _alone(g, x[n, channel], grad_output[n, o])
    search = correlate.swapped(one)
    taps = windows.forward(maps[0], maps[1], search)[0, 0]  # i j, and the surplus
    spread = np.full(search.span, GAP)
    spread[:: search.dilation[0], :: search.dilation[1]] = grad_output[n, o]
    i, j = (g.KH - 1) // 2, (g.KW - 1) // 2
    lit = {(0, 0, *map(int, g.source(p, q, i, j))) for p, q in np.ndindex(g.OH, g.OW)}
    under = windows.windows(maps[0], one)[0, 0, :, :, i, j]  # p q
    pairs = zip(under.ravel(), grad_output[n, o].ravel(), strict=True)
    terms = [f"{signed(float(a))}·{signed(float(b))}" for a, b in pairs]
    whose = f"image {n}’s share of " if g.N > 1 else ""
    kept = f"grad_weight is its first {g.KH}×{g.KW}, the rest is cropped"
    crop = f"; {kept}" if max(g.surplus) else ""
    name = _result(subscript("grad_weight", (o, c, i, j)))
    return _Parts(
        [
            _block("x", subscript("x", (n, channel)), x[n, channel], lit, g),
            _block("grad_output", f"{subscript('g', (n, o))}, a stride apart", spread),
            _block("result", "x ⋆ g", taps, {(0, 0, i, j)}),
        ],
        f"As a convolution: x searched with g, whose cells stand {short(g.stride)} apart, the "
        f"stride, and which moves by {short(g.dilation)}, the dilation{crop}",
        f"{whose}{name} = {_sum(terms)} = {_result(number(float(taps[i, j])))}",
    )


def _batch(g: ConvGeometry, x: np.ndarray, grad_output: np.ndarray, slices: Slices) -> _Parts:
    """The pages of each group, and their sum."""
    _, o, c = slices
    shares = grouped.grad_weight_per_image(grad_output, x, g)  # n o c i j
    blocks = []
    for k in range(min(g.groups, MOST_GROUPS)):
        kernel = k * g.OG + o % g.OG
        letter = f"{chr(65 + k)}: " if g.groups > 1 else ""
        for n in range(min(g.N, MOST_PAGES)):
            blocks.append(_block("result", f"{letter}image {n}", shares[n, kernel, c]))
        name = subscript("grad_weight", (kernel, c))
        blocks.append(_block("result", f"{letter}{name}", shares[:, kernel, c].sum(axis=0)))
    drawn = [
        f"{most} of {_count(count, what)} are drawn"
        for count, most, what in ((g.N, MOST_PAGES, "image"), (g.groups, MOST_GROUPS, "group"))
        if count > most
    ]
    tap = (o % g.OG, c, 0, 0)
    terms = [signed(float(each[tap])) for each in shares]
    value = number(float(shares[(slice(None), *tap)].sum()))
    return _Parts(
        blocks,
        "Image by image: the share of each image in "
        f"{'each group’s gradient' if g.groups > 1 else 'the gradient'}, and their sum"
        f"{''.join(f'; {each}' for each in drawn)}",
        f"{_result(subscript('grad_weight', tap))} = {_sum(terms)} = {_result(value)}, "
        "one term an image",
    )


# ---- numbers -------------------------------------------------------------------------------


def _alone(g: ConvGeometry, *maps: np.ndarray) -> tuple[ConvGeometry, list[np.ndarray]]:
    """The convolution of one image, one channel and one kernel, and maps as its arrays."""
    numbers = {**g.as_dict(), "N": 1, "C": 1, "O": 1, "groups": 1}
    return ConvGeometry(**numbers), [each[None, None] for each in maps]


def _input_share(
    g: ConvGeometry, weight: np.ndarray, grad_output: np.ndarray, slices: Slices
) -> np.ndarray:
    """Kernel o's share of one map of the input gradient, (H, W)."""
    n, o, c = slices
    one, (upstream, kernel) = _alone(g, grad_output[n, o], weight[o, c])
    return windows.grad_input(upstream, kernel, one)[0, 0]


def _readers(
    g: ConvGeometry, cell: tuple[int, int]
) -> Iterator[tuple[int, int, int, int, tuple[int, int]]]:
    """Output cell, tap and place of everything that reads an image cell, its copies included."""
    for p, q, i, j in np.ndindex(g.OH, g.OW, g.KH, g.KW):
        h, v = map(int, g.source(p, q, i, j))
        if g.cell(h, v) == cell:
            yield p, q, i, j, (h, v)


def _busiest(g: ConvGeometry) -> tuple[int, int]:
    """The image cell that most products reach, the middle one of several."""
    one, _ = _alone(g)
    ones = np.ones((1, 1, g.OH, g.OW, g.KH, g.KW))
    counts = windows.overlap_add(ones, one)[0, 0].ravel()
    best = np.flatnonzero(counts == counts.max())
    row, col = divmod(int(best[len(best) // 2]), g.W)
    return row, col


# ---- pieces --------------------------------------------------------------------------------


def _block(
    key: str,
    title: str,
    array: np.ndarray,
    lit: AbstractSet[Index] = frozenset(),
    geometry: ConvGeometry | None = None,
) -> Block:
    return Block(key, title, array[None, None], "n c", lit, geometry)


def _sum(terms: list[str]) -> str:
    more = [f"… ({len(terms)} in all)"] if len(terms) > MOST_TERMS else []
    return " + ".join(terms[:MOST_TERMS] + more) or "0"


def _result(text: str) -> str:
    return tinted("result", text, ()).replace("<i", "<b").replace("</i", "</b")


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
