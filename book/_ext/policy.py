"""Sphinx: every page forbids what the book does not need (a Content Security Policy).

Everything comes from the site itself, and no script runs that was not in the page when it was
built: scripts within the page are named by their hashes.  Styles within the page are allowed,
because formulas and figures place their parts by them.

The policy stands in a ``<meta>``, so that it travels with the files, whoever serves them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.S)
_DATA = re.compile(r"""\btype="(?!module"|text/javascript")""")  # is read by others, never run
_WRITTEN = re.compile(r'\n?<meta http-equiv="Content-Security-Policy"[^>]*>')
_HEAD = re.compile(r"<head>\s*<meta charset=[^>]*>")


def hashes(page: str) -> list[str]:
    """The scripts within a page, as a policy names them, each once."""
    found = {
        base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        for attributes, body in _SCRIPT.findall(page)
        if not re.search(r"\bsrc=", attributes) and not _DATA.search(attributes)
    }
    return [f"'sha256-{digest}'" for digest in sorted(found)]


def policy(page: str) -> str:
    """What this page may load and run."""
    return "; ".join(
        (
            "default-src 'self'",
            " ".join(["script-src 'self'", *hashes(page)]),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
        )
    )


def guarded(page: str) -> str:
    """The page with its policy, right behind the character set; one that it had is renewed."""
    page = _WRITTEN.sub("", page)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(page)}">'
    return _HEAD.sub(lambda head: f"{head[0]}\n{meta}", page, count=1)


def guard_pages(app: Sphinx, exception: Exception | None) -> None:
    if app.builder.format != "html" or exception is not None:
        return
    for page in Path(app.outdir).rglob("*.html"):
        if "_static" not in page.parts:
            page.write_text(guarded(page.read_text("utf-8")), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    # the last of all: the pages are as they will be
    app.connect("build-finished", guard_pages, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
