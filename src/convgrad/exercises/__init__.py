"""The exercise bank: questions whose answers the package computes, checked with explanations.

    from convgrad import exercises
    exercises.get("weight-one-pixel").check(my_grid)
    exercises.get("weight-one-pixel", seed="ada")  # with numbers of one's own

Kinds: a number, a grid of numbers, a choice; a *picture* off which numbers are read; a *function*;
a *line* that is missing from one; a *bug* to be found, and mended; a *formula*; a *test* that is
graded by the wrong gradients it notices.

Chapter *The sliding window* (``chapter="sliding_window"``)

    key                    kind      level  what is asked
    window-first-numbers   number    1      example B: the number at y[0,0,1,2], bias included
    window-response-size   number    1      example E: a 6×6 template on 22×22, how many rows?
    window-shape           grid      1      stride 2, padding 1, dilation 2: rows and columns out?
    window-one-pixel       grid      2      example A: the 2×2 output of one pixel, 4×4 kernel
    window-uses            grid      2      example B: how often each of the 5×5 cells is read
    window-best-match      grid      2      example E: [row, column] of the best match in image 1
    window-turned          choice    2      a routine that turns the kernel: which call is conv2d?
    window-slide           function  2      write slide(x, w): one image, one kernel, two loops
    window-forward         function  3      write forward(x, weight, geometry): every size and group
    window-bug             bug      2      one row is missing: in which line?

Chapter *Stride, padding, dilation* (``chapter="stride_padding_dilation"``)

    geometry-sizes         number    1      stride 4, 5 rows out: how many input heights?
    geometry-leftover      grid      1      stride 3, dilation 2: rows and columns left over
    geometry-same          grid      1      4 taps, dilation 3: the two sides of "same"
    geometry-border        grid      2      what stands on a border that reflects?
    geometry-counts        grid      2      4 taps, stride 3: how often is each cell read?
    geometry-unread        number    2      2×2 taps, stride 3 on 8×8: how many get no gradient?
    geometry-which-mode    choice    2      which padding mode left these counts?
    geometry-even          choice    3      stride 2: which kernel leaves no checkerboard?
    geometry-read-counts   function  2      write reads(geometry): how often each cell is read
    geometry-write-border  function  3      write bordered(x, before, after, mode)
    geometry-picture       picture  2      two windows of a row: how many outputs?
    geometry-formula-smallest formula 3    how many rows the image needs at least

Chapter *One product at a time* (``chapter="one_product"``)

    product-pixel          number    1      example A: what the one pixel gets from four windows
    product-two-homes      grid      1      example B: what one product sends to tap and input cell
    product-on-padding     number    1      example A: how many products lie on the border?
    product-cell           number    2      example B: the number at grad_input[0,0,1,2]
    product-slopes         grid      2      ∂y/∂x of one row as a table, stride 2
    product-zero-weight    choice    2      what does a weight of 0 get and send?
    product-order          choice    3      in which order must the products be added?
    product-jacobian       function  2      write slopes(w, H, W): the table ∂y/∂x
    product-backward       function  3      write backward(...): grad_input and grad_weight at once
    product-line           line     2      which line sends a product home?

Chapter *The weight gradient is a convolution* (``chapter="weight_gradient"``)

    weight-one-tap         number    1      example B: the number at grad_weight[0,0,0,2]
    weight-how-many        number    1      example C: how many products meet in one tap?
    weight-one-pixel       grid      2      example A: all 16 taps of the weight gradient
    weight-crop            grid      2      example C: [rows, columns] before the crop
    weight-what-happened   choice    2      example B: which mistake left this grid?
    weight-swap            choice    2      stride 2, dilation 1: which convolution is the gradient?
    weight-by-taps         function  2      write grad_weight(grad_output, x, kernel_size), stride 1
    weight-blind-sum       choice    3      which mistake does y.sum().backward() not see?
    weight-by-convolution  function  3      write grad_weight(grad_output, x, geometry): one conv2d
    weight-picture         picture  2      the cells that one tap reads: which tap?
    weight-bug             bug      2      wrong with a stride: in which line?
    weight-line            line     3      the last line: crop and order of axes

Chapter *The input gradient is a transposed convolution* (``chapter="input_gradient"``)

    key                    kind      level  what is asked
    input-one-pixel        number    1      example A with another g: the one number of grad_input
    input-one-cell         number    1      example B: the number at grad_input[0,0,2,0]
    input-how-many         number    1      example C: how many products meet in cell (2,4)?
    input-stride-row       grid      2      three kernels, two apart, on a row of eight cells
    input-output-padding   number    2      11 cells, 4 taps, stride 4: which output_padding?
    input-which-call       choice    2      stride 2, padding 1: which conv_transpose2d?
    input-what-happened    choice    2      example B: which mistake left this grid?
    input-by-scatter       function  2      write grad_input(grad_output, weight), stride 1
    input-checkerboard     choice    3      for which kernel and stride are the counts even?
    input-by-gather        function  3      write grad_input(grad_output, weight, geometry)
    input-picture          picture  1      where two laid kernels meet
    input-line             line     2      all products of one tap, added
    input-formula-leftover formula  3      output_padding from the sizes
    input-bug-mend         bug      3      find the wrong line and mend it

Chapter *Bias, batch, and knowing you are right* (``chapter="bias_and_checks"``)

    key                    kind      level  what is asked
    bias-sum-of-ones       number    1      8 images, 16 kernels, loss y.sum(): grad_bias?
    check-one-step         number    1      example B: two taps moved, how far does the loss go?
    bias-two-kernels       grid      2      four maps of 2×2: both numbers of grad_bias
    bias-square-trap       choice    2      for which shape do the wrong axes look right?
    batch-two-parts        number    2      parts of 3 and 5 images, a mean each: the whole?
    check-easy-sizes       choice    2      which mistake does a test on example B not see?
    bias-write             function  2      write grad_bias(grad_output)
    check-both-wrong       choice    3      which pair passes the adjoint test wrongly?
    check-by-steps         function  3      write slopes(loss, weight): finite differences
    check-break            test     2      write notices(grad_input): which mistakes?

Chapter *im2col: unfold + mm* (``chapter="im2col"``)

    unfold-entry           number    1      example C: the number in row 5, column 2 of the columns
    unfold-shape           grid      1      example D: [rows, columns] of the matrix of one image
    unfold-fold-row        grid      2      fold(unfold(x)) of a row of seven cells, stride 2
    unfold-digits          grid      2      kernel 1 10 100: which taps arrive in each cell?
    unfold-which-product   choice    2      which product of G and U is the weight gradient?
    unfold-grad-weight     function  2      write grad_weight(grad_output, columns, geometry)
    unfold-blind-example   choice    3      which example lets a forgotten transpose pass?
    unfold-fold            function  3      write fold(columns, geometry): any stride, padding
    unfold-picture         picture  2      a place of the matrix: which cell?
    unfold-line            line     2      the axes in order
    unfold-bug             bug      2      the shapes fit: which line is wrong?
    unfold-formula-row     formula  2      the row of tap (i, j) of channel c

Chapter *Without loops: NumPy windows and einsum* (``chapter="without_loops"``)

    views-address          number    1      6×7 float64: how many bytes before x[2, 3]?
    views-shape            grid      1      example D: the shape n c p q i j of the view
    views-strides          grid      2      example C: bytes of a step along p, q, i, j
    views-shared           grid      2      view[0] *= 10 on windows of 1 2 3 4 5: view[2]?
    views-letters          choice    2      which letters make the weight gradient?
    views-forward          function  2      write forward(x, weight, stride) without a loop
    views-copy             choice    3      which expression must copy?
    views-backward         function  3      write grad_input(grad_output, weight, geometry)
    views-line             line     2      every stride-th window, dilation-th cell

Chapter *Memory and speed* (``chapter="memory_and_speed"``)

    memory-factor          number    1      7×7, stride 2, 224×224: how many times the image?
    memory-operations      number    1      example B: multiplications and additions
    memory-bytes           grid      2      example B: bytes [at least, with columns] in float32
    memory-which-waits     choice    2      which of four layers has the fewest operations a byte?
    memory-block-rows      grid      2      2,000,000 bytes: [rows in a block, blocks an image]
    memory-blocked-weight  function  2      write grad_weight(grad_output, x, kernel_size, rows)
    memory-what-raises     choice    3      which change raises the operations per byte?
    memory-blocked-input   function  3      write grad_input(grad_output, weight, geometry, rows)
    memory-formula-products formula  2      products of the weight gradient

Chapter *Grouped and depthwise convolution* (``chapter="grouped"``)

    grouped-channel        number    1      example E: which channel lies under weight[2,5]?
    grouped-weights        number    1      8 channels, 12 kernels 3×3, 4 groups: how many weights?
    grouped-corner         number    2      example D: the number at grad_input[0,1,0,0]
    grouped-multiplier     grid      2      depthwise, three kernels a channel: six gradients
    grouped-what-differs   choice    2      dense with zeros: which result has other numbers?
    grouped-which-sizes    choice    2      which layer shows channels dealt out like cards?
    grouped-forward        function  2      write forward(x, weight, groups): conv2d a group
    grouped-grad-input     function  3      write grad_input(grad_output, weight, geometry)
    grouped-picture        picture  1      filled blocks: how many weights?
    grouped-line           line     2      one block of the diagonal
    grouped-formula-learned formula  2      weights and biases of a grouped layer
    grouped-bug-mend       bug      3      right for depthwise alone: mend it

Chapter *The grouped weight gradient in one call* (``chapter="grouped_weight_gradient"``)

    onecall-where          number    1      example D: where stands x[1,3] on the axis of N·G?
    onecall-shape          grid      1      5 images, 12 channels, 3 groups: the image's shape
    onecall-table          grid      2      eight maps: which stands where after the transpose?
    onecall-when-harmless  choice    2      on which layer does the reshape alone do no harm?
    onecall-one-image      function  2      write grad_weight(grad_output, x, groups), N = 1
    onecall-any            function  3      write grad_weight(grad_output, x, geometry): one call
    onecall-formula-place  formula  2      where channel c of image n goes
    onecall-line           line     3      five axes in order

Chapter *From nn.Conv2d to convolution_backward* (``chapter="convolution_backward"``; tensors)

    backward-parameters    number    1      6 channels, 9 kernels 3×2, 3 groups: what is learned?
    backward-mask          grid      1      frozen weight, learning bias: which output_mask?
    backward-kept          grid      2      a circular border: the shape of _saved_input
    backward-only-a-shape  choice    2      other weights: which of the three gradients change?
    backward-kernel-heights number   2      stride 4, 12 rows in, 2 out: how many kernel heights?
    backward-weight-alone  function  2      write grad_weight(grad_output, x, weight_shape, how)
    backward-reflecting    choice    3      a reflecting border taken for zeros: what is right?
    backward-uneven        function  3      write backward(grad_output, x, weight, border, how)
    backward-formula-crop  formula  3      rows before the crop

Chapter *Your own autograd.Function* (``chapter="autograd_function"``; the functions get tensors)

    function-column        grid      1      example B: one window as a column
    function-how-many      number    1      how many values does backward return?
    function-kept          number    2      example F: how much larger are the columns than x?
    function-fold          grid      2      one row: what does fold make of wᵀ·g?
    function-needs         grid      2      two layers: what does needs_input_grad say?
    function-forward       function  2      write forward(x, weight, groups, how): unfold and mm
    function-unseen        choice    3      which mistake does gradcheck not see?
    function-backward      function  3      write backward(ctx, grad_output), nothing in vain
    function-bug           bug      2      from another library: which line?

Chapter *Approximate and second gradients* (``chapter="approximate_gradients"``)

    approx-top-two         number    1      example B: one tap from the two largest of g
    approx-factor          number    1      3 of 12 images drawn: which factor makes up for it?
    approx-cosine          number    2      half of a gradient kept: its cosine to the whole
    approx-on-average      choice    2      which of four rules is right on average?
    approx-penalty         grid      2      one row: the gradient of a penalty by the weights
    approx-kernel-signs    function  2      write signs(exact, grad_output, x, weight), of tensors
    approx-who-moves       choice    3      a loss made of grad_weight: which operands move?
    approx-second          function  3      write second(ggx, ggw, grad_output, x, weight, how)

Chapter *A museum of gradient bugs* (``chapter="museum"``)

    museum-counting        number    1      5000 ones, one by one, in float16: how many?
    museum-short           grid      1      no output_padding: [rows, columns] that are left
    museum-name-it         choice    2      digits of four channels: which mistake left them?
    museum-devices         number    2      a sum as the loss, averaged over four processes
    museum-which-law       choice    3      which exhibit passes four checks on fresh arrays?
    museum-wide-bias       function  2      write grad_bias(grad_output) for float16
    museum-judge           function  3      write right_ones(rules, geometry): a check of your own
    museum-picture         picture  2      how far did a gradient move?
    museum-line            line     2      copies on the border go home
    museum-break           test     3      write notices(grad_weight)

Chapter *Who owns which gradient element* (``chapter="owners"``)

    owner-programs         number    1      example D: how many programs gather?
    owner-number           grid      2      program 43: [group, o, r]
    owner-mask             grid      2      one tap on a border: which windows read nothing?
    owner-left             number    2      three programs add in turns: what is left?
    owner-program          function  2      write program(number, grad_output, x, geometry)
    owner-who-meets        choice    3      which way to cut the work needs atomics?
    owner-shares           function  3      write shares(grad_output, x, geometry, warps)

Chapter *Implicit GEMM* (``chapter="implicit_gemm"``)

    implicit-sizes         grid      1      example D: [rows, columns, terms] of one group
    implicit-per-number    number    1      a tile of 32×96: operations for each number loaded
    implicit-address       grid      2      example C: [n, h, v] of a number of X
    implicit-tiles         grid      2      how many programs, [forward, weight gradient]?
    implicit-load          function  2      write load(x, k, r, geometry): a block of X
    implicit-holes         choice    3      which input gradient multiplies most zeros?
    implicit-program       function  3      write program(number, G, X, M, N, K): one tile
    implicit-picture       picture  2      tiles that stick out: how many lanes?

Chapter *Split-K, atomics and why two runs differ* (``chapter="split_k"``)

    split-tiles            number    1      256 to 256 channels, 3×3: how many tiles of 128×128?
    split-three-digits     grid      1      2000, 6 and 6 in two orders, three digits
    split-which            choice    2      example F, 132 multiprocessors: into how many shares?
    split-workspace        grid      2      example F, 26 shares: bytes of the workspace
    split-order-counts     choice    2      for which shares can two runs differ?
    split-write-shares     function  2      write shares(grad_output, x, kernel_size, parts)
    split-same-bits        choice    3      what makes a training repeat to the last bit?
    split-write-order      function  3      write grad_weight(grad_output, x, geometry, order)
    split-bug              bug      2      the last products: which line?
    split-formula-programs formula  3      tiles times shares

Chapter *Where the time goes: tiles, waves, roofline, precision* (``chapter="where_time_goes"``)

    time-ridge             number    1      30.3 TFLOP/s, 0.3 TB/s: at how many operations a byte?
    time-tiles             number    1      from 32 to 96 channels: tiles of the weight gradient?
    time-waves             grid      2      five tiles in six shares on four: waves, empty places
    time-what-helps        choice    2      five tiles on 132 multiprocessors: which change helps?
    time-first-lost        number    2      which whole number can TF32 not hold?
    time-write-waves       function  2      write handed_out(...): tiles, programs, waves
    time-which-gains       choice    3      which of four layers gains all of float16?
    time-write-digits      function  3      write rounded(x, count): so many binary digits

Chapter *Many devices: the batch sum is an all-reduce* (``chapter="many_devices"``)

    devices-ring-sent      number    1      6000 weights, five devices: what does each send?
    devices-halo-rows      grid      1      5×5 kernel, two devices: rows that each borrows
    devices-mean-of-means  number    2      three images and two, a mean each, averaged
    devices-no-halo        choice    2      which kernel needs no row of the other device?
    devices-whole-mean     function  2      write of_the_batch(gradients, counts)
    devices-bring-home     function  3      write grad_input(parts, starts, H)
    devices-formula-ring   formula  3      what a device sends in a ring
    devices-formula-halo   formula  3      rows that two devices read
"""

from __future__ import annotations

from collections.abc import Iterator

from . import (
    approximate_gradients,
    autograd_function,
    bias_and_checks,
    convolution_backward,
    grouped,
    grouped_weight_gradient,
    im2col,
    implicit_gemm,
    input_gradient,
    many_devices,
    memory_and_speed,
    museum,
    of_breaking,
    of_bugs,
    of_formulas,
    of_lines,
    of_pictures,
    one_product,
    owners,
    progress,
    sliding_window,
    split_k,
    stride_padding_dilation,
    weight_gradient,
    where_time_goes,
    without_loops,
)
from .base import Asked, Choice, Exercise, Grid, Number, Verdict, WrongAnswer
from .breaking import BreakTheGradient
from .bugs import Bug, Mend
from .fence import NotByHand, by_hand
from .formula import Formula
from .functions import Function
from .lines import Line
from .pictures import Picture, PictureGrid

__all__ = [
    "Asked",
    "BreakTheGradient",
    "Bug",
    "Choice",
    "Exercise",
    "Formula",
    "Function",
    "Grid",
    "Line",
    "Mend",
    "NotByHand",
    "Number",
    "Picture",
    "PictureGrid",
    "Verdict",
    "WrongAnswer",
    "all_exercises",
    "by_hand",
    "get",
    "progress",
]

# The chapters in the order of the book, and the exercises of a kind, for all chapters.
_CHAPTERS = (
    sliding_window,
    stride_padding_dilation,
    one_product,
    weight_gradient,
    input_gradient,
    bias_and_checks,
    im2col,
    without_loops,
    memory_and_speed,
    grouped,
    grouped_weight_gradient,
    convolution_backward,
    autograd_function,
    approximate_gradients,
    museum,
    owners,
    implicit_gemm,
    split_k,
    where_time_goes,
    many_devices,
)
_KINDS = (of_pictures, of_lines, of_bugs, of_formulas, of_breaking)


def _in_order() -> Iterator[Exercise]:
    for chapter in _CHAPTERS:
        yield from chapter.EXERCISES
        name = chapter.EXERCISES[0].chapter
        for kind in _KINDS:
            yield from (each for each in kind.EXERCISES if each.chapter == name)


_BANK: dict[str, Exercise] = {exercise.key: exercise for exercise in _in_order()}


def get(key: str, seed: object = None) -> Exercise:
    """The exercise with this key.

    Parameters
    ----------
    key : str
        Its name for good, such as "weight-one-tap".
    seed : str or int, optional
        Draws numbers of a learner's own, the same ones whenever and wherever the seed is the
        same.  Without it the numbers are the book's.

    Returns
    -------
    Exercise

    Raises
    ------
    KeyError
        For another one, with the keys there are.

    Examples
    --------
    >>> get("weight-how-many").check(6)  # doctest: +NORMALIZE_WHITESPACE
    Not yet. That is one image's share.
    There are 2 images, and their shares add.
    >>> mine = get("museum-devices", seed="ada")
    >>> mine.prompt == get("museum-devices", seed="ada").prompt
    True
    """
    try:
        exercise = _BANK[key]
    except KeyError:
        raise KeyError(f"no exercise {key!r}: there are {', '.join(_BANK)}") from None
    return exercise if seed is None else exercise.drawn(seed)


def all_exercises(chapter: str | None = None, seed: object = None) -> tuple[Exercise, ...]:
    """All exercises in the order of the book, or those of one chapter.

    Parameters
    ----------
    chapter : str, optional
        Such as "weight_gradient", the name of its page.
    seed : str or int, optional
        As for :func:`get`.

    Returns
    -------
    tuple of Exercise

    Raises
    ------
    KeyError
        For a chapter without exercises.

    Examples
    --------
    >>> sorted({each.level for each in all_exercises("weight_gradient")})
    [1, 2, 3]
    """
    some = tuple(each for each in _BANK.values() if chapter in (None, each.chapter))
    if not some:
        chapters = dict.fromkeys(each.chapter for each in _BANK.values())
        raise KeyError(f"no chapter {chapter!r}: there are {', '.join(chapters)}")
    return some if seed is None else tuple(each.drawn(seed) for each in some)
