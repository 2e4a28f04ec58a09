"""Exercises for *Your own autograd.Function*."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import im2col, windows
from ..checks import random_operands
from ..examples import Example, example
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .base import Choice, Exercise, Grid, Number
from .functions import Trial, geometries
from .redraw import like, maps, redrawn
from .tensors import BackwardFunction, TensorFunction, options
from .words import called, given, numbers_of, written_out

__all__ = ["EXERCISES"]

_CHAPTER = "autograd_function"
_B = example("B")


# ---- one column ----------------------------------------------------------------------------

_P, _Q = 1, 2  # the window whose column is asked for


def _column(x: np.ndarray, geometry: ConvGeometry, p: int, q: int) -> np.ndarray:
    """One column of the matrix, (C·KH·KW, 1)."""
    return im2col.unfold(x, geometry)[0, :, p * geometry.OW + q][:, None]


def _column_mistakes(of: Example, p: int, q: int) -> list[tuple[np.ndarray, str]]:
    geometry, x = of.geometry, of.arrays().x
    block = x[0, 0, p : p + geometry.KH, q : q + geometry.KW]
    return [
        (
            block.T.reshape(-1, 1),
            "These are the right cells, column by column. The taps are counted row by row: j runs "
            "fastest.",
        ),
        (
            _column(x, geometry, q, p),
            f"That is window ({q}, {p}): the row comes first.",
        ),
        (
            im2col.unfold(x, geometry)[0, p * geometry.KW + q][:, None],
            f"That is a row of the matrix: all that tap ({p}, {q}) reads. Asked for is a column, "
            "all that one window reads.",
        ),
        (
            _column(x, geometry, p, q) * of.arrays().weight.reshape(-1, 1),
            "Here the weights are in it already. The columns hold the numbers of x alone.",
        ),
    ]


@redrawn(lambda of, p, q: p != q, of=like("B"), p=(0, 2), q=(0, 2))
def _one_column(of: Example = _B, p: int = _P, q: int = _Q) -> Grid:
    return Grid(
        key="function-column",
        chapter=_CHAPTER,
        level=1,
        title="One column",
        prompt=(
            f"{called(of)}: `F.unfold` writes the nine windows of x into a matrix of nine "
            "columns. Which "
            f"nine numbers stand in the column of window ({p}, {q}), from top to bottom?\n\n"
            + numbers_of(of, "x")
        ),
        starter="answer = np.full((9, 1), ...)",
        hints=(
            f"Window ({p}, {q}) begins at row {p}, column {q} of x, and is 3×3.",
            "Write its cells down as one reads: the first row, then the second, then the third.",
        ),
        compute=lambda: _column(of.arrays().x, of.geometry, p, q),
        compute_mistakes=lambda: _column_mistakes(of, p, q),
        explanation=(
            "A column is a window read row by row. The weights, read in the same order, make the "
            "row that it is multiplied with."
        ),
        solution=(f"{given(of, 'x')}\nanswer = x[0, 0, {p}:{p + 3}, {q}:{q + 3}].reshape(9, 1)"),
    )


# ---- how many values backward returns ------------------------------------------------------

_SIGNATURE = "forward(ctx, x, weight, bias, stride, padding, groups)"
_NAMES = _SIGNATURE.partition("(")[2].rstrip(")").split(", ")

_how_many_values = Number(
    key="function-how-many",
    chapter=_CHAPTER,
    level=1,
    title="How many values?",
    prompt=(
        f"A `torch.autograd.Function` has `{_SIGNATURE}`, and it returns one tensor. How many "
        "values must its `backward` return?"
    ),
    hints=(
        "It returns one value for each argument of forward, in their order, whether that is a "
        "tensor or not.",
        "`ctx` is PyTorch's own and has no gradient. What is no tensor gets None.",
    ),
    compute=lambda: len(_NAMES) - 1,
    compute_mistakes=lambda: [
        (
            3,
            "Three of the arguments are tensors. The others need a value too, and it is None.",
        ),
        (
            len(_NAMES),
            "You counted `ctx`. It is handed in by PyTorch and gets no gradient.",
        ),
        (
            1,
            "That is how many gradients backward is given: one for each output. It returns one for "
            "each input.",
        ),
    ],
    explanation=(
        "One for each argument besides ctx: three gradients, and None for each of the others."
    ),
    solution=f'answer = "{", ".join(_NAMES[1:])}".count(",") + 1',
    same_for_all="The signature is the question, and its number of arguments the whole answer.",
)


# ---- what it costs to keep the columns -----------------------------------------------------


def _kept_mistakes() -> list[tuple[float, str]]:
    g = example("F").geometry
    return [
        (1, "That is x itself. How often does a cell of x occur in the columns?"),
        (
            g.KH * g.KW * g.C,
            "That is the height of the columns, C·KH·KW. But x has C numbers at each place too.",
        ),
        (g.KH, "That counts the rows of the kernel. A cell is read by every tap, KH·KW of them."),
        (
            g.KH * g.KW * g.N,
            "You counted the images. x has as many of them as the columns have.",
        ),
    ]


_kept = Number(
    key="function-kept",
    chapter=_CHAPTER,
    level=2,
    title="What to keep",
    prompt=(
        "Example F is a layer of a ResNet: 64 maps of 56×56 and a batch of 32, a 3×3 kernel, "
        "padding 1, stride 1. Suppose forward kept the columns for the backward pass, instead of "
        "x. How many times as many numbers would it keep?"
    ),
    hints=(
        "The output is as large as the input here, so there are as many windows as cells in a map.",
        "For each window, a column holds KH·KW numbers of each map.",
    ),
    compute=lambda: (
        im2col.column_numbers(example("F").geometry) / np.prod(example("F").geometry.x_shape)
    ),
    compute_mistakes=_kept_mistakes,
    explanation=(
        "Each cell is copied once for every tap that reads it, and 3×3 taps do. And x is kept "
        "anyway, by whoever made it."
    ),
    solution="geometry = example('F').geometry\nanswer = geometry.KH * geometry.KW",
    same_for_all="It is about example F, the layer that the last part of the book is about.",
)


# ---- fold one row --------------------------------------------------------------------------

_ROW = ConvGeometry(C=1, H=1, W=4, O=1, KH=1, KW=2)
_ROW_W = np.array([2.0, -1.0])
_ROW_G = np.array([1.0, 3.0, 2.0])


def _row_columns(weight: np.ndarray = _ROW_W, g: np.ndarray = _ROW_G) -> np.ndarray:
    """wᵀ·g: two rows, one for each tap, and three columns, one for each window."""
    return np.outer(weight, g)


def _fold_mistakes(weight: np.ndarray, g: np.ndarray) -> list[tuple[np.ndarray, str]]:
    columns = _row_columns(weight, g)
    upper, lower = columns
    written = np.zeros(4)
    for q in range(3):
        written[q : q + 2] = columns[:, q]
    shares = im2col.fold(np.ones((1, 2, 3)), _ROW)[0, 0, 0]
    right = im2col.fold(columns[None], _ROW)[0, 0, 0]
    return [
        (
            written[None],
            "Where two windows overlap, the later one has replaced the earlier one. They add up.",
        ),
        (
            (right / shares)[None],
            "You took the mean where windows overlap. A gradient is a sum.",
        ),
        (
            np.append(upper + lower, 0)[None],
            "You added each column by itself. Its second number belongs one cell further right.",
        ),
        (
            np.append(upper, 0)[None],
            "That is the upper row alone, what comes back by the first tap.",
        ),
        (
            np.convolve(weight[::-1], g)[None],
            "Here the two weights stand the wrong way round: the upper row belongs to the cell at "
            "which a window begins.",
        ),
    ]


@redrawn(weight=maps(2, low=-3, high=4), g=maps(3, low=-3, high=4))
def _fold_row(weight: np.ndarray = _ROW_W, g: np.ndarray = _ROW_G) -> Grid:
    columns = _row_columns(weight, g)
    upper, lower = (" ".join(f"{n:g}".replace("-", "−") for n in row) for row in columns)
    taps, sent = weight.astype(int).tolist(), g.astype(int).tolist()
    return Grid(
        key="function-fold",
        chapter=_CHAPTER,
        level=2,
        title="Fold a row",
        prompt=(
            "An image is one row of four cells, the kernel one row of two weights, stride 1, no "
            "padding. The product wᵀ·g has a row for each tap and a column for each of three "
            "windows. "
            "What does `F.fold` make of it, cell by cell?\n\n"
            + written_out(weight=weight[None], grad_output=g[None])
        ),
        starter="answer = [..., ..., ..., ...]",
        hints=(
            f"The product has the rows {upper} and {lower}. Its first column belongs to the "
            "window that lies on cells 0 and 1.",
            "The next column belongs to cells 1 and 2, the last one to cells 2 and 3.",
            "Where two columns meet in a cell, their numbers are added.",
        ),
        compute=lambda: im2col.fold(columns[None], _ROW)[0, 0],
        compute_mistakes=lambda: _fold_mistakes(weight, g),
        explanation=(
            "Every column goes back to the two cells that it was read from, and in the two cells "
            "in the middle two columns meet."
        ),
        solution=(
            f"w, g = np.array({taps}), np.array({sent})\n"
            "answer = np.zeros((1, 4))\n"
            "for q in range(3):\n"
            "    answer[0, q : q + 2] += w * g[q]"
        ),
    )


# ---- who needs a gradient ------------------------------------------------------------------

# Two layers: whether the weights and the biases learn.  The image is data.
_LEARNS = ((False, True), (True, False))


def _needed() -> np.ndarray:
    """A row for each layer: do x, weight and bias need a gradient there?"""
    rows, x = [], False
    for weight, bias in _LEARNS:
        rows.append([x, weight, bias])
        x = x or weight or bias  # the output needs one as soon as one operand does
    return np.array(rows, dtype=float)


def _needed_mistakes() -> list[tuple[np.ndarray, str]]:
    right = _needed()
    parameters, always, first = right.copy(), right.copy(), right.copy()
    parameters[:, 0] = 0
    always[:, 0] = 1
    first[0, 0] = 1
    first[1, 0] = 0
    every = np.ones_like(right)
    return [
        (
            parameters,
            "The parameters are right. But the first bias can only learn if the second layer hands "
            "a gradient back through its own x.",
        ),
        (
            always,
            "The first layer's x is the image. It is data, and nothing below it learns.",
        ),
        (first, "The two layers' x are exchanged: below which of them does something learn?"),
        (every, "Frozen weights and biases need no gradient, and the image needs none."),
    ]


_who_needs = Grid(
    key="function-needs",
    chapter=_CHAPTER,
    level=2,
    title="Who needs a gradient?",
    prompt=(
        "Two convolutions, one after the other. The image is data. In the first layer the weight "
        "is frozen (`requires_grad=False`) and the bias learns; in the second the weight learns "
        "and the bias is frozen. What do the two find in `ctx.needs_input_grad`, for x, weight and "
        "bias? Write 1 for yes and 0 for no, the first layer in the first row."
    ),
    starter="answer = [[..., ..., ...], [..., ..., ...]]",
    hints=(
        "For weight and bias it is what `requires_grad` says.",
        "The x of the second layer is the y of the first. It needs a gradient if anything behind "
        "it does.",
    ),
    compute=_needed,
    compute_mistakes=_needed_mistakes,
    explanation=(
        "The first layer computes a bias gradient and nothing else. The second computes its input "
        "gradient, because the bias below waits for it."
    ),
    solution="answer = [[0, 0, 1], [1, 1, 0]]",
    same_for_all="Which layers are frozen is the question; others would ask for less.",
)


# ---- what gradcheck does not see -----------------------------------------------------------

# Each choice beside the mutant that is it.
_UNSEEN_CHOICES = {
    "It adds up the images' weight gradients and divides by their number.": "wgrad_batch_mean",
    "It keeps only the last image's weight gradient.": "wgrad_last_image",
    "It reads grad_output's memory number by number, as if nothing lay between.": (
        "assume_contiguous_gy"
    ),
    "It turns grad_output by 180°.": "wgrad_g_turned",
}


def _unseen() -> int:
    """The one mutant that is right whenever grad_output is a block of memory of its own."""
    geometry = ConvGeometry(N=2, C=1, H=4, W=5, O=2, KH=2, KW=2)
    draw = random_operands(geometry, np.random.default_rng(0))
    g = np.ascontiguousarray(draw.grad_output)
    right = windows.grad_weight(g, draw.x, geometry)
    given = [MUTANTS[name](g, draw.x, geometry) for name in _UNSEEN_CHOICES.values()]
    (place,) = (k for k, each in enumerate(given) if np.array_equal(each, right))
    return place


_gradcheck_blind = Choice(
    key="function-unseen",
    chapter=_CHAPTER,
    level=3,
    title="What does gradcheck not see?",
    prompt=(
        "Four backward passes, each with one mistake. All are tested with `gradcheck`, in float64 "
        "and on a batch of two images, with several kernels. One of them passes. Which?"
    ),
    options=tuple(_UNSEEN_CHOICES),
    hints=(
        "gradcheck compares every slope with a difference quotient. Which of the mistakes leaves "
        "the slopes right?",
        "gradcheck makes the upstream gradients itself: each is a tensor of its own, 1 in one cell "
        "and 0 elsewhere.",
    ),
    compute=_unseen,
    compute_mistakes=lambda: [
        (0, "With two images it is half of what the difference quotients say."),
        (1, "The first image's slopes are missing, and there are two images."),
        (
            3,
            "A sum as the loss would not see it. gradcheck sends back a 1 in one cell after the "
            "other, and that is not the same when turned.",
        ),
    ],
    explanation=(
        "Numbers in a block of their own are read rightly. A network may hand back a view, with "
        "other numbers between, and gradcheck never does."
    ),
    solution="answer = 2  # the view of a larger array is what it never sends",
)


# ---- write it ------------------------------------------------------------------------------


def _even(geometry: ConvGeometry) -> bool:
    """Whether F.unfold can do it: the same border on opposite sides."""
    return all(before == after for before, after in geometry.padding)


def _forward_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_even):
        draw = random_operands(geometry, rng)
        x, weight = draw.x, draw.weight
        arguments = (x, weight, geometry.groups, options(geometry))
        known = {"geometry": geometry, "target": "output", "x": x, "weight": weight}
        yield Trial(arguments, windows.forward(x, weight, geometry), known)


_forward = TensorFunction(
    key="function-forward",
    chapter=_CHAPTER,
    level=2,
    title="Forward, with groups",
    prompt=(
        "Write `forward(x, weight, groups, how)` with tensors, one `F.unfold` and one matrix "
        "product: `x` is `(N, C, H, W)`, `weight` is `(O, C/G, KH, KW)`, `how` is a dictionary of "
        "stride, padding and dilation, as `F.unfold` takes them. The result is `(N, O, OH, OW)`, "
        "without bias. `ConvGeometry.of(x.shape, weight.shape, groups=groups, **how)` knows every "
        "size."
    ),
    starter=(
        "def forward(x, weight, groups, how):\n"
        '    """x (N,C,H,W), weight (O,C/G,KH,KW) → (N,O,OH,OW)"""\n'
        "    ..."
    ),
    hints=(
        "The rows of the columns are (c, i, j) with c over all channels. The channels of a group "
        "are neighbours, so `columns.unflatten(1, (groups, -1))` gives each group its own rows: "
        "n k r l.",
        "The kernels of a group are neighbours too: `weight.reshape(groups, O // groups, -1)` is "
        "k o r.",
        "`@` multiplies the last two axes and lines the others up: k o r times n k r l is n k o l.",
    ),
    trials=_forward_trials,
    solution=(
        "def forward(x, weight, groups, how):\n"
        "    sizes = ConvGeometry.of(x.shape, weight.shape, groups=groups, **how)\n"
        "    columns = F.unfold(x, weight.shape[2:], **how)\n"
        "    columns = columns.unflatten(1, (groups, -1))  # n k r l\n"
        "    kernels = weight.reshape(groups, len(weight) // groups, -1)  # k o r\n"
        "    return (kernels @ columns).reshape(sizes.output_shape)"
    ),
)


def _one_even_group(geometry: ConvGeometry) -> bool:
    return geometry.groups == 1 and _even(geometry)


# Which of x, weight and bias need a gradient, after the trials where all do.
_PARTLY = ((False, True, True), (True, False, False), (False, False, True), (True, True, False))


def _backward_trial(
    geometry: ConvGeometry, needed: tuple[bool, ...], rng: np.random.Generator, view: bool = False
) -> Trial:
    _, x, weight, g = random_operands(geometry, rng)
    if view:  # what a network hands back through a torch.cat along the width
        more = rng.integers(-4, 5, g.shape).astype(float)
        g = np.concatenate([g, more], axis=3)[..., : geometry.OW]
    gradients = (
        windows.grad_input(g, weight, geometry),
        windows.grad_weight(g, x, geometry),
        windows.grad_bias(g, geometry),
    )
    known: dict[str, Any] = {"geometry": geometry, "x": x, "weight": weight, "grad_output": g}
    arguments = (g, x, weight, options(geometry), needed)
    return Trial(arguments, gradients[0], known | {"gradients": gradients})


def _backward_trials(rng: np.random.Generator) -> Iterator[Trial]:
    drawn = list(geometries(rng, only=_one_even_group))
    for geometry in drawn:
        yield _backward_trial(geometry, (True, True, True), rng)
    for needed, geometry in zip(_PARTLY, drawn[-len(_PARTLY) :], strict=True):
        yield _backward_trial(geometry, needed, rng)
    rich = ConvGeometry(N=3, C=2, H=7, W=8, O=4, KH=3, KW=2, stride=2, padding=1)
    yield _backward_trial(rich, (True, True, True), rng, view=True)


_backward = BackwardFunction(
    key="function-backward",
    chapter=_CHAPTER,
    level=3,
    title="The whole backward pass",
    prompt=(
        "Write `backward(ctx, grad_output)` for `forward(ctx, x, weight, bias, how)`, with "
        "`F.unfold`, `F.fold` and matrix products, for one group. forward has saved x and weight, "
        "which `ctx.saved_tensors` gives back, and `ctx.how`, the stride, padding and dilation. "
        "Compute no gradient that `ctx.needs_input_grad` does not ask for. Autograd itself will "
        "call your function."
    ),
    starter=(
        "def backward(ctx, grad_output):\n"
        '    """→ the gradients of x, weight and bias, and None for how"""\n'
        "    x, weight = ctx.saved_tensors\n"
        "    ..."
    ),
    hints=(
        "`grad_output.flatten(2)` is n o l. It also takes the view that a `cat` along the width "
        "hands back, where `view` would not.",
        "For x: `weight.flatten(1).T @ g` are columns, and "
        "`F.fold(columns, x.shape[2:], weight.shape[2:], **ctx.how)` adds them up.",
        "For weight: `g @ columns.mT` has one matrix for each image; add them up with `sum(0)`. "
        "For bias: `g.sum((0, 2))`.",
        "Begin with None for all three, and replace those that are needed: "
        "`if ctx.needs_input_grad[0]:` for x, 1 for weight, 2 for bias.",
    ),
    trials=_backward_trials,
    solution=(
        "def backward(ctx, grad_output):\n"
        "    x, weight = ctx.saved_tensors\n"
        "    size, how, g = weight.shape[2:], ctx.how, grad_output.flatten(2)\n"
        "    to_x = to_weight = to_bias = None\n"
        "    if ctx.needs_input_grad[0]:\n"
        "        to_x = F.fold(weight.flatten(1).T @ g, x.shape[2:], size, **how)\n"
        "    if ctx.needs_input_grad[1]:\n"
        "        shares = g @ F.unfold(x, size, **how).mT  # n o r\n"
        "        to_weight = shares.sum(0).view_as(weight)\n"
        "    to_bias = g.sum((0, 2)) if ctx.needs_input_grad[2] else None\n"
        "    return to_x, to_weight, to_bias, None"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _one_column,
    _how_many_values,
    _kept,
    _fold_row,
    _who_needs,
    _forward,
    _gradcheck_blind,
    _backward,
)
