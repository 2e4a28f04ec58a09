"""Sphinx: every formula is rendered when the book is built, by KaTeX in Node.

The page carries HTML and MathML; no script runs in the reader's browser and nothing comes from
elsewhere.  Numbers, labels and ``{eq}`` references are Sphinx's own.  A formula that KaTeX
refuses is a warning with document and line, so that a strict build stops.

One Node process serves a whole build (``tools/katex.mjs``); what it rendered is kept beside the
output, under a name that says KaTeX's version, the macros and the formula.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from katex_fonts import visible, write_styles
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MACROS = HERE / "macros.json"
RENDERER = ROOT / "tools" / "katex.mjs"
DIST = ROOT / "node_modules" / "katex" / "dist"

# Formulas with more visible signs than this can be wider than a small phone: their box can then
# be scrolled, so it must be reachable by keyboard.
WIDE = 22


class Refused(Exception):
    """KaTeX's words about a formula that it cannot render."""


class Katex:
    """The Node process, started for the first formula that is not in the cache."""

    def __init__(self, cache: Path, macros: dict[str, str]) -> None:
        self._macros = macros
        self._process: subprocess.Popen[str] | None = None
        self._file = cache
        state = json.dumps([_version(), macros, RENDERER.read_text("utf-8")])
        self._state = hashlib.sha256(state.encode()).hexdigest()
        self._known: dict[str, str] = {}
        self.signs: set[str] = set()  # those of pages of earlier builds are kept too
        self._fresh = False
        try:
            kept = json.loads(cache.read_text("utf-8"))
            self.signs.update(kept["signs"])
            if kept["state"] == self._state:
                self._known = kept["formulas"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no cache, or one of another shape: it is written anew

    def render(self, tex: str, display: bool) -> str:
        """The HTML of one formula; raises :class:`Refused`."""
        key = f"{'display' if display else 'inline'} {tex}"
        if key not in self._known:
            answer = self._ask({"tex": tex, "display": display})
            if "error" in answer:
                raise Refused(answer["error"])
            self._known[key] = answer["html"]
            self.signs.update(visible(answer["html"]))
            self._fresh = True
        return self._known[key]

    def close(self) -> None:
        """End the process and keep what it rendered."""
        if self._process is not None:
            self._process.communicate()
            self._process = None
        if self._fresh:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            signs = "".join(sorted(self.signs))
            kept = {"state": self._state, "signs": signs, "formulas": self._known}
            self._file.write_text(json.dumps(kept), "utf-8")
            self._fresh = False

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [_node(), RENDERER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            self._ask({"macros": self._macros})
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(
                f"the formula renderer {RENDERER} ended early (its message stands above): "
                "is KaTeX there?  `npm ci` installs it"
            )
        return json.loads(line)


def prepared(tex: str, nowrap: bool) -> str:
    """The TeX of a display formula as KaTeX wants it.

    As Sphinx does for MathJax, lines (``\\\\``) are aligned at ``&`` and an empty line starts
    the next equation.  Environments that would number themselves lose their number: numbers
    are Sphinx's.
    """
    tex = re.sub(r"\\(begin|end)\{(align|alignat|equation|gather)\}", r"\\\1{\2*}", tex.strip())
    if nowrap:
        return tex
    parts = [part.strip() for part in re.split(r"\n\s*\n", tex) if part.strip()]
    outside = re.sub(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", "", tex, flags=re.S)
    if len(parts) > 1 or r"\\" in outside:
        return r"\begin{aligned}" + r" \\ ".join(parts) + r"\end{aligned}"
    return tex


# ---- Sphinx ------------------------------------------------------------------------------


def start(app: Sphinx) -> None:
    if app.builder.format == "html":
        macros = json.loads(MACROS.read_text("utf-8"))
        app.katex = Katex(Path(app.outdir).parent / ".katex.json", macros)  # type: ignore[attr-defined]


def finish(app: Sphinx, exception: Exception | None) -> None:
    if app.builder.format != "html":
        return
    app.katex.close()  # type: ignore[attr-defined]
    if exception is None:
        signs = app.katex.signs  # type: ignore[attr-defined]
        write_styles(DIST, Path(app.outdir) / "_static" / "katex", signs)


def visit_inline(self: Any, node: nodes.math) -> None:
    classes = " ".join(["math", "notranslate", "nohighlight", *node.get("classes", ())])
    self.body.append(f'<span class="{classes}">{_rendered(self, node, False)}</span>')
    raise nodes.SkipNode


def visit_display(self: Any, node: nodes.math_block) -> None:
    rendered = _rendered(self, node, True)
    number = get_node_equation_number(self, node) if node["number"] else ""
    numbered = " cg-numbered" if number else ""
    self.body.append(
        self.starttag(node, "div", CLASS=f"math notranslate nohighlight cg-math{numbered}")
    )
    box = ""
    if len(visible(rendered)) > WIDE:
        label = f"Formula {number}" if number else "Formula"
        box = f' tabindex="0" role="group" aria-label="{label}, scrolls sideways if it is long"'
    self.body.append(f'<div class="cg-scroll"{box}>{rendered}</div>')
    if number:
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def _rendered(translator: Any, node: nodes.Element, display: bool) -> str:
    source = node.astext()
    tex = prepared(source, node.get("nowrap", False)) if display else source.strip()
    try:
        return translator.builder.app.katex.render(tex, display)
    except Refused as refused:
        logger.warning("%s", refused, location=node, type="katex")
        return f'<code class="cg-math-error">{html.escape(source)}</code>'


def _version() -> str:
    try:
        return json.loads((DIST.parent / "package.json").read_text("utf-8"))["version"]
    except OSError:
        raise RuntimeError(f"KaTeX is not in {DIST.parent}: `npm ci` installs it") from None


def _node() -> Path:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tools.node import find_node

    return find_node()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer(
        "katex", inline_renderers=(visit_inline, None), block_renderers=(visit_display, None)
    )
    app.config.html_math_renderer = "katex"
    app.connect("builder-inited", start)
    app.connect("build-finished", finish)
    app.add_css_file("katex/katex.css", priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
