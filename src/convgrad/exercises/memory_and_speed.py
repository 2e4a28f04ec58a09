"""Exercises for *Memory and speed*."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .. import windows
from ..checks import random_operands
from ..costs import intensity, operations, traffic
from ..examples import example
from ..geometry import ConvGeometry
from ..im2col import column_numbers
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "memory_and_speed"
_B = example("B").geometry

# ---- how many times the image ----------------------------------------------------------------

# The first layer of many networks.
_STEM = ConvGeometry(C=3, H=224, W=224, O=64, KH=7, KW=7, stride=2, padding=3)


def _factor(K: int, **changed: Any) -> float:
    geometry = replace(_STEM, KH=K, KW=K, padding=((K // 2, K // 2),) * 2, **changed)
    return column_numbers(geometry) / math.prod(geometry.x_shape)


@redrawn(K=[3, 5, 9, 11])
def _times(K: int = 7) -> Number:
    named = "The first layer of many networks: a" if K == _STEM.KH else "A"
    return Number(
        key="memory-factor",
        chapter=_CHAPTER,
        level=1,
        title="How many times the image?",
        prompt=(
            f"{named} {K}×{K} kernel with stride 2 and padding {K // 2} on images of "
            "224×224. How many times as many numbers as the image do its columns hold?"
        ),
        hints=(
            "How many windows are there along each axis?",
            f"Every window holds {K * K} numbers of each channel. Compare with the cells of the "
            "image.",
        ),
        compute=lambda: _factor(K),
        compute_mistakes=lambda: [
            (
                _factor(K, stride=(1, 1)),
                "That is for stride 1. With stride 2 there are fewer windows.",
            ),
            (
                _factor(K, stride=(2, 1)),
                "You took the stride along one axis only. It halves the windows along both.",
            ),
            (
                math.sqrt(_factor(K)),
                "That is along one axis. Rows and columns both multiply.",
            ),
            (
                1 / 4,
                "That is how many windows there are for each cell. Every window holds all its "
                "taps.",
            ),
        ],
        explanation=(
            f"There are 112·112 windows, a quarter of the number of cells, and each holds {K * K} "
            f"numbers of a channel: $KH\\cdot KW/(s_h\\cdot s_w)={K * K}/4$."
        ),
        solution=f"answer = {K} * {K} / 2**2",
    )


# ---- operations ------------------------------------------------------------------------------


@redrawn(H=(4, 9), K=(2, 4))
def _operations(H: int = 5, K: int = 3) -> Number:
    of = replace(_B, H=H, W=H, KH=K, KW=K)
    named = "Example B: " if of == _B else ""
    return Number(
        key="memory-operations",
        chapter=_CHAPTER,
        level=1,
        title="How many operations?",
        prompt=(
            f"{named}{H}×{H} image, {K}×{K} kernel, {of.OH}×{of.OW} output, one channel. How many "
            "multiplications and "
            "additions does the forward pass take? Count one addition for each multiplication."
        ),
        hints=("How many products make one output cell?", "And how many output cells are there?"),
        compute=lambda: operations(of),
        compute_mistakes=lambda: [
            (operations(of) / 2, "Those are the products. Each is also added."),
            (2 * K * K, "That is for one cell of the output."),
            (
                2 * K * K * H * H,
                "Not every cell of the image begins a window. Count the cells of the output.",
            ),
        ],
        explanation=(
            f"{K * K} products for each of {of.OH * of.OW} cells, and two operations for each. "
            "The weight gradient "
            "and the input gradient take as many."
        ),
        solution=f"answer = 2 * {K * K} * {of.OH * of.OW}",
    )


# ---- bytes -----------------------------------------------------------------------------------


def _bytes(g: ConvGeometry, itemsize: int = 4) -> np.ndarray:
    """[[at least, with columns]]."""
    return np.array([[traffic(g, itemsize), traffic(g, itemsize, columns=True)]], dtype=np.float64)


def _bytes_mistakes(g: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    least, _ = _bytes(g)[0]
    once = least + 4 * column_numbers(g)
    x, w = (4 * math.prod(shape) for shape in (g.x_shape, g.weight_shape))
    return [
        (_bytes(g, 1), "You counted numbers. In float32 each takes four bytes."),
        (_bytes(g, 8), "That would be float64. In float32 a number takes four bytes."),
        (np.array([[least, once]]), "The columns are written to memory and read again: twice."),
        (
            np.array([[x + w, x + w + 8 * column_numbers(g)]]),
            "The result must be written, too.",
        ),
    ]


@redrawn(H=(4, 9), K=(2, 4))
def _moved(H: int = 5, K: int = 3) -> Grid:
    of = replace(_B, H=H, W=H, KH=K, KW=K)
    named = "Example B in float32, f" if of == _B else "Float32, f"
    taps, cells = K * K, of.OH * of.OW
    return Grid(
        key="memory-bytes",
        chapter=_CHAPTER,
        level=2,
        title="How many bytes?",
        prompt=(
            f"{named}orward pass: image {H}×{H}, kernel {K}×{K}, output {of.OH}×{of.OW}. How many "
            "bytes must move between memory and processor at least? And how many if the "
            f"{taps}×{cells} columns are written to memory first and read again?"
        ),
        starter="answer = [..., ...]  # at least, with columns",
        hints=(
            "At least: every number of image and kernel read once, every number of the output "
            "written once.",
            f"The columns hold {taps * cells} numbers, and each makes the way twice.",
        ),
        compute=lambda: _bytes(of),
        compute_mistakes=lambda: _bytes_mistakes(of),
        explanation=(
            f"({H * H} + {taps} + {cells}) numbers of four bytes; with the columns "
            f"{2 * taps * cells} more. The operations are the "
            "same, so each byte has far fewer of them."
        ),
        solution=(
            f"least = {H * H} + {taps} + {cells}\n"
            f"answer = [4 * least, 4 * (least + 2 * {taps * cells})]"
        ),
    )


# ---- which layer waits -----------------------------------------------------------------------


def _layer(C: int, O: int, kernel: int, **options: Any) -> ConvGeometry:
    return ConvGeometry(N=8, C=C, H=56, W=56, O=O, KH=kernel, KW=kernel, **options)


_LAYERS = {
    "3×3, from 64 to 64 channels": _layer(64, 64, 3, padding=1),
    "1×1, from 256 to 64 channels": _layer(256, 64, 1),
    "3×3, each of 144 channels by itself": _layer(144, 144, 3, padding=1, groups=144),
    "3×3, 128 channels in 32 groups": _layer(128, 128, 3, padding=1, groups=32),
}


def _hungriest() -> int:
    found = [intensity(geometry) for geometry in _LAYERS.values()]
    return found.index(min(found))


_which_waits = Choice(
    key="memory-which-waits",
    chapter=_CHAPTER,
    level=2,
    title="Which layer waits for memory?",
    prompt=(
        "Four layers on 56×56 images, batch 8, everything moved once. Which has the fewest "
        "operations for each byte?"
    ),
    options=tuple(_LAYERS),
    hints=(
        "How many products does one number of the image take part in? One for each tap, and for "
        "each kernel that reads its channel.",
        "With groups, few kernels read a channel.",
    ),
    compute=_hungriest,
    compute_mistakes=lambda: [
        (0, "Each number takes part in 9·64 products here: many operations for a byte."),
        (1, "It has a single tap, but 64 kernels read each channel."),
        (3, "Each channel is read by 4 kernels. There is one where it is read by a single one."),
    ],
    explanation=(
        "If every channel is by itself, a number takes part in 9 products only. Then moving it "
        "takes longer than multiplying."
    ),
    solution="answer = 2  # depthwise",
)

# ---- how large a block -----------------------------------------------------------------------

_BLOCK, _CUT = 2_000_000, _layer(64, 64, 3, padding=1)


def _cut(block: int) -> np.ndarray:
    """[[rows of windows in a block, blocks for one image]]."""
    rows = block // (4 * _CUT.C * _CUT.KH * _CUT.KW * _CUT.OW)
    return np.array([[rows, math.ceil(_CUT.OH / rows)]], dtype=np.float64)


def _cut_mistakes(block: int) -> list[tuple[np.ndarray, str]]:
    rows, count = _cut(block)[0]
    of_window = 4 * _CUT.C * _CUT.KH * _CUT.KW
    return [
        (
            np.array([[rows, count - 1]]),
            "The last block is smaller, but it is a block: round up.",
        ),
        (
            np.array([[block // of_window, count]]),
            "That is how many windows fit. A row of windows has 56 of them.",
        ),
        (
            np.array([[rows + 1, count]]),
            "With one row more the block would be larger than it may be.",
        ),
        (
            np.array([[block // (4 * 9 * _CUT.OW), 1]]),
            "You counted one channel. The columns hold the taps of all 64.",
        ),
    ]


@redrawn(
    lambda block: _cut(block)[0, 1] > 2, block=[600_000, 1_000_000, 1_500_000, 2_500_000, 3_000_000]
)
def _how_large(block: int = _BLOCK) -> Grid:
    rows, count = (int(number) for number in _cut(block)[0])
    return Grid(
        key="memory-block-rows",
        chapter=_CHAPTER,
        level=2,
        title="How large is a block?",
        prompt=(
            "64 channels, a 3×3 kernel, 56×56 windows for an image, float32. A block of columns "
            f"may take {block:,} bytes. How many whole rows of windows fit in, and into how many "
            "blocks is an image cut?"
        ),
        starter="answer = [..., ...]  # rows in a block, blocks for an image",
        hints=(
            "One window is a column of 64·9 numbers of four bytes.",
            "A row of windows has 56 columns. How often does that fit?",
        ),
        compute=lambda: _cut(block),
        compute_mistakes=lambda: _cut_mistakes(block),
        explanation=(
            f"A row of windows takes 4·64·9·56 = 129,024 bytes, so {rows} rows fit, and 56 rows "
            f"need {count} blocks. The package then makes them about equally large."
        ),
        solution=f"rows = {block} // (4 * 64 * 9 * 56)\nanswer = [rows, -(-56 // rows)]",
    )


# ---- what raises the intensity ---------------------------------------------------------------

_CHANGES: dict[str, tuple[dict[str, Any], int]] = {
    "Twice as many images in the batch": ({"N": 16}, 4),
    "Twice as many channels and kernels": ({"C": 128, "O": 128}, 4),
    "Images of twice the height and width": ({"H": 112, "W": 112}, 4),
    "float64 for float32": ({}, 8),
}


def _raised() -> int:
    found = [
        intensity(replace(_CUT, **changed), itemsize) for changed, itemsize in _CHANGES.values()
    ]
    return found.index(max(found))


_what_raises = Choice(
    key="memory-what-raises",
    chapter=_CHAPTER,
    level=3,
    title="What gives a byte more to do?",
    prompt=(
        "A 3×3 layer from 64 to 64 channels, 56×56, batch 8, everything moved once. Which change "
        "raises the operations per byte most?"
    ),
    options=tuple(_CHANGES),
    hints=(
        "A number of the image takes part in KH·KW·O products. Which change raises that?",
        "More images bring more operations and as many more bytes, but for the weights.",
    ),
    compute=_raised,
    compute_mistakes=lambda: [
        (0, "Operations and bytes both double. Only the weights, which are few, are shared."),
        (2, "Operations and bytes both become four times as many, but for the weights."),
        (3, "The operations stay, the bytes double: half as many for a byte."),
    ],
    explanation=(
        "Each number meets all kernels that read its channel. With twice as many kernels it has "
        "twice as much to do; with more images there are only more numbers."
    ),
    solution="answer = 1  # channels and kernels",
)

# ---- write it --------------------------------------------------------------------------------


def _weight_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=1, H=8, W=9, O=1, KH=2, KW=3)
    steps: list[dict[str, Any]] = [{}, {"C": 2}, {"O": 3}, {"N": 3}, {"N": 2, "C": 3, "O": 4}]
    for sizes in steps:
        geometry = replace(plain, **sizes)
        _, x, _, g = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
        right = windows.grad_weight(g, x, geometry)
        for rows in (1, 2, 3, geometry.OH):
            arguments = g, x, (geometry.KH, geometry.KW), rows
            yield Trial(arguments, right, known, tuple(_weight_mistakes(*arguments)))


def _weight_mistakes(
    g: np.ndarray, x: np.ndarray, size: tuple[int, int], rows: int
) -> Iterator[tuple[np.ndarray, str]]:
    """What becomes of the blocks if they are not added, or not moved along."""
    seen = sliding_window_view(x, size, axis=(2, 3))  # n c p q i j
    parts = [slice(p, p + rows) for p in range(0, g.shape[2], rows)]
    shares = [_contracted(g[:, :, part], seen[:, :, part]) for part in parts]
    yield shares[-1], "you keep the share of the last block. The blocks add: write +=, not =."
    yield shares[0], "you return after the first block. The others must be added."
    same_g = [_contracted(g[:, :, : seen[:, :, p].shape[2]], seen[:, :, p]) for p in parts]
    yield (
        sum(same_g, np.zeros_like(shares[0])),
        "every block is multiplied with the first rows of grad_output. Take the rows of the block.",
    )


def _contracted(g: np.ndarray, seen: np.ndarray) -> np.ndarray:
    share: np.ndarray = np.einsum("nopq,ncpqij->ocij", g, seen)
    return share


_blocked_weight = Function(
    key="memory-blocked-weight",
    chapter=_CHAPTER,
    level=2,
    title="The weight gradient in blocks",
    prompt=(
        "Write `grad_weight(grad_output, x, kernel_size, rows)`: for `rows` rows of windows at a "
        "time, write the columns, multiply, add. Stride 1, no padding, one group. The last block "
        "may have fewer rows. The result has the shape `(O, C, KH, KW)`."
    ),
    starter=(
        "def grad_weight(grad_output, x, kernel_size, rows):\n"
        '    """(N,O,OH,OW), (N,C,H,W), (KH,KW), int → (O,C,KH,KW)"""\n'
        "    ..."
    ),
    hints=(
        "The windows of rows p = first to first + rows − 1 are a slice of the view of all "
        "windows, along its axis p. A slice of a view copies nothing.",
        "`np.lib.stride_tricks.sliding_window_view(x, kernel_size, axis=(2, 3))` has the axes "
        "n c p q i j.",
        'For each block `np.einsum("nopq,ncpqij->ocij", part, block)`, added to the sum so far.',
    ),
    trials=_weight_trials,
    solution=(
        "def grad_weight(grad_output, x, kernel_size, rows):\n"
        "    view = np.lib.stride_tricks.sliding_window_view\n"
        "    seen = view(x, kernel_size, axis=(2, 3))  # n c p q i j, no copy\n"
        "    total = 0\n"
        "    for first in range(0, grad_output.shape[2], rows):\n"
        "        part = grad_output[:, :, first : first + rows]\n"
        "        block = seen[:, :, first : first + rows].copy()\n"
        '        total += np.einsum("nopq,ncpqij->ocij", part, block)\n'
        "    return total"
    ),
)


def _one_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1


def _input_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_one_group):
        _, _, weight, g = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "input", "weight": weight, "grad_output": g}
        right = windows.grad_input(g, weight, geometry)
        arguments = g, weight, geometry, int(rng.integers(1, 4))
        yield Trial(arguments, right, known, tuple(_input_mistakes(*arguments)))


def _input_mistakes(
    g: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, rows: int
) -> Iterator[tuple[np.ndarray, str]]:
    """What becomes of blocks that overwrite each other, or all lie at the top."""
    arguments = g, weight, geometry, rows
    yield (
        _laid(*arguments, add=False),
        "what was there before is overwritten, by the next tap or the next block. All of them add: "
        "write +=, not =.",
    )
    yield (
        _laid(*arguments, moved=False),
        "every block is laid at the top. A tap begins at row sh·first + dh·i, where first is the "
        "block's first row of windows.",
    )


def _laid(
    g: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
    rows: int,
    *,
    add: bool = True,
    moved: bool = True,
) -> np.ndarray:
    """The input gradient in blocks, with or without a slip."""
    padded = np.zeros((*geometry.x_shape[:2], *geometry.padded_size))
    for first in range(0, geometry.OH, rows):
        made = windows.products(g[:, :, first : first + rows], weight, geometry)
        for i, j in np.ndindex(geometry.KH, geometry.KW):
            down, across = windows.reach(i, j, geometry)
            start = down.start + down.step * (first if moved else 0)
            stop = start + down.step * made.shape[2]
            there = padded[:, :, start : stop : down.step, across]
            there[...] = there * add + made[..., i, j]
    (top, _), (left, _) = geometry.padding
    return padded[:, :, top : top + geometry.H, left : left + geometry.W]


_blocked_input = Function(
    key="memory-blocked-input",
    chapter=_CHAPTER,
    level=3,
    title="The input gradient in blocks",
    prompt=(
        "Write `grad_input(grad_output, weight, geometry, rows)`: the products of `rows` rows of "
        "windows at a time, added to where they belong before the next are made. Any stride, zero "
        "padding and dilation, one group. The result has the shape `geometry.x_shape`."
    ),
    starter=(
        "def grad_input(grad_output, weight, geometry, rows):\n"
        '    """(N,O,OH,OW), (O,C,KH,KW) → geometry.x_shape"""\n'
        "    ..."
    ),
    hints=(
        "Make zeros of the size `geometry.padded_size` once, before the loop over blocks. "
        "Neighbouring blocks meet in some rows, so all must add to the same array.",
        "In the block that begins with row `first` of the windows, tap (i, j) begins at row "
        "sh·first + dh·i.",
        "`padded[:, :, sh * first + dh * i :: sh, dw * j :: sw]`, of which as many rows count as "
        "the block has.",
    ),
    trials=_input_trials,
    solution=(
        "def grad_input(grad_output, weight, geometry, rows):\n"
        "    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation\n"
        "    padded = np.zeros((*geometry.x_shape[:2], *geometry.padded_size))\n"
        "    for p in range(0, geometry.OH, rows):\n"
        "        part = grad_output[:, :, p : p + rows]\n"
        '        made = np.einsum("nopq,ocij->ncpqij", part, weight)\n'
        "        for i, j in np.ndindex(weight.shape[2:]):\n"
        "            there = padded[:, :, sh * p + dh * i :: sh, dw * j :: sw]\n"
        "            there[:, :, : made.shape[2], : made.shape[3]] += made[..., i, j]\n"
        "    (top, _), (left, _) = geometry.padding\n"
        "    return padded[:, :, top : top + geometry.H, left : left + geometry.W]"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _times,
    _operations,
    _moved,
    _which_waits,
    _how_large,
    _blocked_weight,
    _what_raises,
    _blocked_input,
)
