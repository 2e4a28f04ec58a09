"""Measurements: ``convgrad bench``, and the tables that the book shows.

:mod:`.rungs` climbs the ladder of implementations on small layers, one thread each;
:mod:`.layers` holds ``fast`` against PyTorch on layers as they are used, several threads each.
"""

from .common import as_text, without_torch
from .kept import kept, kept_file
from .rungs import LAYERS, measure_layers, table

__all__ = [
    "LAYERS",
    "as_text",
    "kept",
    "kept_file",
    "measure_layers",
    "table",
    "without_torch",
]
