"""The reference pages list every public function and class, and each is described in full.

"In full" is numpydoc's order: every parameter by its right name and with its real default, what
comes back, what is raised, and an example that doctest runs.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("anywidget")
import convgrad
from convgrad import IMPLEMENTATIONS, widgets

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "book" / "api").glob("*.md"))
OVERVIEW = ROOT / "book" / "api" / "index.md"

# ---- what is public --------------------------------------------------------------------------

# Parts of the package that nobody imports by hand: the command has a page of its own.
NOT_FOR_READERS = {"__main__", "bench", "cli", "operands"}
# What modules of the package share among themselves, and constants that a message spells out.
INNER = {
    "convgrad.api": (
        "FASTEST as_batch flags geometry_of implementation_named require_room upstream"
    ),
    "convgrad.autograd": "Conv2dFunction Rule",
    "convgrad.checks": "one_thing_more",
    "convgrad.correlate": "lay_down",
    "convgrad.depthwise": "NotFiniteError",
    "convgrad.dice": "Dice",
    "convgrad.exercises": "Asked progress",
    "convgrad.extras": "install needs",
    "convgrad.layers": "TABLE",
    "convgrad.roofline": "BYTES Limit MAPS Map Precision",
    "convgrad.schedule": "fitting",
    "convgrad.figures.grids": "CELL Label Link",
    "convgrad.geometry": (
        "LARGEST PADDING_MODES as_borders as_integer as_pair as_shape require_geometry short shown"
    ),
    "convgrad.kernels": "require",
    "convgrad.ledger": "empty_gradient ready require_choice",
    "convgrad.loops": "products read",
    "convgrad.memory": "bytes_needed require_memory require_room result_numbers size_text",
    "convgrad.padding": "folded_numbers inside padded_numbers with_border",
    "convgrad.parallel": "Workspace blas_threads can_set_threads even_slices run",
    "convgrad.rows": "pays",
    "convgrad.scene": "photograph",
    "convgrad.second": "to_grad_output to_weight to_x",
    "convgrad.transpose": "cut uncut",
    "convgrad.shards": "Shard",
    "convgrad.turned": "is_convolution search turned",
    "convgrad.windows": "products reach scatter split_groups window_numbers",
}
# The same five in every rung: the class Implementation says what they take and give.
OF_EVERY_RUNG = {"forward", "grad_input", "grad_weight", "grad_bias", "working_set"}
# The routes of fast have them too; the module says which is which.
RUNGS = {*IMPLEMENTATIONS, "pointwise", "depthwise", "blocked", "rows"}


def modules() -> list[str]:
    parts = {part.name for part in pkgutil.iter_modules(convgrad.__path__)} - NOT_FOR_READERS
    # the other modules of figures are the chapters' own
    parts = parts - {"figures"} | {"figures.comparison", "figures.grids"}
    return ["convgrad", *(f"convgrad.{part}" for part in sorted(parts))]


def public() -> list[str]:
    """Every name that a reader may import, ``module.name``."""
    found = []
    for module in modules():
        names = set(importlib.import_module(module).__all__) - set(INNER.get(module, "").split())
        if module.rpartition(".")[2] in RUNGS:
            names -= OF_EVERY_RUNG
        found += [f"{module}.{name}" for name in sorted(names)]
    return found


def resolved(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


# ---- what the pages list ---------------------------------------------------------------------

DIRECTIVE = re.compile(
    r"^ *\.\. (?P<kind>auto(?:function|class|exception)|py:data):: (?P<name>[\w.]+)$", re.M
)
METHOD = re.compile(r"^ +\.\. auto(?:method|property):: (\w+)$", re.M)


def listed() -> dict[str, Path]:
    """Every name that has an entry, and the page that has it."""
    found: dict[str, Path] = {}
    for page in PAGES:
        for entry in DIRECTIVE.finditer(page.read_text("utf-8")):
            assert entry["name"] not in found, f"{entry['name']} has two entries"
            found[entry["name"]] = page
    return found


def listed_methods() -> Iterator[tuple[str, str]]:
    """Every method and property that has an entry, with its class."""
    for page in PAGES:
        text = page.read_text("utf-8")
        owners = list(DIRECTIVE.finditer(text))
        for method in METHOD.finditer(text):
            owner = [each for each in owners if each.end() < method.start()][-1]
            yield owner["name"], method[1]


@cache
def shown_in_chapters() -> set[str]:
    """``file.py::name`` for every source that a chapter shows: its docstring stays one line."""
    found = set()
    for page in (ROOT / "book").glob("part*/*.md"):
        shown = re.findall(
            r"\{literalinclude\} \S*/(\w+\.py)\n:pyobject: (\S+)", page.read_text("utf-8")
        )
        found |= {f"{file}::{name}" for file, name in shown}
    return found


def is_shown(thing: Any) -> bool:
    file = Path(inspect.getsourcefile(inspect.unwrap(thing))).name
    return f"{file}::{thing.__qualname__}" in shown_in_chapters()


LISTED = listed()
CALLED = [name for name in LISTED if callable(resolved(name))]
SHOWN = [name for name in CALLED if is_shown(resolved(name))]
DESCRIBED = [name for name in CALLED if name not in SHOWN]


@pytest.mark.parametrize("name", public())
def test_a_public_name_has_an_entry(name):
    thing = resolved(name)
    assert any(resolved(entry) is thing for entry in LISTED), (
        f"{name}: add it to a page under book/api, or to INNER if it is not for readers"
    )


@pytest.mark.parametrize("module", INNER)
def test_what_is_inner_is_there_and_has_no_entry(module):
    names = set(INNER[module].split())
    assert names <= set(importlib.import_module(module).__all__)
    assert not {f"{module}.{name}" for name in names} & set(LISTED)


def test_the_overview_names_every_entry():
    roles = re.findall(r"\{(?:func|class|data)\}`~([\w.]+)`", OVERVIEW.read_text("utf-8"))
    assert sorted(set(roles)) == sorted(LISTED)
    assert len(roles) == len(set(roles))


def test_the_overview_leads_to_every_page():
    linked = set(re.findall(r"\{doc\}`(?:[^`<]*<)?(\w+)>?`", OVERVIEW.read_text("utf-8")))
    assert linked == {page.stem for page in PAGES} - {"index"}


@pytest.mark.book
def test_the_built_pages_have_every_entry():
    site = ROOT / "_build" / "html" / "book" / "api"
    assert site.is_dir(), "make book first"
    for name, page in LISTED.items():
        built = (site / f"{page.stem}.html").read_text("utf-8")
        assert f'id="{name}"' in built, f"{name} on {page.stem}"


# ---- what a description must have ------------------------------------------------------------


def sections(docstring: str) -> dict[str, str]:
    """The sections of a numpydoc docstring by title; what stands before them under ``""``."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", inspect.cleandoc(docstring), flags=re.M)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> dict[str, str]:
    """The names that a section describes, each with its type."""
    found = {}
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            found |= dict.fromkeys((name.lstrip("*") for name in names.split(", ")), kind)
    return found


def own_parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """What it is called with; of a class only what its bases do not take too."""
    if not inspect.isclass(thing):
        return dict(inspect.signature(thing).parameters)
    if issubclass(thing, Exception):
        return {}
    if "__init__" in vars(thing):
        parameters = list(inspect.signature(thing.__init__).parameters.items())[1:]
    else:
        parameters = list(inspect.signature(thing).parameters.items())
    of_bases = set()
    for base in thing.__bases__:
        if base.__module__.startswith("convgrad") and "__init__" in vars(base):
            of_bases |= set(inspect.signature(base.__init__).parameters)
    return {name: p for name, p in parameters if name not in of_bases}


def inherited_parameters(thing: Any) -> set[str]:
    """What a class takes because its bases do; it may be described again."""
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return set()
    return set(inspect.signature(thing).parameters) - set(own_parameters(thing))


def complaints(thing: Any, docstring: str | None) -> list[str]:
    """What the description of a function or class lacks."""
    if not docstring:
        return ["no docstring"]
    told = sections(docstring)
    found = list(_of_summary(told[""]))
    found += _of_parameters(thing, told)
    if not inspect.isclass(thing):
        found += _of_body(thing, told)
    if ">>> " not in told.get("Examples", ""):
        found.append("no example")
    return found


def _of_summary(words: str) -> Iterator[str]:
    summary, _, rest = words.partition("\n")
    if not summary.endswith((".", ":")) or (rest and not rest.startswith("\n")):
        yield f"the first line is no sentence of one line: {summary!r}"


def _of_parameters(thing: Any, told: dict[str, str]) -> Iterator[str]:
    parameters = own_parameters(thing)
    described = entries(told.get("Parameters", ""))
    if inspect.isclass(thing) and not described:
        described = entries(told.get("Attributes", ""))
        described = {name: kind for name, kind in described.items() if name in parameters}
    order = [name for name in described if name in parameters]
    inherited = inherited_parameters(thing)
    if not set(parameters) <= set(described) <= set(parameters) | inherited:
        yield f"described are {list(described)}, taken are {list(parameters)}"
    elif not inspect.isclass(thing) and order != list(parameters):
        yield f"parameters in the order {order}, taken in the order {list(parameters)}"
    for name, kind in described.items():
        if name in parameters and "Parameters" in told:
            yield from _of_default(parameters[name], kind)


def _of_default(parameter: inspect.Parameter, kind: str) -> Iterator[str]:
    """``default X`` says what the signature says; ``optional`` says that there is one."""
    default = parameter.default
    said = re.search(r"default (.*)$", kind)
    if default is inspect.Parameter.empty:
        if said or "optional" in kind:
            yield f"{parameter.name} has no default"
    elif said:
        if ast.literal_eval(said[1]) != default:
            yield f"{parameter.name} is by default {default!r}, described as {said[1]}"
    elif "optional" not in kind:
        yield f"{parameter.name} may be left out: say its default, or optional"


def _of_body(function: Callable[..., Any], told: dict[str, str]) -> Iterator[str]:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    nodes = list(_own_nodes(ast.parse(source).body[0]))
    gives = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    gives |= any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
    if gives != bool({"Returns", "Yields"} & set(told)):
        yield "Returns is missing" if gives else "Returns, and it returns nothing"
    raised = {name for node in nodes if isinstance(node, ast.Raise) for name in _raised(node)}
    for name in raised - set(entries(told.get("Raises", ""))):
        yield f"it raises {name}: say when"


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from _own_nodes(child)


def _raised(node: ast.Raise) -> Iterator[str]:
    called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(called, ast.Name) and called.id[0].isupper():
        yield called.id


@pytest.mark.parametrize("name", DESCRIBED)
def test_an_entry_is_described_in_full(name):
    thing = resolved(name)
    assert complaints(thing, thing.__doc__) == []


def test_what_a_chapter_shows_says_at_least_what_it_is():
    assert SHOWN and len(SHOWN) < 5
    for name in SHOWN:
        assert list(_of_summary(sections(resolved(name).__doc__)[""])) == []


@pytest.mark.parametrize(("owner", "name"), list(listed_methods()))
def test_a_method_says_what_it_is(owner, name):
    method = inspect.getattr_static(resolved(owner), name)
    if isinstance(method, property):
        assert method.fget.__doc__
        return
    function = inspect.unwrap(getattr(method, "__func__", method))
    told = sections(function.__doc__ or "")
    assert list(_of_summary(told[""])) == []
    if "Parameters" in told:
        described = set(entries(told["Parameters"]))
        assert described == set(inspect.signature(function).parameters) - {"self", "cls"}


@cache
def examples_of(module: str) -> dict[str, doctest.DocTest]:
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return {test.name: test for test in found if test.examples}


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_examples_are_among_those_that_doctest_runs(name):
    thing = resolved(name)
    test = examples_of(thing.__module__).get(f"{thing.__module__}.{thing.__qualname__}")
    assert test is not None
    shown = sections(thing.__doc__)["Examples"]
    wide = [line for line in shown.splitlines() if len(line.partition("  # doctest")[0]) > 80]
    assert not wide, "too wide for the page"


def test_doctest_looks_at_the_whole_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    assert "--doctest-modules" in settings["ini_options"]["addopts"]
    assert "src/convgrad" in settings["ini_options"]["testpaths"]


# ---- the test itself -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("stride : int or pair", "strides : int or pair", "taken are"),
        ("groups : int, default 1\n", "groups : int, default 2\n", "by default 1"),
        ("implementation : str, optional", "implementation : str", "may be left out"),
        ("weight : array_like, (O", "weight : array_like, optional, (O", "has no default"),
        ("Returns\n    -------", "Result\n    ------", "Returns is missing"),
        (">>> ", "> ", "no example"),
        ("(``torch.nn.functional.conv2d``).", "as everybody\n    knows it", "no sentence"),
    ],
)
def test_a_description_that_lacks_something_is_noticed(before, after, complaint):
    docstring = convgrad.conv2d.__doc__
    assert complaints(convgrad.conv2d, docstring) == []
    assert before in docstring
    found = complaints(convgrad.conv2d, docstring.replace(before, after))
    assert any(complaint in each for each in found), found


def test_an_error_without_a_word_is_noticed():
    docstring = convgrad.example.__doc__.replace("KeyError", "LookupError")
    assert complaints(convgrad.example, docstring) == ["it raises KeyError: say when"]


def test_the_sections_are_those_that_the_pages_show():
    """What napoleon does not know it would print as a heading in the middle of a page."""
    known = {"", "Parameters", "Attributes", "Returns", "Yields", "Raises", "Notes", "References"}
    for name in DESCRIBED:
        assert set(sections(resolved(name).__doc__)) <= known | {"Examples"}, name


@pytest.mark.parametrize("name", sorted({*widgets.__all__} - {"save_html"}))
def test_a_widget_has_a_page_whose_lines_run(name):
    (page,) = (page for page in PAGES if f"# {name}\n" in page.read_text("utf-8"))
    lines = re.search(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)[1]
    *imports, make = [line for line in lines.splitlines() if line]
    scope: dict[str, Any] = {}
    exec("\n".join(imports), scope)
    assert len(imports) <= 2
    assert isinstance(eval(make, scope), getattr(widgets, name))
