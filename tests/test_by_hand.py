"""by_hand lets an answer work, and stops it where it hands its work on."""

from __future__ import annotations

import math
import sys
import threading

import numpy as np
import pytest

from convgrad import ConvGeometry, conv2d, exercises, loops, windows
from convgrad.exercises import NotByHand, by_hand

x, w = np.ones((1, 1, 4, 4)), np.ones((1, 1, 2, 2))
renamed = conv2d


def swallow(x, w):
    try:
        return renamed(x, w)
    except BaseException:
        return np.zeros(3)


def in_a_thread(x, w):
    found = []
    thread = threading.Thread(target=lambda: found.append(conv2d(x, w)))
    thread.start()
    thread.join()
    return found[0]


def watch_ended(x, w):
    sys.setprofile(None)
    return conv2d(x, w)


def its_own_fence(x, w):
    return by_hand(conv2d, allow=[conv2d])(x, w)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda x, w: conv2d(x, w), "convgrad.api.conv2d"),
        (lambda x, w: next(map(renamed, [x], [w])), "convgrad.api.conv2d"),
        (lambda x, w: windows.forward(x, w, ConvGeometry.of(x.shape, w.shape)), "windows.forward"),
        (lambda x, w: exercises.get("window-slide").check(0), "convgrad.exercises.get"),
        (swallow, "convgrad.api.conv2d"),
        (in_a_thread, "start"),
        (watch_ended, "setprofile"),
        (its_own_fence, "by_hand"),
    ],
)
def test_a_call_that_leads_out_is_named(answer, named):
    with pytest.raises(NotByHand, match="this calls ") as caught:
        by_hand(answer)(x, w)
    assert named in str(caught.value)
    assert sys.getprofile() is None


def works(x, w):
    geometry = ConvGeometry.of(x.shape, w.shape)
    seen = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    assert geometry.source(0, 0, 1, 1) == (1, 1) and math.floor(1.5) == 1
    print(f"{geometry.OH}", end="")
    return np.einsum("ncpqij,ocij->nopq", seen, w)


def test_a_notebook_that_calls_itself_a_library_is_none():
    scope: dict = {"__name__": "convgrad.mine"}
    exec("import convgrad\ndef answer(x, w):\n    return convgrad.conv2d(x, w)", scope)
    with pytest.raises(NotByHand, match=r"convgrad\.api\.conv2d"):
        by_hand(scope["answer"])(x, w)


def test_numpy_python_and_the_geometry_are_free(capsys):
    answer = by_hand(works)
    assert np.array_equal(answer(x, w), conv2d(x, w)) and capsys.readouterr().out == "3"
    assert answer.calls == 0


def test_what_is_allowed_is_counted():
    answer = by_hand(lambda x, w: conv2d(x, w) + conv2d(x, 2 * w), allow=[conv2d])
    assert np.array_equal(answer(x, w), 3 * conv2d(x, w))
    assert answer.calls == 2
    answer(x, w)
    assert answer.calls == 2
    with pytest.raises(TypeError, match="functions written in Python, not <built-in"):
        by_hand(swallow, allow=[len])


def test_a_function_that_is_handed_over_may_be_called():
    geometry = ConvGeometry.of(x.shape, w.shape)
    assert by_hand(lambda rule: rule(x, w, geometry).sum())(loops.forward) == 36
    assert by_hand(lambda rule: rule())(lambda: conv2d(x, w)).sum() == 36


def test_what_is_no_function_comes_back():
    assert by_hand(...) is ... and by_hand(3) == 3


def test_an_error_is_the_answer_s_own_and_nothing_written_is_none():
    def broken(x):
        raise ValueError("mine")

    def unwritten(x):
        raise NotImplementedError

    with pytest.raises(ValueError, match="mine"):
        by_hand(broken)(1)
    assert by_hand(unwritten)(1) is None
    assert sys.getprofile() is None


def test_another_watch_goes_on_afterwards():
    def mine(*event):
        seen.append(event)

    seen: list[tuple] = []
    sys.setprofile(mine)
    try:
        by_hand(works)(x, w)
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)


def test_an_exercise_says_so_in_its_words():
    def slide(x, w):
        return conv2d(x[None, None], w[None, None])[0, 0]

    said = str(exercises.get("window-slide").check(by_hand(slide)))
    assert "this calls convgrad.api.conv2d" in said and "write it yourself, with NumPy" in said
    assert exercises.get("window-slide").check(slide).passed


@pytest.mark.oracle
def test_pytorch_is_a_library_and_with_tensors_only_its_gradients_are():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    a, b = torch.ones(2, 1, 4, 4), torch.ones(1, 1, 2, 2)

    def learned(a, b):
        b = b.clone().requires_grad_()
        (F.unfold(a, (2, 2)).sum() * b).sum().backward()
        return b.grad

    for call in (
        lambda a, b: F.conv2d(a, b),
        lambda a, b: torch.nn.Conv2d(1, 1, 2)(a),
        lambda a, b: F.conv_transpose2d(a, b),
        lambda a, b: torch.nn.grad.conv2d_weight(a, b.shape, torch.ones(2, 1, 3, 3)),
        learned,
        lambda a, b: torch.func.grad(lambda b: (b * b).sum())(b),
    ):
        with pytest.raises(NotByHand, match=r"with tensors$"):
            by_hand(call, tensors=True)(a, b)
    assert by_hand(lambda a, b: F.unfold(a, b.shape[2:]), tensors=True)(a, b).shape == (2, 4, 9)
    for call in (lambda a, b: torch.from_numpy(a), lambda a, b: torch.tensor(a) + 1):
        with pytest.raises(NotByHand, match=r"torch\.\w+: .* with NumPy$"):
            by_hand(call)(x, w)
    assert sys.getprofile() is None
