"""Exercises whose function gets tensors: a plain one, or the backward pass of an autograd.Function.

PyTorch is imported when an answer is checked, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import explain_difference
from ..checks.compare import NotNumbers, numbers
from ..extras import needs
from ..geometry import ConvGeometry
from .base import Verdict
from .functions import _UNTOUCHED, Function, Trial, _told

__all__ = ["BackwardFunction", "TensorFunction", "options"]

#: The tensors that a forward pass takes, in its order; what is no tensor comes behind them.
OPERANDS = ("x", "weight", "bias")


def options(geometry: ConvGeometry) -> dict[str, Any]:
    """Stride, padding and dilation as F.unfold, F.fold and F.conv2d take them.

    >>> options(ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, stride=2))
    {'stride': (2, 2), 'padding': (0, 0), 'dilation': (1, 1)}
    """
    (top, _), (left, _) = geometry.padding
    return {"stride": geometry.stride, "padding": (top, left), "dilation": geometry.dilation}


class _OnTensors:
    """A function of arrays that hands them on as tensors; what is written to those is seen."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__code__ = getattr(function, "__code__", None)  # for the line of an error

    def __call__(self, *arguments: Any) -> Any:
        import torch

        shared = (torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments)
        return self.function(*shared)


@dataclass(frozen=True)
class TensorFunction(Function):
    """The answer is a function of tensors.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("function-forward").check(3).passed
    False
    """

    def _judge(self, answer: Any) -> Verdict:
        try:
            with needs("torch", "this exercise"):
                import torch  # noqa: F401
        except ModuleNotFoundError as missing:
            return self._open(f"{missing}.")
        return super()._judge(answer)

    def _try(self, function: Callable[..., Any], trial: Trial) -> str | None:
        return super()._try(_OnTensors(function), trial)


@dataclass(frozen=True)
class BackwardFunction(TensorFunction):
    """The answer is ``backward(ctx, grad_output)``, and autograd itself calls it.

    The arguments of a trial are ``grad_output``, ``x``, ``weight``, the options of the
    convolution, and which of x, weight and bias need a gradient.  Its ``expected`` is not used:
    the three right gradients stand in ``known`` under "gradients".

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("function-backward").check(lambda ctx, grad_output: None).untouched
    True
    """

    def _try(self, function: Callable[..., Any], trial: Trial) -> str | None:
        known = dict(trial.known)
        right = known.pop("gradients")
        needed = trial.arguments[-1]
        on = f"On {known['geometry'].describe()}{_who_needs(needed)}"
        grad_output = trial.arguments[0]
        before = grad_output.copy()
        try:
            returned = _called_by_autograd(function, *trial.arguments)
        except (Exception, SystemExit) as trouble:
            return f"{on} your function raised {_told(trouble, function)}"
        if returned is None or returned is ...:
            return _UNTOUCHED
        if not np.array_equal(grad_output, before):
            return f"{on} your function changed grad_output, which is not its own: work on a copy."
        try:
            complaint = _of_the_row(returned, needed)
            if complaint is not None:
                return f"{on} {complaint}"
            arrays = {
                name: numbers(part, f"gradient of {name}")
                for name, part in zip(OPERANDS, returned, strict=False)
                if part is not None
            }
        except NotNumbers as trouble:
            return str(trouble)
        for name, array in arrays.items():
            target = "input" if name == "x" else name
            gradient = right[OPERANDS.index(name)]
            explanation = explain_difference(array, gradient, **known, target=target)
            if not explanation.right:
                return f"{on}: {explanation.sentence[0].lower()}{explanation.sentence[1:]}"
        return None


def _of_the_row(returned: Any, needed: tuple[bool, ...]) -> str | None:
    """What is wrong with the row of gradients, before one looks at their numbers."""
    row = f"a gradient for each of {', '.join(OPERANDS)}, and None for how"
    if not isinstance(returned, tuple):
        shape = numbers(returned, "result").shape
        return f"your function returns one array, of shape {shape}: needed are four things, {row}."
    if len(returned) != len(OPERANDS) + 1:
        return (
            f"your function returns {len(returned)} things: forward took four arguments besides "
            f"ctx, so needed are four, {row}."
        )
    if returned[-1] is not None:
        return "your function returns something for `how`, which is no tensor: return None there."
    for name, part, wanted in zip(OPERANDS, returned, needed, strict=False):
        if wanted and part is None:
            return f"your function returns None for {name}, whose gradient is needed here."
        if part is not None and not wanted:
            return (
                f"your function computes the gradient of {name}, which nobody needs here: look at "
                "`ctx.needs_input_grad`, and return None in its place."
            )
    return None


def _who_needs(needed: tuple[bool, ...]) -> str:
    if all(needed):
        return ""
    names = [name for name, wanted in zip(OPERANDS, needed, strict=True) if wanted]
    return f", where {' and '.join(names)} alone need{'s' * (len(names) == 1)} a gradient,"


def _called_by_autograd(
    backward: Callable[..., Any],
    grad_output: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray,
    how: dict[str, Any],
    needed: tuple[bool, ...],
) -> Any:
    """What a backward pass returns when autograd calls it, with a ctx and views of its own."""
    import torch

    returned: list[Any] = []

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any, how: dict[str, Any]) -> Any:
            ctx.save_for_backward(x, weight)
            ctx.how = how
            return x.new_zeros(grad_output.shape)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            returned.append(backward(ctx, grad_output))
            return (None,) * 4  # nobody asks PyTorch for the gradients: they are looked at here

    leaves = [
        torch.from_numpy(np.array(array)).requires_grad_(wanted)
        for array, wanted in zip((x, weight, np.zeros(len(weight))), needed, strict=True)
    ]
    y = Step.apply(*leaves, how)  # type: ignore[no-untyped-call]
    torch.autograd.backward(y, torch.from_numpy(grad_output))
    return returned[0]
