"""Sphinx: one stylesheet and one script where the theme and the tools bring ten of each.

Each file is a round trip, and on a phone the trips are what one waits for.  When the site is
written, neighbours in the head of a page that other pages load too become one file in ``_joined``,
named by what is in it.  Styles stay in their order, so a page looks as it did.  Scripts are joined
as one that waits for the page (``defer``), so they no longer stop its text.

A file that one page alone loads stays by itself, and so do the scripts of the search, which are
started from within their page.  A later build may leave some pages as they are; which files a
joined one stands for is kept beside the doctrees, and every build begins from these.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = "_joined"
TAGS = {
    ".css": re.compile(
        r'[ \t]*<link (?:rel="stylesheet"(?: type="text/css")? )?'
        r'href="(?P<up>[^":]*?)(?P<file>_(?:static|joined)/[^"?]+\.css)(?:\?v=\w+)?"'
        r'(?: rel="stylesheet")? ?/?>\n?'
    ),
    ".js": re.compile(
        r'[ \t]*<script (?:defer(?:="defer")? )?'
        r'src="(?P<up>[^":]*?)(?P<file>_(?:static|joined)/[^"?]+\.js)(?:\?v=\w+)?"></script>\n?'
    ),
}
SEARCH = "_static/searchtools.js"
_STRICT = re.compile(r"""^\s*["']use strict["'];?\s*$""", re.M)

Sources = dict[str, list[str]]  # a joined file: those that it stands for


def loaded(page: str, kind: str, known: Sources) -> list[str]:
    """What a page loads, in order; a joined file is the files in it."""
    found: list[str] = []
    for tag in TAGS[kind].finditer(page):
        found += known.get(tag["file"], [tag["file"]])
    return found


def runs(files: Iterable[str], shared: set[str]) -> list[list[str]]:
    """The files in their order, neighbours that are shared together, any other alone."""
    found: list[list[str]] = []
    for file in files:
        if file in shared and found and found[-1][-1] in shared:
            found[-1].append(file)
        else:
            found.append([file])
    return found


def name_of(files: list[str], kind: str) -> str:
    """The same files in the same order have the same name in every build."""
    digest = hashlib.sha256("\n".join(files).encode()).hexdigest()[:8]
    return f"{FOLDER}/book-{digest}{kind}"


def joined_styles(site: Path, files: Iterable[str]) -> str:
    return "\n".join(style(site, file) for file in files)


def style(site: Path, file: str) -> str:
    """A stylesheet as it reads in the folder of the joined ones, with what it imports."""
    here = posixpath.dirname(file)

    def within(found: re.Match[str]) -> str:
        return style(site, posixpath.normpath(posixpath.join(here, found[1])))

    def moved(found: re.Match[str]) -> str:
        address = posixpath.relpath(posixpath.join(here, found[1]), FOLDER)
        return f"url({address})"

    css = (site / file).read_text("utf-8")
    css = re.sub(r"url\((?!\s*[\"']?(?:data:|/|https?:|#))[\"']?([^\"')]+)[\"']?\)", moved, css)
    css = re.sub(r"/\*cut\*/|@charset [^;]*;", "", css)
    return re.sub(r'@import "([^"]+)";', within, css)


def joined_scripts(site: Path, files: Iterable[str]) -> str:
    """One script; a file that is strict must not make the others so."""
    texts = (_STRICT.sub("", (site / file).read_text("utf-8")) for file in files)
    return "\n;".join(re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.M) for text in texts)


def rewritten(page: str, kind: str, order: list[tuple[str, str]]) -> str:
    """The page with its tags of this kind replaced by those for (file, version)."""
    tags = list(TAGS[kind].finditer(page))
    if not tags:
        return page
    up = tags[0]["up"]

    def tag(file: str, version: str) -> str:
        address = f"{up}{file}?v={version}"
        if kind == ".css":
            return f'    <link rel="stylesheet" type="text/css" href="{address}" />\n'
        return f'    <script defer src="{address}"></script>\n'

    for each in reversed(tags[1:]):
        page = page[: each.start()] + page[each.end() :]
    new = "".join(tag(*each) for each in order)
    return page[: tags[0].start()] + new + page[tags[0].end() :]


def join(site: Path, known: Sources) -> Sources:
    """Join the files of all pages of a site; what each joined file stands for."""
    shutil.rmtree(site / FOLDER, ignore_errors=True)
    (site / FOLDER).mkdir()
    made: Sources = {}
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    pages = {path: path.read_text("utf-8") for path in paths}
    for kind, text_of in ((".css", joined_styles), (".js", joined_scripts)):
        lists = {path: loaded(page, kind, known) for path, page in pages.items()}
        lists = {path: files for path, files in lists.items() if SEARCH not in files}
        counts = Counter(file for files in lists.values() for file in files)
        shared = {file for file, count in counts.items() if count > 1}
        versions: dict[str, str] = {}
        for path, files in lists.items():
            order = []
            for run in runs(files, shared):
                name = name_of(run, kind) if len(run) > 1 else run[0]
                if name not in versions:
                    text = text_of(site, run)
                    versions[name] = hashlib.sha256(text.encode()).hexdigest()[:8]
                    if len(run) > 1:
                        (site / name).write_text(text, "utf-8")
                        made[name] = run
                order.append((name, versions[name]))
            pages[path] = rewritten(pages[path], kind, order)
    for path, page in pages.items():
        path.write_text(page, "utf-8")
    return made


def join_files(app: Sphinx, exception: Exception | None) -> None:
    if app.builder.format != "html" or exception is not None:
        return
    record = Path(app.doctreedir) / "joined.json"
    known = json.loads(record.read_text("utf-8")) if record.is_file() else {}
    record.write_text(json.dumps(join(Path(app.outdir), known)), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    # behind used_styles, which cuts the files, and before policy, which guards the pages
    app.connect("build-finished", join_files, priority=920)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
