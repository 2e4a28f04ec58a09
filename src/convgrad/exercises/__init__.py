"""The exercise bank: questions whose answers the package computes, checked with explanations.

    from convgrad import exercises
    exercises.get("weight-one-pixel").check(my_grid)

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

Chapter *Grouped and depthwise convolution* (``chapter="grouped"``)

    grouped-channel        number    1      example E: which channel lies under weight[2,5]?
    grouped-weights        number    1      8 channels, 12 kernels 3×3, 4 groups: how many weights?
    grouped-corner         number    2      example D: the number at grad_input[0,1,0,0]
    grouped-multiplier     grid      2      depthwise, three kernels a channel: six gradients
    grouped-what-differs   choice    2      dense with zeros: which result has other numbers?
    grouped-which-sizes    choice    2      which layer shows channels dealt out like cards?
    grouped-forward        function  2      write forward(x, weight, groups): conv2d a group
    grouped-grad-input     function  3      write grad_input(grad_output, weight, geometry)

Chapter *The grouped weight gradient in one call* (``chapter="grouped_weight_gradient"``)

    onecall-where          number    1      example D: where stands x[1,3] on the axis of N·G?
    onecall-shape          grid      1      5 images, 12 channels, 3 groups: the image's shape
    onecall-table          grid      2      eight maps: which stands where after the transpose?
    onecall-when-harmless  choice    2      on which layer does the reshape alone do no harm?
    onecall-one-image      function  2      write grad_weight(grad_output, x, groups), N = 1
    onecall-any            function  3      write grad_weight(grad_output, x, geometry): one call
"""

from __future__ import annotations

from . import grouped, grouped_weight_gradient, sliding_window, weight_gradient
from .base import Choice, Exercise, Grid, Number, Verdict, WrongAnswer
from .functions import Function

__all__ = [
    "Choice",
    "Exercise",
    "Function",
    "Grid",
    "Number",
    "Verdict",
    "WrongAnswer",
    "all_exercises",
    "get",
]

_BANK: dict[str, Exercise] = {
    exercise.key: exercise
    for module in (sliding_window, weight_gradient, grouped, grouped_weight_gradient)
    for exercise in module.EXERCISES
}


def get(key: str) -> Exercise:
    """The exercise with this key.

    Parameters
    ----------
    key : str
        Its name for good, such as "weight-one-tap".

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
    """
    try:
        return _BANK[key]
    except KeyError:
        raise KeyError(f"no exercise {key!r}: there are {', '.join(_BANK)}") from None


def all_exercises(chapter: str | None = None) -> tuple[Exercise, ...]:
    """All exercises in the order of the book, or those of one chapter.

    Parameters
    ----------
    chapter : str, optional
        Such as "weight_gradient", the name of its page.

    Returns
    -------
    tuple of Exercise

    Raises
    ------
    KeyError
        For a chapter without exercises.

    Examples
    --------
    >>> [exercise.level for exercise in all_exercises("weight_gradient")]
    [1, 1, 2, 2, 2, 2, 2, 3, 3]
    """
    some = tuple(each for each in _BANK.values() if chapter in (None, each.chapter))
    if not some:
        chapters = dict.fromkeys(each.chapter for each in _BANK.values())
        raise KeyError(f"no chapter {chapter!r}: there are {', '.join(chapters)}")
    return some
