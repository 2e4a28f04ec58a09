"""Gradients of gradients: the backward pass has a backward pass, and it is made of the same sums.

Written with an upstream gradient g, a convolution is one number made of three arrays, linear in
each of them:

    T(g, x, w) = Σ_{n,o,p,q,c,i,j} g[n,o,p,q] · w[o,c,i,j] · x[n,c,h,v]

The gradients of the first pass leave one operand out of it: grad_input has no x, grad_weight
no w.  (Left out g, it is the output y itself.)

A second pass starts where a loss depends on these gradients: a gradient penalty, a meta-learning
step.  It hands over what the loss wants of each: ``ggx`` = ∂L/∂grad_input in the shape of x,
``ggw`` = ∂L/∂grad_weight in the shape of w and ``ggb`` = ∂L/∂grad_bias.  To first order L is then

    S = T(g, ggx, w) + T(g, x, ggw) + Σ_{n,o,p,q} ggb[o] · g[n,o,p,q]

because ⟨ggx, grad_input⟩ is T with ggx where x stood, and ⟨ggw, grad_weight⟩ is T with ggw where w
stood.  Leave one operand out again:

    ∂S/∂g = conv(ggx, w) + conv(x, ggw) + ggb
    ∂S/∂x = the grad_input rule with ggw as the kernel
    ∂S/∂w = the grad_weight rule with ggx as the image

The first two terms are T with g left out, twice; x stands in the second term alone, w in the first
alone.  Padding of any mode is linear, so it changes nothing.

Source of the formulas: the sums above, differentiated by hand; PyTorch has the same ones in its
convolution double backward (``_convolution_double_backward``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from .api import (
    Implementation,
    as_batch,
    flags,
    geometry_of,
    implementation_named,
    require_room,
    upstream,
)
from .geometry import Border, ConvGeometry, ShapeError, Step
from .operands import common, finish, gradient_type, number_array, quiet

__all__ = ["double_backward", "to_grad_output", "to_weight", "to_x"]

Given = np.ndarray | None  # None stands for zeros


def to_grad_output(
    ggx: Given,
    ggw: Given,
    ggb: Given,
    x: np.ndarray,
    weight: np.ndarray,
    geometry: ConvGeometry,
    rule: Implementation,
) -> np.ndarray:
    """By g, (N, O, OH, OW): conv(ggx, w) + conv(x, ggw) + ggb."""
    grad = np.zeros(geometry.output_shape, np.result_type(x, weight))  # n o p q
    if ggx is not None:
        grad += rule.forward(ggx, weight, geometry)
    if ggw is not None:
        grad += rule.forward(x, ggw, geometry)
    if ggb is not None:
        grad += ggb[:, None, None]
    return grad


def to_x(
    ggw: Given,
    grad_output: np.ndarray,
    geometry: ConvGeometry,
    rule: Implementation,
) -> np.ndarray:
    """By x, (N, C, H, W): the grad_input rule with ggw as the kernel."""
    if ggw is None:
        return np.zeros(geometry.x_shape, grad_output.dtype)
    # conj() of a real array is itself
    return rule.grad_input(grad_output, ggw.conj(), geometry)


def to_weight(
    ggx: Given,
    grad_output: np.ndarray,
    geometry: ConvGeometry,
    rule: Implementation,
) -> np.ndarray:
    """By w, (O, C/G, KH, KW): the grad_weight rule with ggx as the image."""
    if ggx is None:
        return np.zeros(geometry.weight_shape, grad_output.dtype)
    return rule.grad_weight(grad_output, ggx.conj(), geometry)


@overload
def double_backward(
    grad_grad_input: ArrayLike | None,
    grad_grad_weight: ArrayLike | None,
    grad_grad_bias: ArrayLike | None,
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
def double_backward(
    grad_grad_input: ArrayLike | None,
    grad_grad_weight: ArrayLike | None,
    grad_grad_bias: ArrayLike | None,
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
def double_backward(
    grad_grad_input: ArrayLike | None,
    grad_grad_weight: ArrayLike | None,
    grad_grad_bias: ArrayLike | None,
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
    """The gradients of :func:`conv2d_backward` with respect to grad_output, x and weight.

    Parameters
    ----------
    grad_grad_input : array_like or None, (N, C, H, W)
        ∂L/∂grad_input.  None stands for zeros, which cost nothing; so for the next two.
    grad_grad_weight : array_like or None, (O, C/groups, KH, KW)
        ∂L/∂grad_weight.
    grad_grad_bias : array_like or None, (O,)
        ∂L/∂grad_bias.
    grad_output : array_like, (N, O, OH, OW)
        As given to conv2d_backward.
    x : array_like, (N, C, H, W)
        As given to conv2d_backward.
    weight : array_like, (O, C/groups, KH, KW)
        As given to conv2d_backward.
    stride, padding, dilation, groups, padding_mode : optional
        As given to conv2d_backward.
    output_mask : three bools, default (True, True, True)
        Which of the three results to compute; the others are None.
    implementation : str, optional
        A name in :data:`IMPLEMENTATIONS`; None takes the fastest.

    Returns
    -------
    grad_grad_output : ndarray or None, (N, O, OH, OW)
        In the shape of grad_output.
    grad_input : ndarray or None, (N, C, H, W)
        A share: where x also reaches the loss in other ways, the gradients add up.
    grad_weight : ndarray or None, (O, C/groups, KH, KW)
        A share, likewise.

    Raises
    ------
    GeometryError
        When the numbers describe no convolution.
    ShapeError
        When an array does not fit it, or output_mask is not three flags.
    ValueError
        For an unknown implementation.
    TypeError
        For arrays that hold no numbers.

    Notes
    -----
    A result that no operand reaches is zero, and an array too (PyTorch returns None there).
    Types, complex conventions (PyTorch's) and memory follow the rules of conv2d_backward, with
    the common type of all operands given.

    The formulas are those of the sum T(g, x, w) = Σ g · w · x, linear in each of the three, with
    one operand left out at a time: grad_grad_output = conv(ggx, w) + conv(x, ggw) + ggb,
    grad_input is the grad_input rule with ggw as the kernel, grad_weight the grad_weight rule
    with ggx as the image.  PyTorch has the same ones in ``_convolution_double_backward``.

    Examples
    --------
    A gradient penalty, L = ½ Σ grad_input², hands back grad_input itself:

    >>> from convgrad import conv2d_backward
    >>> x, weight, g = [[[[1, 2, 3]]]], [[[[1, -1]]]], [[[[2, 5]]]]
    >>> grad_input, _, _ = conv2d_backward(g, x, weight)
    >>> grad_input
    array([[[[ 2.,  3., -5.]]]])
    >>> grad_of_g, grad_of_x, grad_of_weight = double_backward(
    ...     grad_input, None, None, g, x, weight)
    >>> grad_of_g  # conv(grad_input, weight)
    array([[[[-1.,  8.]]]])
    >>> grad_of_weight  # 2·2 + 5·3 and 2·3 + 5·(−5)
    array([[[[ 19., -19.]]]])
    >>> grad_of_x  # grad_input does not depend on x
    array([[[[0., 0., 0.]]]])
    """
    want_output, want_input, want_weight = flags(
        output_mask, "(grad_grad_output, grad_input, grad_weight)"
    )
    operands = {"grad_output": grad_output, "x": x, "weight": weight}
    seconds = {
        "grad_grad_input": grad_grad_input,
        "grad_grad_weight": grad_grad_weight,
        "grad_grad_bias": grad_grad_bias,
    }
    operands |= {name: value for name, value in seconds.items() if value is not None}
    given = [number_array(name, value) for name, value in operands.items()]
    (grad_output, x, weight, *rest), dtype = common(given)
    ready = dict(zip(list(operands)[3:], rest, strict=True))
    output_dtype, input_dtype, weight_dtype = (gradient_type(dtype, a) for a in given[:3])

    shapes = {"x": x.shape, "weight": weight.shape, "bias": weight.shape[:1]}
    x, batched = as_batch(x)
    geometry = geometry_of(x, weight, batched, stride, padding, dilation, groups, padding_mode)
    grad_output = upstream(grad_output, geometry, batched)
    for name, (like, shape) in zip(seconds, shapes.items(), strict=True):
        _require_like(name, ready.get(name), like, shape)
    ggx, ggw, ggb = map(ready.get, seconds)
    if ggx is not None and not batched:
        ggx = ggx[None]
    rule = implementation_named(implementation)
    maps = [*["forward"] * 2 * want_output, *["grad_input"] * want_input]
    maps += ["grad_weight"] * want_weight
    require_room(rule, geometry, maps, x.itemsize)

    grad_grad_output = grad_input = grad_weight = None
    with quiet():
        if want_output:
            grad = to_grad_output(ggx, ggw, ggb, x, weight, geometry, rule)
            grad_grad_output = finish(grad if batched else grad[0], output_dtype)
        if want_input:
            grad = to_x(ggw, grad_output, geometry, rule)
            grad_input = finish(grad if batched else grad[0], input_dtype)
        if want_weight:
            grad_weight = finish(to_weight(ggx, grad_output, geometry, rule), weight_dtype)
    return grad_grad_output, grad_input, grad_weight


def _require_like(name: str, array: Given, like: str, shape: tuple[int, ...]) -> None:
    """The gradient of a gradient has the shape of the gradient, and that of its operand."""
    if array is not None and array.shape != shape:
        raise ShapeError(
            f"{name} has shape {array.shape}: it belongs to the gradient of {like}, so needed is "
            f"{shape}; give it the shape of {like}, or None where nothing depends on that gradient"
        )
