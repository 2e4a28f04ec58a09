"""Exercises for *Implicit GEMM*."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import windows
from ..checks import random_geometry, random_operands
from ..examples import example
from ..geometry import ConvGeometry
from ..im2col import unfold
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial
from .redraw import redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "implicit_gemm"

# ---- operations for each number --------------------------------------------------------------


def _per_number(M: int, N: int) -> float:
    return 2 * M * N / (M + N)


@redrawn(
    lambda M, N: M != N and 2 * M * N % (M + N) == 0,
    M=[16, 32, 48, 64],
    N=[48, 64, 80, 96, 128, 192],
)
def _intensity(M: int = 32, N: int = 96) -> Number:
    return Number(
        key="implicit-per-number",
        chapter=_CHAPTER,
        level=1,
        title="What a tile makes of a number",
        prompt=(
            f"A program owns a tile of {M} rows and {N} columns. For each step of the sum it "
            f"loads a column of {M} numbers and a row of {N}. How many operations, "
            "multiplications and additions, does it do for each number that it loads?"
        ),
        hints=(
            "In one step every number of the column meets every number of the row.",
            f"{M}·{N} products, each multiplied and added, for {M} + {N} numbers.",
        ),
        compute=lambda: _per_number(M, N),
        compute_mistakes=lambda: [
            (_per_number(M, N) / 2, "Those are the products. Each is multiplied *and* added."),
            (
                2 * M * N,
                f"Those are the operations of a step. It loads {M} + {N} numbers for them.",
            ),
            (
                (M + N) / 2,
                f"That would be a square tile of {(M + N) // 2}×{(M + N) // 2}, which has the "
                "same border.",
            ),
            (2, "That is for a program that owns a single number and loads two for each product."),
        ],
        explanation=(
            f"2·{M}·{N}/({M} + {N}). A square tile of as many rows and columns together would make "
            f"{(M + N) / 2:g} of it."
        ),
        solution=f"answer = 2 * {M} * {N} / ({M} + {N})",
    )


# ---- the three sizes -------------------------------------------------------------------------

_D = example("D").geometry


def _sizes(of: ConvGeometry) -> np.ndarray:
    """[[rows, columns, terms]] of one group's weight gradient."""
    return np.array([[of.OG, of.CG * of.KH * of.KW, of.N * of.OH * of.OW]], dtype=np.float64)


@redrawn(
    of=lambda dice: replace(
        _D, N=dice.between(2, 5), C=2 * dice.between(2, 5), O=2 * dice.between(3, 6)
    )
)
def _three(of: ConvGeometry = _D) -> Grid:
    named = "Example D: three" if of == _D else f"{of.N}"
    return Grid(
        key="implicit-sizes",
        chapter=_CHAPTER,
        level=1,
        title="Three sizes",
        prompt=(
            f"{named} images, {of.C} channels, {of.O} kernels of 3×2, two groups, an output of "
            "3×3. The weight gradient of *one group* as a product of matrices: how many rows and "
            "columns has it, and how many terms has each of its sums?"
        ),
        starter="answer = [..., ..., ...]  # rows, columns, terms",
        hints=(
            "Rows are kernels, columns are the taps of all channels that a kernel reads.",
            "The sum runs over all windows of all images.",
        ),
        compute=lambda: _sizes(of),
        compute_mistakes=lambda: [
            (
                _sizes(replace(of, groups=1)),
                "That is without groups. A group has half of the kernels and half of the channels.",
            ),
            (
                _sizes(replace(of, N=1)),
                "That is for a single image. The sum runs over all of them.",
            ),
            (
                np.array([[of.N * of.OH * of.OW, of.OG, of.CG * of.KH * of.KW]]),
                "That is the forward pass, which has the windows for rows and sums over taps.",
            ),
            (
                np.array([[of.OG, of.CG * of.KH * of.KW, of.N * of.H * of.W]]),
                "You counted cells of the images. There is a term for each window.",
            ),
        ],
        explanation=(
            f"{of.OG} kernels, {of.CG}·3·2 taps, {of.N}·3·3 windows. The other group has a "
            "product of its own."
        ),
        solution=f"answer = [{of.O} // 2, {of.C} // 2 * 3 * 2, {of.N} * 3 * 3]",
    )


# ---- where it lies ---------------------------------------------------------------------------

_C = example("C").geometry
_K, _R = 10, 7


def _where(k: int = _K, r: int = _R) -> list[int]:
    """[n, h, v] of X[k, r]; there is one channel."""
    n, p, q = np.unravel_index(k, (_C.N, _C.OH, _C.OW))
    i, j = divmod(r, _C.KW)
    return [int(n), *map(int, _C.source(p, q, i, j))]


def _where_mistakes(k: int, r: int) -> list[tuple[np.ndarray, str]]:
    n, h, v = _where(k, r)
    (i, j), (p, q) = divmod(r, _C.KW), divmod(k % 6, _C.OW)
    turned_q, turned_p = divmod(k % 6, _C.OH)
    return [
        (np.array([[n, p + i, q + j]]), "The windows stand 2 apart: h = 2·p + i."),
        (
            np.array([[n, 2 * p + j, 2 * q + i]]),
            "r = 3·i + j: the column of the tap changes faster than its row.",
        ),
        (
            np.array([[n, 2 * turned_p + i, 2 * turned_q + j]]),
            "q changes faster than p, and there are three windows in a row.",
        ),
        (np.array([[0, h, v]]), f"An image has six windows. Window {k} is one of the second."),
    ]


@redrawn(lambda k, r: divmod(r, 3)[0] != r % 3, k=(6, 11), r=(0, 8))
def _address(k: int = _K, r: int = _R) -> Grid:
    (p, q), (i, j) = divmod(k % 6, 3), divmod(r, 3)
    return Grid(
        key="implicit-address",
        chapter=_CHAPTER,
        level=2,
        title="Where does it lie?",
        prompt=(
            "Example C: two images of 6×7, one channel, a 3×3 kernel, stride 2, an output of "
            f"2×3. A program wants the number in row k = {k} and column r = {r} of the matrix X, "
            "which nobody has stored. Which number of `x` must it load? Give the image n, the "
            "row h and the column v."
        ),
        starter="answer = [..., ..., ...]  # n, h, v",
        hints=(
            f"An image has 2·3 windows. Which image is window {k} in, and which is it there?",
            f"Of the nine taps of the only channel it is number {r}. Which row, which column?",
            "Then the index map: h = 2·p + i, v = 2·q + j.",
        ),
        compute=lambda: np.array([_where(k, r)], dtype=np.float64),
        compute_mistakes=lambda: _where_mistakes(k, r),
        explanation=(
            f"{k} = 1·6 + {p}·3 + {q}, so n = 1, p = {p}, q = {q}. {r} = {i}·3 + {j}, so i = {i}, "
            f"j = {j}. And h = 2·{p} + {i}, v = 2·{q} + {j}."
        ),
        solution=f"n, p, q = np.unravel_index({k}, (2, 2, 3))\n"
        f"i, j = divmod({r}, 3)\n"
        "answer = [n, 2 * p + i, 2 * q + j]",
    )


# ---- how many tiles --------------------------------------------------------------------------

_LAYER = ConvGeometry(N=8, C=128, H=28, W=28, O=256, KH=3, KW=3, padding=1)
_SIDE = 128


def _tiles(of: ConvGeometry, round_up: Callable[[float], int] = math.ceil) -> np.ndarray:
    """[[forward, weight gradient]] in tiles of 128×128."""
    count, columns = of.N * of.OH * of.OW, of.CG * of.KH * of.KW
    kernels = round_up(of.O / _SIDE)
    found = [round_up(count / _SIDE) * kernels, kernels * round_up(columns / _SIDE)]
    return np.array([found], dtype=np.float64)


@redrawn(
    of=lambda dice: replace(
        _LAYER, N=8 * dice.between(1, 4), C=128 * dice.between(1, 3), O=128 * dice.between(2, 4)
    )
)
def _count(of: ConvGeometry = _LAYER) -> Grid:
    return Grid(
        key="implicit-tiles",
        chapter=_CHAPTER,
        level=2,
        title="How many programs?",
        prompt=(
            f"A layer from {of.C} to {of.O} channels on {of.N} images of 28×28, kernel 3×3, "
            "padding 1. One program for each tile of 128×128. How many programs does the forward "
            "pass have, and how many the weight gradient?"
        ),
        starter="answer = [..., ...]  # forward, weight gradient",
        hints=(
            f"Forward: rows are windows, {of.N}·28·28 of them; columns are kernels.",
            f"Weight gradient: rows are kernels, columns are {of.C}·9 taps.",
        ),
        compute=lambda: _tiles(of),
        compute_mistakes=lambda: [
            (
                _tiles(replace(of, N=1)),
                "That is for one image. A tile may hold windows of several.",
            ),
            (
                _tiles(replace(of, C=of.C // 9)),
                f"The columns of the weight gradient are channels *and* taps, {of.C}·9.",
            ),
            (
                _tiles(replace(of, O=_SIDE)),
                f"There are {of.O} kernels, which takes {of.O // _SIDE} tiles.",
            ),
            (_tiles(of)[:, ::-1], "The other way round: the forward pass has the more tiles."),
        ],
        explanation=(
            f"{of.N * 784 // 128}·{of.O // 128} and {of.O // 128}·{of.C * 9 // 128}. The sum of a "
            f"tile has {of.C}·9 terms forward, and {of.N}·28·28 in the weight gradient: as many "
            "products, in fewer and longer sums."
        ),
        solution=f"kernels = {of.O} // 128\n"
        f"answer = [{of.N} * 28 * 28 // 128 * kernels, kernels * {of.C} * 9 // 128]",
    )


# ---- holes -----------------------------------------------------------------------------------

_HOLED: dict[str, ConvGeometry] = {
    "3×3, stride 1": ConvGeometry(C=1, H=48, W=48, O=1, KH=3, KW=3, padding=1),
    "7×7, stride 2": ConvGeometry(C=1, H=48, W=48, O=1, KH=7, KW=7, padding=3, stride=2),
    "3×3, dilation 4": ConvGeometry(C=1, H=48, W=48, O=1, KH=3, KW=3, padding=4, dilation=4),
    "4×4, stride 4": ConvGeometry(C=1, H=48, W=48, O=1, KH=4, KW=4, stride=4),
}


def holes(of: ConvGeometry) -> float:
    """The share of pairs of a cell and a tap that no window brings together."""
    pairs = of.H * of.W * of.KH * of.KW
    met = sum(
        of.cell(*of.source(p, q, i, j)) is not None
        for p, q, i, j in np.ndindex(of.OH, of.OW, of.KH, of.KW)
    )
    return 1 - met / pairs


def _worst() -> int:
    found = [holes(of) for of in _HOLED.values()]
    return found.index(max(found))


_where_holes = Choice(
    key="implicit-holes",
    chapter=_CHAPTER,
    level=3,
    title="Who multiplies most zeros?",
    prompt=(
        "The input gradient as a product of matrices, on images of 48×48: each cell asks for every "
        "tap whether some window had this tap on it. Where is the answer “none” most often?"
    ),
    options=tuple(_HOLED),
    hints=(
        "For a given cell and tap, p = (h + padding − dilation·i)/stride must be a whole number.",
        "Of neighbouring cells, how many have a whole number there? Does it depend on the kernel?",
    ),
    compute=_worst,
    compute_mistakes=lambda: [
        (0, "With stride 1 there is always a window, but for cells at the border."),
        (1, "Every other row and every other column has one: a quarter of the pairs meet."),
        (2, "The dilation moves the taps apart, but the windows still stand everywhere."),
    ],
    explanation=(
        "With stride 4 one row in four and one column in four fits: 15 of 16 products have a zero "
        "for a factor. The kernel's size has no part in it."
    ),
    solution="answer = 3  # 1 − 1/(4·4)",
)

# ---- write it --------------------------------------------------------------------------------


def _matrix(x: np.ndarray, of: ConvGeometry) -> np.ndarray:
    """X as im2col would store it: a row for each window of each image, a column for each r."""
    return unfold(x, of).transpose(0, 2, 1).reshape(-1, of.C * of.KH * of.KW)


def _one_group(of: ConvGeometry) -> bool:
    return of.groups == 1


def _block(matrix: np.ndarray, k: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The block where rows k and columns r cross; zeros beyond the matrix."""
    rows, cols = matrix.shape
    inside = (k < rows) & (r < cols)
    found: np.ndarray = np.where(
        inside, matrix[np.minimum(k, rows - 1), np.minimum(r, cols - 1)], 0
    )
    return found


def _load_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=1, H=5, W=6, O=1, KH=2, KW=3)
    steps: list[dict[str, Any]] = [
        {},
        {"C": 3},
        {"N": 3},
        {"stride": (2, 1)},
        {"dilation": (1, 2)},
        {"padding": (1, 2)},
    ]
    mixed = [random_geometry(rng, _one_group, padding_modes=("zeros",)) for _ in range(4)]
    for of in (*(replace(plain, **each) for each in steps), *mixed):
        _, x, _, _ = random_operands(of, rng)
        matrix = _matrix(x, of)
        first = max(0, len(matrix) - 6)
        # the last blocks of either axis, which reach beyond the matrix
        k = np.arange(first, first + 8)[:, None]
        r = np.arange(max(0, matrix.shape[1] - 5), matrix.shape[1] + 3)[None]
        known = {"geometry": of, "target": None}
        mistakes = tuple(_load_mistakes(x, of, k, r))
        yield Trial((x, k, r, of), _block(matrix, k, r), known, mistakes)


def _load_mistakes(
    x: np.ndarray, of: ConvGeometry, k: np.ndarray, r: np.ndarray
) -> Iterator[tuple[np.ndarray, str]]:
    matrix = _matrix(x, of)
    rows, cols = matrix.shape
    clamped = matrix[np.minimum(k, rows - 1), np.minimum(r, cols - 1)]
    beyond = "beyond the matrix there must be zeros. Mask k and r, too."
    yield clamped, beyond
    per_image, per_channel = of.OH * of.OW, of.KH * of.KW
    last_image = np.minimum(k // per_image, of.N - 1) * per_image + k % per_image
    last_channel = np.minimum(r // per_channel, of.C - 1) * per_channel + r % per_channel
    yield matrix[last_image, last_channel], beyond
    taps = unfold(x, of).reshape(of.N, of.C, of.KH, of.KW, -1)
    channels_last = taps.transpose(0, 4, 2, 3, 1).reshape(rows, cols)
    yield (
        _block(channels_last, k, r),
        "r counts (c·KH + i)·KW + j: the channel changes last, not first.",
    )
    down = taps.reshape(of.N, cols, of.OH, of.OW).transpose(0, 3, 2, 1).reshape(rows, cols)
    yield _block(down, k, r), "k counts (n·OH + p)·OW + q: q changes first, then p."
    (top, bottom), (left, right) = of.padding
    if 0 < max(top, bottom, left, right) <= min(of.H, of.W):
        wrapped = _matrix(x, replace(of, padding_mode="circular"))
        yield (
            _block(wrapped, k, r),
            "above and left of the image, x is read from its other end: Python counts a negative "
            "index from behind. Mask h and v.",
        )


_load = Function(
    key="implicit-load",
    chapter=_CHAPTER,
    level=2,
    title="A block of what nobody stored",
    prompt=(
        "Write `load(x, k, r, geometry)`: `k` is a column of numbers of windows, `(K, 1)`, `r` a "
        "row of numbers of columns, `(1, R)`; the result is the block `(K, R)` of X where they "
        "cross, fetched from `x` itself. On padding, and beyond the last window or the last "
        "column, it is 0. Any stride, zero padding and dilation, one group. "
        "`geometry.source(p, q, i, j)` takes arrays, too."
    ),
    starter=(
        'def load(x, k, r, geometry):\n    """x (N,C,H,W), k (K,1), r (1,R) → (K,R)"""\n    ...'
    ),
    hints=(
        "`//` and `%` work on whole arrays: q is `k % OW`, p is `k // OW % OH`, n is the rest.",
        "Make the mask of h, v, k and r, `(K, R)`. Where it is false, set the indices to 0, so "
        "that nothing outside is read.",
        "`np.where(mask, x[n, c, h, v], 0)`, with all four indices made safe before.",
    ),
    trials=_load_trials,
    solution=(
        "def load(x, k, r, geometry):\n"
        "    N, C, H, W = x.shape\n"
        "    OH, OW, KH, KW = geometry.OH, geometry.OW, geometry.KH, geometry.KW\n"
        "    n, p, q = k // (OH * OW), k // OW % OH, k % OW\n"
        "    c, i, j = r // (KH * KW), r // KW % KH, r % KW\n"
        "    h, v = geometry.source(p, q, i, j)\n"
        "    mask = (n < N) & (c < C) & (0 <= h) & (h < H) & (0 <= v) & (v < W)\n"
        "    at = [np.where(mask, index, 0) for index in (n, c, h, v)]\n"
        "    return np.where(mask, x[*at], 0)"
    ),
)


class _EveryTile:
    """Runs a program for every tile, and lays the tiles side by side."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__code__ = getattr(function, "__code__", None)  # for the line of an error

    def __call__(self, G: np.ndarray, X: np.ndarray, M: int, N: int, K: int) -> Any:
        across = -(-X.shape[1] // N)
        down = -(-len(G) // M)
        tiles = [self.function(number, G, X, M, N, K) for number in range(down * across)]
        if any(tile is None or tile is ... for tile in tiles):
            return None
        strange = [np.asarray(tile) for tile in tiles if np.shape(tile) != (M, N)]
        if strange:
            return strange[0]
        whole = np.block([tiles[row * across : (row + 1) * across] for row in range(down)])
        return whole[: len(G), : X.shape[1]]


@dataclass(frozen=True)
class TileFunction(Function):
    """The answer is ``program(number, G, X, M, N, K)``, run for each tile."""

    def _try(self, function: Callable[..., Any], trial: Trial) -> str | None:
        return super()._try(_EveryTile(function), trial)


def _tile_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=1, H=5, W=5, O=4, KH=2, KW=2)
    steps: list[tuple[dict[str, Any], tuple[int, int, int]]] = [
        # rows, columns and terms that blocks fill
        ({}, (4, 4, 16)),
        ({}, (4, 4, 4)),
        ({"O": 8}, (4, 4, 8)),
        ({"C": 2}, (4, 4, 8)),
        # and those that they do not
        ({"O": 5}, (2, 4, 8)),
        ({"C": 3}, (4, 8, 8)),
        ({"N": 3, "H": 4}, (4, 4, 8)),
        ({"O": 7, "C": 3, "N": 3, "KH": 3}, (4, 8, 8)),
        ({"O": 3, "C": 2}, (2, 2, 4)),
    ]
    for sizes, (M, N, K) in steps:
        of = replace(plain, **sizes)
        _, x, _, g = random_operands(of, rng)
        G, X = g.swapaxes(0, 1).reshape(of.O, -1), _matrix(x, of)
        known = {"geometry": of, "target": None}
        right = windows.grad_weight(g, x, of).reshape(of.O, -1)
        yield Trial((G, X, M, N, K), right, known, tuple(_tile_mistakes(G, X, M, N, K)))


def _tile_mistakes(
    G: np.ndarray, X: np.ndarray, M: int, N: int, K: int
) -> Iterator[tuple[np.ndarray, str]]:
    steps = -(-X.shape[0] // K)
    last = slice((steps - 1) * K, None)
    yield G[:, last] @ X[last], "only the last K terms are left. The blocks add: write +=, not =."
    yield G[:, :K] @ X[:K], "only the first K terms are there. Go on until all are summed."
    whole = X.shape[0] // K * K
    if whole > K:
        yield (
            G[:, :whole] @ X[:whole],
            "the last terms are missing, where they do not fill a block: round the number of "
            "steps up.",
        )
    across, down = -(-X.shape[1] // N), -(-len(G) // M)
    if across > 1 and down > 1:
        yield _dealt_down(G @ X, M, N), "tiles are numbered row by row: number = a·across + b."


def _dealt_down(result: np.ndarray, M: int, N: int) -> np.ndarray:
    """What becomes of a result whose program numbers were taken apart column by column."""
    down, across = -(-result.shape[0] // M), -(-result.shape[1] // N)
    padded = np.zeros((down * M, across * N))
    padded[: result.shape[0], : result.shape[1]] = result
    mixed = np.empty_like(padded)
    for number in range(down * across):
        (a, b), (other_b, other_a) = divmod(number, across), divmod(number, down)
        tile = padded[other_a * M : (other_a + 1) * M, other_b * N : (other_b + 1) * N]
        mixed[a * M : (a + 1) * M, b * N : (b + 1) * N] = tile
    return mixed[: result.shape[0], : result.shape[1]]


_program = TileFunction(
    key="implicit-program",
    chapter=_CHAPTER,
    level=3,
    title="A program that owns a tile",
    prompt=(
        "Write `program(number, G, X, M, N, K)`: the tile with this number of the product G·X, an "
        "array of the shape `(M, N)`. Tiles are numbered row by row. Sum `K` terms at a time. "
        "Where a tile reaches beyond the product, anything may stand in it, but the shape must "
        "be right. It is run once for each tile, and the tiles are laid side by side."
    ),
    starter=(
        "def program(number, G, X, M, N, K):\n"
        '    """G (rows, terms), X (terms, columns) → one tile (M,N)"""\n'
        "    ..."
    ),
    hints=(
        "How many tiles stand in a row? Round up. Then `divmod(number, across)` is the row and the "
        "column of yours.",
        "A slice may reach beyond an array: it just comes out smaller. Put the result into an "
        "array of zeros of the shape (M, N).",
        "`total[: len(g), : seen.shape[1]] += g @ seen` for each block of K terms.",
    ),
    trials=_tile_trials,
    solution=(
        "def program(number, G, X, M, N, K):\n"
        "    across = -(-X.shape[1] // N)\n"
        "    a, b = divmod(number, across)\n"
        "    rows, cols = slice(a * M, (a + 1) * M), slice(b * N, (b + 1) * N)\n"
        "    total = np.zeros((M, N))\n"
        "    for first in range(0, len(X), K):\n"
        "        g = G[rows, first : first + K]\n"
        "        seen = X[first : first + K, cols]\n"
        "        total[: len(g), : seen.shape[1]] += g @ seen\n"
        "    return total"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _intensity,
    _three,
    _address,
    _count,
    _where_holes,
    _load,
    _program,
)
