"""Arbitrary arguments: a result of exactly the promised shape and type, or a sentence.

Each test draws a legal call and then spoils up to three of its arguments.  What may come of it:

* a result of the documented shape and type, equal to the loops;
* ValueError or TypeError raised by this package, whose message says what was needed.

Never another error, never NumPy's own words, and the arguments stay as they were.  `make fuzz`
draws thousands, from a seed that it prints.
"""

from __future__ import annotations

import copy
import linecache
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest
from hostile import THINGS, broken, dressed, numbers_like, things
from hypothesis import currently_in_test_context, given, note
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import (
    geometries,
    integer_arrays,
    integers,
    options,
    seeds,
    transposed_geometries,
)

import convgrad
from convgrad import (
    IMPLEMENTATIONS,
    ConvGeometry,
    checks,
    conv2d,
    conv2d_backward,
    conv_transpose2d,
    conv_transpose2d_backward,
    double_backward,
    exercises,
    ledger,
    memory,
    per_sample_weight_gradients,
    tables,
)

PACKAGE = str(Path(convgrad.__file__).parent)

# Words of a message that helps.
HELPFUL = re.compile(r"needed|needs? |use |take |at most|at least|pass |fill |there (is|are) no")
# NumPy's and Python's own words.
RAW = re.compile(
    r"broadcast|cannot reshape|inhomogeneous|array element|could not convert|object is not|"
    r"cannot be interpreted|not supported between|unpack|unexpected keyword|positional|"
    r"dimensional|recursion|truth value|out of bounds"
)


@pytest.fixture(autouse=True, scope="module")
def little_memory() -> Iterator[None]:
    """What is huge is refused, and what is not refused is quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "LIMIT", 300_000)
        yield


def outcome(call: Callable[..., Any], **arguments: Any) -> Any:
    """What the call returns, or None after an error that teaches; the arguments unchanged."""
    if currently_in_test_context():
        note(f"{getattr(call, '__qualname__', call)}: {_told(arguments)}")
    arrays = {name: a for name, a in arguments.items() if type(a) in (np.ndarray, list, tuple)}
    before = {name: _kept(array) for name, array in arrays.items()}
    try:
        result = call(**arguments)
    except (ValueError, TypeError) as error:
        assert_teaches(error)
        result = None
    for name, array in arrays.items():
        assert _kept(array) == before[name], f"{name} was changed"
    return result


def assert_teaches(error: Exception) -> None:
    """The error was raised by this package on purpose, in words that help."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = trace.tb_frame.f_code.co_filename
    line = linecache.getline(where, trace.tb_lineno).strip()
    message = str(error)
    assert where.startswith(PACKAGE), f"{type(error).__name__} from {where}: {message}"
    assert line.startswith("raise"), f"{type(error).__name__} by {line!r}: {message}"
    assert HELPFUL.search(message) and not RAW.search(message), message
    assert len(message) < 1500, f"{len(message)} characters: {message[:300]}…"


def _kept(value: Any) -> Any:
    """What must not change, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        small = value.nbytes < 10**6 and value.dtype != object
        content = value.tobytes() if small else None
        return value.shape, value.strides, str(value.dtype), value.flags.writeable, content
    try:
        return copy.deepcopy(repr(value))
    except Exception:  # one of the things has no words
        return None


def _told(arguments: dict[str, Any]) -> str:
    told = []
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and value.size > 4:
            told.append(f"{name}: {value.dtype}{value.shape}")
        else:
            told.append(f"{name}={_words(value)}")
    return ", ".join(told)


def _words(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception:
        return f"a {type(value).__name__}"


# ---- spoiling --------------------------------------------------------------------------------


def spoiled(
    draw: st.DrawFn, arrays: dict[str, np.ndarray], rest: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """The arguments with some of them changed; and whether their numbers are still the same."""
    arguments: dict[str, Any] = arrays | rest
    kind = draw(st.sampled_from(["dressed", "broken", "mixed", "mixed"]))
    names = draw(st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=3, unique=True))
    same = True
    for name in names:
        value = arguments[name]
        if isinstance(value, np.ndarray) and kind == "dressed":
            arguments[name] = draw(dressed(value))
        elif kind != "dressed":
            if isinstance(value, np.ndarray):
                arguments[name] = draw(st.one_of(broken(value), dressed(value), things()))
            else:
                arguments[name] = draw(st.one_of(numbers_like(value), things()))
            same = False
    return arguments, same


def as_pair(value: Any) -> tuple[int, int]:
    """What a stride, dilation or padding of one number or two means, written down again."""
    first, second = np.broadcast_to(np.asarray(value), (2,)).tolist()
    return first, second


def sizes_of(x: Any, weight: Any, arguments: dict[str, Any]) -> tuple[int, ...]:
    """The shape of conv2d's result by the size formula, from arguments that were accepted."""
    x_shape, (O, _, *kernel) = np.shape(x), np.shape(weight)
    stride, dilation = as_pair(arguments["stride"]), as_pair(arguments["dilation"])
    padding = arguments["padding"]
    if isinstance(padding, str):
        spans = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        totals = spans if padding == "same" else [0, 0]
    elif np.ndim(padding) == 2:
        totals = [sum(pair) for pair in np.asarray(padding).tolist()]
    else:
        totals = [2 * cells for cells in as_pair(padding)]
    out = [
        (size + total - d * (k - 1) - 1) // s + 1
        for size, total, d, k, s in zip(x_shape[-2:], totals, dilation, kernel, stride, strict=True)
    ]
    return (*x_shape[:-3], O, *out)


def common_type(*operands: Any) -> np.dtype:
    """The type of a result: integers count as float64."""
    arrays = [np.asarray(operand) for operand in operands if operand is not None]
    return np.result_type(*(np.float64 if a.dtype.kind in "biu" else a.dtype for a in arrays))


def real_if(dtype: np.dtype, operand: Any) -> np.dtype:
    return dtype if np.iscomplexobj(operand) else np.empty(0, dtype).real.dtype


def assert_is(result: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> None:
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == (shape, dtype)
    assert result.flags.c_contiguous and result.flags.owndata and result.flags.writeable


def assert_like_loops(results: Any, call: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Equal to what the definition gives; rounding alone may differ, for any numbers."""
    by_loops = call(**arguments | {"implementation": "loops"})
    if not isinstance(results, tuple):
        results, by_loops = (results,), (by_loops,)
    for result, definition in zip(results, by_loops, strict=True):
        if result is not None and np.isfinite(definition).all():
            assert_array_equal(result, definition, strict=True)  # small whole numbers are exact


@st.composite
def calls(draw: st.DrawFn, *names: str) -> tuple[dict[str, Any], bool]:
    """A spoiled call of a function of these operands and the options of conv2d."""
    geometry = draw(geometries())
    arrays = _arrays(geometry, draw(seeds()))
    rest = options(geometry) | {"implementation": draw(st.sampled_from([None, *IMPLEMENTATIONS]))}
    return spoiled(draw, {name: arrays[name] for name in names}, rest)


def _arrays(geometry: Any, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    operands = integer_arrays(geometry, seed)._asdict()
    operands["bias"] = integers(rng, geometry.bias_shape)
    operands["grad_grad_input"] = integers(rng, geometry.x_shape)
    operands["grad_grad_weight"] = integers(rng, geometry.weight_shape)
    operands["grad_grad_bias"] = integers(rng, geometry.bias_shape)
    return operands


# ---- the front doors -------------------------------------------------------------------------


@given(calls("x", "weight", "bias"))
def test_conv2d(drawn):
    arguments, same = drawn
    y = outcome(conv2d, **arguments)
    assert not (same and y is None), "right numbers were refused"
    if y is not None:
        x, weight, bias = (arguments[name] for name in ("x", "weight", "bias"))
        assert_is(y, sizes_of(x, weight, arguments), common_type(x, weight, bias))
        assert_like_loops(y, conv2d, arguments)


@given(calls("grad_output", "x", "weight"), st.one_of(st.tuples(*[st.booleans()] * 3), things()))
def test_conv2d_backward(drawn, mask):
    arguments, same = drawn
    results = outcome(conv2d_backward, **arguments, output_mask=mask)
    if results is None:
        assert not (same and isinstance(mask, tuple) and set(mask) <= {True, False})
        return
    g, x, weight = (arguments[name] for name in ("grad_output", "x", "weight"))
    dtype = common_type(g, x, weight)
    shapes = np.shape(x), np.shape(weight), np.shape(weight)[:1]
    types = real_if(dtype, x), real_if(dtype, weight), dtype
    for result, shape, kind, wanted in zip(results, shapes, types, mask, strict=True):
        assert (result is not None) == bool(wanted)
        if result is not None:
            assert_is(result, shape, kind)
    assert_like_loops(results, conv2d_backward, arguments | {"output_mask": mask})


SECONDS = ("grad_grad_input", "grad_grad_weight", "grad_grad_bias")


@given(calls(*SECONDS, "grad_output", "x", "weight"))
def test_double_backward(drawn):
    arguments, same = drawn
    results = outcome(double_backward, **arguments)
    assert not (same and results is None), "right numbers were refused"
    if results is not None:
        like = [arguments[name] for name in ("grad_output", "x", "weight")]
        dtype = common_type(*like, *(arguments[name] for name in SECONDS))
        for result, operand in zip(results, like, strict=True):
            assert_is(result, np.shape(operand), real_if(dtype, operand))
        assert_like_loops(results, double_backward, arguments)


@st.composite
def transposed_calls(draw: st.DrawFn, *names: str) -> tuple[dict[str, Any], bool]:
    geometry = draw(transposed_geometries())
    arrays = _arrays(geometry, draw(seeds()))
    rest = options(geometry) | {"implementation": draw(st.sampled_from([None, *IMPLEMENTATIONS]))}
    return spoiled(draw, {name: arrays[name] for name in names}, rest)


def sizes_of_transposed(x: Any, weight: Any, arguments: dict[str, Any]) -> tuple[int, ...]:
    x_shape, (_, OG, *kernel) = np.shape(x), np.shape(weight)
    stride, dilation, more = (
        as_pair(arguments[name]) for name in ("stride", "dilation", "output_padding")
    )
    padding = arguments["padding"]
    if np.ndim(padding) == 2:
        totals = [sum(pair) for pair in np.asarray(padding).tolist()]
    else:
        totals = [2 * cells for cells in as_pair(padding)]
    axes = zip(x_shape[-2:], totals, dilation, kernel, stride, more, strict=True)
    out = [s * (size - 1) + d * (k - 1) + 1 + m - total for size, total, d, k, s, m in axes]
    return (*x_shape[:-3], OG * int(arguments["groups"]), *out)


@given(transposed_calls("x", "weight", "bias"))
def test_conv_transpose2d(drawn):
    arguments, same = drawn
    y = outcome(conv_transpose2d, **arguments)
    assert not (same and y is None), "right numbers were refused"
    if y is not None:
        x, weight, bias = (arguments[name] for name in ("x", "weight", "bias"))
        assert_is(y, sizes_of_transposed(x, weight, arguments), common_type(x, weight, bias))
        assert_like_loops(y, conv_transpose2d, arguments)


@given(transposed_calls("grad_output", "x", "weight"))
def test_conv_transpose2d_backward(drawn):
    arguments, same = drawn
    results = outcome(conv_transpose2d_backward, **arguments)
    assert not (same and results is None), "right numbers were refused"
    if results is not None:
        g, x, weight = (arguments[name] for name in ("grad_output", "x", "weight"))
        dtype = common_type(g, x, weight)
        O = np.shape(weight)[1] * int(arguments["groups"])
        shapes = np.shape(x), np.shape(weight), (O,)
        types = real_if(dtype, x), real_if(dtype, weight), dtype
        for result, shape, kind in zip(results, shapes, types, strict=True):
            assert_is(result, shape, kind)
        assert_like_loops(results, conv_transpose2d_backward, arguments)


@st.composite
def per_sample_calls(draw: st.DrawFn) -> tuple[dict[str, Any], bool]:
    geometry = draw(geometries())
    arrays = _arrays(geometry, draw(seeds()))
    rest = options(geometry) | {"weight_shape": geometry.weight_shape}
    return spoiled(draw, {name: arrays[name] for name in ("grad_output", "x")}, rest)


@given(per_sample_calls())
def test_per_sample_weight_gradients(drawn):
    arguments, same = drawn
    shares = outcome(per_sample_weight_gradients, **arguments)
    assert not (same and shares is None), "right numbers were refused"
    if shares is not None:
        g, x = arguments["grad_output"], arguments["x"]
        shape = tuple(arguments["weight_shape"])
        assert_is(shares, (len(x), *shape), common_type(g, x))
        whole = {name: value for name, value in arguments.items() if name != "weight_shape"}
        _, grad_weight, _ = conv2d_backward(
            weight=np.zeros(shape, common_type(g, x)), implementation="loops", **whole
        )
        if np.isfinite(grad_weight).all():
            assert_array_equal(shares.sum(axis=0, dtype=grad_weight.dtype), grad_weight)


# ---- sizes -----------------------------------------------------------------------------------

SIZES = ("N", "C", "H", "W", "O", "KH", "KW")


@given(geometries(), st.data())
def test_a_geometry(geometry, data):
    """What is accepted is a convolution whose every size is a whole number."""
    arguments = {name: getattr(geometry, name) for name in SIZES} | options(geometry)
    names = st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=4, unique=True)
    for name in data.draw(names):
        arguments[name] = data.draw(st.one_of(numbers_like(arguments[name]), things()))
    made = outcome(ConvGeometry, **arguments)
    if made is not None:
        sizes = [*made.output_shape, *made.x_shape, *made.weight_shape, *made.leftover]
        assert all(type(size) is int and size >= 0 for size in sizes)
        assert min(made.OH, made.OW) >= 1
        shapes = made.x_shape, made.weight_shape
        assert ConvGeometry.of(*shapes, **options(made)) == made
        assert made.output_shape == sizes_of_shapes(*shapes, options(made))
        assert hash(made) == hash(ConvGeometry(**made.as_dict()))


def sizes_of_shapes(x_shape, weight_shape, arguments) -> tuple[int, ...]:
    x, weight = (np.broadcast_to(np.int8(0), shape) for shape in (x_shape, weight_shape))
    return sizes_of(x, weight, arguments)


@given(geometries(), st.data())
def test_a_geometry_of_shapes(geometry, data):
    arguments = options(geometry)
    arguments |= {"x_shape": geometry.x_shape, "weight_shape": geometry.weight_shape}
    names = st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=3, unique=True)
    for name in data.draw(names):
        value = data.draw(st.one_of(numbers_like(arguments[name]), things()))
        if name.endswith("shape") and data.draw(st.booleans()):
            value = list(arguments[name])
            value[data.draw(st.integers(0, 3))] = data.draw(things())
        arguments[name] = value
    made = outcome(ConvGeometry.of, **arguments)
    if made is not None:
        assert isinstance(made, ConvGeometry)
        assert made.x_shape == tuple(arguments["x_shape"])
        assert made.weight_shape == tuple(arguments["weight_shape"])


# ---- the ledger ------------------------------------------------------------------------------


@given(geometries(), seeds(), st.data())
def test_the_ledger_and_its_tables(geometry, seed, data):
    operands = integer_arrays(geometry, seed)._asdict()
    target = data.draw(st.one_of(st.sampled_from(ledger.TARGETS), things()))
    order = data.draw(st.one_of(st.sampled_from(tuple(ledger.ORDERS)), things()))
    arguments = {"geometry": geometry, "target": target, "order": order}
    name = data.draw(st.sampled_from(sorted(operands)))
    strange = data.draw(st.one_of(broken(operands[name]), dressed(operands[name]), things()))
    arrays = operands | {name: strange}
    outcome(ledger.contributions, **arguments)
    outcome(tables.count, geometry=geometry, target=target)
    listing = outcome(tables.Listing, **arguments)
    if listing is not None:
        step = data.draw(st.one_of(st.integers(-3, 3), things()))
        try:
            row = outcome(lambda step: listing[step], step=step)
        except IndexError as error:
            assert "there is no step" in str(error)
        else:
            assert row is None or isinstance(row, ledger.Contribution)
        blocks = outcome(listing.blocks, size=step)
        assert blocks is None or step is None or step >= 1
        outcome(lambda **arrays: tables.products(listing[:10], **arrays), **arrays)
    totals = [
        outcome(accumulate, **arguments, **arrays)
        for accumulate in (tables.accumulate, ledger.accumulate)
    ]
    assert (totals[0] is None) == (totals[1] is None)
    if totals[0] is not None:
        assert_array_equal(*totals, strict=True)
    o = data.draw(st.one_of(st.integers(-1, 6), things()))
    arguments = {name: arrays[name] for name in ("grad_output", "weight")}
    try:
        share = outcome(ledger.kernel_share, geometry=geometry, o=o, **arguments)
    except IndexError as error:
        assert "they are numbered 0 to" in str(error)
    else:
        assert share is None or share.shape == geometry.x_shape


# ---- what judges others ----------------------------------------------------------------------


@given(geometries(), seeds(), st.data())
def test_explain_difference_explains_anything(geometry, seed, data):
    """Whatever the answer is, there is a sentence; what is right is never blamed."""
    x, weight, g = integer_arrays(geometry, seed)
    gradients = conv2d_backward(g, x, weight, **options(geometry))
    k = data.draw(st.sampled_from(range(3)))
    right, target = gradients[k], ("input", "weight", "bias")[k]
    answer = data.draw(st.one_of(broken(right), dressed(right), things()))
    arguments = {"geometry": geometry, "target": target}
    arguments |= {"x": x, "weight": weight, "grad_output": g}
    explained = outcome(checks.explain_difference, actual=answer, expected=right, **arguments)
    assert explained.cause in checks.CAUSES
    assert explained.sentence.startswith("Your ")
    alone = outcome(checks.explain_difference, actual=answer, expected=right)
    assert alone.right == explained.right
    name = data.draw(st.sampled_from(sorted(arguments)))
    outcome(
        checks.explain_difference,
        **{"actual": right + 1, "expected": right} | arguments | {name: data.draw(things())},
    )


@given(st.sampled_from(exercises.all_exercises()), things())
def test_an_exercise_answers_anything(exercise, answer):
    verdict = outcome(exercise.check, answer=answer)
    assert isinstance(verdict, exercises.Verdict)
    assert str(verdict) and verdict._repr_html_()


@pytest.mark.parametrize("name", THINGS)
def test_each_thing_once(name):
    """Nothing is left to the luck of the draw where there are few cases."""
    x, weight = np.ones((1, 2, 3, 4)), np.ones((1, 2, 2, 2))
    for argument in ("x", "weight", "bias"):
        outcome(conv2d, **{"x": x, "weight": weight} | {argument: THINGS[name]()})
    for argument in ("stride", "padding", "dilation", "groups", "padding_mode", "implementation"):
        outcome(conv2d, x=x, weight=weight, **{argument: THINGS[name]()})
        if argument not in ("padding_mode", "implementation"):
            outcome(
                conv_transpose2d, x=x, weight=weight.swapaxes(0, 1), **{argument: THINGS[name]()}
            )
    for argument in SIZES:
        sizes = dict.fromkeys(SIZES, 2)
        outcome(ConvGeometry, **sizes | {argument: THINGS[name]()})
    for exercise in exercises.all_exercises():
        assert isinstance(exercise.check(THINGS[name]()), exercises.Verdict)
