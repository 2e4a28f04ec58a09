"""Figures of the book: functions that return a matplotlib Figure in the book's own look.

They need matplotlib (``pip install "convgrad[figures]"``).  :mod:`.style` owns the colours and
the way a figure becomes SVG; :mod:`.grids` draws grids of numbers, the same as the widgets do.
"""

try:
    import matplotlib  # noqa: F401 (every module of this part needs it)
except ImportError as error:  # the one place that says what to install
    raise ImportError(
        'convgrad.figures draws with matplotlib, which is missing: pip install "convgrad[figures]"'
    ) from error
