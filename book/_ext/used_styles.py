"""Sphinx: the stylesheets of the theme and of the tools, cut down to what the site has.

The theme brings all of Bootstrap, most of which no page uses; whole, its stylesheet is more than a
third of a page without pictures.  When the pages are written, a rule stays if some page or script
names every class and id that it asks for, and goes otherwise.  What is kept stays in its order, so
a page looks as it did.

A later build may write some stylesheets anew and leave others as they are.  So the whole ones are
kept beside the doctrees, and every build cuts from these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

CUT = "/*cut*/"  # ends a stylesheet that this module has written
_NAME = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")
_INSIDE = re.compile(r"\([^()]*\)|\[[^\]]*\]")  # of :not(…) and the like, and attributes


def names_in_use(site: Path) -> set[str]:
    """Every class and id of the pages, and every word of the scripts, which set some of them.

    Live cells have styles of their own, and Python's scripts set no classes.
    """
    found: set[str] = set()
    scripts = [each.read_text("utf-8") for each in site.rglob("*.js") if "_live" not in each.parts]
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        for _, value in re.findall(r'\b(class|id)="([^"]*)"', text):
            found.update(value.split())
        scripts += re.findall(r"<script[^>]*>(.*?)</script>", text, re.S)
    for script in scripts:
        found.update(re.findall(r"-?[A-Za-z_][\w-]*", script))
    return found


def pruned(css: str, used: set[str]) -> str:
    """The stylesheet without comments, and without the rules that no page can use."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    return "".join(_kept(css, used))


def _kept(css: str, used: set[str]) -> Iterator[str]:
    for head, body in _blocks(css):
        if body is None:  # @charset, @import
            yield f"{head};"
        elif head.startswith(("@media", "@supports", "@layer")):
            inner = "".join(_kept(body, used))
            if inner:
                yield f"{head}{{{inner}}}"
        elif head.startswith("@"):
            yield f"{head}{{{body.strip()}}}"
        else:
            selectors = [each for each in _selectors(head) if _can_match(each, used)]
            if selectors:
                yield f"{','.join(selectors)}{{{_plain(body)}}}"


def _plain(body: str) -> str:
    """Declarations on one line; what stands in quotes keeps its spaces."""
    parts = re.split(r"(\"[^\"]*\"|'[^']*')", body.strip())
    parts[::2] = [re.sub(r"\s+", " ", part).replace("; ", ";") for part in parts[::2]]
    return "".join(parts).rstrip("; ")


def _blocks(css: str) -> Iterator[tuple[str, str | None]]:
    """Every rule with what stands before its braces and between them; None without braces."""
    at = 0
    while match := re.compile(r"\s*([^{};]*)([{;])").match(css, at):
        if match[2] == ";":
            yield match[1].strip(), None
            at = match.end()
            continue
        end, depth = match.end(), 1
        while depth:
            brace = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[{}]").search(css, end)
            if brace is None:
                raise ValueError(f"a brace is not closed after {match[1].strip()[:60]!r}")
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            end = brace.end()
        yield match[1].strip(), css[match.end() : end - 1]
        at = end


def _selectors(head: str) -> list[str]:
    """The selectors of a rule: cut at the commas that stand in no brackets."""
    found, depth, first = [], 0, 0
    for at, sign in enumerate(head):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            found.append(head[first:at].strip())
            first = at + 1
    return [*found, head[first:].strip()]


def _can_match(selector: str, used: set[str]) -> bool:
    if "\\" in selector:  # a name with a sign such as % in it
        return True
    while (bare := _INSIDE.sub("", selector)) != selector:
        selector = bare
    return used.issuperset(_NAME.findall(selector))


def prune(app: Sphinx, exception: Exception | None) -> None:
    if app.builder.format != "html" or exception is not None:
        return
    static, whole = Path(app.outdir) / "_static", Path(app.doctreedir) / "whole_styles"
    used = names_in_use(static.parent)
    for style in static.rglob("*.css"):
        kept, css = whole / style.relative_to(static), style.read_text("utf-8")
        if not css.endswith(CUT):  # written by this build
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(css, "utf-8")
        if kept.is_file():
            style.write_text(pruned(kept.read_text("utf-8"), used) + CUT, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    # after every other listener: static_widgets and look write files that are read here
    app.connect("build-finished", prune, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
