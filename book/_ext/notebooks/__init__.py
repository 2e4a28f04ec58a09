"""Sphinx: every chapter as a notebook, to download or to open where notebooks run.

A page with cells gets a notebook ``notebooks/<name>.ipynb`` in the site.  Its Markdown is written
for a Jupyter that knows nothing of this book (:mod:`.markdown`), its first cell brings what is
missing (:mod:`.start`), its outputs are those of the page (:mod:`.cells`).  Beside the notebooks
lie the package, as a wheel, and ``notebooks.zip`` with all of it.  Under each title a line leads
there.

Two settings of ``_config.yml`` say more, where they are set.  With ``html: baseurl:`` links lead
to the site, and a lone notebook fetches the package there.  With ``repository: url:, branch:`` the
line has links to Colab and Binder too; they open the notebooks that are published in that branch
(``make notebooks``), since neither opens Markdown.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import nbformat
from sphinx.application import Sphinx
from sphinx.directives.code import LiteralIncludeReader
from sphinx.util import logging

from . import cells, start
from .markdown import Page, UnknownMarkup

logger = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[3]
MACROS = Path(__file__).resolve().parents[1] / "macros.json"
UNSET = "https://github.com/executablebooks/jupyter-book"  # what Jupyter Book takes for ours
DRAWN = {"package-map"}  # directives that draw, where words tell the same
PLAIN = str.maketrans("“”‘’", "\"\"''")  # Sphinx has curled the quotes of its titles
FOLDER, ARCHIVE = "notebooks", "notebooks.zip"


class SphinxBook:
    """What a page asks of the rest of the book, as Sphinx knows it when all pages are read."""

    def __init__(self, app: Sphinx, docname: str) -> None:
        from convgrad.figures.style import PALETTE

        self.app, self.env, self.docname = app, app.env, docname
        self.palette = PALETTE
        self.macros = json.loads(MACROS.read_text("utf-8"))

    def page(self, docname: str) -> tuple[str, str | None]:
        if docname not in self.env.titles:
            raise UnknownMarkup(f"there is no page {docname}")
        return self.env.titles[docname].astext(), self._address(docname)

    def section(self, label: str) -> tuple[str, str | None]:
        labels = self.env.get_domain("std").labels
        anonymous = self.env.get_domain("std").anonlabels
        if label not in labels and label not in anonymous:
            raise UnknownMarkup(f"there is no label {label}")
        docname, anchor, *title = labels.get(label) or anonymous[label]
        address = self._address(docname, anchor)
        if not title:
            return label, address
        if address and not self.address(docname):  # a notebook, where headings are marks
            mark = quote(str(title[0]).translate(PLAIN).replace(" ", "-"), safe="-'?!,:")
            address = f"#{mark}" if docname == self.docname else f"{address}#{mark}"
        return str(title[0]), address

    def code(self, name: str) -> str | None:
        objects = self.env.get_domain("py").objects
        found = objects.get(name)
        return self._address(found.docname, found.node_id) if found else None

    def equation(self, label: str) -> str:
        found = self.env.get_domain("math").equations.get(label)
        if found is None:
            raise UnknownMarkup(f"there is no formula {label}")
        docname, number = found
        numbers = self.env.toc_fignumbers.get(docname, {}).get("displaymath", {})
        return ".".join(map(str, numbers.get(f"equation-{label}", (number,))))

    def figure(self, label: str) -> str:
        docname = self.env.get_domain("std").anonlabels.get(label, ("",))[0]
        number = self.env.toc_fignumbers.get(docname, {}).get("figure", {}).get(label)
        if number is None:
            raise UnknownMarkup(f"there is no figure {label}")
        return ".".join(map(str, number))

    def reference(self, key: str) -> tuple[str, str]:
        entry = next((c.entry for c in self._citations() if c.key == key), None)
        if entry is None:
            raise UnknownMarkup(f"there is no reference {key}")
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [" ".join(map(str, person.rich_last_names)) for person in people]
        if not names:
            return str(entry.fields.get("title", key)), entry.fields.get("year", "n. d.")
        last = f" and {names[1]}" if len(names) == 2 else " et al." * (len(names) > 2)
        return names[0] + last, entry.fields.get("year", "n. d.")

    def references(self) -> dict[str, str]:
        """Every entry of the bibliography as the book prints it, in its order."""
        from pybtex.backends.markdown import Backend

        listed = sorted(self._citations(), key=lambda each: str(each.formatted_entry.text).lower())
        return {
            each.key: _without_needless(each.formatted_entry.text.render(Backend("utf-8")))
            for each in listed
        }

    def source(self, path: str, options: dict[str, str]) -> str:
        file = Path(self.app.srcdir, self.docname).parent / path
        known: dict[str, Any] = {**options}
        if "dedent" in known:
            known["dedent"] = int(known["dedent"]) if known["dedent"] else None
        text, _ = LiteralIncludeReader(str(file), known, self.app.config).read()
        return text

    def image(self, path: str) -> tuple[str, bytes]:
        file = Path(self.app.srcdir, self.docname).parent / path
        return file.name, file.read_bytes()

    def written(self, directive: str, argument: str) -> list[str] | None:
        if directive in DRAWN:
            return ["*(Here the page has a drawing.)*"]
        kept = self.env.metadata[self.docname].get("written", {})
        return kept.get((directive, argument) if argument else (directive,))

    def figures(self) -> dict[str, str]:
        numbers = self.env.toc_fignumbers.get(self.docname, {}).get("figure", {})
        return {name: ".".join(map(str, number)) for name, number in numbers.items()}

    def address(self, docname: str) -> str | None:
        """The page itself, where the site's own address is known."""
        base = self.app.config.html_baseurl
        return urljoin(base, f"{docname}.html") if base else None

    def _address(self, docname: str, anchor: str = "") -> str | None:
        site = self.address(docname)
        if site:
            return f"{site}#{anchor}" if anchor else site
        names = self.app.notebook_names  # type: ignore[attr-defined]
        return f"{names[docname]}.ipynb" if docname in names else None

    def _citations(self) -> list[Any]:
        return self.env.get_domain("cite").citations


def _without_needless(markdown: str) -> str:
    """Without the backslashes before signs that mean nothing within a line."""
    return re.sub(r"\\([-.()#+!{}])", r"\1", " ".join(markdown.split()))


# ---- which pages, under which names, from where ----------------------------------------------


def has_cells(source: Path) -> bool:
    """Whether a page can be a notebook: it runs cells and Sphinx writes no part of it."""
    text = source.read_text("utf-8")
    return "```{code-cell}" in text and "{eval-rst}" not in text


def notebook_names(docnames: list[str]) -> dict[str, str]:
    """Short names, all in one folder: the file's own, longer where two pages share it."""
    short = [docname.rpartition("/")[2] for docname in docnames]
    return {
        docname: name if short.count(name) == 1 else docname.removeprefix("book/").replace("/", "-")
        for docname, name in zip(docnames, short, strict=True)
    }


def in_order(app: Sphinx) -> list[str]:
    """The pages that have notebooks, as the table of contents has them."""
    site_map = getattr(app.config, "external_site_map", None) or getattr(
        app.env, "external_site_map", None
    )
    listed = [str(name) for name in site_map] if site_map else sorted(app.env.found_docs)
    return [
        name
        for name in listed
        if name in app.env.found_docs and has_cells(Path(app.env.doc2path(name)))
    ]


def repository(app: Sphinx) -> tuple[str, str]:
    """The address of the repository and the branch with its notebooks, where they are set."""
    options = app.config.html_theme_options
    url = options.get("repository_url", "").rstrip("/")
    return ("", "") if url == UNSET else (url, options.get("repository_branch", ""))


def package_source(app: Sphinx, wheel: str) -> str:
    """What pip finds the package by, when its file does not lie beside a notebook."""
    url, _ = repository(app)
    if app.config.html_baseurl:
        return urljoin(app.config.html_baseurl, f"{FOLDER}/{wheel}")
    return f"git+{url}" if url else ""


def launchers(url: str, branch: str, name: str) -> dict[str, str]:
    """Where the published notebook can be opened, by the name of the place."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", url)
    if not found or not branch:
        return {}
    file = f"{name}.ipynb"
    colab = f"https://colab.research.google.com/github/{found[1]}/blob/{branch}/{file}"
    binder = f"https://mybinder.org/v2/gh/{found[1]}/{branch}?urlpath=lab/tree/{file}"
    return {"Colab": colab, "Binder": binder}


# ---- the steps of the build ------------------------------------------------------------------


def name_notebooks(app: Sphinx, env: Any) -> None:
    app.notebook_names = notebook_names(in_order(app))  # type: ignore[attr-defined]


def lead_there(app: Sphinx, name: str, template: str, context: dict, doctree: Any) -> None:
    """Puts the line with the notebook's links under the title of a page."""
    short = getattr(app, "notebook_names", {}).get(name)
    if not short or "body" not in context:
        return

    def at(file: str) -> str:
        return html.escape(context["pathto"](f"{FOLDER}/{file}", resource=True))

    links = [
        f'<a href="{at(f"{short}.ipynb")}" download>Download as notebook</a>',
        f'<a href="{at(ARCHIVE)}" download>All notebooks, with the package</a>',
    ]
    if getattr(app, "has_lite", False):
        address = context["pathto"](f"lite/notebooks/index.html?path={short}.ipynb", resource=True)
        links.insert(
            0, f'<a href="{html.escape(address)}">Open as notebook, here in the browser</a>'
        )
    for place, address in launchers(*repository(app), short).items():
        links.append(f'<a href="{html.escape(address)}">Open in {place}</a>')
    line = f'<p class="cg-copies">{" ".join(links)}</p>'
    context["body"] = context["body"].replace("</h1>", f"</h1>\n{line}", 1)


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    if app.builder.format != "html" or exception is not None:
        return
    names: dict[str, str] = app.notebook_names  # type: ignore[attr-defined]
    folder = Path(app.outdir, FOLDER)
    shutil.rmtree(folder, ignore_errors=True)
    if not names:
        return
    folder.mkdir()
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tools import archive, wheel

    package = wheel.build(Path(app.outdir).parent / "wheel")
    shutil.copy(package, folder)
    source = package_source(app, package.name)
    for docname, name in names.items():
        try:
            text = notebook_of(app, docname, source)
        except UnknownMarkup as unknown:
            logger.warning("%s", unknown, location=docname, type="notebooks")
            continue
        (folder / f"{name}.ipynb").write_text(text, "utf-8")
    (folder / "README.md").write_text(contents(app, names), "utf-8")
    archive.pack(folder, folder / ARCHIVE, "backward-pass-notebooks")


def notebook_of(app: Sphinx, docname: str, package: str) -> str:
    """The file of one page's notebook."""
    book = SphinxBook(app, docname)
    ran = Path(app.outdir).parent / "jupyter_execute" / f"{docname}.ipynb"
    page = cells.read(Path(app.env.doc2path(docname)), ran)
    address = book.address(docname)
    place = f"the [page]({address})" if address else "the page"
    notebook = cells.made(
        page,
        Page(docname, book),
        intro=(
            f"*From the interactive book **{app.config.html_title}**; {place} is nicer to read. "
            "The first cell brings what is missing. Then run the cells from top to bottom, "
            "and change what you like.*"
        ),
        start=start.first_cell(cells.code_of(page), ROOT / "pyproject.toml", package),
        figures=book.figures(),
        references=book.references(),
    )
    return nbformat.writes(notebook) + "\n"


def contents(app: Sphinx, names: dict[str, str]) -> str:
    """What lies in the folder, for who opens it."""
    lines = [f"- [{app.env.titles[doc].astext()}]({name}.ipynb)" for doc, name in names.items()]
    return "\n".join(
        [
            f"# {app.config.html_title}: the notebooks",
            "",
            "Each notebook stands by itself. Its first cell installs what is missing; the file",
            "`convgrad-….whl` beside it is the package that all of them use.",
            "",
            *lines,
            "",
            "The text is under CC BY 4.0, the code under the MIT licence.",
            "",
        ]
    )


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("env-updated", name_notebooks)
    app.connect("html-page-context", lead_there)
    app.connect("build-finished", write_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
