"""Exercises for *Grouped and depthwise convolution*."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import grouped, loops, windows
from ..checks import random_geometry, random_operands
from ..examples import Example, example
from ..geometry import ConvGeometry
from ..mutants import MUTANTS
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial
from .redraw import like, redrawn
from .words import called

__all__ = ["EXERCISES"]

_CHAPTER = "grouped"
_D = example("D")


# ---- which channel -------------------------------------------------------------------------

_KERNEL, _PLANE = 2, 5  # of example E


def _channel_mistakes(kernel: int, plane: int) -> list[tuple[int, str]]:
    g = example("E").geometry
    group = g.group_of(kernel)
    return [
        (
            plane,
            f"`c` counts within the group, and group {group} does not begin at channel 0. How many "
            "channels lie before it?",
        ),
        (
            plane * g.groups + group,
            "That would be so if the channels were dealt to the groups like cards. A group is a "
            "block of neighbours.",
        ),
        (
            (group - 1) * g.CG + plane,
            f"That channel belongs to group {group - 1}: groups count from 0.",
        ),
        (
            g.channel(kernel, plane) + 1,
            "One too far: channels count from 0, so a group of 8 begins at 0, 8 or 16.",
        ),
    ]


@redrawn(kernel=(1, 2), plane=(1, 6))
def _channel(kernel: int = _KERNEL, plane: int = _PLANE) -> Number:
    return Number(
        key="grouped-channel",
        chapter=_CHAPTER,
        level=1,
        title="Which channel?",
        prompt=(
            f"Example E has {example('E').geometry.C} channels, {example('E').geometry.O} kernels "
            f"and {example('E').geometry.groups} groups. Kernel {kernel} has a plane of taps "
            f"`weight[{kernel}, {plane}]`. Which channel of `x` does it lie on?"
        ),
        hints=(
            "How many channels has a group, and how many kernels?",
            f"To which group does kernel {kernel} belong, and which is the first channel of that "
            "group?",
            f"From there, go on by c = {plane}.",
        ),
        compute=lambda: example("E").geometry.channel(kernel, plane),
        compute_mistakes=lambda: _channel_mistakes(kernel, plane),
        explanation=(
            f"There are 8 channels and one kernel in each group. Kernel {kernel} belongs to group "
            f"{kernel}, whose first channel is {kernel}·8; {plane} further on is the one asked for."
        ),
        solution=f"answer = example('E').geometry.channel(o={kernel}, c={plane})",
    )


# ---- how many weights ----------------------------------------------------------------------


def _weight_mistakes(g: ConvGeometry) -> list[tuple[int, str]]:
    taps = g.KH * g.KW
    return [
        (
            g.O * g.C * taps,
            f"That is the layer without groups, where every kernel has {g.C} planes.",
        ),
        (
            g.OG * g.CG * taps,
            f"That is one group of {g.groups}. Each has weights of its own.",
        ),
        (g.O * taps, f"That would be a kernel with one plane: here each reads {g.CG} channels."),
        (
            g.C * g.OG * taps + g.O,
            "Nearly: you counted the biases too. They do not depend on the groups.",
        ),
        (g.O * g.CG, "You counted the planes. Each has 3×3 taps."),
    ]


@redrawn(
    lambda C, O, groups: C % groups == O % groups == 0 and 1 < groups < C and C != O,
    C=(4, 16),
    O=(4, 24),
    groups=(2, 4),
)
def _weights(C: int = 8, O: int = 12, groups: int = 4) -> Number:
    of = ConvGeometry(C=C, H=6, W=6, O=O, KH=3, KW=3, groups=groups)
    return Number(
        key="grouped-weights",
        chapter=_CHAPTER,
        level=1,
        title="How many weights?",
        prompt=(
            f"A layer has {of.C} channels, {of.O} kernels of {of.KH}×{of.KW} taps and "
            f"{of.groups} groups. How many weights has it, biases not counted?"
        ),
        hints=(
            "How many channels does one kernel read?",
            f"One kernel has that many planes of nine taps. And there are {O} kernels.",
        ),
        compute=lambda: math.prod(of.weight_shape),
        compute_mistakes=lambda: _weight_mistakes(of),
        explanation=(
            f"The shape of the weight is `(O, C/G, KH, KW)`, here {of.weight_shape}: without "
            f"groups there would be {groups} times as many."
        ),
        solution=f"answer = {O} * ({C} // {groups}) * 3 * 3",
    )


# ---- one corner of the input gradient -----------------------------------------------------

_CHANNEL = 1  # of example D


def _corner_products(of: Example) -> np.ndarray:
    """The product that each kernel would send to the corner of the channel, group or not."""
    _, weight, _, g = of.arrays()
    return weight[:, _CHANNEL % of.geometry.CG, 0, 0] * g[0, :, 0, 0]


def _own_group() -> slice:
    geometry = example("D").geometry
    group = _CHANNEL // geometry.CG
    return slice(group * geometry.OG, (group + 1) * geometry.OG)


def _corner_mistakes(of: Example) -> list[tuple[float, str]]:
    products, own = _corner_products(of), _own_group()
    geometry = example("D").geometry
    dealt = np.arange(geometry.O) % geometry.groups == _CHANNEL // geometry.CG
    return [
        (
            products.sum(),
            "You added all six kernels. Three of them have never read this channel.",
        ),
        (
            products.sum() - products[own].sum(),
            "These are the kernels of the other group. Which kernels read channel 1?",
        ),
        (
            products[own][0],
            "That is the share of one kernel. Every kernel of the group sends its own.",
        ),
        (
            products[dealt].sum(),
            "You took every second kernel. The kernels of a group are neighbours.",
        ),
        (np.abs(products[own]).sum(), "Look at the signs of the products once more."),
    ]


def _listed(numbers: np.ndarray) -> str:
    return ", ".join(f"{number:g}".replace("-", "−") for number in numbers)


@redrawn(of=like("D"))
def _corner(of: Example = _D) -> Number:
    taps = of.arrays().weight[:, _CHANNEL, 0, 0].astype(int).tolist()
    sent = of.arrays().grad_output[0, :, 0, 0].astype(int).tolist()
    return Number(
        key="grouped-corner",
        chapter=_CHAPTER,
        level=2,
        title="A corner of the input gradient",
        prompt=(
            f"{called(of)}: four channels, six kernels, two groups. The corner cell `x[0, "
            f"{_CHANNEL}, 0, 0]` is read by one window, at $(0,0)$, under tap $(0,0)$. There, the "
            "planes `weight[o, 1]` of the kernels 0 to 5 hold "
            f"{_listed(of.arrays().weight[:, _CHANNEL, 0, 0])}, and `grad_output[0, o]` holds "
            f"{_listed(of.arrays().grad_output[0, :, 0, 0])}. Which number is `grad_input[0, "
            f"{_CHANNEL}, 0, 0]`?"
        ),
        hints=(
            "Each kernel that reads the cell sends back its tap times its number of grad_output.",
            f"Which of the six kernels read channel {_CHANNEL}?",
            "Channels 0 and 1 are the first group, and so are kernels 0, 1 and 2.",
        ),
        compute=lambda: _corner_products(of)[_own_group()].sum(),
        compute_mistakes=lambda: _corner_mistakes(of),
        explanation=(
            "Kernels 0, 1 and 2 read channel 1, and each sends back one product. The other three "
            "have never seen it."
        ),
        solution=(f"taps = np.array({taps[:3]})\nanswer = (taps * np.array({sent[:3]})).sum()"),
    )


# ---- a channel multiplier of three --------------------------------------------------------

_SPREAD = ConvGeometry(C=2, H=2, W=2, O=6, KH=1, KW=1, groups=2)


def _spread_operands(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """grad_output of ones, and x with one number in each channel."""
    x = np.full(_SPREAD.x_shape, float(a))
    x[:, 1] = b
    return np.ones(_SPREAD.output_shape), x


def _spread_gradient(a: int, b: int) -> np.ndarray:
    return windows.grad_weight(*_spread_operands(a, b), _SPREAD)[:, 0, :, 0].T  # one row


def _spread_mistakes(a: int, b: int) -> list[tuple[np.ndarray, str]]:
    g, x = _spread_operands(a, b)
    right = _spread_gradient(a, b)
    dense = replace(_SPREAD, groups=1)
    return [
        (
            MUTANTS["depthwise_mod"](g, x, _SPREAD)[:, 0, :, 0].T,
            "You dealt the kernels to the channels like cards, o % 2. The kernels of a channel are "
            "neighbours: o // 3.",
        ),
        (right / 4, "That is one position. Each tap meets four, and their products add up."),
        (
            windows.grad_weight(g, x, dense).sum(axis=1)[:, :, 0].T,
            "You added both channels. In a depthwise convolution a kernel reads one.",
        ),
        (right[:, ::-1], "The first kernels belong to the first channel."),
    ]


@redrawn(lambda a, b: a != b, a=(1, 9), b=[10, 20, 30, 100])
def _multiplier(a: int = 1, b: int = 10) -> Grid:
    return Grid(
        key="grouped-multiplier",
        chapter=_CHAPTER,
        level=2,
        title="Three kernels for each channel",
        prompt=(
            "A depthwise convolution has 2 channels of 2×2 cells, 2 groups and 6 kernels of one "
            f"tap, so three kernels for each channel. All cells of channel 0 are {a}, all cells "
            f"of channel 1 are {b}, and `grad_output` is 1 everywhere. What are the six weight "
            "gradients?"
        ),
        starter="answer = [..., ..., ..., ..., ..., ...]  # kernels 0 to 5",
        hints=(
            "A tap meets four cells of its channel, each times a 1.",
            "Kernels 0, 1 and 2 belong to the first group. Which channel is that?",
        ),
        compute=lambda: _spread_gradient(a, b),
        compute_mistakes=lambda: _spread_mistakes(a, b),
        explanation=(
            "Kernel o reads channel o // 3: the first three kernels read channel 0, the last three "
            "channel 1."
        ),
        solution=f"answer = [4 * {a}] * 3 + [4 * {b}] * 3",
    )


# ---- what differs from the dense convolution ---------------------------------------------

_RESULTS = ("`y`", "`grad_input`", "`grad_weight`", "`grad_bias`")


def _differs() -> int:
    """The one result of example D that another one with zeros and one group does not give."""
    x, weight, _, g = example("D").arrays()
    geometry = example("D").geometry
    dense, open_ = grouped.block_diagonal(weight, geometry), replace(geometry, groups=1)
    pairs = [
        (loops.forward(x, weight, geometry), loops.forward(x, dense, open_)),
        (loops.grad_input(g, weight, geometry), loops.grad_input(g, dense, open_)),
        (
            grouped.block_diagonal(loops.grad_weight(g, x, geometry), geometry),
            loops.grad_weight(g, x, open_),
        ),
        (loops.grad_bias(g, geometry), loops.grad_bias(g, open_)),
    ]
    (place,) = (k for k, pair in enumerate(pairs) if not np.array_equal(*pair))
    return place


_what_differs = Choice(
    key="grouped-what-differs",
    chapter=_CHAPTER,
    level=2,
    title="What differs?",
    prompt=(
        "A grouped convolution is replaced by a dense one: `groups=1`, and a weight that holds the "
        "same numbers in the blocks and zeros elsewhere. `x` and `grad_output` stay. Which one of "
        "the four results holds other numbers than before, even where you fill up the missing "
        "blocks of the old one with zeros?"
    ),
    options=_RESULTS,
    hints=(
        "A product with a zero weight adds nothing. In which of the four results is the weight a "
        "factor of every product, and in which does it not occur?",
        "Two results do not contain the weight at all. One of them has no channel either.",
    ),
    compute=_differs,
    compute_mistakes=lambda: [
        (0, "Each new product in y has a zero weight as a factor, so it adds nothing."),
        (1, "A kernel sends back w·g, and through a zero weight it sends back zeros."),
        (3, "The bias gradient is a sum of grad_output alone: there are no channels in it."),
    ],
    explanation=(
        "Its products are x·g: the weight is not among the factors, and a weight of 0 has a slope "
        "like any other."
    ),
    solution="answer = 2  # grad_weight",
)


# ---- which sizes show a mix-up -----------------------------------------------------------

_SIZES = ((6, 6, 1), (6, 6, 6), (6, 6, 3), (6, 12, 6))  # C, O, groups


def _telling() -> int:
    """The one layer on which dealing channels out like cards changes the weight gradient."""
    rng = np.random.default_rng(0)
    shown = []
    for C, O, groups in _SIZES:
        geometry = ConvGeometry(C=C, H=4, W=4, O=O, KH=2, KW=2, groups=groups)
        draw = random_operands(geometry, rng)
        right = windows.grad_weight(draw.grad_output, draw.x, geometry)
        wrong = MUTANTS["group_interleaved"](draw.grad_output, draw.x, geometry)
        shown.append(not np.array_equal(wrong, right))
    (place,) = np.flatnonzero(shown)
    return int(place)


_which_sizes = Choice(
    key="grouped-which-sizes",
    chapter=_CHAPTER,
    level=2,
    title="Which layer shows the mistake?",
    prompt=(
        "A weight gradient deals the channels to the groups like cards: group k gets the channels "
        "k, k + G, k + 2G and so on. On which of these layers does a test notice?"
    ),
    options=tuple(f"{C} channels, {O} kernels, `groups={G}`" for C, O, G in _SIZES),
    hints=(
        "Write down the channels of each group, in blocks and dealt out. Where are they the same?",
        "With one group every order is a block. With one channel in each group there is nothing "
        "to deal wrongly.",
    ),
    compute=_telling,
    compute_mistakes=lambda: [
        (0, "There is one group, and it gets all channels, in order, either way."),
        (1, "Each group has one channel: group k gets channel k, either way."),
        (
            3,
            "More kernels do not change the channels. Each group has one channel, group k "
            "channel k.",
        ),
    ],
    explanation=(
        "Three groups of two channels: blocks would be 0 1, 2 3, 4 5, and dealt out they are 0 3, "
        "1 4, 2 5. Only sizes with 1 < groups < C tell the two apart."
    ),
    solution="answer = 2  # 1 < groups < C",
)


# ---- write it ------------------------------------------------------------------------------

_PLAIN = ConvGeometry(C=4, H=6, W=5, O=4, KH=3, KW=2)
_Sizes = tuple[dict[str, Any], ...]


def _forward_trials(rng: np.random.Generator) -> Iterator[Trial]:
    steps: _Sizes = ({}, {"groups": 4}, {"groups": 2}, {"O": 8, "groups": 4})
    for sizes in (*steps, {"O": 6, "groups": 2}, {"N": 3, "C": 6, "O": 9, "groups": 3}):
        geometry = replace(_PLAIN, **sizes)
        _, x, weight, _ = random_operands(geometry, rng)
        known = {"geometry": geometry, "target": "output", "x": x, "weight": weight}
        y = windows.forward(x, weight, geometry)
        yield Trial((x, weight, geometry.groups), y, known)


_forward = Function(
    key="grouped-forward",
    chapter=_CHAPTER,
    level=2,
    title="Groups from a conv2d without groups",
    prompt=(
        "Write `forward(x, weight, groups)`: the output of a grouped convolution with stride 1 and "
        "no padding, made with calls of `conv2d` that have no groups. `x` is `(N, C, H, W)`, "
        "`weight` is `(O, C/G, KH, KW)`, the result `(N, O, OH, OW)`."
    ),
    starter=(
        "def forward(x, weight, groups):\n"
        '    """x (N,C,H,W), weight (O,C/G,KH,KW) → (N,O,OH,OW)"""\n'
        "    ..."
    ),
    hints=(
        "One call of conv2d for each group: which channels of x, and which kernels?",
        "Group k has the channels from k·C/G to (k+1)·C/G and the kernels from k·O/G to (k+1)·O/G.",
        "`np.split(x, groups, axis=1)` cuts an axis into equal blocks of neighbours, and "
        "`np.concatenate(parts, axis=1)` joins them.",
    ),
    trials=_forward_trials,
    solution=(
        "def forward(x, weight, groups):\n"
        "    blocks = np.split(x, groups, axis=1)\n"
        "    kernels = np.split(weight, groups, axis=0)\n"
        "    pairs = zip(blocks, kernels)\n"
        "    return np.concatenate([conv2d(*each) for each in pairs], axis=1)"
    ),
)


def _has_groups(geometry: ConvGeometry) -> bool:
    return 1 < geometry.groups < geometry.C and geometry.OG > 1


def _gradient_trials(rng: np.random.Generator) -> Iterator[Trial]:
    steps: _Sizes = ({}, {"groups": 4}, {"groups": 2}, {"O": 6, "groups": 2})
    for sizes in (*steps, {"N": 3, "groups": 2}):
        yield _gradient_trial(replace(_PLAIN, **sizes), rng)
    for _ in range(6):
        yield _gradient_trial(random_geometry(rng, _has_groups, padding_modes=("zeros",)), rng)


def _gradient_trial(geometry: ConvGeometry, rng: np.random.Generator) -> Trial:
    _, _, weight, g = random_operands(geometry, rng)
    known = {"geometry": geometry, "target": "input", "weight": weight, "grad_output": g}
    return Trial((g, weight, geometry), windows.grad_input(g, weight, geometry), known)


_grad_input = Function(
    key="grouped-grad-input",
    chapter=_CHAPTER,
    level=3,
    title="The input gradient with groups",
    prompt=(
        "Write `grad_input(grad_output, weight, geometry)`, product by product, for every stride, "
        "zero padding, dilation and number of groups. The geometry helps: `source(p, q, i, j)` is "
        "the place (h, v) that a tap read, `cell(h, v)` the cell of x there, or `None` on padding, "
        "and `channel(o, c)` the channel of x behind channel c of kernel o. The result has the "
        "shape `geometry.x_shape`."
    ),
    starter=(
        "def grad_input(grad_output, weight, geometry):\n"
        '    """grad_output (N,O,OH,OW), weight (O,C/G,KH,KW) → geometry.x_shape"""\n'
        "    ..."
    ),
    hints=(
        "Every product w·g goes back to the cell that was read. Loop over n, o, p, q and c, i, j.",
        "`geometry.cell(*geometry.source(p, q, i, j))` is that cell, or `None`: then the product "
        "is lost.",
        "In the channel `geometry.channel(o, c)`, add with `+=`: many products meet in one cell.",
    ),
    trials=_gradient_trials,
    solution=(
        "def grad_input(grad_output, weight, geometry):\n"
        "    grad = np.zeros(geometry.x_shape)\n"
        "    for n, o, p, q in np.ndindex(grad_output.shape):\n"
        "        for c, i, j in np.ndindex(weight.shape[1:]):\n"
        "            cell = geometry.cell(*geometry.source(p, q, i, j))\n"
        "            if cell is not None:\n"
        "                sent = weight[o, c, i, j] * grad_output[n, o, p, q]\n"
        "                grad[n, geometry.channel(o, c), *cell] += sent\n"
        "    return grad"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _channel,
    _weights,
    _corner,
    _multiplier,
    _what_differs,
    _which_sizes,
    _forward,
    _grad_input,
)
