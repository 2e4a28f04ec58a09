"""PyTorch's DTensor: the convolutions that it gets right, and a stop before the others.

A DTensor is a tensor of which every process has a part, with a label, its placement, that says
which.  PyTorch 2.13 has one rule for convolutions: images dealt out, kernels copied.  For any other
placement, and for fewer images than processes, it convolves the parts as they are, sends nothing,
and labels what comes out as if the rule had been kept: as parts of a batch where the arrays are
large, as copies where they are small.  No error says so.
"""

from __future__ import annotations

from typing import Any

from ..extras import needs
from ..geometry import Step

with needs("torch", "convgrad.distributed"):
    import torch.nn.functional as F
    from torch import Tensor
    from torch.distributed.tensor import DTensor, Shard

__all__ = ["PlacementError", "conv2d_dtensor", "require_placements"]


class PlacementError(ValueError):
    """PyTorch would compute a wrong convolution of these DTensors; says why, and what to do.

    Examples
    --------
    >>> issubclass(PlacementError, ValueError)
    True
    """


def require_placements(x: Any, weight: Any, bias: Any = None) -> None:
    """Refuse the placements for which PyTorch's convolution is silently wrong.

    Parameters
    ----------
    x : DTensor, (N, C, H, W)
        Must be Shard(0), with at least as many images as processes, or Replicate().
    weight : DTensor, (O, C/groups, KH, KW)
        Must be Replicate().
    bias : DTensor, (O,), optional
        Must be Replicate().

    Raises
    ------
    PlacementError
        For every other placement, with what to do about it.
    TypeError
        When one of them is no DTensor.

    Examples
    --------
    >>> import torch
    >>> from torch.distributed.tensor import Replicate, Shard
    >>> from torch.distributed.tensor import distribute_tensor, init_device_mesh
    >>> from convgrad.distributed import joined
    >>> with joined():
    ...     mesh = init_device_mesh("cpu", (1,))
    ...     x = distribute_tensor(torch.ones(2, 1, 4, 4), mesh, [Shard(3)])
    ...     weight = distribute_tensor(torch.ones(1, 1, 3, 3), mesh, [Replicate()])
    ...     try:
    ...         require_placements(x, weight)
    ...     except PlacementError as error:
    ...         print(str(error)[:44])
    x is Shard(dim=3), dealt out along its width
    """
    given = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    for name, tensor in given.items():
        if not isinstance(tensor, DTensor):
            raise TypeError(
                f"{name} is of type {type(tensor).__name__}: needed is a DTensor; make it with "
                f"torch.distributed.tensor.distribute_tensor({name}, mesh, [Replicate()])"
            )
        if tensor.device_mesh.ndim != 1:
            raise PlacementError(
                f"{name} lies on a mesh of {tensor.device_mesh.ndim} dimensions: convolutions were "
                "held against one process on a mesh of one dimension only; use such a one"
            )
    for name in list(given)[1:]:
        (placement,) = given[name].placements
        if not placement.is_replicate():
            raise PlacementError(
                f"{name} is {placement!r}: PyTorch would convolve with the part that each process "
                "has, as if it were whole, and label the result wrongly; copy it to all with "
                f"{name}.redistribute(placements=[Replicate()])"
            )
    (placement,) = x.placements
    if placement.is_replicate():
        return
    if not placement.is_shard(0):
        raise PlacementError(
            f"x is {placement!r}{_along(placement)}: PyTorch would convolve each part as if it "
            "were whole, and label the result wrongly; deal out the images with "
            "x.redistribute(placements=[Shard(0)]), or the rows by hand, with "
            "convgrad.distributed.conv2d_rows"
        )
    images, size = x.shape[0], x.device_mesh.size()
    if images < size:
        raise PlacementError(
            f"x is Shard(0) with N = {images} on {size} processes: PyTorch would take each part "
            f"for the whole batch; bring at least {size} images, use a mesh of {images}, or copy x "
            "to all with x.redistribute(placements=[Replicate()])"
        )


def conv2d_dtensor(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Step = 1,
    padding: Step = 0,
    dilation: Step = 1,
    groups: int = 1,
) -> Tensor:
    """``F.conv2d`` of DTensors, after :func:`require_placements`.

    Parameters
    ----------
    x : DTensor, (N, C, H, W)
        Shard(0) or Replicate().
    weight : DTensor, (O, C/groups, KH, KW)
        Replicate().
    bias : DTensor, (O,), optional
        Replicate().
    stride, padding, dilation, groups : optional
        As ``F.conv2d`` takes them.

    Returns
    -------
    DTensor, (N, O, OH, OW)
        With the placement of x.  On the way back the gradients of weight and bias are Partial(sum)
        where x is Shard(0): every process has its share, and whoever reads the whole, as
        ``full_tensor()`` does, adds them up.

    Raises
    ------
    PlacementError, TypeError
        As :func:`require_placements`.

    Examples
    --------
    >>> import torch
    >>> from torch.distributed.tensor import Replicate, Shard
    >>> from torch.distributed.tensor import distribute_tensor, init_device_mesh
    >>> from convgrad.distributed import joined
    >>> with joined():
    ...     mesh = init_device_mesh("cpu", (1,))
    ...     x = distribute_tensor(torch.ones(2, 1, 2, 2), mesh, [Shard(0)])
    ...     weight = distribute_tensor(torch.ones(1, 1, 2, 2), mesh, [Replicate()])
    ...     conv2d_dtensor(x, weight.requires_grad_()).sum().backward()
    ...     print(weight.grad.placements, weight.grad.full_tensor().flatten())
    (Partial(sum),) tensor([2., 2., 2., 2.])
    """
    require_placements(x, weight, bias)
    options: tuple[Any, ...] = stride, padding, dilation, groups
    return F.conv2d(x, weight, bias, *options)


def _along(placement: Any) -> str:
    names = ("images", "channels", "height", "width")
    return f", dealt out along its {names[placement.dim]}" if isinstance(placement, Shard) else ""
