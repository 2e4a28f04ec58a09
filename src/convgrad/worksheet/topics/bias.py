"""The bias gradient: g alone, added up over images, rows and columns."""

from __future__ import annotations

import numpy as np

from ... import loops
from ...dice import Dice
from ...geometry import ConvGeometry
from ...mutants import MUTANTS
from ..draws import numbers, table_of
from ..parts import Line, Mistake, Question, Table
from ..spelled import number

__all__ = ["BIAS"]


def _drawn(dice: Dice, level: int) -> tuple[ConvGeometry, np.ndarray]:
    N, O = (2, 1) if level == 1 else (2, 2) if level == 2 else (3, 2)
    rows, cols = dice.one_of([(2, 2), (2, 3), (3, 2)])
    geometry = ConvGeometry(N=N, C=1, H=rows + 1, W=cols + 1, O=O, KH=2, KW=2)
    return geometry, numbers(dice, geometry.output_shape, level)


def _planes(geometry: ConvGeometry, g: np.ndarray) -> tuple[Table, ...]:
    return tuple(
        table_of(f"image {n}, kernel {o}" if geometry.O > 1 else f"g, image {n}", g[n, o], "pq")
        for n in range(geometry.N)
        for o in range(geometry.O)
    )


def _wrong(geometry: ConvGeometry, g: np.ndarray) -> tuple[Mistake, ...]:
    last = Mistake(
        loops.grad_bias(g[-1:], ConvGeometry(**(geometry.as_dict() | {"N": 1}))),
        "Takes the last image alone, where all images add up.",
    )
    by_name = [
        Mistake(MUTANTS[name](g, geometry), MUTANTS[name].sentence, name)
        for name in ("bias_batch_mean", "bias_position_mean")
    ]
    return (last, *by_name)


def _told(geometry: ConvGeometry) -> str:
    kernels = "one kernel" if geometry.O == 1 else f"{geometry.O} kernels, each with its own bias"
    return f"A batch of {geometry.N} images has passed a layer with {kernels}."


def _summed(geometry: ConvGeometry, g: np.ndarray, o: int) -> str:
    shares = [" + ".join(_term(int(k)) for k in g[n, o].ravel()) for n in range(geometry.N)]
    total = int(loops.grad_bias(g, geometry)[o])
    return f"∂L/∂b[{o}] = {' + '.join(f'({share})' for share in shares)} = {number(total)}"


def _term(value: int) -> str:
    return f"({number(value)})" if value < 0 else str(value)


def bias_sum(dice: Dice, level: int) -> Question | None:
    geometry, g = _drawn(dice, level)
    right = loops.grad_bias(g, geometry)
    return Question(
        title="The gradient of the bias",
        text=(_told(geometry), "Compute `∂L/∂b` from the upstream gradient `g = ∂L/∂y`."),
        given=_planes(geometry, g),
        asks=tuple(Line(f"∂L/∂b[{o}]", int(right[o])) for o in range(geometry.O)),
        answer=right,
        working=tuple(_summed(geometry, g, o) for o in range(geometry.O)),
        mistakes=_wrong(geometry, g),
        geometry=geometry,
        arrays={"grad_output": g},
        room=18,
    )


def shares(dice: Dice, level: int) -> Question | None:
    geometry, g = _drawn(dice, level)
    one = ConvGeometry(**(geometry.as_dict() | {"N": 1}))
    each = np.array([loops.grad_bias(g[n : n + 1], one) for n in range(geometry.N)])
    table = np.vstack([each, loops.grad_bias(g, geometry)])
    return Question(
        title="Each image's share",
        text=(
            _told(geometry),
            "Fill in the share that each image has in `∂L/∂b`, and their sum.",
        ),
        given=_planes(geometry, g),
        asks=(
            Table(
                "shares of ∂L/∂b",
                table,
                ("", "o"),
                blank=np.ones(table.shape, bool),
                rows=(*(f"image {n}" for n in range(geometry.N)), "sum"),
            ),
        ),
        answer=table,
        working=tuple(_summed(geometry, g, o) for o in range(geometry.O)),
        mistakes=(),
        geometry=geometry,
        arrays={"grad_output": g},
        room=12,
    )


def covered(dice: Dice, level: int) -> Question | None:
    geometry, g = _drawn(dice, level)
    n, o = dice.between(0, geometry.N - 1), dice.between(0, geometry.O - 1)
    p, q = dice.between(0, geometry.OH - 1), dice.between(0, geometry.OW - 1)
    value, total = int(g[n, o, p, q]), int(loops.grad_bias(g, geometry)[o])
    blank = np.zeros((geometry.OH, geometry.OW), bool)
    blank[p, q] = True
    planes = list(_planes(geometry, g))
    place = n * geometry.O + o
    hidden = planes.pop(place)
    own = int(g[n, o].sum()) - value
    letter = f"∂L/∂b[{o}]" if geometry.O > 1 else "∂L/∂b"
    asked = Table(hidden.label, hidden.values, hidden.letters, blank=blank)
    return Question(
        title="A number is missing",
        text=(
            _told(geometry),
            f"You know that `{letter} = {number(total)}`. Find the number of `g` that is missing.",
        ),
        given=tuple(planes),
        asks=(asked, Line("the missing number", value)),
        answer=np.asarray(value),
        working=(
            f"The numbers of g for this kernel that are there come to {number(total - value)}, and "
            f"{number(total)} − {_term(total - value)} = {number(value)}",
        ),
        mistakes=(
            Mistake(np.asarray(total - own), "Adds up the one image only, where all images count."),
        ),
        geometry=geometry,
        arrays={"grad_output": g},
        about={"covered": (n, o, p, q)},
        room=14,
    )


BIAS = (bias_sum, shares, covered)
