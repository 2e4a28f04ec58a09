"""The front door: ``conv2d`` and ``conv2d_backward``, and every way there is to compute them.

Arguments arrive here as people have them (lists, integers, one image without a batch, any
memory layout) and leave as the compute type and the four axes that every implementation
expects.  Shapes are checked by :class:`~convgrad.geometry.ConvGeometry`, types here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from . import correlate, grouped, im2col, loops, windows
from .geometry import ConvGeometry, ShapeError

__all__ = ["FASTEST", "IMPLEMENTATIONS", "Implementation", "conv2d", "conv2d_backward"]


@dataclass(frozen=True)
class Implementation:
    """One way to compute the convolution and its gradients.

    ``forward(x, weight, geometry)``, ``grad_input(grad_output, weight, geometry)``,
    ``grad_weight(grad_output, x, geometry)`` and ``grad_bias(grad_output, geometry)`` take
    arrays with four axes that share one floating-point type.
    """

    name: str
    trades: str
    forward: Callable[..., np.ndarray]
    grad_input: Callable[..., np.ndarray]
    grad_weight: Callable[..., np.ndarray]
    grad_bias: Callable[..., np.ndarray]

    @classmethod
    def of(cls, module: ModuleType, trades: str) -> Implementation:
        name = module.__name__.rpartition(".")[2]
        rules = (module.forward, module.grad_input, module.grad_weight, module.grad_bias)
        return cls(name, trades, *rules)


IMPLEMENTATIONS: dict[str, Implementation] = {
    each.name: each
    for each in (
        Implementation.of(loops, "All clarity and no speed: the definition, one product a step."),
        Implementation.of(windows, "One line a map and no copy of x, at the speed of a plain sum."),
        Implementation.of(im2col, "Speed bought with memory: each cell is copied once per tap."),
        Implementation.of(correlate, "Little memory and a lesson: the gradients are convolutions."),
        Implementation.of(grouped, "Any number of groups in one call, one share kept per image."),
    )
}

# What implementation=None takes: the fastest on most layers of benchmarks/rungs.json.
FASTEST = "im2col"


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    implementation: str | None = None,
) -> np.ndarray:
    """The convolution of the book's one equation (``torch.nn.functional.conv2d``).

    x : (N, C, H, W), or (C, H, W) for one image;  weight : (O, C/groups, KH, KW);
    bias : (O,) or None.
    stride, dilation : int or pair;  padding : int, pair, ((top, bottom), (left, right)),
    "same" or "valid";  padding_mode : "zeros", "reflect", "replicate" or "circular".
    implementation : a name in :data:`IMPLEMENTATIONS`; None takes the fastest.

    Returns y, (N, O, OH, OW), or (O, OH, OW) for one image.  Its type is NumPy's common type of
    the operands, integers and booleans counting as float64; float16 is summed in float32.
    Raises :class:`GeometryError` or :class:`ShapeError` (both ValueError) when sizes do not fit,
    TypeError for arrays that hold no numbers.

    >>> conv2d([[[[1, 2, 3], [4, 5, 6], [6, 7, 8]]]], [[[[1, 1], [2, 2]]]])
    array([[[[21., 27.],
             [35., 41.]]]])
    """
    operands = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    (x, weight, *biases), dtype = _common(_numbers(**operands))
    x, batched = _as_batch(x)
    geometry = ConvGeometry.of(
        x.shape, weight.shape, stride, padding, dilation, groups, padding_mode
    )
    for b in biases:
        geometry.require(bias=b)
    with _quiet():
        y = _implementation(implementation).forward(x, weight, geometry)  # n o p q
        for b in biases:
            y = y + b[:, None, None]
        return _finish(y if batched else y[0], dtype)


def conv2d_backward(
    grad_output: Any,
    x: Any,
    weight: Any,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    output_mask: Sequence[bool] = (True, True, True),
    implementation: str | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """The three gradients of :func:`conv2d`: (grad_input, grad_weight, grad_bias).

    grad_output : ∂L/∂y, in the shape of conv2d's result; the rest as given to conv2d.
    output_mask : which of the three to compute; the others are None.

    The gradients have the shapes of x, weight and bias.  Their type is the common type of all
    three operands, by the rules of conv2d.  Complex ones follow PyTorch's convention
    (grad_weight = Σ g · conj(x)), and the gradient of a real operand is real.  Inputs are only
    read, and every result has memory of its own.  Raises as conv2d does.

    >>> x = [[[[1, 2, 3], [4, 5, 6], [6, 7, 8]]]]
    >>> grad_input, grad_weight, grad_bias = conv2d_backward(
    ...     [[[[1, 0], [0, 1]]]], x, [[[[1, 1], [2, 2]]]], output_mask=(False, True, True))
    >>> grad_weight, grad_bias
    (array([[[[ 6.,  8.],
             [11., 13.]]]]), array([2.]))
    """
    want_input, want_weight, want_bias = _mask(output_mask)
    given = _numbers(grad_output=grad_output, x=x, weight=weight)
    (grad_output, x, weight), dtype = _common(given)
    _, input_dtype, weight_dtype = (dtype if a.dtype.kind == "c" else _real(dtype) for a in given)
    x, batched = _as_batch(x)
    geometry = ConvGeometry.of(
        x.shape, weight.shape, stride, padding, dilation, groups, padding_mode
    )
    grad_output = _upstream(grad_output, geometry, batched)
    rule = _implementation(implementation)
    grad_input = grad_weight = grad_bias = None
    with _quiet():
        # conj() is the array itself where it is real
        if want_input:
            grad_input = rule.grad_input(grad_output, weight.conj(), geometry)
            grad_input = _finish(grad_input if batched else grad_input[0], input_dtype)
        if want_weight:
            grad_weight = rule.grad_weight(grad_output, x.conj(), geometry)
            grad_weight = _finish(grad_weight, weight_dtype)
        if want_bias:
            grad_bias = _finish(rule.grad_bias(grad_output, geometry), dtype)
    return grad_input, grad_weight, grad_bias


# ---- what comes in ---------------------------------------------------------------------------

_TYPES = ("float16", "float32", "float64", "complex64", "complex128")


def _numbers(**operands: Any) -> list[np.ndarray]:
    """Every operand as an array of a type in ``_TYPES``; whole numbers become float64."""
    return [_number_array(name, value) for name, value in operands.items()]


def _common(arrays: list[np.ndarray]) -> tuple[list[np.ndarray], np.dtype]:
    """The arrays in one type to compute in, and the type that the result gets."""
    result = np.result_type(*arrays)
    # half precision holds the result; its sums would stop at 2048 and overflow at 65504
    compute = np.dtype(np.float32) if result == np.float16 else result
    with _quiet():
        return [array.astype(compute, copy=False) for array in arrays], result


def _number_array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array: a convolution reads every cell; fill the masked ones "
            f"first, for example with {name}.filled(0)"
        )
    try:
        array = np.asarray(value)
    except ValueError:
        raise ShapeError(
            f"{name} is a nested list whose rows differ in length: needed is a full block of "
            "numbers; pad the short rows or cut the long ones"
        ) from None
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.newbyteorder("=") not in map(np.dtype, _TYPES):
        raise TypeError(
            f"{name} holds {array.dtype}: needed are numbers, that is integers, booleans or one "
            f"of {', '.join(_TYPES)}; convert it, for example with np.asarray({name}, float)"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _as_batch(x: np.ndarray) -> tuple[np.ndarray, bool]:
    """x with its batch axis, and whether it came with one."""
    if x.ndim not in (3, 4):
        raise ShapeError(
            f"x has {x.ndim} axes, shape {x.shape}: needed are 4, (N, C, H, W), or 3, (C, H, W), "
            "for one image; reshape it, for one grey image with x[None, None]"
        )
    return (x, True) if x.ndim == 4 else (x[None], False)


def _upstream(grad_output: np.ndarray, geometry: ConvGeometry, batched: bool) -> np.ndarray:
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


def _mask(output_mask: Sequence[bool]) -> tuple[bool, ...]:
    mask = tuple(map(bool, output_mask)) if np.iterable(output_mask) else ()
    if len(mask) != 3:
        raise ShapeError(
            f"output_mask is {output_mask!r}: needed are three of True and False, for "
            "(grad_input, grad_weight, grad_bias)"
        )
    return mask


def _implementation(name: str | None) -> Implementation:
    try:
        return IMPLEMENTATIONS[FASTEST if name is None else name]
    except (KeyError, TypeError):
        raise ValueError(
            f"implementation is {name!r}: use one of {', '.join(map(repr, IMPLEMENTATIONS))}, "
            f"or None for the fastest, {FASTEST!r}"
        ) from None


# ---- what goes out ---------------------------------------------------------------------------


def _quiet() -> np.errstate:
    """Infinities and nan travel through the sums as IEEE 754 says, without warnings."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


def _real(dtype: np.dtype) -> np.dtype:
    """The type of the real part."""
    return np.empty(0, dtype).real.dtype


def _finish(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The result in its final type, contiguous, and in memory of its own."""
    if result.dtype.kind == "c" and dtype.kind != "c":
        result = result.real  # the gradient of a real operand
    if result.dtype == dtype and result.flags.c_contiguous and result.flags.owndata:
        return result
    return result.astype(dtype, order="C")
