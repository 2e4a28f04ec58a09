"""The parts of the classroom, each by itself: markers, sources, restoring, looking, naming."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest

from convgrad.classroom import Limits, findings, sources, watch
from convgrad.classroom.course import Course, CourseError, Handed, Refused
from convgrad.classroom.markers import Line, MarkerError, regions
from convgrad.classroom.offline import alone
from convgrad.classroom.sources import SourceError, definitions

pytest.importorskip("nbgrader")
import nbformat
import simulated_class as simulated

from convgrad.classroom import Leak, release
from convgrad.classroom.execute import Settle
from convgrad.classroom.gradebook import defused, write_csv
from convgrad.classroom.releasing import look_for_leaks
from convgrad.classroom.restore import restore
from convgrad.classroom.showing import page
from convgrad.classroom.suspicion import suspicions

ROOT = Path(__file__).parents[1]
SOURCE = simulated.SOURCES / "pixels.md"


# ---- markers and sources ---------------------------------------------------------------------


def lines(text):
    return [Line(each, f"line {k}", True) for k, each in enumerate(text.split("\n"), 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("### BEGIN HIDDEN TEST\n", "line 1: `### BEGIN HIDDEN TEST` looks like a marker"),
        ("x\n### BEGIN SOLUTIONS", "line 2: .* looks like a marker"),
        ("### begin solution", "looks like a marker"),
        ("## BEGIN SOLUTION", "looks like a marker"),
        ("### BEGIN HIDDEN-TESTS", "looks like a marker"),
        ("# END SOLUTION", "looks like a marker"),
        ("### BEGIN ANSWER", "looks like a marker"),
        ("### BEGIN SOLUTION\n# canary: a", "line 1: ### BEGIN SOLUTION has no ### END SOLUTION"),
        ("### END SOLUTION", "no region is open"),
        ("### BEGIN SOLUTION\n### END MARK SCHEME", "### END SOLUTION is awaited"),
        ("### BEGIN SOLUTION\n### BEGIN HIDDEN TESTS", "inside the region that begins in line 1"),
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "line 1: this solution holds no canary"),
    ],
)
def test_a_marker_that_would_hide_nothing_is_refused(text, said):
    with pytest.raises(MarkerError, match=said):
        regions(lines(text))


def test_prose_may_speak_of_beginnings():
    text = "# Begin with the sizes\nwhere windows begin and end\nbeginning of tests"
    assert regions(Line(each, "", False) for each in text.split("\n")) == []


@pytest.fixture
def source_text():
    return SOURCE.read_text(encoding="utf-8")


def released(text, folder, name="pixels"):
    (folder / "source").mkdir(exist_ok=True)
    (folder / "source" / f"{name}.md").write_text(text, encoding="utf-8")
    return release(folder / "source", to=folder / "out")


def test_release_hides_what_is_to_be_hidden_and_writes_nothing_else(tmp_path, source_text):
    (path,) = released(source_text, tmp_path)
    assert path == tmp_path / "out" / "pixels" / "pixels.ipynb"
    assert [each for each in (tmp_path / "out").rglob("*") if each.is_file()] == [path]
    text = path.read_text(encoding="utf-8")
    assert not re.search("canary|BEGIN|bittern|dunlin|curlew|start \\+ 100|their shares add", text)
    assert text.count("raise NotImplementedError()") == 2
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    again = path.read_bytes()
    released(source_text, tmp_path)
    assert path.read_bytes() == again  # the same source, the same bytes


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("### END HIDDEN TESTS", "### END HIDDEN TEST", r"pixels.md, line \d+: `### END HIDDEN TE"),
        ("  # canary: dunlin", "", "this solution holds no canary"),
        ("grade_id: gradient", "grade_id: setup", "the grade_id setup was used before"),
        ("grade_id: gradient", "grade_id: a b", "its grade_id is 'a b'"),
        (".require(products)", ".check(products)", "test test-count: a check says what is wrong"),
        ("grade: true", "grade: false", "no cell of it is graded"),
    ],
)
def test_a_source_that_is_wrong_is_refused_before_anything_is_written(
    tmp_path, source_text, old, new, said
):
    text = source_text.replace(old, new)
    if "graded" in said:
        text = text.replace('"grade": true', '"grade": false')
    with pytest.raises(SourceError, match=said):
        released(text, tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_no_folders_is_refused(tmp_path, source_text):
    with pytest.raises(SourceError, match="rename the file"):
        released(source_text, tmp_path, "part one")


def test_a_leak_is_found(tmp_path):
    source = sources.read_source(SOURCE)
    (path,) = release(simulated.SOURCES, to=tmp_path)
    notebook = nbformat.read(path, as_version=4)
    look_for_leaks(source, notebook, path.read_text())
    with pytest.raises(Leak, match="holds the canary: heron"):
        look_for_leaks(source, notebook, path.read_text() + "# canary: heron")
    notebook.cells[0].source += "\n    gradient = np.empty(kernel_size)"
    with pytest.raises(Leak, match=r"cell 1 .* `gradient = np.empty"):
        look_for_leaks(source, notebook, "")


def test_what_locked_cells_define():
    text = "import numpy as np\nfrom a import b\nx = 1\ndef f():\n    return x\nclass C: pass"
    assert definitions(text, frozenset({"C"})).splitlines()[:2] == text.splitlines()[:2]
    assert "class" not in definitions(text, frozenset({"C"}))
    assert definitions("%matplotlib inline") == ""


# ---- a notebook is put right -----------------------------------------------------------------


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    (path,) = release(simulated.SOURCES, to=tmp_path_factory.mktemp("handout"))
    return nbformat.read(path, as_version=4)


def answered(handed_out):
    return nbformat.from_dict(simulated.answered(handed_out))


def test_a_notebook_as_it_should_be_is_left_alone(handed_out):
    notebook = answered(handed_out)
    before = [cell.source for cell in notebook.cells]
    assert restore(notebook, handed_out) == []
    assert [cell.source for cell in notebook.cells] == before


@pytest.mark.parametrize("missing", range(7))
def test_every_cell_comes_back_in_its_place(handed_out, missing):
    notebook = answered(handed_out)
    names = [simulated.name_of(c) for c in notebook.cells if simulated.name_of(c)]
    notebook.cells = [c for c in notebook.cells if simulated.name_of(c) != names[missing]]
    assert restore(notebook, handed_out) == [f"cell {names[missing]} was missing, and put back"]
    assert [simulated.name_of(c) for c in notebook.cells if simulated.name_of(c)] == names


def test_what_a_learner_puts_in_place_of_cells_comes_before_the_tests(handed_out):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("mine = 1")])
    restore(notebook, handed_out)
    names = [simulated.name_of(c) or c.source for c in notebook.cells]
    mine = names.index("mine = 1")
    assert {"setup", "count", "gradient"} <= set(names[:mine])
    assert {"test-count", "test-shape", "test-gradient"} <= set(names[mine:])


def test_a_learners_metadata_says_nothing(handed_out):
    notebook = answered(handed_out)
    simulated.cell(notebook, "test-count").metadata.nbgrader.points = 100
    extra = copy.deepcopy(simulated.cell(notebook, "test-count"))
    extra.metadata.nbgrader.grade_id = "extra"
    extra.source = "pass"
    notebook.cells.append(extra)
    restore(notebook, handed_out)
    assert simulated.cell(notebook, "test-count").metadata.nbgrader.points == 1
    assert "nbgrader" not in notebook.cells[-1].metadata


def test_the_learners_seed_is_theirs(handed_out):
    notebook = answered(handed_out)
    notebook.cells[1].source = "seed = 'somebody else'"
    restore(notebook, handed_out, "ada")
    assert notebook.cells[1].source == "seed = 'ada'"


# ---- what outputs are worth ------------------------------------------------------------------


def settled(source, *outputs):
    meta = {"grade": True, "grade_id": "t", "points": 3, "solution": False, "locked": True}
    cell = nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata={"nbgrader": meta})
    Settle().preprocess_cell(cell, {}, 0)
    return [each.output_type for each in cell.outputs]


def shown(value):
    return nbformat.v4.new_output("execute_result", {"text/plain": value}, execution_count=1)


def test_an_answer_cannot_show_itself_points():
    error = nbformat.v4.new_output("error", ename="AssertionError", evalue="", traceback=[])
    assert settled("assert f() == 1", shown("3.0"), error) == ["error"]
    assert settled("assert f() == 1", shown("3.0")) == []
    assert settled("points(f)", shown("3.0"), shown("1.5")) == ["execute_result"]
    assert settled("points(f)", shown("99")) == []


def test_a_warning_is_no_mistake():
    warning = nbformat.v4.new_output("stream", name="stderr", text="RuntimeWarning")
    meta = {"grade": True, "grade_id": "t", "points": 3}
    cell = nbformat.v4.new_code_cell("f()", outputs=[warning], metadata={"nbgrader": meta})
    Settle().preprocess_cell(cell, {}, 0)
    assert cell.outputs[0].name == "stdout"


def test_scripts_of_a_learner_do_not_reach_the_teachers_browser():
    data = {"text/html": "<script>", "application/javascript": "alert()", "text/plain": "plain"}
    cell = nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("display_data", data)])
    Settle().preprocess_cell(cell, {}, 0)
    assert cell.outputs[0].data == {"text/plain": "plain"}


@pytest.mark.parametrize(
    ("written", "stands"),
    [
        ("so $a_i$ is", "<msub><mi>a</mi><mi>i</mi></msub>"),
        ("$$\\sum y \\cdot \\text{grad\\_weight}$$", 'display="block"'),
        ("$\\text{grad\\_weight}$", "<mtext>grad_weight</mtext>"),
        (r"\begin{equation}x\end{equation}", "<mi>x</mi>"),
        ("it cost 3$ and 4 more", "it cost 3$ and 4 more"),
        ("<code>$x$</code>", "<code>$x$</code>"),
        ("$\\frac{$", "$\\frac{$"),
        ("$" + "{" * 3000 + "$", "{{{"),
        ("$\\text{&lt;script&gt;alert()&lt;/script&gt;}$", "&lt;script&gt;"),
        ("$\\href{javascript:alert()}{x}$", "<mi>x</mi>"),
    ],
)
def test_formulas_of_a_feedback_page_are_drawn_or_stay(written, stands):
    page = f'<html><head><script src="//x"></script></head><div class="text_cell_render">{written}'
    made = alone(page + "</div></html>")
    assert stands in made
    assert "<script" not in made and "javascript:" not in made


# ---- the watch -------------------------------------------------------------------------------


@pytest.fixture
def watched(monkeypatch):
    """The watch without a kernel, in names of its own."""
    watch.start(["convgrad.exercises"])
    names: dict = {}
    watch._state.shell.names = names
    yield names
    watch.look()
    monkeypatch.setattr(watch, "_state", None)


def test_what_was_replaced_is_put_back_and_named(watched, monkeypatch):
    import builtins

    from convgrad import exercises

    kept = np.testing.assert_array_equal, exercises.Exercise.require, builtins.all
    np.testing.assert_array_equal = lambda *a: None
    exercises.Exercise.require = lambda *a: None
    builtins.all = lambda some: True
    changed = json.loads(watch.look())
    now = np.testing.assert_array_equal, exercises.Exercise.require, builtins.all
    assert now == kept
    assert {"numpy.testing.assert_array_equal", "builtins.all"} <= set(changed)
    assert "convgrad.exercises.base.Exercise.require" in changed
    assert json.loads(watch.look()) == []


def test_code_bank_and_modules_are_put_back_as_well(watched):
    from convgrad import exercises

    code = np.testing.assert_equal.__code__
    exercises._BANK["weight-how-many"] = None
    sys.modules["numpy.testing"] = types.ModuleType("numpy.testing")
    np.testing.assert_equal.__code__ = (lambda *args, **kwargs: None).__code__
    changed = json.loads(watch.look())
    assert exercises.get("weight-how-many").key == "weight-how-many"
    assert np.testing.assert_equal.__code__ is code
    assert "convgrad.exercises._BANK" in changed and "numpy.testing" in changed


def test_names_that_locked_cells_bind_are_bound_again(watched):
    watched |= {"helper": lambda: 1, "all": lambda some: True, "max": 3, "solve": abs}
    changed = json.loads(watch.look("def helper():\n    return 2", ["solve"]))
    assert watched["helper"]() == 2
    assert "all" not in watched and watched["max"] == 3
    assert changed == ["the built-in all", "helper, which a locked cell defines"]
    assert json.loads(watch.look("def helper():\n    return 2")) == []


# ---- what is worth a look --------------------------------------------------------------------


def looked_at(text, reference="import numpy as np"):
    def notebook(source):
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])

    return suspicions(notebook(text), notebook(reference))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import torch.nn.functional as F\nF.conv2d(a, b)", "torch.nn.functional.conv2d"),
        ("from convgrad import conv2d as own\nown(x, w)", "convgrad.conv2d"),
        ("import convgrad as c\nc.im2col.unfold(x)", "convgrad.im2col.unfold"),
        ("from convgrad.windows import *", r"convgrad.windows.\*"),
        ("from os import _exit as leave\nleave(0)", "os._exit"),
        ("np.testing.assert_equal = print", "changes numpy.testing.assert_equal"),
        ("try: f()\nexcept: pass", "catches interruptions"),
        ("try: f()\nexcept BaseException: pass", "catches interruptions"),
        ("f.__globals__", "uses __globals__"),
        ("!ls", "shell command"),
        ("exec('1')", "runs text as code"),
        ("import subprocess", "starts programs"),
    ],
)
def test_what_an_answer_has_no_need_of_is_named(text, said):
    assert any(re.search(said, each) for each in looked_at(text))


@pytest.mark.parametrize(
    "text",
    [
        "y = np.einsum('i,i', a, b)",
        "from convgrad import exercises, ConvGeometry\nexercises.get('a').check(1)",
        "try: f()\nexcept ValueError: pass",
        "def (",
        "",
    ],
)
def test_plain_answers_are_not(text):
    assert looked_at(text) == []


def test_what_the_reference_uses_is_not():
    text = "from convgrad import conv2d\nconv2d(x, w)"
    assert looked_at(text, text) == []


# ---- what was handed in ----------------------------------------------------------------------


def handed(folder, learner="ada"):
    return Handed(learner, "pixels", folder)


@pytest.mark.parametrize("learner", ["..", "=1+1", "-rf", "a/b", "a*", "ada ", "a\nb", ".hidden"])
def test_names_that_are_no_learners_are_refused(tmp_path, learner):
    with pytest.raises(Refused, match="is none for a learner"):
        handed(tmp_path, learner).read()


@pytest.mark.parametrize("learner", ["ada", "Zoë K.", "o'neill", "O’Neil", "lee+j@uni.edu", "王"])
def test_names_of_people_are_not(tmp_path, learner):
    (tmp_path / "pixels.ipynb").write_text("{}")
    assert handed(tmp_path, learner).read() == (b"{}", [])


def test_what_lies_beside_the_one_that_is_graded_is_named(tmp_path):
    for name in ("pixels.ipynb", "pixels (1).ipynb", "notes.txt"):
        (tmp_path / name).write_text("{}")
    _, notes = handed(tmp_path).read()
    assert notes == ["beside it lies pixels (1).ipynb, which was not graded"]


def test_work_that_lies_one_level_off_is_not_taken_for_none(tmp_path):
    submitted = tmp_path / "submitted"
    right = submitted / "ada" / "pixels"
    for folder in (right, submitted / "bo" / "Pixels", submitted / "cy" / "empty"):
        folder.mkdir(parents=True)
    for path in (
        *(right / "pixels.ipynb", submitted / "bo" / "Pixels" / "pixels.ipynb"),
        *(submitted / "dee.zip", submitted / "ada" / "pixels.zip", submitted / "ada" / ".DS_Store"),
    ):
        path.write_text("{}")
    assert list(Course(tmp_path).unused(["pixels", "weights"])) == [
        "dee.zip lies beside the learners' folders, and was not graded",
        "ada/pixels.zip lies in no assignment's folder, and was not graded",
        "bo/Pixels is no assignment's folder, and was not graded: they are called pixels, weights",
    ]


@pytest.mark.parametrize("name", ["../pixels.ipynb", "/etc/pixels.ipynb", "..\\pixels.ipynb"])
def test_an_archive_whose_names_lead_out_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, "{}")
    with pytest.raises(Refused, match="leads out of it"):
        handed(tmp_path).read()


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pixels.ipynb", b"0" * (21 << 20))
    with pytest.raises(Refused, match="larger than 20 MB"):
        handed(tmp_path).read()


def test_a_pipe_does_not_stop_the_grader(tmp_path):
    os.mkfifo(tmp_path / "pixels.ipynb")
    with pytest.raises(Refused, match="not a plain file"):
        handed(tmp_path).read()


def test_a_folder_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "pixels").symlink_to(tmp_path / "real")
    with pytest.raises(Refused, match="is a link"):
        handed(tmp_path / "ada" / "pixels").read()


def test_folders_that_are_no_course_are_explained(tmp_path):
    with pytest.raises(CourseError, match="there is no such folder"):
        Course.at(tmp_path / "nowhere")
    with pytest.raises(CourseError, match="has no folder submitted"):
        Course.at(tmp_path).learners()


def test_limits_are_whole_numbers():
    with pytest.raises(ValueError, match="cell_seconds is 0"):
        Limits(cell_seconds=0)


# ---- tables and pages ------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@A1", "\t=1", "\r\n=1", " =1"])
def test_a_spreadsheet_finds_no_formula(tmp_path, text):
    assert defused(text).startswith("'")
    write_csv(tmp_path / "t.csv", [{"student": text, "points": -1.0}])
    assert (tmp_path / "t.csv").read_text().splitlines()[1].startswith("'")


def test_the_report_escapes_what_learners_write():
    from convgrad.classroom import Graded

    cell = {"name": "t", "of": 1.0, "points": 0.0, "error": "E", "message": "<script>x</script>"}
    row = Graded("<b>", "p", 0, 1, "graded", flags=("<i>",), cells=(cell,))
    text = page([row], "<u>")
    assert not re.search("<(script|b|i|u)>", text)
    assert text.count("&lt;script&gt;") == 1


def test_mistakes_that_differ_in_numbers_are_one():
    from convgrad.classroom import Graded

    def row(name, number):
        message = f"k: Not yet. {number} cells are wrong."
        cell = {"name": "t", "of": 2.0, "points": 0.0, "error": "WrongAnswer", "message": message}
        return Graded(name, "p", 0, 2, "graded", cells=(cell,))

    (cell,) = findings.cells_of([row("ada", 2), row("bo", 3), row("cy", 2)])
    (mistake,) = cell.mistakes
    assert (cell.none, mistake.said) == (3, "k: 2 cells are wrong.")
    assert mistake.students == ("ada", "bo", "cy")


# ---- nothing hidden is handed on -------------------------------------------------------------


def hidden_words():
    """The canaries of every assignment there is."""
    found = set()
    for folder in (simulated.SOURCES, ROOT / "book" / "assignments"):
        for path in folder.glob("*.md"):
            found |= set(re.findall(r"canary:\s*([\w-]+)", path.read_text(encoding="utf-8")))
    return found


def test_no_canary_is_in_what_the_site_and_the_wheel_are_made_of():
    words = hidden_words()
    assert {"bittern", "dunlin", "curlew"} <= words
    pattern = re.compile(rf"canary:\s*({'|'.join(words)})\b")
    made_of = [*(ROOT / "src").rglob("*"), *(ROOT / "book").rglob("*"), *ROOT.glob("*.md")]
    for path in made_of:
        is_text = path.suffix in {".py", ".md", ".js", ".css", ".json", ".html", ".yml", ".toml"}
        if is_text and path.is_file() and "assignments" not in path.parts:
            assert not pattern.search(path.read_text(encoding="utf-8")), path


@pytest.mark.book
def test_no_canary_is_in_the_built_book():
    words = hidden_words()
    site = ROOT / "_build" / "html"
    assert (site / "index.html").is_file()
    for path in site.rglob("*"):
        if path.suffix in {".html", ".js", ".md", ".txt", ".json", ".ipynb"}:
            text = path.read_text(encoding="utf-8", errors="replace")
            found = [word for word in words if re.search(rf"canary:\s*{word}\b", text)]
            assert not found, (path, found)


# ---- what is missing is said -----------------------------------------------------------------


@pytest.mark.parametrize("line", ["release a --to b", "grade . --unsafe", "feedback .", "report ."])
def test_without_nbgrader_the_command_says_what_to_install(line, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "p.md").write_text("nbgrader")
    blocked = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('nbgrader', 'jupytext', 'nbformat', 'psutil'):\n"
        "            raise ModuleNotFoundError(f'no {name}', name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from convgrad.__main__ import main\n"
        f"sys.exit(main({line.split()!r}))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    said = subprocess.run(
        [sys.executable, "-c", blocked],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=60,
    )
    assert said.returncode == 2
    assert 'pip install "convgrad[classroom]"' in " ".join(said.stderr.split())


# ---- many machines ---------------------------------------------------------------------------


class Future:
    def __init__(self, function, task):
        self.function, self.task = function, task

    def result(self):
        if self.task["learner"] == "lost":
            raise RuntimeError("the worker was lost")
        return self.function(self.task)


class Client:
    """Dask's, as far as grading knows it."""

    def __init__(self, address):
        self.address = address

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, task, *, pure, retries):
        assert not pure and retries > 0  # two graders of the same notebook are two runs
        return Future(function, task)


def test_dask_maps_the_same_function_and_loses_nobody(monkeypatch):
    from convgrad.classroom import workers

    stand_in = types.ModuleType("distributed")
    stand_in.Client, stand_in.as_completed = Client, lambda futures: reversed(futures)
    monkeypatch.setitem(sys.modules, "distributed", stand_in)
    monkeypatch.setattr(workers.Worker, "grade", lambda self, task: {"status": task["learner"]})
    tasks = [{"learner": name} for name in ("ada", "lost", "cy")]
    results = {task["learner"]: result for task, result in workers.map_by_dask(tasks, "tcp://x")}
    assert results["ada"] == {"status": "ada"} and results["cy"] == {"status": "cy"}
    assert results["lost"]["status"] == "not graded"
    assert "the worker was lost" in results["lost"]["reason"]


def test_work_that_raises_still_gives_a_result(monkeypatch):
    from convgrad.classroom import workers

    def grade(self, task):
        raise OSError("no space left")

    monkeypatch.setattr(workers.Worker, "grade", grade)
    ((_, result),) = workers.map_here([{"learner": "ada"}], 2)
    assert result["status"] == "not graded" and "no space left" in result["reason"]
