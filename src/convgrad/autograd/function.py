"""conv2d for autograd, with a backward pass that can be chosen, or exchanged for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import kernels
from ..extras import needs
from ..geometry import Border, ConvGeometry, ShapeError, Step, shown
from ..kernels.border import with_border
from .arithmetic import IMPLEMENTATIONS, Gradients, Mask
from .rules import Rule

with needs("torch", "convgrad.autograd"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["Conv2dFunction", "conv2d", "gradients"]


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Step = 1,
    padding: Border = 0,
    dilation: Step = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    implementation: str = "aten",
    rule: Rule | None = None,
) -> Tensor:
    """``F.conv2d`` with a backward pass of your choice.

    Parameters
    ----------
    x : Tensor, (N, C, H, W) or (C, H, W)
        The images, or one of them; any memory layout.
    weight : Tensor, (O, C/groups, KH, KW)
        The kernels, in the dtype of x.
    bias : Tensor, (O,), optional
        One number for each kernel.
    stride, padding, dilation, groups : optional
        As ``F.conv2d`` takes them; padding may be "same" or "valid", or two pairs.
    padding_mode : str, default "zeros"
        Or "reflect", "replicate", "circular", as in ``nn.Conv2d``.
    implementation : str, default "aten"
        How the gradients are computed: "aten" (PyTorch's own), "unfold", "correlate", "numpy",
        or "triton" (the kernels of ``convgrad.kernels``, in float32 and shorter types).
    rule : callable, optional
        What to put in place of the exact gradient: :func:`~convgrad.autograd.sign` and the like, or
        a function of your own.

    Returns
    -------
    Tensor, (N, O, OH, OW) or (O, OH, OW)
        The same, to the bit, as ``F.conv2d`` gives.

    Raises
    ------
    GeometryError
        When the numbers describe no convolution.
    ShapeError
        When a tensor does not fit it.
    ValueError
        For an unknown implementation.
    TypeError
        For tensors of different types, or of one that "triton" does not take.
    RuntimeError
        For tensors on another device than "triton" runs on.

    Notes
    -----
    What needs no gradient costs nothing on the way back.  Second gradients are exact, whichever
    the implementation; ``vmap`` and ``torch.compile`` work with the first three.

    Examples
    --------
    >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
    >>> weight = torch.ones(1, 1, 2, 2, requires_grad=True)
    >>> conv2d(x, weight, implementation="unfold").backward(torch.ones(1, 1, 2, 2))
    >>> weight.grad
    tensor([[[[ 8., 12.],
              [20., 24.]]]])
    """
    if implementation not in IMPLEMENTATIONS:
        known = ", ".join(IMPLEMENTATIONS)
        raise ValueError(f"implementation={implementation!r}: known are {known}")
    _require_one_type(x, weight, bias)
    if implementation == "triton":
        for name, tensor in (("x", x), ("weight", weight)):  # autocast lets their types differ
            kernels.require(**{name: tensor})  # now, not on the way back
    if x.dim() == 3:
        options = (stride, padding, dilation, groups)
        batch = conv2d(
            *(x[None], weight, bias, *options),
            padding_mode=padding_mode,
            implementation=implementation,
            rule=rule,
        )
        return batch[0]
    geometry = ConvGeometry.of(
        x.shape, weight.shape, stride, padding, dilation, groups, padding_mode
    )
    if bias is not None and tuple(bias.shape) != geometry.bias_shape:
        raise ShapeError(
            f"bias has shape {shown(tuple(bias.shape))}: needed is {shown(geometry.bias_shape)}, "
            "one number for each kernel"
        )
    (top, bottom), (left, right) = geometry.padding
    border = (top, left)
    if padding_mode != "zeros" or (top, left) != (bottom, right):
        # as PyTorch does it: the border is made first, and has a backward pass of its own
        x, border = with_border(x, geometry), (0, 0)
    return _convolve(
        x, weight, bias, geometry.stride, border, geometry.dilation, groups, implementation, rule
    )


class Conv2dFunction(torch.autograd.Function):
    """The step of autograd behind :func:`conv2d`, for those who want to see how one is written.

    ``Conv2dFunction.apply(x, weight, bias, stride, padding, dilation, groups, implementation,
    rule)`` takes a batch, pairs, and a padding of zeros that is the same on opposite sides; nothing
    is checked.

    Examples
    --------
    >>> x, weight = torch.ones(1, 1, 2, 2, requires_grad=True), torch.ones(1, 1, 1, 1)
    >>> y = Conv2dFunction.apply(x, weight, None, (1, 1), (0, 0), (1, 1), 1, "aten", None)
    >>> y.sum().backward()
    >>> x.grad
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """

    generate_vmap_rule = True  # all below is made of operations that have one

    @staticmethod
    def forward(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: tuple[int, int],
        padding: tuple[int, int],
        dilation: tuple[int, int],
        groups: int,
        implementation: str,
        rule: Rule | None,
    ) -> Tensor:
        return F.conv2d(x, weight, bias, stride, padding, dilation, groups)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _, *ctx.options, ctx.implementation, ctx.rule = inputs
        ctx.save_for_backward(x, weight)  # the sums need these, and g

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        found = gradients(
            grad_output,
            # under autocast the forward pass saw them in the type of its output
            x.to(grad_output.dtype),
            weight.to(grad_output.dtype),
            ConvGeometry.of(x.shape, weight.shape, *ctx.options),
            tuple(ctx.needs_input_grad[:3]),
            implementation=ctx.implementation,
            rule=ctx.rule,
        )
        return (*found, *[None] * 6)


_convolve: Callable[..., Tensor] = Conv2dFunction.apply  # which has no types


def gradients(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor,
    geometry: ConvGeometry,
    mask: Mask = (True, True, True),
    *,
    implementation: str = "aten",
    rule: Rule | None = None,
) -> Gradients:
    """The backward pass alone, by an implementation and a rule.

    Parameters
    ----------
    grad_output : Tensor, (N, O, OH, OW)
        ∂L/∂y.
    x : Tensor, (N, C, H, W)
        The images.
    weight : Tensor, (O, C/groups, KH, KW)
        The kernels.
    geometry : ConvGeometry
        Their sizes and options; padding of zeros, the same on opposite sides.
    mask : three bools, default (True, True, True)
        Which of the three are wanted.
    implementation, rule : optional
        As in :func:`conv2d`.

    Returns
    -------
    Gradients
        With None for what was not wanted.

    Raises
    ------
    ValueError
        When the rule leaves out a gradient that is wanted, or gives something else than three.
    ShapeError
        When one of them has another shape than its operand.

    Examples
    --------
    >>> x, weight = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1)
    >>> geometry = ConvGeometry.of(x.shape, weight.shape)
    >>> gradients(x, x, weight, geometry, (False, True, False))
    Gradients(grad_input=None, grad_weight=tensor([[[[4.]]]]), grad_bias=None)
    """
    compute = IMPLEMENTATIONS[implementation]

    def exact(
        grad_output: Tensor, x: Tensor, weight: Tensor, only: Mask = (True, True, True)
    ) -> Gradients:
        a, b, c = (wanted and needed for wanted, needed in zip(only, mask, strict=True))
        if not geometry.N:  # sums of nothing; not every operation below takes a batch of none
            return Gradients(
                x.new_zeros(geometry.x_shape) if a else None,
                x.new_zeros(geometry.weight_shape) if b else None,
                x.new_zeros(geometry.bias_shape) if c else None,
            )
        return compute(grad_output, x, weight, geometry, (a, b, c))

    if rule is None:
        return exact(grad_output, x, weight)
    given = tuple(rule(exact, grad_output, x, weight))
    if len(given) != 3:
        raise ValueError(
            f"the rule gave {len(given)} values: needed are three, "
            "grad_input, grad_weight and grad_bias"
        )
    shapes = (geometry.x_shape, geometry.weight_shape, geometry.bias_shape)
    for name, each, shape, wanted in zip(Gradients._fields, given, shapes, mask, strict=True):
        if wanted and each is None:
            raise ValueError(f"the rule gave None as {name}, which is needed here")
        if wanted and each is not None and tuple(each.shape) != shape:
            raise ShapeError(
                f"the rule gave a {name} of shape {shown(tuple(each.shape))}: "
                f"needed is {shown(shape)}"
            )
    a, b, c = (each if wanted else None for each, wanted in zip(given, mask, strict=True))
    return Gradients(a, b, c)


def _require_one_type(x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    given = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    types = {name: str(each.dtype).removeprefix("torch.") for name, each in given.items()}
    if len(set(types.values())) > 1 and not torch.is_autocast_enabled(x.device.type):
        said = ", ".join(f"{name} {dtype}" for name, dtype in types.items())
        raise TypeError(f"tensors of different types, {said}: bring them to one with .to(dtype)")
