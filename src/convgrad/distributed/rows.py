"""One image on several processes: each has some rows, and borrows those that its windows also read.

A row that is borrowed is read in two places, so what it receives on the way back comes from two
places, and is added: the halo goes out with the forward pass, and its gradients come home with the
backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..autograd import conv2d
from ..extras import needs
from ..geometry import ConvGeometry, require_geometry
from ..shards import NOTHING, RowShard, halo_messages, row_shards
from .adding import shared
from .world import Group, agree, members

with needs("torch", "convgrad.distributed"):
    import torch
    import torch.distributed as dist
    from torch import Tensor
    from torch.autograd.function import once_differentiable

__all__ = ["conv2d_rows", "rows_of", "with_halo"]


def rows_of(geometry: ConvGeometry, group: Group | None = None) -> RowShard:
    """The rows that this process has of the image, makes of the output, and reads.

    Parameters
    ----------
    geometry : ConvGeometry
        Sizes and options of the whole images.
    group : ProcessGroup, optional
        The processes; all of them if left out.

    Returns
    -------
    RowShard
        ``owned`` are its rows of the image, ``outputs`` those of the output: both dealt out as
        evenly as can be, so that the output of a layer is the input of the next.

    Raises
    ------
    ValueError
        Where there are fewer output rows than processes.

    Examples
    --------
    >>> from convgrad.distributed import joined
    >>> geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> with joined():  # alone
    ...     mine = rows_of(geometry)
    >>> mine.owned, mine.outputs, mine.halo
    (range(0, 5), range(0, 3), ())
    """
    rank, _ = members(group)
    return _dealt(geometry, group)[rank]


def conv2d_rows(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    geometry: ConvGeometry,
    *,
    implementation: str = "aten",
    group: Group | None = None,
) -> Tensor:
    """The convolution of images whose rows are dealt out to the processes.

    Parameters
    ----------
    x : Tensor, (N, C, rows, W)
        This process's rows of every image: ``rows_of(geometry).owned``.
    weight : Tensor, (O, C/groups, KH, KW)
        The kernels, the same everywhere.
    bias : Tensor or None, (O,)
        One number for each kernel, the same everywhere.
    geometry : ConvGeometry
        Sizes and options of the *whole* images; any of them.
    implementation : str, default "aten"
        How each process computes, as in :func:`convgrad.autograd.conv2d`.
    group : ProcessGroup, optional
        The processes; all of them if left out.

    Returns
    -------
    Tensor, (N, O, output rows, OW)
        This process's rows of every output map, ``rows_of(geometry).outputs``.

    Raises
    ------
    ValueError
        Where there are fewer output rows than processes.
    ShapeError
        On every process, when a tensor does not fit on any of them.

    Notes
    -----
    On the way back x receives the gradient of its own rows, and weight and bias that of everything,
    added over all processes.  All processes must take part in both ways.  First gradients only: a
    second one stops with an error.

    Examples
    --------
    >>> from convgrad.distributed import joined
    >>> x, weight = torch.arange(6.0).reshape(1, 1, 3, 2), torch.ones(1, 1, 2, 2)
    >>> geometry = ConvGeometry.of(x.shape, weight.shape)
    >>> with joined():  # alone: all rows are here
    ...     conv2d_rows(x, weight, None, geometry)
    tensor([[[[ 6.],
              [14.]]]])
    """
    own = rows_of(geometry, group).geometry
    fits = [_of_rows(x, geometry, group), _of_shape("weight", weight, geometry.weight_shape)]
    if bias is not None:
        fits.append(_of_shape("bias", bias, geometry.bias_shape))
    agree(next(filter(None, fits), None), group)
    reads = _with_halo(x, Trade.of(_dealt(geometry, group), x.device, group))
    weight, bias = shared(weight, bias, group=group)
    return conv2d(
        reads,
        weight,
        bias,
        *(own.stride, own.padding, own.dilation, own.groups),
        padding_mode=own.padding_mode,
        implementation=implementation,
    )


def with_halo(x: Tensor, geometry: ConvGeometry, group: Group | None = None) -> Tensor:
    """All rows that this process reads: its own, the halo from the others, and the border.

    Parameters
    ----------
    x : Tensor, (N, C, rows, W)
        This process's rows of every image: ``rows_of(geometry).owned``.
    geometry : ConvGeometry
        Sizes and options of the whole images.
    group : ProcessGroup, optional
        The processes; all of them if left out.

    Returns
    -------
    Tensor, (N, C, rows that are read, W)
        A convolution of these without padding above and below gives this process's output rows.

    Raises
    ------
    ValueError, ShapeError
        As :func:`conv2d_rows`.

    Examples
    --------
    >>> from convgrad.distributed import joined
    >>> x = torch.tensor([[[[1.0, 2.0]]]])
    >>> geometry = ConvGeometry(C=1, H=1, W=2, O=1, KH=3, KW=1, padding=(1, 0))
    >>> with joined():
    ...     with_halo(x, geometry)
    tensor([[[[0., 0.],
              [1., 2.],
              [0., 0.]]]])
    """
    agree(_of_rows(x, geometry, group), group)
    return _with_halo(x, Trade.of(_dealt(geometry, group), x.device, group))


# ---- the rows on their way -------------------------------------------------------------------


class Halo(torch.autograd.Function):
    """Forward: rows go to their readers. Backward: gradients come home."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, trade: Trade) -> Tensor:
        ctx.trade = trade
        out = {to: x.index_select(2, rows) for to, rows in trade.lent.items()}
        borrowed = trade.exchange(out, trade.borrowed, like=x)
        here = torch.cat([x, *borrowed.values(), _zeros(x, 1)], 2)
        return here.index_select(2, trade.reads)

    @staticmethod
    @once_differentiable  # a second gradient stops with an error
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        trade: Trade = ctx.trade
        lengths = [trade.owned, *trade.borrowed.values(), 1]
        # +=, not =: a border that copies reads a row more than once
        here = _zeros(grad, sum(lengths)).index_add_(2, trade.reads, grad)
        own, *others, _ = here.split(lengths, 2)
        out = dict(zip(trade.borrowed, others, strict=True))
        rows = {to: len(each) for to, each in trade.lent.items()}
        for to, home in trade.exchange(out, rows, like=grad).items():
            # +=, not =: a row that was lent was read here as well
            own = own.index_add(2, trade.lent[to], home)
        return own, None


_with_halo: Callable[..., Tensor] = Halo.apply  # which has no types


@dataclass(frozen=True)
class Trade:
    """What one process lends and borrows; a process is named by its rank in the group."""

    owned: int
    """How many rows it has."""
    lent: dict[int, Tensor]
    """To whom it lends which of them, counted from its first."""
    borrowed: dict[int, int]
    """From whom it borrows how many."""
    reads: Tensor
    """Where each row that it reads is: among its own, the borrowed ones, and one of zeros."""
    group: Group | None

    @classmethod
    def of(cls, shards: list[RowShard], device: torch.device, group: Group | None) -> Trade:
        """The trade of this process, from the rows of all of them."""
        rank, _ = members(group)
        mine, messages = shards[rank], halo_messages(shards)
        lent = {
            each.receiver: torch.tensor([mine.owned.index(h) for h in each.rows], device=device)
            for each in messages
            if each.sender == rank
        }
        borrowed = {each.sender: each.rows for each in messages if each.receiver == rank}
        here = [*mine.owned, *(h for rows in borrowed.values() for h in rows), NOTHING]
        place = {h: k for k, h in enumerate(here)}
        reads = torch.tensor([place[h] for h in mine.block], device=device)
        counts = {sender: len(rows) for sender, rows in borrowed.items()}
        return cls(len(mine.owned), lent, counts, reads, group)

    def exchange(
        self, out: dict[int, Tensor], rows: dict[int, int], like: Tensor
    ) -> dict[int, Tensor]:
        """Send each process what is for it; wait for so many rows of each of those."""
        group: Any = self.group or dist.group.WORLD
        into = {sender: _zeros(like, count) for sender, count in rows.items()}
        sent = {to: each.contiguous() for to, each in out.items()}
        mail = [
            dist.P2POp(action, each, dist.get_global_rank(group, peer), group)
            for action, tensors in ((dist.isend, sent), (dist.irecv, into))
            for peer, each in tensors.items()
        ]
        for work in dist.batch_isend_irecv(mail) if mail else ():
            work.wait()
        return into


def _zeros(like: Tensor, rows: int) -> Tensor:
    N, C, _, W = like.shape
    return like.new_zeros(N, C, rows, W)


# ---- who has what, and whether it fits -------------------------------------------------------


def _dealt(geometry: ConvGeometry, group: Group | None) -> list[RowShard]:
    require_geometry(geometry)
    _, size = members(group)
    return row_shards(geometry, size, owned=size)


def _of_rows(x: Tensor, geometry: ConvGeometry, group: Group | None) -> str | None:
    owned, (rank, size) = rows_of(geometry, group).owned, members(group)
    where = (
        f"the rows {owned.start} to {owned.stop - 1} of {geometry.H} that belong to rank {rank} of "
        f"{size}; cut them out with x[:, :, {owned.start}:{owned.stop}]"
    )
    return _of_shape("x", x, (geometry.N, geometry.C, len(owned), geometry.W), where)


def _of_shape(name: str, tensor: Tensor, shape: tuple[int, ...], where: str = "") -> str | None:
    if tuple(tensor.shape) == shape:
        return None
    reason = where or "as the geometry says; change one of the two"
    return f"{name} has shape {tuple(tensor.shape)}: needed is {shape}, {reason}"
