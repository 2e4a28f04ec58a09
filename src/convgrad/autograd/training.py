"""A small network that learns stripes, with the backward pass of one's choice.

Everything is made here: images of stripes in four directions, a network of two convolutions, and
plain gradient descent.  It takes a second or two, and the same seed gives the same run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..extras import needs
from .module import Conv2d
from .rules import Rule

with needs("torch", "convgrad.autograd"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

__all__ = ["DIRECTIONS", "Training", "stripes", "train"]

#: How the stripes of each class lie.
DIRECTIONS = ("lying", "falling", "standing", "rising")
_WIDE = 4  # cells from one stripe to the next
_KERNELS = 8  # in each of the two layers


def stripes(count: int, size: int = 12, noise: float = 0.6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images of stripes in four directions, under noise, and which direction it is.

    Parameters
    ----------
    count : int
        How many images; the four directions take turns.
    size : int, default 12
        Rows and columns of each.
    noise : float, default 0.6
        Standard deviation of what is added to every cell; the stripes go from −1 to 1.
    seed : int, default 0
        Of the noise, and of where the stripes begin.

    Returns
    -------
    images : Tensor, (count, 1, size, size)
        In float64.
    labels : Tensor, (count,)
        0 to 3: lying, falling, standing, rising.

    Examples
    --------
    >>> images, labels = stripes(6)
    >>> tuple(images.shape), labels.tolist()
    ((6, 1, 12, 12), [0, 1, 2, 3, 0, 1])
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % len(DIRECTIONS)
    angle = (labels * math.pi / len(DIRECTIONS)).double()[:, None, None]
    start = torch.rand(count, 1, 1, generator=generator, dtype=torch.float64)
    row = torch.arange(size, dtype=torch.float64)
    # how far each cell lies across the stripes: rows for lying ones, columns for standing ones
    across = torch.cos(angle) * row[:, None] - torch.sin(angle) * row
    clean = torch.sin(2 * math.pi * (across / _WIDE + start))
    added = noise * torch.randn(count, size, size, generator=generator, dtype=torch.float64)
    return (clean + added)[:, None], labels


@dataclass(frozen=True)
class Training:
    """How a training went.

    Attributes
    ----------
    loss : tuple of float
        Of each step's batch, before the step.
    cosine : tuple of float
        Of each step: between the weight gradients that the rule gave, all layers as one, and the
        exact ones for the same weights and batch.
    accuracy : float
        The share of new images that the trained network names rightly.

    Examples
    --------
    >>> Training((1.4, 0.7), (1.0, 1.0), 0.75).accuracy
    0.75
    """

    loss: tuple[float, ...]
    cosine: tuple[float, ...]
    accuracy: float


def train(
    rule: Rule | None = None,
    *,
    steps: int = 150,
    batch: int = 32,
    rate: float = 0.3,
    seed: int = 0,
) -> Training:
    """Train a small network on stripes, its convolutions with a gradient rule.

    Two layers of eight 3×3 kernels, each with a ReLU, then the mean of every map and a linear
    layer; gradient descent in float64.  At every step the exact gradient is computed as well, to
    be compared with.

    Parameters
    ----------
    rule : callable, optional
        In place of the exact backward pass of both convolutions, as in
        :func:`~convgrad.autograd.conv2d`.
    steps : int, default 150
        How many.
    batch : int, default 32
        Images in each.
    rate : float, default 0.3
        What the gradient is multiplied with.
    seed : int, default 0
        Of the images, of the first weights, of the batches, and of what the rule draws.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        What the rule raises, or what is raised when it gives no gradient.

    Examples
    --------
    >>> run = train(steps=2, batch=4)
    >>> len(run.loss), [round(each, 6) for each in run.cosine]
    (2, [1.0, 1.0])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = _network(rule)
        images, labels = stripes(256, seed=seed + 1)
        losses, cosines = [], []
        for _ in range(steps):
            drawn = torch.randint(len(images), (batch,))
            loss, found = _gradients(net, images[drawn], labels[drawn], rule)
            _, exact = _gradients(net, images[drawn], labels[drawn], None)
            losses.append(loss)
            cosines.append(_cosine(_of_kernels(found), _of_kernels(exact)))
            with torch.no_grad():
                for parameter, gradient in zip(net.parameters(), found, strict=True):
                    parameter.sub_(gradient, alpha=rate)
        images, labels = stripes(256, seed=seed + 2)
        with torch.no_grad():
            right = net(images).argmax(1) == labels
    return Training(tuple(losses), tuple(cosines), right.double().mean().item())


def _network(rule: Rule | None) -> nn.Sequential:
    return nn.Sequential(
        Conv2d(1, _KERNELS, 3, rule=rule, dtype=torch.float64),
        nn.ReLU(),
        Conv2d(_KERNELS, _KERNELS, 3, rule=rule, dtype=torch.float64),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(_KERNELS, len(DIRECTIONS), dtype=torch.float64),
    )


def _gradients(
    net: nn.Sequential, images: Tensor, labels: Tensor, rule: Rule | None
) -> tuple[float, tuple[Tensor, ...]]:
    """The loss, and the gradients of all parameters by this rule."""
    for layer in net:
        if isinstance(layer, Conv2d):
            layer.rule = rule
    loss = F.cross_entropy(net(images), labels)
    return loss.item(), torch.autograd.grad(loss, list(net.parameters()))


def _of_kernels(gradients: Sequence[Tensor]) -> Tensor:
    """The weight gradients of the convolutions, as one vector."""
    return torch.cat([each.flatten() for each in gradients if each.dim() == 4])


def _cosine(a: Tensor, b: Tensor) -> float:
    return F.cosine_similarity(a, b, dim=0).item()
