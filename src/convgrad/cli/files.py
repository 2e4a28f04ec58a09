"""``convgrad check FILE.npz``: gradients that somebody saved, beside their operands."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..api import conv2d, conv2d_backward
from ..checks import explain_difference
from ..checks.compare import same
from ..geometry import ConvGeometry
from ..operands import number_array
from .side_by_side import followed, tell_difference
from .words import RIGHT, WRONG, Misuse, Voice

__all__ = ["check", "geometry_of", "operands_of", "read"]

OPERANDS = ("x", "weight", "bias", "grad_output")
RESULTS = {"grad_input": "input", "grad_weight": "weight", "grad_bias": "bias", "y": "output"}
OPTIONS = ("stride", "padding", "dilation", "groups", "padding_mode")


def read(path: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name."""
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, Mapping):
                return {name: loaded[name] for name in loaded}
        raise Misuse(f"{path} holds one array without a name: save with np.savez(file, x=x, …)")
    except FileNotFoundError:
        raise Misuse(f"there is no file {path} in {Path.cwd()}") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as trouble:
        why = "objects are not read" if "pickle" in str(trouble) else str(trouble)
        raise Misuse(
            f"{path} is no file of arrays of numbers ({why}): save one with np.savez(file, x=x, …)"
        ) from None


def geometry_of(arrays: Mapping[str, np.ndarray], path: str) -> ConvGeometry:
    """The geometry that the arrays and options in the file describe."""
    for name in ("x", "weight"):
        if name not in arrays:
            raise Misuse(
                f"{path} has no array {name}: needed are x and weight, for gradients grad_output "
                "too, and what is to be checked (grad_input, grad_weight, grad_bias or y), each "
                "under its name, and stride, padding, dilation and groups where they are not the "
                "default: np.savez(file, x=x, weight=weight, grad_output=g, grad_weight=mine, "
                f"stride=2). It holds {', '.join(arrays) or 'nothing'}"
            )
    x = arrays["x"]
    shape = (1, *x.shape) if x.ndim == 3 else x.shape
    return ConvGeometry.of(shape, arrays["weight"].shape, **_options(arrays))


def _options(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    # tolist gives back the number, the text or the nested list that was saved
    return {name: arrays[name].tolist() for name in OPTIONS if name in arrays}


def check(path: str, target: str | None, voice: Voice) -> int:
    """Compares what the file holds with the definition.  Sizes that do not fit raise ValueError."""
    arrays = read(path)
    geometry = geometry_of(arrays, path)
    given = [name for name in RESULTS if name in arrays and target in (None, RESULTS[name])]
    if not given:
        wanted = ", ".join(RESULTS) if target is None else f"of target {target}"
        raise Misuse(f"{path} holds nothing to check: no array {wanted} among {', '.join(arrays)}")
    voice.say(f"Checking {path}: {geometry.describe()}.")
    unused = sorted(set(arrays) - {*OPERANDS, *RESULTS, *OPTIONS})
    if unused:
        voice.say(f"Not looked at: {', '.join(unused)}.")
    if "bias" not in arrays and "y" in given:
        voice.say("There is no bias in it, so y is compared with the output without bias.")
    # in double precision, so that the answer to compare with has no rounding of its own
    wide = {
        name: array.astype(np.result_type(array, np.float64))
        for name, array in operands_of(arrays).items()
    }
    try:
        right = _right_answers(wide, given, _options(arrays), path)
    except ValueError as trouble:
        raise Misuse(f"{trouble}{_not_saved(arrays)}") from None
    status = RIGHT
    for name in given:
        if not _judged(name, arrays[name], right[name], geometry, wide, path, voice):
            status = WRONG
    return status


def _not_saved(arrays: Mapping[str, np.ndarray]) -> str:
    """What a file lacks whose sizes do not fit, and how it gets in."""
    missing = [name for name in OPTIONS[:4] if name not in arrays]
    if not missing:
        return ""
    return (
        f". The file holds no {' and no '.join(missing)}, so the default is taken: options are "
        f"saved like arrays, np.savez(file, x=x, …, {missing[0]}=2)"
    )


def operands_of(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The operands among the arrays, as numbers."""
    try:
        return {name: number_array(name, arrays[name]) for name in OPERANDS if name in arrays}
    except TypeError as trouble:
        raise Misuse(str(trouble)) from None


def _right_answers(
    wide: Mapping[str, np.ndarray], given: list[str], options: Mapping[str, Any], path: str
) -> dict[str, np.ndarray]:
    right: dict[str, np.ndarray] = {}
    if "y" in given:
        right["y"] = conv2d(wide["x"], wide["weight"], wide.get("bias"), **options)
    if given != ["y"]:
        if "grad_output" not in wide:
            raise Misuse(f"{path} has no array grad_output, which every gradient is made from")
        gradients = conv2d_backward(wide["grad_output"], wide["x"], wide["weight"], **options)
        names = ("grad_input", "grad_weight", "grad_bias")
        right |= {n: g for n, g in zip(names, gradients, strict=True) if g is not None}
    return right


def _judged(
    name: str,
    yours: np.ndarray,
    right: np.ndarray,
    geometry: ConvGeometry,
    wide: Mapping[str, np.ndarray],
    path: str,
    voice: Voice,
) -> bool:
    if RESULTS[name] in ("input", "output") and right.ndim == 3:
        right = right[None]  # one image without its batch axis
        yours = yours[None] if yours.ndim == 3 else yours
    known = {key: _batched(wide[key]) for key in ("x", "weight", "grad_output") if key in wide}
    explanation = explain_difference(yours, right, geometry=geometry, target=RESULTS[name], **known)
    voice.say()
    if explanation.right:
        voice.say(f"{name}: right{_how_close(yours, right)}.")
        return True
    if name == "y" and "bias" not in wide and _one_number_a_kernel(yours, right):
        voice.say("y: right, up to a bias, which is not in the file.")
        return True
    command = ""
    if name != "y" and explanation.cell is not None:
        cell = ",".join(map(str, explanation.cell))
        command = f"convgrad ledger {path} --target {RESULTS[name]} --cell {cell}"
    sentence = explanation.sentence
    voice.insist(f"{name}: WRONG. {followed(sentence, command) if voice.quiet else sentence}")
    tell_difference(name, np.asarray(yours), right, explanation, voice)
    if command:
        voice.say()
        voice.say("The products of that cell, one by one:", indent=2)
        voice.show(command)
    return False


def _one_number_a_kernel(yours: np.ndarray, right: np.ndarray) -> bool:
    """Whether the difference is the same in all cells that share a kernel, as a bias is."""
    if yours.shape != right.shape or not right.size:
        return False
    bias = np.subtract(yours, right)[0, :, :1, :1]  # o 1 1
    return same(yours, right + bias)


def _batched(array: np.ndarray) -> np.ndarray:
    return array[None] if array.ndim == 3 else array


def _how_close(yours: np.ndarray, right: np.ndarray) -> str:
    """The largest difference, where there is one."""
    with np.errstate(all="ignore"):
        error = np.abs(np.subtract(yours, right, dtype=np.result_type(right, np.float64)))
        size = np.abs(right)
    finite = np.isfinite(error) & np.isfinite(size)
    worst, largest = error[finite].max(initial=0), size[finite].max(initial=0)
    return f" (to {worst / largest:.1e} of its largest number)" if worst and largest else ""
