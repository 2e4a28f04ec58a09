"""Live cells: what is read from their code, and that every chapter runs in the page's Python."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("myst_nb", reason="the book's packages are in requirements.txt")
from tools import live, runtime
from tools.live import Cell, described, needs

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted((ROOT / "book").glob("part*/*.md"))
ABSENT = {"torch": "PyTorch", "convgrad.kernels": "Triton", "key:function-forward": "PyTorch"}


def left(code: str, lost: dict[str, str] | None = None) -> list[tuple[int, int, str]]:
    return [tuple(each) for each in needs.left_out(code, ABSENT, {} if lost is None else lost)]


# ---- read from the code -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import torch",
        "import torch.nn.functional as F",
        "from torch import nn",
        "import numpy, torch",
        "from convgrad import kernels",
        "from convgrad.kernels.blocks import BLOCK",
        "def f():\n    import torch",
        'exercises.get("function-forward").check(f)',
    ],
)
def test_what_cannot_be_imported_or_asked_for_is_left_out(code):
    assert len(left(code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np",
        "from convgrad import example",
        "import torchlike",
        "torch = 3\ntorch + 1",
        'exercises.get("window-shape").check(f)',
        "def broken(:",
    ],
)
def test_what_can_be_run_is_not(code):
    assert left(code) == []


def test_names_that_were_left_out_are_missed_until_they_are_bound_anew():
    lost: dict[str, str] = {}
    assert left("import torch\nx = torch.ones(3)\ny = 2", lost) == [
        (1, 1, "PyTorch"),
        (2, 2, "PyTorch"),
    ]
    assert set(lost) == {"torch", "x"}
    assert left("print(y)\nz = x + 1", lost) == [(2, 2, "PyTorch")]
    assert left("x = y\nz = x", lost) == []
    assert set(lost) == {"torch"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("f(a, b.c)", {"f", "a", "b"}),
        ("def f(a):\n    b = a\n    return b + c", {"c"}),
        ("[x for x in y if z]", {"y", "z"}),
        ("lambda q: q + r", {"r"}),
        ("n += 1", {"n"}),
        ("n = 1", set()),
        ("with open(p) as file: file.read()", {"open", "p", "file"}),
    ],
)
def test_names_that_are_read(code, names):
    assert needs.used(ast.parse(code)) == names


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("a = b, c = 1, 2", {"a", "b", "c"}),
        ("for i, (j, k) in x: m = i", {"i", "j", "k", "m"}),
        ("import a.b, c as d", {"a", "d"}),
        ("def f(x):\n    y = 1", {"f"}),
        ("class C:\n    z = 1", {"C"}),
        ("[x for x in y]", set()),
        ("if (n := 3): pass", {"n"}),
    ],
)
def test_names_that_are_bound(code, names):
    assert needs.bound(ast.parse(code).body[0]) == names


def test_cells_as_the_page_is_told_of_them():
    page = [
        Cell("import torch\n", frozenset({"remove-cell"})),
        Cell("a = 1", frozenset({"remove-input"})),
        Cell("draw()", frozenset({"remove-input"})),
        Cell("print(a)"),
        Cell("print(torch)", frozenset({"hide-cell"})),
        Cell("big()", frozenset({"needs-64-bits"})),
    ]
    assert described(page, ABSENT) == [
        {"code": "import torch", "needs": "PyTorch"},
        {"code": "a = 1", "place": True},
        {"code": "", "place": True},
        {"code": "print(a)", "place": True, "shown": True},
        {"code": "print(torch)", "place": True, "shown": True, "folded": True, "needs": "PyTorch"},
        {"code": "big()", "place": True, "shown": True, "needs": "memory beyond 4 GB"},
    ]


def test_the_parts_of_the_package_that_a_browser_cannot_have():
    absent = live.absent()
    for module in ("autograd", "kernels", "distributed", "kernels.blocks", "autograd.calls"):
        assert f"convgrad.{module}" in absent
    for module in ("api", "fast", "checks", "exercises", "figures", "widgets", "bench", "schedule"):
        assert f"convgrad.{module}" not in absent
    assert absent["key:function-forward"] == "PyTorch"


# ---- without Python ---------------------------------------------------------------------------


def test_where_python_cannot_be_had_the_pages_have_no_switch_and_the_build_says_so(
    monkeypatch, tmp_path
):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    import live as extension

    def nothing(**_):
        raise runtime.RuntimeMissing("tried everything")

    monkeypatch.setattr(runtime, "fetch", nothing)
    said: list[str] = []
    monkeypatch.setattr(extension.logger, "info", lambda words, *rest: said.append(words % rest))
    page = {extension.CELLS: [{"code": "1", "shown": True}]}
    app = SimpleNamespace(
        env=SimpleNamespace(metadata={"book/page": page}),
        builder=SimpleNamespace(format="html"),
        outdir=str(tmp_path),
    )
    config = SimpleNamespace(book_live=True)
    extension.find_python(app, config)
    assert said == ["The pages are built without live cells: tried everything"]
    assert config.book_live is False  # which has every page written anew
    context = {"pathto": lambda name, resource: name}
    extension.add_switch(app, "book/page", "", context, None)
    assert "metatags" not in context
    (tmp_path / live.FOLDER).mkdir()
    extension.write_folder(app, None)
    assert not (tmp_path / live.FOLDER).exists()
    # and with it, a page of cells has one
    app.live_python = runtime.Runtime(tmp_path, (), {})
    extension.add_switch(app, "book/page", "", context, None)
    assert live.switch_name() in context["metatags"] and "book-page.json" in context["metatags"]


# ---- run as in the page -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder ``_live`` as the book's build writes it, without pages."""
    place = tmp_path_factory.mktemp("site") / live.FOLDER
    try:
        python = runtime.fetch()
    except runtime.RuntimeMissing as missing:
        pytest.fail(str(missing), pytrace=False)
    live.write(place, {}, python, "tools.js")
    return place


def run(node, folder: Path, pages: list[list[str]]) -> list[list[dict]]:
    """How every cell ended and what it showed, each page from its beginning."""
    done = subprocess.run(
        [str(node.node), "tests/live_oracle.mjs", str(folder)],
        cwd=ROOT,
        input=json.dumps(pages),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def printed(outcome: dict) -> str:
    return "".join(each["text"] for each in outcome["heard"] if each["kind"] == "stream")


def shown(outcome: dict) -> list[dict]:
    return [each["bundle"] for each in outcome["heard"] if each["kind"] == "display"]


CELLS = {
    "text": "print('one'); print('two', end='')\n{'a': 1}",
    "names": "import numpy as np\nimport convgrad\nx = np.arange(3)",
    "value": "x + 1",
    "error": "def f(n):\n    return 1 / n\n\nf(0)",
    "package": "convgrad.conv2d(x, x)",
    "syntax": "a = 1\nb = = 2",
    "torch": "import torch\nkept = 5\nprint(kept)\nt = torch.ones(kept)",
    "after": "print(kept)",
    "missed": "print(t)",
    "figure": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('drawn')",
    "book": "from convgrad.figures.grids import Grid, draw\ndraw(Grid([[1]], 'x', title='x'))",
    "widget": "from convgrad.widgets import SlidingWindow\n"
    "w = SlidingWindow(convgrad.example('B'))\nw",
    "moved": "w.step = 3",
    "check": "from convgrad import exercises\nexercises.get('weight-how-many').check(6)",
    "right": "exercises.get('weight-how-many').check(exercises.get('weight-how-many').answer)",
    "html": "from IPython.display import HTML\nHTML('<b>bold</b>')",
    "input": "input('?')",
    "later": "def later():\n    return pictures\n",
    "put off": "from convgrad.figures import speed as pictures",
    "used": "print(later().__name__)",
    "flood": "for i in range(100_000): print('much')",
}


# Where NumPy counts in 32 bits: examples that print `dtype=int32`, or only then do not, and arrays
# and lengths beyond 2 GB.
BY_32_BITS = {"convgrad.implicit": 1, "convgrad.memory": 2, "convgrad.tables": 4}

EXAMPLES = """
import contextlib, doctest, importlib, io, json
found, tried = {}, 0
for name in MODULES:
    with contextlib.redirect_stdout(io.StringIO()):
        failed, attempted = doctest.testmod(importlib.import_module(name))
    tried += attempted
    if failed:
        found[name] = failed
print(json.dumps([found, tried]))
"""

LAWS = """
import numpy as np
from convgrad import IMPLEMENTATIONS, loops
from convgrad.checks import random_geometry, random_operands

rng, seen = np.random.default_rng(7), 0
for _ in range(60):
    g, x, weight, upstream = random_operands(random_geometry(rng), rng)
    y = loops.forward(x, weight, g)
    right = loops.grad_input(upstream, weight, g), loops.grad_weight(upstream, x, g)
    assert np.vdot(upstream, y) == np.vdot(x, right[0])
    assert np.vdot(upstream, y) == np.vdot(weight, right[1])
    for name, each in IMPLEMENTATIONS.items():
        assert np.array_equal(each.forward(x, weight, g), y), (name, g)
        assert np.array_equal(each.grad_input(upstream, weight, g), right[0]), (name, g)
        assert np.array_equal(each.grad_weight(upstream, x, g), right[1]), (name, g)
        seen += 1
print(seen)
"""


def core() -> list[str]:
    """Cells that put the core of the package to the test."""
    above = ("figures", "widgets", "cli", "bench", "worksheet", "classroom", "__main__")
    modules = [
        name
        for name, _ in live.modules()
        if name not in live.absent() and not name.startswith(tuple(f"convgrad.{a}" for a in above))
    ]
    assert len(modules) > 50
    return [f"MODULES = {modules}\n{EXAMPLES}", LAWS]


def chapters() -> dict[str, list[dict]]:
    """The cells of each chapter that a reader can run; marked ones are run for their names."""
    told = {path.stem: described(live.cells(path), live.absent()) for path in CHAPTERS}
    return {
        name: [cell for cell in page if cell["code"] and "memory" not in cell.get("needs", "")]
        for name, page in told.items()
    }


@pytest.fixture(scope="module")
def ended(node, folder) -> list[list[dict]]:
    """All that is run in the page's Python here: it takes seconds to start, so it starts once."""
    told = [[cell["code"] for cell in page] for page in chapters().values()]
    return run(node, folder, [list(CELLS.values()), core(), *told])


@pytest.fixture(scope="module")
def outcomes(ended) -> dict[str, dict]:
    return dict(zip(CELLS, ended[0], strict=True))


@pytest.mark.slow
def test_what_a_cell_shows(outcomes):
    assert printed(outcomes["text"]) == "one\ntwo"
    assert shown(outcomes["text"]) == [{"text/plain": "{'a': 1}"}]
    assert shown(outcomes["names"]) == [] and outcomes["names"]["ok"]
    assert shown(outcomes["value"]) == [{"text/plain": "array([1, 2, 3])"}]
    assert shown(outcomes["html"])[0]["text/html"] == "<b>bold</b>"


@pytest.mark.slow
def test_an_error_points_to_the_line_of_the_cell(outcomes):
    error = outcomes["error"]["error"]
    assert error["name"] == "ZeroDivisionError" and error["line"] == 2
    assert error["text"].startswith("Cell 4, line 4\n    f(0)\nCell 4, line 2, in f\n")
    package = outcomes["package"]["error"]
    assert package["line"] == 1 and "convgrad/api.py, line" in package["text"]
    assert "convgrad_live" not in package["text"]
    assert outcomes["syntax"]["error"]["line"] == 2
    assert outcomes["syntax"]["error"]["text"].endswith("SyntaxError: invalid syntax\n")
    assert "nobody can" in outcomes["input"]["error"]["text"]


@pytest.mark.slow
def test_what_needs_a_library_is_left_out_and_the_rest_is_done(outcomes):
    assert [each["first"] for each in outcomes["torch"]["left"]] == [1, 4]
    assert outcomes["torch"]["heard"] == [], "the output that was built stays"
    assert printed(outcomes["after"]) == "5\n"
    assert [each["need"] for each in outcomes["missed"]["left"]] == ["PyTorch"]


@pytest.mark.slow
def test_figures_are_shown_as_images(outcomes):
    (figure,) = shown(outcomes["figure"])
    assert figure["image/png"]["width"] > 300 and len(figure["image/png"]["data"]) > 1000
    assert printed(outcomes["figure"]) == "drawn\n"
    assert "<svg" in shown(outcomes["book"])[0]["image/svg+xml"]


@pytest.mark.slow
def test_an_explorable_is_described_and_what_python_changes_is_told(outcomes):
    widget = shown(outcomes["widget"])[0]["widget"]
    assert widget["module"].startswith("sliding_window-") and widget["state"]["step"] == 1
    assert not {"_tools", "fallback"} & set(widget["state"])
    told = [each for each in outcomes["moved"]["heard"] if each["kind"] == "state"]
    assert {"step": 3} in [each["values"] for each in told]


@pytest.mark.slow
def test_an_exercise_is_checked(outcomes):
    assert "cg-verdict--wrong" in shown(outcomes["check"])[0]["text/html"]
    assert "<summary>Hint 1</summary>" in shown(outcomes["check"])[0]["text/html"]
    assert "cg-verdict--right" in shown(outcomes["right"])[0]["text/html"]


@pytest.mark.slow
def test_an_import_that_was_put_off_is_there_when_it_is_used(outcomes):
    assert outcomes["put off"]["ok"]
    assert printed(outcomes["used"]) == "convgrad.figures.speed\n"


@pytest.mark.slow
def test_a_flood_of_text_ends(outcomes):
    assert 200_000 <= len(printed(outcomes["flood"])) < 201_000
    assert outcomes["flood"]["ok"]


@pytest.mark.slow
def test_the_core_of_the_package_is_right_there_too(ended):
    """With an older NumPy, 32 bits and no threads: its examples, and the laws in integers."""
    examples, laws = ended[1]
    assert examples["ok"] and laws["ok"], (examples["error"], laws["error"])
    failed, tried = json.loads(printed(examples))
    assert failed == BY_32_BITS and tried > 300
    assert int(printed(laws)) >= 60 * 5


@pytest.mark.slow
def test_every_cell_that_is_not_marked_runs_in_the_page(ended):
    wrong, unmarked = [], 0
    for (name, page), outcomes in zip(chapters().items(), ended[2:], strict=True):
        for cell, outcome in zip(page, outcomes, strict=True):
            unmarked += "needs" not in cell
            if outcome["error"]:
                wrong.append((name, cell["code"][:200], outcome["error"]["text"]))
            elif bool(outcome["left"]) != ("needs" in cell):
                wrong.append((name, cell["code"][:200], f"marked {cell.get('needs')}"))
    assert not wrong
    assert len(chapters()) > 20 and unmarked > 250, "most of what the book shows can be run in it"
