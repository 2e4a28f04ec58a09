"""Python for the page: only the release's own files are taken, wherever they come from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tools import runtime
from tools.runtime import RuntimeMissing, Source, fetch, resolved

FILES = {"core.js": b"core", "a-1.whl": b"wheel a", "b-1.whl": b"wheel b"}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def release(monkeypatch):
    """A release of three files and a list; the package a needs b."""

    def entry(name: str, *depends: str) -> dict:
        file = f"{name}-1.whl"
        return {"file_name": file, "sha256": digest(FILES[file]), "depends": list(depends)}

    lock = {"info": {}, "packages": {"a": entry("a", "b"), "b": entry("b")}}
    files = {**FILES, runtime.LOCK: json.dumps(lock).encode()}
    core = {name: digest(files[name]) for name in (runtime.LOCK, "core.js")}
    monkeypatch.setattr(runtime, "CORE", core)
    monkeypatch.setattr(runtime, "EXTRA", {})
    return files


def source(files: dict[str, bytes], asked: list[str] | None = None, name: str = "a host") -> Source:
    def bring(wanted, folder: Path) -> None:
        for file in wanted:
            if asked is not None:
                asked.append(file)
            if file in files:
                (folder / file).write_bytes(files[file])

    return Source(name, lambda file: True, bring)


def quiet(line: str) -> None:
    pass


def test_files_come_once_and_stay(release, tmp_path):
    asked: list[str] = []
    found = fetch(["a"], cache=tmp_path, sources=[source(release, asked)], say=quiet)
    assert sorted(asked) == sorted(release)
    assert {name: (found.folder / name).read_bytes() for name in found.files} == release
    assert list(found.lock["packages"]) == ["a", "b"]
    again = fetch(["a"], cache=tmp_path, sources=[source(release, asked)], say=quiet)
    assert len(asked) == len(release) and again.files == found.files


def test_another_file_of_the_same_name_is_refused_and_the_next_source_asked(release, tmp_path):
    wrong = source({**release, "a-1.whl": b"not the wheel"}, name="a bad host")
    with pytest.raises(
        RuntimeMissing, match=r"a-1\.whl from a bad host was not the release's file"
    ):
        fetch(["a"], cache=tmp_path, sources=[wrong], say=quiet)
    assert not (tmp_path / runtime.VERSION / "a-1.whl").exists()
    asked: list[str] = []
    fetch(["a"], cache=tmp_path, sources=[wrong, source(release, asked)], say=quiet)
    assert asked == ["a-1.whl"]


def test_a_kept_file_that_was_spoilt_is_fetched_anew(release, tmp_path):
    found = fetch(["b"], cache=tmp_path, sources=[source(release)], say=quiet)
    (found.folder / "core.js").write_bytes(b"spoilt")
    with pytest.raises(RuntimeMissing, match=r"core\.js from \.cache/runtime was not"):
        fetch(["b"], cache=tmp_path, sources=[], say=quiet)
    fetch(["b"], cache=tmp_path, sources=[source(release)], say=quiet)
    assert (found.folder / "core.js").read_bytes() == b"core"


def test_where_nobody_has_them_it_says_what_was_tried_and_what_to_do(release, tmp_path):
    def unreachable(wanted, folder):
        raise OSError("no such host")

    sources = [Source("the release", lambda file: True, unreachable)]
    sources += [Source("never asked", lambda file: False, unreachable)]
    said: list[str] = []
    with pytest.raises(RuntimeMissing) as caught:
        fetch(["a"], cache=tmp_path, sources=sources, say=said.append)
    words = str(caught.value)
    assert "tried .cache/runtime, the release." in words and "Go online" in words
    assert str(tmp_path) in words and any("no such host" in line for line in said)
    assert not list((tmp_path / runtime.VERSION).iterdir()), "nothing half is left"


def test_what_a_package_needs_comes_along_and_an_unknown_one_is_named(release):
    lock = json.loads(release[runtime.LOCK])
    assert list(resolved(["a"], lock)) == ["a", "b"]
    assert list(resolved(["b"], lock)) == ["b"]
    with pytest.raises(KeyError, match="no package 'torch'"):
        resolved(["torch"], lock)


def test_links_hold_what_is_wanted_and_no_more(release, tmp_path):
    found = fetch(["a"], cache=tmp_path / "cache", sources=[source(release)], say=quiet)
    place = tmp_path / "site"
    place.mkdir()
    (place / "old.whl").write_bytes(b"")
    (place / "core.js").write_bytes(b"another")
    runtime.link(found, place)
    runtime.link(found, place)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == release


def test_the_pins_are_those_of_the_requirements():
    root = Path(runtime.ROOT)
    pins = (root / "requirements.txt").read_text() + (root / "constraints.txt").read_text()
    for each in runtime.EXTRA.values():
        assert f"{each['name']}=={each['version']}" in pins
        assert len(each["sha256"]) == 64 and each["version"] in each["file_name"]
