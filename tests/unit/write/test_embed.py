"""Filling vectors of a graph: exact values, one commit, and an honest note of the model."""

import numpy as np
import pytest

import omnigraph as og
from omnigraph.embed.local_providers import MockProvider
from omnigraph.write import embedding_backfill as module
from tests.support.embedding import MOCK, mock_vector

SCHEMA = """
node Doc { k: String @key  text: String?  size: I32?  v: Vector(3)? @embed(text) }
node Plain { k: String @key  v: Vector(3)? }
edge About: Doc -> Doc
"""
ROWS = [
    {"k": "a", "text": "ship", "size": 1},
    {"k": "b", "text": "port"},
    {"k": "c", "text": None},
    {"k": "d", "text": " "},
    {"k": "e", "text": "tug", "v": [0.0, 0.6, 0.8]},
]
NEAREST = 'query q() { match { $d: Doc } return { $d } order { nearest($d.v, "port") } limit 1 }'


class Watched:
    """A provider that notes what it is asked, and lets something happen meanwhile."""

    def __init__(self, model="", meanwhile=lambda: None):
        self.model = model
        self.meanwhile = meanwhile
        self.asked = []

    def embed(self, texts, dimension, role):
        self.asked.append((list(texts), str(role)))
        self.meanwhile()
        return MockProvider().embed(texts, dimension, role)


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, embedding=MOCK)
    graph.insert("Doc", ROWS, vectors_from="mock")
    return graph


def vectors(graph, name="v", at=None):
    ids = [
        row["k"]
        for row in graph.query(
            "query q() { match { $d: Doc } return { $d.k as k } order { $d.k } }", at=at
        ).rows
    ]
    found = {id_: graph.entity_at("Doc", id_, at)[name] for id_ in ids}
    return {id_: None if v is None else [float(x) for x in v] for id_, v in found.items()}


def model_of(graph, name="v", at=None):
    snapshot = graph.snapshot(at)
    table = graph._engine.store.table(snapshot, "node", "Doc")
    return table.embedding_model(name)


def asked_by(graph, model):
    return og.open(graph.uri, embedding={"kind": "mock", "model": model})


def close(one, other):
    return (one is None and other is None) or np.allclose(one, other, atol=1e-7)


FILLED = {
    "a": mock_vector("ship", 3),
    "b": mock_vector("port", 3),
    "c": None,
    "d": None,
    "e": [0.0, 0.6, 0.8],
}


def test_missing_vectors_are_made_from_texts_as_one_commit(graph):
    before = graph.snapshot().commit_id
    done = graph.embed("Doc", message="fill")
    assert (done.type, done.embedded, done.skipped, done.model) == ("Doc", {"v": 2}, 1, "")
    found = vectors(graph)
    assert all(close(found[id_], FILLED[id_]) for id_ in FILLED)
    assert done.commit == graph.commits.list()[0]
    assert (done.commit.operation, done.commit.message) == ("embed", "fill")
    assert done.commit.parents == (before,)
    assert {key: (c.inserted, c.updated, c.deleted) for key, c in done.commit.counts.items()} == {
        "node:Doc": (0, 2, 0)
    }
    assert graph.entity_at("Doc", "a")["size"] == 1
    assert graph.verify().ok


def test_nothing_to_do_is_no_commit(graph):
    first = graph.embed("Doc").commit
    again = graph.embed("Doc")
    assert (again.commit, again.total) == (None, 0)
    assert graph.snapshot().commit_id == first.id


def test_all_makes_every_vector_again(graph):
    done = graph.embed("Doc", all=True)
    assert done.embedded == {"v": 3}
    assert close(vectors(graph)["e"], mock_vector("tug", 3))


def test_type_without_entities_has_nothing_to_embed(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, embedding=MOCK)
    assert graph.embed("Doc").commit is None


def test_another_branch_is_filled_and_main_stays(graph):
    graph.branches.create("other")
    graph.embed("Doc", branch="other")
    assert close(vectors(graph, at="other")["a"], FILLED["a"])
    assert vectors(graph)["a"] is None


def test_history_keeps_what_was(graph):
    before = graph.snapshot().commit_id
    graph.embed("Doc")
    assert vectors(graph, at=before)["a"] is None


def test_many_entities_go_through_in_parts(graph, monkeypatch):
    monkeypatch.setattr(module, "BATCH_ROWS", 7)
    rows = [{"k": f"n{n:03}", "text": f"text {n % 40}" if n % 10 else " "} for n in range(100)]
    graph.load({"Doc": rows}, mode="overwrite")
    assert graph.embed("Doc").total == 90
    found = vectors(graph)
    for row in rows:
        wanted = mock_vector(row["text"], 3) if row["text"].strip() else None
        assert close(found[row["k"]], wanted)


def test_blobs_and_lists_of_entities_survive(tmp_path):
    schema = """node Doc {
      k: String @key  text: String  tags: [String]?  b: Blob?  v: Vector(2)? @embed(text)
    }"""
    graph = og.init(tmp_path / "g", schema, embedding=MOCK)
    graph.insert(
        "Doc",
        [{"k": "a", "text": "x", "tags": ["p", "q"], "b": "base64:AAEC"}, {"k": "b", "text": "y"}],
    )
    graph.embed("Doc")
    assert graph.entity_at("Doc", "a")["tags"] == ["p", "q"]
    assert graph.blob("Doc", "a", "b").read() == b"\x00\x01\x02"
    assert close(vectors(graph)["b"], mock_vector("y", 2))


def test_progress_is_reported(graph):
    reported = []
    graph.embed("Doc", progress=reported.append)
    assert [(p.phase, p.rows) for p in reported] == [("embed", 0), ("write", 2)]


TWO = """
node Doc {
  k: String @key  a: String?  b: String?
  v: Vector(2)? @embed(a)  w: Vector(4)? @embed(b)
}
"""


def test_all_properties_of_a_type_are_filled_or_one(tmp_path):
    graph = og.init(tmp_path / "g", TWO, embedding=MOCK)
    graph.insert("Doc", [{"k": "1", "a": "x", "b": "y"}, {"k": "2", "b": "z"}])
    assert graph.embed("Doc", "w").embedded == {"w": 2}
    assert vectors(graph) == {"1": None, "2": None}
    done = graph.embed("Doc")
    assert (done.embedded, done.commit.counts["node:Doc"].updated) == ({"v": 1, "w": 0}, 1)
    assert close(vectors(graph)["1"], mock_vector("x", 2))
    assert close(vectors(graph, "w")["2"], mock_vector("z", 4))
    assert graph.embed("Doc").commit is None


@pytest.mark.parametrize(
    ("type_name", "name", "code", "said"),
    [
        ("Dock", None, "unknown_type", "did you mean `Doc`?"),
        ("Plain", None, "nothing_to_embed", "node type Plain has no property with @embed: declare"),
        ("About", None, "nothing_to_embed", "edge type About has no property with @embed"),
        ("Doc", "vv", "nothing_to_embed", "Doc.vv is not a property with @embed; known names: `v`"),
        ("Doc", "text", "nothing_to_embed", "Doc.text is not a property with @embed"),
    ],
)
def test_what_cannot_be_embedded_is_reported(graph, type_name, name, code, said):
    with pytest.raises(og.OmniError) as caught:
        graph.embed(type_name, name)
    assert caught.value.code == code
    assert said in caught.value.message


def test_read_only_graph_is_not_changed(graph):
    with pytest.raises(og.OmniError) as caught:
        og.open(graph.uri, "ro", embedding=MOCK).embed("Doc")
    assert caught.value.code == "read_only"


def test_provider_that_fails_changes_nothing(graph):
    def fail():
        raise og.OmniError("no", code="embedding_unavailable")

    before = graph.snapshot().commit_id
    with pytest.raises(og.OmniError):
        og.open(graph.uri, embedding=Watched(meanwhile=fail)).embed("Doc")
    assert graph.snapshot().commit_id == before


# --- races -------------------------------------------------------------------------------------


def test_lost_race_is_run_again_on_what_is_there_now(graph):
    def change():
        if len(watched.asked) == 1:
            graph.mutate('query m() { update Doc set { text: "sloop" } where k = "a" }')
            graph.mutate('query m() { insert Doc { k: "f", text: "quay" } }')

    watched = Watched(meanwhile=change)
    done = og.open(graph.uri, embedding=watched).embed("Doc")
    assert done.embedded == {"v": 3}
    found = vectors(graph)
    assert close(found["a"], mock_vector("sloop", 3))
    assert close(found["b"], mock_vector("port", 3))
    assert close(found["f"], mock_vector("quay", 3))
    first, second = (sorted(texts) for texts, _ in watched.asked)
    assert (first, second) == (["port", "ship"], ["quay", "sloop"]), "unchanged texts are not again"
    assert {role for _, role in watched.asked} == {"document"}


def test_entity_deleted_meanwhile_stays_away(graph):
    def change():
        if len(watched.asked) == 1:
            graph.mutate('query m() { delete Doc where k = "a" }')

    watched = Watched(meanwhile=change)
    assert og.open(graph.uri, embedding=watched).embed("Doc").embedded == {"v": 1}
    assert graph.entity_at("Doc", "a") is None


# --- the note of the model ---------------------------------------------------------------------


def all_by_model(graph, model="m1"):
    graph.load({"Doc": [row for row in ROWS if "v" not in row]}, mode="overwrite")
    asked_by(graph, model).embed("Doc")
    return asked_by(graph, model)


def test_model_is_noted_and_another_is_refused_in_queries(graph):
    other = all_by_model(graph)
    assert model_of(other) == "m1"
    assert other.query(NEAREST).rows == [{"d": "b"}]
    with pytest.raises(og.OmniError) as caught:
        asked_by(graph, "m2").query(NEAREST)
    assert caught.value.code == "embedding_model_mismatch"
    assert "Doc.v holds vectors of model 'm1', but texts are embedded by 'm2'" in str(caught.value)


def test_note_belongs_to_a_branch_and_a_moment(graph):
    before = graph.snapshot().commit_id
    other = all_by_model(graph)
    tag = other.snapshot().commit_id
    graph.branches.create("again")
    asked_by(graph, "m2").embed("Doc", all=True, branch="again")
    assert (model_of(graph), model_of(graph, at="again")) == ("m1", "m2")
    assert (model_of(graph, at=before), model_of(graph, at=tag)) == ("", "m1")
    assert asked_by(graph, "m2").query(NEAREST, at="again").rows == [{"d": "b"}]
    assert asked_by(graph, "m1").query(NEAREST, at=tag).rows == [{"d": "b"}]


def test_filling_with_another_model_is_refused(graph):
    all_by_model(graph)
    graph.mutate('query m() { insert Doc { k: "f", text: "quay" } }')
    before = graph.snapshot().commit_id
    with pytest.raises(og.OmniError) as caught:
        asked_by(graph, "m2").embed("Doc")
    assert caught.value.code == "embedding_model_mismatch"
    assert graph.snapshot().commit_id == before
    assert asked_by(graph, "m1").embed("Doc").total == 1
    assert model_of(graph) == "m1"


def test_vectors_of_an_unknown_model_are_not_filled_up_but_replaced(graph):
    graph.load({"Doc": [*ROWS[:4], {**ROWS[4], "v": [0.6, 0.0, 0.8]}]}, mode="overwrite")
    with pytest.raises(og.OmniError) as caught:
        asked_by(graph, "m1").embed("Doc")
    assert caught.value.code == "embedding_model_unknown"
    assert model_of(graph) is None, "one vector was given without its model"
    asked_by(graph, "m1").embed("Doc", all=True)
    assert model_of(graph) == "m1"


def test_vector_without_a_text_keeps_the_note_away(graph):
    for text in ("", None):
        wordless = [{"k": "e", "text": text, "v": [0.0, 0.6, 0.8]}]
        graph.load({"Doc": [*ROWS[:4], *wordless]}, mode="overwrite")
        asked_by(graph, "m1").embed("Doc", all=True)
        assert model_of(graph) is None


KEEPING = {
    "another property": 'query m() { update Doc set { size: 7 } where k = "a" }',
    "an entity without vector": 'query m() { insert Doc { k: "z", text: "x" } }',
    "a vector taken away": 'query m($v: Vector(3)?) { update Doc set { v: $v } where k = "a" }',
    "a deletion": 'query m() { delete Doc where k = "a" }',
}


@pytest.mark.parametrize("mutation", KEEPING.values(), ids=KEEPING)
def test_change_that_brings_no_vector_keeps_the_note(graph, mutation):
    all_by_model(graph)
    graph.mutate(mutation)
    assert model_of(graph) == "m1"


@pytest.mark.parametrize(
    "bring",
    [
        lambda g: g.mutate('query m() { update Doc set { v: [1, 0, 0] } where k = "a" }'),
        lambda g: g.mutate('query m() { insert Doc { k: "z", v: [1, 0, 0] } }'),
        lambda g: g.insert("Doc", [{"k": "z", "v": [1.0, 0, 0]}]),
        lambda g: g.load({"Doc": [{"k": "a", "v": [1.0, 0, 0]}]}, mode="merge", partial=True),
        lambda g: g.load({"Doc": [{"k": "a", "v": [1.0, 0, 0]}]}, mode="overwrite"),
    ],
)
def test_vectors_from_elsewhere_take_the_note_away(graph, bring):
    all_by_model(graph)
    bring(graph)
    assert model_of(graph) is None
    with pytest.raises(og.OmniError) as caught:
        asked_by(graph, "m1").query(NEAREST)
    assert caught.value.code == "embedding_model_unknown"


def test_partial_load_of_another_property_keeps_the_note(graph):
    all_by_model(graph)
    graph.load({"Doc": [{"k": "a", "size": 9}]}, mode="merge", partial=True)
    assert model_of(graph) == "m1"
    assert close(vectors(graph)["a"], mock_vector("ship", 3))


def test_overwrite_without_vectors_forgets_the_model(graph):
    all_by_model(graph)
    graph.load({"Doc": [{"k": "a", "text": "x"}]}, mode="overwrite")
    assert model_of(graph) is None
    asked_by(graph, "m2").embed("Doc")
    assert model_of(graph) == "m2"


def test_upkeep_keeps_the_note(graph):
    all_by_model(graph)
    for n in range(5):
        graph.insert("Doc", [{"k": f"n{n}", "text": "x"}])
    graph.optimize()
    assert model_of(graph) == "m1"
    assert graph.verify().ok
