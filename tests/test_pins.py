"""requirements.in says what is needed and why; the pins are made of it and say nothing else."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tools import audit, pins

ROOT = Path(__file__).resolve().parent.parent
WANTED, PINS, BEHIND = (
    (ROOT / name).read_text("utf-8")
    for name in ("requirements.in", "requirements.txt", "constraints.txt")
)
NAMED = [line for line in pins.read(WANTED) if line.name]


def test_a_line_is_read_whatever_it_holds():
    text = '# head\n\nSphinx>=7.4,<8   # why\ntriton==3.7 ; sys_platform == "linux"\n-c other.txt\n'
    assert pins.read(text) == [
        ("", "", "", "head"),
        ("", "", "", ""),
        ("Sphinx", ">=7.4,<8", "", "why"),
        ("triton", "==3.7", 'sys_platform == "linux"', ""),
        ("", "", "", ""),
    ]
    assert pins.pinned(text.replace(">=7.4,<8", "==7.4.7")) == {"sphinx": "7.4.7", "triton": "3.7"}


def test_the_pins_are_those_that_requirements_in_asks_for():
    """What `make pins` would write with the versions that stand there now."""
    versions = pins.pinned(PINS, BEHIND)
    assert pins.direct(WANTED, versions) == PINS
    assert pins.behind(WANTED, versions, BEHIND) == BEHIND


@pytest.mark.parametrize("line", NAMED, ids=lambda line: line.name)
def test_every_pin_is_within_its_bounds_and_has_its_reason(line):
    specifiers = pytest.importorskip("packaging.specifiers")
    assert pins.pinned(PINS)[pins.plain(line.name)] in specifiers.SpecifierSet(line.bounds)
    assert line.bounds and line.comment
    reasons = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Why these")[1].lower()
    spoken = re.sub(r"jupyter-book", "jupyter-book 1", line.name.lower())
    assert spoken in reasons, f"{line.name} needs its row in CONTRIBUTING.md"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "requirements.in").write_text("# why\n\n# one\nA_b>=1  # is needed\nnew  # too\n")
    (tmp_path / "requirements.txt").write_text("-c constraints.txt\nA_b==1.0\n")
    (tmp_path / "constraints.txt").write_text("deep==2.0  # 3 needs more\nelsewhere==9\n")
    return tmp_path


def answering(monkeypatch, versions: dict[str, str], status: int = 0) -> list[str]:
    """pip as it would answer; the constraints that it was given are kept."""
    held: list[str] = []

    def run(command, **_):
        held.append(Path(command[-1]).read_text())
        install = [{"metadata": {"name": n, "version": v}} for n, v in versions.items()]
        return subprocess.CompletedProcess(command, status, json.dumps({"install": install}))

    monkeypatch.setattr(subprocess, "run", run)
    return held


def test_a_new_name_moves_nothing_else(tree, monkeypatch, capsys):
    found = {"A_b": "1.0", "new": "5.1+cpu", "deep": "2.0", "nvidia-cublas": "12"}
    held = answering(monkeypatch, found)
    assert pins.main([], tree) == 0
    assert held == ["a-b==1.0\ndeep==2.0\nelsewhere==9\n"]
    direct, behind = ((tree / name).read_text() for name in ("requirements.txt", "constraints.txt"))
    assert direct.endswith("\n\n# one\nA_b==1.0\nnew==5.1\n")  # no build of one machine
    assert behind.endswith("\ndeep==2.0  # 3 needs more\nelsewhere==9\n")
    assert "new → 5.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "held"),
    [
        (["--renew", "Deep"], "a-b==1.0\nelsewhere==9\n"),
        (["--renew", "all"], ""),
    ],
)
def test_what_is_renewed_is_not_held(tree, monkeypatch, words, held):
    asked = answering(monkeypatch, {"a-b": "1.2", "new": "5", "deep": "2.5"})
    assert pins.main(words, tree) == 0
    assert asked == [held]
    assert "deep==2.5" in (tree / "constraints.txt").read_text()


def test_what_does_not_go_together_changes_no_file(tree, monkeypatch, capsys):
    before = (tree / "requirements.txt").read_text()
    answering(monkeypatch, {}, status=1)
    assert pins.main([], tree) == 1
    assert "RENEW=all" in capsys.readouterr().err
    assert pins.main(["--renew", "depe"], tree) == 1
    assert "nothing named depe is pinned" in capsys.readouterr().err
    assert (tree / "requirements.txt").read_text() == before


# ---- known weaknesses ------------------------------------------------------------------------


def test_every_pin_is_asked_about(tmp_path):
    listed = audit.listing(tmp_path).read_text().splitlines()
    assert listed == sorted(f"{name}=={version}" for name, version in AUDITED.items())


AUDITED = pins.pinned(PINS, BEHIND, f"{audit.NODE_WHEEL}\n")


@pytest.mark.parametrize(("python", "node", "status"), [(0, 0, 0), (1, 0, 1), (0, 1, 1)])
def test_both_are_asked_and_either_can_fail(monkeypatch, tmp_path, capsys, python, node, status):
    asked = []

    def run(command, **_):
        asked.append(" ".join(map(str, command)))
        broken = python if "pip_audit" in asked[-1] else node if "npm audit" in asked[-1] else 0
        return subprocess.CompletedProcess(command, broken)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(audit, "CACHE", tmp_path)
    assert audit.main() == status
    assert any("pip_audit" in words and "--no-deps" in words for words in asked)
    assert any("npm audit" in words for words in asked)
    out = capsys.readouterr().out
    assert ("audit: no weakness is known" in out) == (status == 0)
