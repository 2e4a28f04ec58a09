"""Exercises for *One product at a time*: the chain rule as a list of products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import windows
from ..checks import random_operands
from ..examples import Example, example
from ..geometry import ConvGeometry
from ..ledger import ORDERS, accumulate, contributions, product
from ..mutants import MUTANTS
from ..tables import count, per_tap
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial, geometries
from .redraw import like, redrawn
from .words import called, given, numbers_of, turned

__all__ = ["EXERCISES"]

_CHAPTER = "one_product"
_A, _B = example("A"), example("B")


def _grad_input(of: Example) -> np.ndarray:
    """grad_input of an example, (N, C, H, W)."""
    _, weight, _, g = of.arrays()
    return windows.grad_input(g, weight, of.geometry)


# ---- the pixel of example A ------------------------------------------------------------------


def _listed(numbers: np.ndarray) -> str:
    return ", ".join(f"{number:g}".replace("-", "−") for number in numbers.ravel())


def _shares(of: Example) -> list[float]:
    """The products w·g that the pixel receives, window by window."""
    _, weight, _, g = of.arrays()
    listed = contributions(of.geometry, "input", "position")
    return [float(product(each, "input", weight=weight, grad_output=g)) for each in listed]


def _pixel_mistakes(of: Example) -> list[tuple[float, str]]:
    x, weight, _, g = of.arrays()
    middle = weight[0, 0, 1:3, 1:3]
    pixel = float(x[0, 0, 0, 0])
    return [
        (
            float((middle * g[0, 0]).sum()),
            "You paired taps and numbers of g in the order in which they stand. Which tap lies on "
            "the pixel when the window stands at (0, 0)?",
        ),
        (
            pixel * sum(_shares(of)),
            "The pixel's own value has no part in its gradient: its partner is the weight.",
        ),
        (
            pixel * float(g.sum()),
            "These are the products x·g, which go to the taps. The pixel gets the other partner "
            "times g.",
        ),
        (float(g.sum()), "You added up g alone. Each number of g comes with a weight."),
        (
            _shares(of)[-1],
            "That is the share of the last window. The pixel has a part in all four.",
        ),
    ]


@redrawn(of=like("A"))
def _pixel(of: Example = _A) -> Number:
    met = turned(of.arrays().weight)[0, 0, 1:3, 1:3]
    return Number(
        key="product-pixel",
        chapter=_CHAPTER,
        level=1,
        title="What the pixel gets",
        prompt=(
            f"{called(of)}: all four windows read the one pixel. Each sends it the weight that "
            "lies on it, times the window's number of `grad_output`. What is the sum, "
            "`grad_input[0, 0, 0, "
            "0]`?\n\n" + numbers_of(of, "x", "weight", "grad_output")
        ),
        hints=(
            "With a border of 2 the pixel lies under tap (2, 2) when the window stands at (0, 0).",
            "When the window goes one cell to the right, the tap on the pixel is one further left.",
            "The four taps are (2, 2), (2, 1), (1, 2), (1, 1). Which weights stand there?",
        ),
        compute=lambda: float(_grad_input(of)[0, 0, 0, 0]),
        compute_mistakes=lambda: _pixel_mistakes(of),
        explanation=(
            f"The weights {_listed(met)} meet {_listed(of.arrays().grad_output)}. All four "
            "products have the same address, so they are added up."
        ),
        solution=(
            f"{given(of, 'weight', 'grad_output')}\n"
            "answer = (weight[0, 0, 1:3, 1:3][::-1, ::-1] * grad_output[0, 0]).sum()"
        ),
    )


# ---- the two homes of one product --------------------------------------------------------------


def _factors(of: Example, p: int, q: int, i: int, j: int) -> tuple[float, float, float]:
    """Weight, input number and upstream number of one product."""
    x, weight, _, g = of.arrays()
    h, v = of.geometry.source(p, q, i, j)
    return float(weight[0, 0, i, j]), float(x[0, 0, h, v]), float(g[0, 0, p, q])


def _homes(w: float, x: float, g: float) -> np.ndarray:
    """[[what goes to the tap, what goes to the input cell]]."""
    return np.array([[x * g, w * g]])


def _homes_mistakes(w: float, x: float, g: float) -> list[tuple[np.ndarray, str]]:
    return [
        (
            np.array([[w * g, x * g]]),
            "The right two numbers at the wrong addresses: each partner is sent the *other* one "
            "times g.",
        ),
        (
            np.array([[x, w]]),
            "These are the two slopes. Each is still multiplied by the window's number of g.",
        ),
        (
            np.array([[w * x, w * x]]),
            "That is the product of the forward pass. Backward, g takes the place of one factor.",
        ),
        (
            np.array([[w * x * g, w * x * g]]),
            "Three factors are one too many: a partner does not multiply its own gradient.",
        ),
        (
            np.array([[g, g]]),
            "g alone is what the bias gets. A weight and an input cell have a partner.",
        ),
    ]


@redrawn(of=like("B"), p=(0, 2), q=(0, 2), i=(0, 2), j=(0, 2))
def _two_homes(of: Example = _B, p: int = 2, q: int = 1, i: int = 1, j: int = 0) -> Grid:
    w, x, g = _factors(of, p, q, i, j)
    return Grid(
        key="product-two-homes",
        chapter=_CHAPTER,
        level=1,
        title="One product, two homes",
        prompt=(
            f"{called(of)}, the window at ({p}, {q}) and in it tap ({i}, {j}). In the backward "
            "pass this one product sends a number to its tap and another to its input cell. "
            "Which "
            "two?\n\n" + numbers_of(of, "x", "weight", "grad_output")
        ),
        starter="answer = [..., ...]  # to the tap, to the input cell",
        hints=(
            f"The tap lies on row {p} + {i}, column {q} + {j} of x.",
            "The tap gets the input number times g, the input cell gets the weight times g.",
        ),
        compute=lambda: _homes(w, x, g),
        compute_mistakes=lambda: _homes_mistakes(w, x, g),
        explanation=(
            f"Weight {w:g}, input {x:g} and g {g:g} meet here. Each of the first two is sent the "
            "other one times g."
        ),
        solution=f"x, w, g = {x:g}, {w:g}, {g:g}  # x[{p + i}, {q + j}], w[{i}, {j}], g[{p}, {q}]\n"
        "answer = [x * g, w * g]",
    )


# ---- products on the border --------------------------------------------------------------------


def _on_padding() -> int:
    geometry = example("A").geometry
    return count(geometry, include_padding=True) - count(geometry)


def _padding_mistakes() -> list[tuple[int, str]]:
    geometry = example("A").geometry
    all_of_them = count(geometry, include_padding=True)
    rows, cols = geometry.padded_size
    never = int((per_tap(geometry) == 0).sum())
    return [
        (count(geometry), "These are the products on the pixel. The others were asked for."),
        (all_of_them, "That is all of them. In each window one tap lies on the pixel."),
        (
            rows * cols - 1,
            "That is how many cells the border has. A cell is read by several windows, and each "
            "time makes a product.",
        ),
        (
            never * geometry.OH * geometry.OW,
            f"You counted the {never} taps that never meet the pixel. The other taps lie on the "
            "border too, in three windows of four.",
        ),
        (geometry.KH * geometry.KW - 1, "That is one window. There are four."),
    ]


_border = Number(
    key="product-on-padding",
    chapter=_CHAPTER,
    level=1,
    title="Products on the border",
    prompt=(
        "Example A again: a 4×4 kernel, four windows, one pixel with a border of 2 cells. Of all "
        "products of a weight and an input number, how many lie on the border?"
    ),
    hints=(
        "How many products does one window make, and how many windows are there?",
        "In every window one tap lies on the pixel, and all others lie on the border.",
    ),
    compute=_on_padding,
    compute_mistakes=_padding_mistakes,
    explanation=(
        "Each of the four windows has 16 taps, and 15 of them lie on the border. Their products "
        "x·g are 0, and their products w·g have no cell to go to."
    ),
    solution="answer = 4 * (16 - 1)",
    same_for_all="It is about where the padding of example A lies, not about its numbers.",
)


# ---- one cell of the input gradient ------------------------------------------------------------


def _cell_mistakes(of: Example, h: int, v: int) -> list[tuple[float, str]]:
    _, weight, _, g = of.arrays()
    geometry = of.geometry
    met = [each for each in contributions(geometry, "input", "position") if each.cell == (h, v)]
    sent = [float(product(each, "input", weight=weight, grad_output=g)) for each in met]
    return [
        (
            float(MUTANTS["dgrad_no_flip"](g, weight, geometry)[0, 0, h, v]),
            "You paired weights and numbers of g in the order in which they stand. While the "
            "window goes right, the cell moves left under the kernel.",
        ),
        (
            float(_grad_input(of)[0, 0, v, h]),
            f"That is the cell in row {v}, column {h}: the row comes first.",
        ),
        (sent[-1], "That is the last window's share. Every window that reads the cell has one."),
        (
            float(sum(weight[0, 0, each.i, each.j] for each in met)),
            "You added up the weights. Each comes with its window's number of g.",
        ),
        (
            float(sum(g[0, 0, each.p, each.q] for each in met)),
            "You added up g over the windows that read the cell. Each number comes with a weight.",
        ),
        (
            float(_grad_input(of)[0, 0, h, v] + sent[2]),
            "Nearly: one product seems to be counted twice.",
        ),
    ]


@redrawn(lambda of, h, v: (h, v) != (2, 2) and h != v, of=like("B"), h=(1, 3), v=(1, 3))
def _cell(of: Example = _B, h: int = 1, v: int = 2) -> Number:
    readers = sum(each.cell == (h, v) for each in contributions(of.geometry, "input", "position"))
    return Number(
        key="product-cell",
        chapter=_CHAPTER,
        level=2,
        title="All the products of one cell",
        prompt=(
            f"{called(of)}: go through the windows that read the input cell ({h}, {v}), and add "
            "up what "
            f"they send. What is `grad_input[0, 0, {h}, {v}]`?\n\n"
            + numbers_of(of, "weight", "grad_output")
        ),
        hints=(
            f"A window reads the cell if ({h}, {v}) is one of its nine. For which rows p and "
            "columns q is that so?",
            f"In window (p, q) the cell lies under tap ({h} − p, {v} − q).",
            f"There are {readers} products; those with a 0 need not be written down.",
        ),
        compute=lambda: float(_grad_input(of)[0, 0, h, v]),
        compute_mistakes=lambda: _cell_mistakes(of, h, v),
        explanation=(
            f"{readers} windows read the cell, each under another tap, and each sends its weight "
            "times its number of g. What they send is added up."
        ),
        solution=(
            f"{given(of, 'weight', 'grad_output')}\n"
            "answer = 0\n"
            "for p, q in np.ndindex(3, 3):\n"
            f"    i, j = {h} - p, {v} - q\n"
            "    if 0 <= i < 3 and 0 <= j < 3:\n"
            "        answer += weight[0, 0, i, j] * grad_output[0, 0, p, q]"
        ),
    )


# ---- a table of slopes -------------------------------------------------------------------------

_ROW = ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=2, stride=(1, 2))


def _slopes(taps: np.ndarray, step: int = 2) -> np.ndarray:
    """∂y/∂x of one row: the taps where the window lies, 0 elsewhere."""
    table = np.zeros((_ROW.OW, _ROW.W))
    for q, j in np.ndindex(_ROW.OW, _ROW.KW):
        table[q, step * q + j] = taps[j]
    return table


@redrawn(lambda a, b: a * b and abs(a) != abs(b), a=(-4, 4), b=(-4, 4))
def _table(a: int = 2, b: int = -1) -> Grid:
    taps = np.array([a, b], dtype=np.float64)
    return Grid(
        key="product-slopes",
        chapter=_CHAPTER,
        level=2,
        title="A table of slopes",
        prompt=(
            f"One row of {_ROW.W} input cells, a kernel of two taps with the weights "
            f"{a} and {b}, stride 2, no padding. Fill in the table of slopes ∂y/∂x: "
            "a row for each output cell, a column for each input cell.".replace("-", "−")
        ),
        starter="answer = [[..., ..., ..., ..., ...],\n          [..., ..., ..., ..., ...]]",
        hints=(
            "Row q holds the slopes of output cell q. Which cells of the input does its window "
            "read?",
            "The slope of a product by its input number is the weight. For a cell that is not "
            "read, it is 0.",
        ),
        compute=lambda: _slopes(taps),
        compute_mistakes=lambda: [
            (
                _slopes(taps, step=1),
                "In the second row the window has moved on by 2: the stride.",
            ),
            (
                _slopes(taps[::-1]),
                "The first tap lies on the left cell of its window. Nothing is turned here.",
            ),
            (
                _slopes(taps, step=0),
                "Both rows show the same window. The second output cell reads other cells.",
            ),
            (
                _slopes(np.ones(2)),
                "You marked where the slopes are. What stands there is the weight.",
            ),
        ],
        explanation=(
            "Both rows hold the same two weights, at the cells that their window reads. The last "
            "column is empty: that cell is left over, and its gradient is 0 whatever g is."
        ),
        solution=f"answer = [[{a}, {b}, 0, 0, 0],\n          [0, 0, {a}, {b}, 0]]",
    )


# ---- a weight of zero --------------------------------------------------------------------------

_ZERO_CHOICES = (
    "Its gradient is 0, and it sends 0 to the input: all of its products are 0.",
    "Its gradient is 0, but it sends g to the input cells that it lies on.",
    "Its gradient is a sum of products x·g like any other; to the input it sends 0.",
    "Its gradient is g, added up over the windows; to the input it sends 0.",
)


def _zero() -> int:
    """Which sentence holds for the tap of example A whose weight is 0."""
    x, weight, _, g = example("A").arrays()
    geometry = example("A").geometry
    (each,) = (c for c in contributions(geometry) if weight[0, 0, c.i, c.j] == 0)
    learns = float(product(each, "weight", x=x, grad_output=g))
    sends = float(product(each, "input", weight=weight, grad_output=g))
    upstream = float(g[0, 0, each.p, each.q])
    said = [(0.0, 0.0), (0.0, upstream), (float(x[0, 0, 0, 0]) * upstream, 0.0), (upstream, 0.0)]
    return said.index((learns, sends))


_zero_weight = Choice(
    key="product-zero-weight",
    chapter=_CHAPTER,
    level=2,
    title="A weight of zero",
    prompt="A weight has become exactly 0 in training. What happens to it in the backward pass?",
    options=_ZERO_CHOICES,
    hints=(
        "Each partner is sent the other one times g. What is the partner of the weight?",
        "Look at tap (2, 2) of example A: its weight is 0.",
    ),
    compute=_zero,
    compute_mistakes=lambda: [
        (0, "The products w·x of the forward pass are 0. Backward, a factor is exchanged."),
        (1, "To the input go products w·g, and w is 0."),
        (3, "The slope of y by the weight is its partner x. Only the bias has slope 1."),
    ],
    explanation=(
        "The slope of a product by its weight is the input number, whatever the weight is. So a "
        "weight of 0 learns like any other. Were all weights 0, the input would get no gradient."
    ),
    solution="answer = 2  # x·g for the weight, 0·g for the input",
)


# ---- what a list does not need -----------------------------------------------------------------

_ORDER_CHOICES = (
    "All three orders: they give the same sum.",
    "Only “by tap”: then one cell is finished after the other.",
    "Only “by position”: g has to be known before its products can be made.",
    "It depends on the numbers: with negative ones the order matters.",
)


def _order() -> int:
    """0 if every order of the products gives the same input gradient on example D."""
    _, weight, _, g = example("D").arrays()
    geometry = example("D").geometry
    found = [
        accumulate(geometry, "input", weight=weight, grad_output=g, order=order) for order in ORDERS
    ]
    return 0 if all(np.array_equal(found[0], each) for each in found) else 3


_any_order = Choice(
    key="product-order",
    chapter=_CHAPTER,
    level=3,
    title="Does the order matter?",
    prompt=(
        "The player can let the products fall by tap, by position or by kernel. All numbers are "
        "whole numbers. In which order must they be added to get the right gradient?"
    ),
    options=_ORDER_CHOICES,
    hints=(
        "Set the player of example B to another order, and compare what stands there at the end.",
        "What do you know about sums of the same numbers in another order?",
    ),
    compute=_order,
    compute_mistakes=lambda: [
        (
            1,
            "In the other orders the sums grow side by side, but each cell gets the same products.",
        ),
        (2, "All of g is known before the backward pass of this layer begins."),
        (3, "A sum of whole numbers does not care for their order, negative or not."),
    ],
    explanation=(
        "The list is sorted by address, not by time. With floating-point numbers the last digits "
        "may differ from order to order, since every addition rounds."
    ),
    solution="answer = 0  # a sum is a sum",
)


# ---- write it ----------------------------------------------------------------------------------


def _jacobian_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for _ in range(5):
        KH, KW = (int(size) for size in rng.integers(1, 4, 2))
        H, W = KH + int(rng.integers(1, 4)), KW + int(rng.integers(1, 4))
        geometry = ConvGeometry(C=1, H=H, W=W, O=1, KH=KH, KW=KW)
        weight = random_operands(geometry, rng).weight
        each = np.eye(H * W).reshape(H * W, 1, H, W)
        batch = ConvGeometry.of(each.shape, weight.shape)
        table = windows.forward(each, weight, batch).reshape(H * W, -1).T
        turned = windows.forward(each, weight[..., ::-1, ::-1], batch).reshape(H * W, -1).T
        yield Trial(
            (weight[0, 0], H, W),
            table,
            {"geometry": geometry, "target": None},
            (
                (
                    table.T,
                    "your table has a row for each input cell and a column for each output cell. "
                    "It is asked for the other way round.",
                ),
                (
                    turned,
                    "your kernel is turned by 180°. Weight (i, j) stands in the column of cell "
                    "(p + i, q + j).",
                ),
                (
                    table.reshape(geometry.OH, geometry.OW, H, W),
                    "the numbers are right. Make the four axes two: a row for each output cell, a "
                    "column for each input cell.",
                ),
                (
                    np.repeat(table[:1], len(table), axis=0),
                    "every row shows the first window. Output cell (p, q) reads cells that begin "
                    "at (p, q).",
                ),
            ),
        )


_jacobian = Function(
    key="product-jacobian",
    chapter=_CHAPTER,
    level=2,
    title="The table of slopes",
    prompt=(
        "Write `slopes(w, H, W)`: `w` is a kernel `(KH, KW)`, the image has `H` rows and `W` "
        "columns; stride 1, no padding. The result is ∂y/∂x as a table with a row for each output "
        "cell and a column for each input cell, both counted row by row."
    ),
    starter=('def slopes(w, H, W):\n    """w (KH,KW), an image of H×W → (OH·OW, H·W)"""\n    ...'),
    hints=(
        "Begin with zeros. How many rows has the table, and how many columns?",
        "Output cell (p, q) is row `p * OW + q`, input cell (h, v) is column `h * W + v`.",
        "In row (p, q), weight (i, j) stands in the column of cell (p + i, q + j).",
    ),
    trials=_jacobian_trials,
    solution=(
        "def slopes(w, H, W):\n"
        "    KH, KW = w.shape\n"
        "    OH, OW = H - KH + 1, W - KW + 1\n"
        "    table = np.zeros((OH * OW, H * W))\n"
        "    for p, q in np.ndindex(OH, OW):\n"
        "        for i, j in np.ndindex(KH, KW):\n"
        "            table[p * OW + q, (p + i) * W + (q + j)] = w[i, j]\n"
        "    return table"
    ),
)


def _backward_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        draw = random_operands(geometry, rng)
        g, x, weight = draw.grad_output, draw.x, draw.weight
        to_cells = windows.grad_input(g, weight, geometry)
        to_taps = windows.grad_weight(g, x, geometry)
        known: dict[str, Any] = {"x": x, "weight": weight, "grad_output": g}
        yield Trial(
            (g, x, weight, geometry),
            (to_cells, to_taps),
            {"geometry": geometry, "target": ("input", "weight"), **known},
            (
                (
                    x * windows.grad_input(g, np.ones_like(weight), geometry),
                    "each input cell was sent its own number times g. Its partner in the product "
                    "is the weight.",
                ),
                (
                    weight * windows.grad_weight(g, np.ones_like(x), geometry),
                    "each tap was sent its own weight times g. Its partner in the product is the "
                    "input number.",
                ),
                (to_taps, "this is grad_weight where grad_input is asked for: return it second."),
                (
                    _without_groups(to_cells, geometry),
                    "with groups, channel c of kernel o is channel `geometry.channel(o, c)` of x. "
                    "Yours all went to the first channels.",
                ),
            ),
        )


def _without_groups(grad_input: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """What arrives if c is taken for the channel of x: all groups' shares in the first block."""
    blocks = windows.split_groups(grad_input, 1, geometry)  # n k c h v
    mixed = np.zeros_like(blocks)
    mixed[:, 0] = blocks.sum(axis=1)
    return mixed.reshape(grad_input.shape)


_backward = Function(
    key="product-backward",
    chapter=_CHAPTER,
    level=3,
    title="Both homes, in one walk",
    prompt=(
        "Write `backward(grad_output, x, weight, geometry)`: go once through all products of the "
        "convolution, send each one to both of its homes, and return `grad_input, grad_weight`. "
        "Any batch, channels, stride, zero padding, dilation and groups."
    ),
    starter=(
        "def backward(grad_output, x, weight, geometry):\n"
        '    """g (N,O,OH,OW), x (N,C,H,W), weight (O,C/G,KH,KW)\n'
        '    → grad_input, grad_weight"""\n'
        "    ..."
    ),
    hints=(
        "`np.ndindex` over the shapes of grad_output and of one kernel gives n, o, p, q and c, i, "
        "j. Both gradients begin as zeros.",
        "`geometry.cell(*geometry.source(p, q, i, j))` is the cell of x under the tap, or `None` "
        "on padding: there x is 0, and there is no cell to send w·g to.",
        "The channel of x is `geometry.channel(o, c)`. Add with `+=`: many products share an "
        "address.",
    ),
    trials=_backward_trials,
    solution=(
        "def backward(grad_output, x, weight, geometry):\n"
        "    to_cells, to_taps = np.zeros(x.shape), np.zeros(weight.shape)\n"
        "    for n, o, p, q in np.ndindex(grad_output.shape):\n"
        "        g = grad_output[n, o, p, q]\n"
        "        for c, i, j in np.ndindex(weight.shape[1:]):\n"
        "            cell = geometry.cell(*geometry.source(p, q, i, j))\n"
        "            if cell is not None:\n"
        "                at = n, geometry.channel(o, c), *cell\n"
        "                to_cells[at] += weight[o, c, i, j] * g\n"
        "                to_taps[o, c, i, j] += x[at] * g\n"
        "    return to_cells, to_taps"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _pixel,
    _two_homes,
    _border,
    _cell,
    _table,
    _zero_weight,
    _any_order,
    _jacobian,
    _backward,
)
