"""``torchrun --nproc-per-node 4 -m convgrad.distributed``: every check, against one process.

On several machines, on each of them (see the documentation of torchrun)::

    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \\
        -m convgrad.distributed

``python -m convgrad.distributed 4`` starts four processes here, by the same launcher.
"""

from __future__ import annotations

import argparse
import os
import sys

from ..extras import needs
from .against import hold
from .world import joined, members

with needs("torch", "convgrad.distributed"):
    import torch
    import torch.distributed as dist
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

__all__ = ["main", "report"]


def main(arguments: list[str] | None = None) -> int:
    """Start the processes, or be one of them; the exit status is 1 when a check does not hold."""
    words = "Hold the gradients that several processes find together against those of one."
    parser = argparse.ArgumentParser(prog="python -m convgrad.distributed", description=words)
    parser.add_argument(
        "processes", type=int, nargs="?", default=2, help="how many to start here; default 2"
    )
    chosen = parser.parse_args(arguments)
    if chosen.processes < 1:
        parser.error(f"processes is {chosen.processes}: needed is at least 1")
    if "RANK" in os.environ:  # torchrun has started us
        with joined() as device:
            return report(device)
    here = ["--standalone", f"--nproc-per-node={chosen.processes}"]
    try:
        torchrun([*here, "-m", "convgrad.distributed"])
    except ChildFailedError:  # what failed is printed already
        return 1
    return 0


def report(device: torch.device) -> int:
    """Run the checks; the process of rank 0 prints.  The exit status is the same on all."""
    rank, size = members(None)
    say = print if rank == 0 else _nothing
    say(f"{size} process{'es' * (size > 1)}, {dist.get_backend()}, on {device.type}")
    held = []
    for outcome in hold(device):
        held.append(outcome.held)
        say("equal" if outcome.held else "WRONG", outcome.says, outcome.error, sep="  ", flush=True)
    say(f"{sum(held)} of {len(held)} as in one process")
    return 0 if all(held) else 1


def _nothing(*words: object, **options: object) -> None:
    """The others keep silent, or everything would be said once by each."""


if __name__ == "__main__":
    sys.exit(main())
