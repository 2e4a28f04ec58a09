"""Every gradient of conv2d, exact and explained.

    y = conv2d(x, weight, bias, stride=2, padding=1)
    grads = conv2d_backward(grad_output, x, weight, stride=2, padding=1)
    grad_input, grad_weight, grad_bias = grads

Beyond these: :func:`double_backward` (the gradients of the backward pass),
:func:`per_sample_weight_gradients` (each image's own), :func:`conv_transpose2d` with its
gradients.

NumPy is all this needs.  The definition is in :mod:`convgrad.loops`, the sizes and the index
map in :mod:`convgrad.geometry`, the numbers of the book in :mod:`convgrad.examples`.
"""

from .api import IMPLEMENTATIONS, Implementation, conv2d, conv2d_backward
from .examples import example
from .geometry import ConvGeometry, GeometryError, ShapeError
from .grouped import per_sample_weight_gradients
from .memory import MemoryLimitError
from .second import double_backward
from .transpose import conv_transpose2d, conv_transpose2d_backward

__all__ = [
    "IMPLEMENTATIONS",
    "ConvGeometry",
    "GeometryError",
    "Implementation",
    "MemoryLimitError",
    "ShapeError",
    "conv2d",
    "conv2d_backward",
    "conv_transpose2d",
    "conv_transpose2d_backward",
    "double_backward",
    "example",
    "per_sample_weight_gradients",
]
