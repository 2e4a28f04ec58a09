"""From sources to what students get, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from ..extras import needs
from .markers import canary_in
from .sources import Source, read_sources

__all__ = ["Leak", "release"]


class Leak(RuntimeError):
    """Something that was to be hidden stands in a students' notebook: says what.

    Examples
    --------
    >>> raise Leak("part1: the notebook holds the canary: heron")
    Traceback (most recent call last):
        ...
    convgrad.classroom.releasing.Leak: part1: the notebook holds the canary: heron
    """


def release(sources: str | Path, to: str | Path) -> list[Path]:
    """Write the students' notebooks of a folder of sources.

    A source is a MyST notebook ``NAME.md`` (or ``NAME.ipynb``) whose cells carry nbgrader's
    metadata.  Solutions, hidden tests and mark schemes, between their markers, are taken out by
    nbgrader; then each notebook is searched for what should not be in it.

    Parameters
    ----------
    sources : str or pathlib.Path
        The folder of the sources.
    to : str or pathlib.Path
        The folder to write to, as ``NAME/NAME.ipynb``.  Other files in it stay.

    Returns
    -------
    list of pathlib.Path
        What was written.

    Raises
    ------
    SourceError
        For a marker that hides nothing, or a source that is not complete, with the line.
    Leak
        Before anything is written, if a solution or hidden test was left in a notebook.
    ModuleNotFoundError
        Without nbgrader and jupytext, with the command that installs them.

    Examples
    --------
    >>> release("no-such-folder", to="handout")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.classroom.sources.SourceError: no-such-folder: there is no such folder;
    a source is a file NAME.md in one
    """
    found = read_sources(Path(sources))
    with needs("classroom", "convgrad release"):
        import nbformat

        from .nbgrading import generate, quietly, scratch
    texts = {}
    with scratch() as folder:
        unused = Path(folder, "unused.db")  # one for all: nbgrader takes seconds to start one
        for source in found:
            notebook = generate(source, Path(folder), unused)
            with quietly():
                texts[source.name] = nbformat.writes(notebook) + "\n"
            look_for_leaks(source, notebook, texts[source.name])
    written = []
    for name, text in texts.items():
        path = Path(to) / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
        written.append(path)
    return written


def look_for_leaks(source: Source, notebook: object, text: str) -> None:
    """Raise :class:`Leak` if the students' notebook holds a canary, a marker or a secret line."""
    canary = canary_in(text)
    if canary:
        raise Leak(f"{source.name}: the students' notebook holds the {canary}; nothing was written")
    for number, cell in enumerate(notebook.cells, 1):  # type: ignore[attr-defined]
        lines = {line.strip() for line in cell.source.split("\n")}
        for line in sorted(lines & source.secrets):
            raise Leak(
                f"{source.name}: cell {number} of the students' notebook holds the line "
                f"`{line}` of a solution or hidden test; nothing was written"
            )
        if cell.get("outputs"):
            raise Leak(f"{source.name}: cell {number} has an output; nothing was written")
