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

__all__ = ["EXERCISES"]

_CHAPTER = "without_loops"

# ---- an address ------------------------------------------------------------------------------

_CELL = 2, 3


def _bytes(h: int, v: int) -> int:
    """How many bytes after the first number of an image of example C cell (h, v) begins."""
    rows, columns = example("C").arrays().x.strides[2:]
    return h * rows + v * columns


def _address_mistakes() -> list[tuple[float, str]]:
    (h, v), g = _CELL, example("C").geometry
    return [
        (_bytes(h, v) / 8, "You counted numbers. Each takes eight bytes."),
        (_bytes(v, h), "You exchanged row and column: the row comes first."),
        (
            8 * (h * g.H + v),
            "To get one row further down, one steps over a whole row. How many numbers has a row?",
        ),
        (_bytes(h + 1, v + 1), "Rows and columns are counted from 0."),
        (_bytes(h, v) / 2, "That would be float32. These are float64."),
    ]


_address = Number(
    key="views-address",
    chapter=_CHAPTER,
    level=1,
    title="Where does it lie?",
    prompt=(
        "An image of 6 rows and 7 columns in float64, which takes 8 bytes for a number, lies in "
        f"memory row after row. How many bytes after its beginning does `x[{_CELL[0]}, "
        f"{_CELL[1]}]` begin?"
    ),
    hints=(
        "How many numbers come before it: whole rows, and then some of its own row?",
        "Each of them takes 8 bytes.",
    ),
    compute=lambda: _bytes(*_CELL),
    compute_mistakes=_address_mistakes,
    explanation="Two whole rows of 7 numbers and 3 more lie before it, each of 8 bytes.",
    solution=f"answer = ({_CELL[0]} * 7 + {_CELL[1]}) * 8",
)

# ---- the shape of the view -------------------------------------------------------------------


def _view_shape() -> np.ndarray:
    return np.array([windows.windows(example("D").arrays().x, example("D").geometry).shape])


def _shape_mistakes() -> list[tuple[np.ndarray, str]]:
    g = example("D").geometry
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


_its_shape = Grid(
    key="views-shape",
    chapter=_CHAPTER,
    level=1,
    title="The shape of the view",
    prompt=(
        "Example D: three images of 5×4 with 4 channels, 6 kernels of 3×2, stride 1, two groups. "
        "Which shape has the view of all windows, with the axes n c p q i j?"
    ),
    starter="answer = [..., ..., ..., ..., ..., ...]  # n c p q i j",
    hints=(
        "Images and channels are those of x.",
        "The window has three positions down and three across.",
    ),
    compute=_view_shape,
    compute_mistakes=_shape_mistakes,
    explanation="(N, C, OH, OW, KH, KW): all windows of each image and channel, with all taps.",
    solution="g = example('D').geometry\nanswer = [g.N, g.C, g.OH, g.OW, g.KH, g.KW]",
)

# ---- its strides -----------------------------------------------------------------------------


def _strides(**changed: Any) -> np.ndarray:
    """[[p, q, i, j]]: the strides in bytes of the windows of example C."""
    geometry = replace(example("C").geometry, **changed)
    return np.array([windows.windows(example("C").arrays().x, geometry).strides[2:]])


_its_strides = Grid(
    key="views-strides",
    chapter=_CHAPTER,
    level=2,
    title="The strides of the view",
    prompt=(
        "Example C: images of 6×7 in float64, so a step to the next column is 8 bytes and to the "
        "next row 56. The kernel is 3×3, the stride 2, the dilation 1. How many bytes is a step "
        "along each of the axes p, q, i, j of the view of all windows?"
    ),
    starter="answer = [..., ..., ..., ...]  # p, q, i, j",
    hints=(
        "One step along p: the window goes `stride` rows down.",
        "One step along i: the next tap of the same window, `dilation` rows down.",
    ),
    compute=_strides,
    compute_mistakes=lambda: [
        (_strides(stride=(1, 1)), "With these the window moves by one cell. The stride is 2."),
        (
            _strides(stride=(1, 1), dilation=(2, 2)),
            "Here the stride pulls the taps apart. It belongs to the positions p and q.",
        ),
        (_strides() // 8, "You counted in numbers. A step is asked for in bytes, 8 for a number."),
        (
            _strides()[:, [1, 0, 3, 2]],
            "You exchanged rows and columns: p and i count rows, which lie further apart.",
        ),
    ],
    explanation=(
        "The stride multiplies the steps of the positions, the dilation those of the taps. With "
        "these four numbers and a beginning, every number of every window can be found."
    ),
    solution="answer = [2 * 56, 2 * 8, 1 * 56, 1 * 8]",
)

# ---- windows share -------------------------------------------------------------------------


def _shared() -> np.ndarray:
    """[[...]]: the last of three windows after the first was multiplied by 10."""
    x = np.arange(1.0, 6.0)
    view = sliding_window_view(x, 3, writeable=True)
    view[0] *= 10
    return view[2:].copy()


_windows_share = Grid(
    key="views-shared",
    chapter=_CHAPTER,
    level=2,
    title="Windows share",
    prompt=(
        "`x` is 1 2 3 4 5, and `view` shows its windows of three: 1 2 3, then 2 3 4, then 3 4 5. "
        "The view was made writeable. Somebody writes `view[0] *= 10`. What is `view[2]` now?"
    ),
    starter="answer = [..., ..., ...]",
    hints=(
        "Which numbers of x does `view[0]` show? They are multiplied.",
        "`view[2]` shows cells 2, 3, 4 of x. Which of them was multiplied?",
    ),
    compute=_shared,
    compute_mistakes=lambda: [
        (
            np.array([[3.0, 4.0, 5.0]]),
            "That would be a copy. The windows show the same memory, and one cell is in both.",
        ),
        (np.array([[30.0, 40.0, 50.0]]), "Only the cells that `view[0]` shows were multiplied."),
        (np.array([[10.0, 20.0, 30.0]]), "That is `view[0]`."),
        (np.array([[30.0, 40.0, 5.0]]), "One cell lies in both windows, not two."),
    ],
    explanation=(
        "The cell with 3 lies in all three windows. There is one number in memory, so it is 30 in "
        "all of them, and in x."
    ),
    solution="answer = [30, 4, 5]",
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
