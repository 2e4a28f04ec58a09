"""Formulas for a reader who does not know the book's macros: the MathJax of Jupyter, or KaTeX.

The macros of ``macros.json`` are written out.  Colours stay, as plain TeX; a notebook may stand on
white or on black, so each is mixed from the light and the dark one until it reads on both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# What a letter's class is called in the palette.
COLORED = {
    "cg-col-x": "x",
    "cg-col-w": "kernel",
    "cg-col-g": "grad_output",
    "cg-col-r": "result",
}
MIDDLE = 0.18  # the luminance whose contrast with white and with black is the same, 4.58

_CLASS = re.compile(r"\\htmlClass\{([\w-]+)\}")
_NAME = re.compile(r"\\([A-Za-z]+)")


def expanded(tex: str, macros: Mapping[str, str]) -> str:
    """The formula with every macro written out, also those that a macro uses."""
    found, at = [], 0
    while name := _NAME.search(tex, at):
        found.append(tex[at : name.start()])
        at = name.end()
        body = macros.get(name[0])
        if body is None:
            found.append(name[0])
            continue
        count = max(map(int, re.findall(r"#(\d)", body)), default=0)
        arguments = []
        for _ in range(count):
            argument, at = _argument(tex, at)
            arguments.append(argument)
        for number, argument in enumerate(arguments, 1):
            body = body.replace(f"#{number}", argument)
        text = expanded(body, macros)
        # in braces, so that an index set behind it belongs to the whole; a colour brings its own
        found.append(text if text.startswith(r"\htmlClass") else f"{{{text}}}")
    return "".join(found) + tex[at:]


def _argument(tex: str, at: int) -> tuple[str, int]:
    """What a macro takes from here on, and where the rest begins: a group, a name or one sign."""
    while tex[at : at + 1].isspace():
        at += 1
    if tex[at : at + 1] == "{":
        end = group_end(tex, at)
        return tex[at + 1 : end - 1], end
    name = _NAME.match(tex, at)
    end = name.end() if name else at + 1
    return tex[at:end], end


def group_end(tex: str, start: int) -> int:
    """Where the group that opens at ``start`` has ended."""
    depth, at = 0, start
    while at < len(tex):
        if tex[at] == "\\":
            at += 1  # \{ and \} are signs
        elif tex[at] in "{}":
            depth += 1 if tex[at] == "{" else -1
            if not depth:
                return at + 1
        at += 1
    raise ValueError(f"a group is not closed: {tex[start : start + 40]!r}")


def colored(tex: str, palette: Mapping[str, Mapping[str, str]]) -> str:
    """Classes, which only a page of ours knows, as colours that every reader of TeX knows."""
    while found := _CLASS.search(tex):
        end = group_end(tex, found.end())
        inner = tex[found.end() + 1 : end - 1]
        color = on_both_grounds(**palette[COLORED[found[1]]])
        # a declaration within braces: older readers take the group behind it for its argument
        tex = f"{tex[: found.start()]}{{\\color{{{color}}}{{{inner}}}}}{tex[end:]}"
    return tex


def on_both_grounds(light: str, dark: str) -> str:
    """The mixture of two colours whose luminance is in the middle."""
    low, high = _rgb(light), _rgb(dark)
    share = 0.5
    for step in range(2, 12):
        mixed = [a + share * (b - a) for a, b in zip(low, high, strict=True)]
        share += (1 if luminance(mixed) < MIDDLE else -1) * 0.5**step
    return "#" + "".join(f"{round(part * 255):02x}" for part in mixed)


def luminance(rgb: list[float]) -> float:
    """The relative luminance of WCAG, from 0 for black to 1 for white."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
    return sum(part * value for part, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _rgb(color: str) -> list[float]:
    return [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
