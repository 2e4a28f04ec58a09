"""Which questions a sheet has: drawn one after the other until each is a good one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..dice import Dice
from .parts import Question, Table
from .topics import TOPICS, Kind, Topic

__all__ = ["ALL", "compose", "is_pleasant"]

ALL = "all"
_LARGEST = 99  # answers have at most two digits
_TRIES = 5000


def compose(topic: str, seed: int, level: int, count: int) -> tuple[Question, ...]:
    """The questions.  A longer sheet of the same seed begins with those of a shorter one."""
    order = _order(topic, seed, level)
    found: list[Question] = []
    for k in range(count):
        chosen, kind = order[k % len(order)]
        dice = Dice("convgrad", chosen.key, kind.__name__, seed, level, k)
        found.append(_draw(dice, chosen, kind, level, found))
    return tuple(found)


def _order(topic: str, seed: int, level: int) -> list[tuple[Topic, Kind]]:
    """Every kind of question once, topics and kinds taking turns."""
    if topic != ALL:
        return [(TOPICS[topic], kind) for kind in TOPICS[topic].kinds]
    dice = Dice("convgrad", topic, seed, level)
    hands = [(each, dice.shuffled(each.kinds)) for each in dice.shuffled(list(TOPICS.values()))]
    most = max(len(kinds) for _, kinds in hands)
    return [(each, kinds[k]) for k in range(most) for each, kinds in hands if k < len(kinds)]


def _draw(dice: Dice, topic: Topic, kind: Kind, level: int, before: list[Question]) -> Question:
    for _ in range(_TRIES):
        question = kind(dice, level)
        if question is None or not is_pleasant(question):
            continue
        if any((question.text, str(question.arrays)) == (q.text, str(q.arrays)) for q in before):
            continue
        return replace(question, topic=topic.key, kind=kind.__name__, level=level)
    raise RuntimeError(f"{topic.key}, {kind.__name__}, level {level}: no question came up")


def is_pleasant(question: Question) -> bool:
    """Whether its numbers are good for paper, and every mistake shows in the answer."""
    numbers = [question.answer, *(t.values for t in question.asks if isinstance(t, Table))]
    # without arrays nothing is added up: the number of weights, say, may have three digits
    small = not question.arrays or all(np.abs(each).max() <= _LARGEST for each in numbers)
    shows = all(not np.array_equal(m.result, question.answer) for m in question.mistakes)
    return small and shows and bool(np.any(question.answer))
