"""What the tests of writes share: a graph of people, and rows of a change of it."""

import pyarrow as pa
import pytest

import omnigraph.graph as og
from omnigraph.catalog import TypeKind
from omnigraph.commit.snapshot import head_snapshot
from omnigraph.types.arrow import to_column
from omnigraph.write.change_set import INPUT_POSITION, ChangeSet, RowBatch
from omnigraph.write.committed_state import CommittedState
from tests.support.changes import property_type

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  big: F64? @unique
  small: F32?
  email: String? @unique
  seen: DateTime?
  file: Blob?
  tags: [String]?
  spot: Vector(2)?
  @range(age, 0..150)
  @range(big, 0.5..)
}
node Note { text: String }
edge Knows: Person -> Person @card(0..2) { since: Date? }
edge Wrote: Person -> Note
"""


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    people = [
        {"name": "ann", "age": 30, "email": "ann@x", "tags": ["a"], "spot": [1.0, 2.0]},
        {"name": "bo", "big": 1.0, "seen": "2024-05-01T12:00:00.123Z", "file": "base64:"},
        {"name": "cy", "file": "base64:aGk="},
    ]
    knows = [{"id": "k1", "src": "ann", "dst": "bo"}, {"id": "k2", "src": "bo", "dst": "cy"}]
    graph.load({"Person": people, "Note": [{"id": "n1", "text": "t"}], "Knows": knows})
    return graph


@pytest.fixture
def committed(graph):
    return CommittedState(graph._manifest, head_snapshot(graph._manifest, "main"))


@pytest.fixture
def person(committed):
    return committed.row_schema(TypeKind.NODE, "Person")


@pytest.fixture
def knows(committed):
    return committed.row_schema(TypeKind.EDGE, "Knows")


@pytest.fixture
def rows(committed):
    """Return a function that makes rows of a type out of dictionaries, columns left out null."""

    def make(shape, listed, places=None):
        columns = {}
        for name in shape.schema.names:
            type_ = property_type(committed.snapshot.catalog, shape.name, name)
            columns[name] = to_column([row.get(name) for row in listed], type_)
        made = pa.table(columns, schema=shape.schema)
        return (
            made
            if places is None
            else made.append_column(INPUT_POSITION, pa.array(places, pa.int64()))
        )

    return make


@pytest.fixture
def changes(rows):
    """Return a function that makes a change set of batches of one type."""

    def make(shape, *batches, **facts):
        made = ChangeSet(files=[("people.jsonl", "line")])
        change = made.of(shape)
        change.batches = [
            RowBatch(b if isinstance(b, pa.Table) else rows(shape, b)) for b in batches
        ]
        for name, value in facts.items():
            setattr(change, name, value)
        return made

    return make
