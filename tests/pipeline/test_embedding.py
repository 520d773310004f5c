"""Vectors that a load on Spark lacks: made by workers, each text once, in the one commit."""

from collections import Counter

import pytest

import omnigraph.graph as og
from omnigraph.errors import OmniError
from omnigraph.pipeline.load import embedding_cache
from omnigraph.pipeline.load.model import TypeFrame
from omnigraph.pipeline.runs.run_lease import RunLease
from tests.support.embedding import MOCK, mock_vector
from tests.support.embedding_service import Reply, embedding_service, openai_answer, vector_of
from tests.support.spark_loads import load

SCHEMA = """
node Note {
  slug: String @key
  text: String?
  about: Vector(4)? @embed(text)
  near: Vector(3) @embed(slug)
}
"""
FILE = """version: 1
sources: {notes: {csv: notes.csv}}
nodes: {Note: {source: notes, embed: about}}
on_violation: reject
"""
MANY = 17_000
"""Rows of which each of two tasks writes more than are in memory at a time."""
NOTES = [(f"n{number}", f"words of {number % 9}") for number in range(40)]


def notes(graph):
    read = (
        "query q() { match { $n: Note } "
        "return { $n.slug as s, $n.text as t, $n.about as a, $n.near as b } }"
    )
    return {row["s"]: (row["t"], row["a"], row["b"]) for row in graph.query(read)}


def close_to(vector):
    return None if vector is None else pytest.approx(vector, abs=1e-6)


def test_rows_get_the_vectors_they_lack_and_keep_those_they_have(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA, embedding=MOCK)
    given = [1.0, 0.0, 0.0, 0.0]
    rows = [(f"n{number}", f"words of {number % 9}", None) for number in range(MANY)]
    rows += [("given", "words", given), ("silent", None, None), ("blank", "  ", None)]
    frame = spark.createDataFrame(rows, "slug string, text string, about array<float>")
    asked = []

    def meddle(name):
        asked.append(name)
        if name == "pipeline: prepared" and asked.count(name) == 1:
            og.open(graph.uri, embedding=MOCK).load({"Note": [{"slug": "other"}]})

    graph._manifest.datasets.observe = meddle
    embed = {"node:Note": ["about"]}
    done = load(graph, [TypeFrame("node:Note", frame)], spark, embed=embed, vectors_from="mock")
    assert asked.count("pipeline: prepared") == 2, "another writer was faster"
    assert asked.count("pipeline: finished embed") == 1
    assert done.embedded == [
        {
            "type": "Note",
            "properties": [
                {"name": "about", "embedded": MANY, "kept": 0, "texts": 9},
                {"name": "near", "embedded": MANY + 3, "kept": 0, "texts": MANY + 3},
            ],
            "skipped": 2,
            "model": "",
        }
    ]
    found = notes(graph)
    assert sorted(found) == sorted(["other", *(row[0] for row in rows)])
    known = {"given": given, "silent": None, "blank": None, "other": None}
    abouts = {text: mock_vector(text, 4) for _, text, _ in rows[:9]}
    for slug, (text, about, near) in found.items():
        assert about == close_to(known[slug] if slug in known else abouts[text])
        assert near == close_to(mock_vector(slug, 3))
    assert graph.verify().ok
    before = list(graph.export())
    graph.optimize()
    assert list(graph.export()) == before


# --- the model and the text of vectors ---------------------------------------------------------

NEAREST = (
    'query q() { match { $n: Note } return { $n.slug } order { nearest($n.about, "b") } limit 1 }'
)


def test_model_of_vectors_is_recorded_and_unknown_ones_are_not_filled_up(spark, tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA, embedding=MOCK)
    rows = [(name, name, mock_vector(name, 4)) for name in "ab"]
    columns = "slug string, text string, about array<float>"
    frame = [TypeFrame("node:Note", spark.createDataFrame(rows, columns))]
    load(graph, frame, spark)
    with pytest.raises(OmniError) as caught:
        graph.query(NEAREST)
    assert caught.value.code == "embedding_model_unknown"
    more = [TypeFrame("node:Note", spark.createDataFrame([("c", "c", None)], columns))]
    with pytest.raises(OmniError) as caught:
        load(graph, more, spark, embed={"node:Note": ["about"]})
    assert caught.value.code == "embedding_model_unknown"
    load(graph, frame, spark, vectors_from="mock")
    assert graph.query(NEAREST).rows == [{"n.slug": "b"}]
    load(graph, more, spark, embed={"node:Note": ["about"]})
    assert graph.query(NEAREST).rows == [{"n.slug": "b"}]
    with pytest.raises(OmniError) as caught:
        load(graph, frame, spark, vectors_from="m2")
    assert caught.value.code == "embedding_model_mismatch"


def test_text_that_changes_loses_its_vector_or_gets_a_new_one(spark, tmp_path):
    schema = SCHEMA.replace("@embed(slug)", "@embed(text)").replace("text: String?", "text: String")
    graph = og.init(tmp_path / "graph", schema, embedding=MOCK)
    graph.load({"Note": [{"slug": name, "text": name} for name in "ab"]})
    graph.embed("Note")
    rows = [("a", "changed"), ("b", "b")]
    frame = [TypeFrame("node:Note", spark.createDataFrame(rows, "slug string, text string"))]
    load(graph, frame, spark, partial=True)
    found = notes(graph)
    assert found["a"] == ("changed", None, close_to(mock_vector("changed", 3)))
    assert found["b"] == ("b", close_to(mock_vector("b", 4)), close_to(mock_vector("b", 3)))


# --- a service ---------------------------------------------------------------------------------


@pytest.fixture
def service(monkeypatch):
    """A service that four tasks ask, and that is asked twice before it is given up."""
    monkeypatch.setattr(embedding_cache, "TASK_TEXTS", 3)
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "2")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "1")
    monkeypatch.setenv("A_KEY", "secret-key")
    with embedding_service(openai_answer) as service:
        yield service


def graph_by(service, tmp_path):
    profile = {"base_url": service.url, "model": "m", "api_key": "${A_KEY}"}
    return og.init(tmp_path / "graph", SCHEMA, embedding=profile)


def write(tmp_path, rows):
    lines = [",".join(row) for row in [("slug", "text"), *rows]]
    (tmp_path / "notes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "p.yaml").write_text(FILE)
    return tmp_path / "p.yaml"


def texts_asked(service, dimension=4):
    """Return how often each text was asked for since last time."""
    asked = [request.body for request in service.asked]
    service.asked.clear()
    return Counter(t for body in asked if body["dimensions"] == dimension for t in body["input"])


def test_each_text_is_embedded_once_and_unchanged_texts_not_again(spark, tmp_path, service):
    graph = graph_by(service, tmp_path)
    write(tmp_path, [*NOTES, ("n1", "a row that is rejected")])
    report = graph.pipeline.run(tmp_path / "p.yaml")
    assert report.types["node:Note"]["rejected"] == {"unique": 1}
    assert [stage["name"] for stage in report.stages][-3:] == ["validate", "embed", "publish"]
    assert len(graph.commits.list()) == 2, "one for the graph, one for all that was loaded"
    assert len(service.asked) <= 8, "four tasks for each property, each with one request"
    assert texts_asked(service) == {text: 1 for _, text in NOTES}
    before = notes(graph)
    lengths = {slug: sum(v * v for v in about) for slug, (_, about, _) in before.items()}
    assert lengths == pytest.approx(dict.fromkeys(before, 1.0), abs=1e-6)

    changed = [*NOTES[:38], ("n38", "other words"), ("new", "new words"), ("newer", "new words")]
    report = graph.pipeline.run(write(tmp_path, changed))
    assert texts_asked(service) == {"other words": 1, "new words": 1}
    [summary] = report.embedded
    assert summary["properties"] == [
        {"name": "about", "embedded": 3, "kept": 38, "texts": 2},
        {"name": "near", "embedded": 2, "kept": 39, "texts": 2},
    ]
    after = notes(graph)
    assert {slug: after[slug] for slug, _ in NOTES[:38]} == {s: before[s] for s, _ in NOTES[:38]}
    assert after["n39"] == before["n39"], "it was not loaded again"
    wanted = vector_of("new words", 4)
    length = sum(value * value for value in wanted) ** 0.5
    assert after["newer"][1] == after["new"][1] == close_to([v / length for v in wanted])


class Dies(BaseException):
    """Ends a run where no handler is meant to help."""


def test_failing_service_is_reported_and_a_resumed_run_embeds_the_rest(
    spark, tmp_path, service, monkeypatch
):
    graph = graph_by(service, tmp_path)
    file = write(tmp_path, NOTES)
    head = graph.snapshot().commit_id

    def refuse(request):
        is_refused = "words of 4" in request.body["input"]
        return Reply(503, {"error": "busy"}) if is_refused else openai_answer(request)

    service.answer = refuse
    with pytest.raises(OmniError) as failed:
        graph.pipeline.run(file)
    error = failed.value
    assert error.code == "embedding_unavailable"
    assert (error.details["provider"], error.details["model"]) == ("openai-compatible", "m")
    assert (error.details["property"], error.details["texts"]) == ("Note.about", 9)
    made = error.details["embedded"]
    for word in (
        f"{made} of 9 different texts",
        "returned HTTP 503",
        "a resumed run embeds only the remaining texts",
    ):
        assert word in error.message
    assert "secret-key" not in str(error.to_json())
    assert graph.snapshot().commit_id == head
    assert graph.pipeline.report().error["code"] == "embedding_unavailable"
    asked = texts_asked(service)
    assert asked.pop("words of 4") == 2, "it is asked again once"
    answered = {text for text, count in asked.items() if count == 1}
    assert len(answered) == made

    service.answer = openai_answer
    run = graph.pipeline.report().run
    # What dies here is taken for a process that was killed.
    monkeypatch.setattr(RunLease, "_abort", lambda self, error: None)

    def die(name):
        if name == "pipeline: finished embed":
            raise Dies

    graph._manifest.datasets.observe = die
    with pytest.raises(Dies):
        graph.pipeline.resume(run)
    assert texts_asked(service) == {text: 1 for _, text in NOTES if text not in answered}
    assert graph.snapshot().commit_id == head
    graph = og.open(graph.uri)
    report = graph.pipeline.resume(run)
    assert service.asked == [], "the vectors are there"
    assert (report.accepted, report.embedded[0]["properties"][0]["embedded"]) == (40, 40)
    assert all(about and near for _, about, near in notes(graph).values())
    assert graph.verify().ok
