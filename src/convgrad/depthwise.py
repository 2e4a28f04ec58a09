"""Every channel by itself: one kernel a channel, so there are no matrices to multiply.

A depthwise convolution does little work on each number, and what costs time is starting loops:
NumPy starts one for every row of every image.  So the rows are laid end to end, all images of a
channel in one line, each row as long as the padded image is wide.  Then a tap is a shift: output
cell l meets input cell l + shift, in one long loop.  With a stride, the rows a, a + sh, … and the
columns b, b + sw, … go to a line of their own, and within it a tap is a shift again.

Between the end of one output row and the start of the next lie cells that belong to no output.
They hold zeros, and zeros add nothing, unless they meet an infinity or a nan; then
:mod:`convgrad.fast` takes another route.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .geometry import ConvGeometry
from .memory import WorkingSet
from .padding import fold_border, folded_numbers, pad, padded_numbers, with_border
from .parallel import Workspace, even_slices, run

__all__ = ["forward", "grad_input", "grad_weight", "working_set"]

CHUNK = 500_000  # bytes of padded images that are worked on together: they stay in the cache

# Below, l numbers the outputs along a line, m the inputs; (a, b) says which line.


def forward(
    x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """The convolution without bias: (N, C, H, W) and (C, 1, KH, KW) to (N, C, OH, OW)."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    y = np.empty(geometry.output_shape, np.result_type(x, weight))
    lines, space = Lines(geometry), Workspace(y.dtype)

    def write(channels: slice) -> None:
        for images in lines.some_images(y.itemsize):
            seen = lines.of_inputs(x[images, channels], space)  # c a b m
            total = space.array("total", lines.outputs_shape(y[images, channels]))
            total.fill(0)
            flat = lines.flat(total)  # c l
            product = space.array("product", flat.shape)
            for i, j, a, b, shift in lines.taps():
                tap = weight[channels, 0, i, j, None]
                flat += np.multiply(seen[:, a, b, shift : shift + flat.shape[1]], tap, out=product)
            y[images, channels] = lines.cells(total)

    run(write, lines.some_channels(y.itemsize), threads)
    return y


def grad_weight(
    grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂weight, (C, 1, KH, KW): for each tap one long dot product a channel."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    grad = np.zeros(geometry.weight_shape, np.result_type(grad_output, x))
    lines, space = Lines(geometry), Workspace(grad.dtype)

    def add(channels: slice) -> None:
        for images in lines.some_images(grad.itemsize):
            seen = lines.of_inputs(x[images, channels], space)  # c a b m
            upstream = lines.of_outputs(grad_output[images, channels], space)  # c l
            for i, j, a, b, shift in lines.taps():
                met = seen[:, a, b, shift : shift + upstream.shape[1]]
                # vecdot conjugates its first operand, and nothing is to be conjugated here
                grad[channels, 0, i, j] += np.vecdot(met.conj(), upstream)

    run(add, lines.some_channels(grad.itemsize), threads)
    return grad


def grad_input(
    grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): for each tap its weight times the upstream gradient, shifted."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    grad = np.empty(inner.x_shape, np.result_type(grad_output, weight))
    lines, space = Lines(inner), Workspace(grad.dtype)

    def write(channels: slice) -> None:
        for images in lines.some_images(grad.itemsize):
            upstream = lines.of_outputs(grad_output[images, channels], space)  # c l
            product = space.array("product", upstream.shape)
            total = space.array("total", lines.inputs_shape(grad[images, channels]))
            total.fill(0)
            flat = total.reshape(*total.shape[:3], -1)  # c a b m
            for i, j, a, b, shift in lines.taps():
                tap = weight[channels, 0, i, j, None]
                flat[:, a, b, shift : shift + upstream.shape[1]] += np.multiply(
                    upstream, tap, out=product
                )
            grad[images, channels] = lines.image(total, space)

    run(write, lines.some_channels(grad.itemsize), threads)
    return grad if inner is geometry else fold_border(grad, geometry)


def working_set(geometry: ConvGeometry, threads: int = 1) -> WorkingSet:
    """The results, and for every thread one chunk of lines; counted for double precision."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    padded = 0 if inner is geometry else padded_numbers(geometry)
    lines = Lines(inner)
    channels, images = (each[0].stop for each in (lines.some_channels(8), lines.some_images(8)))
    outputs = channels * images * lines.rows * lines.columns
    inputs = math.prod(inner.stride) * outputs
    moved = inputs if math.prod(inner.stride) > 1 else 0
    return WorkingSet(
        forward=padded + math.prod(inner.output_shape) + threads * (inputs + moved + 2 * outputs),
        grad_input=math.prod(inner.x_shape)
        + max(threads * (inputs + moved + 2 * outputs), folded_numbers(geometry)),
        grad_weight=padded + math.prod(inner.weight_shape) + threads * (inputs + moved + outputs),
    )


class Lines:
    """Images laid out in lines: where a cell stands on its line, and what a tap means there.

    Inputs have the axes c a b n h v: the lines (a, b) of a channel, on each line its images, rows
    and columns.  Outputs have the axes c n p q, and lie as far apart as the inputs of one line.
    """

    def __init__(self, geometry: ConvGeometry) -> None:
        self.geometry = geometry
        (height, width), (sh, sw) = geometry.padded_size, geometry.stride
        self.rows, self.columns = -(-height // sh), -(-width // sw)  # of an image, on one line

    def taps(self) -> Iterator[tuple[int, int, int, int, int]]:
        """For each tap i, j: the line a, b that it reads, and by how much it is shifted there."""
        (sh, sw), (dh, dw) = self.geometry.stride, self.geometry.dilation
        for i, j in np.ndindex(self.geometry.KH, self.geometry.KW):
            (down, a), (right, b) = divmod(dh * i, sh), divmod(dw * j, sw)
            yield i, j, a, b, down * self.columns + right

    # ---- inputs --------------------------------------------------------------------------

    def inputs_shape(self, images: np.ndarray) -> tuple[int, ...]:
        n, c = images.shape[:2]
        return c, *self.geometry.stride, n, self.rows, self.columns

    def of_inputs(self, images: np.ndarray, space: Workspace) -> np.ndarray:
        """These images (n c h v) with their border of zeros, in lines: c a b m."""
        (top, _), (left, _) = self.geometry.padding
        c, sh, sw, n, rows, columns = shape = self.inputs_shape(images)
        padded = space.array("padded", (c, n, rows * sh, columns * sw))
        padded.fill(0)
        _, _, h, v = images.shape
        padded[:, :, top : top + h, left : left + v] = images.swapaxes(0, 1)
        if sh * sw > 1:
            lines = space.array("lines", shape)
            np.copyto(
                lines, padded.reshape(c, n, rows, sh, columns, sw).transpose(0, 3, 5, 1, 2, 4)
            )
            padded = lines
        return padded.reshape(c, sh, sw, n * rows * columns)

    def image(self, lines: np.ndarray, space: Workspace) -> np.ndarray:
        """The way back, border off: from c a b n h v to n c h v."""
        (top, _), (left, _) = self.geometry.padding
        c, sh, sw, n, rows, columns = lines.shape
        padded = lines
        if sh * sw > 1:
            padded = space.array("padded", (c, n, rows, sh, columns, sw))
            np.copyto(padded, lines.transpose(0, 3, 4, 1, 5, 2))
        padded = padded.reshape(c, n, rows * sh, columns * sw)
        there = padded[:, :, top : top + self.geometry.H, left : left + self.geometry.W]
        return there.swapaxes(0, 1)

    # ---- outputs -------------------------------------------------------------------------

    def outputs_shape(self, maps: np.ndarray) -> tuple[int, ...]:
        n, c = maps.shape[:2]
        return c, n, self.rows, self.columns

    def of_outputs(self, maps: np.ndarray, space: Workspace) -> np.ndarray:
        """These maps (n c p q) on one line a channel, zeros between them: c l."""
        spread = space.array("spread", self.outputs_shape(maps))
        spread.fill(0)
        self.cells(spread)[...] = maps
        return self.flat(spread)

    def cells(self, outputs: np.ndarray) -> np.ndarray:
        """The cells that belong to an output, n c p q, a view."""
        return outputs[:, :, : self.geometry.OH, : self.geometry.OW].swapaxes(0, 1)

    def flat(self, outputs: np.ndarray) -> np.ndarray:
        """The line from the first output of the first image to the last one of the last: c l."""
        c, n, rows, columns = outputs.shape
        last = ((n - 1) * rows + self.geometry.OH - 1) * columns + self.geometry.OW
        return outputs.reshape(c, n * rows * columns)[:, :last]

    # ---- how much at a time --------------------------------------------------------------

    def some_images(self, itemsize: int) -> list[slice]:
        """The batch, in slices that leave room for at least one channel."""
        size, N = self._image_bytes(itemsize), self.geometry.N
        return even_slices(N, math.ceil(N * size / max(CHUNK, size)))

    def some_channels(self, itemsize: int) -> list[slice]:
        size, C = self._image_bytes(itemsize), self.geometry.C
        images = max((some.stop - some.start for some in self.some_images(itemsize)), default=1)
        return even_slices(C, math.ceil(C * images * size / max(CHUNK, images * size)))

    def _image_bytes(self, itemsize: int) -> int:
        return math.prod(self.geometry.stride) * self.rows * self.columns * itemsize
