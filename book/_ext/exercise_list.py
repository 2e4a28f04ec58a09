"""Sphinx: the exercises of a part, a table for each chapter: ``{exercise-list} part2``.

The rows have the exercise's key as a class, ``cg-key-weight-one-tap``, by which ``progress.js``
fills in how far the reader has come; without JavaScript it is a list.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from exhibits import Written
from sphinx.application import Sphinx

from convgrad.exercises import Exercise, all_exercises

HEAD = ("Kind", "Level", "State")
NOTHING = "–"


class ExerciseList(Written):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        part = self.arguments[0]
        contents = Path(self.env.srcdir, "_toc.yml").read_text("utf-8")
        boxes: list[nodes.Node] = []
        for chapter in re.findall(rf"file: book/{part}/(\w+)", contents):
            try:
                some = all_exercises(chapter)
            except KeyError:  # a gallery asks nothing
                continue
            boxes.append(self.table(f"/book/{part}/{chapter}", some))
        return boxes

    def table(self, page: str, some: tuple[Exercise, ...]) -> nodes.container:
        rows = [
            (f"{{doc}}`{page}`", *HEAD),
            ("---", "---", ":-:", "---"),
            *((each.title, each.kind, str(each.level), NOTHING) for each in some),
        ]
        box = self.box("cg-progress", (f"| {' | '.join(cells)} |" for cells in rows))
        (body,) = box.findall(nodes.tbody)
        for row, each in zip(body.findall(nodes.row), some, strict=True):
            row["classes"].append(f"cg-key-{each.key}")
        return box


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("exercise-list", ExerciseList)
    app.add_js_file("progress.js", defer="defer")  # look.py takes it from pages without a list
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
