"""Bad input gets a sentence: what came, what was needed, how to mend it."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from convgrad import (
    IMPLEMENTATIONS,
    ConvGeometry,
    GeometryError,
    ShapeError,
    conv2d,
    conv2d_backward,
    example,
)

X = np.ones((2, 4, 6, 7))
WEIGHT = np.ones((6, 2, 3, 3))  # for groups=2
Y_SHAPE = (2, 6, 4, 5)

# Each line: what is changed, the error, and words of its message in the order
# came · needed · mend.
BAD_GEOMETRY: dict[str, tuple[dict[str, Any], type, tuple[str, ...]]] = {
    "x of two axes": (
        {"x": np.ones((6, 7))},
        ShapeError,
        ("x has 2 axes, shape (6, 7)", "4, (N, C, H, W), or 3, (C, H, W)", "x[None, None]"),
    ),
    "x of five axes": (
        {"x": np.ones((1, 2, 4, 6, 7))},
        ShapeError,
        ("x has 5 axes", "needed are 4", "reshape"),
    ),
    "x is a number": ({"x": 3.0}, ShapeError, ("x has 0 axes", "needed are 4", "reshape")),
    "weight of two axes": (
        {"weight": np.ones((3, 3))},
        ShapeError,
        ("weight has 2 axes, shape (3, 3)", "(O, C/groups, KH, KW)", "weight[None, None]"),
    ),
    "weight for other channels": (
        {"weight": np.ones((6, 4, 3, 3))},
        ShapeError,
        ("weight has 4 input channels per group", "so 2 were needed", "second axis or groups"),
    ),
    "x of ragged lists": (
        {"x": [[[[1, 2], [3]]]]},
        ShapeError,
        ("x is a nested list whose rows differ", "a full block", "pad the short rows"),
    ),
    "weight of ragged lists": (
        {"weight": [[[[1, 2], [3]]]]},
        ShapeError,
        ("weight is a nested list", "a full block", "cut the long ones"),
    ),
    "groups that do not divide C": (
        {"groups": 3},
        GeometryError,
        (
            "4 input channels do not divide into 3 groups",
            "[1, 2], which divide C and O",
            "or change C",
        ),
    ),
    "groups that do not divide O": (
        {"groups": 4, "weight": np.ones((6, 1, 3, 3))},
        GeometryError,
        (
            "6 output channels do not divide into 4 groups",
            "[1, 2], which divide C and O",
            "or change O",
        ),
    ),
    "no groups": ({"groups": 0}, GeometryError, ("groups is 0", "at least 1")),
    "groups of a fraction": ({"groups": 2.0}, GeometryError, ("groups is 2.0", "whole number")),
    "stride zero": ({"stride": 0}, GeometryError, ("stride is 0", "at least 1")),
    "negative stride": ({"stride": (1, -2)}, GeometryError, ("stride is -2", "at least 1")),
    "stride of a fraction": ({"stride": 1.5}, GeometryError, ("stride is 1.5", "whole number")),
    "stride for three axes": (
        {"stride": (1, 1, 1)},
        GeometryError,
        ("stride is (1, 1, 1)", "an int or a pair (height, width)"),
    ),
    "stride of words": ({"stride": "two"}, GeometryError, ("stride is 'two'", "an int or a pair")),
    "stride in an array without axes": (
        {"stride": np.array(0)},
        GeometryError,
        ("stride is 0", "at least 1"),
    ),
    "padding in an array without axes": (
        {"padding": np.array(-2)},
        GeometryError,
        ("padding is -2", "at least 0"),
    ),
    "a string in the padding": (
        {"padding": ("1", 1)},
        GeometryError,
        ("padding of the height is '1'", "a pair"),
    ),
    "stride of letters": (
        {"stride": b"ab"},
        GeometryError,
        ("stride is b'ab'", "an int or a pair (height, width)"),
    ),
    "stride of fractions in an array": (
        {"stride": np.array([1.0, 2.0])},
        GeometryError,
        ("stride is 1.0", "a whole number"),
    ),
    "a number where two sides are needed": (
        {"padding": ((1, 2), 3)},
        GeometryError,
        ("padding of the width is 3", "needed is a pair (before, after)"),
    ),
    "padding beyond all numbers": (
        {"padding": 10**30},
        GeometryError,
        (f"padding is {10**30}", "at most 2147483647"),
    ),
    "padding beyond all memory": (
        {"padding": 10**6},
        GeometryError,
        ("the padded input is 2000006×2000007", "at most 2147483647 cells", "pad less"),
    ),
    "a stride beyond all numbers": (
        {"stride": 10**30},
        GeometryError,
        (f"stride is {10**30}", "at most 2147483647"),
    ),
    "dilation zero": ({"dilation": (0, 1)}, GeometryError, ("dilation is 0", "at least 1")),
    "negative padding": (
        {"padding": -1},
        GeometryError,
        ("padding is -1", "at least 0", "slice x, for example x[..., 1:-1, 1:-1]"),
    ),
    "negative padding at one end": (
        {"padding": ((0, -1), (0, 0))},
        GeometryError,
        ("padding of the height is -1", "at least 0", "slice x"),
    ),
    "padding for three axes": (
        {"padding": ((0, 0), (0, 0), (0, 0))},
        GeometryError,
        ("3 entries", "two pairs, ((top, bottom), (left, right))"),
    ),
    "padding of ragged pairs": (
        {"padding": ((1, 2), (3,))},
        GeometryError,
        ("padding of the width is (3,)", "a pair"),
    ),
    "padding of words": (
        {"padding": "full"},
        GeometryError,
        ("padding is 'full'", "'same', 'valid', an int, a pair"),
    ),
    "same with a stride": (
        {"padding": "same", "stride": 2},
        GeometryError,
        (
            "padding='same' with stride 2",
            "'same' needs stride 1, here and in PyTorch",
            "((1, 1), (1, 1))",
        ),
    ),
    "unknown padding mode": (
        {"padding_mode": "edge"},
        GeometryError,
        ("padding_mode is 'edge'", "'zeros', 'reflect', 'replicate', 'circular'"),
    ),
    "reflection wider than the image": (
        {"padding": (6, 0), "padding_mode": "reflect"},
        GeometryError,
        ("padding 6 with padding_mode 'reflect' and H = 6", "at most 5 cells", "pad less"),
    ),
    "wrapping wider than the image": (
        {"padding": (0, 8), "padding_mode": "circular"},
        GeometryError,
        ("padding 8 with padding_mode 'circular' and W = 7", "at most 7 cells", "pad less"),
    ),
    "kernel larger than the image": (
        {"weight": np.ones((6, 2, 3, 9))},
        GeometryError,
        ("kernel 3×9 spans 3×9", "the padded input is 6×7", "pad by 1 more on each side"),
    ),
    "dilated kernel larger than the image": (
        {"dilation": 4},
        GeometryError,
        ("kernel 3×3 with dilation 4 spans 9×9", "is 6×7", "pad by 2 more on each side or use "),
    ),
    "an image without rows": (
        {"x": X[:, :, :0]},
        GeometryError,
        ("input height H is 0", "least 1"),
    ),
    "an image without channels": ({"x": X[:, :0]}, GeometryError, ("channels C is 0", "least 1")),
    "an unknown implementation": (
        {"implementation": "fastest"},
        ValueError,
        ("implementation is 'fastest'", "'loops', 'windows'", "None for the fastest"),
    ),
    "an implementation that is not a name": (
        {"implementation": []},
        ValueError,
        ("implementation is []", "use one of"),
    ),
}

BAD_TYPES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "objects": (np.full(X.shape, None), ("holds object", "needed are numbers", "np.asarray")),
    "words": (np.full(X.shape, "1"), ("holds <U1", "needed are numbers", "np.asarray")),
    "dates": (np.zeros(X.shape, "datetime64[s]"), ("holds datetime64[s]", "needed are numbers")),
    "records": (np.zeros(X.shape, [("a", float)]), ("holds [('a', '<f8')]", "needed are numbers")),
    "masked": (np.ma.masked_equal(X, 1), ("is a masked array", "reads every cell", ".filled(0)")),
}
BAD_TYPES["a masked array in a list"] = ([[BAD_TYPES["masked"][0]]], BAD_TYPES["masked"][1])
BAD_TYPES["strings of any length"] = (
    np.full(X.shape, "1", np.dtypes.StringDType()),
    ("holds StringDType()", "needed are numbers", "np.asarray"),
)


class Unreadable:
    """Holds numbers, but not where NumPy can reach them, like a tensor on another device."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("can't convert to numpy")


BAD_TYPES["out of reach"] = (
    Unreadable(),
    ("is of type Unreadable", "NumPy cannot read it", ".detach().cpu().numpy()"),
)
if np.dtype(np.longdouble) != np.float64:  # on some machines they are one type
    BAD_TYPES["long double"] = (X.astype(np.longdouble), ("holds ", "float64, complex64"))


def assert_says(error: pytest.ExceptionInfo, words: tuple[str, ...]) -> None:
    assert re.search(".*".join(map(re.escape, words)), str(error.value)), str(error.value)


def arguments(changed: dict[str, Any]) -> dict[str, Any]:
    return {"x": X, "weight": WEIGHT, "groups": 2} | changed


@pytest.mark.parametrize("bad", BAD_GEOMETRY)
def test_conv2d_explains(bad):
    changed, kind, words = BAD_GEOMETRY[bad]
    with pytest.raises(kind) as error:
        conv2d(**arguments(changed))
    assert_says(error, words)


@pytest.mark.parametrize("bad", BAD_GEOMETRY)
def test_conv2d_backward_explains(bad):
    changed, kind, words = BAD_GEOMETRY[bad]
    with pytest.raises(kind) as error:
        conv2d_backward(np.ones(Y_SHAPE), **arguments(changed))
    assert_says(error, words)


@pytest.mark.parametrize("operand", ["x", "weight", "bias"])
@pytest.mark.parametrize("bad", BAD_TYPES)
def test_types_that_are_no_numbers_are_refused(operand, bad):
    value, words = BAD_TYPES[bad]
    with pytest.raises(TypeError) as error:
        conv2d(**arguments({operand: value}))
    assert_says(error, (operand, *words))


@pytest.mark.parametrize("bad", BAD_TYPES)
def test_so_are_they_as_upstream_gradients(bad):
    value, words = BAD_TYPES[bad]
    with pytest.raises(TypeError) as error:
        conv2d_backward(value, **arguments({}))
    assert_says(error, ("grad_output", *words))


@pytest.mark.parametrize("shape", [(5,), (6, 1), (6, 1, 1), ()])
def test_a_bias_of_another_shape(shape):
    with pytest.raises(ShapeError) as error:
        conv2d(**arguments({"bias": np.ones(shape)}))
    assert_says(error, (f"bias has shape {shape}", "(6,) = (O,)", "reshape bias"))


@pytest.mark.parametrize("shape", [(2, 6, 5, 4), (2, 6, 4), (1, 6, 4, 5), (), (2, 6, 4, 5, 1)])
def test_an_upstream_gradient_of_another_shape(shape):
    with pytest.raises(ShapeError) as error:
        conv2d_backward(np.ones(shape), **arguments({}))
    words = (f"grad_output has shape {shape}", "(2, 6, 4, 5) = (N, O, OH, OW)", "check stride")
    assert_says(error, words)


@pytest.mark.parametrize("shape", [(1, 6, 4, 5), (6, 5, 4), (4, 5)])
def test_an_upstream_gradient_for_one_image(shape):
    with pytest.raises(ShapeError) as error:
        conv2d_backward(np.ones(shape), **arguments({"x": X[0]}))
    assert_says(error, (f"shape {shape}", "without a batch axis", "(6, 4, 5)", "x[None]"))


@pytest.mark.parametrize("mask", [(True, True), (True,) * 4, ()])
def test_an_output_mask_for_another_number_of_gradients(mask):
    with pytest.raises(ShapeError, match="needed are three of True and False"):
        conv2d_backward(np.ones(Y_SHAPE), output_mask=mask, **arguments({}))


NO_FLAGS = {
    "a word": "abc",
    "words": ("False", "True", "True"),
    "a dict": {0: True, 1: True, 2: True},
    "a set": {0, 1, 2},
    "other numbers": (0, 1, 2),
    "not a number": (np.nan, True, True),
    "an array inside": (np.array([1, 2]), 1, 1),
    "a table": np.ones((3, 2), bool),
}


@pytest.mark.parametrize("mask", NO_FLAGS.values(), ids=NO_FLAGS)
def test_an_output_mask_of_something_else(mask):
    with pytest.raises(ShapeError, match="needed are three of True and False"):
        conv2d_backward(np.ones(Y_SHAPE), output_mask=mask, **arguments({}))


@pytest.mark.parametrize("mask", [True, 7, None])
def test_an_output_mask_that_is_no_sequence(mask):
    with pytest.raises(ShapeError, match="needed are three of True and False"):
        conv2d_backward(np.ones(Y_SHAPE), output_mask=mask, **arguments({}))


def test_the_errors_are_value_errors():
    assert issubclass(GeometryError, ValueError) and issubclass(ShapeError, ValueError)


def test_the_mend_of_a_large_kernel_works():
    """Who does what the sentence says gets a convolution."""
    with pytest.raises(GeometryError, match="pad by 2 more on each side or use dilation 1"):
        conv2d(X, WEIGHT, groups=2, dilation=4)
    assert conv2d(X, WEIGHT, groups=2, dilation=4, padding=2).shape == (2, 6, 2, 3)
    assert conv2d(X, WEIGHT, groups=2, dilation=1).shape == Y_SHAPE


def test_the_groups_that_are_offered_exist():
    for C, O, groups in itertools.product(range(1, 9), repeat=3):
        sizes = {"C": C, "H": 3, "W": 3, "O": O, "KH": 1, "KW": 1}
        try:
            ConvGeometry(**sizes, groups=groups)
        except GeometryError as error:
            offered = re.search(r"out of \[(.*)\]", str(error))[1].split(", ")
            assert offered[0] == "1"
            for mend in map(int, offered):
                assert ConvGeometry(**sizes, groups=mend).groups == mend


@pytest.mark.parametrize("padding_mode", ["zeros", "reflect", "replicate", "circular"])
def test_the_padding_that_is_offered_is_allowed(padding_mode):
    in_mode = []
    for size, kernel, padding in itertools.product(range(1, 6), range(1, 12), range(3)):
        sizes = {"C": 1, "H": size, "W": size + 1, "O": 1, "KH": kernel, "KW": kernel}
        try:
            ConvGeometry(**sizes, padding=padding, padding_mode=padding_mode)
        except GeometryError as error:
            mend = re.search(
                r"pad by (\d+) more on each side( with padding_mode 'zeros')?", str(error)
            )
            if mend is None:  # the border itself was too wide
                continue
            mode = "zeros" if mend[2] else padding_mode
            assert ConvGeometry(**sizes, padding=padding + int(mend[1]), padding_mode=mode)
            in_mode.append(mend[2] is None)
    assert any(in_mode)
    assert all(in_mode) == (padding_mode in ("zeros", "replicate"))


def test_many_channels_are_refused_as_fast_as_few():
    with pytest.raises(GeometryError, match="which divide C and O"):
        ConvGeometry(C=2**31 - 2, H=1, W=1, O=2**31 - 2, KH=1, KW=1, groups=2**30)


def test_a_batch_of_grey_images_is_told_how_to_become_one():
    grey, kernels = np.ones((8, 28, 28)), np.ones((4, 1, 3, 3))
    for call in (
        lambda: conv2d(grey, kernels),
        lambda: conv2d_backward(np.ones((8, 4, 26, 26)), grey, kernels),
    ):
        with pytest.raises(ShapeError) as error:
            call()
        assert_says(error, ("C = 8", "read as one image, (C, H, W)", "x[:, None]"))
    assert conv2d(grey[:, None], kernels).shape == (8, 4, 26, 26)
    with pytest.raises(ShapeError) as error:
        conv2d(grey[None], kernels)
    assert "one image" not in str(error.value)


def test_a_wrong_name_of_an_array_is_said():
    with pytest.raises(TypeError, match="no array is called 'xx': there are x, weight, bias"):
        ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2).require(xx=np.ones(1))


def test_tensors_are_read_or_explained():
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 4, 6, 7)
    assert conv2d(x, WEIGHT, stride=torch.tensor([1, 2]), groups=2).shape == (2, 6, 4, 3)
    for bad in (
        x.clone().requires_grad_(),
        x.to("meta"),
        x.to(torch.bfloat16),
        x.to_sparse(),
        [[x[0, 0].clone().requires_grad_()]],
    ):
        with pytest.raises(TypeError) as error:
            conv2d(bad, WEIGHT, groups=2)
        assert_says(error, ("x is of type", "NumPy cannot read it", ".detach().cpu().numpy()"))


def test_errors_come_before_work(monkeypatch):
    """A wrong bias is noticed before anything is computed."""

    def never(*operands):
        raise AssertionError("computed first")

    lazy = IMPLEMENTATIONS["loops"].__class__("lazy", "", never, never, never, never)
    monkeypatch.setitem(IMPLEMENTATIONS, "lazy", lazy)
    with pytest.raises(ShapeError):
        conv2d(**arguments({"bias": np.ones(5), "implementation": "lazy"}))
    with pytest.raises(ShapeError):
        conv2d_backward(np.ones((1, 1, 1, 1)), implementation="lazy", **arguments({}))


def test_a_geometry_cannot_be_changed_behind_its_own_back():
    geometry = ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2)
    with pytest.raises(AttributeError):
        geometry.H = 5


def test_unknown_examples_are_explained():
    with pytest.raises(KeyError, match="no example 'Z': there are A, B, C, D, E, F"):
        example("Z")
