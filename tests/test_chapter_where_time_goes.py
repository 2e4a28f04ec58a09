"""*Where the time goes* tells the truth: numbers, pictures, errors; and nothing was measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from pages import PAGES, alt_text, cells
from test_exercises import solution

from convgrad import ConvGeometry, example, exercises, loops
from convgrad.bench import report
from convgrad.checks import random_operands
from convgrad.costs import intensity, traffic
from convgrad.exercises.where_time_goes import TOY
from convgrad.im2col import unfold
from convgrad.implicit import TARGETS, gemm
from convgrad.layers import TABLE
from convgrad.roofline import CARDS, MAPS, Card, bound
from convgrad.schedule import Schedule, Tile

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import where_time_goes as pictures

PAGE = "where_time_goes"
PROSE = " ".join(PAGES[PAGE].read_text("utf-8").split())
LAYER = example("F").geometry
H100 = CARDS["H100"]


def lesson(name: str):
    (code,) = (code for _, code in cells(PAGE) if f"def {name}(" in code and "check(" not in code)
    scope = {"np": np, "unfold": unfold}
    if name == "summed":
        scope["digits"] = lesson("digits")
    exec(code, scope)
    return scope[name]


# ---- the first picture -----------------------------------------------------------------------


def test_what_the_hand_does_first():
    plain = {which: bound(LAYER, which, H100, "float16") for which in MAPS}
    assert len(set(plain.values())) == 1  # "the three marks fall together"
    (one,) = set(plain.values())
    assert abs(one.intensity / H100.roof("float16").ridge - 1) < 0.05  # "at the corner"
    copied = bound(LAYER, "forward", H100, "float16", columns=True)
    assert 9.5 < copied.bytes / one.bytes < 10.5  # "ten times as many"
    assert copied.limit == "memory" and copied.tflops < one.tflops / 9
    tiles = {which: bound(LAYER, which, H100, "float16", tile=128) for which in MAPS}
    for which in ("forward", "grad_input"):
        assert tiles[which].tflops > 0.98 * one.tflops  # "stay where they are"
    assert 0.02 < tiles["grad_weight"].tflops / one.tflops < 0.05  # "a few hundredths"
    shares = [
        bound(LAYER, "grad_weight", H100, "float16", tile=128, splits=s) for s in (1, 13, 26, 27)
    ]
    speeds = [each.tflops for each in shares]
    assert speeds[0] < speeds[1] < speeds[2] > speeds[3]
    assert shares[2].limit == "memory" and [each.waves for each in shares] == [1, 1, 1, 2]
    assert shares[3].programs - 132 == 3  # "three of them need a wave of their own"
    assert shares[3].share == pytest.approx(shares[2].share / 2, rel=0.05)  # "half is gone"


# ---- the roof --------------------------------------------------------------------------------


def test_short_numbers_move_the_ridge_to_the_right():
    for name in ("T4", "L4", "A100-SXM4-80GB", "H100"):
        assert CARDS[name].roof("float16").ridge > 3 * CARDS[name].roof("float32").ridge


def test_what_the_table_of_layers_shows():
    for name, layer in {"example F": LAYER, **TABLE}.items():
        limits = {
            precision: bound(layer, "forward", H100, precision).limit
            for precision in ("float32", "float16")
        }
        if name.startswith("depthwise"):
            assert set(limits.values()) == {"memory"}
            for card in CARDS.values():  # "on every card and in every precision"
                for precision in ("float32", "tf32", "bfloat16", "float16"):
                    assert bound(layer, "forward", card, precision).limit == "memory"
        assert intensity(layer, 2) == 2 * intensity(layer, 4)
    assert bound(LAYER, "forward", H100, "float32").limit == "arithmetic"
    assert bound(LAYER, "forward", H100, "float16").limit == "memory"
    for layer in TABLE.values():
        assert bound(layer, "forward", H100, "float16", columns=True).limit == "memory"
        if layer.KH == 3 and layer.groups == 1 and layer.C >= 128 and layer.stride == (1, 1):
            assert bound(layer, "forward", H100, "float16").limit == "arithmetic"


def test_bytes_of_example_f():
    plain, columns = traffic(LAYER), traffic(LAYER, columns=True)
    assert plain == 4 * (2 * 32 * 64 * 56 * 56 + 64 * 64 * 9)
    assert columns - plain == 4 * 2 * 9 * 32 * 64 * 56 * 56


# ---- tiles and waves -------------------------------------------------------------------------


def test_the_sizes_of_the_three_products():
    large = Tile(128, 128, 32)
    assert {t: Schedule(LAYER, t, tile=large).tiles for t in TARGETS} == {
        **{"weight": 5, "forward": 784, "input": 784}
    }
    assert gemm(LAYER, "weight")[:3] == (64, 576, 100_352)
    twice = replace(LAYER, N=64)
    assert Schedule(twice, "forward", tile=large).tiles == 2 * 784
    assert Schedule(twice, "weight", tile=large).tiles == 5  # "none more"


def plan(splits: int) -> Schedule:
    return Schedule(TOY, tile=Tile(16, 16, 1), splits=splits, processors=4)


def test_the_card_with_four_multiprocessors():
    assert gemm(TOY)[:3] == (16, 72, 36)
    four = Card(1, 1, 1, 1, memory=1e9, multiprocessors=4)
    found = {s: bound(TOY, "grad_weight", four, tile=16, splits=s) for s in (1, 3, 4)}
    assert [each.programs for each in found.values()] == [5, 15, 20]
    assert [each.waves for each in found.values()] == [2, 4, 5]
    assert found[1].share == pytest.approx(16 * 72 * 36 / (2 * 4 * 16**2 * 36)) == 72 / 128
    assert found[4].share == pytest.approx(0.9)  # only the empty half of a tile is lost
    assert {s: plan(s).time for s in (1, 3, 4)} == {1: 72, 3: 48, 4: 45}
    for words in ("these take 48 steps instead of 72", "and 45 steps are enough"):
        assert words in PROSE


def test_the_picture_of_the_waves():
    figure = pictures.waves(TOY, 16, 4)
    alt = alt_text(PAGE, "pictures.waves(")
    for k, (splits, ax) in enumerate(zip((1, 3, 4), figure.axes, strict=True)):
        boxes = [p for p in ax.patches if isinstance(p, Rectangle) and "tile" in p.get_label()]
        runs = plan(splits).runs
        drawn = {(b.get_x(), b.get_y(), b.get_width(), b.get_label()) for b in boxes}
        assert drawn == {
            (run.start, run.processor, run.end - run.start, f"tile {run.program % 5}")
            for run in runs
        }
        end = plan(splits).time
        words = f"{splits} share{'s' * (splits > 1)}"
        assert f"{words}: {end} steps" in figure.words()
        assert f"{words}: " in alt and f"step {end}" in alt, k
    assert "fifteen boxes of 12" in alt and "twenty boxes of 9" in alt


@pytest.mark.parametrize("splits", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("tile", [5, 16, 100])
def test_tiles_and_shares_give_the_same_gradient(tile, splits):
    geometry = ConvGeometry(N=2, C=3, H=7, W=6, O=5, KH=3, KW=2, stride=(2, 1), padding=1)
    for of in (TOY, geometry):
        _, x, _, g = random_operands(of, np.random.default_rng(splits))
        ours = lesson("in_tiles")(g, x, of, tile, splits)
        assert np.array_equal(ours, loops.grad_weight(g, x, of))


def test_the_shares_of_the_kernels():
    pytest.importorskip("triton")
    from convgrad.kernels import blocks, device

    parts, share, K = blocks.split(LAYER, tiles=5)
    assert parts * 5 >= device.programs_at_once() - 5
    assert parts * share * K >= 100_352


# ---- digits ----------------------------------------------------------------------------------


def test_the_three_numbers_by_hand():
    digits = lesson("digits")
    row = ConvGeometry(C=1, H=1, W=3, O=1, KH=1, KW=2)
    x = np.array([2049.0, 2051, 2053]).reshape(row.x_shape)
    weight, g = (np.array(v, float).reshape(1, 1, 1, 2) for v in ([1, -1], [1, 2]))
    found = []
    for count in (24, 11):
        cut = digits(x, count)
        y, slope = loops.forward(cut, weight, row), loops.grad_weight(g, cut, row)
        found.append((y.ravel().tolist(), slope.ravel().tolist()))
    assert found == [([-2, -2], [6151, 6157]), ([-4, 0], [6152, 6156])]
    assert digits(x, 11).ravel().tolist() == [2048, 2052, 2052]
    assert f"{2049:b}" == "100000000001" and "100000000001" in PROSE


def test_digits_are_those_of_pytorchs_types():
    torch = pytest.importorskip("torch")
    digits = lesson("digits")
    some = np.random.default_rng(3).standard_normal(20_000).astype(np.float32)
    some = np.concatenate([some, np.arange(-3000, 3000, dtype=np.float32)])
    for dtype, each in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        (count,) = (form.digits for form in pictures.FORMATS if form.name == each)
        theirs = torch.from_numpy(some).to(dtype).double().numpy()
        normal = (np.abs(some) > 1e-4) | (some == 0)
        assert np.array_equal(digits(some, count)[normal], theirs[normal])
        info = torch.finfo(dtype)
        assert info.eps == 2.0 ** (1 - count)
        form = next(form for form in pictures.FORMATS if form.name == each)
        assert 1 + form.exponent + form.fraction == info.bits == 16
    assert torch.finfo(torch.float16).max == 65504 and "65,504" in PROSE


def test_tf32_is_float32_in_range_and_float16_in_digits():
    forms = {form.name: form for form in pictures.FORMATS}
    assert forms["TF32"].exponent == forms["float32"].exponent == forms["bfloat16"].exponent == 8
    assert forms["TF32"].digits == forms["float16"].digits == 11
    assert (forms["float32"].digits, forms["bfloat16"].digits) == (24, 8)


def test_the_picture_of_the_formats():
    figure = pictures.formats()
    boxes = [p for p in figure.axes[0].patches if isinstance(p, Rectangle)]
    assert len(boxes) == sum(1 + form.exponent + form.fraction for form in pictures.FORMATS)
    alt = alt_text(PAGE, "pictures.formats(")
    for form in pictures.FORMATS:
        assert form.name in figure.words()
        assert re.search(rf"{form.name}\b.*?\b{form.exponent}\b.*?\b{form.fraction}\b", alt)


@pytest.fixture(scope="module")
def long_sum():
    of = ConvGeometry(N=8, C=4, H=64, W=64, O=4, KH=3, KW=3, padding=1)
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal(shape) for shape in (of.x_shape, of.output_shape))
    G = g.transpose(1, 0, 2, 3).reshape(of.O, -1)
    X = unfold(x, of).transpose(1, 0, 2).reshape(-1, G.shape[1])
    assert np.allclose((G @ X.T).reshape(of.weight_shape), loops_free(g, x, of))
    return G, X


def loops_free(g, x, geometry):
    from convgrad.windows import grad_weight

    return grad_weight(g, x, geometry)


def off(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def test_what_the_page_says_of_the_errors(long_sum):
    G, X = long_sum
    assert G.shape[1] == 32_768 and "32,768 windows" in PROSE
    digits, summed, exact = lesson("digits"), lesson("summed"), G @ X.T
    rounded = {count: off(digits(G, count) @ digits(X, count).T, exact) for count in (24, 11, 8)}
    assert rounded[24] < 1e-7 and 1e-4 < rounded[11] < 1e-3 and 1e-3 < rounded[8] < 5e-3
    kept = off(summed(digits(G, 8), digits(X, 8), 24), exact)
    assert kept == pytest.approx(rounded[8], rel=0.01)  # "nothing more is lost"
    short = off(summed(digits(G, 8), digits(X, 8), 8), exact)
    assert 0.15 < short < 0.2  # "nearly a fifth of the gradient is noise"
    half = off(summed(digits(G, 11), digits(X, 11), 11), exact)
    assert kept < half < short


def test_the_switches_begin_as_the_page_says():
    torch = pytest.importorskip("torch")
    assert torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32


# ---- what was measured: nothing --------------------------------------------------------------


def test_no_table_where_nothing_was_measured(tmp_path: Path):
    said = report.on_gpu(tmp_path / "gpu.json")
    assert said.startswith("No GPU was measured for this book") and "make bench-gpu" in said
    assert "|" not in said


def test_the_table_where_something_was_measured(tmp_path: Path):
    row = {
        "milliseconds": 1.5,
        "times_torch": 3.0,
        "tflops": 2.0,
        "roofline_share": 0.25,
        "same_bits": False,
        "off_torch": 1e-6,
    }
    kept = tmp_path / "gpu.json"
    record = {
        "machine": {"card": "A card"},
        "roof": {"source": "data sheet"},
        "layers": {"F": {"types": {"float32": {"grad_weight": {"split_k": row}}}}},
        "not_measured": [],
    }
    kept.write_text(json.dumps(record), "utf-8")
    said = report.on_gpu(kept)
    assert said.startswith("Measured on A card; the roof is from a data sheet.")
    assert "| F | float32 | grad_weight | split_k | 1.5 | 3 | 25% | no |" in said


def test_the_page_says_that_nothing_was_measured():
    assert "nothing on this page was measured on a GPU" in PROSE
    assert not re.search(r"\bwe measured\b|\bour measurements?\b", PROSE)


# ---- exercises and derivations ---------------------------------------------------------------


BENT = {
    "time-write-waves": {
        "round the tiles down": ("-(-geometry.OG // tile)", "geometry.OG // tile"),
        "of one group": ("geometry.groups * rows * columns", "rows * columns"),
        "channels of its group alone": ("geometry.CG *", "geometry.C *"),
        "without groups": (
            "    tiles = geometry.groups * rows",
            "    rows = -(-geometry.O // tile)\n"
            "    columns = -(-geometry.C * geometry.KH * geometry.KW // tile)\n"
            "    tiles = rows",
        ),
        "for each channel and tap": (" * geometry.KH * geometry.KW", ""),
        "waves down": ("-(-programs // multiprocessors)", "programs // multiprocessors"),
        "shares are missing": ("tiles * splits", "tiles"),
        "those of the tiles": ("-(-programs // m", "-(-tiles // m"),
    },
    "time-write-digits": {
        "cut off": ("np.round(", "np.trunc("),
        "too many": (
            "fraction, exponent = np.frexp(x)",
            "fraction, exponent = np.frexp(x); count = count + 1",
        ),
        "too few": (
            "fraction, exponent = np.frexp(x)",
            "fraction, exponent = np.frexp(x); count = count - 1",
        ),
        "whole numbers": ("return np.ldexp(kept, exponent - count)", "return np.round(x)"),
        "no leading digit": (
            "fraction, exponent = np.frexp(x)",
            "exponent = np.floor(np.log2(np.abs(x))) + 1; fraction = x / 2**exponent\n"
            "    return np.round(fraction * 2.0**count) * 2.0 ** (exponent - count)",
        ),
    },
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("key", "words"), [(key, words) for key, each in BENT.items() for words in each]
)
def test_a_mistake_gets_its_own_words(key, words):
    right, wrong = BENT[key][words]
    exercise = exercises.get(key)
    assert right in exercise.solution
    scope = {"np": np}
    exec(exercise.solution.replace(right, wrong), scope)
    name = re.search(r"def (\w+)", exercise.starter)[1]
    verdict = exercise.check(scope[name])
    assert not verdict.passed
    assert words in verdict.message, verdict.message


def test_solutions_pass_again_and_again():
    for key in BENT:
        for _ in range(5):
            assert exercises.get(key).check(solution(exercises.get(key))).passed


def test_how_many_channels_leave_the_slope():
    for channels, precision, limit in (
        *((8, "float32", "memory"), (9, "float32", "arithmetic")),
        *((64, "float16", "memory"), (66, "float16", "arithmetic")),
    ):
        many = ConvGeometry(N=10**5, C=channels, H=8, W=8, O=channels, KH=3, KW=3, padding=1)
        assert bound(many, "forward", H100, precision).limit == limit, (channels, precision)
        itemsize = {"float32": 4, "float16": 2}[precision]
        assert intensity(many, itemsize) == pytest.approx(9 * channels / itemsize, rel=1e-3)


def test_how_many_shares_are_best():
    def share(tiles: int, splits: int, multiprocessors: int = 132) -> float:
        waves = -(-tiles * splits // multiprocessors)
        return tiles * splits / (waves * multiprocessors)

    for tiles in range(1, 133):
        fit = 132 // tiles
        one_wave = [share(tiles, splits) for splits in range(1, fit + 1)]
        assert max(one_wave) == one_wave[-1] > 0.5
        if 132 % tiles == 0:
            assert one_wave[-1] == 1
        assert 132 - fit * tiles < tiles  # "fewer places stay empty than there are tiles"
    assert share(5, 26) == 130 / 132 and share(67, 1) == 67 / 132
    assert 67 * 65 == 4355 and -(-4355 // 132) == 33 and 33 * 132 - 4355 == 1
    assert share(67, 2) < share(67, 65)
