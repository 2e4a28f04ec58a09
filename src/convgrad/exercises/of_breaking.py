"""Write the test: exercises that are graded by what it notices."""

from __future__ import annotations

from .base import Exercise
from .breaking import BreakTheGradient

__all__ = ["EXERCISES"]

_of_input = BreakTheGradient(
    key="check-break",
    chapter="bias_and_checks",
    level=2,
    title="Break the input gradient",
    prompt=(
        "Write a test of input gradients. `notices(grad_input)` gets a function that is called as "
        "`grad_input(grad_output, weight, geometry)` and should return an array of "
        "`geometry.x_shape`. Return `True` where something is wrong with it, and `False` where "
        "nothing is. It is tried on right gradients, at which it must be quiet, and on wrong ones, "
        "of which it should notice three quarters. `random_geometry(rng)` and "
        "`random_operands(geometry, rng)` from `convgrad.checks` draw for you."
    ),
    starter=('def notices(grad_input):\n    """True where something is wrong"""\n    ...'),
    hints=(
        "You need something right to compare with: another implementation, or a law. "
        '`IMPLEMENTATIONS["loops"].grad_input` is right.',
        "Which sizes make all of stride, dilation, border, groups and batch count? Draw many "
        "geometries rather than one.",
        "A random `grad_output`, never ones. Whole numbers in float64, so that equal means equal.",
        "Look at the shape before the numbers.",
    ),
    target="input",
    share=0.75,
    explanation="Random sizes and random numbers find most of what can go wrong.",
    solution=(
        "from convgrad import IMPLEMENTATIONS\n"
        "from convgrad.checks import random_geometry, random_operands\n"
        "\n\n"
        "def notices(grad_input):\n"
        "    rng = np.random.default_rng(0)\n"
        "    for _ in range(60):\n"
        "        geometry = random_geometry(rng)\n"
        "        _, _, weight, g = random_operands(geometry, rng)\n"
        '        right = IMPLEMENTATIONS["windows"].grad_input(g, weight, geometry)\n'
        "        if not np.array_equal(grad_input(g, weight, geometry), right):\n"
        "            return True\n"
        "    return False"
    ),
)

_of_weight = BreakTheGradient(
    key="museum-break",
    chapter="museum",
    level=3,
    title="Break the weight gradient",
    prompt=(
        "Write a test that lets no exhibit pass. `notices(grad_weight)` gets a function that is "
        "called as `grad_weight(grad_output, x, geometry)`. Return `True` where something is wrong "
        "with it. It must be quiet at right gradients, and notice nine in ten of the wrong ones; "
        "some of them are right on ordinary arrays. A list of such functions will do as well."
    ),
    starter=('def notices(grad_weight):\n    """True where something is wrong"""\n    ...'),
    hints=(
        "Begin with random geometries, all padding modes, and whole numbers. Some are left over.",
        "What may a function not do to the arrays that it is given?",
        "How can two arrays be equal in every cell and lie differently in memory?",
        "Half precision ends at 65504. And what is an empty batch?",
    ),
    target="weight",
    share=0.9,
    explanation="What passes this test is hardly wrong.",
    solution=(
        "from convgrad import checks, windows\n"
        "\n\n"
        "def notices(grad_weight):\n"
        "    for rng in map(np.random.default_rng, range(80)):\n"
        "        geometry = checks.random_geometry(rng)\n"
        "        _, x, _, g = checks.random_operands(geometry, rng)\n"
        "        right = windows.grad_weight(g, x, geometry)\n"
        "        for each in (g, np.repeat(g, 2, axis=1)[:, ::2]):  # in other memory\n"
        "            found = grad_weight(each, given := x.copy(), geometry), given\n"
        "            if not all(map(np.array_equal, found, (right, x))):\n"
        "                return True\n"
        "    return False"
    ),
)


EXERCISES: tuple[Exercise, ...] = (_of_input, _of_weight)
