"""Holds the kernels against PyTorch's on a GPU: ``python -m benchmarks.gpu``, under four minutes.

Layer F of the book's examples in three types, then the layers of ``convgrad.layers`` in
float32, until the time is up.  For every kernel, and for what PyTorch (cuDNN) takes for the same:

* milliseconds, the median of many runs with a cold cache, and their ratio to PyTorch's;
* arithmetic in TFLOP/s, and the share of what the roofline allows: no kernel can be faster than
  its operations on the card's arithmetic, nor than its operands through the card's memory;
* whether runs again give the same bits.

Float32 means float32 on both sides: TF32 is off.  The result is ``benchmarks/gpu.json``.  Without
a GPU nothing is measured and nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import torch

from convgrad import example, kernels
from convgrad.bench.common import Operands, Task, as_text, machine, significant
from convgrad.costs import operations
from convgrad.geometry import ConvGeometry
from convgrad.layers import TABLE
from convgrad.roofline import Card, Map, Precision, bound, card_named

RESULT = Path(__file__).with_suffix(".json")
SECONDS = 200.0  # after which no further layer is begun
AGAIN = 10  # runs that must give the same bits

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
FIRST = "F"

# Runs a task as often as it takes and says how many milliseconds it takes once.
Clock = Callable[[Task], float]


def main() -> int:
    if not torch.cuda.is_available():
        print(
            "There is no GPU here that PyTorch could use (torch.cuda.is_available() is False), so "
            "nothing is measured and nothing written. The kernels still run, in Triton's "
            "interpreter: pytest tests/test_kernels.py"
        )
        return 0
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    layers = {FIRST: example("F").geometry, **TABLE}
    card, source = card_of(torch.cuda.get_device_name(), milliseconds)
    record = measured(layers, card, milliseconds, "cuda", say=lambda line: print(line, flush=True))
    record = {
        "machine": machine_with_card(),
        "roof": {**card._asdict(), "source": source},
        **record,
    }
    print("\n".join(text(record)))
    RESULT.write_text(as_text(record), encoding="utf-8")
    print(f"written to benchmarks/{RESULT.name}")
    return 0


# ---- what is measured ------------------------------------------------------------------------


def measured(
    layers: dict[str, ConvGeometry],
    card: Card,
    clock: Clock,
    device: str,
    seconds: float = SECONDS,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Layer by layer while there is time: figures for each type, map and kernel."""
    start, found, left = time.monotonic(), dict[str, Any](), list[str]()
    for name, geometry in layers.items():
        if time.monotonic() - start > seconds:
            left.append(name)
            continue
        say(f"measuring {name}: {geometry.describe()}")
        types = list(TYPES) if name == FIRST else ["float32"]
        found[name] = {
            "geometry": geometry.as_dict(),
            "types": {dtype: of_type(geometry, dtype, card, clock, device) for dtype in types},
        }
    return {"layers": found, "not_measured": left}


def of_type(
    geometry: ConvGeometry, dtype: str, card: Card, clock: Clock, device: str
) -> dict[str, dict[str, dict[str, Any]]]:
    """One layer in one type: for each map the figures of every kernel and of PyTorch."""
    found = {}
    for part, tasks in contest(geometry, dtype, device).items():
        theirs = as_result(tasks["torch"](), part)
        times = {who: clock(task) for who, task in tasks.items()}
        least = bound(geometry, cast(Map, part), card, cast(Precision, dtype)).milliseconds
        found[part] = {
            who: {
                "milliseconds": significant(ms),
                "times_torch": significant(ms / times["torch"]),
                "tflops": significant(operations(geometry) / ms / 1e9),
                "roofline_share": significant(least / ms),
                "same_bits": same_bits(tasks[who], part),
                "off_torch": float(f"{distance(as_result(tasks[who](), part), theirs):.2g}"),
            }
            for who, ms in times.items()
        }
    return found


def contest(geometry: ConvGeometry, dtype: str, device: str) -> dict[str, dict[str, Task]]:
    """For each map everybody who can compute it."""
    operands = Operands(geometry)
    x, weight, g = operands.tensors(device, TYPES[dtype])
    torchs = operands.torch_tasks(device, TYPES[dtype])

    def rung(kernel: str) -> Task:
        return lambda: kernels.grad_weight(g, x, geometry, kernel)

    return {
        "grad_weight": {
            **{kernel: rung(kernel) for kernel in kernels.GRAD_WEIGHT},
            "torch": torchs["grad_weight"],
        },
        "grad_input": {
            "of_input": lambda: kernels.grad_input(g, weight, geometry),
            "torch": torchs["grad_input"],
        },
        "forward": {
            "of_output": lambda: kernels.forward(x, weight, geometry),
            "torch": torchs["forward"],
        },
    }


def as_result(given: Any, part: str) -> torch.Tensor:
    """PyTorch's backward pass gives three gradients, two of them None."""
    if isinstance(given, torch.Tensor):
        return given
    wanted: torch.Tensor = given[("grad_input", "grad_weight").index(part)]
    return wanted


def same_bits(task: Task, part: str) -> bool:
    """Whether running again changes nothing at all."""
    first = as_result(task(), part)
    return all(torch.equal(first, as_result(task(), part)) for _ in range(AGAIN))


def distance(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    """‖mine − theirs‖ / ‖theirs‖."""
    a, b = mine.double(), theirs.double()
    return float((a - b).norm() / b.norm())


# ---- the card --------------------------------------------------------------------------------


def milliseconds(task: Task) -> float:
    """The median of many runs, each with a cold cache."""
    from triton.testing import do_bench

    found: float = do_bench(task, warmup=20, rep=100, return_mode="median")
    return found


def machine_with_card() -> dict[str, Any]:
    """What the numbers depend on."""
    import triton

    of_host = machine(threads=torch.get_num_threads())
    version = torch.backends.cudnn.version()
    more = {
        "triton": triton.__version__,
        "cuda": str(torch.version.cuda),
        "cudnn": str(version),
    }
    return {
        **of_host,
        "card": torch.cuda.get_device_name(),
        "multiprocessors": torch.cuda.get_device_properties().multi_processor_count,
        "versions": {**of_host["versions"], **more},
    }


def card_of(name: str, clock: Clock) -> tuple[Card, str]:
    """From the table of data sheets, or else measured: large products, and a large copy."""
    card = card_named(name)
    return (measured_card(clock, "cuda"), "measured") if card is None else (card, "data sheet")


def measured_card(clock: Clock, device: str, size: int = 8192) -> Card:
    """What the card reaches on a product of matrices and on a copy, both as large as that."""

    def product(dtype: torch.dtype) -> float:
        a = torch.randn(size, size, device=device).to(dtype)
        return significant(2 * size**3 / clock(lambda: a @ a) / 1e9)

    numbers = torch.ones(2 * size**2, device=device)
    there = torch.empty_like(numbers)
    moved = 2 * numbers.numel() * numbers.element_size()
    memory = significant(moved / clock(lambda: there.copy_(numbers)) / 1e9)
    single, short = product(torch.float32), product(torch.float16)
    multiprocessors = 1
    if device == "cuda":
        multiprocessors = torch.cuda.get_device_properties().multi_processor_count
    # TF32 is off, here as in all that is measured
    return Card(single, single, short, short, memory, multiprocessors)


# ---- words -----------------------------------------------------------------------------------


def text(record: dict[str, Any]) -> Iterator[str]:
    """The figures as people read them."""
    yield (
        f"{'layer':<26}{'type':<10}{'map':<13}{'kernel':<11}{'ms':>9}{'× torch':>9}{'TFLOP/s':>9}"
        f"{'of roof':>9}  same bits"
    )
    for before, dtype, part, who, row in rows(record["layers"]):
        yield (
            f"{before:<26}{dtype:<10}{part:<13}{who:<11}{row['milliseconds']:>9g}"
            f"{row['times_torch']:>9g}{row['tflops']:>9g}{row['roofline_share']:>9.0%}"
            f"  {'yes' if row['same_bits'] else 'no'}"
        )
    if record["not_measured"]:
        yield f"The time was up before: {', '.join(record['not_measured'])}."


def rows(layers: dict[str, Any]) -> Iterable[tuple[str, str, str, str, dict[str, Any]]]:
    """Layer, type, map, kernel and figures, one row after the other."""
    for name, layer in layers.items():
        for dtype, parts in layer["types"].items():
            for part, contestants in parts.items():
                for who, row in contestants.items():
                    yield name, dtype, part, who, row


if __name__ == "__main__":
    raise SystemExit(main())
