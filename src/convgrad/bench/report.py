"""A record of :mod:`.layers` as the tables of a page, in Markdown.

Only what was measured is shown: a layer or a contestant that the record lacks is left out, and
targets are held against whole tables alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .layers import ONEDNN, PLAIN, TABLE, TARGETS, TAUGHT

__all__ = ["conditions", "held_to", "memory_and_error", "on_gpu", "times"]

# In the order of the columns, each with its heading.
_CONTESTANTS = {
    "fast": "fast",
    ONEDNN: "PyTorch",
    PLAIN: "PyTorch, no oneDNN",
    "im2col": "im2col",
    TAUGHT: "im2col as taught",
}


def times(record: dict[str, Any]) -> str:
    """Milliseconds of the whole backward pass, and fast's time over PyTorch's."""
    rows = []
    for name, layer in record["layers"].items():
        who = layer["contestants"]
        ms = [_number(who, each, "milliseconds") for each in _CONTESTANTS]
        rows.append([name, *ms, _number(who, "fast", "times_torch")])
    return _table(["layer", *_CONTESTANTS.values(), "fast ÷ PyTorch"], rows)


def memory_and_error(record: dict[str, Any]) -> str:
    """Working memory, beside what goes in and out, and the error of fast."""
    rows = []
    for name, layer in record["layers"].items():
        who = layer["contestants"]
        work = [_number(who, each, "working_megabytes") for each in ("fast", "im2col")]
        error = who["fast"]["relative_error"]
        rows.append([name, layer["route"], *work, f"{layer['floor_megabytes']:g}", f"{error:.0e}"])
    return _table(["layer", "route", "fast", "im2col", "in and out", "error of fast"], rows, 2)


def on_gpu(kept: Path) -> str:
    """What ``make bench-gpu`` has written to ``kept``, or that nothing was measured.

    For each layer, type and map every kernel: milliseconds, its time over PyTorch's, and the share
    of what the roof allows.
    """
    if not kept.exists():
        return (
            "No GPU was measured for this book, so there is no table here. On a machine with an "
            "NVIDIA card, `make bench-gpu` measures the kernels and keeps "
            f"`benchmarks/{kept.name}`; when this page is built again, the table stands here."
        )
    record = json.loads(kept.read_text("utf-8"))
    rows = [
        [
            *(name, dtype, part, who),
            *(
                f"{row['milliseconds']:g}",
                f"{row['times_torch']:g}",
                f"{row['roofline_share']:.0%}",
            ),
            "yes" if row["same_bits"] else "no",
        ]
        for name, layer in record["layers"].items()
        for dtype, parts in layer["types"].items()
        for part, contestants in parts.items()
        for who, row in contestants.items()
    ]
    heads = ["layer", "type", "map", "kernel", "ms", "÷ PyTorch", "of the roof", "same bits"]
    source = record["roof"]["source"]
    return (
        f"Measured on {record['machine']['card']}; the roof is from "
        f"{'a data sheet' if source == 'data sheet' else 'a large product and a large copy'}.\n\n"
        f"{_table(heads, rows, 4)}"
    )


def held_to(record: dict[str, Any]) -> str:
    """Each target beside its figure."""
    if record["layers"].keys() != TABLE.keys():
        return "(The targets speak of the whole table, and this one lacks layers.)"
    rows = [
        [
            target.what,
            f"{target.value(record):.3g}",
            f"{'at most' if target.at_most else 'at least'} {target.bound:g}",
            "met" if target.met(record) else "missed",
        ]
        for target in TARGETS
    ]
    return _table(["what", "figure", "target", ""], rows)


def conditions(record: dict[str, Any]) -> str:
    """The machine, the versions and how often, in two lines."""
    machine = record["machine"]
    threads = machine["threads"]
    versions = ", ".join(map(" ".join, machine["versions"].items()))
    return (
        f"{machine['cpu']}, {machine['system']}, {threads} thread{'s' * (threads != 1)}\n"
        f"{versions}; {record['rounds']} rounds, {machine['date']}"
    )


def _number(contestants: dict[str, Any], who: str, what: str) -> str:
    value = contestants.get(who, {}).get(what)
    return "" if value is None else f"{value:g}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Markdown; the first columns are words, the others numbers."""
    sides = ["---"] * words + ["--:"] * (len(headings) - words)
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, sides, *rows))
