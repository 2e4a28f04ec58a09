"""Holds ``fast`` against PyTorch on layers of real networks: ``python -m benchmarks.layers``.

The measuring is ``convgrad.bench.layers``, which ``convgrad bench --table layers`` also calls;
here the result is written to ``benchmarks/layers.json``, where the book reads it.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.keep import measure_and_keep
from convgrad.bench.layers import TABLE

RESULT = Path(__file__).with_suffix(".json")

if __name__ == "__main__":
    measure_and_keep("layers", RESULT, list(TABLE), __doc__)
