"""A widget as one file of HTML: for a talk, a blog, a mail; it asks the network for nothing."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from .base import Explorable
from .page import PAGE_CSS, file_name, loader_text, markup, model_of, script_json, tools_text

__all__ = ["save_html"]

# By this line a file is known as ours: it may be written over.
GENERATOR = '<meta name="generator" content="convgrad.widgets.save_html">'

# The palette of a widget follows the system's light or dark; so does the page around it.
BODY_CSS = (
    ":root{color-scheme:light dark}"
    "body{margin:0}"
    ".cg-page{box-sizing:border-box;min-height:100vh;padding:1rem clamp(.75rem,3vw,2rem);"
    "background:var(--cg-paper);color:var(--cg-ink);font:1rem/1.5 system-ui,sans-serif}"
    ".cg-page>*{max-width:60rem;margin-inline:auto}"
    ".cg-page h1{margin-block:.25rem 0;font-size:1.25rem;font-weight:600}"
    ".cg-page h1.cg-unseen{position:absolute;width:1px;height:1px;overflow:hidden;"
    "clip-path:inset(50%);white-space:nowrap}"
)

PAGE = """<!DOCTYPE html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{generator}
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{css}</style>
</head>
<body class="cg">
<main class="cg-page">
<h1{seen}>{title}</h1>
<div lang="en">
{widget}</div>
</main>
{modules}<script data-tools="{tools}">{loader}</script>
</body>
</html>
"""


def save_html(
    widget: Explorable,
    path: str | Path,
    *,
    title: str | None = None,
    lang: str = "en",
    overwrite: bool = False,
) -> Path:
    """Write a widget as it stands now into one HTML file, and return the file's path.

    The file holds all that it needs and works from a folder, a stick or any server: nothing is
    loaded.  It follows the system's light or dark, prints, and shows its picture and numbers
    where no script runs.  What a reader changes in it stays in that reader's browser.

    Parameters
    ----------
    widget : widget
        Any widget of ``convgrad.widgets``, set up as it shall be shown.
    path : str or path
        Where to: a file name in a folder that exists.
    title : str, optional
        Stands above the widget and in the browser's tab.  Without one the tab says what kind of
        widget it is, and nothing stands above.
    lang : str, default "en"
        The language of ``title`` and so of the page, for screen readers; the widget's is English.
    overwrite : bool, default False
        A file that this function wrote is replaced without asking; any other only with True.

    Returns
    -------
    pathlib.Path
        The file that was written.

    Raises
    ------
    TypeError
        When ``widget`` is none.
    FileNotFoundError, IsADirectoryError, FileExistsError
        When there is no such folder, ``path`` is one itself, or somebody else's file is there.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import ContributionPlayer, save_html
    >>> folder = getfixture("tmp_path")  # or any folder of yours
    >>> player = ContributionPlayer(example("B"), target="input", step=18)
    >>> save_html(player, folder / "player.html", title="Step by step").name
    'player.html'
    """
    if not isinstance(widget, Explorable):
        raise TypeError(
            f"save_html writes a widget, and got {widget!r:.60} (a {type(widget).__name__}): "
            'give it for example ContributionPlayer(example("B"))'
        )
    target = Path(path)
    name = _kind(widget)
    _check(target, suggestion=f"{name.lower().replace(' ', '_')}.html", overwrite=overwrite)
    target.write_text(_page(widget, title, name, lang), encoding="utf-8", newline="\n")
    return target


def _kind(widget: Explorable) -> str:
    """``ContributionPlayer`` → ``Contribution player``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(widget).__name__).capitalize()


def _check(target: Path, *, suggestion: str, overwrite: bool) -> None:
    """Raise, before anything is written, where the file cannot or should not be."""
    if target.is_dir():
        raise IsADirectoryError(
            f"{target} is a folder: name the file in it, for example {target / suggestion}"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {target.parent}: make it first, "
            f"Path({str(target.parent)!r}).mkdir(parents=True)"
        )
    if target.exists() and not overwrite and not _is_ours(target):
        raise FileExistsError(
            f"{target} is there already and was not written by save_html: take another name, "
            "or overwrite=True to replace it"
        )


def _is_ours(file: Path) -> bool:
    with file.open("rb") as reader:
        return GENERATOR.encode() in reader.read(2000)


def _page(widget: Explorable, title: str | None, name: str, lang: str) -> str:
    widget._write_fallback()  # the browser's edits may not be in it yet
    entry: dict[str, Any] = {"model_name": "AnyModel", "state": {**_state(widget), "complaint": ""}}
    files: dict[str, str] = {}
    model = model_of(entry, files)
    tools = file_name("tools", tools_text(), ".js")
    modules = {model.module: files[model.module]}
    if widget._tools:
        modules[tools] = tools_text()
    return PAGE.format(
        lang=html.escape(lang),
        generator=GENERATOR,
        title=html.escape(title or name),
        # "</style" inside a text of the stylesheet would end it
        css=(files.get(model.stylesheet or "", "") + BODY_CSS + PAGE_CSS).replace("</", "<\\/"),
        seen="" if title else ' class="cg-unseen"',
        widget=markup("w1", model, first=True),
        modules="".join(
            f'<script type="application/json" data-module="{each}">{script_json(text)}</script>\n'
            for each, text in modules.items()
        ),
        tools=tools,
        # inside a string of JavaScript, the one place where it can stand, "<\/" is "</"
        loader=loader_text().replace("</", "<\\/"),
    )


def _state(widget: Explorable) -> dict[str, Any]:
    """The state with its module and stylesheet as text."""
    state = widget.get_state()
    state.setdefault("_anywidget_id", type(widget).__name__)
    return {**state, "_esm": str(state["_esm"]), "_css": str(state.get("_css", ""))}
