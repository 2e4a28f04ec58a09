"""What each implementation costs in time and memory: ``convgrad bench``.

Every layer is timed in rounds.  A round times PyTorch's own CPU backward and every
implementation once, in a new order, and compares within the round, so that a machine that is
busy for a while slows both sides of a ratio.  Kept are the medians over the rounds.

One thread each: set ``OMP_NUM_THREADS=1`` before Python starts, for NumPy's library of matrix
products reads it only then.

>>> record = measure_layers(["tiny"], rounds=1)
>>> next(table(record["layers"])).split()[:3]
['layer', 'implementation', 'forward']
"""

from __future__ import annotations

import json
import os
import platform
import re
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .api import IMPLEMENTATIONS, Implementation
from .extras import install
from .geometry import ConvGeometry
from .im2col import column_numbers

torch: Any
try:
    import torch
except ModuleNotFoundError:  # the column "× torch" then stays empty
    torch = None

__all__ = ["LAYERS", "as_text", "measure_layers", "table", "without_torch"]

LAYERS: dict[str, ConvGeometry] = {
    "tiny": ConvGeometry(N=1, C=2, H=8, W=8, O=3, KH=3, KW=3, padding=1),
    "1×1": ConvGeometry(N=4, C=64, H=28, W=28, O=64, KH=1, KW=1),
    "3×3": ConvGeometry(N=4, C=32, H=28, W=28, O=32, KH=3, KW=3, padding=1),
    "3×3 stride 2": ConvGeometry(N=4, C=32, H=56, W=56, O=64, KH=3, KW=3, stride=2, padding=1),
    "3×3 dilation 2": ConvGeometry(N=4, C=32, H=28, W=28, O=32, KH=3, KW=3, dilation=2, padding=2),
    "5×5": ConvGeometry(N=4, C=16, H=28, W=28, O=32, KH=5, KW=5, padding=2),
    "7×7 stride 2": ConvGeometry(N=2, C=3, H=112, W=112, O=32, KH=7, KW=7, stride=2, padding=3),
    "8 groups": ConvGeometry(N=4, C=64, H=28, W=28, O=64, KH=3, KW=3, padding=1, groups=8),
    "depthwise": ConvGeometry(N=4, C=64, H=28, W=28, O=64, KH=3, KW=3, padding=1, groups=64),
}
ONLY_TINY = {"loops"}
UNKNOWN = float("nan")
PARTS = ("forward", "grad_input", "grad_weight", "backward")

Task = Callable[[], Any]


def measure_layers(
    layers: Iterable[str], rounds: int, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """The named layers of :data:`LAYERS`, measured: a record ready for JSON and :func:`table`.

    ``say`` is told which layer is next.
    """
    if torch is not None:
        torch.set_num_threads(1)
    record: dict[str, Any] = {"machine": machine(), "rounds": rounds, "layers": {}}
    for layer in layers:
        geometry = LAYERS[layer]
        names = [n for n in IMPLEMENTATIONS if layer == "tiny" or n not in ONLY_TINY]
        say(f"measuring {layer}: {geometry.describe()}")
        record["layers"][layer] = {
            "geometry": geometry.as_dict(),
            "column_numbers": column_numbers(geometry),
            "implementations": measure(geometry, names, rounds),
        }
    return record


def without_torch() -> str:
    """What to say where the table lacks PyTorch, or nothing."""
    if torch is not None:
        return ""
    return (
        f"PyTorch is not installed, so nothing is compared with it: {install('torch')} brings it."
    )


class Operands:
    """Random float32 operands of one layer."""

    def __init__(self, geometry: ConvGeometry) -> None:
        rng = np.random.default_rng(0)
        self.geometry = geometry
        self.x = rng.standard_normal(geometry.x_shape, np.float32)
        self.weight = rng.standard_normal(geometry.weight_shape, np.float32)
        self.grad_output = rng.standard_normal(geometry.output_shape, np.float32)

    def tasks(self, rung: Implementation) -> dict[str, Task]:
        x, weight, g, geometry = self.x, self.weight, self.grad_output, self.geometry
        return {
            "forward": lambda: rung.forward(x, weight, geometry),
            "grad_input": lambda: rung.grad_input(g, weight, geometry),
            "grad_weight": lambda: rung.grad_weight(g, x, geometry),
            "backward": lambda: (
                rung.grad_input(g, weight, geometry),
                rung.grad_weight(g, x, geometry),
                rung.grad_bias(g, geometry),
            ),
        }

    def torch_tasks(self) -> dict[str, Task]:
        geometry = self.geometry
        x, weight, g = map(torch.from_numpy, (self.x, self.weight, self.grad_output))
        (top, _), (left, _) = geometry.padding  # the layers above have even borders
        shape = [list(geometry.stride), [top, left], list(geometry.dilation)]
        groups = geometry.groups

        def backward(*mask: bool) -> Any:
            return torch.ops.aten.convolution_backward(
                g, x, weight, [geometry.O], *shape, False, [0, 0], groups, mask
            )

        return {
            "forward": lambda: torch.conv2d(x, weight, None, *shape, groups),
            "grad_input": lambda: backward(True, False, False),
            "grad_weight": lambda: backward(False, True, False),
            "backward": lambda: backward(True, True, True),
        }


def seconds(task: Task) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def peaks(tasks: dict[str, Task]) -> dict[str, float]:
    """The most megabytes that NumPy held at once for each task, operands not counted.

    NumPy reports its memory to ``tracemalloc``; PyTorch does not, so it has no such figure.
    """
    found = {}
    for part, task in tasks.items():
        tracemalloc.start()
        task()
        found[part] = significant(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    return found


def measure(geometry: ConvGeometry, names: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    """One layer: for every implementation its times, its ratios and its memory."""
    operands = Operands(geometry)
    contenders = {name: operands.tasks(IMPLEMENTATIONS[name]) for name in names}
    if torch is not None:
        contenders["torch"] = operands.torch_tasks()
    times: dict[str, dict[str, list[float]]] = {
        name: {part: [] for part in PARTS} for name in contenders
    }
    for round_ in range(-1, rounds):  # the first one warms up
        order = np.random.default_rng(round_ + 1).permutation(list(contenders))
        for name in map(str, order):
            for part, task in contenders[name].items():
                elapsed = seconds(task)
                if round_ >= 0:
                    times[name][part].append(elapsed)
    return {
        name: {
            "milliseconds": {part: significant(1e3 * median(times[name][part])) for part in PARTS},
            "times_im2col": against(times[name], times["im2col"]),
            **({"times_torch": against(times[name], times["torch"])} if torch else {}),
            **({"peak_megabytes": peaks(tasks)} if name != "torch" else {}),
        }
        for name, tasks in contenders.items()
    }


def against(mine: dict[str, list[float]], theirs: dict[str, list[float]]) -> dict[str, float]:
    """Medians of the ratios within each round."""
    return {
        part: significant(median(a / b for a, b in zip(mine[part], theirs[part], strict=True)))
        for part in PARTS
    }


def significant(number: float) -> float:
    """Three digits: more would be noise."""
    return float(f"{number:.3g}")


def machine() -> dict[str, Any]:
    """What the numbers depend on, and nothing that only one machine has."""
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    if torch is not None:
        versions["torch"] = torch.__version__.partition("+")[0]
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": 1,
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
        "date": datetime.now(UTC).date().isoformat(),
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def table(layers: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The measurements as people read them, one line an implementation."""
    yield (
        f"{'layer':<15}{'implementation':<16}{'forward':>9}{'grad_input':>12}"
        f"{'grad_weight':>13}{'backward':>10}{'× torch':>9}{'× im2col':>10}{'peak MB':>9}"
    )
    for layer, record in layers.items():
        for k, (name, row) in enumerate(record["implementations"].items()):
            ms = row["milliseconds"]
            torch_ratio = row.get("times_torch", {}).get("backward", UNKNOWN)
            peak = row.get("peak_megabytes", {}).get("backward", UNKNOWN)
            yield (
                f"{layer if k == 0 else '':<15}{name:<16}{ms['forward']:>9g}"
                f"{ms['grad_input']:>12g}{ms['grad_weight']:>13g}{ms['backward']:>10g}"
                f"{torch_ratio:>9.3g}{row['times_im2col']['backward']:>10.3g}"
                f"{peak:>9.3g}"
            )


def as_text(record: dict[str, Any]) -> str:
    """JSON with every innermost list or object on a line of its own."""

    def on_one_line(match: re.Match[str]) -> str:
        return match[1] + " ".join(match[2].split()) + match[3]

    spread = json.dumps(record, indent=1, ensure_ascii=False)
    return re.sub(r"([\[{])\s+([^\[\]{}]*?)\s+([\]}])", on_one_line, spread) + "\n"
