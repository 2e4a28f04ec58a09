"""The backward pass of the backward pass: its laws, its mistakes, PyTorch's answer.

With first = (grad_input, grad_weight, grad_bias), the loss of a second pass is to first order
S = ⟨ggx, grad_input⟩ + ⟨ggw, grad_weight⟩ + ⟨ggb, grad_bias⟩, linear in each of g, x, w.  So whole
steps measure its derivatives exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from strategies import (
    LAYOUTS,
    complex_integer_arrays,
    geometries,
    integer_arrays,
    options,
    random_geometries,
    seeds,
)
from test_strategies import assert_not_easy

from convgrad import (
    IMPLEMENTATIONS,
    ConvGeometry,
    GeometryError,
    Implementation,
    ShapeError,
    conv2d_backward,
    double_backward,
    loops,
    windows,
)

every_implementation = pytest.mark.parametrize("name", IMPLEMENTATIONS)


class Second(NamedTuple):
    """The operands of a second pass, in the order of double_backward."""

    ggx: np.ndarray | None  # n c h v
    ggw: np.ndarray | None  # o c i j
    ggb: np.ndarray | None  # o
    g: np.ndarray  # n o p q
    x: np.ndarray  # n c h v
    weight: np.ndarray  # o c i j


def draw(geometry: ConvGeometry, seed: int, arrays: Callable = integer_arrays) -> Second:
    x, weight, g = arrays(geometry, seed)
    ggx, ggw, upstream = arrays(geometry, seed + 2)
    return Second(ggx, ggw, upstream.sum(axis=(0, 2, 3)), g, x, weight)


def right(second: Second, geometry: ConvGeometry, **arguments: Any) -> tuple[np.ndarray, ...]:
    return double_backward(*second, **options(geometry), **arguments)


# ---- laws ------------------------------------------------------------------------------------

Rule = Callable[[Second, ConvGeometry], tuple[np.ndarray, ...]]


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """Re Σ conj(a)·b: what a gradient a says of a step b, in PyTorch's convention too."""
    return np.vdot(a, b).real


def the_loss(second: Second, geometry: ConvGeometry) -> float:
    firsts = conv2d_backward(*second[3:], **options(geometry), implementation="loops")
    return sum(
        inner(wanted, first)
        for wanted, first in zip(second[:3], firsts, strict=True)
        if wanted is not None
    )


def a_whole_step(rule: Rule, geometry: ConvGeometry, seed: int, arrays=integer_arrays) -> None:
    """The loss changes by what the gradient says when g, x or the weight changes."""
    second = draw(geometry, seed, arrays)
    steps = draw(geometry, seed + 4, arrays)
    loss, gradients = the_loss(second, geometry), rule(second, geometry)
    for name, gradient in zip(("g", "x", "weight"), gradients, strict=True):
        step = getattr(steps, name)
        there = second._replace(**{name: getattr(second, name) + step})
        assert the_loss(there, geometry) - loss == inner(gradient, step), name


def a_complex_step(rule: Rule, geometry: ConvGeometry, seed: int) -> None:
    """The same for complex operands, in PyTorch's convention."""
    a_whole_step(rule, geometry, seed, complex_integer_arrays)


def none_is_zero(rule: Rule, geometry: ConvGeometry, seed: int) -> None:
    """A missing operand stands for zeros."""
    second = draw(geometry, seed)
    for missing in (("ggx",), ("ggw",), ("ggb",), ("ggx", "ggb"), ("ggw", "ggb"), ("ggx", "ggw")):
        zeros = {name: np.zeros_like(getattr(second, name)) for name in missing}
        without = rule(second._replace(**dict.fromkeys(missing)), geometry)
        for result, answer in zip(without, rule(second._replace(**zeros), geometry), strict=True):
            assert_array_equal(result, answer, str(missing))


def the_trilinear_form(rule: Rule, geometry: ConvGeometry, seed: int) -> None:
    """What x and the weight get adds up to what g gets: each product has three operands."""
    second = draw(geometry, seed)
    to_g, to_x, to_weight = rule(second, geometry)
    of_bias = inner(second.ggb, loops.grad_bias(second.g, geometry))
    assert inner(second.x, to_x) + inner(second.weight, to_weight) + of_bias == inner(
        second.g, to_g
    )


LAWS = {
    law.__name__: law for law in (a_whole_step, a_complex_step, none_is_zero, the_trilinear_form)
}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


@every_law
@given(geometries(), seeds())
def test_the_law_holds(law, geometry, seed):
    law(right, geometry, seed)


@every_implementation
@given(geometries(), seeds())
def test_every_implementation_gives_the_same(name, geometry, seed):
    second = draw(geometry, seed)
    answers = right(second, geometry, implementation="loops")
    for result, answer in zip(right(second, geometry, implementation=name), answers, strict=True):
        assert_array_equal(result, answer, strict=True)


@given(geometries(), seeds())
def test_it_is_the_three_formulas(geometry, seed):
    ggx, ggw, ggb, g, x, weight = second = draw(geometry, seed)
    to_g, to_x, to_weight = right(second, geometry)
    by_image, by_kernel = loops.forward(ggx, weight, geometry), loops.forward(x, ggw, geometry)
    assert_array_equal(to_g, by_image + by_kernel + ggb[:, None, None])
    assert_array_equal(to_x, loops.grad_input(g, ggw, geometry))
    assert_array_equal(to_weight, loops.grad_weight(g, ggx, geometry))


# ---- mistakes, each with the law that notices it ---------------------------------------------


def _formulas(
    second: Second,
    geometry: ConvGeometry,
    *,
    terms: str = "xwb",
    kernel: str = "ggw",
    image: str = "ggx",
    conj: Callable = np.conj,
) -> tuple[np.ndarray, ...]:
    """The right answer, with places for mistakes."""
    zeros = Second(
        *(np.zeros(s) for s in (geometry.x_shape, geometry.weight_shape, geometry.bias_shape)),
        *second[3:],
    )
    second = Second(*(z if a is None else a for a, z in zip(second, zeros, strict=True)))
    parts = {
        "x": windows.forward(second.ggx, second.weight, geometry),
        "w": windows.forward(second.x, second.ggw, geometry),
        "b": np.broadcast_to(second.ggb[:, None, None], geometry.output_shape),
    }
    return (
        sum(parts[term] for term in terms),
        windows.grad_input(second.g, conj(getattr(second, kernel)), geometry),
        windows.grad_weight(second.g, conj(getattr(second, image)), geometry),
    )


def forgets_the_kernel_term(second, geometry):
    """Takes conv(ggx, w) alone for the gradient of g, as if only grad_input depended on g."""
    return _formulas(second, geometry, terms="xb")


def forgets_the_image_term(second, geometry):
    """Takes conv(x, ggw) alone for the gradient of g."""
    return _formulas(second, geometry, terms="wb")


def forgets_the_bias_term(second, geometry):
    """Leaves out ggb, though the bias gradient is a sum of g."""
    return _formulas(second, geometry, terms="xw")


def keeps_the_kernel(second, geometry):
    """Uses w where ggw belongs, which gives the first pass again."""
    return _formulas(second, geometry, kernel="weight")


def keeps_the_image(second, geometry):
    """Uses x where ggx belongs, which gives the first pass again."""
    return _formulas(second, geometry, image="x")


def forgets_to_conjugate(second, geometry):
    """Uses ggw and ggx as they are, which is right for real numbers alone."""
    return _formulas(second, geometry, conj=lambda array: array)


def gives_up_where_one_is_missing(second, geometry):
    """Returns zeros as soon as one of the three is None, though the others go on."""
    results = _formulas(second, geometry)
    missing = any(operand is None for operand in second)
    return tuple(np.zeros_like(result) if missing else result for result in results)


def no_mistake(second, geometry):
    """Nothing wrong here: the frame that holds the mistakes is right."""
    return _formulas(second, geometry)


MISTAKES = {
    forgets_the_kernel_term: a_whole_step,
    forgets_the_image_term: the_trilinear_form,
    forgets_the_bias_term: the_trilinear_form,
    keeps_the_kernel: a_whole_step,
    keeps_the_image: a_whole_step,
    forgets_to_conjugate: a_complex_step,
    gives_up_where_one_is_missing: none_is_zero,
}


def breaks(rule: Rule, law: Callable, geometry: ConvGeometry, seed: int) -> bool:
    try:
        law(rule, geometry, seed)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(("mistake", "law"), MISTAKES.items(), ids=lambda f: f.__name__)
def test_its_law_notices_the_mistake(mistake, law):
    draws = [geometry for geometry in random_geometries(40, seed=21) if geometry.N][:25]
    broken = [breaks(mistake, law, geometry, seed) for seed, geometry in enumerate(draws)]
    assert sum(broken) >= 0.7 * len(draws)
    assert not any(breaks(no_mistake, law, geometry, k) for k, geometry in enumerate(draws))


def test_forgets_to_conjugate_hides_from_real_numbers():
    for seed, geometry in enumerate(random_geometries(10, seed=22)):
        assert not breaks(forgets_to_conjugate, a_whole_step, geometry, seed)


def test_every_law_has_a_victim():
    assert {law.__name__ for law in MISTAKES.values()} == set(LAWS)


# ---- what goes in and comes out --------------------------------------------------------------

GEOMETRY = ConvGeometry(
    **{"N": 2, "C": 4, "H": 6, "W": 7, "O": 6, "KH": 3, "KW": 2, "groups": 2, "stride": (2, 1)},
    padding=((1, 0), (1, 2)),
    dilation=(1, 3),
)
SECOND = draw(GEOMETRY, seed=0)
ANSWERS = right(SECOND, GEOMETRY, implementation="loops")


def test_nothing_asked_is_nothing_got():
    """With all three None every gradient is zero, in full shape and of its own."""
    nothing = SECOND._replace(ggx=None, ggw=None, ggb=None)
    for result, answer in zip(right(nothing, GEOMETRY), ANSWERS, strict=True):
        assert_array_equal(result, np.zeros(answer.shape), strict=True)
        assert result.flags.owndata and result.flags.writeable


@pytest.mark.parametrize("mask", list(np.ndindex(2, 2, 2)))
def test_masked_gradients_are_none_and_not_computed(mask, monkeypatch):
    calls = []

    def counted(name: str) -> Callable[..., np.ndarray]:
        return lambda *operands: calls.append(name) or getattr(loops, name)(*operands)

    names = ("forward", "grad_input", "grad_weight", "grad_bias")
    counting = Implementation("counting", "", *map(counted, names))
    monkeypatch.setitem(IMPLEMENTATIONS, "counting", counting)
    masked = right(SECOND, GEOMETRY, output_mask=mask, implementation="counting")
    wanted = {"forward": 2 * mask[0], "grad_input": mask[1], "grad_weight": mask[2]}
    assert {name: calls.count(name) for name in wanted} == wanted
    assert "grad_bias" not in calls
    for result, asked, answer in zip(masked, mask, ANSWERS, strict=True):
        if asked:
            assert_array_equal(result, answer)
        else:
            assert result is None


def test_a_missing_operand_costs_nothing(monkeypatch):
    calls = []

    def counted(name: str) -> Callable[..., np.ndarray]:
        return lambda *operands: calls.append(name) or getattr(loops, name)(*operands)

    names = ("forward", "grad_input", "grad_weight", "grad_bias")
    counting = Implementation("counting", "", *map(counted, names))
    monkeypatch.setitem(IMPLEMENTATIONS, "counting", counting)
    right(SECOND._replace(ggw=None), GEOMETRY, implementation="counting")
    assert calls == ["forward", "grad_weight"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_operand_is_written_to_and_results_own_their_memory(layout):
    operands = [a if a.ndim == 1 else LAYOUTS[layout](a) for a in SECOND]
    before = [operand.copy() for operand in operands]
    results = right(Second(*operands), GEOMETRY)
    for operand, copy in zip(operands, before, strict=True):
        assert_array_equal(operand, copy)
    for result, answer in zip(results, ANSWERS, strict=True):
        assert_array_equal(result, answer)
        assert result.flags.c_contiguous and result.flags.owndata and result.flags.writeable
        assert not any(np.shares_memory(result, operand) for operand in operands)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_float_stays_what_it_is(dtype):
    results = right(Second(*(a.astype(dtype) for a in SECOND)), GEOMETRY)
    for result, answer in zip(results, ANSWERS, strict=True):
        assert_array_equal(result, answer.astype(dtype), strict=True)


def test_types_meet_over_all_operands():
    whole = Second(*(a.astype(int) for a in SECOND))
    for result, answer in zip(right(whole, GEOMETRY), ANSWERS, strict=True):
        assert_array_equal(result, answer, strict=True)
    single = Second(*(a.astype(np.float32) for a in SECOND))
    widened = right(single._replace(ggb=SECOND.ggb), GEOMETRY)
    assert {result.dtype for result in widened} == {np.dtype(np.float64)}
    # one that is None has no say
    assert {r.dtype for r in right(single._replace(ggb=None), GEOMETRY)} == {np.dtype(np.float32)}


def test_the_gradient_of_a_real_operand_is_real():
    results = right(SECOND._replace(ggx=SECOND.ggx * (1 + 2j), g=SECOND.g * (2 - 1j)), GEOMETRY)
    assert [result.dtype.kind for result in results] == ["c", "f", "f"]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_one_image_without_a_batch(name):
    one = SECOND._replace(ggx=SECOND.ggx[1], g=SECOND.g[1], x=SECOND.x[1])
    batch = SECOND._replace(ggx=SECOND.ggx[1:], g=SECOND.g[1:], x=SECOND.x[1:])
    alone, of_batch = right(one, GEOMETRY, implementation=name), right(batch, GEOMETRY)
    for result, answer, axes in zip(alone, of_batch, (3, 3, 4), strict=True):
        assert result.ndim == axes and result.flags.owndata
        assert_array_equal(result, answer.reshape(result.shape))
    nothing = right(one._replace(ggx=None, ggw=None), GEOMETRY)
    assert [result.shape for result in nothing] == [result.shape for result in alone]


def test_an_empty_batch():
    empty = SECOND._replace(ggx=SECOND.ggx[:0], g=SECOND.g[:0], x=SECOND.x[:0])
    to_g, to_x, to_weight = right(empty, GEOMETRY)
    assert to_g.shape == (0, *GEOMETRY.output_shape[1:])
    assert to_x.shape == (0, *GEOMETRY.x_shape[1:])
    assert_array_equal(to_weight, np.zeros(GEOMETRY.weight_shape), strict=True)


# Each line: what is changed, the error, and words of its message in order.
BAD: dict[str, tuple[dict[str, Any], type, str]] = {
    "ggx of another shape": (
        {"ggx": SECOND.ggx[..., 1:]},
        ShapeError,
        r"grad_grad_input has shape \(2, 4, 6, 6\).*needed is \(2, 4, 6, 7\).*shape of x, or None",
    ),
    "ggx without its batch": ({"ggx": SECOND.ggx[0]}, ShapeError, r"needed is \(2, 4, 6, 7\)"),
    "ggw of another shape": (
        {"ggw": SECOND.ggw[:1]},
        ShapeError,
        r"grad_grad_weight has shape \(1, 2, 3, 2\).*needed is \(6, 2, 3, 2\)",
    ),
    "ggb that would spread": (
        {"ggb": np.ones(1)},
        ShapeError,
        r"grad_grad_bias has shape \(1,\): it belongs to the gradient of bias, so needed is \(6,\)",
    ),
    "g of another shape": ({"g": SECOND.g[:, :1]}, ShapeError, "grad_output has shape"),
    "a weight for other channels": (
        {"weight": np.ones((6, 4, 3, 2))},
        ShapeError,
        "weight has 4 input channels per group",
    ),
    "words": ({"ggw": "words"}, TypeError, "grad_grad_weight holds <U5: needed are numbers"),
    "masked": (
        {"ggx": np.ma.masked_equal(SECOND.ggx, 1)},
        TypeError,
        "grad_grad_input is a masked array",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_operands_get_a_sentence(bad):
    changed, kind, words = BAD[bad]
    with pytest.raises(kind, match=words):
        right(SECOND._replace(**changed), GEOMETRY, output_mask=(False, False, False))


def test_bad_arguments_get_a_sentence():
    with pytest.raises(GeometryError, match="stride is 0"):
        double_backward(*SECOND, **options(GEOMETRY) | {"stride": 0})
    with pytest.raises(ValueError, match="implementation is 'none'"):
        right(SECOND, GEOMETRY, implementation="none")
    with pytest.raises(ShapeError, match=r"\(grad_grad_output, grad_input, grad_weight\)"):
        right(SECOND, GEOMETRY, output_mask=True)


def test_an_operand_is_checked_where_it_is_not_needed_too():
    """The gradient of x multiplies g and ggw alone."""
    with pytest.raises(ShapeError, match="x has 2 axes"):
        right(SECOND._replace(x=np.ones((6, 7))), GEOMETRY, output_mask=(False, True, False))


# ---- PyTorch ---------------------------------------------------------------------------------

GEOMETRIES = list(random_geometries(600, seed=2027))
# which of the three are given: every subset that is not empty
GIVEN = [given for given in np.ndindex(2, 2, 2) if any(given)]


def test_the_geometries_do_not_hide_mistakes():
    assert len(GEOMETRIES) >= 300
    assert_not_easy(GEOMETRIES)
    for given_ones in GIVEN:  # each subset meets geometries of all kinds
        draws = [g for k, g in enumerate(GEOMETRIES) if GIVEN[k % len(GIVEN)] == given_ones]
        assert sum(1 < g.groups < g.C and any(g.leftover) for g in draws) >= 10


@pytest.mark.oracle
@pytest.mark.parametrize("part", range(len(GIVEN)))
def test_autograd_with_create_graph_agrees(part):
    pytest.importorskip("torch")
    import torch_oracle

    for seed in range(part, len(GEOMETRIES), len(GIVEN)):
        geometry = GEOMETRIES[seed]
        second = draw(geometry, seed)
        missing = [n for n, there in zip(Second._fields, GIVEN[part], strict=False) if not there]
        second = second._replace(**dict.fromkeys(missing))
        answers = torch_oracle.double_backward(second[:3], *second[3:], geometry)
        for result, answer in zip(right(second, geometry), answers, strict=True):
            assert_array_equal(result, answer, repr(geometry), strict=True)


@pytest.mark.oracle
def test_autograd_agrees_on_complex_numbers():
    pytest.importorskip("torch")
    import torch_oracle

    for seed, geometry in enumerate(random_geometries(100, seed=2028)):
        second = draw(geometry, seed, complex_integer_arrays)
        answers = torch_oracle.double_backward(second[:3], *second[3:], geometry)
        for result, answer in zip(right(second, geometry), answers, strict=True):
            # PyTorch multiplies complex numbers in three products, still exact on integers
            assert_array_equal(result, answer, repr(geometry), strict=True)


@pytest.mark.oracle
def test_a_gradient_penalty_as_people_write_it():
    """L = ½ Σ grad_input², by autograd and by hand; integers, so the half is exact too."""
    torch = pytest.importorskip("torch")

    x, weight, g = (
        torch.from_numpy(np.array(a)).requires_grad_() for a in (SECOND.x, SECOND.weight, SECOND.g)
    )
    padded = torch.nn.functional.pad(x, (1, 2, 1, 0))
    y = torch.nn.functional.conv2d(padded, weight, stride=(2, 1), dilation=(1, 3), groups=2)
    (grad_input,) = torch.autograd.grad(y, x, g, create_graph=True)
    (0.5 * grad_input.square().sum()).backward()
    ours = double_backward(
        grad_input.detach().numpy(),
        *(None, None, SECOND.g, SECOND.x, SECOND.weight),
        **options(GEOMETRY),
    )
    assert_array_equal(ours[0], g.grad.numpy())
    assert_array_equal(ours[2], weight.grad.numpy())
    assert not ours[1].any()
