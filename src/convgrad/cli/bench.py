"""``convgrad bench``: what each implementation costs on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..parallel import can_set_threads
from .words import RIGHT, Misuse

__all__ = ["HELP", "add_options", "add_to", "measured", "run"]

HELP = "time the implementations on this machine, beside PyTorch where it is installed"

_DESCRIPTION = """\
Times the implementations in rounds and compares within each round. There are two tables:
"rungs", forward and gradients of every implementation on small layers, one thread each, beside
PyTorch's own CPU backward; and "layers", the whole backward pass of the fastest one on layers of
real networks, beside PyTorch with and without oneDNN and im2col as it is usually taught, with
the targets that it is held to. Either takes some minutes.
"""
_EXAMPLES = """\
examples:
  convgrad bench                                the rungs, all layers
  convgrad bench --layer tiny --layer 3×3 --rounds 5
  convgrad bench --table layers --threads 2     the layers of real networks
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
    parser.add_argument(
        "--table", choices=("rungs", "layers"), default="rungs", help="which (default rungs)"
    )
    add_options(parser)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file too")
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=9, help="rounds a layer (default 9)")
    parser.add_argument(
        "--layer", action="append", metavar="LAYER", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--threads", type=int, default=2, help="for the table of layers (default 2)"
    )
    parser.add_argument(
        "--all", action="store_true", help="let slow implementations into the table of layers too"
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
    from ..bench import layers, rungs, without_torch

    known = layers.TABLE if options.table == "layers" else rungs.LAYERS
    chosen = options.layer or list(known)
    unknown = [layer for layer in chosen if layer not in known]
    if unknown:
        raise Misuse(f"there is no layer {unknown[0]!r}: there are {'; '.join(known)}")
    if options.rounds < 1:
        raise Misuse("--rounds must be at least 1")
    if options.threads < 1:
        raise Misuse("--threads must be at least 1")

    def say(line: str) -> None:
        if not options.quiet:
            print(line, file=sys.stderr, flush=True)

    if not can_set_threads():
        say("threadpoolctl is not installed: NumPy's matrix products may use more threads than")
        say("PyTorch; set OMP_NUM_THREADS=1 before the command for an even comparison")
    if options.table == "layers":
        record = layers.measure_table(chosen, options.rounds, options.threads, options.all, say)
        print("\n".join(layers.text(record)))
        print("ms and × torch (PyTorch with oneDNN): medians over the rounds, whole backward pass")
    else:
        record = rungs.measure_layers(chosen, options.rounds, say)
        print("\n".join(rungs.table(record["layers"])))
        print("milliseconds, medians; × torch and × im2col compare the whole backward pass")
    if without_torch():
        print(without_torch())
    return record
