"""Grids of numbers, drawn the way the widgets draw them.

A picture is a row (or rows) of pieces: grids, and the signs between them::

    from convgrad import example
    from convgrad.figures.grids import Grid, draw, tap, window

    B = example("B")
    x, weight, bias, grad_output = B.arrays()
    figure = draw(
        Grid(x[0, 0], "x", title="x", lit=window(B.geometry, p=0, q=2)),
        "·",
        Grid(weight[0, 0], "kernel", title="w"),
        "=",
        Grid(y[0, 0], "result", title="y", lit=[(0, 2)]),
    )

**In a page of the book** the cell ends with the figure, and its options give it the words for
those who do not see it (``alt``, always) and, if wanted, a caption and a name to refer to::

    ```{code-cell} python
    ---
    tags: [remove-input]
    mystnb:
      image:
        alt: >-
          The kernel lies on rows 0 to 2 and columns 2 to 4 of x; output cell (0, 2) is lit.
      figure:
        caption: One window of $\\colx{x}$, one cell of $y$.
        name: fig-one-window
    ---
    sliding_window.one_window()
    ```

``{numref}`fig-one-window``` then says "Fig. 1".  Nothing else is needed: the figure follows
light and dark, shrinks on a phone as far as it stays legible and scrolls from there on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.patches import FancyArrowPatch, PathPatch, Rectangle
from matplotlib.path import Path

from ..geometry import ConvGeometry
from .style import BookFigure, color

__all__ = ["CELL", "Grid", "Label", "Link", "draw", "tap", "window"]

CELL = 36  # pixels of the page, as in the widgets
GAP = 14  # on each side of a sign
MARGIN = 6
TITLE, INDEX, CAPTION, NOTE, SIGN, LINE = 15.0, 11.0, 13.0, 9.0, 24.0, 18.0

Cell = tuple[int, int]


def window(geometry: ConvGeometry, p: int, q: int) -> list[Cell]:
    """The cells (h, v) that output cell (p, q) reads; some may lie on padding.

    Parameters
    ----------
    geometry : ConvGeometry
    p, q : int
        Row and column of the output.

    Returns
    -------
    list of pairs

    Examples
    --------
    >>> window(ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2, padding=1), p=0, q=1)
    [(-1, 0), (-1, 1), (0, 0), (0, 1)]
    """
    taps = [(i, j) for i in range(geometry.KH) for j in range(geometry.KW)]
    return [_cell(*geometry.source(p, q, i, j)) for i, j in taps]


def tap(geometry: ConvGeometry, i: int, j: int) -> list[Cell]:
    """The cells (h, v) that tap (i, j) meets, one for each output cell.

    Parameters
    ----------
    geometry : ConvGeometry
    i, j : int
        Row and column of the kernel.

    Returns
    -------
    list of pairs

    Examples
    --------
    >>> tap(ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, stride=2), i=0, j=1)
    [(0, 1), (0, 3), (2, 1), (2, 3)]
    """
    outputs = [(p, q) for p in range(geometry.OH) for q in range(geometry.OW)]
    return [_cell(*geometry.source(p, q, i, j)) for p, q in outputs]


def _cell(h: Any, v: Any) -> Cell:
    return int(h), int(v)


@dataclass(eq=False)
class Grid:
    """One grid of numbers.

    Parameters
    ----------
    numbers : 2-D array or list of rows
        A ``None`` stays empty, a string is shown as it is.
    role : str, default "ink"
        Whose colour it has: "x", "kernel", "grad_output", "result" or "ink".
    title : str, optional
        Above the grid.
    caption : str, optional
        Below it; a line break breaks the line.
    padding : pair of pairs, default ((0, 0), (0, 0))
        ((top, bottom), (left, right)) hatched cells around, as ``geometry.padding``.
    pad : str, default "0"
        What stands in a padding cell, "0" or "".
    lit : collection of pairs, optional
        The cells in strong colour, (row, column) in the grid's own numbers; padding is negative.
    faint : collection of pairs or str, optional
        The cells in grey; "rest" for all that are not lit.
    boxes : sequence of tuples, optional
        Rectangles drawn around cells, (row, column, rows, columns), such as a window.
    marks : mapping, optional
        Small words in a cell's lower right corner, ``{(row, column): "×2"}``.
    index : pair of str, optional
        Letters of the two axes, ("h", "v"): cell numbers stand at the top and the left.
    cell : float, default 36
        Pixels of a cell's side.

    Raises
    ------
    ValueError
        For rows of different lengths, and for cells outside the grid.

    Examples
    --------
    >>> next(iter(Grid([[1, 2, 3]], "kernel", padding=((0, 0), (1, 0))).cells()))
    (0, -1)
    """

    numbers: Any
    role: str = "ink"
    title: str = ""
    caption: str = ""
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    pad: str = "0"
    lit: Collection[Cell] = ()
    faint: Collection[Cell] | str = ()
    boxes: Sequence[tuple[int, int, int, int]] = ()
    marks: Mapping[Cell, str] = field(default_factory=dict)
    index: tuple[str, str] | None = None
    cell: float = CELL

    def __post_init__(self) -> None:
        self.numbers = [list(row) for row in self.numbers]
        widths = {len(row) for row in self.numbers}
        if len(widths) != 1 or not all(widths):
            raise ValueError(
                f"a grid needs rows of one length, at least one cell each; got {sorted(widths)}"
            )
        self.lit = {(int(r), int(c)) for r, c in self.lit}
        inside = set(self.cells())
        stray = sorted((self.lit | set(self.marks)) - inside)
        if stray:
            raise ValueError(f"cells {stray} lie outside {self.title or 'the grid'}: {self.span()}")
        if isinstance(self.faint, str):
            if self.faint != "rest":
                raise ValueError(f"faint is {self.faint!r}: give cells, or 'rest'")
            self.faint = inside - self.lit

    # ---- where things are ------------------------------------------------------------

    @property
    def rows(self) -> range:
        (top, bottom), _ = self.padding
        return range(-top, len(self.numbers) + bottom)

    @property
    def cols(self) -> range:
        _, (left, right) = self.padding
        return range(-left, len(self.numbers[0]) + right)

    def cells(self) -> Iterable[Cell]:
        return ((r, c) for r in self.rows for c in self.cols)

    def span(self) -> str:
        return f"rows {self.rows[0]} to {self.rows[-1]}, columns {self.cols[0]} to {self.cols[-1]}"

    def is_padding(self, cell: Cell) -> bool:
        row, col = cell
        return not (0 <= row < len(self.numbers) and 0 <= col < len(self.numbers[0]))

    def text(self, cell: Cell) -> str:
        if self.is_padding(cell):
            return self.pad
        return written(self.numbers[cell[0]][cell[1]])

    @property
    def width(self) -> float:
        return len(self.cols) * self.cell + (LINE if self.index else 0)

    @property
    def above(self) -> float:
        return (LINE + 6 if self.title else 0) + (LINE if self.index else 0)

    @property
    def body(self) -> float:
        return len(self.rows) * self.cell

    @property
    def below(self) -> float:
        lines = len(self.caption.split("\n")) if self.caption else 0
        return lines * LINE + (4 if lines else 0)

    def place(self, left: float, top: float) -> None:
        """Fix the corner of the cells on the page; ``draw`` calls this."""
        self._left = left + (LINE if self.index else 0)
        self._top = top

    def corner(self, cell: Cell) -> tuple[float, float]:
        """Upper left corner of a cell on the page, once the grid has its place."""
        row, col = cell
        x = self._left + (col - self.cols[0]) * self.cell
        return x, self._top + (row - self.rows[0]) * self.cell

    def middle(self, cell: Cell) -> tuple[float, float]:
        x, y = self.corner(cell)
        return x + self.cell / 2, y + self.cell / 2

    # ---- drawing ---------------------------------------------------------------------

    def paint(self, ax: Any) -> None:
        self._paint_hatch(ax)
        for cell in self.cells():
            self._paint_cell(ax, cell)
        for cell in sorted(self.lit):  # last, so that no neighbour's rule covers the border
            ax.add_patch(
                Rectangle(self.corner(cell), self.cell, self.cell, fill=False, lw=2, ec=self.ink)
            )
        for row, col, height, width in self.boxes:
            ax.add_patch(
                Rectangle(
                    self.corner((row, col)),
                    width * self.cell,
                    height * self.cell,
                    fill=False,
                    lw=3,
                    ec=self.ink,
                )
            )
        for (row, col), mark in self.marks.items():
            x, y = self.corner((row, col))
            ax.text(
                x + self.cell - 3,
                y + self.cell - 3,
                mark,
                ha="right",
                va="baseline",
                fontsize=NOTE,
                color=color("muted"),
            )
        self._paint_words(ax)

    @property
    def ink(self) -> str:
        return color(self.role)

    @property
    def soft(self) -> str:
        return color("panel" if self.role == "ink" else f"{self.role}_soft")

    def _paint_cell(self, ax: Any, cell: Cell) -> None:
        padding, lit, faint = self.is_padding(cell), cell in self.lit, cell in self.faint
        corner = self.corner(cell)
        face = self.soft if lit else "none" if padding else color("paper")
        ax.add_patch(Rectangle(corner, self.cell, self.cell, fc=face, ec=color("rule"), lw=1))
        word = self.text(cell)
        if not word:
            return
        ink = color("padding") if padding or faint else color("ink")
        size = min(15.0, 1.55 * self.cell / max(len(word), 3))
        x, y = self.middle(cell)
        ax.text(
            x,
            y - (0.12 * self.cell if cell in self.marks else 0),  # room for the mark
            word,
            ha="center",
            va="center",
            fontsize=size * (0.85 if padding else 1),
            color=self.ink if lit and not padding else ink,
            fontweight="bold" if lit and not padding else "normal",
        )

    def _paint_hatch(self, ax: Any) -> None:
        """Diagonals on padding: lines, because an SVG pattern cannot follow the page's theme."""
        third = self.cell / 3
        strokes, corners = [], [self.corner(cell) for cell in self.cells() if self.is_padding(cell)]
        for x, y in corners:
            ax.add_patch(Rectangle((x, y), self.cell, self.cell, fc=color("padding_soft"), lw=0))
            for k in (1, 2, 3, 4, 5):  # where x + y = k·third, within the cell
                low, high = max(0, k - 3) * third, min(3, k) * third
                strokes += [(x + low, y + high), (x + high, y + low)]
        if strokes:
            codes = [Path.MOVETO, Path.LINETO] * (len(strokes) // 2)
            ax.add_patch(PathPatch(Path(strokes, codes), fill=False, lw=1, ec=color("rule")))

    def _paint_words(self, ax: Any) -> None:
        middle = self._left + len(self.cols) * self.cell / 2
        top = self._top - (LINE if self.index else 0)
        if self.title:
            ax.text(
                middle,
                top - 8,
                self.title,
                ha="center",
                va="baseline",
                fontsize=TITLE,
                fontweight="bold",
                color=self.ink,
            )
        if self.caption:
            for line, words in enumerate(self.caption.split("\n"), start=1):
                ax.text(
                    middle,
                    self._top + self.body + line * LINE,
                    words,
                    ha="center",
                    va="baseline",
                    fontsize=CAPTION,
                    color=color("muted"),
                )
        if self.index:
            small = {"fontsize": INDEX, "color": color("muted"), "ha": "center", "va": "center"}
            row_letter, col_letter = self.index
            for col in self.cols:
                ax.text(self.middle((self.rows[0], col))[0], self._top - 9, _number(col), **small)
            for row in self.rows:
                ax.text(self._left - 9, self.middle((row, self.cols[0]))[1], _number(row), **small)
            ax.text(
                self._left - 9,
                self._top - 9,
                f"{row_letter}\\{col_letter}",
                **(small | {"fontsize": NOTE, "fontstyle": "italic"}),
            )


@dataclass
class Label:
    """Words among the pieces, on one line or several, such as ``Label("turn by\\n180°")``."""

    words: str
    role: str = "muted"
    size: float = CAPTION
    arrow: bool = False  # an arrow to the right under the words


@dataclass
class Link:
    """A thin arrow from a cell of one grid to a cell of another."""

    start: Grid
    start_cell: Cell
    end: Grid
    end_cell: Cell
    role: str = "muted"


Piece = Grid | Label | str


def draw(
    *pieces: Piece | Sequence[Piece], caption: str = "", links: Sequence[Link] = ()
) -> BookFigure:
    """A figure of these pieces side by side; lists of pieces stand one below the other.

    Parameters
    ----------
    *pieces : Grid, Label, str, or lists of them
        A string is a sign between grids: "·", "=", "+", "→", "⋆", "Σ".
    caption : str, optional
        One line under everything, for what belongs to the picture itself.
    links : sequence of Link, optional
        Arrows from cell to cell.

    Returns
    -------
    BookFigure
        A matplotlib Figure in the book's colours, light and dark.

    Examples
    --------
    >>> draw(Grid([[1, 2]], "x", title="x"), "→", Grid([[3]], title="y")).words()
    ['1', '2', 'x', '→', '3', 'y']
    """
    rows = _rows(pieces)
    widths = [sum(_width(piece) for piece in row) for row in rows]
    width = max(*widths, _text_width(caption, CAPTION)) + 2 * MARGIN
    heights = [_heights(row) for row in rows]
    height = sum(map(sum, heights)) + 22 * (len(rows) - 1) + 2 * MARGIN
    height += LINE + 6 if caption else 0

    figure = BookFigure(math.ceil(width), math.ceil(height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, math.ceil(width)), ylim=(math.ceil(height), 0))
    ax.set_axis_off()

    top = float(MARGIN)
    for row, total, (above, body, below) in zip(rows, widths, heights, strict=True):
        left = (width - total) / 2
        for piece in row:
            middle = top + above + body / 2
            if isinstance(piece, Grid):
                piece.place(left + (_width(piece) - piece.width) / 2, middle - piece.body / 2)
                piece.paint(ax)
            else:
                _paint_label(ax, piece, left + _width(piece) / 2, middle)
            left += _width(piece)
        top += above + body + below + 22
    for link in links:
        _paint_link(ax, link)
    if caption:
        ax.text(
            width / 2,
            height - MARGIN - 4,
            caption,
            ha="center",
            va="baseline",
            fontsize=CAPTION,
            color=color("muted"),
        )
    return figure


def written(value: Any) -> str:
    """A number as the book writes it: no ``.0``, a real minus sign; ``None`` is nothing.

    >>> [written(v) for v in (3.0, -0.5, None, "?")]
    ['3', '−0.5', '', '?']
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value + 0:.6g}".replace("-", "−") if value else "0"


def _number(value: int) -> str:
    return str(value).replace("-", "−")


def _rows(pieces: Sequence[Any]) -> list[list[Piece]]:
    """Lists of pieces are rows; single pieces make one row."""
    if pieces and all(isinstance(piece, list | tuple) for piece in pieces):
        return [list(row) for row in pieces]
    return [list(pieces)]


def _text_width(words: str, size: float) -> float:
    """A safe guess: the reader's font is not known here, so never depend on a tight fit."""
    return 0.58 * size * max(map(len, words.split("\n")))


def _width(piece: Piece) -> float:
    if isinstance(piece, Grid):
        words = _text_width(piece.title, TITLE), _text_width(piece.caption, CAPTION)
        return max(piece.width, *words)
    if isinstance(piece, Label):
        return _text_width(piece.words, piece.size) + 2 * GAP
    return _text_width(piece, SIGN) + 2 * GAP


def _heights(row: list[Piece]) -> tuple[float, float, float]:
    grids = [piece for piece in row if isinstance(piece, Grid)]
    words = [piece.words.count("\n") + 2 for piece in row if isinstance(piece, Label)]
    body = max([grid.body for grid in grids] + [LINE * lines for lines in words], default=CELL)
    above, below = 0.0, 0.0
    for grid in grids:
        slack = (body - grid.body) / 2  # a lower grid has its words within the row's height
        above, below = max(above, grid.above - slack), max(below, grid.below - slack)
    return above, body, below


def _paint_label(ax: Any, piece: Label | str, x: float, y: float) -> None:
    sign = Label(piece, "ink", SIGN) if isinstance(piece, str) else piece
    lines = sign.words.split("\n")
    first = y - (len(lines) - 1) / 2 * LINE - (10 if sign.arrow else 0)
    for line, words in enumerate(lines):
        ax.text(
            x,
            first + line * LINE,
            words,
            ha="center",
            va="center",
            fontsize=sign.size,
            color=color(sign.role),
        )
    if sign.arrow:
        half = (_width(sign) - GAP) / 2
        _arrow(ax, (x - half, y + 10 + LINE * (len(lines) - 1) / 2), (x + half, None), sign.role)


def _paint_link(ax: Any, link: Link) -> None:
    _arrow(ax, link.start.middle(link.start_cell), link.end.middle(link.end_cell), link.role, 14)


def _arrow(
    ax: Any,
    start: tuple[float, float],
    end: tuple[float, float | None],
    role: str,
    shrink: float = 0,
) -> None:
    end = (end[0], start[1] if end[1] is None else end[1])
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>,head_length=5,head_width=2.5",
            shrinkA=shrink,
            shrinkB=shrink,
            mutation_scale=1,
            lw=1.5,
            color=color(role),
        )
    )
