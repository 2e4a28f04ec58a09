"""JupyterLab in the browser: the book's notebooks, with the Python that runs the pages' cells.

JupyterLite is a JupyterLab without a server.  Its own build makes the folder ``lite`` of the site;
here is what it is told:

* its Python is the one of ``tools/runtime.py``, which lies in the site already for the cells of the
  pages.  Every package stands in one list, the kernel's own among them, so that nothing is ever
  asked of the network;
* the notebooks are those for download, but that their first cell has nothing to install, and that
  cells which no browser can run say so (:func:`for_browser`).

It takes seconds, and is left out when nothing has changed (:func:`stamp`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat

from . import live, runtime

FOLDER = "lite"
STAMP = "stamp.json"
# One notebook, without the frame of a laboratory; with it; and the list of all.
APPS = ("notebooks", "lab", "tree")
KERNEL = "@jupyterlite/pyodide-kernel-extension"
# The frontend's side of what runs there; others that happen to be installed stay away.
EXTENSIONS = (KERNEL, "@jupyter-widgets/jupyterlab-manager", "anywidget")
LABEXTENSIONS = Path(sys.prefix, "share", "jupyter", "labextensions")
# What the kernel asks for when it starts.  Whatever it finds loaded, it does not go looking for.
STARTS_WITH = (
    *("micropip", "piplite", "ssl", "sqlite3", "ipykernel", "comm"),
    *("pyodide_kernel", "jedi", "ipython"),
)

# Every cell stays on the page, for the browser's own search and for explorables that are alive.
OVERRIDES = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},  # dark where the system is
}

FIRST = """\
# @title What this chapter runs on, here in the browser
import sys
from importlib.metadata import version

import convgrad
from IPython.core.magic import register_cell_magic


@register_cell_magic
def needs(what, cell):
    \"\"\"Stands before a cell that no browser can run.\"\"\"
    print(f"This cell needs {what}, which no browser has. The page shows what comes out.")
    print("To run it, download the notebook from there.")


print("Python", sys.version.split()[0])
for name in ["convgrad", "numpy"]:
    print(name, version(name))"""


def for_browser(notebook: Any) -> Any:
    """The notebook as it is opened in a browser.

    The first cell of a download installs what is missing; here all is there.  Cells that need what
    cannot be had begin with ``%%needs …``, and keep the output of the page until they are run.
    """
    made = deepcopy(notebook)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    code[0].source, code[0].outputs = FIRST, []
    wants = _needs([live.Cell(cell.source) for cell in code[1:]])
    for cell, need in zip(code[1:], wants, strict=True):
        if need:
            cell.source = f"%%needs {need}\n{cell.source}"
    return made


def _needs(cells: list[live.Cell]) -> list[str]:
    """What each cell needs that no browser has; "" where it has all."""
    plain = [cell if live.is_python(cell) else live.Cell("import subprocess") for cell in cells]
    found = live.described(plain, live.absent())
    return [
        each.get("needs", "") or ("" if live.is_python(cell) else live.LIBRARIES["subprocess"])
        for cell, each in zip(cells, found, strict=True)
    ]


def packages(python: runtime.Runtime, wheel: live.Wheel, place: str) -> dict[str, Any]:
    """The list of all packages: the release's, the kernel's own, and the book's, at ``place``."""
    lock = live.with_wheel(python.lock, wheel, place)
    book = {**lock["packages"]["convgrad"], "depends": [*runtime.PAGE, "anywidget"]}
    return {**lock, "packages": {**lock["packages"], **_of_kernel(), "convgrad": book}}


def _of_kernel() -> dict[str, Any]:
    """The wheels that the kernel brings, which lie in its own folder of the site."""
    folder = LABEXTENSIONS / KERNEL / "static" / "pypi"
    depends = {
        "pyodide_kernel": ["ipykernel", "ipython", "comm", "piplite"],
        "ipykernel": ["ipython", "comm"],
        "piplite": ["micropip"],
    }
    found = {}
    for wheel in sorted(folder.glob("*.whl")):
        name, number = wheel.name.split("-")[:2]
        key = name.replace("_", "-")
        found[key] = {
            "name": name,
            "version": number,
            "file_name": f"../../{FOLDER}/extensions/{KERNEL}/static/pypi/{wheel.name}",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "imports": [name],
            "depends": depends.get(name, []),
            "install_dir": "site",
            "package_type": "package",
            "unvendored_tests": False,
        }
    return found


def settings(lock: str) -> dict[str, Any]:
    """What JupyterLite is told in the browser: where Python is, and that it asks nobody else."""
    python = f"./../{live.FOLDER}/pyodide-{runtime.VERSION}"
    return {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {
            "appName": "The Backward Pass of Conv2d",
            # It would keep old pages after a new build, and answer for files that no cell reads.
            "disabledExtensions": ["@jupyterlite/application-extension:service-worker-manager"],
            "litePluginSettings": {
                f"{KERNEL}:kernel": {
                    "pyodideUrl": f"{python}/pyodide.js",
                    "disablePyPIFallback": True,
                    "pipliteUrls": [],
                    "loadPyodideOptions": {
                        "lockFileURL": f"../{live.FOLDER}/{lock}",
                        "packages": list(STARTS_WITH),
                    },
                }
            },
        },
    }


def write(site: Path, python: runtime.Runtime) -> bool:
    """Makes the folder of the site, from its notebooks; False where it is as it should be.

    ``site`` must hold the notebooks and the live cells' folder.
    """
    site = site.resolve()  # its build works from a folder of its own
    notebooks = {
        path.name: for_browser(nbformat.read(path, as_version=4))
        for path in sorted((site / "notebooks").glob("*.ipynb"))
    }
    wheel = live.build_wheel()
    lock = packages(python, wheel, f"../{live.wheel_place(wheel)}")
    content = live.as_json(lock)
    name = live.hashed("lite-lock.json", content)
    runtime.link(python, site / live.FOLDER / f"pyodide-{runtime.VERSION}")
    (site / live.FOLDER / name).write_bytes(content)
    # sources in one piece: the frontend reads the files as they are
    texts = {name: nbformat.writes(each, split_lines=False) for name, each in notebooks.items()}
    now = stamp(texts, settings(name))
    folder = site / FOLDER
    try:
        if json.loads((folder / STAMP).read_text("utf-8")) == now:
            return False
    except (OSError, ValueError):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        _build(Path(work), texts, settings(name), folder)
    (folder / STAMP).write_text(json.dumps(now), "utf-8")
    return True


def stamp(texts: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, str]:
    """What the folder was made from."""
    made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    content = json.dumps([texts, told], sort_keys=True).encode()
    brought = ("jupyterlite-core", "jupyterlite-pyodide-kernel", "anywidget", "jupyterlab_widgets")
    return {
        "content": hashlib.sha256(content).hexdigest(),
        "builder": made_by,
        **{name: version(name) for name in brought},
    }


def _build(work: Path, texts: Mapping[str, str], told: Mapping[str, Any], folder: Path) -> None:
    contents, given = work / "contents", work / "lite"
    contents.mkdir()
    given.mkdir()
    for name, text in texts.items():
        (contents / name).write_text(text, "utf-8")
    (given / "jupyter-lite.json").write_text(json.dumps(told), "utf-8")
    (given / "overrides.json").write_text(json.dumps(OVERRIDES), "utf-8")
    build = {
        "apps": list(APPS),
        "contents": [str(contents)],
        "federated_extensions": [str(LABEXTENSIONS / name) for name in EXTENSIONS],
        "ignore_sys_prefix": ["federated_extensions"],
        "lite_dir": str(given),
        "no_sourcemaps": True,
        "output_dir": str(folder),
    }
    (given / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": build}), "utf-8")
    words = [sys.executable, "-m", "jupyterlite_core", "build"]
    known = {"SOURCE_DATE_EPOCH": "1767225600", "JUPYTER_PREFER_ENV_PATH": "1"}
    done = subprocess.run(
        words, cwd=given, env={**os.environ, **known}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(
            f"JupyterLite was not built:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )


def remove(site: Path) -> None:
    """Takes the folder out of a site that is built without it."""
    shutil.rmtree(site / FOLDER, ignore_errors=True)
