"""The markers of a source: what is taken out of it before students see it.

``### BEGIN SOLUTION`` to ``### END SOLUTION``, likewise ``HIDDEN TESTS`` and ``MARK SCHEME``.  A
marker that is spelled another way would stay in the students' notebook with all that it was to
hide, so every line that looks like one must be one.  Each region of code holds a canary, a word
that is looked for wherever it must not be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["KINDS", "Line", "MarkerError", "Region", "canaries", "canary_in", "regions", "secrets"]

KINDS = ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
_EXACT = {f"### {end} {kind}": (end, kind) for end in ("BEGIN", "END") for kind in KINDS}
_LOOKS_LIKE_ONE = re.compile(
    r"^\s*#+\s*(BEGIN|END)\b|\b(begin|end)[\s_-]+(solution|hidden|mark[\s_-]*scheme|test)", re.I
)
_HEADING = re.compile(r"^#+\s+(Begin|End|begin|end)\b")  # of Markdown: a sentence, not a marker
_CANARY = re.compile(r"\bcanary:\s*([\w-]+)")
# a shorter line, such as `y = 0` or `return x`, stands in many places by chance
_TELLING = 12


class MarkerError(ValueError):
    """A marker that hides nothing, or not what was meant: says the line and how to mend it."""


class Line(NamedTuple):
    """A line of a source, where it stands, and whether it is code."""

    text: str
    where: str
    is_code: bool


class Region(NamedTuple):
    """What stands between a pair of markers."""

    kind: str
    where: str
    is_code: bool
    lines: tuple[str, ...]


def regions(lines: Iterable[Line]) -> list[Region]:
    """All regions of a source, in order.  Raises :class:`MarkerError`.

    >>> text = ["### BEGIN SOLUTION", "y = 2  # canary: heron", "### END SOLUTION"]
    >>> regions(Line(each, f"line {k}", True) for k, each in enumerate(text, 1))[0].lines
    ('y = 2  # canary: heron',)
    """
    found: list[Region] = []
    opened: tuple[str, str, bool] | None = None
    inside: list[str] = []
    for line in lines:
        marker = _EXACT.get(line.text.strip())
        if marker is None:
            _refuse_lookalike(line)
            if opened:
                inside.append(line.text)
            continue
        end, kind = marker
        if end == "BEGIN":
            if opened:
                raise MarkerError(
                    f"{line.where}: ### BEGIN {kind} stands inside the region that begins in "
                    f"{opened[1]}; close that one with ### END {opened[0]} first"
                )
            opened, inside = (kind, line.where, line.is_code), []
        else:
            if opened is None or opened[0] != kind:
                waiting = f"### END {opened[0]} is awaited" if opened else "no region is open"
                raise MarkerError(f"{line.where}: ### END {kind}, but {waiting}")
            found.append(Region(*opened, tuple(inside)))
            opened = None
    if opened:
        raise MarkerError(f"{opened[1]}: ### BEGIN {opened[0]} has no ### END {opened[0]}")
    for region in found:
        if region.is_code and not canaries(region.lines):
            raise MarkerError(
                f"{region.where}: this {region.kind.lower()} holds no canary; write a comment into "
                "it such as `# canary: heron`, with a word of its own"
            )
    return found


def _refuse_lookalike(line: Line) -> None:
    if not _LOOKS_LIKE_ONE.search(line.text):
        return
    if not line.is_code and _HEADING.match(line.text):
        return
    raise MarkerError(
        f"{line.where}: `{line.text.strip()}` looks like a marker and is none, so that it would "
        "hide nothing; write one of " + ", ".join(_EXACT)
    )


def canaries(lines: Iterable[str]) -> set[str]:
    """The words of the canaries.

    >>> canaries(["y = 2  # canary: heron"])
    {'heron'}
    """
    return {word for line in lines for word in _CANARY.findall(line)}


def canary_in(text: str) -> str | None:
    """The first canary of a text, or None."""
    found = _CANARY.search(text)
    return found.group(0) if found else None


def secrets(found: Iterable[Region], shown: Iterable[str]) -> set[str]:
    """Lines that students must not see: long enough to tell, and not shown outside as well."""
    open_lines = {line.strip() for line in shown}
    hidden = {line.strip() for region in found for line in region.lines}
    return {line for line in hidden - open_lines if len(line) >= _TELLING}
