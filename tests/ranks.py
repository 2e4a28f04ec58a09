"""What every process of tests/test_distributed.py does; its answers are read by the test."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

from convgrad import ConvGeometry, distributed
from convgrad.distributed import __main__ as script
from convgrad.distributed import adding, against, placements, rows

CPU = torch.device("cpu")
SIZES = ConvGeometry(N=4, C=2, H=9, W=5, O=3, KH=3, KW=3, stride=2, padding=1)


def work(rank: int, size: int, meet: str, answers: str) -> None:
    """Join the others, ask every question, and write down what came out here."""
    torch.set_num_threads(1)
    os.environ.pop("RANK", None)
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=size)
    found: dict[str, object] = {}
    for question in (as_in_one_process, mistakes_show, refusals, of_a_part, details):
        found |= question(rank, size)
    Path(answers, f"{rank}.json").write_text(json.dumps(found), "utf-8")
    dist.barrier()
    dist.destroy_process_group()


def as_in_one_process(rank: int, size: int) -> dict[str, object]:
    said = StringIO()
    with redirect_stdout(said):
        status = script.report(CPU)
    return {"status": status, "said": said.getvalue().splitlines()}


# ---- mistakes, made on purpose ---------------------------------------------------------------


def _ones(images: int, group: object = None) -> float:
    """As DistributedDataParallel sees a mean: every process counts alike."""
    return 1 / dist.get_world_size()


def _alone(tensor: torch.Tensor, op: object = None, group: object = None) -> None:
    """An all-reduce that forgets the others."""


def _silent(trade: rows.Trade, out: dict, counts: dict, like: torch.Tensor) -> dict:
    """Nothing is sent, and zeros arrive: every part is padded as if it were an image."""
    N, C, _, W = like.shape
    return {sender: like.new_zeros(N, C, count, W) for sender, count in counts.items()}


def _only_forth(real: Callable[..., dict]) -> Callable[..., dict]:
    """The halo goes out, and its gradients do not come home."""

    def exchange(trade: rows.Trade, out: dict, counts: dict, like: torch.Tensor) -> dict:
        forth = counts is trade.borrowed
        return real(trade, out, counts, like) if forth else _silent(trade, out, counts, like)

    return exchange


@contextmanager
def _only(says: str) -> Iterator[None]:
    one = {name: check for name, check in against.CHECKS.items() if name.startswith(says)}
    assert one, says
    with mock.patch.object(against, "CHECKS", one):
        yield


def mistakes_show(rank: int, size: int) -> dict[str, object]:
    """For each mistake what the checks say that it must break."""
    planted = {
        "each keeps its own sum": (
            mock.patch.object(
                adding, "dist", SimpleNamespace(all_reduce=_alone, ReduceOp=dist.ReduceOp)
            ),
            "batch, a",
        ),
        "a mean of means": (mock.patch.object(against, "share", _ones), "batch, a mean, through"),
        "no halo": (mock.patch.object(rows.Trade, "exchange", _silent), "rows"),
        "the halo stays": (
            mock.patch.object(rows.Trade, "exchange", _only_forth(rows.Trade.exchange)),
            "rows: the output",
        ),
        "kernels not shared": (
            mock.patch.object(rows, "shared", lambda *each, group: each),
            "rows: the output",
        ),
        "every placement let through": (
            mock.patch.object(placements, "require_placements", lambda *each: None),
            "batch, by DTensor",
        ),
    }
    found: dict[str, object] = {}
    for name, (mistake, says) in planted.items():
        with _only(says), mistake, redirect_stdout(StringIO()):
            found[f"mistake: {name}"] = script.report(CPU)
    return found


# ---- refusals --------------------------------------------------------------------------------


def _refused(function: Callable[..., object], *given: object) -> str:
    try:
        function(*given)
    except (ValueError, TypeError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "let through"


def refusals(rank: int, size: int) -> dict[str, object]:
    mine = distributed.rows_of(SIZES)
    x, weight = torch.ones(4, 2, len(mine.owned), 5), torch.ones(3, 2, 3, 3)
    cut = x[:, :, 1:] if rank == 1 else x  # one process alone is wrong
    low = ConvGeometry(C=1, H=size + 1, W=3, O=1, KH=3, KW=3)
    found: dict[str, object] = {
        "x too short": _refused(distributed.conv2d_rows, cut, weight, None, SIZES),
        "bias too long": _refused(distributed.conv2d_rows, x, weight, torch.ones(rank + 3), SIZES),
        "too few rows": _refused(distributed.rows_of, low),
        "another loss": _refused(
            lambda: distributed.batch_gradients(x, x, weight, SIZES, loss="avg")
        ),
        "two types": _refused(distributed.added, [torch.ones(1), torch.ones(1).double()]),
    }
    mesh = init_device_mesh("cpu", (size,))

    def spread(tensor: torch.Tensor, placement: object) -> torch.Tensor:
        return distribute_tensor(tensor, mesh, [placement])

    # parts of three rows or columns: a kernel fits, so nothing but the numbers can be wrong
    whole, kernels = torch.ones(size, 4, 3 * size, 3 * size), torch.ones(4, 4, 3, 3)
    pairs = {
        "images": (spread(whole, Shard(0)), spread(kernels, Replicate())),
        "copies": (spread(whole, Replicate()), spread(kernels, Replicate())),
        "channels": (spread(whole, Shard(1)), spread(kernels, Replicate())),
        "height": (spread(whole, Shard(2)), spread(kernels, Replicate())),
        "width": (spread(whole, Shard(-1)), spread(kernels, Replicate())),
        "output channels": (spread(whole, Replicate()), spread(kernels, Shard(0))),
        "both channels": (spread(whole, Shard(1)), spread(kernels, Shard(1))),
        "few images": (spread(whole[1:], Shard(0)), spread(kernels, Replicate())),
        "no DTensor": (whole, spread(kernels, Replicate())),
    }
    for name, pair in pairs.items():
        found[f"placement: {name}"] = _refused(distributed.require_placements, *pair)
    return found | _where_pytorch_is_wrong(pairs, mesh)


def _where_pytorch_is_wrong(pairs: dict[str, tuple], mesh: object) -> dict[str, object]:
    """What the installed PyTorch itself says to the pairs that are refused."""
    found: dict[str, object] = {}
    for name in ("height", "width", "few images", "output channels", "both channels", "channels"):
        x, weight = pairs[name]
        one_process = torch.nn.functional.conv2d(x.full_tensor(), weight.full_tensor())
        try:
            y = torch.nn.functional.conv2d(x, weight)
            right = torch.equal(y.full_tensor(), one_process)
            found[f"PyTorch: {name}"] = "right" if right else f"wrong, {y.placements[0]!r}"
        except RuntimeError:
            found[f"PyTorch: {name}"] = "an error"
    return found


# ---- the rest --------------------------------------------------------------------------------


def of_a_part(rank: int, size: int) -> dict[str, object]:
    """The same in a group of the last two, whose ranks there are others."""
    group = dist.new_group([size - 2, size - 1])
    if rank < size - 2:
        return {"in a group": True}
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-4, 5, SIZES.x_shape, generator=generator).double()
    weight = torch.randint(-4, 5, SIZES.weight_shape, generator=generator).double()
    whole = torch.nn.functional.conv2d(x, weight, stride=2, padding=1)
    mine = distributed.rows_of(SIZES, group)
    part = x[:, :, mine.owned.start : mine.owned.stop]
    y = distributed.conv2d_rows(part, weight, None, SIZES, implementation="unfold", group=group)
    return {"in a group": torch.equal(y, whole[:, :, mine.outputs.start : mine.outputs.stop])}


def details(rank: int, size: int) -> dict[str, object]:
    # 256, and 1 from each: in bfloat16 one by one they would all be lost
    (short,) = distributed.added([torch.tensor(256.0 if rank == 0 else 1.0).bfloat16()])
    expected = torch.tensor(256.0 + size - 1).bfloat16()
    frozen = torch.ones(1, 2, 3, 3, dtype=torch.float64)
    bias = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    w, b = distributed.shared(frozen, bias)
    torch.nn.functional.conv2d(torch.ones(1, 2, 3, 3).double(), w, b).sum().backward()
    return {
        "bfloat16": short.dtype == torch.bfloat16 and bool(short == expected),
        "a frozen weight": frozen.grad is None and bias.grad.item() == size,
        "nothing to add": distributed.added([]) == [],
        "second": _refused(_second),
    }


def _second() -> None:
    weight = torch.ones(1, 1, 1, 1, requires_grad=True)
    (w,) = distributed.shared(weight)
    y = torch.nn.functional.conv2d(torch.ones(1, 1, 2, 2), w).pow(2).sum()
    (first,) = torch.autograd.grad(y, weight, create_graph=True)
    first.sum().backward()
