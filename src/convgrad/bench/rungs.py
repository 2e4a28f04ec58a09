"""The ladder: what each implementation costs in time and memory, on small layers.

Every layer is timed in rounds.  A round times PyTorch's own CPU backward and every
implementation once, in a new order, and compares within the round, so that a machine that is
busy for a while slows both sides of a ratio.  Kept are the medians over the rounds.

One thread each: for NumPy's matrix products this takes ``threadpoolctl``, or
``OMP_NUM_THREADS=1`` set before Python starts.

>>> record = measure_layers(["tiny"], rounds=1)
>>> next(table(record["layers"])).split()[:3]
['layer', 'implementation', 'forward']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Any

import numpy as np

from ..api import IMPLEMENTATIONS
from ..geometry import ConvGeometry
from ..im2col import column_numbers
from . import common
from .common import Operands, even_threads, machine, peak_megabytes, seconds, significant

__all__ = ["LAYERS", "measure_layers", "table"]

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


def measure_layers(
    layers: Iterable[str], rounds: int, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """The named layers of :data:`LAYERS`, measured: a record ready for JSON and :func:`table`.

    ``say`` is told which layer is next.
    """
    record: dict[str, Any] = {"machine": machine(threads=1), "rounds": rounds, "layers": {}}
    for layer in layers:
        geometry = LAYERS[layer]
        names = [n for n in IMPLEMENTATIONS if layer == "tiny" or n not in ONLY_TINY]
        say(f"measuring {layer}: {geometry.describe()}")
        with even_threads(1):
            measured = measure(geometry, names, rounds)
        record["layers"][layer] = {
            "geometry": geometry.as_dict(),
            "column_numbers": column_numbers(geometry),
            "implementations": measured,
        }
    return record


def measure(geometry: ConvGeometry, names: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    """One layer: for every implementation its times, its ratios and its memory."""
    operands = Operands(geometry)
    contenders = {name: operands.tasks(IMPLEMENTATIONS[name]) for name in names}
    if common.torch is not None:
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
            **({"times_torch": against(times[name], times["torch"])} if common.torch else {}),
            **(
                {"peak_megabytes": {p: peak_megabytes(t) for p, t in tasks.items()}}
                if name != "torch"
                else {}
            ),
        }
        for name, tasks in contenders.items()
    }


def against(mine: dict[str, list[float]], theirs: dict[str, list[float]]) -> dict[str, float]:
    """Medians of the ratios within each round."""
    return {
        part: significant(median(a / b for a, b in zip(mine[part], theirs[part], strict=True)))
        for part in PARTS
    }


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
