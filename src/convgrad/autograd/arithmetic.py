"""Five ways to compute the three gradients of tensors; the forward pass is PyTorch's own in all.

Each takes ``(grad_output, x, weight, geometry, mask)``, operands of one type on one device, a
geometry with a border of zeros that is the same above and below, left and right, and which of the
three gradients are wanted; each gives :class:`Gradients`, with None for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..api import conv2d_backward
from ..extras import needs
from ..geometry import ConvGeometry
from ..second import double_backward

with needs("torch", "convgrad.autograd"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch.autograd.function import once_differentiable

    from .. import kernels  # which would ask for another extra where torch is missing

__all__ = ["IMPLEMENTATIONS", "Gradients", "Mask", "aten", "correlate", "numpy", "triton", "unfold"]

Mask = tuple[bool, bool, bool]


class Gradients(NamedTuple):
    """The three gradients of a convolution; None where one was not asked for.

    Attributes
    ----------
    grad_input : Tensor or None, (N, C, H, W)
        ∂L/∂x.
    grad_weight : Tensor or None, (O, C/groups, KH, KW)
        ∂L/∂weight.
    grad_bias : Tensor or None, (O,)
        ∂L/∂bias.

    Examples
    --------
    >>> Gradients(None, None, torch.ones(2)).grad_bias
    tensor([1., 1.])
    """

    grad_input: Tensor | None
    grad_weight: Tensor | None
    grad_bias: Tensor | None


def aten(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor,
    geometry: ConvGeometry,
    mask: Mask,
) -> Gradients:
    """PyTorch's own: the one operation behind all its convolutions."""
    found = torch.ops.aten.convolution_backward(
        grad_output,
        x,
        weight,
        [geometry.O],  # bias_sizes
        list(geometry.stride),
        _border(geometry),
        list(geometry.dilation),
        False,  # transposed
        [0, 0],  # output_padding
        geometry.groups,
        list(mask),
    )
    # some backends answer more than they were asked
    pairs = zip(found, mask, strict=True)
    return Gradients(*(each if wanted else None for each, wanted in pairs))


def unfold(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor,
    geometry: ConvGeometry,
    mask: Mask,
) -> Gradients:
    """Products with the columns of F.unfold; F.fold adds up what overlaps."""
    G, OG, windows = geometry.groups, geometry.OG, geometry.OH * geometry.OW
    how: dict[str, Any] = {
        "kernel_size": (geometry.KH, geometry.KW),
        "dilation": geometry.dilation,
        "padding": _border(geometry),
        "stride": geometry.stride,
    }
    g = grad_output.reshape(-1, G, OG, windows)  # n k o l
    grad_input = grad_weight = None
    if mask[0]:
        columns = weight.reshape(G, OG, -1).mT @ g  # k r o · n k o l = n k r l
        size = (geometry.H, geometry.W)
        grad_input = F.fold(columns.flatten(1, 2), size, **how)
    if mask[1]:
        columns = F.unfold(x, **how).unflatten(1, (G, -1))  # n k r l
        shares = g @ columns.mT  # n k o r
        grad_weight = shares.sum(0).reshape(weight.shape)  # (k o) c i j
    return Gradients(grad_input, grad_weight, _grad_bias(grad_output, mask))


def correlate(
    grad_output: Tensor, x: Tensor, weight: Tensor, geometry: ConvGeometry, mask: Mask
) -> Gradients:
    """Both as convolutions: x with g, stride and dilation exchanged; g with w, transposed."""
    grad_input = grad_weight = None
    border = _border(geometry)
    if mask[0]:
        grad_input = F.conv_transpose2d(
            grad_output,
            weight,
            None,
            geometry.stride,
            border,
            output_padding=geometry.leftover,
            groups=geometry.groups,
            dilation=geometry.dilation,
        )
    if mask[1]:
        N, G, CG = geometry.N, geometry.groups, geometry.CG
        images = x.reshape(N, G, CG, geometry.H, geometry.W).permute(2, 1, 0, 3, 4)
        images = images.reshape(CG, G * N, geometry.H, geometry.W)  # c (k n) h v
        kernels = grad_output.transpose(0, 1)  # (k o) n p q
        found = F.conv2d(
            images, kernels, None, geometry.dilation, border, geometry.stride, groups=G
        )  # c (k o) i j, with a surplus
        grad_weight = found[:, :, : geometry.KH, : geometry.KW].transpose(0, 1)
    return Gradients(grad_input, grad_weight, _grad_bias(grad_output, mask))


def numpy(
    grad_output: Tensor, x: Tensor, weight: Tensor, geometry: ConvGeometry, mask: Mask
) -> Gradients:
    """This package's own NumPy, on the CPU; second gradients too, but no vmap and no compile."""
    found = iter(_numpy(grad_output, x, weight, geometry, mask))
    return Gradients(*(next(found) if wanted else None for wanted in mask))


class _ThroughNumPy(torch.autograd.Function):
    """convgrad's backward pass as one step of autograd, with its own backward pass."""

    @staticmethod
    def forward(
        grad_output: Tensor, x: Tensor, weight: Tensor, geometry: ConvGeometry, mask: Mask
    ) -> tuple[Tensor, ...]:
        found = conv2d_backward(
            *_arrays(grad_output, x, weight), **_options(geometry), output_mask=mask
        )
        return tuple(_tensor(each, like=x) for each in found if each is not None)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *operands, ctx.geometry, ctx.mask = inputs
        ctx.save_for_backward(*operands)

    @staticmethod
    @once_differentiable  # a third gradient stops with an error instead of being 0
    def backward(ctx: Any, *seconds: Tensor) -> tuple[Tensor | None, ...]:
        operands = ctx.saved_tensors
        given = iter(_arrays(*seconds))
        ggx, ggw, ggb = (next(given) if wanted else None for wanted in ctx.mask)
        grad_output, x, weight = _arrays(*operands)
        found = double_backward(
            *(ggx, ggw, ggb, grad_output, x, weight),
            **_options(ctx.geometry),
            output_mask=ctx.needs_input_grad[:3],
        )
        first = (None if each is None else _tensor(each, like=operands[0]) for each in found)
        return (*first, None, None)


_numpy: Callable[..., tuple[Tensor, ...]] = _ThroughNumPy.apply  # which has no types


def triton(
    grad_output: Tensor, x: Tensor, weight: Tensor, geometry: ConvGeometry, mask: Mask
) -> Gradients:
    """This package's own kernels; second gradients too, but no vmap and no compile."""
    found = iter(_triton(grad_output, x, weight, geometry, mask))
    return Gradients(*(next(found) if wanted else None for wanted in mask))


class _ThroughTriton(torch.autograd.Function):
    """convgrad's kernels as one step of autograd, with their own backward pass."""

    @staticmethod
    def forward(
        grad_output: Tensor, x: Tensor, weight: Tensor, geometry: ConvGeometry, mask: Mask
    ) -> tuple[Tensor, ...]:
        found = (
            kernels.grad_input(grad_output, weight, geometry) if mask[0] else None,
            kernels.grad_weight(grad_output, x, geometry, "two_pass") if mask[1] else None,
            kernels.grad_bias(grad_output, geometry) if mask[2] else None,
        )
        return tuple(each for each in found if each is not None)

    setup_context = _ThroughNumPy.setup_context

    @staticmethod
    @once_differentiable  # a third gradient stops with an error instead of being 0
    def backward(ctx: Any, *seconds: Tensor) -> tuple[Tensor | None, ...]:
        grad_output, x, weight = ctx.saved_tensors
        geometry, needed = ctx.geometry, ctx.needs_input_grad
        given = iter(seconds)
        ggx, ggw, ggb = (next(given) if wanted else None for wanted in ctx.mask)
        to_g = grad_output.new_zeros(geometry.output_shape) if needed[0] else None
        to_x = to_weight = None
        # every first gradient is linear in g and in one operand: its second ones are the
        # forward pass and the first ones again
        if to_g is not None:
            if ggx is not None:
                to_g += kernels.forward(ggx, weight, geometry)
            if ggw is not None:
                to_g += kernels.forward(x, ggw, geometry)
            if ggb is not None:
                to_g += ggb[:, None, None]
        if needed[1] and ggw is not None:
            to_x = kernels.grad_input(grad_output, ggw, geometry)
        if needed[2] and ggx is not None:
            to_weight = kernels.grad_weight(grad_output, ggx, geometry, "two_pass")
        return to_g, to_x, to_weight, None, None


_triton: Callable[..., tuple[Tensor, ...]] = _ThroughTriton.apply  # which has no types


def _options(geometry: ConvGeometry) -> dict[str, Any]:
    options = geometry.as_dict()
    return {name: options[name] for name in ("stride", "padding", "dilation", "groups")}


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    # NumPy has no bfloat16; its numbers are float32's, cut short
    whole = (each.float() if each.dtype == torch.bfloat16 else each for each in tensors)
    return [each.detach().cpu().resolve_conj().resolve_neg().numpy() for each in whole]


def _tensor(array: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(like)


def _border(geometry: ConvGeometry) -> list[int]:
    (top, _), (left, _) = geometry.padding
    return [top, left]


def _grad_bias(grad_output: Tensor, mask: Sequence[bool]) -> Tensor | None:
    return grad_output.sum((0, 2, 3)) if mask[2] else None


#: Every way to compute the gradients, by name; each is called with grad_output, x, weight, a
#: ConvGeometry and three flags, and gives Gradients.
IMPLEMENTATIONS: dict[str, Callable[[Tensor, Tensor, Tensor, ConvGeometry, Mask], Gradients]] = {
    each.__name__: each for each in (aten, unfold, correlate, numpy, triton)
}
