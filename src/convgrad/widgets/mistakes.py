"""The mistakes that can be told in a picture: a title for each, and what gives it away.

What a mistake does, and where it does not show, stands with it in :mod:`convgrad.mutants`.
"""

from __future__ import annotations

from ..mutants import MUTANTS

__all__ = ["MISTAKES", "described"]

# name: (title, what gives it away); by gradient, the plain ones first
MISTAKES: dict[str, tuple[str, str]] = {
    # grad_weight
    "wgrad_g_turned": (
        "g turned by 180° first",
        "Ones cannot see it: a grid of ones looks the same when it is turned. A random g can.",
    ),
    "wgrad_reversed": (
        "the result turned by 180°",
        "Every right number is there, at the place opposite through the middle of the kernel.",
    ),
    "wgrad_transposed": (
        "rows and columns of the taps exchanged",
        "Numbers on the diagonal stay; the others have changed places across it.",
    ),
    "wgrad_g_transposed": (
        "rows and columns of g exchanged",
        "With ones everything is right, and the sum over g is kept: only the pairing is wrong.",
    ),
    "wgrad_images_mixed": (
        "images paired with the wrong g",
        "It needs more than one image; with ones every image has the same g, and nothing shows.",
    ),
    "wgrad_no_transpose": (
        "kernels and channels exchanged",
        "The shape begins with the channels where the kernels belong.",
    ),
    "wgrad_no_crop": (
        "no crop",
        "The right gradient is there whole, in the upper left corner of a larger one.",
    ),
    "wgrad_ignores_padding": (
        "padding forgotten",
        "g slides over the bare image, so taps that reach onto the border meet the wrong cells.",
    ),
    "wgrad_shifted": (
        "shifted by the padding",
        "Each tap holds what another tap should: all read too far down and to the right.",
    ),
    "wgrad_zero_border": (
        "zeros on a border of copies",
        "Only what the border adds is missing; taps that never read it are right.",
    ),
    "swap_stride_dilation": (
        "stride and dilation not exchanged",
        "With stride 1 and dilation 1 it is right, which is how it gets through a quick test.",
    ),
    "wgrad_ignore_dilation": (
        "dilation ignored",
        "Tap (0, 0) is right; the further a tap lies from it, the further off it reads.",
    ),
    "wgrad_last_image": (
        "only the last image",
        "= instead of += in a loop: each number is one image's share.",
    ),
    "wgrad_batch_mean": (
        "mean over the images",
        "Every number is too small by the same factor, the number of images.",
    ),
    "wgrad_position_mean": (
        "mean over the positions",
        "Every number is too small by the same factor, the number of output cells.",
    ),
    "group_interleaved": (
        "groups dealt like cards",
        "The channels that stay in their group are right; the others are another group's.",
    ),
    "depthwise_mod": (
        "group o mod G for kernel o",
        "Whole kernels are right and whole kernels are wrong, and the first is right.",
    ),
    # grad_input
    "dgrad_no_flip": (
        "the kernel not turned",
        "It is what a plain sliding of the kernel over g gives, as in the forward pass.",
    ),
    "dgrad_g_turned": (
        "g turned instead of the kernel",
        "Ones cannot see it. The picture is the right one's, made from g back to front.",
    ),
    "col2im_assign": (
        "overlap lost",
        "Cells that one tap alone reads are right, the corners first; where taps meet, one wins.",
    ),
    "avg_fold": (
        "averaged over the overlap",
        "Cells that one tap alone reads are right; the others are divided by how many read them.",
    ),
    "dgrad_shifted": (
        "cut at the wrong corner",
        "Row by row the right numbers, moved down and to the right by the padding.",
    ),
    "same_pad_left": (
        "uneven padding on the wrong side",
        "The right picture moved by one: the larger half of the padding went to the other side.",
    ),
    "dgrad_border_lost": (
        "the border's share cut off",
        "The middle is right; cells that were copied to the border lack what their copies got.",
    ),
    "dgrad_no_leftover": (
        "leftover rows missing",
        "All numbers are right, but rows or columns at the end, which no window reads, are gone.",
    ),
    "buffer_prefilled": (
        "cells that no window reads not zero",
        "Everything is right but the unread cells, which hold a number from nowhere.",
    ),
    "ignore_dilation": (
        "dilation ignored",
        "The result is too small: it has the size that a kernel without gaps would have seen.",
    ),
    "group_transpose_flat": (
        "channels exchanged across the groups",
        "With one group it is right. With more, kernels give their share to another group's image.",
    ),
    "dgrad_last_kernel": (
        "only the last kernel",
        "= instead of += in a loop: each number is one kernel's share.",
    ),
    # grad_bias
    "bias_axes_012": (
        "summed over the wrong axes",
        "It has as many numbers as the output has columns, not as there are kernels.",
    ),
    "bias_batch_mean": (
        "mean over the images",
        "Every number is too small by the same factor, the number of images.",
    ),
    "bias_position_mean": (
        "mean over the positions",
        "Every number is too small by the same factor, the number of output cells.",
    ),
}


def described(name: str) -> dict[str, str]:
    """A mistake in words, as the browser needs it."""
    title, tell = MISTAKES[name]
    mutant = MUTANTS[name]
    return {
        "name": name,
        "target": mutant.target,
        "title": title,
        "sentence": mutant.sentence,
        "tell": tell,
        "hides": mutant.hides,
    }
