"""The benchmarks run, and what they kept can be read by anybody."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from convgrad import IMPLEMENTATIONS, ConvGeometry
from convgrad.im2col import column_numbers

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "rungs.json"


def test_the_rungs_are_measured_and_printed():
    before = KEPT.read_bytes()
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.rungs", "--layer", "tiny", "--rounds", "1"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    header, *rows = result.stdout.splitlines()
    assert header.split()[:3] == ["layer", "implementation", "forward"]
    printed = [row.replace("tiny", "").split() for row in rows]
    for name, row in zip(IMPLEMENTATIONS, printed, strict=False):
        assert row[0] == name
        assert all(float(figure) > 0 for figure in row[1:5])
    assert KEPT.read_bytes() == before  # one layer alone replaces nothing


def test_what_was_kept_names_the_machine_and_no_place_on_it():
    text = KEPT.read_text(encoding="utf-8")
    kept = json.loads(text)
    assert {"cpu", "cores", "threads", "system", "versions", "date"} == kept["machine"].keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["machine"]["date"])
    assert not re.search(r"/(home|root|tmp|usr|work)\b|[A-Z]:\\\\", text)


def test_every_layer_was_measured_with_every_rung_that_can_stand_it():
    layers = json.loads(KEPT.read_text(encoding="utf-8"))["layers"]
    assert len(layers) >= 8
    for name, layer in layers.items():
        geometry = ConvGeometry(**layer["geometry"])
        assert layer["column_numbers"] == column_numbers(geometry)
        measured = set(layer["implementations"]) - {"torch"}
        assert measured == set(IMPLEMENTATIONS) - (set() if name == "tiny" else {"loops"})
