"""Groups: the blocks of the weight gradient that exist, and how one call computes them all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .. import correlate, grouped
from ..examples import Example, example
from .base import traitlets
from .blocks_fallback import blocks_fallback
from .operands import LAYOUT, PlayedWidget

__all__ = ["GroupBlocks"]


class GroupBlocks(PlayedWidget):
    """The weight gradient of a grouped convolution by one grouped convolution, step by step.

    The maps of x and of the upstream gradient are tiles, marked by the letter of their group.  Each
    step moves them: reshape, transpose, one convolution with an image and a group for each of its
    groups, the crop, the sum over the images, the turn into the shape of the weight, and at last
    the blocks among all that a weight without groups would have.  Point at a map, or go to it with
    the arrow keys, to see its numbers and what they are made of.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    x : Example or array_like, (N, C, H, W), optional
        A running example, which brings its own arrays, or the input. Example D when left out.
    weight : array_like, (O, C/groups, KH, KW), optional
        Only its shape matters: the weight gradient does not depend on the weight.
    grad_output : array_like, (N, O, OH, OW), optional
        The upstream gradient; filled with small integers when left out.
    transpose : bool, default True
        False leaves out the transpose of x and only reshapes it: the shape is right, and maps
        stand in the wrong group.  A mix-up of groups of this kind made ``conv2d_weight`` of
        PyTorch wrong for 1 < groups < C (github.com/pytorch/pytorch/issues/51430).
    per_image : bool, default False
        True leaves out the sum: a weight gradient for each image.
    step : int or None, default 0
        How many steps are done, 0 … ``steps``; None for all of them.
    speed : float, default 1.0
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
    The formulas are those of :func:`convgrad.grouped.grad_weight_per_image`.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import GroupBlocks
    >>> blocks = GroupBlocks(example("D"))
    >>> blocks.grad_weight.shape, blocks.per_image_gradients.shape, blocks.steps
    ((6, 2, 3, 2), (3, 6, 2, 3, 2), 12)
    """

    _bundle: ClassVar[str] = "group_blocks"
    _who: ClassVar[str] = "the block view"
    _shown: ClassVar[str] = "BCD"
    _played: ClassVar[tuple[str, ...]] = ("transpose", "per_image")

    transpose = traitlets.Bool(True).tag(sync=True)
    per_image = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        x: Example | Any = None,
        weight: Any = None,
        grad_output: Any = None,
        *,
        transpose: bool = True,
        per_image: bool = False,
        step: int | None = 0,
        speed: float = 1.0,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in LAYOUT if key in conv}
        super().__init__(
            *(x, weight, grad_output, conv),
            **layout,
            transpose=transpose,
            per_image=per_image,
            step=step,
            speed=speed,
        )

    @classmethod
    def _default(cls) -> Example:
        return example("D")

    @property
    def steps(self) -> int:
        """Reshapes, one step for each image and group, the crop if there is one, the rest."""
        g = self.geometry
        before = 3 if self.transpose else 2
        dense = not self.per_image and g.groups > 1
        return before + g.N * g.groups + (max(g.surplus) > 0) + (not self.per_image) + 1 + dense

    @property
    def per_image_gradients(self) -> np.ndarray:
        """Every image's own weight gradient, (N, O, C/groups, KH, KW): the sum left out."""
        return grouped.grad_weight_per_image(self.grad_output, self.x, self.geometry)

    @property
    def grad_weight(self) -> np.ndarray:
        """The weight gradient, (O, C/groups, KH, KW)."""
        return grouped.grad_weight(self.grad_output, self.x, self.geometry)

    @property
    def without_transpose(self) -> np.ndarray:
        """What stands in the place of :attr:`per_image_gradients` when x is only reshaped."""
        g = self.geometry
        N, O, CG, G = g.N, g.O, g.CG, g.groups
        # the maps that are read as the channels of group m = (n, k), in the order of memory
        mixed = self.x.reshape(CG, N * G, g.H, g.W).swapaxes(0, 1)  # m c h v
        one = replace(g, N=1, C=N * g.C, O=N * O, groups=N * G)
        shares = correlate.grad_weight(
            self.grad_output.reshape(one.output_shape), mixed.reshape(one.x_shape), one
        )
        return shares.reshape(N, *g.weight_shape)  # n o c i j

    def _draw_fallback(self) -> str:
        at_end = self.step == self.steps and not self.per_image
        return blocks_fallback(self.geometry, self.per_image_gradients, self.per_image, at_end)
