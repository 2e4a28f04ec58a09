"""The measurements that were kept, wherever this package lies.

In a clone they are the files under ``benchmarks``, which ``make bench`` writes; an installed
package brings them along.  The book's cells read them here, so a page runs as a notebook anywhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["kept", "kept_file"]

_INSTALLED = Path(__file__).parent / "measured"  # put there when the wheel is built
_CLONE = Path(__file__).parents[3] / "benchmarks"


def kept_file(name: str) -> Path:
    """The file of the measurements called ``name``; it need not be there (``gpu`` seldom is).

    >>> kept_file("layers").name
    'layers.json'
    """
    installed = _INSTALLED / f"{name}.json"
    return installed if _INSTALLED.is_dir() else _CLONE / installed.name


def kept(name: str) -> dict[str, Any]:
    """The record of one benchmark: ``"rungs"``, ``"layers"`` or ``"gpu"``.

    Raises FileNotFoundError where nothing of that name was measured.

    >>> sorted(kept("layers")["layers"]["3×3, 64 @56"]["contestants"])[:2]
    ['fast', 'im2col']
    """
    try:
        return json.loads(kept_file(name).read_text("utf-8"))
    except FileNotFoundError:
        there = sorted(path.stem for path in kept_file(name).parent.glob("*.json"))
        raise FileNotFoundError(
            f"no measurements {name!r} were kept: there are {', '.join(there) or 'none'}"
        ) from None
