"""A page's Markdown as plain Markdown with formulas, which every Jupyter shows.

Boxes become block quotes with a bold title, folded ones ``<details>``, roles become words and
links, sources are written out.  What stands for what elsewhere (numbers, titles, addresses) is
asked of a `Book`; what is not known here is a mistake to be mended, not to be shown as source.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from katex_math import prepared

from .tex import colored, expanded


class UnknownMarkup(ValueError):
    """A directive or role that nobody has said how to write in a notebook."""


class Book(Protocol):
    """What a page has to ask of the rest of the book."""

    macros: dict[str, str]
    palette: dict[str, dict[str, str]]

    def page(self, docname: str) -> tuple[str, str | None]:
        """The title of a page and an address that leads to it, if there is one."""

    def section(self, label: str) -> tuple[str, str | None]:
        """The same for a label within a page."""

    def code(self, name: str) -> str | None:
        """The address of a function or class in the reference."""

    def equation(self, label: str) -> str:
        """The number of a formula."""

    def figure(self, label: str) -> str:
        """The number of a figure."""

    def reference(self, key: str) -> tuple[str, str]:
        """Who wrote a reference, in short, and when."""

    def source(self, path: str, options: dict[str, str]) -> str:
        """What `literalinclude` shows."""

    def image(self, path: str) -> tuple[str, bytes]:
        """Name and content of a picture."""

    def written(self, directive: str, argument: str) -> list[str] | None:
        """The Markdown that a directive of the book's own writes; None for one that is not."""


@dataclass
class Page:
    """One page on its way into a notebook, and what it turned out to need on that way."""

    docname: str
    book: Book
    cited: dict[str, None] = field(default_factory=dict)  # keys, in order
    pictures: dict[str, bytes] = field(default_factory=dict)

    def text(self, source: str, flat: bool = False) -> str:
        """Markdown of the book → Markdown of Jupyter; ``flat`` puts each formula on one line."""
        blocks = (self._block(block, flat) for block in _blocks(source.splitlines()))
        lines = "\n".join(block for block in blocks if block is not None)
        return re.sub(r"\n{3,}", "\n\n", lines).strip("\n")

    def inline(self, text: str) -> str:
        return _INLINE.sub(self._piece, text)

    def formula(self, tex: str) -> str:
        return colored(expanded(tex, self.book.macros), self.book.palette)

    # ---- blocks ------------------------------------------------------------------------------

    def _block(self, block: Block, flat: bool) -> str | None:
        if isinstance(block, Directive):
            text = self._directive(block, flat)
            return None if text is None else _indented(f"\n{text}\n", block.indent)
        if block.kind == "code":
            return block.text
        if block.kind == "formula":
            tex, _, label = block.text.partition("\0")
            return _indented(self._display(tex, label, flat), block.indent)
        # a term and what it means: Jupyter has no form for it
        return self.inline(re.sub(r"^: +", "— ", block.text, flags=re.M))

    def _directive(self, block: Directive, flat: bool) -> str | None:
        handler = _DIRECTIVES.get(block.name)
        if handler:
            return handler(self, block, flat)
        written = self.book.written(block.name, block.argument)
        if written is None:
            raise UnknownMarkup(
                f"the directive {{{block.name}}} has no form in a notebook yet: say in "
                "book/_ext/notebooks/markdown.py how it is written in plain Markdown"
            )
        return self.text("\n".join(written), flat)

    def _display(self, tex: str, label: str, flat: bool) -> str:
        tex = self.formula(prepared(tex, nowrap=False))
        if label:
            tex += f" \\tag{{{self.book.equation(label)}}}"
        # in a quote, the quote's own marks would become part of a formula of several lines
        return f"$${' '.join(tex.split())}$$" if flat else f"$$\n{tex}\n$$"

    def _math(self, block: Directive, flat: bool) -> str:
        return self._display(
            f"{block.argument}\n{block.body}", block.options.get("label", ""), flat
        )

    def _box(self, block: Directive, flat: bool) -> str:
        plain = block.name == "admonition"
        title = self.inline(block.argument if plain else block.name.capitalize())
        body = block.body if plain or not block.argument else f"{block.argument}\n\n{block.body}"
        if "dropdown" in block.options.get("class", "").split():
            inner = self.text(body, flat)
            return f"<details><summary><b>{title}</b></summary>\n\n{inner}\n\n</details>"
        inner = self.text(body, flat=True)
        return "\n".join(f"> {line}".rstrip() for line in [f"**{title}**", "", *inner.split("\n")])

    def _source(self, block: Directive, flat: bool) -> str:
        source = self.book.source(block.argument, block.options).rstrip()
        name = re.sub(r"^(\.\./)+", "", block.argument)
        language = block.options.get("language", "python")
        return f"`{name}`:\n\n```{language}\n{source}\n```"

    def _table(self, block: Directive, flat: bool) -> str:
        rows = [
            [" ".join(cell.split()) for cell in re.split(r"^  - ", row, flags=re.M)]
            for row in re.split(r"^\* - ", block.body, flags=re.M)[1:]
        ]
        rows.insert(1, ["---"] * len(rows[0]))
        lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"**{self.inline(block.argument)}**\n\n{self.inline(lines)}".removeprefix("****\n\n")

    def _image(self, block: Directive, flat: bool) -> str:
        name, content = self.book.image(block.argument)
        self.pictures[name] = content
        alt = " ".join(block.options.get("alt", "").split())
        return f"![{alt}](attachment:{name})"

    def _eval(self, block: Directive, flat: bool) -> str:
        raise UnknownMarkup("a page of the reference is made by Sphinx and has no notebook")

    # ---- within a line -----------------------------------------------------------------------

    def _piece(self, found: re.Match[str]) -> str:
        if found["formula"] is not None:
            return f"${' '.join(self.formula(found['formula']).split())}$"
        if found["role"] is None:
            return found[0]  # code
        name, text = found["role"], " ".join(found["content"].split())
        role = _ROLES.get(name)
        if not role:
            raise UnknownMarkup(
                f"the role {{{name}}} has no form in a notebook yet: say in "
                "book/_ext/notebooks/markdown.py how it is written in plain Markdown"
            )
        titled = re.fullmatch(r"(.+?)\s*<([^<>]+)>", text)
        return role(self, *((titled[2], titled[1]) if titled else (text, "")))

    def _doc(self, target: str, words: str) -> str:
        title, address = self.book.page(_joined(self.docname, target))
        return _link(self.inline(words) or title, address)

    def _ref(self, target: str, words: str) -> str:
        title, address = self.book.section(target)
        return _link(self.inline(words) or title, address)

    def _code(self, target: str, words: str) -> str:
        name = target.lstrip("~.")
        short = name.rpartition(".")[2] if target.startswith("~") else name
        return _link(f"`{words or short}`", self.book.code(name))

    def _equation(self, target: str, words: str) -> str:
        return f"({self.book.equation(target)})"

    def _figure(self, target: str, words: str) -> str:
        return f"Fig. {self.book.figure(target)}"

    def _cite(self, keys: str, words: str) -> str:
        said = [", ".join(self._cited(key)) for key in keys.split(",")]
        return f"({'; '.join(said)})"

    def _cite_text(self, keys: str, words: str) -> str:
        said = ["{} ({})".format(*self._cited(key)) for key in keys.split(",")]
        return " and ".join(said)

    def _cited(self, key: str) -> tuple[str, str]:
        self.cited[key.strip()] = None
        return self.book.reference(key.strip())


_CALLOUTS = ("note", "tip", "hint", "important", "warning", "caution", "attention", "seealso")
_DIRECTIVES: dict[str, Callable[[Page, Directive, bool], str | None]] = {
    "index": lambda page, block, flat: None,
    "math": Page._math,
    "literalinclude": Page._source,
    "list-table": Page._table,
    "image": Page._image,
    "eval-rst": Page._eval,
    **dict.fromkeys(("admonition", *_CALLOUTS), Page._box),
}
_ROLES: dict[str, Callable[[Page, str, str], str]] = {
    "doc": Page._doc,
    "ref": Page._ref,
    "eq": Page._equation,
    "numref": Page._figure,
    "cite": Page._cite,
    "cite:p": Page._cite,
    "cite:t": Page._cite_text,
    **dict.fromkeys(("func", "class", "data", "meth", "mod", "attr", "exc"), Page._code),
}

_INLINE = re.compile(
    r"\{(?P<role>[\w:]+)\}`(?P<content>[^`]+)`"
    r"|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?<![\\$])\$(?P<formula>[^$]+?)\$(?!\$)",
    re.S,
)


# ---- the blocks of a page --------------------------------------------------------------------


@dataclass
class Block:
    kind: str  # "text", "code" or "formula"
    text: str
    indent: str = ""


@dataclass
class Directive(Block):
    name: str = ""
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)
    body: str = ""


_FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,}|:{3,})(?P<rest>[^`]*)$")
_NAMED = re.compile(r"^\{(?P<name>[\w:-]+)\}\s*(?P<argument>.*)$")
_DOLLARS = re.compile(r"^(?P<indent>\s*)\$\$(?P<first>.*)$")
_DROPPED = re.compile(r"^(\([\w-]+\)=|%.*|\+\+\+.*)$")


def _blocks(lines: list[str]) -> Iterator[Block]:
    text: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        fence, dollars = _FENCE.match(line), _DOLLARS.match(line)
        if not fence and not dollars:
            if not _DROPPED.match(line):
                text.append(line)
            continue
        if text:
            yield Block("text", "\n".join(text))
            text = []
        if fence:
            end = _closing(lines, at, fence)
            inner = [line.removeprefix(fence["indent"]) for line in lines[at:end]]
            named = _NAMED.match(fence["rest"].strip())
            if named:
                yield _directive(named, inner, fence["indent"])
            else:
                yield Block("code", "\n".join(lines[at - 1 : end + 1]))
            at = end + 1
        else:
            tex = dollars["first"]
            while "$$" not in tex:
                tex += "\n" + lines[at]
                at += 1
            tex, _, rest = tex.partition("$$")
            label = rest.strip().strip("()")
            yield Block("formula", f"{tex}\0{label}", dollars["indent"])
    if text:
        yield Block("text", "\n".join(text))


def _closing(lines: list[str], at: int, opening: re.Match[str]) -> int:
    mark = opening["fence"]
    closing = re.compile(rf"^\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
    for number in range(at, len(lines)):
        if closing.match(lines[number]):
            return number
    raise UnknownMarkup(f"{opening[0].strip()!r} is not closed")


def _directive(named: re.Match[str], lines: list[str], indent: str) -> Directive:
    options: dict[str, str] = {}
    if lines and lines[0].strip() == "---":
        import yaml

        end = next(n for n, line in enumerate(lines[1:], 1) if line.strip() == "---")
        options = {
            key: str(value) for key, value in yaml.safe_load("\n".join(lines[1:end])).items()
        }
        lines = lines[end + 1 :]
    while lines and (option := re.match(r"^:([\w-]+):\s*(.*)$", lines[0])):
        options[option[1]] = option[2]
        lines = lines[1:]
    body = "\n".join(lines).strip("\n")
    return Directive("directive", "", indent, named["name"], named["argument"], options, body)


# ---- small things ----------------------------------------------------------------------------


def _indented(text: str, indent: str) -> str:
    return "\n".join(f"{indent}{line}".rstrip() for line in text.split("\n")) if indent else text


def _link(words: str, address: str | None) -> str:
    return f"[{words}]({html.escape(address, quote=False)})" if address else words


def _joined(docname: str, target: str) -> str:
    """The page that ``target`` names on the page ``docname``."""
    if target.startswith("/"):
        return target[1:]
    parts = docname.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
