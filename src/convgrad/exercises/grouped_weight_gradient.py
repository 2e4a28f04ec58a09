"""Exercises for *The grouped weight gradient in one call*."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import windows
from ..checks import random_geometry, random_operands
from ..examples import example
from ..geometry import ConvGeometry
from .base import Choice, Exercise, Grid, Number
from .functions import Function, Trial
from .redraw import redrawn

__all__ = ["EXERCISES"]

_CHAPTER = "grouped_weight_gradient"


# ---- where a map goes ----------------------------------------------------------------------

_IMAGE, _CHANNEL = 1, 3  # of example D


def _place(geometry: ConvGeometry, n: int, channel: int) -> tuple[int, int]:
    """Row c and column m of a map of x after reshape and transpose."""
    maps = np.arange(geometry.N * geometry.C).reshape(-1, geometry.CG).T  # c m
    c, m = np.argwhere(maps == n * geometry.C + channel)[0]
    return int(c), int(m)


def _where_mistakes(n: int, channel: int) -> list[tuple[int, str]]:
    g = example("D").geometry
    group = channel // g.CG
    return [
        (
            n * g.C + channel,
            "That counts all maps one by one. After the reshape the channels of a group lie below "
            "each other and share a column.",
        ),
        (
            group * g.N + n,
            "That would put the images of one group side by side. The images come first: all "
            "groups of image 0, then all groups of image 1.",
        ),
        (group, "That is its group. Before it stand the groups of image 0."),
        (n * g.CG + channel % g.CG, "A column is an image and a group, not a channel."),
    ]


@redrawn(n=(1, 2), channel=(0, 3))
def _where(n: int = _IMAGE, channel: int = _CHANNEL) -> Number:
    return Number(
        key="onecall-where",
        chapter=_CHAPTER,
        level=1,
        title="Where does a map go?",
        prompt=(
            "Example D has 3 images, 4 channels and 2 groups. After reshape and transpose, `x` is "
            f"[C/G, N·G, H, W] = [2, 6, 5, 4]. At which index of the axis of length 6 stands "
            f"`x[{n}, {channel}]`, channel {channel} of image {n}?"
        ),
        hints=(
            f"To which group does channel {channel} belong?",
            "Every image has as many places on this axis as there are groups.",
            "The index is n·G + k, with image n and group k.",
        ),
        compute=lambda: _place(example("D").geometry, n, channel)[1],
        compute_mistakes=lambda: _where_mistakes(n, channel),
        explanation=(
            f"Channel {channel} is in group {channel // 2}, so the index is n·G + k with n = {n}, "
            f"G = 2 and k = {channel // 2}. On the axis of length 2 it stands at {channel % 2}, "
            "its place in the group."
        ),
        solution=f"answer = {n} * 2 + {channel} // 2",
    )


# ---- the shapes of the call ----------------------------------------------------------------

_LAYER = ConvGeometry(N=5, C=12, H=9, W=8, O=6, KH=3, KW=3, groups=3)


def _shape_mistakes(g: ConvGeometry) -> list[tuple[np.ndarray, str]]:
    rest = [g.H, g.W]
    return [
        (
            np.array([[g.N * g.groups, g.CG, *rest]]),
            "That is the shape after the reshape. The transpose exchanges the first two axes.",
        ),
        (
            np.array([[1, g.N * g.C, *rest]]),
            "That lays all maps on one axis. The channels of a group must stay apart, on an axis "
            "of their own.",
        ),
        (
            np.array([[g.C, g.N, *rest]]),
            "That is the exchange without groups. Only the channels within a group stay on the "
            "first axis.",
        ),
        (
            np.array([[g.groups, g.N * g.CG, *rest]]),
            "Group and channel are exchanged: the groups go onto the second axis, with the images.",
        ),
    ]


@redrawn(
    lambda N, channels, groups: len({N, channels, groups}) == 3,
    N=(2, 6),
    channels=(2, 5),
    groups=(2, 5),
)
def _shape(N: int = 5, channels: int = 4, groups: int = 3) -> Grid:
    of = replace(_LAYER, N=N, C=channels * groups, O=2 * groups, groups=groups)
    return Grid(
        key="onecall-shape",
        chapter=_CHAPTER,
        level=1,
        title="Which shape has the image?",
        prompt=(
            f"A layer with {of.groups} groups gets {of.N} images with {of.C} channels of "
            f"{of.H}×{of.W} cells. You compute the weight gradient with one call of `F.conv2d` "
            "and N·G groups. Which shape has its first argument?"
        ),
        starter="answer = [..., ..., ..., ...]",
        hints=(
            "How many channels has a group? They stay apart and go onto the first axis.",
            "The second axis has a place for every image and group.",
        ),
        compute=lambda: np.array([[of.CG, of.N * of.groups, of.H, of.W]]) * 1.0,
        compute_mistakes=lambda: _shape_mistakes(of),
        explanation=(
            f"[C/G, N·G, H, W]: a group has {channels} channels, and there are {N * groups} pairs "
            "of image and group."
        ),
        solution=f"answer = [{of.C} // {groups}, {N} * {groups}, 9, 8]",
    )


# ---- the map of maps -----------------------------------------------------------------------

_TWO = ConvGeometry(N=2, C=4, H=1, W=1, O=2, KH=1, KW=1, groups=2)


def _numbered(geometry: ConvGeometry) -> np.ndarray:
    """The maps of x, numbered through: image after image, channel after channel."""
    return np.arange(geometry.N * geometry.C, dtype=np.float64)


def _table_mistakes() -> list[tuple[np.ndarray, str]]:
    maps, g = _numbered(_TWO), _TWO
    return [
        (
            maps.reshape(g.CG, g.N * g.groups),
            "That is the reshape alone. The shape is right, and maps of different groups and "
            "images stand in a column's place.",
        ),
        (
            maps.reshape(g.N, g.groups, g.CG).transpose(2, 1, 0).reshape(g.CG, -1),
            "Right for the other order of the columns, in which the images of a group stand side "
            "by side. Here the groups of an image do.",
        ),
        (
            maps.reshape(g.N, g.CG, g.groups).transpose(1, 0, 2).reshape(g.CG, -1),
            "Here each group got every second channel. A group is a block of neighbours: channels "
            "0 and 1, then 2 and 3.",
        ),
    ]


_table = Grid(
    key="onecall-table",
    chapter=_CHAPTER,
    level=2,
    title="The map of maps",
    prompt=(
        "Two images with four channels in two groups. Number their eight maps: 0 to 3 are the "
        "channels of image 0, and 4 to 7 those of image 1. Which map stands where after "
        "`reshape(N * G, C // G, …)` and `transpose(0, 1)`?"
    ),
    starter="answer = [[..., ..., ..., ...],\n          [..., ..., ..., ...]]",
    hints=(
        "First the reshape: it writes the numbers row by row into four rows of two.",
        "Then rows and columns are exchanged. The first row of the result holds the first channel "
        "of every group.",
    ),
    compute=lambda: _numbered(_TWO).reshape(-1, _TWO.CG).T,
    compute_mistakes=_table_mistakes,
    explanation=(
        "Each column holds the two channels of one group of one image: 0 and 1, then 2 and 3 of "
        "image 0, then those of image 1."
    ),
    solution="answer = np.arange(8).reshape(4, 2).T",
    same_for_all="Eight maps are the fewest on which the three mistakes differ.",
)


# ---- when the reshape alone does no harm ---------------------------------------------------

_BATCHES = ((3, 4, 1), (3, 4, 2), (3, 4, 4), (1, 4, 2))  # N, C, groups


def _harmless() -> int:
    """The one layer whose maps stand right after a reshape alone."""
    right = []
    for N, C, groups in _BATCHES:
        maps = np.arange(N * C)
        moved = maps.reshape(N * groups, -1).T
        right.append(np.array_equal(maps.reshape(moved.shape), moved))
    (place,) = np.flatnonzero(right)
    return int(place)


_when_harmless = Choice(
    key="onecall-when-harmless",
    chapter=_CHAPTER,
    level=2,
    title="When does nobody notice?",
    prompt=(
        "Somebody writes `x.reshape(C // G, N * G, H, W)` and forgets the transpose. On which of "
        "these layers is the weight gradient right all the same?"
    ),
    options=tuple(f"{N} image{'s' * (N > 1)}, {C} channels, `groups={G}`" for N, C, G in _BATCHES),
    hints=(
        "A transpose of a table with a single row or a single column changes no order.",
        "How many channels are there in a group, and how many pairs of image and group?",
    ),
    compute=_harmless,
    compute_mistakes=lambda: [
        (0, "Four channels of three images: here the reshape alone mixes the images."),
        (1, "Two channels in a group, six pairs of image and group: the order matters."),
        (3, "One image, but two channels in each of two groups: it pairs channels 0 and 2."),
    ],
    explanation=(
        "With as many groups as channels, each group has one channel: the table has a single row. "
        "That is why depthwise layers never show this mistake."
    ),
    solution="answer = 2  # groups = C",
)


# ---- write it ------------------------------------------------------------------------------

_PLAIN = ConvGeometry(C=4, H=6, W=5, O=4, KH=3, KW=2)
_Sizes = tuple[dict[str, Any], ...]


def _trial(geometry: ConvGeometry, rng: np.random.Generator, *arguments: Any) -> Trial:
    draw = random_operands(geometry, rng)
    g, x = draw.grad_output, draw.x
    known = {"geometry": geometry, "target": "weight", "x": x, "grad_output": g}
    return Trial((g, x, *arguments), windows.grad_weight(g, x, geometry), known)


def _one_image_trials(rng: np.random.Generator) -> Iterator[Trial]:
    sizes: _Sizes = ({}, {"groups": 4}, {"groups": 2}, {"O": 6, "groups": 2})
    for each in (*sizes, {"C": 6, "O": 9, "groups": 3}, {"C": 9, "O": 6, "groups": 3}):
        geometry = replace(_PLAIN, **each)
        yield _trial(geometry, rng, geometry.groups)


_one_image = Function(
    key="onecall-one-image",
    chapter=_CHAPTER,
    level=2,
    title="One image",
    prompt=(
        "Write `grad_weight(grad_output, x, groups)` for a batch of one image, with stride 1 and "
        "no padding, with a single call of `conv2d`. `grad_output` is `(1, O, OH, OW)`, `x` is "
        "`(1, C, H, W)`, the result `(O, C/G, KH, KW)`."
    ),
    starter=(
        "def grad_weight(grad_output, x, groups):\n"
        '    """grad_output (1,O,OH,OW), x (1,C,H,W) → (O,C/G,KH,KW)"""\n'
        "    ..."
    ),
    hints=(
        "The channels of a group must stay apart: reshape x to [G, C/G, H, W], then exchange the "
        "first two axes.",
        "Every map of grad_output is a kernel with one channel: [O, 1, OH, OW].",
        "With the groups of the layer, conv2d returns [C/G, O, KH, KW]: exchange the first two "
        "axes.",
    ),
    trials=_one_image_trials,
    solution=(
        "def grad_weight(grad_output, x, groups):\n"
        "    channels = x.reshape(groups, -1, *x.shape[2:]).swapaxes(0, 1)\n"
        "    kernels = grad_output.swapaxes(0, 1)  # o 1 p q\n"
        "    found = conv2d(channels, kernels, groups=groups)  # c o i j\n"
        "    return found.swapaxes(0, 1)"
    ),
)


def _has_groups(geometry: ConvGeometry) -> bool:
    return 1 < geometry.groups < geometry.C and geometry.OG > 1


def _any_trials(rng: np.random.Generator) -> Iterator[Trial]:
    sizes: _Sizes = ({}, {"N": 3}, {"groups": 4}, {"groups": 2}, {"N": 3, "groups": 2})
    for each in (*sizes, {"O": 6, "groups": 2, "stride": (2, 2)}):
        geometry = replace(_PLAIN, **each)
        yield _trial(geometry, rng, geometry)
    for _ in range(6):
        geometry = random_geometry(rng, _has_groups, padding_modes=("zeros",))
        yield _trial(geometry, rng, geometry)


_any = Function(
    key="onecall-any",
    chapter=_CHAPTER,
    level=3,
    title="In one call",
    prompt=(
        "Write `grad_weight(grad_output, x, geometry)` with a single call of `conv2d`, for any "
        "batch of at least one image, stride, zero padding, dilation and number of groups. The "
        "result has the shape `geometry.weight_shape`."
    ),
    starter=(
        "def grad_weight(grad_output, x, geometry):\n"
        '    """grad_output (N,O,OH,OW), x (N,C,H,W) → geometry.weight_shape"""\n'
        "    ..."
    ),
    hints=(
        "x goes to [N·G, C/G, H, W] and, transposed, to [C/G, N·G, H, W]; grad_output goes to "
        "[N·O, 1, OH, OW].",
        "Stride and dilation change places, the padding stays, and there are N·G groups.",
        "Crop to KH×KW, reshape to [C/G, N, O, KH, KW], add over the images, and exchange the "
        "first two axes.",
    ),
    trials=_any_trials,
    solution=(
        "def grad_weight(grad_output, x, geometry):\n"
        "    g = geometry\n"
        "    NG = g.N * g.groups\n"
        "    images = x.reshape(NG, g.CG, g.H, g.W).swapaxes(0, 1)\n"
        "    kernels = grad_output.reshape(g.N * g.O, 1, g.OH, g.OW)\n"
        "    how = dict(stride=g.dilation, dilation=g.stride)\n"
        "    t = conv2d(images, kernels, padding=g.padding, groups=NG, **how)\n"
        "    t = t[:, :, : g.KH, : g.KW]  # c (n o) i j\n"
        "    t = t.reshape(g.CG, g.N, g.O, g.KH, g.KW)\n"
        "    return t.sum(axis=1).swapaxes(0, 1)"
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    _where,
    _shape,
    _table,
    _when_harmless,
    _one_image,
    _any,
)
