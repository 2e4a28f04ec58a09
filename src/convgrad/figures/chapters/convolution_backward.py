"""The pictures of *From nn.Conv2d to convolution_backward*."""

from __future__ import annotations

from itertools import product

from ... import loops
from ...examples import example
from ..grids import CAPTION, Grid, draw
from ..style import BookFigure
from .boxes import Box, arrow, paint, words

__all__ = ["KEPT", "WAY_BACK", "WAY_DOWN", "WORKERS", "chain", "one_cell"]

# The names on the two ways: what a reader calls, and what it comes down to.
WAY_DOWN = ("layer(x)", "F.conv2d", "aten::convolution")
WAY_BACK = ("loss.backward()", "ConvolutionBackward0", "aten::convolution_backward")
WORKERS = ("Slow2d", "SlowDilated2d", "Mkldnn", "Cudnn", "CudaDepthwise2d")
KEPT = ("input", "weight")


def chain() -> BookFigure:
    """The calls of a layer, forward on the left and backward on the right, down to who works."""
    width, height = 500, 348
    figure = BookFigure(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()

    tops, wide, high = (34, 122, 210), (176, 224), 40
    lefts = (8, width - wide[1] - 8)
    ways = [
        [Box(left, top, size, high) for top in tops] for left, size in zip(lefts, wide, strict=True)
    ]
    roles, titles = ("ink", "result"), ("forward", "backward")
    workers = Box(8, 292, width - 16, 48)
    for way, names, role, title in zip(ways, (WAY_DOWN, WAY_BACK), roles, titles, strict=True):
        words(ax, (way[0].middle[0], 16), title, role, bold=True)
        for box, name in zip(way, names, strict=True):
            paint(ax, box, role)
            words(ax, box.middle, name, role, size=CAPTION + 1)
        for above, below in zip(way, [*way[1:], workers], strict=True):
            arrow(ax, (above.middle[0], above.bottom), (above.middle[0], below.top), role)
    paint(ax, workers, "ink", dashed=True)
    words(ax, (workers.middle[0], workers.top + 15), "one of several does the work:")
    words(ax, (workers.middle[0], workers.top + 34), f"{', '.join(WORKERS)} …")

    # what the forward half leaves for the backward half
    start, end = ways[0][1], ways[1][1]
    arrow(ax, (start.right, start.middle[1]), (end.left, end.middle[1]), "muted")
    between = (start.right + end.left) / 2
    words(ax, (between, start.middle[1] - 30), "keeps", size=CAPTION)
    words(ax, (between, start.middle[1] - 13), "x and w", size=CAPTION)
    return figure


def one_cell(h: int = 2, v: int = 2) -> BookFigure:
    """Example C, first image: the taps and upstream numbers that meet in one cell of x."""
    geometry = example("C").geometry
    _, weight, _, grad_output = example("C").arrays()
    outputs = list(product(range(geometry.OH), range(geometry.OW)))
    taps = list(product(range(geometry.KH), range(geometry.KW)))
    met = [(at, tap) for at in outputs for tap in taps if geometry.source(*at, *tap) == (h, v)]
    to_x = loops.grad_input(grad_output, weight, geometry)
    return draw(
        Grid(
            grad_output[0, 0],
            "grad_output",
            title="g",
            lit=[at for at, _ in met],
            faint="rest",
            index=("p", "q"),
        ),
        "·",
        Grid(
            weight[0, 0],
            "kernel",
            title="w",
            lit=[tap for _, tap in met],
            faint="rest",
            index=("i", "j"),
        ),
        "=",
        Grid(
            to_x[0, 0],
            "result",
            title="∂L/∂x",
            lit=[(h, v)],
            faint="rest",
            index=("h", "v"),
            cell=28,
        ),
    )
