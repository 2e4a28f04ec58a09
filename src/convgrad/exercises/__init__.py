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

Chapter *Your own autograd.Function* (``chapter="autograd_function"``; the functions get tensors)

    function-column        grid      1      example B: one window as a column
    function-how-many      number    1      how many values does backward return?
    function-kept          number    2      example F: how much larger are the columns than x?
    function-fold          grid      2      one row: what does fold make of wᵀ·g?
    function-needs         grid      2      two layers: what does needs_input_grad say?
    function-forward       function  2      write forward(x, weight, groups, how): unfold and mm
    function-unseen        choice    3      which mistake does gradcheck not see?
    function-backward      function  3      write backward(ctx, grad_output), nothing in vain
"""

from __future__ import annotations

from . import autograd_function, sliding_window, weight_gradient
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
    for module in (sliding_window, weight_gradient, autograd_function)
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
