"""What a function is tried on: convolutions from easy to hard, and smaller ones that still fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checks import Draw, one_thing_more, random_geometry, random_operands
from ..geometry import ConvGeometry, GeometryError, Pair

__all__ = ["FEATURES", "Limits", "Trial", "easy_to_hard", "smaller", "smallest"]


@dataclass(frozen=True)
class Trial:
    """One call: a geometry, the seed that its operands are drawn from, and what they are like.

    ``form`` is "whole" for small whole numbers, "quarters" for a quarter of them (all sums are
    still exact, but cutting fractions off shows), "fortran" for whole numbers that lie in memory
    in another order than C's.
    """

    geometry: ConvGeometry
    seed: int
    dtype: str = "float64"
    form: str = "whole"

    def draw(self) -> Draw:
        geometry, *operands = random_operands(self.geometry, np.random.default_rng(self.seed))
        operands = [array.astype(self.dtype) for array in operands]
        if self.form == "quarters":
            operands = [array / 4 for array in operands]
        if self.form == "fortran":
            operands = [np.asfortranarray(array) for array in operands]
        return Draw(geometry, *operands)


@dataclass(frozen=True)
class Limits:
    """What a function takes; the rest is not tried on it."""

    stride: bool = True
    padding: bool = True
    dilation: bool = True
    groups: bool = True
    padding_mode: bool = True
    two_sided: bool = True  # padding that differs before and after
    pairs: bool = True  # values that differ between height and width

    def within(self, geometry: ConvGeometry) -> ConvGeometry:
        """The geometry with everything evened out or left out that is not taken."""
        changed: dict[str, Any] = {}
        for name in ("stride", "dilation"):
            pair = getattr(geometry, name) if getattr(self, name) else (1, 1)
            changed[name] = pair if self.pairs else (max(pair),) * 2
        if not self.groups:
            changed["groups"] = 1
        if not self.padding_mode:
            changed["padding_mode"] = "zeros"
        padding = geometry.padding if self.padding else ((0, 0), (0, 0))
        if not self.two_sided:
            padding = (max(padding[0]),) * 2, (max(padding[1]),) * 2
        if not self.pairs:
            padding = (max(map(max, padding)),) * 2, (max(map(max, padding)),) * 2
        changed["padding"] = padding
        for axis, (size, taps) in enumerate((("H", "KH"), ("W", "KW"))):
            # the image grows by what the border loses and the window gains, so that all fits,
            lost = sum(geometry.padding[axis]) - sum(padding[axis])
            wider = changed["dilation"][axis] - geometry.dilation[axis]
            gained = max(lost, 0) + max(wider, 0) * (getattr(geometry, taps) - 1)
            # and a border of copies needs originals
            least = max(padding[axis]) + 1 if geometry.padding_mode != "zeros" else 1
            changed[size] = max(getattr(geometry, size) + gained, least)
        return replace(geometry, **changed)


_FORMS = ("whole", "quarters", "whole", "fortran")
PLAIN = ConvGeometry(C=1, H=8, W=10, O=1, KH=3, KW=2)


def easy_to_hard(limits: Limits, count: int, seed: int, dtype: str = "float64") -> Iterator[Trial]:
    """``count`` trials: first one thing at a time, then everything mixed."""
    rng = np.random.default_rng(seed)
    plain = list(dict.fromkeys(limits.within(geometry) for geometry in one_thing_more(PLAIN)))
    for k in range(count):
        if k < len(plain):
            yield Trial(plain[k], seed + k, dtype)
        else:
            geometry = limits.within(random_geometry(rng, lambda g: _reads(limits.within(g))))
            yield Trial(geometry, seed + k, dtype, _FORMS[k % len(_FORMS)])


def _reads(geometry: ConvGeometry) -> bool:
    """Whether any tap reads the image; where all lie on padding, nearly everything looks right."""
    return bool((geometry.rows >= 0).any() and (geometry.cols >= 0).any())


# ---- what the failures have in common ------------------------------------------------------

FEATURES: dict[str, Callable[[Trial], bool]] = {
    "more than one image": lambda t: t.geometry.N > 1,
    "more than one group": lambda t: t.geometry.groups > 1,
    "a stride above 1": lambda t: t.geometry.stride != (1, 1),
    "a stride above 1 along the rows": lambda t: t.geometry.stride[0] > 1,
    "a stride above 1 along the columns": lambda t: t.geometry.stride[1] > 1,
    "a dilation above 1": lambda t: t.geometry.dilation != (1, 1),
    "a dilation above 1 along the rows": lambda t: t.geometry.dilation[0] > 1,
    "a dilation above 1 along the columns": lambda t: t.geometry.dilation[1] > 1,
    "a border of copied cells": lambda t: (
        t.geometry.padding_mode != "zeros" and _has_border(t.geometry)
    ),
    "padding": lambda t: _has_border(t.geometry),
    "padding along the rows": lambda t: t.geometry.padding[0] != (0, 0),
    "padding along the columns": lambda t: t.geometry.padding[1] != (0, 0),
    "padding that differs between rows and columns": lambda t: (
        t.geometry.padding[0] != t.geometry.padding[1]
    ),
    "padding that differs between the two sides of an axis": lambda t: any(
        a != b for a, b in t.geometry.padding
    ),
    "rows or columns at the end that no window reads": lambda t: t.geometry.leftover != (0, 0),
    "several channels in a group": lambda t: t.geometry.CG > 1,
    "several kernels in a group": lambda t: t.geometry.OG > 1,
    "a stride that differs between rows and columns": lambda t: (
        t.geometry.stride[0] != t.geometry.stride[1]
    ),
    "a dilation that differs between rows and columns": lambda t: (
        t.geometry.dilation[0] != t.geometry.dilation[1]
    ),
    "a stride that is not the dilation": lambda t: t.geometry.stride != t.geometry.dilation,
    "fractions among the operands": lambda t: t.form == "quarters",
    "operands that do not lie in C order in memory": lambda t: t.form == "fortran",
}


def _has_border(geometry: ConvGeometry) -> bool:
    return geometry.padding != ((0, 0), (0, 0))


# ---- smaller ones that still fail ----------------------------------------------------------


def smaller(geometry: ConvGeometry) -> Iterator[ConvGeometry]:
    """Every convolution with one thing less, the larger steps first."""
    for change in _changes(geometry):
        try:
            fewer = replace(geometry, **change)
        except GeometryError:
            continue
        # with one output cell or one tap, every mistake looks like every other
        if fewer != geometry and min(fewer.OH, fewer.OW) >= min(2, geometry.OH, geometry.OW):
            yield fewer


def _changes(geometry: ConvGeometry) -> Iterator[dict[str, Any]]:
    G, CG, OG = geometry.groups, geometry.CG, geometry.OG
    yield {"padding_mode": "zeros"}
    yield {"padding": 0}
    for name in ("stride", "dilation"):
        yield {name: 1}
        yield {name: tuple(max(step - 1, 1) for step in getattr(geometry, name))}
        yield from ({name: pair} for pair in _one_less(getattr(geometry, name)))
    yield {"groups": 1, "C": CG, "O": OG}
    yield {"groups": min(G, 2), "C": min(G, 2) * CG, "O": min(G, 2) * OG}
    yield from ({"N": n} for n in (1, 2) if n < geometry.N)
    yield from ({"C": G * c} for c in (1, 2) if c < CG)
    yield from ({"O": G * o} for o in (1, 2) if o < OG)
    rows, cols = geometry.padding
    yield {"padding": tuple((max(a - 1, 0), max(b - 1, 0)) for a, b in geometry.padding)}
    for side in range(2):
        yield {"padding": (_less_at(rows, side), cols)}
        yield {"padding": (rows, _less_at(cols, side))}
    for size, taps in (("H", "KH"), ("W", "KW")):
        if min(getattr(geometry, size), getattr(geometry, taps)) > 2:  # so the windows stay
            yield {name: getattr(geometry, name) - 1 for name in (size, taps)}
    for name in ("KH", "KW", "H", "W"):
        size = getattr(geometry, name)
        # from small ones up: a mistake that one size hides, a smaller one may show
        fewer = {2, 3, size // 2, size - 2, size - 1} & {*range(2, size)}
        yield from ({name: less} for less in sorted(fewer))


def _one_less(pair: Pair) -> Iterator[Pair]:
    if pair[0] > 1:
        yield pair[0] - 1, pair[1]
    if pair[1] > 1:
        yield pair[0], pair[1] - 1


def _less_at(pair: Pair, side: int) -> Pair:
    before, after = pair
    return (max(before - 1, 0), after) if side == 0 else (before, max(after - 1, 0))


# The seeds tried beside a trial's own where that does not show the mistake, as offsets.
_OTHER_SEEDS = (1, 2)


def smallest(
    trial: Trial, fails: Callable[[Trial], bool], limits: Limits, most: int = 300
) -> Trial:
    """The trial made smaller, one thing at a time, while it still ``fails``; at most so many.

    When its own numbers let no more be taken off, others are tried: a product that happens to
    be 0 may hide the mistake.
    """
    if trial.form != "whole":
        plain = _seeded(replace(trial, form="whole"), (0, *_OTHER_SEEDS))
        trial = next(filter(fails, plain), trial)
    tries = 0
    for offsets in ((0,), _OTHER_SEEDS):
        found: Trial | None = trial
        while found is not None:
            trial, found = found, None
            for geometry in smaller(trial.geometry):
                geometry = limits.within(geometry)
                if _size(geometry) >= _size(trial.geometry) or tries >= most:
                    continue
                tries += len(offsets)
                fewer = _seeded(replace(trial, geometry=geometry), offsets)
                found = next(filter(fails, fewer), None)
                if found is not None:
                    break
    return trial


def _seeded(trial: Trial, offsets: Sequence[int]) -> Iterator[Trial]:
    return (replace(trial, seed=trial.seed + offset) for offset in offsets)


def _size(geometry: ConvGeometry) -> int:
    """Grows with everything that makes a convolution hard to follow."""
    border = sum(map(sum, geometry.padding))
    steps = sum(geometry.stride) + sum(geometry.dilation)
    sizes = sum(geometry.x_shape) + sum(geometry.weight_shape) + geometry.O
    return 10 * (steps + border + geometry.groups + (geometry.padding_mode != "zeros")) + sizes
