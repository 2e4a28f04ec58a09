"""Every gradient of conv2d, exact and explained.

    y = conv2d(x, weight, bias, stride=2, padding=1)
    grads = conv2d_backward(grad_output, x, weight, stride=2, padding=1)
    grad_input, grad_weight, grad_bias = grads

NumPy is all this needs.  The definition is in :mod:`convgrad.loops`, the sizes and the index
map in :mod:`convgrad.geometry`, the numbers of the book in :mod:`convgrad.examples`.
"""

from .api import IMPLEMENTATIONS, Implementation, conv2d, conv2d_backward
from .examples import example
from .geometry import ConvGeometry, GeometryError, ShapeError

__all__ = [
    "IMPLEMENTATIONS",
    "ConvGeometry",
    "GeometryError",
    "Implementation",
    "ShapeError",
    "conv2d",
    "conv2d_backward",
    "example",
]
