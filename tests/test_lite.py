"""The notebooks for the browser: nothing is installed, and what no browser can run says so."""

from __future__ import annotations

import ast

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import lite, runtime


def notebook(*code: str):
    cells = [new_markdown_cell("# A chapter"), *map(new_code_cell, ("import subprocess", *code))]
    return new_notebook(cells=cells)


def sources(made) -> list[str]:
    return [cell.source for cell in made.cells if cell.cell_type == "code"]


def test_the_first_cell_has_nothing_to_install():
    given = notebook("1 + 1")
    first, other = sources(lite.for_browser(given))
    ast.parse(first)
    assert first == lite.FIRST and "pip" not in first and other == "1 + 1"
    assert sources(given)[0] == "import subprocess"  # the one for download stays what it is


def test_a_cell_without_its_library_is_marked_and_so_is_what_uses_its_names():
    _, *made = sources(
        lite.for_browser(
            notebook("import torch\nt = torch.zeros(1)", "import numpy", "t.sum()", "!ls")
        )
    )
    assert made == [
        "%%needs PyTorch\nimport torch\nt = torch.zeros(1)",
        "import numpy",
        "%%needs PyTorch\nt.sum()",
        "%%needs other programs\n!ls",
    ]


def test_the_kernel_finds_all_it_starts_with_and_asks_nobody():
    told = lite.settings("lock.json")["jupyter-config-data"]["litePluginSettings"]
    (kernel,) = told.values()
    assert kernel["disablePyPIFallback"] and kernel["pyodideUrl"].startswith("./../_live/")
    of_kernel = lite._of_kernel()
    known = {*runtime.NOTEBOOK, *runtime.EXTRA, *of_kernel}
    assert {name.replace("_", "-") for name in lite.STARTS_WITH} <= known
