"""Boxes with words and arrows between them, for pictures of what follows what."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.patches import FancyArrowPatch, Rectangle

from ..grids import CAPTION, TITLE
from ..style import color

__all__ = ["Box", "arrow", "paint", "words"]


class Box(NamedTuple):
    """A rectangle with words in it."""

    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.top + self.height / 2

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


def paint(ax: Any, box: Box, role: str, dashed: bool = False) -> None:
    ax.add_patch(
        Rectangle(
            (box.left, box.top),
            box.width,
            box.height,
            fc=color("panel" if role == "ink" else f"{role}_soft"),
            ec=color(role),
            lw=1.5,
            ls="--" if dashed else "-",
        )
    )


def words(
    ax: Any,
    at: tuple[float, float],
    said: str,
    role: str = "ink",
    size: float = CAPTION,
    bold: bool = False,
) -> None:
    ax.text(
        *at,
        said,
        ha="center",
        va="center",
        fontsize=TITLE if bold else size,
        fontweight="bold" if bold else "normal",
        color=color(role),
    )


def arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], role: str) -> None:
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>,head_length=6,head_width=3",
            shrinkA=2,
            shrinkB=2,
            mutation_scale=1,
            lw=1.5,
            color=color(role),
        )
    )
