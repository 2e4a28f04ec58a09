"""im2col in small blocks: the columns of a few rows of windows at a time.

The matrix products are those of :mod:`convgrad.im2col`.  But the columns of all windows at once
are far larger than a processor's cache, and waiting for memory takes longer than multiplying.
Here a block of columns is written, multiplied while it is still in the cache, and overwritten by
the next one.  Several threads share the work so that each writes numbers of its own: some of the
images, or some of the channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .geometry import ConvGeometry
from .memory import WorkingSet
from .padding import fold_border, folded_numbers, inside, pad, padded_numbers, with_border
from .parallel import Workspace, even_slices, run
from .turned import is_convolution, search, turned
from .windows import window_numbers

__all__ = ["forward", "grad_input", "grad_weight", "working_set"]

# Bytes of columns in a block: a sixteenth of all, so that a few threads still hold far less than
# all columns, and within these bounds.  Fewer, and threads spend their time on taking turns with
# Python's lock; more, and the block has left the cache before it is multiplied.
SMALLEST, LARGEST = 900_000, 8_000_000
# Bytes of weights whose gradient a thread sums up together: in fewer turns less is copied, but
# more is held.  Small images have fewer columns to hold.
LARGEST_SUM, LARGEST_SUM_TOGETHER = 1_100_000, 2_500_000
FEW = 128  # output channels: a product with fewer rows than columns runs better turned round
# Windows of a block, at least: with fewer, a matrix product spends its time on the other operand
# (small images make larger blocks together), and a sum of products on the additions.
LEAST, LEAST_TOGETHER, LEAST_SUMMED = 160, 256, 512


class Block(NamedTuple):
    """Some images, and some rows of their outputs."""

    images: slice
    rows: slice


class Part(NamedTuple):
    """Some groups, and some input channels and kernel rows of each."""

    groups: slice
    channels: slice
    taps: slice


# Below, k counts the groups, r = (c, i, j) the rows of the columns and l = (p, q, n) the windows of
# a block.  Its images come last, so that small maps, too, are copied in long runs.


def forward(
    x: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
    threads: int = 1,
) -> np.ndarray:
    """The convolution without bias, (N, O, OH, OW), one block at a time."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    y = np.empty(geometry.output_shape, np.result_type(x, weight))
    kernels = weight.reshape(geometry.groups, geometry.OG, -1)  # k o r
    part, space = everything(geometry), Workspace(y.dtype)

    def write(block: Block) -> None:
        seen = columns(x, block, part, geometry, space)  # k r l
        there = y[block.images, :, block.rows]  # n (k o) p q
        shape = *kernels.shape[:2], seen.shape[2]  # k o l
        if len(there) == 1:  # the rows of one image lie together
            np.matmul(kernels, seen, out=there.reshape(shape))
        else:
            product = space.array("product", shape)
            put_first(np.matmul(kernels, seen, out=product), there)

    everywhere = blocks(geometry, part, slice(0, geometry.N), y.itemsize)
    run(write, list(everywhere), threads)
    return y


def grad_weight(
    grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂weight, (O, C/G, KH, KW): upstream gradient times columns, one block after the other."""
    if geometry.padding_mode != "zeros":
        x, geometry = pad(x, geometry), with_border(geometry)
    grad = np.zeros(geometry.weight_shape, np.result_type(grad_output, x))
    by_group = grad.reshape(geometry.groups, geometry.OG, *grad.shape[1:])  # k o c i j
    space = Workspace(grad.dtype)

    def add(part: Part) -> None:
        mine = by_group[part.groups, :, part.channels, part.taps]
        shape = size(part.groups), geometry.OG, mine[0, 0].size  # k o r
        # With few kernels the product runs better turned round.  Turning each round again would
        # take as long as the product itself, so they are summed as they come: k r o.
        turn = geometry.OG <= FEW
        # Otherwise the sum grows where it belongs, unless only some rows of taps are asked for.
        here = not turn and size(part.taps) == geometry.KH
        turned_shape = (shape[0], shape[2], shape[1]) if turn else shape
        total = mine.reshape(shape) if here else space.array("total", turned_shape)
        out = total  # of the first product; the others are added
        for block in blocks(geometry, part, slice(0, geometry.N), grad.itemsize, LEAST_SUMMED):
            upstream = output_rows(grad_output, block, part, geometry, space)  # k o l
            seen = columns(x, block, part, geometry, space)  # k r l
            a, b = (seen, upstream) if turn else (upstream, seen)
            np.matmul(a, b.swapaxes(1, 2), out=out)
            if out is not total:
                total += out
            out = space.array("product", total.shape)
        if geometry.N and not here:
            mine[...] = (total.swapaxes(1, 2) if turn else total).reshape(mine.shape)

    run(add, summed(geometry, threads, grad.itemsize), threads)
    return grad


def grad_input(
    grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry, threads: int = 1
) -> np.ndarray:
    """∂L/∂x, (N, C, H, W): gathered where that can be done, else scattered."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    if can_gather(geometry) and np.isfinite(weight).all():
        return gather(forward, grad_output, weight, geometry, threads)
    grad = scatter(grad_output, weight, inner, threads)
    return grad if inner is geometry else fold_border(grad, geometry)


def gather(
    convolve: Callable[[np.ndarray, np.ndarray, ConvGeometry, int], np.ndarray],
    grad_output: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
    threads: int,
) -> np.ndarray:
    """grad_input as the convolution that it is, made by ``convolve``, a forward pass.

    It multiplies weights with zeros around g, which an infinity or nan among them would notice.
    """
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    grad = convolve(grad_output, turned(weight, geometry), search(inner), threads)
    return grad if inner is geometry else fold_border(grad, geometry)


def can_gather(geometry: ConvGeometry) -> bool:
    """Whether grad_input is itself such a convolution, and whether that pays.

    It copies g once per tap, where :func:`scatter` adds to x once per tap, and an addition takes
    about twice as long as a copy.  It does not pay where there is much more of g than of x, or more
    weights to turn than g.
    """
    pays = geometry.OG <= 2 * geometry.CG
    pays &= math.prod(geometry.weight_shape) <= math.prod(geometry.output_shape)
    return is_convolution(geometry) and pays


def scatter(
    grad_output: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
    threads: int,
) -> np.ndarray:
    """grad_input: transposed kernels times g, every product added back."""
    grad = np.zeros(geometry.x_shape, np.result_type(grad_output, weight))
    split = geometry.groups, geometry.OG
    kernels = weight.reshape(*split, *weight.shape[1:])  # k o c i j
    space = Workspace(grad.dtype)

    def add(piece: tuple[slice, Part]) -> None:
        images, part = piece
        mine = kernels[part.groups, :, part.channels]
        mine = mine.reshape(*mine.shape[:2], -1).swapaxes(1, 2)  # k r o
        for block in blocks(geometry, part, images, grad.itemsize):
            # k o l
            upstream = output_rows(grad_output, block, part, geometry, space)
            shape = *mine.shape[:2], upstream.shape[2]  # k r l
            # as large as the columns of the other gradient: kept in one place
            product = space.array("columns", shape)
            np.matmul(mine, upstream, out=product)
            there = grad[block.images, channels_of(part, geometry)]  # n c h v
            if len(there) == 1:
                add_back(product, block, there.transpose(1, 2, 3, 0), geometry)
            else:  # all rows of these images, so all that they ever get
                total = space.array("total", (*there.shape[1:], len(there)))
                total.fill(0)
                add_back(product, block, total, geometry)
                put_first(total, there)

    run(add, scattered(geometry, threads), threads)
    return grad


# ---- the columns, and their way back ---------------------------------------------------------


def columns(
    x: np.ndarray,
    block: Block,
    part: Part,
    geometry: ConvGeometry,
    space: Workspace,
) -> np.ndarray:
    """The windows of this block as columns of the part: k r l."""
    images = x[block.images, channels_of(part, geometry)]
    patch = padded_rows(images, block, geometry, space)
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    taps, places = (geometry.KH, geometry.KW), (size(block.rows), geometry.OW)
    c, h, v, n = patch.strides
    seen = as_strided(  # c i j p q n
        patch,
        (len(patch), *taps, *places, len(images)),
        (c, dh * h, dw * v, sh * h, sw * v, n),
        writeable=False,
    )[:, part.taps]
    written = space.array("columns", seen.shape)
    np.copyto(written, seen)
    channels, KH, KW, *_ = seen.shape
    groups = size(part.groups)
    rows = channels // groups * KH * KW
    return written.reshape(groups, rows, len(images) * math.prod(places))


def padded_rows(
    images: np.ndarray, block: Block, geometry: ConvGeometry, space: Workspace
) -> np.ndarray:
    """The rows of these images that the block's windows read, with the zeros around: c h v n."""
    last = images.transpose(1, 2, 3, 0)
    if not _copies(geometry, len(images)):
        return last[:, geometry.stride[0] * block.rows.start :]
    (top, _), (left, _) = geometry.padding
    start = geometry.stride[0] * block.rows.start - top
    stop = geometry.stride[0] * (block.rows.stop - 1) - top + geometry.span[0]
    shape = len(last), stop - start, geometry.padded_size[1], len(images)
    patch = space.array("patch", shape)
    patch.fill(0)
    low, high = max(start, 0), min(stop, geometry.H)
    if low < high:  # else the windows lie on the border alone
        patch[:, low - start : high - start, left : left + geometry.W] = last[:, low:high]
    return patch


def _copies(geometry: ConvGeometry, images: int) -> bool:
    """Whether a patch is a copy: for its border, or of several images whose cells all serve."""
    if geometry.padding != ((0, 0), (0, 0)):
        return True
    return images > 1 and math.prod(geometry.stride) < geometry.KH * geometry.KW


def put_first(numbers: np.ndarray, there: np.ndarray) -> None:
    """Writes numbers whose images come last to where they come first."""
    laid = numbers.reshape(*there.shape[1:], len(there))
    for n, each in enumerate(there):
        each[...] = laid[..., n]


def add_back(product: np.ndarray, block: Block, there: np.ndarray, geometry: ConvGeometry) -> None:
    """Adds every product (k r l) to the cell of ``there`` (c h v n) that its tap read.

    What lies on the border is lost.
    """
    rows = size(block.rows)
    laid = product.reshape(len(there), geometry.KH, geometry.KW, rows, geometry.OW, there.shape[3])
    (top, _), (left, _) = geometry.padding
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    for i, j in np.ndindex(geometry.KH, geometry.KW):
        p, h = inside(sh * block.rows.start + dh * i - top, sh, rows, geometry.H)
        q, v = inside(dw * j - left, sw, geometry.OW, geometry.W)
        there[:, h, v] += laid[:, i, j, p, q]


def output_rows(
    grad_output: np.ndarray, block: Block, part: Part, geometry: ConvGeometry, space: Workspace
) -> np.ndarray:
    """The upstream gradient of this block, each map as one row: (groups, O/G, windows), k o l."""
    outputs = slice(part.groups.start * geometry.OG, part.groups.stop * geometry.OG)
    maps = grad_output[block.images, outputs, block.rows]  # n (k o) p q
    if len(maps) == 1:
        last = maps
    else:
        last = space.array("upstream", (*maps.shape[1:], len(maps)))
        for n, each in enumerate(maps):
            last[..., n] = each
    return last.reshape(size(part.groups), geometry.OG, maps[:, 0].size)


# ---- who does what ---------------------------------------------------------------------------


def blocks(
    geometry: ConvGeometry,
    part: Part,
    images: slice,
    itemsize: int,
    least: int = 0,
) -> Iterator[Block]:
    """The outputs of these images, in blocks of columns of a good size.

    Small images share a block, large ones are cut into rows, each with at least
    as many windows as asked for.
    """
    whole = window_numbers(geometry) * itemsize
    block = min(max(whole // 16, SMALLEST), LARGEST)
    least = max(least, LEAST_TOGETHER if is_small(geometry) else LEAST)
    windows = max(block // (_taps(part, geometry) * itemsize), least)
    rows = windows // geometry.OW
    if rows >= geometry.OH:
        count = math.ceil(size(images) / (rows // geometry.OH))
        for some in even_slices(size(images), count):
            here = slice(images.start + some.start, images.start + some.stop)
            yield Block(here, slice(0, geometry.OH))
    else:
        count = math.ceil(geometry.OH / max(rows, 1))
        for n in range(images.start, images.stop):
            for some in even_slices(geometry.OH, count):
                yield Block(slice(n, n + 1), some)


def is_small(geometry: ConvGeometry) -> bool:
    """Whether an image is less than a block."""
    return geometry.OH * geometry.OW <= LEAST_TOGETHER


def everything(geometry: ConvGeometry) -> Part:
    return Part(slice(0, geometry.groups), slice(0, geometry.CG), slice(0, geometry.KH))


def parts(geometry: ConvGeometry, count: int, cut_taps: bool = True) -> list[Part]:
    """The kernels cut into about ``count`` parts: by groups, by channels, or by rows of taps."""
    groups, channels, taps = whole = everything(geometry)
    if geometry.groups > 1:
        return [whole._replace(groups=some) for some in even_slices(groups.stop, count)]
    if 2 * count <= geometry.CG or not cut_taps:
        return [whole._replace(channels=some) for some in even_slices(channels.stop, count)]
    return [whole._replace(taps=some) for some in even_slices(taps.stop, count)]


def summed(geometry: ConvGeometry, threads: int, itemsize: int) -> list[Part]:
    """The parts of grad_weight: so small that a product stays in the cache, as many per thread."""
    largest = LARGEST_SUM_TOGETHER if is_small(geometry) else LARGEST_SUM
    turns = math.ceil(math.prod(geometry.weight_shape) * itemsize / (largest * threads))
    return parts(geometry, turns * threads)


def scattered(geometry: ConvGeometry, threads: int) -> list[tuple[slice, Part]]:
    """The pieces of grad_input, by images or by channels: no two threads may add to one cell."""
    if threads <= geometry.N:
        return [(images, everything(geometry)) for images in even_slices(geometry.N, threads)]
    whole = slice(0, geometry.N)
    return [(whole, part) for part in parts(geometry, threads, cut_taps=False)]


def channels_of(part: Part, geometry: ConvGeometry) -> slice:
    """The channels of x that this part reads (it has several groups, or one cut, never both)."""
    first, last = part.groups.start, part.groups.stop - 1
    return slice(first * geometry.CG + part.channels.start, last * geometry.CG + part.channels.stop)


def size(some: slice) -> int:
    return some.stop - some.start


# ---- how much of it at once ------------------------------------------------------------------


def working_set(geometry: ConvGeometry, threads: int = 1) -> WorkingSet:
    """The results, and for every thread one block; counted for double precision."""
    inner = geometry if geometry.padding_mode == "zeros" else with_border(geometry)
    padded = 0 if inner is geometry else padded_numbers(geometry)
    if can_gather(geometry):
        grad_input = math.prod(geometry.weight_shape) + _forward_numbers(search(inner), threads)
    else:
        images, part = scattered(inner, threads)[0]
        block, places = _first_block(inner, part, images)
        several = size(block.images) if size(block.images) > 1 else 0
        copied = geometry.O * places if several else 0
        copied += several * geometry.C * geometry.H * geometry.W
        grad_input = math.prod(inner.x_shape) + threads * (_taps(part, inner) * places + copied)
    part = summed(inner, threads, itemsize=8)[0]
    block, places = _first_block(inner, part, slice(0, inner.N), LEAST_SUMMED)
    product = geometry.OG * _taps(part, inner) * (2 if geometry.OG <= FEW else 1)
    copied = geometry.O * places if size(block.images) > 1 else 0
    at_work = _columns_numbers(inner, part, block, places) + product + copied
    return WorkingSet(
        forward=padded + _forward_numbers(inner, threads),
        grad_input=grad_input + folded_numbers(geometry),
        grad_weight=padded + math.prod(geometry.weight_shape) + threads * at_work,
    )


def _forward_numbers(geometry: ConvGeometry, threads: int) -> int:
    part = everything(geometry)
    block, places = _first_block(geometry, part, slice(0, geometry.N))
    product = geometry.O * places if size(block.images) > 1 else 0
    at_work = _columns_numbers(geometry, part, block, places) + product
    everywhere = geometry.N * geometry.OH * geometry.OW
    threads = min(threads, -(-everywhere // max(places, 1)))  # so many blocks there are
    return math.prod(geometry.output_shape) + threads * at_work


def _columns_numbers(geometry: ConvGeometry, part: Part, block: Block, places: int) -> int:
    """A block of columns, and the patch that they are read from where that is a copy."""
    patch = 0
    if _copies(geometry, size(block.images)):
        rows = geometry.stride[0] * (size(block.rows) - 1) + geometry.span[0]
        channels = size(part.groups) * size(part.channels)
        patch = size(block.images) * channels * rows * geometry.padded_size[1]
    return _taps(part, geometry) * places + patch


def _first_block(
    geometry: ConvGeometry, part: Part, images: slice, least: int = 0
) -> tuple[Block, int]:
    """The first block, as large as any, and how many windows it has."""
    nothing = Block(slice(0, 0), slice(0, 0))  # of a batch without images
    block = next(blocks(geometry, part, images, 8, least), nothing)
    return block, size(block.images) * size(block.rows) * geometry.OW


def _taps(part: Part, geometry: ConvGeometry) -> int:
    return size(part.groups) * size(part.channels) * size(part.taps) * geometry.KW
