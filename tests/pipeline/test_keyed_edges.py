"""Edges with a key on Spark: loading them again, by any interface, changes nothing."""

import json

import pytest

import omnigraph.graph as og
from omnigraph import pipeline
from omnigraph.lang import Code
from omnigraph.pipeline.config.spec import PipelineError
from omnigraph.write import ValidationFailed
from tests.support.changes import read_state

SCHEMA = """
node Stop { name: String @key }
edge Link: Stop -> Stop @key(src, dst, on) { on: Date  metres: I32? }
edge Plain: Stop -> Stop
"""
ROWS = [("a", "b", "2024-05-01", 5), ("a", "b", "2024-05-02", None), ("b", "a", "2024-05-01", 7)]
IDS = ['["a","b","19844"]', '["a","b","19845"]', '["b","a","19844"]']
PIPELINE = """version: 1
sources:
  links: {csv: links.csv}
edges:
  Link:
    source: links
    from: start
    to: stop
    properties: {on: day, metres: metres}
    dedupe: {keep: last}
mode: merge
"""


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "graph", SCHEMA)
    made.load({"Stop": [{"name": "a"}, {"name": "b"}]})
    return made


def frame_of(spark, rows=ROWS):
    frame = spark.createDataFrame(rows, "`from` string, `to` string, `on` string, metres int")
    return frame.selectExpr("`from`", "`to`", "to_date(`on`) AS `on`", "metres")


def by_writer(spark, graph, folder):
    writer = frame_of(spark).write.format("omnigraph").mode("append")
    writer.option("type", "Link").option("mode", "merge").save(graph.uri)


def by_function(spark, graph, folder):
    pipeline.write(frame_of(spark), graph, "Link", mode="merge")


def by_engine(spark, graph, folder):
    lines = [
        {"edge": "Link", "from": src, "to": dst, "data": {"on": on, "metres": metres}}
        for src, dst, on, metres in ROWS
    ]
    (folder / "links.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    graph.load(folder / "links.ndjson", engine="spark")


def by_pipeline(spark, graph, folder):
    lines = [f"{src},{dst},{on},{'' if m is None else m}" for src, dst, on, m in (ROWS[0], *ROWS)]
    (folder / "links.csv").write_text("start,stop,day,metres\n" + "\n".join(lines) + "\n")
    (folder / "links.yaml").write_text(PIPELINE)
    report = graph.pipeline.run(folder / "links.yaml", force=True)
    assert report.is_done, report.error


WAYS = [by_writer, by_function, by_engine, by_pipeline]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_edges_that_are_loaded_twice_are_there_once(spark, graph, tmp_path, way):
    way(spark, graph, tmp_path)
    once, head = list(graph.export()), graph.snapshot().commit_id
    assert sorted(read_state(graph)["Link"]) == IDS
    way(spark, graph, tmp_path)
    assert list(graph.export()) == once
    # A run on Spark is recorded as a commit, also if it changed nothing.
    newest = graph.commits.list(limit=1)[0]
    assert newest.id == head or newest.counts == {}
    assert graph.load({"Link": [{"from": "a", "to": "b", "on": "2024-05-02"}]}).commit is None


def test_streamed_edges_keep_the_ids_of_their_keys(spark, graph, tmp_path):
    by_function(spark, graph, tmp_path)
    copy = og.init(tmp_path / "copy", SCHEMA)
    for folder in ("first", "second"):
        options = pipeline.StreamOptions(
            checkpoint=str(tmp_path / folder), trigger={"availableNow": True}
        )
        changes = pipeline.read_changes(spark, graph, start="beginning")
        pipeline.stream_into(changes, copy, options).awaitTermination()
        assert list(copy.export()) == list(graph.export())


def test_edge_that_exists_is_not_appended_and_one_load_gives_it_once(spark, graph):
    pipeline.write(frame_of(spark, ROWS[:1]), graph, "Link", mode="merge")
    with pytest.raises(ValidationFailed) as refused:
        pipeline.write(frame_of(spark), graph, "Link", mode="append")
    [violation] = refused.value.violations
    assert (violation.rule, violation.id) == ("key_conflict", IDS[0])
    with pytest.raises(ValidationFailed) as refused:
        pipeline.write(frame_of(spark, [ROWS[1], ROWS[1]]), graph, "Link", mode="merge")
    [violation] = refused.value.violations
    assert (violation.rule, violation.id) == ("unique", IDS[1])


def test_edges_without_a_key_are_noted_when_there_are_some(spark, graph, tmp_path):
    (tmp_path / "plain.ndjson").write_text(
        '{"edge": "Plain", "from": "a", "to": "b", "data": {}}\n'
    )
    assert graph.load(tmp_path / "plain.ndjson", engine="spark").notes == ()
    [note] = graph.load(tmp_path / "plain.ndjson", engine="spark").notes
    assert note.startswith("edge Plain has no key and no ids were given")
    (tmp_path / "p.yaml").write_text("version: 1\nsources: {plain: {ndjson: plain.ndjson}}\n")
    report = graph.pipeline.run(tmp_path / "p.yaml")
    assert graph.pipeline.report(report.run).notes == [note]


def test_pipeline_gives_no_id_to_an_edge_with_a_key(graph, tmp_path):
    (tmp_path / "links.csv").write_text("start,stop,day,metres\n")
    text = PIPELINE.replace("    from: start", "    id: start\n    from: start").replace(
        "on: day, ", ""
    )
    (tmp_path / "links.yaml").write_text(text)
    with pytest.raises(PipelineError) as refused:
        graph.pipeline.validate(tmp_path / "links.yaml")
    found = [(d.code, d.message) for d in refused.value.diagnostics]
    assert found == [
        (
            Code.PIPELINE_PROPERTY_MISSING,
            "edge `Link`: `on` is part of the key and has no value",
        ),
        (
            Code.PIPELINE_ID_MISUSED,
            "the id of edge `Link` is derived from its key (src, dst, on)",
        ),
    ]
