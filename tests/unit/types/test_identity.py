"""Canonical key text and the ids made of it."""

import json
import struct
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.types import (
    SCALARS,
    PropertyType,
    Scalar,
    entity_id,
    key_text,
    parse_datetime,
)

floats = st.floats(allow_nan=False, allow_infinity=False)
KEYS = [
    (Scalar.STRING, "", ""),
    (Scalar.STRING, 'a "b"\n', 'a "b"\n'),
    (Scalar.BOOL, True, "true"),
    (Scalar.BOOL, False, "false"),
    (Scalar.I32, -5, "-5"),
    (Scalar.I64, -(2**63), "-9223372036854775808"),
    (Scalar.U32, 0, "0"),
    (Scalar.U64, 2**64 - 1, "18446744073709551615"),
    (Scalar.DATE, date(1970, 1, 2), "1"),
    (Scalar.DATE, date(1969, 12, 31), "-1"),
    (Scalar.DATE_TIME, parse_datetime("1970-01-01T00:00:01Z"), "1000"),
    (Scalar.DATE_TIME, parse_datetime("1969-12-31T23:59:59.999Z"), "-1"),
    (Scalar.F64, 0.0, "0"),
    (Scalar.F64, -0.0, "0"),
    (Scalar.F64, 1.0, "1"),
    (Scalar.F64, 100.0, "100"),
    (Scalar.F64, 0.1, "0.1"),
    (Scalar.F64, -2.5, "-2.5"),
    (Scalar.F64, 1e21, "1000000000000000000000"),
    (Scalar.F64, 1e-7, "0.0000001"),
    (Scalar.F64, 5e-324, "0." + "0" * 323 + "5"),
    (Scalar.F32, -0.0, "0"),
    (Scalar.F32, 0.10000000149011612, "0.1"),
    (Scalar.F32, 16777216.0, "16777216"),
    (Scalar.F32, 1e-45, "0." + "0" * 44 + "1"),
    (Scalar.F32, 3.4028234663852886e38, "340282350000000000000000000000000000000"),
    (Scalar.F32, 2.0**-96, "0.000000000000000000000000000012621775"),
]


def test_every_keyable_scalar_is_shown_here():
    keyable = {scalar for scalar, spec in SCALARS.items() if spec.key_text is not None}
    assert {scalar for scalar, _, _ in KEYS} == keyable
    assert set(Scalar) - keyable == {Scalar.BLOB, Scalar.VECTOR}


@pytest.mark.parametrize(("scalar", "value", "text"), KEYS)
def test_key_text_is_canonical(scalar, value, text):
    assert key_text(value, PropertyType(scalar)) == text


@pytest.mark.parametrize("scalar", [Scalar.F32, Scalar.F64])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_non_finite_number_identifies_nothing(scalar, value):
    with pytest.raises(ValueError, match=r"^non-finite value -?(nan|inf) cannot identify"):
        key_text(value, PropertyType(scalar))


@pytest.mark.parametrize(
    ("value", "type_", "message"),
    [
        (None, PropertyType(Scalar.STRING), "null cannot identify an entity"),
        ("x", PropertyType(Scalar.BLOB), "a Blob value cannot identify an entity"),
        ([1.0], PropertyType(Scalar.VECTOR, dimension=1), "a Vector(1) value cannot identify"),
        (["a"], PropertyType(Scalar.STRING, is_list=True), "a [String] value cannot identify"),
    ],
)
def test_what_has_no_key_text_is_refused(value, type_, message):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the sentence is compared below
        key_text(value, type_)
    assert str(refusal.value).startswith(message)


@given(floats)
def test_f64_text_has_no_exponent_and_reads_back(value):
    text = key_text(value, PropertyType(Scalar.F64))
    assert set(text) <= set("-.0123456789")
    assert float(text) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_f32_text_is_the_shortest_that_reads_back(value):
    text = key_text(value, PropertyType(Scalar.F32))
    stored = struct.pack("<f", value + 0.0)
    assert struct.pack("<f", float(text)) == stored
    digits = text.lstrip("-0.").replace(".", "").rstrip("0")
    shorter = f"{value:.{max(1, len(digits) - 1)}g}"
    assert len(digits) <= 1 or abs(float(shorter)) > 3.4e38 or not same_f32(shorter, stored)


def same_f32(text, stored):
    return struct.pack("<f", float(text)) == stored


BOOL, I64, STRING = (PropertyType(s) for s in (Scalar.BOOL, Scalar.I64, Scalar.STRING))


@pytest.mark.parametrize(
    ("members", "id_"),
    [
        ([("eu", STRING)], "eu"),
        ([("eu", STRING), (42, I64)], '["eu","42"]'),
        ([(7, I64), (True, BOOL)], '["7","true"]'),
        ([('a"b', STRING), ("\\é\n\x1f", STRING)], '["a\\"b","\\\\é\\n\\u001f"]'),
        ([("", STRING), ("", STRING)], '["",""]'),
    ],
)
def test_id_is_the_key_or_the_compact_json_of_its_members(members, id_):
    assert entity_id(members) == id_


@given(st.lists(st.text(), min_size=2, max_size=4))
def test_different_composite_keys_have_different_ids(values):
    assert json.loads(entity_id([(value, STRING) for value in values])) == values


def test_a_key_without_members_is_refused():
    with pytest.raises(ValueError, match="a key has at least one member"):
        entity_id([])


def test_a_composite_key_with_a_null_member_is_refused():
    with pytest.raises(ValueError, match="null cannot identify"):
        entity_id([(1, I64), (None, STRING)])
