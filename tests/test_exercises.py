"""The exercise bank: right answers pass, mistakes are named, nothing makes ``check`` raise."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from test_checks import HOSTILE

import convgrad
from convgrad import exercises, loops
from convgrad.exercises import (
    Asked,
    Exercise,
    Mend,
    Verdict,
    WrongAnswer,
    all_exercises,
    get,
    sliding_window,
    weight_gradient,
)
from convgrad.exercises.owners import ProgramFunction
from convgrad.exercises.tensors import TensorFunction
from convgrad.mutants import MUTANTS

ALL = all_exercises()
ASKED = [each for each in ALL if isinstance(each, Asked) and not isinstance(each, Mend)]
WRITTEN = [each for each in ALL if each.kind == "function"]


def by_key(some: list[Exercise] | tuple[Exercise, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exercise", some, ids=lambda exercise: exercise.key)


@pytest.fixture(autouse=True)
def libraries(request: pytest.FixtureRequest) -> None:
    """An exercise on tensors can be tried where there is PyTorch."""
    params = getattr(request.node, "callspec", None)
    if params and isinstance(params.params.get("exercise"), TensorFunction):
        pytest.importorskip("torch")


def run(source: str) -> dict:
    """The names that a cell of the book would have after running this."""
    names = {"np": np} | {name: getattr(convgrad, name) for name in convgrad.__all__}
    if "F." in source:
        names["F"] = pytest.importorskip("torch.nn.functional")
    if "torch." in source:
        names["torch"] = pytest.importorskip("torch")
    exec(source, names)
    return names


def solution(exercise: Exercise):
    """The answer that the exercise's own solution gives."""
    names = run(exercise.solution)
    if exercise.kind not in ("function", "test"):
        return names["answer"]
    return names[re.search(r"def (\w+)", exercise.starter)[1]]


# ---- the bank --------------------------------------------------------------------------------


def test_keys_are_those_the_docstring_lists():
    rows = re.findall(r"^    ([a-z]+-\S+) +(\w+) +(\d) ", exercises.__doc__, re.M)
    assert rows[0][0] == "window-first-numbers"
    assert {row[0] for row in rows} == {exercise.key for exercise in ALL}
    for key, kind, level in rows:
        assert (get(key).kind, str(get(key).level)) == (kind, level)


@pytest.mark.parametrize("chapter", dict.fromkeys(exercise.chapter for exercise in ALL))
def test_every_chapter_has_all_levels_and_kinds(chapter):
    some = all_exercises(chapter)
    assert len(some) >= 6
    assert {exercise.level for exercise in some} == {1, 2, 3}
    assert {exercise.kind for exercise in some} >= {"number", "grid", "choice", "function"}
    assert all(exercise.chapter == chapter for exercise in some)


def test_an_unknown_key_is_refused_with_the_known_ones():
    with pytest.raises(KeyError, match="weight-one-tap"):
        get("weight-one-tab")


def test_an_unknown_chapter_is_refused_with_the_known_ones():
    with pytest.raises(KeyError, match=r"there are sliding_window, .*weight_gradient"):
        all_exercises("sliding-window")


@by_key(ALL)
def test_it_is_complete(exercise):
    assert exercise.title
    assert exercise.prompt
    assert len(exercise.hints) >= 2
    for text in (exercise.prompt, *exercise.hints):
        # arrays and listings stand at the end as they are
        assert re.sub(r"```.*?```", ".", text, flags=re.DOTALL).strip()[-1] in ".?"
    for number, hint in enumerate(exercise.hints, start=1):
        assert exercise.hint(number) == hint
    for beyond in (99, 0, "1"):
        assert str(len(exercise.hints)) in exercise.hint(beyond)
    assert exercise.starter in exercise._repr_markdown_()
    assert "..." in exercise.starter


# ---- right answers ---------------------------------------------------------------------------


@by_key(ALL)
def test_its_solution_passes(exercise):
    verdict = exercise.check(solution(exercise))
    assert verdict.passed, verdict
    exercise.require(solution(exercise))


@by_key(ASKED)
def test_the_answer_the_page_gets_passes(exercise):
    verdict = exercise.check(exercise.answer)
    assert verdict.passed
    assert verdict.message == exercise.explanation
    if exercise.kind != "choice":
        assert exercise.check(np.asarray(exercise.answer, np.float32)).passed


@by_key([each for each in ASKED if each.kind == "grid"])
def test_a_grid_may_come_in_any_reasonable_form(exercise):
    table = np.asarray(exercise.answer)
    forms = [table, table.tolist(), table[None, None], np.asfortranarray(table), table.astype(int)]
    if len(table) == 1:
        forms += [table[0], tuple(table[0])]
    for form in forms:
        assert exercise.check(form).passed


@by_key([each for each in ASKED if each.kind == "choice"])
def test_a_choice_may_be_given_by_place_letter_or_text(exercise):
    place = exercise.answer
    letter = "abcd"[place]
    forms = [place, np.int64(place), np.array(place), f"{place}", letter, letter.upper()]
    for answer in (*forms, f"{letter})", f" {letter}. ", exercise.choices[place]):
        assert exercise.check(answer).passed
    for answer in (99, -1, "z", "", "99", "-1", "²", 1.5, True, np.array(True), np.array([place])):
        verdict = exercise.check(answer)
        assert not verdict.passed
        assert "One of the choices" in verdict.message


# ---- mistakes --------------------------------------------------------------------------------


@by_key(ASKED)
def test_known_mistakes_get_their_sentence(exercise):
    assert len(exercise.mistakes) >= 3
    for wrong, message in exercise.mistakes:
        verdict = exercise.check(wrong)
        assert not verdict.passed
        assert verdict.message == message
        assert message.endswith(".") or message.endswith("?")


@by_key([each for each in ASKED if each.kind == "number"])
def test_another_wrong_number_is_not_told_the_right_one(exercise):
    for wrong, message in [(exercise.answer + 1000, ""), *exercise.mistakes]:
        told = exercise.check(wrong).message
        assert told.startswith(message)
        assert f"{exercise.answer:g}" not in re.findall(r"-?\d+(?:\.\d+)?", told)


@by_key([each for each in ASKED if each.kind == "grid"])
def test_a_wrong_grid_is_told_where_but_not_what(exercise):
    table = np.array(exercise.answer, dtype=float)
    table[-1, -1] += 1000
    told = exercise.check(table).message
    assert f"row {len(table) - 1}, column {table.shape[1] - 1}" in told
    assert f"{table[-1, -1]:g}" in told
    assert f"{exercise.answer[-1, -1]:g}" not in re.findall(
        r"(?<=have )\S+|(?<=right is )\S+", told
    )
    table[0, 0] = -77
    assert "row 0, column 0" in exercise.check(table).message


def test_where_most_of_a_large_grid_is_wrong_one_right_number_is_told():
    exercise = get("window-uses")
    message = exercise.check(np.full((5, 5), 7.0)).message
    assert message.endswith("row 0, column 0, where you have 7 and 1 belongs.")
    table = np.array(exercise.answer)
    table[0, :4] = 7
    assert "belongs" not in exercise.check(table).message
    assert "belongs" not in get("window-shape").check([1, 1]).message, "it has two cells"


def test_a_grid_that_is_a_gradient_gets_the_cause_in_words():
    exercise = get("weight-one-pixel")
    assert "sign" in exercise.check(-exercise.answer).message
    assert "times the right one" in exercise.check(3 * exercise.answer).message


def test_an_unfilled_grid_is_not_called_wrong():
    half = [[1, 2, 3, 4], [..., 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, ...]]
    assert "still `...`" in get("weight-one-pixel").check(half).message


def test_the_tap_asked_for_cannot_be_taken_for_another():
    exercise, taps = get("weight-one-tap"), weight_gradient._grad_weight("B")[0, 0]
    i, j = weight_gradient._I, weight_gradient._J
    assert exercise.answer == taps[i, j]
    for other in ((j, i), (i, j - 1), (0, 0)):
        assert taps[other] != exercise.answer
        assert exercise.check(taps[other]).message.startswith(
            f"That is tap ({other[0]}, {other[1]})"
        )


def test_a_sum_is_blind_to_one_choice_only_whatever_the_sizes():
    names = weight_gradient._BLIND_CHOICES
    passes = {name: [] for name in names}
    for N, stride, H in itertools.product((1, 2), (1, 2), (6, 7)):
        geometry = convgrad.ConvGeometry(N=N, C=1, H=H, W=H, O=1, KH=3, KW=3, stride=stride)
        x = np.random.default_rng(0).integers(-4, 5, geometry.x_shape).astype(float)
        ones = np.ones(geometry.output_shape)
        right = loops.grad_weight(ones, x, geometry)
        for name in names:
            passes[name].append(np.array_equal(MUTANTS[name](ones, x, geometry), right))
    (blind,) = (name for name in names if all(passes[name]))
    assert names.index(blind) == get("weight-blind-sum").answer


def test_the_four_suspects_leave_four_grids():
    grids = [weight_gradient._mutated(name, "B") for name in weight_gradient._LEFT_BY.values()]
    for one, other in itertools.combinations(grids, 2):
        assert not np.array_equal(one, other)
    asked = grids[get("weight-what-happened").answer][0, 0]
    for row in asked.astype(int):
        assert "  ".join(f"{n:2d}" for n in row) in get("weight-what-happened").prompt
    suspect = grids[3][0, 0]
    assert (asked[0, 0], suspect[0, 0], asked[0, 1], suspect[0, 1]) == (9, 9, 2, 11)


def test_the_size_asked_for_needs_every_argument():
    geometry, exercise = sliding_window._STEEP, get("window-shape")
    bent = ({"stride": 1}, {"dilation": 1}, {"padding": 0})
    sizes = [(geometry.OH, geometry.OW)]
    sizes += [(b.OH, b.OW) for b in (replace(geometry, **each) for each in bent)]
    assert len(set(sizes)) == 4
    assert exercise.check(sizes[0])
    for size, word in zip(sizes[1:], ("stride", "dilation", "border"), strict=True):
        assert word in exercise.check(size).message


# ---- functions -------------------------------------------------------------------------------


@by_key(WRITTEN)
def test_the_starter_is_not_an_answer_yet(exercise):
    names = run(exercise.starter)
    verdict = exercise.check(names[re.search(r"def (\w+)", exercise.starter)[1]])
    assert not verdict.passed
    assert "returns nothing yet" in verdict.message


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, mutant in MUTANTS.items()
        if mutant.target == "weight"
        and mutant.killed_by in ("adjoint", "shape")
        # these show only with groups, or with a padding mode other than zeros, or a tiny image
        and name not in ("group_interleaved", "depthwise_mod", "wgrad_zero_border")
        and name != "kernel_clipped_to_input"
    ],
)
def test_a_function_with_a_known_mistake_does_not_pass(name):
    for _ in range(3):  # new sizes and numbers each time
        verdict = get("weight-by-convolution").check(MUTANTS[name].function)
        assert not verdict.passed
        assert verdict.message.startswith("On x ")


def test_the_first_trial_that_fails_says_what_is_missing():
    def without_stride(x, weight, geometry):
        y = np.zeros(geometry.output_shape)
        plain = convgrad.conv2d(x, weight, padding=geometry.padding, groups=geometry.groups)
        rows, cols = (min(a, b) for a, b in zip(y.shape[2:], plain.shape[2:], strict=True))
        y[:, :, :rows, :cols] = plain[:, :, :rows, :cols]
        return y

    message = get("window-forward").check(without_stride).message
    assert ", stride 2: " in message
    assert "as if the stride were 1" in message


def test_flipped_kernel_is_named():
    slide = solution(get("window-slide"))
    message = get("window-slide").check(lambda x, w: slide(x, w[::-1, ::-1])).message
    assert "kernel turned by 180°" in message


def test_a_mean_over_the_batch_is_named():
    rule = solution(get("weight-by-taps"))
    message = get("weight-by-taps").check(lambda g, x, k: rule(g, x, k) / len(x)).message
    assert "mean over the 3 images" in message


def test_every_check_draws_new_numbers():
    seen = []

    def spy(x, w):
        seen.append((x.shape, x.tobytes()))
        return np.zeros((x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1))

    for _ in range(3):
        get("window-slide").check(spy)
    assert len(set(seen)) == len(seen) == 3


def test_grad_output_is_random_never_ones():
    def spy(grad_output, x, kernel_size):
        assert np.unique(grad_output).size > 2
        assert np.unique(x).size > 2
        return solution(get("weight-by-taps"))(grad_output, x, kernel_size)

    assert get("weight-by-taps").check(spy).passed


def _raises(x, w):
    return x[999, 0]


def _exits(x, w):
    raise SystemExit(3)


def _writes(x, w):
    y = solution(get("window-slide"))(x, w)
    x[...] = 0
    return y


def _masks(x, w):
    return np.ma.masked_all_like(solution(get("window-slide"))(x, w))


def _counts(x, w):
    yield x


FUNCTIONS = {
    "an exception": (_raises, r"raised `IndexError`: .*\(line 2 of the function, `return x\[999"),
    "exit": (_exits, r"raised `SystemExit`: 3 \(line 2"),
    "writes to x": (_writes, "changed one of its arguments"),
    "a generator": (_counts, "is a generator, which NumPy cannot read"),
    "nothing": (lambda x, w: None, "returns nothing yet"),
    "an ellipsis": (lambda x, w: ..., "returns nothing yet"),
    "text": (lambda x, w: "done", "holds text"),
    "a number": (lambda x, w: 3.0, r"returns an array of shape \(\)"),
    "a masked result": (_masks, "is a masked array"),
    "too many axes": (lambda x, w: np.zeros((1, 1, 5, 5)), r"shape \(1, 1, 5, 5\)"),
    "wrong size": (lambda x, w: x, "has shape"),
    "no arguments": (lambda: 1, "raised `TypeError`"),
    "a built-in": (len, "raised `TypeError`"),
    "the result": (np.zeros((3, 3)), "pass `slide` itself"),
    "a class": (int, "raised `TypeError`"),
}


@pytest.mark.parametrize(("function", "words"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_whatever_a_function_does_becomes_a_sentence(function, words):
    verdict = get("window-slide").check(function)
    assert not verdict.passed
    assert re.search(words, verdict.message), verdict.message


# of a program that gathers, a number is what is asked for
@by_key([each for each in WRITTEN if not isinstance(each, ProgramFunction)])
def test_a_number_instead_of_an_array_is_told_the_shape(exercise):
    # not a whole number, which could be the sum of a trial's gradient by chance
    message = exercise.check(lambda *operands: np.float64(0.3125)).message
    assert "shape ()" in message
    assert "could not be looked at" not in message


def test_numpy_is_left_as_it_was():
    def slide(x, w):
        np.seterr(all="ignore")
        return solution(get("window-slide"))(x, w)

    before = np.geterr()
    assert get("window-slide").check(slide).passed
    assert np.geterr() == before


def test_an_interruption_passes_through():
    """Else a function that runs for ever could not be stopped."""

    def slide(x, w):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get("window-slide").check(slide)


def test_backticks_of_the_reader_stay_out_of_the_markup():
    def slide(x, w):
        raise ValueError("one ` and another ``")

    verdict = get("window-slide").check(slide)
    assert verdict.message.count("`") % 2 == 0
    assert "one ' and another ''" in Tags(verdict._repr_html_()).text
    assert verdict._repr_html_().count("<code>ValueError</code>") == 1


def test_an_error_whose_message_raises():
    class Nasty(Exception):
        def __str__(self):
            raise RuntimeError

    def slide(x, w):
        raise Nasty

    verdict = get("window-slide").check(slide)
    assert "your function raised `Nasty` (line 2" in verdict.message


# ---- hostile answers -------------------------------------------------------------------------


@by_key(ALL)
def test_nothing_entered_is_said_kindly(exercise):
    verdict = exercise.check(...)
    assert not verdict.passed
    assert verdict.message.startswith("Nothing is entered yet")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy may warn about what it is given
@by_key(ALL)
def test_no_answer_makes_check_raise(exercise):
    for name, answer in HOSTILE.items():
        try:
            verdict = exercise.check(answer)
        except BaseException as error:
            raise AssertionError(f"{name}: check raised {error!r}") from error
        assert isinstance(verdict, Verdict), name
        assert not verdict.passed, name
        assert verdict.message.rstrip("`")[-1] in ".?", name
        with pytest.raises(WrongAnswer, match=exercise.key):
            exercise.require(answer)


def test_tensors_are_answers_too():
    torch = pytest.importorskip("torch")
    exercise = get("weight-one-pixel")
    assert exercise.check(torch.from_numpy(exercise.answer)).passed
    attached = torch.from_numpy(exercise.answer).requires_grad_()
    assert "detach" in exercise.check(attached).message

    def grad_weight(grad_output, x, kernel_size):
        rule = solution(get("weight-by-taps"))
        return torch.from_numpy(rule(grad_output, x, kernel_size))

    assert get("weight-by-taps").check(grad_weight).passed


# ---- how a verdict looks ---------------------------------------------------------------------


class Tags(HTMLParser):
    """Raises unless every tag is closed in order; collects the text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_verdict_shows_the_same_words_everywhere():
    wrong = get("weight-how-many").check(6)
    page = Tags(wrong._repr_html_())
    assert str(wrong) == repr(wrong) == "Not yet. " + wrong.message
    assert str(wrong) in page.text
    for hint in get("weight-how-many").hints:
        assert hint in page.text
    assert wrong._repr_html_().count("<details") == len(get("weight-how-many").hints)

    right = get("weight-how-many").check(12)
    assert str(right).startswith("Right. ")
    assert str(right) in Tags(right._repr_html_()).text
    assert "<details" not in right._repr_html_()


def test_who_has_not_begun_is_invited_not_judged():
    for exercise in (get("weight-how-many"), get("window-slide")):
        answer = ... if exercise.kind == "number" else run(exercise.starter)["slide"]
        verdict = exercise.check(answer)
        assert str(verdict).startswith("Your turn. ")
        assert "<strong>" not in verdict._repr_html_()
        assert not verdict


def test_a_verdict_has_no_colour_of_its_own():
    for answer, state in ((6, "wrong"), (12, "right"), (..., "open")):
        source = get("weight-how-many").check(answer)._repr_html_()
        assert f'class="cg-verdict cg-verdict--{state}"' in source
        colours = re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb|color: *\w+|background", source)
        assert colours == []
        assert "currentColor" in source


def test_what_a_reader_wrote_cannot_become_markup():
    def slide(x, w):
        raise ValueError("<script>alert(1)</script> & `code`")

    source = get("window-slide").check(slide)._repr_html_()
    assert "<script" not in source
    assert "&lt;script&gt;" in source
    Tags(source)


def test_a_verdict_is_true_when_passed():
    assert get("weight-how-many").check(12)
    assert not get("weight-how-many").check(6)


# ---- in the page -----------------------------------------------------------------------------


@by_key(ASKED)
def test_predict_can_ask_it(exercise):
    pytest.importorskip("anywidget")
    from convgrad.widgets import Predict

    widget = Predict.from_exercise(exercise)
    assert widget.kind == exercise.in_page
    assert len(widget.mistakes) == len(exercise.mistakes)
