"""A whole class, from handing out to the report, whatever it hands in.

One course for all tests: three dozen submissions, right, wrong, broken and hostile, are graded by
an interrupted run and one that goes on.  Where this machine allows no sandbox, the program has to
say so, and the kinds that need one are left out.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")
import simulated_class as simulated

from convgrad.classroom import Limits, NoSandbox, feedback, grade, report, sandbox
from convgrad.classroom.course import Course
from convgrad.classroom.grading import read_rows
from convgrad.classroom.nbgrading import opened
from convgrad.classroom.workers import Worker

pytestmark = pytest.mark.slow

SANDBOX, WHY_NOT = sandbox.find_sandbox()
LIMITS = Limits(cell_seconds=8, seconds=120)
KINDS = [kind for kind in simulated.KINDS if SANDBOX or not kind.sandboxed]
NAMED_LIKE_A_FORMULA = "=HYPERLINK(0)"
CANARIES = ("bittern", "dunlin", "curlew")


class Listener:
    """A server on this machine that counts who calls."""

    def __enter__(self):
        heard = self.heard = []

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                heard.append(self.request.recv(1000))

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    @property
    def port(self):
        return self.server.server_address[1]

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Interrupted(Exception):
    pass


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The course after both runs, with what the first had done and whom the network has heard."""
    root, released = simulated.course_of(tmp_path_factory.mktemp("course") / "winter")
    with Listener() as listener:
        for kind in KINDS:
            simulated.hand_in(kind, released, root, kind.name, listener.port)
        simulated.hand_in(KINDS[0], released, root, NAMED_LIKE_A_FORMULA)
        (root / "submitted" / "absent").mkdir()

        def stop_early(done, of, what):
            if done == 8:
                raise Interrupted

        settings = {"workers": 2, "limits": LIMITS, "unsafe": SANDBOX is None}
        with pytest.raises(Interrupted):
            grade(root, progress=stop_early, **settings)
        before = {row.student for row in read_rows(root) if row.status != "not graded yet"}
        seen = []
        rows = grade(root, progress=lambda done, of, what: seen.append(what), **settings)
    return {
        "root": root,
        "rows": {row.student: row for row in rows},
        "before": before - {"absent"},
        "after": seen,
        "heard": listener.heard,
        "settings": settings,
        "released": released,
    }


# ---- grading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_submission_gets_what_it_deserves(graded, kind):
    row = graded["rows"][kind.name]
    assert (row.points, row.status) == (kind.points, kind.status), row
    assert row.of == simulated.OF
    assert kind.reason in row.reason
    assert not kind.flag or any(kind.flag in flag for flag in row.flags), row.flags
    assert not kind.note or any(kind.note in note for note in row.notes), row.notes


def test_an_honest_notebook_is_not_flagged(graded):
    for name in ("right", "turned", "deleted-test", "untouched", "bare"):
        assert graded["rows"][name].flags == ()


def test_the_first_run_was_interrupted_and_the_second_went_on(graded):
    assert len(graded["before"]) >= 8
    assert len(graded["after"]) == len(KINDS) + 1 - len(graded["before"])
    for name in graded["before"]:
        assert not [line for line in graded["after"] if line.startswith(f"{name} ")]


def test_the_table_has_a_row_for_everybody(graded):
    rows = list(csv.DictReader((graded["root"] / "grades.csv").read_text("utf-8").splitlines()))
    students = [row["student"] for row in rows]
    assert sorted(students) == sorted(
        [*(kind.name for kind in KINDS), "absent", f"'{NAMED_LIKE_A_FORMULA}"]
    )
    by_name = {row["student"]: row for row in rows}
    assert by_name["right"]["points"] == "5" and by_name["right"]["of"] == "7"
    assert by_name["right"]["to_grade_by_hand"] == "1"
    assert by_name["absent"]["status"] == "nothing handed in"
    assert "is none for a learner" in by_name[f"'{NAMED_LIKE_A_FORMULA}"]["reason"]
    assert not re.search(r"(^|[,\"])[=+@-]", (graded["root"] / "grades.csv").read_text(), re.M)


def test_the_gradebook_is_nbgraders_and_says_the_same(graded):
    with opened(graded["root"] / "gradebook.db") as book:
        for kind in KINDS:
            if kind.status == "graded":
                submission = book.find_submission(simulated.ASSIGNMENT, kind.name)
                assert submission.score == kind.points
        grades = [
            g
            for s in book.students
            for sub in s.submissions
            for n in sub.notebooks
            for g in n.grades
        ]
        assert all(grade.manual_score is None for grade in grades)  # nobody gave themselves 396


@pytest.mark.skipif(SANDBOX is None, reason=WHY_NOT)
def test_nothing_gets_out_of_the_sandbox(graded):
    assert graded["heard"] == []
    peeked = graded["root"] / "autograded" / "peeks" / "pixels" / "pixels.ipynb"
    outputs = str(
        [c["outputs"] for c in json.loads(peeked.read_text())["cells"] if c["cell_type"] == "code"]
    )
    assert "No such file or directory" in outputs
    assert not [word for word in CANARIES if word in outputs]
    assert "all of you get 396" not in (graded["root"] / "grades.csv").read_text()


def test_without_a_sandbox_the_same_notebook_calls_home(graded, tmp_path):
    """The proof that the test above can fail; and --unsafe, which this is, works."""
    root = tmp_path / "open"
    shutil.copytree(graded["root"] / "source", root / "source")
    (kind,) = [kind for kind in simulated.KINDS if kind.name == "calls-home"]
    with Listener() as listener:
        simulated.hand_in(kind, graded["released"], root, "ada", listener.port)
        (row,) = grade(root, limits=LIMITS, unsafe=True)
    assert row.points == 5
    assert b"i-was-here" in b"".join(listener.heard)


def test_where_there_is_no_sandbox_the_program_says_so(monkeypatch, tmp_path):
    (tmp_path / "submitted").mkdir()
    if SANDBOX:
        sandbox.find_sandbox.cache_clear()
        monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    try:
        with pytest.raises(NoSandbox, match=r"submissions would run as .* say --unsafe"):
            grade(tmp_path)
    finally:
        sandbox.find_sandbox.cache_clear()


def test_nothing_is_left_running(graded):
    import psutil

    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        assert not ("cage.py" in words and str(graded["root"]) in words)


def test_what_has_not_changed_is_not_graded_again(graded):
    calls = []
    rows = grade(graded["root"], progress=lambda *a: calls.append(a), **graded["settings"])
    assert calls == []
    assert len(rows) == len(graded["rows"])


def test_points_given_by_hand_count_and_stay(graded):
    root = graded["root"]
    with opened(root / "gradebook.db") as book:
        given = book.find_grade("why", simulated.ASSIGNMENT, simulated.ASSIGNMENT, "right")
        given.manual_score, given.needs_manual_grade = 1.5, False
        book.db.commit()
    try:
        row = next(row for row in read_rows(root) if row.student == "right")
        assert (row.points, row.to_grade_by_hand) == (6.5, 0)
        simulated.hand_in(KINDS[1], graded["released"], root, "right")  # another answer comes
        rows = grade(root, **graded["settings"])
        row = next(row for row in rows if row.student == "right")
        assert (row.points, row.to_grade_by_hand) == (
            3.5,
            1,
        )  # and the sentence is to be seen again
    finally:
        simulated.hand_in(KINDS[0], graded["released"], root, "right")


def test_a_grading_process_that_is_killed_costs_a_second_try(graded):
    import psutil

    from convgrad.classroom import grading

    course = Course.at(graded["root"])
    handed = next(
        each for each in course.handed([simulated.ASSIGNMENT]) if each.learner == "zipped"
    )
    blank = course.state / "blanks" / simulated.ASSIGNMENT
    task = grading._task(course, handed, blank, LIMITS, SANDBOX)
    worker = Worker()
    killed = []

    def kill():
        """As soon as it has started a kernel: then the submission is being graded."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if worker.pid is not None and psutil.Process(worker.pid).children():
                break
            time.sleep(0.01)
        killed.append(worker.pid)
        os.kill(worker.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        result = worker.grade(task)
    finally:
        thread.join()
        worker.close()
    assert killed and worker.pid != killed[0]
    assert result["status"] == "graded"
    assert sum(cell.get("points") or 0 for cell in result["cells"]) == 5


# ---- feedback and report ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(graded):
    """Feedback for a few; the others' graded notebooks are put aside meanwhile."""
    root = graded["root"]
    few = {"right", "turned", "wrong-count", "peeks", "hooked", "stubborn"}
    aside = root / "aside"
    aside.mkdir()
    for folder in list((root / "autograded").iterdir()):
        if folder.name not in few:
            shutil.move(folder, aside / folder.name)
    try:
        feedback(root)
        texts = {path.parts[-3]: path.read_text() for path in root.glob("feedback/*/*/*.html")}
        (shown,) = [p for p in feedback(root, hidden_tests=True) if p.parts[-3] == "turned"]
        texts["with hidden tests"] = shown.read_text()
    finally:
        for folder in list(aside.iterdir()):
            shutil.move(folder, root / "autograded" / folder.name)
    return texts


def test_feedback_says_what_was_wrong_and_keeps_the_hidden_tests(pages):
    assert "There are 2 images, and their shares" in pages["wrong-count"]
    assert "AssertionError in a test that is not shown." in pages["turned"]
    for name, text in pages.items():
        if name != "with hidden tests":
            assert not [word for word in CANARIES if word in text], name
            assert "start + 100" not in text, name
    assert "curlew" in pages["with hidden tests"]


def test_feedback_asks_the_net_for_nothing(pages):
    for name, text in pages.items():
        assert "<script" not in text and "<link" not in text, name
        assert "default-src 'none'" in text, name
        assert not re.search(r"""(src|srcset|data)=["']?(https?:|//)""", text), name


def test_the_report_names_mistakes_and_runs_no_script(graded):
    text = report(graded["root"]).read_text(encoding="utf-8")
    assert "That is one image&#x27;s share." in text
    assert "Left as it was handed out." in text
    assert "the kernel died" in text
    assert "uses convgrad.conv2d_backward, which the reference answer does not" in text
    assert "<script" not in text and "http://" not in text and "https://" not in text
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text
    assert f"{len(KINDS) + 1} of {len(KINDS) + 2} handed in" in text


# ---- the command -----------------------------------------------------------------------------


def command(*words, **environment):
    package = str(Path(sandbox.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-m", "convgrad", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": package, **environment},
    )


def test_the_command_hands_out_grades_and_reports(tmp_path):
    root = tmp_path / "course"
    (root / "source").mkdir(parents=True)
    shutil.copy(simulated.SOURCES / "pixels.md", root / "source")
    handout = tmp_path / "handout"
    assert command("release", root / "source", "--to", handout).returncode == 0
    assert [path.name for path in handout.rglob("*") if path.is_file()] == ["pixels.ipynb"]
    released = simulated.read(handout / "pixels" / "pixels.ipynb")
    by_name = {kind.name: kind for kind in KINDS}
    for name in ("right", "truncated"):
        simulated.hand_in(by_name[name], released, root, name)
    said = command("grade", root, *([] if SANDBOX else ["--unsafe"]))
    assert said.returncode == 1, said.stderr
    assert "2 submissions, 1 not graded as usual" in " ".join(said.stdout.split())
    assert "truncated pixels: not graded, it is no notebook" in " ".join(said.stdout.split())
    assert "2/2" in said.stderr
    assert command("report", root).returncode == 0
    assert (root / "report.html").is_file()
