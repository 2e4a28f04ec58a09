"""What every process holds a copy of: its gradients are added over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..extras import needs
from .world import Group, members

with needs("torch", "convgrad.distributed"):
    import torch
    import torch.distributed as dist
    from torch import Tensor
    from torch.autograd.function import once_differentiable

__all__ = ["added", "shared"]

_SHORT = (torch.float16, torch.bfloat16)
Tensors = tuple[Tensor, ...]


def added(tensors: Sequence[Tensor], group: Group | None = None) -> list[Tensor]:
    """The sum of each tensor over all processes, in one all-reduce for all of them.

    Parameters
    ----------
    tensors : sequence of Tensor
        The same shapes, in the same order, on every process; of one type of numbers.
    group : ProcessGroup, optional
        The processes; all of them if left out.

    Returns
    -------
    list of Tensor
        New tensors, the same bits on every process.

    Raises
    ------
    TypeError
        For tensors of different types.

    Notes
    -----
    Numbers of 16 bits travel and are added in 32, and are rounded once, at the end.

    Examples
    --------
    >>> from convgrad.distributed import joined
    >>> with joined():  # alone: the sum of one
    ...     added([torch.ones(2), torch.tensor(3.0)])
    [tensor([1., 1.]), tensor(3.)]
    """
    members(group)
    types = {each.dtype for each in tensors}
    if len(types) > 1:
        said = ", ".join(sorted(str(each).removeprefix("torch.") for each in types))
        raise TypeError(f"tensors of different types, {said}: bring them to one with .to(dtype)")
    if not tensors:
        return []
    flat = torch.cat([each.detach().reshape(-1) for each in tensors])
    total = flat.float() if flat.dtype in _SHORT else flat
    dist.all_reduce(total, op=dist.ReduceOp.SUM, group=group)
    parts = total.to(flat.dtype).split([each.numel() for each in tensors])
    return [part.view(each.shape) for part, each in zip(parts, tensors, strict=True)]


class Shared(torch.autograd.Function):
    """Forward: the same numbers everywhere. Backward: gradients, added."""

    @staticmethod
    def forward(ctx: Any, group: Group | None, *copies: Tensor) -> Tensors:
        ctx.group = group
        return tuple(each.view_as(each) for each in copies)

    @staticmethod
    @once_differentiable  # a second gradient stops with an error
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[1:]
        wanted = [g for g, need in zip(grads, needed, strict=True) if need]
        sums = iter(added(wanted, ctx.group))  # one all-reduce for all of them
        return (None, *(next(sums) if need else None for need in needed))


_shared: Callable[..., Tensors] = Shared.apply  # which has no types


def shared(*tensors: Tensor | None, group: Group | None = None) -> tuple[Any, ...]:
    """The tensors as they are; on the way back their gradients are added over all processes.

    For weights and biases of which every process holds the same copy.  A layer that is given them
    through here, and its own part of the batch, ends up with the gradient of the whole batch.

    Parameters
    ----------
    *tensors : Tensor or None
        The same on every process; None stays None.
    group : ProcessGroup, optional
        The processes; all of them if left out.

    Returns
    -------
    tuple
        As many as were given.

    Notes
    -----
    What is added are the gradients of each process's own loss, so the whole loss is their *sum*.
    For a mean over all images, multiply each process's mean with its
    :func:`~convgrad.distributed.share` of them first.  All must make the same calls in the same
    order.

    Examples
    --------
    >>> from convgrad.distributed import joined
    >>> weight = torch.ones(1, 1, 2, 2, requires_grad=True)
    >>> with joined():
    ...     (w,) = shared(weight)
    ...     torch.nn.functional.conv2d(torch.ones(3, 1, 2, 2), w).sum().backward()
    >>> weight.grad
    tensor([[[[3., 3.],
              [3., 3.]]]])
    """
    members(group)
    given = iter(_shared(group, *(each for each in tensors if each is not None)))
    return tuple(None if each is None else next(given) for each in tensors)
