"""A page and what its cells gave when the book was built, as one notebook."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from .markdown import Page

WIDGET = "application/vnd.jupyter.widget-view+json"
# Whose code the page hides.  JupyterLab folds such a cell; Colab shows the title of a form.
FOLDED = {"remove-input", "remove-cell", "hide-input", "hide-cell"}
SILENT = {"remove-cell", "remove-output", "hide-output", "hide-cell"}  # whose output it hides
SOLUTION = "# @title Show the solution"


def read(source: Path, ran: Path) -> NotebookNode:
    """The cells of a page: as they ran for the book, else as jupytext divides its source."""
    return nbformat.read(ran, 4) if ran.is_file() else jupytext.read(source)


def code_of(page: NotebookNode) -> list[str]:
    return [cell.source for cell in page.cells if cell.cell_type == "code"]


def made(
    page: NotebookNode,
    on: Page,
    *,
    intro: str,
    start: str,
    figures: dict[str, str],
    references: dict[str, str],
) -> NotebookNode:
    """The notebook of a page.

    ``start`` is the cell that comes first, ``intro`` what stands under the title.  ``figures`` are
    the numbers of the page's figures by name, ``references`` all entries of the bibliography, in
    its order, of which the cited are listed.
    """
    cells = _first(page.cells[0], on, intro)
    folded = {"tags": ["setup"], "jupyter": {"source_hidden": True}, "cellView": "form"}
    cells.insert(1, _code_cell(start, folded, []))
    for cell in page.cells[1:]:
        if cell.cell_type == "code":
            cells += [_code(cell), *_caption(cell, on, figures)]
        else:
            cells += _words(cell.source, on)
    if on.cited:
        listed = [f"- {text}" for key, text in references.items() if key in on.cited]
        cells.append(_markdown_cell("\n".join(["## References", "", *listed])))
    for number, cell in enumerate(cells):
        # the same at every build; a random one would make each notebook a new one
        cell.id = hashlib.sha256(f"{number} {cell.source}".encode()).hexdigest()[:8]
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "file_extension": ".py"},
    }
    return nbformat.from_dict(
        {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    )


# nbformat's own makers check each cell against its schema, which takes longer than all the rest.


def _markdown_cell(source: str) -> NotebookNode:
    return NotebookNode(cell_type="markdown", metadata=NotebookNode(), source=source)


def _code_cell(source: str, metadata: dict[str, Any], outputs: list[Any]) -> NotebookNode:
    return NotebookNode(
        cell_type="code",
        metadata=nbformat.from_dict(metadata),
        source=source,
        outputs=outputs,
        execution_count=None,
    )


def _first(cell: NotebookNode, on: Page, intro: str) -> list[NotebookNode]:
    """The title with the intro beneath it, and what the page says after its title."""
    title, _, rest = cell.source.partition("\n")
    return [_markdown_cell(f"{on.inline(title)}\n\n{intro}"), *_words(rest, on)]


def _words(source: str, on: Page) -> list[NotebookNode]:
    on.pictures.clear()
    text = on.text(source)
    if not text:
        return []
    cell = _markdown_cell(text)
    if on.pictures:
        kinds = {".svg": "image/svg+xml", ".png": "image/png"}
        cell.attachments = {
            name: {kinds[Path(name).suffix]: base64.b64encode(content).decode()}
            for name, content in on.pictures.items()
        }
    return [cell]


def _code(cell: NotebookNode) -> NotebookNode:
    tags = set(cell.metadata.get("tags", ()))
    source, metadata = cell.source, {}
    if tags:
        metadata["tags"] = sorted(tags)
    folds = {
        key: True
        for key, names in (("source_hidden", FOLDED), ("outputs_hidden", SILENT))
        if tags & names
    }
    if folds:
        metadata["jupyter"] = folds
    if tags & FOLDED:
        metadata["cellView"] = "form"
    if "hide-cell" in tags:  # where nothing folds, the words say it
        source = f"{SOLUTION}\n{source}"
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    return _code_cell(source, metadata, [_output(each, alt) for each in cell.outputs])


def _output(output: NotebookNode, alt: str) -> NotebookNode:
    """What a cell showed, without the kernel that a widget needs and with words for a picture."""
    data: dict[str, Any] = NotebookNode(output.get("data", {}))
    if output.output_type == "stream":
        return output
    # the number of its run would tell of a kernel that is not there
    output = NotebookNode(output_type="display_data", metadata=NotebookNode(), data=data)
    if WIDGET in data:
        name = re.search(r"(\w+) object at|^\w+", data.get("text/plain", "widget"))
        words = f"{name[1] or name[0]}: run this cell, and play."
        output.data = {"text/markdown": f"*{words}*", "text/plain": words}
    elif alt and "image/svg+xml" in data:
        label = html.escape(" ".join(alt.split()), quote=True)
        output.data["image/svg+xml"] = data["image/svg+xml"].replace(
            "<svg ", f'<svg role="img" aria-label="{label}" ', 1
        )
    return output


def _caption(cell: NotebookNode, on: Page, figures: dict[str, str]) -> list[NotebookNode]:
    figure = cell.metadata.get("mystnb", {}).get("figure", {})
    if not figure.get("caption"):
        return []
    number = figures.get(figure.get("name", ""))
    words = on.inline(" ".join(figure["caption"].split()))
    return [_markdown_cell(f"**Fig. {number}.** {words}" if number else words)]
