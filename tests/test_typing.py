"""What a type checker tells those who use the package: results have types, and typos show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad

pytest.importorskip("mypy", reason="make setup installs what checks the types")
pytestmark = pytest.mark.slow

OPENING = """
from typing import assert_type
import numpy as np
from convgrad import *
from convgrad import checks
Three = tuple[np.ndarray, np.ndarray, np.ndarray]
Each = np.ndarray | None
x, weight, bias, g = example("B").arrays()
geometry = example("B").geometry
"""

RIGHT = """
assert_type(conv2d(x, weight, bias), np.ndarray)
conv2d([[[[1, 2], [3, 4]]]], [[[[1.5]]]], stride=(1, 2), padding=((1, 0), (2, 1)))
conv2d(x, weight, padding="same", dilation=[1, 2], groups=1)
conv2d(x, weight, stride=np.int64(2))
assert_type(conv2d_backward(g, x, weight), Three)
assert_type(conv2d_backward(g, x, weight, output_mask=[True] * 3), tuple[Each, Each, Each])
assert_type(conv2d_backward(g, x, weight)[1].ndim, int)
assert_type(conv_transpose2d(g, weight), np.ndarray)
assert_type(conv_transpose2d_backward(x, g, weight), Three)
assert_type(double_backward(x, None, None, g, x, weight), Three)
assert_type(per_sample_weight_gradients(g, x, weight.shape), np.ndarray)
assert_type(ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3, stride=2).stride, tuple[int, int])
assert_type(ConvGeometry.of(x.shape, weight.shape, padding="same").OH, int)
assert_type(checks.explain_difference(g, g).right, bool)
"""

# what a checker must not let pass, and mypy's name for it
WRONG = {
    "conv2d_backward(g, x, weight, strid=2)": "call-overload",
    "conv2d_backward(g, x)": "call-overload",
    "conv2d_backward(g, x, None)": "call-overload",
    "conv2d_backward(g, x, weight, output_mask=[True] * 3)[1].shape": "union-attr",
    "conv2d(x, weight, padding=1.5)": "arg-type",
    "conv2d(x, weight, paddng=1)": "call-arg",
    "conv2d(x, weight, implementation=2)": "arg-type",
    "geometry.OHH": "attr-defined",
    "geometry.stride = (2, 2)": "misc",
    "ConvGeometry(C=1, H=5, W=5, O=1, KH=3)": "call-arg",
    'example("B").arays()': "attr-defined",
    "double_backward(x, None, g, x, weight)": "call-overload",
    "IMPLEMENTATIONS['loops'].backward": "attr-defined",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory) -> dict[str, str]:
    """What mypy says, strict, about a file of all these lines: line → name of the complaint."""
    folder = tmp_path_factory.mktemp("user")
    file = folder / "theirs.py"
    file.write_text("\n".join([OPENING, RIGHT, *WRONG]), encoding="utf-8")
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-pretty"]
    words += ["--follow-imports=silent", "--cache-dir=cache", file.name]
    environment = {**os.environ, "MYPYPATH": str(Path(convgrad.__file__).parents[1])}
    run = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert "Found" in run.stdout, run.stdout + run.stderr
    lines = file.read_text(encoding="utf-8").splitlines()
    found = re.findall(r"^theirs\.py:(\d+): error: .*\[([a-z-]+)\]$", run.stdout, re.MULTILINE)
    return {lines[int(number) - 1]: name for number, name in found}


def test_right_lines_are_right_for_the_checker(complaints):
    assert complaints.keys() - WRONG.keys() == set()


def test_right_lines_run():
    exec(OPENING + RIGHT, {})


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_is_complained_of(line, complaints):
    assert complaints.get(line) == WRONG[line]
