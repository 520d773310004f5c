from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_values
from omnigraph.write.coercion import CoercionRules, coerce_column, coerce_values
from omnigraph.write.external_blobs import ExternalBlobs

STRING, BOOL = PropertyType(Scalar.STRING), PropertyType(Scalar.BOOL)
I32, I64, U64 = (PropertyType(s) for s in (Scalar.I32, Scalar.I64, Scalar.U64))
F32, F64 = PropertyType(Scalar.F32), PropertyType(Scalar.F64)
DATE, MOMENT = PropertyType(Scalar.DATE), PropertyType(Scalar.DATE_TIME)
BLOB = PropertyType(Scalar.BLOB)
TAGS = PropertyType(Scalar.STRING, is_list=True)
SIZES = PropertyType(Scalar.I64, is_list=True)
MOMENTS = PropertyType(Scalar.DATE_TIME, is_list=True)
SPOT = PropertyType(Scalar.VECTOR, dimension=2)


def read(column, type_, **rules):
    """Return the values of a column as a property has them, and what did not fit."""
    reported = []

    def report(row, value, reason):
        reported.append((row, reason))

    convert = coerce_column if isinstance(column, pa.Array) else coerce_values
    return to_values(convert(column, type_, report, CoercionRules(**rules)), type_), reported


@pytest.mark.parametrize(
    ("column", "type_", "values"),
    [
        (pa.array(["a", None], pa.large_string()), STRING, ["a", None]),
        (pa.array(["a", "a", None]).dictionary_encode(), STRING, ["a", "a", None]),
        (pa.array(["a"], pa.string_view()), STRING, ["a"]),
        (pa.nulls(2), I32, [None, None]),
        (pa.nulls(2, pa.int64()), STRING, [None, None]),
        (pa.array([1, 2**31 - 1], pa.uint64()), I32, [1, 2**31 - 1]),
        (pa.array([2**64 - 1], pa.uint64()), U64, [2**64 - 1]),
        (pa.array([Decimal("12"), None], pa.decimal128(5, 0)), I64, [12, None]),
        (pa.array([Decimal("12.00")], pa.decimal128(5, 2)), I64, [12]),
        (pa.array([Decimal("0.10")], pa.decimal128(5, 2)), F64, [0.1]),
        (pa.array([2**53 + 1]), F64, [float(2**53 + 1)]),
        (pa.array([0.1, None]), F32, [pytest.approx(0.1, rel=1e-6), None]),
        (pa.array([True, None]), BOOL, [True, None]),
        (pa.array([date(2020, 2, 29)], pa.date32()), DATE, [date(2020, 2, 29)]),
        (pa.array([18262, -1]), DATE, [date(2020, 1, 1), date(1969, 12, 31)]),
        (pa.array(["2020-01-01"]), DATE, [date(2020, 1, 1)]),
        (pa.array([datetime(2020, 1, 1)], pa.timestamp("ns")), DATE, [date(2020, 1, 1)]),
        (
            pa.array([-1, 1_999], pa.timestamp("us")),
            MOMENT,
            [
                datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
                datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
            ],
        ),
        (
            pa.array([1], pa.timestamp("s", "Asia/Tokyo")),
            MOMENT,
            [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)],
        ),
        (pa.array(["2020-01-01T10:00:00+02:00"]), MOMENT, [datetime(2020, 1, 1, 8, tzinfo=UTC)]),
        (pa.array([date(2020, 1, 1)]), MOMENT, [datetime(2020, 1, 1, tzinfo=UTC)]),
        (
            pa.array([86_400_001], pa.int64()).view(pa.date64()),
            MOMENT,
            [datetime(1970, 1, 2, 0, 0, 0, 1000, tzinfo=UTC)],
        ),
        (pa.array([["a"], [], None], pa.large_list(pa.string())), TAGS, [["a"], [], None]),
        (pa.array([[1, 2], None]).slice(1), SIZES, [None]),
        (pa.array([[0, 9], [1, 2]]).slice(1), SIZES, [[1, 2]]),
        (pa.array([[1, 2], None], pa.list_(pa.int64())), SPOT, [[1.0, 2.0], None]),
        (pa.array([[1, 2]], pa.list_(pa.float64(), 2)), SPOT, [[1.0, 2.0]]),
        (pa.array([b"hi", None]), BLOB, [{"data": b"hi", "uri": None}, None]),
        (pa.array(["base64:", None]), BLOB, [{"data": b"", "uri": None}, None]),
    ],
)
def test_column_of_another_type_keeps_its_values(column, type_, values):
    assert read(column, type_) == (values, [])


@pytest.mark.parametrize(
    ("column", "type_", "reasons"),
    [
        (pa.array([1, 2**31]), I32, {1: "value 2147483648 exceeds I32"}),
        (pa.array([-1, 0]), U64, {0: "value -1 exceeds U64"}),
        (pa.array([1.0]), I32, {0: "expected integer number, got number"}),
        (pa.array([1.5, float("nan"), float("inf")]), F64, {1: "not a finite", 2: "not a finite"}),
        (pa.array([1e39]), F32, {0: "exceeds F32"}),
        (pa.array(["1"]), I32, {0: "expected integer number, got string"}),
        (pa.array([1]), STRING, {0: "expected string, got integer"}),
        (pa.array([1]), BOOL, {0: "expected boolean, got integer"}),
        (pa.array(["2020-13-01", "x"]), DATE, {0: "month must be in 1..12", 1: "YYYY-MM-DD"}),
        (pa.array([10**10]), DATE, {0: "out of range"}),
        (pa.array([10**17]), MOMENT, {0: "out of range"}),
        (pa.array([datetime(2020, 1, 1, 5)]), DATE, {0: "expected string, got datetime"}),
        (pa.array([b"\xff"]).view(pa.string()), STRING, {0: "not UTF-8"}),
        (pa.array([["a", None]]), TAGS, {0: "element 1: expected String, got null"}),
        (pa.array([["a"]]), SIZES, {0: "element 0: expected integer number"}),
        (pa.array([[1, 2, 3], [1, 2]]), SPOT, {0: "expected 2 values, got 3"}),
        (pa.array([[1.0, float("nan")]]), SPOT, {0: "not a finite"}),
        (pa.array(["base64:?"]), BLOB, {0: "invalid base64"}),
        (pa.array(["s3://a/b"]), BLOB, {0: "this graph allows none"}),
        (pa.array([1]), BLOB, {0: "expected `base64:…` text or a URI"}),
    ],
)
def test_value_that_does_not_fit_is_reported_and_null(column, type_, reasons):
    values, reported = read(column, type_)
    assert {row for row, _ in reported} == set(reasons)
    for row, reason in reported:
        assert reasons[row] in reason
        assert values[row] is None
    assert all(value is not None for row, value in enumerate(values) if row not in reasons)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("12", I32, 12),
        ("-0", I64, 0),
        ("+7", I64, 7),
        ("1.5e3", F64, 1500.0),
        (".5", F64, 0.5),
        ("TRUE", BOOL, True),
        ("false", BOOL, False),
        ("2020-01-01", DATE, date(2020, 1, 1)),
        ("2020-01-01 10:00:00", MOMENT, datetime(2020, 1, 1, 10, tzinfo=UTC)),
        ('["a", "b"]', TAGS, ["a", "b"]),
        ("[1, 2.5]", SPOT, [1.0, 2.5]),
        ("12", STRING, "12"),
        ("base64:aGk=", BLOB, {"data": b"hi", "uri": None}),
    ],
)
def test_text_means_what_its_property_says(text, type_, value):
    assert read(pa.array([text, None]), type_, text=True) == ([value, None], [])


@pytest.mark.parametrize(
    ("text", "type_", "reason"),
    [
        ("1.0", I32, "expected integer number, got '1.0'"),
        ("0x10", I64, "expected integer number"),
        (" 1", I64, "expected integer number"),
        ("", I64, "expected integer number, got ''"),
        ("nan", F64, "expected number, got 'nan'"),
        ("1e400", F64, "not a finite"),
        ("yes", BOOL, "expected true or false, got 'yes'"),
        ("18262", DATE, "expected YYYY-MM-DD"),
        ("a,b", TAGS, "expected a JSON array"),
        ("[1, NaN]", SPOT, "expected a JSON array"),
        ('{"a": 1}', TAGS, "expected array, got object"),
    ],
)
def test_text_that_means_nothing_is_reported(text, type_, reason):
    values, reported = read(pa.array([text]), type_, text=True)
    assert values == [None]
    assert [row for row, _ in reported] == [0]
    assert reason in reported[0][1]


def test_values_of_numpy_are_taken_like_those_of_python():
    assert read([np.int64(3), None], I32) == ([3, None], [])
    assert read([np.array([1.5, 2.0])], SPOT) == ([[1.5, 2.0]], [])
    assert read([np.datetime64("2020-01-01", "D")], DATE) == ([date(2020, 1, 1)], [])


@pytest.mark.parametrize("unit", ["ns", "ps", "us", "ms", "s"])
def test_instants_of_numpy_are_taken_in_any_unit(unit):
    moment = np.datetime64("1970-01-02T03:04:05", unit)
    expected = datetime(1970, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert read([moment], MOMENT) == ([expected], [])
    assert read([np.array([moment])], MOMENTS) == ([[expected]], [])
    assert read([[moment]], MOMENTS) == ([[expected]], [])
    assert read([np.datetime64("1970-01-02", unit)], DATE) == ([date(1970, 1, 2)], [])


@pytest.mark.parametrize("type_", [MOMENT, DATE])
def test_a_missing_instant_of_pandas_is_null(type_):
    assert read([pd.NaT, np.datetime64("NaT", "ns")], type_) == ([None, None], [])


def test_half_of_a_surrogate_pair_is_no_text():
    values, reported = read(["a\ud800", "b"], STRING)
    assert values == [None, "b"]
    assert reported == [(0, "text with an unpaired surrogate is not valid Unicode")]


def test_external_blob_below_an_allowed_base_is_kept():
    external = ExternalBlobs.below(["s3://pictures/public"])
    values, reported = read(["s3://pictures/public/a", "s3://pictures/b"], BLOB, external=external)
    assert values == [{"data": None, "uri": "s3://pictures/public/a"}, None]
    assert reported == [(1, "external blob 's3://pictures/b' is below no allowed base")]


def test_forgiving_rules_forgive_wrong_types_but_not_malformed_text():
    nullable = I32.as_nullable()
    assert read(["x", 1], nullable, forgiving=True) == ([None, 1], [])
    assert read(["x"], I32, forgiving=True)[1] != []
    assert read(["2020-13-01"], DATE.as_nullable(), forgiving=True)[1] != []
    assert read([True], DATE.as_nullable(), forgiving=True) == ([None], [])
    assert read([[1]], SPOT.as_nullable(), forgiving=True)[1] != []
