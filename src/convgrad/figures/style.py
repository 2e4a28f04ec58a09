"""Colours of the book, and figures that follow the page's light or dark theme.

One table, ``palette.json``, serves widgets, figures, formulas and pages.  A figure is drawn in
the table's light colours; when it becomes SVG each of them turns into a CSS variable
(``#005a8c`` → ``var(--cg-x)``), and the SVG carries both tables.  So one file is right
everywhere: opened alone or as an ``<img>`` it follows the reader's system on paper of its own,
and put *into* a page of the book it follows the page's light/dark button (the Sphinx extension
``inline_svg`` does that).
"""

from __future__ import annotations

import io
import json
import re
from importlib import resources
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

__all__ = ["PALETTE", "BookFigure", "color", "css_variables", "theme_css"]

PALETTE: dict[str, dict[str, str]] = json.loads(
    resources.files("convgrad").joinpath("palette.json").read_text("utf-8")
)

# text stays text (small files, selectable, the page's own font); ids repeat from build to build
_SAVE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "convgrad"}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_SERIF = "Charter, 'Bitstream Charter', 'Sitka Text', Cambria, Georgia, serif"


def color(name: str) -> str:
    """The light colour of a palette key such as ``"x"`` or ``"grad_output_soft"``.

    Raises ``KeyError`` with the names there are.
    """
    try:
        return PALETTE[name]["light"].lower()
    except KeyError:
        raise KeyError(f"no colour {name!r}: there are {', '.join(PALETTE)}") from None


def css_variables(theme: str) -> str:
    """The table as CSS declarations, ``--cg-x:#005a8c;…``, for ``"light"`` or ``"dark"``."""
    return "".join(f"{_variable(key)}:{pair[theme].lower()};" for key, pair in PALETTE.items())


def _variable(key: str) -> str:
    return "--cg-" + key.replace("_", "-")


def theme_css() -> str:
    """The rules that give every ``--cg-…`` variable its value in the page's present theme."""
    return (
        f":root{{{css_variables('light')}}}\n"
        f"@media screen{{html[data-theme=dark]{{{css_variables('dark')}}}}}\n"
        "@media screen and (prefers-color-scheme:dark){"
        f"html:not([data-theme]){{{css_variables('dark')}}}}}\n"
    )


class BookFigure(Figure):
    """A matplotlib Figure whose SVG follows light and dark.

    ``width`` and ``height`` are in pixels of the page.  As the last value of a notebook cell it
    shows itself as SVG; :meth:`svg` gives the text, ``savefig`` works as for any figure.
    """

    def __init__(self, width: float = 640, height: float = 360, **kwargs: Any) -> None:
        # 72 dpi: one pixel of the page is one point of the figure, font sizes are pixels
        super().__init__(figsize=(width / 72, height / 72), dpi=72, **kwargs)
        FigureCanvasSVG(self)
        self.patch.set_facecolor(color("paper"))
        self.patch.set_gid("cg-paper")

    def svg(self) -> str:
        """The figure as SVG text, colours as CSS variables, text as text."""
        buffer = io.StringIO()
        with matplotlib.rc_context(_SAVE):
            self.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        return _themed(buffer.getvalue())

    def _repr_svg_(self) -> str:
        return self.svg()

    def words(self) -> list[str]:
        """Every text of the figure in drawing order: what a test of a picture asks for."""
        from matplotlib.text import Text

        found = (each.get_text() for each in self.findobj(Text) if each.get_visible())
        return [text for text in found if text]


def _themed(svg: str) -> str:
    """Matplotlib's SVG made small, with variables for colours and both tables inside."""
    by_color: dict[str, str] = {}
    for key, pair in PALETTE.items():
        by_color.setdefault(pair["light"].lower(), key)  # two names of one colour: the first
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.S)
    svg = re.sub(
        r"#[0-9a-f]{6}\b",
        lambda m: f"var({_variable(by_color[m[0]])})" if m[0] in by_color else m[0],
        svg,
    )
    # several figures share a page: names of groups would repeat, clips and patterns are hashed
    svg = re.sub(r'<g id="(?!cg-paper")[\w.-]+"', "<g", svg)
    # said once on the root instead of on every text and every path
    svg = re.sub(r" font-family: [^;]*[ ,]serif;", f" font-family: {_SERIF};", svg)
    svg = re.sub(r" font-family: (?!Charter)[^;]+;", "", svg)
    svg = re.sub(r'<style type="text/css">.*?</style>', "", svg)
    svg = re.sub(r' transform="rotate\(-0 [\d. ]+\)"', "", svg)
    svg = re.sub(r' d="[^"]+"', lambda m: " " + " ".join(m[0].split()).replace(' "', '"'), svg)
    svg = re.sub(r'(<svg [^>]*?)width="([\d.]+)pt" height="([\d.]+)pt"', _in_pixels, svg, count=1)
    svg = re.sub(r">\s+<", "><", svg.strip())
    svg = re.sub(r"<g>(<[^g][^<>]*/>|<text[^<>]*>[^<>]*</text>)</g>", r"\1", svg)
    # places to a tenth of a pixel; the numbers that are written in the picture stay
    svg = re.sub(r"<[^<>]*>", lambda tag: re.sub(r"\d+\.\d{2,}", _tenths, tag[0]), svg)
    dark = f"@media (prefers-color-scheme:dark){{svg{{{css_variables('dark')}}}}}"
    style = f'<style class="cg-theme">svg{{{css_variables("light")}}}{dark}</style>'
    return re.sub(r"(<svg [^>]*>)", rf"\1{style}", svg, count=1) + "\n"


def _tenths(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _in_pixels(match: re.Match[str]) -> str:
    size = f'width="{float(match[2]):g}" height="{float(match[3]):g}"'
    return f'{match[1]}class="cg-svg" {size} font-family="{_FONT}" stroke-linejoin="round"'
