"""conv2d in PyTorch with a backward pass that can be read, chosen, and exchanged.

    from convgrad.autograd import Conv2d, compare_gradients, conv2d, sign

    y = conv2d(x, weight, bias, padding=1, implementation="unfold")   # forward as F.conv2d
    y.backward(grad_output)                                           # back by unfold + mm

    layer = Conv2d(64, 128, 3, padding=1, rule=sign)                  # an approximate gradient
    print(compare_gradients(x, weight, bias, rule=sign))              # how far off it is

``arithmetic`` has the ways of computing, ``rules`` what can take the exact gradient's place,
``function`` the step of autograd, ``module`` the layer, ``compare`` the comparison; ``calls`` tells
which operations PyTorch calls, ``layers`` examines a layer of PyTorch's own, and ``training`` has a
small network to try a rule on.
"""

from .arithmetic import IMPLEMENTATIONS, Gradients
from .calls import Calls, calls
from .compare import Comparison, Gap, compare_gradients
from .function import Conv2dFunction, conv2d, gradients
from .layers import Examined, examine
from .module import Conv2d
from .rules import (
    Rule,
    quantised,
    random_taps,
    sign,
    straight_through,
    subsampled_batch,
    top_k,
)
from .training import Training, stripes, train

__all__ = [
    "IMPLEMENTATIONS",
    "Calls",
    "Comparison",
    "Conv2d",
    "Conv2dFunction",
    "Examined",
    "Gap",
    "Gradients",
    "Rule",
    "Training",
    "calls",
    "compare_gradients",
    "conv2d",
    "examine",
    "gradients",
    "quantised",
    "random_taps",
    "sign",
    "straight_through",
    "stripes",
    "subsampled_batch",
    "top_k",
    "train",
]
