"""The glossary: every word once, in a sentence or two, with links that lead somewhere."""

from __future__ import annotations

import re

import pytest
from pages import BOOK

TEXT = (BOOK / "glossary.md").read_text("utf-8")


def entries() -> dict[str, str]:
    """Every term with its explanation on one line."""
    (block,) = re.findall(r"```\{glossary\}\n:sorted:\n\n(.*?)```", TEXT, re.S)
    found: dict[str, str] = {}
    for entry in block.strip().split("\n\n"):
        term, *lines = entry.split("\n")
        assert term not in found, f"{term} is explained twice"
        assert all(line.startswith("  ") for line in lines), entry
        found[term] = " ".join(line.strip() for line in lines)
    return found


ENTRIES = entries()


@pytest.mark.parametrize("term", ENTRIES)
def test_a_word_is_explained_in_a_few_sentences(term):
    words = ENTRIES[term]
    assert words.endswith("."), words
    assert "$" not in words, "a formula here would load the fonts of all formulas"
    plain = re.sub(r"`[^`]*`", "x", words)
    sentences = re.findall(r"[.?!](?:\s|$)", plain)
    assert 1 <= len(sentences) <= 5, words
    assert len(plain.split()) <= 60, words


@pytest.mark.parametrize("page", sorted(set(re.findall(r"\{doc\}`([^`]+)`", TEXT))))
def test_a_link_leads_to_a_page(page):
    assert (BOOK / f"{page}.md").is_file()


def test_the_words_of_the_notation_are_explained():
    notation = (BOOK / "notation.md").read_text("utf-8")
    words = re.findall(r"^\*\*([A-Z][a-z ]+)\.\*\*", notation.split("## Words")[1], re.M)
    assert len(words) >= 8
    assert {word.lower() for word in words} <= set(ENTRIES)


@pytest.mark.parametrize(
    "word", ["wgrad", "dgrad", "fprop", "thnn", "col2im", "im2col", "cuDNN", "filter", "vjp"]
)
def test_the_names_that_others_use_are_there(word):
    assert word in ENTRIES


def test_the_letters_of_gpu_libraries_are_translated():
    assert "`OH` and `OW`" in ENTRIES["P, Q"]
    assert "`KH` and `KW`" in ENTRIES["R, S"]
    assert "our `O`" in ENTRIES["K"]


def test_what_a_chapter_calls_by_a_new_name_is_explained():
    """The words in italics that a chapter of this part introduces."""
    for page, terms in {
        "grouped": ["group", "dense", "block-diagonal", "depthwise", "channel multiplier"],
        "grouped_weight_gradient": ["share"],
    }.items():
        text = (BOOK / "part4" / f"{page}.md").read_text("utf-8")
        for term in terms:
            assert f"*{term}*" in text, (page, term)
            assert term in ENTRIES
