"""Kernels for a GPU, in Triton: the weight gradient five times, from plain to fast, and the rest.

    from convgrad import ConvGeometry, kernels

    kernels.where()                                   # 'NVIDIA …', or 'interpreter, on the CPU'
    geometry = ConvGeometry.of(x.shape, weight.shape, padding=1)
    kernels.grad_weight(grad_output, x, geometry, kernel="split_k")

Without a GPU Triton's interpreter runs the same source on the CPU: slow, and exact.  One file a
kernel: ``gather``, ``scatter``, ``tiles``, ``split_k`` and ``two_pass`` are the ladder,
``of_input``, ``of_output`` and ``of_bias`` the rest of the layer.  ``index`` holds the maps from
numbers to indices that all of them share, ``blocks`` the sizes of the blocks, ``device`` the
choice between GPU and interpreter, ``calls`` the functions to call.
"""

from .calls import GRAD_WEIGHT, forward, grad_bias, grad_input, grad_weight, require, where

__all__ = ["GRAD_WEIGHT", "forward", "grad_bias", "grad_input", "grad_weight", "require", "where"]
