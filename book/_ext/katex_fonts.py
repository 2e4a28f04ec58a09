"""KaTeX's stylesheet and fonts, cut down to the signs that the formulas of the book show.

Whole, the two fonts that nearly every formula uses weigh 43 kB, a fifth of a page with pictures.
The files lie where KaTeX's stylesheet looks for them; a mark in their addresses changes with the
signs, so that no browser keeps a font that lacks a new one.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

_SEEN = '<span class="katex-html" aria-hidden="true">'


def visible(rendered: str) -> str:
    """The signs of a rendered formula that the eye sees (its MathML is for other readers)."""
    seen = rendered.partition(_SEEN)[2]
    return html.unescape(re.sub(r"<[^>]*>", "", seen)).replace("\u200b", "")


def write_styles(dist: Path, target: Path, shown: Iterable[str]) -> None:
    """``katex.css`` and ``fonts/*.woff2`` for formulas that show these signs.

    Of the three formats KaTeX comes in, only the one is kept that every browser of today reads.
    """
    signs = "".join(sorted({" ", *shown}))
    originals = sorted((dist / "fonts").glob("*.woff2"))
    mark = _mark(signs, originals)
    css = (dist / "katex.min.css").read_text("utf-8")
    css = re.sub(r",url\([^)]*\.(?:woff|ttf)\) format\(\"[^\"]*\"\)", "", css)
    css = re.sub(r"url\((fonts/[^)]*\.woff2)\)", rf"url(\1?v={mark})", css)
    style = target / "katex.css"
    if style.is_file() and f"?v={mark})" in style.read_text("utf-8"):
        return  # the fonts beside it are those of the same signs
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    for original in originals:
        (target / "fonts" / original.name).write_bytes(_cut(original, signs))
    style.write_text(css, "utf-8")  # last: it says that all fonts are there


def _mark(signs: str, originals: list[Path]) -> str:
    state = hashlib.sha256(signs.encode())
    for original in originals:
        state.update(original.read_bytes())
    return state.hexdigest()[:8]


def _cut(original: Path, signs: str) -> bytes:
    """A font with the outlines of these signs only; those that it never had are passed over."""
    options = subset.Options(flavor="woff2", layout_features=["*"], notdef_outline=True)
    # the date of the change stays: two builds write the same bytes
    with TTFont(original, recalcTimestamp=False) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(text=signs)
        cutter.subset(font)
        font.flavor = "woff2"
        written = BytesIO()
        font.save(written)
    return written.getvalue()
