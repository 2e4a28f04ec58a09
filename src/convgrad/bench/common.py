"""What every benchmark needs: operands, PyTorch's side of a contest, the machine, the record."""

from __future__ import annotations

import json
import os
import platform
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..api import Implementation
from ..extras import install
from ..geometry import ConvGeometry
from ..parallel import blas_threads, fresh_threads

torch: Any
try:
    import torch
except ModuleNotFoundError:  # the column "× torch" then stays empty
    torch = None

__all__ = [
    "Operands",
    "Task",
    "as_text",
    "even_threads",
    "machine",
    "peak_megabytes",
    "seconds",
    "significant",
    "torch",
    "without_torch",
]

Task = Callable[[], Any]


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

    def tensors(self, device: str = "cpu", dtype: Any = None) -> list[Any]:
        """x, weight and grad_output for PyTorch."""
        arrays = self.x, self.weight, self.grad_output
        return [torch.from_numpy(array).to(device, dtype) for array in arrays]

    def torch_tasks(self, device: str = "cpu", dtype: Any = None) -> dict[str, Task]:
        geometry = self.geometry
        x, weight, g = self.tensors(device, dtype)
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


@contextmanager
def even_threads(count: int) -> Iterator[None]:
    """``count`` threads for PyTorch, for NumPy's matrix products and for ``fast``."""
    before = os.environ.get("CONVGRAD_THREADS")
    os.environ["CONVGRAD_THREADS"] = str(count)
    if torch is not None:
        torch.set_num_threads(count)
    try:
        with blas_threads(count) or nullcontext():
            yield
    finally:
        if before is None:
            del os.environ["CONVGRAD_THREADS"]
        else:
            os.environ["CONVGRAD_THREADS"] = before


def seconds(task: Task) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def peak_megabytes(task: Task) -> float:
    """The most megabytes that NumPy held at once during the task, operands not counted.

    NumPy reports its memory to ``tracemalloc``; PyTorch does not, so it has no such figure.
    """
    fresh_threads()  # what threads keep from earlier calls counts too
    tracemalloc.start()
    try:
        task()
        return significant(tracemalloc.get_traced_memory()[1] / 1e6)
    finally:
        tracemalloc.stop()


def significant(number: float) -> float:
    """Three digits: more would be noise."""
    return float(f"{number:.3g}")


def machine(threads: int) -> dict[str, Any]:
    """What the numbers depend on, and nothing that only one machine has."""
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    if torch is not None:
        versions["torch"] = torch.__version__.partition("+")[0]
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads,
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


def as_text(record: dict[str, Any]) -> str:
    """JSON with every innermost list or object on a line of its own."""

    def on_one_line(match: re.Match[str]) -> str:
        return match[1] + " ".join(match[2].split()) + match[3]

    spread = json.dumps(record, indent=1, ensure_ascii=False)
    return re.sub(r"([\[{])\s+([^\[\]{}]*?)\s+([\]}])", on_one_line, spread) + "\n"
