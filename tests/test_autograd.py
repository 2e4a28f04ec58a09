"""conv2d for autograd: every implementation gives PyTorch's gradients, once and twice."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from strategies import integer_arrays, random_geometries

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402
from torch_oracle import autograd as oracle  # noqa: E402

import convgrad.autograd as ours  # noqa: E402
from convgrad import ConvGeometry, GeometryError, ShapeError  # noqa: E402
from convgrad.autograd import (  # noqa: E402
    Conv2d,
    arithmetic,
    calls,
    compare_gradients,
    conv2d,
    examine,
    function,
)

pytestmark = pytest.mark.oracle

# "triton" takes no float64, and is held to the same in test_kernels.py
every_way = pytest.mark.parametrize("way", [way for way in ours.IMPLEMENTATIONS if way != "triton"])
of_tensors = pytest.mark.parametrize("way", ["aten", "unfold", "correlate"])

GEOMETRIES = list(random_geometries(240, seed=613))
SMALL = [
    {"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
    {"stride": 2, "padding": 1, "dilation": 1, "groups": 2},
    {"stride": (2, 3), "padding": (1, 2), "dilation": (3, 1), "groups": 2},
    {"stride": 1, "padding": "same", "dilation": (1, 3), "groups": 1},
    {"stride": 2, "padding": 1, "groups": 2, "padding_mode": "reflect"},
    {"stride": 1, "padding": (2, 1), "padding_mode": "circular"},
]


def options_of(geometry: ConvGeometry) -> dict[str, Any]:
    names = ("stride", "padding", "dilation", "groups", "padding_mode")
    return {name: getattr(geometry, name) for name in names}


def leaves(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.array(array)).requires_grad_() for array in arrays]


def small(groups: int = 1, dtype=torch.float64, bias: bool = True) -> list[torch.Tensor | None]:
    generator = torch.Generator().manual_seed(5)
    shapes = [(2, 4, 7, 8), (6, 4 // groups, 3, 2), (6,)]
    made = [
        torch.randint(-4, 5, shape, generator=generator).to(dtype).requires_grad_()
        for shape in shapes
    ]
    return made if bias else [*made[:2], None]


# ---- the gradients ---------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 4))]
)
def test_every_implementation_is_autograds_to_the_last_digit(way, part):
    for seed in range(part, len(GEOMETRIES), 4):
        geometry = GEOMETRIES[seed]
        x, weight, g = integer_arrays(geometry, seed)
        expected = oracle(x, weight, g, geometry)
        operands = leaves(x, weight, np.zeros(geometry.O))
        y = conv2d(*operands, **options_of(geometry), implementation=way)
        assert np.array_equal(y.detach().numpy(), expected.y)
        y.backward(torch.from_numpy(np.array(g)))
        for leaf, right in zip(operands, expected[1:], strict=True):
            assert np.array_equal(leaf.grad.numpy(), right), (seed, geometry)


@pytest.mark.slow
@every_way
@pytest.mark.parametrize("options", SMALL, ids=str)
def test_gradcheck_and_gradgradcheck(way, options):
    operands = [each.detach().requires_grad_() for each in small(options.get("groups", 1))]

    def run(*tensors):
        return conv2d(*tensors, **options, implementation=way)

    assert gradcheck(run, operands)
    # along random directions: number by number takes twenty times as long, and the second gradient
    # is held to autograd's, digit for digit, below
    assert gradgradcheck(run, operands, fast_mode=True)


@every_way
def test_the_second_gradient_is_autograds(way):
    options = {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2}

    def twice(convolve):
        x, weight, bias = small(groups=2)
        y = convolve(x, weight, bias, **options)
        g = torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape).remainder(7).requires_grad_()
        first = torch.autograd.grad(y, (x, weight, bias), g, create_graph=True)
        penalty = sum((k + 1) * each.square().sum() for k, each in enumerate(first))
        return torch.autograd.grad(penalty, (x, weight, g))

    theirs = twice(F.conv2d)
    mine = twice(lambda *tensors, **how: conv2d(*tensors, **how, implementation=way))
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_a_third_gradient_through_numpy_is_refused_not_zero():
    x, weight, _ = small()
    y = conv2d(x, weight, implementation="numpy")
    g = torch.ones_like(y, requires_grad=True)
    first = torch.autograd.grad(y, weight, g, create_graph=True)[0]
    second = torch.autograd.grad(first.square().sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        second.square().sum().backward()


@every_way
def test_one_image_without_a_batch(way):
    x, weight, bias = small()
    alone = x.detach()[1].requires_grad_()
    y = conv2d(alone, weight, bias, padding=1, implementation=way)
    right = F.conv2d(x[1], weight, bias, padding=1)
    assert torch.equal(y, right)
    g = torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape)
    mine = torch.autograd.grad(y, (alone, weight, bias), g)
    theirs = torch.autograd.grad(right, (x, weight, bias), g)
    assert torch.equal(mine[0], theirs[0][1])
    assert all(torch.equal(a, b) for a, b in zip(mine[1:], theirs[1:], strict=True))


@every_way
def test_any_memory_layout(way):
    x, weight, bias = small(groups=2)
    g = torch.randn(1, 6, 1, 7, dtype=x.dtype).expand(2, 6, 5, 7)  # a stride of 0
    expected = torch.autograd.grad(F.conv2d(x, weight, bias, groups=2), (x, weight, bias), g)
    layouts = [
        lambda t: t.to(memory_format=torch.channels_last),
        lambda t: t.transpose(2, 3).contiguous().transpose(2, 3),
        lambda t: torch.stack([t, t], -1)[..., 0],
    ]
    for layout in layouts:
        operands = [layout(x.detach()).requires_grad_(), layout(weight.detach()).requires_grad_()]
        y = conv2d(*operands, bias, groups=2, implementation=way)
        found = torch.autograd.grad(y, (*operands, bias), g)
        for mine, theirs in zip(found, expected, strict=True):
            assert torch.allclose(mine, theirs, rtol=1e-13, atol=1e-13)


@every_way
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_shorter_types_keep_their_type(way, dtype):
    x, weight, bias = small(dtype=dtype)
    y = conv2d(x, weight, bias, padding=1, implementation=way)
    assert y.dtype == dtype
    g = torch.ones_like(y)
    y.backward(g)
    wide = [each.detach().double().requires_grad_() for each in (x, weight, bias)]
    F.conv2d(*wide, padding=1).backward(g.double())
    for short, exact in zip((x, weight, bias), wide, strict=True):
        assert short.grad.dtype == dtype
        # whole numbers below 2¹¹: all types but bfloat16 hold each of them
        tolerance = 2**-7 if dtype == torch.bfloat16 else 0
        assert torch.allclose(short.grad.double(), exact.grad, rtol=tolerance, atol=tolerance * 8)


@every_way
def test_autocast(way):
    x, weight, bias = small(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = conv2d(x, weight, bias, padding=1, implementation=way)
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert [each.grad.dtype for each in (x, weight, bias)] == [torch.float32] * 3


@pytest.mark.parametrize("mask", list(np.ndindex(2, 2, 2))[1:])
@every_way
def test_nothing_is_computed_in_vain(monkeypatch, way, mask):
    asked = []

    def spy(*operands):
        asked.append(operands[-1])
        return arithmetic.IMPLEMENTATIONS[way](*operands)

    monkeypatch.setitem(function.IMPLEMENTATIONS, "spy", spy)
    operands = [
        each.detach().requires_grad_(bool(wanted))
        for each, wanted in zip(small(), mask, strict=True)
    ]
    conv2d(*operands, implementation="spy").sum().backward()
    assert asked == [tuple(map(bool, mask))]
    assert [each.grad is not None for each in operands] == list(map(bool, mask))


@every_way
def test_without_a_bias(way):
    x, weight, _ = small()
    conv2d(x, weight, implementation=way).sum().backward()
    theirs = small()
    F.conv2d(*theirs[:2]).sum().backward()
    assert torch.equal(weight.grad, theirs[1].grad)


@every_way
def test_an_empty_batch(way):
    x, weight, bias = small()
    none = x.detach()[:0].requires_grad_()
    conv2d(none, weight, bias, implementation=way).sum().backward()
    assert none.grad.shape == (0, 4, 7, 8)
    assert not weight.grad.any() and not bias.grad.any()


# ---- torch.func and torch.compile ------------------------------------------------------------


@of_tensors
def test_each_images_gradient_by_vmap(way):
    x, weight, bias = (each.detach() for each in small(groups=2))

    def loss(weight, bias, image, scale):
        y = conv2d(image[None], weight, bias, padding=1, groups=2, implementation=way)
        return (y * scale).sum()

    scales = torch.tensor([1.0, -3.0], dtype=x.dtype)
    each = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)), in_dims=(None, None, 0, 0))
    found = each(weight, bias, x, scales)
    for n in range(2):
        alone = torch.func.grad(loss, argnums=(0, 1))(weight, bias, x[n], scales[n])
        assert all(torch.equal(a[n], b) for a, b in zip(found, alone, strict=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # by PyTorch's compiler
@of_tensors
@pytest.mark.parametrize("rule", [None, ours.sign], ids=["exact", "sign"])
def test_it_compiles_in_one_piece(way, rule):
    torch.compiler.reset()

    def run(x, weight, bias):
        how = {"stride": 2, "padding": (1, 0), "groups": 2}
        return conv2d(x, weight, bias, **how, implementation=way, rule=rule).square().sum()

    results = []
    for function_ in (run, torch.compile(run, backend="aot_eager", fullgraph=True)):
        operands = small(groups=2)
        function_(*operands).backward()
        results.append([each.grad for each in operands])
    for eager, compiled in zip(*results, strict=True):
        assert torch.allclose(eager, compiled, rtol=1e-13, atol=1e-10)


# ---- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            {"implementation": "cudnn"},
            ValueError,
            "known are aten, unfold, correlate, numpy, triton",
        ),
        ({"stride": 0}, GeometryError, "stride"),
        ({"padding": "same", "stride": 2}, GeometryError, "same"),
        ({"groups": 3}, GeometryError, "groups"),
        ({"dilation": 9}, GeometryError, "spans"),
    ],
    ids=str,
)
def test_what_cannot_be_says_why(arguments, error, words):
    with pytest.raises(error, match=words):
        conv2d(*small(), **arguments)


def test_shapes_and_types_say_what_was_needed():
    x, weight, bias = small()
    with pytest.raises(ShapeError, match=r"bias has shape \(5,\): needed is \(6,\)"):
        conv2d(x, weight, bias[:5])
    with pytest.raises(ShapeError, match="x has 2 axes"):
        conv2d(x[0, 0], weight)
    with pytest.raises(TypeError, match=r"x float64, weight float32.*\.to\(dtype\)"):
        conv2d(x, weight.float())


# ---- rules -----------------------------------------------------------------------------------


def by_rule(rule, way="aten", **options):
    operands = small(options.get("groups", 1))
    y = conv2d(*operands, **options, implementation=way, rule=rule)
    g = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    y.backward(g)
    return [each.grad for each in operands], operands, g


def exactly(g, x, weight, bias, **options):
    return torch.autograd.grad(F.conv2d(x, weight, bias, **options), (x, weight, bias), g)


@every_way
def test_a_rule_that_asks_for_the_exact_one_is_exact(way):
    found, operands, g = by_rule(lambda exact, g, x, w: exact(g, x, w), way, padding=1)
    for mine, theirs in zip(found, exactly(g, *operands, padding=1), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-13, atol=1e-12)


def changed_g(rule):
    """What a rule hands to the exact backward pass in place of g."""
    kept = []
    g = torch.randn(3, 2, 4, 5, generator=torch.Generator().manual_seed(2))
    rule(lambda g, *rest: kept.append(g), g, None, None)
    return g, kept[0]


def test_sign_keeps_signs_and_mean_size():
    g, new = changed_g(ours.sign)
    assert torch.equal(new.sign(), g.sign())
    assert torch.allclose(new.abs(), g.abs().mean().expand_as(g))


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_quantised_numbers_are_steps_and_near(bits):
    g, new = changed_g(ours.quantised(bits))
    step = g.abs().max() / (2 ** (bits - 1) - 1)
    assert torch.allclose(new / step, (new / step).round(), atol=1e-5)
    assert (new - g).abs().max() <= step / 2 * 1.0001
    assert len(new.unique()) <= 2**bits - 1
    zeros = torch.zeros(2, 2)
    assert torch.equal(ours.quantised(bits)(lambda g, *rest: g, zeros, zeros, zeros), zeros)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_top_k_keeps_the_largest(share):
    g, new = changed_g(ours.top_k(share))
    kept = new != 0
    assert kept.sum() == round(share * g.numel())
    assert torch.equal(new[kept], g[kept])
    assert share == 1 or g[kept].abs().min() >= g[~kept].abs().max()


def test_a_sampled_batch_is_some_images_scaled_up_and_the_input_gradient_whole():
    generator = torch.Generator().manual_seed(3)
    found, (x, weight, bias), g = by_rule(ours.subsampled_batch(0.5, generator), padding=1)
    whole = exactly(g, x, weight, bias, padding=1)
    assert torch.equal(found[0], whole[0])
    one_by_one = [
        exactly(2 * g[n : n + 1], x[n : n + 1], weight, bias, padding=1) for n in range(2)
    ]
    assert any(torch.allclose(found[1], each[1]) for each in one_by_one)
    assert any(torch.allclose(found[2], each[2]) for each in one_by_one)
    assert torch.allclose(sum(each[1] for each in one_by_one) / 2, whole[1])  # on average


def test_random_taps_are_some_taps_scaled_up():
    generator = torch.Generator().manual_seed(3)
    found, operands, g = by_rule(ours.random_taps(1 / 3, generator), padding=1)
    whole = exactly(g, *operands, padding=1)
    assert torch.equal(found[0], whole[0]) and torch.equal(found[2], whole[2])
    kept = (found[1] != 0).any(0).any(0)
    assert kept.sum() == 2  # of 3 × 2
    assert torch.allclose(found[1][..., kept], 3 * whole[1][..., kept])


@pytest.mark.slow
def test_over_many_draws_the_random_rules_are_the_exact_gradient():
    generator = torch.Generator().manual_seed(4)
    for rule in (ours.random_taps(0.5, generator), ours.subsampled_batch(0.5, generator)):
        draws = [by_rule(rule, padding=1) for _ in range(300)]
        mean = torch.stack([found[1] for found, *_ in draws]).mean(0)
        _, operands, g = draws[0]
        right = exactly(g, *operands, padding=1)[1]
        # the mean of 300 draws lies within a few standard deviations, each about |gradient|/√300
        assert (mean - right).abs().max() < 0.3 * right.abs().max()
        assert F.cosine_similarity(mean.flatten(), right.flatten(), dim=0) > 0.99


def test_straight_through_rounds_what_the_products_are_made_of():
    found, (x, weight, bias), g = by_rule(ours.straight_through(lambda t: (t / 3).round()))
    rounded = [(each.detach() / 3).round().requires_grad_() for each in (x, weight)]
    right = exactly(g, *rounded, bias)
    assert all(torch.allclose(a, b) for a, b in zip(found, right, strict=True))


@pytest.mark.parametrize("share", [0, -1, 1.5])
@pytest.mark.parametrize("rule", [ours.top_k, ours.random_taps, ours.subsampled_batch])
def test_a_share_is_a_share(rule, share):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        rule(share)


@pytest.mark.parametrize("bits", [1, 0, 2.0])
def test_one_bit_is_the_sign(bits):
    with pytest.raises(ValueError, match="from 2 on"):
        ours.quantised(bits)


@pytest.mark.parametrize(
    ("rule", "error", "words"),
    [
        (lambda exact, g, x, w: exact(g, x, w)[:2], ValueError, "gave 2 values"),
        (lambda exact, g, x, w: (None, *exact(g, x, w)[1:]), ValueError, "None as grad_input"),
        (
            lambda exact, g, x, w: (exact(g, x, w)[0], w.mT, g.sum((0, 2, 3))),
            ShapeError,
            r"grad_weight of shape \(6, 4, 2, 3\): needed is \(6, 4, 3, 2\)",
        ),
    ],
    ids=["two", "none", "shape"],
)
def test_a_rule_that_gives_the_wrong_thing_is_told(rule, error, words):
    with pytest.raises(error, match=words):
        by_rule(rule)


def test_gradcheck_refuses_an_approximation():
    operands = small()
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(lambda *tensors: conv2d(*tensors, rule=ours.sign), operands)


# ---- the layer -------------------------------------------------------------------------------

LAYERS = [
    {"kernel_size": 3},
    {
        "kernel_size": (3, 2),
        "stride": 2,
        "padding": 1,
        "dilation": (1, 2),
        "groups": 2,
        "bias": False,
    },
    {"kernel_size": (2, 3), "padding": "same", "padding_mode": "circular"},
    {"kernel_size": 3, "padding": (1, 2), "padding_mode": "reflect"},
]


@every_way
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_the_layer_stands_in_for_nn_conv2d(way, options):
    theirs = nn.Conv2d(4, 6, **options)
    mine = ours.Conv2d(4, 6, **options, implementation=way)
    assert mine.load_state_dict(theirs.state_dict()) == theirs.load_state_dict(mine.state_dict())
    assert list(mine.state_dict()) == list(theirs.state_dict())
    x = small(dtype=torch.float32)[0].detach()
    y, right = mine(x), theirs(x)
    assert torch.equal(y, right)
    g = torch.ones_like(y).cumsum(-1)
    y.backward(g)
    right.backward(g)
    for (name, a), (_, b) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-4), name


def test_a_layer_like_another_shares_its_parameters():
    layer = nn.Conv2d(4, 6, (3, 2), stride=2, groups=2, padding_mode="replicate", padding=1).eval()
    twin = ours.Conv2d.like(layer, implementation="unfold", rule=ours.sign)
    assert twin.weight is layer.weight and twin.bias is layer.bias
    assert not twin.training
    x = small(dtype=torch.float32)[0]
    assert torch.equal(twin(x), layer(x))
    assert "stride=(2, 2)" in repr(twin) and "rule=sign" in repr(twin)
    assert "implementation='unfold'" in repr(twin)


# ---- comparing -------------------------------------------------------------------------------


@every_way
def test_a_comparison_of_the_exact_one_finds_nothing(way):
    found = compare_gradients(*small(2), stride=2, padding=1, groups=2, implementation=way)
    assert list(found.gaps()) == ["input", "weight", "bias"]
    assert all(gap.exact and gap.relative < 1e-14 for gap in found.gaps().values())
    assert all(gap.cosine == pytest.approx(1) for gap in found.gaps().values())
    assert str(found).count("the same") == 3


def test_a_comparison_of_a_rule_says_how_far_and_where_to():
    x, weight, bias = small()
    g = torch.randn(2, 6, 5, 7, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
    found = compare_gradients(x, weight, bias, g, rule=ours.sign)
    mine = exactly(g.sign() * g.abs().mean(), x, weight, bias)
    theirs = exactly(g, x, weight, bias)
    for gap, a, b in zip(found.gaps().values(), mine, theirs, strict=True):
        assert np.allclose(gap.mine, a) and np.allclose(gap.autograd, b)
        assert gap.error == pytest.approx((a - b).abs().max().item())
        assert gap.relative == pytest.approx(((a - b).norm() / b.norm()).item())
        cosine = F.cosine_similarity(a.flatten(), b.flatten(), dim=0).item()
        assert gap.cosine == pytest.approx(cosine)
        assert 0 < cosine < 1 and not gap.exact


def test_a_comparison_explains_a_mistake_of_ones_own():
    def mine(exact, g, x, weight):
        flipped = exact(g.flip(2, 3), x, weight).grad_weight
        return exact(g, x, weight)._replace(grad_weight=flipped)

    found = compare_gradients(*small(), padding=1, rule=mine)
    assert found.input.exact and found.bias.exact and not found.weight.exact
    assert "180" in found.why("weight")
    with pytest.raises(KeyError):
        compare_gradients(*small(bias=False)).why("bias")


def test_a_comparison_takes_one_image_and_refuses_another_shape():
    x, weight, bias = small()
    assert compare_gradients(x[0], weight, bias).weight.exact
    with pytest.raises(ShapeError, match="needed is that of the output"):
        compare_gradients(x, weight, bias, torch.ones(1, 6, 5, 7))


def test_where_there_is_no_direction_there_is_no_cosine():
    gap = ours.Gap.between(np.zeros(3), np.zeros(3))
    assert gap.relative == 0 and np.isnan(gap.cosine) and gap.exact
    gap = ours.Gap.between(np.ones(3), np.zeros(3))
    assert gap.relative == np.inf and not gap.exact


# ---- what PyTorch itself does ----------------------------------------------------------------


def test_calls_stand_under_what_called_them():
    layer, x = torch.nn.Conv2d(1, 1, 3), torch.ones(1, 1, 5, 5)
    seen = calls(lambda: layer(x).sum().backward(), "conv")
    assert seen.rows[:2] == ((0, "aten::conv2d"), (1, "aten::convolution"))
    assert (0, "ConvolutionBackward0") in seen.rows
    assert seen.rows[seen.rows.index((0, "ConvolutionBackward0")) + 1][0] == 1
    assert str(seen).startswith("aten::conv2d\n  aten::convolution\n")
    everything = calls(lambda: layer(x).sum().backward())
    assert set(seen.names) < set(everything.names)
    assert not any(name.startswith("autograd::engine") for name in everything.names)


def test_calls_are_watched_in_silence_and_an_error_passes_through(capfd):
    def fails():
        raise ValueError("this one")

    with pytest.raises(ValueError, match="this one"):
        calls(fails)
    calls(lambda: torch.ones(1))
    assert capfd.readouterr().err == ""
    print("still here", file=sys.stderr)
    assert "still here" in capfd.readouterr().err


def test_a_layer_is_examined_on_a_copy():
    layer = torch.nn.Conv2d(2, 4, (3, 2), stride=2, padding=1, groups=2)
    before = layer.weight.clone()
    found = examine(layer, (2, 2, 6, 5))
    assert found.right
    assert torch.equal(layer.weight, before)
    assert layer.weight.grad is None
    assert found.parameters == sum(each.numel() for each in layer.parameters())
    assert found.shapes == {
        "x": (2, 2, 6, 5),
        "weight": (4, 1, 3, 2),
        "bias": (4,),
        "y": (2, 4, 3, 3),
    }


def test_an_examined_layer_that_is_wrong_is_called_wrong():
    def halved(exact, grad_output, x, weight):
        return exact(grad_output / 2, x, weight)

    found = examine(Conv2d(1, 1, 3, rule=halved), (1, 1, 5, 5))
    assert not found.right
    assert str(found).endswith("as the loops have it: False")
