"""The explorables: one class a widget, drawn by JavaScript, checked by Python.

They work with a live kernel (JupyterLab, Notebook, VS Code) and in a static page without one.
Each is imported when it is first asked for, so that importing this package needs NumPy alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contribution_player import ContributionPlayer
    from .group_blocks import GroupBlocks
    from .predict import Predict
    from .unfold_matrix import UnfoldMatrix

__all__ = ["ContributionPlayer", "GroupBlocks", "Predict", "UnfoldMatrix"]

_HOMES = {
    "ContributionPlayer": "contribution_player",
    "GroupBlocks": "group_blocks",
    "Predict": "predict",
    "UnfoldMatrix": "unfold_matrix",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
