"""Figures of the book: functions that return a matplotlib Figure in the book's own look.

They need matplotlib (``pip install "convgrad[figures]"``).  :mod:`.style` owns the colours and
the way a figure becomes SVG; :mod:`.grids` draws grids of numbers, the same as the widgets do.
"""

from ..extras import needs

with needs("figures", "convgrad.figures"):
    import matplotlib  # noqa: F401 (every module of this part needs it)
