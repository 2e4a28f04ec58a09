"""The command ``convgrad``, also ``python -m convgrad``: parses, and hands on to a subcommand."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from .cli import bench, check, classroom, ledger, worksheet
from .cli.words import MISUSE, Misuse
from .geometry import GeometryError, ShapeError

__all__ = ["main"]

_EXAMPLES = """\
examples:
  convgrad check mine:grad_weight     what is wrong with grad_weight in mine.py?
  convgrad check saved.npz            are these gradients right?
  convgrad ledger --example B         every product of a small weight gradient
  convgrad worksheet --seed 7         exercises on paper, and their key
  convgrad grade course               a class's notebooks, each in a sandbox
  convgrad bench --layer 3×3          what the implementations cost on this machine

exit status: 0 right, 1 a wrong gradient, 2 the command could not be carried out
"""


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(
        prog="convgrad",
        description="Every gradient of conv2d: check yours, watch the products, time the ways.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words.add_argument("--version", action="version", version=f"convgrad {_version()}")
    commands = words.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (check, ledger, worksheet, classroom, bench):
        command.add_to(commands)
    return words


def _version() -> str:
    try:
        return metadata.version("convgrad")
    except metadata.PackageNotFoundError:  # the sources alone, on PYTHONPATH
        return "(not installed)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries out one command; returns its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without · or × gets a question mark
    try:
        options = parser().parse_args(arguments)
        return int(options.run(options))
    except SystemExit as leaving:  # argparse has said why
        return leaving.code if isinstance(leaving.code, int) else MISUSE
    except (Misuse, GeometryError, ShapeError) as complaint:
        print(f"convgrad: {complaint}", file=sys.stderr)
        return MISUSE
    except BrokenPipeError:  # as in `convgrad ledger … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        return 128 + 2


if __name__ == "__main__":
    sys.exit(main())
