"""Hypotheses about a wrong grad_input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..geometry import ConvGeometry, GeometryError
from .hypotheses import (
    MOST_TRIED,
    Case,
    Hypothesis,
    group_rule,
    output_padding,
    unconjugated,
)
from .sums import WHERE_A_TAP_READS, Sums, fold, in_memory_order, memory_words, of_upstream

__all__ = ["of_input"]


def of_input(array: np.ndarray, case: Case, sums: Sums) -> Iterator[Hypothesis]:
    geometry, name = sums.geometry, case.name
    w = sums.weight
    yield Hypothesis(
        "kernel_flipped",
        f"Your {name} is what the kernel turned by 180° gives. Two pictures are right: spread "
        "the kernel as it is around each cell (scatter), or slide the turned kernel over "
        "grad_output (gather). You mixed them: turn the kernel once more, or once less.",
        sums.grad_input(weight=w[..., ::-1, ::-1]),
    )
    for cause, words, g in of_upstream(sums, case):
        yield Hypothesis(cause, words, sums.grad_input(g))
    if np.iscomplexobj(w):
        yield unconjugated(name, "the weight", "w", sums.grad_input(weight=w.conj()))
    if geometry.KH == geometry.KW:
        yield Hypothesis(
            "kernel_transposed",
            f"Your {name} is what the kernel with rows and columns exchanged gives: exchange "
            "kernels and channels, w[o, c] for w[c, o], but leave i and j in place.",
            sums.grad_input(weight=w.swapaxes(2, 3)),
        )
    memory = in_memory_order(case.operands.weight)
    if memory is not None:
        yield Hypothesis(
            "memory_layout",
            memory_words(name, "the weight"),
            sums.grad_input(weight=np.conj(memory)),
        )
    yield from _overlap_of_input(sums, name)
    yield from _kernels_of_input(sums, name)
    yield from _groups_of_input(sums, case)
    yield from _steps_of_input(sums, name)
    yield from _cut_of_input(array, sums, name)
    yield from _stale_of_input(array, case, sums)


def _overlap_of_input(sums: Sums, name: str) -> Iterator[Hypothesis]:
    """What is left when a cell keeps one product only, or is divided by their number."""
    products, (rows, cols) = sums.products(), sums.map()
    height, width = sums.geometry.padded_size
    last = f"Your {name} lost products where windows overlap: of all that meet in a cell only "
    advice = ". Add with += tap by tap; grad[rows, cols] += … keeps one where indices repeat "
    advice += "(np.add.at keeps all)."
    for later, which in ((True, "the one of the last tap was kept"), (False, "one was kept")):
        (p, i, reads_h), (q, j, reads_v) = (
            _one_reader(index, size, later) for index, size in ((rows, height), (cols, width))
        )
        kept = products[:, :, p[:, None], q, i[:, None], j]  # n c h v, in the padded map
        kept = np.where(reads_h[:, None] & reads_v, kept, 0)
        yield Hypothesis("overlap_lost", last + which + advice, sums.fold(kept))
    ones = np.ones((1, 1, *products.shape[2:]))
    uses = np.maximum(sums.scatter(ones, rows, cols), 1)
    averaged = (
        f"Your {name} is the right one divided by how often each cell is read: a cell that is "
        "read by nine windows acts on the loss nine times, so its gradient is the sum. Fold is "
        "the adjoint of unfold, not its inverse."
    )
    total = sums.scatter(products, rows, cols)
    yield Hypothesis("averaged", averaged, sums.fold(total / uses))
    yield Hypothesis(
        "averaged",
        averaged,
        sums.fold(total) / np.maximum(sums.fold(sums.scatter(ones, rows, cols)), 1),
    )


def _one_reader(
    index: np.ndarray, size: int, later: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each cell of an axis: the output and tap that read it last (or first), and if any do.

    ``index (outputs, taps)`` is the cell each reads.  The last tap is the first output, because
    both lead to the same cell.
    """
    output, tap = np.zeros(size, int), np.zeros(size, int)
    found = np.zeros(size, bool)
    taps = range(index.shape[1])
    for t in taps if later else reversed(taps):
        for p, cell in enumerate(index[:, t]):
            if 0 <= cell < size:
                output[cell], tap[cell], found[cell] = p, t, True
    return output, tap, found


def _kernels_of_input(sums: Sums, name: str) -> Iterator[Hypothesis]:
    geometry = sums.geometry
    if geometry.OG == 1:
        return
    kernel = np.arange(geometry.O)
    for m in (0, geometry.OG - 1):
        which = "first" if m == 0 else "last"
        only = (kernel % geometry.OG == m)[:, None, None]
        yield Hypothesis(
            "one_kernel",
            f"Your {name} is the share of the {which} kernel"
            f"{' of each group' if geometry.groups > 1 else ''} alone: every kernel sends its own "
            "share back, and they add up. Write +=, not =, in the loop over o.",
            sums.grad_input(np.where(only, sums.grad_output, 0)),
        )
    for o in (kernel if geometry.groups > 1 else kernel[1:-1])[:MOST_TRIED]:
        only = (kernel == o)[:, None, None]
        yield Hypothesis(
            "one_kernel",
            f"Your {name} is the share of kernel {o} alone: every kernel sends its own share "
            "back, and they add up. Sum over o.",
            sums.grad_input(np.where(only, sums.grad_output, 0)),
        )


def _groups_of_input(sums: Sums, case: Case) -> Iterator[Hypothesis]:
    geometry, name = sums.geometry, case.name
    G, C, CG, OG = geometry.groups, geometry.C, geometry.CG, geometry.OG
    if G == 1:
        return
    rule = group_rule(geometry)
    # exchanging the axes first and splitting into groups afterwards scrambles the kernels
    w = sums.weight.swapaxes(0, 1).reshape(G, CG, OG, *sums.weight.shape[2:]).swapaxes(1, 2)
    yield Hypothesis(
        "wrong_group",
        f"Your {name} exchanges kernels and channels of the weight across all groups: split off "
        f"the group axis first, (G, O/G, C/G, …), exchange within it, then join; {rule}",
        sums.grad_input(weight=w.reshape(sums.weight.shape)),
    )
    dealt = np.arange(C).reshape(CG, G).T.ravel()
    for order in (dealt, np.argsort(dealt)):
        yield Hypothesis(
            "wrong_group",
            f"Your {name} has its channels dealt to the groups like cards: a group is a block of "
            f"neighbours; {rule}",
            case.expected[:, order],
        )
    order = np.arange(geometry.O).reshape(OG, G).T.ravel()
    yield Hypothesis(
        "wrong_group",
        f"Your {name} takes group o mod {G} for kernel o: {rule}",
        sums.grad_input(sums.grad_output[:, order], sums.weight[order]),
    )


def _steps_of_input(sums: Sums, name: str) -> Iterator[Hypothesis]:
    geometry = sums.geometry
    products = sums.products()
    for cause, words, rows, cols in sums.steps():
        words = words or "with stride and dilation exchanged"
        sentence = (
            f"Your {name} adds its products w·g to the cells {words}. {WHERE_A_TAP_READS}, and "
            "that is the cell its product belongs to."
        )
        whole = sums.scatter(products, *sums.map(rows, cols))
        yield Hypothesis(cause, sentence, sums.fold(whole))
        if cause == "dilation_ignored":
            narrow = _narrow(geometry)
            if narrow is not None:
                smaller = sums.scatter(products, *sums.map(rows, cols), narrow.padded_size)
                yield Hypothesis(
                    cause,
                    f"{sentence} Its size {narrow.H}×{narrow.W} comes from the same mistake; "
                    f"needed is {geometry.H}×{geometry.W}.",
                    fold(smaller, narrow),
                )


def _narrow(geometry: ConvGeometry) -> ConvGeometry | None:
    """The image that the same output would come from if the dilation were 1, if there is one."""
    (dh, dw) = geometry.dilation
    height = geometry.H - (dh - 1) * (geometry.KH - 1)
    width = geometry.W - (dw - 1) * (geometry.KW - 1)
    try:
        return replace(geometry, H=height, W=width, dilation=(1, 1))
    except GeometryError:
        return None


def _cut_of_input(array: np.ndarray, sums: Sums, name: str) -> Iterator[Hypothesis]:
    """The right gradient of the padded input, but not the right part of it."""
    geometry = sums.geometry
    padded = sums.scatter(sums.products(), *sums.map())
    first = f"The image begins at row {sums.top}, column {sums.left}; cut it out"
    if geometry.padding_mode != "zeros":
        first += ", after adding the border to the cells it copies"
    yield Hypothesis(
        "missing_crop",
        f"Your {name} still has the border on, {padded.shape[2]}×{padded.shape[3]}. {first}.",
        padded,
    )
    (top, bottom), (left, right) = geometry.padding
    if (top, left) != (bottom, right):
        other = replace(geometry, padding=((bottom, top), (right, left)))
        yield Hypothesis(
            "shifted",
            f"Your {name} takes the two sides of the padding for each other: {top} above and "
            f"{bottom} below, {left} to the left and {right} to the right. An uneven 'same' "
            "padding has its larger half below and to the right.",
            fold(padded, other),
        )
    if geometry.padding_mode != "zeros":
        yield Hypothesis(
            "border_lost",
            f"Your {name} lost what arrived on the border: with padding mode "
            f"{geometry.padding_mode!r} border cells are copies, and their gradient belongs to "
            "the cells they copy. Add it there.",
            sums.fold(padded, "zeros"),
        )
        yield Hypothesis(
            "padding_axes_swapped",
            f"Your {name} wraps the rows as far as the columns should be wrapped, and the other "
            "way round: padding is (rows, columns); some libraries list the last axis first.",
            sums.fold(_swapped_border(padded, geometry)),
        )
        return
    cut = slice(sums.top, sums.top + geometry.H)
    if padded[:, :, cut, cut].shape == array.shape:
        yield Hypothesis(
            "wrong_crop",
            f"Your {name} is cut out of the padded gradient with the rows' numbers on both axes: "
            f"columns begin at {sums.left} and there are {geometry.W} of them.",
            padded[:, :, cut, cut],
        )
    if array.ndim != 4 or array.shape[:2] != padded.shape[:2] or not array.size:
        return
    ah, aw = array.shape[2:]
    for top, left in _places(array, padded):
        whole = (ah, aw) == (geometry.H, geometry.W)
        words = (
            f"Your {name} is the right gradient of the padded input, cut out at row {top}, "
            f"column {left}"
            + ("" if whole else f" in the size {ah}×{aw}")
            + f": the image begins at row {sums.top}, column {sums.left} and has "
            f"{geometry.H}×{geometry.W} cells."
        )
        if (top, left) == (sums.top, sums.left) and _lacks_the_leftover((ah, aw), geometry):
            words += f" A transposed convolution gets that size from {output_padding(geometry)}."
        yield Hypothesis(
            "shifted" if whole else "wrong_crop",
            words,
            padded[:, :, top : top + ah, left : left + aw],
        )


def _lacks_the_leftover(size: tuple[int, int], geometry: ConvGeometry) -> bool:
    """Whether rows or columns are missing, and no more than the windows left over."""
    missing = geometry.H - size[0], geometry.W - size[1]
    few = all(0 <= m <= left for m, left in zip(missing, geometry.leftover, strict=True))
    return few and any(missing)


def _places(array: np.ndarray, padded: np.ndarray) -> list[tuple[int, int]]:
    """Where in ``padded`` the array may have been cut out: its largest number stands there."""
    n, c, row, col = np.unravel_index(np.argmax(np.abs(array)), array.shape)
    rows, cols = np.subtract(padded.shape[2:], array.shape[2:]) + 1
    if min(rows, cols) < 1:
        return []
    there = padded[n, c, row : row + rows, col : col + cols]
    # a first look only, as coarse as float16; the comparison proper comes later
    fitting = np.isclose(there, array[n, c, row, col], rtol=0.05)
    return [(int(top), int(left)) for top, left in np.argwhere(fitting)[:MOST_TRIED]]


def _swapped_border(padded: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """Only those border lines stay that the other axis' padding would reach."""
    rows, cols = geometry.padding
    kept = padded.copy()
    for axis, size, own, other in ((2, geometry.H, rows, cols), (3, geometry.W, cols, rows)):
        line = np.arange(padded.shape[axis]) - own[0]
        lost = (line < -other[0]) | (line >= size + other[1])
        np.moveaxis(kept, axis, 0)[lost] = 0
    return kept


def _stale_of_input(array: np.ndarray, case: Case, sums: Sums) -> Iterator[Hypothesis]:
    operands = (sums.weight, sums.grad_output)
    if array.shape != case.expected.shape or not all(np.isfinite(a).all() for a in operands):
        return
    ones = np.ones((1, 1, *sums.products().shape[2:]))
    unread = np.broadcast_to(sums.fold(sums.scatter(ones, *sums.map())) == 0, array.shape)
    yield Hypothesis(
        "stale_cells",
        f"Your {case.name} is right wherever a window reads, but cells that no window reads hold "
        "something else: nothing is ever added there, so they keep what the buffer held. Start "
        "from np.zeros, not np.empty.",
        np.where(unread, array, case.expected),
    )
