"""The counts of a commit are those of its difference to its first parent, whatever wrote it."""

import json
import random

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import omnigraph.graph as og
from omnigraph.commit.model import Counts
from omnigraph.errors import NotFound, OmniError
from omnigraph.write.load import LoadOptions, load

SCHEMA = """
node Person {
  name: String @key
  age: I64?
  score: F64?
  tags: [String]?
  at: Vector(2)?
  photo: Blob?
  born: Date?
}
edge Knows: Person -> Person { since: I32? }
"""
ADA = {"name": "Ada", "age": 36, "score": -0.0, "tags": ["a", ""], "at": [0.5, 1.0]}
BOB = {"name": "Bob", "photo": "base64:AAEC", "born": "2020-01-01", "tags": []}
KNOWS = {"id": "k", "from": "Ada", "to": "Bob", "since": 1}


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "graph", SCHEMA)
    made.load({"Person": [ADA, BOB], "Knows": [KNOWS]})
    return made


def differences(graph, commit):
    """Return what a commit changed against its first parent, counted from the difference."""
    found = {}
    for change in graph.diff(commit.parents[0], commit.id):
        key = f"{change.kind}:{change.type}"
        counts = found.setdefault(key, {"insert": 0, "update": 0, "delete": 0})
        counts[str(change.op)] += 1
    return {key: Counts(*counts.values()) for key, counts in found.items()}


def check(graph, commit):
    assert dict(commit.counts) == differences(graph, commit)


def data_in(form, rows, folder):
    table = pa.Table.from_pylist(rows)
    match form:
        case "ndjson":
            lines = (json.dumps({"type": "Person", "data": row}) for row in rows)
            return "\n".join(lines).encode()
        case "rows":
            return {"Person": rows}
        case "arrow":
            return {"Person": table}
        case "parquet":
            pyarrow.parquet.write_table(table, folder / "people.parquet")
            return {"Person": folder / "people.parquet"}
        case "csv":
            pyarrow.csv.write_csv(table, folder / "people.csv")
            return {"Person": folder / "people.csv"}


@pytest.mark.parametrize("form", ["ndjson", "rows", "arrow", "parquet", "csv"])
@pytest.mark.parametrize("partial", [False, True], ids=["whole", "partial"])
def test_a_merge_load_leaves_out_rows_that_are_the_same(tmp_path, form, partial):
    graph = og.init(
        tmp_path / "graph", "node Person { name: String @key  age: I64?  nick: String? }"
    )
    rows = [{"name": f"p{n}", "age": n, "nick": "x"} for n in range(50)]
    graph.load({"Person": rows})
    head = graph.snapshot().commit_id
    given = [{k: row[k] for k in ("name", "age")} for row in rows] if partial else rows
    same = graph.load(data_in(form, given, tmp_path), mode="merge", partial=partial)
    assert (same.commit, same.total, graph.snapshot().commit_id) == (None, 50, head)
    given[7] = {**given[7], "age": -1}
    changed = graph.load(data_in(form, given, tmp_path), mode="merge", partial=partial)
    assert dict(changed.commit.counts) == {"node:Person": Counts(updated=1)}
    check(graph, changed.commit)
    assert graph.entity_at("Person", "p7") | {"id": ""} == {
        "id": "",
        "name": "p7",
        "age": -1,
        "nick": "x",
    }


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        ({}, False),
        ({"score": 0.0}, True),
        ({"score": None}, True),
        ({"tags": ["a"]}, True),
        ({"at": [0.5, 1.0]}, False),
        ({"at": [0.5, -1.0]}, True),
        ({"at": None}, True),
        ({"photo": "base64:"}, True),
    ],
)
def test_values_are_compared_exactly(graph, values, changes):
    made = graph.load({"Person": [ADA | values]}).commit
    assert (made is not None) == changes
    if made is not None:
        check(graph, made)


@pytest.mark.parametrize(
    ("photo", "changes"),
    [(b"\x00\x01\x02", False), (b"\x00\x01\x03", True), (b"\x00\x01", True), (b"", True)],
)
def test_a_blob_is_compared_by_its_bytes(graph, photo, changes):
    made = graph.put_blob("Person", "Bob", "photo", photo)
    assert (made is not None) == changes
    if made is not None:
        check(graph, made)
    with pytest.raises(NotFound):
        graph.put_blob("Person", "Nobody", "photo", photo)


def test_a_mutation_that_changes_nothing_makes_no_commit(graph):
    text = 'query q() { update Person set { age: 36 } where name = "Ada" }'
    made = graph.mutate(text)
    assert (made.affected_nodes, made.commit) == (1, None)
    text = 'query q($f: I64) { update Person set { age: $f } where id > "" }'
    made = graph.mutate(text, {"f": 36})
    assert (made.affected_nodes, made.commit.counts) == (2, {"node:Person": Counts(updated=1)})
    check(graph, made.commit)


def test_an_overwrite_counts_what_changed(graph):
    same = graph.load({"Person": [ADA, BOB], "Knows": [KNOWS]}, mode="overwrite")
    assert same.commit is None
    rows = [ADA, {"name": "Cid"}]
    ends = {**KNOWS, "to": "Cid"}
    made = graph.load({"Person": rows, "Knows": [ends]}, mode="overwrite").commit
    assert dict(made.counts) == {
        "node:Person": Counts(inserted=1, deleted=1),
        "edge:Knows": Counts(updated=1),
    }
    check(graph, made)


def test_a_merge_whose_decisions_take_the_target_counts_nothing(graph):
    graph.branches.create("side")
    graph.load({"Person": [ADA | {"age": 1}]}, branch="side")
    graph.load({"Person": [ADA | {"age": 2}]})
    made = graph.merge("side", resolve="target").commit
    assert made.counts == {}
    check(graph, made)


def test_after_any_write_counts_are_those_of_the_difference(graph):
    chance = random.Random(7)
    for _ in range(25):
        before = graph.snapshot().commit_id
        made = write_something(graph, chance)
        if made is None:
            assert graph.snapshot().commit_id == before
        else:
            check(graph, made)


VALUES = {
    "age": (None, 1, 2),
    "score": (None, 0.0, -0.0, 1.5),
    "tags": (None, [], ["a"], [""]),
    "at": (None, [0.0, 1.0], [-0.0, 1.0]),
    "photo": (None, "base64:", "base64:AA==", "base64:AQ=="),
}


def write_something(graph, chance):
    people = [
        {"name": name, **{k: chance.choice(v) for k, v in VALUES.items()}}
        for name in chance.sample(["Ada", "Bob", "Cid", "Dan", "Eve"], chance.randint(1, 4))
    ]
    match chance.randrange(6):
        case 0 | 1:
            return graph.load({"Person": people}).commit
        case 2:
            kept = [
                {k: p[k] for k in chance.sample(list(p), 3)} | {"name": p["name"]} for p in people
            ]
            return graph.load({"Person": kept}, partial=True).commit
        case 3:
            edges = [
                {
                    "id": str(chance.randrange(3)),
                    "from": "Ada",
                    "to": "Ada",
                    "since": chance.randrange(2),
                }
            ]
            rows = [p for p in people if p["name"] != "Ada"]
            return graph.load(
                {"Person": [*rows, {"name": "Ada"}], "Knows": edges[:1]}, mode="overwrite"
            ).commit
        case 4:
            params = {"a": chance.choice((1, 2))}
            return graph.mutate(
                'query q($a: I64) { update Person set { age: $a } where id > "" }', params
            ).commit
        case _:
            return graph.mutate('query q() { delete Person where name = "Eve" }').commit


EMBEDDED = "node Doc { k: String @key  n: I64?  v: Vector(3) @embed(k) }"


def with_model(path, model):
    return og.open(path, embedding={"kind": "mock", "model": model})


def test_a_vector_that_would_only_be_made_again_changes_nothing(tmp_path):
    path = tmp_path / "graph"
    og.init(path, EMBEDDED, embedding={"kind": "mock", "model": "m1"})
    graph = with_model(path, "m1")
    rows = [{"k": "a", "n": 1}, {"k": "b", "n": 2}]
    graph.load({"Doc": rows})
    vectors = [graph.entity_at("Doc", k)["v"] for k in "ab"]
    assert graph.load({"Doc": rows}).commit is None
    made = graph.load({"Doc": [rows[0] | {"n": 3}, rows[1]]}).commit
    assert dict(made.counts) == {"node:Doc": Counts(updated=1)}
    check(graph, made)
    assert [graph.entity_at("Doc", k)["v"] for k in "ab"] == vectors
    assert graph.embed("Doc", all=True).commit is None


def test_a_model_is_noted_although_its_vectors_are_the_same(tmp_path):
    path = tmp_path / "graph"
    og.init(path, EMBEDDED, embedding={"kind": "mock", "model": "m1"})
    with_model(path, "m1").load({"Doc": [{"k": "a"}]})
    other = with_model(path, "m2")
    with pytest.raises(OmniError) as caught:
        other.load({"Doc": [{"k": "b"}]})
    assert caught.value.code == "embedding_model_mismatch"
    made = other.embed("Doc", all=True).commit
    check(other, made)
    other.load({"Doc": [{"k": "b"}]})


def test_a_load_that_records_something_is_a_commit_without_counts(graph):
    request = graph._request("stream", None, "batch 1 of stream s")
    made = load(graph._manifest, request, {"Person": [ADA]}, LoadOptions(always=True)).commit
    assert (made.message, made.counts) == ("batch 1 of stream s", {})
    check(graph, made)
