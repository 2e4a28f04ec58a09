"""The chapters tell the truth: their worked numbers, pictures, alt texts and solutions.

The prose and the alt texts quote the running examples; here the same numbers are computed with
the loops, which are the definition, and looked for in the page.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from convgrad import ConvGeometry, conv2d, example, exercises, loops
from convgrad.checks import random_geometry, random_operands
from convgrad.correlate import swapped
from convgrad.mutants import MUTANTS

pytest.importorskip("matplotlib")
from convgrad.figures import chapters
from convgrad.figures.grids import written

BOOK = Path(__file__).resolve().parents[1] / "book"
PAGES = {
    "sliding_window": BOOK / "part1" / "sliding_window.md",
    "weight_gradient": BOOK / "part2" / "weight_gradient.md",
}
CELL = re.compile(
    r"```\{code-cell\} python\n(?:---\n(?P<options>.*?)\n---\n)?(?P<code>.*?)```", re.S
)


def cells(page: str) -> list[tuple[str, str]]:
    """Options and code of every cell of a chapter."""
    found = CELL.finditer(PAGES[page].read_text("utf-8"))
    return [(match["options"] or "", match["code"]) for match in found]


def alt_text(page: str, call: str) -> str:
    """The alt text of the cell that draws ``call``, in one line."""
    (options,) = (options for options, code in cells(page) if call in code)
    words = re.search(r"alt: >-\n(.*?)(?=\n  figure:|\Z)", options, re.S)[1]
    return " ".join(words.split())


def spoken(grid: np.ndarray, between: str = ", ") -> str:
    """A grid as the alt texts say it: ``2 0 1, 1 3 0, 0 1 2``."""
    return between.join(" ".join(map(written, row)) for row in grid)


# ---- the worked examples -----------------------------------------------------------------


def test_the_window_worked_by_hand():
    x, weight, bias, _ = example("B").arrays()
    window = x[0, 0, 2:5, 0:3]
    y = loops.forward(x, weight, example("B").geometry) + bias[:, None, None]
    assert (weight[0, 0] * window).sum() + bias[0] == y[0, 0, 2, 0] == 8
    alt = alt_text("sliding_window", "one_window(")
    assert f"are lit: {spoken(window)}" in alt
    assert f"kernel w: {spoken(weight[0, 0])}" in alt
    assert alt.endswith("cell (2, 0) lit: 8.")


def test_one_pixel_leaves_the_kernel_turned():
    x, weight, _, _ = example("A").arrays()
    y = loops.forward(x, weight, example("A").geometry)
    assert np.array_equal(y[0, 0], x[0, 0, 0, 0] * weight[0, 0, 1:3, 1:3][::-1, ::-1])
    alt = alt_text("sliding_window", "four_windows(")
    for (p, q), value in np.ndenumerate(y[0, 0]):
        i, j = 2 - p, 2 - q
        assert f"({i}, {j}), weight {written(weight[0, 0, i, j])}, product {written(value)}" in alt


def test_every_template_is_found_where_it_was_cut_out():
    search, templates, _, _ = example("E").arrays()
    responses = conv2d(search, templates, groups=3)
    alt = alt_text("sliding_window", "tracker_responses(")
    for o, response in enumerate(responses[0]):
        p, q = np.unravel_index(response.argmax(), response.shape)
        assert np.array_equal(search[0, 8 * o : 8 * o + 8, p : p + 6, q : q + 6], templates[o])
        assert f"at p {p}, q {q} in map {o}" in alt
        others = np.delete(response.ravel(), response.argmax())
        assert others.max() < response.max() / 2  # "by far the largest"


def test_the_tap_worked_by_hand():
    x, weight, bias, g = example("B").arrays()
    geometry = example("B").geometry
    met = x[0, 0, 1:4, 2:5]
    tap = loops.grad_weight(g, x, geometry)[0, 0, 1, 2]
    assert (g[0, 0] * met).sum() == tap == 9
    alt = alt_text("weight_gradient", "one_tap(")
    assert f"are lit: {spoken(met)}" in alt
    assert f"gradient g: {spoken(g[0, 0])}" in alt
    assert alt.endswith("tap (1, 2) lit: 9.")

    turned_up = weight.copy()
    turned_up[0, 0, 1, 2] += 1
    assert (g * (conv2d(x, turned_up, bias) - conv2d(x, weight, bias))).sum() == tap


def test_one_pixel_leaves_g_turned():
    x, _, _, g = example("A").arrays()
    grad = loops.grad_weight(g, x, example("A").geometry)
    middle = x[0, 0, 0, 0] * g[0, 0, ::-1, ::-1]
    assert np.array_equal(grad[0, 0], np.pad(middle, 1))
    alt = alt_text("weight_gradient", "turned(")
    assert spoken(g[0, 0], " above ") in alt
    assert f"lit: {spoken(middle, ' above ')}" in alt


def test_the_row_too_many_is_the_gradient_of_a_taller_kernel():
    x, _, _, g = example("C").arrays()
    geometry = example("C").geometry
    assert (geometry.leftover, geometry.surplus) == ((1, 0), (1, 0))
    full = chapters.uncropped(x, g, geometry)
    assert full.shape == (1, 1, 4, 3)
    taller = ConvGeometry.of(x.shape, (1, 1, 4, 3), stride=2)
    assert taller.output_shape == geometry.output_shape
    assert np.array_equal(full, loops.grad_weight(g, x, taller))
    assert np.array_equal(full[:, :, :3], loops.grad_weight(g, x, geometry))
    alt = alt_text("weight_gradient", "crop(")
    assert f"{spoken(full[0, 0, :3])}, and in grey {spoken(full[0, 0, 3:])}" in alt


def test_the_two_patterns_of_one_row():
    geometry = example("C").geometry
    alt = alt_text("weight_gradient", "stride_becomes_dilation(")
    for k in range(3):
        lies = ", ".join(str(geometry.source(0, k, 0, j)[1]) for j in range(3))
        meets = ", ".join(str(geometry.source(0, q, 0, k)[1]) for q in range(3))
        assert f"q {k} it lies on cells {lies}" in alt or f"q {k} on cells {lies}" in alt
        assert f"tap j {k} it lies on cells {meets}" in alt or f"j {k} on cells {meets}" in alt


def test_the_player_fills_the_tap_with_the_same_number():
    widgets = pytest.importorskip("convgrad.widgets")
    player = widgets.ContributionPlayer(example("B"), target="weight", order="tap")
    assert player.gradients.grad_weight[0, 0, 1, 2] == 9


def test_the_unswapped_convolution_has_the_right_shape_and_wrong_numbers():
    x, _, _, g = example("C").arrays()
    geometry = example("C").geometry
    right, wrong = (
        loops.grad_weight(g, x, geometry),
        MUTANTS["swap_stride_dilation"](g, x, geometry),
    )
    assert wrong.shape == right.shape
    assert not np.array_equal(wrong, right)


# The proofs on a page print True for each example; only the blind test is shown to fail.
PROOFS = {"sliding_window": (5 + 3, 0), "weight_gradient": (1 + 3 + 1 + 4 + 1 + 1, 1)}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_proves_by_running_holds(page):
    pytest.importorskip("torch")
    pytest.importorskip("anywidget")
    scope, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for _, code in cells(page):
            exec(compile(code, page, "exec"), scope)
    words = re.findall(r"\b(?:True|False)\b", printed.getvalue())
    assert (words.count("True"), words.count("False")) == PROOFS[page]


# ---- what is derived ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_the_surplus_is_the_leftover_divided_by_the_dilation(seed):
    geometry = random_geometry(np.random.default_rng(seed))
    search = swapped(geometry)
    for axis, (taps, places) in enumerate([(geometry.KH, search.OH), (geometry.KW, search.OW)]):
        leftover, dilation = geometry.leftover[axis], geometry.dilation[axis]
        assert places == taps + leftover // dilation == taps + geometry.surplus[axis]
        if geometry.stride[axis] <= dilation:  # the exercise "No surplus"
            assert places == taps


@pytest.mark.parametrize("seed", range(20))
def test_turning_image_and_kernel_turns_the_output(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (1, 1, *rng.integers(3, 7, 2)))
    weight = rng.integers(-4, 5, (1, 1, *rng.integers(1, 4, 2)))
    both = conv2d(x[..., ::-1, ::-1], weight[..., ::-1, ::-1])
    assert np.array_equal(both, conv2d(x, weight)[..., ::-1, ::-1])


@pytest.mark.parametrize("stride", range(1, 5))
@pytest.mark.parametrize("taps", range(1, 5))
def test_how_many_windows_read_a_row(stride, taps):
    geometry = ConvGeometry(C=1, H=30, W=1, O=1, KH=taps, KW=1, stride=(stride, 1))
    for h in range(taps, 30 - taps - stride):
        readers = int((geometry.rows == h).sum())
        assert readers == h // stride - (h - taps) // stride
        assert readers in (taps // stride, -(-taps // stride))


def test_each_image_alone_by_groups():
    """The exercise "A sum over images": one group an image keeps the images apart."""
    draw = random_operands(
        ConvGeometry(N=3, C=2, H=5, W=6, O=4, KH=2, KW=3), np.random.default_rng(7)
    )
    x, g, geometry = draw.x, draw.grad_output, draw.geometry
    N, O = geometry.N, geometry.O
    kernels = g.reshape(N * O, 1, geometry.OH, geometry.OW)
    found = conv2d(x.swapaxes(0, 1), kernels, groups=N)  # c (n o) i j
    alone = found.reshape(geometry.C, N, O, 2, 3).transpose(1, 2, 0, 3, 4)
    for n in range(N):
        single = ConvGeometry.of(x[n : n + 1].shape, draw.weight.shape)
        assert np.array_equal(alone[n], loops.grad_weight(g[n : n + 1], x[n : n + 1], single))
    assert np.array_equal(alone.sum(axis=0), loops.grad_weight(g, x, geometry))


# ---- pictures ----------------------------------------------------------------------------


def test_pictures_hold_the_numbers_of_their_examples():
    assert chapters.one_window().words().count("+ 1 =") == 1
    captions = chapters.four_windows().words()
    assert {"0 · 2 = 0", "2 · 2 = 4", "1 · 2 = 2", "3 · 2 = 6"} <= set(captions)
    assert "times 2," in chapters.turned().words()
    assert {"p = 0, q = 0", "p = 1, q = 1", "x with its border"} <= set(captions)
    assert {"85", "68", "40"} <= set(chapters.crop().words())
    assert chapters.stride_becomes_dilation().words().count("q = 0") == 1


def test_what_stride_dilation_and_padding_do_to_one_row():
    alt = alt_text("sliding_window", "index_map(")
    said = dict(re.findall(r"With (stride 2|dilation 2|padding 1) (.*?)\.(?= With|$)", alt))
    figure = chapters.index_map()
    assert {*said} <= {*figure.words()}
    for name, words in said.items():
        step = {"stride": 1, "dilation": 1, "padding": 0} | {name[:-2]: int(name[-1])}
        for q in range(3):
            cells = [step["stride"] * q + step["dilation"] * j - step["padding"] for j in range(3)]
            listed = ", ".join(map(written, cells))
            assert re.search(rf"on (cells )?{listed} at q {q}", words), (name, q)
    assert [figure.words().count(f"w{j}") for j in "₀₁₂"] == [9, 9, 9]


def test_the_blocks_are_those_of_the_geometry():
    geometry = example("D").geometry
    words = chapters.blocks().words()
    assert [words.count(f"c = {c}") for c in range(geometry.CG)] == [geometry.O] * geometry.CG
    assert words.count("c = 0") + words.count("c = 1") == geometry.O * geometry.C // geometry.groups
    alt = alt_text("sliding_window", "blocks(")
    for kernels, channels in (((0, 1, 2), (0, 1)), ((3, 4, 5), (2, 3))):
        for o in kernels:
            assert tuple(geometry.channel(o, c) for c in range(geometry.CG)) == channels
        listed = ", ".join(map(str, kernels))
        assert f"Kernels {listed} read channels {channels[0]} and {channels[1]}" in alt
    assert geometry.channel(4, 1) == 3  # as the text says


def test_the_frame_is_the_first_window_of_the_padded_pixel():
    words = chapters.four_windows().words()
    assert words.count("0") >= 24  # a border of 5×5 without its middle
    geometry = example("A").geometry
    assert geometry.cell(*geometry.source(0, 0, 2, 2)) == (0, 0)


def test_the_blocks_and_images_of_the_grouped_search():
    search = swapped(example("D").geometry)
    assert example("D").geometry.x_shape == (3, 4, 5, 4)
    assert search.x_shape == (2, 6, 5, 4)


def test_a_ring_lies_on_each_peak():
    figure = chapters.tracker_responses()
    assert len([a for a in figure.findobj() if a.get_gid() == "cg-peak"]) == 3
    assert {"most at p = 3, q = 5", "most at p = 8, q = 2", "most at p = 14, q = 11"} <= set(
        figure.words()
    )


# ---- exercises ---------------------------------------------------------------------------


def exercise_cells(page: str) -> list[tuple[str, str, bool]]:
    """Key, code and whether it is the folded solution, of each cell that calls ``check``."""
    found = []
    for options, code in cells(page):
        key = re.search(r'exercises\.get\("([\w-]+)"\)\.check\(', code)
        if key:
            found.append((key[1], code, "hide-cell" in options))
    return found


CHECKED = [(page, *each) for page in PAGES for each in exercise_cells(page)]


@pytest.mark.parametrize(
    ("page", "key", "code", "solved"),
    CHECKED,
    ids=[f"{key}-{'solution' if solved else 'starter'}" for _, key, _, solved in CHECKED],
)
def test_starters_fail_and_solutions_pass(page, key, code, solved):
    module = ast.parse(code)
    verdict = ast.Expression(module.body.pop().value)
    scope = {"np": np, "conv2d": conv2d, "exercises": exercises}
    exec(compile(module, page, "exec"), scope)
    result = eval(compile(verdict, page, "eval"), scope)
    assert result.passed == solved, result.message


@pytest.mark.parametrize(
    ("page", "key", "code", "solved"),
    CHECKED,
    ids=[f"{key}-{'solution' if solved else 'starter'}" for _, key, _, solved in CHECKED],
)
def test_starters_and_solutions_are_those_of_the_bank(page, key, code, solved):
    kept = exercises.get(key).solution if solved else exercises.get(key).starter
    shown = ast.parse(code).body[:-1]
    assert [ast.unparse(line) for line in shown] == [
        ast.unparse(line) for line in ast.parse(kept).body
    ]


def test_every_starter_has_its_solution():
    for page in PAGES:
        keys = [(key, solved) for key, _, solved in exercise_cells(page)]
        assert {key for key, solved in keys if solved} == {
            key for key, solved in keys if not solved
        }
        assert len(keys) >= 4


def test_every_exercise_on_a_page_is_one_of_its_chapter():
    for page, path in PAGES.items():
        for key in re.findall(r'exercises\.get\("([\w-]+)"\)', path.read_text("utf-8")):
            assert exercises.get(key).chapter == page
