"""Markdown with formulas, as HTML that a widget can put into any page.

`markdown-it-py` reads the Markdown (raw HTML in it stays text), `latex2mathml` the formulas:
MathML needs neither a script nor a font, so the same HTML serves JupyterLab and the static page.
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

from ..extras import needs

with needs("widgets", "convgrad.widgets"):
    from latex2mathml.converter import convert
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

__all__ = ["formula", "inline", "paragraphs"]

# The macros of the book that colour a letter, and those that stand for one.
_MACROS = "".join(
    rf"\newcommand{{{name}}}{arguments}{{{meaning}}}"
    for name, arguments, meaning in (
        (r"\colx", "[1]", r"\class{cg-col-x}{#1}"),
        (r"\colw", "[1]", r"\class{cg-col-w}{#1}"),
        (r"\colg", "[1]", r"\class{cg-col-g}{#1}"),
        (r"\colr", "[1]", r"\class{cg-col-r}{#1}"),
        (r"\x", "", r"\colx{x}"),
        (r"\w", "", r"\colw{w}"),
        (r"\g", "", r"\colg{g}"),
    )
)
_UNKNOWN = re.compile(r"<mi>(\\[a-zA-Z]+)</mi>")


def formula(latex: str, display: bool = False) -> str:
    r"""A formula in LaTeX as MathML; ``\colx \colw \colg \colr`` colour as in the book.

    >>> formula("i+1")
    '<math display="inline"><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></math>'

    Raises ValueError when a command is not known.
    """
    mathml = convert(_MACROS + latex, display="block" if display else "inline")
    unknown = _UNKNOWN.search(mathml)
    if unknown:
        raise ValueError(f"the formula {latex!r} uses {unknown[1]}, which is not known here")
    # in HTML the name space goes without saying
    mathml = mathml.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    return re.sub(r"&#x([0-9A-F]{5});", _sign, mathml)


def _sign(match: re.Match[str]) -> str:
    """``&#x0002B;`` → ``+``: shorter, and it reads in the page's source."""
    return html.escape(chr(int(match[1], 16)))


@cache
def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "typographer": False}).enable("table")

    def render(latex: str, options: dict[str, Any]) -> str:
        return formula(latex, options["display_mode"])

    return reader.use(dollarmath_plugin, renderer=render, allow_labels=False)


def paragraphs(markdown: str) -> str:
    """Markdown as HTML blocks.

    >>> paragraphs("One *idea* in `x[0]`.")
    '<p>One <em>idea</em> in <code>x[0]</code>.</p>'
    """
    return _markdown().render(markdown).strip()


def inline(markdown: str) -> str:
    """Markdown of one line as HTML without a paragraph around it.

    >>> inline("`a < b`")
    '<code>a &lt; b</code>'
    """
    return _markdown().renderInline(markdown)
