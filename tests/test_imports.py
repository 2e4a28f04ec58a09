"""Imports run one way, and the core needs NumPy alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from convgrad import IMPLEMENTATIONS
from tools.imports import PACKAGE, files, graph, imported, layers, sentence

# Who may know whom.  Each part lists the parts below it that it may import; a new module of the
# package finds its place here first.  ``loops`` shares nothing with the others but the index map,
# so that it can judge them.
ROUTES = {"pointwise", "depthwise", "blocked", "rows"}  # of fast
RUNGS = {
    "loops",
    "padding",
    "windows",
    "im2col",
    "correlate",
    "grouped",
    "parallel",
    "turned",
    "fast",
} | ROUTES
CORE = {"geometry", "memory", "operands", *RUNGS}
KNOWS: dict[str, set[str]] = {
    "extras": set(),
    "geometry": set(),
    "memory": {"geometry"},
    "operands": {"geometry", "memory"},
    "loops": {"geometry", "memory"},
    "padding": {"geometry"},
    "windows": {"geometry", "memory", "padding"},
    "im2col": {"geometry", "memory", "padding", "windows"},
    "correlate": {"geometry", "memory", "padding", "windows"},
    "grouped": {"geometry", "memory", "operands", "padding", "windows", "correlate"},
    "parallel": set(),
    "pointwise": {"geometry", "memory", "parallel"},
    "turned": {"geometry", "padding"},
    "depthwise": {"geometry", "memory", "padding", "parallel", "turned"},
    "blocked": {"geometry", "memory", "padding", "parallel", "turned", "windows"},
    "rows": {"geometry", "memory", "padding", "parallel", "turned", "windows", "blocked"},
    "fast": {"geometry", "memory", "windows", "parallel", *ROUTES},
    "api": CORE,
    "second": CORE | {"api"},
    "transpose": CORE | {"api"},
    "costs": {"geometry", "windows"},
    "implicit": {"geometry", "padding"},
    "schedule": {"geometry", "implicit"},
    "rounding": {"implicit", "schedule"},
    "roofline": {"geometry", "padding", "windows", "costs", "implicit", "schedule"},
    "layers": {"geometry"},
    "shards": {"geometry", "parallel", "windows"},
    "examples": CORE,
    "dice": set(),
    "scene": set(),
    "updates": set(),
    "ledger": CORE,
    "tables": CORE | {"ledger"},
    "mutants": CORE | {"ledger", "examples"},
    "checks": CORE | {"ledger", "examples", "mutants"},
    "museum": CORE | {"checks", "mutants"},
    "__init__": CORE | {"api", "second", "transpose", "examples"},
}
NUMPY_LAYER = set(KNOWS) - {"__init__"}
KNOWS["kernels"] = {"extras", "geometry", "padding", "schedule"}
KNOWS["autograd"] = NUMPY_LAYER | {"extras", "kernels"}
KNOWS["bench"] = {"api", "extras", "layers", *CORE}
KNOWS["distributed"] = {"autograd", "checks", "extras", "geometry", "shards"}
KNOWS["worksheet"] = NUMPY_LAYER
KNOWS["classroom"] = {"extras"}
KNOWS["cli"] = NUMPY_LAYER | {"bench", "classroom", "worksheet"}
KNOWS["__main__"] = {"cli", "geometry"}
KNOWS["figures"] = NUMPY_LAYER
KNOWS["widgets"] = NUMPY_LAYER | {"figures"}
KNOWS["exercises"] = NUMPY_LAYER | {"figures", "widgets"}

# Libraries, besides NumPy and Python's own, in the one layer where each belongs.
LIBRARIES: dict[str, set[str]] = {
    "parallel": {"threadpoolctl"},
    "kernels": {"torch", "triton"},
    "autograd": {"torch"},
    "distributed": {"torch"},
    "bench": {"torch"},
    "classroom": {
        "IPython",
        "bs4",
        "distributed",
        "jupytext",
        "latex2mathml",
        "nbclient",
        "nbconvert",
        "nbformat",
        "nbgrader",
        "psutil",
        "traitlets",
    },
    "cli": {"torch"},
    "exercises": {"torch"},
    "figures": {"matplotlib"},
    "widgets": {"anywidget", "traitlets", "latex2mathml", "markdown_it", "mdit_py_plugins"},
}


def unwelcome(part: str, source: str, depth: int = 0) -> set[str]:
    """What ``part`` imports and should not."""
    wrong = set()
    for name in imported(source, depth):
        first, _, rest = name.partition(".")
        if first == "convgrad":
            other = rest.partition(".")[0]
            if other != part and other not in KNOWS[part]:
                wrong.add(name)
        elif first not in sys.stdlib_module_names | {"numpy"} | LIBRARIES.get(part, set()):
            wrong.add(name)
    return wrong


@pytest.mark.parametrize(
    ("part", "path"),
    list(files()),
    ids=lambda value: value.stem if isinstance(value, Path) else value,
)
def test_a_module_imports_only_what_lies_below_it(part, path):
    assert part in KNOWS, f"{path.name} has no place in the order of imports yet"
    depth = len(path.relative_to(PACKAGE).parts) - 1
    assert unwelcome(part, path.read_text(encoding="utf-8"), depth) == set()


def test_the_order_has_no_circle():
    done: set[str] = set()
    while len(done) < len(KNOWS):
        ready = {part for part, below in KNOWS.items() if below <= done} - done
        assert ready, f"these know each other: {set(KNOWS) - done}"
        done |= ready


def test_the_list_in_contributing_is_whole_and_in_order():
    """The list that people read, and that the book's map is drawn from."""
    stack = layers()
    order = [part for layer in stack for part in layer.parts]
    assert sorted(order) == sorted(set(KNOWS) - {"__init__", "__main__"})
    for part, below in graph().items():
        if part in order:
            later = [each for each in below if each not in order[: order.index(part)]]
            assert not later, f"{part} imports {later}, which the list names after it"
    need = {layer.title: {part for part in layer.parts if LIBRARIES.get(part)} for layer in stack}
    assert not set().union(*list(need.values())[:8]) - {"parallel"}, "NumPy alone"


@pytest.mark.parametrize("part", sorted(set(KNOWS) - {"__init__", "__main__"}))
def test_a_part_says_what_it_is_in_one_sentence(part):
    words = sentence(part)
    assert words.endswith(".") and 20 < len(words) < 170
    assert ". " not in words


def test_the_list_is_read_as_it_is_written():
    text = "1. **One.** `geometry`, sizes;\n   `loops`.\n10. **Ten.** `api`\n\n`other`\n"
    assert layers(text) == [("One", ("geometry", "loops")), ("Ten", ("api",))]


@pytest.mark.parametrize(
    ("part", "source", "found"),
    [
        ("loops", "from .windows import windows", {"convgrad.windows"}),
        ("loops", "from . import windows", {"convgrad.windows"}),
        ("loops", "def f():\n    import convgrad.api", {"convgrad.api"}),
        ("windows", "from convgrad.grouped import blocks", {"convgrad.grouped"}),
        ("checks", "import torch.nn as nn", {"torch.nn"}),
        ("geometry", "import numpy as np\nfrom math import pi", set()),
        ("grouped", "from .correlate import swapped\nfrom . import windows", set()),
        ("checks", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", set()),
    ],
)
def test_an_import_against_the_order_would_be_noticed(part, source, found):
    assert unwelcome(part, source) == found


# ---- NumPy alone -----------------------------------------------------------------------------

ALONE = """
import sys, threading

class OnlyNumPy:
    "Finds nothing but NumPy, this package and Python itself."
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"numpy", "convgrad"}:
            raise ModuleNotFoundError(f"this Python has no {name}", name=name)

def no_threads(self):
    raise RuntimeError("can't start new thread")

sys.meta_path.insert(0, OnlyNumPy())
threading.Thread.start = no_threads

import numpy as np
import convgrad
from convgrad import checks, examples, exercises, ledger, mutants

geometry = convgrad.example("D").geometry
x, weight, bias, grad_output = convgrad.example("D").arrays()
arguments = {"groups": geometry.groups}
answers = []
for name in convgrad.IMPLEMENTATIONS:
    arguments["implementation"] = name
    y = convgrad.conv2d(x, weight, bias, **arguments)
    answers.append((y, *convgrad.conv2d_backward(grad_output, x, weight, **arguments)))
for answer in answers:
    assert all(np.array_equal(*pair) for pair in zip(answer, answers[0], strict=True))
print("same answers:", len(answers))

from convgrad.__main__ import main
from convgrad.worksheet import worksheet
assert worksheet("all", level=2, count=10).key
assert main(["ledger", "--example", "B", "--limit", "1"]) == 0
assert main(["check", "convgrad.windows:grad_weight", "--count", "20"]) == 0
"""


def run_python(source: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


def test_numpy_alone_is_enough_and_no_thread_is_started():
    result = run_python(ALONE)
    assert result.returncode == 0, result.stderr
    first, *of_the_command = result.stdout.splitlines()
    assert first == f"same answers: {len(IMPLEMENTATIONS)}"
    assert any("right on all 20 convolutions" in line for line in of_the_command)


@pytest.mark.parametrize("library", ["matplotlib", "torch"])
def test_the_blocker_blocks(library):
    result = run_python(ALONE.replace("import numpy as np", f"import {library}"))
    assert result.returncode != 0
    assert f"this Python has no {library}" in result.stderr


@pytest.mark.parametrize("name", ["style", "grids", "chapters.shared", "cover"])
def test_without_matplotlib_the_figures_say_what_to_install(name):
    blocker, _, _ = ALONE.partition("import numpy")
    result = run_python(f"{blocker}import convgrad.figures.{name}")
    assert 'pip install "convgrad[figures]"' in result.stderr.splitlines()[-1]


def test_importing_the_package_imports_no_optional_library():
    optional = ["torch", "triton", "matplotlib", "anywidget", "ipywidgets", "IPython", "hypothesis"]
    result = run_python(f"import convgrad, sys; print([m for m in {optional} if m in sys.modules])")
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize("part", ["autograd", "distributed", "kernels"])
def test_triton_waits_until_a_kernel_is_wanted(part):
    pytest.importorskip("torch")
    result = run_python(f"import convgrad.{part}, sys; print('triton' in sys.modules)")
    assert result.stdout.strip() == "False", result.stderr
