"""The exhibits of *A museum of gradient bugs*: what goes wrong, how it shows, what catches it.

The page's list and its plates are both made of this table, and a test ties each exhibit to its
section, its reports and its case among the tests.  An exhibit whose mistake is one of the
``MUTANTS`` is caught by that mutant's law; for the others the table says what catches them.

>>> [exhibit.key for exhibit in EXHIBITS if exhibit.kind == "shape"]
['crop', 'leftover', 'squeeze']
>>> exhibit("dealt").title
'Channels dealt like cards'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .checks import LAWS, random_geometry
from .mutants import MUTANTS

__all__ = ["CATCHERS", "EXHIBITS", "KINDS", "Exhibit", "exhibit", "noticed_by"]

# Every kind of mistake, in the words of the list.
KINDS = {
    "shape": "wrong shape",
    "silent": "silent wrong number",
    "precision": "precision",
    "lost": "lost gradient",
    "distributed": "many devices",
}

# Every check that catches an exhibit, in the words of the list.  The first ones are laws of
# convgrad.checks, by their names there.
CATCHERS = {
    "shape": "shape",
    "equals_loops": "loops",
    "adjoint": "adjoint",
    "memory_layout": "memory layout",
    "operands_untouched": "operands untouched",
    "dtype": "dtype",
    "wide_sums": "wide sums",
    "infinity": "infinity",
    "one_alone": "one image alone",
    "second": "second derivative",
    "all_arrive": "every gradient asked for",
    "one_process": "one process",
}


@dataclass(frozen=True)
class Exhibit:
    """One mistake that somebody made and reported.

    Attributes
    ----------
    key : str
        Its name for good: the section of the page is ``museum-<key>``.
    title : str
        The heading of its section.
    targets : tuple of str
        The gradients that go wrong: "weight", "input", "bias".
    kind : str
        A key of ``KINDS``.
    library : str
        Where it was seen.
    reports : tuple of str
        The public reports, by their keys in ``book/references.bib``.
    case : str
        The id of its case in ``tests/cases/conv_cases.json``.
    chapter : str
        The page of the book that explains it.
    mutant : str or None
        The mistake as a function, a key of ``MUTANTS``, where it can be one.
    catcher : str
        What catches it, a key of ``CATCHERS``; for a mutant it is the mutant's law.

    Examples
    --------
    >>> dealt = exhibit("dealt")
    >>> dealt.targets, dealt.kind, dealt.caught_by
    (('weight',), 'silent', 'adjoint')
    """

    key: str
    title: str
    targets: tuple[str, ...]
    kind: str
    library: str
    reports: tuple[str, ...]
    case: str
    chapter: str
    mutant: str | None = None
    catcher: str = ""

    @property
    def caught_by(self) -> str:
        """What catches it, a key of ``CATCHERS``."""
        return MUTANTS[self.mutant].killed_by if self.mutant else self.catcher


EXHIBITS: tuple[Exhibit, ...] = (
    # ---- the shape is wrong -----------------------------------------------------------------
    Exhibit(
        key="crop",
        title="Taps that do not exist",
        targets=("weight",),
        kind="shape",
        library="Burn",
        reports=("burn1891",),
        case="depthwise-stride2-by-hand",
        chapter="part2/weight_gradient",
        mutant="wgrad_no_crop",
    ),
    Exhibit(
        key="leftover",
        title="Three columns short",
        targets=("input",),
        kind="shape",
        library="Burn",
        reports=("burn4806",),
        case="leftover-dgrad-three-cols",
        chapter="part2/input_gradient",
        mutant="dgrad_no_leftover",
    ),
    Exhibit(
        key="squeeze",
        title="The axis that was squeezed away",
        targets=("bias",),
        kind="shape",
        library="a forum",
        reports=("discuss120221",),
        case="bias-squeeze-one-channel",
        chapter="part2/bias_and_checks",
        mutant="bias_squeeze",
    ),
    # ---- the shape is right, the numbers are not --------------------------------------------
    Exhibit(
        key="swapped",
        title="Stride and dilation in their old places",
        targets=("weight",),
        kind="silent",
        library="IREE",
        reports=("ireeturbine1223",),
        case="stride-dilation-swapped",
        chapter="part2/weight_gradient",
        mutant="swap_stride_dilation",
    ),
    Exhibit(
        key="dealt",
        title="Channels dealt like cards",
        targets=("weight",),
        kind="silent",
        library="PyTorch",
        reports=("pytorch51430",),
        case="groups-interleaved-wgrad",
        chapter="part4/grouped_weight_gradient",
        mutant="group_interleaved",
    ),
    Exhibit(
        key="shares",
        title="Somebody else's share",
        targets=("weight",),
        kind="silent",
        library="Opacus",
        reports=("opacus245",),
        case="per-sample-batch-times-groups",
        chapter="part4/grouped_weight_gradient",
        catcher="one_alone",
    ),
    Exhibit(
        key="exchanged",
        title="Exchanged across the groups",
        targets=("input",),
        kind="silent",
        library="MLX",
        reports=("mlx2495", "mlx3800"),
        case="grouped-strided-dgrad",
        chapter="part4/grouped",
        mutant="group_transpose_flat",
    ),
    Exhibit(
        key="overlap",
        title="One product for each address",
        targets=("input",),
        kind="silent",
        library="autograd, NumPy",
        reports=("autograd39", "numpy7776"),
        case="fancy-index-plus-equals",
        chapter="part3/im2col",
        mutant="fancy_plus_equals",
    ),
    Exhibit(
        key="stale",
        title="What the memory held before",
        targets=("input",),
        kind="silent",
        library="MIOpen, Composable Kernel",
        reports=("miopen566", "ck105"),
        case="stride-gt-kernel-uninitialised",
        chapter="part1/stride_padding_dilation",
        mutant="buffer_prefilled",
    ),
    Exhibit(
        key="even",
        title="The wrong side of an even kernel",
        targets=("input",),
        kind="silent",
        library="Burn, Opacus",
        reports=("burn2676", "opacus451"),
        case="same-even-kernel",
        chapter="part1/stride_padding_dilation",
        mutant="same_pad_left",
    ),
    Exhibit(
        key="circular",
        title="Wrapped around the other axis",
        targets=("input",),
        kind="silent",
        library="PyTorch",
        reports=("pytorch37844",),
        case="circular-pad-axis-order",
        chapter="part1/stride_padding_dilation",
        mutant="circular_axis_swapped",
    ),
    Exhibit(
        key="axes",
        title="The axes of another layout",
        targets=("bias",),
        kind="silent",
        library="Deeplearning4j",
        reports=("dl4j8280",),
        case="bias-axes-square-trap",
        chapter="part2/bias_and_checks",
        mutant="bias_axes_012",
    ),
    Exhibit(
        key="view",
        title="Read on as if nothing lay between",
        targets=("weight",),
        kind="silent",
        library="PyTorch, own kernels",
        reports=("pytorch194719", "pytorch64529"),
        case="upstream-from-cat",
        chapter="part5/autograd_function",
        mutant="assume_contiguous_gy",
    ),
    Exhibit(
        key="turned-kernel",
        title="A kernel that is a view",
        targets=("input",),
        kind="silent",
        library="Candle",
        reports=("candle3735",),
        case="weight-transposed-view",
        chapter="part3/without_loops",
        mutant="ravel_weight",
    ),
    Exhibit(
        key="overwritten",
        title="The image, overwritten",
        targets=("weight",),
        kind="silent",
        library="NumPy",
        reports=("numpy29677",),
        case="write-through-window-view",
        chapter="part3/without_loops",
        mutant="write_through_view",
    ),
    # ---- the numbers of the machine ---------------------------------------------------------
    Exhibit(
        key="counting",
        title="Two hundred and fifty-six, and not one more",
        targets=("bias",),
        kind="precision",
        library="PyTorch",
        reports=("pytorch68048",),
        case="bias-of-many-ones-in-bfloat16",
        chapter="part2/bias_and_checks",
        catcher="wide_sums",
    ),
    Exhibit(
        key="half",
        title="Image after image in sixteen bits",
        targets=("weight",),
        kind="precision",
        library="MIOpen, Composable Kernel",
        reports=("rocm5859", "rocm8029"),
        case="half-accumulated-per-sample",
        chapter="part2/bias_and_checks",
        mutant="fp16_running_sum",
    ),
    Exhibit(
        key="infinity",
        title="Nothing times infinity",
        targets=("input",),
        kind="precision",
        library="PyTorch",
        reports=("pytorch165744",),
        case="inf-weight-meets-inserted-zeros",
        chapter="part2/input_gradient",
        mutant="dgrad_dilated_multiply",
    ),
    Exhibit(
        key="integers",
        title="Fractions cut off",
        targets=("input",),
        kind="precision",
        library="NumPy",
        reports=("numpy16578",),
        case="integer-input-truncates",
        chapter="part2/one_product",
        mutant="zeros_like_int",
    ),
    # ---- a gradient does not arrive ---------------------------------------------------------
    Exhibit(
        key="columns",
        title="The derivative nobody saw",
        targets=("weight", "input"),
        kind="lost",
        library="PyTorch",
        reports=("pytorch58509",),
        case="double-backward",
        chapter="part5/autograd_function",
        catcher="second",
    ),
    Exhibit(
        key="checkpoint",
        title="A first layer that never learns",
        targets=("weight", "bias"),
        kind="lost",
        library="PyTorch",
        reports=("pytorch7617", "memonger4"),
        case="first-layer-in-a-checkpoint",
        chapter="part5/autograd_function",
        catcher="all_arrive",
    ),
    Exhibit(
        key="none",
        title="None where a tensor was expected",
        targets=("input",),
        kind="lost",
        library="PyTorch",
        reports=("pytorch142058",),
        case="needs-input-grad-false",
        chapter="part5/autograd_function",
        catcher="all_arrive",
    ),
    # ---- many devices -----------------------------------------------------------------------
    Exhibit(
        key="halves",
        title="Two halves, joined along the wrong axis",
        targets=("input",),
        kind="distributed",
        library="PyTorch",
        reports=("pytorch191926",),
        case="two-halves-of-the-width",
        chapter="part6/many_devices",
        catcher="one_process",
    ),
    Exhibit(
        key="averaged",
        title="A sum that was averaged",
        targets=("weight", "bias"),
        kind="distributed",
        library="PyTorch, fairseq, SparseML",
        reports=("pytorch42471", "fairseq494", "sparseml135"),
        case="batch-on-two-devices",
        chapter="part6/many_devices",
        catcher="one_process",
    ),
)


def exhibit(key: str) -> Exhibit:
    """The exhibit with this key.

    Parameters
    ----------
    key : str
        Such as "dealt", the name of its section without "museum-".

    Returns
    -------
    Exhibit

    Raises
    ------
    KeyError
        For another one, with the keys there are.

    Examples
    --------
    >>> exhibit("counting").library
    'PyTorch'
    """
    for each in EXHIBITS:
        if each.key == key:
            return each
    raise KeyError(f"no exhibit {key!r}: there are {', '.join(each.key for each in EXHIBITS)}")


def noticed_by(name: str, draws: int = 3, seed: int = 0) -> dict[str, bool]:
    """Which laws a mistake breaks, found by trying them all.

    Parameters
    ----------
    name : str
        A key of ``MUTANTS``.
    draws : int, default 3
        On how many random convolutions each law is tried; the mistake shows on all of them.
    seed : int, default 0
        The same seed draws the same convolutions.

    Returns
    -------
    dict
        By the name of the law, whether the mistake broke it at least once; an error counts.

    Examples
    --------
    >>> found = noticed_by("assume_contiguous_gy")
    >>> [law for law, noticed in found.items() if noticed]
    ['memory_layout']
    """
    mutant, rng = MUTANTS[name], np.random.default_rng(seed)
    sizes = [random_geometry(rng, mutant.shows) for _ in range(draws)]

    def broken(law: str) -> Iterator[bool]:
        for number, geometry in enumerate(sizes):
            try:
                with np.errstate(all="ignore"):
                    LAWS[law].check(mutant, mutant.target, geometry, np.random.default_rng(number))
                yield False
            except Exception:  # an error of its own gives the mistake away too
                yield True

    return {law: any(broken(law)) for law in LAWS}
