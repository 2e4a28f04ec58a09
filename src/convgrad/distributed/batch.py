"""A batch on several processes: every process has some images, all have the same weights."""

from __future__ import annotations

from ..autograd import Gradients, gradients
from ..extras import needs
from ..geometry import ConvGeometry, require_geometry, shown
from .adding import added
from .world import Group, members

with needs("torch", "convgrad.distributed"):
    import torch
    import torch.distributed as dist
    from torch import Tensor

__all__ = ["LOSSES", "batch_gradients", "share"]

LOSSES = ("sum", "mean")


def batch_gradients(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor,
    geometry: ConvGeometry,
    mask: tuple[bool, bool, bool] = (True, True, True),
    *,
    loss: str = "sum",
    implementation: str = "aten",
    group: Group | None = None,
) -> Gradients:
    """The gradients of the whole batch, of which this process has a part.

    Parameters
    ----------
    grad_output : Tensor, (N, O, OH, OW)
        The upstream gradient of *this process's own* loss, for its N images; N may differ from
        process to process, and may be 0.
    x : Tensor, (N, C, H, W)
        Its images.
    weight : Tensor, (O, C/groups, KH, KW)
        The kernels, the same everywhere.
    geometry : ConvGeometry
        Sizes and options of this process's part.
    mask : three bools, default (True, True, True)
        Which of the three are wanted; the same everywhere.
    loss : str, default "sum"
        How the losses of the processes make the loss of the batch.  "sum": they are added, as when
        each is a sum over its images.  "mean": each is a mean over its own images, and the loss of
        the batch is the mean over all images, so a process counts by how many images it has.
    implementation : str, default "aten"
        How each process computes, as in :func:`convgrad.autograd.conv2d`.
    group : ProcessGroup, optional
        The processes; all of them if left out.

    Returns
    -------
    Gradients
        Of the loss of the whole batch: grad_weight and grad_bias the same bits on every process,
        grad_input for this process's images.

    Raises
    ------
    ValueError
        For another loss.

    Examples
    --------
    >>> from convgrad.distributed import joined
    >>> x, weight = torch.ones(2, 1, 2, 2), torch.ones(1, 1, 1, 1)
    >>> geometry = ConvGeometry.of(x.shape, weight.shape)
    >>> with joined():  # alone: this part is the whole
    ...     _, grad_weight, grad_bias = batch_gradients(x, x, weight, geometry)
    >>> grad_weight.item(), grad_bias.item()
    (8.0, 8.0)
    """
    if loss not in LOSSES:
        raise ValueError(
            f"loss is {shown(loss)}: needed is 'sum', where the processes' losses are added, or "
            "'mean', where each is a mean over the process's own images"
        )
    require_geometry(geometry)
    found = gradients(grad_output, x, weight, geometry, mask, implementation=implementation)
    if loss == "mean":  # my mean is a part of the mean over all, as large as my part of the images
        part = share(geometry.N, group)
        found = Gradients(*(None if each is None else each * part for each in found))
    grad_input, *of_weights = found
    sums = iter(added([each for each in of_weights if each is not None], group))
    return Gradients(grad_input, *(None if each is None else next(sums) for each in of_weights))


def share(images: int, group: Group | None = None) -> float:
    """Which part of all images this process has.

    The mean over all images is the sum of what each process has for a mean, times this.

    Parameters
    ----------
    images : int
        How many this process has; 0 is allowed.
    group : ProcessGroup, optional
        The processes; all of them if left out.

    Returns
    -------
    float
        Between 0 and 1; the parts of all processes add up to 1, if there are images at all.

    Examples
    --------
    >>> from convgrad.distributed import joined
    >>> with joined():
    ...     share(3)
    1.0
    """
    members(group)
    device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
    total = torch.tensor(images, device=device)
    dist.all_reduce(total, group=group)
    return images / max(int(total), 1)
