"""Three gradients beside autograd's: how far off, and in which direction they point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..checks import explain_difference
from ..checks.compare import same
from ..extras import needs
from ..geometry import Border, ConvGeometry, ShapeError, Step, shown
from ..kernels.border import with_border
from .function import conv2d
from .rules import Rule

with needs("torch", "convgrad.autograd"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["Comparison", "Gap", "compare_gradients"]


@dataclass(frozen=True)
class Gap:
    """One gradient and autograd's.

    Attributes
    ----------
    mine, autograd : ndarray
        The two, in the shape of the operand (one image without a batch counts as a batch of one).
    error : float
        The largest difference, in the numbers' own size.
    relative : float
        ‖mine − autograd‖ / ‖autograd‖; 0 where both are zero.
    cosine : float
        Of the angle between them: 1 the same direction, 0 at right angles, −1 the opposite one;
        nan where one of them is zero and has no direction.
    exact : bool
        Whether they are the same up to rounding.

    Examples
    --------
    >>> gap = Gap.between(np.array([3.0, 4.0]), np.array([4.0, 3.0]))
    >>> gap.error, round(gap.cosine, 2), gap.exact
    (1.0, 0.96, False)
    """

    mine: np.ndarray = field(repr=False)
    autograd: np.ndarray = field(repr=False)
    error: float
    relative: float
    cosine: float
    exact: bool

    @classmethod
    def between(cls, mine: np.ndarray, autograd: np.ndarray) -> Gap:
        """The gap between two arrays of one shape.

        Parameters
        ----------
        mine, autograd : ndarray
            Real or complex.

        Returns
        -------
        Gap
        """
        wide = np.result_type(mine, autograd, np.float64)
        a, b = (np.asarray(each, wide).ravel() for each in (mine, autograd))
        size_a, size_b = np.linalg.norm(a), np.linalg.norm(b)
        off = np.linalg.norm(a - b)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = float(off / size_b) if off else 0.0
            cosine = float(np.clip((np.vdot(b, a) / (size_a * size_b)).real, -1, 1))
        error = float(np.abs(a - b).max(initial=0.0))
        return cls(mine, autograd, error, relative, cosine, same(mine, autograd))


@dataclass(frozen=True)
class Comparison:
    """Input, weight and bias gradient, each beside autograd's; printed, it is a table.

    Attributes
    ----------
    input, weight : Gap
        The two gradients that every convolution has.
    bias : Gap or None
        None where there is no bias.
    geometry : ConvGeometry
        Of the convolution.
    operands : dict
        ``x``, ``weight`` and ``grad_output``, as arrays.

    Examples
    --------
    >>> x, weight = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    >>> print(compare_gradients(x, weight, implementation="unfold"))
    gradient   largest error   relative   cosine
    input                  0          0   1.0000   the same
    weight                 0          0   1.0000   the same
    """

    input: Gap
    weight: Gap
    bias: Gap | None
    geometry: ConvGeometry = field(repr=False)
    operands: dict[str, np.ndarray] = field(repr=False, default_factory=dict)

    def gaps(self) -> dict[str, Gap]:
        """Those that there are, by the name of their operand.

        Returns
        -------
        dict
            ``"input"``, ``"weight"`` and, with a bias, ``"bias"``.
        """
        every = {"input": self.input, "weight": self.weight, "bias": self.bias}
        return {name: gap for name, gap in every.items() if gap is not None}

    def why(self, target: str) -> str:
        """What sort of mistake it looks like, in words.

        Parameters
        ----------
        target : str
            "input", "weight" or "bias".

        Returns
        -------
        str
            See :func:`~convgrad.checks.explain_difference`.

        Raises
        ------
        KeyError
            For a gradient that there is not.
        """
        gap = self.gaps()[target]
        return explain_difference(
            gap.mine, gap.autograd, geometry=self.geometry, target=target, **self.operands
        ).sentence

    def __str__(self) -> str:
        lines = [f"{'gradient':<9}{'largest error':>15}{'relative':>11}{'cosine':>9}"]
        for name, gap in self.gaps().items():
            verdict = "   the same" if gap.exact else ""
            lines.append(
                f"{name:<9}{gap.error:>15.3g}{gap.relative:>11.2g}{gap.cosine:>9.4f}{verdict}"
            )
        return "\n".join(lines)


def compare_gradients(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    grad_output: Tensor | None = None,
    *,
    stride: Step = 1,
    padding: Border = 0,
    dilation: Step = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    implementation: str = "aten",
    rule: Rule | None = None,
    seed: int = 0,
) -> Comparison:
    """An implementation, a rule, or a backward pass of your own, held against autograd.

    Parameters
    ----------
    x : Tensor, (N, C, H, W) or (C, H, W)
        The images.
    weight : Tensor, (O, C/groups, KH, KW)
        The kernels.
    bias : Tensor, (O,), optional
        Its gradient is compared where it is given.
    grad_output : Tensor, optional
        In the shape of the output; without it random numbers, because ones would hide mistakes.
    stride, padding, dilation, groups, padding_mode, implementation, rule : optional
        As in :func:`~convgrad.autograd.conv2d`.  A whole backward pass of your own is a rule too,
        one that does not ask for the exact gradient.
    seed : int, default 0
        Of those random numbers.

    Returns
    -------
    Comparison

    Raises
    ------
    GeometryError, ShapeError, ValueError, TypeError
        As conv2d.

    Examples
    --------
    >>> from convgrad.autograd import sign
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> found = compare_gradients(x, torch.ones(1, 1, 2, 2), rule=sign)
    >>> found.weight.exact
    False
    """
    options: dict[str, Any] = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "padding_mode": padding_mode,
    }
    x = x if x.dim() == 4 else x[None]
    geometry = ConvGeometry.of(x.shape, weight.shape, **options)
    g = _upstream(grad_output, geometry, x, seed)
    operands = [x, weight] if bias is None else [x, weight, bias]

    def mine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return conv2d(x, weight, bias, **options, implementation=implementation, rule=rule)

    def theirs(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        how: dict[str, Any] = {"stride": geometry.stride, "dilation": geometry.dilation}
        return F.conv2d(with_border(x, geometry), weight, bias, **how, groups=groups)

    gaps = [
        Gap.between(_array(a), _array(b))
        for a, b in zip(_back(mine, operands, g), _back(theirs, operands, g), strict=True)
    ]
    known = {"x": _array(x), "weight": _array(weight), "grad_output": _array(g)}
    return Comparison(gaps[0], gaps[1], gaps[2] if bias is not None else None, geometry, known)


def _upstream(given: Tensor | None, geometry: ConvGeometry, like: Tensor, seed: int) -> Tensor:
    """The upstream gradient as a batch; random where none was given."""
    shape = geometry.output_shape
    if given is None:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=generator, dtype=like.dtype).to(like.device)
    g = given if given.dim() == 4 else given[None]
    if tuple(g.shape) != shape:
        raise ShapeError(
            f"grad_output has shape {shown(tuple(given.shape))}: needed is that of the output, "
            f"{shown(shape)}"
        )
    return g


def _back(
    convolve: Callable[..., Tensor], operands: Sequence[Tensor], grad_output: Tensor
) -> tuple[Tensor, ...]:
    """The gradients of copies of the operands, by autograd."""
    leaves = [each.detach().clone().requires_grad_() for each in operands]
    return torch.autograd.grad(convolve(*leaves), leaves, grad_output)


def _array(tensor: Tensor) -> np.ndarray:
    whole = tensor.detach().cpu()
    return (whole.float() if whole.dtype == torch.bfloat16 else whole).numpy()
