"""What every right gradient obeys, each law a named function that raises when it is broken.

Two of the laws need no second implementation to compare with.  With the loss
L = ⟨grad_output, conv(x, weight)⟩, which is linear in each operand:

    adjoint                 ⟨grad_output, conv(x, w)⟩ = ⟨grad_input, x⟩ = ⟨grad_weight, w⟩
    directional difference  L(w + d) − L(w) = ⟨grad_weight, d⟩, for a step as long as you like

Source: the first is the definition of the adjoint; Baydin et al., *Automatic differentiation
in machine learning: a survey*, section 3, for why a gradient is an adjoint applied to
grad_output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .. import loops, windows
from ..geometry import ConvGeometry
from .draws import Draw, random_operands

__all__ = ["LAWS", "Law", "LawBroken", "assert_adjoint", "directional_difference"]

Rule = Callable[..., np.ndarray]
Judge = Callable[[Rule, str, Draw, np.random.Generator], None]


class LawBroken(AssertionError):
    """A gradient does not obey a law; the message says which and by how much.

    Examples
    --------
    >>> u, v = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    >>> assert_adjoint(
    ...     lambda u: 2 * u, lambda v: 3 * v, u, v)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.checks.laws.LawBroken: ⟨v, linear(u)⟩ = 22, but ⟨adjoint(v), u⟩ = 33:
        the second map is not the adjoint of the first
    """


def assert_adjoint(
    linear: Callable[[np.ndarray], np.ndarray],
    adjoint: Callable[[np.ndarray], np.ndarray],
    u: np.ndarray,
    v: np.ndarray,
    rtol: float = 0.0,
) -> None:
    """Raise :class:`LawBroken` unless ⟨linear(u), v⟩ = ⟨u, adjoint(v)⟩.

    Parameters
    ----------
    linear : callable
        A linear map of one array.
    adjoint : callable
        The map that is claimed to be its adjoint.
    u : ndarray
        An operand of ``linear``.
    v : ndarray
        In the shape of its output.
    rtol : float, default 0.0
        How much of Σ abs(v)·abs(linear(u)) may be rounding.  With small integers both sides are
        exact and 0 is right; for other floats 1e-12 in float64.

    Raises
    ------
    LawBroken
        With both sides, which are summed in float64 or wider.

    Examples
    --------
    >>> from convgrad.examples import example
    >>> b = example("B")
    >>> x, weight, bias, g = b.arrays()
    >>> assert_adjoint(
    ...     lambda w: windows.forward(x, w, b.geometry),
    ...     lambda g: windows.grad_weight(g, x, b.geometry),
    ...     weight, g)
    """
    sides = _unequal_sides(linear, adjoint, u, v, rtol)
    if sides is not None:
        ahead, behind = sides
        raise LawBroken(
            f"⟨v, linear(u)⟩ = {ahead:g}, but ⟨adjoint(v), u⟩ = {behind:g}: "
            "the second map is not the adjoint of the first"
        )


def _unequal_sides(
    linear: Callable[[np.ndarray], np.ndarray],
    adjoint: Callable[[np.ndarray], np.ndarray],
    u: np.ndarray,
    v: np.ndarray,
    rtol: float,
) -> tuple[float, float] | None:
    """⟨v, linear(u)⟩ and ⟨adjoint(v), u⟩, if they differ."""
    out, back = np.asarray(linear(u)), np.asarray(adjoint(v))
    if out.shape != np.shape(v) or back.shape != np.shape(u):
        raise LawBroken(
            f"the map gives {out.shape} where {np.shape(v)} was needed, "
            f"its adjoint {back.shape} where {np.shape(u)} was needed"
        )
    u, v, out, back = (
        np.asarray(a, np.result_type(np.asarray(a), np.float64)) for a in (u, v, out, back)
    )
    ahead, behind = np.vdot(v, out), np.vdot(back, u)
    allowed = rtol * float(np.sum(np.abs(v) * np.abs(out)))
    if not abs(ahead - behind) <= allowed:  # and not: >, which nan would pass
        return ahead, behind
    return None


def directional_difference(
    loss: Callable[[np.ndarray], float],
    at: np.ndarray,
    direction: np.ndarray,
    step: float = 1.0,
) -> float:
    """(loss(at + step·direction) − loss(at)) / step: what ⟨gradient, direction⟩ must be.

    For a loss that is linear in this operand the difference is exact for every step, so the
    step is 1 and integers stay integers.  For a curved loss use a small step and a tolerance.

    Parameters
    ----------
    loss : callable
        One number from an array.
    at : ndarray
        Where the gradient was taken.
    direction : ndarray
        In the shape of ``at``.
    step : float, default 1.0
        How far to go.

    Returns
    -------
    float

    Examples
    --------
    >>> from convgrad.examples import example
    >>> b = example("B")
    >>> x, weight, bias, g = b.arrays()
    >>> def loss(weight):
    ...     return np.vdot(g, windows.forward(x, weight, b.geometry))
    >>> direction = np.arange(9.0).reshape(weight.shape)
    >>> change = directional_difference(loss, weight, direction)
    >>> change == np.vdot(windows.grad_weight(g, x, b.geometry), direction)
    np.True_
    """
    return (loss(at + step * direction) - loss(at)) / step


# ---- the laws -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """One law: what it says, operands on which breaking it shows, and its judgement.

    Attributes
    ----------
    name : str
        Its key in :data:`LAWS`.
    sentence : str
        What it says.
    draw : callable
        ``draw(geometry, rng)``: operands on which breaking it shows.
    judge : callable
        ``judge(rule, target, draw, rng)``: raises where the rule breaks it on these.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> LAWS["adjoint"].check(windows.grad_weight, "weight", geometry, rng)  # kept
    """

    name: str
    sentence: str
    draw: Callable[[ConvGeometry, np.random.Generator], Draw]
    judge: Judge

    def check(
        self, rule: Rule, target: str, geometry: ConvGeometry, rng: np.random.Generator
    ) -> None:
        """Draw operands and hold the rule to the law.

        Parameters
        ----------
        rule : callable
            A gradient, called as ``rule(grad_output, x, geometry)`` for target "weight",
            ``rule(grad_output, weight, geometry)`` for "input", ``rule(grad_output, geometry)`` for
            "bias".
        target : str
            Which of the three it is.
        geometry : ConvGeometry
        rng : numpy.random.Generator

        Raises
        ------
        LawBroken
            When the rule breaks the law.  The rule's own errors pass through.
        """
        self.judge(rule, target, self.draw(geometry, rng), rng)


LAWS: dict[str, Law] = {}


def _law(
    draw: Callable[[ConvGeometry, np.random.Generator], Draw] = random_operands,
    name: str | None = None,
) -> Callable[[Judge], Judge]:
    """Enter a judgement into the table; its docstring is the law."""

    def enter(judge: Judge) -> Judge:
        key = name or judge.__name__
        LAWS[key] = Law(key, " ".join((judge.__doc__ or "").split()), draw, judge)
        return judge

    return enter


def _apply(rule: Rule, target: str, draw: Draw) -> np.ndarray:
    return np.asarray(rule(*draw.operands(target), draw.geometry))


def _definition(target: str, draw: Draw) -> np.ndarray:
    rules: dict[str, Rule] = {
        "weight": loops.grad_weight,
        "input": loops.grad_input,
        "bias": loops.grad_bias,
    }
    return rules[target](*draw.operands(target), draw.geometry)


def _operand(target: str, draw: Draw, rng: np.random.Generator) -> np.ndarray:
    """The operand whose gradient is asked for (the bias is drawn here: no rule needs it)."""
    if target == "bias":
        return rng.integers(-4, 5, size=draw.geometry.bias_shape).astype(np.float64)
    return draw.weight if target == "weight" else draw.x


def _forward(target: str, draw: Draw) -> Callable[[np.ndarray], np.ndarray]:
    """The output as a linear map of that one operand."""
    geometry = draw.geometry
    if target == "bias":
        return lambda bias: np.broadcast_to(bias[:, None, None], geometry.output_shape)
    if target == "weight":
        return lambda weight: windows.forward(draw.x, weight, geometry)
    return lambda x: windows.forward(x, draw.weight, geometry)


def _require_equal(actual: np.ndarray, expected: np.ndarray, when: str) -> None:
    if actual.shape != expected.shape:
        raise LawBroken(f"shape {actual.shape}, needed is {expected.shape} {when}")
    wrong = np.argwhere((actual != expected) & ~(np.isnan(actual) & np.isnan(expected)))
    if len(wrong):
        at = tuple(map(int, wrong[0]))
        raise LawBroken(f"{actual[at]:g} at {list(at)}, needed is {expected[at]:g} {when}")


@_law()
def shape(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """The gradient of an operand has the operand's shape."""
    needed = _operand(target, draw, rng).shape
    got = _apply(rule, target, draw).shape
    if got != needed:
        raise LawBroken(f"shape {got}, needed is {needed}, that of the operand")


@_law()
def equals_loops(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """The gradient is the sum that the loops write down, cell by cell."""
    _require_equal(_apply(rule, target, draw), _definition(target, draw), "by the loops")


@_law()
def adjoint(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """⟨grad_output, output⟩ = ⟨gradient, operand⟩, for every operand and grad_output."""
    sides = _unequal_sides(
        _forward(target, draw),
        lambda g: _apply(rule, target, draw._replace(grad_output=g)),
        _operand(target, draw, rng),
        draw.grad_output,
        rtol=0.0,
    )
    if sides is not None:
        ahead, behind = sides
        operand = "x" if target == "input" else target
        raise LawBroken(
            f"the products grad_output·output of all cells add up to {ahead:g}, the products "
            f"grad_{target}·{operand} to {behind:g}"
        )


@_law(name="directional_difference")
def one_step(
    rule: Rule,
    target: str,
    draw: Draw,
    rng: np.random.Generator,
) -> None:
    """One step in any direction changes the loss by ⟨gradient, direction⟩."""
    operand, forward = _operand(target, draw, rng), _forward(target, draw)
    direction = rng.integers(-4, 5, size=operand.shape).astype(np.float64)

    def loss(operand: np.ndarray) -> float:
        return np.vdot(draw.grad_output, forward(operand))

    change = directional_difference(loss, operand, direction)
    gradient = _apply(rule, target, draw)
    if gradient.shape != operand.shape:
        raise LawBroken(f"shape {gradient.shape}, needed is {operand.shape}")
    promised = np.vdot(gradient, direction)
    if promised != change:
        words = "the loss changes by {:g}, the gradient promises {:g}"
        raise LawBroken(words.format(change, promised))


def _fractions(geometry: ConvGeometry, rng: np.random.Generator) -> Draw:
    """Quarters in float32: every sum is still exact, but nothing is a whole number."""
    draw = random_operands(geometry, rng)
    return Draw(geometry, *(((array + 0.5) / 2).astype(np.float32) for array in draw[1:]))


@_law(_fractions)
def dtype(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """The gradient keeps the dtype of its operands, fractions included."""
    got = _apply(rule, target, draw)
    needed = np.result_type(*draw.operands(target))
    if got.dtype != needed:
        raise LawBroken(f"dtype {got.dtype}, needed is {needed}")
    _require_equal(got, _definition(target, draw), "by the loops")


@_law()
def operands_untouched(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """No operand is written to."""
    before = [array.copy() for array in draw.operands(target)]
    _apply(rule, target, draw)
    for array, copy in zip(draw.operands(target), before, strict=True):
        _require_equal(array, copy, "in an operand, which was changed")


def _scattered(geometry: ConvGeometry, rng: np.random.Generator) -> Draw:
    """Operands whose neighbours in memory are no neighbours in the array."""

    def view(array: np.ndarray) -> np.ndarray:
        # a slice of a larger, transposed array, as concatenation hands back
        n, c, h, v = array.shape
        larger = rng.integers(-4, 5, size=(h, c + 1, n, v + 1))
        larger = larger.astype(np.float64)
        seen = larger.transpose(2, 1, 0, 3)[:, 1:, :, :v]  # n c h v
        seen[...] = array
        return seen

    draw = random_operands(geometry, rng)
    return Draw(geometry, *map(view, draw[1:]))


@_law(_scattered)
def memory_layout(
    rule: Rule,
    target: str,
    draw: Draw,
    rng: np.random.Generator,
) -> None:
    """Only the numbers count, not how they lie in memory."""
    found = _apply(rule, target, draw)
    _require_equal(found, _definition(target, draw), "for these numbers")


def _no_images(geometry: ConvGeometry, rng: np.random.Generator) -> Draw:
    return random_operands(replace(geometry, N=0), rng)


@_law(_no_images)
def empty_batch(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """A batch of no images has gradients of the right shape, all zero."""
    _require_equal(_apply(rule, target, draw), _definition(target, draw), "for an empty batch")


def _one_infinity(geometry: ConvGeometry, rng: np.random.Generator) -> Draw:
    """One infinite number in each operand but grad_output; no zeros, so 0·inf has no excuse."""
    draw = random_operands(geometry, rng)
    positive = draw._replace(
        x=np.abs(draw.x) + 1,
        weight=np.abs(draw.weight) + 1,
        grad_output=np.abs(draw.grad_output) + 1,
    )
    for array in (positive.x, positive.weight):
        array[(0,) * array.ndim] = np.inf
    return positive


@_law(_one_infinity)
def infinity(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """An infinite number reaches the cells whose formula it stands in, and no other."""
    with np.errstate(invalid="ignore"):
        expected = _definition(target, draw)
        _require_equal(_apply(rule, target, draw), expected, "with an infinite operand")


def _large_that_cancel(geometry: ConvGeometry, rng: np.random.Generator) -> Draw:
    """Two images whose large shares of the gradient cancel, in float32 as float16 arrives."""
    draw = random_operands(replace(geometry, N=2), rng)
    x = np.repeat(np.abs(draw.x[:1]) + 196, 2, axis=0)
    g = np.repeat(np.abs(draw.grad_output[:1]) + 400, 2, axis=0)
    g[1] *= -1
    return Draw(draw.geometry, *(array.astype(np.float32) for array in (x, draw.weight, g)))


@_law(_large_that_cancel)
def wide_sums(rule: Rule, target: str, draw: Draw, rng: np.random.Generator) -> None:
    """Sums run in float32 or wider: large shares may cancel without overflow."""
    _require_equal(_apply(rule, target, draw), _definition(target, draw), "in float32")
