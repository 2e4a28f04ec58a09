"""Building the book: failures are seen, nothing old is shown, nothing is done twice."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("jupyter_book", reason="the book's packages are in requirements.txt")
from tools import book, fingerprint

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "node_modules" / "katex").is_dir():
    pytest.skip("KaTeX is not installed: make setup", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.book, pytest.mark.xdist_group("book_build")]

HEAD = """---
myst:
  html_meta:
    description: A page of two cells.
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  name: python3
---

"""
FIGURE = """
```{code-cell} python
---
tags: [remove-input]
mystnb:
  image:
    alt: Two cells, 1 and 2, the first lit & large.
  figure:
    caption: Two cells of $\\colx{x}$.
    name: fig-two
---
from convgrad.figures.grids import Grid, draw
draw(Grid([[1, 2]], "x", title="x", lit=[(0, 0)]))
```

{numref}`fig-two` and {eq}`one`.

$$a = \\colx{x}$$ (one)

| a | b |
|---|---|
| 1 | 2 |
"""

FOLDED = """
```{admonition} Box
:class: dropdown
Words.
```
"""


def cell(code: str) -> str:
    return f"\n```{{code-cell}} python\n{code}\n```\n"


class Project:
    """A book of two pages with the real settings, extensions, styles and templates."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copy(ROOT / "_config.yml", root)
        for folder in ("_static", "_templates"):
            shutil.copytree(ROOT / "book" / folder, root / "book" / folder)
        (root / "book" / "_ext").symlink_to(ROOT / "book" / "_ext")
        self.write(
            "_toc.yml", "format: jb-book\nroot: book/preface\nchapters:\n- file: book/page\n"
        )
        self.write("book/references.bib", "")
        self.write("book/preface.md", "# Preface\n\nSee {doc}`page` & more of it. And then?\n")
        self.page("# Page\n" + FIGURE + FOLDED + cell(":tags: [hide-cell]\nprint(6 * 7)"))

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, "utf-8")

    def page(self, text: str) -> None:
        self.write("book/page.md", HEAD + text)

    def build(self) -> tuple[Path, str]:
        said: list[str] = []
        site = book.build(self.root, say=said.append)
        return site, "\n".join(said)

    def html(self, name: str = "page") -> str:
        return (self.root / "_build" / "html" / "book" / f"{name}.html").read_text("utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Built once; every test leaves it whole."""
    project = Project(tmp_path_factory.mktemp("book"))
    project.build()
    return project


def test_the_site_is_whole(project):
    site = project.root / "_build" / "html"
    assert "url=book/preface.html" in (site / "index.html").read_text("utf-8")
    for page in ("page", "preface"):
        links = re.findall(
            r'(?:href|src)="((?!https?:|#|data:|mailto:)[^"#?]+)', project.html(page)
        )
        missing = [link for link in links if not (site / "book" / link).exists()]
        assert missing == []
        assert not re.search(r'<(script|link|img)[^>]*="https?:', project.html(page))
        assert "fontawesome" not in project.html(page) and "thebe" not in project.html(page)


def test_a_page_loads_the_styles_that_it_needs(project):
    for part in ("katex.css", "togglebutton.css", "togglebutton.js"):
        assert part in project.html() and part not in project.html("preface")


def test_a_folded_cell_is_named_by_its_words(project):
    handle = re.search(r"<summary.*?</summary>", project.html(), re.S)[0]
    assert "Show code cell" in handle and "aria-label" not in handle


def test_the_icon_library_stays_behind(project):
    static = project.root / "_build/html/_static"
    css = (static / "styles/pydata-sphinx-theme.css").read_text("utf-8")
    assert "webfonts" not in css and ".bd-sidebar-primary" in css
    assert not list(static.rglob("*fontawesome*"))


def test_a_figure_is_in_the_page_with_its_words(project):
    page = project.html()
    (svg,) = re.findall(r'<svg [^>]*class="cg-svg".*?</svg>', page, re.S)
    assert 'role="img" aria-label="Two cells, 1 and 2, the first lit &amp; large."' in svg
    assert "var(--cg-x)" in svg and "cg-theme" not in svg and 'id="cg-paper"' not in svg
    assert "#fig-two" in page and 'class="enclosing cg-col-x"' in page
    assert not list((project.root / "_build/html").rglob("_images/*.svg"))
    assert '<div class="cg-scroll cg-table' in page


def test_two_builds_give_the_same_bytes(project, tmp_path):
    """In another folder, from nothing: no dates, no random names, no traces of the place."""
    twin = Project(tmp_path)
    twin.build()
    sites = [each.root / "_build" / "html" for each in (project, twin)]
    files = [
        {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
        for site in sites
    ]
    assert len(files[0]) > 30 and files[0].keys() == files[1].keys()
    assert [name for name in files[0] if files[0][name] != files[1][name]] == []


ADDRESS = "https://example.org/the/book/"
REPOSITORY = "\nrepository:\n  url: https://github.com/me/book\n  branch: notebooks\n"


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The same book with an address and a repository."""
    known = Project(tmp_path_factory.mktemp("known"))
    settings = (known.root / "_config.yml").read_text("utf-8")
    settings = settings.replace("html:\n", f"html:\n  baseurl: {ADDRESS}\n", 1)
    known.write("_config.yml", settings + REPOSITORY)
    known.build()
    return known


def test_a_chapter_can_be_taken_along_as_a_notebook(project, known):
    """From the page, and where there is a repository, to Colab and Binder; nowhere else without."""
    for each in (project, known):
        folder = each.root / "_build" / "html" / "notebooks"
        assert {path.suffix for path in folder.iterdir()} == {".ipynb", ".whl", ".zip", ".md"}
        assert '<a href="../notebooks/page.ipynb" download>' in each.html()
        assert "page.ipynb" not in each.html("preface"), "it has no cells"
        notebook = (folder / "page.ipynb").read_text("utf-8")
        assert "Fig. 1 and (1)." in notebook and "Two cells of $" in notebook
        assert (f"{ADDRESS}notebooks/convgrad-" in notebook) == (each is known)
    branch = "https://colab.research.google.com/github/me/book/blob/notebooks/page.ipynb"
    assert f'<a href="{branch}">Open in Colab</a>' in known.html()
    assert "https://mybinder.org/v2/gh/me/book/notebooks?" in known.html()
    assert "colab" not in project.html() and "binder" not in project.html().lower()


def test_an_address_gives_links_a_map_and_a_cover(project, known):
    address, site = ADDRESS, known.root / "_build" / "html"
    assert f'rel="canonical" href="{address}book/page.html"' in known.html()
    assert f'property="og:url" content="{address}book/page.html"' in known.html()
    assert f'property="og:image" content="{address}_static/cover.png"' in known.html()
    assert (site / "_static/cover.png").read_bytes().startswith(b"\x89PNG")
    places = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text("utf-8"))
    assert places == [f"{address}book/{page}.html" for page in ("page", "preface")]
    assert '<base href="/the/book/">' in (site / "404.html").read_text("utf-8")

    unknown = project.root / "_build" / "html"
    assert not (unknown / "sitemap.xml").exists() and "canonical" not in project.html()
    assert '<base href="/">' in (unknown / "404.html").read_text("utf-8")


def test_a_page_says_what_it_is_about(project):
    """In its own words, or in its first sentence; once for machines, once for messengers."""
    for page, words in (("preface", "See Page & more of it."), ("page", "A page of two cells.")):
        head = html.unescape(project.html(page).partition("</head>")[0])
        assert re.search(r'<meta [^>]*name="description"[^>]*>', head)[0].count(words) == 1
        assert f'<meta property="og:description" content="{words}">' in head
    assert '<meta property="og:title" content="Preface">' in project.html("preface")


def test_every_page_has_its_policy_once(project):
    site = project.root / "_build" / "html"
    # JupyterLite's own pages are its own; test_lite_page.py watches what they ask for
    pages = [path for path in site.rglob("*.html") if not {"_static", "lite"} & {*path.parts}]
    assert len(pages) >= 6
    for path in pages:
        page = path.read_text("utf-8")
        assert page.count("Content-Security-Policy") == 1, path
        assert "unsafe-inline'; script" not in page and "unsafe-eval" not in page


def test_a_second_build_does_nothing(project):
    written = (project.root / "_build/html/book/page.html").stat().st_mtime_ns
    _, said = project.build()
    assert "up to date" in said
    assert (project.root / "_build/html/book/page.html").stat().st_mtime_ns == written


def test_an_edit_of_a_style_reaches_the_site_and_runs_no_cell(project):
    style = project.root / "book/_static/convgrad.css"
    style.write_text(style.read_text("utf-8") + "\n.bd-article { --new-rule: 1; }\n", "utf-8")
    # the last stylesheet of the page is the one that ends with the book's own rules
    link = r'rel="stylesheet"[^>]* href="\.\./(_joined/[^"?]+\.css)\?v=(\w+)"'
    before = re.findall(link, project.html())[-1]
    _, said = project.build()
    file, version = re.findall(link, project.html())[-1]
    assert "new-rule" in (project.root / "_build/html" / file).read_text("utf-8")
    assert (file, version) != before
    assert "Execut" not in said and "up to date" not in said


def test_other_code_means_other_outputs(project):
    """The page is the same; what its cells import is not: every cell runs again."""
    caches = project.root / "_build" / "execution"
    (old,) = caches.iterdir()
    source = project.root / "src" / "module.py"
    source.parent.mkdir()
    source.write_text("value = 2\n")
    _, said = project.build()
    assert "Executed notebook" in said
    (new,) = caches.iterdir()
    assert new.name != old.name
    shutil.rmtree(source.parent)


FIGURE_WITHOUT_WORDS = FIGURE.replace(
    "alt: Two cells, 1 and 2, the first lit & large.", "width: 9em"
)
WRONG = {
    "nowhere-doc": "See {doc}`nowhere-doc`.",
    "nowhere-formula": "See {eq}`nowhere-formula`.",
    "convgrad.nowhere": "See {py:func}`convgrad.nowhere`.",
    "KaTeX parse error": r"A formula, $\frac{1}{$.",
    "without alt text": FIGURE_WITHOUT_WORDS,
    "stderr was found": cell("import warnings\nwarnings.warn('careful')"),
    "ZeroDivisionError": cell("1 / 0"),
}


def test_what_is_wrong_stops_the_build_every_time(project):
    good = (project.root / "book/page.md").read_text("utf-8")
    project.page("# Page\n\n" + "\n\n".join(WRONG.values()))
    for _ in range(2):  # Sphinx alone would keep silent about a page that it has read once
        said: list[str] = []
        with pytest.raises(book.BookError) as error:
            book.build(project.root, say=said.append)
        for message in WRONG:
            assert message in "\n".join(said)
        assert str(error.value).count("book/page.md:") >= len(WRONG)
        assert "book/page.md: a cell failed: ZeroDivisionError: division by zero" in str(
            error.value
        )
        assert "CellExecutionError" not in str(error.value)
    project.write("book/page.md", good)
    assert "no warnings" in project.build()[1]


def test_what_follows_from_a_failed_cell_is_no_problem_of_its_own():
    said = [
        "book/a.md: WARNING: Executing notebook failed: CellExecutionError",
        "nbclient.exceptions.CellExecutionError: An error occurred while executing",
        "NameError                                 Traceback (most recent call last)",
        "NameError: name 'mett' is not defined",
        "book/a.md: WARNING: Notebook exception traceback saved in: a.err.log [mystnb.exec]",
        "book/a.md:20: WARNING: a widget cannot be shown: its state is not in the page",
        "book/a.md:20: WARNING: the output of a cell got lost",
        "book/b.md:3: WARNING: unknown document: 'nowhere'",
    ]
    assert book.problems(said) == [
        "book/a.md: a cell failed: NameError: name 'mett' is not defined",
        "book/b.md:3: WARNING: unknown document: 'nowhere'",
    ]
    assert book.problems(said[-2:]) == said[-2:]  # without a failed cell each stands for itself


def test_pages_are_not_built_with_old_widgets(project, monkeypatch):
    stale = project.root / "bundle.mjs"
    stale.write_text("process.exit(1)")
    project.page("# Page\n\nChanged.")
    monkeypatch.setattr(book, "BUNDLE", stale)
    with pytest.raises(book.BookError, match="make bundle"):
        book.build(project.root, say=lambda line: None)


def test_a_page_that_left_the_book_leaves_the_site(project):
    toc = (project.root / "_toc.yml").read_text("utf-8")
    project.write("_toc.yml", toc + "- file: book/extra\n")
    project.write("book/extra.md", "# Extra\n")
    project.build()
    assert "Extra" in project.html("extra")
    (project.root / "book/extra.md").unlink()
    project.write("_toc.yml", toc)
    project.build()
    assert not (project.root / "_build/html/book/extra.html").exists()


def test_two_builds_take_turns(project):
    fcntl = pytest.importorskip("fcntl")
    said = []
    with open(project.root / "_build" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = Thread(target=book.build, args=[project.root], kwargs={"say": said.append})
        second.start()
        second.join(timeout=1)
        assert second.is_alive() and "waiting" in said[0]
    second.join(timeout=120)
    assert not second.is_alive() and len(said) > 1


def test_missing_settings_are_named(tmp_path):
    with pytest.raises(book.BookError, match=r"_config\.yml is missing"):
        book.build(tmp_path, say=lambda line: None)


# ---- fingerprints ------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    for name in ("src/convgrad/a.py", "book/page.md", "book/_static/a.css", "book/_ext/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ("src/convgrad/a.py", "execution"),
        ("src/convgrad/widgets/static/a.js", "execution"),
        ("benchmarks/a.json", "execution"),
        ("book/page.md", "pages"),
        ("_toc.yml", "pages"),
        ("book/_static/a.css", "look"),
        ("book/_templates/a.html", "look"),
        ("book/_ext/a.py", "extensions"),
    ],
)
def test_a_change_is_seen_where_it_matters(tree, changed, part):
    before = fingerprint.everything(tree)
    (tree / changed).parent.mkdir(parents=True, exist_ok=True)
    (tree / changed).write_text("2")
    after = fingerprint.everything(tree)
    assert {name for name in after if after[name] != before[name]} == {part}


def test_what_python_leaves_behind_is_not_a_change(tree):
    before = fingerprint.everything(tree)
    (tree / "src/convgrad/__pycache__").mkdir()
    (tree / "src/convgrad/__pycache__/a.pyc").write_text("2")
    assert fingerprint.everything(tree) == before


def test_the_versions_of_pinned_packages_count():
    assert re.search(r"^numpy \d", fingerprint.versions(), re.M)
    assert re.search(r"^python \d", fingerprint.versions(), re.M)
