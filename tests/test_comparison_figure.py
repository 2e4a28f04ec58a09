"""The picture of three gradients beside autograd's."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from convgrad.figures.comparison import beside


def compared(**gaps):
    """What compare_gradients gives, as far as the picture looks: (mine, autograd) by name."""
    found = {
        name: SimpleNamespace(mine=np.asarray(mine, float), autograd=np.asarray(right, float))
        for name, (mine, right) in gaps.items()
    }
    return SimpleNamespace(gaps=lambda: found)


def test_each_gradient_has_a_row_and_the_slice_with_the_largest_difference():
    right = np.arange(48.0).reshape(2, 3, 2, 4)
    mine = right.copy()
    mine[1, 0, 1, 2] += 5
    words = beside(compared(weight=(mine, right), bias=([1, 2], [1, 2]))).words()
    titles = [word for word in words if word.startswith("∂L")]
    assert titles == ["∂L/∂w[1, 0], yours", "∂L/∂b, yours"]
    grid = words.index(titles[0])
    assert words[:grid] == ["24", "25", "26", "27", "28", "29", "35", "31"]
    assert words[grid + 1 : grid + 11] == ["−", *map(str, range(24, 32)), "autograd's"]
    assert words[grid + 11 : grid + 21] == ["=", *"00000050", "difference"]


@pytest.mark.parametrize(("place", "rows"), [((0, 0), "rows 0 to 3"), ((19, 10), "rows 16 to 19")])
def test_of_a_large_slice_the_part_around_the_difference_is_drawn(place, rows):
    right = np.zeros((1, 1, 20, 11))
    mine = right.copy()
    mine[0, 0, *place] = 7
    words = beside(compared(input=(mine, right)), most=4).words()
    assert words.count("7") == 2  # in mine, and in the difference
    assert words.count("0") == 3 * 16 - 2
    assert sum(rows in word for word in words) == 3


def test_a_nan_is_the_largest_difference():
    right = np.zeros((1, 2, 1, 2))
    mine = right.copy()
    mine[0, 0, 0, 0] = 1e6
    mine[0, 1, 0, 1] = np.nan
    words = beside(compared(input=(mine, right))).words()
    assert "∂L/∂x[0, 1], yours" in words
    assert words.count("nan") == 2
    both = np.full((1, 1, 1, 1), np.inf)
    assert beside(compared(input=(both, both))).words().count("inf") == 2


def test_numbers_are_rounded_to_what_the_largest_shows():
    words = beside(compared(bias=([123.456, 0.0001], [120.0, 0.0]))).words()
    assert words[:2] == ["123", "0"]
    assert words[-3:-1] == ["3.46", "0"]


def test_the_numbers_of_the_picture_are_those_of_the_page():
    """Coordinates are shortened in the SVG, what is written in it is not."""
    figure = beside(compared(bias=([1.0375], [1.25])))
    assert figure.words()[0] == "1.04"
    assert ">1.04<" in figure.svg() and ">1.25<" in figure.svg()


def test_of_a_batch_without_images_nothing_can_be_drawn():
    nothing = np.zeros((0, 1, 2, 2))
    with pytest.raises(ValueError, match="no numbers"):
        beside(compared(input=(nothing, nothing)))
    with pytest.raises(ValueError, match="most is 0"):
        beside(compared(bias=([1], [1])), most=0)


def test_it_draws_what_compare_gradients_gives():
    torch = pytest.importorskip("torch")
    from convgrad.autograd import compare_gradients, sign

    x, weight, bias = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3), torch.randn(4)
    found = compare_gradients(x, weight, bias, rule=sign)
    titles = [word for word in beside(found).words() if word.endswith("yours")]
    assert [title[3:5] for title in titles] == ["∂x", "∂w", "∂b"]
