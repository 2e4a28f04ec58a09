"""The pictures of *Stride, padding, dilation*."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...examples import EXAMPLES
from ...geometry import PADDING_MODES, ConvGeometry
from ...tables import multiplicity
from ..grids import CAPTION, Cell, Grid, Label, Piece, draw, window, written
from ..style import BookFigure, color
from .shared import small, spaced

__all__ = [
    "FITS",
    "STRIDES",
    "border_modes",
    "counts",
    "fits",
    "mode_counts",
    "modes",
    "never_read",
]

# A row with everything in it: a border, gaps between taps, steps, and cells that are left over.
FITS = ConvGeometry(C=1, H=1, W=11, O=1, KH=1, KW=3, stride=3, dilation=2, padding=(0, 1))

# Nine by nine cells under 3×3 taps, stride 2: without and with a dilation of 2.
STRIDES = tuple(
    ConvGeometry(C=1, H=9, W=9, O=1, KH=3, KW=3, stride=2, dilation=dilation) for dilation in (1, 2)
)


def border_modes(padding: int = 1, taps: int = 3) -> dict[str, ConvGeometry]:
    """Five by five cells under a square kernel, once for each padding mode."""
    return {
        mode: ConvGeometry(C=1, H=5, W=5, O=1, KH=taps, KW=taps, padding=padding, padding_mode=mode)
        for mode in PADDING_MODES
    }


def fits() -> BookFigure:
    """One row with its border, and the window in every place where it fits."""
    geometry = FITS
    _, (left, right) = geometry.padding
    windows = [window(geometry, 0, q) for q in range(geometry.OW)]
    lit = [(q, v) for q, reads in enumerate(windows) for _, v in reads]
    taps = {
        (q, v): f"w{small(j)}" for q, reads in enumerate(windows) for j, (_, v) in enumerate(reads)
    }
    grid = Grid(
        [[taps.get((q, v), "") for v in range(geometry.W)] for q in range(geometry.OW)],
        "kernel",
        padding=((0, 0), (left, right)),
        pad="",
        lit=lit,
        index=("q", "v"),
        boxes=[(q, reads[0][1], 1, geometry.span[1]) for q, reads in enumerate(windows)],
        caption=" ",
    )
    figure = draw(grid)
    for cell in taps:
        if grid.is_padding(cell):
            _write(figure, grid, cell, taps[cell], color=grid.ink, fontweight="bold")
    over = [
        (geometry.OW - 1, v)
        for v in range(geometry.W + right - geometry.leftover[1], geometry.W + right)
    ]
    x = sum(grid.middle(cell)[0] for cell in over) / len(over)
    y = grid.corner((geometry.OW - 1, 0))[1] + grid.cell + 18
    figure.axes[0].text(
        x, y, "left over", ha="center", va="baseline", fontsize=CAPTION, color=color("muted")
    )
    return figure


def _write(figure: BookFigure, grid: Grid, cell: Cell, word: str, **look: Any) -> None:
    """A word of its own in a cell of the border."""
    x, y = grid.middle(cell)
    lift = 0.12 * grid.cell if cell in grid.marks else 0
    figure.axes[0].text(x, y - lift, word, ha="center", va="center", fontsize=15, **look)


def modes() -> BookFigure:
    """The first row of example B with two border cells on each side, in every padding mode.

    The small mark in a border cell says which cell of the row is read there.
    """
    row, width = EXAMPLES["B"].arrays().x[0, 0, :1], 2
    grids: list[tuple[Grid, dict[Cell, Cell | None]]] = []
    for mode in PADDING_MODES:
        geometry = ConvGeometry(
            C=1, H=1, W=row.shape[1], O=1, KH=1, KW=1, padding=(0, width), padding_mode=mode
        )
        border = [(0, v) for v in range(-width, geometry.W + width)]
        reads = {cell: geometry.cell(*cell) for cell in border}
        grid = Grid(
            row,
            "x",
            padding=geometry.padding,
            pad="",
            lit=[(0, v) for v in range(geometry.W)],
            marks={c: f"v = {at[1]}" for c, at in reads.items() if at is not None and at != c},
            cell=40,
        )
        grids.append((grid, reads))
    rows: list[list[Piece]] = [
        [Label(f"{mode:>9}"), grid] for mode, (grid, _) in zip(PADDING_MODES, grids, strict=True)
    ]
    figure = draw(*rows)
    for grid, reads in grids:
        for cell, at in reads.items():
            if grid.is_padding(cell):
                word = "0" if at is None else written(row[at])
                _write(figure, grid, cell, word, color=color("muted"))
    return figure


def counts(letter: str = "C") -> BookFigure:
    """How often the windows of an example read each row, each column, and each cell."""
    geometry = EXAMPLES[letter].geometry
    table = multiplicity(geometry)
    rows, cols = (
        np.array([(index == k).sum() for k in range(size)])
        for index, size in ((geometry.rows, geometry.H), (geometry.cols, geometry.W))
    )
    lost = [(h, v) for h, v in np.ndindex(table.shape) if not table[h, v]]
    lit = [(2, 4)]
    by_row = Grid([[n] for n in rows], "ink", title="rows", lit=[(lit[0][0], 0)], cell=34)
    by_col = Grid([cols], "ink", lit=[(0, lit[0][1])], cell=34)
    both = Grid(table, "x", index=("h", "v"), lit=lit, faint=lost, cell=34)

    gap, top, left = 44.0, 66.0, 12.0
    across = left + 34 + gap
    figure = BookFigure(across + geometry.W * 34 + 20, top + geometry.H * 34 + 10)
    ax = figure.add_axes((0, 0, 1, 1))
    width, height = figure.get_size_inches() * 72
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()
    by_row.title = ""
    by_row.place(left, top)
    by_col.place(across, top - 34 - 26)
    both.place(across - 18, top)  # its row numbers stand to the left of the cells
    for grid in (by_row, by_col, both):
        grid.paint(ax)
    ax.text(
        left + 17,
        top - 43,
        "×",
        ha="center",
        va="center",
        fontsize=24,
        color=color("muted"),
    )
    return figure


def never_read() -> BookFigure:
    """How often each of 9×9 cells is read with stride 2: dilation 1, and dilation 2."""
    pictures = []
    for geometry in STRIDES:
        table = multiplicity(geometry)
        most = [(int(h), int(v)) for h, v in np.argwhere(table == table.max())]
        never = [(int(h), int(v)) for h, v in np.argwhere(table == 0)]
        pictures.append(
            Grid(
                table,
                "x",
                title=f"dilation {geometry.dilation[0]}",
                lit=most if not never else [(int(h), int(v)) for h, v in np.argwhere(table)],
                faint=never,
                cell=26,
                caption=f"{table.size - len(never)} of {table.size} are read",
            )
        )
    return draw([*spaced(pictures)])


def mode_counts() -> BookFigure:
    """How often 5×5 cells are read by 3×3 taps with a border of 1, in every padding mode."""
    pictures = []
    for mode, geometry in border_modes().items():
        table, taps = multiplicity(geometry), geometry.KH * geometry.KW
        least, most = written(table.min()), written(table.max())
        pictures.append(
            Grid(
                table,
                "x",
                title=mode,
                lit=[(int(h), int(v)) for h, v in np.argwhere(table > taps)],
                faint=[(int(h), int(v)) for h, v in np.argwhere(table < taps)],
                cell=28,
                caption=f"{least} to {most}" if least != most else f"{least} everywhere",
            )
        )
    return draw([*spaced(pictures[:2])], [*spaced(pictures[2:])])
