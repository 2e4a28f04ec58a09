"""Contributions as arrays: the ledger's list, any part of it, and its counts."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import (
    channels_last,
    complex_integer_arrays,
    geometries,
    integer_arrays,
    random_geometries,
    seeds,
)

from convgrad import (
    ConvGeometry,
    GeometryError,
    MemoryLimitError,
    conv2d_backward,
    example,
    ledger,
    loops,
    memory,
    tables,
)
from convgrad.ledger import ORDERS, TARGETS
from convgrad.tables import Listing

targets = st.sampled_from(TARGETS)
orders = st.sampled_from(tuple(ORDERS))

# A whole layer: 2.26 million products on the image.
LAYER = ConvGeometry(C=16, H=32, W=32, O=16, KH=3, KW=3, padding=1)
# Borders of two widths, a leftover, groups.
MIXED = ConvGeometry(
    N=2, C=4, H=4, W=5, O=6, KH=3, KW=2, stride=(2, 3), padding=((1, 1), (2, 0)), groups=2
)
COLUMNS = ("n", "o", "c", "p", "q", "i", "j", "h", "v", "channel")


def rows_of(table: tables.Table) -> list[ledger.Contribution]:
    return [table.contribution(k) for k in range(len(table))]


# ---- the list --------------------------------------------------------------------------------


@given(geometries(), targets, orders, st.booleans())
def test_a_listing_is_the_ledgers_list(geometry, target, order, include_padding):
    listing = Listing(geometry, target, order, include_padding)
    every = list(ledger.contributions(geometry, target, order, include_padding))
    assert len(listing) == len(every)
    assert rows_of(listing[:]) == every


@given(geometries(), targets, orders, st.booleans(), st.data())
@settings(max_examples=60)
def test_a_part_is_that_part_of_the_list(geometry, target, order, include_padding, data):
    listing = Listing(geometry, target, order, include_padding)
    every = list(ledger.contributions(geometry, target, order, include_padding))
    part = data.draw(st.slices(len(every)))
    assert rows_of(listing[part]) == every[part]
    if every:
        step = data.draw(st.integers(-len(every), len(every) - 1))
        assert listing[step] == every[step]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_column(target, order):
    """The columns by themselves, not through the contributions made of them."""
    geometry = MIXED
    table = Listing(geometry, target, order, include_padding=True)[:]
    every = list(ledger.contributions(geometry, target, order, include_padding=True))
    for name in COLUMNS:
        column = getattr(table, name)
        wanted = [getattr(each, name) for each in every]
        if column is None:
            assert set(wanted) == {None}
        else:
            assert_array_equal(column, wanted)
            assert column.dtype == np.int32
    at = {
        "grad_output_at": (geometry.output_shape, lambda c: (c.n, c.o, c.p, c.q)),
        "lands": (_shape(geometry, target), lambda c: c.target),
    }
    if target == "bias":
        assert (table.x_at, table.weight_at, table.row, table.col) == (None,) * 4
    else:
        at["weight_at"] = geometry.weight_shape, lambda c: (c.o, c.c, c.i, c.j)
        at["x_at"] = geometry.x_shape, lambda c: c.cell and (c.n, c.channel, *c.cell)
        cells = [each.cell or (-1, -1) for each in every]
        assert_array_equal(np.stack([table.row, table.col], axis=1), cells)
    for name, (shape, index) in at.items():
        wanted = [-1 if index(c) is None else np.ravel_multi_index(index(c), shape) for c in every]
        assert_array_equal(getattr(table, name), wanted)
    assert target == "bias" or -1 in table.x_at


def _shape(geometry: ConvGeometry, target: str) -> tuple[int, ...]:
    shapes = {"weight": geometry.weight_shape, "input": geometry.x_shape}
    return shapes.get(target, geometry.bias_shape)


def rank(geometry: ConvGeometry, order: str, each: ledger.Contribution) -> int:
    """How many contributions stand before this one: for each letter those with a smaller index."""
    sizes = {"n": geometry.N, "o": geometry.O, "c": geometry.CG}
    axes = {("p", "i"): geometry.rows >= 0, ("q", "j"): geometry.cols >= 0}

    def completions(fixed: dict[str, int]) -> int:
        number = 1
        for letter, size in sizes.items():
            number *= 1 if letter in fixed else size
        for letters, allowed in axes.items():
            part = allowed[tuple(fixed.get(letter, slice(None)) for letter in letters)]
            number *= int(part.sum())
        return number

    before, fixed = 0, {}
    for letter in ORDERS[order]:
        index = getattr(each, letter)
        before += sum(completions(fixed | {letter: value}) for value in range(index))
        fixed[letter] = index
    return before


@pytest.mark.parametrize("order", ORDERS)
def test_any_step_of_a_list_of_thousands_of_millions(order):
    """No list to compare with: the number of a step is how many come before it."""
    listing = Listing(example("F").geometry, "weight", order)
    assert len(listing) > 2**31
    steps = [0, 1, 2**31 - 1, 2**31, 3_000_000_007, len(listing) - 1]
    for step in steps:
        assert rank(listing.geometry, order, listing[step]) == step
    assert listing[steps[3] : steps[3] + 2].contribution(0) == listing[steps[3]]


@given(geometries(), targets, orders, st.integers(1, 50))
@settings(max_examples=30)
def test_blocks_are_the_list_in_pieces(geometry, target, order, size):
    listing = Listing(geometry, target, order)
    blocks = list(listing.blocks(size))
    assert all(len(block) == size for block in blocks[:-1])
    assert [row for block in blocks for row in rows_of(block)] == rows_of(listing[:])


def test_a_batch_of_no_images_has_an_empty_list():
    many = ConvGeometry(N=0, C=2**31 - 1, H=1, W=1, O=2**31 - 1, KH=1, KW=1)
    for target, order in itertools.product(TARGETS, ORDERS):
        listing = Listing(many, target, order)
        assert len(listing) == len(listing[:]) == 0
        assert list(listing.blocks()) == []


# ---- counts ----------------------------------------------------------------------------------


@given(geometries(), targets, st.booleans())
def test_a_count_is_the_length_of_the_list(geometry, target, include_padding):
    every = ledger.contributions(geometry, target, include_padding=include_padding)
    assert tables.count(geometry, target, include_padding) == sum(1 for _ in every)


@given(geometries())
def test_per_tap_counts_what_lands_in_a_tap(geometry):
    landed = Counter(each.target for each in ledger.contributions(geometry, "weight"))
    numbers = tables.per_tap(geometry)
    assert numbers.shape == (geometry.KH, geometry.KW)
    for cell in np.ndindex(geometry.weight_shape):
        assert landed[cell] == numbers[cell[2:]]
    assert numbers.sum() * geometry.O * geometry.CG == tables.count(geometry)


@given(geometries())
def test_multiplicity_is_grad_input_of_ones(geometry):
    single = replace(geometry, N=1, C=1, O=1, groups=1)
    ones = np.ones(single.output_shape), np.ones(single.weight_shape)
    reads = tables.multiplicity(geometry)
    assert_array_equal(reads, loops.grad_input(*ones, single)[0, 0])
    assert reads.dtype == np.int64


def test_what_a_mode_copies_counts_for_the_cell():
    """No product is lost, so the reads are the products of one channel and kernel."""
    for geometry in random_geometries(60, seed=1):
        products = geometry.OH * geometry.OW * geometry.KH * geometry.KW
        lost = products - tables.multiplicity(geometry).sum()
        assert lost >= 0
        assert lost == 0 or geometry.padding_mode == "zeros"


# ---- sums ------------------------------------------------------------------------------------


@given(geometries(), seeds(), targets, orders, st.booleans())
def test_the_products_add_up_to_the_gradient(geometry, seed, target, order, include_padding):
    x, weight, g = integer_arrays(geometry, seed)
    operands = {"x": x, "weight": weight, "grad_output": g}
    total = tables.accumulate(
        geometry, target, order=order, include_padding=include_padding, **operands
    )
    definition = {
        "weight": lambda: loops.grad_weight(g, x, geometry),
        "input": lambda: loops.grad_input(g, weight, geometry),
        "bias": lambda: loops.grad_bias(g, geometry),
    }
    assert_array_equal(total, definition[target](), strict=True)


@given(geometries(), seeds(), targets, orders)
@settings(max_examples=40)
def test_each_product_is_the_ledgers(geometry, seed, target, order):
    x, weight, g = integer_arrays(geometry, seed)
    operands = {"x": x, "weight": weight, "grad_output": g}
    numbers = tables.products(Listing(geometry, target, order, True)[:], **operands)
    every = ledger.contributions(geometry, target, order, True)
    assert_array_equal(
        numbers, [ledger.product(each, target, **operands) for each in every], strict=False
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
def test_sums_are_rounded_as_the_ledger_rounds_them(target, order, dtype, monkeypatch):
    """Fractions, so that the order of the sums shows; blocks that end in the middle of a cell."""
    monkeypatch.setattr(tables, "_BLOCK", 97)
    rng = np.random.default_rng(0)
    names = {"x": MIXED.x_shape, "weight": MIXED.weight_shape, "grad_output": MIXED.output_shape}
    operands = {name: rng.standard_normal(shape).astype(dtype) for name, shape in names.items()}
    total = tables.accumulate(MIXED, target, order=order, **operands)
    assert_array_equal(total, ledger.accumulate(MIXED, target, order=order, **operands))
    assert total.dtype == dtype


def test_the_order_of_the_sums_shows_in_the_last_digits():
    """What the test above rests on."""
    rng = np.random.default_rng(1)
    geometry = ConvGeometry(N=5, C=1, H=30, W=30, O=3, KH=3, KW=3)
    weight, g = rng.standard_normal(geometry.weight_shape), rng.standard_normal((5, 3, 28, 28))
    by_tap, by_position = (
        tables.accumulate(geometry, "input", weight=weight, grad_output=g, order=order)
        for order in ("tap", "position")
    )
    assert (by_tap != by_position).any()
    assert np.allclose(by_tap, by_position, rtol=1e-12, atol=1e-12)


def test_complex_operands_are_conjugated():
    x, weight, g = complex_integer_arrays(MIXED, seed=5)
    arguments = {"stride": MIXED.stride, "padding": MIXED.padding, "groups": MIXED.groups}
    expected = conv2d_backward(g, x, weight, **arguments)
    for target, gradient in zip(("input", "weight", "bias"), expected, strict=True):
        total = tables.accumulate(MIXED, target, x=x, weight=weight, grad_output=g)
        assert_array_equal(total, gradient, strict=True)


def test_infinity_on_padding_is_multiplied_when_asked_for():
    geometry = ConvGeometry(C=1, H=2, W=2, O=1, KH=2, KW=2, padding=1)
    x, g = np.ones(geometry.x_shape), np.ones(geometry.output_shape)
    g[0, 0, 0, 0] = np.inf
    for include_padding in (False, True):
        arguments = {"x": x, "grad_output": g, "include_padding": include_padding}
        total = tables.accumulate(geometry, "weight", **arguments)
        assert_array_equal(total, ledger.accumulate(geometry, "weight", **arguments))
        assert np.isnan(total).any() == include_padding


def test_any_layout_in_memory():
    x, weight, g = map(channels_last, integer_arrays(MIXED, seed=2))
    before = x.copy(), weight.copy(), g.copy()
    for target in TARGETS:
        total = tables.accumulate(MIXED, target, x=x, weight=weight, grad_output=g)
        copies = dict(zip(("x", "weight", "grad_output"), before, strict=True))
        assert_array_equal(total, tables.accumulate(MIXED, target, **copies))
    for array, copy in zip((x, weight, g), before, strict=True):
        assert_array_equal(array, copy)


# ---- a whole layer ---------------------------------------------------------------------------


def test_a_whole_layer_adds_up():
    x, weight, g = integer_arrays(LAYER, seed=3)
    gradients = conv2d_backward(g, x, weight, padding=1)
    for target, gradient in zip(("input", "weight", "bias"), gradients, strict=True):
        total = tables.accumulate(LAYER, target, x=x, weight=weight, grad_output=g)
        assert_array_equal(total, gradient, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_a_whole_layer_is_there_at_once(order):
    """About 0.2 s of the processor, with every column; ten times as much would be a mistake."""
    times = []
    for _ in range(3):
        start = time.process_time()
        table = Listing(LAYER, "input", order)[:]
        assert len(table.lands) == len(table.grad_output_at) == len(table.h) == 2_262_016
        times.append(time.process_time() - start)
    assert min(times) < 2


def test_memory_does_not_grow_with_the_list():
    _, weight, g = integer_arrays(LAYER, seed=4)
    tracemalloc.start()
    try:
        tables.accumulate(LAYER, "input", weight=weight, grad_output=g)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 20_000_000 < 16 * len(Listing(LAYER, "input"))


def test_the_bytes_of_a_step_are_honest():
    """What a table is refused for is what it takes, all columns asked for."""
    listing = Listing(LAYER, "input", "position")
    tracemalloc.start()
    try:
        table = listing[:500_000]
        table.lands, table.weight_at, table.grad_output_at, table.h, table.channel  # noqa: B018
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 500_000 * tables._STEP_BYTES < 3 * most


# ---- what cannot be --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: Listing(MIXED, "x"), ValueError, "'weight', 'input', 'bias'"),
        (lambda: Listing(MIXED, "weight", "row"), ValueError, "'tap', 'position'"),
        (lambda: tables.count(MIXED, "grad_weight"), ValueError, "target is 'grad_weight'"),
        (lambda: Listing(MIXED)[10**6], IndexError, "there is no step 1000000: this list has"),
        (lambda: Listing(MIXED)["1"], TypeError, "needed is a whole number or a slice"),
        (lambda: Listing(MIXED)[1.0], TypeError, "needed is a whole number or a slice"),
        (lambda: Listing(MIXED).blocks(0), ValueError, "size is 0: needed is a whole number"),
        (lambda: Listing(MIXED).blocks(2.5), ValueError, "size is 2.5"),
        (
            lambda: tables.products(Listing(MIXED)[:], x=np.ones(MIXED.x_shape)),
            ValueError,
            "need grad_output",
        ),
        (
            lambda: tables.accumulate(MIXED, "bias", grad_output=np.ones((1, 6, 2, 2))),
            ValueError,
            "grad_output has shape",
        ),
        (
            lambda: Listing(example("F").geometry)[:],
            MemoryLimitError,
            r"a table of 3611820032 contributions needs 462 GB.*listing\.blocks",
        ),
        (
            lambda: Listing(
                ConvGeometry(N=2**31 - 1, C=2**31 - 1, H=1, W=1, O=2**31 - 1, KH=1, KW=1)
            ),
            GeometryError,
            "at most 9223372036854775807 can be numbered",
        ),
        (
            lambda: tables.multiplicity(ConvGeometry(C=1, H=2**31 - 1, W=1, O=1, KH=1, KW=1)),
            MemoryLimitError,
            "index maps of this convolution need",
        ),
    ],
)
def test_errors_teach(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()


def test_a_gradient_that_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "LIMIT", 10_000)
    geometry = ConvGeometry(C=1, H=100, W=100, O=1, KH=1, KW=1, stride=50)
    operands = {"weight": np.ones((1, 1, 1, 1)), "grad_output": np.ones((1, 1, 2, 2))}
    for accumulate in (ledger.accumulate, tables.accumulate):
        with pytest.raises(MemoryLimitError, match=r"grad_input of shape .* needs 80 kB"):
            accumulate(geometry, "input", **operands)
