"""One convolution on several devices: who holds what, what is sent, and that the sums agree.

There are two ways to deal out a convolution.

By *images*: each device takes some images of the batch.  A gradient of the input needs nobody
else.  The gradients of weight and bias are sums over the batch, so each device has a part of
them, and the parts have to be added: an all-reduce.

By *rows*: each device takes some rows of the output, and holds the rows of the image around
them.  Windows at the edge reach into rows that a neighbour holds, the halo.  In the forward pass
the neighbour sends these rows; in the backward pass their gradients go the same way back and are
added.  The gradients of weight and bias are sums over the rows, so all devices add theirs here
too.

Nothing is sent here: the functions say which numbers would be, and compute what each device
would.  The ring is the all-reduce of Patarasuk and Yuan, *Bandwidth optimal all-reduce algorithms
for clusters of workstations*, Journal of Parallel and Distributed Computing 69 (2009).

>>> from convgrad import example
>>> from convgrad.api import conv2d_backward
>>> geometry = example("B").geometry
>>> x, weight, bias, grad_output = example("B").arrays()
>>> shards = row_shards(geometry, 3)
>>> [(list(each.owned), list(each.halo)) for each in shards]
[([0, 1], [2]), ([2], [1, 3]), ([3, 4], [2])]
>>> parts = [part_of(grad_output, x, weight, each) for each in shards]
>>> whole = conv2d_backward(grad_output, x, weight)
>>> bool(np.all(sum(part.grad_weight for part in parts) == whole[1]))
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

import numpy as np

from .geometry import ConvGeometry, as_integer, shown
from .parallel import even_slices
from .windows import forward, grad_bias, grad_input, grad_weight

__all__ = [
    "NOTHING",
    "ImageShard",
    "Message",
    "Part",
    "RowShard",
    "Send",
    "Shard",
    "average_weights",
    "deal",
    "halo_messages",
    "image_shards",
    "numbers_sent",
    "output_of",
    "part_of",
    "ring_states",
    "ring_steps",
    "row_cut",
    "row_shards",
]

NOTHING = -1  # in place of an image row: zero padding, or a row that no window reads

Shares = int | Sequence[int]  # how many devices, or how many things for each


def deal(count: int, shares: Shares) -> tuple[range, ...]:
    """``range(count)`` in one piece for each device, in order.

    Parameters
    ----------
    count : int
        How many things there are.
    shares : int or sequence of int
        How many devices, which then get as equal shares as can be, the first as large as any;
        or how many things each device gets.

    Returns
    -------
    tuple of range
        One for each device; empty ones where there is too little.

    Raises
    ------
    ValueError
        When the shares do not add up to ``count``.

    Examples
    --------
    >>> deal(7, 3)
    (range(0, 3), range(3, 5), range(5, 7))
    >>> deal(3, [2, 1])
    (range(0, 2), range(2, 3))
    """
    if isinstance(shares, Sequence) and not isinstance(shares, str):
        sizes = [as_integer("a share", size, least=0) for size in shares]
        if sum(sizes) != count or not sizes:
            total = f"{' + '.join(map(str, sizes))} = {sum(sizes)}" if sizes else "empty"
            raise ValueError(f"the shares are {total}: together they need to be {count}")
        return tuple(range(*ends) for ends in pairwise(accumulate([0, *sizes])))
    devices = as_integer("the number of devices", shares, least=1)
    pieces = [range(each.start, each.stop) for each in even_slices(count, devices)]
    return (*pieces, *[range(count, count)] * (devices - len(pieces)))


# ---- what one device has and does ----------------------------------------------------------


class Part(NamedTuple):
    """What one device contributes to the three gradients; their sums over devices are whole.

    Attributes
    ----------
    grad_input : ndarray, (N, C, H, W)
        Zero wherever the device has read nothing.
    grad_weight : ndarray, (O, C/groups, KH, KW)
    grad_bias : ndarray, (O,)

    Examples
    --------
    >>> from convgrad import example
    >>> x, weight, _, grad_output = example("C").arrays()
    >>> first, second = image_shards(example("C").geometry, 2)
    >>> part = part_of(grad_output, x, weight, second)
    >>> part.grad_weight.shape
    (1, 1, 3, 3)
    >>> bool(part.grad_input[0].any())  # it has the second image only
    False
    """

    grad_input: np.ndarray
    grad_weight: np.ndarray
    grad_bias: np.ndarray


@dataclass(frozen=True)
class ImageShard:
    """The images of one device.

    Attributes
    ----------
    device : int
    images : range
        Which images of the batch it has.
    geometry : ConvGeometry
        Of its own convolution: the same with fewer images.

    Examples
    --------
    >>> geometry = ConvGeometry(N=3, C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> first, second = image_shards(geometry, 2)
    >>> first.images, first.geometry.N
    (range(0, 2), 2)
    >>> second.take_input(np.zeros(geometry.x_shape)).shape
    (1, 1, 5, 5)
    """

    device: int
    images: range
    geometry: ConvGeometry

    def take_input(self, x: np.ndarray) -> np.ndarray:
        """Its images out of x, (N, C, H, W)."""
        return x[self.images.start : self.images.stop]

    def take_output(self, y: np.ndarray) -> np.ndarray:
        """Its images out of an output or an upstream gradient, (N, O, OH, OW)."""
        return y[self.images.start : self.images.stop]

    def put_back(self, grad: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        """The gradient of its images in an array for all of them: no image has two owners."""
        whole = np.zeros(shape, grad.dtype)
        whole[self.images.start : self.images.stop] = grad
        return whole


@dataclass(frozen=True)
class RowShard:
    """The rows of one device: those of the output it makes, those of the image it holds and reads.

    Attributes
    ----------
    device : int
    outputs : range
        The output rows that it makes.
    owned : range
        The image rows that it holds from the start.
    block : tuple of int
        The image row behind each row of what its convolution reads, from top to bottom;
        ``NOTHING`` on zero padding, and between windows where no tap falls.
    geometry : ConvGeometry
        Of its own convolution: as many rows as the block has, no padding above and below.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=4, W=4, O=1, KH=3, KW=3, padding=1)
    >>> upper, lower = row_shards(geometry, 2)
    >>> upper.block, upper.reads, upper.halo
    ((-1, 0, 1, 2), (0, 1, 2), (2,))
    """

    device: int
    outputs: range
    owned: range
    block: tuple[int, ...]
    geometry: ConvGeometry

    @property
    def reads(self) -> tuple[int, ...]:
        """The image rows that its windows read, each once."""
        return tuple(sorted({*self.block} - {NOTHING}))

    @property
    def halo(self) -> tuple[int, ...]:
        """Those of them that another device holds."""
        return tuple(h for h in self.reads if h not in self.owned)

    def take_input(self, x: np.ndarray) -> np.ndarray:
        """Its block out of x, (N, C, H, W): own rows, halo and zero padding."""
        block = np.zeros((*x.shape[:2], len(self.block), x.shape[3]), x.dtype)
        for k, h in enumerate(self.block):
            if h != NOTHING:
                block[:, :, k] = x[:, :, h]
        return block

    def take_output(self, y: np.ndarray) -> np.ndarray:
        """Its rows out of an output or an upstream gradient, (N, O, OH, OW)."""
        return y[:, :, self.outputs.start : self.outputs.stop]

    def put_back(self, grad: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        """The gradient of its block, row by row where the rows came from: the way back."""
        whole = np.zeros(shape, grad.dtype)
        for k, h in enumerate(self.block):
            if h != NOTHING:
                whole[:, :, h] += grad[:, :, k]  # +=: padding may have copied a row
        return whole


Shard = ImageShard | RowShard


def output_of(x: np.ndarray, weight: np.ndarray, shard: Shard) -> np.ndarray:
    """The part of the output that a device makes, without bias.

    Parameters
    ----------
    x : ndarray, (N, C, H, W)
        The whole input, of which the device sees no more than its own and the halo.
    weight : ndarray, (O, C/groups, KH, KW)
    shard : ImageShard or RowShard

    Returns
    -------
    ndarray
        Equal to ``shard.take_output`` of the whole output.

    Examples
    --------
    >>> from convgrad import example
    >>> x, weight, _, _ = example("B").arrays()
    >>> for each in row_shards(example("B").geometry, 3):  # a row each
    ...     print(output_of(x, weight, each)[0, 0, 0])
    [3. 5. 3.]
    [-1.  1.  3.]
    [7. 3. 5.]
    """
    return forward(shard.take_input(x), weight, shard.geometry)


def part_of(
    grad_output: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray,
    shard: Shard,
) -> Part:
    """What a device computes in the backward pass, before anything is sent.

    Parameters
    ----------
    grad_output : ndarray, (N, O, OH, OW)
    x : ndarray, (N, C, H, W)
    weight : ndarray, (O, C/groups, KH, KW)
        All three whole; the device sees its own, and of x the halo.
    shard : ImageShard or RowShard

    Returns
    -------
    Part
        The gradients as if there were only this device's output.

    Examples
    --------
    >>> from convgrad import example
    >>> x, weight, _, grad_output = example("C").arrays()
    >>> shards = image_shards(example("C").geometry, 2)
    >>> for each in shards:  # one image each
    ...     print(part_of(grad_output, x, weight, each).grad_weight[0, 0, 0])
    [53. 17. 14.]
    [ 15.  23. -13.]
    """
    own = shard.take_output(grad_output)
    block = shard.take_input(x)
    return Part(
        shard.put_back(grad_input(own, weight, shard.geometry), x.shape),
        grad_weight(own, block, shard.geometry),
        grad_bias(own, shard.geometry),
    )


# ---- images --------------------------------------------------------------------------------


def image_shards(geometry: ConvGeometry, shares: Shares) -> list[ImageShard]:
    """The images dealt to devices.

    Parameters
    ----------
    geometry : ConvGeometry
    shares : int or sequence of int
        How many devices, or how many images for each.

    Returns
    -------
    list of ImageShard

    Examples
    --------
    >>> geometry = ConvGeometry(N=3, C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> [each.images for each in image_shards(geometry, 2)]
    [range(0, 2), range(2, 3)]
    """
    return [
        ImageShard(device, images, replace(geometry, N=len(images)))
        for device, images in enumerate(deal(geometry.N, shares))
    ]


def average_weights(
    shares: Sequence[int],
    loss: Literal["sum", "mean"] = "sum",
    combine: Literal["sum", "average"] = "sum",
) -> np.ndarray:
    """How much an image of each device counts in the gradient that the devices agree on.

    With the sum loss on one device every image counts 1, with the mean loss 1/N.
    DistributedDataParallel of PyTorch averages: then each image of a sum loss counts 1/A, with
    A devices, and with a mean loss an image counts less the more images its device has.

    Parameters
    ----------
    shares : sequence of int
        Images of each device.
    loss : {"sum", "mean"}, default "sum"
        What each device makes of its images' losses.
    combine : {"sum", "average"}, default "sum"
        What is made of the devices' gradients.

    Returns
    -------
    ndarray, (A,)

    Raises
    ------
    ValueError
        For another word than these.

    Examples
    --------
    >>> average_weights([2, 1], "sum", "average")
    array([0.5, 0.5])
    >>> average_weights([2, 1], "mean", "average")  # on one device each counts 1/3
    array([0.25, 0.5 ])
    """
    for name, value, known in (
        ("loss", loss, ("sum", "mean")),
        ("combine", combine, ("sum", "average")),
    ):
        if value not in known:
            raise ValueError(f"{name} is {shown(value)}: use {' or '.join(map(repr, known))}")
    images = np.array(shares, dtype=np.float64)
    own = 1 / images if loss == "mean" else np.ones_like(images)
    return own / len(images) if combine == "average" else own


# ---- rows ----------------------------------------------------------------------------------


def row_cut(geometry: ConvGeometry, p: int) -> int:
    """The image row at which the owner changes where output rows are cut before row p.

    The windows of rows p − 1 and p overlap in ``span − stride`` rows.  The cut is in their
    middle, so that each side has to ask for half of them; of an odd number the upper side owns
    the larger half.

    Parameters
    ----------
    geometry : ConvGeometry
    p : int
        The first output row below the cut.

    Returns
    -------
    int
        The first image row below it, 0 to H.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=8, W=8, O=1, KH=3, KW=3, padding=1)
    >>> row_cut(geometry, 4)
    4
    """
    top = geometry.padding[0][0]
    overlap = geometry.span[0] - geometry.stride[0]
    h = geometry.stride[0] * p - top + (overlap + 1) // 2
    return min(max(h, 0), geometry.H)


def row_shards(
    geometry: ConvGeometry,
    shares: Shares,
    owned: Shares | None = None,
) -> list[RowShard]:
    """The rows of the output dealt to devices, with the rows of the image that each needs.

    A device that makes output rows p to p′ reads the image from row
    ``stride·p − padding`` to row ``stride·p′ + dilation·(KH − 1) − padding``.

    Parameters
    ----------
    geometry : ConvGeometry
    shares : int or sequence of int
        How many devices, or how many output rows for each; at least one.
    owned : int or sequence of int, optional
        How many image rows each device holds; cut by :func:`row_cut` when left out.

    Returns
    -------
    list of RowShard

    Raises
    ------
    ValueError
        When a device would have no row to make.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=6, W=7, O=1, KH=3, KW=3, stride=2)
    >>> for each in row_shards(geometry, 2):
    ...     print(each.outputs, each.owned, each.reads, each.halo)
    range(0, 1) range(0, 3) (0, 1, 2) ()
    range(1, 2) range(3, 6) (2, 3, 4) (2,)
    """
    outputs = deal(geometry.OH, shares)
    if not all(outputs):
        raise ValueError(
            f"{len(outputs)} devices for {geometry.OH} output rows leave one with no row "
            f"to make: take at most {geometry.OH} devices, each with a row or more"
        )
    if owned is None:
        cuts = [row_cut(geometry, rows.start) for rows in outputs[1:]]
        holds = tuple(range(*ends) for ends in pairwise([0, *cuts, geometry.H]))
    else:
        holds = deal(geometry.H, owned)
        if len(holds) != len(outputs):
            raise ValueError(
                f"the image rows are dealt to {len(holds)} devices, the output rows to "
                f"{len(outputs)}: needed is the same number"
            )
    return [
        _row_shard(geometry, device, rows, own)
        for device, (rows, own) in enumerate(zip(outputs, holds, strict=True))
    ]


def _row_shard(geometry: ConvGeometry, device: int, outputs: range, owned: range) -> RowShard:
    stride, dilation = geometry.stride[0], geometry.dilation[0]
    # rows of the padded image; between windows, and between taps, there are some that no tap reads
    read = {stride * p + dilation * i for p in outputs for i in range(geometry.KH)}
    block = tuple(
        int(geometry.padded_rows[k]) if k in read else NOTHING
        for k in range(min(read), max(read) + 1)
    )
    own = replace(geometry, H=len(block), padding=((0, 0), geometry.padding[1]))
    return RowShard(device, outputs, owned, block, own)


class Message(NamedTuple):
    """Rows of the image that one device sends another before the forward pass.

    The gradients of these rows go from ``receiver`` to ``sender`` in the backward pass.

    Attributes
    ----------
    sender, receiver : int
    rows : tuple of int

    Examples
    --------
    >>> message = Message(sender=1, receiver=0, rows=(3, 4))
    >>> f"{len(message.rows)} rows to device {message.receiver}"
    '2 rows to device 0'
    """

    sender: int
    receiver: int
    rows: tuple[int, ...]


def halo_messages(shards: Sequence[RowShard]) -> list[Message]:
    """Who sends which rows of the image to whom.

    Parameters
    ----------
    shards : sequence of RowShard

    Returns
    -------
    list of Message
        By receiver, then by sender; none without rows.

    Examples
    --------
    >>> geometry = ConvGeometry(C=1, H=5, W=5, O=1, KH=3, KW=3)
    >>> for message in halo_messages(row_shards(geometry, 2)):
    ...     print(message)
    Message(sender=1, receiver=0, rows=(3,))
    Message(sender=0, receiver=1, rows=(2,))
    """
    wanted = [
        Message(sender.device, receiver.device, rows)
        for receiver in shards
        for sender in shards
        if (rows := tuple(h for h in receiver.halo if h in sender.owned))
    ]
    return wanted


# ---- the ring ------------------------------------------------------------------------------


class Send(NamedTuple):
    """One chunk on its way from a device to the next one on the ring.

    Attributes
    ----------
    phase : "reduce" or "gather"
        Whether the receiver adds the chunk to its own, or puts it in the place of its own.
    sender, receiver : int
    chunk : int

    Examples
    --------
    >>> ring_steps(3)[0][2]
    Send(phase='reduce', sender=2, receiver=0, chunk=2)
    """

    phase: Literal["reduce", "gather"]
    sender: int
    receiver: int
    chunk: int


def ring_steps(devices: int) -> list[list[Send]]:
    """The ring all-reduce: what is sent in each step, at the same time.

    In the first A − 1 steps (reduce-scatter) device a sends chunk a − s, where s counts the
    steps, and the next device adds it to its own.  Then device a has all of chunk a + 1.  In the
    other A − 1 steps (all-gather) the complete chunks go round once more.

    Parameters
    ----------
    devices : int
        A; the array of each has A chunks.

    Returns
    -------
    list of list of Send
        2·(A − 1) steps of A sends.

    Examples
    --------
    >>> for step in ring_steps(2):
    ...     for phase, sender, receiver, chunk in step:
    ...         print(f"{phase} chunk {chunk}: {sender} to {receiver}")
    reduce chunk 0: 0 to 1
    reduce chunk 1: 1 to 0
    gather chunk 1: 0 to 1
    gather chunk 0: 1 to 0
    """
    A = as_integer("the number of devices", devices, least=1)
    ring = [(a, (a + 1) % A) for a in range(A)]
    steps = []
    for s in range(A - 1):
        steps.append([Send("reduce", a, to, (a - s) % A) for a, to in ring])
    for s in range(A - 1):
        steps.append([Send("gather", a, to, (a + 1 - s) % A) for a, to in ring])
    return steps


def ring_states(arrays: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """What every device holds before the ring all-reduce, and after each of its steps.

    Parameters
    ----------
    arrays : sequence of ndarray
        One for each device, of equal shape.

    Returns
    -------
    list of list of ndarray
        ``states[s][a]`` is what device a holds after s steps, flat; in the last every device
        holds the sum.

    Examples
    --------
    >>> for state in ring_states([np.array([1, 2]), np.array([10, 20])]):
    ...     print(*state)
    [1 2] [10 20]
    [ 1 22] [11 20]
    [11 22] [11 22]
    """
    A = len(arrays)
    state = [np.array(array).ravel() for array in arrays]
    chunks = [slice(each.start, each.stop) for each in deal(state[0].size, A)]
    states = [state]
    for step in ring_steps(A):
        before, state = state, [array.copy() for array in state]
        for send in step:  # all at once: each sends what it had before the step
            chunk = chunks[send.chunk]
            if send.phase == "reduce":
                state[send.receiver][chunk] += before[send.sender][chunk]
            else:
                state[send.receiver][chunk] = before[send.sender][chunk]
        states.append(state)
    return states


def numbers_sent(size: int, devices: int) -> list[int]:
    """How many numbers each device sends in a ring all-reduce of ``size`` numbers.

    With A devices and even chunks 2·(A − 1)/A of the array, however many devices there are:
    less than twice the array.

    Parameters
    ----------
    size : int
    devices : int

    Returns
    -------
    list of int

    Examples
    --------
    >>> numbers_sent(78, 3)  # 2·2/3 · 78
    [104, 104, 104]
    """
    chunks = deal(size, devices)
    sent = [0] * len(chunks)
    for send in (each for step in ring_steps(devices) for each in step):
        sent[send.sender] += len(chunks[send.chunk])
    return sent
