"""Break the gradient: the answer is a test, and it is graded by the wrong gradients it notices.

Wrong gradients there are plenty, ``convgrad.mutants``.  A test that says "wrong" to each of them
and "right" to every right one is as good as a test can be; most let a good part of them through.

The test is called by its verdict with rules it cannot tell apart by name, right and wrong ones in
an order of their own.  It may raise, return nonsense or call its rule for ever: what it does is
counted, and a rule that is asked too often or too long answers no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..api import IMPLEMENTATIONS
from ..dice import Dice
from ..mutants import MUTANTS
from .base import Exercise, Verdict
from .functions import _UNTOUCHED, _told

__all__ = ["FAMILIES", "BreakTheGradient"]

#: Every wrong gradient of the weight and of the input, by what goes wrong in it.
FAMILIES: dict[str, tuple[str, ...]] = {
    "turned or exchanged": (
        "wgrad_reversed",
        "wgrad_g_turned",
        "wgrad_g_transposed",
        "wgrad_g_reshaped",
        "wgrad_transposed",
        "wgrad_no_transpose",
        "dgrad_no_flip",
        "dgrad_g_turned",
    ),
    "images, kernels and sums": (
        "wgrad_images_mixed",
        "wgrad_batch_kept",
        "wgrad_last_image",
        "wgrad_batch_mean",
        "wgrad_position_mean",
        "buffer_prefilled",
        "col2im_assign",
        "fancy_plus_equals",
        "avg_fold",
        "dgrad_last_kernel",
    ),
    "stride, dilation and what is left over": (
        "wgrad_no_crop",
        "swap_stride_dilation",
        "wgrad_ignore_dilation",
        "dgrad_no_leftover",
        "ignore_dilation",
    ),
    "the border": (
        "wgrad_ignores_padding",
        "wgrad_shifted",
        "pad_twice",
        "wgrad_zero_border",
        "kernel_clipped_to_input",
        "dgrad_shifted",
        "dgrad_border_lost",
        "same_pad_left",
        "full_pad_negative",
        "width_from_height",
        "circular_axis_swapped",
    ),
    "groups": ("group_interleaved", "depthwise_mod", "group_transpose_flat"),
    "memory and types": (
        "assume_contiguous_gy",
        "write_through_view",
        "fp16_running_sum",
        "reshape_minus_one",
        "ravel_weight",
        "dgrad_dilated_multiply",
        "zeros_like_int",
    ),
}

_CALLS, _SECONDS = 3000, 4.0  # for one rule; all of them together get the whole time
_WHOLE_TIME = 40.0
_RIGHT_WAYS = ("windows", "im2col", "correlate", "grouped")


class _Enough(BaseException):
    """Raised in a test that asks its rule too often; no ``except Exception`` holds it."""


@dataclass(frozen=True)
class _Seen:
    """What a test said of one rule."""

    noticed: bool
    trouble: str = ""  # what it raised, in words
    stopped: bool = False


@dataclass(frozen=True)
class BreakTheGradient(Exercise):
    """The answer is a test of gradients: a function, or a list of them.

    It is called with a rule, which it may call as often as it likes, and says ``True`` where
    something is wrong.  An error that it raises, as an ``assert`` does, says so too.

    Attributes
    ----------
    target : str
        Which gradient it tests: "weight" or "input".
    share : float
        What share of the wrong gradients it has to notice.
    explanation : str
        What is said to a test that notices enough.

    Examples
    --------
    >>> from convgrad import exercises
    >>> exercises.get("check-break").check(lambda grad_input: False).score
    0.0
    """

    kind: ClassVar[str] = "test"

    target: str = field(kw_only=True)
    share: float = field(kw_only=True)
    explanation: str = field(kw_only=True, repr=False)

    def families(self) -> dict[str, list[str]]:
        """The wrong gradients of this target, by family."""
        found = {
            family: [name for name in names if MUTANTS[name].target == self.target]
            for family, names in FAMILIES.items()
        }
        return {family: names for family, names in found.items() if names}

    def _judge(self, answer: Any) -> Verdict:
        tests = list(answer) if isinstance(answer, list | tuple) else [answer]
        if not tests or not all(map(callable, tests)):
            return self._wrong(self._needed())
        seen: dict[str, _Seen] = {}
        began = time.monotonic()
        for name, rule in self._rules():
            if time.monotonic() - began > _WHOLE_TIME:
                return self._wrong(
                    f"Your test takes too long: after {_WHOLE_TIME:g} seconds it had judged "
                    f"{len(seen)} rules. Take smaller arrays, and fewer of them."
                )
            said = _ask(tests, rule)
            if said is None:
                return self._open(_UNTOUCHED)
            if isinstance(said, str):
                return self._wrong(said)
            seen[name] = said
            if name in _RIGHT_WAYS and (said.noticed or said.stopped):
                return self._wrong(_alarm(said))
        return self._graded(seen)

    def _rules(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Right and wrong ones, in an order that a test cannot know."""
        right = {
            name: getattr(IMPLEMENTATIONS[name], f"grad_{self.target}") for name in _RIGHT_WAYS
        }
        wrong = {
            name: MUTANTS[name].function for names in self.families().values() for name in names
        }
        dice = Dice(self.key, "the book" if self.seed is None else self.seed)
        for name in dice.shuffled([*right, *wrong]):
            yield name, right.get(name) or wrong[name]

    def _graded(self, seen: dict[str, _Seen]) -> Verdict:
        families = self.families()
        count = sum(map(len, families.values()))
        missed = [name for names in families.values() for name in names if not seen[name].noticed]
        listed = "; ".join(
            f"{family} {sum(seen[name].noticed for name in names)} of {len(names)}"
            for family, names in families.items()
        )
        share = 1 - len(missed) / count
        told = (
            f"Your test raises no false alarm, and notices {count - len(missed)} of {count} wrong "
            f"gradients: {listed}."
        )
        if missed:
            dice = Dice(self.key, self.seed, len(missed))
            sentence = MUTANTS[dice.one_of(missed)].sentence
            told += f" One of those that it lets pass {sentence[0].lower()}{sentence[1:]}"
        if share >= self.share:
            return Verdict(True, f"{told} {self.explanation}".strip(), share=share)
        return Verdict(False, told, self.hints, share=share)

    def _needed(self) -> str:
        return (
            "A test is asked for: a function that takes a rule and returns `True` where something "
            "is wrong with it, or a list of such functions. Pass it itself, without brackets."
        )


def _ask(tests: Sequence[Callable[..., Any]], rule: Callable[..., Any]) -> _Seen | str | None:
    """What the tests say of a rule; a sentence where they answer nonsense; None for nothing."""
    for test in tests:
        gradient, over = _watched(rule)
        try:
            with np.errstate(all="ignore"):
                said = test(gradient)
        except _Enough:
            return _Seen(False, stopped=True)
        except (Exception, SystemExit) as trouble:
            if over():
                return _Seen(False, stopped=True)
            return _Seen(True, _told(trouble, test))
        if said is ...:
            return None
        if said is None:
            continue  # a test of asserts that all held
        if not isinstance(said, bool | np.bool_):
            return (
                f"Your test returns something of type `{type(said).__name__[:40]}`: needed is "
                "`True` where something is wrong, and `False` where nothing is."
            )
        if said:
            return _Seen(True)
    return _Seen(False)


def _watched(
    rule: Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[[], bool]]:
    """A rule without its name, which answers for a while; and whether that is over."""
    calls, end = 0, time.monotonic() + _SECONDS

    def over() -> bool:
        return calls > _CALLS or time.monotonic() > end

    def gradient(*operands: Any, **options: Any) -> Any:
        """A gradient rule."""
        nonlocal calls
        calls += 1
        if over():
            raise _Enough
        return rule(*operands, **options)

    return gradient, over


def _alarm(said: _Seen) -> str:
    """What is said of a test that is wrong about a right gradient."""
    if said.stopped:
        return (
            f"Your test called its rule more than {_CALLS} times, or for more than "
            f"{_SECONDS:g} seconds, and was stopped. A few small arrays show more than many."
        )
    if said.trouble:
        return (
            f"A false alarm: on a gradient that is right your test raised {said.trouble} An error "
            "counts as an alarm. Do the arrays fit the geometry that you hand over?"
        )
    return (
        "A false alarm: a gradient that is right was called wrong, and then nothing counts that "
        "was noticed. Right ones may add in another order, and so differ by rounding. Draw whole "
        "numbers, whose sums are exact, or allow for rounding."
    )
