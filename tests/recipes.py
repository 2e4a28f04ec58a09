"""The complete examples of CONTRIBUTING.md, by the file that each would be."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"`([\w/.]+)`(?: it could be)?:\n\n(`{3,})\w+\n(.*?)^\2$", re.M | re.S)
EXAMPLES = {
    file: text for file, _, text in _BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
}


def module(file: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An example in Python, imported as if it lay where it says."""
    name = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    made = ModuleType(f"{name}_as_shown")
    made.__package__ = name.rpartition(".")[0]
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(compile(EXAMPLES[file], f"CONTRIBUTING.md: {file}", "exec"), made.__dict__)
    return made
