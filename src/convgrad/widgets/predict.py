"""Predict: "what number stands here?", asked and checked in the page.

The question, the hints, the right answer and the sentences for known mistakes are fixed when the
widget is made; ``js/predict.js`` checks an answer against them without a kernel.  With a live
kernel the reader's ``answer``, ``correct`` and ``attempts`` arrive in Python.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..geometry import ShapeError
from .base import Explorable, traitlets
from .prose import inline, paragraphs

if TYPE_CHECKING:
    from ..exercises import Exercise
    from ..exercises.base import Asked

__all__ = ["Predict", "Table"]


@dataclass(frozen=True)
class Table:
    """A grid of numbers in the picture above a question.

    Attributes
    ----------
    values : array_like
        Rows and columns; axes of length 1 in front are dropped.
    colour : str
        A key of the palette: "x", "kernel", "grad_output" or "result".
    title : str
        Stands above the grid, in Markdown.
    lit : collection of pairs
        The cells (row, column) the question is about.
    hidden : collection of pairs
        Those that show a question mark instead of their number.

    Examples
    --------
    >>> "<th" in Table([[1, 2]], "kernel", "w", lit=[(0, 1)]).html()
    True
    """

    values: Any
    colour: str = "x"
    title: str = ""
    lit: Collection[tuple[int, int]] = ()
    hidden: Collection[tuple[int, int]] = ()

    def html(self) -> str:
        rows = _matrix(self.values, f"the table {self.title!r}")
        head = "".join(f'<th scope="col">{column}</th>' for column in range(rows.shape[1]))
        body = "".join(
            f'<tr><th scope="row">{row}</th>{"".join(self._cell(row, *at) for at in enumerate(r))}'
            "</tr>"
            for row, r in enumerate(rows)
        )
        caption = f"<caption>{inline(self.title)}</caption>" if self.title else ""
        colour = html.escape(self.colour.replace("_", "-"))
        return (
            f'<table class="cg-ask-table" style="--role:var(--cg-{colour});'
            f'--role-soft:var(--cg-{colour}-soft)">'
            f"{caption}<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def _cell(self, row: int, column: int, value: float) -> str:
        lit = ' class="cg-ask-lit"' if (row, column) in self.lit else ""
        return f"<td{lit}>{'?' if (row, column) in self.hidden else number_text(value)}</td>"


class Predict(Explorable):
    """One question with one right answer: a number, a grid of numbers, or a choice.

    The kind follows from what is given.  All words are Markdown, with formulas between dollars.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    question : str
        What is asked.
    solution : number, array_like or int
        A number: one field; ``-3``, ``1.5`` and ``3/4`` can be typed.  A 2-D array (axes of length
        1 in front are dropped): a grid to fill in.  With ``choices``, the place of the right one,
        counted from 0.
    title : str, default "Predict"
        Stands above the question.
    choices : sequence of str, optional
        The answers to choose from.
    hints : iterable of str, optional
        Shown one after the other, when asked for.
    explanation : str, optional
        What is said to the right answer.
    mistakes : mapping or iterable of pairs, optional
        Wrong answers, each with a sentence for it; pairs where an answer is an array.
    picture : iterable of Table and str, optional
        Below the question: a row of tables and of signs such as "·".
    given : array_like of bool, optional
        For a grid: the cells that stand there from the beginning.
    axes : pair of str, default ("row", "column")
        For a grid: what rows and columns are called in sentences, for a kernel ("i", "j").
    name : str, optional
        For a grid: stands above it and says what is filled in, "y" or "grad_weight".
    labels : sequence of str, optional
        For a grid of one row: plain words above its boxes, ("rows", "columns").
    tolerance : float, default 0.0
        How far off an answer may be.  Whole numbers are compared exactly; others may always be
        off by 1e-9 of their size, so that 1/3 is right for a third.
    key : str, optional
        Under which the reader's browser keeps progress.  By default a hash of the question, so
        that a changed question starts anew.
    **kwargs
        Traits of an ipywidgets widget, such as ``layout``.

    Attributes
    ----------
    kind : str
        "number", "grid" or "choice".
    answer : number, list or None
        What the reader gave; None before.
    correct : bool
        Whether that was right.
    attempts : int
        How many answers were given.

    Raises
    ------
    ShapeError
        For arrays and labels that do not fit.
    ValueError
        For a choice that is not there, a mistake that is the right answer, a name without a grid.

    Examples
    --------
    >>> question = Predict("What is $2 + 3$?", 5, hints=["Count on your fingers."])
    >>> question.kind, question.answer, question.correct
    ('number', None, False)
    """

    _bundle = "predict"
    _equipped = False  # what a reader answered is nobody else's, and there are no knobs

    kind = traitlets.Enum(("number", "grid", "choice"), "number").tag(sync=True)
    title = traitlets.Unicode("Predict").tag(sync=True)
    question = traitlets.Unicode().tag(sync=True)
    choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    solution = traitlets.Any().tag(sync=True)
    given = traitlets.List(traitlets.List(traitlets.Bool())).tag(sync=True)
    axes = traitlets.List(traitlets.Unicode(), ["row", "column"]).tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tolerance = traitlets.Float(0.0).tag(sync=True)
    mistakes = traitlets.List(traitlets.Dict()).tag(sync=True)
    hints = traitlets.List(traitlets.Unicode()).tag(sync=True)
    explanation = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)

    # what the reader does
    answer = traitlets.Any(None, allow_none=True).tag(sync=True)
    correct = traitlets.Bool(False).tag(sync=True)
    attempts = traitlets.Int(0).tag(sync=True)
    entry = traitlets.List(traitlets.Unicode()).tag(sync=True)  # what stands in the fields
    hints_shown = traitlets.Int(0).tag(sync=True)
    revealed = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        question: str,
        solution: Any,
        *,
        title: str = "Predict",
        choices: Sequence[str] | None = None,
        hints: Iterable[str] = (),
        explanation: str = "",
        mistakes: Mapping[Any, str] | Iterable[tuple[Any, str]] = (),
        picture: Iterable[Table | str] = (),
        given: Any = None,
        axes: tuple[str, str] = ("row", "column"),
        name: str = "",
        labels: Sequence[str] = (),
        tolerance: float = 0.0,
        key: str | None = None,
        **kwargs: Any,
    ) -> None:
        kind, plain = _plain(solution, choices)
        pairs = mistakes.items() if isinstance(mistakes, Mapping) else mistakes
        wrong = [
            {"answer": _fitting(answer, plain, choices), "message": inline(message)}
            for answer, message in pairs
        ]
        if any(each["answer"] == plain for each in wrong):
            raise ValueError("one of the mistakes is the right answer: take it out of mistakes")
        shown = _mask(given, plain) if given is not None else []
        if name and kind != "grid":
            raise ValueError(f"name is {name!r}: only a grid has one, and this is a {kind}")
        # a listing that is wider than the page scrolls, by keys too
        words = paragraphs(question).replace("<pre>", '<pre tabindex="0">')
        asked = f'<div class="cg-ask-question">{words}</div>{_picture(picture)}'
        super().__init__(
            kind=kind,
            title=title,
            question=asked,
            choices=[inline(choice) for choice in choices or ()],
            solution=plain,
            given=shown,
            axes=list(axes),
            name=inline(name),
            labels=_labels(labels, plain) if labels else [],
            tolerance=float(tolerance),
            mistakes=wrong,
            hints=[inline(hint) for hint in hints],
            explanation=paragraphs(explanation),
            key=key or _digest(question, plain),
            **kwargs,
        )
        self.fallback = _fallback(self)

    @classmethod
    def from_exercise(cls, exercise: Exercise, **kwargs: Any) -> Predict:
        """The question of an exercise of the bank.

        Arrays that its prompt writes out as text are drawn as tables.

        Parameters
        ----------
        exercise : Exercise
        **kwargs
            Go before what the exercise says: another ``picture``, the ``name`` of the grid,
            ``axes`` or ``labels``.

        Returns
        -------
        Predict

        Raises
        ------
        ValueError
            For an exercise whose answer is code or a formula: that one is checked in a cell, by
            ``exercise.check(...)``.
        """
        if exercise.in_page is None:
            raise ValueError(
                f"exercise {exercise.key!r} asks for a {exercise.kind}: a page without a kernel "
                f"can check numbers, grids and choices; check this one in a cell"
            )
        asked = cast("Asked", exercise)  # as all of these kinds are
        prompt, tables = _lift_tables(asked.prompt)
        options = {
            "picture": tables,
            "title": f"Predict · {asked.title}",
            "choices": asked.choices or None,
            "hints": asked.hints,
            "explanation": asked.explanation,
            "mistakes": asked.mistakes,
            # what was answered to other numbers is no answer to these
            "key": asked.key if asked.seed is None else f"{asked.key}~{asked.seed}",
        }
        return cls(prompt, asked.answer, **{**options, **kwargs})


# ---- answers as plain numbers and lists -----------------------------------------------------


def _plain(solution: Any, choices: Sequence[str] | None) -> tuple[str, Any]:
    """The kind of a question and its right answer, as JSON has it."""
    if choices is not None:
        if solution not in range(len(choices)):
            raise ValueError(
                f"the right choice is {solution!r}: needed is its place, 0 to {len(choices) - 1}"
            )
        return "choice", int(solution)
    if np.ndim(solution) == 0:
        return "number", _number(solution)
    return "grid", [[_number(cell) for cell in row] for row in _matrix(solution, "the solution")]


def _fitting(answer: Any, solution: Any, choices: Sequence[str] | None) -> Any:
    """A mistake's answer in the form of the right one."""
    _, plain = _plain(answer, choices)
    if np.shape(plain) != np.shape(solution):
        raise ShapeError(
            f"a mistake has shape {np.shape(plain)}, the solution {np.shape(solution)}: "
            "needed are equal ones"
        )
    return plain


def _matrix(values: Any, what: str) -> np.ndarray:
    """A 2-D array; leading axes of length 1, as in (1, 1, KH, KW), are dropped."""
    array = np.asarray(values, dtype=np.float64)
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2 or array.size == 0:
        raise ShapeError(
            f"{what} has shape {np.shape(values)}: needed is a table of rows and columns; "
            "take one channel of it, for example array[0, 0]"
        )
    return array


def _mask(given: Any, solution: Any) -> list[list[bool]]:
    mask = np.asarray(given, dtype=bool)
    if mask.shape != np.shape(solution):
        raise ShapeError(
            f"given has shape {mask.shape}, the solution {np.shape(solution)}: "
            "needed are equal ones"
        )
    return mask.tolist()


def _labels(labels: Sequence[str], solution: Any) -> list[str]:
    if isinstance(labels, str) or np.shape(solution) != (1, len(labels)):
        raise ShapeError(
            f"labels are {labels!r}, the solution has shape {np.shape(solution)}: needed is a grid "
            "of one row and a label for each of its boxes"
        )
    return list(labels)


def _number(value: Any) -> float | int:
    """A Python number that JSON writes without a needless ``.0``; refuses inf and nan."""
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"an answer is {number}: a reader can only type finite numbers")
    return int(number) if number.is_integer() else number


def number_text(value: float) -> str:
    """As it stands in a grid: ``−3``, ``0.25``.

    >>> number_text(-3.0), number_text(0.25)
    ('−3', '0.25')
    """
    return f"{_number(value):.6g}".replace("-", "−")


def _digest(question: str, solution: Any) -> str:
    return hashlib.sha256(json.dumps([question, solution]).encode()).hexdigest()[:12]


# ---- arrays that a prompt writes out --------------------------------------------------------

_BLOCK = re.compile(r"```text\n(?P<arrays>.*?)\n```", re.DOTALL)
_COLOURS = {
    "x": "x",
    "weight": "kernel",
    "grad_output": "grad_output",
    "grad_weight": "result",
    "grad_input": "result",
}


def _lift_tables(prompt: str) -> tuple[str, list[Table]]:
    """A prompt without its blocks of arrays, and the arrays as tables.

    A block holds ``name = `` and a row of numbers, further rows below it, and an empty line
    before the next array.  An index behind the name, as in ``grad_output[0,1]``, is shown too.
    """
    tables = []
    for block in _BLOCK.finditer(prompt):
        for array in block["arrays"].split("\n\n"):
            name, numbers = array.split(" = ")
            rows = [list(map(float, line.split())) for line in numbers.splitlines()]
            tables.append(Table(rows, _COLOURS[name.partition("[")[0]], name))
    return _BLOCK.sub("", prompt).strip(), tables


# ---- what stands in the page without JavaScript, and on paper -------------------------------


def _picture(pieces: Iterable[Table | str]) -> str:
    drawn = [piece.html() if isinstance(piece, Table) else _sign(piece) for piece in pieces]
    return f'<div class="cg-ask-picture">{"".join(drawn)}</div>' if drawn else ""


def _sign(text: str) -> str:
    return f'<span class="cg-ask-sign">{inline(text)}</span>'


def _fallback(widget: Predict) -> str:
    """The question with blanks, of the same size as the live one so that nothing jumps."""
    form = {"number": _blank_number, "grid": _blank_grid, "choice": _blank_choice}[widget.kind]
    # the row of buttons, there only to keep its place
    controls = '<div class="cg-ask-controls cg-ask-ghost" aria-hidden="true"></div>'
    return (
        f'<div class="cg cg-predict"><p class="cg-ask-kicker">{html.escape(widget.title)}</p>'
        f"{widget.question}"
        f'<div class="cg-ask-form" data-kind="{widget.kind}">{form(widget)}{controls}</div>'
        "</div>"
    )


def _blank_number(widget: Predict) -> str:
    box = '<span class="cg-ask-box"></span>'
    return f'<span class="cg-ask-field"><span>Your answer</span>{box}</span>'


def _blank_choice(widget: Predict) -> str:
    rows = "".join(
        f'<li class="cg-ask-choice"><span class="cg-ask-dot"></span><span>{choice}</span></li>'
        for choice in widget.choices
    )
    return f'<ul class="cg-ask-choices">{rows}</ul>'


def _blank_grid(widget: Predict) -> str:
    rows = [
        [f"<td>{_box(widget, row, column, value)}</td>" for column, value in enumerate(values)]
        for row, values in enumerate(widget.solution)
    ]
    # a single row is a list of numbers: it may have labels and needs no places
    tall = len(rows) > 1
    corner, heads = ("<td></td>", range(len(rows[0]))) if tall else ("", widget.labels)
    named = "".join(f'<th scope="col">{html.escape(str(each))}</th>' for each in heads)
    head = f"<thead><tr>{corner}{named}</tr></thead>" if named else ""
    if tall:
        rows = [[f'<th scope="row">{row}</th>', *cells] for row, cells in enumerate(rows)]
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    apart = " cg-ask-apart" if widget.labels else ""  # boxes side by side instead of a grid
    caption = f"<caption>{widget.name}</caption>" if widget.name else ""
    return (
        f'<div class="cg-ask-scroll"><table class="cg-ask-blanks{apart}">'
        f"{caption}{head}<tbody>{body}</tbody></table></div>"
    )


def _box(widget: Predict, row: int, column: int, value: float) -> str:
    given = bool(widget.given) and widget.given[row][column]
    text = number_text(value) if given else ""
    long = " cg-ask-long" if len(text) > 4 else ""
    return f'<span class="cg-ask-box{long}"{" data-given" * given}>{text}</span>'
