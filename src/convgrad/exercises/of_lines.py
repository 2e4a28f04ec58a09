"""A line of the package is missing: which one stands there?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .. import correlate, grouped, im2col, loops, padding, windows
from ..checks import random_geometry, random_operands
from ..geometry import ConvGeometry
from .base import Exercise
from .functions import Trial, geometries
from .lines import Line, Listing

__all__ = ["EXERCISES"]

Which = Callable[[ConvGeometry], bool]


def _any(geometry: ConvGeometry) -> bool:
    return True


def of_weight(only: Which = _any) -> Callable[[np.random.Generator], Iterator[Trial]]:
    """Trials of grad_weight(grad_output, x, geometry)."""

    def trials(rng: np.random.Generator) -> Iterator[Trial]:
        for geometry in geometries(rng, only=only):
            _, x, _, g = random_operands(geometry, rng)
            known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
            yield Trial((g, x, geometry), windows.grad_weight(g, x, geometry), known)

    return trials


def of_input(only: Which = _any) -> Callable[[np.random.Generator], Iterator[Trial]]:
    """Trials of grad_input(grad_output, weight, geometry)."""

    def trials(rng: np.random.Generator) -> Iterator[Trial]:
        for geometry in geometries(rng, only=only):
            _, _, weight, g = random_operands(geometry, rng)
            known = {"geometry": geometry, "target": "input", "weight": weight, "grad_output": g}
            yield Trial((g, weight, geometry), windows.grad_input(g, weight, geometry), known)

    return trials


def of_output(only: Which = _any) -> Callable[[np.random.Generator], Iterator[Trial]]:
    """Trials of forward(x, weight, geometry)."""

    def trials(rng: np.random.Generator) -> Iterator[Trial]:
        for geometry in geometries(rng, only=only):
            _, x, weight, _ = random_operands(geometry, rng)
            known = {"geometry": geometry, "target": "output", "x": x, "weight": weight}
            yield Trial((x, weight, geometry), windows.forward(x, weight, geometry), known)

    return trials


def _shown(listing: Listing, hole: str = "...") -> str:
    return f"```python\n{listing.holding(hole)}\n```"


# ---- one product at a time -----------------------------------------------------------------

_SENT_HOME = Listing.of(loops.grad_input, "grad[at] +=")

_product_line = Line(
    key="product-line",
    chapter="one_product",
    level=2,
    title="Send the product home",
    prompt=(
        "This is the package's input gradient in plain loops. `products` goes through all products "
        "of the convolution; `at` is the index of the cell that was read. Which line stands at the "
        f"`...`?\n\n{_shown(_SENT_HOME)}"
    ),
    starter='answer = "..."',
    hints=(
        "Every product w·x of the forward pass has two partners. What is the cell sent?",
        "Several products come home to one cell.",
    ),
    listing=_SENT_HOME,
    trials=of_input(),
    explanation="Each cell that was read gets the weight that lay on it, times g, and they add up.",
    solution='answer = "grad[at] += weight[o, c, i, j] * grad_output[n, o, p, q]"',
)

# ---- the weight gradient is a convolution ----------------------------------------------------

_CROPPED = Listing.of(correlate.grad_weight, "return taps[")

_crop_line = Line(
    key="weight-line",
    chapter="weight_gradient",
    level=3,
    title="The last line",
    prompt=(
        "The package computes the weight gradient by one convolution, in which channels take the "
        "place of images and images that of channels. Its result `taps` has the axes c o i j. "
        "Which line ends the function?\n\n" + _shown(_CROPPED)
    ),
    starter='answer = "..."',
    hints=(
        "The weight has the axes o c i j, and KH×KW taps.",
        "A leftover of the forward pass makes rows and columns of taps that do not exist.",
    ),
    listing=_CROPPED,
    trials=of_weight(),
    explanation="Cut to the kernel's size, then kernels before channels.",
    solution=('answer = "return taps[:, :, : geometry.KH, : geometry.KW].swapaxes(0, 1)"'),
)

# ---- the input gradient ----------------------------------------------------------------------

_OVERLAP = Listing.of(windows.scatter, "grad_padded[:, :, rows, cols] +=")


def _scatter_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        shape = (geometry.N, geometry.C, geometry.OH, geometry.OW, geometry.KH, geometry.KW)
        products = rng.integers(-4, 5, size=shape).astype(np.float64)
        right = windows.scatter(products, geometry)
        yield Trial((products, geometry), right, {"geometry": geometry, "target": None})


_overlap_line = Line(
    key="input-line",
    chapter="input_gradient",
    level=2,
    title="All products of one tap",
    prompt=(
        "`products` holds every product w·g, with the axes n c p q i j. This function adds each to "
        "the cell of the padded image that its tap read. Which line stands at the `...`?\n\n"
        + _shown(_OVERLAP)
    ),
    starter='answer = "..."',
    hints=(
        "Take the products of tap (i, j) alone: which of the six axes are left?",
        "`rows` and `cols` are slices: where the tap lay, for all p and q.",
        "Other taps have been at these cells, or will be.",
    ),
    listing=_OVERLAP,
    trials=_scatter_trials,
    explanation="One strided `+=` for each tap: its products meet no other of the same tap.",
    solution='answer = "grad_padded[:, :, rows, cols] += products[..., i, j]"',
)

# ---- im2col ------------------------------------------------------------------------------------

_AXES = Listing.of(im2col.unfold, "columns = windows(")


def _unfold_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        x = random_operands(geometry, rng).x
        known = {"geometry": geometry, "target": None}
        yield Trial((x, geometry), im2col.unfold(x, geometry), known)


_unfold_line = Line(
    key="unfold-line",
    chapter="im2col",
    level=2,
    title="Axes in order",
    prompt=(
        "`windows(x, geometry)` has the axes n c p q i j. Which line stands at the `...`, so that "
        f"the last two make columns as PyTorch's `unfold` does?\n\n{_shown(_AXES)}"
    ),
    starter='answer = "columns = ..."',
    hints=(
        "A row of the columns is a channel and a tap, a column is a window.",
        "So the axes must come in the order n c i j p q.",
    ),
    listing=_AXES,
    trials=_unfold_trials,
    explanation="First the axes that make rows, c i j, then those that make columns, p q.",
    solution='answer = "columns = windows(x, geometry).transpose(0, 1, 4, 5, 2, 3)"',
)

# ---- without loops -----------------------------------------------------------------------------

_STEPS = Listing.of(windows.windows, "return every[")


def _windows_trials(rng: np.random.Generator) -> Iterator[Trial]:
    for geometry in geometries(rng):
        x = random_operands(geometry, rng).x
        yield Trial(
            (x, geometry), windows.windows(x, geometry), {"geometry": geometry, "target": None}
        )


_windows_line = Line(
    key="views-line",
    chapter="without_loops",
    level=2,
    title="Two kinds of steps",
    prompt=(
        "`sliding_window_view` shows every window of the kernel's whole span, with the axes "
        "n c p q i j. Which line picks out those that the convolution reads?\n\n" + _shown(_STEPS)
    ),
    starter='answer = "return every[...]"',
    hints=(
        "Of all places of the window every `stride`-th is read.",
        "Of all cells within the span every `dilation`-th lies under a tap.",
    ),
    listing=_STEPS,
    trials=_windows_trials,
    explanation="The stride picks windows, the dilation picks cells within them, and no copy.",
    solution='answer = "return every[:, :, ::sh, ::sw, ::dh, ::dw]"',
)

# ---- groups --------------------------------------------------------------------------------------

_BLOCK = Listing.of(grouped.forward, "y[:, o] =")

_block_line = Line(
    key="grouped-line",
    chapter="grouped",
    level=2,
    title="A block of the diagonal",
    prompt=(
        "`blocks` yields for each group a slice of kernels, `o`, and a slice of channels, `c`; "
        f"`block` is the geometry of one group alone. Which line stands at the `...`?\n\n"
        f"{_shown(_BLOCK)}"
    ),
    starter='answer = "..."',
    hints=(
        "The kernels of a group read the channels of the group, and write their own maps.",
        "`windows.forward(x, weight, geometry)` does one group, if it is given one group's part.",
    ),
    listing=_BLOCK,
    trials=of_output(),
    explanation="Its channels in, its kernels, its maps out: groups share nothing.",
    solution='answer = "y[:, o] = windows.forward(x[:, c], weight[o], block)"',
)

# ---- the grouped weight gradient in one call -----------------------------------------------------

_ORDER = Listing.of(correlate.grad_weight, "images = images.transpose(")

_order_line = Line(
    key="onecall-line",
    chapter="grouped_weight_gradient",
    level=3,
    title="Five axes",
    prompt=(
        "The package's weight gradient for any number of groups. `split_groups` has just made five "
        "axes of the image's four: n k c h v, with k for the group. In which order must they be "
        f"for the reshape below?\n\n{_shown(_ORDER)}"
    ),
    starter='answer = "images = images..."',
    hints=(
        "The result is to have c first: the channels of a group become images of the search.",
        "The group k and the image n become one axis. The search has `groups` groups of N channels "
        "each, so which of the two changes slowest?",
    ),
    listing=_ORDER,
    trials=of_weight(),
    explanation="c k n h v: a group of the search holds one group of all images.",
    solution='answer = "images = images.transpose(2, 1, 0, 3, 4)"',
)

# ---- a museum of gradient bugs -------------------------------------------------------------------

_HOME = Listing.of(padding._fold_axis, "folded[k] +=")


def _fold_trials(rng: np.random.Generator) -> Iterator[Trial]:
    def bordered(geometry: ConvGeometry) -> bool:
        return geometry.padding_mode != "zeros" and geometry.padding[0] != (0, 0)

    for _ in range(8):
        geometry = random_geometry(rng, bordered)
        shape = (geometry.N, geometry.C, *geometry.padded_size)
        grad = rng.integers(-4, 5, size=shape).astype(np.float64)
        arguments = grad, geometry.padded_rows, geometry.H, 2
        right = padding._fold_axis(*arguments)
        yield Trial(arguments, right, {"geometry": geometry, "target": None})


_home_line = Line(
    key="museum-line",
    chapter="museum",
    level=2,
    title="Copies go home",
    prompt=(
        "A border that reflects, repeats or wraps around holds copies of cells, and its gradient "
        "belongs to the cells that were copied. `home[k]` is the line of the image that line k of "
        "the padded image shows. One exhibit of the museum loses what copies get. Which line does "
        f"not?\n\n{_shown(_HOME)}"
    ),
    starter='answer = "..."',
    hints=(
        "In the loop, `k` is already the line's home, and `line` its gradient.",
        "A cell and its copies come home to the same line.",
    ),
    listing=_HOME,
    trials=_fold_trials,
    explanation="`+=`: with `=` the last copy would replace the cell's own gradient.",
    solution='answer = "folded[k] += line"',
)


EXERCISES: tuple[Exercise, ...] = (
    _product_line,
    _crop_line,
    _overlap_line,
    _unfold_line,
    _windows_line,
    _block_line,
    _order_line,
    _home_line,
)
