"""Pictures, asked for their words, their artists and their SVG; never for pixels."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, Rectangle

from convgrad import IMPLEMENTATIONS, ConvGeometry, example, loops
from convgrad.figures import cover, speed
from convgrad.figures.grids import CELL, Grid, Label, Link, draw, tap, window, written
from convgrad.figures.style import PALETTE, BookFigure, color, theme_css

ROOT = Path(__file__).resolve().parents[1]
SVG = "{http://www.w3.org/2000/svg}"
PADDED = ((1, 0), (0, 2))


def svg_words(svg: str) -> list[str]:
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def rectangles(figure: BookFigure) -> list[Rectangle]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def borders(figure: BookFigure, role: str, width: float) -> list[tuple[float, float]]:
    """Corners of the rectangles drawn in a role's colour with this line width."""
    return [
        patch.get_xy()
        for patch in rectangles(figure)
        if to_hex(patch.get_edgecolor()) == color(role) and patch.get_linewidth() == width
    ]


# ---- colours -----------------------------------------------------------------------------


def test_a_light_colour_has_one_dark_partner_in_figures():
    """A figure's hex colour becomes the variable of its first name; others would follow wrongly."""
    pairs = {(pair["light"].lower(), pair["dark"].lower()) for pair in PALETTE.values()}
    twice = {light for light, _ in pairs if sum(light == other for other, _ in pairs) > 1}
    # a focus ring is ink in the light; no figure has one
    assert twice <= {PALETTE["focus"]["light"].lower()}
    assert list(PALETTE).index("ink") < list(PALETTE).index("focus")


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2, 1 to 21."""

    def luminance(hexed: str) -> float:
        channels = [int(hexed[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("role", ["x", "kernel", "grad_output", "result", "ink", "muted", "error"])
def test_text_is_legible(role, theme):
    text = PALETTE[role][theme]
    assert contrast(text, PALETTE["paper"][theme]) >= 4.5
    assert contrast(text, PALETTE["panel"][theme]) >= 4.5
    if f"{role}_soft" in PALETTE:
        assert contrast(text, PALETTE[f"{role}_soft"][theme]) >= 4.5


def test_an_unknown_colour_says_which_there_are():
    with pytest.raises(KeyError, match="grad_output"):
        color("green")


def test_every_colour_is_a_variable_in_both_themes():
    css = theme_css()
    for key, pair in PALETTE.items():
        name = "--cg-" + key.replace("_", "-")
        assert f"{name}:{pair['light'].lower()};" in css
        assert css.count(f"{name}:{pair['dark'].lower()};") >= 2  # by button and by system


# ---- grids -------------------------------------------------------------------------------


def test_windows_and_taps_are_the_geometrys():
    geometry = ConvGeometry(C=1, H=5, W=6, O=1, KH=2, KW=3, stride=2, padding=1, dilation=(2, 1))
    assert window(geometry, 1, 0)[0] == geometry.source(1, 0, 0, 0)
    assert len(window(geometry, 1, 0)) == geometry.KH * geometry.KW
    assert tap(geometry, 1, 2)[-1] == geometry.source(geometry.OH - 1, geometry.OW - 1, 1, 2)
    assert len(tap(geometry, 1, 2)) == geometry.OH * geometry.OW


@pytest.mark.parametrize(
    ("value", "words"),
    [(3.0, "3"), (-2, "−2"), (0.5, "0.5"), (-0.0, "0"), (0, "0"), (None, ""), ("?", "?")],
)
def test_numbers_are_written_as_in_the_book(value, words):
    assert written(value) == words


def test_a_picture_has_every_number_once_and_the_signs_between():
    x, weight, _, grad_output = example("B").arrays()
    figure = draw(
        Grid(x[0, 0], "x", title="x"),
        "⋆",
        Grid(grad_output[0, 0], "grad_output", title="g"),
        "=",
        Grid(weight[0, 0], "kernel", title="w", caption="the kernel"),
        caption="all of it",
    )
    numbers = [*map(written, x.flat), *map(written, grad_output.flat), *map(written, weight.flat)]
    signs = ["x", "g", "w", "⋆", "=", "the kernel", "all of it"]
    assert sorted(figure.words()) == sorted(numbers + signs)
    assert svg_words(figure.svg()) == figure.words()


def test_lit_cells_have_a_border_in_their_colour_at_their_place():
    grid = Grid(np.arange(12).reshape(3, 4), "result", lit=[(1, 2), (2, 0)])
    figure = draw(grid)
    corners = {(grid.corner(cell)) for cell in [(1, 2), (2, 0)]}
    assert set(borders(figure, "result", 2)) == corners
    assert borders(figure, "x", 2) == []


def test_padding_is_hatched_and_counts_from_minus():
    grid = Grid([[1, 2], [3, 4]], "x", padding=PADDED, index=("h", "v"), lit=[(-1, 3), (0, 0)])
    figure = draw(grid)
    assert (grid.rows, grid.cols) == (range(-1, 2), range(0, 4))
    soft = [p for p in rectangles(figure) if to_hex(p.get_facecolor()) == color("padding_soft")]
    assert len(soft) == 3 * 4 - 2 * 2
    assert figure.words().count("0") == 8 + 2  # eight zeros of padding; row 0 and column 0
    assert "−1" in figure.words()  # the index of the row of padding
    assert grid.middle((1, 3))[0] - grid.middle((1, 0))[0] == 3 * CELL


def test_boxes_marks_and_links_stand_where_they_should():
    left = Grid([[1, 2], [3, 4]], "x", boxes=[(0, 1, 2, 1)], marks={(1, 0): "×2"})
    right = Grid([[5]], "result")
    figure = draw(
        left, Label("turn by\n180°", arrow=True), right, links=[Link(left, (0, 0), right, (0, 0))]
    )
    assert borders(figure, "x", 3) == [left.corner((0, 1))]
    mark = next(text for text in figure.axes[0].texts if text.get_text() == "×2")
    x, y = left.corner((1, 0))
    assert x < mark.get_position()[0] < x + CELL and y < mark.get_position()[1] < y + CELL
    arrows = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == 2
    assert {"turn by", "180°"} <= set(figure.words())


def test_rows_of_pieces_stand_one_below_the_other():
    upper, lower = Grid([[1]], title="upper"), Grid([[2]], title="lower")
    figure = draw([upper, "+"], [lower])
    assert lower.corner((0, 0))[1] > upper.corner((0, 0))[1] + CELL
    assert figure.bbox.height > 2 * CELL


def test_everything_is_inside_the_figure():
    grid = Grid(
        [[1, 2]], "x", title="a long title over two cells", caption="two\nlines", index=("h", "v")
    )
    figure = draw(grid, "=", grid_two := Grid([[3]], "result", title="y"))
    width, height = figure.bbox.width, figure.bbox.height
    for text in figure.axes[0].texts:
        x, y = text.get_position()
        assert 0 < x < width and 0 < y < height, text.get_text()
    assert grid_two.corner((0, 0))[0] + CELL < width


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Grid([[1, 2], [3]]), "rows of one length"),
        (lambda: Grid([[1]], title="x", lit=[(0, 1)]), "lie outside x: rows 0 to 0"),
        (lambda: Grid([[1]], marks={(-1, 0): "!"}), "lie outside the grid"),
        (lambda: Grid([[1]], faint="all"), "'rest'"),
    ],
)
def test_a_grid_that_cannot_be_says_why(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# ---- SVG ---------------------------------------------------------------------------------


def test_svg_names_no_colour_of_its_own():
    svg = draw(Grid([[1, 2]], "x", padding=PADDED, lit=[(0, 0)], title="x"), "=", "?").svg()
    body = svg.replace(re.search(r"<style.*?</style>", svg, re.S)[0], "")
    assert re.findall(r"#[0-9a-fA-F]{6}\b", body) == []
    for key in ("x", "x-soft", "padding-soft", "rule", "ink", "paper"):
        assert f"var(--cg-{key})" in body


def test_svg_alone_follows_the_system():
    svg = draw(Grid([[1]], "x")).svg()
    style = ElementTree.fromstring(svg).find(f"{SVG}style").text
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    assert f"--cg-x:{PALETTE['x']['light']};" in light
    assert f"--cg-x:{PALETTE['x']['dark']};" in dark


def test_svg_is_the_same_every_time_and_small():
    def picture() -> str:
        x, _, _, grad_output = example("B").arrays()
        return draw(
            Grid(x[0, 0], "x", title="x"), "⋆", Grid(grad_output[0, 0], "grad_output")
        ).svg()

    assert picture() == picture()
    assert len(picture()) < 12_000
    assert "DejaVu Serif" not in picture() and "<metadata" not in picture()


def test_a_figure_shows_itself_in_a_notebook():
    figure = draw(Grid([[1]], "x"))
    assert figure._repr_svg_() == figure.svg()


# ---- the cover ---------------------------------------------------------------------------


def test_the_cover_adds_up():
    geometry = example("B").geometry
    x, _, _, grad_output = example("B").arrays()
    products = [
        x[0, 0][source] * grad_output[0, 0].flat[k]
        for k, source in enumerate(tap(geometry, *cover.TAP))
    ]
    grad_weight = loops.grad_weight(grad_output, x, geometry)
    assert sum(products) == grad_weight[(0, 0, *cover.TAP)]
    words = cover.cover().words()
    assert cover.TITLE in words
    assert words.count("·") == len(products) + 1
    assert [w for w in words if w in map(written, grad_weight.flat)]


def test_the_covers_file_is_what_the_code_draws():
    kept = (ROOT / "book" / "_static" / "cover.svg").read_text("utf-8")
    assert svg_words(kept) == cover.cover().words(), "python -m convgrad.figures.cover writes it"
    assert "var(--cg-x)" in kept


@pytest.mark.slow
def test_the_cover_is_written_by_a_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "convgrad.figures.cover", tmp_path / "cover.svg"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert svg_words((tmp_path / "cover.svg").read_text("utf-8")) == cover.cover().words()
    assert cover.main([]) == 2


# ---- the chart of speed ------------------------------------------------------------------


def test_the_chart_of_speed_has_a_mark_for_each_figure_and_no_other():
    rows = {"fast": 1.1, "im2col": 3.0, "torch": 1.0, "im2col as taught": 20.0}
    first = {"contestants": {who: {"times_torch": times} for who, times in rows.items()}}
    second = {"contestants": {"fast": {"times_torch": 0.8}}}
    figure = speed.against_torch({"layers": {"a layer": first, "another": second}})
    drawn = {
        line.get_label(): list(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in figure.axes[0].lines
        if not line.get_label().startswith("_")
    }
    assert drawn == {
        "fast": [(1.1, 0), (0.8, 1)],
        "im2col": [(3.0, 0)],
        "im2col as taught": [(20.0, 0)],
    }
    assert {"a layer", "another", "fast", "1×"} <= set(figure.words())


def test_the_chart_knows_the_contestants_by_their_names():
    layers = pytest.importorskip("convgrad.bench.layers")
    known = {*layers.USUAL, layers.ONEDNN, layers.PLAIN}
    assert set(speed.CONTESTANTS) == known - {layers.ONEDNN}


def test_the_ladder_has_a_mark_for_each_rung_that_was_measured():
    backward = {"loops": 200.0, "windows": 2.0, "im2col": 1.5, "fast": 2.5, "torch": 1.0}
    rungs = {who: {"times_torch": {"backward": times}} for who, times in backward.items()}
    figure = speed.ladder({"layers": {"tiny": {"implementations": rungs}}})
    drawn = {
        line.get_label(): list(line.get_xdata())
        for line in figure.axes[0].lines
        if not line.get_label().startswith("_")
    }
    assert drawn == {who: [times] for who, times in backward.items() if who in speed.LADDER}
    assert {"tiny", "loops", "windows", "100×"} <= set(figure.words())


def test_the_ladder_knows_the_rungs_by_their_names():
    assert set(speed.LADDER) < set(IMPLEMENTATIONS)
