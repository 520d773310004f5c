"""What passes the tests of a mutation is what exact comparison says; Lance drops none of it."""

import operator
from datetime import UTC, date, datetime

import lance
import pyarrow as pa
import pytest

from omnigraph.lang.query_tree import ComparisonOperator
from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import to_column, to_values
from omnigraph.write.mutation_filter import PropertyTest as Where
from omnigraph.write.mutation_filter import filter_rows, to_filter_sql
from tests.support.scalars import ODD, SCALARS, f32

COMPARE = {
    ComparisonOperator.EQ: operator.eq,
    ComparisonOperator.NE: operator.ne,
    ComparisonOperator.LT: operator.lt,
    ComparisonOperator.LE: operator.le,
    ComparisonOperator.GT: operator.gt,
    ComparisonOperator.GE: operator.ge,
}
NUMBERS = (
    *(-(2**63), -1, 0, 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1),
    *(-1e300, -1e19, -0.5, -0.0, 0.1, f32(0.1), 0.5, 1.5, 2.0**53, 2.0**63, 1e19, 1e300),
)
"""Numbers a parameter of any numeric type may have."""


def values_to_compare(type_):
    return NUMBERS if type_.numeric else ODD[type_.scalar]


@pytest.fixture(scope="module", params=SCALARS, ids=str)
def stored(request, tmp_path_factory):
    """Return a type, its odd values and null as Python and in Lance, before and with an index."""
    type_ = request.param
    values = [*ODD[type_.scalar], None]
    rows = pa.table({"v": to_column(values, type_), "n": range(len(values))})
    folder = tmp_path_factory.mktemp("stored")
    plain = lance.write_dataset(rows, folder / "plain")
    indexed = lance.write_dataset(rows, folder / "indexed")
    indexed.create_scalar_index("v", "BTREE")
    return type_, values, plain, indexed


def expected(values, test):
    compare = COMPARE[test.operator]
    return [i for i, value in enumerate(values) if value is not None and compare(value, test.value)]


def test_what_passes_is_what_exact_comparison_says(stored):
    type_, values, plain, indexed = stored
    rows = plain.to_table()
    for value in values_to_compare(type_):
        for word in COMPARE:
            test = Where("v", type_, word, value)
            wanted = expected(values, test)
            assert filter_rows(rows, [test])["n"].to_pylist() == wanted, test
            for handle in (plain, indexed):
                found = handle.to_table(filter=test.filter())["n"].to_pylist()
                assert sorted(found) == wanted, (test, test.filter())


@pytest.mark.parametrize("word", COMPARE)
def test_nothing_passes_a_comparison_with_null_or_a_list(stored, word):
    type_, _, plain, _ = stored
    for value in (None, [], ["a"]):
        test = Where("v", type_, word, value)
        assert filter_rows(plain.to_table(), [test]).num_rows == 0
        assert plain.to_table(filter=test.filter()).num_rows == 0


def test_stored_values_are_what_was_given(stored):
    type_, values, plain, _ = stored
    assert to_values(plain.to_table()["v"], type_) == values


@pytest.mark.parametrize(
    ("word", "value", "wanted"),
    [
        ("<", 2.5, [1, 2]),
        ("<=", 2.5, [1, 2]),
        (">", 2.5, [3]),
        (">=", 2.5, [3]),
        ("=", 2.5, []),
        ("!=", 2.5, [1, 2, 3]),
        ("=", 2.0, [2]),
        ("<", 2**70, [1, 2, 3]),
        (">", -(2**70), [1, 2, 3]),
        ("=", 2**70, []),
    ],
)
def test_integers_are_compared_with_numbers_no_integer_is(word, value, wanted):
    rows = pa.table({"v": pa.array([1, 2, 3, None], pa.int64())})
    test = Where("v", PropertyType(Scalar.I64), ComparisonOperator(word), value)
    assert filter_rows(rows, [test])["v"].to_pylist() == wanted


def test_a_32_bit_float_is_not_the_64_bit_one_it_was_rounded_from():
    type_ = PropertyType(Scalar.F32)
    rows = pa.table({"v": pa.array([f32(0.1)], pa.float32())})
    assert filter_rows(rows, [Where("v", type_, ComparisonOperator.EQ, 0.1)]).num_rows == 0
    assert filter_rows(rows, [Where("v", type_, ComparisonOperator.GT, 0.1)]).num_rows == 1
    assert filter_rows(rows, [Where("v", type_, ComparisonOperator.EQ, f32(0.1))]).num_rows == 1


def test_times_of_one_day_differ():
    type_ = PropertyType(Scalar.DATE_TIME)
    times = [datetime(2024, 5, 1, 12, 0, 0, ms * 1000, UTC) for ms in (0, 1, 2)]
    rows = pa.table({"v": to_column(times, type_)})
    found = filter_rows(rows, [Where("v", type_, ComparisonOperator.GE, times[1])])
    assert to_values(found["v"], type_) == times[1:]


def test_several_tests_must_all_pass():
    rows = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"]})
    tests = [
        Where("a", PropertyType(Scalar.I64), ComparisonOperator.EQ, 1),
        Where("b", PropertyType(Scalar.STRING), ComparisonOperator.NE, "y"),
    ]
    assert filter_rows(rows, tests).to_pylist() == [{"a": 1, "b": "x"}]
    assert to_filter_sql(tests) == "`a` = 1 AND `b` != 'y'"


def test_a_day_is_a_date_literal():
    test = Where("on", PropertyType(Scalar.DATE), ComparisonOperator.LT, date(2024, 5, 1))
    assert test.filter() == "`on` < date '2024-05-01'"
