"""``convgrad check``: somebody's own function against the definition, with the reason in words."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from ..checks import CAUSES, LAWS
from . import files
from .load import load, own_frames
from .side_by_side import followed, tell_difference
from .snippet import ledger_command, snippet
from .styles import STYLES, TARGETS
from .subject import Outcome, Subject, find_out, right_answer
from .trials import PLAIN, Trial, easy_to_hard
from .verdict import (
    DECIDING,
    Verdict,
    broken_laws,
    notes,
    passes_with_ones,
    verdict_on,
    where_it_strikes,
)
from .words import MISUSE, RIGHT, WRONG, Misuse, Voice, plural

__all__ = ["HELP", "add_to", "run"]

HELP = "judge your own backward function, or gradients that you saved, and say what is wrong"

_DESCRIPTION = """\
Calls your function on random convolutions, from easy to hard, compares with the definition and
says in words what is wrong, on the smallest convolution that shows it. The function may be
called in one of two styles, which its parameter names tell:

  geometry   grad_weight(grad_output, x, geometry)      grad_bias(grad_output, geometry)
             grad_input(grad_output, weight, geometry)  forward(x, weight, geometry)
  keywords   backward(grad_output, x, weight, *, stride, padding, dilation, groups)
             -> (grad_input, grad_weight, grad_bias), or one of them

What your function has no parameter for (groups, say) is not tried on it. Arrays are small whole
numbers in NumPy arrays or PyTorch tensors. Raise NotImplementedError for what you do not do.

A FILE.npz holds the arrays x, weight and grad_output, what is to be checked (grad_input,
grad_weight, grad_bias, or y for the output), and the options stride, padding, dilation, groups
and padding_mode where they are not the default, each under its name:
  np.savez("saved.npz", x=x, weight=w, grad_output=g, grad_weight=mine, stride=2, padding=(1, 0))
"""
_EXAMPLES = """\
examples:
  convgrad check mine:grad_weight                a function in mine.py, in this folder
  convgrad check mine:backward --target input    only its grad_input
  convgrad check lab/mine.py:grad_weight --seed 7 --count 100
  convgrad check torch.nn.grad:conv2d_weight --tensors torch
  convgrad check saved.npz                       arrays x, weight, grad_output and grad_weight, ...

exit status: 0 right, 1 a wrong gradient, 2 the command could not be carried out
"""

# How many of the last trials, the hardest, the laws are tried on.
_LAW_TRIALS = 5


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help=HELP,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="module:function|FILE.npz", help="what to check")
    parser.add_argument("--target", choices=TARGETS, help="check this gradient (or the output)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    parser.add_argument(
        "--count", type=int, default=40, help="how many convolutions to try (default 40)"
    )
    parser.add_argument("--style", choices=STYLES, help="how to call it, where names do not tell")
    parser.add_argument(
        "--tensors", choices=("numpy", "torch"), help="what to pass (default: what it can take)"
    )
    parser.add_argument(
        "--dtype", choices=("float64", "float32"), default="float64", help="(default float64)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="take remarks (dtype, empty batch, ...) for mistakes"
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print one line for each mistake, or nothing"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    voice = Voice(options.quiet)
    if options.what.endswith(".npz"):
        return files.check(options.what, options.target, voice)
    if options.count < 1 or options.seed < 0:
        raise Misuse("--count must be at least 1 and --seed at least 0")
    subject = find_out(
        load(options.what),
        options.style,
        options.target,
        options.tensors,
        Trial(PLAIN, options.seed, options.dtype),
    )
    limits = subject.convention.limits()
    trials = list(easy_to_hard(limits, options.count, options.seed, options.dtype))
    _introduce(subject, trials, options.what, voice)
    outcomes = [subject.judge(trial) for trial in trials]
    statuses, told = [], False
    remarks: dict[str, list[str]] = {}  # what is said, and of which gradients
    for target in subject.targets:
        verdict = verdict_on(subject, target, [each[target] for each in outcomes])
        voice.say()
        if not verdict.tried:
            voice.insist(f"{_name(target)}: refuses every convolution (NotImplementedError).")
            statuses.append(MISUSE)
        elif verdict.failed and verdict.cause is None and told:
            failed = f"{len(verdict.failed)} of {plural(len(verdict.tried), 'convolution')}"
            voice.say(f"{_name(target)}: WRONG on {failed}, where the function raised an error.")
            statuses.append(WRONG)
        elif verdict.failed:
            told = told or verdict.cause is None  # one call, one error for all gradients
            _tell(subject, verdict, options.what, voice)
            statuses.append(WRONG)
        else:
            statuses.append(_praise(subject, verdict, options, voice, remarks))
    _tell_remarks(remarks, len(subject.targets), voice)
    return max(statuses, key=(RIGHT, MISUSE, WRONG).index)


def _introduce(subject: Subject, trials: Sequence[Trial], what: str, voice: Voice) -> None:
    convention = subject.convention
    tensors = " with PyTorch tensors" if convention.tensors == "torch" else ""
    voice.say(
        f"Checking {what}, called{tensors} as {convention.spelled(subject.loaded.name)} "
        f"(style {convention.style}), for {_and([_name(target) for target in subject.targets])}."
    )
    limits = convention.limits()
    without = [
        name.replace("_", " ")
        for name in ("stride", "padding", "dilation", "groups")
        if not getattr(limits, name)
    ]
    if without:
        voice.say(f"It has no parameter for {_and(without, 'or')}, so that is not tried.")
    if not limits.pairs:
        voice.say("It takes one number for both axes, not a pair, so pairs are not tried.")
    voice.say(
        f"{plural(len(trials), 'random convolution')}, from easy to hard, with seed "
        f"{trials[0].seed}."
    )


# ---- right -----------------------------------------------------------------------------------


def _praise(
    subject: Subject,
    verdict: Verdict,
    options: argparse.Namespace,
    voice: Voice,
    remarks: dict[str, list[str]],
) -> int:
    """All values are right: what the laws say, which look at more than values."""
    target, name = verdict.target, _name(verdict.target)
    hardest = [each.trial for each in verdict.tried][-_LAW_TRIALS:]
    broken = broken_laws(subject, target, hardest, list(dict.fromkeys([*DECIDING, *LAWS])))
    if "operands_untouched" in broken:  # it spoils what the other laws are judged by
        broken = {"operands_untouched": broken["operands_untouched"]}
    wrong = [law for law in broken if law in DECIDING or options.strict]
    refused = len(verdict.outcomes) - len(verdict.tried)
    refusals = f" ({refused} more it refused with NotImplementedError)" if refused else ""
    if not wrong:
        voice.say(f"{name}: right on all {plural(len(verdict.tried), 'convolution')}{refusals}.")
        kept = [law for law in DECIDING if law not in broken]
        if target != "output":
            voice.say(f"It obeys the laws {_and([_law(law) for law in kept])}.", indent=2)
    if wrong:
        law, *others = wrong
        trial, how = broken[law]
        voice.insist(f"{name}: WRONG. {_broken(law, how)}")
        voice.say(f"On {trial.geometry.describe()}, seed {trial.seed}.", indent=2)
        if others:
            voice.say(f"It also breaks {_and([_law(other) for other in others])}.", indent=2)
    for law in notes(list(broken)):
        if law not in wrong:
            remarks.setdefault(_broken(law, broken[law][1]), []).append(name)
    return WRONG if wrong else RIGHT


def _tell_remarks(remarks: dict[str, list[str]], targets: int, voice: Voice) -> None:
    """Each once, however many gradients it is about."""
    for remark, names in remarks.items():
        voice.say()
        voice.say(f"Remark{f' on {_and(names)}' if targets > 1 else ''}: {remark}")
    if remarks:
        voice.say("A remark does not count as a mistake, unless you add --strict.")


def _broken(law: str, how: str) -> str:
    return f'It breaks the law "{LAWS[law].sentence.rstrip(".")}" ({_law(law)}): {how}.'


def _law(name: str) -> str:
    return name.replace("_", " ")


# ---- wrong -----------------------------------------------------------------------------------


def _tell(subject: Subject, verdict: Verdict, what: str, voice: Voice) -> None:
    target, name, example = verdict.target, _name(verdict.target), verdict.example
    assert example is not None
    failed, tried = len(verdict.failed), len(verdict.tried)
    on = f"on {example.trial.geometry.describe()}"
    if voice.quiet:
        why = _raised(example)
        if example.explanation is not None:
            why = followed(example.explanation.sentence, _ledger(target, example))
        voice.insist(f"{what}: {name} is wrong {on}, seed {example.trial.seed}: {why}")
        return
    voice.say(f"{name}: WRONG on {failed} of {plural(tried, 'convolution')}.")
    _tell_where(verdict, voice)
    if verdict.cause not in (None, "unknown"):
        explains = _of(verdict.fitting, failed)
        voice.say(f"Cause: {CAUSES[str(verdict.cause)]}. It explains {explains}.", indent=2)
    if verdict.others:
        others = ", ".join(f"{_cause(name)} ({n})" for name, n in verdict.others.items())
        voice.say(f"The others: {others}. Mend this one first, then check again.", indent=2)
    voice.say()
    voice.say(f"The smallest that shows it: {example.trial.geometry.describe()}.", indent=2)
    if example.explanation is None:
        voice.say(_raised(example), indent=2)
        assert example.raised is not None
        voice.show(own_frames(example.raised))
    else:
        voice.say(example.explanation.sentence, indent=2)
        _show_values(subject, verdict, voice)
        _tell_laws(subject, verdict, voice)
    voice.say()
    voice.say("To see it yourself:", indent=2)
    voice.show(snippet(subject, target, example.trial))
    if command := _ledger(target, example):
        voice.say("The products of that cell, one by one:", indent=2)
        voice.show(command)


def _ledger(target: str, example: Outcome) -> str:
    """The command that lists the products of the first wrong cell, where there is one."""
    cell = example.explanation.cell if example.explanation is not None else None
    # it lists gradients only, and draws whole numbers
    if cell is None or target == "output" or example.trial.form == "quarters":
        return ""
    return ledger_command(target, example.trial, cell)


def _tell_where(verdict: Verdict, voice: Voice) -> None:
    features, exactly = where_it_strikes(verdict)
    if exactly:
        voice.say(f"It goes wrong with {_and(features)}, each time, and never without.", indent=2)
    elif features:
        voice.say(f"Every convolution that went wrong has {_and(features[:2])}.", indent=2)


def _cause(name: str) -> str:
    """A cause in words; what is none is the name of an error."""
    words = CAUSES.get(name, f"raised {name}")
    return "no cause that is known" if words == CAUSES["unknown"] else words


def _of(fitting: int, failed: int) -> str:
    if fitting < failed:
        return f"{fitting} of the {failed} failures"
    return "the failure" if failed == 1 else f"all {failed} failures"


def _raised(outcome: Outcome) -> str:
    lines = str(outcome.raised).strip().splitlines() or [""]
    told = f"Your function raised {type(outcome.raised).__name__}: {lines[0]}"
    return told.rstrip(": .") + "."


def _show_values(subject: Subject, verdict: Verdict, voice: Voice) -> None:
    """Both answers side by side, where they are small: the map that holds the first wrong cell."""
    example, target = verdict.example, verdict.target
    assert example is not None and example.explanation is not None
    cell = example.explanation.cell
    if cell is None:
        return
    draw = example.trial.draw()
    yours = np.asarray(subject.answers(draw)[target])
    right = right_answer(target, example.trial.draw())
    tell_difference(_name(target), yours, right, example.explanation, voice)


def _tell_laws(subject: Subject, verdict: Verdict, voice: Voice) -> None:
    example, target = verdict.example, verdict.target
    assert example is not None
    names = ("adjoint", "directional_difference")
    broken = {}
    if verdict.cause == "unknown":  # a cause that is known says more than a law
        broken = broken_laws(subject, target, [example.trial], names)
    if broken:
        law, (_, how) = next(iter(broken.items()))
        voice.say()
        voice.say(_broken(law, how), indent=2)
    if passes_with_ones(subject, target, example.trial):
        voice.say(
            "With a grad_output of ones, which is what y.sum().backward() sends, it would have "
            "looked right.",
            indent=2,
        )


def _name(target: str) -> str:
    return "output" if target == "output" else f"grad_{target}"


def _and(words: Sequence[str], joint: str = "and") -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"
