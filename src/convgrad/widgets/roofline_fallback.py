"""Roofline without JavaScript: roof and marks as SVG, the sentence, the figures as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape

from ..geometry import ConvGeometry
from ..roofline import MAPS, Bound, Card, Map, Precision
from .fallback import PALETTE, figure
from .roofline_words import TITLES, rows, sentence, three

__all__ = ["roofline_fallback"]

WIDTH, HEIGHT = 640, 384
LEFT, RIGHT, TOP, BOTTOM = 46, WIDTH - 12, 64, HEIGHT - 44
ENDS = ((0.1, 1e4), (0.01, 2000.0))  # operations per byte, TFLOP/s; as in roofline_drawing.js
TICKS = (0.1, 1, 10, 100, 1000, 10_000), (0.01, 0.1, 1, 10, 100, 1000)
BADGES: dict[Map, tuple[str, int, int]] = {
    "forward": ("y", -30, -27),
    "grad_input": ("x", 0, -36),
    "grad_weight": ("w", 30, -27),
}


def roofline_fallback(
    bounds: Mapping[Map, Bound],
    card: Card,
    precision: Precision,
    target: Map,
    geometry: ConvGeometry,
    name: str,
) -> str:
    """The chart and its figures, as HTML with an SVG."""
    words = (
        f"{geometry.describe()} on the card {name} in {TITLES[precision]}: at most, by its data "
        "sheet. Nothing here was measured."
    )
    told = sentence(target, bounds[target], card, precision)
    alt = (
        f"Operations per byte across, TFLOP/s upwards, both logarithmic: the roof of {name} in "
        f"{TITLES[precision]}, and a mark each for forward, grad_input and grad_weight. {told}"
    )
    head = "".join(f'<th scope="col">{which}</th>' for which in MAPS)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows(bounds)
    )
    drawn = "".join(_chart(bounds, card, precision, target))
    return figure(
        f'<svg role="img" aria-label="{escape(alt, quote=True)}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" xmlns="http://www.w3.org/2000/svg">{drawn}</svg>'
        f"<figcaption>{escape(words)}</figcaption>"
        f'<p class="cg-formula">{escape(told)}</p>'
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>",
        live_height(any(bound.tiles for bound in bounds.values())),
    )


def live_height(tiles: bool) -> tuple[int, int]:
    """About how tall the live widget is, on a wide screen and on a narrow one.

    The numbers are those of roofline.css; a browser test holds the two together.
    """
    sliders = 7 + tiles
    lines = 6 + 4 * tiles
    wide = 676 + 34 * -(-sliders // 2) + 25 * (lines + 1)
    narrow = 745 + 34 * sliders + 25 * (lines + 1)
    return wide, narrow


def _along(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return min(1.0, max(0.0, math.log(value / low) / math.log(high / low)))


def _x(intensity: float) -> float:
    return round(LEFT + _along(intensity, ENDS[0]) * (RIGHT - LEFT), 1)


def _y(tflops: float) -> float:
    return round(BOTTOM - _along(tflops, ENDS[1]) * (BOTTOM - TOP), 1)


def _text(x: float, y: float, words: str, anchor: str = "start", colour: str = "muted") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" style="fill:{_colour(colour)};text-anchor:{anchor};'
        f'font-size:12px">{escape(words)}</text>'
    )


def _line(path: str, colour: str, width: float, dashes: str = "") -> str:
    dashed = f";stroke-dasharray:{dashes}" if dashes else ""
    return f'<path d="{path}" style="stroke:{_colour(colour)};stroke-width:{width}{dashed}"/>'


def _colour(key: str) -> str:
    return f"var(--cg-{key.replace('_', '-')},{PALETTE[key]['light']})"


def _chart(
    bounds: Mapping[Map, Bound], card: Card, precision: Precision, target: Map
) -> Iterator[str]:
    for tick in TICKS[0]:
        yield _line(f"M{_x(tick):g} {TOP}V{BOTTOM}", "rule", 0.6)
        yield _text(_x(tick), BOTTOM + 17, f"{tick:,}", "end" if tick == 10_000 else "middle")
    for tick in TICKS[1]:
        yield _line(f"M{LEFT} {_y(tick):g}H{RIGHT}", "rule", 0.6)
        yield _text(LEFT - 6, _y(tick) + 4, f"{tick:,}", "end")
    yield _text((LEFT + RIGHT) / 2, BOTTOM + 36, "operations per byte", "middle")
    yield _text(2, 13, "TFLOP/s at most")
    roof = card.roof(precision)
    low = ENDS[0][0]
    yield _line(f"M{_x(roof.ridge):g} {_y(roof.peak):g}V{BOTTOM}", "muted", 1, "2 4")
    yield _text(_x(roof.ridge) + 4, BOTTOM - 6, f"ridge {three(roof.ridge)}")
    slope = f"M{_x(low):g} {_y(roof.over(low)):g}L{_x(roof.ridge):g} {_y(roof.peak):g}"
    yield _line(f"{slope}H{RIGHT}", "ink", 2.2)
    peak = f"{TITLES[precision]} {three(roof.peak)}"
    yield _text(RIGHT, _y(roof.peak) - 5, peak, "end", "ink")
    chosen = bounds[target]
    if chosen.tiles and chosen.ceiling < 0.99 * roof.peak:
        start, height = _x(chosen.ceiling / card.memory), _y(chosen.ceiling)
        yield _line(f"M{start:g} {height:g}H{RIGHT}", "result", 2, "8 5")
        few = f"{chosen.programs} program{'' if chosen.programs == 1 else 's'}"
        words = f"{target}, {few} on {card.multiprocessors}: {three(chosen.ceiling)}"
        yield _text(RIGHT, height + 14, words, "end", "result")
    for which in sorted(MAPS, key=lambda each: each == target):
        yield from _mark(which, bounds[which], which == target)


def _mark(which: Map, bound: Bound, told: bool) -> Iterator[str]:
    """A point, and beside it a circle, a square or a diamond with the letter of the map."""
    x, y = _x(bound.intensity), _y(bound.tflops)
    letter, dx, dy = BADGES[which]
    hue = "ink" if which == "forward" else "result"
    at_x, at_y = x + dx, y + dy
    yield _line(f"M{x:g} {y:g}L{at_x:g} {at_y:g}", hue, 1.2)
    style = (
        f'style="fill:{_colour(hue if told else "paper")};stroke:{_colour(hue)};stroke-width:1.6"'
    )
    yield f'<circle cx="{x:g}" cy="{y:g}" r="4" style="fill:{_colour(hue)}"/>'
    if which == "forward":
        yield f'<circle cx="{at_x:g}" cy="{at_y:g}" r="11" {style}/>'
    elif which == "grad_input":
        yield f'<rect x="{at_x - 10:g}" y="{at_y - 10:g}" width="20" height="20" {style}/>'
    else:
        yield f'<path d="M{at_x:g} {at_y - 14:g}l14 14l-14 14l-14 -14z" {style}/>'
    yield _text(at_x, at_y + 4, letter, "middle", "paper" if told else hue)
