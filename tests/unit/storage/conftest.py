"""What the tests of staging share: a dataset of two fragments, and how to read one."""

import pyarrow as pa
import pytest

from omnigraph.storage import Datasets, locate, staged_writes
from omnigraph.storage.layout import dataset_schema, empty_table, property_column
from omnigraph.types import PropertyType, Scalar

SCHEMA = dataset_schema(
    "node",
    [
        property_column("text", PropertyType(Scalar.STRING), 7),
        property_column("score", PropertyType(Scalar.I32), 8),
    ],
)


@pytest.fixture
def datasets(tmp_path):
    return Datasets(locate(tmp_path / "root"))


@pytest.fixture
def empty(datasets):
    datasets.create("d", empty_table(SCHEMA))
    return datasets.at("d", 1)


@pytest.fixture
def base(empty, table):
    first = staged_writes.append(empty, table({"a": ("ant", 1), "b": ("bee", 2), "c": ("cat", 3)}))
    return staged_writes.append(first, table({"d": ("dog", 4), "e": ("elk", 5)}))


@pytest.fixture
def table():
    def make(rows):
        columns = [[id_, *values] for id_, values in rows.items()]
        arrays = list(zip(*columns, strict=True)) or [(), (), ()]
        return pa.table(dict(zip(SCHEMA.names, arrays, strict=True)), schema=SCHEMA)

    return make


@pytest.fixture
def rows():
    def read(handle):
        found = [tuple(row.values()) for row in handle.to_table().to_pylist()]
        by_id = {id_: values for id_, *values in found}
        assert len(by_id) == len(found), "an id stands twice"
        return {id_: tuple(values) for id_, values in by_id.items()}

    return read
