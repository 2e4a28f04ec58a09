"""What all explorables share: where their files are, how arrays travel, the static fallback.

Arrays are NumPy arrays in Python and ``{"shape": [...], "data": [...]}`` on the wire: plain JSON
reads the same from a live kernel and from the state that is saved in a static page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"the widgets need {missing.name}, which is not installed: "
        "pip install 'convgrad[widgets]', or pip install anywidget ipywidgets",
        name=missing.name,
    ) from missing

from ..geometry import ConvGeometry, GeometryError, ShapeError

__all__ = [
    "Array",
    "Explorable",
    "Geometry",
    "Refused",
    "RefusedGeometry",
    "RefusedShape",
    "filler",
    "refit",
    "wire",
]

STATIC = Path(__file__).parent / "static"


class Refused(ValueError, traitlets.TraitError):
    """A value that a widget cannot take; being a TraitError, it undoes a whole update."""


class RefusedGeometry(GeometryError, traitlets.TraitError):
    """A GeometryError met while a widget was being changed."""


class RefusedShape(ShapeError, traitlets.TraitError):
    """A ShapeError met while a widget was being changed."""


@contextmanager
def as_trait_error() -> Iterator[None]:
    """Turn the package's errors into ones on which traitlets takes an update back."""
    try:
        yield
    except traitlets.TraitError:
        raise
    except GeometryError as error:
        raise RefusedGeometry(str(error)) from error
    except ShapeError as error:
        raise RefusedShape(str(error)) from error


class Geometry(traitlets.TraitType[ConvGeometry, Any]):
    """A trait that holds a :class:`ConvGeometry`; a dict of its numbers on the wire."""

    info_text = "a ConvGeometry or the dict of its as_dict()"

    def __init__(self, default: ConvGeometry) -> None:
        super().__init__(default)
        self.tag(
            sync=True, to_json=lambda value, _: value.as_dict(), from_json=lambda value, _: value
        )

    def validate(self, obj: Any, value: Any) -> ConvGeometry:
        if isinstance(value, ConvGeometry):
            return value
        if not isinstance(value, dict):
            self.error(obj, value)
        with as_trait_error():
            try:
                return ConvGeometry(**value)
            except TypeError as error:  # a key that is missing, or one too many
                raise GeometryError(
                    f"geometry has the keys {sorted(value)}: needed are those of "
                    f"ConvGeometry.as_dict(); {error}"
                ) from error


class Array(traitlets.TraitType[np.ndarray, Any]):
    """A trait that holds a float64 array; read-only, so that a change is seen.

    It has four axes where the default has four, and one (a bias) where that has one.
    """

    info_text = "an array of finite numbers"

    def __init__(self, default: Any) -> None:
        default = np.asarray(default, dtype=np.float64)
        self.axes = default.ndim
        super().__init__(default)
        self.tag(sync=True, to_json=wire, from_json=_array_from_json)

    def validate(self, obj: Any, value: Any) -> np.ndarray:
        try:
            array = np.array(value, dtype=np.float64)  # a copy: nobody else writes to it
        except (TypeError, ValueError) as error:
            raise RefusedShape(
                f"{self.name} is no array of numbers ({error}): needed is a rectangular one "
                f"with {self.axes} {'axes' if self.axes > 1 else 'axis'}"
            ) from error
        if array.ndim != self.axes:
            needed = (
                "needed are 4; for one small table use table[None, None]"
                if self.axes == 4
                else f"needed is {self.axes}, one number for each kernel"
            )
            raise RefusedShape(f"{self.name} has {array.ndim} axes, shape {array.shape}: {needed}")
        if not np.isfinite(array).all():
            raise Refused(f"{self.name} holds inf or nan: a widget draws finite numbers only")
        array.flags.writeable = False
        return array

    def set(self, obj: Any, value: Any) -> None:
        """Like every trait: equal values are no change (arrays need ``array_equal`` for that)."""
        new = self._validate(obj, value)
        old = obj._trait_values.get(self.name)
        if old is None or not np.array_equal(old, new):
            super().set(obj, new)


def wire(array: np.ndarray, widget: Any = None) -> dict[str, list]:
    """An array as it travels; whole numbers without a point, which is half the bytes."""
    data = [int(v) if v.is_integer() else v for v in array.ravel().tolist()]
    return {"shape": list(array.shape), "data": data}


def _array_from_json(message: Any, widget: Any) -> np.ndarray:
    try:
        return np.array(message["data"], dtype=np.float64).reshape(message["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedShape(
            f"an array came as {message!r:.80}: needed is {{shape, data}} that fit each other"
        ) from error


class Explorable(anywidget.AnyWidget):
    """The base of every widget: ``_bundle`` names its two files in ``static/``.

    ``fallback`` is a piece of HTML that says the same without JavaScript: the book puts it into
    the page, where it is read on paper and until (or in case) no script runs.
    ``complaint`` is a sentence about the last change that was refused.
    """

    _bundle: ClassVar[str]
    fallback = traitlets.Unicode("").tag(sync=True)
    complaint = traitlets.Unicode("").tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # only where _bundle is said: each instance gets a class of its own, with traits in it
        if "_bundle" in cls.__dict__:
            cls._esm = STATIC / f"{cls._bundle}.js"
            style = STATIC / f"{cls._bundle}.css"
            if style.exists():
                cls._css = style
        super().__init_subclass__(**kwargs)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take an update from the browser: as a whole, or not at all and with a sentence back."""
        try:
            super().set_state(sync_data)
        except (traitlets.TraitError, ValueError) as error:
            self.complaint = str(error)
            # the browser shows what it asked for: give it back what holds
            self.send_state([key for key in sync_data if key in self.keys])
        else:
            if "complaint" not in sync_data:
                self.complaint = ""


def filler(shape: Sequence[int]) -> np.ndarray:
    """Small integers for the cells of a new array, −3 … 3; the same as ``filler`` in conv.js."""
    indices = np.indices(shape)
    weights = np.array([5, 3, 2, 1])[: len(shape)].reshape(-1, *[1] * len(shape))
    return ((indices * weights).sum(axis=0) % 7 - 3).astype(np.float64)


def refit(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """``array`` in another shape: cells that exist in both keep their numbers."""
    new = filler(shape)
    kept = tuple(slice(min(a, b)) for a, b in zip(array.shape, shape, strict=True))
    new[kept] = array[kept]
    return new
