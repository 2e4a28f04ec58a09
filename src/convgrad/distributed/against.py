"""All of this part of the package against one process: the same numbers, or it says where not.

Every process draws the same whole convolution from the same seed, takes its part of it, and works
with the others.  Then it works out the whole alone, and compares.  Small whole numbers in 64 bits:
nothing is rounded, and equal means equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..autograd import conv2d
from ..checks import random_geometry, random_operands
from ..extras import needs
from ..geometry import ConvGeometry
from ..shards import deal
from .adding import added, shared
from .batch import batch_gradients, share
from .placements import PlacementError, conv2d_dtensor
from .rows import conv2d_rows, rows_of, with_halo
from .world import members

with needs("torch", "convgrad.distributed"):
    import torch
    import torch.distributed as dist
    from torch import Tensor
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    from torch.nn.parallel import DistributedDataParallel

__all__ = ["CHECKS", "Here", "Outcome", "hold"]


class Here(NamedTuple):
    """Where a check runs: which process, of how many, and where its tensors are."""

    rank: int
    size: int
    device: torch.device


class Outcome(NamedTuple):
    """What a check says, and whether it held on every process; if not, the first error."""

    says: str
    held: bool
    error: str = ""


def hold(device: torch.device) -> Iterator[Outcome]:
    """Run every check, on all processes together; what comes out is the same on all."""
    here = Here(*members(None), device)
    for says, check in CHECKS.items():
        try:
            held, error = all([*check(here)]), ""  # to the end: the others go there too
        except Exception as mistake:  # the others wait for a word, whatever happened here
            held, error = False, f"rank {here.rank}: {type(mistake).__name__}: {mistake}"
        said: list[tuple[bool, str]] = [(held, error)] * here.size
        dist.all_gather_object(said, (held, error))
        errors = (each for _, each in said if each)
        yield Outcome(says, all(each for each, _ in said), next(errors, ""))


# ---- a convolution, whole and in parts -------------------------------------------------------


class Whole(NamedTuple):
    """A convolution of small whole numbers, as one process has it."""

    geometry: ConvGeometry
    x: Tensor
    weight: Tensor
    bias: Tensor
    grad_output: Tensor

    @classmethod
    def drawn(cls, geometry: ConvGeometry, rng: np.random.Generator, here: Here) -> Whole:
        _, x, weight, g = random_operands(geometry, rng)
        bias = rng.integers(-4, 5, size=geometry.bias_shape).astype(np.float64)
        tensors = (torch.tensor(each, device=here.device) for each in (x, weight, bias, g))
        return cls(geometry, *tensors)

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        """Fresh copies of the operands, for autograd."""
        x, weight, bias = (each.clone().requires_grad_() for each in self[1:4])
        return x, weight, bias

    def alone(self, grad_output: Tensor | None = None) -> tuple[Tensor, ...]:
        """The output and the three gradients, in one process."""
        leaves = self.leaves()
        y = _convolved(*leaves, self.geometry)
        g = self.grad_output if grad_output is None else grad_output
        return y.detach(), *torch.autograd.grad(y, leaves, g)


def _convolved(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: ConvGeometry) -> Tensor:
    options = geometry.stride, geometry.padding, geometry.dilation, geometry.groups
    return conv2d(x, weight, bias, *options, padding_mode=geometry.padding_mode)


def _rng(here: Here, number: int) -> np.random.Generator:
    """The same numbers on every process, others for each number of processes."""
    return np.random.default_rng([here.size, number])


def _batches(here: Here) -> Iterator[tuple[Whole, slice, ConvGeometry]]:
    """Whole batches, with the images of this process: uneven parts, and some without any."""
    for number, images in enumerate((here.size, 2 * here.size + 1, here.size - 1, 1)):
        rng = _rng(here, number)
        whole = replace(random_geometry(rng, _even, padding_modes=("zeros",)), N=images)
        mine = deal(images, here.size)[here.rank]
        part = replace(whole, N=len(mine))
        yield Whole.drawn(whole, rng, here), slice(mine.start, mine.stop), part


def _even(geometry: ConvGeometry) -> bool:
    return all(before == after for before, after in geometry.padding)


def _tall(here: Here, count: int) -> Iterator[Whole]:
    """Convolutions with a few output rows for each process, and everything else at random."""
    for number in range(count):
        rng = _rng(here, 100 + number)
        drawn = random_geometry(rng)
        read = drawn.stride[0] * (here.size + int(rng.integers(0, 4)) - 1) + drawn.span[0]
        H = read + drawn.leftover[0] - sum(drawn.padding[0])
        yield Whole.drawn(replace(drawn, H=max(H, drawn.H)), rng, here)


def _cut(tensor: Tensor, some: range, axis: int = 2) -> Tensor:
    return tensor.narrow(axis, some.start, len(some)).clone()


def _equal(some: Iterable[Tensor | None], others: Iterable[Tensor]) -> bool:
    pairs = zip(some, others, strict=True)
    return all(a is not None and torch.equal(a, b) for a, b in pairs)


def _close(some: Iterable[Tensor | None], others: Iterable[Tensor]) -> bool:
    """Where something was divided by 3 or the like: rounded in the 53rd binary digit."""
    pairs = zip(some, others, strict=True)
    return all(a is not None and torch.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in pairs)


# ---- the checks ------------------------------------------------------------------------------


def batch_of_sums(here: Here) -> Iterator[bool]:
    for whole, mine, part in _batches(here):
        _, grad_input, *of_weights = whole.alone()
        found = batch_gradients(whole.grad_output[mine], whole.x[mine], whole.weight, part)
        yield _equal(found, (grad_input[mine], *of_weights))


def batch_of_means(here: Here) -> Iterator[bool]:
    for whole, mine, part in _batches(here):
        _, grad_input, *of_weights = whole.alone(whole.grad_output / whole.geometry.N)
        g = whole.grad_output[mine] / max(part.N, 1)  # of the mean over my own images
        found = batch_gradients(g, whole.x[mine], whole.weight, part, loss="mean")
        yield _close(found, (grad_input[mine], *of_weights))


def sums_through_autograd(here: Here) -> Iterator[bool]:
    for whole, mine, part in _batches(here):
        _, *needed = whole.alone()
        yield _equal(_through_autograd(whole, mine, part, whole.grad_output[mine]), needed[1:])


def means_through_autograd(here: Here) -> Iterator[bool]:
    for whole, mine, part in _batches(here):
        _, *needed = whole.alone(whole.grad_output / whole.geometry.N)
        g = whole.grad_output[mine] / max(part.N, 1) * share(part.N)
        yield _close(_through_autograd(whole, mine, part, g), needed[1:])


def _through_autograd(
    whole: Whole, mine: slice, part: ConvGeometry, grad_output: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    x, weight, bias = whole.leaves()
    w, b = shared(weight, bias)
    _convolved(x[mine], w, b, part).backward(grad_output)
    return weight.grad, bias.grad


def same_bits(here: Here) -> Iterator[bool]:
    """Not whole numbers: in which order they are added shows, and is the same for all."""
    generator = torch.Generator().manual_seed(here.rank)
    (total,) = added([torch.randn(10007, generator=generator).to(here.device)])
    everybodys = [torch.empty_like(total) for _ in range(here.size)]
    dist.all_gather(everybodys, total)
    yield all(torch.equal(each, total) for each in everybodys)


def averaged_by_pytorch(here: Here) -> Iterator[bool]:
    """DistributedDataParallel divides by the number of processes: multiplied with it, a sum."""
    for whole, mine, part in _batches(here):
        if here.size > whole.geometry.N:
            continue  # it wants every process to have images
        x, weight, bias = whole.leaves()
        layer = DistributedDataParallel(_layer(part, weight, bias))
        layer(x[mine]).backward(whole.grad_output[mine])
        found = [each.grad * here.size for each in layer.parameters() if each.grad is not None]
        _, _, *needed = whole.alone()
        yield _close(found, needed)


def _layer(geometry: ConvGeometry, weight: Tensor, bias: Tensor) -> torch.nn.Conv2d:
    (top, _), (left, _) = geometry.padding
    g, padding = geometry, (top, left)
    options: tuple[Any, ...] = g.stride, padding, g.dilation, g.groups
    layer = torch.nn.Conv2d(g.C, g.O, (g.KH, g.KW), *options).to(weight)
    layer.load_state_dict({"weight": weight.detach(), "bias": bias.detach()})
    return layer


def rows_of_images(here: Here) -> Iterator[bool]:
    for whole in _tall(here, 24):
        geometry, mine = whole.geometry, rows_of(whole.geometry)
        y, grad_input, *of_weights = whole.alone()
        _, weight, bias = whole.leaves()
        x = _cut(whole.x, mine.owned).requires_grad_()
        found = conv2d_rows(x, weight, bias, geometry)
        found.backward(_cut(whole.grad_output, mine.outputs))
        needed = (_cut(y, mine.outputs), _cut(grad_input, mine.owned), *of_weights)
        yield _equal((found.detach(), x.grad, weight.grad, bias.grad), needed)


def rows_of_two_layers(here: Here) -> Iterator[bool]:
    """The output rows of the first are the input rows of the second: nobody collects them."""
    rng = _rng(here, 200)
    first = ConvGeometry(N=2, C=3, H=5 * here.size + 2, W=6, O=4, KH=5, KW=3, stride=2, padding=2)
    second = ConvGeometry(N=2, C=4, H=first.OH, W=first.OW, O=2, KH=3, KW=3, padding=1)
    one, two = Whole.drawn(first, rng, here), Whole.drawn(second, rng, here)
    leaves = *one.leaves(), *two.leaves()[1:]
    y = _convolved(_convolved(*leaves[:3], first), *leaves[3:], second)
    grad_x, *of_weights = torch.autograd.grad(y, leaves, two.grad_output)

    rows, outputs = rows_of(first).owned, rows_of(second).outputs
    parts = _cut(one.x, rows).requires_grad_(), *one.leaves()[1:], *two.leaves()[1:]
    y = conv2d_rows(conv2d_rows(*parts[:3], first), *parts[3:], second)
    found = torch.autograd.grad(y, parts, _cut(two.grad_output, outputs))
    yield _equal(found, (_cut(grad_x, rows), *of_weights))


def halo_and_back(here: Here) -> Iterator[bool]:
    """⟨lent x, z⟩ = ⟨x, z given back⟩, summed over all processes."""
    for number, whole in enumerate(_tall(here, 12)):
        x = _cut(whole.x, rows_of(whole.geometry).owned).requires_grad_()
        lent = with_halo(x, whole.geometry)
        generator = torch.Generator().manual_seed(here.size * number + here.rank)
        z = torch.randint(-4, 5, lent.shape, generator=generator).to(lent)
        (back,) = torch.autograd.grad(lent, x, z)
        forth, and_back = added([(lent.detach() * z).sum(), (x.detach() * back).sum()])
        yield bool(forth == and_back)


def dtensors(here: Here) -> Iterator[bool]:
    mesh = init_device_mesh(here.device.type, (here.size,))
    for whole, _, part in _batches(here):
        x, weight, bias = (
            distribute_tensor(each, mesh, [placement]).requires_grad_()
            for each, placement in zip(
                whole[1:4], (Shard(0), Replicate(), Replicate()), strict=True
            )
        )
        options = part.stride, tuple(each for each, _ in part.padding), part.dilation, part.groups
        try:
            y = conv2d_dtensor(x, weight, bias, *options)
        except PlacementError:  # which must stop it if there are too few images, and only then
            yield here.size > whole.geometry.N
            continue
        y.backward(distribute_tensor(whole.grad_output, mesh, [Shard(0)]))
        results = (y.detach(), x.grad, weight.grad, bias.grad)
        found = [each.full_tensor() for each in results if isinstance(each, DTensor)]
        yield _equal(found, whole.alone())


CHECKS: dict[str, Callable[[Here], Iterator[bool]]] = {
    "batch, a sum over the images: three gradients": batch_of_sums,
    "batch, a mean over the images: three gradients": batch_of_means,
    "batch, a sum, through autograd": sums_through_autograd,
    "batch, a mean, through autograd": means_through_autograd,
    "batch: the sum has the same bits on every process": same_bits,
    "batch, by DistributedDataParallel, times the processes": averaged_by_pytorch,
    "batch, by DTensor, where it is let through": dtensors,
    "rows: the output and three gradients": rows_of_images,
    "rows, two layers": rows_of_two_layers,
    "rows lent and given back: adjoint": halo_and_back,
}
