"""How far somebody has come: kept in a file of their own, and only if they ask for it.

    from convgrad import exercises
    mine = exercises.progress.keep("progress.json")   # from now on, every check is noted
    mine                                              # what is right, tried and open

The book's page *Your progress* exports and imports the same file.  It is JSON::

    {
      "format": "convgrad-progress",
      "version": 1,
      "exercises": {
        "weight-one-tap": {"state": "right", "attempts": 2, "hints": 1},
        "museum-break": {"state": "tried", "attempts": 1, "score": 0.64, "seed": "ada"}
      }
    }

``state`` is "right", "shown" (the page showed the answer) or "tried"; an exercise that is not
there is open.  ``attempts`` counts the answers, ``hints`` the hints that were looked at.  ``score``
stands where an exercise counts parts, ``seed`` where the numbers were a learner's own, and
``page`` is what the book's page needs to fill in the fields again.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .base import Exercise, Verdict, told

__all__ = ["STATES", "Progress", "Record", "keep", "load", "stop"]

FORMAT, VERSION = "convgrad-progress", 1
#: From the least to the most.
STATES = ("tried", "shown", "right")
_LARGEST = 4_000_000  # bytes of a file


@dataclass(frozen=True)
class Record:
    """What is known of one exercise.

    Attributes
    ----------
    state : str
        "right", "shown" or "tried".
    attempts : int
        How many answers were given.
    hints : int
        How many hints were looked at, in a page.
    score : float or None
        The best share, where an exercise counts parts.
    seed : str or None
        Whose numbers it asked about; None for the book's.
    page : mapping or None
        What a page keeps beside it, for itself.

    Examples
    --------
    >>> Record("tried", attempts=1).better(Record("right", attempts=3)).state
    'right'
    """

    state: str
    attempts: int = 0
    hints: int = 0
    score: float | None = None
    seed: str | None = None
    page: Mapping[str, Any] | None = None

    def better(self, other: Record) -> Record:
        """The one that came further; of two alike, the one with more attempts."""
        return max(self, other, key=lambda each: (STATES.index(each.state), each.attempts))

    def as_dict(self) -> dict[str, Any]:
        """As it stands in a file: what there is to say, and nothing else."""
        return {name: value for name, value in vars(self).items() if value not in (None, 0)}


@dataclass
class Progress:
    """The exercises that somebody has tried, and how they ended.

    A notebook shows it as a table by chapters.

    Attributes
    ----------
    records : dict of str to Record
        By the keys of the exercises.

    Examples
    --------
    >>> from convgrad import exercises
    >>> mine = Progress()
    >>> exercise = exercises.get("weight-how-many")
    >>> mine.note(exercise, exercise.check(6))
    >>> mine.note(exercise, exercise.check(12))
    >>> record = mine.records["weight-how-many"]
    >>> record.state, record.attempts
    ('right', 2)
    """

    records: dict[str, Record] = field(default_factory=dict)

    def note(self, exercise: Exercise, verdict: Verdict) -> None:
        """Count an answer.

        Parameters
        ----------
        exercise : Exercise
        verdict : Verdict
            What ``exercise.check(...)`` said; one that was not begun is not counted.
        """
        if verdict.untouched:
            return
        before = self.records.get(exercise.key, Record("tried"))
        solved = verdict.passed or before.state == "right"
        scores = [each for each in (before.score, verdict.share) if each is not None]
        self.records[exercise.key] = replace(
            before,
            state="right" if solved else before.state,
            attempts=before.attempts + 1,
            score=max(scores, default=None),
            seed=exercise.seed,
        )

    def state(self, key: str) -> str:
        """The state of an exercise, "open" where nothing is known of it."""
        return self.records[key].state if key in self.records else "open"

    def merge(self, other: Progress) -> None:
        """Take over what another one knows better.

        Parameters
        ----------
        other : Progress
            From a page, or from another machine.
        """
        for key, record in other.records.items():
            self.records[key] = record.better(self.records.get(key, record))

    def as_dict(self) -> dict[str, Any]:
        """What :meth:`save` writes."""
        kept = {key: self.records[key].as_dict() for key in sorted(self.records)}
        return {"format": FORMAT, "version": VERSION, "exercises": kept}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, as a whole or not at all.

        Parameters
        ----------
        path : path
        """
        target = Path(path)
        beside = target.with_name(f".{target.name}.new")
        beside.write_text(json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n", "utf-8")
        beside.replace(target)

    def __repr__(self) -> str:
        count = dict.fromkeys(reversed(STATES), 0)
        for record in self.records.values():
            count[record.state] += 1
        said = ", ".join(f"{number} {state}" for state, number in count.items() if number)
        return f"<Progress: {said or 'nothing tried yet'}>"

    def _repr_markdown_(self) -> str:
        from . import all_exercises  # the bank is made of modules that know this one

        rows = ["| chapter | right | tried | open |", "|---|:-:|:-:|:-:|"]
        chapters: dict[str, list[str]] = {}
        for each in all_exercises():
            chapters.setdefault(each.chapter, []).append(self.state(each.key))
        for chapter, states in chapters.items():
            tried = states.count("tried") + states.count("shown")
            numbers = states.count("right"), tried, states.count("open")
            rows.append(f"| {chapter.replace('_', ' ')} | {' | '.join(map(str, numbers))} |")
        return "\n".join(rows)


def load(path: str | os.PathLike[str]) -> Progress:
    """The progress that a file keeps, from a notebook or from the book's page.

    Parameters
    ----------
    path : path

    Returns
    -------
    Progress

    Raises
    ------
    ValueError
        For a file that is none, with what is wrong in it.
    OSError
        For one that cannot be read.

    Examples
    --------
    >>> load("nowhere.json")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    FileNotFoundError: [Errno ...] No such file or directory: 'nowhere.json'
    """
    with open(path, "rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"{path} is larger than a progress file can be: was another one meant?")
    try:
        return _read(json.loads(content))
    except (ValueError, RecursionError) as trouble:
        if isinstance(trouble, _NotProgress):
            raise ValueError(f"{path} {trouble}") from None
        raise ValueError(
            f"{path} is no JSON file: needed is one that `progress.save` or the book's page wrote"
        ) from None


class _NotProgress(ValueError):
    """What is wrong with a file, to stand behind its name."""


def _read(content: Any) -> Progress:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _NotProgress(f'is no progress file: it should say "format": "{FORMAT}"')
    if content.get("version") != VERSION:
        raise _NotProgress(
            f"has version {content.get('version')!r}, and this package reads {VERSION}: "
            "take a newer convgrad"
        )
    kept = content.get("exercises")
    if not isinstance(kept, dict):
        raise _NotProgress('lacks "exercises", which holds a record for each key')
    return Progress({str(key): _record(str(key), each) for key, each in kept.items()})


def _record(key: str, given: Any) -> Record:
    if not isinstance(given, dict) or given.get("state") not in STATES:
        raise _NotProgress(f"says of {key[:60]!r} neither of the states {', '.join(STATES)}")
    counts = {name: given.get(name, 0) for name in ("attempts", "hints")}
    for name, count in counts.items():
        if type(count) is not int or not 0 <= count < 10**9:
            raise _NotProgress(f"says of {key[:60]!r} {name} {count!r}: needed is a whole number")
    score, seed, page = (given.get(name) for name in ("score", "seed", "page"))
    good = score is None or (type(score) in (int, float) and 0 <= score <= 1)
    if not good or not isinstance(seed, str | None) or not isinstance(page, dict | None):
        raise _NotProgress(f"has a score, seed or page for {key[:60]!r} that cannot be read")
    return Record(given["state"], **counts, score=score, seed=seed, page=page)


# ---- while it is kept ------------------------------------------------------------------------

_kept: tuple[Progress, Path] | None = None


def keep(path: str | os.PathLike[str]) -> Progress:
    """Note every check from now on, in a file that is written anew each time.

    A file that is there already goes on being filled.

    Parameters
    ----------
    path : path
        Where to; nothing is written anywhere else, and nothing before this call.

    Returns
    -------
    Progress

    Raises
    ------
    ValueError
        When another kind of file is there.
    OSError
        When nothing can be written there.

    Examples
    --------
    >>> import tempfile, os
    >>> from convgrad import exercises
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mine = keep(os.path.join(folder, "progress.json"))
    ...     verdict = exercises.get("weight-how-many").check(12)
    ...     stop()
    >>> mine
    <Progress: 1 right>
    """
    global _kept
    target = Path(path)
    progress = load(target) if target.exists() else Progress()
    progress.save(target)  # or say now that it cannot be
    _kept = progress, target
    if _note not in told:
        told.append(_note)
    return progress


def stop() -> None:
    """Note nothing any more; the file stays as it is.

    Examples
    --------
    >>> stop()
    """
    global _kept
    _kept = None
    with contextlib.suppress(ValueError):
        told.remove(_note)


def _note(exercise: Exercise, verdict: Verdict) -> None:
    if _kept is None:
        return
    progress, path = _kept
    progress.note(exercise, verdict)
    try:
        progress.save(path)
    except OSError as trouble:
        warnings.warn(f"your progress was not written to {path}: {trouble}", stacklevel=3)
