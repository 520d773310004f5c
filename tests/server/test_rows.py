"""Rows alone: as an Arrow stream or as lines of JSON."""

import io
import json

import pyarrow as pa
import pytest

from tests.support.serving import ALL_PEOPLE

G = "/graphs/rows"
ARROW = "application/vnd.apache.arrow.stream"
LINES = "application/x-ndjson"
EXPECTED = [{"name": f"p{n:05}", "age": n % 90} for n in range(2_000)]


@pytest.fixture(scope="module", autouse=True)
def loaded(open_server):
    lines = "\n".join(json.dumps({"type": "Person", "data": row}) for row in EXPECTED)
    with open_server.client() as client:
        done = client.post(f"{G}/load", json={"data": lines})
        return done.json()["commit"]["graph_commit_id"]


def ask(client, media, **request):
    body = {"query": ALL_PEOPLE, **request}
    return client.post(f"{G}/query", json=body, headers={"Accept": media})


def test_an_arrow_stream_has_the_rows_with_their_types(client, loaded):
    answer = ask(client, ARROW)
    assert answer.headers["content-type"] == ARROW
    assert answer.headers["omnigraph-graph-commit"] == loaded
    assert answer.headers["omnigraph-query-name"] == "people"
    assert answer.headers["omnigraph-row-count"] == "2000"
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert table.to_pylist() == EXPECTED
    assert table.schema.field("age").type == pa.int32()


def test_lines_have_one_row_each(client):
    answer = ask(client, LINES)
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert [json.loads(line) for line in answer.text.splitlines()] == EXPECTED


def test_whoever_takes_json_too_gets_json(client):
    answer = ask(client, f"application/json, {LINES}")
    assert answer.json()["rows"] == EXPECTED


def test_no_rows_are_an_empty_stream_of_the_same_types(client):
    none = "query none() { match { $p: Person  $p.age > 900 } return { $p.age as age } }"
    answer = ask(client, ARROW, query=none)
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert (table.num_rows, table.schema.names) == (0, ["age"])
    assert ask(client, LINES, query=none).text == ""


@pytest.mark.parametrize("media", [ARROW, LINES])
def test_what_is_wrong_is_reported_in_json(client, media):
    answer = ask(client, media, query="query broken(")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
