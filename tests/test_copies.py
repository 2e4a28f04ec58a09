"""Copies of the book for elsewhere: the archive, the wheel, the published folder, Binder's pins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tools import archive, book, copies, wheel

ROOT = Path(__file__).resolve().parents[1]
PIN = re.compile(r"^([\w.-]+)==([\w.]+)", re.M)


@pytest.fixture
def site(tmp_path) -> Path:
    """A very small site."""
    site = tmp_path / "html"
    (site / "notebooks").mkdir(parents=True)
    for name in ("index.html", "notebooks/b.ipynb", "notebooks/a.ipynb", "notebooks/notebooks.zip"):
        (site / name).write_text(f"the file {name}", "utf-8")
    return site


# ---- archives -----------------------------------------------------------------------------------


def test_the_same_files_give_the_same_bytes(site, tmp_path):
    first = copies.pack_site(site, tmp_path / "one" / "book.zip").read_bytes()
    for number, path in enumerate(sorted(site.rglob("*"), reverse=True)):
        os.utime(path, (number * 10**8, number * 10**8))
    (site / "index.html").chmod(0o600)
    assert copies.pack_site(site, tmp_path / "two" / "book.zip").read_bytes() == first
    (site / "index.html").write_text("another", "utf-8")
    assert copies.pack_site(site, tmp_path / "two" / "book.zip").read_bytes() != first


def test_the_archive_of_the_site_says_how_it_is_opened(site, tmp_path):
    packed = copies.pack_site(site, tmp_path / "book-1.0.zip")
    with zipfile.ZipFile(packed) as found:
        assert found.namelist()[0] == "book-1.0/READ ME.txt"
        assert "book-1.0/site/index.html" in found.namelist()
        assert len(found.namelist()) == 5
        read_me = found.read("book-1.0/READ ME.txt").decode()
    assert "python3 -m http.server --directory site" in read_me and "site/index.html" in read_me


def test_an_archive_does_not_hold_itself(site):
    packed = archive.pack(site, site / "all.zip", "top")
    again = archive.pack(site, site / "all.zip", "top").read_bytes()
    assert packed.read_bytes() == again
    assert b"all.zip" not in again


# ---- the published notebooks --------------------------------------------------------------------


def test_the_published_folder_is_a_repository_of_its_own(site, tmp_path):
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "left.ipynb").touch()
    copies.write_notebooks(site, folder)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        *("a.ipynb", "b.ipynb", "LICENSE", "LICENSE-text"),
        *("binder/requirements.txt", "binder/runtime.txt", "binder/postBuild"),
    }
    assert os.access(folder / "binder" / "postBuild", os.X_OK)


def test_a_site_without_notebooks_is_told(tmp_path):
    with pytest.raises(book.BookError, match="no page of the book has cells"):
        copies.write_notebooks(tmp_path, tmp_path / "published")


@pytest.mark.slow
def test_a_wheel_is_built_once_and_always_the_same(tmp_path):
    pytest.importorskip("hatchling")
    first = wheel.build(tmp_path / "one")
    written = first.stat().st_mtime_ns
    assert wheel.build(tmp_path / "one") == first and first.stat().st_mtime_ns == written
    assert wheel.build(tmp_path / "two").read_bytes() == first.read_bytes()


def test_a_package_that_cannot_be_built_says_why(tmp_path):
    pytest.importorskip("hatchling")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", "utf-8")
    for name in wheel.SOURCES[1:]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(wheel.WheelError, match="version"):
        wheel.build(tmp_path / "wheel", tmp_path)


# ---- environments elsewhere ---------------------------------------------------------------------


def test_binder_installs_the_pins_of_the_project():
    ours = dict(PIN.findall((ROOT / "requirements.txt").read_text("utf-8")))
    lines = (ROOT / "binder" / "requirements.txt").read_text("utf-8")
    theirs = dict(PIN.findall(lines))
    assert {name: ours.get(name) for name in theirs} == theirs
    # every line that is no comment is such a pin
    assert len(theirs) == len([line for line in lines.splitlines() if line and line[0] != "#"])


def test_everywhere_the_same_python_is_meant():
    """Binder, the container for development, and the workflows."""
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    named = re.search(r'python-version: "([\d.]+)"', workflow)
    assert (ROOT / "binder" / "runtime.txt").read_text() == f"python-{named[1]}\n"
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert container["image"] == f"python:{named[1]}-bookworm"
    words = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^setup:", words, re.M) and container["postCreateCommand"] == "make setup"
    port = re.search(r"^PORT\s+\?= (\d+)", words, re.M)[1]
    assert int(port) in container["forwardPorts"]


def test_binders_last_step_is_a_script_that_a_shell_understands():
    script = ROOT / "binder" / "postBuild"
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", script], check=True)


@pytest.mark.parametrize("clone", [True, False])
def test_binders_last_step_installs_the_package_that_is_there(clone, tmp_path):
    """Played: a python that writes down what it is asked."""
    (tmp_path / "bin").mkdir()
    asked = tmp_path / "asked"
    player = tmp_path / "bin" / "python"
    player.write_text(f'#!/bin/sh\necho "$@" > {asked}\n')
    player.chmod(0o755)
    (tmp_path / ("pyproject.toml" if clone else "convgrad-1.0-py3-none-any.whl")).touch()
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    script = ROOT / "binder" / "postBuild"
    subprocess.run([script], cwd=tmp_path, env=environment, check=True)
    words = asked.read_text().split()
    assert words[:3] == ["-m", "pip", "install"]
    assert words[-1] == ("." if clone else "convgrad-1.0-py3-none-any.whl")
