var b=`"""In the page: the few names of \`\`IPython.display\`\` that people use."""

from __future__ import annotations

from typing import Any

from convgrad_live import display

__all__ = ["HTML", "SVG", "Markdown", "display"]


class _Text:
    def __init__(self, data: Any = None) -> None:
        self.data = str(data)


class HTML(_Text):
    def _repr_html_(self) -> str:
        return self.data


class SVG(_Text):
    def _repr_svg_(self) -> str:
        return self.data


class Markdown(_Text):
    def _repr_markdown_(self) -> str:
        return self.data
`;var k=`"""In the page: a stand-in for the parts of IPython that cells of this book use."""
`;var v=`"""In the page: as much of anywidget as an explorable needs, on traitlets alone.

The real one stands on ipywidgets and IPython, which weigh more than NumPy.  Here a widget is a set
of traits; the page draws it with the loader that it has already, and what changes on one side is
told to the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import traitlets
from convgrad_live import Session

_numbers = itertools.count(1)
_shown: dict[str, AnyWidget] = {}


class AnyWidget(traitlets.HasTraits):
    """A widget whose traits with \`\`sync=True\`\` are the same here and in the page."""

    _esm: ClassVar[Any] = ""
    _css: ClassVar[Any] = ""
    _property_lock: ClassVar[dict[str, Any]] = {}  # what the page has said and need not be told
    _held: set[str] | None = None  # names that are told together

    def __init__(self, **kwargs: Any) -> None:
        names = set(self.trait_names())  # not a box's layout: here a widget has no box
        super().__init__(**{name: value for name, value in kwargs.items() if name in names})
        self.live_name = f"live{next(_numbers)}"
        self.observe(lambda change: self._tell(change.name), names=self.keys)

    @property
    def keys(self) -> list[str]:
        """The names of the traits that the page sees."""
        return sorted(self.traits(sync=True))

    def get_state(self, key: Any = None) -> dict[str, Any]:
        """The traits as they travel."""
        names = self.keys if key is None else [key] if isinstance(key, str) else list(key)
        return {name: self._json(name, getattr(self, name)) for name in names}

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what has changed in the page, all at once."""
        with self.hold_trait_notifications():
            for name in set(sync_data) & set(self.keys):
                read = self.trait_metadata(name, "from_json") or (lambda value, _: value)
                self.set_trait(name, read(sync_data[name], self))

    def send_state(self, key: Any = None) -> None:
        """Tell the page how the traits stand, if it shows this widget."""
        if self.live_name in _shown:
            values = self.get_state(key)
            Session.current.send({"kind": "state", "model": self.live_name, "values": values})

    @contextmanager
    def hold_sync(self) -> Iterator[None]:
        """What changes within is told together, at the end."""
        if self._held is not None:
            yield
            return
        self._held = set()
        try:
            yield
        finally:
            held, self._held = self._held, None
            if held:
                self.send_state(sorted(held))

    def live_show(self) -> dict[str, Any]:
        """What the page needs to draw this widget."""
        from convgrad.widgets.page import DEAD_WEIGHT, file_name

        cls = type(self)
        identity = f"{cls.__module__}.{cls.__qualname__}"
        files = {}
        for kind, source, suffix in (("module", cls._esm, ".js"), ("stylesheet", cls._css, ".css")):
            text = source.read_text("utf-8") if isinstance(source, Path) else source
            files[kind] = file_name(identity, text, suffix) if text.strip() else None
        _shown[self.live_name] = self
        kept = [name for name in self.keys if name not in DEAD_WEIGHT]
        return {"model": self.live_name, "state": self.get_state(kept), **files}

    def _json(self, name: str, value: Any) -> Any:
        write = self.trait_metadata(name, "to_json") or (lambda value, _: value)
        return write(value, self)

    def _tell(self, name: str) -> None:
        said = self._property_lock
        if name in said and said[name] == self.get_state(name)[name]:
            return
        if self._held is not None:
            self._held.add(name)
        else:
            self.send_state(name)


def live_update(model: str, values: dict[str, Any]) -> None:
    """The reader has changed something in the page."""
    widget = _shown.get(model)
    if widget is None:
        return
    widget._property_lock = values
    try:
        widget.set_state(values)
    finally:
        widget._property_lock = {}
`;var x=`"""Runs cells in the page: the Python half of the worker (engine.js is the other).

A cell is run statement by statement, so that what is missing can be fetched in between: a package
is loaded when a statement first needs it, and importing what draws is put off until something
draws.  What the page cannot have (see \`\`needs.py\`\`) is left out and said.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import builtins
import io
import json
import linecache
import logging
import os
import pprint
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import needs

__all__ = ["Session", "display"]

MOST = 200_000  # characters that a cell may print
PAUSE = 0.05  # seconds between two pieces of what is printed
# What is imported only when something of it is used, and the package that it needs.
PUT_OFF = {
    "matplotlib": "matplotlib",
    "convgrad.figures": "matplotlib",
    "convgrad.widgets": "traitlets",
}
# What comes along with a package: all that the explorables import.  (The module anywidget is a
# stand-in, among the files of this one.)
TOGETHER = {"traitlets": ["traitlets", "markdown-it-py", "mdit-py-plugins", "latex2mathml"]}
HERE = str(Path(__file__).parent)


class Session:
    """The names of one page, and how to run a cell among them.

    \`\`send\`\` takes a message for the page, \`\`load\`\` fetches packages of the site's list, \`\`modules\`\`
    says which package a module is in, \`\`absent\`\` what cannot be had (see \`\`needs.py\`\`).
    """

    def __init__(
        self,
        send: Callable[[dict[str, Any]], None],
        load: Callable[[list[str]], Awaitable[None]],
        modules: Mapping[str, str],
        absent: Mapping[str, str],
    ) -> None:
        self.send, self.load = send, load
        self.modules, self.absent = dict(modules), dict(absent)
        self.forget()
        self.loaded: set[str] = set()
        self.drawn: set[int] = set()  # figures that this cell has shown
        self.quiet, self.room = False, MOST
        sys.stdout, sys.stderr = Stream(self, "stdout"), Stream(self, "stderr")
        self.file = ""
        builtins.input = _no_input
        os.environ["MPLBACKEND"] = "agg"
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        Session.current = self

    current: Session

    def forget(self) -> None:
        """Back to where no cell has been run."""
        self.names: dict[str, Any] = {"__name__": "__main__", "display": display}
        self.lost: dict[str, str] = {}  # names that are not there, and what they would need
        self.put_off: dict[str, tuple[ast.stmt, str]] = {}  # names that wait for their import

    async def run(self, label: str, code: str, quiet: bool = False) -> dict[str, Any]:
        """Run a cell; what it shows is sent on the way, how it ended comes back.

        A \`\`quiet\`\` cell shows nothing.  One of which something has to be left out shows nothing
        either: its other statements are run for the names that they bind.
        """
        self.file = f"<{label}>"
        lines = code.splitlines(keepends=True)
        linecache.cache[self.file] = (len(code), None, lines, self.file)
        try:
            body = ast.parse(code, self.file).body
        except SyntaxError as error:
            return {"ok": False, "left": [], "error": self._of_syntax(error)}
        left = needs.left_out(code, self.absent, dict(self.lost))
        self.quiet = quiet or bool(left)
        self.drawn.clear()
        self.room = MOST
        try:
            for place, statement in enumerate(body):
                need = needs.reason(statement, self.absent, self.lost)
                needs.settle(statement, need, self.lost)
                is_value = isinstance(statement, ast.Expr)
                if need or (left and is_value):
                    continue
                for name in needs.bound(statement):
                    self.put_off.pop(name, None)
                if not self._can_wait(statement):
                    await self._do(statement, shown=is_value and place == len(body) - 1)
            self._show_open_figures()
        except BaseException as error:
            return {"ok": False, "left": [], "error": self._of_error(error)}
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return {"ok": True, "left": [each._asdict() for each in left], "error": None}

    # ---- one statement ----------------------------------------------------------------------

    def _can_wait(self, statement: ast.stmt) -> bool:
        """Whether it imports only what can wait until it is used; then it waits."""
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            return False
        packages = {self._package_put_off(module) for module in needs.imports(statement)}
        if None in packages or packages <= self.loaded or "*" in needs.bound(statement):
            return False
        for name in needs.bound(statement):
            self.names.pop(name, None)
            self.put_off[name] = (statement, self.file)
        return True

    @staticmethod
    def _package_put_off(module: str) -> str | None:
        for prefix, package in PUT_OFF.items():
            if module == prefix or module.startswith(f"{prefix}."):
                return package
        return None

    async def _do(self, statement: ast.stmt, shown: bool, file: str | None = None) -> None:
        file = file or self.file
        for name in sorted(needs.used(statement) & set(self.put_off)):
            await self._import(name)
        try:
            value = self._execute(statement, shown, file)
        except (ModuleNotFoundError, NameError) as error:
            if not await self._helped(error):
                raise
            value = self._execute(statement, shown, file)
        if asyncio.iscoroutine(value):
            value = await value
        if shown and value is not None:
            display(value)

    def _execute(self, statement: ast.stmt, shown: bool, file: str) -> Any:
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            # its own would say that there is no window
            pyplot.show = lambda *_, **__: self._show_open_figures()
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        if shown:
            assert isinstance(statement, ast.Expr)
            code = compile(ast.Expression(statement.value), file, "eval", flags)
        else:
            code = compile(ast.Module([statement], []), file, "exec", flags)
        return eval(code, self.names)

    async def _import(self, name: str) -> None:
        """Make an import that was put off, and with it all the names that it binds."""
        if name in self.put_off:
            statement, file = self.put_off[name]
            for each in needs.bound(statement):
                if self.put_off.get(each, (None,))[0] is statement:
                    del self.put_off[each]
            await self._do(statement, shown=False, file=file)

    async def _helped(self, error: ModuleNotFoundError | NameError) -> bool:
        """Whether what was missing is there now, so that the statement can be tried again."""
        name = error.name or ""
        if isinstance(error, NameError):
            known = name in self.put_off
            await self._import(name)
            return known
        package = self.modules.get(name.partition(".")[0])
        if package is None or package in self.loaded:
            return False
        packages = TOGETHER.get(package, [package])
        await self.load(packages)
        self.loaded.update(packages)
        return True

    def update(self, model: str, values: dict[str, Any]) -> None:
        """The reader has moved something in an explorable that a cell has made."""
        import anywidget

        anywidget.live_update(model, values)

    # ---- what is shown ----------------------------------------------------------------------

    def show(self, bundle: dict[str, Any]) -> None:
        if not self.quiet:
            sys.stdout.flush()
            self.send({"kind": "display", "bundle": bundle})

    def write(self, name: str, text: str) -> None:
        if self.quiet or self.room <= 0:
            return
        self.room -= len(text)
        if self.room <= 0:
            text = f"{text[: self.room or None]}\\n… it goes on; this page shows the first {MOST:,}"
            text += " characters of a cell\\n"
        self.send({"kind": "stream", "name": name, "text": text})

    def _show_open_figures(self) -> None:
        """What pyplot has drawn and nobody has shown, as a notebook shows it."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if id(figure) not in self.drawn:
                display(figure)
        pyplot.close("all")

    # ---- what went wrong --------------------------------------------------------------------

    def _of_syntax(self, error: SyntaxError) -> dict[str, Any]:
        line = error.lineno or 1
        said = [f"{self._place(self.file, line, '')}\\n"]
        if error.text:
            text = error.text.rstrip("\\n")
            indent = len(text) - len(text.lstrip())
            said.append(f"    {text.strip()}\\n")
            said.append(f"    {' ' * max(0, (error.offset or 1) - 1 - indent)}^\\n")
        said.append(f"{type(error).__name__}: {error.msg}\\n")
        return {"line": line, "text": "".join(said), "name": type(error).__name__}

    def _of_error(self, error: BaseException) -> dict[str, Any]:
        """The way to the error, from the cell on: the runner's own frames are nobody's concern."""
        told = traceback.TracebackException.from_exception(error, capture_locals=False)
        line, said = 0, []
        for each in reversed(list(_chain(told))):
            for frame in each.stack:
                if frame.filename.startswith(HERE):
                    continue
                if frame.filename == self.file and each is told:
                    line = frame.lineno or line
                said.append(f"{self._place(frame.filename, frame.lineno or 0, frame.name)}\\n")
                if frame.line:
                    said.append(f"    {frame.line}\\n")
            if each is told and isinstance(error, SyntaxError) and error.text:
                said.append(f"    {error.text.strip()}\\n")
            said += each.format_exception_only()
            if each is not told:
                said.append("\\nwhich led to\\n\\n")
        if isinstance(error, RecursionError) and len(said) > 24:
            said[8:-8] = ["    …\\n"]
        return {"line": line, "text": "".join(said), "name": type(error).__name__}

    def _place(self, file: str, line: int, function: str) -> str:
        inside = f", in {function}" if function and not function.startswith("<module") else ""
        if file.startswith("<"):
            where = file.strip("<>")
            return f"{where[:1].upper()}{where[1:]}, line {line}{inside}"
        parts = Path(file).parts
        start = parts.index("site-packages") + 1 if "site-packages" in parts else 0
        return f"{'/'.join(parts[start:])}, line {line}{inside}"


def _chain(told: traceback.TracebackException) -> Any:
    """The error, what it came from, and so on."""
    each: traceback.TracebackException | None = told
    while each is not None:
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


class Stream(io.TextIOBase):
    """What is printed, sent to the page in pieces while the cell runs."""

    encoding = "utf-8"

    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name = session, name
        self.parts: list[str] = []
        self.last = 0.0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.parts.append(str(text))
        if time.monotonic() - self.last > PAUSE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self.parts:
            text = "".join(self.parts)
            self.parts.clear()
            self.session.write(self.name, text)
        self.last = time.monotonic()


def _no_input(prompt: object = "") -> str:
    raise RuntimeError(
        "input() waits for somebody to type, and here nobody can: use a name instead"
    )


# ---- values as the page can show them --------------------------------------------------------


def display(*values: Any) -> None:
    """Show values below the cell, each as well as the page can."""
    session = Session.current
    for value in values:
        if not session.quiet:
            session.show(bundle_of(value))


def bundle_of(value: Any) -> dict[str, Any]:
    """A value by the kinds of content that it can be shown as; text is always there."""
    if hasattr(value, "live_show"):
        return {"widget": value.live_show(), "text/plain": object.__repr__(value)}
    bundle: dict[str, Any] = {}
    for kind, method in (
        ("text/html", "_repr_html_"),
        ("image/svg+xml", "_repr_svg_"),
        ("text/markdown", "_repr_markdown_"),
    ):
        found = _asked(value, method)
        if isinstance(found, str):
            bundle[kind] = found
    if not bundle and "matplotlib.figure" in sys.modules:
        from matplotlib.figure import Figure

        if isinstance(value, Figure):
            bundle["image/png"] = _png(value)
    if not isinstance(value, type) and not bundle and (found := _asked(value, "_repr_png_")):
        data = found[0] if isinstance(found, tuple) else found
        bundle["image/png"] = {"data": base64.b64encode(data).decode(), "width": 0}
    if "matplotlib.figure" in sys.modules:
        Session.current.drawn.add(id(value))
    bundle["text/plain"] = text_of(value)
    return bundle


def _asked(value: Any, method: str) -> Any:
    ask = None if isinstance(value, type) else getattr(value, method, None)
    return ask() if callable(ask) else None


def _png(figure: Any) -> dict[str, Any]:
    """Sharp on fine screens, in the size that was asked for."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=2 * figure.dpi, bbox_inches="tight")
    data = file.getvalue()
    return {
        "data": base64.b64encode(data).decode(),
        "width": int.from_bytes(data[16:20], "big") // 2,
    }


def text_of(value: Any) -> str:
    """A value in words, long containers over several lines."""
    if isinstance(value, dict | list | tuple | set | frozenset):
        return pprint.pformat(value, width=79, sort_dicts=False)
    return repr(value)


# ---- the door for engine.js -------------------------------------------------------------------


def start(send: Any, load: Any, modules: str, absent: str) -> Session:
    """A session whose messages travel as JSON."""
    return Session(
        lambda message: send(json.dumps(message)),
        lambda packages: load(json.dumps(packages)),
        json.loads(modules),
        json.loads(absent),
    )


async def run(session: Session, label: str, code: str, quiet: bool) -> str:
    return json.dumps(await session.run(label, code, quiet))
`;var N=`"""What a cell needs that the page cannot give it.

Read from the code alone, statement by statement, and used twice: when the book is built, to mark
the cells beforehand, and in the page, on whatever the reader has made of them.

A statement is left out if it imports what is absent (PyTorch has no build for browsers), if it uses
a name that was bound by a statement left out, or if it asks for something by a name that stands in
the table, as \`\`exercises.get("function-forward")\`\` does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Left(NamedTuple):
    """Lines of a cell that cannot be run here, and what they need."""

    first: int
    last: int
    need: str


Absent = Mapping[str, str]  # a module, or "key:…" for what is asked for by name → what is missing


def left_out(code: str, absent: Absent, lost: dict[str, str]) -> list[Left]:
    """The statements of a cell that have to be left out.

    \`\`lost\`\` maps names to what they would need; it is brought up to what holds after the cell.
    Code that is no Python is left to Python to complain of.
    """
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return []
    found = []
    for statement in body:
        need = reason(statement, absent, lost)
        settle(statement, need, lost)
        if need:
            found.append(Left(statement.lineno, statement.end_lineno or statement.lineno, need))
    return found


def reason(statement: ast.stmt, absent: Absent, lost: Mapping[str, str]) -> str:
    """What the statement needs and the page has not; "" for nothing."""
    for module in imports(statement):
        parts = module.split(".")
        for end in range(len(parts), 0, -1):
            need = absent.get(".".join(parts[:end]))
            if need:
                return need
    for name in sorted(used(statement)):
        if name in lost:
            return lost[name]
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            key = node.args[0].value
            need = absent.get(f"key:{key}") if isinstance(key, str) else None
            if need:
                return need
    return ""


def settle(statement: ast.stmt, need: str, lost: dict[str, str]) -> None:
    """Write down which names the statement bound, or could not bind."""
    for name in bound(statement):
        if need:
            lost[name] = need
        else:
            lost.pop(name, None)


def imports(node: ast.AST) -> Iterator[str]:
    """Every module that a piece of code names in an import, also inside of functions."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            # the name may be a module too: from convgrad import kernels
            yield from (f"{each.module}.{alias.name}" for alias in each.names)


def used(node: ast.AST) -> set[str]:
    """The names that a piece of code reads, and does not only make for itself."""
    read = {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    # x += 1 and f.attribute = 1 read what they write to; the latter is a read already
    read |= {
        each.target.id
        for each in ast.walk(node)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
    }
    return read - _of_its_own(node)


def bound(statement: ast.stmt) -> set[str]:
    """The names that are there after a statement of a cell."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names: set[str] = set()
    for node in _outside_functions(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _of_its_own(node: ast.AST) -> set[str]:
    """Parameters, and what a function or a comprehension binds for itself."""
    own: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            a = each.args
            given = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
            own |= {argument.arg for argument in given if argument}
        elif isinstance(each, ast.comprehension):
            own |= {name.id for name in ast.walk(each.target) if isinstance(name, ast.Name)}
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in each.body:
                own |= {
                    name.id
                    for name in ast.walk(inner)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                }
                own |= {
                    (alias.asname or alias.name).partition(".")[0]
                    for deep in ast.walk(inner)
                    if isinstance(deep, ast.Import | ast.ImportFrom)
                    for alias in deep.names
                }
    return own


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all within it that runs in the cell's own scope."""
    yield node
    if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
        return
    for child in ast.iter_child_nodes(node):
        yield from _outside_functions(child)
`;var m="/lib/convgrad_live",A="/lib/python3.12/site-packages",C=["numpy","convgrad"];async function T(t,o,f){let{index:c,lock:p,modules:a,absent:y,beside:w}=o,u={messageCallback:()=>{},errorCallback:()=>{}},l=await t({indexURL:c,lockFileURL:p,packages:C}),r=(s,d)=>{l.FS.mkdirTree(s.slice(0,s.lastIndexOf("/"))),l.FS.writeFile(s,d)};r(`${m}/convgrad_live.py`,x),r(`${m}/needs.py`,N),r(`${m}/standins/anywidget.py`,v),r(`${m}/standins/IPython/__init__.py`,k),r(`${m}/standins/IPython/display.py`,b);let e=A.slice(0,A.lastIndexOf("/"));for(let[s,d]of Object.entries(w))r(`${e}/${s}`,d);l.runPython(`import sys; sys.path += ["${m}", "${m}/standins"]`);let n=l.pyimport("convgrad_live"),i=n.start(s=>f(JSON.parse(s)),s=>l.loadPackage(JSON.parse(s),u),JSON.stringify(a),JSON.stringify(y));return{run:async(s,d,E=!1)=>JSON.parse(await n.run(i,s,d,E)),update:(s,d)=>i.update(s,l.toPy(d)),forget:()=>i.forget()}}function S(t,o,f,c,p){let a=new Map(f.map(e=>[e,0])),y=()=>[...a.keys()].reduce((e,n)=>e+o[n],0),w=()=>[...a].reduce((e,[n,i])=>e+Math.min(i,o[n]),0),u=(e,n)=>{if(!e.ok||!e.body||!(n in o))return e;a.set(n,0);let i=e.body.pipeThrough(new TransformStream({transform(s,d){a.set(n,(a.get(n)??0)+s.byteLength),p({loaded:w(),total:y()}),d.enqueue(s)}}));return new Response(i,{status:e.status,headers:e.headers})},l=e=>e.split("/").at(-1)??"",r=new Map(c.map(e=>[e,t(e).then(n=>u(n,l(e)))]));for(let e of r.values())e.catch(()=>{});return async(e,n)=>{let i=String(e instanceof Request?e.url:e),s=r.get(i);return r.delete(i),s??u(await t(e,n),l(i))}}var _,g=null,h=t=>postMessage(t);async function j(t,o,f){let c=["pyodide.asm.wasm","python_stdlib.zip"].map(a=>t.index+a);globalThis.fetch=S(globalThis.fetch,o,f,c,a=>h({kind:"progress",...a}));let{loadPyodide:p}=await import(`${t.index}pyodide.mjs`);return T(p,t,a=>h({...a,job:g}))}onmessage=async({data:t})=>{if(t.kind==="start")_=j(t.settings,t.sizes,t.first),_.then(()=>h({kind:"ready"}),o=>h({kind:"failed",reason:String(o?.message??o)}));else if(t.kind==="run"){let o=await _;g=t.job;let f=await o.run(t.label,t.code,t.quiet);h({kind:"done",job:g,outcome:f}),g=null}else t.kind==="update"&&(await _)?.update(t.model,t.values)};
