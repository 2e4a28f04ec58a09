"""Exercises for *im2col: unfold + mm*."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .. import im2col, windows
from ..checks import random_operands
from ..examples import example
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import maps, redrawn
from .words import numbers_of

__all__ = ["EXERCISES"]

_CHAPTER = "im2col"
_D = example("D").geometry

# ---- one number of the columns ---------------------------------------------------------------

_R, _L = 5, 2


def _entry(r: int, l: int) -> float:
    """The number in row r and column l of the first image of example C."""
    x, geometry = example("C").arrays().x, example("C").geometry
    return float(im2col.unfold(x, geometry)[0, r, l])


def _read(h: int, v: int) -> float:
    return float(example("C").arrays().x[0, 0, h, v])


def _entry_mistakes(r: int, l: int) -> list[tuple[float, str]]:
    g = example("C").geometry
    (i, j), (p, q) = divmod(r, g.KW), divmod(l, g.OW)
    return [
        (
            _read(p + i, q + j),
            "That is the cell with stride 1. Each position lies 2 rows or 2 columns from the next.",
        ),
        (
            _read(2 * p + j, 2 * q + i),
            f"You exchanged row and column of the tap. Row {r} belongs to tap ({i}, {j}).",
        ),
        (
            _read(2 * q + i, 2 * p + j),
            f"You exchanged row and column of the position. Column {l} belongs to position "
            f"({p}, {q}).",
        ),
        (
            _read(2 * i + p, 2 * j + q),
            "The stride multiplies the position, not the tap.",
        ),
    ]


@redrawn(
    # taps and positions off the diagonal, and what the mistakes read lies on the image
    lambda r, l: len({r // 3, r % 3}) == len({l // 3, l % 3}) == 2 and 2 * (l % 3) + r // 3 < 6,
    r=(0, 8),
    l=(0, 5),
)
def _one_entry(r: int = _R, l: int = _L) -> Number:
    (i, j), (p, q) = divmod(r, 3), divmod(l, 3)
    return Number(
        key="unfold-entry",
        chapter=_CHAPTER,
        level=1,
        title="One number of the columns",
        prompt=(
            "The first image of example C, a 3×3 kernel, stride 2. There are 3 positions across. "
            "Which "
            f"number stands in row {r} and column {l} of the matrix, both counted from 0?"
            f"\n\n{numbers_of('C', 'x')}"
        ),
        hints=(
            f"Row {r} is a tap. Divide by the width of the kernel: the quotient is the tap's row, "
            "the remainder its column.",
            f"Column {l} is a position. Divide by the number of positions across.",
            "Put tap and position into the index map: the stride times the position, plus the tap.",
        ),
        compute=lambda: _entry(r, l),
        compute_mistakes=lambda: _entry_mistakes(r, l),
        explanation=(
            f"Tap $({i},{j})$ at position $({p},{q})$, with stride 2, lies on row "
            f"${{2\\cdot{p}+{i}}}={2 * p + i}$ and column ${{2\\cdot{q}+{j}}}={2 * q + j}$ of the "
            "image."
        ),
        solution=(
            "x = example('C').arrays().x\n"
            f"i, j = divmod({r}, 3)\n"
            f"p, q = divmod({l}, 3)\n"
            "answer = x[0, 0, 2 * p + i, 2 * q + j]"
        ),
    )


# ---- its shape -------------------------------------------------------------------------------


def _shape(g: ConvGeometry) -> np.ndarray:
    """[[rows, columns]] of the columns of one image."""
    return np.array([[g.C * g.KH * g.KW, g.OH * g.OW]], dtype=np.float64)


def _shape_mistakes(g: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    (rows, cols) = _shape(g)[0]
    return [
        (np.array([[cols, rows]]), "Rows come first: they are the taps, the columns are windows."),
        (
            np.array([[g.KH * g.KW, cols]]),
            "Those are the taps of one channel. Every channel has its own rows.",
        ),
        (
            np.array([[g.CG * g.KH * g.KW, cols]]),
            "Those are the rows of one group. The columns hold all channels of the image.",
        ),
        (
            np.array([[rows, g.N * cols]]),
            "Those are the windows of all images. One image is asked for.",
        ),
        (
            np.array([[rows, g.H * g.W]]),
            "The windows are as many as there are output cells, not input cells.",
        ),
        (
            np.array([[g.O * rows / g.C, cols]]),
            "The number of kernels has no part in it: all of them use the same columns.",
        ),
    ]


@redrawn(
    lambda of: of.OH * of.OW != of.C * of.KH * of.KW,
    of=lambda dice: replace(
        _D, H=dice.between(5, 9), W=dice.between(4, 9), C=2 * dice.between(2, 4)
    ),
)
def _its_shape(of: ConvGeometry = _D) -> Grid:
    return Grid(
        key="unfold-shape",
        chapter=_CHAPTER,
        level=1,
        title="How large is the matrix?",
        prompt=(
            f"{'Example D: images' if of == _D else 'Images'} of {of.H}×{of.W} with {of.C} "
            "channels, 6 kernels of 3×2, stride 1, no padding, two groups. How many rows and "
            "columns has the matrix of *one* image?"
        ),
        starter="answer = [..., ...]  # rows, columns",
        hints=(
            "A column holds everything that lies under a window: all taps of all channels.",
            "There are as many columns as the window has positions.",
        ),
        compute=lambda: _shape(of),
        compute_mistakes=lambda: _shape_mistakes(of),
        explanation=(
            "$C\\cdot KH\\cdot KW$ rows, $OH\\cdot OW$ columns. Unfold knows nothing of groups; "
            "they cut the rows into blocks afterwards."
        ),
        solution=f"answer = [{of.C} * 3 * 2, {of.OH} * {of.OW}]",
    )


# ---- there and back --------------------------------------------------------------------------

_ROW = ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3, stride=2)


_COUNTED = np.arange(1.0, _ROW.W + 1)


def _back(x: np.ndarray, geometry: ConvGeometry = _ROW) -> np.ndarray:
    """fold(unfold(x)) as a table of one row."""
    return im2col.fold(im2col.unfold(x, geometry), geometry)[0, 0]


@redrawn(row=maps(7, low=1, high=9))
def _there_and_back(row: np.ndarray = _COUNTED) -> Grid:
    x = row.reshape(_ROW.x_shape)
    listed = [int(number) for number in row]
    return Grid(
        key="unfold-fold-row",
        chapter=_CHAPTER,
        level=2,
        title="There and back",
        prompt=(
            f"An image of one row, `{' '.join(map(str, listed))}`, and windows of three cells "
            "with stride 2. What is `fold(unfold(x))`?"
        ),
        starter="answer = [..., ..., ..., ..., ..., ..., ...]",
        hints=(
            "Which three windows are there? Write down the columns.",
            "Lay every column back on its window. Which cells are covered by two of them?",
            "Where two columns overlap, fold adds.",
        ),
        compute=lambda: _back(x),
        compute_mistakes=lambda: [
            (x[0, 0], "That is the image. Cells that lie in two windows come back twice."),
            (
                _back(np.ones_like(x)),
                "That is how often each cell is read. Multiply with what stands in it.",
            ),
            (
                _back(x, ConvGeometry(C=1, H=1, W=7, O=1, KH=1, KW=3)),
                "These are windows with stride 1. With stride 2 there are three.",
            ),
            (
                x[0, 0] ** 2,
                "You multiplied each cell with itself. Multiply with how often it is read.",
            ),
        ],
        explanation=(
            "The windows begin at cells 0, 2 and 4. Cells 2 and 4, which hold "
            f"{listed[2]} and {listed[4]}, lie in two of them and come back doubled."
        ),
        solution=(
            f"x = np.array({listed})\n"
            "answer = np.zeros(7)\n"
            "for q in range(3):\n"
            "    answer[2 * q : 2 * q + 3] += x[2 * q : 2 * q + 3]"
        ),
    )


# ---- which taps arrived ----------------------------------------------------------------------

# The case fancy-index-plus-equals.
_DIGITS = ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=3)


def _digit_operands() -> tuple[np.ndarray, np.ndarray]:
    """A grad_output of ones, and a kernel whose digits tell the taps apart."""
    return np.ones(_DIGITS.output_shape), np.array([[[[1.0, 10.0, 100.0]]]])


def _digits_of(name: str) -> np.ndarray:
    return MUTANTS[name](*_digit_operands(), _DIGITS)[0, 0]


_which_digits = Grid(
    key="unfold-digits",
    chapter=_CHAPTER,
    level=2,
    title="Which taps arrived?",
    prompt=(
        "One row of five cells, a kernel `1 10 100`, stride 1. `grad_output` is `1 1 1`. Fill in "
        "`grad_input`: in each cell the digits say which taps read it."
    ),
    starter="answer = [..., ..., ..., ..., ...]",
    hints=(
        "The kernel lies on cells 0 to 2, on 1 to 3 and on 2 to 4. Each time, what goes back to a "
        "cell is the weight that lies on it, times 1.",
        "The first cell lies under the first tap only, and only in the first window.",
        "The middle cell lies under every tap, once each.",
    ),
    compute=lambda: im2col.grad_input(*_digit_operands(), _DIGITS)[0, 0],
    compute_mistakes=lambda: [
        (
            _digits_of("dgrad_no_flip"),
            "You went through the taps from the wrong end. The first cell lies under the first "
            "tap, whose weight is 1.",
        ),
        (
            _digits_of("col2im_assign"),
            "Here the last tap that read a cell covers the others. They add.",
        ),
        (
            _digits_of("fancy_plus_equals"),
            "Here one tap is kept in each cell, the others are lost. They add.",
        ),
        (
            _digits_of("avg_fold"),
            "You divided by the number of taps. A gradient is the sum.",
        ),
        (
            np.full((1, 5), 111.0),
            "At the ends not every tap reads the cell: the kernel would lie outside.",
        ),
    ],
    operands=lambda: {
        "geometry": _DIGITS,
        "target": "input",
        "weight": _digit_operands()[1],
        "grad_output": _digit_operands()[0],
    },
    explanation=(
        "Tap after tap joins in from the left, and tap after tap leaves. If a digit is missing, a "
        "product was lost."
    ),
    solution=(
        "w = [1, 10, 100]\nanswer = np.zeros(5)\nfor q in range(3):\n    answer[q : q + 3] += w"
    ),
    same_for_all="The digits of the kernel are the point: they say which tap arrived where.",
)

# ---- which product ---------------------------------------------------------------------------

_PRODUCTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "`(g @ U).sum(0)`": lambda g, U: (g @ U).sum(0),
    "`(U @ g.swapaxes(1, 2)).sum(0)`": lambda g, U: (U @ g.swapaxes(1, 2)).sum(0),
    "`(g @ U.swapaxes(1, 2)).sum(0)`": lambda g, U: (g @ U.swapaxes(1, 2)).sum(0),
    "`(g @ U.swapaxes(1, 2)).mean(0)`": lambda g, U: (g @ U.swapaxes(1, 2)).mean(0),
}


def _matrices(letter: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """g (n o l) and U (n r l) of an example's first group, and the right product (o r)."""
    geometry = example(letter).geometry
    x, _, _, grad_output = example(letter).arrays()
    g = grad_output.reshape(geometry.N, geometry.O, -1)[:, : geometry.OG]
    U = im2col.unfold(x, geometry)[:, : geometry.CG * geometry.KH * geometry.KW]
    right = windows.grad_weight(grad_output, x, geometry)[: geometry.OG]
    return g, U, right.reshape(geometry.OG, -1)


def _gives_the_gradient(
    product: Callable[[np.ndarray, np.ndarray], np.ndarray], letter: str
) -> bool:
    g, U, right = _matrices(letter)
    try:
        return np.array_equal(product(g, U), right)
    except ValueError:  # the shapes do not fit
        return False


def _right_product() -> int:
    """The one that gives the gradient of example D, where all sizes differ."""
    (place,) = (k for k, each in enumerate(_PRODUCTS.values()) if _gives_the_gradient(each, "D"))
    return place


_which_product = Choice(
    key="unfold-which-product",
    chapter=_CHAPTER,
    level=2,
    title="Which product?",
    prompt=(
        "`g` has the axes n, o, l and `U` the axes n, r, l. Which line gives the weight gradient "
        "with the axes o, r?"
    ),
    options=tuple(_PRODUCTS),
    hints=(
        "A product of matrices sums over the second letter of the first and the first letter of "
        "the second. Which letter must be summed over?",
        "The loss is a sum over the images.",
    ),
    compute=_right_product,
    compute_mistakes=lambda: [
        (
            0,
            "This would sum over the second letter of g, which counts positions, and the first of "
            "U, which counts taps.",
        ),
        (1, "The numbers are right, but its axes are r, o."),
        (3, "This is the mean over the images. Their shares add."),
    ],
    explanation="With U turned over its diagonal, $l$ is summed over. Then the images are added.",
    solution="answer = 2  # U transposed, the images added",
)

# ---- the example that cannot see -------------------------------------------------------------

_BLIND = "ABCD"


def _blind_option(letter: str) -> str:
    _, U, _ = _matrices(letter)
    group = " of one group" if example(letter).geometry.groups > 1 else ""
    return f"Example {letter}, with {U.shape[1]}×{U.shape[2]} columns{group}"


def _blind_example() -> int:
    forgotten = _PRODUCTS["`(g @ U).sum(0)`"]
    (place,) = (k for k, letter in enumerate(_BLIND) if _gives_the_gradient(forgotten, letter))
    return place


_blind = Choice(
    key="unfold-blind-example",
    chapter=_CHAPTER,
    level=3,
    title="Which example cannot see it?",
    prompt=(
        "Somebody forgets to transpose `U` and computes the weight gradient as "
        "`(g @ U).sum(0)`. On one of the running examples the result is right all the same. On "
        "which?"
    ),
    options=tuple(map(_blind_option, _BLIND)),
    hints=(
        "For most of them the shapes do not even fit.",
        "The result is right if U equals its own transpose.",
    ),
    compute=_blind_example,
    compute_mistakes=lambda: [
        (
            k,
            "Here g has as many columns as U has, and U has another number of rows: the product "
            "cannot be formed.",
        )
        for k, letter in enumerate(_BLIND)
        if _matrices(letter)[1].shape[1] != _matrices(letter)[1].shape[2]
    ],
    explanation=(
        "In example B there are as many positions as taps, and row $(i,j)$, column $(p,q)$ holds "
        "the cell $(p+i,\\,q+j)$, which stays the same when tap and position are exchanged. A test "
        "with B alone lets this mistake pass."
    ),
    solution="answer = 1  # U is symmetric there",
)

# ---- write it --------------------------------------------------------------------------------


def _one_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1


def _weight_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_one_group):
        _, x, _, g = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
        right = windows.grad_weight(g, x, geometry)
        yield Trial((g, im2col.unfold(x, geometry), geometry), right, known)


_grad_weight = Function(
    key="unfold-grad-weight",
    chapter=_CHAPTER,
    level=2,
    title="The weight gradient from columns",
    prompt=(
        "Write `grad_weight(grad_output, columns, geometry)` with one product of matrices for each "
        "image: `grad_output` is `(N, O, OH, OW)`, `columns` is `(N, C·KH·KW, OH·OW)`, the result "
        "has the shape `geometry.weight_shape`. There is one group."
    ),
    starter=(
        "def grad_weight(grad_output, columns, geometry):\n"
        '    """(N,O,OH,OW), (N,C·KH·KW,OH·OW) → geometry.weight_shape"""\n'
        "    ..."
    ),
    hints=(
        "Give grad_output the shape (N, O, L): `grad_output.reshape(N, O, -1)`.",
        "`g @ columns.swapaxes(1, 2)` has the axes n, o, r: a product for each image.",
        "Add over the images and give the result the shape of the weights.",
    ),
    trials=_weight_trials,
    solution=(
        "def grad_weight(grad_output, columns, geometry):\n"
        "    N, O = grad_output.shape[:2]\n"
        "    g = grad_output.reshape(N, O, -1)  # n o l\n"
        "    shares = g @ columns.swapaxes(1, 2)  # n o r\n"
        "    return shares.sum(axis=0).reshape(geometry.weight_shape)"
    ),
)


def _fold_trials(rng: np.random.Generator) -> Iterator[Trial]:
    """The columns are wᵀ·g, so that what a mistake makes of them can be named."""
    for geometry in geometries(rng, only=_one_group):
        _, _, weight, g = random_operands(geometry, rng)
        products = weight.reshape(geometry.O, -1).T @ g.reshape(geometry.N, geometry.O, -1)
        known = {"geometry": geometry, "target": "input", "weight": weight, "grad_output": g}
        yield Trial((products, geometry), im2col.fold(products, geometry), known)


_fold = Function(
    key="unfold-fold",
    chapter=_CHAPTER,
    level=3,
    title="Fold",
    prompt=(
        "Write `fold(columns, geometry)`: `columns` is `(N, C·KH·KW, OH·OW)`, the result has the "
        "shape `geometry.x_shape`, and every number is added to the cell that its tap reads; what "
        "lies on padding is dropped. Any stride, zero padding and dilation. It is tried on columns "
        "that are products wᵀ·g, so a complaint may speak of grad_input."
    ),
    starter=(
        "def fold(columns, geometry):\n"
        '    """columns (N,C·KH·KW,OH·OW) → geometry.x_shape"""\n'
        "    ..."
    ),
    hints=(
        "Give the columns the axes n c i j p q, and make an array of zeros as large as the image "
        "with its border.",
        "One loop over the taps. Tap (i, j) starts at row dh·i and goes on in steps of sh; columns "
        "likewise: `padded[:, :, dh * i :: sh, dw * j :: sw]`. Of these the first OH and OW count.",
        "Add with `+=`, then cut the border off.",
    ),
    trials=_fold_trials,
    solution=(
        "def fold(columns, geometry):\n"
        "    N, C, H, W = geometry.x_shape\n"
        "    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation\n"
        "    KH, KW, OH, OW = geometry.KH, geometry.KW, geometry.OH, geometry.OW\n"
        "    taps = columns.reshape(N, C, KH, KW, OH, OW)\n"
        "    padded = np.zeros((N, C, *geometry.padded_size))\n"
        "    for i, j in np.ndindex(KH, KW):\n"
        "        there = padded[:, :, dh * i :: sh, dw * j :: sw]\n"
        "        there[:, :, :OH, :OW] += taps[:, :, i, j]\n"
        "    (top, _), (left, _) = geometry.padding\n"
        "    return padded[:, :, top : top + H, left : left + W]"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _one_entry,
    _its_shape,
    _there_and_back,
    _which_digits,
    _which_product,
    _grad_weight,
    _blind,
    _fold,
)
