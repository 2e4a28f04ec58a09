"""How to see the same without this command: source text that runs, and commands to go on with."""

from __future__ import annotations

from dataclasses import fields

from ..geometry import ConvGeometry
from .subject import Subject
from .trials import Trial

__all__ = ["ledger_command", "snippet", "spelled"]


def spelled(geometry: ConvGeometry) -> str:
    """The geometry as source text, defaults left out."""
    words = [
        f"{field.name}={getattr(geometry, field.name)!r}"
        for field in fields(geometry)
        if getattr(geometry, field.name) != field.default
    ]
    return f"ConvGeometry({', '.join(words)})"


def snippet(subject: Subject, target: str, trial: Trial) -> str:
    """A program that makes the call and prints both answers."""
    right = {
        "weight": "loops.grad_weight(grad_output, x, geometry)",
        "input": "loops.grad_input(grad_output, weight, geometry)",
        "bias": "loops.grad_bias(grad_output, geometry)",
        "output": "loops.forward(x, weight, geometry)",
    }[target]
    call = subject.convention.spelled(subject.loaded.call, trial.geometry)
    lines = [
        subject.loaded.imports,
        "import numpy as np",
        "from convgrad import ConvGeometry, loops",
        "from convgrad.checks import random_operands",
        "",
        f"geometry = {spelled(trial.geometry)}",
        f"draw = random_operands(geometry, np.random.default_rng({trial.seed}))",
        "geometry, x, weight, grad_output = draw",
    ]
    if trial.dtype != "float64":
        lines.append(f"x, weight, grad_output = (a.astype({trial.dtype!r}) for a in draw[1:])")
    if trial.form != "whole":
        changed, why = {
            "quarters": ("a / 4", "it shows with fractions"),
            "fortran": (
                "np.asfortranarray(a)",
                "it shows where arrays are not in C order in memory",
            ),
        }[trial.form]
        lines.append(f"# {why}")
        lines.append(f"x, weight, grad_output = ({changed} for a in (x, weight, grad_output))")
    lines.append(f"right = {right}")
    if subject.convention.tensors == "torch":
        lines.insert(1, "import torch")
        lines.append("x, weight, grad_output = map(torch.from_numpy, (x, weight, grad_output))")
    lines += [f"yours = {call}{subject.suffix[target]}", 'print(yours, right, sep="\\n\\n")']
    return "\n".join(lines)


def ledger_command(target: str, trial: Trial, cell: tuple[int, ...]) -> str:
    """The command that lists the products of one cell."""
    geometry = trial.geometry
    words = [f"convgrad ledger --target {target}"]
    words.append(f"--x {_commas(geometry.x_shape)} --weight {_commas(geometry.weight_shape)}")
    for name in ("stride", "dilation"):
        pair = getattr(geometry, name)
        if pair != (1, 1):
            words.append(f"--{name} {_commas(pair)}")
    if geometry.padding != ((0, 0), (0, 0)):
        words.append(f"--padding {_commas(sum(geometry.padding, ()))}")
        if geometry.padding_mode != "zeros":
            words.append(f"--padding-mode {geometry.padding_mode}")
    if geometry.groups != 1:
        words.append(f"--groups {geometry.groups}")
    words.append(f"--seed {trial.seed} --cell {_commas(cell)}")
    return " ".join(words)


def _commas(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
