"""Grades one submission, with nbgrader's Autograde, in a folder and a gradebook of its own.

Runs in a process of its own (:mod:`convgrad.classroom.server` makes it), so that nothing that
happens here reaches another submission.  A task and what comes back are plain dictionaries, which
go through pipes and across machines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

from ..extras import needs
from .execute import NOT_RUN, Guard, Run, Settle
from .nbgrading import directory, opened, quietly, read_notebook, reasons_of, scratch
from .restore import Restore
from .sandbox import KERNEL, Limits, write_kernelspec
from .sources import grader_data
from .suspicion import suspicions

with needs("classroom", "convgrad.classroom"):
    import nbformat
    from nbgrader.converters import Autograde
    from nbgrader.preprocessors import (
        CheckCellMetadata,
        ClearOutput,
        LimitOutput,
        OverwriteCells,
        OverwriteKernelspec,
    )
    from nbgrader.preprocessors.saveautogrades import SaveAutoGrades

__all__ = ["grade_one"]

_LEARNER = "learner"  # nbgrader never sees a name that could upset its patterns
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def grade_one(task: dict[str, Any], stopped_file: Path) -> dict[str, Any]:
    """Grade the notebook in ``task``; the points of each cell, and what is to be said.

    ``stopped_file`` is where the server writes why it ended a kernel.
    """
    begun = time.monotonic()
    result: dict[str, Any] = {"status": "graded", "notes": list(task["notes"]), "flags": []}
    blank = Path(task["blank"])
    released = read_notebook((blank / "released.ipynb").read_bytes())
    source = read_notebook((blank / "source.ipynb").read_bytes())
    try:
        notebook = read_notebook(Path(task["notebook"]).read_bytes())
    except (OSError, ValueError) as trouble:
        return result | {"status": "not graded", "reason": str(trouble), "cells": []}
    result["flags"] += suspicions(notebook, source)
    with scratch("cg-one-") as folder:
        graded = _autograde(task, notebook, released, source, Path(folder), stopped_file, result)
    result["cells"] = _cells(graded, result.pop("scores"))
    _keep(graded, Path(task["keep"]))
    result["seconds"] = round(time.monotonic() - begun, 2)
    return result


def _autograde(
    task: dict[str, Any],
    notebook: Any,
    released: Any,
    source: Any,
    root: Path,
    stopped_file: Path,
    result: dict[str, Any],
) -> Any:
    name = task["assignment"]
    submitted = root / "submitted" / _LEARNER / name / f"{name}.ipynb"
    submitted.parent.mkdir(parents=True)
    submitted.write_text(json.dumps(notebook), encoding="utf-8")
    gradebook = root / "gradebook.db"
    shutil.copyfile(Path(task["blank"]) / "blank.db", gradebook)
    limits = Limits(**task["limits"])
    _prepare_kernel(task, root, limits)

    course = directory(root, name, _LEARNER, gradebook)
    converter = Autograde(coursedir=course, config=_settings(course.config, root, limits))
    converter.permissions = 644
    parts = {"parent": converter, "enabled": True}
    put_right = Restore(**parts, released=released, seed=task["seed"])
    guard = Guard(source)
    run = Run(
        **parts,
        guard=guard,
        cell_seconds=limits.cell_seconds,
        seconds=float(limits.seconds),
        most_output=limits.output,
        reason=lambda: _read(stopped_file),
    )
    converter.sanitize_preprocessors = [
        ClearOutput,
        put_right,
        OverwriteKernelspec,
        OverwriteCells,
        CheckCellMetadata,
    ]
    converter.autograde_preprocessors = [
        run,
        Settle(**parts),
        LimitOutput,
        SaveAutoGrades,
        CheckCellMetadata,
    ]
    with reasons_of(converter), quietly():
        converter.start()

    result["notes"] += [*put_right.notes, *run.notes]
    result["flags"] += [f"changed while it ran: {each}" for each in guard.changed]
    if run.stopped:
        result |= {"status": "graded in part", "reason": run.stopped}
    result["scores"] = _scores(gradebook, name)
    written = root / "autograded" / _LEARNER / name / f"{name}.ipynb"
    return read_notebook(written.read_bytes())


def _settings(config: Any, root: Path, limits: Limits) -> Any:
    config.Run.kernel_name = KERNEL
    config.Run.shutdown_kernel = "immediate"
    config.Run.startup_timeout = 60
    config.KernelManager.transport = "ipc"
    config.KernelManager.ip = str(root / "run" / "k")
    config.KernelManager.connection_file = str(root / "run" / "kernel.json")
    config.LimitOutput.max_lines = 1000
    return config


def _prepare_kernel(task: dict[str, Any], root: Path, limits: Limits) -> None:
    run = root / "run"
    run.mkdir(mode=0o700)
    root.chmod(0o711)  # the sandbox's user passes through to its own folder, and lists nothing
    write_kernelspec(
        root / "jupyter",
        run,
        limits,
        task["sandbox"],
        {"CONVGRAD_SEED": task["seed"]},
        tuple(map(Path, task["hide"])),
    )
    os.environ |= {
        "JUPYTER_PATH": str(root / "jupyter"),
        "JUPYTER_RUNTIME_DIR": str(run),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_DATA_DIR": str(root / "data"),
    }


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _scores(gradebook: Path, assignment: str) -> dict[str, dict[str, Any]]:
    """What nbgrader's gradebook says of each cell."""
    with opened(gradebook) as book:
        submission = book.find_submission(assignment, _LEARNER)
        found = {}
        for part in submission.notebooks:
            for grade in part.grades:
                found[grade.name] = {
                    "points": grade.auto_score,
                    "of": grade.max_score,
                    "by_hand": bool(grade.needs_manual_grade),
                }
            for comment in part.comments:
                found.setdefault(comment.name, {})["comment"] = comment.auto_comment
    return found


def _cells(notebook: Any, scores: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The graded cells in the notebook's order, with the error that cost the points."""
    cells = []
    for cell in notebook.cells:
        name = grader_data(cell).get("grade_id")
        if name is None or name not in scores:
            continue
        error = next((o for o in cell.get("outputs", []) if o.output_type == "error"), None)
        about = {"name": name, **scores[name]}
        if error is not None:
            text = _ANSI.sub("", str(error.evalue))[:2000]
            about |= {"error": str(error.ename), "message": text, "ran": error.ename != NOT_RUN}
        cells.append(about)
    return cells


def _keep(notebook: Any, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_suffix(".new")
    with quietly():
        nbformat.write(notebook, fresh)
    os.replace(fresh, place)
