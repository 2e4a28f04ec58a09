"""What the roofline says: figures, sentence and table; the same as roofline_words.js."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal

from ..roofline import MAPS, Bound, Card, Map, Precision

__all__ = ["TITLES", "amount", "percent", "rows", "sentence", "three", "tiles_words"]

TITLES: dict[Precision, str] = {
    "float32": "float32",
    "tf32": "TF32",
    "bfloat16": "bfloat16",
    "float16": "float16",
}
_THREE = Context(prec=3, rounding=ROUND_HALF_UP)  # as JavaScript's toPrecision rounds
_STEPS: dict[str, list[tuple[float, str]]] = {
    "operations": [
        *((1e15, "·10¹⁵"), (1e12, "·10¹²"), (1e9, "·10⁹")),
        *((1e6, "·10⁶"), (1e3, "·10³"), (1, "")),
    ],
    "bytes": [(1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1, " B")],
    "milliseconds": [(1e3, " s"), (1, " ms"), (1e-3, " µs"), (1e-6, " ns")],
}


def three(value: float) -> str:
    """Three digits, plain.

    >>> three(1234.5), three(0.02195), three(67.0)
    ('1230', '0.022', '67')
    """
    return f"{_THREE.create_decimal(Decimal(value)).normalize():f}"


def amount(kind: str, value: float) -> str:
    """A quantity in its unit.

    >>> amount("bytes", 51_527_680), amount("milliseconds", 0.2194), amount("operations", 7.4e9)
    ('51.5 MB', '219 µs', '7.4·10⁹')
    """
    steps = _STEPS[kind]
    size, unit = next((step for step in steps if value >= step[0]), steps[-1])
    return three(value / size) + unit


def percent(share: float) -> str:
    return f"{three(100 * share)} %"


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def tiles_words(bound: Bound, card: Card) -> str:
    """How the tiles fall on the multiprocessors."""
    busy = bound.programs / (bound.waves * card.multiprocessors)
    parts = bound.programs // bound.tiles
    shares = f" in {_many(parts, 'share')} each" if parts > 1 else ""
    turns = f"in {bound.waves} waves" if bound.waves > 1 else "in one wave"
    places = f"{percent(busy)} of the places taken"
    return (
        f"{_many(bound.tiles, 'tile')}{shares} on {card.multiprocessors} multiprocessors, "
        f"{turns}: {places}, {percent(min(1.0, bound.share / busy))} of their work needed"
    )


def sentence(which: Map, bound: Bound, card: Card, precision: Precision) -> str:
    """One map in a sentence: what limits it, and what that leaves."""
    per = f"{three(bound.intensity)} operations a byte"
    at = f"the ridge is at {three(card.roof(precision).ridge)}"
    why = {
        "memory": f"waits for memory: {per}, and {at}",
        "arithmetic": f"is held up by arithmetic alone: {per}, and {at}",
        "tiles": f"is held up by its tiles: {tiles_words(bound, card) if bound.tiles else ''}",
    }[bound.limit]
    return (
        f"{which} {why}. At most {three(bound.tflops)} TFLOP/s, "
        f"so at least {amount('milliseconds', bound.milliseconds)}."
    )


def rows(bounds: Mapping[Map, Bound]) -> list[list[str]]:
    """A row for each quantity, a column for each map."""
    found = [bounds[which] for which in MAPS]
    tiled = any(bound.tiles for bound in found)
    quantities: list[tuple[str, Callable[[Bound], str], bool]] = [
        ("operations", lambda b: amount("operations", b.operations), True),
        ("bytes moved", lambda b: amount("bytes", b.bytes), True),
        ("operations a byte", lambda b: three(b.intensity), True),
        ("tiles", lambda b: str(b.tiles), tiled),
        ("programs", lambda b: str(b.programs), tiled),
        ("waves", lambda b: str(b.waves), tiled),
        ("share of the arithmetic", lambda b: percent(b.share), tiled),
        ("at most, TFLOP/s", lambda b: three(b.tflops), True),
        ("least time", lambda b: amount("milliseconds", b.milliseconds), True),
        ("what limits", lambda b: b.limit, True),
    ]
    return [[name, *map(text, found)] for name, text, shown in quantities if shown]
