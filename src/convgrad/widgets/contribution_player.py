"""The heart of the book: play every product into the gradient cell that it belongs to."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..api import conv2d_backward
from ..examples import Example
from .base import traitlets
from .fallback import player_fallback
from .operands import LAYOUT, PlayedWidget

__all__ = ["ContributionPlayer", "Gradients"]

TARGETS = ("weight", "input", "bias")
ORDERS = ("tap", "position", "kernel")


class Gradients(NamedTuple):
    """What ``ContributionPlayer.gradients`` gives, in the order of ``conv2d_backward``.

    Attributes
    ----------
    grad_input : ndarray, (N, C, H, W)
    grad_weight : ndarray, (O, C/groups, KH, KW)
    grad_bias : ndarray, (O,)

    Examples
    --------
    >>> from convgrad import example
    >>> ContributionPlayer(example("B")).gradients.grad_bias
    array([6.])
    """

    grad_input: np.ndarray  # n c h v
    grad_weight: np.ndarray  # o c i j
    grad_bias: np.ndarray  # o


class ContributionPlayer(PlayedWidget):
    """Three grids, and the gradient that their products fill, one step a product.

    Everything is a trait: an edit in the browser arrives here, an assignment here is drawn
    there.  Assigning ``geometry`` refits the arrays, which keep their numbers where they can.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

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
    >>> from convgrad import example
    >>> player = ContributionPlayer(example("B"), order="tap", step=9)
    >>> player.gradients.grad_weight[0, 0]
    array([[ 3.,  8.,  9.],
           [ 8., 10.,  9.],
           [10.,  3.,  5.]])
    """

    _bundle: ClassVar[str] = "contribution_player"
    _who: ClassVar[str] = "the player"
    _played: ClassVar[tuple[str, ...]] = ("target", "order", "include_padding")

    target = traitlets.Enum(TARGETS, "weight").tag(sync=True)
    order = traitlets.Enum(ORDERS, "tap").tag(sync=True)
    include_padding = traitlets.Bool(True).tag(sync=True)

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
        layout = {key: conv.pop(key) for key in LAYOUT if key in conv}
        super().__init__(
            *(x, weight, grad_output, conv),
            **layout,
            target=target,
            order=order,
            step=step,
            include_padding=include_padding,
            speed=speed,
        )

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

    def _draw_fallback(self) -> str:
        arrays = (self.x, self.weight, self.grad_output)
        options = {name: getattr(self, name) for name in ("step", *self._played)}
        return player_fallback(self.geometry, *arrays, **options)
