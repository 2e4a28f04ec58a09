"""One backward pass from four sides: kernel by kernel, scattered and gathered, searched, summed."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from .. import grouped, windows
from ..examples import Example, example
from ..geometry import ConvGeometry
from .base import traitlets
from .operands import LAYOUT, PlayedWidget
from .views_fallback import views_fallback

__all__ = ["GradientViews"]

VIEWS = ("kernels", "scatter-gather", "convolution", "batch")


class GradientViews(PlayedWidget):
    """One backward pass from four sides, each of them played step by step.

    ``view`` chooses:

    - ``"kernels"``: one kernel alone, with its own weight gradient and its share of the input
      gradient; the shares are laid on each other, kernel by kernel, until they are the whole.
    - ``"scatter-gather"``: the input gradient told twice.  On the left every cell of g throws
      g·w into the window it came from; on the right every cell of x collects what is its own,
      and the taps that it meets, as g lies, are the kernel turned by 180°.
    - ``"convolution"``: the weight gradient as x searched with g, stride and dilation exchanged,
      and the crop of the taps that a leftover makes.
    - ``"batch"``: every image a page with its share of each group's weight gradient; the pages
      add up.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    x : Example or array_like, (N, C, H, W), optional
        A running example, which brings its own arrays, or the input. Example D when left out.
    weight : array_like, (O, C/groups, KH, KW), optional
        The kernels; left out with an example.
    grad_output : array_like, (N, O, OH, OW), optional
        The upstream gradient; filled with small integers when left out.
    view : str, default "kernels"
        "kernels", "scatter-gather", "convolution" or "batch".
    image, kernel, channel : int, default 0
        What the grids show where there are several; ``channel`` counts within the kernel's group,
        as in ``weight[kernel, channel]``.  Kernel by kernel the step says which kernel it is, and
        image by image which image.
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
    An image, kernel or channel that does not exist becomes the nearest that does.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import GradientViews
    >>> views = GradientViews(example("D"), view="batch", step=4)
    >>> views.steps, views.image_shares.shape, views.kernel_shares.shape
    (6, (3, 6, 2, 3, 2), (6, 3, 4, 5, 4))
    """

    _bundle: ClassVar[str] = "gradient_views"
    _who: ClassVar[str] = "the gradient view"
    _played: ClassVar[tuple[str, ...]] = ("view", "image", "kernel", "channel")

    view = traitlets.Enum(VIEWS, "kernels").tag(sync=True)
    image = traitlets.Int(0).tag(sync=True)
    kernel = traitlets.Int(0).tag(sync=True)
    channel = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        x: Example | Any = None,
        weight: Any = None,
        grad_output: Any = None,
        *,
        view: Literal["kernels", "scatter-gather", "convolution", "batch"] = "kernels",
        image: int = 0,
        kernel: int = 0,
        channel: int = 0,
        step: int | None = None,
        speed: float = 2.0,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in LAYOUT if key in conv}
        super().__init__(
            *(x, weight, grad_output, conv), **layout, view=view, step=step, speed=speed
        )
        # after the geometry, which says how many there are
        self.image, self.kernel, self.channel = image, kernel, channel

    @classmethod
    def _default(cls) -> Example:
        return example("D")

    # ---- what can be asked for -----------------------------------------------------------

    @property
    def steps(self) -> int:
        """Kernels; cells of g and then cells of x; taps and then the crop; images and groups."""
        return _steps(self.geometry, self.view)

    @property
    def kernel_shares(self) -> np.ndarray:
        """Every kernel's share of the input gradient, (O, N, C, H, W), not yet summed."""
        g = self.geometry
        alone = np.zeros((g.O, *g.output_shape))
        for o in range(g.O):
            alone[o, :, o] = self.grad_output[:, o]
        return np.stack([windows.grad_input(each, self.weight, g) for each in alone])

    @property
    def image_shares(self) -> np.ndarray:
        """Every image's share of the weight gradient, (N, O, C/groups, KH, KW)."""
        return grouped.grad_weight_per_image(self.grad_output, self.x, self.geometry)

    @property
    def grad_input(self) -> np.ndarray:
        """The input gradient, (N, C, H, W), the sum of ``kernel_shares``."""
        return windows.grad_input(self.grad_output, self.weight, self.geometry)

    @property
    def grad_weight(self) -> np.ndarray:
        """The weight gradient, (O, C/groups, KH, KW), the sum of ``image_shares``."""
        return windows.grad_weight(self.grad_output, self.x, self.geometry)

    # ---- what keeps the traits consistent ------------------------------------------------

    def load(self, source: Example) -> None:
        """Show another running example, with all its steps done."""
        super().load(source)
        self.step = self.steps

    @traitlets.validate("image", "kernel", "channel")
    def _existing(self, proposal: dict[str, Any]) -> int:
        most = self._counts()[proposal["trait"].name]
        return min(max(proposal["value"], 0), most - 1)

    def _counts(self) -> dict[str, int]:
        g = self.geometry
        return {"image": g.N, "kernel": g.O, "channel": g.CG}

    def _follow_steps(self, change: dict[str, Any]) -> None:
        """What was complete stays complete, in another view or with other sizes."""
        if change["name"] not in ("geometry", "view"):
            return  # of another image the same steps are done
        before = {"geometry": self.geometry, "view": self.view, change["name"]: change["old"]}
        complete = self.step >= _steps(**before)
        self.step = self.steps if complete else min(self.step, self.steps)
        for name, count in self._counts().items():
            setattr(self, name, min(getattr(self, name), count - 1))

    def _draw_fallback(self) -> str:
        # while a smaller geometry arrives, what is shown may not exist any more
        n, o, c = (min(getattr(self, name), count - 1) for name, count in self._counts().items())
        arrays = (self.x, self.weight, self.grad_output)
        return views_fallback(self.geometry, *arrays, view=self.view, slices=(n, o, c))


def _steps(geometry: ConvGeometry, view: str) -> int:
    g = geometry
    if view == "kernels":
        return g.O
    if view == "scatter-gather":
        return g.OH * g.OW + g.H * g.W
    if view == "batch":
        return g.N * g.groups
    rows, cols = g.KH + g.surplus[0], g.KW + g.surplus[1]
    return rows * cols + (max(g.surplus) > 0)
