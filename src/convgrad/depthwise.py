"""Every channel by itself: the rows of its kernels as matrices with a band.

A depthwise convolution has no channels to sum over, so im2col would give a matrix product with one
row.  But along a row of the image a row of taps is linear too: as a matrix from input columns to
output columns it holds the taps on slanted lines, and zeros elsewhere.

    input columns v = 0 … 4, outputs q = 0 … 2, taps a b c       a . .
    (stride 1; the stride is how far the lines slant)            b a .
                                                                 c b a
                                                                 . c b
                                                                 . . c

Most of what is multiplied is zero, and still it is faster than adding tap by tap: one matrix
product does what takes KH·KW passes over the image otherwise.  Output rows are cut into tiles of
equal width, so that the matrix, and with it the share of zeros, stays small.

The zeros add nothing, unless they meet an infinity or a nan; then :class:`NotFiniteError` comes
out, and :mod:`convgrad.fast` takes another route.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .geometry import ConvGeometry
from .memory import WorkingSet
from .padding import fold_border, folded_numbers, pad, padded_numbers, with_border
from .parallel import Workspace, even_slices, run
from .turned import is_convolution, search, turned

__all__ = ["NotFiniteError", "forward", "grad_input", "grad_weight", "working_set"]

CHUNK = 8_000_000  # bytes of input tiles that are worked on together
WIDEST = 32  # output columns in a tile

# Below, m counts the kernels of a channel, t the tiles of a row, v the input columns of a tile and
# q its output columns.  c, n, i, p mean what they mean everywhere.


def forward(
    x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """The convolution without bias: (N, C, H, W) and (O, 1, KH, KW) to (N, O, OH, OW)."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    y = np.empty(geometry.output_shape, np.result_type(x, weight))
    tiles, space = Tiles(geometry), Workspace(y.dtype)

    def write(images: slice, channels: slice) -> None:
        seen = tiles.of_inputs(x[images, channels], space)  # c (n p t) (i v)
        bands = tiles.bands(weight, channels, space)  # c (i v) (m q)
        products = space.array("products", (len(seen), seen.shape[1], bands.shape[2]))
        require_finite(np.matmul(seen, bands, out=products))
        tiles.outputs(y, images, channels)[...] = tiles.as_outputs(products, images)

    tiles.run(write, y.itemsize, threads)
    return y


def grad_weight(
    grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂weight, (O, 1, KH, KW): what a band would get, summed along its slanted lines."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    grad = np.zeros(geometry.weight_shape, np.result_type(grad_output, x))
    tiles, space = Tiles(geometry), Workspace(grad.dtype)

    def add(images: slice, channels: slice) -> None:
        seen = tiles.of_inputs(x[images, channels], space)  # c (n p t) (i v)
        upstream = tiles.of_outputs(grad_output, images, channels, space)  # c (n p t) (m q)
        bands = space.array("bands", (len(seen), seen.shape[2], upstream.shape[2]))
        np.matmul(seen.swapaxes(1, 2), upstream, out=bands)
        mine = grad[tiles.kernels(channels), 0]
        mine += require_finite(tiles.lines(bands).sum(axis=-1)).reshape(mine.shape)

    tiles.run(add, grad.itemsize, threads)
    return grad


def grad_input(
    grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): a convolution of g where it is one, else each row of tiles put back."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    if geometry.OG == 1 and is_convolution(geometry):
        grad = forward(grad_output, turned(weight, geometry), search(inner), threads)
    else:
        grad = scatter(grad_output, weight, inner, threads)
    return grad if inner is geometry else fold_border(grad, geometry)


def scatter(
    grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int
) -> np.ndarray:
    """grad_input as transposed bands times g, every product added to the cell it came from."""
    grad = np.empty(geometry.x_shape, np.result_type(grad_output, weight))
    tiles, space = Tiles(geometry), Workspace(grad.dtype)

    def write(images: slice, channels: slice) -> None:
        upstream = tiles.of_outputs(grad_output, images, channels, space)  # c (n p t) (m q)
        bands = tiles.bands(weight, channels, space)  # c (i v) (m q)
        products = space.array("inputs", (len(bands), upstream.shape[1], bands.shape[1]))
        require_finite(np.matmul(upstream, bands.swapaxes(1, 2), out=products))
        grad[images, channels] = tiles.put_back(products, images, space)

    tiles.run(write, grad.itemsize, threads)
    return grad


class NotFiniteError(ArithmeticError):
    """There is an infinity or a nan among the products, and it may have met a zero of a band."""


def require_finite(products: np.ndarray) -> np.ndarray:
    """The products, once their sum has shown that all are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(products.sum()):
            raise NotFiniteError
    return products


class Tiles:
    """Output rows cut into tiles, with the input that each tile reads."""

    def __init__(self, geometry: ConvGeometry) -> None:
        self.geometry = geometry
        (_, sw), (_, span) = geometry.stride, geometry.span
        self.count = math.ceil(geometry.OW / WIDEST)
        self.width = math.ceil(geometry.OW / self.count)  # output columns of a tile
        self.reach = sw * (self.width - 1) + span  # input columns of a tile
        # the last tile may be wider than the image: as many columns as that takes
        self.columns = sw * (self.count * self.width - 1) + span

    # ---- the band matrices ---------------------------------------------------------------

    def bands(self, weight: np.ndarray, channels: slice, space: Workspace) -> np.ndarray:
        """The kernels of these channels as band matrices, c (i v) (m q)."""
        geometry = self.geometry
        kernels = weight[self.kernels(channels), 0].reshape(
            size(channels), geometry.OG, geometry.KH, geometry.KW
        )
        rows, columns = geometry.KH * self.reach, geometry.OG * self.width
        bands = space.array("bands", (size(channels), rows, columns))
        bands.fill(0)
        self.lines(bands)[...] = kernels[..., None]
        return bands

    def lines(self, bands: np.ndarray) -> np.ndarray:
        """The slanted lines of the taps in such matrices, c m i j q: a view."""
        geometry, (c, row, one) = self.geometry, bands.strides
        (_, sw), (_, dw) = geometry.stride, geometry.dilation
        # output column q of the tile reads, under tap j, input column v = sw·q + dw·j
        return as_strided(
            bands,
            (len(bands), geometry.OG, geometry.KH, geometry.KW, self.width),
            (c, self.width * one, self.reach * row, dw * row, sw * row + one),
        )

    # ---- inputs --------------------------------------------------------------------------

    def of_inputs(self, images: np.ndarray, space: Workspace) -> np.ndarray:
        """What each tile reads of these images (n c h v): c (n p t) (i v)."""
        geometry = self.geometry
        (top, _), (left, _) = geometry.padding
        (sh, sw), (dh, _) = geometry.stride, geometry.dilation
        n, c, _, _ = images.shape
        padded = space.array("padded", (c, n, geometry.padded_size[0], self.columns))
        padded.fill(0)
        kept = min(geometry.W, self.columns - left)  # a leftover is not read
        padded[:, :, top : top + geometry.H, left : left + kept] = images[..., :kept].swapaxes(0, 1)
        per_c, per_n, row, one = padded.strides
        seen = as_strided(
            padded,
            (c, n, geometry.OH, self.count, geometry.KH, self.reach),
            (per_c, per_n, sh * row, sw * self.width * one, dh * row, one),
            writeable=False,
        )
        written = space.array("inputs", seen.shape)
        np.copyto(written, seen)
        return written.reshape(c, n * geometry.OH * self.count, geometry.KH * self.reach)

    def put_back(self, products: np.ndarray, images: slice, space: Workspace) -> np.ndarray:
        """The adjoint: every product added to the cell that it came from, n c h v."""
        geometry, c, n = self.geometry, len(products), size(images)
        (top, _), (left, _) = geometry.padding
        (sh, sw), (dh, _) = geometry.stride, geometry.dilation
        padded = space.array("padded", (c, n, geometry.padded_size[0], self.columns_kept))
        padded.fill(0)
        shape = c, n, geometry.OH, self.count, geometry.KH, self.reach
        laid = products.reshape(shape)
        for i, t in np.ndindex(geometry.KH, self.count):
            rows = slice(dh * i, dh * i + sh * (geometry.OH - 1) + 1, sh)
            first = sw * self.width * t
            padded[:, :, rows, first : first + self.reach] += laid[:, :, :, t, i]
        there = padded[:, :, top : top + geometry.H, left : left + geometry.W]
        return there.swapaxes(0, 1)

    @property
    def columns_kept(self) -> int:
        """As many columns as the tiles read, and as the padded image has."""
        return max(self.columns, self.geometry.padded_size[1])

    # ---- outputs -------------------------------------------------------------------------

    def kernels(self, channels: slice) -> slice:
        """The kernels, and so the output channels, of these input channels."""
        return slice(channels.start * self.geometry.OG, channels.stop * self.geometry.OG)

    def outputs(self, maps: np.ndarray, images: slice, channels: slice) -> np.ndarray:
        """The maps of these channels, c n p m q: a view."""
        mine = maps[images, self.kernels(channels)]
        n, _, OH, OW = mine.shape
        return mine.reshape(n, size(channels), self.geometry.OG, OH, OW).transpose(1, 0, 3, 2, 4)

    def of_outputs(
        self, maps: np.ndarray, images: slice, channels: slice, space: Workspace
    ) -> np.ndarray:
        """These maps in tiles, zeros where the last one is too wide: c (n p t) (m q)."""
        geometry, mine = self.geometry, self.outputs(maps, images, channels)
        c, n = mine.shape[:2]
        tiled = space.array("outputs", (c, n, geometry.OH, self.count, geometry.OG, self.width))
        for t in range(self.count):
            part = mine[..., t * self.width : (t + 1) * self.width]
            tiled[:, :, :, t, :, : part.shape[-1]] = part
            tiled[:, :, :, t, :, part.shape[-1] :] = 0
        return tiled.reshape(c, n * geometry.OH * self.count, geometry.OG * self.width)

    def as_outputs(self, products: np.ndarray, images: slice) -> np.ndarray:
        """The way back: c n p m q from c (n p t) (m q)."""
        geometry, n = self.geometry, size(images)
        shape = len(products), n, geometry.OH, self.count, geometry.OG, self.width
        by_row = products.reshape(shape).swapaxes(3, 4)  # c n p m t q
        return by_row.reshape(*by_row.shape[:4], -1)[..., : geometry.OW]

    # ---- who does what -------------------------------------------------------------------

    def run(self, work: Callable[[slice, slice], None], itemsize: int, threads: int) -> None:
        """``work(images, channels)`` for all: channels side by side, images one after another."""

        def of(channels: slice) -> None:
            for images in self.some_images(itemsize):
                work(images, channels)

        run(of, self.some_channels(itemsize, threads), threads)

    def some_images(self, itemsize: int) -> list[slice]:
        """The batch, in slices that leave room for a channel."""
        one, N = self.tiled_numbers * itemsize, self.geometry.N
        return even_slices(N, math.ceil(N * one / max(CHUNK, one)))

    def some_channels(self, itemsize: int, threads: int) -> list[slice]:
        """The channels, in slices of about :data:`CHUNK` bytes, at least one for each thread."""
        together = size(self.some_images(itemsize)[0]) * self.tiled_numbers * itemsize
        turns = math.ceil(self.geometry.C * together / (max(CHUNK, together) * threads))
        return even_slices(self.geometry.C, turns * threads)

    @property
    def tiled_numbers(self) -> int:
        """How many numbers the tiles of one image and channel read."""
        geometry = self.geometry
        return geometry.OH * self.count * geometry.KH * self.reach


def size(some: slice) -> int:
    return some.stop - some.start


def working_set(geometry: ConvGeometry, threads: int = 1) -> WorkingSet:
    """The results, and for every thread one chunk; counted for double precision."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    border = 0 if inner is geometry else padded_numbers(geometry)
    tiles = Tiles(inner)
    channels = size(tiles.some_channels(8, threads)[0])
    maps = channels * size(tiles.some_images(8)[0])
    read = maps * (tiles.tiled_numbers + inner.padded_size[0] * tiles.columns_kept)
    outputs = maps * inner.OH * tiles.count * inner.OG * tiles.width
    bands = channels * inner.KH * tiles.reach * inner.OG * tiles.width
    at_work = threads * (read + outputs + bands)
    return WorkingSet(
        forward=border + math.prod(inner.output_shape) + at_work,
        grad_input=math.prod(inner.x_shape) + max(at_work, folded_numbers(geometry)),
        grad_weight=border + math.prod(inner.weight_shape) + at_work,
    )
