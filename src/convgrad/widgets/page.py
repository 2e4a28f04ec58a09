"""A widget as a piece of a page without a kernel: its HTML, its files, what a page must hold.

The book (``book/_ext/static_widgets.py``) puts many of these into its pages and shares their
files; :func:`convgrad.widgets.save_html` puts one into a page of its own.  The loader
``js/loader.js`` starts them in both.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "DEAD_WEIGHT",
    "PAGE_CSS",
    "Model",
    "file_name",
    "loader_text",
    "markup",
    "model_of",
    "script_json",
    "tools_text",
]

STATIC = Path(__file__).parent / "static"

# What the notebook needs of a model and the page does not: how JupyterLab finds the module, the
# box around it, the modules themselves (files of their own) and the fallback (in the page already).
DEAD_WEIGHT = {
    *("layout", "tabbable", "tooltip", "fallback"),
    *("_anywidget_id", "_css", "_dom_classes", "_esm", "_tools", "_view_count"),
    *("_model_module", "_model_module_version", "_model_name"),
    *("_view_module", "_view_module_version", "_view_name"),
}

# The live widget stands before its fallback.  On paper the fallback is shown; the live one then
# keeps a place of no size instead of vanishing, because patterns of an SVG that is not displayed
# are lost to every other SVG that names them.
PAGE_CSS = (
    ".cg-widget{position:relative;margin:1.5rem 0}"
    ".cg-widget.cg-mounted>.cg-fallback{display:none}"
    ".cg-widget>.cg-note,.cg-fallback>noscript>.cg-note{"
    "margin:.75rem 0 0;color:var(--cg-muted,inherit);font:.875rem/1.4 system-ui,sans-serif}"
    "@media print{"
    ".cg-widget>.cg-live{position:absolute;width:0;height:0;overflow:hidden;visibility:hidden}"
    ".cg-widget.cg-mounted>.cg-fallback{display:block}"
    ".cg-widget{break-inside:avoid}"
    ".cg-widget>.cg-note,.cg-fallback>noscript{display:none}}"
)

NO_SCRIPT = "Switch JavaScript on to work with this in the page."


@dataclass(frozen=True)
class Model:
    """One widget as the page needs it: which files it uses, what it knows, what stands for it."""

    module: str  # file name of the module
    stylesheet: str | None
    state: dict[str, Any]
    fallback: str


def file_name(anywidget_id: str, text: str, suffix: str) -> str:
    """``convgrad.widgets.player.ContributionPlayer`` → ``contribution_player-1a2b3c4d.js``.

    The hash is the text's, so a browser never keeps an old file for a new page.
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", anywidget_id.rsplit(".", 1)[-1]).lower()
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{words}-{digest}{suffix}"


def model_of(entry: dict[str, Any], files: dict[str, str]) -> Model:
    """What the page needs of one entry of the widget state; its texts are added to `files`.

    Raises ValueError, with a sentence, for a widget that cannot live without a kernel.
    """
    state = entry["state"]
    if entry["model_name"] != "AnyModel":
        raise ValueError(f"{entry['model_name']} is no anywidget: it needs a kernel")
    identity = state.get("_anywidget_id", "widget")
    if entry.get("buffers"):
        names = ", ".join(".".join(map(str, each["path"])) for each in entry["buffers"])
        raise ValueError(f"{identity} keeps bytes in {names}: send lists of numbers instead")

    def keep(text: str, suffix: str) -> str:
        name = file_name(identity, text, suffix)
        files[name] = text
        return name

    return Model(
        module=keep(state["_esm"], ".js"),
        stylesheet=keep(state["_css"], ".css") if state.get("_css", "").strip() else None,
        state={name: value for name, value in state.items() if name not in DEAD_WEIGHT},
        fallback=state.get("fallback", ""),
    )


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element: no ``<`` can close it."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def markup(name: str, model: Model, first: bool) -> str:
    """The HTML of one display; the state goes with the first display of a model."""
    parts = [f'<div class="cg-widget" data-model="{html.escape(name)}">']
    parts.append(f'<div class="cg-fallback">{model.fallback}')
    parts.append(f'<noscript><p class="cg-note">{NO_SCRIPT}</p></noscript></div>')
    if first:
        payload = script_json({"module": model.module, "state": model.state})
        parts.append(f'<script type="application/json">{payload}</script>')
    parts.append("</div>\n")
    return "".join(parts)


def loader_text() -> str:
    """The bundled loader as a classic script, which also runs from ``file://``."""
    bundle = (STATIC / "loader.js").read_text("utf-8").strip()
    # a function around it: the names of a classic script would be everybody's
    return f'(()=>{{"use strict";{bundle}}})();\n'


def tools_text() -> str:
    """The module with what all widgets can: undo, links, PyTorch code, knobs."""
    return (STATIC / "tools.js").read_text("utf-8")
