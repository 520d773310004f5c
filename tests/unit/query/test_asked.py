"""Texts in queries: who embeds them, how often, and with which model."""

import pytest

import omnigraph as og
from omnigraph.embed.local_providers import MockProvider
from tests.support.embedding import MOCK, mock_vector

SCHEMA = """
node Doc { k: String @key  text: String?  v: Vector(3)? @embed(text)
  w: Vector(3)? @embed(text, model="m1") }
edge About: Doc -> Doc
"""
ROWS = [
    {"k": name, "text": name, "v": mock_vector(name, 3), "w": mock_vector(name, 3)}
    for name in ("ship", "port", "tug")
]
NEAREST = (
    "query q($t: String) { match { $d: Doc } return { $d } order { nearest($d.v, $t) } limit 1 }"
)
DECLARED = NEAREST.replace("$d.v", "$d.w")


class Watched:
    """A provider that notes what it is asked."""

    def __init__(self, model=""):
        self.model = model
        self.asked = []

    def embed(self, texts, dimension, role):
        self.asked.append((list(texts), dimension, str(role)))
        return MockProvider().embed(texts, dimension, role)


@pytest.fixture
def uri(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, embedding=MOCK)
    graph.insert("Doc", ROWS, vectors_from={"Doc.v": "mock"})
    return graph.uri


def best(graph, query=NEAREST, text="port"):
    return [row["d"] for row in graph.query(query, {"t": text}).rows]


def test_profile_and_provider_are_taken(uri):
    assert best(og.open(uri, embedding=MOCK)) == ["port"]
    assert best(og.open(uri, embedding={"kind": "mock", "model": ""})) == ["port"]
    assert best(og.open(uri, embedding=MockProvider())) == ["port"]


def test_environment_is_asked_when_nothing_is_given(uri, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    assert best(og.open(uri)) == ["port"]
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "wrong")
    with pytest.raises(og.OmniError) as caught:
        best(og.open(uri))
    assert caught.value.code == "embedding_config_invalid"


def test_query_without_a_text_needs_no_provider(uri):
    graph = og.open(uri, embedding={"kind": "openai"})
    query = (
        "query q() { match { $d: Doc } return { $d } order { nearest($d.v, [1, 0, 0]) } limit 1 }"
    )
    assert len(graph.query(query).rows) == 1
    with pytest.raises(og.OmniError) as caught:
        best(graph)
    assert caught.value.code == "embedding_api_key_required"


def test_text_is_embedded_once_for_all_places_of_a_query(uri):
    watched = Watched()
    graph = og.open(uri, embedding=watched)
    query = """query q($t: String) { match { $d: Doc }
      return { $d, nearest($d.v, $t) as far } order { nearest($d.v, $t) } limit 2 }"""
    assert len(graph.query(query, {"t": "port"}).rows) == 2
    assert watched.asked == [(["port"], 3, "query")]


def test_texts_of_entities_are_embedded_together_each_once(uri):
    watched = Watched()
    graph = og.open(uri, embedding=watched)
    query = (
        "query q() { match { $d: Doc  $e: Doc } return { $d, $e, nearest($d.v, $e.text) as far } }"
    )
    assert len(graph.query(query).rows) == 9
    [(texts, dimension, role)] = watched.asked
    assert (sorted(texts), dimension, role) == (["port", "ship", "tug"], 3, "query")


def test_handles_of_one_graph_share_their_provider(uri):
    watched = Watched()
    graph = og.open(uri, embedding=watched)
    best(graph.as_actor("ann").branch("other", create=True))
    assert len(watched.asked) == 1


def test_declared_model_must_be_the_one_that_embeds(uri):
    assert best(og.open(uri, embedding={"kind": "mock", "model": "m1"}), DECLARED) == ["port"]
    watched = Watched("m2")
    with pytest.raises(og.OmniError) as caught:
        best(og.open(uri, embedding=watched), DECLARED)
    assert caught.value.code == "embedding_model_mismatch"
    assert "Doc.w is declared with model 'm1', but texts are embedded by 'm2'" in str(caught.value)
    assert watched.asked == []


def test_explain_embeds_only_when_it_runs_the_query(uri):
    watched = Watched()
    graph = og.open(uri, embedding=watched)
    graph.explain(NEAREST)
    assert watched.asked == []
    graph.explain(NEAREST, {"t": "port"}, analyze=True)
    assert len(watched.asked) == 1
