"""A class that hands in the assignment ``pixels``: right, wrong, broken and hostile submissions.

Each kind says what its learner did and what should come of it.  Used by the tests of the classroom,
and by its benchmark, which hands in hundreds.
"""

from __future__ import annotations

import copy
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("classroom")
ASSIGNMENT = "pixels"
OF = 7.0  # 1 for the count, 1 for the shape, 3 for the gradient, 2 for the sentence

RIGHT = """\
def grad_weight(grad_output, x, kernel_size):
    rows, cols = grad_output.shape
    answer = np.zeros(kernel_size)
    for i in range(kernel_size[0]):
        for j in range(kernel_size[1]):
            answer[i, j] = (grad_output * x[i : i + rows, j : j + cols]).sum()
    return answer
"""
TURNED = RIGHT.replace("return answer", "return answer[::-1, ::-1]")
SENTENCE = "A tap is used at every position, so the shares of all positions add."

Notebook = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A way to hand in: what was done, and what the row should say.

    ``points`` are those of the tests; the sentence awaits a grade by hand.  ``flag`` and
    ``reason`` are parts of what is said; ``sandboxed`` kinds are for a sandbox alone.
    """

    name: str
    hand_in: Callable[[Notebook, Path], None]
    points: float
    status: str = "graded"
    reason: str = ""
    flag: str = ""
    note: str = ""
    sandboxed: bool = False


def read(path: Path) -> Notebook:
    """The students' notebook; a file's sources may be lists of lines, here they are texts."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    for some in notebook["cells"]:
        some["source"] = "".join(some["source"])
    return notebook


def cell(notebook: Notebook, name: str) -> dict[str, Any]:
    (found,) = [c for c in notebook["cells"] if name_of(c) == name]
    return found


def name_of(some: dict[str, Any]) -> str | None:
    return some["metadata"].get("nbgrader", {}).get("grade_id")


def own(text: str) -> dict[str, Any]:
    """A cell that a learner has added."""
    return {
        "cell_type": "code",
        "id": "own",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": text,
    }


def answered(released: Notebook, gradient: str = RIGHT, count: str = "products = 12") -> Notebook:
    """The notebook with answers in it."""
    notebook = copy.deepcopy(released)
    cell(notebook, "count")["source"] = count
    cell(notebook, "gradient")["source"] = gradient
    cell(notebook, "why")["source"] = SENTENCE
    return notebook


def write(notebook: Notebook, folder: Path, name: str = f"{ASSIGNMENT}.ipynb") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(notebook), encoding="utf-8")


def simply(gradient: str = RIGHT, count: str = "products = 12") -> Callable[[Notebook, Path], None]:
    return lambda released, folder: write(answered(released, gradient, count), folder)


def with_cell(text: str, before: str = "count", **answers: str) -> Callable[[Notebook, Path], None]:
    """An answer to everything, and a cell of the learner's own before another one."""

    def hand_in(released: Notebook, folder: Path) -> None:
        notebook = answered(released, **answers)
        names = [name_of(c) for c in notebook["cells"]]
        notebook["cells"].insert(names.index(before), own(text))
        write(notebook, folder)

    return hand_in


def changed(change: Callable[[Notebook], None]) -> Callable[[Notebook, Path], None]:
    def hand_in(released: Notebook, folder: Path) -> None:
        notebook = answered(released)
        change(notebook)
        write(notebook, folder)

    return hand_in


# ---- broken ----------------------------------------------------------------------------------


def deleted_test(notebook: Notebook) -> None:
    notebook["cells"].remove(cell(notebook, "test-gradient"))


def deleted_all_but_code(notebook: Notebook) -> None:
    """Everything put into one cell of one's own, the assignment's cells gone."""
    texts = [cell(notebook, name)["source"] for name in ("setup", "count", "gradient")]
    notebook["cells"] = [own("\n".join(texts))]


def copied(notebook: Notebook) -> None:
    names = [name_of(c) for c in notebook["cells"]]
    for name in ("gradient", "test-gradient"):
        notebook["cells"].insert(names.index("gradient"), copy.deepcopy(cell(notebook, name)))
    cell_before = next(c for c in notebook["cells"] if name_of(c) == "gradient")
    cell_before["source"] = "a first try that is no Python at all"


def edited_tests(notebook: Notebook) -> None:
    for name in ("test-count", "test-shape", "test-gradient"):
        cell(notebook, name)["source"] = "pass"
        cell(notebook, name)["metadata"]["nbgrader"]["points"] = 100
    cell(notebook, "gradient")["source"] = TURNED


def retyped(notebook: Notebook) -> None:
    test = cell(notebook, "test-count")
    test["cell_type"] = "markdown"
    del test["outputs"], test["execution_count"]


def bare(notebook: Notebook) -> None:
    """An old notebook without ids, whose metadata another program has thrown away."""
    for some in notebook["cells"]:
        some.pop("id", None)
        some["metadata"] = {"nbgrader": {"grade_id": name_of(some)}} if name_of(some) else {}
    notebook["nbformat_minor"] = 4


def truncated(released: Notebook, folder: Path) -> None:
    write(answered(released), folder)
    path = folder / f"{ASSIGNMENT}.ipynb"
    path.write_bytes(path.read_bytes()[:700])


def nothing_in_it(released: Notebook, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / f"{ASSIGNMENT}.ipynb").touch()


def renamed(released: Notebook, folder: Path) -> None:
    write(answered(released), folder, "pixels (1) final.ipynb")


def no_notebook(released: Notebook, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "homework.docx").write_bytes(b"PK")


def zipped(released: Notebook, folder: Path) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "work.zip", "w") as archive:
        archive.writestr(f"work/{ASSIGNMENT}.ipynb", json.dumps(answered(released)))


# ---- hostile ---------------------------------------------------------------------------------


def climbing_zip(released: Notebook, folder: Path) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "work.zip", "w") as archive:
        archive.writestr(f"../../../source/{ASSIGNMENT}.ipynb", json.dumps(answered(released)))


def linked(released: Notebook, folder: Path) -> None:
    folder.mkdir(parents=True)
    source = folder.parents[2] / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    (folder / f"{ASSIGNMENT}.ipynb").symlink_to(source)


def helper_files(released: Notebook, folder: Path) -> None:
    """A numpy of one's own beside the notebook."""
    write(answered(released, TURNED), folder)
    (folder / "numpy.py").write_text("raise SystemExit('not the real one')")
    (folder / "sitecustomize.py").write_text("raise SystemExit('nor this')")


TAMPER = """\
import glob, os, sqlite3
for folder in (os.getcwd(), "{course}", "/tmp"):
    for path in glob.glob(folder + "/**/*.db", recursive=True):
        with sqlite3.connect(path) as book:
            book.execute("UPDATE grade SET manual_score = 396")
open("{course}/grades.csv", "w").write("all of you get 396")
"""
PEEK = """\
import pathlib
print([path.read_text() for path in pathlib.Path("{course}").rglob("*.ipynb")])
print([path.read_text() for path in pathlib.Path("{course}").rglob("*.md")])
print(open("{course}/source/pixels.md").read())
"""
LISTEN = """\
import urllib.request
urllib.request.urlopen("http://127.0.0.1:{port}/i-was-here", timeout=5)
"""
FORK_BOMB = """\
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
STUBBORN = """\
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
SHADOWED = """\
class Yes:
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
exercises = Yes()
"""
PATCHED = """\
np.testing.assert_array_equal = lambda *a, **k: None
exercises.Exercise.require = lambda self, answer: None
np.shape = lambda a: (3, 2)
"""
HOOKED = """\
import ast
class Nothing(ast.NodeTransformer):
    def visit_Expr(self, node): return ast.Pass()
    def visit_Assert(self, node): return ast.Pass()
get_ipython().ast_transformers.append(Nothing())
get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)
get_ipython().events.register("pre_run_cell", lambda info: print(info.raw_cell))
"""
SHOWS_POINTS = """\
def grad_weight(grad_output, x, kernel_size):
    get_ipython().displayhook(3.0)
    return np.zeros(kernel_size)
"""
WARNS = RIGHT.replace("return answer", "import warnings; warnings.warn('slow'); return answer")
BORROWED = """\
from convgrad import conv2d_backward
def grad_weight(grad_output, x, kernel_size):
    w = np.zeros((1, 1, *kernel_size))
    return conv2d_backward(grad_output[None, None], x[None, None], w)[1][0, 0]
"""
BORROWED_FROM_TORCH = """\
import torch.nn.functional as F, torch
def grad_weight(grad_output, x, kernel_size):
    x, g = torch.tensor(x), torch.tensor(grad_output)
    return F.conv2d(x[None, None], g[None, None])[0, 0].numpy()
"""

KINDS = [
    Kind("right", simply(), 5),
    Kind("turned", simply(TURNED), 2),
    Kind("wrong-count", simply(count="products = 6"), 4),
    Kind("ones", simply("def grad_weight(g, x, k):\n    return np.ones(k)"), 2),
    Kind("untouched", lambda released, folder: write(released, folder), 0),
    Kind("no-python", simply("def grad_weight(:"), 1),
    Kind("warns", simply(WARNS), 5),
    Kind("deleted-test", changed(deleted_test), 5, note="test-gradient was missing"),
    Kind("one-cell", changed(deleted_all_but_code), 5, note="was missing"),
    Kind("copied", changed(copied), 5, note="is there twice"),
    Kind("edited-tests", changed(edited_tests), 2, note="is locked, was changed"),
    Kind("retyped", changed(retyped), 5, note="was turned into markdown"),
    Kind("bare", changed(bare), 5),
    Kind("truncated", truncated, 0, "not graded", reason="no notebook"),
    Kind("empty-file", nothing_in_it, 0, "not graded", reason="it is empty"),
    Kind("renamed", renamed, 5, note="its file is called pixels (1) final.ipynb"),
    Kind("no-notebook", no_notebook, 0, "not graded", reason="there is no pixels.ipynb"),
    Kind("zipped", zipped, 5, note="handed in as work.zip"),
    Kind("climbing-zip", climbing_zip, 0, "not graded", reason="leads out of it"),
    Kind("linked", linked, 0, "not graded", reason="is a link"),
    Kind("helper-files", helper_files, 2),
    Kind("endless", with_cell("while True: pass", "gradient"), 5, note="took longer than"),
    Kind(
        "stubborn",
        with_cell(STUBBORN, "gradient"),
        1,
        "graded in part",
        reason="nor let itself be interrupted",
        flag="catches interruptions",
    ),
    Kind(
        "exits",
        with_cell("import os; os._exit(0)", "gradient"),
        1,
        "graded in part",
        reason="the kernel died",
        flag="uses os._exit",
    ),
    Kind("memory", with_cell("big = [0.0] * 10**10", "gradient"), 5),
    Kind("floods", with_cell("for k in range(10**6): print(k)", "gradient"), 5, note="was cut"),
    Kind("shadowed", with_cell(SHADOWED, "gradient", gradient=TURNED), 2, flag="exercises"),
    Kind(
        "patched",
        with_cell(PATCHED, "gradient", gradient=TURNED),
        2,
        flag="numpy.testing.assert_array_equal",
    ),
    Kind("hooked", with_cell(HOOKED, "gradient", gradient=TURNED), 2, flag="transformers"),
    Kind("shows-points", simply(SHOWS_POINTS), 2, flag="reaches the notebook's shell"),
    Kind("borrowed", simply(BORROWED), 5, flag="convgrad.conv2d_backward"),
    Kind("borrowed-torch", simply(BORROWED_FROM_TORCH), 5, flag="torch.nn.functional.conv2d"),
    Kind("tampers", with_cell(TAMPER, "gradient"), 5, flag="opens databases", sandboxed=True),
    Kind("peeks", with_cell(PEEK, "gradient"), 5, flag="reaches files", sandboxed=True),
    Kind("calls-home", with_cell(LISTEN, "gradient"), 5, flag="opens connections", sandboxed=True),
    Kind(
        "fork-bomb",
        with_cell(FORK_BOMB, "gradient"),
        1,
        "graded in part",
        reason="processes",
        flag="uses os.fork",
        sandboxed=True,
    ),
]


def hand_in(kind: Kind, released: Notebook, course: Path, learner: str, port: int = 9) -> None:
    """Put a submission of this kind where the course expects it."""
    folder = course / "submitted" / learner / ASSIGNMENT
    kind.hand_in(released, folder)
    for path in folder.glob("*.ipynb"):
        if not path.is_symlink():
            text = path.read_text().replace("{course}", str(course)).replace("{port}", str(port))
            path.write_text(text, encoding="utf-8")


def course_of(root: Path) -> tuple[Path, Notebook]:
    """A course with the assignment, and the students' notebook of it."""
    from convgrad.classroom import release

    (root / "source").mkdir(parents=True)
    shutil.copy(SOURCES / f"{ASSIGNMENT}.md", root / "source")
    (written,) = release(root / "source", to=root / "release")
    return root, read(written)
