"""``fast`` against PyTorch on layers as networks have them, and against what it is meant to reach.

The contestants do the whole backward pass of one layer, all three gradients, on the same
number of threads.  Each is timed once a round, in a new order every round, and compared within
the round; the medians over the rounds are kept.  Three things would spoil the comparison:

* threads that spin.  The libraries behind NumPy and PyTorch keep their threads busy for a while
  after a call, waiting for the next; so there is a pause and a call to warm up before each timing;
* neighbours.  Before and after each round a fixed job is timed on all threads; where it took
  much longer than it can, the round is thrown away (how many were is part of the record, and how
  noisy the worst was that is kept);
* the first use of memory.  It costs milliseconds, and both sides pay for their results.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numpy as np

from ..api import IMPLEMENTATIONS
from ..fast import explain_route
from ..geometry import ConvGeometry
from ..layers import TABLE
from . import common, taught
from .common import Operands, Task, even_threads, machine, peak_megabytes, seconds, significant

__all__ = ["TABLE", "TARGETS", "Target", "measure_table", "targets", "text"]


DEPTHWISE = [name for name in TABLE if name.startswith("depthwise")]
DENSE = [name for name, layer in TABLE.items() if layer.groups == 1]
THREE = [name for name, layer in TABLE.items() if layer.KH == 3 and name not in DEPTHWISE]

PAUSE = 0.08  # seconds: longer than a waiting thread spins
SLOW = 1.5  # seconds: who takes longer is timed in two rounds only
FEWEST = 3  # rounds that are kept in any case, the quietest
NOISE = 1.2  # times what the fixed job takes undisturbed; beyond, the round does not count

TAUGHT, ONEDNN, PLAIN = "im2col as taught", "torch", "torch without oneDNN"
USUAL = ("fast", "im2col", TAUGHT)


class Target(NamedTuple):
    """One figure to be reached: what it is, its bound, and how it is found in a record."""

    what: str
    bound: float
    at_most: bool
    value: Callable[[dict[str, Any]], float]

    def met(self, record: dict[str, Any]) -> bool:
        value = self.value(record)
        return value <= self.bound if self.at_most else value >= self.bound


def _times_torch(record: dict[str, Any], layers: Iterable[str]) -> list[float]:
    return [record["layers"][name]["contestants"]["fast"]["times_torch"] for name in layers]


def _over_fast(record: dict[str, Any], whose: str, what: str, layers: Iterable[str]) -> list[float]:
    rows = [record["layers"][name]["contestants"] for name in layers]
    return [row[whose][what] / row["fast"][what] for row in rows]


TARGETS = (
    Target(
        "time over PyTorch's, geometric mean of all layers",
        1.25,
        True,
        lambda record: geometric_mean(_times_torch(record, TABLE)),
    ),
    Target(
        "time over PyTorch's, worst dense layer",
        1.5,
        True,
        lambda record: max(_times_torch(record, DENSE)),
    ),
    Target(
        "time over PyTorch's, worst depthwise layer",
        2.2,
        True,
        lambda record: max(_times_torch(record, DEPTHWISE)),
    ),
    Target(
        "time of im2col as taught over fast's, geometric mean",
        1.8,
        False,
        lambda record: geometric_mean(_over_fast(record, TAUGHT, "milliseconds", TABLE)),
    ),
    Target(
        "working memory of im2col over fast's, worst 3×3 layer",
        4,
        False,
        lambda record: min(_over_fast(record, "im2col", "working_megabytes", THREE)),
    ),
    Target(
        "largest relative error of fast",
        1e-6,
        True,
        lambda record: max(
            row["contestants"]["fast"]["relative_error"] for row in record["layers"].values()
        ),
    ),
)


def measure_table(
    layers: Iterable[str] = TABLE,
    rounds: int = 9,
    threads: int = 2,
    everything: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """The named layers of :data:`TABLE`, measured: a record ready for JSON and :func:`text`.

    ``everything`` lets the slow implementations take part too.  ``say`` is told what is next.
    """
    names = USUAL + tuple(n for n in IMPLEMENTATIONS if everything and n not in (*USUAL, "loops"))
    record: dict[str, Any] = {"machine": machine(threads), "rounds": rounds, "layers": {}}
    with even_threads(threads), Quiet(threads) as quiet:
        for layer in layers:
            say(f"measuring {layer}: {TABLE[layer].describe()}")
            record["layers"][layer] = _measure(TABLE[layer], names, rounds, quiet)
    return record


def _measure(
    geometry: ConvGeometry, names: Iterable[str], rounds: int, quiet: Quiet
) -> dict[str, Any]:
    operands = Operands(geometry)
    tasks = {name: _ours(name, operands) for name in names}
    if common.torch is not None:
        backward = operands.torch_tasks()["backward"]
        tasks[ONEDNN] = backward
        tasks[PLAIN] = _without_onednn(backward)
    slow = {name for name, task in tasks.items() if seconds(task) > SLOW}
    times, ratios = dict[str, list[float]](), dict[str, list[float]]()
    seen: list[tuple[float, dict[str, float]]] = []  # how noisy each round was, and its times
    while sum(noise <= NOISE for noise, _ in seen) < rounds and len(seen) < 3 * rounds:
        order = np.random.default_rng(len(seen)).permutation(list(tasks))
        timed = [str(name) for name in order if name not in slow or len(seen) < 2]
        before = quiet.noise()
        elapsed = {name: _timed(tasks[name]) for name in timed}
        seen.append((max(before, quiet.noise()), elapsed))
    seen.sort(key=lambda each: each[0])
    kept = max(sum(noise <= NOISE for noise, _ in seen), min(FEWEST, len(seen)))
    for name in tasks:
        with_it = [elapsed for _, elapsed in seen if name in elapsed][:kept]
        times[name] = [elapsed[name] for elapsed in with_it]
        ratios[name] = [elapsed[name] / elapsed.get(ONEDNN, math.nan) for elapsed in with_it]
    truth = _truth(operands)
    return {
        "geometry": geometry.as_dict(),
        "route": explain_route(geometry).name,
        "floor_megabytes": significant(_floor(operands) / 1e6),
        "rounds_kept": kept,
        "rounds_thrown_away": len(seen) - kept,
        "noise": significant(seen[kept - 1][0]),
        "contestants": {
            name: {
                "milliseconds": significant(1e3 * median(times[name])),
                "times_torch": significant(median(ratios[name])),
                "relative_error": float(f"{_error(task(), truth):.2g}"),
                **({} if name in (ONEDNN, PLAIN) else {"working_megabytes": _working(task)}),
            }
            for name, task in tasks.items()
        },
    }


def _timed(task: Task) -> float:
    time.sleep(PAUSE)
    task()
    return seconds(task)


def _ours(name: str, operands: Operands) -> Task:
    if name == TAUGHT:
        g, x, weight = operands.grad_output, operands.x, operands.weight
        return lambda: taught.backward(g, x, weight, operands.geometry)
    return operands.tasks(IMPLEMENTATIONS[name])["backward"]


def _without_onednn(task: Task) -> Task:
    def plain() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of its own switch
            with common.torch.backends.mkldnn.flags(enabled=False):
                return task()

    return plain


# ---- how good, how much ----------------------------------------------------------------------


def _truth(operands: Operands) -> list[np.ndarray]:
    """The gradients summed in double precision."""
    g, x, weight = (
        array.astype(np.float64) for array in (operands.grad_output, operands.x, operands.weight)
    )
    rung, geometry = IMPLEMENTATIONS["fast"], operands.geometry
    return [
        rung.grad_input(g, weight, geometry),
        rung.grad_weight(g, x, geometry),
        rung.grad_bias(g, geometry),
    ]


def _error(found: Iterable[Any], truth: Iterable[np.ndarray]) -> float:
    """The largest ‖found − true‖ / ‖true‖ of the gradients."""
    return max(
        float(np.linalg.norm(np.asarray(mine) - right) / np.linalg.norm(right))
        for mine, right in zip(found, truth, strict=True)
    )


def _working(task: Task) -> float:
    """Megabytes at the worst moment, beside operands and results."""
    results = sum(each.nbytes for each in task())
    return significant(peak_megabytes(task) - results / 1e6)


def _floor(operands: Operands) -> int:
    """Bytes of what goes in and what comes out, which nobody can do without."""
    into = operands.grad_output.nbytes + operands.x.nbytes + operands.weight.nbytes
    return into + operands.x.nbytes + operands.weight.nbytes + 4 * operands.geometry.O


# ---- an even and quiet machine ---------------------------------------------------------------


class Quiet:
    """A fixed job on all threads that tells whether a neighbour is busy."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._best = math.inf
        rng = np.random.default_rng(0)
        self._numbers = [rng.standard_normal(20_000) for _ in range(threads)]

    def __enter__(self) -> Quiet:
        self._pool = ThreadPoolExecutor(self._threads)
        for _ in range(20):
            self._best = min(self._best, seconds(self._job))
        return self

    def __exit__(self, *trouble: object) -> None:
        self._pool.shutdown()

    def noise(self) -> float:
        """How many times longer the job takes than it took at best; of three tries the fastest."""
        fastest = min(seconds(self._job) for _ in range(3))
        self._best = min(self._best, fastest)
        return fastest / self._best

    def _job(self) -> None:
        for each in [self._pool.submit(_sort, numbers) for numbers in self._numbers]:
            each.result()


def _sort(numbers: np.ndarray) -> None:
    """Some ten milliseconds of work on one core, which lets go of Python's lock."""
    for _ in range(60):
        np.sort(numbers)


# ---- the table -------------------------------------------------------------------------------


def text(record: dict[str, Any]) -> Iterator[str]:
    """The measurements as people read them, and under them the targets."""
    yield (f"{'layer':<26}{'contestant':<22}{'ms':>8}{'× torch':>9}{'work MB':>9}{'error':>9}")
    for name, layer in record["layers"].items():
        for k, (who, row) in enumerate(layer["contestants"].items()):
            work = row.get("working_megabytes")
            yield (
                f"{name if k == 0 else '':<26}{who:<22}{row['milliseconds']:>8g}"
                f"{row['times_torch']:>9g}{'' if work is None else f'{work:g}':>9}"
                f"{row['relative_error']:>9.0e}"
            )
        yield (
            f"{'':<26}{layer['route']}; what goes in and out takes {layer['floor_megabytes']:g} MB;"
            f" {layer['rounds_kept']} rounds, {layer['rounds_thrown_away']} thrown away"
        )
    if record["layers"].keys() == TABLE.keys():
        yield ""
        yield from targets(record)


def targets(record: dict[str, Any]) -> Iterator[str]:
    """Each target beside its figure."""
    for target in TARGETS:
        sign, verdict = "≤" if target.at_most else "≥", "met" if target.met(record) else "MISSED"
        value = float(f"{target.value(record):.3g}")
        yield f"{target.what:<54}{value:>9g}   {sign} {target.bound:<7g} {verdict}"
