"""The teacher's page: how the class did, what was missed and why, and what is worth a look."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from ..extras import needs
from .course import Course, CourseError
from .findings import CellFindings, cells_of
from .grading import Graded, read_rows

__all__ = ["report"]

_PALETTE = json.loads(resources.files("convgrad").joinpath("palette.json").read_text("utf-8"))
_STYLE = resources.files(__package__).joinpath("report.css").read_text("utf-8")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report(course: str | Path) -> Path:
    """Write ``report.html``: points, cells, mistakes and what is worth a look, for the teacher.

    And ``grades.csv`` once more, with what was graded by hand since.

    One file, without scripts, that asks for nothing and can be printed.

    Parameters
    ----------
    course : str or pathlib.Path
        The folder, graded before.

    Returns
    -------
    pathlib.Path
        The page.

    Raises
    ------
    CourseError
        For a folder in which nothing was graded.
    ModuleNotFoundError
        Without nbgrader and jupytext, with the command that installs them.

    Examples
    --------
    >>> report("no-such-course")
    Traceback (most recent call last):
        ...
    convgrad.classroom.course.CourseError: no-such-course: there is no such folder
    """
    place = Course.at(course)
    with needs("classroom", "convgrad report"):
        from .gradebook import write_csv

        rows = read_rows(place.root)
    if not rows:
        raise CourseError(f"{course}: nothing is graded here yet; convgrad grade does it")
    path = place.root / "report.html"
    fresh = path.with_suffix(".new")
    fresh.write_text(page(rows, place.root.name), encoding="utf-8")
    os.replace(fresh, path)
    write_csv(place.root / "grades.csv", [row.row for row in rows])  # by hand, since grading
    return path


def page(rows: Sequence[Graded], title: str) -> str:
    """The whole page as text."""
    names = list(dict.fromkeys(row.assignment for row in rows))
    parts = [_assignment(name, [row for row in rows if row.assignment == name]) for name in names]
    contents = "".join(f'<li><a href="#a-{_text(n)}">{_text(n)}</a></li>' for n in names)
    head = f"{title}: how the class did"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex">'
        f"<title>{_text(head)}</title><style>{_colours()}{_STYLE}</style></head><body>"
        f'<header><h1>{_text(head)}</h1><p class="muted">For the teacher: it names students.</p>'
        f'<nav aria-label="Assignments"><ul>{contents}</ul></nav></header>'
        f"<main>{''.join(parts)}</main></body></html>\n"
    )


def _colours() -> str:
    def block(theme: str) -> str:
        return "".join(
            f"--{name.replace('_', '-')}:{some[theme]};" for name, some in _PALETTE.items()
        )

    light, dark = block("light"), block("dark")
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def _assignment(name: str, rows: list[Graded]) -> str:
    came = [row for row in rows if row.status != "nothing handed in"]
    cells = cells_of(rows)
    odd = [row for row in came if row.status != "graded"]
    flagged = [row for row in came if row.flags]
    waiting = sum(row.to_grade_by_hand for row in came)
    facts = [f"{len(came)} of {len(rows)} handed in"]
    if came:
        facts.append(f"half of them have {_number(_median([row.points for row in came]))} points")
        facts[-1] += f" of {_number(came[0].of)} or more"
    if waiting:
        facts.append(f"{_plural(waiting, 'answer waits', 'answers wait')} for a grade by hand")
    if odd:
        facts.append(f"{len(odd)} could not be graded as usual")
    parts = [
        f'<section aria-labelledby="a-{_text(name)}"><h2 id="a-{_text(name)}">{_text(name)}</h2>',
        f"<p>{_text('; '.join(facts))}.</p>",
        _points(name, came),
        _right(name, cells),
        _mistakes(cells),
        _odd(odd),
        _flagged(flagged),
        _everybody(rows),
        "</section>",
    ]
    return "".join(parts)


# ---- pictures --------------------------------------------------------------------------------


def _points(name: str, rows: list[Graded]) -> str:
    """How many have how many points."""
    if not rows:
        return ""
    most = max(row.of for row in rows)
    step = max(1, math.ceil(most / 12))
    counts = [0] * (math.ceil(most / step) + (most % step == 0))
    for row in rows:
        counts[min(len(counts) - 1, int(row.points // step))] += 1
    labels = [
        _number(k * step) if step == 1 else f"{k * step}–{_number(min(most, k * step + step - 1))}"
        for k in range(len(counts))
    ]
    width, height, foot = 44, 120, 22
    tallest = max(counts)
    bars = []
    for k, (label, count) in enumerate(zip(labels, counts, strict=True)):
        tall = height * count / tallest
        x, y = k * width + 5, height - tall + 18
        middle = x + width / 2 - 5
        bars.append(
            f'<rect class="bar" x="{x}" y="{y:.1f}" width="{width - 10}" height="{tall:.1f}"/>'
            f'<text x="{middle}" y="{y - 5:.1f}">{count or ""}</text>'
            f'<text x="{middle}" y="{height + 18 + 15}">{_text(label)}</text>'
        )
    table = _table(
        ("points", "students"), [(a, str(b)) for a, b in zip(labels, counts, strict=True)]
    )
    return _figure(
        f"p-{name}",
        "Points",
        f"how many students have how many points, from 0 to {_number(most)}",
        f"0 0 {width * len(counts)} {height + 18 + foot}",
        "".join(bars),
        table,
        width * len(counts),
    )


def _right(name: str, cells: list[CellFindings]) -> str:
    """Which cells were right, a bar each: full, part, none, waiting."""
    if not cells:
        return ""
    row, left, length = 30, 150, 300
    drawn = []
    for k, cell in enumerate(cells):
        y, x = k * row + 4, float(left)
        drawn.append(f'<text class="end" x="{left - 8}" y="{y + 16}">{_text(cell.name)}</text>')
        for kind in ("right", "part", "none", "waiting"):
            count = getattr(cell, kind)
            wide = length * count / cell.count
            if count:
                drawn.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="22"/>'
                )
            if wide > 18:
                drawn.append(
                    f'<text class="on-{kind}" x="{x + wide / 2:.1f}" y="{y + 16}">{count}</text>'
                )
            x += wide
    head = ("cell", "points", "all", "some", "none", "wait for a grade")
    body = [(c.name, _number(c.of), *map(str, (c.right, c.part, c.none, c.waiting))) for c in cells]
    legend = (
        '<p class="legend"><span class="key right"></span>all points '
        '<span class="key part"></span>some <span class="key none"></span>none '
        '<span class="key waiting"></span>waiting for a grade by hand</p>'
    )
    return _figure(
        f"c-{name}",
        "Which cells were right",
        "for each graded cell, how many students have all its points, some, none, or wait",
        f"0 0 {left + length + 4} {row * len(cells) + 4}",
        "".join(drawn),
        _table(head, body),
        left + length + 4,
        legend,
    )


def _figure(
    key: str, title: str, says: str, box: str, inner: str, table: str, width: int, legend: str = ""
) -> str:
    key = _text(key)
    return (
        f'<h3>{title}</h3><figure><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{title}, a picture"><svg role="img" aria-labelledby="{key}" '
        f'viewBox="{box}" style="width:{width}px"><title id="{key}">{_text(says)}</title>{inner}'
        f"</svg></div>{legend}<details><summary>The same as a table</summary>{table}</details>"
        "</figure>"
    )


# ---- words -----------------------------------------------------------------------------------


def _mistakes(cells: list[CellFindings]) -> str:
    parts = []
    for cell in cells:
        if not cell.mistakes:
            continue
        items = "".join(
            f"<li>{_text(mistake.said)}<details><summary>"
            f"{_plural(len(mistake.students), 'student')}</summary>"
            f"<p>{_text(', '.join(mistake.students))}</p></details></li>"
            for mistake in cell.mistakes
        )
        parts.append(f"<h4>{_text(cell.name)}</h4><ul>{items}</ul>")
    if not parts:
        return ""
    return f"<h3>What the tests said</h3>{''.join(parts)}"


def _odd(rows: list[Graded]) -> str:
    if not rows:
        return ""
    body = [(row.student, row.status, row.reason) for row in rows]
    return f"<h3>Not graded as usual</h3>{_table(('student', 'status', 'reason'), body)}"


def _flagged(rows: list[Graded]) -> str:
    if not rows:
        return ""
    items = "".join(
        f"<li><strong>{_text(row.student)}</strong><ul>"
        + "".join(f"<li>{_text(flag)}</li>" for flag in row.flags)
        + "</ul></li>"
        for row in rows
    )
    return (
        "<h3>Worth a look</h3><p>Nothing of this takes points away: read the notebook, and ask."
        f"</p><ul>{items}</ul>"
    )


def _everybody(rows: list[Graded]) -> str:
    body = [
        (
            row.student,
            f"{_number(row.points)} of {_number(row.of)}",
            row.status,
            "; ".join(filter(None, [row.reason, *row.notes])),
        )
        for row in rows
    ]
    table = _table(("student", "points", "status", "notes"), body)
    return f"<h3>Everybody</h3>{table}"


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{_text(each)}</th>' for each in head)
    rows = "".join(
        f'<tr><th scope="row">{_text(first)}</th>'
        + "".join(f"<td>{_text(each)}</td>" for each in rest)
        + "</tr>"
        for first, *rest in body
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(", ".join(head))}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _text(text: str) -> str:
    return html.escape(str(text), quote=True)


def _number(value: float) -> str:
    return f"{value:g}"


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
