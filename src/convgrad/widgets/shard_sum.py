"""Several devices: what each computes of the gradients, what is sent, and how it adds up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from .. import shards as model
from .. import windows
from ..examples import Example, example
from ..geometry import ConvGeometry
from .base import Refused, traitlets
from .operands import LAYOUT, MOST_CELLS, MOST_PRODUCTS, PlayedWidget, read_operands
from .shards_fallback import shards_fallback

__all__ = ["ShardSum"]

MOST_DEVICES = 8  # whose chunks can still be read on a telephone
THINGS = {"images": "images", "rows": "output rows"}  # what is dealt out, by view


class Shares(traitlets.TraitType[tuple[int, ...], Any]):
    """How much each device gets, such as (2, 1); ``"2-1"`` on the wire, short in a link."""

    info_text = "a whole number of at least 1 for each device, such as (2, 1)"

    def __init__(self) -> None:
        super().__init__((1,))
        self.tag(
            sync=True,
            to_json=lambda value, _: "-".join(map(str, value)),
            from_json=lambda value, _: tuple(
                int(each) if each.isdecimal() else each for each in str(value).split("-")
            ),
        )

    def validate(self, obj: Any, value: Any) -> tuple[int, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str):
            self.error(obj, value)
        sizes = tuple(value)
        if not sizes or not all(type(each) is int and each > 0 for each in sizes):
            self.error(obj, value)
        return sizes


class ShardSum(PlayedWidget):
    """The backward pass on several devices, step by step.

    Dealt out by images, each device computes the weight gradient of its own images; a ring
    all-reduce adds the parts, chunk by chunk, until every device holds the sum.  Dealt out by
    rows, each device makes some rows of the output; the rows that its windows read and a
    neighbour holds, the halo, are sent before, and their gradients are sent back and added.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    x : Example or array_like, (N, C, H, W), optional
        A running example, which brings its own arrays, or the input. Example D when left out.
    weight : array_like, (O, C/groups, KH, KW), optional
        The kernels.
    grad_output : array_like, (N, O, OH, OW), optional
        The upstream gradient; filled with small integers when left out.
    view : {"images", "rows"}, default "images"
        What is dealt out: the images of the batch, or the rows of the output.
    devices : int or sequence of int, optional
        How many devices, which then get even shares, or how many images (output rows) each
        device gets; up to 8.  Three when left out, or as many as there is something for.
    loss : {"sum", "mean"}, default "sum"
        What each device makes of the losses of its images.
    combine : {"sum", "average"}, default "sum"
        What is made of the devices' gradients. ``torch.nn.parallel.DistributedDataParallel``
        averages.
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
    ValueError
        When there is nothing to do for one of the devices.

    Notes
    -----
    Everything is a trait: an edit in the browser arrives here, an assignment here is drawn there.
    ``shares`` holds how much each device gets; ``loss`` and ``combine`` say something about
    images only.  The numbers are those of :func:`convgrad.shards.part_of`.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import ShardSum
    >>> shards = ShardSum(example("D"), devices=3)
    >>> shards.shares, shards.steps
    ((1, 1, 1), 6)
    >>> [float(part.grad_weight[0, 0, 0, 0]) for part in shards.parts]
    [38.0, -9.0, -11.0]
    >>> float(shards.agreed[0])  # what each of them holds in the end
    18.0
    """

    _bundle: ClassVar[str] = "shard_sum"
    _who: ClassVar[str] = "the view of devices"
    _shown: ClassVar[str] = "BCD"
    _played: ClassVar[tuple[str, ...]] = ("view", "shares", "loss", "combine")

    view = traitlets.Enum(tuple(THINGS), "images").tag(sync=True)
    shares = Shares()
    loss = traitlets.Enum(("sum", "mean"), "sum").tag(sync=True)
    combine = traitlets.Enum(("sum", "average"), "sum").tag(sync=True)
    limits = traitlets.Dict(
        {"cells": MOST_CELLS, "products": MOST_PRODUCTS, "devices": MOST_DEVICES}
    ).tag(sync=True)

    def __init__(
        self,
        x: Example | Any = None,
        weight: Any = None,
        grad_output: Any = None,
        *,
        view: Literal["images", "rows"] = "images",
        devices: int | Sequence[int] | None = None,
        loss: Literal["sum", "mean"] = "sum",
        combine: Literal["sum", "average"] = "sum",
        step: int | None = 0,
        speed: float = 1.0,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in LAYOUT if key in conv}
        geometry, _ = read_operands(x, weight, grad_output, conv, self._default())
        super().__init__(
            *(x, weight, grad_output, conv),
            **layout,
            view=view,
            shares=_shares(geometry, view, devices),
            loss=loss,
            combine=combine,
            step=step,
            speed=speed,
        )

    @classmethod
    def _default(cls) -> Example:
        return example("D")

    # ---- how much each device gets -------------------------------------------------------

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return len(self._fitting)

    @property
    def dealt(self) -> int:
        """How many images of the batch, or rows of the output, there are to deal out."""
        return _count(self.geometry, self.view)

    def deal(self, devices: int | Sequence[int]) -> None:
        """Other shares: even ones for so many devices, or those given."""
        self.shares = _shares(self.geometry, self.view, devices)

    @traitlets.validate("shares")
    def _fits_what_is_dealt(self, proposal: dict[str, Any]) -> tuple[int, ...]:
        shares: tuple[int, ...] = proposal["value"]
        if len(shares) > MOST_DEVICES:
            raise Refused(
                f"{len(shares)} devices: {self._who} draws up to {MOST_DEVICES}, take fewer"
            )
        if sum(shares) != max(self.dealt, 1):  # an empty batch is refused in other words
            raise Refused(
                f"the shares are {' + '.join(map(str, shares))} = {sum(shares)}: "
                f"needed are shares of {self.dealt} {THINGS[self.view]}"
            )
        return shares

    @traitlets.observe("geometry")
    def _follow_geometry(self, change: dict[str, Any]) -> None:
        # nobody is told of the arrays before the shares fit too, nor the other way round
        with self.hold_sync(), self.hold_trait_notifications():
            super()._follow_geometry(change)
            self._deal_anew()

    @traitlets.observe("view")
    def _deal_anew(self, change: Any = None) -> None:
        self.shares = self._fitting

    @property
    def _fitting(self) -> tuple[int, ...]:
        """The shares; even ones where they do not fit what is dealt out, as amid a change."""
        if sum(self.shares) == self.dealt:
            return self.shares
        wished = len(self.shares) if len(self.shares) > 1 else 3
        return _shares(self.geometry, self.view, min(wished, self.dealt, MOST_DEVICES))

    # ---- what the devices compute ---------------------------------------------------------

    @property
    def shards(self) -> list[Any]:
        """What each device has, an ``ImageShard`` or a ``RowShard`` for each."""
        deal = model.image_shards if self.view == "images" else model.row_shards
        return list(deal(self.geometry, self._fitting))

    @property
    def parts(self) -> list[model.Part]:
        """What each device computes of the three gradients of the summed loss."""
        return [model.part_of(self.grad_output, self.x, self.weight, each) for each in self.shards]

    @property
    def buckets(self) -> list[np.ndarray]:
        """The grad_weight and grad_bias that each device brings to the ring, flat."""
        flat = [np.concatenate([p.grad_weight.ravel(), p.grad_bias]) for p in self.parts]
        if self.view == "rows" or self.loss == "sum":
            return flat
        return [each / images for each, images in zip(flat, self._fitting, strict=True)]

    @property
    def ring(self) -> list[list[np.ndarray]]:
        """What every device holds before the ring and after each of its steps."""
        return model.ring_states(self.buckets)

    @property
    def agreed(self) -> np.ndarray:
        """The grad_weight and grad_bias that every device holds in the end, flat."""
        total = self.ring[-1][0]
        return total / self.devices if self._averages else total

    @property
    def whole(self) -> np.ndarray:
        """The grad_weight and grad_bias of one device that has everything, flat."""
        g = self.geometry
        grad_weight = windows.grad_weight(self.grad_output, self.x, g)
        grad_bias = windows.grad_bias(self.grad_output, g)
        total = np.concatenate([grad_weight.ravel(), grad_bias])
        return total / g.N if self.view == "images" and self.loss == "mean" else total

    @property
    def _averages(self) -> bool:
        return self.view == "images" and self.combine == "average"

    @property
    def steps(self) -> int:
        """Each message of the ring or of the halo is a step, and so is each computation."""
        if self.view == "images":
            average = self._averages and self.devices > 1
            return 1 + 2 * (self.devices - 1) + average + 1
        halo = any(each.halo for each in self.shards)
        return 4 + 2 * halo

    def _draw_fallback(self) -> str:
        return shards_fallback(self)


def _count(geometry: ConvGeometry, view: str) -> int:
    return geometry.N if view == "images" else geometry.OH


def _shares(
    geometry: ConvGeometry, view: str, devices: int | Sequence[int] | None
) -> tuple[int, ...]:
    """How much each device gets, at least one of what is dealt out."""
    count = _count(geometry, view)
    if devices is None or count == 0:
        devices = max(1, min(3, count))
    shares = tuple(len(each) for each in model.deal(max(count, 1), devices))
    if not all(shares):
        raise Refused(
            f"{len(shares)} devices for {count} {THINGS.get(view, view)}: one would have nothing "
            f"to do; take at most {count}, each with one or more"
        )
    return shares
