"""The search answers in the words that people use, not only in those of the book."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# What somebody may type, and the page that tells of it.
ASKED = {
    "dW": "part2/weight_gradient",
    "weight gradient": "part2/weight_gradient",
    "grad_weight": "part2/weight_gradient",
    "filter gradient": "part2/weight_gradient",
    "wgrad": "part2/weight_gradient",
    "conv2d_weight": "part2/weight_gradient",
    "dX": "part2/input_gradient",
    "dgrad": "part2/input_gradient",
    "rotate 180": "part2/input_gradient",
    "flipped kernel": "part2/input_gradient",
    "deconvolution": "part2/input_gradient",
    "conv_transpose2d": "part2/input_gradient",
    "flip": "part1/sliding_window",
    "cross-correlation": "part1/sliding_window",
    "same padding": "part1/stride_padding_dilation",
    "checkerboard": "part1/stride_padding_dilation",
    "im2col": "part3/im2col",
    "unfold": "part3/im2col",
    "col2im": "part3/im2col",
    "thnn_conv2d_backward": "part3/im2col",
    "as_strided": "part3/without_loops",
    "arithmetic intensity": "part3/memory_and_speed",
    "depthwise": "part4/grouped",
    "per-sample gradients": "part4/grouped_weight_gradient",
    "grouped weight gradient": "part4/grouped_weight_gradient",
    "torch.nn.grad": "part5/convolution_backward",
    "custom backward": "part5/autograd_function",
    "gradcheck": "part5/autograd_function",
    "straight-through": "part5/approximate_gradients",
    "double backward": "part5/approximate_gradients",
    "bias gradient": "part2/bias_and_checks",
    "numerical gradient": "part2/bias_and_checks",
    "atomics": "part6/owners",
    "implicit gemm": "part6/implicit_gemm",
    "nondeterminism": "part6/split_k",
    "TF32": "part6/where_time_goes",
    "DDP": "part6/many_devices",
}


# On the page of one search, the next: loading the page and its index takes longer than searching.
SEARCH = """(words) => {
  document.querySelector("#search-results").replaceChildren();
  Search.performSearch(words);
}"""


def test_words_lead_to_their_chapter(visit):
    tab, lost = visit(), {}
    first, *others = ASKED
    view = tab.goto(f"search.html?q={first.replace(' ', '+')}", settle=False)
    for words, chapter in ASKED.items():
        if words in others:
            view.evaluate(SEARCH, words)
        view.locator("#search-results > p").filter(has_text="finished").wait_for()
        links = view.locator("#search-results ul.search > li > a").all()[:3]
        found = [link.get_attribute("href").partition(".html")[0] for link in links]
        if f"book/{chapter}" not in found:
            lost[words] = found
    assert not lost
    view.wait_for_load_state("networkidle")  # the excerpts are fetched one by one
    tab.assert_clean()


def test_the_index_leads_to_the_place(visit):
    view = visit(width=320).goto("genindex.html", settle=False)
    assert view.evaluate("() => document.documentElement.scrollWidth") == 320
    rights = view.locator(".indextable a").evaluate_all(
        "(links) => links.map((link) => link.getBoundingClientRect().right)"
    )
    assert len(rights) > 100 and max(rights) <= 320
    assert view.get_by_text("!", exact=False).count() == 0, "the mark of a main entry is no word"
    view.get_by_role("link", name="straight-through estimator").click()
    view.wait_for_url("**/book/part5/approximate_gradients.html#straight-through")
    heading = view.get_by_role("heading", name="Straight through")
    expect(heading).to_be_in_viewport()


@pytest.mark.parametrize("width", [320, 1280])
def test_an_answer_is_whole_on_a_phone_too(visit, axe, width):
    tab = visit(width=width)
    view = tab.goto("search.html?q=wgrad", settle=False)
    view.locator("#search-results li a").first.wait_for()
    assert view.evaluate("() => document.documentElement.scrollWidth") == width
    assert not axe(view.locator("#search-results"))
    tab.assert_clean()
