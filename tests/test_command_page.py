"""The page on the command shows what the command says, and says the same as the README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow  # starts the command again and again
PAGE = (ROOT / "book" / "command.md").read_text("utf-8")

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S)


def blocks() -> list[tuple[str, str]]:
    """What stands behind each fence, and the lines in it without options."""
    found = []
    for fence in FENCE.finditer(PAGE):
        body = re.sub(r"\A(?:---\n.*?\n---\n|(?::[\w-]+:[^\n]*\n)+)", "", fence["body"], flags=re.S)
        found.append((fence["info"], body))
    return found


def versions() -> list[str]:
    """The three states of mine.py, in the order of the page."""
    files = [body.partition("\n") for _, body in blocks() if body.startswith("%%writefile")]
    assert {first for first, _, _ in files} == {"%%writefile mine.py"}
    return [source for _, _, source in files]


@pytest.fixture
def convgrad(tmp_path):
    """The command in a folder of its own: its exit status and all that it says, in one line."""

    def run(source: str, *words: str) -> tuple[int, str]:
        (tmp_path / "mine.py").write_text(source, "utf-8")
        done = subprocess.run(
            [sys.executable, "-B", "-m", "convgrad", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    return run


def test_what_is_run_is_what_is_shown():
    """Each block of shell lines stands before a hidden cell that runs the same lines."""
    parts = blocks()
    shown = [(body, parts[k + 1]) for k, (info, body) in enumerate(parts) if info == "sh"]
    run = [body for _, body in parts if body.startswith("shell(")]
    assert len(run) >= 8
    pairs = [(lines, cell[1]) for lines, cell in shown if cell[1].startswith("shell(")]
    for lines, cell in pairs:
        given: list[str] = []
        exec(cell, {"shell": given.append})  # the cell itself says what it runs
        assert given[0].strip() == lines.strip()
    assert [cell for _, cell in pairs] == run
    # measured on one machine and kept: the one command that no page runs
    (alone,) = [lines for lines, cell in shown if not cell[1].startswith("shell(")]
    assert "convgrad bench" in alone


def test_the_readme_has_the_same_function():
    section = (ROOT / "README.md").read_text("utf-8").partition("## Check your own backward")[2]
    assert section.partition("```python\n")[2].partition("```")[0] == versions()[0]


def test_the_answers_are_those_that_the_text_explains(convgrad):
    first, second, third = versions()
    status, words = convgrad(first, "check", "mine:grad_weight")
    assert status == 1
    assert "40 random convolutions" in words
    assert "Cause: stride and dilation not exchanged. It explains 3 of the" in words
    status, words = convgrad(second, "check", "mine:grad_weight")
    assert status == 1
    assert "Cause: missing crop" in words and "padding ignored (1)" in words
    status, words = convgrad(third, "check", "mine:grad_weight")
    assert status == 0
    assert "refused with NotImplementedError" in words and "Remark: " in words


def test_the_products_are_those_of_the_first_wrong_cell(convgrad):
    _, words = convgrad(versions()[0], "check", "mine:grad_weight")
    ledger = next(body for info, body in blocks() if info == "sh" and "ledger --target" in body)
    assert " ".join(ledger.replace("\\\n", " ").split()) in words


def test_every_exit_status_of_the_table_is_one_that_comes(convgrad):
    rows = re.findall(r"^\| (\d) \| ", PAGE, re.M)
    first, _, third = versions()
    met = [convgrad(third, "check", "mine:grad_weight")[0]]
    met.append(convgrad(first, "check", "mine:grad_weight")[0])
    met.append(convgrad(first, "check", "mine:nothing")[0])
    assert list(map(str, met)) == rows
