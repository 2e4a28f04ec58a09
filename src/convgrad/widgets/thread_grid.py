"""Tiles, processors and time: an implicit GEMM on a small GPU, and two runs that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from ..examples import EXAMPLES, Example, example
from ..geometry import ConvGeometry, require_geometry
from ..implicit import TARGETS, gemm
from ..rounding import Numbers, arrivals, noise, running_sums, share_sums, tenths
from ..schedule import Schedule, Tile
from .base import Array, Explorable, Geometry, Refused, RefusedShape, filler, refit, traitlets
from .operands import LAYOUT, MOST_CELLS, MOST_PRODUCTS, read_operands
from .thread_fallback import thread_fallback

__all__ = ["ThreadGrid"]

VIEWS = ("time", "loop", "runs")
OPERANDS = ("x", "weight", "grad_output")
# of a convolution whose sizes alone are shown; of its programs; of the GPU
LARGEST, MOST_SUMS, MOST_PROGRAMS, MOST_PROCESSORS = 10**8, 10**11, 10_000, 256
_SHOWN = "BCDF"  # the running examples that the page offers


class ThreadGrid(Explorable):
    """An implicit GEMM on a small GPU: its tiles, who computes which of them, and when.

    ``view`` chooses:

    - ``"time"``: the product cut into tiles, and what each multiprocessor does step by step; idle
      ones are hatched.
    - ``"loop"``: what the program of the watched multiprocessor holds: a slice of the left factor,
      a slice of the right one, the tile, and where the slice lies in x.
    - ``"runs"``: with split-K, the shares of one number of the result as they arrive in two runs
      of the same program, added in float32; by atomics in the order of arrival, in two passes
      always in the same one.

    It is a model, no measurement: every block of K takes one step.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    x : Example, ConvGeometry or array_like, (N, C, H, W), optional
        A running example, sizes alone, or the input. Example D when left out.
    weight : array_like, (O, C/groups, KH, KW), optional
        The kernels; left out with an example or sizes.
    grad_output : array_like, (N, O, OH, OW), optional
        The upstream gradient; filled with small integers when left out.
    target : str, default "weight"
        Which map is computed: "weight", "forward" or "input".
    tile : (int, int, int), optional
        Rows and columns of a tile, and products of a step; (2, 4, 4), or less, where numbers are
        drawn, else (128, 128, 32).
    splits : int, default 1
        Into how many shares each tile's sums are cut.
    processors : int, optional
        Multiprocessors of the GPU; 4 where numbers are drawn, else 132.
    two_passes : bool, default False
        Whether the shares are stored apart and added up afterwards, or added by atomics.
    view : str, default "time"
        "time", "loop" or "runs".
    watched : int, default 0
        The multiprocessor that is looked at.
    cell : (int, int, int), default (0, 0, 0)
        The number of the result whose shares two runs add: its group, row and column.
    seed : int, default 1
        Stands for chance: run 1 has this seed, run 2 the next.
    step : int or None, default 0
        How many steps are done, 0 … ``steps``; None for all of them.
    speed : float, default 2.0
        Steps a second while it plays.
    **conv
        The arguments of ``conv2d``: stride, padding, dilation, groups, padding_mode.

    Raises
    ------
    GeometryError, ShapeError
        When no such convolution exists, or when arrays do not fit.
    ValueError
        When there are too many programs to draw.

    Notes
    -----
    Everything is a trait: a knob turned in the browser arrives here, an assignment here is drawn
    there.  Of a large convolution only tiles and time are drawn, and its numbers in two runs come
    by a formula.  The model is :class:`convgrad.schedule.Schedule`, the sums are those of
    ``convgrad.rounding``.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import ThreadGrid
    >>> grid = ThreadGrid(example("F"))
    >>> grid.schedule.tiles, grid.processors, round(grid.schedule.busy, 3)
    (5, 132, 0.038)
    >>> grid.splits = 26
    >>> grid.schedule.programs, round(grid.schedule.busy, 3)
    (130, 0.982)
    """

    _bundle: ClassVar[str] = "thread_grid"

    geometry = Geometry(EXAMPLES["D"].geometry)
    numbers = traitlets.Unicode("D").tag(sync=True)
    x = Array(filler((1, 1, 1, 1)))
    weight = Array(filler((1, 1, 1, 1)))
    grad_output = Array(filler((1, 1, 1, 1)))
    target = traitlets.Enum(TARGETS, "weight").tag(sync=True)
    tile = traitlets.List(traitlets.Int(), [2, 4, 4], minlen=3, maxlen=3).tag(sync=True)
    splits = traitlets.Int(1).tag(sync=True)
    processors = traitlets.Int(4).tag(sync=True)
    two_passes = traitlets.Bool(False).tag(sync=True)
    view = traitlets.Enum(VIEWS, "time").tag(sync=True)
    watched = traitlets.Int(0).tag(sync=True)
    cell = traitlets.List(traitlets.Int(), [0, 0, 0], minlen=3, maxlen=3).tag(sync=True)
    seed = traitlets.Int(1).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    speed = traitlets.Float(2.0).tag(sync=True)
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)
    limits = traitlets.Dict(
        {
            "cells": LARGEST,
            "products": MOST_SUMS,
            "programs": MOST_PROGRAMS,
            "processors": MOST_PROCESSORS,
            "drawn": {"cells": MOST_CELLS, "products": MOST_PRODUCTS},
        }
    ).tag(sync=True)

    def __init__(
        self,
        x: Example | ConvGeometry | Any = None,
        weight: Any = None,
        grad_output: Any = None,
        *,
        target: Literal["weight", "forward", "input"] = "weight",
        tile: Sequence[int] | None = None,
        splits: int = 1,
        processors: int | None = None,
        two_passes: bool = False,
        view: Literal["time", "loop", "runs"] = "time",
        watched: int = 0,
        cell: Sequence[int] = (0, 0, 0),
        seed: int = 1,
        step: int | None = 0,
        speed: float = 2.0,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in LAYOUT if key in conv}
        geometry, numbers, arrays = _read(x, weight, grad_output, conv)
        usual = _usual(geometry, target)
        super().__init__(
            **layout,
            **arrays,
            geometry=geometry,
            numbers=numbers,
            target=target,
            tile=list(usual[0] if tile is None else tile),
            splits=splits,
            processors=usual[1] if processors is None else processors,
            two_passes=two_passes,
            view=view,
            seed=seed,
            speed=speed,
            presets=[_preset(EXAMPLES[letter]) for letter in _SHOWN],
        )
        # after the rest, which says what there is
        self.watched, self.cell = watched, list(cell)
        self.step = self.steps if step is None else step
        self.observe(self._follow_sizes, ["geometry"])
        self.observe(self._follow_steps, ["geometry", *_SCHEDULED, "view"])
        self._write_fallback()
        self.observe(self._write_fallback, ["geometry", *_SCHEDULED])

    # ---- what can be asked for -----------------------------------------------------------

    @property
    def schedule(self) -> Schedule:
        """Who computes which tile, and when."""
        return _schedule({name: getattr(self, name) for name in ("geometry", *_SCHEDULED)})

    @property
    def steps(self) -> int:
        """Steps in time; of two runs the shares that arrive and, in a second pass, are added."""
        schedule = self.schedule
        if self.view != "runs":
            return schedule.time
        return schedule.parts * (2 if self.two_passes and schedule.parts > 1 else 1)

    @property
    def arrays(self) -> dict[str, np.ndarray] | None:
        """The numbers of x, weight and grad_output as they are drawn; None for a large layer."""
        g = self.geometry
        if not _is_drawn(g):
            return None
        shapes = dict(zip(OPERANDS, (g.x_shape, g.weight_shape, g.output_shape), strict=True))
        if self.numbers in _SHOWN and self.numbers != "F":
            own = EXAMPLES[self.numbers].arrays()._asdict()
        else:
            own = {name: getattr(self, name) for name in OPERANDS}
        return {name: refit(own[name], shape) for name, shape in shapes.items()}

    @property
    def shares(self) -> np.ndarray:
        """The shares of the number ``cell`` as float32, in the order of k."""
        arrays = self.arrays
        numbers: dict[str, Numbers] = {
            name: tenths(arrays[name]) if arrays else noise(name) for name in OPERANDS
        }
        return share_sums(self.schedule, numbers, *self.cell)

    @property
    def orders(self) -> list[list[int]]:
        """In which order the shares arrive, in run 1 and in run 2."""
        schedule = self.schedule
        group, row, col = self.cell
        tile = group * schedule.down + row // schedule.tile.M
        tile = tile * schedule.across + col // schedule.tile.N
        return [arrivals(schedule, tile, self.seed + run) for run in (0, 1)]

    @property
    def results(self) -> tuple[np.float32, np.float32]:
        """What run 1 and run 2 end with."""
        shares = self.shares
        in_order = list(range(len(shares)))
        orders = [in_order if self.two_passes else order for order in self.orders]
        first, second = (running_sums(shares, order)[-1] for order in orders)
        return first, second

    def load(self, source: Example) -> None:
        """Show another running example, from its first step."""
        geometry, numbers, arrays = _read(source, None, None, {})
        tile, processors = _usual(geometry, self.target)
        with self.hold_sync(), self.hold_trait_notifications():
            self.step, self.watched, self.cell = 0, 0, [0, 0, 0]
            self.geometry, self.numbers = geometry, numbers
            self.tile, self.processors, self.splits = list(tile), processors, 1
            for name, array in arrays.items():
                setattr(self, name, array)

    # ---- what keeps the traits consistent ------------------------------------------------

    @traitlets.validate("geometry")
    def _small_enough(self, proposal: dict[str, Any]) -> ConvGeometry:
        g = proposal["value"]
        if g.N == 0:
            raise RefusedShape(
                "the batch is empty, N = 0: the thread grid needs at least one image"
            )
        cells = max(math.prod(s) for s in (g.x_shape, g.weight_shape, g.output_shape))
        products = math.prod(g.output_shape) * g.CG * g.KH * g.KW
        if cells > LARGEST or products > MOST_SUMS:
            raise RefusedShape(
                f"{g.describe()} has {products:,} products and arrays of up to {cells:,} cells: "
                f"the thread grid takes up to {MOST_SUMS:,} products and {LARGEST:,} cells; take "
                "fewer images or channels"
            )
        if _is_drawn(g) == _is_drawn(self.geometry):  # else other tiles follow
            self._check_programs(geometry=g)
        return g

    @traitlets.validate("tile", "splits", "processors", "target")
    def _few_enough(self, proposal: dict[str, Any]) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        if name == "tile" and min(value) < 1:
            raise Refused(f"tile is {tuple(value)}: needed are three whole numbers of at least 1")
        if name == "splits":
            value = max(1, value)
        if name == "processors":
            value = min(max(1, value), MOST_PROCESSORS)
        self._check_programs(**{name: value})
        return value

    def _check_programs(self, **changes: Any) -> None:
        known = {name: getattr(self, name) for name in ("geometry", *_SCHEDULED)}
        programs = _schedule(known | changes).programs
        if programs > MOST_PROGRAMS:
            raise Refused(
                f"this makes {programs:,} programs: the thread grid draws up to "
                f"{MOST_PROGRAMS:,}; take larger tiles or fewer shares"
            )

    @traitlets.validate("watched")
    def _there(self, proposal: dict[str, Any]) -> int:
        return min(max(proposal["value"], 0), self.processors - 1)

    @traitlets.validate("cell")
    def _inside(self, proposal: dict[str, Any]) -> list[int]:
        sizes = gemm(self.geometry, self.target)
        most = (sizes.groups, sizes.M, sizes.N)
        pairs = zip(proposal["value"], most, strict=True)
        return [min(max(k, 0), size - 1) for k, size in pairs]

    @traitlets.validate("seed")
    def _counted(self, proposal: dict[str, Any]) -> int:
        return proposal["value"] % 10_000

    @traitlets.validate("step")
    def _within(self, proposal: dict[str, Any]) -> int:
        return min(max(proposal["value"], 0), self.steps)

    @traitlets.validate("speed")
    def _moving(self, proposal: dict[str, Any]) -> float:
        if not 0 < proposal["value"] <= 1000:
            raise Refused(f"speed is {proposal['value']}: needed is a number of steps a second")
        return proposal["value"]

    def _follow_sizes(self, change: dict[str, Any]) -> None:
        """Another kind of size needs other tiles; from the browser they come with it."""
        if self._property_lock or _is_drawn(change["old"]) == _is_drawn(change["new"]):
            return
        tile, processors = _usual(self.geometry, self.target)
        with self.hold_sync(), self.hold_trait_notifications():
            self.tile, self.processors, self.splits = list(tile), processors, 1

    def _follow_steps(self, change: dict[str, Any]) -> None:
        self.watched = min(self.watched, self.processors - 1)
        self.cell = list(self.cell)  # looked at anew
        self.step = min(self.step, self.steps)

    def _write_fallback(self, change: Any = None) -> None:
        if not self._property_lock:  # the browser draws its own changes
            self.fallback = thread_fallback(self.schedule)


_SCHEDULED = ("target", "tile", "splits", "processors", "two_passes")


def _schedule(known: dict[str, Any]) -> Schedule:
    return Schedule(**known | {"tile": Tile(*known["tile"])})


def _is_drawn(g: ConvGeometry) -> bool:
    """Whether its numbers are drawn one by one."""
    cells = max(math.prod(s) for s in (g.x_shape, g.weight_shape, g.output_shape))
    products = math.prod(g.output_shape) * g.CG * g.KH * g.KW
    return cells <= MOST_CELLS and products <= MOST_PRODUCTS


def _usual(geometry: ConvGeometry, target: str) -> tuple[Tile, int]:
    """The tile and the processors that are shown first; the same as ``usual`` in thread_grid.js."""
    if not _is_drawn(geometry):
        return Tile(128, 128, 32), 132
    sizes = zip(gemm(geometry, target)[:3], (2, 4, 4), strict=True)
    return Tile(*(min(most, 1 << (size - 1).bit_length()) for size, most in sizes)), 4


def _read(
    x: Any, weight: Any, grad_output: Any, conv: dict[str, Any]
) -> tuple[ConvGeometry, str, dict[str, np.ndarray]]:
    """Sizes, where the numbers come from, and the arrays where somebody gave them."""
    if x is None and weight is None:
        x = example("D")
    if isinstance(x, ConvGeometry):
        if conv or weight is not None or grad_output is not None:
            raise TypeError("sizes given together with arrays or options: a geometry has its own")
        return require_geometry(x), "own", {}
    alone = not conv and weight is None and grad_output is None
    if isinstance(x, Example) and alone and (x.letter in _SHOWN or not _is_drawn(x.geometry)):
        return x.geometry, x.letter if x.letter in _SHOWN else "own", {}
    geometry, operands = read_operands(x, weight, grad_output, conv, example("D"))
    return geometry, "own", operands if _is_drawn(geometry) else {}


def _preset(source: Example) -> dict[str, Any]:
    """An example as the browser needs it; of a large one the sizes alone."""
    preset: dict[str, Any] = {
        "letter": source.letter,
        "title": source.title,
        "lesson": source.lesson,
        "geometry": source.geometry.as_dict(),
    }
    if _is_drawn(source.geometry):
        arrays = source.arrays()._asdict()
        for name in OPERANDS:
            data = [int(value) for value in arrays[name].ravel()]
            preset[name] = {"shape": list(arrays[name].shape), "data": data}
    return preset
