"""The roof, worked out by hand and against the time that multiprocessors would take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from strategies import random_geometries

from convgrad import ConvGeometry, GeometryError, example
from convgrad.costs import intensity, operations, traffic
from convgrad.implicit import gemm
from convgrad.layers import TABLE
from convgrad.roofline import BYTES, CARDS, MAPS, Bound, Card, Roof, bound, card_named
from convgrad.schedule import Schedule, Tile, fitting

LAYER = example("F").geometry
SMALL = Card(float32=1.0, tf32=4.0, bfloat16=8.0, float16=8.0, memory=0.1, multiprocessors=4)
GEOMETRIES = [g for g in random_geometries(80, seed=9) if g.N]


# ---- cards -----------------------------------------------------------------------------------


def test_the_corner_is_where_both_limits_meet():
    roof = Roof(peak=60.0, bandwidth=3.0)
    assert roof.over(roof.ridge) == roof.peak == roof.bandwidth * roof.ridge
    assert roof.over(roof.ridge / 2) == roof.peak / 2
    assert roof.over(2 * roof.ridge) == roof.peak


def test_the_cards_are_in_order():
    for name, card in CARDS.items():
        assert card.float32 <= card.tf32 <= card.float16, name
        assert card.bfloat16 in (card.float16, card.float32), name
        assert 0.1 < card.memory < 10 and 10 < card.multiprocessors < 200, name
        ridges = [card.roof(precision).ridge for precision in BYTES]
        assert all(5 < ridge < 600 for ridge in ridges), name
    assert CARDS["T4"].tf32 == CARDS["T4"].bfloat16 == CARDS["T4"].float32
    # the same chip with another memory
    assert CARDS["H200"]._replace(memory=3.35) == CARDS["H100"]


@pytest.mark.parametrize(
    ("name", "which"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("Tesla T4", "T4"),
        ("NVIDIA L40S", None),
        ("NVIDIA L4", "L4"),
    ],
)
def test_a_card_is_found_by_the_name_that_pytorch_has_for_it(name, which):
    assert card_named(name) == (CARDS[which] if which else None)


# ---- one map of a layer ----------------------------------------------------------------------


@pytest.mark.parametrize("precision", BYTES)
def test_without_tiles_it_is_the_plain_roof(precision):
    for g in GEOMETRIES:
        for which in MAPS:
            for columns in (False, True):
                found = bound(g, which, SMALL, precision, columns=columns)
                per_byte = intensity(g, BYTES[precision], columns=columns)
                assert found.intensity == pytest.approx(per_byte)
                roof = SMALL.roof(precision)
                assert found.tflops == pytest.approx(min(roof.peak, 0.1 * per_byte))
                assert found.milliseconds == pytest.approx(
                    max(
                        operations(g) / roof.peak / 1e9,
                        traffic(g, BYTES[precision], columns=columns) / 0.1 / 1e9,
                    )
                )
                over_corner = per_byte >= roof.ridge
                assert found.limit == ("arithmetic" if over_corner else "memory")
                assert (found.tiles, found.waves, found.share) == (0, 0, 1.0)


def test_the_ceiling_is_the_time_of_the_busiest_multiprocessor():
    """Each program takes its tile's products at the multiprocessor's part of the peak."""
    rng = np.random.default_rng(4)
    split = 0
    for g in GEOMETRIES:
        for which in MAPS:
            splits, tile = int(rng.integers(1, 9)), int(rng.choice([16, 64]))
            found = bound(g, which, SMALL, tile=tile, splits=splits)
            product = gemm(g, MAPS[which])
            sides = Tile(fitting(product.M, tile), fitting(product.N, tile), 1)
            parts = splits if which == "grad_weight" else 1
            cut = Schedule(g, MAPS[which], tile=sides, splits=parts)
            each = 2 * sides.M * sides.N * cut.share / (SMALL.float32 / 4)
            done = [0.0] * SMALL.multiprocessors
            for _ in range(cut.programs):
                done[int(np.argmin(done))] += each
            assert found.ceiling == pytest.approx(min(SMALL.float32, operations(g) / max(done)))
            assert found.share <= 1 and found.tflops <= SMALL.float32
            split += cut.programs > cut.tiles
    assert split > 20


def test_few_tiles_are_the_limit_and_split_k_lifts_it():
    card = CARDS["H100"]
    one = bound(LAYER, "grad_weight", card, "float16", tile=128)
    assert (one.tiles, one.waves, one.limit) == (5, 1, "tiles")
    # five of 132 at work, and the last of the five tiles half empty
    assert one.share == pytest.approx(5 / 132 * 576 / 640)
    for which in ("forward", "grad_input"):
        full = bound(LAYER, which, card, "float16", tile=128)
        assert full.tiles == 784 and full.waves == 6 and full.share == pytest.approx(784 / 792)
    found = [bound(LAYER, "grad_weight", card, "float16", tile=128, splits=s) for s in (1, 26, 27)]
    assert [each.waves for each in found] == [1, 1, 2]
    assert found[1].share > 25 * found[0].share
    assert found[2].share < found[1].share / 1.9, "one program too many costs a whole wave"
    # the shares are written and read
    grown = found[1].bytes - one.bytes
    assert grown == 2 * 26 * 4 * 64 * 64 * 9
    assert found[1].limit == "memory" and one.intensity > found[1].intensity


def test_only_the_weight_gradient_is_split():
    for which in ("forward", "grad_input"):
        alone, split = (bound(LAYER, which, SMALL, tile=64, splits=s) for s in (1, 8))
        assert alone == split


def test_columns_slide_to_the_left():
    plain, columns = (bound(LAYER, "forward", SMALL, columns=c) for c in (False, True))
    assert plain.operations == columns.operations
    assert columns.intensity < plain.intensity / 9
    pointwise = TABLE["1×1, 256→64 @56"]
    same = [bound(pointwise, "forward", SMALL, columns=c) for c in (False, True)]
    assert same[0] == same[1]


def test_a_stride_makes_products_that_do_not_exist():
    """Gathering asks every tap for each cell of x; with stride 2 one in four answers."""
    strided = ConvGeometry(N=64, C=64, H=64, W=64, O=64, KH=2, KW=2, stride=2)
    found = bound(strided, "grad_input", SMALL, tile=64)
    assert found.share == pytest.approx(1 / 4)
    assert bound(strided, "forward", SMALL, tile=64).share == pytest.approx(1)


def test_short_numbers_move_half_the_bytes():
    single, tensor, half = (
        bound(LAYER, "forward", SMALL, precision) for precision in ("float32", "tf32", "float16")
    )
    assert single.bytes == tensor.bytes == 2 * half.bytes
    assert half.intensity == 2 * single.intensity


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"precision": "float8"}, "precision='float8': known are float32, tf32"),
        ({"which": "bias"}, "which='bias': known are"),
        ({"splits": 0}, "splits=0, tile=0: needed is at least 1 split"),
        ({"tile": -1}, "tile=-1: needed is"),
        ({"tile": 8}, "tile=8: needed is"),
    ],
)
def test_what_is_no_question_is_refused_in_words(arguments, words):
    with pytest.raises(ValueError, match=words):
        bound(**{"geometry": LAYER, "which": "forward", "card": SMALL} | arguments)


def test_an_empty_batch_has_no_bound():
    with pytest.raises(GeometryError, match="N = 0: there is nothing to compute"):
        bound(replace(LAYER, N=0), "forward", SMALL)


def test_every_layer_of_the_table_lies_on_or_under_its_roof():
    limits = set()
    for layer in TABLE.values():
        for which in MAPS:
            for precision in BYTES:
                found: Bound = bound(layer, which, CARDS["A100-SXM4-80GB"], precision, tile=128)
                roof = CARDS["A100-SXM4-80GB"].roof(precision)
                assert 0 < found.tflops <= roof.over(found.intensity)
                limits.add(found.limit)
    assert limits == {"arithmetic", "memory", "tiles"}


@pytest.mark.parametrize("most", [16, 64, 128])
def test_a_side_is_the_power_of_two_that_holds_it(most):
    for size in range(1, 300):
        side = fitting(size, most)
        assert side.bit_count() == 1 and 16 <= side <= most
        assert side >= min(size, most)
        assert side == 16 or side // 2 < size
