"""Exercises for *From nn.Conv2d to convolution_backward*."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import windows
from ..checks import random_operands
from ..geometry import ConvGeometry
from .base import Choice, Exercise, Grid, Number
from .functions import Trial, geometries
from .redraw import redrawn
from .tensors import TensorFunction, options

__all__ = ["EXERCISES"]

_CHAPTER = "convolution_backward"


# ---- how many numbers a layer learns ---------------------------------------------------------

_LAYER = ConvGeometry(C=6, H=8, W=8, O=9, KH=3, KW=2, groups=3)


def _parameters(geometry: ConvGeometry, bias: bool = True) -> int:
    return int(np.prod(geometry.weight_shape)) + bias * geometry.O


@redrawn(
    of=lambda dice: replace(
        _LAYER,
        C=3 * dice.between(1, 4),
        O=3 * dice.between(3, 6),
        KH=dice.between(4, 5),
        KW=dice.between(1, 3),
    )
)
def _how_many_parameters(of: ConvGeometry = _LAYER) -> Number:
    return Number(
        key="backward-parameters",
        chapter=_CHAPTER,
        level=1,
        title="What the layer learns",
        prompt=(
            f"How many numbers does `nn.Conv2d({of.C}, {of.O}, kernel_size=({of.KH}, "
            f"{of.KW}), groups={of.groups})` learn?"
        ),
        hints=(
            "There is a kernel for each output channel. How many planes has it, when the "
            "channels are cut into groups?",
            "weight has the shape (O, C/groups, KH, KW). A layer has a bias unless one says "
            "otherwise.",
        ),
        compute=lambda: _parameters(of),
        compute_mistakes=lambda: [
            (_parameters(replace(of, groups=1)), "With groups a kernel has C/groups planes only."),
            (_parameters(of, bias=False), "These are the weights. The biases are learned too."),
            (
                _parameters(of) - of.O + of.C,
                "There is a bias for each output channel, not for each input channel.",
            ),
            (
                _parameters(replace(of, KW=of.KH)),
                f"The kernel is not square: {of.KH} rows and {of.KW} columns.",
            ),
        ],
        explanation=(
            f"{of.O} kernels with {of.CG} planes of {of.KH}·{of.KW} weights, and a "
            "bias for each kernel."
        ),
        solution=(
            f"O, C, groups = {of.O}, {of.C}, {of.groups}\n"
            f"answer = O * (C // groups) * {of.KH} * {of.KW} + O"
        ),
    )


# ---- which of the three are asked for --------------------------------------------------------

_mask = Grid(
    key="backward-mask",
    chapter=_CHAPTER,
    level=1,
    title="Which of the three?",
    prompt=(
        "A layer in the middle of a network is being fine-tuned. Its weight is frozen, its bias "
        "learns, and the layer below learns too. Which `output_mask` does autograd send to "
        "`convolution_backward`? Write 1 for True and 0 for False, for input, weight and bias."
    ),
    starter="answer = [..., ..., ...]",
    hints=(
        "Each flag says whether somebody waits for that gradient.",
        "The layer below learns by the gradient of its output, which is this layer's input.",
    ),
    compute=lambda: np.array([[1.0, 0.0, 1.0]]),
    compute_mistakes=lambda: [
        (
            np.array([[0.0, 0.0, 1.0]]),
            "The layer below learns. How does a gradient reach it, if not through this layer's "
            "input?",
        ),
        (np.array([[1.0, 1.0, 1.0]]), "The weight is frozen: nobody waits for its gradient."),
        (
            np.array([[0.0, 1.0, 0.0]]),
            "You marked what is frozen. The flags say what is to be computed.",
        ),
        (
            np.array([[1.0, 0.0, 0.0]]),
            "The bias learns, so its gradient is needed.",
        ),
    ],
    explanation=(
        "The input gradient goes on to the layer below, the bias gradient to the optimiser, and "
        "nobody wants the third."
    ),
    solution="answer = [1, 0, 1]",
    same_for_all="What is frozen is the question; other flags would ask for less.",
)


# ---- what the node keeps ---------------------------------------------------------------------

_KEPT = ConvGeometry(N=4, C=3, H=10, W=12, O=8, KH=5, KW=3, padding=(2, 1), padding_mode="circular")


def _kept_shape(of: ConvGeometry) -> np.ndarray:
    """The image that the convolution saw, its border already around it."""
    return np.array([(of.N, of.C, *of.padded_size)], dtype=float)


@redrawn(
    of=lambda dice: replace(
        _KEPT, N=dice.between(2, 6), H=dice.between(8, 14), W=dice.between(8, 14)
    )
)
def _kept(of: ConvGeometry = _KEPT) -> Grid:
    return Grid(
        key="backward-kept",
        chapter=_CHAPTER,
        level=2,
        title="What is kept",
        prompt=(
            f"`layer = nn.Conv2d({of.C}, {of.O}, ({of.KH}, {of.KW}), padding=(2, 1), "
            f'padding_mode="circular")` gets images of shape `{of.x_shape}`. What is the shape of '
            "`layer(x).grad_fn._saved_input`?"
        ),
        starter="answer = [..., ..., ..., ...]",
        hints=(
            "A border of copies is made by an operation of its own, before the convolution.",
            "The convolution keeps what it was given: the image with two rows more above and "
            "below, and one column more on either side.",
        ),
        compute=lambda: _kept_shape(of),
        compute_mistakes=lambda: [
            (
                np.array([of.x_shape]),
                "That is x. But this convolution is not given x: its border holds copies, and "
                "somebody has to make them.",
            ),
            (
                np.array([of.output_shape]),
                "That is the shape of the output. It is not kept: no gradient is made of it.",
            ),
            (
                np.array([(of.N, of.C, of.H + 2, of.W + 1)]),
                "There is a border on both sides.",
            ),
            (
                np.array([(of.N, of.C, of.H + 2, of.W + 4)]),
                "A pair is (height, width): 2 above and below, 1 left and right.",
            ),
            (
                np.array([of.weight_shape]),
                "That is the shape of the weight, which is kept beside it.",
            ),
        ],
        explanation=(
            "A copy with its border around it: 2 rows above and 2 below, 1 column left and 1 "
            "right. Such a layer keeps more than x."
        ),
        solution=f"N, C, H, W = {of.x_shape}\nanswer = [N, C, H + 2 * 2, W + 2 * 1]",
    )


# ---- what only the shape is needed of --------------------------------------------------------

_CHANGES = {
    "None of them: the shape of the weight is enough.": (),
    "grad_input alone.": (0,),
    "grad_weight alone.": (1,),
    "grad_input and grad_weight.": (0, 1),
}


def _which_change() -> int:
    """Other weights, and which of the results are then others."""
    geometry = ConvGeometry(N=2, C=2, H=5, W=6, O=3, KH=2, KW=3, stride=2)
    draw = random_operands(geometry, np.random.default_rng(0))

    def three(weight: np.ndarray) -> list[np.ndarray]:
        g = draw.grad_output
        to_x = windows.grad_input(g, weight, geometry)
        return [to_x, windows.grad_weight(g, draw.x, geometry), windows.grad_bias(g, geometry)]

    pairs = zip(three(draw.weight), three(draw.weight + 1), strict=True)
    changed = tuple(k for k, (a, b) in enumerate(pairs) if not np.array_equal(a, b))
    return list(_CHANGES.values()).index(changed)


_only_a_shape = Choice(
    key="backward-only-a-shape",
    chapter=_CHAPTER,
    level=2,
    title="A weight with other numbers",
    prompt=(
        "You call `convolution_backward` twice. The second time the weight has the same shape and "
        "other numbers; all else is the same. Which of the three gradients change?"
    ),
    options=tuple(_CHANGES),
    hints=(
        "Each gradient is a sum of products. Which two of x, w and g stand in the products of "
        "each?",
        "grad_weight is made of x and g.",
    ),
    compute=_which_change,
    compute_mistakes=lambda: [
        (
            0,
            "Its shape is enough for grad_weight. But one gradient is a sum of products with the "
            "weights themselves.",
        ),
        (
            2,
            "The gradient of the weight does not contain the weight: its products are x·g.",
        ),
        (3, "One of the two does: which one has w in its products?"),
    ],
    explanation=(
        "grad_input is made of w·g. grad_weight takes its size from the weight and its numbers "
        "from x and g."
    ),
    solution="answer = 1  # grad_input is made of w and g, the others are not made of w",
)


# ---- how many kernels would fit --------------------------------------------------------------

_ROWS, _STRIDE, _OUT = 12, 4, 2


def _fitting(rows: int = _ROWS, stride: int = _STRIDE, out: int = _OUT) -> int:
    """Kernel heights with which an image of ``rows`` rows gives ``out`` rows."""
    return sum((rows - height) // stride + 1 == out for height in range(1, rows + 1))


@redrawn(
    lambda rows, stride, out: rows - stride * out >= 1 and _fitting(rows, stride, out) != out,
    rows=(10, 18),
    stride=(3, 5),
    out=(2, 4),
)
def _kernel_heights(rows: int = _ROWS, stride: int = _STRIDE, out: int = _OUT) -> Number:
    return Number(
        key="backward-kernel-heights",
        chapter=_CHAPTER,
        level=2,
        title="Why it asks for the size",
        prompt=(
            f"x has {rows} rows, the stride is {stride}, there is no padding and no dilation, and "
            f"grad_output has {out} rows. How many kernel heights are possible?"
        ),
        hints=(
            "Go through the heights 1, 2, 3 … and compute the rows of the output for each. Which "
            f"give {out}?",
            f"({rows} − height) divided by {stride}, rounded down, has to be {out - 1}.",
        ),
        compute=lambda: _fitting(rows, stride, out),
        compute_mistakes=lambda: [
            (1, "The division rounds down, so neighbouring heights can give the same output."),
            (
                _fitting(rows, stride, out) - 1,
                "Count both ends: the smallest height that fits and the largest.",
            ),
            (
                rows - stride * (out - 1),
                "That is the largest of them. The question is how many there are.",
            ),
            (out, "That is the number of output rows."),
        ],
        explanation=(
            f"From {rows - stride * out + 1} to {rows - stride * (out - 1)}: as many as the "
            "stride is long. So the size cannot be read off the other operands, and the call "
            "must be told."
        ),
        solution=(
            f"answer = sum(({rows} - k) // {stride} + 1 == {out} for k in range(1, {rows + 1}))"
        ),
    )


# ---- a border of copies, forgotten -----------------------------------------------------------

_OF_ZEROS = {
    "All three.": (0, 1, 2),
    "grad_input and grad_bias.": (0, 2),
    "grad_weight and grad_bias.": (1, 2),
    "grad_bias alone.": (2,),
}


def _right_with_zeros() -> int:
    """Which gradients of a reflecting layer are right when its border is taken for zeros."""
    geometry = ConvGeometry(N=2, C=2, H=5, W=6, O=3, KH=3, KW=3, padding=1, padding_mode="reflect")
    zeros = replace(geometry, padding_mode="zeros")
    draw = random_operands(geometry, np.random.default_rng(0))
    g = draw.grad_output
    pairs = [
        [rule(g, operand, each) for each in (geometry, zeros)]
        for rule, operand in (
            (windows.grad_input, draw.weight),
            (windows.grad_weight, draw.x),
        )
    ]
    pairs.append([windows.grad_bias(g, each) for each in (geometry, zeros)])
    same = tuple(k for k, (a, b) in enumerate(pairs) if np.array_equal(a, b))
    return list(_OF_ZEROS.values()).index(same)


_reflecting = Choice(
    key="backward-reflecting",
    chapter=_CHAPTER,
    level=3,
    title="The border that was forgotten",
    prompt=(
        'A layer has `padding=1, padding_mode="reflect"`. Somebody calls `convolution_backward` '
        "for it by hand, with x and `padding=[1, 1]`. Nothing complains. Which of the three "
        "gradients are right?"
    ),
    options=tuple(_OF_ZEROS),
    hints=(
        "`padding` of the operation means zeros. At the border, what does a tap read in the layer, "
        "and what in this call?",
        "And what arrives on the border: where does it go in the layer, and where in this call?",
    ),
    compute=_right_with_zeros,
    compute_mistakes=lambda: [
        (0, "The shapes are right. But the layer's border holds copies of x, and zeros differ."),
        (
            1,
            "What arrives at a copy belongs to the cell it was copied from. With zeros it is lost.",
        ),
        (
            2,
            "A tap at the border is multiplied with a copy in the layer, and with 0 in this call.",
        ),
    ],
    explanation=(
        "The bias gradient is a sum of g and knows no border. The others need the padded image, "
        "padding 0, and a border that is folded back."
    ),
    solution="answer = 3  # only grad_bias does not depend on what the border holds",
)


# ---- write it --------------------------------------------------------------------------------


def _even(geometry: ConvGeometry) -> bool:
    """Whether one number an axis says the border, as the operation takes it."""
    return all(before == after for before, after in geometry.padding)


def _weight_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng, only=_even):
        _, x, weight, g = random_operands(geometry, rng)
        how = options(geometry) | {"groups": geometry.groups}
        known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
        arguments = (g, x, weight.shape, how)
        yield Trial(arguments, windows.grad_weight(g, x, geometry), known)


_weight_alone = TensorFunction(
    key="backward-weight-alone",
    chapter=_CHAPTER,
    level=2,
    title="Without a weight",
    prompt=(
        "Write `grad_weight(grad_output, x, weight_shape, how)` with one call of "
        "`torch.ops.aten.convolution_backward`. You have no weight, only its shape. `how` is a "
        "dictionary with `stride`, `padding` and `dilation` as pairs, and `groups`. Let nothing be "
        "computed that is not needed."
    ),
    starter=(
        "def grad_weight(grad_output, x, weight_shape, how):\n"
        '    """grad_output (N,O,OH,OW), x (N,C,H,W) → weight_shape"""\n'
        "    ..."
    ),
    hints=(
        "For this gradient the operation looks at the shape of the weight and never at its "
        "numbers. `x.new_empty(1).expand(weight_shape)` has the shape and no memory of its own.",
        "The order is: grad_output, input, weight, bias_sizes, stride, padding, dilation, "
        "transposed, output_padding, groups, output_mask.",
        "bias_sizes may be None, transposed is False, output_padding is [0, 0]. The mask is "
        "[False, True, False], and the answer is the second of three.",
    ),
    trials=_weight_trials,
    solution=(
        "def grad_weight(grad_output, x, weight_shape, how):\n"
        "    stand_in = x.new_empty(1).expand(weight_shape)  # a shape without numbers\n"
        "    found = torch.ops.aten.convolution_backward(\n"
        "        *(grad_output, x, stand_in, None),\n"
        '        *(how["stride"], how["padding"], how["dilation"]),\n'
        '        *(False, [0, 0], how["groups"], [False, True, False]),\n'
        "    )\n"
        "    return found[1]"
    ),
)


def _bordered_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        _, x, weight, g = random_operands(geometry, rng)
        (top, bottom), (left, right) = geometry.padding
        how = {name: getattr(geometry, name) for name in ("stride", "dilation", "groups")}
        arguments = (g, x, weight, (left, right, top, bottom), how)
        expected = (
            windows.grad_input(g, weight, geometry),
            windows.grad_weight(g, x, geometry),
        )
        known: dict[str, Any] = {
            "geometry": geometry,
            "target": ("input", "weight"),
            "x": x,
            "weight": weight,
            "grad_output": g,
        }
        yield Trial(arguments, expected, known)


_bordered = TensorFunction(
    key="backward-uneven",
    chapter=_CHAPTER,
    level=3,
    title="An uneven border",
    prompt=(
        "`convolution_backward` takes one number for the border above and below, and one for left "
        'and right. A layer with `padding="same"` and an even kernel needs four. Write '
        "`backward(grad_output, x, weight, border, how)`, which returns `grad_input` and "
        "`grad_weight`. `border` is `(left, right, top, bottom)`, the order of `F.pad`, and holds "
        "zeros; `how` has `stride`, `dilation` and `groups`."
    ),
    starter=(
        "def backward(grad_output, x, weight, border, how):\n"
        '    """→ grad_input (N,C,H,W) and grad_weight, in the shape of weight"""\n'
        "    ..."
    ),
    hints=(
        "Do as PyTorch does: make the border first, `F.pad(x, border)`, and let the convolution "
        "have padding 0.",
        "The operation then gives the gradient of the *padded* image. Of that, what belongs to x?",
        "`padded[..., top : top + H, left : left + W]`; what arrived on the border is dropped.",
    ),
    trials=_bordered_trials,
    solution=(
        "def backward(grad_output, x, weight, border, how):\n"
        "    left, _, top, _ = border\n"
        "    padded, to_weight, _ = torch.ops.aten.convolution_backward(\n"
        "        *(grad_output, F.pad(x, border), weight, None),\n"
        '        *(how["stride"], [0, 0], how["dilation"]),\n'
        '        *(False, [0, 0], how["groups"], [True, True, False]),\n'
        "    )\n"
        "    H, W = x.shape[2:]\n"
        "    return padded[..., top : top + H, left : left + W], to_weight"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _how_many_parameters,
    _mask,
    _kept,
    _only_a_shape,
    _kernel_heights,
    _weight_alone,
    _reflecting,
    _bordered,
)
