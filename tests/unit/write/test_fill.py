"""Vectors that must be there are made when rows are written, and only then."""

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.write import row_embeddings as module
from omnigraph.write.row_embeddings import has_text, replace_vectors
from tests.support.embedding import MOCK, mock_vector
from tests.unit.write.test_embed import Watched, asked_by, close, model_of, vectors

SCHEMA = """
node Doc { k: String @key  text: String?  n: I32?  v: Vector(3) @embed(text)  @range(n, 0..9) }
"""


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "g", SCHEMA, embedding=MOCK)


def watched(graph, **facts):
    provider = Watched(**facts)
    return provider, og.open(graph.uri, embedding=provider)


def test_insert_makes_the_vector(graph):
    graph.mutate('query m() { insert Doc { k: "a", text: "ship" } }')
    assert close(vectors(graph)["a"], mock_vector("ship", 3))


def test_load_makes_vectors_in_parts_and_keeps_those_given(graph, monkeypatch):
    monkeypatch.setattr(module, "EMBED_BATCH_ROWS", 8)
    rows = [{"k": f"{n:02}", "text": f"t{n % 5}"} for n in range(30)]
    rows[7]["v"] = rows[20]["v"] = [1.0, 0.0, 0.0]
    provider, asked = watched(graph)
    asked.insert("Doc", rows, vectors_from="mock")
    found = vectors(graph)
    for row in rows:
        assert close(found[row["k"]], row.get("v", mock_vector(row["text"], 3)))
    assert [len(texts) for texts, _ in provider.asked] == [5, 5, 4, 5]
    assert {role for _, role in provider.asked} == {"document"}


def test_change_that_is_refused_embeds_nothing(graph):
    provider, asked = watched(graph)
    with pytest.raises(og.ValidationFailed):
        asked.insert("Doc", [{"k": "a", "text": "ship"}, {"k": "b", "text": "port", "n": 10}])
    assert provider.asked == []


def test_change_with_all_vectors_needs_no_provider(graph):
    plain = og.open(graph.uri, embedding={"kind": "openai"})
    rows = [{"k": "a", "text": "ship", "v": [1.0, 0.0, 0.0]}]
    plain.insert("Doc", rows, vectors_from="mock")
    plain.mutate('query m() { update Doc set { n: 3 } where k = "a" }')
    with pytest.raises(og.OmniError) as caught:
        plain.insert("Doc", [{"k": "b", "text": "port"}])
    assert caught.value.code == "embedding_api_key_required"
    assert list(vectors(graph)) == ["a"]


def test_partial_load_makes_the_vectors_of_new_entities(graph):
    rows = [{"k": "a", "text": "ship", "v": [1.0, 0.0, 0.0]}]
    graph.insert("Doc", rows, vectors_from="mock")
    graph.load({"Doc": [{"k": "a", "n": 1}, {"k": "b", "text": "port"}]}, partial=True)
    found = vectors(graph)
    assert close(found["a"], [1.0, 0.0, 0.0])
    assert close(found["b"], mock_vector("port", 3))


def test_lost_race_does_not_embed_again(graph):
    def change():
        if len(provider.asked) == 1:
            graph.mutate('query m() { insert Doc { k: "z", text: "quay" } }')

    provider, asked = watched(graph, meanwhile=change)
    asked.insert("Doc", [{"k": "a", "text": "ship"}])
    assert set(vectors(graph)) == {"a", "z"}
    assert len(provider.asked) == 1


def test_race_lost_to_another_model_is_reported(graph):
    def change():
        asked_by(graph, "m2").insert("Doc", [{"k": "z", "text": "quay"}])

    _, asked = watched(graph, model="m1", meanwhile=change)
    with pytest.raises(og.OmniError) as caught:
        asked.insert("Doc", [{"k": "a", "text": "ship"}])
    assert caught.value.code == "embedding_model_mismatch"
    assert (set(vectors(graph)), model_of(graph)) == ({"z"}, "m2")


def test_model_is_noted_while_every_vector_is_its(graph):
    asked_by(graph, "m1").insert("Doc", [{"k": "a", "text": "ship"}])
    assert model_of(graph) == "m1"
    asked_by(graph, "m1").mutate('query m() { insert Doc { k: "b", text: "port" } }')
    assert model_of(graph) == "m1"
    before = graph.snapshot().commit_id
    with pytest.raises(og.OmniError) as caught:
        asked_by(graph, "m2").insert("Doc", [{"k": "c", "text": "tug"}])
    assert caught.value.code == "embedding_model_mismatch"
    assert graph.snapshot().commit_id == before
    asked_by(graph, "m1").insert("Doc", [{"k": "c", "v": [1.0, 0, 0]}])
    assert model_of(graph) is None
    with pytest.raises(og.OmniError) as caught:
        asked_by(graph, "m1").insert("Doc", [{"k": "d", "text": "x"}])
    assert caught.value.code == "embedding_model_unknown"


def test_race_lost_to_vectors_of_an_unknown_model_is_refused(graph):
    def change():
        if len(provider.asked) == 1:
            graph.insert("Doc", [{"k": "z", "v": [1.0, 0.0, 0.0]}])

    provider, asked = watched(graph, meanwhile=change)
    with pytest.raises(og.OmniError) as caught:
        asked.insert("Doc", [{"k": "a", "text": "ship"}])
    assert caught.value.code == "embedding_model_unknown"
    assert set(vectors(graph)) == {"z"}


def test_overwrite_may_change_the_model(graph):
    asked_by(graph, "m1").insert("Doc", [{"k": "a", "text": "ship"}])
    asked_by(graph, "m2").load({"Doc": [{"k": "a", "text": "ship"}]}, mode="overwrite")
    assert model_of(graph) == "m2"


def test_declared_model_is_needed_to_make_a_vector(tmp_path):
    schema = 'node Doc { k: String @key  text: String  v: Vector(3) @embed(text, model="m1") }'
    graph = og.init(tmp_path / "g", schema, embedding=MOCK)
    with pytest.raises(og.OmniError) as caught:
        graph.insert("Doc", [{"k": "a", "text": "ship"}])
    assert "Doc.v is declared with model 'm1'" in caught.value.message
    asked_by(graph, "m1").insert("Doc", [{"k": "a", "text": "ship"}])


def test_words_are_what_is_left_without_white_space():
    texts = pa.array(["a", "", " ", "\t\n", "\u3000", None, " x "])
    assert has_text(texts).to_pylist() == [True, False, False, False, False, False, True]


def test_vectors_are_put_in_their_places():
    column = pa.array([[1, 2], None, [3, 4], None], pa.list_(pa.field("item", pa.float32()), 2))
    where = np.array([False, True, True, False])
    found = replace_vectors(column, where, np.array([[5, 6], [7, 8]], np.float32))
    assert found.to_pylist() == [[1, 2], [5, 6], [7, 8], None]
    assert found.type == column.type
    assert replace_vectors(
        column.slice(2), where[2:], np.array([[9, 9]], np.float32)
    ).to_pylist() == [
        [9, 9],
        None,
    ]
