"""Sizes and the index map of a 2-D convolution, in one frozen object.

Everything in this package asks a :class:`ConvGeometry` for its sizes; nobody computes an
output size or an index a second time.  The one equation behind all of it:

    y[n,o,p,q] = b[o] + Σ_{c,i,j} w[o,c,i,j] · x[n,c,h,v]
    h = stride·p + dilation·i − padding        (v from q and j likewise; c within o's group)

The size formula is PyTorch's (documentation of ``torch.nn.Conv2d``, section "Shape").
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

__all__ = [
    "LARGEST",
    "PADDING_MODES",
    "ConvGeometry",
    "GeometryError",
    "ShapeError",
    "as_borders",
    "as_integer",
    "as_pair",
    "as_shape",
    "require_geometry",
    "short",
    "shown",
]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")

# No number of a geometry is larger, nor has a padded map more cells: far beyond what memory holds,
# and small enough that no index overflows.
LARGEST = 2**31 - 1

Pair = tuple[int, int]
# What people give: a whole number or (height, width); for padding also a pair of pairs or a name.
Step = SupportsIndex | Sequence[SupportsIndex]
Border = Step | Sequence[Sequence[SupportsIndex]] | str


class GeometryError(ValueError):
    """The numbers describe no convolution: says what came, what was needed, how to mend it.

    Examples
    --------
    >>> ConvGeometry(C=1, H=3, W=3, O=1, KH=5, KW=5)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.geometry.GeometryError: kernel 5×5 spans 5×5, the padded input is 3×3:
        pad by 1 more on each side or use a smaller kernel
    """


class ShapeError(ValueError):
    """An array does not fit the convolution: says what came, what was needed, how to mend it.

    Examples
    --------
    >>> ConvGeometry.of((5, 5), (1, 1, 3, 3))  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
        ...
    convgrad.geometry.ShapeError: x has 2 axes, shape (5, 5):
        needed are 4, (N, C, H, W); reshape it,
        for one grey image with x[None, None]
    """


@dataclass(frozen=True)
class ConvGeometry:
    """Every size of one 2-D convolution, and the map from output and tap to input cell.

    All numbers are checked once, when the object is made; afterwards it does not change.

    Parameters
    ----------
    C, H, W : int
        Input channels, input height and width.
    O, KH, KW : int
        Output channels, kernel height and width.
    N : int, default 1
        Images in the batch; may be 0.
    stride : int or pair, default (1, 1)
        A pair is (height, width); kept as one.
    padding : int, pair, pair of pairs or str, default ((0, 0), (0, 0))
        One number, (height, width), ((top, bottom), (left, right)), "same" or "valid"; kept as
        the pair of pairs.
    dilation : int or pair, default (1, 1)
        A pair is (height, width); kept as one.
    groups : int, default 1
        How many independent convolutions share the channels.
    padding_mode : str, default "zeros"
        "zeros", "reflect", "replicate" or "circular".

    Raises
    ------
    GeometryError
        When no such convolution exists.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=6, W=7, O=1, KH=3, KW=3, stride=2)
    >>> geometry.output_shape, geometry.leftover
    ((1, 1, 2, 3), (1, 0))
    >>> geometry.source(p=1, q=2, i=0, j=2)
    (2, 6)
    """

    C: int
    H: int
    W: int
    O: int
    KH: int
    KW: int
    N: int = 1
    stride: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)
    groups: int = 1
    padding_mode: str = "zeros"

    if TYPE_CHECKING:
        # what may be given, which is more than what the fields then hold
        def __init__(
            self,
            C: int,
            H: int,
            W: int,
            O: int,
            KH: int,
            KW: int,
            N: int = 1,
            stride: Step = 1,
            padding: Border = 0,
            dilation: Step = 1,
            groups: int = 1,
            padding_mode: str = "zeros",
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__  # the class is frozen; this is its own front door
        put(self, "N", as_integer("batch size N", self.N, least=0))
        for name, meaning in _SIZES.items():
            put(self, name, as_integer(f"{meaning} {name}", getattr(self, name), least=1))
        put(self, "stride", as_pair("stride", self.stride))
        put(self, "dilation", as_pair("dilation", self.dilation))
        put(self, "groups", as_integer("groups", self.groups, least=1))
        self._check_groups()
        if not isinstance(self.padding_mode, str) or self.padding_mode not in PADDING_MODES:
            raise GeometryError(
                f"padding_mode is {shown(self.padding_mode)}: "
                f"use one of {', '.join(map(repr, PADDING_MODES))}"
            )
        put(self, "padding", self._normal_padding(self.padding))
        self._check_border()
        self._check_cells()
        self._check_span()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy is made from: the index maps are made anew, read-only like these."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(
        cls,
        x_shape: Sequence[int],
        weight_shape: Sequence[int],
        stride: Step = 1,
        padding: Border = 0,
        dilation: Step = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
    ) -> ConvGeometry:
        """The geometry of ``conv2d(x, weight, ...)`` from the shapes of its arrays.

        Parameters
        ----------
        x_shape : sequence of int
            (N, C, H, W).
        weight_shape : sequence of int
            (O, C/groups, KH, KW).
        stride, padding, dilation, groups, padding_mode : optional
            As given to conv2d.

        Returns
        -------
        ConvGeometry

        Raises
        ------
        ShapeError
            For other ranks, or for channels that do not fit.
        GeometryError
            When no such convolution exists.
        """
        x_shape = as_shape("x", x_shape, "(N, C, H, W)")
        weight_shape = as_shape("weight", weight_shape, "(O, C/groups, KH, KW)")
        if len(x_shape) != 4:
            raise ShapeError(
                f"x has {len(x_shape)} axes, shape {shown(x_shape)}: needed are 4, (N, C, H, W); "
                "reshape it, for one grey image with x[None, None]"
            )
        if len(weight_shape) != 4:
            raise ShapeError(
                f"weight has {len(weight_shape)} axes, shape {shown(weight_shape)}: needed are 4, "
                "(O, C/groups, KH, KW); reshape it, for one kernel with weight[None, None]"
            )
        geometry = cls(
            **dict(zip("NCHW", x_shape, strict=True)),
            O=weight_shape[0],
            KH=weight_shape[2],
            KW=weight_shape[3],
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            padding_mode=padding_mode,
        )
        CG = as_integer("input channels per group", weight_shape[1], least=1)
        if CG != geometry.CG:
            raise ShapeError(
                f"weight has {CG} input channels per group, shape {weight_shape}: "
                f"x has C = {geometry.C} channels in {geometry.groups} group(s), so "
                f"{geometry.CG} were needed; change the weight's second axis or groups"
            )
        return geometry

    # ---- sizes ---------------------------------------------------------------------------

    @property
    def CG(self) -> int:
        """Input channels per group."""
        return self.C // self.groups

    @property
    def OG(self) -> int:
        """Output channels per group."""
        return self.O // self.groups

    @property
    def span(self) -> Pair:
        """Rows and columns that one window covers, dilation·(k − 1) + 1."""
        (dh, dw) = self.dilation
        return dh * (self.KH - 1) + 1, dw * (self.KW - 1) + 1

    @property
    def padded_size(self) -> Pair:
        """Height and width of the padded input."""
        (top, bottom), (left, right) = self.padding
        return self.H + top + bottom, self.W + left + right

    @property
    def OH(self) -> int:
        """Output height."""
        return (self.padded_size[0] - self.span[0]) // self.stride[0] + 1

    @property
    def OW(self) -> int:
        """Output width."""
        return (self.padded_size[1] - self.span[1]) // self.stride[1] + 1

    @property
    def leftover(self) -> Pair:
        """Rows and columns at the bottom and right of the padded input that no window reads.

        This is the remainder of the floor division in the size formula, and also the
        ``output_padding`` that makes the transposed convolution restore the input's size.
        """
        return (
            (self.padded_size[0] - self.span[0]) % self.stride[0],
            (self.padded_size[1] - self.span[1]) % self.stride[1],
        )

    @property
    def surplus(self) -> Pair:
        """Rows and columns to crop when the weight gradient is computed as a convolution."""
        return self.leftover[0] // self.dilation[0], self.leftover[1] // self.dilation[1]

    @property
    def x_shape(self) -> tuple[int, int, int, int]:
        """(N, C, H, W)."""
        return self.N, self.C, self.H, self.W

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        """(O, C/groups, KH, KW)."""
        return self.O, self.CG, self.KH, self.KW

    @property
    def bias_shape(self) -> tuple[int]:
        """(O,)."""
        return (self.O,)

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """(N, O, OH, OW), the shape of the output and of ``grad_output``."""
        return self.N, self.O, self.OH, self.OW

    # ---- the index map -------------------------------------------------------------------

    def source(self, p: Any, q: Any, i: Any, j: Any) -> tuple[Any, Any]:
        """The place (h, v) that tap (i, j) reads for output cell (p, q).

        It lies outside the image where the tap is on padding; the method cell says
        what is read there.  Integers or integer arrays, which broadcast.
        """
        (top, _), (left, _) = self.padding
        h = self.stride[0] * p + self.dilation[0] * i - top
        v = self.stride[1] * q + self.dilation[1] * j - left
        return h, v

    def cell(self, h: int, v: int) -> Pair | None:
        """The image cell whose value stands at padded coordinates ``(h, v)``.

        ``None`` where the padding is the number zero; otherwise the cell that the padding
        mode copies, which inside the image is ``(h, v)`` itself.
        """
        row = int(_image_index(np.asarray(h), self.H, self.padding_mode))
        col = int(_image_index(np.asarray(v), self.W, self.padding_mode))
        return None if row < 0 or col < 0 else (row, col)

    @cached_property
    def rows(self) -> np.ndarray:
        """Image row read by each output row and kernel row, (OH, KH); −1 on zero padding."""
        h, _ = self.source(np.arange(self.OH)[:, None], 0, np.arange(self.KH), 0)
        return _read_only(_image_index(h, self.H, self.padding_mode))

    @cached_property
    def cols(self) -> np.ndarray:
        """Image column read by each output column and kernel column, (OW, KW); −1 on padding."""
        _, v = self.source(0, np.arange(self.OW)[:, None], 0, np.arange(self.KW))
        return _read_only(_image_index(v, self.W, self.padding_mode))

    @cached_property
    def padded_rows(self) -> np.ndarray:
        """Image row behind each row of the padded input, (H + top + bottom,); −1 on zeros."""
        (top, bottom), _ = self.padding
        return _read_only(_image_index(np.arange(-top, self.H + bottom), self.H, self.padding_mode))

    @cached_property
    def padded_cols(self) -> np.ndarray:
        """Image column behind each column of the padded input; −1 on zero padding."""
        _, (left, right) = self.padding
        return _read_only(_image_index(np.arange(-left, self.W + right), self.W, self.padding_mode))

    def group_of(self, o: Any) -> Any:
        """The group that output channel o belongs to."""
        return o // self.OG

    def channel(self, o: Any, c: Any) -> Any:
        """The channel of x behind channel c of kernel o; c counts in its group."""
        return self.group_of(o) * self.CG + c

    # ---- arrays that must fit ------------------------------------------------------------

    def require(self, **arrays: np.ndarray) -> None:
        """Check arrays by name: ``geometry.require(x=x, weight=w, grad_output=g, bias=b)``.

        Parameters
        ----------
        **arrays : ndarray
            Any of x, weight, bias and grad_output.

        Raises
        ------
        ShapeError
            With the shape that came, the one needed, and why.
        TypeError
            For another name.
        """
        needed = {
            "x": (self.x_shape, "(N, C, H, W)"),
            "weight": (self.weight_shape, "(O, C/groups, KH, KW)"),
            "bias": (self.bias_shape, "(O,)"),
            "grad_output": (self.output_shape, "(N, O, OH, OW), the shape of conv2d's output"),
        }
        for name, array in arrays.items():
            if name not in needed:
                raise TypeError(f"no array is called {name!r}: there are {', '.join(needed)}")
            shape, letters = needed[name]
            if np.shape(array) != shape:
                raise ShapeError(
                    f"{name} has shape {np.shape(array)}: needed is {shape} = {letters} "
                    f"for {self.describe()}; check stride, padding, dilation and groups, "
                    f"or reshape {name}"
                )

    # ---- words ---------------------------------------------------------------------------

    def describe(self) -> str:
        """The geometry in one phrase, for messages and captions."""
        kernels = "kernel" if self.O == 1 else "kernels"
        words = [
            f"x {self.N}×{self.C}×{self.H}×{self.W}",
            f"{self.O} {kernels} {self.KH}×{self.KW}",
        ]
        if self.stride != (1, 1):
            words.append(f"stride {short(self.stride)}")
        if self.padding != ((0, 0), (0, 0)):
            words.append(f"padding {short(tuple(map(short, self.padding)))}")
            if self.padding_mode != "zeros":
                words.append(f"{self.padding_mode} padding")
        if self.dilation != (1, 1):
            words.append(f"dilation {short(self.dilation)}")
        if self.groups != 1:
            words.append(f"{self.groups} groups")
        return ", ".join(words)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, ready for JSON; ``ConvGeometry(**d)`` reads it back."""
        return {
            **{name: getattr(self, name) for name in ("N", *_SIZES)},
            "stride": list(self.stride),
            "padding": [list(pair) for pair in self.padding],
            "dilation": list(self.dilation),
            "groups": self.groups,
            "padding_mode": self.padding_mode,
        }

    # ---- the checks of __post_init__, one reason each ------------------------------------

    def _check_groups(self) -> None:
        for letter, meaning in (("C", "input"), ("O", "output")):
            channels = getattr(self, letter)
            if channels % self.groups:
                raise GeometryError(
                    f"{channels} {meaning} channels do not divide into {self.groups} groups: "
                    f"use groups out of {_common_divisors(self.C, self.O)}, which divide C and O, "
                    f"or change {letter}"
                )

    def _normal_padding(self, padding: Any) -> tuple[Pair, Pair]:
        if isinstance(padding, str):
            return self._named_padding(padding)
        return as_borders(
            padding, hint="; to crop instead, slice x, for example x[..., 1:-1, 1:-1]"
        )

    def _named_padding(self, padding: str) -> tuple[Pair, Pair]:
        if padding == "valid":
            return (0, 0), (0, 0)
        if padding != "same":
            raise GeometryError(
                f"padding is {shown(padding)}: use 'same', 'valid', an int, "
                "a pair, or ((top, bottom), (left, right))"
            )
        # d(k − 1) cells in all; the odd one stands at the end, as in PyTorch
        totals = (extent - 1 for extent in self.span)
        rows, cols = ((total // 2, total - total // 2) for total in totals)
        if self.stride != (1, 1):
            raise GeometryError(
                f"padding='same' with stride {short(self.stride)}: 'same' needs "
                "stride 1, here and in PyTorch; use stride 1, or give the "
                f"padding in numbers, for example {rows, cols}"
            )
        return rows, cols

    def _check_border(self) -> None:
        for axis, most, pair in zip("HW", self._widest_border(), self.padding, strict=True):
            if max(pair) > most:
                raise GeometryError(
                    f"padding {max(pair)} with padding_mode {self.padding_mode!r} and "
                    f"{axis} = {getattr(self, axis)}: at most {most} cells can be copied; "
                    "pad less or use padding_mode 'replicate' or 'zeros'"
                )

    def _widest_border(self) -> tuple[float, float]:
        """Reflection needs cells to reflect; PyTorch has the same two limits."""
        spare = {"reflect": 1, "circular": 0}.get(self.padding_mode, -math.inf)
        return self.H - spare, self.W - spare

    def _check_cells(self) -> None:
        height, width = self.padded_size
        if height * width > LARGEST:  # before any index map is made
            raise GeometryError(
                f"the padded input is {height}×{width}: needed are at most {LARGEST} cells; "
                "pad less or use a smaller input"
            )

    def _check_span(self) -> None:
        missing = [need - have for need, have in zip(self.span, self.padded_size, strict=True)]
        if max(missing) <= 0:
            return
        each_side = (max(missing) + 1) // 2
        dilated = f" with dilation {short(self.dilation)}" if self.dilation != (1, 1) else ""
        mend = f"pad by {each_side} more on each side"
        borders = zip(self._widest_border(), self.padding, strict=True)
        if any(max(pair) + each_side > most for most, pair in borders):
            mend += " with padding_mode 'zeros'"  # this mode has no cells left to copy
        if self.padded_size[0] >= self.KH and self.padded_size[1] >= self.KW:
            mend += " or use dilation 1"
        else:
            mend += " or use a smaller kernel"
        raise GeometryError(
            f"kernel {self.KH}×{self.KW}{dilated} spans {self.span[0]}×{self.span[1]}, "
            f"the padded input is {self.padded_size[0]}×{self.padded_size[1]}: {mend}"
        )


_SIZES = {
    "C": "input channels",
    "H": "input height",
    "W": "input width",
    "O": "output channels",
    "KH": "kernel height",
    "KW": "kernel width",
}


def _common_divisors(a: int, b: int) -> list[int]:
    both = math.gcd(a, b)
    small = [d for d in range(1, math.isqrt(both) + 1) if both % d == 0]
    return sorted({*small, *(both // d for d in small)})


def _read_only(index: np.ndarray) -> np.ndarray:
    """Index maps are shared by everybody who asks, so nobody may write into them."""
    index.flags.writeable = False
    return index


def _image_index(index: np.ndarray, size: int, padding_mode: str) -> np.ndarray:
    """Which cell, 0 to size − 1, stands at index; −1 for the number zero."""
    if padding_mode == "circular":
        return index % size
    if padding_mode == "replicate":
        return np.clip(index, 0, size - 1)
    if padding_mode == "reflect":
        # back and forth, the outermost cell once: −1 → 1, size → size − 2
        period = max(2 * (size - 1), 1)
        return np.minimum(index % period, -index % period)
    return np.where((index < 0) | (index >= size), -1, index)


def as_shape(name: str, value: Any, letters: str) -> tuple[Any, ...]:
    """The shape of an array as a tuple; its length and its sizes are not looked at."""
    value = _plain(value)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise ShapeError(
            f"the shape of {name} is {shown(value)}: needed are four sizes, {letters}; if this is "
            f"the array itself, pass {name}.shape"
        )
    return tuple(value)


def require_geometry(value: Any) -> ConvGeometry:
    """The geometry that came, if it is one."""
    if not isinstance(value, ConvGeometry):
        raise TypeError(
            f"geometry is {shown(value)}: needed is a ConvGeometry, such as "
            "ConvGeometry.of(x.shape, weight.shape, stride, padding)"
        )
    return value


def as_integer(name: str, value: Any, least: int, hint: str = "") -> int:
    """A whole number from ``least`` on; ``hint`` says how to mend a smaller one."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except Exception:  # whatever its own __index__ says
        raise GeometryError(
            f"{name} is {shown(value)}: needed is a whole number of at least {least}"
        ) from None
    if number < least:
        raise GeometryError(f"{name} is {number}: needed is at least {least}{hint}")
    if number > LARGEST:
        raise GeometryError(f"{name} is {number}: needed is at most {LARGEST}")
    return number


def as_pair(name: str, value: Any, least: int = 1, hint: str = "", spread: bool = True) -> Pair:
    """A pair of whole numbers (height, width); one number alone spreads to both."""
    value = _plain(value)
    if spread and not isinstance(value, Sequence):
        value = (value, value)
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != 2:
        needed = "an int or a pair (height, width)" if spread else "a pair (before, after)"
        raise GeometryError(f"{name} is {shown(value)}: needed is {needed}")
    return as_integer(name, value[0], least, hint), as_integer(name, value[1], least, hint)


def as_borders(padding: Any, hint: str = "") -> tuple[Pair, Pair]:
    """Padding in numbers as ((top, bottom), (left, right))."""
    padding = _plain(padding)
    pairs = isinstance(padding, Sequence) and not isinstance(padding, str | bytes)
    if pairs and any(isinstance(_plain(part), Sequence) for part in padding):
        if len(padding) != 2:
            raise GeometryError(
                f"padding {shown(padding)} has {len(padding)} entries: needed are two pairs, "
                "((top, bottom), (left, right))"
            )
        rows, cols = (
            as_pair(f"padding of the {axis}", pair, least=0, hint=hint, spread=False)
            for axis, pair in zip(("height", "width"), padding, strict=True)
        )
        return rows, cols
    height, width = as_pair("padding", padding, least=0, hint=hint)
    return (height, height), (width, width)


def _plain(value: Any) -> Any:
    """Arrays and tensors as the lists and numbers they hold; anything else as it is."""
    if isinstance(value, np.ndarray) and value.size > 16:
        return value  # nobody's pair of pairs; as a list it might fill the memory
    try:
        return value.tolist() if hasattr(value, "tolist") else value
    except Exception:  # anything may call itself tolist
        return value


def shown(value: Any) -> str:
    """Whatever somebody gave, as a message may repeat it: on one line, and not too long.

    >>> shown("wide" * 50)
    "'widewidewidewidewidewidewidewidewidewidewidewidewidewidewid … idewidewidewidewide'"
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # it may refuse, or hold itself more often than can be followed
        return f"of type {type(value).__name__}"
    return text if len(text) <= 100 else f"{text[:60]} … {text[-20:]}"


def short(pair: Sequence[Any]) -> str:
    """A pair as people write it: one value where both are alike."""
    return str(pair[0]) if pair[0] == pair[1] else f"({pair[0]}, {pair[1]})"
