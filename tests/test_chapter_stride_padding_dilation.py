"""*Stride, padding, dilation* tells the truth: its numbers, pictures, derivations, exercises."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from pages import PAGES, alt_text, spoken

from convgrad import ConvGeometry, GeometryError, conv2d, example, loops
from convgrad.checks import random_geometry
from convgrad.exercises import get
from convgrad.exercises import stride_padding_dilation as bank
from convgrad.geometry import PADDING_MODES
from convgrad.mutants import MUTANTS
from convgrad.padding import pad
from convgrad.tables import multiplicity

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import stride_padding_dilation as pictures

PAGE = "stride_padding_dilation"
PROSE = " ".join(PAGES[PAGE].read_text("utf-8").split())


def counted(geometry: ConvGeometry) -> np.ndarray:
    """How often each cell is read, by walking through the definition's products."""
    table = np.zeros((geometry.H, geometry.W), dtype=int)
    for *_, at in loops.products(replace(geometry, N=1, C=1, O=1, groups=1)):
        if at is not None:
            table[at[2:]] += 1
    return table


# ---- sizes -----------------------------------------------------------------------------------


def test_the_row_of_the_first_picture():
    row = pictures.FITS
    assert (row.span[1], row.padded_size[1], row.OW, row.leftover[1]) == (5, 13, 3, 2)
    alt = alt_text(PAGE, "fits(")
    for q in range(row.OW):
        taps = [row.source(0, q, 0, j)[1] for j in range(3)]
        listed = ", ".join(str(v).replace("-", "−") for v in taps)
        first = str(taps[0]).replace("-", "−")
        assert re.search(rf"q {q} (the window|it) spans (cells )?{first} to {taps[-1]}", alt)
        assert f"on {listed}." in alt
    last = row.W + row.padding[1][1] - 1
    assert alt.endswith(f"Cells {last - 1} and {last} are left over.")
    words = pictures.fits().words()
    assert [words.count(f"w{j}") for j in "₀₁₂"] == [3, 3, 3]
    assert words.count("left over") == 1


@pytest.mark.parametrize("seed", range(40))
def test_the_division_with_remainder(seed):
    g = random_geometry(np.random.default_rng(seed))
    for axis, outputs in enumerate((g.OH, g.OW)):
        way, stride = g.padded_size[axis] - g.span[axis], g.stride[axis]
        assert way == stride * (outputs - 1) + g.leftover[axis]
        assert 0 <= g.leftover[axis] < stride
        fits = [q for q in range(way + 2) if stride * q + g.span[axis] <= g.padded_size[axis]]
        assert fits == list(range(outputs))


@pytest.mark.parametrize("stride", range(1, 6))
def test_as_many_inputs_share_an_output_size_as_the_stride_is_large(stride):
    sizes = [
        ConvGeometry(C=1, H=H, W=1, O=1, KH=3, KW=1, stride=(stride, 1)).OH for H in range(3, 60)
    ]
    assert [sizes.count(rows) for rows in range(1, 8)] == [stride] * 7


def test_the_row_that_is_left_over_has_no_part():
    x, weight, _, g = example("C").arrays()
    painted = x.copy()
    painted[:, :, 5] = 1000
    geometry = example("C").geometry
    assert geometry.leftover == (1, 0)
    assert np.array_equal(conv2d(painted, weight, stride=2), conv2d(x, weight, stride=2))
    assert not loops.grad_input(g, weight, geometry)[:, :, 5].any()


def test_a_leftover_of_zeros_costs_nothing():
    g = ConvGeometry(C=1, H=16, W=16, O=1, KH=7, KW=7, stride=3, padding=2)
    assert (g.leftover[0], g.padding[0][1]) == (1, 2)
    assert counted(g).min() > 0


# ---- the border ------------------------------------------------------------------------------


def test_what_the_four_borders_read():
    row = example("B").arrays().x[:, :, :1]
    alt = alt_text(PAGE, "modes(")
    figure = pictures.modes()
    for mode in PADDING_MODES:
        g = ConvGeometry(C=1, H=1, W=5, O=1, KH=1, KW=1, padding=(0, 2), padding_mode=mode)
        padded = pad(row, g)[0, 0, 0]
        before, after = (" ".join(f"{n:g}" for n in part) for part in (padded[:2], padded[-2:]))
        said = re.search(
            rf"[Mm]ode {mode}: ([\d ]+) before([^.]*?); ([\d ]+) after([^.]*?)\.", alt
        ) or (re.search(rf"[Mm]ode {mode}: ([\d ]+) before(), ([\d ]+) after()\.", alt))
        assert (said[1], said[3]) == (before, after), mode
        cells = list(map(int, g.padded_cols))
        if mode != "zeros":
            for part, (first, second) in ((said[2], cells[:2]), (said[4], cells[-2:])):
                named = re.findall(r"\d", part)
                assert named in ([str(first), str(second)], [str(first)] * (first == second))
        assert mode in [word.strip() for word in figure.words()]
    marks = [word for word in figure.words() if word.startswith("v = ")]
    assert len(marks) == 3 * 4  # all border cells that copy


def test_how_far_mirrors_and_rings_reach():
    for mode, most in (("reflect", 4), ("circular", 5)):
        sizes = {"C": 1, "H": 5, "W": 5, "O": 1, "KH": 1, "KW": 1, "padding_mode": mode}
        ConvGeometry(**sizes, padding=most)
        with pytest.raises(GeometryError, match=f"at most {most} cells"):
            ConvGeometry(**sizes, padding=most + 1)


def test_same_puts_the_odd_cell_at_the_end():
    for taps, sides in ((2, (0, 1)), (3, (1, 1)), (4, (1, 2)), (5, (2, 2))):
        g = ConvGeometry(C=1, H=1, W=9, O=1, KH=1, KW=taps, padding="same")
        assert (g.padding[1], g.OW) == (sides, 9)
    with pytest.raises(GeometryError, match="'same' needs stride 1"):
        ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, padding="same", stride=2)


# ---- how often -------------------------------------------------------------------------------


def test_the_multiplication_table():
    geometry = example("C").geometry
    rows, cols = [1, 1, 2, 1, 1, 0], [1, 1, 2, 1, 2, 1, 1]
    assert np.array_equal(counted(geometry), np.outer(rows, cols))
    assert counted(geometry)[2, 4] == 4
    alt = alt_text(PAGE, "pictures.counts(")
    assert f"row of example C is read: {', '.join(map(str, rows))}." in alt
    assert f"column is read: {', '.join(map(str, cols))}." in alt
    words = pictures.counts().words()
    assert words.count("4") == 2 + 2  # two cells, and twice as the number of a row or column
    assert words.count("0") == 7 + 1 + 2  # the last row, its count, and two index numbers


def test_the_checkerboard_and_the_blind_cells():
    plain, spread = pictures.STRIDES
    assert set(counted(plain).ravel()) == {1, 2, 4}
    table = counted(spread)
    assert (table == 0).sum() == 56
    assert round(100 * (table == 0).mean()) == 69
    assert (table[table > 0].min(), table.max()) == (1, 9)
    assert np.array_equal(table > 0, np.outer(np.arange(9) % 2 == 0, np.arange(9) % 2 == 0))
    alt = alt_text(PAGE, "never_read(")
    assert "the numbers 1, 2 and 4 in a checkerboard" in alt
    assert "1 to 9 times; the other 56 are 0" in alt
    words = pictures.never_read().words()
    assert {"81 of 81 are read", "25 of 81 are read"} <= set(words)


def test_what_the_reader_tries_in_the_explorer():
    def of(**sizes):
        return ConvGeometry(**{"C": 1, "O": 1, "KH": 3, "KW": 3, "stride": 2, "W": 7} | sizes)

    assert [(of(H=H).OH, of(H=H).leftover[0]) for H in (6, 7, 8)] == [(2, 1), (3, 0), (3, 1)]
    blind = counted(of(H=9, W=9, dilation=2)) == 0
    assert blind[1::2].all() and blind[:, 1::2].all()
    assert (counted(of(H=11, W=11, dilation=3)) > 0).mean() > 0.6  # "most cells"
    pointwise = of(H=10, W=10, KH=1, KW=1)
    assert (counted(pointwise) == 0).mean() == 0.75


def test_what_each_border_does_to_the_counts():
    tables = {mode: counted(geometry) for mode, geometry in pictures.border_modes().items()}
    assert sorted(set(tables["zeros"].ravel())) == [4, 6, 9]
    assert (tables["reflect"].min(), tables["reflect"].max()) == (4, 16)
    assert (tables["circular"] == 9).all() and (tables["replicate"] == 9).all()
    alt = alt_text(PAGE, "mode_counts(")
    assert f"inside {spoken(tables['reflect'][1:4, 1:4])}." in alt
    edge = tables["reflect"][0]
    assert edge.tolist() == [4, 8, 6, 8, 4]
    wider = counted(pictures.border_modes(padding=2, taps=5)["replicate"])
    assert wider.max() > 25  # "it is too much"
    words = pictures.mode_counts().words()
    assert words.count("9 everywhere") == 2 and {"4 to 9", "4 to 16"} <= set(words)


@pytest.mark.parametrize("seed", range(30))
def test_counts_multiply_and_are_the_gradient_of_a_sum(seed):
    g = replace(random_geometry(np.random.default_rng(seed)), N=1, C=1, O=1, groups=1)
    table = counted(g)
    assert np.array_equal(multiplicity(g), table)
    ones = np.ones(g.output_shape), np.ones(g.weight_shape)
    assert np.array_equal(loops.grad_input(*ones, g)[0, 0], table)


# ---- derivations -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_blind_rows(seed):
    """The exercise "Blind rows", on both axes."""
    g = random_geometry(np.random.default_rng(seed), padding_modes=("zeros",))
    for axis, reads in enumerate((g.rows, g.cols)):
        divisor = math.gcd(g.stride[axis], g.dilation[axis])
        inside = reads[reads >= 0]
        assert ((inside + g.padding[axis][0]) % divisor == 0).all()


@pytest.mark.parametrize("dilation", (1, 2))
@pytest.mark.parametrize(("H", "KH"), [(5, 3), (6, 3), (7, 2), (9, 4)])
def test_no_edge_on_a_ring(H, KH, dilation):
    g = ConvGeometry(
        C=1,
        H=H,
        W=H,
        O=1,
        KH=KH,
        KW=3,
        dilation=dilation,
        padding="same",
        padding_mode="circular",
    )
    assert (counted(g) == KH * 3).all()


@pytest.mark.parametrize("taps", range(1, 9))
@pytest.mark.parametrize("stride", range(1, 5))
def test_flat_inside_if_the_stride_divides_the_taps(taps, stride):
    g = ConvGeometry(C=1, H=1, W=50, O=1, KH=1, KW=taps, stride=(1, stride))
    inside = counted(g)[0, taps : -taps - stride]
    assert (len(set(inside)) == 1) == (taps % stride == 0)


# ---- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", re.findall(r"case `([\w-]+)`", PROSE))
def test_every_case_that_is_named_is_there(name):
    from test_cases import CASES

    assert name in {case["id"] for case in CASES}


def test_the_border_that_the_backward_pass_could_not_take():
    wide = ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2, padding=2)
    assert (wide.OH, wide.OW) == (6, 6)
    assert (counted(wide) == 4).all()
    assert wide.span[0] - 1 - wide.padding[0][0] < 0
    with pytest.raises(ValueError):
        MUTANTS["full_pad_negative"](np.ones(wide.output_shape), np.ones((1, 1, 2, 2)), wide)


def test_less_than_no_border_is_refused():
    with pytest.raises(GeometryError, match=r"padding is -1.*slice x"):
        ConvGeometry(C=1, H=4, W=4, O=1, KH=3, KW=3, padding=-1)


# ---- exercises -------------------------------------------------------------------------------


def test_the_answers_are_those_of_the_definition():
    assert get("geometry-sizes").answer == 4
    assert np.array_equal(get("geometry-counts").answer, counted(bank._STEPS))
    assert get("geometry-unread").answer == (counted(bank._GAPS) == 0).sum() == 28
    assert get("geometry-same").answer.tolist() == [[4, 5]]
    assert get("geometry-border").answer.tolist() == [[1, 0, 2, 1, 0, 2]]
    assert get("geometry-leftover").answer.tolist() == [[1, 2]]


def test_the_borders_asked_about_leave_four_different_counts():
    counts = bank._of_modes()
    assert {mode: table.tolist() for mode, table in counts.items()} == {
        "zeros": [3, 4, 5, 4, 3],
        "reflect": [3, 6, 7, 6, 3],
        "replicate": [6, 4, 5, 4, 6],
        "circular": [5] * 5,
    }


WRONG_READS = {
    "border kept": (
        lambda g: counted(replace(g, H=g.padded_size[0], W=g.padded_size[1], padding=0)),
        "has the size of the padded image",
    ),
    "yes or no": (lambda g: counted(g) > 0, "which cells are read, not how often|bool"),
    "shares": (lambda g: counted(g) / (g.KH * g.KW), "shares of all taps"),
    "no stride": (
        lambda g: counted(replace(g, stride=1)),
        "stride",
    ),
    "no dilation": (lambda g: counted(replace(g, dilation=1)), "dilation"),
    "no padding": (lambda g: counted(replace(g, padding=0)), "padding"),
}


@pytest.mark.parametrize(("reads", "words"), WRONG_READS.values(), ids=WRONG_READS)
def test_a_wrong_count_is_told_why(reads, words):
    def as_floats(geometry):
        return np.asarray(reads(geometry), dtype=float)

    verdict = get("geometry-read-counts").check(as_floats)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def _np_pad(sides, mode):
    return lambda x, before, after, asked: np.pad(
        x,
        sides(before, after),
        mode={"zeros": "constant", "replicate": "edge", "circular": "wrap"}.get(asked, mode),
    )


def _columns(before, after):
    return (0, 0), (before, after)


WRONG_BORDERS = {
    "sides exchanged": (
        _np_pad(lambda before, after: ((0, 0), (after, before)), "reflect"),
        "`before` and `after` are exchanged",
    ),
    "edge repeated": (_np_pad(_columns, "symmetric"), "the mirror stands on the outermost cell"),
    "always zeros": (
        lambda x, before, after, mode: np.pad(x, _columns(before, after)),
        "your border is zeros",
    ),
    "always the edge": (
        lambda x, before, after, mode: np.pad(x, _columns(before, after), mode="edge"),
        "differs|shape",
    ),
}


@pytest.mark.parametrize(("bordered", "words"), WRONG_BORDERS.values(), ids=WRONG_BORDERS)
def test_a_wrong_border_is_told_why(bordered, words):
    verdict = get("geometry-write-border").check(bordered)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def test_the_right_border_passes():
    assert get("geometry-write-border").check(_np_pad(_columns, "reflect")).passed
