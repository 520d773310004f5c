"""Streams between graphs: every change arrives, once, whatever happens on the way."""

import json
import os
import signal
import subprocess
import sys

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import omnigraph as og
from omnigraph import pipeline
from omnigraph.errors import InvalidInput, OmniError
from omnigraph.pipeline.connector import stream_writer, streams
from tests.support.streaming import SCHEMA

pytestmark = pytest.mark.usefixtures("quick")
NOW = {"availableNow": True}
STREAMED = ["Person", "Knows"]


@pytest.fixture
def graph(tmp_path):
    """A graph with inserts, updates and deletes of nodes and edges behind it."""
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load({"Person": [person(n) for n in range(6)]})
    graph.load({"Knows": [knows(n, n + 1) for n in range(5)]})
    graph.load({"Person": [{"name": "p1", "age": 7}]}, partial=True)
    graph.mutate('query q() { delete Person where name = "p3" }')
    graph.load({"Knows": [{**knows(0, 1), "since": "2020-01-01"}], "Person": [person(6)]})
    return graph


@pytest.fixture
def copy(tmp_path):
    return og.init(tmp_path / "copy", SCHEMA)


def person(number):
    return {
        "name": f"p{number}",
        "age": 2**64 - 1 - number,
        "at": f"2024-05-01T12:00:00.00{number}Z",
        "far": [number, 0.5],
        "file": "base64:aGk=" if number % 2 else None,
    }


def knows(src, dst):
    return {"id": f"k{src}-{dst}", "from": f"p{src}", "to": f"p{dst}"}


def flow(spark, graph, copy, tmp_path, **options):
    """Start a stream of all changes from the beginning, or from where it stopped."""
    changes = pipeline.read_changes(spark, graph, start="beginning", **options)
    return pipeline.stream_into(
        changes, copy, pipeline.StreamOptions(checkpoint=str(tmp_path / "check"), trigger=NOW)
    )


def flowed(graph):
    return list(graph.export(types=STREAMED))


def batches(copy):
    """Return the numbers of the batches that were published, the oldest first."""
    messages = [c.message for c in copy.commits.list()[::-1] if c.operation == "stream"]
    assert len({message.rpartition(" ")[2] for message in messages}) <= 1, "all of one stream"
    return [int(message.split()[1]) for message in messages]


@pytest.mark.parametrize("where", ["driver", "workers"])
def test_changes_flow_into_another_graph_and_go_on_from_a_checkpoint(
    spark, graph, copy, tmp_path, monkeypatch, where
):
    by_workers = noted(monkeypatch, "load_lines") if where == "workers" else []
    flow(spark, graph, copy, tmp_path).awaitTermination()
    assert flowed(copy) == flowed(graph)
    copy.load({"Note": [{"id": "n", "text": "another writer"}]})
    copy.load({"Knows": [knows(6, 0)]})
    graph.mutate('query q() { delete Person where name = "p6" }')
    graph.load({"Person": [{"name": "p0", "age": 1}, person(9)], "Knows": [knows(9, 0)]})
    graph.optimize()
    flow(spark, graph, copy, tmp_path).awaitTermination()
    assert flowed(copy) == flowed(graph), "an edge of a node that is gone went with it"
    assert batches(copy) == [0, 1]
    flow(spark, graph, copy, tmp_path).awaitTermination()
    assert batches(copy) == [0, 1], "nothing happened, nothing is committed"
    assert len(by_workers) == (2 if where == "workers" else 0), "both batches delete something"
    assert [json.loads(line)["data"]["id"] for line in copy.export(types=["Note"])] == ["n"]


def test_a_batch_that_was_published_and_not_noted_is_not_published_again(
    spark, graph, copy, tmp_path
):
    class Died(Exception):
        pass

    def die(step):
        if step == "swap: done":
            raise Died

    for _ in range(2):
        copy._manifest.datasets.observe = die
        with pytest.raises(StreamingQueryException):
            flow(spark, graph, copy, tmp_path, maxChangesPerBatch="6").awaitTermination()
        copy = og.open(tmp_path / "copy")
    assert len(batches(copy)) == 2, "one for each time it died"
    flow(spark, graph, copy, tmp_path, maxChangesPerBatch="6").awaitTermination()
    assert flowed(copy) == flowed(graph)
    assert batches(copy) == sorted(set(batches(copy)))
    assert len(batches(copy)) > 2


@pytest.mark.skipif(not os.environ.get("SOAK_SECONDS"), reason="starts a JVM: only in soaks")
def test_a_stream_of_a_killed_process_is_continued_by_another(spark, graph, copy, tmp_path):
    command = [sys.executable, "-m", "tests.support.streaming"]
    paths = [str(tmp_path / name) for name in ("graph", "copy", "check")]
    child = subprocess.run([*command, *paths], capture_output=True, text=True)
    assert child.returncode == -signal.SIGKILL, child.stderr
    copy = og.open(tmp_path / "copy")
    assert batches(copy) == [0, 1, 2]
    assert flowed(copy) != flowed(graph)
    flow(spark, graph, copy, tmp_path).awaitTermination()
    assert flowed(copy) == flowed(graph)
    assert batches(copy) == [0, 1, 2, 3]
    assert copy.verify().ok


def noted(monkeypatch, name):
    """Let workers load what a batch has, and note that they do."""
    real, calls = getattr(stream_writer, name), []
    monkeypatch.setattr(stream_writer, "SMALL_BATCH_ROWS", 0)
    monkeypatch.setattr(stream_writer, name, lambda *given: calls.append(name) or real(*given))
    return calls


def test_a_stream_follows_a_graph_that_is_written_meanwhile(
    spark, graph, copy, tmp_path, monkeypatch
):
    by_workers = noted(monkeypatch, "load_lines")
    changes = pipeline.read_changes(spark, graph, start="beginning")
    options = pipeline.StreamOptions(checkpoint=str(tmp_path / "check"))
    running = pipeline.stream_into(changes, copy, options)
    try:
        for number in range(10, 13):
            graph.load({"Person": [person(number)], "Knows": [knows(number, 0)]})
            copy.load({"Note": [{"text": f"note {number}"}]})
        running.processAllAvailable()
        graph.load({"Person": [person(13)], "Knows": [knows(13, 12)]})
        running.processAllAvailable()
    finally:
        running.stop()
    assert by_workers
    assert pipeline.session() is spark
    assert flowed(copy) == flowed(graph)
    assert len(list(copy.export(types=["Note"]))) == 3
    assert batches(copy) == list(range(len(batches(copy))))


def test_rows_of_a_type_are_loaded_once_each(spark, copy, tmp_path, monkeypatch):
    source = tmp_path / "rows"
    source.mkdir()
    options = pipeline.StreamOptions(
        checkpoint=str(tmp_path / "check"), type_name="Person", mode="append", trigger=NOW
    )
    for number in range(2):
        by_workers = noted(monkeypatch, "load_frames") if number else []
        (source / f"{number}.json").write_text(json.dumps({"name": f"p{number}", "age": number}))
        rows = spark.readStream.schema("name string, age bigint").json(str(source))
        pipeline.stream_into(rows, copy, options).awaitTermination()
    assert by_workers == ["load_frames"]
    assert pipeline.session() is spark  # not the copy of it that the stream ran in
    read = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
    assert copy.query(read).rows == [
        {"p.name": "p0", "p.age": 0},
        {"p.name": "p1", "p.age": 1},
    ]
    assert batches(copy) == [0, 1]


def test_rows_of_a_stream_are_the_changes_of_the_feed(spark, graph, tmp_path):
    found = []
    changes = pipeline.read_changes(
        spark, graph, start="beginning", types="Knows", ops="update,delete"
    )
    writer = changes.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(**NOW)
    writer.foreachBatch(lambda batch, _: found.extend(batch.collect())).start().awaitTermination()
    page = graph.changes.poll(start="beginning", types=["Knows"], ops=["update", "delete"])
    expected = [(block.commit, change) for block in page.blocks for change in block.changes]
    rows = sorted(found, key=lambda row: (row.place, row.id))
    assert len(rows) == 3
    for row, (commit, change) in zip(rows, expected, strict=True):
        image = change.after or change.before
        assert (row.commit, row.actor, row.op) == (commit.id, commit.actor, str(change.op))
        assert (row.kind, row.type, row.id) == ("edge", "Knows", change.id)
        assert (row["from"], row["to"]) == image.endpoints
        assert row.authored_at.timestamp() == pytest.approx(commit.created_at.timestamp())
        for text, one in ((row.before, change.before), (row.after, change.after)):
            assert (None if text is None else json.loads(text)) == (
                None if one is None else dict(one.properties)
            )


def test_stream_start_is_retried_while_the_server_is_busy():
    class Busy:
        starts = 0

        def start(self):
            self.starts += 1
            if self.starts < free:
                raise PySparkException("Python worker failed to connect back.")
            return "started"

    free, writer = 3, Busy()
    assert streams._started(writer) == "started"
    assert writer.starts == 3
    free, writer = 99, Busy()
    with pytest.raises(OmniError, match="it is too busy") as refused:
        streams._started(writer)
    assert (refused.value.code, writer.starts) == ("stream_not_started", streams.MAX_STARTS)


def test_invalid_stream_is_refused(spark, graph, copy, tmp_path):
    options = pipeline.StreamOptions(checkpoint=str(tmp_path / "check"), trigger=NOW)
    rows = spark.readStream.format("rate").load()
    with pytest.raises(InvalidInput, match="set `type_name`") as refused:
        pipeline.stream_into(rows, copy, options)
    assert refused.value.code == "stream_columns_missing"
    changes = pipeline.read_changes(spark, graph, start="beginning")
    with pytest.raises(InvalidInput, match="open read-only"):
        pipeline.stream_into(changes, og.open(tmp_path / "copy", "ro"), options)
    plain = spark.readStream.format("omnigraph").option("type", "Person").load(graph.uri)
    writer = plain.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(PySparkException, match="needs the option 'changes'"):
        writer.trigger(**NOW).start().awaitTermination()
    other = og.init(tmp_path / "other", SCHEMA.replace("age: U64?", "age: I32?"))
    with pytest.raises(StreamingQueryException, match="exceeds I32"):
        pipeline.stream_into(changes, other, options).awaitTermination()
    assert len(other.commits.list()) == 1
