"""The pictures of *Where the time goes*."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.patches import Rectangle

from ...geometry import ConvGeometry
from ...schedule import Schedule, Tile
from ..style import BookFigure, color

__all__ = ["FORMATS", "Format", "formats", "waves"]

# ---- programs on multiprocessors -------------------------------------------------------------


WIDTH, LEFT, LANE, GAP, HEAD, FOOT = 560, 92, 24, 40, 22, 44


def waves(
    geometry: ConvGeometry, tile: int, processors: int, splits: tuple[int, ...] = (1, 3, 4)
) -> BookFigure:
    """The weight gradient's tiles with their sums in one share and in several: lanes over time."""
    plans = [
        Schedule(geometry, tile=Tile(tile, tile, 1), splits=count, processors=processors)
        for count in splits
    ]
    panel = processors * LANE
    height = HEAD + len(plans) * (panel + GAP) - GAP + FOOT
    figure = BookFigure(WIDTH, height)
    end = max(plan.time for plan in plans)
    for k, plan in enumerate(plans):
        top = HEAD + k * (panel + GAP)
        ax = figure.add_axes(
            (LEFT / WIDTH, 1 - (top + panel) / height, 1 - (LEFT + 16) / WIDTH, panel / height)
        )
        _lanes(ax, plan, end)
        share = f"{plan.parts} share{'' if plan.parts == 1 else 's'}"
        ax.set_title(
            f"{share}: {plan.time} steps", loc="left", fontsize=13, color=color("ink"), pad=6
        )
    ax.set_xticks(range(0, end + 1, 12), [str(step) for step in range(0, end + 1, 12)])
    ax.set_xlabel("steps, one for each window that is added", fontsize=13, color=color("muted"))
    return figure


def _lanes(ax: Any, plan: Schedule, end: int) -> None:
    ax.set(xlim=(0, end), ylim=(plan.processors, 0))
    ax.set_facecolor(color("paper"))
    ax.add_patch(
        Rectangle(
            (0, 0),
            plan.time,
            plan.processors,
            fc=color("padding_soft"),
            ec=color("padding"),
            hatch="////",
            lw=0,
            label="idle",
        )
    )
    for run in plan.runs:
        number = plan.program(run.program).tile
        ax.add_patch(
            Rectangle(
                (run.start, run.processor),
                run.end - run.start,
                1,
                fc=color("result_soft"),
                ec=color("result"),
                lw=1.2,
                label=f"tile {number}",
            )
        )
        ax.text(
            (run.start + run.end) / 2,
            run.processor + 0.54,
            str(number),
            ha="center",
            va="center",
            fontsize=13,
            color=color("result"),
        )
    ax.set_yticks(
        [lane + 0.5 for lane in range(plan.processors)],
        [f"processor {lane}" for lane in range(plan.processors)],
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
