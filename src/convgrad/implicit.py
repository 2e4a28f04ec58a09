"""The convolution and its gradients as products of matrices that nobody stores.

Each of the three maps is left · right, one such product for each group.  A row or a column of a
matrix has a number, and from the numbers follows where its entry lies in x, in the weight or in
the upstream gradient:

    weight    grad_weight[o, r] = Σ_k g[o, k]·x[k, r]     o kernels, r = (c, i, j), k = (n, p, q)
    forward   y[m, o]           = Σ_k x[m, k]·w[k, o]     m = (n, p, q), k = (c, i, j)
    input     grad_input[m, c]  = Σ_k g[m, k]·w[k, c]     m = (n, h, v), k = (o, i, j)

``o`` and ``c`` count within the group.  These are the maps of the kernels in ``convgrad.kernels``,
for arrays in C order.  Where padding_mode is not "zeros" the kernels put the border on first, and
grad_input is that of the padded image, whose border is folded back afterwards.

>>> from convgrad import example
>>> gemm(example("F").geometry)
Gemm(M=64, N=576, K=100352, groups=1)
>>> int(right(example("B").geometry, "weight", 0, k=4, col=5))  # window (1, 1), tap (1, 2)
13
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .geometry import ConvGeometry
from .padding import with_border

__all__ = ["OPERANDS", "TARGETS", "Gemm", "gemm", "left", "result", "right"]

TARGETS = ("weight", "forward", "input")

#: The arrays in which the entries of the left and of the right matrix lie.
OPERANDS: dict[str, tuple[str, str]] = {
    "weight": ("grad_output", "x"),
    "forward": ("x", "weight"),
    "input": ("grad_output", "weight"),
}


class Gemm(NamedTuple):
    """The sizes of a product: M rows, N columns, K products in each sum; one for each group.

    Attributes
    ----------
    M, N, K, groups : int
        M_gemm, N_gemm and K_gemm of one group's product, and how many groups there are.

    Examples
    --------
    >>> Gemm(2, 3, 5, 1).M
    2
    """

    M: int
    N: int
    K: int
    groups: int


def gemm(geometry: ConvGeometry, target: str = "weight") -> Gemm:
    """The sizes M_gemm, N_gemm and K_gemm of one map.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str, default "weight"
        "weight" for grad_weight, "forward" for y, "input" for grad_input.

    Returns
    -------
    Gemm

    Raises
    ------
    ValueError
        For another target.

    Examples
    --------
    >>> from convgrad import example
    >>> layer = example("F").geometry
    >>> gemm(layer, "forward"), gemm(layer, "input")
    (Gemm(M=100352, N=64, K=576, groups=1), Gemm(M=100352, N=64, K=576, groups=1))
    """
    g = _plain(geometry) if require_target(target) == "input" else geometry
    windows, taps = g.N * g.OH * g.OW, g.KH * g.KW
    if target == "weight":
        return Gemm(g.OG, g.CG * taps, windows, g.groups)
    if target == "forward":
        return Gemm(windows, g.OG, g.CG * taps, g.groups)
    return Gemm(g.N * g.H * g.W, g.CG, g.OG * taps, g.groups)


def left(geometry: ConvGeometry, target: str, group: int, row: Any, k: Any) -> np.ndarray:
    """Where entries of the left matrix lie: offsets into g, or into x for the forward pass.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str
        "weight", "forward" or "input".
    group : int
    row, k : int or ndarray
        Row and column of the matrix; they broadcast.

    Returns
    -------
    ndarray of int
        The offset in the array's memory; −1 where the entry is the number zero: on padding, and
        where no output reads a cell through a tap.

    Examples
    --------
    >>> from convgrad import example
    >>> g = example("D").geometry
    >>> left(g, "weight", group=1, row=0, k=np.arange(3))  # kernel 3 of image 0
    array([27, 28, 29])
    """
    if require_target(target) == "weight":
        return _output(geometry, group, row, k)
    return (_window if target == "forward" else _reader)(geometry, group, row, k)


def right(geometry: ConvGeometry, target: str, group: int, k: Any, col: Any) -> np.ndarray:
    """Where entries of the right matrix lie: offsets into x, or into the weight.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str
        "weight", "forward" or "input".
    group : int
    k, col : int or ndarray
        Row and column of the matrix; they broadcast.

    Returns
    -------
    ndarray of int
        As for :func:`left`.

    Examples
    --------
    >>> from convgrad import example
    >>> g = example("B").geometry
    >>> right(g, "weight", group=0, k=np.arange(3)[:, None], col=np.arange(3))
    array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 4]])
    """
    g = geometry
    if require_target(target) == "weight":
        return _window(g, group, k, col)
    taps = g.KH * g.KW
    if target == "forward":  # w turned over: r down, o across
        return (group * g.OG + np.asarray(col)) * g.CG * taps + k
    o, tap = np.divmod(k, taps)
    return ((group * g.OG + o) * g.CG + col) * taps + tap


def result(geometry: ConvGeometry, target: str, group: int, row: Any, col: Any) -> np.ndarray:
    """Where entries of the product lie: offsets into grad_weight, y or grad_input.

    Parameters
    ----------
    geometry : ConvGeometry
    target : str
        "weight", "forward" or "input".
    group : int
    row, col : int or ndarray
        Row and column of the product; they broadcast.

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> from convgrad import example
    >>> g = example("D").geometry
    >>> int(result(g, "weight", group=1, row=0, col=2))  # 3 kernels before it
    38
    """
    g = geometry
    row, col = np.asarray(row), np.asarray(col)
    if require_target(target) == "weight":
        return (group * g.OG + row) * g.CG * g.KH * g.KW + col
    if target == "forward":
        return _output(g, group, col, row)
    g = _plain(g)
    n, cell = np.divmod(row, g.H * g.W)
    return (n * g.C + group * g.CG + col) * g.H * g.W + cell


def require_target(target: str) -> str:
    """The target, or a ValueError that names those there are."""
    if target not in TARGETS:
        raise ValueError(f"target={target!r}: known are {', '.join(TARGETS)}")
    return target


def _plain(geometry: ConvGeometry) -> ConvGeometry:
    """What the kernels are given: a border that is no zeros is put on before."""
    return geometry if geometry.padding_mode == "zeros" else with_border(geometry)


def _output(g: ConvGeometry, group: int, o: Any, k: Any) -> np.ndarray:
    """g[n, o, p, q] of kernel o and window k."""
    n, place = np.divmod(k, g.OH * g.OW)
    return (n * g.O + group * g.OG + o) * g.OH * g.OW + place


def _window(g: ConvGeometry, group: int, k: Any, r: Any) -> np.ndarray:
    """x[n, c, h, v] of window k and column r: im2col's entry, if somebody stored it."""
    n, place = np.divmod(k, g.OH * g.OW)
    c, tap = np.divmod(r, g.KH * g.KW)
    h = g.rows[place // g.OW, tap // g.KW]
    v = g.cols[place % g.OW, tap % g.KW]
    at = ((n * g.C + group * g.CG + c) * g.H + h) * g.W + v
    return np.where((h < 0) | (v < 0), -1, at)


def _reader(geometry: ConvGeometry, group: int, m: Any, k: Any) -> np.ndarray:
    """g[n, o, p, q] of the output whose tap reads cell m; k is kernel and tap."""
    g = _plain(geometry)
    n, cell = np.divmod(m, g.H * g.W)
    o, tap = np.divmod(k, g.KH * g.KW)
    meets: Any = True
    axes = zip((cell // g.W, cell % g.W), (tap // g.KW, tap % g.KW), (g.OH, g.OW), strict=True)
    found = []
    for axis, (index, step, size) in enumerate(axes):
        # source, solved for p and q: the stride must divide what is left
        output, over = np.divmod(
            index + g.padding[axis][0] - g.dilation[axis] * step, g.stride[axis]
        )
        meets = meets & (over == 0) & (output >= 0) & (output < size)
        found.append(output)
    p, q = found
    at = ((n * g.O + group * g.OG + o) * g.OH + p) * g.OW + q
    return np.where(meets, at, -1)
