"""Stylesheets cut down to what a site uses: nothing that a page needs goes, and nothing moves."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")
ROOT = Path(__file__).resolve().parents[1]
EXTENSIONS = ROOT / "book" / "_ext"


@pytest.fixture(scope="module")
def used_styles():
    sys.path.insert(0, str(EXTENSIONS))
    try:
        yield importlib.import_module("used_styles")
    finally:
        sys.path.remove(str(EXTENSIONS))


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        ("p{a:b}", "p{a:b}"),
        (".used{a:b}.gone{c:d}", ".used{a:b}"),
        (".used,.gone{a:b}", ".used{a:b}"),
        (".used .gone{a:b}", ""),
        ("#here > .used:hover::before { a : b ; }", "#here > .used:hover::before{a : b}"),
        (".used:not(.gone){a:b}", ".used:not(.gone){a:b}"),
        (":is(.gone, .used) p{a:b}", ":is(.gone, .used) p{a:b}"),
        ('[data-theme="dark"] p{a:b}', '[data-theme="dark"] p{a:b}'),
        (".w-50\\%{a:b}", ".w-50\\%{a:b}"),
        ("@media (x){.gone{a:b}}", ""),
        ("@media (x){.gone{a:b}.used{c:d}}", "@media (x){.used{c:d}}"),
        ("@media a{@supports b{.used{c:d}}}", "@media a{@supports b{.used{c:d}}}"),
        ("@font-face{src:url(x)}", "@font-face{src:url(x)}"),
        ("@keyframes turn{0%{a:b}to{a:c}}", "@keyframes turn{0%{a:b}to{a:c}}"),
        ('@charset "utf-8";.gone{a:b}', '@charset "utf-8";'),
        ("/* .gone{ */.used{a:b}", ".used{a:b}"),
        ('.used{content:"}  {;"}', '.used{content:"}  {;"}'),
        (".used{a:b;\n  c:  d;\n}", ".used{a:b;c: d}"),
        (
            ".used{background:url(data:image/svg+xml;x)}",
            ".used{background:url(data:image/svg+xml;x)}",
        ),
    ],
)
def test_a_rule_goes_if_no_page_can_use_it(used_styles, css, kept):
    assert used_styles.pruned(css, {"used", "here"}) == kept


def test_a_brace_that_is_not_closed_is_named(used_styles):
    with pytest.raises(ValueError, match="after 'p a'"):
        used_styles.pruned("p a{b:c", set())


def test_classes_are_found_in_pages_and_in_scripts(used_styles, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "page.html").write_text(
        '<p class="one two" id="three">four</p><script>a.classList.add("five-six")</script>'
    )
    (tmp_path / "deep" / "x.js").write_text("b.className=`seven`")
    (tmp_path / "_live").mkdir()  # Python and an editor: every word there is a class of Bootstrap's
    (tmp_path / "_live" / "y.js").write_text("eight")
    found = used_styles.names_in_use(tmp_path)
    assert {"one", "two", "three", "five-six", "seven"} <= found
    assert not {"four", "eight"} & found


def test_every_build_cuts_from_the_whole(used_styles, tmp_path):
    """A stylesheet that the next build leaves alone gets back what a new page needs."""
    site = tmp_path / "html"
    style = site / "_static" / "a.css"
    style.parent.mkdir(parents=True)
    style.write_text(".one{a:b}.two{c:d}")
    app = SimpleNamespace(
        builder=SimpleNamespace(format="html"), outdir=site, doctreedir=tmp_path / "doctrees"
    )
    for names, kept in (("one", ".one{a:b}"), ("two", ".two{c:d}")):
        (site / "page.html").write_text(f'<p class="{names}"></p>')
        used_styles.prune(app, None)
        assert style.read_text() == kept + used_styles.CUT
    style.write_text(".two{e:f}")  # written anew
    used_styles.prune(app, None)
    assert style.read_text() == ".two{e:f}" + used_styles.CUT


BOXES = sorted(
    {
        name
        for page in (ROOT / "book").rglob("*.md")
        for name in re.findall(r"^:class: (cg-[\w-]+)$", page.read_text("utf-8"), re.M)
    }
)


@pytest.mark.parametrize("name", BOXES)
def test_no_widget_colours_the_boxes_of_a_page(name):
    """A widget brings its stylesheet into the page; a bare class in it would reach everywhere."""
    for style in (ROOT / "src" / "convgrad" / "widgets" / "static").glob("*.css"):
        bare = re.search(rf"(?:^|[}}{{,])\s*\.{name}\s*[,{{]", style.read_text("utf-8"))
        assert not bare, f"{style.name}: say whose .{name} is meant, such as .cg-tile.{name}"
