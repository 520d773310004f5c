"""Runs send OpenLineage events: inputs, outputs and the columns that properties are made from."""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import omnigraph as og
from omnigraph.pipeline.config.spec import PipelineError, read_pipeline
from omnigraph.pipeline.runs.openlineage import source_datasets

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person
"""
PIPELINE = """version: 1
name: crm
variables: {KEY: s3cret}
sources:
  people: {csv: people.csv}
  friends: {json: "friends*.jsonl"}
  pairs: {sql: "select f.a as src, upper(f.b) as dst, 'city' as c from friends f"}
nodes:
  Person: {source: people, properties: {name: name, age: cast(age as int) + length('city')}}
edges:
  Knows: {source: pairs, from: lower(src), to: lower(dst)}
openlineage: {RECEIVER, namespace: crm}
"""


@pytest.fixture
def graph(spark, tmp_path):
    (tmp_path / "people.csv").write_text("name,age,city\nada,36,ely\nbo,2,\n")
    (tmp_path / "friends.jsonl").write_text('{"a": "ada", "b": "bo"}\n')
    return og.init(tmp_path / "g", SCHEMA)


def write(tmp_path, receiver):
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.replace("RECEIVER", receiver))
    return path


def test_a_run_appends_events_to_a_file(graph, tmp_path):
    path = write(tmp_path, "file: out/events.jsonl")
    report = graph.pipeline.run(path)
    (tmp_path / "people.csv").write_text("name,age,city\nada,many,\n")
    with pytest.raises(og.ValidationFailed) as failed:
        graph.pipeline.run(path)
    lines = (tmp_path / "out" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE", "START", "FAIL"]
    start, complete, _, fail = events
    assert {event["job"]["namespace"] + "/" + event["job"]["name"] for event in events} == {
        "crm/crm"
    }
    assert start["run"]["runId"] == complete["run"]["runId"] != fail["run"]["runId"]
    uuid.UUID(start["run"]["runId"])
    message = fail["run"]["facets"]["errorMessage"]["message"]
    assert message == failed.value.message

    people = {"namespace": "file", "name": f"{tmp_path}/people.csv"}
    friends = {"namespace": "file", "name": f"{tmp_path}/friends*.jsonl"}
    inputs = {
        (one["namespace"], one["name"]): [f["name"] for f in one["facets"]["schema"]["fields"]]
        for one in complete["inputs"]
    }
    assert inputs == {
        tuple(people.values()): ["name", "age", "city"],
        tuple(friends.values()): ["a", "b"],
    }
    person, knows = complete["outputs"]
    assert person["name"] == f"{tmp_path}/g/node/Person@main"
    assert person["facets"]["version"]["datasetVersion"] == report.commit["graph_commit_id"]
    counts = person["outputFacets"]["outputStatistics"]
    assert (counts["rowCount"], counts["size"] > 0) == (2, True)
    identity, transformation = (
        [{"type": "DIRECT", "subtype": kind}] for kind in ("IDENTITY", "TRANSFORMATION")
    )
    assert person["facets"]["columnLineage"]["fields"] == {
        "name": {"inputFields": [{**people, "field": "name", "transformations": identity}]},
        "age": {"inputFields": [{**people, "field": "age", "transformations": transformation}]},
    }
    named = [{**friends, "field": c, "transformations": transformation} for c in ("a", "b")]
    assert knows["facets"]["columnLineage"]["fields"] == {
        "from": {"inputFields": named},
        "to": {"inputFields": named},
    }
    fields = [f["name"] for f in knows["facets"]["schema"]["fields"]]
    assert fields == ["from", "to"]


def test_events_are_posted_and_a_receiver_that_fails_is_a_note(graph, tmp_path):
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            event = json.loads(self.rfile.read(length))
            received.append((self.path, self.headers["Authorization"], event["eventType"]))
            self.send_response(201 if len(received) == 1 else 503)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        path = write(tmp_path, f'url: "{address}", api_key: "${{KEY}}"')
        report = graph.pipeline.run(path)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert received == [
        ("/api/v1/lineage", "Bearer s3cret", "START"),
        ("/api/v1/lineage", "Bearer s3cret", "COMPLETE"),
    ]
    [note] = report.notes
    assert note.startswith(f"OpenLineage event COMPLETE was not sent to {address[7:]}: ")
    assert "503" in note
    assert "s3cret" not in json.dumps(graph.pipeline.report().to_json())
    report = graph.pipeline.run(path, force=True)  # nothing listens any more
    unsent = [note.split()[2] for note in report.notes if note.startswith("OpenLineage")]
    assert (report.state, unsent) == ("finished", ["START", "COMPLETE"])


def test_datasets_are_named_without_credentials(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("""version: 1
sources:
  a: {parquet: "s3a://key:secret@lake/in/*.parquet"}
  b: {jdbc: "jdbc:postgresql://me:pw@db:5432/crm?password=pw", table: public.people}
  c: {jdbc: "jdbc:sqlserver://db;user=me;password=pw", query: select 1 as name}
  d: {table: lake.crm.people}
  e: {sql: "select * from a, b, c, d"}
nodes: {Person: {source: e}}
openlineage: {url: "http://x"}
""")
    pipeline = read_pipeline(path)
    assert [source_datasets(pipeline, spec, "ns") for spec in pipeline.sources.values()] == [
        [{"namespace": "s3a://lake", "name": "in/*.parquet"}],
        [{"namespace": "postgres://db:5432", "name": "crm.public.people"}],
        [{"namespace": "sqlserver://db", "name": "query"}],
        [{"namespace": "ns", "name": "lake.crm.people"}],
        [],
    ]
    path.write_text(path.read_text().replace('url: "http://x"', "namespace: x"))
    with pytest.raises(PipelineError, match="needs `url` or `file`"):
        read_pipeline(path)
