"""How the commands speak: exit statuses, lines that fit the terminal, and what --quiet leaves."""

from __future__ import annotations

import re
import shutil
import textwrap
from dataclasses import dataclass

__all__ = ["MISUSE", "RIGHT", "WRONG", "Misuse", "Voice", "plural", "whole_numbers"]

RIGHT, WRONG, MISUSE = 0, 1, 2  # what a script learns from the exit status


class Misuse(Exception):
    """The command cannot do what was asked: says why and how to ask."""


@dataclass(frozen=True)
class Voice:
    """Prints; with ``quiet`` only what is wrong, a line each."""

    quiet: bool = False

    def say(self, text: str = "", indent: int = 0) -> None:
        """A paragraph, wrapped to the terminal."""
        if not self.quiet:
            print(self._wrapped(text, indent))

    def show(self, block: str, indent: int = 4) -> None:
        """Lines that keep their breaks: code, tables, arrays."""
        if not self.quiet:
            print(textwrap.indent(block, " " * indent))

    def insist(self, line: str) -> None:
        """What --quiet does not silence; then it is all there is."""
        print(line if self.quiet else self._wrapped(line, 0))

    @staticmethod
    def _wrapped(text: str, indent: int) -> str:
        width = min(shutil.get_terminal_size((88, 24)).columns, 100)
        margin = " " * indent
        return textwrap.fill(
            text,
            max(width, 40),
            initial_indent=margin,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        )


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 tap``, ``2 taps``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def whole_numbers(text: str) -> tuple[int, ...]:
    """``"1,2,3"`` as (1, 2, 3); also with × or x between them.  Raises ValueError."""
    return tuple(map(int, re.split("[,×x]", text.strip("()[]"))))
