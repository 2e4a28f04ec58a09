"""ShardSum without JavaScript: what each device has and sends, and one sum over devices."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..shards import ImageShard, RowShard, halo_messages, numbers_sent, ring_steps
from .fallback import Block, drawing, figure, number, signed, subscript

if TYPE_CHECKING:
    from .shard_sum import ShardSum

__all__ = ["run_words", "shards_fallback"]

MOST_DRAWN = 4  # devices whose parts are drawn, and steps of the ring that are written out


def shards_fallback(widget: ShardSum) -> str:
    """The parts of one block of grad_weight, drawn, and their sum; who sends what, as text."""
    g, shards, parts = widget.geometry, widget.shards, widget.parts
    whole = np.sum([part.grad_weight for part in parts], axis=0)
    lit = {(0, 0, 0, 0)}
    blocks = [
        Block("result", f"device {each.device}, {_has(each)}", part.grad_weight[:1, :1], "", lit)
        for each, part in zip(shards[:MOST_DRAWN], parts, strict=False)
    ]
    blocks.append(Block("result", "grad_weight, their sum", whole[:1, :1], "", lit))
    dealt = "images" if widget.view == "images" else "output rows"
    words = (
        f"{g.describe()}. The {dealt} on {len(shards)} device{'s' * (len(shards) != 1)}: each has "
        "a part of the weight gradient; an all-reduce gives every device the sum."
    )
    first = [float(part.grad_weight[0, 0, 0, 0]) for part in parts]
    chosen = subscript("grad_weight", (0, 0, 0, 0))
    formula = (
        f'<b class="result">{chosen}</b> = {" + ".join(map(signed, first))} = '
        f'<b class="result">{number(float(whole[0, 0, 0, 0]))}</b>, one term for each device'
    )
    lines = _ring_lines(widget) if widget.view == "images" else _row_lines(shards)
    wide, narrow = (live_height(widget, narrow=narrow) for narrow in (False, True))
    return figure(
        f"{drawing(blocks, f'Grids of numbers for {words}')}"
        f"<figcaption>{escape(words)}</figcaption>"
        f'<pre style="font-size:13px;white-space:pre-wrap">{escape(chr(10).join(lines))}</pre>'
        f'<p class="cg-formula">{formula}</p>',
        (wide, narrow),
    )


def _has(shard: Any) -> str:
    if isinstance(shard, ImageShard):
        return run_words("image", shard.images)
    return run_words("output row", shard.outputs)


def run_words(thing: str, run: range) -> str:
    """``image 0`` or ``images 0–2``.

    >>> run_words("image", range(3, 4)), run_words("image", range(3))
    ('image 3', 'images 0–2')
    """
    if len(run) == 1:
        return f"{thing} {run.start}"
    return f"{thing}s {run.start}–{run.stop - 1}" if run else f"no {thing}s"


def _ring_lines(widget: ShardSum) -> list[str]:
    """Who sends which chunk to whom."""
    P, size = widget.devices, widget.agreed.size
    names = {"reduce": "reduce-scatter", "gather": "all-gather"}
    lines = []
    for k, step in enumerate(ring_steps(P)):
        sends = ", ".join(f"{each.sender}→{each.receiver} chunk {each.chunk}" for each in step)
        lines.append(f"{names[step[0].phase]} {k % (P - 1) + 1} of {P - 1}: {sends}")
    if len(lines) > 2 * MOST_DRAWN:
        lines = [*lines[:MOST_DRAWN], "…", lines[-1]]
    most = max(numbers_sent(size, P))
    lines.append(
        f"{size} numbers in {P} chunk{'s' * (P != 1)}; each device sends "
        f"{'up to ' * bool(size % P)}{most}, {4 * most} bytes in float32"
    )
    return lines


def _row_lines(shards: list[RowShard]) -> list[str]:
    """Which rows each device makes, reads and holds, and what it is sent."""
    sent = {each.device: list[str]() for each in shards}
    for sender, receiver, rows in halo_messages(shards):
        row = "row" if len(rows) == 1 else "rows"
        sent[receiver].append(f"{row} {', '.join(map(str, rows))} from device {sender}")
    return [
        f"device {each.device}: {_has(each)}; reads rows {', '.join(map(str, each.reads))}; holds "
        f"{run_words('row', each.owned)}; halo: {'; '.join(sent[each.device]) or 'none'}"
        for each in shards
    ]


# ---- the room for the live widget ----------------------------------------------------------

Box = tuple[float, float]  # width and height


def live_height(widget: ShardSum, *, narrow: bool) -> int:
    """About how tall the live widget is when it begins, so that the page keeps still.

    The numbers are those of shard_sum.css; a browser test holds the two together.
    """
    g, P = widget.geometry, widget.devices
    width = 343 if narrow else 688
    at_end = widget.step == widget.steps
    if widget.view == "images":
        above, stage, bench = 66 + 96 * narrow, 93 + 21 * narrow + 70 * P, 208
    else:
        picks = sum(count > 1 for count in (g.N, g.O, g.CG))
        above = 98 + 32 * picks if narrow else 34 + 32 * (picks > 0)
        strips = sum(_strip_height(widget, shard, at_end, narrow) for shard in widget.shards)
        stage, bench = round(34 + strips + 24 * (P - 1)), 160
    boxes = _bench_boxes(widget, at_end, 26 if narrow else 28)
    bench = max(bench, round(26 + _in_lines(boxes, width)))
    return 32 + above + stage + (205 if narrow else 130) + bench + (62 if narrow else 32) + 5


def _strip_height(widget: ShardSum, shard: RowShard, at_end: bool, narrow: bool) -> float:
    """The title and the grids of one device, each with the names of its rows."""
    row, width = (25, 343) if narrow else (28, 688)
    across = widget.geometry.W * row
    boxes = [(91.0 + across, row * len(shard.block) + 27.0)]
    if at_end and shard.owned:
        boxes.append((51.0 + across, row * len(shard.owned) + 27.0))
    return (39 if narrow else 22) + _in_lines(boxes, width)


def _bench_boxes(widget: ShardSum, at_end: bool, cell: int) -> list[Box]:
    """What stands on the bench: maps of the first image, or the numbers that are compared."""
    g = widget.geometry
    text = 36.0  # a sign, or how many maps there are, between the gaps of a line
    if widget.view == "rows":
        taps = (max(g.KW * cell + 3.0, 70.0), g.KH * cell + 29.0)
        return [taps, (13.0, 0)] * (widget.devices + 2) if at_end else []
    if at_end:
        chunk = min(-(-widget.agreed.size // widget.devices), 48)
        numbers = (min(chunk, 6) * cell + 3.0, -(-chunk // 6) * cell + 29.0)
        return [numbers, (13.0, 0), numbers]
    boxes: list[Box] = []
    for count, rows, cols in ((g.C, g.H, g.W), (g.O, g.OH, g.OW)):
        boxes += [(cols * cell + 3.0, rows * cell + 29.0)] * min(count, 2)
        boxes += [(text, 0)] * (count > 2)
    return boxes


def _in_lines(boxes: list[Box], width: float) -> float:
    """How tall boxes are that stand in lines like words."""
    lines: list[list[Box]] = []
    left = width + 1.0
    for box in boxes:
        if left + 14 + box[0] > width:
            lines.append([])
            left = -14.0
        lines[-1].append(box)
        left += 14 + box[0]
    gaps = 10 * max(len(lines) - 1, 0)
    return sum(max(height for _, height in line) for line in lines) + gaps
