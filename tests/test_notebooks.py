"""The notebooks: what a page's Markdown, formulas, first cell and outputs become."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("jupytext", reason="the book's packages are in requirements.txt")
pytest.importorskip("sphinx", reason="the book's packages are in requirements.txt")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import nbformat  # noqa: E402
import notebooks  # noqa: E402
from nbformat.v4 import new_output  # noqa: E402
from notebooks import cells, start, tex  # noqa: E402
from notebooks.markdown import Page, UnknownMarkup  # noqa: E402
from test_imports import LIBRARIES  # noqa: E402

from convgrad.figures.style import PALETTE  # noqa: E402

MACROS = json.loads((ROOT / "book" / "_ext" / "macros.json").read_text("utf-8"))


class SmallBook:
    """Stands for the rest of the book."""

    macros, palette = MACROS, PALETTE

    def page(self, docname):
        known = {"book/part1/other": ("The other page", "other.ipynb"), "book/far": ("Far", None)}
        return known[docname]

    def section(self, label):
        return {"with-groups": ("With groups", "other.ipynb")}[label]

    def code(self, name):
        return {"convgrad.conv2d": "https://book.example/api.html#convgrad.conv2d"}.get(name)

    def equation(self, label):
        return {"forward": "3", "swap": "18"}[label]

    def figure(self, label):
        return {"fig-steps": "7"}[label]

    def reference(self, key):
        return {"a": ("Ada and Bob", "1990"), "z": ("Zoe et al.", "2001")}[key]

    def source(self, path, options):
        return f"def {options.get('pyobject', 'f')}():\n    ...\n"

    def image(self, path):
        return Path(path).name, b"<svg/>"

    def written(self, directive, argument):
        return [f"**{argument}**, see {{doc}}`/book/far`."] if directive == "plate" else None


def plain(markdown: str) -> str:
    return Page("book/part1/page", SmallBook()).text(markdown)


# ---- formulas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "written"),
    [
        (r"\floor{\frac{a}{b}}+1", r"{\left\lfloor \frac{a}{b} \right\rfloor}+1"),
        (r"\dd{L}{w_{ij}}", r"{\frac{\partial L}{\partial w_{ij}}}"),
        (r"\dd xy", r"{\frac{\partial x}{\partial y}}"),
        (r"\stride\cdot p", r"{s}\cdot p"),
        (r"\xi + \gamma", r"\xi + \gamma"),  # names that begin like a macro
        (r"\floor{\floor{a}}", r"{\left\lfloor {\left\lfloor a \right\rfloor} \right\rfloor}"),
        (r"\code{\{a\}}", r"{\texttt{\{a\}}}"),
    ],
)
def test_macros_are_written_out(source, written):
    assert tex.expanded(source, MACROS) == written


def test_a_colour_is_plain_tex_and_covers_what_it_covered():
    written = tex.colored(tex.expanded(r"\gw[i] + \colx{\frac{a}{b}}", MACROS), PALETTE)
    colors = re.findall(r"\{\\color\{(#\w{6})\}\{(.*?)\}\}", written)
    assert [inner for _, inner in colors] == [r"\bar w", r"\frac{a}{b"]
    assert "htmlClass" not in written and written.count("{") == written.count("}")


@pytest.mark.parametrize("letter", tex.COLORED.values())
def test_a_colour_reads_on_white_and_on_black(letter):
    mixed = tex.on_both_grounds(**PALETTE[letter])
    light = tex.luminance([int(mixed[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    assert 1.05 / (light + 0.05) > 4.5 and (light + 0.05) / 0.05 > 4.5


def test_a_group_that_is_open_is_named():
    with pytest.raises(ValueError, match="not closed"):
        tex.expanded(r"\floor{a", MACROS)


# ---- Markdown -----------------------------------------------------------------------------------


def test_roles_become_words_and_links():
    assert plain("See {doc}`other`, {doc}`the\nfar one </book/far>`, {ref}`with-groups`.") == (
        "See [The other page](other.ipynb), the far one, [With groups](other.ipynb)."
    )
    assert plain("{func}`~convgrad.conv2d` and {class}`convgrad.Other`.") == (
        "[`conv2d`](https://book.example/api.html#convgrad.conv2d) and `convgrad.Other`."
    )
    assert plain("By {eq}`forward`, see {numref}`fig-steps`.") == "By (3), see Fig. 7."


def test_citations_are_authors_and_years():
    page = Page("book/part1/page", SmallBook())
    text = page.text("It is known {cite}`z,a`. {cite:t}`a` draw it.")
    assert text == "It is known (Zoe et al., 2001; Ada and Bob, 1990). Ada and Bob (1990) draw it."
    assert list(page.cited) == ["z", "a"]


def test_code_is_left_as_it_is():
    source = "Write `{doc}` or `$x$`, ``a ` b``.\n\n```python\nx = '{doc}`other` $\\x$'\n```"
    assert plain(source) == source


def test_a_box_is_a_quote_with_a_bold_title():
    box = """```{admonition} Rows of $\\stride$ too many
:class: cg-wrong

One line.

- See {doc}`other`:

$$
a
= b
$$
```"""
    assert plain(box) == (
        "> **Rows of ${s}$ too many**\n>\n> One line.\n>\n> - See [The other page](other.ipynb):\n"
        ">\n> $$a = b$$"
    )


def test_a_folded_box_stays_folded():
    box = "```{admonition} Hint\n:class: dropdown\n\nHalve it.\n```"
    assert plain(box) == "<details><summary><b>Hint</b></summary>\n\nHalve it.\n\n</details>"


def test_a_formula_keeps_its_number():
    formula = "```{math}\n:label: swap\na &= b \\\\\nc &= d\n```"
    assert plain(formula) == ("$$\n\\begin{aligned}a &= b \\\\\nc &= d\\end{aligned} \\tag{18}\n$$")


def test_sources_pictures_tables_and_what_is_not_shown():
    page = Page("book/part1/page", SmallBook())
    text = page.text(
        "(a-label)=\n```{index} words\n```\n% a comment\n"
        "```{literalinclude} ../../src/convgrad/loops.py\n:pyobject: forward\n```\n"
        "```{image} _static/cover.svg\n---\nalt: >-\n  Two\n  grids\n---\n```\n"
        "```{list-table}\n:header-rows: 1\n\n* - a\n  - $\\stride$\n* - c\n  - d\n```\n"
        "```{plate} Name\n```\n"
    )
    assert text == (
        "`src/convgrad/loops.py`:\n\n```python\ndef forward():\n    ...\n```\n\n"
        "![Two grids](attachment:cover.svg)\n\n"
        "| a | ${s}$ |\n| --- | --- |\n| c | d |\n\n**Name**, see Far."
    )
    assert page.pictures == {"cover.svg": b"<svg/>"}


def test_terms_are_told_from_their_meanings():
    assert plain("`a`\n: The {eq}`forward`.\n\n`b`\n:   More: no.") == (
        "`a`\n— The (3).\n\n`b`\n— More: no."
    )


def test_a_directive_that_writes_markdown_is_taken_at_its_word():
    kept = {("exhibits",): ["| a |"], ("exhibit", "crop"): ["**Crop.**"]}
    env = SimpleNamespace(metadata={"book/page": {"written": kept}, "book/other": {}})
    book = notebooks.SphinxBook(SimpleNamespace(env=env), "book/page")
    assert book.written("exhibits", "") == ["| a |"]
    assert book.written("exhibit", "crop") == ["**Crop.**"]
    assert book.written("exhibit", "other") is None and book.written("tab-set", "") is None
    assert (
        notebooks.SphinxBook(SimpleNamespace(env=env), "book/other").written("exhibits", "") is None
    )


@pytest.mark.parametrize("markup", ["```{tab-set}\n```", "{kbd}`Enter`", "```{eval-rst}\n```"])
def test_what_nobody_knows_is_said_and_not_shown(markup):
    with pytest.raises(UnknownMarkup):
        plain(markup)


# ---- cells --------------------------------------------------------------------------------------

PAGE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A page of $\\stride$

First words {cite}`z`.

```{code-cell} python
Player(1)
```

```{code-cell} python
---
tags: [remove-input]
mystnb:
  image:
    alt: A row & a column
  figure:
    caption: Steps of $\\stride$.
    name: fig-steps
---
draw()
```

```{code-cell} python
---
tags: [hide-cell]
---
answer = 2
```
"""


@pytest.fixture
def made(tmp_path):
    return make(tmp_path)


def make(tmp_path):
    (tmp_path / "page.md").write_text(PAGE, "utf-8")
    page = cells.read(tmp_path / "page.md", tmp_path / "no such file")
    player, drawn, _ = [cell for cell in page.cells if cell.cell_type == "code"]
    shown = {cells.WIDGET: {"model_id": "1"}, "text/plain": "<a.b.Player object at 0x7f>"}
    player.outputs = [new_output("execute_result", data=shown, execution_count=1)]
    drawn.outputs = [new_output("display_data", data={"image/svg+xml": "<svg a='b'/>"})]
    return cells.made(
        page,
        Page("book/part1/page", SmallBook()),
        intro="From the book.",
        start="print('ready')",
        figures={"fig-steps": "7"},
        references={"a": "Ada.", "z": "Zoe."},
    )


def test_a_page_becomes_a_notebook(made):
    kinds = [(cell.cell_type, cell.source) for cell in made.cells]
    assert kinds == [
        ("markdown", "# A page of ${s}$\n\nFrom the book."),
        ("code", "print('ready')"),
        ("markdown", "First words (Zoe et al., 2001)."),
        ("code", "Player(1)"),
        ("code", "draw()"),
        ("markdown", "**Fig. 7.** Steps of ${s}$."),
        ("code", "# @title Show the solution\nanswer = 2"),
        ("markdown", "## References\n\n- Zoe."),
    ]
    nbformat.validate(made)


def test_what_the_page_hides_is_folded(made):
    player, drawn, solution = [c for c in made.cells if c.cell_type == "code"][1:]
    assert "jupyter" not in player.metadata
    assert drawn.metadata.jupyter == {"source_hidden": True}
    assert solution.metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}


def test_outputs_need_no_kernel_and_say_what_they_show(made):
    player, drawn, _ = [c.outputs for c in made.cells if c.cell_type == "code"][1:]
    assert player[0].data["text/plain"] == "Player: run this cell, and play."
    assert "0x" not in json.dumps(made) and cells.WIDGET not in player[0].data
    assert 'aria-label="A row &amp; a column"' in drawn[0].data["image/svg+xml"]


def test_the_same_page_gives_the_same_notebook(made, tmp_path):
    assert len({cell.id for cell in made.cells}) == len(made.cells)
    assert nbformat.writes(make(tmp_path)) == nbformat.writes(made)


# ---- the first cell -----------------------------------------------------------------------------


def first_cell(source: str = "", code: str = "import torch") -> str:
    return start.first_cell([code], ROOT / "pyproject.toml", source)


def test_a_chapter_asks_for_what_it_imports():
    assert start.extras(["import numpy\nfrom convgrad import conv2d"]) == set()
    assert start.extras(["%matplotlib inline\nimport torch.nn.functional as F"]) == {"torch"}
    some = "from convgrad import kernels, example\nfrom convgrad.widgets import Predict"
    assert start.extras([some, "!pip list"]) == {"gpu", "widgets"}


@pytest.mark.parametrize("part", ["kernels", "autograd", "distributed", "figures", "widgets"])
def test_a_part_of_the_package_asks_for_the_libraries_that_it_imports(part):
    wanted = start.needs(start.extras([f"import convgrad.{part}"]), ROOT / "pyproject.toml")
    # traitlets comes with anywidget
    libraries = {name.replace("_", "-") for name in LIBRARIES[part]} - {"traitlets"}
    assert libraries and {name.removesuffix("-py") for name in libraries} <= {
        name.removesuffix("-py") for name in wanted
    }


def test_requirements_are_those_of_the_package():
    found = start.needs({"gpu", "figures"}, ROOT / "pyproject.toml")
    assert list(found) == ["numpy", "matplotlib", "torch", "triton"]
    assert found["triton"] == "triton>=3.2; sys_platform == 'linux'"


def test_binder_has_all_that_a_notebook_can_ask_for():
    pins = (ROOT / "binder" / "requirements.txt").read_text("utf-8")
    wanted = start.needs({"fast", *start.EXTRAS.values()}, ROOT / "pyproject.toml")
    assert wanted.keys() <= set(re.findall(r"^([\w.-]+)==", pins, re.M))
    assert {"jupyterlab", "ipykernel", "hatchling"} <= set(re.findall(r"^[\w-]+", pins, re.M))


class Installs:
    """Runs the first cell as if some packages were missing; pip is played."""

    def __init__(self, monkeypatch, *missing: str, status: int = 0) -> None:
        self.missing, self.status, self.asked = set(missing), status, []
        real = metadata.version
        monkeypatch.setattr(metadata, "version", lambda name: self.version(name, real))
        monkeypatch.setattr(subprocess, "run", self.run)

    def version(self, name, real):
        if name in self.missing:
            raise metadata.PackageNotFoundError(name)
        return "9" if name == "convgrad" else real(name)

    def run(self, words):
        self.asked = words[5:]
        self.missing.clear()
        return SimpleNamespace(returncode=self.status)


def test_where_all_is_there_nothing_is_installed(monkeypatch, capsys):
    installs = Installs(monkeypatch)
    exec(first_cell(code="import numpy"), {})
    assert not installs.asked
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("Python 3.") and said[1] == "convgrad 9"
    assert said[2] == f"numpy {metadata.version('numpy')}"


def test_what_is_missing_is_installed_from_the_address(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    installs = Installs(monkeypatch, "convgrad", "matplotlib")
    exec(first_cell("https://book.example/convgrad.whl", "from convgrad import figures"), {})
    assert installs.asked == ["matplotlib>=3.8", "https://book.example/convgrad.whl"]
    assert capsys.readouterr().out.startswith("Installing matplotlib")


def test_the_file_beside_the_notebook_goes_first(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "convgrad-1.0-py3-none-any.whl").touch()
    installs = Installs(monkeypatch, "convgrad")
    exec(first_cell("https://book.example/convgrad.whl", ""), {})
    assert installs.asked == ["convgrad-1.0-py3-none-any.whl"]


def test_without_any_source_a_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Installs(monkeypatch, "convgrad")
    with pytest.raises(ModuleNotFoundError, match="does not lie beside this notebook"):
        exec(first_cell("", ""), {})


def test_a_failed_installation_is_not_silent(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Installs(monkeypatch, "convgrad", status=1)
    with pytest.raises(RuntimeError, match="pip could not install"):
        exec(first_cell("git+https://book.example/book", ""), {})


# ---- where they are, and where they open --------------------------------------------------------


def settings(**theme) -> SimpleNamespace:
    base = theme.pop("baseurl", "")
    return SimpleNamespace(config=SimpleNamespace(html_theme_options=theme, html_baseurl=base))


REPOSITORY = {"repository_url": "https://github.com/me/book/", "repository_branch": "notebooks"}


def line(app) -> str:
    """The page of a chapter, with its line under the title."""
    app.notebook_names = {"book/part1/page": "page"}
    context = {"body": "<h1>Page</h1>\n<p>Words</p>", "pathto": lambda name, resource: f"../{name}"}
    notebooks.lead_there(app, "book/part1/page", "page.html", context, None)
    return context["body"]


def test_a_chapter_leads_to_its_notebook_and_nowhere_else():
    for app in (settings(), settings(repository_url=notebooks.UNSET, repository_branch="master")):
        page = line(app)
        assert re.findall(r'href="([^"]*)" download', page) == [
            "../notebooks/page.ipynb",
            "../notebooks/notebooks.zip",
        ]
        assert page.startswith("<h1>Page</h1>\n<p") and "https:" not in page


def test_with_a_repository_it_opens_in_colab_and_on_binder():
    links = re.findall(r'href="(https:[^"]*)">([^<]*)<', line(settings(**REPOSITORY)))
    assert links == [
        (
            "https://colab.research.google.com/github/me/book/blob/notebooks/page.ipynb",
            "Open in Colab",
        ),
        (
            "https://mybinder.org/v2/gh/me/book/notebooks?urlpath=lab/tree/page.ipynb",
            "Open in Binder",
        ),
    ]


@pytest.mark.parametrize("url", ["https://git.example/me/book", ""])
def test_elsewhere_than_on_github_there_is_nothing_to_open(url):
    assert notebooks.launchers(url, "notebooks", "page") == {}


def test_where_the_package_comes_from():
    wheel = "convgrad-1.0-py3-none-any.whl"
    assert notebooks.package_source(settings(), wheel) == ""
    assert notebooks.package_source(settings(**REPOSITORY), wheel) == (
        "git+https://github.com/me/book"
    )
    known = settings(baseurl="https://book.example/", **REPOSITORY)
    assert notebooks.package_source(known, wheel) == f"https://book.example/notebooks/{wheel}"


def test_two_pages_of_one_name_get_two_notebooks():
    names = notebooks.notebook_names(["book/part1/a", "book/part2/b", "book/part3/b"])
    assert list(names.values()) == ["a", "part2-b", "part3-b"]
