"""The function under judgement: called once a trial, its answer taken apart by gradient."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .. import loops, windows
from ..checks import Draw, Explanation, explain_difference, matching_causes
from ..geometry import ConvGeometry
from .load import Loaded
from .styles import Convention, read_signature, torch_or_misuse
from .trials import Trial
from .words import Misuse

__all__ = ["Outcome", "Subject", "find_out", "right_answer"]

GRADIENTS = ("input", "weight", "bias")  # the order in which PyTorch returns them


def right_answer(target: str, draw: Draw) -> np.ndarray:
    """What the definition gives."""
    geometry = draw.geometry
    if target == "output":
        return windows.forward(draw.x, draw.weight, geometry)
    rule: dict[str, Callable[..., np.ndarray]] = {
        "weight": windows.grad_weight,
        "input": windows.grad_input,
        "bias": loops.grad_bias,
    }
    return rule[target](*draw.operands(target), geometry)


class Outcome(NamedTuple):
    """What became of one gradient in one trial."""

    trial: Trial
    explanation: Explanation | None = None  # None where it raised
    causes: frozenset[str] = frozenset()  # every cause that fits
    raised: BaseException | None = None

    @property
    def right(self) -> bool:
        return self.explanation is not None and self.explanation.right

    @property
    def refused(self) -> bool:
        """It said itself that it does not do this; that is no mistake."""
        return isinstance(self.raised, NotImplementedError)


@dataclass(frozen=True)
class Subject:
    """A function, how it is called, and which gradients it is judged by."""

    loaded: Loaded
    convention: Convention
    targets: tuple[str, ...]
    kept: str  # how the answer holds them: "alone", "tuple" or "dict"

    def answers(self, draw: Draw) -> dict[str, Any]:
        """What it returns for each target; whatever it raises comes through."""
        returned = self.convention.call(self.loaded.function, draw)
        if self.kept == "alone":
            return {self.targets[0]: _as_array(returned)}
        parts = _parts(returned)
        return {target: _as_array(parts.get(target)) for target in self.targets}

    def judge(self, trial: Trial) -> dict[str, Outcome]:
        """One call, and the verdict on each target."""
        try:
            answers = self.answers(trial.draw())
        except (Exception, SystemExit) as trouble:
            return {target: Outcome(trial, raised=trouble) for target in self.targets}
        return {target: _compared(answers[target], target, trial) for target in self.targets}

    def rule(self, target: str) -> Callable[..., np.ndarray]:
        """The one gradient in the signature that the laws expect."""

        def rule(*given: Any) -> np.ndarray:
            *operands, geometry = given
            return _snapped(np.asarray(self.answers(_filled(target, operands, geometry))[target]))

        return rule

    @property
    def suffix(self) -> dict[str, str]:
        """What stands behind the call in source text to get at each gradient."""
        if self.kept == "alone":
            return dict.fromkeys(self.targets, "")
        if self.kept == "dict":
            return {target: f'["grad_{target}"]' for target in self.targets}
        return {target: f"[{GRADIENTS.index(target)}]" for target in self.targets}


def find_out(
    loaded: Loaded, style: str | None, target: str | None, tensors: str | None, first: Trial
) -> Subject:
    """How the function is called and what it returns, learned from one plain call.

    Where the signature leaves a choice (numbers or pairs, arrays or tensors) each is tried, and
    the first that does not raise is taken.  Raises :class:`Misuse` where the answer does not
    say which gradient it is.
    """
    if tensors == "torch":
        torch_or_misuse()
    convention = read_signature(loaded.function, loaded.name, style, target)
    guess = None
    for way in _ways(convention, loaded.function, tensors):
        guess = guess or way
        trial = replace(first, geometry=way.limits().within(first.geometry))
        try:
            returned = way.call(loaded.function, trial.draw())
        except (Exception, SystemExit):
            continue
        return Subject(loaded, way, *_told_apart(returned, way, target, trial, loaded.name))
    # it raises however it is called; the judgement will say so
    assert guess is not None
    return Subject(loaded, guess, (guess.target or "weight",), "alone")


def _ways(
    convention: Convention, function: Callable[..., Any], tensors: str | None
) -> Iterator[Convention]:
    """The convention with arrays or tensors, with pairs or numbers, the likelier first."""
    for kind in [tensors] if tensors else _kinds(function):
        yield replace(convention, tensors=kind)
        if convention.style == "keywords":
            yield replace(convention, tensors=kind, pairs=False)


def _kinds(function: Callable[..., Any]) -> Iterator[str]:
    """Arrays or tensors: PyTorch first where the function lives among its names."""
    names = getattr(function, "__globals__", {})
    at_home = str(getattr(function, "__module__", "")).startswith("torch") or any(
        getattr(value, "__name__", None) == "torch" for value in list(names.values())
    )
    if at_home:
        yield "torch"
    yield "numpy"
    if sys.modules.get("torch") and not at_home:  # the first call may have imported it
        yield "torch"


def _told_apart(
    returned: Any, way: Convention, asked: str | None, trial: Trial, name: str
) -> tuple[tuple[str, ...], str]:
    """Which gradients an answer holds, and how."""
    several = isinstance(returned, Mapping | tuple) or (
        isinstance(returned, list) and way.target is None
    )
    if not several:
        return (way.target or _by_shape(returned, trial, name),), "alone"
    kept = "dict" if isinstance(returned, Mapping) else "tuple"
    parts = _parts(returned)
    if way.target == "output" or (len(returned) == 1 and way.target):
        raise Misuse(
            f"{name} returns a {type(returned).__name__} of {len(returned)}: return the array "
            "itself, or three gradients, (grad_input, grad_weight, grad_bias)"
        )
    if not parts:
        raise Misuse(
            f"{name} returns a {type(returned).__name__} of {len(returned)}"
            f"{' with the keys ' + ', '.join(map(repr, returned)) if kept == 'dict' else ''}: "
            "needed are (grad_input, grad_weight, grad_bias) in this order, or a dict with these "
            "names, or one array"
        )
    geometry = trial.geometry
    shapes = [_shape(parts.get(target)) for target in GRADIENTS[:2]]
    if shapes == [geometry.weight_shape, geometry.x_shape]:
        raise Misuse(
            f"{name} returns grad_weight first and grad_input second, as their shapes tell: needed "
            "is (grad_input, grad_weight, grad_bias), the order of PyTorch"
        )
    if asked is not None:
        if asked not in parts:
            raise Misuse(f"{name} returns no grad_{asked} among its {len(returned)} results")
        return (asked,), kept
    computed = tuple(target for target in GRADIENTS if parts.get(target) is not None)
    if not computed:
        raise Misuse(f"{name} returns None for every gradient: does it compute one?")
    return computed, kept


def _parts(returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        return {t: returned[f"grad_{t}"] for t in GRADIENTS if f"grad_{t}" in returned}
    if isinstance(returned, tuple | list) and len(returned) in (2, 3):
        return dict(zip(GRADIENTS, returned, strict=False))
    return {}


def _by_shape(returned: Any, trial: Trial, name: str) -> str:
    """Which gradient one array is that does not say: the operand of its shape."""
    geometry = trial.geometry
    shape = _shape(returned)
    shapes = {geometry.x_shape: "input", geometry.weight_shape: "weight"}
    if shape is None:
        raise Misuse(f"{name} returns a {type(returned).__name__} that is no array of numbers")
    if shape not in shapes:
        raise Misuse(
            f"{name} returns one array of shape {shape} where x has {geometry.x_shape} and weight "
            f"{geometry.weight_shape}: say with --target which gradient it is"
        )
    return shapes[shape]


def _compared(answer: Any, target: str, trial: Trial) -> Outcome:
    draw = trial.draw()
    expected = right_answer(target, draw)
    known = draw._asdict() | {"target": target}
    explanation = explain_difference(answer, expected, **known)
    causes = {"right"} if explanation.right else matching_causes(answer, expected, **known)
    return Outcome(trial, explanation, frozenset(causes | {explanation.cause}))


def _as_array(answer: Any) -> Any:
    """A tensor as the array it holds; anything else as it is, for the explanation to judge."""
    if not any("detach" in vars(kind) for kind in type(answer).__mro__):
        return answer
    try:
        answer = answer.detach().cpu().resolve_conj()
        # NumPy has no bfloat16; float16 has more digits, and these numbers do not outgrow it
        return (answer.half() if str(answer.dtype) == "torch.bfloat16" else answer).numpy()
    except Exception:  # a sparse tensor, say
        return answer


def _shape(answer: Any) -> tuple[int, ...] | None:
    """Its shape as an array, if it has one."""
    try:
        return np.shape(_as_array(answer))
    except Exception:  # ragged lists, and whatever sits behind __array__
        return None


def _filled(target: str, operands: list[Any], geometry: ConvGeometry) -> Draw:
    """The operands of one gradient, with something in place of those it is not made from."""
    names = {"weight": ("grad_output", "x"), "input": ("grad_output", "weight")}
    given = dict(zip(names.get(target, ("grad_output",)), operands, strict=True))
    for name, shape in (("x", geometry.x_shape), ("weight", geometry.weight_shape)):
        given.setdefault(name, np.resize(np.array([1, -2, 3, 2, -1], operands[0].dtype), shape))
    return Draw(geometry, **given)


def _snapped(array: np.ndarray) -> np.ndarray:
    """Rounding taken off: on whole numbers and quarters every right sum is a sixteenth.

    The laws ask for equality, which a product by Fourier transform misses in the last digits.
    """
    if array.dtype.kind != "f" or not array.size:
        return array
    with np.errstate(all="ignore"):
        near = np.round(array * 16) / 16
        largest = np.max(np.abs(array), initial=1, where=np.isfinite(array))
        return np.where(np.abs(array - near) <= 1e-6 * largest, near, array).astype(array.dtype)
