"""The benchmarks run, and what they kept can be read by anybody."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from strategies import integer_arrays, random_geometries

from convgrad import IMPLEMENTATIONS, ConvGeometry, loops
from convgrad.bench import layers, taught
from convgrad.im2col import column_numbers
from convgrad.roofline import CARDS, Card

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "rungs.json"
LAYERS = KEPT.with_name("layers.json")
every_table = pytest.mark.parametrize("kept", [KEPT, LAYERS], ids=lambda path: path.stem)


@pytest.mark.slow
def test_the_rungs_are_measured_and_printed():
    before = KEPT.read_bytes()
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.rungs", "--layer", "tiny", "--rounds", "1"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    header, *rows = result.stdout.splitlines()
    assert header.split()[:3] == ["layer", "implementation", "forward"]
    printed = [row.replace("tiny", "").split() for row in rows]
    for name, row in zip(IMPLEMENTATIONS, printed, strict=False):
        assert row[0] == name
        assert all(float(figure) > 0 for figure in row[1:5])
    assert KEPT.read_bytes() == before  # one layer alone replaces nothing


@every_table
def test_what_was_kept_names_the_machine_and_no_place_on_it(kept):
    text = kept.read_text(encoding="utf-8")
    record = json.loads(text)
    assert {"cpu", "cores", "threads", "system", "versions", "date"} == record["machine"].keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["machine"]["date"])
    assert not re.search(r"/(home|root|tmp|usr|work)\b|[A-Z]:\\\\", text)


def test_every_layer_was_measured_with_every_rung_that_can_stand_it():
    layers = json.loads(KEPT.read_text(encoding="utf-8"))["layers"]
    assert len(layers) >= 8
    for name, layer in layers.items():
        geometry = ConvGeometry(**layer["geometry"])
        assert layer["column_numbers"] == column_numbers(geometry)
        measured = set(layer["implementations"]) - {"torch"}
        assert measured == set(IMPLEMENTATIONS) - (set() if name == "tiny" else {"loops"})


# ---- the layers of real networks -------------------------------------------------------------


def test_im2col_as_taught_is_right():
    """Who is slower must at least be right."""
    for seed, geometry in enumerate(random_geometries(40, seed=13)):
        geometry = replace(geometry, padding_mode="zeros", N=max(geometry.N, 1))
        x, weight, g = integer_arrays(geometry, seed)
        grad_input, grad_weight, grad_bias = taught.backward(g, x, weight, geometry)
        assert (grad_input == loops.grad_input(g, weight, geometry)).all()
        assert (grad_weight == loops.grad_weight(g, x, geometry)).all()
        assert (grad_bias == loops.grad_bias(g, geometry)).all()


@pytest.fixture
def small_table(monkeypatch):
    """A table of three layers that take no time, one of each kind that the targets speak of."""
    table = {
        "dense": ConvGeometry(N=2, C=3, H=8, W=8, O=4, KH=3, KW=3, padding=1),
        "depthwise": ConvGeometry(N=2, C=3, H=8, W=8, O=3, KH=3, KW=3, padding=1, groups=3),
    }
    monkeypatch.setattr(layers, "TABLE", table)
    monkeypatch.setattr(layers, "PAUSE", 0)
    monkeypatch.setattr(layers, "DENSE", ["dense"])
    monkeypatch.setattr(layers, "DEPTHWISE", ["depthwise"])
    monkeypatch.setattr(layers, "THREE", ["dense"])
    return table


def test_the_table_of_layers_is_measured_and_printed_with_its_targets(small_table):
    pytest.importorskip("torch")
    record = layers.measure_table(small_table, rounds=2, threads=1)
    row = record["layers"]["depthwise"]
    assert row["route"] == "depthwise" and row["rounds_kept"] + row["rounds_thrown_away"] >= 2
    assert row["floor_megabytes"] == pytest.approx(
        4 * (2 * 3 * 64 * 3 + 2 * 27 + 3) / 1e6, rel=1e-2
    )
    assert set(row["contestants"]) == {*layers.USUAL, layers.ONEDNN, layers.PLAIN}
    for who, figures in row["contestants"].items():
        assert 0 <= figures["relative_error"] < 1e-5, who
    printed = list(layers.text(record))
    assert len(printed) == 1 + 2 * 6 + 1 + len(layers.TARGETS)
    assert all(re.search(r"[≤≥] \S+ +(met|MISSED)$", line) for line in printed[-6:])


def test_a_target_that_is_missed_says_so():
    def row(milliseconds, times_torch, peak=1.0, error=1e-7):
        figures = {"milliseconds": milliseconds, "times_torch": times_torch}
        return figures | {"working_megabytes": peak, "relative_error": error}

    def record(times_torch, worst_error=1e-7, taught_ms=20.0, im2col_peak=8.0):
        contestants = {
            "fast": row(10.0, times_torch, 2.0, worst_error),
            "im2col": row(15.0, 1.5, im2col_peak),
            layers.TAUGHT: row(taught_ms, 2.0),
        }
        return {"layers": {name: {"contestants": contestants} for name in layers.TABLE}}

    def met(record):
        return [target.met(record) for target in layers.TARGETS]

    assert met(record(1.2)) == [True] * 6
    assert met(record(1.3)) == [False] + [True] * 5
    assert met(record(2.3)) == [False] * 3 + [True] * 3
    assert met(record(1.2, taught_ms=17.0)) == [True] * 3 + [False] + [True] * 2
    assert met(record(1.2, im2col_peak=7.9)) == [True] * 4 + [False, True]
    assert met(record(1.2, worst_error=2e-6)) == [True] * 5 + [False]
    assert "MISSED" in next(layers.targets(record(1.3)))


def test_a_busy_neighbour_is_noticed(monkeypatch):
    with layers.Quiet(threads=1) as quiet:
        monkeypatch.setattr(layers, "seconds", lambda task: 1.5 * quiet._best)
        assert quiet.noise() == pytest.approx(1.5)
        monkeypatch.setattr(layers, "seconds", lambda task: 0.9 * quiet._best)
        assert quiet.noise() == 1  # that is the best now


def test_rounds_beside_a_busy_neighbour_do_not_count(small_table, monkeypatch):
    monkeypatch.setattr(layers, "FEWEST", 1)
    noise = iter([1.0, 3.0, 1.0, 1.1, 2.0, 1.0, 1.0, 1.0])  # before and after each round
    monkeypatch.setattr(layers.Quiet, "noise", lambda self: next(noise))
    row = layers.measure_table(["dense"], rounds=2, threads=1)["layers"]["dense"]
    assert (row["rounds_kept"], row["rounds_thrown_away"], row["noise"]) == (2, 2, 1.1)


def test_where_it_is_never_quiet_the_quietest_rounds_are_kept(small_table, monkeypatch):
    monkeypatch.setattr(layers, "FEWEST", 2)
    noise = iter([2.0, 1.0, 5.0, 5.0, 3.0, 1.0])
    monkeypatch.setattr(layers.Quiet, "noise", lambda self: next(noise))
    row = layers.measure_table(["dense"], rounds=1, threads=1)["layers"]["dense"]
    assert (row["rounds_kept"], row["rounds_thrown_away"], row["noise"]) == (2, 1, 3.0)


def test_every_layer_of_the_table_was_kept_and_the_figures_are_whole():
    record = json.loads(LAYERS.read_text(encoding="utf-8"))
    assert list(record["layers"]) == list(layers.TABLE)
    for name, row in record["layers"].items():
        assert ConvGeometry(**row["geometry"]) == layers.TABLE[name]
        assert set(row["contestants"]) >= {*layers.USUAL, layers.ONEDNN, layers.PLAIN}
        for who, figures in row["contestants"].items():
            assert all(np.isfinite(value) for value in figures.values()), (name, who)


# ---- on a GPU --------------------------------------------------------------------------------


def test_without_a_gpu_a_sentence_says_so_and_nothing_is_written(monkeypatch, capsys, tmp_path):
    torch = pytest.importorskip("torch")
    from benchmarks import gpu

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gpu, "RESULT", tmp_path / "gpu.json")
    assert gpu.main() == 0
    said = capsys.readouterr().out
    assert said.startswith("There is no GPU here") and "nothing written" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_kernels_are_measured_beside_pytorchs(monkeypatch):
    """Two tiny layers, interpreted where there is no GPU, by a clock that says what it is told."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from benchmarks import gpu

    monkeypatch.setattr(gpu, "AGAIN", 1)
    monkeypatch.setattr(gpu, "TYPES", {"float32": torch.float32, "float16": torch.float16})
    layer = ConvGeometry(N=2, C=2, H=5, W=4, O=2, KH=2, KW=1, stride=2, padding=1)
    ticks = iter(range(1, 100))

    def clock(task):
        assert task() is not None
        return float(next(ticks))

    device = "cuda" if torch.cuda.is_available() else "cpu"
    # operations are what holds it up
    card = Card(1e-9, 1e-9, 2e-9, 2e-9, memory=1e-3, multiprocessors=1)
    record = gpu.measured({"F": layer, "other": layer}, card, clock, device)
    assert [list(each["types"]) for each in record["layers"].values()] == [
        ["float32", "float16"],
        ["float32"],
    ]
    rungs = record["layers"]["F"]["types"]["float32"]["grad_weight"]
    assert list(rungs) == ["gather", "scatter", "tiles", "split_k", "two_pass", "torch"]
    work = 2 * 2 * 2 * layer.OH * layer.OW * 2 * 2  # two for each n, o, p, q, c, i
    for tick, row in enumerate(rungs.values(), start=1):
        assert row["milliseconds"] == tick
        assert row["times_torch"] == pytest.approx(tick / 6, rel=1e-2)
        assert row["tflops"] == pytest.approx(work / tick / 1e9, rel=1e-2)
        assert row["roofline_share"] == pytest.approx(work / tick, rel=1e-2)
        assert row["off_torch"] < 1e-6
    assert all(rungs[name]["same_bits"] for name in ("gather", "tiles", "two_pass"))
    header, *lines = gpu.text(record)
    assert len(lines) == 3 * (6 + 2 + 2)
    assert header.split()[0] == "layer" and lines[0].split()[:4] == [
        "F",
        "float32",
        "grad_weight",
        "gather",
    ]


def test_when_the_time_is_up_the_layers_that_are_left_are_named():
    pytest.importorskip("torch")
    from benchmarks import gpu

    record = gpu.measured({"F": None, "last": None}, None, None, "cpu", seconds=-1.0)
    assert record == {"layers": {}, "not_measured": ["F", "last"]}
    assert list(gpu.text(record))[-1] == "The time was up before: F, last."


def test_a_card_is_that_of_the_data_sheet_or_else_measured(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks import gpu

    def of(name):
        return gpu.card_of(name, clock=None)

    assert of("NVIDIA H100 80GB HBM3") == (CARDS["H100"], "data sheet")
    assert of("NVIDIA GeForce RTX 4090") == (CARDS["RTX 4090"], "data sheet")
    monkeypatch.setattr(gpu, "measured_card", lambda clock, device: "measured here")
    assert of("NVIDIA L40S") == ("measured here", "measured")  # no L4


def test_what_is_measured_of_a_card_is_work_over_time():
    pytest.importorskip("torch")
    from benchmarks import gpu

    card = gpu.measured_card(lambda task: (task(), 0.5)[1], "cpu", size=16)
    assert card.float32 == card.tf32 == card.float16 == card.bfloat16
    assert card.float32 == pytest.approx(2 * 16**3 / 0.5 / 1e9, rel=1e-2)
    assert card.memory == pytest.approx(2 * 4 * 512 / 0.5 / 1e9, rel=1e-2)
