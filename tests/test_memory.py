"""What would not fit is refused before it is made, and the sizes that are named are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import integer_arrays, options, random_geometries

import convgrad
from convgrad import (
    IMPLEMENTATIONS,
    ConvGeometry,
    MemoryLimitError,
    conv2d,
    conv2d_backward,
    conv_transpose2d,
    conv_transpose2d_backward,
    double_backward,
    memory,
    per_sample_weight_gradients,
)

every_implementation = pytest.mark.parametrize("name", IMPLEMENTATIONS)

# One thing each that decides what is copied.
LAYERS = {
    "plain": ConvGeometry(N=4, C=16, H=28, W=28, O=16, KH=3, KW=3),
    "padded": ConvGeometry(N=4, C=16, H=28, W=28, O=16, KH=3, KW=3, padding=1),
    "one tap": ConvGeometry(N=4, C=32, H=28, W=28, O=48, KH=1, KW=1),
    "one tap, padded": ConvGeometry(N=4, C=16, H=32, W=32, O=16, KH=1, KW=1, padding=3),
    "one window": ConvGeometry(N=8, C=16, H=20, W=20, O=12, KH=20, KW=20),
    "patches": ConvGeometry(N=2, C=3, H=96, W=96, O=64, KH=16, KW=16, stride=16),
    "groups": ConvGeometry(N=4, C=32, H=28, W=28, O=32, KH=3, KW=3, padding=1, groups=4),
    "groups of one image": ConvGeometry(N=1, C=32, H=56, W=56, O=32, KH=3, KW=3, groups=4),
    "depthwise": ConvGeometry(N=4, C=64, H=28, W=28, O=64, KH=3, KW=3, padding=1, groups=64),
    "leftover": ConvGeometry(N=4, C=16, H=62, W=62, O=64, KH=3, KW=3, stride=7, groups=2),
    "many kernels": ConvGeometry(N=2, C=128, H=8, W=8, O=128, KH=3, KW=3, padding=1),
    "wrapped": ConvGeometry(
        N=3, C=8, H=40, W=50, O=8, KH=3, KW=3, padding=2, padding_mode="circular"
    ),
    "reflected rows": ConvGeometry(
        N=3, C=8, H=60, W=50, O=8, KH=3, KW=3, padding=((2, 1), (0, 0)), padding_mode="reflect"
    ),
}
# The loops are slow: few products, many numbers.
FOR_LOOPS = ConvGeometry(N=1, C=1, H=100, W=120, O=1, KH=1, KW=1, stride=2)

FACTOR = 1.5
# NumPy works on strided operands in buffers of up to 8192 numbers each (version 2.0 in three at
# once, later ones in two), and Python keeps a little.
BUFFERS = 250_000


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """On several, what is kept at once depends on who is where when; on one it is certain."""
    monkeypatch.setenv("CONVGRAD_THREADS", "1")


def peak(call: Callable[[], Any]) -> int:
    """The most bytes that the call held at once."""
    call()  # what is made once and kept is there now
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def close(promised: int, measured: int) -> bool:
    return promised <= FACTOR * measured + BUFFERS and measured <= FACTOR * promised + BUFFERS


def operands(geometry: ConvGeometry) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(
        np.ones(shape) for shape in (geometry.x_shape, geometry.weight_shape, geometry.output_shape)
    )


def repeated(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Arrays of any size that hold one number."""
    return [np.broadcast_to(1.0, shape) for shape in shapes]


@pytest.mark.parametrize("layer", LAYERS)
@every_implementation
def test_a_working_set_is_what_is_kept(name, layer):
    geometry = FOR_LOOPS if name == "loops" else LAYERS[layer]
    if name == "loops" and layer != "plain":
        return
    x, weight, g = operands(geometry)
    rule = IMPLEMENTATIONS[name]
    given = {"forward": (x, weight), "grad_input": (g, weight), "grad_weight": (g, x)}
    for each, numbers in rule.working_set(geometry)._asdict().items():
        measured = peak(lambda each=each: getattr(rule, each)(*given[each], geometry))
        assert close(8 * numbers, measured), (each, 8 * numbers, measured)


def test_a_working_set_that_forgets_the_columns_would_be_noticed():
    geometry = LAYERS["padded"]
    x, weight, _ = operands(geometry)
    measured = peak(lambda: IMPLEMENTATIONS["im2col"].forward(x, weight, geometry))
    assert not close(8 * IMPLEMENTATIONS["windows"].working_set(geometry).forward, measured)


@pytest.mark.parametrize("layer", ["padded", "one tap", "groups", "wrapped"])
@pytest.mark.parametrize("name", [name for name in IMPLEMENTATIONS if name != "loops"])
def test_so_it_is_at_the_front_door(name, layer):
    geometry = LAYERS[layer]
    x, weight, g = operands(geometry)
    arguments = options(geometry) | {"implementation": name}
    rule = IMPLEMENTATIONS[name]
    for maps, call in (
        (["forward"], lambda: conv2d(x, weight, **arguments)),
        (["grad_input", "grad_weight"], lambda: conv2d_backward(g, x, weight, **arguments)),
    ):
        needed, measured = memory.bytes_needed(rule, geometry, maps, itemsize=8), peak(call)
        # twice the result is reckoned with, for it may have to be copied; not all ways need that
        copy = max(8 * memory.result_numbers(geometry)[each] for each in maps)
        assert close(needed, measured) or close(needed - copy, measured)


@every_implementation
def test_every_geometry_has_a_working_set(name):
    large = ConvGeometry(N=0, C=64, H=256, W=256, O=8, KH=3, KW=3, stride=2)
    for geometry in (large, replace(large, groups=8), *random_geometries(200, seed=3)):
        for numbers in IMPLEMENTATIONS[name].working_set(geometry):
            assert isinstance(numbers, int) and numbers >= 0


# ---- the refusal -----------------------------------------------------------------------------

HUGE = ConvGeometry(N=64, C=8, H=1000, W=1000, O=8, KH=5, KW=5)


@pytest.mark.parametrize("name", [name for name in IMPLEMENTATIONS if name != "loops"])
def test_what_would_not_fit_is_refused_before_it_is_made(name):
    x, weight, g = repeated(HUGE.x_shape, HUGE.weight_shape, HUGE.output_shape)
    for call in (
        lambda: conv2d(x, weight, implementation=name),
        lambda: conv2d_backward(g, x, weight, implementation=name),
        lambda: double_backward(x, None, None, g, x, weight, implementation=name),
        lambda: conv_transpose2d(g, weight, implementation=name),
        lambda: conv_transpose2d_backward(x, g, weight, implementation=name),
    ):
        tracemalloc.start()
        try:
            with pytest.raises(MemoryLimitError, match=r"(results alone|on) .* needs .* limit is"):
                call()
            assert tracemalloc.get_traced_memory()[1] < 10**6
        finally:
            tracemalloc.stop()


def test_the_operands_of_the_caller_are_named():
    with pytest.raises(MemoryLimitError, match=r"x 1×1×1×3, 1 output channel, kernels 1×2, stride"):
        conv_transpose2d([[[[1, 2, 3]]]], [[[[1, 2]]]], stride=10**9)


def test_shares_of_every_image_are_refused():
    x, g = repeated((10**6, 8, 9, 9), (10**6, 64, 9, 9))
    with pytest.raises(MemoryLimitError, match=r"each of 1000000 images needs .* fewer images"):
        per_sample_weight_gradients(g, x, (64, 8, 1, 1))


def test_repeated_integers_are_refused_before_they_are_written_out():
    x = np.broadcast_to(1, (2, 10**5, 10**5))
    with pytest.raises(MemoryLimitError, match=r"holds int64 becomes float64 and needs 160 GB"):
        conv2d(x, np.ones((1, 2, 1, 1)))
    half = np.broadcast_to(np.float16(1), (2, 10**5, 10**5))
    with pytest.raises(MemoryLimitError, match=r"holds float16 becomes float32 and needs 80 GB"):
        conv2d(half, np.ones((1, 2, 1, 1), np.float16))


def test_a_refusal_is_a_value_error_and_a_memory_error():
    """Who refuses bad arguments catches it, and who retries with less memory does."""
    assert issubclass(MemoryLimitError, ValueError) and issubclass(MemoryLimitError, MemoryError)


def test_the_implementation_that_is_offered_fits(monkeypatch):
    geometry = LAYERS["padded"]
    x, weight, g = integer_arrays(geometry, seed=1)
    answers = conv2d_backward(g, x, weight, padding=1)
    monkeypatch.setattr(memory, "LIMIT", 2_000_000)
    with pytest.raises(MemoryLimitError) as error:
        conv2d_backward(g, x, weight, padding=1, implementation="im2col")
    words = r"take implementation='(\w+)', which needs ([\d.]+) ([kM])B"
    offered = re.search(words, str(error.value))
    assert float(offered[2]) <= {"k": 2000, "M": 2}[offered[3]]
    results = conv2d_backward(g, x, weight, padding=1, implementation=offered[1])
    for result, answer in zip(results, answers, strict=True):
        assert_array_equal(result, answer)


def test_the_batch_that_is_offered_fits_and_one_more_does_not(monkeypatch):
    x, weight, _ = operands(LAYERS["padded"])
    monkeypatch.setattr(memory, "LIMIT", 3_000_000)
    with pytest.raises(MemoryLimitError) as error:
        conv2d(x, weight, padding=1, implementation="im2col")
    most = int(re.search(r"take at most (\d+) images at a time", str(error.value))[1])
    assert conv2d(x[:most], weight, padding=1, implementation="im2col").shape[0] == most
    with pytest.raises(MemoryLimitError):
        conv2d(x[: most + 1], weight, padding=1, implementation="im2col")


def test_the_limit_that_is_offered_is_enough(monkeypatch):
    x, weight, _ = operands(LAYERS["padded"])
    monkeypatch.setattr(memory, "LIMIT", 1_000)
    with pytest.raises(MemoryLimitError) as error:
        conv2d(x, weight)
    factor, power = re.search(r"LIMIT = (\d) \* 10\*\*(\d+)$", str(error.value)).groups()
    monkeypatch.setattr(memory, "LIMIT", int(factor) * 10 ** int(power))
    assert conv2d(x, weight).shape == (4, 16, 26, 26)


def test_the_output_alone_may_be_too_large():
    x, weight = np.ones((1, 1, 300, 300)), np.ones((10_000, 1, 1, 1))
    with pytest.raises(MemoryLimitError) as error:
        conv2d(x, weight, implementation="windows")
    assert "the results alone for x 1×1×300×300, 10000 kernels 1×1 are 7.2 GB" in str(error.value)
    assert "take implementation" not in str(error.value)  # none would fit


def test_a_rule_that_does_not_say_is_asked_for_its_results():
    plain = convgrad.Implementation("plain", "", *[lambda *operands: None] * 4)
    geometry = LAYERS["padded"]
    assert memory.bytes_needed(plain, geometry, ["forward"], 4) == 4 * 2 * 4 * 16 * 28 * 28


# ---- the limit -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [("4e9", 4 * 10**9), ("16GB", 16 * 10**9), (" 1.5 mb ", 1_500_000), ("2 kB", 2000), ("7 b", 7)],
)
def test_limits_in_words(text, size):
    assert memory.limit_from(text) == size


@pytest.mark.parametrize(
    "text", ["", "much", "-1", "0", "1e999", "nan", "4 GiB", "2k", "1.2.3", "."]
)
def test_a_limit_that_is_none(text):
    with pytest.raises(ValueError, match=r"CONVGRAD_MEMORY_LIMIT is .*: needed is a number of b"):
        memory.limit_from(text)


@pytest.mark.parametrize(
    ("text", "said"), [("5 MB", "5000000"), ("", "4000000000"), ("5 apples", "needed is a number")]
)
def test_the_environment_sets_the_limit(text, said):
    source = str(Path(convgrad.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", "from convgrad import memory; print(memory.LIMIT)"],
        env=os.environ | {"PYTHONPATH": source, "CONVGRAD_MEMORY_LIMIT": text},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said in (result.stdout + result.stderr).splitlines()[-1]
