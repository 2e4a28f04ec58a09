"""ThreadGrid without JavaScript: what every multiprocessor does over time, and the figures."""

from __future__ import annotations

from html import escape

from ..implicit import Gemm
from ..schedule import Schedule
from .fallback import figure, number

__all__ = ["figures", "thread_fallback"]

WIDE, LABELS, MOST_BARS = 640, 40, 600  # of the drawing, in its own units
NAMES = {"weight": "grad_weight", "forward": "y", "input": "grad_input"}


def figures(schedule: Schedule) -> list[tuple[str, str]]:
    """What is counted, and the count in words; the same as ``figures`` in thread_words.js."""
    s = schedule
    M, N, K, groups = s.gemm
    product = f"{M:,} × {K:,} · {K:,} × {N:,}" + (f", {groups} groups" if groups > 1 else "")
    return [
        ("product", product),
        (
            "programs",
            f"{s.programs:,} = {several(s.tiles, 'tile')} × {several(s.parts, 'share')}",
        ),
        ("waves", f"{s.waves:,}, the last with {s.last_wave} of {s.processors} busy"),
        ("time", several(s.time, "step")),
        ("at work", f"{percent(s.busy)} of all multiprocessors’ time"),
        ("workspace", size(s.workspace)),
        ("atomics", f"{s.atomics:,} to each number"),
    ]


def several(count: int, word: str) -> str:
    """How many there are, in words."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Bytes as people say them.

    >>> size(0), size(3744), size(4718592)
    ('0 B', '3.7 KiB', '4.5 MiB')
    """
    units = (("B", 1), ("KiB", 1024), ("MiB", 1024**2))
    unit, each = units[(count >= 1024) + (count >= 1024**2)]
    return f"{number(_half_up(10 * count / each) / 10)} {unit}"


def percent(share: float) -> str:
    """Part of a whole in per cent, never rounded to 0 or 100 that it is not.

    >>> percent(0.0379), percent(0.9818), percent(0.999), percent(1.0)
    ('3.8 %', '98 %', '99 %', '100 %')
    """
    exact = share * 100
    shown = _half_up(exact * 10) / 10 if exact < 10 else float(_half_up(exact))
    if shown == 100 and share < 1:
        shown = 99.0
    if shown == 0 and share > 0:
        shown = 0.1
    return f"{number(shown)} %"


def _half_up(value: float) -> int:
    """To the nearest whole number as JavaScript rounds, halves upwards."""
    return int(value + 0.5)


def thread_fallback(schedule: Schedule) -> str:
    """The timeline as an SVG, and the figures, as HTML."""
    s = schedule
    words = (
        f"{s.geometry.describe()}: {NAMES[s.target]} in {several(s.programs, 'program')} on "
        f"{several(s.processors, 'multiprocessor')}; {percent(s.busy)} of their time is work. "
        "A model: every block of K takes one step."
    )
    lines = "<br>".join(f"{escape(name)}: {escape(count)}" for name, count in figures(s))
    wide, narrow = (live_height(s, narrow=narrow) for narrow in (False, True))
    return figure(
        f"{_timeline(s, words)}<figcaption>{escape(words)}</figcaption>"
        f'<p class="cg-formula">{lines}</p>',
        (wide, narrow),
    )


def _timeline(s: Schedule, words: str) -> str:
    """A row for each multiprocessor, its programs told apart where there are few enough."""
    side = _side(s.processors)
    height = s.processors * side
    across = (WIDE - LABELS) / max(1, s.time)
    parts = []
    reach = [0] * s.processors
    for run in s.runs:
        reach[run.processor] = run.end
    gap = 2 if side >= 8 else 0.4
    for row, end in enumerate(reach):
        top = row * side + gap / 2
        if end:
            parts.append(
                f'<rect class="lit" style="stroke-width:.5" x="{LABELS}" y="{top:g}" '
                f'width="{end * across:.6g}" height="{side - gap:g}"/>'
            )
        if side >= 11 or row in (0, s.processors - 1):
            parts.append(
                f'<text class="name" x="0" y="{top + max(side / 2 + 3, 9):g}">{row}</text>'
            )
    if len(s.runs) <= MOST_BARS:
        for run in s.runs:
            x = LABELS + run.start * across
            wide = (run.end - run.start) * across
            top = run.processor * side + gap / 2
            if run.start:
                parts.append(f'<path d="M{x:.6g} {top:g}v{side - gap:g}"/>')
            program = s.program(run.program)
            name = f"{program.tile}·{program.part}" if s.parts > 1 else f"{program.tile}"
            if side >= 14 and wide >= 7 * len(name) + 6:
                middle = f'x="{x + wide / 2:.6g}" y="{top + side / 2 + 3:g}"'
                parts.append(f"<text {middle}>{name}</text>")
    frame = f'<path d="M{LABELS} 0h{WIDE - LABELS}v{height}h{LABELS - WIDE}z"/>'
    axis = (
        f'<text class="name" x="{LABELS}" y="{height + 15}">0</text>'
        f'<text class="name" style="text-anchor:end" x="{WIDE}" y="{height + 15}">'
        f"{s.time:,} steps</text>"
    )
    return (
        f'<svg role="img" aria-label="{escape(f"Timeline for {words}", quote=True)}" '
        f'viewBox="0 -1 {WIDE + 2} {height + 22}" width="{WIDE + 2}" height="{height + 22}" '
        f'xmlns="http://www.w3.org/2000/svg"><g class="result tight">{frame}{"".join(parts)}{axis}'
        "</g></svg>"
    )


def _side(processors: int) -> int:
    """How tall a row is; the same as in thread_drawing.js."""
    return 32 if processors <= 8 else max(2, min(22, 400 // processors))


def picture_height(gemm: Gemm, schedule: Schedule, room: int) -> float:
    """How tall the picture of the product is; the same as in thread_drawing.js."""
    s = schedule
    M, N, K = s.down * s.tile.M, s.across * s.tile.N, s.steps * s.tile.K
    scale = min(14, (room - 26) / (K + N), 270 / (M + K))
    return (scale * (M + K) if scale >= 3.2 else 220) + 26 + 38


def live_height(schedule: Schedule, *, narrow: bool) -> int:
    """About how tall the live widget is, in pixels, so that the page keeps still when it mounts.

    The numbers are those of thread_grid.css; a browser test holds the two together.
    """
    s = schedule
    room = 327 if narrow else 316
    product = picture_height(s.gemm, s, room) + 20
    time = s.processors * _side(s.processors) + 24
    stage = product + time + 16 if narrow else max(product, time)
    return round(stage + (760 if narrow else 420))
