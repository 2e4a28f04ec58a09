"""One way to run a table and keep it: only whole tables replace what is committed."""

from __future__ import annotations

import argparse
from pathlib import Path

from convgrad.bench import as_text
from convgrad.cli import bench

__all__ = ["measure_and_keep"]


def measure_and_keep(table: str, kept: Path, layers: list[str], about: str) -> None:
    """Reads the options, measures, prints, and writes ``kept`` if all ``layers`` were measured."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    bench.add_options(parser)
    parser.add_argument("--print-only", action="store_true", help="leave the JSON as it is")
    options = parser.parse_args()
    options.table = table
    record = bench.measured(options)
    if not options.print_only and list(record["layers"]) == layers:
        kept.write_text(as_text(record), encoding="utf-8")
        print(f"written to benchmarks/{kept.name}, whose figures the book quotes")
