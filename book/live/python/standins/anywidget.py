"""In the page: as much of anywidget as an explorable needs, on traitlets alone.

The real one stands on ipywidgets and IPython, which weigh more than NumPy.  Here a widget is a set
of traits; the page draws it with the loader that it has already, and what changes on one side is
told to the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import traitlets
from convgrad_live import Session

_numbers = itertools.count(1)
_shown: dict[str, AnyWidget] = {}


class AnyWidget(traitlets.HasTraits):
    """A widget whose traits with ``sync=True`` are the same here and in the page."""

    _esm: ClassVar[Any] = ""
    _css: ClassVar[Any] = ""
    _property_lock: ClassVar[dict[str, Any]] = {}  # what the page has said and need not be told
    _held: set[str] | None = None  # names that are told together

    def __init__(self, **kwargs: Any) -> None:
        names = set(self.trait_names())  # not a box's layout: here a widget has no box
        super().__init__(**{name: value for name, value in kwargs.items() if name in names})
        self.live_name = f"live{next(_numbers)}"
        self.observe(lambda change: self._tell(change.name), names=self.keys)

    @property
    def keys(self) -> list[str]:
        """The names of the traits that the page sees."""
        return sorted(self.traits(sync=True))

    def get_state(self, key: Any = None) -> dict[str, Any]:
        """The traits as they travel."""
        names = self.keys if key is None else [key] if isinstance(key, str) else list(key)
        return {name: self._json(name, getattr(self, name)) for name in names}

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what has changed in the page, all at once."""
        with self.hold_trait_notifications():
            for name in set(sync_data) & set(self.keys):
                read = self.trait_metadata(name, "from_json") or (lambda value, _: value)
                self.set_trait(name, read(sync_data[name], self))

    def send_state(self, key: Any = None) -> None:
        """Tell the page how the traits stand, if it shows this widget."""
        if self.live_name in _shown:
            values = self.get_state(key)
            Session.current.send({"kind": "state", "model": self.live_name, "values": values})

    @contextmanager
    def hold_sync(self) -> Iterator[None]:
        """What changes within is told together, at the end."""
        if self._held is not None:
            yield
            return
        self._held = set()
        try:
            yield
        finally:
            held, self._held = self._held, None
            if held:
                self.send_state(sorted(held))

    def live_show(self) -> dict[str, Any]:
        """What the page needs to draw this widget."""
        from convgrad.widgets.page import DEAD_WEIGHT, file_name

        cls = type(self)
        identity = f"{cls.__module__}.{cls.__qualname__}"
        files = {}
        for kind, source, suffix in (("module", cls._esm, ".js"), ("stylesheet", cls._css, ".css")):
            text = source.read_text("utf-8") if isinstance(source, Path) else source
            files[kind] = file_name(identity, text, suffix) if text.strip() else None
        _shown[self.live_name] = self
        kept = [name for name in self.keys if name not in DEAD_WEIGHT]
        return {"model": self.live_name, "state": self.get_state(kept), **files}

    def _json(self, name: str, value: Any) -> Any:
        write = self.trait_metadata(name, "to_json") or (lambda value, _: value)
        return write(value, self)

    def _tell(self, name: str) -> None:
        said = self._property_lock
        if name in said and said[name] == self.get_state(name)[name]:
            return
        if self._held is not None:
            self._held.add(name)
        else:
            self.send_state(name)


def live_update(model: str, values: dict[str, Any]) -> None:
    """The reader has changed something in the page."""
    widget = _shown.get(model)
    if widget is None:
        return
    widget._property_lock = values
    try:
        widget.set_state(values)
    finally:
        widget._property_lock = {}
