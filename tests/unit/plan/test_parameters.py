"""JSON parameters become typed values; every invalid one is reported."""

from datetime import UTC, date, datetime
from types import MappingProxyType

import numpy as np
import pytest

from omnigraph.lang import Code, QueryError
from omnigraph.plan import Parameter, bind_parameters
from omnigraph.types import SCALARS, PropertyType, Scalar


def declared(**types):
    return [Parameter(name, type_) for name, type_ in types.items()]


def bind(type_, value, **options):
    return bind_parameters(declared(x=type_), {"x": value}, **options)["x"]


def refusal(type_, value, **options):
    with pytest.raises(QueryError) as refused:
        bind(type_, value, **options)
    [diagnostic] = refused.value.diagnostics
    assert diagnostic.code is Code.PARAMETER_VALUE
    assert diagnostic.span is None
    return diagnostic.message


def of(scalar, **changes):
    return PropertyType(scalar, dimension=3 if scalar is Scalar.VECTOR else None, **changes)


# For each scalar: JSON it takes with the value it means, and JSON it does not take.
TABLE = {
    Scalar.STRING: ([("", ""), ("text", "text")], [1, True, ["text"], {}]),
    Scalar.BLOB: ([("base64:AA==", "base64:AA=="), ("s3://b/k", "s3://b/k")], [1, b"x"]),
    Scalar.BOOL: ([(True, True), (False, False)], [0, 1, "true"]),
    Scalar.I32: (
        [(5, 5), ("-5", -5), ("+7", 7), (2**31 - 1, 2**31 - 1)],
        [2**31, 1.0, "1.5", True],
    ),
    Scalar.I64: ([(-(2**63), -(2**63)), (str(2**63 - 1), 2**63 - 1)], [2**63, 5.0, "", "0x1"]),
    Scalar.U32: ([(0, 0), ("4294967295", 2**32 - 1)], [-1, "-1", 2**32, 0.0]),
    Scalar.U64: ([(2**64 - 1, 2**64 - 1), ("0", 0)], [-1, 2**64, str(2**64)]),
    Scalar.F32: ([(1, 1.0), (0.5, 0.5), (0.1, 0.10000000149011612)], ["1.5", True, 1e39]),
    Scalar.F64: ([(1, 1.0), (0.1, 0.1), (-1e300, -1e300)], ["1", False, float("inf"), 10**400]),
    Scalar.DATE: (
        [("2024-02-29", date(2024, 2, 29)), (date(2024, 1, 1), date(2024, 1, 1))],
        ["2023-02-29", "2024-1-1", 19000, datetime(2024, 1, 1, tzinfo=UTC)],
    ),
    Scalar.DATE_TIME: (
        [
            ("2024-01-01T12:00:00+02:00", datetime(2024, 1, 1, 10, tzinfo=UTC)),
            ("2024-01-01", datetime(2024, 1, 1, tzinfo=UTC)),
            (datetime(2024, 1, 1, 0, 0, 0, 1999), datetime(2024, 1, 1, 0, 0, 0, 1000, UTC)),
        ],
        ["noon", 0, date(2024, 1, 1)],
    ),
    Scalar.VECTOR: (
        [([1, 2.5, -3], [1.0, 2.5, -3.0]), ((0, 0, 0), [0.0, 0.0, 0.0])],
        [[1, 2], [1, 2, 3, 4], [1, 2, "3"], [1, 2, None], "1,2,3", 5],
    ),
}
TAKEN = [(scalar, given, value) for scalar, (taken, _) in TABLE.items() for given, value in taken]
NOT_TAKEN = [(scalar, given) for scalar, (_, wrong) in TABLE.items() for given in wrong]


def test_the_table_speaks_of_every_scalar():
    assert set(TABLE) == set(SCALARS)


@pytest.mark.parametrize(("scalar", "given", "value"), TAKEN)
def test_a_scalar_takes_its_json(scalar, given, value):
    bound = bind(of(scalar), given)
    assert (type(bound), bound) == (type(value), value)


@pytest.mark.parametrize(("scalar", "given"), NOT_TAKEN)
def test_a_scalar_does_not_take_other_json(scalar, given):
    assert refusal(of(scalar), given).startswith("param 'x': ")


LISTS = [row for row in TAKEN if row[0] not in (Scalar.VECTOR, Scalar.BLOB)]
LIST_MISFITS = [row for row in NOT_TAKEN if row[0] not in (Scalar.VECTOR, Scalar.BLOB)]


@pytest.mark.parametrize(("scalar", "given", "value"), LISTS)
def test_a_list_takes_an_array_of_what_its_scalar_takes(scalar, given, value):
    assert bind(of(scalar, is_list=True), [given, given]) == [value, value]


@pytest.mark.parametrize(("scalar", "given"), LIST_MISFITS)
def test_a_list_names_the_element_that_does_not_fit(scalar, given):
    good = TABLE[scalar][0][0][0]
    message = refusal(of(scalar, is_list=True), [good, given])
    assert message.startswith("param 'x': element 1: ")


@pytest.mark.parametrize("given", ["x", 1, {}])
def test_a_list_takes_only_an_array(given):
    assert refusal(of(Scalar.I32, is_list=True), given).startswith("param 'x': expected array")


def test_a_list_holds_no_nulls_even_if_it_may_be_null_itself():
    message = refusal(of(Scalar.I32, is_list=True, nullable=True), [1, None])
    assert message == "param 'x': element 1: expected I32, got null"


@pytest.mark.parametrize("scalar", TABLE)
def test_a_nullable_parameter_may_be_null_or_absent(scalar):
    parameters = declared(x=of(scalar, nullable=True))
    assert bind_parameters(parameters, {"x": None}) == {"x": None}
    assert bind_parameters(parameters, {}) == {"x": None}
    assert bind_parameters(parameters) == {"x": None}


@pytest.mark.parametrize("scalar", TABLE)
def test_a_required_parameter_may_not_be_null(scalar):
    assert refusal(of(scalar), None) == f"param 'x': expected {of(scalar)}, got null"


@pytest.mark.parametrize("given", [None, {}, {"other": 1}])
def test_a_required_parameter_may_not_be_absent(given):
    with pytest.raises(QueryError) as refused:
        bind_parameters(declared(x=of(Scalar.STRING)), given)
    [diagnostic] = refused.value.diagnostics
    assert diagnostic.code is Code.PARAMETER_MISSING
    assert diagnostic.message == "parameter 'x' not provided (String)"
    assert refused.value.code == "P001"


def test_a_missing_parameter_points_at_the_name_that_was_given_instead():
    with pytest.raises(QueryError) as refused:
        bind_parameters(declared(kind=of(Scalar.STRING)), {"knd": "tug", 7: "seven"})
    assert refused.value.diagnostics[0].hint == "`knd` is given, but not declared"


def test_every_problem_is_reported_at_once():
    parameters = declared(a=of(Scalar.I32), b=of(Scalar.STRING), c=of(Scalar.BOOL))
    with pytest.raises(QueryError) as refused:
        bind_parameters(parameters, {"a": "x", "c": 1, "d": {}})
    assert [(str(d.code), d.message) for d in refused.value.diagnostics] == [
        ("P002", "param 'a': expected integer number, got string 'x'"),
        ("P001", "parameter 'b' not provided (String)"),
        ("P002", "param 'c': expected boolean, got integer"),
        ("P002", "param 'd': an object cannot be a parameter"),
    ]


def test_no_more_problems_are_reported_than_anybody_reads():
    parameters = [Parameter(f"p{i}", of(Scalar.STRING)) for i in range(500)]
    with pytest.raises(QueryError) as refused:
        bind_parameters(parameters, {})
    assert len(refused.value.diagnostics) == 100


@pytest.mark.parametrize(("given", "kind"), [([], "array"), ("x", "string"), (1, "integer")])
def test_parameters_are_an_object(given, kind):
    with pytest.raises(QueryError) as refused:
        bind_parameters([], given)
    [diagnostic] = refused.value.diagnostics
    assert diagnostic.code is Code.PARAMETERS_NOT_AN_OBJECT
    assert diagnostic.message == f"parameters must be an object, got {kind}"


def test_any_mapping_is_an_object():
    assert bind_parameters([], MappingProxyType({"a": [1, "x", None]})) == {"a": [1, "x", None]}


@pytest.mark.parametrize(
    ("type_", "given", "value"),
    [
        (of(Scalar.I32), 5.0, 5),
        (of(Scalar.U64), -0.0, 0),
        (of(Scalar.I64), 2**53 - 1, 2**53 - 1),
        (of(Scalar.I64), -float(2**53 - 1), -(2**53 - 1)),
        (of(Scalar.I64), str(2**63 - 1), 2**63 - 1),
        (of(Scalar.I64, is_list=True), [1.0, 2], [1, 2]),
        (of(Scalar.F64), 1e300, 1e300),
        (of(Scalar.VECTOR), [1, 2, 1e30], [1.0, 2.0, 1.0000000150474662e30]),
        (of(Scalar.I64, nullable=True), None, None),
        (of(Scalar.BOOL), True, True),
    ],
)
def test_a_javascript_client_writes_all_numbers_as_doubles(type_, given, value):
    bound = bind(type_, given, javascript=True)
    assert (type(bound), bound) == (type(value), value)


@pytest.mark.parametrize(
    ("type_", "given", "complaint"),
    [
        (of(Scalar.I64), 2**53, "exceeds ±9007199254740991; pass it as a decimal string"),
        (of(Scalar.U64), 1e17, "exceeds ±9007199254740991"),
        (of(Scalar.I64), float("nan"), "exceeds ±9007199254740991"),
        (of(Scalar.I64, is_list=True), [1, -(2**53)], "exceeds ±9007199254740991"),
        (of(Scalar.I32), 1.5, "expected integer number"),
        (of(Scalar.I32), True, "expected integer number"),
    ],
)
def test_a_javascript_client_cannot_pass_integers_a_double_cannot_hold(type_, given, complaint):
    assert complaint in refusal(type_, given, javascript=True)


@pytest.mark.parametrize(
    ("type_", "given", "value"),
    [
        (PropertyType(Scalar.I64), np.int64(3), 3),
        (PropertyType(Scalar.BOOL), np.bool_(True), True),
        (PropertyType(Scalar.I64, is_list=True), np.array([1, 2]), [1, 2]),
        (PropertyType(Scalar.I64, is_list=True), [np.int64(1)], [1]),
        (PropertyType(Scalar.VECTOR, dimension=2), np.array([0.5, 1], np.float32), [0.5, 1.0]),
        (
            PropertyType(Scalar.DATE_TIME),
            np.datetime64("1970-01-02", "ns"),
            datetime(1970, 1, 2, tzinfo=UTC),
        ),
    ],
)
def test_values_of_numpy_are_those_of_python(type_, given, value):
    assert bind(type_, given) == value
