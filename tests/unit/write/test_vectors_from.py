"""Which model made vectors: declared, recorded or unknown, and what a text is compared with."""

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.embed import config
from omnigraph.embed.config import ProviderKind, RemoteDefaults
from omnigraph.embed.local_providers import LOCAL_MODEL as LOCAL
from omnigraph.embed.local_providers import MockProvider
from tests.support.embedding import MOCK, mock_vector
from tests.support.embedding_service import embedding_service, openai_answer

SCHEMA = """
node Doc { k: String @key  text: String?  size: I32?  v: Vector(3)? @embed(text) }
node Plain { k: String @key  v: Vector(3)? }
node Must { k: String @key  text: String  v: Vector(3) @embed(text) }
"""
DECLARED = SCHEMA.replace("@embed(text)", '@embed(text, model="acme/m1")')
DOCS = [{"k": name, "text": name, "v": mock_vector(name, 3)} for name in ("ship", "port")]
NEAREST = (
    'query q() {{ match {{ $d: {} }} return {{ $d.k }} order {{ nearest($d.v, "port") }} limit 1 }}'
)
UNKNOWN = "embedding_model_unknown"
MISMATCH = "embedding_model_mismatch"


class Recording:
    """A provider that keeps the texts it embeds."""

    def __init__(self, model):
        self.model = model
        self.texts = []

    def embed(self, texts, dimension, role):
        self.texts += texts
        return MockProvider().embed(texts, dimension, role)


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "g", SCHEMA, embedding=MOCK)


def by_model(graph, model):
    return og.open(graph.uri, embedding={"kind": "mock", "model": model})


def best(graph, type_name="Doc"):
    return [row["d.k"] for row in graph.query(NEAREST.format(type_name)).rows]


def refused(action, *arguments, **named):
    with pytest.raises(og.OmniError) as caught:
        action(*arguments, **named)
    return caught.value


def model_of(graph, type_name="Doc", at=None):
    table = graph._engine.store.table(graph.snapshot(at), "node", type_name)
    return table.embedding_model("v")


def test_text_is_not_compared_with_vectors_of_unknown_origin(graph):
    graph.load({"Doc": DOCS})
    recording = Recording("m1")
    error = refused(best, og.open(graph.uri, embedding=recording))
    assert (error.code, error.category) == (UNKNOWN, "conflict")
    assert error.details == {"property": "Doc.v"}
    assert "Doc.v holds vectors of an unknown model" in error.message
    for way_out in ('@embed(text, model="', "vectors_from", "pass a vector", "--all"):
        assert way_out in error.message
    assert recording.texts == [], "the text was embedded although it cannot be compared"


def test_vector_argument_needs_no_model(graph):
    graph.load({"Doc": DOCS})
    query = NEAREST.format("Doc").replace('"port"', str(mock_vector("ship", 3)))
    assert graph.query(query).rows == [{"d.k": "ship"}]


def test_local_model_ranks_nothing_it_did_not_embed(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Doc": DOCS})
    assert refused(best, graph).code == UNKNOWN


def test_property_without_embed_is_refused_until_its_model_is_known(graph):
    graph.load({"Plain": [{"k": d["k"], "v": d["v"]} for d in DOCS]})
    error = refused(best, graph, "Plain")
    assert error.code == UNKNOWN
    assert "@embed" in error.message
    graph.load({"Plain": [{"k": d["k"], "v": d["v"]} for d in DOCS]}, vectors_from="mock")
    assert best(graph, "Plain") == ["port"]


def test_property_without_vectors_can_be_queried_with_a_text(graph):
    graph.load({"Doc": [{"k": "ship", "text": "ship"}]})
    assert best(graph) == []


def test_declared_model_is_what_loaded_vectors_are_made_by(tmp_path):
    graph = og.init(tmp_path / "g", DECLARED, embedding=MOCK)
    graph.load({"Doc": DOCS})
    assert best(by_model(graph, "acme/m1")) == ["port"]
    error = refused(best, by_model(graph, "m2"))
    assert (error.code, error.details["wanted"]) == (MISMATCH, "acme/m1")
    error = refused(graph.load, {"Doc": DOCS}, vectors_from="other/m2")
    assert (error.code, error.details) == (
        MISMATCH,
        {"property": "Doc.v", "wanted": "acme/m1", "model": "other/m2"},
    )


def test_unknown_vectors_can_be_declared_in_the_schema_later(graph):
    graph.load({"Doc": DOCS})
    plan = graph.schema.plan(DECLARED)
    assert [step.to_json() for step in plan.steps][:1] == [
        {
            "kind": "declare_embedding_model",
            "type_kind": "node",
            "type_name": "Doc",
            "property_name": "v",
            "model": "acme/m1",
        }
    ]
    graph.schema.apply(DECLARED)
    assert best(by_model(graph, "acme/m1")) == ["port"]
    assert refused(best, by_model(graph, "m2")).code == MISMATCH
    assert not graph.schema.plan(DECLARED).steps
    changed = DECLARED.replace("acme/m1", "m2")
    assert "model of @embed" in str(graph.schema.plan(changed).refusals[0].reason)


def test_declaration_that_contradicts_the_recorded_model_is_never_followed(graph):
    graph.load({"Doc": DOCS}, vectors_from="m2")
    graph.schema.apply(DECLARED)
    assert refused(best, by_model(graph, "m2")).code == MISMATCH
    assert refused(best, by_model(graph, "acme/m1")).code == MISMATCH


def tables(tmp_path, kind):
    rows = DOCS
    table = pa.table(
        {
            "k": [row["k"] for row in rows],
            "text": [row["text"] for row in rows],
            "v": pa.array([row["v"] for row in rows], pa.list_(pa.float32(), 3)),
        }
    )
    path = tmp_path / f"docs.{kind}"
    match kind:
        case "parquet":
            pq.write_table(table, path)
        case "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        case "csv":
            vectors = pa.array([str(row["v"]) for row in rows])
            pa_csv.write_csv(table.set_column(2, "v", vectors), path)
        case "ndjson":
            lines = [f'{{"type": "Doc", "data": {pa_json(row)}}}' for row in rows]
            path.write_text("\n".join(lines) + "\n")
            return path
    return {"Doc": path}


def pa_json(row):
    return str(row).replace("'", '"')


@pytest.mark.parametrize("kind", ["ndjson", "csv", "parquet", "arrow"])
def test_model_given_at_load_is_recorded(graph, tmp_path, kind):
    graph.load(tables(tmp_path, kind), vectors_from="acme/m1")
    assert model_of(graph) == "acme/m1"
    assert best(by_model(graph, "acme/m1")) == ["port"]
    assert refused(best, by_model(graph, "m2")).code == MISMATCH


def test_model_is_recorded_beside_entities_without_vectors(graph):
    graph.load({"Doc": [{"k": "tug", "text": "tug"}]})
    graph.load({"Doc": DOCS}, vectors_from="m1")
    assert model_of(graph) == "m1"


def test_loading_every_vector_again_makes_their_model_known(graph):
    graph.load({"Doc": DOCS})
    graph.load({"Doc": DOCS[:1]}, vectors_from="m1")
    assert refused(best, by_model(graph, "m1")).code == UNKNOWN, "one vector is still unknown"
    graph.load({"Doc": DOCS}, vectors_from="m1")
    assert best(by_model(graph, "m1")) == ["port"]
    assert model_of(graph) == "m1"


def test_partial_load_does_not_vouch_for_vectors_it_keeps(graph):
    graph.load({"Doc": DOCS})
    graph.load({"Doc": [{"k": d["k"], "size": 1} for d in DOCS]}, partial=True, vectors_from="m1")
    assert refused(best, by_model(graph, "m1")).code == UNKNOWN


def test_vectors_of_two_models_are_not_loaded_together(graph):
    graph.load({"Doc": DOCS}, vectors_from="m1")
    tug = [{"k": "tug", "text": "tug", "v": mock_vector("tug", 3)}]
    error = refused(graph.load, {"Doc": tug}, vectors_from="m2")
    assert (error.code, error.details["wanted"], error.details["model"]) == (MISMATCH, "m1", "m2")
    assert graph.entity_at("Doc", "tug") is None
    graph.load({"Doc": [*DOCS, *tug]}, vectors_from="m2")
    assert model_of(graph) == "m2", "every vector was replaced"
    graph.load({"Doc": DOCS}, mode="overwrite", vectors_from="m3")
    assert model_of(graph) == "m3"


def test_vectors_of_known_and_unknown_models_are_never_mixed_silently(graph):
    graph.load({"Doc": DOCS}, vectors_from="m1")
    graph.mutate('query m() { insert Doc { k: "x", text: "x", v: [1, 0, 0] } }')
    assert model_of(graph) is None
    assert refused(best, by_model(graph, "m1")).code == UNKNOWN
    assert by_model(graph, "m1").embed("Doc", all=True).total == 3
    assert best(by_model(graph, "m1")) == ["port"]


def test_missing_vectors_are_not_embedded_beside_unknown_ones(graph):
    graph.load({"Doc": [*DOCS, {"k": "tug", "text": "tug"}]})
    before = graph.snapshot().commit_id
    error = refused(graph.embed, "Doc")
    assert error.code == UNKNOWN
    assert graph.snapshot().commit_id == before
    must = [{"k": d["k"], "text": d["text"], "v": d["v"]} for d in DOCS]
    graph.load({"Must": must})
    for action in (
        lambda: graph.insert("Must", [{"k": "tug", "text": "tug"}]),
        lambda: graph.mutate('query m() { insert Must { k: "tug", text: "tug" } }'),
        lambda: graph.load({"Must": [*must, {"k": "tug", "text": "tug"}]}, mode="overwrite"),
    ):
        assert refused(action).code == UNKNOWN
    more = [*must, {"k": "tug", "text": "tug"}]
    graph.load({"Must": more}, mode="overwrite", vectors_from="mock")
    assert best(graph, "Must") == ["port"]


@pytest.mark.parametrize("name", ["", "  ", 7])
def test_name_of_a_model_must_be_a_text(graph, name):
    assert refused(graph.load, {"Doc": DOCS}, vectors_from=name).code == "embedding_model_invalid"


def test_provider_alone_stands_for_its_default_model(graph):
    graph.load({"Doc": DOCS}, vectors_from="local")
    assert model_of(graph) == LOCAL
    graph.load({"Doc": DOCS}, mode="overwrite", vectors_from="openai")
    assert model_of(graph) == "text-embedding-3-large"


def test_merge_of_branches_keeps_the_model_known_where_it_is(graph):
    graph.load({"Doc": [{"k": d["k"], "text": d["text"]} for d in DOCS]})
    graph.branches.create("side")
    graph.embed("Doc", branch="side")
    graph.load({"Doc": [{"k": "tug", "text": "tug"}]})
    graph.merge("side")
    assert best(graph) == ["port"]
    graph.branches.create("late")
    graph.load({"Doc": [{"k": "tug", "size": 2}]}, partial=True, branch="late")
    graph.embed("Doc")
    graph.merge("late")
    assert best(graph) == ["port"]
    assert graph.entity_at("Doc", "tug")["size"] == 2


def test_merge_of_two_models_is_refused_for_texts(graph):
    graph.load({"Doc": [{"k": d["k"], "text": d["text"]} for d in DOCS]})
    graph.branches.create("side")
    by_model(graph, "m1").load({"Doc": DOCS[:1]}, branch="side", vectors_from="m1")
    graph.load({"Doc": DOCS[1:]}, vectors_from="m2")
    graph.merge("side")
    assert refused(best, by_model(graph, "m1")).code == UNKNOWN
    assert refused(best, by_model(graph, "m2")).code == UNKNOWN


# --- the environment ---------------------------------------------------------------------------


def test_local_vectors_are_queried_and_filled_locally_although_a_key_is_set(tmp_path, monkeypatch):
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load({"Must": [{"k": name, "text": name} for name in ("ship", "port")]})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with_key = og.open(graph.uri)
    assert best(with_key, "Must") == ["port"]
    with_key.insert("Must", [{"k": "tug", "text": "tug"}])
    assert model_of(with_key, "Must") == LOCAL


def test_model_of_a_service_needs_its_key(graph):
    graph.load({"Doc": DOCS}, vectors_from="openai/text-embedding-3-small")
    error = refused(best, og.open(graph.uri))
    assert (error.code, error.details["model"]) == (MISMATCH, LOCAL)
    assert error.details["wanted"] == "openai/text-embedding-3-small"


def test_key_of_a_service_is_used_for_the_model_of_the_vectors(graph, monkeypatch):
    graph.load({"Doc": DOCS}, vectors_from="openai/text-embedding-3-small")
    with embedding_service(openai_answer) as service:
        routed = {
            ProviderKind.OPENAI: RemoteDefaults(
                service.url, "text-embedding-3-large", ("OPENAI_API_KEY",)
            )
        }
        monkeypatch.setattr(config, "REMOTE_DEFAULTS", {**config.REMOTE_DEFAULTS, **routed})
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        assert len(best(og.open(graph.uri))) == 1
        [request] = service.asked
    assert (request.body["model"], request.body["input"]) == ("text-embedding-3-small", ["port"])
