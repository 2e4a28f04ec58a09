"""Random geometries and operands on which mistakes show.

Easy numbers hide mistakes: square images, stride 1, one group, and above all a grad_output of
ones.  Here every size is drawn on its own, and the operands are small integers in float64, so
that sums are exact and ``==`` is the right comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..geometry import PADDING_MODES, ConvGeometry

__all__ = ["Draw", "one_thing_more", "random_geometry", "random_operands"]


class Draw(NamedTuple):
    """A geometry and operands that fit it.

    Attributes
    ----------
    geometry : ConvGeometry
    x : ndarray, (N, C, H, W)
    weight : ndarray, (O, C/groups, KH, KW)
    grad_output : ndarray, (N, O, OH, OW)

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> draw = random_operands(geometry, np.random.default_rng(0))
    >>> [operand.shape for operand in draw.operands("input")]
    [(1, 1, 3, 3), (1, 1, 3, 3)]
    """

    geometry: ConvGeometry
    x: np.ndarray  # n c h v
    weight: np.ndarray  # o c i j
    grad_output: np.ndarray  # n o p q

    def operands(self, target: str) -> tuple[np.ndarray, ...]:
        """The arguments of the rule for ``"weight"``, ``"input"`` or ``"bias"``."""
        return {
            "weight": (self.grad_output, self.x),
            "input": (self.grad_output, self.weight),
            "bias": (self.grad_output,),
        }[target]


# Nothing more than a kernel on an image, then one thing more, each alone;
_STEPS: tuple[dict[str, Any], ...] = (
    {},
    {"N": 3},
    {"C": 3, "O": 2},
    {"stride": (2, 2)},
    {"stride": (2, 3)},
    {"padding": ((1, 1), (2, 2))},
    {"padding": ((1, 0), (2, 1))},
    {"dilation": (2, 2)},
    {"dilation": (2, 3)},
    {"C": 4, "O": 6, "groups": 2},
    {"C": 3, "O": 3, "groups": 3},
    {"H": 2, "W": 1, "padding": ((2, 1), (1, 2))},
    # things that only matter together;
    {"N": 2, "C": 3, "O": 4},
    {"stride": (2, 3), "dilation": (3, 2)},
    # and borders of copies
    {"padding": ((1, 1), (2, 2)), "padding_mode": "reflect"},
    {"padding": ((2, 2), (1, 1)), "padding_mode": "replicate"},
    {"padding": ((1, 1), (2, 2)), "padding_mode": "circular"},
)


def one_thing_more(plain: ConvGeometry) -> Iterator[ConvGeometry]:
    """``plain`` itself, then with one thing more each time; last, things that matter together.

    So the first that a function fails on says what it lacks.  ``plain`` has one image, channel
    and kernel, stride and dilation 1, no padding, and about 8×8 cells.

    >>> plain = ConvGeometry(C=1, H=8, W=8, O=1, KH=3, KW=2)
    >>> first, second, *rest = one_thing_more(plain)
    >>> first == plain, second.N, rest[-1].padding_mode
    (True, 3, 'circular')
    """
    return (replace(plain, **step) for step in _STEPS)


def random_geometry(
    rng: np.random.Generator,
    shows: Callable[[ConvGeometry], bool] | None = None,
    *,
    padding_modes: Sequence[str] = PADDING_MODES,
    most: int = 3,
) -> ConvGeometry:
    """A small geometry with sizes drawn independently.

    The output size, kernel, stride, dilation and leftover are drawn; the input size follows
    from them, so that no draw is thrown away.

    Parameters
    ----------
    rng : numpy.random.Generator
    shows : callable, optional
        Draws until ``shows(geometry)`` holds.
    padding_modes : sequence of str, optional
        What to draw the padding mode from; all four by default.
    most : int, default 3
        About how large each size may be.

    Returns
    -------
    ConvGeometry

    Raises
    ------
    ValueError
        When a thousand draws do not satisfy ``shows``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> geometry = random_geometry(rng, lambda geometry: geometry.groups == 2)
    >>> geometry.groups
    2
    """
    for _ in range(1000):
        geometry = _draw(rng, padding_modes, most)
        if shows is None or shows(geometry):
            return geometry
    raise ValueError("a thousand random geometries, and the condition holds for none of them")


def _draw(rng: np.random.Generator, padding_modes: Sequence[str], most: int) -> ConvGeometry:
    def up_to(largest: int, least: int = 1) -> int:
        return int(rng.integers(least, largest + 1))

    mode = str(rng.choice(list(padding_modes)))
    groups = up_to(most)
    rows, cols = (_draw_axis(up_to, mode, most) for _ in range(2))
    return ConvGeometry(
        N=up_to(most),
        C=groups * up_to(most),
        O=groups * up_to(most),
        H=rows["size"],
        W=cols["size"],
        KH=rows["taps"],
        KW=cols["taps"],
        stride=(rows["stride"], cols["stride"]),
        dilation=(rows["dilation"], cols["dilation"]),
        padding=(rows["border"], cols["border"]),
        groups=groups,
        padding_mode=mode,
    )


def _draw_axis(up_to: Callable[..., int], mode: str, most: int) -> dict[str, Any]:
    """One axis, from the output back to the input."""
    outputs, taps, stride, dilation = up_to(most + 1), up_to(most), up_to(most), up_to(most)
    leftover = up_to(stride - 1, least=0)
    padded = stride * (outputs - 1) + dilation * (taps - 1) + 1 + leftover
    before, after = (up_to(most, least=0), up_to(most, least=0)) if up_to(2) == 1 else (0, 0)
    # what the border may take at most: one cell must stay, and a copy needs an original
    spare = {"reflect": 1, "circular": 0}.get(mode)
    while before + after > padded - 1 or (
        spare is not None and max(before, after) > padded - before - after - spare
    ):
        before, after = (before - 1, after) if before >= after else (before, after - 1)
    return {
        "size": padded - before - after,
        "taps": taps,
        "stride": stride,
        "dilation": dilation,
        "border": (before, after),
    }


def random_operands(geometry: ConvGeometry, rng: np.random.Generator, largest: int = 4) -> Draw:
    """Small whole numbers in float64, in the shapes of the geometry.

    Sums of their products are exact, so ``==`` is the right comparison.

    Parameters
    ----------
    geometry : ConvGeometry
    rng : numpy.random.Generator
    largest : int, default 4
        The numbers go from −largest to largest.

    Returns
    -------
    Draw

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=2, W=3, O=1, KH=1, KW=1)
    >>> random_operands(geometry, np.random.default_rng(0)).x[0, 0]
    array([[ 3.,  1.,  0.],
           [-2., -2., -4.]])
    """

    def whole(shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(-largest, largest + 1, size=shape).astype(np.float64)

    shapes = (geometry.x_shape, geometry.weight_shape, geometry.output_shape)
    return Draw(geometry, *map(whole, shapes))
