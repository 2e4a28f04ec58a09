"""Exercises for *Without loops: NumPy windows and einsum*."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .. import windows
from ..checks import random_operands
from ..examples import example
from ..geometry import ConvGeometry
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import maps, redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "without_loops"
_D = example("D").geometry

# ---- an address ------------------------------------------------------------------------------


def _bytes(W: int, h: int, v: int) -> int:
    """How many bytes after the first number of an image of W columns cell (h, v) begins."""
    rows, columns = np.zeros((h + 1, W)).strides
    return h * rows + v * columns


def _address_mistakes(H: int, W: int, h: int, v: int) -> list[tuple[float, str]]:
    return [
        (_bytes(W, h, v) / 8, "You counted numbers. Each takes eight bytes."),
        (_bytes(W, v, h), "You exchanged row and column: the row comes first."),
        (
            8 * (h * H + v),
            "To get one row further down, one steps over a whole row. How many numbers has a row?",
        ),
        (_bytes(W, h + 1, v + 1), "Rows and columns are counted from 0."),
        (_bytes(W, h, v) / 2, "That would be float32. These are float64."),
    ]


@redrawn(lambda H, W, h, v: H != W and h != v, H=(6, 9), W=(6, 9), h=(1, 5), v=(1, 5))
def _address(H: int = 6, W: int = 7, h: int = 2, v: int = 3) -> Number:
    return Number(
        key="views-address",
        chapter=_CHAPTER,
        level=1,
        title="Where does it lie?",
        prompt=(
            f"An image of {H} rows and {W} columns in float64, which takes 8 bytes for a number, "
            f"lies in memory row after row. How many bytes after its beginning does `x[{h}, {v}]` "
            "begin?"
        ),
        hints=(
            "How many numbers come before it: whole rows, and then some of its own row?",
            "Each of them takes 8 bytes.",
        ),
        compute=lambda: _bytes(W, h, v),
        compute_mistakes=lambda: _address_mistakes(H, W, h, v),
        explanation=(
            f"Whole rows of {W} numbers lie before it, {h} of them, and {v} of its own row; each "
            "number takes 8 bytes."
        ),
        solution=f"answer = ({h} * {W} + {v}) * 8",
    )


# ---- the shape of the view -------------------------------------------------------------------


def _view_shape(g: ConvGeometry) -> np.ndarray:
    return np.array([windows.windows(np.zeros(g.x_shape), g).shape])


def _shape_mistakes(g: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    return [
        (
            np.array([[g.N, g.C, g.KH, g.KW, g.OH, g.OW]]),
            "First the positions p, q, then the taps i, j.",
        ),
        (
            np.array([[g.N, g.C, g.H, g.W, g.KH, g.KW]]),
            "Not every cell begins a window: some would stick out of the image.",
        ),
        (
            np.array([[g.N, g.CG, g.OH, g.OW, g.KH, g.KW]]),
            "The view shows all channels of the image, whatever the groups.",
        ),
        (
            np.array([[g.N, g.O, g.OH, g.OW, g.KH, g.KW]]),
            "Axis c counts the channels of the image. The kernels have no part in the view.",
        ),
    ]


@redrawn(
    lambda of: of.H != of.W,
    of=lambda dice: replace(_D, N=dice.between(2, 5), H=dice.between(5, 9), W=dice.between(4, 9)),
)
def _its_shape(of: ConvGeometry = _D) -> Grid:
    return Grid(
        key="views-shape",
        chapter=_CHAPTER,
        level=1,
        title="The shape of the view",
        prompt=(
            f"{'Example D: three' if of == _D else of.N} images of {of.H}×{of.W} with 4 channels, "
            "6 kernels of 3×2, stride 1, two groups. "
            "Which shape has the view of all windows, with the axes n c p q i j?"
        ),
        starter="answer = [..., ..., ..., ..., ..., ...]  # n c p q i j",
        hints=(
            "Images and channels are those of x.",
            "How many positions has the window down, and how many across?",
        ),
        compute=lambda: _view_shape(of),
        compute_mistakes=lambda: _shape_mistakes(of),
        explanation="(N, C, OH, OW, KH, KW): all windows of each image and channel, with all taps.",
        solution=f"answer = [{of.N}, 4, {of.H} - 2, {of.W} - 1, 3, 2]",
    )


# ---- its strides -----------------------------------------------------------------------------


def _strides(size: tuple[int, int], **changed: Any) -> np.ndarray:
    """[[p, q, i, j]]: the strides in bytes of the windows of example C, on images of some size."""
    H, W = size
    geometry = replace(example("C").geometry, H=H, W=W, **changed)
    return np.array([windows.windows(np.zeros(geometry.x_shape), geometry).strides[2:]])


@redrawn(H=(5, 9), W=(5, 12))
def _its_strides(H: int = 6, W: int = 7) -> Grid:
    named = "Example C: images" if (H, W) == (6, 7) else "Images"
    return Grid(
        key="views-strides",
        chapter=_CHAPTER,
        level=2,
        title="The strides of the view",
        prompt=(
            f"{named} of {H}×{W} in float64, so a step to the next column is 8 bytes and to the "
            f"next row {8 * W}. The kernel is 3×3, the stride 2, the dilation 1. How many bytes "
            "is a step along each of the axes p, q, i, j of the view of all windows?"
        ),
        starter="answer = [..., ..., ..., ...]  # p, q, i, j",
        hints=(
            "One step along p: the window goes `stride` rows down.",
            "One step along i: the next tap of the same window, `dilation` rows down.",
        ),
        compute=lambda: _strides((H, W)),
        compute_mistakes=lambda: [
            (
                _strides((H, W), stride=(1, 1)),
                "With these the window moves by one cell. The stride is 2.",
            ),
            (
                _strides((H, W), stride=(1, 1), dilation=(2, 2)),
                "Here the stride pulls the taps apart. It belongs to the positions p and q.",
            ),
            (
                _strides((H, W)) // 8,
                "You counted in numbers. A step is asked for in bytes, 8 for a number.",
            ),
            (
                _strides((H, W))[:, [1, 0, 3, 2]],
                "You exchanged rows and columns: p and i count rows, which lie further apart.",
            ),
        ],
        explanation=(
            "The stride multiplies the steps of the positions, the dilation those of the taps. "
            "With these four numbers and a beginning, every number of every window can be found."
        ),
        solution=f"answer = [2 * {8 * W}, 2 * 8, 1 * {8 * W}, 1 * 8]",
    )


# ---- windows share -------------------------------------------------------------------------


_COUNTED = np.arange(1.0, 6.0)


def _shared(row: np.ndarray, factor: int) -> np.ndarray:
    """[[...]]: the last of three windows after the first was multiplied."""
    view = sliding_window_view(row.copy(), 3, writeable=True)
    view[0] *= factor
    return view[2:].copy()


@redrawn(lambda row, factor: len(set(row)) == 5, row=maps(5, low=1, high=9), factor=[3, 5, 10, 100])
def _windows_share(row: np.ndarray = _COUNTED, factor: int = 10) -> Grid:
    x = [int(number) for number in row]
    shown = [" ".join(map(str, x[k : k + 3])) for k in range(3)]
    return Grid(
        key="views-shared",
        chapter=_CHAPTER,
        level=2,
        title="Windows share",
        prompt=(
            f"`x` is {' '.join(map(str, x))}, and `view` shows its windows of three: {shown[0]}, "
            f"then {shown[1]}, then {shown[2]}. The view was made writeable. Somebody writes "
            f"`view[0] *= {factor}`. What is `view[2]` now?"
        ),
        starter="answer = [..., ..., ...]",
        hints=(
            "Which numbers of x does `view[0]` show? They are multiplied.",
            "`view[2]` shows cells 2, 3, 4 of x. Which of them was multiplied?",
        ),
        compute=lambda: _shared(row, factor),
        compute_mistakes=lambda: [
            (
                row[None, 2:],
                "That would be a copy. The windows show the same memory, and one cell is in both.",
            ),
            (factor * row[None, 2:], "Only the cells that `view[0]` shows were multiplied."),
            (factor * row[None, :3], "That is `view[0]`."),
            (row[None, 2:] * [factor, factor, 1], "One cell lies in both windows, not two."),
        ],
        explanation=(
            f"The cell with {x[2]} lies in all three windows. There is one number in memory, so "
            f"it is {factor * x[2]} in all of them, and in x."
        ),
        solution=f"answer = [{factor} * {x[2]}, {x[3]}, {x[4]}]",
    )


# ---- which letters ---------------------------------------------------------------------------

_LETTERS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "`nopq,ncpqij->ocij`": lambda seen, g, w: np.einsum("nopq,ncpqij->ocij", g, seen),
    "`nopq,ncpqij->nocij`": lambda seen, g, w: np.einsum("nopq,ncpqij->nocij", g, seen),
    "`nopq,ncpqij->ncij`": lambda seen, g, w: np.einsum("nopq,ncpqij->ncij", g, seen),
    "`nopq,ocij->ncpqij`": lambda seen, g, w: np.einsum("nopq,ocij->ncpqij", g, w),
}


def _right_letters() -> int:
    x, weight, _, g = example("C").arrays()
    geometry = example("C").geometry
    seen, right = windows.windows(x, geometry), windows.grad_weight(g, x, geometry)
    made = [rule(seen, g, weight) for rule in _LETTERS.values()]
    (place,) = (k for k, each in enumerate(made) if np.array_equal(each, right))
    return place


_which_letters = Choice(
    key="views-letters",
    chapter=_CHAPTER,
    level=2,
    title="Which letters?",
    prompt="Which line of letters makes the weight gradient of a batch, for one group?",
    options=tuple(_LETTERS),
    hints=(
        "The result has the shape of the weight: which letters must stand on the right?",
        "Weights have no part in their own gradient: which two arrays must stand on the left?",
    ),
    compute=_right_letters,
    compute_mistakes=lambda: [
        (1, "Here the letter n stays: each image keeps its own share. They must be added."),
        (2, "Here the kernels are added up and the images stay. It must be the other way round."),
        (3, "This leaves x out, not the weight: the products on their way to the input gradient."),
    ],
    explanation=(
        "The letters of the weight stay, n, p and q are summed over: all images and all positions."
    ),
    solution="answer = 0  # o, c, i, j stay; n, p, q are summed over",
)

# ---- what copies -----------------------------------------------------------------------------

_MAKERS: dict[str, Callable[[np.ndarray, ConvGeometry], np.ndarray]] = {
    "`x.swapaxes(2, 3)`": lambda x, g: x.swapaxes(2, 3),
    "`x[:, :, ::2, ::2]`": lambda x, g: x[:, :, ::2, ::2],
    "`windows(x, geometry)[..., 0, 0]`": lambda x, g: windows.windows(x, g)[..., 0, 0],
    "`windows(x, geometry).reshape(N, C, OH * OW, KH * KW)`": lambda x, g: windows.windows(
        x, g
    ).reshape(g.N, g.C, g.OH * g.OW, g.KH * g.KW),
}


def _copies() -> int:
    x, geometry = example("B").arrays().x, example("B").geometry
    made = [maker(x, geometry) for maker in _MAKERS.values()]
    (place,) = (k for k, each in enumerate(made) if not np.shares_memory(each, x))
    return place


_what_copies = Choice(
    key="views-copy",
    chapter=_CHAPTER,
    level=3,
    title="Which one copies?",
    prompt="Example B. Three of these show the memory of `x` in another way. Which one must copy?",
    options=tuple(_MAKERS),
    hints=(
        "A view has one stride for each axis. In which of them would a step along an axis not "
        "always be equally long?",
        "Joining p and q into one axis: how far is it from q = 0 to q = 1, and how far from the "
        "end of one row of positions to the beginning of the next?",
    ),
    compute=_copies,
    compute_mistakes=lambda: [
        (0, "Exchanging two axes exchanges their strides. Nothing moves."),
        (1, "Taking every other cell doubles the strides. Nothing moves."),
        (2, "This fixes a tap: the cells that it meets, with the strides of p and q."),
    ],
    explanation=(
        "From position to position it is 8 bytes, but from the end of a row of positions to the "
        "next row it is 24. No single stride does both, so `reshape` copies, and that is im2col."
    ),
    solution="answer = 3  # no stride leads along the joined axes",
)

# ---- write it --------------------------------------------------------------------------------


def _forward_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=1, H=8, W=9, O=1, KH=2, KW=3)
    steps: list[dict[str, Any]] = [{}, {"C": 2}, {"O": 3}, {"N": 3}, {"stride": (2, 2)}]
    for sizes in (*steps, *({"N": 2, "C": 3, "O": 4, "stride": (s, s)} for s in (1, 2, 3))):
        geometry = replace(plain, **sizes)
        _, x, weight, _ = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "output", "x": x, "weight": weight}
        right = windows.forward(x, weight, geometry)
        yield Trial((x, weight, geometry.stride[0]), right, known)


_forward = Function(
    key="views-forward",
    chapter=_CHAPTER,
    level=2,
    title="The forward pass without a loop",
    prompt=(
        "Write `forward(x, weight, stride)` with `np.lib.stride_tricks.sliding_window_view` and "
        "one `np.einsum`: `x` is `(N, C, H, W)`, `weight` is `(O, C, KH, KW)`, `stride` a number "
        "for both axes, the result `(N, O, OH, OW)`. No padding, no loop."
    ),
    starter=(
        "def forward(x, weight, stride):\n"
        '    """x (N,C,H,W), weight (O,C,KH,KW) → (N,O,OH,OW)"""\n'
        "    ..."
    ),
    hints=(
        "`np.lib.stride_tricks.sliding_window_view(x, (KH, KW), axis=(2, 3))` has the axes "
        "n c p q i j for stride 1.",
        "For another stride take every `stride`-th position: `[:, :, ::stride, ::stride]`.",
        "The letters of the result are n o p q; c, i, j are summed over.",
    ),
    trials=_forward_trials,
    solution=(
        "def forward(x, weight, stride):\n"
        "    view = np.lib.stride_tricks.sliding_window_view\n"
        "    every = view(x, weight.shape[2:], axis=(2, 3))\n"
        "    seen = every[:, :, ::stride, ::stride]  # n c p q i j\n"
        '    return np.einsum("ncpqij,ocij->nopq", seen, weight)'
    ),
)


def _one_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1


def _input_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_one_group):
        _, _, weight, g = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "input", "weight": weight, "grad_output": g}
        yield Trial((g, weight, geometry), windows.grad_input(g, weight, geometry), known)


_backward = Function(
    key="views-backward",
    chapter=_CHAPTER,
    level=3,
    title="The input gradient",
    prompt=(
        "Write `grad_input(grad_output, weight, geometry)`: all products with one `np.einsum`, "
        "then one `+=` for each tap. Any stride, zero padding and dilation, one group. The result "
        "has the shape `geometry.x_shape`."
    ),
    starter=(
        "def grad_input(grad_output, weight, geometry):\n"
        '    """(N,O,OH,OW), (O,C,KH,KW) → geometry.x_shape"""\n'
        "    ..."
    ),
    hints=(
        '`np.einsum("nopq,ocij->ncpqij", grad_output, weight)` holds a product for each tap of '
        "each window, added over the kernels.",
        "Make zeros of the size `geometry.padded_size`. Tap (i, j) meets the cells "
        "`padded[:, :, dh * i :: sh, dw * j :: sw]`, of which the first OH and OW count.",
        "At the end cut the border off.",
    ),
    trials=_input_trials,
    solution=(
        "def grad_input(grad_output, weight, geometry):\n"
        "    N, C, H, W = geometry.x_shape\n"
        "    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation\n"
        '    products = np.einsum("nopq,ocij->ncpqij", grad_output, weight)\n'
        "    padded = np.zeros((N, C, *geometry.padded_size))\n"
        "    for i, j in np.ndindex(weight.shape[2:]):\n"
        "        there = padded[:, :, dh * i :: sh, dw * j :: sw]\n"
        "        there[:, :, : geometry.OH, : geometry.OW] += products[..., i, j]\n"
        "    (top, _), (left, _) = geometry.padding\n"
        "    return padded[:, :, top : top + H, left : left + W]"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _address,
    _its_shape,
    _its_strides,
    _windows_share,
    _which_letters,
    _forward,
    _what_copies,
    _backward,
)
