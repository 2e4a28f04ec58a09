"""A sheet and its key as HTML: one file each, without scripts, that asks for nothing."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from importlib import resources

import numpy as np

from .layout import SIZES, pages, width
from .parts import Choices, Line, Listing, Mistake, Question, Table
from .spelled import number

__all__ = ["key_html", "sheet_html"]

_STYLE = resources.files(__package__).joinpath("sheet.css").read_text("utf-8")
# the squares of an exercise book, light enough to write over
_SQUARES = (
    '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><pattern id="squares" '
    'width="5mm" height="5mm" patternUnits="userSpaceOnUse"><path d="M0 0H20M0 0V20" '
    'stroke="#c4c8cd" stroke-width="0.6" fill="none"/></pattern></defs></svg>'
)
_ROOM = (
    '<svg class="room" aria-hidden="true" style="min-height:{room}mm">'
    '<rect width="100%" height="100%" fill="url(#squares)"/></svg>'
)


def sheet_html(questions: Sequence[Question], title: str, reminder: str, about: str) -> str:
    """The sheet: empty cells, lines and squared paper."""
    parts, count = pages(questions, reminder), 0
    bodies = []
    for k, part in enumerate(parts):
        head = _sheet_head(title, reminder, about) if k == 0 else _running(title)
        inner = ""
        for question in part:
            count += 1
            inner += _question(question, count, solved=False)
        bodies.append(
            f'<div class="page">{head}{inner}'
            f'<p class="foot">{_text(about)} · page {k + 1} of {len(parts)}</p></div>'
        )
    return _document(f"{title}: worksheet", "sheet", _SQUARES + "".join(bodies), about)


def key_html(questions: Sequence[Question], title: str, about: str, command: str) -> str:
    """The key: the same questions, answers filled in, sums spelled out, usual mistakes named."""
    head = (
        f'<header class="head"><p class="book">{_BOOK}</p><h1>{_text(title)}: answer key</h1>'
        f'<p class="about">{_text(about)}</p>'
        f"<p>Sheet and key come again with <code>{_text(command)}</code></p></header>"
    )
    inner = "".join(_question(each, k, solved=True) for k, each in enumerate(questions, 1))
    foot = (
        f'@page{{@bottom-left{{content:"{about}"}}'
        '@bottom-right{content:"page " counter(page) " of " counter(pages)}}'
    )
    return _document(f"{title}: answer key", "key", f"{head}{inner}", about, foot)


_BOOK = "The Backward Pass of Conv2d"


def _document(title: str, kind: str, body: str, about: str, style: str = "") -> str:
    sizes = "".join(f"--{name}:{size:g}mm;" for name, size in SIZES.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="description" content="{_text(about)}">\n'
        f"<title>{_text(title)}</title>\n<style>\n:root{{{sizes}}}\n{_STYLE}{style}</style>\n</head>\n"
        f'<body class="{kind}">\n<main>{body}</main>\n</body>\n</html>\n'
    )


def _sheet_head(title: str, reminder: str, about: str) -> str:
    rule = f'<p class="reminder"><b>Remember</b> {_text(reminder)}</p>' if reminder else ""
    return (
        f'<header class="head"><div class="top"><p class="book">{_BOOK}</p>'
        '<p class="who"><span>Name <i class="write"></i></span>'
        '<span>Date <i class="write short"></i></span></p></div>'
        f"<h1>{_text(title)}</h1>{rule}</header>"
    )


def _running(title: str) -> str:
    return f'<p class="running">{_text(title)}<span>Name <i class="write"></i></span></p>'


def _question(question: Question, count: int, solved: bool) -> str:
    text = "".join(f"<p>{_marked(each)}</p>" for each in question.text)
    tables = [_table(table, solved=False) for table in question.given]
    tables += [_table(ask, solved) for ask in question.asks if isinstance(ask, Table)]
    body = f'<div class="tables">{"".join(tables)}</div>' if tables else ""
    body += "".join(_choices(ask, solved) for ask in question.asks if isinstance(ask, Choices))
    body += "".join(_listing(ask, solved) for ask in question.asks if isinstance(ask, Listing))
    lines = [ask for ask in question.asks if isinstance(ask, Line)]
    written = "".join(_line(ask, solved) for ask in lines)
    written = f'<div class="lines">{written}</div>' if lines else ""
    if solved:
        body += written + _working(question) + _mistakes(question)
    elif question.room:
        body += _ROOM.format(room=question.room) + written
    else:
        body += written
    return (
        f'<section class="question" aria-labelledby="q{count}"><h2 id="q{count}">'
        f'<span class="count">{count}</span> {_text(question.title)}</h2>{text}{body}</section>'
    )


# ---- parts -----------------------------------------------------------------------------------


def _table(table: Table, solved: bool) -> str:
    columns = "".join(f'<th scope="col">{_text(name)}</th>' for name in table.column_names)
    rows, across = table.letters
    corner = f"{_text(rows)}\\{_text(across)}" if rows and across else ""
    body = ""
    for k, name in enumerate(table.row_names):
        cells = "".join(_cell(table, (k, col), solved) for col in range(table.values.shape[1]))
        body += f'<tr><th scope="row">{_text(name)}</th>{cells}</tr>'
    to_fill = table.blank is not None
    state = ' <span class="unfilled">to fill in</span>' if to_fill and not solved else ""
    kind = " answer" if to_fill else ""
    return (
        f'<div class="part" style="min-width:{width(table):g}mm"><table class="grid{kind}">'
        f"<caption>{_text(table.label)}{state}</caption><thead><tr>"
        f'<td class="corner">{corner}</td>{columns}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(table: Table, at: tuple[int, int], solved: bool) -> str:
    value = number(float(table.values[at]))
    if table.blank is not None and table.blank[at]:
        return f'<td class="blank"><b>{value}</b></td>' if solved else '<td class="blank"></td>'
    if table.circled is not None and table.circled[at] and solved:
        hidden = '<span class="sr"> wrong</span>'
        return f'<td><span class="circled">{value}</span>{hidden}</td>'
    if table.hatched is not None and table.hatched[at]:
        return f'<td class="border">{value}</td>'
    return f"<td>{value}</td>"


def _line(line: Line, solved: bool) -> str:
    value = number(line.value) if isinstance(line.value, int) else _text(line.value)
    filled = f'<b class="filled">{value}</b>' if solved else '<i class="write"></i>'
    sign = ":" if isinstance(line.value, str) else " ="
    return f'<p class="line"><span>{_text(line.label)}{sign}</span> {filled}</p>'


def _listing(listing: Listing, solved: bool) -> str:
    if solved:
        inner = "".join(f"<li><b>{_text(entry)}</b></li>" for entry in listing.entries)
    else:
        inner = '<li><i class="write"></i></li>' * listing.lines
    return f'<p class="label">{_text(listing.label)} is the sum of</p><ul class="list">{inner}</ul>'


def _choices(choices: Choices, solved: bool) -> str:
    inner = ""
    for k, option in enumerate(choices.options):
        ticked = solved and k == choices.right
        box = "☒" if ticked else "☐"
        words = f"<b>{_text(option)}</b>" if ticked else _text(option)
        hidden = '<span class="sr">ticked: </span>' if ticked else ""
        inner += f'<li><span class="box" aria-hidden="true">{box}</span> {hidden}{words}</li>'
    return f'<p class="label">{_text(choices.label)}</p><ul class="choices">{inner}</ul>'


def _working(question: Question) -> str:
    lines = "".join(f"<li>{_text(each)}</li>" for each in question.working)
    return f'<h3>Worked out</h3><ul class="working">{lines}</ul>' if lines else ""


def _mistakes(question: Question) -> str:
    if not question.mistakes:
        return ""
    rows = ""
    for result, those in _by_result(question.mistakes):
        names = "<br>".join(
            _text(each.sentence) + (f" <code>{_text(each.name)}</code>" if each.name else "")
            for each in those
        )
        rows += f'<tr><td class="result">{_mini(result)}</td><td>{names}</td></tr>'
    return (
        '<table class="mistakes"><caption>If a pupil has</caption><thead><tr>'
        '<th scope="col">this</th><th scope="col">this may have happened</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _by_result(mistakes: Iterable[Mistake]) -> list[tuple[np.ndarray, list[Mistake]]]:
    found: list[tuple[np.ndarray, list[Mistake]]] = []
    for each in mistakes:
        for result, those in found:
            if np.array_equal(result, each.result):
                those.append(each)
                break
        else:
            found.append((each.result, [each]))
    return found


def _mini(result: np.ndarray) -> str:
    """A number, several in a row, or a small array row by row."""
    if result.ndim == 0:
        return number(float(result))
    if result.ndim == 1:
        return ", ".join(number(float(k)) for k in result)
    rows = ("".join(f"<td>{number(float(k))}</td>" for k in row) for row in result)
    inner = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="mini" role="presentation">{inner}</table>'


def _text(words: str) -> str:
    return html.escape(words)


def _marked(words: str) -> str:
    """Text with `names` in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _text(words))
