"""*Twelve layers*: every cell runs, every layer is right, every picture says what it shows."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from pages import BOOK, CELL

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from convgrad.autograd import Examined  # noqa: E402
from convgrad.figures.chapters import conv2d_gallery as pictures  # noqa: E402

pytestmark = pytest.mark.oracle

PAGE = BOOK / "part5" / "conv2d_gallery.md"
CELLS = [
    (match["options"] or "", match["code"]) for match in CELL.finditer(PAGE.read_text("utf-8"))
]


@pytest.fixture(scope="module")
def run() -> tuple[dict, list[tuple[str, str, str]]]:
    """Every name of the page, and options, code and output of its cells."""
    scope, seen = {}, []
    for options, code in CELLS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, PAGE.name, "exec"), scope)
        seen.append((options, code, printed.getvalue()))
    return scope, seen


def layers(scope: dict) -> dict[str, Examined]:
    return {name: each for name, each in scope.items() if isinstance(each, Examined)}


def test_there_are_twelve_and_all_are_right(run):
    scope, seen = run
    assert len(re.findall(r"^## ", PAGE.read_text("utf-8"), re.M)) == 12 + 1
    assert all(each.right for each in layers(scope).values())
    printed = " ".join(output for _, _, output in seen)
    assert "False" not in printed
    assert printed.count("True") >= 12


def test_the_right_answers_are_not_zeros(run):
    for name, layer in layers(run[0]).items():
        for gradient in layer.gradients.values():
            assert 2 * gradient.count_nonzero() >= gradient.numel(), name


@pytest.mark.parametrize("place", range(12))
def test_a_picture_in_words(run, place):
    scope, seen = run
    drawn = [(options, code) for options, code, _ in seen if "pictures.backward(" in code]
    assert len(drawn) == 12
    options, code = drawn[place]
    alt = " ".join(re.search(r"alt: >-\n(.*)", options, re.S)[1].split())
    assert alt == eval(code.strip().replace("backward(", "described("), scope)
    figure = eval(code.strip(), scope)
    for number in re.findall(r"is (−?\d+)\b", alt):
        assert number in figure.words()
    for title in re.findall(r"(?:∂L/∂)?[xgw]\[\d, \d\]", alt):
        assert title in figure.words()


def test_every_kind_of_layer_is_there(run):
    geometries = {name: each.geometry for name, each in layers(run[0]).items()}
    assert geometries["pointwise"].weight_shape[2:] == (1, 1)
    assert geometries["strided"].stride == (2, 2) and geometries["strided"].leftover == (1, 0)
    assert geometries["dilated"].dilation == (2, 2)
    assert geometries["same"].padding == ((0, 1), (1, 2))
    assert geometries["same"].output_shape[2:] == geometries["same"].x_shape[2:]
    assert 1 < geometries["grouped"].groups < geometries["grouped"].C
    assert geometries["depthwise"].CG == 1 and geometries["depthwise"].OG == 2
    assert geometries["wide"].KH != geometries["wide"].KW
    assert geometries["reflected"].padding_mode == "reflect"
    scope = run[0]
    assert "bias" not in scope["plain"].shapes
    assert [len(scope["single"].shapes[name]) for name in "xy"] == [3, 3]
    kinds = {scope[name].gradients["weight"].dtype for name in ("half", "brain")}
    assert kinds == {torch.float16, torch.bfloat16}
    last = scope["last"].gradients["x"]
    assert last.is_contiguous(memory_format=torch.channels_last)


def test_the_words_of_the_groups(run):
    """Kernel 4 is of the second group, its plane 1 lies on channel 3; 2 and 3 share channel 1."""
    grouped, depthwise = (run[0][name].geometry for name in ("grouped", "depthwise"))
    assert [grouped.group_of(o) for o in range(6)] == [0, 0, 0, 1, 1, 1]
    assert grouped.channel(4, 1) == 3
    assert "x[0, 3]" in pictures.backward(run[0]["grouped"], kernel=4, channel=1).words()
    assert [depthwise.channel(o, 0) for o in (2, 3)] == [1, 1]


def test_what_is_exact_in_half_precision():
    for kind, most in ((torch.float16, 2048), (torch.bfloat16, 256)):
        whole = torch.arange(most + 1)
        assert torch.equal(whole.to(kind).long(), whole)
        assert (torch.tensor([most + 1]).to(kind).long() != most + 1).all()
    assert torch.finfo(torch.float16).max == 65504
