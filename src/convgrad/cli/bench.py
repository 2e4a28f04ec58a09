"""``convgrad bench``: what each implementation costs on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from .words import RIGHT, Misuse

__all__ = ["HELP", "add_options", "add_to", "measured", "run"]

HELP = "time the implementations on this machine, beside PyTorch where it is installed"

_DESCRIPTION = """\
Times forward and backward of every implementation on some layers, in rounds, and compares within
each round with PyTorch's own CPU backward and with im2col. All layers take some minutes.
"""
_EXAMPLES = """\
examples:
  OMP_NUM_THREADS=1 convgrad bench              all layers, one thread each
  convgrad bench --layer tiny --layer 3×3 --rounds 5
  convgrad bench --json here.json               also keep the figures
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help=HELP,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file too")
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=9, help="rounds a layer (default 9)")
    parser.add_argument(
        "--layer", action="append", metavar="LAYER", help="only this one; may be repeated"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no word on what is going on")


def run(options: argparse.Namespace) -> int:
    from ..bench import as_text

    if options.json is not None and not Path(options.json).resolve().parent.is_dir():
        raise Misuse(f"--json {options.json}: there is no such folder")
    record = measured(options)
    if options.json is not None:
        Path(options.json).write_text(as_text(record), encoding="utf-8")
    return RIGHT


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """The record of the layers asked for, once their table is printed."""
    # here, not above: torch takes seconds to import, and no other command needs it
    from ..bench import LAYERS, measure_layers, table, without_torch

    layers = options.layer or list(LAYERS)
    unknown = [layer for layer in layers if layer not in LAYERS]
    if unknown:
        raise Misuse(f"there is no layer {unknown[0]!r}: there are {', '.join(LAYERS)}")
    if options.rounds < 1:
        raise Misuse("--rounds must be at least 1")

    def say(line: str) -> None:
        if not options.quiet:
            print(line, file=sys.stderr, flush=True)

    if os.environ.get("OMP_NUM_THREADS") != "1":
        say("OMP_NUM_THREADS is not 1: NumPy's matrix products may use more threads than PyTorch,")
        say("which is held to one; set it before the command for an even comparison")
    record = measure_layers(layers, options.rounds, say)
    print("\n".join(table(record["layers"])))
    print("milliseconds, medians; × torch and × im2col compare the whole backward pass")
    if without_torch():
        print(without_torch())
    return record
