"""What BreakTheGradient says without JavaScript: both gradients, and the checks worked out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .fallback import LETTERS, NAMES, Block, drawing, figure, number, subscript
from .mistakes import MISTAKES
from .noticing import CHECKS, differs, findings, right, wrong

__all__ = ["break_fallback"]


def break_fallback(
    mistake: str,
    geometry: ConvGeometry,
    operands: dict[str, np.ndarray],
    among: Sequence[str] = (),
) -> str:
    """The right gradient beside the broken one, differing cells outlined, as HTML with an SVG.

    Given ``among``, the mistake is one of these and is not told: a riddle on paper too.
    """
    mutant = MUTANTS[mistake]
    target, name = mutant.target, NAMES[mutant.target]
    should, made = right(target, geometry, operands), wrong(mistake, geometry, operands)
    cells = wrong_cells(made, should)
    blocks = [
        Block("result", f"{word} {name}", _four(array), LETTERS[target], cells)
        for word, array in (("right", should), ("broken", made))
        if array is not None
    ]
    what = "Which mistake is it?" if among else f"The mistake: {MISTAKES[mistake][0]}."
    words = f"{name} of {geometry.describe()}. {what}"
    seen = _in_words(name, made, should, cells)
    said = "" if among else f" {mutant.sentence}"
    choices = "".join(f"<li>{escape(MISTAKES[each][0])}</li>" for each in among)
    wide, narrow = _room(target, geometry, should, made, duel=bool(among))
    return figure(
        f"{drawing(blocks, f'Grids of numbers: {words} {seen}; differing cells are outlined.')}"
        f"<figcaption>{escape(words + said)} {escape(seen)}.</figcaption>"
        f"{f'<ol>{choices}</ol>' if among else ''}"
        f"{_table(mistake, geometry, operands)}",
        (wide, narrow),
    )


def wrong_cells(made: np.ndarray | None, should: np.ndarray) -> set[tuple[int, ...]]:
    """The cells where both have a number, and not the same."""
    if made is None or made.ndim != should.ndim:
        return set()
    common = tuple(slice(min(a, b)) for a, b in zip(made.shape, should.shape, strict=True))
    return {tuple(map(int, at)) for at in np.argwhere(differs(made[common], should[common]))}


def _in_words(
    name: str, made: np.ndarray | None, should: np.ndarray, cells: set[tuple[int, ...]]
) -> str:
    if made is None:
        return "It stops with an error and returns nothing"
    words = f"{len(cells)} of {should.size} cells differ"
    if made.shape != should.shape:
        has, needs = ("×".join(map(str, array.shape)) for array in (made, should))
        words = f"Its shape is {has} instead of {needs}; {len(cells)} of the shared cells differ"
    if not cells:
        return words
    first = min(cells)
    got, wanted = number(made[first]), number(should[first])
    return f"{words}, the first {subscript(name, first)}: {got} instead of {wanted}"


def _table(mistake: str, geometry: ConvGeometry, operands: dict[str, np.ndarray]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(CHECKS[each.check][0])}</th>'
        f"<td>{'✗ notices' if each.noticed else '○ lets it pass'}</td>"
        f"<td>{escape(each.evidence)}</td></tr>"
        for each in findings(mistake, geometry, operands)
    )
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in ("check", "notices it?", "by these numbers")
    )
    return (
        f'<table class="cg-checks"><caption>Which checks notice?</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _four(array: np.ndarray) -> np.ndarray:
    """Four axes for drawing: a gradient of the bias is one row."""
    return array.reshape(1, 1, 1, -1) if array.ndim == 1 else array


def _room(
    target: str, geometry: ConvGeometry, should: np.ndarray, made: np.ndarray | None, *, duel: bool
) -> tuple[int, int]:
    """About how tall the live widget is, wide and narrow, so that the page keeps still.

    The numbers are those of its stylesheets; a browser test holds them together.
    """
    shapes = [_four(array).shape for array in (should, made) if array is not None]
    slices, several = shapes[0][:2], max(shapes[0][:2]) > 1
    rows, cols = (max(sizes) for sizes in zip(*(shape[2:] for shape in shapes), strict=True))
    grouped = geometry.groups > 1 and target != "bias"
    pictures = 26 + 17 * grouped + min(slices) * (max(24, 5 * rows + 6) + 1)
    above = 26 + (23 + pictures) * several
    wide = 629 + 155 * duel + above + 36 * rows + 3
    panel = above + 32 * rows + 3
    # on a telephone side by side where both are small
    beside = not several and 2 * (32 * cols + 3) + 19 <= 351
    return wide, 227 * duel + (904 + panel if beside else 935 + 2 * panel)
