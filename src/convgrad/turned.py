"""Where the stride is 1, grad_input is a convolution: of g, with the kernels turned by 180°.

Input cell h was read by output p under tap i where h = p + dilation·i − padding.  So it collects
g at p = h + padding − dilation·i: g slid over from the other side, with zeros around it as far as
a kernel reaches, and with input and output channels exchanged.
"""

from __future__ import annotations

import numpy as np

from .geometry import ConvGeometry
from .padding import with_border

__all__ = ["is_convolution", "search", "turned"]


def is_convolution(geometry: ConvGeometry) -> bool:
    """Whether grad_input is a convolution: stride 1, and no border beyond the reach of a kernel.

    A border of copies is no obstacle: then it is the gradient of the padded image.
    """
    if geometry.padding_mode != "zeros":
        geometry = with_border(geometry)
    borders = zip(geometry.span, geometry.padding, strict=True)
    return geometry.stride == (1, 1) and all(max(border) < span for span, border in borders)


def search(geometry: ConvGeometry) -> ConvGeometry:
    """The sizes of that convolution (for padding with zeros)."""
    borders = zip(geometry.span, geometry.padding, strict=True)
    return ConvGeometry(
        N=geometry.N,
        C=geometry.O,
        H=geometry.OH,
        W=geometry.OW,
        O=geometry.C,
        KH=geometry.KH,
        KW=geometry.KW,
        # as far around g as a kernel reaches, less what is around x already
        padding=tuple((far - 1 - a, far - 1 - b) for far, (a, b) in borders),
        dilation=geometry.dilation,
        groups=geometry.groups,
    )


def turned(weight: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """Its kernels, (C, O/G, KH, KW): turned, one for each channel of x."""
    G, OG = geometry.groups, geometry.OG
    by_group = weight.reshape(G, OG, *weight.shape[1:])  # k o c i j
    by_channel = by_group.swapaxes(1, 2)[..., ::-1, ::-1]  # k c o i j
    return by_channel.reshape(geometry.C, OG, geometry.KH, geometry.KW)
