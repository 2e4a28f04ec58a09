"""The gradients of conv2d on several processes, by torch.distributed: gloo on CPUs, nccl on GPUs.

    torchrun --nproc-per-node 4 -m convgrad.distributed    # every check below, against one process

    from convgrad import distributed

    with distributed.joined() as device:
        found = distributed.batch_gradients(g, x, weight, geometry, loss="sum")  # my images
        y = distributed.conv2d_rows(x, weight, bias, whole)                      # my rows

What is copied forward is added backward; that is all there is to it.  The weights are copied to
every process, so their gradients are added over all (``adding``, and ``batch`` on top of it).  Rows
at the edge of a process's part are copied to its neighbours, so their gradients come back and are
added (``rows``).  ``placements`` lets through the convolutions of PyTorch's DTensor that it gets
right, ``world`` joins the processes, and ``against`` holds all of it against one process.
"""

from .adding import added, shared
from .batch import batch_gradients, share
from .placements import PlacementError, conv2d_dtensor, require_placements
from .rows import conv2d_rows, rows_of, with_halo
from .world import joined

__all__ = [
    "PlacementError",
    "added",
    "batch_gradients",
    "conv2d_dtensor",
    "conv2d_rows",
    "joined",
    "require_placements",
    "rows_of",
    "share",
    "shared",
    "with_halo",
]
