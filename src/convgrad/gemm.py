"""The three maps of a layer as products of matrices, and how those are cut into tiles.

>>> from convgrad import example
>>> product = gemm(example("F").geometry, "grad_weight")
>>> product
Gemm(M=64, N=576, K=100352, groups=1)
>>> tiled(product, tile=128, multiprocessors=132)
Tiling(rows=64, cols=128, depth=100352, tiles=5, programs=5, waves=1)
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from .geometry import ConvGeometry, shown

__all__ = ["MAPS", "SHORTEST", "Gemm", "Map", "Tiling", "fitting", "gemm", "tiled"]

Map = Literal["forward", "grad_input", "grad_weight"]

MAPS: tuple[Map, ...] = ("forward", "grad_input", "grad_weight")

SHORTEST = 16  # of every axis of tl.dot; the interpreter would take less, the compiler does not


class Gemm(NamedTuple):
    """A map of the layer as products of matrices: rows, columns, and what is summed over.

    Attributes
    ----------
    M, N, K : int
        M_gemm, N_gemm and K_gemm of one group.
    groups : int
        How many such products there are.

    Examples
    --------
    >>> Gemm(M=64, N=576, K=100352, groups=1).K
    100352
    """

    M: int
    N: int
    K: int
    groups: int


def gemm(geometry: ConvGeometry, which: Map) -> Gemm:
    """The sizes of a map as a product of matrices, as an implicit GEMM has them.

    Parameters
    ----------
    geometry : ConvGeometry
    which : {"forward", "grad_input", "grad_weight"}

    Returns
    -------
    Gemm
        The weight gradient is small and its sum long; the two others are tall and their sums short.

    Raises
    ------
    ValueError
        For an unknown map.

    Examples
    --------
    >>> from convgrad import example
    >>> for which in MAPS:
    ...     print(which, *gemm(example("F").geometry, which))
    forward 100352 64 576 1
    grad_input 100352 64 576 1
    grad_weight 64 576 100352 1
    """
    g = geometry
    taps, windows = g.KH * g.KW, g.N * g.OH * g.OW
    if which == "forward":
        return Gemm(windows, g.OG, g.CG * taps, g.groups)
    if which == "grad_input":
        return Gemm(g.N * g.H * g.W, g.CG, g.OG * taps, g.groups)
    if which == "grad_weight":
        return Gemm(g.OG, g.CG * taps, windows, g.groups)
    raise ValueError(f"which={shown(which)}: known are {', '.join(MAPS)}")


def fitting(size: int, most: int) -> int:
    """The side of a tile: the power of two that holds ``size``, from 16 to ``most``.

    Examples
    --------
    >>> fitting(64, 128), fitting(576, 128), fitting(3, 128)
    (64, 128, 16)
    """
    return min(max(SHORTEST, 1 << (size - 1).bit_length()), most)


class Tiling(NamedTuple):
    """How a product is handed out to the multiprocessors of a card.

    Attributes
    ----------
    rows, cols : int
        Sides of a tile.
    depth : int
        How many products each number of a tile sums in one program.
    tiles, programs : int
        Tiles in all; programs, one for each tile and each share of its sum.
    waves : int
        How many programs the busiest multiprocessor works on, one after the other.

    Examples
    --------
    >>> cut = tiled(Gemm(100352, 64, 576, 1), tile=128, multiprocessors=132)
    >>> cut.tiles, cut.waves
    (784, 6)
    """

    rows: int
    cols: int
    depth: int
    tiles: int
    programs: int
    waves: int


def tiled(product: Gemm, tile: int, multiprocessors: int, splits: int = 1) -> Tiling:
    """Cut a product into tiles, and the sum of each tile into ``splits`` shares.

    Parameters
    ----------
    product : Gemm
    tile : int
        Side of a tile, at most; a smaller matrix gets a smaller one.
    multiprocessors : int
        How many programs run at once.
    splits : int, default 1
        Shares of each sum (split-K); no more than there is to sum.

    Returns
    -------
    Tiling

    Examples
    --------
    >>> cut = tiled(Gemm(64, 576, 100352, 1), 128, multiprocessors=132, splits=26)
    >>> cut.tiles, cut.programs, cut.depth, cut.waves
    (5, 130, 3860, 1)
    """
    rows, cols = fitting(product.M, tile), fitting(product.N, tile)
    tiles = product.groups * -(-product.M // rows) * -(-product.N // cols)
    parts = min(splits, product.K)
    depth = -(-product.K // parts)
    programs = tiles * parts
    return Tiling(rows, cols, depth, tiles, programs, -(-programs // multiprocessors))
