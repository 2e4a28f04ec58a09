"""Formulas are rendered at build time: numbers, references, colours, and errors that stop it."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXTENSIONS = ROOT / "book" / "_ext"
pytestmark = pytest.mark.slow  # builds pages

pytest.importorskip("myst_parser", reason="the book's packages are in requirements.txt")
if not (ROOT / "node_modules" / "katex").is_dir():
    pytest.skip("KaTeX is not installed: make setup", allow_module_level=True)

TTFont = pytest.importorskip("fontTools.ttLib").TTFont

sys.path.insert(0, str(EXTENSIONS))
katex_fonts = importlib.import_module("katex_fonts")
katex_math = importlib.import_module("katex_math")
Katex, Refused = katex_math.Katex, katex_math.Refused
prepared, visible = katex_math.prepared, katex_math.visible

MACROS = json.loads(katex_math.MACROS.read_text("utf-8"))

PAGE = r"""# Page

Inline $\colx{x}\cdot\colg{g}$ in a sentence.

$$
y[p,q] = b + \sum_{i,j} \colw{w}[i,j]\,\colx{x}[p+i,\,q+j]
$$ (forward)

Two lines without an environment:

```{math}
:label: two-lines
a &= b + c \\
d &= e
```

\begin{align}
\colr{\bar w} &= \sum \colg{g}\,\colx{x} \\
f &= 1
\end{align}

By {eq}`forward` and {eq}`two-lines`.
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Build one page with Sphinx, warnings as errors; the same page once for all who look at it."""

    @cache
    def run(page: str) -> SimpleNamespace:
        tmp_path = tmp_path_factory.mktemp("page")
        (tmp_path / "conf.py").write_text(
            f"import sys; sys.path.insert(0, {str(EXTENSIONS)!r})\n"
            "extensions = ['myst_parser', 'katex_math']\n"
            "myst_enable_extensions = ['dollarmath', 'amsmath']\n"
            "nitpicky = True\n"
        )
        (tmp_path / "index.md").write_text(page, "utf-8")
        out = tmp_path / "_build" / "html"
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", tmp_path, out],
            capture_output=True,
            text=True,
            env=os.environ | {"NO_COLOR": "1"},
        )
        html = (out / "index.html").read_text("utf-8") if (out / "index.html").exists() else ""
        return SimpleNamespace(status=done.returncode, said=done.stderr, html=html, out=out)

    return run


@pytest.fixture(scope="module")
def katex(tmp_path_factory):
    renderer = Katex(tmp_path_factory.mktemp("katex") / "cache.json", MACROS)
    yield renderer
    renderer.close()


def test_a_page_with_every_kind_of_formula(build):
    page = build(PAGE)
    assert page.status == 0, page.said
    assert page.html.count('class="katex"') == 4
    assert page.html.count("<math ") == 4  # MathML for those who listen
    for letter in "xwgr":
        assert f'"enclosing cg-col-{letter}"' in page.html
    # no formula is left to a script, and no script is there for one
    assert not re.search("<script[^>]*mathjax", page.html, re.I)
    assert r"\sum" not in page.html


def test_numbers_and_references_are_sphinxs(build):
    html = build(PAGE).html
    assert re.findall(r'class="eqno">\((\d)\)', html) == ["1", "2", "3"]
    assert 'id="equation-forward"' in html
    links = re.findall(r'href="#(equation-[\w-]+)">\((\d)\)</a>', html)
    assert links == [("equation-forward", "1"), ("equation-two-lines", "2")]
    assert "eqn-num" not in html  # KaTeX's own counter would number a second time


def test_only_a_wide_formula_is_a_stop_for_the_keyboard(build):
    html = build(PAGE).html
    boxes = re.findall(r'<div class="cg-scroll"([^>]*)>', html)
    assert ["tabindex" in box for box in boxes] == [True, False, False]
    assert 'aria-label="Formula 1, scrolls sideways' in boxes[0]


def test_the_styles_bring_one_font_format(build):
    page = build(PAGE)
    styles = page.out / "_static" / "katex"
    css = (styles / "katex.css").read_text("utf-8")
    assert {path.suffix for path in (styles / "fonts").iterdir()} == {".woff2"}
    fonts = re.findall(r"url\(([^)]*\.woff2)\?v=\w{8}\)", css)
    assert len(fonts) == css.count("url(") and all((styles / font).is_file() for font in fonts)
    assert "http" not in css
    assert "katex/katex.css" in page.html


def test_the_fonts_hold_the_signs_of_the_page_and_little_else(build):
    fonts = build(PAGE).out / "_static" / "katex" / "fonts"
    whole = katex_math.DIST / "fonts" / "KaTeX_Main-Regular.woff2"
    cut = fonts / whole.name
    assert cut.stat().st_size < whole.stat().st_size / 3
    with TTFont(cut) as font, TTFont(whole) as all_of_them:
        signs, possible = font.getBestCmap(), all_of_them.getBestCmap()
        assert {ord(sign) for sign in "1=+⋅"} <= set(signs)
        assert ord("Ω") in possible and ord("Ω") not in signs
    with TTFont(fonts / "KaTeX_Math-Italic.woff2") as font:
        assert {ord(sign) for sign in "xgpqi"} <= set(font.getBestCmap())


def test_a_new_sign_changes_the_fonts_and_their_addresses(tmp_path):
    def written(signs: str) -> tuple[str, bytes]:
        katex_fonts.write_styles(katex_math.DIST, tmp_path, signs)
        font = tmp_path / "fonts" / "KaTeX_Main-Regular.woff2"
        return (tmp_path / "katex.css").read_text("utf-8"), font.read_bytes()

    few = written("xy")
    assert written("yx") == few
    more = written("xyz")
    assert few[0] != more[0] and few[1] != more[1]


@pytest.mark.parametrize(
    ("formula", "word"),
    [
        (r"$$\frac{1}{2$$", "expected"),
        (r"A word, then $\nosuchmacro{x}$.", "nosuchmacro"),
        (r"$x \href{https://example.org}{y}$", "href"),
    ],
)
def test_an_error_names_document_and_line(build, formula, word):
    page = build(f"# Page\n\nText.\n\n{formula}\n")
    assert page.status != 0
    (line,) = (line for line in page.said.splitlines() if "KaTeX" in line or word in line)
    assert "index.md:5:" in line and word in line


def test_a_reference_to_no_formula_is_an_error(build):
    page = build("# Page\n\nSee {eq}`nowhere`.\n")
    assert page.status != 0
    assert "nowhere" in page.said


@pytest.mark.parametrize("name", MACROS)
def test_every_macro_renders(katex, name):
    arguments = len(set(re.findall(r"#\d", MACROS[name])))
    assert "katex-html" in katex.render(name + "{a}" * arguments, display=False)


def test_colours_follow_the_page(katex):
    html = katex.render(r"\colw{w}", display=False)
    assert "cg-col-w" in html and "color:" not in html


def test_what_was_rendered_is_kept(tmp_path, monkeypatch):
    first = Katex(tmp_path / "cache.json", MACROS)
    html = first.render("x^2", display=True)
    first.close()

    monkeypatch.setattr(
        katex_math, "_node", lambda: pytest.fail("started Node for a known formula")
    )
    again = Katex(tmp_path / "cache.json", MACROS)
    assert again.render("x^2", display=True) == html
    again.close()


def test_other_macros_render_anew(tmp_path):
    for text, sign in (("a", ">a<"), ("b", ">b<")):
        renderer = Katex(tmp_path / "cache.json", {r"\me": text})
        assert sign in renderer.render(r"\me", display=False)
        renderer.close()


def test_one_formula_cannot_change_the_next(katex):
    katex.render(r"\gdef\mine{1} \mine", display=False)
    with pytest.raises(Refused, match="mine"):
        katex.render(r"\mine", display=False)


def test_lines_and_empty_lines_are_aligned():
    assert prepared(r"a \\ b", nowrap=False) == r"\begin{aligned}a \\ b\end{aligned}"
    assert prepared("a\n\nb", nowrap=False) == r"\begin{aligned}a \\ b\end{aligned}"
    inside = r"\begin{cases} a \\ b \end{cases}"
    assert prepared(inside, nowrap=False) == inside
    assert prepared(r"\begin{align} a \end{align}", nowrap=True) == r"\begin{align*} a \end{align*}"


def test_signs_are_counted_as_seen(katex):
    assert sorted(visible(katex.render(r"x_{i} + 1", display=True))) == ["+", "1", "i", "x"]
