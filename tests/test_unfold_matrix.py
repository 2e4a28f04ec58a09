"""The Python side of UnfoldMatrix: its traits, a browser's messages, its fallback."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say, tensor

from convgrad import conv2d, conv2d_backward, im2col
from convgrad.examples import example
from convgrad.geometry import ConvGeometry, GeometryError, ShapeError
from convgrad.widgets import UnfoldMatrix
from convgrad.widgets.base import STATIC

STAGES = ("columns", "forward", "weight", "input")
SHOWN = "ABCD"


@pytest.fixture
def matrix() -> UnfoldMatrix:
    return UnfoldMatrix(example("B"))


@pytest.mark.parametrize("letter", SHOWN)
def test_its_products_are_those_of_the_package(letter: str) -> None:
    source, matrix = example(letter), UnfoldMatrix(example(letter))
    x, weight, _, grad_output = source.arrays()
    g = source.geometry
    options = {key: getattr(g, key) for key in ("stride", "padding", "dilation", "groups")}
    columns, y, grad_weight, grad_input = matrix.products
    np.testing.assert_array_equal(columns, im2col.unfold(x, g))
    np.testing.assert_array_equal(y, conv2d(x, weight, **options))
    expected = conv2d_backward(grad_output, x, weight, **options)
    np.testing.assert_array_equal(grad_input, expected[0])
    np.testing.assert_array_equal(grad_weight, expected[1])


@pytest.mark.parametrize("stage", STAGES)
def test_all_steps_are_done_at_first(stage: Any) -> None:
    matrix = UnfoldMatrix(example("D"), stage=stage)
    assert matrix.step == matrix.steps > 0
    assert UnfoldMatrix(example("D"), stage=stage, step=3).step == 3
    matrix.step = 10**6
    assert matrix.step == matrix.steps


def test_arrays_come_with_the_arguments_of_conv2d() -> None:
    x, weight = np.arange(36.0).reshape(1, 1, 6, 6), np.ones((2, 1, 3, 3))
    matrix = UnfoldMatrix(x, weight, stride=2, padding=1, padding_mode="circular")
    assert matrix.geometry == ConvGeometry.of(x.shape, weight.shape, 2, 1, 1, 1, "circular")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((example("E"),), ShapeError, "the matrix view draws up to"),
        ((np.zeros((0, 1, 5, 5)), np.zeros((1, 1, 3, 3))), ShapeError, "the batch is empty"),
        ((np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 3, 3))), GeometryError, "spans 3×3"),
    ],
)
def test_bad_input_gets_the_errors_of_the_package(
    arguments: tuple, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        UnfoldMatrix(*arguments)


def test_a_16_by_16_image_with_four_channels_is_welcome() -> None:
    matrix = UnfoldMatrix(np.ones((1, 4, 16, 16)), np.ones((4, 4, 3, 3)), padding=1)
    assert matrix.products.columns.shape == (1, 36, 256)


def test_an_edit_in_the_browser_arrives(matrix: UnfoldMatrix) -> None:
    edited = matrix.x.copy()
    edited[0, 0, 2, 2] = 40
    say(matrix, x=tensor(edited))
    assert matrix.products.columns.max() == 40
    assert np.count_nonzero(matrix.products.columns == 40) == 9


def test_a_turned_knob_arrives_with_its_last_step(matrix: UnfoldMatrix) -> None:
    g = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, padding=1)
    grad_output = np.zeros(g.output_shape)
    say(matrix, geometry=g.as_dict(), grad_output=tensor(grad_output), step=25)
    assert (matrix.geometry, matrix.step, matrix.steps) == (g, 25, 25)


def test_another_stage_arrives_with_its_last_step(matrix: UnfoldMatrix) -> None:
    say(matrix, stage="input", step=90)
    assert (matrix.stage, matrix.step, matrix.steps) == ("input", 90, 90)
    matrix.stage = "columns"
    assert matrix.step == matrix.steps == 9


def test_what_is_complete_stays_complete(matrix: UnfoldMatrix) -> None:
    matrix.stage = "input"
    assert matrix.step == matrix.steps == 90
    matrix.geometry = ConvGeometry(C=1, H=6, W=5, O=1, KH=3, KW=3)
    assert matrix.step == matrix.steps == 120
    matrix.step = 4
    matrix.stage = "columns"
    assert (matrix.step, matrix.steps) == (4, 12)
    matrix.load(example("D"))
    assert matrix.step == matrix.steps == 54


def test_a_bad_message_changes_nothing_and_is_answered(matrix: UnfoldMatrix) -> None:
    before = matrix.get_state()
    say(matrix, stage="sideways")
    assert "stage" in matrix.complaint
    say(matrix, geometry={**matrix.geometry.as_dict(), "KH": 9})
    assert "kernel 9×3" in matrix.complaint
    assert {**matrix.get_state(), "complaint": ""} == before


# ---- without JavaScript ----------------------------------------------------------------------


@pytest.mark.parametrize("letter", SHOWN)
@pytest.mark.parametrize("stage", STAGES)
def test_the_fallback_works_out_one_cell(letter: str, stage: Any) -> None:
    matrix = UnfoldMatrix(example(letter), stage=stage)
    outline = Outline(matrix.fallback)
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert svg["role"] == "img"
    assert example(letter).geometry.describe() in svg["aria-label"]
    text = outline.text["p"].replace("−", "-").replace("·", "*")
    name, cell = re.search(r"(x|y|grad_weight|grad_input)\[([\d,]+)\]", text).groups()
    index = tuple(map(int, cell.split(",")))
    products = matrix.products
    if stage == "columns":
        value, times = re.search(r"= (-?\d+) is copied (\d+) times", text).groups()
        assert float(value) == matrix.x[index]
        listed = re.findall(r"\[(\d+),(\d+)\]", text)
        assert len(listed) == int(times)
        for r, l in listed:
            assert products.columns[0, int(r), int(l)] == matrix.x[index]
        return
    _, summed, rest = text.rsplit("= ", 2)
    value = re.match(r"-?[\d.]+", rest)[0]
    assert eval(summed) == float(value)
    whole = products._asdict()
    if not (stage == "weight" and matrix.geometry.N > 1):
        assert float(value) == whole[name][index]
    else:  # the share of the first image
        g = matrix.geometry
        alone = UnfoldMatrix(
            matrix.x[:1], matrix.weight, matrix.grad_output[:1], stride=g.stride, groups=g.groups
        )
        assert float(value) == alone.products.grad_weight[index]


def test_the_fallback_says_what_the_columns_cost(matrix: UnfoldMatrix) -> None:
    assert "81 numbers, 324 bytes at 4 bytes each, where x has 25 and 100 bytes: 3.24 times" in (
        matrix.fallback
    )


def test_the_fallback_follows_python_but_not_the_browser(matrix: UnfoldMatrix) -> None:
    first = matrix.fallback
    matrix.stage = "weight"
    assert matrix.fallback != first
    second = matrix.fallback
    say(matrix, stage="forward", step=2)
    assert matrix.fallback == second, "it is for where no script runs: no need to send it back"


def test_the_bundle_is_there_and_reads_traits_that_exist() -> None:
    assert (STATIC / "unfold_matrix.css").stat().st_size > 0
    assert (STATIC / "unfold_matrix.js").stat().st_size <= 40 * 1024
    sources = "".join(
        (STATIC.parent / "js" / f"{name}.js").read_text("utf-8")
        for name in ("operands_view", "unfold_matrix")
    )
    read = set(re.findall(r'model\.get\("(\w+)"\)', sources)) | {"stage"}
    assert {"geometry", "step", "presets", "limits"} <= read
    assert read <= set(UnfoldMatrix.class_traits(sync=True))
