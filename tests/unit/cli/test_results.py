"""Rows of a result in the formats that people and programs read."""

import io

import pyarrow as pa
import pytest

from omnigraph.cli.results import write_result
from omnigraph.query.result import Result
from omnigraph.types import PropertyType, Scalar

TARGET = {"branch": "main", "snapshot": None}
TYPES = {
    "a": PropertyType(scalar=Scalar.I64, nullable=True),
    "b": PropertyType(scalar=Scalar.STRING, nullable=True),
}


def printed(columns, format_):
    table = pa.table({"a": pa.array(columns[0], pa.int64()), "b": pa.array(columns[1], pa.utf8())})
    file = io.BytesIO()
    write_result(Result("q", table, TYPES, "c"), TARGET, format_, file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("format_", "shown"),
    [
        (
            "table",
            "2 rows from branch main via q\na    | b\n-----+-----\n1    | null\nnull | x\\ny\n",
        ),
        ("csv", 'a,b\n1,null\nnull,"x\ny"\n'),
    ],
)
def test_rows_are_printed_with_nulls_and_line_breaks(format_, shown):
    assert printed(([1, None], [None, "x\ny"]), format_).decode() == shown


def test_rows_of_a_whole_result_are_written_as_arrow():
    with pa.ipc.open_stream(printed(([1, None], [None, "x"]), "arrow")) as reader:
        assert reader.read_all().to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]
