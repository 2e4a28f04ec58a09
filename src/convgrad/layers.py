"""Layers as networks have them: those that are measured, and that a reader compares."""

from __future__ import annotations

from typing import Any

from .geometry import ConvGeometry

__all__ = ["TABLE"]


def _layer(C: int, size: int, O: int, kernel: int, N: int = 8, **options: Any) -> ConvGeometry:
    return ConvGeometry(N=N, C=C, H=size, W=size, O=O, KH=kernel, KW=kernel, **options)


# Kernel and stride, channels and, after @, height and width of the image.
TABLE: dict[str, ConvGeometry] = {
    "7×7/2, 3→64 @224": _layer(3, 224, 64, 7, stride=2, padding=3),
    "3×3, 64 @56": _layer(64, 56, 64, 3, padding=1),
    "3×3, 128 @28": _layer(128, 28, 128, 3, padding=1),
    "3×3, 256 @14": _layer(256, 14, 256, 3, padding=1),
    "3×3, 512 @7": _layer(512, 7, 512, 3, padding=1),
    "3×3/2, 128 @56": _layer(128, 56, 128, 3, stride=2, padding=1),
    "1×1, 256→64 @56": _layer(256, 56, 64, 1),
    "1×1, 256→1024 @14": _layer(256, 14, 1024, 1),
    "depthwise 3×3, 144 @56": _layer(144, 56, 144, 3, padding=1, groups=144),
    "depthwise 5×5/2, 240 @28": _layer(240, 28, 240, 5, stride=2, padding=2, groups=240),
    "3×3 dilated 2, 256 @32": _layer(256, 32, 256, 3, N=2, padding=2, dilation=2),
    "3×3, 32 groups, 128 @56": _layer(128, 56, 128, 3, padding=1, groups=32),
}
