"""*Without loops* tells the truth: its numbers, pictures, alt texts and what it says of speed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from pages import PAGES, alt_text, cells
from test_exercises import solution

from convgrad import ConvGeometry, example, exercises, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.im2col import unfold
from convgrad.windows import overlap_add, windows

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import without_loops as pictures
from convgrad.figures.grids import written

PAGE = "without_loops"
MEASURED = json.loads((Path(__file__).parents[1] / "benchmarks" / "rungs.json").read_text("utf-8"))[
    "layers"
]


def test_the_row_and_its_view():
    x = pictures.row_of_c()
    seen = windows(x, pictures.ROW)[0, 0, 0, :, 0]
    at = windows(np.arange(7).reshape(1, 1, 1, 7), pictures.ROW)[0, 0, 0, :, 0]
    alt = alt_text(PAGE, "one_row(")
    assert f"seven numbers in a row, {' '.join(map(written, x[0, 0, 0]))}, numbered" in alt
    for q in range(3):
        shown, places = (" ".join(map(written, each[q])) for each in (seen, at))
        assert re.search(rf"q {q}(, lit,)? is {shown} from\s+places {places}", alt), q
    assert f"numbers {at[1][0]} to {at[1][2]} are lit" in alt
    twice = [written(x[0, 0, 0, place]) for place in range(7) if (at == place).sum() == 2]
    page = " ".join(PAGES[PAGE].read_text("utf-8").split())
    assert f"{' and '.join(twice)} are stored once and shown twice" in page
    # from window to window two cells, from tap to tap one: what the matrix view is asked to show
    assert (at[1] - at[0] == 2).all() and (np.diff(at, axis=1) == 1).all()


def test_the_picture_holds_these_numbers():
    words = pictures.one_row().words()
    assert {"stored", "shown", "seen as", "seven numbers", "nine"} <= set(words)
    x = pictures.row_of_c()[0, 0, 0]
    assert x.size == 7 and windows(pictures.row_of_c(), pictures.ROW).size == 9


def test_the_steps_of_example_b():
    image = example("B").arrays().x[0, 0]
    assert image.strides == (40, 8)
    seen = windows(example("B").arrays().x, example("B").geometry)[0, 0]
    assert seen.strides == (40, 8, 40, 8)
    assert (seen.size, image.size) == (81, 25)


@pytest.mark.parametrize("seed", range(40))
def test_the_six_steps_of_any_view(seed):
    """Stride multiplies the steps of the positions, dilation those of the taps."""
    rng = np.random.default_rng(seed)
    geometry, x, *_ = random_operands(random_geometry(rng, lambda g: not np.any(g.padding)), rng)
    (sh, sw), (dh, dw) = geometry.stride, geometry.dilation
    n, c, h, v = x.strides
    seen = windows(x, geometry)
    steps = (n, c, sh * h, sw * v, dh * h, dw * v)
    assert np.shares_memory(seen, x)
    for size, step, meant in zip(seen.shape, seen.strides, steps, strict=True):
        assert size == 1 or step == meant


@pytest.mark.parametrize("seed", range(40))
def test_the_one_sum_is_three(seed):
    """The exercise "The loss that is linear three times"."""
    rng = np.random.default_rng(seed)
    geometry, x, weight, g = random_operands(random_geometry(rng), rng)
    whole = np.vdot(g, loops.forward(x, weight, geometry))
    assert whole == np.vdot(weight, loops.grad_weight(g, x, geometry))
    assert whole == np.vdot(x, loops.grad_input(g, weight, geometry))


def test_the_tap_and_the_cell_by_hand():
    x, weight, _, g = example("B").arrays()
    geometry = example("B").geometry
    block = windows(x, geometry)[0, 0, :, :, 1, 2]
    assert np.array_equal(block, x[0, 0, 1:4, 2:5])
    assert (block * g[0, 0]).sum() == loops.grad_weight(g, x, geometry)[0, 0, 1, 2] == 9
    assert loops.grad_input(g, weight, geometry)[0, 0, 1, 2] == 5


@pytest.mark.parametrize("seed", range(20))
def test_numbered_cells_know_where_each_product_belongs(seed):
    rng = np.random.default_rng(seed)
    geometry = random_geometry(rng, lambda g: not np.any(g.padding))
    where = windows(np.arange(geometry.H * geometry.W).reshape(1, 1, geometry.H, -1), geometry)
    products = rng.integers(-4, 5, where.shape).astype(float)
    counted = np.bincount(where.ravel(), products.ravel(), minlength=geometry.H * geometry.W)
    one = ConvGeometry.of(
        (1, 1, geometry.H, geometry.W),
        (1, 1, geometry.KH, geometry.KW),
        stride=geometry.stride,
        dilation=geometry.dilation,
    )
    assert np.array_equal(counted.reshape(1, 1, geometry.H, -1), overlap_add(products, one))


def test_the_steps_tell_stride_and_dilation():
    """The exercise "Which arrays are windows?": exchanged axes are windows again, swapped."""
    x = np.arange(81.0).reshape(1, 1, 9, 9)
    geometry = ConvGeometry(C=1, H=9, W=9, O=1, KH=3, KW=3, stride=3, dilation=1)
    swapped = ConvGeometry(C=1, H=9, W=9, O=1, KH=3, KW=3, stride=1, dilation=3)
    seen = windows(x, geometry)[0, 0]
    assert np.array_equal(seen.transpose(2, 3, 0, 1), windows(x, swapped)[0, 0])


def test_joining_axes_copies():
    x, geometry = example("B").arrays().x, example("B").geometry
    seen = windows(x, geometry)
    assert seen.strides[3] == 8  # from q to q + 1
    assert seen.strides[2] - 2 * seen.strides[3] == 24  # from the last q to the next p
    columns = seen.transpose(0, 1, 4, 5, 2, 3).reshape(1, 9, 9)
    assert np.array_equal(columns, unfold(x, geometry)) and not np.shares_memory(columns, x)


def test_the_last_byte_of_a_view():
    """Four windows reach beyond a row of eight; three, which the size formula gives, do not."""
    numbers = np.arange(8.0)
    right = ConvGeometry(C=1, H=1, W=8, O=1, KH=1, KW=3, stride=2).OW
    assert right == 3
    for count, inside in ((right, True), (4, False)):
        last = (count - 1) * 16 + 2 * 8 + numbers.itemsize
        assert (last <= numbers.nbytes) == inside
    view = sliding_window_view(numbers, 3)[::2]
    low, high = np.lib.array_utils.byte_bounds(view)
    assert high - low == (right - 1) * 16 + 2 * 8 + 8 and view.strides == (16, 8)
    (printed,) = (code for _, code in cells(PAGE) if "reaches byte" in code)
    assert "(4, 3), (16, 8)" in printed


# ---- what is said of speed: that the figures that are kept say it --------------------------------


def test_loops_are_the_slowest_by_far():
    tiny = MEASURED["tiny"]["implementations"]
    times = {name: row["times_torch"]["backward"] for name, row in tiny.items()}
    assert times["loops"] > 20 * max(times[name] for name in times if name != "loops")


def test_plain_sums_fall_behind_products_of_matrices():
    behind = [
        layer["implementations"]["windows"]["times_im2col"]["backward"]
        for name, layer in MEASURED.items()
        if name not in ("tiny", "depthwise")
    ]
    assert min(behind) > 1 and np.median(behind) > 2


def test_windows_keeps_less_for_the_weight_gradient():
    three = MEASURED["3×3"]["implementations"]
    peaks = [three[name]["peak_megabytes"]["grad_weight"] for name in ("windows", "im2col")]
    assert peaks[0] < peaks[1] / 4


# ---- exercises -----------------------------------------------------------------------------------

MISTAKES = {
    "stride were 1": lambda rule: lambda x, w, stride: _cut(rule(x, w, 1), rule(x, w, stride)),
    "kernel turned by 180°": lambda rule: lambda x, w, s: rule(x, w[..., ::-1, ::-1], s),
    "channel": lambda rule: lambda x, w, s: rule(x[:, :1], w[:, :1], s),
}


def _cut(large: np.ndarray, like: np.ndarray) -> np.ndarray:
    return large[:, :, : like.shape[2], : like.shape[3]]


@pytest.mark.parametrize(("words", "bend"), MISTAKES.items(), ids=MISTAKES)
def test_a_wrong_forward_pass_is_told_why(words, bend):
    exercise = exercises.get("views-forward")
    message = exercise.check(bend(solution(exercise))).message
    assert words in message, message


BACKWARD = {
    "overlap": ("+= products", "[...] = products"),
    "grad_output by": ("products[..., i, j]", "products[..., ::-1, ::-1][..., i, j]"),
    "dilation": ("dh * i :: sh, dw * j :: sw", "i :: sh, j :: sw"),
}


@pytest.mark.parametrize("bend", BACKWARD.values(), ids=BACKWARD)
def test_a_wrong_input_gradient_is_told_why(bend):
    exercise = exercises.get("views-backward")
    right, wrong = bend
    source = exercise.solution
    assert right in source
    scope = {"np": np}
    exec(source.replace(right, wrong), scope)
    verdict = exercise.check(scope["grad_input"])
    assert not verdict.passed
    assert re.search(r"overlap|\+=|turned|180°|dilation", verdict.message), verdict.message
