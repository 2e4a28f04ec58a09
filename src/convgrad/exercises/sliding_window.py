"""Exercises for *The sliding window*: the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .. import windows
from ..checks import random_operands
from ..examples import Example, example
from ..geometry import ConvGeometry
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import like, redrawn
from .words import called, given, numbers_of, turned

__all__ = ["EXERCISES"]

_CHAPTER = "sliding_window"
_A, _B = example("A"), example("B")


def _output(of: Example, weight: np.ndarray | None = None, bias: bool = True) -> np.ndarray:
    """The output of an example, (N,O,OH,OW), with another kernel where one is given."""
    x, own, b, _ = of.arrays()
    y = windows.forward(x, own if weight is None else weight, of.geometry)
    return y + b[:, None, None] if bias else y


# ---- the number at one place of example B --------------------------------------------------


def _first_number_mistakes(of: Example, p: int, q: int) -> list[tuple[float, str]]:
    weight = of.arrays().weight
    return [
        (
            _output(of, bias=False)[0, 0, p, q],
            "Nearly: the nine products are right. The bias comes on top, once.",
        ),
        (
            _output(of, turned(weight))[0, 0, p, q],
            "You turned the kernel by 180°, as a convolution in the mathematical sense does. "
            "conv2d lays it on the window as it is.",
        ),
        (
            _output(of, weight.swapaxes(2, 3))[0, 0, p, q],
            "You exchanged rows and columns of the kernel: `i` counts down, `j` to the right.",
        ),
        (
            _output(of)[0, 0, q, p],
            f"That is the number at ({q}, {p}): the row comes first, `p` counts down.",
        ),
        (
            _output(of)[0, 0, p - 1, q - 1],
            "Your window begins one row and one column too early: rows and columns count from 0.",
        ),
    ]


@redrawn(lambda of, p, q: p != q, of=like("B"), p=(0, 2), q=(0, 2))
def _first_numbers(of: Example = _B, p: int = 1, q: int = 2) -> Number:
    return Number(
        key="window-first-numbers",
        chapter=_CHAPTER,
        level=1,
        title="Where the window stands",
        prompt=(
            f"{called(of)}: a 3×3 kernel slides over a 5×5 image, and the bias is "
            f"{of.arrays().bias[0]:g}. Which number does the convolution write at "
            f"`y[0, 0, {p}, {q}]`?\n\n{numbers_of(of, 'x', 'weight')}"
        ),
        hints=(
            f"The corner of the window stands at row {p}, column {q} of `x`. Which nine cells does "
            "it cover?",
            "Multiply each of the nine cells by the tap that lies on it, then add the nine "
            "products.",
            "The bias comes on top, once for each output cell.",
        ),
        compute=lambda: _output(of)[0, 0, p, q],
        compute_mistakes=lambda: _first_number_mistakes(of, p, q),
        explanation=(
            f"The window covers rows {p} to {p + 2} and columns {q} to {q + 2}; the nine products "
            "and the bias add up to this number."
        ),
        solution=(
            f"{given(of, 'x', 'weight', 'bias')}\n"
            f"answer = (x[0, 0, {p}:{p + 3}, {q}:{q + 3}] * weight[0, 0]).sum() + bias[0]"
        ),
    )


# ---- the size of the tracker's response ----------------------------------------------------


def _response_mistakes(geometry: ConvGeometry) -> list[tuple[int, str]]:
    return [
        (
            geometry.H - geometry.KH,
            "One too few: before the first step the template already stands at a first place.",
        ),
        (
            geometry.H,
            "That is the size of the search image. Without padding the template cannot stand at "
            "its last rows and columns.",
        ),
        (
            geometry.H + geometry.KH - 1,
            "That counts every place where the template touches the image. Here it must lie "
            "inside.",
        ),
        (
            geometry.H // geometry.KH,
            "That is how often the template fits side by side. It moves by one cell, not by its "
            "own height.",
        ),
        (
            geometry.H - geometry.KH + 2,
            "One too many: in the last place the template's lower edge lies on the last row, not "
            "below it.",
        ),
        (
            (geometry.H - geometry.KH) // 2 + 1,
            "That is a stride of 2. Here the template moves by one cell.",
        ),
    ]


@redrawn(size=(14, 30), template=(4, 8))
def _response_size(size: int = 22, template: int = 6) -> Number:
    book = example("E").geometry
    geometry = replace(book, H=size, W=size, KH=template, KW=template)
    named = "Example E: a tracker" if geometry == book else "A tracker"
    return Number(
        key="window-response-size",
        chapter=_CHAPTER,
        level=1,
        title="How tall is the response?",
        prompt=(
            f"{named} slides a template of {template}×{template} over a search image of {size}×"
            f"{size}, one cell at a time and without padding. How many rows does "
            "the response map have?"
        ),
        hints=(
            "In how many places can the template's upper edge stand?",
            "The first is row 0. In the last its lower edge lies on the last row of the image.",
            "The size formula says the same: stride 1, no padding, and the span is the template's "
            "height.",
        ),
        compute=lambda: geometry.OH,
        compute_mistakes=lambda: _response_mistakes(geometry),
        explanation=(
            "The upper edge of the template may stand in rows 0 to `H − KH`, which are `H − KH + "
            "1` rows."
        ),
        solution=f"answer = {size} - {template} + 1",
    )


# ---- the size with everything at once ------------------------------------------------------

_STEEP = ConvGeometry(C=1, H=10, W=11, O=1, KH=3, KW=3, stride=2, padding=1, dilation=2)


def _shape_of(geometry: ConvGeometry) -> np.ndarray:
    """[[rows, columns]] of the output."""
    return np.array([[geometry.OH, geometry.OW]], dtype=np.float64)


def _shape_mistakes(of: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    right, (stride, _), (border, _) = _shape_of(of), of.stride, of.padding[0]
    one_sided = replace(of, padding=((border, 0), (border, 0)))
    return [
        (right[:, ::-1], "Rows come first, then columns."),
        (
            _shape_of(replace(of, padding=((0, 0), (0, 0)))),
            f"One too few each way. Either the border is missing, {border} row at the top and "
            f"{border} at the bottom, or the first place, where the window stands before any step.",
        ),
        (
            _shape_of(replace(of, dilation=(1, 1))),
            "You left the dilation out. With gaps between its taps the kernel spans "
            f"{of.span[0]} rows.",
        ),
        (
            _shape_of(replace(of, stride=(1, 1))),
            f"You left the stride out. The window moves by {stride} from place to place.",
        ),
        (
            _shape_of(one_sided),
            f"The rows are right, one column is missing. Is the span {of.span[0]}, and did "
            "you count the border on both sides?",
        ),
    ]


@redrawn(of=lambda dice: replace(_STEEP, H=2 * dice.between(4, 9), W=2 * dice.between(4, 9) + 1))
def _predict_shape(of: ConvGeometry = _STEEP) -> Grid:
    return Grid(
        key="window-shape",
        chapter=_CHAPTER,
        level=1,
        title="How many rows and columns come out?",
        prompt=(
            f"A {of.KH}×{of.KW} kernel with stride {of.stride[0]}, padding "
            f"{of.padding[0][0]} and dilation {of.dilation[0]} runs over an image of "
            f"{of.H} rows and {of.W} columns. How many rows and columns has the output?"
        ),
        starter="answer = [..., ...]  # rows, columns",
        hints=(
            "How many rows does one window span? With dilation 2 there is a gap of one row between "
            "neighbouring taps.",
            "How many rows has the image with its border? Take the span off: that is the way the "
            "window can go.",
            "Divide the way by the stride, round down, and add 1 for the place where it begins.",
        ),
        compute=lambda: _shape_of(of),
        compute_mistakes=lambda: _shape_mistakes(of),
        explanation=(
            f"The span is {of.span[0]}. Rows: the window can go {of.padded_size[0]} − "
            f"{of.span[0]} = {of.padded_size[0] - of.span[0]}, in steps of "
            f"{of.stride[0]}, and {of.leftover[0]} is left over. Columns: "
            f"{of.padded_size[1]} − {of.span[1]} = "
            f"{of.padded_size[1] - of.span[1]}. Then 1 is added for the first place."
        ),
        solution=f"answer = [({of.H + 2} - 5) // 2 + 1, ({of.W + 2} - 5) // 2 + 1]",
    )


# ---- one pixel under a large kernel --------------------------------------------------------


def _pixel_mistakes(of: Example) -> list[tuple[np.ndarray, str]]:
    geometry = of.geometry
    x, weight, _, _ = of.arrays()
    (top, _), (left, _) = geometry.padding
    pixel, taps = x[0, 0, 0, 0], weight[0, 0]
    right = _output(of)[0, 0]
    return [
        (
            turned(right),
            "These are the right four numbers, turned by 180°. When the window moves down and to "
            "the right, the pixel moves up and to the left under the kernel.",
        ),
        (
            right / pixel,
            "These are the taps that lie on the pixel. Each is still multiplied by the pixel's "
            f"value, {pixel:g}.",
        ),
        (
            pixel * taps[: geometry.OH, : geometry.OW],
            f"You began at tap (0, 0). With padding {top} the pixel lies {top} rows and {left} "
            "columns inside the first window.",
        ),
        (
            right.T,
            "Rows and columns are exchanged: `q` moves the window to the right.",
        ),
    ]


@redrawn(of=like("A"))
def _one_pixel(of: Example = _A) -> Grid:
    return Grid(
        key="window-one-pixel",
        chapter=_CHAPTER,
        level=2,
        title="One pixel, four windows",
        prompt=(
            f"{called(of)}: the image is a single pixel, padded with two cells of zeros on every "
            "side, and "
            "the kernel is 4×4, so there are 2×2 windows. What is the output `y[0, 0]`?\n\n"
            + numbers_of(of, "x", "weight")
        ),
        starter="answer = [[..., ...],\n          [..., ...]]",
        hints=(
            "Everything but the pixel is zero, so each output cell is one product: the pixel times "
            "the tap that lies on it.",
            "Window (p, q) begins at row p − 2, column q − 2, and the pixel is at row 0, column 0. "
            "How many rows and columns into the window is that?",
            "It is tap (2 − p, 2 − q).",
        ),
        compute=lambda: _output(of)[0, 0],
        compute_mistakes=lambda: _pixel_mistakes(of),
        operands=lambda: {
            "geometry": of.geometry,
            "target": "output",
            "x": of.arrays().x,
            "weight": of.arrays().weight,
        },
        explanation=(
            "Output cell (p, q) is the pixel times tap (2 − p, 2 − q): the middle of the kernel, "
            "turned by 180°, because the pixel stays while the window moves."
        ),
        solution=(
            f"{given(of, 'x', 'weight')}\n"
            "answer = x[0, 0, 0, 0] * weight[0, 0, 1:3, 1:3][::-1, ::-1]"
        ),
    )


# ---- how often each cell is read -----------------------------------------------------------


def _uses(geometry: ConvGeometry) -> np.ndarray:
    taps = (geometry.N, geometry.C, geometry.OH, geometry.OW, geometry.KH, geometry.KW)
    return windows.overlap_add(np.ones(taps), geometry)[0, 0]


def _use_mistakes(geometry: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    uses = _uses(geometry)
    by_row, by_col = uses.max(axis=1), uses.max(axis=0)
    per_row, per_col = by_row / by_row.min(), by_col / by_col.min()
    return [
        (
            np.full_like(uses, geometry.KH * geometry.KW),
            "Not every cell is read by all taps. The corner is read by one window alone.",
        ),
        (
            np.ones_like(uses),
            "That would be so if the windows did not overlap. They move by one cell and are wider.",
        ),
        (
            per_row[:, None] + per_col - 1,
            "Rows and columns do not add, they multiply: each choice of a row of taps goes with "
            "each choice of a column.",
        ),
        (
            np.minimum(per_row[:, None], per_col),
            "Look at a cell of the middle row: it is read by several windows side by side and by "
            "several below each other, and these choices multiply.",
        ),
    ]


@redrawn(lambda H, W, K: H != W, H=(4, 7), W=(4, 7), K=(2, 3))
def _use_counts(H: int = 5, W: int = 5, K: int = 3) -> Grid:
    geometry = ConvGeometry(C=1, H=H, W=W, O=1, KH=K, KW=K)
    named = "Example B: a" if geometry == example("B").geometry else "A"
    rows, columns = ([int(n) for n in _uses(geometry).max(axis=axis)] for axis in (1, 0))
    rows, columns = ([n // min(each) for n in each] for each in (rows, columns))
    return Grid(
        key="window-uses",
        chapter=_CHAPTER,
        level=2,
        title="How often is a cell read?",
        prompt=(
            f"{named} {K}×{K} kernel slides over a {H}×{W} image, stride 1, no padding. How often "
            "is each cell of `x` read, counted over all windows?"
        ),
        starter=f"answer = np.full(({H}, {W}), ...)",
        hints=(
            "Begin with the corner (0, 0): which windows cover it?",
            f"Take one axis alone. A row of {W} cells and windows of {K}: how many windows cover "
            "each cell?",
            "The choices for rows and columns are independent, so their numbers multiply.",
        ),
        compute=lambda: _uses(geometry),
        compute_mistakes=lambda: _use_mistakes(geometry),
        explanation=(
            f"Along a row the cells are read {str(columns)[1:-1]} times, and rows and columns "
            "multiply. A cell in the middle has a part in more output cells than one in the "
            "corner."
        ),
        solution=f"answer = np.outer({rows}, {columns})",
    )


# ---- the best match ------------------------------------------------------------------------


def _peak(response: np.ndarray) -> np.ndarray:
    """[[row, column]] of the largest number of a map."""
    return np.array([np.unravel_index(np.argmax(response), response.shape)], dtype=np.float64)


def _match_mistakes(image: int) -> list[tuple[np.ndarray, str]]:
    geometry, weight = example("E").geometry, example("E").arrays().weight
    peak = _peak(_output(example("E"))[0, image])
    return [
        (peak[:, ::-1], "The right two numbers in the wrong order: the row comes first."),
        (
            _peak(_output(example("E"))[0, (image + 1) % 3]),
            f"That is the best match in image {(image + 1) % 3}. Kernel o is the template of "
            "image o.",
        ),
        (
            _peak(_output(example("E"), turned(weight))[0, image]),
            "You turned the template by 180°. A match is found by laying it on as it is.",
        ),
        (
            peak + np.array([geometry.KH, geometry.KW]) // 2,
            "That is the middle of the match. The response at (p, q) belongs to the window whose "
            "corner is at (p, q).",
        ),
        (
            _peak(np.abs(np.minimum(_output(example("E"))[0, image], 0))),
            "That is the smallest response, where the template fits worst.",
        ),
    ]


@redrawn(image=(0, 2))
def _best_match(image: int = 1) -> Grid:
    return Grid(
        key="window-best-match",
        chapter=_CHAPTER,
        level=2,
        title="Where is the template?",
        prompt=(
            "Example E: compute the responses of the three templates and find where response "
            f"{image} is largest. Answer with `[row, column]`."
        ),
        starter=(
            "geometry = example('E').geometry\n"
            "x, weight, _, _ = example('E').arrays()\n"
            "y = conv2d(x, weight, groups=geometry.groups)\n"
            "answer = [..., ...]"
        ),
        hints=(
            f"The responses are the channels of the output: response {image} is `y[0, {image}]`.",
            "`np.argmax` counts through the whole map; `np.unravel_index` turns that into a row "
            "and a column.",
        ),
        compute=lambda: _peak(_output(example("E"))[0, image]),
        compute_mistakes=lambda: _match_mistakes(image),
        explanation=(
            "That is where the template was cut out: there every product is a number times "
            "itself, so nothing cancels, and nowhere else does the sum grow as large."
        ),
        solution=(
            "geometry = example('E').geometry\n"
            "x, weight, _, _ = example('E').arrays()\n"
            f"response = conv2d(x, weight, groups=geometry.groups)[0, {image}]\n"
            "answer = np.unravel_index(response.argmax(), response.shape)"
        ),
    )


# ---- a routine that turns the kernel -------------------------------------------------------

# Each choice beside what the routine would give; which is right comes out of the numbers.
_Call = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
_TURNED_CHOICES: dict[str, _Call] = {
    "`convolve(x, w)`": lambda x, w: (x, turned(w)),
    "`convolve(x, w[::-1, ::-1])`": lambda x, w: (x, turned(turned(w))),
    "`convolve(x[::-1, ::-1], w)`": lambda x, w: (turned(x), turned(w)),
    "`convolve(x, w.T)`": lambda x, w: (x, turned(w.swapaxes(2, 3))),
}


def _right_call() -> int:
    x, weight, _, _ = example("B").arrays()
    geometry = example("B").geometry
    wanted = windows.forward(x, weight, geometry)
    given = [windows.forward(*call(x, weight), geometry) for call in _TURNED_CHOICES.values()]
    (place,) = (k for k, y in enumerate(given) if np.array_equal(y, wanted))
    return place


_turned_kernel = Choice(
    key="window-turned",
    chapter=_CHAPTER,
    level=2,
    title="A routine that turns the kernel",
    prompt=(
        "`convolve(x, w)` is a convolution in the mathematical sense, like scipy's `convolve2d` "
        "with `mode='valid'`: it turns the kernel by 180° and then slides it. Which call gives the "
        "output of conv2d?"
    ),
    options=tuple(_TURNED_CHOICES),
    hints=(
        "conv2d does not turn the kernel. What undoes the turn that the routine makes?",
        "Two turns by 180° leave everything as it was.",
    ),
    compute=_right_call,
    compute_mistakes=lambda: [
        (0, "The routine turns the kernel, so this is conv2d with a kernel turned by 180°."),
        (
            2,
            "With x turned and the kernel turned, the same products meet, but their sums stand in "
            "the output turned by 180°.",
        ),
        (3, "Exchanging rows and columns is not a turn by 180°: w[0, 1] goes to (1, 0)."),
    ],
    explanation="You turn the kernel, the routine turns it back, and it slides as it is.",
    solution="answer = 1  # turned twice is not turned",
)


# ---- write it ------------------------------------------------------------------------------


def _slide_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_is_plain, mixed=0):
        for _ in range(5):
            draw = random_operands(geometry, rng)
            x, weight = draw.x, draw.weight
            y = windows.forward(x, weight, geometry)[0, 0]
            known = {"geometry": geometry, "target": "output", "x": x, "weight": weight}
            yield Trial((x[0, 0], weight[0, 0]), y, known)


def _is_plain(geometry: ConvGeometry) -> bool:
    """One image, one channel, one kernel, stride and dilation 1, no padding."""
    ones = (geometry.N, geometry.C, geometry.O, *geometry.stride, *geometry.dilation)
    return set(ones) == {1} and geometry.padding == ((0, 0), (0, 0))


_slide = Function(
    key="window-slide",
    chapter=_CHAPTER,
    level=2,
    title="Slide a kernel",
    prompt=(
        "Write `slide(x, w)`: `x` is an image `(H, W)`, `w` a kernel `(KH, KW)`, and the result "
        "the output `(H − KH + 1, W − KW + 1)` of a convolution with stride 1, without padding and "
        "bias."
    ),
    starter='def slide(x, w):\n    """x (H,W), w (KH,KW) → (OH,OW)"""\n    ...',
    hints=(
        "Make an array of zeros of the output's shape, then fill it cell by cell in two loops.",
        "For output cell (p, q) the window is `x[p : p + KH, q : q + KW]`.",
        "One output cell is `(w * window).sum()`.",
    ),
    trials=_slide_trials,
    solution=(
        "def slide(x, w):\n"
        "    KH, KW = w.shape\n"
        "    y = np.zeros((x.shape[0] - KH + 1, x.shape[1] - KW + 1))\n"
        "    for p, q in np.ndindex(y.shape):\n"
        "        y[p, q] = (w * x[p : p + KH, q : q + KW]).sum()\n"
        "    return y"
    ),
)


def _forward_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        draw = random_operands(geometry, rng)
        x, weight = draw.x, draw.weight
        known = {"geometry": geometry, "target": "output", "x": x, "weight": weight}
        yield Trial((x, weight, geometry), windows.forward(x, weight, geometry), known)


_forward = Function(
    key="window-forward",
    chapter=_CHAPTER,
    level=3,
    title="The whole forward pass",
    prompt=(
        "Write `forward(x, weight, geometry)`: `x` is `(N, C, H, W)`, `weight` is "
        "`(O, C/G, KH, KW)`, the result `geometry.output_shape`. Any batch, channels, stride, zero "
        "padding, dilation and groups; no bias. Three methods help: `geometry.source(p, q, i, j)` "
        "is the place (h, v) that a tap reads, `geometry.cell(h, v)` the cell of x there, or "
        "`None` on padding, and `geometry.channel(o, c)` the channel of x behind channel c of "
        "kernel o."
    ),
    starter=(
        "def forward(x, weight, geometry):\n"
        '    """x (N,C,H,W), weight (O,C/G,KH,KW) → geometry.output_shape"""\n'
        "    ..."
    ),
    hints=(
        "Seven loops: n, o, p, q over the output, c, i, j over one kernel. `np.ndindex` makes "
        "several loops one.",
        "`geometry.source(p, q, i, j)` may lie outside the image: there the padding is zero, so "
        "there is nothing to add. `geometry.cell(h, v)` gives `None` for those.",
        "Channel c of kernel o is channel `geometry.channel(o, c)` of x.",
    ),
    trials=_forward_trials,
    solution=(
        "def forward(x, weight, geometry):\n"
        "    y = np.zeros(geometry.output_shape)\n"
        "    for n, o, p, q in np.ndindex(y.shape):\n"
        "        for c, i, j in np.ndindex(weight.shape[1:]):\n"
        "            cell = geometry.cell(*geometry.source(p, q, i, j))\n"
        "            if cell is not None:\n"
        "                seen = x[n, geometry.channel(o, c), *cell]\n"
        "                y[n, o, p, q] += weight[o, c, i, j] * seen\n"
        "    return y"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _first_numbers,
    _response_size,
    _predict_shape,
    _one_pixel,
    _use_counts,
    _best_match,
    _turned_kernel,
    _slide,
    _forward,
)
