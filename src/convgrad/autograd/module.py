"""A layer to put in the place of nn.Conv2d."""

from __future__ import annotations

from typing import Any

from ..extras import needs
from .function import conv2d
from .rules import Rule

with needs("torch", "convgrad.autograd"):
    from torch import Tensor, nn

__all__ = ["Conv2d"]


class Conv2d(nn.Conv2d):
    """``nn.Conv2d`` with a backward pass of your choice; arguments and state_dict are the same.

    Parameters
    ----------
    *args, **kwargs
        As for ``nn.Conv2d``.
    implementation : str, default "aten"
        As in :func:`~convgrad.autograd.conv2d`.
    rule : callable, optional
        As in :func:`~convgrad.autograd.conv2d`.

    Raises
    ------
    ValueError
        For an unknown implementation, when it is called; and what ``nn.Conv2d`` raises.

    Examples
    --------
    >>> import torch
    >>> from convgrad.autograd import sign
    >>> layer = Conv2d(3, 8, kernel_size=3, padding=1, rule=sign)
    >>> layer(torch.ones(2, 3, 5, 5)).shape
    torch.Size([2, 8, 5, 5])
    """

    def __init__(
        self, *args: Any, implementation: str = "aten", rule: Rule | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.implementation = implementation
        self.rule = rule

    @classmethod
    def like(
        cls, layer: nn.Conv2d, *, implementation: str = "aten", rule: Rule | None = None
    ) -> Conv2d:
        """A layer that shares the parameters of another one: to train is to train both.

        Parameters
        ----------
        layer : nn.Conv2d
            Whose options and parameters are taken.
        implementation, rule : optional
            As in :func:`~convgrad.autograd.conv2d`.

        Returns
        -------
        Conv2d

        Examples
        --------
        >>> layer = nn.Conv2d(2, 4, 3)
        >>> Conv2d.like(layer, implementation="unfold").weight is layer.weight
        True
        """
        twin = cls(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            layer.dilation,
            layer.groups,
            layer.bias is not None,
            layer.padding_mode,
            device="meta",  # the numbers come next
            implementation=implementation,
            rule=rule,
        )
        twin.weight, twin.bias = layer.weight, layer.bias
        return twin.train(layer.training)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return conv2d(
            *(input, weight, bias, self.stride, self.padding, self.dilation, self.groups),
            padding_mode=self.padding_mode,
            implementation=self.implementation,
            rule=self.rule,
        )

    def extra_repr(self) -> str:
        """What nn.Conv2d says of itself, and how this one goes back."""
        said = f"{super().extra_repr()}, implementation={self.implementation!r}"  # type: ignore[no-untyped-call]
        if self.rule is None:
            return said
        return f"{said}, rule={getattr(self.rule, '__name__', self.rule)}"
