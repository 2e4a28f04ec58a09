"""Where the kernels run: on a GPU, or without one in Triton's interpreter on the CPU.

Triton decides when a kernel is decorated, so the modules with kernels import this one first.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from ..extras import needs

WHO = "convgrad.kernels"
if sys.platform != "linux":
    WHO += f" (which Triton runs on Linux alone; this is {sys.platform})"

with needs("gpu", WHO):
    import torch

    if not torch.cuda.is_available() and not os.environ.get("TRITON_INTERPRET"):
        # from here on, also for kernels that somebody writes beside these
        os.environ["TRITON_INTERPRET"] = "1"
    import triton
    import triton.language as tl

__all__ = ["CARD", "INTERPRETED", "cdiv", "programs_at_once", "where"]


def _language(interpreted: bool) -> ModuleType:
    """``triton.language``, whose own functions were decorated in the same way as ours will be."""
    if interpreted and isinstance(tl.sum, triton.JITFunction):
        # somebody, torch.compile for one, imported it before the interpreter was on
        importlib.reload(tl.standard)
        return importlib.reload(tl)
    return tl


# What kernels read must be a constant of the compiler's.
INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))
CARD: bool = torch.cuda.is_available() and not INTERPRETED.value
_language(INTERPRETED.value)


def where() -> str:
    """The place in words; RuntimeError where there is none."""
    if CARD:
        return str(torch.cuda.get_device_name())
    if INTERPRETED.value:
        return "interpreter, on the CPU"
    raise RuntimeError(
        "there is no GPU, and TRITON_INTERPRET=0 keeps Triton's interpreter off: unset it before "
        "Python starts, and the kernels run on the CPU"
    )


def programs_at_once() -> int:
    """How many programs keep the device busy; in the interpreter, a few."""
    if not CARD:
        return 4  # so that there is something to see
    return 2 * int(torch.cuda.get_device_properties().multi_processor_count)


# Decorated, it is called by kernels, as they are compiled, as well as by Python.
@triton.constexpr_function
def cdiv(whole: Any, size: Any) -> Any:
    """How many blocks of ``size`` hold the ``whole``."""
    return (whole + size - 1) // size
