"""A type at a version is read under logical names, whatever its columns are called in storage."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.dataset_view import DatasetView, StagedView
from omnigraph.errors import GraphCorrupt, VersionReclaimed
from omnigraph.storage.index import IndexKind
from omnigraph.storage.row_lookup import ROW_ADDRESS

SCHEMA = """
node Person { name: String @key  age: I32?  note: String?  photo: Blob? }
edge Knows: Person -> Person { since: I32? }
"""
STEPS = [
    SCHEMA.replace("note: String?", 'remark: String? @rename_from("note")'),
    SCHEMA.replace("note: String?", "remark: String?  note: I64?"),
]
ROWS = [
    {"type": "Person", "data": {"name": "ann", "age": 30, "note": "a `note` of 'ann'"}},
    {"type": "Person", "data": {"name": "bob", "age": 40, "photo": "base64:aGk="}},
    {"type": "Person", "data": {"name": "cid"}},
    {"edge": "Knows", "from": "ann", "to": "bob", "data": {"id": "k1", "since": 7}},
]


@pytest.fixture
def graph(tmp_path):
    made = og.init(tmp_path / "g", SCHEMA)
    made.load("\n".join(map(json.dumps, ROWS)).encode())
    for schema in STEPS:
        made.schema.apply(schema)
    return made


def view(graph, kind=TypeKind.NODE, name="Person"):
    snapshot = graph.snapshot()
    return DatasetView.of(graph._manifest, snapshot, snapshot.schema.find(kind, name))


def ids(rows):
    return sorted(rows["id"].to_pylist())


def test_columns_are_named_by_the_schema(graph):
    people = view(graph)
    assert people.column_names == ["id", "age", "name", "note", "photo", "remark"]
    assert people.schema.names == people.column_names
    assert people.rows == 3
    assert view(graph, TypeKind.EDGE, "Knows").system_columns == ("id", "src", "dst")
    new = pa.table({"remark": ["r"], "note": pa.array([1], pa.int64())})
    assert people.to_stored(new).column_names == ["note", "note_2"]
    people.check_columns()


def test_conditions_name_columns_and_leave_literals_alone(graph):
    people = view(graph)
    rows = people.select("`remark` = 'a `note` of ''ann'''", ["id", "remark"])
    assert rows.column_names == ["id", "remark", ROW_ADDRESS]
    assert rows["remark"].to_pylist() == ["a `note` of 'ann'"]
    assert people.count("`note` IS NULL") == 3
    assert people.count("`remark` IS NULL AND `age` IS NULL") == 1
    assert ids(people.select(None, ["id"])) == ["ann", "bob", "cid"]
    [batch] = people.select_in_batches("`remark` IS NOT NULL", ["remark"], 10)
    assert batch.column_names == ["remark"]


def test_rows_are_found_by_values(graph):
    people = view(graph)
    rows = people.lookup("remark", pa.array(["a `note` of 'ann'", "x"]), ["id"])
    assert rows.column_names == ["id", ROW_ADDRESS]
    assert ids(rows) == ["ann"]
    located = people.lookup_with_positions("age", pa.array([30, 40], pa.int32()), ["id", "remark"])
    assert located.column_names == ["id", "remark", "_rowoffset"]
    assert ids(located) == ["ann", "bob"]
    limited = people.lookup_with_positions("age", pa.array([30, 40], pa.int32()), ["id"], 1)
    assert limited.num_rows == 1
    assert people.find("bob", ["id", "note", "remark"]).column_names[:3] == ["id", "note", "remark"]
    assert people.find("nobody", ["id"]).num_rows == 0


def test_positions_and_addresses_agree(graph):
    people = view(graph)
    where = people.positions("`age` > 30")
    column = people.read_column("id")
    assert column.take(pa.array(where)).to_pylist() == ["bob"]
    addresses = people.address_map().at(np.arange(3))
    assert people.rows_at(addresses, ["id"])["id"].to_pylist() == column.to_pylist()
    assert ids(people.all_addresses()) == ids(people.addresses_of(column))
    [chunk] = people.read_column_chunks(["remark", "age"], 10)
    assert chunk.column_names == ["remark", "age"]
    assert people.index_coverage("remark", IndexKind.BTREE)[0] == 0
    assert sum(people.fragment_rows().values()) == 3


def test_entities_have_their_blobs(graph):
    people = view(graph)
    entities = people.entities(pa.array(["bob", "nope"]))
    assert entities.column_names == people.column_names
    assert entities["photo"].to_pylist() == [{"data": b"hi", "uri": None}]
    addresses = people.addresses_of(pa.array(["bob"]))[ROW_ADDRESS].to_numpy()
    assert people.blobs_at(addresses, "photo") == [b"hi"]
    [batch] = people.scan(["id", "photo"], by_id=True, condition="`photo` IS NOT NULL")
    assert list(people.read_blobs("photo", batch)) == [b"hi"]


def test_a_version_that_is_open_already_is_read_alike(graph):
    people = view(graph)
    with people.open() as handle:
        staged = StagedView(people.type, handle)
        assert staged.rows == 3
        assert staged.has_column("remark")
        assert staged.is_stored_like(people, "note")
        assert staged.select(None, ["id", "remark"]).equals(people.select(None, ["id", "remark"]))


def test_a_column_of_a_newer_schema_is_missing(tmp_path):
    made = og.init(tmp_path / "g", SCHEMA)
    entry = view(made).entry
    for schema in STEPS:
        made.schema.apply(schema)
    earlier = view(made).at(entry)
    assert earlier.has_column("remark")
    assert not earlier.has_column("note")
    with pytest.raises(GraphCorrupt):
        earlier.check_columns()


def test_a_version_that_is_gone_is_reported(graph):
    people = view(graph)
    gone = people.at(replace(people.entry, physical=10**6))
    with pytest.raises(VersionReclaimed):
        gone.read_column("id")
