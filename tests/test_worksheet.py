"""Paper exercises: the same bytes for a seed, right answers, good numbers, a clean file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convgrad.__main__ import main
from convgrad.dice import Dice
from convgrad.mutants import MUTANTS
from convgrad.worksheet import LEVELS, TOPICS, worksheet
from convgrad.worksheet.compose import is_pleasant
from convgrad.worksheet.layout import SIZES, height
from convgrad.worksheet.parts import Choices, Line, Listing, Mistake, Question, Table
from convgrad.worksheet.printing import NoBrowser, find_browser
from convgrad.worksheet.spelled import number

ROOT = Path(__file__).resolve().parents[1]
EVERY = [*TOPICS, "all"]
SEEDS = range(200)


def shown(question: Question) -> tuple[Any, ...]:
    """What a reader sees of a question."""
    return question.title, question.text, str(question.given), str(question.asks)


def drawn(topic: str, seeds: range = SEEDS) -> list[Question]:
    """Three questions of each seed, the levels taking turns."""
    return [q for seed in seeds for q in worksheet(topic, seed, seed % 3 + 1, 3).questions]


# ---- seeds -----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes_in_another_process():
    code = (
        "import hashlib; from convgrad.worksheet import worksheet, TOPICS\n"
        "sheets = [worksheet(t, 7, level, 3) for t in [*TOPICS, 'all'] for level in (1, 2, 3)]\n"
        "print(hashlib.sha256(''.join(s.html + s.key for s in sheets).encode()).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashes in ("1", "2")
    }
    assert len(said) == 1


def test_the_dice_fall_as_they_always_did():
    """A change here would change every sheet that was handed out."""
    dice = Dice("convgrad", "bias", 7)
    assert [dice.between(1, 100) for _ in range(6)] == [10, 6, 44, 76, 11, 17]
    assert dice.shuffled("abcd") == ["d", "a", "c", "b"]


def are_distinct(questions: list[Question], sheets: int) -> bool:
    assert len(questions) == 3 * sheets
    seen = [*map(shown, questions)]
    return len({tuple(seen[k : k + 3]) for k in range(0, len(seen), 3)}) == sheets


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("topic", EVERY)
def test_200_seeds_give_200_sheets_whose_answers_are_right(topic):
    """One drawing for both: it takes longer than looking at what was drawn."""
    questions = drawn(topic)
    assert are_distinct(questions, len(SEEDS))
    judge_all(questions)


@pytest.mark.parametrize("topic", EVERY)
def test_other_seeds_give_other_sheets(topic):
    assert are_distinct(drawn(topic, range(20)), 20)


@pytest.mark.slow
@pytest.mark.parametrize("topic", EVERY)
@pytest.mark.parametrize("level", LEVELS)
def test_the_longest_sheet_repeats_nothing_and_begins_with_the_shorter(topic, level):
    longest = worksheet(topic, 3, level, 60)
    assert len({shown(q) for q in longest.questions}) == 60
    assert list(map(shown, worksheet(topic, 3, level, 5).questions)) == list(
        map(shown, longest.questions[:5])
    )
    assert {q.level for q in longest.questions} == {level}


def test_every_kind_of_question_comes():
    kinds = {kind.__name__ for topic in TOPICS.values() for kind in topic.kinds}
    assert {q.kind for q in worksheet("all", 1, 2, 60).questions} == kinds
    assert {q.topic for q in worksheet("all", 1, 2, len(TOPICS)).questions} == set(TOPICS)
    for key, topic in TOPICS.items():
        names = [q.kind for q in worksheet(key, 1, 2, 6).questions]
        assert names[: len(topic.kinds)] == [kind.__name__ for kind in topic.kinds]


# ---- right answers ---------------------------------------------------------------------------


def reads(question: Question) -> list[tuple[tuple[int, int], ...]]:
    """Every (output cell, tap, cell of x) of the geometry, by walking the window."""
    g = question.geometry
    (top, bottom), (left, right) = g.padding
    rows = range(-top, g.H + bottom - g.dilation[0] * (g.KH - 1), g.stride[0])
    cols = range(-left, g.W + right - g.dilation[1] * (g.KW - 1), g.stride[1])
    return [
        ((p, q), (i, j), (up + g.dilation[0] * i, across + g.dilation[1] * j))
        for p, up in enumerate(rows)
        for q, across in enumerate(cols)
        for i in range(g.KH)
        for j in range(g.KW)
    ]


def inside(question: Question, cell: tuple[int, int]) -> bool:
    return 0 <= cell[0] < question.geometry.H and 0 <= cell[1] < question.geometry.W


def lines(question: Question) -> dict[str, Any]:
    return {ask.label: ask.value for ask in question.asks if isinstance(ask, Line)}


def tables(question: Question) -> list[np.ndarray]:
    return [ask.values for ask in question.asks if isinstance(ask, Table)]


def recounted(question: Question) -> None:
    """Asserts the answers of questions without sums."""
    g, walk = question.geometry, reads(question)
    outputs = sorted({output for output, _, _ in walk})
    size = [outputs[-1][0] + 1, outputs[-1][1] + 1] if outputs else []
    counts = np.zeros((g.H, g.W), int)
    for _, _, cell in walk:
        if inside(question, cell):
            counts[cell] += 1
    kind, answer = question.kind, question.answer
    if kind == "output_size":
        assert answer.tolist() == size == list(lines(question).values())
    elif kind == "leftover":
        farthest = [max(cell[axis] for _, _, cell in walk) for axis in (0, 1)]
        edge = g.H + g.padding[0][1] - 1, g.W + g.padding[1][1] - 1
        assert answer.tolist() == [e - f for e, f in zip(edge, farthest, strict=True)]
        assert answer.tolist() == list(lines(question).values())
    elif kind == "which_cell":
        p, q, i, j = question.about["read"]
        (cell,) = (cell for *head, cell in walk if head == [(p, q), (i, j)])
        where = "image" if inside(question, cell) else "padding"
        assert list(lines(question).values()) == [*cell, where] and answer.tolist() == [*cell]
    elif kind in ("input_reads", "fold_counts"):
        assert np.array_equal(tables(question)[0], counts)
    elif kind in ("list_for_tap", "list_for_cell"):
        of_tap = kind == "list_for_tap"
        wanted = question.about["cell"][2:]
        names = {
            f"x[{h},{v}]·g[{p},{q}]" if of_tap else f"w[{i},{j}]·g[{p},{q}]"
            for (p, q), (i, j), (h, v) in walk
            if inside(question, (h, v)) and ((i, j) if of_tap else (h, v)) == wanted
        }
        (listing,) = question.asks
        assert isinstance(listing, Listing)
        assert Counter(listing.entries) == Counter(names)
        assert listing.lines > len(names) == int(answer)
    elif kind == "which_options":
        stride, padding, dilation, rows, cols = lines(question).values()
        given = re.search(
            r"stride = (\d+)`, `padding = (\d+)`, `dilation = (\d+)", question.text[0]
        )
        assert [dilation, padding, stride] == [int(k) for k in given.groups()]
        # as many places as g, spread, has over the padded x, less the taps
        spread = [dilation * (s - 1) + 1 for s in size]
        room = g.H + 2 * padding, g.W + 2 * padding
        result = [(r - s) // stride + 1 for r, s in zip(room, spread, strict=True)]
        assert [rows, cols] == [result[0] - g.KH, result[1] - g.KW]
    elif kind == "who_meets":
        read = {o: (o * g.groups // g.O) for o in question.about["kernels"]}
        per = g.C // g.groups
        assert answer.tolist() == [[k, k * per, k * per + per - 1] for k in read.values()]
        assert lines(question)["numbers in weight"] == g.O * per * g.KH * g.KW
    else:
        assert kind == "how_many"
        one, whole, one_grouped, grouped = lines(question).values()
        assert (one, whole) == (g.C * g.KH * g.KW, g.O * g.C * g.KH * g.KW)
        assert (one_grouped * g.groups, grouped * g.groups) == (one, whole)
        assert answer.tolist() == [one_grouped, grouped]


def by_torch(question: Question) -> dict[str, np.ndarray]:
    """All gradients by PyTorch's autograd, from the arrays that are printed."""
    torch_oracle = pytest.importorskip("torch_oracle")
    x, weight, g = (
        question.arrays[name].astype(np.float64) for name in ("x", "weight", "grad_output")
    )
    answers = torch_oracle.autograd(x, weight, g, question.geometry)
    return {"y": answers.y, "input": answers.grad_input, "weight": answers.grad_weight}


def refolded(question: Question) -> None:
    """Asserts the answers of im2col by PyTorch's own unfold and fold."""
    functional = pytest.importorskip("torch.nn.functional")
    torch = pytest.importorskip("torch")
    g = question.geometry
    options = {"kernel_size": (g.KH, g.KW), "padding": g.padding[0][0], "stride": g.stride}
    if question.kind == "fill_columns":
        x = torch.from_numpy(question.arrays["x"].astype(np.float64))
        result = functional.unfold(x, **options)[0]
    else:
        columns = torch.from_numpy(question.arrays["columns"].astype(np.float64))
        result = functional.fold(columns, (g.H, g.W), **options)[0, 0]
    assert np.array_equal(tables(question)[0], result.numpy())


def recomputed(question: Question) -> None:
    """Asserts the answers of questions with sums."""
    kind, about, answer = question.kind, question.about, question.answer
    if kind in ("fill_columns", "fold_back"):
        return refolded(question)
    if question.topic == "bias":
        g = question.arrays["grad_output"]
        if kind == "shares":
            shares = g.sum(axis=(2, 3))
            assert np.array_equal(answer, [*shares, shares.sum(axis=0)])
            assert np.array_equal(tables(question)[0], answer)
        elif kind == "covered":
            assert answer == g[about["covered"]] == lines(question)["the missing number"]
        else:
            assert answer.tolist() == g.sum(axis=(0, 2, 3)).tolist()
            assert answer.tolist() == list(lines(question).values())
        return None
    right = by_torch(question)
    if kind.endswith("_cell") or kind == "strided_tap":
        value = right[about["target"]][about["cell"]]
        assert answer == value and list(lines(question).values()) == [value]
    elif kind.endswith("_all"):
        assert np.array_equal(tables(question)[0], right[about["target"]][0, 0])
    elif kind.endswith("_missing"):
        array = question.arrays["weight" if about["letter"] == "w" else "grad_output"][0, 0]
        assert answer == array[about["covered"]]
        # the only number that fits: another changes what is known
        factor = np.zeros(2)
        for k in (0, 1):
            other = dict(question.arrays)
            name = "weight" if about["letter"] == "w" else "grad_output"
            other[name] = other[name].copy()
            other[name][(0, 0, *about["covered"])] += k
            moved = by_torch(Question("", (), (), answer, geometry=question.geometry, arrays=other))
            factor[k] = moved[about["target"]][about["cell"]]
        assert factor[0] != factor[1]
    elif kind == "spread_g":
        assert np.array_equal(tables(question)[1], right["weight"][0, 0])
        spread, step = tables(question)[0], question.geometry.stride[0]
        assert np.array_equal(spread[::step, ::step], question.arrays["grad_output"][0, 0])
        assert np.abs(spread).sum() == np.abs(question.arrays["grad_output"]).sum()
    elif kind == "small_change":
        gradient = right["input" if about["letter"] == "x" else "weight"]
        assert answer == gradient[about["cell"]] == lines(question)["growth of L"]
        assert (tables(question)[0] * question.arrays["grad_output"][0, 0]).sum() == answer
    elif kind == "one_block":
        assert np.array_equal(tables(question)[0], right["weight"][about["block"]])
        o, c = about["block"]
        g = question.geometry
        assert lines(question)["channel of x"] == o * g.groups // g.O * (g.C // g.groups) + c
    else:
        assert kind in ("in_weight", "in_input")
        target = about["target"]
        somebody, choices = question.asks
        assert np.array_equal(answer, right[target][0, 0])
        assert np.array_equal(somebody.circled, somebody.values != right[target][0, 0])
        assert choices.options[choices.right] == MUTANTS[about["mutant"]].sentence
    return None


@pytest.mark.oracle
@pytest.mark.parametrize("topic", TOPICS)
def test_every_answer_is_right(topic):
    judge_all(drawn(topic, range(15)))


def judge_all(questions: list[Question]) -> None:
    for question in questions:
        (recomputed if question.arrays else recounted)(question)


def test_a_wrong_answer_would_be_noticed():
    pytest.importorskip("torch")
    for question in worksheet("weight-gradient", 1, 2, 2).questions:
        (ask,) = question.asks
        wrong = replace(
            ask, **({"value": 98} if isinstance(ask, Line) else {"values": 0 * ask.values})
        )
        with pytest.raises(AssertionError):
            recomputed(replace(question, asks=(wrong,)))
    (size,) = worksheet("sizes", 1, 2, 1).questions
    with pytest.raises(AssertionError):
        recounted(replace(size, answer=size.answer + 1))


# ---- numbers fit for paper -------------------------------------------------------------------


@pytest.mark.parametrize("topic", TOPICS)
def test_the_numbers_are_pleasant(topic):
    for question in drawn(topic, range(24)):
        for array in question.arrays.values():
            assert np.abs(array).max() <= 3
            assert question.level > 1 or array.min() >= 0
            assert (array == 0).sum() <= array.size // 4
        assert np.any(question.answer)
        if question.arrays:
            assert all(
                np.abs(values).max() <= 99 for values in [question.answer, *tables(question)]
            )
        for mistake in question.mistakes:
            assert mistake.result.shape == question.answer.shape
            assert not np.array_equal(mistake.result, question.answer), question


def test_a_mistake_that_gives_the_right_answer_is_no_question():
    question = worksheet("weight-gradient", 1, 1, 1).questions[0]
    assert is_pleasant(question)
    assert not is_pleasant(replace(question, mistakes=(Mistake(question.answer, "none"),)))
    assert not is_pleasant(replace(question, answer=np.asarray(0)))
    assert not is_pleasant(replace(question, answer=np.asarray(100)))


@pytest.mark.parametrize("topic", ["weight-gradient", "input-gradient", "stride-dilation"])
def test_the_usual_mistakes_are_those_of_the_named_mutants(topic):
    named = Counter()
    for question in drawn(topic, range(30)):
        for mistake in question.mistakes:
            if mistake.name and "target" in question.about:
                mutant = MUTANTS[mistake.name]
                assert mistake.sentence == mutant.sentence
                target, case = question.about["target"], question.arrays
                second = case["x" if target == "weight" else "weight"]
                result = mutant(case["grad_output"], second, question.geometry)
                cell = question.about.get("cell", (0, 0))
                assert np.array_equal(result[cell], mistake.result)
                named[mistake.name] += 1
    assert len(named) >= 4


def test_the_mistake_to_find_is_the_only_one_that_fits():
    """Among what is offered it is the only one that gives these numbers."""
    for question in drawn("find-the-mistake", range(40)):
        about, (_, choices) = question.about, question.asks
        assert isinstance(choices, Choices)
        given = question.arrays
        second = given["x" if about["target"] == "weight" else "weight"]
        by_sentence = {mutant.sentence: mutant for mutant in MUTANTS.values()}
        fits = [
            np.array_equal(
                by_sentence[option](given["grad_output"], second, question.geometry)[0, 0],
                about["wrong"],
            )
            for option in choices.options
        ]
        assert [k for k, fit in enumerate(fits) if fit] == [choices.right]


def test_numbers_are_written_as_people_write_them():
    assert [number(k) for k in (-3, 0, 12.0, 2.25, -1 / 3)] == ["−3", "0", "12", "9/4", "−1/3"]


# ---- the file --------------------------------------------------------------------------------

VOID = {"meta", "br", "path", "rect", "img", "link", "input", "hr"}


class Reader(HTMLParser):
    """Balanced tags, one heading order, no id twice; remembers tags, texts and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.addresses: list[str] = []
        self.tables: list[Counter[str]] = []

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        for name, value in attributes:
            if name == "id":
                self.ids[value] += 1
            if name in ("src", "href", "action", "data", "srcset", "xlink:href"):
                self.addresses.append(value)
            assert not name.startswith("on"), "no script"
        if tag == "table":
            role = dict(attributes).get("role")
            self.tables.append(Counter({"plain": 1}) if role else Counter())
        elif self.tables and tag in ("th", "caption"):
            self.tables[-1][tag] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("topic", EVERY)
@pytest.mark.parametrize("level", LEVELS)
def test_the_files_are_clean_and_complete(topic, level):
    sheet = worksheet(topic, 5, level, 4)
    for text in (sheet.html, sheet.key):
        reader = Reader()
        reader.feed(text)
        reader.close()
        assert reader.open == [] and max(reader.ids.values()) == 1
        assert reader.tags["h1"] == 1 and reader.tags["h2"] == 4 and reader.tags["main"] == 1
        assert not {"script", "link", "img", "iframe"} & set(reader.tags)
        assert reader.addresses == []
        assert not re.search(r"https?:|url\((?!#squares)|@import", text)
        assert all(t["plain"] or (t["caption"] == 1 and t["th"] >= 2) for t in reader.tables)
        assert f"topic {topic} · seed 5 · level {level} · 4 questions" in text
        assert "`" not in re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    assert sheet.html.count('class="page"') == sheet.pages
    assert sheet.command in sheet.key
    assert ("Remember" in sheet.html) == (level < 3 and topic != "all")


@pytest.mark.parametrize("topic", EVERY)
def test_the_sheet_tells_no_answer_and_the_key_tells_all(topic):
    for level in LEVELS:
        sheet = worksheet(topic, 8, level, 6)
        assert "<b>" not in re.sub(r"<b>Remember</b>", "", sheet.html)
        assert 'class="circled"' not in sheet.html and "☒" not in sheet.html
        assert "Worked out" not in sheet.html and "If a pupil has" not in sheet.html
        assert sheet.key.count("Worked out") == 6
        for question in sheet.questions:
            for ask in question.asks:
                if isinstance(ask, Listing):
                    assert all(f"<b>{entry}</b>" in sheet.key for entry in ask.entries)
                if isinstance(ask, Line):
                    value = number(ask.value) if isinstance(ask.value, int) else ask.value
                    assert f'<b class="filled">{value}</b>' in sheet.key
                if isinstance(ask, Table) and ask.blank is not None:
                    for value in ask.values[ask.blank]:
                        assert f'<td class="blank"><b>{number(value)}</b></td>' in sheet.key
            for mistake in question.mistakes:
                assert not mistake.name or mistake.name in sheet.key


def test_a_sum_is_spelled_out():
    (question,) = worksheet("weight-gradient", 7, 1, 1).questions
    names, numbers = question.working
    x, g = question.arrays["x"][0, 0], question.arrays["grad_output"][0, 0]
    pairs = re.findall(r"x\[(\d),(\d)\]·g\[(\d),(\d)\]", names)
    values = [(x[int(h), int(v)], g[int(p), int(q)]) for h, v, p, q in pairs]
    assert numbers.partition(" = ")[2] == (
        " + ".join(f"{a}·{b}" for a, b in values) + f" = {sum(a * b for a, b in values)}"
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_every_question_has_room_on_a_page(topic):
    most = SIZES["page-height"] - SIZES["head"] - 20
    assert max(height(question) for question in drawn(topic, range(40))) < most


def test_a_page_is_filled_before_the_next_begins():
    assert worksheet("weight-gradient", 7, 1, 4).pages == 2
    assert worksheet("weight-gradient", 7, 1, 1).pages == 1
    assert worksheet("sizes", 7, 1, 3).pages == 1


# ---- what is not understood ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"topic": "weights"}, "no topic 'weights': use one of forward, sizes"),
        ({"seed": -1}, "seed is -1: needed is a whole number, 0 or more"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"level": 4}, "level is 4: needed is a whole number, from 1 to 3"),
        ({"level": True}, "level is True"),
        ({"count": 0}, "count is 0: needed is a whole number, from 1 to 60"),
        ({"count": 61}, "count is 61"),
    ],
)
def test_what_is_not_understood_is_said(arguments, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        worksheet(**arguments)


# ---- the command -----------------------------------------------------------------------------


def test_the_command_writes_sheet_and_key(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["worksheet", "--topic", "bias", "--seed", "7", "--level", "2", "--count", "3"]
    assert main([*words, "--out", "hand/outs"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "worksheet-bias-7.html: 3 questions on 2 pages" in said
    sheet = worksheet("bias", 7, 2, 3)
    folder = tmp_path / "hand" / "outs"
    assert sorted(path.name for path in folder.iterdir()) == [
        "worksheet-bias-7-key.html",
        "worksheet-bias-7.html",
    ]
    assert (folder / "worksheet-bias-7.html").read_bytes() == sheet.html.encode()
    assert (folder / "worksheet-bias-7-key.html").read_bytes() == sheet.key.encode()
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "worksheet-bias-7.html").is_file()


def test_the_command_lists_the_topics(capsys):
    assert main(["worksheet", "--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == EVERY


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "weights"], "there is no topic 'weights': use one of"),
        (["--level", "9"], "level is 9: needed is a whole number, from 1 to 3"),
        (["--count", "0"], "count is 0"),
        (["--seed", "-2"], "seed is -2"),
        (["--out", "taken/inside"], "--out taken/inside: no folder can be made there"),
        (["--format", "odt"], "invalid choice: 'odt'"),
    ],
)
def test_what_the_command_cannot_do_is_said(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    assert main(["worksheet", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_without_a_browser_it_is_said_how_to_print(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr("convgrad.worksheet.printing._NAMES", ("chromium", "google-chrome"))
    assert main(["worksheet", "--format", "pdf", "--seed", "7", "--topic", "bias"]) == 2
    err = capsys.readouterr().err
    assert "there is no Chromium, Chrome or Edge on the PATH" in err
    assert "convgrad worksheet --topic bias --seed 7 --level 1 --count 4" in err
    assert "print it there" in err
    assert not list(tmp_path.iterdir())


def test_a_browser_that_is_named_must_be_there(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(NoBrowser, match="CHROMIUM=/nowhere/chromium is no program"):
        find_browser()


def test_a_browser_that_prints_nothing_is_told_of(tmp_path, capsys, monkeypatch):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'cannot open display' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHROMIUM", str(program))
    assert main(["worksheet", "--format", "pdf"]) == 2
    assert "did not print: cannot open display" in " ".join(capsys.readouterr().err.split())


def test_the_page_on_the_command_tells_of_numbers_that_come():
    page = (ROOT / "book" / "command.md").read_text("utf-8")
    wrong, right = re.search(r"a (\d+) where\s+(\d+) is right", page).groups()
    first = worksheet("weight-gradient", 7).questions[0]
    assert int(right) == first.answer
    names = {m.name for m in first.mistakes if m.result == int(wrong)}
    assert {"wgrad_reversed", "wgrad_g_turned"} <= names
