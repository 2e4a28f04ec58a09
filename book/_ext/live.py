"""Sphinx: cells that readers can edit and run in the page.

A page whose code is shown gets one small script, ``book/live/switch.js``, which puts the switch
"Run live" into its head; everything else comes when that is pressed.  The code of the cells, which
of them cannot be run in a browser and why, Python itself and convgrad's own wheel lie in the folder
``_live`` of the site: ``tools/live.py`` says what it holds, ``tools/runtime.py`` where Python comes
from.

Where Python cannot be had (no network, nothing kept from before) the site is built without the
switch, and the build says so.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
CELLS = "live_cells"  # in the environment's metadata of a page

logger = logging.getLogger(__name__)


def find_python(app: Sphinx, config: Any) -> None:
    """Before anything is read: the runtime, or the sentence that says why there is none."""
    from tools import runtime

    try:
        app.live_python = runtime.fetch(say=logger.info)
    except runtime.RuntimeMissing as missing:
        # no warning: those are errors, and the pages are whole without it
        logger.info("The pages are built without live cells: %s", missing)
        app.live_python = None
    config.book_live = app.live_python is not None


def take_cells(app: Sphinx, doctree: nodes.document) -> None:
    """After reading: the cells of a page, as its script is told of them.

    A page whose cells talk to the notebook or to a shell is left as it is.
    """
    from tools import live

    name = app.env.docname
    places = [
        node for node in doctree.findall(nodes.container) if node.get("nb_element") == "cell_code"
    ]
    if not places:
        return
    cells = live.cells(Path(app.env.doc2path(name)))
    if len(places) != sum(cell.in_page for cell in cells):
        logger.warning(
            "%d cells are in the page and %d in its source", len(places), len(cells), location=name
        )
        return
    if not all(map(live.is_python, cells)):
        return
    described = live.described(cells, live.absent())
    if any(cell.get("shown") and "needs" not in cell for cell in described):
        app.env.metadata[name][CELLS] = described


def add_switch(app: Sphinx, page: str, template: str, context: dict, doctree: Any) -> None:
    from tools import live

    if app.live_python is None or CELLS not in app.env.metadata.get(page, {}):
        return
    address = html.escape(context["pathto"](f"{live.FOLDER}/{live.switch_name()}", resource=True))
    tag = f'<script defer src="{address}" data-cells="{live.cells_name(page)}"></script>'
    context["metatags"] = f"{context.get('metatags', '')}{tag}\n"


def write_folder(app: Sphinx, exception: Exception | None) -> None:
    """At the end: what the switch asks for; nothing where there is no Python."""
    if exception is not None or app.builder.format != "html":
        return
    from static_widgets import tools_name

    from tools import live

    folder = Path(app.outdir, live.FOLDER)
    python = app.live_python
    pages = {
        name: metadata[CELLS] for name, metadata in app.env.metadata.items() if CELLS in metadata
    }
    if python is not None and pages:
        live.write(folder, pages, python, tools_name())
    else:
        live.remove(folder)


def setup(app: Sphinx) -> dict[str, Any]:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    app.add_config_value("book_live", False, "html", bool)  # all pages have the switch or none
    app.connect("config-inited", find_python)
    app.connect("doctree-read", take_cells)
    app.connect("html-page-context", add_switch)
    app.connect("build-finished", write_folder)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True}
