"""What widgets that show a convolution share: its geometry, its arrays, how it is played."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..examples import EXAMPLES, Example, example
from ..geometry import ConvGeometry
from .base import Array, Explorable, Geometry, Refused, RefusedShape, refit, traitlets

__all__ = ["LAYOUT", "OperandsWidget", "PlayedWidget"]

LAYOUT = ("layout", "tooltip", "tabbable")  # options of every widget, none of conv2d
MOST_CELLS = 2_000  # of one array: what can still be read, and drawn within a frame
MOST_PRODUCTS = 50_000  # products: what can still be scrubbed within a frame


class OperandsWidget(Explorable):
    """A convolution that can be changed from both sides: ``geometry``, ``x, weight, grad_output``.

    Assigning ``geometry`` refits the arrays, which keep their numbers where they can; an array of
    another shape is refused.  ``_who`` is how the sentences of a refusal call the widget.
    """

    _who: ClassVar[str]
    _shown: ClassVar[str] = "ABCD"  # the running examples that the page offers

    geometry = Geometry(EXAMPLES["B"].geometry)
    x = Array(np.zeros((1, 1, 5, 5)))
    weight = Array(np.zeros((1, 1, 3, 3)))
    grad_output = Array(np.zeros((1, 1, 3, 3)))
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)
    limits = traitlets.Dict({"cells": MOST_CELLS, "products": MOST_PRODUCTS}).tag(sync=True)

    def __init__(
        self, x: Example | Any, weight: Any, grad_output: Any, conv: dict[str, Any], **traits: Any
    ) -> None:
        geometry, operands = read_operands(x, weight, grad_output, conv, self._default())
        self._check_size(geometry)
        presets = [_preset(EXAMPLES[letter]) for letter in self._shown]
        super().__init__(geometry=geometry, **operands, presets=presets, **traits)

    @classmethod
    def _default(cls) -> Example:
        """What is shown when nothing is given."""
        return example("B")

    def load(self, source: Example) -> None:
        """Show another running example."""
        geometry, operands = read_operands(source, None, None, {}, source)
        self._check_size(geometry)
        with self.hold_sync(), self.hold_trait_notifications():
            self.geometry = geometry
            for name, array in operands.items():
                setattr(self, name, array)

    # ---- what keeps the traits consistent ------------------------------------------------

    @traitlets.validate("geometry")
    def _small_enough(self, proposal: dict[str, Any]) -> ConvGeometry:
        self._check_size(proposal["value"])
        return proposal["value"]

    @traitlets.validate("x", "weight", "grad_output")
    def _fits(self, proposal: dict[str, Any]) -> np.ndarray:
        name, array = proposal["trait"].name, proposal["value"]
        try:
            self.geometry.require(**{name: array})
        except ValueError as error:
            raise RefusedShape(f"{error}; to change sizes, assign geometry first") from error
        return array

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

    def _check_size(self, geometry: ConvGeometry) -> None:
        if geometry.N == 0:
            raise RefusedShape(f"the batch is empty, N = 0: {self._who} needs at least one image")
        g = geometry
        cells = max(np.prod(s) for s in (g.x_shape, g.weight_shape, g.output_shape))
        products = int(np.prod(g.output_shape)) * g.CG * g.KH * g.KW
        if cells > MOST_CELLS or products > MOST_PRODUCTS:
            raise RefusedShape(
                f"{g.describe()} has {products:,} products and arrays of up to {cells:,} cells: "
                f"{self._who} draws up to {MOST_PRODUCTS:,} products and {MOST_CELLS:,} cells; "
                "take fewer channels, or a smaller image"
            )


class PlayedWidget(OperandsWidget):
    """One that goes step by step: ``step`` from 0 to ``steps``, ``speed`` in steps a second.

    ``_played`` names the traits that, besides the arrays, say what is drawn.
    """

    _played: ClassVar[tuple[str, ...]]

    step = traitlets.Int(0).tag(sync=True)
    speed = traitlets.Float(2.0).tag(sync=True)

    def __init__(self, *arguments: Any, step: int | None, **traits: Any) -> None:
        super().__init__(*arguments, **traits)
        # after the rest, which says how many steps there are
        self.step = self.steps if step is None else step
        self.observe(self._follow_steps, ["geometry", *self._played])
        self._drawn: list[Any] = []  # what the fallback was drawn from
        self._write_fallback()
        watched = ["geometry", "x", "weight", "grad_output", "step", *self._played]
        self.observe(self._write_fallback, watched)

    @property
    def steps(self) -> int:
        """How many steps there are in all."""
        raise NotImplementedError

    def _draw_fallback(self) -> str:
        """What is shown where no script runs."""
        raise NotImplementedError

    def load(self, source: Example) -> None:
        """Show another running example, from its first step."""
        with self.hold_sync(), self.hold_trait_notifications():
            self.step = 0
            super().load(source)

    @traitlets.validate("step")
    def _within(self, proposal: dict[str, Any]) -> int:
        return min(max(proposal["value"], 0), self.steps)

    @traitlets.validate("speed")
    def _moving(self, proposal: dict[str, Any]) -> float:
        if not 0 < proposal["value"] <= 1000:
            raise Refused(f"speed is {proposal['value']}: needed is a number of steps a second")
        return proposal["value"]

    def _follow_steps(self, change: dict[str, Any]) -> None:
        self.step = min(self.step, self.steps)

    def _write_fallback(self, change: Any = None) -> None:
        if self._property_lock:
            return  # a change from the browser, which draws it itself and needs no fallback
        names = ("geometry", "x", "weight", "grad_output", "step", *self._played)
        drawn = [getattr(self, name) for name in names]
        # arrays are never written to, so the same objects are the same numbers
        if all(new is old for new, old in zip(drawn, self._drawn, strict=False)) and self._drawn:
            return
        self._drawn = drawn
        self.fallback = self._draw_fallback()


def read_operands(
    x: Example | Any, weight: Any, grad_output: Any, conv: dict[str, Any], default: Example
) -> tuple[ConvGeometry, dict[str, np.ndarray]]:
    """The geometry and the three operands that the arguments of a constructor describe."""
    if x is None and weight is None:
        x = default
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
