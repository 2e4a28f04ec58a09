"""What the laws are tried on: geometries, integer arrays and memory layouts.

A geometry is built from its *output* size, so every draw is a legal convolution and none is
thrown away; the leftover is drawn, not hoped for.  The same builder serves hypothesis
(``geometries``) and a plain seeded generator (``random_geometries``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from convgrad.geometry import PADDING_MODES, ConvGeometry
from convgrad.transpose import TransposedGeometry

Choose = Callable[[Sequence[Any]], Any]  # one out of several, by whoever draws


class Axis(NamedTuple):
    """One axis of a geometry: sizes of image and kernel, and how they meet."""

    size: int
    kernel: int
    stride: int
    dilation: int
    padding: tuple[int, int]


def build_axis(choose: Choose, padding_mode: str, outputs: Sequence[int]) -> Axis:
    """From the output backwards: span and stride give the padded size, padding the image."""
    out, kernel = choose(outputs), choose((2, 3, 1))
    stride, dilation = choose((2, 1, 3)), choose((1, 2, 3))
    leftover = choose(range(stride))
    padded = stride * (out - 1) + dilation * (kernel - 1) + 1 + leftover
    before, after = build_padding(choose, padding_mode, padded)
    return Axis(padded - before - after, kernel, stride, dilation, (before, after))


def build_padding(choose: Choose, padding_mode: str, padded: int) -> tuple[int, int]:
    """A border that leaves an image, with cells enough to copy, inside ``padded`` cells."""
    # a border may be as wide as the image is (circular), one less (reflect), or any width
    spare = {"reflect": 1, "circular": 0}.get(padding_mode)
    if spare is None:
        before = choose(range(min(3, padded - 1) + 1))
        return before, choose(range(min(2, padded - 1 - before) + 1))
    before = choose(range(min(3, (padded - spare) // 2) + 1))
    most = min(padded - 2 * before - spare, (padded - before - spare) // 2)
    return before, choose(range(min(2, most) + 1))


def build_geometry(choose: Choose) -> ConvGeometry:
    """A small legal geometry, one choice at a time."""
    padding_mode = choose(PADDING_MODES)
    rows = build_axis(choose, padding_mode, outputs=(2, 3, 1))
    cols = build_axis(choose, padding_mode, outputs=(3, 4, 2, 1))
    groups = choose((2, 3, 1))
    return ConvGeometry(
        N=choose((2, 3, 1, 2, 3, 1, 0)),
        C=groups * choose((2, 3, 1)),
        H=rows.size,
        W=cols.size,
        O=groups * choose((1, 2, 3)),
        KH=rows.kernel,
        KW=cols.kernel,
        stride=(rows.stride, cols.stride),
        padding=(rows.padding, cols.padding),
        dilation=(rows.dilation, cols.dilation),
        groups=groups,
        padding_mode=padding_mode,
    )


@st.composite
def geometries(draw: st.DrawFn) -> ConvGeometry:
    return build_geometry(lambda options: draw(st.sampled_from(options)))


def random_geometries(count: int, seed: int) -> Iterator[ConvGeometry]:
    """The same kind of geometries from a seed, the same ones every time."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield build_geometry(lambda options: options[rng.integers(len(options))])


def build_transposed(choose: Choose) -> TransposedGeometry:
    """A small legal transposed convolution; both kinds of padding are drawn, not hoped for."""
    axes = [build_transposed_axis(choose, sizes=sizes) for sizes in ((2, 3, 1), (3, 1, 2, 4))]
    groups = choose((2, 3, 1))
    C, OG = groups * choose((2, 3, 1)), choose((1, 2, 3))
    cells, kernel, stride, dilation, padding, output_padding = zip(*axes, strict=True)
    return TransposedGeometry.of(
        (choose((2, 3, 1, 2, 3, 1, 0)), C, *cells),
        (C, OG, *kernel),
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


def build_transposed_axis(choose: Choose, sizes: Sequence[int]) -> tuple[Any, ...]:
    """Image and kernel size, stride, dilation, padding and output_padding of one axis."""
    cells, kernel = choose(sizes), choose((2, 3, 1))
    stride, dilation = choose((2, 1, 3)), choose((1, 2, 3))
    output_padding = choose(range(max(stride, dilation)))
    laid = stride * (cells - 1) + dilation * (kernel - 1) + 1 + output_padding
    padding = build_padding(choose, "zeros", laid)
    return cells, kernel, stride, dilation, padding, output_padding


@st.composite
def transposed_geometries(draw: st.DrawFn) -> TransposedGeometry:
    return build_transposed(lambda options: draw(st.sampled_from(options)))


def random_transposed(count: int, seed: int) -> Iterator[TransposedGeometry]:
    """The same kind of transposed convolutions from a seed."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield build_transposed(lambda options: options[rng.integers(len(options))])


def options(geometry: ConvGeometry | TransposedGeometry) -> dict[str, Any]:
    """The geometry as keywords of conv2d, or of conv_transpose2d."""
    if isinstance(geometry, ConvGeometry):
        names = ("stride", "padding", "dilation", "groups", "padding_mode")
        return {name: getattr(geometry, name) for name in names}
    ours, of_conv = ("padding", "output_padding"), ("stride", "dilation", "groups")
    return {name: getattr(geometry, name) for name in ours} | {
        name: getattr(geometry.conv, name) for name in of_conv
    }


def seeds() -> st.SearchStrategy[int]:
    return st.integers(0, 2**32 - 1)


# ---- arrays ----------------------------------------------------------------------------------


def wide_view(array: np.ndarray) -> np.ndarray:
    """Every second channel of an array twice as wide, as after a concatenation or a slice."""
    wide = np.full((array.shape[0], 2 * array.shape[1], *array.shape[2:]), 99, array.dtype)
    wide[:, ::2] = array
    return wide[:, ::2]


def reversed_view(array: np.ndarray) -> np.ndarray:
    """The same numbers, stored back to front: negative strides."""
    return array[::-1, :, ::-1, ::-1].copy()[::-1, :, ::-1, ::-1]


def channels_last(array: np.ndarray) -> np.ndarray:
    """The same numbers, stored with the channels next to each other."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)).transpose(0, 3, 1, 2)


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": np.ascontiguousarray,
    "every second channel": wide_view,
    "reversed": reversed_view,
    "channels last": channels_last,
    "read-only": read_only,
}


class Operands(NamedTuple):
    x: np.ndarray  # n c h v
    weight: np.ndarray  # o c i j
    grad_output: np.ndarray  # n o p q, never contiguous where that is possible


def integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers from −4 to 4 in float64: sums of their products are exact."""
    return rng.integers(-4, 5, size=shape).astype(np.float64)


def integer_arrays(geometry: ConvGeometry | TransposedGeometry, seed: int) -> Operands:
    """Operands of small whole numbers; the upstream gradient is random and a strided view."""
    rng = np.random.default_rng(seed)
    return Operands(
        x=integers(rng, geometry.x_shape),
        weight=integers(rng, geometry.weight_shape),
        grad_output=wide_view(integers(rng, geometry.output_shape)),
    )


def complex_integer_arrays(geometry: ConvGeometry | TransposedGeometry, seed: int) -> Operands:
    """The same with whole numbers in both parts."""
    pairs = zip(integer_arrays(geometry, seed), integer_arrays(geometry, seed + 1), strict=True)
    return Operands(*(real + 1j * imaginary for real, imaginary in pairs))
