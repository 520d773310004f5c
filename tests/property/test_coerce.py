"""A column converted at once gives what the authority makes of each single value."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.types import PropertyType, Scalar
from omnigraph.types.arrow import arrow_type
from omnigraph.write.coercion import (
    DEFAULT_RULES,
    CoercionRules,
    coerce_column,
    coerce_values,
    column_cells,
)
from omnigraph.write.vectorized_coercion import coerce_vectorized

SCALARS = [scalar for scalar in Scalar if scalar is not Scalar.VECTOR]
TYPES = st.one_of(
    st.sampled_from(SCALARS).map(PropertyType),
    st.sampled_from([s for s in SCALARS if s is not Scalar.BLOB]).map(
        lambda scalar: PropertyType(scalar, is_list=True)
    ),
    st.just(PropertyType(Scalar.VECTOR, dimension=2)),
)
INTEGERS = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.uint16(): (0, 2**16 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint64(): (0, 2**64 - 1),
}
TEXTS = st.one_of(
    st.text(max_size=4),
    st.from_regex(r"[+-]?[0-9]{1,3}(\.[0-9]{0,2})?(e[+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["true", "false", "TRUE", "[1, 2]", "[]", "[NaN]", "base64:aGk=", "s3://a/b"]),
    st.dates().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    st.datetimes().map(lambda moment: moment.isoformat(sep=" ", timespec="seconds")),
    st.from_regex(
        r"[0-9]{4}-[0-3][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]Z)?", fullmatch=True
    ),
)


def _integers(kind):
    low, high = INTEGERS[kind]
    near = st.sampled_from([low, high, 0, 1])
    return st.one_of(near, st.integers(low, high), st.integers(max(low, -9), min(high, 9)))


NUMBERED = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]
MOMENTS = st.integers(-(10**18), 10**18) | st.sampled_from([0, 86_400_000, -1])
COLUMNS = [
    *((kind, _integers(kind)) for kind in INTEGERS),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    *((kind, TEXTS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    *((kind, st.binary(max_size=3)) for kind in (pa.binary(), pa.large_binary())),
    (pa.date32(), st.dates()),
    (pa.decimal128(6, 2), st.decimals(-999, 999, places=2)),
    (pa.decimal128(20, 0), st.integers(-(10**19), 10**19).map(Decimal)),
    *((kind, MOMENTS) for kind in (*NUMBERED, pa.date64())),
]


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """Return a column of any type, with nulls, perhaps of lists."""
    kind, cells = draw(st.sampled_from(COLUMNS))
    stored = pa.int64() if kind in (*NUMBERED, pa.date64()) else kind
    cells = st.one_of(st.none(), cells) if draw(st.booleans()) else cells
    if not draw(st.booleans()):
        return _typed(draw(st.lists(cells, max_size=4)), stored, kind)
    items = st.lists(cells, max_size=3) | st.lists(cells, min_size=2, max_size=2)
    rows = draw(st.lists(st.one_of(st.none(), items), max_size=4))
    values = _typed([cell for row in rows for cell in row or []], stored, kind)
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row or []))
    mask = pa.array([row is None for row in rows], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)


def _typed(cells: list[object], stored: pa.DataType, kind: pa.DataType) -> pa.Array:
    column = pa.array(cells, stored)
    return column if stored == kind else column.view(kind)


@given(column=columns(), type_=TYPES, text=st.booleans())
def test_columns_converted_at_once_mean_what_single_values_do(column, type_, text):
    reported = []
    rules = CoercionRules(text=text)
    slow = coerce_values(
        column_cells(column, type_), type_, lambda row, value, reason: reported.append(row), rules
    )
    fast = coerce_vectorized(column, type_, text=text)
    if fast is not None:
        # Arrow thinks that a date64 has no time of day.
        fast.validate(full=type_.scalar is not Scalar.DATE_TIME)
        assert reported == []
        assert fast.equals(slow) or _same_but_zero(fast, slow)
    assert slow.type == arrow_type(type_)
    assert coerce_column(column, type_, lambda row, value, reason: None, rules).equals(slow) or fast


def _same_but_zero(one: pa.Array, other: pa.Array) -> bool:
    """Return whether columns are equal when zero is taken for minus zero."""
    return bool(one.type == other.type and one.to_pylist() == other.to_pylist())


@given(
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.binary()
        | st.dates()
        | st.datetimes(timezones=st.none() | st.just(UTC))
        | st.decimals(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=1),
        max_leaves=4,
    ),
    type_=TYPES,
)
def test_any_python_value_is_taken_or_reported_with_a_reason(value, type_):
    reported = []
    made = coerce_values(
        [value], type_, lambda row, value, reason: reported.append((row, reason)), DEFAULT_RULES
    )
    assert made.type == arrow_type(type_)
    assert len(made) == 1
    if reported:
        [(row, reason)] = reported
        assert row == 0
        assert reason
        assert made.null_count == 1
    else:
        assert (made.null_count == 1) == (value is None)


def test_extremes_of_dates_are_kept():
    column = pa.array([date.min, date.max], pa.date32())
    made = coerce_column(column, PropertyType(Scalar.DATE_TIME), _refuse)
    assert made.view(pa.int64()).to_pylist() == [
        int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1000,
        int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1000,
    ]


def _refuse(row, value, reason):
    raise AssertionError(reason)
