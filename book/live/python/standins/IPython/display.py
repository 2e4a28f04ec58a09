"""In the page: the few names of ``IPython.display`` that people use."""

from __future__ import annotations

from typing import Any

from convgrad_live import display

__all__ = ["HTML", "SVG", "Markdown", "display"]


class _Text:
    def __init__(self, data: Any = None) -> None:
        self.data = str(data)


class HTML(_Text):
    def _repr_html_(self) -> str:
        return self.data


class SVG(_Text):
    def _repr_svg_(self) -> str:
        return self.data


class Markdown(_Text):
    def _repr_markdown_(self) -> str:
        return self.data
