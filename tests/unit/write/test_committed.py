"""What a writer sees of the committed state: logical names, typed values, and what it asked."""

import pyarrow as pa

from omnigraph.catalog import TypeKind
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_json


def test_entities_are_found_by_a_column(committed, person):
    found = committed.read(person).lookup("name", pa.array(["cy", "ann", "zed"]), ["id", "age"])
    assert found.column_names == ["id", "age", ROW_ADDRESS]
    assert {row["id"]: row["age"] for row in found.to_pylist()} == {"ann": 30, "cy": None}


def test_entities_are_found_by_a_filter(committed, person):
    found = committed.read(person).select("`age` > 3", ["id"])
    assert found.drop_columns(ROW_ADDRESS).to_pylist() == [{"id": "ann"}]


def test_everything_is_found_without_a_filter(committed, person):
    assert sorted(committed.read(person).select(None, ["id"])["id"].to_pylist()) == [
        "ann",
        "bo",
        "cy",
    ]


def test_present_ids_are_those_that_exist(committed, knows):
    ids = pa.chunked_array([["k2", "nope"], [None]], pa.string())
    assert committed.read(knows).addresses_of(ids)["id"].to_pylist() == ["k2"]


def test_blobs_come_in_the_form_of_a_change(committed, person):
    found = committed.read(person).lookup("id", pa.array(["ann", "bo", "cy"]), ["id", "file"])
    by_id = dict(zip(found["id"].to_pylist(), found["file"].to_pylist(), strict=True))
    assert by_id == {
        "ann": None,
        "bo": {"data": b"", "uri": None},
        "cy": {"data": b"hi", "uri": None},
    }


def test_times_keep_their_milliseconds(committed, person):
    found = committed.read(person).lookup("id", pa.array(["bo"]), ["seen"])
    assert to_json(found["seen"], PropertyType(Scalar.DATE_TIME)) == ["2024-05-01T12:00:00.123Z"]


def test_no_entity_is_found_with_the_same_columns_and_types(committed, person):
    names = person.schema.names
    some = committed.read(person).lookup("id", pa.array(["ann"]), names)
    none = committed.read(person).lookup("id", pa.array(["zed"]), names)
    nothing = committed.read(person).lookup("id", pa.array([], pa.string()), names)
    assert some.schema.types == none.schema.types == nothing.schema.types
    assert none.num_rows == nothing.num_rows == 0


def test_rows_have_the_types_of_the_shape(committed, person):
    found = committed.read(person).select(None, person.schema.names).drop_columns(ROW_ADDRESS)
    assert found.schema.equals(person.schema)


def test_types_that_were_asked_about_are_remembered(committed, person, knows):
    assert committed.types_read == set()
    committed.read(person).addresses_of(pa.array(["ann"]))
    assert committed.types_read == {"node:Person"}
    committed.read(knows).select("false", ["id"])
    assert committed.types_read == {"node:Person", "edge:Knows"}


def test_a_type_without_entities_counts_as_asked(committed):
    wrote = committed.row_schema(TypeKind.EDGE, "Wrote")
    committed.read(wrote).lookup("src", pa.array(["ann"]), ["id"])
    assert committed.types_read == {"edge:Wrote"}
