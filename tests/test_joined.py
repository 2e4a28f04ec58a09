"""One stylesheet and one script instead of ten: the same rules, the same code, in their order."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the book's packages are in requirements.txt")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "book" / "_ext"))

import joined

HEAD = """<head>
  <link href="{up}_static/styles/base.css" rel="stylesheet" />
    <link rel="stylesheet" type="text/css" href="{up}_static/look.css?v=0a" />
{more}    <link rel="stylesheet" type="text/css" href="{up}_static/own.css?v=0b" />
    <script src="{up}_static/tools.js?v=0c"></script>
    <script>let inThePage = 1;</script>
    <script src="{up}_static/more.js"></script>
{last}</head>
<body><script defer src="{up}_static/scripts/end.js"></script></body>
"""
MORE = '    <link rel="stylesheet" type="text/css" href="{up}_static/katex/formulas.css?v=0d" />\n'
OWN = '<script defer="defer" src="{up}_static/mine.js?v=0e"></script>\n'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    static = tmp_path / "_static"
    for name, text in {
        "basic.css": "p{color:red}",
        "styles/base.css": '@import "../basic.css";/*cut*/',
        "look.css": "p{color:blue;background:url(sign.svg)}/*cut*/",
        "own.css": "p{background:url('data:image/svg+xml,a')}",
        "katex/formulas.css": '@font-face{src:url("fonts/a.woff2?v=1")}',
        "tools.js": '"use strict";\nconst first = 1;',
        "more.js": "undeclared = first + 1",
        "scripts/end.js": "(() => { done = undeclared; })()\n//# sourceMappingURL=end.js.map",
        "mine.js": "mine = 1",
        "searchtools.js": "",
    }.items():
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_text(text)
    write(tmp_path, "a.html", "")
    write(tmp_path, "deep/b.html", "../", more=MORE)
    write(tmp_path, "deep/c.html", "../", more=MORE, last=OWN)
    search = '    <script src="_static/searchtools.js"></script>\n'
    write(tmp_path, "search.html", "", last=search)
    return tmp_path


def write(site: Path, name: str, up: str, more: str = "", last: str = "") -> None:
    (site / name).parent.mkdir(exist_ok=True)
    page = HEAD.format(up="{up}", more=more, last=last)
    (site / name).write_text(page.replace("{up}", up))


def links(site: Path, name: str) -> list[str]:
    return re.findall(r'(?:src|href)="([^"?]+)', (site / name).read_text())


def test_neighbours_become_one_file_and_their_order_stays(site):
    made = joined.join(site, {})
    style, script = links(site, "deep/b.html")
    assert style.startswith("../_joined/") and script.startswith("../_joined/")
    assert made[style.removeprefix("../")] == [
        "_static/styles/base.css",
        "_static/look.css",
        "_static/katex/formulas.css",
        "_static/own.css",
    ]
    css = (site / "deep" / style).read_text()
    assert css.index("red") < css.index("blue") < css.index("@font-face") < css.index("data:")
    assert "@import" not in css and "/*cut*/" not in css
    assert "let inThePage" in (site / "deep/b.html").read_text()
    assert (site / "deep/b.html").read_text().count("defer") == 1


def test_addresses_within_a_style_lead_where_they_did(site):
    joined.join(site, {})
    css = (site / "deep" / links(site, "deep/b.html")[0]).read_text()
    assert "url(../_static/sign.svg)" in css
    assert "url(../_static/katex/fonts/a.woff2?v=1)" in css
    assert "url('data:image/svg+xml,a')" in css


def test_a_strict_script_leaves_the_others_as_they_were(site):
    joined.join(site, {})
    script = (site / "deep" / links(site, "deep/b.html")[1]).read_text()
    assert "use strict" not in script and "sourceMappingURL" not in script
    assert script.index("first = 1") < script.index("undeclared =") < script.index("done =")


def test_what_one_page_alone_loads_and_the_search_stay(site):
    before = (site / "search.html").read_text()
    joined.join(site, {})
    assert [link.rpartition("/")[2] for link in links(site, "deep/c.html")][2] == "mine.js"
    scripts = r"<script src=.*"
    assert re.findall(scripts, (site / "search.html").read_text()) == re.findall(scripts, before)


def test_a_later_build_begins_from_the_files_themselves(site):
    made = joined.join(site, {})
    before = (site / "a.html").read_text()
    assert joined.join(site, made) == made
    assert (site / "a.html").read_text() == before
    (site / "_static" / "look.css").write_text("p{color:green}")
    write(site, "deep/b.html", "../")  # one page was written anew, without formulas
    made = joined.join(site, made)
    assert links(site, "deep/b.html") == [f"../{link}" for link in links(site, "a.html")]
    assert "green" in (site / links(site, "a.html")[0]).read_text()
    assert (site / "a.html").read_text() != before, "a browser that kept the old file asks again"
    assert {path.relative_to(site).as_posix() for path in (site / "_joined").iterdir()} == set(made)
