"""What people install: the wheel is whole, runs with NumPy alone, and its extras are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_imports import LIBRARIES

import convgrad

ROOT = Path(__file__).parents[1]
SOURCES = Path(convgrad.__file__).parent

pytestmark = pytest.mark.slow


def run(*words: str | Path, status: int = 0, **options) -> str:
    """What a command writes, with its complaints behind."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=300, **options
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder with the wheel and the source archive."""
    pytest.importorskip("hatchling", reason="make setup installs what builds the wheel")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


def test_the_wheel_holds_every_file_of_the_package(wheel):
    assert wheel.name == f"convgrad-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kept = {
        f"convgrad/{path.relative_to(SOURCES).as_posix()}"
        for path in SOURCES.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # and what was measured, which the cells of the book read
    measured = {path.name for path in (ROOT / "benchmarks").glob("*.json")}
    kept |= {f"convgrad/bench/measured/{name}" for name in measured}
    assert measured and kept <= names
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


# ---- NumPy alone -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory) -> Path:
    """The programs of an environment in which pip found the wheel and NumPy, and nothing else.

    NumPy is lent from here, so that no index is asked.
    """
    folder = tmp_path_factory.mktemp("alone")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    programs = folder / "bin"
    said = run(programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    packages = Path(said.strip())
    numpy = metadata.distribution("numpy")
    for top in sorted({file.parts[0] for file in numpy.files or ()} - {".."}):
        (packages / top).symlink_to(numpy.locate_file(top))
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    pip += ["--no-index", "--disable-pip-version-check", "--root-user-action=ignore"]
    run(*pip, wheel)
    return programs


def test_the_environment_holds_nothing_else(alone):
    names = (
        "print(sorted(d.name for d in __import__('importlib.metadata').metadata.distributions()))"
    )
    assert run(alone / "python", "-c", names).strip() == "['convgrad', 'numpy']"


def test_the_installed_wheel_imports_and_runs_with_numpy_alone(alone, tmp_path):
    python = [alone / "python", "-W", "error"]
    place = run(*python, "-c", "import convgrad; print(convgrad.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(alone.parent)
    said = run(*python, "-m", "convgrad", "--version", cwd=tmp_path)
    assert said == f"convgrad {version()}\n"
    check = ("check", "convgrad.im2col:grad_weight", "--count", "3")
    assert "right on all 3 convolutions." in run(alone / "convgrad", *check, cwd=tmp_path)
    read = "from convgrad.bench import kept; print(*kept('layers')['layers'], sep='\\n')"
    assert "3×3, 64 @56" in run(*python, "-c", read, cwd=tmp_path).splitlines()
    said = run(alone / "convgrad", "ledger", "--example", "B", cwd=tmp_path)
    assert said.startswith("Example B, Five by five")


IMPORT_ALL = """
import importlib, pkgutil, convgrad
for module in pkgutil.walk_packages(convgrad.__path__, "convgrad.", onerror=lambda name: None):
    if module.name == "convgrad.__main__":
        continue
    try:
        importlib.import_module(module.name)
        print(module.name, "imported", sep="\\t")
    except ModuleNotFoundError as missing:
        print(module.name, missing, sep="\\t")
"""


def test_a_part_that_needs_more_names_its_extra(alone, facts):
    """Every module is imported where NumPy is alone; what cannot be says what to install."""
    lines = run(alone / "python", "-c", IMPORT_ALL).splitlines()
    said = dict(line.split("\t") for line in lines)
    refused = {name: words for name, words in said.items() if words != "imported"}
    assert {"convgrad.api", "convgrad.checks.laws", "convgrad.exercises"} <= said.keys()
    assert {"convgrad.figures", "convgrad.widgets.predict"} <= refused.keys()
    assert not refused.keys() & {"convgrad.api", "convgrad.checks.laws", "convgrad.exercises"}
    for name, words in refused.items():
        sentence = re.fullmatch(
            r'(\S+) needs (\w+), which is not installed: pip install "convgrad\[(\w+)\]"', words
        )
        assert sentence, f"{name}: {words}"
        part, library, extra = sentence.groups()
        assert name.startswith(part)
        assert canonicalize_name(distribution_of(library)) in brought(extra, facts)


def test_the_command_names_the_extra_that_brings_torch(alone, tmp_path):
    words = ["check", "convgrad.im2col:grad_weight", "--tensors", "torch"]
    said = run(alone / "convgrad", *words, status=2, cwd=tmp_path)
    assert said.endswith(
        'PyTorch, which this Python does not have: pip install "convgrad[torch]"\n'
    )
    said = run(alone / "convgrad", "bench", "--layer", "tiny", "--rounds", "1", cwd=tmp_path)
    assert 'pip install "convgrad[torch]" brings it.' in said


def test_a_type_checker_reads_the_types_of_the_installed_wheel(alone, tmp_path):
    pytest.importorskip("mypy", reason="make setup installs what checks the types")
    (tmp_path / "theirs.py").write_text("import convgrad\nconvgrad.example('B').arays()\n")
    words = ["--python-executable", alone / "python", "--config-file=", "--cache-dir=cache"]
    said = run(sys.executable, "-m", "mypy", *words, "theirs.py", status=1, cwd=tmp_path)
    assert '"Example" has no attribute "arays"; maybe "arrays"?' in said
    assert "Found 1 error in 1 file" in said


# ---- the extras ------------------------------------------------------------------------------

EXTRAS = {"torch", "figures", "widgets", "fast", "gpu", "book", "classroom", "all"}


@pytest.fixture(scope="module")
def facts(wheel) -> Message:
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def requirements(extra: str, facts: Message) -> list[Requirement]:
    """What an extra asks for, extras of its own followed up."""
    found = []
    for line in facts.get_all("Requires-Dist"):
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or not marker.evaluate({"extra": extra, "sys_platform": "linux"}):
            continue
        if requirement.name == "convgrad":
            for other in sorted(requirement.extras):
                found += requirements(other, facts)
        elif not marker.evaluate({"extra": "", "sys_platform": "linux"}):
            found.append(requirement)
    return found


def brought(extra: str, facts: Message) -> set[str]:
    """The names of all that comes with an extra: what it asks for, and what those ask for."""
    names: set[str] = set()
    ahead = [canonicalize_name(each.name) for each in requirements(extra, facts)]
    while ahead:
        name = ahead.pop()
        if name in names:
            continue
        names.add(name)
        try:
            further = map(Requirement, metadata.requires(name) or ())
        except metadata.PackageNotFoundError:  # not among what this project installs
            continue
        ahead += [
            canonicalize_name(each.name)
            for each in further
            if each.marker is None or each.marker.evaluate({"extra": ""})
        ]
    return names


def distribution_of(library: str) -> str:
    """The package that brings what is imported as ``library``."""
    return metadata.packages_distributions().get(library, [library])[0]


def pins() -> dict[str, str]:
    """The versions that the project is tried with."""
    text = "".join((ROOT / name).read_text() for name in ("requirements.txt", "constraints.txt"))
    found = re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def test_the_wheel_needs_numpy_and_offers_the_extras(facts):
    assert set(facts.get_all("Provides-Extra")) == EXTRAS
    needed = [Requirement(line) for line in facts.get_all("Requires-Dist")]
    assert [each.name for each in needed if each.marker is None] == ["numpy"]
    everything = {each.name for each in requirements("all", facts)}
    for extra in EXTRAS:
        names = {each.name for each in requirements(extra, facts)}
        assert names, extra
        assert names <= everything


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_admits_the_versions_that_are_tested(extra, facts):
    tested = pins()
    for requirement in requirements(extra, facts):
        pinned = tested.get(canonicalize_name(requirement.name))
        if pinned is None:
            assert extra in ("gpu", "all"), f"{requirement} of {extra} is not tried"
        else:
            assert requirement.specifier.contains(pinned), f"{requirement}, tested is {pinned}"


@pytest.mark.parametrize(
    ("part", "extra"), [("figures", "figures"), ("widgets", "widgets"), ("bench", "torch")]
)
def test_an_extra_brings_what_its_part_imports(part, extra, facts):
    names = brought(extra, facts)
    for library in LIBRARIES[part]:
        assert canonicalize_name(distribution_of(library)) in names


def test_the_extras_bring_what_they_say(facts):
    assert {"triton", "torch"} == {each.name for each in requirements("gpu", facts)}
    assert "nbgrader" in {each.name for each in requirements("classroom", facts)}
    assert {"jupytext", "ipython", "psutil"} <= brought("classroom", facts)
    building = brought("book", facts)
    assert {"jupyter-book", "sphinx", "myst-nb", "ipykernel", "anywidget", "torch"} <= building
    assert "nbgrader" not in building


def version() -> str:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith("version = "))
    return line.partition('"')[2].rstrip('"')
