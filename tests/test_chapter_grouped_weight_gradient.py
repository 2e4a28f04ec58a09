"""*The grouped weight gradient in one call* tells the truth: its numbers, pictures, alt texts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pages import alt_text, cells, spoken

from convgrad import ConvGeometry, conv2d, example, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.exercises import get
from convgrad.exercises import grouped_weight_gradient as bank
from convgrad.mutants import MUTANTS

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import grouped_weight_gradient as pictures
from convgrad.figures.chapters.shared import dealt_to

PAGE = "grouped_weight_gradient"
D = example("D").geometry


def rows(table: np.ndarray, between: str = "; ") -> str:
    """A table of names as the alt texts say it."""
    return between.join(" ".join(row) for row in table)


# ---- where the maps go ---------------------------------------------------------------------------


def test_the_tables_of_names_are_those_of_numpy():
    x = pictures.names(3, 4)
    split = x.reshape(6, 2)
    alt = alt_text(PAGE, "moved(")
    assert f"columns: {rows(x)}." in alt
    assert f"rows of 2: {rows(split)}." in alt
    assert f"rows of 6: {rows(split.T)}." in alt
    alt = alt_text(PAGE, "meeting(")
    assert f"2 rows: {rows(split.T)}." in alt
    assert f"3 rows: {rows(pictures.names(3, 6).reshape(6, 3).T)}." in alt
    alt = alt_text(PAGE, "reshaped_only(")
    alone = x.reshape(2, 6)
    assert f"transpose: {rows(split.T)}." in alt
    assert f"reshape alone: {rows(alone)}." in alt
    wrong = np.argwhere(alone != split.T).tolist()
    assert len(wrong) == 10
    assert [0, 0] not in wrong and [1, 5] not in wrong, "all but the first and the last"
    assert pictures.reshaped_only().words().count("≠") == 10


@pytest.mark.parametrize("seed", range(40))
def test_every_kernel_of_the_call_meets_its_own_image_and_group(seed):
    g = random_geometry(np.random.default_rng(seed), lambda g: g.groups > 1 and g.N > 1)
    maps = np.arange(g.N * g.C).reshape(g.N * g.groups, g.CG).T  # c m
    for n, o in itertools.product(range(g.N), range(g.O)):
        m = (n * g.O + o) // g.OG
        assert m == n * g.groups + g.group_of(o)
        for c in range(g.CG):
            assert divmod(maps[c, m], g.C) == (n, g.channel(o, c))


@pytest.mark.parametrize("seed", range(40))
def test_the_other_order_sums_over_the_images_of_one_group(seed):
    g = random_geometry(np.random.default_rng(seed), lambda g: g.groups > 1 and g.N > 1)
    x = np.arange(g.N * g.C).reshape(g.N, g.groups, g.CG)
    maps = x.transpose(2, 1, 0).reshape(g.CG, g.groups * g.N)  # c (k n)
    for o, c in itertools.product(range(g.O), range(g.CG)):
        met = maps[c, g.group_of(o) * g.N :][: g.N]
        assert [divmod(each, g.C) for each in met] == [(n, g.channel(o, c)) for n in range(g.N)]


# ---- the rules of the page -----------------------------------------------------------------------


def the_rules() -> dict[str, object]:
    """The two functions that the page defines, by name."""
    pytest.importorskip("torch")
    scope: dict[str, object] = {}
    for name in ("weight_gradient", "summed"):
        (code,) = (code for _, code in cells(PAGE) if f"def {name}(" in code)
        exec("import torch.nn.functional as F\n" + code, scope)
    return scope


@pytest.mark.parametrize("name", ["weight_gradient", "summed"])
@pytest.mark.parametrize("seed", range(60))
def test_both_rules_are_right_on_any_convolution(name, seed):
    torch = pytest.importorskip("torch")

    def symmetric(g: ConvGeometry) -> bool:
        return all(before == after for before, after in g.padding)

    rng = np.random.default_rng(seed)
    geometry = random_geometry(rng, symmetric, padding_modes=("zeros",))
    draw = random_operands(geometry, rng)
    how = (geometry.stride, tuple(each[0] for each in geometry.padding), geometry.dilation)
    operands = torch.from_numpy(draw.x), torch.from_numpy(draw.grad_output)
    found = the_rules()[name](*operands, geometry.weight_shape, *how, geometry.groups)
    assert np.array_equal(found, loops.grad_weight(draw.grad_output, draw.x, geometry))


# ---- the worked plane ----------------------------------------------------------------------------


def test_the_plane_worked_by_hand():
    x, _, _, g = example("D").arrays()
    images = x.reshape(6, 2, 5, 4).swapaxes(0, 1)
    t = conv2d(images, g.reshape(18, 1, 3, 3), groups=6)
    planes = [t[1, n * 6 + 4] for n in range(3)]
    total = sum(planes)
    assert np.array_equal(total, loops.grad_weight(g, x, D)[4, 1])
    assert total[0, 0] == -22
    alt = alt_text(PAGE, "shares(")
    for n, plane in enumerate(planes):
        assert f"Image {n}: {spoken(plane)}." in alt
    assert alt.endswith(f"of the plane: {spoken(total)}.")
    words = pictures.shares().words()
    assert words.count("+") == 2 and words.count("=") == 1
    assert "−22" in words


def test_the_widget_shows_the_same_shares():
    widgets = pytest.importorskip("convgrad.widgets")
    blocks = widgets.GroupBlocks(example("D"))
    assert blocks.step == 0
    assert blocks.per_image_gradients[:, 4, 1, 0, 0].tolist() == [5, 1, -28]


# ---- the two mistakes ----------------------------------------------------------------------------


def repeated(g: np.ndarray, x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The old calculation, for stride 1 without padding."""
    a = geometry
    copies = np.concatenate([g] * a.CG, axis=1).reshape(-1, 1, a.OH, a.OW)
    found = conv2d(x.reshape(1, -1, a.H, a.W), copies, groups=a.N * a.C)
    return found.reshape(a.N, a.CG, a.O, a.KH, a.KW).sum(axis=0).swapaxes(0, 1)


@pytest.mark.parametrize(
    ("N", "C", "O", "groups"),
    [(1, 4, 6, 2), (3, 4, 6, 2), (2, 6, 9, 3), (2, 4, 4, 4), (2, 4, 3, 1), (2, 4, 8, 4)],
)
def test_repeated_maps_deal_the_channels_like_cards(N, C, O, groups):
    geometry = ConvGeometry(N=N, C=C, H=5, W=4, O=O, KH=3, KW=2, groups=groups)
    draw = random_operands(geometry, np.random.default_rng(N + C + O + groups))
    g, x = draw.grad_output, draw.x
    wrong = repeated(g, x, geometry)
    assert np.array_equal(wrong, MUTANTS["group_interleaved"](g, x, geometry))
    right = loops.grad_weight(g, x, geometry)
    assert np.array_equal(wrong, right) == (not 1 < groups < C)


def test_the_table_of_the_dealt_channels():
    alt = alt_text(PAGE, "dealt(")
    for kernels, right, wrong in (((0, 1, 2), (0, 1), (0, 2)), ((3, 4, 5), (2, 3), (1, 3))):
        for o in kernels:
            assert tuple(D.channel(o, c) for c in range(2)) == right
            assert tuple(dealt_to(D, o, c) for c in range(2)) == wrong
        several = ", ".join(map(str, kernels))
        assert "kernels {} meet channels {} and {}".format(several, *wrong) in alt
    words = pictures.dealt().words()
    assert words.count("c = 0") == words.count("c = 1") == 12


def test_for_one_image_the_reshape_alone_is_the_old_mistake():
    geometry = ConvGeometry(N=1, C=6, H=5, W=4, O=6, KH=3, KW=2, groups=3)
    draw = random_operands(geometry, np.random.default_rng(3))
    g, x = draw.grad_output, draw.x
    t = conv2d(x.reshape(2, 3, 5, 4), g.reshape(6, 1, 3, 3), groups=3)
    assert np.array_equal(t.swapaxes(0, 1), MUTANTS["group_interleaved"](g, x, geometry))


def test_the_case_of_the_shares_has_a_surplus():
    geometry = ConvGeometry(N=4, C=4, H=8, W=7, O=6, KH=3, KW=2, stride=2, padding=1, groups=2)
    assert geometry.surplus == (1, 1)


def test_only_some_of_the_lengths_are_beyond_the_limit():
    widgets = pytest.importorskip("convgrad.widgets")
    shares = widgets.GroupBlocks(example("D")).per_image_gradients
    lengths = np.sqrt((shares**2).sum(axis=(1, 2, 3, 4)))
    assert 0 < np.sum(lengths > 150) < len(lengths)


# ---- the exercises: what people answer, and what they are told -----------------------------------


def told(key: str, function) -> str:
    verdict = get(key).check(function)
    assert not verdict.passed
    return verdict.message


def test_where_a_map_goes_is_asked_of_one_that_moves():
    n, channel = bank._IMAGE, bank._CHANNEL
    assert bank._place(D, n, channel) == (channel % 2, n * 2 + channel // 2)
    numbers = [get("onecall-where").answer, *(wrong for wrong, _ in get("onecall-where").mistakes)]
    assert len(set(numbers)) == len(numbers) >= 4


def test_one_image_without_the_transpose_is_told_so():
    def alone(g, x, groups):
        channels = x.reshape(-1, groups, *x.shape[2:])
        return conv2d(channels, g.swapaxes(0, 1), groups=groups).swapaxes(0, 1)

    assert "dealt like cards" in told("onecall-one-image", alone)


def test_one_image_without_the_last_exchange_is_told_so():
    def not_back(g, x, groups):
        channels = x.reshape(groups, -1, *x.shape[2:]).swapaxes(0, 1)
        return conv2d(channels, g.swapaxes(0, 1), groups=groups)

    assert "first two axes exchanged" in told("onecall-one-image", not_back)


def test_one_image_with_its_groups_forgotten_is_told_the_shape():
    def dense(g, x, groups):
        return conv2d(x.swapaxes(0, 1), g.swapaxes(0, 1)).swapaxes(0, 1)

    assert "4 groups" in told("onecall-one-image", dense)
    assert "(4, 1, 3, 2)" in told("onecall-one-image", dense)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("group_interleaved", "dealt like cards"),
        ("wgrad_no_crop", "Crop to the kernel's size"),
        ("swap_stride_dilation", "stride"),
        ("wgrad_batch_kept", "Sum over n"),
        ("wgrad_last_image", "image"),
    ],
)
def test_known_mistakes_in_one_call_are_named(name, words):
    message = told("onecall-any", lambda g, x, geometry: MUTANTS[name](g, x, geometry))
    assert words in message, message
