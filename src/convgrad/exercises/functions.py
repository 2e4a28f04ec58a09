"""Exercises whose answer is a function: called on fresh random sizes, and told what went wrong.

The trials go from plain to rich: the first has nothing but a kernel, each of the next adds one
thing (a batch, channels, a stride …), the last ones mix everything.  The first trial that fails
so says which thing is missing.  grad_output is always random: with ones, half of the mistakes
pass.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..checks import explain_difference, one_thing_more, random_geometry
from ..checks.compare import NotNumbers, numbers, same
from ..geometry import ConvGeometry
from .base import Exercise, Verdict

__all__ = ["Function", "Trial", "geometries"]


@dataclass(frozen=True)
class Trial:
    """One call: its arguments, what it must return, and what an explanation needs to know."""

    arguments: tuple[Any, ...]
    expected: np.ndarray
    known: dict[str, Any]  # keywords of explain_difference; has "geometry" and "target"


_UNTOUCHED = (
    "The function returns nothing yet: replace the `...` by your code and `return` the result."
)

# Every check sees new numbers, and yet two builds of the book see the same ones.
_checks = itertools.count(1)


@dataclass(frozen=True)
class Function(Exercise):
    """The answer is a function, called on fresh random sizes.

    Attributes
    ----------
    trials : callable
        ``trials(rng)`` yields the calls that the function must survive, from plain to rich.
    slips : callable
        ``slips(trial)`` gives wrong answers that only this exercise invites, each with a sentence.

    Examples
    --------
    >>> from convgrad import exercises
    >>> def slide(x, w):
    ...     return x[:-1, :-1] * w[0, 0]
    >>> bool(exercises.get("window-slide").check(slide))
    False
    """

    kind: ClassVar[str] = "function"

    trials: Callable[[np.random.Generator], Iterator[Trial]] = field(kw_only=True, repr=False)
    slips: Callable[[Trial], Iterable[tuple[np.ndarray, str]]] = field(
        default=lambda trial: (), kw_only=True, repr=False
    )

    def _judge(self, answer: Any) -> Verdict:
        if not callable(answer):
            return self._wrong(self._needed())
        count = 0
        for trial in self.trials(np.random.default_rng(next(_checks))):
            complaint = self._try(answer, trial)
            if complaint == _UNTOUCHED:
                return self._open(complaint)
            if complaint is not None:
                return self._wrong(complaint)
            count += 1
        return self._right(f"Your function is right on {count} random convolutions.")

    def _needed(self) -> str:
        name = self.starter.partition("def ")[2].partition("(")[0]
        return f"A function is asked for: pass `{name}` itself, without brackets behind it."

    def _try(self, function: Callable[..., Any], trial: Trial) -> str | None:
        """What is wrong with this call, or None."""
        arguments = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in trial.arguments)
        on = f"On {trial.known['geometry'].describe()}"
        try:
            returned = function(*arguments)
        except (Exception, SystemExit) as trouble:
            return f"{on} your function raised {_told(trouble, function)}"
        if returned is None or returned is ...:
            return _UNTOUCHED
        for given, kept in zip(arguments, trial.arguments, strict=True):
            if isinstance(given, np.ndarray) and not np.array_equal(given, kept):
                return f"{on} your function changed one of its arguments: work on a copy."
        return self._compare(returned, trial, on)

    def _compare(self, returned: Any, trial: Trial, on: str) -> str | None:
        needed = trial.expected
        try:
            array = numbers(returned, "result")
        except NotNumbers as complaint:
            return str(complaint)
        if needed.ndim < 4 and array.ndim != needed.ndim:
            return (
                f"{on} your function returns an array of shape {array.shape}: needed is "
                f"{needed.shape}, one row for each row of the map."
            )
        for wrong, sentence in self.slips(trial):
            if same(array, wrong) and not same(wrong, needed):
                return f"{on}: {sentence}"
        # explanations speak of four axes; one image and one channel go in front of a plain map
        front = (1,) * (4 - needed.ndim)
        explanation = explain_difference(
            array.reshape((*front, *array.shape)),
            needed.reshape((*front, *needed.shape)),
            **trial.known,
        )
        if explanation.right:
            return None
        return f"{on}: {explanation.sentence[0].lower()}{explanation.sentence[1:]}"


def _told(trouble: BaseException, function: Callable[..., Any]) -> str:
    """The error in words, with the line of the reader's own function that it came from."""
    name = type(trouble).__name__
    try:
        message = _without_marks(str(trouble))
    except Exception:  # it is the reader's own class
        message = ""
    told = f"`{name}`: {message}" if message else f"`{name}`"
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{told}."
    frames = traceback.extract_tb(trouble.__traceback__)
    own = [frame for frame in frames if frame.filename == code.co_filename]
    if not own:
        return f"{told}."
    line = own[-1].lineno - code.co_firstlineno + 1
    source = f", `{_without_marks(own[-1].line)}`" if own[-1].line else ""
    return f"{told} (line {line} of the function{source})."


def _without_marks(text: str) -> str:
    """A verdict sets in type what stands between backticks; a reader's own would confuse it."""
    return text.replace("`", "'")


# ---- sizes to try --------------------------------------------------------------------------


def geometries(
    rng: np.random.Generator,
    *,
    only: Callable[[ConvGeometry], bool] = lambda geometry: True,
    mixed: int = 6,
) -> Iterator[ConvGeometry]:
    """From plain to rich, all with zero padding; those that ``only`` allows."""
    KH, KW = (int(k) for k in rng.permutation([2, 3]))
    H, W = (int(size) for size in rng.permutation([8, 9]))
    plain = ConvGeometry(C=1, H=H, W=W, O=1, KH=KH, KW=KW)
    for geometry in one_thing_more(plain):
        if geometry.padding_mode == "zeros" and only(geometry):
            yield geometry
    for _ in range(mixed):
        yield random_geometry(rng, only, padding_modes=("zeros",))
