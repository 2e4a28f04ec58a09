"""The front door: ``conv2d`` and ``conv2d_backward``, and every way there is to compute them.

Arguments arrive here as people have them (lists, integers, one image without a batch, any
memory layout) and leave as the compute type and the four axes that every implementation
expects.  Shapes are checked by :class:`~convgrad.geometry.ConvGeometry`, types by
:mod:`convgrad.operands`, once.

**One dimension is the case H = 1.**  A signal is an image of one row: give signal, kernel and
upstream gradient that axis, and write every option as a pair whose first number has nothing to do.
What comes back has the axis too.

>>> signal = np.array([[[1, 2, 3, 4, 5, 6]]])  # n c v
>>> kernel = np.array([[[1, 2, -1]]])  # o c j
>>> options = {"stride": (1, 2), "padding": (0, 1)}
>>> y = conv2d(signal[:, :, None], kernel[:, :, None], **options)
>>> y[:, :, 0]  # conv1d with stride 2 and padding 1
array([[[0., 4., 8.]]])
>>> g = np.array([[[1, 10, 100]]])  # n o q
>>> grad_signal, grad_kernel, grad_bias = conv2d_backward(
...     g[:, :, None], signal[:, :, None], kernel[:, :, None], **options)
>>> grad_signal[:, :, 0]
array([[[   2.,    9.,   20.,   90.,  200., -100.]]])
>>> grad_kernel[:, :, 0], grad_bias
(array([[[420., 531., 642.]]]), array([111.]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike

from . import correlate, fast, grouped, im2col, loops, memory, windows
from .geometry import Border, ConvGeometry, ShapeError, Step, shown
from .operands import common, finish, gradient_type, number_array, quiet

__all__ = [
    "FASTEST",
    "IMPLEMENTATIONS",
    "Implementation",
    "as_batch",
    "conv2d",
    "conv2d_backward",
    "flags",
    "geometry_of",
    "implementation_named",
    "require_room",
    "upstream",
]


@dataclass(frozen=True)
class Implementation:
    """One way to compute the convolution and its gradients.

    Its functions take arrays with four axes that share one floating-point type.  They trust
    their caller: shapes that do not fit may be broadcast without a word, so check them with
    ``geometry.require`` or come through the front door.

    Attributes
    ----------
    name : str
        Its key in :data:`IMPLEMENTATIONS`.
    trades : str
        What it gives for what, in a sentence.
    forward : callable
        ``forward(x, weight, geometry)``: the output without bias, (N, O, OH, OW).
    grad_input : callable
        ``grad_input(grad_output, weight, geometry)``: (N, C, H, W).
    grad_weight : callable
        ``grad_weight(grad_output, x, geometry)``: (O, C/groups, KH, KW).
    grad_bias : callable
        ``grad_bias(grad_output, geometry)``: (O,).
    working_set : callable or None
        ``working_set(geometry)``: how many numbers each map keeps at once, a
        :class:`~convgrad.memory.WorkingSet`.  It is what a call is held to before it starts.

    Examples
    --------
    >>> from convgrad import example
    >>> x, weight, bias, g = example("B").arrays()
    >>> IMPLEMENTATIONS["loops"].grad_weight(g, x, example("B").geometry)[0, 0]
    array([[ 3.,  8.,  9.],
           [ 8., 10.,  9.],
           [10.,  3.,  5.]])
    """

    name: str
    trades: str
    forward: Callable[..., np.ndarray]
    grad_input: Callable[..., np.ndarray]
    grad_weight: Callable[..., np.ndarray]
    grad_bias: Callable[..., np.ndarray]
    working_set: Callable[[ConvGeometry], memory.WorkingSet] | None = None

    @classmethod
    def of(cls, module: ModuleType, trades: str) -> Implementation:
        name = module.__name__.rpartition(".")[2]
        rules = (module.forward, module.grad_input, module.grad_weight, module.grad_bias)
        return cls(name, trades, *rules, working_set=module.working_set)


IMPLEMENTATIONS: dict[str, Implementation] = {
    each.name: each
    for each in (
        Implementation.of(loops, "All clarity and no speed: the definition, one product a step."),
        Implementation.of(windows, "One line a map and no copy of x, at the speed of a plain sum."),
        Implementation.of(im2col, "Speed bought with memory: each cell is copied once per tap."),
        Implementation.of(correlate, "Little memory and a lesson: the gradients are convolutions."),
        Implementation.of(grouped, "Any number of groups in one call, one share kept per image."),
        Implementation.of(fast, "Speed from small blocks and threads, and several files to read."),
    )
}

# What implementation=None takes.
FASTEST = "fast"


def conv2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Step = 1,
    padding: Border = 0,
    dilation: Step = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    implementation: str | None = None,
) -> np.ndarray:
    """The convolution of the book's one equation (``torch.nn.functional.conv2d``).

    Parameters
    ----------
    x : array_like, (N, C, H, W)
        The images; (C, H, W) for one image.
    weight : array_like, (O, C/groups, KH, KW)
        The kernels.
    bias : array_like, (O,), optional
        One number for each kernel.
    stride : int or pair, default 1
        Step of the window; a pair is (height, width).
    padding : int, pair, pair of pairs or str, default 0
        Width of the border: one number, (height, width), ((top, bottom), (left, right)),
        "same" or "valid".
    dilation : int or pair, default 1
        Distance from one tap to the next.
    groups : int, default 1
        How many independent convolutions share the channels.
    padding_mode : str, default "zeros"
        What stands in the border: "zeros", "reflect", "replicate" or "circular".
    implementation : str, optional
        A name in :data:`IMPLEMENTATIONS`; None takes the fastest.

    Returns
    -------
    y : ndarray, (N, O, OH, OW)
        (O, OH, OW) for one image.  Its type is NumPy's common type of the operands, integers and
        booleans counting as float64; float16 is summed in float32.

    Raises
    ------
    GeometryError
        When the numbers describe no convolution.
    ShapeError
        When an array does not fit it.  (Both errors are ValueErrors.)
    ValueError
        For an unknown implementation.
    TypeError
        For arrays that hold no numbers.
    MemoryLimitError
        Where more memory would be needed than ``convgrad.memory.LIMIT`` allows (a ValueError too).

    Examples
    --------
    >>> conv2d([[[[1, 2, 3], [4, 5, 6], [6, 7, 8]]]], [[[[1, 1], [2, 2]]]])
    array([[[[21., 27.],
             [35., 41.]]]])
    """
    operands = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    (x, weight, *biases), dtype = common(_numbers(**operands))
    x, batched = as_batch(x)
    geometry = geometry_of(x, weight, batched, stride, padding, dilation, groups, padding_mode)
    for b in biases:
        geometry.require(bias=b)
    rule = implementation_named(implementation)
    require_room(rule, geometry, ["forward"], x.itemsize)
    with quiet():
        y = rule.forward(x, weight, geometry)  # n o p q
        for b in biases:
            y = y + b[:, None, None]
        return finish(y if batched else y[0], dtype)


@overload
def conv2d_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike,
    *,
    stride: Step = ...,
    padding: Border = ...,
    dilation: Step = ...,
    groups: int = ...,
    padding_mode: str = ...,
    implementation: str | None = ...,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def conv2d_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike,
    *,
    stride: Step = ...,
    padding: Border = ...,
    dilation: Step = ...,
    groups: int = ...,
    padding_mode: str = ...,
    output_mask: Sequence[bool],
    implementation: str | None = ...,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]: ...
def conv2d_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike,
    *,
    stride: Step = 1,
    padding: Border = 0,
    dilation: Step = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    output_mask: Sequence[bool] = (True, True, True),
    implementation: str | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """The three gradients of :func:`conv2d`.

    Parameters
    ----------
    grad_output : array_like, (N, O, OH, OW)
        ∂L/∂y, in the shape of conv2d's result.
    x : array_like, (N, C, H, W)
        As given to conv2d.
    weight : array_like, (O, C/groups, KH, KW)
        As given to conv2d.
    stride, padding, dilation, groups, padding_mode : optional
        As given to conv2d.
    output_mask : three bools, default (True, True, True)
        Which of the three to compute; the others are None.
    implementation : str, optional
        A name in :data:`IMPLEMENTATIONS`; None takes the fastest.

    Returns
    -------
    grad_input : ndarray or None, (N, C, H, W)
        ∂L/∂x, in the shape of x.
    grad_weight : ndarray or None, (O, C/groups, KH, KW)
        ∂L/∂weight, in the shape of weight.
    grad_bias : ndarray or None, (O,)
        ∂L/∂bias.

    Raises
    ------
    GeometryError, ShapeError, ValueError, TypeError
        As conv2d does; ShapeError also for an output_mask that is not three flags.

    Notes
    -----
    The type of the gradients is the common type of all three operands, by the rules of conv2d.
    Complex ones follow PyTorch's convention (grad_weight = Σ g · conj(x)), and the gradient of a
    real operand is real; grad_bias, whose operand is not known here, is complex where that common
    type is.  Inputs are only read, and every result has memory of its own.

    Examples
    --------
    >>> x = [[[[1, 2, 3], [4, 5, 6], [6, 7, 8]]]]
    >>> grad_input, grad_weight, grad_bias = conv2d_backward(
    ...     [[[[1, 0], [0, 1]]]], x, [[[[1, 1], [2, 2]]]],
    ...     output_mask=(False, True, True))
    >>> grad_weight, grad_bias
    (array([[[[ 6.,  8.],
             [11., 13.]]]]), array([2.]))
    """
    want_input, want_weight, want_bias = flags(output_mask)
    given = _numbers(grad_output=grad_output, x=x, weight=weight)
    (grad_output, x, weight), dtype = common(given)
    _, input_dtype, weight_dtype = (gradient_type(dtype, operand) for operand in given)
    x, batched = as_batch(x)
    geometry = geometry_of(x, weight, batched, stride, padding, dilation, groups, padding_mode)
    grad_output = upstream(grad_output, geometry, batched)
    rule = implementation_named(implementation)
    maps = [*["grad_input"] * want_input, *["grad_weight"] * want_weight]
    require_room(rule, geometry, maps, x.itemsize)
    grad_input = grad_weight = grad_bias = None
    with quiet():
        # conj() is the array itself where it is real
        if want_input:
            grad_input = rule.grad_input(grad_output, weight.conj(), geometry)
            grad_input = finish(grad_input if batched else grad_input[0], input_dtype)
        if want_weight:
            grad_weight = rule.grad_weight(grad_output, x.conj(), geometry)
            grad_weight = finish(grad_weight, weight_dtype)
        if want_bias:
            grad_bias = finish(rule.grad_bias(grad_output, geometry), dtype)
    return grad_input, grad_weight, grad_bias


# ---- what comes in ---------------------------------------------------------------------------


def _numbers(**operands: Any) -> list[np.ndarray]:
    """Every operand as an array of numbers."""
    return [number_array(name, value) for name, value in operands.items()]


def as_batch(x: np.ndarray) -> tuple[np.ndarray, bool]:
    """x with its batch axis, and whether it came with one."""
    if x.ndim not in (3, 4):
        raise ShapeError(
            f"x has {x.ndim} axes, shape {x.shape}: needed are 4, (N, C, H, W), or 3, (C, H, W), "
            "for one image; reshape it, for one grey image with x[None, None]"
        )
    return (x, True) if x.ndim == 4 else (x[None], False)


def geometry_of(x: np.ndarray, weight: np.ndarray, batched: bool, *arguments: Any) -> ConvGeometry:
    """The geometry of these operands and the arguments stride … padding_mode."""
    try:
        return ConvGeometry.of(x.shape, weight.shape, *arguments)
    except ShapeError as error:
        if batched or weight.ndim != 4:
            raise
        raise ShapeError(
            f"{error} (the 3 axes of x are read as one image, (C, H, W); for a batch of grey "
            "images use x[:, None])"
        ) from None


class HasOutput(Protocol):
    """A geometry as far as its output goes, that of a convolution or of a transposed one."""

    @property
    def output_shape(self) -> tuple[int, int, int, int]: ...

    def require(self, **arrays: np.ndarray) -> None: ...

    def describe(self) -> str: ...


def upstream(grad_output: np.ndarray, geometry: HasOutput, batched: bool) -> np.ndarray:
    """grad_output with its batch axis, once it has the shape of the output."""
    needed = geometry.output_shape
    if not batched and grad_output.shape != needed[1:]:
        raise ShapeError(
            f"grad_output has shape {grad_output.shape}: x is one image without a batch axis, so "
            f"needed is {needed[1:]} = (O, OH, OW) for {geometry.describe()}; check stride, "
            "padding and dilation, or give x a batch axis with x[None]"
        )
    grad_output = grad_output if batched else grad_output[None]
    geometry.require(grad_output=grad_output)
    return grad_output


def flags(
    output_mask: Sequence[bool],
    gradients: str = "(grad_input, grad_weight, grad_bias)",
) -> tuple[bool, ...]:
    """The three flags of output_mask; ``gradients`` names what they choose from."""
    mask = output_mask
    if isinstance(mask, np.ndarray) and mask.size == 3:
        mask = mask.tolist()
    if not isinstance(mask, Sequence) or len(mask) != 3 or not all(map(_is_flag, mask)):
        raise ShapeError(
            f"output_mask is {shown(output_mask)}: needed are three of True and False, for "
            f"{gradients}"
        )
    return tuple(map(bool, mask))


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | int | np.bool_ | np.integer) and value in (0, 1)


def implementation_named(name: str | None) -> Implementation:
    """The entry of :data:`IMPLEMENTATIONS`, or the fastest."""
    if name is None:
        name = FASTEST
    if not isinstance(name, str) or name not in IMPLEMENTATIONS:
        raise ValueError(
            f"implementation is {shown(name)}: use one of {', '.join(map(repr, IMPLEMENTATIONS))}, "
            f"or None for the fastest, {FASTEST!r}"
        )
    return IMPLEMENTATIONS[name]


def require_room(
    rule: Implementation,
    geometry: ConvGeometry,
    maps: Sequence[str],
    itemsize: int,
    words: str | None = None,
) -> None:
    """Refuse what needs more than :data:`convgrad.memory.LIMIT`, and name an entry that fits.

    Arguments as for :func:`convgrad.memory.require_room`.
    """
    # the fastest first, then the ladder from its upper end; the loops would take days
    names = [FASTEST, *(name for name in reversed(IMPLEMENTATIONS) if name != "loops")]
    others = (IMPLEMENTATIONS[name] for name in names)
    memory.require_room(rule, others, geometry, maps, itemsize, words)
