"""Measures every implementation on every layer and keeps the table: ``python -m benchmarks.rungs``.

The measuring is ``convgrad.bench``, which ``convgrad bench`` also calls; here the result is
written to ``benchmarks/rungs.json``, where the book reads it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from convgrad.bench import LAYERS, as_text
from convgrad.cli import bench

RESULT = Path(__file__).with_suffix(".json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    bench.add_options(parser)
    parser.add_argument("--print-only", action="store_true", help="leave the JSON as it is")
    options = parser.parse_args()
    record = bench.measured(options)
    if not options.print_only and record["layers"].keys() == LAYERS.keys():
        RESULT.write_text(as_text(record), encoding="utf-8")
        print(f"written to benchmarks/{RESULT.name}, whose figures the docstrings quote")


if __name__ == "__main__":
    main()
