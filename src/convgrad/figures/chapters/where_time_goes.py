"""The pictures of *Where the time goes*."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from matplotlib.patches import Rectangle

from ...gemm import gemm, tiled
from ...geometry import ConvGeometry
from ..style import BookFigure, color

__all__ = ["FORMATS", "Format", "Turn", "formats", "turns", "waves"]

# ---- programs on multiprocessors -------------------------------------------------------------


class Turn(NamedTuple):
    """One program at work: which tile, which share of its sum, on which one, from when to when."""

    tile: int
    share: int
    multiprocessor: int
    start: int
    end: int


def turns(geometry: ConvGeometry, tile: int, multiprocessors: int, splits: int) -> Iterator[Turn]:
    """The weight gradient's programs in the order of their numbers, a step for each window."""
    cut = tiled(gemm(geometry, "grad_weight"), tile, multiprocessors, splits)
    for program in range(cut.programs):
        wave, place = divmod(program, multiprocessors)
        start = wave * cut.depth
        yield Turn(program % cut.tiles, program // cut.tiles, place, start, start + cut.depth)


WIDTH, LEFT, LANE, GAP, HEAD, FOOT = 560, 92, 24, 40, 22, 44


def waves(
    geometry: ConvGeometry, tile: int, multiprocessors: int, splits: tuple[int, ...] = (1, 3, 4)
) -> BookFigure:
    """The same tiles with their sums in one share and in several: lanes over time."""
    plans = [list(turns(geometry, tile, multiprocessors, count)) for count in splits]
    panel = multiprocessors * LANE
    height = HEAD + len(plans) * (panel + GAP) - GAP + FOOT
    figure = BookFigure(WIDTH, height)
    end = max(turn.end for plan in plans for turn in plan)
    for k, (count, plan) in enumerate(zip(splits, plans, strict=True)):
        top = HEAD + k * (panel + GAP)
        ax = figure.add_axes(
            (LEFT / WIDTH, 1 - (top + panel) / height, 1 - (LEFT + 16) / WIDTH, panel / height)
        )
        _lanes(ax, plan, multiprocessors, end)
        share = f"{count} share{'' if count == 1 else 's'}"
        busy = max(turn.end for turn in plan)
        ax.set_title(f"{share}: {busy} steps", loc="left", fontsize=13, color=color("ink"), pad=6)
    ax.set_xticks(range(0, end + 1, 12), [str(step) for step in range(0, end + 1, 12)])
    ax.set_xlabel("steps, one for each window that is added", fontsize=13, color=color("muted"))
    return figure


def _lanes(ax: Any, plan: list[Turn], multiprocessors: int, end: int) -> None:
    busy = max(turn.end for turn in plan)
    ax.set(xlim=(0, end), ylim=(multiprocessors, 0))
    ax.set_facecolor(color("paper"))
    ax.add_patch(
        Rectangle(
            (0, 0),
            busy,
            multiprocessors,
            fc=color("padding_soft"),
            ec=color("padding"),
            hatch="////",
            lw=0,
            label="idle",
        )
    )
    for turn in plan:
        ax.add_patch(
            Rectangle(
                (turn.start, turn.multiprocessor),
                turn.end - turn.start,
                1,
                fc=color("result_soft"),
                ec=color("result"),
                lw=1.2,
                label=f"tile {turn.tile}",
            )
        )
        ax.text(
            (turn.start + turn.end) / 2,
            turn.multiprocessor + 0.54,
            str(turn.tile),
            ha="center",
            va="center",
            fontsize=13,
            color=color("result"),
        )
    ax.set_yticks(
        [lane + 0.5 for lane in range(multiprocessors)],
        [f"processor {lane}" for lane in range(multiprocessors)],
    )
    ax.set_xticks([])
    ax.tick_params(length=0, labelsize=12, labelcolor=color("muted"), pad=6)
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(False)


# ---- bits ------------------------------------------------------------------------------------


class Format(NamedTuple):
    """A floating-point number: bits of the exponent, and of the fraction that is kept."""

    name: str
    exponent: int
    fraction: int

    @property
    def digits(self) -> int:
        """Binary digits that count: those of the fraction, and the one before the point."""
        return self.fraction + 1


FORMATS = (
    Format("float32", 8, 23),
    Format("TF32", 8, 10),
    Format("bfloat16", 8, 7),
    Format("float16", 5, 10),
)
BIT, ROW, NAMES = 13, 40, 86


def formats() -> BookFigure:
    """Sign, exponent and fraction of the four formats, a box for each bit."""
    longest = max(1 + each.exponent + each.fraction for each in FORMATS)
    width, height = NAMES + longest * BIT + 12, ROW * len(FORMATS) + 26
    figure = BookFigure(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    for row, each in enumerate(FORMATS):
        top = 24 + ROW * row
        ax.text(0, top + 15, each.name, va="center", fontsize=14, color=color("ink"))
        start = 0
        for part, count, fill in (
            ("sign", 1, "paper"),
            ("exponent", each.exponent, "rule"),
            ("fraction", each.fraction, "panel"),
        ):
            for bit in range(start, start + count):
                ax.add_patch(
                    Rectangle(
                        (NAMES + bit * BIT, top + 2),
                        BIT,
                        20,
                        fc=color(fill),
                        ec=color("muted"),
                        lw=0.9,
                        label=part,
                    )
                )
            middle = NAMES + (start + count / 2) * BIT
            words = "±" if part == "sign" else f"{part} {count}" if row == 0 else str(count)
            ax.text(
                middle, top - 6, words, ha="center", va="center", fontsize=12, color=color("ink")
            )
            start += count
    return figure
