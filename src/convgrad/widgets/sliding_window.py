"""The forward pass: a window slides, and each place of it makes one cell of the output."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from ..api import conv2d
from ..examples import EXAMPLES, Example, example
from ..geometry import ConvGeometry
from ..scene import photograph
from .base import Array, Explorable, Geometry, Refused, RefusedShape, refit, traitlets, wire
from .sliding_fallback import as_pictures, sliding_fallback

__all__ = ["KERNELS", "SlidingWindow"]

TABLES, PICTURES = "BCD", "E"  # the running examples that are offered beside one like them
PHOTOGRAPH = 40  # pixels a side
MOST_CELLS = 16_000  # of one array: what can still be drawn within a frame
MOST_PRODUCTS = 400_000  # what the browser still adds up within a frame

# Kernels that a picture is looked at with; dyadic, so that sums of whole grey values are exact.
KERNELS: dict[str, np.ndarray] = {
    "as it is": np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], dtype=np.float64),
    "blur": np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16,
    "sharpen": np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], dtype=np.float64),
    "upright edges": np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=np.float64),
    "level edges": np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], dtype=np.float64),
    "all edges": np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], dtype=np.float64),
}

_LOOK = re.compile(r"([xwy])\[(-?\d+),(-?\d+),(-?\d+),(-?\d+)\]")


class SlidingWindow(Explorable):
    """Image, kernel and output: see what each output cell is made of, and what each number feeds.

    Point at an output cell to see its window and its sum, at a kernel tap to see every place
    where it was used, at an input cell to see every output that it touches.  Or play the window
    over the image.  Large arrays are drawn as grey pictures.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    x : Example or array_like, shape (N, C, H, W), optional
        A running example, or the input.  Left out, it is example B.
    weight : array_like, shape (O, C/groups, KH, KW), optional
        The kernels, where ``x`` is an array.
    bias : array_like, shape (O,), optional
        One number added to each output map; zeros where it is left out.
    look : str, optional
        What is looked at, in the letters of the book: ``"y[0,0,1,2]"`` an output cell (n, o, p,
        q), ``"w[0,0,1,2]"`` a tap (o, c, i, j), ``"x[0,0,1,2]"`` an input cell (n, c, h, v);
        ``""`` the window of the step.  At first the first output cell.
    step : int, optional
        How many output cells the playing window has made, 0 … ``steps``.
    speed : float, optional
        Output cells a second while it plays: 2 for tables of numbers, 60 for pictures.
    peak : bool, optional
        Whether the largest number of each output map is marked; the tracker, example E, has it.
    **conv
        ``stride``, ``padding``, ``dilation``, ``groups``, ``padding_mode`` as in ``conv2d``.

    Attributes
    ----------
    y : ndarray, shape (N, O, OH, OW)
        The output of what stands in the grids now, computed by the package.

    Raises
    ------
    GeometryError, ShapeError
        What describes no convolution, does not fit, or is too large to draw.

    Notes
    -----
    Everything is a trait: an edit in the browser arrives here, an assignment here is drawn
    there.  Assigning ``geometry`` refits the arrays, which keep their numbers where they can.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import SlidingWindow
    >>> SlidingWindow(example("B"), look="y[0,0,1,2]").y[0, 0, 1, 2]
    np.float64(4.0)
    """

    _bundle: ClassVar[str] = "sliding_window"

    geometry = Geometry(EXAMPLES["B"].geometry)
    x = Array(np.zeros((1, 1, 5, 5)))
    weight = Array(np.zeros((1, 1, 3, 3)))
    bias = Array(np.zeros(1))
    look = traitlets.Unicode("").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    speed = traitlets.Float(2.0).tag(sync=True)
    peak = traitlets.Bool(False).tag(sync=True)
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)
    kernels = traitlets.List(traitlets.Dict()).tag(sync=True)
    limits = traitlets.Dict({"cells": MOST_CELLS, "products": MOST_PRODUCTS}).tag(sync=True)

    def __init__(
        self,
        x: Example | Any = None,
        weight: Any = None,
        bias: Any = None,
        *,
        look: str | None = None,
        step: int | None = None,
        speed: float | None = None,
        peak: bool | None = None,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in ("layout", "tooltip", "tabbable") if key in conv}
        geometry, operands = _read(x, weight, bias, conv)
        _check_size(geometry)
        super().__init__(
            **layout,
            geometry=geometry,
            **operands,
            speed=_speed(geometry) if speed is None else speed,
            peak=_is_tracker(x) if peak is None else peak,
            presets=_presets(as_pictures(geometry)),
            kernels=[{"name": name, "rows": kernel.tolist()} for name, kernel in KERNELS.items()],
        )
        if look is None:
            look = "y[0,0,0,0]" if step is None else ""
        # after the rest, whose sizes say what there is; and a look at an output says the step
        self.step = 1 if step is None else step
        self.look = look
        self._write_fallback()
        self.observe(
            self._write_fallback, ["geometry", "x", "weight", "bias", "look", "step", "peak"]
        )

    @classmethod
    def photograph(cls, kernel: str = "all edges", **options: Any) -> SlidingWindow:
        """A small picture with light and shade, and a kernel that has a name in ``KERNELS``.

        >>> window = SlidingWindow.photograph("blur")
        >>> window.x.shape, float(window.weight.sum())
        ((1, 1, 40, 40), 1.0)
        """
        if kernel not in KERNELS:
            raise ValueError(f"no kernel is called {kernel!r}: there are {', '.join(KERNELS)}")
        usual: dict[str, Any] = {"look": "y[0,0,12,8]", "padding": 1, "padding_mode": "replicate"}
        picture = photograph(PHOTOGRAPH)
        return cls(picture[None, None], KERNELS[kernel][None, None], **usual | options)

    # ---- what can be asked for -----------------------------------------------------------

    @property
    def steps(self) -> int:
        """How many output cells there are."""
        return int(np.prod(self.geometry.output_shape))

    @property
    def y(self) -> np.ndarray:
        """The output, (N, O, OH, OW)."""
        g = self.geometry
        return conv2d(
            self.x,
            self.weight,
            self.bias,
            stride=g.stride,
            padding=g.padding,
            dilation=g.dilation,
            groups=g.groups,
            padding_mode=g.padding_mode,
        )

    def load(self, source: Example) -> None:
        """Show another running example, at its first window."""
        geometry, operands = _read(source, None, None, {})
        _check_size(geometry)
        with self.hold_sync(), self.hold_trait_notifications():
            self.look = ""
            self.step = 1
            self.geometry = geometry
            for name, array in operands.items():
                setattr(self, name, array)
            self.peak, self.speed = _is_tracker(source), _speed(geometry)
            self.look = "y[0,0,0,0]"

    # ---- what keeps the traits consistent ------------------------------------------------

    @property
    def _place(self) -> int | None:
        """The number of the output cell that is looked at; None where none is."""
        if not self.look.startswith("y"):
            return None
        return int(np.ravel_multi_index(_parsed(self.look)[1], self.geometry.output_shape))

    @traitlets.validate("geometry")
    def _small_enough(self, proposal: dict[str, Any]) -> ConvGeometry:
        _check_size(proposal["value"])
        return proposal["value"]

    @traitlets.validate("x", "weight", "bias")
    def _fits(self, proposal: dict[str, Any]) -> np.ndarray:
        name, array = proposal["trait"].name, proposal["value"]
        try:
            self.geometry.require(**{name: array})
        except ValueError as error:
            raise RefusedShape(f"{error}; to change sizes, assign geometry first") from error
        return array

    @traitlets.validate("look")
    def _there(self, proposal: dict[str, Any]) -> str:
        look = proposal["value"].replace(" ", "")
        if look and not _is_there(look, self.geometry):
            raise Refused(
                f"look is {look!r}: needed is a cell of {self.geometry.describe()} such as "
                "'y[0,0,1,2]', a tap such as 'w[0,0,1,2]', an input cell such as 'x[0,0,1,2]', "
                "or '' for the window of the step"
            )
        return look

    @traitlets.validate("step")
    def _within(self, proposal: dict[str, Any]) -> int:
        return min(max(proposal["value"], 0), self.steps)

    @traitlets.validate("speed")
    def _moving(self, proposal: dict[str, Any]) -> float:
        if not 0 < proposal["value"] <= 1000:
            raise Refused(f"speed is {proposal['value']}: needed is a number of cells a second")
        return proposal["value"]

    @traitlets.observe("look")
    def _follow_look(self, change: dict[str, Any]) -> None:
        """The window of the step is the one that is looked at."""
        if self._place is not None:
            self.step = self._place + 1

    @traitlets.observe("step")
    def _follow_step(self, change: dict[str, Any]) -> None:
        """Another window: what was looked at before is looked at no more."""
        if self.look and self._place != self.step - 1:
            self.look = ""

    @traitlets.observe("geometry")
    def _follow_geometry(self, change: dict[str, Any]) -> None:
        g = self.geometry
        shapes = {"x": g.x_shape, "weight": g.weight_shape, "bias": g.bias_shape}
        # nobody is told before all of them fit
        with self.hold_sync(), self.hold_trait_notifications():
            for name, shape in shapes.items():
                array = getattr(self, name)
                if array.shape != shape:
                    setattr(self, name, refit(array, shape))
            if self.look and not _is_there(self.look, g):
                self.look = ""
            self.step = min(self.step, self.steps)

    def _write_fallback(self, change: Any = None) -> None:
        if self._property_lock:
            return  # a change from the browser, which draws it itself and needs no fallback
        place = self._place
        if place is None:  # a tap or an input cell: still one output cell is worked out
            place = max(self.step - 1, 0)
        self.fallback = sliding_fallback(
            self.geometry, self.x, self.weight, self.bias, place, self.peak
        )


def _parsed(look: str) -> tuple[str, tuple[int, ...]]:
    match = _LOOK.fullmatch(look)
    return (match[1], tuple(map(int, match.groups()[1:]))) if match else ("", ())


def _is_there(look: str, g: ConvGeometry) -> bool:
    """Whether the geometry has such a cell; of x the padding counts too."""
    name, index = _parsed(look)
    if not name:
        return False
    if name == "x":
        (top, bottom), (left, right) = g.padding
        low = (0, 0, -top, -left)
        high = (g.N, g.C, g.H + bottom, g.W + right)
    else:
        low, high = (0, 0, 0, 0), g.output_shape if name == "y" else g.weight_shape
    return all(a <= k < b for a, k, b in zip(low, index, high, strict=True))


def _is_tracker(source: Any) -> bool:
    return isinstance(source, Example) and source.letter == "E"


def _speed(geometry: ConvGeometry) -> float:
    """A picture has many places."""
    return 60.0 if as_pictures(geometry) else 2.0


def _read(
    x: Example | Any, weight: Any, bias: Any, conv: dict[str, Any]
) -> tuple[ConvGeometry, dict[str, np.ndarray]]:
    """The geometry and the operands that the arguments of the constructor describe."""
    if x is None and weight is None:
        x = example("B")
    if isinstance(x, Example):
        if conv or weight is not None:
            given = ", ".join([*(["weight"] if weight is not None else []), *conv])
            raise TypeError(
                f"{given} given together with example {x.letter}, which has its own: give the "
                "example alone, or arrays with the arguments of conv2d"
            )
        arrays = x.arrays()
        if bias is None:
            bias = arrays.bias
        geometry, x, weight = x.geometry, arrays.x, arrays.weight
    else:
        if x is None or weight is None:
            hint = f'example("{x}")' if isinstance(x, str) else "an example"
            raise TypeError(f"x and weight are both needed: give {hint}, or the two arrays")
        geometry = ConvGeometry.of(np.shape(x), np.shape(weight), **conv)
        if bias is None:
            bias = np.zeros(geometry.bias_shape)
    geometry.require(bias=bias)
    return geometry, {"x": x, "weight": weight, "bias": bias}


def _check_size(geometry: ConvGeometry) -> None:
    g = geometry
    if g.N == 0:
        raise RefusedShape("the batch is empty, N = 0: the sliding window needs an image")
    cells = max(np.prod(s) for s in (g.x_shape, g.weight_shape, g.output_shape))
    products = int(np.prod(g.output_shape)) * g.CG * g.KH * g.KW
    if cells > MOST_CELLS or products > MOST_PRODUCTS:
        raise RefusedShape(
            f"{g.describe()} has {products:,} products and arrays of up to {cells:,} cells: "
            f"the sliding window draws up to {MOST_PRODUCTS:,} products and {MOST_CELLS:,} cells; "
            "take fewer channels, or a smaller image"
        )


def _presets(pictured: bool) -> list[dict[str, Any]]:
    """What is offered beside what is shown, as the browser needs it.

    Tables beside tables, pictures beside pictures: all of them would weigh ten times as much.
    """
    shown = [
        (each.letter, each.title, each.lesson, each.geometry, each.arrays()._asdict())
        for each in map(EXAMPLES.__getitem__, PICTURES if pictured else TABLES)
    ]
    if pictured:
        x, weight = photograph(PHOTOGRAPH)[None, None], KERNELS["all edges"][None, None]
        geometry = ConvGeometry.of(x.shape, weight.shape, padding=1, padding_mode="replicate")
        arrays = {"x": x, "weight": weight, "bias": np.zeros(1)}
        lesson = "Blur, sharpen, find edges: each is a kernel of nine numbers."
        shown.append(("photo", "A small photograph", lesson, geometry, arrays))
    return [
        {
            "letter": letter,
            "title": title,
            "lesson": lesson,
            "geometry": geometry.as_dict(),
            "peak": letter == "E",
            **{name: wire(arrays[name]) for name in ("x", "weight", "bias")},
        }
        for letter, title, lesson, geometry, arrays in shown
    ]
