"""Formulas of the book, to be derived and typed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..dice import Dice
from ..geometry import ConvGeometry
from ..im2col import unfold
from ..schedule import Schedule, Tile
from ..shards import numbers_sent, row_shards
from .base import Exercise
from .formula import Formula, Setting

__all__ = ["EXERCISES"]


def _rows(dice: Dice, padding: bool = True) -> ConvGeometry:
    """A convolution along the rows, from its output back to the image, so that every draw fits."""
    KH, stride, dilation = dice.between(1, 5), dice.between(1, 4), dice.between(1, 3)
    span = dilation * (KH - 1) + 1
    border = dice.between(0, 3) if padding else 0
    leftover = dice.between(0, stride - 1)
    padded = span + stride * dice.between(0, 5) + leftover
    while padded <= 2 * border:
        border -= 1
    return ConvGeometry(
        C=1,
        H=padded - 2 * border,
        W=1,
        O=1,
        KH=KH,
        KW=1,
        stride=(stride, 1),
        padding=(border, 0),
        dilation=(dilation, 1),
    )


def _of_rows(geometry: ConvGeometry, *letters: str) -> dict[str, int]:
    values = {
        "H": geometry.H,
        "KH": geometry.KH,
        "OH": geometry.OH,
        "stride": geometry.stride[0],
        "padding": geometry.padding[0][0],
        "dilation": geometry.dilation[0],
    }
    return {letter: values[letter] for letter in letters}


def _layer(dice: Dice) -> ConvGeometry:
    G, KH, KW = dice.between(1, 4), dice.between(1, 4), dice.between(1, 4)
    return ConvGeometry(
        N=dice.between(1, 5), C=G * dice.between(1, 4), H=KH + dice.between(0, 6),
        W=KW + dice.between(0, 6), O=G * dice.between(1, 5), KH=KH, KW=KW, groups=G,
    )  # fmt: skip


def _of_layer(geometry: ConvGeometry, *letters: str) -> dict[str, int]:
    values = {letter: getattr(geometry, letter) for letter in letters if letter != "G"}
    return {letter: values.get(letter, geometry.groups) for letter in letters}


def _listed(letters: dict[str, str]) -> str:
    return ", ".join(f"`{letter}` ({meaning})" for letter, meaning in letters.items())


# ---- the smallest image --------------------------------------------------------------------

_SMALLEST_LETTERS = {
    "OH": "rows of the output",
    "KH": "rows of the kernel",
    "stride": "its step",
    "padding": "rows of zeros above, and as many below",
    "dilation": "from tap to tap",
}


def _smallest(dice: Dice) -> Setting:
    while True:
        geometry = _rows(dice)
        found = geometry.H - geometry.leftover[0]
        if found > 0:
            return Setting(_of_rows(geometry, *_SMALLEST_LETTERS), found)


_smallest_image = Formula(
    key="geometry-formula-smallest",
    chapter="stride_padding_dilation",
    level=3,
    title="The smallest image",
    prompt=(
        "The output is to have OH rows. Derive how many rows the image needs at least, and type "
        f"the formula. The letters are {_listed(_SMALLEST_LETTERS)}."
    ),
    starter='answer = "..."',
    hints=(
        "In the smallest image nothing is left over: the last window ends at the last row, the "
        "border included.",
        "Where does the last window begin? How many rows does it span, from its first tap to its "
        "last?",
        "The border counts for the window, and is no part of the image.",
    ),
    letters=_SMALLEST_LETTERS,
    draw=_smallest,
    wrong_formulas=(
        (
            "stride*OH + dilation*(KH - 1) + 1 - 2*padding",
            "Between OH windows there are OH − 1 steps.",
        ),
        (
            "stride*(OH - 1) + KH - 2*padding",
            "The dilation is missing: with gaps between its taps the kernel spans more rows.",
        ),
        (
            "stride*(OH - 1) + dilation*KH - 2*padding",
            "KH taps have KH − 1 gaps between them, and the last tap is one row more.",
        ),
        (
            "stride*(OH - 1) + dilation*(KH - 1) - 2*padding",
            "One row is missing: the span is dilation·(KH − 1) and the row of the first tap.",
        ),
        (
            "stride*(OH - 1) + dilation*(KH - 1) + 1 - padding",
            "The border stands above and below: take it off twice.",
        ),
        (
            "stride*(OH - 1) + dilation*(KH - 1) + 1 + 2*padding",
            "The border helps: with one, a smaller image is enough. Take it off.",
        ),
        (
            "stride*(OH - 1) + dilation*(KH - 1) + 1",
            "That is the image with its border on. How many rows of it are the image's own?",
        ),
    ),
    explanation="The last window begins at stride·(OH − 1) and spans dilation·(KH − 1) + 1 rows; "
    "the border is taken off.",
    solution='answer = "stride*(OH - 1) + dilation*(KH - 1) + 1 - 2*padding"',
)

# ---- what the convolution gives before the crop ----------------------------------------------

_CROP_LETTERS = {
    "H": "rows of the image",
    "OH": "rows of grad_output",
    "stride": "of the forward pass",
    "padding": "rows of zeros above, and as many below",
    "dilation": "of the forward pass",
}


def _before_crop(dice: Dice) -> Setting:
    geometry = _rows(dice)
    found = geometry.KH + geometry.surplus[0]
    return Setting(_of_rows(geometry, *_CROP_LETTERS), found)


_before_the_crop = Formula(
    key="backward-formula-crop",
    chapter="convolution_backward",
    level=3,
    title="Rows before the crop",
    prompt=(
        "The weight gradient is one convolution: grad_output slides over the padded image, stride "
        "and dilation exchanged. How many rows come out, before they are cropped to the kernel's? "
        f"The letters are {_listed(_CROP_LETTERS)}."
    ),
    starter='answer = "..."',
    hints=(
        "It is the size formula once more. What has become the kernel, and how many rows has it?",
        "The rows of grad_output lie `stride` apart, and it moves by `dilation`.",
    ),
    letters=_CROP_LETTERS,
    draw=_before_crop,
    wrong_formulas=(
        (
            "(H + 2*padding - dilation*(OH - 1) - 1) // stride + 1",
            "Stride and dilation stand in their old places. Here they change them.",
        ),
        (
            "(H - stride*(OH - 1) - 1) // dilation + 1",
            "The image still has its border: a tap may lie on it.",
        ),
        (
            "(H + 2*padding - OH) // dilation + 1",
            "The rows of grad_output lie `stride` apart: it spans more than OH rows.",
        ),
        (
            "(H + 2*padding - stride*(OH - 1) - 1) // dilation",
            "You counted the steps. There is a place before the first one.",
        ),
        ("OH", "These are the rows of grad_output itself, which is the kernel here."),
    ),
    explanation=(
        "The size formula with OH for KH, and stride and dilation exchanged. What it gives beyond "
        "KH is cropped."
    ),
    solution='answer = "(H + 2*padding - stride*(OH - 1) - 1) // dilation + 1"',
)

# ---- output_padding ----------------------------------------------------------------------------

_LEFT_LETTERS = {
    "H": "rows of the image",
    "KH": "rows of the kernel",
    "stride": "its step",
    "padding": "rows of zeros above, and as many below",
    "dilation": "from tap to tap",
}

_output_padding = Formula(
    key="input-formula-leftover",
    chapter="input_gradient",
    level=3,
    title="The output_padding",
    prompt=(
        "Which `output_padding` does `conv_transpose2d` need along the rows, so that the input "
        f"gradient has the image's H rows? The letters are {_listed(_LEFT_LETTERS)}; `a % b` is "
        "the remainder of a divided by b."
    ),
    starter='answer = "..."',
    hints=(
        "It is what the windows left over at the lower edge of the padded image.",
        "How far can the window go, and what remains when it goes there in steps of the stride?",
    ),
    letters=_LEFT_LETTERS,
    draw=lambda dice: (lambda g: Setting(_of_rows(g, *_LEFT_LETTERS), g.leftover[0]))(_rows(dice)),
    wrong_formulas=(
        ("stride - 1", "So much can be left over at most. How much is, depends on the sizes."),
        ("0", "Then the rows that no window read are missing at the end."),
        ("H % stride", "Take the span off first: what remains is how far the window can go."),
        ("(H + 2*padding) % stride", "Take the span off first: that is how far the window can go."),
        (
            "(H - dilation*(KH - 1) - 1) % stride",
            "The border is part of what the windows go over, above and below.",
        ),
        (
            "(H + 2*padding - KH) % stride",
            "With dilation the kernel spans more rows than it has taps.",
        ),
    ),
    explanation="The remainder of the window's way, divided by the stride: the leftover.",
    solution='answer = "(H + 2*padding - dilation*(KH - 1) - 1) % stride"',
)

# ---- a row of the columns ------------------------------------------------------------------------

_ROW_LETTERS = {
    "c": "the channel",
    "i": "the tap's row",
    "j": "the tap's column",
    "C": "channels",
    "KH": "rows of the kernel",
    "KW": "columns of the kernel",
}


def _row_of(dice: Dice) -> Setting:
    C, KH, KW = dice.between(1, 4), dice.between(1, 4), dice.between(1, 4)
    c, i, j = (dice.between(0, most - 1) for most in (C, KH, KW))
    geometry = ConvGeometry(C=C, H=KH, W=KW, O=1, KH=KH, KW=KW)
    x = np.zeros(geometry.x_shape)
    x[0, c, i, j] = 1  # one window, in which this is the only number
    (row,) = np.flatnonzero(unfold(x, geometry)[0, :, 0])
    return Setting({"c": c, "i": i, "j": j, "C": C, "KH": KH, "KW": KW}, int(row))


_column_row = Formula(
    key="unfold-formula-row",
    chapter="im2col",
    level=2,
    title="Which row of the columns?",
    prompt=(
        "In which row of the columns stand the numbers that tap (i, j) of channel c reads? The "
        f"letters are {_listed(_ROW_LETTERS)}. Not all are needed."
    ),
    starter='answer = "..."',
    hints=(
        "j runs fastest: its neighbour stands in the next row.",
        "How many rows lie between two rows of taps, and how many between two channels?",
    ),
    letters=_ROW_LETTERS,
    draw=_row_of,
    wrong_formulas=(
        ("(c*KW + j)*KH + i", "Here i runs fastest. It is j, as one reads."),
        ("(i*KW + j)*C + c", "Here the channels run fastest, as in memory laid out n h v c."),
        ("c*KH*KW + i*KH + j", "A row of taps is KW long, not KH."),
        ("i*KW + j", "That is the row within one channel. Every channel has rows of its own."),
        ("(c*KH + i)*KW + j + 1", "Rows are counted from 0."),
    ),
    explanation="One number with three digits: c, i and j, of which j changes fastest.",
    solution='answer = "(c*KH + i)*KW + j"',
)

# ---- how many weights a grouped layer has ----------------------------------------------------

_LEARNED_LETTERS = {
    "C": "channels",
    "O": "kernels",
    "KH": "rows of a kernel",
    "KW": "columns of a kernel",
    "G": "groups",
}


def _learned(dice: Dice) -> Setting:
    geometry = _layer(dice)
    right = math.prod(geometry.weight_shape) + math.prod(geometry.bias_shape)
    return Setting(_of_layer(geometry, *_LEARNED_LETTERS), right)


_parameters = Formula(
    key="grouped-formula-learned",
    chapter="grouped",
    level=2,
    title="How many numbers it learns",
    prompt=(
        "How many numbers does a layer with groups learn, its weights and its biases? The letters "
        f"are {_listed(_LEARNED_LETTERS)}."
    ),
    starter='answer = "..."',
    hints=(
        "How many channels does one kernel read?",
        "Every kernel has one bias, whatever the groups.",
    ),
    letters=_LEARNED_LETTERS,
    draw=_learned,
    wrong_formulas=(
        ("O*C*KH*KW + O", "That is without groups. A kernel reads the channels of its group."),
        ("O*(C/G)*KH*KW", "The biases are learned as well."),
        ("(O/G)*(C/G)*KH*KW + O/G", "That is one group. There are G of them."),
        ("(O/G)*(C/G)*KH*KW + O", "These are the weights of one group. There are G of them."),
        ("O*(C/G)*KH*KW + C", "There is a bias for each kernel, not for each channel."),
    ),
    explanation="Each of O kernels has C/G planes of KH·KW taps, and one bias.",
    solution='answer = "O*(C//G)*KH*KW + O"',
)

# ---- where a map goes ----------------------------------------------------------------------------

_MAP_LETTERS = {"n": "the image", "c": "its channel", "N": "images", "C": "channels", "G": "groups"}


def _place_of(dice: Dice) -> Setting:
    N, G, CG = dice.between(1, 5), dice.between(1, 4), dice.between(1, 4)
    n, c = dice.between(0, N - 1), dice.between(0, G * CG - 1)
    maps = np.arange(N * G * CG).reshape(N * G, CG).T
    (place,) = np.argwhere(maps == n * G * CG + c)[:, 1]
    return Setting({"n": n, "c": c, "N": N, "C": G * CG, "G": G}, int(place))


_map_place = Formula(
    key="onecall-formula-place",
    chapter="grouped_weight_gradient",
    level=2,
    title="Where a map goes",
    prompt=(
        "`x.reshape(N*G, C//G, H, W).transpose(0, 1)` has one axis for all images and groups, the "
        f"second. At which place of it stands channel c of image n? The letters are "
        f"{_listed(_MAP_LETTERS)}."
    ),
    starter='answer = "..."',
    hints=(
        "To which group does channel c belong?",
        "Every image takes G places, one for each of its groups.",
    ),
    letters=_MAP_LETTERS,
    draw=_place_of,
    wrong_formulas=(
        ("n*C + c", "That counts maps. The channels of a group share a place on this axis."),
        (
            "(c // (C // G))*N + n",
            "Here the images of a group stand side by side. It is the groups of an image that do.",
        ),
        ("n*G + c % G", "That deals the channels like cards. A group is a block of neighbours."),
        ("c // (C // G)", "That is its group. Before it stand the groups of the images before."),
        ("n*G + c // G", "A group has C/G channels, not G."),
    ),
    explanation="n·G places before its image, and then its group.",
    solution='answer = "n*G + c // (C // G)"',
)

# ---- how many products -----------------------------------------------------------------------

_WORK_LETTERS = {
    "N": "images",
    "C": "channels",
    "O": "kernels",
    "OH": "rows of the output",
    "OW": "columns of the output",
    "KH": "rows of a kernel",
    "KW": "columns of a kernel",
    "G": "groups",
}


def _work(dice: Dice) -> Setting:
    g = _layer(dice)
    right = math.prod(g.output_shape) * g.CG * g.KH * g.KW
    return Setting(_of_layer(g, *_WORK_LETTERS), right)


_products = Formula(
    key="memory-formula-products",
    chapter="memory_and_speed",
    level=2,
    title="How many products",
    prompt=(
        "Without a border, how many products does the weight gradient add up, all taps together? "
        f"The letters are {_listed(_WORK_LETTERS)}."
    ),
    starter='answer = "..."',
    hints=(
        "How many taps are there, in all kernels?",
        "Into each of them goes one product for every output cell of its kernel, in every image.",
    ),
    letters=_WORK_LETTERS,
    draw=_work,
    wrong_formulas=(
        ("N*OH*OW*O*C*KH*KW", "A kernel reads the channels of its own group alone."),
        ("N*OH*OW", "So many go into one tap. All taps were asked for."),
        ("OH*OW*O*(C/G)*KH*KW", "That is one image. The shares of all of them add up."),
        ("O*(C/G)*KH*KW", "That is how many taps there are. Each adds up many products."),
        ("2*N*OH*OW*O*(C/G)*KH*KW", "You counted the additions, too. Products were asked for."),
        ("N*OH*OW*(O/G)*(C/G)*KH*KW", "That is one group. There are G."),
    ),
    explanation="As many as the forward pass multiplies: all three passes share one list.",
    solution='answer = "N*OH*OW*O*(C//G)*KH*KW"',
)

# ---- tiles in shares ---------------------------------------------------------------------------

_TILE_LETTERS = {
    "C": "channels",
    "O": "kernels",
    "KH": "rows of a kernel",
    "KW": "columns of a kernel",
    "side": "rows and columns of a tile",
    "S": "shares of each sum",
}


def _programs(dice: Dice) -> Setting:
    K, side = dice.between(1, 4), dice.one_of([4, 8, 16])
    g = ConvGeometry(
        N=4, C=dice.between(1, 12), H=K + 5, W=K + 5, O=dice.between(2, 40), KH=K, KW=K
    )
    S = dice.one_of([1, 2, 4, 8])
    found = Schedule(g, tile=Tile(side, side, 1), splits=S).programs
    return Setting({"C": g.C, "O": g.O, "KH": K, "KW": K, "side": side, "S": S}, found)


_how_many_programs = Formula(
    key="split-formula-programs",
    chapter="split_k",
    level=3,
    title="How many programs",
    prompt=(
        "The weight gradient is a matrix with a row for each kernel and a column for each channel "
        "and tap. It is cut into square tiles, and each tile's sum into S shares. How many "
        f"programs are there? The letters are {_listed(_TILE_LETTERS)}; `ceil(…)` rounds up."
    ),
    starter='answer = "..."',
    hints=(
        "How many tiles does the matrix need downwards? One that sticks out is one.",
        "Across, there are C·KH·KW columns.",
    ),
    letters=_TILE_LETTERS,
    draw=_programs,
    wrong_formulas=(
        (
            "ceil(O/side)*ceil(C*KH*KW/side)",
            "These are the tiles. Each has a program for every share of its sum.",
        ),
        (
            "S*ceil(O*C*KH*KW/side**2)",
            "So many tiles' worth of numbers there are. Each side is rounded up by itself.",
        ),
        (
            "S*(O//side)*(C*KH*KW//side)",
            "You rounded down: what is left at an edge needs a tile, too.",
        ),
        ("S*ceil(O/side)*ceil(C/side)", "A column stands for a channel and a tap."),
        (
            "S*ceil(O/side)*KH*KW*ceil(C/side)",
            "A tile may hold taps of several channels: round up once, after the product.",
        ),
    ),
    explanation="Tiles down times tiles across, and S programs for each.",
    solution='answer = "S*ceil(O/side)*ceil(C*KH*KW/side)"',
)

# ---- a ring --------------------------------------------------------------------------------------

_RING_LETTERS = {"P": "devices", "M": "numbers of the gradient"}


def _ring(dice: Dice) -> Setting:
    P = dice.between(2, 9)
    M = P * dice.between(1, 40)
    return Setting({"P": P, "M": M}, Fraction(int(numbers_sent(M, P)[0])))


_ring_formula = Formula(
    key="devices-formula-ring",
    chapter="many_devices",
    level=3,
    title="What a ring sends",
    prompt=(
        "P devices add up a gradient of M numbers in a ring, which cuts it into P equal chunks. "
        f"How many numbers does each device send? The letters are {_listed(_RING_LETTERS)}."
    ),
    starter='answer = "..."',
    hints=(
        "In every step each device sends one chunk. How large is that?",
        "How many steps until every chunk is complete somewhere? And until all have all?",
    ),
    letters=_RING_LETTERS,
    draw=_ring,
    wrong_formulas=(
        ("(P - 1)*M/P", "That is the first round alone. The sums have to come back to all."),
        ("2*M", "Nearly: in the last step of each round one chunk need not be sent."),
        ("2*(P - 1)*M", "In a step a device sends a chunk, not the whole gradient."),
        ("(P - 1)*M", "That hands the whole gradient to each of the others, without a ring."),
    ),
    explanation="Twice P − 1 steps of M/P numbers: less than 2·M, however many devices.",
    solution='answer = "2*(P - 1)*M/P"',
)

# ---- the halo --------------------------------------------------------------------------------

_HALO_LETTERS = {"KH": "rows of the kernel", "stride": "its step", "dilation": "from tap to tap"}


def _halo(dice: Dice) -> Setting:
    while True:
        KH, stride, dilation = dice.between(1, 5), dice.between(1, 3), dice.between(1, 3)
        span = dilation * (KH - 1) + 1
        geometry = ConvGeometry(
            C=1, H=span + 9 * stride, W=1, O=1, KH=KH, KW=1,
            stride=(stride, 1), dilation=(dilation, 1),
        )  # fmt: skip
        upper, lower = row_shards(geometry, 2)
        if span >= stride:
            first, last = lower.block[0], upper.block[-1]
            return Setting({"KH": KH, "stride": stride, "dilation": dilation}, last - first + 1)


_halo_formula = Formula(
    key="devices-formula-halo",
    chapter="many_devices",
    level=3,
    title="Rows that two devices read",
    prompt=(
        "An image is cut for two devices, each of which makes its own rows of the output. "
        "How many rows of the image lie between the first that the lower device reads and the last "
        "that the upper one reads, both counted? The kernel spans at least a stride. The letters "
        f"are {_listed(_HALO_LETTERS)}."
    ),
    starter='answer = "..."',
    hints=(
        "The last window of the upper device and the first of the lower one are neighbours.",
        "Neighbouring windows begin a stride apart, and each spans so many rows.",
    ),
    letters=_HALO_LETTERS,
    draw=_halo,
    wrong_formulas=(
        ("KH - stride", "With dilation the kernel spans more rows than it has taps."),
        ("dilation*(KH - 1)", "That is for stride 1. With a larger one the windows share less."),
        ("dilation*(KH - 1) - stride", "One row is missing: the span is one row more than that."),
        ("dilation*KH - stride", "KH taps have KH − 1 gaps between them."),
        ("dilation*(KH - 1) + 1", "That is the whole span. The windows begin a stride apart."),
    ),
    explanation="The span less the stride: what two neighbouring windows share.",
    solution='answer = "dilation*(KH - 1) + 1 - stride"',
)


EXERCISES: tuple[Exercise, ...] = (
    _smallest_image,
    _output_padding,
    _column_row,
    _products,
    _parameters,
    _map_place,
    _before_the_crop,
    _how_many_programs,
    _ring_formula,
    _halo_formula,
)
