"""Exercises for *The input gradient is a transposed convolution*."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import windows
from ..checks import Draw, random_geometry, random_operands
from ..examples import Example, example
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from ..transpose import conv_transpose2d
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import like, redrawn
from .words import called, given, mutant_says, numbers_of, turned, written_out

__all__ = ["EXERCISES"]

_CHAPTER = "input_gradient"
_B = example("B")


def _grad_input(letter: str) -> np.ndarray:
    """The input gradient of a running example, (N,C,H,W)."""
    _, weight, _, g = example(letter).arrays()
    return windows.grad_input(g, weight, example(letter).geometry)


def _mutated(name: str, letter: str) -> np.ndarray:
    """What a mutant gives on a running example."""
    _, weight, _, g = example(letter).arrays()
    return MUTANTS[name](g, weight, example(letter).geometry)


# ---- the one pixel of example A ------------------------------------------------------------


# Not example A's own gradient, whose answer an earlier chapter prints.
_PIXEL_G = np.array([[[[1.0, -1.0], [2.0, 3.0]]]])
_OTHER = replace(
    example("A"),
    fill=lambda geometry: example("A").arrays()._replace(grad_output=_PIXEL_G.copy()),
)


def _one_pixel(of: Example, name: str | None = None) -> float:
    """What the pixel gets, or what a mutant gives it."""
    rule = windows.grad_input if name is None else MUTANTS[name]
    _, weight, _, g = of.arrays()
    return rule(g, weight, of.geometry).item()


def _one_pixel_mistakes(of: Example) -> list[tuple[float, str]]:
    weight, g = of.arrays().weight, of.arrays().grad_output[0, 0]
    middle = weight[0, 0, 1:3, 1:3]
    return [
        (
            _one_pixel(of, "dgrad_no_flip"),
            "You laid grad_output on the middle of the kernel as it is. But as the window moves "
            "right, the pixel lies under a tap further left.",
        ),
        (
            (g * weight[0, 0, :2, :2]).sum(),
            "Those are the taps of the upper left corner. Without the border the pixel would lie "
            "there; the padding pushes it two rows and columns into the first window.",
        ),
        (
            g.sum() * weight.sum(),
            "That lets every weight meet every number. Each window covers the pixel with one tap.",
        ),
        (
            middle[1, 1] * g[0, 0],
            "That is the first window alone. Every window that covers the pixel adds a product.",
        ),
    ]


@redrawn(of=like("A"))
def _pixel(of: Example = _OTHER) -> Number:
    other = "another upstream gradient" if of is _OTHER else "numbers of your own"
    return Number(
        key="input-one-pixel",
        chapter=_CHAPTER,
        level=1,
        title="One pixel collects",
        prompt=(
            f"Example A, but with {other}. The image is one pixel with a border of "
            "two zeros on every side, so four windows cover it. Which number is "
            "`grad_input[0, 0, 0, 0]`?\n\n" + numbers_of(of, "weight", "grad_output")
        ),
        hints=(
            "In the window of output cell (0, 0) the pixel lies under tap (2, 2). Under which in "
            "the other three?",
            "When the window goes one column to the right, the tap is one column further left.",
            "Four products: `grad_output[p, q]` times `weight[2 − p, 2 − q]`.",
        ),
        compute=lambda: _one_pixel(of),
        compute_mistakes=lambda: _one_pixel_mistakes(of),
        explanation=(
            "The four numbers of grad_output meet the middle of the kernel, turned by 180°. Nobody "
            "turned it: the window moved."
        ),
        solution=(
            f"{given(of, 'weight', 'grad_output')}\n"
            "answer = (grad_output[0, 0] * weight[0, 0, 1:3, 1:3][::-1, ::-1]).sum()"
        ),
    )


# ---- one cell near the edge ----------------------------------------------------------------


def _cells(of: Example, name: str | None = None) -> np.ndarray:
    """The input gradient of one channel, (H, W), or what a mutant makes of it."""
    _, weight, _, g = of.arrays()
    rule = windows.grad_input if name is None else MUTANTS[name]
    return rule(g, weight, of.geometry)[0, 0]


def _one_cell_mistakes(of: Example, h: int, v: int) -> list[tuple[float, str]]:
    _, weight, _, g = of.arrays()
    first = max(0, h - 2)  # the first row of windows that covers the cell
    reading = (q for q in range(3) if 0 <= v - q < 3)
    one_row = sum(g[0, 0, first, q] * weight[0, 0, h - first, v - q] for q in reading)
    return [
        (_cells(of, "dgrad_no_flip")[h, v], mutant_says("dgrad_no_flip")),
        (
            _cells(of)[v, h],
            f"That is cell ({v}, {h}): the row comes first, `h` counts down, `v` to the right.",
        ),
        (
            one_row,
            "Those are the windows of one row of grad_output. Other rows of windows cover the cell "
            "too.",
        ),
        (_cells(of, "col2im_assign")[h, v], mutant_says("col2im_assign")),
        (_cells(of, "avg_fold")[h, v], mutant_says("avg_fold")),
    ]


# Cell (1, 2) is asked for in the chapter before.
@redrawn(lambda of, h, v: h != v, of=like("B"), h=(0, 4), v=(0, 4))
def _one_cell(of: Example = _B, h: int = 2, v: int = 0) -> Number:
    return Number(
        key="input-one-cell",
        chapter=_CHAPTER,
        level=1,
        title="A cell near the edge",
        prompt=(
            f"{called(of)}: which number is `grad_input[0, 0, {h}, {v}]`? Not all windows cover "
            f"this cell.\n\n{numbers_of(of, 'weight', 'grad_output')}"
        ),
        hints=(
            f"Window (p, q) covers cell ({h}, {v}) with tap ({h} − p, {v} − q), if there is such a "
            "tap.",
            "Taps have rows and columns 0 to 2, and so have the windows. Which p are left, and "
            "which q?",
            "Each of these windows sends its number of grad_output, times the weight of its tap.",
        ),
        compute=lambda: _cells(of)[h, v],
        compute_mistakes=lambda: _one_cell_mistakes(of, h, v),
        explanation=(
            "Each window that covers the cell does so with another tap: as the window moves on, "
            "the tap moves back. What they send is added up."
        ),
        solution=(
            f"{given(of, 'weight', 'grad_output')}\n"
            "answer = 0\n"
            "for p, q in np.ndindex(3, 3):\n"
            f"    i, j = {h} - p, {v} - q\n"
            "    if 0 <= i < 3 and 0 <= j < 3:\n"
            "        answer += grad_output[0, 0, p, q] * weight[0, 0, i, j]"
        ),
    )


# ---- how many products meet in a cell ------------------------------------------------------


def _how_many_mistakes(h: int, v: int) -> list[tuple[int, str]]:
    g = example("C").geometry
    right = _readers(g, h, v)
    return [
        (
            g.N * right,
            "You counted both images. A cell of one image takes part in that image's output alone.",
        ),
        (
            g.KH * g.KW,
            "That would be right for stride 1 and a cell far from the edge. The stride leaves out "
            "windows.",
        ),
        (g.OH * g.OW, "Those are all windows of an image. Which of them cover this cell?"),
        (
            right // 2,
            "Look at rows and columns alike: what covers the row and what covers the column "
            "multiply.",
        ),
    ]


def _readers(g: ConvGeometry, h: int, v: int) -> int:
    """How many windows read cell (h, v)."""
    return int((g.rows == h).sum() * (g.cols == v).sum())


@redrawn(h=(0, 5), v=(0, 6))
def _how_many(h: int = 2, v: int = 4) -> Number:
    rows, cols = example("C").geometry.rows, example("C").geometry.cols
    down, across = int((rows == h).sum()), int((cols == v).sum())
    return Number(
        key="input-how-many",
        chapter=_CHAPTER,
        level=1,
        title="How many products meet?",
        prompt=(
            "Example C: two images of 6×7 with one channel, a 3×3 kernel, stride 2, no padding. "
            f"How many products w·g add up to `grad_input[0, 0, {h}, {v}]`?"
        ),
        hints=(
            f"In which rows does a window begin? Which of those windows cover row {h}?",
            "The windows begin in rows 0 and 2, and each covers three. Now the columns.",
        ),
        compute=lambda: _readers(example("C").geometry, h, v),
        compute_mistakes=lambda: _how_many_mistakes(h, v),
        explanation=(
            f"Of the windows, {down} along the rows and {across} along the columns cover it, so "
            f"{down * across} cover the cell, each with another tap. Its neighbours get other "
            "numbers of products: with stride 2 they alternate."
        ),
        solution=(
            f"g = example('C').geometry\nanswer = (g.rows == {h}).sum() * (g.cols == {v}).sum()"
        ),
    )


# ---- a row whose digits say which tap arrived ----------------------------------------------

_ROW = ConvGeometry(C=1, H=1, W=8, O=1, KH=1, KW=3, stride=(1, 2))
_TAPS = np.array([[[[1.0, 10.0, 100.0]]]])


def _row(sent: np.ndarray, name: str | None = None) -> np.ndarray:
    """The gradient of the row of eight cells, or what a mutant makes of it."""
    rule = windows.grad_input if name is None else MUTANTS[name]
    return rule(sent, _TAPS, _ROW)[0, 0]


def _row_mistakes(sent: np.ndarray) -> list[tuple[np.ndarray, str]]:
    dense = conv_transpose2d(sent, _TAPS)[0, 0]
    return [
        (
            _row(sent, "dgrad_no_flip"),
            "You laid the kernel down turned. Tap 0 reads the first cell of its window, so its "
            "product goes back to the first cell.",
        ),
        (
            _row(sent, "col2im_assign"),
            "Where two windows meet, one product was overwritten by the other. They add up.",
        ),
        (
            np.pad(dense, ((0, 0), (0, _ROW.W - dense.shape[1]))),
            "You laid the kernels one cell apart. The windows stood two apart, so that is where "
            "their products go back to.",
        ),
        (
            np.roll(_row(sent), 1),
            "The cell that no window reads is at the other end: the first window begins at the "
            "first cell.",
        ),
        (_row(sent, "dgrad_g_turned"), mutant_says("dgrad_g_turned")),
    ]


@redrawn(lambda a, b, c: len({a, b, c}) == 3, a=(1, 9), b=(1, 9), c=(1, 9))
def _stride_row(a: int = 1, b: int = 2, c: int = 3) -> Grid:
    sent = np.array([[[[a, b, c]]]], dtype=np.float64)
    return Grid(
        key="input-stride-row",
        chapter=_CHAPTER,
        level=2,
        title="Three kernels on eight cells",
        prompt=(
            "One row: x has 8 cells, the kernel 3 taps, the stride is 2, there is no padding, so "
            "`grad_output` has 3 numbers. Fill in the 8 numbers of `grad_input`.\n\n"
            + written_out(weight=_TAPS[0, 0], grad_output=sent[0, 0])
        ),
        starter=f"answer = [{a}, {10 * a}, ..., ..., ..., ..., ..., ...]",
        hints=(
            f"Lay the kernel down three times, times {a}, times {b}, times {c}, each two cells "
            "further right.",
            "Two kernels meet in cells 2 and 4. What becomes of what meets?",
            "The third kernel ends at cell 6. No window reads cell 7.",
        ),
        compute=lambda: _row(sent),
        compute_mistakes=lambda: _row_mistakes(sent),
        explanation=(
            "The digits say which taps arrived: one in the odd cells, two in those where windows "
            "meet, none in the last cell, which is the leftover."
        ),
        solution=(
            "answer = np.zeros(8)\n"
            f"for q, g in enumerate([{a}, {b}, {c}]):\n"
            "    answer[2 * q : 2 * q + 3] += g * np.array([1, 10, 100])\n"
            "answer = answer[None]"
        ),
    )


# ---- output_padding ------------------------------------------------------------------------


@redrawn(cells=[9, 10, 11, 13, 14, 15, 17, 18, 19])
def _output_padding(cells: int = 11) -> Number:
    of = ConvGeometry(C=1, H=1, W=cells, O=1, KH=1, KW=4, stride=(1, 4))
    return Number(
        key="input-output-padding",
        chapter=_CHAPTER,
        level=2,
        title="What the windows left over",
        prompt=(
            f"A row of {cells} cells, a kernel of 4 taps, stride 4, no padding. Which "
            "`output_padding` does "
            f"`conv_transpose2d` need along the row to give the input gradient its {cells} cells?"
        ),
        hints=(
            f"Where does window {of.OW - 1}, the last one, end? Is there room for another one?",
            f"{of.OW} windows, 4 apart and 4 wide, cover cells 0 to {4 * of.OW - 1}.",
        ),
        compute=lambda: of.leftover[1],
        compute_mistakes=lambda: [
            (
                0,
                "Then the result ends with the last window, and the cells behind it are missing.",
            ),
            (
                1,
                "Along a row with stride 2 it is never more than that. Here the stride is 4.",
            ),
            (
                of.stride[1],
                "As much as a whole stride cannot be left over: another window would have stood "
                "there.",
            ),
            (
                of.W - of.KW,
                "That is what is left behind the first window. There are more.",
            ),
        ],
        explanation=(
            f"({cells} − 4) mod 4 = {of.leftover[1]}: the windows read cells 0 to "
            f"{4 * of.OW - 1}, and "
            "what stands behind them gets the gradient 0."
        ),
        solution=f"answer = ({cells} - 4) % 4",
    )


# ---- which call ----------------------------------------------------------------------------

_SMALL = ConvGeometry(C=1, H=8, W=8, O=1, KH=3, KW=3, stride=2, padding=1)
_CALLS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "`conv_transpose2d(g, w, stride=2, padding=1)`": lambda g, w: conv_transpose2d(
        g, w, stride=2, padding=1
    ),
    "`conv_transpose2d(g, w, stride=1, padding=1, dilation=2)`": lambda g, w: conv_transpose2d(
        g, w, stride=1, padding=1, dilation=2
    ),
    "`conv_transpose2d(g, w, stride=2, padding=1, output_padding=1)`": lambda g, w: (
        conv_transpose2d(g, w, stride=2, padding=1, output_padding=1)
    ),
    "`conv_transpose2d(g, w[..., ::-1, ::-1], stride=2, padding=1, output_padding=1)`": (
        lambda g, w: conv_transpose2d(g, turned(w), stride=2, padding=1, output_padding=1)
    ),
}


def _right_call() -> int:
    """The place of the call that gives the input gradient."""
    draw = random_operands(_SMALL, np.random.default_rng(0))
    right = windows.grad_input(draw.grad_output, draw.weight, _SMALL)
    given = [call(draw.grad_output, draw.weight) for call in _CALLS.values()]
    (place,) = (k for k, grad in enumerate(given) if np.array_equal(grad, right))
    return place


_which_call = Choice(
    key="input-which-call",
    chapter=_CHAPTER,
    level=2,
    title="Which call?",
    prompt=(
        "The forward pass is `y = conv2d(x, w, stride=2, padding=1)` with x of 8×8 and a kernel "
        "of 3×3. Which call gives the gradient of x?"
    ),
    options=tuple(_CALLS),
    hints=(
        "conv_transpose2d lays the kernel down. Does it have to be turned for that?",
        "The padded image has 10 rows. How many of them do the windows cover?",
    ),
    compute=_right_call,
    compute_mistakes=lambda: [
        (
            0,
            "Nearly: it is 7×7. The windows leave one row and one column of the padded image "
            "unread.",
        ),
        (
            1,
            "In the weight gradient stride and dilation change places. Here kernels are laid down "
            "where the windows stood, a stride apart.",
        ),
        (
            3,
            "Laying down needs no turn. The kernel turns when you collect instead, and "
            "conv_transpose2d does that for itself.",
        ),
    ],
    explanation=(
        "The same weight, stride and padding as in the forward pass, and the leftover as "
        "output_padding."
    ),
    solution="answer = 2  # the forward pass' own arguments, and the leftover",
)


# ---- which mistake left these numbers ------------------------------------------------------

# Each choice beside the mutant that computes it.
_LEFT_BY = {
    "`=` was written where `+=` belongs.": "col2im_assign",
    "`grad_output` was turned by 180° first.": "dgrad_g_turned",
    "Each cell was divided by the number of windows that read it.": "avg_fold",
    "The kernel was turned by 180° before it was laid down.": "dgrad_no_flip",
}


def _crime() -> np.ndarray:
    return _mutated("dgrad_no_flip", "B")


def _culprit() -> int:
    """The place of the mistake that leaves the grid in the prompt; all four leave others."""
    given = [_mutated(name, "B") for name in _LEFT_BY.values()]
    (place,) = (k for k, grad in enumerate(given) if np.array_equal(grad, _crime()))
    return place


_what_happened = Choice(
    key="input-what-happened",
    chapter=_CHAPTER,
    level=2,
    title="What happened here?",
    prompt=(
        "Somebody computes the input gradient of example B and gets the `grad_input` below. It is "
        "wrong. Which mistake leaves these numbers?\n\n"
        + written_out(
            weight=example("B").arrays().weight[0, 0],
            grad_output=example("B").arrays().grad_output[0, 0],
            grad_input=_crime()[0, 0],
        )
    ),
    options=tuple(_LEFT_BY),
    hints=(
        "A corner is read by one window, so it holds one product. In the upper right that is w[0, "
        "2] = −1 times the 2 of grad_output. Here stands 0.",
        "Where nothing meets, nothing can be overwritten or divided. So two of the four are out.",
        "Cell (0, 1) is read by two windows. The first number of grad_output is a 1, the second a "
        "0: which weight did the 1 meet?",
    ),
    compute=_culprit,
    compute_mistakes=lambda: [
        (0, "Then the corners would be right, for nothing meets there: −2 in the upper right."),
        (1, "Then cell (0, 1) would be 2: the turned grad_output begins with 1 and 2."),
        (2, "Then the corners would be right, and cells read by nine windows would hold ninths."),
    ],
    explanation=(
        "The −1 in cell (0, 1) is the first number of grad_output times the weight −1 of the "
        "kernel's last row. With the kernel as it is, the first window puts w[0, 1] = 0 there."
    ),
    solution="answer = 3  # the kernel was turned",
)


# ---- even counts ---------------------------------------------------------------------------

_PAIRS = ((3, 2), (5, 3), (4, 2), (5, 2))  # kernel, stride


def _counts(taps: int, stride: int) -> np.ndarray:
    """How often the cells of a long row are read, away from its ends."""
    row = ConvGeometry(C=1, H=1, W=60, O=1, KH=1, KW=taps, stride=(1, stride))
    return np.bincount(row.cols.ravel(), minlength=row.W)[2 * taps : row.W - 2 * taps]


def _even() -> int:
    (place,) = (k for k, pair in enumerate(_PAIRS) if len(set(_counts(*pair))) == 1)
    return place


_checkerboard = Choice(
    key="input-checkerboard",
    chapter=_CHAPTER,
    level=3,
    title="No checkerboard",
    prompt=(
        "A transposed convolution makes a small map large. For which kernel and stride does every "
        "cell away from the edge collect equally many products?"
    ),
    options=tuple(f"kernel {k}×{k}, stride {s}" for k, s in _PAIRS),
    hints=(
        "Take one row. Cell v is reached by tap j where v − j is a multiple of the stride.",
        "So the taps of one cell lie a stride apart. For every v there should be equally many.",
    ),
    compute=_even,
    compute_mistakes=lambda: [
        (
            place,
            "Along a row some cells collect {} products and others {}.".format(
                *sorted(set(_counts(*pair).tolist()))
            ),
        )
        for place, pair in enumerate(_PAIRS)
        if place != _even()
    ],
    explanation=(
        "4 is a multiple of 2, so every cell finds 4/2 taps along each axis. Otherwise some cells "
        "find one tap more than others, and the map gets a pattern of the stride's size."
    ),
    solution="answer = 2  # the stride divides the kernel",
)


# ---- write it ------------------------------------------------------------------------------


def _input_trial(arguments: tuple[Any, ...], draw: Draw) -> Trial:
    geometry, _, weight, g = draw
    known = {"geometry": geometry, "target": "input", "weight": weight, "grad_output": g}
    return Trial(arguments, windows.grad_input(g, weight, geometry), known)


def _scatter_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = next(geometries(rng))
    steps: list[dict[str, Any]] = [{}, {"N": 3}, {"C": 2}, {"O": 3}]
    for sizes in (*steps, *({"N": 2, "C": 3, "O": 4},) * 3):
        draw = random_operands(replace(plain, **sizes), rng)
        yield _input_trial((draw.grad_output, draw.weight), draw)


_by_scatter = Function(
    key="input-by-scatter",
    chapter=_CHAPTER,
    level=2,
    title="Tap by tap",
    prompt=(
        "Write `grad_input(grad_output, weight)` with one loop over the taps: `grad_output` is "
        "`(N, O, OH, OW)`, `weight` is `(O, C, KH, KW)`, the result `(N, C, OH + KH − 1, "
        "OW + KW − 1)`. Stride, dilation and groups are 1, there is no padding."
    ),
    starter=(
        "def grad_input(grad_output, weight):\n"
        '    """grad_output (N,O,OH,OW), weight (O,C,KH,KW) → (N,C,H,W)"""\n'
        "    ..."
    ),
    hints=(
        "Tap (i, j) read the block of x that begins at row i, column j and is as large as "
        "grad_output. That is where its products go back to.",
        "Begin with `np.zeros`, and add to `grad[:, :, i : i + OH, j : j + OW]`.",
        'What to add: `np.einsum("nopq,oc->ncpq", grad_output, weight[:, :, i, j])`. It sums over '
        "the kernels o, all of which saw the cell.",
    ),
    trials=_scatter_trials,
    solution=(
        "def grad_input(grad_output, weight):\n"
        "    N, _, OH, OW = grad_output.shape\n"
        "    _, C, KH, KW = weight.shape\n"
        "    grad = np.zeros((N, C, OH + KH - 1, OW + KW - 1))\n"
        "    for i, j in np.ndindex(KH, KW):\n"
        "        tap = weight[:, :, i, j]  # o c\n"
        '        laid = np.einsum("nopq,oc->ncpq", grad_output, tap)\n'
        "        grad[:, :, i : i + OH, j : j + OW] += laid\n"
        "    return grad"
    ),
)


def _one_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1


def _leaves_rows(geometry: ConvGeometry) -> bool:
    return _one_group(geometry) and geometry.leftover != (0, 0)


def _gather_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_one_group):
        draw = random_operands(geometry, rng)
        yield _input_trial((draw.grad_output, draw.weight, geometry), draw)
    # one with a leftover, which the sizes above need not have
    left = random_geometry(rng, _leaves_rows, padding_modes=("zeros",))
    draw = random_operands(left, rng)
    yield _input_trial((draw.grad_output, draw.weight, left), draw)


_by_gather = Function(
    key="input-by-gather",
    chapter=_CHAPTER,
    level=3,
    title="With zeros and one convolution",
    prompt=(
        "Write `grad_input(grad_output, weight, geometry)` by collecting: put zeros between the "
        "cells of `grad_output`, turn the kernel, and call `conv2d` once. For any batch, channels, "
        "stride, zero padding and dilation, and one group. The result has the shape "
        "`geometry.x_shape`."
    ),
    starter=(
        "def grad_input(grad_output, weight, geometry):\n"
        '    """grad_output (N,O,OH,OW), weight (O,C,KH,KW) → geometry.x_shape"""\n'
        "    ..."
    ),
    hints=(
        "The spread array has `stride·(OH − 1) + 1 + leftover` rows, and "
        "`spread[:, :, ::sh, ::sw] = grad_output` fills it.",
        "conv2d sums over its input channels, and those are the kernels o now: exchange the first "
        "two axes of the turned weight.",
        "Pad by `span − 1` on every side, keep the dilation, and cut the image out of the result: "
        "it begins at row top, column left of `geometry.padding`.",
    ),
    trials=_gather_trials,
    solution=(
        "def grad_input(grad_output, weight, geometry):\n"
        "    N, O, OH, OW = grad_output.shape\n"
        "    (sh, sw), (rows, cols) = geometry.stride, geometry.leftover\n"
        "    size = sh * (OH - 1) + 1 + rows, sw * (OW - 1) + 1 + cols\n"
        "    spread = np.zeros((N, O, *size))\n"
        "    spread[:, :, ::sh, ::sw] = grad_output\n"
        "    turned = weight[..., ::-1, ::-1].swapaxes(0, 1)  # c o i j\n"
        "    border = geometry.span[0] - 1, geometry.span[1] - 1\n"
        "    found = conv2d(spread, turned, None, 1, border, geometry.dilation)\n"
        "    (top, _), (left, _) = geometry.padding\n"
        "    return found[..., top : top + geometry.H, left : left + geometry.W]"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _pixel,
    _one_cell,
    _how_many,
    _stride_row,
    _output_padding,
    _which_call,
    _what_happened,
    _checkerboard,
    _by_scatter,
    _by_gather,
)
