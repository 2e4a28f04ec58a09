"""What people install: the built wheel holds everything, and runs with NumPy alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import convgrad

ROOT = Path(__file__).parents[1]
SOURCES = Path(convgrad.__file__).parent

pytestmark = pytest.mark.slow


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(words, capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder with the wheel and the source archive."""
    pytest.importorskip("hatchling", reason="make setup installs what builds the wheel")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", str(folder), cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--disable-pip-version-check", "--root-user-action=ignore"]
    run(*pip, "--target", str(folder), str(next(built.glob("*.whl"))))
    return folder


def test_the_wheel_holds_every_file_of_the_package(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"convgrad-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kept = {
        f"convgrad/{path.relative_to(SOURCES).as_posix()}"
        for path in SOURCES.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert kept <= names
    assert {name for name in names if name.startswith("convgrad/")} == kept
    for needed in ("palette.json", "py.typed", "widgets/static/loader.js", "__main__.py"):
        assert f"convgrad/{needed}" in names


def test_the_source_archive_holds_what_builds_it_and_nothing_built(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= names
    assert {"src/convgrad/palette.json", "src/convgrad/widgets/static/predict.js"} <= names
    assert not [name for name in names if name.startswith(("_build", ".cache", ".venv", "dist"))]


ALONE = """
import sys

class OnlyNumPy:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"numpy", "convgrad"}:
            raise ModuleNotFoundError(f"this Python has no {name}", name=name)

sys.meta_path.insert(0, OnlyNumPy())
import convgrad
print(convgrad.__file__)
from convgrad import checks, exercises, ledger, mutants
from convgrad.__main__ import main
sys.exit(main(["check", "convgrad.im2col:grad_weight", "--count", "3"]))
"""


def test_the_installed_wheel_runs_with_numpy_alone(installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    result = run(sys.executable, "-W", "error", "-c", ALONE, cwd=tmp_path, env=environment)
    place, *words = result.stdout.splitlines()
    assert Path(place).is_relative_to(installed)
    assert "grad_weight: right on all 3 convolutions." in words


def test_the_command_is_installed(installed, tmp_path):
    command = next((installed / "bin").glob("convgrad*"))
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    result = run(str(command), "ledger", "--example", "B", cwd=tmp_path, env=environment)
    assert "81 products" not in result.stdout  # fifty rows are shown
    assert result.stdout.startswith("Example B, Five by five")


def version() -> str:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith("version = "))
    return line.partition('"')[2].rstrip('"')
