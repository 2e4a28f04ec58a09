"""The notebooks of the built book: whole, in plain Markdown, and every one runs.

One kernel runs them all, each with no names of those before it; what a kernel costs is mostly the
import of PyTorch.  It has the package from the wheel that lies beside the notebooks, so nothing of
the clone is within its reach.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest

jupyter_client = pytest.importorskip("jupyter_client", reason="it comes with ipykernel")
nbformat = pytest.importorskip("nbformat", reason="it comes with jupytext")
yaml = pytest.importorskip("yaml", reason="the book's packages are in requirements.txt")

from tools.paper import leaves  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "_build" / "html" / "notebooks"
SOURCES = [ROOT / f"{leaf.name}.md" for leaf in leaves(ROOT / "_toc.yml")]
NAMES = [
    path.stem
    for path in SOURCES
    if "```{code-cell}" in (text := path.read_text("utf-8")) and "{eval-rst}" not in text
]
every_notebook = pytest.mark.parametrize("name", NAMES)

pytestmark = [pytest.mark.book, pytest.mark.slow]

# What only the book understands.
FOREIGN = re.compile(
    r"\{[\w:-]+\}`|^\s*(?:`{3,}|:{3,})\{|^\([\w-]+\)=$|htmlClass|\\col[xwgr]\b", re.M
)


@pytest.fixture(scope="module", autouse=True)
def built():
    if not FOLDER.is_dir():
        pytest.fail(f"there are no notebooks in {FOLDER}: run `make book` first", pytrace=False)


def read(name: str):
    return nbformat.read(FOLDER / f"{name}.ipynb", 4)


def words(notebook) -> str:
    """The Markdown of a notebook, without code within it."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.M | re.S)


# ---- what they say ------------------------------------------------------------------------------


def test_every_page_with_cells_has_a_notebook():
    assert set(NAMES) <= {path.stem for path in FOLDER.glob("*.ipynb")}


@every_notebook
def test_a_notebook_reads_well_anywhere(name):
    notebook = read(name)
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells[:2]] == ["markdown", "code"]
    assert notebook.cells[0].source.startswith("# ")
    said = words(notebook)
    assert not FOREIGN.findall(said)
    for link in re.findall(r"\]\((?!https?:|attachment:)([^)]*)\)", said):
        place, _, mark = link.partition("#")
        there = read(place.removesuffix(".ipynb")) if place else notebook
        if mark:  # Jupyter's mark of a heading is its text with dashes
            headings = re.findall(r"^#+ (.*)$", words(there), re.M)
            assert unquote(mark) in {heading.replace(" ", "-") for heading in headings}


@every_notebook
def test_every_formula_can_be_set_by_a_plain_renderer(name):
    said = words(read(name))
    macros = json.loads((ROOT / "book" / "_ext" / "macros.json").read_text("utf-8"))
    for formula in re.findall(r"\$\$.*?\$\$|\$[^$]+\$", said, flags=re.S):
        assert not set(re.findall(r"\\[A-Za-z]+", formula)) & macros.keys(), formula
        assert formula.count("{") == formula.count("}"), formula
        assert "\n>" not in formula, "a quote's mark stands within a formula"


def test_a_chapter_keeps_its_numbers_and_names_its_references():
    said = words(read("weight_gradient"))
    page = (FOLDER.parent / "book" / "part2" / "weight_gradient.html").read_text("utf-8")
    numbers = re.findall(r'class="eqno">\((\d+)\)', page)
    assert numbers and re.findall(r"\\tag\{(\d+)\}", said) == numbers
    figures = re.findall(r'caption-number">Fig. (\d+)', page)
    assert figures and re.findall(r"\*\*Fig\. (\d+)\.\*\*", said) == figures
    listed = said.partition("## References")[2]
    assert "Rumelhart et al. (1986)" in said and "Geoffrey E. Hinton" in listed


def test_nothing_in_an_output_changes_from_build_to_build():
    for path in FOLDER.glob("*.ipynb"):
        assert not re.search(r" at 0x[0-9a-f]{6}", path.read_text("utf-8")), path.name


def test_one_archive_holds_all_of_it():
    (wheel,) = FOLDER.glob("*.whl")
    with zipfile.ZipFile(FOLDER / "notebooks.zip") as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist()}
    assert names == {path.name for path in FOLDER.iterdir()} - {"notebooks.zip"}
    assert wheel.name in names


def test_the_page_leads_to_its_notebook():
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    page = (FOLDER.parent / "book" / "part2" / "weight_gradient.html").read_text("utf-8")
    assert '<a href="../../notebooks/weight_gradient.ipynb" download>' in page
    assert ("colab.research" in page) == ("repository" in config)


# ---- and they run -------------------------------------------------------------------------------


class Kernel:
    """A kernel that sees the packages of this Python, and convgrad only as the wheel has it."""

    def __init__(self, package: Path, folder: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(package),
            "OMP_NUM_THREADS": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        self.folder = folder
        self.manager, self.client = jupyter_client.manager.start_new_kernel(
            kernel_name="python3", env=environment, cwd=str(folder)
        )

    def run(self, code: str, seconds: float = 60) -> tuple[str, str]:
        """What the code wrote, and the error that ended it or ""."""
        said: list[str] = []

        def hear(message) -> None:
            if message["msg_type"] == "stream":
                said.append(message["content"]["text"])

        answer = self.client.execute_interactive(code, output_hook=hear, timeout=seconds)["content"]
        trace = "\n".join(answer.get("traceback", ()))
        return "".join(said), re.sub(r"\x1b\[[0-9;]*m", "", trace)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    pytest.importorskip("torch")
    (wheel,) = FOLDER.glob("*.whl")
    package = tmp_path_factory.mktemp("package")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(package)
    kernel = Kernel(package, tmp_path_factory.mktemp("desk"))
    place, _ = kernel.run("import convgrad; print(convgrad.__file__)")
    assert Path(place.strip()).is_relative_to(package)
    yield kernel
    kernel.close()


@every_notebook
def test_a_notebook_runs_from_top_to_bottom(name, kernel):
    """Proofs print True; only a cell that is tagged so may print False, and it must."""
    # as in a kernel of its own: no names, and the folder of the notebooks (one chapter leaves it)
    fresh = f"import os; os.chdir({str(kernel.folder)!r}); get_ipython().reset(new_session=False)"
    assert kernel.run(fresh) == ("", "")
    left, _ = kernel.run("print([name for name in globals() if name == 'x' or name == 'np'])")
    assert left.strip() == "[]"
    code = [cell for cell in read(name).cells if cell.cell_type == "code"]
    said, error = kernel.run(code[0].source)
    assert not error and "Installing" not in said and re.search(r"^numpy \d", said, re.M)
    for cell in code[1:]:
        said, error = kernel.run(cell.source)
        assert not error, f"{cell.source}\n\n{error}"
        if name in CHAPTERS:
            fails = "shows-failure" in cell.metadata.get("tags", ())
            assert bool(re.search(r"\bFalse\b", said)) == fails, cell.source


CHAPTERS = {path.stem for path in ROOT.glob("book/part*/*.md")} - {"conv2d_gallery"}
