"""``convgrad ledger``: every product of a gradient as a table, with running sums."""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..checks import Draw, random_operands
from ..examples import EXAMPLES, example
from ..geometry import PADDING_MODES, ConvGeometry
from ..ledger import ORDERS, TARGETS, Contribution, contributions, product
from ..tables import count, multiplicity, per_tap
from . import files
from .words import RIGHT, Misuse, plural, whole_numbers

__all__ = ["HELP", "add_to", "run"]

HELP = "print the products of a gradient, where each lands, and the running sums"

_DESCRIPTION = """\
Prints every product of a gradient in the order in which it is added: which numbers meet, in which
cell they land, and the sum in that cell so far. The convolution is a running example of the book
(A to F), sizes with random whole numbers, or the arrays of a file.
"""
_EXAMPLES = """\
examples:
  convgrad ledger --example B                             the weight gradient, tap by tap
  convgrad ledger --example B --target input --order position --limit 20
  convgrad ledger --example D --cell 0,0,2,1              only what lands in grad_weight[0, 0, 2, 1]
  convgrad ledger --example C --summary                   how many products, by tap and by cell
  convgrad ledger --x 1,1,5,5 --weight 1,1,3,3 --stride 2 --seed 7
  convgrad ledger saved.npz --cell 0,0,0,0 --format csv   x, weight and grad_output of a file
"""
# A map wider or higher than this is told by its range.
_MAP = 24
# A table longer than this is not read; csv and json are, by programs.
_ROWS = 50
# Looking for one cell goes through all products; more than this takes minutes.
_MOST = 20_000_000


class Row(NamedTuple):
    """One product and the sum of its cell after it."""

    step: int
    each: Contribution
    factor: Any  # the number that meets g; None for the bias gradient
    g: Any
    product: Any
    total: Any


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "ledger",
        help=HELP,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", metavar="FILE.npz", help="take the arrays from here")
    parser.add_argument("--example", type=str.upper, choices=sorted(EXAMPLES), help="of the book")
    parser.add_argument("--target", choices=TARGETS, default="weight", help="(default weight)")
    parser.add_argument("--order", choices=sorted(ORDERS), default="tap", help="(default tap)")
    parser.add_argument(
        "--limit", type=int, help=f"rows to print; 0 for all (default {_ROWS} in a table)"
    )
    parser.add_argument(
        "--cell", type=_numbers, metavar="O,C,I,J", help="only this cell's products"
    )
    parser.add_argument(
        "--padding-products", action="store_true", help="also the products with zero padding"
    )
    parser.add_argument(
        "--summary", action="store_true", help="only how many: in all, by tap, by cell of x"
    )
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    sizes = parser.add_argument_group("sizes, with random whole numbers")
    sizes.add_argument("--x", type=_numbers, metavar="N,C,H,W", help="shape of x")
    sizes.add_argument("--weight", type=_numbers, metavar="O,C/G,KH,KW", help="shape of weight")
    sizes.add_argument("--stride", type=_numbers, default=(1,), metavar="S")
    sizes.add_argument(
        "--padding",
        default="0",
        metavar="P",
        help="one number, two, four (top, bottom, left, right), same or valid",
    )
    sizes.add_argument("--dilation", type=_numbers, default=(1,), metavar="D")
    sizes.add_argument("--groups", type=int, default=1)
    sizes.add_argument("--padding-mode", choices=PADDING_MODES, default="zeros")
    sizes.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    parser.set_defaults(run=run)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return whole_numbers(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: needed are whole numbers with commas between them, such as 1,2,3"
        ) from None


def run(options: argparse.Namespace) -> int:
    draw, title = _subject(options)
    if options.summary:
        if options.cell is not None or options.format != "table":
            raise Misuse("--summary counts all products, in a table: leave out --cell and --format")
        return _summary(draw.geometry, title)
    cell = _checked_cell(options, draw.geometry)
    limit = options.limit
    if limit is None:
        limit = _ROWS if options.format == "table" else 0
    if limit < 0:
        raise Misuse("--limit must be 0, for all, or more")
    rows = _rows(draw, options, cell)
    {"table": _table, "csv": _csv, "json": _json}[options.format](rows, limit, draw, options, title)
    return RIGHT


def _subject(options: argparse.Namespace) -> tuple[Draw, str]:
    """The operands, and what they are in words."""
    by_size = options.x is not None or options.weight is not None
    if (options.file is not None) + (options.example is not None) + by_size != 1:
        raise Misuse(
            "say which convolution, in one way: --example B, or --x 1,1,5,5 --weight 1,1,3,3, or "
            "a file of arrays"
        )
    if options.example:
        one = example(options.example)
        x, weight, _, grad_output = one.arrays()
        return Draw(one.geometry, x, weight, grad_output), f"Example {one.letter}, {one.title}: "
    if options.file:
        arrays = files.read(options.file)
        geometry = files.geometry_of(arrays, options.file)
        if "grad_output" not in arrays:
            raise Misuse(f"{options.file} has no array grad_output, which every product holds")
        operands = files.operands_of(arrays)
        operands.pop("bias", None)  # no product holds it
        four = {name: a[None] if a.ndim == 3 else a for name, a in operands.items()}
        geometry.require(**four)
        return Draw(geometry, **four), f"{options.file}: "
    if options.x is None or options.weight is None:
        raise Misuse("--x and --weight go together: --x 1,1,5,5 --weight 1,1,3,3")
    geometry = ConvGeometry.of(
        options.x,
        options.weight,
        _one_or_two(options.stride),
        _padding(options.padding),
        _one_or_two(options.dilation),
        options.groups,
        options.padding_mode,
    )
    if options.seed < 0:
        raise Misuse("--seed must be at least 0")
    if max(map(math.prod, (geometry.x_shape, geometry.output_shape))) > _MOST:
        raise Misuse(f"{geometry.describe()}: too large to be read as a list; use smaller sizes")
    rng = np.random.default_rng(options.seed)
    return random_operands(geometry, rng), f"Random whole numbers, seed {options.seed}: "


def _one_or_two(numbers: tuple[int, ...]) -> Any:
    return numbers[0] if len(numbers) == 1 else numbers


def _padding(text: str) -> Any:
    if text in ("same", "valid"):
        return text
    try:
        numbers = whole_numbers(text)
    except ValueError:
        raise Misuse(
            f"--padding {text}: needed is one number, two, four (top, bottom, left, right), "
            "same or valid"
        ) from None
    return (numbers[:2], numbers[2:]) if len(numbers) == 4 else _one_or_two(numbers)


def _checked_cell(options: argparse.Namespace, geometry: ConvGeometry) -> tuple[int, ...] | None:
    if options.cell is None:
        return None
    shape = _shape(options.target, geometry)
    inside = len(options.cell) == len(shape) and all(
        0 <= k < size for k, size in zip(options.cell, shape, strict=True)
    )
    if not inside:
        raise Misuse(
            f"--cell {','.join(map(str, options.cell))}: grad_{options.target} has the shape "
            f"{shape}, so needed are {plural(len(shape), 'index', 'indices')}, each from 0 to its "
            "size − 1"
        )
    taps = geometry.CG * geometry.KH * geometry.KW
    if math.prod(geometry.output_shape) * taps > _MOST:
        raise Misuse(
            f"this convolution has {math.prod(geometry.output_shape) * taps} products, too many "
            "to look for one cell's among them; use a smaller one"
        )
    return tuple(options.cell)


def _shape(target: str, geometry: ConvGeometry) -> tuple[int, ...]:
    shapes: dict[str, tuple[int, ...]] = {
        "weight": geometry.weight_shape,
        "input": geometry.x_shape,
        "bias": geometry.bias_shape,
    }
    return shapes[target]


def _rows(draw: Draw, options: argparse.Namespace, cell: tuple[int, ...] | None) -> Iterator[Row]:
    target = options.target
    operands = draw._asdict()
    geometry = operands.pop("geometry")
    sums: dict[tuple[int, ...], Any] = {}
    step = 0
    for each in contributions(geometry, target, options.order, options.padding_products):
        if cell is not None and each.target != cell:
            continue
        step += 1
        value = product(each, target, **operands)
        if each.target is not None:
            sums[each.target] = sums.get(each.target, 0) + value
        total = None if each.target is None else sums[each.target]
        g = draw.grad_output[each.n, each.o, each.p, each.q]
        yield Row(step, each, _factor(each, target, draw), g, value, total)


def _factor(each: Contribution, target: str, draw: Draw) -> Any:
    """The number that meets g."""
    if target == "bias":
        return None
    if target == "input":
        return draw.weight[each.o, each.c, each.i, each.j]
    return 0.0 if each.cell is None else draw.x[each.n, each.channel, *each.cell]


# ---- what is printed -------------------------------------------------------------------------


def _table(
    rows: Iterator[Row], limit: int, draw: Draw, options: argparse.Namespace, title: str
) -> None:
    print(f"{title}{draw.geometry.describe()}.")
    gradient = f"grad_{options.target}"
    shown = list(itertools.islice(rows, limit or None))
    lines = [("step", "lands in", "product", "adds", "sum there")]
    lines += [_line(row, options.target) for row in shown]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for step, lands, spelled, adds, total in lines:
        print(
            f"{step:>{widths[0]}}  {lands:<{widths[1]}}  {spelled:<{widths[2]}}  "
            f"{adds:>{widths[3]}}  {total:>{widths[4]}}".rstrip()
        )
    if next(rows, None) is not None:
        print(f"… and more: --limit 0 prints all, --cell one cell of {gradient} alone.")
    elif options.cell is not None:
        value = _text(shown[-1].total if shown else 0)
        where = ", ".join(map(str, options.cell))
        print(f"{plural(len(shown), 'product')} in {gradient}[{where}] = {value}.")
    else:
        print(f"{plural(len(shown), 'product')} in all.")


def _summary(geometry: ConvGeometry, title: str) -> int:
    on_image, every = count(geometry), count(geometry, include_padding=True)
    print(f"{title}{geometry.describe()}.")
    print(f"{plural(on_image, 'product')} in grad_weight, as many in grad_input", end="")
    print(f"; {every - on_image} more fall on zero padding." if every > on_image else ".")
    print(f"{plural(count(geometry, 'bias'), 'number')} of g in grad_bias.\n")
    print("Products in each tap of the kernel (the same for every o and c):")
    _map(per_tap(geometry))
    print("\nHow often each cell of x is read (by each kernel that reads its channel):")
    _map(multiplicity(geometry))
    return RIGHT


def _map(numbers: np.ndarray) -> None:
    if max(numbers.shape) > _MAP:
        height, width = numbers.shape
        print(
            f"  {height}×{width} numbers, {numbers.min()} to {numbers.max()}, "
            f"{numbers.mean():.3g} on average"
        )
        return
    digits = len(str(numbers.max()))
    for row in numbers:
        print("  " + "  ".join(f"{number:>{digits}}" for number in row))


def _line(row: Row, target: str) -> tuple[str, str, str, str, str]:
    each = row.each
    g = f"g[{each.n},{each.o},{each.p},{each.q}]"
    if target == "bias":
        spelled = g
    else:
        factor = f"w[{each.o},{each.c},{each.i},{each.j}]"
        if target == "weight":
            factor = f"x[{each.n},{each.channel},{each.h},{each.v}]"
        spelled = f"{factor}·{g} = {_text(row.factor)}·{_bracketed(row.g)}"
    lands = "nowhere, on padding"
    if each.target is not None:
        lands = f"grad_{target}[{','.join(map(str, each.target))}]"
    return str(row.step), lands, spelled, _text(row.product), _text(row.total)


def _text(number: Any) -> str:
    return "" if number is None else f"{number + 0:g}"  # + 0: no −0


def _bracketed(number: Any) -> str:
    """A factor, so that no sign stands beside the dot."""
    text = _text(number)
    return f"({text})" if text.startswith("-") else text


def _record(row: Row, target: str) -> dict[str, Any]:
    """The row as plain values, for programs."""
    each = row.each
    names = ("n", "o", "c", "p", "q", "i", "j", "h", "v", "channel")
    record: dict[str, Any] = {"step": row.step}
    record["cell"] = None if each.target is None else list(each.target)
    record |= {name: getattr(each, name) for name in names}
    factor = {"weight": "x", "input": "w", "bias": None}[target]
    if factor is not None:
        record[factor] = _plain(row.factor)
    record["g"] = _plain(row.g)
    return record | {"product": _plain(row.product), "sum": _plain(row.total)}


def _plain(number: Any) -> Any:
    number = number.item() if isinstance(number, np.generic) else number
    return str(number) if isinstance(number, complex) else number


def _csv(
    rows: Iterator[Row], limit: int, draw: Draw, options: argparse.Namespace, title: str
) -> None:
    writer = None
    for row in itertools.islice(rows, limit or None):
        record = _record(row, options.target)
        record["cell"] = " ".join(map(str, record["cell"] or ()))
        if writer is None:
            writer = csv.DictWriter(sys.stdout, record, lineterminator="\n")
            writer.writeheader()
        writer.writerow(record)


def _json(
    rows: Iterator[Row], limit: int, draw: Draw, options: argparse.Namespace, title: str
) -> None:
    """One object, a product a line."""
    head = {
        "geometry": draw.geometry.as_dict(),
        "target": options.target,
        "order": options.order,
    }
    print(json.dumps(head)[:-1] + ', "contributions": [')
    comma = ""
    for row in itertools.islice(rows, limit or None):
        print(f"{comma}{json.dumps(_record(row, options.target))}", end="")
        comma = ",\n"
    print("\n]}")
