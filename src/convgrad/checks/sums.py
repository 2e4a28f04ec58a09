"""The three sums with their index map in the open, for hypotheses to bend.

The rungs hide the index map behind a geometry that checks itself, as they should.  A mistake
is a map that no geometry would allow, so it needs sums that read wherever they are told to.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..geometry import ConvGeometry
from ..windows import split_groups
from .hypotheses import Case, Operands

__all__ = [
    "WHERE_A_TAP_READS",
    "Sums",
    "border_of_zeros",
    "fold",
    "in_memory_order",
    "memory_words",
    "of_upstream",
    "with_border",
]

# The index map in words, letters explained where they stand; a sentence without its full stop.
WHERE_A_TAP_READS = (
    "Row i of the kernel, for row p of the output, reads row stride·p + dilation·i − padding of x, "
    "and columns likewise"
)


class Sums(Operands):
    """The three sums with an index map that a hypothesis may bend, and their operands made wide.

    ``rows (OH, KH)`` and ``cols (OW, KW)`` say which row and column of a map each tap reads;
    what lies outside the map reads as zero and is lost on the way back.
    """

    def __init__(self, geometry: ConvGeometry, target: str, operands: Operands) -> None:
        wide = {name: _wide(array) for name, array in operands.given.items()}
        if target != "output":  # a gradient takes the conjugate of the other operand
            wide |= {name: np.conj(wide[name]) for name in ("x", "weight") if name in wide}
        super().__init__(**wide)
        self.geometry, self.target = geometry, target
        (self.top, _), (self.left, _) = geometry.padding

    def map(
        self,
        row_steps: tuple[int, int] | None = None,
        col_steps: tuple[int, int] | None = None,
        offset: tuple[int, int] = (0, 0),
        taps: tuple[int, int] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the padded map: (step per output, step per tap) and an offset."""
        g = self.geometry
        (sh, dh) = row_steps or (g.stride[0], g.dilation[0])
        (sw, dw) = col_steps or (g.stride[1], g.dilation[1])
        KH, KW = taps or (g.KH, g.KW)
        rows = sh * np.arange(g.OH)[:, None] + dh * np.arange(max(KH, 0)) + offset[0]
        cols = sw * np.arange(g.OW)[:, None] + dw * np.arange(max(KW, 0)) + offset[1]
        return rows, cols

    def padded(self, x: np.ndarray, mode: str | None = None) -> np.ndarray:
        """x with its border, as the geometry (or another mode) has it."""
        return with_border(x, self._in_mode(mode))

    def _in_mode(self, mode: str | None) -> ConvGeometry:
        return self.geometry if mode is None else replace(self.geometry, padding_mode=mode)

    def read(self, padded: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """n c p q i j; zero outside the map."""
        height, width = padded.shape[2:]
        in_rows, in_cols = (rows >= 0) & (rows < height), (cols >= 0) & (cols < width)
        h, v = np.where(in_rows, rows, 0), np.where(in_cols, cols, 0)
        seen = padded[:, :, h[:, None, :, None], v[None, :, None, :]]
        inside = in_rows[:, None, :, None] & in_cols[None, :, None, :]
        return np.where(inside, seen, seen.dtype.type(0))

    def grad_weight(
        self, grad_output: np.ndarray | None = None, seen: np.ndarray | None = None
    ) -> np.ndarray:
        grad = self._g_meets("kocij", grad_output, seen)
        return grad.reshape(self.geometry.O, *grad.shape[2:])

    def grad_weight_per_image(self) -> np.ndarray:
        """The shares that grad_weight adds up: n o c i j."""
        return self._g_meets("nkocij").reshape(self.geometry.N, *self.geometry.weight_shape)

    def _g_meets(
        self, result: str, grad_output: np.ndarray | None = None, seen: np.ndarray | None = None
    ) -> np.ndarray:
        """All products of grad_output and what the windows saw, summed up to ``result``."""
        g = self.grad_output if grad_output is None else grad_output
        seen = self.read(self.padded(self.x), *self.map()) if seen is None else seen
        return np.einsum(f"nkopq,nkcpqij->{result}", self._split(g, 1), self._split(seen, 1))

    def output(
        self, weight: np.ndarray | None = None, seen: np.ndarray | None = None
    ) -> np.ndarray:
        w = self.weight if weight is None else weight
        seen = self.read(self.padded(self.x), *self.map()) if seen is None else seen
        y = np.einsum("nkcpqij,kocij->nkopq", self._split(seen, 1), self._split(w, 0))
        return y.reshape(self.geometry.output_shape)

    def products(
        self, grad_output: np.ndarray | None = None, weight: np.ndarray | None = None
    ) -> np.ndarray:
        """Every w·g, summed over the kernels of a group: n c p q i j."""
        g = self.grad_output if grad_output is None else grad_output
        w = self.weight if weight is None else weight
        products = np.einsum("nkopq,kocij->nkcpqij", self._split(g, 1), self._split(w, 0))
        return products.reshape(self.geometry.N, self.geometry.C, *products.shape[3:])

    def _split(self, array: np.ndarray, axis: int) -> np.ndarray:
        return split_groups(array, axis, self.geometry)

    def scatter(
        self,
        products: np.ndarray,
        rows: np.ndarray,
        cols: np.ndarray,
        size: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Add products up in a map of ``size`` (the padded one); outside it they are lost."""
        height, width = size or self.geometry.padded_size
        grad = np.zeros((*products.shape[:2], height, width), products.dtype)
        p, q, i, j = np.indices(products.shape[2:]).reshape(4, -1)
        h, v = rows[p, i], cols[q, j]
        inside = (h >= 0) & (h < height) & (v >= 0) & (v < width)
        flat = products.reshape(*products.shape[:2], inside.size)[:, :, inside]
        _add_at(grad, h[inside], v[inside], flat)
        return grad

    def fold(self, padded: np.ndarray, mode: str | None = None) -> np.ndarray:
        """Send the border of the padded map home."""
        return fold(padded, self._in_mode(mode))

    def grad_input(
        self, grad_output: np.ndarray | None = None, weight: np.ndarray | None = None
    ) -> np.ndarray:
        return self.fold(self.scatter(self.products(grad_output, weight), *self.map()))

    def shifts(self) -> Iterator[tuple[tuple[int, int], str]]:
        """Places a tap may read from by mistake, and how that comes about."""
        (top, bottom), (left, right) = self.geometry.padding
        if top or left:
            yield (top, left), 'the index map lost its "− padding"'
            yield (-top, -left), "the padding was taken off twice"
        if (top, left) != (bottom, right):
            yield (top - bottom, left - right), "the two sides of the padding changed places"
        for rows, cols in itertools.product((0, 1, -1, 2, -2), repeat=2):
            if rows or cols:
                yield (rows, cols), f"every tap is off by {rows} rows and {cols} columns"

    def steps(self) -> Iterator[tuple[str, str, tuple[int, int], tuple[int, int]]]:
        """Bent strides and dilations: cause, words, (step per output, step per tap) by axis."""
        (sh, sw), (dh, dw) = self.geometry.stride, self.geometry.dilation
        rows, cols = (sh, dh), (sw, dw)
        yield "stride_dilation_swapped", "", rows[::-1], cols[::-1]
        for name, bent_rows, bent_cols in (
            ("dilation", (sh, 1), (sw, 1)),
            ("stride", (1, dh), (1, dw)),
        ):
            cause = f"{name}_ignored"
            yield cause, f"as if the {name} were 1", bent_rows, bent_cols
            if bent_rows != rows and bent_cols != cols:
                yield cause, f"as if the {name} of the rows were 1", bent_rows, cols
                yield cause, f"as if the {name} of the columns were 1", rows, bent_cols


def _wide(array: np.ndarray) -> np.ndarray:
    """In a dtype that sums do not outgrow: float32 for float16, float64 for whole numbers."""
    least = np.float32 if array.dtype.kind in "fc" else np.float64
    return array.astype(np.result_type(array.dtype, least), copy=False)


def with_border(x: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The image with the border of the geometry, in the geometry's padding mode."""
    home_h, home_v = geometry.padded_rows, geometry.padded_cols
    seen = x[:, :, np.maximum(home_h, 0)][..., np.maximum(home_v, 0)]
    inside = (home_h >= 0)[:, None] & (home_v >= 0)
    return np.where(inside, seen, seen.dtype.type(0))


def fold(padded: np.ndarray, geometry: ConvGeometry) -> np.ndarray:
    """The adjoint of :func:`with_border`: each border cell goes to the cell that it copies."""
    grad = np.zeros((*padded.shape[:2], geometry.H, geometry.W), padded.dtype)
    h, v = np.broadcast_arrays(geometry.padded_rows[:, None], geometry.padded_cols)
    inside = (h >= 0) & (v >= 0)
    _add_at(grad, h[inside], v[inside], padded[:, :, inside])
    return grad


def _add_at(grad: np.ndarray, h: np.ndarray, v: np.ndarray, values: np.ndarray) -> None:
    """grad[:, :, h, v] += values, and a cell that comes twice gets both."""
    places = (slice(None), slice(None), h, v)
    np.add.at(grad, places, values)  # type: ignore[arg-type]  # NumPy takes slices, its types not


def of_upstream(sums: Sums, case: Case) -> Iterator[tuple[str, str, np.ndarray]]:
    """Ways to hold grad_output wrongly: cause, words, the array that is then used."""
    g, (N, O) = sums.grad_output, sums.grad_output.shape[:2]
    gives = f"Your {case.name} is what"
    words = (
        f"{gives} grad_output turned by 180° gives: take g as it is. Nothing in the sum over "
        "positions turns it; the turn that books mention belongs to the kernel, in grad_input."
    )
    yield "g_flipped", words, g[..., ::-1, ::-1]
    for axis, which in ((2, "upside down"), (3, "left to right")):
        words = f"{gives} grad_output mirrored {which} gives: take g as it is."
        yield "g_flipped", words, np.flip(g, axis)
    words = (
        f"{gives} grad_output with rows and columns exchanged gives: its rows go with the rows of "
        "x, its columns with the columns of x."
    )
    yield "g_transposed", words, g.swapaxes(2, 3).reshape(g.shape)
    if N > 1 and O > 1:
        words = (
            f"{gives} a reshaped grad_output gives: reshape keeps the order in memory and so mixes "
            "images with kernels. To exchange the axes n and o use swapaxes(0, 1)."
        )
        yield "g_reshaped", words, g.swapaxes(0, 1).reshape(g.shape)
        yield "g_reshaped", words, g.reshape(O, N, *g.shape[2:]).swapaxes(0, 1)
    words = (
        f"{gives} comes out when an image meets the grad_output of another image: x[n] belongs "
        "with g[n]."
    )
    for order in (g[::-1], np.roll(g, 1, axis=0), np.roll(g, -1, axis=0)) if N > 1 else ():
        yield "images_mixed", words, order
    memory = in_memory_order(case.operands.grad_output)
    if memory is not None:
        yield "memory_layout", memory_words(case.name, "grad_output"), memory


def border_of_zeros(sums: Sums, name: str) -> tuple[str, str, np.ndarray]:
    """Zeros on the border of a padding mode that copies: cause, words, what windows then see."""
    words = (
        f"Your {name} is what a border of zeros gives, but the padding mode is "
        f"{sums.geometry.padding_mode!r}: on the border the taps read copies of image cells."
    )
    return "border_lost", words, sums.read(sums.padded(sums.x, "zeros"), *sums.map())


def in_memory_order(array: np.ndarray) -> np.ndarray | None:
    """The array's memory taken row by row from its first number; None where that is the array."""
    if array.flags.c_contiguous or not array.size:
        return None
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    start = (array.ctypes.data - owner.ctypes.data) // array.itemsize
    memory = owner.ravel(order="K")[start : start + array.size]
    return memory.reshape(array.shape) if memory.size == array.size else None


def memory_words(name: str, operand: str) -> str:
    return (
        f"Your {name} is what the memory of {operand} gives when it is read row by row: that array "
        "is a view with strides of its own. Use indices, or np.ascontiguousarray first."
    )
