"""Wrong gradients to look at and to find: which mistake looks how, and which check notices it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..examples import Example
from ..mutants import MUTANTS
from .base import Refused, traitlets
from .break_fallback import break_fallback
from .mistakes import MISTAKES, described
from .noticing import CHECKS, Finding, differs, findings, right, wrong
from .operands import LAYOUT, OperandsWidget

__all__ = ["BreakTheGradient", "Round", "round_of", "showing"]

MODES = ("look", "duel")
CHOICES = 4  # mistakes to choose from in a duel
_DRAWN = ("geometry", "x", "weight", "grad_output", "mistake", "mode", "seed", "round")


class Round(NamedTuple):
    """One round of the duel: the mistake that is hidden, and those it is hidden among."""

    hidden: str
    among: tuple[str, ...]


class BreakTheGradient(OperandsWidget):
    """A wrong gradient beside the right one, the checks that notice, and a duel.

    Pick a mistake: the cells that differ are marked, and five checks say with their numbers
    whether they notice it.  In the duel a gradient is broken in secret, and the reader finds the
    mistake from the picture and the checks.

    ``save_html(widget, "widget.html")`` writes it into one file that works without a kernel.

    Parameters
    ----------
    x : Example or array_like, (N, C, H, W), optional
        A running example, or the input; example B where it is left out.
    weight : array_like, (O, C/groups, KH, KW), optional
        The kernels; left out with an example.
    grad_output : array_like, (N, O, OH, OW), optional
        The upstream gradient; small whole numbers where it is left out.
    mistake : str, default "wgrad_g_turned"
        The name of one of ``convgrad.widgets.mistakes.MISTAKES``, such as
        ``"wgrad_g_turned"``, ``"wgrad_no_crop"``, ``"col2im_assign"`` or ``"bias_axes_012"``.
    mode : str, default "look"
        ``"look"`` shows the mistake by its name, ``"duel"`` hides one.
    seed : int, default 0
        The duel's: the same seed hides the same mistakes in the same order.
    **conv
        The arguments of ``conv2d`` that go with arrays: stride, padding, dilation, groups,
        padding_mode.

    Attributes
    ----------
    mistake, mode, seed : str, str, int
        As above; like all that follows they are traits, which the browser changes too.
    geometry, x, weight, grad_output : ConvGeometry, ndarray
        The convolution and its numbers.  Assigning ``geometry`` refits the arrays.
    round, guesses, revealed : int, list of str, bool
        The duel's round, counted from 0, what was guessed in it, and whether the answer was asked
        for.
    found, tries : int
        How many mistakes were found so far, and with how many guesses.

    Raises
    ------
    GeometryError, ShapeError
        For what is no convolution or too much to draw.
    ValueError
        For a mistake that is not known; the message lists the known ones.

    Examples
    --------
    >>> from convgrad import example
    >>> from convgrad.widgets import BreakTheGradient
    >>> broken = BreakTheGradient(example("B"), mistake="wgrad_g_turned")
    >>> broken.wrong[0, 0]
    array([[ 9.,  2.,  6.],
           [ 3., 13., 10.],
           [ 7.,  2., 10.]])
    >>> [finding.check for finding in broken.findings if not finding.noticed]
    ['ones', 'shape']
    """

    _bundle: ClassVar[str] = "break_the_gradient"
    _who: ClassVar[str] = "the widget"

    mode = traitlets.Enum(MODES, "look").tag(sync=True)
    mistake = traitlets.Unicode("wgrad_g_turned").tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    mistakes = traitlets.List(traitlets.Dict()).tag(sync=True)
    checks = traitlets.List(traitlets.Dict()).tag(sync=True)

    # what the reader does in the duel
    round = traitlets.Int(0, min=0).tag(sync=True)
    guesses = traitlets.List(traitlets.Unicode()).tag(sync=True)
    revealed = traitlets.Bool(False).tag(sync=True)
    found = traitlets.Int(0).tag(sync=True)
    tries = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        x: Example | Any = None,
        weight: Any = None,
        grad_output: Any = None,
        *,
        mistake: str = "wgrad_g_turned",
        mode: Literal["look", "duel"] = "look",
        seed: int = 0,
        **conv: Any,
    ) -> None:
        layout = {key: conv.pop(key) for key in LAYOUT if key in conv}
        super().__init__(
            *(x, weight, grad_output, conv),
            **layout,
            mistake=mistake,
            mode=mode,
            seed=seed,
            mistakes=[described(name) for name in MISTAKES],
            checks=[
                {"name": name, "title": title, "does": does}
                for name, (title, does) in CHECKS.items()
            ],
        )
        self._drawn: list[Any] = []  # what the fallback was drawn from
        self._write_fallback()
        self.observe(self._write_fallback, list(_DRAWN))

    # ---- what can be asked for -----------------------------------------------------------

    @property
    def target(self) -> str:
        """The gradient that the mistake gets wrong: ``"weight"``, ``"input"`` or ``"bias"``."""
        return MUTANTS[self.mistake].target

    @property
    def right(self) -> np.ndarray:
        """The right gradient for what stands in the grids now."""
        return right(self.target, self.geometry, self._operands)

    @property
    def wrong(self) -> np.ndarray | None:
        """What the mistake makes of it; None where it stops with an error."""
        return wrong(self.mistake, self.geometry, self._operands)

    @property
    def findings(self) -> list[Finding]:
        """What each check says of it: ``check``, ``noticed``, ``evidence``."""
        return findings(self.mistake, self.geometry, self._operands)

    @property
    def answer(self) -> str | None:
        """The mistake that the present round of the duel hides."""
        found = self._round()
        return found.hidden if found else None

    def _round(self) -> Round | None:
        return round_of(showing(self.geometry, self._operands), self.seed, self.round)

    @property
    def _operands(self) -> dict[str, np.ndarray]:
        return {"x": self.x, "weight": self.weight, "grad_output": self.grad_output}

    # ---- what keeps the traits consistent ------------------------------------------------

    @traitlets.validate("mistake")
    def _known(self, proposal: dict[str, Any]) -> str:
        name = proposal["value"]
        if name not in MISTAKES:
            raise Refused(f"mistake is {name!r}: known here are {', '.join(MISTAKES)}")
        return name

    def _write_fallback(self, change: Any = None) -> None:
        if self._property_lock:
            return  # a change from the browser, which draws it itself and needs no fallback
        drawn = [getattr(self, name) for name in _DRAWN]
        # arrays are never written to, so the same objects are the same numbers
        if all(new is old for new, old in zip(drawn, self._drawn, strict=False)) and self._drawn:
            return
        self._drawn = drawn
        found = self._round() if self.mode == "duel" else None
        mistake, among = found or (self.mistake, ())
        self.fallback = break_fallback(mistake, self.geometry, self._operands, among)


# ---- the duel: the same as js/duel.js -------------------------------------------------------


def draw(most: int, *numbers: int) -> int:
    """A number below ``most`` that follows from all that is given."""
    bits = 0x2545F491
    for each in numbers:
        bits = (bits ^ (each & 0xFFFFFFFF)) * 0x9E3779B1 & 0xFFFFFFFF
        bits ^= bits >> 15
        bits = bits * 0x2C1B3C6D & 0xFFFFFFFF
        bits ^= bits >> 12
    return bits % most


def showing(geometry: Any, operands: dict[str, np.ndarray]) -> list[str]:
    """The mistakes that show on these numbers, each with another wrong gradient."""
    seen: list[tuple[str, np.ndarray | None]] = []
    shown = []
    for name in MISTAKES:
        target, made = MUTANTS[name].target, wrong(name, geometry, operands)
        known = any(of == target and _alike(each, made) for of, each in seen)
        if not known and not _alike(made, right(target, geometry, operands)):
            seen.append((target, made))
            shown.append(name)
    return shown


def _alike(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and not differs(a, b).any()


def round_of(shown: Sequence[str], seed: int, number: int) -> Round | None:
    """The mistake of a round and those it is hidden among, in their usual order.

    None where no gradient has two that can be told apart.
    """
    targets = [MUTANTS[name].target for name in shown]
    fair = [name for name in shown if targets.count(MUTANTS[name].target) > 1]
    if not fair:
        return None
    # every mistake once, in an order of its own, before any comes again
    order = list(range(len(fair)))
    cycle, place = divmod(number, len(fair))
    for k in range(len(fair) - 1, 0, -1):
        other = draw(k + 1, seed, cycle, k)
        order[k], order[other] = order[other], order[k]
    hidden = fair[order[place]]
    among = [name for name in fair if MUTANTS[name].target == MUTANTS[hidden].target]
    k = 0
    while len(among) > CHOICES:
        out = draw(len(among), seed, number, k)
        if among[out] != hidden:
            among.pop(out)
        k += 1
    return Round(hidden, tuple(among))
