"""Formulas, lines, bugs, pictures, tests: right answers pass, mistakes are named, none raises."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from test_exercises import ALL, by_key, run, solution

from convgrad import exercises
from convgrad.exercises import BreakTheGradient, Bug, Formula, Line, Mend, get
from convgrad.exercises.breaking import FAMILIES
from convgrad.exercises.expressions import NotAFormula, NoValue, compute, parse
from convgrad.exercises.lines import NotALine, require_line
from convgrad.mutants import MUTANTS

FORMULAS = [each for each in ALL if isinstance(each, Formula)]
LINES = [each for each in ALL if isinstance(each, Line)]
BUGS = [each for each in ALL if isinstance(each, Bug)]
MENDS = [each for each in ALL if isinstance(each, Mend)]
PICTURES = [each for each in ALL if each.kind == "picture"]
TESTS = [each for each in ALL if isinstance(each, BreakTheGradient)]


def test_there_are_a_handful_of_each_and_every_part_has_some():
    parts = {
        1: ("sliding_window", "stride_padding_dilation"),
        2: ("one_product", "weight_gradient", "input_gradient", "bias_and_checks"),
        3: ("im2col", "without_loops", "memory_and_speed"),
        4: ("grouped", "grouped_weight_gradient"),
        5: ("convolution_backward", "autograd_function", "approximate_gradients", "museum"),
        6: ("owners", "implicit_gemm", "split_k", "where_time_goes", "many_devices"),
    }
    for some in (FORMULAS, LINES, BUGS, PICTURES):
        assert len(some) >= 5
    new = {each.chapter for each in (*FORMULAS, *LINES, *BUGS, *PICTURES, *TESTS)}
    for part, chapters in parts.items():
        assert len(new & set(chapters)) >= 2, part


# ---- formulas --------------------------------------------------------------------------------

LETTERS = ("H", "KH", "stride", "padding")
VALUES = {"H": 7, "KH": 3, "stride": 2, "padding": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(H - KH) // stride + 1", 3),
        ("OH = (H − KH) // stride + 1", 3),
        ("H·KH × 2", 42),
        ("H / stride", 3.5),
        ("floor(H / stride)", 3),
        ("ceil(H/stride)", 4),
        ("H % stride", 1),
        ("KH^2", 9),
        ("KH**2 + stride²", 13),
        ("min(H, KH, stride)", 2),
        ("abs(KH - H)", 4),
        ("-(H)", -7),
        ("0.5*H", 3.5),
        ("$H + 2*padding$", 9),
    ],
)
def test_a_formula_is_read_as_people_write_it(text, value):
    assert compute(parse(text, LETTERS), VALUES) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2padding", "Write a sign between any two things"),
        ("2(H)", "sign between a number and a bracket"),
        ("H(KH)", r"Write the sign behind `H`"),
        ("(H", "close every bracket"),
        ("h + 1", "`h` is written `H`"),
        ("OH + 1", "`OH` is not among the letters of this formula: `H`"),
        ("__import__('os').system('ls')", "Only letters"),
        ("H.real", "Only letters"),
        ("H if H else 0", "Only letters"),
        ("[H]", "Only letters"),
        ("lambda: 0", "Only letters"),
        ("H == KH", "Only letters"),
        ("floor(H, KH)", "Only letters"),
        ("min(H)", "Only letters"),
        ("min(*H)", "Only letters"),
        ("floor(x=H)", "Only letters"),
        ("'H'", "Only letters"),
        ("True", "Only letters"),
        ("9**9**9", "Only letters|Powers"),
        ("H**KH", "Only letters"),
        ("9**99", "Powers go up"),
        ("H**-1", "Only letters|Powers"),
        ("1e999", "too large"),
        ("1" * 40, "too large"),
        ("H" + "+H" * 200, "signs long"),
        ("(" * 120 + "H", "bracket"),
        ("-" * 100 + "H", "nested too deep"),
        ("`H`", "Write a sign"),
        ("H\nKH", "Write a sign"),
        ("H := 3", "Write a sign"),
        ("", "cannot be read"),
        ("\x00", "cannot be read"),
    ],
)
def test_what_is_no_formula_is_refused_in_a_sentence(text, words):
    with pytest.raises(NotAFormula, match=words):
        parse(text, LETTERS)


def test_a_formula_may_have_no_value():
    with pytest.raises(NoValue, match="divides by 0"):
        compute(parse("H // (padding - 1)", LETTERS), VALUES)
    with pytest.raises(NoValue, match="too large"):
        compute(parse("((H**6)**6)**6", LETTERS), VALUES)
    message = get("geometry-formula-smallest").check("OH // (padding - padding)").message
    assert "your formula divides by 0, and" in message


@by_key(FORMULAS)
def test_a_known_wrong_formula_is_named_with_a_layer_and_both_values(exercise):
    assert len(exercise.wrong_formulas) >= 4
    for seed in (None, "ada"):
        mine = exercise if seed is None else exercise.drawn(seed)
        for wrong, sentence in exercise.wrong_formulas:
            verdict = mine.check(wrong)
            assert not verdict.passed
            assert verdict.message.endswith(sentence), (wrong, verdict.message)
            found = re.match(
                r"For (.*) your formula (?:gives ([−\d.e+]+)|divides by 0), and ([−\d.e+]+) is",
                verdict.message,
            )
            assert found and found[2] != found[3]
            values = dict(pair.split(" = ") for pair in found[1].split(", "))
            assert list(values) == list(exercise.letters)


@by_key(FORMULAS)
def test_a_formula_may_be_written_in_other_ways(exercise):
    text = run(exercise.solution)["answer"]
    for same in (f"0 + ({text})", f"({text})*3/3", f"X = {text}", text.replace("*", "·")):
        assert exercise.check(same).passed, same
    for off in (f"{text} + 1", f"-({text}) - 1", "0*" + next(iter(exercise.letters))):
        verdict = exercise.check(off)
        assert not verdict.passed
        assert text not in verdict.message


@by_key(FORMULAS)
def test_a_formula_is_tried_where_all_its_letters_differ(exercise):
    settings = list(exercise.settings())
    for letter in exercise.letters:
        assert len({each.values[letter] for each in settings}) > 1
    assert [each.values for each in exercise.settings()] == [each.values for each in settings]
    drawn = [each.values for each in exercise.drawn("ada").settings()]
    assert drawn != [each.values for each in settings]


@by_key(FORMULAS)
def test_the_prompt_names_the_letters(exercise):
    for letter, meaning in exercise.letters.items():
        assert f"`{letter}` ({meaning})" in exercise.prompt


def test_what_is_no_text_is_no_formula():
    for answer in (3, None, ["H"], b"H", object(), np.array("H")):
        assert (
            "A formula is asked for, as text"
            in get("geometry-formula-smallest").check(answer).message
        )
    assert get("geometry-formula-smallest").check("...").untouched


# ---- lines -----------------------------------------------------------------------------------


@by_key(LINES)
def test_the_line_that_stands_there_is_right(exercise):
    verdict = exercise.check(exercise.listing.line)
    assert verdict.passed
    assert verdict.message == exercise.explanation
    assert exercise.listing.line not in exercise.prompt
    assert exercise.check(f"  {exercise.listing.line}  # with a word behind it").passed
    assert exercise.drawn("ada").check(exercise.listing.line).passed


@by_key(LINES)
def test_a_function_is_an_answer_too(exercise):
    whole = exercise.listing.function(exercise.listing.line)
    assert exercise.check(whole).passed
    assert not exercise.check(lambda *operands: np.zeros((2, 2))).passed


@pytest.mark.parametrize(
    ("key", "line", "words"),
    [
        (
            "product-line",
            "grad[at] = weight[o, c, i, j] * grad_output[n, o, p, q]",
            "lost products",
        ),
        ("product-line", "grad[at] += weight[o, c, i, j]", "On x "),
        ("product-line", "grad[at] += weight[o, c, j, i] * grad_output[n, o, p, q]", "On x "),
        ("weight-line", "return taps.swapaxes(0, 1)", "Crop"),
        ("weight-line", "return taps[:, :, : geometry.KH, : geometry.KW]", "channel|axes|shape"),
        ("input-line", "grad_padded[:, :, rows, cols] = products[..., i, j]", "On x "),
        ("unfold-line", "columns = windows(x, geometry)", "On x "),
        ("views-line", "return every[:, :, ::dh, ::dw, ::sh, ::sw]", "shape"),
        ("views-line", "return every", "shape"),
        ("grouped-line", "y[:, o] = windows.forward(x, weight[o], block)", "raised `"),
        ("onecall-line", "images = images.transpose(2, 0, 1, 3, 4)", "On x "),
        ("museum-line", "folded[k] = line", "On x "),
        ("museum-line", "folded[k] -= line", "On x "),
        ("museum-line", "1 / 0", r"raised `ZeroDivisionError`"),
        ("museum-line", "folded[k] += nothing", "knows no `nothing`"),
        ("museum-line", "folded[k] += line\nfolded[k] += line", "One line is asked for"),
        ("museum-line", "import os", "One line is asked for that computes"),
        ("museum-line", "for k in home: pass", "One line is asked for|Python cannot"),
        ("museum-line", "folded[k] += (line", "Python cannot read"),
        ("museum-line", "pass", "computes something"),
        ("museum-line", "break", "computes something"),
        ("museum-line", "folded = lambda: 0", "without a power, a loop or a function"),
        ("museum-line", "folded[k] += sum([line for _ in range(10)])", "without a power"),
        ("museum-line", "folded[k] += 9**9**9", "without a power"),
        ("museum-line", "folded[k] += np.ones(10**3)", "without a power"),
        ("museum-line", "folded[k] += np.ones(1000000000)", "too large"),
        ("museum-line", "folded[k] += line.__class__", "`__class__` is not needed"),
        ("museum-line", "np.save('x', line)", "`save` is not needed"),
        ("museum-line", "np.lib.stride_tricks.as_strided(line)", "is not needed"),
        ("museum-line", "line.tofile('x')", "`tofile` is not needed"),
        ("museum-line", "open('x', 'w')", "knows no `open`"),
        ("museum-line", "exec('1')", "knows no `exec`"),
        ("museum-line", "__import__('os')", "knows no `__import__`"),
        ("museum-line", "(x := line)", "without a power, a loop"),
        ("museum-line", "x" * 300, "One line is asked for"),
        ("museum-line", "\x00", "Python cannot read"),
        ("museum-line", "(" * 150, "Python cannot read"),
    ],
)
def test_a_wrong_line_is_told_why(key, line, words):
    verdict = get(key).check(line)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message
    assert get(key).listing.line not in verdict.message


def test_a_line_changes_nothing_but_its_own_function(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = dict(vars(exercises))
    for line in ("products = 3", "geometry = None", "grad_padded = products", "return products"):
        assert not get("input-line").check(line).passed
    assert vars(exercises) == before
    assert list(tmp_path.iterdir()) == []
    assert get("input-line").check(get("input-line").listing.line).passed


def test_nothing_entered_is_no_line():
    for nothing in ("...", "", "   ", "…"):
        assert get("input-line").check(nothing).untouched


def test_a_line_with_a_deep_tree_is_refused_not_followed():
    with pytest.raises(NotALine):
        require_line("-" * 190 + "1" + "\n", frozenset())


# ---- bugs ------------------------------------------------------------------------------------


@by_key(BUGS)
def test_the_listing_is_wrong_and_one_line_mends_it(exercise):
    listing = exercise.repair.listing
    assert exercise.listing in exercise.prompt
    assert listing.line not in exercise.prompt
    assert listing.line != exercise.wrong_line
    assert not exercise.repair.check(listing.function(exercise.wrong_line)).passed
    assert exercise.repair.check(listing.function(listing.line)).passed
    shown = re.findall(r"^ *(\d+)  ?(.*)$", exercise.listing, re.MULTILINE)
    assert [int(number) for number, _ in shown] == list(range(1, len(listing.lines) + 1))
    assert shown[exercise.answer - 1][1].strip() == exercise.wrong_line
    assert max(len(text) for _, text in shown) <= 88


@by_key(BUGS)
def test_every_other_line_gets_a_word(exercise):
    count = len(exercise.repair.listing.lines)
    said = [exercise.check(k).message for k in range(1, count + 1) if k != exercise.answer]
    assert len(exercise.about) >= 3
    assert set(exercise.about) <= set(range(1, count + 1)) - {exercise.answer}
    for number, sentence in exercise.about.items():
        assert exercise.check(number).message == sentence
        assert exercise.check(f"line {number}").message == sentence
    assert all(f"ine {exercise.answer} " not in each for each in said)
    for beyond in (0, count + 1, -1, 1.5, float("nan"), True, "line", None, 1e40):
        assert not exercise.check(beyond).passed


@by_key([each for each in BUGS if each not in MENDS])
def test_a_line_may_be_named_in_any_reasonable_way(exercise):
    for form in (
        exercise.answer,
        str(exercise.answer),
        f" Line {exercise.answer}. ",
        float(exercise.answer),
        np.int64(exercise.answer),
        np.array(exercise.answer),
    ):
        assert exercise.check(form).passed


@by_key(MENDS)
def test_a_mend_needs_both(exercise):
    number, line = exercise.answer, exercise.repair.listing.line
    for form in ((number, line), [number, line], {number: line}, (str(number), f" {line} # so")):
        assert exercise.check(form).passed
    for half, words in (
        (number, "That is the line"),
        ((number, exercise.wrong_line), "stands there as before"),
        ((number, f" {exercise.wrong_line}  # mended"), "stands there as before"),
        ((number, "import os"), "One line is asked for"),
        ((number, 3), "Two things are asked for"),
        ((number, "grad = grad"), "On x "),
        ((number, "return None"), "returns nothing yet|On x "),
        ((1, line), "Line 1"),
        ((1, 2, 3), "Two things are asked for|number of a line"),
    ):
        verdict = exercise.check(half)
        assert not verdict.passed
        assert re.search(words, verdict.message), (half, verdict.message)
        assert line not in verdict.message
    assert exercise.check((number, "...")).untouched


# ---- pictures --------------------------------------------------------------------------------


@by_key(PICTURES)
def test_a_picture_is_drawn_and_told_without_its_answer(exercise):
    pytest.importorskip("matplotlib")
    for mine in (exercise, exercise.drawn("ada"), exercise.drawn("emmy")):
        figure = mine.figure()
        assert figure.get_size_inches().max() < 12
        assert mine.alt.endswith(".")
        assert len(mine.alt) > 60
        assert "*" not in mine.alt and "`" not in mine.alt
    if np.size(exercise.answer) == 1:  # of a grid single numbers may well be seen
        assert f"{exercise.answer:g}" not in re.findall(r"\d+", exercise.prompt)


@by_key(PICTURES)
def test_a_page_says_of_a_picture_what_the_bank_says(exercise):
    pytest.importorskip("matplotlib")
    from pages import PAGES, alt_text

    call = f'exercises.get("{exercise.key}").figure()'
    if call in PAGES[exercise.chapter].read_text("utf-8"):
        assert alt_text(exercise.chapter, call) == exercise.alt


def test_a_picture_shows_what_its_words_say():
    pytest.importorskip("matplotlib")
    words = get("input-picture").figure().words()
    listed = re.findall(r"hold ([^;.]*)", get("input-picture").alt)
    drawn = [word for word in words if re.fullmatch(r"−?\d+", word)]
    assert [n for row in listed for n in re.findall(r"−?\d+", row)] == drawn
    right, found = re.findall(r"row by row: (.*?)\.", get("museum-picture").alt)
    numbers = get("museum-picture").figure().words()
    for row in (right + "; " + found).split("; "):
        assert set(re.findall(r"−?\d+", row)) <= set(numbers)


# ---- tests -----------------------------------------------------------------------------------


def test_every_wrong_gradient_has_its_family():
    named = [name for names in FAMILIES.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) == {name for name, each in MUTANTS.items() if each.target != "bias"}


@by_key(TESTS)
def test_the_score_is_the_share_that_is_noticed(exercise):
    verdict = exercise.check(solution(exercise))
    noticed, count = map(int, re.search(r"notices (\d+) of (\d+)", verdict.message).groups())
    assert verdict.passed
    assert verdict.score == pytest.approx(noticed / count)
    assert verdict.score >= exercise.share
    for family, names in exercise.families().items():
        assert re.search(rf"{family} \d+ of {len(names)}", verdict.message)
    blind = exercise.check(lambda rule: False)
    assert (blind.passed, blind.score) == (False, 0.0)
    assert f"notices 0 of {count}" in blind.message


@by_key(TESTS)
def test_a_false_alarm_counts_for_nothing(exercise):
    for alarmed in (lambda rule: True, lambda rule: rule(), lambda rule: 1 / 0):
        verdict = exercise.check(alarmed)
        assert not verdict.passed
        assert verdict.score == 0.0
        assert verdict.message.startswith("A false alarm")


def test_a_test_of_rounded_numbers_alarms_and_is_told_why():
    def notices(grad_weight):
        from convgrad import loops
        from convgrad.checks import random_geometry

        rng = np.random.default_rng(0)
        for _ in range(10):
            geometry = random_geometry(rng)
            x, g = rng.normal(size=geometry.x_shape), rng.normal(size=geometry.output_shape)
            right = loops.grad_weight(g, x, geometry)
            if not np.array_equal(grad_weight(g, x, geometry), right):
                return True
        return False

    message = get("museum-break").check(notices).message
    assert "differ by rounding" in message


def test_a_test_of_ones_notices_less():
    from convgrad import loops
    from convgrad.checks import random_geometry, random_operands

    def notices(grad_weight, upstream=np.ones_like):
        rng = np.random.default_rng(0)
        for _ in range(30):
            geometry = random_geometry(rng)
            _, x, _, g = random_operands(geometry, rng)
            g = upstream(g)
            right = loops.grad_weight(g, x, geometry)
            assert np.array_equal(grad_weight(g, x, geometry), right)

    ones = get("museum-break").check(notices)
    random = get("museum-break").check(lambda rule: notices(rule, lambda g: g))
    assert 0.3 < ones.score < random.score
    assert "turned or exchanged 3 of 6" in ones.message
    assert "turned or exchanged 6 of 6" in random.message
    assert "lets pass" in ones.message


def test_a_list_of_tests_notices_what_any_of_them_does():
    exercise = get("check-break")

    def shape_of(grad_input):
        from convgrad import ConvGeometry

        geometry = ConvGeometry(C=1, H=6, W=5, O=1, KH=3, KW=3, stride=2, dilation=2)
        found = grad_input(np.ones(geometry.output_shape), np.ones(geometry.weight_shape), geometry)
        return found.shape != geometry.x_shape

    one = exercise.check(shape_of).score
    both = exercise.check([shape_of, solution(exercise)]).score
    assert 0 < one < both
    assert exercise.check([]).message.startswith("A test is asked for")
    assert exercise.check([shape_of, 3]).message.startswith("A test is asked for")


def _hog(rule):
    while True:
        try:
            rule()
        except Exception:
            continue


def _exits(rule):
    raise SystemExit(1)


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (_hog, "more than 3000 times"),
        (_exits, "A false alarm: on a gradient that is right your test raised `SystemExit`"),
        (lambda rule: "yes", "returns something of type `str`"),
        (lambda rule: np.array([True, False]), "returns something of type `ndarray`"),
        (lambda rule: 1, "returns something of type `int`"),
        (lambda rule: None, "notices 0 of"),
        (lambda: True, "A false alarm"),
        (3, "A test is asked for"),
    ],
)
def test_whatever_a_test_does_becomes_a_sentence(test, words):
    verdict = get("check-break").check(test)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


def test_a_slow_test_is_ended(monkeypatch):
    from convgrad.exercises import breaking

    monkeypatch.setattr(breaking, "_WHOLE_TIME", 0.2)
    verdict = get("check-break").check(lambda rule: time.sleep(0.05))
    assert "takes too long" in verdict.message
    assert not verdict.passed


def test_an_interruption_ends_a_test_too():
    def notices(rule):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get("check-break").check(notices)
