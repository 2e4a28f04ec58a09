"""A layer's three maps under the roof of a card, as sizes, precision and tiles change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from .. import roofline
from ..costs import operations
from ..examples import EXAMPLES, Example
from ..geometry import ConvGeometry
from ..layers import TABLE
from ..roofline import BYTES, CARDS, MAPS, Bound, Card, Map, Precision
from .base import Explorable, Geometry, Refused, RefusedGeometry, RefusedShape, traitlets
from .roofline_fallback import roofline_fallback

__all__ = ["Roofline"]

MOST_OPERATIONS = 10**15  # counted exactly in the browser too
TILES = (0, 64, 128, 256)
_F = EXAMPLES["F"]

# What the page offers to begin with: a name, what it shows, a geometry.
PRESETS: tuple[tuple[str, str, ConvGeometry], ...] = (
    ("example F: 3×3, 64 @56", _F.title, _F.geometry),
    *((name, geometry.describe(), geometry) for name, geometry in TABLE.items()),
)


class Roofline(Explorable):
    """What forward pass, input gradient and weight gradient of a layer can reach at most on a card.

    Across, operations for each byte that moves; upwards, 10¹² operations a second.  Under the slope
    a map waits for memory, under the flat part for arithmetic.  With tiles each map has a lower
    roof of its own: multiprocessors without a tile do nothing, and the weight gradient has few.
    Nothing here is measured; it is what the data sheet allows.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    geometry : ConvGeometry or Example, optional
        Left out, it is made from ``sizes``, or example F.
    card : str, default "H100"
        One of :data:`convgrad.roofline.CARDS`.
    precision : {"float32", "tf32", "bfloat16", "float16"}, default "float32"
    columns : bool, default False
        Whether im2col's columns are written to memory and read again.
    tile : {0, 64, 128, 256}, default 0
        Side of a tile, at most; 0 leaves the tiles out.
    splits : int, default 1
        Into how many shares the sum of each tile of the weight gradient is cut (split-K).
    target : {"forward", "grad_input", "grad_weight"}, default "grad_weight"
        The map that the sentence under the picture tells of.
    others : bool, default False
        Whether the layers of the list are drawn too.
    **sizes
        As for ``ConvGeometry``: ``N, C, H, W, O, KH, KW, stride, padding, dilation, groups``.

    Attributes
    ----------
    bounds : dict
        For each map its :class:`convgrad.roofline.Bound`.

    Raises
    ------
    GeometryError, ShapeError
        What describes no convolution, an empty batch, or more operations than can be counted.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import Roofline
    >>> roof = Roofline(example("F"), precision="float16", tile=128)
    >>> roof.bounds["grad_weight"].tiles, roof.bounds["forward"].tiles
    (5, 784)
    >>> roof.splits = 26
    >>> roof.bounds["grad_weight"].limit
    'memory'
    """

    _bundle: ClassVar[str] = "roofline"

    geometry = Geometry(_F.geometry)
    card = traitlets.Enum(tuple(CARDS), "H100").tag(sync=True)
    precision = traitlets.Enum(tuple(BYTES), "float32").tag(sync=True)
    columns = traitlets.Bool(False).tag(sync=True)
    tile = traitlets.Enum(TILES, 0).tag(sync=True)
    splits = traitlets.Int(1).tag(sync=True)
    target = traitlets.Enum(tuple(MAPS), "grad_weight").tag(sync=True)
    others = traitlets.Bool(False).tag(sync=True)
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)
    cards = traitlets.Dict().tag(sync=True)
    limits = traitlets.Dict({"operations": MOST_OPERATIONS}).tag(sync=True)

    def __init__(
        self,
        geometry: ConvGeometry | Example | None = None,
        *,
        card: str = "H100",
        precision: Precision = "float32",
        columns: bool = False,
        tile: int = 0,
        splits: int = 1,
        target: Map = "grad_weight",
        others: bool = False,
        **sizes: Any,
    ) -> None:
        layout = {key: sizes.pop(key) for key in ("layout", "tooltip", "tabbable") if key in sizes}
        super().__init__(
            **layout,
            geometry=_read(geometry, sizes),
            card=card,
            precision=precision,
            columns=columns,
            tile=tile,
            splits=splits,
            target=target,
            others=others,
            cards={name: each._asdict() for name, each in CARDS.items()},
            presets=[
                {"name": name, "title": title, "geometry": g.as_dict()}
                for name, title, g in PRESETS
            ],
        )
        self._write_fallback()
        self.observe(
            self._write_fallback,
            ["geometry", "card", "precision", "columns", "tile", "splits", "target"],
        )

    @property
    def bounds(self) -> dict[Map, Bound]:
        return {
            which: roofline.bound(
                self.geometry,
                which,
                self._card,
                self.precision,
                columns=self.columns,
                tile=self.tile,
                splits=self.splits,
            )
            for which in MAPS
        }

    @property
    def _card(self) -> Card:
        return CARDS[self.card]

    @traitlets.validate("geometry")
    def _can_be_counted(self, proposal: dict[str, Any]) -> ConvGeometry:
        g: ConvGeometry = proposal["value"]
        if not g.N:
            raise RefusedGeometry("the batch is empty, N = 0: there is nothing to compute")
        if operations(g) > MOST_OPERATIONS:
            raise RefusedShape(
                f"this layer takes {operations(g):,} operations: the roofline counts up to "
                f"{MOST_OPERATIONS:,}; take fewer images, channels or kernels"
            )
        return g

    @traitlets.validate("splits")
    def _whole(self, proposal: dict[str, Any]) -> int:
        splits: int = proposal["value"]
        if not 1 <= splits <= 4096:
            raise Refused(f"splits is {splits}: needed is a whole number from 1 to 4096")
        return splits

    def _write_fallback(self, change: Any = None) -> None:
        if not self._property_lock:  # the browser draws its own changes
            self.fallback = roofline_fallback(
                self.bounds, self._card, self.precision, self.target, self.geometry, self.card
            )


def _read(geometry: ConvGeometry | Example | None, sizes: dict[str, Any]) -> ConvGeometry:
    if isinstance(geometry, Example):
        geometry = geometry.geometry
    if geometry is None:
        return ConvGeometry(**sizes) if sizes else _F.geometry
    if not isinstance(geometry, ConvGeometry):
        raise TypeError(
            f"geometry is {geometry!r:.40}: needed is a ConvGeometry, an example, or sizes by "
            "name, such as N=32, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1"
        )
    return replace(geometry, **sizes)
