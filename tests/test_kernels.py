"""The kernels in Triton: equal to the loops in the interpreter, on a GPU where there is one."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import integer_arrays, random_geometries

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="Triton is not installed; it is made for Linux alone")
import torch.nn.functional as F  # noqa: E402

from convgrad import ConvGeometry, ShapeError, kernels, loops  # noqa: E402
from convgrad.autograd import Conv2d, compare_gradients, conv2d  # noqa: E402
from convgrad.geometry import PADDING_MODES  # noqa: E402
from convgrad.kernels import GRAD_WEIGHT  # noqa: E402

pytestmark = pytest.mark.oracle

ROOT = Path(__file__).parents[1]
HAS_GPU = torch.cuda.is_available()
GEOMETRIES = list(random_geometries(48, seed=1618))
HALVES = [torch.float16, torch.bfloat16]
EVERY = [*GRAD_WEIGHT, "grad_input", "grad_bias", "forward"]
every_kernel = pytest.mark.parametrize("name", EVERY)
every_rung = pytest.mark.parametrize("rung", GRAD_WEIGHT)


on_the_card = pytest.param("cuda", id="GPU", marks=pytest.mark.gpu)


# The same tests wherever the kernels run: interpreted, or on the card.
@pytest.fixture(params=[on_the_card if HAS_GPU else pytest.param("cpu", id="interpreter")])
def device(request) -> str:
    return request.param


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="PyTorch finds no GPU: all was run in the interpreter")
def test_the_kernels_run_on_the_card():
    assert kernels.where() == torch.cuda.get_device_name()
    x = torch.ones(1, 1, 2, 2, device="cuda")
    assert kernels.forward(x, x, ConvGeometry.of(x.shape, x.shape)).item() == 4


def tensors(arrays, device: str, dtype=torch.float32) -> list[torch.Tensor]:
    return [torch.from_numpy(np.array(each)).to(device, dtype) for each in arrays]


def by_kernel(name: str, x, weight, g, geometry: ConvGeometry) -> torch.Tensor:
    """What one of the kernels computes, on whichever operands it takes."""
    if name in GRAD_WEIGHT:
        return kernels.grad_weight(g, x, geometry, kernel=name)
    if name == "grad_input":
        return kernels.grad_input(g, weight, geometry)
    if name == "grad_bias":
        return kernels.grad_bias(g, geometry)
    return kernels.forward(x, weight, geometry)


def by_loops(name: str, x, weight, g, geometry: ConvGeometry) -> np.ndarray:
    if name in GRAD_WEIGHT:
        return loops.grad_weight(g, x, geometry)
    if name == "grad_input":
        return loops.grad_input(g, weight, geometry)
    return (
        loops.grad_bias(g, geometry) if name == "grad_bias" else loops.forward(x, weight, geometry)
    )


def assert_is_the_loops(name: str, geometry: ConvGeometry, seed: int, device: str) -> None:
    """Small whole numbers are exact in float32, in whatever order they are summed: no tolerance."""
    operands = integer_arrays(geometry, seed)
    found = by_kernel(name, *tensors(operands, device), geometry)
    right = by_loops(name, *operands, geometry)
    assert found.dtype == torch.float32
    assert np.array_equal(found.cpu().numpy(), right), (seed, geometry)


# ---- the law ---------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kernel_is_the_loops_to_the_last_digit(name, part, device):
    # gather has a program for every number, and the interpreter runs them one by one; on a GPU
    # every geometry is compiled anew
    step = 8 if name == "gather" or device == "cuda" else 2
    for seed in range(part, len(GEOMETRIES), step):
        assert_is_the_loops(name, GEOMETRIES[seed], seed, device)


def test_the_draws_leave_no_mistake_a_corner_to_hide_in():
    for step in (2, 8):  # of the test above, both parts of it
        drawn = [GEOMETRIES[seed] for part in (0, 1) for seed in range(part, 48, step)]
        quarter = len(drawn) / 4
        assert sum(1 < each.groups < each.C for each in drawn) >= quarter
        assert sum(each.leftover != (0, 0) for each in drawn) >= quarter
        assert sum(each.stride != each.dilation for each in drawn) >= quarter
        assert sum(each.padding[0][0] != each.padding[0][1] for each in drawn) >= quarter
        assert {each.padding_mode for each in drawn} == set(PADDING_MODES)


# Every axis of every product needs more than one block of 16, and none is filled to the end.
MANY = ConvGeometry(
    N=2, C=6, H=9, W=6, O=36, KH=3, KW=2, stride=(2, 1), padding=((1, 0), (0, 2)), groups=2
)
FEW = replace(MANY, O=4)  # for those whose programs are many


@pytest.mark.slow
@every_kernel
def test_sums_over_many_blocks(name, device, monkeypatch):
    modules = {each: importlib.import_module(f"convgrad.kernels.{each}") for each in MODULES}
    monkeypatch.setattr(modules["blocks"], "LARGEST", (16, 16, 16))
    for each in ("gather", "two_pass", "of_bias"):
        monkeypatch.setattr(modules[each], "LONGEST", 16)
    assert min(MANY.OG, MANY.CG * 6, MANY.N * MANY.OH * MANY.OW) > 16
    geometry = FEW if name in ("gather", "scatter") else MANY
    assert_is_the_loops(name, geometry, 3, device)


MODULES = ["blocks", *GRAD_WEIGHT, "of_input", "of_output", "of_bias"]


@pytest.mark.parametrize("rung", ["split_k", "two_pass"])
def test_any_number_of_splits_gives_the_same_sum(rung, device):
    x, _, g = integer_arrays(MANY, 4)
    right = loops.grad_weight(g, x, MANY)
    module = importlib.import_module(f"convgrad.kernels.{rung}")
    operands = [each.contiguous() for each in tensors((g, x), device)]
    for splits in (1, 2, 3, 5, 1000):
        found = module.launch(*operands, MANY, splits)
        assert np.array_equal(found.cpu().numpy(), right), splits


def test_the_windows_are_shared_out_whole():
    blocks = importlib.import_module("convgrad.kernels.blocks")
    for geometry in (MANY, replace(MANY, N=1), replace(MANY, N=31)):
        windows = geometry.N * geometry.OH * geometry.OW
        for tiles in (1, 3, 1000):
            for splits in (None, 1, 2, 3, 7, 100_000):
                parts, share, K = blocks.split(geometry, tiles, splits)
                assert (parts - 1) * share * K < windows <= parts * share * K
                assert splits is None or parts <= splits
    with_many = blocks.split(replace(MANY, N=300_000), 1, 10**6)
    assert with_many.parts <= 65_535  # a grid's second axis is no longer


@every_rung
def test_on_the_example_of_a_sum_over_images_and_groups(rung, device):
    from convgrad import example

    given = example("D")
    x, weight, _, g = given.arrays()
    found = by_kernel(rung, *tensors((x, weight, g), device), given.geometry)
    right = loops.grad_weight(np.asarray(g), np.asarray(x), given.geometry)
    assert np.array_equal(found.cpu().numpy(), right)


# ---- memory ----------------------------------------------------------------------------------

LAYOUTS = {
    "channels last": lambda t: t.to(memory_format=torch.channels_last),
    "turned": lambda t: t.transpose(2, 3).contiguous().transpose(2, 3),
    "every second": lambda t: torch.stack([t, t], -1)[..., 0],
    "with an offset": lambda t: torch.cat([t, t])[len(t) :],
}


@pytest.mark.slow
@every_kernel
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_memory_layout(name, layout, device):
    operands = integer_arrays(FEW, 5)
    given = [LAYOUTS[layout](each) for each in tensors(operands, device)]
    found = by_kernel(name, *given, FEW)
    assert np.array_equal(found.cpu().numpy(), by_loops(name, *operands, FEW))


@every_kernel
def test_an_expanded_upstream_gradient(name, device):
    """As .sum().backward() hands it over: one number is stored, and read everywhere."""
    x, weight, _ = integer_arrays(FEW, 6)
    g = np.full(FEW.output_shape, 3.0)
    expanded = torch.tensor(3.0, device=device).expand(FEW.output_shape)
    found = by_kernel(name, *tensors((x, weight), device), expanded, FEW)
    assert np.array_equal(found.cpu().numpy(), by_loops(name, x, weight, g, FEW))


@every_kernel
def test_an_empty_batch(name, device):
    geometry = replace(MANY, N=0)
    operands = integer_arrays(geometry, 7)
    found = by_kernel(name, *tensors(operands, device), geometry)
    right = by_loops(name, *operands, geometry)
    assert found.shape == right.shape and not found.any()


@every_kernel
def test_operands_stay_as_they_are_and_no_graph_is_made(name, device):
    operands = tensors(integer_arrays(FEW, 8), device)
    before = [each.clone() for each in operands]
    found = by_kernel(name, *(each.requires_grad_() for each in operands), FEW)
    assert not found.requires_grad
    assert all(torch.equal(a, b) for a, b in zip(operands, before, strict=True))


def test_places_beyond_32_bits():
    """Three images of 2³⁰ cells: the last one has a number that 32 bits cannot hold."""
    if HAS_GPU:
        pytest.skip("the arithmetic is asked of the interpreter")
    from kernel_of_places import places

    index = importlib.import_module("convgrad.kernels.index")
    large = ConvGeometry(N=3, C=1, H=2**15, W=2**15, O=1, KH=1, KW=1)
    small = replace(large, N=1)
    assert index.needs_64_bits(large) and not index.needs_64_bits(small)
    for geometry in (large, small):
        windows = geometry.N * 2**30
        found = torch.zeros(16, dtype=torch.int64)
        places[(1,)](found, windows // 16 - 1, geometry, 16)
        assert found.tolist() == list(range(windows - 16, windows))


# ---- shorter types ---------------------------------------------------------------------------


@pytest.mark.slow
@every_kernel
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_types_are_summed_in_float32_and_rounded_once(name, dtype, device):
    geometry = ConvGeometry(N=5, C=4, H=9, W=7, O=4, KH=2, KW=3, padding=1, groups=2)
    rng = np.random.default_rng(9)
    shapes = geometry.x_shape, geometry.weight_shape, geometry.output_shape
    given = tensors((rng.standard_normal(shape) for shape in shapes), device, dtype)
    found = by_kernel(name, *given, geometry)
    assert found.dtype == dtype
    wide = [each.double().cpu().numpy() for each in given]
    right = by_loops(name, *wide, geometry)
    sizes = by_loops(name, *map(np.abs, wide), geometry)
    # one rounding to the short type, and the roundings of some 400 float32 additions
    bound = torch.finfo(dtype).eps * np.abs(right) + 400 * 2**-24 * sizes
    off = np.abs(found.double().cpu().numpy() - right)
    assert (off <= bound).all()
    # sums in the short type itself would not pass: they are off by more than that somewhere
    short = np.abs(right.max()) * torch.finfo(dtype).eps
    assert off.max() <= short


@pytest.mark.parametrize("rung", ["gather", "tiles", "two_pass"])
def test_what_uses_no_atomics_gives_the_same_bits_again(rung, device):
    geometry = ConvGeometry(N=5, C=4, H=9, W=7, O=4, KH=2, KW=3, padding=1, groups=2)
    rng = np.random.default_rng(10)
    shapes = geometry.output_shape, geometry.x_shape
    g, x = tensors((rng.standard_normal(shape) for shape in shapes), device)
    first = kernels.grad_weight(g, x, geometry, rung)
    for _ in range(20 if device == "cuda" else 1):
        assert torch.equal(first, kernels.grad_weight(g, x, geometry, rung))


# ---- in autograd -----------------------------------------------------------------------------

OPTIONS = [
    {"stride": 1, "padding": "same", "dilation": (1, 3)},
    {"stride": (2, 3), "padding": (1, 2), "dilation": (3, 1), "groups": 2},
    {"stride": 2, "padding": ((1, 0), (0, 2)), "groups": 2, "padding_mode": "reflect"},
    {"padding": (2, 1), "padding_mode": "circular"},
]


def leaves(groups: int, device: str, dtype=torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    shapes = [(2, 4, 7, 8), (6, 4 // groups, 3, 2), (6,)]
    made = [torch.randint(-3, 4, shape, generator=generator) for shape in shapes]
    return [each.to(device, dtype).requires_grad_() for each in made]


def backward(operands, options: dict[str, Any], **how: Any):
    y = conv2d(*operands, **options, **how)
    g = torch.arange(y.numel(), device=y.device).reshape(y.shape).remainder(7) - 3
    return torch.autograd.grad(y, operands, g.to(y.dtype))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_implementation_is_autograds(options, device):
    operands = leaves(options.get("groups", 1), device)
    mine = backward(operands, options, implementation="triton")
    theirs = backward([each.detach().double().requires_grad_() for each in operands], options)
    assert all(torch.equal(a.double(), b) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_the_implementation_keeps_short_types(dtype, device):
    operands = leaves(2, device, dtype)
    mine = backward(operands, OPTIONS[1], implementation="triton")
    theirs = backward([each.detach().double().requires_grad_() for each in operands], OPTIONS[1])
    for short, exact in zip(mine, theirs, strict=True):
        # whole numbers: exact in float32, so what is left is one rounding to the short type
        assert short.dtype == dtype and torch.equal(short, exact.to(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("needed", list(np.ndindex(2, 2, 2))[1:], ids=str)
def test_the_second_gradient_is_autograds(needed, device):
    """Of every set of first gradients, with respect to everything."""
    options = {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2}

    def twice(dtype, **how):
        operands = [each.detach().to(dtype).requires_grad_() for each in leaves(2, device)]
        wanted = [each for each, asked in zip(operands, needed, strict=True) if asked]
        y = conv2d(*operands, **options, **how)
        g = torch.arange(y.numel(), device=device).reshape(y.shape).remainder(5).to(dtype)
        g.requires_grad_()
        first = torch.autograd.grad(y, wanted, g, create_graph=True)
        seconds = [torch.arange(e.numel(), device=device).reshape(e.shape) % 4 - 1 for e in first]
        upstream = [each.to(dtype) for each in seconds]
        return torch.autograd.grad(
            first, (g, *operands[:2]), upstream, allow_unused=True, materialize_grads=True
        )

    mine = twice(torch.float32, implementation="triton")
    theirs = twice(torch.float64)
    assert all(torch.equal(a.double(), b) for a, b in zip(mine, theirs, strict=True))


def test_a_third_gradient_is_refused_not_zero(device):
    x, weight, _ = leaves(1, device)
    y = conv2d(x, weight, implementation="triton")
    g = torch.ones_like(y, requires_grad=True)
    first = torch.autograd.grad(y, weight, g, create_graph=True)[0]
    second = torch.autograd.grad(first.square().sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        second.square().sum().backward()


def test_a_layer_learns_as_pytorchs_does(device):
    torch.manual_seed(0)
    theirs = torch.nn.Conv2d(4, 6, 3, padding=1, stride=2).to(device)
    mine = Conv2d(4, 6, 3, padding=1, stride=2, implementation="triton").to(device)
    mine.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 4, 9, 8, device=device)
    target = torch.randn(2, 6, 5, 4, device=device)
    for layer in (theirs, mine):
        step = torch.optim.SGD(layer.parameters(), lr=0.5)
        for _ in range(2):
            step.zero_grad()
            F.mse_loss(layer(x), target).backward()
            step.step()
    for a, b in zip(theirs.parameters(), mine.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)  # float32 sums in another order


def test_one_image_autocast_an_empty_batch_and_a_comparison(device):
    x, weight, bias = leaves(1, device)
    how = {"padding": 1, "implementation": "triton"}
    alone = conv2d(x[0], weight, bias, **how)
    assert torch.equal(alone, conv2d(x, weight, bias, padding=1)[0])
    with torch.autocast(device, dtype=torch.bfloat16):
        y = conv2d(x, weight, bias, **how)
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert weight.grad.dtype == torch.float32
    conv2d(x[:0], weight, bias, **how).sum().backward()
    found = compare_gradients(x, weight, bias, **how)
    assert all(gap.exact for gap in found.gaps().values())


# ---- words -----------------------------------------------------------------------------------


def test_where_says_in_words_what_happens(device):
    here = kernels.where()
    assert here == ("interpreter, on the CPU" if device == "cpu" else torch.cuda.get_device_name())
    if device == "cpu":
        assert os.environ["TRITON_INTERPRET"] == "1"


def test_what_cannot_be_says_why_and_how_to_mend_it(device):
    x, weight, g = tensors(integer_arrays(MANY, 0), device)
    with pytest.raises(ValueError, match=r"kernel='cudnn': known are gather, scatter, tiles, spl"):
        kernels.grad_weight(g, x, MANY, kernel="cudnn")
    with pytest.raises(ValueError, match="known are"):
        kernels.grad_weight(g, x, MANY, kernel=["tiles"])
    with pytest.raises(TypeError, match=r"x holds float64: .*float32.*x\.float\(\).*'unfold'"):
        kernels.grad_weight(g, x.double(), MANY)
    with pytest.raises(TypeError, match=r"grad_output float32, weight float16.*\.to\(dtype\)"):
        kernels.grad_input(g, weight.half(), MANY)
    with pytest.raises(TypeError, match=r"x is of type ndarray.*torch\.from_numpy\(x\)"):
        kernels.forward(x.cpu().numpy(), weight, MANY)
    with pytest.raises(TypeError, match="needed is a ConvGeometry"):
        kernels.grad_bias(g, (1, 2))
    with pytest.raises(RuntimeError, match=r'x is on meta: .* here on c.*x\.to\("c'):
        kernels.forward(x.to("meta"), weight, MANY)
    with pytest.raises(ShapeError, match=r"weight has shape \(36, 3, 2, 3\): needed is \(36, 3, 3"):
        kernels.forward(x, weight.mT, MANY)
    with pytest.raises(TypeError, match="x holds float64"):  # already on the way there
        conv2d(x.double(), weight.double(), groups=2, implementation="triton")


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("linux", r"^convgrad\.kernels needs triton, which is not installed: .*convgrad\[gpu\]"),
        ("darwin", r"Linux alone; this is darwin\) needs triton, which is not installed"),
    ],
)
def test_without_triton_a_sentence_says_what_to_install(platform, words, monkeypatch):
    x, weight, _ = tensors(integer_arrays(MANY, 0), "cpu")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "convgrad.kernels.device", raising=False)
    with pytest.raises(ModuleNotFoundError, match=words):
        kernels.forward(x, weight, MANY)
    with pytest.raises(ModuleNotFoundError, match=words):
        conv2d(x, weight, groups=2, implementation="triton")


def test_sources_that_a_chapter_shows_are_narrow():
    folder = Path(kernels.__file__).parent
    for name in [*GRAD_WEIGHT, "index", "of_input", "of_output", "of_bias"]:
        source = (folder / f"{name}.py").read_text("utf-8")
        _, _, code = source.split('"""', 2)
        assert max(map(len, code.splitlines())) <= 80, name
        assert "@triton.jit\ndef " in code


# ---- a process of their own ------------------------------------------------------------------


def run_python(source: str, **environment: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


# Every launch as on a GPU, up to the moment when the kernel would start.
COMPILE = """
import json, re
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction
from convgrad import ConvGeometry, kernels
from convgrad.kernels import GRAD_WEIGHT, of_bias, of_input, of_output

class Card:
    "A driver that knows what it would compile for, and has nothing to run it on."
    def __init__(self, capability):
        self.capability = capability
    def get_current_target(self):
        return GPUTarget("cuda", self.capability, 32)
    def get_current_device(self):
        return self.capability
    def get_current_stream(self, device):
        return 0

found = []
compile_and_run = JITFunction.run

def compile_only(self, *arguments, grid, warmup, **options):
    made = compile_and_run(self, *arguments, grid=grid, warmup=True, **options)
    dtype = str(arguments[0].dtype).removeprefix("torch.")
    found.append((self.__name__, dtype, made.metadata.target.arch, made.asm["ptx"]))
    return made

JITFunction.run = compile_only
from importlib import import_module
rungs = [import_module(f"convgrad.kernels.{name}") for name in GRAD_WEIGHT]
geometry = ConvGeometry(N=3, C=4, H=9, W=8, O=6, KH=3, KW=2, stride=(2, 1),
                        padding=((1, 0), (0, 2)), dilation=(1, 2), groups=2)
for capability, short in ((80, torch.float16), (90, torch.bfloat16)):
    driver.set_active(Card(capability))
    for dtype in (torch.float32, short):
        x, weight, g = (torch.zeros(shape, dtype=dtype) for shape in
                        (geometry.x_shape, geometry.weight_shape, geometry.output_shape))
        for rung in rungs:
            rung.launch(g, x, geometry)
        of_input.launch(g, weight, geometry)
        of_output.launch(x, weight, geometry)
        of_bias.launch(g, geometry)
words = r"(atom\\S*add\\S*|red\\S*add\\S*|mma\\.sync\\S*|wgmma\\.mma_async\\S*|fma\\.rn\\.f32|tf32)"
print(json.dumps([(*who, sorted(set(re.findall(words, ptx))), ptx.splitlines()[:9])
                  for *who, ptx in found]))
try:
    kernels.where()
except RuntimeError as trouble:
    print(trouble)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> tuple[list, str]:
    """Kernel, type, target and instructions of all that was compiled; what where() says there."""
    if HAS_GPU:
        pytest.skip("there is a GPU, and the other tests compile for it")
    cache = str(tmp_path_factory.mktemp("triton"))
    said = run_python(COMPILE, TRITON_INTERPRET="0", TRITON_CACHE_DIR=cache).splitlines()
    return json.loads(said[0]), said[1]


@pytest.mark.slow
def test_every_kernel_compiles_without_a_gpu(compiled):
    rows, _ = compiled
    names = {*GRAD_WEIGHT, "shares", "add_up", "grad_input_tiles", "forward_tiles"}
    names = names - {"two_pass"} | {"grad_bias_sums"}
    for capability, short in ((80, "float16"), (90, "bfloat16")):
        for dtype in ("float32", short):
            made = {row[0] for row in rows if row[1] == dtype and row[2] == capability}
            # the second pass reads float32 whatever the type of the result
            assert made >= names - {"add_up"}
    assert {row[0] for row in rows} == names
    for _, _, capability, _, opening in rows:
        assert any(f".target sm_{capability}" in line for line in opening)


def test_what_was_compiled_has_the_instructions_it_should(compiled):
    rows, _ = compiled
    for name, dtype, capability, words, _ in rows:
        said = " ".join(words)
        # whoever shares a number adds with atomics, in float32, and nobody else does
        assert ("add" in said) == (name in {"scatter", "split_k"}), name
        if name in {"scatter", "split_k"}:
            assert all("f32" in word for word in words if "add" in word)
        assert "tf32" not in said
        if name in {"tiles", "split_k", "shares", "grad_input_tiles", "forward_tiles"}:
            on_tensor_cores = any("mma" in word for word in words)
            assert on_tensor_cores == (dtype != "float32"), (name, dtype, capability)
            if on_tensor_cores:  # products of short numbers, sums in float32
                short = "bf16" if dtype == "bfloat16" else "f16"
                assert any(f"f32.{short}.{short}" in word for word in words if "mma" in word)
            else:
                assert "fma.rn.f32" in words


def test_with_the_interpreter_ruled_out_and_no_gpu_it_says_so(compiled):
    assert "there is no GPU, and TRITON_INTERPRET=0" in compiled[1]


EARLY = """
import triton, triton.language as tl  # as torch.compile does, before the interpreter is on
assert isinstance(tl.sum, triton.JITFunction)
import torch
from convgrad import ConvGeometry, kernels
geometry = ConvGeometry(C=1, H=3, W=3, O=1, KH=2, KW=2)
x = torch.arange(9.0).reshape(1, 1, 3, 3)
print(kernels.grad_weight(torch.ones(1, 1, 2, 2), x, geometry, "gather").flatten().tolist())
"""


@pytest.mark.slow
def test_it_does_not_matter_who_imported_triton_first():
    if HAS_GPU:
        pytest.skip("there is a GPU, and nothing is interpreted")
    assert run_python(EARLY, TRITON_INTERPRET="").strip() == "[8.0, 12.0, 20.0, 24.0]"
