"""Several devices in the browser are Python's: shares, halo, parts, every state of the ring.

Integers in float64 are exact whatever the order of a sum, and means are summed in the same order,
so every comparison is ``==``.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import integers, options, random_geometries

from convgrad import loops
from convgrad.shards import deal, halo_messages, numbers_sent, ring_states, ring_steps, row_cut
from convgrad.widgets import ShardSum
from convgrad.widgets.shard_sum import MOST_DEVICES

ORACLE = Path(__file__).parent / "js_shards_oracle.mjs"
CASES = 120
DEVICES = range(1, 9)
WAYS = list(itertools.product(("sum", "mean"), ("sum", "average")))


def random_shares(rng: np.random.Generator, count: int) -> list[int]:
    if rng.integers(2):
        return [1] * count  # as many devices as can be, so that they have much to send
    cuts = np.sort(rng.choice(range(1, count), rng.integers(0, count), replace=False))
    return np.diff([0, *cuts, count]).tolist()


def make_widgets() -> list[ShardSum]:
    """Random convolutions, every second one dealt out by rows."""
    rng = np.random.default_rng(8)
    made = []
    for k, g in enumerate(each for each in random_geometries(2 * CASES, seed=41) if each.N):
        if len(made) == CASES:
            break
        arrays = (integers(rng, s) for s in (g.x_shape, g.weight_shape, g.output_shape))
        view = "rows" if k % 2 else "images"
        loss, combine = WAYS[k // 2 % 4]
        shares = random_shares(rng, g.OH if k % 2 else g.N)
        made.append(
            ShardSum(*arrays, view=view, devices=shares, loss=loss, combine=combine, **options(g))
        )
    return made


@pytest.fixture(scope="module")
def widgets() -> list[ShardSum]:
    return make_widgets()


def ask(node: Any, widgets: list[ShardSum], **changes: Any) -> dict[str, Any]:
    """Everything in one run of Node, from what each widget's model holds."""
    cases = []
    for widget in widgets:
        state = widget.get_state()
        case = {name: state[name] for name in ("geometry", "x", "weight", "grad_output")}
        names = ("view", "shares", "loss", "combine")
        case["options"] = {name: state[name] for name in names} | changes
        cases.append(case | {"most": state["limits"]["devices"]})
    run = subprocess.run(
        [node.node, str(ORACLE)],
        input=json.dumps({"cases": cases, "devices": list(DEVICES)}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def answers(widgets: list[ShardSum], node: Any) -> dict[str, Any]:
    return ask(node, widgets)


def test_the_draws_cover_what_can_go_wrong(widgets: list[ShardSum]) -> None:
    assert len(widgets) == CASES
    images = [w for w in widgets if w.view == "images"]
    rows = [w for w in widgets if w.view == "rows"]
    shares = {
        "several devices": [w.devices > 1 for w in widgets],
        "a halo": [bool(halo_messages(w.shards)) for w in rows],
        "padding": [any(w.geometry.padding[0]) for w in rows],
        "stride ≠ dilation": [w.geometry.stride[0] != w.geometry.dilation[0] for w in rows],
        "groups": [w.geometry.groups > 1 for w in widgets],
    }
    for what, hits in shares.items():
        assert np.mean(hits) >= 0.25, f"{what} in only {np.mean(hits):.0%} of the draws"
    assert sum(len(set(w.shares)) > 1 for w in images) >= 5, "uneven shares"
    assert {(w.loss, w.combine) for w in images} == set(WAYS)


def test_the_same_parts_and_every_state_of_the_ring(
    widgets: list[ShardSum], answers: dict[str, Any]
) -> None:
    for widget, answer in zip(widgets, answers["cases"], strict=True):
        assert tuple(answer["sizes"]) == widget.shares
        assert len(answer["moves"]) - 1 == widget.steps
        if widget.view == "rows":
            continue
        where = widget.geometry.describe()
        assert answer["ring"] == [[held.tolist() for held in s] for s in widget.ring], where
        assert answer["agreed"] == [widget.agreed.tolist()] * widget.devices, where
        assert answer["single"] == widget.whole.tolist(), where
        assert answer["equal"] == np.allclose(widget.agreed, widget.whole, rtol=1e-10, atol=1e-9)
        chunks = [[each.start, each.stop] for each in deal(widget.whole.size, widget.devices)]
        assert answer["chunks"] == chunks
        g = widget.geometry
        for n, one in enumerate(answer["one"]):
            x, upstream = widget.x[n : n + 1], widget.grad_output[n : n + 1]
            alone = ShardSum(x, widget.weight, upstream, **options(g))
            assert one == alone.whole.tolist(), where


def test_the_same_rows_halo_and_parts(widgets: list[ShardSum], answers: dict[str, Any]) -> None:
    for widget, answer in zip(widgets, answers["cases"], strict=True):
        if widget.view == "images":
            continue
        g = widget.geometry
        y = loops.forward(widget.x, widget.weight, g)
        assert answer["equal"]
        assert answer["cuts"] == [row_cut(g, p) for p in range(g.OH)]
        assert answer["messages"] == [
            [a, b, list(rows)] for a, b, rows in halo_messages(widget.shards)
        ]
        for shard, part, came, made, outputs in zip(
            widget.shards,
            widget.parts,
            answer["parts"],
            answer["shards"],
            answer["outputs"],
            strict=True,
        ):
            assert made["block"] == list(shard.block), g.describe()
            assert made["reads"] == list(shard.reads)
            assert made["halo"] == list(shard.halo)
            assert made["owned"] == [shard.owned.start, shard.owned.stop]
            assert made["outputs"] == [shard.outputs.start, shard.outputs.stop]
            assert made["geometry"] == [shard.geometry.H, shard.geometry.OH]
            assert came == {name: getattr(part, name).ravel().tolist() for name in part._fields}
            assert outputs == shard.take_output(y).ravel().tolist(), g.describe()


def test_the_same_ring(answers: dict[str, Any]) -> None:
    for P, answer in zip(DEVICES, answers["rings"], strict=True):
        assert answer["steps"] == [[list(send) for send in step] for step in ring_steps(P)]
        assert answer["sent"] == [numbers_sent(size, P) for size in range(30)]
        assert answer["dealt"] == [[len(r) for r in deal(count, P)] for count in range(30)]


def test_whose_parts_are_in_a_chunk_is_what_the_ring_has_brought(answers: dict[str, Any]) -> None:
    """Each device begins with a digit of its own in every chunk: sums then show who is in them."""
    for P, answer in zip(DEVICES, answers["rings"], strict=True):
        states = ring_states([np.full(P, 10**r) for r in range(P)])
        for state, held in zip(states, answer["held"], strict=True):
            for device, chunk in itertools.product(range(P), repeat=2):
                first, count = held[device][chunk]
                expected = sum(10 ** ((first + k) % P) for k in range(count))
                assert state[device][chunk] == expected, (P, device, chunk)


def test_shares_that_do_not_fit_are_dealt_anew_as_python_does(
    widgets: list[ShardSum], node: Any
) -> None:
    """What a page without a kernel does itself when a knob or the view is turned."""
    several = [w for w in widgets if w.dealt != 5]
    for before in ((5,), (2, 3), (1, 1, 1, 1, 1)):
        answered = ask(node, several, shares="-".join(map(str, before)))["cases"]
        for widget, answer in zip(several, answered, strict=True):
            devices = min(len(before) if len(before) > 1 else 3, widget.dealt, MOST_DEVICES)
            assert answer["sizes"] == [len(each) for each in deal(widget.dealt, devices)]
    one = ShardSum(np.zeros((5, 1, 4, 4)), np.zeros((1, 1, 3, 3)), devices=(2, 3))
    one.geometry = {**one.geometry.as_dict(), "N": 7}
    assert one.shares == (4, 3), "and so does Python"


def test_no_sentence_has_a_hole_in_it(answers: dict[str, Any]) -> None:
    said = [words for answer in answers["cases"] for words in answer["words"]]
    assert not [each for each in said if "undefined" in each or "NaN" in each or "null" in each]
    assert len(set(said)) > 200
