"""Literals of Lance's filters: each finds its value, and refuses what has none."""

from datetime import date, datetime

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.row_lookup import sql_literals, sql_text
from omnigraph.types.arrow import to_column
from tests.support.scalars import ODD, SCALARS


@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_a_literal_finds_the_value_it_was_made_of(tmp_path, type_):
    values = [value for value in ODD[type_.scalar] if str(value) != "-0.0"]
    column = to_column(values, type_)
    handle = lance.write_dataset(pa.table({"v": column, "n": range(len(values))}), tmp_path / "d")
    for number, literal in enumerate(sql_literals(column)):
        for condition in (f"v = {literal}", f"v IN ({literal}, {literal})"):
            found = handle.to_table(filter=condition)["n"].to_pylist()
            same = [i for i, value in enumerate(values) if value == values[number]]
            assert found == same, condition


@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_nulls_have_no_literal(type_):
    value = ODD[type_.scalar][0]
    assert sql_literals(to_column([None, value, None], type_)) == sql_literals(
        to_column([value], type_)
    )


@pytest.mark.parametrize(
    ("value", "type_", "wanted"),
    [
        ("it's", pa.string(), "'it''s'"),
        ("\\", pa.string(), "'\\'"),
        (True, pa.bool_(), "true"),
        (2**64 - 1, pa.uint64(), "18446744073709551615"),
        (-(2**63), pa.int64(), "arrow_cast('-9223372036854775808', 'Int64')"),
        (0.5, pa.float64(), "0.5"),
        (0.5, pa.float32(), "arrow_cast(0.5, 'Float32')"),
        (date(2024, 5, 1), pa.date32(), "date '2024-05-01'"),
    ],
)
def test_a_literal_has_the_type_of_its_column(value, type_, wanted):
    assert sql_literals(pa.array([value], type_)) == [wanted]


def test_milliseconds_are_not_lost():
    column = pa.array([1_714_566_600_123], pa.int64()).view(pa.date64())
    assert sql_literals(column) == ["arrow_cast(1714566600123, 'Date64')"]


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_numbers_that_are_none_equal_nothing(type_):
    assert sql_literals(pa.array([float("nan"), float("inf"), 1.0], type_))[:-1] == []


@pytest.mark.parametrize(
    "column",
    [pa.array([datetime(2024, 5, 1)], pa.timestamp("ms")), pa.array([b"x"]), pa.array([[1]])],
    ids=["timestamp", "binary", "list"],
)
def test_types_without_a_literal_are_refused(column):
    with pytest.raises(ValueError, match=r"literal|date64"):
        sql_literals(column)


def test_text_is_quoted():
    assert sql_text("a'b''c") == "'a''b''''c'"
