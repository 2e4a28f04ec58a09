"""Joining the processes, and agreeing with them before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from ..extras import needs
from ..geometry import ShapeError

with needs("torch", "convgrad.distributed"):
    import torch
    import torch.distributed as dist

__all__ = ["agree", "joined", "members"]

Group = dist.ProcessGroup


@contextmanager
def joined(timeout: float = 120) -> Iterator[torch.device]:
    """Join the processes that were started together, for the length of a block.

    Under ``torchrun`` (or whatever else sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT) these
    are all its processes, on one machine or on many.  Started alone, a process is a world of one.
    A process group that exists already is used as it is, and kept.

    Parameters
    ----------
    timeout : float, default 120
        Seconds after which a process stops waiting for one that does not answer.

    Yields
    ------
    torch.device
        Where this process should keep its tensors: a GPU of its own, with nccl, where the machine
        has one for each of its processes; otherwise the CPU, with gloo.

    Examples
    --------
    >>> with joined() as device:
    ...     print(dist.get_world_size(), dist.get_rank())
    1 0
    """
    local = int(os.environ.get("LOCAL_RANK", 0))
    with_gpus = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    device = torch.device("cuda", local) if with_gpus else torch.device("cpu")
    if with_gpus:
        torch.cuda.set_device(device)
    if dist.is_initialized():
        yield device if dist.get_backend() == "nccl" else torch.device("cpu")
        return
    backend, patience = "nccl" if with_gpus else "gloo", timedelta(seconds=timeout)
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        dist.init_process_group(backend, timeout=patience)  # from the environment: env://
    else:
        alone = dist.HashStore()  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=alone, rank=0, world_size=1, timeout=patience)
    try:
        yield device
    finally:
        dist.destroy_process_group()


def members(group: Group | None) -> tuple[int, int]:
    """This process's rank, and how many there are; in a sentence where there is no group."""
    if not dist.is_initialized():
        raise RuntimeError(
            "no process group yet: needed is one, even for a single process; call this inside "
            "`with convgrad.distributed.joined():`, or call torch.distributed.init_process_group()"
        )
    rank = dist.get_rank(group)
    if rank < 0:
        raise RuntimeError(
            "this process is not in the group that was given: call this only where "
            "torch.distributed.get_rank(group) is not -1"
        )
    return rank, dist.get_world_size(group)


def agree(complaint: str | None, group: Group | None) -> None:
    """Stop everywhere if anything is wrong anywhere.

    A process that stops alone leaves the others waiting for what it will not send.  So all say
    what they have to complain of (None is nothing), and all raise the first complaint.
    """
    _, size = members(group)
    said: list[str | None] = [None] * size
    dist.all_gather_object(said, complaint, group=group)
    for rank, each in enumerate(said):
        if each is not None:
            raise ShapeError(f"rank {rank} of {size}: {each}")
