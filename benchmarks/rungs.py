"""Measures every implementation on every small layer: ``python -m benchmarks.rungs``.

The measuring is ``convgrad.bench.rungs``, which ``convgrad bench`` also calls; here the result is
written to ``benchmarks/rungs.json``, where the book reads it.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.keep import measure_and_keep
from convgrad.bench.rungs import LAYERS

RESULT = Path(__file__).with_suffix(".json")

if __name__ == "__main__":
    measure_and_keep("rungs", RESULT, list(LAYERS), __doc__)
