"""The pictures of the chapters, one function each; every number comes from the running examples.

They are rows of grids (:mod:`.grids`).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from .. import loops
from ..correlate import swapped
from ..examples import EXAMPLES, example
from ..geometry import ConvGeometry
from ..windows import forward as fast_forward
from .grids import Grid, Label, Piece, draw, tap, window, written
from .style import BookFigure, color

__all__ = [
    "blocks",
    "crop",
    "four_windows",
    "index_map",
    "one_tap",
    "one_window",
    "stride_becomes_dilation",
    "tracker_responses",
    "turned",
]


# ---- The sliding window ------------------------------------------------------------------


def one_window(p: int = 1, q: int = 2) -> BookFigure:
    """Example B: the window of output cell (p, q), the kernel, and the cell they make."""
    geometry, x, weight, bias, y = _forward("B")
    return draw(
        Grid(x[0, 0], "x", title="x", lit=window(geometry, p, q), index=("h", "v")),
        "·",
        Grid(weight[0, 0], "kernel", title="w", index=("i", "j")),
        f"+ {written(bias[0])} =",
        Grid(y[0, 0], "ink", title="y", lit=[(p, q)], faint="rest", index=("p", "q")),
    )


def index_map() -> BookFigure:
    """One row of x under a kernel of three taps: what stride, dilation and padding do to it.

    Left the first row of example C, right that of example B, from three positions each.
    """
    seven, five = (example(letter).arrays().x[0, 0, :1] for letter in "CB")
    columns = [
        ("stride 2", seven, ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, stride=2)),
        ("dilation 2", seven, ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, dilation=2)),
        ("padding 1", five, ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=3, padding=(0, 1))),
    ]
    rows = []
    for q in range(3):
        grids = []
        for name, row, geometry in columns:
            reads = window(geometry, 0, q)
            grids.append(
                Grid(
                    row,
                    "x",
                    title=name if q == 0 else "",
                    padding=geometry.padding,
                    lit=reads,
                    faint="rest",
                    marks={cell: f"w{_small(j)}" for j, cell in enumerate(reads)},
                    cell=26,
                )
            )
        rows.append([Label(f"q = {q}"), *_spaced(grids)])
    return draw(*rows)


def blocks(letter: str = "D") -> BookFigure:
    """Which channels of x each kernel reads, and which plane c of the kernel lies on them."""
    geometry = example(letter).geometry
    planes = [[""] * geometry.C for _ in range(geometry.O)]
    for o, c in product(range(geometry.O), range(geometry.CG)):
        planes[o][geometry.channel(o, c)] = f"c = {c}"
    lit = [(o, k) for o, k in product(range(geometry.O), range(geometry.C)) if planes[o][k]]
    return draw(
        Label("kernel o"),
        Grid(
            planes,
            "kernel",
            lit=lit,
            index=("o", "x"),
            cell=40,
            title="w[o, c]",
            caption="across: channel of x",
        ),
        Label("        "),
    )


def four_windows() -> BookFigure:
    """Example A: the padded map, and the one pixel under the kernel from all four positions.

    Each lower picture is the kernel with the pixel's place in it; the tap it lies under is lit.
    """
    geometry, x, weight, _, y = _forward("A")
    (top, _), (left, _) = geometry.padding
    padded = Grid(
        x[0, 0],
        "x",
        title="x with its border",
        padding=geometry.padding,
        lit=[(0, 0)],
        boxes=[(-top, -left, geometry.KH, geometry.KW)],
        caption="the frame is the window at p = 0, q = 0",
        cell=30,
    )
    pictures = []
    for p, q in product(range(geometry.OH), range(geometry.OW)):
        (i, j) = _tap_on_pixel(geometry, p, q)
        pictures.append(
            Grid(
                weight[0, 0],
                "kernel",
                lit=[(i, j)],
                faint="rest",
                caption=f"p = {p}, q = {q}\n{written(weight[0, 0, i, j])} · "
                f"{written(x[0, 0, 0, 0])} = {written(y[0, 0, p, q])}",
                cell=30,
            )
        )
    return draw([padded], [*_spaced(pictures)])


def tracker_responses() -> BookFigure:
    """Example E: three response maps; the area of a square is the response, the best is framed."""
    y = _tracker_output()
    maps, size, gap, top = y.shape[1], 11.0, 24.0, 28.0
    rows, cols = y.shape[2:]
    width = maps * cols * size + (maps - 1) * gap + 2
    figure = BookFigure(width, top + rows * size + 26)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(-1, width - 1), ylim=(top + rows * size + 26, 0))
    ax.set_axis_off()
    for o in range(maps):
        left = o * (cols * size + gap)
        ax.add_patch(
            Rectangle((left, top), cols * size, rows * size, fc=color("panel"), ec=color("rule"))
        )
        positive = np.maximum(y[0, o], 0)
        side = size * np.sqrt(positive / positive.max())
        squares = [
            Path([(h - a, v - a), (h + a, v - a), (h + a, v + a), (h - a, v + a), (h - a, v - a)])
            for (p, q), a in np.ndenumerate(side / 2)
            if a > 0.5
            for h, v in [(left + (q + 0.5) * size, top + (p + 0.5) * size)]
        ]
        ax.add_patch(PathPatch(Path.make_compound_path(*squares), fc=color("padding"), lw=0))
        p, q = np.unravel_index(y[0, o].argmax(), y[0, o].shape)
        ax.add_patch(
            Rectangle(
                (left + (q - 0.5) * size, top + (p - 0.5) * size),
                2 * size,
                2 * size,
                fill=False,
                ec=color("ink"),
                lw=2.5,
                gid="cg-peak",
            )
        )
        words: dict[str, Any] = {"ha": "center", "va": "baseline", "color": color("ink")}
        ax.text(left + cols * size / 2, top - 10, f"o = {o}", fontsize=15, **words)
        ax.text(
            left + cols * size / 2,
            top + rows * size + 20,
            f"most at p = {p}, q = {q}",
            fontsize=13,
            **(words | {"color": color("muted")}),
        )
    return figure


# ---- The weight gradient is a convolution ------------------------------------------------


def one_tap(i: int = 1, j: int = 2) -> BookFigure:
    """Example B: the cells that tap (i, j) met, the upstream gradient, and the sum they make."""
    geometry, x, grad_output, grad_weight = _backward("B")
    return draw(
        Grid(x[0, 0], "x", title="x", lit=tap(geometry, i, j), index=("h", "v")),
        "·",
        Grid(grad_output[0, 0], "grad_output", title="g", index=("p", "q")),
        "=",
        Grid(
            grad_weight[0, 0], "result", title="∂L/∂w", lit=[(i, j)], faint="rest", index=("i", "j")
        ),
    )


def turned() -> BookFigure:
    """Example A: where each cell of g lands in the weight gradient."""
    geometry, x, grad_output, grad_weight = _backward("A")
    outputs = list(product(range(geometry.OH), range(geometry.OW)))
    landed = {(p, q): _tap_on_pixel(geometry, p, q) for p, q in outputs}
    g = Grid(grad_output[0, 0], "grad_output", title="g", index=("p", "q"), lit=outputs)
    result = Grid(
        grad_weight[0, 0],
        "result",
        title="∂L/∂w",
        lit=landed.values(),
        faint="rest",
        index=("i", "j"),
    )
    return draw(
        g,
        Label(f"times {written(x[0, 0, 0, 0])},\nturned by 180°", arrow=True),
        result,
    )


def stride_becomes_dilation() -> BookFigure:
    """One row of example C: what a position reads, and what a tap meets."""
    geometry, x, _, _ = _backward("C")
    row = x[0, 0, :1]
    rows: list[list[Piece]] = []
    for k in range(geometry.KW):
        reads = [geometry.source(0, k, 0, j)[1] for j in range(geometry.KW)]
        meets = [geometry.source(0, q, 0, k)[1] for q in range(geometry.OW)]
        first = k == 0
        rows.append(
            [
                Label(f"q = {k}"),
                Grid(
                    row,
                    "x",
                    lit=[(0, v) for v in reads],
                    faint="rest",
                    marks={(0, v): f"w{_small(j)}" for j, v in enumerate(reads)},
                    cell=30,
                    title="x under w" if first else "",
                ),
                Label("   "),
                Label(f"j = {k}"),
                Grid(
                    row,
                    "x",
                    lit=[(0, v) for v in meets],
                    faint="rest",
                    marks={(0, v): f"g{_small(q)}" for q, v in enumerate(meets)},
                    cell=30,
                    title="x under g" if first else "",
                ),
            ]
        )
    return draw(*rows)


def crop() -> BookFigure:
    """Example C: the convolution of x with g, and the part of it that is the weight gradient."""
    geometry, x, grad_output, grad_weight = _backward("C")
    full = uncropped(x, grad_output, geometry)[0, 0]
    rows, cols = full.shape
    kept = [(i, j) for i, j in product(range(geometry.KH), range(geometry.KW))]
    rest = [cell for cell in product(range(rows), range(cols)) if cell not in kept]
    return draw(
        Grid(full, "result", title="g over x", lit=kept, faint=rest, index=("i", "j")),
        Label("crop", arrow=True),
        Grid(grad_weight[0, 0], "result", title="∂L/∂w", lit=kept, index=("i", "j")),
    )


def uncropped(x: np.ndarray, grad_output: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The convolution of x with g before the crop, (O, C, KH + surplus, KW + surplus).

    Batch and channels, stride and dilation stand in each other's place; for one group.
    """
    search = swapped(geometry)  # c n h v, searched with o n p q
    return loops.forward(x.swapaxes(0, 1), grad_output.swapaxes(0, 1), search).swapaxes(0, 1)


# ---- shared ------------------------------------------------------------------------------


def _forward(
    letter: str,
) -> tuple[ConvGeometry, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    geometry = EXAMPLES[letter].geometry
    x, weight, bias, _ = EXAMPLES[letter].arrays()
    return geometry, x, weight, bias, loops.forward(x, weight, geometry) + bias[:, None, None]


def _backward(letter: str) -> tuple[ConvGeometry, np.ndarray, np.ndarray, np.ndarray]:
    geometry = EXAMPLES[letter].geometry
    x, _, _, grad_output = EXAMPLES[letter].arrays()
    return geometry, x, grad_output, loops.grad_weight(grad_output, x, geometry)


def _tracker_output() -> np.ndarray:
    geometry = EXAMPLES["E"].geometry
    x, weight, _, _ = EXAMPLES["E"].arrays()
    return fast_forward(x, weight, geometry)


def _tap_on_pixel(geometry: ConvGeometry, p: int, q: int) -> tuple[int, int]:
    """The tap that lies on the one pixel of a 1×1 map when the window stands at (p, q)."""
    taps = product(range(geometry.KH), range(geometry.KW))
    return next(t for t in taps if geometry.cell(*geometry.source(p, q, *t)) is not None)


def _small(index: int) -> str:
    """A number as a subscript."""
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(index))


def _spaced(pictures: list[Grid]) -> list[Piece]:
    """The pictures with a little air between them."""
    pieces: list[Piece] = []
    for picture in pictures:
        pieces += [Label(" ", size=6), picture]
    return pieces[1:]
