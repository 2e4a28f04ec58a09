"""The Sphinx extension that puts widgets into pages: each step on made-up state, and a build."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from convgrad.widgets import page as widget_page

pytest.importorskip("sphinx", reason="the book's tools are not installed")

ROOT = Path(__file__).resolve().parents[1]
EXTENSIONS = ROOT / "book" / "_ext"
WHERE = [str(EXTENSIONS), str(ROOT / "src")]  # what a build of its own process imports from


@pytest.fixture(scope="module")
def extension():
    sys.path.insert(0, str(EXTENSIONS))
    try:
        import static_widgets

        yield static_widgets
    finally:
        sys.path.remove(str(EXTENSIONS))


def entry(**state):
    """One model as a kernel saves it."""
    kernel = {
        "_esm": "export default {}",
        "_css": ".a {color: red}",
        "_anywidget_id": "shop.counters.BigCounter",
        "_model_name": "AnyModel",
        "_model_module": "anywidget",
        "_view_name": "AnyView",
        "_dom_classes": [],
        "layout": "IPY_MODEL_abc",
        "tooltip": None,
        "fallback": "<p>three</p>",
    }
    return {"model_name": "AnyModel", "model_module": "anywidget", "state": {**kernel, **state}}


def test_a_lost_output_is_a_warning(extension, monkeypatch):
    from docutils import nodes, utils

    warnings = []
    monkeypatch.setattr(extension.logger, "warning", lambda *message, **_: warnings.append(message))
    document = utils.new_document("page")
    for shown in (nodes.literal_block("8.0", "8.0"), extension.static_widget(), None):
        output = nodes.container(classes=["cell_output"])
        output += [shown] if shown is not None else [nodes.container()]
        document += output
    extension.MissOutputs.run(SimpleNamespace(document=document))
    assert len(warnings) == 1


# ---- the steps ------------------------------------------------------------------------------


def test_a_model_keeps_its_own_state_and_names_its_files():
    files = {}
    model = widget_page.model_of(entry(n=3, rows=[[1]]), files)
    assert model.state == {"n": 3, "rows": [[1]]}
    assert model.fallback == "<p>three</p>"
    assert re.fullmatch(r"big_counter-[0-9a-f]{8}\.js", model.module)
    assert re.fullmatch(r"big_counter-[0-9a-f]{8}\.css", model.stylesheet)
    assert files == {model.module: "export default {}", model.stylesheet: ".a {color: red}"}


def test_file_names_follow_the_text(extension):
    one, two = (extension.file_name("a.B", text, ".js") for text in ("x", "y"))
    assert one != two
    assert one == extension.file_name("a.B", "x", ".js")


def test_many_models_of_a_class_share_one_module(extension):
    state = {"state": {f"id{k}": entry(n=k) for k in range(5)}}
    page, refused = extension.read_page(state)
    assert len(page.models) == 5
    assert len(page.files) == 2
    assert refused == {}


def test_layouts_are_dropped_and_other_widgets_refused_with_a_reason(extension):
    bytes_trait = entry(n=1)
    bytes_trait["buffers"] = [{"path": ["pixels"], "data": "AA==", "encoding": "base64"}]
    page, refused = extension.read_page(
        {
            "state": {
                "1": {"model_name": "LayoutModel", "state": {}},
                "2": {"model_name": "SliderStyleModel", "state": {}},
                "3": {"model_name": "IntSliderModel", "state": {"value": 3}},
                "4": bytes_trait,
                "5": entry(n=1),
            }
        }
    )
    assert list(page.models) == ["5"]
    assert set(refused) == {"3", "4"}
    assert "IntSliderModel is no anywidget" in refused["3"]
    assert "keeps bytes in pixels" in refused["4"]


def test_markup_holds_fallback_and_state_once():
    model = widget_page.model_of(entry(n=3), {})
    first, second = (widget_page.markup("w1", model, first) for first in (True, False))
    payload = re.search(r'<script type="application/json">(.*?)</script>', first)[1]
    assert json.loads(payload) == {"module": model.module, "state": {"n": 3}}
    assert "<script" not in second
    for html in (first, second):
        assert html.startswith('<div class="cg-widget" data-model="w1">')
        assert html.count("<p>three</p>") == 1
        assert widget_page.NO_SCRIPT in html


@pytest.mark.parametrize("text", ["</script><b>", "<!-- <script>", "a < b", "“−”"])
def test_state_cannot_close_its_script(text):
    class Reader(HTMLParser):
        inside, found, others = False, "", ()

        def handle_starttag(self, tag, attributes):
            self.inside = tag == "script" or self.inside
            self.others += (tag,)

        def handle_endtag(self, tag):
            self.inside = self.inside and tag != "script"

        def handle_data(self, data):
            if self.inside:
                self.found += data

    reader = Reader()
    reader.feed(widget_page.markup("w1", widget_page.model_of(entry(text=text), {}), first=True))
    assert json.loads(reader.found)["state"]["text"] == text
    assert "b" not in reader.others


def test_the_loader_keeps_its_names_to_itself(extension):
    text = extension.loader_text()
    assert text.startswith("(()=>{")
    assert text.rstrip().endswith("})();")
    # a classic script may not import or export at its top level; import(...) is fine
    assert not re.search(r"\bexport\s*[{*]|\bexport default\b|\bimport\s*[{*\"']", text)


def test_bundles_stay_small(extension):
    static = ROOT / "src" / "convgrad" / "widgets" / "static"
    assert len(extension.loader_text().encode()) <= 5_000
    assert (static / "predict.js").stat().st_size <= 40_000


def test_a_packed_module_hands_over_its_text(extension):
    text = 'export default "a\\n</script>"'
    packed = extension.packed(text)
    assert packed.startswith("convgradModule(")
    assert json.loads(packed[len("convgradModule(") : packed.rindex(")")]) == text


# ---- a build --------------------------------------------------------------------------------

PAGE = """\
    ---
    jupytext: {text_representation: {extension: .md, format_name: myst}}
    kernelspec: {name: python3, display_name: Python 3}
    ---
    # Counting

    ```{code-cell}
    import anywidget, traitlets

    class Counter(anywidget.AnyWidget):
        _esm = "export default { render() {} }"
        _css = ".counter {margin: 0}"
        n = traitlets.Int(1).tag(sync=True)
        fallback = traitlets.Unicode(f"<p>still {31000 + 415}</p>").tag(sync=True)

    first = Counter(n=7)
    Counter(n=99)  # never shown
    first
    ```
    ```{code-cell}
    Counter(n=8)
    ```
    ```{code-cell}
    first
    ```
"""

CONF = """\
    project = "small"
    extensions = ["myst_nb", "static_widgets"]
    nb_execution_mode = "force"
    nb_execution_raise_on_error = True
    html_theme = "basic"
"""


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """One strict build, in a process of its own as Sphinx wants it."""
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-d", out / "doctrees", source, out / "html"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(WHERE), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two pages, one with widgets in a folder, built twice from nothing."""
    source = tmp_path_factory.mktemp("source")
    (source / "part").mkdir()
    (source / "part" / "counting.md").write_text(textwrap.dedent(PAGE), "utf-8")
    (source / "index.md").write_text("# Start\n\n```{toctree}\npart/counting\n```\n", "utf-8")
    (source / "conf.py").write_text(textwrap.dedent(CONF), "utf-8")
    outputs = [tmp_path_factory.mktemp(name) for name in ("once", "twice")]
    for out in outputs:
        result = build(source, out)
        assert result.returncode == 0, result.stderr
    return source, *outputs


@pytest.mark.slow  # builds pages
def test_a_page_with_widgets(site):
    html = (site[1] / "html" / "part" / "counting.html").read_text("utf-8")
    assert re.findall(r'data-model="(\w+)"', html) == ["w1", "w2", "w1"]
    payloads = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert [json.loads(each)["state"] for each in payloads] == [{"n": 7}, {"n": 8}]
    assert html.count("<p>still 31415</p>") == 3
    head = html[: html.index("</head>")]
    names = re.findall(r'(?:src|href)="\.\./_widgets/([^"]+)"', head)
    folder = site[1] / "html" / "_widgets"
    assert [re.sub("-[0-9a-f]{8}", "", name) for name in names] == ["counter.css", "loader.js"]
    assert all((folder / name).is_file() for name in names)
    modules = re.search(r'data-modules="([^"]+)"', head)[1].split()
    assert [json.loads(each)["module"] for each in payloads] == modules * 2
    assert (folder / modules[0]).read_text("utf-8") == "export default { render() {} }"
    (tools,) = re.findall(r'data-tools="([^"]+)"', head)
    assert (folder / tools).read_text("utf-8") == widget_page.tools_text()
    for name in (modules[0], tools):
        assert (folder / name.replace(".js", ".packed.js")).is_file()


@pytest.mark.slow  # builds pages
def test_nothing_of_the_notebook_machinery_is_left(site):
    html = (site[1] / "html" / "part" / "counting.html").read_text("utf-8")
    for remnant in ("require", "html-manager", "jsdelivr", "vnd.jupyter", "LayoutModel"):
        assert remnant not in html, remnant
    assert html.count("export default") == 1, "in the cell's source, not in the state"


@pytest.mark.slow  # builds pages
def test_a_page_without_widgets_knows_nothing_of_them(site):
    html = (site[1] / "html" / "index.html").read_text("utf-8")
    assert "_widgets" not in html
    assert "cg-widget" not in html


@pytest.mark.slow  # builds pages
def test_fallbacks_stay_out_of_the_search_index(site):
    index = (site[1] / "html" / "searchindex.js").read_text("utf-8")
    assert "31415" not in index
    assert "count" in index


@pytest.mark.slow  # builds pages
def test_two_builds_give_the_same_pages(site):
    _, once, twice = (Path(each) for each in site)
    for name in ("part/counting.html", "index.html"):
        assert (once / "html" / name).read_text() == (twice / "html" / name).read_text()
    names = [sorted(p.name for p in (out / "html" / "_widgets").iterdir()) for out in (once, twice)]
    assert names[0] == names[1]


@pytest.mark.slow  # builds pages
def test_shared_files_follow_the_pages_in_later_builds(site):
    source, _, out = site
    folder = out / "html" / "_widgets"
    before = {path.name for path in folder.iterdir()}
    shutil.rmtree(folder)
    assert build(source, out).returncode == 0  # nothing is read again, and the files come back
    assert {path.name for path in folder.iterdir()} == before

    page = source / "part" / "counting.md"
    text = page.read_text("utf-8")
    page.write_text(text.replace(".counter {margin: 0}", ".counter {margin: 1px}"), "utf-8")
    assert build(source, out).returncode == 0
    after = {path.name for path in folder.iterdir()}
    assert len(after) == len(before), "the old stylesheet is gone"
    assert {name for name in after ^ before if name.endswith(".css")} == after ^ before


@pytest.mark.slow  # builds pages
def test_a_widget_that_needs_a_kernel_stops_the_build(tmp_path):
    (tmp_path / "conf.py").write_text(textwrap.dedent(CONF).replace('"force"', '"off"'), "utf-8")
    state = {"slider": {"model_name": "IntSliderModel", "state": {"value": 3}}}
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "slider"}}
    output = {"output_type": "display_data", "metadata": {}, "data": view}
    cell = {"cell_type": "code", "source": "slider", "metadata": {}, "execution_count": 1}
    title = {"cell_type": "markdown", "source": "# Slider", "metadata": {}}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {
            "language_info": {"name": "python", "pygments_lexer": "python3"},
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": state}},
        },
        "cells": [title, {**cell, "outputs": [output]}],
    }
    (tmp_path / "index.ipynb").write_text(json.dumps(notebook), "utf-8")
    result = build(tmp_path, tmp_path / "out")
    assert result.returncode != 0
    assert "IntSliderModel is no anywidget: it needs a kernel" in result.stderr
