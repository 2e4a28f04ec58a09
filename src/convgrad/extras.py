"""What to install where a library is missing: one sentence, the same everywhere.

``import convgrad`` needs NumPy alone.  A part that needs more imports it in a block of
:func:`needs`, and whoever lacks a library reads the one command that brings it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["install", "needs"]


def install(extra: str) -> str:
    """The command that brings an extra of this package.

    >>> install("torch")
    'pip install "convgrad[torch]"'
    """
    return f'pip install "convgrad[{extra}]"'


@contextmanager
def needs(extra: str, who: str) -> Iterator[None]:
    """A block that imports for ``who`` what an extra brings.

    Raises ModuleNotFoundError, as an import does, with the library and the command.

    >>> with needs("gpu", "this example"):
    ...     import a_library_that_nobody_has
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: this example needs a_library_that_nobody_has, which is not installed: \
pip install "convgrad[gpu]"
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"{who} needs {missing.name}, which is not installed: {install(extra)}",
            name=missing.name,
        ) from missing
