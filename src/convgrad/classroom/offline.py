"""A feedback page that is one file: no scripts, nothing from the net, formulas as MathML.

nbgrader's page loads MathJax and require.js from other people's servers, whenever somebody reads
it.  Here formulas are drawn when the page is made, scripts go, and the browser is told to load
nothing.
"""

from __future__ import annotations

import html
import re
from typing import Any

from ..extras import needs

with needs("classroom", "convgrad.classroom"):
    from bs4 import BeautifulSoup
    from bs4.element import NavigableString
    from latex2mathml.converter import convert_to_element
    from nbconvert.exporters import HTMLExporter

__all__ = ["POLICY", "OfflineExporter", "alone"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
_FORMULA = re.compile(
    r"(?<!\\)\$\$(?P<block>.+?)(?<!\\)\$\$"
    r"|\\\[(?P<bracket>.+?)\\\]"
    r"|(?P<environment>\\begin\{(?P<name>[a-z]+\*?)\}.+?\\end\{(?P=name)\})"
    r"|(?<![\\$])\$(?P<inline>[^$]+?)(?<![\\$])\$"
    r"|\\\((?P<parenthesis>.+?)\\\)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\([_%&#$])")  # the library leaves the stroke in a formula's words
_LONGEST = 4_000  # letters of a formula: learners write some of them
_TEXTS = ".text_cell_render, .output_markdown, .output_latex"


class OfflineExporter(HTMLExporter):
    """nbconvert's page, made to stand alone."""

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> tuple[Any, Any]:
        """Convert the notebook."""
        page, resources = super().from_notebook_node(nb, resources, **kw)
        return alone(page), resources


def alone(page: str) -> str:
    """``page`` without scripts and addresses that load something, its formulas as MathML."""
    soup = BeautifulSoup(page, features="html.parser")
    for element in soup.select("script, link, iframe, object, embed"):
        element.decompose()
    policy = {"http-equiv": "Content-Security-Policy", "content": POLICY}
    for head in soup.select("head"):
        head.insert(0, soup.new_tag("meta", attrs=policy))
    for region in soup.select(_TEXTS):
        for text in list(region.find_all(string=_FORMULA)):
            if not text.find_parent(["code", "pre", "math", "style"]):
                text.replace_with(*_drawn(str(text)))
    return str(soup)


def _drawn(text: str) -> list[Any]:
    """The pieces of ``text``: words as they are, formulas drawn."""
    pieces: list[Any] = []
    end = 0
    for found in _FORMULA.finditer(text):
        pieces.append(NavigableString(text[end : found.start()]))
        pieces.append(_formula(found))
        end = found.end()
    return [*pieces, NavigableString(text[end:])]


def _formula(found: re.Match[str]) -> Any:
    """One formula; what cannot be read as one stays as it was written."""
    inline = found["inline"] or found["parenthesis"]
    tex = inline or found["block"] or found["bracket"] or found["environment"]
    if len(tex) > _LONGEST:
        return NavigableString(found.group())
    try:
        tree = convert_to_element(tex.strip(), display="inline" if inline else "block")
        return _as_soup(tree)
    except Exception:  # the library has an error of its own for every mistake in a formula
        return NavigableString(found.group())


def _as_soup(tree: Any) -> Any:
    """An element of ElementTree as one of the page.

    Element by element: as text, ``\\text{<script>}`` would become a script.
    """
    soup = BeautifulSoup("", features="html.parser")
    kept = {name: value for name, value in tree.attrib.items() if name not in ("href", "style")}
    element = soup.new_tag(tree.tag, attrs=kept)
    if tree.text:
        words = _ESCAPED.sub(r"\1", tree.text) if tree.tag == "mtext" else tree.text
        element.append(NavigableString(html.unescape(words)))
    for child in tree:
        element.append(_as_soup(child))
        if child.tail:
            element.append(NavigableString(html.unescape(child.tail)))
    return element
