"""What becomes of one number in memory to which several programs add, turn by turn.

To add to a number is two steps: read what is there, and write back the sum.  Each program has a
turn for either, and ``order`` says whose turn it is.  Nothing runs at the same time here, so the
same order gives the same steps again; on a GPU the order is nobody's to choose.

>>> [step.memory for step in additions([2, 4], order=[0, 0, 1, 1])]
[0, 2, 2, 6]
>>> [step.memory for step in additions([2, 4], order=[0, 1, 0, 1])]
[0, 0, 2, 4]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Step", "additions"]


class Step(NamedTuple):
    """One turn of one program.

    Attributes
    ----------
    program : int
        Whose turn it was.
    action : str
        "reads" or "writes".
    number : float
        What it read or wrote.
    memory : float
        What stands in memory afterwards.

    Examples
    --------
    >>> additions([2, 4], order=[0, 1, 0, 1])[-1]
    Step(program=1, action='writes', number=4, memory=4)
    """

    program: int
    action: str
    number: float
    memory: float


def additions(numbers: Sequence[float], order: Sequence[int]) -> list[Step]:
    """Each program adds its number to one place in memory, in two turns.

    Parameters
    ----------
    numbers : sequence of float
        What each program has to add.
    order : sequence of int
        Whose turn it is.  A program reads in its first turn and writes in its second.

    Returns
    -------
    list of Step
        Turn by turn; memory holds 0 at the beginning.

    Raises
    ------
    ValueError
        Unless each program has two turns.

    Examples
    --------
    >>> for step in additions([2, 4], order=[0, 1, 0, 1]):
    ...     print(*step)
    0 reads 0 0
    1 reads 0 0
    0 writes 2 2
    1 writes 4 4
    """
    if sorted(order) != sorted([*range(len(numbers))] * 2):
        raise ValueError(
            f"order={list(order)}: each of the programs 0 to {len(numbers) - 1} needs two turns, "
            "one to read and one to write"
        )
    return list(_turns(numbers, order))


def _turns(numbers: Sequence[float], order: Sequence[int]) -> Iterator[Step]:
    """What a program has read it holds, until its next turn comes."""
    memory: float = 0
    held: dict[int, float] = {}
    for program in order:
        if program not in held:
            held[program] = memory
            yield Step(program, "reads", memory, memory)
        else:
            # whatever was written since it read is lost
            memory = held[program] + numbers[program]
            yield Step(program, "writes", memory, memory)
