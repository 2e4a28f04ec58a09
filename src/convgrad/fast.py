"""The fastest way that NumPy alone allows: for each kind of convolution the route that suits it.

Trades a look at one page for several: PENDING.

=========  =================================  ====================================================
route      taken for                          what it does
=========  =================================  ====================================================
pointwise  1×1 kernels, stride 1, no padding  x is its own matrix of columns: products, no copy
depthwise  one channel and one kernel a       rows laid end to end, so that a tap is a shift and
           group                              every loop is long
blocked    everything else                    im2col, a few rows of windows at a time
=========  =================================  ====================================================

All routes hand their work to threads where that helps (:mod:`convgrad.parallel`).
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from . import blocked, depthwise, pointwise
from .geometry import ConvGeometry
from .parallel import thread_count
from .windows import grad_bias

__all__ = ["Route", "explain_route", "forward", "grad_bias", "grad_input", "grad_weight"]

# Fewer products than this are done before a second thread has started.
WORTH_THREADS = 2_000_000


class Route(NamedTuple):
    """Which way a convolution is computed, and why; ``str(route)`` says both."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def explain_route(geometry: ConvGeometry) -> Route:
    """The route that :mod:`convgrad.fast` takes for this geometry, and why, in words.

    >>> print(explain_route(ConvGeometry(C=6, H=8, W=8, O=6, KH=3, KW=3, groups=6)))
    depthwise: each of the 6 channels has one kernel of its own, so there is no matrix to \
multiply; rows are laid end to end, and every tap is one long shifted product
    >>> explain_route(ConvGeometry(C=6, H=8, W=8, O=4, KH=3, KW=3, stride=2)).name
    'blocked'
    """
    if _is_pointwise(geometry):
        return Route(
            "pointwise",
            "the kernel is a single tap that visits every cell, so x is "
            "its own matrix of columns, and nothing is copied",
        )
    if _is_depthwise(geometry):
        return Route(
            "depthwise",
            f"each of the {geometry.C} channels has one kernel of its own, "
            "so there is no matrix to multiply; rows are laid end to end, and every tap "
            "is one long shifted product",
        )
    inner = geometry
    if blocked.can_gather(inner):
        back = "the stride is 1, so grad_input is a convolution too, of grad_output with the turned kernels"
    else:
        back = "PENDING"
    return Route("blocked", "…" + back)


_MODULES: dict[str, ModuleType] = {
    "pointwise": pointwise,
    "depthwise": depthwise,
    "blocked": blocked,
}


def _is_pointwise(geometry: ConvGeometry) -> bool:
    return (geometry.KH, geometry.KW) == geometry.stride == (1, 1) and geometry.padding == (
        (0, 0),
        (0, 0),
    )


def _is_depthwise(geometry: ConvGeometry) -> bool:
    return geometry.CG == geometry.OG == 1 and geometry.groups > 1 and geometry.N > 0


def _route(geometry: ConvGeometry) -> ModuleType:
    if _is_pointwise(geometry):
        return pointwise
    return depthwise if _is_depthwise(geometry) else blocked


def _threads(geometry: ConvGeometry) -> int:
    products = (
        geometry.N
        * geometry.OH
        * geometry.OW
        * geometry.O
        * geometry.CG
        * geometry.KH
        * geometry.KW
    )
    return thread_count() if products >= WORTH_THREADS else 1


def forward(x: np.ndarray, weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The convolution without bias: (N, C, H, W) and (O, C/G, KH, KW) to (N, O, OH, OW)."""
    return _route(geometry).forward(x, weight, geometry, _threads(geometry))


def grad_weight(grad_output: np.ndarray, x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """∂L/∂weight, (O, C/G, KH, KW)."""
    threads = _threads(geometry)
    grad = _route(geometry).grad_weight(grad_output, x, geometry, threads)
    if _is_depthwise(geometry) and not np.isfinite(grad).all():
        # an infinity may have met the zeros between the rows: once more, without them
        grad = blocked.grad_weight(grad_output, x, geometry, threads)
    return grad


def grad_input(grad_output: np.ndarray, weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """∂L/∂x, (N, C, H, W)."""
    way = _route(geometry)
    if way is depthwise and not np.isfinite(weight).all():
        way = blocked  # as above
    return way.grad_input(grad_output, weight, geometry, _threads(geometry))
