"""Texts are cut in bulk exactly as they are one by one."""

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.storage.text_analyzer import TextAnalyzer, tokenize_text

POOL = (
    *("ship", "Ships", "the", "of", "a", "running", "café", "CAFÉ", "日本", "日本語", "Straße"),
    *("naïve", "foo_bar", "don't", "3.14", "e\u0301", "ﬁne", "x" * 39, "y" * 40, "é" * 20, "½"),
    *("İstanbul", "ΣΑΣ", "²", "Ⅷ", "a\u200db", "🚢", "हिन्दी", "กิ", "\0", "١٢٣", "ª", "Ⓐ", "ŉ"),
)


def cut(analyser, texts):
    """Return the words of each text with their distance from its first word."""
    stems, rows, places = analyser.cut(pa.array(texts, pa.string()))
    names = list(analyser.stems)
    found = [[] for _ in texts]
    for stem, row, place in zip(stems, rows, places, strict=True):
        found[row].append((names[stem], int(place)))
    return [[(word, place - one[0][1]) for word, place in one] for one in found]


def one_by_one(texts):
    return [[] if text is None else list(tokenize_text(text)) for text in texts]


def test_words_of_many_scripts_are_cut_as_one_by_one():
    draw = random.Random(3)
    separators = (" ", "  ", "-", ", ", "", "\n")
    texts = [
        "".join(draw.choice(POOL) + draw.choice(separators) for _ in range(draw.randrange(8)))
        for _ in range(1000)
    ]
    assert cut(TextAnalyzer(), [*texts, None, ""]) == one_by_one([*texts, None, ""])


@given(st.lists(st.none() | st.text(max_size=12), max_size=6))
def test_any_text_is_cut_as_one_by_one(texts):
    assert cut(TextAnalyzer(), texts) == one_by_one(texts)


def test_what_was_learned_from_earlier_texts_changes_nothing():
    analyser = TextAnalyzer()
    cut(analyser, ["The ships, 日本 ½", "naïve"])
    assert cut(analyser, ["a naïve ship½ of 日本語"]) == one_by_one(["a naïve ship½ of 日本語"])


def test_slices_of_a_column_are_cut_by_themselves():
    column = pa.array(["a ship", None, "ports of call", "日本"])
    stems, rows, _ = TextAnalyzer().cut(column[2:])
    assert (len(stems), rows.tolist()) == (3, [0, 0, 1])
