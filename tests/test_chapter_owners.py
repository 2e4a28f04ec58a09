"""*Who owns which gradient element* tells the truth: its numbers, pictures, races and exercises."""

from __future__ import annotations

import re
from itertools import permutations
from math import prod

import numpy as np
import pytest
from pages import BOOK, alt_text, cells, spoken
from test_exercises import solution

from convgrad import ConvGeometry, example, exercises, im2col, loops
from convgrad.checks import random_operands
from convgrad.exercises import owners as bank
from convgrad.updates import additions

pytest.importorskip("matplotlib")
from convgrad.figures.chapters import owners as pictures
from convgrad.figures.grids import written

PAGE = "owners"
TEXT = (BOOK / "part6" / "owners.md").read_text("utf-8")


def numbers(values) -> str:
    return " ".join(map(written, values))


# ---- the table of products -------------------------------------------------------------------


def table() -> np.ndarray:
    x, _, _, g = example("B").arrays()
    return im2col.unfold(x, example("B").geometry)[0] * g.ravel()  # r l


def test_a_row_is_a_tap_and_adds_up_to_its_gradient():
    x, _, _, g = example("B").arrays()
    right = loops.grad_weight(g, x, example("B").geometry)
    assert np.array_equal(table().sum(1).reshape(right.shape), right)
    assert 1 * 3 + 2 == 5 and table()[5].sum() == right[0, 0, 1, 2] == 9
    alt = alt_text(PAGE, "products(")
    assert f"Row 5 is framed: {numbers(table()[5])}." in alt
    assert f"Column 2 is framed as well: {numbers(table()[:, 2])}." in alt
    assert f"sums of its rows, {numbers(table().sum(1))}, with" in alt
    words = pictures.products().words()
    assert {"x·g", "∂L/∂w"} <= set(words)


def test_the_two_products_of_the_race_are_the_first_and_the_eighth():
    assert (table()[5, 0], table()[5, 7]) == (2, 4)
    assert "the first and the eighth number of row 5" in TEXT


# ---- the pictures ----------------------------------------------------------------------------


def test_the_machine_in_words():
    words = " ".join(pictures.machine().words())
    alt = alt_text(PAGE, "machine(")
    for said in ("programs that wait", "multiprocessor", "shared memory", "memory of the GPU"):
        assert said in words and said in alt
    assert [words.count(f"program {k}") for k in range(6)] == [1] * 6
    assert words.count("multiprocessor") == words.count("shared memory") == 3
    assert "programs 0 to 5" in alt and "6 7 8 9 10" in alt


def test_the_two_sequences_in_words():
    words, alt = pictures.lost_update().words(), alt_text(PAGE, "lost_update(")
    orders = {"one after the other": (0, 0, 1, 1), "at the same time": (0, 1, 0, 1)}
    for title, order in orders.items():
        steps = additions([2, 4], order)
        told = re.search(rf"{title}: (.*?); memory holds ([\d, ]+)\.", alt, re.I)
        said = re.findall(r"(?:program (\d) )?(reads|writes) (\d+)", told[1])
        who = 0
        for (program, action, number), step in zip(said, steps, strict=True):
            who = int(program) if program else who
            assert (who, action, int(number)) == (step.program, step.action, step.number)
        held = [0, *(int(step.memory) for step in steps)]
        assert told[2] == ", ".join(map(str, held))
        assert title in words
    assert words.count("program 0") == words.count("program 1") == 2


def test_the_shares_of_the_three_warps():
    layer, x, g = pictures.depthwise()
    assert layer.groups == layer.C == layer.O == 4 and layer.N == 3
    right = loops.grad_weight(g, x, layer)[1, 0, 1, 0]
    shares = [
        loops.grad_weight(g[n : n + 1], x[n : n + 1], one_image(layer))[1, 0, 1, 0]
        for n in range(3)
    ]
    assert sum(shares) == right
    assert len({*shares, right}) == 4 and right not in (0, *shares)
    alt = alt_text(PAGE, "pictures.one_block(")
    listed = f"{written(shares[0])}, {written(shares[1])} and {written(shares[2])}"
    assert f"the share: {listed}." in alt
    assert alt.endswith(f"to ∂L/∂w: {written(right)}.")
    words = pictures.one_block().words()
    assert all(written(number) in words for number in (*shares, right))
    assert [words.count(f"warp {n}") for n in range(3)] == [1, 1, 1]


def one_image(layer: ConvGeometry) -> ConvGeometry:
    return ConvGeometry(C=4, H=layer.H, W=layer.W, O=4, KH=3, KW=2, groups=4)


def test_the_block_of_the_lesson_is_the_definition():
    (code,) = (code for options, code in cells(PAGE) if "lesson" in options)
    scope = {"np": np}
    exec(code, scope)
    # more positions than a warp has threads, more images than warps, two kernels a channel
    how = {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 1)}
    geometry = ConvGeometry(N=5, C=2, H=9, W=13, O=4, KH=3, KW=2, groups=2, **how)
    assert geometry.OH * geometry.OW > 32
    _, x, _, g = random_operands(geometry, np.random.default_rng(1))
    right = loops.grad_weight(g, x, geometry)
    for o, i, j in np.ndindex(4, 3, 2):
        held = scope["one_block"](g, x, geometry, o, i, j, warps=3)
        assert held.shape == (3,) and held.sum() == right[o, 0, i, j]


# ---- races -----------------------------------------------------------------------------------


def test_whoever_reads_last_of_all_keeps_the_others():
    """Every order of two programs: only the two in turn lose nothing."""
    orders = sorted(set(permutations([0, 0, 1, 1])))
    left = {order: additions([2, 4], order)[-1].memory for order in orders}
    assert [order for order in orders if left[order] == 6] == [(0, 0, 1, 1), (1, 1, 0, 0)]
    assert set(left.values()) == {6, 2, 4}


def test_if_all_read_first_the_last_to_write_is_left():
    row = table()[5]
    steps = additions(row, order=[*range(9), *range(9)])
    assert steps[-1].memory == row[-1] == 1
    stored = np.zeros(9)
    stored[[5] * 9] += row
    assert stored[5] == row[-1]


def test_each_program_needs_two_turns():
    for order in ([0, 1], [0, 0, 0, 1], [0, 1, 2, 0, 1, 2], [0, 0, 1, "1"]):
        with pytest.raises((ValueError, TypeError)):
            additions([2, 4], order)
    with pytest.raises(ValueError, match=r"order=\[0, 1\]: each of the programs 0 to 1 needs two"):
        additions([2, 4], [0, 1])
    assert additions([], []) == []


# ---- what is said of loads -------------------------------------------------------------------


def test_the_loads_of_the_layer():
    layer = example("F").geometry
    products = prod(layer.output_shape) * layer.CG * layer.KH * layer.KW
    assert prod(layer.weight_shape) * layer.N * layer.OH * layer.OW == products
    assert layer.CG * layer.KH * layer.KW == 576  # "the 576 of example F"
    numbers_of = prod(layer.x_shape) + prod(layer.output_shape)
    assert 2 * products == 576 * numbers_of


def test_a_block_of_example_b_has_16_lanes():
    pytest.importorskip("torch")
    blocks = pytest.importorskip("convgrad.kernels.blocks", reason="Triton is not installed")
    assert blocks.fitting(9, blocks.LONGEST) == 16


# ---- when one may scatter freely -------------------------------------------------------------


def meet(**sizes) -> bool:
    """Whether two windows of one image have a cell in common."""
    read: dict[tuple[int, int], set[tuple[int, int]]] = {}
    geometry = ConvGeometry(C=1, H=26, W=26, O=1, **sizes)
    for _, _, p, q, _, _, _, at in loops.products(geometry):
        read.setdefault(at[2:], set()).add((p, q))
    return any(len(windows) > 1 for windows in read.values())


def test_when_windows_do_not_meet():
    assert not meet(KH=3, KW=3, stride=3)
    assert meet(KH=3, KW=3, stride=2)
    assert meet(KH=3, KW=3, stride=(3, 2)) and meet(KH=3, KW=3, stride=(2, 3))
    # dilation: taps 4 apart, windows 3 apart, which lie in each other
    assert not meet(KH=2, KW=2, stride=3, dilation=4)
    assert not meet(KH=3, KW=3, stride=3, dilation=4)
    assert meet(KH=4, KW=4, stride=3, dilation=4)
    assert meet(KH=2, KW=2, stride=1, dilation=2)


# ---- exercises -------------------------------------------------------------------------------


def test_the_way_to_cut_that_has_conflicts_is_one():
    assert [bank._meet(choice) for choice in bank._CUTS] == [False, False, True, False]


def test_the_number_of_a_program_is_the_place_in_memory():
    geometry = example("D").geometry
    for number in range(prod(geometry.weight_shape)):
        group, o, r = bank._mine(number)
        c, i, j = np.unravel_index(r, geometry.weight_shape[1:])
        at = np.unravel_index(number, geometry.weight_shape)
        assert at == (group * geometry.OG + o, c, i, j)


def test_the_turns_of_the_question_are_those_of_its_prompt():
    prompt = exercises.get("owner-left").prompt
    assert "0 reads, 1 reads, 0 writes, 2 reads, 1 writes, 2 writes" in prompt
    assert exercises.get("owner-left").answer == 3


BENT = {
    "owner-program": {
        "batch|image": (
            "for n, p, q in np.ndindex(grad_output[:, o].shape):",
            "for n, p, q in np.ndindex(1, *grad_output.shape[2:]):",
        ),
        "other end": (
            "cell = geometry.cell(*geometry.source(p, q, i, j))",
            "h, v = geometry.source(p, q, i, j); cell = (h % geometry.H, v % geometry.W)",
        ),
        "group": ("geometry.channel(o, c)", "c"),
        "shape": ("return total", "return [total, 0]"),
    },
    "owner-shares": {
        "first images": ("n % warps", "n * warps // max(len(x), warps)"),
        "every warp adds up all": ("held[n % warps, o, i, j]", "held[:, o, i, j]"),
        "neighbours share one": ("geometry.channel(o, 0)", "o % geometry.C"),
        "left out": (
            "        image = x[n",
            "        if n >= warps:\n            continue\n        image = x[n",
        ),
    },
}


@pytest.mark.parametrize(
    ("key", "words"), [(key, words) for key, each in BENT.items() for words in each]
)
def test_a_mistake_gets_its_own_words(key, words):
    right, wrong = BENT[key][words]
    exercise = exercises.get(key)
    assert right in exercise.solution
    scope = {"np": np}
    exec(exercise.solution.replace(right, wrong), scope)
    verdict = exercise.check(scope[key.removeprefix("owner-")])
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def test_a_mistake_is_never_the_right_answer():
    for key in BENT:
        exercise = exercises.get(key)
        for trial in exercise.trials(np.random.default_rng(1)):
            for wrong, sentence in trial.mistakes:
                assert wrong.ndim == 4
                assert sentence[0].islower() and sentence.endswith((".", "…", "there."))
        assert exercise.check(solution(exercise)).passed


def test_the_shares_add_up_to_the_gradient():
    rule = solution(exercises.get("owner-shares"))
    layer, x, g = pictures.depthwise()
    held = rule(g, x, layer, 2)
    assert np.array_equal(held.sum(0), loops.grad_weight(g, x, layer)[:, 0])
    assert spoken(held[1, 1]) == spoken(loops.grad_weight(g[1:2], x[1:2], one_image(layer))[1, 0])
