"""The type of a property: what it refuses to be, how it is spelled, what it accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.types import MAX_VECTOR_DIMENSION, PropertyType, Scalar

S, F64, VECTOR = Scalar.STRING, Scalar.F64, Scalar.VECTOR

plain = st.builds(
    PropertyType, st.sampled_from([s for s in Scalar if s is not VECTOR]), st.booleans()
)
lists = st.builds(
    PropertyType,
    st.sampled_from([s for s in Scalar if s not in (VECTOR, Scalar.BLOB)]),
    st.booleans(),
    st.just(True),
)
enums = st.builds(
    PropertyType,
    st.just(S),
    st.booleans(),
    enum_values=st.lists(st.text("ab-1", min_size=1), min_size=1).map(tuple),
)
vectors = st.builds(
    PropertyType, st.just(VECTOR), st.booleans(), dimension=st.integers(1, MAX_VECTOR_DIMENSION)
)
types = st.one_of(plain, lists, enums, vectors)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PropertyType(VECTOR), "a Vector has a dimension, nothing else does"),
        (lambda: PropertyType(S, dimension=3), "a Vector has a dimension, nothing else does"),
        (lambda: PropertyType(VECTOR, dimension=0), "vector dimension must be 1..2147483647"),
        (lambda: PropertyType(VECTOR, dimension=2**31), "vector dimension must be 1..2147483647"),
        (lambda: PropertyType(Scalar.BLOB, is_list=True), "list of Blob is not supported"),
        (
            lambda: PropertyType(VECTOR, is_list=True, dimension=2),
            "list of Vector is not supported",
        ),
        (lambda: PropertyType(F64, enum_values=("a",)), "only a plain String can be an enum"),
        (
            lambda: PropertyType(S, is_list=True, enum_values=("a",)),
            "only a plain String can be an enum",
        ),
        (lambda: PropertyType(S, enum_values=()), "an enum needs at least one value"),
    ],
)
def test_nonsense_cannot_be_made(make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make()


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (PropertyType(Scalar.I32), "I32"),
        (PropertyType(Scalar.DATE, nullable=True), "Date?"),
        (PropertyType(S, is_list=True), "[String]"),
        (PropertyType(S, is_list=True, nullable=True), "[String]?"),
        (PropertyType(S, enum_values=("b", "a", "b")), "enum(a, b)"),
        (PropertyType(VECTOR, nullable=True, dimension=3), "Vector(3)?"),
    ],
)
def test_spelling_is_that_of_the_schema(type_, text):
    assert str(type_) == text
    assert type_.base_text == text.rstrip("?")


@given(types)
def test_wire_form_reads_back(type_):
    assert PropertyType.from_wire(type_.to_json()) == type_


@pytest.mark.parametrize(
    ("type_", "wire"),
    [
        (
            PropertyType(S, nullable=True, enum_values=("b", "a")),
            {"scalar": "String", "nullable": True, "list": False, "enum_values": ["a", "b"]},
        ),
        (
            PropertyType(VECTOR, dimension=8),
            {"scalar": {"Vector": 8}, "nullable": False, "list": False, "enum_values": None},
        ),
        (
            PropertyType(Scalar.U64, is_list=True),
            {"scalar": "U64", "nullable": False, "list": True, "enum_values": None},
        ),
    ],
)
def test_wire_form_is_stable(type_, wire):
    assert type_.to_json() == wire


def test_order_and_repetition_of_enum_values_do_not_matter():
    assert PropertyType(S, enum_values=("b", "a")) == PropertyType(S, enum_values=("a", "b", "a"))


@pytest.mark.parametrize(
    ("type_", "facts"),
    [
        (PropertyType(Scalar.I32), "numeric orderable keyable"),
        (PropertyType(F64, is_list=True), ""),
        (PropertyType(S), "text orderable keyable"),
        (PropertyType(S, enum_values=("a",)), "text orderable keyable"),
        (PropertyType(S, is_list=True), ""),
        (PropertyType(Scalar.BOOL), "orderable keyable"),
        (PropertyType(Scalar.DATE_TIME), "orderable keyable"),
        (PropertyType(Scalar.BLOB), ""),
        (PropertyType(VECTOR, dimension=2), ""),
    ],
    ids=str,
)
def test_facts_speak_of_one_value(type_, facts):
    named = ("numeric", "text", "orderable", "keyable")
    assert [fact for fact in named if getattr(type_, fact)] == facts.split()


def test_element_of_a_list_is_the_plain_required_scalar():
    assert PropertyType(F64, nullable=True, is_list=True).element == PropertyType(F64)


def test_nullability_can_be_set_and_taken_away():
    assert PropertyType(F64).as_nullable() == PropertyType(F64, nullable=True)
    assert PropertyType(F64, nullable=True).as_nullable(False) == PropertyType(F64)


@pytest.mark.parametrize(
    ("one", "other", "comparable"),
    [
        (PropertyType(Scalar.I32), PropertyType(F64, nullable=True), True),
        (PropertyType(Scalar.U64), PropertyType(Scalar.I32), True),
        (PropertyType(S, enum_values=("a",)), PropertyType(S), True),
        (PropertyType(Scalar.DATE), PropertyType(Scalar.DATE_TIME), False),
        (PropertyType(Scalar.DATE), PropertyType(S), False),
        (PropertyType(Scalar.BOOL), PropertyType(Scalar.I32), False),
        (PropertyType(S, is_list=True), PropertyType(S), False),
        (PropertyType(F64, is_list=True), PropertyType(Scalar.I32, is_list=True), True),
        (PropertyType(VECTOR, dimension=2), PropertyType(VECTOR, dimension=2), True),
        (PropertyType(VECTOR, dimension=2), PropertyType(VECTOR, dimension=3), False),
    ],
    ids=str,
)
def test_comparable_means_same_list_ness_and_same_scalar_or_both_numbers(one, other, comparable):
    assert one.comparable_with(other) is comparable
    assert other.comparable_with(one) is comparable


@pytest.mark.parametrize(
    ("type_", "value", "converted"),
    [
        (PropertyType(S, nullable=True), None, None),
        (PropertyType(Scalar.U64), "18446744073709551615", 2**64 - 1),
        (PropertyType(Scalar.I32, is_list=True), [1, "2"], [1, 2]),
        (PropertyType(Scalar.I32, is_list=True), (), []),
        (PropertyType(VECTOR, dimension=2), [1, 2.5], [1.0, 2.5]),
        (PropertyType(S, enum_values=("a",)), "z", "z"),
    ],
    ids=str,
)
def test_fitting_json_is_accepted(type_, value, converted):
    assert type_.from_json(value) == converted


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (PropertyType(S), None, "expected String, got null"),
        (PropertyType(S), 1, "expected string, got integer"),
        (PropertyType(S, is_list=True), "a", "expected array, got string"),
        (PropertyType(S, is_list=True), ["a", None], "element 1: expected String, got null"),
        (
            PropertyType(Scalar.U32, is_list=True, nullable=True),
            [0, 1, -1],
            "element 2: value -1 exceeds U32 (0..4294967295)",
        ),
        (PropertyType(VECTOR, dimension=2), [1], "expected 2 values, got 1"),
        (PropertyType(VECTOR, dimension=2), [1, 2, 3], "expected 2 values, got 3"),
        (PropertyType(VECTOR, dimension=2), {"x": 1}, "expected array of numbers, got object"),
    ],
    ids=str,
)
def test_misfitting_json_is_refused_with_its_place(type_, value, message):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole sentence is compared
        type_.from_json(value)
    assert str(refusal.value) == message
