"""JupyterLab on the chapters: `python -m tools.lab [--port 8888]`.

The chapters are Markdown; jupytext lets JupyterLab open them as notebooks.  Settings, history and
runtime files go to .cache/lab, so that nobody's own JupyterLab is read or changed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".cache" / "lab"

# JupyterLab's own names for: open Markdown as a notebook; ask nobody on the net for news.
SETTINGS = {
    "@jupyterlab/docmanager-extension:plugin": {
        "defaultViewers": {"markdown": "Jupytext Notebook", "myst": "Jupytext Notebook"}
    },
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
    "@jupyterlab/extensionmanager-extension:plugin": {"enabled": False},
}
# What comes with nbgrader is for teachers with a course, who start their own JupyterLab in it.
PAGE = {"disabledExtensions": {"@jupyter/nbgrader": True}}
SERVED = {
    f"nbgrader.server_extensions.{name}": False
    for name in ("assignment_list", "course_list", "formgrader", "validate_assignment")
}


def prepare(place: Path = PLACE) -> dict[str, str]:
    """Writes the settings under ``place`` and returns the environment that makes Jupyter use it."""
    folders = {
        "JUPYTER_CONFIG_DIR": place / "config",
        "JUPYTER_DATA_DIR": place / "data",
        "JUPYTER_RUNTIME_DIR": place / "runtime",
        "IPYTHONDIR": place / "ipython",
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    configs = place / "config" / "labconfig"
    configs.mkdir(exist_ok=True)
    for name, content in (("default_setting_overrides", SETTINGS), ("page_config", PAGE)):
        (configs / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    return {
        **os.environ,
        **{name: str(folder) for name, folder in folders.items()},
        "JUPYTER_PREFER_ENV_PATH": "1",  # the kernel of .venv, not one of the user's
    }


def command(root: Path, *more: str) -> list[str]:
    """The words that start JupyterLab on the folder ``root``."""
    return [
        sys.executable,
        "-m",
        "jupyter",
        "lab",
        "--ip=127.0.0.1",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.jpserver_extensions={SERVED}",
        "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
        # The one flag that root needs; to anybody else it means nothing.
        "--allow-root",
        *more,
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.lab", description="Open the chapters in JupyterLab."
    )
    parser.add_argument("--port", type=int, default=8888)
    parser.add_argument("page", nargs="?", default="book/preface.md")
    options, rest = parser.parse_known_args(arguments)
    words = command(
        ROOT, f"--port={options.port}", f"--LabApp.default_url=/lab/tree/{options.page}", *rest
    )
    try:
        return subprocess.run(words, env=prepare(), cwd=ROOT, check=False).returncode
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
