"""A kernel for test_kernels.py, in a file of its own: Triton reads the sources of kernels."""

import triton
import triton.language as tl

from convgrad.kernels.index import block, source, window, x_at


@triton.jit
def places(found, number, geometry: tl.constexpr, SIZE: tl.constexpr):
    """Where x has the cells that the windows of one block read with their first tap."""
    n, p, q = window(block(number, SIZE, geometry), geometry)
    h, v = source(p, q, 0, 0, geometry)
    tl.store(found + tl.arange(0, SIZE), x_at(n, 0, h, v, 0, geometry))
