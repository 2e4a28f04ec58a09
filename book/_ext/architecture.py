"""Sphinx: the map of the package, made of its own imports and docstrings, so it cannot grow old.

* ``{package-map}`` draws every part in its layer, with a line to each part that it imports.
* ``{package-parts}`` lists the same in words: what each part is, and what it imports.

The layers are those of CONTRIBUTING.md.  A line that another line implies is left out of the
drawing: who imports ``windows`` need not be seen to import ``geometry`` as well.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from exhibits import Written
from sphinx.application import Sphinx

from tools.imports import Layer, graph, layers, sentence

ROW, GAP, NAMES, WIDTH = 15, 27, 104, 300  # units of the drawing
SIZE = 11  # of a name; the drawing is never shown smaller than it is


def reached(part: str, below: dict[str, set[str]]) -> set[str]:
    """All that a part needs, by whatever way."""
    found: set[str] = set()
    waiting = list(below[part])
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += below[each]
    return found


def lines(parts: list[str], below: dict[str, set[str]]) -> list[tuple[str, str]]:
    """From each part to those that it imports, without what these imply."""
    found = []
    for part in parts:
        implied = {far for near in below[part] for far in reached(near, below)}
        found += [(part, each) for each in parts if each in below[part] - implied]
    return found


def rows(stack: list[Layer]) -> tuple[dict[str, int], dict[str, int], int]:
    """How far down each part and each layer's title stands, and where the drawing ends."""
    at, titles, y = {}, {}, 0
    for layer in stack:
        y += GAP
        titles[layer.title] = y - 2
        for part in layer.parts:
            y += ROW
            at[part] = y
    return at, titles, y + 8


def drawing(stack: list[Layer], below: dict[str, set[str]]) -> str:
    """The map as SVG: names in a column, an arc from each to what it imports."""
    at, titles, height = rows(stack)
    parts = list(at)
    arcs = lines(parts, below)
    longest = max(abs(at[a] - at[b]) for a, b in arcs)
    label = html.escape(
        f"{len(parts)} parts in {len(stack)} layers, one below the other: "
        + "; ".join(f"{layer.title}: {', '.join(layer.parts)}" for layer in stack)
        + ". Every arc leads up, from a part to one that it imports; the list below says which."
    )
    out = [
        f'<svg role="img" aria-label="{label}" class="cg-map" viewBox="0 0 {WIDTH} {height}" '
        f'font-size="{SIZE}">'
    ]
    for number, (title, y) in enumerate(titles.items(), start=1):
        out.append(
            f'<text class="cg-map-title" x="0" y="{y}">{number}  {html.escape(title)}</text>'
        )
    for part, other in arcs:
        top, bottom = at[other] - 4, at[part] - 4
        reach = NAMES + 16 + 250 * ((bottom - top) / longest) ** 0.6  # a curve goes 3/4 as far
        out.append(
            f'<path d="M{NAMES} {bottom}C{reach:.0f} {bottom} {reach:.0f} {top} {NAMES} {top}">'
            f"<title>{part} imports {other}</title></path>"
        )
    for part, y in at.items():
        out.append(f'<circle cx="{NAMES - 4}" cy="{y - 4}" r="2"/>')
        out.append(f'<text class="cg-map-part" x="{NAMES - 10}" y="{y}">{part}</text>')
    return "".join([*out, "</svg>"])


class Map(Written):
    def run(self) -> list[nodes.Node]:
        svg = drawing(layers(), graph())
        return [nodes.raw("", f'<div class="cg-map-box">{svg}</div>', format="html")]


class Parts(Written):
    def run(self) -> list[nodes.Node]:
        return [self.box("cg-parts", listing(layers(), graph()))]


def listing(stack: list[Layer], below: dict[str, set[str]]) -> Iterator[str]:
    order = [part for layer in stack for part in layer.parts]
    for number, layer in enumerate(stack, start=1):
        yield f"**{number}  {layer.title}.**"
        yield ""
        for part in layer.parts:
            known = [f"`{each}`" for each in order if each in below[part]]
            ends = f"Imports {', '.join(known)}." if known else "Imports no other part."
            yield f"`{part}`"
            yield f": {sentence(part).replace('``', '`')} *{ends}*"
            yield ""


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("package-map", Map)
    app.add_directive("package-parts", Parts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
