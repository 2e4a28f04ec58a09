"""Every channel by itself: tap by tap, on rows that lie end to end.

A depthwise convolution has no channels to sum over, so im2col would give matrix products with one
row, and its copies would cost far more than the few products.  Here the image is copied once, with
its border, row after row and image after image.  Then one tap is one distance: what it reads, for
all windows of all images, is the same long line of numbers, begun a little later.

    two rows of 4 cells, 3×3 taps, padding 1     . . . . . . . a b c d . . e f g h . . . . . . .
    tap (0, 0) reads from                        ├─────────────────┤
    tap (0, 1)                                     ├─────────────────┤
    tap (1, 0), one row later                                ├─────────────────┤

What it reads between two rows belongs to no window, and is left out in the end.  With a stride the
cells are first sorted into phases: those that one tap can meet, those that its neighbour can.

NumPy sums over all taps in one call: ``einsum``, told to run along the line in its innermost loop.
By itself it takes the taps for that, and then it is ten times slower.

In the gradients the places between the rows hold zeros.  They add nothing, unless they meet an
infinity or a nan; then :class:`NotFiniteError` comes out, and :mod:`convgrad.fast` takes another
route.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .geometry import ConvGeometry
from .memory import WorkingSet
from .padding import fold_border, folded_numbers, inside, pad, padded_numbers, with_border
from .parallel import Workspace, even_slices, run

__all__ = ["NotFiniteError", "forward", "grad_input", "grad_weight", "working_set"]

CHUNK = 240_000  # cells of channels that are worked on together: they stay in the cache

# Below, m counts the kernels of a channel, a and b the taps of a phase, l the places of the lines.


def forward(
    x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """The convolution without bias: (N, C, H, W) and (O, 1, KH, KW) to (N, O, OH, OW)."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    y = np.empty(geometry.output_shape, np.result_type(x, weight))
    lines, space = Lines(geometry), Workspace(y.dtype)
    kernels = lines.kernels(weight)  # c m i j

    def write(images: slice, channels: slice) -> None:
        there = lines.outputs(y, images, channels)  # c m n p q
        total = space.array("total", (*there.shape[:3], *lines.area))
        windows = lines.of_windows(total)  # c m l
        for k, phase in enumerate(lines.phases):
            seen = lines.inputs(x[images, channels], k, space)  # c n r s
            mine = taps_of(phase, kernels)[channels]  # c m a b
            out = windows if k == 0 else lines.of_windows(space.array("product", total.shape))
            np.einsum("cabl,cmab->lmc", lines.taps(seen, phase), mine, out=out.T, order="F")
            if k:
                windows += out
        there[...] = total[..., : geometry.OH, : geometry.OW]

    lines.run(write, threads)
    return y


def grad_weight(
    grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂weight, (O, 1, KH, KW): for each tap, its line of x times the line of g."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    grad = np.zeros(geometry.weight_shape, np.result_type(grad_output, x))
    lines, space = Lines(geometry), Workspace(grad.dtype)
    kernels = lines.kernels(grad)  # c m i j

    def add(images: slice, channels: slice) -> None:
        upstream, _ = lines.upstream(grad_output, images, channels, space)  # c m n r s
        for k, phase in enumerate(lines.phases):
            seen = lines.inputs(x[images, channels], k, space)  # c n r s
            both = lines.taps(seen, phase), lines.of_windows(upstream)
            mine = np.einsum("cabl,cml->cmab", *both, order="C")
            there = taps_of(phase, kernels)[channels]
            there += require_finite(mine)

    lines.run(add, threads)
    return grad


def grad_input(
    grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): each phase gathers g, from as far before as its taps reach after."""
    require_finite(weight)
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    lines = Lines(inner)
    make = np.empty if lines.cover_the_image() else np.zeros  # cells that no tap reads get zero
    grad = make(inner.x_shape, np.result_type(grad_output, weight))
    space = Workspace(grad.dtype)
    kernels = lines.kernels(weight)  # c m i j

    def write(images: slice, channels: slice) -> None:
        _, before = lines.upstream(grad_output, images, channels, space)
        for phase in lines.phases:
            mine = taps_of(phase, kernels)[channels]  # c m a b
            shape = size(channels), size(images), *lines.area  # c n r s
            cells = space.array("inputs 0", shape)
            line = cells.reshape(len(cells), -1)  # c l
            reached = lines.turned_taps(before, phase)  # c m a b l
            np.einsum("cmabl,cmab->lc", reached, mine, out=line.T, order="F")
            there, (rows, columns) = lines.meets(grad[images, channels], phase)
            there[...] = cells[:, :, rows, columns].swapaxes(0, 1)

    lines.run(write, threads)
    return grad if inner is geometry else fold_border(grad, geometry)


class NotFiniteError(ArithmeticError):
    """There is an infinity or a nan among the sums, and it may have met a zero between the rows."""


def require_finite(sums: np.ndarray) -> np.ndarray:
    """The sums, once their sum has shown that all are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(sums.sum()):
            raise NotFiniteError
    return sums


class Along(NamedTuple):
    """Some taps along one axis, and the rows (or columns) of the image that they can meet.

    Attributes
    ----------
    start : int
        First row of the padded image that belongs to the phase; then each ``stride``-th.
    taps : slice
        The taps.
    first, step : int
        How many rows of the phase its first tap is off, and each further one.
    number : int
        How many taps there are.
    """

    start: int
    taps: slice
    first: int
    step: int
    number: int


Phase = tuple[Along, Along]  # rows and columns


def _along(kernel: int, stride: int, dilation: int) -> list[Along]:
    """The phases along one axis."""
    apart = stride // math.gcd(stride, dilation)  # taps of one phase
    return [
        Along(
            start=dilation * i % stride,
            taps=slice(i, None, apart),
            first=dilation * i // stride,
            step=dilation * apart // stride,
            number=len(range(i, kernel, apart)),
        )
        for i in range(min(apart, kernel))
    ]


class Lines:
    """Where the cells and the windows of a convolution lie, when its rows lie end to end."""

    def __init__(self, geometry: ConvGeometry) -> None:
        self.geometry = geometry
        spans = zip(geometry.span, geometry.stride, strict=True)
        reach = [(span - 1) // stride for span, stride in spans]  # of the last tap
        self.area = geometry.OH + reach[0], geometry.OW + reach[1]
        self.farthest = reach[0] * self.area[1] + reach[1]  # as a distance on the line
        kernels = geometry.KH, geometry.KW
        rows, columns = map(_along, kernels, geometry.stride, geometry.dilation)
        self.phases: list[Phase] = list(product(rows, columns))

    def kernels(self, weight: np.ndarray) -> np.ndarray:
        """The kernels by channels, c m i j: a view."""
        geometry = self.geometry
        return weight.reshape(geometry.C, geometry.OG, geometry.KH, geometry.KW)

    def outputs(self, maps: np.ndarray, images: slice, channels: slice) -> np.ndarray:
        """The output maps of these channels, c m n p q: a view."""
        by_channel = maps.reshape(
            len(maps), self.geometry.C, self.geometry.OG, *maps.shape[2:]
        )  # n c m p q
        return by_channel[images, channels].transpose(1, 2, 0, 3, 4)

    # ---- the lines -----------------------------------------------------------------------

    def inputs(self, images: np.ndarray, k: int, space: Workspace) -> np.ndarray:
        """The cells of the k-th phase, with the border: c n r s."""
        there, (rows, columns) = self.meets(images, self.phases[k])
        cells = space.framed(f"inputs {k}", (images.shape[1], len(images), *self.area))
        cells[:, :, rows, columns] = there.swapaxes(0, 1)
        return cells

    def meets(self, images: np.ndarray, phase: Phase) -> tuple[np.ndarray, tuple[slice, slice]]:
        """The cells of a phase that lie in the images, and which of its rows and columns they are.

        The cells are a view: n c, rows, columns.
        """
        (top, _), (left, _) = self.geometry.padding
        sh, sw = self.geometry.stride
        high, wide = self.area
        rows, columns = phase
        p, h = inside(rows.start - top, sh, high, images.shape[2])
        q, v = inside(columns.start - left, sw, wide, images.shape[3])
        return images[:, :, h, v], (p, q)

    def cover_the_image(self) -> bool:
        """Whether each cell of the image lies in one of the phases."""
        geometry = self.geometry
        ends = zip(geometry.stride, self.area, geometry.padding, geometry.x_shape[2:], strict=True)
        every = len(self.phases) == math.prod(geometry.stride)
        return every and all(s * rows >= before + size for s, rows, (before, _), size in ends)

    def upstream(
        self, grad_output: np.ndarray, images: slice, channels: slice, space: Workspace
    ) -> tuple[np.ndarray, np.ndarray]:
        """The windows' g with zeros between, c m n r s; and the lines with zeros before, c m l."""
        mine = self.outputs(grad_output, images, channels)
        c, m, n, OH, OW = mine.shape
        lines = space.framed("upstream", (c, m, self.farthest + n * math.prod(self.area)))
        laid = lines[..., self.farthest :].reshape(c, m, n, *self.area)
        laid[..., :OH, :OW] = mine
        return laid, lines

    def of_windows(self, laid: np.ndarray) -> np.ndarray:
        """The line as far as the last window, c m l, of c m n r s: a view."""
        lines = laid.reshape(*laid.shape[:2], -1)
        return lines[..., : lines.shape[2] - self.farthest]

    # ---- what the taps see ---------------------------------------------------------------

    def taps(self, cells: np.ndarray, phase: Phase) -> np.ndarray:
        """What each tap reads of the cells (c n r s), as far as the last window: c a b l."""
        lines = cells.reshape(len(cells), -1)
        first, (a, b) = self._distances(phase, cells.itemsize)
        c, one = lines.strides
        return as_strided(
            lines[:, first:],
            (len(lines), *numbers(phase), lines.shape[1] - self.farthest),
            (c, a, b, one),
            writeable=False,
        )

    def turned_taps(self, lines: np.ndarray, phase: Phase) -> np.ndarray:
        """What each cell collects from g, by taps: the lines with zeros before, c m a b l."""
        first, (a, b) = self._distances(phase, lines.itemsize)
        c, m, one = lines.strides
        return as_strided(
            lines[..., self.farthest - first :],
            (*lines.shape[:2], *numbers(phase), lines.shape[2] - self.farthest),
            (c, m, -a, -b, one),
            writeable=False,
        )

    def _distances(self, phase: Phase, itemsize: int) -> tuple[int, tuple[int, int]]:
        """How far the first tap is off, in numbers, and each further one, in bytes."""
        rows, columns = phase
        width = self.area[1]
        first = rows.first * width + columns.first
        return first, (rows.step * width * itemsize, columns.step * itemsize)

    # ---- who does what -------------------------------------------------------------------

    def run(self, work: Callable[[slice, slice], None], threads: int) -> None:
        """``work(images, channels)`` for all: channels side by side, images one after another."""

        def of(channels: slice) -> None:
            for images in self.some_images():
                work(images, channels)

        run(of, self.some_channels(threads), threads)

    def some_images(self) -> list[slice]:
        """The batch, in slices that leave room for a channel."""
        one, N = math.prod(self.area), self.geometry.N
        return even_slices(N, math.ceil(N * one / max(CHUNK, one)))

    def some_channels(self, threads: int) -> list[slice]:
        """The channels, in slices of about :data:`CHUNK` cells, as many for each thread."""
        together = size(self.some_images()[0]) * math.prod(self.area)
        turns = math.ceil(self.geometry.C * together / (max(CHUNK, together) * threads))
        return even_slices(self.geometry.C, turns * threads)


def taps_of(phase: Phase, kernels: np.ndarray) -> np.ndarray:
    """The taps of a phase, c m a b, of kernels c m i j: a view."""
    rows, columns = phase
    return kernels[:, :, rows.taps, columns.taps]


def numbers(phase: Phase) -> tuple[int, int]:
    """How many rows and columns of taps a phase has."""
    rows, columns = phase
    return rows.number, columns.number


def size(some: slice) -> int:
    return some.stop - some.start


def working_set(geometry: ConvGeometry, threads: int = 1) -> WorkingSet:
    """The results, and for every thread one chunk; counted for double precision."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    border = 0 if inner is geometry else padded_numbers(geometry)
    lines = Lines(inner)
    channels = size(lines.some_channels(threads)[0])
    cells = channels * size(lines.some_images()[0]) * math.prod(lines.area)
    windows = inner.OG * (cells + channels * lines.farthest)
    sums = (1 if len(lines.phases) == 1 else 2) * inner.OG * cells
    phases = len(lines.phases) * cells
    return WorkingSet(
        forward=border + math.prod(inner.output_shape) + threads * (phases + sums),
        grad_input=math.prod(inner.x_shape)
        + max(threads * (cells + windows), folded_numbers(geometry)),
        grad_weight=border + math.prod(inner.weight_shape) + threads * (phases + windows),
    )
