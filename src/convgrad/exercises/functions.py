"""Exercises whose answer is a function: called on fresh random sizes, and told what went wrong.

The trials go from plain to rich: the first has nothing but a kernel, each of the next adds one
thing (a batch, channels, a stride …), the last ones mix everything.  The first trial that fails
so says which thing is missing.  grad_output is always random: with ones, half of the mistakes
pass.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..checks import explain_difference, one_thing_more, random_geometry
from ..checks.compare import NotNumbers, numbers, same
from ..dice import Dice
from ..geometry import ConvGeometry
from .base import Exercise, Verdict

__all__ = ["Function", "Trial", "geometries"]


@dataclass(frozen=True)
class Trial:
    """One call: its arguments, what it must return, and what an explanation needs to know.

    A function that returns several gradients has as many arrays in ``expected``, and as many
    names under "target".  ``mistakes`` are wrong results that have a sentence of their own.
    ``on`` says what it was tried on, where that is no convolution.
    """

    arguments: tuple[Any, ...]
    expected: np.ndarray | tuple[np.ndarray, ...]
    known: dict[str, Any]  # keywords of explain_difference; has "geometry" and "target"
    mistakes: tuple[tuple[np.ndarray, str], ...] = ()
    on: str = ""


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

    def _judge(self, answer: Any) -> Verdict:
        if not callable(answer):
            return self._wrong(self._needed())
        count = 0
        for trial in self.trials(self._rng()):
            complaint = self._try(answer, trial)
            if complaint == _UNTOUCHED:
                return self._open(complaint)
            if complaint is not None:
                return self._wrong(complaint)
            count += 1
        return self._right(f"Your function is right on {count} random convolutions.")

    def _rng(self) -> np.random.Generator:
        """New numbers for every check; with a seed, the seed's."""
        number = next(_checks) if self.seed is None else Dice(self.key, self.seed).between(0, 2**40)
        return np.random.default_rng(number)

    def _needed(self) -> str:
        name = self.starter.partition("def ")[2].partition("(")[0]
        return f"A function is asked for: pass `{name}` itself, without brackets behind it."

    def _try(self, function: Callable[..., Any], trial: Trial) -> str | None:
        """What is wrong with this call, or None."""
        arguments = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in trial.arguments)
        on = f"On {trial.on or trial.known['geometry'].describe()}"
        try:
            returned = function(*arguments)
        except NotImplementedError:  # what nbgrader puts where the answer goes
            return _UNTOUCHED
        except (Exception, SystemExit) as trouble:
            return f"{on} your function raised {_told(trouble, function)}"
        if returned is None or returned is ...:
            return _UNTOUCHED
        for given, kept in zip(arguments, trial.arguments, strict=True):
            if isinstance(given, np.ndarray) and not np.array_equal(given, kept):
                return f"{on} your function changed one of its arguments: work on a copy."
        if isinstance(trial.expected, tuple):
            return self._compare_several(returned, trial, trial.expected, on)
        return self._compare(returned, trial.expected, trial, on)

    def _compare_several(
        self, returned: Any, trial: Trial, expected: tuple[np.ndarray, ...], on: str
    ) -> str | None:
        """The first complaint about one of several results, or None."""
        targets = trial.known["target"]
        names = ", ".join(f"grad_{target}" for target in targets)
        needed = f"needed are {len(targets)}, {names}, in this order"
        if not isinstance(returned, tuple | list):
            try:
                shape = numbers(returned, "result").shape
            except NotNumbers as complaint:
                return str(complaint)
            return f"{on} your function returns one array, of shape {shape}: {needed}."
        if len(returned) != len(expected):
            return f"{on} your function returns {len(returned)} results: {needed}."
        for part, right, target in zip(returned, expected, targets, strict=True):
            alone = replace(trial, known=trial.known | {"target": target})
            said = self._compare(part, right, alone, on)
            if said is not None:
                return said
        return None

    def _compare(self, returned: Any, needed: np.ndarray, trial: Trial, on: str) -> str | None:
        try:
            array = numbers(returned, "result")
        except NotNumbers as complaint:
            return str(complaint)
        if not same(array, needed):
            for wrong, sentence in trial.mistakes:
                if same(array, wrong):
                    return f"{on}: {sentence}"
        plain = needed.ndim < 4 and trial.known["target"] != "bias"
        if plain and array.ndim != needed.ndim:
            rows = "map" if trial.known["target"] else "table"
            return (
                f"{on} your function returns an array of shape {array.shape}: needed is "
                f"{needed.shape}, one row for each row of the {rows}."
            )
        # explanations speak of an image's four axes, or of the one of a bias
        front = (1,) * (4 - needed.ndim) if plain and trial.known["target"] else ()
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
