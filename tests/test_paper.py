"""The sheets of the PDF: their order, what each is printed from, title and contents."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("yaml", reason="the book's packages are in requirements.txt")
from tools import paper
from tools.paper import Leaf

CONTENTS = """
format: jb-book
root: book/preface
parts:
  - caption: I  The picture
    chapters:
      - file: book/part1/one
      - file: book/part1/two
  - caption: Appendix
    chapters:
      - file: book/api/index
        sections:
          - file: book/api/names
"""

PAGE = """<html><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'self'"><title>T</title></head>
<body><script>document.write("unwanted")</script>
<h1>Sizes &amp; <em>steps</em><a class="headerlink" href="#sizes">#</a></h1>
<details class="hide"><summary><span class="collapsed">Show the solution</span>
<span class="expanded">Hide the solution</span></summary>42</details>
<details open><summary>x</summary></details>
<a href="../part2/two.html#far-away">far</a> <a href="one.html">self</a>
<a href="https://else.example/two.html#far-away">out</a></body></html>"""


def test_pages_follow_the_table_of_contents(tmp_path):
    (tmp_path / "_toc.yml").write_text(CONTENTS, "utf-8")
    assert paper.leaves(tmp_path / "_toc.yml") == [
        Leaf("book/preface", "", 0),
        Leaf("book/part1/one", "I The picture", 0),
        Leaf("book/part1/two", "", 0),
        Leaf("book/api/index", "Appendix", 0),
        Leaf("book/api/names", "", 1),
    ]


def test_a_title_is_plain_text():
    assert paper.title_of(PAGE) == "Sizes & steps"


def test_places_are_those_that_any_page_leads_to():
    pages = {"book/part1/one": PAGE, "book/part2/two": '<a href="../part1/one.html#a&amp;b">'}
    assert paper.wanted_places("book/part2/two", pages) == {"far-away"}
    assert paper.wanted_places("book/part1/one", pages) == {"a&b"}


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("two.html", "book/part1/two"),
        ("../preface.html", "book/preface"),
        ("../../genindex.html", "genindex"),
        ("mailto:me@book.example", ""),
        ("https://book.example/two.html", ""),
        ("../../notebooks/one.ipynb", ""),
    ],
)
def test_an_address_means_a_page(address, page):
    assert paper.target("book/part1/one", address) == page


def test_on_paper_nothing_runs_and_nothing_is_folded():
    page = paper.printable(PAGE, "Sizes", 41, ["far", "here"])
    assert "unwanted" not in page and "Content-Security-Policy" not in page
    assert len(re.findall(r"<details[^>]*\bopen\b", page)) == page.count("<details") == 2
    assert "Hide" not in page and '<span class="expanded">Solution' in page
    assert '<a href="#far" hidden></a><a href="#here" hidden></a></body>' in page


def test_sheets_go_on_counting_under_the_name_of_their_chapter():
    page = paper.printable(PAGE, 'The "1×1" </style> case', 41, [])
    assert "counter-reset: page 40" in page
    assert r'content: "The \"1×1\" \3c /style> case"' in page
    assert page.count("</style>") == 1


def test_the_title_sheet_says_what_it_is():
    settings = {"title": "A <book>", "author": "Us & them", "copyright": "2026"}
    sheet = paper.title_sheet(settings, "<svg></svg>", "1.2")
    assert "<h1>A &lt;book&gt;</h1>" in sheet and "Us &amp; them" in sheet
    assert "<svg></svg>" in sheet and "Version 1.2, 2026." in sheet and "<a " not in sheet
    settings["html"] = {"baseurl": "https://book.example/"}
    assert "<a href='https://book.example/'>" in paper.title_sheet(settings, "", "1.2")


def test_the_contents_name_parts_pages_and_numbers():
    leaves = [Leaf("book/a", "", 0), Leaf("book/b", "I & II", 0), Leaf("book/c", "", 1)]
    sheet = paper.contents_sheet((leaf, leaf.name, 7 * n) for n, leaf in enumerate(leaves, 1))
    assert sheet.count("<ol>") == sheet.count("</ol>") == 2
    assert "<h2>I &amp; II</h2>" in sheet and "--paper-depth:1" in sheet
    lines = re.findall(r'href="([^"]+)"><span>([^<]+)</span><span[^>]*>(\d+)', sheet)
    assert lines == [
        (f"{paper.ORIGIN}book/{x}.html", f"book/{x}", n)
        for x, n in (("a", "7"), ("b", "14"), ("c", "21"))
    ]
