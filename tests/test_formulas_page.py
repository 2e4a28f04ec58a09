"""*Formulas on one page* is true: every cell runs and proves what stands above it."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import pairwise

import pytest
from pages import BOOK, CELL

from convgrad import ConvGeometry

TEXT = (BOOK / "formulas.md").read_text("utf-8")
CELLS = [match["code"] for match in CELL.finditer(TEXT)]


@pytest.fixture(scope="module")
def run() -> tuple[list[str], dict[str, object]]:
    """What each cell prints, and the names that are left at the end."""
    pytest.importorskip("torch")
    scope: dict[str, object] = {}
    printed = []
    for code in CELLS:
        lines = io.StringIO()
        with contextlib.redirect_stdout(lines):
            exec(compile(code, "formulas", "exec"), scope)
        printed.append(lines.getvalue())
    return printed, scope


def test_every_cell_but_the_first_proves_something(run):
    printed, _ = run
    for code, lines in zip(CELLS[1:], printed[1:], strict=True):
        words = re.findall(r"\b(?:True|False)\b", lines)
        assert words, f"it proves nothing:\n{code}"
        assert set(words) == {"True"}, code
    assert sum(lines.count("True") for lines in printed) > 35


def test_the_convolution_of_the_page_hides_nothing(run):
    _, scope = run
    a = scope["a"]
    assert isinstance(a, ConvGeometry)
    assert 1 < a.groups < a.C and a.OG > 1 and a.N > 1
    for sizes in (a.stride, a.dilation, a.padding, (a.H, a.W), (a.KH, a.KW), (a.OH, a.OW)):
        assert len(set(sizes)) == 2, sizes
    assert all(s != d for s, d in zip(a.stride, a.dilation, strict=True))
    assert a.leftover[0] and a.surplus == (1, 0)
    assert len(set(scope["g"].ravel().tolist())) > 4, "never ones"


def test_every_formula_is_followed_by_its_proof():
    blocks = re.findall(r"^```\{(math|code-cell)\}", TEXT, re.M)
    assert blocks.count("math") >= 11
    for kind, after in pairwise(blocks):
        assert kind == "code-cell" or after == "code-cell"
    assert blocks[-1] == "code-cell"


def test_every_section_names_what_the_package_has():
    sections = re.split(r"^## ", TEXT, flags=re.M)[1:]
    assert len(sections) >= 11
    for section in sections:
        assert re.search(r"\{(?:func|class|meth)\}`", section), section.splitlines()[0]
