"""im2col: windows as columns, and columns added back to the image."""

from __future__ import annotations

import numpy as np

from ...dice import Dice
from ...geometry import ConvGeometry
from ...im2col import fold, unfold
from ...mutants import MUTANTS
from ...tables import multiplicity
from ..draws import free_geometry, in_words, numbers, table_of
from ..parts import Mistake, Question, Table

__all__ = ["IM2COL"]

_SIZES = {
    1: [(3, 3, 2, 2, 1, 0), (3, 4, 2, 2, 1, 0), (4, 3, 2, 2, 1, 0)],
    2: [(4, 4, 2, 2, 2, 0), (4, 3, 3, 2, 1, 0), (3, 4, 2, 3, 1, 0), (3, 3, 2, 2, 2, 1)],
    3: [(4, 4, 3, 3, 1, 0), (3, 3, 3, 3, 2, 1), (4, 4, 3, 2, 1, 0), (3, 4, 3, 3, 2, 1)],
}


def _geometry(dice: Dice, level: int) -> ConvGeometry:
    H, W, KH, KW, stride, padding = dice.one_of(_SIZES[level])
    return ConvGeometry(C=1, H=H, W=W, O=1, KH=KH, KW=KW, stride=stride, padding=padding)


def _told(geometry: ConvGeometry) -> str:
    return (
        f"A {geometry.KH}×{geometry.KW} window slides over an image of {geometry.H} rows and "
        f"{geometry.W} columns: {in_words(geometry)}."
    )


def _matrix(
    label: str, values: np.ndarray, geometry: ConvGeometry, blank: np.ndarray | None
) -> Table:
    """Rows by tap (i,j), columns by place (p,q)."""
    taps = tuple(f"{i},{j}" for i, j in np.ndindex(geometry.KH, geometry.KW))
    places = tuple(f"{p},{q}" for p, q in np.ndindex(geometry.OH, geometry.OW))
    return Table(label, values, ("i,j", "p,q"), blank=blank, rows=taps, columns=places)


def fill_columns(dice: Dice, level: int) -> Question | None:
    geometry = _geometry(dice, level)
    x = numbers(dice, geometry.x_shape, level)
    columns = unfold(x, geometry)[0]
    blank = np.ones(columns.shape, bool)
    blank[:, 0] = level > 1  # the first column as a pattern
    # row by row through the windows, where each window is one column
    crossed = columns.T.reshape(columns.shape)
    last = columns.shape[1] - 1
    p, q = divmod(last, geometry.OW)
    cells = [geometry.source(p, q, i, j) for i, j in np.ndindex(geometry.KH, geometry.KW)]
    named = ", ".join(f"x[{h},{v}]" if geometry.cell(h, v) else "0 (padding)" for h, v in cells)
    return Question(
        title="Windows as columns",
        text=(
            _told(geometry),
            "Write each window as one column of the matrix `U`: a row for each tap `i,j`, a "
            "column for each place `p,q`."
            + (" The first column is there already." if level == 1 else ""),
        ),
        given=(table_of("x", x[0, 0], "hv"),),
        asks=(_matrix("U", columns, geometry, blank),),
        answer=columns,
        working=(f"The last column, p,q = {p},{q}, is {named}",),
        mistakes=(Mistake(crossed, "Writes each window into a row, so the matrix is transposed."),),
        geometry=geometry,
        arrays={"x": x},
        about={"blank": blank},
        room=8,
    )


def fold_counts(dice: Dice, level: int) -> Question | None:
    geometry = free_geometry(dice, level)
    if geometry is None or (counts := multiplicity(geometry)).max() < 2:
        return None
    h, v = max(np.ndindex(counts.shape), key=lambda cell: counts[cell])
    return Question(
        title="Fold counts the overlaps",
        text=(
            _told(geometry),
            "All windows are written as columns (`unfold`), every number in the columns is "
            "replaced by 1, and the columns are added back (`fold`). What comes out?",
        ),
        asks=(Table("fold of ones", counts, ("h", "v"), blank=np.ones(counts.shape, bool)),),
        answer=counts,
        working=(
            f"Cell [{h},{v}] lies in {counts[h, v]} windows. All together there are "
            f"{geometry.KH * geometry.KW}·{geometry.OH * geometry.OW} = "
            f"{geometry.KH * geometry.KW * geometry.OH * geometry.OW} numbers in the columns; "
            f"{int(counts.sum())} of them come from the image",
        ),
        mistakes=(
            Mistake(
                np.minimum(counts, 1), "Takes fold for the inverse of unfold, or puts = for +=."
            ),
        ),
        geometry=geometry,
        room=24,
    )


def fold_back(dice: Dice, level: int) -> Question | None:
    geometry = _geometry(dice, level)
    shape = (1, geometry.KH * geometry.KW, geometry.OH * geometry.OW)
    columns = numbers(dice, shape, level)
    right = fold(columns, geometry)[0, 0]
    if multiplicity(geometry).max() < 2:
        return None
    h, v = max(np.ndindex(right.shape), key=lambda cell: multiplicity(geometry)[cell])
    found = [
        int(columns[0, i * geometry.KW + j, p * geometry.OW + q])
        for p, q, i, j in np.ndindex(geometry.OH, geometry.OW, geometry.KH, geometry.KW)
        if geometry.cell(*geometry.source(p, q, i, j)) == (h, v)
    ]
    added = " + ".join(f"({k})" if k < 0 else str(k) for k in found).replace("-", "−")
    total = str(int(right[h, v])).replace("-", "−")
    return Question(
        title="Add the columns back",
        text=(
            _told(geometry),
            "`Z` holds one column for each window. Add every number back to the cell that its "
            "tap read (`fold`)"
            + ("; what falls on the padding is lost." if geometry.padding[0][0] else "."),
        ),
        given=(_matrix("Z", columns[0], geometry, None),),
        asks=(Table("fold(Z)", right, ("h", "v"), blank=np.ones(right.shape, bool)),),
        answer=right,
        working=(f"Cell [{h},{v}]: {added} = {total}",),
        mistakes=_wrong(columns, geometry),
        geometry=geometry,
        arrays={"columns": columns},
        room=14,
    )


def _wrong(columns: np.ndarray, geometry: ConvGeometry) -> tuple[Mistake, ...]:
    """What the mutants of the same name do with the products of a gradient, done with columns."""
    places = np.arange(geometry.OH * geometry.OW)
    alone = [fold(columns * (places == place), geometry)[0, 0] for place in places]
    reads = [
        fold((places == place) * np.ones_like(columns), geometry)[0, 0] > 0 for place in places
    ]
    last = np.zeros_like(alone[0])
    for share, read in zip(alone, reads, strict=True):
        last[read] = share[read]  # over what lies there, where it should be added
    mean = sum(alone) / np.maximum(multiplicity(geometry), 1)
    results = {"fancy_plus_equals": last, "avg_fold": mean}
    return tuple(Mistake(value, MUTANTS[name].sentence, name) for name, value in results.items())


IM2COL = (fill_columns, fold_counts, fold_back)
