"""The sources of the pages keep the chapter contract; nothing is built or run here."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
from pages import GALLERIES

import convgrad.figures

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
LONGEST_CELL = 12  # lines, blank ones not counted
WIDEST_SOURCE = 80  # columns: what the page shows without a scroll bar
MATHS_AND_CODE = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`", re.S)


def entries() -> list[str]:
    """Every page in the table of contents, in reading order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    return [toc["root"], *(page for part in toc["parts"] for page in below(part["chapters"]))]


def below(entries: list[dict]) -> Iterator[str]:
    """The pages of these entries and of all that stands under them."""
    for entry in entries:
        yield entry["file"]
        yield from below(entry.get("sections", []))


PAGES = entries()
FIGURES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(convgrad.figures.__path__, "convgrad.figures.")
]
CHAPTERS = [
    page for page in PAGES if re.match(r"book/part\d+/", page) and Path(page).name not in GALLERIES
]


@dataclass
class Block:
    """A fenced directive: its name, what stands behind it, its options and its body."""

    line: int
    name: str
    argument: str
    options: dict
    body: str

    @property
    def tags(self) -> list[str]:
        return self.options.get("tags") or []


@dataclass
class Page:
    path: Path
    text: str
    blocks: list[Block] = field(default_factory=list)
    prose: str = ""

    @classmethod
    def read(cls, name: str) -> Page:
        path = ROOT / f"{name}.md"
        text = path.read_text("utf-8")
        page = cls(path, text)
        page._parse(
            re.sub(r"\A---\n.*?\n---\n", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
        )
        return page

    def _parse(self, text: str, first: int = 1) -> None:
        """Blocks and the prose between them; a box's words are prose, and it may hold blocks."""
        lines, at = text.split("\n"), 0
        while at < len(lines):
            fence = re.match(r"(`{3,}|:{3,})(?:\{([\w:-]+)\})?[ \t]*(.*)$", lines[at])
            if not fence:
                self.prose += lines[at] + "\n"
                at += 1
                continue
            end = next(
                (k for k in range(at + 1, len(lines)) if lines[k].rstrip() == fence[1]), len(lines)
            )
            inner = "\n".join(lines[at + 1 : end])
            options, body, skipped = _options(inner)
            name = fence[2] or ""
            self.blocks.append(Block(first + at, name, fence[3].strip(), options, body))
            if name not in ("code-cell", "eval-rst", "math", "literalinclude", "raw", ""):
                self.prose += fence[3] + "\n"
                self._parse(body, first + at + 1 + skipped)
            at = end + 1

    def of(self, *names: str) -> list[Block]:
        return [block for block in self.blocks if block.name in names]

    @property
    def cells(self) -> list[Block]:
        return self.of("code-cell")

    @property
    def code(self) -> str:
        return "\n".join(cell.body for cell in self.cells)

    @property
    def headings(self) -> list[str]:
        return re.findall(r"^#+ +(.*)$", self.prose, re.M)


def _options(inner: str) -> tuple[dict, str, int]:
    """The options of a directive, written between --- or as :key: value, and what follows."""
    if match := re.match(r"---\n(.*?)\n---\n?", inner + "\n", re.S):
        return yaml.safe_load(match[1]) or {}, inner[match.end() :], match[0].count("\n")
    found = re.match(r"(?::[\w-]+:.*(?:\n|$))*", inner)[0]
    options = dict(re.findall(r"^:([\w-]+):[ \t]*(.*)$", found, re.M))
    if "tags" in options:
        options["tags"] = yaml.safe_load(options["tags"])
    return options, inner[len(found) :], found.count("\n")


@pytest.fixture(scope="module", params=PAGES)
def page(request) -> Page:
    return Page.read(request.param)


@pytest.fixture(scope="module", params=CHAPTERS)
def chapter(request) -> Page:
    return Page.read(request.param)


# ---- the parser itself -------------------------------------------------------------------


def test_the_parser_sees_cells_boxes_and_prose():
    page = Page(Path(), "")
    page._parse(
        "# Title\n\n"
        "```{code-cell} python\n---\ntags: [a, b]\nmystnb:\n  image:\n    alt: words\n---\n"
        "x = 1\n```\n\n:::{admonition} Box\n:class: cg-wrong\n\nInner words.\n"
        "```{code-cell} python\n:tags: [c]\ny = 2\n```\n:::\n\nLast words."
    )
    assert [cell.body.strip() for cell in page.cells] == ["x = 1", "y = 2"]
    assert [cell.tags for cell in page.cells] == [["a", "b"], ["c"]]
    assert [cell.line for cell in page.cells] == [3, 17]
    assert page.cells[0].options["mystnb"]["image"]["alt"] == "words"
    assert page.headings == ["Title"]
    assert "Inner words." in page.prose and "Last words." in page.prose
    assert "x = 1" not in page.prose


# ---- every page --------------------------------------------------------------------------


def test_the_contents_list_exactly_the_pages_there_are():
    inside = {"_ext", "_static", "_templates", "assignments", ".ipynb_checkpoints"}
    written = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in BOOK.rglob("*.md")
        if not inside & set(path.parts)
    }
    assert set(PAGES) == written
    assert len(PAGES) == len(set(PAGES))


def test_a_page_has_one_title_without_a_number(page):
    titles = re.findall(r"^# +(.*)$", page.prose, re.M)
    assert len(titles) == 1
    assert not re.match(r"(chapter|part)?\s*[\dIVX]+[.:]?\s", titles[0], re.I)


def test_every_figure_has_words(page):
    for cell in page.cells:
        if not _draws_a_figure(cell.body):
            continue
        alt = ((cell.options.get("mystnb") or {}).get("image") or {}).get("alt", "")
        assert len(alt.split()) >= 4, f"line {cell.line}: write the figure's alt text"
    for block in page.of("image", "figure"):
        assert block.options.get("alt"), f"line {block.line}: write the picture's :alt:"
    for alt, target in re.findall(r"!\[(.*?)\]\((.*?)\)", page.prose, re.S):
        assert len(alt.split()) >= 4, f"write the alt text of {target}"


def _draws_a_figure(code: str) -> bool:
    """Whether the cell's value is a figure: from its last expression, without running it."""
    statements = ast.parse(_plain(code)).body
    if not statements or not isinstance(statements[-1], ast.Expr):
        return False
    call = statements[-1].value
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    for module in FIGURES:
        function = getattr(module, name, None)
        if inspect.isfunction(function):
            return "Figure" in str(inspect.signature(function).return_annotation)
    return name in {"imshow", "plot", "subplots", "figure"}


def _plain(code: str) -> str:
    return re.sub(r"^[%!].*$", "", code, flags=re.M)


@pytest.mark.parametrize(
    "word",
    [
        "simply",
        "obviously",
        "trivially",
        "clearly",
        "of course",
        "needless to say",
        "it is easy to see",
        "as you know",
        "straightforward(ly)?",
    ],
)
def test_no_word_that_makes_a_reader_feel_slow(page, word):
    found = re.search(rf"\b{word}\b", MATHS_AND_CODE.sub("", page.prose), re.I)
    assert not found, f"“{found[0]}”: leave it out or explain"


def test_no_time_is_typed_and_none_is_taken(page):
    prose = MATHS_AND_CODE.sub("", page.prose)
    typed = re.search(
        r"\b\d[\d.,]*\s*(ms|µs|us|ns|milliseconds?|microseconds?|[GT]FLOPS?(/s)?)\b|\b\d+\.\d+\s*s\b",
        prose,
    )
    assert not typed, f"“{typed[0]}”: timings come from the committed benchmark"
    assert not re.search(r"%%?time|perf_counter|\btimeit\b|\btime\.time", page.code)


def test_every_included_source_exists(page):
    for block in page.of("literalinclude"):
        target = page.path.parent / block.argument
        assert target.is_file(), f"line {block.line}: {block.argument} is not there"
        if name := block.options.get("pyobject"):
            assert name in _objects(target), f"line {block.line}: no {name} in {target.name}"


def test_an_included_source_fits_the_page_and_reads_as_text(page):
    for block in page.of("literalinclude"):
        target = page.path.parent / block.argument
        lines, indent = _shown(target, block), int(block.options.get("dedent", 0))
        wide = [line for line in lines if len(line) - indent > WIDEST_SOURCE]
        assert not wide, f"{target.name}, {block.options.get('pyobject')}: too wide\n{wide[0]}"
        marked = [line for line in lines if re.search(r":\w+:`|``", line)]
        assert not marked, f"{target.name} is shown as it stands, without roles:\n{marked[0]}"


def _shown(path: Path, block: Block) -> list[str]:
    """The lines of a source that a page shows."""
    lines = path.read_text("utf-8").splitlines()
    if name := block.options.get("pyobject"):
        node = _objects(path)[name]
        return lines[node.lineno - 1 : node.end_lineno]
    return lines


def _objects(path: Path) -> dict[str, ast.stmt]:
    """Every function and class of a module under its dotted name."""
    found = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                found[prefix + node.name] = node
                walk(node.body, f"{prefix}{node.name}.")

    walk(ast.parse(path.read_text("utf-8")).body, "")
    return found


def test_cells_are_short_and_parse(page):
    for cell in page.cells:
        ast.parse(_plain(cell.body))
        lines = [line for line in cell.body.splitlines() if line.strip()]
        if "remove-input" in cell.tags:
            continue  # a question's words, which the page shows in another way
        wide = [line for line in lines if len(line) > WIDEST_SOURCE]
        assert not wide, f"line {cell.line}: too wide for the page\n{wide}"
        assert len(lines) <= LONGEST_CELL, (
            f"line {cell.line}: {len(lines)} lines; move what is not the lesson into the package"
        )


def test_a_failing_cell_is_never_let_through(page):
    allowed = [cell.line for cell in page.cells if "raises-exception" in cell.tags]
    assert not allowed, (
        f"lines {allowed}: catch the error and print it, so that it is what was meant"
    )


def test_no_output_is_kept_and_no_address_is_loaded(page):
    assert "outputs" not in page.text.split("---")[1:2]
    assert not re.search(r"<(script|link|iframe|img)[^>]*https?:", page.text)
    assert not re.search(r"!\[[^\]]*\]\(https?:", page.text)


# ---- every chapter -----------------------------------------------------------------------


def test_a_chapter_has_the_parts_of_the_contract(chapter):
    boxes = [str(block.options.get("class", "")) for block in chapter.of("admonition")]
    joined = " ".join(boxes)
    assert "cg-goals" in joined and "cg-goals" in boxes[0], "it opens with what the reader can do"
    assert "cg-wrong" in joined, "it tells how this goes wrong"
    assert "cg-summary" in joined, "it sums up"
    headings = " | ".join(chapter.headings)
    for part in ("How this goes wrong", "Exercises", "Summary", "Further reading"):
        assert part in headings, part
    assert headings.index("How this goes wrong") < headings.index("Exercises")
    assert headings.index("Exercises") < headings.index("Further reading")
    assert chapter.of("literalinclude"), "it shows the package's real source"
    assert any(block.options.get("label") for block in chapter.of("math")), "equations are numbered"
    assert "{eq}`" in chapter.text, "and referred to"
    assert "{cite" in chapter.text.split("Further reading")[-1]


def test_a_chapter_proves_itself_and_asks(chapter):
    assert "torch" in chapter.code, "equal to PyTorch"
    assert "loops" in chapter.code, "equal to the definition"
    assert "Predict" in chapter.code, "a question that the page checks"
    assert ".check(" in chapter.code, "an exercise that a cell checks"
    goals = next(b for b in chapter.of("admonition") if "cg-goals" in str(b.options.get("class")))
    assert 2 <= goals.body.count("\n- ") + goals.body.startswith("- ") <= 4


def test_a_def_is_the_lesson_or_the_exercise(chapter):
    for cell in chapter.cells:
        tree = ast.parse(_plain(cell.body))
        if not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(tree)):
            continue
        of_exercise = ".check(" in cell.body
        assert of_exercise or {"lesson", "exercise"} & set(cell.tags), (
            f"line {cell.line}: put the function into the package, or tag the cell `lesson`"
        )


def test_a_citation_is_in_the_list(page):
    known = set(re.findall(r"@\w+\{([^,\s]+),", (BOOK / "references.bib").read_text("utf-8")))
    for keys in re.findall(r"\{cite[\w:]*\}`([^`]+)`", page.text):
        cited = {re.sub(r".*<(.*)>.*", r"\1", key).strip() for key in keys.split(",")}
        assert cited <= known, f"{cited - known} not in references.bib"


def test_a_page_is_described_in_its_own_words():
    """For search engines; the pages of the reference take their first sentence."""
    described = {}
    for name in PAGES:
        head = re.match(r"---\n(.*?)\n---\n", (ROOT / f"{name}.md").read_text("utf-8"), re.S)
        front = yaml.safe_load(head[1]) if head else {}
        words = front.get("myst", {}).get("html_meta", {}).get("description")
        if name.startswith("book/api/") and not words:
            continue
        assert words and 40 <= len(words) <= 165 and words.endswith("."), name
        described[name] = words
    assert len(set(described.values())) == len(described) > 20
