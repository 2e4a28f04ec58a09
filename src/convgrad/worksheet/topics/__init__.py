"""The topics of worksheets, in the order of the chapters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...dice import Dice
from ..parts import Question
from .bias import BIAS
from .chain import CHAIN
from .columns import IM2COL
from .exchange import STRIDE_DILATION
from .find import FIND_THE_MISTAKE
from .groups import GROUPS
from .sizes import SIZES
from .sums import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT

__all__ = ["TOPICS", "Kind", "Topic"]

# Draws a question; None where the dice fell badly, and another throw is due.
Kind = Callable[[Dice, int], Question | None]


@dataclass(frozen=True)
class Topic:
    """What a sheet can be about.

    Attributes
    ----------
    key : str
        How it is asked for, such as "weight-gradient".
    title : str
        The heading of its sheets.
    reminder : str
        The rule that stands at the head of a sheet, up to level 2.
    kinds : tuple of callable
        Its kinds of question, which draw one from dice and a level.

    Examples
    --------
    >>> TOPICS["weight-gradient"].title
    'The weight gradient'
    """

    key: str
    title: str
    reminder: str
    kinds: tuple[Kind, ...]


_INDEX = "h = stride·p + dilation·i − padding, and v with q and j"

TOPICS: dict[str, Topic] = {
    topic.key: topic
    for topic in (
        Topic("forward", "The sliding window", f"y[p,q] = Σ w[i,j]·x[h,v], with {_INDEX}", FORWARD),
        Topic(
            "sizes",
            "Stride, padding, dilation",
            "OH = ⌊(H + 2·padding − span) / stride⌋ + 1, with span = dilation·(KH − 1) + 1; "
            f"{_INDEX}",
            SIZES,
        ),
        Topic(
            "chain",
            "One product at a time",
            "w[i,j]·x[h,v] in y[p,q] sends x[h,v]·g[p,q] to ∂L/∂w[i,j] and w[i,j]·g[p,q] to "
            f"∂L/∂x[h,v], with {_INDEX}",
            CHAIN,
        ),
        Topic(
            "weight-gradient",
            "The weight gradient",
            f"∂L/∂w[i,j] = Σ x[h,v]·g[p,q], with {_INDEX}",
            WEIGHT_GRADIENT,
        ),
        Topic(
            "stride-dilation",
            "The weight gradient with a stride",
            f"∂L/∂w[i,j] = Σ x[h,v]·g[p,q], with {_INDEX}: the stride of y is the dilation of g",
            STRIDE_DILATION,
        ),
        Topic(
            "input-gradient",
            "The input gradient",
            "∂L/∂x[h,v] = Σ w[i,j]·g[p,q], over all p, q, i, j with h = stride·p + dilation·i − "
            "padding, and v with q and j",
            INPUT_GRADIENT,
        ),
        Topic(
            "bias",
            "The bias gradient",
            "∂L/∂b[o] = Σ g[n,o,p,q], over all images n and all places p, q",
            BIAS,
        ),
        Topic(
            "im2col",
            "Windows as columns",
            "unfold: U[i,j; p,q] = x[h,v]; fold: every number is added to the cell its tap read; "
            f"{_INDEX}",
            IM2COL,
        ),
        Topic(
            "groups",
            "Groups",
            "kernel o is in group ⌊o / (O/G)⌋; its channel c is channel group·(C/G) + c of x",
            GROUPS,
        ),
        Topic(
            "find-the-mistake",
            "Find the mistake",
            f"∂L/∂w[i,j] = Σ x[h,v]·g[p,q] and ∂L/∂x[h,v] = Σ w[i,j]·g[p,q], with {_INDEX}",
            FIND_THE_MISTAKE,
        ),
    )
}
