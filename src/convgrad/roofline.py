"""How fast a layer can be at most: by the arithmetic of a card, by its memory, and by its tiles.

A card does so many operations a second and moves so many bytes a second.  The operations that a
layer has for each byte say which of the two it waits for: the roofline of Williams, Waterman and
Patterson (2009).  A third limit lies under that roof.  A product of matrices is handed out to the
multiprocessors in tiles, and a multiprocessor without a tile does nothing; the weight gradient has
few tiles, each with a very long sum.

Everything here is computed, from sizes and from the makers' data sheets.  Nothing was measured.

>>> from convgrad import example
>>> layer, card = example("F").geometry, CARDS["H100"]
>>> limits = bound(layer, "grad_weight", card, "float16", tile=128)
>>> limits.tiles, limits.waves, f"{limits.share:.1%}", limits.limit
(5, 1, '3.4%', 'tiles')
>>> split = bound(layer, "grad_weight", card, "float16", tile=128, splits=26)
>>> split.programs, f"{split.share:.0%}", split.limit
(130, '89%', 'memory')
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from .costs import operations, traffic
from .geometry import ConvGeometry, GeometryError, shown
from .implicit import gemm
from .schedule import SHORTEST, Schedule, Tile, fitting

__all__ = [
    *("BYTES", "CARDS", "MAPS", "Bound", "Card", "Limit", "Map", "Precision", "Roof"),
    *("bound", "card_named"),
]

Map = Literal["forward", "grad_input", "grad_weight"]
Precision = Literal["float32", "tf32", "bfloat16", "float16"]
Limit = Literal["arithmetic", "memory", "tiles"]

#: Bytes that a number takes in memory.  TF32 is a way of multiplying: its numbers lie in memory as
#: float32.
BYTES: Mapping[Precision, int] = MappingProxyType(
    {"float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2}
)

#: The three maps, each with its name in :mod:`convgrad.implicit`.
MAPS: Mapping[Map, str] = MappingProxyType(
    {"forward": "forward", "grad_input": "input", "grad_weight": "weight"}
)
NEARLY_ALL = 0.9  # of the arithmetic: where tiles leave less than that, it is they that limit


class Roof(NamedTuple):
    """The most of both: operations a second, and bytes a second, in units that go together.

    Attributes
    ----------
    peak : float
        Operations a second.
    bandwidth : float
        Bytes a second.

    Examples
    --------
    >>> roof = Roof(peak=60.0, bandwidth=3.0)
    >>> roof.ridge, roof.over(5), roof.over(50)
    (20.0, 15.0, 60.0)
    """

    peak: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """Operations per byte from which on memory is no longer the limit."""
        return self.peak / self.bandwidth

    def over(self, intensity: float) -> float:
        """The most operations a second with so many of them for each byte.

        Parameters
        ----------
        intensity : float
            Operations per byte.

        Returns
        -------
        float
        """
        return min(self.peak, self.bandwidth * intensity)


class Card(NamedTuple):
    """What the maker's data sheet says of a card.

    Attributes
    ----------
    float32, tf32, bfloat16, float16 : float
        TFLOP/s: 10¹² operations a second.  In float32 without tensor cores; in the short types and
        TF32 with them, on dense operands and with sums in float32.  A card that has no units for a
        type computes it in float32.
    memory : float
        TB/s: 10¹² bytes a second.
    multiprocessors : int
        Parts of the card that work on a tile each.

    Examples
    --------
    >>> CARDS["H100"].float32, CARDS["H100"].multiprocessors
    (66.9, 132)
    """

    float32: float
    tf32: float
    bfloat16: float
    float16: float
    memory: float
    multiprocessors: int

    def roof(self, precision: Precision) -> Roof:
        """In TFLOP/s and TB/s.

        Parameters
        ----------
        precision : {"float32", "tf32", "bfloat16", "float16"}

        Returns
        -------
        Roof

        Examples
        --------
        >>> roofs = [CARDS["H100"].roof(each) for each in ("float32", "float16")]
        >>> [round(roof.ridge) for roof in roofs]
        [20, 295]
        """
        if precision not in BYTES:
            raise ValueError(f"precision={shown(precision)}: known are {', '.join(BYTES)}")
        return Roof(getattr(self, precision), self.memory)


#: From NVIDIA's data sheets and white papers.  Where those count zeros that need no work
#: ("with sparsity"), here stands half of it.
CARDS: Mapping[str, Card] = MappingProxyType(
    {
        "H200": Card(66.9, 494.7, 989.4, 989.4, 4.8, 132),
        "H100": Card(66.9, 494.7, 989.4, 989.4, 3.35, 132),
        "H100 PCIe": Card(51.2, 378.0, 756.5, 756.5, 2.04, 114),
        "A100-SXM4-80GB": Card(19.5, 156.0, 312.0, 312.0, 2.04, 108),
        "A100-SXM4-40GB": Card(19.5, 156.0, 312.0, 312.0, 1.56, 108),
        "A100-PCIE-40GB": Card(19.5, 156.0, 312.0, 312.0, 1.56, 108),
        "L4": Card(30.3, 60.5, 121.0, 121.0, 0.3, 58),
        "RTX 4090": Card(82.6, 82.6, 165.2, 165.2, 1.01, 128),
        "RTX 3090": Card(35.6, 35.6, 71.0, 71.0, 0.94, 82),
        "T4": Card(8.1, 8.1, 8.1, 65.0, 0.32, 40),  # neither TF32 nor bfloat16
    }
)


def card_named(name: str) -> Card | None:
    """The card of :data:`CARDS` that PyTorch calls so.

    Parameters
    ----------
    name : str
        As ``torch.cuda.get_device_name()`` gives it.

    Returns
    -------
    Card or None
        None for a card that is not in the table.

    Examples
    --------
    >>> card_named("NVIDIA H100 PCIe") == CARDS["H100 PCIe"]
    True
    >>> card_named("NVIDIA L40S") is None
    True
    """
    fits = [part for part in CARDS if f" {part} " in f" {name} "]
    return CARDS[max(fits, key=len)] if fits else None


class Bound(NamedTuple):
    """What a map of a layer can reach at most, and why no more.

    Attributes
    ----------
    operations : int
        Multiplications and additions, as :func:`convgrad.costs.operations` counts them.
    bytes : int
        What moves between memory and card at least.
    intensity : float
        Operations per byte.
    tiles, programs, waves : int
        Tiles of the product; programs, one for each tile and share of its sum; and how many times
        all multiprocessors have to begin anew until all programs are done.  0 where ``tile`` is 0.
    share : float
        Of the card's arithmetic, what those programs can use.  1 where ``tile`` is 0.
    ceiling : float
        TFLOP/s: that share of the peak.
    tflops : float
        TFLOP/s that the roof allows over this intensity, under this ceiling.
    milliseconds : float
        The least time.
    limit : {"arithmetic", "memory", "tiles"}
        What is in the way.

    Examples
    --------
    >>> from convgrad import example
    >>> found = bound(example("F").geometry, "grad_weight", CARDS["H100"], tile=128)
    >>> found.tiles, found.limit
    (5, 'tiles')
    """

    operations: int
    bytes: int
    intensity: float
    tiles: int
    programs: int
    waves: int
    share: float
    ceiling: float
    tflops: float
    milliseconds: float
    limit: Limit


def bound(
    geometry: ConvGeometry,
    which: Map,
    card: Card,
    precision: Precision = "float32",
    *,
    columns: bool = False,
    tile: int = 0,
    splits: int = 1,
) -> Bound:
    """The most that one map of a layer can reach on a card.

    Parameters
    ----------
    geometry : ConvGeometry
    which : {"forward", "grad_input", "grad_weight"}
    card : Card
    precision : {"float32", "tf32", "bfloat16", "float16"}, default "float32"
    columns : bool, default False
        Whether the columns of im2col are written to memory and read again.
    tile : int, default 0
        Side of a tile, at most; 0 leaves the tiles out: the plain roofline.
    splits : int, default 1
        Into how many shares the sum of each tile of the weight gradient is cut (split-K).  The
        shares are written in float32 and read again to be added.

    Returns
    -------
    Bound

    Raises
    ------
    GeometryError
        For an empty batch.
    ValueError
        For an unknown map or precision, and for sizes below their least.

    Notes
    -----
    One multiprocessor works on one program at a time, at its part of the peak; it takes as long for
    a tile that is half empty as for a full one, and for products with padding or with an output
    that does not exist as for others.  Real kernels run several programs at once on a
    multiprocessor, and never quite reach the peak.

    Examples
    --------
    >>> from convgrad import ConvGeometry
    >>> layer = ConvGeometry(N=8, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1)
    >>> card = CARDS["A100-SXM4-40GB"]
    >>> plain = bound(layer, "forward", card)
    >>> plain.limit, round(plain.intensity), plain.tflops
    ('arithmetic', 142, 19.5)
    >>> bound(layer, "forward", card, "float16", columns=True).limit
    'memory'
    """
    if not geometry.N:
        raise GeometryError("the batch is empty, N = 0: there is nothing to compute")
    if splits < 1 or 0 != tile < SHORTEST:
        raise ValueError(
            f"splits={shown(splits)}, tile={shown(tile)}: needed is at least 1 split, and a tile "
            "of at least 16, or 0 for none"
        )
    if which not in MAPS:
        raise ValueError(f"which={shown(which)}: known are {', '.join(MAPS)}")
    roof = card.roof(precision)
    work = operations(geometry)
    moved = traffic(geometry, BYTES[precision], columns=columns)
    tiles, programs, waves, share = 0, 0, 0, 1.0
    if tile:
        cut = _cut(geometry, which, card, tile, splits)
        tiles, programs, waves = cut.tiles, cut.programs, cut.waves
        if cut.parts > 1:
            moved += 2 * cut.parts * 4 * math.prod(geometry.weight_shape)
        # of what all multiprocessors could have done in the time of the busiest one
        room = 2 * waves * card.multiprocessors * cut.tile.M * cut.tile.N * cut.share
        share = min(1.0, work / room)  # with a wide border more is counted than gathered
    ceiling = share * roof.peak
    tflops = Roof(ceiling, roof.bandwidth).over(work / moved)
    limit: Limit = "memory"
    if tflops == ceiling:
        limit = "arithmetic" if share >= NEARLY_ALL else "tiles"
    return Bound(
        operations=work,
        bytes=moved,
        intensity=work / moved,
        tiles=tiles,
        programs=programs,
        waves=waves,
        share=share,
        ceiling=ceiling,
        tflops=tflops,
        milliseconds=work / tflops / 1e9,
        limit=limit,
    )


def _cut(geometry: ConvGeometry, which: Map, card: Card, tile: int, splits: int) -> Schedule:
    """The map's product in tiles that fit it, its sums window by window or tap by tap."""
    product = gemm(geometry, MAPS[which])
    sides = Tile(fitting(product.M, tile), fitting(product.N, tile), 1)
    return Schedule(
        geometry,
        MAPS[which],
        tile=sides,
        splits=splits if which == "grad_weight" else 1,
        processors=card.multiprocessors,
    )
