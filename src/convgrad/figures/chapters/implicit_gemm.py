"""The pictures of *Implicit GEMM*."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...examples import example
from ...geometry import ConvGeometry
from ...implicit import gemm, left, right
from ..grids import Grid, draw
from ..style import BookFigure

__all__ = ["Step", "one_row", "one_step", "readers", "step_of"]

# ---- one step of a tile ----------------------------------------------------------------------


class Step(NamedTuple):
    """What a program loads and adds in one step: k, two slices, the tile before and after."""

    k: np.ndarray
    g: np.ndarray
    x: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """What the step adds to the tile."""
        share: np.ndarray = self.g @ self.x
        return share


def step_of(number: int = 4, M: int = 2, N: int = 4, K: int = 4) -> Step:
    """Step ``number``, counted from 0, of the first tile of example D's first group."""
    geometry = example("D").geometry
    x, _, _, grad_output = example("D").arrays()
    rows, cols, terms = np.arange(M)[:, None], np.arange(N), gemm(geometry).K

    def slices(k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g = grad_output.ravel()[left(geometry, "weight", 0, rows, k)]
        return g, x.ravel()[right(geometry, "weight", 0, k[:, None], cols)]

    g, seen = slices(np.arange(number * K))
    before = g @ seen
    k = np.arange(number * K, min((number + 1) * K, terms))
    g, seen = slices(k)
    return Step(k, g, seen, before, before + g @ seen)


def one_step(o: int = 1, r: int = 1) -> BookFigure:
    """A slice of G times a slice of X, and their product added to the tile; (o, r) is lit."""
    step = step_of()
    first, last = int(step.k[0]), int(step.k[-1])
    across = [(o, at) for at in range(len(step.k))]
    down = [(at, r) for at in range(len(step.k))]

    def sums(numbers: np.ndarray, title: str, role: str = "result") -> Grid:
        return Grid(numbers, role, title=title, lit=[(o, r)], faint="rest", cell=33)

    return draw(
        [
            Grid(
                step.g,
                "grad_output",
                title="G",
                lit=across,
                faint="rest",
                caption=f"k = {first} … {last}",
                cell=33,
            ),
            "·",
            Grid(step.x, "x", title="X", lit=down, faint="rest", cell=33),
            "=",
            sums(step.share, "share", "ink"),
        ],
        [
            sums(step.before, "tile before"),
            "+",
            sums(step.share, "share", "ink"),
            "=",
            sums(step.after, "tile after"),
        ],
    )


# ---- who reads a cell ------------------------------------------------------------------------


class Row(NamedTuple):
    """The first row of everything in example C."""

    geometry: ConvGeometry
    weight: np.ndarray  # j
    grad_output: np.ndarray  # q
    found: np.ndarray  # v j: which q, or −1


def one_row() -> Row:
    """A row of seven cells under three taps with stride 2, and who reads what."""
    of = example("C").geometry
    _, weight, _, g = example("C").arrays()
    row = ConvGeometry(C=1, H=1, W=of.W, O=1, KH=1, KW=of.KW, stride=(1, of.stride[1]))
    found = left(row, "input", 0, np.arange(row.W)[:, None], np.arange(row.KW))
    return Row(row, weight[0, 0, 0], g[0, 0, 0], found)


def readers() -> BookFigure:
    """Cells down, taps across: the g of the window that has this tap on this cell, or a hole."""
    _, weight, g, found = one_row()
    table = [[g[q] if q >= 0 else 0 for q in row] for row in found]
    met = [(int(v), int(j)) for v, j in np.argwhere(found >= 0)]
    sums = np.array(table) @ weight
    return draw(
        Grid(
            table,
            "grad_output",
            title="g",
            index=("v", "j"),
            lit=met,
            faint="rest",
            marks={(v, j): f"q{found[v, j]}" for v, j in met},
        ),
        "·",
        Grid(weight[:, None], "kernel", title="w"),
        "=",
        Grid(sums[:, None], "result", title="∂L/∂x"),
    )
