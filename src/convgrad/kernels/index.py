"""Where things lie in memory: the index maps and the loads of every kernel, each written once.

The kernels see products of matrices that nobody stores.  A row or a column of such a matrix has a
number, and from the number follow the indices of the equation:

    k → n, p, q    a window: an output cell of an image
    r → c, i, j    a row of im2col: a channel of the group and a tap
    m → n, h, v    a cell of an image

``o`` and ``c`` count within the group.  The geometry is a constant to the compiler: it turns
divisions by its sizes into multiplications, and compiles anew for another geometry.
"""

import triton
import triton.language as tl

from .device import INTERPRETED, cdiv


@triton.constexpr_function
def windows(geometry):
    """How many windows there are, N·OH·OW."""
    return geometry.N * geometry.OH * geometry.OW


@triton.constexpr_function
def columns(geometry):
    """How many columns each group has, C/G·KH·KW."""
    return geometry.CG * geometry.KH * geometry.KW


@triton.constexpr_function
def taps(geometry):
    """How many taps all kernels of a group have, O/G·KH·KW."""
    return geometry.OG * geometry.KH * geometry.KW


@triton.constexpr_function
def cells(geometry):
    """How many cells the images have, N·H·W."""
    return geometry.N * geometry.H * geometry.W


@triton.constexpr_function
def needs_64_bits(geometry):
    """Whether any array has more numbers than 32 bits can count."""
    x = cells(geometry) * geometry.C
    y = windows(geometry) * geometry.O
    return max(x, y, geometry.O * columns(geometry)) >= 2**31


# ---- from a number to indices ------------------------------------------------


@triton.jit
def block(number, SIZE: tl.constexpr, geometry: tl.constexpr):
    """The SIZE numbers of a block: from number·SIZE on."""
    if needs_64_bits(geometry):
        number = tl.cast(number, tl.int64)
    return number * SIZE + tl.arange(0, SIZE)


@triton.jit
def unravel(k, A: tl.constexpr, B: tl.constexpr):
    """Three indices from one number; the last two run to A and B."""
    return k // (A * B), k // B % A, k % B


@triton.jit
def window(k, geometry: tl.constexpr):
    """k → n, p, q."""
    return unravel(k, geometry.OH, geometry.OW)


@triton.jit
def column(r, geometry: tl.constexpr):
    """r → c, i, j; or o, i, j, where kernels are counted instead."""
    return unravel(r, geometry.KH, geometry.KW)


@triton.jit
def cell(m, geometry: tl.constexpr):
    """m → n, h, v."""
    return unravel(m, geometry.H, geometry.W)


@triton.jit
def source(p, q, i, j, geometry: tl.constexpr):
    """The cell (h, v) that tap (i, j) reads for output (p, q)."""
    h = geometry.stride[0] * p + geometry.dilation[0] * i
    v = geometry.stride[1] * q + geometry.dilation[1] * j
    return h - geometry.padding[0][0], v - geometry.padding[1][0]


@triton.jit
def reader(h, v, i, j, geometry: tl.constexpr):
    """The output (p, q) whose tap (i, j) reads (h, v), and if there is one."""
    # source, solved for p and q: the stride must divide what is left
    down = h + geometry.padding[0][0] - geometry.dilation[0] * i
    along = v + geometry.padding[1][0] - geometry.dilation[1] * j
    p, q = down // geometry.stride[0], along // geometry.stride[1]
    meets = (down % geometry.stride[0] == 0) & (along % geometry.stride[1] == 0)
    # // rounds towards 0 here, so that −1 // 2 would look like row 0
    inside = (down >= 0) & (p < geometry.OH) & (along >= 0) & (q < geometry.OW)
    return p, q, meets & inside


# ---- from indices to a place in memory ---------------------------------------


@triton.jit
def x_at(n, c, h, v, group, geometry: tl.constexpr):
    """Where x and grad_input have [n, c, h, v]."""
    channel = group * geometry.CG + c
    return ((n * geometry.C + channel) * geometry.H + h) * geometry.W + v


@triton.jit
def column_at(c, i, j, geometry: tl.constexpr):
    """c, i, j → r; of a channel beyond the group, beyond the last column."""
    return (c * geometry.KH + i) * geometry.KW + j


@triton.jit
def weight_at(o, r, group, geometry: tl.constexpr):
    """Where weight and grad_weight have [o, r], that is [o, c, i, j]."""
    return (group * geometry.OG + o) * columns(geometry) + r


@triton.jit
def output_at(n, o, p, q, group, geometry: tl.constexpr):
    """Where y and grad_output have [n, o, p, q]."""
    channel = group * geometry.OG + o
    return ((n * geometry.O + channel) * geometry.OH + p) * geometry.OW + q


# ---- the matrices ------------------------------------------------------------
# Each takes numbers of rows and columns that broadcast, say (M, 1) and (1, K),
# and gives the block where they cross; beyond the matrix it reads zeros.


@triton.jit
def load_g(grad_output, o, k, group, geometry: tl.constexpr):
    """G[o, k] = g[n, o, p, q]: the upstream gradient as a matrix."""
    n, p, q = window(k, geometry)
    inside = (o < geometry.OG) & (k < windows(geometry))
    at = output_at(n, o, p, q, group, geometry)
    return tl.load(grad_output + at, mask=inside, other=0.0)


@triton.jit
def load_x(x, k, r, group, geometry: tl.constexpr):
    """X[k, r] = x[n, c, h, v]: im2col turned over, read but never stored."""
    n, p, q = window(k, geometry)
    c, i, j = column(r, geometry)
    h, v = source(p, q, i, j, geometry)
    on_image = (h >= 0) & (h < geometry.H) & (v >= 0) & (v < geometry.W)
    inside = (k < windows(geometry)) & (r < columns(geometry)) & on_image
    at = x_at(n, c, h, v, group, geometry)
    return tl.load(x + at, mask=inside, other=0.0)


@triton.jit
def load_weight(weight, o, r, group, geometry: tl.constexpr):
    """W[o, r] = w[o, c, i, j]; with r down and o across it is turned over."""
    inside = (o < geometry.OG) & (r < columns(geometry))
    at = weight_at(o, r, group, geometry)
    return tl.load(weight + at, mask=inside, other=0.0)


# ---- tiles -------------------------------------------------------------------


@triton.jit
def tile(
    rows: tl.constexpr,
    cols: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    geometry: tl.constexpr,
):
    """Which M×N tile is mine: its rows (M, 1), columns (1, N) and group."""
    down, across = cdiv(rows, M), cdiv(cols, N)
    group, a, b = unravel(tl.program_id(0), down, across)
    return block(a, M, geometry)[:, None], block(b, N, geometry)[None, :], group


@triton.jit
def add_product(total, a, b):
    """total + a·b, in float32 whatever the types of a and b."""
    if INTERPRETED:  # where tl.dot cannot read bfloat16
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    # "ieee": otherwise float32 would be cut to 10 bits of fraction, TF32
    return tl.dot(a, b, total, input_precision="ieee")
