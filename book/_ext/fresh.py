"""Sphinx: no page may show the output of older code.

The execution cache of myst-nb looks at the cells alone; a change in the package would pass
unseen.  Here the cache gets a folder named by everything that a cell's output depends on, older
folders go, and the same names are settings of the build: when the package or an extension
changes Sphinx reads every page again, when styles or templates change it writes every page again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
CACHES = "execution"  # the folder of caches, beside the output


def name_cache(app: Sphinx, config: Any) -> None:
    """Point myst-nb to this state's cache and drop those of other states."""
    caches = Path(app.outdir).parent / CACHES
    for old in caches.glob("*"):
        if old.name != config.book_execution:
            shutil.rmtree(old)
    config.nb_execution_cache_path = str(caches / config.book_execution)


def setup(app: Sphinx) -> dict[str, Any]:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from tools import fingerprint

    root = Path(app.srcdir)
    app.add_config_value("book_execution", fingerprint.execution(root), "env", str)
    app.add_config_value("book_extensions", fingerprint.extensions(root), "env", str)
    app.add_config_value("book_look", fingerprint.look(root), "html", str)
    app.connect("config-inited", name_cache)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
