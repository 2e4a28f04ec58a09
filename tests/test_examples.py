"""The running examples: their numbers, and what each is there to show."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from convgrad import ConvGeometry, conv2d, conv2d_backward, example
from convgrad.examples import EXAMPLES
from convgrad.grouped import grad_weight_per_image

SMALL = "ABCDE"  # F is a whole layer


def gradients(letter: str, **changed: np.ndarray) -> tuple[ConvGeometry, tuple[np.ndarray, ...]]:
    geometry = example(letter).geometry
    arrays = example(letter).arrays()._asdict() | changed
    return geometry, conv2d_backward(
        arrays["grad_output"],
        arrays["x"],
        arrays["weight"],
        stride=geometry.stride,
        padding=geometry.padding,
        groups=geometry.groups,
    )


def test_there_are_six_and_each_knows_its_letter():
    assert "".join(EXAMPLES) == "ABCDEF"
    for letter, each in EXAMPLES.items():
        assert each.letter == letter and example(letter.lower()) is each
        assert each.title and each.lesson.endswith(".")


@pytest.mark.parametrize("letter", SMALL)
def test_the_numbers_are_whole_and_not_all_alike(letter):
    arrays = example(letter).arrays()
    for name in ("x", "weight", "grad_output"):
        array = getattr(arrays, name)
        assert array.dtype == np.float64
        assert_array_equal(array, np.round(array))
        assert array.size == 1 or len(np.unique(array)) > 2


@pytest.mark.parametrize("letter", SMALL)
def test_arrays_are_fresh_each_time_and_always_the_same(letter):
    first, second = example(letter).arrays(), example(letter).arrays()
    for one, other in zip(first, second, strict=True):
        assert_array_equal(one, other)
        assert not np.shares_memory(one, other)


def test_A_shows_one_pixel_to_four_windows():
    geometry, (_, grad_weight, _) = gradients("A")
    x, _, _, g = example("A").arrays()
    assert geometry.output_shape == (1, 1, 2, 2)
    expected = np.zeros((4, 4))
    expected[1:3, 1:3] = x.item() * g[0, 0, ::-1, ::-1]  # g turned by 180°
    assert_array_equal(grad_weight[0, 0], expected)


def test_B_by_hand():
    """One tap of the weight gradient and one cell of each other result, added up on paper."""
    x, weight, bias, g = example("B").arrays()
    y = conv2d(x, weight, bias)
    # 1·1 − 1·0 + 2·0 + 1·1 − 1·0 + 1·1 + bias
    assert y[0, 0, 0, 0] == 1 + 0 + 0 + 1 + 0 + 1 + 1
    _, (grad_input, grad_weight, grad_bias) = gradients("B")
    # tap (0, 0) reads x[0:3, 0:3]: 1·1 + 2·0 + 0·2 − 0·1 + 1·1 + 2·0 + 2·0 + 0·2 + 1·1
    assert grad_weight[0, 0, 0, 0] == 1 + 1 + 1
    assert grad_input[0, 0, 0, 0] == g[0, 0, 0, 0] * weight[0, 0, 0, 0]
    assert_array_equal(grad_bias, [6])


def test_C_has_a_row_that_no_window_reads():
    geometry, (grad_input, _, _) = gradients("C")
    assert geometry.leftover == (1, 0)
    assert not grad_input[:, :, -1].any()
    assert grad_input[:, :, -2].any() and grad_input[:, :, :, -1].any()


def test_D_adds_three_images_in_two_groups():
    geometry, (_, grad_weight, _) = gradients("D")
    x, _, _, g = example("D").arrays()
    shares = grad_weight_per_image(g, x, geometry)
    assert shares.shape == (3, 6, 2, 3, 2)
    assert_array_equal(shares.sum(axis=0), grad_weight)
    assert all(share.any() for share in shares)


def test_E_finds_each_template_where_it_was_cut_out():
    geometry = example("E").geometry
    x, weight, _, _ = example("E").arrays()
    response = conv2d(x, weight, groups=geometry.groups)[0]
    peaks = [np.unravel_index(each.argmax(), each.shape) for each in response]
    assert [tuple(map(int, peak)) for peak in peaks] == [(3, 5), (8, 2), (14, 11)]


def test_F_is_the_layer_the_gpu_part_is_about():
    geometry = example("F").geometry
    assert geometry.x_shape == geometry.output_shape == (32, 64, 56, 56)
    assert geometry.weight_shape == (64, 64, 3, 3)


def test_no_two_images_channels_or_kernels_of_d_are_alike():
    # or a mix-up of the two would not show
    x, weight, _, grad_output = example("D").arrays()
    _, (grad_input, grad_weight, _) = gradients("D")
    for array in (x, weight, grad_output, grad_input, grad_weight):
        maps = array.reshape(-1, array.shape[2] * array.shape[3])
        assert len({each.tobytes() for each in maps}) == len(maps)
