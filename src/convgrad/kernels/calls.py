"""The kernels as functions of tensors: operands are checked, borders put on, then one is launched.

Nothing here imports Triton before a kernel is wanted, so that a machine without it can import,
read and document the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import ModuleType

from ..extras import needs
from ..geometry import ConvGeometry, ShapeError, require_geometry, shown
from ..padding import with_border as padded_geometry
from .border import fold_border, with_border

with needs("gpu", "convgrad.kernels"):
    import torch
    from torch import Tensor

__all__ = ["GRAD_WEIGHT", "forward", "grad_bias", "grad_input", "grad_weight", "require", "where"]

#: The ladder of kernels for grad_weight, from the simplest on; each with what it trades.
GRAD_WEIGHT: dict[str, str] = {
    "gather": "a program for each number of grad_weight; reads g and x over and over",
    "scatter": "a program for some windows of a kernel; adds to all its taps with atomics",
    "tiles": "an implicit GEMM, a program for each tile; few tiles, and a long sum in each",
    "split_k": "the sum of each tile shared out; shares meet by atomics, in any order",
    "two_pass": "shares stored apart, then added in order; costs memory, gives the same bits",
}
_TYPES = (torch.float32, torch.float16, torch.bfloat16)


def where() -> str:
    """Where the kernels run on this machine.

    Returns
    -------
    str
        The name of the GPU, or "interpreter, on the CPU" where there is none: Triton's interpreter
        then runs the same source, program after program, with NumPy behind it.  It is switched on
        by the first call here, as ``TRITON_INTERPRET=1``, unless that variable says something.

    Raises
    ------
    RuntimeError
        Where there is no GPU and ``TRITON_INTERPRET=0`` rules the interpreter out.
    ModuleNotFoundError
        Where there is no Triton.

    Examples
    --------
    >>> where()  # doctest: +SKIP
    'NVIDIA H100 80GB HBM3'
    >>> isinstance(where(), str)
    True
    """
    return _module("device").where()


def grad_weight(
    grad_output: Tensor, x: Tensor, geometry: ConvGeometry, kernel: str = "tiles"
) -> Tensor:
    """∂L/∂weight, by one of the kernels in :data:`GRAD_WEIGHT`.

    Parameters
    ----------
    grad_output : Tensor, (N, O, OH, OW)
        ∂L/∂y; float32, float16 or bfloat16, in any memory layout.
    x : Tensor, (N, C, H, W)
        The images, in the same type.
    geometry : ConvGeometry
        Sizes and options; every padding, every padding_mode.
    kernel : str, default "tiles"
        Which rung: "gather", "scatter", "tiles", "split_k" or "two_pass".

    Returns
    -------
    Tensor, (O, C/groups, KH, KW)
        In the type of x, summed in float32; no part of autograd's graph (for that there is
        :func:`convgrad.autograd.conv2d` with ``implementation="triton"``).

    Raises
    ------
    ValueError
        For an unknown kernel.
    ShapeError
        When a tensor does not fit the geometry.
    TypeError
        For other types of numbers, or two different ones.
    RuntimeError
        For tensors on another device than the kernels run on.

    Notes
    -----
    "scatter" and "split_k" add with atomics: on a GPU two calls may differ in the last digits.

    Examples
    --------
    >>> from convgrad import ConvGeometry
    >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
    >>> geometry = ConvGeometry.of(x.shape, (1, 1, 2, 2))
    >>> device = "cpu" if where().startswith("interpreter") else "cuda"
    >>> g = torch.ones(1, 1, 2, 2, device=device)
    >>> grad_weight(g, x.to(device), geometry, kernel="gather").cpu()
    tensor([[[[ 8., 12.],
              [20., 24.]]]])
    """
    if not isinstance(kernel, str) or kernel not in GRAD_WEIGHT:
        raise ValueError(f"kernel={shown(kernel)}: known are {', '.join(GRAD_WEIGHT)}")
    _require(geometry, grad_output=grad_output, x=x)
    if not geometry.N:
        return x.new_zeros(geometry.weight_shape)
    x, plain = _with_border(x, geometry)
    return _launch(kernel, grad_output, x, geometry=plain)


def grad_input(grad_output: Tensor, weight: Tensor, geometry: ConvGeometry) -> Tensor:
    """∂L/∂x: each cell gathers from the outputs that read it, as an implicit GEMM.

    Parameters
    ----------
    grad_output : Tensor, (N, O, OH, OW)
        ∂L/∂y; float32, float16 or bfloat16, in any memory layout.
    weight : Tensor, (O, C/groups, KH, KW)
        The kernels, in the same type.
    geometry : ConvGeometry
        Sizes and options; every padding, every padding_mode.

    Returns
    -------
    Tensor, (N, C, H, W)
        In the type of weight, summed in float32; no part of autograd's graph.

    Raises
    ------
    ShapeError, TypeError, RuntimeError
        As :func:`grad_weight`.

    Examples
    --------
    >>> from convgrad import ConvGeometry
    >>> weight = torch.tensor([[[[1.0, 2.0]]]])
    >>> geometry = ConvGeometry.of((1, 1, 1, 3), weight.shape)
    >>> device = "cpu" if where().startswith("interpreter") else "cuda"
    >>> g = torch.tensor([[[[1.0, 10.0]]]], device=device)
    >>> grad_input(g, weight.to(device), geometry).cpu()
    tensor([[[[ 1., 12., 20.]]]])
    """
    _require(geometry, grad_output=grad_output, weight=weight)
    if not geometry.N:
        return weight.new_zeros(geometry.x_shape)
    if geometry.padding_mode == "zeros":
        return _launch("of_input", grad_output, weight, geometry=geometry)
    padded = _launch("of_input", grad_output, weight, geometry=padded_geometry(geometry))
    return fold_border(padded, geometry)


def grad_bias(grad_output: Tensor, geometry: ConvGeometry) -> Tensor:
    """∂L/∂bias: the sum of each kernel's upstream gradient.

    Parameters
    ----------
    grad_output : Tensor, (N, O, OH, OW)
        ∂L/∂y; float32, float16 or bfloat16, in any memory layout.
    geometry : ConvGeometry
        Sizes and options.

    Returns
    -------
    Tensor, (O,)
        In the type of grad_output, summed in float32; no part of autograd's graph.

    Raises
    ------
    ShapeError, TypeError, RuntimeError
        As :func:`grad_weight`.

    Examples
    --------
    >>> from convgrad import ConvGeometry
    >>> geometry = ConvGeometry.of((1, 1, 3, 3), (1, 1, 2, 2))
    >>> device = "cpu" if where().startswith("interpreter") else "cuda"
    >>> grad_bias(torch.ones(1, 1, 2, 2, device=device), geometry).cpu()
    tensor([4.])
    """
    _require(geometry, grad_output=grad_output)
    if not geometry.N:
        return grad_output.new_zeros(geometry.bias_shape)
    return _launch("of_bias", grad_output, geometry=geometry)


def forward(x: Tensor, weight: Tensor, geometry: ConvGeometry) -> Tensor:
    """The convolution without bias, as an implicit GEMM.

    Parameters
    ----------
    x : Tensor, (N, C, H, W)
        The images; float32, float16 or bfloat16, in any memory layout.
    weight : Tensor, (O, C/groups, KH, KW)
        The kernels, in the same type.
    geometry : ConvGeometry
        Sizes and options; every padding, every padding_mode.

    Returns
    -------
    Tensor, (N, O, OH, OW)
        In the type of x, summed in float32; no part of autograd's graph.

    Raises
    ------
    ShapeError, TypeError, RuntimeError
        As :func:`grad_weight`.

    Examples
    --------
    >>> from convgrad import ConvGeometry
    >>> x, weight = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    >>> geometry = ConvGeometry.of(x.shape, weight.shape, padding=((1, 0), (1, 0)))
    >>> device = "cpu" if where().startswith("interpreter") else "cuda"
    >>> forward(x.to(device), weight.to(device), geometry).cpu()
    tensor([[[[1., 2., 2.],
              [2., 4., 4.],
              [2., 4., 4.]]]])
    """
    _require(geometry, x=x, weight=weight)
    if not geometry.N:
        return x.new_zeros(geometry.output_shape)
    x, plain = _with_border(x, geometry)
    return _launch("of_output", x, weight, geometry=plain)


def require(**tensors: Tensor) -> None:
    """Whether the kernels can take these, by name; if not, what they need and how to mend it."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"{name} is of type {type(tensor).__name__}: needed is a tensor; for an array use "
                f"torch.from_numpy({name})"
            )
        if tensor.dtype not in _TYPES:
            raise TypeError(
                f"{name} holds {_name(tensor.dtype)}: the kernels take "
                f"{', '.join(map(_name, _TYPES))}, and sum in float32; convert it with "
                f"{name}.float(), or let another implementation do it, such as 'unfold'"
            )
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        said = ", ".join(f"{name} {_name(tensor.dtype)}" for name, tensor in tensors.items())
        raise TypeError(f"tensors of different types, {said}: bring them to one with .to(dtype)")
    place = where()
    needed = "cuda" if _module("device").CARD else "cpu"
    for name, tensor in tensors.items():
        if tensor.device.type != needed:
            raise RuntimeError(
                f"{name} is on {tensor.device}: the kernels run here on {needed} ({place}); move "
                f'it with {name}.to("{needed}")'
            )
    if len({tensor.device for tensor in tensors.values()}) > 1:
        said = ", ".join(f"{name} on {tensor.device}" for name, tensor in tensors.items())
        raise RuntimeError(f"tensors in different places, {said}: bring them to one with .to()")


def _require(geometry: ConvGeometry, **tensors: Tensor) -> None:
    require_geometry(geometry)
    require(**tensors)
    shapes = {
        "x": (geometry.x_shape, "(N, C, H, W)"),
        "weight": (geometry.weight_shape, "(O, C/groups, KH, KW)"),
        "grad_output": (geometry.output_shape, "(N, O, OH, OW), that of the output"),
    }
    for name, tensor in tensors.items():
        shape, letters = shapes[name]
        if tuple(tensor.shape) != shape:
            raise ShapeError(
                f"{name} has shape {shown(tuple(tensor.shape))}: needed is {shape} = {letters} for "
                f"{geometry.describe()}; make the geometry of these shapes, or reshape {name}"
            )


def _with_border(x: Tensor, geometry: ConvGeometry) -> tuple[Tensor, ConvGeometry]:
    """What the kernels can read: zeros they find themselves, another border is put on first."""
    if geometry.padding_mode == "zeros":
        return x, geometry
    return with_border(x, geometry), padded_geometry(geometry)


def _launch(name: str, *tensors: Tensor, geometry: ConvGeometry) -> Tensor:
    launch: Callable[..., Tensor] = _module(name).launch
    # kernels count on plain memory: an expanded gradient stores one number for many
    plain = [each.detach().contiguous() for each in tensors]
    with _on(plain[0].device):
        return launch(*plain, geometry)


def _on(device: torch.device) -> AbstractContextManager[None]:
    """Triton launches on the current GPU, wherever the tensors are."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _module(name: str) -> ModuleType:
    """A module with kernels, which is where Triton comes in."""
    return import_module(f".{name}", __package__)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
