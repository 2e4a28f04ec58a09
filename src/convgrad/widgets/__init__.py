"""The explorables: one class a widget, drawn by JavaScript, checked by Python.

They work with a live kernel (JupyterLab, Notebook, VS Code) and in a static page without one;
:func:`save_html` writes any of them into a page of its own.
Each is imported when it is first asked for, so that importing this package needs NumPy alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .break_the_gradient import BreakTheGradient
    from .contribution_player import ContributionPlayer
    from .geometry_explorer import GeometryExplorer
    from .gradient_views import GradientViews
    from .group_blocks import GroupBlocks
    from .predict import Predict
    from .roofline import Roofline
    from .shard_sum import ShardSum
    from .sliding_window import SlidingWindow
    from .standalone import save_html
    from .thread_grid import ThreadGrid
    from .unfold_matrix import UnfoldMatrix

__all__ = [
    "BreakTheGradient",
    "ContributionPlayer",
    "GeometryExplorer",
    "GradientViews",
    "GroupBlocks",
    "Predict",
    "Roofline",
    "ShardSum",
    "SlidingWindow",
    "ThreadGrid",
    "UnfoldMatrix",
    "save_html",
]

_HOMES = {
    "BreakTheGradient": "break_the_gradient",
    "ContributionPlayer": "contribution_player",
    "GeometryExplorer": "geometry_explorer",
    "GradientViews": "gradient_views",
    "GroupBlocks": "group_blocks",
    "Predict": "predict",
    "Roofline": "roofline",
    "ShardSum": "shard_sum",
    "SlidingWindow": "sliding_window",
    "ThreadGrid": "thread_grid",
    "UnfoldMatrix": "unfold_matrix",
    "save_html": "standalone",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
