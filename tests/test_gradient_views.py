"""The Python side of GradientViews: its traits, a browser's messages, its fallback."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_widgets import Outline, say, tensor

from convgrad import conv2d_backward
from convgrad.examples import example
from convgrad.geometry import ConvGeometry, GeometryError, ShapeError
from convgrad.widgets import GradientViews
from convgrad.widgets.base import STATIC, traitlets
from convgrad.widgets.gradient_views import VIEWS


@pytest.fixture
def views() -> GradientViews:
    return GradientViews(example("D"))


def test_example_d_is_shown_when_nothing_is_given() -> None:
    views = GradientViews()
    assert views.geometry == example("D").geometry
    np.testing.assert_array_equal(views.x, example("D").arrays().x)
    assert [preset["letter"] for preset in views.presets] == ["A", "B", "C", "D"]


def test_its_gradients_are_those_of_the_package(views: GradientViews) -> None:
    x, weight, _, grad_output = example("D").arrays()
    grad_input, grad_weight, _ = conv2d_backward(grad_output, x, weight, groups=2)
    np.testing.assert_array_equal(views.grad_input, grad_input)
    np.testing.assert_array_equal(views.grad_weight, grad_weight)
    np.testing.assert_array_equal(views.kernel_shares.sum(axis=0), grad_input)
    np.testing.assert_array_equal(views.image_shares.sum(axis=0), grad_weight)
    assert not np.any(views.kernel_shares[0, :, 2:]), "group A reads no channel of group B"
    assert np.any(views.kernel_shares[5, :, 2:])


def test_every_view_begins_complete() -> None:
    steps = {view: GradientViews(example("D"), view=view).step for view in VIEWS}
    assert steps == {"kernels": 6, "scatter-gather": 9 + 20, "convolution": 6, "batch": 6}
    assert GradientViews(example("C"), view="convolution").steps == 4 * 3 + 1, "and the crop"
    assert GradientViews(example("D"), step=0).step == 0


def test_what_is_complete_stays_complete(views: GradientViews) -> None:
    for view in VIEWS:
        views.view = view
        assert views.step == views.steps
    views.view = "kernels"
    views.step = 2
    views.view = "scatter-gather"
    assert views.step == 2, "and what is not does not"
    views.image = 2
    assert views.step == 2
    views.load(example("B"))
    assert (views.step, views.steps) == (34, 34)


@pytest.mark.parametrize("view", ["kernel", "scatter", "", None, 3])
def test_a_view_that_does_not_exist_is_refused(views: GradientViews, view: Any) -> None:
    with pytest.raises(traitlets.TraitError, match="view"):
        GradientViews(example("D"), view=view)
    say(views, view=view)
    assert views.view == "kernels"
    assert "view" in views.complaint


def test_slices_that_do_not_exist_become_the_nearest(views: GradientViews) -> None:
    views.image, views.kernel, views.channel = 99, -1, 7
    assert (views.image, views.kernel, views.channel) == (2, 0, 1)
    views.image, views.kernel = 2, 5
    views.load(example("C"))
    assert (views.image, views.kernel, views.channel) == (1, 0, 0)
    made = GradientViews(example("D"), image=1, kernel=4, channel=1)
    assert (made.image, made.kernel, made.channel) == (1, 4, 1)


@pytest.mark.parametrize(
    ("arguments", "conv", "error", "words"),
    [
        ((example("E"),), {}, ShapeError, "the gradient view draws up to"),
        ((np.zeros((2, 4, 5, 5)), np.zeros((6, 2, 3, 3))), {"groups": 3}, GeometryError, "divide"),
        ((np.zeros((2, 4, 5, 5)), np.zeros((6, 4, 3, 3))), {"groups": 2}, ShapeError, "per group"),
        ((np.zeros((0, 1, 5, 5)), np.zeros((1, 1, 3, 3))), {}, ShapeError, "at least one image"),
    ],
)
def test_bad_input_gets_the_errors_of_the_package(
    arguments: tuple, conv: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        GradientViews(*arguments, **conv)


def test_edits_and_choices_in_the_browser_arrive(views: GradientViews) -> None:
    edited = views.grad_output.copy()
    edited[1, 4] += 5
    say(views, grad_output=tensor(edited), view="batch", step=3, kernel=4)
    assert (views.view, views.step, views.kernel) == ("batch", 3, 4)
    before = GradientViews(example("D"))
    changed = np.any(views.kernel_shares != before.kernel_shares, axis=(1, 2, 3, 4))
    assert changed.tolist() == [False] * 4 + [True, False]
    changed = np.any(views.image_shares != before.image_shares, axis=(1, 2, 3, 4))
    assert changed.tolist() == [False, True, False]


def test_a_turned_knob_arrives(views: GradientViews) -> None:
    g = ConvGeometry(N=2, C=4, H=6, W=7, O=2, KH=3, KW=3, groups=2, stride=2)
    say(views, kernel=5, image=2)
    say(views, geometry=g.as_dict(), step=0)
    assert views.geometry == g
    assert views.weight.shape == g.weight_shape
    assert (views.image, views.kernel) == (1, 1)


# ---- the fallback ----------------------------------------------------------------------------


def formula(views: GradientViews) -> tuple[str, str, str]:
    """The name of the number that is worked out, its sum, its value."""
    text = Outline(views.fallback).text["p"].replace("−", "-").replace("·", "*")
    return re.search(r"(grad_\w+\[[\d,]+\]) = (.*) = (-?[\d.]+)", text).groups()


@pytest.mark.parametrize("letter", "ABCD")
@pytest.mark.parametrize("view", VIEWS)
def test_the_fallback_works_out_one_number(letter: str, view: str) -> None:
    g = example(letter).geometry
    image, kernel, channel = g.N - 1, g.O - 1, g.CG - 1
    views = GradientViews(example(letter), view=view, image=image, kernel=kernel, channel=channel)
    outline = Outline(views.fallback)
    svg = next(attrs for tag, attrs in outline.seen if tag == "svg")
    assert svg["role"] == "img"
    assert g.describe() in svg["aria-label"]
    name, terms, value = formula(views)
    assert eval(terms) == float(value)
    index = tuple(map(int, re.findall(r"\d+", name)))
    shares = {
        "kernels": views.kernel_shares.sum(axis=0),
        "scatter-gather": views.kernel_shares[kernel],
        "convolution": views.image_shares[image],
        "batch": views.grad_weight,
    }
    assert shares[view][index] == float(value), name
    drawn = outline.text["svg"]
    assert "nan" not in drawn
    at_input, at_weight = (image, g.channel(kernel, channel)), (kernel, channel)
    maps = {
        "kernels": lambda: views.grad_input[at_input],
        "scatter-gather": lambda: views.kernel_shares[kernel][at_input],
        "convolution": lambda: views.image_shares[image][at_weight],
        "batch": lambda: views.image_shares[:, kernel, channel],
    }
    for number in maps[view]().ravel():
        assert f"{number:g}".replace("-", "−") in drawn


def test_the_fallback_shows_gaps_and_the_crop_as_the_page_does() -> None:
    gathered = Outline(GradientViews(example("C"), view="scatter-gather").fallback)
    assert gathered.text["svg"].count("·") == 5, "of nine taps the stride skips five"
    whole = Outline(GradientViews(example("B"), view="scatter-gather").fallback)
    assert whole.text["svg"].count("·") == 0
    searched = Outline(GradientViews(example("C"), view="convolution").fallback)
    assert "the rest is cropped" in searched.text["figcaption"]
    assert "2 apart, the stride" in searched.text["figcaption"]


def test_the_fallback_draws_some_of_many() -> None:
    x, weight = np.ones((9, 10, 2, 2)), np.ones((10, 2, 1, 1))
    views = GradientViews(x, weight, view="batch", groups=5)
    caption = Outline(views.fallback).text["figcaption"]
    assert "4 of 9 images are drawn" in caption and "3 of 5 groups are drawn" in caption
    views.geometry = {**views.geometry.as_dict(), "groups": 1}
    views.view = "kernels"
    assert "the first 4 of 10 drawn" in Outline(views.fallback).text["figcaption"]


def test_the_fallback_follows(views: GradientViews) -> None:
    before = views.fallback
    views.view = "batch"
    assert views.fallback != before
    views.step = 0  # the fallback shows all steps done
    batch = views.fallback
    views.channel = 1
    assert views.fallback != batch


def test_the_bundle_is_there_and_reads_traits_that_exist() -> None:
    assert (STATIC / "gradient_views.css").stat().st_size > 0
    assert (STATIC / "gradient_views.js").stat().st_size <= 40 * 1024
    traits = set(GradientViews.class_traits(sync=True))
    assert {"view", "image", "kernel", "channel", "step", "geometry", "x", "weight"} <= traits
