"""Makes a submitted notebook fit its assignment again, before nbgrader looks at it.

Cells that were deleted come back, copies and changed metadata are put right, so that no change of
a notebook can stop its grading, nor change what a cell is worth.  The text of locked cells is
nbgrader's to put back (``OverwriteCells``), with the hidden tests.
"""

from __future__ import annotations

import copy
from typing import Any

from ..extras import needs
from .sources import SEED_TAG, grader_data

with needs("classroom", "convgrad.classroom"):
    from nbgrader.preprocessors import NbGraderPreprocessor
    from traitlets import Any as AnyTrait

__all__ = ["Restore", "restore"]


class Restore(NbGraderPreprocessor):  # type: ignore[misc]
    """The preprocessor: ``released`` is the students' notebook; ``notes`` says what was done."""

    released = AnyTrait()
    seed = AnyTrait()

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.notes: list[str] = []

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        self.notes += restore(notebook, self.released, self.seed)
        return notebook, resources


def restore(notebook: Any, released: Any, seed: str | None = None) -> list[str]:
    """Change ``notebook`` to have each cell of ``released`` once; what had to be done, in words.

    The learner's ``seed`` goes into the cell that is tagged for it.
    """
    notes: list[str] = []
    wanted = {grader_data(cell)["grade_id"]: cell for cell in _marked(released)}
    place: dict[str, int] = {}
    for k, cell in enumerate(notebook.cells):
        name = grader_data(cell).get("grade_id")
        original = wanted.get(name) if isinstance(name, str) else None
        if name is None or original is None:
            cell.metadata.pop("nbgrader", None)  # no cell of ours, whatever it says
            continue
        if name in place:
            notes.append(f"cell {name} is there twice: the last one counts")
            notebook.cells[place[name]].metadata.pop("nbgrader", None)
        place[name] = k
    for name, k in place.items():
        notebook.cells[k], said = _put_right(notebook.cells[k], wanted[name], name)
        notes += said
    notes += _bring_back(notebook, wanted)
    _set_seed(notebook, released, seed)
    for k, cell in enumerate(notebook.cells):  # ids that are missing or the same stop nbformat
        cell["id"] = f"cell-{k}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata.pop("widgets", None)
    return notes


def _marked(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if grader_data(cell).get("grade_id")]


def _put_right(cell: Any, original: Any, name: str) -> tuple[Any, list[str]]:
    """The cell with the type and the metadata of the original."""
    notes = []
    if cell.cell_type != original.cell_type:
        notes.append(f"cell {name} was turned into {cell.cell_type}, and back")
        source, cell = cell.source, copy.deepcopy(original)
        cell.source = source
    meta = grader_data(original)
    if grader_data(cell).get("points", meta.get("points")) != meta.get("points"):
        notes.append(f"the points of cell {name} were changed, and put back")
    is_locked = meta.get("locked") or (meta.get("grade") and not meta.get("solution"))
    if is_locked and cell.source != original.source:
        notes.append(f"cell {name}, which is locked, was changed, and put back")
    cell.metadata = copy.deepcopy(original.metadata)
    return cell, notes


def _bring_back(notebook: Any, wanted: dict[str, Any]) -> list[str]:
    """Insert the cells that are missing.

    A test as late as it can stand, and everything else as early, so that whatever the learner has
    put in an answer's place comes between them and counts.
    """
    notes = []
    order = list(wanted)
    kept = {grader_data(cell).get("grade_id") for cell in notebook.cells}
    for k, name in enumerate(order):
        here = {grader_data(cell).get("grade_id"): j for j, cell in enumerate(notebook.cells)}
        if name in here:
            continue
        notes.append(f"cell {name} was missing, and put back")
        if _is_test(wanted[name]):
            after = [here[each] for each in order[k + 1 :] if each in here]
            least = [here[each] + 1 for each in order[:k] if each in here]
            at = max([min(after, default=len(notebook.cells)), *least])
        else:
            before = [each for each in order[:k] if each in here]
            early = [each for each in before if each in kept or not _is_test(wanted[each])]
            at = max((here[each] + 1 for each in early), default=0)
        notebook.cells.insert(at, copy.deepcopy(wanted[name]))
    return notes


def _is_test(cell: Any) -> bool:
    meta = grader_data(cell)
    return bool(meta.get("grade") and not meta.get("solution"))


def _set_seed(notebook: Any, released: Any, seed: str | None) -> None:
    if seed is None or not any(_is_seed_cell(cell) for cell in released.cells):
        return
    for cell in notebook.cells:
        if _is_seed_cell(cell):
            cell.source = f"seed = {seed!r}"


def _is_seed_cell(cell: Any) -> bool:
    return cell.cell_type == "code" and SEED_TAG in cell.metadata.get("tags", ())
