"""Sphinx: the notebooks in JupyterLab, in the browser (:mod:`tools.lite`).

Every page that has a notebook gets a link that opens it there.  Nothing of it is loaded before.
Where its Python cannot be had, the site is built without, as it is without live cells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]

logger = logging.getLogger(__name__)


def find_python(app: Sphinx, config: Any) -> None:
    """Before anything is read: the runtime, or the sentence that says why there is none."""
    from tools import runtime

    try:
        app.lite_python = runtime.fetch(runtime.NOTEBOOK, say=logger.info)
    except runtime.RuntimeMissing as missing:
        logger.info("The site is built without JupyterLab in the browser: %s", missing)
        app.lite_python = None
    app.has_lite = config.book_lite = app.lite_python is not None


def write_folder(app: Sphinx, exception: Exception | None) -> None:
    """At the very end, from the notebooks that are in the site."""
    if exception is not None or app.builder.format != "html":
        return
    from tools import lite

    site = Path(app.outdir)
    if app.lite_python is None or not (site / "notebooks").is_dir():
        lite.remove(site)
    elif lite.write(site, app.lite_python):
        logger.info("JupyterLab for the browser was built into %s/", lite.FOLDER)


def setup(app: Sphinx) -> dict[str, Any]:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    app.add_config_value("book_lite", False, "html", bool)  # all pages have the link or none
    app.connect("config-inited", find_python)
    app.connect("build-finished", write_folder, priority=900)  # after notebooks and live cells
    return {"version": "1", "parallel_read_safe": True}
