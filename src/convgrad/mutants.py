"""Named wrong gradients: the mistakes people really make, each one small function.

Every mutant takes what the right rule takes and differs from it in one idea, which its
docstring says in one sentence.  They serve three ends: the tests of this package must notice
every one of them; ``checks.explain_difference`` must name their cause; and a chapter lets
the reader play with them.

Beside the function a mutant carries the law that catches it (a key of ``checks.LAWS``), the
cause that the explanation should name, the geometries on which the mistake shows at all, and
whether it slips past grad_output = 1, which is the gradient that ``y.sum().backward()`` sends.

>>> MUTANTS["wgrad_g_turned"].sentence
'Turns grad_output by 180° before it slides over x, as the word "convolution" suggests.'
>>> [name for name, mutant in MUTANTS.items() if mutant.survives_ones and mutant.target == "bias"]
[]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from . import windows
from .geometry import ConvGeometry, Pair
from .padding import fold_border, pad

__all__ = ["MUTANTS", "Mutant"]

Array = np.ndarray
Rule = Callable[..., Array]
Condition = Callable[[ConvGeometry], bool]


@dataclass(frozen=True)
class Mutant:
    """One mistake.  Calling the mutant calls its function.

    Attributes
    ----------
    name : str
        Its key in :data:`MUTANTS`.
    target : str
        Which gradient it gets wrong: "weight", "input" or "bias".
    sentence : str
        The mistake in one sentence.
    killed_by : str
        The law that notices it, a key of ``checks.LAWS``.
    function : callable
        Takes what the right rule takes.
    survives_ones : bool
        Whether it gives the right answer whenever grad_output is 1 everywhere.
    cause : str or None
        What ``explain_difference`` calls it; None where the result does not show it.
    shows : callable
        ``shows(geometry)``: whether the mistake makes a difference there.
    hides : str
        Where it makes none, in words.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> x, weight, bias, g = example("B").arrays()
    >>> MUTANTS["wgrad_reversed"](g, x, example("B").geometry)[0, 0]
    array([[ 5.,  3., 10.],
           [ 9., 10.,  8.],
           [ 9.,  8.,  3.]])
    """

    name: str
    target: str  # "weight", "input" or "bias": which gradient it gets wrong
    sentence: str  # the mistake in one sentence
    killed_by: str  # the law that notices it, a key of checks.LAWS
    function: Rule  # same arguments as the right rule
    survives_ones: bool  # gives the right answer whenever grad_output is 1 everywhere
    cause: str | None  # what explain_difference calls it; None: the result does not show it
    shows: Condition  # the geometries on which the mistake makes a difference
    hides: str  # the others, in words

    def __call__(self, *arguments: Array | ConvGeometry, **options: object) -> Array:
        return self.function(*arguments, **options)


MUTANTS: dict[str, Mutant] = {}


def _mutant(
    target: str,
    *,
    cause: str | None,
    killed_by: str = "adjoint",
    survives_ones: bool = False,
    shows: Condition = lambda geometry: True,
    hides: str = "",
) -> Callable[[Rule], Rule]:
    """Enter a function into the table; its docstring is the mutant's sentence."""

    def enter(function: Rule) -> Rule:
        name, sentence = function.__name__, " ".join((function.__doc__ or "").split())
        MUTANTS[name] = Mutant(
            name, target, sentence, killed_by, function, survives_ones, cause, shows, hides
        )
        return function

    return enter


# ---- when a mistake shows ----------------------------------------------------------------


def _has_border(geometry: ConvGeometry) -> bool:
    return geometry.padding != ((0, 0), (0, 0))


def _has_taps(geometry: ConvGeometry) -> bool:
    return geometry.KH * geometry.KW > 1


def _starts_on_border(geometry: ConvGeometry) -> bool:
    (top, _), (left, _) = geometry.padding
    return top > 0 or left > 0


def _taps_meet(geometry: ConvGeometry) -> bool:
    """Some cell of the padded input is read by two taps."""
    return bool((_uses(geometry) > 1).any())


def _spreads_taps(geometry: ConvGeometry) -> bool:
    pairs = zip(geometry.dilation, (geometry.KH, geometry.KW), strict=True)
    return any(dilation > 1 and size > 1 for dilation, size in pairs)


def _uses(geometry: ConvGeometry) -> Array:
    """How often each cell of the padded input is read, (H + top + bottom, W + left + right)."""
    once = np.ones((1, 1, geometry.OH, geometry.OW, geometry.KH, geometry.KW))
    return windows.scatter(once, geometry)[0, 0]


# ---- right pieces that the mistakes are made of -------------------------------------------


def _slide_g(
    grad_output: Array,
    x: Array,
    geometry: ConvGeometry,
    stride: Pair,
    dilation: Pair,
) -> Array:
    """grad_output slid over x as a kernel: o c and as many rows and columns as it fits."""
    (sh, sw), (dh, dw) = stride, dilation
    span = (dh * (geometry.OH - 1) + 1, dw * (geometry.OW - 1) + 1)
    seen = sliding_window_view(x, span, axis=(2, 3))[:, :, ::sh, ::sw, ::dh, ::dw]  # n c i j p q
    upstream = windows.split_groups(grad_output, 1, geometry)  # n k o p q
    seen = windows.split_groups(seen, 1, geometry)  # n k c i j p q
    grad = np.einsum("nkopq,nkcijpq->kocij", upstream, seen)
    return grad.reshape(geometry.O, geometry.CG, *grad.shape[3:])


def _slide_kernel(
    grad_output: Array,
    weight: Array,
    geometry: ConvGeometry,
    border: tuple[Pair, Pair],
) -> Array:
    """The turned kernels slid over grad_output with zeros between and around its cells."""
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    spread = np.zeros(
        (*grad_output.shape[:2], sh * (geometry.OH - 1) + 1, sw * (geometry.OW - 1) + 1),
        grad_output.dtype,
    )
    spread[:, :, ::sh, ::sw] = grad_output
    spread = np.pad(spread, ((0, 0), (0, 0), *border))
    seen = sliding_window_view(spread, geometry.span, axis=(2, 3))[..., ::dh, ::dw]  # n o h v i j
    seen = windows.split_groups(seen, 1, geometry)  # n k o h v i j
    turned = windows.split_groups(weight[..., ::-1, ::-1], 0, geometry)  # k o c i j
    grad = np.einsum("nkohvij,kocij->nkchv", seen, turned)
    return grad.reshape(len(grad_output), geometry.C, *grad.shape[3:])


def _as_if_contiguous(array: Array) -> Array:
    """What a kernel reads that trusts the pointer and the shape and ignores the strides."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    memory = owner.ravel(order="K")  # the numbers as they lie in memory
    address = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    first = address // array.itemsize
    if first + array.size > memory.size:
        raise IndexError(f"reads {array.size} elements, the memory holds {memory.size - first}")
    return memory[first : first + array.size].reshape(array.shape)


# ---- grad_weight(grad_output, x, geometry) ------------------------------------------------


@_mutant("weight", cause="flipped", shows=_has_taps, hides="the kernel is 1×1")
def wgrad_reversed(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Turns the finished gradient by 180°."""
    return windows.grad_weight(grad_output, x, geometry)[..., ::-1, ::-1]


@_mutant(
    "weight",
    cause="g_flipped",
    survives_ones=True,
    shows=lambda geometry: geometry.OH * geometry.OW > 1,
    hides="there is one output cell, or grad_output is 1 everywhere",
)
def wgrad_g_turned(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Turns grad_output by 180° before it slides over x, as the word "convolution" suggests."""
    return windows.grad_weight(grad_output[..., ::-1, ::-1], x, geometry)


@_mutant(
    "weight",
    cause="g_transposed",
    survives_ones=True,
    shows=lambda geometry: geometry.OH > 1 and geometry.OW > 1,
    hides="the output is one row or one column, or grad_output is 1 everywhere",
)
def wgrad_g_transposed(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Exchanges rows and columns of grad_output."""
    g = grad_output.swapaxes(2, 3).reshape(grad_output.shape)
    return windows.grad_weight(g, x, geometry)


@_mutant(
    "weight",
    cause="g_reshaped",
    survives_ones=True,
    shows=lambda geometry: geometry.N > 1 and geometry.O > 1,
    hides="there is one image or one kernel, or grad_output is 1 everywhere",
)
def wgrad_g_reshaped(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Reshapes grad_output where it should transpose, so images and kernels change places."""
    g = grad_output.swapaxes(0, 1).reshape(grad_output.shape)
    return windows.grad_weight(g, x, geometry)


@_mutant(
    "weight",
    cause="images_mixed",
    survives_ones=True,
    shows=lambda geometry: geometry.N > 1,
    hides="there is one image, or grad_output is 1 everywhere",
)
def wgrad_images_mixed(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Pairs each image with the grad_output of another image."""
    return windows.grad_weight(grad_output[::-1], x, geometry)


@_mutant(
    "weight",
    cause="transposed",
    shows=_has_taps,
    hides="the kernel is 1×1",
)
def wgrad_transposed(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Exchanges rows and columns of the taps in the finished gradient."""
    return windows.grad_weight(grad_output, x, geometry).swapaxes(2, 3)


@_mutant(
    "weight",
    cause="axes_swapped",
    shows=lambda geometry: geometry.O * geometry.CG > 1,
    hides="there is one input channel and one kernel",
)
def wgrad_no_transpose(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Leaves the gradient as the convolution returned it, input channels before kernels."""
    return windows.grad_weight(grad_output, x, geometry).swapaxes(0, 1)


@_mutant(
    "weight",
    killed_by="shape",
    cause="missing_crop",
    shows=lambda geometry: geometry.surplus != (0, 0),
    hides="the windows use up the padded input to less than one dilation step",
)
def wgrad_no_crop(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Forgets to crop the rows and columns that the convolution gives beyond the kernel."""
    return _slide_g(
        grad_output, pad(x, geometry), geometry, stride=geometry.dilation, dilation=geometry.stride
    )


@_mutant(
    "weight",
    cause="padding_ignored",
    shows=_has_border,
    hides="there is no padding",
)
def wgrad_ignores_padding(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Slides grad_output over the bare x and forgets the padding."""
    grad = _slide_g(grad_output, x, geometry, stride=geometry.dilation, dilation=geometry.stride)
    return grad[..., : geometry.KH, : geometry.KW]


@_mutant(
    "weight",
    cause="stride_dilation_swapped",
    shows=lambda geometry: geometry.stride != geometry.dilation,
    hides="stride and dilation are equal",
)
def swap_stride_dilation(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Keeps stride and dilation in their places, where the weight gradient exchanges them."""
    seen = pad(x, geometry)
    grad = _slide_g(grad_output, seen, geometry, stride=geometry.stride, dilation=geometry.dilation)
    return grad[..., : geometry.KH, : geometry.KW]


@_mutant(
    "weight",
    cause="dilation_ignored",
    shows=_spreads_taps,
    hides="the dilation is 1",
)
def wgrad_ignore_dilation(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Reads the taps next to each other, as if the dilation were 1."""
    grad = _slide_g(
        grad_output, pad(x, geometry), geometry, stride=(1, 1), dilation=geometry.stride
    )
    return grad[..., : geometry.KH, : geometry.KW]


@_mutant(
    "weight",
    cause="shifted",
    shows=lambda geometry: (
        _starts_on_border(geometry) if geometry.padding_mode == "zeros" else _has_border(geometry)
    ),
    hides="there is no padding above and to the left, nor one that copies",
)
def wgrad_shifted(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Forgets "− padding" in the index map, so every tap reads too far down and to the right."""
    (top, bottom), (left, right) = geometry.padding
    x = np.pad(x, ((0, 0), (0, 0), (0, top + bottom), (0, left + right)))
    return windows.grad_weight(grad_output, x, _bare(geometry))


@_mutant(
    "weight",
    cause="padded_twice",
    shows=_starts_on_border,
    hides="there is no padding above and to the left",
)
def pad_twice(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Pads x and hands it to a function that pads it again."""
    padded = pad(x, geometry)
    seen = windows.windows(padded, replace(geometry, H=padded.shape[2], W=padded.shape[3]))
    seen = seen[:, :, : geometry.OH, : geometry.OW]  # as many as grad_output has cells
    seen = windows.split_groups(seen, 1, geometry)  # n k c p q i j
    upstream = windows.split_groups(grad_output, 1, geometry)  # n k o p q
    return np.einsum("nkopq,nkcpqij->kocij", upstream, seen).reshape(geometry.weight_shape)


@_mutant(
    "weight",
    cause="border_lost",
    shows=lambda geometry: _has_border(geometry) and geometry.padding_mode != "zeros",
    hides="the padding mode is zeros, or there is no padding",
)
def wgrad_zero_border(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Puts zeros on the border whatever the padding mode."""
    return windows.grad_weight(grad_output, x, replace(geometry, padding_mode="zeros"))


@_mutant(
    "weight",
    killed_by="shape",
    cause="kernel_clipped",
    shows=lambda geometry: geometry.KH > geometry.H or geometry.KW > geometry.W,
    hides="the kernel fits into the bare image",
)
def kernel_clipped_to_input(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Clips the kernel to the size of the bare image, though it fits the padded one."""
    grad = windows.grad_weight(grad_output, x, geometry)
    return grad[..., : geometry.H, : geometry.W]


@_mutant(
    "weight",
    killed_by="shape",
    cause="batch_not_summed",
    hides="never: the result has one axis too many",
)
def wgrad_batch_kept(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Keeps one gradient per image instead of adding them up."""
    one = replace(geometry, N=1)
    per_image = [
        windows.grad_weight(g[None], image[None], one)
        for g, image in zip(grad_output, x, strict=True)
    ]
    return np.stack(per_image)


@_mutant(
    "weight",
    cause="one_image",
    shows=lambda geometry: geometry.N > 1,
    hides="there is one image",
)
def wgrad_last_image(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Writes = where += belongs in the loop over the images, so the last image wins."""
    return windows.grad_weight(grad_output[-1:], x[-1:], replace(geometry, N=1))


@_mutant(
    "weight",
    cause="batch_mean",
    killed_by="directional_difference",
    shows=lambda geometry: geometry.N > 1,
    hides="there is one image",
)
def wgrad_batch_mean(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Takes the mean over the images; the loss already decided between sum and mean."""
    return windows.grad_weight(grad_output, x, geometry) / geometry.N


@_mutant(
    "weight",
    cause="position_mean",
    killed_by="directional_difference",
    shows=lambda geometry: geometry.OH * geometry.OW > 1,
    hides="there is one output cell",
)
def wgrad_position_mean(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Takes the mean over the output positions, where the chain rule wants the sum."""
    return windows.grad_weight(grad_output, x, geometry) / (geometry.OH * geometry.OW)


@_mutant(
    "weight",
    cause="wrong_group",
    shows=lambda geometry: 1 < geometry.groups < geometry.C,
    hides="there is one group, or one channel per group",
)
def group_interleaved(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Deals the channels to the groups like cards, where a group is a block of neighbours."""
    dealt = np.arange(geometry.C).reshape(geometry.CG, geometry.groups).T.ravel()
    return windows.grad_weight(grad_output, x[:, dealt], geometry)


@_mutant(
    "weight",
    cause="wrong_group",
    shows=lambda geometry: geometry.groups > 1 and geometry.OG > 1,
    hides="there is one group, or one kernel per group",
)
def depthwise_mod(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Takes group o mod G for kernel o, which holds only with one kernel per group."""
    group = np.arange(geometry.O) % geometry.groups
    channels = group[:, None] * geometry.CG + np.arange(geometry.CG)  # o c
    seen = windows.windows(x, geometry)[:, channels]  # n o c p q i j
    return np.einsum("nopq,nocpqij->ocij", grad_output, seen)


@_mutant(
    "weight",
    killed_by="memory_layout",
    cause="memory_layout",
    survives_ones=True,
    hides="grad_output is contiguous",
)
def assume_contiguous_gy(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Reads grad_output's memory row by row and ignores its strides."""
    return windows.grad_weight(_as_if_contiguous(grad_output), x, geometry)


@_mutant(
    "weight",
    killed_by="operands_untouched",
    cause=None,
    survives_ones=True,
    shows=lambda geometry: not _has_border(geometry),
    hides="there is padding, so that the windows look at a copy",
)
def write_through_view(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Clears its windows after use, though the windows are x itself seen many times."""
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    every = sliding_window_view(pad(x, geometry), geometry.span, axis=(2, 3), writeable=True)
    seen = every[:, :, ::sh, ::sw, ::dh, ::dw]  # n c p q i j
    upstream = windows.split_groups(grad_output, 1, geometry)  # n k o p q
    grad = np.einsum("nkopq,nkcpqij->kocij", upstream, windows.split_groups(seen, 1, geometry))
    seen[...] = 0
    return grad.reshape(geometry.weight_shape)


@_mutant(
    "weight",
    killed_by="wide_sums",
    cause="overflow",
    survives_ones=True,
    hides="all sums stay small, or no operand is float16",
)
def fp16_running_sum(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Keeps the running sum over the images in float16, which ends at 65504."""
    one, total = replace(geometry, N=1), np.zeros(geometry.weight_shape, np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        for g, image in zip(grad_output, x, strict=True):
            total += windows.grad_weight(g[None], image[None], one).astype(np.float16)
    return total.astype(np.result_type(grad_output, x))


@_mutant(
    "weight",
    killed_by="empty_batch",
    cause=None,
    survives_ones=True,
    hides="there is at least one image",
)
def reshape_minus_one(grad_output: Array, x: Array, geometry: ConvGeometry) -> Array:
    """Lets reshape find a size with −1, which has no answer for an empty batch."""
    positions = geometry.OH * geometry.OW
    columns = grad_output.reshape(geometry.N, -1, positions)  # n o pq
    return windows.grad_weight(columns.reshape(grad_output.shape), x, geometry)


# ---- grad_input(grad_output, weight, geometry) --------------------------------------------


@_mutant("input", cause="kernel_flipped", shows=_has_taps, hides="the kernel is 1×1")
def dgrad_no_flip(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Slides the kernel over grad_output without turning it first."""
    return windows.grad_input(grad_output, weight[..., ::-1, ::-1], geometry)


@_mutant(
    "input",
    cause="g_flipped",
    survives_ones=True,
    shows=lambda geometry: geometry.OH * geometry.OW > 1,
    hides="there is one output cell, or grad_output is 1 everywhere",
)
def dgrad_g_turned(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Turns grad_output by 180° instead of the kernel."""
    return windows.grad_input(grad_output[..., ::-1, ::-1], weight, geometry)


@_mutant(
    "input",
    killed_by="shape",
    cause="leftover_lost",
    shows=lambda geometry: geometry.leftover != (0, 0),
    hides="the windows reach the last row and column of the padded input",
)
def dgrad_no_leftover(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Forgets output_padding, so the rows and columns that no window reads are missing."""
    grad = windows.grad_input(grad_output, weight, geometry)
    height, width = geometry.H - geometry.leftover[0], geometry.W - geometry.leftover[1]
    return grad[:, :, : max(height, 0), : max(width, 0)]


@_mutant(
    "input",
    cause="shifted",
    shows=lambda geometry: _starts_on_border(geometry) and geometry.padding_mode == "zeros",
    hides="there is no padding above and to the left, or the padding mode is not zeros",
)
def dgrad_shifted(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Cuts the padded gradient at its corner instead of where the image begins."""
    padded = windows.scatter(windows.products(grad_output, weight, geometry), geometry)
    if geometry.padding_mode != "zeros":
        return fold_border(padded, geometry)
    return padded[:, :, : geometry.H, : geometry.W]


@_mutant(
    "input",
    cause="border_lost",
    shows=lambda geometry: _has_border(geometry) and geometry.padding_mode != "zeros",
    hides="the padding mode is zeros, or there is no padding",
)
def dgrad_border_lost(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Cuts the border off, though its cells were copies and their gradient belongs to the image."""
    return windows.grad_input(grad_output, weight, replace(geometry, padding_mode="zeros"))


@_mutant(
    "input",
    cause="shifted",
    shows=lambda geometry: any(before != after for before, after in geometry.padding),
    hides="both sides are padded alike, as with every odd kernel",
)
def same_pad_left(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Puts the larger half of an uneven padding above and to the left."""
    (top, bottom), (left, right) = geometry.padding
    other = replace(geometry, padding=((bottom, top), (right, left)))
    return windows.grad_input(grad_output, weight, other)


@_mutant(
    "input",
    killed_by="shape",
    cause=None,
    shows=lambda geometry: _border_of_g(geometry)[1] < 0,
    hides="the padding is at most dilation·(k − 1)",
)
def full_pad_negative(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Pads grad_output by dilation·(k − 1) − padding and fails where that is negative."""
    if geometry.padding_mode != "zeros":
        return windows.grad_input(grad_output, weight, geometry)
    border, _ = _border_of_g(geometry)
    return _slide_kernel(grad_output, weight, geometry, border)


@_mutant(
    "input",
    cause="wrong_crop",
    shows=lambda geometry: (
        geometry.padding_mode == "zeros"
        and (geometry.H, geometry.padding[0][0]) != (geometry.W, geometry.padding[1][0])
    ),
    hides="height and width have the same size and padding",
)
def width_from_height(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Takes padding and size of the columns from the rows."""
    padded = windows.scatter(windows.products(grad_output, weight, geometry), geometry)
    if geometry.padding_mode != "zeros":
        return fold_border(padded, geometry)
    (top, _), _ = geometry.padding
    cut = slice(top, top + geometry.H)
    return padded[:, :, cut, cut]


@_mutant(
    "input",
    cause="padding_axes_swapped",
    shows=lambda geometry: (
        geometry.padding_mode == "circular" and geometry.padding[0] != geometry.padding[1]
    ),
    hides="rows and columns are padded alike, or nothing wraps around",
)
def circular_axis_swapped(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Wraps the rows as far as the columns are padded and the columns as far as the rows."""
    padded = windows.scatter(windows.products(grad_output, weight, geometry), geometry)
    if geometry.padding_mode == "circular":
        (top, _), (left, _) = rows, cols = geometry.padding
        h, v = np.arange(padded.shape[2]) - top, np.arange(padded.shape[3]) - left
        wrapped_h = (h >= -cols[0]) & (h < geometry.H + cols[1])
        wrapped_v = (v >= -rows[0]) & (v < geometry.W + rows[1])
        padded[:, :, ~wrapped_h] = 0
        padded[:, :, :, ~wrapped_v] = 0
    return fold_border(padded, geometry)


@_mutant(
    "input",
    cause="wrong_group",
    shows=lambda geometry: geometry.groups > 1 and geometry.CG > 1,
    hides="there is one group, or one channel per group",
)
def group_transpose_flat(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Exchanges kernels and channels of the weight across all groups instead of within each."""
    O, CG, *taps = weight.shape
    flat = weight.swapaxes(0, 1).reshape(geometry.groups, CG, geometry.OG, *taps)  # k c o i j
    return windows.grad_input(grad_output, flat.swapaxes(1, 2).reshape(O, CG, *taps), geometry)


@_mutant(
    "input",
    killed_by="shape",
    cause="dilation_ignored",
    shows=_spreads_taps,
    hides="the dilation is 1",
)
def ignore_dilation(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Computes size and places of the input gradient as if the dilation were 1."""
    (dh, dw) = geometry.dilation
    narrow = replace(
        geometry,
        H=geometry.H - (dh - 1) * (geometry.KH - 1),
        W=geometry.W - (dw - 1) * (geometry.KW - 1),
        dilation=(1, 1),
    )
    return windows.grad_input(grad_output, weight, narrow)


@_mutant(
    "input",
    cause="stale_cells",
    killed_by="equals_loops",
    shows=lambda geometry: bool((fold_border(_uses(geometry)[None, None], geometry) == 0).any()),
    hides="every cell is read by some window",
)
def buffer_prefilled(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Trusts an uninitialised buffer, so cells that no window reads keep what was in it."""
    stale = grad_output.dtype.type(5)  # stands for whatever the memory held before
    read = fold_border(_uses(geometry)[None, None], geometry)
    return np.where(read > 0, windows.grad_input(grad_output, weight, geometry), stale)


@_mutant("input", cause="overlap_lost", shows=_taps_meet, hides="no two taps read the same cell")
def col2im_assign(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Writes = where += belongs in col2im, so of all taps that read a cell the last wins."""
    products = windows.products(grad_output, weight, geometry)
    padded = np.zeros((*products.shape[:2], *geometry.padded_size), products.dtype)
    for i, j in np.ndindex(geometry.KH, geometry.KW):
        padded[:, :, *windows.reach(i, j, geometry)] = products[..., i, j]
    return fold_border(padded, geometry)


@_mutant("input", cause="overlap_lost", shows=_taps_meet, hides="no two taps read the same cell")
def fancy_plus_equals(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Adds with grad[rows, cols] += products, which keeps one product where indices repeat."""
    products = windows.products(grad_output, weight, geometry)
    padded = np.zeros((*products.shape[:2], *geometry.padded_size), products.dtype)
    p, q, i, j = np.ogrid[: geometry.OH, : geometry.OW, : geometry.KH, : geometry.KW]
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    padded[:, :, sh * p + dh * i, sw * q + dw * j] += products
    return fold_border(padded, geometry)


@_mutant("input", cause="averaged", shows=_taps_meet, hides="no two taps read the same cell")
def avg_fold(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Divides each cell by the number of taps that read it, as if fold undid unfold."""
    padded = windows.scatter(windows.products(grad_output, weight, geometry), geometry)
    return fold_border(padded / np.maximum(_uses(geometry), 1), geometry)


@_mutant(
    "input",
    cause="one_kernel",
    shows=lambda geometry: geometry.OG > 1,
    hides="there is one kernel per group",
)
def dgrad_last_kernel(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Writes = where += belongs in the loop over the kernels, so the last kernel's share wins."""
    last = np.arange(geometry.O) % geometry.OG == geometry.OG - 1
    return windows.grad_input(grad_output * last[:, None, None], weight, geometry)


@_mutant(
    "input",
    killed_by="memory_layout",
    cause="memory_layout",
    survives_ones=True,
    hides="the weight is contiguous",
)
def ravel_weight(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Reads the weight's memory row by row and ignores its strides."""
    return windows.grad_input(grad_output, _as_if_contiguous(weight), geometry)


@_mutant(
    "input",
    killed_by="infinity",
    cause="zero_times_infinity",
    survives_ones=True,
    hides="all numbers are finite",
)
def dgrad_dilated_multiply(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Multiplies the zeros put between and around grad_output's cells, and 0·inf is nan."""
    rows, cols = (
        (extent - 1, extent - 1 + rest)
        for extent, rest in zip(geometry.span, geometry.leftover, strict=True)
    )
    return fold_border(_slide_kernel(grad_output, weight, geometry, (rows, cols)), geometry)


@_mutant(
    "input",
    killed_by="dtype",
    cause="truncated",
    survives_ones=True,
    hides="all products are whole numbers",
)
def zeros_like_int(grad_output: Array, weight: Array, geometry: ConvGeometry) -> Array:
    """Adds up in a buffer of integers, like zeros_like of an integer image: fractions vanish."""
    products = windows.products(grad_output, weight, geometry)
    padded = np.zeros((*products.shape[:2], *geometry.padded_size), np.int64)
    for i, j in np.ndindex(geometry.KH, geometry.KW):
        at = (slice(None), slice(None), *windows.reach(i, j, geometry))
        padded[at] = padded[at] + products[..., i, j]  # the assignment truncates
    return fold_border(padded, geometry)


# ---- grad_bias(grad_output, geometry) -----------------------------------------------------


@_mutant(
    "bias",
    killed_by="equals_loops",
    cause="wrong_bias_axes",
    shows=lambda geometry: geometry.O * geometry.OW > 1,
    hides="there is one kernel and one output column",
)
def bias_axes_012(grad_output: Array, geometry: ConvGeometry) -> Array:
    """Sums over the axes 0, 1, 2, which are right for channels in the last place."""
    return grad_output.sum(axis=(0, 1, 2))


@_mutant(
    "bias",
    killed_by="shape",
    cause="squeezed",
    shows=lambda geometry: geometry.O == 1,
    hides="there is more than one kernel",
)
def bias_squeeze(grad_output: Array, geometry: ConvGeometry) -> Array:
    """Squeezes the result, which takes the last axis away when there is one kernel."""
    return np.squeeze(grad_output.sum(axis=(0, 2, 3)))


@_mutant(
    "bias",
    killed_by="shape",
    cause="batch_not_summed",
    hides="never: the result has one axis too many",
)
def bias_batch_kept(grad_output: Array, geometry: ConvGeometry) -> Array:
    """Keeps one bias gradient per image instead of adding them up."""
    return grad_output.sum(axis=(2, 3))


@_mutant(
    "bias",
    cause="batch_mean",
    killed_by="directional_difference",
    shows=lambda geometry: geometry.N > 1,
    hides="there is one image",
)
def bias_batch_mean(grad_output: Array, geometry: ConvGeometry) -> Array:
    """Takes the mean over the images; the loss already decided between sum and mean."""
    return grad_output.sum(axis=(0, 2, 3)) / geometry.N


@_mutant(
    "bias",
    cause="position_mean",
    killed_by="directional_difference",
    shows=lambda geometry: geometry.OH * geometry.OW > 1,
    hides="there is one output cell",
)
def bias_position_mean(grad_output: Array, geometry: ConvGeometry) -> Array:
    """Takes the mean over the output cells, though the bias reaches each of them in full."""
    return grad_output.mean(axis=(2, 3)).sum(axis=0)


# ---- two small geometries -----------------------------------------------------------------


def _bare(geometry: ConvGeometry) -> ConvGeometry:
    """The same windows on an input that already has its border."""
    height, width = geometry.padded_size
    return replace(geometry, H=height, W=width, padding=((0, 0), (0, 0)))


def _border_of_g(geometry: ConvGeometry) -> tuple[tuple[Pair, Pair], int]:
    """What must stand around the spread grad_output, per axis, and the smallest of it."""
    rows, cols = (
        (extent - 1 - before, extent - 1 - after + rest)
        for extent, (before, after), rest in zip(
            geometry.span, geometry.padding, geometry.leftover, strict=True
        )
    )
    least = min(*rows, *cols) if geometry.padding_mode == "zeros" else 0
    return (rows, cols), least
