"""Image and columns: the convolution and its gradients as products of matrices."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from .. import im2col
from ..examples import Example
from ..geometry import ConvGeometry
from .base import traitlets
from .operands import LAYOUT, PlayedWidget
from .unfold_fallback import unfold_fallback

__all__ = ["Products", "UnfoldMatrix"]

STAGES = ("columns", "forward", "weight", "input")


class Products(NamedTuple):
    """What :attr:`UnfoldMatrix.products` gives: the columns and the three maps made with them."""

    columns: np.ndarray  # n r l, r = (c, i, j), l = (p, q)
    y: np.ndarray  # n o p q
    grad_weight: np.ndarray  # o c i j
    grad_input: np.ndarray  # n c h v


class UnfoldMatrix(PlayedWidget):
    """An image and the matrix of its windows, the convolution and both gradients as products.

    Point at an entry of the matrix, or go to it with the arrow keys: the image cell that it copies
    lights up, and all the other copies; point at an image cell, and its copies do.  Play, and the
    windows are written out one by one, or a product is filled cell by cell, each spelled out as a
    row times a column.  The input gradient is folded back at the end, with the number of products
    that overlap in each cell.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    x : Example or array_like, (N, C, H, W), optional
        A running example, which brings its own arrays, or the input. Example B when left out.
    weight : array_like, (O, C/groups, KH, KW), optional
        The kernels; left out with an example.
    grad_output : array_like, (N, O, OH, OW), optional
        The upstream gradient; filled with small integers when left out.
    stage : str, default "columns"
        What is made: "columns"; "forward", y = w·columns; "weight", grad_weight = g·columnsᵀ;
        or "input", grad_input = fold(wᵀ·g).
    step : int, optional
        How many steps are done, 0 … ``steps``; all of them when left out.
    speed : float, default 2.0
        Steps a second while it plays.
    **conv
        The arguments of ``conv2d``: stride, padding, dilation, groups, padding_mode.

    Raises
    ------
    GeometryError, ShapeError
        When no such convolution exists, when arrays do not fit, or when there is too much to draw.

    Notes
    -----
    Everything is a trait: an edit in the browser arrives here, an assignment here is drawn there.
    Assigning ``geometry`` refits the arrays, which keep their numbers where they can.  Images and
    groups are blocks of their own, one of them is shown at a time.  The formulas are those of
    ``convgrad.im2col``.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import UnfoldMatrix
    >>> matrix = UnfoldMatrix(example("B"), stage="weight")
    >>> matrix.products.columns.shape, matrix.steps
    ((1, 9, 9), 9)
    """

    _bundle: ClassVar[str] = "unfold_matrix"
    _who: ClassVar[str] = "the matrix view"
    _played: ClassVar[tuple[str, ...]] = ("stage",)

    stage = traitlets.Enum(STAGES, "columns").tag(sync=True)

    def __init__(
        self,
        x: Example | Any = None,
        weight: Any = None,
        grad_output: Any = None,
        *,
        stage: Literal["columns", "forward", "weight", "input"] = "columns",
        step: int | None = None,
        speed: float = 2.0,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in LAYOUT if key in conv}
        super().__init__(
            *(x, weight, grad_output, conv), **layout, stage=stage, step=step, speed=speed
        )

    @property
    def steps(self) -> int:
        """How many steps this stage takes: columns written, cells computed, columns folded."""
        return _steps(self.geometry, self.stage)

    def load(self, source: Example) -> None:
        """Show another running example, with all its steps done."""
        super().load(source)
        self.step = self.steps

    def _follow_steps(self, change: dict[str, Any]) -> None:
        """What was complete stays complete, in another stage or with other sizes."""
        before = {"geometry": self.geometry, "stage": self.stage, change["name"]: change["old"]}
        complete = self.step >= _steps(**before)
        self.step = self.steps if complete else min(self.step, self.steps)

    @property
    def products(self) -> Products:
        """The columns, the output and both gradients of what stands in the grids now."""
        g, x, weight, grad_output = self.geometry, self.x, self.weight, self.grad_output
        return Products(
            columns=im2col.unfold(x, g),
            y=im2col.forward(x, weight, g),
            grad_weight=im2col.grad_weight(grad_output, x, g),
            grad_input=im2col.grad_input(grad_output, weight, g),
        )

    def _draw_fallback(self) -> str:
        return unfold_fallback(
            self.geometry, self.x, self.weight, self.grad_output, stage=self.stage
        )


def _steps(geometry: ConvGeometry, stage: str) -> int:
    g = geometry
    R, L = g.CG * g.KH * g.KW, g.OH * g.OW
    each = {"columns": L, "forward": g.OG * L, "weight": g.OG * R, "input": R * L + L}
    return g.N * g.groups * each[stage]
