"""What Lance's full-text search does with an index, with part of one, and with none.

Only a full, fresh index gives the answers our page promises: the words of `lance.tokenize`, BM25
over all documents. Everything else differs: without an index words are compared as they stand, a
tail the index does not cover is scored by other statistics and never searched fuzzily, deleted
rows are still counted. As an index must not change an answer, an engine may take candidates from
it, but has to decide and score by itself; `lance.tokenize` gives it the words.
"""

import random

import lance
import pyarrow as pa
import pytest
from lance.query import MatchQuery, PhraseQuery

from tests.support.reference import text as reference

WORDS = [
    *("ship", "ships", "sail", "sailing", "the", "of", "a", "port", "Ports", "tanker", "tankers"),
    *("TANKERS", "brown", "cafe", "café", "CAFÉ", "日本", "日本語", "out", "Straße", "naïve"),
    *("a1b2", "foo_bar", "don't", "abc", "abcd", "abdc", "xyz", "3.14", "running", "runs"),
]


def create(path, texts, *, index=True, position=True):
    ids = [str(number) for number in range(len(texts))]
    table = pa.table({"id": ids, "text": pa.array(texts, pa.string())})
    handle = lance.write_dataset(table, str(path))
    if index:
        handle.create_scalar_index("text", "INVERTED", with_position=position)
    return lance.dataset(str(path))


def found(handle, query, **options):
    columns = ["id", "_score"]
    rows = handle.to_table(full_text_query=query, columns=columns, **options).to_pylist()
    return {row["id"]: row["_score"] for row in rows}


def match(words, **options):
    return MatchQuery(words, "text", **options)


@pytest.fixture(scope="module")
def texts():
    draw = random.Random(7)
    return [
        None if draw.random() < 0.1 else " ".join(draw.choices(WORDS, k=draw.randrange(9)))
        for _ in range(80)
    ]


@pytest.fixture(scope="module")
def indexed(texts, tmp_path_factory):
    return create(tmp_path_factory.mktemp("text") / "indexed", texts)


QUERIES = [*WORDS, "ship port", "ship ship", "tanker sails café", "the of", "", "unknown", "SHIPS"]


# ------------------------------------------------------------------ the analyser


# query: words of texts and queries.
@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("The running DOGS", ["run", "dog"]),
        ("café CAFÉ Ångström ﬁne straße", ["cafe", "cafe", "angstrom", "fine", "strasse"]),
        ("foo_bar a-b don't 3.14", ["foo", "bar", "b", "don", "t", "3", "14"]),
        ("日本語 テキスト Москва 🚢", ["日本語", "テキスト", "москва"]),
        (f"{'x' * 39} {'y' * 40}", ["x" * 39]),
        ("", []),
    ],
)
def test_words_are_cut_lowered_stemmed_stopped_and_folded(text, stems):
    assert [token.text for token in lance.tokenize(text)] == stems


# query: positions of a phrase.
def test_a_stop_word_leaves_its_position_empty_but_not_at_the_start():
    places = [(token.text, token.position) for token in lance.tokenize("the ship of the port")]
    assert places == [("ship", 0), ("port", 3)]


# query: what an index finds is what its words say.
def test_an_index_uses_the_same_analyser(indexed, texts):
    for words in QUERIES:
        expected = {str(n) for n, t in enumerate(texts) if t and reference.search(t, words)}
        assert set(found(indexed, match(words))) == expected, words


# ------------------------------------------------------------------ a full index


# query: bm25. k1 = 1.2, b = 0.75; documents without words are not counted.
def test_scores_are_bm25_over_all_documents_with_words(indexed, texts):
    corpus = {str(number): text for number, text in enumerate(texts)}
    for words in QUERIES:
        expected = reference.bm25(corpus, words)
        assert found(indexed, match(words)) == pytest.approx(expected, rel=1e-6), words


# query: match_text. The gaps stop words leave must be the same.
def test_a_phrase_matches_words_at_the_same_distances(indexed, texts):
    draw = random.Random(8)
    phrases = [" ".join(draw.choices(WORDS, k=draw.choice([1, 2, 3]))) for _ in range(60)]
    for phrase in phrases:
        expected = {str(n) for n, t in enumerate(texts) if t and reference.match_text(t, phrase)}
        assert set(found(indexed, PhraseQuery(phrase, "text"))) == expected, phrase


# query: match_text cannot use an index that was built without positions.
def test_a_phrase_needs_positions(tmp_path):
    handle = create(tmp_path / "d", ["ship"], position=False)
    with pytest.raises(ValueError, match="position is not found"):
        found(handle, PhraseQuery("ship", "text"))


# query: fuzzy. The distance is that of Levenshtein, in letters: a swap is two edits.
def test_fuzzy_counts_letters(indexed, texts):
    for word in ("abdc", "shp", "日木", "xy", "tankr"):
        for edits in (1, 2):
            near = {
                str(number)
                for number, text in enumerate(texts)
                if text and any(reference.edits(word, s) <= edits for s in reference.stems(text))
            }
            query = match(word, fuzziness=edits, max_expansions=10_000)
            assert set(found(indexed, query)) == near, (word, edits)


# query: fuzzy must hand over stems, because nothing is done to the words of a fuzzy query.
def test_a_fuzzy_query_is_neither_lowered_nor_stemmed_nor_stopped(tmp_path):
    handle = create(tmp_path / "d", ["tanker", "e"])
    assert found(handle, match("tankar", fuzziness=1)).keys() == {"0"}
    assert found(handle, match("tankars", fuzziness=1)).keys() == set()
    assert found(handle, match("Tankar", fuzziness=1)).keys() == set()
    assert found(handle, match("a", fuzziness=1)).keys() == {"1"}


# query: fuzzy must raise max_expansions, and cannot leave many edits to Lance.
def test_a_fuzzy_query_stops_at_fifty_words_and_at_large_automata(tmp_path):
    texts = [f"z{one}{other}" for one in "abcdefgh" for other in "abcdefgh"]
    handle = create(tmp_path / "d", texts)
    assert len(found(handle, match("zab", fuzziness=2))) == 50
    assert len(found(handle, match("zab", fuzziness=2, max_expansions=1000))) == 64
    with pytest.raises(ValueError, match="automaton exceeds size limit"):
        found(handle, match("running", fuzziness=4))


# ------------------------------------------------------------------ no index, part of one


# query: no text search may be left to Lance where there is no index.
def test_without_an_index_words_are_compared_as_they_stand(tmp_path):
    handle = create(tmp_path / "d", ["The Ships", "ship", "a ship of war"], index=False)
    assert found(handle, match("ship")).keys() == {"1", "2"}
    assert found(handle, match("ships")).keys() == set()
    assert found(handle, match("of")).keys() == {"2"}
    assert found(handle, PhraseQuery("Ships", "text")).keys() == {"0"}
    assert found(handle, match("shp", fuzziness=1)).keys() == set()


@pytest.fixture
def partial(tmp_path):
    handle = create(tmp_path / "d", ["Ships sailing", "a ship of ports", "port", None])
    more = pa.table({"id": ["4", "5"], "text": ["The ships sail", "port port port"]})
    return lance.write_dataset(more, handle.uri, mode="append")


# query: search and match_text may take candidates from a partial index.
def test_rows_an_index_does_not_cover_are_found_with_its_analyser(partial):
    assert found(partial, match("ship")).keys() == {"0", "1", "4"}
    assert found(partial, PhraseQuery("ship sails", "text")).keys() == {"0", "4"}


# query: fuzzy may not.
def test_rows_an_index_does_not_cover_are_not_found_fuzzily(partial):
    assert found(partial, match("shi", fuzziness=1)).keys() == {"0", "1"}


# query: bm25 has to be computed by us.
def test_scores_depend_on_what_an_index_covers_and_on_filters(partial):
    scores = found(partial, match("ship"))
    assert scores["4"] != pytest.approx(scores["0"])
    filtered = found(partial, match("ship"), filter="id in ('0', '4')", prefilter=True)
    assert filtered["4"] != pytest.approx(scores["4"])
    partial.delete("id = '1'")
    assert found(partial, match("ship"))["0"] == scores["0"]
    partial.create_scalar_index("text", "INVERTED", with_position=True, replace=True)
    assert found(lance.dataset(partial.uri), match("ship"))["0"] != pytest.approx(scores["0"])
