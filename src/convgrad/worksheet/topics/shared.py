"""Questions that several topics ask: one cell of a sum, all cells, a number that is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..draws import Case, in_words, table_of, tap_table
from ..parts import Line, Mistake, Question, Table
from ..spelled import longest, number, spelled, terms
from ..wrong import OF_INPUT, OF_WEIGHT, mistakes

__all__ = ["SUMS", "Sum", "all_cells", "missing_number", "one_cell", "setting"]


class Sum:
    """An array whose every cell is a sum of products: y, grad_weight or grad_input."""

    def __init__(self, target: str, label: str, letters: str, wrong: tuple[str, ...]) -> None:
        self.target, self.label, self.letters, self.wrong = target, label, letters, wrong

    def right(self, case: Case) -> np.ndarray:
        by_name = {"y": case.y, "weight": case.grad_weight, "input": case.grad_input}
        return by_name[self.target]

    def given(self, case: Case, level: int) -> tuple[Table, ...]:
        x = tap_table(case, level)
        w = table_of("w", case.weight[0, 0], "ij")
        g = table_of("g = ∂L/∂y", case.grad_output[0, 0], "pq")
        return {"y": (x, w), "weight": (x, g), "input": (w, g)}[self.target]

    def results(self, case: Case, cell: tuple[int | slice, ...]) -> Iterable[Mistake]:
        if self.target != "y":
            return mistakes(case, self.wrong, cell)
        return _of_forward(case, cell)

    def name(self, cell: tuple[int, int]) -> str:
        letter = {"y": "y", "weight": "∂L/∂w", "input": "∂L/∂x"}[self.target]
        return f"{letter}[{cell[0]},{cell[1]}]"


def _of_forward(case: Case, cell: tuple[int | slice, ...]) -> Iterable[Mistake]:
    """The output has no mutants in the package: its two usual mistakes exchange w's cells."""
    turned = replace(case, weight=case.weight[..., ::-1, ::-1])
    yield Mistake(
        np.asarray(turned.y[cell]),
        'Turns the kernel by 180° first, as "convolution" means in mathematics.',
    )
    if case.geometry.KH == case.geometry.KW:
        crossed = replace(case, weight=case.weight.swapaxes(2, 3))
        yield Mistake(np.asarray(crossed.y[cell]), "Exchanges rows and columns of the kernel.")


SUMS = {
    "y": Sum("y", "y", "pq", ()),
    "weight": Sum("weight", "∂L/∂w", "ij", OF_WEIGHT),
    "input": Sum("input", "∂L/∂x", "hv", OF_INPUT),
}


def setting(case: Case, target: str) -> str:
    """What stands at the head of such a question."""
    geometry = case.geometry
    kernel = f"A {geometry.KH}×{geometry.KW} kernel `w`" if target != "input" else "The kernel `w`"
    size = "" if target != "input" else f" of {geometry.H} rows and {geometry.W} columns"
    return f"{kernel} slides over `x`{size}: {in_words(geometry)}."


def one_cell(case: Case, target: str, cell: tuple[int, int], level: int) -> Question | None:
    """One number, from the cells that meet in it."""
    what = SUMS[target]
    at = (0, 0, *cell)
    count = len(list(terms(case, target, at)))
    if not 2 <= count <= 9:
        return None
    name = what.name(cell)
    return Question(
        title=f"One cell of {what.label}",
        text=(
            f"{setting(case, target)} Compute `{name}`: write down every product that belongs to "
            "it, then the sum.",
        ),
        given=what.given(case, level),
        asks=(Line(name, int(what.right(case)[at])),),
        answer=np.asarray(what.right(case)[at]),
        working=spelled(name, case, target, at),
        mistakes=tuple(what.results(case, at)),
        geometry=case.geometry,
        arrays=case.arrays(),
        about={"target": target, "cell": at},
        room=24,
    )


def all_cells(case: Case, target: str, level: int) -> Question | None:
    """The whole plane to fill in."""
    what = SUMS[target]
    right = what.right(case)[0, 0]
    if right.size > {1: 12, 2: 20, 3: 25}[level]:
        return None
    shown = longest(case, target)
    blank = np.ones(right.shape, bool)
    letters = (what.letters[0], what.letters[1])
    return Question(
        title=f"All of {what.label}",
        text=(f"{setting(case, target)} Fill in `{what.label}`.",),
        given=what.given(case, level),
        asks=(Table(what.label, right, letters, blank=blank),),
        answer=right,
        working=spelled(what.name(shown), case, target, (0, 0, *shown)),
        mistakes=tuple(what.results(case, (0, 0))),
        geometry=case.geometry,
        arrays=case.arrays(),
        about={"target": target},
        room=30,
    )


def missing_number(case: Case, target: str, cell: tuple[int, int], pick: int) -> Question | None:
    """The result is there, and one number of the second operand is covered."""
    what = SUMS[target]
    at = (0, 0, *cell)
    found = list(terms(case, target, at))
    if not 3 <= len(found) <= 9:
        return None
    hidden = found[pick % len(found)]
    # for y the kernel's number is covered, for the gradients g's
    covered, value, factor = (
        (hidden.left, hidden.a, hidden.b) if target == "y" else (hidden.right, hidden.b, hidden.a)
    )
    if factor == 0:
        return None
    index = [int(k) for k in covered[2:-1].split(",")]
    tables = list(what.given(case, 2))
    place = 1
    blank = np.zeros(tables[place].values.shape, bool)
    blank[tuple(index)] = True
    covered_table = tables[place]
    tables.pop(place)
    total = int(what.right(case)[at])
    name = what.name(cell)
    rest = total - hidden.a * hidden.b
    return Question(
        title="A number is missing",
        text=(
            f"{setting(case, target)} You know that `{name} = {number(total)}`, and one number of "
            f"`{covered[0]}` is not there. Find it.",
        ),
        given=tuple(tables),
        asks=(
            Table(covered_table.label, covered_table.values, covered_table.letters, blank=blank),
            Line(covered, value),
        ),
        answer=np.asarray(value),
        working=(
            f"{name} = {' + '.join(t.names for t in found)}",
            f"The products that are known come to {number(rest)}, so "
            f"{number(factor)}·{covered} = {number(total)} − {_bracketed(rest)} = "
            f"{number(total - rest)}, and {covered} = {number(value)}",
        ),
        mistakes=(
            Mistake(
                np.asarray(total - rest),
                f"Gives the product, and does not divide by {number(factor)}.",
            ),
        )
        if factor != 1 and value != 0
        else (),
        geometry=case.geometry,
        arrays=case.arrays(),
        about={"target": target, "cell": at, "covered": tuple(index), "letter": covered[0]},
        room=26,
    )


def _bracketed(value: int) -> str:
    return f"({number(value)})" if value < 0 else number(value)
