"""One row per scalar: a scalar without a row here fails."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from omnigraph.types import BASE_NAMES, SCALARS, Scalar, json_kind

NO_INTEGERS = ("1.0", "1e3", "", "-", "+-1", " 1", "1_000", "0x1", "\N{ARABIC-INDIC DIGIT THREE}")


@dataclass(frozen=True)
class Row:
    """What one scalar must be: its Arrow type, what it accepts and as what, what it refuses."""

    arrow: object
    wire: str
    accepted: list
    refused: list
    numeric: bool = False
    orderable: bool = True
    integer: bool = False


def integer_row(arrow, wire, name, low, high):
    accepted = [
        *((low, low), (high, high), (str(low), low), (str(high), high)),
        *(("+5", 5), ("007", 7), (0, 0)),
    ]
    refused = [
        (low - 1, f"value {low - 1} exceeds {name} ({low}..{high})"),
        (high + 1, f"value {high + 1} exceeds {name} ({low}..{high})"),
        (str(high + 1), f"value {high + 1} exceeds {name} ({low}..{high})"),
        (True, "expected integer number, got boolean"),
        (False, "expected integer number, got boolean"),
        (1.0, "expected integer number, got number"),
        (None, "expected integer number, got null"),
        ([1], "expected integer number, got array"),
        *((text, f"expected integer number, got string '{text}'") for text in NO_INTEGERS),
        ("9" * 50, f"expected integer number, got string '{'9' * 40}'"),
    ]
    return Row(arrow, wire, accepted, refused, numeric=True, integer=True)


def float_row(arrow, name, largest, too_large):
    accepted = [(1, 1.0), (-2, -2.0), (0.5, 0.5), (largest, largest), (-largest, -largest)]
    refused = [
        too_large,
        (float("inf"), f"value inf is not a finite {name}"),
        (float("-inf"), f"value -inf is not a finite {name}"),
        (float("nan"), f"value nan is not a finite {name}"),
        ("1.5", "expected number, got string"),
        (True, "expected number, got boolean"),
    ]
    return Row(arrow, "float", accepted, refused, numeric=True)


NOT_STRINGS = [
    (1, "expected string, got integer"),
    (1.5, "expected string, got number"),
    (True, "expected string, got boolean"),
    (["a"], "expected string, got array"),
]
MOMENT = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
TOO_EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
ROWS = {
    Scalar.STRING: Row(pa.string(), "string", [("", ""), ("é\n", "é\n")], NOT_STRINGS),
    Scalar.BLOB: Row(
        pa.large_binary(), "blob", [("base64:AA==", "base64:AA==")], NOT_STRINGS, orderable=False
    ),
    Scalar.BOOL: Row(
        pa.bool_(),
        "bool",
        [(True, True), (False, False)],
        [(0, "expected boolean, got integer"), ("true", "expected boolean, got string")],
    ),
    Scalar.I32: integer_row(pa.int32(), "int", "I32", -(2**31), 2**31 - 1),
    Scalar.I64: integer_row(pa.int64(), "bigint", "I64", -(2**63), 2**63 - 1),
    Scalar.U32: integer_row(pa.uint32(), "int", "U32", 0, 2**32 - 1),
    Scalar.U64: integer_row(pa.uint64(), "bigint", "U64", 0, 2**64 - 1),
    Scalar.F32: float_row(
        pa.float32(), "F32", 3.4028234663852886e38, (3.5e38, "value 3.5e+38 exceeds F32")
    ),
    Scalar.F64: float_row(
        pa.float64(), "F64", 1.7976931348623157e308, (2**1024, "value of 1025 bits exceeds F64")
    ),
    Scalar.DATE: Row(
        pa.date32(),
        "date",
        [("2024-02-29", date(2024, 2, 29)), (date(1970, 1, 1), date(1970, 1, 1))],
        [
            ("x", "invalid Date literal 'x': expected YYYY-MM-DD"),
            (MOMENT, "expected string, got datetime"),
            (19000, "expected string, got integer"),
        ],
    ),
    Scalar.DATE_TIME: Row(
        pa.date64(),
        "datetime",
        [
            ("2024-05-01T14:30:00+02:00", MOMENT),
            (MOMENT.replace(tzinfo=None), MOMENT),
            (MOMENT.replace(microsecond=999), MOMENT),
            (MOMENT.astimezone(timezone(timedelta(hours=9))), MOMENT),
        ],
        [
            ("x", "invalid DateTime literal 'x': expected e.g. 2024-05-01T12:30:00Z"),
            (date(2024, 5, 1), "expected string, got date"),
            (TOO_EARLY, "DateTime 0001-01-01 00:00:00+01:00 is out of range in UTC"),
            (0, "expected string, got integer"),
        ],
    ),
    Scalar.VECTOR: Row(
        pa.list_(pa.float32(), 2),
        "vector",
        [([1, 0.5], [1.0, 0.5]), ((), [])],
        [
            ("[1]", "expected array of numbers, got string"),
            ([1, "2"], "expected number, got string"),
            ([1, None], "expected number, got null"),
            ([float("nan")], "value nan is not a finite F32"),
            ([1e39], "value 1e+39 exceeds F32"),
        ],
        orderable=False,
    ),
}


def pairs(field):
    return [(scalar, *pair) for scalar, row in ROWS.items() for pair in getattr(row, field)]


def test_every_scalar_has_a_row_here():
    assert set(ROWS) == set(SCALARS) == set(Scalar)


@pytest.mark.parametrize("scalar", Scalar)
def test_registry_row_says_what_the_scalar_is(scalar):
    spec, row = SCALARS[scalar], ROWS[scalar]
    assert spec.scalar is scalar
    assert spec.wire == row.wire
    assert (spec.numeric, spec.orderable, spec.integer) == (row.numeric, row.orderable, row.integer)
    assert spec.about


@pytest.mark.parametrize("scalar", [s for s in Scalar if s is not Scalar.VECTOR])
def test_arrow_alias_names_the_stored_type(scalar):
    assert pa.type_for_alias(SCALARS[scalar].arrow) == ROWS[scalar].arrow


def test_a_vector_is_stored_as_a_list_of_fixed_size():
    assert SCALARS[Scalar.VECTOR].arrow == "fixed_size_list<float>"
    assert str(ROWS[Scalar.VECTOR].arrow).startswith("fixed_size_list<")


@pytest.mark.parametrize(("scalar", "value", "expected"), pairs("accepted"))
def test_fitting_value_is_converted(scalar, value, expected):
    converted = SCALARS[scalar].from_json(value)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(("scalar", "value", "message"), pairs("refused"))
def test_misfit_is_refused_with_a_sentence(scalar, value, message):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole sentence is compared
        SCALARS[scalar].from_json(value)
    assert str(refusal.value) == message


@pytest.mark.parametrize("scalar", [s for s, row in ROWS.items() if row.numeric])
def test_a_number_with_more_digits_than_python_writes_is_refused_with_a_sentence(scalar):
    with pytest.raises(ValueError, match=f"^value of 16610 bits exceeds {scalar}"):
        SCALARS[scalar].from_json(10**5000)


def test_f32_is_rounded_to_its_width():
    assert SCALARS[Scalar.F32].from_json(0.1) == 0.10000000149011612
    assert SCALARS[Scalar.VECTOR].from_json([0.1]) == [0.10000000149011612]
    assert SCALARS[Scalar.F64].from_json(0.1) == 0.1


def test_base_names_are_the_types_without_argument_in_grammar_order():
    assert " ".join(BASE_NAMES) == "String Blob Bool I32 I64 U32 U64 F32 F64 DateTime Date"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ((), "array"),
        ({}, "object"),
        (b"", "bytes"),
    ],
)
def test_json_kind_names_what_people_see(value, kind):
    assert json_kind(value) == kind
