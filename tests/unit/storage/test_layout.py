"""Where datasets are and what columns they have."""

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.layout import (
    PRIMARY_KEY,
    dataset_path,
    dataset_schema,
    empty_table,
    lineage_path,
    physical_columns,
    property_column,
)
from omnigraph.types import PropertyType, Scalar


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("node", "nodes/000000000000002a-00000000000000ff"),
        ("edge", "edges/000000000000002a-00000000000000ff"),
    ],
)
def test_path_is_made_of_identities_only(kind, path):
    assert dataset_path(kind, 42, 255) == path


def test_lineage_of_main_is_the_manifest_and_that_of_a_branch_its_own_dataset():
    assert lineage_path(None) == "__manifest"
    assert lineage_path("01ABC") == "__branches/01ABC"


@pytest.mark.parametrize(("kind", "system"), [("node", ["id"]), ("edge", ["id", "src", "dst"])])
def test_system_columns_come_first_and_are_not_null(kind, system):
    schema = dataset_schema(kind, [property_column("text", PropertyType(Scalar.STRING), 7)])
    assert schema.names == [*system, "text"]
    assert [field.nullable for field in schema] == [*(False for _ in system), True]
    assert schema.field("id").metadata == PRIMARY_KEY


def test_required_property_is_physically_nullable():
    column = property_column("n", PropertyType(Scalar.I32, nullable=False), 7)
    assert (column.type, column.nullable) == (pa.int32(), True)


def test_property_is_found_by_its_identity_whatever_its_column_is_called():
    columns = [
        property_column("old", PropertyType(Scalar.I32), 7),
        property_column("other", PropertyType(Scalar.I32), 8),
        property_column("old_wide", PropertyType(Scalar.I64), 7),
    ]
    assert physical_columns(dataset_schema("node", columns)) == {7: "old_wide", 8: "other"}


@pytest.mark.parametrize("scalar", list(Scalar))
def test_empty_dataset_of_every_scalar_is_written_and_read(tmp_path, scalar):
    type_ = PropertyType(scalar, dimension=4 if scalar is Scalar.VECTOR else None)
    schema = dataset_schema("node", [property_column("value", type_, 7)])
    made = lance.write_dataset(empty_table(schema), tmp_path / "d")
    assert made.count_rows() == 0
    assert physical_columns(made.schema) == {7: "value"}
    assert made.schema.field("id").metadata == PRIMARY_KEY
