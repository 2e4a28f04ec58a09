"""What the answers to many trials have in common: the cause behind them, and where it strikes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..checks import LAWS, LawBroken
from .subject import Outcome, Subject, right_answer
from .trials import FEATURES, Trial, smallest

__all__ = [
    "DECIDING",
    "Verdict",
    "broken_laws",
    "notes",
    "passes_with_ones",
    "verdict_on",
    "where_it_strikes",
]

# Broken, these mean wrong numbers somewhere; the others are duties of a good function.
DECIDING = (
    "operands_untouched",
    "shape",
    "equals_loops",
    "adjoint",
    "directional_difference",
    "memory_layout",
)


@dataclass(frozen=True)
class Verdict:
    """One gradient, judged on all trials."""

    target: str
    outcomes: tuple[Outcome, ...]
    cause: str | None  # the one that fits most failures; None where it raised
    example: Outcome | None  # the smallest failure with that cause
    smaller: tuple[Outcome, ...] = ()  # the other failures met on the way to the smallest

    @property
    def tried(self) -> tuple[Outcome, ...]:
        return tuple(each for each in self.outcomes if not each.refused)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return tuple(each for each in self.tried if not each.right)

    @property
    def fitting(self) -> int:
        """How many failures the cause explains."""
        return sum(map(self._fits, self.failed))

    def _fits(self, outcome: Outcome) -> bool:
        return outcome.raised is not None if self.cause is None else self.cause in outcome.causes

    @property
    def others(self) -> dict[str, int]:
        """What else went wrong where the cause does not fit, and how often: causes and errors."""
        rest = [each for each in self.failed if not self._fits(each)]
        named = [
            type(each.raised).__name__ if each.explanation is None else each.explanation.cause
            for each in rest
        ]
        return dict(Counter(named).most_common())


def verdict_on(subject: Subject, target: str, outcomes: Sequence[Outcome]) -> Verdict:
    """The most common cause of the failures, and the smallest convolution that shows it.

    Where there are answers to compare they say more than an error does, unless nearly all
    trials end in an error.
    """
    verdict = Verdict(target, tuple(outcomes), None, None)
    if not verdict.failed:
        return verdict
    compared = [each for each in verdict.failed if each.explanation is not None]
    if 5 * len(compared) < len(verdict.failed):
        first = next(each for each in verdict.failed if each.raised is not None)
        kind = type(first.raised)

        return _with_smallest(verdict, subject, first, lambda outcome: type(outcome.raised) is kind)
    cause = _commonest(compared)
    first = next((each for each in compared if _named(each) == cause), compared[0])
    cause = _named(first)

    return _with_smallest(
        replace(verdict, cause=cause), subject, first, lambda outcome: _named(outcome) == cause
    )


def _with_smallest(
    verdict: Verdict, subject: Subject, first: Outcome, alike: Callable[[Outcome], bool]
) -> Verdict:
    """With the smallest trial that fails ``alike``, and what failed before it was found."""
    met: list[Outcome] = []

    def fails(trial: Trial) -> bool:
        outcome = subject.judge(trial)[verdict.target]
        if not outcome.right and not outcome.refused:
            met.append(outcome)
        return alike(outcome)

    trial = smallest(first.trial, fails, subject.convention.limits())
    example = subject.judge(trial)[verdict.target]
    return replace(verdict, example=example, smaller=(*met, example))


def _named(outcome: Outcome) -> str | None:
    return outcome.explanation.cause if outcome.explanation is not None else None


# What an explanation says that knows no cause.
_VAGUE = {"unknown", "wrong_shape", "low_precision", "not_numbers"}


def _commonest(failed: Sequence[Outcome]) -> str | None:
    """The cause that fits most of them; of several, the one named most often.

    A cause that is known goes before none, for on hard convolutions two mistakes may meet and
    hide each other; but it must fit the easiest failure or every fifth, not one by chance.
    """
    fits: Counter[str | None] = Counter(cause for each in failed for cause in each.causes)
    named = Counter(map(_named, failed))
    clear = [
        cause
        for cause in named
        if cause not in _VAGUE and (cause in failed[0].causes or 5 * fits[cause] >= len(failed))
    ]
    return max(clear or named, key=lambda cause: (fits[cause], named[cause]))


# What failures share is not told if they would share any property by chance as often as this.
_BY_CHANCE = 0.01 / len(FEATURES)
_EXACT_BY_CHANCE = 0.05  # what tells all failures from all successes is a fact about them


def where_it_strikes(verdict: Verdict) -> tuple[list[str], bool]:
    """Properties that every failure has; and whether no success has them all.

    The most telling first, and only those that each tell more failures from successes.  The
    failures met while shrinking speak against a property that the others share by chance.
    """
    failed = len(verdict.failed)
    passed = [each.trial for each in verdict.tried if each.right]
    shared = {
        name: has
        for name, has in FEATURES.items()
        if all(has(each.trial) for each in (*verdict.failed, *verdict.smaller))
    }
    chosen: list[str] = []
    while passed and shared:
        left = {name: list(filter(has, passed)) for name, has in shared.items()}
        best = min(left, key=lambda name: len(left[name]))
        # how likely so many trials, drawn at random, all have it
        chance = ((len(left[best]) + failed) / (len(passed) + failed)) ** failed
        if chance > (_BY_CHANCE if left[best] else _EXACT_BY_CHANCE):
            break
        chosen.append(best)
        passed = left[best]
    return chosen, bool(chosen) and not passed


def passes_with_ones(subject: Subject, target: str, trial: Trial) -> bool:
    """Whether a grad_output of ones, which y.sum().backward() sends, would have shown nothing."""
    if target == "output":
        return False
    draw = trial.draw()
    draw = draw._replace(grad_output=np.ones_like(draw.grad_output))
    try:
        answer = np.asarray(subject.answers(draw)[target])
    except Exception:
        return False
    expected = right_answer(target, draw)
    return answer.shape == expected.shape and bool(np.allclose(answer, expected))


def broken_laws(
    subject: Subject, target: str, trials: Sequence[Trial], names: Sequence[str]
) -> dict[str, tuple[Trial, str]]:
    """The laws out of ``names`` that the function breaks, each with where and how."""
    if target == "output":
        return {}  # the laws are about gradients
    with warnings.catch_warnings():
        # an empty batch and infinities make NumPy warn in functions that are right
        warnings.simplefilter("ignore")
        return _broken(subject, target, trials, names)


def _broken(
    subject: Subject, target: str, trials: Sequence[Trial], names: Sequence[str]
) -> dict[str, tuple[Trial, str]]:
    broken: dict[str, tuple[Trial, str]] = {}
    for name in names:
        for trial in trials:
            try:
                LAWS[name].check(
                    subject.rule(target), target, trial.geometry, np.random.default_rng(trial.seed)
                )
            except NotImplementedError:
                continue
            except LawBroken as how:
                broken[name] = trial, str(how)
                break
            except (Exception, SystemExit) as trouble:
                broken[name] = trial, f"raised {type(trouble).__name__}: {trouble}"
                break
    return broken


def notes(names: Sequence[str]) -> list[str]:
    """The laws whose breaking is worth a word, but does not make a gradient wrong."""
    return [name for name in names if name not in DECIDING]
