"""Knowing that a gradient is right, and saying in words what is wrong with one that is not.

Three tools, each in a module of its own:

* :mod:`convgrad.checks.laws` — what every right gradient obeys: the adjoint identity, the
  directional difference (exact, because convolution is bilinear), equality with the loops,
  and the plain duties of a good function (shape, dtype, operands untouched, any memory layout);
* :mod:`convgrad.checks.explain` — ``explain_difference``: the cause of a wrong gradient;
* :mod:`convgrad.checks.draws` — random geometries and operands that leave no mistake a corner
  to hide in.
"""

from .draws import Draw, one_thing_more, random_geometry, random_operands
from .explain import CAUSES, Explanation, explain_difference, matching_causes
from .laws import LAWS, Law, LawBroken, assert_adjoint, directional_difference

__all__ = [
    "CAUSES",
    "LAWS",
    "Draw",
    "Explanation",
    "Law",
    "LawBroken",
    "assert_adjoint",
    "directional_difference",
    "explain_difference",
    "matching_causes",
    "one_thing_more",
    "random_geometry",
    "random_operands",
]
