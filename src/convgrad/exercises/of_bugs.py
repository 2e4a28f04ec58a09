"""Somebody else's function, wrong in one line: which, and what should stand there?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import im2col, loops, windows
from ..checks import one_thing_more, random_geometry, random_operands
from ..geometry import ConvGeometry
from .base import Exercise
from .bugs import Bug, Mend
from .functions import Trial, geometries
from .lines import Line, Listing
from .of_lines import of_input, of_weight

__all__ = ["EXERCISES"]


def _mended(listing: Listing, trials: Callable[[np.random.Generator], Iterator[Trial]]) -> Line:
    """The function as it should be; it only serves to try a repair."""
    return Line(
        key=f"{listing.name}-repair",
        chapter="",
        level=3,
        title="",
        prompt="",
        hints=(),
        solution="",
        listing=listing,
        trials=trials,
        explanation="",
    )


def _plain(geometry: ConvGeometry) -> bool:
    """One group, stride and dilation 1, no border."""
    ones = (geometry.groups, *geometry.stride, *geometry.dilation)
    return set(ones) == {1} and geometry.padding == ((0, 0), (0, 0))


def _one_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1


# ---- the sliding window --------------------------------------------------------------------

_SLIDE = Listing.written(
    '''\
def slide(x, w):
    """x (H,W), w (KH,KW) → (OH,OW)"""
    H, W = x.shape
    KH, KW = w.shape
    OH, OW = H - KH + 1, W - KW + 1
    y = np.zeros((OH, OW))
    for p in range(OH):
        for q in range(OW):
            window = x[p : p + KH, q : q + KW]
            y[p, q] = (w * window).sum()
    return y
''',
    "OH, OW = H",
    {},
)


def _slide_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for _ in range(12):
        H, W = (int(n) for n in rng.permutation([5, 6, 7, 8])[:2])
        KH, KW = (int(n) for n in rng.permutation([2, 3, 4])[:2])
        geometry = ConvGeometry(C=1, H=H, W=W, O=1, KH=KH, KW=KW)
        _, x, weight, _ = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "output", "x": x, "weight": weight}
        y = windows.forward(x, weight, geometry)[0, 0]
        yield Trial((x[0, 0], weight[0, 0]), y, known)


_too_small = "OH, OW = H - KH, W - KW"

_slide_bug = Bug(
    key="window-bug",
    chapter="sliding_window",
    level=2,
    title="One row is missing",
    prompt=(
        "This function slides a kernel over an image, and what it returns has a row and a column "
        "too few. In which line is the mistake?\n\n" + _SLIDE.numbered(_too_small)
    ),
    hints=(
        "Try it on paper: an image of 3×3 and a kernel of 3×3. How many windows are there?",
        "Which line says how many?",
    ),
    repair=_mended(_SLIDE, _slide_trials),
    wrong_line=_too_small,
    about={
        3: "Line 3 reads the size of the image, and that is right.",
        4: "Line 4 reads the size of the kernel, and that is right.",
        6: "Line 6 makes the output as large as it was told to. Who told it?",
        7: "Line 7 goes through all rows of the output that there are. How many are there?",
        8: "Line 8 goes through all columns that there are. How many are there?",
        9: "Line 9 takes KH rows from row p on: a whole window.",
        10: "Line 10 multiplies cell by cell and adds up, as it should.",
        11: "Line 11 returns what was filled.",
    },
    explanation="Before the first step the kernel stands somewhere: H − KH + 1 places, not H − KH.",
    solution="answer = 5  # OH, OW = H - KH + 1, W - KW + 1",
    same_for_all="A listing has its mistake in one line.",
)

# ---- the weight gradient -------------------------------------------------------------------

_BY_LOOPS = Listing.written(
    """\
def grad_weight(grad_output, x, geometry):
    grad = np.zeros(geometry.weight_shape)
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    (top, bottom), (left, right) = geometry.padding
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    for i, j in np.ndindex(geometry.KH, geometry.KW):
        rows = slice(dh * i, dh * i + sh * geometry.OH, sh)
        cols = slice(dw * j, dw * j + sw * geometry.OW, sw)
        seen = x[:, :, rows, cols]
        grad[:, :, i, j] = np.einsum("nopq,ncpq->oc", grad_output, seen)
    return grad
""",
    "cols = slice(",
    {},
)
_swapped = "cols = slice(sw * j, sw * j + dw * geometry.OW, dw)"


_taps_bug = Bug(
    key="weight-bug",
    chapter="weight_gradient",
    level=2,
    title="Wrong with a stride",
    prompt=(
        "This weight gradient, for one group, is right for stride 1 and dilation 1, and wrong for "
        "most others. In which line is the mistake?\n\n" + _BY_LOOPS.numbered(_swapped)
    ),
    hints=(
        "Tap (i, j) reads one cell for each output cell. How far apart do these lie?",
        "Rows and columns should be treated alike.",
    ),
    repair=_mended(_BY_LOOPS, of_weight(_one_group)),
    wrong_line=_swapped,
    about={
        2: "Line 2 makes a gradient in the shape of the weight.",
        3: "Line 3 only gives names to stride and dilation.",
        5: "Line 5 puts zeros around each image, on all four sides.",
        6: "Line 6 goes through all taps.",
        7: "In line 7 the taps begin `dilation` apart, and the cells of one tap lie `stride` "
        "apart: right.",
        9: "Line 9 takes what it is told to take.",
        10: "Line 10 is the sum over images and positions. The `=` does no harm: a tap is written "
        "once.",
    },
    explanation="The next tap is a dilation further, the next output a stride: exchanged here.",
    solution="answer = 8  # cols = slice(dw * j, dw * j + sw * geometry.OW, sw)",
    same_for_all="A listing has its mistake in one line.",
)

# ---- the input gradient --------------------------------------------------------------------

_SCATTER = Listing.written(
    """\
def grad_input(grad_output, weight, geometry):
    grad = np.zeros(geometry.x_shape)
    for p, q, i, j in np.ndindex(geometry.OH, geometry.OW, geometry.KH, geometry.KW):
        cell = geometry.cell(*geometry.source(p, q, i, j))
        if cell is None:
            continue
        h, v = cell
        for o in range(geometry.O):
            sent = weight[o, :, i, j] * grad_output[:, o, p, q, None]
            grad[:, :, h, v] += sent
    return grad
""",
    "grad[:, :, h, v] +=",
    {},
)
_replacing = "grad[:, :, h, v] = sent"

_scatter_mend = Mend(
    key="input-bug-mend",
    chapter="input_gradient",
    level=3,
    title="Find it and mend it",
    prompt=(
        "This input gradient, for one group, is right at the corners of the image and wrong almost "
        "everywhere else. Give the number of the wrong line and the line as it should be, as "
        '`(number, "line")`.\n\n' + _SCATTER.numbered(_replacing)
    ),
    starter='answer = (..., "...")  # number, line',
    hints=(
        "How many products does a corner get, with one kernel, and how many a cell in the middle?",
        "Follow the two products that meet in one cell. What becomes of the first?",
    ),
    repair=_mended(_SCATTER, of_input(_one_group)),
    wrong_line=_replacing,
    about={
        2: "Line 2 is right: the sums begin at 0.",
        3: "Line 3 goes through every window and every tap.",
        4: "Line 4 asks where the tap lies, and `None` is padding.",
        5: "Line 5 is right: what lies on padding goes nowhere.",
        6: "Line 6 is right: what lies on padding goes nowhere.",
        8: "Line 8 goes through all kernels.",
        9: "Line 9 makes w·g for all images and channels at once: right.",
    },
    explanation="Many products meet in a cell: `+=`. With `=` only the last of them is left.",
    solution='answer = (10, "grad[:, :, h, v] += sent")',
    same_for_all="A listing has its mistake in one line.",
)

# ---- im2col --------------------------------------------------------------------------------

_MATRICES = Listing.written(
    '''\
def grad_weight(grad_output, columns, geometry):
    """grad_output (N,O,OH,OW), columns (N,C·KH·KW,OH·OW)"""
    N, O = grad_output.shape[:2]
    upstream = grad_output.reshape(N, O, -1)
    per_image = upstream @ columns.swapaxes(1, 2)
    total = per_image.sum(axis=0)
    return total.reshape(geometry.weight_shape)
''',
    "per_image =",
    {},
)
_reshaped = "per_image = upstream @ columns.reshape(N, upstream.shape[2], -1)"


def _matrix_trials(rng: np.random.Generator) -> Iterator[Trial]:
    plain = ConvGeometry(C=1, H=6, W=7, O=1, KH=2, KW=3)
    for geometry in (g for g in one_thing_more(plain) if g.padding_mode == "zeros"):
        if geometry.groups == 1:
            _, x, _, g = random_operands(geometry, rng)
            known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
            right = windows.grad_weight(g, x, geometry)
            yield Trial((g, im2col.unfold(x, geometry), geometry), right, known)


_matrix_bug = Bug(
    key="unfold-bug",
    chapter="im2col",
    level=2,
    title="The shapes fit",
    prompt=(
        "The weight gradient from the columns, for one group. Every shape fits, no error is "
        "raised, and the numbers are wrong. In which line is the mistake?\n\n"
        + _MATRICES.numbered(_reshaped)
    ),
    hints=(
        "Which rows and columns must meet in the product: what do the rows of the right factor "
        "stand for?",
        "A reshape reads the numbers in their old order. Does that turn a matrix over?",
    ),
    repair=_mended(_MATRICES, _matrix_trials),
    wrong_line=_reshaped,
    about={
        4: "In line 4 a reshape is right: p and q stand side by side and become one axis.",
        6: "Line 6 adds up the images, whose shares share the kernel.",
        7: "Line 7 is right: the columns' rows are c, i, j in this order.",
    },
    explanation="`reshape` gives the right shape and leaves the numbers where they were: "
    "`swapaxes` turns the matrix over.",
    solution="answer = 5  # upstream @ columns.swapaxes(1, 2)",
    same_for_all="A listing has its mistake in one line.",
)

# ---- groups --------------------------------------------------------------------------------

_GROUPED = Listing.written(
    """\
def grad_weight(grad_output, x, geometry):
    G, CG, OG = geometry.groups, geometry.CG, geometry.OG
    grad = np.zeros(geometry.weight_shape)
    for n, o, p, q in np.ndindex(grad_output.shape):
        group = o // OG
        for c, i, j in np.ndindex(grad.shape[1:]):
            cell = geometry.cell(*geometry.source(p, q, i, j))
            if cell is not None:
                seen = x[n, group * CG + c, cell[0], cell[1]]
                grad[o, c, i, j] += seen * grad_output[n, o, p, q]
    return grad
""",
    "group = o",
    {},
)
_dealt = "group = o % G"


def _in_groups(geometry: ConvGeometry) -> bool:
    return geometry.groups > 1


def _group_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for _ in range(6):
        geometry = random_geometry(rng, _in_groups, padding_modes=("zeros",), most=2)
        _, x, _, g = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
        yield Trial((g, x, geometry), loops.grad_weight(g, x, geometry), known)


_group_bug = Mend(
    key="grouped-bug-mend",
    chapter="grouped",
    level=3,
    title="Right for depthwise layers alone",
    prompt=(
        "This weight gradient is right without groups and for depthwise layers with one kernel a "
        "channel, and wrong for others. Give the number of the wrong line and the line as it "
        'should be, as `(number, "line")`.\n\n' + _GROUPED.numbered(_dealt)
    ),
    starter='answer = (..., "...")  # number, line',
    hints=(
        "Take six kernels in two groups. To which group does each belong, and what does the "
        "function say?",
        "The kernels of a group are neighbours.",
    ),
    repair=_mended(_GROUPED, _group_trials),
    wrong_line=_dealt,
    about={
        2: "Line 2 gives names: groups, channels and kernels of a group.",
        4: "Line 4 goes through every number of grad_output.",
        6: "Line 6 goes through the planes and taps of one kernel.",
        7: "Line 7 asks where the tap lies, and `None` is padding.",
        9: "Line 9 counts the channels from the first one of the group: right, if the group is.",
        10: "Line 10 is x·g, added to its tap.",
    },
    explanation="A group is a block of neighbours, o // OG. With `%` kernels are dealt like cards.",
    solution='answer = (5, "group = o // OG")',
    same_for_all="A listing has its mistake in one line.",
)

# ---- your own autograd.Function ------------------------------------------------------------

_THREE = Listing.written(
    '''\
def backward(grad_output, x, weight, needs):
    """Stride 1, no border, one group; needs: three flags, for x, weight and bias"""
    KH, KW = weight.shape[2:]
    OH, OW = grad_output.shape[2:]
    grads = [None, None, None]
    if needs[0]:
        grads[0] = np.zeros(x.shape)
        for i, j in np.ndindex(KH, KW):
            laid = np.einsum("nopq,oc->ncpq", grad_output, weight[:, :, i, j])
            grads[0][:, :, i : i + OH, j : j + OW] += laid
    if needs[1]:
        grads[1] = np.zeros(weight.shape)
        for i, j in np.ndindex(KH, KW):
            seen = x[:, :, i : i + OH, j : j + OW]
            grads[1][:, :, i, j] = np.einsum("nopq,ncpq->oc", grad_output, seen)
    if needs[2]:
        grads[2] = grad_output.sum(axis=(0, 2, 3))
    return tuple(grads)
''',
    "grads[2] = grad_output",
    {},
)
_last_axis = "grads[2] = grad_output.sum(axis=(0, 1, 2))"


def _backward_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_plain, mixed=0):
        _, x, weight, g = random_operands(geometry, rng)
        known: dict[str, Any] = {
            "geometry": geometry,
            "target": ("input", "weight", "bias"),
            "x": x,
            "weight": weight,
            "grad_output": g,
        }
        right = (
            windows.grad_input(g, weight, geometry),
            windows.grad_weight(g, x, geometry),
            windows.grad_bias(g, geometry),
        )
        yield Trial((g, x, weight, (True, True, True)), right, known)


_three_bug = Bug(
    key="function-bug",
    chapter="autograd_function",
    level=2,
    title="It came from another library",
    prompt=(
        "This backward pass was written for a library in which the channels come last, and almost "
        "all of it was changed. In which line is the mistake?\n\n" + _THREE.numbered(_last_axis)
    ),
    hints=(
        "Here the axes of grad_output are n o p q. Which of the three gradients adds up over axes "
        "by their numbers?",
        "One axis stays. Which should it be?",
    ),
    repair=_mended(_THREE, _backward_trials),
    wrong_line=_last_axis,
    about={
        9: "Line 9 names its axes: w·g, summed over the kernels.",
        10: "Line 10 is right: what two taps lay down overlaps and adds up.",
        14: "Line 14 takes the cells that tap (i, j) read.",
        15: "Line 15 names its axes: x·g, summed over images and positions.",
        18: "Line 18 returns the three in the order of the arguments.",
    },
    explanation="Of n o p q the second axis stays. With 0, 1, 2 the columns do, and on a map as "
    "wide as there are kernels even the shape is right.",
    solution="answer = 17  # grad_output.sum(axis=(0, 2, 3))",
    same_for_all="A listing has its mistake in one line.",
)

# ---- split-K -------------------------------------------------------------------------------

_SHARES = Listing.written(
    '''\
def product_in_shares(A, B, shares):
    """A (M,K) @ B (K,N), the sum over K cut into shares of about equal length"""
    M, K = A.shape
    result = np.zeros((M, B.shape[1]))
    length = -(-K // shares)
    for share in range(shares):
        first = share * length
        last = min(first + length, K)
        result += A[:, first:last] @ B[first:last]
    return result
''',
    "length = -(",
    {},
)
_rounded_down = "length = K // shares"


def _share_trials(rng: np.random.Generator) -> Iterator[Trial]:
    geometry = ConvGeometry(C=1, H=1, W=1, O=1, KH=1, KW=1)
    for K, shares in ((8, 2), (9, 2), (7, 3), (11, 4), (13, 5), (5, 5)):
        A = rng.integers(-4, 5, size=(3, K)).astype(np.float64)
        B = rng.integers(-4, 5, size=(K, 2)).astype(np.float64)
        on = f"a sum of {K} products in {shares} shares"
        yield Trial((A, B, shares), A @ B, {"geometry": geometry, "target": None}, on=on)


_shares_bug = Bug(
    key="split-bug",
    chapter="split_k",
    level=2,
    title="The last products",
    prompt=(
        "A product of matrices, its sum cut into shares as split-K does. With 8 products in 2 "
        "shares it is right, with 9 it is not. In which line is the mistake?\n\n"
        + _SHARES.numbered(_rounded_down)
    ),
    hints=(
        "Write down `first` and `last` of each share, for K = 9 and two shares.",
        "Which of the nine does nobody multiply?",
    ),
    repair=_mended(_SHARES, _share_trials),
    wrong_line=_rounded_down,
    about={
        4: "Line 4 is right: the shares are added to zeros.",
        6: "Line 6 goes through all shares.",
        7: "Line 7 begins where the share before ends.",
        8: "Line 8 is right: the last share may be shorter, and does not reach beyond K.",
        9: "Line 9 is right: the shares of a sum add up.",
    },
    explanation="Rounded down, the shares do not reach the end of K. It is rounded up, and the "
    "last share is shorter.",
    solution="answer = 5  # length = -(-K // shares)",
    same_for_all="A listing has its mistake in one line.",
)


EXERCISES: tuple[Exercise, ...] = (
    _slide_bug,
    _taps_bug,
    _scatter_mend,
    _matrix_bug,
    _group_bug,
    _three_bug,
    _shares_bug,
)
