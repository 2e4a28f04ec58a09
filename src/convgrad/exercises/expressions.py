"""Formulas that somebody typed: read without running anything, and computed exactly.

A formula is arithmetic on letters and whole numbers, with ``floor``, ``ceil``, ``min``, ``max`` and
``abs``.  It is read into a tree by Python's own parser; only the nodes named here are computed,
one by one, as fractions.  Nothing is ever evaluated as Python.

>>> compute(parse("(H - KH) // stride + 1", ["H", "KH", "stride"]), {"H": 7, "KH": 3, "stride": 2})
Fraction(3, 1)
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import Any

__all__ = ["NoValue", "NotAFormula", "compute", "parse"]


class NotAFormula(ValueError):
    """What was typed is no formula in these letters; the message says why, to the reader."""


class NoValue(ArithmeticError):
    """A formula has no value for some numbers; the message says why."""


_LONGEST, _DEEPEST, _LARGEST, _HIGHEST = 300, 60, 10**30, 6
# as people write, and as Python does
_SIGNS = {"·": "*", "×": "*", "⋅": "*", "−": "-", "–": "-", "÷": "/", "^": "**", "²": "**2"}

_BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_CALLS: dict[str, Callable[..., Any]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "abs": abs,
}


def parse(text: str, letters: Collection[str]) -> ast.expr:
    """The tree of a formula in these letters; raises :class:`NotAFormula`."""
    typed = text.strip().strip("$")
    if len(typed) > _LONGEST:
        raise NotAFormula(f"That is {len(typed)} signs long. A formula here fits on one line.")
    for sign, plain in _SIGNS.items():
        typed = typed.replace(sign, plain)
    name, equals, rest = typed.partition("=")
    if equals and name.strip().isidentifier() and "=" not in rest:
        typed = rest  # OH = …
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 2if and the like
            tree = ast.parse(typed.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise NotAFormula(
            "That cannot be read as a formula. Write a sign between any two things, as in "
            "`2*padding`, and close every bracket."
        ) from None
    _require(tree, letters, _DEEPEST)
    return tree


def _require(node: ast.AST, letters: Collection[str], depth: int) -> None:
    """Raise unless everything in the tree is arithmetic on these letters."""
    if not depth:
        raise NotAFormula("That is nested too deep: write it with fewer brackets.")
    match node:
        case ast.BinOp(op=ast.Pow(), left=below, right=ast.Constant(value=int(power))):
            if not 0 <= power <= _HIGHEST:
                raise NotAFormula(f"Powers go up to {_HIGHEST} here.")
            parts: list[ast.expr] = [below]
        case ast.BinOp(op=op, left=one, right=other) if type(op) in _BINARY:
            parts = [one, other]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            parts = [operand]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
            name in _CALLS
            and (len(arguments) == 1 if name not in ("min", "max") else len(arguments) > 1)
            and not any(isinstance(each, ast.Starred) for each in arguments)
        ):
            parts = list(arguments)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if not abs(number) < _LARGEST:
                raise NotAFormula("A number in it is too large.")
            return
        case ast.Name(id=name):
            if name not in letters:
                raise NotAFormula(_of_letter(name, letters))
            return
        case ast.Call(func=ast.Name(id=name)) if name in letters:
            raise NotAFormula(f"Write the sign behind `{name}`: `{name}*(…)`.")
        case ast.Call(func=ast.Constant()):
            raise NotAFormula("Write the sign between a number and a bracket: `2*(…)`.")
        case _:
            raise NotAFormula(
                "Only letters, numbers, brackets and + − * / // % are read here, besides "
                f"{', '.join(_CALLS)}."
            )
    for part in parts:
        _require(part, letters, depth - 1)


def _of_letter(name: str, letters: Collection[str]) -> str:
    listed = ", ".join(f"`{letter}`" for letter in letters)
    said = name.replace("`", "'")[:40]
    alike = [letter for letter in letters if letter.lower() == name.lower()]
    if alike:
        return f"`{said}` is written `{alike[0]}` here."
    return f"`{said}` is not among the letters of this formula: {listed}."


def compute(tree: ast.expr, values: Mapping[str, int]) -> Fraction:
    """The value of a formula that :func:`parse` has read; raises :class:`NoValue`."""
    try:
        value = _value(tree, values)
    except ZeroDivisionError:
        raise NoValue("divides by 0") from None
    return value


def _value(node: ast.expr, values: Mapping[str, int]) -> Fraction:
    match node:
        case ast.BinOp(op=ast.Pow(), left=below, right=ast.Constant(value=int(power))):
            value = _value(below, values) ** power
        case ast.BinOp(op=op, left=one, right=other):
            value = Fraction(_BINARY[type(op)](_value(one, values), _value(other, values)))
        case ast.UnaryOp(op=op, operand=operand):
            inner = _value(operand, values)
            value = -inner if isinstance(op, ast.USub) else inner
        case ast.Call(func=ast.Name(id=name), args=arguments):
            value = Fraction(_CALLS[name](*(_value(each, values) for each in arguments)))
        case ast.Constant(value=number):
            value = Fraction(str(number))
        case ast.Name(id=name):
            value = Fraction(values[name])
        case _:  # _require has seen to it
            raise AssertionError(ast.dump(node))
    if abs(value) > _LARGEST:
        raise NoValue("becomes too large")
    return value
