"""Transposed convolution: the same three contractions with the roles exchanged.

A convolution reads windows of x; its grad_input lays kernels down where the windows were.
``conv_transpose2d`` makes that second map the forward pass:

    y[n,o,h,v] = b[o] + Σ_{c,p,q,i,j} x[n,c,p,q] · w[c,o,i,j]
    over all p, i with stride·p + dilation·i − padding = h      (v from q and j likewise)

So nothing new has to be computed.  Here x takes the part that the upstream gradient had, and g
(the gradient of the larger map) takes the part of the image:

    ====================  ====================================
    of conv_transpose2d   is of conv2d
    ====================  ====================================
    the forward pass      grad_input
    grad_input            the forward pass
    grad_weight           grad_weight with x and g exchanged
    ====================  ====================================

Two arguments change their meaning with the roles.  ``padding`` is what a convolution puts
around its input, so here it is cut off the result.  ``output_padding`` stands for the rows that
a convolution leaves over, which no window reads, so here it adds rows that no kernel reaches.

Source of the formulas: the sum above, differentiated by hand; sizes and argument order are those
of ``torch.nn.ConvTranspose2d`` and ``torch.nn.functional.conv_transpose2d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from .api import as_batch, flags, implementation_named, require_room, upstream
from .geometry import (
    LARGEST,
    Border,
    ConvGeometry,
    GeometryError,
    ShapeError,
    Step,
    as_borders,
    as_integer,
    as_pair,
    as_shape,
    short,
)
from .operands import common, finish, gradient_type, number_array, quiet

__all__ = ["TransposedGeometry", "conv_transpose2d", "conv_transpose2d_backward", "cut", "uncut"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class TransposedGeometry:
    """Every size of one transposed convolution; made by :meth:`of`, which checks the numbers.

    Attributes
    ----------
    conv : ConvGeometry
        The convolution that goes the other way: from the map that x lays down, before anything
        is cut off it, to x.  No padding, no leftover.
    padding : pair of pairs
        ((top, bottom), (left, right)), what is cut off that map.
    output_padding : pair
        (rows, columns) that are added at its bottom and right before the cut.

    Examples
    --------
    >>> geometry = TransposedGeometry.of(
    ...     (1, 1, 2, 3), (1, 1, 3, 3), stride=2, padding=1, output_padding=(1, 0))
    >>> geometry.laid_size, geometry.output_shape
    ((5, 7), (1, 1, 4, 5))
    """

    conv: ConvGeometry
    padding: tuple[Pair, Pair]
    output_padding: Pair

    @classmethod
    def of(
        cls,
        x_shape: Sequence[int],
        weight_shape: Sequence[int],
        stride: Step = 1,
        padding: Border = 0,
        output_padding: Step = 0,
        groups: int = 1,
        dilation: Step = 1,
    ) -> TransposedGeometry:
        """The geometry of ``conv_transpose2d(x, weight, ...)`` from the shapes of its arrays.

        Parameters
        ----------
        x_shape : sequence of int
            (N, C, H, W).
        weight_shape : sequence of int
            (C, O/groups, KH, KW).
        stride, padding, output_padding, groups, dilation : optional
            As given to conv_transpose2d.

        Returns
        -------
        TransposedGeometry

        Raises
        ------
        ShapeError
            For shapes that do not fit.
        GeometryError
            For numbers that do not.
        """
        x_shape = as_shape("x", x_shape, "(N, C, H, W)")
        weight_shape = as_shape("weight", weight_shape, "(C, O/groups, KH, KW)")
        _check_shapes(x_shape, weight_shape)
        stride, dilation = as_pair("stride", stride), as_pair("dilation", dilation)
        groups = as_integer("groups", groups, least=1)
        padding = as_borders(padding, hint="; for a larger result, pad it with np.pad")
        output_padding = as_pair("output_padding", output_padding, least=0)
        _check_groups(x_shape, weight_shape, groups)
        _check_output_padding(output_padding, stride, dilation)
        N, C, *size = x_shape
        _, OG, *kernel = weight_shape
        laid = [
            s * (cells - 1) + d * (taps - 1) + 1
            for s, cells, d, taps in zip(stride, size, dilation, kernel, strict=True)
        ]
        _check_output_size(laid, padding, output_padding)
        conv = ConvGeometry(
            N=N,
            C=OG * groups,
            H=laid[0],
            W=laid[1],
            O=C,
            KH=kernel[0],
            KW=kernel[1],
            stride=stride,
            dilation=dilation,
            groups=groups,
        )
        return cls(conv, padding, output_padding)

    @property
    def laid_size(self) -> Pair:
        """Height and width of the map that x lays down, stride·(H − 1) + dilation·(KH − 1) + 1."""
        return self.conv.H, self.conv.W

    @property
    def OH(self) -> int:
        """Output height."""
        return self.conv.H + self.output_padding[0] - sum(self.padding[0])

    @property
    def OW(self) -> int:
        """Output width."""
        return self.conv.W + self.output_padding[1] - sum(self.padding[1])

    @property
    def x_shape(self) -> tuple[int, int, int, int]:
        """(N, C, H, W)."""
        return self.conv.output_shape

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        """(C, O/groups, KH, KW)."""
        return self.conv.weight_shape

    @property
    def bias_shape(self) -> tuple[int]:
        """(O,)."""
        return (self.conv.C,)

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """(N, O, OH, OW), the shape of the output and of ``grad_output``."""
        return self.conv.N, self.conv.C, self.OH, self.OW

    def require(self, **arrays: np.ndarray) -> None:
        """Check arrays by name, ``bias`` and ``grad_output``; raises ShapeError."""
        needed = {
            "bias": (self.bias_shape, "(O,)"),
            "grad_output": (self.output_shape, "(N, O, OH, OW), the shape of the output"),
        }
        for name, array in arrays.items():
            shape, letters = needed[name]
            if array.shape != shape:
                raise ShapeError(
                    f"{name} has shape {array.shape}: needed is {shape} = {letters} of "
                    f"conv_transpose2d for {self.describe()}; check stride, padding, "
                    f"output_padding, dilation and groups, or reshape {name}"
                )

    def describe(self) -> str:
        """The geometry in one phrase, for messages."""
        conv = self.conv
        words = [
            "x " + "×".join(map(str, self.x_shape)),
            f"{conv.C} output {'channel' if conv.C == 1 else 'channels'}, "
            f"kernels {conv.KH}×{conv.KW}",
        ]
        if conv.stride != (1, 1):
            words.append(f"stride {short(conv.stride)}")
        if self.padding != ((0, 0), (0, 0)):
            words.append(f"padding {short(tuple(map(short, self.padding)))}")
        if self.output_padding != (0, 0):
            words.append(f"output_padding {short(self.output_padding)}")
        if conv.dilation != (1, 1):
            words.append(f"dilation {short(conv.dilation)}")
        if conv.groups != 1:
            words.append(f"{conv.groups} groups")
        return ", ".join(words)


# ---- the cut, and its adjoint ----------------------------------------------------------------


def cut(laid: np.ndarray, geometry: TransposedGeometry) -> np.ndarray:
    """The output from the map that x laid down: (N, O, ·, ·) to (N, O, OH, OW).

    ``output_padding`` more rows and columns at the end, then ``padding`` off every side.
    """
    y = np.zeros(geometry.output_shape, laid.dtype)
    there, here = _kept(geometry)
    y[:, :, *here] = laid[:, :, *there]
    return y


def uncut(grad_output: np.ndarray, geometry: TransposedGeometry) -> np.ndarray:
    """The gradient of that map, (N, O, OH, OW) to (N, O, ·, ·): the adjoint of :func:`cut`.

    What was cut off gets no gradient, and what no kernel reached keeps its own.
    """
    N, O, *_ = geometry.output_shape
    grad_laid = np.zeros((N, O, *geometry.laid_size), grad_output.dtype)
    there, here = _kept(geometry)
    grad_laid[:, :, *there] = grad_output[:, :, *here]
    return grad_laid


def _kept(geometry: TransposedGeometry) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The rows and columns that survive the cut: where they lie in the laid map, where in y."""
    there, here = [], []
    sizes = geometry.laid_size, (geometry.OH, geometry.OW), geometry.padding
    for laid, out, (before, _) in zip(*sizes, strict=True):
        end = min(laid, before + out)  # what lies beyond was added by output_padding
        there.append(slice(before, end))
        here.append(slice(0, max(end - before, 0)))
    return tuple(there), tuple(here)


# ---- the front door --------------------------------------------------------------------------


def conv_transpose2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Step = 1,
    padding: Border = 0,
    output_padding: Step = 0,
    groups: int = 1,
    dilation: Step = 1,
    implementation: str | None = None,
) -> np.ndarray:
    """Transposed convolution (``torch.nn.functional.conv_transpose2d``, arguments in its order).

    Parameters
    ----------
    x : array_like, (N, C, H, W)
        The maps; (C, H, W) for one image.
    weight : array_like, (C, O/groups, KH, KW)
        The input channels first, as the weight of the conv2d that goes the other way has them.
    bias : array_like, (O,), optional
        One number for each output channel.
    stride : int or pair, default 1
        How far apart the cells of x lay down their kernels; a pair is (height, width).
    padding : int, pair or pair of pairs, default 0
        What is cut off the result: one number, (height, width) or ((top, bottom), (left, right)).
    output_padding : int or pair, default 0
        Rows and columns that are added at the end, fewer than stride or than dilation.
    groups : int, default 1
        How many independent convolutions share the channels.
    dilation : int or pair, default 1
        Distance from one tap to the next.
    implementation : str, optional
        A name in :data:`IMPLEMENTATIONS`; None takes the fastest.

    Returns
    -------
    y : ndarray, (N, O, OH, OW)
        (O, OH, OW) for one image, with OH = stride·(H − 1) + dilation·(KH − 1) + 1 +
        output_padding − padding of both sides.  Types follow the rules of :func:`conv2d`.

    Raises
    ------
    GeometryError
        When the numbers describe no transposed convolution.
    ShapeError
        When an array does not fit it.  (Both errors are ValueErrors.)
    ValueError
        For an unknown implementation.
    TypeError
        For arrays that hold no numbers.

    Examples
    --------
    >>> x, weight = [[[[1, 10]]]], [[[[1, 2, 3]]]]
    >>> conv_transpose2d(x, weight, stride=2)  # 1·(1 2 3) and 10·(1 2 3) overlap
    array([[[[ 1.,  2., 13., 20., 30.]]]])
    >>> conv_transpose2d(  # one column added, one cut off each end
    ...     x, weight, stride=2, padding=(0, 1), output_padding=(0, 1))
    array([[[[ 2., 13., 20., 30.]]]])
    """
    operands = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    given = [number_array(name, value) for name, value in operands.items()]
    (x, weight, *biases), dtype = common(given)
    x, batched = as_batch(x)
    geometry = TransposedGeometry.of(
        x.shape, weight.shape, stride, padding, output_padding, groups, dilation
    )
    for b in biases:
        geometry.require(bias=b)
    rule = implementation_named(implementation)
    require_room(rule, geometry.conv, ["grad_input"], x.itemsize, geometry.describe())
    with quiet():
        y = cut(rule.grad_input(x, weight, geometry.conv), geometry)  # n o h v
        for b in biases:
            y = y + b[:, None, None]
        return finish(y if batched else y[0], dtype)


@overload
def conv_transpose2d_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike,
    *,
    stride: Step = ...,
    padding: Border = ...,
    output_padding: Step = ...,
    groups: int = ...,
    dilation: Step = ...,
    implementation: str | None = ...,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def conv_transpose2d_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike,
    *,
    stride: Step = ...,
    padding: Border = ...,
    output_padding: Step = ...,
    groups: int = ...,
    dilation: Step = ...,
    output_mask: Sequence[bool],
    implementation: str | None = ...,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]: ...
def conv_transpose2d_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike,
    *,
    stride: Step = 1,
    padding: Border = 0,
    output_padding: Step = 0,
    groups: int = 1,
    dilation: Step = 1,
    output_mask: Sequence[bool] = (True, True, True),
    implementation: str | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """The three gradients of :func:`conv_transpose2d`.

    Parameters
    ----------
    grad_output : array_like, (N, O, OH, OW)
        ∂L/∂y, in the shape of conv_transpose2d's result.
    x : array_like, (N, C, H, W)
        As given to conv_transpose2d.
    weight : array_like, (C, O/groups, KH, KW)
        As given to conv_transpose2d.
    stride, padding, output_padding, groups, dilation : optional
        As given to conv_transpose2d.
    output_mask : three bools, default (True, True, True)
        Which of the three to compute; the others are None.
    implementation : str, optional
        A name in :data:`IMPLEMENTATIONS`; None takes the fastest.

    Returns
    -------
    grad_input : ndarray or None, (N, C, H, W)
        A convolution of grad_output with the same weight.
    grad_weight : ndarray or None, (C, O/groups, KH, KW)
        The grad_weight rule with x and grad_output exchanged.
    grad_bias : ndarray or None, (O,)
        The sum of grad_output over images and positions.

    Raises
    ------
    GeometryError, ShapeError, ValueError, TypeError
        As conv_transpose2d does; ShapeError also for an output_mask that is not three flags.

    Notes
    -----
    Types, complex conventions and memory follow the rules of :func:`conv2d_backward`.

    Examples
    --------
    >>> grad_input, grad_weight, _ = conv_transpose2d_backward(
    ...     [[[[1, 0, 2, 0, 3]]]], [[[[1, 10]]]], [[[[1, 2, 3]]]], stride=2)
    >>> grad_input  # a convolution of g: 1·1 + 2·3 and 2·1 + 3·3
    array([[[[ 7., 11.]]]])
    >>> grad_weight  # 1·1 + 10·2, 1·0 + 10·0, 1·2 + 10·3
    array([[[[21.,  0., 32.]]]])
    """
    want_input, want_weight, want_bias = flags(output_mask)
    operands = {"grad_output": grad_output, "x": x, "weight": weight}
    given = [number_array(name, value) for name, value in operands.items()]
    (grad_output, x, weight), dtype = common(given)
    _, input_dtype, weight_dtype = (gradient_type(dtype, operand) for operand in given)
    x, batched = as_batch(x)
    geometry = TransposedGeometry.of(
        x.shape, weight.shape, stride, padding, output_padding, groups, dilation
    )
    grad_output = upstream(grad_output, geometry, batched)
    rule = implementation_named(implementation)
    maps = ["grad_input"]  # what g is laid out to, as large as the image there
    maps += [*["forward"] * want_input, *["grad_weight"] * want_weight]
    require_room(rule, geometry.conv, maps, x.itemsize, geometry.describe())
    grad_input = grad_weight = grad_bias = None
    with quiet():
        if want_input or want_weight:
            grad_laid = uncut(grad_output, geometry)
        # conj() is the array itself where it is real
        if want_input:
            grad_input = rule.forward(grad_laid, weight.conj(), geometry.conv)
            grad_input = finish(grad_input if batched else grad_input[0], input_dtype)
        if want_weight:  # x where the upstream gradient stood, g where the image stood
            grad_weight = rule.grad_weight(x.conj(), grad_laid, geometry.conv)
            grad_weight = finish(grad_weight, weight_dtype)
        if want_bias:  # the bias reaches every output cell once, those that x reaches or not
            grad_bias = finish(grad_output.sum(axis=(0, 2, 3)), dtype)  # n o h v → o
    return grad_input, grad_weight, grad_bias


# ---- the checks of TransposedGeometry.of, one reason each ------------------------------------


def _check_shapes(x_shape: tuple[int, ...], weight_shape: tuple[int, ...]) -> None:
    if len(x_shape) != 4:
        raise ShapeError(
            f"x has {len(x_shape)} axes, shape {x_shape}: needed are 4, (N, C, H, W); "
            "reshape it, for one grey image with x[None, None]"
        )
    if len(weight_shape) != 4:
        raise ShapeError(
            f"weight has {len(weight_shape)} axes, shape {weight_shape}: needed are 4, "
            "(C, O/groups, KH, KW); reshape it, for one kernel with weight[None, None]"
        )
    for name, shape in (("x", x_shape[1:]), ("weight", weight_shape)):
        if min(shape) < 1:
            raise ShapeError(
                f"{name} has shape {x_shape if name == 'x' else weight_shape}, without a cell: "
                "every axis but the batch needs a size of at least 1"
            )
    if weight_shape[0] != x_shape[1]:
        raise ShapeError(
            f"weight has {weight_shape[0]} on its first axis, shape {weight_shape}: x has "
            f"C = {x_shape[1]} channels, and conv_transpose2d wants the weight as (C, O/groups, "
            "KH, KW), as the conv2d that goes the other way has it; change one of them, or for a "
            "weight with its output channels first use weight.swapaxes(0, 1) (one group)"
        )


def _check_groups(x_shape: tuple[int, ...], weight_shape: tuple[int, ...], groups: int) -> None:
    C = x_shape[1]
    if C % groups:
        divisors = [k for k in range(1, C + 1) if C % k == 0]
        raise GeometryError(
            f"{C} input channels do not divide into {groups} groups: use groups out of "
            f"{divisors} or change C"
        )


def _check_output_padding(output_padding: Pair, stride: Pair, dilation: Pair) -> None:
    for axis, rows, s, d in zip(("height", "width"), output_padding, stride, dilation, strict=True):
        if rows >= max(s, d):
            raise GeometryError(
                f"output_padding of the {axis} is {rows}, with stride {s} and dilation {d}: "
                f"needed is less than the larger of the two, so at most {max(s, d) - 1}; more "
                "zeros can be put around the result with np.pad"
            )


def _check_output_size(laid: list[int], padding: tuple[Pair, Pair], output_padding: Pair) -> None:
    cells = [size + more for size, more in zip(laid, output_padding, strict=True)]
    if cells[0] * cells[1] > LARGEST:
        raise GeometryError(
            f"x lays down a map of {cells[0]}×{cells[1]}: needed are at most {LARGEST} cells; "
            "use a smaller stride, dilation or input"
        )
    for axis, size, pair in zip(("height", "width"), cells, padding, strict=True):
        if sum(pair) >= size:
            raise GeometryError(
                f"padding {pair} of the {axis} cuts off {sum(pair)} of the {size} cells that x "
                f"lays down there: needed is at least one left; pad at most {size - 1} in all"
            )
