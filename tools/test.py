"""Everything that proves the project, in order: `python -m tools.test [--fast]`.

A stage that fails does not stop the others; the last lines say what ran, how long it took and how
many tests passed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tools import bubblewrap, chromium
from tools import node as nodes

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"

# What needs NumPy alone, and so must hold on the oldest NumPy that the package promises to take.
CORE_TESTS = [
    f"tests/test_{name}.py"
    for name in (
        "geometry",
        "examples",
        "laws",
        "cases",
        "errors",
        "api",
        "ledger",
        "tables",
        "memory",
        "mutants",
        "checks",
        "exercises",
        "cli",
    )
]
# One process keeps one core busy, and so does the book's build, which comes next: they share two.
BESIDE_THE_NEXT = {"oldest NumPy"}
# NumPy 2.0 has no wheels for Pythons that came after it; these have the oldest that does.
OLDEST_NUMPY = {(3, 13): "2.1.0", (3, 14): "2.3.2"}


class Count(NamedTuple):
    """How a stage's tests ended."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass
class Result:
    name: str
    ok: bool
    count: Count
    seconds: float


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.test", description="Run the tests.")
    parser.add_argument("--fast", action="store_true", help="without book and browser")
    options = parser.parse_args(arguments)

    # Two cores are the usual machine: xdist shares them, so each process keeps to one.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Every process of every stage would translate the tests anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("HYPOTHESIS_PROFILE", "fast" if options.fast else "ci")
    (CACHE / "junit").mkdir(parents=True, exist_ok=True)
    try:
        found = nodes.take()
        say(f"Node      {found.version}, {found.origin}: {found.node}")
        if not options.fast:
            browser = chromium.ensure()
            say(f"Chromium  {browser.version}, {browser.origin}: {browser.program}")
            say(f"Sandbox   {bubblewrap.ensure()}")
    except (nodes.NodeMissing, chromium.ChromiumMissing) as missing:
        print(f"test: {missing}", file=sys.stderr)
        return 2

    return report(run_all(stages(options.fast)))


Stage = Callable[[], tuple[bool, Count]]


def stages(fast: bool) -> list[tuple[str, Stage]]:
    """The stages by name, in the order in which they are run."""
    elsewhere = "not browser and not lab and not book"
    laws = f"{elsewhere} and not slow"
    quick = [
        ("JavaScript", javascript),
        ("bundles", lambda: plain("tools.node", "npm", "run", "--silent", "bundle:check")),
    ]
    if fast:
        return [
            *quick,
            ("package", lambda: pytest("package", "-n2", "-m", laws, "--ignore=tests/browser")),
        ]
    return [
        *quick,
        ("package", lambda: pytest("package", "-n2", "-m", elsewhere)),
        ("oldest NumPy", oldest_numpy),
        ("book", lambda: plain("tools.book")),
        ("pages", lambda: pytest("pages", "-n2", "-m", "browser or lab or book")),
    ]


def run_all(stages: list[tuple[str, Stage]]) -> list[Result]:
    """The results in the order of the stages; a stage of BESIDE_THE_NEXT runs beside the next."""
    running: list[Result | Future[Result]] = []
    with ThreadPoolExecutor(1) as beside:
        for name, stage in stages:
            if name in BESIDE_THE_NEXT:
                running.append(beside.submit(run, name, stage))
                continue
            running.append(run(name, stage))
            wait([each for each in running if isinstance(each, Future)])
    return [each.result() if isinstance(each, Future) else each for each in running]


def run(name: str, stage: Stage) -> Result:
    say(f"\n━━━ {name}")
    start = time.monotonic()
    ok, count = stage()
    return Result(name, ok, count, time.monotonic() - start)


def report(results: list[Result]) -> int:
    """A line a stage, then the sum in one line; the exit status."""
    say("")
    for result in results:
        verdict = "ok    " if result.ok else "FAILED"
        tests = f"{result.count.passed} passed" if sum(result.count) else ""
        if result.count.failed:
            tests += f", {result.count.failed} failed"
        if result.count.skipped:
            tests += f", {result.count.skipped} skipped"
        say(f"{verdict}  {result.name:<13} {result.seconds:6.1f} s  {tests}".rstrip())
    passed, failed, skipped = map(sum, zip(*(r.count for r in results), strict=True))
    # A stage without tests of its own (the book) that failed counts as one failure.
    failed += sum(not result.ok and not result.count.failed for result in results)
    say(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


def plain(module: str, *arguments: str) -> tuple[bool, Count]:
    """A step that either succeeds or does not."""
    words = [sys.executable, "-m", module, *arguments]
    return subprocess.run(words, cwd=ROOT, check=False).returncode == 0, Count()


def pytest(
    name: str, *arguments: str, python: list[str] | None = None, held: bool = False
) -> tuple[bool, Count]:
    """pytest with its own closing line; the counts come from its JUnit report.

    What it says is ``held`` until its end where another stage speaks meanwhile.
    """
    report = CACHE / "junit" / f"{name}.xml"
    report.unlink(missing_ok=True)
    words = [*(python or [sys.executable, "-m", "pytest"]), f"--junitxml={report}", *arguments]
    if held:
        done = subprocess.run(
            words, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        say(f"\n━━━ {name}, which ran meanwhile\n{done.stdout.decode(errors='replace')}")
        status = done.returncode
    else:
        status = subprocess.run(words, cwd=ROOT, check=False).returncode
    count = junit_count(report.read_text()) if report.is_file() else Count()
    return status == 0, count


def junit_count(report: str) -> Count:
    """The numbers of a JUnit report.  Errors (a fixture that broke) count as failures."""
    suites = ElementTree.fromstring(report).iter("testsuite")
    passed = failed = skipped = 0
    for suite in suites:
        number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        failed += number["failures"] + number["errors"]
        skipped += number["skipped"]
        passed += number["tests"] - number["failures"] - number["errors"] - number["skipped"]
    return Count(passed, failed, skipped)


def javascript() -> tuple[bool, Count]:
    """`npm test`, read while it speaks."""
    words = [sys.executable, "-m", "tools.node", "npm", "test", "--silent"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    count = node_count("".join(lines))
    return process.returncode == 0 and count.passed > 0, count


def node_count(said: str) -> Count:
    """The numbers that Node's test runner closes with, in either of its two ways of writing."""
    number = dict(re.findall(r"^(?:ℹ|#) (pass|fail|skipped) (\d+)$", said, flags=re.MULTILINE))
    return Count(*(int(number.get(key, 0)) for key in ("pass", "fail", "skipped")))


def oldest_numpy() -> tuple[bool, Count]:
    """The core tests on the oldest NumPy, in a Python that sees nothing else of .venv."""
    numpy = OLDEST_NUMPY.get(sys.version_info[:2], "2.0.2")
    wanted = [f"numpy=={numpy}", *(f"{name}=={version(name)}" for name in ("pytest", "hypothesis"))]
    place = CACHE / "oldest" / f"py{sys.version_info[0]}{sys.version_info[1]}-{'-'.join(wanted)}"
    if not place.is_dir():
        say(f"Installing NumPy {numpy} into .cache.")
        fresh = place.with_name("unfinished")
        shutil.rmtree(fresh, ignore_errors=True)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input"]
        install += ["--disable-pip-version-check", "--root-user-action=ignore"]
        install += ["--target", str(fresh), "--constraint", "constraints.txt", *wanted]
        if subprocess.run(install, cwd=ROOT, check=False).returncode != 0:
            say(f"test: pip could not bring NumPy {numpy} (its message stands above)")
            return False, Count()
        fresh.rename(place)
    # -S leaves .venv's packages out, -I the user's: what is not in `place` cannot be imported.
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import numpy, pytest; "
        "print('NumPy', numpy.__version__); sys.exit(pytest.main(sys.argv[1:]))"
    )
    python = [sys.executable, "-I", "-S", "-c", code, str(place)]
    chosen = ["-q", "-m", "not oracle and not slow", *CORE_TESTS]
    return pytest("oldest-numpy", *chosen, python=python, held=True)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
