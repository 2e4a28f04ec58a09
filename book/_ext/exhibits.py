"""Sphinx: the list of exhibits and their plates, made of ``convgrad.museum``.

* ``{exhibits}`` is the whole list, a table.  ``museum.js`` puts filters above it; without
  JavaScript it is the list.  The columns that can be filtered have the class ``cg-filter``.
* ``{exhibit} key`` is the plate under an exhibit's heading: what goes wrong, where it was seen,
  what catches it, and which page and which test are about it.

Both are written in the page's own Markdown, so citations and links are checked like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from convgrad.museum import CATCHERS, EXHIBITS, KINDS, Exhibit, exhibit

HEAD = ("Exhibit", "Gradient", "Kind", "Caught by", "Seen in")
FILTERED = ("Gradient", "Kind", "Caught by")


class Written(SphinxDirective):
    """A directive whose content is Markdown that it writes itself.

    What it wrote is kept with the page, since the page's notebook needs it too.
    """

    def box(self, name: str, lines: Iterable[str]) -> nodes.container:
        box = nodes.container(classes=[name])
        where, lines = self.state.document.current_source, list(lines)
        kept = self.env.metadata[self.env.docname].setdefault("written", {})
        kept[self.name, *self.arguments] = lines
        self.state.nested_parse(StringList(lines, where), self.content_offset, box)
        return box


class List(Written):
    def run(self) -> list[nodes.Node]:
        box = self.box("cg-museum", table())
        for entry in next(box.findall(nodes.thead)).findall(nodes.entry):
            if entry.astext() in FILTERED:
                entry["classes"].append("cg-filter")
        return [box]


def table() -> list[str]:
    rows = [HEAD, ("---",) * len(HEAD), *map(row, EXHIBITS)]
    return [f"| {' | '.join(cells)} |" for cells in rows]


def row(each: Exhibit) -> tuple[str, ...]:
    return (
        f"{{ref}}`{each.title} <museum-{each.key}>`",
        ", ".join(each.targets),
        KINDS[each.kind],
        CATCHERS[each.caught_by],
        each.library,
    )


class Plate(Written):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return [self.box("cg-plate", plate(exhibit(self.arguments[0])))]


def plate(each: Exhibit) -> list[str]:
    gradients = f"{' and '.join(each.targets)} gradient{'s' * (len(each.targets) > 1)}"
    return [
        f"**{gradients.capitalize()}: {KINDS[each.kind]}.** Seen in {each.library} "
        f"{{cite}}`{','.join(each.reports)}`. Caught by: *{CATCHERS[each.caught_by]}*. "
        f"Explained in {{doc}}`/book/{each.chapter}`. Test: the case `{each.case}`."
    ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("exhibits", List)
    app.add_directive("exhibit", Plate)
    app.add_js_file("museum.js", defer="defer")  # look.py takes it from pages without a list
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
