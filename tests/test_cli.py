"""The command: what it says of other people's functions, and what a script learns from it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from convgrad import conv2d, conv2d_backward, example, ledger
from convgrad.__main__ import main
from convgrad.checks import CAUSES
from convgrad.cli import load, styles
from convgrad.cli.subject import find_out
from convgrad.cli.trials import FEATURES, PLAIN, Limits, Trial, easy_to_hard, smaller
from convgrad.cli.verdict import verdict_on, where_it_strikes
from convgrad.cli.words import Misuse, whole_numbers
from convgrad.geometry import ConvGeometry
from convgrad.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder, whose modules are forgotten afterwards."""
    # without the project's own folder, where a reader may keep a module of the same name
    elsewhere = [place for place in sys.path if Path(place).resolve() != ROOT]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", elsewhere)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("COLUMNS", "88")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if path and Path(path).is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture
def check(folder, capsys):
    """Writes a module, checks its function, and returns (exit status, what was said)."""

    def run(source: str, *options: str, function: str = "f", module: str = "mine"):
        (folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        sys.modules.pop(module, None)
        status = main(["check", f"{module}:{function}", *options])
        return status, said(capsys)

    return run


def said(capsys) -> str:
    """All that was printed, without the line breaks that depend on the terminal."""
    out, err = capsys.readouterr()
    return " ".join((out + err).split())


RIGHT = """
    import numpy as np
    from convgrad import conv2d_backward, windows

    def f(grad_output, x, weight, *, stride, padding, dilation, groups):
        return conv2d_backward(grad_output, x, weight, stride=stride, padding=padding,
                               dilation=dilation, groups=groups)
"""

# ---- what is right ---------------------------------------------------------------------------


def test_a_right_backward_function_is_praised_for_every_gradient(check):
    status, words = check(RIGHT)
    assert status == 0
    for gradient in ("grad_input", "grad_weight", "grad_bias"):
        assert f"{gradient}: right on all 40 convolutions" in words
    assert "called as f(grad_output, x, weight, stride, padding, dilation, groups)" in words
    assert "(style keywords)" in words
    assert "seed 0" in words
    assert "adjoint" in words


@pytest.mark.parametrize(
    "function", ["grad_weight", "grad_input", "grad_bias", "forward"], ids=lambda name: name
)
@pytest.mark.parametrize("module", ["loops", "windows", "im2col", "correlate", "grouped", "fast"])
def test_the_package_passes_its_own_check(module, function, folder, capsys):
    count = "20" if module == "loops" else "40"
    assert main(["check", f"convgrad.{module}:{function}", "--count", count]) == 0
    assert f"right on all {count}" in said(capsys)


def test_what_it_has_no_parameter_for_is_not_tried(check):
    status, words = check("""
        import numpy as np

        def f(dout, x, w, stride=1, pad=0):
            N, C, H, W = x.shape
            xp = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
            dxp, dw = np.zeros_like(xp), np.zeros_like(w)
            for n, o, p, q in np.ndindex(dout.shape):
                h, v = p * stride, q * stride
                at = np.s_[n, :, h : h + w.shape[2], v : v + w.shape[3]]
                dw[o] += xp[at] * dout[n, o, p, q]
                dxp[at] += w[o] * dout[n, o, p, q]
            return dxp[:, :, pad : pad + H, pad : pad + W], dw, dout.sum((0, 2, 3))
        """)
    assert status == 0, words
    assert "no parameter for dilation or groups, so that is not tried" in words
    assert "takes one number for both axes, not a pair" in words


def test_a_function_may_refuse_what_it_does_not_do(check):
    source = """
        from convgrad import windows

        def f(grad_output, x, geometry):
            if geometry.groups > 1:
                raise NotImplementedError("groups")
            return windows.grad_weight(grad_output, x, geometry)
        """
    status, words = check(source)
    assert status == 0
    assert re.search(r"right on all \d+ convolutions \(\d+ more it refused", words)
    status, words = check(source.replace("geometry.groups > 1", "True"))
    assert status == 2
    assert "refuses every convolution" in words


def test_rounding_is_no_mistake(check):
    status, words = check("""
        from convgrad import windows

        def f(grad_output, x, geometry):
            return windows.grad_weight(grad_output, x, geometry) * (1 + 1e-12)
        """)
    assert status == 0, words


def test_a_remark_becomes_a_mistake_only_when_asked(check):
    source = """
        import numpy as np
        from convgrad import windows

        def f(grad_output, x, geometry):
            return windows.grad_weight(grad_output, x, geometry).astype(np.float64)
        """
    status, words = check(source)
    assert status == 0
    assert "Remark: It breaks the law" in words
    assert "dtype float64, needed is float32" in words
    status, words = check(source, "--strict")
    assert status == 1


# ---- what is wrong: the cause in words -------------------------------------------------------

# These show where no trial goes, and a law or a remark finds them.
ELSEWHERE = {
    "write_through_view": "No operand is written to",
    "reshape_minus_one": "A batch of no images",
    "full_pad_negative": None,
    "fp16_running_sum": "Sums run in float32 or wider",
    "dgrad_dilated_multiply": "An infinite number reaches",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in ELSEWHERE])
def test_the_cause_of_every_named_mistake_is_named(name):
    mutant = MUTANTS[name]
    loaded = load.Loaded(mutant.function, f"mine.{name}", "import mine")
    subject = find_out(loaded, None, mutant.target, None, Trial(PLAIN, 0))
    trials = easy_to_hard(subject.convention.limits(), 40, seed=0)
    verdict = verdict_on(
        subject, mutant.target, [subject.judge(trial)[mutant.target] for trial in trials]
    )
    assert verdict.cause == mutant.cause
    shrunk = verdict.example
    assert shrunk is not None and shrunk.explanation.cause == mutant.cause
    assert mutant.shows(shrunk.trial.geometry)
    # what is said of all failures is true of the one that is shown
    assert all(FEATURES[each](shrunk.trial) for each in where_it_strikes(verdict)[0])
    if shrunk.trial.form != "whole":  # only where whole numbers in C order show nothing
        plain = replace(shrunk.trial, form="whole")
        assert subject.judge(plain)[mutant.target].right


MUTANT = """
    from convgrad.mutants import MUTANTS

    def f({operands}, geometry):
        return MUTANTS[{name!r}]({operands}, geometry)
"""
OPERANDS = {"weight": "grad_output, x", "input": "grad_output, weight", "bias": "grad_output"}


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "wgrad_g_turned": "by 180° a grad_output of ones, would have looked right",
        "swap_stride_dilation": "stride and dilation not exchanged",
        "wgrad_batch_mean": "goes wrong with more than one image mean over the 2 images",
        "group_interleaved": "never without more than one group wrong group kernel o belongs",
        "dgrad_no_flip": "kernel",
        "dgrad_no_leftover": "output_padding=( both sides together",
        "col2im_assign": "overlap lost +=",
        "bias_axes_012": "wrong bias axes",
        "assume_contiguous_gy": "lie in C order in memory np.ascontiguousarray",
        "zeros_like_int": "fractions were cut off goes wrong with fractions",
        "write_through_view": "No operand is written to operands untouched",
    }.items(),
)
def test_a_wrong_module_is_told_why(name, words, check):
    mutant = MUTANTS[name]
    status, told = check(MUTANT.format(operands=OPERANDS[mutant.target], name=name))
    assert status == 1
    assert "WRONG" in told
    if mutant.cause is not None:
        assert CAUSES[mutant.cause] in told
    for word in words.split():
        assert word in told, told


@pytest.mark.parametrize("name", [name for name, words in ELSEWHERE.items() if words])
def test_what_only_a_law_finds_is_said(name, check):
    mutant = MUTANTS[name]
    status, told = check(MUTANT.format(operands=OPERANDS[mutant.target], name=name), "--strict")
    assert status == 1
    assert ELSEWHERE[name] in told


ONE_AXIS = """
    import numpy as np
    from convgrad import windows

    def grad_input(grad_output, x, weight, *, stride, padding):
        # zeros are put between the rows of grad_output, and none between the columns
        (sh, sw), (ph, pw) = stride, padding
        (n, o, oh, ow), (kh, kw) = grad_output.shape, weight.shape[2:]
        H, W = x.shape[2] + 2 * ph, x.shape[3] + 2 * pw
        up = np.zeros((n, o, H - kh + 1, W - kw + 1))
        up[:, :, : (oh - 1) * sh + 1 : sh, :ow] = grad_output
        up = np.pad(up, ((0, 0), (0, 0), (kh - 1,) * 2, (kw - 1,) * 2))
        win = np.lib.stride_tricks.sliding_window_view(up, (kh, kw), axis=(2, 3))
        full = np.einsum("nohwij,ocij->nchw", win, weight[:, :, ::-1, ::-1])
        return full[:, :, ph : ph + x.shape[2], pw : pw + x.shape[3]]
    """


def test_the_axis_that_goes_wrong_is_named_on_arrays_that_are_small(check):
    status, words = check(ONE_AXIS, function="grad_input")
    assert status == 1
    assert "a stride above 1 along the columns" in words
    assert "Cause: stride ignored. It explains all" in words
    x = re.search(r"The smallest that shows it: x (\d+)×(\d+)×(\d+)×(\d+)", words)
    assert int(x[3]) * int(x[4]) <= 12
    assert "yours[0, 0]" in words and "asfortranarray" not in words


def test_a_remark_on_three_gradients_is_made_once_and_does_not_count(check):
    status, words = check("""
        import numpy as np
        from convgrad import conv2d_backward

        def f(grad_output, x, weight, **how):
            if not len(x):
                raise ValueError("an empty batch")
            return conv2d_backward(grad_output, x, weight, **how)
        """)
    assert status == 0
    assert words.count("Remark on grad_input, grad_weight and grad_bias: It breaks the law") == 1
    assert words.count("(empty batch)") == 1
    assert "A remark does not count as a mistake, unless you add --strict." in words


ADDED = """
    from convgrad import windows

    def f(grad_output, x, geometry):
        grad = windows.grad_weight(grad_output, x, geometry)
        if len(grad) > 3:
            grad[[1, 2]] = grad[[1, 2]] * 3 + 1
        return grad
    """


def test_without_a_cause_the_wrong_kernels_and_a_law_in_plain_words_are_told(check):
    status, words = check(ADDED)
    assert status == 1
    assert re.search(r"Wrong are cells in kernels 1 and 2 of \d", words)
    assert "the products grad_output·output of all cells add up to" in words
    assert "linear(u)" not in words
    status, words = check(ADDED, "--quiet")
    assert re.search(r"Follow the products of that one cell: convgrad ledger .*--cell", words)


def test_a_law_says_nothing_beside_a_cause(check):
    status, words = check(MUTANT.format(operands="grad_output, x", name="swap_stride_dilation"))
    assert status == 1 and "breaks the law" not in words


@pytest.mark.parametrize(
    ("function", "words"),
    {
        "backward(ctx, grad_output)": "MyConv.apply(x.requires_grad_(), weight.requires_grad_())",
        "conv_backward(dout, cache)": "return conv_backward(grad_output, cache)",
    }.items(),
)
def test_a_function_with_ctx_or_cache_is_told_how_to_wrap_it(function, words, check):
    name = function.partition("(")[0]
    status, told = check(f"def {function}: pass", function=name)
    assert status == 2
    assert (
        f"def backward(grad_output, x, weight{', stride, padding' * ('cache' in function)}):"
        in told
    )
    assert words in told


def test_a_backward_with_a_cache_can_be_checked_through_the_wrapper_that_is_told(check, capsys):
    source = """
import numpy as np
from convgrad import conv2d_backward

def conv_backward(dout, cache):
    x, w, b, how = cache
    return conv2d_backward(dout, x, w, stride=how["stride"], padding=how["pad"])
"""
    assert check(source, function="conv_backward")[0] == 2
    with pytest.raises(Misuse) as told:
        styles.read_signature(eval("lambda dout, cache: 0"), "conv_backward", None, None)
    wrapper = textwrap.dedent(str(told.value).partition("\n\n")[2].partition("\n\n")[0])
    status, words = check(source + "\n" + wrapper, function="backward", module="wrapped")
    assert status == 0, words


def test_what_a_few_failures_share_by_chance_is_not_claimed(check):
    """Wrong where the sizes happen to be so: no property of the convolution says when."""
    status, words = check("""
        from convgrad import windows

        def f(grad_output, x, geometry):
            lucky = (7 * geometry.H + 3 * geometry.W + geometry.O) % 11 != 5
            return (1 if lucky else 2) * windows.grad_weight(grad_output, x, geometry)
        """)
    assert status == 1
    assert 1 < int(re.search(r"WRONG on (\d+)", words)[1]) < 10
    assert "went wrong has" not in words and "never without" not in words


def test_one_wrong_gradient_of_three_is_found_and_the_others_are_praised(check):
    status, words = check(
        RIGHT.replace("return conv2d", "a, b, c = conv2d") + "        return a, b, 2 * c\n"
    )
    assert status == 1
    assert "grad_input: right" in words
    assert "grad_weight: right" in words
    assert "grad_bias: WRONG on 40 of 40" in words
    status, words = check("from mine import f", "--target", "weight", module="other")
    assert (status, "grad_bias" in words) == (0, False)


README = ROOT / "README.md"


def test_the_example_of_the_readme_is_told_what_the_readme_says(check):
    section = README.read_text(encoding="utf-8").partition("## Check your own backward")[2]
    source = section.partition("```python\n")[2].partition("```")[0]
    status, words = check(source, function="grad_weight")
    assert status == 1
    assert "Cause: stride and dilation not exchanged" in words
    mended = source.replace(
        "stride=geometry.stride, dilation=geometry.dilation",
        "stride=geometry.dilation, dilation=geometry.stride",
    )
    status, words = check(mended, function="grad_weight")
    assert status == 1  # "mend that, and the next mistake comes up"
    assert "Cause: stride and dilation not exchanged" not in words


def test_errors_that_outnumber_wrong_answers_by_far_come_first(check):
    status, words = check("""
        from convgrad import windows

        def f(grad_output, x, geometry):
            if geometry.N * geometry.C * geometry.O * geometry.H > 6:
                raise RuntimeError("the batch of matrices does not fit")
            return -windows.grad_weight(grad_output, x, geometry)
        """)
    assert status == 1
    assert "the batch of matrices does not fit" in words
    assert re.search(r"The others: .*wrong sign \(\d+\)", words)


def test_the_version_can_be_asked_for(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("convgrad ")


def test_two_mistakes_are_both_counted(check):
    status, words = check("""
        from convgrad import windows

        def f(grad_output, x, geometry):
            right = windows.grad_weight(grad_output, x, geometry)
            if geometry.groups > 1:
                raise KeyError("groups")
            return right[..., ::-1, ::-1] if geometry.stride == (1, 1) else 3 * right
        """)
    assert status == 1
    assert "Cause: result turned by 180°" in words
    assert re.search(r"The others: .*raised KeyError \(\d+\)", words)
    assert re.search(r"The others: .*wrong scale \(\d+\)", words)


def test_the_smallest_convolution_is_small_and_the_same_for_the_same_seed(check):
    source = MUTANT.format(operands="grad_output, x", name="group_interleaved")
    first = check(source, "--seed", "5")
    assert first == check(source, "--seed", "5")
    assert "The smallest that shows it: x 1×4×" in first[1]
    assert "2 groups." in first[1]


def test_the_snippet_runs_and_shows_both_answers(folder, capsys):
    source = MUTANT.format(operands="grad_output, x", name="swap_stride_dilation")
    (folder / "mine.py").write_text(textwrap.dedent(source), encoding="utf-8")
    assert main(["check", "mine:f"]) == 1
    out = capsys.readouterr().out
    program = textwrap.dedent(out.partition("To see it yourself:\n")[2].partition("  The prod")[0])
    scope: dict[str, object] = {}
    exec(program, scope)
    assert not np.array_equal(scope["yours"], scope["right"])
    printed = capsys.readouterr().out
    assert printed.count("[[[[") == 2


def test_the_command_for_the_products_ends_in_the_right_value(folder, capsys):
    source = MUTANT.format(operands="grad_output, weight", name="col2im_assign")
    (folder / "mine.py").write_text(textwrap.dedent(source), encoding="utf-8")
    assert main(["check", "mine:f"]) == 1
    out = capsys.readouterr().out
    right = re.search(r"right is (-?\d+)|right\[.*\n(?:.*\n)*", out)
    command = re.search(r"convgrad (ledger .*)", out)
    assert command and right
    assert main(command[1].split()) == 0
    listed = capsys.readouterr().out
    cell = re.search(r"products? in grad_input\[(.*)\] = (-?\d+)", listed)
    assert cell
    # the same value, computed by the snippet's way
    program = textwrap.dedent(out.partition("To see it yourself:\n")[2].partition("  The prod")[0])
    scope: dict[str, object] = {}
    exec(program, scope)
    assert scope["right"][tuple(map(int, cell[1].split(", ")))] == int(cell[2])


# ---- the manner of calling -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target"),
    {
        "def f(grad_output, x, geometry): return windows.grad_weight(grad_output, x, geometry)": (
            "grad_weight"
        ),
        "def f(dy, w, geom): return windows.grad_input(dy, w, geom)": "grad_input",
        "def f(g, geometry): return g.sum((0, 2, 3))": "grad_bias",
        "def f(x, w, geometry): return windows.forward(x, w, geometry)": "output",
        "def f(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1): "
        "return conv2d(input, weight, bias, stride, padding, dilation, groups)": "output",
        "def f(x, weight, grad_output, **how): "
        "return conv2d_backward(grad_output, x, weight, **how)[1]": "grad_weight",
        "def f(x, weight_shape, grad_output, stride, padding): "
        "return conv2d_backward(grad_output, x, np.ones(weight_shape), stride=stride, "
        "padding=padding)[1]": "grad_weight",
        "def f(weight, grad_output, x, padding_mode, padding, stride): "
        "return dict(grad_input=conv2d_backward(grad_output, x, weight, stride=stride, "
        "padding=padding, padding_mode=padding_mode)[0])": "grad_input",
    }.items(),
)
def test_a_signature_tells_how_to_call(source, target, check):
    head = "import numpy as np\nfrom convgrad import conv2d, conv2d_backward, windows\n"
    status, words = check(head + source)
    assert status == 0, words
    assert f"for {target}." in words


def test_unknown_names_ask_for_the_style_and_then_go_by_order(check):
    source = "from convgrad import windows\ndef f(a, b, c): return windows.grad_weight(a, b, c)"
    status, words = check(source)
    assert status == 2
    assert "what is meant by `a` and `c`?" in words
    assert "--style geometry" in words
    status, words = check(source, "--style", "geometry", "--target", "weight")
    assert status == 0, words


@pytest.mark.parametrize(
    ("source", "words"),
    {
        "def f(*anything): pass": "does not say what its parameters are called",
        "def f(stride): pass": "takes neither grad_output",
        "def f(g, grad): pass": "both `g` and `grad` look like grad_output",
        "def f(g, x, weight, stride): return 1, 2, 3, 4": "tuple of 4",
        "def f(g, x, weight, stride): return {'dx': 1}": "keys 'dx'",
        "def f(g, x, weight, stride): return [[1], [1, 2]], 0, 0, 0": "tuple of 4",
        "def f(g, x, weight, stride): return x.ravel()": "say with --target which gradient",
        "def f(g, x, weight, stride): return weight, x, None": "grad_weight first",
        "def f(g, x, weight, stride): return None, None, None": "None for every gradient",
        "def f(x, weight, geometry): return x, 1": "return the array itself",
        "f = 3": "of type int, not a function",
        "def g(x): pass": "has no f: it has g",
    }.items(),
)
def test_what_cannot_be_called_gets_a_sentence(source, words, check):
    status, told = check(source)
    assert status == 2
    assert told.startswith("convgrad: ")
    assert words in told


def test_a_style_or_target_that_does_not_fit_is_refused(check):
    source = "def f(grad_output, x, geometry): return x"
    for options, words in (
        (["--style", "keywords"], "it takes a geometry"),
        (["--target", "input"], "no parameter for weight"),
        (["--count", "0"], "--count must be at least 1"),
        (["--target", "nonsense"], "invalid choice"),
    ):
        status, told = check(source, *options)
        assert status == 2
        assert words in told


# ---- functions that fail ---------------------------------------------------------------------


def test_an_error_in_the_function_shows_its_lines_and_none_of_ours(check):
    status, told = check("""
        def f(grad_output, x, geometry):
            return helper(x, geometry)

        def helper(x, geometry):
            if geometry.groups > 1:
                return x.reshape(7, 11, 13)
            from convgrad import windows
            return x[:0]
        """)
    assert status == 1
    status, told = check("""
        from convgrad import windows

        def f(grad_output, x, geometry):
            return helper(grad_output, x, geometry)

        def helper(grad_output, x, geometry):
            if geometry.stride != (1, 1):
                return x.reshape(7, 11, 13)
            return windows.grad_weight(grad_output, x, geometry)
        """)
    assert status == 1
    assert "goes wrong with a stride above 1" in told
    assert "Your function raised ValueError: cannot reshape array" in told
    assert "in helper return x.reshape(7, 11, 13)" in told
    assert "/convgrad/" not in told.partition("To see it yourself")[0]


@pytest.mark.parametrize(
    "body",
    ["raise SystemExit(3)", "raise Exception", "1 / 0", "return f(grad_output, x, geometry)"],
)
def test_no_error_of_the_function_ends_the_check(body, check):
    status, told = check(f"def f(grad_output, x, geometry):\n    {body}")
    assert status == 1
    assert "Your function raised" in told


@pytest.mark.parametrize(
    "answer",
    ["None", "'text'", "[[1, 2], [3]]", "{1, 2}", "object()", "x[0, 0, 0, 0]", "...", "()"],
)
def test_any_answer_gets_a_sentence(answer, check):
    status, told = check(f"def f(grad_output, x, geometry):\n    return {answer}")
    assert status in (1, 2)
    assert "Your grad_weight" in told or told.startswith("convgrad: f returns")
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("files", "what", "words"),
    [
        ({}, "mine:f", "there is no module mine"),
        ({"mien": ""}, "mine:f", "there is mien"),
        ({"mine": "1 / 0"}, "mine:f", "ZeroDivisionError: division by zero"),
        ({"mine": "def f(:"}, "mine:f", "SyntaxError"),
        ({"mine": "import nowhere_at_all"}, "mine:f", "imports nowhere_at_all, which this Python"),
        ({"mine": "def grad_weight(): pass"}, "mine:grad_wieght", "it has grad_weight"),
        ({"mine": ""}, "mine", "names no function"),
        ({"mine": ""}, "mine:", "names no function"),
        ({}, "lab/mine.py:f", "there is no file lab/mine.py"),
        ({"json": "def f(): pass"}, "json.py:f", "give the file another name"),
    ],
)
def test_what_cannot_be_imported_gets_a_sentence(files, what, words, folder, capsys):
    for name, source in files.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    assert main(["check", what]) == 2
    told = said(capsys)
    assert told.startswith("convgrad: ")
    assert words in told
    assert "importlib" not in told


def test_a_file_in_another_folder_can_be_checked(folder, capsys):
    (folder / "lab").mkdir()
    (folder / "lab" / "student7.py").write_text(
        "from convgrad.windows import grad_weight\nclass Layer:\n    @staticmethod\n"
        "    def back(grad_output, x, geometry): return -grad_weight(grad_output, x, geometry)",
        encoding="utf-8",
    )
    assert main(["check", "lab/student7.py:Layer.back"]) == 1
    told = said(capsys)
    assert "wrong sign" in told
    assert "sys.path.insert(0, " in told and "student7.Layer.back(grad_output, x, geometry)" in told


# ---- PyTorch ---------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("function", ["conv2d_weight", "conv2d_input"])
def test_pytorch_passes(function, folder, capsys):
    pytest.importorskip("torch")
    assert main(["check", f"torch.nn.grad:{function}", "--tensors", "torch"]) == 0
    assert "right on all 40" in said(capsys)


@pytest.mark.oracle
def test_tensors_are_tried_where_arrays_do_not_go(check):
    pytest.importorskip("torch")
    source = """
        import torch

        def f(grad_output, x, weight, stride, padding, dilation, groups):
            how = [weight.shape[0]], stride, padding, dilation, False, [0, 0], groups
            mask = (True, True, True)
            gi, gw, gb = torch.ops.aten.convolution_backward(grad_output, x, weight, *how, mask)
            return gi, gw.flip(2, 3), gb
        """
    status, told = check(source)
    assert status == 1
    assert "called with PyTorch tensors" in told
    assert "result turned by 180°" in told
    assert "torch.from_numpy" in told
    status, told = check(source, "--dtype", "float32", "--target", "input")
    assert status == 0, told


@pytest.mark.oracle
def test_tensors_of_any_kind_get_a_sentence(check):
    pytest.importorskip("torch")
    source = """
        import torch

        def f(grad_output, input, weight, stride, padding, dilation, groups):
            how = stride, padding, dilation, groups
            return torch.nn.grad.conv2d_weight(input, weight.shape, grad_output, *how){change}
        """
    status, told = check(source.format(change=".requires_grad_().bfloat16()"))
    assert status == 0, told
    status, told = check(source.format(change=".to_sparse()"))
    assert status in (1, 2)
    assert "which NumPy cannot read" in told or "no array of numbers" in told


def test_without_pytorch_tensors_are_refused_in_words(check, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    status, told = check("def f(grad_output, x, geometry): return x", "--tensors", "torch")
    assert status == 2
    assert 'pip install "convgrad[torch]"' in told


# ---- a file of arrays ------------------------------------------------------------------------


def saved(folder: Path, **changes) -> str:
    """Example D with its gradients; ``None`` leaves an array out."""
    x, weight, bias, grad_output = example("D").arrays()
    gradients = conv2d_backward(grad_output, x, weight, groups=2)
    names = ("grad_input", "grad_weight", "grad_bias")
    arrays = dict(zip(names, gradients, strict=True)) | {
        "x": x,
        "weight": weight,
        "bias": bias,
        "grad_output": grad_output,
        "y": conv2d(x, weight, bias, groups=2),
        "groups": 2,
    }
    arrays |= changes
    np.savez(folder / "saved.npz", **{k: a for k, a in arrays.items() if a is not None})
    return "saved.npz"


def test_right_arrays(folder, capsys):
    assert main(["check", saved(folder)]) == 0
    told = said(capsys)
    for name in ("grad_input", "grad_weight", "grad_bias", "y"):
        assert f"{name}: right." in told


def test_wrong_arrays_are_explained(folder, capsys):
    x, weight, _, g = example("D").arrays()
    wrong = conv2d_backward(g[..., ::-1, ::-1], x, weight, groups=2)[1]
    assert main(["check", saved(folder, grad_weight=wrong, note=np.ones(2))]) == 1
    told = said(capsys)
    assert "grad_weight: WRONG." in told and "180°" in told
    assert "grad_input: right." in told
    assert "Not looked at: note." in told
    assert main(["check", "saved.npz", "--target", "bias", "--quiet"]) == 0
    assert said(capsys) == ""
    assert main(["check", "saved.npz", "--quiet"]) == 1
    assert capsys.readouterr().out.count("\n") == 1


def test_float32_arrays_with_all_options_and_one_image(folder, capsys):
    rng = np.random.default_rng(0)
    geometry = ConvGeometry(
        C=3, H=9, W=8, O=4, KH=3, KW=2, stride=2, padding=((2, 1), (1, 0)), padding_mode="reflect"
    )
    x, weight = (
        rng.standard_normal(s, np.float32) for s in (geometry.x_shape, geometry.weight_shape)
    )
    g = rng.standard_normal(geometry.output_shape, np.float32)
    options = {"stride": 2, "padding": ((2, 1), (1, 0)), "padding_mode": "reflect"}
    gi, gw, gb = conv2d_backward(g[0], x[0], weight, **options)
    np.savez("one.npz", x=x[0], weight=weight, grad_output=g[0], grad_input=gi, grad_weight=gw,
             grad_bias=gb, y=conv2d(x[0], weight, **options), **options)  # fmt: skip
    assert main(["check", "one.npz"]) == 0
    told = said(capsys)
    assert re.search(r"grad_weight: right \(to \de-0[78] of its largest number\)", told) or (
        "grad_weight: right (to" in told
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": None}, "has no array x"),
        ({"weight": None}, "has no array weight"),
        ({"grad_output": None}, "has no array grad_output"),
        ({"groups": 3}, "do not divide into 3 groups"),
        ({"grad_output": np.ones((3, 6, 2, 2))}, "grad_output has shape (3, 6, 2, 2)"),
        ({"x": np.array("text")}, "x has 0 axes"),
        ({"x": np.full((3, 4, 5, 4), "a")}, "x holds <U1"),
        (dict.fromkeys(("grad_input", "grad_weight", "grad_bias", "y")), "nothing to check"),
    ],
)
def test_a_file_that_does_not_fit_gets_a_sentence(changes, words, folder, capsys):
    assert main(["check", saved(folder, **changes)]) == 2
    told = said(capsys)
    assert told.partition("convgrad: ")[2] and words in told


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04broken"])
def test_a_file_that_is_no_archive_gets_a_sentence(content, folder, capsys):
    (folder / "other.npz").write_bytes(content)
    assert main(["check", "other.npz"]) == 2
    assert "np.savez" in said(capsys)
    assert main(["check", "missing.npz"]) == 2
    assert "there is no file missing.npz" in said(capsys)


def test_a_wrong_cell_in_a_file_comes_with_the_arrays_and_a_command_that_runs(folder, capsys):
    x, weight, _, g = example("D").arrays()
    right = conv2d_backward(g, x, weight, groups=2)[1]
    wrong = right.copy()
    wrong[1, 0, 0, 1] += 1
    assert main(["check", saved(folder, grad_weight=wrong)]) == 1
    told = capsys.readouterr().out
    assert "yours[1, 0]" in told and "right[1, 0]" in told
    command = re.search(r"convgrad (ledger .*)", told)[1]
    assert main(command.split()) == 0
    assert f"grad_weight[1, 0, 0, 1] = {right[1, 0, 0, 1]:g}" in said(capsys)
    assert main(["check", "saved.npz", "--quiet"]) == 1
    assert f"Follow the products of that one cell: convgrad {command}" in said(capsys)


def test_a_file_without_its_options_is_told_that_they_are_saved_too(folder, capsys):
    x, weight, _, _ = example("D").arrays()
    g = np.ones(conv2d(x, weight, groups=2, padding=1).shape)
    assert main(["check", saved(folder, grad_output=g)]) == 2
    told = said(capsys)
    assert "The file holds no stride and no padding and no dilation" in told
    assert "np.savez(file, x=x, …, stride=2)" in told


def test_an_output_without_its_bias_is_said_to_be_that(folder, capsys):
    assert main(["check", saved(folder, bias=None), "--target", "output"]) == 0
    assert "up to a bias, which is not in the file" in said(capsys)


# ---- the ledger ------------------------------------------------------------------------------


def test_the_table_of_one_cell_ends_in_its_value(capsys):
    assert main(["ledger", "--example", "B", "--cell", "0,0,1,2"]) == 0
    x, _, _, g = example("B").arrays()
    value = conv2d_backward(g, x, np.ones((1, 1, 3, 3)))[1][0, 0, 1, 2]
    assert f"9 products in grad_weight[0, 0, 1, 2] = {value:g}." in capsys.readouterr().out


@pytest.mark.parametrize("target", ledger.TARGETS)
@pytest.mark.parametrize("order", ledger.ORDERS)
def test_csv_and_json_hold_every_contribution(target, order, capsys):
    words = ["ledger", "--example", "D", "--target", target, "--order", order]
    geometry = example("D").geometry
    expected = list(ledger.contributions(geometry, target, order))
    assert main([*words, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main([*words, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert ConvGeometry(**record["geometry"]) == geometry
    assert len(rows) == len(record["contributions"]) == len(expected)
    sums: dict[tuple[int, ...], float] = {}
    for row, entry, each in zip(rows, record["contributions"], expected, strict=True):
        assert tuple(entry["cell"]) == each.target == tuple(map(int, row["cell"].split()))
        assert [entry["n"], entry["o"], entry["p"], entry["q"]] == [each.n, each.o, each.p, each.q]
        assert float(row["sum"]) == entry["sum"]
        sums[each.target] = entry["sum"]
    x, weight, _, g = example("D").arrays()
    which = ("input", "weight", "bias").index(target)
    gradient = conv2d_backward(g, x, weight, groups=2)[which]
    for cell, total in sums.items():
        assert gradient[cell] == total


def test_a_summary_counts_by_tap_and_by_cell(capsys):
    assert main(["ledger", "--example", "C", "--summary"]) == 0
    lines = capsys.readouterr().out.splitlines()
    geometry = example("C").geometry
    every = Counter(each.target[2:] for each in ledger.contributions(geometry, "weight"))
    assert f"{sum(every.values())} products" in lines[1]
    table = [[int(number) for number in line.split()] for line in lines if line.startswith("  ")]
    taps, cells = table[: geometry.KH], table[geometry.KH :]
    for (i, j), number in every.items():
        assert taps[i][j] == number
    reads = Counter(
        each.cell
        for each in ledger.contributions(geometry, "input")
        if (each.n, each.o, each.c) == (0, 0, 0)
    )
    assert len(cells) == geometry.H
    for row, col in np.ndindex(geometry.H, geometry.W):
        assert cells[row][col] == reads[row, col]  # 0 for the leftover, which nothing reads


def test_a_summary_of_a_large_layer_says_the_range(capsys):
    assert main(["ledger", "--example", "F", "--summary"]) == 0
    out = capsys.readouterr().out
    assert "3611820032 products" in out
    assert "56×56 numbers, 4 to 9, 8.79 on average" in out
    assert main(["ledger", "--example", "B", "--summary", "--cell", "0,0,0,0"]) == 2


def test_a_long_table_is_cut_and_says_so(capsys):
    assert main(["ledger", "--example", "F"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 50 + 1
    assert "--limit 0 prints all" in lines[-1]


def test_products_lost_on_padding_are_listed_when_asked(capsys):
    words = ["ledger", "--example", "A", "--target", "input", "--padding-products", "--limit", "0"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count("nowhere, on padding") == 4 * 16 - 4
    assert out.count("grad_input[0,0,0,0]") == 4


def test_a_ledger_by_sizes_and_of_a_file(folder, capsys):
    words = "--x 2,2,5,4 --weight 4,1,3,2 --stride 2,1 --padding 1,0,0,1 --groups 2 --seed 3"
    assert main(["ledger", *words.split(), "--limit", "2"]) == 0
    assert "stride (2, 1), padding ((1, 0), (0, 1)), 2 groups" in capsys.readouterr().out
    assert main(["ledger", saved(folder), "--cell", "0,0,0,0"]) == 0
    gradient = conv2d_backward(*[example("D").arrays()[k] for k in (3, 0, 1)], groups=2)[1]
    assert f"= {gradient[0, 0, 0, 0]:g}." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "say which convolution"),
        ("--example B --x 1,1,5,5 --weight 1,1,3,3", "in one way"),
        ("--x 1,1,5,5", "--x and --weight go together"),
        ("--x 1,1,5,5 --weight 1,1,7,7", "spans 7×7"),
        ("--x 1,1,5 --weight 1,1,2,2", "x has 3 axes"),
        ("--x 1,1,a,5 --weight 1,1,2,2", "whole numbers with commas"),
        ("--example B --cell 0,0,3,0", "shape (1, 1, 3, 3)"),
        ("--example B --cell 0", "needed are 4 indices"),
        ("--example B --target bias --cell 1", "needed are 1 index"),
        ("--example F --cell 0,0,0,0", "too many"),
        ("--example B --limit -1", "--limit must be"),
        ("--example X", "invalid choice"),
        ("--x 1,1,5,5 --weight 1,1,2,2 --padding 1,2,3", "padding"),
        ("--x 1,1,5,5 --weight 1,1,2,2 --padding wide", "same or valid"),
        ("nowhere.npz", "there is no file"),
    ],
)
def test_a_ledger_that_cannot_be_gets_a_sentence(words, told, folder, capsys):
    assert main(["ledger", *words.split()]) == 2
    assert told in said(capsys)


# ---- bench, help, and the process around ------------------------------------------------------


def test_bench_prints_its_table_and_keeps_it_when_asked(folder, capsys):
    assert main(["bench", "--layer", "tiny", "--rounds", "1", "--json", "here.json"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[:2] == ["layer", "implementation"]
    record = json.loads((folder / "here.json").read_text(encoding="utf-8"))
    assert list(record["layers"]) == ["tiny"]
    for words in (["--layer", "huge"], ["--rounds", "0"], ["--json", "nowhere/here.json"]):
        assert main(["bench", "--layer", "tiny", *words]) == 2


def test_bench_says_when_threads_make_it_uneven(folder, capsys, monkeypatch):
    for can, uneven in ((False, True), (True, False)):
        monkeypatch.setattr("convgrad.cli.bench.can_set_threads", lambda can=can: can)
        assert main(["bench", "--layer", "tiny", "--rounds", "1"]) == 0
        assert ("threadpoolctl is not installed" in capsys.readouterr().err) == uneven


@pytest.mark.slow
@pytest.mark.parametrize("table", [[], ["--table", "layers"]], ids=["rungs", "layers"])
def test_bench_says_where_pytorch_is_missing(folder, capsys, monkeypatch, table):
    from convgrad.bench import common, layers

    monkeypatch.setattr(common, "torch", None)
    monkeypatch.setitem(layers.TABLE, "tiny", layers.TABLE["1×1, 256→1024 @14"])
    assert main(["bench", *table, "--layer", "tiny", "--rounds", "1", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert 'pip install "convgrad[torch]"' in out
    assert err == ""


@pytest.mark.parametrize("words", [[], ["check"], ["ledger"], ["bench"]], ids=str)
def test_help_has_examples_that_are_understood(words, capsys):
    assert main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    examples = re.findall(r"^  (?:\w+=\w+ )?convgrad (.*?)(?:   .*)?$", text, flags=re.MULTILINE)
    assert len(examples) >= 3
    from convgrad.__main__ import parser

    for line in examples:
        parser().parse_args(line.split())


def test_no_command_and_an_unknown_one_are_misuse(capsys):
    assert main([]) == 2
    assert main(["chekc"]) == 2
    assert "usage: convgrad" in capsys.readouterr().err


def process(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a program, with the packages that this Python sees."""
    found = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-m", "convgrad", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def test_the_exit_status_tells_a_script(folder):
    source = "from convgrad import windows\ndef right(grad_output, x, geometry):\n"
    source += "    return windows.grad_weight(grad_output, x, geometry)\n"
    source += "def wrong(grad_output, x, geometry):\n    return -right(grad_output, x, geometry)\n"
    (folder / "mine.py").write_text(source, encoding="utf-8")
    right = process("check", "mine:right", "--quiet", folder=folder)
    assert (right.returncode, right.stdout, right.stderr) == (0, "", "")
    wrong = process("check", "mine:wrong", "--quiet", folder=folder)
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("mine:wrong: grad_weight is wrong on x 1×1×")
    assert "seed 0: Your grad_weight is the right one with the sign turned" in wrong.stdout
    misuse = process("check", "mine:neither", folder=folder)
    assert (misuse.returncode, misuse.stdout) == (2, "")
    assert misuse.stderr == "convgrad: mine has no neither: it has right, wrong\n"


def test_no_colour_codes_and_an_old_terminal_will_do(folder):
    answer = process("ledger", "--example", "B", folder=folder, PYTHONIOENCODING="ascii")
    assert answer.returncode == 0
    assert "\x1b" not in answer.stdout
    assert "x[0,0,0,0]?g[0,0,0,0]" in answer.stdout


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
def test_a_pipe_that_closes_early_is_no_error(folder):
    found = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-m", "convgrad", "ledger", "--example", "D", "--limit", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": found},
    ) as running:
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""


# ---- what is tried ---------------------------------------------------------------------------


def test_trials_go_from_easy_to_hard_and_leave_no_corner_out():
    trials = list(easy_to_hard(Limits(), 60, seed=1))
    assert trials[0].geometry == PLAIN
    for name, has in FEATURES.items():
        assert sum(map(has, trials)) >= 3, name
        assert sum(not has(trial) for trial in trials) >= 3, name
    assert {trial.geometry.padding_mode for trial in trials} == {
        "zeros", "reflect", "replicate", "circular",
    }  # fmt: skip


@pytest.mark.parametrize(
    "without", ["stride", "padding", "dilation", "groups", "padding_mode", "two_sided", "pairs"]
)
def test_limits_are_kept(without):
    limits = Limits(**{without: False})
    for trial in easy_to_hard(limits, 60, seed=2):
        g = trial.geometry
        assert limits.within(g) == g
        if without in ("stride", "dilation"):
            assert getattr(g, without) == (1, 1)
        elif without == "padding":
            assert g.padding == ((0, 0), (0, 0))
        elif without == "groups":
            assert g.groups == 1
        elif without == "padding_mode":
            assert g.padding_mode == "zeros"
        elif without == "two_sided":
            assert all(a == b for a, b in g.padding)
        else:
            assert g.stride[0] == g.stride[1] and g.padding[0] == g.padding[1]


@pytest.mark.parametrize(
    "limits", [Limits(two_sided=False), Limits(two_sided=False, pairs=False, groups=False)], ids=str
)
def test_limits_leave_enough_to_find_mistakes_with(limits):
    geometries = [trial.geometry for trial in easy_to_hard(limits, 40, seed=0)]
    for name in ("stride", "dilation"):
        assert sum(getattr(g, name) != (1, 1) for g in geometries) >= 10
    assert sum(g.padding != ((0, 0), (0, 0)) for g in geometries) >= 10
    assert all(g.rows.max() >= 0 and g.cols.max() >= 0 for g in geometries)


def test_every_smaller_convolution_is_one():
    for trial in easy_to_hard(Limits(), 40, seed=3):
        fewer = list(smaller(trial.geometry))
        assert trial.geometry not in fewer


@pytest.mark.parametrize(
    ("text", "numbers"), [("1,2", (1, 2)), ("3×3", (3, 3)), ("3x2", (3, 2)), ("(1, 2)", (1, 2))]
)
def test_whole_numbers(text, numbers):
    assert whole_numbers(text) == numbers


def test_a_hint_in_a_name():
    assert styles._hint("conv2d_grad_weight") == "weight"
    assert styles._hint("backward") is None
    assert styles._hint("grad_weight_and_bias") is None
    with pytest.raises(Misuse):
        styles.read_signature(lambda a: a, "f", None, None)
