"""convgrad.distributed: several processes give what one gives, and say so when they do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from test_imports import ALONE, PACKAGE, run_python

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

if not dist.is_available():
    pytest.skip("this PyTorch was built without torch.distributed", allow_module_level=True)

from convgrad import ConvGeometry, distributed  # noqa: E402
from convgrad.distributed import __main__ as script  # noqa: E402
from convgrad.distributed import against  # noqa: E402
from convgrad.geometry import PADDING_MODES  # noqa: E402
from convgrad.shards import halo_messages, row_shards  # noqa: E402

pytestmark = pytest.mark.oracle

PATIENCE = 240  # seconds, on a machine that does many things


def python(*words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, timeout=PATIENCE
    )


def answers_of(size: int, folder: Path) -> list[dict[str, Any]]:
    """Start processes that meet in a file, wait for all, and read what each wrote."""
    import ranks

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    meet, end = folder / "meet", time.monotonic() + PATIENCE
    started = torch.multiprocessing.spawn(
        ranks.work, (size, str(meet), str(folder)), nprocs=size, join=False
    )
    try:
        while not started.join(timeout=5):
            assert time.monotonic() < end, f"{size} processes were not done after {PATIENCE} s"
    finally:
        for process in started.processes:
            if process.is_alive():
                process.kill()
    return [json.loads((folder / f"{rank}.json").read_text("utf-8")) for rank in range(size)]


@pytest.mark.slow  # starts processes, each of which imports PyTorch
@pytest.mark.parametrize("size", [2, 4])
def test_several_processes(size, tmp_path):
    answers = answers_of(size, tmp_path)
    first, *others = answers
    checks = len(against.CHECKS)

    # as in one process, and only one of them says so
    assert [each["status"] for each in answers] == [0] * size, first["said"]
    assert first["said"][0] == f"{size} processes, gloo, on cpu"
    assert first["said"][-1] == f"{checks} of {checks} as in one process"
    assert [line.split("  ")[:2] for line in first["said"][1:-1]] == [
        ["equal", name] for name in against.CHECKS
    ]
    assert all(each["said"] == [] for each in others)

    # planted mistakes are noticed, by all
    for each in answers:
        mistakes = {name: status for name, status in each.items() if name.startswith("mistake: ")}
        assert len(mistakes) == 6
        assert set(mistakes.values()) == {1}, mistakes

    # what does not fit is refused by all, wherever it is wrong
    for each in answers:
        assert each["x too short"].startswith(f"ShapeError: rank 1 of {size}: x has shape (4, 2, ")
        assert "cut them out with x[:, :, " in each["x too short"]
        assert each["bias too long"].startswith(
            f"ShapeError: rank 1 of {size}: bias has shape (4,)"
        )
        assert f"{size} devices for {size - 1} output rows" in each["too few rows"]
        assert each["another loss"].startswith("ValueError: loss is 'avg': needed is 'sum'")
        assert "TypeError: tensors of different types, float32, float64" in each["two types"]
        assert each["second"].startswith("RuntimeError: trying to differentiate twice")

    # placements: what is right is let through
    for each in answers:
        assert each["placement: images"] == each["placement: copies"] == "let through"
        said = {name: each[f"placement: {name}"] for name in ("channels", "height", "width")}
        for name, words in said.items():
            assert words.startswith("PlacementError: x is Shard(dim=")
            assert f"along its {name}: PyTorch would" in words
        assert each["placement: output channels"].startswith(
            "PlacementError: weight is Shard(dim=0"
        )
        assert each["placement: both channels"].startswith("PlacementError: weight is Shard(dim=1")
        assert f"N = {size - 1} on {size} processes" in each["placement: few images"]
        assert each["placement: no DTensor"].startswith("TypeError: x is of type Tensor: needed")

    # what the guard is for; when a newer PyTorch is right here, it may let more through
    wrong = {name: {each[name] for each in answers} for name in first if "PyTorch: " in name}
    assert wrong.pop("PyTorch: channels") == {"an error"}
    # of one image, the process that has it has all
    assert "wrong, Replicate()" in wrong.pop("PyTorch: few images")
    assert len(wrong) == 4
    assert all(said == {"wrong, Replicate()"} for said in wrong.values()), wrong

    # the rest
    for each in answers:
        for name in ("in a group", "bfloat16", "a frozen weight", "nothing to add"):
            assert each[name] is True, name


@pytest.mark.slow
def test_the_script_starts_its_processes_by_torchrun():
    done = python("-m", "convgrad.distributed", "2")
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first == "2 processes, gloo, on cpu"
    assert last.endswith("as in one process")


# ---- one process alone -----------------------------------------------------------------------


def test_alone_it_is_a_world_of_one(capsys):
    with distributed.joined() as device:
        assert script.report(device) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "1 process, gloo, on cpu"
    assert len(said) == len(against.CHECKS) + 2
    assert not dist.is_initialized(), "it left"


def test_what_is_wrong_is_printed_and_is_the_exit_status(capsys, monkeypatch):
    def broken(here):
        yield True
        raise ZeroDivisionError("no numbers left")

    checks = {"two": lambda here: iter([True, False, True]), "three": broken}
    monkeypatch.setattr(against, "CHECKS", checks)
    with distributed.joined() as device:
        assert script.report(device) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[1:] == [
        "WRONG  two  ",
        "WRONG  three  rank 0: ZeroDivisionError: no numbers left",
        "0 of 2 as in one process",
    ]


@pytest.mark.parametrize("words", ["0", "-1", "two"])
def test_no_processes_at_all_are_refused(words, capsys):
    with pytest.raises(SystemExit) as stop:
        script.main([words])
    assert stop.value.code == 2
    assert "processes" in capsys.readouterr().err


def test_what_is_drawn_for_the_checks_is_not_easy():
    """Rows from afar and none at all, every border, groups, leftovers; parts without images."""
    here = against.Here(1, 4, torch.device("cpu"))
    drawn = [whole.geometry for whole in against._tall(here, 24)]
    shards = [row_shards(geometry, 4, owned=4) for geometry in drawn]
    away = [abs(each.sender - each.receiver) for some in shards for each in halo_messages(some)]
    assert sum(distance > 1 for distance in away) >= 5
    assert any(not halo_messages(some) for some in shards)
    assert {geometry.padding_mode for geometry in drawn} == {*PADDING_MODES}
    assert sum(1 < geometry.groups < geometry.C for geometry in drawn) >= 6
    assert sum(geometry.leftover[0] > 0 for geometry in drawn) >= 4
    images = [(whole.geometry.N, part.N) for whole, _, part in against._batches(here)]
    assert any(mine == 0 for _, mine in images) and any(N % 4 for N, _ in images)


def test_a_group_that_exists_is_used_and_kept():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with distributed.joined() as device:
            assert device == torch.device("cpu")
        assert dist.is_initialized()
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, geometry: distributed.shared(x),
        lambda x, geometry: distributed.added([x]),
        lambda x, geometry: distributed.share(1),
        lambda x, geometry: distributed.rows_of(geometry),
        lambda x, geometry: distributed.conv2d_rows(x, x, None, geometry),
        lambda x, geometry: distributed.batch_gradients(x, x, x, geometry),
    ],
)
def test_without_a_group_a_sentence_says_what_to_do(call):
    x = torch.ones(1, 1, 1, 1)
    with pytest.raises(RuntimeError, match="no process group yet: needed is one"):
        call(x, ConvGeometry.of(x.shape, x.shape))


def test_a_part_without_images_has_no_share():
    with distributed.joined():
        assert distributed.share(0) == 0


def test_without_pytorch_a_sentence_says_what_to_install():
    blocker, _, _ = ALONE.partition("import numpy")
    result = run_python(f"{blocker}import convgrad.distributed")
    assert 'pip install "convgrad[torch]"' in result.stderr.splitlines()[-1]
