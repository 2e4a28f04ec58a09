"""Sphinx: what search engines, messengers and lost readers see of the book.

* Every page has a description: its own words (``html_meta`` in its front matter), or where there
  are none, as on the pages of the reference, its first sentence.
* Who shares a link gets a title, that description and the cover (Open Graph).
* With an address configured (``html: baseurl:`` in ``_config.yml``) every page names its canonical
  link, which Sphinx writes, the cover has an address, and the site has a ``sitemap.xml``.  Without
  one nothing points anywhere.
* ``404.html`` leads back, from any depth.
* A word of the index that stands before a heading leads to that section, by its own name.  (Sphinx
  would point to an empty mark before it, of which the search cannot show an excerpt.)
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

COVER = "_static/cover.png"
LOST = "404"
LONGEST = 200  # letters of a description; who shows one cuts it about there
_WRITTEN = re.compile(r'<meta content="([^"]*)" name="description"\s*/?>')


def first_sentence(doctree: nodes.document | None) -> str:
    """What the page says first, up to the end of a sentence."""
    if doctree is None:
        return ""
    for paragraph in doctree.findall(nodes.paragraph):
        words = " ".join(paragraph.astext().split())
        if len(words) > 20 and isinstance(paragraph.parent, nodes.section):
            found = re.match(r".{20,}?[.:](?=\s|$)", words)
            return (found[0] if found else words)[:LONGEST]
    return ""


def describe(app: Sphinx, name: str, template: str, context: dict, doctree: Any) -> None:
    """Adds to a page's head what stands for it elsewhere."""
    written = _WRITTEN.search(context.get("metatags", ""))
    words = written[1] if written else html.escape(first_sentence(doctree))
    title = html.escape(html.unescape(re.sub(r"<[^>]+>", "", context.get("title") or "")))
    tags = {"og:title": title, "og:type": "article", "og:site_name": app.config.html_title}
    if words:
        tags["og:description"] = words
    if app.config.html_baseurl:
        tags["og:url"] = urljoin(app.config.html_baseurl, f"{name}.html")
        tags["og:image"] = urljoin(app.config.html_baseurl, COVER)
        tags["og:image:alt"] = "A kernel on an image, and the weight gradient that it leaves"
    lines = [f'<meta property="{key}" content="{value}">' for key, value in tags.items()]
    if words and not written:
        lines.insert(0, f'<meta name="description" content="{words}">')
    if name == LOST:
        lines.insert(0, f'<base href="{html.escape(site_path(app))}">')  # before any address
    context["metatags"] = "\n".join([*lines, context.get("metatags", ""), ""])


def site_path(app: Sphinx) -> str:
    """Where the site begins on its host: ``/``, or what the configured address says."""
    return urlsplit(app.config.html_baseurl or "/").path or "/"


def lost_page(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """The page for an address that is not there, shown in that address's place."""
    yield LOST, {"title": "There is no such page"}, "lost.html"


def write_addresses(app: Sphinx, exception: Exception | None) -> None:
    """The sitemap, and the cover as messengers show it, where the address of the site is known."""
    base = app.config.html_baseurl
    if app.builder.format != "html" or exception is not None or not base:
        return
    from convgrad.figures.cover import cover

    places = "".join(
        f"<url><loc>{html.escape(urljoin(base, f'{name}.html'))}</loc></url>\n"
        for name in sorted(app.env.found_docs)
    )
    site = Path(app.outdir)
    (site / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n',
        "utf-8",
    )
    cover().savefig(site / COVER, metadata={"Software": None})


class IndexSections(SphinxTransform):
    """Lets index entries name the section that their mark became part of."""

    default_priority = 840  # before the domains collect the entries

    def apply(self, **kwargs: Any) -> None:
        names = {
            also: section["ids"][0]
            for section in self.document.findall(nodes.section)
            for also in section["ids"][1:]
        }
        for index in self.document.findall(addnodes.index):
            index["entries"] = [
                (kind, value, names.get(target, target), *rest)
                for kind, value, target, *rest in index["entries"]
            ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(IndexSections)
    app.connect("html-page-context", describe)
    app.connect("html-collect-pages", lost_page)
    app.connect("build-finished", write_addresses)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
