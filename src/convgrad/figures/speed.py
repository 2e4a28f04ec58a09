"""The charts of speed, drawn from the figures that the benchmarks kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .style import BookFigure, color

__all__ = ["CONTESTANTS", "LADDER", "against_torch", "ladder"]


class Mark(NamedTuple):
    """How a contestant is drawn: shape as well as colour tells them apart."""

    words: str
    role: str
    shape: str
    filled: bool = True


CONTESTANTS = {
    "fast": Mark("fast", "x", "o"),
    "torch without oneDNN": Mark("PyTorch without oneDNN", "muted", "D", False),
    "im2col": Mark("im2col", "grad_output", "s", False),
    "im2col as taught": Mark("im2col as taught", "kernel", "^"),
}
LADDER = {
    "fast": CONTESTANTS["fast"],
    "im2col": CONTESTANTS["im2col"],
    "windows": Mark("windows", "kernel", "^"),
    "loops": Mark("loops", "muted", "D"),
}
WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 520, 27, 190, 20, 70, 46


def against_torch(record: dict[str, Any]) -> BookFigure:
    """Every layer a row, every contestant a mark: its time over PyTorch's, on a log scale."""
    return _chart(
        {
            name: {who: row["times_torch"] for who, row in layer["contestants"].items()}
            for name, layer in record["layers"].items()
        },
        CONTESTANTS,
    )


def ladder(record: dict[str, Any]) -> BookFigure:
    """The same for the small layers of ``bench.rungs``: the backward pass of some rungs."""
    return _chart(
        {
            name: {
                who: row["times_torch"]["backward"]
                for who, row in layer["implementations"].items()
                if "times_torch" in row
            }
            for name, layer in record["layers"].items()
        },
        LADDER,
    )


def _chart(layers: Mapping[str, Mapping[str, float]], marks: Mapping[str, Mark]) -> BookFigure:
    """One row a layer, and in it a mark for each of ``marks`` that has a figure there."""
    height = TOP + ROW * len(layers) + BOTTOM
    figure = BookFigure(WIDTH, height)
    ax = figure.add_axes(
        (LEFT / WIDTH, BOTTOM / height, 1 - (LEFT + RIGHT) / WIDTH, 1 - (TOP + BOTTOM) / height)
    )
    ax.set_facecolor(color("paper"))
    ax.set_xscale("log")
    ax.set_ylim(len(layers) - 0.5, -0.5)
    for row in range(len(layers)):
        ax.axhline(row, color=color("rule"), lw=0.8, zorder=0)
    ax.axvline(1, color=color("ink"), lw=1.4, zorder=1)
    for who, mark in marks.items():
        found = [(times[who], row) for row, times in enumerate(layers.values()) if who in times]
        if found:
            times, rows = zip(*found, strict=True)
            fill = color(mark.role) if mark.filled else color("paper")
            line = ax.plot(times, rows, mfc=fill, mec=color(mark.role), label=mark.words)[0]
            line.set(ls="", marker=mark.shape, ms=9, mew=1.8, zorder=3)
    _axes(ax, list(layers))
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(-LEFT / (WIDTH - LEFT - RIGHT), 1.03),
        ncols=2,
        frameon=False,
        fontsize=13,
        handletextpad=0.2,
        columnspacing=1.4,
    )
    for text in legend.get_texts():
        text.set_color(color("ink"))
    return figure


def _axes(ax: Any, names: list[str]) -> None:
    least, most = ax.get_xlim()
    tens = (0.01, 0.1, 1, 10, 100, 1000)
    every = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if most / least < 150 else tens
    ticks = [tick for tick in every if least <= tick <= most]
    ax.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0, labelsize=13, labelcolor=color("ink"), pad=6)
    ax.set_xlabel("time ÷ PyTorch’s time", fontsize=13, color=color("muted"))
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(False)
