"""The running examples A–F: every size and every number, in one place.

Chapters, widgets, figures and tests all take them from here, so a number on a page is the
number that is tested.

>>> example("B").geometry.output_shape
(1, 1, 3, 3)
>>> sorted(EXAMPLES)
['A', 'B', 'C', 'D', 'E', 'F']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .geometry import ConvGeometry

__all__ = ["EXAMPLES", "Arrays", "Example", "example"]


class Arrays(NamedTuple):
    """The operands of one example, float64 unless its example says otherwise.

    Attributes
    ----------
    x : ndarray, (N, C, H, W)
    weight : ndarray, (O, C/groups, KH, KW)
    bias : ndarray, (O,)
    grad_output : ndarray, (N, O, OH, OW)

    Examples
    --------
    >>> x, weight, bias, grad_output = example("B").arrays()
    >>> grad_output[0, 0]
    array([[ 1.,  0.,  2.],
           [-1.,  1.,  0.],
           [ 0.,  2.,  1.]])
    """

    x: np.ndarray  # n c h v
    weight: np.ndarray  # o c i j
    bias: np.ndarray  # o
    grad_output: np.ndarray  # n o p q


@dataclass(frozen=True)
class Example:
    """One running example: its letter, what it is for, its geometry and its numbers.

    Attributes
    ----------
    letter : str
        "A" to "F".
    title : str
        What it is, in a few words.
    lesson : str
        What it shows, in a sentence.
    geometry : ConvGeometry
        Its sizes.
    fill : callable
        Makes the :class:`Arrays` for the geometry; call :meth:`arrays` instead.

    Examples
    --------
    >>> example("C").title
    'A leftover row'
    >>> example("C").geometry.leftover
    (1, 0)
    """

    letter: str
    title: str
    lesson: str
    geometry: ConvGeometry
    fill: Callable[[ConvGeometry], Arrays]

    def arrays(self) -> Arrays:
        """Fresh arrays, in the shapes of the geometry; yours to change."""
        arrays = self.fill(self.geometry)
        self.geometry.require(**arrays._asdict())
        return arrays


def example(letter: str) -> Example:
    """The running example with this letter.

    Parameters
    ----------
    letter : str
        "A" to "F", in either case.

    Returns
    -------
    Example

    Raises
    ------
    KeyError
        For another letter.

    Examples
    --------
    >>> example("B").geometry.describe()
    'x 1×1×5×5, 1 kernel 3×3'
    """
    try:
        return EXAMPLES[letter.upper()]
    except (KeyError, AttributeError):
        raise KeyError(f"no example {letter!r}: there are {', '.join(EXAMPLES)}") from None


def _grid(rows: Any) -> np.ndarray:
    """A table of numbers as a batch of one image with one channel."""
    return np.array(rows, dtype=np.float64)[None, None]


def _cycle(shape: tuple[int, ...], step: int, modulus: int, lowest: int) -> np.ndarray:
    """Small integers that repeat late and in no simple direction: (step·k mod modulus) + lowest."""
    k = np.arange(np.prod(shape), dtype=np.int64)
    return (step * k % modulus + lowest).reshape(shape).astype(np.float64)


def _one_pixel(geometry: ConvGeometry) -> Arrays:
    return Arrays(
        x=_grid([[2]]),
        weight=_grid([[1, 0, 2, 1], [0, 3, 1, 2], [1, 2, 0, 1], [2, 1, 1, 0]]),
        bias=np.zeros(1),
        grad_output=_grid([[1, 2], [3, 4]]),
    )


def _five_by_five(geometry: ConvGeometry) -> Arrays:
    return Arrays(
        x=_grid(
            [
                [1, 2, 0, 1, 3],
                [0, 1, 2, 3, 1],
                [2, 0, 1, 1, 0],
                [1, 3, 0, 2, 1],
                [0, 1, 2, 0, 2],
            ]
        ),
        weight=_grid([[1, 0, -1], [2, 1, 0], [0, -1, 1]]),
        bias=np.ones(1),
        grad_output=_grid([[1, 0, 2], [-1, 1, 0], [0, 2, 1]]),
    )


def _small_integers(geometry: ConvGeometry) -> Arrays:
    return Arrays(
        x=_cycle(geometry.x_shape, step=5, modulus=11, lowest=-2),
        weight=_cycle(geometry.weight_shape, step=3, modulus=7, lowest=-2),
        bias=_cycle(geometry.bias_shape, step=1, modulus=5, lowest=-1),
        grad_output=_cycle(geometry.output_shape, step=4, modulus=9, lowest=-3),
    )


def _three_images(geometry: ConvGeometry) -> Arrays:
    """Scattered small integers: a pattern would make images, channels or kernels look alike."""
    rng = np.random.default_rng(4)
    shapes = geometry.x_shape, geometry.weight_shape, geometry.bias_shape, geometry.output_shape
    return Arrays(*(rng.integers(-3, 5, size=shape).astype(np.float64) for shape in shapes))


def _tracker(geometry: ConvGeometry) -> Arrays:
    """Three search images with the template cut out of each at another place."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, size=geometry.x_shape).astype(np.float64)
    per_image = x.reshape(3, geometry.CG, geometry.H, geometry.W)
    corners = [(3, 5), (8, 2), (14, 11)]
    weight = np.stack(
        [
            image[:, h : h + geometry.KH, v : v + geometry.KW]
            for image, (h, v) in zip(per_image, corners, strict=True)
        ]
    )
    g = rng.integers(-3, 4, size=geometry.output_shape).astype(np.float64)
    return Arrays(x=x, weight=weight, bias=np.zeros(geometry.O), grad_output=g)


def _layer(geometry: ConvGeometry) -> Arrays:
    """Random float32 in the scale of a trained layer; about 50 MB, made when asked for."""
    rng = np.random.default_rng(0)
    fan_in = geometry.CG * geometry.KH * geometry.KW

    def normal(shape: tuple[int, ...]) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    return Arrays(
        x=normal(geometry.x_shape),
        weight=normal(geometry.weight_shape) / np.float32(np.sqrt(fan_in)),
        bias=np.zeros(geometry.bias_shape, np.float32),
        grad_output=normal(geometry.output_shape),
    )


EXAMPLES: dict[str, Example] = {
    each.letter: each
    for each in (
        Example(
            "A",
            "One pixel, four windows",
            "Four windows of the padded map share one pixel: each tap gets four products, at "
            "most one of them off the padding, and g appears turned by 180°.",
            ConvGeometry(C=1, H=1, W=1, O=1, KH=4, KW=4, padding=2),
            _one_pixel,
        ),
        Example(
            "B",
            "Five by five",
            "Small enough for paper, large enough for sums: nine products meet in every tap.",
            ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3),
            _five_by_five,
        ),
        Example(
            "C",
            "A leftover row",
            "Stride 2 reads all columns but not the last row, and two images add up.",
            ConvGeometry(N=2, C=1, H=6, W=7, O=1, KH=3, KW=3, stride=2),
            _small_integers,
        ),
        Example(
            "D",
            "Three images, two groups",
            "Each group's weight gradient is the sum of three images' shares.",
            ConvGeometry(N=3, C=4, H=5, W=4, O=6, KH=3, KW=2, groups=2),
            _three_images,
        ),
        Example(
            "E",
            "A tracker's search",
            "A template is slid over its own search image: one group per image.",
            # the batch of three images with 8 channels each, folded into channels
            ConvGeometry(N=1, C=24, H=22, W=22, O=3, KH=6, KW=6, groups=3),
            _tracker,
        ),
        Example(
            "F",
            "A layer of ResNet-50",
            "The layer the GPU part is about: 64 to 64 channels on 56×56, batch 32.",
            ConvGeometry(N=32, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1),
            _layer,
        ),
    )
}
