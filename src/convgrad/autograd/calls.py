"""Which operations PyTorch calls, and which of them calls which: found by running."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..extras import needs

with needs("torch", "convgrad.autograd"):
    import torch

__all__ = ["Calls", "calls"]

# Autograd's engine puts a row of its own around every step of the way back.
_ENGINE = "autograd::engine"


@dataclass(frozen=True)
class Calls:
    """Operations in the order in which they began; printed, each under the one that called it.

    Attributes
    ----------
    rows : tuple of (int, str)
        How many of the operations shown lie around this one, and its name.

    Examples
    --------
    >>> print(Calls(((0, "aten::conv2d"), (1, "aten::convolution"))))
    aten::conv2d
      aten::convolution
    """

    rows: tuple[tuple[int, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names alone."""
        return tuple(name for _, name in self.rows)

    def __str__(self) -> str:
        return "\n".join("  " * depth + name for depth, name in self.rows)


def calls(run: Callable[[], Any], *words: str) -> Calls:
    """Run a function and tell which of PyTorch's operations it called.

    Parameters
    ----------
    run : callable
        Without arguments; what it returns is dropped.
    *words : str
        Only operations with one of these in their name are shown, in capitals or not; all if left
        out.

    Returns
    -------
    Calls

    Examples
    --------
    >>> layer, x = torch.nn.Conv2d(1, 1, 3), torch.ones(1, 1, 5, 5)
    >>> calls(lambda: layer(x), "conv2d", "aten::convolution").names[:2]
    ('aten::conv2d', 'aten::convolution')
    """
    with _quiet(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        run()
    events = [event for event in seen.events() or () if not event.name.startswith(_ENGINE)]
    wanted = [word.lower() for word in words]

    def is_shown(name: str) -> bool:
        return not wanted or any(word in name.lower() for word in wanted)

    rows = []
    for event in sorted(events, key=lambda event: event.time_range.start):
        if is_shown(event.name):
            rows.append((sum(map(is_shown, _around(event))), event.name))
    return Calls(tuple(rows))


def _around(event: Any) -> Iterator[str]:
    """The names of the operations inside which this one ran."""
    while (event := event.cpu_parent) is not None:
        if not event.name.startswith(_ENGINE):
            yield event.name


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the notes that PyTorch's profiler writes straight to the error output."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
