"""Who computes which tile, and when: a product of matrices shared out among a GPU's processors.

The product (see ``convgrad.implicit``) is cut into tiles.  One program makes one tile, or one
share of the sums of a tile: that is split-K.  A processor takes a program, works through it block
of K after block of K, and takes the next one.  Tiles and shares are cut as in
``convgrad.kernels``.

This is a model, no measurement: every block of K takes one step, whoever does it and wherever its
numbers lie, a processor does one program at a time, and adding shares up takes none.

>>> from convgrad import example
>>> layer = example("F").geometry
>>> few = Schedule(layer, tile=Tile(128, 128, 32), processors=132)
>>> few.tiles, few.time, round(few.busy, 3)
(5, 3136, 0.038)
>>> more = Schedule(layer, tile=Tile(128, 128, 32), splits=26, processors=132)
>>> more.programs, more.time, round(more.busy, 3)
(130, 121, 0.982)
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .geometry import ConvGeometry, as_integer
from .implicit import Gemm, gemm

__all__ = ["Program", "Run", "Schedule", "Tile", "fitting"]

FLOAT32 = 4  # bytes


class Tile(NamedTuple):
    """Sizes of a tile, and how deep a block of the sum is that a program takes at a time.

    Attributes
    ----------
    M, N, K : int
        Rows, columns, and products of a step.

    Examples
    --------
    >>> Tile(64, 64, 32).K
    32
    """

    M: int
    N: int
    K: int


LARGE = Tile(128, 128, 32)  # of a large GPU, for a large layer
SHORTEST = 16  # of every axis of tl.dot; the interpreter would take less, the compiler does not


def fitting(size: int, most: int) -> int:
    """The side of a tile: the power of two that holds ``size``, from 16 to ``most``.

    >>> fitting(64, 128), fitting(576, 128), fitting(3, 128)
    (64, 128, 16)
    """
    return min(max(SHORTEST, 1 << (size - 1).bit_length()), most)


class Program(NamedTuple):
    """What one program makes: share ``part`` of a tile's sums, blocks of K first … end − 1.

    Attributes
    ----------
    number, tile, part, group : int
    row, col : int
        Where the tile is among those of its group, counted in tiles.
    first, end : int
        The blocks of K it goes through, the last one left out.

    Examples
    --------
    >>> from convgrad import example
    >>> Schedule(example("D").geometry, tile=Tile(2, 8, 8)).program(5)
    Program(number=5, tile=5, part=0, group=1, row=0, col=1, first=0, end=4)
    """

    number: int
    tile: int
    part: int
    group: int
    row: int
    col: int
    first: int
    end: int


class Run(NamedTuple):
    """A program on its processor, from step ``start`` to before step ``end``.

    Attributes
    ----------
    program, processor, start, end : int

    Examples
    --------
    >>> Run(program=0, processor=0, start=0, end=5).end
    5
    """

    program: int
    processor: int
    start: int
    end: int


@dataclass(frozen=True)
class Schedule:
    """A map of a convolution cut into programs, and the programs shared out.

    Attributes
    ----------
    geometry : ConvGeometry
    target : str, default "weight"
        "weight", "forward" or "input".
    tile : Tile, default (128, 128, 32)
        Rows and columns of a tile, and depth of a block of K.
    splits : int, default 1
        Into how many shares each tile's sums are cut; there may be fewer (see :attr:`parts`).
    processors : int, default 132
        Multiprocessors of the GPU; 132 has an H100.
    two_passes : bool, default False
        Whether shares are stored apart and added up afterwards, or added by atomics.

    Raises
    ------
    ValueError
        For an unknown target.
    GeometryError
        For sizes that are no whole numbers of at least 1.

    Examples
    --------
    >>> from convgrad import example
    >>> small = Schedule(example("D").geometry, tile=Tile(2, 4, 4), processors=4)
    >>> small.gemm, small.tiles, small.steps
    (Gemm(M=3, N=12, K=27, groups=2), 12, 7)
    >>> small.waves, small.time, small.busy
    (3, 21, 1.0)
    """

    geometry: ConvGeometry
    target: str = "weight"
    tile: Tile = LARGE
    splits: int = 1
    processors: int = 132
    two_passes: bool = False

    def __post_init__(self) -> None:
        for name, size in zip("MNK", self.tile, strict=True):
            as_integer(f"{name} of the tile", size, least=1)
        as_integer("splits", self.splits, least=1)
        as_integer("processors", self.processors, least=1)
        object.__setattr__(self, "tile", Tile(*self.tile))
        _ = self.gemm  # an unknown target is refused now

    # ---- how the product is cut ----------------------------------------------------------

    @cached_property
    def gemm(self) -> Gemm:
        """The sizes of each group's product."""
        return gemm(self.geometry, self.target)

    @property
    def down(self) -> int:
        """Tiles below each other, in each group."""
        return _blocks(self.gemm.M, self.tile.M)

    @property
    def across(self) -> int:
        """Tiles beside each other, in each group."""
        return _blocks(self.gemm.N, self.tile.N)

    @property
    def tiles(self) -> int:
        """Tiles of all groups."""
        return self.gemm.groups * self.down * self.across

    @property
    def steps(self) -> int:
        """Blocks of K in the whole sum of a tile."""
        return _blocks(self.gemm.K, self.tile.K)

    @property
    def share(self) -> int:
        """Blocks of K in a program; the last share may have fewer."""
        return max(1, _blocks(self.steps, self.splits))

    @property
    def parts(self) -> int:
        """Shares of each tile, as many as ``splits`` or fewer, since a share is of whole blocks."""
        return max(1, _blocks(self.steps, self.share))

    @property
    def programs(self) -> int:
        """Programs, one for every share of every tile."""
        return self.tiles * self.parts

    def program(self, number: int) -> Program:
        """The program with this number.

        Parameters
        ----------
        number : int
            All tiles' shares 0 come first, then all shares 1, and so on, as a grid of
            (tiles, parts) programs is started.

        Returns
        -------
        Program
        """
        part, tile = divmod(number, self.tiles)
        group, place = divmod(tile, self.down * self.across)
        row, col = divmod(place, self.across)
        first = part * self.share
        end = min(first + self.share, self.steps)
        return Program(number, tile, part, group, row, col, first, end)

    # ---- who does it, and when -----------------------------------------------------------

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Each program on its processor; whoever is free first takes the next one."""
        free = [(0, processor) for processor in range(self.processors)]
        runs = []
        for number in range(self.programs):
            start, processor = free[0]
            _, _, _, _, _, _, first, end = self.program(number)
            run = Run(number, processor, start, start + end - first)
            heapq.heapreplace(free, (run.end, processor))
            runs.append(run)
        return tuple(runs)

    @property
    def time(self) -> int:
        """Steps until the last processor is done."""
        return max((run.end for run in self.runs), default=0)

    @property
    def busy(self) -> float:
        """Which part of all processors' time is work, from 0 to 1."""
        work = self.tiles * self.steps
        return work / (self.processors * self.time) if self.time else 0.0

    @property
    def waves(self) -> int:
        """How often the processors are filled, the last time perhaps in part."""
        return _blocks(self.programs, self.processors)

    @property
    def last_wave(self) -> int:
        """Processors that the last wave keeps busy."""
        return self.programs - (self.waves - 1) * self.processors

    # ---- what it costs -------------------------------------------------------------------

    @property
    def numbers(self) -> int:
        """Numbers of the result, in all groups."""
        return self.gemm.groups * self.gemm.M * self.gemm.N

    @property
    def workspace(self) -> int:
        """Bytes of the pages in which shares wait for the second pass, in float32."""
        apart = self.splits > 1 and self.two_passes
        return self.parts * self.numbers * FLOAT32 if apart else 0

    @property
    def atomics(self) -> int:
        """Atomic additions to each number of the result."""
        return self.parts if self.splits > 1 and not self.two_passes else 0


def _blocks(whole: int, size: int) -> int:
    """How many blocks of ``size`` hold the ``whole``."""
    return -(-whole // size)
