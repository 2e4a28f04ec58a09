"""What to put in place of the exact gradient: rules that stand between g and the result.

A rule is a function ``rule(exact, grad_output, x, weight)``.  It is handed the exact backward pass,
``exact(grad_output, x, weight)``, and the operands, and gives three gradients: it may change what
goes in, or what comes out, or compute everything in a way of its own.  A gradient that nobody
needs is not computed and is None; ``exact(grad_output, x, weight, mask)`` asks for some only.

>>> def halved(exact, grad_output, x, weight):
...     return exact(grad_output / 2, x, weight)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..extras import needs
from .arithmetic import Gradients, Mask

with needs("torch", "convgrad.autograd"):
    import torch
    from torch import Tensor

__all__ = [
    "Exact",
    "Rule",
    "quantised",
    "random_taps",
    "sign",
    "straight_through",
    "subsampled_batch",
    "top_k",
]

Triple = Gradients | tuple[Tensor | None, Tensor | None, Tensor | None]


class Exact(Protocol):
    """The exact backward pass, of whatever operands a rule hands it."""

    def __call__(
        self, grad_output: Tensor, x: Tensor, weight: Tensor, mask: Mask = (True, True, True), /
    ) -> Gradients: ...


class Rule(Protocol):
    """What a gradient rule is called with, and what it gives."""

    def __call__(self, exact: Exact, grad_output: Tensor, x: Tensor, weight: Tensor) -> Triple: ...


def sign(exact: Exact, grad_output: Tensor, x: Tensor, weight: Tensor) -> Gradients:
    """Only the sign of every upstream number, at the size of their mean.

    Parameters
    ----------
    exact : callable
        The exact backward pass.
    grad_output, x, weight : Tensor
        Its operands.

    Returns
    -------
    Gradients
        Those of sign(g) · mean|g|.

    Examples
    --------
    >>> from convgrad.autograd import compare_gradients
    >>> x, weight = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1)
    >>> g = torch.tensor([[[[1.0, -3.0], [0.0, 4.0]]]])
    >>> found = compare_gradients(x, weight, grad_output=g, rule=sign)
    >>> found.input.mine
    array([[[[ 2., -2.],
             [ 0.,  2.]]]], dtype=float32)
    """
    return exact(grad_output.sign() * grad_output.abs().mean(), x, weight)


def quantised(bits: int = 4) -> Rule:
    """Upstream numbers rounded to ``bits`` bits: 2**(bits−1) − 1 steps on either side of zero.

    Parameters
    ----------
    bits : int, default 4
        From 2 on; the largest number there is stands for the largest size in g.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        For fewer than two bits.

    Examples
    --------
    >>> rule = quantised(2)  # −m, 0 and m, where m is the largest
    >>> rule(lambda g, x, w: g, torch.tensor([0.2, -0.9, 1.0]), None, None)
    tensor([ 0., -1.,  1.])
    """
    if not isinstance(bits, int) or bits < 2:
        raise ValueError(f"bits={bits!r}: needed is a whole number from 2 on, one bit is the sign")
    steps = 2 ** (bits - 1) - 1

    def rule(exact: Exact, grad_output: Tensor, x: Tensor, weight: Tensor) -> Triple:
        largest = grad_output.abs().amax()
        step = torch.where(largest > 0, largest / steps, 1)  # zeros stay zeros
        return exact((grad_output / step).round() * step, x, weight)

    return rule


def top_k(share: float = 0.1) -> Rule:
    """Only the largest upstream numbers, by size; the others count as zero.

    Parameters
    ----------
    share : float, default 0.1
        How many of all are kept, above 0 and at most 1; at least one is.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        For a share outside of (0, 1].

    Examples
    --------
    >>> rule = top_k(0.5)
    >>> rule(lambda g, x, w: g, torch.tensor([1.0, -4.0, 3.0, 0.5]), None, None)
    tensor([ 0., -4.,  3.,  0.])
    """
    _require_share(share)

    def rule(exact: Exact, grad_output: Tensor, x: Tensor, weight: Tensor) -> Triple:
        sizes = grad_output.abs().flatten()
        kept = torch.zeros_like(sizes).scatter(
            0, sizes.topk(_part(share, sizes.numel())).indices, 1
        )
        return exact(grad_output * kept.reshape(grad_output.shape), x, weight)

    return rule


def subsampled_batch(share: float = 0.5, generator: torch.Generator | None = None) -> Rule:
    """Weight and bias gradient from some of the images, drawn anew each time, and scaled up.

    On average it is the exact gradient.  The input gradient stays exact: the layers below need
    that of every image.

    Parameters
    ----------
    share : float, default 0.5
        How many of the images, above 0 and at most 1; at least one is taken.
    generator : torch.Generator, optional
        Draws the images; PyTorch's own if None.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        For a share outside of (0, 1].

    Examples
    --------
    >>> rule = subsampled_batch(0.5, torch.Generator().manual_seed(0))
    >>> def g_alone(g, x, weight, mask):
    ...     return Gradients(None, g, g)
    >>> g = torch.ones(4, 1, 1, 1)
    >>> sorted(rule(g_alone, g, g, g).grad_weight.flatten().tolist())
    [0.0, 0.0, 2.0, 2.0]
    """
    _require_share(share)

    def rule(exact: Exact, grad_output: Tensor, x: Tensor, weight: Tensor) -> Triple:
        scale = _drawn(share, len(grad_output), grad_output, generator).reshape(-1, 1, 1, 1)
        _, grad_weight, grad_bias = exact(grad_output * scale, x, weight, (False, True, True))
        grad_input, _, _ = exact(grad_output, x, weight, (True, False, False))
        return Gradients(grad_input, grad_weight, grad_bias)

    return rule


def random_taps(share: float = 0.5, generator: torch.Generator | None = None) -> Rule:
    """The weight gradient of some taps, drawn anew each time and scaled up; the others get zero.

    On average it is the exact gradient.  Input and bias gradient stay exact.

    Parameters
    ----------
    share : float, default 0.5
        How many of the KH·KW taps, above 0 and at most 1; at least one is kept.
    generator : torch.Generator, optional
        Draws the taps; PyTorch's own if None.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        For a share outside of (0, 1].

    Examples
    --------
    >>> rule = random_taps(0.25, torch.Generator().manual_seed(0))
    >>> def ones(g, x, weight):
    ...     return Gradients(None, torch.ones_like(weight), None)
    >>> w = torch.zeros(1, 1, 2, 2)
    >>> sorted(rule(ones, w, w, w).grad_weight.flatten().tolist())
    [0.0, 0.0, 0.0, 4.0]
    """
    _require_share(share)

    def rule(exact: Exact, grad_output: Tensor, x: Tensor, weight: Tensor) -> Triple:
        found = exact(grad_output, x, weight)
        if found.grad_weight is None:
            return found
        taps = weight.shape[-2:]
        scale = _drawn(share, taps.numel(), weight, generator).reshape(taps)
        grad_weight = found.grad_weight * scale
        return Gradients(found.grad_input, grad_weight, found.grad_bias)

    return rule


def straight_through(rounding: Callable[[Tensor], Tensor]) -> Rule:
    """The backward pass of rounded operands, as if rounding had slope 1.

    Parameters
    ----------
    rounding : callable
        A function of one tensor, for example ``torch.round``; x and weight go through it.

    Returns
    -------
    Rule

    Examples
    --------
    >>> rule = straight_through(torch.round)
    >>> rule(lambda g, x, w: x * w, None, torch.tensor([1.4]), torch.tensor([2.6]))
    tensor([3.])
    """

    def rule(exact: Exact, grad_output: Tensor, x: Tensor, weight: Tensor) -> Triple:
        return exact(grad_output, rounding(x), rounding(weight))

    return rule


def _require_share(share: float) -> None:
    if not 0 < share <= 1:
        raise ValueError(f"share={share!r}: needed is a number above 0 and at most 1, as in 0.5")


def _part(share: float, count: int) -> int:
    """How many of ``count`` are taken: at least one, if there is one."""
    return min(count, max(1, round(share * count)))


def _drawn(
    share: float,
    count: int,
    like: Tensor,
    generator: torch.Generator | None,
) -> Tensor:
    """A factor for each: 0, or for those drawn, one that makes up for it."""
    taken = _part(share, count)
    device = like.device if generator is None else generator.device
    order = torch.randperm(count, generator=generator, device=device)
    scale = torch.zeros(count, dtype=like.dtype, device=like.device)
    scale[order[:taken].to(like.device)] = count / max(taken, 1)
    return scale
