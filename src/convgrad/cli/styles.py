"""How somebody's function wants to be called, read off the names of its parameters.

Two styles are understood, for the forward pass and for every gradient:

* ``geometry``: ``grad_weight(grad_output, x, geometry)``, as in this package;
* ``keywords``: ``backward(grad_output, x, weight, *, stride, padding, dilation, groups)``, as in
  PyTorch.  What a function has no parameter for is not tried on it.

A function that takes grad_output, x and weight may return all three gradients, in PyTorch's order
(grad_input, grad_weight, grad_bias), or one of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import Draw
from ..extras import install
from ..geometry import ConvGeometry
from .trials import Limits
from .words import Misuse

__all__ = ["STYLES", "TARGETS", "Convention", "read_signature", "torch_or_misuse"]

STYLES = ("geometry", "keywords")
TARGETS = ("weight", "input", "bias", "output")
OPTIONS = ("stride", "padding", "dilation", "groups", "padding_mode")

# What people call things; compared without underscores and capitals.
_NAMES = {
    "grad_output": "gradoutput gradout outputgrad gradoutputs dout dy dldy gy g go grad grady dz "
    "upstream delta gradient",
    "x": "x input inputs inp image images img features activations aprev",
    "weight": "weight weights w kernel kernels filter filters",
    "bias": "bias biases b",
    "x_shape": "inputsize inputshape xshape xsize",
    "weight_shape": "weightsize weightshape wshape kernelshape",
    "kernel_size": "kernelsize ksize",
    "geometry": "geometry geom geo conv config cfg spec",
    "stride": "stride strides s",
    "padding": "padding pad pads p",
    "dilation": "dilation dilations d",
    "groups": "groups group ngroups",
    "padding_mode": "paddingmode padmode mode",
}
_MEANINGS = {name: meaning for meaning, names in _NAMES.items() for name in names.split()}

# The operands of each target, in the package's order.
_OPERANDS = {
    "weight": ("grad_output", "x"),
    "input": ("grad_output", "weight"),
    "bias": ("grad_output",),
    "output": ("x", "weight"),
    None: ("grad_output", "x", "weight"),
}
# What the name of a function says about the one gradient that it returns.
_HINTS = {
    "weight": r"weight|wgrad|kernel|filter|(^|_)dw($|_)|(^|_)w$",
    "input": r"input|dgrad|(^|_)dx($|_)|(^|_)x$",
    "bias": r"bias|(^|_)db($|_)|(^|_)b$",
}


@dataclass(frozen=True)
class Argument:
    """One argument of the call: what it means, and its keyword where it is passed by name."""

    meaning: str
    keyword: str | None = None


@dataclass(frozen=True)
class Convention:
    """How to call a function and what to expect back."""

    style: str
    arguments: tuple[Argument, ...]
    target: str | None  # None: whichever it returns
    pairs: bool = True  # stride=(2, 3), or one number for both axes
    tensors: str = "numpy"

    def limits(self) -> Limits:
        """What can be said to the function at all."""
        if self.style == "geometry":
            return Limits()
        taken = {argument.meaning for argument in self.arguments}
        return Limits(
            **{name: name in taken for name in OPTIONS}, two_sided=False, pairs=self.pairs
        )

    def call(self, function: Callable[..., Any], draw: Draw) -> Any:
        """The function's own answer; whatever it raises comes through."""
        values = self._values(draw)
        positional = [values[a.meaning] for a in self.arguments if a.keyword is None]
        named = {a.keyword: values[a.meaning] for a in self.arguments if a.keyword is not None}
        return function(*positional, **named)

    def _values(self, draw: Draw) -> dict[str, Any]:
        arrays = {"x": draw.x, "weight": draw.weight, "grad_output": draw.grad_output}
        # some backward functions carry the bias along, and only its shape counts
        arrays["bias"] = np.zeros(draw.geometry.bias_shape, draw.weight.dtype)
        given: dict[str, Any] = dict(arrays)
        if self.tensors == "torch":
            torch = torch_or_misuse()
            given = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return {**given, **self._sizes(draw.geometry)}

    def _sizes(self, geometry: ConvGeometry) -> dict[str, Any]:
        (top, _), (left, _) = geometry.padding
        pairs = {"stride": geometry.stride, "padding": (top, left), "dilation": geometry.dilation}
        return {
            "geometry": geometry,
            "x_shape": geometry.x_shape,
            "weight_shape": geometry.weight_shape,
            "kernel_size": (geometry.KH, geometry.KW),
            **{name: pair if self.pairs else pair[0] for name, pair in pairs.items()},
            "groups": geometry.groups,
            "padding_mode": geometry.padding_mode,
        }

    def spelled(self, name: str, geometry: ConvGeometry | None = None) -> str:
        """The call as source text: with this geometry's numbers, or in names alone."""
        values: dict[str, str] = {
            "x_shape": "x.shape",
            "weight_shape": "weight.shape",
            "kernel_size": "weight.shape[2:]",
            "bias": "bias",
        }
        if geometry is not None:
            sizes = self._sizes(geometry)
            values |= {option: repr(sizes[option]) for option in OPTIONS}
            values["bias"] = "0 * weight[:, 0, 0, 0]"
        words = []
        for argument in self.arguments:
            value = values.get(argument.meaning, argument.meaning)
            named = argument.keyword is not None and (
                geometry is not None or argument.keyword != value
            )
            words.append(f"{argument.keyword}={value}" if named else value)
        return f"{name}({', '.join(words)})"


def read_signature(
    function: Callable[..., Any], name: str, style: str | None, target: str | None
) -> Convention:
    """The convention that the function's parameters spell, ``style`` and ``target`` if forced.

    Raises :class:`Misuse` where a parameter's meaning cannot be told.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    if all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        arguments = _without_signature(name, style, target)
    else:
        arguments = _arguments(parameters, name, style, target)
    taken = [argument.meaning for argument in arguments]
    found = "geometry" if "geometry" in taken else "keywords"
    if style is not None and style != found:
        raise Misuse(
            f"{name} cannot be called in the style {style!r}: "
            + (
                "none of its parameters is a geometry"
                if style == "geometry"
                else "it takes a geometry"
            )
        )
    _require_operands(target, taken, name)
    return Convention(found, arguments, target or _target(taken, name))


def _without_signature(name: str, style: str | None, target: str | None) -> tuple[Argument, ...]:
    """A function that does not say what it takes: the style says it all."""
    if name == "apply":
        raise Misuse(_wrapper(name, "ctx"))
    if style is None:
        raise Misuse(
            f"{name} does not say what its parameters are called: add --style geometry for "
            "f(grad_output, x, geometry) or --style keywords for f(grad_output, x, weight, "
            "stride=…, padding=…, dilation=…, groups=…)"
        )
    operands = tuple(map(Argument, _OPERANDS[target]))
    if style == "geometry":
        return (*operands, Argument("geometry"))
    return (*operands, *(Argument(option, option) for option in OPTIONS[:4]))


def _arguments(
    parameters: Sequence[inspect.Parameter], name: str, style: str | None, target: str | None
) -> tuple[Argument, ...]:
    meanings = {p.name: _meaning(p) for p in parameters}
    required = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    unknown = [p for p in required if meanings[p] is None]
    if unknown:
        # among names without meaning, a `b` is not the bias
        unknown = [p for p in required if meanings[p] in (None, "bias")]
        meanings |= _by_order(unknown, meanings, name, style, target)
    _require_once(meanings, name)
    arguments, by_name = [], False
    for p in parameters:
        meaning = meanings[p.name]
        if p.kind is p.VAR_KEYWORD:
            free = [o for o in OPTIONS[:4] if o not in meanings.values()]
            if "geometry" not in meanings.values():
                arguments += [Argument(option, option) for option in free]
        elif meaning is None or (meaning == "bias" and p.default is not p.empty):
            by_name = True  # something is left out, so what follows goes by its name
        elif p.kind is not p.POSITIONAL_ONLY and (by_name or _goes_by_name(p, meaning)):
            by_name = True
            arguments.append(Argument(meaning, p.name))
        else:
            arguments.append(Argument(meaning))
    return tuple(arguments)


def _meaning(parameter: inspect.Parameter) -> str | None:
    if parameter.annotation in (ConvGeometry, "ConvGeometry"):
        return "geometry"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return None
    return _MEANINGS.get(parameter.name.lower().replace("_", ""))


def _goes_by_name(parameter: inspect.Parameter, meaning: str) -> bool:
    return parameter.kind is parameter.KEYWORD_ONLY or meaning in OPTIONS


def _by_order(
    unknown: Sequence[str],
    meanings: dict[str, str | None],
    name: str,
    style: str | None,
    target: str | None,
) -> dict[str, str]:
    """What the unknown parameters must be if the style is given: what is missing, in order."""
    if {"ctx", "cache"} & {*unknown}:
        raise Misuse(_wrapper(name, "ctx" if "ctx" in unknown else "cache"))
    if style is None:
        words = " and ".join(f"`{u}`" for u in unknown if meanings[u] is None)
        raise Misuse(
            f"{name}: what is meant by {words}? Known are names such as grad_output, x, "
            "weight, geometry, stride, padding, dilation, groups; rename it, or say the style "
            "(--style geometry or --style keywords) and, where needed, --target, and parameters "
            "are taken in the order grad_output, x, weight"
        )
    expected = [*_OPERANDS[target or _hint(name)], *(["geometry"] if style == "geometry" else [])]
    known = {p: m for p, m in meanings.items() if m in expected}
    missing = [meaning for meaning in expected if meaning not in known.values()]
    if len(unknown) > len(missing):
        raise Misuse(
            f"{name} wants {len(unknown)} arguments of unknown meaning ({', '.join(unknown)}), and "
            f"in this style there are {', '.join(missing) or 'none'} to give; say --target, or "
            "wrap it in a function with the usual names"
        )
    return dict(zip(unknown, missing, strict=False))


# How a backward that takes its operands out of something else becomes one that can be called.
_WRAPPERS = {
    "ctx": (
        "is part of a torch.autograd.Function, whose ctx only PyTorch can fill. Write a function "
        "around it and check that (MyConv is your class):",
        """
    def backward(grad_output, x, weight):
        y = MyConv.apply(x.requires_grad_(), weight.requires_grad_())
        return torch.autograd.grad(y, (x, weight), grad_output)
""",
        "Options that apply takes, such as stride, are parameters of the function too.",
    ),
    "cache": (
        "takes its operands out of `cache`. Write a function that packs the cache as your forward "
        "pass does, and check that:",
        """
    def backward(grad_output, x, weight, stride, padding):
        cache = (x, weight, np.zeros(len(weight)), {"stride": stride, "pad": padding})
        return conv_backward(grad_output, cache)
""",
        "Leave out what the cache does not hold.",
    ),
}


def _wrapper(name: str, parameter: str) -> str:
    """How to write it, around a function that wants a ``ctx`` or a ``cache``."""
    before, source, after = _WRAPPERS[parameter]
    return f"{name} {before}\n{source.replace('conv_backward', name)}\n{after}"


def _require_once(meanings: dict[str, str | None], name: str) -> None:
    seen: dict[str, str] = {}
    for parameter, meaning in meanings.items():
        if meaning is not None and meaning in seen:
            raise Misuse(
                f"{name}: both `{seen[meaning]}` and `{parameter}` look like {meaning}; rename one "
                f"({meaning} is the clearest name for it)"
            )
        if meaning is not None:
            seen[meaning] = parameter


def _require_operands(target: str | None, taken: Sequence[str], name: str) -> None:
    for operand in _OPERANDS[target] if target is not None else ():
        if operand not in taken:
            what = "the output" if target == "output" else f"grad_{target}"
            raise Misuse(
                f"{name} has no parameter for {operand}, and {what} is made from "
                f"{' and '.join(_OPERANDS[target])}; say another --target"
            )


def _target(taken: Sequence[str], name: str) -> str | None:
    """What a function with these arguments computes; None where it may be any gradient."""
    has = set(taken)
    if "grad_output" not in has:
        if {"x", "weight"} <= has:
            return "output"
        raise Misuse(
            f"{name} takes neither grad_output (for a gradient) nor x and weight (for the "
            "forward pass); its parameters are not called so? Then say --style and --target"
        )
    if {"x", "weight"} <= has:
        return _hint(name)
    if "x" in has:
        return "weight"
    return "input" if "weight" in has else "bias"


def _hint(name: str) -> str | None:
    found = [target for target, words in _HINTS.items() if re.search(words, name.lower())]
    return found[0] if len(found) == 1 else None


def torch_or_misuse() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise Misuse(
            "--tensors torch needs PyTorch, which this Python does not have: " + install("torch")
        ) from None
    return torch
