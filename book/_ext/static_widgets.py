"""Widgets on the static page: no kernel, no RequireJS, no html-manager, no network.

myst-nb leaves two things in a page with widgets: for every display a small script that names a
model, and one script with the full state of all models, in which every model carries its own
copy of the module and the stylesheet.  It also asks a content delivery network for RequireJS and
html-manager.  This extension turns all of that into

* one ``<div class="cg-widget">`` at the place of every display, holding the widget's `fallback`
  (a picture that needs no JavaScript, and the one that is printed) and, at a model's first
  display, its state without the dead weight;
* one file for each module and stylesheet, ``_widgets/<name>-<hash>.js`` beside the pages (under
  ``_static`` Sphinx and the theme would put it on every page), and one for what all widgets share;
* one small loader on the pages that have widgets, and nothing on the others.

Models are numbered in the order in which the page shows them, so two builds give the same page.
Nothing is to be set in ``_config.yml`` but the extension itself:

    sphinx:
      local_extensions:
        static_widgets: book/_ext

What a widget is in such a page stands in ``convgrad/widgets/page.py``; the loader,
``convgrad/widgets/js/loader.js``, says how a module is found and started.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from convgrad.widgets.page import (
    PAGE_CSS,
    Model,
    file_name,
    loader_text,
    markup,
    model_of,
    tools_text,
)

__all__ = ["FOLDER", "Page", "setup", "static_widget"]

FOLDER = "_widgets"
AT_ONCE = 2  # displays whose modules are fetched before the page has been read; the others wait

VIEW_MIME = "application/vnd.jupyter.widget-view+json"
VIEW_SCRIPT = re.compile(
    rf'\s*<script type="{re.escape(VIEW_MIME)}">(?P<view>.*)</script>\s*', re.DOTALL
)

logger = logging.getLogger(__name__)


@dataclass
class Page:
    """The widgets of one document, by the random id that the kernel gave each."""

    models: dict[str, Model] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # file name in FOLDER: text


class static_widget(nodes.General, nodes.Element):
    """One display of a widget.

    A node of its own and not raw HTML: the digits of a fallback have no place in the search
    index, and other builders can leave it out.
    """


# ---- from the kernel's state to a Page ------------------------------------------------------


def read_page(widget_state: dict[str, Any]) -> tuple[Page, dict[str, str]]:
    """The page of one notebook's widget state, and why other models cannot be on it."""
    page, refused = Page(), {}
    for model_id, entry in widget_state["state"].items():
        if entry["model_name"] in {"LayoutModel"} or entry["model_name"].endswith("StyleModel"):
            continue  # the boxes of html-manager; nobody displays them
        try:
            page.models[model_id] = model_of(entry, page.files)
        except ValueError as reason:
            refused[model_id] = str(reason)
    return page, refused


# ---- the files of a page ----------------------------------------------------------------------


def loader_name() -> str:
    return file_name("loader", loader_text(), ".js")


def tools_name() -> str:
    return file_name("tools", tools_text(), ".js")


def packed(text: str) -> str:
    """A module as a classic script that hands its text to the loader, for ``file://``.

    Browsers import no modules from there, but they run scripts.
    """
    return f"convgradModule({json.dumps(text)});\n"


# ---- the steps of the build -----------------------------------------------------------------


def take_state(app: Sphinx, doctree: nodes.document) -> None:
    """After reading: take the widget state, and the scripts that came with it, from myst-nb."""
    metadata = getattr(app.env, "nb_metadata", {}).get(app.env.docname, {})
    scripts = metadata.get("js_files", {})
    for key in [key for key in scripts if key.startswith("ipywidgets_")]:
        _, attributes = scripts.pop(key)
        if key == "ipywidgets_state":
            # myst-nb escapes </script> in a way that JSON reads back by itself
            page, refused = read_page(json.loads(attributes["body"]))
            metadata["static_widgets"], metadata["refused_widgets"] = page, refused


class PlaceWidgets(SphinxPostTransform):
    """A `static_widget` for every display, once the HTML output has been chosen."""

    default_priority = 500  # after myst-nb's choice of a mime type and its glue
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        metadata = getattr(self.env, "nb_metadata", {}).get(self.env.docname, {})
        page = metadata.get("static_widgets", Page())
        refused = metadata.get("refused_widgets", {})
        names: dict[str, str] = {}
        for raw, model_id in list(displays(self.document)):
            if model_id not in page.models:
                why = refused.get(model_id, "its state is not in the page: show it in a cell")
                logger.warning("a widget cannot be shown: %s", why, location=raw, type="widgets")
                raw.parent.remove(raw)
                continue
            first = model_id not in names
            name = names.setdefault(model_id, f"w{len(names) + 1}")
            model = page.models[model_id]
            node = static_widget(html=markup(name, model, first), model=model)
            raw.replace_self(node)


class MissOutputs(SphinxPostTransform):
    """A cell whose output has nothing left in it fails the build instead of leaving a gap.

    Whatever a cell shows (a widget above all), the page must show; an empty place for it means
    that it got lost between the notebook and the page.
    """

    default_priority = 900  # when nothing more will be placed or chosen
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for place in self.document.findall(nodes.container):
            shown = (nodes.Text, nodes.raw, nodes.image, static_widget)
            if "cell_output" in place["classes"] and not any(
                isinstance(node, shown) for node in place.findall()
            ):
                logger.warning("the output of a cell got lost", location=place, type="widgets")


def displays(document: nodes.document) -> Iterator[tuple[nodes.raw, str]]:
    """The places where myst-nb shows a widget, with the id of its model."""
    for raw in document.findall(nodes.raw):
        found = VIEW_SCRIPT.fullmatch(raw.astext())
        if found:
            yield raw, json.loads(found["view"])["model_id"]


def add_to_head(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """The stylesheets and the loader, on pages that have widgets."""
    found = list(doctree.findall(static_widget)) if doctree else []
    if not found:
        return

    def address(name: str) -> str:
        return html.escape(context["pathto"](f"{FOLDER}/{name}", resource=True))

    modules = dict.fromkeys(node["model"].module for node in found[:AT_ONCE])
    sheets = dict.fromkeys(node["model"].stylesheet for node in found)
    tags = [f'<link rel="stylesheet" href="{address(name)}">' for name in sheets if name]
    tags.append(f"<style>{PAGE_CSS}</style>")
    # it asks for these modules at once, while the page is still being read
    named = f'data-modules="{html.escape(" ".join(modules))}" data-tools="{tools_name()}"'
    tags.append(f'<script async src="{address(loader_name())}" {named}></script>')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags) + "\n"


def write_files(app: Sphinx, exception: Exception | None) -> None:
    """At the end: the shared files of all pages, and none that no page uses any more."""
    if exception or app.builder.format != "html":
        return
    files: dict[str, str] = {}
    for metadata in getattr(app.env, "nb_metadata", {}).values():
        files.update(metadata.get("static_widgets", Page()).files)
    if files:
        files[tools_name()] = tools_text()
    modules = [name for name in files if name.endswith(".js")]
    files.update({f"{name.removesuffix('.js')}.packed.js": packed(files[name]) for name in modules})
    if files:
        files[loader_name()] = loader_text()
    folder = Path(app.outdir, FOLDER)
    if folder.is_dir():
        for old in folder.iterdir():
            if old.name not in files:
                old.unlink()
    for name, text in files.items():
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def visit_html(self: Any, node: static_widget) -> None:
    self.body.append(node["html"])


def skip(self: Any, node: static_widget) -> None:
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(
        static_widget,
        html=(visit_html, lambda self, node: None),
        latex=(skip, None),
        text=(skip, None),
        man=(skip, None),
        texinfo=(skip, None),
    )
    app.connect("doctree-read", take_state)
    app.add_post_transform(PlaceWidgets)
    app.add_post_transform(MissOutputs)
    app.connect("html-page-context", add_to_head)
    app.connect("build-finished", write_files)
    return {"version": "2", "env_version": 2, "parallel_read_safe": True}
