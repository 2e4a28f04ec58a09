"""Sphinx: the colours of the book, and its figures inside the page.

* ``palette.css`` is written from the package's one table of colours, so a page's ``--cg-x`` is
  the blue of the widgets and the figures.
* A figure of the package (an SVG with colours as variables) is put into the page itself instead
  of an ``<img>``, so that it follows the light/dark button; its alt text becomes its label, and
  a figure without alt text is a warning.  A wide one can be scrolled, by keyboard too.
* A table can be scrolled in a box of its own on a narrow screen.
* What the tools write into a page and a screen reader stumbles over is taken out or named.
* ``page.js`` closes the lists beside a narrow page behind who has chosen from them.
* A page without formulas does not load their stylesheet, one without folded boxes not their script.
* The site's front door leads to the first page.
* The theme's icon library, which no page uses (``convgrad.css`` draws the icons), stays behind.
"""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

OURS = '<style class="cg-theme">'
WIDE = 300  # pixels; narrower figures fit the smallest phone


def write_palette(app: Sphinx) -> None:
    from convgrad.figures.style import theme_css

    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "palette.css").write_text(theme_css(), "utf-8")


def inlined(svg: str, alt: str, unique: str, whole: bool = False) -> str:
    """A figure's SVG ready for a page: the page's colours, no paper, a label, ids of its own.

    On a narrow page it shrinks as long as its numbers can be read, and scrolls from there on; a
    ``whole`` one goes on shrinking (the cover is a picture first).
    """
    svg = re.sub(r'<style class="cg-theme">.*?</style>', "", svg, count=1, flags=re.S)
    svg = re.sub(r'<g id="cg-paper">.*?</g>|<defs></defs>', "", svg, flags=re.S)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"| version="1.1"', "", svg)
    svg = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{unique}-", svg)
    label = html.escape(re.sub(r"\s+", " ", alt).strip(), quote=True)
    width = float(re.search(r'<svg [^>]*?width="([\d.]+)"', svg)[1])
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1).strip()
    names, box = "cg-picture", ""
    if whole:
        names += " cg-whole"
    elif width > WIDE:
        box = ' tabindex="0" role="group" aria-label="Figure, scrolls sideways"'
    return f'<span class="{names}" style="--cg-width:{width:g}px"{box}>{svg}</span>'


def visit_image(self: Any, node: nodes.image) -> None:
    source = Path(self.builder.srcdir) / node["uri"]
    if source.suffix == ".svg" and source.is_file():
        svg = source.read_text("utf-8")
        if OURS in svg:
            if not node.get("alt"):
                logger.warning(
                    "a figure without alt text: say what it shows in the cell's options, "
                    "mystnb: {image: {alt: …}}",
                    location=(self.builder.current_docname, _line(node)),
                    type="figure",
                )
            self.cg_figures = getattr(self, "cg_figures", 0) + 1
            whole = "cg-whole" in node["classes"]
            self.body.append(inlined(svg, node.get("alt", ""), f"f{self.cg_figures}", whole))
            self.builder.images.pop(node["uri"], None)  # nothing points at the file any more
            raise nodes.SkipNode
    type(self).visit_image(self, node)


def _line(node: nodes.Node | None) -> int | None:
    """The line of a node in its source; an output has that of the cell around it."""
    while node is not None and not node.line:
        node = node.parent
    return node.line if node else None


def depart_image(self: Any, node: nodes.image) -> None:
    type(self).depart_image(self, node)


def box_tables(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Every table in a box that can scroll; not those in an output, which have one."""
    if app.builder.format != "html":
        return
    for table in list(doctree.findall(nodes.table)):
        box = nodes.container(classes=["cg-scroll", "cg-table"])
        table.replace_self(box)
        box += table


# myst-nb's label hides the words of the handle, "Show the solution"; the roles of docutils'
# bibliography are deprecated, and its list has no items.
_STUMBLES = re.compile(
    ' aria-label="Toggle hidden content"| role="doc-biblioentry"'
    '| role="list"(?= class="citation-list")'
)


# The corner of a table with heads on two sides is no head.
_CORNER = re.compile(r'<th class="(head[^"]*)">((?:<p></p>|\s)*)</th>')
# In the list of pages: a handle that unfolds those under a page, and shows only an arrow.
_HANDLE = re.compile(r'(<a [^>]*>([^<]*)</a>\s*<details[^>]*><summary)(?=><span class="toctree-t)')


def mend_markup(app: Sphinx, name: str, template: str, context: dict, doctree: Any) -> None:
    if "body" in context:
        body = _STUMBLES.sub("", context["body"])
        context["body"] = _CORNER.sub(r'<td class="\1">\2</td>', body)
    tree = context.get("generate_toctree_html")
    if tree is not None:
        context["generate_toctree_html"] = lambda *arguments, **options: _HANDLE.sub(
            r'\1 aria-label="pages under \2"', str(tree(*arguments, **options))
        )


# A file of the site, and what a page has in it that needs the file.
_NEEDED_FOR = {
    "katex/katex.css": re.compile(r'class="katex\b'),
    "togglebutton.css": re.compile(r'class="[^"]*\b(?:toggle|dropdown)\b'),
    "togglebutton.js": re.compile(r'class="[^"]*\b(?:toggle|dropdown)\b'),
    "progress.js": re.compile(r'class="[^"]*\bcg-progress-place\b'),
    "museum.js": re.compile(r'class="[^"]*\bcg-museum\b'),
}


def load_what_is_used(app: Sphinx, name: str, template: str, context: dict, doctree: Any) -> None:
    unused = tuple(
        file for file, use in _NEEDED_FOR.items() if not use.search(context.get("body", ""))
    )
    for kind in ("css_files", "script_files"):
        context[kind] = [
            file
            for file in context.get(kind, [])
            if not (getattr(file, "filename", None) or "").endswith(unused)
        ]


_FRONT_DOOR = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="0; url={first}">
<title>{title}</title>
<link rel="icon" href="_static/favicon.svg">
</head>
<body><p><a href="{first}">{title}</a></p></body>
</html>
"""


def open_front_door(app: Sphinx, exception: Exception | None) -> None:
    if app.builder.format == "html" and exception is None:
        words = {"first": f"{app.config.root_doc}.html", "title": app.config.html_title}
        page = _FRONT_DOOR.format_map({key: html.escape(word) for key, word in words.items()})
        (Path(app.outdir) / "index.html").write_text(page, "utf-8")


def without_icon_library(css: str) -> str:
    """The theme's stylesheet without FontAwesome's fonts and the rules that are for it alone."""
    css = re.sub(r"@font-face\{[^{}]*fontawesome[^{}]*\}", "", css)

    def keep(rule: re.Match[str]) -> str:
        selectors = rule[1].split(",")
        return "" if all(selector.strip().startswith(".fa-") for selector in selectors) else rule[0]

    return re.sub(r"(?<=[{}])([^{}@]+)\{[^{}]*\}", keep, css)


def leave_icon_library(app: Sphinx, exception: Exception | None) -> None:
    static = Path(app.outdir) / "_static"
    style = static / "styles" / "pydata-sphinx-theme.css"
    if app.builder.format != "html" or exception is not None or not style.is_file():
        return
    style.write_text(without_icon_library(style.read_text("utf-8")), "utf-8")
    shutil.rmtree(static / "vendor" / "fontawesome", ignore_errors=True)
    for script in (static / "scripts").glob("fontawesome.js*"):
        script.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_palette)
    app.connect("doctree-resolved", box_tables)
    app.connect("html-page-context", mend_markup, priority=900)  # after the theme's own
    app.connect("html-page-context", load_what_is_used)
    app.connect("build-finished", open_front_door)
    app.connect("build-finished", leave_icon_library)
    app.add_node(nodes.image, override=True, html=(visit_image, depart_image))
    app.add_css_file("palette.css", priority=300)
    app.add_js_file("page.js", defer="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
