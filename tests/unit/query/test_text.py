"""Texts as arrays of words give what a loop over the texts gives."""

import random

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.plan import FUNCTIONS
from omnigraph.query.bm25 import SegmentView, TextIndex
from omnigraph.query.inverted_index import TextSegment
from tests.support.reference import text as reference

WORDS = (
    *("ship", "ships", "sail", "sailing", "the", "of", "port", "Ports", "tanker", "TANKERS"),
    *("cafe", "CAFÉ", "日本", "日本語", "Straße", "abc", "abcd", "abdc", "xyz", "3.14", "a"),
)
QUERIES = (*WORDS, "ship port", "ship ship", "tanker sails café", "the of", "", "unknown", "SHIPS")
MATCHERS = {name: FUNCTIONS[name].local.load() for name in ("search", "match_text", "fuzzy")}


def some_texts(seed, count=120):
    draw = random.Random(seed)
    return [
        None if draw.random() < 0.1 else " ".join(draw.choices(WORDS, k=draw.randrange(9)))
        for _ in range(count)
    ]


def in_parts(texts, seed):
    """Return texts that are spread over segments, which also hold texts that are gone."""
    draw = np.random.default_rng(seed)
    places = draw.permutation(len(texts))
    parts = []
    for some in np.array_split(places, 3):
        slots = draw.permutation([*some.tolist(), *[-1] * 7])
        column = ["ship of the port abc" if p < 0 else texts[p] for p in slots]
        parts.append(SegmentView(TextSegment.build([pa.array(column, pa.string())]), slots))
    return TextIndex(len(texts), tuple(parts))


def both_forms(seed):
    texts = some_texts(seed)
    return texts, (TextIndex.of(pa.array(texts, pa.string())), in_parts(texts, seed))


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_the_reference(seed):
    texts, forms = both_forms(seed)
    for query in QUERIES:
        expected = reference.bm25({str(n): text for n, text in enumerate(texts)}, query)
        for form in forms:
            scored = form.relevance(query)
            found = dict(zip(map(str, scored.positions), scored.scores.tolist(), strict=True))
            assert found == pytest.approx(expected, rel=1e-7), query


@pytest.mark.parametrize("seed", range(4))
def test_the_first_are_those_of_all_with_the_same_scores(seed):
    draw = random.Random(seed)
    _, forms = both_forms(seed)
    queries = [" ".join(draw.choices(WORDS, k=draw.randrange(5))) for _ in range(60)]
    for query in (*queries, "unknown ship"):
        for form in forms:
            everything = form.relevance(query)
            for count in (0, 1, 3, 10, 1000):
                found = form.first(query, count)
                best = np.sort(everything.scores)[::-1][:count]
                wanted = everything.scores >= best.min(initial=np.inf)
                assert set(everything.positions[wanted]) <= set(found.positions)
                assert found.scores.tolist() == everything.at(found.positions).tolist()
            for score in everything.scores[::7]:
                above = form.above(query, score)
                wanted = everything.positions[everything.scores >= score]
                assert set(wanted) <= set(above.positions)
                assert above.scores.tolist() == everything.at(above.positions).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_predicates_hold_where_the_reference_says(seed):
    texts, forms = both_forms(seed)
    draw = random.Random(seed)
    phrases = [" ".join(draw.choices(WORDS, k=draw.choice([1, 2, 3]))) for _ in range(40)]
    for query in (*QUERIES, *phrases, "abdd", "sh日p"):
        tests = {
            ("search", 2): reference.search,
            ("match_text", 2): reference.match_text,
            **{
                ("fuzzy", n): lambda text, query, n=n: reference.fuzzy(text, query, n)
                for n in (-1, 0, 1, 2, 5, 40)
            },
        }
        for (test, edits), judge in tests.items():
            expected = [text is not None and judge(text, query) for text in texts]
            for form in forms:
                assert form.holds(MATCHERS[test], query, edits).tolist() == expected, (test, query)


def test_the_order_of_words_in_a_query_changes_no_score():
    texts = TextIndex.of(pa.array(["abc ship port sail", "sail port", "ship abc", "port ship"]))
    one, other = texts.relevance("abc ship port sail"), texts.relevance("sail port ship abc")
    assert one.positions.tolist() == other.positions.tolist() == [0, 1, 2, 3]
    assert one.scores.tolist() == other.scores.tolist()


def test_no_texts_have_no_words():
    texts = TextIndex.of(pa.array([None, "", "the of"], pa.string()))
    assert texts.relevance("ship").positions.tolist() == []
    assert not texts.holds(MATCHERS["fuzzy"], "ship", 2).any()
    assert TextIndex.of(pa.array([], pa.string())).relevance("ship").positions.tolist() == []
