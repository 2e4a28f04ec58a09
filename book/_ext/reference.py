"""Sphinx: the reference pages, made by autodoc from the package's docstrings.

* A signature too long for one line has one parameter a line; Sphinx writes these as a list
  inside a list's heading, which no browser may nest: here they become plain lines.
* A widget's signature is its constructor's (traitlets puts one of its own before it).
* A class of the package that a docstring names as a type becomes a link.
* Quotation marks in a docstring are Python's and stay straight; the dash before a description is
  made here, since what makes quotes typographic makes dashes too.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

_SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.S)
_ANYTHING = "(*args, **kwargs)"


def lines_of_parameters(app: Sphinx, name: str, template: str, context: dict, doctree: Any) -> None:
    def plain(signature: re.Match[str]) -> str:
        text = re.sub(r"<dl[^>]*>", '<span class="cg-parameters">', signature[0])
        text = re.sub(r"<dd[^>]*>", '<span class="cg-parameter">', text)
        return re.sub(r"</d[dl]>", "</span>", text)

    if "body" in context:
        context["body"] = _SIGNATURE.sub(plain, context["body"])


def signature_of_constructor(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: Any
) -> tuple[str, None] | None:
    if what != "class" or signature != _ANYTHING:
        return None
    own = inspect.signature(obj.__init__)
    without_self = list(own.parameters.values())[1:]
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in without_self]
    return str(own.replace(parameters=bare, return_annotation=inspect.Signature.empty)), None


def link_types(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """``ConvGeometry`` in *(ConvGeometry, optional)* leads to its page."""
    objects = app.env.get_domain("py").objects
    classes = {
        name.rpartition(".")[2]: entry
        for name, entry in objects.items()
        if entry.objtype == "class" and not entry.aliased
    }
    for content in doctree.findall(addnodes.desc_content):
        for kind in list(content.findall(nodes.emphasis)):
            if len(kind) != 1 or not isinstance(kind[0], nodes.Text):
                continue  # done already, inside another description
            linked: list[nodes.Node] = []
            for word in re.split(r"(\w+)", kind.astext()):
                entry = classes.get(word)
                if entry is None:
                    linked.append(nodes.Text(word))
                    continue
                page = app.builder.get_relative_uri(docname, entry.docname)
                address = f"{page}#{entry.node_id}"
                linked.append(nodes.reference("", word, internal=True, refuri=address))
            kind[:] = linked


class StraightQuotes(SphinxTransform):
    default_priority = 700  # before the quotes are made typographic

    def apply(self, **kwargs: Any) -> None:
        for content in self.document.findall(addnodes.desc_content):
            for element in content.findall(nodes.TextElement):
                element["support_smartquotes"] = False
            for text in list(content.findall(nodes.Text)):
                if "-- " in text and not isinstance(text.parent, nodes.FixedTextElement):
                    text.parent.replace(text, nodes.Text(text.replace("-- ", "– ")))


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", signature_of_constructor)
    app.connect("doctree-resolved", link_types)
    app.connect("html-page-context", lines_of_parameters)
    app.add_transform(StraightQuotes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
