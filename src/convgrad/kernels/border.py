"""The border of an image, for tensors: put on by PyTorch, taken back by its adjoint."""

from __future__ import annotations

import numpy as np

from ..extras import needs
from ..geometry import ConvGeometry

with needs("gpu", "convgrad.kernels"):
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["fold_border", "with_border"]

# What F.pad calls the modes; the others have the same names.
_PAD_MODES = {"zeros": "constant"}


def with_border(x: Tensor, geometry: ConvGeometry) -> Tensor:
    """The images with their border around them, whatever the mode, each side as wide as it is."""
    (top, bottom), (left, right) = geometry.padding
    mode = _PAD_MODES.get(geometry.padding_mode, geometry.padding_mode)
    return F.pad(x, (left, right, top, bottom), mode)


def fold_border(grad_padded: Tensor, geometry: ConvGeometry) -> Tensor:
    """Each border cell's gradient goes to the cell it copies, always in the same order."""
    # rows first, then columns: a corner takes both steps home
    (top, _), (left, _) = geometry.padding
    by_rows = _fold_axis(grad_padded, geometry.padded_rows, top, geometry.H, axis=2)
    return _fold_axis(by_rows, geometry.padded_cols, left, geometry.W, axis=3)


def _fold_axis(grad: Tensor, home: np.ndarray, before: int, size: int, axis: int) -> Tensor:
    """Add each line of the border to line ``home[k]`` of the image."""
    image = grad.narrow(axis, before, size).clone()
    for k, line in enumerate(home.tolist()):
        if not before <= k < before + size:
            image.select(axis, line).add_(grad.select(axis, k))
    return image
