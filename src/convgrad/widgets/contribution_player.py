"""The heart of the book: play every product into the gradient cell that it belongs to."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..api import conv2d_backward
from ..examples import EXAMPLES, Example, example
from ..geometry import ConvGeometry
from .base import Array, Explorable, Geometry, Refused, RefusedShape, refit, traitlets
from .fallback import player_fallback

__all__ = ["ContributionPlayer", "Gradients"]

TARGETS = ("weight", "input", "bias")
ORDERS = ("tap", "position", "kernel")
PRESETS = "ABCD"
_PLAYED = ("target", "order", "step", "include_padding")
MOST_CELLS = 2_000  # of one array: what can still be read, and drawn within a frame
MOST_PRODUCTS = 50_000  # products: what can still be scrubbed within a frame


class Gradients(NamedTuple):
    """What ``ContributionPlayer.gradients`` gives, in the order of ``conv2d_backward``.

    Attributes
    ----------
    grad_input : ndarray, (N, C, H, W)
    grad_weight : ndarray, (O, C/groups, KH, KW)
    grad_bias : ndarray, (O,)

    Examples
    --------
    >>> ContributionPlayer(example("B")).gradients.grad_bias
    array([6.])
    """

    grad_input: np.ndarray  # n c h v
    grad_weight: np.ndarray  # o c i j
    grad_bias: np.ndarray  # o


class ContributionPlayer(Explorable):
    """Three grids, and the gradient that their products fill, one step a product.

    Everything is a trait: an edit in the browser arrives here, an assignment here is drawn
    there.  Assigning ``geometry`` refits the arrays, which keep their numbers where they can.

    Parameters
    ----------
    x : Example or array_like, (N, C, H, W), optional
        A running example, which brings the other arrays and the sizes, or the input alone.
    weight : array_like, (O, C/groups, KH, KW), optional
        The kernels; needed where x is an array.
    grad_output : array_like, (N, O, OH, OW), optional
        Filled with small integers where it is left out.
    target : str, default "weight"
        The gradient being filled: "weight", "input" or "bias".
    order : str, default "tap"
        The loop that is outermost: "tap", "position" or "kernel".
    step : int, default 0
        How many products have fallen, 0 to :attr:`steps`.
    include_padding : bool, default True
        Whether products with zero padding are played too.
    speed : float, default 2.0
        Products a second while it plays.
    **conv
        stride, padding, dilation, groups and padding_mode of ``conv2d``, for arrays.

    Attributes
    ----------
    geometry : ConvGeometry
        Every size.  Assign it to change sizes; a dict of its numbers will do.
    x, weight, grad_output : ndarray
        The three grids, read-only float64; assign whole arrays.
    target, order, step, include_padding, speed
        As above.
    complaint : str
        Why the last change from the browser was refused.

    Raises
    ------
    GeometryError
        When the numbers describe no convolution.
    ShapeError
        When an array does not fit it, or the whole is too large to be drawn.
    TypeError
        For an example together with arrays of one's own, or for x without weight.

    Examples
    --------
    >>> player = ContributionPlayer(example("B"), order="tap", step=9)
    >>> player.gradients.grad_weight[0, 0]
    array([[ 3.,  8.,  9.],
           [ 8., 10.,  9.],
           [10.,  3.,  5.]])
    """

    _bundle: ClassVar[str] = "contribution_player"

    geometry = Geometry(EXAMPLES["B"].geometry)
    x = Array(np.zeros((1, 1, 5, 5)))
    weight = Array(np.zeros((1, 1, 3, 3)))
    grad_output = Array(np.zeros((1, 1, 3, 3)))
    target = traitlets.Enum(TARGETS, "weight").tag(sync=True)
    order = traitlets.Enum(ORDERS, "tap").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    include_padding = traitlets.Bool(True).tag(sync=True)
    speed = traitlets.Float(2.0).tag(sync=True)
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)
    limits = traitlets.Dict({"cells": MOST_CELLS, "products": MOST_PRODUCTS}).tag(sync=True)

    def __init__(
        self,
        x: Example | Any = None,
        weight: Any = None,
        grad_output: Any = None,
        *,
        target: Literal["weight", "input", "bias"] = "weight",
        order: Literal["tap", "position", "kernel"] = "tap",
        step: int = 0,
        include_padding: bool = True,
        speed: float = 2.0,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in ("layout", "tooltip", "tabbable") if key in conv}
        geometry, operands = _read(x, weight, grad_output, conv)
        _check_size(geometry)
        super().__init__(
            **layout,
            geometry=geometry,
            **operands,
            target=target,
            order=order,
            include_padding=include_padding,
            speed=speed,
            presets=[_preset(EXAMPLES[letter]) for letter in PRESETS],
        )
        self.step = step  # after the rest, whose sizes say how many steps there are
        self._drawn: list[Any] = []  # what the fallback was drawn from
        self._write_fallback()
        self.observe(self._write_fallback, ["geometry", "x", "weight", "grad_output", *_PLAYED])

    # ---- what can be asked for -----------------------------------------------------------

    @property
    def steps(self) -> int:
        """How many products fall in all, for this target and choice of padding."""
        g = self.geometry
        if self.target == "bias":
            return int(np.prod(g.output_shape))
        rows, cols = g.rows, g.cols
        if self.include_padding:
            return g.N * g.O * g.CG * rows.size * cols.size
        return g.N * g.O * g.CG * int((rows >= 0).sum()) * int((cols >= 0).sum())

    @property
    def gradients(self) -> Gradients:
        """The three gradients of what stands in the grids now, computed by the package."""
        return Gradients(
            *conv2d_backward(
                self.grad_output,
                self.x,
                self.weight,
                stride=self.geometry.stride,
                padding=self.geometry.padding,
                dilation=self.geometry.dilation,
                groups=self.geometry.groups,
                padding_mode=self.geometry.padding_mode,
            )
        )

    def load(self, source: Example) -> None:
        """Show another running example, from its first step.

        Parameters
        ----------
        source : Example
        """
        geometry, operands = _read(source, None, None, {})
        _check_size(geometry)
        with self.hold_sync(), self.hold_trait_notifications():
            self.step = 0
            self.geometry = geometry
            for name, array in operands.items():
                setattr(self, name, array)

    # ---- what keeps the traits consistent ------------------------------------------------

    @traitlets.validate("geometry")
    def _small_enough(self, proposal: dict[str, Any]) -> ConvGeometry:
        _check_size(proposal["value"])
        return proposal["value"]

    @traitlets.validate("x", "weight", "grad_output")
    def _fits(self, proposal: dict[str, Any]) -> np.ndarray:
        name, array = proposal["trait"].name, proposal["value"]
        try:
            self.geometry.require(**{name: array})
        except ValueError as error:
            raise RefusedShape(f"{error}; to change sizes, assign geometry first") from error
        return array

    @traitlets.validate("step")
    def _within(self, proposal: dict[str, Any]) -> int:
        return min(max(proposal["value"], 0), self.steps)

    @traitlets.validate("speed")
    def _moving(self, proposal: dict[str, Any]) -> float:
        if not 0 < proposal["value"] <= 1000:
            raise Refused(f"speed is {proposal['value']}: needed is a number of products a second")
        return proposal["value"]

    @traitlets.observe("geometry")
    def _follow_geometry(self, change: dict[str, Any]) -> None:
        g = self.geometry
        shapes = {"x": g.x_shape, "weight": g.weight_shape, "grad_output": g.output_shape}
        # nobody is told before all three fit
        with self.hold_sync(), self.hold_trait_notifications():
            for name, shape in shapes.items():
                array = getattr(self, name)
                if array.shape != shape:
                    setattr(self, name, refit(array, shape))

    @traitlets.observe("geometry", "target", "include_padding")
    def _follow_steps(self, change: dict[str, Any]) -> None:
        self.step = min(self.step, self.steps)

    def _write_fallback(self, change: Any = None) -> None:
        if self._property_lock:
            return  # a change from the browser, which draws it itself and needs no fallback
        arrays = (self.x, self.weight, self.grad_output)
        options = {name: getattr(self, name) for name in _PLAYED}
        drawn = [self.geometry, *arrays, *options.values()]
        # arrays are never written to, so the same objects are the same numbers
        if all(new is old for new, old in zip(drawn, self._drawn, strict=False)) and self._drawn:
            return
        self._drawn = drawn
        self.fallback = player_fallback(self.geometry, *arrays, **options)


def _read(
    x: Example | Any, weight: Any, grad_output: Any, conv: dict[str, Any]
) -> tuple[ConvGeometry, dict[str, np.ndarray]]:
    """The geometry and the three operands that the arguments of the constructor describe."""
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
        if grad_output is None:
            grad_output = arrays.grad_output
        geometry, x, weight = x.geometry, arrays.x, arrays.weight
    else:
        if x is None or weight is None:
            hint = f'example("{x}")' if isinstance(x, str) else "an example"
            raise TypeError(f"x and weight are both needed: give {hint}, or the two arrays")
        geometry = ConvGeometry.of(np.shape(x), np.shape(weight), **conv)
        if grad_output is None:
            # in another rhythm than x and weight, so that a mix-up shows
            count = np.arange(int(np.prod(geometry.output_shape)))
            grad_output = (4 * count % 9 - 3).reshape(geometry.output_shape)
    geometry.require(grad_output=grad_output)
    return geometry, {"x": x, "weight": weight, "grad_output": grad_output}


def _check_size(geometry: ConvGeometry) -> None:
    if geometry.N == 0:
        raise RefusedShape("the batch is empty, N = 0: the player needs at least one image")
    g = geometry
    cells = max(np.prod(s) for s in (g.x_shape, g.weight_shape, g.output_shape))
    products = int(np.prod(g.output_shape)) * g.CG * g.KH * g.KW
    if cells > MOST_CELLS or products > MOST_PRODUCTS:
        raise RefusedShape(
            f"{g.describe()} has {products:,} products and arrays of up to {cells:,} cells: "
            f"the player draws up to {MOST_PRODUCTS:,} products and {MOST_CELLS:,} cells; "
            "take fewer channels, or a smaller image"
        )


def _preset(source: Example) -> dict[str, Any]:
    """An example as the browser needs it: no second copy of its numbers in JavaScript."""
    arrays = source.arrays()
    return {
        "letter": source.letter,
        "title": source.title,
        "lesson": source.lesson,
        "geometry": source.geometry.as_dict(),
        **{
            name: {"shape": list(array.shape), "data": array.ravel().tolist()}
            for name, array in arrays._asdict().items()
            if name != "bias"
        },
    }
